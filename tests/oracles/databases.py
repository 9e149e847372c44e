"""Posteriors given a noisy sum over records: from all databases, or from draws weighed by the release."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr, ndtri_exp

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Classes:
    """Posterior means of class and level probabilities, their squares, and the law of the class counts."""

    p: Array
    p_squared: Array
    levels: tuple[Array, ...]
    first_class: Array


def classes(
    released: Array, levels: Sequence[int], count: int, scale: float, prior: float, n: int, power: int = 1
) -> Classes:
    """Enumerate every database of n records, but for their order; the noise has log density -|e/s|^p / p."""
    kinds = np.array(list(itertools.product(range(count), *(range(j) for j in levels))))
    databases = np.array(list(itertools.combinations_with_replacement(range(len(kinds)), n)))
    label = kinds[databases]  # (databases, n, 1 + K)
    n_class = (label[:, :, :1] == np.arange(count)).sum(axis=1)
    alike = (databases[:, :, None] == np.arange(len(kinds))).sum(axis=1)
    # the probability of records in their order: Polya's urn for the classes, then for each feature in each
    log_w = gammaln(prior + n_class).sum(axis=1) - gammaln(alike + 1).sum(axis=1)
    means: list[Array] = []
    at = 0
    for k, width in enumerate(levels):
        cell = label[:, :, 0] * width + label[:, :, k + 1]
        n_cell = (cell[:, :, None] == np.arange(count * width)).sum(axis=1)
        gaps = np.abs(released[at : at + count * width] - n_cell) / scale
        log_w = log_w - (gaps**power / power).sum(axis=1)
        log_w = log_w + gammaln(prior + n_cell).sum(axis=1) - gammaln(width * prior + n_class).sum(axis=1)
        table = n_cell.reshape(-1, count, width)
        means.append((prior + table) / (width * prior + n_class)[:, :, None])
        at += count * width
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    total = count * prior + n
    p = (prior + n_class) / total
    squares = p * (prior + n_class + 1) / (total + 1)
    return Classes(
        w @ p,
        w @ squares,
        tuple(np.einsum("d,dij->ij", w, table) for table in means),
        np.array([w[n_class[:, 0] == x].sum() for x in range(n + 1)]),
    )


def moments(units: Array) -> Array:
    """Return the released sums (.., size) of records (.., n, q) in [-1, 1], the response last."""
    q = units.shape[-1]
    ones = np.concatenate([np.ones((*units.shape[:-1], 1)), units], axis=-1)
    table = np.einsum("...ni,...nj->...ij", ones, ones)
    with_response = [table[..., i, q] for i in range(q + 1)]
    rest = [table[..., i, j] for i in range(q) for j in range(i, q) if j > 0]
    return np.stack([*with_response, *rest], axis=-1)


def truncated(rng: np.random.Generator, mean: Array, sd: Array, low: float, high: float) -> Array:
    """Draw normal variables truncated to [low, high], by logs of lower tails, mirrored if long."""
    side = np.where(mean < (low + high) / 2, -1.0, 1.0)
    first, last = np.where(side > 0, low, high), np.where(side > 0, high, low)
    log_a, log_b = log_ndtr(side * (first - mean) / sd), log_ndtr(side * (last - mean) / sd)
    u = rng.random(mean.shape)
    return np.clip(
        mean + side * sd * ndtri_exp(np.logaddexp(log_a + np.log1p(-u), log_b + np.log(u))), low, high
    )


@dataclass(frozen=True)
class Line:
    """Prior of a regression: known values are numbers or arrays, unknown ones None.

    Where learned, b is the mean of the scale of sigma2, of a gamma law of shape 1/2; where psi_learned, so is
    each entry on psi's diagonal of one of x_cov, whose scale matrix is diagonal. Where beta_learned, rescaled
    coefficients are Cauchy(0, sd).
    """

    bounds: Array
    scale: float
    sd: float
    sigma2: float | None = None
    x_mean: Array | None = None
    x_cov: Array | None = None
    a: float = 3.0
    b: float = 2.0
    mu0: Array | None = None
    weight: float = 1.5
    nu: float = 5.0
    psi: Array | None = None
    truncated: bool = False
    clamped_predictors: bool = False
    learned: bool = False
    psi_learned: bool = False
    beta_learned: bool = False

    @property
    def p(self) -> int:
        return len(self.bounds) - 1

    def draw(self, rng: np.random.Generator, size: int, n: int) -> tuple[dict[str, Array], Array]:
        """Draw parameters, `size` of each, and databases (size, n, p + 1) given them."""
        p = self.p
        normals = rng.standard_normal((size, p + 1))
        if self.beta_learned:
            normals = normals / rng.standard_normal((size, p + 1))
        beta = self.in_units(self.sd * normals)
        b = self.b * rng.standard_normal(size) ** 2 if self.learned else self.b
        sigma2 = np.full(size, self.sigma2) if self.sigma2 is not None else b / rng.gamma(self.a, size=size)
        if self.x_cov is not None:
            root = np.broadcast_to(np.linalg.cholesky(self.x_cov), (size, p, p))
        else:
            assert self.psi is not None
            # the precision is a Wishart matrix: a sum of outer products of normals, where nu is whole
            white = rng.standard_normal((size, int(self.nu), p))
            if self.psi_learned:
                scales = self.psi.diagonal() * rng.standard_normal((size, 1, p)) ** 2
                white = white / np.sqrt(scales)
            else:
                white = white @ np.linalg.cholesky(np.linalg.inv(self.psi)).T
            cov = np.linalg.inv(np.einsum("sni,snj->sij", white, white))
            root = np.linalg.cholesky(0.5 * (cov + np.swapaxes(cov, 1, 2)))
        if self.x_mean is not None:
            mean = np.broadcast_to(self.x_mean, (size, p))
        else:
            noise = np.einsum("sij,sj->si", root, rng.standard_normal((size, p)))
            mean = self.mu0 + noise / np.sqrt(self.weight)
        x = mean[:, None] + np.einsum("sij,snj->sni", root, rng.standard_normal((size, n, p)))
        line = np.clip(x, *self.bounds[:-1].T) if self.clamped_predictors else x
        y = beta[:, :1] + np.einsum("sni,si->sn", line, beta[:, 1:])
        if self.truncated:
            y = truncated(rng, y, np.sqrt(sigma2)[:, None], *self.bounds[-1])
        else:
            y = y + np.sqrt(sigma2)[:, None] * rng.standard_normal((size, n))
        cov = np.einsum("sij,skj->sik", root, root)
        theta = {"beta": beta, "sigma2": sigma2, "x_mean": np.array(mean), "x_cov": cov}
        return theta, np.concatenate([x, y[:, :, None]], axis=2)

    def in_units(self, beta: Array) -> Array:
        """Take coefficients (size, p + 1) of variables rescaled to [-1, 1] to the units of the data."""
        centre, half = self.frame
        slopes = beta[:, 1:] * half[-1] / half[:-1]
        return np.column_stack([centre[-1] + half[-1] * beta[:, 0] - slopes @ centre[:-1], slopes])

    @property
    def frame(self) -> tuple[Array, Array]:
        """Centre and half-width of the bounds."""
        low, high = self.bounds.T
        return (low + high) / 2, (high - low) / 2

    def rescaled(self, theta: dict[str, Array]) -> Array:
        """Take parameters (size, ..) in the units of the data to a chain's, side by side (size, ..)."""
        centre, half = self.frame
        beta = theta["beta"]
        slopes = beta[:, 1:] * half[:-1] / half[-1]
        intercept = (beta[:, 0] + beta[:, 1:] @ centre[:-1] - centre[-1]) / half[-1]
        root = np.linalg.cholesky(theta["x_cov"]) / half[:-1, None]
        return np.column_stack(
            [
                intercept,
                slopes,
                np.sqrt(theta["sigma2"]) / half[-1],
                (theta["x_mean"] - centre[:-1]) / half[:-1],
                root.reshape(len(beta), -1),
            ]
        )

    def units(self, records: Array) -> Array:
        """Clamp and rescale records (.., p + 1)."""
        low, high = self.bounds.T
        return np.asarray(2.0 * (np.clip(records, low, high) - low) / (high - low) - 1.0)

    def release(self, rng: np.random.Generator, records: Array) -> Array:
        """Draw the noisy moments of databases (.., n, p + 1)."""
        sums = moments(self.units(records))
        return sums + rng.laplace(0.0, self.scale, sums.shape)


