"""Scalars, warnings and the words of the guarantee."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpmix.laws.every import law_of
from dpmix.mechanisms.curators.by_kind import stated
from dpmix.release.sanitized import Release
from dpmix.results.nodes import Remark
from dpmix.spec import load_spec
from dpmix.summary.check.check_result import Check
from dpmix.summary.diagnostics import describe
from dpmix.summary.headline import NOT_YET, verdict_of
from dpmix.summary.remarks import convergence_remarks, release_remarks
from dpmix.summary.subject import done_and_guaranteed, epsilon_in_words, guarantee_briefly
from dpmix.summary.summary_result import Acceptance

NO_PROPOSALS = Acceptance(None, None)
LAPLACE = {"epsilon": 5.0, "delta": 0.0, "rho": float("nan"), "private": 1, "simulated": 0}


def chains(planned: int = 4, ids: tuple[int, ...] = (0, 1, 2, 3), kind: str = "laplace", **attrs):
    return SimpleNamespace(
        stated={"sampler": {"chains": planned}}.__getitem__,
        planned=planned,
        ids=np.asarray(ids),
        draws=1000,
        attrs={**LAPLACE, **attrs},
        mechanism=law_of({"kind": kind, "scale": [1.0]}),
        n=100,
        versions=("0.1.0",),
    )


def autoregression(rng: np.random.Generator, shape: tuple[int, int], r: float) -> np.ndarray:
    noise = rng.standard_normal(shape) * np.sqrt(1 - r**2)
    out = np.empty(shape)
    out[:, 0] = rng.standard_normal(shape[0])
    for t in range(1, shape[1]):
        out[:, t] = r * out[:, t - 1] + noise[:, t]
    return out


def test_independent_draws():
    series = 3.0 + 2.0 * np.random.default_rng(0).standard_normal((4, 5000))
    found = describe(series, 0.9)
    assert found.mean == pytest.approx(3.0, abs=0.06)
    assert found.sd == pytest.approx(2.0, abs=0.04)
    assert list(found.quantiles) == ["0.05", "0.5", "0.95"]
    assert list(found.quantiles.values()) == pytest.approx([3 - 3.29, 3.0, 3 + 3.29], abs=0.1)
    assert found.rhat == pytest.approx(1.0, abs=0.005)
    assert found.ess_bulk == pytest.approx(20_000, rel=0.1)
    assert found.ess_tail == pytest.approx(20_000, rel=0.1)
    assert found.mcse == pytest.approx(2.0 / np.sqrt(20_000), rel=0.1)
    assert found.note is None


def test_autocorrelated_draws_have_the_known_effective_size():
    r = 0.9
    found = describe(autoregression(np.random.default_rng(1), (4, 20_000), r), 0.95)
    exact = 80_000 * (1 - r) / (1 + r)
    assert found.ess_bulk == pytest.approx(exact, rel=0.1)
    assert found.mcse == pytest.approx(1 / np.sqrt(exact), rel=0.1)


def test_a_shifted_chain_is_found():
    series = np.random.default_rng(2).standard_normal((4, 1000))
    series[3] += 1.0
    assert describe(series, 0.95).rhat > 1.05


def test_a_chain_of_another_spread_is_found():
    series = np.random.default_rng(2).standard_normal((4, 1000))
    series[3] *= 3.0
    assert describe(series, 0.95).rhat > 1.05


@pytest.mark.parametrize("shape", [(1, 1), (1, 100), (4, 1), (4, 100)])
def test_constant_series(shape):
    found = describe(np.full(shape, 2.0), 0.95)
    assert (found.mean, found.sd, found.mcse) == (2.0, 0.0, 0.0)
    assert (found.rhat, found.ess_bulk, found.ess_tail) == (None, None, None)
    assert found.note == "the same in every draw"
    assert not found.stuck_apart


def test_chains_that_are_each_constant():
    found = describe(np.repeat([[1.0], [2.0]], 50, axis=1), 0.95)
    assert found.stuck_apart
    assert found.rhat is None


def test_two_values_whose_folds_are_constant():
    series = np.random.default_rng(3).integers(1, 3, (4, 500)).astype(float)
    series[:, ::2], series[:, 1::2] = 1.0, 2.0
    found = describe(series, 0.95)
    assert found.rhat == pytest.approx(1.0, abs=0.01)


def test_one_chain_and_few_draws():
    rng = np.random.default_rng(4)
    one = describe(rng.standard_normal((1, 500)), 0.95)
    assert one.rhat is None
    assert one.ess_bulk > 100
    assert one.note == "R-hat needs two chains"
    few = describe(rng.standard_normal((4, 3)), 0.95)
    assert (few.rhat, few.ess_bulk, few.ess_tail, few.mcse) == (None, None, None, None)
    assert "3 draws" in few.note


def remarks_of(series, acceptance=NO_PROPOSALS, **options):
    parameters = {name: describe(values, 0.95) for name, values in series.items()}
    return [remark.text for remark in convergence_remarks(parameters, acceptance, chains(**options))]


def test_nothing_to_remark_on_good_chains():
    good = np.random.default_rng(5).standard_normal((4, 1000))
    assert remarks_of({"mean": good}) == []
    assert remarks_of({"mean": good, "n_clusters": np.ones((4, 1000))}) == []


def test_high_rhat_is_named():
    series = np.random.default_rng(6).standard_normal((4, 4000))
    texts = remarks_of({"sd": series, "mean": series + [[0.0], [0.0], [0.0], [0.5]]})
    assert texts[0].startswith("R-hat is above 1.01 for mean (1.0")
    assert not any("sd" in text for text in texts)


def test_figures_are_told_from_the_limit_that_they_are_beyond():
    plain = describe(np.random.default_rng(6).standard_normal((4, 400)), 0.95)
    for rhat, ess, said in ((1.0104, 399.6, "1.0104 399.6"), (1.01004, 399.97, "1.01004 399.97")):
        found = {"a": replace(plain, rhat=rhat, ess_bulk=ess, ess_tail=900.0)}
        (text,) = [remark.text for remark in convergence_remarks(found, NO_PROPOSALS, chains())]
        assert all(f"a ({words})" in text for words in said.split())


@pytest.mark.parametrize(
    ("n", "changed", "said"),
    [
        (2000, {}, True),
        (1999, {}, False),
        (2000, {"sampler": {"kind": "private_slice"}}, False),
        (2000, {"summary": {"coclustering": True}}, False),
        (2000, {"model": {"kind": "mixture", "kernel": "normal", "discount": 0.2}}, False),
        (2000, {"mechanism": {"kind": "laplace", "epsilon": 80.0, "domain": [[0.0, 9.0]]}}, False),
        (9000, {"mechanism": {"kind": "laplace", "epsilon": 80.0, "domain": [[0.0, 9.0]]}}, True),
        (
            2000,
            {"mechanism": {"kind": "square_wave", "epsilon": 2.0, "cells": 64, "domain": [[0.0, 9.0]]}},
            True,
        ),
        (
            2000,
            {"mechanism": {"kind": "wavelet", "epsilon": 2.0, "levels": 3, "domain": [[0.0, 9.0]]}},
            False,
        ),
    ],
)
def test_the_sampler_on_counts_is_recommended_where_it_goes_and_mixes_faster(
    n: int, changed: dict[str, Any], said: bool
) -> None:
    spec = load_spec(
        {
            "mechanism": {"kind": "laplace", "epsilon": 4.0, "domain": [[0.0, 9.0]]},
            "model": {"kind": "mixture", "kernel": "normal"},
            "sampler": {"kind": "neal8", "store": ["allocations"]},
            **changed,
        }
    )
    assert spec.mechanism is not None
    given = chains()
    given.n, given.mechanism, given.run_spec = n, stated(spec.mechanism, 1)[0], spec
    given.stated = spec.model_dump().__getitem__
    low = describe(autoregression(np.random.default_rng(7), (4, 1000), 0.95), 0.95)
    (text, *_) = [remark.text for remark in convergence_remarks({"mean": low}, NO_PROPOSALS, given)]
    assert "times as many sweeps" in text
    assert text.endswith("sampler.store: [] takes the sampler counts, whose chains mix faster.") is said


def test_low_ess_is_named():
    rng = np.random.default_rng(7)
    slow, quick = autoregression(rng, (4, 1000), 0.95), rng.standard_normal((4, 1000))
    texts = remarks_of({"mean": slow, "sd": quick})
    (text,) = [text for text in texts if "bulk" in text.lower()]  # one cure, one line
    assert "ulk ESS is below 400 for mean (" in text
    assert "; tail ESS is below 400 for mean (" in text
    assert "times as many sweeps" in text
    assert not any("sd" in text for text in texts)


def test_stuck_and_single_and_missing_chains():
    rng = np.random.default_rng(8)
    (text,) = remarks_of(
        {"n_clusters": np.repeat([[1.0], [2.0]], 50, axis=1), "mean": rng.normal(size=(4, 1000))}
    )
    assert text.startswith("The chains are stuck, each at a value of its own, in n_clusters")
    texts = remarks_of({"mean": rng.standard_normal((1, 1000))}, ids=(2,))
    assert any(text.startswith("One chain alone") for text in texts)
    assert any("1 of the spec's 4 chains are here; missing: 0, 1 and 3." in text for text in texts)
    (text,) = remarks_of({"mean": rng.standard_normal((4, 3))})
    assert "too few for any diagnostic" in text


def test_too_few_draws_are_no_result():
    """One draw has no interval, and has taught nothing."""
    prior = np.random.default_rng(9).standard_normal(1000)
    for draws in (1, 3):
        single = np.zeros((1, draws)) + np.arange(draws)
        found = {"mean": describe(single, 0.95, prior)}
        assert found["mean"].contraction is None
        few = SimpleNamespace(**{**vars(chains(1, (0,))), "draws": draws})
        graves = {r.text: r.grave for r in convergence_remarks(found, NO_PROPOSALS, few)}
        what = "1 draw per chain is" if draws == 1 else "3 draws per chain are"
        assert graves[f"{what} too few for any diagnostic: convergence is unknown."] is True
        said = [Remark(text, convergence=True, grave=grave) for text, grave in graves.items()]
        verdict = verdict_of(found, Check("x", 0.5), remarks=said)
        assert verdict.answer == NOT_YET


def test_intervals_beyond_the_draws_are_told():
    series = np.random.default_rng(10).standard_normal((4, 1000))

    def told(level: float) -> list[str]:
        found = {"mean": describe(series, level)}
        texts = [remark.text for remark in convergence_remarks(found, NO_PROPOSALS, chains())]
        return [text for text in texts if "outermost" in text]

    assert told(0.95) == told(0.999) == []
    (text,) = told(0.9999)
    assert text == (
        "Intervals of summary.level 0.9999 leave out less than one of 4,000 draws at each end: their ends "
        "are the outermost draws, and hold less than they say; use a lower level, or 20,000 draws or more."
    )


@pytest.mark.parametrize(
    ("mean", "bound", "warned"),
    [
        (0.010, np.exp(-5), True),
        (0.400, np.exp(-5), False),
        (0.40, np.exp(-1), True),
        (0.96, np.exp(-0.1), False),  # at a bound of 0.9 nothing is wrong
        (0.010, None, False),
        (None, np.exp(-5), False),
    ],
)
def test_acceptance_near_its_bound(mean, bound, warned):
    good = np.random.default_rng(9).standard_normal((4, 1000))
    texts = remarks_of({"mean": good}, Acceptance(mean, bound))
    assert [text.startswith("Acceptance") for text in texts] == [True] * warned


@pytest.mark.parametrize(
    ("distance", "bias", "warned"),
    [(0.05, 0.0, True), (0.11, 0.0, False), (0.11, 0.0025, True), (0.6, 0.01, False)],
)
def test_a_release_that_says_nothing(distance, bias, warned):
    texts = [remark.text for remark in release_remarks(distance, bias, chains(epsilon=0.1))]
    assert [("says almost nothing at epsilon = 0.1" in text) for text in texts] == [True] * warned


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "none", "private": 0}, "No noise was added"),
        ({"private": 0, "simulated": 1}, "simulated data"),
        ({"private": 0}, "marked as not private"),
        ({"delta": 0.01}, "delta = 0.01 is not below 1/n"),
        ({"delta": 0.009}, None),
        ({"variance_ratio": "1.01"}, "run by an earlier version, whose posterior given synthetic records"),
        ({"variance_ratio": "1"}, None),
    ],
)
def test_what_the_release_is(options, words):
    remarks = release_remarks(0.5, 0.0, chains(**options))
    assert [words in remark.text for remark in remarks] == [True] * (words is not None)
    assert not any(remark.convergence for remark in remarks)


def test_chains_of_two_versions():
    mixed = chains()
    mixed.versions = ("0.1.0", "0.2.0")
    (remark,) = release_remarks(0.5, 0.0, mixed)
    assert "0.1.0 and 0.2.0" in remark.text


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({}, "epsilon = 5"),
        ({"delta": 1e-6}, "epsilon = 5 and delta = 1e-06"),
        ({"epsilon": float("nan"), "rho": 0.5}, "rho = 0.5"),
        ({"epsilon": float("nan")}, ""),
    ],
)
def test_epsilon_in_words(attrs, words):
    assert epsilon_in_words({**LAPLACE, **attrs}) == words


def test_guarantee_in_words():
    laplace = law_of({"kind": "laplace", "scale": [2.0]})
    text = done_and_guaranteed(LAPLACE, laplace, 272)
    assert text.startswith("Laplace noise of scale 2 was added to each of 272 records on its own.")
    assert "satisfies 5-differential privacy with respect to replacing any one record" in text
    gaussian = {**LAPLACE, "epsilon": 1.5, "delta": 1e-6, "rho": 0.04}
    text = done_and_guaranteed(gaussian, law_of({"kind": "gaussian", "scale": [3.0]}), 10)
    assert "(1.5, 1e-06)-differential privacy and 0.04-zero-concentrated differential privacy" in text
    for attrs in ({"private": 0, "simulated": 1}, {"private": 0}):
        text = done_and_guaranteed({**LAPLACE, **attrs}, laplace, 10)
        assert "protects nobody" in text
        assert "satisfies" not in text
    assert "not private" in done_and_guaranteed(LAPLACE, law_of({"kind": "none"}), 10)
    nothing = {**LAPLACE, "epsilon": float("nan"), "delta": float("nan")}
    assert done_and_guaranteed(nothing, laplace, 10).endswith("states no privacy guarantee.")


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (
            {"kind": "wavelet", "levels": 4, "scale": [3.0]},
            "Each of 272 records was released on its own as its Haar wavelet coefficients up to level 4, "
            "with Laplace noise of scale 3 added to each of them.",
        ),
        (
            {"kind": "binomial", "trials": 20, "weight": 0.125, "scale": []},
            "Each of 272 records was released on its own as the number of successes in 20 trials, whose "
            "probability is the record's place in the domain, drawn towards a half (weight 0.125).",
        ),
        (
            {"kind": "smoothed_histogram", "bins": 12, "draws": 30, "weight": 0.25, "scale": []},
            "30 draws from the histogram of 272 records over 12 bins, mixed with the uniform density "
            "(weight 0.25), were released for all of them together.",
        ),
        (
            {"kind": "perturbed_histogram", "bins": 9, "noise": "geometric", "scale": [0.4]},
            "Two-sided geometric noise of scale 0.4 was added to the counts of 272 records in 9 bins, which "
            "were released for all of them together.",
        ),
        (
            {"kind": "perturbed_histogram", "bins": 9, "noise": "gaussian", "scale": [0.4]},
            "Gaussian noise of scale 0.4 was added to the counts of 272 records in 9 bins, which were "
            "released for all of them together.",
        ),
        (
            {
                "kind": "log_moments",
                "components": 3,
                "threshold": 0.01,
                "parts": [68, 204],
                "scale": [0.3, 0.1],
            },
            "Laplace noise of scale 0.3, 0.1 was added to the mean logarithms of the compositions of 272 "
            "records in parts of 68 and 204, censored at 0.01, which were released for all of each part "
            "together.",
        ),
    ],
)
def test_what_each_mechanism_did(mechanism, words):
    text = done_and_guaranteed(LAPLACE, law_of({"domain": [[0.0, 1.0]]} | mechanism), 272)
    assert text.startswith(words + " The release satisfies 5-differential privacy")


def test_a_guarantee_without_a_proof_is_said_to_be_that() -> None:
    """To managers too, and of records drawn from a fit to such a release."""
    law: dict[str, Any] = {"kind": "posterior", "method": "hellinger", "prior": [1, 1, 1], "n": 9}
    law |= {"gamma": 0.1, "exponent_scale": 1.0, "bits": 40, "requested": {"epsilon": 5, "delta": 0.1}}
    drawn = {"kind": "synthetic", "generator": "posterior_predictive", "post_processing": "of a release"}
    drawn["columns"] = [{"name": "x", "categories": ["a", "b", "c"]}]
    for calibration in ("theorem", "certified"):
        source = law | {"calibration": calibration}
        for each in (source, drawn | {"source": source}):
            for say in (guarantee_briefly(LAPLACE, law_of(each)), law_of(each).done(9)):
                assert ("is not proved" in say) == (calibration == "theorem"), say


def test_a_guarantee_that_only_a_spec_states_is_said_to_be_that() -> None:
    """Of noise that another program drew nothing here vouches for it."""
    spec = {
        "release": {"path": "unread.csv", "columns": ["z"]},
        "mechanism": {"kind": "laplace", "epsilon": 5, "domain": [0, 1]},
    }
    law, guarantee = stated(load_spec(spec).mechanism, 1)
    made = law_of(law.stated() | {"stated": False})
    assert (law.elsewhere, made.elsewhere) == (True, False)
    words = ", as the spec states of a release made elsewhere"
    for each in (law, made):
        release = Release(np.zeros((3, 1)), ("z",), each, guarantee.epsilon, 0.0, guarantee.rho, 3)
        for text in (release.guarantee_in_words(), release.guaranteed(), guarantee_briefly(LAPLACE, each)):
            assert text.rstrip(".").endswith(words) == each.elsewhere
    assert "The release satisfies" in done_and_guaranteed(LAPLACE, made, 3)
    text = done_and_guaranteed(LAPLACE, law, 3)
    assert "As the spec states of a release made elsewhere, it satisfies 5-differential privacy" in text
