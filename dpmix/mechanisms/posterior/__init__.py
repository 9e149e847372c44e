"""Private release of a conjugate posterior."""
