"""Haar coefficients of each record with Laplace noise."""
