"""The check of any fit: which replicates, how many, and what becomes of them (methods, section 15).

Released statistics are checked entry by entry among their replicates, and all together. Of records released
one by one it is the distribution function of each column on a grid of quantiles of pooled replicates; of
several columns their correlations too; of a wavelet the distribution function at its cells' edges that the
means of the coefficients give. How large a misfit would be seen is said by piles: with a share e of the
records at one value y in place of where the fit has them, the statistic T moves by
e (E[T of records at y] - E[T]), and is out of what 99% of replicates reach from some e on. The noise is in
E[T of records at y].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmix.columns.dated import days
from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.models.meaning_base import Replicator, StatisticReplicator, Unavailable, dated_of, meaning_of
from dpmix.numerics.in_words import plainly
from dpmix.run.chains_reader import Chains, ChainSet
from dpmix.spec.days import Day, placed
from dpmix.summary.check.check_result import Check, Curve, Entry
from dpmix.summary.check.mixture_replicates import (
    CoefficientReplicator,
    HistogramReplicator,
    MixtureReplicator,
    TallyReplicator,
    mixture_replicator,
)
from dpmix.summary.check.rank_comparison import RankComparison, compare, places
from dpmix.summary.check.record_likelihoods import counted, goes_by_cell
from dpmix.summary.fitted_columns import columns_of

Floats = NDArray[np.float64]

REPLICATES = 200
_FEWER, _NUMBERS = 100, 5e7
"""Replicates of large releases, and the numbers that are drawn in all before they are fewer."""


def replicator_of(chains: ChainSet) -> Replicator:
    """Return what draws the replicates of a fit's release.

    Raises
    ------
    Unavailable
        Where there is none.
    """
    if isinstance(chains, Chains):
        return mixture_replicator(chains)
    return meaning_of(chains).replicator()


def check_release(chains: ChainSet) -> Check:
    """Set a release beside replicates from the fit's posterior (methods, section 15).

    The same files always give the same result. Many records of one column are compared by their counts in
    public cells, as a tally is: drawn one by one they would cost more than all else in a summary.

    Parameters
    ----------
    chains : ChainSet
        What `dpmix.run.chains_reader.read_chains` gives.
    """
    try:
        chains = _by_cell(chains)
        replicator = replicator_of(chains)
        most = REPLICATES if replicator.size * REPLICATES <= _NUMBERS else _FEWER
        most = min(most, chains.draws * len(chains.ids))
        if most < 20:
            raise Unavailable("there are fewer than 20 saved draws")
        if isinstance(replicator, StatisticReplicator | HistogramReplicator):
            return check_statistic(chains, replicator, most)
        assert isinstance(replicator, MixtureReplicator)  # the others
        return check_records(replicator, most)
    except Unavailable as why:
        return Check(reason=str(why))
    except (TypeError, ValueError):  # of files that somebody changed, which only the check looks into so far
        return Check(reason="the chains file does not describe the release as its mechanism would")


# Released statistics, entry by entry


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
    places_of = zip(replicator.names, range(observed.size), strict=True)
    entries = tuple(_entry(name, found, place) for name, place in places_of)
    reach = found.reach()
    visible, words = None, ""
    if math.isfinite(reach):
        visible = float((reach * found.sd).max() / replicator.per)
        words = words_of_reach(visible, replicator.unit, share=replicator.per > 1.0)
    return Check(
        replicator.what,
        found.p(),
        entries,
        replicates=len(table),
        visible_from=visible,
        visible=f"{words} {replicator.blind}".strip(),
        blind=replicator.blind,
    )


def _by_cell(chains: ChainSet) -> ChainSet:
    """Return chains with their release counted in cells where log likelihoods go by these, and there are."""
    if not goes_by_cell(chains):
        return chains
    try:
        return counted(chains)
    except Unavailable:
        return chains


# Records released one by one, by distribution functions


TAIL = 0.01
_LEVELS = np.concatenate(
    [[0.001, 0.002, 0.005, TAIL], np.arange(2, 99) / 100, [1 - TAIL, 0.995, 0.998, 0.999]]
)
_FEW = 5  # values expected beyond the outermost points of a grid
_PILOTS, _EACH = 20, 2_000  # replicates that the grid is made of, and values of each
_PILED = 4_000  # records at one value, for what would be released of them
_PILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])  # quantiles of latent records where piles are tried


def _levels(records: int) -> Floats:
    """Return the levels of a grid: single values far out would be all that is seen."""
    return np.asarray(_LEVELS[np.minimum(_LEVELS, 1.0 - _LEVELS) >= min(_FEW / records, 0.25)])


class _Cdfs:
    """The distribution functions of the columns of releases, at fixed grids, and the correlations."""

    def __init__(self, pilots: Floats, records: int) -> None:
        values, levels = pilots.reshape(len(pilots), -1), _levels(records)
        self.grids = [np.unique(np.quantile(column, levels, method="inverted_cdf")) for column in values.T]
        self.pairs = np.triu_indices(len(self.grids), 1)

    def __call__(self, released: Floats) -> Floats:
        """Return all distribution functions, one after another, and the correlations."""
        table = released.reshape(len(released), -1)
        parts = []
        for column, grid in zip(table.T, self.grids, strict=True):
            counts = np.bincount(np.searchsorted(grid, column, side="left"), minlength=grid.size + 1)
            parts.append(np.cumsum(counts[:-1]) / len(table))
        if len(self.grids) > 1:
            with np.errstate(invalid="ignore", divide="ignore"):
                found = np.asarray(np.corrcoef(table, rowvar=False))[self.pairs]
            parts.append(np.nan_to_num(found))
        return np.concatenate(parts)


class _Edges:
    """The distribution function at the edges of the cells of coefficients."""

    def __init__(self, replicator: CoefficientReplicator) -> None:
        self.grids = [replicator.edges[1:-1]]
        self.pairs = np.triu_indices(1, 1)
        self._reduce = replicator.reduce

    def __call__(self, released: Floats) -> Floats:
        """Return what replicates are already, or what a whole release gives."""
        return released if released.ndim == 1 else self._reduce(released)


class _OfCells:
    """The distribution function of released numbers at some edges of a tally's cells."""

    def __init__(self, pilots: Floats, edges: Floats, records: int) -> None:
        below = np.cumsum(pilots.sum(axis=0))[:-1] / pilots.sum()
        self._chosen = np.unique(np.minimum(np.searchsorted(below, _levels(records)), len(edges) - 1))
        self.grids = [edges[self._chosen]]
        self.pairs = np.triu_indices(1, 1)

    def __call__(self, counts: Floats) -> Floats:
        """Return the shares below the edges."""
        return np.asarray((np.cumsum(counts)[:-1] / counts.sum())[self._chosen])


