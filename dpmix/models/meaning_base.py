"""What the chains of a model mean: its `models/NAME/meaning.py` states it, and what that leaves out is here.

Summaries, checks, predictions and advice ask it, and know no model by name. It is the analyst's, and light:
what is compiled is imported in the function that needs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from dpmix.columns.dated import NONE, Dated
from dpmix.errors import DataError
from dpmix.kernels.layout import LEAST, Floats
from dpmix.spec.kinds import MODELS

if TYPE_CHECKING:
    from dpmix.laws.every import Law
    from dpmix.models.predictor_base import Predictor
    from dpmix.models.replicator_base import StatisticReplicator
    from dpmix.results.nodes import Remark
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import ChainSet, NamedChains
    from dpmix.spec import RunSpec
    from dpmix.spec.summary_section import SummarySpec

Pair = tuple[float, float]
Expected = dict[str, tuple[float, float]]
"""Posterior and prior standard deviations by quantity; the latter infinite where there is no prior."""

BEYOND: Final = 0.01
"""Share of latent records beyond the public bounds above which summaries warn."""
MOVED: Final = 0.03
"""Share of a predictor's values beyond its bounds above which a line in these is not the table's.

Below it 95% intervals of slopes and predictions hold 90% and more: docs/augmentation.md has the simulation.
"""
BAND_DRAWS: Final = 10_000
"""Draws of all chains together that pointwise bands are made of."""
DEFAULT_POINTS: Final = 200
"""Points of a grid that nobody states."""


class Unavailable(Exception):  # noqa: N818 - not an error: something that there is not
    """There is no check of this release, or no such group in the chains file; the text says why."""


class GriddedDensity(NamedTuple):
    """The density of a record on a grid: posterior mean, band, and the prior's, if it has one.

    `apart`: nodes, and both at these, of which the Hellinger distance is taken.
    """

    grid: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    prior: Floats | None = None
    apart: tuple[Floats, Floats, Floats] | None = None


@dataclass(frozen=True)
class OwnAccount:
    """What a model says of its own chains, beside what their parameters' roles say.

    Parameters
    ----------
    beyond : mapping of str to float
        Posterior mean of the share of latent values beyond the public bounds, or of entries beyond a
        threshold, by column; of groups as ``group,column``.
    entries : bool
        Whether `beyond` is of entries.
    latent : mapping of str to pair of str
        Column and group of those of `beyond` that are predictors of a line in their values before clamping.
    within : mapping of str to float
        Prior probability that the mean of a record lies within the public bounds, by column.
    bounds : mapping of str to pair
        The bounds of these.
    cure : str
        What to do where it is small.
    remarks, last : list of Remark
        Warnings, and those that come after all others.
    of_predictions : list of str
        What predictions are not of, in sentences.
    densities : mapping of str to GriddedDensity
        Of a record, by name.
    own : mapping of str to object
        Results of a class of the model's own, by group.
    """

    beyond: Mapping[str, float] = field(default_factory=dict)
    entries: bool = False
    latent: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    within: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, Pair] = field(default_factory=dict)
    cure: str = ""
    remarks: list[Remark] = field(default_factory=list)
    last: list[Remark] = field(default_factory=list)
    of_predictions: list[str] = field(default_factory=list)
    densities: Mapping[str, GriddedDensity] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)


class Meaning:
    """What chains of a model mean: a class of this name in `MEANING` of its `meaning.py`, of some chains.

    Attributes
    ----------
    prior_keys : str
        Keys of the spec that state the prior.
    mixes : bool
        Whether draws are of mixtures of a kernel, which the chains state.
    contrasts_shares : bool
        Whether two groups are compared by their shares alone, where there are other parameters.
    replicators, of_groups : mapping of str to callable
        What draws the release anew, given the chains: by what is released, and of a release of groups.
    advised : tuple of str
        Releases that `expected` is known for.
    """

    prior_keys: ClassVar[str] = "the model's prior"
    mixes: ClassVar[bool] = False
    contrasts_shares: ClassVar[bool] = False
    replicators: ClassVar[Mapping[str, Callable[[NamedChains], StatisticReplicator]]] = {}
    of_groups: ClassVar[Mapping[str, Callable[[NamedChains], StatisticReplicator]]] = {}
    advised: ClassVar[tuple[str, ...]] = ()

    def __init__(self, chains: ChainSet) -> None:
        self.chains: Any = chains

    def log_prior(self) -> Floats:
        """Return the log prior density at each saved state, up to a constant, shape (chains, draws).

        Of groups that of all together.

        Raises
        ------
        Unavailable
            Where the chains do not hold what the prior is of, or there is none.
        """
        raise Unavailable(f"the model {self.chains.model} does not give its prior's density")

    def prior_draws(self, parameter: Stored) -> Floats | None:
        """Draw a parameter from its prior, shape (draws, ..), where the file keeps no draws; None of none."""
        return None

    def floors(self) -> Sequence[str]:
        """Return the parameters whose prior may have next to no mass near 0."""
        return ()

    def replicator(self) -> StatisticReplicator:
        """Return what draws replicates of the release.

        Raises
        ------
        Unavailable
            Where it is not replicated.
        """
        law = self.chains.mechanism
        known, what = (self.of_groups, "releases of groups") if law.groups else (self.replicators, "releases")
        made = known.get(law.released)
        if made is None:
            raise Unavailable(f"{what} by {law.kind} are not replicated for the model {self.chains.model}")
        return made(self.chains)

    def predictor(self, options: SummarySpec) -> Predictor:
        """Return what predicts the last column; of models whose section says that they predict."""
        raise NotImplementedError(f"{self.chains.model} predicts, but not how")

    def account(self, options: SummarySpec) -> OwnAccount:
        """Return what the model says of its own."""
        return OwnAccount()

    def dated(self, columns: frozenset[str]) -> Dated:
        """Return which figures are dates, where columns are."""
        fitted = self.chains.columns
        return Dated(columns, only=len(fitted) == 1 and fitted[0] in columns)

    def variances_of_mean(self) -> tuple[Mapping[str, tuple[float, float, float]], str]:
        """Return variances of the mean by column, and a note on them.

        They are the posterior's, the prior's, and what is expected given records without noise.

        Raises
        ------
        Unavailable
            Where these are not known.
        """
        model = self.chains.model
        raise Unavailable(f"the model {model} has no mean, median and density of one number a record")

    @staticmethod
    def expected(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
        """Return what a release of n records will tell, before there is one: of those `advised`."""
        raise NotImplementedError(f"{model.kind} is advised on, but not how")

    @staticmethod
    def taken(spec: RunSpec, model: Any) -> list[str]:
        """Say what advice takes for granted."""
        return []


def meaning_of(chains: ChainSet) -> Meaning:
    """Return what chains mean: by their model, which a file may name that is none of ours."""
    kind = chains.model
    found: type[Meaning] = MODELS.part(kind, "meaning") if kind in MODELS else Meaning
    return found(chains)


def dated_of(chains: ChainSet) -> Dated:
    """Return which figures of a fit are dates.

    Raises
    ------
    DataError
        When the chains name them as no fit does.
    """
    try:
        names = json.loads(str(chains.attrs.get("dates", "[]")))
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError("the chains do not say which columns are dates, as `dpmix fit` writes it")
    return meaning_of(chains).dated(frozenset(names)) if names else NONE


# What several models read of chains


def stored_of(chains: NamedChains, name: str) -> Stored:
    """Return a parameter by name.

    Raises
    ------
    Unavailable
        Where the chains do not hold it.
    """
    for parameter in chains.parameters:
        if parameter.name == name:
            return parameter
    raise Unavailable(f"the chains do not hold {name}")


def has(chains: NamedChains, name: str) -> bool:
    """Say whether the chains hold a parameter."""
    return any(parameter.name == name for parameter in chains.parameters)


def draws_of(chains: NamedChains, name: str) -> Floats:
    """Read a parameter whose prior is asked for."""
    if not has(chains, name):
        raise Unavailable(f"the chains do not hold {name}; fit again")
    return chains.read(stored_of(chains, name))


def sum_entries(values: Floats) -> Floats:
    """Sum all but chains and draws."""
    return np.asarray(values.reshape(*values.shape[:2], -1).sum(axis=2))


def logs_of(values: Floats) -> Floats:
    """Return logarithms of what may have underflowed."""
    return np.asarray(np.log(np.maximum(values, LEAST)))


def sds_of(matrix: Floats, covariance: Floats) -> list[float]:
    """Return standard deviations of linear functions, rows of a matrix, of what has a covariance."""
    return [float(v**0.5) for v in np.einsum("ij,jk,ik->i", matrix, covariance, matrix)]


def sum_to_one(shares: Floats) -> Floats:
    """Return shares whose sums over the last axis are 1, once more."""
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def names_of_columns(law: Any, width: int) -> list[str]:
    """Return the names of all columns, as many as they are; numbers where the release does not say."""
    names = list(law.columns)
    taken = len(names) == width and len(set(names)) == width
    return names if taken else [str(number + 1) for number in range(width)]
