"""Sweeps: many runs from one spec, their plan, their folder, their processes, and what comes out."""
