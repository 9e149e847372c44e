"""What the audit would find: half the noise of every mechanism and synthesizer; what it says where not."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

import dpmix
from dpmix.api.audit import _stated
from dpmix.api.calibrate import mechanism_of
from dpmix.auditing.inputs import AuditedSubject, subject_of
from dpmix.auditing.trial import paired_bound, try_out
from dpmix.cli.commands import app
from dpmix.errors import UsageError
from dpmix.run.exit_codes import run
from dpmix.spec import load_spec
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.records import columns_of

LEVEL = 1 - 1e-6
"""Confidence of bounds on what is right: a claim that holds is disproved with probability below 1e-6."""

NUMBER = {"path": "x.csv", "columns": ["a"], "domain": [[1.0, 6.0]]}
LABEL = {"path": "x.csv", "columns": ["a"], "categories": ["u", "v", "w"]}
TWO_LABELS = {"path": "x.csv", "columns": ["a"], "categories": ["u", "v"]}
COUNTS = {"path": "x.csv", "columns": ["a", "b", "y"]}
SHARES = {"path": "x.csv", "columns": ["a", "b", "c"]}
Case = tuple[dict[str, Any], str, dict[str, Any]]
CASES: dict[str, Case] = {
    "laplace": (NUMBER, "mechanism", {"kind": "laplace"}),
    "gaussian": (NUMBER, "mechanism", {"kind": "gaussian", "delta": 1e-2}),
    "binomial": (NUMBER, "mechanism", {"kind": "binomial", "trials": 5}),
    "square_wave": (NUMBER, "mechanism", {"kind": "square_wave", "cells": 16}),
    "randomized_response": (LABEL, "mechanism", {"kind": "randomized_response"}),
    "wavelet": (NUMBER, "mechanism", {"kind": "wavelet", "levels": 1}),
    "smoothed_histogram": (
        NUMBER,
        "mechanism",
        {"kind": "smoothed_histogram", "bins": 3, "draws": 2, "n": 5},
    ),
    "perturbed_histogram": (NUMBER, "mechanism", {"kind": "perturbed_histogram", "bins": 3, "n": 4}),
    "geometric counts": (
        NUMBER,
        "mechanism",
        {"kind": "perturbed_histogram", "bins": 3, "n": 4, "noise": "geometric"},
    ),
    "gaussian counts": (
        NUMBER,
        "mechanism",
        {"kind": "perturbed_histogram", "bins": 3, "n": 4, "noise": "gaussian", "delta": 1e-2},
    ),
    "noisy_counts": (COUNTS, "mechanism", {"kind": "noisy_counts", "levels": [2, 3], "classes": 2, "n": 4}),
    "clamped_moments": (
        {"path": "x.csv", "columns": ["a", "y"]},
        "mechanism",
        {"kind": "clamped_moments", "bounds": [[0, 1], [0, 2]], "n": 4},
    ),
    "log_moments": (SHARES, "mechanism", {"kind": "log_moments", "threshold": 0.1, "n": 4}),
    "chosen threshold": (SHARES, "mechanism", {"kind": "log_moments", "thresholds": [0.3, 0.1], "n": 4}),
    "posterior": (
        TWO_LABELS,
        "mechanism",
        {"kind": "posterior", "method": "hellinger", "delta": 1e-3, "prior": [1, 1], "n": 12},
    ),
    "noisy posterior": (
        LABEL,
        "mechanism",
        {"kind": "posterior", "method": "geometric", "prior": [1, 1, 1], "n": 12},
    ),
    "pitman_yor": (LABEL, "synthesis", {"kind": "pitman_yor", "delta": 0.3}),
    "dirichlet_multinomial": (LABEL, "synthesis", {"kind": "dirichlet_multinomial"}),
    "synthesis of perturbed_histogram": (NUMBER, "synthesis", {"kind": "perturbed_histogram", "bins": 3}),
    "synthesis of smoothed_histogram": (
        NUMBER,
        "synthesis",
        {"kind": "smoothed_histogram", "bins": 3, "records": 1},
    ),
}
CHEAP = ("laplace", "gaussian", "binomial", "square_wave", "randomized_response")
MORE = ("clamped_moments", "log_moments", "chosen threshold", "synthesis of perturbed_histogram")
"""Which take more releases: of the last three a pair may be chosen that tells less than the others."""
DENSITIES = [
    name for name in CASES if name not in ("pitman_yor", "posterior", "synthesis of perturbed_histogram")
]
CHEAP_DENSITIES = ("laplace", "binomial", "square_wave", "wavelet", "noisy posterior", "smoothed_histogram")


def some(names: Any, cheap: tuple[str, ...]) -> list[Any]:
    return [pytest.param(name, marks=() if name in cheap else pytest.mark.matrix) for name in names]


def subject_named(name: str) -> AuditedSubject:
    data, section, keys = CASES[name]
    spec = load_spec({"data": data, section: {"epsilon": 1.0} | keys})
    if section == "synthesis":
        assert spec.synthesis is not None
        return subject_of(generator_of(spec.synthesis, columns_of(spec.data), 6), data["columns"], 6)
    mechanism = mechanism_of(spec)
    return subject_of(mechanism, data["columns"], keys.get("n", 1))


@pytest.mark.parametrize("name", some(CASES, CHEAP))
def test_half_the_noise_is_found(name: str) -> None:
    subject = subject_named(name)
    assert subject.faulty is not None
    epsilon, delta = _stated(subject.kind, subject.claim)
    faulty = dataclasses.replace(subject.faulty(), loss=subject.loss)
    runs = 20_000 if name in MORE else 10_000
    assert try_out(faulty, runs, delta, 0.999).bound > epsilon


@pytest.mark.parametrize("name", some(DENSITIES, CHEAP_DENSITIES))
def test_losses_are_log_ratios_of_densities(name: str) -> None:
    # exp(-loss) has mean one under the first database, and no loss of a pure guarantee exceeds epsilon
    subject = subject_named(name)
    for pair in subject.pairs:
        loss = subject.loss(pair)
        assert loss is not None
        found = loss(subject.draw(pair.one, 400))
        ratio = np.exp(-found)
        assert abs(ratio.mean() - 1.0) < 5.5 * ratio.std() / 20 + 1e-9
        assert found.any()
        if not subject.claim.delta and subject.claim.epsilon is not None:
            assert np.abs(found).max() <= subject.claim.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("calibration", ["proved", "theorem"])
def test_losses_of_listed_posteriors_are_those_of_the_weights(calibration: str) -> None:
    keys = {"kind": "posterior", "method": "hellinger", "calibration": calibration, "epsilon": 3.0}
    spec = {"data": LABEL, "mechanism": keys | {"delta": 1e-2, "prior": [30, 30, 30], "n": 5}}
    subject = subject_of(mechanism_of(load_spec(spec)), LABEL["columns"], 5)
    for pair in subject.pairs:
        loss = subject.loss(pair)
        assert loss is not None
        found = loss(subject.draw(pair.one, 400))
        ratio = np.exp(-found)
        assert found.any() and abs(ratio.mean() - 1.0) < 5.5 * ratio.std() / 20
        back = loss(subject.draw(pair.other, 400))
        assert back.mean() < found.mean()


def test_the_paired_bound_is_clopper_and_pearson_s() -> None:
    share = stats.beta.ppf(0.009, 50, 13)
    most, least = stats.beta.ppf(1 - 0.0005, 61, 140), stats.beta.ppf(0.0005, 22, 179)
    exact = math.log(share / (1 - share) * (1 - most) / (1 - least))
    assert paired_bound(60, 22, 50, 12, 200, 0.99) == pytest.approx(exact)
    none = paired_bound(np.array([0, 200]), np.array([0, 200]), np.zeros(2), np.zeros(2), 200, 0.99)
    assert none.tolist() == [0.0, 0.0]


def test_the_paired_bound_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.random((4000, 400)) < 0.5, rng.random((4000, 400)) < 0.5 / math.e
    wins, losses = (one & ~other).sum(axis=1), (other & ~one).sum(axis=1)
    bounds = paired_bound(one.sum(axis=1), other.sum(axis=1), wins, losses, 400, 0.8)
    assert 0.01 < np.mean(bounds > 1.0) < 0.2


def test_an_audit_says_when_it_is_weak() -> None:
    section = {"kind": "smoothed_histogram", "epsilon": 1.0, "bins": 5, "draws": 5, "n": 50}
    found = dpmix.audit({"data": NUMBER, "mechanism": section}, runs=200, confidence=LEVEL, quiet=True)
    assert found.consistent and found.weak
    assert found.shown is not None and found.shown <= 1.0
    assert "this audit is weak" in found.to_text() and "would not show twice the epsilon" in found.to_text()
    assert found.to_json()["weak"] is True
    strong = dpmix.audit(
        {"data": NUMBER, "mechanism": {"kind": "binomial", "epsilon": 1.0, "trials": 1}},
        runs=10_000,
        confidence=LEVEL,
        quiet=True,
    )
    assert strong.consistent and not strong.weak
    assert strong.shown is not None and strong.shown > 1.0
    assert "planted: epsilon at least" in strong.to_text()


def test_synthetic_records_beyond_the_bounds_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.yaml"
    spec = {"data": NUMBER, "synthesis": {"kind": "pitman_yor", "delta": 0.3, "n": 15}}
    path.write_text(yaml.safe_dump(spec))
    asked = ["audit", str(path), "--runs", "200", "--confidence", str(LEVEL)]
    assert run(app, [*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["beyond_bounds"] is False
    monkeypatch.setattr("dpmix.synthesis.records._clamped", lambda values, bounds: (values, 0))
    assert run(app, asked) == 4
    out, err = capsys.readouterr()
    assert "NOT KEPT: values are not clamped" in out and "THE CLAIM IS DISPROVED" in out
    assert "records beyond the public bounds are released" in err


def test_a_mechanism_that_does_not_clamp_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dpmix.mechanisms.curators.mechanism.clamp", lambda kind, domain, values: (values, (0,))
    )
    spec = {"data": NUMBER, "mechanism": {"kind": "laplace", "epsilon": 1.0}}
    found = dpmix.audit(spec, runs=400, confidence=LEVEL, quiet=True)
    assert not found.consistent and found.bound > 2.0
    assert "far below" in found.neighbours
    assert found.shown is None


def test_what_does_not_depend_on_the_number_of_records_is_audited_with_few() -> None:
    counts = {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 3, "n": 10**8}
    found = dpmix.audit({"data": NUMBER, "mechanism": counts}, runs=200, confidence=LEVEL, quiet=True)
    assert (found.stated, found.consistent) == (10**8, True)
    assert found.records <= 1000
    assert "stated: 100,000,000, on which the guarantee does not depend" in found.to_text()
    found = dpmix.audit({"data": NUMBER, "synthesis": counts}, runs=200, confidence=LEVEL, quiet=True)
    assert found.records <= 1000 and found.stated == 10**8


def test_what_would_take_too_long_is_refused() -> None:
    of_all = {"kind": "smoothed_histogram", "epsilon": 1.0, "bins": 3, "draws": 2, "n": 10**8}
    with pytest.raises(UsageError, match="200 releases .* 100,000,000 records would take too long; audit"):
        dpmix.audit({"data": NUMBER, "mechanism": of_all}, runs=200, quiet=True)
    urn = {"kind": "pitman_yor", "delta": 0.1, "n": 10**5}
    with pytest.raises(UsageError, match=r"give --runs \d+ at most, or audit"):
        dpmix.audit({"data": NUMBER, "synthesis": urn}, runs=100_000, quiet=True)
