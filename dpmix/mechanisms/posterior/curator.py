"""The private release of a conjugate posterior that a spec asks for (methods, sections 6 and 14).

`HellingerPosterior` is the exponential mechanism on the Hellinger distance: by a certificate, by a proof, or
by P3's theorem. Posteriors are drawn exactly from integer weights: random integers, uniform below bounds of
any size, from the source's bytes, are compared with sums and products of integers, and nothing is rounded
between the weights and the draw. Noise on the counts is in `dpmix.mechanisms.posterior.released_posterior`.

Where the spec leaves the method out it is that of least expected error. The errors are means over all
databases of n records (`dpmix.mechanisms.posterior.calibrations`), so that the choice depends on n, prior,
epsilon and delta alone.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.mechanism import TWICE_EPSILON, Floats, Loss, PublicRecords, Seeded
from dpmix.mechanisms.posterior.calibrations import (
    SMALLEST_DELTA,
    Certified,
    Proved,
    calibrated,
    certify,
    noise_errors,
    proved,
    some_databases,
)
from dpmix.mechanisms.posterior.certificate import can_be_certified, neighbours
from dpmix.mechanisms.posterior.law import unproved_in_words
from dpmix.mechanisms.posterior.released_posterior import (
    GeometricPosterior,
    LaplacePosterior,
    Method,
    PosteriorRelease,
)
from dpmix.numerics.in_words import figure
from dpmix.posteriors import hellinger_law
from dpmix.posteriors.hellinger_law import (
    LISTED,
    ExponentialMechanism,
    Posteriors,
    states,
    theorem_gamma,
    weight_bits,
)
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.exact import Source, below, source_of

if TYPE_CHECKING:
    from dpmix.mechanisms.curators.mechanism import Stated
    from dpmix.mechanisms.posterior.law import PosteriorLaw
    from dpmix.mechanisms.posterior.section import PosteriorMechanism

Calibration = Literal["certified", "proved", "theorem"]

_BLOCK = 4096
_WORD = 40
_STEP = 0.25
_MOST = 2.0**61  # units; the tables leave distances below 2^60
_MOST_LOSS = 1e6  # in place of an infinite one
_AT_ONCE_TWO, _AT_ONCE = 2001, 200  # posteriors whose certificate takes about a second at most

# Exact draws of a posterior from integer weights, listed or not


def sampler(law: ExponentialMechanism, counts: Sequence[int]) -> Listed | Shells:
    """Return what draws the counts of a posterior given the true counts; their number decides how."""
    of = law.posteriors
    return Listed(law, counts) if of.dimension == 2 or of.size <= LISTED else Shells(law, counts)


class Listed:
    """All weights, and a draw by their cumulative sums, in integers.

    Parameters
    ----------
    law : ExponentialMechanism
        Of two categories, or few posteriors.
    counts : sequence of int
        True counts.
    """

    def __init__(self, law: ExponentialMechanism, counts: Sequence[int]) -> None:
        self.law = law
        self.weights = law.weights(counts)
        sums = exact_sums(self.weights)
        self.ends = list(itertools.accumulate(sums))

    @property
    def total(self) -> int:
        """Sum of all weights."""
        return self.ends[-1]

    def draw(self, source: Source) -> tuple[int, ...]:
        """Return counts drawn with probability weight over total."""
        place = below(self.total, source)
        block = bisect.bisect_right(self.ends, place)
        place -= self.ends[block - 1] if block else 0
        start = block * _BLOCK
        ends = itertools.accumulate(map(int, self.weights[start : start + _BLOCK].tolist()))
        found = start + next(i for i, end in enumerate(ends) if place < end)
        of = self.law.posteriors
        if of.dimension == 2:
            return found, of.n - found
        return tuple(states(of.n, of.dimension)[found].tolist())


def exact_sums(weights: NDArray[np.float64]) -> list[int]:
    """Return the sums of blocks of 4096 integers, held as doubles of any size, exactly."""
    found = [0] * -(-len(weights) // _BLOCK)
    rest, power = weights, 0
    starts = np.arange(0, len(weights), _BLOCK)
    while rest.any():  # by words of 40 bits, of which 4096 have a sum of 52
        high = np.floor(np.ldexp(rest, -_WORD))
        low = (rest - np.ldexp(high, _WORD)).astype(np.int64)
        for block, part in enumerate(np.add.reduceat(low, starts)):
            found[block] += int(part) << power
        rest, power = high, power + _WORD
    return found


class Shells:
    """Draws among more posteriors than can be listed, by rejection from nested boxes around the truth.

    Box j holds the r of which d - 1 counts (all but that with the largest true count) are each in an interval
    that has all r_i with h_i(c_i, r_i) <= t_j. As no h_i is negative, the distance outside of it is more than
    that of t_j, and the weight at most m_{j+1}, the weight at t_j; m_0 = 2^bits bounds all. So m_j on box j
    without box j - 1, and the last m on all posteriors that are in no box, is an envelope of the weights. It
    is a sum of uniform layers, box j with height m_j - m_{j+1} and all posteriors with the last m: a layer is
    drawn by its volume, a point of it uniformly, and kept with probability weight/m of its shell, all in
    integers. What is kept has exactly the probabilities of the weights, whatever the boxes are.

    Parameters
    ----------
    law : ExponentialMechanism
        Of at least two categories.
    counts : sequence of int
        True counts.
    """

    def __init__(self, law: ExponentialMechanism, counts: Sequence[int]) -> None:
        of = law.posteriors
        self.law = law
        self.apart = of.apart(counts)
        self.rate = law.rate(counts)
        self.last = int(np.argmax(counts))
        self.free = [i for i in range(of.dimension) if i != self.last]
        limits = self._limits()
        self.lows, self.highs = self._boxes(counts, limits)
        tops = [int(law.top)]
        for limit in limits:
            above = math.floor(self.weight(limit) * (1 + 2.0**-30)) + 1  # whatever rounding does to the order
            tops.append(min(tops[-1], above))
        self.tops = tops
        volumes = [math.prod((self.highs[:, j] - self.lows[:, j] + 1).tolist()) for j in range(len(limits))]
        heights = [high - low for high, low in itertools.pairwise(tops)]
        masses = [v * h for v, h in zip(volumes, heights, strict=True)]
        self.ends = list(itertools.accumulate([*masses, of.size * tops[-1]]))

    def weight(self, apart: int) -> float:
        """Return the integer weight at a distance in units of the tables."""
        found: float = hellinger_law.weight(apart, self.law.posteriors.unit, self.rate, self.law.top)
        return found

    def _limits(self) -> list[int]:
        """Return t_0 < t_1 < ..: weights fall by a quarter in the exponent each, until they hardly fall."""
        unit, found = self.law.posteriors.unit, []
        for j in itertools.count(1):
            reach = j * _STEP / self.rate
            if reach >= 1 or (j - 1) * _STEP > (self.law.bits + 1) * math.log(2):
                break
            found.append(int(min(-math.log1p(-reach * reach) / unit, _MOST)))
        return found

    def _boxes(self, counts: Sequence[int], limits: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first and last r_i of each free category (row) in each box (column)."""
        lows = np.empty((len(self.free), len(limits)), dtype=np.int64)
        highs = np.empty_like(lows)
        for row, i in enumerate(self.free):
            own, c = self.apart[i], counts[i]
            left = np.minimum.accumulate(own[: c + 1])[::-1]  # the least from 0 to c - k: falls towards c
            right = np.minimum.accumulate(own[c:][::-1])[::-1]  # the least from c + k to n
            lows[row] = c + 1 - np.searchsorted(left, limits, side="right")
            highs[row] = c - 1 + np.searchsorted(right, limits, side="right")
        return lows, highs

    def draw(self, source: Source) -> tuple[int, ...]:
        """Return counts drawn with probability proportional to their weight.

        Raises
        ------
        PrivacyError
            Never, unless the bound on the weights is wrong.
        """
        while True:
            found = self._propose(source)
            if found is None:
                continue
            own = int(self.weight(sum(int(self.apart[i, r]) for i, r in enumerate(found))))
            bound = self.tops[self._shell(found)]
            if own > bound:
                raise PrivacyError("the bound on the weights of posteriors does not hold")
            if below(bound, source) < own:
                return found

    def _propose(self, source: Source) -> tuple[int, ...] | None:
        """Draw a point of the layers, or None where its last count would be below 0."""
        of = self.law.posteriors
        layer = bisect.bisect_right(self.ends, below(self.ends[-1], source))
        if layer == len(self.ends) - 1:
            return _any(of.n, of.dimension, source)
        found = [0] * of.dimension
        for row, i in enumerate(self.free):
            low, high = int(self.lows[row, layer]), int(self.highs[row, layer])
            found[i] = low + below(high - low + 1, source)
        found[self.last] = of.n - sum(found)
        return tuple(found) if found[self.last] >= 0 else None

    def _shell(self, found: tuple[int, ...]) -> int:
        """Return the first box that holds all free counts; the number of boxes where none does."""
        shell = 0
        for row, i in enumerate(self.free):
            shell = max(shell, int(np.searchsorted(-self.lows[row], -found[i])))
            shell = max(shell, int(np.searchsorted(self.highs[row], found[i])))
        return shell


