"""The share of one of two categories, given randomized responses."""
