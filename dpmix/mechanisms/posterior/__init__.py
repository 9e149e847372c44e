"""Private release of a conjugate posterior of category probabilities."""
