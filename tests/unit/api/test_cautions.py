"""What a curator is told before anything is drawn or entered, and what needs a yes."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.api.cautions import MOST_EPSILON, of_columns, of_release, of_synthetic_columns
from dpmix.api.privatize import steps
from dpmix.api.spending import Entering
from dpmix.api.synthesize import steps as synthesize_steps
from dpmix.cli.commands import app
from dpmix.errors import PrivacyError
from dpmix.laws.additive import noise_sd, noise_variance
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.privacy.noise import AdditiveNoise, GeometricNoise
from dpmix.spec import load_spec
from dpmix.spec.describe import cells_of_rounded, cells_of_whole_numbers
from dpmix.store.ledger_file import read_ledger

N = 200


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(3)
    rows = zip(rng.uniform(0, 10, N).round(3), rng.integers(1, 4, N), rng.integers(1, 3, N), strict=True)
    (folder / "d.csv").write_text("x,f,y\n" + "".join(f"{x},{f},{y}\n" for x, f, y in rows))
    return folder / "d.csv"


def spec_of(data: Path, mechanism: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    own = {} if mechanism is None else {"mechanism": mechanism}
    columns: dict[str, Any] = {"columns": ["x"], "domain": [[0, 10]]}
    if mechanism is not None and mechanism["kind"] == "noisy_counts":
        columns = {"columns": ["f", "y"]}
    return {"data": {"path": str(data)} | columns} | own | sections


ASKING: dict[str, tuple[dict[str, Any], str]] = {
    "epsilon": ({"kind": "laplace", "epsilon": 100.5}, "epsilon = 100.5 is above 100"),
    "weight": ({"kind": "binomial", "trials": 900, "weight": 0.5}, r"epsilon = 988\.752 is above 100"),
    "rho": ({"kind": "gaussian", "rho": 50.0}, r"epsilon = 100\.\d+ \(rho = 50, at delta = 1e-06\) is above"),
    "delta": ({"kind": "gaussian", "epsilon": 1.0, "delta": 0.51}, r"delta = 0\.51\d* is above 0\.5"),
    "cells": (
        {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 80},
        "80 cells with noise of standard deviation 2.828 each add up to 226, more than the 200 records",
    ),
    "geometric": (
        {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 80, "noise": "geometric"},
        r"80 cells with noise of standard deviation 2\.\d+ each",
    ),
    "counts": (
        {"kind": "noisy_counts", "epsilon": 0.05, "levels": [3], "classes": 2},
        "6 cells with noise of standard deviation 56.57 each add up to 339, more than the 200 records",
    ),
}


@pytest.mark.parametrize(("mechanism", "message"), ASKING.values(), ids=ASKING)
def test_a_yes_is_asked_for_before_anything_is_drawn_or_entered(
    mechanism: dict[str, Any],
    message: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = spec_of(data, mechanism)
    ledger = tmp_path / "ledger.json"
    for call in (
        lambda: dpmix.privatize(spec, tmp_path / "r.h5", ledger=ledger, new_ledger=True),
        lambda: dpmix.privatize(spec, tmp_path / "r.h5", ledger=ledger, new_ledger=True, quiet=True),
        lambda: steps(load_spec(spec)),  # a dry run
    ):
        with monkeypatch.context() as patch:
            patch.setattr(os, "urandom", lambda size: pytest.fail("a random byte was drawn"))
            with pytest.raises(PrivacyError, match=f"{message}.*; nothing was drawn: .*--yes") as caught:
                call()
        assert caught.value.exit_code == 4
        assert "warning: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [data.parent]
    assert steps(load_spec(spec), Entering(yes=True))
    entering = {"ledger": ledger, "new_ledger": True, "yes": True}
    made = dpmix.privatize(spec, tmp_path / "r.h5", **entering, quiet=True)
    assert made.n == N
    assert "warning: " in capsys.readouterr().err
    assert len(read_ledger(ledger).entries) == 2


WARNING: dict[str, tuple[dict[str, Any], str]] = {
    "limit": ({"kind": "laplace", "epsilon": 100.0}, ""),
    "delta": ({"kind": "gaussian", "epsilon": 1.0, "delta": 0.005}, "is not below 1/n = 0.005"),
    "small delta": ({"kind": "gaussian", "epsilon": 1.0, "delta": 0.0049}, ""),
    "scale": (
        {"kind": "laplace", "scale": 5.0},
        "stated by its scale alone, and what that guarantees follows",
    ),
    "cells": ({"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 70}, ""),
    "counts": ({"kind": "noisy_counts", "epsilon": 0.09, "levels": [3], "classes": 2}, ""),
}


@pytest.mark.parametrize(("mechanism", "message"), WARNING.values(), ids=WARNING)
def test_other_warnings_only_warn(
    mechanism: dict[str, Any], message: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A delta of 1/n or more, and a scale alone; at the limits nothing."""
    spec = spec_of(data, mechanism)
    steps(load_spec(spec))
    planned = capsys.readouterr().err
    dpmix.privatize(spec, quiet=True)
    said = capsys.readouterr().err
    assert planned == said
    assert (message in said) if message else said == ""


