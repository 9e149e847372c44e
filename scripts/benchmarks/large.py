"""A release of up to a billion records, from parts that are made, tallied and dropped, to a summary.

Each part is a release file of simulated records with Laplace noise, which is there only while ``dpmix tally``
counts it. What follows is what a user has to do: add the tallies up, fit, summarize.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml
from scipy import special, stats

from benchmarks.table import figure, table
from benchmarks.tasks import measure
from dpmix.columns.cells import Counts
from dpmix.data.simulations import three_gaussians
from dpmix.laws.every import law_of
from dpmix.release.release_file import write_release
from dpmix.release.sanitized import Release
from dpmix.release.tallies import wide_grid

__all__ = ["FEW", "SIZES", "billion", "billion_table", "cells_of", "large", "large_table", "write_part"]

Result = dict[str, Any]

SIZES = (100_000_000, 1_000_000_000)
FEW = (300_000,)
_PART = 10_000_000  # records at most
_SCALE = 4.0
_SPEC: dict[str, Any] = {
    "mechanism": {"kind": "laplace", "epsilon": 5.0, "domain": [-10.0, 10.0]},
    "model": {"base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}, "concentration": 1.0},
    "sampler": {"iterations": 60_000, "burn_in": 12_000, "thin": 6, "chains": 4, "seed": 1},
    "summary": {"grid": [-10.0, 10.0, 200]},
}
_LONG = {"iterations": 120_000, "burn_in": 24_000, "thin": 12}  # of each of four chains on a billion
_SHORT = ("--set", "sampler.iterations=40", "--set", "sampler.burn_in=20", "--set", "sampler.thin=1")


def write_part(path: Path, n: int, number: int) -> None:
    """Write a part of a release: three normals of P1 section 4.1, at epsilon = 5."""
    rng = np.random.default_rng([1, number])
    values = three_gaussians(n, rng)
    values += rng.laplace(0.0, _SCALE, values.shape)
    law: Any = {"kind": "laplace", "scale": [_SCALE], "domain": [[-10.0, 10.0]]}
    release = Release(values, ("z",), law, 5.0, 0.0, None, n, private=False, simulated=True)
    write_release(path, release, force=True)


def _make(path: Path, n: int, number: int) -> None:
    """Write a part in a process of its own, whose memory would else count as that of those started later."""
    code = "import sys; from pathlib import Path; from benchmarks.large import write_part as w;"
    code += "w(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))"
    command = [sys.executable, "-c", code, str(path), str(n), str(number)]
    subprocess.run(command, cwd=Path(__file__).resolve().parents[1], check=True)


def large(sizes: tuple[int, ...] = SIZES, few: bool = False) -> list[Result]:
    """Measure each size, step by step."""
    results: list[Result] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        spec, part, sums = folder / "s.yaml", folder / "part.h5", []
        spec.write_text(yaml.safe_dump(_SPEC), "utf-8")
        done, tallies = 0, Result(what="", wall=0.0, cpu=0.0, mb=0.0)
        making = 0.0
        for n in sorted(sizes):
            while done < n:
                size = min(_PART, n - done)
                begin = time.perf_counter()
                _make(part, size, len(sums))
                making += time.perf_counter() - begin
                sums.append(folder / f"t{len(sums)}.h5")
                _add(tallies, measure(["tally", str(part), "-o", str(sums[-1])], folder))
                part.unlink()
                done += size
                print(f"large: {done:,} records tallied", file=sys.stderr, flush=True)
            whole, chains = folder / f"{n}.h5", folder / f"{n}_chains.h5"
            short = _SHORT if few else ()
            fit = ["fit", str(spec), "-o", str(chains), "--release"]
            measure([*fit, str(sums[0]), *_SHORT], folder)  # compiles what is not compiled yet
            steps = {
                "merge": ["tally", *map(str, sums), "-o", str(whole)],
                "fit": [*fit, str(whole), "-f", "-j", "1", *short],
                "summarize": ["summarize", str(chains), "--json", "--report", f"{chains}.html"],
            }
            row: Result = {"n": n, "making": making, "tally": dict(tallies)}
            for step, command in steps.items():
                wall, cpu, peak = measure(command, folder)
                row[step] = {"wall": wall, "cpu": cpu, "mb": peak}
            found = json.loads((folder / "out").read_text("utf-8"))
            known = [p for p in found["parameters"].values() if p.get("rhat") is not None]
            row |= {"seconds": found["seconds"]}
            row["rhat"] = max(p["rhat"] for p in known)
            row["ess"] = min(p["ess_bulk"] for p in known)
            results.append(row)
            print(f"large: {n:,} records, {json.dumps(row)}", file=sys.stderr, flush=True)
    return results


def cells_of(n: int, rng: np.random.Generator) -> Release:
    """Return a tally of the same release, its counts drawn at once from the probabilities of its cells.

    These are sums over 200,000 pieces of the three truncated normals, exact to 1e-9.
    """
    law: Any = law_of({"kind": "laplace", "scale": [_SCALE], "domain": [[-10.0, 10.0]]})
    edges, width = wide_grid(law, "auto")
    ends = np.linspace(-10.0, 10.0, 200_001)
    masses = np.mean([np.diff(special.ndtr(ends - mean)) for mean in (-5.0, 0.0, 5.0)], axis=0)
    masses /= masses.sum()
    middles = 0.5 * (ends[1:] + ends[:-1])
    below = [masses @ stats.laplace.cdf((edge - middles) / _SCALE) for edge in edges]
    counts = rng.multinomial(n, np.diff([0.0, *below, 1.0]))
    tally = Counts(counts.astype(np.int64), edges, width)
    none = np.zeros((0, 1))
    return Release(none, ("z",), law, 5.0, 0.0, None, n, private=False, simulated=True, tally=tally)


def billion(n: int = SIZES[-1], few: bool = False) -> list[Result]:
    """Measure four chains on counts of as many records, each by a command of its own on one thread."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        spec, release = folder / "s.yaml", folder / "tally.h5"
        spec.write_text(yaml.safe_dump(_SPEC | {"sampler": _SPEC["sampler"] | _LONG}), "utf-8")
        write_release(release, cells_of(n, np.random.default_rng(20)))
        fit = ["fit", str(spec), "--release", str(release), "-j", "1", "-o"]
        measure([*fit, str(folder / "first.h5"), *_SHORT], folder)  # compiles what is not compiled yet
        chains, seconds = [], []
        for chain in range(4):
            chains.append(str(folder / f"c{chain}.h5"))
            short = _SHORT if few else ()
            seconds.append(measure([*fit, chains[-1], "--chain-id", str(chain), *short], folder)[1])
            print(f"billion: chain {chain}, {seconds[-1]:.3g} s", file=sys.stderr, flush=True)
        measure(["summarize", *chains, "--json"], folder)
        found = json.loads((folder / "out").read_text("utf-8"))
    known = {name: p for name, p in found["parameters"].items() if p.get("rhat") is not None}
    rhat = max(known, key=lambda name: known[name]["rhat"])
    ess = min(known, key=lambda name: known[name]["ess_bulk"])
    row = Result(n=n, cpu=seconds, rhat=known[rhat]["rhat"], ess=known[ess]["ess_bulk"])
    return [row | {"by": f"{rhat}, {ess}", "sweeps": _LONG["iterations"]}]


