"""What rows of a parametric model's table are of, in words: "vote = 0", "PID = 3 given vote = 0"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from dpmix.run.model_protocols import GROUP

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import ChainSet, NamedChains
    from dpmix.summary.diagnostics import Scalar

_ROWS = ("prediction", "prediction_clamped", "predictive")
_CLASS, _CATEGORY, _LEVEL = "class", "category", "level_"


@dataclass(frozen=True)
class ByClass:
    """Probabilities of a feature's levels within each class.

    Parameters
    ----------
    column, class_column, group : str
    classes, levels : tuple of str
    mean, lower, upper : float64 arrays (classes, levels)
        Posterior means and intervals.
    """

    column: str
    class_column: str
    group: str
    classes: tuple[str, ...]
    levels: tuple[str, ...]
    mean: Floats
    lower: Floats
    upper: Floats


def row_labels(chains: NamedChains) -> dict[str, str]:
    """Return labels by the names of scalars, of those whose entries are classes, categories or new rows."""
    rows = [str(label) for label in json.loads(str(chains.attrs.get("row_labels", "[]")))]
    found: dict[str, str] = {}
    for parameter in chains.parameters:
        entries = [[str(name) for name in parameter.coords[dim]] for dim in parameter.dims]
        for name, place in zip(parameter.labels(), product(*entries), strict=True):
            label = _label(parameter, dict(zip(parameter.dims, place, strict=True)), _named(chains), rows)
            if label:
                found[name] = label
    return found


def by_class(chains: NamedChains, parameters: Mapping[str, Scalar]) -> tuple[ByClass, ...]:
    """Return the probabilities of levels within classes; empty of models without."""
    found = []
    for parameter in chains.parameters:
        if not (parameter.dims[-2:-1] == (_CLASS,) and parameter.dims[-1].startswith(_LEVEL)):
            continue
        classes, levels = ([str(x) for x in parameter.coords[dim]] for dim in parameter.dims[-2:])
        names = np.array(parameter.labels(), dtype=object).reshape(-1, len(classes), len(levels))
        for group, own in zip(parameter.groups or ("",), names, strict=True):
            if any(name not in parameters for name in own.ravel()):
                continue
            values = np.array(
                [
                    [
                        (s.mean, *list(s.quantiles.values())[:: len(s.quantiles) - 1])
                        for s in map(parameters.get, row)
                        if s
                    ]
                    for row in own
                ]
            )
            found.append(
                ByClass(
                    _feature(parameter),
                    _named(chains),
                    group,
                    tuple(classes),
                    tuple(levels),
                    *np.moveaxis(values, 2, 0),
                )
            )
    return tuple(found)


def data_columns(chains: ChainSet) -> tuple[str, ...]:
    """Return the names of the columns of the data, as far as a release tells them.

    Those that the mechanism states; else those of the release, where they are the data's and not only where
    its numbers stand (`Capabilities.names_columns`); counts and statistics that another program released
    stand below a header of their own, such as "count".
    """
    law = chains.mechanism
    stated = tuple(str(getattr(column, "name", column)) for column in getattr(law, "columns", ()) or ())
    own = str(law.get("column") or "")
    elsewhere = law.elsewhere and (law.statistic or law.counts_bins)
    released = chains.columns if law.names_columns and not elsewhere else ()
    return stated or tuple(dict.fromkeys(name for name in (*released, own) if name))


def _named(chains: NamedChains) -> str:
    """Return the name of the class, or of the only column; empty where the release does not tell it."""
    return "".join(data_columns(chains)[-1:])


def _feature(parameter: Stored) -> str:
    """Return the column whose levels a parameter is of, or "feature_2" where it is not named."""
    return parameter.column or parameter.title.removeprefix("p_")


def _label(parameter: Stored, place: Mapping[str, str], named: str, rows: list[str]) -> str:
    about = f" in {place[GROUP]}" if GROUP in place else ""
    if "row" in place and parameter.title in _ROWS:
        row = int(place["row"])
        return f"{rows[row]}{about}" if row < len(rows) else ""
    if GROUP in place and "component" in place:
        return f"{place['component']}{about}"
    name = named or "class"
    levels = [value for dim, value in place.items() if dim.startswith(_LEVEL)]
    if _CLASS in place:
        own = f"{name} = {place[_CLASS]}"
        return f"{_feature(parameter)} = {levels[0]} given {own}{about}" if levels else f"{own}{about}"
    if _CATEGORY in place and (named or parameter.column):
        return f"{parameter.column or named} = {place[_CATEGORY]}{about}"
    return ""
