"""Reading chains files, and merging those of one spec whose chains were run by separate processes.

Files are of one fit where spec, release, seed and number of draws are the same; else the first difference is
named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpmix.errors import DataError, UsageError
from dpmix.mechanisms.laws.every import Law, law_of
from dpmix.release.column_units import Unit, unit_from_text
from dpmix.run.chains_file import (
    Head,
    Held,
    Ints,
    MixtureFile,
    NamedFile,
    Stored,
    check_components,
    read_file,
    same_parameters,
)
from dpmix.run.kept_quantities import Recorded, read_log_likelihood, read_recorded, read_totals
from dpmix.store.h5 import reading

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats, Layout

_LABELS = 1 << 22  # allocations in memory
_GUARANTEE = ("epsilon", "delta", "rho", "adjacency", "private", "simulated")
_LONGEST = 120  # characters of a value in a message
_WHERE_FROM = {("data", "path"), ("release", "path"), ("summary", "at")}
"""Paths, which differ between machines: releases are compared by their values instead."""
File = TypeVar("File", bound=Head)


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
class ChainSet(Held):
    """Chains of one spec, in increasing order of ids, of whichever model.

    Parameters
    ----------
    versions : tuple of str
        dpmix versions that wrote the files.
    """

    versions: tuple[str, ...]
    _rows: tuple[tuple[Path, int], ...]

    @property
    def unit(self) -> Unit:
        """Unit of the columns, as the release states it."""
        return unit_from_text(str(self.attrs.get("unit", "")))

    @property
    def planned(self) -> int:
        """Chains of the spec, of which a file made with ``--chain-id`` holds one."""
        stated = (self.spec.get("sampler") or {}).get("chains")
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
        _check_same(files[0], other)
    mixtures = [file for file in files if isinstance(file, MixtureFile)]
    named = [file for file in files if isinstance(file, NamedFile)]
    if mixtures and named:  # of the same spec, as somebody's edited file may claim
        raise DataError(f"{named[0].path} and {mixtures[0].path} are not of one model")
    if not named:
        rows = _rows(mixtures)
        return Chains(
            **_common(mixtures, rows),
            n_clusters=np.stack([file.n_clusters[row] for file, row in rows]).astype(np.int64),
            concentration=np.stack([file.concentration[row] for file, row in rows]),
            layout=mixtures[0].layout,
            kept=_kept(mixtures),
            base=_bases(rows),
        )
    for file in named[1:]:
        if not same_parameters(named[0].parameters, file.parameters):
            raise DataError(f"{file.path} differs from {named[0].path} in the parameters that it holds")
    return NamedChains(**_common(named, _rows(named)), parameters=named[0].parameters)


def _kept(files: Sequence[MixtureFile]) -> Ints:
    """Return the records that all files hold the allocations of; of one spec they are the same."""
    if any(len(file.kept) == 0 for file in files):
        return np.empty(0, dtype=np.int64)
    for file in files[1:]:
        if not np.array_equal(file.kept, files[0].kept):
            raise DataError(f"{file.path} differs from {files[0].path} in the records of its allocations")
    return files[0].kept


def _bases(rows: Sequence[tuple[MixtureFile, int]]) -> Floats | None:
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


def _common(files: Sequence[File], rows: Sequence[tuple[File, int]]) -> dict[str, Any]:
    return {field.name: getattr(files[0], field.name) for field in fields(Held)} | {
        "ids": np.asarray([file.ids[row] for file, row in rows], dtype=np.int64),
        "acceptance": np.stack([file.acceptance[row] for file, row in rows]),
        "log_likelihood": np.stack([file.log_likelihood[row] for file, row in rows]),
        "seconds": np.asarray([file.seconds[row] for file, row in rows]),
        "versions": tuple(sorted({str(file.attrs["dpmix_version"]) for file in files})),
        "_rows": tuple((file.path, row) for file, row in rows),
    }


# What tells two fits apart


def _check_same(first: Head, other: Head) -> None:
    """Refuse a file that differs from the first in spec, release, seed or number of draws.

    Raises
    ------
    DataError
        Naming the first thing in which they differ, with both values.
    """
    mine, theirs = (json.loads(str(file.attrs["mechanism"])) for file in (first, other))
    checks = list(_differences(first.spec, other.spec))
    checks += _differences(mine, theirs, ("mechanism",))
    checks += [(name, first.attrs.get(name), other.attrs.get(name)) for name in ("seed", *_GUARANTEE)]
    own, others = ({**file.constants, **file.arrays} for file in (first, other))
    checks += [(name, own.get(name), others.get(name)) for name in own]
    checks.append(("draws per chain", first.shape[1], other.shape[1]))
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
