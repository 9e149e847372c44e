"""Mechanisms and generators of synthetic records: processor time a record, and its growth."""

from __future__ import annotations

import contextlib
import io
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpmix
from benchmarks.table import figure, table
from dpmix.api.calibrate import mechanism_of
from dpmix.columns.cells import Column
from dpmix.numerics.jit import njit
from dpmix.privacy.noise import BLOCK, AdditiveNoise
from dpmix.spec import load_spec
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.records import Records

__all__ = ["MECHANISMS", "SIZES", "SYNTHESIZERS", "Spec", "mechanisms", "synthesizers", "tables"]

Floats = NDArray[np.float64]
Spec = dict[str, Any]
Result = dict[str, Any]
SIZES = (1_000, 10_000, 100_000, 1_000_000)
FEW, MANY = 1_000, 100_000  # confidential and synthetic records, where the other of the two grows
REPEATS = 5
_ONE, _SEED = [-10.0, 10.0], 1


@dataclass(frozen=True)
class Released:
    """A mechanism as it is measured.

    Parameters
    ----------
    spec : dict
        Its section; numbers of records are added where it takes them.
    columns : tuple of int
        For each column its number of levels; 0 for numbers.
    law, draws : str, int
        Noise that is drawn for each record, and how many numbers of it.
    """

    spec: Spec
    columns: tuple[int, ...] = (0,)
    law: str = "none"
    draws: int = 0


def _additive(kind: str, columns: int, **more: Any) -> Released:
    return Released({"kind": kind, "domain": [_ONE] * columns, **more}, (0,) * columns, kind, columns)


def _wavelet(levels: int) -> Released:
    spec = {"kind": "wavelet", "levels": levels, "epsilon": 5.0, "domain": [_ONE]}
    return Released(spec, law="laplace", draws=2 ** (levels + 1) - 1)


def _binomial(trials: int) -> Released:
    spec = {"kind": "binomial", "trials": trials, "epsilon": 5.0, "domain": [_ONE]}
    return Released(spec, law="uniform", draws=trials)


MECHANISMS: dict[str, Released] = {
    "laplace": _additive("laplace", 1, epsilon=5.0),
    "laplace, 4 columns": _additive("laplace", 4, epsilon=5.0),
    "gaussian": _additive("gaussian", 1, rho=0.5),
    "wavelet, J = 2": _wavelet(2),
    "wavelet, J = 4": _wavelet(4),
    "wavelet, J = 6": _wavelet(6),
    "binomial, M = 20": _binomial(20),
    "binomial, M = 80": _binomial(80),
    "smoothed_histogram": Released(
        {"kind": "smoothed_histogram", "bins": 16, "draws": 500, "epsilon": 5.0, "domain": [_ONE]}
    ),
    "perturbed_histogram": Released(
        {"kind": "perturbed_histogram", "bins": 100, "epsilon": 1.0, "domain": [_ONE]}
    ),
    "noisy_counts": Released(
        {"kind": "noisy_counts", "levels": [3] * 5, "classes": 5, "epsilon": 1.0}, (3, 3, 3, 3, 3, 5)
    ),
    "clamped_moments": Released(
        {"kind": "clamped_moments", "bounds": [[-5.0, 5.0]] * 3, "epsilon": 1.0}, (0, 0, 0)
    ),
    "log_moments": Released(
        {"kind": "log_moments", "threshold": 0.01, "components": 5, "epsilon": 1.0}, (-1,) * 5
    ),
    "posterior": Released(
        {"kind": "posterior", "prior": [1.0, 1.0], "epsilon": 1.0, "method": "laplace"}, (2,)
    ),
}
_WITHOUT_N = ("laplace", "gaussian", "wavelet", "binomial")
SYNTHESIZERS: dict[str, Spec] = {
    "pitman_yor": {"kind": "pitman_yor", "concentration": 1.0, "discount": 0.0},
    "dirichlet_multinomial": {"kind": "dirichlet_multinomial", "bins": 100, "epsilon": 1.0},
    "perturbed_histogram": {"kind": "perturbed_histogram", "bins": 100, "epsilon": 1.0},
    "smoothed_histogram": {"kind": "smoothed_histogram", "bins": 100, "epsilon": 1.0},
}
PREDICTIVE = "posterior_predictive"


