"""The release: sanitized values with the account of how they were made, their checks and their files."""
