"""Normal kernels whose base measure's location and scale are learned (methods, section 15).

    mu0 ~ N(centre, spread^2),          b ~ Gamma(k, k / b0),
    variance ~ InverseGamma(a, b),      mean | variance ~ N(mu0, variance / lam),

with mu0 and b the same for all components of a draw; of several columns each has its own, and Psi is
diagonal.
What is called the prior predictive here has them integrated out. A saved state has values of its own,
`base` (2, d): location, and b or the diagonal of Psi.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from dpmix.kernels import multivariate_family, normal_family
from dpmix.kernels.layout import Floats, Layout
from dpmix.kernels.multivariate_family import NormalInverseWishart, stated_wishart
from dpmix.kernels.normal_family import NIG, NormalInverseGamma, NormalScaleMixture, stated_nig

__all__ = ["LearnedNormal", "LearnedWishart"]

_STEP = 0.25  # in the logarithm of a component's variance
_DROP = 34.0  # of the logarithm of its density, either side
_BASES = 400  # over which the prior predictive of several columns is averaged
_SEED = 20


def _rest_of(shape: float, nodes: int) -> tuple[Floats, Floats]:
    """Return weights and values of 1 / g, g ~ Gamma(shape): of Gauss's rule for functions of g."""
    g, weights = special.roots_genlaguerre(nodes, shape - 1.0)
    return np.asarray(weights / weights.sum()), np.asarray(1.0 / g)


