"""Simulation-based calibration and comparisons with exact posteriors, of every sampler; scripts/verify."""
