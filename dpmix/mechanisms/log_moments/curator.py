"""Noisy moments of the logarithms of censored compositions (methods, section 8).

`LogMoments` are means over the whole table, `GroupedLogMoments` sums over groups whose sizes are private
(methods, section 16).
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpmix.errors import DataError, PrivacyError, SpecError
from dpmix.mechanisms.curators.mechanism import (
    HALF_NOISE,
    Loss,
    Mechanism,
    Pair,
    Pairs,
    Progress,
    PublicRecords,
    Released,
    Seeded,
    Stated,
    additive_loss,
    moved,
    pairs_of_groups,
)
from dpmix.mechanisms.curators.private_groups import (
    Groups,
    exact_sums,
    groups_of,
    sizes_and_sums,
    with_groups,
)
from dpmix.mechanisms.curators.statistic import ROUNDED_UP
from dpmix.mechanisms.log_moments.law import LogMomentsLaw, centre_of, centred_width, exact_width, paper_width
from dpmix.numerics.in_words import figure
from dpmix.privacy.accounting import Guarantee, sum_up
from dpmix.privacy.conversions import laplace_rho_of_several, response_rho
from dpmix.privacy.exact import generator_from
from dpmix.privacy.noise import AdditiveNoise, GeometricNoise, calibrated, noisy
from dpmix.spec.capabilities import counted

if TYPE_CHECKING:
    from dpmix.mechanisms.log_moments.section import LogMomentsMechanism

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_BITS = 30  # logarithms are rounded to multiples of 2^-30, so that their sums are exact
_SUM_TOLERANCE = 1e-6  # how far the parts of a composition may be from summing to one
_SHARE_OF_CHOICE = 0.1  # of epsilon, for choosing the threshold
_UP = 1 + 16 * 2.0**-52  # covers what the formula of the sums of groups may lose in floating point

# The whole table


@dataclass(frozen=True, kw_only=True)
class LogMoments(Mechanism):
    """Release the mean of log max(x, a) over the compositions x of n records, with Laplace noise.

    Replacing a record moves the d means by at most W(a)/n in L1 norm, W(a) the largest of
    -s log(s a) - t log(t a) over s, t >= 1, s + t <= d, terms with s a > 1 dropped: from a composition that
    is equal on s parts to one that is equal on t others. The paper's d |log a| is larger.

    A threshold is chosen among candidates a_1 > .. > a_M by the noisy numbers of records that each is the
    first to leave uncensored (L1 sensitivity 2), which costs epsilon2; see `chosen_threshold`. Split in two,
    by index and at random, each part has its own means and noise scaled by its own size: a record is in one
    part, so that epsilon1 covers both.

    Parameters
    ----------
    columns : tuple of str
        Names of the d parts.
    thresholds : tuple of float
        Decreasing candidates; a single one is taken as it is.
    epsilon1, epsilon2 : float
        For the means, and for the choice among several thresholds (0 for one).
    sizes : tuple of int
        Number of records of each part.
    calibration : str
        ``"exact"`` or ``"paper"``.
    requested : dict
        What was asked for.
    """

    kind: ClassVar[str] = "log_moments"
    columns: tuple[str, ...]
    thresholds: tuple[float, ...]
    epsilon1: float
    epsilon2: float
    sizes: tuple[int, ...]
    calibration: str = "exact"
    requested: dict[str, float] = field(default_factory=dict)
    domain: Pairs = ()
    groups: Groups | None = None

    def random_records(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw records of nobody; see `Mechanism`."""
        return rng.dirichlet(np.ones(len(self.columns)), n)

    @property
    def n(self) -> int:
        """Number of records."""
        return sum(self.sizes)

    @property
    def choice(self) -> GeometricNoise | None:
        """The noise of the scores that a threshold is chosen by; None where there is no choice."""
        if len(self.thresholds) == 1:
            return None
        noise = GeometricNoise(2 / self.epsilon2, 2, len(self.thresholds))
        while noise.loss > self.epsilon2:  # the quotient was rounded down
            noise = replace(noise, scale=math.nextafter(noise.scale, math.inf))
        return noise

    def noise(self, part: int, threshold: float) -> AdditiveNoise:
        """Return the noise of the means of a part, at a threshold."""
        d, n = len(self.columns), self.sizes[part]
        rounding = d * 2.0**-_BITS / n + 4 * d * abs(math.log(threshold)) * 2.0**-52
        sensitivity = exact_width(threshold, d) / n * ROUNDED_UP + rounding
        # a difference of means, or of a mean and the smallest possible one
        spread = abs(math.log(threshold)) + 1.0
        return self._laplace(paper_width(threshold, d) / n, sensitivity, d, spread)

    def _laplace(self, paper: float, sensitivity: float, size: int, spread: float) -> AdditiveNoise:
        """Return noise on `size` numbers: by their exact sensitivity, or scaled to the paper's.

        Of two parts the two are the same, but for what rounding adds to the exact one.
        """
        scale = max(sensitivity, paper if self.calibration == "paper" else 0.0) / self.epsilon1
        return calibrated("laplace", scale, sensitivity, self.epsilon1, block=size, spread=spread)

    @property
    def guarantee(self) -> Guarantee:
        """What means and choice cost together, the most over thresholds and parts, by the noises' maps."""
        first = rho = 0.0
        for a in self.thresholds:
            for part, size in enumerate(self.sizes):
                noise = self.noise(part, a)
                first = max(first, noise.loss)
                scale = noise.scale if self.groups is not None else noise.scale * size  # of a sum
                rho = max(rho, sums_rho(a, len(self.columns), self.groups, scale, noise.loss))
        rho, choice = rho * ROUNDED_UP, self.choice
        if choice is None:
            return Guarantee(first, 0.0, rho, "global")
        second = choice.loss
        rho += 2 * response_rho(second / 2) * ROUNDED_UP
        return Guarantee(sum_up((first, second)), 0.0, rho, "global")

    def describe(self) -> dict[str, Any]:
        """Return what is public before anything is chosen, for JSON."""
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "components": len(self.columns),
            "thresholds": list(self.thresholds),
            "parts": list(self.sizes),
            "epsilon1": self.epsilon1,
            "epsilon2": self.epsilon2,
            "calibration": self.calibration,
            "requested": dict(self.requested),
            "domain": None,
        }

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee, by threshold and part where several."""
        d = len(self.columns)
        several = len(self.sizes) > 1
        scales = [[self.noise(part, a).scale for part in range(len(self.sizes))] for a in self.thresholds]
        exact = [[exact_width(a, d) / size for size in self.sizes] for a in self.thresholds]
        paper = [[paper_width(a, d) / size for size in self.sizes] for a in self.thresholds]
        widths = {"scale": scales, "sensitivity": exact, "sensitivity_paper": paper}
        by_part = {name: w if several else [part[0] for part in w] for name, w in widths.items()}
        found: dict[str, Any] = {"n": self.n, "parts": list(self.sizes), "epsilon1": self.epsilon1}
        if len(self.thresholds) == 1:
            return found | {name: w[0] for name, w in by_part.items()}
        return found | {"epsilon2": self.epsilon2, "thresholds": list(self.thresholds)} | by_part

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        parts = "" if len(self.sizes) == 1 else f" of parts of {self.sizes[0]} and {self.sizes[1]} records"
        means = f"on {len(self.columns)} mean logarithms{parts}, censored at"
        if len(self.thresholds) == 1:
            a = self.thresholds[0]
            scales = ", ".join(f"{self.noise(part, a).scale:.4g}" for part in range(len(self.sizes)))
            return f"Laplace noise of scale {scales} {means} {a:g}"
        return (
            f"Laplace noise (epsilon {figure(self.epsilon1)}) {means} one of {len(self.thresholds)} "
            f"thresholds, chosen with geometric noise (epsilon {figure(self.epsilon2)})"
        )

    def check(self, values: Floats) -> None:
        """Refuse what are no compositions, in groups where there are any; see `Mechanism`."""
        self._parted(values)

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        """Release the moments; see `Mechanism`. Nothing is clamped: what is censored is not told."""
        shares, codes = self._parted(values)
        if len(shares) != self.n:
            raise PrivacyError(f"the guarantee is for {self.n} records, not {len(shares)}")
        threshold, scores = self._choose(shares, rng)
        told, own = self._with_noise(shares, codes, threshold, rng)
        chosen = {"threshold": threshold} | own | ({} if scores is None else {"scores": scores})
        release = self.made(told[:, None], ("statistic",), self.n, private=rng is None, chosen=chosen)
        return release, (0,) * len(self.columns)

    def _parted(self, values: Floats) -> tuple[Floats, Codes]:
        """Return the compositions of records, divided by their sums, and the codes of their groups."""
        return checked(values, self.columns), np.zeros(len(values), dtype=np.int64)

    def _with_noise(
        self, shares: Floats, codes: Codes, threshold: float, rng: Seeded
    ) -> tuple[Floats, dict[str, Any]]:
        """Return what is released at a threshold, shape (size,), and what is public of its noise."""
        order = np.arange(self.n)
        if len(self.sizes) > 1:
            order = (generator_from(os.urandom) if rng is None else rng).permutation(self.n)
        parts, scales, start = [], [], 0
        for part, size in enumerate(self.sizes):
            means = mean_logs(shares[order[start : start + size]], threshold)
            start += size
            noise = self.noise(part, threshold)
            parts.append(noisy(noise, means, rng))
            scales.append(noise.scale)
        return np.concatenate(parts), {"scale": scales}

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases with uniform points on disjoint sets of parts, which move the means farthest."""
        d, middle = columns, np.full((n, columns), 1.0 / columns)
        a = self.thresholds[-1]

        def side(count: int) -> float:
            return max(0.0, -count * float(np.log(count * a)))

        sizes = [(s, t) for s in range(1, d) for t in range(1, d - s + 1)]
        s, t = max(sizes, key=lambda pair: side(pair[0]) + side(pair[1]))
        one, other = np.zeros(d), np.zeros(d)
        one[:s], other[s : s + t] = 1.0 / s, 1.0 / t
        words = f"a record goes from {counted(s, 'equal part')} to {counted(t, 'other')}"
        yield moved(words, middle, one, other)
        yield moved("a record goes from one part to equal parts", middle, np.eye(d)[0], np.full(d, 1.0 / d))

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of means at the threshold told, over the parts the record may be in, and of scores.

        All records but the first are the same, so that a part has the same means wherever the first is not.
        """
        d, sizes = len(self.columns), self.sizes
        shares = [x / x.sum(axis=1)[:, None] for x in (one, other)]

        def means(x: Floats, part: int, threshold: float, there: bool) -> Floats:
            rows = np.repeat(x[1:2] if self.n > 1 else x[:1], sizes[part], axis=0)
            if there:
                rows[0] = x[0]
            return mean_logs(rows, threshold)

        def of_means(y: Floats, threshold: float) -> Floats:
            sides = []
            for x in shares:
                terms = []
                for holder, size in enumerate(sizes):
                    total = np.full(len(y), np.log(size / self.n))
                    for part in range(len(sizes)):
                        centre = means(x, part, threshold, part == holder)
                        scale = self.noise(part, threshold).scale
                        total -= np.abs(y[:, part * d : (part + 1) * d] - centre).sum(axis=1) / scale
                    terms.append(total)
                sides.append(logsumexp(terms, axis=0))
            return np.asarray(sides[0] - sides[1])

        return self._loss_at_threshold(shares, d * len(sizes), of_means)

    def _loss_at_threshold(
        self, shares: Sequence[Floats], places: int, of_values: Callable[[Floats, float], Floats]
    ) -> Loss:
        """Return the loss of what is released at the threshold told after it, and of scores after that."""
        candidates, choice = self.thresholds, self.choice
        first, second = (self._scores(x).astype(float) for x in shares)
        of_scores = None if choice is None else additive_loss(first, second, choice.scale, "geometric")

        def loss(releases: Floats) -> Floats:
            found = np.zeros(len(releases))
            for threshold in candidates:
                chosen = releases[:, places] == threshold
                if chosen.any():
                    found[chosen] = of_values(releases[chosen], threshold)
            return found if of_scores is None else found + of_scores(releases[:, places + 1 :])

        return loss

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise; see `Mechanism`."""
        return HALF_NOISE, replace(self, epsilon1=2 * self.epsilon1, epsilon2=2 * self.epsilon2)

    def _scores(self, shares: Floats) -> Codes:
        """Return the numbers of records that each threshold is the first to leave uncensored."""
        smallest = shares.min(axis=1)
        return np.diff([np.count_nonzero(smallest >= a) for a in self.thresholds], prepend=0)

    def _choose(self, shares: Floats, rng: Seeded) -> tuple[float, list[float] | None]:
        """Return the threshold, and the noisy scores it was chosen by."""
        noise = self.choice
        if noise is None:
            return self.thresholds[0], None
        scores = noisy(noise, self._scores(shares), rng)
        return self.thresholds[chosen_threshold(scores, self.n, self.epsilon2)], scores.tolist()


