"""The parts of a chains file but its draws: what it must hold, and what no sampler writes.

Of a state it holds the components of a mixture, or the parameters of a parametric model.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from dpmix.columns.cells import Counts
from dpmix.errors import DataError
from dpmix.kernels.layout import Floats, Layout, find_layout, known_layouts
from dpmix.laws.every import LawError, law_of
from dpmix.numerics.in_words import figures, neighbours_in_words
from dpmix.release.tallies import counts_problem
from dpmix.run.model_protocols import GROUP

if TYPE_CHECKING:
    from dpmix.store.h5 import Attribute, Group

Ints = NDArray[np.int64]

# What the root attributes of a chains file must say, whoever changed them since.

_GUARANTEE = ("epsilon", "delta", "rho")
_FLAGS = ("private", "simulated")


def check_attributes(path: Path, attrs: Mapping[str, Attribute]) -> None:
    """Check the root attributes that summaries and further fits go by.

    Raises
    ------
    DataError
        Naming the first that does not say what `dpmix fit` writes.
    """
    mechanism = _json(path, attrs, "mechanism")
    try:
        law_of(mechanism)
    except LawError as error:
        raise _bad(path, "mechanism", str(error)) from None
    if "versions" in attrs:
        _json(path, attrs, "versions")
    for name in _GUARANTEE:
        if name in attrs and not _at_least(attrs[name], 0.0, nan=True):
            raise _bad(path, name, "is no number from 0")
    for holder, name in ((attrs, "n"), (mechanism, "mechanism")):
        if holder.get("n") is not None and not _is_count(holder["n"]):
            raise _bad(path, name, "states no number of records")
    for name in _FLAGS:
        if name in attrs and not (_at_least(attrs[name], 0.0) and float(attrs[name]) in (0.0, 1.0)):
            raise _bad(path, name, "is neither 0 nor 1")
    if attrs.get("trust", "local") not in ("local", "global"):
        raise _bad(path, "trust", "is neither local nor global")
    try:
        neighbours_in_words(str(attrs.get("adjacency", "replacement")))
    except KeyError:
        raise _bad(path, "adjacency", "names no neighbouring relation") from None


def _json(path: Path, attrs: Mapping[str, Attribute], name: str) -> dict[str, Any]:
    try:
        found = json.loads(str(attrs[name]))
    except (ValueError, RecursionError) as error:
        raise _bad(path, name, "is no JSON") from error
    if not isinstance(found, dict):
        raise _bad(path, name, "is no JSON object")
    return found


def _at_least(value: Attribute, least: float, *, nan: bool = False) -> bool:
    if isinstance(value, str) or np.ndim(value) != 0 or np.asarray(value).dtype.kind not in "biuf":
        return False
    number = float(value)
    return math.isnan(number) if nan and math.isnan(number) else number >= least


def _is_count(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "iuf" and _at_least(value, 1.0) and math.isfinite(value)


def _bad(path: Path, name: str, problem: str) -> DataError:
    return DataError(
        f"{path} is not a chains file of dpmix as it was written: its attribute {name!r} {problem}"
    )


# What the files of all models hold


def opened(path: Path, root: Group) -> dict[str, Any]:
    """Return the resolved spec of a chains file, once its root attributes say what they must.

    Raises
    ------
    DataError
        When it is no chains file, or an attribute is not as `dpmix fit` writes it.
    """
    attrs, groups = root.attrs, root.names()[1]
    if "posterior" not in groups:
        kind = "a release file" if "release" in groups else "another kind of file"
        raise DataError(f"{path} is {kind}, not a chains file: give what `dpmix fit` wrote")
    missing = [name for name in ("spec", "seed", "mechanism", "dpmix_version") if name not in attrs]
    if missing:
        raise DataError(f"{path} is not a chains file of dpmix: it has no attribute {missing[0]!r}")
    spec = _mapping(path, str(attrs["spec"]))
    check_attributes(path, attrs)
    return spec


def held_by_all(path: Path, root: Group, spec: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Read what files of all models hold, as the fields of `dpmix.run.chains_reader.ChainSet`.

    `shape` is that of the draws. Acceptance is NaN where the sampler proposes nothing, and the log likelihood
    where it was not computed.
    """
    attrs, stats = root.attrs, root.group("sample_stats")
    empty = np.full(shape, np.nan)
    constant_data, data = root.group("constant_data"), root.group("observed_data")
    values = {name: constant_data[name] for name in constant_data.names()[0]}
    tally = _tally(path, root, data) if "counts" in data and "z" not in data else None
    observed = data["z"].numbers() if tally is None else np.zeros(0)
    ids = np.asarray(root.group("posterior")["chain"][()], dtype=np.int64)
    return {
        "attrs": attrs,
        "spec": spec,
        "ids": ids,
        "acceptance": stats["acceptance_rate"].numbers() if "acceptance_rate" in stats else empty,
        "log_likelihood": stats["log_likelihood"].numbers() if "log_likelihood" in stats else empty,
        "seconds": constant_data["seconds"].numbers(),
        "observed": observed,
        "constants": {
            name: _number(path, name, value[()]) for name, value in values.items() if value.shape == ()
        },
        "arrays": {
            name: value.numbers()
            for name, value in values.items()
            if value.shape != () and name.startswith(("base_", "noise_", "domain_"))
        },
        "columns": _columns(attrs, data, spec, observed),
        "tally": tally,
        "versions": (str(attrs["dpmix_version"]),),
        "_rows": tuple((path, row) for row in range(ids.size)),
    }


