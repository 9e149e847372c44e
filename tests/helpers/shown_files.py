"""Files of every kind that `dpmix show` and `dpmix export` read, made without a sampler."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dpmix.cli.commands import app
from dpmix.laws.every import law_of
from dpmix.release.sanitized import Release
from dpmix.run.exit_codes import run
from dpmix.store.h5 import create
from dpmix.store.tree import Node, Variable, write_tree

HOSTILE = "<script>alert('x')</script>&\"\x1b[31m"
"""A name that would do harm in a page or on a terminal."""
NOISY_MOMENTS = {
    "kind": "clamped_moments",
    "columns": ["age", "pay"],
    "bounds": [[0.0, 90.0], [0.0, 1000.0]],
    "noise": "laplace",
    "scale": [2.0],
}


def called(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a command."""
    capsys.readouterr()
    code = run(app, [str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def a_release(
    values: Any, columns: Sequence[str], mechanism: dict[str, Any] | None = None, **facts: Any
) -> Release:
    """Return a release with an epsilon of 2, Laplace noise on [0, 10] where no mechanism is given."""
    table = np.asarray(values, dtype=np.float64).reshape(-1, len(columns))
    law = mechanism or {
        "kind": "laplace",
        "scale": [5.0] * len(columns),
        "domain": [[0.0, 10.0]] * len(columns),
    }
    n = len(table) if law_of(law).trust == "local" else 100
    given: dict[str, Any] = {"epsilon": 2.0, "delta": 0.0, "rho": None, "n": n, "trust": law_of(law).trust}
    return Release(table, tuple(columns), law, **{**given, **facts})


def write_regression(path: Path, *, name: str = "age", draws: int = 6, **attrs: Any) -> dict[str, Any]:
    """Write a chains file of a regression with two chains; return its draws by name."""
    rng = np.random.default_rng(7)
    held = {
        "beta": rng.normal(size=(2, draws, 2)),
        "sigma2": rng.gamma(2.0, size=(2, draws)),
        "prediction": 18000 + rng.normal(size=(2, draws, 1)),
    }
    dims = {"beta": ("coefficient",), "sigma2": (), "prediction": ("row",)}
    spec = {
        "mechanism": {"kind": "clamped_moments", "epsilon": 2.0, "bounds": NOISY_MOMENTS["bounds"]},
        "model": {"kind": "linear_regression", "x_mean": [45.0], "x_cov": [[100.0]]},
        "sampler": {
            "kind": "data_augmentation",
            "iterations": 100 + draws,
            "burn_in": 100,
            "chains": 2,
            "seed": 3,
        },
    }
    facts = {
        "spec": yaml.safe_dump(spec),
        "seed": "3",
        "dpmix_version": "0.1.0",
        "created_at": "2026-01-02T03:04:05+00:00",
        "mechanism": json.dumps(NOISY_MOMENTS),
        "model": "linear_regression",
        "columns": json.dumps(["statistic"]),
        "epsilon": 2.0,
        "delta": 0.0,
        "rho": float("nan"),
        "private": True,
        "simulated": False,
        "trust": "global",
        "n": 100,
    }
    with create(path) as root:
        root.set_attrs({**facts, **attrs})
        posterior, stats = root.group("posterior"), root.group("sample_stats")
        for group in (posterior, stats):
            group.coordinate("chain", np.arange(2))
            group.coordinate("draw", draws)
        posterior.coordinate("coefficient", np.array(["intercept", name]))
        posterior.coordinate("row", 1)
        for key, values in held.items():
            own = {"role": "scalar", "title": key}
            posterior.dataset(key, values, ("chain", "draw", *dims[key]), attrs=own)
        stats.dataset("acceptance_rate", np.full((2, draws), 0.5), ("chain", "draw"))
        data, constant = root.group("observed_data"), root.group("constant_data")
        data.coordinate("released", 5)
        data.dataset("z", np.arange(5.0), ("released",))
        constant.coordinate("chain", np.arange(2))
        constant.dataset("seconds", np.full(2, 1.5), ("chain",))
    return held


def write_work(output: Path, counts: Sequence[int]) -> Path:
    """Write the folder of an interrupted fit for `output`, with so many draws of each chain saved."""
    folder = output.with_name(output.name + ".partial")
    folder.mkdir()
    spec = {
        "mechanism": {"kind": "laplace", "epsilon": 2.0, "domain": [[0.0, 10.0]]},
        "model": {"kind": "mixture"},
        "sampler": {"kind": "neal8", "iterations": 60, "burn_in": 20, "chains": len(counts), "seed": 9},
    }
    run_ = {
        "spec": spec,
        "mechanism": {"kind": "laplace", "scale": [5.0], "domain": [[0.0, 10.0]]},
        "chains": list(range(len(counts))),
        "entropy": "9",
        "overwrite": False,
    }
    (folder / "run.json").write_text(json.dumps(run_))
    for chain, count in enumerate(counts):
        for number, size in enumerate((count - count // 2, count // 2)):
            if size:
                draws = Node(variables={"n_clusters": Variable(("draw",), np.ones(size))})
                write_tree(folder / f"chain-{chain}.{number:06d}.h5", Node(groups={"draws": draws}))
    return folder