def checked(values: Floats, columns: Sequence[str]) -> Floats:
    """Return compositions, each divided by its sum.

    Raises
    ------
    DataError
        Naming the record, not its values, when a share is negative or not finite, or they do not sum to one.
    """
    if values.ndim != 2 or values.shape[1] != len(columns):
        raise PrivacyError(f"log_moments takes compositions of {len(columns)} parts")
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"column {columns[column]!r} has a share in record {row + 1} that is negative or no number"
            f"{_more(bad)}; a composition has shares from 0 to 1"
        )
    sums = values.sum(axis=1)
    off = np.abs(sums - 1) > _SUM_TOLERANCE
    if off.any():
        raise DataError(
            f"the shares of record {int(np.argmax(off)) + 1} do not sum to 1 within {_SUM_TOLERANCE:g}"
            f"{_more(off)}; name all parts of a composition, and divide each record by its sum first"
        )
    return np.asarray(values / sums[:, None])


def _more(bad: NDArray[np.bool_]) -> str:
    more = int(bad.sum()) - 1
    return f" (and {more} more)" if more else ""


def mean_logs(shares: Floats, threshold: float) -> Floats:
    """Return the means of log max(x, a), shape (d,), of logarithms rounded to 2^-30 and summed exactly."""
    return np.array([total / (len(shares) << _BITS) for total in exact_sums(_whole_logs(shares, threshold))])


