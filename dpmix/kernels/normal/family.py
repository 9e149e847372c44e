"""Normal kernels: the normal-inverse-gamma base measure, that of a Gaussian release, and what others share.

Under the truncated base measure of a Gaussian release the variance of a released value is tau2 = sigma2 +
eta^2, with eta the noise's standard deviation, and

    tau2 ~ InverseGamma(a, b) given tau2 >= eta^2,   mean | tau2 ~ N(mu0, tau2 / lam),   sigma2 = tau2 - eta^2

(Beraha, Favaro and Rao 2024, section 3.3; methods, section 4). With t = log(tau2 / eta^2) >= 0 and
x = b / eta^2 the density of t is proportional to exp(-a t - x e^-t), which is log-concave, and stays so where
Pr(IG(a, b) >= eta^2) = P(a, x) is too small for a double.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import special

from dpmix.kernels.layout import (
    LEAST,
    Floats,
    Layout,
    Learned,
    draw_weights,
    log_density_of_base,
    log_density_of_weights,
    weights_of,
)

LEVELS = 500
FAR = 1e9


class NormalKernel:
    """The kernel N(mean, sd^2); atoms are rows mean, sd."""

    def atoms(self, parameters: Mapping[str, Floats]) -> Floats:
        """Return atoms from `mean` and `variance`."""
        return np.stack([parameters["mean"], np.sqrt(parameters["variance"])])

    def densities(self, weights: Floats, atoms: Floats, y: Floats) -> Floats:
        """Weighted normal densities, shape (size, y.size)."""
        means, sds = atoms
        out: Floats = (y[None, :] - means[:, None]) * (np.sqrt(0.5) / sds)[:, None]
        np.multiply(out, out, out=out)
        np.negative(out, out=out)
        np.exp(out, out=out)
        out *= (weights / (np.sqrt(2.0 * np.pi) * sds))[:, None]
        return out

    def moments(self, atoms: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of each atom."""
        return atoms[0], atoms[1] ** 2

    def sample(self, atoms: Floats, rng: np.random.Generator) -> Floats:
        """Draw one normal value from each atom."""
        return np.asarray(rng.normal(atoms[0], atoms[1]))

    def cdf(self, atoms: Floats, y: Floats, *, upper: bool = False) -> Floats:
        """Return Pr(Y <= y), or Pr(Y > y), of each atom at its own y."""
        scaled = (y - atoms[0]) / atoms[1]
        return np.asarray(special.ndtr(-scaled if upper else scaled))

    def quantile_bounds(self, atoms: Floats, level: float) -> tuple[Floats, Floats]:
        """Return the quantile of each atom, twice."""
        found = atoms[0] + special.ndtri(level) * atoms[1]
        return found, found

    def inside(self, grid: Floats) -> Floats:
        """Return the grid as it is: the kernel is on the whole line."""
        return grid

    def for_distance(self) -> Self:
        """Return the family as it is: distances are integrated over y itself."""
        return self


class NormalScaleMixture(NormalKernel):
    """A base measure whose prior predictive is a mixture of normals about one place, known by quadrature."""

    mu0: float
    mixture: Any
    """Weights and standard deviations of the normals; a property of subclasses."""

    def predictive(self, y: Floats) -> Floats:
        """Prior predictive density at `y`."""
        weights, sds = self.mixture
        scaled = np.exp(-0.5 * ((np.ravel(y)[:, None] - self.mu0) / sds) ** 2)
        return np.asarray(scaled @ (weights / (np.sqrt(2.0 * np.pi) * sds))).reshape(np.shape(y))

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        """Nodes, and the distribution function of the prior predictive there."""
        weights, sds = self.mixture
        nodes = self.nodes()
        return nodes, special.ndtr((nodes[:, None] - self.mu0) / sds) @ weights

    def predictive_cdf(self, y: Floats) -> Floats:
        """Distribution function of the prior predictive, by interpolation."""
        return np.interp(y, *self._curve, left=0.0, right=1.0)

    def nodes(self) -> Floats:
        """Quantiles of the prior predictive, down to a tail of 1e-9, by interpolation."""
        return self._nodes.copy()

    @cached_property
    def _nodes(self) -> Floats:
        """What `nodes` gives: brackets of quantiles ask for it with every block of draws."""
        weights, sds = self.mixture
        low, high = 1e-6 * float(sds.min()), 8.0 * float(sds.max())
        distance = np.concatenate([[0.0], np.geomspace(low, high, 2000)])
        above = special.ndtr(-distance[:, None] / sds) @ weights
        levels = levels_of_nodes(FAR, LEVELS)
        tail = np.minimum(levels, 1.0 - levels)
        reach = np.interp(-np.log(tail), -np.log(np.maximum(above, 1e-300)), distance)
        return np.asarray(self.mu0 + np.where(levels < 0.5, -reach, reach))


