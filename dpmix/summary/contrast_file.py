"""Files of the comparison of two fits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpmix.store.tree import Node, Variable, write_tree

__all__ = ["write_contrast"]

_FIGURES = ("mean", "sd", "lower", "upper", "mcse", "probability", "excludes_margin", "above")


def write_contrast(path: str | Path, content: Mapping[str, Any], *, force: bool = False) -> None:
    """Write a comparison.

    `/contrast` has each figure of the difference over `component`, and `mean_a` and `mean_b`; its attributes
    say margin, level, files and the joint guarantee, and of groups of one release `group_a`, `group_b` and
    their mean sizes. What does not exist is NaN, or left out where no row has it.

    Parameters
    ----------
    path : path
        File to write.
    content : mapping
        What `dpmix.summary.contrast_of_fits.Contrast.to_json` gives.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    UsageError, DataError
        As `dpmix.store.h5.create`.
    """
    difference, groups, guarantee = content["difference"], content["groups"], content["guarantee"]
    names = list(difference)
    variables = {"component": Variable(("component",), np.asarray(names))}
    for figure in (figure for figure in _FIGURES if figure in difference[names[0]]):
        values = [difference[name][figure] for name in names]
        numbers = [np.nan if value is None else float(value) for value in values]
        variables[figure] = Variable(("component",), np.asarray(numbers))
    attrs: dict[str, Any] = {
        name: content[name] for name in ("contrast", "margin", "level", "interpretation")
    }
    for low, (label, group) in zip("ab", groups.items(), strict=True):
        if "size" in group:
            attrs |= {f"group_{low}": label, f"size_{low}": group["size"]}
        variables[f"mean_{low}"] = Variable(("component",), np.asarray([group["mean"][n] for n in names]))
        attrs |= {f"file_{low}": group["file"], f"n_{low}": group["n"], f"method_{low}": group["method"]}
    for name in ("epsilon", "delta", "rho"):
        attrs[name] = np.nan if guarantee[name] is None else guarantee[name]
    attrs |= {"guarantee": guarantee["words"], "public_groups": int(guarantee["public_groups"])}
    if guarantee["adjacency"] is not None:
        attrs["adjacency"] = guarantee["adjacency"]
    tree = {"contrast": Node(attrs, variables)}
    if content["warnings"]:
        texts = Variable(("warning",), np.asarray(content["warnings"]))
        tree["warnings"] = Node(variables={"text": texts})
    write_tree(path, Node({}, {}, tree), force=force)
