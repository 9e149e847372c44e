"""What a fit says of the last column of new records, given the others, with intervals.

How is stated by its model (`dpmix.models.predictor_base`). And records from the posterior predictive of a
fit: free, because they are computed from a release alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.models.meaning_base import meaning_of
from dpmix.numerics.in_words import all_of
from dpmix.results.nodes import Array, Each, Note, ResultSection, Table, TableColumn
from dpmix.run.chains_reader import Block, Chains, ChainSet, NamedChains
from dpmix.spec.combinations import models_that
from dpmix.spec.days import day_text
from dpmix.spec.kinds import MODELS
from dpmix.store.frames import Frame, Tabulated
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.random_measures import settle_rest, state_measures

if TYPE_CHECKING:
    from dpmix.kernels.layout import Family, Floats
    from dpmix.models.predictor_base import Input, Predictor
    from dpmix.run.chains_file import Stored
    from dpmix.spec.summary_section import SummarySpec


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
        return meaning_of(chains).predictor(options)
    except (KeyError, ValueError, IndexError, TypeError) as error:
        what = f"the parameters of a {kind} as `dpmix fit` writes them"
        raise DataError(f"{source} does not hold {what}") from error


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
        return f"Predictions of {len(self):,} record{'s' * (len(self) != 1)}", [
            f"{self.what[0].upper()}{self.what[1:]}."
        ]

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


def check_held(chains: NamedChains, records: int | None) -> int:
    """Return how many records are taken of a parametric model's chains, which hold one each saved draw.

    Parameters
    ----------
    chains : NamedChains
    records : int or None
        Their number, at least 1; None for as many as there are confidential ones, or as are held.

    Raises
    ------
    DataError
        When the chains hold none.
    SpecError
        When they hold fewer.
    """
    _held(chains)
    most = len(chains.ids) * chains.draws
    if records is not None and records > most:
        raise SpecError(
            f"synthesis.records: {records}, but the chains hold {most} records of the posterior "
            "predictive, one each saved draw; ask for at most as many, or fit with more sampler.iterations"
        )
    return min(chains.n, most) if records is None else records


def _held(chains: NamedChains) -> list[Stored]:
    """Return the parameters that are records, one for each column."""
    held = [p for p in chains.parameters if p.role == "draw" and p.title == "predictive"]
    if not held:
        kind = chains.attrs.get("model", "of their own")
        holders = [name for name in MODELS.names if MODELS.section(name).draws_records]
        raise DataError(
            f"the chains are of model {kind}, whose draws hold no records; fits of "
            f"{all_of(holders)} can be drawn records from"
        )
    return held


def parametric_records(chains: NamedChains, records: int | None) -> tuple[Floats, tuple[str, ...]]:
    """Take records among those that a parametric model's chains hold: one each saved draw.

    They are the parameters of role ``draw`` titled ``predictive``, one for each column.

    Parameters
    ----------
    chains : NamedChains
    records : int or None
        Their number, at most as many as are held (`check_held`); None for all.

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
    """
    held = _held(chains)
    known = {name: place for place, name in enumerate(chains.columns)}
    held.sort(key=lambda parameter: known.get(parameter.column, -1))
    flat = np.stack([chains.read(parameter).ravel() for parameter in held], axis=1)
    chosen = chains.generator(0, _RECORDS_STREAM).permutation(len(flat))[:records]
    return flat[chosen], tuple(parameter.column for parameter in held)
