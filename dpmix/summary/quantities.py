"""Functionals of random densities: quantiles, tail probabilities, distribution function, Gini coefficient.

Each draw of P is a finite mixture with a little mass on the prior predictive
(`dpmix.summary.random_measures`). Its distribution function F is a sum over atoms. Quantiles solve F(x) = q
draw by draw: the quantile of a mixture lies between the least and the largest of its components', and within
that bracket steps are secants, or halvings where a secant leaves it or gets on slowly. All draws start at the
quantile of a few of them together, as posterior draws are alike.

What a spec wants of them of each column, and the share of records beyond the public bounds, under the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dpmix.columns.dated import dates_or_figures
from dpmix.errors import SpecError
from dpmix.models.meaning_base import BEYOND, MOVED, OwnAccount, dated_of
from dpmix.numerics.equal_cells import spread
from dpmix.numerics.in_words import figures
from dpmix.results.nodes import Each, ResultSection, Table, TableColumn, Tile, by_name, percent
from dpmix.summary.fitted_columns import public_bounds
from dpmix.summary.random_measures import Measures
from dpmix.summary.row_labels import data_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpmix.kernels.layout import Family, Floats
    from dpmix.run.chains_reader import Chains, NamedChains
    from dpmix.spec.summary_section import SummarySpec
    from dpmix.summary.fitted_columns import FittedColumn

    Ints = NDArray[np.int64]

_TAIL = 1e-12  # of the mass of each atom, which is left out at the ends
_FIRST_EDGES = np.array([0.0, 0.27, 0.52, 0.76, 1.0])  # of the first intervals: no symmetry hides a jump
_AGREED = 1e-6
_HALVINGS = 50
_ROOM = 1 << 20  # atoms at a time


def _clenshaw_curtis(pieces: int) -> Floats:
    """Return the weights of the rule on [0, 1] at (1 - cos(pi j / pieces)) / 2."""
    orders = np.arange(pieces + 1)
    moments = np.where(orders % 2, 0.0, 1.0 / (1.0 - orders.astype(float) ** 2 + (orders == 1)))
    return np.linalg.solve(np.cos(np.pi * np.outer(orders, orders) / pieces), moments)


_NODES = 0.5 * (1.0 - np.cos(np.pi * np.arange(17) / 16))
_FINE, _COARSE = _clenshaw_curtis(16), _clenshaw_curtis(8)
_FEW = 100  # draws whose common quantile is where all start
_EXACT = 1e-10  # of the bracket, or of what the start tells of the scale
_SECANTS = 12
_MOST = 200


# What is wanted of each column, and what of it cannot be


@dataclass(frozen=True)
class Wanted:
    """What is wanted of one column.

    Parameters
    ----------
    quantiles, tails, cdf : tuple of float
        Levels of the quantiles, and the points of Pr(Y > t) and Pr(Y <= t).
    gini : tuple of float or None
        Public bounds lo >= 0 and hi to which records are cut for the Gini coefficient; None for none.
    """

    quantiles: tuple[float, ...] = ()
    tails: tuple[float, ...] = ()
    cdf: tuple[float, ...] = ()
    gini: tuple[float, float] | None = None

    def labels(self, column: FittedColumn) -> list[str]:
        """Names of the quantities, in their order: `quantile[0.5]`, `tail[20]`, `tail[height,20]`."""
        prefix = f"{column.name}," if column.name else ""
        parts = (("quantile", self.quantiles), ("tail", self.tails), ("cdf", self.cdf))
        found = [f"{kind}[{prefix}{entry}]" for kind, points in parts for entry in figures(points)]
        return found if self.gini is None else [*found, column.label("gini")]


def wanted_of(chains: Chains, columns: Sequence[FittedColumn], options: SummarySpec) -> list[Wanted]:
    """Return what is wanted of each column of a mixture.

    Raises
    ------
    SpecError
        When points are of no column, or of one without saying of which of several; when a Gini coefficient is
        asked for where public bounds admit negative values, or are not known.
    """
    names, dated = [column.name for column in columns], dated_of(chains)
    only = data_columns(chains) if len(names) == 1 else ()
    tails = _by_column("summary.tails", options.tails, names, only)
    points = _by_column("summary.cdf", options.cdf, names, only)
    found = []
    for number, (above, below) in enumerate(zip(tails, points, strict=True)):
        bounds = None
        dated.check(names[number], {"tails": above, "cdf": below})
        if options.gini:
            bounds = public_bounds(chains, number, len(names))
            shown = names[number] or chains.columns[0]
            if bounds is None:
                raise SpecError(f"summary.gini: the public bounds of {shown} are not known; leave it out")
            if bounds[0] < 0.0:
                raise SpecError(
                    f"summary.gini: the public bounds [{', '.join(figures(bounds))}] of {shown} admit "
                    "negative values, of which there is no Gini coefficient; leave it out"
                )
        found.append(Wanted(options.levels, above, below, bounds))
    return found


def _by_column(key: str, given: object, names: Sequence[str], only: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the points of each column, in increasing order; a list, or a name of `only`, is of the one."""
    if given is None:
        return [()] * len(names)
    if isinstance(given, Mapping):
        own = {"" if name in only and name not in names else name: points for name, points in given.items()}
        for name in own:
            if name not in names:
                known = ", ".join(name for name in (*names, *only) if name)
                right = f"it has {known}" if known else "give a list, as there is only one column"
                raise SpecError(f"{key}: there is no column {name!r}; {right}")
        return [tuple(sorted(set(own.get(name, ())))) for name in names]
    assert isinstance(given, tuple)  # the spec looks
    if len(names) > 1:
        raise SpecError(
            f"{key}: there are {len(names)} columns ({', '.join(names)}); give a mapping by name, such as "
            f"{{{names[0]}: [{given[0]:g}]}}"
        )
    return [tuple(sorted(set(given)))]


