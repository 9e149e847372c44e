"""A binomial count whose probability moves with the record (methods, section 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import (
    TWICE_EPSILON,
    Floats,
    Loss,
    Progress,
    PublicRecords,
    Released,
    Seeded,
    Stated,
    order_in_words,
)
from dpmix.mechanisms.curators.one_column import LocalOneColumn
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.exact import (
    Ratio,
    Source,
    binomial,
    digits,
    expm1,
    log1p,
    round_down,
    round_up,
    source_of,
)
from dpmix.spec.capabilities import counted

if TYPE_CHECKING:
    from dpmix.mechanisms.binomial.section import BinomialMechanism


@dataclass(frozen=True, kw_only=True)
class Binomial(LocalOneColumn):
    """Release Z ~ Binomial(M, 1/2 + w (u - 1/2)), u the place of y in its domain, from 0 to 1.

    It is eps-DP with eps = M log((1+w)/(1-w)), attained by Z = 0 or M at the two ends of the domain, hence
    w = tanh(eps/(2 M)); and exactly rho-zCDP with rho = w eps, M randomized responses at these ends. The
    weight is a double, rounded down, and the trials are drawn with the exact rational probability.
    """

    kind: ClassVar[str] = "binomial"
    trials: int
    weight: float

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the weight that is used, rounded up."""
        return binomial_guarantee(self.trials, self.weight)

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return self._describe(scale=[], trials=self.trials, weight=self.weight)

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        return {"weight": self.weight, "trials": self.trials}

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        count = f"a count of {counted(self.trials, 'trial')} with weight {self.weight:.6g} for {columns[0]}"
        return f"binomial noise: {count}, {order_in_words(self.order)}"

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        bounded, clamped, order = self._rows(values, rng)
        counts = self.draw(bounded, source_of(rng))
        return self._release(counts, columns, len(counts), rng, order), clamped

    def probabilities(self, values: Floats) -> list[Ratio]:
        """Return the exact probability of success of values in the domain, as (numerator, denominator)."""
        low, high = (Fraction(bound) for bound in self.domain[0])
        slope = Fraction(self.weight) / (high - low)
        start = Fraction(1, 2) - Fraction(self.weight) / 2 - slope * low
        up, down = start.numerator * slope.denominator, start.denominator * slope.denominator
        rise = slope.numerator * start.denominator
        found = []
        for value in values.tolist():
            top, bottom = value.as_integer_ratio()
            found.append((up * bottom + rise * top, down * bottom))
        return found

    def draw(self, values: Floats, source: Source) -> Floats:
        """Return counts, shape (n, 1), of values in the domain, shape (n,)."""
        counts = binomial(self.probabilities(values), self.trials, source)
        return counts.astype(np.float64)[:, None]

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of the first record's count; see `Mechanism`."""
        ratios = [self.probabilities(self._clamp(x)[0][:1])[0] for x in (one, other)]
        p, q = (Fraction(*ratio) for ratio in ratios)  # of which a double may be 1
        all_, none = (self.trials * np.log(float(ratio)) for ratio in (p / q, (1 - p) / (1 - q)))
        return lambda releases: none + releases[:, 0] / self.trials * (all_ - none)

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with tanh(eps/(2 M)) of twice the epsilon, where that is below 1; see `Mechanism`."""
        weight = 2 * self.weight / (1 + self.weight**2)
        return (TWICE_EPSILON, replace(self, weight=weight)) if weight < 1 else None


def binomial_guarantee(trials: int, weight: float) -> Guarantee:
    """Return the exact guarantee of M trials with a weight, rounded up."""
    with localcontext(digits()):
        exact = trials * log1p(2 * Decimal(weight) / (1 - Decimal(weight)))
        return Guarantee(round_up(exact), 0.0, round_up(Decimal(weight) * exact))


def weight_of(spec: BinomialMechanism) -> float:
    """Return the weight of a spec, rounded down.

    Raises
    ------
    PrivacyError
        When epsilon is so small that no weight is left.
    """
    if spec.weight is not None:
        return spec.weight
    assert spec.epsilon is not None  # the spec states one of the two
    with localcontext(digits()):
        each = min(Decimal(spec.epsilon) / spec.trials, Decimal(100))
        excess = expm1(each)
        weight = round_down(excess / (excess + 2))
    weight = min(weight, math.nextafter(1.0, 0.0))
    while weight > 0 and (binomial_guarantee(spec.trials, weight).epsilon or 0.0) > spec.epsilon:
        weight = math.nextafter(weight, 0.0)
    if weight < 1e-300:
        raise PrivacyError(f"mechanism.epsilon: {spec.epsilon:g} leaves nothing to release; ask for more")
    return weight


def make(spec: BinomialMechanism, records: PublicRecords) -> Binomial:
    """Calibrate to a spec's epsilon or weight; the recorded guarantee never exceeds what was asked.

    Raises
    ------
    PrivacyError
        When epsilon is so small that no weight is left.
    """
    assert spec.domain is not None  # checked
    return Binomial(
        domain=spec.domain,
        calibration="exact" if spec.weight is None else "weight",
        requested=spec.requested(),
        trials=spec.trials,
        weight=weight_of(spec),
    )


def stated(spec: BinomialMechanism, records: PublicRecords) -> Stated:
    """Return what is known of a release made elsewhere, and its guarantee by formula."""
    weight = weight_of(spec)
    own = {"trials": spec.trials, "weight": weight, "scale": []}
    return own, binomial_guarantee(spec.trials, weight)
