"""What a fit says of the last column of new records, given the others, with intervals.

Of naive Bayes the probability of each class given the features, p_c prod_k p_k[c, x_k] over its sum over
classes; of a regression the mean response at the predictors, or the response of a new record. Each is
computed under every saved draw of the parameters; reported are the mean and an equal-tailed interval over
these. And records from the posterior predictive of a fit: free, because they are computed from a release
alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmix.errors import DataError, SpecError
from dpmix.kernels.multivariate_family import NormalInverseWishart
from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.mechanisms.laws.every import expect
from dpmix.mechanisms.noisy_counts.law import NoisyCountsLaw
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.release.column_units import Categories
from dpmix.results.nodes import Array, Each, Note, ResultSection, Table, TableColumn
from dpmix.run.chains_reader import Block, Chains, ChainSet, NamedChains
from dpmix.spec.combinations import models_that
from dpmix.spec.days import day_text
from dpmix.store.frames import Frame, Tabulated
from dpmix.summary.dated import dated_of
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.random_measures import settle_rest, state_measures

if TYPE_CHECKING:
    from dpmix.kernels.layout import Family, Floats
    from dpmix.run.chains_file import Stored
    from dpmix.spec.summary_section import SummarySpec

_BLOCK = 1 << 17
"""Numbers of a block, about, rows times quantities times draws: few enough for a processor's cache."""
_STREAM = -16  # of random numbers
_KNOWN = 1 << 16
"""Rows whose predictions are kept, as of features that take few values."""


@dataclass(frozen=True)
class Input:
    """A column that predictions are made from.

    Parameters
    ----------
    name : str
        Its name, as the release has it; its number from 1 on where the release does not say.
    categories : Categories or None
        What it may hold, and its codes; None for numbers.
    bounds : (float, float) or None
        Public bounds of a number, to which the records behind the release were clamped.
    date : bool
        Whether it holds dates, in days since 1970-01-01.
    """

    name: str
    categories: Categories | None = None
    bounds: tuple[float, float] | None = None
    date: bool = False


