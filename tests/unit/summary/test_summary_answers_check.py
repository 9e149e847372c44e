"""The check of randomized responses of several columns: replicates of the law, and a misfit that shows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dpmix
from dpmix.models.naive_bayes.meaning import AnswersOfRecords
from dpmix.release.sanitized import Release
from dpmix.run.chains_reader import read_chains

ODDS = 6.0
LAW = {
    "kind": "randomized_response",
    "ratio": "6/1",
    "categories": [["low", "high"], ["a", "b", "c"], ["no", "yes"]],
    "scale": [],
}
SIZES = (2, 3, 2)
SPEC = {
    "model": {"kind": "naive_bayes"},
    "sampler": {"iterations": 600, "burn_in": 200, "chains": 2, "seed": 3},
}


def answers(true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Answers to categories (n, 3)."""
    out = true.copy()
    for k, size in enumerate(SIZES):
        honest = rng.random(len(true)) < (ODDS - 1.0) / (ODDS + size - 1.0)
        out[:, k] = np.where(honest, true[:, k], rng.integers(size, size=len(true)))
    return out


def fitted(true: np.ndarray, folder, seed: int):
    rng = np.random.default_rng(seed)
    values = answers(true, rng).astype(float)
    release = Release(values, ("income", "town", "vote"), LAW, 5.4, 0.0, None, len(values))
    dpmix.fit(SPEC, release, folder / "c.h5", quiet=True, jobs=1)
    return folder / "c.h5"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Features that are independent given the vote."""
    rng = np.random.default_rng(1)
    vote = rng.integers(2, size=3000)
    income = (rng.random(3000) < np.array([0.2, 0.7])[vote]).astype(int)
    town = np.where(rng.random(3000) < 0.5, 0, 1 + vote)
    return fitted(np.stack([income, town, vote], axis=1), tmp_path_factory.mktemp("good"), 2)


def test_a_fit_that_is_right_passes(good):
    check = dpmix.summarize(good).check
    assert check.reason == ""
    assert check.overall > 0.05
    assert len(check.entries) == 2 * 3 + 2 * 2 + 3 * 2
    assert check.entries[0].name == "income = low, town = a"


def test_features_that_depend_on_each_other_within_a_class_show(tmp_path):
    """Counts by class alone would not tell: income follows town, whatever the vote."""
    rng = np.random.default_rng(4)
    vote, town = rng.integers(2, size=3000), rng.integers(3, size=3000)
    income = (rng.random(3000) < np.array([0.1, 0.5, 0.9])[town]).astype(int)
    check = dpmix.summarize(fitted(np.stack([income, town, vote], axis=1), tmp_path, 5)).check
    assert check.overall < 0.01
    worst = min(check.entries, key=lambda entry: entry.p)
    assert worst.name.startswith("income")
    assert "town" in worst.name


def test_replicates_have_the_law_of_the_answers(good):
    """Mean numbers of each pair of answers against the sum over all true rows."""
    chains = read_chains([good])
    replicator = AnswersOfRecords(chains)
    replicator.prepare([])
    values = {name: replicator.values[name][0, 7] for name in replicator.needed}
    joint = np.zeros(SIZES)
    for true in itertools.product(*map(range, SIZES)):
        weight = values["p"][true[2]] * values["p_feature_1"][true[2], true[0]]
        weight *= values["p_feature_2"][true[2], true[1]]
        for said in itertools.product(*map(range, SIZES)):
            chance = [(ODDS if said[k] == true[k] else 1.0) / (ODDS + SIZES[k] - 1.0) for k in range(3)]
            joint[said] += weight * np.prod(chance)
    wanted = np.concatenate([joint.sum(axis=axis).ravel() for axis in (2, 1, 0)]) * chains.n
    rng = np.random.default_rng(6)
    drawn = np.stack([replicator.replicate(0, 7, rng) for _ in range(400)])
    error = drawn.std(axis=0) / 20.0
    assert (np.abs(drawn.mean(axis=0) - wanted) < 4.5 * error).all()
    whole = replicator.whole(0, 7, np.random.default_rng(8))
    assert whole.shape == chains.observed.shape
    # the same draws, in another order
    np.testing.assert_array_equal(
        replicator.reduce(whole), replicator.replicate(0, 7, np.random.default_rng(8))
    )


def test_of_many_categories_only_pairs_with_the_class(good):
    chains = read_chains([good])
    big = chains.mechanism.updated(
        categories=[[str(i) for i in range(40)], [str(i) for i in range(40)], ["no", "yes"]]
    )
    object.__setattr__(chains, "mechanism", big)
    replicator = AnswersOfRecords(chains)
    assert replicator.pairs == [(0, 2), (1, 2)]
    assert "independent" in replicator.blind
