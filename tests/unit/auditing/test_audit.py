"""The audit: right mechanisms pass, planted faults are found."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

import dpmix
from dpmix.api.calibrate import mechanism_of
from dpmix.auditing.inputs import AuditedSubject, subject_of
from dpmix.auditing.trial import lower_bound, lowest_bit, repeats_after_fork, try_out
from dpmix.cli.commands import app
from dpmix.errors import PrivacyError, SpecError, UsageError
from dpmix.mechanisms.curators.mechanism import Mechanism
from dpmix.run.exit_codes import run
from dpmix.spec import load_spec
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.records import columns_of

LEVEL = 1 - 1e-6
"""Confidence of the bounds: a right mechanism fails one of these tests with probability below 1e-6."""

NUMBER = {"path": "x.csv", "columns": ["a"], "domain": [[1.0, 6.0]]}
LABEL = {"path": "x.csv", "columns": ["a"], "categories": ["u", "v", "w"]}
MECHANISMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "laplace": (NUMBER, {"kind": "laplace", "epsilon": 1.0}),
    "gaussian": (NUMBER, {"kind": "gaussian", "epsilon": 1.0, "delta": 1e-3}),
    "binomial": (NUMBER, {"kind": "binomial", "epsilon": 1.0, "trials": 5}),
    "square_wave": (
        {"path": "x.csv", "columns": ["a", "b"], "domain": [[1.0, 6.0], [0.0, 1.0]]},
        {"kind": "square_wave", "epsilon": 1.0},
    ),
    "randomized_response": (LABEL, {"kind": "randomized_response", "epsilon": 1.0}),
    "smoothed_histogram": (
        NUMBER,
        {"kind": "smoothed_histogram", "epsilon": 1.0, "bins": 3, "draws": 2, "n": 5},
    ),
    "posterior": (
        {"path": "x.csv", "columns": ["a"], "categories": ["u", "v"]},
        {
            "kind": "posterior",
            "method": "hellinger",
            "epsilon": 1.0,
            "delta": 1e-3,
            "prior": [1, 1],
            "n": 12,
        },
    ),
    "noisy_counts": (
        {"path": "x.csv", "columns": ["a", "b", "y"]},
        {"kind": "noisy_counts", "epsilon": 1.0, "levels": [2, 3], "classes": 2, "n": 4},
    ),
    "clamped_moments": (
        {"path": "x.csv", "columns": ["a", "y"]},
        {"kind": "clamped_moments", "epsilon": 1.0, "bounds": [[0, 1], [0, 2]], "n": 4},
    ),
    "log_moments": (
        {"path": "x.csv", "columns": ["a", "b", "c"]},
        {"kind": "log_moments", "epsilon": 1.0, "thresholds": [0.3, 0.1], "n": 4},
    ),
    "perturbed_histogram": (NUMBER, {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 3, "n": 4}),
    "wavelet": (NUMBER, {"kind": "wavelet", "epsilon": 1.0, "levels": 1}),
}
SLOW = ("wavelet", "log_moments", "clamped_moments", "perturbed_histogram", "posterior", "noisy_counts")
SYNTHESIS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pitman_yor": (LABEL, {"kind": "pitman_yor", "epsilon": 1.0, "delta": 0.3}),
    "free labels": (
        {"path": "x.csv", "columns": ["a"]},
        {"kind": "pitman_yor", "epsilon": 1.0, "delta": 0.2, "records": 2},
    ),
    "dirichlet_multinomial": (LABEL, {"kind": "dirichlet_multinomial", "epsilon": 1.0, "delta": 0.01}),
    "perturbed_histogram": (NUMBER, {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 3}),
    "smoothed_histogram": (NUMBER, {"kind": "smoothed_histogram", "epsilon": 1.0, "bins": 3, "delta": 0.01}),
}


def mechanism_subject(name: str, n: int = 4) -> tuple[AuditedSubject, Any]:
    data, section = MECHANISMS[name]
    mechanism = mechanism_of(load_spec({"data": data, "mechanism": section}))
    return subject_of(mechanism, data["columns"], section.get("n", n)), mechanism


def broken(subject: AuditedSubject, draw: Callable[[np.ndarray, int], np.ndarray]) -> AuditedSubject:
    return dataclasses.replace(subject, draw=draw)


def test_the_bound_is_clopper_and_pearson_s() -> None:
    low = stats.beta.ppf(0.01, 60, 41)
    high = stats.beta.ppf(0.99, 21, 180)
    assert lower_bound(60, 100, 20, 200, 0.05, 0.98) == pytest.approx(math.log((low - 0.05) / high))
    assert lower_bound(0, 100, 0, 100, 0.0, 0.99) == 0.0
    assert lower_bound(100, 100, 100, 100, 0.0, 0.99) == 0.0
    none = lower_bound(np.array([90, 90]), 100, np.array([0, 90]), 100, 0.0, 0.99)
    assert none[0] == pytest.approx(math.log(stats.beta.ppf(0.005, 90, 11) / (1 - 0.005 ** (1 / 100))))
    assert none[1] == 0.0


def test_the_bound_covers_as_often_as_it_says() -> None:
    # Laplace noise at epsilon 1 has the event z <= 0 with probabilities 1/2 and 1/(2 e): nothing is tighter
    rng = np.random.default_rng(1)
    hits, others = rng.binomial(400, 0.5, 4000), rng.binomial(400, 0.5 / math.e, 4000)
    above = np.mean(lower_bound(hits, 400, others, 400, 0.0, 0.8) > 1.0)
    assert 0.01 < above < 0.2


def test_the_lowest_bit() -> None:
    values = np.array([1.0, 3.0, 0.5, 6.0, 0.0, 1.0 + 2.0**-52, -(2.0**-60), np.inf])
    assert lowest_bit(values).tolist() == [0, 0, -1, 1, 1100, -52, -60, 1100]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.matrix if name in SLOW else ()) for name in MECHANISMS]
)
def test_a_right_mechanism_passes(name: str) -> None:
    subject, mechanism = mechanism_subject(name)
    claim = mechanism.guarantee
    trial = try_out(subject, 2000, claim.delta, LEVEL)
    assert trial.bound <= claim.epsilon
    if name == "laplace":  # and the audit is not blind
        assert trial.bound > 0.2  # 0.55 +- 0.055
    assert repeats_after_fork(subject) is False


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.matrix if n.endswith("histogram") else ()) for n in SYNTHESIS],
)
def test_a_right_synthesizer_passes(name: str) -> None:
    data, section = SYNTHESIS[name]
    spec = load_spec({"data": data, "synthesis": section | {"n": 15}})
    assert spec.synthesis is not None
    generator = generator_of(spec.synthesis, columns_of(spec.data), 15)
    claim = generator.guarantee
    trial = try_out(subject_of(generator, data["columns"], 15), 1000, claim.delta or 0.0, LEVEL)
    assert claim.epsilon is not None and trial.bound <= claim.epsilon
    assert repeats_after_fork(subject_of(generator, data["columns"], 15)) is False


def test_noise_of_half_the_scale_is_found() -> None:
    subject, mechanism = mechanism_subject("laplace")
    half = dataclasses.replace(mechanism, scale=(mechanism.scale[0] / 2,))
    faulty = broken(subject, lambda x, runs: half.privatize(np.repeat(x, runs, axis=0), ["a"])[0].values)
    assert try_out(faulty, 8000, 0.0, LEVEL).bound > 1.2


def test_a_wrong_sensitivity_is_found() -> None:
    # noisy counts, of which a record moves 2 K, with noise for K
    subject, mechanism = mechanism_subject("noisy_counts")
    rng = np.random.default_rng(2)

    def draw(database: np.ndarray, runs: int) -> np.ndarray:
        counts, _ = mechanism.statistic(database)
        return counts + rng.laplace(0.0, mechanism.s / 2, (runs, len(counts)))

    assert try_out(broken(subject, draw), 12_000, 0.0, LEVEL).bound > 1.1


def test_noise_used_again_after_a_fork_is_found() -> None:
    subject, mechanism = mechanism_subject("laplace")
    rng = np.random.default_rng()  # of this process, and so of all that it forks
    faulty = broken(subject, lambda x, runs: x + rng.laplace(0.0, mechanism.scale[0], (runs, 1)))
    assert repeats_after_fork(faulty) is True


def test_releases_of_few_values_are_not_taken_for_repeated() -> None:
    # independent sequences of 16 of these agree in one of 13 audits
    subject, _ = mechanism_subject("binomial")
    rare = broken(subject, lambda x, runs: (np.random.default_rng().random((runs, 1)) < 0.08).astype(float))
    assert [repeats_after_fork(rare) for _ in range(3)] == [False] * 3
    seeded = np.random.default_rng(4)
    assert repeats_after_fork(broken(rare, lambda x, runs: seeded.random((runs, 1)) < 0.08)) is True
    still = broken(subject, lambda x, runs: np.zeros((runs, 1)))
    assert repeats_after_fork(still) is None


def test_the_grid_of_naive_laplace_noise_is_found() -> None:
    subject, mechanism = mechanism_subject("laplace")
    rng = np.random.default_rng(3)

    def draw(database: np.ndarray, runs: int) -> np.ndarray:
        return np.clip(database, 1.0, 6.0) + rng.laplace(0.0, mechanism.scale[0], (runs, 1))

    faulty = broken(subject, draw)
    trial = try_out(faulty, 8000, 0.0, LEVEL)
    assert trial.bound > 2.0
    assert "lowest bit" in str(trial.event)


def test_values_that_are_not_clamped_are_found() -> None:
    subject, mechanism = mechanism_subject("laplace")
    noise = mechanism.noises[0]
    spread = dataclasses.replace(noise, spread=1e6)
    faulty = broken(subject, lambda x, runs: spread.add(np.repeat(x[:, 0], runs))[:, None])
    trial = try_out(faulty, 1000, 0.0, LEVEL)
    assert trial.bound > 2.0
    assert "beyond" in trial.pair.words or "far below" in trial.pair.words


def test_a_synthesizer_that_copies_too_much_is_found() -> None:
    data, section = SYNTHESIS["free labels"]
    spec = load_spec({"data": data, "synthesis": section | {"n": 15}})
    assert spec.synthesis is not None
    honest = generator_of(spec.synthesis, columns_of(spec.data), 15)
    greedy = dataclasses.replace(honest, records=10 * honest.records)
    claim = honest.guarantee
    trial = try_out(subject_of(greedy, data["columns"], 15), 1000, claim.delta or 0.0, LEVEL)
    assert claim.epsilon is not None and trial.bound > claim.epsilon


def test_from_spec_to_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump({"data": NUMBER, "mechanism": {"kind": "laplace", "epsilon": 1.0}}))
    often = ["audit", str(path), "--runs", "4000", "--confidence", str(LEVEL)]
    assert run(app, [*often, "--json"]) == 0  # the data need not be there
    found = json.loads(capsys.readouterr().out)
    assert 0 < found["epsilon_lower_bound"] <= found["epsilon"] <= 1.0
    assert found["consistent"] and found["repeats_after_fork"] is False
    assert run(app, often) == 0
    assert "nothing contradicts the claim" in capsys.readouterr().out


@pytest.mark.parametrize(
    "section",
    [
        {"kind": "log_moments", "epsilon": 1.0, "threshold": 0.1, "components": 3, "n": 4},
        {"kind": "noisy_counts", "epsilon": 1.0, "levels": [2, 3], "classes": 2, "n": 4},
        {"kind": "clamped_moments", "epsilon": 1.0, "bounds": [[0, 1], [0, 2]], "n": 4},
        {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 3, "domain": [0.0, 1.0]},
    ],
    ids=lambda section: section["kind"],
)
def test_a_mechanism_that_says_what_it_is_of_needs_no_data(section: dict[str, Any]) -> None:
    found = dpmix.audit({"mechanism": section}, runs=200, confidence=LEVEL, quiet=True)
    assert found.to_json()["consistent"]
    assert dpmix.calibrate({"mechanism": section})["epsilon"] == pytest.approx(1.0)


def test_a_disproved_claim_exits_with_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, mechanism = mechanism_subject("laplace")
    naive = broken(subject, lambda x, runs: x + np.random.default_rng(5).laplace(0.0, 0.1, (runs, 1)))
    monkeypatch.setattr("dpmix.api.audit.subject_of", lambda *_: naive)
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump({"data": NUMBER, "mechanism": {"kind": "laplace", "epsilon": 1.0}}))
    assert run(app, ["audit", str(path), "--runs", "400"]) == 4
    out, err = capsys.readouterr()
    assert "THE CLAIM IS DISPROVED" in out
    assert err.startswith("dpmix: error: laplace: the claim is disproved")


def test_what_cannot_be_audited_is_said() -> None:
    spec = {"data": NUMBER, "mechanism": {"kind": "laplace", "epsilon": 1.0}}
    with pytest.raises(UsageError, match="--runs: 10 are too few"):
        dpmix.audit(spec, runs=10)
    with pytest.raises(UsageError, match="--confidence: 1 must lie"):
        dpmix.audit(spec, confidence=1.0)
    with pytest.raises(SpecError, match="mechanism: missing"):
        dpmix.audit({"data": NUMBER})
    with pytest.raises(PrivacyError, match="none adds no noise"):
        dpmix.audit(spec | {"mechanism": {"kind": "none"}})


def test_a_mechanism_that_says_nothing_of_it_is_audited_by_its_public_bounds() -> None:
    own: Any = SimpleNamespace(kind="own", domain=((0.0, 2.0),))
    pairs = list(Mechanism.neighbours(own, 1, 3))
    assert [(float(pair.one[0, 0]), float(pair.other[0, 0])) for pair in pairs] == [(0, 2), (-16, 18)]
    assert all((pair.one[1:] == pair.other[1:]).all() and len(pair.one) == 3 for pair in pairs)
    assert Mechanism.loss(own, pairs[0].one, pairs[0].other) is None and Mechanism.weakened(own) is None
    own.domain = ()
    with pytest.raises(PrivacyError, match="own has no public bounds, of which databases to audit it"):
        next(Mechanism.neighbours(own, 1, 3))


GAUSSIAN = {"kind": "gaussian", "epsilon": 2.0, "delta": 0.02}
LARGE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("mechanism", NUMBER, {"kind": "binomial", "epsilon": 80.0, "trials": 2}),
    ("mechanism", NUMBER, {"kind": "square_wave", "epsilon": 400.0, "cells": 3, "width": 0.4}),
    ("mechanism", LABEL, {"kind": "randomized_response", "epsilon": 400.0}),
    ("mechanism", NUMBER, {"kind": "smoothed_histogram", "epsilon": 400.0, "bins": 2, "draws": 1, "n": 2}),
    ("synthesis", LABEL, {"kind": "smoothed_histogram", "epsilon": 400.0, "records": 1, "n": 2}),
    ("synthesis", LABEL, {"kind": "dirichlet_multinomial", "epsilon": 10.0, "records": 20, "n": 2}),
    ("synthesis", LABEL, {"kind": "dirichlet_multinomial", "epsilon": 400.0, "records": 3, "n": 2}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("section", "data", "own"), LARGE, ids=[f"{case[2]['kind']}-{case[2]['epsilon']:g}" for case in LARGE]
)
def test_a_large_epsilon_is_audited_with_a_fault_or_without(
    section: str, data: dict[str, Any], own: dict[str, Any]
) -> None:
    found = dpmix.audit({"data": data, section: own}, runs=200, quiet=True)
    assert found.consistent and (found.shown is not None) == bool(found.fault)
    assert found.weak  # 200 releases bound no such epsilon, with a fault or without
    assert "this audit is weak: " in found.to_text()


SIMULATED = {"simulate": "three_gaussians", "n": 200, "seed": 1, "domain": [[-10.0, 10.0]]}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"data": NUMBER, "mechanism": GAUSSIAN}, "with more than 49 records, delta = 0.02 is 1/n or more"),
        ({"data": SIMULATED, "mechanism": GAUSSIAN}, "delta = 0.02 is not below 1/n = 0.005"),
        ({"data": SIMULATED, "mechanism": GAUSSIAN | {"delta": 0.004}}, ""),
        ({"data": NUMBER, "mechanism": {"kind": "gaussian", "rho": 0.5}}, ""),
        ({"data": NUMBER, "mechanism": {"kind": "laplace", "epsilon": 2.0}}, ""),
        (
            {"data": LABEL, "mechanism": MECHANISMS["posterior"][1] | {"prior": [1, 1, 1], "delta": 0.1}},
            "delta = 0.1 is not below 1/n = 0.0833",
        ),
        (
            {"data": NUMBER, "audit": {"command": ["a", "{input}", "{output}"], "epsilon": 1, "delta": 0.02}},
            "with more than 49 records, delta = 0.02 is 1/n or more",
        ),
    ],
)
def test_a_delta_of_one_in_n_is_said_of_local_releases_too(spec: dict[str, Any], said: str) -> None:
    found = dpmix.audit(spec, runs=200, quiet=True, program=sum_of if "audit" in spec else None)
    text, cautions = found.to_text(), found.to_json()["cautions"]
    assert len(cautions) == bool(said) == text.count("somebody's record verbatim")
    assert all(said in each and each in text for each in cautions)


def sum_of(table: Any) -> float:
    return float(np.asarray(table, dtype=float).sum() + np.random.default_rng().laplace())
