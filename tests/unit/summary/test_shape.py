"""The contraction of the shape: of quantiles standardized by mean and sd, draw by draw."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import h5py
import numpy as np
import pytest

import dpmix
from dpmix.api.calibrate import mechanism_of
from dpmix.spec import load_spec
from dpmix.summary.headline import WELL_LEARNT
from dpmix.summary.shape import QUARTILES, ShapeContraction, shape_contraction
from dpmix.summary.summary_result import Summary
from scripts.verification.coverage import DOMAIN, POPULATIONS, SAMPLER
from tests.helpers.pages import short_page
from tests.helpers.seeds import seed_of

Draws = dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]


def drawn(size: int, shape_sd: float, column: str = "", moved: float = 50.0, by: float = 30.0) -> Draws:
    """Draws of mean, sd and a median whose place between them has some sd."""
    rng = np.random.default_rng(1)
    mean, sd = moved + by * rng.normal(0.0, 0.1, size), by * rng.uniform(0.9, 1.1, size)
    median = mean + sd * shape_sd * rng.normal(0.0, 1.0, size)
    entry = f"[{column}]" if column else ""
    return {f"mean{entry}": mean, f"sd{entry}": sd, f"quantile[{column}{',' * bool(column)}0.5]": median}


def of(series: Draws, prior: Draws) -> dict[str, float]:
    found = shape_contraction(series, prior)
    return {} if found is None else dict(found.contractions)


def test_it_is_one_less_the_ratio_of_variances() -> None:
    assert of(drawn(1000, 0.1), drawn(1000, 0.2)) == {"quantile[0.5]": pytest.approx(0.75)}
    assert of(drawn(1000, 0.2), drawn(1000, 0.2)) == {"quantile[0.5]": pytest.approx(0.0, abs=1e-12)}
    assert of(drawn(1000, 0.4), drawn(1000, 0.2))["quantile[0.5]"] == pytest.approx(-3.0)


def test_knowing_where_and_how_wide_the_records_are_is_no_shape() -> None:
    """The contraction of the quantile itself is 1 then, and nothing is known of what lies between."""
    narrow, wide = drawn(1000, 0.2, by=1e-3), drawn(1000, 0.2, moved=0.0, by=1e3)
    assert of(narrow, wide)["quantile[0.5]"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("column", ["height", "women,height", "size, in cm"])
def test_columns_and_groups_are_standardized_each_by_its_own(column: str) -> None:
    series, prior = drawn(100, 0.1, column, by=7.0), drawn(100, 0.2, column)
    found = of(series | drawn(100, 0.1), prior | drawn(100, 0.1))
    name = f"quantile[{column},0.5]"
    assert found == {name: pytest.approx(0.75), "quantile[0.5]": pytest.approx(0.0, abs=1e-12)}


def test_none_without_a_prior_or_where_that_has_one_shape() -> None:
    series = drawn(100, 0.1)
    assert shape_contraction(series, {}) is None
    assert shape_contraction({"beta[x]": np.ones(9)}, {"beta[x]": np.ones(9)}) is None
    assert shape_contraction(series, drawn(100, 0.0) | {"quantile[0.5]": drawn(100, 0.0)["mean"]}) is None


def test_one_value_and_infinite_draws_of_a_prior_do_no_harm() -> None:
    prior = drawn(1000, 0.2)
    alike = of(drawn(1000, 0.1), prior)
    prior = {name: np.append(draws, [np.inf, 3.0]) for name, draws in prior.items()}
    prior["sd"][-1] = 0.0  # all mass at 3
    assert of(drawn(1000, 0.1), prior)["quantile[0.5]"] == pytest.approx(alike["quantile[0.5]"], abs=1e-3)


def test_its_section_has_it_by_name() -> None:
    assert ShapeContraction({"quantile[0.5]": 0.25}).section().key == "shape_contraction"


# Fits: what wide noise hides


def summarized(folder: Path, population: str, epsilon: float, quantiles: list[float]) -> Summary:
    """Fit 400 records under Laplace noise of scale 100/epsilon."""
    rng = np.random.default_rng(seed_of(population, epsilon))
    records = POPULATIONS[population](rng, 400)
    spec = {
        "data": {"column": "y", "domain": list(DOMAIN)},
        "mechanism": {"kind": "laplace", "epsilon": epsilon},
        "model": {"kind": "mixture"},
        "sampler": SAMPLER | {"iterations": 800, "burn_in": 300, "seed": 1},
        "summary": {"quantiles": quantiles},
    }
    release = mechanism_of(load_spec(spec, data={"y": records}), 1, 400).simulate(
        records[:, None], ("y",), rng
    )[0]
    fitted = {key: spec[key] for key in ("model", "sampler", "summary")}
    dpmix.fit(fitted, release, folder / "chains.h5", quiet=True, jobs=1)
    found = dpmix.summarize(folder / "chains.h5", quiet=True)
    assert isinstance(found, Summary)
    return found


WORDS = (
    "The release tells mean and sd, and the prior has a say in the shape between: of the prior's variance of "
)


@pytest.mark.parametrize(
    "quantiles",
    [
        pytest.param([0.25, 0.5, 0.75], id="quartiles"),
        pytest.param([0.9], id="another", marks=pytest.mark.matrix),
    ],
)
def test_two_groups_far_apart_under_wide_noise_are_not_usable(tmp_path: Path, quantiles: list[float]) -> None:
    """Mean, sd and every quantile have a contraction above 0.5, and the median may be in either group."""
    summary = summarized(tmp_path, "two far apart", 4.0, quantiles)
    known = {name: scalar.contraction for name, scalar in summary.parameters.items()}
    for name in ("mean", "sd", *(f"quantile[{level:g}]" for level in quantiles)):
        learnt = known[name]
        assert learnt is not None and learnt > WELL_LEARNT
    assert [name for name in known if name.startswith("quantile")] == [f"quantile[{x:g}]" for x in quantiles]
    assert any(reason.startswith(WORDS) for reason in summary.verdict.reasons)
    assert summary.verdict.answer != "usable"
    shape = summary.to_json()["shape_contraction"]
    assert sorted(shape) == sorted(f"quantile[{level:g}]" for level in {*quantiles, *QUARTILES})
    assert min(shape.values()) < WELL_LEARNT
    summary.write(tmp_path / "summary.h5")
    with h5py.File(tmp_path / "summary.h5") as tree:
        kept = tree["shape_contraction"]
        assert list(kept["contraction"][:]) == pytest.approx(list(shape.values()))
    assert WORDS in " ".join(summary.to_text().split())
    assert WORDS in unescape(short_page(summary))


@pytest.mark.parametrize(
    "population", [pytest.param("one normal", marks=pytest.mark.matrix), "evenly spread"]
)
def test_shapes_that_the_release_tells_are_not_doubted(tmp_path: Path, population: str) -> None:
    summary = summarized(tmp_path, population, 42.0, [0.25, 0.5, 0.75])
    shape = summary.quantity(ShapeContraction)
    assert shape is not None and min(shape.contractions.values()) > 0.7
    assert not any("shape" in reason for reason in summary.verdict.reasons)