def _tally(path: Path, root: Group, data: Group) -> Counts:
    """Read the tally that was fitted."""
    counts, edges = data["counts"][()], data["edges"].numbers() if "edges" in data else np.zeros(0)
    constants = root.group("constant_data")
    width = constants["cells_width"].numbers() if "cells_width" in constants else np.full(1, np.nan)
    stated = root.attrs.get("n")
    law = law_of(_json(path, root.attrs, "mechanism"))
    n = int(stated) if isinstance(stated, int | np.integer) else 0
    problem = counts_problem(counts, edges, float(width) if width.ndim == 0 else math.nan, law, n)
    if problem is not None:
        raise DataError(f"{path} holds no tally as `dpmix fit` wrote it: {problem}")
    return Counts(counts.astype(np.int64), np.ascontiguousarray(edges[1:-1]), float(width))


def with_edges(observed: Any, edges: Floats | None) -> Floats:
    """Return counts followed by their edges; without edges what there is."""
    return observed if edges is None else np.concatenate([np.asarray(observed, dtype=np.float64), edges])


def _mapping(path: Path, text: str) -> dict[str, Any]:
    with contextlib.suppress(yaml.YAMLError):
        spec = yaml.safe_load(text)
        if isinstance(spec, dict):
            return spec
    raise DataError(f"{path} holds no readable spec: its attribute 'spec' is not a YAML mapping")


def _columns(
    attrs: Mapping[str, Any], group: Group, spec: Mapping[str, Any], observed: Floats
) -> tuple[str, ...]:
    """Return the names of the released columns: those stored, else those of the spec, else x1, x2, ..

    They are stored as the root attribute `columns` (a JSON list) or as the coordinate of the released values.
    """
    count = observed.shape[1] if observed.ndim == 2 else 1
    with contextlib.suppress(json.JSONDecodeError):
        listed = json.loads(str(attrs.get("columns", "null")))
        if isinstance(listed, list) and len(listed) == count:
            return tuple(map(str, listed))
    stored = group["column"][()] if "column" in group else np.empty(0)
    if stored.dtype.kind in "UO" and stored.size == count:
        return tuple(str(name) for name in stored)
    for section in ("data", "release"):
        named = (spec.get(section) or {}).get("columns")
        if isinstance(named, list) and len(named) == count:
            return tuple(map(str, named))
    return tuple(f"x{number}" for number in range(1, count + 1))


def _number(path: Path, name: str, value: Any) -> float:
    if np.asarray(value).dtype.kind not in "biuf":
        raise DataError(f"{path} has no number at constant_data/{name}; it is not as `dpmix fit` wrote it")
    return float(value)


# What chains files hold of the components of a mixture, by kernel and base measure


_ONLY_BASE = {"beta": "gamma", "multivariate_normal": "niw"}


def layout_of(path: Path, attrs: Mapping[str, Any], spec: Mapping[str, Any]) -> Layout:
    """Find the layout by the attributes `kernel` and `base`, or, without them, by the spec.

    Raises
    ------
    DataError
        When it is no mixture with a kernel and base measure that are known.
    """
    model = spec.get("model") or {}
    kind = str(model.get("kind", "mixture"))
    kernel = str(attrs.get("kernel") or model.get("kernel", "normal"))
    stated = (model.get("base") or {}).get("kind", "nig")
    base = str(attrs.get("base") or _ONLY_BASE.get(kernel, stated))
    layout = find_layout(kernel, base)
    if kind != "mixture" or layout is None:
        known = ", ".join(f"{k} with {b}" for k, b in known_layouts())
        raise DataError(
            f"{path} is of a {kind} with kernel {kernel} and base {base}; known are mixtures of {known}"
        )
    return layout