def _whole_logs(shares: Floats, threshold: float) -> NDArray[np.int64]:
    """Return log max(x, a) in units of 2^-30, shape (n, d)."""
    return np.rint(np.log(np.maximum(shares, threshold)) * 2.0**_BITS).astype(np.int64)


def chosen_threshold(scores: Floats, n: int, epsilon: float) -> int:
    """Return the number of the threshold that noisy scores (M,) choose (methods, section 8).

    The scores are numbers of records that each is the first to leave uncensored, their noise of parameter
    exp(-epsilon/2). With g the smallest integer that the noise reaches with probability at most 0.025: the
    first threshold if s_1 + g >= 0.99 n, else the smallest one that surely leaves one record in a hundred
    more uncensored, s_m - g >= 0.01 n, else the first.
    """
    parameter = math.exp(-epsilon / 2)
    g = max(0, math.ceil(-2 * math.log(0.025 * (1 + parameter)) / epsilon))
    if scores[0] + g >= 0.99 * n:
        return 0
    surely = [m for m in range(1, len(scores)) if scores[m] - g >= 0.01 * n]
    return surely[-1] if surely else 0


# Groups whose sizes are private


class Grouped(NamedTuple):
    """The sums of log max(x, a) - c of groups, at one threshold a (methods, section 16).

    A record that stays in its group moves the sums by `exact_width` W at most. One that changes its group
    takes f(x) - c from the sums of one and adds f(x') - c to those of another: by the centre c of
    `centre_of` that is W at most, too, and two records attain it, so that c makes the second case no worse
    than the first. Sizes times kappa, of all groups but the last, add kappa for each that changes.
    """

    centre: float
    kappa: float
    width: float
    """The exact L1 sensitivity of (kappa sizes, sums)."""
    paper: float
    """The same with d |log a| in place of W."""


