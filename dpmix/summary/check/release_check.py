"""The check of any fit: which replicates, how many, and what becomes of them.

Released statistics are checked entry by entry among their replicates, and all together.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmix.run.chains_reader import Chains, ChainSet, NamedChains
from dpmix.summary.check.check_result import Check, Entry
from dpmix.summary.check.local_check import check_records
from dpmix.summary.check.mixture_replicates import HistogramReplicator, mixture_replicator
from dpmix.summary.check.replicators import Replicator, StatisticReplicator, Unavailable, compare, places
from dpmix.summary.dated import bins_in_words, dated_of

__all__ = [
    "REPLICATES",
    "check_release",
    "check_statistic",
    "parametric_replicator",
    "replicator_of",
]

Floats = NDArray[np.float64]


def words_of_reach(visible: float, unit: str, *, share: bool) -> str:
    """Say from which size on a misfit shows, a share of all (which may be more than all) or a number."""
    if share and visible > 1.0:
        return f"Not even a misfit that moves the entry that varies most by 100% {unit} shows."
    size = f"{100 * visible:.{2 if visible < 0.995 else 3}g}%" if share else f"{visible:.3g}"
    return f"A misfit shows once it moves the entry that varies most by about {size} {unit}."


def check_statistic(
    chains: ChainSet, replicator: StatisticReplicator | HistogramReplicator, most: int
) -> Check:
    """Set each entry of a released statistic beside those of `most` replicates."""
    wanted = places(chains, most)
    replicator.prepare(wanted)
    table = np.stack([values for _, _, values in replicator.draws(wanted)])
    observed = replicator.reduce(chains.observed)
    if observed.shape != table.shape[1:]:
        raise Unavailable("the released values are not what the mechanism releases")
    found = compare(observed, table)
    if isinstance(replicator, HistogramReplicator):
        names = bins_in_words(replicator.edges, date=dated_of(chains).only)
        draws = not replicator.law.counts_bins
        what = "numbers of draws in bins" if draws else "counts of bins"
        unit = "of all draws in a bin" if draws else "of all records in a bin"
        per = float(chains.observed.size if draws else chains.n)
    else:
        names, what, unit, per = replicator.names, replicator.what, replicator.unit, replicator.per
    entries = tuple(
        Entry(name, *map(float, figures))
        for name, *figures in zip(
            names, found.observed, found.mean, found.lower, found.upper, found.tails, found.sd, strict=True
        )
    )
    reach = found.reach()
    visible, words = None, ""
    if math.isfinite(reach):
        visible = float((reach * found.sd).max() / per)
        words = words_of_reach(visible, unit, share=per > 1.0)
    if isinstance(replicator, StatisticReplicator) and replicator.blind:
        words = f"{words} {replicator.blind}".strip()
    return Check(what, found.p(), entries, replicates=len(table), visible_from=visible, visible=words)


REPLICATES = 200
_FEWER, _NUMBERS = 100, 5e7
"""Replicates of large releases, and the numbers that are drawn in all before they are fewer."""


def replicator_of(chains: ChainSet) -> Replicator:
    """Return what draws the replicates of a fit's release.

    Raises
    ------
    Unavailable
        Where there is none.
    """
    if isinstance(chains, Chains):
        return mixture_replicator(chains)
    assert isinstance(chains, NamedChains)  # the other kind
    return parametric_replicator(chains)


def parametric_replicator(chains: NamedChains) -> StatisticReplicator:
    """Return what draws replicates of the release that a parametric model was fitted to.

    Raises
    ------
    Unavailable
        Where the release is not replicated.
    """
    from dpmix.summary.check import discrete_replicates, statistic_replicates

    if chains.mechanism.groups:
        return statistic_replicates.grouped_replicator(chains)
    model = str(chains.attrs.get("model", ""))
    if model == "custom":
        raise Unavailable("a custom model does not say how its release is made")
    if model == "discrete":
        return discrete_replicates.discrete_replicator(chains)
    makers: dict[tuple[str, str], Callable[[NamedChains], StatisticReplicator]] = {
        ("noisy_counts", "naive_bayes"): statistic_replicates.NoisyCountsReplicator,
        ("clamped_moments", "linear_regression"): statistic_replicates.ClampedMomentsReplicator,
        ("log_moments", "dirichlet"): statistic_replicates.LogMomentsReplicator,
        ("posterior", "multinomial"): statistic_replicates.ReleasedPosterior,
        ("categories", "multinomial"): statistic_replicates.Answers,
        ("categories", "naive_bayes"): statistic_replicates.AnswersOfRecords,
    }
    made = makers.get((chains.mechanism.released, model))
    if made is None:
        raise Unavailable(f"releases by {chains.mechanism.kind} are not replicated for the model {model}")
    return made(chains)


def check_release(chains: ChainSet) -> Check:
    """Set a release beside replicates from the fit's posterior (methods, section 15).

    The same files always give the same result.

    Parameters
    ----------
    chains : ChainSet
        What `dpmix.run.chains_reader.read_chains` gives.
    """
    try:
        replicator = replicator_of(chains)
        most = REPLICATES if replicator.size * REPLICATES <= _NUMBERS else _FEWER
        most = min(most, chains.draws * len(chains.ids))
        if most < 20:
            raise Unavailable(f"{most} saved draws are too few to replicate the release from")
        if isinstance(chains, Chains) and not isinstance(replicator, HistogramReplicator):
            return check_records(chains, mixture_replicator(chains), most)
        assert isinstance(replicator, StatisticReplicator | HistogramReplicator)  # the others
        return check_statistic(chains, replicator, most)
    except Unavailable as why:
        return Check(reason=str(why))
    except (TypeError, ValueError):  # of files that somebody changed, which only the check looks into so far
        return Check(reason="the chains file does not describe the release as its mechanism would")
