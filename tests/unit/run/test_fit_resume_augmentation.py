"""Chains of data augmentation: those killed go on bit for bit; several processes make those of one."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dpmix
from dpmix.run.workspace import workspace_of
from dpmix.spec.starters import starter_files
from tests.helpers.fits import assert_same, contents, finish, start

COUNTS: dict[str, Any] = {
    "data": {"simulate": "naive_bayes", "n": 100, "seed": 1},
    "mechanism": {"kind": "noisy_counts", "levels": [3] * 5, "classes": 5, "epsilon": 3.0},
    "model": {"kind": "naive_bayes"},
}
MOMENTS: dict[str, Any] = {
    "data": {"simulate": "linear_regression", "n": 100, "seed": 1},
    "mechanism": {"kind": "clamped_moments", "bounds": [[-10, 10]] * 3, "epsilon": 3.0},
    "model": {"kind": "linear_regression", "predict": [[1.0, -1.0]]},
}
TRUNCATED = MOMENTS | {"model": MOMENTS["model"] | {"response": "truncated"}}
GROUPED: dict[str, Any] = {
    "data": {
        "simulate": "dirichlet",
        "alpha": {"female": [6.0, 1.5, 9.0], "male": [3.0, 2.0, 4.0]},
        "n": 100,
        "seed": 1,
        "group": "sex",
        "categories": {"sex": ["female", "male"]},
    },
    "mechanism": {"kind": "log_moments", "threshold": 0.01, "epsilon": 1.0},
    "model": {"kind": "dirichlet"},
}
MIXTURES: dict[str, Any] = {
    "data": {
        "simulate": "three_gaussians",
        "n": 120,
        "seed": 1,
        "domain": [-10, 10],
        "group": "sex",
        "categories": {"sex": ["female", "male"]},
    },
    "mechanism": {"kind": "perturbed_histogram", "bins": 8, "epsilon": 2.0},
    "model": {"kind": "mixture"},
}
CUSTOM: dict[str, Any] = yaml.safe_load(starter_files("custom")["custom.yaml"])
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "naive Bayes": (COUNTS, {}),
    "naive Bayes, records": (COUNTS, {"latent": "metropolis"}),
    "naive Bayes, soma": (COUNTS, {"kind": "soma"}),
    "regression": (MOMENTS, {}),
    "regression, plain": (MOMENTS, {"joint": False}),
    "regression, soma": (MOMENTS, {"kind": "soma"}),
    "regression, truncated": (TRUNCATED, {}),
    "groups": (GROUPED, {}),
    "groups, soma": (GROUPED, {"kind": "soma"}),
    "groups, mixture": (MIXTURES, {"iterations": 900, "burn_in": 300}),
    "custom": (CUSTOM, {}),
    "custom, soma": (CUSTOM, {"kind": "soma", "offers": 10}),
}
LENGTH = {"iterations": 3000, "burn_in": 1000, "thin": 2, "chains": 2, "seed": 5}


def _arguments(name: str, folder: Path) -> tuple[object, ...]:
    """Write spec, release and whatever they need; return the arguments of `fit` but for the output."""
    spec, sampler = CASES[name]
    for file, text in starter_files("custom").items() if spec is CUSTOM else ():
        (folder / file).write_text(text, encoding="utf-8")
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec | {"sampler": LENGTH | sampler}), encoding="utf-8")
    if spec is CUSTOM:
        return ("fit", path, "--allow-code")
    dpmix.privatize(path, folder / "release.h5", quiet=True)
    return ("fit", path, "--release", folder / "release.h5")


@pytest.mark.matrix
@pytest.mark.parametrize("name", CASES)
def test_killed_runs_go_on_bit_for_bit_and_chains_can_run_apart(name: str, tmp_path: Path) -> None:
    arguments = _arguments(name, tmp_path)
    whole, output = tmp_path / "whole.h5", tmp_path / "c.h5"
    assert finish(start(*arguments, "-o", whole, checkpoint=30), timeout=600)[0] == 0
    pause, stops = random.Random(name), 0
    for _ in range(2):
        since = time.time()
        process = start(*arguments, "-o", output, *(["--resume"] if stops else []))
        deadline = time.monotonic() + 240
        saved = workspace_of(output).glob
        while process.poll() is None and not any(p.stat().st_mtime > since for p in saved("chain-*.0*.h5")):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(pause.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        code, _ = finish(process)
        if output.exists():  # it was quicker
            break
        assert code == -signal.SIGKILL
        stops += 1
    assert stops > 0
    if not output.exists():
        assert finish(start(*arguments, "-o", output, "--resume"), timeout=600)[0] == 0
    assert_same(output, whole)
    parts = [tmp_path / "1.h5", tmp_path / "0.h5"]
    for part in parts:
        assert (
            finish(start(*arguments, "--chain-id", part.stem, "-o", part, checkpoint=30), timeout=600)[0] == 0
        )
    together = contents(whole)
    for part in parts:
        alone = contents(part)
        for key, values in alone.items():
            if key.startswith(("posterior/", "sample_stats/")) and values.ndim > 1:
                text = values.dtype.kind == "S"  # coordinates, letter by letter
                own, other = (values, together[key]) if text else (values[0], together[key][int(part.stem)])
                np.testing.assert_array_equal(own, other, err_msg=key)
    merged, one = (dpmix.summarize(paths).to_json() for paths in (parts, [whole]))
    for key in ("parameters", "acceptance", "warnings"):
        assert merged[key] == one[key], key
