"""Do the defaults' intervals hold the truth of real columns? Coverage over columns, epsilon, n and bounds.

A column is a population: n records are drawn from it with replacement, released by a starter's spec in which
nothing was changed but path, column, domain, epsilon and the length of the chains, and fitted; whether the
95% intervals of mean and sd hold the column's own is counted over repeats. The noise is seeded.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

import dpmix
import elsewhere
from benchmarks.table import table
from dpmix.api.calibrate import mechanism_of
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from dpmix.spec.starters import starter

__all__ = ["COLUMNS", "EPSILONS", "Column", "Run", "fitted", "here", "page", "released", "spec_of"]

ROOT = Path(__file__).resolve().parents[2]
_DATA = ROOT / "configs" / "data"
EPSILONS = (1.0, 3.0, 10.0)
QUANTITIES = ("mean", "sd")
WIDE = 4.0  # times the range of a column
SAMPLER = {"iterations": 3000, "burn_in": 1000, "chains": 2, "store": []}
FLOOR = "The prior holds up"

Floats = NDArray[np.float64]
Pair = tuple[float, float]


@dataclass(frozen=True)
class Column:
    """A real column with the bounds that somebody who does not know the data would give.

    Parameters
    ----------
    name : str
        What it is.
    file, field : str
        Where it is.
    domain : pair of float
        Public bounds.
    reason : str
        Where they are from.
    """

    name: str
    file: str
    field: str
    domain: Pair
    reason: str

    @property
    def path(self) -> Path | None:
        """The file, None where it is not here."""
        return next(
            (path for folder in (_DATA, elsewhere.folder()) if (path := folder / self.file).exists()), None
        )


COLUMNS = (
    Column(
        "eating and drinking, share of the day",
        "atus2019_female.csv",
        "eating_drinking",
        (0.0, 0.3333),
        "at most 8 hours",
    ),
    Column("eruptions, minutes", "faithful.csv", "eruptions", (1.0, 6.0), "as published"),
    Column("velocities of galaxies, 1,000 km/s", "galaxies.csv", "velocity", (5.0, 40.0), "as published"),
    Column("schooling, code of the survey", "acs2011_income.csv", "schooling", (0.0, 25.0), "the codes"),
    Column("waiting times, minutes", "faithful.csv", "waiting", (40.0, 100.0), "as published"),
    Column("age, years", "acs2011_income.csv", "age", (0.0, 120.0), "of anybody"),
    Column(
        "weekly earnings, dollars",
        "atus_weekly_earnings_2003_2016.csv.gz",
        "weekly_earnings",
        (0.0, 2885.0),
        "the survey's top code",
    ),
    Column(
        "income in California, dollars", "pums_california_1000.csv", "income", (0.0, 5e5), "half a million"
    ),
)
"""Eight real columns, on scales from 0.01 to 1e6."""

SHIPPED = (
    COLUMNS[1],
    COLUMNS[2],
    COLUMNS[4],
    Column("food expenditure, francs", "engel.csv", "foodexp", (0.0, 2500.0), "twice a good income"),
    Column("income, class of the survey", "anes96.csv", "income", (0.0, 25.0), "the classes"),
)
"""Those that ship."""

GENEROUS = Column("income, dollars", "acs2011_income.csv", "income", (0.0, 1e6), "a million")
"""Whose bounds are wide for it: its sd is 0.046 of their width."""


def here(columns: Sequence[Column] = COLUMNS) -> list[Column]:
    """Return the columns whose files are here."""
    return [column for column in columns if column.path is not None]


@cache
def values(path: Path, field: str) -> Floats:
    """Read a column of a CSV file."""
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode("utf-8")
    return np.array([float(row[field]) for row in csv.DictReader(text.splitlines())])


def population(column: Column) -> Floats:
    """Return the values of a column that is here."""
    assert column.path is not None
    return values(column.path, column.field)


def widened(column: Column, factor: float) -> Pair:
    """Return bounds from the column's own lower bound on, `factor` times its range wide."""
    own = population(column)
    return column.domain[0], column.domain[0] + factor * float(np.ptp(own))


