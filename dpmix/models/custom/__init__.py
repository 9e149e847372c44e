"""Models that users bring, in Python files."""
