"""The check of released statistics: each entry among its replicates, and all together."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmix.summary.check.check_result import Check, Entry
from dpmix.summary.check.mixture_replicates import HistogramReplicator
from dpmix.summary.check.replicators import Replicator, Unavailable, compare, places
from dpmix.summary.dated import bins_in_words, dated_of

if TYPE_CHECKING:
    from dpmix.mechanisms.laws.every import Law
    from dpmix.run.chains_reader import ChainSet, NamedChains
    from dpmix.run.stored_parameters import Stored

__all__ = ["StatisticReplicator", "check_statistic"]

Floats = NDArray[np.float64]


class StatisticReplicator(Replicator):
    """Replicates of the release that a parametric model was fitted to.

    Attributes
    ----------
    what : str
        What the entries are.
    unit, per : str, float
        Unit in which a misfit is told, and what it is divided by.
    blind : str
        What the entries cannot show, whatever the noise.
    """

    chains: NamedChains
    what = "entries"
    unit, per = "of an entry", 1.0
    blind = ""

    def __init__(self, chains: NamedChains) -> None:
        self.chains = chains
        self.law: Law = chains.mechanism
        self.values: dict[str, Floats] = {}

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of what `reduce` returns."""

    @property
    @abstractmethod
    def needed(self) -> tuple[str, ...]:
        """Names of the parameters that a replicate depends on."""

    def prepare(self, wanted: Sequence[tuple[int, NDArray[np.int64]]]) -> None:
        """Read the parameters."""
        self.values = {name: self.chains.read(stored_of(self.chains, name)) for name in self.needed}

    def reduce(self, released: Floats) -> Floats:
        """Return the entries."""
        return released.ravel()


def stored_of(chains: NamedChains, name: str) -> Stored:
    """Return a parameter by name.

    Raises
    ------
    Unavailable
        Where the chains do not hold it.
    """
    for parameter in chains.parameters:
        if parameter.name == name:
            return parameter
    raise Unavailable(f"the chains do not hold {name}")


def has(chains: NamedChains, name: str) -> bool:
    """Say whether the chains hold a parameter."""
    return any(parameter.name == name for parameter in chains.parameters)


def words_of_reach(visible: float, unit: str, *, share: bool) -> str:
    """Say from which size on a misfit shows, a share of all (which may be more than all) or a number."""
    if share and visible > 1.0:
        return f"Not even a misfit that moves the entry that varies most by 100% {unit} shows."
    size = f"{100 * visible:.{2 if visible < 0.995 else 3}g}%" if share else f"{visible:.3g}"
    return f"A misfit shows once it moves the entry that varies most by about {size} {unit}."


def check_statistic(
    chains: ChainSet, replicator: StatisticReplicator | HistogramReplicator, most: int
) -> Check:
    """Set each entry of a released statistic beside those of `most` replicates."""
    wanted = places(chains, most)
    replicator.prepare(wanted)
    table = np.stack([values for _, _, values in replicator.draws(wanted)])
    observed = replicator.reduce(chains.observed)
    if observed.shape != table.shape[1:]:
        raise Unavailable("the released values are not what the mechanism releases")
    found = compare(observed, table)
    if isinstance(replicator, HistogramReplicator):
        names = bins_in_words(replicator.edges, date=dated_of(chains).only)
        draws = not replicator.law.counts_bins
        what = "numbers of draws in bins" if draws else "counts of bins"
        unit = "of all draws in a bin" if draws else "of all records in a bin"
        per = float(chains.observed.size if draws else chains.n)
    else:
        names, what, unit, per = replicator.names, replicator.what, replicator.unit, replicator.per
    entries = tuple(
        Entry(name, *map(float, figures))
        for name, *figures in zip(
            names, found.observed, found.mean, found.lower, found.upper, found.tails, found.sd, strict=True
        )
    )
    reach = found.reach()
    visible, words = None, ""
    if math.isfinite(reach):
        visible = float((reach * found.sd).max() / per)
        words = words_of_reach(visible, unit, share=per > 1.0)
    if isinstance(replicator, StatisticReplicator) and replicator.blind:
        words = f"{words} {replicator.blind}".strip()
    return Check(what, found.p(), entries, replicates=len(table), visible_from=visible, visible=words)