def check_records(replicator: MixtureReplicator, most: int) -> Check:
    """Set the released records beside those of `most` replicates."""
    chains = replicator.chains
    wanted = places(chains, most)
    replicator.prepare(wanted)
    statistic = _statistic(replicator, wanted)
    table = np.stack([statistic(values) for _, _, values in replicator.draws(wanted)])
    observed = statistic(chains.observed if chains.tally is None else chains.tally.counts.astype(np.float64))
    if observed.shape != table.shape[1:]:
        raise Unavailable("the released values are not what the mechanism releases")
    found = compare(observed, table)
    columns, dated = [column.name for column in columns_of(chains, replicator.source)], dated_of(chains)
    # outputs of a square wave, say, are numbers of cells
    in_units = chains.mechanism.on_data_scale or isinstance(statistic, _Edges)
    curves, p_of_curves = {}, {}
    entries: list[Entry] = []
    start = 0
    for name, grid in zip(columns, statistic.grids, strict=True):
        part = slice(start, start + grid.size)
        start += grid.size
        curves[name] = Curve(grid, *(a[part] for a in (found.observed, found.mean, found.lower, found.upper)))
        p_of_curves[name] = found.p(part)
        written = days(grid) if in_units and dated.is_curve(name) else grid
        entries.append(_farthest(name, written, found, part))
        entries += _tails(name, written, found, part)
    names = [f"correlation[{columns[i]},{columns[j]}]" for i, j in zip(*statistic.pairs, strict=True)]
    entries += [_entry(name, found, start + i) for i, name in enumerate(names)]
    piles = _piles(replicator, statistic, found, wanted, columns)
    what = "distribution function" if len(columns) == 1 else "distribution functions and correlations"
    visible, words = _in_words(
        {(name, Day(at) if dated.is_curve(name) else at): share for (name, at), share in piles.items()}
    )
    return Check(what, found.p(), tuple(entries), curves, p_of_curves, len(table), visible, words)


