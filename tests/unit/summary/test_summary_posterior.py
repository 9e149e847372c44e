"""The summary of a released posterior: its figures, its expected errors, its files, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from scipy import stats

import dpmix
from dpmix.cli import commands
from dpmix.errors import DataError
from dpmix.models.multinomial.release_law import known_of
from dpmix.release.release_file import write_release
from dpmix.report.page import render_posterior
from dpmix.run import exit_codes
from dpmix.summary.posterior_result import (
    PosteriorSummary,
    _curve,
    _errors,
    dirichlet_distance,
    expected_errors,
    summarize_posterior,
)
from tests.helpers.fits import small_release
from tests.oracles import posteriors as oracle
from tests.unit.models.test_models_multinomial import CASES, exact, hellinger, noisy

LIMIT = 4.5  # Monte Carlo standard errors, of some 20 figures: a right one fails with probability 2e-4


def test_distances_are_those_of_the_definition() -> None:
    prior, x, r = (0.5, 3.0, 1.0), (4, 0, 2), (1, 3, 2)
    found = dirichlet_distance(np.array(prior) + x, np.array(prior) + r)
    assert found == pytest.approx(oracle.hellinger(prior, x, r))
    assert dirichlet_distance(np.array(prior), np.array(prior)) == 0.0


@pytest.mark.parametrize("case", ["two", "three", "laplace of three", "geometric"])
def test_expected_errors_are_those_of_all_outcomes(case: str) -> None:
    release = CASES[case][0]
    known = known_of(release)
    counts = (4, 8) if release.n == 12 else (2, 5, 1)
    rows = np.repeat(np.array([counts]), 4000, axis=0)
    errors = expected_errors(known, rows, np.random.default_rng(1))
    prior = tuple(release.mechanism["prior"])
    if case in ("two", "three"):
        made = release.mechanism
        rate = made["exponent_scale"] / oracle.smooth_sensitivity(prior, counts, made["gamma"])
        apart = np.array(
            [oracle.hellinger(prior, counts, r) for r in oracle.databases(release.n, len(prior))]
        )
        mean = float(np.average(apart, weights=np.exp(-rate * apart)))
    elif case == "geometric":  # noise of scale 2 on the first count, clipped to [0, 12]
        noise = np.arange(-80, 81)
        chosen = np.clip(4 + noise, 0, 12)
        apart = np.array([oracle.hellinger(prior, counts, (c, 12 - c)) for c in chosen.tolist()])
        mean = float(np.average(apart, weights=np.exp(-np.abs(noise) / 2.0)))
    else:
        rng = np.random.default_rng(2)
        chosen = [nearest(row) for row in rng.laplace(counts, 1.5, (4000, 3))]
        mean = float(np.mean([oracle.hellinger(prior, counts, tuple(c)) for c in chosen]))
        assert abs(errors.mean() - mean) < LIMIT * errors.std() * np.sqrt(2 / 4000)
        return
    if case == "two":
        assert errors == pytest.approx(mean, rel=1e-3)  # no simulation, but for the rounded sensitivity
    else:
        assert abs(errors.mean() - mean) < LIMIT * errors.std() / np.sqrt(4000) + 1e-3 * mean


def test_of_two_categories_errors_are_sums_over_all_counts() -> None:
    release = CASES["two"][0]
    known, n = known_of(release), release.n
    rows = np.array([(c, n - c) for c in range(n + 1)])
    errors = expected_errors(known, rows, np.random.default_rng(1))
    found = {one.about: one for one in _errors(known, None, np.random.default_rng(1))}
    prior = found["averaged over the prior"]
    weights = stats.betabinom(n, *known.prior).pmf(rows[:, 0])
    assert (prior.mean, prior.mcse) == (pytest.approx(np.sum(weights * errors)), 0.0)
    shares, curve = _curve(known, np.random.default_rng(1)) or ((), ())
    assert shares == pytest.approx(rows[:, 0] / n) and curve == pytest.approx(errors)


def nearest(noisy_counts: np.ndarray) -> np.ndarray:
    """Return the nearest counts of 8 records, by bisection of what is taken off."""
    low, high = noisy_counts.min() - 8, noisy_counts.max()
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(noisy_counts - middle, 0).sum() > 8 else (low, middle)
    return np.maximum(noisy_counts - low, 0)


def test_figures_of_the_released_posterior_and_of_what_it_says() -> None:
    release, prior = CASES["two"]
    summary = summarize_posterior(release, level=0.9)
    first = summary.shares[0]
    law = stats.beta(4, 10)
    assert (first.mean, first.sd) == pytest.approx((law.mean(), law.std()))
    assert (first.lower, first.upper) == pytest.approx(tuple(law.ppf([0.05, 0.95])))
    np.testing.assert_allclose(first.density, law.pdf(first.grid))
    np.testing.assert_allclose(first.prior_density, 1.0)
    assert first.prior_mean == 0.5
    assert summary.hellinger_from_prior == pytest.approx(
        dirichlet_distance(np.ones(2), np.array([4.0, 10.0]))
    )
    posterior = exact(release, prior)
    assert first.accounted is not None
    mean = sum(p * (1 + c[0]) / 14 for c, p in posterior.items())
    assert first.accounted.mean == pytest.approx(mean, abs=LIMIT * first.accounted.sd / np.sqrt(4000))
    curve = sum(p * stats.beta(1 + c[0], 1 + c[1]).pdf(first.grid) for c, p in posterior.items())
    np.testing.assert_allclose(first.accounted.density, curve, atol=0.25)  # 4000 draws of the counts
    inside = np.trapezoid(first.accounted.density, first.grid)
    assert first.accounted.beyond == pytest.approx(1 - inside, abs=1e-4)
    for error, truth in zip(summary.errors, ({(3, 9): 1.0}, None, posterior), strict=True):
        assert 0 < error.mean < 1
        if truth is posterior:
            wanted = sum(p * oracle.hellinger(prior, c, (3, 9)) for c, p in posterior.items())
            assert abs(error.mean - wanted) < LIMIT * error.mcse
    assert summary.curve is not None
    assert summary.curve[0].tolist() == [k / 12 for k in range(13)]
    again = summarize_posterior(release, level=0.9)
    assert again.to_json() == summary.to_json()
    assert render_posterior(again) == render_posterior(summary)


def test_what_lies_far_from_the_release_is_told() -> None:
    """There are many counts far away, each of which releases what was released with a small probability."""
    far = summarize_posterior(hellinger((1.0, 1.0), (170, 130), exponent=1.0, gamma=0.05))
    accounted = far.shares[0].accounted
    assert accounted is not None
    assert 0.005 < accounted.beyond < 0.2
    (said,) = (text for text in far.warnings if "where its picture ends" in text)
    assert f"{100 * accounted.beyond:.1f}% of the probability" in said
    assert f"{100 * accounted.beyond:.1f}% of its probability lies beyond the picture" in render_posterior(
        far
    )
    near = summarize_posterior(hellinger((1.0, 1.0), (170, 130), exponent=8.0))
    assert not any("where its picture ends" in text for text in near.warnings)


def test_too_many_counts_to_list_leave_accounting_to_a_fit() -> None:
    summary = summarize_posterior(hellinger((1.0,) * 4, (30, 20, 10, 5), exponent=2.0))
    assert all(share.accounted is None for share in summary.shares)
    assert len(summary.errors) == 2 and summary.curve is None
    assert "accounted" not in summary.to_text()
    assert "takes dpmix fit" in render_posterior(summary)
    json.dumps(summary.to_json(), allow_nan=False)


def test_noise_that_leaves_a_count_at_zero() -> None:
    summary = summarize_posterior(noisy((1.0, 1.0, 1.0), 8, (-3.0, 4.0, 7.5), 1.5))
    assert summary.posterior[0] == 1.0
    assert summary.to_json()["parameters"]["p[1]"]["lower"] >= 0.0
    assert "Laplace noise of scale 1.5 on the counts" in summary.guarantee


@pytest.fixture
def released(tmp_path: Path) -> Path:
    release = CASES["two"][0]
    named = release.mechanism.updated(categories=["no <b>", "yes $x$"])
    write_release(tmp_path / "r.h5", dataclasses.replace(release, mechanism=named))
    return tmp_path / "r.h5"


def run(*arguments: Any) -> int:
    return exit_codes.run(commands.app, [str(argument) for argument in arguments])


def test_summarize_takes_a_release_file(released: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = released.parent
    assert run("summarize", released, "-o", folder / "s.h5", "--report", folder / "s.html") == 0
    out, err = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= 96 + 20  # a table is as wide as its names
    assert "p[no <b>]" in out and "Expected Hellinger distance" in out and "wrote" in err
    page = (folder / "s.html").read_text("utf-8")
    assert "no &lt;b&gt;" in page and "<b>" not in page.replace("&lt;b&gt;", "")
    assert run("summarize", released, "--json", "--set", "summary.level=0.5") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "posterior" and found["level"] == 0.5
    assert found["posterior"] == [4.0, 10.0] and found["categories"] == ["no <b>", "yes $x$"]
    assert set(found["expected_hellinger"]) == {"at_release", "prior", "of_release", "curve"}
    with xarray.open_datatree(folder / "s.h5", engine="h5netcdf") as tree:
        assert tree.attrs["kind"] == "posterior" and tree.attrs["n"] == 12
        assert tree["parameters"]["posterior"].values.tolist() == [4.0, 10.0]
        assert tree["density"]["mean"].dims == ("category", "point")
        assert tree["expected_hellinger"]["curve"].shape == (13,)
    assert run("summarize", released, "-o", folder / "s.h5") == 2  # never overwritten
    assert run("summarize", released, "-o", released, "--force") == 2
    assert isinstance(dpmix.summarize(released), PosteriorSummary)
    capsys.readouterr()
    assert run("summarize", released, "--require-convergence") == 2
    assert "--require-convergence is about chains" in capsys.readouterr().err
    assert run("summarize", released, "--set", "summary.grid=[0, 1, 5]") == 2
    assert "takes summary.level alone" in capsys.readouterr().err


def test_other_release_files_are_no_posteriors(released: Path) -> None:
    other = released.parent / "other.h5"
    write_release(other, small_release())
    with pytest.raises(DataError, match="is a release by laplace, and only a released posterior"):
        dpmix.summarize(other)
    with pytest.raises(DataError, match="a release file, not a chains file"):
        dpmix.summarize([released, other])
