"""Reading chains files, and merging those of one spec whose chains were run by separate processes.

Files are of one fit where spec, release, seed and number of draws are the same; else the first difference is
named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpmix.columns.column_units import Unit, unit_from_text
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.laws.every import Law, law_of
from dpmix.release.tallies import grid_of
from dpmix.run.chains_file import (
    Ints,
    Stored,
    check_components,
    held_by_all,
    layout_of,
    opened,
    same_parameters,
    stored_parameters,
    with_edges,
)
from dpmix.run.kept_quantities import Recorded, read_log_likelihood, read_recorded, read_totals
from dpmix.store.h5 import Attribute, Group, reading

if TYPE_CHECKING:
    from dpmix.columns.cells import Counts
    from dpmix.kernels.layout import Floats, Layout
    from dpmix.spec.run_spec import RunSpec

_LABELS = 1 << 22  # allocations in memory
File = TypeVar("File", bound="ChainSet")


@dataclass(frozen=True)
class Block:
    """Consecutive saved states of one chain.

    Parameters
    ----------
    chain : int
        Position of the chain in `Chains.ids`.
    start : int
        Number of the first state.
    weights : float64 array (states, components)
        One draw of P given each state, NaN where a state has fewer components.
    parameters : mapping of str to float64 array (states, components, ..)
        The components' parameters by the names in `Chains.layout`, in the data's units.
    base : float64 array (states, 2, columns), optional
        Location and scale of a base measure that is learned.
    """

    chain: int
    start: int
    weights: Floats
    parameters: Mapping[str, Floats]
    base: Floats | None = None


@dataclass(frozen=True)
class ChainSet:
    """Chains of one spec, of whichever model: those of one file, or of several in increasing order of ids.

    Parameters
    ----------
    attrs : mapping
        Root attributes, of several files the first's.
    spec : mapping
        The resolved spec.
    ids : int64 array (C,)
        Chain ids.
    acceptance, log_likelihood : float64 arrays (C, D)
        Acceptance NaN where the sampler proposes nothing; log likelihood NaN where it was not computed.
    seconds : float64 array (C,)
        Wall time of sampling.
    observed : float64 array (n,) or (n, columns)
        The release.
    constants : mapping of str to float
        The scalars of `constant_data`: `discount`, `acceptance_bound`, those of the base measure, ...
    arrays : mapping of str to float64 array
        Its arrays: with several columns the base measure's, and `noise_scale`.
    columns : tuple of str
        Names of the columns of a release, as stored or in the spec, else x1, x2, ..
    tally : Counts or None
        Of fits to a tally; `observed` is then empty.
    versions : tuple of str
        dpmix versions that wrote the files.
    """

    attrs: Mapping[str, Attribute]
    spec: Mapping[str, Any]
    ids: Ints
    acceptance: Floats
    log_likelihood: Floats
    seconds: Floats
    observed: Floats
    constants: Mapping[str, float]
    arrays: Mapping[str, Floats]
    columns: tuple[str, ...]
    tally: Counts | None
    versions: tuple[str, ...]
    _rows: tuple[tuple[Path, int], ...]

    @property
    def path(self) -> Path:
        """The file, of several that of the first chain."""
        return self._rows[0][0]

    @property
    def model(self) -> str:
        """The kind of its model."""
        return str(self.attrs.get("model", "mixture"))

    def stated(self, section: str) -> Mapping[str, Any]:
        """Return a section of the resolved spec, empty where it has none."""
        return self.spec.get(section) or {}

    @property
    def run_spec(self) -> RunSpec:
        """The spec that the chains were run by.

        Raises
        ------
        DataError
            When the spec that they hold is none: somebody changed it.
        """
        from dpmix.spec.run_spec import RunSpec  # late: pydantic takes its time

        try:
            return RunSpec.from_yaml(str(self.attrs["spec"]))
        except SpecError as error:
            raise DataError(f"the chains hold a spec that is none: {error}") from error

    @property
    def method(self) -> str:
        """The kind of its sampler."""
        return str(self.stated("sampler").get("kind"))

    @property
    def all_released(self) -> Floats:
        """Everything that was released, which fits of one release share: values, or counts and edges."""
        return self.observed if self.tally is None else with_edges(self.tally.counts, grid_of(self.tally))

    @property
    def unit(self) -> Unit:
        """Unit of the columns, as the release states it."""
        return unit_from_text(str(self.attrs.get("unit", "")))

    @property
    def planned(self) -> int:
        """Chains of the spec, of which a file made with ``--chain-id`` holds one."""
        stated = self.stated("sampler").get("chains")
        return max(stated, len(self.ids)) if isinstance(stated, int) else len(self.ids)

    @property
    def draws(self) -> int:
        """Saved states of each chain."""
        return int(self.acceptance.shape[1])

    @cached_property
    def log_likelihoods(self) -> Floats | None:
        """Log likelihoods of single records at some saved states, (chains, states, n); None where not kept.

        Raises
        ------
        DataError
            When a file holds what no fit writes.
        """
        return read_log_likelihood(self._rows)

    def mean_stat(self, name: str) -> float:
        """Return the mean of a statistic of `/sample_stats` over all draws; NaN where the files have none."""
        found = []
        for path, row in self._rows:
            with reading(path) as root:
                stats = root.group("sample_stats")
                found.append(float(stats[name].numbers((row,)).mean()) if name in stats else float("nan"))
        return float(np.mean(found))

    @cached_property
    def mechanism(self) -> Law:
        """The public half of the release's mechanism; its `kind` is "none" when no noise was added."""
        return law_of(json.loads(str(self.attrs["mechanism"])))

    def generator(self, chain_id: int, start: int) -> np.random.Generator:
        """Return a generator that depends on the seed, a chain's id and the number of a state only."""
        digest = hashlib.sha256(f"dpmix summary {self.attrs['seed']} {chain_id} {start}".encode()).digest()
        return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))

    @property
    def kept_log_likelihoods(self) -> tuple[Ints, Floats] | None:
        """States at which log likelihoods of records are kept, and their sums, each (chains, states).

        None where they are not kept.

        Raises
        ------
        DataError
            When a file holds what no fit writes.
        """
        return read_totals(self._rows, self.draws)

    @property
    def n(self) -> int:
        """Number of confidential records: of a global release what it states, else the released records."""
        if self.tally is not None:
            return self.tally.n
        stated = getattr(self.mechanism, "n", self.attrs.get("n", self.constants.get("n")))
        of_all = not self.by_record and stated is not None
        return int(float(str(stated))) if of_all else int(self.observed.shape[0])

    @property
    def by_record(self) -> bool:
        """Whether each record was released by itself, so that released rows are records."""
        return self.attrs.get("trust") != "global" and self.mechanism.trust == "local"


