"""Sound files of every kind, to be damaged: specs, tables, releases, chains, ledgers, a model's code."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import yaml

import dpmix

__all__ = ["FITTED", "SHORT", "SPECS", "fresh", "prepare", "table_of"]

_NIG = {"kind": "mixture", "base": {"mu0": 3.0, "lambda": 0.1, "a": 3.0, "b": 3.0}, "concentration": 1.0}
SHORT = {"iterations": 6, "burn_in": 2, "chains": 1, "seed": 1}
_DATA = {"path": "data.csv", "columns": ["x"], "domain": [[0.0, 6.0]], "missing": {"x": 3.0}}
_LABELS = {"path": "labels.csv", "columns": ["g"], "categories": ["p", "q"], "missing": {"g": "category"}}
_GROUPED = {
    "path": "grouped.csv",
    "columns": ["x"],
    "domain": [[0.0, 6.0]],
    "group": "sex",
    "categories": {"sex": ["f", "m"]},
}
_POSTERIOR = {"kind": "posterior", "epsilon": 1.0, "delta": 0.01, "prior": [1, 1, 1]}
SPECS: dict[str, dict[str, Any]] = {
    "mixture": {
        "data": _DATA,
        "mechanism": {"kind": "laplace", "epsilon": 5.0},
        "model": _NIG,
        "sampler": {"kind": "neal8", **SHORT},
        "summary": {"grid": [0.0, 6.0, 20]},
    },
    "histogram": {
        "data": _DATA,
        "mechanism": {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 4},
        "model": {"kind": "discrete"},
        "sampler": SHORT,
    },
    "moments": {
        "data": {"path": "data.csv", "columns": ["x", "y"]},
        "mechanism": {"kind": "clamped_moments", "epsilon": 1.0, "bounds": [[0, 6], [0, 6]]},
        "model": {"kind": "linear_regression", "response": "clamped", "predict": [[1.0]]},
        "sampler": SHORT,
    },
    "clamped": {
        "data": {"path": "data.csv", "columns": ["x", "y"]},
        "mechanism": {"kind": "clamped_moments", "epsilon": 1.0, "bounds": [[0, 6], [0, 6]]},
        "model": {
            "kind": "linear_regression",
            "response": "truncated",
            "predictors": "clamped",
            "sigma2_prior": {"a": 3.0, "b": 1.0},
        },
        "sampler": {"kind": "soma", **SHORT},
    },
    "counts": {
        "data": {"path": "counts.csv", "columns": ["u", "v", "y"], "missing": {"u": 1, "y": 2}},
        "mechanism": {"kind": "noisy_counts", "epsilon": 2.0, "levels": [2, 2], "classes": 2},
        "model": {"kind": "naive_bayes"},
        "sampler": SHORT,
    },
    "compositions": {
        "data": {"path": "shares.csv", "columns": ["a", "b", "c"]},
        "mechanism": {"kind": "log_moments", "epsilon": 5.0, "thresholds": [0.2, 0.1]},
        "model": {"kind": "dirichlet"},
        "sampler": SHORT,
    },
    "groups": {
        "data": {
            "path": "people.csv",
            "columns": ["a", "b", "c"],
            "group": "sex",
            "categories": {"sex": ["f", "m"]},
        },
        "mechanism": {"kind": "log_moments", "epsilon": 5.0, "thresholds": [0.2, 0.1]},
    },
    "posterior": {
        "data": _LABELS,
        "mechanism": _POSTERIOR | {"method": "hellinger", "calibration": "certified"},
        "model": {"kind": "multinomial"},
        "sampler": SHORT,
    },
    "proved": {
        "data": _LABELS,
        "mechanism": _POSTERIOR | {"method": "hellinger", "calibration": "proved"},
        "model": {"kind": "multinomial"},
        "sampler": SHORT,
    },
    "open": {
        "data": _LABELS,
        "mechanism": _POSTERIOR,
    },
    "squares": {
        "data": {"path": "data.csv", "columns": ["x", "y"], "domain": [[0, 6], [0, 6]]},
        "release": {"columns": ["y"]},
        "mechanism": {"kind": "square_wave", "epsilon": 4.0, "cells": 16, "width": 0.2},
        "model": _NIG,
        "sampler": {"kind": "counts", **SHORT},
        "summary": {"grid": [0.0, 6.0, 20]},
    },
    "answers": {
        "data": _LABELS,
        "mechanism": {"kind": "randomized_response", "epsilon": 2.0},
        "model": {"kind": "multinomial"},
        "sampler": SHORT,
    },
    "counted": {
        "data": _DATA,
        "mechanism": {"kind": "laplace", "epsilon": 5.0},
        "model": _NIG,
        "sampler": {"kind": "counts", "width": "auto", **SHORT},
        "summary": {"grid": [0.0, 6.0, 20]},
        "advise": {
            "population": {"kind": "lognormal", "median": 2.0, "sigma": 0.5},
            "target": {"median": 0.5},
        },
    },
    "by_group": {
        "data": _GROUPED,
        "mechanism": {"kind": "perturbed_histogram", "noise": "discrete_gaussian", "rho": 2.0, "bins": 3},
        "model": {"kind": "discrete"},
        "sampler": SHORT,
    },
    "drawn": {
        "data": _GROUPED,
        "mechanism": {"kind": "smoothed_histogram", "epsilon": 2.0, "bins": 3, "draws": 6},
    },
    "ordered": {
        "data": _DATA,
        "mechanism": {"kind": "wavelet", "epsilon": 2.0, "levels": 2, "order": "public"},
    },
    "synthesis": {
        "data": _LABELS,
        "synthesis": {"kind": "pitman_yor", "delta": 0.4},
    },
    "parted": {
        "data": {
            "path": "part.csv",
            "column": "x",
            "domain": [0, 6],
            "part": {"of": "everybody", "public": True},
        },
        "mechanism": {"kind": "laplace", "epsilon": 1.0},
        "privacy": {
            "ledger": "ledger.json",
            "dataset": "some",
            "budget": {"epsilon": 9.0, "delta": 1e-6},
            "accountant": "sums",
        },
    },
    "smoothed": {
        "data": {"path": "data.csv", "columns": ["x", "y"], "domain": [[0, 6], [0, 6]]},
        "synthesis": {"kind": "smoothed_histogram", "epsilon": 1.0, "bins": [2, 3], "records": 4},
    },
}
FITTED = tuple(name for name, spec in SPECS.items() if "model" in spec)
"""Specs of which there are a release and chains."""
_CUSTOM = {"custom.yaml": "custom.yaml", "custom/my_model.py.txt": "my_model.py"}
_CUSTOM |= {"custom/released.csv": "released.csv"}


def table_of(name: str) -> str:
    """Return the name of the confidential file of a spec."""
    return str(SPECS[name]["data"]["path"])


def prepare(folder: Path, *, fits: bool = True) -> None:
    """Write sound files: specs, tables, a model's code and a ledger; with fits also releases and chains."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    rows = [(rng.uniform(0, 6), rng.uniform(0, 6)) for _ in range(12)]
    (folder / "data.csv").write_text("x,y\n" + "".join(f"{x:.3f},{y:.3f}\n" for x, y in rows))
    (folder / "part.csv").write_text("x\n" + "".join(f"{x:.3f}\n" for x, _ in rows[:7]))
    sexes = "".join(f"{x:.3f},{'fm'[i % 2]}\n" for i, (x, _) in enumerate(rows))
    (folder / "grouped.csv").write_text("x,sex\n" + sexes)
    (folder / "labels.csv").write_text(
        "g\n" + "".join(rng.choice(("p", "q", "NA")) + "\n" for _ in range(12))
    )
    codes = [",".join(str(rng.randint(1, 2)) for _ in range(3)) for _ in range(12)]
    (folder / "counts.csv").write_text("u,v,y\n" + "\n".join(codes) + "\n")
    (folder / "shares.csv").write_text("a,b,c\n" + "0.2,0.3,0.5\n0.1,0.1,0.8\n" * 6)
    (folder / "people.csv").write_text("a,b,c,sex\n" + "0.2,0.3,0.5,f\n0.1,0.1,0.8,m\n" * 6)
    starters = Path(dpmix.__file__).parent / "spec" / "starters"
    for source, name in _CUSTOM.items():
        shutil.copy(starters / source, folder / name)
    for name, spec in SPECS.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    for name in FITTED if fits else ():
        _fit(folder, name, name)
    if fits:
        _fit(folder, "compositions", "others")
        dpmix.tally([folder / "mixture_release.h5"], output=folder / "tally.h5", quiet=True)
    (folder / "result.csv").write_text("cell,count\n0,3\n40,7\n41,2\n")
    (folder / "released_x.csv").write_text("x\n" + "".join(f"{x:.3f}\n" for x, _ in rows))
    dpmix.synthesize(folder / "synthesis.yaml", folder / "synthetic.csv", quiet=True)
    ledgered = SPECS["mixture"] | {"privacy": {"ledger": "ledger.json", "dataset": "fuzz"}}
    (folder / "ledgered.yaml").write_text(yaml.safe_dump(ledgered, sort_keys=False))
    dpmix.privatize(folder / "ledgered.yaml", folder / "ledgered.h5", quiet=True, new_ledger=True)
    dpmix.privatize(folder / "parted.yaml", folder / "parted.h5", quiet=True)


def _fit(folder: Path, spec: str, name: str) -> None:
    source, release = folder / f"{spec}.yaml", folder / f"{name}_release.h5"
    dpmix.privatize(source, release, quiet=True)
    dpmix.fit(source, release=release, output=folder / f"{name}_chains.h5", quiet=True)


def fresh(base: Path, folder: Path) -> None:
    """Copy the sound files to a folder of their own."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
