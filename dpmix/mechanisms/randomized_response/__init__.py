"""The category of each record, or another at random."""
