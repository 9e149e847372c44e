"""The check of any fit: which replicates, how many, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable

from dpmix.run.chains_reader import Chains, ChainSet, NamedChains
from dpmix.summary.check.check_result import Check
from dpmix.summary.check.local_check import check_records
from dpmix.summary.check.mixture_replicates import HistogramReplicator, mixture_replicator
from dpmix.summary.check.replicators import Replicator, Unavailable
from dpmix.summary.check.statistic_check import StatisticReplicator, check_statistic

__all__ = ["REPLICATES", "check_release", "parametric_replicator", "replicator_of"]

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
