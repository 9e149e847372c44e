"""Local mechanisms side by side at equal epsilon: one population, one number of records, five releases.

A cell is a population, a mechanism and an epsilon; each of its repeats draws records, releases them with
seeded noise, fits a mixture of betas and holds the posterior, and the estimates that need no model, against
the population. Repeats come one after the other over all cells, so that a run that is cut short has as many
of each; ``--work`` keeps one line a repeat, and goes on where it was cut short. All chains by `counts` have
one length; afterwards those whose R-hat is above `LIMIT` are made again, `LONGER` times as long, which looks
at nothing but R-hat.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import beta

import dpmix
import elsewhere
from dpmix.api.calibrate import mechanism_of
from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.laws.additive import Additive
from dpmix.release.sanitized import Release
from dpmix.run.chains_reader import Chains, read_chains
from dpmix.spec import load_spec
from dpmix.summary.deconvolution import Noise, deconvolution_kde
from dpmix.summary.density import draw_block
from dpmix.summary.diagnostics import describe
from dpmix.summary.ems import count_values, smoothed_histogram
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.random_measures import BLOCK

__all__ = ["CELLS", "POPULATIONS", "Cell", "Found", "measured", "released", "repeated"]

Floats = NDArray[np.float64]

INCOMES = elsewhere.folder() / "acs2011_income.csv"
EPSILONS = (0.5, 1.0, 2.0, 4.0)
MECHANISMS = ("square_wave", "laplace", "binomial", "gaussian", "wavelet")
N, FEW_RECORDS = 100_000, 10_000  # of the wavelet, whose cost grows with n
REPEATS, FEW_REPEATS, RAW_REPEATS = 50, 5, 10
EMS_REPEATS, KERNEL_REPEATS = 10, 5  # of estimates without a model, whose error is known soon enough
SLOW = ("gaussian", "wavelet")  # whose repeats are fewer
SPREAD = 10  # repeats of the others to one of these
LIMIT, LONGER = 1.05, 4  # R-hat above which chains are made again, and by how many times longer
POINTS = 50  # where bands are held against the population, in the middle of equal parts of the bounds
_FINE = 1_000  # parts of the bounds in which distances are summed up
_LEVEL = 0.95
_DELTA = 1e-6
_WIDTHS = {"laplace": 1 / 32, "gaussian": 1 / 4}  # of the cells, in scales of the noise, at least
_FINEST = 1 / 64  # of the bounds, below which cells are not
_SAMPLER: dict[str, Any] = {
    "kind": "counts",
    "iterations": 1_000,
    "burn_in": 200,
    "thin": 4,
    "chains": 2,
    "store": [],
}
_SLOW: dict[str, Any] = {
    "kind": "neal8",
    "iterations": 1_000,
    "burn_in": 200,
    "thin": 4,
    "chains": 2,
    "store": [],
}


@dataclass(frozen=True)
class Population:
    """What records are drawn from, and its public bounds.

    Parameters
    ----------
    name : str
    domain : pair of float
    draw : callable
        Draws n records, shape (n,).
    cdf : callable
        Its distribution function.
    density : callable or None
        Its density, where it has one.
    """

    name: str
    domain: tuple[float, float]
    draw: Callable[[int, np.random.Generator], Floats]
    cdf: Callable[[Floats], Floats]
    density: Callable[[Floats], Floats] | None = None


@cache
def incomes() -> Floats:
    """Return the incomes of the survey, in increasing order."""
    with INCOMES.open(encoding="utf-8") as file:
        return np.sort([float(row["income"]) for row in csv.DictReader(file)])


@cache
def spread() -> float:
    """Return Silverman's bandwidth of a kernel estimate from the logarithms of the incomes."""
    logs = np.log(incomes())
    quartiles = np.quantile(logs, [0.25, 0.75])
    return float(0.9 * min(logs.std(), (quartiles[1] - quartiles[0]) / 1.34) * len(logs) ** -0.2)


def _smooth_cdf(y: Floats) -> Floats:
    """Return the share of incomes spread over their neighbourhood, in logarithms, that is below y <= TOP."""
    logs, wide = np.log(incomes()), spread()
    below = [float(ndtr((np.log(place) - logs) / wide).mean()) for place in (*y, TOP)]
    return np.array(below[:-1]) / below[-1]