@dataclass(frozen=True)
class LearnedNormal(NormalScaleMixture):
    """One column.

    Parameters
    ----------
    mu0, lam, a, b : float
        As in `NormalInverseGamma`, with location and scale at the means of their priors.
    spread : float
        Prior standard deviation of the location.
    shape : float
        Of the gamma prior of the scale, k above.
    """

    mu0: float
    lam: float
    a: float
    b: float
    spread: float
    shape: float

    @property
    def centre(self) -> NormalInverseGamma:
        """The base measure with location and scale at the means of their priors."""
        return NormalInverseGamma(self.mu0, self.lam, self.a, self.b)

    def draw_base(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw locations and scales from their priors, shape (size, 2, 1)."""
        location = self.mu0 + self.spread * rng.standard_normal(size)
        scale = rng.gamma(self.shape, self.b / self.shape, size)
        return np.stack([location, np.maximum(scale, 1e-290)], axis=1)[:, :, None]

    def draw_given(self, rng: np.random.Generator, base: Floats) -> Floats:
        """Draw an atom from each of the base measures (size, 2, 1)."""
        variance = base[:, 1, 0] / rng.gamma(self.a, size=len(base))
        mean = base[:, 0, 0] + np.sqrt(variance / self.lam) * rng.standard_normal(len(base))
        return np.stack([mean, np.sqrt(variance)])

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw atoms that share no location and scale."""
        return self.draw_given(rng, self.draw_base(rng, size))

    def rest_atoms(self, base: Floats, nodes: int) -> tuple[Floats, Floats]:
        """Return weights (nodes,) and atoms (2, size nodes) of normals like a record of an unseen component.

        Given each of the base measures (size, 2, 1) a record of one is Student's t, whose mixture of normals
        is brought to so many.
        """
        weights, inverse = _rest_of(self.a, nodes)
        variance = base[:, 1] * inverse * (1.0 + 1.0 / self.lam)
        means = np.broadcast_to(base[:, 0], variance.shape)
        return weights, np.stack([means.ravel(), np.sqrt(variance).ravel()])

    def relative(self, parameters: Mapping[str, Floats], base: Floats) -> dict[str, Floats]:
        """Return components of base measures (size, 2, 1) as they would be under that at the centre."""
        factor = self.b / base[:, 1, 0]
        mean = self.mu0 + np.sqrt(factor) * (parameters["mean"] - base[:, 0, 0])
        return {"mean": mean, "variance": factor * parameters["variance"]}

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """Weights and standard deviations: over variances, b0 / k times a beta-prime variable (k, a)."""
        t = np.arange(-_DROP / self.shape, _DROP / self.a, _STEP)
        logs = self.shape * t - (self.shape + self.a) * np.logaddexp(0.0, t)
        weights = np.exp(logs - logs.max())
        variance = self.b / self.shape * np.exp(t) * (1.0 + 1.0 / self.lam) + self.spread**2
        return weights / weights.sum(), np.sqrt(variance)

    def predictive_moments(self) -> tuple[float, float]:
        """Mean and variance of the prior predictive; the latter is infinite when a <= 1."""
        mean, variance = self.centre.predictive_moments()
        return mean, variance + self.spread**2

    def log_base(self, base: Floats) -> Floats:
        """Return the log prior density of location and scale (.., 2, 1), up to a constant; shape (..,)."""
        return _log_base(base, np.array([self.mu0]), np.array([self.spread]), self.shape, np.array([self.b]))

    def for_distance(self) -> LearnedNormal:
        """Distances are integrated over y itself."""
        return self


@dataclass(frozen=True, eq=False)
class LearnedWishart(NormalInverseWishart):
    """Several columns; psi is diagonal.

    Parameters
    ----------
    mu0, lam, nu, psi
        As in `NormalInverseWishart`, with location and scales at the means of their priors.
    spread : float64 array (d,)
        Prior standard deviations of the locations.
    shape : float
        Of the gamma priors of the scales.
    """

    spread: Floats
    shape: float

    @property
    def centre(self) -> NormalInverseWishart:
        """The base measure with location and scale at the means of their priors."""
        return NormalInverseWishart(self.mu0, self.lam, self.nu, self.psi)

    def draw_base(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw locations and scales from their priors, shape (size, 2, d)."""
        location = self.mu0 + self.spread * rng.standard_normal((size, self.size))
        scale = rng.gamma(self.shape, np.diagonal(self.psi) / self.shape, (size, self.size))
        return np.stack([location, np.maximum(scale, 1e-290)], axis=1)

    def draw_given(self, rng: np.random.Generator, base: Floats) -> Floats:
        """Draw an atom from each of the base measures (size, 2, d)."""
        d = self.size
        unit = NormalInverseWishart(np.zeros(d), self.lam, self.nu, np.eye(d))
        mean, covariance = unit.split(unit.draw(rng, len(base)))
        root = np.sqrt(base[:, 1])
        scaled = covariance * root[:, :, None] * root[:, None, :]
        return self.atoms({"mean": base[:, 0] + root * mean, "covariance": scaled})

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw atoms that share no location and scale."""
        return self.draw_given(rng, self.draw_base(rng, size))

    def rest_atoms(self, base: Floats, nodes: int) -> tuple[Floats, Floats]:
        """Return weights (nodes,) and atoms of normals like a record of an unseen component, as one column's.

        A record is a multivariate Student's t with nu - d + 1 degrees of freedom.
        """
        d, size = self.size, len(base)
        weights, inverse = _rest_of(0.5 * (self.nu - d + 1.0), nodes)
        scale = 0.5 * inverse * (1.0 + 1.0 / self.lam)
        covariance = np.zeros((size, nodes, d, d))
        covariance[:, :, np.arange(d), np.arange(d)] = base[:, 1][:, None] * scale[:, None]
        means = np.repeat(base[:, 0], nodes, axis=0)
        return weights, self.atoms({"mean": means, "covariance": covariance.reshape(-1, d, d)})

    def relative(self, parameters: Mapping[str, Floats], base: Floats) -> dict[str, Floats]:
        """Return components of base measures (size, 2, d) as they would be under that at the centre."""
        root = np.sqrt(np.diagonal(self.psi) / base[:, 1])
        mean = self.mu0 + root * (parameters["mean"] - base[:, 0])
        return {"mean": mean, "covariance": parameters["covariance"] * root[:, :, None] * root[:, None, :]}

    def column(self, number: int) -> LearnedNormal:  # type: ignore[override]  # which is one too
        """Return the family of one column."""
        known = super().column(number)
        return LearnedNormal(
            known.mu0, known.lam, known.a, known.b, float(self.spread[number]), float(self.shape)
        )

    @cached_property
    def _bases(self) -> list[NormalInverseWishart]:
        drawn = self.draw_base(np.random.default_rng(_SEED), _BASES)
        return [NormalInverseWishart(mu0, self.lam, self.nu, np.diag(psi)) for mu0, psi in drawn]

    def log_predictive(self, y: Floats) -> Floats:
        """Logarithm of the prior predictive density: a mean over 400 fixed draws of location and scale."""
        each = np.stack([base.log_predictive(y) for base in self._bases])
        return np.asarray(special.logsumexp(each, axis=0) - np.log(_BASES))

    def draw_predictive(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` records from the same mean."""
        chosen = rng.integers(_BASES, size=size)
        base = np.stack([np.stack([b.mu0, np.diagonal(b.psi)]) for b in self._bases])[chosen]
        return self.sample(self.draw_given(rng, base), rng)

    def log_base(self, base: Floats) -> Floats:
        """Return the log prior density of location and scale (.., 2, d), up to a constant; shape (..,)."""
        return _log_base(base, self.mu0, self.spread, self.shape, np.diagonal(self.psi))


def _log_base(base: Floats, centre: Floats, spread: Floats, shape: float, mean: Floats) -> Floats:
    gap = (base[..., 0, :] - centre) / spread
    scale = base[..., 1, :] / mean
    return np.asarray((-0.5 * gap**2 + (shape - 1.0) * np.log(scale) - shape * scale).sum(axis=-1))


LAYOUTS = (
    Layout(
        "normal",
        "learned_nig",
        normal_family.PARAMETERS,
        ("variance",),
        (*NIG, "base_mu0_sd", "base_b_shape"),
        learned=("base_mu0", "base_b"),
        family=lambda c, _: LearnedNormal(*stated_nig(c), c["base_mu0_sd"], c["base_b_shape"]),
    ),
    Layout(
        "multivariate_normal",
        "learned_niw",
        multivariate_family.PARAMETERS,
        ("covariance",),
        ("base_lambda", "base_nu", "base_psi_shape"),
        ("base_mu0", "base_Psi", "base_mu0_sd"),
        learned=("base_mu0", "base_psi"),
        family=lambda c, arrays: LearnedWishart(
            *stated_wishart(c, arrays), arrays["base_mu0_sd"], c["base_psi_shape"]
        ),
    ),
)
