"""Category probabilities given a released posterior."""
