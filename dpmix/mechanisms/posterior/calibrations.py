"""Which (gamma, scale of the exponent) meets (eps, delta) with least expected error: certified, or proved.

A certified calibration is held against all pairs of neighbouring databases where they can be listed
(`dpmix.mechanisms.posterior.certificate`), and kept on disk.

A proved one is the pair of least error among all that are proved (methods, section 14; the written proof is
in docs/posterior-mechanism.md, whose symbols are used here). With a = c eps/2, c the scale of the exponent,
and |R| posteriors, the exponential mechanism on H/S is (c eps + (e^gamma - 1) log(|R|/delta), delta)-DP. What
is drawn from has its distances from tables in fixed point, its sensitivities in floating point, and whole
numbers as weights: `Proof` charges for all three.

Expected errors are means over all databases of n records, each table of counts counted once: exact where they
can be listed, and else of a sample that is drawn with a fixed seed. So what depends on one, a calibration or
a choice between methods, is a function of public numbers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.mechanisms.posterior.certificate import Neighbours, neighbours
from dpmix.posteriors.hellinger_law import (
    ROUNDING,
    ExponentialMechanism,
    Integers,
    Posteriors,
    theorem_gamma,
    weight_bits,
)
from dpmix.posteriors.simulated_draws import distances, settled

Floats = NDArray[np.float64]

SMALLEST_DELTA = 1e-12
"""Of a certificate, which resolves no less."""
_GAMMAS = np.ldexp(1.0, np.arange(-2, 8))  # in units of the theorem's
_SCALES = (2.0**-8, 2.0**4)
_LARGEST_GAMMA = 1e3
_GOLDEN = (math.sqrt(5) - 1) / 2
_FORMAT = 1  # of files of certified calibrations

_WEIGHTS = 2.0**-38
"""u: log of a weight before rounding down, against its exact value. An exponent is at most 700; it and its
exponential are known to 2^-48 (`dpmix.posteriors.hellinger_law`)."""
_DELTA = 1 - 2.0**-20
"""Share of delta that is left to the proof: rounding weights down takes 2^-21 of it (`weight_bits`)."""
_FLOATS = 2.0**-44
"""Relative error of sensitivities and rates in doubles, and more."""
_WORST = 2.0**-8
_LOGITS = np.arange(-2.0, 5.1)  # of c

_DATABASES = 96
_CHAINS = 4  # of each database
_STEPS = 240  # of a chain, times the number of categories
_DRAWS = 20_000  # of noise in all

# Certified: over all pairs of neighbouring databases


@dataclass(frozen=True)
class Certified:
    """A law, and what it guarantees for all pairs of neighbouring databases.

    Parameters
    ----------
    gamma : float
        Of the smooth sensitivity.
    exponent_scale : float
        The exponent is exponent_scale eps/2.
    epsilon : float
        Upper bound of the actual epsilon at the delta asked for.
    delta : float
        Upper bound of the actual delta at the epsilon asked for.
    error : float
        Expected Hellinger distance between released and true posterior, the mean over all databases of n
        records, each table of counts counted once.
    pairs : int
        Number of pairs of neighbouring databases, in both directions each.
    """

    gamma: float
    exponent_scale: float
    epsilon: float
    delta: float
    error: float
    pairs: int


def search(family: Neighbours, epsilon: float, delta: float) -> Certified:
    """Return the calibration of least mean error that is found, certified over all pairs.

    For each gamma the largest scale is sought that meets (eps, delta), and gamma by golden section; both look
    at some databases only, and at delta without its bound. The pair that is returned is evaluated over all of
    them, so that nothing rests on how the search went. No data are looked at.

    Raises
    ------
    PrivacyError
        When delta is below 1e-12, or no pair of parameters meets (eps, delta).
    """
    if delta < SMALLEST_DELTA:
        raise PrivacyError(
            f"mechanism.delta: a certificate resolves 1e-12, not {delta:g}; use a larger delta, or "
            "calibration: proved"
        )
    of = family.posteriors
    bits = weight_bits(epsilon, delta, of.size)
    rows = family.some()
    wanted = delta * (1 - 1e-6) - 1e-14
    guess = 1.8

    def law(gamma: float, scale: float) -> ExponentialMechanism:
        return ExponentialMechanism(of, gamma, scale * epsilon / 2, bits)

    def best(gamma: float, start: float, tolerance: float) -> tuple[float, float]:
        """Return mean error and scale at gamma: infinite where no scale meets the guarantee."""
        seen = {}

        def meets(scale: float) -> bool:
            deltas, errors = family.evaluate(law(gamma, scale), epsilon, rows)
            seen[scale] = family.mean_error(rows, errors)
            return bool(deltas.max() <= wanted)

        scale = largest(meets, *_SCALES, start=start, tolerance=tolerance)
        return (math.inf, 0.0) if scale is None else (seen[scale], scale)

    def error_at(log_gamma: float) -> float:
        nonlocal guess
        error, scale = best(math.exp(log_gamma), guess, 0.01)
        guess = scale or guess
        return error

    log_start = math.log(theorem_gamma(epsilon, delta, of.size))
    gamma = math.exp(least(error_at, log_start + np.log(_GAMMAS)))
    scale = best(gamma, guess, 1e-3)[1]
    while scale > _SCALES[0]:
        made = law(gamma, scale)
        found, worst, error = family.certified(made, epsilon)
        if found <= delta:
            actual = _epsilon(family, made, epsilon, delta, np.union1d(rows, [worst]))
            return Certified(gamma, scale, min(actual, epsilon), found, error, family.pairs)
        rows = np.union1d(rows, [worst])
        scale = min(scale * (1 - 1e-3), best(gamma, scale, 1e-3)[1])
    raise PrivacyError(
        f"no calibration of method hellinger meets epsilon = {epsilon:g} and delta = {delta:g}"
    )


def verified(
    family: Neighbours, gamma: float, scale: float, actual: float, epsilon: float, delta: float
) -> Certified | None:
    """Return the certificate of what a search is said to have found, None where it does not hold.

    `actual` is what is said to be the epsilon of the law at the `delta` that it must meet beside `epsilon`.
    """
    sound = 0 < gamma < _LARGEST_GAMMA and _SCALES[0] <= scale <= _SCALES[1] and 0 <= actual <= epsilon
    if not sound:
        return None
    law = ExponentialMechanism(
        family.posteriors, gamma, scale * epsilon / 2, weight_bits(epsilon, delta, family.posteriors.size)
    )
    found, _, error = family.certified(law, epsilon)
    if found > delta or family.certified(law, actual)[0] > delta:
        return None
    return Certified(gamma, scale, actual, found, error, family.pairs)


def certify(family: Neighbours, law: ExponentialMechanism, epsilon: float, delta: float) -> Certified:
    """Return what a given law guarantees, its scale relative to eps/2; epsilon is infinite beyond 16 eps."""
    found, worst, error = family.certified(law, epsilon)
    actual = _epsilon(family, law, epsilon, delta, np.union1d(family.some(), [worst]))
    return Certified(law.gamma, law.exponent / (epsilon / 2), actual, found, error, family.pairs)


def _epsilon(
    family: Neighbours, law: ExponentialMechanism, epsilon: float, delta: float, rows: Integers
) -> float:
    """Return an upper bound of the actual epsilon at delta, to about a thousandth: sought, then verified."""

    def exceeds(value: float) -> bool:
        return bool(family.evaluate(law, value, rows)[0].max() > delta - 1e-14)

    low, high = epsilon * 2.0**-12, 16 * epsilon
    found = largest(exceeds, low, high, start=epsilon * (1 - 1e-3), tolerance=1e-4)
    value = found * (1 + 2e-4) if found is not None else low
    if found is None and family.certified(law, 0.0)[0] <= delta:
        return 0.0
    while value < 16 * epsilon:
        if family.certified(law, value)[0] <= delta:
            return value
        value *= 1 + 1e-3
    return math.inf


# Certified calibrations that were found before: on disk, as they depend on public numbers alone


def directory() -> Path | None:
    """Return the folder of calibrations: ``posterior`` in DPMIX_CACHE_DIR, or in the user's cache.

    None where there is neither: relative paths are ignored, as XDG has it, and a user may have no home.
    """
    own = os.environ.get("DPMIX_CACHE_DIR")
    if own:
        return Path(own) / "posterior"
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if not base.is_absolute():
        base = Path(os.path.expanduser("~")) / ".cache"
    return base / "dpmix" / "posterior" if base.is_absolute() else None


def calibrated(family: Neighbours, epsilon: float, delta: float) -> Certified:
    """Return the certified calibration from disk, or search for it and keep it there.

    The disk only says where to look: the pair (gamma, scale) that is read there, under a key of number of
    records, prior, epsilon, delta, precision of weights and tables, is certified again over all neighbouring
    databases. So a certificate is always of the weights that are drawn from, whoever wrote the file and by
    whatever version. Where there is no cache to be read or written, or it is wrong, the search is repeated.

    Raises
    ------
    PrivacyError
        As `search`.
    """
    of = family.posteriors
    key = {
        "format": _FORMAT,
        "n": of.n,
        "prior": [float(entry).hex() for entry in of.prior],
        "epsilon": float(epsilon).hex(),
        "delta": float(delta).hex(),
        "bits": weight_bits(epsilon, delta, of.size),
        "rounding": ROUNDING.hex(),
        "tables": of.digest,
    }
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
    folder = directory()
    if folder is None:
        return search(family, epsilon, delta)
    path = folder / f"{name}.json"
    stored = _read(path, key)
    found = None if stored is None else verified(family, *stored, epsilon, delta)
    if found is None:
        found = search(family, epsilon, delta)
        _write(path, key, found)
    return found


def _read(path: Path, key: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Return gamma, scale and actual epsilon of a file under this key, None where it holds anything else."""
    try:
        stored = json.loads(path.read_text("utf-8"))
        if stored["key"] != key:
            return None
        gamma, scale, actual = (stored["found"][name] for name in ("gamma", "exponent_scale", "epsilon"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not all(isinstance(value, float) for value in (gamma, scale, actual)):
        return None
    return gamma, scale, actual


def _write(path: Path, key: Mapping[str, Any], found: Certified) -> None:
    """Write a file that appears complete or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            temporary.write_text(json.dumps({"key": key, "found": dataclasses.asdict(found)}), "utf-8")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


# Proved: what any (gamma, scale of the exponent) guarantees, and the pair of least error


@dataclass(frozen=True)
class Proof:
    """What is proved of the laws on some posteriors at some delta.

    Parameters
    ----------
    posteriors : Posteriors
        All that can be released.
    delta : float
        Of the guarantee.
    """

    posteriors: Posteriors
    delta: float

    @property
    def log_ratio(self) -> float:
        """log(|R|/delta), with what is left of delta."""
        return math.log(self.posteriors.size) - math.log(self.delta * _DELTA)

    @functools.cached_property
    def apart(self) -> tuple[float, float]:
        """How much more than the smooth sensitivity neighbours' distances differ, and what to add to gamma.

        Both come of rounding. A step of the tables is known to `error` units, g of a neighbour to twice that.
        A posterior that is m records away in some category is apart by m^2 `nearest` units at least, known to
        4 (d - 1) m error, which moves its distance by at most 2 (d - 1) error/nearest of any sensitivity.

        Raises
        ------
        PrivacyError
            When the tables do not tell neighbours well enough apart.
        """
        of = self.posteriors
        error = 0.5 + math.ldexp(of.inexact, of.bits)
        nearest = float(np.sort(of.steps.min(axis=1))[1]) - 2 * error
        if nearest <= 0 or (lost := 4 * (of.dimension - 1) * error / nearest) > _WORST:
            raise PrivacyError(
                f"posteriors of {of.n} records in {of.dimension} categories are too close to be told apart "
                "by calibration: proved; use method: geometric"
            )
        wide = (1 + 2 * lost + 2 * error / nearest + _FLOATS) / ROUNDING
        return max(wide, 1.0), 4 * error / nearest + _FLOATS

    def epsilon(self, gamma: float, exponent: float) -> float:
        """Return the epsilon at which a law is proved to have this delta; `exponent` is a."""
        wide, more = self.apart
        found = 2 * exponent * wide + math.expm1(gamma + more) * self.log_ratio + 4 * _WEIGHTS
        return found * (1 + _FLOATS)

    def gamma(self, epsilon: float, scale: float) -> float:
        """Return the largest gamma with which a scale c of the exponent meets epsilon; 0 or less for none."""
        wide, more = self.apart
        left = epsilon * (1 - 2 * _FLOATS) - 4 * _WEIGHTS - scale * epsilon * wide
        return (math.log1p(left / self.log_ratio) - more) * (1 - _FLOATS) if left > 0 else 0.0


@dataclass(frozen=True)
class Proved:
    """A law whose guarantee is proved.

    Parameters
    ----------
    gamma : float
        Of the smooth sensitivity.
    exponent_scale : float
        c; the exponent is c eps/2.
    epsilon : float
        What is proved at the delta asked for; at most what was asked for.
    posteriors : int
        |R|.
    error : float
        Expected Hellinger distance between released and true posterior, the mean over all databases of n
        records, each table of counts counted once; of a sample of them where they are many.
    """

    gamma: float
    exponent_scale: float
    epsilon: float
    posteriors: int
    error: float


@functools.lru_cache(maxsize=16)
def proved(prior: tuple[float, ...], n: int, epsilon: float, delta: float) -> Proved:
    """Return the proved calibration of least expected error; it depends on these public numbers alone.

    Raises
    ------
    PrivacyError
        When none is proved.
    """
    of = Posteriors(prior, n)
    bits = weight_bits(epsilon, delta, of.size)
    proof = Proof(of, delta)
    family = neighbours(of)
    rows = some_databases(of)

    def error_at(logit: float) -> float:
        scale = 1 / (1 + math.exp(-logit))
        gamma = proof.gamma(epsilon, scale)
        if not gamma > 0:
            return math.inf
        law = ExponentialMechanism(of, gamma, scale * epsilon / 2, bits)
        return mean_errors(law, rows) if family is None else family.error(law)

    logit = least(error_at, _LOGITS)
    scale = 1 / (1 + math.exp(-logit))
    gamma, error = proof.gamma(epsilon, scale), error_at(logit)
    if not gamma > 0 or not (actual := proof.epsilon(gamma, scale * epsilon / 2)) <= epsilon:
        raise PrivacyError(
            f"mechanism.calibration: proved meets epsilon = {epsilon:g} and delta = {delta:g} with no scale "
            "of the exponent; use a larger epsilon, or method: geometric"
        )
    return Proved(gamma, scale, actual, of.size, error)


# What searches share


def largest(
    holds: Callable[[float], bool], low: float, high: float, *, start: float, tolerance: float
) -> float | None:
    """Return about the largest value that holds, from low to high; None where none is found to.

    Looks outwards from `start` by growing factors, and then bisects in logarithms.
    """
    factor = 1.15
    value, good, bad = min(max(start, low), high), None, None
    while good is None or bad is None:
        if holds(value):
            good = value
            if value >= high:
                return value
            value = min(value * factor, high) if bad is None else bad
        else:
            bad = value
            if value <= low:
                return None
            value = max(value / factor, low) if good is None else good
        if good is not None and bad is not None:
            break
        factor *= factor
    while bad / good > 1 + tolerance:
        middle = math.sqrt(good * bad)
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


def least(function: Callable[[float], float], grid: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return about where a function is least: the best of an even grid, and golden section around it."""
    values = [function(float(x)) for x in grid]
    at = int(np.argmin(values))
    low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)])
    seen = {float(grid[at]): values[at]}
    one, other = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    seen[one], seen[other] = function(one), function(other)
    for _ in range(5):
        if seen[one] <= seen[other]:
            high, other = other, one
            one = high - _GOLDEN * (high - low)
            seen[one] = function(one)
        else:
            low, one = one, other
            other = low + _GOLDEN * (high - low)
            seen[other] = function(other)
    return min(seen, key=lambda x: seen[x])