def _any(n: int, dimension: int, source: Source) -> tuple[int, ...]:
    """Draw counts uniformly among all: d - 1 different places of n + d - 1 are bars, the others records."""
    while True:
        bars = sorted(below(n + dimension - 1, source) for _ in range(dimension - 1))
        if all(one < other for one, other in itertools.pairwise(bars)):
            ends = [-1, *bars, n + dimension - 1]
            return tuple(right - left - 1 for left, right in itertools.pairwise(ends))


# The exponential mechanism on the Hellinger distance


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

    def choose(self, counts: tuple[int, ...], rng: Seeded) -> tuple[Floats, dict[str, Any]]:
        """Return the counts of a posterior, drawn exactly from integer weights; see `PosteriorRelease`."""
        return np.array(sampler(self.law, counts).draw(source_of(rng)), dtype=np.float64), {}


# From a spec


def make(spec: PosteriorMechanism, records: PublicRecords) -> PosteriorRelease:
    """Return the calibrated release of a posterior, of the one column that is named.

    Where the spec leaves the method out and has a delta, the one of least expected error is taken (`choose`);
    without a delta geometric noise.

    Raises
    ------
    SpecError
        When prior, categories and columns do not go together.
    PrivacyError
        When the guarantee cannot be met.
    """
    columns, categories, n = records.names, records.categories, records.n
    assert n is not None and spec.epsilon is not None  # checked
    if len(columns) != 1:
        raise SpecError(
            f"data.columns: names {len(columns)} columns, but posterior releases the counts of one"
        )
    names = categories[0] if categories and categories[0] is not None else ()
    if names and len(names) != len(spec.prior):
        raise SpecError(
            f"mechanism.prior: has {len(spec.prior)} entries, but data.categories lists {len(names)}; give "
            "one entry for each category"
        )
    public: dict[str, Any] = {"prior": spec.prior, "n": n, "categories": names}
    sensitivity = spec.sensitivity or (1 if len(spec.prior) == 2 else 2)
    if spec.noisy:
        of = LaplacePosterior if spec.method == "laplace" else GeometricPosterior
        return of.calibrated(spec.epsilon, sensitivity, **public)
    assert spec.delta is not None  # the spec requires it
    calibration: Any = spec.calibration
    if spec.method is None and calibration is None:
        noisy = GeometricPosterior.calibrated(spec.epsilon, sensitivity, spec.delta, **public)
        found = choose(spec.prior, n, spec.epsilon, spec.delta, noisy.s)
        if found.calibration is None:
            return dataclasses.replace(noisy, choice=found.errors)
        public["choice"], calibration = found.errors, found.calibration
    return HellingerPosterior(
        **public,
        requested={"epsilon": spec.epsilon, "delta": spec.delta},
        epsilon=spec.epsilon,
        delta=spec.delta,
        calibration=calibration or _best(spec.prior, n, spec.delta),
    )


