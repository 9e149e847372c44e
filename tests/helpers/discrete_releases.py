"""Small releases that the discrete model is fitted to, one of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmix.release.sanitized import Release

COLOURS = ("red", "green", "blue")
NUMBER: dict[str, Any] = {"name": "x", "domain": [0.0, 10.0]}
COLOUR: dict[str, Any] = {"name": "colour", "categories": list(COLOURS)}
LABEL: dict[str, Any] = {"name": "word"}
VALUES = np.array([0.5, 0.5, 1.25, 2.0, 3.5, 3.5, 3.5, 6.0, 9.75])
CODES = np.array([0.0, 1.0, 1.0, 0.0, 2.0, 1.0, 1.0, 1.0, 0.0])


def synthetic(generator: str, columns: list[dict[str, Any]], n: int = 12, **own: Any) -> Release:
    """Return synthetic records of these columns: numbers, public categories, free labels."""
    tables = [VALUES if "domain" in column else CODES for column in columns]
    labels = tuple(None if "domain" in column else COLOURS for column in columns)
    mechanism = {
        "kind": "synthetic",
        "generator": generator,
        "columns": columns,
        "records": len(VALUES),
        "requested": {"epsilon": 1.0},
        "scale": [],
        **own,
    }
    names = tuple(column["name"] for column in columns)
    values = np.column_stack(tables)
    known = labels if any(labels) else ()
    return Release(values, names, mechanism, 1.0, 0.0, None, n, trust="global", labels=known)


def pitman_yor(columns: list[dict[str, Any]], discount: float = 0.0, **own: Any) -> Release:
    """Return records of a Pitman-Yor process of concentration 2, by default with the uniform base measure."""
    stated = {
        "discount": discount,
        "concentration": 2.0,
        "base": [{"kind": "uniform"} if "domain" in column else None for column in columns],
        "snap": [None] * len(columns),
        **own,
    }
    return synthetic("pitman_yor", columns, **stated)


def counts(noise: str = "laplace", n: int = 12) -> Release:
    """Return noisy counts of four bins over [0, 8]."""
    mechanism = {
        "kind": "perturbed_histogram",
        "bins": 4,
        "noise": noise,
        "scale": [2.0],
        "domain": [[0.0, 8.0]],
        "requested": {"epsilon": 1.0},
    }
    values = np.array([[7.0], [1.0], [-2.0], [4.0]])
    return Release(values, ("x",), mechanism, 1.0, 0.0, None, n, trust="global")
