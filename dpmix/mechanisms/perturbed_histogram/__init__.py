"""Noisy counts of the bins of a histogram of the whole sample."""
