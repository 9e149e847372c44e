"""The summary of a released posterior beside its prior: intervals, and how far it is from the true one.

Everything is computed from the release and the public description of its mechanism.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpmix.laws.every import expect
from dpmix.mechanisms.posterior.law import PosteriorLaw
from dpmix.models.multinomial.model import Multinomial
from dpmix.numerics.in_words import permits_verbatim
from dpmix.posteriors.hellinger_law import folded, row_of_two
from dpmix.posteriors.simulated_draws import distances, errors_of, settled, tables_of
from dpmix.results.nodes import (
    Array,
    Each,
    Facts,
    Items,
    Note,
    ResultSection,
    Table,
    TableColumn,
    Tile,
    Tree,
    warnings_section,
)
from dpmix.results.result import Result
from dpmix.summary.subject import done_and_guaranteed, is_private

if TYPE_CHECKING:
    from dpmix.models.multinomial.release_law import KnownRelease
    from dpmix.release.sanitized import Release

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Accounted:
    """One category's probability given the release, its mechanism accounted for, from independent draws.

    Parameters
    ----------
    mean, sd, lower, upper : float
        Of its posterior.
    beyond : float
        Probability that it lies beyond the grid of the share.
    density : ndarray (points,)
        On the grid of the share.
    """

    mean: float
    sd: float
    lower: float
    upper: float
    beyond: float
    density: Floats = field(repr=False)

    @property
    def left_out(self) -> str | None:
        """The probability beyond the grid in words, where it is worth telling."""
        return f"{100 * self.beyond:.1f}%" if self.beyond > _TOLD else None


@dataclass(frozen=True)
class Share:
    """One category's probability under the released posterior.

    Parameters
    ----------
    name : str
        The category.
    mean, sd, lower, upper : float
        Of the released posterior, with its equal-tailed interval.
    prior_mean : float
        Of the prior.
    grid, density, prior_density : ndarray (points,)
        Densities of the released posterior and of the prior, about where the former lies.
    accounted : Accounted or None
        With the mechanism accounted for; None where that takes a fit.
    """

    name: str
    mean: float
    sd: float
    lower: float
    upper: float
    prior_mean: float
    grid: Floats = field(repr=False)
    density: Floats = field(repr=False)
    prior_density: Floats = field(repr=False)
    accounted: Accounted | None = None


@dataclass(frozen=True)
class Expected:
    """An expected Hellinger distance between released and true posterior, with its Monte Carlo error."""

    about: str
    mean: float
    mcse: float


@dataclass(frozen=True, repr=False)
class PosteriorSummary(Result):
    """A released posterior, summarized.

    Parameters
    ----------
    shares : tuple of Share
        By category.
    prior, posterior : ndarray (d,)
        Parameters.
    n : int
        Number of confidential records.
    level : float
        Posterior probability of the intervals.
    hellinger_from_prior : float
        Hellinger distance of the released posterior from its prior.
    errors : list of Expected
        Expected Hellinger distance from the true posterior, for some truths.
    curve : (ndarray, ndarray) or None
        Shares of the first of two categories, and the expected distance where they are true.
    mechanism : mapping
        The release's.
    attrs : mapping
        `epsilon`, `delta`, `rho`, `private` and `simulated`.
    guarantee : str
        In words.
    warnings : tuple of str
        In words.
    made : str
        Version and date of the release.
    """

    shares: tuple[Share, ...]
    prior: Floats
    posterior: Floats
    n: int
    level: float
    hellinger_from_prior: float
    errors: list[Expected]
    curve: tuple[Floats, Floats] | None
    mechanism: Mapping[str, Any]
    attrs: Mapping[str, Any]
    guarantee: str
    warnings: tuple[str, ...]
    made: str

    @property
    def counts(self) -> Floats:
        """Counts of the released posterior, shape (d,)."""
        found: Floats = self.posterior - self.prior
        return found

    @cached_property
    def tree(self) -> Tree:
        """The summary; HDF5 has the parameters over `category`, densities over `category` and `point`.

        Figures with the mechanism accounted for begin with `accounted_` there, NaN where that takes a fit.
        """
        names = [share.name for share in self.shares]
        described = {k: v for k, v in self.mechanism.items() if v not in (None, [])}
        distance = self.hellinger_from_prior
        tiles = [
            Tile("Records", f"{self.n:,}", f"{len(names)} categories"),
            Tile("Hellinger distance from the prior", f"{distance:.2f}", "0 where nothing is said"),
        ]
        table = self._table()
        note = "Prior and posterior are the parameters of the beta or Dirichlet laws."
        if any(share.accounted is None for share in self.shares):
            note += " With so many possible counts, accounting for the mechanism takes dpmix fit."
        attrs = {key: self.attrs[key] for key in ("epsilon", "delta", "rho", "private", "simulated")}
        sections = (
            ResultSection("kind", "posterior"),
            ResultSection("n", self.n),
            ResultSection("categories", Each(names)),
            ResultSection("prior", Each(self.prior)),
            ResultSection("posterior", Each(self.posterior)),
            ResultSection("level", self.level),
            ResultSection(
                "parameters", Each(table, {"": table}), "Intervals", text=[[table]], page=[table, Note(note)]
            ),
            ResultSection("density", self._densities(names), "Probabilities of the categories"),
            ResultSection("hellinger_from_prior", distance, tiles=tiles),
            self._errors(),
            ResultSection("mechanism", Each(dict(self.mechanism))),
            *(ResultSection(key, Each(value)) for key, value in attrs.items()),
            warnings_section(self.warnings),
            ResultSection(
                "provenance",
                title="Provenance",
                page=[Facts({"Release": self.made, "Mechanism": json.dumps(described)})],
            ),
        )
        heading = "A released posterior"
        return Tree(heading, heading, self.guarantee, sections, self.warnings, page_order=["density"])

    def _table(self) -> Table:
        shares = self.shares
        held = "json hdf5"
        names = ("mean", "sd", "lower", "upper")
        own = [share.accounted for share in shares]
        accounted = [None if a is None else {n: float(getattr(a, n)) for n in names} for a in own]

        def of(key: str) -> list[float]:
            return [getattr(share, key) for share in shares]

        columns = [
            TableColumn("prior_mean", of("prior_mean"), "prior mean", where="json hdf5 text"),
            TableColumn("prior", self.prior.tolist(), "prior", where="hdf5 page"),
            TableColumn("", self.posterior.tolist(), "parameter", where="text"),
            TableColumn("posterior", self.posterior.tolist(), "posterior", where="hdf5 page"),
            TableColumn("mean", of("mean"), "mean"),
            TableColumn("sd", of("sd"), "sd"),
            TableColumn("lower", of("lower"), where=held),
            TableColumn("upper", of("upper"), where=held),
            TableColumn.of_words([_interval(share) for share in shares], f"{100 * self.level:g}% interval"),
            TableColumn("accounted", accounted, where="json"),
            *(
                TableColumn(
                    f"accounted_{name}", [None if a is None else a[name] for a in accounted], where="hdf5"
                )
                for name in names
            ),
        ]
        if None not in own:
            means, sds = ([getattr(a, key) for a in own if a is not None] for key in ("mean", "sd"))
            intervals = [_interval(a) for a in own if a is not None]
            columns += [
                TableColumn.of_words(intervals, "mechanism accounted for", "text"),
                TableColumn("", means, "mean, accounted", where="page"),
                TableColumn("", sds, "sd, accounted", where="page"),
                TableColumn.of_words(intervals, "interval, accounted", "page"),
            ]
        rows = [f"p[{share.name}]" for share in shares]
        column = str(self.mechanism.get("column") or "")
        named = [f"p[{column} = {share.name}]" for share in shares] if column else None
        return Table("category", rows, columns, coordinate=[share.name for share in shares], shown=named)

    def _densities(self, names: list[str]) -> Each:
        curves: dict[str, list[Floats | None]] = {
            "grid": [share.grid for share in self.shares],
            "mean": [share.density for share in self.shares],
            "prior": [share.prior_density for share in self.shares],
            "accounted": [None if s.accounted is None else s.accounted.density for s in self.shares],
        }
        by_share = {
            name: {key: found[place] for key, found in curves.items()} for place, name in enumerate(names)
        }
        unknown = np.full(self.shares[0].grid.size, np.nan)
        filled = {k: np.stack([unknown if x is None else x for x in found]) for k, found in curves.items()}
        held = {key: Array(("category", "point"), values) for key, values in filled.items()}
        return Each(by_share, {"category": Array(("category",), names), **held})

    def _errors(self) -> ResultSection:
        apart = (
            f"Hellinger distance of the released posterior from its prior: {self.hellinger_from_prior:.3g}"
        )
        data: dict[str, Any] = {}
        for key, error in zip(("at_release", "prior", "of_release"), self.errors, strict=False):
            data[key] = Each({"mean": error.mean, "mcse": error.mcse}, error.mean)
            data[f"{key}_mcse"] = Each(hdf5=error.mcse)
        if self.curve is not None:
            share, mean = self.curve
            data["share"] = Each(hdf5=Array(("share",), share))
            data["curve"] = Each({"share": share, "mean": mean}, Array(("share",), mean))
        title = "Expected Hellinger distance of a released posterior from the true one:"
        found = [f"  {error.mean:.3g} {error.about}" for error in self.errors]
        items = [f"{error.mean:.3g} ({_precision(error)}) {error.about}" for error in self.errors]
        what = (
            "Expected Hellinger distance between a released posterior and the true one, from 0 (equal) to 1, "
            "by sums over outcomes of the mechanism, or by simulating it, from public quantities alone:"
        )
        tiles = [Tile("Expected Hellinger error", f"{error.mean:.3g}", error.about) for error in self.errors]
        return ResultSection(
            "expected_hellinger",
            data,
            "Expected error",
            text=[[apart, title, *found]],
            page=[what, Items(items)],
            tiles=tiles,
            parts=[ResultSection("expected_hellinger/curve")],
        )


def _interval(found: Share | Accounted) -> str:
    return f"{found.lower:.4g} to {found.upper:.4g}"


def _precision(error: Expected) -> str:
    return f"Monte Carlo error {error.mcse:.1g}" if error.mcse > 1e-9 * error.mean else "exact"


# What it is made of


Integers = NDArray[np.int64]

SIMULATIONS = 1000
_DRAWS = 4000
_POINTS = 201
_TOLD = 0.005  # probability beyond a picture that is told
_PLACES = 41
_EVERY = 2000  # records
_FAR = 1e-4


def summarize_posterior(release: Release, level: float = 0.95) -> PosteriorSummary:
    """Summarize a released posterior.

    The same release always gives the same summary: simulations are seeded by its values.

    Parameters
    ----------
    release : Release
        Of kind ``posterior``.
    level : float
        Posterior probability of the intervals.

    Raises
    ------
    DataError
        When the law of the release cannot be computed.
    """
    mechanism, n = release.mechanism, release.n
    model = Multinomial(release)
    known, prior = model.known, model.known.prior
    posterior = release.values[:, 0]
    names = [str(name) for name in model.coords["category"]]
    text = json.dumps(
        [posterior.tolist(), {k: v for k, v in mechanism.stated().items() if k != "granularity"}]
    )
    rng = np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))
    drawn = _accounted_draws(model, rng)
    tails = np.array([0.5 * (1 - level), 0.5 * (1 + level)])
    shares = [_share(name, i, prior, posterior, drawn, tails) for i, name in enumerate(names)]
    attrs = {key: getattr(release, key) for key in ("epsilon", "delta", "rho", "private", "simulated")}
    words = {key: math.nan if value is None else float(value) for key, value in attrs.items()}
    return PosteriorSummary(
        shares=tuple(shares),
        prior=prior,
        posterior=posterior,
        n=n,
        level=level,
        hellinger_from_prior=dirichlet_distance(prior, posterior),
        errors=_errors(known, drawn, rng),
        curve=_curve(known, rng),
        mechanism=mechanism.stated(),
        attrs=attrs,
        guarantee=done_and_guaranteed({**words, "adjacency": release.adjacency}, mechanism, n),
        warnings=(*_warnings(release, words), *_beyond(shares, str(mechanism.get("column") or ""))),
        made=f"dpmix {release.dpmix_version}, {release.created_at}",
    )


def dirichlet_distance(a: Floats, b: Floats) -> float:
    """Return the Hellinger distance of two Dirichlet laws with parameters (d,)."""
    return float(distances(a[None], b[None])[0])


def expected_errors(known: KnownRelease, rows: Integers, rng: np.random.Generator) -> Floats:
    """Return the Hellinger distance of what would be released from the true posterior, for true counts.

    Of two categories under method hellinger it is its expectation, from all weights; else one draw for each
    row, the distance of which has that expectation.

    Parameters
    ----------
    known : Known
        Of the release.
    rows : ndarray of int64, shape (k, d)
        True counts.
    rng : Generator

    Returns
    -------
    ndarray, shape (k,)
    """
    law, n = known.law, known.n
    if law is None:
        size = 1 if rows.shape[1] == 2 else rows.shape[1]
        if known.noise == "geometric":
            both = rng.geometric(-math.expm1(-1 / known.scale), (2, len(rows), size))
            noise = (both[0] - both[1]).astype(np.float64)
        else:
            noise = rng.laplace(0.0, known.scale, (len(rows), size))
        chosen = settled(rows[:, :size] + noise, n)
        return distances(known.prior + rows, known.prior + chosen)
    if rows.shape[1] > 2:
        return errors_of(tables_of(law), np.ascontiguousarray(rows), rng)
    table, unit, scratch = folded(law.posteriors), law.posteriors.unit, np.empty(n + 1)
    rates, once = law.rates, {}
    for c in np.unique(rows[:, 0]).tolist():
        once[c] = row_of_two(table, unit, c, rates[c], law.top, scratch)[4]
    return np.array([once[c] for c in rows[:, 0].tolist()])


def _errors(
    known: KnownRelease, drawn: tuple[Integers, Floats] | None, rng: np.random.Generator
) -> list[Expected]:
    """Return expected errors where the truth is the released counts, and where it is drawn from the prior."""
    nearest = _whole(known.released, known.n)
    rows = np.repeat(nearest[None], SIMULATIONS, axis=0)
    found = [_expected("at the released counts", expected_errors(known, rows, rng))]
    if _has_every(known):
        rows = _of_two(np.arange(known.n + 1), known.n)
        weights = stats.betabinom(known.n, *known.prior).pmf(rows[:, 0])
        mean = float(weights @ expected_errors(known, rows, rng))
        found.append(Expected("averaged over the prior", mean, 0.0))
    else:
        rows = np.array([rng.multinomial(known.n, rng.dirichlet(known.prior)) for _ in range(SIMULATIONS)])
        found.append(_expected("averaged over the prior", expected_errors(known, rows, rng)))
    if drawn is not None:
        own = known.prior + drawn[0]
        released = np.broadcast_to(known.prior + known.released, own.shape)
        found.append(_expected("of this release, given what it says", distances(own, released)))
    return found


def _expected(about: str, errors: Floats) -> Expected:
    return Expected(about, float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(errors.size)))


def _curve(known: KnownRelease, rng: np.random.Generator) -> tuple[Floats, Floats] | None:
    """Return shares of the first of two categories, and the expected error where they are true."""
    if known.prior.size > 2:
        return None
    places = known.n + 1 if _has_every(known) else _PLACES
    first = np.unique(np.rint(np.linspace(0.0, 1.0, places) * known.n).astype(np.int64))
    repeats = 1 if known.law is not None else SIMULATIONS
    rows = np.repeat(_of_two(first, known.n), repeats, axis=0)
    errors = expected_errors(known, rows, rng).reshape(first.size, repeats).mean(axis=1)
    return first / known.n, errors


def _has_every(known: KnownRelease) -> bool:
    """Whether the expected error is known for every true count, and they are few enough to ask for all."""
    return known.law is not None and known.prior.size == 2 and known.n <= _EVERY


def _of_two(first: Integers, n: int) -> Integers:
    """Return counts of two categories, of which those of the first are given."""
    return np.stack([first, n - first], axis=1)


def _whole(counts: Floats, n: int) -> Integers:
    """Return whole counts that sum to n, by largest remainders."""
    found = np.floor(counts + 1e-9).astype(np.int64)
    order = np.argsort(-(counts - found), kind="stable")
    found[order[: n - int(found.sum())]] += 1
    return found


def _accounted_draws(model: Multinomial, rng: np.random.Generator) -> tuple[Integers, Floats] | None:
    """Return counts and probabilities (draws, d) given the mechanism, where draws are independent."""
    if model.listed is None:
        return None
    counts = np.array([model.listed.draw(rng)[0] for _ in range(_DRAWS)])
    return counts, np.array([rng.dirichlet(row) for row in model.prior + counts])


def _share(
    name: str,
    i: int,
    prior: Floats,
    posterior: Floats,
    drawn: tuple[Integers, Floats] | None,
    tails: Floats,
) -> Share:
    """Return the marginal beta laws of one probability, released and prior, and what accounting gives."""
    released = stats.beta(posterior[i], posterior.sum() - posterior[i])
    before = stats.beta(prior[i], prior.sum() - prior[i])
    ends = [released.ppf(_FAR), released.ppf(1 - _FAR)]
    accounted = None
    if drawn is not None:
        counts, p = drawn
        ends += np.quantile(p[:, i], [0.02, 0.98]).tolist()
    low, high = max(min(ends), 1e-9), min(max(ends), 1 - 1e-9)
    grid = np.linspace(low, high, _POINTS)
    if drawn is not None:
        after = prior + counts
        own, times = np.unique(after[:, i], return_counts=True)
        laws = stats.beta(own[:, None], (after[0].sum() - own)[:, None])
        density = times @ laws.pdf(grid) / times.sum()
        lower, upper = np.quantile(p[:, i], tails)
        beyond = float(times @ (laws.cdf(low) + laws.sf(high))[:, 0] / times.sum())
        accounted = Accounted(float(p[:, i].mean()), float(p[:, i].std()), lower, upper, beyond, density)
    lower, upper = released.ppf(tails)
    return Share(
        name=name,
        mean=float(released.mean()),
        sd=float(released.std()),
        lower=float(lower),
        upper=float(upper),
        prior_mean=float(before.mean()),
        grid=grid,
        density=released.pdf(grid),
        prior_density=before.pdf(grid),
        accounted=accounted,
    )


def _beyond(shares: Sequence[Share], column: str) -> list[str]:
    """Say of the category of which most lies beyond its picture how much, the mechanism accounted for.

    An exponential mechanism releases any outcome, however far, with a small probability each: there may be
    many of them.
    """
    known = [(share.accounted.beyond, share) for share in shares if share.accounted is not None]
    if not known:
        return []
    _, share = max(known, key=lambda each: each[0])
    if share.accounted is None or share.accounted.left_out is None:
        return []
    name = f"p[{column} = {share.name}]" if column else f"p[{share.name}]"
    return [
        f"With the mechanism accounted for, {share.accounted.left_out} of the probability of {name} lies "
        f"below {share.grid[0]:.3g} or above {share.grid[-1]:.3g}, where its picture ends: its standard "
        f"deviation is {share.accounted.sd:.2g}, not {share.sd:.2g}."
    ]


def _warnings(release: Release, attrs: dict[str, float]) -> list[str]:
    found = []
    if release.simulated:
        found.append("The release comes from simulated data: it protects nobody and describes nobody.")
    elif not is_private(attrs):
        found.append("The release is marked as not private: its noise can be reproduced.")
    weak = permits_verbatim(release.delta, release.n)
    if weak:
        found.append(f"{weak}.")
    words = release.mechanism.unproved
    if words is not None and expect(release.mechanism, PosteriorLaw).certificate is None:
        found.append(
            f"T{words[1:]}: it has been checked by enumeration alone. A release by calibration: certified or "
            "proved is."
        )
    return found
