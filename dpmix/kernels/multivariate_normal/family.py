"""Multivariate normal kernels with the normal-inverse-Wishart base measure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg, special

from dpmix.errors import DataError
from dpmix.kernels.layout import (
    Floats,
    Layout,
    Learned,
    draw_weights,
    log_density_of_base,
    log_density_of_weights,
    weights_of,
)
from dpmix.kernels.normal.family import LearnedNormal, NormalInverseGamma, rest_weights

_BASES = 400  # over which the prior predictive is averaged where location and scales are learned
_SEED = 20


@dataclass(frozen=True, eq=False)
class NormalInverseWishart:
    """The base measure G0: covariance C ~ InverseWishart(nu, psi), mean | C ~ N(mu0, C / lam).

    Atoms have d + d^2 rows: the mean, then the covariance by rows.

    Parameters
    ----------
    mu0 : float64 array (d,)
    lam : float
        Prior weight of the location, positive.
    nu : float
        Degrees of freedom, above d - 1.
    psi : float64 array (d, d)
        Scale matrix, positive definite.
    """

    mu0: Floats
    lam: float
    nu: float
    psi: Floats

    @property
    def size(self) -> int:
        """Number of columns d."""
        return int(self.mu0.size)

    def atoms(self, parameters: Mapping[str, Floats]) -> Floats:
        """Return atoms from `mean` (size, d) and `covariance` (size, d, d)."""
        covariance = parameters["covariance"].reshape(len(parameters["mean"]), self.size**2)
        return np.concatenate([parameters["mean"].T, covariance.T])

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` independent atoms, by Bartlett's decomposition."""
        d = self.size
        factor = np.zeros((size, d, d))
        for row in range(d):
            factor[:, row, row] = np.sqrt(rng.chisquare(self.nu - row, size))
            factor[:, row, :row] = rng.standard_normal((size, row))
        # covariance = root root', with root = L A^-T, psi = L L' and A the factor of a standard Wishart
        root = np.linalg.cholesky(self.psi) @ np.linalg.inv(factor).transpose(0, 2, 1)
        shift = (root @ rng.standard_normal((size, d, 1)))[:, :, 0] / np.sqrt(self.lam)
        covariance = root @ root.transpose(0, 2, 1)
        return self.atoms({"mean": self.mu0 + shift, "covariance": covariance})

    def split(self, atoms: Floats) -> tuple[Floats, Floats]:
        """Return means (size, d) and covariances (size, d, d)."""
        d = self.size
        return atoms[:d].T, atoms[d:].T.reshape(-1, d, d)

    def column(self, number: int) -> NormalInverseGamma:
        """Return the family of one column: its variance is IG((nu - d + 1) / 2, psi_jj / 2) under G0."""
        shape = 0.5 * (self.nu - self.size + 1.0)
        return NormalInverseGamma(float(self.mu0[number]), self.lam, shape, 0.5 * self.psi[number, number])

    def column_atoms(self, atoms: Floats, number: int) -> Floats:
        """Return the atoms of one column, rows mean and sd."""
        d = self.size
        return np.stack([atoms[number], np.sqrt(atoms[d + number * (d + 1)])])

    def log_predictive(self, y: Floats) -> Floats:
        """Logarithm of the prior predictive density at points `y` (points, d): a multivariate Student's t."""
        d, freedom = self.size, self.nu - self.size + 1.0
        root = np.linalg.cholesky(self.psi * (self.lam + 1.0) / (self.lam * freedom))
        scaled = linalg.solve_triangular(root, (y - self.mu0).T, lower=True)
        constant = special.gammaln(0.5 * (freedom + d)) - special.gammaln(0.5 * freedom)
        constant -= 0.5 * d * np.log(freedom * np.pi) + np.log(np.diag(root)).sum()
        return np.asarray(constant - 0.5 * (freedom + d) * np.log1p((scaled**2).sum(axis=0) / freedom))

    def draw_predictive(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` records from the prior predictive, shape (size, d)."""
        return self.sample(self.draw(rng, size), rng)

    def sample(self, atoms: Floats, rng: np.random.Generator) -> Floats:
        """Draw one record from each atom's kernel, shape (size, d)."""
        mean, covariance = self.split(atoms)
        root = np.linalg.cholesky(covariance)
        return np.asarray(mean + (root @ rng.standard_normal((*mean.shape, 1)))[:, :, 0])

    def densities(self, weights: Floats, atoms: Floats, y: Floats) -> Floats:
        """Return each atom's weight times its normal density at points `y` (points, d): (size, points)."""
        mean, covariance = self.split(atoms)
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        square = np.zeros((len(mean), len(y)))
        for row in range(self.size):
            # row of root (y - mean), without an array over atoms, points and columns
            term = root[:, row, : row + 1] @ y[:, : row + 1].T
            term -= (root[:, row, : row + 1] * mean[:, : row + 1]).sum(axis=1)[:, None]
            square += term * term
        scale = np.prod(np.diagonal(root, axis1=1, axis2=2), axis=1) / (2.0 * np.pi) ** (0.5 * self.size)
        return np.asarray(np.exp(-0.5 * square) * (weights * scale)[:, None])

    def centred_log_density(self, parameters: Mapping[str, Floats], base: Floats | None = None) -> Floats:
        """Return log g0 of components as chains files hold them, less its mean under G0, shape (size,)."""
        mean, covariance = parameters["mean"], parameters["covariance"]
        d, nu = self.size, self.nu
        halves = special.digamma(0.5 * (nu - np.arange(d))).sum()
        log_mean = np.linalg.slogdet(self.psi)[1] - halves - d * math.log(2.0)
        logs = np.linalg.slogdet(covariance)[1]
        inverse = np.linalg.inv(covariance)
        trace = np.einsum("ij,kji->k", self.psi, inverse)
        gap = mean - self.mu0
        square = self.lam * np.einsum("ki,kij,kj->k", gap, inverse, gap)
        of_covariance = -0.5 * (nu + d + 2.0) * (logs - log_mean) - 0.5 * (trace - nu * d)
        return np.asarray(of_covariance - 0.5 * (square - d))


@dataclass(frozen=True, eq=False)
class LearnedWishart(Learned, NormalInverseWishart):
    """The base measure whose locations and scales are learned, as `LearnedNormal`; psi is diagonal.

    Parameters
    ----------
    mu0, lam, nu, psi
        As in `NormalInverseWishart`, with location and scales at the means of their priors.
    spread : float64 array (d,)
        Prior standard deviations of the locations.
    shape : float
        Of the gamma priors of the scales.
    weight : float
        Of the gamma prior of lambda, as in `LearnedNormal`.
    """

    spread: Floats
    shape: float
    weight: float = 0.0

    @property
    def centre(self) -> NormalInverseWishart:
        """The base measure with location and scale at the means of their priors."""
        return NormalInverseWishart(self.mu0, self.lam, self.nu, self.psi)

    def draw_base(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw locations and scales from their priors, shape (size, 2, d)."""
        location = self.mu0 + self.spread * rng.standard_normal((size, self.size))
        scale = rng.gamma(self.shape, np.diagonal(self.psi) / self.shape, (size, self.size))
        rows = [location, np.maximum(scale, 1e-290)]
        if self.weight:
            drawn = draw_weights(rng, self.weight, self.lam, size)
            rows.append(np.broadcast_to(drawn[:, None], location.shape))
        return np.stack(rows, axis=1)

    def draw_given(self, rng: np.random.Generator, base: Floats) -> Floats:
        """Draw an atom from each of the base measures (size, 2, d)."""
        d = self.size
        unit = NormalInverseWishart(np.zeros(d), self.lam, self.nu, np.eye(d))
        mean, covariance = unit.split(unit.draw(rng, len(base)))
        root = np.sqrt(base[:, 1])
        mean = np.sqrt(self.lam / weights_of(base, self.lam)) * mean
        scaled = covariance * root[:, :, None] * root[:, None, :]
        return self.atoms({"mean": base[:, 0] + root * mean, "covariance": scaled})

    def rest_atoms(self, base: Floats, nodes: int) -> tuple[Floats, Floats]:
        """Return weights (nodes,) and atoms of normals like a record of an unseen component, as one column's.

        A record is a multivariate Student's t with nu - d + 1 degrees of freedom.
        """
        d, size = self.size, len(base)
        weights, inverse = rest_weights(0.5 * (self.nu - d + 1.0), nodes)
        scale = 0.5 * inverse * (1.0 + 1.0 / weights_of(base, self.lam))
        covariance = np.zeros((size, nodes, d, d))
        covariance[:, :, np.arange(d), np.arange(d)] = base[:, 1][:, None] * scale[:, :, None]
        means = np.repeat(base[:, 0], nodes, axis=0)
        return weights, self.atoms({"mean": means, "covariance": covariance.reshape(-1, d, d)})

    def relative(self, parameters: Mapping[str, Floats], base: Floats) -> dict[str, Floats]:
        """Return components of base measures (size, 2, d) as they would be under that at the centre."""
        root = np.sqrt(np.diagonal(self.psi) / base[:, 1])
        apart = root * np.sqrt(weights_of(base, self.lam) / self.lam)
        mean = self.mu0 + apart * (parameters["mean"] - base[:, 0])
        return {"mean": mean, "covariance": parameters["covariance"] * root[:, :, None] * root[:, None, :]}

    def centred_log_density(self, parameters: Mapping[str, Floats], base: Floats | None = None) -> Floats:
        """Return that of components measured by locations and scales (size, 2, d), under `centre`."""
        assert base is not None  # which such chains have
        return self.centre.centred_log_density(self.relative(parameters, base))

    def column(self, number: int) -> LearnedNormal:  # type: ignore[override]  # which is one too
        """Return the family of one column."""
        known = super().column(number)
        return LearnedNormal(
            known.mu0,
            known.lam,
            known.a,
            known.b,
            float(self.spread[number]),
            float(self.shape),
            float(self.weight),
        )

    @cached_property
    def _bases(self) -> list[NormalInverseWishart]:
        drawn = self.draw_base(np.random.default_rng(_SEED), _BASES)
        lams = weights_of(drawn, self.lam)[:, 0]
        return [
            NormalInverseWishart(row[0], float(lam), self.nu, np.diag(row[1]))
            for row, lam in zip(drawn, lams, strict=True)
        ]

    def log_predictive(self, y: Floats) -> Floats:
        """Logarithm of the prior predictive density: a mean over 400 fixed draws of location and scale."""
        each = np.stack([base.log_predictive(y) for base in self._bases])
        return np.asarray(special.logsumexp(each, axis=0) - np.log(_BASES))

    def draw_predictive(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` records from the same mean."""
        chosen = rng.integers(_BASES, size=size)
        rows = [(b.mu0, np.diagonal(b.psi), np.full(self.size, b.lam)) for b in self._bases]
        base = np.array(rows)[chosen]
        return self.sample(self.draw_given(rng, base), rng)

    def log_base(self, base: Floats) -> Floats:
        """Return the log prior density of location and scale (.., 2, d), up to a constant; shape (..,)."""
        found = log_density_of_base(base, self.mu0, self.spread, self.shape, np.diagonal(self.psi))
        return found + log_density_of_weights(base, self.weight, self.lam)


PARAMETERS = ("mean", "covariance")


def stated_wishart(
    c: Mapping[str, float], arrays: Mapping[str, Floats]
) -> tuple[Floats, float, float, Floats]:
    """Return the parameters of an inverse-Wishart base measure as a file holds them: mu0, lambda, nu, Psi.

    Raises
    ------
    DataError
        When Psi is no positive definite matrix.
    """
    mu0, psi = arrays["base_mu0"], arrays["base_Psi"]
    if psi.shape != (mu0.size, mu0.size) or not (np.linalg.eigvalsh(psi) > 0).all():
        raise DataError(f"base_Psi must be a positive definite matrix of {mu0.size} columns")
    return mu0, c["base_lambda"], c["base_nu"], psi


LAYOUTS = (
    Layout(
        "multivariate_normal",
        "niw",
        PARAMETERS,
        ("covariance",),
        ("base_lambda", "base_nu"),
        ("base_mu0", "base_Psi"),
        family=lambda c, arrays: NormalInverseWishart(*stated_wishart(c, arrays)),
    ),
    Layout(
        "multivariate_normal",
        "learned_niw",
        PARAMETERS,
        ("covariance",),
        ("base_lambda", "base_nu", "base_psi_shape"),
        ("base_mu0", "base_Psi", "base_mu0_sd"),
        learned=("base_mu0", "base_psi"),
        family=lambda c, arrays: LearnedWishart(
            *stated_wishart(c, arrays), arrays["base_mu0_sd"], c["base_psi_shape"]
        ),
    ),
    Layout(
        "multivariate_normal",
        "learned_niw_lambda",
        PARAMETERS,
        ("covariance",),
        ("base_lambda", "base_nu", "base_psi_shape", "base_lambda_shape"),
        ("base_mu0", "base_Psi", "base_mu0_sd"),
        learned=("base_mu0", "base_psi", "base_lambda"),
        family=lambda c, arrays: LearnedWishart(
            *stated_wishart(c, arrays), arrays["base_mu0_sd"], c["base_psi_shape"], c["base_lambda_shape"]
        ),
    ),
)
