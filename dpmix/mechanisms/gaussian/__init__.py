"""Gaussian noise on each record."""
