"""Noisy second moments of clamped predictors and response, for linear regression (methods, section 7).

`ClampedMoments` are of the whole table, `GroupedMoments` of groups whose sizes are private (methods,
section 16).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.mechanism import (
    BEYOND,
    Pair,
    Pairs,
    PublicRecords,
    Stated,
    clamp,
    moved,
    pairs_of_groups,
    width,
)
from dpmix.mechanisms.curators.private_groups import Groups, exact_sums, sizes_and_sums, with_groups
from dpmix.mechanisms.curators.statistic import ROUNDED_UP, Floats, NoisyStatistic, least_scale
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.conversions import laplace_rho_of_several
from dpmix.privacy.noise import AdditiveNoise

if TYPE_CHECKING:
    from dpmix.mechanisms.clamped_moments.section import ClampedMomentsMechanism

_BITS = 20  # values in [-1, 1] are moved to multiples of 2^-20, so that sums of products are exact
_MOST = 2**31
_GRID = 21  # places of each coordinate of a record that is sought


# The whole table


@dataclass(frozen=True, kw_only=True)
class ClampedMoments(NoisyStatistic):
    """Release sums of products of values that are clamped to public bounds and rescaled to [-1, 1].

    With x~ = (1, x~_1, .., x~_p) and y~ the rescaled predictors and response, the entries are x~'y~,
    intercept first, y~'y~, and the upper triangle of x~'x~ by rows without its constant first entry. With
    q = p + 1 replacing a record moves them by at most D1 = q + q/(2 (q + 1)) + q (q + 1)/2 in L1 norm, the
    largest over pairs of records jointly; the paper's p^2 + 3 p + 3 bounds the entries one by one. Laplace
    noise of scale D1/eps is eps-DP.

    Parameters
    ----------
    domain : tuple of (lo, hi)
        Public bounds, one pair per predictor and the response's last.
    """

    kind: ClassVar[str] = "clamped_moments"
    of_any_number = True

    @property
    def sensitivity(self) -> float:
        """The exact one, and what rounding sums to doubles may add."""
        p = len(self.domain) - 1
        return exact_sensitivity(p) * ROUNDED_UP + 2 * self.size * self.n * 2.0**-52

    @property
    def rho(self) -> float:
        """The largest over records that are replaced; see `moments_rho`."""
        p = len(self.domain) - 1
        rounding = self.sensitivity - _widths(p, self.groups)[0] + self.size * 2.0**-40
        return moments_rho(p, self.groups, self.s, rounding) * ROUNDED_UP

    @property
    def size(self) -> int:
        """Number of entries: p + 1, 1 and (p + 1) (p + 2)/2 - 1."""
        q = len(self.domain)
        return q + 1 + q * (q + 1) // 2 - 1

    def statistic(self, values: Floats) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Return the entries, shape (size,), summed exactly."""
        products, unit, clamped = self._products(values)
        return np.array([float(total) for total in exact_sums(products)]) / unit, clamped

    def _products(self, values: Floats) -> tuple[NDArray[np.int64], float, tuple[int, ...]]:
        """Return each record's entries in units of 1/2^40, that number, and how many values were clamped."""
        bounded, clamped = clamp(self.kind, self.domain, values)
        low, high = np.array(self.domain).T
        unit = np.clip(2 * (bounded - low) / (high - low) - 1, -1, 1)
        whole = np.rint(unit * 2**_BITS).astype(np.int64)
        table = np.hstack([np.full((len(whole), 1), 2**_BITS, dtype=np.int64), whole])
        first, second = np.array(factors(len(self.domain))).T
        return table[:, first] * table[:, second], 2.0 ** (2 * _BITS), clamped

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record moves as far as the moments can; see `Mechanism`."""
        low, high = np.array(self.domain, dtype=np.float64).T
        one, other = _farthest(lambda record: self.statistic(record[None, :])[0], low, high)
        yield moved("a record moves as far as the moments can", np.tile(low, (n, 1)), one, other)
        yield from super().neighbours(columns, n)

    def own(self) -> dict[str, Any]:
        """Return the bounds."""
        return {"bounds": [list(pair) for pair in self.domain]}

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee, the paper's sensitivity too."""
        return super().figures() | {"sensitivity_paper": paper_sensitivity(len(self.domain) - 1)}

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        return (
            f"Laplace noise of scale {self.s:.6g} on {self.size} second moments of "
            f"{', '.join(self.columns)}, clamped to their bounds and rescaled to [-1, 1]"
        )


