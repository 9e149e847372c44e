"""What a user waits for: whole commands, each as a process of its own, after what they need is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from benchmarks.table import figure, table

__all__ = ["TASKS", "Task", "idle", "measure", "tasks", "tasks_table"]

Result = dict[str, Any]
Spec = dict[str, Any]
_NORMAL: Spec = {"base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}}
_STARTS = 8
_TO_SWEEPS = """
import os, time
from dpmix.cli import commands as cli; from dpmix.run import runner as chains
def told(*rest):
    print(time.process_time(), flush=True)
    os._exit(0)
chains._run_chain = told
cli.main()
"""


@dataclass(frozen=True)
class Task:
    """What is fitted and summarized, in words and as a spec."""

    what: str
    spec: Spec


def _mixture(n: int, kind: str, iterations: int, chains: int = 2, **sampler: Any) -> Spec:
    return {
        "data": {"simulate": "three_gaussians", "n": n, "seed": 1, "domain": [[-10.0, 10.0]]},
        "mechanism": {"kind": "laplace", "epsilon": 5.0},
        "model": _NORMAL,
        "sampler": {
            "kind": kind,
            "iterations": iterations,
            "burn_in": iterations // 2,
            "chains": chains,
            "seed": 1,
            **sampler,
        },
    }


_PRIVATIZE = "privatize {s} -o {r}"
_FIT, _SUMMARIZE = "fit {s} --release {r} -o {c} --jobs 1", "summarize {c} -o {c}.s.h5 --report {c}.html"


def _simulated(name: str, n: int, mechanism: Spec, model: str, iterations: int = 10_000, **data: Any) -> Spec:
    return {
        "data": {"simulate": name, "n": n, "seed": 1, **data},
        "mechanism": mechanism,
        "model": {"kind": model},
        "sampler": {"iterations": iterations, "burn_in": iterations // 10, "chains": 2, "seed": 1},
    }


_MOMENTS: Spec = {"kind": "clamped_moments", "epsilon": 1.0, "bounds": [[-5.0, 5.0]] * 3}
_COUNTS: Spec = {"kind": "noisy_counts", "epsilon": 1.0, "levels": [3] * 5, "classes": 5}
_BINS: Spec = {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 20, "domain": [0.0, 1.0]}
_LOGS: Spec = {"kind": "log_moments", "epsilon": 1.0, "threshold": 0.01}
_ALPHA = [2.2, 3.3, 4.4, 5.5, 6.6]
_FITS: tuple[tuple[str, Spec], ...] = (
    ("mixture, n = 200, neal8, 2 chains of 10,000 sweeps", _mixture(200, "neal8", 10_000)),
    ("mixture, n = 1,000, neal8, 2 chains of 10,000 sweeps", _mixture(1_000, "neal8", 10_000)),
    ("mixture, n = 10,000, neal8, 2 chains of 2,000 sweeps", _mixture(10_000, "neal8", 2_000)),
    (
        "mixture, n = 1,000,000, private_slice, 1 chain of 100 sweeps",
        _mixture(1_000_000, "private_slice", 100, 1),
    ),
    (
        "mixture, n = 10,000,000, private_slice, 1 chain of 20 sweeps",
        _mixture(10_000_000, "private_slice", 20, 1),
    ),
    (
        "mixture, n = 1,000,000, blocked_gibbs, 1 chain of 100 sweeps",
        _mixture(1_000_000, "blocked_gibbs", 100, 1),
    ),
    (
        "mixture, n = 10,000,000, blocked_gibbs, 1 chain of 20 sweeps",
        _mixture(10_000_000, "blocked_gibbs", 20, 1),
    ),
    (
        "linear regression, n = 1,000, 2 chains of 10,000 sweeps",
        _simulated("linear_regression", 1_000, _MOMENTS, "linear_regression"),
    ),
    (
        "naive Bayes, n = 1,000, 2 chains of 10,000 sweeps",
        _simulated("naive_bayes", 1_000, _COUNTS, "naive_bayes"),
    ),
    (
        "discrete, 20 noisy counts of n = 1,000, 2 chains of 10,000 sweeps",
        _simulated("beta_grid", 1_000, _BINS, "discrete"),
    ),
    (
        "compositions of 5 shares, n = 5,000, 2 chains of 10,000 sweeps",
        _simulated("dirichlet", 5_000, _LOGS, "dirichlet", alpha=_ALPHA),
    ),
)
TASKS: tuple[Task, ...] = tuple(Task(what, spec) for what, spec in _FITS)


def measure(arguments: list[str], folder: Path) -> tuple[float, float, float]:
    """Run ``dpmix ARGUMENTS``; return its seconds on the wall and of processors, and its peak in megabytes.

    Raises
    ------
    SystemExit
        When it fails.
    """
    command = [sys.executable, "-m", "dpmix", *arguments]
    start = time.perf_counter()
    child = os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, str(folder / "out"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(folder / "err"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ],
    )
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"benchmark: {' '.join(command)} failed: {(folder / 'err').read_text('utf-8')}")
    unit = 1024.0 if sys.platform == "linux" else 2.0**20
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit


def tasks(chosen: tuple[Task, ...] = TASKS, few: bool = False) -> list[Result]:
    """Measure every task; with `few` by some sweeps alone."""
    results: list[Result] = []
    made: dict[str, Path] = {}  # releases, by the sections that say what they are of
    with TemporaryDirectory() as name:
        folder = Path(name)
        for number, task in enumerate(chosen):
            of = yaml.safe_dump([task.spec["data"], task.spec["mechanism"]])
            release = made.setdefault(of, folder / f"r{number}.h5")
            files = {"s": folder / f"{number}.yaml", "r": release, "c": folder / "c.h5"}
            files["s"].write_text(yaml.safe_dump(task.spec), "utf-8")
            short = ["--set", "sampler.iterations=40", "--set", "sampler.burn_in=20"] if few else []
            measure(["warmup", str(files["s"])], folder)
            if not release.exists():
                measure(_PRIVATIZE.format(**files).split(), folder)
            for command in (_FIT, _SUMMARIZE):
                own = short if command.startswith("fit") else []
                wall, cpu, peak = measure([*command.format(**files).split(), "--force", *own], folder)
                what = {"what": task.what, "command": command.split()[0]}
                results.append(what | {"wall": wall, "cpu": cpu, "mb": peak})
                print(
                    f"{task.what}: {what['command']} {cpu:.1f} s, {peak:.0f} MB", file=sys.stderr, flush=True
                )
    return results


def idle() -> Result:
    """Measure a fit up to its first sweep, its code compiled before: the least of several times."""
    spec = _mixture(200, "neal8", 2, 1)
    spec["sampler"]["burn_in"] = 1
    with TemporaryDirectory() as name:
        folder = Path(name)
        path, release = folder / "s.yaml", folder / "r.h5"
        path.write_text(yaml.safe_dump(spec), "utf-8")
        measure(["privatize", str(path), "-o", str(release)], folder)
        fit = ["fit", str(path), "--release", str(release), "--quiet", "-o"]
        measure([*fit, str(folder / "c.h5")], folder)
        found = []
        for turn in range(_STARTS):
            command = [sys.executable, "-c", _TO_SWEEPS, *fit, str(folder / f"{turn}.h5")]
            begin = time.perf_counter()
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            found.append((float(done.stdout), time.perf_counter() - begin))
        return {"cpu": min(cpu for cpu, _ in found), "wall": min(wall for _, wall in found)}


def tasks_table(results: list[Result]) -> list[str]:
    """Return the lines of the table."""
    rows = [
        [r["what"], r["command"], figure(r["cpu"], 2 if r["cpu"] < 10 else 3), figure(r["mb"], 3)]
        for r in results
    ]
    return table(["task", "command", "s", "MB at the peak"], rows)
