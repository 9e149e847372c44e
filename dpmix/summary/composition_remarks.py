"""Warnings about compositions: when threshold, noise or method make an answer unreliable.

Source: Guo, Barrientos and Pena, sections 3.1.1 (censoring), 3.2 (range of the means) and 4.1 (n, epsilon).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import digamma

from dpmix.mechanisms.laws.every import expect
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.numerics.rounding import figure
from dpmix.results.nodes import Remark
from dpmix.run.chains_reader import ChainSet
from dpmix.summary.composition_results import Censoring, CompositionResults
from dpmix.summary.families.family import Floats

__all__ = ["composition_remarks"]

LARGE = 1000
"""Records up to which a sample is small in the paper's simulations, which have 1000 and 5000."""
MOSTLY_CENSORED = 0.5
"""Share of censored entries from which on a release says little of a component."""
NOISY = 2.0
"""Noise over sampling error, as standard deviations of a released mean, from which on noise dominates."""
BIASED = 0.5
"""Bias over the standard deviation of a released mean from which on a 95% interval covers less than 93%."""
REDRAWN = 0.05
RUN_OFF = 5.0
"""Distance of fitted from released means, in standard deviations, that no fit of the release has."""
LOOSE = 2.0
"""Tolerance of simulations over the distance of two releases of one alpha from which on it widens results."""
APPROXIMATE = ("replicated", "abc", "normal_approximation")
AWARE = ("data_augmentation", "soma", "replicated", "abc", "normal_approximation")
"""Methods that account for censoring; the bootstrap takes censored means for means of all logarithms."""


def composition_remarks(groups: Sequence[CompositionResults], chains: ChainSet) -> list[Remark]:
    """Say what speaks against trusting a fit of compositions, and what to do about it.

    Parameters
    ----------
    groups : sequence of Composition
        What is reported of it, of each group or of all records.
    chains : ChainSet
        For the release.
    """
    texts = []
    for number, found in enumerate(groups):
        own = _censored(found, found.components)
        own += _outside(_released_means(found, number, len(groups), chains), found.censoring)
        own += _noise(found)
        texts += [f"{found.group}: {text}" if found.group else text for text in own]
    found = groups[0]
    texts += _sizes(found, chains)
    texts += _tolerance(found, chains)
    texts += _run_off(found, chains)
    redrawn = chains.constants.get("bootstrap_redrawn", 0.0)
    if found.is_bootstrap and redrawn > REDRAWN:
        texts.append(
            f"{100 * redrawn:.0f}% of the refits had no maximum and were drawn again: the bootstrap "
            "distribution leaves out what they stand for; use sampler.kind: data_augmentation."
        )
    return [Remark(text, convergence=False) for text in texts]


def _censored(found: CompositionResults, names: tuple[str, ...]) -> list[str]:
    censoring, texts = found.censoring, []
    much = [j for j in range(len(names)) if censoring.share[j] >= MOSTLY_CENSORED]
    if much:
        listed = _listed([f"{names[j]} ({100 * censoring.share[j]:.0f}%)" for j in much])
        texts.append(
            f"Most entries of {listed} are below the threshold {censoring.threshold:g} under the fit, and "
            "censored: the release says little of them; have it made with a smaller threshold."
        )
    if found.sampler in AWARE:
        return texts
    ratio = censoring.bias / censoring.total_sd
    biased = [j for j in range(len(names)) if ratio[j] >= BIASED]
    if biased:
        listed = _listed([f"{names[j]} ({ratio[j]:.1f})" for j in biased])
        texts.append(
            f"Censoring at {censoring.threshold:g} moves the mean logarithm of {listed} by more than half "
            "its standard deviation (in brackets, in standard deviations), which the bootstrap does not "
            "correct: use sampler.kind: data_augmentation, which does, or have the release made with a "
            "smaller threshold."
        )
    whole = censoring.uncensored_records
    if whole is not None and whole < 0.9:
        texts.append(
            f"By the noisy scores of the release about {100 * whole:.0f}% of the records have no censored "
            "entry, and the bootstrap takes them all to have none: use sampler.kind: data_augmentation."
        )
    return texts


def _released_means(found: CompositionResults, number: int, groups: int, chains: ChainSet) -> Floats:
    """Return the released means (parts, d); of a group, its noisy sums over its posterior mean size."""
    values: Floats = np.asarray(chains.observed, dtype=np.float64).ravel()
    d = len(found.components)
    if not found.group:
        return values.reshape(-1, d)
    sums = values[groups - 1 + number * d :][:d]
    law = expect(chains.mechanism, LogMomentsLaw)
    return np.asarray(float(law.centre) + sums / found.censoring.size)[None]


