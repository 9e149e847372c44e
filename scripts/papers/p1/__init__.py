"""The first paper: Beraha, Favaro and Rao (2024)."""