def check_components(
    path: Path,
    start: int,
    layout: Layout,
    n_clusters: Ints,
    weights: Floats,
    parameters: Mapping[str, Floats],
) -> None:
    """Refuse components that no sampler writes, in states from number `start` on.

    `n_clusters` (states,) is how many each state should have; `weights` and `parameters` are over states and
    components.

    Raises
    ------
    DataError
        Naming the draw and the component.
    """
    expected = np.arange(weights.shape[1])[None, :] < n_clusters[:, None]
    good = np.isfinite(weights) & (weights >= 0)
    for name, values in parameters.items():
        flat = values.reshape(*weights.shape, -1)
        good &= np.isfinite(flat).all(axis=-1)
        if name in layout.positive:
            size = np.diagonal(values, axis1=-2, axis2=-1) if name == "covariance" else flat
            good &= ((size > 0) | (layout.zero & (size == 0))).all(axis=-1)
    wrong = (expected & ~good) | (~expected & np.isfinite(weights))
    if wrong.any():
        state, component = np.argwhere(wrong)[0]
        raise DataError(
            f"{path} holds a bad component: draw {start + state}, component {component} of the posterior"
        )
    total = np.where(expected, weights, 0.0).sum(axis=1)
    if (total > 1.0 + 1e-9).any():
        raise DataError(
            f"{path} holds weights that sum to {total.max():g} at draw {start + int(total.argmax())}"
        )


# The parameters that the chains file of a parametric model holds


_ROLES = ("scalar", "shares", "curve", "density", "draw")


@dataclass(frozen=True)
class Stored:
    """A parameter of a file: dims and role as in `dpmix.run.model_protocols.Parameter`.

    Parameters
    ----------
    name : str
        Its dataset in `/posterior`.
    shape : tuple of int
        (chains, draws, ..).
    dims : tuple of str
        Names of its own dimensions.
    coords : mapping of str to array
        Their coordinates.
    role, title, column : str
        How it is summarized, what it is called there, and the column that it is about.
    """

    name: str
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    coords: Mapping[str, NDArray[Any]] = field(repr=False)
    role: str
    title: str
    column: str

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, where its first dimension is theirs; else empty."""
        return tuple(coordinates_in_words(self.coords[GROUP])) if self.dims[:1] == (GROUP,) else ()

    def labels(self) -> list[str]:
        """Names of its entries, in C order: `mean`, `quantile[0.25]`, `probability[red]`, `beta[1]`.

        A group goes first between the brackets, and then a column: `mean[height]`, `quantile[height,0.25]`,
        `quantile[female,height,0.25]`.
        """
        own = [self.column] if self.column else []
        names = [[group, *own] for group in self.groups] or [own]
        for dim in self.dims[bool(self.groups) :]:
            entries = coordinates_in_words(self.coords[dim])
            names = [[*name, entry] for name in names for entry in entries]
        return [f"{self.title}[{','.join(name)}]" if name else self.title for name in names]


def stored_parameters(path: Path, posterior: Group) -> tuple[Stored, ...]:
    """Read what parameters there are, without their draws.

    Raises
    ------
    DataError
        When there are none, or one is not described as they are.
    """
    found = []
    for name in posterior.names()[0]:
        data = posterior[name]
        if data.dims == (name,):
            continue
        attrs, dims, shape = data.attrs, data.dims, data.shape
        role = attrs.get("role")
        if dims[:2] != ("chain", "draw") or role not in _ROLES:
            raise DataError(f"{path} is not a chains file of dpmix: {name} is no parameter of a model")
        own = {dim: posterior[dim][()] for dim in dims[2:]}
        column = str(attrs.get("column", ""))
        title = str(attrs.get("title", name))
        found.append(Stored(name, shape, dims[2:], own, str(role), title, column))
    if not found or any(stored.shape[:2] != found[0].shape[:2] for stored in found):
        raise DataError(f"{path} is not a chains file of dpmix: it has no draws of parameters")
    return tuple(found)


def same_parameters(first: Sequence[Stored], other: Sequence[Stored]) -> bool:
    """Say whether two files hold the same parameters, with the same coordinates."""
    return len(first) == len(other) and all(
        (a.name, a.dims, a.role, a.title, a.column) == (b.name, b.dims, b.role, b.title, b.column)
        and all(np.array_equal(a.coords[dim], b.coords[dim]) for dim in a.dims)
        for a, b in zip(first, other, strict=True)
    )


def coordinates_in_words(values: NDArray[Any]) -> list[str]:
    """Write coordinates of a dimension, numbers as `figures` does."""
    return figures(values) if values.dtype.kind in "fiu" else [str(value) for value in values]


# What tells two fits apart