def check_quantities(chains: NamedChains, options: SummarySpec) -> None:
    """Refuse quantities of a parametric model's records that its chains do not hold.

    Raises
    ------
    SpecError
        Naming the first.
    """
    titles = {"tails": "tail", "cdf": "cdf", "quantiles": "quantile", "gini": "gini"}
    for key, title in titles.items():
        given = getattr(options, key)
        if given is None or given is False:
            continue
        held = [p for p in chains.parameters if p.title == title and p.role == "scalar"]
        if not held:
            model = chains.model
            known = any(p.title == "quantile" for p in chains.parameters)
            why = f"is for mixture and discrete, and these chains are of model {model}"
            if known:
                why = "these chains do not hold it; fit again with it in the spec"
            raise SpecError(f"summary.{key}: {why}")
        for parameter in held if title != "gini" else ():
            of_column = given.get(parameter.column, ()) if isinstance(given, Mapping) else given
            there = [float(point) for point in parameter.coords[parameter.dims[-1]]]
            missing = [point for point in of_column if point not in there]
            if missing:
                about = f" of {parameter.column}" if parameter.column else ""
                points = [type(missing[0])(point) for point in there]
                raise SpecError(
                    f"summary.{key}: {dates_or_figures(missing)[0]} is not among what these chains hold"
                    f"{about} ({', '.join(dates_or_figures(points))}); fit again with it in the spec"
                )


# How they are computed


def quantities(
    measures: Measures, column: FittedColumn, wanted: Wanted, known: Mapping[float, Floats] | None = None
) -> list[Floats]:
    """Return what is wanted of each draw, in the order of `Wanted.labels`; shapes (D,).

    Parameters
    ----------
    measures : Measures
        Draws of P, with the atoms of the column.
    column : Column
    wanted : Wanted
    known : mapping of float to float64 array (D,), optional
        Quantiles that need not be solved for.
    """
    family, known = column.family, known or {}
    found = [
        known[level] if level in known else quantiles(measures, family, level) for level in wanted.quantiles
    ]
    size = measures.counts.size
    found += [cdf(measures, family, np.full(size, t), upper=True) for t in wanted.tails]
    found += [cdf(measures, family, np.full(size, t)) for t in wanted.cdf]
    return found if wanted.gini is None else [*found, gini(measures, family, *wanted.gini)]


def cdf(measures: Measures, family: Family, y: Floats, *, upper: bool = False) -> Floats:
    """Return Pr(Y <= y), or Pr(Y > y), under each draw at its own y; shapes (D,)."""
    size = measures.counts.size
    owner = np.repeat(np.arange(size), measures.counts)
    each = measures.weights * family.cdf(measures.atoms, y[owner], upper=upper)
    out: Floats = np.bincount(owner, each, minlength=size).astype(np.float64)  # of no atoms: integers
    there = np.flatnonzero(measures.rest > 0.0)
    below = family.predictive_cdf(y[there])
    out[there] += measures.rest[there] * (1.0 - below if upper else below)
    return np.minimum(out, 1.0)


