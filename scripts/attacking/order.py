"""A sorted file: replacing one person moves all rows in between (methods, section 1, "Order")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import dpmix
from attacking.outcome import Outcome, best_accuracy, guessed
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.spec import load_spec

__all__ = ["attack"]

EPSILON = 1.0
FILES = {
    "laplace": ("Laplace on (age, income), sorted by age", 101, {}),
    "wavelet": ("wavelet, J = 4, on a sorted column", 32, {"levels": 4}),
}


def attack(folder: Path, runs: int) -> list[Outcome]:
    """Tell a sorted table from its neighbour whose first person is replaced by one who comes last."""
    found = []
    for kind, (words, n, own) in FILES.items():
        table = np.linspace(0, 1, n)[:, None] if kind == "laplace" else (np.arange(n)[:, None] + 0.5) / n
        if kind == "laplace":
            table = np.column_stack([table, np.arange(n) % 2])
        tables = [table, np.vstack([table[1:], table[-1]])]
        columns = [f"c{i}" for i in range(table.shape[1])]
        specs = []
        for number, rows in enumerate(tables):
            path = folder / f"{kind}{number}.csv"
            np.savetxt(path, rows, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
            data = {"path": str(path), "columns": columns, "domain": [[0, 1]] * len(columns)}
            specs.append({"data": data, "mechanism": {"kind": kind, "epsilon": EPSILON} | own})
        means = [_expected(spec, rows) for spec, rows in zip(specs, tables, strict=True)]
        kept = [
            _released(spec | {"mechanism": spec["mechanism"] | {"order": "public"}}, runs) for spec in specs
        ]
        shuffled = [_released(spec, runs) for spec in specs]

        def second(rows: Any, means: list[Any] = means) -> bool:
            return bool(np.abs(rows - means[0]).sum() > np.abs(rows - means[1]).sum())

        def sorted_first(rows: Any, second: Any = second) -> bool:
            return bool(second(rows[np.argsort(rows[:, 0])]))

        bound = best_accuracy(EPSILON)
        why = f"{bound:.3f}, were the order public as is stated"
        found += [
            guessed(f"{words}: mechanism.order: public", kept, second, None, why),
            guessed(f"{words}: shuffled, row by row", shuffled, second, bound),
            guessed(f"{words}: shuffled, sorted again", shuffled, sorted_first, bound),
        ]
    return found


def _released(spec: dict[str, Any], runs: int) -> list[Any]:
    return [dpmix.privatize(spec, quiet=True).values for _ in range(runs)]


def _expected(spec: dict[str, Any], rows: Any) -> Any:
    """Return what would be released, but for the noise."""
    section = load_spec({**spec, "mechanism": spec["mechanism"] | {"epsilon": 1e9}}).mechanism
    mechanism = from_spec(section, rows.shape[1])
    return mechanism.simulate(rows, spec["data"]["columns"], np.random.default_rng(0))[0].values
