"""Private releases of a conjugate posterior: counts in, parameters of a posterior out.

What all of them share is `PosteriorRelease`. `NoisyPosterior` adds noise to the counts and moves them to the
nearest that a posterior can have; it is the baseline of the exponential mechanism.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.laws.additive import noise_of_scale
from dpmix.mechanisms.curators.mechanism import (
    HALF_NOISE,
    Floats,
    Loss,
    Mechanism,
    Pair,
    Pairs,
    Progress,
    Released,
    Seeded,
    additive_loss,
    moved,
)
from dpmix.mechanisms.curators.statistic import least_scale, noise_rho
from dpmix.posteriors.hellinger_law import checked_counts
from dpmix.posteriors.simulated_draws import settled
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.noise import AdditiveNoise, WholeNoise, noise_of, noisy

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release

Method = Literal["hellinger", "laplace", "geometric"]


@dataclass(frozen=True, kw_only=True)
class PosteriorRelease(Mechanism):
    """Release the posterior of category probabilities, Dir(prior + counts), by its parameters.

    Parameters
    ----------
    prior : tuple of float
        Parameters of the beta or Dirichlet prior, one for each category.
    n : int
        Number of confidential records, which is public.
    categories : tuple of str
        Public names of the categories; empty where they are not known.
    requested : dict
        What was asked for, such as ``{"epsilon": 0.8, "delta": 1e-8}``.
    choice : dict of float
        Expected error of each method, where the spec left the method out; empty where it did not.
    """

    kind: ClassVar[str] = "posterior"
    method: ClassVar[Method]
    prior: tuple[float, ...]
    n: int
    categories: tuple[str, ...] = ()
    requested: Mapping[str, float] = field(default_factory=dict)
    domain: Pairs = ()
    choice: Mapping[str, float | None] = field(default_factory=dict)

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record changes its category; see `Mechanism`."""
        last = float(len(self.prior) - 1)
        for share in (0, n // 2):
            base = np.zeros((n, 1))
            base[1 : 1 + share] = last
            yield moved(f"a count goes from {share} to {share + 1}", base, np.zeros(1), np.full(1, last))

    @abc.abstractmethod
    def own(self) -> dict[str, Any]:
        """Return what is public of this method alone, for JSON."""

    @abc.abstractmethod
    def choose(self, counts: tuple[int, ...], rng: Seeded) -> tuple[Floats, dict[str, Any]]:
        """Return counts that are private, shape (d,), and anything else that may be released of them."""

    def random_records(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw records of nobody; see `Mechanism`."""
        return rng.integers(len(self.prior), size=(n, 1)).astype(np.float64)

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return {
            "kind": self.kind,
            "method": self.method,
            "prior": list(self.prior),
            "n": self.n,
            "categories": list(self.categories) or None,
            "requested": dict(self.requested),
            "choice": dict(self.choice) or None,
            "domain": None,
        } | self.own()

    def figures(self) -> dict[str, Any]:
        """Return the method, and why it is that one where the spec does not say."""
        return {"method": self.method} | ({"choice": dict(self.choice)} if self.choice else {})

    def chosen_in_words(self) -> str:
        """Say by which expected errors the method was chosen; nothing where the spec says the method."""
        if not self.choice:
            return ""
        known = ", ".join(
            f"{name} {'not possible' if error is None else f'{error:.3g}'}"
            for name, error in self.choice.items()
        )
        return f"; method {self.method} chosen by expected error, of public numbers alone: {known}"

    def counts(self, values: Floats) -> tuple[int, ...]:
        """Return the counts of the categories, of codes 0, .., d - 1, shape (n, 1).

        Raises
        ------
        PrivacyError
            When they are not n such codes.
        """
        d = len(self.prior)
        codes = values[:, 0] if values.shape == (self.n, 1) else np.array([np.nan])
        if not np.isin(codes, np.arange(d)).all():
            raise PrivacyError(
                f"{self.kind} takes {self.n} records of one column, each of {d} categories by its code"
            )
        return tuple(np.bincount(codes.astype(np.int64), minlength=d).tolist())

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        return self.release_of_counts(self.counts(values), rng, columns[0]), (0,)

    def release_of_counts(
        self, counts: Sequence[float] | NDArray[np.generic], rng: Seeded = None, column: str | None = None
    ) -> Release:
        """Release the posterior given counts, by the operating system's randomness or `rng`'s.

        Where `column` is given, the release names what was counted.

        Raises
        ------
        PrivacyError
            When they are not whole numbers of at least 0 that sum to n, one for each entry of the prior.
        """
        chosen, more = self.choose(checked_counts(counts, len(self.prior), self.n), rng)
        values = (np.array(self.prior) + chosen)[:, None]
        named = {} if column is None else {"column": column}
        return self.made(values, ("parameter",), self.n, private=rng is None, chosen=more | named)


# Noise on the counts


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

        return least_scale(make, sensitivity / epsilon, {"epsilon": epsilon})

    @property
    def moved(self) -> int:
        """How far a record really moves what is noisy, in L1 norm."""
        return 1 if len(self.prior) == 2 else 2

    @property
    def noisy_size(self) -> int:
        """How many counts carry noise."""
        return 1 if len(self.prior) == 2 else len(self.prior)

    @property
    def source(self) -> AdditiveNoise | WholeNoise:
        """The noise of all counts together."""
        return noise_of(self.noise, self.s, float(self.moved), self.noisy_size, float(self.n))

    @property
    def guarantee(self) -> Guarantee:
        """Epsilon by the noise library's own privacy map, and rho."""
        rho = noise_rho(self.noise, self.s, 1, 2.0**-40) * self.moved / 2
        return Guarantee(self.source.loss, 0.0, rho, "global")

    def own(self) -> dict[str, Any]:
        """Return noise, scale and post-processing."""
        two = len(self.prior) == 2
        return {
            "calibration": "exact",
            "noise": self.noise,
            "scale": [self.s],
            "sensitivity": [self.sensitivity],
            "granularity": [self.source.grid],
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
        where = "the first count" if len(self.prior) == 2 else f"the {len(self.prior)} counts"
        names = ", ".join(columns)
        return (
            f"{noise_of_scale(self.noise)} {self.s:.6g} on {where} of {names}, moved to the nearest posterior"
            f"{self.chosen_in_words()}"
        )

    def choose(self, counts: tuple[int, ...], rng: Seeded) -> tuple[Floats, dict[str, Any]]:
        """Return noisy counts as a posterior can have them, and these counts; see `PosteriorRelease`."""
        told = noisy(self.source, np.array(counts[: self.noisy_size]), rng)
        return settled(told, self.n), {"noisy_counts": told.tolist()}

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of the noisy counts, which are told last; see `Mechanism`."""
        size = self.noisy_size
        first, second = (np.array(self.counts(x)[:size], dtype=float) for x in (one, other))
        of_counts = additive_loss(first, second, self.s, self.noise)
        return lambda releases: of_counts(releases[:, -size:])

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise; see `Mechanism`."""
        return HALF_NOISE, replace(self, s=self.s / 2)


class LaplacePosterior(NoisyPosterior):
    """Laplace noise on the counts; see `NoisyPosterior`."""

    method: ClassVar[Method] = "laplace"
    noise: ClassVar[Literal["laplace", "geometric"]] = "laplace"


class GeometricPosterior(NoisyPosterior):
    """Two-sided geometric noise on the counts; see `NoisyPosterior`."""

    method: ClassVar[Method] = "geometric"
    noise: ClassVar[Literal["laplace", "geometric"]] = "geometric"
