"""Draws from the smoothed histogram of the whole sample."""
