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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmix.models.meaning_base import Unavailable, dated_of, meaning_of
from dpmix.numerics.equal_cells import spread
from dpmix.numerics.in_words import all_of
from dpmix.results.nodes import Attr, Each, Note, Remark, ResultSection, Table, TableColumn
from dpmix.run.chains_reader import Chains, ChainSet, NamedChains
from dpmix.summary.check.rank_comparison import shared
from dpmix.summary.check.record_likelihoods import MOST_RECORDS, check_factorizes
from dpmix.summary.diagnostics import arviz, shown_name
from dpmix.summary.prior import log_prior
from dpmix.summary.remarks import MOST_LISTED, is_headline
from dpmix.summary.row_labels import row_labels

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats

# The result, as data and in words


SENSITIVE = 0.05
"""Index from which on a quantity is called sensitive."""
_MOST_ROWS = 64


@dataclass(frozen=True)
class Index:
    """Sensitivities of one quantity; None where there is none.

    Parameters
    ----------
    prior, likelihood : float or None
        To power scaling of each.
    noise : float or None
        What the prior's may be of a quantity that has nothing to do with it.
    """

    prior: float | None
    likelihood: float | None
    noise: float | None

    @property
    def sensitive(self) -> bool:
        """Whether the prior matters."""
        return self.prior is not None and self.prior >= max(SENSITIVE, self.noise or 0.0)

    @property
    def diagnosis(self) -> str:
        """What both together say, in the words of `arviz_stats.psense_summary`; empty for nothing."""
        if not self.sensitive:
            return ""
        if self.likelihood is None:
            return "informative prior"
        if self.likelihood >= SENSITIVE:
            return "potential prior-data conflict"
        return "strong prior or weak likelihood"


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivities of all quantities.

    Parameters
    ----------
    indices : mapping of str to Index
        By quantity; empty where there are none.
    k_prior, k_likelihood : float or None
        The larger Pareto k of both powers.
    no_prior, no_likelihood : str
        Why there is none of these; empty where there is one.
    of_clusters : bool
        Whether the prior is that of a mixture's clusters.
    labels : mapping of str to str
        What quantities are of, by name, where that is shown in the place of indices.
    """

    indices: Mapping[str, Index] = field(default_factory=dict)
    k_prior: float | None = None
    k_likelihood: float | None = None
    no_prior: str = ""
    no_likelihood: str = ""
    of_clusters: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_likelihood(self) -> bool:
        """Whether the likelihood's row is there."""
        return any(index.likelihood is not None for index in self.indices.values())

    def section(self) -> ResultSection:
        """Return what is reported of them."""
        reasons = {
            key: why for key, why in (("prior", self.no_prior), ("likelihood", self.no_likelihood)) if why
        }
        ks = {"prior": self.k_prior, "likelihood": self.k_likelihood}
        rest = {"pareto_k": Each(ks), "threshold": Attr(SENSITIVE), "reason": Each(reasons or None)}
        title = "Sensitivity to the prior"
        if not self.indices:
            page = [f"Not known: {self.no_prior}."] if self.no_prior else []
            return ResultSection("prior_sensitivity", Each({"parameters": None, **rest}), title, page=page)
        table = self._table()
        order = sorted(range(len(table.rows)), key=lambda place: not table.columns[0].bad[place])
        return ResultSection(
            "prior_sensitivity",
            {"parameters": table, **rest, **{f"pareto_k_{name}": Each(hdf5=k) for name, k in ks.items()}},
            title,
            page=[table.take(order[:_MOST_ROWS]), Note(self._note())],
        )

    def _table(self) -> Table:
        found = list(self.indices.values())
        shown = "json hdf5 page" if self.has_likelihood else "json hdf5"
        return Table(
            "parameter",
            list(self.indices),
            [
                TableColumn(
                    "prior", [i.prior for i in found], "prior", ".3f", bad=[i.sensitive for i in found]
                ),
                TableColumn("likelihood", [i.likelihood for i in found], "likelihood", ".3f", where=shown),
                TableColumn("noise", [i.noise for i in found], "noise", ".3f"),
                TableColumn(
                    "diagnosis", [i.diagnosis or None for i in found], "what it says", str, where="json page"
                ),
            ],
            title="scalar",
            shown=[shown_name(name, self.labels) for name in self.indices],
        )

    def _note(self) -> str:
        text = (
            "How far the posterior of each scalar moves when the prior, or the likelihood, is raised to a "
            f"power: distance of distribution functions per doubling of the power. From {SENSITIVE:g} on, "
            "and where it is above **noise** (what draws of this number show for a scalar that has nothing "
            "to do with the prior), the prior matters; where the likelihood's is below "
            f"{SENSITIVE:g}, the release says little."
        )
        if self.of_clusters:
            text += " The prior is that of the occupied clusters' parameters and of the concentration."
        both = {"prior": self.k_prior, "likelihood": self.k_likelihood}
        ks = ", ".join(f"{name} {k:.2f}" for name, k in both.items() if k is not None)
        if ks:
            text += f" Pareto k of the importance weights: {ks}; above 0.7 nothing is reported."
        if not self.has_likelihood and self.no_likelihood:
            text += f" No likelihood's: {self.no_likelihood}."
        left = len(self.indices) - _MOST_ROWS
        return text + (f" {left:,} more are in the JSON." if left > 0 else "")


# How it is computed


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
    some = shared(kept[0].shape[1], len(kept[0]))
    states, logs = kept[0][:, some], kept[1][:, some]
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
            # of the right tails of importance weights, whose logs `psislw` takes with the other sign
            ks = [float(arviz().psislw((1.0 - a) * logs, axis=(0, 1))[1]) for a in _POWERS]
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


# The warning, and what to do about it


_TEXTS = {
    "potential prior-data conflict": (
        "Prior and release both move {names}: where they disagree, what is reported lies between them; see "
        "whether {keys} {say} what you believe, before anything else."
    ),
    "strong prior or weak likelihood": (
        "The prior moves {names}, the release hardly does: more records or more epsilon would help, or "
        "{keys} that you can defend."
    ),
    "informative prior": (
        "The prior moves {names}: see whether {keys} {say} what you believe; with more records or more "
        "epsilon it would matter less."
    ),
}


def sensitivity_remarks(found: Sensitivity, chains: ChainSet) -> list[Remark]:
    """Say in one line which headline quantities are sensitive to the prior, with the cure.

    Parameters
    ----------
    found : Sensitivity
    chains : ChainSet
        For the names of the keys that state the prior.
    """
    keys, parts = meaning_of(chains).prior_keys, []
    for diagnosis, text in _TEXTS.items():
        named = {
            name: index
            for name, index in found.indices.items()
            if index.diagnosis == diagnosis and is_headline(name)
        }
        if named:
            worst = sorted(named, key=lambda name: -(named[name].prior or 0.0))
            listed = [
                f"{shown_name(name, found.labels)} ({named[name].prior:.2f})" for name in worst[:MOST_LISTED]
            ]
            if len(worst) > MOST_LISTED:
                listed.append(f"{len(worst) - MOST_LISTED} more")
            say = "say" if " and " in keys else "says"
            parts.append(text.format(names=all_of(listed), keys=keys, say=say))
    if not parts:
        return []
    note = f"In brackets the sensitivity to power scaling of the prior, from {SENSITIVE:g} on."
    return [Remark(f"{' '.join(parts)} {note}", convergence=False)]
