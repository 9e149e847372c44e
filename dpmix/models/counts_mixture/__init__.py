"""Mixtures given the counts of a local release: a sampler whose sweep costs the same whatever n.

Where each record releases one number and records are exchangeable, the release is its counts in public cells
(methods, section 12). Allocations and latent values are integrated out of every move of parameters and
weights; P is drawn out in full once a sweep, and the numbers of records at its atoms are all that is kept.

The likelihood is over counts and edges alone: a tally, which has no values, can be its input as it is.
"""
