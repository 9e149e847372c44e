"""A binomial count of each record."""