@dataclass(frozen=True)
class NamedChains(ChainSet):
    """Chains of a parametric model; draws stay on disk until `read` reads them.

    Parameters
    ----------
    parameters : tuple of Stored
        What each draw consists of.
    """

    parameters: tuple[Stored, ...]

    def read(self, parameter: Stored, entries: slice = slice(None), *, group: int | None = None) -> Floats:
        """Read the draws (C, D, ..) of a parameter, or some of its entries along its last dimension.

        Of a parameter that has more dimensions than that of groups those of one `group`, without its
        dimension.

        Raises
        ------
        DataError
            When a draw is not finite.
        """
        where: tuple[Any, ...] = (..., entries) if parameter.dims else (...,)
        if group is not None:
            where = (slice(None), group, *where)
        tables = []
        for path, row in self._rows:
            with reading(path) as root:
                table = root.group("posterior")[parameter.name].numbers((row, *where))
            if not np.isfinite(table).all():
                draw = int(np.argwhere(~np.isfinite(table))[0][0])
                raise DataError(f"{path} holds a {parameter.name} at draw {draw} that is not finite")
            tables.append(table)
        return np.stack(tables)

    def prior(self, parameter: Stored) -> Floats | None:
        """Return draws of a parameter from its prior, shape (draws, ..); None where the file has none.

        Raises
        ------
        DataError
            When they are not as `dpmix fit` wrote them.
        """
        path, _ = self._rows[0]  # of one seed they are the same in all files
        with reading(path) as root:
            if "prior" not in root or parameter.name not in root.group("prior"):
                return None
            found: Floats = root.group("prior")[parameter.name].numbers()
        if found.ndim < 2 or found.shape[2:] != parameter.shape[2:] or not np.isfinite(found).all():
            raise DataError(
                f"{path} holds prior draws of {parameter.name} that are not as `dpmix fit` wrote them"
            )
        return np.asarray(found[0])


