"""Summary files of released posteriors, as HDF5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmix.store.h5 import Attribute
from dpmix.store.tree import Node, Variable, write_tree

__all__ = ["write_posterior_summary"]

_FIGURES = ("mean", "sd", "lower", "upper", "prior_mean")


def write_posterior_summary(
    path: str | Path, content: Mapping[str, Any], attrs: Mapping[str, Attribute], *, force: bool = False
) -> None:
    """Write the summary of a released posterior.

    Groups: `/parameters` (over `category`: prior and posterior parameters, figures of the released posterior,
    and the same `accounted_` for its mechanism, NaN where that takes a fit), `/density` (over `category` and
    `point`: `grid`, `mean`, `prior`, `accounted`), `/expected_hellinger` (scalars and their `_mcse`; of two
    categories `curve` over `share`), `/warnings` (`text` over `warning`).

    Parameters
    ----------
    path : path
        File to write.
    content : mapping
        What `dpmix.summary.posterior_result.PosteriorSummary.to_json` gives.
    attrs : mapping
        More attributes: guarantee, mechanism.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    UsageError, DataError
        As `dpmix.store.h5.create`.
    """
    figures = list(content["parameters"].values())
    table = {name: _over_categories(content[name]) for name in ("prior", "posterior")}
    table |= {name: _over_categories([figure[name] for figure in figures]) for name in _FIGURES}
    for name in ("mean", "sd", "lower", "upper"):
        own = [np.nan if f["accounted"] is None else f["accounted"][name] for f in figures]
        table[f"accounted_{name}"] = _over_categories(own)
    names = Variable(("category",), np.asarray(content["categories"]))
    curves = {"category": names}
    for name in ("grid", "mean", "prior", "accounted"):
        rows = [content["density"][category][name] for category in content["categories"]]
        length = len(content["density"][content["categories"][0]]["grid"])
        filled = [[np.nan] * length if row is None else row for row in rows]
        curves[name] = Variable(("category", "point"), np.asarray(filled, dtype=np.float64))
    errors = {}
    for name, error in content["expected_hellinger"].items():
        if name == "curve":
            errors["share"] = Variable(("share",), np.asarray(error["share"]))
            errors["curve"] = Variable(("share",), np.asarray(error["mean"]))
        else:
            errors[name] = Variable((), np.asarray(error["mean"]))
            errors[f"{name}_mcse"] = Variable((), np.asarray(error["mcse"]))
    groups = {
        "parameters": Node(variables={"category": names, **table}),
        "density": Node(variables=curves),
        "expected_hellinger": Node(variables=errors),
    }
    if content["warnings"]:
        groups["warnings"] = Node(variables={"text": Variable(("warning",), np.asarray(content["warnings"]))})
    own_attrs: dict[str, Attribute] = {
        "kind": "posterior",
        "n": content["n"],
        "level": content["level"],
        "hellinger_from_prior": content["hellinger_from_prior"],
    }
    write_tree(path, Node({**own_attrs, **attrs}, groups=groups), force=force)


def _over_categories(values: Sequence[float]) -> Variable:
    return Variable(("category",), np.asarray(values, dtype=np.float64))
