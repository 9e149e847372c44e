"""The draws of a chains file as tables, and as what ArviZ takes.

Of most variables there is one table, ``draws``, wide: a row for each draw of each chain, and a column for
each entry of a variable, called as in summaries (``beta[age]``, ``record_quantile[0.5]``). Components of
mixtures, whose number differs by draw, and their allocations have tables of their own, long: a row for each
component, or record, of each draw.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.run.chains_file import coordinates_in_words
from dpmix.run.chains_reader import Chains, ChainSet, NamedChains, read_file
from dpmix.store.frames import Frame, Pieces, needed
from dpmix.store.h5 import Group, reading
from dpmix.store.tree import Node, read

if TYPE_CHECKING:
    from dpmix.run.chains_file import Stored

DRAWS = "draws"
"""Name of the table that is exported where none is named."""
_NUMBERS = 1 << 20  # that are read at a time
_COMPONENTS, _ALLOCATIONS = "components", "allocations"


def draws_tables(path: str | Path, file: Chains | NamedChains | None = None) -> dict[str, Pieces]:
    """Return the tables of a finished chains file by name, ``draws`` first; each is read as it is written.

    `file` is what `read_file` gave of it, where it was read before.

    Raises
    ------
    DataError
        When it is no finished chains file.
    """
    held = read_file(Path(path)) if file is None else file
    if isinstance(held, NamedChains):
        wide = {stored.name: stored.labels() for stored in held.parameters if stored.role != "draw"}
        kept = {stored.name: _of_entries(held, stored) for stored in held.parameters if stored.role == "draw"}
        return {DRAWS: _wide(held, wide), **kept, **_stats(held)}
    with reading(held.path) as root:
        posterior = root.group("posterior")
        wide = {}
        for name in posterior.names()[0]:
            data = posterior[name]
            if data.dims[:2] == ("chain", "draw") and not {"component", "obs"} & set(data.dims):
                wide[name] = _entries(posterior, name, data.dims[2:], data.shape[2:])
        allocated = "allocations" in posterior and len(held.kept) > 0
    components = Pieces(
        ("chain", "draw", "component", "weight", *_of_layout(held)),
        lambda: _components(held),
        int(held.n_clusters.sum()),
    )
    found = {DRAWS: _wide(held, wide), _COMPONENTS: components}
    if allocated:
        found[_ALLOCATIONS] = Pieces(
            ("chain", "draw", "record", "component"),
            lambda: _allocations(held),
            len(held.ids) * held.draws * len(held.kept),
        )
    return {**found, **_stats(held)}


def _entries(posterior: Group, name: str, dims: Sequence[str], shape: Sequence[int]) -> list[str]:
    """Return the names of the entries of a variable, by the coordinates of its own dimensions."""
    names: list[list[str]] = [[]]
    for dim, length in zip(dims, shape, strict=True):
        values = posterior[dim][()] if dim in posterior else np.arange(length)
        names = [[*own, word] for own in names for word in coordinates_in_words(values)]
    return [f"{name}[{','.join(own)}]" if own else name for own in names]


def _index(held: ChainSet, row: int, start: int, stop: int, times: int = 1) -> dict[str, NDArray[Any]]:
    count = (stop - start) * times
    return {"chain": np.full(count, held.ids[row]), "draw": np.repeat(np.arange(start, stop), times)}


def _blocks(held: ChainSet, width: int) -> Iterator[tuple[int, int, int]]:
    """Give chain and states of each piece, so that `width` numbers a draw are not too many at once."""
    draws = held.draws
    size = max(1, _NUMBERS // max(width, 1))
    for row in range(len(held.ids)):
        for start in range(0, draws, size):
            yield row, start, min(start + size, draws)


def _wide(held: ChainSet, names: Mapping[str, list[str]], group: str = "posterior") -> Pieces:
    """Return a table of one row a draw, a column for each entry of these variables."""
    titles = [title for own in names.values() for title in own]

    def pieces() -> Iterator[Frame]:
        for row, start, stop in _blocks(held, len(titles)):
            found: dict[str, Any] = _index(held, row, start, stop)
            with reading(held.path) as root:
                for name, own in names.items():
                    values = root.group(group)[name][(row, slice(start, stop))].reshape(stop - start, -1)
                    if values.dtype.kind not in "biuf" or values.shape[1] != len(own):
                        raise DataError(
                            f"{held.path} is damaged: its {name} does not hold numbers for each draw"
                        )
                    found |= dict(zip(own, values.T, strict=True))
            yield Frame(found)

    return Pieces(("chain", "draw", *titles), pieces, len(held.ids) * held.draws)


def _of_entries(held: NamedChains, stored: Stored) -> Pieces:
    """Return a long table of a variable with an entry for each record."""
    entries = stored.labels()
    words = [label[len(stored.title) + 1 : -1] or "0" for label in entries]

    def pieces() -> Iterator[Frame]:
        for row, start, stop in _blocks(held, len(words)):
            with reading(held.path) as root:
                values = root.group("posterior")[stored.name].numbers((row, slice(start, stop)))
            index = _index(held, row, start, stop, len(words))
            yield Frame({**index, "entry": words * (stop - start), "value": values.ravel()})

    rows = len(held.ids) * held.draws * len(words)
    return Pieces(("chain", "draw", "entry", "value"), pieces, rows)


def _stats(held: ChainSet) -> dict[str, Pieces]:
    """Return what samplers say of each draw, as a table ``sample_stats``; none where they say nothing."""
    with reading(held.path) as root:
        stats = root.group("sample_stats")
        names = {name: [name] for name in stats.names()[0] if stats[name].dims == ("chain", "draw")}
    return {"sample_stats": _wide(held, names, "sample_stats")} if names else {}


def _of_layout(held: Chains) -> list[str]:
    """Return the names of the columns of a component's parameters."""
    found = []
    with reading(held.path) as root:
        posterior = root.group("posterior")
        for name in held.layout.parameters:
            data = posterior[name]
            found += _entries(posterior, name, data.dims[3:], data.shape[3:])  # without that of components
    return found


