"""Noisy counts of the bins of a histogram of the whole sample (methods, section 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.laws.additive import noise_of_scale, noise_sd
from dpmix.mechanisms.curators.mechanism import (
    HALF_NOISE,
    Floats,
    Loss,
    NoisyCells,
    Progress,
    PublicRecords,
    Released,
    Seeded,
    Stated,
    additive_loss,
)
from dpmix.mechanisms.curators.one_column import OneColumn
from dpmix.mechanisms.curators.private_groups import by_groups, count_of, groups_stated, with_groups
from dpmix.mechanisms.curators.statistic import (
    least_scale,
    noise_rho,
    of_discrete_gaussian,
    sigma_for,
)
from dpmix.privacy.accounting import Guarantee, compose
from dpmix.privacy.conversions import gaussian_mu, laplace_epsilon, response_epsilon
from dpmix.privacy.noise import AdditiveNoise, WholeNoise, noise_of, noisy
from dpmix.spec.capabilities import counted

if TYPE_CHECKING:
    from dpmix.mechanisms.perturbed_histogram.section import Noise, PerturbedHistogramMechanism

_L2 = math.nextafter(math.sqrt(2.0), 2.0)
SENSITIVITY = {"laplace": 2.0, "gaussian": _L2, "geometric": 2.0, "discrete_gaussian": _L2}
"""Replacing a record takes 1 from a count and adds 1 to another: L2 norm sqrt 2, L1 norm 2."""


@dataclass(frozen=True, kw_only=True)
class PerturbedHistogram(OneColumn):
    """Release c_j + noise for each of the m equal bins.

    Laplace and two-sided geometric noise of scale s (parameter exp(-1/s)) are eps-DP with eps = 2/s; each of
    the two counts that a record moves costs, exactly, rho = e - 1 + exp(-e) or e tanh(e/2), e = 1/s.
    Gaussian noise of standard deviation s is exactly 1/s^2-zCDP, and (eps, delta)-DP as Balle and Wang say.
    Discrete Gaussian noise of sigma s is 1/s^2-zCDP, too; its (eps, delta) is the sum over whole numbers
    (`dpmix.privacy.conversions`).

    With groups whose sizes are private the cells are pairs of group and bin, group * m + bin: a record that
    changes its group takes 1 from a count and adds 1 to another, too.
    """

    kind: ClassVar[str] = "perturbed_histogram"
    of_any_number = True
    bins: int
    noise: Noise
    s: float
    n: int | None = None
    delta: float | None = None

    @property
    def source(self) -> AdditiveNoise | WholeNoise:
        """The noise of all counts together."""
        spread = 2.0**53 if self.n is None else float(self.n)
        return noise_of(self.noise, self.s, SENSITIVITY[self.noise], self.cells, spread)

    @property
    def cells(self) -> int:
        """Number of counts."""
        return self.bins * count_of(self.groups)

    @property
    def guarantee(self) -> Guarantee:
        """Epsilon, or rho of Gaussian noise, by the noise library's own privacy map; else rho exactly."""
        return with_groups(self._guarantee, self.groups)

    @property
    def _guarantee(self) -> Guarantee:
        noise = self.source
        if self.noise == "discrete_gaussian":
            return of_discrete_gaussian(self.s, 2, self.delta, noise.loss)
        if self.noise == "gaussian":
            return compose("gaussian", [noise.loss], delta=self.delta, trust="global")
        grid = noise.grid if self.noise == "laplace" else 0.0
        return Guarantee(noise.loss, 0.0, noise_rho(self.noise, self.s, granularity=grid), "global")

    @property
    def noisy_cells(self) -> NoisyCells | None:
        """The bins and their noise; see `Mechanism`."""
        return self.cells, noise_sd(self.noise, self.s)

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return self._describe(
            bins=self.bins,
            noise=self.noise,
            scale=[self.s],
            sensitivity=[SENSITIVITY[self.noise]],
            granularity=[self.source.grid],
        )

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        found: dict[str, Any] = {"scale": self.s, "sensitivity": SENSITIVITY[self.noise], "bins": self.bins}
        if self.noise == "geometric":
            found["parameter"] = math.exp(-1 / self.s)
        if self.groups is not None:
            found |= groups_stated(self.groups) | {"cells": self.cells}
        return found | ({} if self.n is None else {"n": self.n})

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        counts = f"the counts of {columns[0]} in {counted(self.bins, 'bin')}{by_groups(self.groups)}"
        return f"{noise_of_scale(self.noise)} {self.s:.6g} on {counts}"

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        counts, clamped = self._counts(values)
        told = noisy(self.source, counts, rng)
        return self._release(told[:, None], columns, len(values), rng), clamped

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of noise on the counts; see `Mechanism`."""
        first, second = (self._counts(x)[0].astype(float) for x in (one, other))
        return additive_loss(first, second, self.s, self.noise)

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise; see `Mechanism`."""
        return HALF_NOISE, replace(self, s=self.s / 2)

    def _counts(self, values: Floats) -> tuple[NDArray[np.int64], tuple[int, ...]]:
        if self.n is not None and len(values) != self.n:
            raise PrivacyError(f"the guarantee is for {self.n} records, not {len(values)}")
        cells, clamped = self._cells(values, self.bins)
        return np.bincount(cells, minlength=self.cells).astype(np.int64), clamped


