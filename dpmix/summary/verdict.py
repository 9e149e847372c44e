"""Whether what is reported can be used: one of three answers, by a stated rule, with its reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dpmix.results.nodes import Array, Each, ResultSection
from dpmix.summary.check.check_result import SUSPECT, Check
from dpmix.summary.diagnostics import Scalar
from dpmix.summary.remarks import LEARNT, RHAT, is_headline

__all__ = ["FAR", "NOT_YET", "USABLE", "WELL_LEARNT", "WITH_CARE", "Verdict", "verdict_of"]

USABLE, WITH_CARE, NOT_YET = "usable", "with care", "not yet"
WELL_LEARNT = 0.5
"""Contraction from which on the release, more than the prior, speaks."""
FAR = 1.05
"""R-hat above which the chains have not met."""


@dataclass(frozen=True)
class Verdict:
    """The answer, and what speaks for or against more, the gravest first."""

    answer: str
    reasons: tuple[str, ...]

    def section(self) -> ResultSection:
        """Return what is reported of it; words stand in the head of text and pages."""
        reasons = Array(("reason",), list(self.reasons))
        return ResultSection("verdict", {"answer": self.answer, "reasons": Each(list(self.reasons), reasons)})


def verdict_of(parameters: Mapping[str, Scalar], check: Check) -> Verdict:
    """Return whether results can be used.

    "usable" where the contraction of every headline figure (moments, quantiles, tails, coefficients,
    predictions, shares) is 0.5 or more, the release check passes and R-hat is below 1.01; "not yet" where the
    contraction of mean or median is below 0.1, the check's p below 0.01, or R-hat above 1.05; else "with
    care", and so where one of the three is not known.

    Parameters
    ----------
    parameters : mapping of str to Scalar
        With their contractions, None where there is none; these are left out.
    check : Check
        Its p-value is that of all entries together.
    """
    grave, doubts, fine = [], [], []
    for severe, mild, good in (_of_contraction(parameters), _of_check(check), _of_chains(parameters)):
        grave += severe
        doubts += mild
        fine += good
    if grave:
        return Verdict(NOT_YET, (*grave, *doubts))
    return Verdict(WITH_CARE, tuple(doubts)) if doubts else Verdict(USABLE, tuple(fine))


Found = tuple[list[str], list[str], list[str]]


def _of_contraction(parameters: Mapping[str, Scalar]) -> Found:
    known = {
        name: scalar.contraction
        for name, scalar in parameters.items()
        if is_headline(name) and scalar.contraction is not None
    }
    if not known:
        return [], ["How much the release taught beyond the prior is not known."], []
    central = {name: value for name, value in known.items() if _is_central(name) and value < LEARNT}
    if central:
        worst = min(central, key=central.__getitem__)
        text = (
            f"The release says next to nothing about {worst}: it took away {_share(central[worst])} of the "
            f"prior's spread (contraction; at least {LEARNT:g} is wanted)."
        )
        return [text], [], []
    worst = min(known, key=known.__getitem__)
    if known[worst] < WELL_LEARNT:
        few = sum(value < WELL_LEARNT for value in known.values())
        more = f", and below that for {few - 1} more" if few > 1 else ""
        text = (
            f"The prior has a say in {worst}: the release took away {_share(known[worst])} of its spread "
            f"(contraction; {WELL_LEARNT:g} or more is wanted{more})."
        )
        return [], [text], []
    text = f"The release, not the prior, speaks: the least contraction is {known[worst]:.2f}, of {worst}."
    return [], [], [text]


def _of_check(check: Check) -> Found:
    if check.overall is None:
        why = f": {check.reason}" if check.reason else ""
        return [], [f"The release could not be checked against the fit{why}."], []
    if check.overall < SUSPECT:
        text = f"The release is unlike what the fitted model would release (check, p = {check.overall:.2g})."
        return [text], [], []
    return [], [], [f"The release is what the fitted model would release (check, p = {check.overall:.2g})."]


def _of_chains(parameters: Mapping[str, Scalar]) -> Found:
    stuck = [name for name, scalar in parameters.items() if scalar.stuck_apart]
    if stuck:
        return [f"The chains are stuck, each at a value of its own, in {stuck[0]}."], [], []
    known = {name: scalar.rhat for name, scalar in parameters.items() if scalar.rhat is not None}
    if not known:
        return [], ["Whether the chains agree is not known: R-hat needs two chains, and draws enough."], []
    worst = max(known, key=known.__getitem__)
    value = known[worst]
    if value > FAR:
        return [f"The chains do not agree yet: R-hat is {value:.4f} for {worst}; run longer."], [], []
    if value >= RHAT:
        text = f"The chains agree only roughly: R-hat is {value:.4f} for {worst} (below {RHAT} is wanted)."
        return [], [text], []
    return [], [], [f"The chains agree: R-hat is at most {value:.4f}."]


def _is_central(name: str) -> bool:
    """Whether a scalar is a mean or a median of records."""
    title, _, entries = name.rstrip("]").partition("[")
    return title == "mean" or (title == "quantile" and entries.rpartition(",")[2] == "0.5")


def _share(contraction: float) -> str:
    return "nothing" if contraction <= 0.0 else f"{math.floor(100 * contraction)}%"