def spec_of(
    column: Column, epsilon: float, domain: Pair | None = None, kind: str = "laplace", **sampler: Any
) -> dict[str, Any]:
    """Return a starter's spec with another path, column, domain and epsilon, and with shorter chains."""
    spec: dict[str, Any] = yaml.safe_load(starter(kind))
    lo, hi = domain or column.domain
    spec["data"] |= {"path": str(column.path), "column": column.field, "domain": [lo, hi]}
    spec["mechanism"]["epsilon"] = epsilon
    spec["sampler"] |= SAMPLER | sampler
    return spec


def released(spec: dict[str, Any], records: Floats, rng: np.random.Generator) -> Release:
    """Release records by the mechanism of a spec, with seeded noise."""
    checked = load_spec(spec)
    return mechanism_of(checked, 1, len(records)).simulate(records[:, None], (spec["data"]["column"],), rng)[
        0
    ]


@dataclass(frozen=True)
class Run:
    """One fit, and what it found.

    Parameters
    ----------
    column, bounds : str
        Which, and under which bounds.
    epsilon, n, repeat : numbers
    truth : dict of str to float
        The column's own mean and sd.
    intervals : dict of str to pair
        Their 95% intervals.
    contraction, rhat : dict of str to float
    floor : bool
        Whether the summary says that the prior holds the sd up.
    width : float
        Of the bounds.
    """

    column: str
    bounds: str
    epsilon: float
    n: int
    repeat: int
    truth: dict[str, float]
    intervals: dict[str, Pair]
    contraction: dict[str, float]
    rhat: dict[str, float]
    floor: bool
    width: float

    def covers(self, quantity: str) -> bool:
        """Whether the interval holds the truth."""
        low, high = self.intervals[quantity]
        return low <= self.truth[quantity] <= high


