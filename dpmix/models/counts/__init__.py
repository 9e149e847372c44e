"""Latent numbers of records in cells: their prior, the releases that depend on them, and their moves."""
