"""The shares of a posterior variance: sampling, privacy noise, prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmix.results.nodes import ABSENT, Each, ResultSection, Table, TableColumn, by_name

__all__ = ["QUANTITIES", "Shares", "VarianceShares", "shares_of"]

QUANTITIES = ("mean", "median", "density")


@dataclass(frozen=True)
class Shares:
    """Shares of the posterior variance of one quantity, which sum to one."""

    sampling: float
    privacy: float
    prior: float

    @property
    def largest(self) -> str:
        """Name of the largest."""
        return max(("sampling", "privacy", "prior"), key=lambda name: float(getattr(self, name)))


@dataclass(frozen=True)
class VarianceShares:
    """Shares of mean, median and density.

    Parameters
    ----------
    columns : mapping of str to mapping of str to Shares or None
        By column, under "" where there is only one, and by quantity; empty where there are none.
    reason : str
        Why some are missing; empty where none is.
    """

    columns: Mapping[str, Mapping[str, Shares | None]] = field(default_factory=dict)
    reason: str = ""

    def section(self) -> ResultSection:
        """Return what is reported of them."""
        held: dict[str, Any] = {
            name: {key: None if part is None else dict(vars(part)) for key, part in parts.items()}
            for name, parts in self.columns.items()
        }
        held = by_name(held) or dict.fromkeys(QUANTITIES)
        rows = {
            f"{column},{quantity}" if column else quantity: part
            for column, parts in self.columns.items()
            for quantity, part in parts.items()
            if part is not None
        }
        names = ("sampling", "privacy", "prior")
        columns = [TableColumn(name, [getattr(part, name) for part in rows.values()]) for name in names]
        words = self.in_words()
        return ResultSection(
            "variance_shares",
            Each(
                held | ({"reason": self.reason} if self.reason else {}),
                Table("quantity", list(rows), columns) if words else ABSENT,
            ),
            "Where the uncertainty comes from",
            text=[[f"Share of the posterior variance: {words}"]] if words else (),
            page=[f"Not known: {self.reason}."] if self.reason and not words else (),
        )

    def named(self) -> dict[str, Shares]:
        """Return those that are there, by name such as "mean" or "mean of height"."""
        return {
            f"{quantity} of {column}" if column else quantity: part
            for column, parts in self.columns.items()
            for quantity, part in parts.items()
            if part is not None
        }

    def in_words(self) -> str:
        """Say it in one line; empty where there is nothing to say."""
        named = self.named()
        if not named:
            return ""
        figures = "; ".join(
            f"{name} {_percent(part.sampling)} sampling, {_percent(part.privacy)} privacy noise, "
            f"{_percent(part.prior)} prior"
            for name, part in named.items()
        )
        return f"{figures}. {self.cure()}"

    def cure(self) -> str:
        """Say what would help, by the largest shares."""
        named = self.named()
        parts = []
        for source, words in _CURES.items():
            about = [name for name, part in named.items() if part.largest == source]
            if about:
                parts.append(words.format("" if len(about) == len(named) else f" {_listed(about)}"))
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."


_CURES = {
    "privacy": "more epsilon would help{}",
    "sampling": "more records would help{}",
    "prior": "the prior decides{}",
}


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def shares_of(variance: float, prior: float, clean: float) -> Shares | None:
    """Return the shares of a posterior variance V, given V0 and E V_clean; None where V0 is infinite, or V 0.

    Parameters
    ----------
    variance, prior, clean : float
        V, V0 and E V_clean.
    """
    if not np.isfinite(prior) or not prior > 0.0 or not variance > 0.0:
        return None
    of_prior = min(1.0, variance / prior)
    sampling = (1.0 - of_prior) * min(1.0, clean / variance)
    return Shares(sampling, max(0.0, 1.0 - of_prior - sampling), of_prior)
