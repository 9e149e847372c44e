"""The summary of a released posterior, as data and as a tree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

__all__ = ["Accounted", "Expected", "PosteriorSummary", "Share"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Accounted:
    """One category's probability given the release, its mechanism accounted for, from independent draws.

    Parameters
    ----------
    mean, sd, lower, upper : float
        Of its posterior.
    density : ndarray (points,)
        On the grid of the share.
    """

    mean: float
    sd: float
    lower: float
    upper: float
    density: Floats = field(repr=False)


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
        distance = (
            f"Hellinger distance of the released posterior from its prior: {self.hellinger_from_prior:.3g}"
        )
        tiles = [
            Tile("Records", f"{self.n:,}", f"{len(names)} categories"),
            Tile(
                "Hellinger distance from the prior",
                f"{self.hellinger_from_prior:.2f}",
                "0 where nothing is said",
            ),
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
            ResultSection("hellinger_from_prior", self.hellinger_from_prior, tiles=tiles),
            self._errors(distance),
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
        shown, held = "text page", "json hdf5"
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
            TableColumn(
                "", [_interval(s) for s in shares], f"{100 * self.level:g}% interval", str, where=shown
            ),
            TableColumn("accounted", accounted, where="json"),
            *(
                TableColumn(
                    f"accounted_{name}", [None if a is None else a[name] for a in accounted], where="hdf5"
                )
                for name in names
            ),
        ]
        if None not in own:
            means = [a.mean for a in own if a is not None]
            intervals = [_interval(a) for a in own if a is not None]
            columns += [
                TableColumn("", intervals, "mechanism accounted for", str, where="text"),
                TableColumn("", means, "mean, accounted", where="page"),
                TableColumn("", intervals, "interval, accounted", str, where="page"),
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

    def _errors(self, distance: str) -> ResultSection:
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
            text=[[distance, title, *found]],
            page=[what, Items(items)],
            tiles=tiles,
            parts=[ResultSection("expected_hellinger/curve")],
        )


def _interval(found: Share | Accounted) -> str:
    return f"{found.lower:.4g} to {found.upper:.4g}"


def _precision(error: Expected) -> str:
    return f"Monte Carlo error {error.mcse:.1g}" if error.mcse > 1e-9 * error.mean else "exact"
