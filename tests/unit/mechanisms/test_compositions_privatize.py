"""Compositions from a table to a release, by spec: what is released, what it costs, what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.special import digamma, polygamma

import dpmix
from dpmix.errors import DataError, SpecError
from dpmix.mechanisms.log_moments.law import exact_width
from dpmix.release.release_file import read_release, write_release
from dpmix.run.exit_codes import run
from dpmix.spec import load_spec
from tests.helpers.specs import message

TABLE = "care,food,rest\n" + "0.5,0.25,0.25\n0.9,0.1,0\n0.4,0.05,0.55\n1,0,0\n" * 10
MECHANISM: dict[str, Any] = {"kind": "log_moments", "threshold": 0.01, "epsilon": 1.0}


def table(folder: Path, text: str = TABLE) -> dict[str, Any]:
    (folder / "day.csv").write_text(text)
    return {"path": str(folder / "day.csv"), "columns": ["care", "food", "rest"]}


def spec(folder: Path, text: str = TABLE, **mechanism: Any) -> dict[str, Any]:
    return {"data": table(folder, text), "mechanism": {**MECHANISM, **mechanism}}


def test_a_table_is_released_and_the_release_read_back(tmp_path: Path) -> None:
    made = dpmix.privatize(
        spec(tmp_path, epsilon=1e6, split=[10, 30]), tmp_path / "r.h5", quiet=True, yes=True
    )
    back = read_release(tmp_path / "r.h5")
    assert back.mechanism == made.mechanism
    assert back.mechanism["parts"] == [10, 30]
    assert back.mechanism["columns"] == ["care", "food", "rest"]
    assert (back.n, back.trust, back.private, back.simulated) == (40, "global", True, False)
    rows = np.array([[float(x) for x in line.split(",")] for line in TABLE.splitlines()[1:]])
    whole = np.log(np.maximum(rows, 0.01)).mean(axis=0)
    parts = back.values.reshape(2, 3)
    np.testing.assert_allclose(0.25 * parts[0] + 0.75 * parts[1], whole, atol=1e-4)


def test_the_threshold_that_is_chosen_is_said_and_released(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"threshold": None, "thresholds": [0.2, 0.02], "epsilon": None, "epsilon1": 2.0, "epsilon2": 1e4}
    made = dpmix.privatize(spec(tmp_path, **own), tmp_path / "r.h5", yes=True)
    # of 40 records 10 have no share below 0.2, and 10 more none below 0.02
    assert made.mechanism["threshold"] == 0.02
    assert made.mechanism["scores"] == [10, 10]
    assert made.epsilon == pytest.approx(10_002.0)
    assert "the threshold chosen is 0.02" in capsys.readouterr().err


def test_calibrate_says_what_each_part_and_threshold_costs(tmp_path: Path) -> None:
    wide = exact_width(0.01, 3)
    whole = dpmix.calibrate(spec(tmp_path))
    assert whole["scale"] == pytest.approx(wide / 40)
    assert whole["sensitivity"] == pytest.approx(wide / 40)
    assert whole["sensitivity_paper"] == pytest.approx(3 * np.log(100) / 40)
    halves = dpmix.calibrate(spec(tmp_path, split=0.25))
    assert halves["sensitivity"] == pytest.approx([wide / 10, wide / 30])
    assert halves["scale"] == pytest.approx([wide / 10, wide / 30])
    paper = dpmix.calibrate(spec(tmp_path, calibration="paper"))
    assert paper["scale"] == pytest.approx(paper["sensitivity_paper"])
    assert paper["epsilon"] == pytest.approx(wide / (3 * np.log(100)))
    without = {"mechanism": {**MECHANISM, "components": 3, "n": 40}}
    assert dpmix.calibrate(without)["scale"] == whole["scale"]
    several = {**MECHANISM, "components": 3, "n": 40, "threshold": None, "thresholds": [0.1, 0.01]}
    assert dpmix.calibrate({"mechanism": several})["epsilon2"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0.5,0.3,0.3", "record 41 do not sum to 1 within 1e-06"),
        ("0.5,0.5,1.1e-6", "record 41 do not sum to 1 within 1e-06"),
        ("0.6,0.5,-0.1", "column 'rest' has a share in record 41 that is negative"),
        ("0.5,0.5,", "record 41"),
    ],
)
def test_what_is_no_composition_is_refused_and_nothing_written(tmp_path: Path, rows: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        dpmix.privatize(spec(tmp_path, TABLE + rows + "\n"), tmp_path / "r.h5", quiet=True)
    assert not (tmp_path / "r.h5").exists()


def test_sums_within_the_tolerance_are_taken(tmp_path: Path) -> None:
    dpmix.privatize(spec(tmp_path, TABLE + "0.5,0.5,9e-7\n"), tmp_path / "r.h5", quiet=True)
    assert (tmp_path / "r.h5").exists()


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"thresholds": [0.01, 0.1]}, "mechanism.thresholds: must decrease, from the largest candidate"),
        ({"thresholds": [0.1, 0.1]}, "mechanism.thresholds: must decrease, from the largest candidate"),
        ({"threshold": 1.0}, "mechanism.threshold: 1.0 must be less"),
        ({"threshold": 0.1, "thresholds": [0.1]}, "mechanism.threshold: give exactly one of"),
        ({"threshold": 0.1, "split": [10, 20], "n": 40}, "mechanism.split: [10, 20] has 30 records, but"),
        ({"threshold": 0.1, "split": [10, 20, 10]}, "mechanism.split: must be the share of the first part"),
        ({"threshold": 0.1, "split": [0, 40]}, "mechanism.split[0]: 0 must be at least 1"),
        ({"threshold": 0.1, "domain": [0, 2]}, "mechanism.domain: must be [0, 1] of every share"),
    ],
)
def test_specs_that_make_no_sense_are_refused(own: dict[str, Any], words: str) -> None:
    assert message(source={"mechanism": {"kind": "log_moments", "epsilon": 1.0, **own}}).startswith(words)


def test_epsilons_go_with_a_choice(tmp_path: Path) -> None:
    both = {"epsilon": None, "epsilon1": 1.0}
    choice = {**both, "threshold": None, "thresholds": [0.1, 0.01]}
    assert "epsilon2: missing beside epsilon1" in message(source={"mechanism": {**MECHANISM, **choice}})
    with pytest.raises(SpecError, match="epsilon2: is for choosing among thresholds"):
        dpmix.calibrate(spec(tmp_path, **both, epsilon2=0.5))


@pytest.mark.parametrize(
    ("own", "columns", "words"),
    [
        ({"split": [10, 20]}, 3, r"mechanism\.split: \[10, 20\] has 30 records, but there are 40"),
        ({"split": 0.01}, 3, r"mechanism\.split: 0\.01 of 40 records leaves a part empty"),
        ({"components": 2}, 3, r"mechanism\.components: 2, but data\.columns names 3"),
        ({}, 1, r"data\.columns: names one share; a composition has two or more"),
    ],
)
def test_specs_that_do_not_fit_the_table_are_refused(
    tmp_path: Path, own: dict[str, Any], columns: int, words: str
) -> None:
    asked = spec(tmp_path, **own)
    asked["data"]["columns"] = asked["data"]["columns"][:columns]
    with pytest.raises(SpecError, match=words):
        dpmix.privatize(asked, tmp_path / "r.h5", quiet=True)
    assert not (tmp_path / "r.h5").exists()


def test_exit_codes(tmp_path: Path) -> None:
    from dpmix.cli.commands import app

    (tmp_path / "day.csv").write_text(TABLE + "0.5,0.3,0.3\n")
    (tmp_path / "s.yaml").write_text(
        "data: {path: day.csv, columns: [care, food, rest]}\n"
        "mechanism: {kind: log_moments, threshold: 0.01, epsilon: 1.0}\n"
    )
    command = ["privatize", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "r.h5")]
    assert run(app, command) == 3
    assert run(app, [*command, "--set", "mechanism.split=[1, 2]"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["day.csv", "s.yaml"]


def test_the_spec_of_a_release_may_be_that_of_the_fit(tmp_path: Path) -> None:
    from dpmix.api.release_of import find_release

    own = {"threshold": None, "thresholds": [0.2, 0.02], "split": 0.25}
    checked = load_spec(spec(tmp_path, **own))
    dpmix.privatize(checked, tmp_path / "r.h5", quiet=True)
    found, _ = find_release(checked, tmp_path / "r.h5")
    assert found.mechanism["components"] == 3
    for change, words in (
        ({"components": 4}, r"mechanism\.components: 4, but the release was made with 3"),
        ({"thresholds": [0.2, 0.1]}, r"mechanism\.thresholds: \[0\.2, 0\.1\], but"),
        ({"split": 0.5}, r"mechanism\.split: means \[20, 20\], but the release was made with \[10, 30\]"),
        ({"epsilon": 2.0}, r"mechanism\.epsilon: 2, but the release was made with epsilon = 1"),
        ({"calibration": "paper"}, "mechanism: means noise of scale"),
    ):
        with pytest.raises(SpecError, match=words):
            find_release(load_spec(spec(tmp_path, **{**own, **change})), tmp_path / "r.h5")


def test_releases_made_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "z.csv").write_text("s\n" + "-1.0\n-1.2\n-1.5\n" * 2)
    made = {**MECHANISM, "components": 3, "n": 40, "split": [10, 30]}
    contents = {"release": {"path": str(tmp_path / "z.csv")}, "mechanism": made}

    def found(**own: Any) -> Any:
        from dpmix.api.release_of import find_release

        return find_release(load_spec({**contents, "mechanism": {**made, **own}}), None)[0]

    release = found()
    assert release.mechanism["parts"] == [10, 30]
    assert release.n == 40
    assert release.epsilon == pytest.approx(1.0)
    chosen = found(epsilon=None, epsilon1=0.9, epsilon2=0.1)
    assert chosen.epsilon == pytest.approx(1.0)
    assert chosen.mechanism["scale"][0] == pytest.approx(exact_width(0.01, 3) / 10 / 0.9)
    with pytest.raises(DataError, match="has 6 numbers, but 2 components of each of two parts give 4"):
        found(components=2)
    with pytest.raises(DataError, match="has 6 numbers, but 3 components give 3"):
        found(split=None)
    with pytest.raises(SpecError, match=r"mechanism\.n: missing"):
        found(n=None)
    with pytest.raises(SpecError, match=r"mechanism\.components: missing"):
        found(components=None)


def test_a_file_whose_parts_are_of_other_records_is_refused(tmp_path: Path) -> None:
    made = dpmix.privatize(spec(tmp_path, split=0.25), quiet=True)
    odd = made.mechanism.updated(parts=[10, 31])
    write_release(tmp_path / "r.h5", dataclasses.replace(made, mechanism=odd))
    with pytest.raises(DataError, match=r"states parts \[10, 31\], but n is 40"):
        read_release(tmp_path / "r.h5")


def test_compositions_are_simulated(tmp_path: Path) -> None:
    alpha = [0.5, 3.0, 1.5]
    data = {"simulate": "dirichlet", "alpha": alpha, "n": 20_000, "seed": 3}
    asked = {"data": data, "mechanism": {**MECHANISM, "threshold": 1e-9, "epsilon": 1e6}}
    made = dpmix.privatize(asked, tmp_path / "r.h5", quiet=True)
    assert (made.simulated, made.private, made.mechanism["columns"]) == (True, False, ["x1", "x2", "x3"])
    error = np.sqrt((polygamma(1, alpha) - polygamma(1, 5.0)) / 20_000)
    assert (np.abs(made.values[:, 0] - digamma(alpha) + digamma(5.0)) < 4 * error).all()
    again = dpmix.privatize(asked, quiet=True)
    np.testing.assert_array_equal(again.values, made.values)


@pytest.mark.parametrize(
    ("prior", "sampler", "own", "words"),
    [
        ("p3", "bootstrap", {"split": 0.25}, "model.prior: p3 is not for bootstrap, which has no prior"),
        ("p2", "data_augmentation", {"split": 0.25}, "model.prior: p2 is draws, not a density"),
        ("p5", "replicated", {"split": 0.25}, "model.prior: p5 is draws, not a density"),
        ("p5", "normal_approximation", {"split": 0.25}, "model.prior: p5 is draws, not a density"),
        *(
            (
                prior,
                "abc",
                {},
                f"model.prior: {prior} takes the first of two parts of a release, and mechanism.",
            )
            for prior in ("p2", "p3", "p4", "p5")
        ),
        ("p4", "soma", {}, "model.prior: p4 takes the first of two parts of a release"),
        ("p6", "abc", {"split": 0.25}, 'model.prior: "p6" is unknown; one of p2, p3, p4, p5'),
        ({"shape": 0, "rate": 1}, "abc", {}, "model.prior.shape: 0 must be greater than 0"),
        ({"shape": 1}, "abc", {}, "model.prior.rate: missing"),
        ({"shape": 1, "rate": 1}, "neal8", {}, "sampler.kind: neal8 is for mixtures, and not for dirichlet"),
    ],
)
def test_priors_that_a_method_cannot_take_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    prior: Any,
    sampler: str,
    own: dict[str, Any],
    words: str,
) -> None:
    from dpmix.cli.commands import app

    contents = {
        "mechanism": {**MECHANISM, **own},
        "model": {"kind": "dirichlet", "prior": prior},
        "sampler": {"kind": sampler},
    }
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(contents))
    command = ["fit", str(tmp_path / "s.yaml"), "--release", str(tmp_path / "r.h5")]
    assert run(app, [*command, "-o", str(tmp_path / "c.h5")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"error: {words}" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


def test_a_named_prior_needs_a_release_in_two_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the spec does not say how the release was made, the release does."""
    from dpmix.cli.commands import app

    dpmix.privatize(spec(tmp_path), tmp_path / "r.h5", quiet=True)
    (tmp_path / "s.yaml").write_text("model: {kind: dirichlet, prior: p4}\n")
    command = ["fit", str(tmp_path / "s.yaml"), "--release", str(tmp_path / "r.h5")]
    assert run(app, [*command, "-o", str(tmp_path / "c.h5")]) == 2
    assert "model.prior: p4 takes the first of two parts of a release, and this one has a single" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "c.h5").exists()


@pytest.mark.parametrize(
    ("row", "code", "words"),
    [
        ("0.5,0.3,0.3", 3, "record 41 do not sum to 1 within 1e-06"),
        ("0.6,0.5,-0.1", 3, "column 'rest' has a share in record 41 that is negative"),
        ("0.6,0.4,nan", 3, "record 41"),
        ("0,0,1", 0, "wrote"),
    ],
)
def test_rows_are_checked_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str, code: int, words: str
) -> None:
    from dpmix.cli.commands import app

    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec(tmp_path, TABLE + row + "\n")))
    assert run(app, ["privatize", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "r.h5")]) == code
    said = capsys.readouterr().err
    assert words in said
    assert "0.6" not in said.replace("epsilon", "")  # the record is named, its values are not
    assert (tmp_path / "r.h5").exists() == (code == 0)
