"""Normal kernels under the truncated normal-inverse-gamma base measure of a Gaussian release.

The variance of a released value is tau2 = sigma2 + eta^2, with eta the noise's standard deviation, and

    tau2 ~ InverseGamma(a, b) given tau2 >= eta^2,   mean | tau2 ~ N(mu0, tau2 / lam),   sigma2 = tau2 - eta^2

(Beraha, Favaro and Rao 2024, section 3.3; methods, section 4). With t = log(tau2 / eta^2) >= 0 and
x = b / eta^2 the density of t is proportional to exp(-a t - x e^-t), which is log-concave, and stays so where
Pr(IG(a, b) >= eta^2) = P(a, x) is too small for a double.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from dpmix.kernels.layout import Floats, Layout
from dpmix.kernels.normal_family import NIG, PARAMETERS, NormalScaleMixture, stated_nig

_TINY = 1e-8  # of eta: below what tau2 - eta^2 can tell from zero
_SMALL = 1e-3
_DROP = 80.0
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

    @cached_property
    def mixture(self) -> tuple[Floats, Floats]:
        """Weights and standard deviations of the normals about mu0: over tau2 (1 + 1/lam) - eta^2."""
        t, weights = self._rule
        return weights, np.sqrt(self.floor * (np.expm1(t) + np.exp(t) / self.lam))

    def predictive_moments(self) -> tuple[float, float]:
        """E[Y], E[Y^2]; the second is infinite when a <= 1.

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
        return self.mu0, self.mu0**2 + mean * (1.0 + 1.0 / self.lam) - self.floor

    def for_distance(self) -> TruncatedNormalInverseGamma:
        """Distances are integrated over y itself."""
        return self


LAYOUTS = (
    Layout(
        "normal",
        "truncated_nig",
        PARAMETERS,
        ("variance",),
        (*NIG, "noise_scale"),
        zero=True,
        family=lambda c, _: TruncatedNormalInverseGamma(*stated_nig(c), c["noise_scale"] ** 2),
    ),
)
