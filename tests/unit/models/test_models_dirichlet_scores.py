"""Compositions given noisy log moments and the scores that their threshold was chosen by.

Posteriors are held against importance sampling: databases drawn from the prior, weighed by the densities of
all that was released.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmix.models.dirichlet.build import build
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from tests.helpers.compositions import Choice, stated_groups, stated_release
from tests.helpers.parametric import interpreted, same_in_chunks
from tests.oracles.compositions import functions
from tests.oracles.mc import batch_means

Floats = NDArray[np.float64]

LIMIT = 4.5
CHOICE = Choice((0.2, 0.05, 0.005), (9.0, -1.0, 2.0), 1.5)
THRESHOLD = 0.05
SHAPE, RATE = 1.5, 0.5
DATABASES, AT_ONCE = 300_000, 50_000


def one_part() -> Release:
    return stated_release([-0.7, -1.4], [12], THRESHOLD, [0.3], CHOICE)


def two_parts() -> Release:
    return stated_release([-0.8, -1.1, -0.5, -1.7], [6, 5], THRESHOLD, [0.4, 0.5], CHOICE)


def two_groups() -> Release:
    return stated_groups(
        [3.5, 2.0, -1.0, 1.0, 4.0],
        9,
        2,
        THRESHOLD,
        [2.0, 4.0],
        choice=CHOICE._replace(scores=(3.0, 6.0, -2.0)),
    )


RELEASES = {"one part": one_part, "two parts": two_parts, "two groups": two_groups}


def log_shares(rng: np.random.Generator, alpha: Floats) -> Floats:
    """Draw logarithms of compositions (.., d) given alpha (.., d)."""
    logs = np.log(rng.standard_gamma(alpha + 1.0)) - rng.standard_exponential(alpha.shape) / alpha
    return np.asarray(logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True))


@functools.cache
def weighed(name: str) -> tuple[Floats, Floats, dict[str, Floats]]:
    """Draw databases; return log densities of moments and of scores given them, and what is compared."""
    release, rng = RELEASES[name](), np.random.default_rng(5)
    law, values = release.mechanism, release.values[:, 0]
    groups, n = (2 if law.groups else 1), release.n
    found: dict[str, list[Floats]] = {}
    levels, of_scores = [], []
    for _ in range(DATABASES // AT_ONCE):
        alpha = rng.gamma(SHAPE, 1.0 / RATE, (AT_ONCE, groups, 2))
        first = rng.random((AT_ONCE, n)) < rng.random((AT_ONCE, 1))  # in the first group
        group = np.where(first, 0, groups - 1)
        logs = log_shares(rng, np.take_along_axis(alpha, group[:, :, None], axis=1))
        kept = np.maximum(logs, np.log(THRESHOLD))
        if groups == 2:
            kept = kept - law.centre
            size = first.sum(axis=1)
            sums = [kept * first[:, :, None], kept * ~first[:, :, None]]
            both = np.concatenate([own.sum(axis=1) for own in sums], axis=1)
            level = (
                -np.abs(values[0] - size) / law.scale[0]
                - np.abs(values[1:] - both).sum(axis=1) / law.scale[1]
            )
            found.setdefault("size", []).append(size.astype(float))
        else:
            level, start = np.zeros(AT_ONCE), 0
            for part, (size, scale) in enumerate(zip(law.parts, law.scale, strict=True)):
                means = kept[:, start : start + size].mean(axis=1)
                level -= np.abs(values[2 * part : 2 * part + 2] - means).sum(axis=1) / scale
                start += size
        levels.append(level)
        counts = CHOICE.counts(np.moveaxis(logs, 2, 0))
        of_scores.append(-np.abs(np.array(law.scores) - counts).sum(axis=1) * CHOICE.epsilon / 2.0)
        for k in range(groups):
            for key, column in functions(alpha[:, k]).items():
                found.setdefault(f"{key} {k}", []).append(column)
    columns = {key: np.concatenate(parts) for key, parts in found.items()}
    return np.concatenate(levels), np.concatenate(of_scores), columns


def wanted(name: str, scored: bool = True) -> dict[str, tuple[float, float]]:
    """Return posterior means of functions of alpha and of sizes, with the errors of importance sampling."""
    level, of_scores, columns = weighed(name)
    level = level + of_scores if scored else level
    weights = np.exp(level - level.max())
    weights /= weights.sum()
    assert 1.0 / (weights**2).sum() > 1000.0
    answers = {}
    for key, column in columns.items():
        mean = float(weights @ column)
        answers[key] = mean, float(np.sqrt((weights**2) @ (column - mean) ** 2))
    return answers


def spec_of(sampler: Mapping[str, Any], **model: object) -> Any:
    prior = {"prior": {"shape": SHAPE, "rate": RATE}} | model
    return load_spec({"model": {"kind": "dirichlet", **prior}, "sampler": sampler})


SAMPLERS: dict[str, dict[str, Any]] = {
    "plain": {"kind": "data_augmentation", "joint": False},
    "joint": {"kind": "data_augmentation"},
    "soma": {"kind": "soma"},
}


def worst(model: Any, exact: Mapping[str, tuple[float, float]]) -> float:
    """Return the largest difference of means, in standard errors of both."""
    draws = model.make_chain(np.random.default_rng(4)).run(12_000, thin=2, skip=500)
    alpha = draws["alpha"]
    found = {}
    for k in range(alpha.shape[1]) if alpha.ndim == 3 else (0,):
        for key, column in functions(alpha[:, k] if alpha.ndim == 3 else alpha).items():
            found[f"{key} {k}"] = column
    if "group_size" in draws:
        found["size"] = draws["group_size"][:, 0]
    assert found.keys() == exact.keys()
    gaps = []
    for key, column in found.items():
        mean, error = batch_means(column)
        gaps.append(abs(mean - exact[key][0]) / np.hypot(error, exact[key][1]))
    return float(max(gaps))


QUICK = {("one part", "joint")}


@pytest.mark.parametrize(
    ("name", "sampler"),
    [
        pytest.param(name, sampler, marks=() if (name, sampler) in QUICK else pytest.mark.matrix)
        for name in RELEASES
        for sampler in SAMPLERS
    ],
)
def test_the_posterior_is_given_means_and_scores(name: str, sampler: str) -> None:
    model: Any = build(spec_of(SAMPLERS[sampler]), RELEASES[name]())
    model.plan = model.plan._replace(joint=sampler != "plain")
    assert model.constants["scores"] == 3
    assert worst(model, wanted(name)) < LIMIT
    if (name, sampler) == ("one part", "joint"):  # leaving them out shows
        assert worst(model, wanted(name, scored=False)) > LIMIT


@pytest.mark.parametrize("name", RELEASES)
def test_numbers_kept_are_those_of_the_records(name: str) -> None:
    model: Any = build(spec_of(SAMPLERS["joint"]), RELEASES[name]())
    model.plan = model.plan._replace(joint=True)
    same_in_chunks(model, 12, 2, 8)
    chain = model.make_chain(np.random.default_rng(3))
    chain.sweep(64 * 5 - 1)  # the next sweep would take them from scratch
    state, starts = chain.state, chain.state.get("starts", getattr(model.law, "starts", None))
    parts = np.split(state["records"], starts[1:-1], axis=1)
    np.testing.assert_array_equal(state["sums"][:, 2:], [CHOICE.counts(part) for part in parts])
    assert state["sums"][:, 2:].sum() > 0.0


def test_what_leaves_the_scores_out_says_so() -> None:
    release = two_parts()
    for kind in ("replicated", "abc", "normal_approximation", "bootstrap"):
        assert build(spec_of({"kind": kind}), release).constants["scores"] == 0, kind
    # they are of both parts, and this likelihood is of the second
    second: Any = build(spec_of({"kind": "data_augmentation"}, prior="p3"), release)
    assert second.constants["scores"] == 0 and second.law.scores.noisy.size == 0
    untold = dataclasses.replace(
        release, mechanism={k: v for k, v in release.mechanism.stated().items() if k != "scores"}
    )
    model: Any = build(spec_of({"kind": "data_augmentation"}), untold)
    assert "scores" not in model.constants and model.law.scores.noisy.size == 0


def short_run(name: str) -> list[float]:
    model: Any = build(spec_of(SAMPLERS["soma"]), RELEASES[name]())
    draws = model.make_chain(np.random.default_rng(3)).run(3, skip=4)["alpha"]
    return [float(entry) for entry in draws.ravel()]


def test_the_interpreter_draws_what_compiled_code_draws() -> None:
    draws = interpreted(__name__, "[short_run(name) for name in RELEASES]")
    for name, found in zip(RELEASES, draws, strict=True):
        np.testing.assert_allclose(found, short_run(name), rtol=1e-7, err_msg=name)
