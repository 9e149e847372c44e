"""Reading chains files, and merging those of one spec whose chains were run by separate processes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmix.errors import DataError, UsageError
from dpmix.store.chains_file import ChainsFile, read_file
from dpmix.store.components import Floats, Ints, Layout, check_components
from dpmix.store.differences import Fit, check_same
from dpmix.store.h5 import Attribute, reading

_LABELS = 1 << 22  # allocations in memory


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
    """

    chain: int
    start: int
    weights: Floats
    parameters: Mapping[str, Floats]


@dataclass(frozen=True)
class Chains:
    """Chains of one spec, in increasing order of ids; components stay on disk until `blocks` reads them.

    Parameters
    ----------
    spec : mapping
        The resolved spec.
    ids : int64 array (C,)
        Chain ids.
    n_clusters : int64 array (C, D)
        Occupied components.
    concentration, acceptance, log_likelihood : float64 arrays (C, D)
        Acceptance NaN where the sampler proposes nothing; log likelihood NaN where it was not computed.
    seconds : float64 array (C,)
        Wall time of sampling.
    observed : float64 array (n,) or (n, columns)
        The release.
    constants : mapping of str to float
        The scalars of `constant_data`: `discount`, `acceptance_bound`, those of the base measure, ...
    arrays : mapping of str to float64 array
        Its arrays: with several columns the base measure's, and `noise_scale`.
    layout : Layout
        Kernel and base measure, and the names of the components' parameters.
    has_allocations : bool
        Whether every file holds the allocations of records to components.
    columns : tuple of str
        Names of the columns of a release, as stored or in the spec, else x1, x2, ..
    attrs : mapping
        Root attributes of the first file.
    versions : tuple of str
        dpmix versions that wrote the files.
    """

    spec: Mapping[str, Any]
    ids: Ints
    n_clusters: Ints
    concentration: Floats
    acceptance: Floats
    log_likelihood: Floats
    seconds: Floats
    observed: Floats
    constants: Mapping[str, float]
    arrays: Mapping[str, Floats]
    layout: Layout
    has_allocations: bool
    columns: tuple[str, ...]
    attrs: Mapping[str, Attribute]
    versions: tuple[str, ...]
    _rows: tuple[tuple[Path, int], ...]

    @property
    def draws(self) -> int:
        """Saved states of each chain."""
        return int(self.n_clusters.shape[1])

    @property
    def mechanism(self) -> dict[str, Any]:
        """The release's mechanism; its `kind` is "none" when no noise was added."""
        return dict(json.loads(str(self.attrs["mechanism"])))

    @property
    def n(self) -> int:
        """Number of confidential records: of a global release what it states, else the released records."""
        stated = self.mechanism.get("n", self.attrs.get("n", self.constants.get("n")))
        is_global = self.attrs.get("trust") == "global" and stated is not None
        return int(float(str(stated))) if is_global else int(self.observed.shape[0])

    def allocations(self, wanted: Ints) -> Iterator[Ints]:
        """Read the allocations of some saved states, chain after chain.

        Parameters
        ----------
        wanted : int64 array
            Numbers of the states within each chain, increasing.

        Yields
        ------
        int64 array (states, n)
            Component of each record; blocks of states, in order.

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
                        np.asarray(posterior[name][row, start:stop, :width], dtype=np.float64)
                        for name in ("weights", *self.layout.parameters)
                    )
                    parameters = dict(zip(self.layout.parameters, part, strict=True))
                    clusters = self.n_clusters[chain, start:stop]
                    check_components(path, start, self.layout, clusters, weights, parameters)
                    yield Block(chain, start, weights, parameters)


def read_chains(paths: Sequence[str | Path]) -> Chains:
    """Read one chains file, or several of one spec and release, as one set of chains.

    Parameters
    ----------
    paths : sequence of path
        Files that `dpmix fit` wrote.

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
        check_same(_fit(files[0]), _fit(other))
    rows: dict[int, tuple[ChainsFile, int]] = {}
    for file in files:
        for row, chain_id in enumerate(file.ids.tolist()):
            if chain_id in rows:
                raise DataError(
                    f"{file.path} repeats chain {chain_id}, which {rows[chain_id][0].path} holds already"
                )
            rows[chain_id] = (file, row)
    order = sorted(rows)

    def stacked(name: str) -> Floats:
        return np.stack([rows[i][0].scalars[name][rows[i][1]] for i in order])

    return Chains(
        spec=files[0].spec,
        ids=np.asarray(order, dtype=np.int64),
        n_clusters=stacked("n_clusters").astype(np.int64),
        concentration=stacked("concentration"),
        acceptance=stacked("acceptance_rate"),
        log_likelihood=stacked("log_likelihood"),
        seconds=np.asarray([rows[i][0].seconds[rows[i][1]] for i in order]),
        observed=files[0].observed,
        constants=files[0].constants,
        arrays=files[0].arrays,
        layout=files[0].layout,
        has_allocations=all(file.has_allocations for file in files),
        columns=files[0].columns,
        attrs=files[0].attrs,
        versions=tuple(sorted({str(file.attrs["dpmix_version"]) for file in files})),
        _rows=tuple((rows[i][0].path, rows[i][1]) for i in order),
    )


def _fit(file: ChainsFile) -> Fit:
    draws = file.scalars["n_clusters"].shape[1]
    constants = {**file.constants, **file.arrays}
    return Fit(str(file.path), file.spec, file.attrs, constants, draws, file.observed)
