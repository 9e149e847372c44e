"""Two groups of one table: a person whose group changes turns (200, 200) into (199, 201) with certainty."""

from __future__ import annotations

import contextlib
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

import dpmix
from attacking.outcome import Outcome, best_accuracy, guessed
from dpmix.errors import PrivacyError, SpecError
from dpmix.privacy.accounting import Guarantee, in_parallel

__all__ = ["attack"]

EPSILON = 1.0
COLUMNS = ["care", "food", "rest"]
MECHANISMS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "log_moments": (COLUMNS, {"kind": "log_moments", "threshold": 0.01}),
    "noisy_counts": (["job", "own"], {"kind": "noisy_counts", "levels": [2], "classes": 2}),
    "perturbed_histogram": (["care"], {"kind": "perturbed_histogram", "bins": 4}),
}


def attack(folder: Path, runs: int) -> list[Outcome]:
    """Tell (200, 200) from (199, 201), by two releases with their sizes and by one of groups."""
    men = [{"care": 0.1, "food": 0.3, "rest": 0.6, "job": 1, "own": 1, "sex": "m"}] * 200
    women = [row | {"sex": "f"} for row in men]
    moved = {"care": 0.98, "food": 0.01, "rest": 0.01, "job": 2, "own": 2, "sex": "f"}
    whole = [_written(folder / f"whole{i}.csv", rows) for i, rows in enumerate(
        ([*men, *women], [*men[1:], *women, moved])
    )]  # fmt: skip
    return [*_by_files(folder, men, women, moved, max(10, runs // 20)), *_by_groups(whole, runs)]


def _by_files(folder: Path, men: Any, women: Any, moved: Any, runs: int) -> list[Outcome]:
    """Attack the pair of releases of two files by the numbers of records alone."""
    pairs = []
    for number, (first, other) in enumerate(((men, women), (men[1:], [*women, moved]))):
        paths = [_written(folder / f"part{number}{i}.csv", rows) for i, rows in enumerate((first, other))]
        pairs.append(
            [
                tuple(dpmix.privatize(_spec(path, "log_moments"), quiet=True).n for path in paths)
                for _ in range(runs)
            ]
        )
    try:
        stated = in_parallel([Guarantee(EPSILON, 0.0, None, "global")] * 2)
    except PrivacyError:
        note = f"no joint guarantee is stated ({best_accuracy(2 * EPSILON):.3f} by the sum of epsilons)"
        return [guessed("two files, log_moments each: sizes", pairs, _is_second, None, note)]
    bound = best_accuracy(stated.epsilon or 0.0)
    return [guessed("two files, log_moments each: sizes", pairs, _is_second, bound)]


def _is_second(sizes: tuple[int, int]) -> bool:
    return sizes == (199, 201)


def _by_groups(paths: list[Path], runs: int) -> list[Outcome]:
    """Attack one release of both groups, by the likelihood ratio of all that it tells."""
    found = []
    for kind in MECHANISMS:
        specs = [_spec(path, kind, group=True) for path in paths]
        if not _knows_groups(specs[0]):
            found.append(
                Outcome(f"one file, grouped {kind}", "not tried", "this version has no such release")
            )
            continue
        with contextlib.redirect_stderr(io.StringIO()):  # which says what epsilon this is
            exact = [dpmix.privatize(_with(spec, epsilon=1e7), quiet=True, yes=True).values for spec in specs]
        scale = dpmix.privatize(specs[0], quiet=True).mechanism["scale"]
        # of groups, the first number is the size of one of two, with noise of its own scale
        weights = np.full(exact[0].shape, 1.0 / scale[-1])
        weights[0] = 1.0 / scale[0]
        released = [[dpmix.privatize(spec, quiet=True).values for _ in range(runs)] for spec in specs]

        def second(values: Any, exact: list[Any] = exact, weights: Any = weights) -> bool:
            first, other = ((weights * np.abs(values - each)).sum() for each in exact)
            return bool(first > other)

        bound = best_accuracy(EPSILON)
        found.append(guessed(f"one file, grouped {kind}: all numbers", released, second, bound))
    return found


def _knows_groups(spec: dict[str, Any]) -> bool:
    try:
        return bool(dpmix.privatize(spec, quiet=True).groups)
    except SpecError:
        return False


def _spec(path: Path, kind: str, *, group: bool = False) -> dict[str, Any]:
    columns, mechanism = MECHANISMS[kind]
    data: dict[str, Any] = {"path": str(path), "columns": columns}
    if kind != "noisy_counts":
        data["domain"] = {name: [0, 1] for name in columns}
    if group:
        data |= {"group": "sex", "categories": {"sex": ["m", "f"]}}
    return {"data": data, "mechanism": mechanism | {"epsilon": EPSILON}}


def _with(spec: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return spec | {"mechanism": spec["mechanism"] | keys}


def _written(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path