class Predictor(ABC):
    """Predictions by the draws of one model.

    Attributes
    ----------
    inputs : tuple of Input
        The columns that a record needs; of a release of groups that of groups is the last.
    columns : tuple of str
        Names of what is predicted: mean and interval of each quantity.
    level : float
        Posterior probability of the intervals.
    what : str
        What is predicted and what the interval is of, in words.
    used : tuple of Stored
        The parameters that predictions are made of.
    new : bool
        Whether intervals are of new records rather than of means.
    outside : str
        What becomes of values beyond the public bounds, in words.
    """

    inputs: tuple[Input, ...]
    columns: tuple[str, ...]
    what: str
    used: tuple[Stored, ...]
    new: bool = False
    outside: str = "they are taken as they are, and the line goes on"

    def __init__(self, level: float, draws: int) -> None:
        self.level = level
        self.draws = draws
        self._known: dict[bytes, Floats] = {}

    @abstractmethod
    def _draws_of(self, rows: Floats, *, new: bool) -> Floats:
        """Return what is predicted under each draw, or drawn of new records: (rows, quantities, draws)."""

    def predict(self, rows: Floats) -> Floats:
        """Return mean and interval of each quantity, shape (rows, 3 times quantities).

        Equal rows are computed once. What is said of a row depends on no other row and on no order.

        Parameters
        ----------
        rows : float64 array (rows, inputs)
            Numbers, and codes of categories.
        """
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        if len(self._known) > _KNOWN:
            self._known.clear()
        found = np.empty((len(distinct), len(self.columns)))
        keys = [row.tobytes() for row in distinct]
        new = [i for i, key in enumerate(keys) if key not in self._known]
        size = max(1, _BLOCK // (len(self.columns) // 3 * self.draws))
        for start in range(0, len(new), size):
            own = new[start : start + size]
            found[own] = self._figures(distinct[own])
        for i, key in enumerate(keys):
            if key in self._known:
                found[i] = self._known[key]
        self._known.update((keys[i], found[i].copy()) for i in new[:_KNOWN])
        return np.asarray(found[place.reshape(-1)])

    def _figures(self, rows: Floats) -> Floats:
        """Return mean, lower and upper end of each quantity."""
        with np.errstate(all="ignore"):  # of numbers so large that nothing can be predicted: the caller looks
            draws = self._draws_of(rows, new=False)
            mean = draws.mean(axis=2)
            if self.new:
                draws = self._draws_of(rows, new=True)
            ends = _interval(draws, self.level)
        return np.stack([mean, *ends], axis=2).reshape(len(draws), -1)


def _interval(draws: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the equal-tailed interval along the last axis, which is put in another order.

    Quantiles are interpolated as numpy does, by two partitions, which take a fifth of the time of its own.
    """
    last = draws.shape[-1] - 1
    lower, upper = ((0.5 * (1.0 + sign * level)) * last for sign in (-1.0, 1.0))
    first, second = int(lower), int(upper)
    draws.partition(first, axis=-1)
    low = _between(draws, first, lower - first)
    rest = draws[..., first:]
    rest.partition(second - first, axis=-1)
    return low, _between(rest, second - first, upper - second)


def _between(parted: Floats, place: int, share: float) -> Floats:
    """Return what is this share of the way from the element in its place to the next greater one."""
    here = parted[..., place].copy()
    above = parted[..., place + 1 :]
    if above.shape[-1] == 0 or share <= 0.0:
        return here
    return np.asarray(here + share * (above.min(axis=-1) - here))


def predictor_of(chains: ChainSet, options: SummarySpec, source: str) -> Predictor:
    """Return what predicts by chains.

    Parameters
    ----------
    chains : ChainSet
    options : SummarySpec
        Its level, and what intervals are of.
    source : str
        File of the chains, for messages.

    Raises
    ------
    DataError
        When the chains are of a model that predicts no column from others, or not as `dpmix fit` wrote them.
    """
    kind = chains.model
    if not isinstance(chains, NamedChains) or kind not in models_that("predicts"):
        raise DataError(
            f"{source} is of model {kind}, which predicts no column from others; predictions are of "
            f"{' and '.join(models_that('predicts'))}"
        )
    try:
        found: Predictor = _KINDS[kind](chains, options)
    except (KeyError, ValueError, IndexError, TypeError) as error:
        what = f"the parameters of a {kind} as `dpmix fit` writes them"
        raise DataError(f"{source} does not hold {what}") from error
    return found


def _stored(chains: NamedChains, name: str, dims: int) -> Stored:
    """Return a parameter with so many dimensions, beside that of groups."""
    (found,) = [parameter for parameter in chains.parameters if parameter.name == name]
    if len(found.dims) - bool(found.groups) != dims:
        raise ValueError(name)
    return found


def _flat(chains: NamedChains, parameter: Stored) -> Floats:
    """Return draws of a parameter (groups, draws, ..), those of all chains in a row; one group where none."""
    values = chains.read(parameter)
    values = values.reshape(-1, *values.shape[2:])
    return np.moveaxis(values, 1, 0) if parameter.groups else values[None]


def _names(law: ClampedMomentsLaw | NoisyCountsLaw, width: int) -> list[str]:
    """Return the names of all columns, the predicted one last; numbers where the release does not say."""
    names = list(law.columns)
    taken = len(names) == width and len(set(names)) == width
    return names if taken else [str(number + 1) for number in range(width)]


def _group_input(chains: ChainSet) -> list[Input]:
    groups = chains.mechanism.groups or {}
    return [Input(name, Categories(labels)) for name, labels in groups.items()]


def responses(
    beta: Floats,
    sigma2: Floats,
    x: Floats,
    normals: Floats | None = None,
    truncated: tuple[float, float] | None = None,
) -> Floats:
    """Return the response at predictors under each draw of a regression's parameters.

    Parameters
    ----------
    beta : float64 array (q, draws)
        Coefficients in the units of the data, the intercept first.
    sigma2 : float64 array (draws,)
        Variance of the errors.
    x : float64 array (rows, q - 1)
        Predictors in the units of the data, within or beyond the public bounds: the line goes on.
    normals : float64 array (draws,), optional
        A standard normal for each draw: the response of a new record, its error included. Without, the mean
        response.
    truncated : (float, float), optional
        Bounds of the response, within which errors are truncated. The mean is then not on the line.

    Returns
    -------
    float64 array (rows, draws)
    """
    found = np.repeat(beta[:1], len(x), axis=0)
    for j in range(x.shape[1]):  # one by one: the same for any number of rows at once
        found += beta[1 + j] * x[:, j, None]
    sd = np.sqrt(sigma2)
    if truncated is None:
        return found if normals is None else found + sd * normals
    from dpmix.numerics import bounded_normal  # late: compiled code

    sds = np.broadcast_to(sd, found.shape)
    if normals is None:
        return np.asarray(bounded_normal.truncated_means(found, sds, *truncated))
    return np.asarray(bounded_normal.truncated(found, sds, *truncated, np.broadcast_to(normals, found.shape)))


class _Regression(Predictor):
    """The response of a regression."""

    columns = ("mean", "lower", "upper")

    def __init__(self, chains: NamedChains, options: SummarySpec) -> None:
        stored, model = _stored(chains, "beta", 1), chains.stated("model")
        beta = _flat(chains, stored)
        super().__init__(float(options.level), beta.shape[1])
        self._beta = np.ascontiguousarray(beta.transpose(0, 2, 1))
        q = self._beta.shape[1]
        self.used = (stored,)
        known = model.get("sigma2")
        if known is None:
            self.used = (stored, _stored(chains, "sigma2", 0))
            self._sigma2 = _flat(chains, self.used[1])
        else:
            self._sigma2 = np.full((len(beta), self.draws), float(known))
        self.new = options.interval == "record"
        # each stratum of the normal distribution once: their order alone is random, and the same for all rows
        order = chains.generator(0, _STREAM).permutation(self.draws)
        self._normals = ndtri((order + 0.5) / self.draws)
        law = expect(chains.mechanism, ClampedMomentsLaw)
        bounds = law.bounds
        self._truncated = bounds[-1] if model.get("response") == "truncated" else None
        # beyond their bounds values count as the nearer one where the line is in clamped predictors
        self._ends = np.array(bounds[:-1]).T if model.get("predictors") == "clamped" else None
        if self._ends is not None:
            self.outside = "so are these, as model.predictors: clamped has it"
        names = _names(law, q)
        if len(bounds) != q:
            raise ValueError("bounds")
        dated = dated_of(chains)
        own = [
            Input(name, None, dated.pair(name, pair), dated.is_curve(name))
            for name, pair in zip(names[:-1], bounds[:-1], strict=True)
        ]
        self._group = _group_input(chains)
        self.inputs = (*own, *self._group)
        of = f" of {names[-1]}" if names[-1] != str(q) else ""
        interval = "the response of a new record" if self.new else "the mean response"
        self.what = (
            f"mean is the mean response{of} in the units of the data; lower and upper are the "
            f"{100 * self.level:g}% interval of {interval}"
        )

    def _draws_of(self, rows: Floats, *, new: bool) -> Floats:
        normals = self._normals if new else None
        if self._ends is not None:
            own = rows[:, : self._ends.shape[1]]
            rows = np.column_stack([np.clip(own, *self._ends), rows[:, own.shape[1] :]])
        if not self._group:
            return responses(self._beta[0], self._sigma2[0], rows, normals, self._truncated)[:, None]
        found = np.empty((len(rows), self.draws))
        for group in range(len(self._beta)):
            own = rows[:, -1] == group
            found[own] = responses(
                self._beta[group], self._sigma2[group], rows[own, :-1], normals, self._truncated
            )
        return found[:, None]


class _NaiveBayes(Predictor):
    """The probabilities of the classes."""

    def __init__(self, chains: NamedChains, options: SummarySpec) -> None:
        stored = _stored(chains, "p", 1)
        law = chains.mechanism
        if law.released == "categories":
            levels, names = expect(law, RandomizedResponseLaw).sizes[:-1], list(chains.columns)
        else:
            counts = expect(law, NoisyCountsLaw)
            levels, names = counts.levels, _names(counts, len(counts.levels) + 1)
        tables = [_stored(chains, f"p_feature_{k + 1}", 2) for k in range(len(levels))]
        self.used = (stored, *tables)
        p = _flat(chains, stored)
        super().__init__(float(options.level), p.shape[1])
        labels = [str(label) for label in stored.coords[stored.dims[-1]]]
        self.columns = tuple(f"{name}[{label}]" for label in labels for name in ("p", "lower", "upper"))
        self._log_p = _logs(p.transpose(0, 2, 1))  # (groups, classes, draws)
        self._logs = [_logs(_flat(chains, table).transpose(0, 3, 2, 1)) for table in tables]
        if any(logs.shape[1] != count for logs, count in zip(self._logs, levels, strict=True)):
            raise ValueError("levels")
        places = [table.coords[table.dims[-1]] for table in tables]
        own = [
            Input(name, Categories(map(str, place))) for name, place in zip(names[:-1], places, strict=True)
        ]
        self._group = _group_input(chains)
        self.inputs = (*own, *self._group)
        of = f" of {names[-1]}" if names[-1] != str(len(names)) else ""
        self.what = (
            f"p is the probability of each class{of} given the features; lower and upper are its "
            f"{100 * self.level:g}% interval"
        )

    def _draws_of(self, rows: Floats, *, new: bool) -> Floats:
        codes = rows.astype(np.int64)
        group = codes[:, -1] if self._group else np.zeros(len(codes), dtype=np.int64)
        found = self._log_p[group]
        for k, logs in enumerate(self._logs):
            found += logs[group, codes[:, k]]
        found -= found.max(axis=1, keepdims=True)
        np.exp(found, out=found)
        found /= found.sum(axis=1, keepdims=True)
        return found


def _logs(values: NDArray[np.float64]) -> Floats:
    """Return logarithms; a probability that underflowed is taken for the smallest number that there is."""
    if (values < 0.0).any() or (values > 1.0 + 1e-9).any():
        raise ValueError("no probabilities")
    return np.log(np.maximum(np.ascontiguousarray(values), 5e-324))


_KINDS: Mapping[str, Any] = {"linear_regression": _Regression, "naive_bayes": _NaiveBayes}


# Predictions of the records of a table, as data


SHOWN = 20
"""Records that texts and reports show."""


@dataclass(frozen=True, eq=False)
class Predictions(Tabulated):
    """Predictions of the last column of records from the others, one row a record, in the order of the table.

    Parameters
    ----------
    columns : tuple of str
        Names of what is predicted: `p[CLASS]`, `lower[CLASS]` and `upper[CLASS]` for each class, or `mean`,
        `lower` and `upper` of the response.
    values : float64 array (records, columns)
    level : float
        Posterior probability of the intervals.
    what : str
        What is predicted and what intervals are of, in words.
    labels : tuple of str
        What the first records are, such as "income = 500".
    """

    columns: tuple[str, ...]
    values: Floats = field(repr=False)
    level: float
    what: str
    labels: tuple[str, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """Return one column by name, shape (records,)."""
        return np.asarray(self.values[:, self.columns.index(name)])

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """How many there are, and of what."""
        return f"Predictions of {len(self):,} records", [f"{self.what[0].upper()}{self.what[1:]}."]

    def to_frame(self) -> Frame:
        """Return one row a record, in the order of the table that they are of."""
        return Frame(dict(zip(self.columns, self.values.T, strict=True)))

    def to_json(self) -> list[dict[str, Any]]:
        """Return one object a record, for strict JSON."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.values.tolist()]

    def section(self) -> ResultSection:
        """Return what is reported of them: of all what is predicted, and a table of the first."""
        first = self.values[: len(self.labels)].T.tolist()
        columns = [TableColumn(name, values, name) for name, values in zip(self.columns, first, strict=True)]
        table = Table("record", self.labels, columns)
        held = {
            "quantity": Array(("quantity",), list(self.columns)),
            "values": Array(("record", "quantity"), self.values),
        }
        more = f" Shown are the first of {len(self):,} records." if self.more else ""
        return ResultSection(
            "at",
            Each(self.to_json(), held),
            "Predictions",
            text=[[f"Predictions: {self.what}", table, *filter(None, [self.more])]],
            page=[table, Note(f"{self.what[0].upper()}{self.what[1:]}.{more}")],
        )

    @property
    def more(self) -> str:
        """Say how many records are not shown; empty where all are."""
        rest = len(self) - len(self.labels)
        return f"and {rest:,} more record{'s' * (rest > 1)}" if rest > 0 else ""


def labels_of(inputs: Sequence[Input], rows: Floats) -> list[str]:
    """Say what records are, such as "age = 30, sex = female"."""
    return [
        ", ".join(f"{part.name} = {_written(part, x)}" for part, x in zip(inputs, row, strict=True))
        for row in rows.tolist()
    ]


def _written(part: Input, x: float) -> str:
    if part.categories is not None:
        return part.categories.labels[int(x)]
    return day_text(x) if part.date else f"{x:.6g}"


# Records from the posterior predictive


_RECORDS_BLOCK = 2048
_RECORDS_STREAM = -3  # of the generators that a summary derives from the chains' seed


def mixture_records(chains: Chains, records: int, batch: int = 0) -> Floats:
    """Draw records from the posterior mean density, the posterior predictive density of a mixture.

    Each is drawn from the random density of a saved state, chosen anew among those of all chains: from
    component h with its weight w_h, and with what is left of the weights, w_0, from the kernel at a new draw
    from the base measure, over which w_0 is spread (`dpmix.summary.random_measures`). The generator is
    derived from the chains' seed: the same files give the same records.

    Parameters
    ----------
    chains : Chains
        What `dpmix.run.chains_reader.read_chains` gives.
    records : int
        Their number, at least 1.
    batch : int
        Records of other batches are independent of these.

    Returns
    -------
    float64 array (records, columns)
        In the data's units. A normal kernel reaches beyond public bounds.

    Raises
    ------
    DataError
        When the chains hold bad components.
    """
    source, rng = family_of(chains), chains.generator(batch, _RECORDS_STREAM)
    width = source.size if isinstance(source, NormalInverseWishart) else 1
    states = rng.integers(chains.ids.size * chains.draws, size=records)
    order = np.argsort(states, kind="stable")
    ordered = states[order]
    drawn = np.empty((records, width))
    for block in chains.blocks(_RECORDS_BLOCK):
        start = block.chain * chains.draws + block.start
        first, last = np.searchsorted(ordered, [start, start + len(block.weights)])
        if first < last:
            drawn[order[first:last]] = _from_block(block, ordered[first:last] - start, source, rng)
    return drawn


def _from_block(
    block: Block,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    source: Family | NormalInverseWishart,
    rng: np.random.Generator,
) -> Floats:
    """Draw one record from each of the states `rows` (size,) of a block, shape (size, columns)."""
    states = state_measures(block.weights, block.parameters, source)
    if block.base is not None:
        states = settle_rest(states, source, block.base)
    above = np.append(0.0, np.cumsum(states.weights))
    stops = np.cumsum(states.counts)
    place = above[stops - states.counts][rows] + rng.random(rows.size)
    chosen = np.searchsorted(above[1:], place, side="right")
    new = chosen >= stops[rows]
    atoms = np.empty((states.atoms.shape[0], rows.size))
    atoms[:, ~new] = states.atoms[:, chosen[~new]]
    atoms[:, new] = source.draw(rng, int(new.sum()))
    return source.sample(atoms, rng).reshape(rows.size, -1)


def parametric_records(chains: NamedChains, records: int | None) -> tuple[Floats, tuple[str, ...]]:
    """Take records among those that a parametric model's chains hold: one each saved draw.

    They are the parameters of role ``draw`` titled ``predictive``, one for each column.

    Parameters
    ----------
    chains : NamedChains
    records : int or None
        Their number, at least 1; None for all that there are.

    Returns
    -------
    float64 array (records, columns)
        Numbers, and codes of labels.
    tuple of str
        Names of the columns, in the order of the file's; one that is empty where there is only one.

    Raises
    ------
    DataError
        When the chains hold no such records.
    SpecError
        When they hold fewer.
    """
    held = [p for p in chains.parameters if p.role == "draw" and p.title == "predictive"]
    if not held:
        kind = chains.attrs.get("model", "of their own")
        raise DataError(
            f"the chains are of model {kind}, whose draws hold no records; fits of mixture, discrete, "
            "multinomial and dirichlet can be drawn records from"
        )
    known = {name: place for place, name in enumerate(chains.columns)}
    held.sort(key=lambda parameter: known.get(parameter.column, -1))
    flat = np.stack([chains.read(parameter).ravel() for parameter in held], axis=1)
    if records is not None and records > len(flat):
        raise SpecError(
            f"synthesis.records: {records}, but the chains hold {len(flat)} records of the posterior "
            "predictive, one each saved draw; ask for at most as many, or fit with more sampler.iterations"
        )
    chosen = chains.generator(0, _RECORDS_STREAM).permutation(len(flat))[:records]
    return flat[chosen], tuple(parameter.column for parameter in held)
