"""Two checks that every chain of a parametric model passes: chunks with restores, and the interpreter."""

from __future__ import annotations

import atexit
import functools
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


INTERPRETER = """
import contextlib, json, sys, traceback, warnings

answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    module, expression, strict = json.loads(line)
    try:
        with warnings.catch_warnings() if strict else contextlib.nullcontext():
            if strict:
                warnings.simplefilter("error")
            names = {}
            exec(f"from {module} import *", names)
            answer = [True, eval(expression, names)]
    except Exception:
        answer = [False, traceback.format_exc()]
    print(json.dumps(answer), file=answers, flush=True)
"""


@functools.cache
def _interpreter() -> subprocess.Popen[str]:
    """Start a process where nothing is compiled; most of its time is imports, and one serves all tests."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERPRETER],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.communicate)
    return process


def interpreted(module: str, expression: str, *, strict: bool = False) -> Any:
    """Return what an expression over a test module's names is where nothing is compiled.

    If strict, warnings are errors there.
    """
    process = _interpreter()
    assert process.stdin is not None and process.stdout is not None
    print(json.dumps([module, expression, strict]), file=process.stdin, flush=True)
    worked, found = json.loads(process.stdout.readline())
    assert worked, found
    return found
