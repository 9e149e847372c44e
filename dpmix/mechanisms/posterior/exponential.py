"""The exponential mechanism on the Hellinger distance: by a certificate, by a proof, or by P3's theorem."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.neighbours import TWICE_EPSILON, Loss
from dpmix.mechanisms.posterior.certificate import neighbours
from dpmix.mechanisms.posterior.certified_search import SMALLEST_DELTA, Certified, calibrated, certify
from dpmix.mechanisms.posterior.exact_draws import sampler
from dpmix.mechanisms.posterior.law import unproved_in_words
from dpmix.mechanisms.posterior.proof import Proved, proved
from dpmix.mechanisms.posterior.released_posterior import Floats, Method, PosteriorRelease
from dpmix.numerics.rounding import figure
from dpmix.posteriors.distance_tables import Posteriors
from dpmix.posteriors.hellinger_law import LISTED, ExponentialMechanism, states, theorem_gamma, weight_bits
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.exact import Source

__all__ = ["HellingerPosterior"]

Calibration = Literal["certified", "proved", "theorem"]

_MOST_LOSS = 1e6  # in place of an infinite one
_AT_ONCE_TWO, _AT_ONCE = 2001, 200  # posteriors whose certificate takes about a second at most


@dataclass(frozen=True, kw_only=True)
class HellingerPosterior(PosteriorRelease):
    """Choose r with Pr(r) proportional to exp(-exponent_scale eps H(x, r)/(2 S(x))) (P3, section 4).

    The candidates are the posteriors of all counts of n records. Calibration ``certified`` has the gamma and
    exponent_scale of least expected Hellinger error, the mean over all databases, for which the exact
    hockey-stick divergences of all neighbours in both directions, of the integer weights that are drawn from,
    meet (eps, delta). Calibration ``proved`` has those of least error that are proved to meet it, for any
    number of posteriors (methods, section 14). Calibration ``theorem`` has P3's gamma for
    |R| = C(n + d - 1, d - 1) candidates and exponent_scale = 1; it has been checked by enumeration and is not
    proved.
    """

    method: ClassVar[Method] = "hellinger"
    epsilon: float
    delta: float
    calibration: Calibration = "certified"

    def __post_init__(self) -> None:
        """Check that the guarantee can be met, before any data are read.

        Raises
        ------
        PrivacyError
            When epsilon, delta, prior or number of records are out of range, or there is no certificate or
            proof.
        """
        weight_bits(self.epsilon, self.delta, self.posteriors.size)
        if self.calibration == "certified" and self._family is None:
            raise PrivacyError(
                f"mechanism.calibration: certified is for two categories or few posteriors, not for the "
                f"{self.posteriors.size:.3g} of {self.n} records in {len(self.prior)} categories; use proved"
            )
        if self.calibration == "proved":
            _ = self.proof

    @functools.cached_property
    def posteriors(self) -> Posteriors:
        """All candidates."""
        return Posteriors(self.prior, self.n)

    @functools.cached_property
    def _family(self) -> Any:
        return neighbours(self.posteriors)

    @functools.cached_property
    def certificate(self) -> Certified | None:
        """What is certified of `law`; of the other calibrations None, but where a certificate takes no time.

        Raises
        ------
        PrivacyError
            When the certificate refutes the theorem.
        """
        if self.calibration == "certified":
            return calibrated(self._family, self.epsilon, self.delta)
        most = _AT_ONCE_TWO if len(self.prior) == 2 else _AT_ONCE
        if self.posteriors.size > most or self.delta < SMALLEST_DELTA:
            return None
        found = certify(self._family, self.law, self.epsilon, self.delta)
        if found.delta > self.delta:
            raise PrivacyError(
                f"mechanism.calibration: {self.calibration} does not hold here, delta being "
                f"{found.delta:.3g}; use certified"
            )
        return found

    @functools.cached_property
    def proof(self) -> Proved | None:
        """What is proved of `law`, where that is how it was calibrated.

        Raises
        ------
        PrivacyError
            When no calibration is proved.
        """
        if self.calibration != "proved":
            return None
        return proved(self.prior, self.n, self.epsilon, self.delta)

    @property
    def _found(self) -> Certified | Proved | None:
        return self.certificate if self.calibration == "certified" else self.proof

    @property
    def gamma(self) -> float:
        """Of the smooth sensitivity."""
        found = self._found
        return theorem_gamma(self.epsilon, self.delta, self.posteriors.size) if found is None else found.gamma

    @property
    def exponent_scale(self) -> float:
        """Factor of eps/2 in the exponent."""
        found = self._found
        return 1.0 if found is None else found.exponent_scale

    @functools.cached_property
    def law(self) -> ExponentialMechanism:
        """The probabilities of all candidates given any counts."""
        bits = weight_bits(self.epsilon, self.delta, self.posteriors.size)
        return ExponentialMechanism(self.posteriors, self.gamma, self.exponent_scale * self.epsilon / 2, bits)

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) that was asked for; a certificate says what it comes to.

        That of the theorem is stated as not proved, also where a certificate stands beside it.
        """
        return Guarantee(
            self.epsilon, self.delta, None, "global", proved=self.calibration in ("certified", "proved")
        )

    def own(self) -> dict[str, Any]:
        """Return calibration, gamma, scale of the exponent, certificate and proof."""
        found, proof = self.certificate, self.proof
        return {
            "calibration": self.calibration,
            "gamma": self.gamma,
            "exponent_scale": self.exponent_scale,
            "bits": self.law.bits,
            "certificate": None if found is None else dataclasses.asdict(found),
            "proof": None if proof is None else dataclasses.asdict(proof),
            "scale": [],
            "sensitivity": [],
        }

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        own = self.own()
        shown = ("calibration", "gamma", "exponent_scale", "certificate", "proof")
        return super().figures() | {key: own[key] for key in shown} | {"n": self.n}

    def in_words(self, columns: Sequence[str]) -> str:
        """Say how the posterior is chosen."""
        found, how = self.certificate, str(self.calibration)
        if self.calibration == "theorem":
            how = "by a theorem; " + unproved_in_words(len(self.prior))
        if found is not None:
            actual = f"epsilon {figure(found.epsilon)} at that delta and delta {figure(found.delta, 3)}"
            how += f", actually {actual} at epsilon"
        return (
            f"exponential mechanism on the Hellinger distance between posteriors of {', '.join(columns)} in "
            f"{len(self.prior)} categories, gamma {self.gamma:.6g} and exponent scale "
            f"{self.exponent_scale:.6g}, {how}{self.chosen_in_words()}"
        )

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of the posterior that is chosen, where all weights are listed; see `Mechanism`."""
        d = len(self.prior)
        if d > 2 and self.posteriors.size > LISTED:
            return None
        weights = [np.asarray(self.law.weights(self.counts(x)), dtype=float) for x in (one, other)]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = [np.log(w / w.max()) - np.log((w / w.max()).sum()) for w in weights]
            each = np.nan_to_num(logs[0] - logs[1], nan=0.0, posinf=_MOST_LOSS, neginf=-_MOST_LOSS)
        least = self.prior[0]
        if d == 2:
            last = len(each) - 1
            return lambda releases: each[np.clip(np.rint(releases[:, 0] - least).astype(int), 0, last)]
        rows = map(tuple, states(self.posteriors.n, d).tolist())
        places = {counts: place for place, counts in enumerate(rows)}

        def loss(releases: Floats) -> Floats:
            counts = np.rint(releases[:, :d] - self.prior).astype(int)
            found = map(tuple, counts.tolist())
            return np.array([each[places[row]] if row in places else 0.0 for row in found])

        return loss

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with twice the epsilon, where that can be drawn; see `Mechanism`."""
        try:
            return TWICE_EPSILON, dataclasses.replace(self, epsilon=2 * self.epsilon)
        except PrivacyError:
            return None

    def choose(self, counts: tuple[int, ...], source: Source) -> tuple[Floats, dict[str, Any]]:
        """Return the counts of a posterior, drawn exactly from the integer weights."""
        return np.array(sampler(self.law, counts).draw(source), dtype=np.float64), {}

    def imitate(self, counts: tuple[int, ...], rng: np.random.Generator) -> tuple[Floats, dict[str, Any]]:
        """Return the same from a seeded generator."""
        return self.choose(counts, rng.bytes)
