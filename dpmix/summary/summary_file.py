"""Summary files: `Summary.contents` as HDF5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpmix.store.h5 import Attribute
from dpmix.store.tree import Node, Variable, write_tree

_FIGURES = ("mean", "sd", "rhat", "ess_bulk", "ess_tail", "mcse", "contraction")


def write_summary(
    path: str | Path, content: Mapping[str, Any], attrs: Mapping[str, Attribute], *, force: bool = False
) -> None:
    """Write a summary.

    Groups: `/parameters` (each figure over the dimension `parameter`, `quantiles` over `parameter` and
    `quantile`, and `ess_per_second`), `/density` (over `grid`, and the scalar `hellinger_from_prior`;
    `baseline` and the scalar `baseline_bandwidth` where they were asked for; with several columns it has such
    a group for each), `/joint` (with several columns: `columns` and the scalar `hellinger_from_prior`; with
    two the density `mean` over the grids `first` and `second`), `/distribution` of a model that has one
    (`mean`, `lower` and `upper` over `grid` or `category`, likewise a group for each of several columns),
    `/composition` of compositions (`censoring` and, where it was given, `truth`: figures over `component` and
    scalars; `ellipsoid`: a group each for `alpha`, `mean` and `record`, with `centre`, `covariance`, `radius`
    and `level`; with several groups of records, each has its own), `/n_clusters` (`probability` over
    `support`), `/clustering` where allocations were saved (`estimate` over `obs`, scalars, a group
    `credible_ball`; `other` likewise for the other loss; `coclustering` over `obs` and `obs2` on request),
    `/acceptance` (scalars), `/beyond_bounds` (`share` over `column`, whose name is empty where there is only
    one), `/check` where the release was replicated (`observed`, `mean`, `lower`, `upper` and `p` over
    `entry`, scalars `overall`, `replicates` and `visible_from`; a group `distribution` of the same over
    `grid`, or such a group for each of several columns), `/loo` on request (scalars), `/prior_sensitivity`
    where it is known (`prior`, `likelihood` and `noise` over `parameter`, scalars `pareto_k_prior` and
    `pareto_k_likelihood`), `/variance_shares` where they are known (`sampling`, `privacy` and `prior` over
    `quantity`), `/at` where records were to be predicted (`values` over `record` and `quantity`),
    `/clusters_by_value` (`estimate` over cells, `share_mean`, .. over `cluster`; in `latent` and `released`
    `low` and `high` over cells, NaN where infinite, `mean`, `lower`, `upper` over `cluster` and cells) and
    `/information_kept` of ``sampler.kind: counts`` (scalars), `/warnings` (`text` over `warning`). `seconds`
    and the given attributes are those of the root. What does not exist is NaN, and a group of which the model
    has nothing is left out.

    Parameters
    ----------
    path : path
        File to write.
    content : mapping
        What `dpmix.summary.result.Summary.contents` gives.
    attrs : mapping
        More attributes: level, spec, guarantee.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    UsageError, DataError
        As `dpmix.store.h5.create`.
    """
    parameters, density, clusters = content["parameters"], content["density"], content["n_clusters"]
    distribution = content.get("distribution")
    names = list(parameters)
    levels = list(parameters[names[0]]["quantiles"])
    table = {name: Variable(("parameter",), _column(parameters[p][name] for p in names)) for name in _FIGURES}
    table["parameter"] = Variable(("parameter",), np.asarray(names))
    table["quantile"] = Variable(("quantile",), np.asarray([float(level) for level in levels]))
    table["quantiles"] = Variable(
        ("parameter", "quantile"),
        np.asarray([[parameters[p]["quantiles"][level] for level in levels] for p in names]),
    )
    table["ess_per_second"] = Variable(("parameter",), _column(content["ess_per_second"][p] for p in names))
    table["note"] = Variable(("parameter",), np.asarray([parameters[p]["note"] or "" for p in names]))
    groups = {
        "parameters": Node(variables=table),
        "acceptance": Node(
            variables={k: Variable((), _column([v])[0]) for k, v in content["acceptance"].items()}
        ),
    }
    if density is not None:
        groups["density"] = (
            _density(density)
            if isinstance(density.get("grid"), np.ndarray)
            else Node(groups=_columns(density, _density))
        )
    if distribution is not None:
        one = "mean" in distribution and not isinstance(distribution["mean"], Mapping)
        groups["distribution"] = (
            _distribution(distribution) if one else Node(groups=_columns(distribution, _distribution))
        )
    if clusters is not None:
        groups["n_clusters"] = Node(
            variables={
                "support": Variable(("support",), np.asarray(clusters["support"], dtype=np.int64)),
                "probability": Variable(("support",), np.asarray(clusters["probability"])),
            }
        )
    if content["clustering"] is not None:
        groups["clustering"] = _clustering(content["clustering"])
    if "composition" in content:
        found = content["composition"]
        one = "components" in found and not isinstance(found["components"], Mapping)
        groups["composition"] = _composition(found) if one else Node(groups=_columns(found, _composition))
    if "joint" in content:
        groups["joint"] = _joint(content["joint"])
    if content["warnings"]:
        groups["warnings"] = Node(variables={"text": Variable(("warning",), np.asarray(content["warnings"]))})
    beyond = content.get("beyond_bounds")
    if beyond is not None:
        of_columns = beyond if isinstance(beyond, Mapping) else {"": beyond}
        groups["beyond_bounds"] = Node(
            variables={
                "column": Variable(("column",), np.asarray(list(of_columns))),
                "share": Variable(("column",), np.asarray(list(of_columns.values()))),
            }
        )
    if content.get("check") and content["check"]["statistic"] is not None:
        groups["check"] = _check(content["check"])
    if "loo" in content:
        groups["loo"] = Node(variables={k: Variable((), np.asarray(v)) for k, v in content["loo"].items()})
    if "information_kept" in content:
        kept = content["information_kept"].items()
        groups["information_kept"] = Node(variables={k: Variable((), _column([v])[0]) for k, v in kept})
    if "clusters_by_value" in content:
        groups["clusters_by_value"] = _by_value(content["clusters_by_value"])
    if "at" in content:
        quantities = list(content["at"][0])
        values = np.asarray([list(row.values()) for row in content["at"]])
        groups["at"] = Node(
            variables={
                "quantity": Variable(("quantity",), np.asarray(quantities)),
                "values": Variable(("record", "quantity"), values),
            }
        )
    if (content.get("prior_sensitivity") or {}).get("parameters"):
        groups["prior_sensitivity"] = _sensitivity(content["prior_sensitivity"])
    shares = _variances(content.get("variance_shares") or {})
    if shares is not None:
        groups["variance_shares"] = shares
    if content.get("prior"):
        attrs = {**attrs, "prior": content["prior"]}
    write_tree(path, Node({"seconds": content["seconds"], **attrs}, groups=groups), force=force)


def _density(density: Mapping[str, Any]) -> Node:
    names = ("grid", "mean", "lower", "upper", "prior")
    curves = {
        name: Variable(("grid",), np.asarray(density[name])) for name in names if density[name] is not None
    }
    if "baseline" in density:
        curves["baseline"] = Variable(("grid",), np.asarray(density["baseline"]))
        curves["baseline_bandwidth"] = Variable((), np.asarray(density["baseline_bandwidth"]))
    curves["hellinger_from_prior"] = Variable((), _column([density["hellinger_from_prior"]])[0])
    return Node(variables=curves)


def _distribution(found: Mapping[str, Any]) -> Node:
    dim = "grid" if "grid" in found else "category"
    place = np.asarray(found["grid"]) if "grid" in found else np.asarray(found["categories"])
    names = ("mean", "lower", "upper")
    curves = {name: Variable((dim,), np.asarray(found[name])) for name in names}
    return Node(variables={dim: Variable((dim,), place), **curves})


def _composition(found: Mapping[str, Any]) -> Node:
    names = Variable(("component",), np.asarray(found["components"]))
    across = Variable(("component2",), np.asarray(found["components"]))

    def figures(part: Mapping[str, Any]) -> Node:
        kept = {"component": names}
        for name, value in part.items():
            number = _column([value])[0] if np.ndim(value) == 0 else np.asarray(value)
            dims = ("component", "component2")[: np.ndim(number)]
            kept |= {name: Variable(dims, np.asarray(number, dtype=np.float64))}
            if len(dims) == 2:
                kept["component2"] = across
        return Node(variables=kept)

    ellipsoids = {name: figures(part) for name, part in found["ellipsoid"].items()}
    groups = {name: figures(found[name]) for name in ("censoring", "truth") if name in found}
    attrs = {name: found[name] for name in ("method", "interpretation")}
    return Node(attrs, groups={**groups, "ellipsoid": Node(groups=ellipsoids)})


def _check(check: Mapping[str, Any]) -> Node:
    entries = check["entries"]
    names = Variable(("entry",), np.asarray([entry["name"] for entry in entries]))
    figures = ("observed", "mean", "lower", "upper", "p")
    table = {name: Variable(("entry",), _column(entry[name] for entry in entries)) for name in figures}
    scalars = {
        name: Variable((), _column([check[name]])[0]) for name in ("overall", "replicates", "visible_from")
    }
    groups = {}
    found = check.get("distribution")
    if found is not None:
        groups["distribution"] = _curve(found) if "grid" in found else Node(groups=_columns(found, _curve))
    attrs = {name: check[name] for name in ("statistic", "visible") if check[name]}
    return Node(attrs, {"entry": names, **table, **scalars}, groups)


def _sensitivity(found: Mapping[str, Any]) -> Node:
    rows = found["parameters"]
    table = {
        name: Variable(("parameter",), _column(row[name] for row in rows.values()))
        for name in ("prior", "likelihood", "noise")
    }
    ks = {f"pareto_k_{name}": Variable((), _column([k])[0]) for name, k in found["pareto_k"].items()}
    names = Variable(("parameter",), np.asarray(list(rows)))
    return Node({"threshold": found["threshold"]}, {"parameter": names, **table, **ks})


def _variances(found: Mapping[str, Any]) -> Node | None:
    """Return the shares, by quantity such as "mean", or "height,mean" of one of several columns."""
    rows: dict[str, Mapping[str, Any]] = {}
    for name, part in found.items():
        if isinstance(part, Mapping) and "sampling" in part:
            rows[name] = part
        elif isinstance(part, Mapping):
            rows |= {f"{name},{key}": shares for key, shares in part.items() if shares is not None}
    if not rows:
        return None
    names = ("sampling", "privacy", "prior")
    table = {n: Variable(("quantity",), _column(row[n] for row in rows.values())) for n in names}
    return Node(variables={"quantity": Variable(("quantity",), np.asarray(list(rows))), **table})


def _by_value(found: Mapping[str, Any]) -> Node:
    share = {f"share_{name}": Variable(("cluster",), values) for name, values in found["share"].items()}
    share["draws"] = Variable((), np.asarray(found["draws"], dtype=np.int64))
    share["estimate"] = Variable(("latent_cell",), found["estimate"])
    groups = {}
    for name in ("latent", "released"):
        part = found[name]
        if part is not None:
            dim = f"{name}_cell"  # their numbers differ
            cells = {key: Variable((dim,), _column(part[key])) for key in ("low", "high")}
            cells |= {key: Variable(("cluster", dim), part[key]) for key in ("mean", "lower", "upper")}
            if "coclustering" in part:
                cells["coclustering"] = Variable((dim, f"{dim}2"), part["coclustering"])
            groups[name] = Node(variables=cells)
    return Node(variables=share, groups=groups)


def _curve(found: Mapping[str, Any]) -> Node:
    names = ("grid", "observed", "mean", "lower", "upper")
    return Node(variables={name: Variable(("grid",), np.asarray(found[name])) for name in names})


def _columns(of_columns: Mapping[str, Any], node: Callable[[Mapping[str, Any]], Node]) -> dict[str, Node]:
    """Return a group a column; a slash in a name, which HDF5 reads as a path, becomes an underscore."""
    groups: dict[str, Node] = {}
    for name, found in of_columns.items():
        safe = name.replace("/", "_")
        groups[safe if safe not in groups else f"{safe}_{len(groups)}"] = node(found)
    return groups


def _clustering(found: Mapping[str, Any]) -> Node:
    variables = {"estimate": Variable(("obs",), np.asarray(found["estimate"]))}
    if found.get("subsample") is not None:  # the places of those records; else all are there
        variables["obs"] = Variable(("obs",), np.asarray(found["subsample"]))
    groups = {}
    for name, value in found.items():
        if name == "subsample":
            continue
        if name == "coclustering":
            variables[name] = Variable(("obs", "obs2"), np.asarray(value))
        elif name == "other":
            groups[name] = _clustering(value)
        elif name == "credible_ball":
            groups[name] = _ball(value)
        elif name == "n_clusters" or name == "draws":
            variables[name] = Variable((), np.asarray(value, dtype=np.int64))
        elif name not in ("estimate", "loss"):
            variables[name] = Variable((), _column([value])[0])
    return Node({"loss": found["loss"]}, variables, groups)


def _ball(ball: Mapping[str, Any]) -> Node:
    bounds = [name for name, value in ball.items() if isinstance(value, Mapping)]
    variables = {k: Variable((), np.asarray(v)) for k, v in ball.items() if k not in bounds}
    variables["bound"] = Variable(("bound",), np.asarray(bounds))
    for name in ("n_clusters", "distance"):
        variables[name] = Variable(("bound",), np.asarray([ball[bound][name] for bound in bounds]))
    return Node(variables=variables)


def _joint(joint: Mapping[str, Any]) -> Node:
    found = {"columns": Variable(("columns",), np.asarray(joint["columns"]))}
    found["hellinger_from_prior"] = Variable((), np.asarray(joint["hellinger_from_prior"]))
    if "mean" in joint:
        for name, grid in zip(("first", "second"), joint["grids"], strict=True):
            found[name] = Variable((name,), np.asarray(grid))
        found["mean"] = Variable(("first", "second"), np.asarray(joint["mean"]))
    return Node(variables=found)


def _column(values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)