def functions(theta: dict[str, Array]) -> dict[str, Array]:
    """Bounded or light-tailed functions of the parameters, (draws,) each."""
    bent = np.arctan(theta["beta"])  # which may have a Cauchy law
    found = {f"beta[{i}]": bent[:, i] for i in range(bent.shape[1])}
    found |= {f"beta[{i}]^2": bent[:, i] ** 2 for i in range(bent.shape[1])}
    if "sigma2" in theta:
        found["log sigma2"] = np.log(theta["sigma2"])
    if "x_mean" in theta:
        found |= {f"x_mean[{i}]": np.tanh(theta["x_mean"][:, i]) for i in range(theta["x_mean"].shape[1])}
    if "x_cov" in theta:
        cov = theta["x_cov"]
        found |= {f"log x_cov[{i}]": np.log(cov[:, i, i]) for i in range(cov.shape[1])}
        if cov.shape[1] > 1:
            found["x_corr"] = cov[:, 0, 1] / np.sqrt(cov[:, 0, 0] * cov[:, 1, 1])
    return found


def weighed(
    line: Line, released: Array, n: int, rng: np.random.Generator, size: int, batches: int
) -> dict[str, tuple[float, float]]:
    """Posterior means and their standard errors, by draws from the prior weighed by the release."""
    sums: dict[str, list[float]] = {}
    totals: list[float] = []
    for _ in range(batches):
        theta, records = line.draw(rng, size, n)
        w = np.exp(-np.abs(released - moments(line.units(records))).sum(axis=1) / line.scale)
        totals.append(float(w.sum()))
        for name, values in functions(theta).items():
            sums.setdefault(name, []).append(float(w @ values))
    whole = np.array(totals)
    found = {}
    for name, parts in sums.items():
        each = np.array(parts)
        mean = each.sum() / whole.sum()
        error = np.sqrt(((each - mean * whole) ** 2).sum()) / whole.sum()  # of a ratio, by batches
        found[name] = (float(mean), float(error))
    return found


