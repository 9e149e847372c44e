"""Shares given randomized responses: against the enumeration of true categories, and the joint law."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from dpmix.errors import DataError, SpecError
from dpmix.models.multinomial.model import Responses, responses_of
from dpmix.release.sanitized import Release

ODDS = 3.0


def release(values: Any, size: int, odds: str = "3/1") -> Release:
    law = {
        "kind": "randomized_response",
        "ratio": odds,
        "categories": [list("abcdefghij"[:size])],
        "scale": [],
    }
    table = np.asarray(values, dtype=np.float64)[:, None]
    return Release(
        table, ("g",), law, math.log(3.0), 0.0, None, len(table), labels=(tuple("abcdefghij"[:size]),)
    )


def draws(model: Responses, count: int, thin: int, seed: int) -> dict[str, np.ndarray]:
    chain = model.make_chain(np.random.default_rng(seed))
    size = model.prior.size
    out = {"p": np.zeros((count, size)), "count": np.zeros((count, size)), "predictive": np.zeros(count)}
    out["log_likelihood"] = np.zeros(count)
    chain.sweep(50)
    for row in range(count):
        chain.sweep(thin)
        chain.record(row, out)
    return out


def exact(answers: Any, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of p and of the true counts, by the sum over all true categories of six records."""
    size, total = prior.size, 0.0
    mean, counts = np.zeros(size), np.zeros(size)
    for true in itertools.product(range(size), repeat=len(answers)):
        c = np.bincount(true, minlength=size)
        weight = float(np.exp(special.gammaln(prior + c).sum() - special.gammaln(prior).sum()))
        weight *= ODDS ** sum(t == z for t, z in zip(true, answers, strict=True))
        total += weight
        mean += weight * (prior + c) / (prior.sum() + c.sum())
        counts += weight * c
    return mean / total, counts / total


@pytest.mark.parametrize("prior", [(1.0, 1.0, 1.0), (0.2, 2.0, 0.7)])
def test_means_are_those_of_the_enumeration(prior: tuple[float, ...]) -> None:
    """False alarm below 1e-4: 4.5 standard errors by 50 batch means."""
    answers = [0, 0, 2, 1, 0, 2]
    given = None if prior == (1.0, 1.0, 1.0) else prior
    model = responses_of(release(answers, 3), given)
    assert model.prior.tolist() == list(prior)
    found = draws(model, 8_000, 2, 3)
    for name, truth in zip(("p", "count"), exact(answers, np.array(prior)), strict=True):
        batches = found[name].reshape(50, -1, 3).mean(axis=1)
        error = batches.std(axis=0, ddof=1) / math.sqrt(50)
        assert (np.abs(batches.mean(axis=0) - truth) < 4.5 * error).all(), (name, batches.mean(axis=0), truth)


@pytest.mark.parametrize(("n", "size", "odds"), [(6, 2, 3.0), (400, 4, 2.7), (50_000, 3, 1.05)])
def test_joint_law_is_invariant(n: int, size: int, odds: float) -> None:
    """Shares from the prior, answers given them, sweeps: ranks of both stay those of the prior (Geweke)."""
    rng = np.random.default_rng([9, n])
    prior = np.array([0.6, 1.5, 1.0, 3.0])[:size]
    model = Responses(release(np.arange(n) % size, size, f"{round(odds * 100)}/100"), prior)
    shares, counts = [], []
    out = {"p": np.zeros((1, size)), "count": np.zeros((1, size)), "predictive": np.zeros(1)}
    out["log_likelihood"] = np.zeros(1)
    for _ in range(1_500):
        p = rng.dirichlet(prior)
        chance = (1.0 + (model.odds - 1.0) * p) / (model.odds + size - 1.0)
        model.answers = rng.multinomial(n, chance / chance.sum())
        chain = model.make_chain(rng)
        chain.state["p"][:] = np.maximum(p, 1e-300)
        chain.sweep(3)
        chain.record(0, out)
        shares.append(out["p"][0, 0])
        counts.append(out["count"][0, 0])
    rest = prior.sum() - prior[0]
    assert stats.kstest(shares, stats.beta(prior[0], rest).cdf).pvalue > 1e-5
    mean, spread = n * prior[0] / prior.sum(), stats.betabinom(n, prior[0], rest).std()
    assert abs(np.mean(counts) - mean) < 4.5 * spread / math.sqrt(1_500)


def test_answers_that_say_next_to_nothing_leave_the_prior_and_mix() -> None:
    rng = np.random.default_rng(5)
    model = responses_of(release(rng.integers(0, 10, 100_000), 10, "1001/1000"), None)
    found = draws(model, 2_000, 1, 1)["p"]
    assert np.abs(found.mean(axis=0) - 0.1).max() < 0.02
    lag = np.corrcoef(found[1:, 0], found[:-1, 0])[0, 1]
    assert lag < 0.6


def test_true_counts_are_drawn_given_the_shares() -> None:
    """Against chances of each true category given each answer, by Bayes: false alarm below 1e-4."""
    p, answers = np.array([0.6, 0.3, 0.1]), np.array([200, 50, 150])
    model = responses_of(release(np.repeat([0, 1, 2], answers), 3), None)
    chain = model.make_chain(np.random.default_rng(4))
    chain.state["p"][:] = p
    out = {"p": np.zeros((4_000, 3)), "count": np.zeros((4_000, 3)), "predictive": np.zeros(4_000)}
    out["log_likelihood"] = np.zeros(4_000)
    for row in range(4_000):
        chain.record(row, out)
    joint = p[:, None] * np.where(np.eye(3, dtype=bool), ODDS, 1.0)  # true, answer
    expected = (joint / joint.sum(axis=0)) @ answers
    error = out["count"].std(axis=0) / math.sqrt(4_000)
    assert (np.abs(out["count"].mean(axis=0) - expected) < 4.5 * error).all()
    exact = float(answers @ np.log(joint.sum(axis=0) / (ODDS + 2)))
    assert out["log_likelihood"][0] == pytest.approx(exact, rel=1e-12)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(SpecError, match=r"model\.prior: has 2 entries, but the release is of 3 categories"):
        responses_of(release([0, 1, 2], 3), (1.0, 1.0))
    two = {"kind": "randomized_response", "ratio": "3/1", "categories": [["a", "b"]] * 2, "scale": []}
    both = Release(np.zeros((3, 2)), ("g", "h"), two, 1.0, 0.0, None, 3)
    with pytest.raises(
        DataError, match=r"multinomial is for one column, and there are g, h; choose one with"
    ):
        responses_of(both, None)
