"""The laws that simulated records come from: what estimates are compared with."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpmix import simulate

__all__ = ["TrueDistribution", "density", "known_parameters", "truth_of"]

Floats = NDArray[np.float64]

_POINTS = 40_001
_DYADIC_POINTS = 400  # the rest has probability 0.9^400
_NAMED = re.compile(r"^(quantile|tail)\[([^\],]+)\]$")


@dataclass(frozen=True)
class TrueDistribution:
    """The distribution of a simulated record of one column.

    Parameters
    ----------
    name : str
        As `data.simulate`.
    at : float64 array (points,)
        Increasing places: of a fine grid, or those that have a probability.
    mass : float64 array (points,)
        Their probabilities, of a density those of cells around them.
    continuous : bool
        Whether there is a density.
    """

    name: str
    at: Floats
    mass: Floats
    continuous: bool

    @property
    def mean(self) -> float:
        """Mean of a record."""
        return float((self.at * self.mass).sum())  # BLAS rounds by its number of threads

    @property
    def sd(self) -> float:
        """Standard deviation of a record."""
        return math.sqrt(float(((self.at - self.mean) ** 2 * self.mass).sum()))

    def cdf(self, x: Floats) -> Floats:
        """Return the distribution function at `x` (g,)."""
        total = np.concatenate([[0.0], np.cumsum(self.mass)])
        if not self.continuous:
            return np.asarray(total[np.searchsorted(self.at, x, side="right")])
        middle = 0.5 * (self.at[1:] + self.at[:-1])
        edges = np.concatenate([self.at[:1], middle, self.at[-1:]])
        return np.asarray(np.interp(x, edges, total, left=0.0, right=1.0))

    def scalar(self, name: str) -> float | None:
        """Return what a summary's scalar of this name truly is; None where that is no matter of the law."""
        if name in ("mean", "sd"):
            return self.mean if name == "mean" else self.sd
        found = _NAMED.match(name)
        if found is None:
            return None
        kind, number = found[1], float(found[2])
        if kind == "tail":
            return float(1.0 - self.cdf(np.array([number]))[0])
        place = int(np.searchsorted(np.cumsum(self.mass), number))
        return float(self.at[min(place, len(self.at) - 1)])


def density(name: str, x: Floats) -> Floats:
    """Return the density of a simulation of `dpmix.simulate` at `x` (g,), zero outside its bounds.

    Raises
    ------
    ValueError
        When there is no such simulation, or it has no density.
    """
    if name == "three_betas":
        return np.asarray(np.mean([stats.beta.pdf(x, a, b) for a, b in simulate.THREE_BETAS], axis=0))
    if name == "three_gaussians":
        parts = [(mean, 1.0) for mean in simulate.THREE_GAUSSIANS_MEANS]
        weights, (low, high) = np.full(3, 1.0 / 3.0), simulate.THREE_GAUSSIANS_DOMAIN
    elif name == "waiting_times":
        parts, weights = list(simulate.WAITING_TIMES), np.array(simulate.WAITING_TIMES_WEIGHTS)
        low, high = simulate.WAITING_TIMES_DOMAIN
    else:
        raise ValueError(f"no density of {name!r}")
    laws = [stats.norm(mean, sd) for mean, sd in parts]
    mass = sum(w * (law.cdf(high) - law.cdf(low)) for w, law in zip(weights, laws, strict=True))
    values = sum(w * law.pdf(x) for w, law in zip(weights, laws, strict=True)) / mass
    return np.where((x >= low) & (x <= high), values, 0.0)


_BOUNDS = {
    "three_betas": (0.0, 1.0),
    "three_gaussians": simulate.THREE_GAUSSIANS_DOMAIN,
    "waiting_times": simulate.WAITING_TIMES_DOMAIN,
}


def truth_of(name: str) -> TrueDistribution | None:
    """Return the law of a simulation of one column, None of the others."""
    if name in _BOUNDS:
        at = np.linspace(*_BOUNDS[name], _POINTS)
        mass = density(name, at)
        mass[[0, -1]] *= 0.5
        return TrueDistribution(name, at, mass / mass.sum(), True)
    if name == "beta_grid":
        return TrueDistribution(name, *simulate.beta_grid_law(), False)
    if name == "dyadic_geometric":
        k = np.arange(1, _DYADIC_POINTS + 1)
        level = np.floor(np.log2(k))
        at = np.asarray((2 * (k - 2**level) + 1) / 2 ** (level + 1), dtype=np.float64)
        mass = np.asarray(simulate.DYADIC_SUCCESS * (1.0 - simulate.DYADIC_SUCCESS) ** (k - 1.0))
        order = np.argsort(at)
        return TrueDistribution(name, at[order], mass[order] / mass.sum(), False)
    return None


def known_parameters(name: str) -> dict[str, Floats]:
    """Return what the parameters of a parametric model truly are, by name, in the shape of a draw."""
    if name == "naive_bayes":
        shares, levels = simulate.five_classes_law()
        return {"p": shares} | {f"p_feature_{k + 1}": levels[k] for k in range(len(levels))}
    if name == "linear_regression":
        x_mean = np.array(simulate.REGRESSION_X)
        return {
            "beta": np.array(simulate.REGRESSION_BETA),
            "sigma2": np.array(simulate.REGRESSION_VARIANCE),
            "x_mean": x_mean,
            "x_cov": np.eye(len(x_mean)),
        }
    return {}