@functools.cache
def grouped_sums(threshold: float, parts: int, groups: Groups) -> Grouped:
    """Return centre, kappa and sensitivities, kappa by the public rule of `Groups.kappa`."""
    centre = round(centre_of(threshold, parts) * 2.0**_BITS) * 2.0**-_BITS
    apart = 2 * centred_width(threshold, parts, centre)
    kappa = groups.kappa(apart, parts)
    paper = max(apart, paper_width(threshold, parts))
    sizes = groups.changes * kappa
    return Grouped(centre, kappa, max(exact_width(threshold, parts), apart) + sizes, paper + sizes)


@dataclass(frozen=True, kw_only=True)
class GroupedLogMoments(LogMoments):
    """Release sizes of groups and sums of log max(x, a) - c over the records of each, with Laplace noise.

    One release of (kappa n_1, .., kappa n_(G-1), S_1, .., S_G), S_g the d sums of group g. Its exact L1
    sensitivity is `Grouped.width`: W(a) + k kappa, W(a) that of `LogMoments` and k = 1 for two groups, else
    2. Noise of one scale s = (W + k kappa)/eps is on all of it; the noisy sizes are divided by kappa after.
    Means are not released: they divide by sizes, which are private.

    The threshold is one for all groups, chosen on the whole table as `LogMoments` does: whether a record is
    censored does not depend on its group.

    Parameters
    ----------
    groups : Groups
        The public groups; values have their codes as last column.
    """

    groups: Groups

    @property
    def size(self) -> int:
        """Numbers in the release: G - 1 sizes, then d sums of each group."""
        return self.groups.count - 1 + self.groups.count * len(self.columns)

    def settings(self, threshold: float) -> Grouped:
        """Return centre, kappa and sensitivities at a threshold."""
        return grouped_sums(threshold, len(self.columns), self.groups)

    def noise(self, part: int, threshold: float) -> AdditiveNoise:
        """Return the noise of kappa times the sizes, and of the sums, at a threshold."""
        d, found = len(self.columns), self.settings(threshold)
        # each logarithm is rounded to the grid, and each sum to a double
        rounding = 2 * d * (2.0**-_BITS + 4 * abs(math.log(threshold)) * (self.n + 1) * 2.0**-52)
        sensitivity = found.width * _UP + rounding
        spread = 2 * self.n * (abs(math.log(threshold)) + found.kappa + 1.0)
        return self._laplace(found.paper * _UP, sensitivity, self.size, spread)

    def statistic(self, values: Floats, threshold: float) -> Floats:
        """Return the exact (sizes, sums), shape (G - 1 + G d,), of compositions beside codes (n, d + 1)."""
        return self._statistic(*self._parted(values), threshold)

    def _statistic(self, shares: Floats, codes: Codes, threshold: float) -> Floats:
        centre = round(self.settings(threshold).centre * 2.0**_BITS)
        return sizes_and_sums(_whole_logs(shares, threshold) - centre, codes, self.groups, 2.0**_BITS)

    @property
    def guarantee(self) -> Guarantee:
        """What sizes, sums and choice cost together."""
        return with_groups(super().guarantee, self.groups)

    def describe(self) -> dict[str, Any]:
        """Return what is public before anything is chosen, for JSON."""
        return super().describe() | {"groups": self.groups.describe()}

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee, by threshold where several."""
        settings = [self.settings(a) for a in self.thresholds]
        found: dict[str, list[Any]] = {
            "scale": [self._scales(a) for a in self.thresholds],
            "sensitivity": [each.width for each in settings],
            "sensitivity_paper": [each.paper for each in settings],
            "kappa": [each.kappa for each in settings],
            "centre": [each.centre for each in settings],
        }
        own = {"n": self.n, "groups": self.groups.describe(), "epsilon1": self.epsilon1}
        if len(self.thresholds) == 1:
            return own | {name: values[0] for name, values in found.items()}
        return own | {"epsilon2": self.epsilon2, "thresholds": list(self.thresholds)} | found

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        d, known = len(self.columns), self.groups
        sums = f"on {d} sums of logarithms by {known.name} ({known.count} groups)"
        if len(self.thresholds) == 1:
            of_sizes, of_sums = self._scales(self.thresholds[0])
            return (
                f"Laplace noise of scale {of_sums:.4g} {sums}, censored at {self.thresholds[0]:g}, and of "
                f"scale {of_sizes:.4g} on the sizes of the groups"
            )
        return (
            f"Laplace noise (epsilon {figure(self.epsilon1)}) {sums}, censored at one of "
            f"{len(self.thresholds)} thresholds, and on the sizes of the groups, the threshold chosen with "
            f"geometric noise (epsilon {figure(self.epsilon2)})"
        )

    def _parted(self, values: Floats) -> tuple[Floats, Codes]:
        shares, codes = self.groups.parted(values)
        return checked(shares, self.columns), codes

    def scales(self, threshold: float) -> Floats:
        """Return the scale of the noise of each released number at a threshold, shape (size,)."""
        sums = self.groups.count * len(self.columns)
        return np.repeat(self._scales(threshold), (self.groups.count - 1, sums))

    def _scales(self, threshold: float) -> list[float]:
        """Return the noise of sizes, and of sums."""
        scale = self.noise(0, threshold).scale
        return [scale / self.settings(threshold).kappa, scale]

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record changes its group; see `Mechanism`."""
        d, a = columns, self.thresholds[-1]
        u = self.settings(a).centre - float(np.log(a))
        parts = np.arange(1, d + 1)
        s = int(np.argmax(np.maximum(0.0, -parts * np.log(parts * a)) + (d - 2 * parts) * u)) + 1
        far, spread = np.zeros(d), np.zeros(d)
        far[:s], spread[d // 2 :] = 1.0 / s, 1.0 / (d - d // 2)
        yield from pairs_of_groups(self.groups.name, n, far, np.eye(d)[0], spread)

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of sizes and sums at the threshold told, and of scores; see `Mechanism`."""

        def of_sums(y: Floats, threshold: float) -> Floats:
            first, second = (self.statistic(x, threshold) for x in (one, other))
            return additive_loss(first, second, self.scales(threshold), "laplace")(y)

        shares = [x[:, :-1] / x[:, :-1].sum(axis=1)[:, None] for x in (one, other)]
        return self._loss_at_threshold(shares, self.size, of_sums)

    def _with_noise(
        self, shares: Floats, codes: Codes, threshold: float, rng: Seeded
    ) -> tuple[Floats, dict[str, Any]]:
        found, noise = self.settings(threshold), self.noise(0, threshold)
        weighted = self._statistic(shares, codes, threshold)
        sizes = slice(self.groups.count - 1)
        weighted[sizes] *= found.kappa
        told = noisy(noise, weighted, rng)
        told[sizes] /= found.kappa
        return told, {
            "scale": [noise.scale / found.kappa, noise.scale],
            "sensitivity": [noise.sensitivity],
            "kappa": found.kappa,
            "centre": found.centre,
        }


# From a spec


def thresholds_of(spec: LogMomentsMechanism) -> tuple[float, ...]:
    """Return the candidate thresholds of a spec, which decrease."""
    if spec.thresholds is None:
        assert spec.threshold is not None  # the spec has one of the two
        return (spec.threshold,)
    return spec.thresholds


def epsilons_of(spec: LogMomentsMechanism) -> tuple[float, float]:
    """Return epsilon1 and epsilon2 of a spec; of a total a tenth goes to the choice among thresholds."""
    several = spec.thresholds is not None and len(spec.thresholds) > 1
    if spec.epsilon is not None:
        share = _SHARE_OF_CHOICE if several else 0.0
        first = spec.epsilon * (1 - share)
        return first, spec.epsilon - first
    assert spec.epsilon1 is not None  # the spec states one of the two
    return spec.epsilon1, spec.epsilon2 or 0.0


def sizes_of(spec: LogMomentsMechanism, n: int) -> tuple[int, ...]:
    """Return the number of records of each part.

    Raises
    ------
    SpecError
        When a part would be empty, or the sizes are of another number of records.
    """
    if spec.split is None:
        return (n,)
    if isinstance(spec.split, tuple):
        if sum(spec.split) != n:
            raise SpecError(
                f"mechanism.split: {list(spec.split)} has {sum(spec.split)} records, but there are {n}"
            )
        return spec.split
    first = round(spec.split * n)
    if not 0 < first < n:
        raise SpecError(f"mechanism.split: {spec.split:g} of {n} records leaves a part empty")
    return first, n - first


def make(spec: LogMomentsMechanism, records: PublicRecords) -> LogMoments:
    """Calibrate to what a spec asks for; the recorded guarantee never exceeds it.

    Raises
    ------
    SpecError
        When the compositions have fewer than two parts, thresholds do not decrease, or a part of the records
        would be empty.
    PrivacyError
        When the guarantee cannot be met.
    """
    columns, groups = records.names, records.groups
    assert records.n is not None  # checked
    if len(columns) < 2:
        raise SpecError(
            "data.columns: names one share; a composition has two or more: name all of its columns"
        )
    if spec.components is not None and spec.components != len(columns):
        raise SpecError(f"mechanism.components: {spec.components}, but data.columns names {len(columns)}")
    thresholds = thresholds_of(spec)
    first, second = epsilons_of(spec)
    if len(thresholds) == 1 and second:
        raise SpecError("mechanism.epsilon2: is for choosing among thresholds; leave it out")
    of: type[LogMoments] = LogMoments if groups is None else GroupedLogMoments
    return of(
        columns=columns,
        thresholds=thresholds,
        epsilon1=first,
        epsilon2=second,
        sizes=sizes_of(spec, records.n),
        calibration=spec.calibration,
        requested=spec.requested(),
        groups=groups,
    )


def stated(spec: LogMomentsMechanism, records: PublicRecords) -> Stated:
    """Return what is known of a release made elsewhere, and its guarantee by formula.

    Raises
    ------
    SpecError
        When the threshold that was used, the number of parts or of records is missing.
    """
    thresholds = thresholds_of(spec)
    if len(thresholds) > 1:
        raise SpecError(
            "mechanism.threshold: missing; say which of the thresholds the release was censored at"
        )
    if spec.components is None:
        raise SpecError("mechanism.components: missing; say how many parts a composition has")
    n = spec.n if records.n is None else records.n
    if n is None:
        raise SpecError("mechanism.n: missing; the noise of log_moments depends on the number of records")
    first, second = epsilons_of(spec)
    sizes, groups = sizes_of(spec, n), records.groups
    own: dict[str, Any] = {
        "components": spec.components,
        "threshold": thresholds[0],
        "thresholds": list(thresholds),
        "parts": list(sizes),
    }
    exact, paper = _widths(thresholds[0], spec.components, groups)
    if groups is not None:
        found = grouped_sums(thresholds[0], spec.components, groups)
        own |= {"groups": groups.describe(), "kappa": found.kappa, "centre": found.centre}
    wide = paper if spec.calibration == "paper" else exact
    own["scale"] = _scales(wide / first, sizes, own.get("kappa"))
    epsilon = first * exact / wide
    rho = sums_rho(thresholds[0], spec.components, groups, wide / first, epsilon)
    rho += 2 * response_rho(second / 2) if second else 0.0
    return own, with_groups(Guarantee(epsilon + second, 0.0, rho, "global"), groups)


def sums_rho(threshold: float, parts: int, groups: Groups | None, scale: float, epsilon: float) -> float:
    """Return the zCDP of Laplace noise on sums of log max(x, a), of any pair of records.

    Of one composition i parts at most are 1/i or more: of the sums that a record raises the i-th most by
    -log(i a) at most, of those that it lowers likewise, and all d together by W(a). One that changes its
    group takes log max(x, a) - c from the sums of one and adds it to those of another, c - log a at most or
    -log i - c, each d together `centred_width`, and moves sizes by kappa.

    Parameters
    ----------
    threshold : float
        a.
    parts : int
        d.
    groups : Groups or None
        The public groups, if any.
    scale : float
        Of the noise of a sum.
    epsilon : float
        Of all entries, in which what rounding adds is counted.
    """
    tops = [-math.log(i * threshold) for i in range(1, parts + 1) if i * threshold < 1]
    moves = [[(sorted(tops * 2, reverse=True)[:parts], exact_width(threshold, parts))]]
    if groups is not None:
        found = grouped_sums(threshold, parts, groups)
        low = found.centre - math.log(threshold)
        apart = sorted([*(top - low for top in tops), *[low] * parts], reverse=True)[:parts]
        side = (apart, centred_width(threshold, parts, found.centre))
        sizes = ([found.kappa] * groups.changes, found.kappa * groups.changes)
        moves.append([side, side, sizes])
    rounding = max(epsilon - _widths(threshold, parts, groups)[0] / scale, 0.0)
    return max(
        sum(
            laplace_rho_of_several([m / scale + rounding for m in most], together / scale + rounding)
            for most, together in each
        )
        for each in moves
    )


def _widths(threshold: float, parts: int, groups: Groups | None) -> tuple[float, float]:
    """Return the exact sensitivity, and the paper's: of sums of logarithms, with sizes of groups if any."""
    if groups is None:
        return exact_width(threshold, parts), paper_width(threshold, parts)
    found = grouped_sums(threshold, parts, groups)
    return found.width, found.paper


def _scales(scale: float, sizes: Sequence[int], kappa: float | None) -> list[float]:
    """Return the noise of means, by part, of a sum's scale; or that of groups' sizes and of their sums."""
    return [scale / size for size in sizes] if kappa is None else [scale / kappa, scale]


def meant(spec: LogMomentsMechanism, made: LogMomentsLaw) -> list[tuple[str, Any, Any]]:
    """Return what a spec means at the threshold that a release chose, beside what was made, by key.

    Raises
    ------
    SpecError
        When the parts have other sizes than the spec's records.
    """
    sizes, (first, _) = sizes_of(spec, sum(made.parts)), epsilons_of(spec)
    threshold, parts, groups = made.threshold, made.components, groups_of(made.groups)
    exact, paper = _widths(threshold, parts, groups)
    kappa = None if groups is None else grouped_sums(threshold, parts, groups).kappa
    wide = paper if spec.calibration == "paper" else exact
    known = tuple(thresholds_of(spec))
    scales = zip(_scales(wide / first, sizes, kappa), made.scale, strict=True)
    return [
        ("components", spec.components, made.components),
        ("threshold" if len(known) == 1 else "thresholds", known, made.thresholds or (made.threshold,)),
        ("split", tuple(sizes), made.parts),
        *(("scale", *each) for each in scales),
    ]