def outside(measures: Measures, family: Family, low: float, high: float) -> Floats:
    """Return Pr(Y < low) + Pr(Y > high) under each draw, of kernels with a density; shape (D,)."""
    size = measures.counts.size
    return cdf(measures, family, np.full(size, low)) + cdf(measures, family, np.full(size, high), upper=True)


def gini(measures: Measures, family: Family, low: float, high: float) -> Floats:
    """Return the Gini coefficient of max(low, min(Y, high)) under each draw, shape (D,); 0 where all are 0.

    With S the survival function of that, integral of S (1 - S) over integral of S from 0 on. Each draw has
    intervals of its own, from about its least to its greatest value within the bounds, which are halved until
    two nested Clenshaw-Curtis rules agree about both integrals, to a millionth of the first: a distribution
    may take a small part of the bounds.
    """
    size = measures.counts.size
    left = np.clip(_brackets(measures, family, _TAIL)[0], low, high)
    right = np.clip(_brackets(measures, family, 1.0 - _TAIL)[1], low, high)
    mean, spread_of = left.copy(), np.zeros(size)  # S is 1 from 0 to the left end
    owner = np.repeat(np.flatnonzero(left < right), _FIRST_EDGES.size - 1)
    starts = (left[:, None] + (right - left)[:, None] * _FIRST_EDGES)[left < right]
    a, b = starts[:, :-1].ravel(), starts[:, 1:].ravel()
    for turn in range(_HALVINGS):
        if not owner.size:
            break
        both = [_integrals(measures, family, *part) for part in _parts(measures, owner, a, b)]
        found, error = (np.concatenate(each) for each in zip(*both, strict=True))
        whole = spread_of + np.bincount(owner, found[:, 1], minlength=size)
        done = (error.max(axis=1) <= _AGREED * whole[owner]) | (turn == _HALVINGS - 1)
        mean += np.bincount(owner[done], found[done, 0], minlength=size)
        spread_of += np.bincount(owner[done], found[done, 1], minlength=size)
        middle = 0.5 * (a + b)[~done]
        owner = np.repeat(owner[~done], 2)
        a, b = np.column_stack((a[~done], middle)).ravel(), np.column_stack((middle, b[~done])).ravel()
    return np.divide(spread_of, mean, out=np.zeros(size), where=mean > 0.0)


