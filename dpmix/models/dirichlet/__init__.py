"""Compositions with a Dirichlet distribution given noisy means of their censored logarithms."""