def _outside(means: Floats, censoring: Censoring) -> list[str]:
    """Say when released means (parts, d) are none that compositions give."""
    low = math.log(censoring.threshold)
    texts = []
    for part, values in enumerate(means):
        which = f" of part {part + 1}" if len(means) > 1 else ""
        if (values >= 0.0).any() or np.exp(values).sum() >= 1.0:
            texts.append(
                f"The released means{which} are larger than those of any compositions without censoring "
                "(negative, their exponentials summing to less than 1): noise or censoring are large beside "
                "what they say; ask for a larger epsilon, or a smaller threshold."
            )
        elif (values < low).any():
            texts.append(
                f"A released mean{which} is below log {censoring.threshold:g}, the least that a censored "
                "mean can be: noise is large beside what the release says; ask for a larger epsilon."
            )
    return texts


def _noise(found: CompositionResults) -> list[str]:
    censoring, names = found.censoring, found.components
    ratio = censoring.noise_sd / np.maximum(censoring.sampling_sd, 1e-300)
    high = [j for j in range(len(names)) if ratio[j] >= NOISY]
    if not high:
        return []
    prior = "" if found.is_bootstrap else "depend on the prior, and "
    listed = _listed([f"{names[j]} ({_times(ratio[j])})" for j in high])
    return [
        f"The noise on the mean logarithm of {listed} is the larger part of its error (in brackets: its "
        f"standard deviation over that of the mean itself): results {prior}move from release to release; "
        "a larger epsilon or threshold has less noise."
    ]


def _sizes(found: CompositionResults, chains: ChainSet) -> list[str]:
    """Say what the paper says of n and epsilon."""
    epsilon, n = float(chains.attrs.get("epsilon", math.nan)), chains.n
    texts: list[str] = []
    if not math.isfinite(epsilon):
        return texts
    small = epsilon < 1.0 - 1e-6  # noise is drawn on a grid, a little above its formula
    if found.sampler in APPROXIMATE and (n <= LARGE or small):
        texts.append(
            f"{found.sampler} is an approximation that is recommended for large n and epsilon of 1 or more, "
            f"and here n = {n} and epsilon = {figure(epsilon, 3)}: use sampler.kind: data_augmentation, or "
            "see that other methods agree."
        )
    if n > LARGE and small:
        texts.append(
            f"Proceed with caution: n = {n} is large and epsilon = {figure(epsilon, 3)} is below 1, where "
            "methods for compositions can be far off; compare data_augmentation with bootstrap, and with a "
            "release of larger epsilon where there is one."
        )
    return texts


def _tolerance(found: CompositionResults, chains: ChainSet) -> list[str]:
    """Say when simulations are kept that are far from the release."""
    tolerance = chains.constants.get("abc_tolerance")
    if found.sampler != "abc" or tolerance is None:
        return []
    usual = math.sqrt(2.0 * float((found.censoring.total_sd**2).sum()))
    if tolerance < LOOSE * usual:
        return []
    return [
        f"abc keeps simulations within {tolerance:.3g} of the release, {_times(tolerance / usual)} times as "
        "far as two releases of one alpha usually are from each other: results are wider than the posterior; "
        "use a smaller sampler.keep, a prior from a part of the records (mechanism.split with p2 or p5), or "
        "sampler.kind: data_augmentation."
    ]


def _run_off(found: CompositionResults, chains: ChainSet) -> list[str]:
    """Say when pseudo-records have drawn alpha away from what was released."""
    inner = found.ellipsoids.get("alpha")
    if found.sampler != "replicated" or inner is None:
        return []
    alpha, d = inner.centre, len(found.components)
    fitted = digamma(alpha) - digamma(alpha.sum()) + found.censoring.bias
    sizes = [
        chains.constants.get(f"n{part + 1}", float(chains.n)) for part in range(len(chains.observed) // d)
    ]
    means = np.asarray(chains.observed, dtype=np.float64).reshape(-1, d)
    gap = float(np.max(np.abs(fitted - np.average(means, axis=0, weights=sizes)) / found.censoring.total_sd))
    improper = 1.0 - chains.constants.get("pseudo_records", math.inf) / max(sizes)
    if gap <= RUN_OFF and (alpha > improper).all():
        return []
    return [
        "replicated has drawn alpha away from the release: powers of the density of a few pseudo-records "
        "favour compositions that are alike, and have no integral at all where an alpha is below 1; use "
        "sampler.kind: data_augmentation."
    ]


def _times(ratio: float) -> str:
    return f"{ratio:.3g}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
