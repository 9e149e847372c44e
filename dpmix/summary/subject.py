"""What a fit is of: columns with their units, records, groups, and what its release guarantees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmix.columns.column_units import Unit, labelled, unit_of
from dpmix.numerics.in_words import figure, replacing_in_words
from dpmix.release.sanitized import as_stated, done_in_words

if TYPE_CHECKING:
    from dpmix.laws.every import Law

# What a release guarantees, in words


def is_private(attrs: Mapping[str, Any]) -> bool:
    """Whether the release behind the chains was made with noise that nobody can reproduce."""
    return bool(int(attrs.get("private", 0)))


def is_simulated(attrs: Mapping[str, Any]) -> bool:
    """Whether the data behind the release were simulated."""
    return bool(int(attrs.get("simulated", 0)))


def adjacency_of(attrs: Mapping[str, Any]) -> str:
    """Return the neighbouring relation of the release behind the chains."""
    return str(attrs.get("adjacency", "replacement"))


def stated_parameters(attrs: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Return epsilon, delta and rho; None for what does not apply."""
    found = (attrs.get(name) for name in ("epsilon", "delta", "rho"))
    epsilon, delta, rho = (
        None if value is None or not math.isfinite(float(value)) else float(value) for value in found
    )
    return epsilon, delta, rho


def epsilon_in_words(attrs: Mapping[str, Any]) -> str:
    """Return "epsilon = 5", "epsilon = 1 and delta = 1e-06" or "rho = 0.5", whichever applies, or ""."""
    epsilon, delta, rho = stated_parameters(attrs)
    if epsilon is not None:
        return f"epsilon = {figure(epsilon, 4)}" + (f" and delta = {figure(delta, 3)}" if delta else "")
    return "" if rho is None else f"rho = {figure(rho, 4)}"


def level_in_words(epsilon: float | None, delta: float | None, rho: float | None) -> str:
    """Return "5-differential privacy" and the like, rounded up, or "" where there is no guarantee."""
    parts = []
    if epsilon is not None and delta:
        parts.append(f"({figure(epsilon, 4)}, {figure(delta, 3)})-differential privacy")
    elif epsilon is not None:
        parts.append(f"{figure(epsilon, 4)}-differential privacy")
    if rho is not None:
        parts.append(f"{figure(rho, 4)}-zero-concentrated differential privacy")
    return " and ".join(parts)


def done_and_guaranteed(attrs: Mapping[str, Any], mechanism: Law, n: int) -> str:
    """Say what was done to the data, and what that guarantees to whom.

    Parameters
    ----------
    attrs : mapping
        `epsilon`, `delta`, `rho` (NaN where they do not apply), `private`, `simulated`; `adjacency`, the
        replacement of one record where it is missing, as in chains of earlier versions; `dates`, where
        columns are.
    mechanism : Law
        The release's mechanism.
    n : int
        Number of records.
    """
    done = done_in_words(mechanism, n, dates=bool(attrs.get("dates")))
    if not mechanism.guarantees:
        return done
    epsilon, delta, rho = stated_parameters(attrs)
    level = level_in_words(epsilon, delta, rho)
    if not level:
        return f"{done} The release states no privacy guarantee."
    if is_simulated(attrs) or not is_private(attrs):
        why = "the data are simulated" if is_simulated(attrs) else "its noise can be reproduced from a seed"
        return f"{done} That gives {level}, but {why}, so this release itself protects nobody."
    given = "As the spec states of a release made elsewhere, it" if mechanism.elsewhere else "The release"
    return (
        f"{done} {given} satisfies {level} with respect to {_replacing(attrs, mechanism)}. "
        "Everything computed from it, this summary included, keeps that guarantee."
    )


def guarantee_briefly(attrs: Mapping[str, Any], mechanism: Law) -> str:
    """Say in one sentence for a manager what the release guarantees; parameters as `done_and_guaranteed`."""
    if not mechanism.guarantees or not mechanism.protects:
        return "No noise was added: these results are not private."
    epsilon, delta, rho = stated_parameters(attrs)
    level = level_in_words(epsilon, delta, rho)
    if not level:
        return "The release states no privacy guarantee."
    if is_simulated(attrs):
        return f"The data are simulated, so that nobody needed protecting; real ones would have {level}."
    if not is_private(attrs):
        return (
            f"{level} would hold, but the noise can be reproduced from a seed, so that nobody is protected."
        )
    if epsilon is not None:  # one of the two is enough here
        level = level_in_words(epsilon, delta, None)
    sentence = f"{level} with respect to {_replacing(attrs, mechanism)}"
    if epsilon is not None and epsilon <= _LARGEST:
        sentence += f", which makes no result more than {_times(math.exp(epsilon))} times as probable"
        sentence += f", but for a probability of {figure(delta, 3)}" if delta else ""
    sentence += "" if mechanism.unproved is None else f"; {mechanism.unproved}"
    return f"{as_stated(sentence) if mechanism.elsewhere else sentence}."


def _replacing(attrs: Mapping[str, Any], mechanism: Law) -> str:
    return replacing_in_words(adjacency_of(attrs), grouped=bool(mechanism.groups))


_LARGEST = 30.0
"""Epsilon up to which e^epsilon is a number that says something."""


def _times(factor: float) -> str:
    """Write a factor, rounded up to three digits, as people who are not at home in exponents read it."""
    text = figure(factor, 3)
    return f"{float(text):,.0f}" if 1e3 <= factor < 1e9 else text


# What it is of


@dataclass(frozen=True)
class Subject:
    """What a fit is of.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns of the data, the response or class of a regression or classifier last.
    n : int
        Number of records.
    unit : str, mapping, or None
    groups : tuple of str
        Names of groups of the fit.
    short : str
        The guarantee in one sentence.
    """

    columns: tuple[str, ...] = ()
    n: int = 0
    unit: Unit = None
    groups: tuple[str, ...] = ()
    short: str = ""

    def parted(self, name: str) -> tuple[str, str]:
        """Return column and group of a name between brackets: "female,height", "female" or "height"."""
        for group in self.groups:
            if name == group or name.startswith(f"{group},"):
                return name[len(group) + 1 :], group
        return name, ""

    def about(self, name: str) -> str:
        """Return such a name in words: "height in female"."""
        column, group = self.parted(name)
        return f"{column} in {group}" if column and group else column or group

    def titled(self, column: str = "") -> str:
        """Return a column with its unit, "income (dollars)"; the only one where it is not named."""
        name = column or (self.columns[0] if len(self.columns) == 1 else "")
        return labelled(name or "value", unit_of(self.unit, name))

    def axis(self, column: str = "") -> str:
        """Return what stands at the axis of values of a column; it says so where no unit is stated."""
        name = column or (self.columns[0] if len(self.columns) == 1 else "")
        unit = unit_of(self.unit, name)
        return labelled(name or "value", unit) if unit else f"{name or 'value'}, in the data's units"

    @property
    def in_words(self) -> str:
        """Name the columns with their units."""
        named = [labelled(name, unit_of(self.unit, name)) for name in self.columns]
        return ", ".join(named)
