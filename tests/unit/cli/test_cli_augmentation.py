"""Naive Bayes and regression from the command line: what is refused, in one sentence, and what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpmix.spec.starters import starter_files
from tests.unit.cli.test_cli import outcome, refused

COUNTS = "{kind: noisy_counts, levels: [2, 3], classes: 2, epsilon: 1.0, n: 30}"
MOMENTS = "{kind: clamped_moments, bounds: [[-5, 5], [-5, 5]], epsilon: 1.0, n: 30}"
NUMBERS = {COUNTS: "3 4 7.5 -1 8 2 3 1 9.2 4", MOMENTS: "3 4 7.5 -1 8"}
MODEL = {COUNTS: "naive_bayes", MOMENTS: "linear_regression"}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Give a function that writes a release as CSV with its spec, and returns the path of the spec."""

    def spec(mechanism: str, numbers: str | None = None) -> Path:
        cells = NUMBERS[mechanism] if numbers is None else numbers
        (tmp_path / "z.csv").write_text("z\n" + "".join(f"{cell}\n" for cell in cells.split(" ") if cells))
        (tmp_path / "spec.yaml").write_text(
            f"release: {{path: z.csv, columns: [z]}}\nmechanism: {mechanism}\n"
            f"model: {{kind: {MODEL[mechanism]}}}\nsampler: {{iterations: 6, chains: 1}}\n"
        )
        return tmp_path / "spec.yaml"

    return spec


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [(COUNTS, "data_augmentation given 10 "), (MOMENTS, "data_augmentation given 5 ")],
    ids=["counts", "moments"],
)
def test_a_release_in_a_table_is_read(mechanism: str, said: str, write: Any, capsys: Any) -> None:
    spec = write(mechanism)
    code, out, err = outcome(capsys, "fit", spec, "-o", spec.parent / "c.h5", "--dry-run")
    assert (code, err) == (0, "") and said in out


@pytest.mark.parametrize(
    ("mechanism", "numbers", "said"),
    [
        (COUNTS, "3 4 7.5 -1 8 2 3 1 9.2 400", "1 of 10 numbers is more than 30 noise scales beyond what 30"),
        (
            MOMENTS,
            "3 1e300 7.5 -1 -1e9",
            "2 of 5 numbers are more than 30 noise scales beyond what 30 records",
        ),
    ],
    ids=["counts", "moments"],
)
def test_numbers_out_of_reach_are_a_warning(
    mechanism: str, numbers: str, said: str, write: Any, capsys: Any
) -> None:
    spec = write(mechanism, numbers)
    code, _, err = outcome(capsys, "fit", spec, "-o", spec.parent / "c.h5", "--dry-run")
    assert code == 0 and len(err.splitlines()) == 1 and said in err