@dataclass(frozen=True)
class NormalInverseGamma(NormalKernel):
    """The base measure G0: variance ~ InverseGamma(a, scale b), mean | variance ~ N(mu0, variance / lam).

    Everything is in the data's units.

    Parameters
    ----------
    mu0, lam, a, b : float
        Location, prior weight of the location, shape and scale; the last three positive.
    """

    mu0: float
    lam: float
    a: float
    b: float

    @property
    def _scale(self) -> float:
        """The scale of the prior predictive: Student's t with 2a degrees of freedom, about mu0."""
        return float(np.sqrt(self.b * (self.lam + 1.0) / (self.a * self.lam)))

    def predictive(self, y: Floats) -> Floats:
        """Prior predictive density of one record at `y`: that of `scipy.stats.t`, which is slow to import."""
        scale, df = self._scale, 2.0 * self.a
        t = (np.asarray(y) - self.mu0) / scale
        top = np.log(special.poch(0.5 * df, 0.5)) - 0.5 * (np.log(df) + np.log(np.pi))
        return np.asarray(np.exp(top - (df + 1) / 2 * np.log1p(t * t / df)) / scale, dtype=np.float64)

    def predictive_cdf(self, y: Floats) -> Floats:
        """Distribution function of the prior predictive."""
        return np.asarray(special.stdtr(2.0 * self.a, (y - self.mu0) / self._scale))

    def nodes(self) -> Floats:
        """Quantiles of the prior predictive, down to a tail of 1e-9."""
        found = special.stdtrit(2.0 * self.a, levels_of_nodes(FAR, LEVELS))
        return np.asarray(found * self._scale + self.mu0, dtype=np.float64)

    def predictive_moments(self) -> tuple[float, float]:
        """Mean and variance of the prior predictive; the latter is infinite when a <= 1."""
        if self.a <= 1.0:
            return self.mu0, float("inf")
        return self.mu0, self.b / (self.a - 1.0) * (1.0 + 1.0 / self.lam)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` independent atoms."""
        variance = self.b / rng.gamma(self.a, size=size)
        mean = self.mu0 + np.sqrt(variance / self.lam) * rng.standard_normal(size)
        return np.stack([mean, np.sqrt(variance)])

    def centred_log_density(self, parameters: Mapping[str, Floats], base: Floats | None = None) -> Floats:
        """Return log g0 of components as chains files hold them, less its mean under G0, shape (size,)."""
        log_mean = math.log(self.b) - float(special.digamma(self.a))
        variance = np.maximum(parameters["variance"], LEAST)
        return _centred(self, parameters["mean"], variance, log_mean, self.a)


def _centred(
    base: NormalInverseGamma | TruncatedNormalInverseGamma,
    mean: Floats,
    variance: Floats,
    log_mean: float,
    inverse: float,
) -> Floats:
    """Return the log density less its mean, given the means of log variance and of b / variance under it."""
    gap = base.lam * (mean - base.mu0) ** 2 / variance
    spread = -(base.a + 1.5) * (np.log(variance) - log_mean) - (base.b / variance - inverse)
    return np.asarray(spread - 0.5 * (gap - 1.0))


def levels_of_nodes(far: float, count: int) -> Floats:
    """Levels in (0, 1) evenly spaced in logit, from 1/(1 + far) to far/(1 + far)."""
    t = np.linspace(-np.log(far), np.log(far), count)
    return np.asarray(1.0 / (1.0 + np.exp(-t)), dtype=np.float64)


PARAMETERS = ("mean", "variance")
NIG = ("base_mu0", "base_lambda", "base_a", "base_b")
"""Names in files that every normal family has."""


def stated_nig(c: Mapping[str, float]) -> tuple[float, float, float, float]:
    """Return the parameters of a normal-inverse-gamma base measure as a file holds them."""
    return c["base_mu0"], c["base_lambda"], c["base_a"], c["base_b"]


# Under the truncated normal-inverse-gamma base measure of a Gaussian release

_TINY = 1e-8  # of eta: below what tau2 - eta^2 can tell from zero
_SMALL = 1e-3
_DROP = 34.0  # of the logarithm of a density, beyond which nothing is left of it
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True)
class TruncatedNormalInverseGamma(NormalScaleMixture):
    """The truncated base measure; atoms are those of a confidential record, N(mean, tau2 - eta^2).

    Parameters
    ----------
    mu0, lam, a, b : float
        As in `NormalInverseGamma`, of a released value.
    floor : float
        eta^2, the least tau2, positive.
    """

    mu0: float
    lam: float
    a: float
    b: float
    floor: float

    def atoms(self, parameters: Mapping[str, Floats]) -> Floats:
        """Return atoms from `mean` and `variance`, whose sd is at least 1e-8 eta."""
        mean, sd = super().atoms(parameters)
        return np.stack([mean, np.maximum(sd, _TINY * np.sqrt(self.floor))])

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` independent atoms."""
        t = self._draw_t(rng, size)
        mean = self.mu0 + np.sqrt(self.floor * np.exp(t) / self.lam) * rng.standard_normal(size)
        sd = np.sqrt(self.floor * np.expm1(t))
        return np.stack([mean, np.maximum(sd, _TINY * np.sqrt(self.floor))])

    def _draw_t(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw t: by inversion, or, in the far tail, by rejection from Exp(a - x).

        The acceptance probability is exp(-x (t + e^-t - 1)); where P(a, x) < 1e-3, a - x is at least some
        three times sqrt(x), and most proposals are taken.
        """
        x = self.b / self.floor
        whole = float(special.gammainc(self.a, x))
        if whole > _SMALL:
            ratio = special.gammaincinv(self.a, whole * rng.random(size)) / x
            return np.asarray(np.maximum(-np.log(np.maximum(ratio, 1e-300)), 0.0))
        out, missing = np.empty(size), np.arange(size)
        while missing.size:
            t = rng.exponential(1.0 / (self.a - x), missing.size)
            out[missing] = t
            taken = np.log(rng.random(missing.size)) <= -x * (t + np.expm1(-t))
            missing = missing[~taken]
        return out

    @cached_property
    def _rule(self) -> tuple[Floats, Floats]:
        """Nodes in t and weights that sum to one: panels narrow near 0 and near the mode."""
        a, x = self.a, self.b / self.floor
        mode = max(np.log(x / a), 0.0)

        def fall(t: Floats | float) -> Floats:
            return np.asarray(a * (t - mode) + x * (np.exp(-t) - np.exp(-mode)))

        high = mode + 1.0 / np.sqrt(a) + 1.0 / a
        while fall(high) < _DROP:
            high = mode + 1.5 * (high - mode)
        even = np.linspace(0.0, high, 100)
        near = mode + np.linspace(-12.0, 12.0, 49) / np.sqrt(a)
        edges = np.concatenate([even, near, high * 0.5 ** np.arange(1, 40)])
        edges = np.unique(edges[(edges >= 0.0) & (edges <= high)])
        half = 0.5 * np.diff(edges)
        t = ((edges[:-1] + half)[:, None] + half[:, None] * _NODES).ravel()
        weights = (half[:, None] * _WEIGHTS).ravel() * np.exp(-fall(t))
        kept = weights > 0.0
        return t[kept], weights[kept] / weights.sum()

    def prior_means(self) -> tuple[float, float]:
        """Return E[log tau2] and E[b / tau2] under the base measure, by quadrature."""
        t, weights = self._rule
        return float(np.log(self.floor) + weights @ t), float(self.b / self.floor * (weights @ np.exp(-t)))

    def centred_log_density(self, parameters: Mapping[str, Floats], base: Floats | None = None) -> Floats:
        """Return log g0 of components as chains files hold them, less its mean under G0, shape (size,)."""
        total = np.maximum(parameters["variance"], LEAST) + self.floor  # of a released value
        return _centred(self, parameters["mean"], total, *self.prior_means())

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """Weights and standard deviations of the normals about mu0: over tau2 (1 + 1/lam) - eta^2."""
        t, weights = self._rule
        return weights, np.sqrt(self.floor * (np.expm1(t) + np.exp(t) / self.lam))

    def predictive_moments(self) -> tuple[float, float]:
        """Mean and variance of the prior predictive; the latter is infinite when a <= 1.

        With M = sum of x^k / (a + 1)_k, E[tau2] = b / (a - 1) (1 + a / (x M)), as P(a, x) is
        x^a e^-x M / Gamma(a + 1).
        """
        if self.a <= 1.0:
            return self.mu0, float("inf")
        x = self.b / self.floor
        term = total = 1.0
        k = 0
        while term > 1e-17 * total and total < 1e300:
            k += 1
            term *= x / (self.a + k)
            total += term
        mean = self.b / (self.a - 1.0) * (1.0 + self.a / (x * total))
        return self.mu0, mean * (1.0 + 1.0 / self.lam) - self.floor


