"""How alike synthetic and confidential records are jointly: pairs of columns, propensity scores, predictions.

All of it depends on the confidential records without protection, and is for their curator alone.

* **Pairs.** Two columns of numbers have their correlation, two of labels Cramer's V, one of each the
  correlation ratio (the root of the share of the numbers' variance between labels): what is compared is how
  far those of synthetic records are from those of the confidential ones.
* **pMSE.** A logistic regression tells synthetic records from confidential ones. With fitted probabilities
  p_i of n + m = N records and c = m/N the share of synthetic ones, pMSE = mean (p_i - c)^2. Were the m
  records drawn from the distribution of the n ones, its expectation would be (k - 1)(1 - c)^2 c/N, of k
  coefficients; the ratio of both is 1 then, and grows as records are told apart.
* **Train on synthetic, test on real.** A decision tree predicts each column from the others: trained on
  synthetic records, and tested on half of the confidential ones, beside one trained on the other half. It
  takes scikit-learn.

Sources
-------
- J. Snoke, G. M. Raab, B. Nowok, C. Dibben and A. Slavkovic (2018), General and specific utility measures for
  synthetic data, Journal of the Royal Statistical Society A 181, 663-688, section 2.
- C. Esteban, S. L. Hyland and G. Raetsch (2017), Real-valued (medical) time series generation with recurrent
  conditional GANs, arXiv:1706.02633, section 4.2.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.synthesis.records import Column

__all__ = ["NEEDS", "JointYardstick", "PairOfColumns", "association", "pmse"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEEDS = "scikit-learn is not installed (it is in the extra compare: pip install 'dpmix[compare]')"
"""Why nothing is trained."""

_COUNTED = 4_000_000  # cells of a table that is counted at once
_CATEGORIES = 10
_FEATURES = 60
_STEPS = 25
_RECORDS = 5  # synthetic records at least for each coefficient
_TRAINED = 10_000
_CLASSES = 100  # of a column at most that trees predict
_ONE_THREAD = 200_000  # multiplications
_ROWS = 200_000


class PairOfColumns(NamedTuple):
    """Two columns, by number, and what is measured of them."""

    one: int
    other: int
    measure: str


def association(one: Floats, other: Floats, measure: str) -> float:
    """Return how two columns go together; 0 where one of them is constant.

    Parameters
    ----------
    one, other : ndarray of float64, shape (n,)
        Numbers, or codes of labels; of a correlation ratio the first holds the numbers.
    measure : str
        correlation, cramers_v or correlation_ratio.
    """
    if measure == "correlation":
        a, b = one - one.mean(), other - other.mean()
        scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
        return float((a * b).sum()) / scale if scale > 0.0 else 0.0
    codes = other.astype(np.int64)
    if measure == "correlation_ratio":
        sizes, centred = np.bincount(codes), one - one.mean()
        sums = np.bincount(codes, weights=centred)
        total = float((centred * centred).sum())
        between = float((sums[sizes > 0] ** 2 / sizes[sizes > 0]).sum())
        return float(np.sqrt(min(1.0, between / total))) if total > 0.0 else 0.0
    rows = one.astype(np.int64)
    by_row, by_code = np.bincount(rows), np.bincount(codes)
    least = min(np.count_nonzero(by_row), np.count_nonzero(by_code)) - 1
    if least < 1:
        return 0.0
    both = rows * len(by_code) + codes
    if len(by_row) * len(by_code) <= _COUNTED:
        counts = np.bincount(both)
        cells = np.flatnonzero(counts)
        counts = counts[cells]
    else:
        cells, counts = np.unique(both, return_counts=True)
    expected = by_row[cells // len(by_code)] * (by_code[cells % len(by_code)] / len(one))
    # of n cells without records chi^2/n takes what those with them have above one
    squared = float((counts * (counts / expected)).sum()) / len(one) - 1.0
    return float(np.sqrt(max(0.0, squared) / least))


def pmse(features: Floats, synthetic: NDArray[np.bool_]) -> tuple[float, float]:
    """Return pMSE of a logistic regression, and its expectation were all records of one distribution.

    Parameters
    ----------
    features : ndarray of float64, shape (N, columns)
        A column of ones among them; columns may depend on one another.
    synthetic : ndarray of bool, shape (N,)
    """
    share = float(synthetic.mean())
    size, axes = np.linalg.eigh(_products(features, features))
    kept = size > size[-1] * 1e-9
    turned = axes[:, kept] * np.sqrt(len(features) / size[kept])
    x = np.concatenate([part @ turned for part in _blocks(features, turned.size)])
    k, wanted = x.shape[1], synthetic.astype(np.float64)
    ones = _products(x, np.ones((len(x), 1)))[:, 0] / len(x)  # what the intercept is, as x'x = N
    beta = ones * math.log(share / (1.0 - share))
    found = np.full(len(x), share)
    for _ in range(_STEPS):
        weights = np.maximum(found * (1.0 - found), 1e-10)
        slope = (x * (wanted - found)[:, None]).sum(axis=0)
        step = np.linalg.solve(_products(x * weights[:, None], x) + 1e-8 * np.eye(k), slope)
        beta = beta + np.clip(step, -5.0, 5.0)
        found = 1.0 / (1.0 + np.exp(-np.clip((x * beta).sum(axis=1), -30.0, 30.0)))
        if np.abs(step).max() < 1e-8:
            break
    expected = (k - 1) * (1.0 - share) ** 2 * share / len(x)
    return float(((found - share) ** 2).mean()), expected


def _blocks(x: Floats, width: int) -> list[Floats]:
    """Cut rows into blocks whose products with so many numbers one thread forms: more of them wait."""
    rows = max(1, _ONE_THREAD // width)
    return [x[start : start + rows] for start in range(0, len(x), rows)]


def _products(x: Floats, y: Floats) -> Floats:
    """Return x'y, shape (columns of x, columns of y)."""
    width = x.shape[1] * y.shape[1]
    found = np.zeros((x.shape[1], y.shape[1]))
    for one, other in zip(_blocks(x, width), _blocks(y, width), strict=True):
        found += one.T @ other
    return found