@pytest.mark.parametrize(
    ("code", "mechanism", "numbers", "settings", "said"),
    [
        (
            3,
            COUNTS,
            None,
            "mechanism.levels=[2,2]",
            "z.csv has 10 numbers, but levels [2, 2] in 2 classes give 8",
        ),
        (
            3,
            COUNTS,
            None,
            "mechanism.noise=geometric",
            "no whole numbers, as geometric noise gives: number 3 is",
        ),
        (3, COUNTS, "3 nan", None, "z.csv: column 'z' has no finite number in record 2"),
        (3, COUNTS, "3 text", None, "z.csv: the cell of column 'z' in record 2 (line 3) is not a number"),
        (3, COUNTS, "", None, "z.csv has no records; at least 1 are needed"),
        (2, COUNTS, None, "mechanism.levels=[1,3]", "mechanism.levels[0]: 1 must be at least 2"),
        (2, COUNTS, None, "mechanism.n=null", "mechanism.n: missing; a noisy_counts release does not tell"),
        (2, COUNTS, None, "model.prior=text", 'model.prior: must be a number, not "text"'),
        (2, COUNTS, None, "model.kind=linear_regression", "model.kind: linear_regression is not for a noisy"),
        (2, COUNTS, None, "sampler.kind=neal8", "sampler.kind: neal8 is for mixtures"),
        (3, MOMENTS, "3 4 7.5 -1", None, "z.csv has 4 numbers, but 1 predictor and a response give 5"),
        (2, MOMENTS, None, "mechanism.bounds=[[5,-5],[-5,5]]", "mechanism.bounds: [5.0, -5.0] must have its"),
        (2, MOMENTS, None, "mechanism.bounds=[[-5,5]]", "mechanism.bounds: one pair; give one per predictor"),
        (2, MOMENTS, None, "mechanism.bounds=[[-5,.inf],[-5,5]]", "mechanism.bounds[0][1]: must be a finite"),
        (
            2,
            MOMENTS,
            None,
            "model.response=tobit",
            'model.response: "tobit" is unknown; one of clamped, trunc',
        ),
        (2, MOMENTS, None, "model.sigma2=0", "model.sigma2: 0 must be greater than 0"),
        (
            2,
            MOMENTS,
            None,
            "model.x_mean=[1,2]",
            "model.x_mean: has 2 entries, but the release is of 1 predictor",
        ),
        (2, MOMENTS, None, "model.x_cov=[[-1]]", "model.x_cov: must be positive definite"),
        (
            2,
            MOMENTS,
            None,
            "model.prior_sd=[1,2,3]",
            "model.prior_sd: has 3 entries, but the release is of 1",
        ),
        (2, MOMENTS, None, "model.predict=[[.nan]]", "model.predict[0][0]: must be a finite number, not nan"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    code: int, mechanism: str, numbers: str | None, settings: str | None, said: str, write: Any, capsys: Any
) -> None:
    spec = write(mechanism, numbers)
    more = [] if settings is None else ["--set", settings]
    assert said in refused(capsys, code, "fit", spec, "-o", spec.parent / "c.h5", "--dry-run", *more)
    assert not (spec.parent / "c.h5").exists()


@pytest.mark.parametrize(
    ("code", "rows", "mechanism", "said"),
    [
        (
            3,
            "1,1 2,3",
            "noisy_counts, levels: [3], classes: 2",
            "column 'b' has a value in record 2 that is none",
        ),
        (
            3,
            "1,1 1.5,2",
            "noisy_counts, levels: [3], classes: 2",
            "column 'a' has a value in record 2 that is n",
        ),
        (
            3,
            "x,1 1,2",
            "noisy_counts, levels: [3], classes: 2",
            "column 'a' in record 1 (line 2) is not a number",
        ),
        (3, ",1 1,2", "noisy_counts, levels: [3], classes: 2", "column 'a' in record 1 (line 2) is empty"),
        (3, "1,1", "noisy_counts, levels: [3], classes: 2", "has 1 record; at least 2 are needed"),
        (
            2,
            "1,1 1,2",
            "noisy_counts, levels: [3, 3], classes: 2",
            "levels: has 2 entries, but data.columns n",
        ),
        (
            2,
            "1,1 1,2",
            "noisy_counts, levels: [3], classes: 2, n: 7",
            "mechanism.n: 7, but there are 2 records",
        ),
        (
            3,
            "1,1 nan,2",
            "clamped_moments, bounds: [[0, 5], [0, 5]]",
            "column 'a' in record 2 (line 3) is missing; say in data.missing",
        ),
        (2, "1,1 1,2", "clamped_moments, bounds: [[0, 5]]", "mechanism.bounds: 1 pairs for 2 columns"),
        (2, "1,1 1,2", "clamped_moments", "mechanism.bounds: missing; give one pair per predictor"),
        (2, "1,1 1,2", "clamped_moments, bounds: [[-1e308, 1e308], [0, 1]]", "is too wide"),
    ],
)
def test_what_cannot_be_released_is_refused(
    code: int, rows: str, mechanism: str, said: str, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "d.csv").write_text("a,b\n" + rows.replace(" ", "\n") + "\n")
    spec = tmp_path / "spec.yaml"
    spec.write_text(f"data: {{path: d.csv, columns: [a, b]}}\nmechanism: {{kind: {mechanism}, epsilon: 1}}\n")
    assert said in refused(capsys, code, "privatize", spec, "-o", tmp_path / "r.h5", "--quiet")
    assert not (tmp_path / "r.h5").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("def statistic(", "def statistics(", "lacks the function statistic(model, released, record, out)"),
        (
            "import math",
            "import nosuchmodule",
            "line 14: ModuleNotFoundError: No module named 'nosuchmodule'",
        ),
        ("def draw_prior(model, rng, theta):", "def draw_prior(model, rng, theta)", "line 36: expected ':'"),
        ("out[0] = min(", "out[2] = min(", "line 56: statistic raised IndexError: index 2 is out of bounds"),
        (
            "rng.poisson(theta[0])",
            "rng.poisson(theta[0], 2)",
            "line 43: draw_record raised ValueError: ",
        ),
        ("/ model.scale\n", "* released\n", "line 60: log_release must return a number, the log density"),
        ("1.0 / model.prior_rate)", "'a')", "line 38: draw_prior raised"),
        (
            "    theta[0] = rng.gamma(model.prior_shape,",
            "    rng.choice(3)\n    theta[0] = rng.gamma(model.prior_shape,",
            "line 38: draw_prior cannot be compiled: Unknown attribute 'choice'",
        ),
    ],
    ids=["missing", "import", "syntax", "bounds", "shape", "return", "type", "compile"],
)
def test_a_file_that_does_not_do_is_refused_with_its_line(
    old: str, new: str, said: str, tmp_path: Path, capsys: Any
) -> None:
    for name, text in starter_files("custom").items():
        assert name != "my_model.py" or text.count(old) == 1
        (tmp_path / name).write_text(text.replace(old, new) if name == "my_model.py" else text)
    arguments = ("fit", tmp_path / "custom.yaml", "-o", tmp_path / "c.h5")
    assert "give --allow-code if you trust it" in refused(capsys, 2, *arguments)
    told = refused(capsys, 2, *arguments, "--allow-code")
    assert told.startswith("my_model.py") and said in told
    assert not (tmp_path / "c.h5").exists()
    (tmp_path / "released.csv").write_text("statistic\n4\nnan\n")
    assert "has no finite number in record 2" in refused(capsys, 3, *arguments, "--allow-code")
