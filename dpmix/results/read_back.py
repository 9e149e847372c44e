"""Tables of a result's HDF5 file: every group whose variables stand over one dimension is one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.store.frames import Frame
from dpmix.store.tree import Node

__all__ = ["tables_in"]


def tables_in(root: Node) -> dict[str, Frame]:
    """Return the tables of a file by the paths of their groups: `parameters`, `density`, `density/height`.

    A group whose variables stand over several dimensions gives one table each, the others called
    `GROUP.DIMENSION`; what stands over two, as quantiles of parameters do, has a column for each entry of the
    second. Single figures, and matrices of no table's rows, are left out.
    """
    found: dict[str, Frame] = {}
    for name, group in root.groups.items():
        _gather(name, group, found)
    return found


def _gather(path: str, group: Node, found: dict[str, Frame]) -> None:
    dims = list(dict.fromkeys(v.dims[0] for v in group.variables.values() if v.dims))
    own = [
        dim for dim in dims if any(v.dims == (dim,) and name != dim for name, v in group.variables.items())
    ]
    for number, dim in enumerate(own):
        columns = _columns(group, dim)
        if columns:
            found[path if number == 0 else f"{path}.{dim}"] = Frame(columns)
    for name, child in group.groups.items():
        _gather(f"{path}/{name}", child, found)


def _columns(group: Node, dim: str) -> dict[str, Any]:
    """Return the columns of one dimension: its names first, then what stands over it, in the file's order."""
    columns: dict[str, Any] = {}
    coordinate = group.variables.get(dim)
    if coordinate is not None and coordinate.dims == (dim,):
        columns["name" if dim == "parameter" else dim] = _column(coordinate.data)
    for name, variable in group.variables.items():
        if name == dim or not variable.dims or variable.dims[0] != dim:
            continue
        if len(variable.dims) == 1:
            columns[name] = _column(variable.data)
        elif len(variable.dims) == 2 and variable.dims[1] in group.variables and variable.dims[1] != dim:
            places = group[variable.dims[1]]
            if places.ndim == 1 and len(places) == variable.data.shape[1] <= 100:
                columns |= {
                    f"{name}[{_word(p)}]": _column(v) for p, v in zip(places, variable.data.T, strict=True)
                }
    lengths = {len(column) for column in columns.values()}
    return columns if len(lengths) == 1 else {}


def _word(place: Any) -> str:
    return f"{float(place):.12g}" if np.asarray(place).dtype.kind in "fiu" else str(place)


def _column(values: NDArray[Any]) -> Any:
    if values.dtype.kind in "U":
        return [str(text) or None for text in values]
    return values
