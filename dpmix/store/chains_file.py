"""One chains file, all but its components and allocations: what it must hold, and what no sampler writes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dpmix.errors import DataError
from dpmix.store.components import Floats, Ints, Layout, layout_of
from dpmix.store.h5 import Attribute, Group, reading


@dataclass(frozen=True)
class ChainsFile:
    """The contents of a file, as `dpmix.store.chains_reader.Chains` describes them; one row a chain."""

    path: Path
    attrs: dict[str, Attribute]
    spec: dict[str, Any]
    ids: Ints
    scalars: dict[str, Floats]
    seconds: Floats
    observed: Floats
    constants: dict[str, float]
    arrays: dict[str, Floats]
    layout: Layout
    has_allocations: bool
    columns: tuple[str, ...]


def read_file(path: Path) -> ChainsFile:
    """Read and check one chains file.

    Raises
    ------
    DataError
        When it is no finished chains file, or holds values that no sampler writes.
    """
    with reading(path) as root:
        attrs, groups = root.attrs, root.names()[1]
        if "posterior" not in groups:
            kind = "a release file" if "release" in groups else "another kind of file"
            raise DataError(f"{path} is {kind}, not a chains file: give what `dpmix fit` wrote")
        missing = [name for name in ("spec", "seed", "mechanism", "dpmix_version") if name not in attrs]
        if missing:
            raise DataError(f"{path} is not a chains file of dpmix: it has no attribute {missing[0]!r}")
        posterior, stats = root.group("posterior"), root.group("sample_stats")
        spec = _mapping(path, str(attrs["spec"]))
        ids = np.asarray(posterior["chain"][()], dtype=np.int64)
        scalars = {name: _scalar(posterior, name) for name in ("n_clusters", "concentration")}
        empty = np.full(scalars["n_clusters"].shape, np.nan)
        for name in ("acceptance_rate", "log_likelihood"):
            scalars[name] = _scalar(stats, name) if name in stats else empty
        constant_data = root.group("constant_data")
        values = {name: constant_data[name] for name in constant_data.names()[0]}
        constants = {name: float(value[()]) for name, value in values.items() if value.shape == ()}
        arrays = {
            name: np.asarray(value[()], dtype=np.float64)
            for name, value in values.items()
            if value.shape != () and name.startswith(("base_", "noise_", "domain_"))
        }
        has_allocations = "allocations" in posterior
        seconds = np.asarray(constant_data["seconds"][()], dtype=np.float64)
        data = root.group("observed_data")
        observed = np.asarray(data["z"][()], dtype=np.float64)
        columns = _columns(attrs, data, spec, observed)
    layout = layout_of(path, attrs, spec)
    file = ChainsFile(
        path,
        attrs,
        spec,
        ids,
        scalars,
        seconds,
        observed,
        constants,
        arrays,
        layout,
        has_allocations,
        columns,
    )
    _check_values(file)
    return file


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


def _scalar(group: Group, name: str) -> Floats:
    return np.asarray(group[name][()], dtype=np.float64)


def _planned_draws(spec: Mapping[str, Any]) -> int:
    """Count the draws that each chain of a spec saves when it is finished."""
    sampler = spec.get("sampler") or {}
    kept = int(sampler.get("iterations", 0)) - int(sampler.get("burn_in", 0))
    return max(kept // max(int(sampler.get("thin", 1)), 1), 1)


def _check_values(file: ChainsFile) -> None:
    path, clusters = file.path, file.scalars["n_clusters"]
    if clusters.ndim != 2 or clusters.shape[0] != file.ids.size or file.seconds.shape != file.ids.shape:
        raise DataError(
            f"{path} is not a chains file of dpmix: n_clusters does not have dimensions (chain, draw)"
        )
    planned = _planned_draws(file.spec)
    if clusters.size == 0 or clusters.shape[1] < planned:
        raise DataError(
            f"{path} is unfinished: it holds {clusters.shape[1] if clusters.size else 0} of {planned} draws "
            "per chain; continue it with `dpmix fit --resume`"
        )
    if (clusters < 0).any():
        chain, draw = np.argwhere(clusters < 0)[0]
        raise DataError(
            f"{path} is unfinished: chain {file.ids[chain]} lacks draw {draw}; continue it with "
            "`dpmix fit --resume`"
        )
    concentration = file.scalars["concentration"]
    if not (np.isfinite(concentration) & (concentration > 0)).all():
        bad = concentration[~(np.isfinite(concentration) & (concentration > 0))][0]
        raise DataError(f"{path} holds a concentration of {bad:g}; it must be positive and finite")
    likelihood = file.scalars["log_likelihood"]
    if not np.isfinite(likelihood).all() and not np.isnan(likelihood).all():
        raise DataError(f"{path} holds a log_likelihood that is not finite; the chain cannot be trusted")
    for name in ("discount", *file.layout.scalars, *file.layout.arrays):
        value = file.arrays.get(name) if name in file.layout.arrays else file.constants.get(name)
        if value is None or not np.isfinite(value).all():
            raise DataError(f"{path} has no finite constant_data/{name}; is it a mixture fit of dpmix?")
    if not np.isfinite(file.observed).all():
        raise DataError(f"{path} holds released values that are not finite")