# Expected errors


def some_databases(of: Posteriors) -> Integers:
    """Return counts drawn uniformly among all, shape (96, d)."""
    rng = np.random.default_rng(0)
    found = np.empty((_DATABASES, of.dimension), dtype=np.int64)
    places = of.n + of.dimension - 1
    for row in found:
        bars = np.sort(rng.choice(places, of.dimension - 1, replace=False))
        row[:] = np.diff(np.concatenate([[-1], bars, [places]])) - 1
    return found


def mean_errors(law: ExponentialMechanism, rows: Integers) -> float:
    """Return the expected Hellinger distance between released and true posterior, the mean over databases.

    By Metropolis chains on the released counts that start at the true ones, `rows` (k, d), and move 1, 2, 4,
    .. records from one category to another; the first third is left out. Where categories are many and a
    release says next to nothing, chains are too short to get as far as it does (by 6% for 7 categories and an
    error of 0.8); what is to be chosen by it errs less.
    """
    of = law.posteriors
    rng = np.random.default_rng(1)
    rates = np.repeat([law.rate(row) for row in rows], _CHAINS)
    truth = np.repeat(rows, _CHAINS, axis=0)
    chains, d = truth.shape
    own, categories = np.arange(chains), np.arange(d)
    places = np.repeat(categories[None], chains, axis=0)
    table, scales = of.table, of.n.bit_length()

    def terms(at: Integers, counts: Integers, true: Integers) -> Integers:
        found: Integers = table[at, 2 * true] + table[at, 2 * counts] - 2 * table[at, true + counts]
        return np.maximum(found, 0)

    now = truth.copy()
    apart = terms(places, now, truth).sum(axis=1)
    far = np.zeros(chains)
    total, kept = 0.0, 0
    steps = _STEPS * d
    for step in range(steps):
        i: Any = rng.integers(d, size=chains)
        j: Any = (i + 1 + rng.integers(d - 1, size=chains)) % d
        wanted: Integers = np.left_shift(1, rng.integers(scales, size=chains))
        old_i: Integers = now[own, i]
        old_j: Integers = now[own, j]
        true_i: Integers = truth[own, i]
        true_j: Integers = truth[own, j]
        fits = wanted <= old_i
        m = np.where(fits, wanted, 0)
        new_i, new_j = old_i - m, old_j + m
        there = apart + terms(i, new_i, true_i) + terms(j, new_j, true_j)
        there -= terms(i, old_i, true_i) + terms(j, old_j, true_j)
        farther = np.sqrt(-np.expm1(-of.unit * there))
        taken = fits & (np.log(rng.random(chains)) < rates * (far - farther))
        now[own[taken], i[taken]], now[own[taken], j[taken]] = new_i[taken], new_j[taken]
        apart, far = np.where(taken, there, apart), np.where(taken, farther, far)
        if 3 * step >= steps:
            total, kept = total + float(far.mean()), kept + 1
    return total / kept


def noise_errors(of: Posteriors, scale: float, rows: Integers) -> Floats:
    """Return the expected errors (k,) of two-sided geometric noise on counts, moved to the nearest posterior.

    `rows` (k, d) are the true counts.
    """
    rng = np.random.default_rng(2)
    each = -(-_DRAWS // len(rows))
    counts = np.repeat(rows, each, axis=0)
    noisy = counts[:, :1] if of.dimension == 2 else counts
    both = rng.geometric(-np.expm1(-1 / scale), (2, *noisy.shape))
    released = settled((noisy + both[0] - both[1]).astype(np.float64), of.n)
    prior = np.array(of.prior)
    found: Floats = distances(prior + counts, prior + released).reshape(len(rows), each).mean(axis=1)
    return found
