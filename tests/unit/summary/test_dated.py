"""Dates in summaries: numbers for programs, dates for people, and nothing else a date."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.dates import AutoDateLocator
from matplotlib.ticker import MaxNLocator

import dpmix
from dpmix.errors import DataError, SpecError
from dpmix.report import check_page, plots
from dpmix.report.page import render
from dpmix.run.chains_reader import Chains, NamedChains, read_chains
from dpmix.spec.days import Day, day_of
from dpmix.summary.dated import NONE, Dated, dated_of
from tests.helpers.chains_files import BASE, a_spec, states_of_mixture, write_chains
from tests.helpers.seeds import rng_of
from tests.helpers.shown_files import write_regression

START = 18262.0  # 2020-01-01


def dated_chains(folder: Path, name: str = "day", dates: str = '["day"]') -> Path:
    """Write a mixture of dates around 2021-05-15, 2022-09-27 and 2024-02-09."""
    rng = rng_of("dated")
    chains = [states_of_mixture(60, rng, centres=(500.0, 1000.0, 1500.0)) for _ in range(2)]
    for chain in chains:
        chain["mean"] += START
        chain["variance"] *= 900.0
    domain = [[START, START + 1826]]
    mechanism = {"kind": "laplace", "scale": [20.0], "domain": domain}
    spec = a_spec(
        sampler__iterations=1060,
        mechanism__domain=domain,
        model__base={"kind": "nig", "mu0": START + 900, "lambda": 0.1, "a": 3.0, "b": 9e4},
    )
    return write_chains(
        folder / "c.h5",
        chains,
        spec=spec,
        base=type(BASE)(START + 900, 0.1, 3.0, 9e4),
        observed=START + rng.uniform(0, 1800, 200),
        attrs={
            "dates": dates,
            "columns": json.dumps([name]),
            "mechanism": json.dumps(mechanism),
            "kernel": "normal",
        },
        constants={"noise_scale": 20.0},
    )


def test_a_column_of_dates_is_summarized_in_dates(tmp_path: Path) -> None:
    summary = dpmix.summarize(
        dated_chains(tmp_path), tmp_path / "s.h5", overrides=["summary.tails=[2022-06-01]"]
    )
    found = summary.to_json()["parameters"]
    mean = summary.parameters["mean"].mean
    assert type(found["mean"]["mean"]) is float and found["mean"]["mean"] == mean
    assert abs(float(day_of(found["mean"]["date"]["mean"]) or 0) - mean) <= 0.5
    for level, value in found["quantile[0.5]"]["quantiles"].items():
        assert abs(float(day_of(found["quantile[0.5]"]["date"]["quantiles"][level]) or 0) - value) <= 0.5
    assert found["tail[19144]"]["label"] == "2022-06-01"
    assert "date" not in found["sd"] and "date" not in found["n_clusters"]
    assert summary.to_json()["density"]["date"] is True
    text = " ".join(summary.to_text().split())
    date = found["mean"]["date"]["mean"]
    assert f"mean {date}" in text and "their sd is in days" in text and "highest at 202" in text
    assert "tail[2022-06-01]" in text and f"mean {date}" in text
    assert "a cluster's mean is 2022-06-19" in text
    shown = dpmix.show(tmp_path / "s.h5")
    rows = {row["name"]: row for row in shown.to_json()["parameters"]}
    assert rows["mean"]["date"] == date and rows["sd"]["date"] is None


def test_figures_have_dates_on_their_axes(tmp_path: Path) -> None:
    summary = dpmix.summarize(dated_chains(tmp_path))
    axes = plots.density_figure(summary).axes[0]
    assert isinstance(axes.xaxis.get_major_locator(), AutoDateLocator) and axes.get_xlabel() == "day"
    assert "days since 1970-01-01" in plots.trace_figure(summary, "mean").axes[0].get_title(loc="left")
    for date, kind in ((True, AutoDateLocator), (False, MaxNLocator)):
        drawn = check_page.curve_figure(summary.check.curves[""], "", date=date).axes[0]
        assert isinstance(drawn.xaxis.get_major_locator(), kind)
    assert render(summary)
    plain = dpmix.summarize(dated_chains(tmp_path, dates="[]"))
    assert not isinstance(plots.density_figure(plain).axes[0].xaxis.get_major_locator(), AutoDateLocator)


def test_columns_of_numbers_have_none(tmp_path: Path) -> None:
    chains = read_chains([dated_chains(tmp_path, name="other")])
    assert isinstance(chains, Chains) and not dated_of(chains).only
    with pytest.raises(SpecError, match="summary.tails: 2022-06-01 is a date"):
        dpmix.summarize(tmp_path / "c.h5", overrides=["summary.tails=[2022-06-01]"])
    found = dpmix.summarize(tmp_path / "c.h5").to_json()
    assert "date" not in found["parameters"]["mean"] and "date" not in found["density"]


def test_which_scalars_are_dates() -> None:
    several = Dated(frozenset({"day"}))
    assert (
        several.is_date("mean[day]")
        and several.is_date("quantile[day,0.5]")
        and several.is_date("mean[f,day]")
    )
    assert not several.is_date("mean[pay]") and not several.is_date("sd[day]") and not several.is_date("mean")
    assert several.point("tail[day,19000]") == "day, 2022-01-08" and several.point("tail[pay,19000]") is None
    assert several.point("density[day=19000]") == "day, ~2022-01-08"
    only = Dated(frozenset({"day"}), only=True)
    assert only.is_date("mean") and only.is_date("mean[f]") and only.is_date("quantile[f,0.5]")
    line = Dated(frozenset({"day"}), response=True)
    assert line.is_date("prediction[0]") and not line.is_date("beta[day]") and not line.is_date("sigma2")
    assert not NONE.is_date("mean") and NONE.pair("x", (1.0, 2.0)) == (1.0, 2.0)


def test_a_regression_of_dates(tmp_path: Path) -> None:
    write_regression(tmp_path / "c.h5", dates='["pay"]')
    chains = read_chains([tmp_path / "c.h5"])
    assert isinstance(chains, NamedChains) and dated_of(chains).response is True
    found = dpmix.summarize(tmp_path / "c.h5").to_json()["parameters"]
    assert found["prediction[0]"]["date"]["mean"].startswith("2019-04") and "date" not in found["beta[age]"]


def test_damaged_names_are_refused(tmp_path: Path) -> None:
    chains = read_chains([dated_chains(tmp_path, dates='{"a": 1}')])
    with pytest.raises(DataError, match="which columns are dates"):
        dated_of(chains)


def test_days_are_numbers_to_programs() -> None:
    assert float(Day(18262.0)) + 1 == 18263.0 and f"{Day(18262.0):.4g}" == "2020-01-01"
    assert json.dumps({"x": Day(18262.0)}) == '{"x": 18262.0}'
    assert np.asarray([Day(18262.0)]).dtype == np.float64
