"""Moves of the sampler on counts by themselves, where cells say nothing: they must leave the prior as it is.

Atoms start from the exact law given that their weights sum to 1 and none is below l = `LEAST`, so that there
are one or two: theta ~ G0, the logit of a share uniform, and two are alpha log((1 - l) / l) times as likely
as one. After some moves each atom's parameters are still G0's, and the share and the number of atoms what
they were.

``python -m tests.helpers.counts_moves`` runs them in the interpreter, then with faults planted in the source,
and prints the smallest p-value of each as JSON.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from dpmix.kernels import Beta, NormalNIG
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.models.counts_mixture import atom_moves, masses
from dpmix.models.counts_mixture.mixture_sweep import make_work
from dpmix.numerics import loops

LEAST, ALPHA = 0.36, 1.4
PACKAGE = "dpmix.models.counts_mixture."
FAULTS = {
    "a pair's Jacobian dropped": ("pair", "atom_moves", "    ratio -= math.log(after / inner)\n", ""),
    "a birth without its range": (
        "jump",
        "atom_moves",
        "math.log(alpha * length / (k + 1)",
        "math.log(alpha / (k + 1)",
    ),
    "no density of the way back": (
        "langevin",
        "atom_moves",
        "math.log(work.metric_at[i, i])",
        "math.log(work.metric[i, i])",
    ),
}
"""The move, its module, text, and what is put in its place."""
END_CELL = ("masses", "masses[0] = max(tail[0] if", "masses[0] = max(0.9 * tail[0] if")
MOVES = ("pair", "jump", "langevin")


def draw_prior(rng: np.random.Generator, kernel: Any) -> tuple[float, float]:
    """Draw a component by NumPy alone."""
    if isinstance(kernel, Beta):
        a, b = rng.gamma(kernel.a_shape) / kernel.a_rate, rng.gamma(kernel.b_shape) / kernel.b_rate
        return float(a), float(b)
    variance = kernel.b / rng.gamma(kernel.a)
    return float(kernel.mu0 + math.sqrt(variance / kernel.lam) * rng.standard_normal()), float(variance)


def uniforms(kernel: Any, theta: Any) -> tuple[float, float]:
    """Return what is uniform of a draw of the base measure."""
    first, second = theta
    if isinstance(kernel, Beta):
        one = special.gammainc(kernel.a_shape, kernel.a_rate * first)
        return float(one), float(special.gammainc(kernel.b_shape, kernel.b_rate * second))
    place = (first - kernel.mu0) / math.sqrt(second / kernel.lam)
    return float(special.ndtr(place)), float(special.gammaincc(kernel.a, kernel.b / second))


def p_value(move: str, kernel: Any, restarts: int, moves: int, seed: int = 1) -> float:
    """Smallest p-value of parameters, share and number of atoms after some moves of a kind."""
    rng = np.random.default_rng([seed, len(move)])
    channel, room = LaplaceNoise(1.0), 4
    cells = masses.make_cells(np.array([0.5]), np.zeros(0))
    work = make_work(kernel, room, 2)  # counts of zero
    theta = np.ones((2, room))
    span = math.log((1.0 - LEAST) / LEAST)
    two = ALPHA * span / (1.0 + ALPHA * span)
    rows: list[list[float]] = []
    found = []
    for _ in range(restarts):
        atoms = 2 if move == "pair" or rng.random() < two else 1
        logit = span * (2.0 * rng.random() - 1.0)
        shares = [1.0 / (1.0 + math.exp(-logit)), 1.0 / (1.0 + math.exp(logit))] if atoms == 2 else [1.0]
        for h in range(atoms):
            work.weights[h] = shares[h]
            theta[:, h] = draw_prior(rng, kernel)
            work.sloped[h] = masses.fill_rows(channel, kernel, theta, h, cells, work.rows[h])
        loops.mix(work.weights, work.rows, atoms, work.mixed)
        for _ in range(moves):
            if move == "pair":
                a = int(rng.integers(2))
                atom_moves.move_pair(channel, kernel, rng, theta, cells, work, a, 1 - a, LEAST, LEAST)
            elif move == "jump":
                atoms = atom_moves.jump(channel, kernel, rng, theta, cells, work, atoms, LEAST, ALPHA)
            else:
                m = int(rng.integers(atoms)) + 1
                work.chosen[:atoms] = rng.permutation(atoms)
                damping = math.exp(2.0 * rng.random())
                atom_moves.langevin(channel, kernel, rng, theta, cells, work, m, LEAST, damping)
        found.append(atoms)
        h = int(rng.integers(atoms))
        # a new atom comes last: which is the first says nothing
        share = abs(math.log(work.weights[0] / work.weights[1])) / span if atoms == 2 else rng.random()
        rows.append([*uniforms(kernel, theta[:, h]), share])
    values = [float(stats.kstest(column, "uniform").pvalue) for column in np.array(rows).T]
    if move == "jump":
        values.append(float(stats.binomtest(int(np.sum(np.array(found) == 2)), restarts, two).pvalue))
    return min(values)


def plant(module: str, old: str, new: str) -> None:
    """Put a fault into a module's source, of which the interpreter takes the place."""
    target = importlib.import_module(PACKAGE + module)
    with open(str(target.__file__), encoding="utf-8") as file:
        source = file.read()
    if source.count(old) != 1:
        raise ValueError(f"{module} does not have {old!r} once")
    exec(compile(source.replace(old, new), str(target.__file__), "exec"), target.__dict__)


def main(faults: Sequence[str], restarts: int = 1500, moves: int = 25) -> dict[str, float]:
    """Return the smallest p-value of the right moves, and of each of these faults."""
    kernel = NormalNIG(0.0, 0.2, 3.0, 2.0)
    found = {move: p_value(move, kernel, restarts, moves) for move in MOVES}
    for name in faults:
        move, module, old, new = FAULTS[name]
        plant(module, old, new)
        found[name] = p_value(move, kernel, restarts, moves)
        importlib.reload(importlib.import_module(PACKAGE + module))
    plant(*END_CELL)
    rows = np.zeros((3, 2))
    masses.fill_rows(
        LaplaceNoise(1.0), kernel, np.ones((2, 1)), 0, masses.make_cells(np.zeros(1), np.zeros(0)), rows
    )
    found["mass under an end cell that is finite"] = float(rows[0].sum())
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
