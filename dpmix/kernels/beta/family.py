"""Beta kernels on a domain, with independent gamma priors on both shapes, or with one that is learned.

A record y on [lo, lo + width] has u = (y - lo) / width ~ Beta(a, b). Everything is computed from log u and
log(1 - u), so that nothing is lost near the ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy import special

from dpmix.kernels.layout import (
    LEAST,
    Floats,
    Layout,
    Learned,
    centred_gamma,
    draw_weights,
    log_density_of_base,
    log_density_of_weights,
    weights_of,
)

_LEAST = 1e-10
_CHUNK = 1 << 20
_FARTHEST = 1e8
_POINTS = 1600
_RULE = 100
_KEPT = 64
_LEAST_RATE = 1e-8  # as chains have it
_NARROW, _FARTHEST_PLACE, _PLACES = 400.0, 12.0, 120
_LAMBDAS = 16


class BetaKernel(ABC):
    """The kernel Beta(a, b) on [lo, lo + width]; atoms are rows a, b.

    Attributes
    ----------
    lo, width : float
        The domain, in the data's units.
    logit : bool
        Whether points, and densities with them, are of log(u / (1 - u)) rather than of y.
    """

    lo: float
    width: float
    logit: bool

    @property
    @abstractmethod
    def _rule(self) -> tuple[Floats, Floats, Floats]:
        """Return nodes a, b and weights (K,) over the base measure."""

    def for_distance(self) -> Self:
        """Distances are integrated over log(u / (1 - u)), in which densities are bounded."""
        own: Any = self  # a dataclass
        return cast(Self, replace(own, logit=True))

    def atoms(self, parameters: Mapping[str, Floats]) -> Floats:
        """Return atoms from `a` and `b`."""
        return np.stack([parameters["a"], parameters["b"]])

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
        out = np.empty(y.size)
        step = max(1, _CHUNK // a.size)
        for start in range(0, y.size, step):
            part = y[start : start + step]
            out[start : start + step] = self.densities(weights, np.stack([a, b]), part).sum(axis=0)
        return out

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        """Points of log(u / (1 - u)), and the distribution function of the prior predictive there."""
        bent = self.for_distance()
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
        means, variances = self.moments(np.stack([a, b]))
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


@dataclass(frozen=True)
class BetaGamma(BetaKernel):
    """The base measure a ~ Gamma(a_shape, a_rate), b ~ Gamma(b_shape, b_rate).

    Parameters
    ----------
    a_shape, a_rate, b_shape, b_rate : float
        Of the base measure, positive.
    lo, width, logit
        As in `BetaKernel`.
    """

    a_shape: float
    a_rate: float
    b_shape: float
    b_rate: float
    lo: float
    width: float
    logit: bool = False

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` independent atoms."""
        a = rng.gamma(self.a_shape, 1.0 / self.a_rate, size)
        b = rng.gamma(self.b_shape, 1.0 / self.b_rate, size)
        return np.maximum(np.stack([a, b]), 1e-300)  # shapes below 0.01 may round to zero

    @cached_property
    def _rule(self) -> tuple[Floats, Floats, Floats]:
        """Nodes and weights over the base measure, 1/B(a, b) left out.

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
        return np.repeat(a, b.size), np.tile(b, a.size), (first[:, None] * second).ravel()

    def centred_log_density(self, parameters: Mapping[str, Floats], base: Floats | None = None) -> Floats:
        """Return log g0 of components as chains files hold them, less its mean under G0, shape (size,)."""
        a, b = (np.maximum(parameters[name], LEAST) for name in ("a", "b"))
        return centred_gamma(a, self.a_shape, self.a_rate) + centred_gamma(b, self.b_shape, self.b_rate)


# Beta kernels whose base measure's place and rate are learned (methods, section 15): t = a + b, p = a / t,
#
#     logit m ~ N(logit m0, spread^2),            r ~ Gamma(k, k / r0),
#     t ~ Gamma(a_shape + b_shape, r),            p ~ Beta(a_shape + lam t m, b_shape + lam t (1 - m)),
#
# with m and r the same for all components of a draw, and lam, where it is learned, of a gamma law under which
# 1 / lam has the mean that it has where it is not. A saved state has values of its own, `base` (2, 1): the
# logit of m, and r; (3, 1) with lam. Given t a record of an unseen component is taken for the beta of its
# mean and variance, which it is where components are narrow.


@dataclass(frozen=True)
class LearnedBeta(Learned, BetaKernel):
    """The base measure whose place and rate are learned.

    Parameters
    ----------
    a_shape, b_shape, rate : float
        As in `BetaGamma`, the rate at the mean of its prior.
    lam : float
        Weight of the place.
    spread : float
        Prior standard deviation of its logit, about that of a_shape / (a_shape + b_shape).
    shape : float
        Of the gamma prior of the rate, k above.
    lo, width, logit
        As in `BetaKernel`.
    weight : float
        Shape of the gamma prior of the weight of the place; 0 where it is lam in all states.
    """

    a_shape: float
    b_shape: float
    rate: float
    lam: float
    spread: float
    shape: float
    lo: float
    width: float
    logit: bool = False
    weight: float = 0.0

    @property
    def centre(self) -> float:
        """The prior mean of the place's logit."""
        return float(np.log(self.a_shape / self.b_shape))

    @property
    def shapes(self) -> float:
        """The shape of a + b."""
        return self.a_shape + self.b_shape

    def around(self, place: Floats, total: Floats, lam: Floats | float) -> tuple[Floats, Floats]:
        """Return both shapes of p given logits of places, t, and weights of the places."""
        along = lam * total
        return self.a_shape + along * special.expit(place), self.b_shape + along * special.expit(-place)

    def draw_base(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw logits of places, rates, and lam where it is learned, from the prior: (size, 2 or 3, 1)."""
        place = self.centre + self.spread * rng.standard_normal(size)
        rate = rng.gamma(self.shape, self.rate / self.shape, size)
        rows = [place, np.maximum(rate, _LEAST_RATE)]
        if self.weight:
            rows.append(draw_weights(rng, self.weight, self.lam, size))
        return np.stack(rows, axis=1)[:, :, None]

    def draw_given(self, rng: np.random.Generator, base: Floats) -> Floats:
        """Draw an atom from each of the base measures (size, 2 or 3, 1)."""
        total = rng.gamma(self.shapes, 1.0 / base[:, 1, 0])
        lam = weights_of(base, self.lam)[:, 0]
        one, other = (rng.gamma(shape) for shape in self.around(base[:, 0, 0], total, lam))
        return np.maximum(np.stack([one, other]) * (total / (one + other)), 1e-300)

    def log_density(self, atoms: Floats, base: Floats) -> Floats:
        """Return the log density of (log a, log b) at atoms (2, R, size) given base measures (R, .., 1)."""
        log_a, log_b = np.log(atoms)
        log_total = np.logaddexp(log_a, log_b)
        total = np.exp(log_total)
        one, other = self.around(base[..., 0, :], total, weights_of(base, self.lam))
        found = one * (log_a - log_total) + other * (log_b - log_total) - special.betaln(one, other)
        found += self.shapes * (np.log(base[..., 1, :]) + log_total) - base[..., 1, :] * total
        return np.asarray(found - special.gammaln(self.shapes))

    def rest_atoms(self, base: Floats, nodes: int) -> tuple[Floats, Floats]:
        """Return weights (nodes,) and atoms (2, size nodes) of betas like a record of an unseen component.

        Gauss's rule over t. Of p ~ Beta(c, d) a record has the mean c / (c + d), and the variance of
        Beta(c x, d x), x = t / (c + d + t + 1).
        """
        t, weights = special.roots_genlaguerre(nodes, self.shapes - 1.0)
        total = t / base[:, 1]
        one, other = self.around(base[:, 0], total, weights_of(base, self.lam))
        narrow = total / (one + other + total + 1.0)
        return np.asarray(weights / weights.sum()), np.stack(
            [(narrow * one).ravel(), (narrow * other).ravel()]
        )

    @cached_property
    def _rule(self) -> tuple[Floats, Floats, Floats]:
        """Nodes and weights over the base measure with place and rate integrated out, and lam where learned.

        Even steps in log t and logit p, and in log lam. With r integrated out t r0 / k has a beta prime law
        (shapes, k), whose tail is heavy: components narrower than those of t = `_NARROW` are taken for these,
        which are narrow beside the prior of the place.
        """
        unit = self.shape / self.rate
        t = np.linspace(np.log(min(1e-3 * unit, 1.0)), np.log(_NARROW), 50)
        scaled = np.exp(t) / unit
        logs = self.shapes * np.log(scaled) - (self.shapes + self.shape) * np.log1p(scaled)
        of_total = np.exp(logs - special.betaln(self.shapes, self.shape)) * (t[1] - t[0])
        of_total[-1] += max(1.0 - of_total.sum(), 0.0)
        x = np.linspace(-_FARTHEST_PLACE, _FARTHEST_PLACE, 2 * _PLACES + 1)
        places = np.linspace(-5.0, 5.0, _PLACES + 1)
        of_place, place = np.exp(-0.5 * places**2), self.centre + self.spread * places
        left, right = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
        of_x = np.zeros((t.size, x.size))
        for chance, lam in zip(*self._lambdas(), strict=True):
            one, other = (shape[:, :, None] for shape in self.around(place[:, None], np.exp(t), lam))
            density = np.exp(one * left + other * right - special.betaln(one, other))
            given = np.tensordot(of_place, density, axes=1)
            of_x += chance * given / given.sum(axis=1, keepdims=True)
        total, share = np.exp(t)[:, None], special.expit(x)
        weights = of_total[:, None] * of_x
        return (total * share).ravel(), (total * special.expit(-x)).ravel(), weights.ravel()

    def _lambdas(self) -> tuple[Floats, Floats]:
        """Return weights and nodes of lam under its prior, at even steps of its logarithm."""
        if not self.weight:
            return np.ones(1), np.array([self.lam])
        u = np.linspace(-12.0 / self.weight, 2.5, _LAMBDAS)
        chance = np.exp(self.weight * u - np.exp(u))
        return np.asarray(chance / chance.sum()), np.asarray(np.exp(u) * self.lam / (self.weight - 1.0))

    def centred_log_density(self, parameters: Mapping[str, Floats], base: Floats | None = None) -> Floats:
        """Return log densities of a + b, and of a / (a + b) given it, each less its mean, shape (size,).

        `base` (size, 2 or 3, 1): place and rate, or weight too, of each.
        """
        assert base is not None  # which such chains have
        a, b = (np.maximum(parameters[name], LEAST) for name in ("a", "b"))
        one, other = self.around(base[:, 0, 0], a + b, weights_of(base, self.lam)[:, 0])
        mean = special.digamma(one + other)
        left, right = np.log(a / (a + b)) - special.digamma(one), np.log(b / (a + b)) - special.digamma(other)
        of_share = (one - 1.0) * (left + mean) + (other - 1.0) * (right + mean)
        return np.asarray(centred_gamma(base[:, 1, 0] * (a + b), self.shapes, 1.0) + of_share)

    def log_base(self, base: Floats) -> Floats:
        """Return the log prior density of place, rate and weight (.., 2 or 3, 1), up to a constant."""
        centre, spread = np.array([self.centre]), np.array([self.spread])
        found = log_density_of_base(base, centre, spread, self.shape, np.array([self.rate]))
        return found + log_density_of_weights(base, self.weight, self.lam)


_GAMMAS = ("base_a_shape", "base_a_rate", "base_b_shape", "base_b_rate")
_DOMAIN = ("domain_lo", "domain_hi")


def stated_gammas(c: Mapping[str, float]) -> tuple[float, float, float, float]:
    """Return the shapes and rates of a base measure as a file holds them."""
    return c["base_a_shape"], c["base_a_rate"], c["base_b_shape"], c["base_b_rate"]


def _interval(c: Mapping[str, float]) -> tuple[float, float]:
    """Return the lower end of the domain as a file holds it, and its width."""
    return c["domain_lo"], c["domain_hi"] - c["domain_lo"]


def _learned(c: Mapping[str, float]) -> LearnedBeta:
    """Return the family of what a file holds of a learned base measure."""
    lam, spread, shape = c["base_lambda"], c["base_place_sd"], c["base_rate_shape"]
    lo, width = _interval(c)
    return LearnedBeta(
        *(c["base_a_shape"], c["base_b_shape"], c["base_a_rate"], lam, spread, shape, lo, width),
        weight=c.get("base_lambda_shape", 0.0),
    )


_LEARNED = (*_GAMMAS, "base_lambda", "base_place_sd", "base_rate_shape", *_DOMAIN)

LAYOUTS = (
    Layout(
        "beta",
        "gamma",
        ("a", "b"),
        ("a", "b"),
        (*_GAMMAS, *_DOMAIN),
        family=lambda c, _: BetaGamma(*stated_gammas(c), *_interval(c)),
    ),
    Layout(
        "beta",
        "learned_gamma",
        ("a", "b"),
        ("a", "b"),
        _LEARNED,
        learned=("base_place", "base_rate"),
        family=lambda c, _: _learned(c),
    ),
    Layout(
        "beta",
        "learned_gamma_lambda",
        ("a", "b"),
        ("a", "b"),
        (*_LEARNED, "base_lambda_shape"),
        learned=("base_place", "base_rate", "base_lambda"),
        family=lambda c, _: _learned(c),
    ),
)
