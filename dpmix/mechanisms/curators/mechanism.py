"""What draws a release from confidential records: it states its guarantee, and tells audits what to try.

All of it is `Sanitizer`: mechanisms of all kinds are `Mechanism`, those that add noise to each record by
itself `LocalAdditive`, and what draws synthetic records is `dpmix.synthesis.generator.Generator`. An audit
asks for neighbouring databases that are hard to keep apart, for the privacy loss of what is drawn of them,
and for a twin that is weaker than it claims; what several mechanisms answer stands last.

The privacy loss of a release is the log ratio of its densities under two neighbouring databases, as the
mechanism claims them: by Neyman and Pearson no event of the same probability under one database is less
probable under the other than one told by it. The densities are in real numbers, worked out apart from the
code that releases; where the noise is other than claimed, the ratio still orders releases well.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.laws.additive import noise_of_scale
from dpmix.laws.every import law_of
from dpmix.mechanisms.curators.private_groups import Groups
from dpmix.numerics.in_words import brief
from dpmix.privacy.accounting import Guarantee, compose, sum_up
from dpmix.privacy.exact import source_of
from dpmix.privacy.near_outputs import LARGEST_EPSILON, NearOutputs, draw_columns
from dpmix.privacy.noise import AdditiveNoise, Kind, noisy, released_order
from dpmix.release.sanitized import Release

if TYPE_CHECKING:
    from dpmix.data.loading import Data

Floats = NDArray[np.float64]
Pairs = tuple[tuple[float, float], ...]
Progress = Callable[[int], None]
Seeded = np.random.Generator | None
"""What simulations draw from; None for the operating system's randomness."""
Released = tuple[Release, tuple[int, ...]]
"""A release, and how many values of each column were clamped: the curator's to see, and no part of it."""
NoisyCells = tuple[int, float]
"""Number of the cells that the records are counted in, and their noise's standard deviation."""
Loss = Callable[[Floats], Floats]
"""From releases, shape (runs, q), as an audit has them told, to their losses, shape (runs,)."""
Stated = tuple[dict[str, Any], Guarantee]
"""What a kind's own part of a law states of a release made elsewhere, and its guarantee by formula."""

BEYOND = 8.0
"""Widths of the domain by which an input may lie outside."""
HALF_NOISE = "noise of half the scale"
TWICE_EPSILON = "twice the epsilon"
"""Faults that give away about twice as much, planted to see whether an audit would find them."""
SMALLEST_WEIGHT = 1e-300
"""Of smoothing that is drawn with."""


class PublicRecords(NamedTuple):
    """What is public of the records.

    Parameters
    ----------
    columns : int
        Number of columns.
    n : int or None
        Number of records; None where it is not known, or the mechanism's own.
    names : tuple of str
        Names of the columns, where they are known.
    categories : sequence of tuple of str or None
        Public categories of each column, where it has any.
    groups : Groups or None
        Groups whose sizes are private.
    """

    columns: int
    n: int | None = None
    names: tuple[str, ...] = ()
    categories: Sequence[tuple[str, ...] | None] = ()
    groups: Groups | None = None


@dataclass(frozen=True)
class Pair:
    """Two neighbouring databases.

    Parameters
    ----------
    words : str
        How they differ.
    one, other : ndarray, shape (n, d), or (n, d + 1)
        The same but for one record; codes of groups stand last, where there are groups.
    """

    words: str
    one: Floats
    other: Floats


