"""Laplace noise on each record."""
