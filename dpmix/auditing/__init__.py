"""Empirical lower bounds on the privacy loss of a mechanism or synthesizer.

Releases of two neighbouring databases are drawn many times over; an event that tells them apart is learnt
from some of the draws, and its probabilities are bounded from the others. What comes out bounds epsilon from
below: above the claim, it disproves it; below, it proves nothing.
"""
