"""Count how often intervals of default fits hold what is true of populations that nobody drew from the prior.

Calibration draws truths from the prior, and says nothing of a single population. Here populations are
fixed: one normal, two groups far apart, evenly spread, piled up at round numbers. Of each, records are drawn
and released with seeded noise, a fit in which base measure, concentration and sampler are left out is
summarized, and whether its intervals hold the population's mean, sd, quantiles and shares is counted, by what
the verdict would be if the chains agreed. `python -m scripts.verification.coverage --help` says how.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import dpmix
from dpmix.api.calibrate import mechanism_of
from dpmix.spec import load_spec
from dpmix.summary.headline import USABLE
from dpmix.summary.summary_result import Summary
from scripts.verification.page import sections_of, write_sections

__all__ = ["MECHANISMS", "POPULATIONS", "Run", "fitted", "into", "page"]

Floats = NDArray[np.float64]

LEVEL = 0.9
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SHARES = (0.15, 0.4, 0.8)
"""Of a population below the points at which its distribution function is asked for."""
DOMAIN = (0.0, 100.0)
LARGE = 1_000_000
TITLE = "Coverage on fixed populations"
"""Of the section of `docs/verification.md` that has the table."""
SAMPLER = {"iterations": 1500, "burn_in": 500, "chains": 2}


def _apart(rng: Generator, n: int) -> Floats:
    first = rng.random(n) < 0.5
    return np.where(first, rng.normal(20.0, 3.0, n), rng.normal(80.0, 4.0, n))


def _heaped(rng: Generator, n: int) -> Floats:
    values, how = rng.normal(42.0, 18.0, n), rng.random(n)
    step = np.where(how < 0.4, 10.0, np.where(how < 0.7, 5.0, 1.0))
    return np.round(values / step) * step


POPULATIONS: Mapping[str, Callable[[Generator, int], Floats]] = {
    "one normal": lambda rng, n: rng.normal(50.0, 10.0, n),
    "evenly spread": lambda rng, n: rng.uniform(*DOMAIN, n),
    "round numbers": _heaped,
    "two far apart": _apart,
}
"""On the bounds [0, 100], to which records are cut."""

MECHANISMS: Mapping[str, Mapping[str, Any]] = {
    "laplace, epsilon = 4": {"kind": "laplace", "epsilon": 4.0},
    "gaussian, rho = 4": {"kind": "gaussian", "rho": 4.0},
    "binomial, 12 trials, epsilon = 6": {"kind": "binomial", "trials": 12, "epsilon": 6.0},
    "square_wave, epsilon = 2": {"kind": "square_wave", "epsilon": 2.0},
    "smoothed_histogram, 16 bins, 200 draws, epsilon = 4": {
        "kind": "smoothed_histogram",
        "bins": 16,
        "draws": 200,
        "epsilon": 4.0,
    },
    "perturbed_histogram, 16 bins, epsilon = 1": {"kind": "perturbed_histogram", "bins": 16, "epsilon": 1.0},
}


@dataclass(frozen=True)
class Run:
    """One fit: which, whether each interval holds the population's figure, and what the verdict is."""

    mechanism: str
    population: str
    n: int
    repeat: int
    held: dict[str, bool]
    answer: str
    rhat: float


def truth_of(values: Floats, points: Sequence[float]) -> dict[str, float]:
    """Return the figures of a population by the names that summaries have for them."""
    found = {"mean": float(values.mean()), "sd": float(values.std())}
    for share in QUANTILES:
        found[f"quantile[{share:g}]"] = float(np.quantile(values, share, method="inverted_cdf"))
    return found | {f"cdf[{point:g}]": float(np.mean(values <= point)) for point in points}


def _answer(summary: Summary) -> str:
    """Return the verdict as it would be of chains that agree."""
    agreeing = {name: replace(scalar, rhat=1.0) for name, scalar in summary.parameters.items()}
    return replace(summary, parameters=agreeing).verdict.answer