def _components(held: Chains) -> Iterator[Frame]:
    titles = _of_layout(held)
    most = max(1, int(held.n_clusters.max()))
    for row, start, stop in _blocks(held, most * (len(titles) + 1)):
        counts = held.n_clusters[row, start:stop].astype(np.int64)
        width = max(1, int(counts.max()))
        there = np.arange(width) < counts[:, None]
        parts: list[NDArray[np.float64]] = []
        with reading(held.path) as root:
            posterior = root.group("posterior")
            weights = posterior["weights"].numbers((row, slice(start, stop), slice(width)))
            for name in held.layout.parameters:
                values = posterior[name].numbers((row, slice(start, stop), slice(width)))
                parts += list(np.moveaxis(values.reshape(*values.shape[:2], -1)[there], -1, 0))
        draw, component = np.nonzero(there)
        index = {"chain": np.full(draw.size, held.ids[row]), "draw": draw + start, "component": component}
        yield Frame({**index, "weight": weights[there], **dict(zip(titles, parts, strict=True))})


def _allocations(held: Chains) -> Iterator[Frame]:
    records = len(held.kept)
    for row, start, stop in _blocks(held, records):
        with reading(held.path) as root:
            values = root.group("posterior")["allocations"][(row, slice(start, stop))].astype(np.int64)
        if values.shape != (stop - start, records):
            raise DataError(f"{held.path} is damaged: its allocations are not of {records} records")
        index = _index(held, row, start, stop, records)
        yield Frame({**index, "record": np.tile(held.kept, stop - start), "component": values.ravel()})


def to_inferencedata(path: str | Path) -> Any:
    """Return a chains file as the installed ArviZ takes it: dimensions `chain` and `draw` in `/posterior`.

    Returns
    -------
    xarray.DataTree or arviz.InferenceData
        The tree, which ArviZ from 1 on, `arviz_base` and `arviz_stats` take; where an earlier ArviZ is
        installed its `InferenceData`, which the latter two take, too.

    Raises
    ------
    DataError
        When it is no chains file.
    UsageError
        Where xarray is not installed.
    """
    read_file(Path(path))
    return _inference(_tree(read(path)))


def _tree(node: Node) -> Any:
    """Return a file's tree for xarray, the groups that ArviZ knows alone."""
    xarray = needed("xarray", "to_inferencedata")
    groups = {"/": xarray.Dataset(attrs=dict(node.attrs))}
    groups |= {name: _dataset(xarray, child) for name, child in node.groups.items()}
    return xarray.DataTree.from_dict(groups)


def _dataset(xarray: Any, node: Node) -> Any:
    coords = {name: found.data for name, found in node.variables.items() if found.dims == (name,)}
    held = {
        name: (found.dims, found.data, dict(found.attrs))
        for name, found in node.variables.items()
        if found.dims != (name,)
    }
    return xarray.Dataset(held, coords=coords, attrs=dict(node.attrs))


def _inference(tree: Any) -> Any:
    """Return the tree, or where an ArviZ before 1 is installed its `InferenceData`."""
    try:
        major = int(importlib.metadata.version("arviz").partition(".")[0])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return tree
    if major >= 1:
        return tree
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns once a day of what comes
        import arviz
    make: Callable[[Any], Any] | None = getattr(arviz.InferenceData, "from_datatree", None)
    return tree if make is None else make(tree)
