"""Samplers of numbers of records in cells: against enumeration of all numbers, and by the joint law.

In enumeration a comparison is in Monte Carlo standard errors of 200 batch means; a right sampler passes 5
with probability 1.3e-6, so that the about 800 comparisons here fail by chance with probability about 1e-3.
The joint-distribution test takes independent restarts, about 320 exact p-values in all, each held against
2e-6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmix.mechanisms.channels import count_likelihoods as cc
from dpmix.models.counts.latent_counts import (
    Latent,
    cell_prior,
    refresh,
    start_noisy,
    sweep_counts,
    sweep_records,
    tally,
)
from tests.helpers.checks import LEVEL, SECONDARY, params
from tests.helpers.parametric import interpreted
from tests.helpers.seeds import rng_of
from tests.oracles import cell_counts as oracle
from tests.oracles.mc import discrepancies

Array = NDArray[np.float64]
SAMPLERS = ("records", "counts", "slices")  # slices: none of the pairs drawn exactly
KINDS: Mapping[str, oracle.Kind] = {
    "laplace": {"kind": "noisy", "noise": "laplace", "scale": 0.9},
    "gaussian": {"kind": "noisy", "noise": "gaussian", "scale": 1.1},
    "geometric": {"kind": "noisy", "noise": "geometric", "scale": 1.2},
    "smoothed": {"kind": "smoothed", "weight": 0.2},
    "unsmoothed": {"kind": "smoothed", "weight": 0.0},
    "polya": {"kind": "polya", "prior": 0.7},
    "hidden laplace": {"kind": "hidden", "noise": "laplace", "scale": 1.3, "weight": 0.0},
    "hidden gaussian": {"kind": "hidden", "noise": "gaussian", "scale": 1.6, "weight": 0.0},
    "hidden geometric": {"kind": "hidden", "noise": "geometric", "scale": 1.1, "weight": 0.0},
    "smoothed gaussian": {"kind": "hidden", "noise": "gaussian", "scale": 1.6, "weight": 0.3},
}


def likelihood_of(kind: oracle.Kind, released: Any, n: int) -> Any:
    """Return the tuple under test."""
    released = np.array(released, dtype=np.float64)
    if kind["kind"] == "smoothed":
        return cc.SmoothedDraws(released, (1 - kind["weight"]) * len(released) / n, kind["weight"])
    if kind["kind"] == "polya":
        return cc.PolyaDraws(released, kind["prior"])
    noise = cc.NOISES[kind["noise"]]
    if kind["kind"] == "noisy":
        return cc.CountsWithNoise(released, noise, kind["scale"])
    return cc.HiddenCounts(released, noise, kind["scale"], kind["weight"])


class Sampler:
    """A chain over latent counts."""

    def __init__(self, name: str, likelihood: Any, shapes: Array, n: int, rng: Any) -> None:
        self.name, self.likelihood, self.rng = name, likelihood, rng
        self.prior = cell_prior(shapes.sum(), shapes / shapes.sum())
        if name == "slices":
            self.prior = self.prior._replace(exact=0)
        cells = len(shapes)
        hidden = cells if isinstance(likelihood, cc.HiddenCounts) else 0
        counts = np.zeros(cells, dtype=np.int64)
        labels = np.zeros(n if name == "records" else 0, dtype=np.int64)
        self.state = Latent(counts, labels, np.zeros(hidden), np.zeros(hidden), np.zeros(3))
        self.moves = np.zeros(2)

    def put(self, counts: Any, noisy: Any = None, explained: Any = None) -> None:
        """Set the state; noisy counts to a start of theirs where they are not given."""
        self.state.counts[:] = counts
        if self.name == "records":
            # records are exchangeable, the order of the sweep is not
            self.state.labels[:] = self.rng.permutation(np.repeat(np.arange(len(counts)), counts))
        if noisy is None:
            start_noisy(self.likelihood, self.rng, self.state)
        else:
            self.state.noisy[:] = noisy
            self.state.explained[:] = explained
            tally(self.state.noisy, self.state.explained, self.state.sums)

    def sweep(self) -> None:
        """Move everything once."""
        if self.name == "records":
            sweep_records(self.prior, self.likelihood, self.rng, self.state, self.moves, 1)
        else:
            sweep_counts(self.prior, self.likelihood, self.rng, self.state, 1)

    def run(self, draws: int, thin: int) -> tuple[NDArray[np.int64], Array]:
        """Return counts (draw, J), and the probability of the first cell given latent noisy counts."""
        found, shares = np.empty((draws, len(self.state.counts)), dtype=np.int64), np.full(draws, -1.0)
        for t in range(draws):
            for _ in range(thin):
                self.sweep()
            found[t] = self.state.counts
            if len(self.state.noisy):
                shares[t] = oracle.probabilities(self.state.noisy, self.likelihood.weight)[0]
        return found, shares


def worst_gap(name: str, kind: oracle.Kind, released: Any, n: int, shapes: Array, draws: int) -> float:
    """Return the largest gap between a chain and the exact posterior, in standard errors."""
    counts, probability, share = oracle.posterior(kind, np.array(released, float), n, shapes)
    rng = rng_of("posterior", n, draws, name)
    chain = Sampler(name, likelihood_of(kind, released, n), shapes, n, rng)
    chain.put(counts[np.argmax(probability)])
    chain.run(100, 1)
    found, shares = chain.run(draws, 3)
    order = np.argsort(-probability)[:40]
    hits = (found[:, None, :] == counts[order][None]).all(-1)
    seen = probability[order] > 2e-3
    gaps = [discrepancies(hits[:, seen], probability[order][seen])]
    gaps.append(discrepancies(found[:, :1], probability @ counts[:, :1]))
    gaps.append(discrepancies(found[:, :1] ** 2.0, probability @ counts[:, :1] ** 2.0))
    if np.isfinite(share):
        gaps.append(discrepancies(shares[:, None], np.array([share])))
    assert chain.name != "records" or 0.0 < chain.moves[0] <= chain.moves[1]
    # a cell that the base measure leaves empty stays so
    assert (found[:, shapes <= 0.0] == 0).all()
    return float(max(np.abs(gap).max() for gap in gaps))


RELEASES: Mapping[str, tuple[Any, int, list[float]]] = {
    "laplace": ([2.3, -0.4, 3.1, 0.2], 5, [0.5, 0.3, 0.9, 0.2]),
    "gaussian": ([2.3, -0.4, 3.1, 0.2], 5, [0.5, 0.3, 0.9, 0.2]),
    "geometric": ([3, -1, 2, 0], 4, [0.5, 0.3, 0.9, 0.2]),
    "smoothed": ([4, 0, 3, 1], 5, [0.5, 0.3, 0.9, 0.2]),
    "unsmoothed": ([4, 0, 3], 5, [0.5, 0.6, 0.9]),
    "polya": ([4, 0, 12], 5, [0.5, 0.6, 0.9]),
    "hidden laplace": ([2, 0, 1], 3, [0.5, 0.6, 0.9]),
    "hidden gaussian": ([1, 1, 1], 3, [0.5, 0.6, 0.9]),
    "hidden geometric": ([1, 2, 1], 3, [0.5, 0.6, 0.9]),
    "smoothed gaussian": ([3, 0, 1], 3, [0.5, 0.6, 0.9]),
}


def cases(samplers: Sequence[str], quick: Mapping[str, Sequence[str]]) -> list[Any]:
    """Return all pairs of kind and sampler, those not in `quick` marked matrix."""
    return params(
        [(case, sampler) for case in KINDS for sampler in samplers],
        {(case, sampler) for sampler, chosen in quick.items() for case in chosen},
    )


@pytest.mark.parametrize(
    ("case", "sampler"),
    cases(SAMPLERS, {"counts": ("laplace", "smoothed", "polya", "hidden laplace"), "records": ("polya",)}),
)
def test_few_records_against_enumeration(case: str, sampler: str) -> None:
    released, n, shapes = RELEASES[case]
    assert worst_gap(sampler, KINDS[case], released, n, np.array(shapes), 10_000) < SECONDARY


@pytest.mark.parametrize(
    ("case", "sampler"),
    cases(
        SAMPLERS[1:],  # one record at a time hardly leaves a mode
        {"counts": ("geometric", "unsmoothed"), "slices": ("laplace", "hidden gaussian")},
    ),
)
def test_two_cells_of_more_records_against_enumeration(case: str, sampler: str) -> None:
    # a sparse prior: modes at both ends
    released = [13.2, 6.4] if KINDS[case]["kind"] == "noisy" else [6, 3]
    if KINDS[case].get("noise") == "geometric":
        released = [13, 7]
    kind = dict(KINDS[case])
    if kind["kind"] in ("noisy", "hidden"):
        kind["scale"] *= 4.0
    assert worst_gap(sampler, kind, released, 21, np.array([0.2, 0.1]), 6_000) < SECONDARY


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_cells_that_the_base_measure_leaves_empty(sampler: str) -> None:
    shapes = np.array([0.0, 0.8, 0.0, 0.9, 0.0])
    kind = KINDS["laplace"]
    counts = oracle.vectors(4, 2)
    released = np.array([1.2, 3.0, -0.5, 0.4, 2.0])
    logs = [
        oracle.log_prior(c, shapes[shapes > 0]) + oracle.log_likelihood(kind, released, [0, c[0], 0, c[1], 0])
        for c in counts
    ]
    probability = np.exp(logs - np.max(logs))
    probability /= probability.sum()
    chain = Sampler(sampler, likelihood_of(kind, released, 4), shapes, 4, np.random.default_rng(3))
    chain.put([0, 2, 0, 2, 0])
    found, _ = chain.run(8_000, 2)
    assert (found[:, [0, 2, 4]] == 0).all()
    gaps = discrepancies(found[:, 1:2] == counts[:, 0], probability)
    assert np.abs(gaps).max() < SECONDARY


def statistics(released: Array, counts: Array, noisy: Array) -> dict[str, float]:
    """Functions of everything in the joint law."""
    place = np.arange(len(counts))
    out = {
        "first": float(counts[0]),
        "squares": float(counts @ counts),
        "released": float(released[0]),
        "released squares": float(released @ released),
        "overlap": float(released @ counts),
        "places": float((released @ place) * (counts @ place)),
    }
    if len(noisy):
        clipped = np.maximum(noisy, 0.0)
        out |= {
            "sum": float(clipped.sum()),
            "noise": float(noisy[0] - counts[0]),
            "clipped": float((noisy > 0).sum()),
            "noisy and released": float(released @ clipped / max(clipped.sum(), 1e-9)),
            "noisy and held": float(noisy @ counts),
        }
    return out


def joint_draw(rng: Any, kind: oracle.Kind, shapes: Array, n: int, draws: int) -> tuple[Any, ...]:
    """Draw counts, noisy counts, the release and what explains it."""
    counts = oracle.draw_counts(rng, shapes, n)
    noisy = counts + oracle.draw_noise(rng, kind, len(shapes)) if kind["kind"] == "hidden" else None
    return counts, noisy, *oracle.draw_released(rng, kind, counts, noisy, draws)


def joint_p_values(name: str, kind: oracle.Kind, shapes: Array, n: int, draws: int) -> dict[str, float]:
    """Independent restarts of the joint law, moved by sweeps and new releases, against fresh draws."""
    rng = rng_of("joint law", name, n)
    none = np.zeros(0)
    moved, fresh = [], []
    chain = Sampler(name, likelihood_of(kind, np.zeros(len(shapes)), n), shapes, n, rng)
    for _ in range(1_000):
        counts, noisy, released, explained = joint_draw(rng, kind, shapes, n, draws)
        chain.likelihood.released[:] = released
        chain.put(counts, none if noisy is None else noisy, none if explained is None else explained)
        for turn in range(4):
            if turn:
                noisy = chain.state.noisy
                drawn = oracle.draw_released(rng, kind, chain.state.counts, noisy, draws)
                chain.likelihood.released[:] = drawn[0]
                if drawn[1] is not None:
                    chain.state.explained[:] = drawn[1]
                    tally(chain.state.noisy, chain.state.explained, chain.state.sums)
            chain.sweep()
        state = chain.state
        moved.append(statistics(chain.likelihood.released, state.counts.astype(float), state.noisy))
    for _ in range(4_000):
        counts, noisy, released, _ = joint_draw(rng, kind, shapes, n, draws)
        fresh.append(statistics(released, counts.astype(float), none if noisy is None else noisy))
    found = {}
    for key in moved[0]:
        ours, theirs = (np.array([row[key] for row in rows]) for rows in (moved, fresh))
        found[key] = float(stats.mannwhitneyu(ours, theirs).pvalue)
        middle = np.median(theirs) + 0.25  # off any tie
        found[f"{key}, spread"] = float(
            stats.mannwhitneyu(np.abs(ours - middle), np.abs(theirs - middle)).pvalue
        )
    return found


@pytest.mark.parametrize(
    ("case", "sampler"),
    cases(
        SAMPLERS[:2],
        {
            "records": ("gaussian", "smoothed gaussian"),
            "counts": ("laplace", "smoothed", "polya", "hidden laplace"),
        },
    ),
)
def test_joint_law(case: str, sampler: str) -> None:
    n = 6 if KINDS[case]["kind"] == "hidden" else 25
    kind = dict(KINDS[case])
    if kind["kind"] == "hidden":
        kind["scale"] *= 2.0  # now and then all noisy counts are clipped
    p_values = joint_p_values(sampler, kind, np.array([0.7, 0.2, 1.1]), n, 5)
    name = min(p_values, key=lambda name: p_values[name])
    assert p_values[name] > LEVEL, name


def test_clipped_counts_are_reached_and_left() -> None:
    kind = {"kind": "hidden", "noise": "laplace", "scale": 4.0, "weight": 0.0}
    released = [2, 2]
    table, _ = oracle.hidden_table(kind, np.array(released, float), 2)
    counts, probability, _ = oracle.posterior(kind, np.array(released, float), 2, np.array([1.0, 1.0]))
    prior = np.exp([oracle.log_prior(c, np.array([1.0, 1.0])) for c in counts])
    clipped = prior * np.prod(0.5 * np.exp(-counts / 4.0), axis=1) * 0.5**4
    exact = clipped.sum() / (prior * table[tuple(counts.T)]).sum()
    rng = np.random.default_rng(8)
    chain = Sampler("counts", likelihood_of(kind, released, 2), np.array([1.0, 1.0]), 2, rng)
    chain.put([1, 1])
    hits = np.empty((20_000, 1))
    for t in range(len(hits)):
        chain.sweep()
        hits[t] = chain.state.sums[1] == 0.0
    assert 0.1 < exact < 0.9
    assert np.abs(discrepancies(hits, np.array([exact]))).max() < SECONDARY
    refresh(chain.likelihood, rng, chain.state)
    assert chain.state.sums[0] == pytest.approx(np.maximum(chain.state.noisy, 0.0).sum(), rel=1e-12)


# one of each way that a sweep goes: noise on counts, and noisy counts that are latent
INTERPRETED = [("records", "laplace"), ("slices", "laplace"), ("counts", "smoothed gaussian")]


def short_run(name: str, kind: str) -> list[list[float]]:
    """Return the counts of a few sweeps, and what else is latent after them."""
    released, n, shapes = RELEASES[kind]
    rng = rng_of("interpreted", name)
    chain = Sampler(name, likelihood_of(KINDS[kind], released, n), np.array(shapes), n, rng)
    chain.put([n] + [0] * (len(shapes) - 1))
    found, shares = chain.run(12, 2)
    return [*found.tolist(), shares.tolist(), chain.state.noisy.tolist(), chain.state.explained.tolist()]


def test_the_interpreter_draws_what_compiled_code_draws() -> None:
    draws = interpreted(__name__, "[short_run(*case) for case in INTERPRETED]")
    for case, found in zip(INTERPRETED, draws, strict=True):
        for row, wanted in zip(found, short_run(*case), strict=True):
            np.testing.assert_allclose(row, wanted, rtol=1e-7, err_msg=str(case))