class Sanitizer(abc.ABC):
    """What draws a release from confidential records: it is public, and knows its own guarantee."""

    kind: ClassVar[str]

    @property
    @abc.abstractmethod
    def guarantee(self) -> Guarantee:
        """Guarantee of the whole release."""

    @property
    def of_any_number(self) -> bool:
        """Whether noise and guarantee are the same for every number of records, a field ``n``."""
        return False

    @property
    def noisy_cells(self) -> NoisyCells | None:
        """Cells of a table of counts and the standard deviation of their noise; None where there is none."""
        return None

    @property
    def uniform_share(self) -> float | None:
        """About what share of synthetic records ignores the data; None where it is noise that protects."""
        return None

    @property
    def ignoring(self) -> tuple[str, str]:
        """What the records of `uniform_share` are, and what to take to have fewer of them."""
        return "uniform over all cells", "fewer cells, fewer records or a larger epsilon"

    @property
    def noise_share(self) -> float | None:
        """What share of synthetic records, at most, noise alone places; None where no noise protects."""
        return None

    @property
    def republished(self) -> str:
        """Say which records, or parts of them, are published as they are; empty where none are."""
        return ""

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return everything public about it, for JSON."""

    @abc.abstractmethod
    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee: numbers, or lists over columns."""

    @abc.abstractmethod
    def in_words(self, columns: Sequence[str]) -> str:
        """Say in one clause what is done, such as "Laplace noise of scale 2 on x"."""

    @abc.abstractmethod
    def release(self, records: Any, progress: Progress | None = None) -> Released:
        """Release records: real ones by the operating system's randomness, simulated ones by their ``rng``'s.

        Parameters
        ----------
        records : dpmix.data.loading.Data, or of generators dpmix.synthesis.records.Records
            Confidential, or simulated.
        progress : callable, optional
            Called with the number of values done, of n times d, by mechanisms that tell it.

        Raises
        ------
        PrivacyError
            When they are none that it takes, or not as many as the guarantee is for.
        """

    def made(
        self,
        values: Floats,
        columns: Sequence[str],
        n: int,
        *,
        private: bool,
        chosen: Mapping[str, Any] | None = None,
        labels: tuple[tuple[str, ...] | None, ...] = (),
        order: str | None = None,
    ) -> Release:
        """Return released values (rows, columns) of n records with the guarantee.

        What is not `private` was seeded, of simulated records. `chosen` is what is public of this release
        beside `describe`; labels and order are as in `Release`.
        """
        total = self.guarantee
        stated = self.describe() | dict(chosen or {})
        if not private and "granularity" in stated:
            stated["granularity"] = None
        law = law_of(stated)
        return Release(
            values=values,
            columns=tuple(columns),
            mechanism=law,
            epsilon=total.epsilon,
            delta=total.delta,
            rho=total.rho,
            n=n,
            adjacency=total.adjacency,
            proved=total.proved,
            trust=law.trust,
            private=private,
            simulated=not private,
            labels=labels,
            order=order,
        )

    # What an audit asks, of it and not of its law, which is no judge of records

    def of_records(self, n: int) -> Self:
        """Return it for another number of records, where its kind lets that be."""
        known: Any = self
        return self if known.n == n else replace(known, n=n)

    def audited_at(self, n: int) -> Self:
        """Return it for n records, where `of_any_number`: of fewer an audit learns as much."""
        return self.of_records(n)

    @abc.abstractmethod
    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield neighbouring databases, of public bounds and categories, that are hard to keep apart.

        Raises
        ------
        PrivacyError
            Where there is nothing public to make them of.
        """

    @abc.abstractmethod
    def numbers(self, columns: int, n: int) -> int:
        """Return how many numbers a release of n records goes through, as an audit has to reckon it."""

    @abc.abstractmethod
    def told_of(self, database: Floats, columns: Sequence[str], runs: int) -> Floats:
        """Draw releases of a database, shape (runs, q): all numbers that an audit is told of each."""

    def strays(self, pair: Pair) -> bool | None:
        """Whether releases have values beyond the public bounds; None of mechanisms, whose noise does so."""
        return None

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the log ratio of the densities of releases of two databases, as it claims them.

        Returns
        -------
        callable or None
            From releases, shape (runs, q), to their losses, shape (runs,); None where the densities are not
            known in closed form.
        """
        return None

    def weakened(self) -> tuple[str, Self] | None:
        """Return what is wrong with a twin that gives away twice as much, and it; None for want of one."""
        return None


