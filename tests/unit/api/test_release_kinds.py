"""Releases of wavelet coefficients, binomial counts and histograms: from files to releases and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.api.privatize import steps
from dpmix.api.release_of import load_stated_release
from dpmix.errors import DataError, SpecError
from dpmix.release.release_file import read_release
from dpmix.spec import load_spec
from tests.unit.data.test_data_privatize import FAITHFUL, SIMULATED, confidential, spec_of

__all__ = ["confidential"]  # a fixture


FOUR: dict[str, dict[str, Any]] = {
    "wavelet": {"kind": "wavelet", "epsilon": 4.0, "levels": 2},
    "binomial": {"kind": "binomial", "epsilon": 4.0, "trials": 6},
    "smoothed_histogram": {"kind": "smoothed_histogram", "epsilon": 4.0, "bins": 5, "draws": 20},
    "perturbed_histogram": {"kind": "perturbed_histogram", "epsilon": 4.0, "bins": 5, "noise": "geometric"},
}
SHAPES = {
    "wavelet": (300, 7),
    "binomial": (300, 1),
    "smoothed_histogram": (20, 1),
    "perturbed_histogram": (5, 1),
}


@pytest.mark.parametrize("kind", FOUR)
def test_every_kind_is_released_and_read_back(
    kind: str, confidential: Path, tmp_path: Path, capsys: Any
) -> None:
    made = dpmix.privatize(spec_of(confidential, **FOUR[kind]), tmp_path / "r.h5")
    said = capsys.readouterr().err
    assert "2 of 300 values of y were outside the bounds" in said
    assert "(epsilon = 4, delta = 0)-DP" in said
    assert ("global model" in said) == kind.endswith("histogram")
    found = read_release(tmp_path / "r.h5")
    np.testing.assert_array_equal(found.values, made.values)
    assert (found.mechanism, found.epsilon, found.rho) == (made.mechanism, made.epsilon, made.rho)
    assert (found.values.shape, found.n, found.private) == (SHAPES[kind], 300, True)
    assert 4.0 * (1 - 1e-8) < float(found.epsilon or 0) <= 4.0
    others = (dpmix.privatize(spec_of(confidential, **FOUR[kind]), quiet=True).values for _ in range(20))
    assert not all(np.array_equal(values, made.values) for values in others)  # small integers: one may be
    raw = (tmp_path / "r.h5").read_bytes()
    for word in ("top_secret", "payroll", "other_column", "clamp", "outside"):
        assert word.encode() not in raw
    told = dpmix.calibrate(spec_of(confidential, **FOUR[kind]), quiet=True)
    assert (told["epsilon"], told["rho"]) == (made.epsilon, made.rho)
    for key in ("scale", "weight"):
        if key in told:
            assert made.mechanism[key] in (told[key], [told[key]])
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize("kind", FOUR)
def test_every_kind_can_be_simulated_reproducibly(kind: str, tmp_path: Path, capsys: Any) -> None:
    spec = {**SIMULATED, "mechanism": FOUR[kind]}
    made = [dpmix.privatize(spec, tmp_path / f"{i}.h5") for i in range(2)]
    np.testing.assert_array_equal(made[0].values, made[1].values)
    assert not read_release(tmp_path / "0.h5").private
    assert "not private" in capsys.readouterr().err
    assert made[0].n == 40


@pytest.mark.parametrize("kind", FOUR)
def test_several_columns_are_refused_by_name(kind: str) -> None:
    spec = spec_of(FAITHFUL, ["eruptions", "waiting"], [(1, 6), (40, 100)], **FOUR[kind])
    for verb in (dpmix.privatize, dpmix.calibrate):
        with pytest.raises(SpecError, match=f"names 2 columns, but {kind} releases one"):
            verb(spec)  # type: ignore[operator]
    with pytest.raises(SpecError, match=f"2 pairs of bounds, but {kind} releases one column"):
        dpmix.calibrate({"mechanism": {**FOUR[kind], "domain": [[0, 1], [0, 1]]}})


def test_the_number_of_records_is_counted_given_or_missed(confidential: Path, tmp_path: Path) -> None:
    smoothed = FOUR["smoothed_histogram"]
    given = {**smoothed, "n": 300, "domain": [0.0, 10.0]}
    weight = 5 / (5 + 300 * math.expm1(4.0 / 20))
    for spec in ({"mechanism": given}, spec_of(confidential, **smoothed)):
        found = dpmix.calibrate(spec)
        assert (found["weight"], found["n"]) == (pytest.approx(weight, rel=1e-12), 300)
    counts = {**FOUR["perturbed_histogram"], "n": 300, "domain": [0.0, 10.0]}
    assert dpmix.calibrate({"mechanism": counts})["n"] == 300
    simulated = dpmix.calibrate({**SIMULATED, "mechanism": smoothed})
    assert simulated["n"] == 40
    with pytest.raises(SpecError, match=r"mechanism\.n: missing"):
        dpmix.calibrate({"mechanism": {**smoothed, "domain": [0.0, 10.0]}})
    for kind in ("smoothed_histogram", "perturbed_histogram"):
        with pytest.raises(SpecError, match=r"mechanism\.n: 299, but there are 300 records"):
            dpmix.privatize(spec_of(confidential, **FOUR[kind], n=299), tmp_path / "r.h5")
    (said,) = steps(load_spec(spec_of(confidential, **smoothed)))
    assert "20 draws from the histogram of y in 5 bins" in said
    (said,) = steps(load_spec(spec_of(tmp_path / "not_there.csv", **smoothed, n=300)))
    assert "weight" in said
    assert not (tmp_path / "r.h5").exists()


def test_calibrate_says_what_the_paper_really_costs() -> None:
    found = dpmix.calibrate(
        {
            "mechanism": {
                "kind": "wavelet",
                "epsilon": 10,
                "levels": 4,
                "calibration": "paper",
                "domain": [0, 1],
            }
        }
    )
    exact = 2 * (2**2.5 - 1) / (math.sqrt(2) - 1)
    bound = 12 * math.sqrt(2) / (math.sqrt(2) - 1) * 4
    assert found["scale"] == pytest.approx(bound / 10)
    assert found["epsilon"] == pytest.approx(10 * exact / bound)
    assert (found["epsilon_requested"], found["sensitivity_paper"]) == (10.0, pytest.approx(bound))
    assert found["sensitivity"] == pytest.approx(exact)


def test_the_classical_noise_can_be_set_by_its_scale() -> None:
    """P1, section 4.3: nothing is promised but what this scale gives."""
    eta = 20 / 10 * math.sqrt(2 * math.log(1.25 / 0.1))
    found = dpmix.calibrate({"mechanism": {"kind": "gaussian", "scale": eta, "domain": [-10, 10]}})
    assert found["scale"] == eta
    assert found["rho"] == pytest.approx(0.5 * (20 / eta) ** 2, rel=1e-9)
    assert "epsilon" not in found


def write_column(path: Path, values: Any) -> Path:
    path.write_text("z\n" + "".join(f"{v}\n" for v in values))
    return path


def stated_spec(path: Path, **mechanism: Any) -> dict[str, Any]:
    return {"release": {"path": str(path)}, "mechanism": {"domain": [0.0, 10.0], **mechanism}}


def test_releases_of_every_kind_made_elsewhere(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "z.csv"
    path.write_text("a,b,c\n1,2,3\n-1,0,9.5\n")
    found = load_stated_release(load_spec(stated_spec(path, kind="wavelet", epsilon=2, levels=1)))
    assert (found.n, found.trust, found.values.shape, found.epsilon) == (2, "local", (2, 3), 2.0)
    write_column(path, [0, 6, 3])
    found = load_stated_release(load_spec(stated_spec(path, **FOUR["binomial"])))
    assert (found.n, found.mechanism["trials"], found.private) == (3, 6, True)
    write_column(path, [0, 10, 3.5])
    smoothed = {**FOUR["smoothed_histogram"], "draws": 3, "n": 50}
    found = load_stated_release(load_spec(stated_spec(path, **smoothed)))
    assert (found.n, found.trust, found.values.shape) == (50, "global", (3, 1))
    assert found.mechanism["weight"] == pytest.approx(5 / (5 + 50 * math.expm1(4 / 3)), rel=1e-12)
    write_column(path, [10.5, -3, 0, 20, 30])
    counts = {"kind": "perturbed_histogram", "epsilon": 4.0, "bins": 5, "n": 50}
    found = load_stated_release(load_spec(stated_spec(path, **counts)))
    assert (found.n, found.trust, found.scales, found.epsilon) == (50, "global", (0.5,), 4.0)
    assert capsys.readouterr().err == ""
    assert load_stated_release(load_spec(stated_spec(path, **{**counts, "n": 25}))).n == 25
    assert "warning: " in (said := capsys.readouterr().err)
    assert "1 of 5 noisy counts is above n = 25" in said


@pytest.mark.parametrize(
    ("values", "mechanism", "error", "message"),
    [
        (
            [1, 2],
            {"kind": "wavelet", "epsilon": 1, "levels": 2},
            DataError,
            "1 column, but a wavelet release of levels 2 has 7",
        ),
        (
            [1, 2.5],
            {"kind": "binomial", "epsilon": 1, "trials": 6},
            DataError,
            "from 0 to the 6 trials: record 2",
        ),
        ([1, 7, -1], {"kind": "binomial", "epsilon": 1, "trials": 6}, DataError, "record 2 (and 1 more)"),
        (
            [1, "nan"],
            {"kind": "binomial", "epsilon": 1, "trials": 6},
            DataError,
            "no finite number in record 2",
        ),
        ([1, 2], {**FOUR["smoothed_histogram"], "n": 9}, DataError, "has 2 draws, but mechanism.draws is 20"),
        ([1, 11], {**FOUR["smoothed_histogram"], "draws": 2, "n": 9}, DataError, "outside [0, 10]: draw 2"),
        ([1, 2], {**FOUR["smoothed_histogram"], "draws": 2}, SpecError, "mechanism.n: missing"),
        (
            [1, 2],
            {**FOUR["perturbed_histogram"], "n": 9},
            DataError,
            "has 2 noisy counts, but mechanism.bins is 5",
        ),
        ([1, 2], {**FOUR["perturbed_histogram"], "bins": 2}, SpecError, "mechanism.n: missing"),
        (
            [1, 2.5],
            {**FOUR["perturbed_histogram"], "bins": 2, "n": 9},
            DataError,
            "as geometric noise gives: bin 2",
        ),
        (
            [1, 2],
            {"kind": "binomial", "epsilon": 1, "trials": 6, "domain": None},
            SpecError,
            "mechanism.domain: missing",
        ),
    ],
)
def test_releases_made_elsewhere_that_cannot_be(
    tmp_path: Path, values: list[Any], mechanism: dict[str, Any], error: type[Exception], message: str
) -> None:
    spec = stated_spec(write_column(tmp_path / "z.csv", values), **mechanism)
    if spec["mechanism"]["domain"] is None:
        del spec["mechanism"]["domain"]
    with pytest.raises(error) as caught:
        load_stated_release(load_spec(spec))
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