class JointYardstick:
    """Measures synthetic records against the confidential ones, several columns at a time.

    Parameters
    ----------
    columns : tuple of Column
    values : ndarray of float64, shape (n, d)
        Confidential: numbers, and codes of labels.
    """

    def __init__(self, columns: tuple[Column, ...], values: Floats) -> None:
        self.columns = columns
        self._values = values
        numeric = [column.bounds is not None for column in columns]
        self.pairs: tuple[PairOfColumns, ...] = tuple(
            PairOfColumns(i, j, "correlation")
            if numeric[i] and numeric[j]
            else PairOfColumns(*((i, j) if numeric[i] else (j, i)), "correlation_ratio")
            if numeric[i] or numeric[j]
            else PairOfColumns(i, j, "cramers_v")
            for i, j in combinations(range(len(columns)), 2)
        )
        self.associations = self.of_pairs(values)
        self._frequent: dict[int, Ints] = {}
        self._rest: dict[int, bool] = {}  # whether there may be others than these
        self._scales: dict[int, tuple[float, float]] = {}
        for i, column in enumerate(columns):
            if column.bounds is not None:
                sd = float(values[:, i].std())
                self._scales[i] = float(values[:, i].mean()), sd if sd > 0.0 else 1.0
            else:
                counts = np.bincount(values[:, i].astype(np.int64))
                self._frequent[i] = np.argsort(-counts, kind="stable")[:_CATEGORIES]
                self._rest[i] = column.free or len(column.categories or ()) > len(self._frequent[i])
        order = np.random.default_rng(0).permutation(len(values))
        half = len(values) // 2
        self._test, self._train = values[order[:half][:_TRAINED]], values[order[half:][:_TRAINED]]
        self.trains = importlib.util.find_spec("sklearn") is not None and len(columns) > 1 and half >= 10

    def of_pairs(self, values: Floats) -> Floats:
        """Return the association of each pair of columns, shape (pairs,)."""
        return np.array([association(values[:, i], values[:, j], how) for i, j, how in self.pairs])

    def told_apart(self, values: Floats) -> dict[str, float]:
        """Return `pmse` and `pmse_ratio` of synthetic records; nothing of too few of them."""
        own = self._values[:_ROWS]
        both = np.concatenate([own, values[:_ROWS]])
        features = self._features(both)
        synthetic = np.arange(len(both)) >= len(own)
        if min(len(own), len(both) - len(own)) < _RECORDS * features.shape[1]:
            return {}
        found, expected = pmse(features, synthetic)
        return {"pmse": found, "pmse_ratio": found / expected} if expected > 0.0 else {}

    @property
    def baseline(self) -> dict[str, float]:
        """Scores of predictions of each column by trees that confidential records train."""
        return self.predictions(self._train) if self.trains else {}

    def predictions(self, values: Floats) -> dict[str, float]:
        """Return the score of predictions of each column: R^2 of numbers, the share that is right of labels.

        Parameters
        ----------
        values : ndarray of float64, shape (m, d)
            What is trained on.
        """
        trees: Any = importlib.import_module("sklearn.tree")
        values = values[:_TRAINED]
        settings: dict[str, Any] = {"max_depth": 6, "min_samples_leaf": 5, "random_state": 0}
        found: dict[str, float] = {}
        for i, column in enumerate(self.columns):
            others = [j for j in range(len(self.columns)) if j != i]
            if column.bounds is None and len(np.unique(self._train[:, i])) > _CLASSES:
                continue
            made = trees.DecisionTreeRegressor if column.bounds else trees.DecisionTreeClassifier
            tree = made(**settings).fit(self._plain(values, others), values[:, i])
            guess, truth = tree.predict(self._plain(self._test, others)), self._test[:, i]
            if column.bounds is None:
                found[column.name] = float((guess == truth).mean())
                continue
            spread = float(((truth - truth.mean()) ** 2).sum())
            if spread > 0.0:
                found[column.name] = 1.0 - float(((truth - guess) ** 2).sum()) / spread
        return found

    def _plain(self, values: Floats, columns: list[int]) -> Floats:
        """Return numbers as they are, and of labels which of the frequent ones they are."""
        parts: list[Floats] = []
        for i in columns:
            parts += [values[:, i]] if i in self._scales else self._first_order(values, i)
        return np.column_stack(parts)

    def _first_order(self, values: Floats, index: int) -> list[Floats]:
        """Return a standardized number, or an indicator of each frequent label but the most frequent one."""
        part = values[:, index]
        if index in self._scales:
            mean, sd = self._scales[index]
            return [(part - mean) / sd]
        frequent = self._frequent[index]
        found = [(part == code).astype(np.float64) for code in frequent[1:]]
        if not self._rest[index]:
            return found
        return [*found, (~np.isin(part, frequent)).astype(np.float64)]

    def _features(self, values: Floats) -> Floats:
        """Return ones, each column with the squares of numbers, and products of pairs as there is room."""
        first = [self._first_order(values, i) for i in range(len(self.columns))]
        parts = [np.ones(len(values)), *(part for own in first for part in own)]
        parts += [first[i][0] ** 2 for i in self._scales]
        for one, other in combinations(first, 2):
            if len(parts) + len(one) * len(other) <= _FEATURES:
                parts += [a * b for a in one for b in other]
        return np.column_stack(parts)