class Mechanism(Sanitizer):
    """A way of releasing records, as numbers and codes of categories."""

    domain: Pairs

    def check(self, values: Floats) -> None:
        """Refuse, before anything is spent or drawn, what `privatize` would refuse.

        Raises
        ------
        DataError, PrivacyError
            When the values are none that the mechanism takes.
        """

    def random_records(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw records (n, d) of nobody that the mechanism takes: here, within its bounds."""
        low, high = np.array(self.domain, dtype=np.float64).T
        return rng.uniform(low, high, size=(n, low.size))

    def release(self, records: Data, progress: Progress | None = None) -> Released:
        """Release records; see `Sanitizer`."""
        if records.rng is not None:
            return self.simulate(records.values, records.columns, records.rng)
        return self.privatize(records.values, records.columns, progress)

    def privatize(self, values: Floats, columns: Sequence[str], progress: Progress | None = None) -> Released:
        """Release the values with noise from the operating system's randomness.

        Parameters
        ----------
        values : ndarray of float64, shape (n, d)
            Confidential.
        columns : sequence of str
            Their names.
        progress : callable, optional
            Called with the number of values done, of n times d.

        Raises
        ------
        PrivacyError
            When the values are not finite float64 numbers of shape (n, d), or too many.
        """
        found = self._released(values, columns, None, progress)
        if progress is not None:
            progress(values.size)
        return found

    def simulate(self, values: Floats, columns: Sequence[str], rng: np.random.Generator) -> Released:
        """Release simulated values with seeded noise; the release says it is not private."""
        return self._released(values, columns, rng, None)

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        """Release values by the operating system's randomness, or simulated ones by `rng`'s.

        A mechanism has this, or `privatize` and `simulate` of its own.
        """
        raise NotImplementedError

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record goes far; mechanisms without bounds say what theirs are."""
        if not self.domain:
            raise PrivacyError(f"{self.kind} has no public bounds, of which databases to audit it are made")
        low, high = np.array(self.domain, dtype=np.float64).T
        base, beyond = np.tile(low, (n, 1)), BEYOND * (high - low)
        yield moved("a record goes from the lower bounds to the upper", base, low, high)
        words = "a record goes from far below the bounds to far above"
        yield moved(words, base, low - beyond, high + beyond)

    def numbers(self, columns: int, n: int) -> int:
        """Return the number of values."""
        return n * columns

    def told_of(self, database: Floats, columns: Sequence[str], runs: int) -> Floats:
        """Draw releases: their values, and what was chosen with noise; see `Sanitizer`."""
        if self.guarantee.trust == "local":  # records are released by themselves: one call is as many runs
            release, _ = self.privatize(np.repeat(database, runs, axis=0), columns)
            return np.asarray(release.values, dtype=np.float64)
        releases = (self.privatize(database, columns)[0] for _ in range(runs))
        return np.array([[*np.ravel(each.values).tolist(), *each.mechanism.told()] for each in releases])


# Noise on each record by itself


@dataclass(frozen=True)
class LocalAdditive(Mechanism):
    """Noise added to each number of each record by itself (methods, section 2).

    A record's number y in column l is clamped to the public [lo_l, hi_l] and released as y + noise of scale
    s_l. Replacing the record moves it by at most D_l = hi_l - lo_l, rounded up.

    Parameters
    ----------
    domain : tuple of (lo, hi)
        Public bounds, one pair per column.
    scale : tuple of float
        Noise scale per column, in its units.
    calibration : str
        How the scale was found.
    requested : dict
        What was asked for, such as ``{"epsilon": 5.0}``.
    delta : float or None
        The delta at which Gaussian noise is stated as (epsilon, delta).
    order : str
        ``"shuffled"``: rows are released in random order; ``"public"``: in their own, which says nothing.
    """

    kind: ClassVar[Kind]
    domain: Pairs
    scale: tuple[float, ...]
    calibration: str
    requested: dict[str, float] = field(default_factory=dict)
    delta: float | None = None
    order: str = "shuffled"

    def __post_init__(self) -> None:
        """Check that scales and bounds go together."""
        if len(self.scale) != len(self.domain):
            raise PrivacyError(f"{len(self.scale)} noise scales for {len(self.domain)} pairs of bounds")

    @property
    def sensitivity(self) -> tuple[float, ...]:
        """Width of each column's domain, rounded up."""
        return tuple(width(pair) for pair in self.domain)

    @property
    def noises(self) -> tuple[AdditiveNoise, ...]:
        """The noise of each column."""
        pairs = zip(self.scale, self.sensitivity, strict=True)
        return tuple(AdditiveNoise(self.kind, s, d) for s, d in pairs)

    @property
    def guarantee(self) -> Guarantee:
        """Total guarantee over a record's columns, from the noise library's own privacy map."""
        return compose(self.kind, [noise.loss for noise in self.noises], delta=self.delta)

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return {
            "kind": self.kind,
            "scale": list(self.scale),
            "domain": [list(pair) for pair in self.domain],
            "sensitivity": list(self.sensitivity),
            "calibration": self.calibration,
            "requested": dict(self.requested),
            "granularity": [noise.grid for noise in self.noises],
        }

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee: numbers, or lists over columns."""
        found = {"scale": self.scale, "sensitivity": self.sensitivity}
        return {name: v[0] if len(v) == 1 else list(v) for name, v in found.items()}

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        pairs = zip(self.scale, columns, strict=True)
        scales = ", ".join(f"{brief(scale, 6)} on {name}" for scale, name in pairs)
        return f"{noise_of_scale(self.kind)} {scales}, {order_in_words(self.order)}"

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        bounded, clamped = clamp(self.kind, self.domain, values)
        n = len(bounded)
        released = np.empty(bounded.shape)
        order, rows = released_order(self.order, n, rng)
        for column, noise in enumerate(self.noises):
            report = None if progress is None else lambda done, before=column * n: progress(before + done)
            own = np.ascontiguousarray(bounded[rows, column])
            released[:, column] = noisy(noise, own, rng, report)
        return self.made(released, columns, n, private=rng is None, order=order), clamped

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of noise on the first record; see `Mechanism`."""
        first, second = (clamp(self.kind, self.domain, x)[0][0] for x in (one, other))
        return additive_loss(first, second, np.array(self.scale), self.kind)

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise; see `Mechanism`."""
        return HALF_NOISE, replace(self, scale=tuple(s / 2 for s in self.scale))


# Outputs that are near what a record has, each as likely as any other near one


@dataclass(frozen=True, kw_only=True)
class NearAnswers(Mechanism):
    """A mechanism whose output for a record is one near what it has, r times as likely as each far one.

    Parameters
    ----------
    ratio : Fraction
        r.
    requested : dict
        What was asked for.
    order : str
        ``"shuffled"``: rows are released in random order; ``"public"``: in their own, which says nothing.
    """

    ratio: Fraction
    requested: dict[str, float] = field(default_factory=dict)
    order: str = "shuffled"

    def _released_near(
        self,
        responses: Sequence[NearOutputs],
        inputs: NDArray[np.int64],
        columns: Sequence[str],
        rng: Seeded,
        progress: Progress | None = None,
        labels: tuple[tuple[str, ...] | None, ...] = (),
    ) -> Release:
        """Release inputs (n, d) by the response of each column."""
        order, rows = released_order(self.order, len(inputs), rng)
        released = draw_columns(responses, inputs[rows], source_of(rng), progress)
        return self.made(released, columns, len(released), private=rng is None, labels=labels, order=order)

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with the square of its ratio; None where that is beyond what is drawn with."""
        epsilon = 2 * (math.log(self.ratio.numerator) - math.log(self.ratio.denominator))
        return None if epsilon > LARGEST_EPSILON else (TWICE_EPSILON, replace(self, ratio=self.ratio**2))


def clamp(kind: str, domain: Pairs, values: Floats) -> tuple[Floats, tuple[int, ...]]:
    """Return the values moved into the domain, and how many of each column were outside.

    Raises
    ------
    PrivacyError
        When the values are not finite float64 numbers of shape (n, d).
    """
    if values.ndim != 2 or values.shape[1] != len(domain) or values.dtype != np.float64:
        raise PrivacyError(f"{kind} takes float64 values of {len(domain)} columns")
    if not np.isfinite(values).all():
        raise PrivacyError(f"{kind} takes finite values only")
    low, high = np.array(domain, dtype=np.float64).T
    outside = ((values < low) | (values > high)).sum(axis=0)
    return np.clip(values, low, high), tuple(int(count) for count in outside)


def order_in_words(order: str) -> str:
    """Say in which order rows are released."""
    return "rows in random order" if order == "shuffled" else "rows in their own order, which is public"


def width(pair: tuple[float, float]) -> float:
    """Return hi - lo, rounded up.

    Raises
    ------
    PrivacyError
        When the bounds are not finite, or lo is not below hi.
    """
    low, high = pair
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise PrivacyError(f"the bounds [{low:g}, {high:g}] must be finite, the lower one first")
    if not math.isfinite(high - low):
        raise PrivacyError(f"the bounds [{low:g}, {high:g}] are too far apart")
    return sum_up((high, -low))


# What an audit is told: neighbouring databases, and losses of what is drawn of them


def moved(words: str, base: Floats, one: Floats, other: Floats) -> Pair:
    """Return two databases, shape (n, d), that are `base` but for their first record."""
    first, second = base.copy(), base.copy()
    first[0], second[0] = one, other
    return Pair(words, first, second)


def pairs_of_groups(name: str, n: int, far: Floats, low: Floats, high: Floats) -> Iterator[Pair]:
    """Yield databases of n records, one of which changes its group; changed values alone tell less.

    `name` is that of the column of groups; `far` (d,) is the worst record to change its group, `low` and
    `high` are two far apart.
    """
    base = np.tile(np.append(low, 0.0), (n, 1))
    yield moved(f"a record changes its {name}", base, np.append(far, 0.0), np.append(far, 1.0))
    words = f"a record changes its {name} and all values"
    yield moved(words, base, np.append(low, 0.0), np.append(high, 1.0))


def additive_loss(first: Floats, second: Floats, scale: Any, noise: str) -> Loss:
    """Return the loss of independent noise; whole numbers have the loss of Laplace and Gaussian noise."""
    moved = np.nonzero(first != second)[0]
    a, b = first[moved], second[moved]
    s = np.broadcast_to(np.asarray(scale, dtype=np.float64), first.shape)[moved]
    if noise in ("gaussian", "discrete_gaussian"):
        return lambda y: np.asarray(((y[:, moved] - 0.5 * (a + b)) * ((a - b) / s**2)).sum(axis=1))
    return lambda y: np.asarray(((np.abs(y[:, moved] - b) - np.abs(y[:, moved] - a)) / s).sum(axis=1))


def loss_of_near_outputs(one: Floats, other: Floats, response: NearOutputs) -> Loss:
    """Return the loss of outputs near inputs (d,): log r where near the first alone, -log r the other."""
    log_ratio = float(np.log(float(response.ratio)))

    def near(releases: Floats, inputs: Floats) -> Floats:
        return np.asarray((releases >= inputs) & (releases < inputs + response.near), dtype=np.float64)

    return lambda releases: log_ratio * (near(releases, one) - near(releases, other)).sum(axis=1)


def smoothing_of_twice_epsilon(bins: int, n: int, weight: float) -> float | None:
    """Return the smoothing weight of twice the epsilon: eps = k log(1 + (1 - w) m/(w n)).

    None where that is below what is drawn with.
    """
    odds = (1 - weight) * bins / (weight * n)
    found = bins / (bins + n * (odds * (odds + 2)))
    return None if found < SMALLEST_WEIGHT else found
