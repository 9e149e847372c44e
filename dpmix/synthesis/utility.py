"""How near synthetic records are to the confidential ones: distances, statistics, and what goes together.

All of it depends on the confidential records without protection, and is for their curator alone.

Numbers are compared by the 1-Wasserstein distance of the empirical measures,

    W1(F, G) = integral of |F(x) - G(x)| dx = integral of |F^-1(u) - G^-1(u)| du

in one dimension, exact for samples of any two sizes in O((n + m) log(n + m)), which is what sorting costs.
Several numeric columns, each scaled by its public bounds to [0, 1], are compared by the sliced distance, the
mean of W1 over projections on fixed directions, and, where the samples are small, by exact transport at
Euclidean cost. Labels are compared by the total variation distance of their shares.

How columns go together is compared in three ways:

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
- C. Villani (2009), Optimal Transport: Old and New, chapter 6.
- N. Bonneel, J. Rabin, G. Peyre and H. Pfister (2015), Sliced and Radon Wasserstein barycenters of measures,
  Journal of Mathematical Imaging and Vision 51, 22-45.
- J. Snoke, G. M. Raab, B. Nowok, C. Dibben and A. Slavkovic (2018), General and specific utility measures for
  synthetic data, Journal of the Royal Statistical Society A 181, 663-688, section 2.
- C. Esteban, S. L. Hyland and G. Raetsch (2017), Real-valued (medical) time series generation with recurrent
  conditional GANs, arXiv:1706.02633, section 4.2.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

if TYPE_CHECKING:
    from dpmix.synthesis.records import Column, Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = tuple[tuple[str, ...] | None, ...]

DIRECTIONS = 50
"""Directions of the sliced distance."""
ASSIGNED = 1_000
"""Records at most on each side of an assignment: the least common multiple of both sizes."""
TRANSPORTED = 20_000
"""Pairs of records at most in a linear programme."""
SHOWN = 50
"""Categories of a column at most whose shares are kept: the most frequent of the confidential records."""
NEEDS = "scikit-learn is not installed (it is in the extra compare: pip install 'dpmix[compare]')"
"""Why nothing is trained."""

_KEPT = 20_000_000  # numbers of sorted projections that are kept
_COUNTED = 4_000_000  # cells of a table that is counted at once
_CATEGORIES = 10  # of a column that have an indicator
_FEATURES = 60  # of a logistic regression
_STEPS = 25  # of Newton
_RECORDS = 5  # synthetic records at least for each coefficient
_TRAINED = 10_000
_CLASSES = 100  # of a column at most that trees predict
_ONE_THREAD = 200_000  # multiplications
_ROWS = 200_000

# Column by column, and all numbers together


class Figures(NamedTuple):
    """What is measured of one synthetic data set, or of the confidential records themselves.

    Parameters
    ----------
    joint : dict
        Of whole records: `distinct` (their number), `repeats` (share of the synthetic records that are equal
        to a confidential one), with several numeric columns `sliced_w1` and, where it was computed,
        `exact_w1` (in units of the bounds' widths), with several columns of labels `total_variation`.
    columns : tuple of dict
        Of a numeric column `mean`, `sd` (of the empirical measure: divided by the number of records), `q25`,
        `q50`, `q75` and `w1` in the data's units, `w1_scaled` in units of the bounds' width; of a column of
        labels `total_variation`.
    shares : tuple
        Of a column of labels the shares of the categories that the yardstick shows, shape (categories,);
        None of numbers.
    """

    joint: dict[str, float]
    columns: tuple[dict[str, float], ...]
    shares: tuple[Floats | None, ...]


class Yardstick:
    """Measures synthetic records against the confidential ones.

    Parameters
    ----------
    records : Records
        Confidential.
    """

    def __init__(self, records: Records) -> None:
        self.columns: tuple[Column, ...] = records.columns
        self._values = records.values
        self._labels = records.labels
        self._rows = SortedRows(records.values)
        self._numeric = [i for i, column in enumerate(records.columns) if column.bounds is not None]
        self._textual = [i for i, column in enumerate(records.columns) if column.bounds is None]
        self._sorted = {i: np.sort(records.values[:, i]) for i in self._numeric}
        self._directions = directions(len(self._numeric), DIRECTIONS) if len(self._numeric) > 1 else None
        self._scaled = self._unit(records.values)
        self._projected: list[Floats] | None = None
        if self._directions is not None and self._scaled.shape[0] * DIRECTIONS <= _KEPT:
            self._projected = [_sorted_along(self._scaled, direction) for direction in self._directions]
        self._shares: dict[int, Floats] = {}
        self._shown: dict[int, NDArray[np.intp]] = {}
        for i in self._textual:
            counts = np.bincount(
                records.values[:, i].astype(np.int64), minlength=len(records.labels[i] or ())
            )
            self._shares[i] = counts / records.n
            self._shown[i] = np.sort(np.argsort(-counts, kind="stable")[:SHOWN])

    @property
    def confidential(self) -> Figures:
        """The confidential records' own figures; nothing that compares."""
        shares = tuple(
            self._shares[i][self._shown[i]] if i in self._shown else None for i in range(len(self.columns))
        )
        plain = tuple(
            _statistics(self._sorted[i]) if i in self._sorted else {} for i in range(len(self.columns))
        )
        return Figures({"distinct": float(self._rows.distinct)}, plain, shares)

    def shown(self, index: int) -> tuple[str, ...]:
        """Return the categories of a column of labels whose shares are kept, in their own order."""
        names = self._labels[index]
        assert names is not None  # labels
        return tuple(names[place] for place in self._shown[index])

    def measure(self, values: Floats, labels: Labels) -> Figures:
        """Measure synthetic records (m, d), of which codes stand for these labels, None for numbers."""
        values = self.in_known_codes(values, labels)
        joint = {
            "distinct": float(SortedRows(values).distinct),
            "repeats": float(self._rows.holds(values).mean()),
        }
        columns: list[dict[str, float]] = []
        shares: list[Floats | None] = []
        for i, column in enumerate(self.columns):
            if column.bounds is not None:
                ordered = np.sort(values[:, i])
                distance = wasserstein(self._sorted[i], ordered)
                width = column.bounds[1] - column.bounds[0]
                columns.append({**_statistics(ordered), "w1": distance, "w1_scaled": distance / width})
                shares.append(None)
                continue
            known = self._shares[i]
            found = np.bincount(values[:, i].astype(np.int64), minlength=len(known)) / len(values)
            outside = found[len(known) :].sum()
            found = found[: len(known)]
            columns.append({"total_variation": float(np.abs(found - known).sum() + outside) / 2})
            shares.append(found[self._shown[i]])
        if self._directions is not None:
            joint |= self._distances(self._unit(values))
        if len(self._textual) > 1:
            joint["total_variation"] = _joint_variation(
                self._values[:, self._textual], values[:, self._textual]
            )
        return Figures(joint, tuple(columns), tuple(shares))

    def _unit(self, values: Floats) -> Floats:
        """Return the numeric columns, each scaled by its bounds to [0, 1]."""
        parts = []
        for i in self._numeric:
            low, high = self.columns[i].bounds or (0.0, 1.0)
            parts.append((values[:, i] - low) / (high - low))
        return np.column_stack(parts) if parts else np.empty((len(values), 0))

    def _distances(self, points: Floats) -> dict[str, float]:
        assert self._directions is not None  # several numeric columns
        total = 0.0
        for k, direction in enumerate(self._directions):
            known = _sorted_along(self._scaled, direction) if self._projected is None else self._projected[k]
            total += wasserstein(known, _sorted_along(points, direction))
        found = {"sliced_w1": total / len(self._directions)}
        exact = transport(self._scaled, points)
        return found if exact is None else found | {"exact_w1": exact}

    def in_known_codes(self, values: Floats, labels: Labels) -> Floats:
        """Recode free labels: by text as in the confidential records, and others after them."""
        found = values + 0.0  # makes one zero of two
        for i in self._textual:
            names, known = labels[i], self._labels[i]
            assert names is not None and known is not None  # labels, on both sides
            if names != known:
                places = {name: code for code, name in enumerate(known)}
                codes = [places.setdefault(name, len(places)) for name in names]
                found[:, i] = np.array(codes, dtype=np.float64)[values[:, i].astype(np.int64)]
        return found


def _sorted_along(points: Floats, direction: Floats) -> Floats:
    """Return sorted projections; as a matrix product they would wake threads, which take longer."""
    return np.sort((points * direction).sum(axis=1))


def wasserstein(first: Floats, second: Floats) -> float:
    """Return the 1-Wasserstein distance of two samples of one number each, sorted, exactly."""
    if len(first) == len(second):
        return float(np.abs(first - second).mean())
    left, right, weights = _coupling(len(first), len(second))
    return float((np.abs(first[left] - second[right]) * weights).sum())  # a dot product would wake threads


@lru_cache(maxsize=2)
def _coupling(n: int, m: int) -> tuple[Ints, Ints, Floats]:
    """Return which of n sorted numbers goes with which of m, and the weight of each such pair.

    Both quantile functions are constant between neighbours among the i/n and the j/m, which are whole numbers
    of 1/(n m).
    """
    ends = np.union1d(m * np.arange(n + 1, dtype=np.int64), n * np.arange(m + 1, dtype=np.int64))
    return ends[:-1] // m, ends[:-1] // n, np.diff(ends) / (n * m)


def directions(dimensions: int, count: int) -> Floats:
    """Return unit vectors (count, dimensions), always the same: even in the plane, else a normal sample's."""
    if dimensions == 2:
        angles = math.pi * (np.arange(count) + 0.5) / count
        return np.column_stack((np.cos(angles), np.sin(angles)))
    drawn = np.random.default_rng(0).standard_normal((count, dimensions))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def transport(first: Floats, second: Floats) -> float | None:
    """Return the exact W1 of two samples of points (n, d) at Euclidean cost, or None where that is too long.

    Each point is repeated so that both samples have as many, the least common multiple, and these are
    assigned; where there are too many, few pairs of points are left to a linear programme.
    """
    n, m = len(first), len(second)
    size = math.lcm(n, m)
    if size > ASSIGNED and n * m > TRANSPORTED:
        return None
    cost = cdist(first, second)
    if size <= ASSIGNED:
        cost = np.repeat(np.repeat(cost, size // n, axis=0), size // m, axis=1)
        return float(cost[linear_sum_assignment(cost)].mean())
    pairs = np.arange(n * m)
    sums = csr_array(
        (np.ones(2 * n * m), (np.concatenate((pairs // m, n + pairs % m)), np.concatenate((pairs, pairs)))),
        shape=(n + m, n * m),
    )
    margins = np.concatenate((np.full(n, 1 / n), np.full(m, 1 / m)))
    # one margin follows from the others
    solved = linprog(cost.ravel(), A_eq=sums[:-1], b_eq=margins[:-1], bounds=(0, None), method="highs")
    return float(solved.fun) if solved.status == 0 else None


def _statistics(ordered: Floats) -> dict[str, float]:
    """Return mean, sd and quartiles of sorted numbers."""
    quartiles = np.quantile(ordered, (0.25, 0.5, 0.75))
    found = {"mean": float(ordered.mean()), "sd": float(ordered.std())}
    return found | {f"q{q}": float(x) for q, x in zip((25, 50, 75), quartiles, strict=True)}


def _joint_variation(first: Floats, second: Floats) -> float:
    """Return the total variation distance of the shares of whole rows of codes."""
    both = np.concatenate((first, second))
    _, places = np.unique(both, axis=0, return_inverse=True)
    places = places.ravel()
    size = int(places.max()) + 1
    of_first = np.bincount(places[: len(first)], minlength=size) / len(first)
    of_second = np.bincount(places[len(first) :], minlength=size) / len(second)
    return float(np.abs(of_first - of_second).sum()) / 2


# Whole records looked up among others


class SortedRows:
    """Records to look others up in, in O(log n) a record and column.

    A record is numbered column by column: its number by the columns so far, with the place of its next value
    among that column's values, is looked up among the pairs that occur.

    Parameters
    ----------
    values : ndarray of float64, shape (n, d)
    """

    def __init__(self, values: Floats) -> None:
        self._known: list[tuple[Floats, Ints]] = []
        numbers = np.zeros(len(values), dtype=np.int64)
        for column in values.T:
            kept, places = np.unique(column, return_inverse=True)
            pairs, numbers = np.unique(numbers * len(kept) + places, return_inverse=True)
            self._known.append((kept, pairs))
        self.distinct = int(numbers.max()) + 1

    def holds(self, values: Floats) -> NDArray[np.bool_]:
        """Return whether each of other records is equal to one of these, shape (m,)."""
        found = np.ones(len(values), dtype=np.bool_)
        numbers = np.zeros(len(values), dtype=np.int64)
        for column, (kept, pairs) in zip(values.T, self._known, strict=True):
            places, there = _among(column, kept)
            numbers, paired = _among(numbers * len(kept) + places, pairs)
            found &= there & paired
        return found


def _among(wanted: Floats | Ints, known: Floats | Ints) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the place of each among sorted values, and whether it is there at all."""
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1).astype(np.int64)
    return places, np.asarray(known[places] == wanted)


# Several columns at a time


class PairOfColumns(NamedTuple):
    """Two columns, by number, and what is measured of them."""

    one: int
    other: int
    measure: str


def association(one: Floats, other: Floats, measure: str) -> float:
    """Return how two columns (n,) go together; 0 where one of them is constant.

    The measure is a correlation, cramers_v of codes of labels, or the correlation_ratio of numbers, the
    first, and codes.
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

    `features` (N, columns) have a column of ones among them, and may depend on one another.
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
        """Return the score of predictions of each column by trees that `values` train.

        That is R^2 of numbers, and the share that is right of labels.
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
