"""Noisy second moments of clamped predictors and response."""
