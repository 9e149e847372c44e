"""Small fits for the tests of `fit`: one sampler and channel for nearly all, because compiling takes time."""

from __future__ import annotations

import copy
import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import dpmix
from dpmix.api.release_of import unprotected
from dpmix.release.release_file import write_release
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from tests.helpers.specs import ROOT

_SPEC: dict[str, Any] = {
    "model": {
        "kind": "mixture",
        "base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0},
        "concentration": 1.0,
    },
    "sampler": {"kind": "neal8", "iterations": 60, "burn_in": 20, "thin": 2, "chains": 2, "seed": 7},
}


def small_spec(**sampler: Any) -> dict[str, Any]:
    """Return a spec for `small_release`; a value of None takes a key of the sampler out."""
    spec = copy.deepcopy(_SPEC)
    spec["sampler"].update(sampler)
    spec["sampler"] = {key: value for key, value in spec["sampler"].items() if value is not None}
    return spec


def small_release(n: int = 40, kind: str = "laplace", columns: int = 1) -> Release:
    """Return a release of simulated values, with noise of scale 2."""
    rng = np.random.default_rng(3)
    values = rng.choice([-4.0, 4.0], (n, columns)) + rng.laplace(size=(n, columns))
    names = tuple("xyz"[:columns])
    if kind == "none":
        return Release(values, names, {"kind": "none"}, np.inf, None, None, n, private=False)
    mechanism = {
        "kind": kind,
        "scale": [2.0] * columns,
        "domain": [[-10.0, 10.0]] * columns,
        "calibration": "exact",
        "requested": {"epsilon": 10.0 * columns},
    }
    return Release(values, names, mechanism, 10.0 * columns, 0.0, None, n)


MECHANISMS: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": 20.0},
    "gaussian": {"rho": 20.0},
    "wavelet": {"levels": 1, "epsilon": 10.0},
    "binomial": {"trials": 6, "epsilon": 10.0},
    "square_wave": {"cells": 12, "epsilon": 3.0},
    "smoothed_histogram": {"bins": 4, "draws": 8, "epsilon": 5.0},
    "perturbed_histogram": {"bins": 4, "noise": "geometric", "epsilon": 1.0},
    "none": {},
}
"""A small release of each kind, on [-10, 10]."""

MODELS: dict[str, dict[str, Any]] = {
    "nig": {"base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}},
    "truncated_nig": {"base": {"kind": "truncated_nig", "mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 10.0}},
    "beta": {"kernel": "beta", "base": {"a_shape": 2.0, "a_rate": 0.5, "b_shape": 2.0, "b_rate": 0.5}},
    "multivariate_normal": {
        "kernel": "multivariate_normal",
        "base": {"mu0": [0.0, 0.0], "lambda": 0.1, "nu": 4.0, "Psi": [[2.0, 0.5], [0.5, 2.0]]},
    },
}
"""A model for each base measure."""


def combined_spec(mechanism: str, model: str, sampler: str, latent: str = "exact") -> dict[str, Any]:
    """Return the spec of a short fit of a model to a `release_by`, whether they go together or not."""
    columns = 2 if model == "multivariate_normal" and mechanism in ("laplace", "gaussian", "none") else 1
    return {
        "mechanism": {"kind": mechanism, **MECHANISMS[mechanism], "domain": [[-10.0, 10.0]] * columns},
        "model": copy.deepcopy(MODELS[model]),
        "sampler": {
            "kind": sampler,
            "latent": latent,
            "iterations": 6,
            "burn_in": 2,
            "chains": 1,
            "seed": 7,
        },
    }


def release_by(mechanism: str, n: int = 12, columns: int = 1) -> Release:
    """Return a release of simulated records; of two columns where the mechanism has them."""
    section = {"kind": mechanism, **MECHANISMS[mechanism]}
    data = {"simulate": "three_gaussians", "n": n, "seed": 5, "domain": [-10.0, 10.0]}
    if mechanism == "none":
        data.pop("domain")
        one = unprotected(load_spec({"data": data, "mechanism": section}))
    else:
        one = dpmix.privatize({"data": data, "mechanism": section}, quiet=True)
    if columns == 1 or mechanism not in ("laplace", "gaussian", "none"):
        return one
    made = one.mechanism.stated()
    if mechanism != "none":
        # the same guarantee for two columns takes more noise: Laplace twice the scale, Gaussian sqrt 2 times
        scale = made["scale"][0] * (2.0 if mechanism == "laplace" else 2.0**0.5)
        made |= {"scale": [scale] * 2, "domain": [[-10.0, 10.0]] * 2}
    values = np.column_stack([one.values[:, 0], one.values[::-1, 0] / 2.0])
    return dataclasses.replace(one, values=values, columns=("x", "y"), mechanism=made)


def release_file(folder: Path, **options: Any) -> Path:
    """Write a `small_release`."""
    path = folder / "release.h5"
    write_release(path, small_release(**options), force=True)
    return path


def contents(path: Path) -> dict[str, Any]:
    """Return every dataset, and the attributes that do not tell the time."""
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(visit)
        found |= {f"@{key}": file.attrs[key] for key in file.attrs if key not in ("created_at", "seconds")}
    del found["constant_data/seconds"]
    return found


def assert_same(one: Path, other: Path) -> None:
    """Check that two chains files hold the same, bit for bit, but for times."""
    mine, theirs = contents(one), contents(other)
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        assert np.asarray(value).tobytes() == np.asarray(theirs[name]).tobytes(), name


DRIVER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from dpmix.run import runner as chains, exit_codes as exits; from dpmix.cli import commands as cli
chains.CHECKPOINT_SECONDS = {checkpoint}
chains.CHUNK_SECONDS = 0.002
import dpmix.api.fit as fit
{more}
sys.exit(exits.run(cli.app, sys.argv[1:]))
"""


def start(*arguments: object, checkpoint: float = 0.05, more: str = "") -> subprocess.Popen[str]:
    """Start the command line with quick checkpoints, in a process of its own; `more` is code to run first."""
    code = DRIVER.format(checkpoint=checkpoint, more=more)
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def finish(process: subprocess.Popen[str], timeout: float = 300) -> tuple[int, str]:
    """Wait for a process; return its exit code and standard error."""
    try:
        _, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode, err