# Normal kernels whose base measure's location and scale are learned (methods, section 15):
#
#     mu0 ~ N(centre, spread^2),          b ~ Gamma(k, k / b0),
#     variance ~ InverseGamma(a, b),      mean | variance ~ N(mu0, variance / lam),
#
# with mu0 and b the same for all components of a draw; of several columns each has its own, and Psi is
# diagonal. What is called the prior predictive here has them integrated out. A saved state has values of its
# own, `base` (2, d): location, and b or the diagonal of Psi.

_STEP = 0.25  # in the logarithm of a component's variance


def rest_weights(shape: float, nodes: int) -> tuple[Floats, Floats]:
    """Return weights and values of 1 / g, g ~ Gamma(shape): of Gauss's rule for functions of g."""
    g, weights = special.roots_genlaguerre(nodes, shape - 1.0)
    return np.asarray(weights / weights.sum()), np.asarray(1.0 / g)


@dataclass(frozen=True)
class LearnedNormal(NormalScaleMixture, Learned):
    """The base measure whose location and scale are learned.

    Parameters
    ----------
    mu0, lam, a, b : float
        As in `NormalInverseGamma`, with location and scale at the means of their priors.
    spread : float
        Prior standard deviation of the location.
    shape : float
        Of the gamma prior of the scale, k above.
    weight : float
        Shape s of the gamma prior of lambda, a third row of `base`, whose rate is (s - 1) / lam; 0 where
        lambda is lam in all states.
    """

    mu0: float
    lam: float
    a: float
    b: float
    spread: float
    shape: float
    weight: float = 0.0

    @property
    def centre(self) -> NormalInverseGamma:
        """The base measure with location and scale at the means of their priors."""
        return NormalInverseGamma(self.mu0, self.lam, self.a, self.b)

    def draw_base(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw locations and scales from their priors, shape (size, 2, 1), or (size, 3, 1) with lambda."""
        location = self.mu0 + self.spread * rng.standard_normal(size)
        scale = rng.gamma(self.shape, self.b / self.shape, size)
        rows = [location, np.maximum(scale, 1e-290)]
        if self.weight:
            rows.append(draw_weights(rng, self.weight, self.lam, size))
        return np.stack(rows, axis=1)[:, :, None]

    def draw_given(self, rng: np.random.Generator, base: Floats) -> Floats:
        """Draw an atom from each of the base measures (size, 2, 1)."""
        variance = base[:, 1, 0] / rng.gamma(self.a, size=len(base))
        lam = weights_of(base, self.lam)[:, 0]
        mean = base[:, 0, 0] + np.sqrt(variance / lam) * rng.standard_normal(len(base))
        return np.stack([mean, np.sqrt(variance)])

    def rest_atoms(self, base: Floats, nodes: int) -> tuple[Floats, Floats]:
        """Return weights (nodes,) and atoms (2, size nodes) of normals like a record of an unseen component.

        Given each of the base measures (size, 2, 1) a record of one is Student's t, whose mixture of normals
        is brought to so many.
        """
        weights, inverse = rest_weights(self.a, nodes)
        variance = base[:, 1] * inverse * (1.0 + 1.0 / weights_of(base, self.lam))
        means = np.broadcast_to(base[:, 0], variance.shape)
        return weights, np.stack([means.ravel(), np.sqrt(variance).ravel()])

    def relative(self, parameters: Mapping[str, Floats], base: Floats) -> dict[str, Floats]:
        """Return components of base measures (size, 2, 1) as they would be under that at the centre."""
        factor = self.b / base[:, 1, 0]
        apart = np.sqrt(factor * weights_of(base, self.lam)[:, 0] / self.lam)
        mean = self.mu0 + apart * (parameters["mean"] - base[:, 0, 0])
        return {"mean": mean, "variance": factor * parameters["variance"]}

    def centred_log_density(self, parameters: Mapping[str, Floats], base: Floats | None = None) -> Floats:
        """Return that of components measured by location and scale (size, 2, 1), under `centre`."""
        assert base is not None  # which such chains have
        return self.centre.centred_log_density(self.relative(parameters, base))

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """Weights and standard deviations: over variances, b0 / k times a beta-prime variable (k, a)."""
        t = np.arange(-_DROP / self.shape, _DROP / self.a, _STEP)
        logs = self.shape * t - (self.shape + self.a) * np.logaddexp(0.0, t)
        weights = np.exp(logs - logs.max())
        apart = np.log1p(1.0 / self.lam)
        if self.weight:
            t, weights = self._with_weights(t, weights)
            apart = 0.0
        variance = self.b / self.shape * np.exp(t + apart) + self.spread**2
        return weights / weights.sum(), np.sqrt(variance)

    def _with_weights(self, t: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return t + log(1 + 1 / lambda), at even steps, and its weights, lambda by its prior."""
        u = np.arange(-_DROP / self.weight, 4.0, _STEP)  # of the logarithm of lambda times its rate
        chance = np.exp(self.weight * u - np.exp(u))
        lam = np.exp(u) * self.lam / (self.weight - 1.0)
        sums = (t[:, None] + np.log1p(1.0 / lam)).ravel()
        place = (sums - sums.min()) / _STEP
        below = place.astype(np.int64)
        both = (weights[:, None] * chance).ravel()
        size = int(below.max()) + 2
        found = np.bincount(below, both * (1.0 - place + below), size)
        found = found + np.bincount(below + 1, both * (place - below), size)
        return sums.min() + _STEP * np.arange(size), np.asarray(found, dtype=np.float64)

    def predictive_moments(self) -> tuple[float, float]:
        """Mean and variance of the prior predictive; the latter is infinite when a <= 1."""
        mean, variance = self.centre.predictive_moments()
        return mean, variance + self.spread**2

    def log_base(self, base: Floats) -> Floats:
        """Return the log prior density of location and scale (.., 2, 1), up to a constant; shape (..,)."""
        found = log_density_of_base(
            base, np.array([self.mu0]), np.array([self.spread]), self.shape, np.array([self.b])
        )
        return found + log_density_of_weights(base, self.weight, self.lam)


LAYOUTS = (
    Layout(
        "normal",
        "nig",
        PARAMETERS,
        ("variance",),
        NIG,
        family=lambda c, _: NormalInverseGamma(*stated_nig(c)),
    ),
    Layout(
        "normal",
        "truncated_nig",
        PARAMETERS,
        ("variance",),
        (*NIG, "noise_scale"),
        zero=True,
        family=lambda c, _: TruncatedNormalInverseGamma(*stated_nig(c), c["noise_scale"] ** 2),
    ),
    Layout(
        "normal",
        "learned_nig",
        PARAMETERS,
        ("variance",),
        (*NIG, "base_mu0_sd", "base_b_shape"),
        learned=("base_mu0", "base_b"),
        family=lambda c, _: LearnedNormal(*stated_nig(c), c["base_mu0_sd"], c["base_b_shape"]),
    ),
    Layout(
        "normal",
        "learned_nig_lambda",
        PARAMETERS,
        ("variance",),
        (*NIG, "base_mu0_sd", "base_b_shape", "base_lambda_shape"),
        learned=("base_mu0", "base_b", "base_lambda"),
        family=lambda c, _: LearnedNormal(
            *stated_nig(c), c["base_mu0_sd"], c["base_b_shape"], c["base_lambda_shape"]
        ),
    ),
)
