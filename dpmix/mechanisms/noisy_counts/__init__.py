"""Noisy counts of the levels of features within classes."""