def _parts(measures: Measures, owner: Ints, a: Floats, b: Floats) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Yield intervals of draws, so many at a time that their atoms have room."""
    place = np.cumsum(measures.counts[owner]) // _ROOM
    for cut in np.split(np.arange(owner.size), np.flatnonzero(np.diff(place)) + 1):
        yield owner[cut], a[cut], b[cut]


def _integrals(
    measures: Measures, family: Family, owner: Ints, a: Floats, b: Floats
) -> tuple[Floats, Floats]:
    """Return integrals of S and of S (1 - S) over intervals of draws, and their errors; shapes (m, 2)."""
    part = measures.repeated(owner)
    nodes = a[:, None] + (b - a)[:, None] * _NODES
    above = np.stack([cdf(part, family, y, upper=True) for y in nodes.T], axis=1)
    integrands = np.stack((above, above * (1.0 - above)), axis=1)
    fine, coarse = integrands @ _FINE, integrands[..., ::2] @ _COARSE
    width = (b - a)[:, None]
    return width * fine, width * np.abs(fine - coarse)


def quantiles(measures: Measures, family: Family, level: float) -> Floats:
    """Return x with Pr(Y <= x) = level under each draw, shape (D,)."""
    size = measures.counts.size
    low, high = _brackets(measures, family, level)
    start, slope = _start(measures, family, level)
    found = 0.5 * (low + high)
    active = np.flatnonzero(low < high)
    part = measures if active.size == size else measures.take(active)
    low, high = low[active], high[active]
    exact = _EXACT * (high - low)
    x = np.clip(start, low, high)
    gap = cdf(part, family, x) - level
    step = gap / slope
    for turn in range(_MOST):
        if not active.size:
            break
        low, high = np.where(gap < 0.0, x, low), np.where(gap > 0.0, x, high)
        new = x - step
        halved = ~((new > low) & (new < high)) | (turn >= _SECANTS)
        new = np.where(halved, 0.5 * (low + high), new)
        done = (np.abs(new - x) <= exact) | (high - low <= exact) | (gap == 0.0)
        if done.any():
            found[active[done]] = np.where(gap[done] == 0.0, x[done], new[done])
            left = ~done
            part = part.take(np.flatnonzero(left))
            active, low, high, exact = active[left], low[left], high[left], exact[left]
            x, new, gap = x[left], new[left], gap[left]
            if not active.size:
                break
        ahead = cdf(part, family, new) - level
        rise = (ahead - gap) / (new - x)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = ahead / rise  # infinite or not a number where F is flat: then halved
        x, gap = new, ahead
    found[active] = x[: active.size]
    return found


def _brackets(measures: Measures, family: Family, level: float) -> tuple[Floats, Floats]:
    """Return values between which the quantile of each draw lies, shapes (D,)."""
    size = measures.counts.size
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    stops = np.cumsum(measures.counts)
    full = np.flatnonzero(measures.counts)
    if full.size:
        least, most = family.quantile_bounds(measures.atoms, level)
        starts = stops[full] - measures.counts[full]
        low[full] = np.minimum.reduceat(least, starts)
        high[full] = np.maximum.reduceat(most, starts)
    more = measures.rest > 0.0
    if more.any():
        nodes = family.nodes()
        place = int(np.searchsorted(family.predictive_cdf(nodes), level))
        ends = nodes[[max(place - 1, 0), min(place + 1, nodes.size - 1)]]
        low[more], high[more] = np.minimum(low[more], ends[0]), np.maximum(high[more], ends[1])
    return low, high


def _start(measures: Measures, family: Family, level: float) -> tuple[float, float]:
    """Return the quantile of a few draws together, and the density there, which is positive."""
    few = measures.take(spread(measures.counts.size, _FEW))
    count = few.counts.size
    whole = Measures(
        np.array([few.weights.size]), few.weights / count, few.atoms, np.array([few.rest.sum() / count])
    )
    (low,), (high,) = _brackets(whole, family, level)
    width = high - low
    for _ in range(40):
        middle = 0.5 * (low + high)
        if cdf(whole, family, np.array([middle]))[0] < level:
            low = middle
        else:
            high = middle
    x, reach = 0.5 * (low + high), 1e-4 * width
    ends = cdf(whole, family, np.array([x - reach])), cdf(whole, family, np.array([x + reach]))
    rise = float((ends[1] - ends[0])[0])
    return x, rise / (2.0 * reach) if rise > 0.0 and reach > 0.0 else np.inf


# The share of records beyond the public bounds, and in few cells of a release


@dataclass(frozen=True)
class Beyond:
    """Shares of latent records beyond the public bounds.

    Parameters
    ----------
    shares : mapping of str to float
        By column, under "" where there is only one; of compositions, of the entries below the threshold, by
        component.
    bounds : mapping of str to pair or None
        The bounds of a mixture's columns, for its warning; empty for other models, which have their own.
    entries : bool
        Whether they are of entries of compositions, of which more is said elsewhere.
    by_prior : bool
        Whether how far beyond they lie is said by the prior alone, as records there count in cells at the
        ends.
    clamped : bool
        Whether records were cut to the bounds before noise on each, so that there are none beyond them.
    latent : mapping of str to pair of str
        Column and group of those that are predictors of a line in their values before clamping.
    """

    shares: Mapping[str, float]
    bounds: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    entries: bool = False
    by_prior: bool = False
    clamped: bool = False
    latent: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, account: OwnAccount) -> Beyond:
        """Return those that a model tells by itself."""
        return cls(account.beyond, entries=account.entries, latent=account.latent)

    @property
    def moved(self) -> list[str]:
        """The predictors too far beyond their bounds for a line in the table's, those of most first."""
        found = [name for name in self.latent if self.shares[name] > MOVED]
        return sorted(found, key=self.shares.__getitem__, reverse=True)

    def section(self) -> ResultSection:
        """Return what is reported of it."""
        names = list(self.shares)
        data = Each(
            by_name(self.shares), Table("column", names, [TableColumn("share", list(self.shares.values()))])
        )
        if self.entries:
            return ResultSection("beyond_bounds", data)
        listed = ", ".join(f"{name} {percent(share)}" for name, share in self.shares.items() if name)
        note = f"warned of above {percent(BEYOND)}"
        return ResultSection(
            "beyond_bounds",
            data,
            brief=[f"Latent records beyond the public bounds, under the fit: {listed}"] if listed else (),
            tiles=[
                Tile(
                    "Records beyond the public bounds",
                    percent(share),
                    f"under the fit{f', of {name}' if name else ''}; {note}",
                )
                for name, share in self.shares.items()
            ],
        )


