"""The law of noisy mean logarithms of censored compositions (methods, section 9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from dpmix.laws.law_base import Floats, Number, Positive, Says, Scales, Whole, is_number, of_scale
from dpmix.laws.statistic_laws import SumsOfGroups
from dpmix.mechanisms.log_moments.section import LogMomentsMechanism
from dpmix.spec.capabilities import counted

# How far one record can move the sum of the logarithms of censored compositions


def exact_width(threshold: float, parts: int) -> float:
    """Return how far one record can move the sum of log max(x, a) in L1 norm (methods, section 8).

    Compositions have d = `parts` >= 2 parts, and 0 < a < 1 is the threshold.
    """

    def side(count: int) -> float:
        return max(0.0, -count * math.log(count * threshold))

    return max(side(s) + side(t) for s in range(1, parts) for t in range(1, parts - s + 1))


def paper_width(threshold: float, parts: int) -> float:
    """Return d |log a|, valid and larger (Guo, Barrientos and Pena, section 3.1)."""
    return parts * abs(math.log(threshold))


def centre_of(threshold: float, parts: int) -> float:
    """Return the centre c from which sum_j |log max(x_j, a) - c| is the least far at most.

    See methods, section 16.

    With u = c - log a in [0, |log a|/2] the largest over compositions x is
    D(u) = max over 1 <= s <= d of g(s) + (d - 2 s) u, g(s) = -s log(s a): with y_j = log max(x_j, a) - log a,
    sum |y_j - u| is the largest over sets S of sum_S y - u |S| + u (d - |S|), the most that sum_S y can be is
    g(s) for some s <= |S| parts that are equal (the logarithm is concave) and the others 0, and there
    sum |y_j - u| is no less; S empty gives d u, which S of one part exceeds. g is concave, so that the least
    of D is where the lines next to s = d/2 cross: at u = (g(d/2 + 1) - g(d/2 - 1))/4 for even d, at half of
    g((d + 1)/2) - g((d - 1)/2) for odd d, or 0 where that is negative. There 2 D is `exact_width`, which it
    is never below: a record that changes its group moves the two groups' sums of log max(x_j, a) - c no
    more than one that changes its values moves the sums of its own group.
    """

    def g(count: int) -> float:
        return -count * math.log(count * threshold) if count else 0.0

    half, odd = divmod(parts, 2)
    slope = (g(half + 1) - g(half)) / 2 if odd else (g(half + 1) - g(half - 1)) / 4
    return math.log(threshold) + max(0.0, slope)


def centred_width(threshold: float, parts: int, centre: float) -> float:
    """Return the largest of sum_j |log max(x_j, a) - c| over compositions x, at c of `centre_of` or below.

    That is, from log a to log(a)/2.
    """
    u = centre - math.log(threshold)
    return max(max(0.0, -s * math.log(s * threshold)) + (parts - 2 * s) * u for s in range(1, parts + 1))


# The law of noisy mean logarithms of censored compositions (methods, section 9)


class ThresholdChoice(NamedTuple):
    """The choice among several thresholds: all of what is released of it.

    scores, as many as thresholds: noisy numbers of records that each is the first to leave uncensored;
    epsilon: of their two-sided geometric noise, whose parameter is exp(-epsilon/2).
    """

    thresholds: tuple[float, ...]
    scores: tuple[float, ...]
    epsilon: float


class LogMomentsLaw(SumsOfGroups):
    """Means (sums, of groups) of log max(x_j, a) over the records of one or two parts, plus noise."""

    capabilities = LogMomentsMechanism

    components: Annotated[
        Whole, Field(ge=2), Says("does not state its components, a whole number of at least 2")
    ]
    threshold: Annotated[Number, Field(gt=0, lt=1), Says("does not state its threshold, between 0 and 1")]
    parts: Annotated[
        tuple[Annotated[Whole, Field(ge=1)], ...],
        Field(min_length=1, max_length=2),
        Says("does not state the sizes of its parts"),
    ]
    scale: Annotated[Scales, Says("does not list a positive noise scale per part")]
    columns: tuple[str, ...] = ()
    thresholds: tuple[Positive, ...] = ()
    scores: tuple[Number, ...] | None = None
    epsilon1: Number | None = None
    epsilon2: Number | None = None

    @model_validator(mode="after")
    def _noise_of_each(self) -> Self:
        if self.groups is None:
            if len(self.scale) != len(self.parts):
                raise ValueError("does not list a positive noise scale per part")
            return self
        if len(self.parts) != 1:
            raise ValueError("states two parts of a release of groups")
        self._check_kappa()
        least = math.log(self.threshold) - 1e-6
        if not is_number(self.centre) or not least <= self.centre <= 0:
            raise ValueError(
                "does not state its centre, a number between the logarithm of the threshold and 0"
            )
        self._check_two_scales()
        return self

    @property
    def chosen(self) -> str:
        """The threshold, where there were several."""
        return f"the threshold chosen is {self.threshold:g}" if len(self.thresholds) > 1 else ""

    @property
    def choice(self) -> ThresholdChoice | None:
        """What the release tells of the choice among several thresholds; None where it tells no scores."""
        scores, epsilon = self.scores or (), self.epsilon2 or 0.0
        if not scores or len(scores) != len(self.thresholds) or epsilon <= 0.0:
            return None
        return ThresholdChoice(self.thresholds, scores, epsilon)

    @property
    def entries(self) -> int:
        """Number of logarithms of a record."""
        return self.components

    @property
    def range_of_entry(self) -> tuple[float, float]:
        """Least and most of a censored logarithm."""
        return math.log(self.threshold), 0.0

    def disagreement(self, n: int, columns: int) -> str | None:
        """Say whether the parts are of another number of records."""
        return f"states parts {list(self.parts)}, but n is {n}" if sum(self.parts) != n else None

    def length(self) -> tuple[int, str]:
        """Return the number of means or sums."""
        if self.groups is not None:
            return self._length_of_groups()
        several = " of each of two parts" if len(self.parts) == 2 else ""
        return self.components * len(self.parts), f"{self.components} components{several}"

    def warning(self, values: Floats, n: int) -> str | None:
        """Say that sizes or sums of groups are beyond what n records and their noise can give."""
        return None if self.groups is None else self._warning_of_groups(values, n)

    def told(self) -> Sequence[float]:
        """Return the threshold, and the noisy scores that it was chosen by."""
        return (self.threshold, *(self.scores or ()))

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        at = f", censored at {self.threshold:g}"
        if self.groups is not None:
            return self._done_by_groups(f"sums of logarithms of the compositions{at},", n)
        split = f" in parts of {' and '.join(map(str, self.parts))}" if len(self.parts) > 1 else ""
        together = f"for all of {'each part' if split else 'them'} together"
        return (
            f"Laplace noise{of_scale(self.scale)} was added to the mean logarithms of the compositions of "
            f"{counted(n, 'record')}{split}{at}, which were released {together}."
        )


LAW = LogMomentsLaw