def formula_scale(spec: PerturbedHistogramMechanism) -> float:
    """Return the scale of a spec's noise, in real numbers.

    Raises
    ------
    PrivacyError
        When it cannot be met.
    """
    if spec.scale is not None:
        return spec.scale
    if spec.noise == "discrete_gaussian":
        return sigma_for(spec, 2)
    if spec.noise == "gaussian":
        if spec.rho is not None:
            return 1 / math.sqrt(spec.rho)
        assert spec.epsilon is not None and spec.delta is not None  # the spec states one of the three
        return math.sqrt(2.0) / gaussian_mu(spec.epsilon, spec.delta)
    if spec.epsilon is not None:
        return 2 / spec.epsilon
    assert spec.rho is not None
    return 1 / (response_epsilon if spec.noise == "geometric" else laplace_epsilon)(spec.rho / 2)


def make(spec: PerturbedHistogramMechanism, records: PublicRecords) -> PerturbedHistogram:
    """Calibrate to what a spec asks for; the recorded guarantee never exceeds it.

    Raises
    ------
    PrivacyError
        When it cannot be met.
    """
    domain = spec.domain
    assert domain is not None  # checked
    requested = spec.requested()

    def scaled(scale: float) -> PerturbedHistogram:
        return PerturbedHistogram(
            domain=domain,
            calibration="scale" if spec.scale is not None else "exact",
            requested=requested,
            bins=spec.bins,
            noise=spec.noise,
            s=scale,
            n=spec.n if records.n is None else records.n,
            delta=spec.delta,
            groups=records.groups,
        )

    if spec.scale is not None:
        return scaled(spec.scale)
    return least_scale(scaled, formula_scale(spec), requested, spec.noise)


def stated(spec: PerturbedHistogramMechanism, records: PublicRecords) -> Stated:
    """Return what is known of a release made elsewhere, and its guarantee by formula."""
    scale, groups = formula_scale(spec), records.groups
    own = {
        "bins": spec.bins,
        "noise": spec.noise,
        "scale": [scale],
        "sensitivity": [SENSITIVITY[spec.noise]],
    } | groups_stated(groups)
    if spec.noise == "gaussian":
        guarantee = compose("gaussian", [1 / scale**2], delta=spec.delta, trust="global")
    elif spec.noise == "discrete_gaussian":
        guarantee = of_discrete_gaussian(scale, 2, spec.delta)
    else:
        guarantee = Guarantee(2 / scale, 0.0, noise_rho(spec.noise, scale), "global")
    return own, with_groups(guarantee, groups)