def _statistic(
    replicator: MixtureReplicator, wanted: Sequence[tuple[int, NDArray[np.int64]]]
) -> _Cdfs | _Edges | _OfCells:
    chains = replicator.chains
    if isinstance(replicator, CoefficientReplicator):
        return _Edges(replicator)
    some = [(chain, states[:: max(1, len(wanted) * states.size // _PILOTS)]) for chain, states in wanted]
    if isinstance(replicator, TallyReplicator):
        drawn = np.stack([values for _, _, values in replicator.draws(some)])
        return _OfCells(drawn, replicator.edges, chains.n)
    rng = chains.generator(0, -8)
    pilots = []
    for _, _, values in replicator.draws(some):
        chosen = rng.integers(len(values), size=min(_EACH, len(values)))
        pilots.append(values[chosen])
    return _Cdfs(np.concatenate(pilots), len(chains.observed))


def _tails(name: str, grid: Floats | Sequence[Day], found: RankComparison, part: slice) -> list[Entry]:
    """Return the shares of released values in both tails of the replicates."""
    mean = found.mean[part]
    low = int(np.argmin(np.abs(mean - TAIL)))
    high = int(np.argmin(np.abs(mean - (1.0 - TAIL))))
    about, step = f" of {name}" if name else "", _step(grid)
    entries = [_entry(f"share{about} up to {placed(grid[low], step)}", found, part.start + low)]
    if high > low:
        up_to = _entry(f"share{about} above {placed(grid[high], step)}", found, part.start + high)
        observed, mean_share = 1.0 - up_to.observed, 1.0 - up_to.mean
        lower, upper = 1.0 - up_to.upper, 1.0 - up_to.lower
        entries.append(replace(up_to, observed=observed, mean=mean_share, lower=lower, upper=upper))
    return entries


def _entry(name: str, found: RankComparison, place: int) -> Entry:
    columns = (found.observed, found.mean, found.lower, found.upper, found.tails, found.sd)
    figures = (column[place] for column in columns)
    return Entry(name, *(float(value) for value in figures))


def _farthest(column: str, grid: Floats | Sequence[Day], found: RankComparison, part: slice) -> Entry:
    """Return a distribution function where it is farthest out, with the p-value of the whole."""
    at = int(np.argmax(found.distances[0, part]))
    place = placed(grid[at], _step(grid))
    name = f"distribution function{f' of {column}' if column else ''} at {place}"
    entry = _entry(name, found, part.start + at)
    return replace(entry, p=found.p(part))


def _in_words(piles: Mapping[tuple[str, float], float]) -> tuple[float | None, str]:
    """Return the share from which on every pile shows, and what piles show in words, by column and value."""
    if not piles:
        return None, ""
    least, most = min(piles, key=piles.__getitem__), max(piles, key=piles.__getitem__)
    if piles[least] >= 1.0:
        return 1.0, "The noise hides a pile of records at one value, were it all of them."

    def written(pile: tuple[str, float]) -> str:
        name, value = pile
        at = plainly(placed(value, _step([other for column, other in piles if column == name])))
        return f"{name} = {at}" if name else at

    seen = (
        "A pile of records at one value, which the fit does not follow, shows from about "
        f"{_percent(piles[least])} of them (at {written(least)})"
    )
    at = written(most)
    if piles[most] >= 1.0:
        return 1.0, f"{seen}; at {at} the noise hides any."
    return piles[most], f"{seen} to {_percent(piles[most])} (at {at}) on; smaller ones may be hidden."


def _step(places: Floats | Sequence[float]) -> float:
    return float(max(places) - min(places)) / 100.0


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"


def _piles(
    replicator: MixtureReplicator,
    statistic: _Cdfs | _Edges | _OfCells,
    found: RankComparison,
    wanted: Sequence[tuple[int, NDArray[np.int64]]],
    columns: Sequence[str],
) -> dict[tuple[str, float], float]:
    """Return the share of records, at most 1, from which on a pile shows, by the place where it stands."""
    chain, states = wanted[0]
    rng = replicator.chains.generator(0, -9)
    latent = replicator.records(chain, int(states[-1]), rng, _PILED).reshape(_PILED, -1)
    reach = found.reach()
    if not np.isfinite(reach):
        return {}
    shares: dict[tuple[str, float], float] = {}
    for column in range(latent.shape[1]):
        for at in np.quantile(latent[:, column], _PILES):
            piled = latent.copy()
            piled[:, column] = at
            wide = isinstance(replicator.source, NormalInverseWishart)
            moved = statistic(replicator.released(piled if wide else piled[:, 0], rng)) - found.mean
            with np.errstate(divide="ignore", invalid="ignore"):
                least = reach * found.sd / np.abs(moved)
            shares[columns[column], float(at)] = min(float(np.nanmin(least)), 1.0)
    return shares