@njit
def _laplaces(rng: Any, records: int, draws: int) -> float:
    total = 0.0
    for _ in range(records * draws):
        total += rng.laplace(0.0, 1.0)
    return total


@njit
def _normals(rng: Any, records: int, draws: int) -> float:
    total = 0.0
    for _ in range(records * draws):
        total += rng.standard_normal()
    return total


@njit
def _uniforms(rng: Any, records: int, draws: int) -> float:
    total = 0.0
    for _ in range(records * draws):
        total += rng.random()
    return total


_LOOPS = {"laplace": _laplaces, "gaussian": _normals, "uniform": _uniforms}


def _least(work: Callable[[], object], seconds: float) -> float:
    """Return the least processor time of `work`, done up to REPEATS times in about `seconds`."""
    found, begin = [], time.process_time()
    while len(found) < REPEATS and (not found or time.process_time() - begin < seconds):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def _library(item: Released) -> float | None:
    """Return seconds a record of the noise library alone; None where it adds no noise to each record."""
    if item.law not in ("laplace", "gaussian"):
        return None
    measurement = AdditiveNoise(item.law, 4.0, 20.0)._measurement
    block = [0.5] * BLOCK
    return _least(lambda: measurement(block), 0.2) / BLOCK * item.draws  # type: ignore[no-any-return]


def _floor(law: str, draws: int, columns: int) -> float:
    """Return seconds a record of reading its numbers once and drawing its noise, in bare loops."""
    records, rng = 50_000, np.random.default_rng(0)
    values = np.ones((records, columns))
    read = _least(lambda: values.sum(), 1.0) / records
    if law == "none":
        return read
    loop = _LOOPS[law]
    loop(rng, 1, draws)
    return read + _least(lambda: loop(rng, records, draws), 1.0) / records


def _values(columns: tuple[int, ...], n: int) -> Floats:
    """Return made-up records: numbers, categories, or (levels of -1) shares."""
    rng = np.random.default_rng(_SEED)
    if columns[0] < 0:
        return rng.dirichlet(np.full(len(columns), 3.0), n)
    found = [rng.integers(k, size=n) if k else np.clip(rng.normal(0.0, 3.0, n), *_ONE) for k in columns]
    return np.column_stack(found).astype(np.float64)


def _growth(times: dict[int, float]) -> str:
    """Return p of seconds ~ number^p between the two largest numbers; a dash from one number."""
    if len(times) < 2:
        return "–"
    (small, few), (large, many) = sorted(times.items())[-2:]
    return f"{math.log(many / few) / math.log(large / small):.2f}"


def _grown(sizes: tuple[int, ...], seconds: float, work: Callable[[int], Callable[[], object]]) -> Result:
    """Return times by number, up to one that would take more than forty times `seconds`."""
    times: dict[int, float] = {}
    for size in sizes:
        if times and (cost := max(times.values())) * size / max(times) > 40.0 * seconds and cost > 1.0:
            break
        times[size] = _least(work(size), seconds)
    return {"times": times}


def mechanisms(seconds: float, sizes: tuple[int, ...] = SIZES) -> list[Result]:
    """Measure every mechanism with noise of the operating system's randomness, data in memory already."""
    results = []
    for name, item in MECHANISMS.items():
        names = [f"x{i}" for i in range(len(item.columns))]

        def work(n: int, item: Released = item, names: list[str] = names) -> Callable[[], object]:
            section = item.spec if item.spec["kind"] in _WITHOUT_N else item.spec | {"n": n}
            categories = {
                column: [str(code) for code in range(levels)]
                for column, levels in zip(names, item.columns, strict=True)
                if levels > 0
            }
            data = {"path": "confidential.csv", "columns": names, "categories": categories}
            if not categories:
                del data["categories"]
            spec = load_spec({"data": data, "mechanism": section})
            mechanism = mechanism_of(spec, len(names), n)
            values = _values(item.columns, n)
            return lambda: mechanism.privatize(values, names)

        result = _grown(sizes, seconds, work)
        results.append(
            {
                "name": name,
                "floor": _floor(item.law, item.draws, len(item.columns)),
                "library": _library(item),
                **_rates(result),
            }
        )
    return results