def _smooth_density(y: Floats) -> Floats:
    logs, wide = np.log(incomes()), spread()
    heights = [float(np.exp(-0.5 * ((np.log(place) - logs) / wide) ** 2).mean()) / place for place in y]
    whole = float(ndtr((np.log(TOP) - logs) / wide).mean())
    return np.array(heights) / (math.sqrt(2.0 * math.pi) * wide * whole)


def _smooth(n: int, rng: np.random.Generator) -> Floats:
    drawn = np.empty(0)
    while len(drawn) < n:
        more = rng.choice(incomes(), n) * np.exp(spread() * rng.standard_normal(n))
        drawn = np.append(drawn, more[more <= TOP])
    return np.asarray(drawn[:n])


TOP = 200_000.0
POPULATIONS = {
    "Beta(5, 2)": Population(
        "Beta(5, 2)",
        (0.0, 1.0),
        lambda n, rng: rng.beta(5.0, 2.0, n),
        lambda y: np.asarray(beta.cdf(y, 5.0, 2.0)),
        lambda y: np.asarray(beta.pdf(y, 5.0, 2.0)),
    ),
    "incomes": Population("incomes", (0.0, TOP), _smooth, _smooth_cdf, _smooth_density),
    "recorded incomes": Population(
        "recorded incomes",
        (0.0, TOP),
        lambda n, rng: rng.choice(incomes(), n),
        lambda y: np.searchsorted(incomes(), y, side="right") / len(incomes()),
    ),
}
"""The second is a kernel estimate from the logarithms of the third up to the bound, which has a density: the
third has its probability at round numbers, and what is above the bound is cut to it."""


@dataclass(frozen=True)
class Cell:
    """What is repeated."""

    population: str
    mechanism: str
    epsilon: float

    @property
    def name(self) -> str:
        """Its name in files and in messages."""
        return f"{self.population}/{self.mechanism}/eps{self.epsilon:g}"

    @property
    def n(self) -> int:
        """Number of records."""
        return FEW_RECORDS if self.mechanism == "wavelet" else N

    @property
    def repeats(self) -> int:
        """How many repeats are wanted."""
        few = RAW_REPEATS if self.population == "recorded incomes" else REPEATS
        return FEW_REPEATS if self.mechanism in SLOW else few

    @property
    def pace(self) -> int:
        """After how many repeats of the other cells comes one of this."""
        return SPREAD if self.mechanism in SLOW else REPEATS // self.repeats


CELLS = [
    Cell(p, m, e)
    for m in MECHANISMS
    for p in POPULATIONS
    for e in EPSILONS
    if m not in SLOW or p != "recorded incomes"
]


@dataclass(frozen=True)
class Found:
    """What one repeat found of the posterior.

    Parameters
    ----------
    w1 : float
        Wasserstein-1 distance of the posterior mean from the population, as a share of the bounds' width.
    cdf, density : str
        Whether the band of the distribution function, and of the density, holds the population's at each of
        the points: 1 or 0 each; the second empty where the population has no density.
    cdf_width, density_width : float
        Integrals of the bands over the bounds, the first as a share of their width.
    rhat, ess : float
        The largest R-hat and the least bulk effective sample size, of the mean and of the density at three
        points.
    seconds : float
        Of processor time.
    times : int
        Length of the chains, over that of most.
    """

    w1: float
    cdf: str
    density: str
    cdf_width: float
    density_width: float
    rhat: float
    ess: float
    seconds: float
    times: int = 1


def here() -> list[str]:
    """Return the names of the populations whose data are here."""
    return [name for name in POPULATIONS if "incomes" not in name or INCOMES.exists()]


def repeated(cells: Sequence[Cell] = CELLS) -> list[tuple[Cell, int]]:
    """Return cells and numbers of repeats, the first repeat of all cells first."""
    found = [(cell, repeat) for cell in cells if cell.population in here() for repeat in range(cell.repeats)]
    return sorted(found, key=lambda each: each[0].pace * (each[1] + 1))


def generator(cell: Cell, repeat: int) -> np.random.Generator:
    """Return the generator of a repeat: of its records first, then of their noise."""
    return np.random.default_rng([repeat, round(1000 * cell.epsilon), *cell.name.encode()])


