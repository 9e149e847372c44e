"""Multivariate normal kernels with the normal-inverse-Wishart base measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from dpmix.errors import DataError
from dpmix.kernels.layout import Floats, Layout
from dpmix.kernels.normal_family import NormalInverseGamma


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
)
