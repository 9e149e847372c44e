"""Simulation-based calibration of one case (Talts et al. 2018; Modrak et al. 2023), from mechanism to chain.

Each replicate draws parameters and records from their joint law, releases the records by the mechanism of
the spec with seeded noise, builds the chain that `dpmix fit` would run given the release, and ranks the
truth among draws from the chain's own start. If mechanism and sampler agree with the model, the ranks are
uniform; their ECDF is held against a simultaneous band (`tests.oracles.ecdf`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.api.calibrate import mechanism_of
from dpmix.api.mixture_task import mixture_task
from dpmix.api.task import parametric_task, pick_columns
from dpmix.release.sanitized import Release
from dpmix.spec import RunSpec, load_spec
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.records import Column, Records
from scripts.verification import laws
from scripts.verification.cases import Case
from tests.oracles.ecdf import p_value

__all__ = ["DRAWS", "calibrate", "p_values", "release_of"]

DRAWS = 99  # a rank is one of 100
BURN_IN = 40  # times the sweeps between draws

Floats = NDArray[np.float64]


def release_of(case: Case, spec: RunSpec, records: Floats, rng: Generator) -> Release:
    """Release simulated records (n, columns) as the case's spec says, with seeded noise."""
    if isinstance(case.law, laws.Median):
        values = case.law.release(rng, records)
        return Release(
            values, ("median",), {"kind": "elsewhere", "scale": []}, None, None, None, len(records)
        )
    if spec.synthesis is not None:
        columns = tuple(Column(name, (0.0, 1.0), None) for name in case.columns)
        nothing = (0,) * len(columns)
        held = Records(columns, records, (None,) * len(columns), nothing, rng)
        return generator_of(spec.synthesis, columns, len(records)).release(held)[0]
    assert spec.mechanism is not None
    if spec.mechanism.kind == "none":
        inf = float("inf")
        return Release(records, case.columns, {"kind": "none"}, inf, None, None, len(records), private=False)
    mechanism = mechanism_of(spec, len(case.columns), len(records))
    if case.clamped:
        return mechanism.simulate(records, case.columns, rng)[0]
    centre = np.zeros_like(records)  # of the bounds: what is released there is the noise
    noise = mechanism.simulate(centre, case.columns, rng)[0]
    return replace(noise, values=noise.values + records)


def calibrate(case: Case, replicates: int, seed: int) -> dict[str, Any]:
    """Return ranks 0..DRAWS of every quantity, ties broken at random, {name: (replicates,)}, and seconds."""
    start = time.perf_counter()
    spec = load_spec(case.spec)
    ranks: dict[str, list[int]] = {}
    # every case has data of its own, so that results are independent
    for child in np.random.SeedSequence([seed, *case.name.encode()]).spawn(replicates):
        rng = np.random.default_rng(child)
        truth, records = case.law.draw(rng, case.n)
        release = release_of(case, spec, records, rng)
        if isinstance(case.law, laws.Mixture):
            task = mixture_task(spec, release, pick_columns(spec, release, True), (0,))
        else:
            task = parametric_task(spec, release, True, (0,), allow_code=True)
        chain = task.run.model.make_chain(rng)
        skip = BURN_IN * case.thin
        chain.keep(case.thin, skip)
        chain.proceed(skip + DRAWS * case.thin)
        draws = {name: values for name, (_, values) in chain.take().items()}
        found = case.law.ranked(draws, list(truth))
        for name, values in found.items():
            # sums in two orders differ in the last place: a tie is one to 1e-12
            gap = values - truth[name]
            tie = np.abs(gap) <= 1e-12 * (1.0 + abs(truth[name]))
            below = int(np.sum((gap < 0.0) & ~tie))
            ranks.setdefault(name, []).append(below + int(rng.integers(0, tie.sum() + 1)))
    return {
        "ranks": {name: np.array(values).tolist() for name, values in ranks.items()},
        "seconds": time.perf_counter() - start,
    }


def p_values(ranks: dict[str, list[int]]) -> dict[str, float]:
    """Return the p-value of each quantity's ranks."""
    return {name: p_value(np.array(values), DRAWS + 1) for name, values in ranks.items()}