def spec_of(cell: Cell, repeat: int, times: int = 1) -> dict[str, Any]:
    """Return the spec of a repeat: that of a starter, with shorter chains, or so many times these."""
    domain = list(POPULATIONS[cell.population].domain)
    mechanism: dict[str, Any] = {"kind": cell.mechanism, "epsilon": cell.epsilon, "domain": domain}
    mechanism |= {
        "gaussian": {"delta": _DELTA},
        "binomial": {"trials": 20},
        "wavelet": {"levels": 4},
        "square_wave": {"cells": 128},
    }.get(cell.mechanism, {})
    sampler = dict(_SLOW if cell.mechanism == "wavelet" else _SAMPLER)
    sampler |= {name: times * sampler[name] for name in ("iterations", "burn_in", "thin")}
    return {
        "mechanism": mechanism,
        "model": {"kind": "mixture", "kernel": "beta", "base": {"learn": False}},
        "sampler": sampler | {"seed": 1 + repeat},
    }


def released(cell: Cell, repeat: int) -> Release:
    """Draw the records of a repeat and release them with seeded noise."""
    rng = generator(cell, repeat)
    population = POPULATIONS[cell.population]
    records = np.clip(population.draw(cell.n, rng), *population.domain)
    mechanism = mechanism_of(load_spec(spec_of(cell, repeat)), 1, cell.n)
    return mechanism.simulate(records[:, None], ("y",), rng)[0]


def measured(cell: Cell, repeat: int, times: int = 1) -> Found:
    """Release, fit by chains so many times as long, and hold the posterior against the population."""
    begin = time.process_time()
    spec, release = spec_of(cell, repeat, times), released(cell, repeat)
    if cell.mechanism in _WIDTHS:
        lo, hi = POPULATIONS[cell.population].domain
        wanted = max(release.mechanism.scale[0] * _WIDTHS[cell.mechanism], _FINEST * (hi - lo))
        spec["sampler"]["width"] = min(wanted, 0.5 * (hi - lo))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chains.h5"
        dpmix.fit(spec, release, path, quiet=True, jobs=1)
        chains = read_chains([path])
        assert isinstance(chains, Chains)  # of a mixture
        return replace(held(cell, chains, begin), times=times)


