"""Generators of synthetic records, their guarantees and their utility: the curator's side."""