def _rates(result: Result) -> Result:
    """Add seconds a record at the largest number, and what one release costs however few there are."""
    most = max(result["times"])
    return result | {"largest": most, "each": result["times"][most] / most}


def synthesizers(seconds: float, sizes: tuple[int, ...] = SIZES) -> list[Result]:
    """Measure every generator: growing numbers of synthetic records, then of confidential ones."""
    column = Column("x", (_ONE[0], _ONE[1]), None)
    results = []
    for name, section in SYNTHESIZERS.items():

        def work(m: int, n: int, section: Spec = section) -> Callable[[], object]:
            spec = load_spec({"synthesis": section | {"records": m, "n": n}})
            assert spec.synthesis is not None
            generator = generator_of(spec.synthesis, (column,), n)
            records = Records((column,), _values((0,), n), (None,), (0,))
            return lambda: generator.release(records)

        by_m = _rates(_grown(sizes, seconds, lambda m, work=work: work(m, MANY)))  # type: ignore[misc]
        by_n = _grown(sizes, seconds, lambda n, work=work: work(FEW, n))  # type: ignore[misc]
        results.append({"name": name, "floor": _floor("uniform", 1, 1), **by_m, "times_n": by_n["times"]})
    with TemporaryDirectory() as folder:
        chains = _fitted(Path(folder))
        from dpmix.api.predictive import predictive_records

        with contextlib.redirect_stderr(io.StringIO()):  # warned of simulated data
            by_m = _rates(
                _grown(sizes, seconds, lambda m: lambda: predictive_records(chains, records=m, quiet=True))
            )
    return [*results, {"name": PREDICTIVE, "floor": _floor("gaussian", 1, 1), **by_m, "times_n": {}}]


def _fitted(folder: Path) -> Path:
    """Return chains of a mixture of normals."""
    spec = {
        "data": {"simulate": "three_gaussians", "n": 200, "seed": _SEED, "domain": [_ONE]},
        "mechanism": {"kind": "laplace", "epsilon": 5.0},
        "model": {"base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}},
        "sampler": {"kind": "neal8", "iterations": 1_500, "burn_in": 500, "chains": 1, "seed": _SEED},
    }
    release = dpmix.privatize(spec, quiet=True)
    dpmix.fit(spec, release, folder / "chains.h5", quiet=True)
    return folder / "chains.h5"


def _time(value: float) -> str:
    """Return nanoseconds, microseconds or milliseconds in words."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{figure(value / size, 3)} {unit}"
    return f"{figure(value / 1e-9, 3)} ns"


def tables(of_mechanisms: list[Result], of_synthesizers: list[Result]) -> tuple[list[str], list[str]]:
    """Return the lines of the two tables."""
    head = ["mechanism", *(f"n = {n:,}" for n in SIZES), "a record", "floor", "library", "exponent"]
    rows = []
    for r in of_mechanisms:
        spent = [_time(r["times"][n]) if n in r["times"] else "–" for n in SIZES]
        library = "–" if r["library"] is None else _time(r["library"])
        rows.append([r["name"], *spent, _time(r["each"]), _time(r["floor"]), library, _growth(r["times"])])
    first = table(head, rows)
    head = ["generator", *(f"m = {m:,}" for m in SIZES), "a record", "floor", "times the floor"]
    rows = []
    for r in of_synthesizers:
        spent = [_time(r["times"][m]) if m in r["times"] else "–" for m in SIZES]
        ends = [_time(r["each"]), _time(r["floor"]), figure(r["each"] / r["floor"])]
        rows.append([r["name"], *spent, *ends, _growth(r["times"]), _growth(r["times_n"])])
    return first, table([*head, "exponent in m", "exponent in n"], rows)
