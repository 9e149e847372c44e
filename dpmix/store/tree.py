"""Whole HDF5 files as plain trees of arrays and attributes: `write_tree` and `read`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpmix.store.h5 import Array, Attribute, Group, create, reading


@dataclass(frozen=True)
class Variable:
    """An array with named dimensions.

    Parameters
    ----------
    dims : tuple of str
        One name per dimension of `data`; `()` for a scalar.
    data : array-like
        Numbers, booleans (stored as int8) or strings (stored as fixed-length UTF-8).
    attrs : mapping
        Attributes of the dataset, such as units.
    """

    dims: tuple[str, ...]
    data: Array
    attrs: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """A group: its attributes, its variables (coordinates among them) and its subgroups, by name."""

    attrs: Mapping[str, Attribute] = field(default_factory=dict)
    variables: Mapping[str, Variable] = field(default_factory=dict)
    groups: Mapping[str, Node] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        """Return the data of the variable called `name`."""
        return self.variables[name].data


def write_tree(path: str | Path, node: Node, *, force: bool = False) -> None:
    """Write a whole tree through `create`.

    A variable whose only dimension has its own name is a coordinate; a dimension without one is given the
    coordinate 0, 1, 2, ..

    Raises UsageError and DataError as `create`.
    """
    with create(path, force=force) as root:
        _write_node(root, node, {})


def read(path: str | Path) -> Node:
    """Read a whole file.

    Returns
    -------
    Node
        Strings as `str`, numbers as NumPy scalars and arrays, all in memory.

    Raises
    ------
    DataError
        When the file is missing, not HDF5, truncated or damaged.
    """
    with reading(path) as root:
        return _read_node(root)


def _write_node(group: Group, node: Node, inherited: Mapping[str, int]) -> None:
    group.set_attrs(node.attrs)
    known = dict(inherited)
    for name, variable in node.variables.items():
        if variable.dims == (name,):
            known[name] = group.coordinate(name, variable.data, attrs=variable.attrs).shape[0]
    for name, variable in node.variables.items():
        if variable.dims == (name,):
            continue
        for dim, length in zip(variable.dims, np.shape(variable.data), strict=True):
            if dim not in known:
                known[dim] = group.coordinate(dim, int(length)).shape[0]
        group.dataset(name, variable.data, variable.dims, attrs=variable.attrs)
    for name, child in node.groups.items():
        _write_node(group.group(name), child, known)


def _read_node(group: Group) -> Node:
    names, groups = group.names()
    datasets = {name: group[name] for name in names}
    variables = {k: Variable(v.dims, v[()], v.attrs) for k, v in datasets.items()}
    return Node(group.attrs, variables, {k: _read_node(group.group(k)) for k in groups})
