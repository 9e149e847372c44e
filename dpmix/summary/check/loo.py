"""Leave-one-out cross-validation of released records, and what `fit` keeps for it and for checks.

These are the groups `posterior_predictive` and `log_likelihood` of a chains file. Both are made from the
finished draws alone, by generators that depend on the seed, the chain's id and the number of the state, and
are shared by the chains of the spec: a run that was stopped and went on has the same, and so has each chain
that was run by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.models.meaning_base import Unavailable
from dpmix.results.nodes import ResultSection
from dpmix.run.chains_reader import ChainSet, read_chains
from dpmix.run.kept_quantities import Predictive
from dpmix.summary.check.rank_comparison import LIKELIHOODS, places, shared
from dpmix.summary.check.record_likelihoods import (
    MOST_RECORDS,
    cell_log_likelihoods,
    check_factorizes,
    counted,
    goes_by_cell,
    log_likelihoods,
    of_all_cells,
)
from dpmix.summary.check.release_check import REPLICATES, replicator_of
from dpmix.summary.diagnostics import arviz

# What `fit` keeps


_NUMBERS = 10_000  # of one replicate, at most
_STATES_AT_ONCE = 100  # states of each chain


def predictive_of(path: Path, check: Callable[[], None]) -> list[Predictive]:
    """Return what is kept of replicates and log likelihoods of a finished chains file.

    Parameters
    ----------
    path : Path
    check : callable
        Called between pieces of work; may raise to break it off.
    """
    chains = read_chains([path])
    return [*_replicates(chains, check), *_likelihoods(chains, check)]


def _replicates(chains: ChainSet, check: Callable[[], None]) -> list[Predictive]:
    """Return `posterior_predictive`: whole releases; none where they are not replicated, or too large."""
    wanted = places(chains, REPLICATES, chains.planned)
    try:
        many = chains.n > MOST_RECORDS and chains.by_record
        released = chains.observed if chains.tally is None else chains.tally.counts
        if (many and chains.tally is None) or released.size > _NUMBERS:
            raise Unavailable(f"a release of more than {MOST_RECORDS:,} records")
        replicator = replicator_of(chains)
        replicator.prepare(wanted)
        shape = (len(wanted), wanted[0][1].size, *released.shape)
        out = np.empty(shape, dtype=np.float32 if chains.tally is None else np.int64)
        for at, (chain, _, values) in enumerate(replicator.draws(wanted, whole=True)):
            check()
            out[chain, at % shape[1]] = values.reshape(released.shape)
    except Unavailable:
        return []
    return [Predictive("posterior_predictive", chains.ids, wanted[0][1], out)]


def _likelihoods(chains: ChainSet, check: Callable[[], None]) -> list[Predictive]:
    """Return `log_likelihood`; none where the likelihood does not factorize, or is not known.

    It is of records, of a tally and of many records of cells: of all that are in each together.
    """
    wanted = places(chains, LIKELIHOODS, chains.planned)
    check()
    try:
        if goes_by_cell(chains):
            some = counted(chains)
            assert some.tally is not None  # so counted
            counts, parts = some.tally.counts, []
            for numbers in range(0, wanted[0][1].size, _STATES_AT_ONCE):
                check()
                few = [(chain, states[numbers : numbers + _STATES_AT_ONCE]) for chain, states in wanted]
                parts.append(of_all_cells(cell_log_likelihoods(some, few), counts).astype(np.float32))
            values = np.concatenate(parts, axis=1)
            return [Predictive("log_likelihood", chains.ids, wanted[0][1], values, some.tally.constants())]
        found: NDArray[np.float64] = log_likelihoods(chains, wanted)
    except Unavailable:
        return []
    return [Predictive("log_likelihood", chains.ids, wanted[0][1], found.astype(np.float32))]


# Leave-one-out cross-validation, by Pareto-smoothed importance sampling


_AT_ONCE = 500  # records


@dataclass(frozen=True)
class Loo:
    """Expected log predictive density of the released records, each left out in turn.

    Parameters
    ----------
    elpd, se : float
        The sum over records, and its standard error.
    p_loo : float
        Effective number of parameters.
    pareto_k_max : float
        Largest Pareto k: above 0.7 the figures are not to be trusted.
    """

    elpd: float
    se: float
    p_loo: float
    pareto_k_max: float

    def section(self) -> ResultSection:
        """Return what is reported of it."""
        text = (
            f"expected log predictive density {self.elpd:.1f} (standard error {self.se:.1f}), "
            f"{self.p_loo:.1f} effective parameters, largest Pareto k {self.pareto_k_max:.2f}"
        )
        title = "Leave-one-out cross-validation"
        shown = [[f"Leave-one-out: {text}"]]
        return ResultSection(
            "loo", dict(vars(self)), title, text=shown, page=[f"{text[0].upper()}{text[1:]}."]
        )


def loo_of(chains: ChainSet) -> Loo:
    """Return it from the log likelihoods that the chains files keep, or that their draws give.

    Raises
    ------
    SpecError
        Where the likelihood does not factorize over records, or is not known.
    DataError
        When the files hold log likelihoods that no fit writes.
    """
    try:
        check_factorizes(chains)
        logs, times = _logs(chains)
        if logs.shape[0] * logs.shape[1] < 100:
            raise Unavailable("there are fewer than 100 saved draws")
        if not np.isfinite(logs).all():
            raise Unavailable("a released record has no likelihood under some draw")
    except Unavailable as why:
        raise SpecError(f"summary.loo: {why}; leave it out") from why
    total = logs @ times
    effective = float(arviz().ess(total, chain_axis=0, draw_axis=1)) / total.size
    share = effective if 0.0 < effective < 1.0 else 1.0
    parts = [
        arviz().loo(logs[:, :, start : start + _AT_ONCE].transpose(2, 0, 1), r_eff=share)
        for start in range(0, logs.shape[2], _AT_ONCE)
    ]
    elpd, k, effect = (np.concatenate([np.atleast_1d(part[i]) for part in parts]) for i in range(3))
    n = float(times.sum())
    mean = float(elpd @ times) / n
    se = math.sqrt(float(((elpd - mean) ** 2) @ times))
    return Loo(mean * n, se, float(effect @ times), float(k.max()))


def _logs(chains: ChainSet) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log likelihoods (chains, states, m) of single records, and how many have each of them (m,).

    Of a tally and of many records they are by cell: all records of one have the same, and leaving out any of
    them is the same.
    """
    if goes_by_cell(chains):
        found = counted(chains)
        assert found.tally is not None  # so counted
        some = found.tally.counts > 0
        logs = cell_log_likelihoods(found, places(found, LIKELIHOODS))[:, :, some]
        return logs, found.tally.counts[some].astype(np.float64)
    kept, wanted = chains.log_likelihoods, places(chains, LIKELIHOODS)
    if kept is None or kept.shape[1] < wanted[0][1].size:  # of some chains of the spec alone
        logs = log_likelihoods(chains, wanted)
    else:
        logs = kept[:, shared(kept.shape[1], len(kept))]
    return logs, np.ones(logs.shape[2])
