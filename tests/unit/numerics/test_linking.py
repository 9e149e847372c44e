"""Functions that only compiled code calls: linked, with the numbers and errors of functions with own code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmix.errors import SamplerError
from dpmix.numerics.jit import compiling, fresh_njit, shuffled
from dpmix.run.progress import show_fit
from dpmix.run.runner import Run, run

FUNCTIONS = """
from typing import NamedTuple

import numpy as np
from dpmix.numerics.jit import compiling, dispatch, inlined, njit


class Flat(NamedTuple):
    width: float


class Round(NamedTuple):
    radius: float


@dispatch()
def area(shape, y): ...


@area.register
def _(shape: Flat, y):
    if y < 0.0:
        raise ValueError("below zero")
    return shape.width * y


@area.register
def _(shape: Round, y):
    return cumulated(np.full(3, y))[-1] * shape.radius**2


@njit
def cumulated(x):
    y = x.copy()
    for i in range(1, len(y)):
        y[i] += y[i - 1]
    return y


@inlined
def checked(x, most):
    if x > most:
        print("over", most)  # which needs what numba keeps of a function beside its code
        raise ValueError(f"more than {most}")
    return x


@njit
def total(shape, rng, n):
    found = 0.0
    for _ in range(n):
        found += checked(area(shape, rng.standard_normal() ** 2), 50)
    return found


@njit
def wrong(shape):
    return area(shape, 1.0)


@njit
def by_numba(k):
    x = np.zeros(4)
    x[:k] = np.arange(3.0)  # numba's own sentence about shapes has them written out, in Python
    return x.sum()


def told(function, *arguments):
    try:
        print(function(*arguments))
    except Exception as error:
        lines = str(error).split("\\n")
        print(type(error).__name__, lines[0] if len(lines) == 1 else [x for x in lines if "defined" in x])


with compiling(lambda: print("compiling")):
    for shape in (Flat(1.5), Round(0.5), Flat(1e5)):
        told(total, shape, np.random.default_rng(1), 9)
    told(cumulated, np.arange(3.0))  # Python calls it too
    told(area, Flat(2.0), -1.0)
    told(area, 1.0, 2.0)
    told(wrong, 1.0)
    told(by_numba, 3)
    told(by_numba, 2)
"""

SHAPES = "part of an array cannot be set to an array of another shape"


def outcome(folder: Path, linked: bool) -> tuple[list[str], set[str]]:
    """What the functions print in a process of their own, and the names of the files that are then kept."""
    cache = folder / f"cache-{linked}"
    (folder / "shapes.py").write_text(FUNCTIONS)
    code = "from dpmix.numerics import jit\n" + ("" if linked else "jit._TRIED = ()\n") + "import shapes\n"
    environment = {**os.environ, "DPMIX_CACHE_DIR": str(cache), "PYTHONPATH": f"{folder}:{os.getcwd()}"}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=100)
    return done.stdout.splitlines(), {path.name.split("-")[0] for path in cache.rglob("*.nbc")}


def test_linked_functions_are_kept_and_say_what_is_wrong(tmp_path: Path) -> None:
    first, kept = outcome(tmp_path, linked=True)
    assert first[0] == "compiling"
    assert first[3:5] == ["over 50", "ValueError more than 50"]
    assert first[6:8] == ["ValueError below zero", "TypeError area() is not defined for float"]
    assert first[8].startswith("TypingError") and "area() is not defined for (float64,)" in first[8]
    assert first[9:11] == ["3.0", f"ValueError {SHAPES}"]
    assert kept == {"shapes.total", "shapes.cumulated", "shapes._", "shapes.by_numba"}  # what Python called
    again, still = outcome(tmp_path, linked=True)
    assert ["compiling", *(line for line in again if line != "compiling")] == first
    assert still == kept


@pytest.mark.matrix
def test_linked_functions_give_the_numbers_and_errors_of_whole_ones(tmp_path: Path) -> None:
    linked, kept = outcome(tmp_path, linked=True)
    whole, more = outcome(tmp_path, linked=False)
    assert whole.pop() == "ValueError cannot assign slice of shape (2,) from input of shape (3,)"
    assert linked.pop() == f"ValueError {SHAPES}"
    assert whole == linked and more > kept


@pytest.mark.matrix
def test_a_fit_has_the_same_draws_where_functions_are_not_linked(tmp_path: Path) -> None:
    code = """
import sys
from dpmix.numerics import jit
if sys.argv[1] == "without":
    jit._TRIED = ()
import numpy as np
from tests.helpers import samplers
from tests.oracles.joint import Model
model = Model(("laplace", 0.9), (0.0, 0.2, 3.0, 2.0), 0.3, (2.0, 1.0))
chain = samplers.chain("neal8", model, np.linspace(-3.0, 3.0, 14), np.random.default_rng(1), truncation=40)
draws = chain.run(40, thin=2, allocations=True)
print(*(f"{name} {value.tobytes().hex()}" for name, value in draws.items()))
"""
    environment = {**os.environ, "DPMIX_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run(
            [sys.executable, "-c", code, how], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for how in ("with", "without")
    ]
    assert found[0] == found[1] != ""


class _Stop:
    """Never asked to stop."""

    @contextmanager
    def at_once(self) -> Iterator[None]:
        yield


class _Model:
    """Compiles something, or nothing, and goes no further."""

    def __init__(self, compiles: bool, keeps_code: bool) -> None:
        self._compiles, self.keeps_code = compiles, keeps_code

    def compile(self, rng: Any) -> None:
        for _ in range(2 * self._compiles):
            fresh_njit(lambda x: x + 1.0)(1.0)
        raise SamplerError("no further")


@pytest.mark.parametrize(
    ("quiet", "compiles", "kept", "lines"),
    [(False, True, True, 1), (False, True, False, 1), (False, False, True, 0), (True, True, True, 0)],
)
def test_a_fit_says_that_it_compiles(
    quiet: bool, compiles: bool, kept: bool, lines: int, capsys: Any
) -> None:
    task: Any = Run(_Model(compiles, kept), 1, 0, 1, 1, (0,))  # type: ignore[arg-type]
    workspace: Any = None
    stop: Any = _Stop()
    with pytest.raises(SamplerError, match="no further"), show_fit(quiet) as watch:
        run(task, workspace, 1, stop, watch)
    said = capsys.readouterr().err
    how = ", once for this kind of fit" if kept else " what is not kept on disk"
    assert said == f"dpmix: compiling{how}; 10 s to a minute\n" * lines


def test_what_is_compiled_elsewhere_is_not_said() -> None:
    said: list[int] = []
    with compiling(lambda: said.append(1)):
        pass
    fresh_njit(lambda x: x - 1.0)(1.0)
    assert said == []


@fresh_njit
def _order(rng, values):
    return shuffled(rng, values)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 300])
def test_an_order_drawn_in_compiled_code_is_numpys(size: int) -> None:
    values = np.arange(size, dtype=np.int64) ** 2
    compiled, plain = np.random.default_rng(3), np.random.default_rng(3)
    found = _order(compiled, values)
    assert np.array_equal(found, plain.permutation(values))
    assert np.array_equal(values, np.arange(size) ** 2)
    assert compiled.random() == plain.random()
