"""Noisy means of the logarithms of censored compositions."""
