"""What the chains of a model mean: its `models/NAME/meaning.py` states it, and what that leaves out is here.

Summaries, checks, predictions and advice ask it, and know no model by name. It is the analyst's, and light:
what is compiled is imported in the function that needs it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.columns.dated import NONE, Dated, bins_in_words
from dpmix.errors import DataError
from dpmix.kernels.layout import LEAST, Floats
from dpmix.laws.additive import draw_noise
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import Law, expect
from dpmix.laws.statistic_laws import SumsOfGroups
from dpmix.numerics.equal_cells import cell_of
from dpmix.spec.kinds import MODELS

if TYPE_CHECKING:
    from dpmix.models.predictor_base import Predictor
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

    def pseudo_records(self, parameter: Stored) -> Floats | None:
        """Return the parameters of the Dirichlet law of shares, over the last dimension; None of others."""
        return None

    def floors(self) -> Sequence[str]:
        """Return the parameters whose prior may have next to no mass near 0."""
        return ()

    def spreads(self, name: str, values: Floats) -> Floats:
        """Return what of draws (.., entries) of such a parameter a prior may hold up, and NaN beside."""
        return values

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


# What draws replicates of a release: records given a draw of the parameters, then the mechanism

Ints = NDArray[np.int64]

_STREAM = -1000  # of the generators derived from the chains' seed; one a saved state


class Replicator(ABC):
    """A model's releases, drawn anew from saved states.

    A replicate depends on the seed, the chain's id and the number of the state alone. Of groups whose sizes
    are private (methods, section 16) it draws the sizes from their shares, (n_1, .., n_G) ~ Multinomial(N,
    pi), records of each group given its own parameters, and then the mechanism of all of them together: noisy
    sizes and sums of f less its centre, or noisy counts, or draws, of (group, cell). N is public.

    Attributes
    ----------
    chains : ChainSet
    size : int
        About how many numbers are drawn for one replicate.
    """

    chains: ChainSet
    size: int

    @abstractmethod
    def prepare(self, wanted: Sequence[tuple[int, NDArray[np.int64]]]) -> None:
        """Read what is needed of these saved states, (place of the chain, numbers of states) each."""

    @abstractmethod
    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Return a release drawn from a state: in the layout of the file's, or what `reduce` makes of one."""

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Return a release in the layout of the file's `observed_data`."""
        return self.replicate(chain, state, rng)

    def reduce(self, released: Floats) -> Floats:
        """Return what is compared of a release in the layout of the file's."""
        return released

    def draws(
        self, wanted: Sequence[tuple[int, NDArray[np.int64]]], *, whole: bool = False
    ) -> Iterator[tuple[int, int, Floats]]:
        """Yield place of the chain, number of the state and replicate, for all wanted states in order."""
        draw = self.whole if whole else self.replicate
        for chain, states in wanted:
            for state in states.tolist():
                rng = self.chains.generator(int(self.chains.ids[chain]), _STREAM - state)
                yield chain, state, draw(chain, state, rng)


