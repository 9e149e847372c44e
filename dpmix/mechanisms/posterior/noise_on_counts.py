"""Noise on the counts, post-processed to a valid posterior: the baselines of the exponential mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpmix.mechanisms.curators.neighbours import HALF_NOISE, Loss, additive_loss
from dpmix.mechanisms.curators.statistic import calibrated_scale, noise_rho
from dpmix.mechanisms.posterior.released_posterior import Floats, Method, PosteriorRelease
from dpmix.posteriors.noisy_posterior import settled
from dpmix.privacy.accounting import Guarantee, LaplaceEvent
from dpmix.privacy.exact import Source
from dpmix.privacy.noise import AdditiveNoise, GeometricNoise

__all__ = ["GeometricPosterior", "LaplacePosterior", "NoisyPosterior"]


@dataclass(frozen=True, kw_only=True)
class NoisyPosterior(PosteriorRelease):
    """Release Dir(prior + c~), c~ the noisy counts moved to the nearest that a posterior can have.

    Two categories: noise on the first count alone, which with n says all, clipped to [0, n]; the other is n
    less it. The count moves by 1, so that noise of scale 1/eps is eps-DP (`sensitivity` 1); P3 has the scale
    2/eps of `sensitivity` 2, which costs eps/2 really, and that is what is recorded. More categories: noise
    of scale 2/eps on every count, of which a record moves two by 1; the noisy counts are replaced by the
    nearest point (Euclidean) with entries of at least 0 that sum to n. The noisy counts are released too.

    Parameters
    ----------
    s : float
        Scale of the noise.
    sensitivity : int
        That the scale is for.
    """

    noise: ClassVar[Literal["laplace", "geometric"]]
    s: float
    sensitivity: int

    @classmethod
    def calibrated(
        cls, epsilon: float, sensitivity: int, delta: float | None = None, **public: Any
    ) -> NoisyPosterior:
        """Return the release with the smallest noise nearby whose privacy map does not exceed `epsilon`.

        Raises
        ------
        PrivacyError
            When there is none.
        """
        asked = {"epsilon": epsilon} | ({} if delta is None else {"delta": delta})

        def make(scale: float) -> NoisyPosterior:
            return cls(s=scale, sensitivity=sensitivity, requested=asked, **public)

        made: NoisyPosterior = calibrated_scale(make, float(sensitivity), epsilon)
        return made

    @property
    def moved(self) -> int:
        """How far a record really moves what is noisy, in L1 norm."""
        return 1 if len(self.prior) == 2 else 2

    @property
    def noisy_size(self) -> int:
        """How many counts carry noise."""
        return 1 if len(self.prior) == 2 else len(self.prior)

    @property
    def source(self) -> AdditiveNoise | GeometricNoise:
        """The noise of all counts together."""
        if self.noise == "geometric":
            return GeometricNoise(self.s, self.moved, self.noisy_size)
        return AdditiveNoise("laplace", self.s, float(self.moved), self.noisy_size, float(self.n))

    @property
    def guarantee(self) -> Guarantee:
        """Epsilon by the noise library's own privacy map, and rho."""
        noise = self.source
        rho = noise_rho(self.noise, self.s, 1, 2.0**-40) * self.moved / 2
        if isinstance(noise, GeometricNoise):
            return Guarantee(noise.epsilon, 0.0, rho, "global")
        event = noise.event()
        assert isinstance(event, LaplaceEvent)  # its noise is
        return Guarantee(event.epsilon, 0.0, rho, "global")

    def own(self) -> dict[str, Any]:
        """Return noise, scale and post-processing."""
        noise = self.source
        grid = 1.0 if isinstance(noise, GeometricNoise) else 2.0**noise.granularity
        two = len(self.prior) == 2
        return {
            "calibration": "exact",
            "noise": self.noise,
            "scale": [self.s],
            "sensitivity": [self.sensitivity],
            "granularity": [grid],
            "post_processing": "first count clipped to [0, n]"
            if two
            else "nearest counts of at least 0 that sum to n",
        }

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        more = {} if self.sensitivity == self.moved else {"epsilon_requested": self.requested["epsilon"]}
        return super().figures() | {"scale": self.s, "sensitivity": self.sensitivity, "n": self.n} | more

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        words = {"laplace": "Laplace noise", "geometric": "two-sided geometric noise"}[self.noise]
        where = "the first count" if len(self.prior) == 2 else f"the {len(self.prior)} counts"
        names = ", ".join(columns)
        return (
            f"{words} of scale {self.s:.6g} on {where} of {names}, moved to the nearest posterior"
            f"{self.chosen_in_words()}"
        )

    def choose(self, counts: tuple[int, ...], source: Source) -> tuple[Floats, dict[str, Any]]:
        """Return noisy counts as a posterior can have them; the noise has its own source, the system's."""
        noise, own = self.source, np.array(counts[: self.noisy_size], dtype=np.int64)
        noisy = noise.add(own) if isinstance(noise, GeometricNoise) else noise.add(own.astype(np.float64))
        return self._settled(noisy)

    def imitate(self, counts: tuple[int, ...], rng: np.random.Generator) -> tuple[Floats, dict[str, Any]]:
        """Return the same with seeded noise."""
        noise, own = self.source, np.array(counts[: self.noisy_size], dtype=np.int64)
        if isinstance(noise, GeometricNoise):
            return self._settled(noise.simulate(own, rng))
        return self._settled(noise.simulate(own.astype(np.float64), rng))

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of the noisy counts, which are told last; see `Mechanism`."""
        size = self.noisy_size
        first, second = (np.array(self.counts(x)[:size], dtype=float) for x in (one, other))
        of_counts = additive_loss(first, second, self.s, self.noise)
        return lambda releases: of_counts(releases[:, -size:])

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise; see `Mechanism`."""
        return HALF_NOISE, replace(self, s=self.s / 2)

    def _settled(self, noisy: Floats) -> tuple[Floats, dict[str, Any]]:
        return settled(noisy, self.n), {"noisy_counts": noisy.tolist()}


class LaplacePosterior(NoisyPosterior):
    """Laplace noise on the counts; see `NoisyPosterior`."""

    method: ClassVar[Method] = "laplace"
    noise: ClassVar[Literal["laplace", "geometric"]] = "laplace"


class GeometricPosterior(NoisyPosterior):
    """Two-sided geometric noise on the counts; see `NoisyPosterior`."""

    method: ClassVar[Method] = "geometric"
    noise: ClassVar[Literal["laplace", "geometric"]] = "geometric"