def billion_table(results: list[Result]) -> list[str]:
    """Return the lines of the table."""
    head = [
        "records",
        "sweeps a chain",
        "s of processor time, four chains",
        "largest R-hat",
        "least bulk ESS",
        "of",
    ]
    return table(
        head,
        [
            [
                f"{r['n']:,}",
                f"{r['sweeps']:,}",
                figure(sum(r["cpu"]), 3),
                f"{r['rhat']:.4f}",
                figure(r["ess"], 3),
                r["by"],
            ]
            for r in results
        ],
    )


def _add(total: Result, one: tuple[float, float, float]) -> None:
    wall, cpu, peak = one
    total |= {"wall": total["wall"] + wall, "cpu": total["cpu"] + cpu, "mb": max(total["mb"], peak)}


def large_table(results: list[Result]) -> list[str]:
    """Return the lines of the table."""
    rows = []
    for r in results:
        steps = [r[step] for step in ("tally", "merge", "fit", "summarize")]
        cells = [f"{figure(step['cpu'], 3)} s, {step['mb']:.0f} MB" for step in steps]
        mixing = [figure(r["seconds"], 3), f"{r['rhat']:.3f}", figure(r["ess"], 3)]
        rows.append([f"{r['n']:,}", *cells, *mixing])
    head = ["records", "tally the parts", "add them up", "fit", "summarize", "s of sampling"]
    return table([*head, "largest R-hat", "least bulk ESS"], rows)
