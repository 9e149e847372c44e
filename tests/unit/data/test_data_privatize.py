"""From confidential files to releases: the verbs, what leaks (nothing), and what is refused."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmix
from dpmix.api.privatize import steps
from dpmix.api.release_of import load_stated_release, unprotected
from dpmix.cli.commands import main
from dpmix.data.loading import load_data
from dpmix.data.simulations import three_gaussians
from dpmix.errors import DataError, PrivacyError, SpecError, UsageError
from dpmix.release.release_file import read_release
from dpmix.spec import load_spec

FAITHFUL = Path(__file__).parents[3] / "configs" / "data" / "faithful.csv"
SIMULATED = {
    "data": {"simulate": "three_gaussians", "n": 40, "seed": 1, "domain": [-10.0, 10.0]},
    "mechanism": {"kind": "laplace", "epsilon": 5.0},
}


def spec_of(
    path: Path, columns: Any = ("y",), domain: Any = ((0.0, 10.0),), **mechanism: Any
) -> dict[str, Any]:
    return {
        "data": {"path": str(path), "columns": list(columns), "domain": [list(p) for p in domain]},
        "mechanism": mechanism or {"kind": "laplace", "epsilon": 1.0},
    }


def exit_code(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Any:
    """Run the command line in this process."""
    monkeypatch.setattr(sys, "argv", ["dpmix", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


@pytest.fixture
def confidential(tmp_path: Path) -> Path:
    folder = tmp_path / "top_secret_folder"
    folder.mkdir()
    path = folder / "payroll_2031.csv"
    values = np.random.default_rng(7).uniform(0, 10, 300)
    values[:3] = [123456.75, -98765.25, 3.1415926535]
    path.write_text("y,other_column\n" + "".join(f"{v!r},1\n" for v in values.tolist()))
    return path


def test_old_faithful_at_epsilon_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = dpmix.privatize(
        spec_of(FAITHFUL, ["eruptions"], [(1, 6)], kind="laplace", epsilon=5.0, order="public"),
        tmp_path / "r.h5",
    )
    assert made.order == "public"
    assert (made.n, made.private, made.simulated, made.columns) == (272, True, False, ("eruptions",))
    assert made.epsilon == pytest.approx(5.0, abs=1e-9)
    assert made.scales == (pytest.approx(1.0, abs=1e-9),)
    found = read_release(tmp_path / "r.h5")
    np.testing.assert_array_equal(found.values, made.values)
    truth = load_spec(spec_of(FAITHFUL, ["eruptions"], [(1, 6)]))
    noise = made.values - load_data(truth).values
    assert stats.kstest(noise[:, 0], stats.laplace.cdf).pvalue > 1e-6
    said = capsys.readouterr()
    assert said.out == ""
    assert "Laplace noise of scale 1 on eruptions, rows in their own order, which is public;" in said.err
    assert "(epsilon = 5, delta = 0)-DP" in said.err


def test_nothing_confidential_is_in_the_file(confidential: Path, tmp_path: Path, capsys: Any) -> None:
    made = dpmix.privatize(spec_of(confidential), tmp_path / "r.h5")
    raw = (tmp_path / "r.h5").read_bytes()
    for word in ("top_secret", "payroll", "other_column", "clamp", "outside", str(tmp_path)):
        assert word.encode() not in raw
    assert not [
        value
        for value in load_data(load_spec(spec_of(confidential))).values
        if struct.pack("<d", value[0]) in raw
    ]
    assert struct.pack("<d", made.values[0, 0]) in raw
    said = capsys.readouterr().err
    assert "2 of 300 values of y were outside the bounds" in said
    assert "123456" not in said


def test_two_releases_differ_and_take_no_seed(confidential: Path) -> None:
    first, second = (dpmix.privatize(spec_of(confidential), quiet=True) for _ in range(2))
    assert not np.intersect1d(first.values, second.values).size
    with pytest.raises(PrivacyError, match="no seed is accepted for a real release"):
        dpmix.privatize(spec_of(confidential), seed=1)
    with pytest.raises(SpecError, match="no seed is accepted"):
        dpmix.privatize(spec_of(confidential), overrides=["data.seed=1"])


def test_simulations_are_reproducible_and_say_so(tmp_path: Path, capsys: Any) -> None:
    made = [dpmix.privatize(SIMULATED, tmp_path / f"{i}.h5") for i in range(2)]
    np.testing.assert_array_equal(made[0].values, made[1].values)
    assert "not private" in capsys.readouterr().err
    found = read_release(tmp_path / "0.h5")
    assert (found.private, found.simulated) == (False, True)
    assert not np.array_equal(dpmix.privatize(SIMULATED, seed=2).values, made[0].values)
    fresh = {**SIMULATED, "data": {k: v for k, v in SIMULATED["data"].items() if k != "seed"}}
    unseeded = dpmix.privatize(fresh)
    assert not np.array_equal(unseeded.values, dpmix.privatize(fresh).values)
    assert not unseeded.private


def test_three_gaussians_is_the_truncated_mixture() -> None:
    drawn = three_gaussians(20_000, np.random.default_rng(1))
    assert drawn.shape == (20_000, 1)
    assert np.abs(drawn).max() <= 10

    def cdf(x: np.ndarray) -> np.ndarray:
        parts = [stats.norm.cdf(x, m) - stats.norm.cdf(-10, m) for m in (-5, 0, 5)]
        whole = [stats.norm.cdf(10, m) - stats.norm.cdf(-10, m) for m in (-5, 0, 5)]
        return np.sum(parts, axis=0) / np.sum(whole)

    assert stats.kstest(drawn[:, 0], cdf).pvalue > 1e-6


def test_several_columns_in_one_release(tmp_path: Path, capsys: Any) -> None:
    columns, domain = ["waiting", "eruptions"], [(40, 100), (1, 6)]
    made = dpmix.privatize(
        spec_of(FAITHFUL, columns, domain, kind="gaussian", epsilon=2.0, delta=1e-4), tmp_path / "r.h5"
    )
    assert made.values.shape == (272, 2)
    assert made.columns == ("waiting", "eruptions")
    assert made.scales[0] / made.scales[1] == pytest.approx(12.0)
    assert abs(np.mean(made.values[:, 0]) - 71) < 5 * made.scales[0] / 16
    assert "on waiting, " in capsys.readouterr().err


def test_a_delta_of_one_over_n_is_said_aloud(capsys: Any) -> None:
    spec = spec_of(FAITHFUL, ["eruptions"], [(1, 6)], kind="gaussian", epsilon=1.0, delta=0.01)
    dpmix.privatize(spec, quiet=True)
    said = capsys.readouterr().err
    assert "delta = 0.01 is not below 1/n = 0.00368" in said
    assert "verbatim" in said
    dpmix.privatize(spec, quiet=True, overrides=["mechanism.delta=0.003"])
    assert capsys.readouterr().err == ""
    found = dpmix.calibrate(spec)
    assert "with more than 99 records, delta = 0.01 is 1/n or more" in capsys.readouterr().err
    assert found["delta"] == 0.01


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        ({"kind": "laplace", "epsilon": 5.0}, {"epsilon": 5.0, "delta": 0.0, "rho": 4.00674, "scale": 1.0}),
        ({"kind": "laplace", "rho": 17.8}, {"epsilon": 18.8, "delta": 0.0, "rho": 17.8, "scale": 0.265957}),
        ({"kind": "laplace", "scale": 2.0}, {"epsilon": 2.5, "delta": 0.0, "rho": 1.582085, "scale": 2.0}),
        ({"kind": "gaussian", "rho": 0.5}, {"rho": 0.5, "scale": 5.0}),
        (
            {"kind": "gaussian", "epsilon": 1.0, "delta": 1e-5},
            {"epsilon": 1.0, "delta": 1e-5, "rho": 0.03592570, "scale": 18.653158},
        ),
    ],
)
def test_calibrate(mechanism: dict[str, Any], expected: dict[str, float], capsys: Any) -> None:
    found = dpmix.calibrate({"mechanism": {**mechanism, "domain": [1.0, 6.0]}})
    assert json.loads(json.dumps(found)) == found
    assert found.pop("kind") == mechanism["kind"]
    assert found.pop("proved") is True
    assert found == pytest.approx({**expected, "sensitivity": 5.0}, rel=1e-5)


def test_calibrate_lists_what_differs_by_column() -> None:
    found = dpmix.calibrate({"mechanism": {"kind": "laplace", "epsilon": 2.0, "domain": [[0, 1], [0, 10]]}})
    assert found["scale"] == pytest.approx([1.0, 10.0])
    assert found["sensitivity"] == [1.0, 10.0]
    with pytest.raises(SpecError, match="mechanism: missing"):
        dpmix.calibrate({"data": SIMULATED["data"]})


def test_the_plan_reads_no_cell(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y\nhello\n\n1e999\n")
    (said,) = steps(load_spec(spec_of(tmp_path / "t.csv")))
    assert "Laplace noise of scale 10 on y" in said
    assert "(epsilon = 1, delta = 0)-DP" in said


def test_large_data_report_their_progress() -> None:
    calls: list[tuple[int, int]] = []
    spec = spec_of(FAITHFUL, ["eruptions", "waiting"], [(1, 6), (40, 100)])
    dpmix.privatize(spec, quiet=True, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (544, 544)
    assert calls == sorted(calls)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("y\n1\nnan\n", "is missing; say in data.missing"),
        ("y\n1\nhello\n", "not a number"),
        ("y,x\n,1\n,2\n", "is empty"),
        ("y\n5\n", "1 record"),
        ("x\n1\n2\n", "no column 'y'"),
    ],
)
def test_bad_data_write_nothing(
    tmp_path: Path, content: str, message: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        dpmix.privatize(spec_of(tmp_path / "d.csv"), tmp_path / "r.h5")
    (tmp_path / "spec.yaml").write_text(json.dumps(spec_of(tmp_path / "d.csv")))
    assert exit_code(monkeypatch, "privatize", tmp_path / "spec.yaml", "-o", tmp_path / "r.h5") == 3
    assert sorted(os.listdir(tmp_path)) == ["d.csv", "spec.yaml"]
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("mechanism", "code", "message"),
    [
        ({"kind": "laplace", "epsilon": 1.0, "domain": [10, 0]}, 2, "lower bound"),
        ({"kind": "laplace", "epsilon": 1.0, "domain": [[0, 1], [0, 1]]}, 2, "2 pairs"),
        ({"kind": "laplace"}, 2, "missing"),
        ({"kind": "none"}, 4, "none adds no noise"),
        (
            {"kind": "gaussian", "epsilon": 10.0, "delta": 0.1, "calibration": "classical"},
            4,
            "epsilon <= 1 only",
        ),
        ({"kind": "laplace", "scale": 1e-80}, 4, "beyond what can be guaranteed"),
    ],
)
def test_requests_that_cannot_be_met_write_nothing(
    tmp_path: Path,
    mechanism: dict[str, Any],
    code: int,
    message: str,
    capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "d.csv").write_text("y\n1\n2\n")
    spec = {**spec_of(tmp_path / "d.csv"), "mechanism": mechanism}
    if "domain" in mechanism:
        del spec["data"]["domain"]
    (tmp_path / "spec.yaml").write_text(json.dumps(spec))
    assert exit_code(monkeypatch, "privatize", tmp_path / "spec.yaml", "-o", tmp_path / "r.h5") == code
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert sorted(os.listdir(tmp_path)) == ["d.csv", "spec.yaml"]


def test_bounds_are_needed_and_never_read_off_the_data(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("y\n1\n2\n")
    spec = spec_of(tmp_path / "d.csv")
    del spec["data"]["domain"]
    with pytest.raises(SpecError, match="public bounds"):
        dpmix.privatize(spec)


def test_outputs_are_protected(confidential: Path, tmp_path: Path) -> None:
    (tmp_path / "r.h5").write_bytes(b"old")
    with pytest.raises(UsageError, match="exists already"):
        dpmix.privatize(spec_of(confidential), tmp_path / "r.h5")
    assert (tmp_path / "r.h5").read_bytes() == b"old"
    before = confidential.read_bytes()
    with pytest.raises(UsageError, match="the confidential file itself"):
        dpmix.privatize(spec_of(confidential), confidential, force=True)
    assert confidential.read_bytes() == before


def test_the_unprotected_values_say_that_they_are(confidential: Path) -> None:
    found = unprotected(load_spec(spec_of(confidential)))
    assert (found.kind, found.private, found.epsilon, found.scales) == ("none", False, float("inf"), ())
    assert found.values[0, 0] == 123456.75
    assert "123456" not in repr(found)
    assert "123456" not in repr(load_data(load_spec(spec_of(confidential))))


def test_a_release_made_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "z.csv").write_text("z\n1.5\n-20\n")
    spec = {
        "release": {"path": str(tmp_path / "z.csv"), "columns": ["z"]},
        "mechanism": {"kind": "laplace", "epsilon": 5.0, "domain": [1.0, 6.0]},
    }
    found = load_stated_release(load_spec(spec))
    assert (found.epsilon, found.scales, found.n, found.private) == (5.0, (1.0,), 2, True)
    np.testing.assert_array_equal(found.values, [[1.5], [-20.0]])
    bare = load_stated_release(load_spec({**spec, "mechanism": {"kind": "gaussian", "scale": 2.0}}))
    assert (bare.epsilon, bare.rho, bare.scales) == (None, None, (2.0,))
    none = load_stated_release(load_spec({**spec, "mechanism": {"kind": "none"}}))
    assert (none.private, none.kind) == (False, "none")
    with pytest.raises(SpecError, match="mechanism: missing"):
        load_stated_release(load_spec({"release": spec["release"]}))


def test_a_release_file_under_release_gives_its_columns(tmp_path: Path) -> None:
    columns, domain = ["waiting", "eruptions"], [(40, 100), (1, 6)]
    made = dpmix.privatize(spec_of(FAITHFUL, columns, domain), tmp_path / "r.h5", quiet=True)
    spec = {
        "release": {"path": str(tmp_path / "r.h5"), "columns": ["eruptions"]},
        "mechanism": {"kind": "laplace", "scale": 10.0},
    }
    np.testing.assert_array_equal(load_stated_release(load_spec(spec)).values[:, 0], made.values[:, 1])


def test_sections_that_are_missing_are_named(tmp_path: Path) -> None:
    for spec, name in (
        ({"mechanism": {"kind": "laplace", "epsilon": 1.0, "domain": [0, 1]}}, "data: missing"),
        ({"data": SIMULATED["data"]}, "mechanism: missing"),
        ({**SIMULATED, "data": {**SIMULATED["data"], "n": 1}}, "at least 2 records"),
    ):
        with pytest.raises(SpecError, match=name):
            dpmix.privatize(spec, tmp_path / "r.h5")
    assert os.listdir(tmp_path) == []