def test_warnings_come_before_the_release(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(AdditiveNoise, "add", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        dpmix.privatize(spec_of(data, {"kind": "gaussian", "epsilon": 1.0, "delta": 0.1}))
    assert "somebody's record verbatim" in capsys.readouterr().err


def test_a_ledger_without_a_budget_is_said(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = spec_of(data, {"kind": "laplace", "epsilon": 1.0})
    ledger = tmp_path / "l.json"
    said = f"{ledger} has no budget for data: what is spent is counted, and nothing is ever refused"
    dpmix.privatize(spec, ledger=ledger, dataset="data", new_ledger=True, quiet=True)
    assert said in capsys.readouterr().err
    steps(load_spec(spec | {"privacy": {"ledger": str(ledger), "dataset": "data"}}))
    assert said in capsys.readouterr().err
    budgeted = spec | {"privacy": {"ledger": str(ledger), "dataset": "data", "budget": {"epsilon": 5.0}}}
    for _ in range(2):
        dpmix.privatize(budgeted, quiet=True)
        dpmix.privatize(spec, ledger=ledger, dataset="data", quiet=True)  # the ledger has the budget now
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("mechanism", [mechanism for mechanism, _ in ASKING.values()], ids=ASKING)
def test_simulated_data_need_no_yes(mechanism: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    spec: dict[str, Any] = {"data": {"simulate": "three_gaussians", "n": 100, "seed": 1, "domain": [-10, 10]}}
    if mechanism["kind"] == "noisy_counts":
        spec = {"data": {"simulate": "naive_bayes", "n": 100, "seed": 1}}
        mechanism = mechanism | {"levels": [3] * 5, "classes": 5}
    made = dpmix.privatize(spec | {"mechanism": mechanism})
    assert made.simulated
    assert "warning: " in capsys.readouterr().err
    dpmix.privatize(spec | {"mechanism": mechanism}, quiet=True)
    assert capsys.readouterr().err == ""


SYNTHESIS: dict[str, tuple[dict[str, Any], str, bool]] = {
    "perturbed": (
        {"kind": "perturbed_histogram", "bins": 80, "epsilon": 1.0},
        "80 cells with noise of standard deviation 2.828 each add up to 226, more than the 200 records",
        True,
    ),
    "smoothed": (
        {"kind": "smoothed_histogram", "bins": 80, "epsilon": 1.0, "delta": 1e-4},
        "80 cells with noise of standard deviation ",
        True,
    ),
    "verbatim": (
        {"kind": "pitman_yor", "concentration": 1.0, "records": 20},
        "republishes records verbatim: one that nobody shares is released with probability 0.091",
        False,
    ),
    "delta": (
        {"kind": "pitman_yor", "concentration": 1.0, "records": 300},
        "is above 0.5: more likely than not, nothing is guaranteed",
        True,
    ),
}


@pytest.mark.parametrize(("synthesis", "message", "asks"), SYNTHESIS.values(), ids=SYNTHESIS)
def test_synthesis_says_it_before_too(
    synthesis: dict[str, Any], message: str, asks: bool, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = spec_of(data, synthesis=synthesis)
    dpmix.calibrate(spec)
    assert message in capsys.readouterr().err
    if asks:
        with pytest.raises(PrivacyError, match=f"{message}.*--yes"):
            dpmix.synthesize(spec, quiet=True)
    assert dpmix.synthesize(spec, quiet=True, yes=True).n == N
    assert capsys.readouterr().err.count(message) == 1 + asks


def test_the_five_columns_of_the_issue_are_asked_about(tmp_path: Path) -> None:
    """1,280 cells and 1,000 records, whose mean income was 31,963 and came out as 75,596."""
    rng = np.random.default_rng(0)
    incomes = rng.gamma(2, 16_000, 1000).round()
    rows = [
        f"{16 + i % 74},{y:.0f},{'abcde'[i % 5]},{'fm'[i % 2]},{'yn'[i // 2 % 2]}"
        for i, y in enumerate(incomes)
    ]
    (tmp_path / "d.csv").write_text("\n".join(["age,income,job,sex,own", *rows]) + "\n")
    data = {
        "path": str(tmp_path / "d.csv"),
        "columns": ["age", "income", "job", "sex", "own"],
        "domain": {"age": [16, 90], "income": [0, 200_000]},
        "categories": {"job": list("abcde"), "sex": ["f", "m"], "own": ["y", "n"]},
    }
    spec = {"data": data, "synthesis": {"kind": "perturbed_histogram", "bins": 8, "epsilon": 1.0}}
    with pytest.raises(PrivacyError, match=r"1,280 cells .* add up to 3,620, more than the 1,000 records"):
        dpmix.synthesize(spec, quiet=True)


@pytest.mark.parametrize("noise", ["laplace", "geometric", "gaussian"])
@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0])
def test_standard_deviations_are_those_of_the_noise(noise: str, scale: float) -> None:
    """Against 4,096 draws of the real samplers; false alarm below 1e-6."""
    if noise == "geometric":
        drawn = GeometricNoise(scale, 2, 4096).add(np.zeros(4096, dtype=np.int64))
        k = np.arange(1, 4000)
        mass = np.exp(-k / scale)
        exact = math.sqrt(float(2 * (k**2 * mass).sum() / (1 + 2 * mass.sum())))
        assert noise_sd(noise, scale) == pytest.approx(exact, rel=1e-12)
    else:
        drawn = AdditiveNoise(noise, scale, 1.0).add(np.zeros(4096))  # type: ignore[arg-type]
    assert noise_sd(noise, scale) == pytest.approx(float(np.std(drawn)), rel=0.2)
    assert noise_sd("geometric", 1e-12) < 1e-300
    assert noise_variance("geometric", 1.2e-3) < 1e-300  # whose sinh has no square in doubles


def test_the_limit_is_above_a_hundred(data: Path) -> None:
    for epsilon, asks in ((MOST_EPSILON, False), (math.nextafter(MOST_EPSILON, 200), True)):
        section = load_spec(spec_of(data, {"kind": "laplace", "scale": 10 / epsilon})).mechanism
        mechanism = from_spec(section, 1)
        assert mechanism.guarantee.epsilon == pytest.approx(epsilon, rel=1e-12)
        found = of_release(mechanism, N)
        assert any(each.asks for each in found) is (mechanism.guarantee.epsilon > MOST_EPSILON) or asks


def test_without_n_it_is_said_from_which_number_on(capsys: pytest.CaptureFixture[str]) -> None:
    mechanism = {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 80, "domain": [0, 1]}
    dpmix.calibrate({"mechanism": mechanism})
    assert (
        "add up to 226: with fewer records than that, the release is mostly noise" in capsys.readouterr().err
    )
    dpmix.calibrate({"mechanism": {"kind": "gaussian", "epsilon": 1.0, "delta": 0.01, "domain": [0, 1]}})
    assert "with more than 99 records, delta = 0.01 is 1/n or more" in capsys.readouterr().err
    dpmix.calibrate({"mechanism": mechanism}, quiet=True)
    assert capsys.readouterr().err == ""


def of_bounds(pair: list[Any], types: Any = None, **model: Any) -> list[str]:
    own = {"kind": "linear_regression"} | model
    spec = {
        "data": {"path": "d.csv", "columns": ["age", "sex", "y"], **({"types": types} if types else {})},
        "mechanism": {"kind": "clamped_moments", "bounds": [[18, 90], pair, [0, 1]], "epsilon": 1.0},
        **({} if model.get("kind") == "" else {"model": own}),
    }
    return [each.text for each in of_columns(load_spec(spec))]


def test_predictors_that_may_lie_at_their_bounds_alone_are_told_of() -> None:
    (text,) = of_bounds([0, 1])
    assert text.startswith("note: sex has bounds [0, 1]: where its values are 0 and 1 alone, slopes and")
    assert "take model.predictors: clamped, or a release with bounds wide of the values" in text
    assert of_bounds([0, 1], kind="") == [text]  # the curator's spec, without a model
    assert of_bounds([0, 1], response="truncated") == [text]
    assert "[1, 2]: as its values are 1 and 2 alone" in of_bounds([1, 2], {"sex": "integer"})[0]
    for pair, types in (
        ([-1, 2], None),
        ([0, 7], {"sex": "integer"}),
        ([0.5, 1.5], None),
        ([0, 1], {"sex": {"digits": 2}}),  # a share
        (["2020-01-01", "2020-01-02"], None),
    ):
        assert of_bounds(pair, types) == []


def of_bins(pair: list[Any], bins: int, kind: Any = None) -> list[str]:
    spec = {
        "data": {"path": "d.csv", "column": "score", "domain": pair}
        | ({"types": {"score": kind}} if kind else {}),
        "mechanism": {"kind": "perturbed_histogram", "bins": bins, "epsilon": 1.0},
    }
    return cells_of_whole_numbers(load_spec(spec))


def test_bins_that_do_not_hold_as_many_whole_numbers_each_are_told_of() -> None:
    """Records may lie anywhere in their bin: Poisson(4) in 16 bins of [0, 20] has a mean of 4.13."""
    (text,) = of_bins([0, 20], 16)
    assert text.startswith("note: where values of score are whole numbers, bins of 1.25 do not hold as many")
    assert text.endswith("off by up to 0.5; data.types: {score: integer} lets fits know")
    assert of_bins([0, 100], 7)[0].startswith("note: ")
    (text,) = of_bins([0, 20], 24, "integer")  # some hold none
    assert text.startswith("warning: values of score are whole numbers: bins of 0.833333 do not hold as many")
    assert text.endswith("off by up to 0.416667; data.domain: [-0.5, 20.5] in 21 bins does")
    for pair, bins, kind in (
        ([0, 20], 16, "integer"),  # each bin is what it holds
        ([0, 20], 20, "integer"),
        ([-0.5, 20.5], 16, "integer"),
        ([1, 5], 3, "integer"),
        ([0, 100], 7, "integer"),
        ([-0.5, 20.5], 21, "integer"),
        ([-0.5, 99.5], 20, "integer"),
        ([0, 100_000], 50, "integer"),  # dollars
        ([0, 20], 16, {"digits": 1}),
        ([1, 6], 24, None),
        ([0, 10], 70, "integer"),
        ([0.2, 0.9], 2, "integer"),  # holds none
        ([0, 0.5], 16, None),
        (["2020-01-01", "2020-01-09"], 4, None),
        (["2020-01-01", "2020-01-20"], 4, "integer"),
    ):
        assert of_bins(pair, bins, kind) == []


def test_bins_of_dates_are_told_of_like_those_of_whole_numbers() -> None:
    """Of 14 days from the 1st on it holds the 1st to the 14th, and not its end."""
    (text,) = of_bins(["2024-01-01", "2024-12-30"], 26)
    assert text.startswith(
        "note: where values of score are whole days, bins of 14 do not hold as many of them"
    )
    assert text.endswith("off by up to 0.5; data.types: {score: integer} lets fits know")
    (text,) = of_bins(["2020-01-01", "2020-01-20"], 40, "integer")
    assert text.startswith(
        "warning: values of score are whole days: bins of 0.475 do not hold as many of them"
    )
    assert text.endswith("off by up to 0.2375; fewer bins, with one of these in each, do")


def of_rounded(pair: list[Any], bins: int, kind: Any = None, n: int | None = None) -> list[str]:
    data = {"path": "d.csv", "column": "score", "domain": pair} | ({"types": {"score": kind}} if kind else {})
    mechanism = {"kind": "perturbed_histogram", "bins": bins, "epsilon": 1.0}
    return cells_of_rounded(load_spec({"data": data, "mechanism": mechanism}), n)


def test_bins_that_begin_at_round_numbers_are_told_of() -> None:
    """Ages that people round to five lie at the lower end of bins of five years from 0 on."""
    (text,) = of_rounded([0, 100], 20)
    assert text == (
        "note: where values of score are rounded to 5, they lie where bins begin, and mean and quantiles of "
        "a fit are too high by up to 2.5; data.domain: [-2.5, 102.5] in 21 bins has them in the middle"
    )
    (text,) = of_rounded([0, 100], 20, "integer", 20_000)  # a bin holds 5 to 9
    assert "too high by up to 2; data.domain: [-2.5, 102.5] in 21 bins" in text
    assert of_rounded([0, 100], 20, {"digits": 0}, 20_000) == [text]  # are whole numbers, too
    assert "rounded to 5000" in of_rounded([0, 200_000], 40)[0]
    assert "rounded to 0.05" in of_rounded([1.4, 2.2], 16)[0]
    assert "rounded to 2.5e-06" in of_rounded([0, 1e-4], 40)[0]
    for pair, bins, kind, n in (
        ([-2.5, 102.5], 21, None, None),
        ([0, 100], 20, "integer", 1_000),  # hidden by what so few records leave open
        ([0, 100], 100, "integer", None),  # one number each
        ([0, 100], 7, None, None),
        ([0, 120], 30, None, None),  # of 4
        ([2, 102], 20, None, None),
        (["2020-01-01", "2020-01-11"], 10, None, None),
    ):
        assert of_rounded(pair, bins, kind, n) == []


def test_cells_of_whole_numbers_begin_with_the_first_that_they_hold() -> None:
    """Of [-0.5, 99.5] and of [0, 99], too, 20 bins hold 0 to 4, 5 to 9, .., 95 to 99."""
    for pair in ([-0.5, 99.5], [0, 99]):
        (text,) = of_rounded(pair, 20, "integer")
        assert "rounded to 5, they lie where bins begin" in text and "too high by up to 2;" in text
        assert text.endswith("data.domain: [-2.5, 102.5] in 21 bins has them in the middle")
        assert of_rounded(pair, 20) == []


def of_synthetic(n: int | None = None, **section: Any) -> list[str]:
    data = {
        "path": "d.csv",
        "columns": ["score", "age", "sex", "born", "state"],
        "domain": {
            "score": [0, 100],
            "age": [0, 100],
            "born": ["2020-01-01", "2020-01-11"],
            "state": [0, 50],
        },
        "categories": {"sex": ["f", "m"]},
        "types": {"age": "integer", "state": "category"},
    }
    synthesis = {"kind": "perturbed_histogram", "epsilon": 1.0, "records": 5} | section
    spec = load_spec({"data": data, "synthesis": synthesis})
    return [each.text for each in of_synthetic_columns(spec, n)]


def test_bins_of_synthetic_records_that_begin_at_round_numbers_are_told_of() -> None:
    whole, real, rounded = of_synthetic(bins=[20, 20, 10])
    assert whole == (
        "note: where values of score are whole numbers, draws from bins of 5 are not, and mean and quantiles "
        "of synthetic records are off by up to 0.5; data.types: {score: integer} has whole numbers drawn"
    )
    assert "score are rounded to 5, they lie where bins begin" in real and "too high by up to 2.5;" in real
    assert rounded == (
        "note: where values of age are rounded to 5, they lie where bins begin, and mean and quantiles of "
        "synthetic records are too high by up to 2; data.domain: {age: [-2.5, 102.5]} in 21 bins has them in "
        "the middle, and synthesis.ranges: [{age: [0, 100]}] keeps records within"
    )
    tens = [text for text in of_synthetic() if "rounded to 10" in text]  # 10 bins where none are stated
    assert len(tens) == 2 and "of age " in tens[1] and "up to 4.5;" in tens[1]
    assert of_synthetic(bins=[5, 5, 10])[:-1] == [whole.replace("of 5 are", "of 20 are")]  # of 20 years
    assert of_synthetic(bins=[7, 101, 10])[:-1] == [whole.replace("5 are", "14.2857 are")]  # one number a bin
    assert of_synthetic(50, bins=[20, 20, 10]) == [whole]  # hidden by what so few records leave open
    (fewer,) = of_synthetic(bins=[20, 10], snap={"score": {"step": 5}})  # points are no bins
    assert fewer == rounded
    for section in ({"kind": "pitman_yor", "records": 5, "epsilon": None}, {"snap": {"step": 5}}):
        assert of_synthetic(**section) == []
    for kind in ("dirichlet_multinomial", "smoothed_histogram"):
        assert of_synthetic(kind=kind, bins=[20, 20, 10]) == [whole, real, rounded]


def test_what_synthetic_records_would_be_off_by_is_said_before_anything_is_entered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the ages are rounded to five: their mean is too high in the bins that are told of alone."""
    ages = np.random.default_rng(1).poisson(38, 4000)
    ages[::2] = 5 * np.rint(ages[::2] / 5)
    (tmp_path / "d.csv").write_text("age\n" + "\n".join(map(str, ages)))
    data = {"path": str(tmp_path / "d.csv"), "column": "age", "domain": [0, 100], "types": {"age": "integer"}}
    spec: dict[str, Any] = {
        "data": data,
        "synthesis": {"kind": "perturbed_histogram", "bins": 20, "epsilon": 8.0, "records": 20_000},
    }
    (tmp_path / "s.yaml").write_text(json.dumps(spec))
    for call in (
        lambda: synthesize_steps(load_spec(spec)),
        lambda: dpmix.calibrate(spec),
        lambda: app(["validate", str(tmp_path / "s.yaml")], standalone_mode=False),
    ):
        call()
        assert capsys.readouterr().err.count("note: where values of age are rounded to 5") == 1
    off = dpmix.synthesize(spec).values.mean() - ages.mean()
    said = capsys.readouterr().err
    assert 0.7 < off < 1.3 and "note: where values of age are rounded to 5" in said
    spec["data"] |= {"domain": [-2.5, 102.5]}
    spec["synthesis"] |= {"bins": 21, "ranges": [{"age": [0, 100]}]}
    values = dpmix.synthesize(spec).values
    assert abs(values.mean() - ages.mean()) < 0.35 and values.min() >= 0.0
    assert "rounded" not in capsys.readouterr().err


def test_cells_of_wavelets_are_told_of_like_bins() -> None:
    own = {"path": "d.csv", "column": "score", "domain": [0, 100]}
    mechanism = {"kind": "wavelet", "levels": 3, "epsilon": 1.0}

    def told(kind: str | None, levels: int) -> list[str]:
        data = own | ({"types": {"score": kind}} if kind else {})
        spec = load_spec({"data": data, "mechanism": mechanism | {"levels": levels}})
        return cells_of_whole_numbers(spec)

    (text,) = told(None, 3)
    assert text.startswith("note: where values of score are whole numbers, cells of 6.25 do not hold as many")
    assert text.endswith("off by up to 0.5; data.types: {score: integer} lets fits know")
    assert told("integer", 3) == []
    (text,) = told("integer", 7)
    assert text.endswith("off by up to 0.195312; fewer mechanism.levels, with one of these in each, do")


def test_predictors_are_told_of_before_anything_is_entered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.csv").write_text("x,y\n" + "0,3\n1,5\n" * 20)
    spec = {
        "data": {"path": str(tmp_path / "d.csv"), "columns": ["x", "y"]},
        "mechanism": {"kind": "clamped_moments", "bounds": [[0, 1], [0, 9]], "epsilon": 1.0},
    }
    (tmp_path / "s.yaml").write_text(json.dumps(spec))
    for call in (
        lambda: steps(load_spec(spec)),
        lambda: dpmix.calibrate(spec),
        lambda: dpmix.privatize(spec),
        lambda: app(["validate", str(tmp_path / "s.yaml")], standalone_mode=False),
    ):
        call()
        assert capsys.readouterr().err.count("note: x has bounds [0, 1]: where its values") == 1


def test_bins_that_weaken_correlations_are_told_of() -> None:
    *_, told = of_synthetic(bins=[5, 5, 10])
    assert told == (
        "note: draws fill bins evenly, and how columns go together within bins is lost: where the standard "
        "deviations of score and age are a tenth of their bounds, the correlation of their draws is 60% of "
        "theirs, whatever epsilon is; more bins keep more of it, under more noise"
    )
    lost = "how columns go together"
    assert "of age and born are" in of_synthetic(bins=[20, 5, 5])[-1]  # those with the widest bins
    assert "86% of theirs" in of_synthetic(bins=[7, 101, 11])[-1]  # the other columns have a value a bin
    assert not any(lost in text for text in of_synthetic(bins=[20, 20, 11]))
    assert not any(lost in text for text in of_synthetic(6, bins=[5, 5, 10]))  # hidden by sampling
    assert not any(lost in text for text in of_synthetic(snap={"score": {"step": 5}, "age": {"step": 1}}))


def test_bins_keep_as_much_of_a_correlation_as_is_said() -> None:
    """Normal columns whose sds are a tenth of their bounds, in five bins each, drawn evenly again."""
    rng = np.random.default_rng(17)
    r, size, bins = 0.8, 200_000, 5
    x = rng.multivariate_normal([0.5, 0.45], [[0.01, r * 0.01], [r * 0.01, 0.01]], size)
    drawn = (np.floor(x * bins) + rng.random(x.shape)) / bins
    assert np.corrcoef(drawn.T)[0, 1] / r == pytest.approx(0.6, abs=0.02)