def _farthest(statistic: Callable[[Floats], Any], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return two records between the bounds whose statistics are far apart in L1, by coordinate ascent."""
    q = len(low)
    rng = np.random.default_rng(0)
    best, found = -1.0, (low, high)
    for _ in range(8):
        place = rng.random((2, q))
        gain = -1.0
        while True:
            before = gain
            for side in range(2):
                for column in range(q):
                    tried = []
                    for step in np.linspace(0.0, 1.0, _GRID):
                        place[side, column] = step
                        records = low + place * (high - low)
                        tried.append(float(np.abs(statistic(records[0]) - statistic(records[1])).sum()))
                    place[side, column] = np.argmax(tried) / (_GRID - 1)
                    gain = max(tried)
            if gain <= before:
                break
        if gain > best:
            records = low + place * (high - low)
            best, found = gain, (records[0].copy(), records[1].copy())
    return found


def factors(q: int) -> list[tuple[int, int]]:
    """Return the factors of each entry as columns of (1, x~_1, .., x~_p, y~), p = q - 1."""
    moments = [(i, j) for i in range(q) for j in range(i, q) if j > 0]
    return [*((i, q) for i in range(q + 1)), *moments]


def exact_sensitivity(p: int) -> float:
    """Return the L1 sensitivity of the moments of p predictors, jointly: 16/3, 75/8, 72/5 for p = 1, 2, 3."""
    q = p + 1
    return q + q / (2 * (q + 1)) + q * (q + 1) / 2


def paper_sensitivity(p: int) -> float:
    """Return p^2 + 3 p + 3, valid and larger (Ju, Awan, Gong and Rao 2022, section 5)."""
    return float(p * p + 3 * p + 3)


# Groups whose sizes are private


@dataclass(frozen=True, kw_only=True)
class GroupedMoments(ClampedMoments):
    """Release sizes of groups and sums of centred products over the records of each, with Laplace noise.

    One release of (kappa n_1, .., kappa n_(G-1), S_1, .., S_G), S_g the sums over group g of the entries of
    `ClampedMoments` less their centres; see `grouped_widths` for centres and exact sensitivity. The entry
    that `ClampedMoments` omits, a sum of ones, is here the size. Noise of one scale is on all of it; the
    noisy sizes are divided by kappa after.

    Values have the codes of groups as last column.
    """

    groups: Groups

    @property
    def widths(self) -> GroupedWidths:
        """Centres, kappa and sensitivities."""
        return grouped_widths(len(self.domain) - 1, self.groups)

    @property
    def sensitivity(self) -> float:
        """The exact one of (kappa sizes, sums), and what rounding sums to doubles may add."""
        return self.widths.exact * ROUNDED_UP + 2 * self.size * self.n * 2.0**-52

    @property
    def size(self) -> int:
        """Numbers in the release: G - 1 sizes, then the entries of each group."""
        return self.groups.count - 1 + self.groups.count * len(self.widths.centre)

    @property
    def source(self) -> AdditiveNoise:
        """The noise of kappa times the sizes, and of the sums."""
        spread = 2.0 * (2.0 + self.widths.kappa) * (self.n + 1)
        return AdditiveNoise("laplace", self.s, self.sensitivity, self.size, spread)

    @property
    def weights(self) -> Floats:
        """Kappa for the sizes, 1 for the sums; see `NoisyStatistic`."""
        found = np.ones(self.size)
        found[: self.groups.count - 1] = self.widths.kappa
        return found

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record changes its group; see `Mechanism`."""
        low, high = np.array(self.domain, dtype=np.float64).T
        beyond = BEYOND * (high - low)
        yield from pairs_of_groups(self.groups.name, n, high, low - beyond, high + beyond)

    def statistic(self, values: Floats) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Return the exact (sizes, sums), shape (size,), as they are released but for noise."""
        records, codes = self.groups.parted(values)
        whole, unit, clamped = self._products(records)
        centre = np.array([round(c * unit) for c in self.widths.centre], dtype=np.int64)
        return sizes_and_sums(whole - centre, codes, self.groups, unit), clamped

    def own(self) -> dict[str, Any]:
        """Return bounds, groups, their weight and the centres."""
        found = self.widths
        return super().own() | {
            "groups": self.groups.describe(),
            "kappa": found.kappa,
            "centre": list(found.centre),
            "scale": [self.s / found.kappa, self.s],
        }

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee; scales of sizes, and of sums."""
        found = self.widths
        return super().figures() | {
            "scale": [self.s / found.kappa, self.s],
            "sensitivity_paper": found.paper,
            "kappa": found.kappa,
            "groups": self.groups.describe(),
        }

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        known = self.groups
        return (
            f"Laplace noise of scale {self.s:.6g} on {len(self.widths.centre)} sums of centred products of "
            f"{', '.join(self.columns)}, clamped to their bounds and rescaled to [-1, 1], by {known.name} "
            f"({known.count} groups), and of scale {self.s / self.widths.kappa:.6g} on the groups' sizes"
        )


class GroupedWidths(NamedTuple):
    """Of the moments of groups whose sizes are private."""

    centre: tuple[float, ...]
    """What is taken off each entry."""
    kappa: float
    """By what sizes are multiplied beside sums."""
    exact: float
    """L1 sensitivity of (kappa sizes, sums)."""
    paper: float
    """The same with the paper's in place of the exact one of moments, where that is larger."""


def grouped_widths(p: int, groups: Groups) -> GroupedWidths:
    """Return centres, kappa and the exact sensitivity of the moments of groups (methods, section 16).

    A record that changes its group takes f(x) - c from the sums of one group and adds f(x') - c to those of
    another, f the entries of one record z in [-1, 1]^q, q = p + 1. The c from which the largest
    D = ||f(z) - c|| in L1 norm is least is 0 of z_i and z_i z_j, by the symmetry of changing signs (D is
    convex in c), and 1 of squares: at z = (1, .., 1) no c <= 1 gives less than q (q + 1)/2, which at 1 is
    the most. For with t = |z| it is sum t_i + sum_(i<j) t_i t_j + sum (1 - t_i^2); of t with one sum T it is
    largest where all are equal, T + T^2/2 - 3 T^2/(2 q) + q, which is largest at T = q for q >= 2.

    So 2 D = q (q + 1), attained by (1, .., 1) that changes its group, above `exact_sensitivity`, the most
    within a group; each size that changes adds kappa.
    """
    q = p + 1
    centre = tuple(1.0 if i == j else 0.0 for i, j in factors(q))
    apart = float(q * (q + 1))
    kappa = groups.kappa(apart, len(centre))
    sizes = groups.changes * kappa
    return GroupedWidths(centre, kappa, apart + sizes, max(apart, paper_sensitivity(p)) + sizes)


# From a spec


def _widths(p: int, groups: Groups | None) -> tuple[float, float]:
    """Return the exact sensitivity, and the paper's."""
    if groups is None:
        return exact_sensitivity(p), paper_sensitivity(p)
    found = grouped_widths(p, groups)
    return found.exact, found.paper


def moments_rho(p: int, groups: Groups | None, scale: float, rounding: float = 0.0) -> float:
    """Return the zCDP of Laplace noise on the moments, of any pair of records.

    A record moves a square by 1 and another product by 2 at most, and all entries together by
    `exact_sensitivity`. One that changes its group moves each entry of both by 1 at most, less their centres,
    and sizes by kappa.

    Parameters
    ----------
    p : int
        Number of predictors.
    groups : Groups or None
        The public groups, if any.
    scale : float
        Of the noise.
    rounding : float
        What rounding may add to any move.
    """
    entries = factors(p + 1)
    moves = [([1.0 if i == j else 2.0 for i, j in entries], exact_sensitivity(p))]
    if groups is not None:
        found = grouped_widths(p, groups)
        moves.append(([1.0] * (2 * len(entries)) + [found.kappa] * groups.changes, found.exact))
    return max(
        laplace_rho_of_several([(each + rounding) / scale for each in most], (together + rounding) / scale)
        for most, together in moves
    )


def bounds_of(spec: ClampedMomentsMechanism) -> Pairs:
    """Return the public bounds of a spec.

    Raises
    ------
    SpecError
        When there are none, or two that differ.
    """
    bounds = spec.bounds or spec.domain
    if bounds is None:
        raise SpecError("mechanism.bounds: missing; give one pair per predictor, and the response's last")
    if spec.bounds is not None and spec.domain is not None and spec.bounds != spec.domain:
        raise SpecError("mechanism.bounds: differ from the domain; give the public bounds once")
    for pair in bounds:
        width(pair)
    return bounds


def make(spec: ClampedMomentsMechanism, records: PublicRecords) -> ClampedMoments:
    """Calibrate to a spec's epsilon or scale; the recorded guarantee never exceeds what was asked.

    Raises
    ------
    SpecError
        When the bounds do not go with the columns.
    PrivacyError
        When the guarantee cannot be met.
    """
    bounds, columns, n, groups = bounds_of(spec), records.names, records.n, records.groups
    assert n is not None  # checked
    if len(bounds) != len(columns) or len(columns) < 2:
        raise SpecError(
            f"mechanism.bounds: {len(bounds)} pairs for {len(columns)} columns; give one for each predictor "
            "and the response's last"
        )
    if n >= _MOST:
        raise PrivacyError(f"clamped_moments takes fewer than {_MOST} records, not {n}")
    of: type[ClampedMoments] = ClampedMoments if groups is None else GroupedMoments

    def scaled(scale: float) -> ClampedMoments:
        return of(
            columns=columns,
            s=scale,
            calibration="scale" if spec.scale is not None else spec.calibration,
            requested=spec.requested(),
            n=n,
            domain=bounds,
            groups=groups,
        )

    if spec.scale is not None:
        return scaled(spec.scale)
    assert spec.epsilon is not None  # the spec states one of the two
    if spec.calibration == "paper":
        return scaled(_widths(len(columns) - 1, groups)[1] / spec.epsilon)
    formula = scaled(1.0).sensitivity / spec.epsilon
    return least_scale(scaled, formula, {"epsilon": spec.epsilon})


def stated(spec: ClampedMomentsMechanism, records: PublicRecords) -> Stated:
    """Return what is known of a release made elsewhere, and its guarantee by formula."""
    bounds, groups = bounds_of(spec), records.groups
    p = len(bounds) - 1
    if p < 1:
        raise SpecError("mechanism.bounds: one pair; give one per predictor, and the response's last")
    exact, paper = _widths(p, groups)
    if spec.scale is not None:
        scale = spec.scale
    else:
        assert spec.epsilon is not None  # the spec states one of the two
        scale = (paper if spec.calibration == "paper" else exact) / spec.epsilon
    own: dict[str, Any] = {"bounds": [list(pair) for pair in bounds], "noise": "laplace", "scale": [scale]}
    if groups is not None:
        known = grouped_widths(p, groups)
        own |= {"groups": groups.describe(), "kappa": known.kappa, "centre": list(known.centre)}
        own["scale"] = [scale / known.kappa, scale]
    guarantee = Guarantee(exact / scale, 0.0, moments_rho(p, groups, scale), "global")
    return own | {"sensitivity": [exact]}, with_groups(guarantee, groups)
