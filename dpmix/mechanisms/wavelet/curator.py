"""The Haar coefficients of each record with Laplace noise (methods, section 2; P1 section 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import (
    HALF_NOISE,
    Floats,
    Loss,
    Progress,
    PublicRecords,
    Released,
    Seeded,
    Stated,
    additive_loss,
    order_in_words,
)
from dpmix.mechanisms.curators.one_column import LocalOneColumn, checked_edges
from dpmix.mechanisms.wavelet.law import haar
from dpmix.numerics.equal_cells import cell_of
from dpmix.privacy.accounting import Guarantee, sum_up
from dpmix.privacy.conversions import laplace_rho, rho_to_pure_bound
from dpmix.privacy.noise import BLOCK, AdditiveNoise, calibrated, noisy

if TYPE_CHECKING:
    from dpmix.mechanisms.wavelet.section import WaveletMechanism

_MOST = 2**28
"""Numbers that a release may have: two gigabytes."""


@dataclass(frozen=True, kw_only=True)
class Wavelet(LocalOneColumn):
    """Release psi_jk(y) + Laplace(s) for every level j = 0..J and k = 0..2^j - 1, in this order.

    y is mapped to [0, 1), and psi_jk(y) = 2^(j/2) (1[0 <= u < 1/2] - 1[1/2 <= u < 1]) with u = 2^j y - k, so
    that the coefficients depend on the dyadic cell of y of width 2^-(J+1) alone; y = hi is in the last one.
    Two records whose cells part at level d differ by 2 2^(d/2) in one coefficient, and by 2^(j/2) in two
    coefficients of each finer level j. Replacing a record costs at most, at d = 0,
    eps = 2 (2^((J+1)/2) - 1)/(sqrt 2 - 1)/s exactly; rho is the largest over d of the sum over these
    coefficients of e - 1 + exp(-e), e = change/s, exactly.
    """

    kind: ClassVar[str] = "wavelet"
    levels: int
    s: float

    @property
    def noise(self) -> AdditiveNoise:
        """The noise of all coefficients of some records."""
        width = 2 ** (self.levels + 1) - 1
        return AdditiveNoise("laplace", self.s, haar_sensitivity(self.levels), max(1, BLOCK // width) * width)

    @property
    def guarantee(self) -> Guarantee:
        """Epsilon by the noise library's own privacy map; rho exactly, with its granularity."""
        noise = self.noise
        return Guarantee(noise.loss, 0.0, haar_rho(self.levels, self.s, noise.grid))

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return self._describe(
            levels=self.levels,
            scale=[self.s],
            sensitivity=[haar_sensitivity(self.levels)],
            granularity=[self.noise.grid],
        )

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        found: dict[str, Any] = {"scale": self.s, "sensitivity": haar_sensitivity(self.levels)}
        if self.calibration == "paper":
            found["sensitivity_paper"] = paper_sensitivity(self.levels)
            found |= {f"{name}_requested": value for name, value in self.requested.items()}
        return found

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        width = 2 ** (self.levels + 1) - 1
        noise = (
            f"Laplace noise of scale {self.s:.6g} on each of the {width} Haar coefficients of {columns[0]}"
        )
        return f"{noise}, {order_in_words(self.order)}"

    def names(self, column: str) -> tuple[str, ...]:
        """Return the names of the coefficients: the column's with (j, k)."""
        return tuple(f"{column}_{j}_{k}" for j in range(self.levels + 1) for k in range(2**j))

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        self.check(values)
        bounded, clamped, order = self._rows(values, rng)
        edges = checked_edges(self.kind, self.domain[0], 2 ** (self.levels + 1))
        coefficients = haar(cell_of(bounded, edges), self.levels)
        n, width = coefficients.shape
        report = None if progress is None else lambda done: progress(done // width)
        told = noisy(self.noise, coefficients.ravel(), rng, report).reshape(n, width)
        return self._release(told, columns, n, rng, order), clamped

    def check(self, values: Floats) -> None:
        """Refuse more coefficients than a release can have; see `Mechanism`."""
        width = 2 ** (self.levels + 1) - 1
        if len(values) * width > _MOST:
            raise PrivacyError(
                f"{len(values)} records of {width} coefficients each are more than the {_MOST} numbers that "
                f"a release may have; take mechanism.levels below {self.levels}"
            )

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of noise on the coefficients; see `Mechanism`."""
        first, second = (
            haar(self._cells(x[:, :1], 2 ** (self.levels + 1))[0], self.levels)[0] for x in (one, other)
        )
        return additive_loss(first, second, self.s, "laplace")

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise; see `Mechanism`."""
        return HALF_NOISE, replace(self, s=self.s / 2)


def haar_changes(levels: int, parting: int) -> list[tuple[int, float]]:
    """Return how the coefficients of cells that part at level 0 <= d <= J differ: (how many, by how much).

    The coefficient of that level has the two cells in its two halves.
    """
    found = [(1, 2 * math.sqrt(2.0**parting))]
    return found + [(2, math.sqrt(2.0**j)) for j in range(parting + 1, levels + 1)]


def haar_sensitivity(levels: int) -> float:
    """Return the L1 sensitivity 2 (2^((J+1)/2) - 1)/(sqrt 2 - 1), of the coefficients as doubles too."""
    exact = [2.0 ** (j // 2) for j in range(0, levels + 1, 2)]
    roots = [math.nextafter(math.sqrt(2.0**j), math.inf) for j in range(1, levels + 1, 2)]
    return 2 * sum_up(exact + roots)


def haar_rho(levels: int, scale: float, granularity: float = 0.0) -> float:
    """Return the exact zCDP of Laplace noise on the coefficients, rounded up.

    The Renyi divergences of independent coefficients add, and each has its largest ratio to the order at
    order 1. Rounding to a grid may add `granularity` to a change.
    """
    return max(
        (1 + 2.0**-48)
        * sum(count * laplace_rho((by + granularity) / scale) for count, by in haar_changes(levels, parting))
        for parting in range(levels + 1)
    )


def paper_sensitivity(levels: int) -> float:
    """Return P1's bound 12 sqrt 2/(sqrt 2 - 1) 2^(J/2), valid and 6.6 times too large at J = 6."""
    return 12 * math.sqrt(2) / (math.sqrt(2) - 1) * math.sqrt(2.0**levels)


def formula_scale(spec: WaveletMechanism) -> float:
    """Return the Laplace scale of a spec, in real numbers."""
    if spec.scale is not None:
        return spec.scale
    epsilon = spec.epsilon
    if spec.calibration == "paper":
        if epsilon is None:
            assert spec.rho is not None  # the spec states one of the three
            epsilon = rho_to_pure_bound(spec.rho)
        return paper_sensitivity(spec.levels) / epsilon
    if epsilon is not None:
        return haar_sensitivity(spec.levels) / epsilon
    assert spec.rho is not None
    low, high = 0.0, 1.0
    while haar_rho(spec.levels, high) > spec.rho:
        low, high = high, 2 * high
        if high > 1e200:
            raise PrivacyError(f"no Laplace noise meets rho = {spec.rho:g}")
    while (middle := 0.5 * (low + high)) not in (low, high) and high - low > 1e-15 * high:
        if haar_rho(spec.levels, max(middle, 1e-250)) <= spec.rho:
            high = middle
        else:
            low = middle
    return high


def make(spec: WaveletMechanism, records: PublicRecords) -> Wavelet:
    """Calibrate to a spec's epsilon, rho or scale; the recorded guarantee never exceeds what was asked.

    Raises
    ------
    PrivacyError
        When it cannot be met.
    """
    assert spec.domain is not None  # checked
    ((name, asked),) = spec.requested().items()
    made = Wavelet(
        domain=spec.domain,
        calibration="scale" if name == "scale" else spec.calibration,
        requested={name: asked},
        levels=spec.levels,
        s=formula_scale(spec),
    )
    if name == "scale" or spec.calibration == "paper":
        return made
    for attempt in range(60):
        if name == "epsilon":
            exact = haar_sensitivity(spec.levels)
            noise = calibrated("laplace", made.s, exact, asked, block=made.noise.block)
            scale = noise.scale
        else:
            scale = made.s * (1 + (2.0**attempt - 1) * 2.0**-52)
        found = replace(made, s=scale)
        if found.guarantee.within(found.requested):
            return found
    raise PrivacyError(f"no Laplace noise meets {name} = {asked:g}")


def stated(spec: WaveletMechanism, records: PublicRecords) -> Stated:
    """Return what is known of a release made elsewhere, and its guarantee by formula."""
    scale = formula_scale(spec)
    loss = haar_sensitivity(spec.levels) / scale
    own = {"levels": spec.levels, "scale": [scale], "sensitivity": [haar_sensitivity(spec.levels)]}
    return own, Guarantee(loss, 0.0, haar_rho(spec.levels, scale))
