"""Laws of mechanisms by kind."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dpmix.mechanisms.laws.law_base import EstimatedMoments, Law, LawError, Observation, expect

__all__ = ["EstimatedMoments", "Law", "LawError", "Observation", "expect", "law_of", "law_type"]

KINDS = (
    "none",
    "laplace",
    "gaussian",
    "wavelet",
    "binomial",
    "square_wave",
    "randomized_response",
    "smoothed_histogram",
    "perturbed_histogram",
    "noisy_counts",
    "clamped_moments",
    "log_moments",
    "posterior",
    "synthetic",
    "elsewhere",
)
_WITHOUT_FOLDER = ("synthetic", "elsewhere")
"""Kinds that are no mechanism of a spec."""


def law_type(kind: str) -> type[Law]:
    """Return the class of a kind of mechanism; `UnknownLaw` for those of other versions."""
    if kind in _WITHOUT_FOLDER or kind not in KINDS:
        module = import_module(f"dpmix.mechanisms.laws.{kind if kind in KINDS else 'unknown'}")
    else:
        module = import_module(f"dpmix.mechanisms.{kind}.law")
    found: type[Law] = module.LAW
    return found


def law_of(stated: Mapping[str, Any] | Law) -> Law:
    """Parse what a release states of its mechanism.

    Raises
    ------
    LawError
        Where it does not name its kind, or lacks something that a mechanism of its kind has.
    """
    if isinstance(stated, Law):
        return stated
    kind = stated.get("kind")
    if not isinstance(kind, str):
        raise LawError("does not name its kind")
    return law_type(kind).of(stated)