def stated(spec: PosteriorMechanism, records: PublicRecords) -> Stated:
    """Describe a released posterior as its mechanism does; a certificate is sought, or found where it was.

    Raises
    ------
    SpecError
        When the number of records is missing.
    """
    n = spec.n if records.n is None else records.n
    if n is None:
        raise SpecError("mechanism.n: missing; a posterior does not tell of how many records it is")
    made = make(spec, PublicRecords(1, n, ("parameter",)))
    return made.describe(), made.guarantee


def meant(spec: PosteriorMechanism, made: PosteriorLaw) -> list[tuple[str, Any, Any]]:
    """Return what a spec states of a released posterior, beside what was made, by key."""
    exponential = spec.method in (None, "hellinger")
    return [
        ("prior", tuple(spec.prior), made.prior),
        ("method", spec.method, made.method),
        ("calibration", spec.calibration if exponential else None, made.calibration),
        ("sensitivity", None if spec.sensitivity is None else (spec.sensitivity,), made.sensitivity),
    ]


# Where the spec leaves the method out


@dataclass(frozen=True)
class ChosenMethod:
    """What was chosen, and by which expected errors.

    Parameters
    ----------
    calibration : str or None
        Of method hellinger; None where geometric noise errs less.
    errors : dict
        Expected Hellinger distance between released and true posterior under ``hellinger``, None where it
        cannot be had or nothing is proved of it; and under ``geometric``.
    """

    calibration: Literal["certified", "proved"] | None
    errors: dict[str, float | None]


def _best(prior: tuple[float, ...], n: int, delta: float) -> Literal["certified", "proved"]:
    """Return ``certified`` where a certificate can be computed, else ``proved``; no data decide it."""
    known = delta >= SMALLEST_DELTA and can_be_certified(Posteriors(prior, n))
    return "certified" if known else "proved"


def choose(prior: tuple[float, ...], n: int, epsilon: float, delta: float, scale: float) -> ChosenMethod:
    """Choose between method hellinger, at its best calibration, and geometric noise; ties go to the noise.

    `scale` is that of the geometric noise which meets epsilon; all of it is public.
    """
    try:
        of = Posteriors(prior, n)
        weight_bits(epsilon, delta, of.size)
        calibration = _best(prior, n, delta)
    except PrivacyError:  # beyond what method hellinger takes
        return ChosenMethod(None, {"hellinger": None})
    family = neighbours(of)
    if family is None:
        noise = float(noise_errors(of, scale, some_databases(of)).mean())
    else:
        rows = family.some()
        noise = family.mean_error(rows, noise_errors(of, scale, family.counts(rows)))
    own = math.inf
    with contextlib.suppress(PrivacyError):
        if calibration == "certified":
            own = calibrated(family, epsilon, delta).error  # type: ignore[arg-type]  # there is one
        else:
            own = proved(prior, n, epsilon, delta).error
    errors = {"hellinger": own if math.isfinite(own) else None, "geometric": noise}
    return ChosenMethod(None if noise <= own else calibration, errors)
