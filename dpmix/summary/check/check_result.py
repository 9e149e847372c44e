"""The result of a check."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.in_words import brief
from dpmix.results.nodes import Array, Each, ResultSection, Table, TableColumn, Tile, by_name

Floats = NDArray[np.float64]

SUSPECT = 0.01
"""p-value below which a misfit is warned of."""


@dataclass(frozen=True)
class Entry:
    """One figure of the release, the replicates' mean, 95% interval and sd, and its tail probability p."""

    name: str
    observed: float
    mean: float
    lower: float
    upper: float
    p: float
    sd: float

    def scaled(self, value: float) -> float:
        """Return how many standard deviations of the replicates a value is from their mean.

        Where all replicates agree, a value other than theirs is infinitely far.
        """
        if math.isclose(value, self.mean, rel_tol=1e-12):  # but for rounding
            return 0.0
        gap = value - self.mean
        return gap / self.sd if self.sd > 0.0 else math.copysign(math.inf, gap)


@dataclass(frozen=True)
class Curve:
    """A distribution function beside the replicates' mean and 95% pointwise band, arrays (points,)."""

    grid: Floats
    observed: Floats
    mean: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Check:
    """A release beside replicates from the posterior.

    Parameters
    ----------
    statistic : str
        What of the releases is compared, in words; empty where there is no check.
    overall : float or None
        p-value of the largest standardized deviation of all.
    entries : tuple of Entry
        Single figures: shares of tails, correlations, the entries of a statistic.
    curves : mapping of str to Curve
        Distribution functions by column, under "" where there is only one.
    p_of_curves : mapping of str to float
        Their p-values.
    replicates : int
    visible_from : float or None
        How large a misfit must be to be seen; `visible` says it in words.
    visible : str
    reason : str
        Why there is no check; empty where there is one.
    blind : str
        What cannot show in the check, in a sentence; empty where all that is compared may differ.
    """

    statistic: str = ""
    overall: float | None = None
    entries: tuple[Entry, ...] = ()
    curves: Mapping[str, Curve] = field(default_factory=dict)
    p_of_curves: Mapping[str, float] = field(default_factory=dict)
    replicates: int = 0
    visible_from: float | None = None
    visible: str = ""
    reason: str = ""
    blind: str = ""

    @property
    def p(self) -> float | list[float] | None:
        """The p-value of the distribution function of one column, else of each entry."""
        if self.overall is None:
            return None
        if list(self.p_of_curves) == [""]:
            return self.p_of_curves[""]
        return [entry.p for entry in self.entries]

    @property
    def suspect(self) -> bool:
        """Whether the replicates are unlike the release."""
        return self.overall is not None and self.overall < SUSPECT

    @property
    def farthest(self) -> Entry | None:
        """The entry farthest from its replicates, in their standard deviations."""
        return max(self.entries, key=lambda entry: abs(entry.scaled(entry.observed)), default=None)

    def section(self) -> ResultSection:
        """Return what is reported of it."""
        text = [[f"Check: {self.in_words()}"]] if self.overall is not None or self.reason else []
        if self.overall is None:
            none = Each({"statistic": None, "p": None, "reason": self.reason})
            shown = [f"No check: {self.reason}."] if self.reason else []
            return ResultSection("check", none, "Release check", text=text, page=shown)
        figures = ("observed", "mean", "lower", "upper", "p")
        columns = [TableColumn(name, [getattr(entry, name) for entry in self.entries]) for name in figures]
        data = {
            "statistic": self.statistic,
            "p": Each(self.p),
            "overall": self.overall,
            "entries": Table("entry", [entry.name for entry in self.entries], columns, "list"),
            "replicates": Each(self.replicates, float(self.replicates)),
            "visible_from": self.visible_from,
            "visible": self.visible,
        }
        curves = {
            name: {key: Array(("grid",), values) for key, values in vars(curve).items()}
            for name, curve in self.curves.items()
        }
        if curves:
            data["distribution"] = by_name(curves)
        note = "small where the release is unlike the fit's replicates of it"
        tile = Tile("Release check, p", f"{self.overall:.2g}", note)
        return ResultSection("check", data, "Release check", text=text, page=(), tiles=[tile])

    def in_words(self) -> str:
        """Say it in one or two sentences."""
        if self.overall is None:
            return f"none: {self.reason}"
        text = f"{self.statistic} of the release among {self.replicates} replicates of the fit, p = "
        text += f"{self.overall:.2g}"
        worst = self.farthest
        if worst is not None and worst.p < SUSPECT:
            figures = (worst.observed, worst.lower, worst.upper)
            observed, low, high = (brief(figure, 4) for figure in figures)
            text += f"; farthest out {worst.name}, {observed} ({low} to {high})"
        return f"{text}. {self.visible}" if self.visible else f"{text}."