def grouped_sums(line: Line, records: Array, sizes: Array, centre: Array) -> Array:
    """Return the sums (.., size) over the first records of databases (.., n, p + 1), less centre for each."""
    each = moments(line.units(records)[..., None, :]) - centre
    inside = np.arange(records.shape[-2]) < np.asarray(sizes)[..., None]
    return np.asarray((each * inside[..., None]).sum(axis=-2))


def weighed_groups(
    line: Line,
    released: tuple[Array, Array],
    scales: tuple[float, float],
    centre: Array,
    n: int,
    rng: np.random.Generator,
    size: int,
    batches: int,
) -> dict[str, tuple[float, float]]:
    """Posterior means given noisy sizes, of all groups but the last, and sums (G, size) of n records."""
    sums: dict[str, list[float]] = {}
    totals: list[float] = []
    groups = len(released[1])
    for _ in range(batches):
        # sizes are uniform over all that sum to n: bars among n stars
        bars = np.sort(rng.permuted(np.tile(np.arange(n + groups - 1), (size, 1)), axis=1)[:, : groups - 1])
        edges = np.concatenate([np.full((size, 1), -1), bars, np.full((size, 1), n + groups - 1)], axis=1)
        sizes = np.diff(edges, axis=1) - 1
        log_w = -np.abs(released[0] - sizes[:, :-1]).sum(axis=1) / scales[0]
        values = {f"size[{g}]": sizes[:, g].astype(float) for g in range(groups)}
        for g in range(groups):
            theta, records = line.draw(rng, size, n)
            found = grouped_sums(line, records, sizes[:, g], centre)
            log_w -= np.abs(released[1][g] - found).sum(axis=1) / scales[1]
            values |= {f"{name} of {g}": column for name, column in functions(theta).items()}
        w = np.exp(log_w)
        totals.append(float(w.sum()))
        for name, column in values.items():
            sums.setdefault(name, []).append(float(w @ column))
    whole = np.array(totals)
    means = {}
    for name, parts in sums.items():
        each = np.array(parts)
        mean = each.sum() / whole.sum()
        error = np.sqrt(((each - mean * whole) ** 2).sum()) / whole.sum()
        means[name] = (float(mean), float(error))
    return means
