"""Measurements of speed, mixing and memory, run by scripts/benchmark."""
