"""Simulated data sets that can stand in for a confidential file.

Each function draws n records, shape (n, d) of float64; of one column unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

THREE_BETAS = ((5.0, 50.0), (50.0, 50.0), (50.0, 5.0))
DYADIC_SUCCESS = 0.1
FIVE_CLASSES = (0.097, 0.148, 0.145, 0.446, 0.163)  # divided by their sum, 0.999
FIVE_CLASSES_LEVELS = (  # of each feature, by class
    ((0.49, 0.37, 0.14), (0.03, 0.84, 0.13), (0.46, 0.11, 0.43), (0.65, 0.26, 0.09), (0.19, 0.46, 0.35)),
    ((0.47, 0.39, 0.14), (0.62, 0.34, 0.04), (0.53, 0.11, 0.36), (0.13, 0.82, 0.05), (0.37, 0.29, 0.34)),
    ((0.09, 0.48, 0.43), (0.47, 0.24, 0.29), (0.27, 0.36, 0.37), (0.35, 0.27, 0.38), (0.17, 0.27, 0.56)),
    ((0.30, 0.46, 0.24), (0.55, 0.25, 0.20), (0.21, 0.72, 0.07), (0.07, 0.68, 0.25), (0.20, 0.20, 0.60)),
    ((0.32, 0.50, 0.18), (0.28, 0.29, 0.43), (0.48, 0.46, 0.06), (0.29, 0.51, 0.20), (0.45, 0.06, 0.49)),
)
REGRESSION_X = (0.9, -1.17)  # means of the predictors, of variance 1 each
REGRESSION_BETA = (-1.79, -2.89, -0.66)  # intercept first
REGRESSION_VARIANCE = 2.0

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Drawn = tuple[Floats, Labels]


class Normals(NamedTuple):
    """A mixture of normals, (mean, sd) each, truncated as a whole to its domain; None for equal weights."""

    parts: tuple[tuple[float, float], ...]
    weights: tuple[float, ...] | None
    domain: tuple[float, float]

    def draw(self, n: int, rng: np.random.Generator) -> Drawn:
        """Return values (n, 1) and their components (n,); a rejected draw chooses its component anew."""
        means, sds = np.array(self.parts).T
        drawn, components = np.empty(n), np.empty(n, dtype=np.int64)
        missing = np.arange(n)
        while missing.size:
            chosen = rng.choice(len(self.parts), missing.size, p=self.weights)
            drawn[missing] = rng.normal(means[chosen], sds[chosen])
            components[missing] = chosen
            missing = missing[(drawn[missing] < self.domain[0]) | (drawn[missing] > self.domain[1])]
        return drawn[:, None], components


THREE_GAUSSIANS = Normals(((-5.0, 1.0), (0.0, 1.0), (5.0, 1.0)), None, (-10.0, 10.0))
WAITING_TIMES = Normals(((4.85, 0.2), (5.9, 0.5)), (0.6, 0.4), (4.49, 7.6))


def three_gaussians(n: int, rng: np.random.Generator) -> Floats:
    """Draw from the equal mixture of N(-5, 1), N(0, 1), N(5, 1) truncated to [-10, 10].

    Source: Beraha, Favaro and Rao (2024), section 4.1.
    """
    return THREE_GAUSSIANS.draw(n, rng)[0]


def three_betas(n: int, rng: np.random.Generator) -> Floats:
    """Draw from the equal mixture of Beta(5, 50), Beta(50, 50) and Beta(50, 5) on [0, 1].

    Source: Beraha, Favaro and Rao (2024), section 4.2.
    """
    return _three_betas(n, rng)[0]


def waiting_times(n: int, rng: np.random.Generator) -> Floats:
    """Draw logarithms of days between two blood donations, on [4.49, 7.6]; simulated, not measured.

    The records of Beraha, Favaro and Rao (2024), section 6 (100 donors, at least 90 days, at most the
    length of the study) are not public. This stands in for them, with the same bounds: many donors come
    back soon after the 90 days, the others within years. Mixture of 0.6 N(4.85, 0.2^2) and
    0.4 N(5.9, 0.5^2), truncated to the bounds; the shape is ours, no estimate from those records.
    """
    return WAITING_TIMES.draw(n, rng)[0]


def dyadic_geometric(n: int, rng: np.random.Generator) -> Floats:
    """Draw from a geometric distribution over the dyadic midpoints 1/2, 1/4, 3/4, 1/8, 3/8, .. of [0, 1].

    The k-th midpoint, by increasing resolution, has probability 0.1 0.9^(k - 1): repeated values, and a
    long tail of rare ones. After Appendix C.2 of the paper on synthesis by Pitman-Yor processes.
    """
    return dyadic_midpoints(rng.geometric(DYADIC_SUCCESS, n))[:, None]


def dyadic_midpoints(k: NDArray[np.integer]) -> Floats:
    """Return the k-th midpoints of `dyadic_geometric`, of k from 1 on."""
    level = np.floor(np.log2(k))
    return np.asarray((2 * (k - 2**level) + 1) / 2 ** (level + 1), dtype=np.float64)


def beta_grid(n: int, rng: np.random.Generator) -> Floats:
    """Draw from the midpoints of 100 cells of [0, 1], weighted by 0.7 Beta(2, 8) + 0.3 Beta(8, 3).

    After Appendix C.1 of the paper on synthesis by Pitman-Yor processes, which weights a regular grid by a
    mixture of two betas.
    """
    grid, weights = beta_grid_law()
    return rng.choice(grid, n, p=weights)[:, None]


def beta_grid_law() -> tuple[Floats, Floats]:
    """Return the points of `beta_grid` and their probabilities, shape (100,) each."""
    grid = (np.arange(100) + 0.5) / 100
    weights = 0.7 * 72 * grid * (1 - grid) ** 7 + 0.3 * 360 * grid**7 * (1 - grid) ** 2
    return grid, weights / weights.sum()


def naive_bayes(n: int, rng: np.random.Generator) -> Floats:
    """Draw five features of three levels each, independent within each of five classes, and the class.

    Source: Ju, Awan, Gong and Rao (2022), section 4. Probabilities of the classes are those of its Table 1;
    those of the levels, which it does not print, were drawn once from Dirichlet(2, 2, 2), and rounded.
    The class stands last, all are whole numbers from 1 on.
    """
    uniform = rng.random((n, len(FIVE_CLASSES_LEVELS) + 1))
    shares, levels = five_classes_law()
    label = (np.cumsum(shares)[:-1] <= uniform[:, -1:]).sum(axis=1)
    below = np.cumsum(levels, axis=2)[:, label, :-1]  # (feature, record, level)
    features = (below <= uniform[:, :-1].T[:, :, None]).sum(axis=2).T
    return np.column_stack([features, label]) + 1.0


def five_classes_law() -> tuple[Floats, Floats]:
    """Return probabilities of classes (5,) and of levels by feature and class (5, 5, 3) of `naive_bayes`."""
    shares = np.array(FIVE_CLASSES)
    return shares / shares.sum(), np.array(FIVE_CLASSES_LEVELS)


def linear_regression(n: int, rng: np.random.Generator) -> Floats:
    """Draw two normal predictors of variance 1, and a response that is linear in them with normal errors.

    Setting: Ju, Awan, Gong and Rao (2022), section 5. Its parameters stand in a supplement; these
    are of the example in the R package dapper, for the same method.
    The response stands last.
    """
    normal = rng.standard_normal((n, len(REGRESSION_X) + 1))
    x = np.array(REGRESSION_X) + normal[:, :-1]
    errors = REGRESSION_VARIANCE**0.5 * normal[:, -1]
    y = REGRESSION_BETA[0] + x @ np.array(REGRESSION_BETA[1:]) + errors
    return np.column_stack([x, y])


def dirichlet(n: int, rng: np.random.Generator, alpha: Sequence[float]) -> Floats:
    """Draw compositions of d parts, rows that sum to 1, from the Dirichlet distribution of d parameters.

    Source: Guo, Barrientos and Pena, section 4.1.
    """
    return rng.dirichlet(np.asarray(alpha, dtype=np.float64), n)


def _three_betas(n: int, rng: np.random.Generator) -> Drawn:
    components = rng.integers(len(THREE_BETAS), size=n)
    a, b = np.array(THREE_BETAS)[components].T
    return rng.beta(a, b)[:, None], components


_DRAWS: dict[str, Callable[[int, np.random.Generator], Drawn]] = {
    "three_gaussians": THREE_GAUSSIANS.draw,
    "three_betas": _three_betas,
    "waiting_times": WAITING_TIMES.draw,
}
SIMULATIONS: dict[str, Callable[[int, np.random.Generator], Floats]] = {
    "three_gaussians": three_gaussians,
    "three_betas": three_betas,
    "waiting_times": waiting_times,
    "dyadic_geometric": dyadic_geometric,
    "beta_grid": beta_grid,
    "naive_bayes": naive_bayes,
    "linear_regression": linear_regression,
}


def simulate_records(
    name: str, n: int, rng: np.random.Generator, alpha: Sequence[float] | None = None
) -> Floats:
    """Return the data set of a name, shape (n, d); `alpha` are the parameters of dirichlet."""
    return SIMULATIONS[name](n, rng) if alpha is None else dirichlet(n, rng, alpha)


def simulate_groups(
    name: str,
    n: int,
    rng: np.random.Generator,
    groups: Sequence[str],
    alpha: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
) -> Floats:
    """Return the data set of a name with the code of each record's group last, shape (n, d + 1).

    Each record is of any group with equal probability; groups differ in `alpha` of dirichlet alone.
    """
    codes = rng.integers(len(groups), size=n)
    if not isinstance(alpha, Mapping):
        return np.column_stack([simulate_records(name, n, rng, alpha), codes])
    values = np.empty((n, len(alpha[groups[0]])))
    for code, group in enumerate(groups):
        own = codes == code
        values[own] = dirichlet(int(own.sum()), rng, alpha[group])
    return np.column_stack([values, codes])


def generators(seed: int | None) -> tuple[np.random.Generator, np.random.Generator]:
    """Return the generators of simulated records and of their noise."""
    records, noise = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    return records, noise


def true_labels(name: str, n: int, seed: int) -> Labels | None:
    """Return the component that each simulated record is from, shape (n,), or None where there are none."""
    return _DRAWS[name](n, generators(seed)[0])[1] if name in _DRAWS else None