class StatisticReplicator(Replicator):
    """Replicates of the release that a parametric model was fitted to.

    Attributes
    ----------
    what : str
        What the entries are.
    unit, per : str, float
        Unit in which a misfit is told, and what it is divided by.
    blind : str
        What the entries cannot show, whatever the noise.
    needed : tuple of str
        Names of the parameters that a replicate depends on.
    values : dict of str to float64 array (chains, draws, ..)
        Their draws, once `prepare` has read them.
    """

    chains: NamedChains
    what = "entries"
    unit = "of an entry"
    blind = ""
    needed: tuple[str, ...]

    def __init__(self, chains: NamedChains) -> None:
        self.chains, self.per = chains, float(chains.n)
        self.law: Law = chains.mechanism
        self.values: dict[str, Floats] = {}

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of what `reduce` returns."""

    def prepare(self, wanted: Sequence[tuple[int, NDArray[np.int64]]]) -> None:
        """Read the parameters."""
        self.values = {name: self.chains.read(stored_of(self.chains, name)) for name in self.needed}

    def reduce(self, released: Floats) -> Floats:
        """Return the entries."""
        return released.ravel()


class OfBins:
    """What the entries of a release of a histogram are: counts of its bins, or numbers of draws in them.

    It goes before the class whose replicates they are.
    """

    law: HistogramLaw
    edges: Floats
    of_draws: bool
    what: str
    unit: str
    per: float
    blind = ""

    def tell_bins(self, chains: ChainSet) -> None:
        """Take the bins from the law of a histogram."""
        self.law = expect(chains.mechanism, HistogramLaw)
        self.edges, self.of_draws = self.law.edges(), not self.law.counts_bins
        self._bin_edges = self.law.cell_edges()
        self.what = "numbers of draws in bins" if self.of_draws else "counts of bins"
        self.unit = "of all draws in a bin" if self.of_draws else "of all records in a bin"
        self.per = float(len(chains.observed) if self.of_draws else chains.n)
        self.bins = bins_in_words(self._bin_edges, date=dated_of(chains).only)

    @property
    def names(self) -> list[str]:
        """The bins."""
        return self.bins

    def reduce(self, released: Floats) -> Floats:
        """Return the entries of the bins, group by group where there are groups."""
        if not self.of_draws:
            return released.ravel()
        bins, groups = self.edges.size - 1, len(self.law.group_names)
        cells = cell_of(released[:, 0] if groups else released.ravel(), self._bin_edges)
        if groups:
            cells += bins * released[:, 1].astype(np.int64)
        return np.bincount(cells, minlength=bins * max(1, groups)).astype(np.float64)

    def placed(self, entries: Floats, rng: Generator) -> Floats:
        """Return what has these entries as a release: draws in their bins, beside the code of their group."""
        if not self.of_draws:
            return entries
        cells = rng.permutation(np.repeat(np.arange(entries.size), entries.astype(np.int64)))
        codes, bins = np.divmod(cells, self.edges.size - 1)
        left, right = self._bin_edges[bins], self._bin_edges[bins + 1]
        draws = left + rng.random(bins.size) * (right - left)
        return np.column_stack([draws, codes]) if self.law.groups else np.asarray(draws)


# Replicates of releases of groups


_SHARE = "group_share"


class ReplicatesOfGroups(StatisticReplicator):
    """What all of them share: it goes before the class of the same release without groups."""

    def prepare(self, wanted: Sequence[tuple[int, Ints]]) -> None:
        """Read what one group needs, and the shares of the groups."""
        super().prepare(wanted)
        self.values[_SHARE] = self.chains.read(stored_of(self.chains, _SHARE))

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups."""
        return self.law.group_names

    def sizes(self, chain: int, state: int, rng: Generator) -> Ints:
        """Draw the sizes of the groups."""
        return rng.multinomial(self.chains.n, sum_to_one(self.values[_SHARE][chain, state]))

    def noisy(self, sizes: Ints, sums: Sequence[Floats], rng: Generator) -> Floats:
        """Return what is released of sizes, and of sums (entries,) of each group less n_g centres."""
        law = expect(self.law, SumsOfGroups)
        of_sizes, of_sums = law.scale
        centre = np.asarray(law.centre, dtype=np.float64)
        whole = np.concatenate([own - size * centre for own, size in zip(sums, sizes.tolist(), strict=True)])
        return np.concatenate(
            [
                sizes[:-1] + draw_noise("laplace", of_sizes, sizes.size - 1, rng),
                whole + draw_noise("laplace", of_sums, whole.size, rng),
            ]
        )

    def named(self, entries: Sequence[str]) -> list[str]:
        """Return the names of sizes, and of the entries of each group."""
        sizes = [f"size of {group}" for group in self.groups[:-1]]
        return sizes + [f"{group}: {entry}" for group in self.groups for entry in entries]


class GroupedHistogram(OfBins, ReplicatesOfGroups):
    """Noisy counts, or numbers of draws, of the bins of each group."""

    law: HistogramLaw

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.tell_bins(chains)
        self.size = int(2 * self.edges.size * len(self.groups))

    @abstractmethod
    def shares(self, chain: int, state: int) -> Floats:
        """Return the probabilities of the bins (groups, bins) under a state."""

    @property
    def names(self) -> list[str]:
        """Group and bin."""
        return [f"{group}: {own}" for group in self.groups for own in self.bins]

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw what is released, in the entries of `reduce`."""
        return self.released(chain, state, rng)

    def released(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw counts of records in all cells, and what is released of them."""
        drawn = self.shares(chain, state)
        counts = rng.multinomial(self.sizes(chain, state, rng), sum_to_one(drawn))
        return self.law.draw_from_counts(counts.ravel().astype(np.float64), rng)

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """As a release."""
        return self.placed(self.released(chain, state, rng), rng)
