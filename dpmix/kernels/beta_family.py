"""Beta kernels on a domain, with independent gamma priors on both shapes.

A record y on [lo, lo + width] has u = (y - lo) / width ~ Beta(a, b). Everything is computed from log u and
log(1 - u), so that nothing is lost near the ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import special

from dpmix.kernels.layout import Floats, Layout

_LEAST = 1e-10
_CHUNK = 1 << 20
_FARTHEST = 1e8
_POINTS = 1600
_RULE = 100
_KEPT = 64


@dataclass(frozen=True)
class BetaGamma:
    """Kernel Beta(a, b) on [lo, lo + width], a ~ Gamma(a_shape, a_rate), b ~ Gamma(b_shape, b_rate).

    Parameters
    ----------
    a_shape, a_rate, b_shape, b_rate : float
        Of the base measure, positive.
    lo, width : float
        The domain, in the data's units.
    logit : bool
        Whether points, and densities with them, are of log(u / (1 - u)) rather than of y.
    """

    a_shape: float
    a_rate: float
    b_shape: float
    b_rate: float
    lo: float
    width: float
    logit: bool = False

    def atoms(self, parameters: Mapping[str, Floats]) -> Floats:
        """Return atoms from `a` and `b`."""
        return np.stack([parameters["a"], parameters["b"]])

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` independent atoms."""
        a = rng.gamma(self.a_shape, 1.0 / self.a_rate, size)
        b = rng.gamma(self.b_shape, 1.0 / self.b_rate, size)
        return np.maximum(np.stack([a, b]), 1e-300)  # shapes below 0.01 may round to zero

    def densities(self, weights: Floats, atoms: Floats, y: Floats) -> Floats:
        """Weighted beta densities, shape (size, y.size); 0 outside the domain and at its ends."""
        below, above, change = self._logarithms(y)
        a, b = atoms
        out: Floats = a[:, None] * below
        out += b[:, None] * above
        out -= special.betaln(a, b)[:, None]
        out += change
        np.exp(out, out=out)
        out *= weights[:, None]
        return out

    def _logarithms(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log u, log(1 - u), and the logarithm of what turns u^a (1 - u)^b into a density."""
        if self.logit:
            return -np.logaddexp(0.0, -y), -np.logaddexp(0.0, y), np.zeros_like(y)
        u = (y - self.lo) / self.width
        good = (u > 0.0) & (u < 1.0)
        u = np.where(good, u, 0.5)
        below, above = np.log(u), np.log1p(-u)
        return below, above, np.where(good, -below - above - np.log(self.width), -np.inf)

    def cdf(self, atoms: Floats, y: Floats, *, upper: bool = False) -> Floats:
        """Return Pr(Y <= y), or Pr(Y > y), of each atom at its own y in the data's units."""
        a, b = atoms
        if upper:
            return np.asarray(
                special.betainc(b, a, np.clip((self.lo + self.width - y) / self.width, 0.0, 1.0))
            )
        return np.asarray(special.betainc(a, b, np.clip((y - self.lo) / self.width, 0.0, 1.0)))

    def quantile_bounds(self, atoms: Floats, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the domain."""
        ends = np.full((2, atoms.shape[1]), [[self.lo], [self.lo + self.width]])
        return ends[0], ends[1]

    def moments(self, atoms: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of a record under each atom, in the data's units."""
        a, b = atoms
        share = a / (a + b)
        return self.lo + self.width * share, self.width**2 * share * (b / (a + b)) / (a + b + 1.0)

    def sample(self, atoms: Floats, rng: np.random.Generator) -> Floats:
        """Draw log(u / (1 - u)), or y, from each atom; exact for shapes far below 1 as well."""
        logs = [
            np.log(rng.gamma(shape + 1.0)) + np.log(rng.random(shape.size)) / np.maximum(shape, 1e-280)
            for shape in atoms
        ]
        logit = logs[0] - logs[1]
        return np.asarray(logit if self.logit else self.lo + self.width * special.expit(logit))

    @cached_property
    def _rule(self) -> tuple[Floats, Floats, Floats]:
        """Nodes a, b (K,), (L,) and weights (K, L) over the base measure, 1/B(a, b) left out.

        Even steps in log a and log b. Shapes below 1e-10 are left out: such a kernel has nearly all its mass
        within e^-1e9 of an end.
        """
        rules = []
        for shape, rate in ((self.a_shape, self.a_rate), (self.b_shape, self.b_rate)):
            low = np.log(max(float(special.gammaincinv(shape, 1e-14)) / rate, _LEAST))
            high = np.log(max(float(special.gammainccinv(shape, 1e-17)) / rate, 2.0 * _LEAST))
            t = np.linspace(low, high, _RULE)
            log_weight = shape * (t + np.log(rate)) - rate * np.exp(t) - special.gammaln(shape)
            rules.append((np.exp(t), np.exp(log_weight) * (t[1] - t[0])))
        (a, first), (b, second) = rules
        return a, b, first[:, None] * second

    @cached_property
    def _known(self) -> dict[bytes, Floats]:
        """Predictive densities that were computed already, by their points; few, and asked for often."""
        return {}

    def predictive(self, y: Floats) -> Floats:
        """Prior predictive density, by quadrature over a and b."""
        key = y.tobytes()
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = self._predictive(y)
        return self._known[key].copy()

    def _predictive(self, y: Floats) -> Floats:
        a, b, weights = self._rule
        a, b = (part.ravel() for part in np.broadcast_arrays(a[:, None], b))
        out = np.empty(y.size)
        step = max(1, _CHUNK // a.size)
        for start in range(0, y.size, step):
            part = y[start : start + step]
            out[start : start + step] = self.densities(weights.ravel(), np.stack([a, b]), part).sum(axis=0)
        return out

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        """Points of log(u / (1 - u)), and the distribution function of the prior predictive there."""
        bent = replace(self, logit=True)
        nodes = bent.nodes()
        density = bent.predictive(nodes)
        pieces = 0.5 * np.diff(nodes) * (density[1:] + density[:-1])
        below = np.append(0.0, np.cumsum(pieces))
        return nodes, below / below[-1]

    def predictive_cdf(self, y: Floats) -> Floats:
        """Distribution function of the prior predictive at points in the data's units, by interpolation."""
        u = np.clip((y - self.lo) / self.width, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            logit = np.log(u) - np.log1p(-u)
        return np.asarray(np.interp(logit, *self._curve, left=0.0, right=1.0))

    def predictive_moments(self) -> tuple[float, float]:
        """Mean and variance of the prior predictive, by quadrature."""
        a, b, weights = self._rule
        means, variances = self.moments(np.stack(np.broadcast_arrays(a[:, None], b)))
        shares = weights / weights.sum()
        mean = self.lo + float((shares * (means - self.lo)).sum())
        return mean, float((shares * (variances + (means - mean) ** 2)).sum())

    def nodes(self) -> Floats:
        """Points in log(u / (1 - u)), dense in the middle, to 1e8 on both sides; as y, those within reach."""
        t = np.sinh(np.linspace(-np.arcsinh(_FARTHEST), np.arcsinh(_FARTHEST), _POINTS))
        return t if self.logit else np.unique(self.lo + self.width * special.expit(t))

    def inside(self, grid: Floats) -> Floats:
        """Move points at the ends of the domain half a step inside: densities may be infinite at the ends."""
        out, high = grid.copy(), self.lo + self.width
        close = 1e-9 * self.width
        out[np.abs(grid - self.lo) <= close] = self.lo + 0.5 * min(np.diff(grid).min(), self.width)
        out[np.abs(grid - high) <= close] = high - 0.5 * min(np.diff(grid).min(), self.width)
        return out

    def for_distance(self) -> BetaGamma:
        """Distances are integrated over log(u / (1 - u)), in which densities are bounded."""
        return replace(self, logit=True)


LAYOUTS = (
    Layout(
        "beta",
        "gamma",
        ("a", "b"),
        ("a", "b"),
        ("base_a_shape", "base_a_rate", "base_b_shape", "base_b_rate", "domain_lo", "domain_hi"),
        family=lambda c, _: BetaGamma(
            c["base_a_shape"],
            c["base_a_rate"],
            c["base_b_shape"],
            c["base_b_rate"],
            c["domain_lo"],
            c["domain_hi"] - c["domain_lo"],
        ),
    ),
)
