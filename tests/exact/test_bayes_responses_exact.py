"""Naive Bayes given randomized responses: against the enumeration of true records, and the joint law."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from dpmix.errors import DataError
from dpmix.models.naive_bayes.responses import MOST_CELLS, BayesResponses
from dpmix.release.sanitized import Release

ODDS = 4.0
LISTED = [["u", "v", "w"], ["no", "yes"]]


def release(values: Any, listed: Any = LISTED) -> Release:
    law = {"kind": "randomized_response", "ratio": "4/1", "categories": listed, "scale": []}
    table = np.asarray(values, dtype=np.float64)
    names = tuple(f"x{i}" for i in range(table.shape[1]))
    return Release(table, names, law, math.log(4.0), 0.0, None, len(table), labels=tuple(map(tuple, listed)))


def room(model: BayesResponses, count: int) -> dict[str, np.ndarray]:
    out = {p.name: np.zeros((count, *model.shape(p))) for p in model.parameters}
    return out | {"log_likelihood": np.zeros(count)}


def exact(answers: np.ndarray, prior: float) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of p and of the levels' probabilities, by the sum over all true records."""
    total, p, levels = 0.0, np.zeros(2), np.zeros((2, 3))
    for true in itertools.product(itertools.product(range(3), range(2)), repeat=len(answers)):
        counts = np.zeros((2, 3))
        weight = 1.0
        for (level, own), answer in zip(true, answers, strict=True):
            counts[own, level] += 1
            weight *= ODDS ** (int(level == answer[0]) + int(own == answer[1]))
        sizes = counts.sum(axis=1)
        weight *= np.exp(special.gammaln(prior + sizes).sum())
        weight *= np.exp(special.gammaln(prior + counts).sum() - special.gammaln(3 * prior + sizes).sum())
        total += weight
        p += weight * (prior + sizes) / (2 * prior + len(answers))
        levels += weight * (prior + counts) / (3 * prior + sizes)[:, None]
    return p / total, levels / total


@pytest.mark.parametrize("prior", [1.0, 0.4])
def test_means_are_those_of_the_enumeration(prior: float) -> None:
    """Five records, 6^5 true tables; false alarm below 1e-4: 4.5 standard errors by 50 batch means."""
    answers = np.array([[0, 0], [0, 0], [2, 1], [1, 1], [2, 0]])
    model = BayesResponses(release(answers), prior)
    assert model.numbers.sum() == 5 and len(model.rows) == 4
    out, chain = room(model, 8_000), model.make_chain(np.random.default_rng(2))
    chain.sweep(100)
    for row in range(8_000):
        chain.sweep(4)
        chain.record(row, out)
    for name, truth in zip(("p", "p_feature_1"), exact(answers, prior), strict=True):
        batches = out[name].reshape(50, -1, *truth.shape).mean(axis=1)
        error = batches.std(axis=0, ddof=1) / math.sqrt(50)
        assert (np.abs(batches.mean(axis=0) - truth) < 4.5 * error).all(), (name, batches.mean(axis=0), truth)


def test_joint_law_is_invariant() -> None:
    """Probabilities from the prior, answers given them, sweeps: they stay as under the prior (Geweke)."""
    rng = np.random.default_rng(6)
    sizes, n, prior = (3, 2, 2), 60, 0.8
    found = []
    for _ in range(1_200):
        draw = BayesResponses(release(np.zeros((2, 3)), [list("abc"), list("de"), list("fg")]), prior)
        first = draw.prior_draws(rng, 1)
        own = rng.choice(2, n, p=first["p"][0])
        true = np.column_stack(
            [[rng.choice(sizes[k], p=first[f"p_feature_{k + 1}"][0, c]) for c in own] for k in range(2)]
            + [own]
        )
        answers = true.copy()
        for k, size in enumerate(sizes):
            lie = rng.random(n) * (ODDS + size - 1) >= ODDS
            other = rng.integers(size - 1, size=n)
            answers[:, k] = np.where(lie, np.where(other < true[:, k], other, other + 1), true[:, k])
        model = BayesResponses(release(answers, [list("abc"), list("de"), list("fg")]), prior)
        chain = model.make_chain(rng)
        chain.state["p"][:] = np.maximum(first["p"][0], 1e-300)
        chain.state["levels"][:] = np.maximum(
            np.concatenate([first["p_feature_1"][0], first["p_feature_2"][0]], axis=1), 1e-300
        )
        chain.sweep(3)
        state = chain.state
        found.append([state["p"][0], state["levels"][0, 0], state["levels"][1, 3]])
    shares = np.array(found).T
    for values, (a, b) in zip(shares, ((0.8, 0.8), (0.8, 1.6), (0.8, 0.8)), strict=True):
        assert stats.kstest(values, stats.beta(a, b).cdf).pvalue > 1e-5


def test_what_cannot_be_fitted_is_named() -> None:
    with pytest.raises(DataError, match="there is one column, x0; use multinomial"):
        BayesResponses(release(np.zeros((2, 1)), [["a", "b"]]), 1.0)
    wide = [[str(i) for i in range(200)]] * 3
    assert MOST_CELLS < 200**3
    with pytest.raises(
        DataError, match="the joint of the 3 columns has 8,000,000 cells, more than 1,000,000"
    ):
        BayesResponses(release(np.zeros((2, 3)), wide), 1.0)
