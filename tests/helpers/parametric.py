"""Two checks that every chain of a parametric model passes: chunks with restores, and the interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.run.model_protocols import ParametricModel

ROOT = Path(__file__).parents[2]


def same_in_chunks(model: ParametricModel, draws: int, thin: int, skip: int = 0) -> dict[str, NDArray[Any]]:
    """Return the draws of one run, after a run in chunks, each by a chain restored anew, gave the same."""
    whole = model.make_chain(np.random.default_rng(3)).run(draws, thin=thin, skip=skip)
    chain = model.make_chain(np.random.default_rng(3))
    chain.keep(thin=thin, skip=skip)
    parts, last = [], skip + draws * thin
    while chain.sweeps < last:
        chain.proceed(min(chain.sweeps + 7, last))
        parts.append(chain.take())
        snapshot = chain.snapshot()
        chain = model.make_chain(np.random.default_rng(9))
        chain.restore(snapshot)
    for name, values in whole.items():
        np.testing.assert_array_equal(np.concatenate([part[name][1] for part in parts]), values)
    return whole


def interpreted(module: str, expression: str) -> Any:
    """Return what an expression over a test module's names is where nothing is compiled."""
    done = subprocess.run(
        [sys.executable, "-c", f"import json; from {module} import *; print(json.dumps({expression}))"],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
