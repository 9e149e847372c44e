"""A cell of a public grid near that of each record."""