def fitted(
    column: Column, epsilon: float, n: int, repeat: int, seed: int, factor: float | None = None, **keys: Any
) -> Run:
    """Draw records, release, fit and summarize.

    Parameters
    ----------
    column : Column
    epsilon : float
    n : int
        Records, drawn from the column with replacement.
    repeat, seed : int
        Which records, which noise and which chains.
    factor : float, optional
        Width of the bounds, in ranges of the column; the column's own bounds where left out.
    **keys : Any
        Of `spec_of`; `model` replaces keys of the model.
    """
    model = keys.pop("model", None)
    domain = column.domain if factor is None else widened(column, factor)
    spec = spec_of(column, epsilon, domain, seed=1 + repeat, **keys)
    spec["model"] |= model or {}
    rng = np.random.default_rng([seed, repeat, n, round(epsilon * 1000), *column.name.encode()])
    own = population(column)
    release = released(spec, rng.choice(own, n), rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chains.h5"
        dpmix.fit(spec, release, path, quiet=True, jobs=1)
        summary = dpmix.summarize(path)
    found = {name: summary.parameters[name] for name in QUANTITIES}
    return Run(
        column.name,
        "stated" if factor is None else f"{factor:g} ranges",
        epsilon,
        n,
        repeat,
        {"mean": float(own.mean()), "sd": float(own.std())},
        {name: (min(s.quantiles.values()), max(s.quantiles.values())) for name, s in found.items()},
        {name: float(s.contraction or 0.0) for name, s in found.items()},
        {name: float(s.rhat or np.nan) for name, s in found.items()},
        any(text.startswith(FLOOR) for text in summary.warnings),
        domain[1] - domain[0],
    )


def cells(n: int, repeats: int, wide: int) -> Iterator[tuple[Column, float, int, int, float | None]]:
    """Yield what is run: repeats of each column and epsilon, under its own bounds and under wide ones."""
    for factor, many in ((None, repeats), (WIDE, wide)):
        for repeat in range(many):
            for column in here():
                for epsilon in EPSILONS:
                    yield column, epsilon, n, repeat, factor


def generous(sizes: Sequence[int], repeats: int) -> Iterator[tuple[Column, float, int, int, float | None]]:
    """Yield what is run to see from which n and epsilon on the release overrules the prior."""
    for n in sizes:
        for repeat in range(repeats):
            for epsilon in EPSILONS:
                yield GENEROUS, epsilon, n, repeat, None


def page(runs: Sequence[Run]) -> str:
    """Write tables: coverage by column and epsilon under its own bounds and wide ones, and by n."""
    lines = []
    groups: dict[tuple[str, str, int, float], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.column, run.bounds, run.n, run.epsilon].append(run)
    for bounds in dict.fromkeys(run.bounds for run in runs):
        rows = []
        for name, n in dict.fromkeys((run.column, run.n) for run in runs if run.bounds == bounds):
            of = {epsilon: groups.get((name, bounds, n, epsilon), []) for epsilon in EPSILONS}
            any_run = next(run for some in of.values() for run in some)
            row = [name, f"{n:,}", f"{any_run.truth['sd'] / any_run.width:.3f}"]
            row += [
                " / ".join(_mean([run.covers(quantity) for run in some]) for some in of.values())
                for quantity in QUANTITIES
            ]
            row.append(" / ".join(_mean([run.contraction["sd"] for run in some]) for some in of.values()))
            missed = [r.floor for some in of.values() for r in some if not r.covers("sd")]
            held = [r.floor for some in of.values() for r in some if r.covers("sd")]
            row += [f"{sum(missed)} of {len(missed)}", f"{sum(held)} of {len(held)}"]
            rows.append(row)
        of_all = [run for run in runs if run.bounds == bounds]
        total = ", ".join(
            f"{quantity} {_mean([run.covers(quantity) for run in of_all])} of {len(of_all)}"
            for quantity in QUANTITIES
        )
        at = " / ".join(f"{epsilon:g}" for epsilon in EPSILONS)
        head = ["column", "n", "sd / width", f"mean, at epsilon {at}", f"sd, at {at}", "contraction of sd"]
        lines += [f"Bounds: {bounds}. Intervals that hold the truth: {total}.", ""]
        lines += [*table([*head, "warned, missed sd", "warned, held sd"], rows), ""]
    return "\n".join(lines)


def _mean(found: Sequence[float]) -> str:
    return f"{np.mean(found):.2f}" if found else "-"


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="scripts/columns", description=__doc__)
    parser.add_argument("--n", type=int, default=400, help="records of each fit")
    parser.add_argument(
        "--repeats", type=int, default=20, help="of each column and epsilon, under its own bounds"
    )
    parser.add_argument("--wide", type=int, default=5, help="repeats under bounds four times the range")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[], help="also n from which the release overrules the prior"
    )
    parser.add_argument("--sizes-repeats", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="file of results, one a line, which are not computed again")
    parser.add_argument("--markdown", type=Path, help="page to write, else standard output")
    options = parser.parse_args(arguments)
    done: dict[str, Run] = {}
    if options.work and options.work.exists():
        for line in options.work.read_text(encoding="utf-8").splitlines():
            key, run = json.loads(line)
            done[key] = Run(**run)
    wanted = [
        *cells(options.n, options.repeats, options.wide),
        *generous(options.sizes, options.sizes_repeats),
    ]
    runs = []
    for number, (column, epsilon, n, repeat, factor) in enumerate(wanted, 1):
        key = f"{column.name} {epsilon:g} {n} {repeat} {factor} {options.seed}"
        if key not in done:
            start = time.perf_counter()
            done[key] = fitted(column, epsilon, n, repeat, options.seed, factor)
            print(
                f"[{number}/{len(wanted)}] {key} [{time.perf_counter() - start:.1f} s]",
                file=sys.stderr,
                flush=True,
            )
            if options.work:
                with options.work.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, asdict(done[key])]) + "\n")
        runs.append(done[key])
    text = page(runs)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