PILED, STANDING_OUT = 0.1, 3.0
"""Share of records in a cell, and how many times those beside it, from which on they are said to pile up."""


def piled_up(share: float, beside: Sequence[float]) -> float:
    """Return the share of records in a cell where it stands out among the one or two beside it, else 0."""
    stands_out = share > PILED and share * len(beside) > STANDING_OUT * sum(beside)
    return share if stands_out and beside else 0.0


def most_piled(shares: Sequence[float]) -> float:
    """Return the largest share in a cell that stands out among those beside it, 0 where none does."""
    beside = ([*shares[max(i - 1, 0) : i], *shares[i + 1 : i + 2]] for i in range(len(shares)))
    return max(piled_up(*each) for each in zip(shares, beside, strict=True))


@dataclass(frozen=True)
class HiddenPile:
    """A narrow group of records under noise on each, which hardly tells them from records at one value.

    Parameters
    ----------
    share : float
        Posterior mean of the share of records within `reach` of `place`.
    place, reach : float
    scale : float
        Of the noise.
    """

    share: float
    place: float
    reach: float
    scale: float


_SHARES = (0.8, 0.65, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, PILED)
_OVERLAP = 1.2  # of the stretches of shares that go with these, as a reach moves the share within it
_PLACES = 2_000  # at which the distribution function is taken


def hidden_pile(
    low: float, high: float, below: Callable[[float], float], reach: Callable[[float], float], scale: float
) -> HiddenPile | None:
    """Return the largest group whose records lie so near to each other that noise hides how near; or None.

    Under the fit a share of `PILED` or more is within the reach of one place, and more than `STANDING_OUT`
    times as many as in as wide a stretch to either side, on average. The reach is that of such a share.

    Parameters
    ----------
    low, high : float
        Where to look.
    below : callable
        The distribution function under the fit.
    reach : callable
        Up to which sd noise hides that a group of a given share is not at one value.
    scale : float
        Of the noise.
    """
    grid = np.linspace(low, high, _PLACES)
    known = np.array([below(place) for place in grid.tolist()])
    for share, next_larger in zip(_SHARES, (1.0, *_SHARES), strict=False):
        width = reach(share)
        if not 2.0 * (grid[1] - grid[0]) < width < 0.5 * (high - low):
            continue
        outer, inner, after, last = (np.interp(grid + far * width, grid, known) for far in (-3, -1, 1, 3))
        within, beside = after - inner, 0.5 * (inner - outer + last - after)
        piled = (within >= share) & (within <= _OVERLAP * next_larger) & (within > STANDING_OUT * beside)
        if piled.any():
            best = int(np.argmax(np.where(piled, within - beside, -1.0)))
            place = float(np.interp(inner[best] + 0.5 * within[best], known, grid))  # the median there
            there = float(np.interp(place + width, grid, known) - np.interp(place - width, grid, known))
            return HiddenPile(there, place, width, scale)
    return None


@dataclass(frozen=True)
class CellShares:
    """What a release of cells leaves open, where most records are in few of them: where in these they are.

    Parameters
    ----------
    outer, fullest, piled : mapping of str to float
        Posterior mean of the share of records in the first and last cells, or beyond; in the cell that has
        most; and in the one that has most of those that stand out among the cells beside them, 0 where none
        does. By group; under "" where there is only one.
    """

    outer: Mapping[str, float]
    fullest: Mapping[str, float]
    piled: Mapping[str, float]

    def section(self) -> ResultSection:
        """Return what is reported of it; its words are those of the verdict."""
        columns = [TableColumn(key, list(shares.values())) for key, shares in vars(self).items()]
        each = {name: {key: shares[name] for key, shares in vars(self).items()} for name in self.outer}
        return ResultSection("cell_shares", Each(by_name(each), Table("group", list(self.outer), columns)))
