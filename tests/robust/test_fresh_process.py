"""A fit in a process that has imported nothing else: samplers know the channel of every mechanism."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dpmix
from tests.helpers.specs import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MECHANISMS: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": 2},
    "gaussian": {"epsilon": 2, "delta": 0.01},
    "wavelet": {"epsilon": 2, "levels": 2},
    "binomial": {"epsilon": 2, "trials": 4},
    "square_wave": {"epsilon": 2},
    "perturbed_histogram": {"epsilon": 2, "bins": 4},
    "smoothed_histogram": {"epsilon": 2, "bins": 4, "draws": 3},
}
BY_DAY = ("laplace",)
CODE = """
import json, sys
import dpmix
from dpmix.errors import SpecError
folder, spec = sys.argv[1], json.loads(sys.argv[2])
for kernel in ("normal", "beta"):
    for sampler in ("auto", "neal8", "private_neal5", "private_slice", "blocked_gibbs", "counts"):
        spec["model"]["kernel"] = kernel
        spec["sampler"]["kind"] = sampler
        # the summary of a file whose base measure is learned takes longer than the fit
        spec["model"]["base"] = {"learn": sampler in ("auto", "counts")}
        name = f"{kernel}, {sampler}"
        try:
            dpmix.fit(spec, release=f"{folder}/r.h5", output=f"{folder}/{kernel}-{sampler}.h5", quiet=True)
        except SpecError as refused:
            print("refused", name)
        else:
            print("fitted", name)
"""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in BY_DAY else pytest.mark.matrix) for kind in MECHANISMS]
)
def test_every_mechanism_is_fitted_where_nothing_else_was_imported(tmp_path: Path, kind: str) -> None:
    spec: dict[str, Any] = {
        "data": {"path": str(tmp_path / "x.csv"), "columns": ["x"], "domain": [0, 1]},
        "mechanism": {"kind": kind, **MECHANISMS[kind]},
    }
    (tmp_path / "x.csv").write_text("x\n" + "\n".join(map(str, np.linspace(0.1, 0.9, 4))) + "\n")
    dpmix.privatize(spec, tmp_path / "r.h5", quiet=True, yes=True)
    analysis = {
        "model": {"kind": "mixture"},
        "sampler": {"iterations": 1, "burn_in": 0, "chains": 1, "seed": 1},
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path), json.dumps(analysis)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fitted = [line for line in done.stdout.splitlines() if line.startswith("fitted")]
    assert {"fitted normal, auto", "fitted beta, auto"} <= set(fitted)
    assert len(fitted) >= 4, done.stdout
