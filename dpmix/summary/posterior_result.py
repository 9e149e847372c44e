"""The summary of a released posterior, as data, text and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.summary.result import WIDTH, figure

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


@dataclass(frozen=True)
class PosteriorSummary:
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

    def to_json(self) -> dict[str, Any]:
        """Return the summary as lists, dicts and numbers that strict JSON can hold (None for no value)."""
        parameters = {
            f"p[{share.name}]": {
                "mean": share.mean,
                "sd": share.sd,
                "lower": share.lower,
                "upper": share.upper,
                "prior_mean": share.prior_mean,
                "accounted": None
                if share.accounted is None
                else {key: float(getattr(share.accounted, key)) for key in ("mean", "sd", "lower", "upper")},
            }
            for share in self.shares
        }
        density = {
            share.name: {
                "grid": share.grid.tolist(),
                "mean": share.density.tolist(),
                "prior": share.prior_density.tolist(),
                "accounted": None if share.accounted is None else share.accounted.density.tolist(),
            }
            for share in self.shares
        }
        errors = {
            key: {"mean": error.mean, "mcse": error.mcse}
            for key, error in zip(("at_release", "prior", "of_release"), self.errors, strict=False)
        }
        if self.curve is not None:
            errors["curve"] = {"share": self.curve[0].tolist(), "mean": self.curve[1].tolist()}
        return {
            "kind": "posterior",
            "n": self.n,
            "categories": [share.name for share in self.shares],
            "prior": self.prior.tolist(),
            "posterior": self.posterior.tolist(),
            "level": self.level,
            "parameters": parameters,
            "density": density,
            "hellinger_from_prior": self.hellinger_from_prior,
            "expected_hellinger": errors,
            "mechanism": dict(self.mechanism),
            **{key: self.attrs[key] for key in ("epsilon", "delta", "rho", "private", "simulated")},
            "warnings": list(self.warnings),
        }

    def to_text(self) -> str:
        """Return the headline figures as text for a terminal, in at most 96 columns."""
        percent = f"{100 * self.level:g}%"
        accounted = all(share.accounted is not None for share in self.shares)
        header = ["", "prior mean", "parameter", "mean", "sd", f"{percent} interval"]
        rows = [[*header, "mechanism accounted for"] if accounted else header]
        for share, parameter in zip(self.shares, self.posterior, strict=True):
            row = [f"p[{share.name}]", *map(figure, (share.prior_mean, parameter, share.mean, share.sd))]
            row.append(f"{share.lower:.4g} to {share.upper:.4g}")
            if share.accounted is not None:
                row.append(f"{share.accounted.lower:.4g} to {share.accounted.upper:.4g}")
            rows.append(row)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]
        lines += [
            "",
            f"Hellinger distance of the released posterior from its prior: {self.hellinger_from_prior:.3g}",
        ]
        lines.append("Expected Hellinger distance of a released posterior from the true one:")
        lines += [f"  {error.mean:.3g} {error.about}" for error in self.errors]
        lines += ["", *textwrap.wrap(self.guarantee, WIDTH)]
        if self.warnings:
            lines += ["", "Warnings:"]
            for text in self.warnings:
                lines += textwrap.wrap(f"- {text}", WIDTH, subsequent_indent="  ")
        return "\n".join(lines)
