"""Empirical lower bounds on the privacy loss of a mechanism or synthesizer.

Releases of two neighbouring databases are drawn many times over; an event that tells them apart is learnt
from some of the draws, and its probabilities are bounded from the others. What comes out bounds epsilon from
below: above the claim, it disproves it; below, it proves nothing.
"""

from dpmix.auditing.inputs import AuditedSubject, subject_of
from dpmix.auditing.trial import (
    LOOKED_AT,
    Event,
    Trial,
    lower_bound,
    paired_bound,
    repeats_after_fork,
    try_out,
)
from dpmix.mechanisms.curators.mechanism import Pair

__all__ = [
    "LOOKED_AT",
    "AuditedSubject",
    "Event",
    "Pair",
    "Trial",
    "lower_bound",
    "paired_bound",
    "repeats_after_fork",
    "subject_of",
    "try_out",
]
