"""Dates in summaries: numbers for programs, dates for people, and nothing else a date."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.dates import AutoDateLocator
from matplotlib.ticker import MaxNLocator

import dpmix
from dpmix.columns.dated import NONE, Dated, bins_in_words
from dpmix.errors import DataError, SpecError
from dpmix.models.linear_regression.model import Units, _labels
from dpmix.models.meaning_base import dated_of
from dpmix.report import plots
from dpmix.report.release_pictures import curve_figure
from dpmix.run.chains_reader import Chains, NamedChains, read_chains
from dpmix.spec.days import Day, day_of, day_text
from dpmix.spec.model_section import coefficients_in_words
from dpmix.store.html import drawing, on_dates
from dpmix.summary.clusters_by_value import CellProbabilities, ClustersByValue
from tests.helpers.chains_files import BASE, a_spec, states_of_mixture, write_chains
from tests.helpers.pages import short_page
from tests.helpers.seeds import rng_of
from tests.helpers.shown_files import write_regression

START = 18262.0  # 2020-01-01


def dated_chains(folder: Path, name: str = "day", dates: str = '["day"]', latest: float = 1500.0) -> Path:
    """Write a mixture of dates around 2021-05-15, 2022-09-27 and 2024-02-09."""
    rng = rng_of("dated")
    chains = [states_of_mixture(60, rng, centres=(500.0, 1000.0, latest)) for _ in range(2)]
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


def test_warnings_have_bounds_of_dates(tmp_path: Path) -> None:
    found = dpmix.summarize(dated_chains(tmp_path, latest=1900.0))
    (text,) = [text for text in found.warnings if "beyond the public bounds" in text]
    assert "beyond the public bounds [2020-01-01, 2024-12-31]:" in text


def test_figures_have_dates_on_their_axes(tmp_path: Path) -> None:
    summary = dpmix.summarize(dated_chains(tmp_path))
    axes = plots.density_figure(summary).axes[0]
    assert isinstance(axes.xaxis.get_major_locator(), AutoDateLocator) and axes.get_xlabel() == "day"
    for name, whole in (("mean", True), ("sd", False)):
        drawn = plots.trace_figure(summary, name).axes[0]
        drawn.figure.canvas.draw()
        labels = [text.get_text() for text in drawn.get_yticklabels() if text.get_text()]
        assert labels and all(bool(re.fullmatch(r"20\d\d-\d\d-\d\d", label)) is whole for label in labels)
    page = short_page(summary, drawn=True)
    assert re.search(
        r'aria-label="Density of day, highest near 202\d-\d\d-\d\d and above a tenth of that '
        r"from 20\d\d-\d\d-\d\d to 20\d\d-",
        page,
    )
    for date, kind in ((True, AutoDateLocator), (False, MaxNLocator)):
        drawn = curve_figure(summary.check.curves[""], "", date=date).axes[0]
        assert isinstance(drawn.xaxis.get_major_locator(), kind)
    plain = dpmix.summarize(dated_chains(tmp_path, dates="[]"))
    assert not isinstance(plots.density_figure(plain).axes[0].xaxis.get_major_locator(), AutoDateLocator)


@pytest.mark.parametrize("width", [3.0, 40.0, 300.0, 730.0, 900.0, 1900.0, 20000.0])
def test_dates_find_labels_for_any_span(width: float) -> None:
    """A locator that had to find three labels warned of two to three years on a narrow axis."""
    for most in (5, 9):
        with drawing((3.0, 2.0)) as (figure, axes), warnings.catch_warnings():
            warnings.simplefilter("error")
            axes.plot([START, START + width], [0, 1])
            on_dates(axes, most)
            figure.canvas.draw()
        assert 1 <= sum(bool(text.get_text()) for text in axes.get_xticklabels()) <= most


def test_estimates_and_clusters_say_dates(tmp_path: Path) -> None:
    summary = dpmix.summarize(dated_chains(tmp_path), overrides=["summary.baseline=ems"])
    text, held = " ".join(summary.to_text().split()), summary.to_json()["ems"]
    assert f"mean {day_text(held['mean'])}, sd {held['sd']:.4g} days" in text
    assert isinstance(held["mean"], float)
    ends, shares = np.array([-np.inf, 19000.0, np.inf]), np.array([0.4, 0.6])
    cells = CellProbabilities(ends[:-1], ends[1:], np.eye(2), np.eye(2), np.eye(2), None)
    found = ClustersByValue(np.arange(2), shares, shares, shares, cells, None, 10, 0.95, date=True)
    assert "1: up to 2022-01-08, 40%" in found.in_words() and "2: from 2022-01-08 up" in found.in_words()
    assert "from 1.9e+04 up" in replace(found, date=False).in_words()
    assert summary.dated.only and all("e+0" not in name for name in summary.sensitivity.labels.values())
    rough = [name for name in summary.parameters if name.startswith("density[")]
    assert set(rough) <= set(summary.sensitivity.labels)
    assert not any(name in text for name in rough)


def test_bins_are_named_by_what_is_in_them() -> None:
    """The outermost ones have the ends of the range, which records are clamped to."""
    assert bins_in_words([0.0, 10000.0, 15000.0]) == ["[0, 10000)", "[10000, 15000]"]
    assert bins_in_words([0.0, 4.0, 8.0, 12.0], ends="(]") == ["[0, 4]", "(4, 8]", "(8, 12]"]
    assert bins_in_words([18262.0, 18263.0], date=True, ends="(]") == ["[2020-01-01, 2020-01-02]"]


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
    write_regression(tmp_path / "u.h5", dates='["pay"]', unit='{"age": "year"}')
    assert "days / year" in dpmix.summarize(tmp_path / "u.h5").to_text().splitlines()[1]


def test_priors_and_new_rows_of_a_regression_say_dates() -> None:
    middle = coefficients_in_words(
        [(18.0, 90.0), (Day(18262.0), Day(20088.0))], [0.0, 0.0], [1.0, 1.0], ["age"]
    )
    assert "is 2022-07-02 +- 913, with slope 0 +- 25.4 on age" in middle
    units = Units.of([(18262.0, 20088.0), (0.0, 10.0)])
    rows = np.array([[-1.0]])
    assert _labels(units, ["day"], rows, [(Day(18262.0), Day(20088.0)), (0.0, 10.0)]) == ["day = 2020-01-01"]
    assert _labels(units, ["day"], rows, [(18262.0, 20088.0), (0.0, 10.0)]) == ["day = 18262"]


def test_damaged_names_are_refused(tmp_path: Path) -> None:
    chains = read_chains([dated_chains(tmp_path, dates='{"a": 1}')])
    with pytest.raises(DataError, match="which columns are dates"):
        dated_of(chains)


def test_days_are_numbers_to_programs() -> None:
    assert float(Day(18262.0)) + 1 == 18263.0 and f"{Day(18262.0):.4g}" == "2020-01-01"
    assert json.dumps({"x": Day(18262.0)}) == '{"x": 18262.0}'
    assert np.asarray([Day(18262.0)]).dtype == np.float64
