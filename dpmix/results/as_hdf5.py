"""The data of a result as an HDF5 file, and its tables read back.

Each section is a group, a mapping in it a subgroup; an `Array` is a variable over its dimensions, a table one
variable a column over its own. Numbers are scalars, words attributes; of the root both are attributes. What
does not exist is NaN, and a section of which the result has nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.results.nodes import ABSENT, Array, Attr, Each, Table, Tree
from dpmix.store.frames import Frame
from dpmix.store.tree import Node, Variable, write_tree

if TYPE_CHECKING:
    from dpmix.store.h5 import Attribute


def write_result(
    path: str | Path, tree: Tree, attrs: Mapping[str, Attribute] | None = None, *, force: bool = False
) -> None:
    """Write the data of a result.

    Parameters
    ----------
    path : path
        File to write.
    tree : Tree
    attrs : mapping, optional
        More attributes of the root: level, spec, guarantee.
    force : bool
        Whether an existing file may be replaced.

    Raises UsageError and DataError as `dpmix.store.h5.create`.
    """
    own: dict[str, Attribute] = {}
    groups: dict[str, Node] = {}
    for section in tree:
        data = section.data.hdf5 if isinstance(section.data, Each) else section.data
        if isinstance(data, Attr):
            data = data.value  # as all figures and words of the root are
        if data is ABSENT or data is None or data == "":
            continue
        if isinstance(data, Table):
            data = {"": data}
        if isinstance(data, Mapping):
            groups[section.key] = _node(data)
        else:
            own[section.key] = data
    write_tree(path, Node({**own, **(attrs or {})}, groups=groups), force=force)


def _node(data: Mapping[str, Any]) -> Node:
    attrs: dict[str, Attribute] = {}
    variables: dict[str, Variable] = {}
    groups: dict[str, Node] = {}
    for name, value in data.items():
        match value.hdf5 if isinstance(value, Each) else value:
            case None:
                variables[name] = Variable((), np.asarray(np.nan))
            case Array(values=None) | Attr(value="") | "":
                pass
            case Array(dims, values):
                variables[name] = Variable(dims, np.asarray(values))
            case Table() as table:
                variables |= _table(table)
            case Mapping() as inner:
                # a slash in a name, which HDF5 reads as a path, becomes an underscore
                safe = name.replace("/", "_")
                groups[safe if safe not in groups else f"{safe}_{len(groups)}"] = _node(inner)
            case Attr(value=number):
                attrs[name] = np.nan if number is None else number
            case str() as words:
                attrs[name] = words
            case found if found is not ABSENT:
                variables[name] = Variable((), np.asarray(found, dtype=_kind(found)))
    return Node(attrs, variables, groups)


def _kind(value: Any) -> type[np.generic]:
    return np.int64 if isinstance(value, int | np.integer) and not isinstance(value, bool) else np.float64


def _table(table: Table) -> dict[str, Variable]:
    dims = (table.dim,)
    names = table.rows if table.coordinate is None else table.coordinate
    found = {table.dim: Variable(dims, np.asarray(list(names)))}
    for column in table.columns:
        if "hdf5" not in column.where or (column.optional and all(v is None for v in column.values)):
            continue
        if column.form is str:
            found[column.key] = Variable(dims, np.asarray([value or "" for value in column.values]))
        else:
            found[column.key] = Variable(dims, _numbers(column.values))
    return found


def _numbers(values: Iterable[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)


# Tables of a result's HDF5 file: every group whose variables stand over one dimension is one


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