def fitted(mechanism: str, population: str, n: int, repeat: int, seed: int) -> Run:
    """Draw records, release them with seeded noise, fit them under the defaults, and judge the intervals."""
    draw = POPULATIONS[population]
    large = np.clip(draw(np.random.default_rng(seed), LARGE), *DOMAIN)
    points = [float(f"{np.quantile(large, share):.3g}") for share in SHARES]
    rng = np.random.default_rng([seed, repeat, n, *mechanism.encode(), *population.encode()])
    spec = {
        "data": {"column": "y", "domain": list(DOMAIN)},
        "mechanism": dict(MECHANISMS[mechanism]),
        "model": {"kind": "mixture"},
        "sampler": SAMPLER | {"seed": 1 + repeat},
        "summary": {"level": LEVEL, "quantiles": list(QUANTILES), "cdf": points},
    }
    records = draw(rng, n)
    checked = load_spec(spec, data={"y": records})
    release = mechanism_of(checked, 1, n).simulate(records[:, None], ("y",), rng)[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chains.h5"
        dpmix.fit(
            {key: spec[key] for key in ("model", "sampler", "summary")}, release, path, quiet=True, jobs=1
        )
        summary = dpmix.summarize(path, quiet=True)
    assert isinstance(summary, Summary)
    ends = {name: sorted(scalar.quantiles.values()) for name, scalar in summary.parameters.items()}
    truth = truth_of(large, points)
    held = {name: bool(ends[name][0] <= value <= ends[name][-1]) for name, value in truth.items()}
    rhat = max(float(summary.parameters[name].rhat or np.inf) for name in truth)
    return Run(mechanism, population, n, repeat, held, _answer(summary), rhat)


def page(runs: Sequence[Run]) -> str:
    """Write the table: of each population and release how many intervals hold, and what fits are usable."""
    titles = ["population", "release", "fits", "usable", "mean", "sd"]
    titles += [f"{share:g}" for share in QUANTILES] + ["shares below", "all, where usable"]
    lines = [f"| {' | '.join(titles)} |", "|---|---" + "|---:" * (len(titles) - 2) + "|"]
    for population in POPULATIONS:
        for mechanism in MECHANISMS:
            some = [run for run in runs if (run.mechanism, run.population) == (mechanism, population)]
            if not some:
                continue
            usable = [run for run in some if run.answer == USABLE]
            row = [population, f"`{mechanism.partition(',')[0]}`{''.join(mechanism.partition(',')[1:])}"]
            row += [str(len(some)), str(len(usable))]
            for name in ("mean", "sd", *(f"quantile[{share:g}]" for share in QUANTILES)):
                row.append(str(sum(run.held[name] for run in some)))
            row.append(
                _share([ok for run in some for name, ok in run.held.items() if name.startswith("cdf")])
            )
            row.append(_share([ok for run in usable for ok in run.held.values()]))
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _share(held: Sequence[bool]) -> str:
    return f"{sum(held)} of {len(held)}" if held else "-"


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m scripts.verification.coverage", description=__doc__)
    parser.add_argument("--n", type=int, default=400, help="records of each fit")
    parser.add_argument("--repeats", type=int, default=20, help="of each mechanism and population")
    parser.add_argument("--only", metavar="TEXT", default="", help="mechanisms whose name holds this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="file of results, one a line, which are not computed again")
    parser.add_argument("--output", type=Path, help="page whose table of coverage is replaced; else none is")
    options = parser.parse_args(arguments)
    done: dict[str, Run] = {}
    if options.work and options.work.exists():
        for line in options.work.read_text(encoding="utf-8").splitlines():
            key, run = json.loads(line)
            done[key] = Run(**run)
    runs = []
    for repeat in range(options.repeats):
        for mechanism in (name for name in MECHANISMS if options.only in name):
            for population in POPULATIONS:
                key = f"{mechanism} / {population} / {options.n} / {repeat} / {options.seed}"
                if key not in done:
                    done[key] = fitted(mechanism, population, options.n, repeat, options.seed)
                    line = json.dumps([key, asdict(done[key])])
                    print(line, flush=True)
                    if options.work:
                        with options.work.open("a", encoding="utf-8") as file:
                            file.write(line + "\n")
                runs.append(done[key])
    print(page(runs))
    if options.output:
        into(options.output, page(runs))
    return 0


def into(path: Path, table: str) -> None:
    """Put the table in its section of a page, in place of the one there; what is said beside it stays."""
    sections = sections_of(path)
    lines = sections.get(TITLE, "").split("\n")
    places = [i for i, line in enumerate(lines) if line.startswith("|")] or [len(lines)]
    lines[places[0] : places[-1] + 1] = [table.rstrip("\n")]
    write_sections(path, sections | {TITLE: "\n".join(lines).strip("\n")})


if __name__ == "__main__":
    raise SystemExit(main())