def held(cell: Cell, chains: Chains, begin: float) -> Found:
    """Hold the draws of P against the population: distribution functions exactly, at 99 places."""
    population, family = POPULATIONS[cell.population], family_of(chains)
    assert not isinstance(family, NormalInverseWishart)  # of one column
    lo, hi = population.domain
    places = lo + (hi - lo) * np.arange(1, 2 * POINTS) / (2 * POINTS)
    beyond = family.predictive_cdf(places)
    below, heights, means = [], [], []
    for block in chains.blocks(BLOCK):
        drawn = draw_block(chains, block, family)[1]
        owner = np.repeat(np.arange(len(drawn.counts)), drawn.counts)
        table = drawn.rest[:, None] * beyond
        for k, place in enumerate(places):
            shares = drawn.weights * family.cdf(drawn.atoms, np.full(len(owner), place))
            table[:, k] += np.bincount(owner, shares, len(drawn.counts))
        below.append(table)
        heights.append(drawn.densities(places[::2], family))
        means.append(drawn.moments(family)[0])
    cdfs, draws = np.concatenate(below), np.concatenate(heights)
    fine = lo + (hi - lo) * (np.arange(_FINE) + 0.5) / _FINE
    middle = np.interp(fine, [lo, *places, hi], [0.0, *cdfs.mean(axis=0), 1.0])
    tails = [0.5 * (1.0 - _LEVEL), 0.5 * (1.0 + _LEVEL)]
    low, high = np.quantile(cdfs[:, ::2], tails, axis=0)
    under, over = np.quantile(draws, tails, axis=0)
    watched = [draws[:, place] for place in (POINTS // 4, POINTS // 2, 3 * POINTS // 4)]
    watched.append(np.concatenate(means))
    found = [describe(values.reshape(len(chains.ids), -1), _LEVEL) for values in watched]
    density = "" if population.density is None else _held(population.density(places[::2]), under, over)
    return Found(
        w1=float(np.abs(middle - population.cdf(fine)).mean()),
        cdf=_held(population.cdf(places[::2]), low, high),
        density=density,
        cdf_width=float((high - low).mean()),
        density_width=float((over - under).mean() * (hi - lo)),
        rhat=max(float(each.rhat or np.inf) for each in found),
        ess=min(float(each.ess_bulk or 0.0) for each in found),
        seconds=time.process_time() - begin,
    )


@dataclass(frozen=True)
class Estimated:
    """What one repeat found of the estimates without a model: distances, None where there is none.

    Parameters
    ----------
    ems, kde : float or None
    steps : int
        Of EM with smoothing.
    """

    ems: float | None
    kde: float | None
    steps: int


def estimated(cell: Cell, repeat: int) -> Estimated:
    """Release again, which gives the same, and estimate without a model."""
    release, (lo, hi) = released(cell, repeat), POPULATIONS[cell.population].domain
    law, values = release.mechanism, release.values[:, 0]
    if not law.transitional:
        return Estimated(None, None, 0)
    middles = (np.arange(_FINE) + 0.5) / _FINE * (hi - lo) + lo
    truth = POPULATIONS[cell.population].cdf(middles)
    scale = law.scale[0] if isinstance(law, Additive) else 0.0
    ems = smoothed_histogram(law, count_values(law, values, scale, lo, hi), scale, lo, hi)
    below = np.interp(middles, ems.edges, np.concatenate([[0.0], np.cumsum(ems.masses)]))
    kde = None
    if isinstance(law, Additive) and repeat < KERNEL_REPEATS:
        density = deconvolution_kde(values, Noise(law.noise, scale), middles).values
        density = density / density.sum()  # on the bounds, as the others are
        kde = float(np.abs(np.cumsum(density) - 0.5 * density - truth).mean())
    return Estimated(float(np.abs(below - truth).mean()), kde, ems.steps)


def _held(truth: Floats, low: Floats, high: Floats) -> str:
    return "".join("1" if inside else "0" for inside in (low <= truth) & (truth <= high))


Key = tuple[str, int]


def read(work: Path) -> tuple[dict[Key, Found], dict[Key, Estimated]]:
    """Return the results that a file has, by name of the cell and number of the repeat."""
    found: dict[Key, Found] = {}
    estimates: dict[Key, Estimated] = {}
    for line in work.read_text(encoding="utf-8").splitlines() if work.exists() else []:
        key, values = json.loads(line)
        name, repeat = key.rsplit("/", 1)
        if "ems" in values:
            estimates[name, int(repeat)] = Estimated(**values)
        else:
            found[name, int(repeat)] = Found(**values)
    return found, estimates


def fill(work: Path, cells: Sequence[Cell] = CELLS, *, fits: bool = True, most: int = REPEATS) -> None:
    """Make the repeats that a file of results does not have yet, and add them to it, one a line.

    Parameters
    ----------
    work : Path
    cells : sequence of Cell
    fits : bool
        Whether to fit; else only the estimates without a model are made, of repeats that were fitted.
    most : int
        Repeats of a cell at most.
    """
    found, estimates = read(work)
    repeats = [(cell, repeat) for cell, repeat in repeated(cells) if repeat < most]
    wanted = [(cell, repeat, times) for times in (1, LONGER) for cell, repeat in repeats]
    for number, (cell, repeat, times) in enumerate(wanted, 1):
        key, made = (cell.name, repeat), []
        begin = time.perf_counter()
        if fits and (key not in found if times == 1 else _again(cell, found[key])):
            found[key] = measured(cell, repeat, times)
            made.append(asdict(found[key]))
        if key not in estimates and key in found and repeat < EMS_REPEATS:
            estimates[key] = estimated(cell, repeat)
            made.append(asdict(estimates[key]))
        for values in made:
            with work.open("a", encoding="utf-8") as file:
                file.write(json.dumps([f"{cell.name}/{repeat}", values]) + "\n")
        if made:
            seconds = time.perf_counter() - begin
            print(
                f"[{number}/{len(wanted)}] {cell.name}/{repeat} [{seconds:.1f} s]",
                file=sys.stderr,
                flush=True,
            )


def _again(cell: Cell, found: Found) -> bool:
    return cell.mechanism != "wavelet" and found.times < LONGER and found.rhat > LIMIT


def select(parts: Sequence[str]) -> list[Cell]:
    """Return the cells whose names hold one of these parts.

    Raises
    ------
    ValueError
        For a part that no name holds.
    """
    for part in parts:
        if not any(part in cell.name for cell in CELLS):
            raise ValueError(f"--cells: none has {part!r} in its name; names are such as {CELLS[0].name}")
    return [cell for cell in CELLS if not parts or any(part in cell.name for part in parts)]