@dataclass(frozen=True)
class Chains(ChainSet):
    """Chains of a mixture; components stay on disk until `blocks` reads them.

    Parameters
    ----------
    n_clusters : int64 array (C, D)
        Occupied components.
    concentration : float64 array (C, D)
    layout : Layout
        Kernel and base measure, and the names of the components' parameters.
    kept : int64 array (m,)
        Places of the records whose allocations to components every file holds; none where one holds none.
    base : float64 array (C, D, 2, columns), optional
        Location and scale (b of an NIG, the diagonal of Psi of an NIW) of a base measure that is learned.
    """

    n_clusters: Ints
    concentration: Floats
    layout: Layout
    kept: Ints
    base: Floats | None = None

    @cached_property
    def recorded(self) -> Recorded | None:
        """What `fit` kept of a record's mean, sd and quantiles; None in files of earlier versions.

        Raises
        ------
        DataError
            When a file holds what no fit writes.
        """
        several = self.layout.kernel == "multivariate_normal"
        return read_recorded(self._rows, self.draws, len(self.columns) if several else 1)

    def allocations(self, wanted: Ints) -> Iterator[Ints]:
        """Yield the allocations of some saved states, chain after chain, in blocks (states, m).

        They are the component of each record of `kept`. `wanted` numbers the states within each chain,
        increasing.

        Raises
        ------
        DataError
            When a state has no allocation of some record.
        """
        for path, row in self._rows:
            with reading(path) as root:
                table = root.group("posterior")["allocations"]
                size = max(1, _LABELS // max(1, table.shape[2]))
                for start in range(0, self.draws, size):
                    inside = wanted[(wanted >= start) & (wanted < start + size)] - start
                    if inside.size == 0:
                        continue
                    block = np.asarray(table[row, start : start + size], dtype=np.int64)[inside]
                    if (block < 0).any():
                        draw = start + int(inside[(block < 0).any(axis=1).argmax()])
                        raise DataError(f"{path} lacks allocations at draw {draw}")
                    yield block

    def blocks(self, size: int) -> Iterator[Block]:
        """Read the components, chain after chain, at most `size` states at a time.

        Raises
        ------
        DataError
            When a component is not finite or out of its range where it should be there, or the weights of a
            state exceed 1.
        """
        for chain, (path, row) in enumerate(self._rows):
            with reading(path) as root:
                posterior = root.group("posterior")
                for start in range(0, self.draws, size):
                    stop = min(start + size, self.draws)
                    width = max(1, int(self.n_clusters[chain, start:stop].max()))
                    weights, *part = (
                        posterior[name].numbers((row, slice(start, stop), slice(width)))
                        for name in ("weights", *self.layout.parameters)
                    )
                    parameters = dict(zip(self.layout.parameters, part, strict=True))
                    clusters = self.n_clusters[chain, start:stop]
                    check_components(path, start, self.layout, clusters, weights, parameters)
                    base = None if self.base is None else self.base[chain, start:stop]
                    yield Block(chain, start, weights, parameters, base)


# Reading a file


def read_file(path: Path) -> Chains | NamedChains:
    """Read and check one chains file.

    Raises
    ------
    DataError
        When it is no finished chains file, or holds values that no sampler writes.
    """
    with reading(path) as root:
        spec, attrs, posterior = opened(path, root), root.attrs, root.group("posterior")
        if "model" in attrs:  # which files of mixtures do not say
            parameters = stored_parameters(path, posterior)
            shape = parameters[0].shape[:2]
            named = NamedChains(**held_by_all(path, root, spec, shape), parameters=parameters)
            _check_finished(path, named, shape, f"the draws of {parameters[0].name}")
            _check_all(path, named, shape)
            return named
        clusters: Any = posterior["n_clusters"].numbers()
        concentration = posterior["concentration"].numbers()
        layout = layout_of(path, attrs, spec)
        mixture = Chains(
            **held_by_all(path, root, spec, clusters.shape),
            n_clusters=clusters,
            concentration=concentration,
            layout=layout,
            kept=_kept(path, posterior),
            base=_base(posterior, layout),
        )
    _check_mixture(path, mixture)
    return replace(mixture, n_clusters=clusters.astype(np.int64))


def _base(posterior: Group, layout: Layout) -> Floats | None:
    """Return location and scale of a learned base measure, (C, D, 2, columns); None of others."""
    if not layout.learned:
        return None
    found = [posterior[name].numbers() for name in layout.learned]
    rows = [values.reshape(*values.shape[:2], -1) for values in found]
    return np.stack(np.broadcast_arrays(*rows), axis=2)  # lambda is one of all columns


def _kept(path: Path, posterior: Group) -> Ints:
    """Return the places of the records that allocations are of, none where there are none."""
    if "allocations" not in posterior:
        return np.empty(0, dtype=np.int64)
    if "obs" not in posterior:
        raise DataError(f"{path} has allocations without their records; it is not as `dpmix fit` wrote it")
    return np.asarray(posterior["obs"][()], dtype=np.int64)


def _planned_draws(spec: Mapping[str, Any]) -> int:
    """Count the draws that each chain of a spec saves when it is finished."""
    sampler = spec.get("sampler") or {}
    kept = int(sampler.get("iterations", 0)) - int(sampler.get("burn_in", 0))
    return max(kept // max(int(sampler.get("thin", 1)), 1), 1)


def _check_finished(path: Path, file: ChainSet, shape: tuple[int, ...], what: str) -> None:
    if len(shape) != 2 or shape[0] != file.ids.size or file.seconds.shape != file.ids.shape:
        raise DataError(
            f"{path} is not a chains file of dpmix: {what} does not have dimensions (chain, draw)"
        )
    planned, there = _planned_draws(file.spec), shape[1] if 0 not in shape else 0
    if there < planned:
        raise DataError(
            f"{path} is unfinished: it holds {there} of {planned} draws "
            "per chain; continue it with `dpmix fit --resume`"
        )


def _check_all(path: Path, file: ChainSet, shape: tuple[int, ...]) -> None:
    likelihood = file.log_likelihood
    for name, values in (("acceptance_rate", file.acceptance), ("log_likelihood", likelihood)):
        if values.shape != shape:
            raise DataError(
                f"{path} is not a chains file of dpmix: {name} does not have dimensions (chain, draw)"
            )
    if not np.isfinite(likelihood).all() and not np.isnan(likelihood).all():
        raise DataError(f"{path} holds a log_likelihood that is not finite; the chain cannot be trusted")
    if not np.isfinite(file.observed).all():
        raise DataError(f"{path} holds released values that are not finite")


def _check_mixture(path: Path, file: Chains) -> None:
    clusters = file.n_clusters
    _check_finished(path, file, clusters.shape, "n_clusters")
    if (clusters < 0).any():
        chain, draw = np.argwhere(clusters < 0)[0]
        raise DataError(
            f"{path} is unfinished: chain {file.ids[chain]} lacks draw {draw}; continue it with "
            "`dpmix fit --resume`"
        )
    concentration, least = file.concentration, -file.constants.get("discount", 0.0)
    wrong = concentration[~(np.isfinite(concentration) & (concentration > least))]
    if wrong.size:
        bound = f"greater than minus the discount, {least:g}," if least < 0.0 else "positive"
        raise DataError(f"{path} holds a concentration of {wrong[0]:g}; it must be {bound} and finite")
    for name in ("discount", *file.layout.scalars, *file.layout.arrays):
        value = file.arrays.get(name) if name in file.layout.arrays else file.constants.get(name)
        if value is None or not np.isfinite(value).all():
            raise DataError(f"{path} has no finite constant_data/{name}; is it a mixture fit of dpmix?")
    if file.base is not None:
        columns = np.size(file.arrays.get("base_mu0", 0.0))
        if file.base.shape != (*clusters.shape, len(file.layout.learned), columns):
            raise DataError(f"{path} does not hold a base measure for each draw, as `dpmix fit` wrote it")
        if not (np.isfinite(file.base).all() and (file.base[:, :, 1:] > 0.0).all()):
            raise DataError(f"{path} holds a base measure that no sampler writes")
    _check_all(path, file, clusters.shape)


# Merging files whose chains are of one fit


def read_chains(paths: Sequence[str | Path]) -> Chains | NamedChains:
    """Read one chains file that `dpmix fit` wrote, or several of one spec and release, as one set of chains.

    Raises
    ------
    UsageError
        When there are no paths.
    DataError
        When a file is no finished chains file, holds values that no sampler writes, or differs from the first
        in spec, release, seed or number of draws (the first difference is named), or repeats a chain id.
    """
    if not paths:
        raise UsageError("give at least one chains file to summarize")
    files = [read_file(Path(path)) for path in paths]
    for other in files[1:]:
        check_same(files[0], other)
    mixtures = [file for file in files if isinstance(file, Chains)]
    named = [file for file in files if isinstance(file, NamedChains)]
    if mixtures and named:  # of the same spec, as somebody's edited file may claim
        raise DataError(f"{named[0].path} and {mixtures[0].path} are not of one model")
    if named:
        for file in named[1:]:
            if not same_parameters(named[0].parameters, file.parameters):
                raise DataError(f"{file.path} differs from {named[0].path} in the parameters that it holds")
        return replace(named[0], **_common(_rows(named)))
    rows = _rows(mixtures)
    return replace(
        mixtures[0],
        **_common(rows),
        n_clusters=np.stack([file.n_clusters[row] for file, row in rows]),
        concentration=np.stack([file.concentration[row] for file, row in rows]),
        kept=_kept_by_all(mixtures),
        base=_bases(rows),
    )


def _kept_by_all(files: Sequence[Chains]) -> Ints:
    """Return the records that all files hold the allocations of; of one spec they are the same."""
    if any(len(file.kept) == 0 for file in files):
        return np.empty(0, dtype=np.int64)
    for file in files[1:]:
        if not np.array_equal(file.kept, files[0].kept):
            raise DataError(f"{file.path} differs from {files[0].path} in the records of its allocations")
    return files[0].kept


def _bases(rows: Sequence[tuple[Chains, int]]) -> Floats | None:
    """Return the learned base measures of all chains; None where they are not learned."""
    first = rows[0][0]
    for file, _ in rows:
        if file.layout != first.layout:
            raise DataError(f"{file.path} differs from {first.path} in its base measure: {file.layout.base}")
    found = [file.base[row] for file, row in rows if file.base is not None]
    return np.stack(found) if found else None


def _rows(files: Sequence[File]) -> list[tuple[File, int]]:
    """Return file and row of each chain, in increasing order of ids."""
    rows: dict[int, tuple[File, int]] = {}
    for file in files:
        for row, chain_id in enumerate(file.ids.tolist()):
            if chain_id in rows:
                raise DataError(
                    f"{file.path} repeats chain {chain_id}, which {rows[chain_id][0].path} holds already"
                )
            rows[chain_id] = (file, row)
    return [rows[chain_id] for chain_id in sorted(rows)]


def _common(rows: Sequence[tuple[File, int]]) -> dict[str, Any]:
    return {
        "ids": np.asarray([file.ids[row] for file, row in rows], dtype=np.int64),
        "acceptance": np.stack([file.acceptance[row] for file, row in rows]),
        "log_likelihood": np.stack([file.log_likelihood[row] for file, row in rows]),
        "seconds": np.asarray([file.seconds[row] for file, row in rows]),
        "versions": tuple(sorted({version for file, _ in rows for version in file.versions})),
        "_rows": tuple((file.path, row) for file, row in rows),
    }


# What differs between files, or runs

_WHERE_FROM = {("data", "path"), ("release", "path"), ("summary", "at")}
"""Paths, which differ between machines: releases are compared by their values instead."""
_LONGEST = 120  # characters of a value in a message
_SAME = ("seed", "epsilon", "delta", "rho", "adjacency", "private", "simulated")


def check_same(first: ChainSet, other: ChainSet) -> None:
    """Refuse a file that differs from the first in spec, release, seed or number of draws.

    Raises
    ------
    DataError
        Naming the first thing in which they differ, with both values.
    """
    mine, theirs = (json.loads(str(file.attrs["mechanism"])) for file in (first, other))
    checks = list(_differences(first.spec, other.spec))
    checks += _differences(mine, theirs, ("mechanism",))
    checks += [(name, first.attrs.get(name), other.attrs.get(name)) for name in _SAME]
    own, others = ({**file.constants, **file.arrays} for file in (first, other))
    checks += [(name, own.get(name), others.get(name)) for name in own]
    checks.append(("draws per chain", first.draws, other.draws))
    for name, mine, theirs in checks:
        if not _equal(mine, theirs):
            raise DataError(
                f"{other.path} differs from {first.path} in {name} ({_show(theirs)} against {_show(mine)})"
            )
    if not np.array_equal(first.all_released, other.all_released):
        raise DataError(
            f"{other.path} was fitted to another release than {first.path}: the released values differ"
        )


def first_difference(mine: Any, theirs: Any) -> tuple[str, Any, Any] | None:
    """Return the first leaf in which two nested mappings differ, as (dotted key, mine, theirs)."""
    found = next(_differences(mine, theirs), None)
    return None if found is None else (found[0], _show(found[1]), _show(found[2]))


def _differences(mine: Any, theirs: Any, key: tuple[str, ...] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Leaves in which two specs differ, in the order of the first."""
    if key in _WHERE_FROM:
        return
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for name in [*mine, *(name for name in theirs if name not in mine)]:
            yield from _differences(mine.get(name), theirs.get(name), (*key, str(name)))
    elif not _equal(mine, theirs):
        yield ".".join(key), mine, theirs


def _equal(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float | np.floating) and isinstance(theirs, float | np.floating):
        return bool(mine == theirs) or bool(np.isnan(mine) and np.isnan(theirs))
    return bool(np.array_equal(np.asarray(mine, dtype=object), np.asarray(theirs, dtype=object)))


def _show(value: Any) -> str:
    if value is None:
        return "absent"
    text = f"{value:g}" if isinstance(value, float | np.floating) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}.."
