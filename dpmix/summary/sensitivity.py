"""How much the posterior depends on its prior: sensitivity to power scaling.

The prior, or the likelihood, is raised to powers of 0.99 and 1.01, the saved states are reweighted by
Pareto-smoothed importance sampling, and the distance of each quantity's distribution function from what it
was (cumulative Jensen-Shannon) is told per doubling of the power (Kallioinen et al. 2024, as
`arviz_stats.psense` computes it). From 0.05 on it is called sensitive.

Where a quantity has nothing to do with the prior the index is still not 0, as draws are finite. What it then
is, is seen with the prior's log densities of *other* chains or of distant states in place of its own:
`noise` is twice the root mean square of that. An index counts where it is above both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.run.chains_reader import Chains, ChainSet, NamedChains
from dpmix.summary.check.record_likelihoods import MOST_RECORDS, check_factorizes
from dpmix.summary.check.replicators import Unavailable
from dpmix.summary.dated import dated_of
from dpmix.summary.diagnostics import arviz
from dpmix.summary.families.family import Floats
from dpmix.summary.grids import spread
from dpmix.summary.prior_density import log_prior
from dpmix.summary.row_labels import row_labels
from dpmix.summary.sensitivity_result import Index, Sensitivity

__all__ = ["MOST_K", "power_scaling", "sensitivity_of"]

MOST_K = 0.7
"""Pareto k above which importance sampling is not trusted."""
_POWERS = (0.99, 1.01)
_STATES = 4_000  # of all chains together
_TURNS = 8  # pairings of states that have nothing to do with each other
_FEWEST = 100
_OMITTED = ("log_likelihood",)


def sensitivity_of(chains: ChainSet, series: Mapping[str, Floats]) -> Sensitivity:
    """Return the sensitivities of the reported quantities.

    Parameters
    ----------
    chains : ChainSet
    series : mapping of str to float64 array (C, D)
        The draws of what is reported.
    """
    wanted = {name: values for name, values in series.items() if name not in _OMITTED}
    no_prior = no_likelihood = ""
    prior: Scaled = Scaled({}, {}, None)
    likelihood: Scaled = prior
    try:
        states = spread(chains.draws, max(1, _STATES // len(chains.ids)))
        logs = log_prior(chains)[:, states]
        prior = power_scaling(logs, {name: v[:, states] for name, v in wanted.items()}, noise=True)
    except Unavailable as why:
        no_prior = str(why)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):  # of files that somebody changed
        no_prior = "the chains file does not describe the prior as `dpmix fit` would"
    try:
        likelihood = _of_likelihood(chains, wanted)
    except Unavailable as why:
        no_likelihood = str(why)
    if no_prior:  # without it the likelihood's says nothing
        return Sensitivity(no_prior=no_prior, no_likelihood=no_likelihood)
    indices = {
        name: Index(prior.indices.get(name), likelihood.indices.get(name), prior.noise.get(name))
        for name in wanted
    }
    return Sensitivity(
        indices,
        prior.k,
        likelihood.k,
        no_prior,
        no_likelihood,
        of_clusters=isinstance(chains, Chains),
        labels=dated_of(chains).points(wanted)
        | (row_labels(chains) if isinstance(chains, NamedChains) else {}),
    )


def _of_likelihood(chains: ChainSet, wanted: Mapping[str, Floats]) -> Scaled:
    """Return sensitivities to the likelihood, allocations integrated out, at the states where it is kept."""
    check_factorizes(chains)
    if chains.tally is not None and np.isfinite(chains.log_likelihood).all():
        return power_scaling(chains.log_likelihood, wanted)  # of counts, allocations integrated out
    kept = chains.kept_log_likelihoods
    if kept is None:
        if chains.n > MOST_RECORDS:
            raise Unavailable(
                f"the chains file keeps no log likelihoods of more than {MOST_RECORDS:,} records"
            )
        raise Unavailable("the chains file keeps no log likelihoods of the records")
    states, logs = kept
    rows = np.arange(len(logs))[:, None]
    return power_scaling(logs, {name: values[rows, states] for name, values in wanted.items()})


@dataclass(frozen=True)
class Scaled:
    """Indices and their noise by quantity, and the larger Pareto k."""

    indices: Mapping[str, float | None]
    noise: Mapping[str, float | None]
    k: float | None


def power_scaling(logs: Floats, series: Mapping[str, Floats], *, noise: bool = False) -> Scaled:
    """Return the sensitivity of each series to powers of what `logs` are the log densities of.

    Parameters
    ----------
    logs : float64 array (C, D)
        Log densities at the states, up to a constant.
    series : mapping of str to float64 array (C, D)
    noise : bool
        Whether to say also what the index of unrelated series would be.

    Raises
    ------
    Unavailable
        For few states, densities that are not finite, or a Pareto k above 0.7.
    """
    if logs.size < _FEWEST:
        raise Unavailable(f"there are fewer than {_FEWEST} saved draws")
    if not np.isfinite(logs).all():
        raise Unavailable("a density is not finite at some draw")
    logs = logs - logs.mean()
    if np.ptp(logs) <= 1e-12 * max(1.0, float(np.abs(logs).max())):
        same = dict.fromkeys(series, 0.0)
        return Scaled(same, same if noise else {}, None)
    try:
        with np.errstate(all="ignore"):
            weights = [_normalized(arviz().power_scale_lw(logs, a, axis=(0, 1))) for a in _POWERS]
            ks = [_pareto_k((a - 1.0) * logs) for a in _POWERS]
    except ValueError as error:  # of tails that are all the same
        raise Unavailable("the density is the same at nearly all draws") from error
    k = max(ks)
    if not k <= MOST_K:
        raise Unavailable(f"importance sampling is not to be trusted (Pareto k = {k:.2f}, above {MOST_K:g})")
    turned = [[_turned(part, turn) for part in weights] for turn in range(_TURNS)] if noise else []
    indices: dict[str, float | None] = {}
    floors: dict[str, float | None] = {}
    for name, values in series.items():
        indices[name] = _index(values, weights)
        found = [index for index in (_index(values, pair) for pair in turned) if index is not None]
        floors[name] = 2.0 * float(np.sqrt(np.mean(np.square(found)))) if found else None
    return Scaled(indices, floors, k)


def _normalized(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _pareto_k(logs: Floats) -> float:
    """Return the shape of the right tail of importance weights; `pareto_khat` takes it of their logs."""
    return float(arviz().psislw(-logs, axis=(0, 1))[1])


def _index(values: Floats, weights: Sequence[Floats]) -> float | None:
    if np.ptp(values) == 0.0:
        return 0.0
    with np.errstate(all="ignore"):
        found = float(arviz().power_scale_sense(values, *weights, *_POWERS, chain_axis=0, draw_axis=1))
    return found if np.isfinite(found) else None


def _turned(weights: Floats, turn: int) -> NDArray[np.float64]:
    """Give each state the weight of one of another chain, or of distant ones of its own."""
    count, draws = weights.shape
    apart = (2 * turn + 1) * draws // (2 * _TURNS)
    return np.roll(np.roll(weights, turn % (count - 1) + 1 if count > 1 else 0, axis=0), apart, axis=1)
