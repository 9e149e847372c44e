"""Naive Bayes classes and features given noisy counts of every feature's levels within every class."""
