"""Fits of releases of groups from end to end: chains, summary, contrast of two groups, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy.special import ndtr

import dpmix
from dpmix.cli.commands import app
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.report.page import contrast_figure, panels
from dpmix.run.chains_reader import NamedChains, read_chains
from dpmix.run.exit_codes import run
from dpmix.spec import load_spec
from dpmix.summary.summary_result import Summary
from tests.helpers.pages import short_page

COMPOSITIONS: dict[str, Any] = {
    "data": {
        "simulate": "dirichlet",
        "alpha": {"female": [6.0, 1.5, 9.0], "male": [3.0, 2.0, 4.0], "un/known": [1.0, 1.0, 1.0]},
        "n": 300,
        "seed": 1,
        "columns": ["care", "food", "rest"],
        "group": "sex",
        "categories": {"sex": ["female", "male", "un/known"]},
    },
    "mechanism": {"kind": "log_moments", "threshold": 0.01, "epsilon": 4.0},
    "model": {"kind": "dirichlet"},
    "summary": {"grid": [0.0, 1.0, 11]},
    "sampler": {"iterations": 700, "burn_in": 200, "chains": 2, "seed": 1},
}


def fitted(spec: dict[str, Any], folder: Path) -> Path:
    release = dpmix.privatize(spec, quiet=True)
    assert release.adjacency == "replacement, private groups"
    path = folder / "chains.h5"
    dpmix.fit(spec, release, path, quiet=True, jobs=1)
    return path


@pytest.fixture(scope="module")
def compositions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fitted(COMPOSITIONS, tmp_path_factory.mktemp("compositions"))


@pytest.fixture(scope="module")
def regression(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("regression"), np.random.default_rng(2)
    sex = rng.random(400) < 0.4
    x = rng.normal(0.0, 2.0, 400)
    y = np.where(sex, 1.0 + 2.0 * x, -2.0 - x) + rng.normal(0.0, 1.0, 400)
    w = rng.normal(0.0, 1.0, 400)  # a second predictor, as where groups are compiled for others
    rows = [f"{a:.6f},{c:.6f},{b:.6f},{'ja' if s else 'no'}" for a, c, b, s in zip(x, w, y, sex, strict=True)]
    (folder / "t.csv").write_text("x,w,y,s\n" + "\n".join(rows) + "\n", encoding="utf-8")
    data = {"path": str(folder / "t.csv"), "columns": ["x", "w", "y"], "group": "s"}
    spec = {
        "data": {**data, "categories": {"s": ["ja", "no"]}},
        "mechanism": {"kind": "clamped_moments", "bounds": [[-6, 6], [-4, 4], [-12, 12]], "epsilon": 40.0},
        "model": {
            "kind": "linear_regression",
            "predict": [[0.0, 0.0], [1.0, 0.0]],
            "prior_sd": 5.0,
        },
        "sampler": {"iterations": 4500, "burn_in": 500, "thin": 4, "chains": 2, "seed": 1},
    }
    return fitted(spec, folder)


def named(path: Path) -> tuple[NamedChains, dict[str, Any]]:
    chains = read_chains([path])
    assert isinstance(chains, NamedChains)
    return chains, {parameter.name: chains.read(parameter) for parameter in chains.parameters}


def test_summary_has_each_group(compositions: Path, tmp_path: Path) -> None:
    chains, draws = named(compositions)
    assert chains.n == 300
    summary = dpmix.summarize([compositions], tmp_path / "s.h5")
    assert isinstance(summary, Summary)
    rows = summary.to_json()["parameters"]
    for g, group in enumerate(("female", "male", "un/known")):
        for j, part in enumerate(("care", "food", "rest")):
            assert rows[f"alpha[{group},{part}]"]["mean"] == pytest.approx(draws["alpha"][:, :, g, j].mean())
            assert rows[f"E[x][{group},{part}]"]["mean"] == pytest.approx(draws["mean"][:, :, g, j].mean())
        assert rows[f"group_size[{group}]"]["mean"] == pytest.approx(draws["group_size"][:, :, g].mean())
        censoring = summary.to_json()["composition"][group]["censoring"]
        assert censoring["size"] == pytest.approx(draws["group_size"][:, :, g].mean())
    np.testing.assert_allclose(draws["group_share"].sum(axis=2), 1.0)
    np.testing.assert_array_equal(draws["group_size"].sum(axis=2), 300.0)
    page = short_page(summary)
    assert "<h3>un/known</h3>" in page and "Expected shares E[x] in male" in page
    with h5py.File(tmp_path / "s.h5") as file:
        assert set(file["composition"]) == {"female", "male", "un_known"}
        assert file["composition/male/censoring/share"].shape == (3,)
        assert "female,care" in file["density"]
    assert "Censored below 0.01 in un/known, under the fit" in summary.to_text()
    assert summary.check.overall is not None and not summary.check.suspect
    assert [entry.name for entry in summary.check.entries][:3] == [
        "size of female",
        "size of male",
        "female: log care",
    ]
    assert len(summary.check.entries) == 2 + 3 * 3
    with h5py.File(compositions) as file:
        assert file["posterior_predictive/z"].shape == (2, 100, 11, 1)


def test_contrast_is_of_the_same_draws(
    compositions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, draws = named(compositions)
    found = dpmix.contrast(
        [compositions], tmp_path / "c.h5", groups=["un/known", "female"], report=tmp_path / "c.html"
    )
    assert found.names == ["care", "food", "rest"] and found.title == "E[x]" and found.margin == 0.01
    apart = draws["mean"][:, :, 2] - draws["mean"][:, :, 0]
    for j, part in enumerate(found.differences):
        own = apart[:, :, j]
        assert part.mean == pytest.approx(own.mean()) and part.sd == pytest.approx(own.std())
        assert (part.lower, part.upper) == pytest.approx(np.quantile(own, [0.025, 0.975]))
        assert part.probability == pytest.approx((np.abs(own) > 0.01).mean())
        assert part.above == pytest.approx((own > 0.0).mean())
    guarantee = found.to_json()["guarantee"]
    assert guarantee["epsilon"] == pytest.approx(4.0, rel=1e-6)
    assert guarantee["words"].startswith("One release of both groups, with (epsilon = 4")
    assert "for the replacement of one record, its group included" in guarantee["words"]
    with h5py.File(tmp_path / "c.h5") as file:
        assert file["contrast"].attrs["group_a"] in ("un/known", b"un/known")
        np.testing.assert_allclose(file["contrast/mean"], apart.mean(axis=(0, 1)))
        means = draws["mean"][:, :, 0].mean(axis=(0, 1))
        np.testing.assert_allclose(file["contrast/mean_b"], means)
    assert "difference of E[x], un/known less female" in (tmp_path / "c.html").read_text("utf-8")
    arguments = ["summarize", str(compositions), "--contrast", "--groups", "male, female", "--json"]
    assert run(app, arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["groups"]) == ["male", "female"] and list(told["difference"]) == found.names
    assert told["groups"]["male"]["n"] == 300


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({}, "--groups A,B: missing; the release has the groups female, male, un/known"),
        ({"groups": ["femal", "male"]}, "--groups: the release has no group femal; did you mean female?"),
        (
            {"groups": ["zz", "male"]},
            "--groups: the release has no group zz; there are female, male, un/known",
        ),
        ({"groups": ["male"]}, "--groups male: give two different groups"),
        ({"groups": ["male", "male"]}, "--groups male,male: give two different groups"),
        ({"public_groups": True}, "--public-groups: is for two chains files"),
        ({"groups": ["male", "female"], "margin": 1.5}, "--margin: 1.5 must be a difference of shares"),
    ],
)
def test_wrong_groups_are_named(compositions: Path, more: dict[str, Any], wanted: str) -> None:
    with pytest.raises(UsageError) as caught:
        dpmix.contrast([compositions], **more)
    assert str(caught.value).startswith(wanted)


def test_what_groups_do_not_go_with_is_refused(compositions: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is of a release of groups, female, male, un/known: compare these"):
        dpmix.contrast([compositions, compositions])
    with pytest.raises(DataError, match="^synthesize --chains: the chains are of a release of groups by sex"):
        dpmix.synthesize(COMPOSITIONS, tmp_path / "x.csv", chains=[compositions], quiet=True)
    with pytest.raises(SpecError, match="^summary.truth: is of one group"):
        dpmix.summarize([compositions], overrides=["summary.truth=[1, 2, 3]"])
    for kind in ("bootstrap", "abc"):
        with pytest.raises(SpecError, match=f"^sampler.kind: {kind} takes no release of groups"):
            load_spec({**COMPOSITIONS, "sampler": {"kind": kind, "iterations": 10, "burn_in": 0}})


def test_regressions_of_groups_are_told_apart(regression: Path, tmp_path: Path) -> None:
    _, draws = named(regression)
    assert draws["beta"].shape == (2, 1000, 2, 3)
    content = dpmix.summarize([regression]).to_json()
    rows = content["parameters"]
    assert list(content["beyond_bounds"]) == [f"{group},{name}" for group in ("ja", "no") for name in "xwy"]
    # x / 2 and y less its mean over its sd are standard normal
    for key, sds in (("ja,x", 3.0), ("no,y", 14.0 / 5.0**0.5)):
        assert content["beyond_bounds"][key] == pytest.approx(2.0 * ndtr(-sds), abs=0.01)
    for group, line in {"ja": (1.0, 2.0), "no": (-2.0, -1.0)}.items():
        for name, wanted in zip(("intercept", "x"), line, strict=True):
            row = rows[f"beta[{group},{name}]"]
            assert row["rhat"] < 1.05
            assert abs(row["mean"] - wanted) < 4.0 * row["sd"] + 0.05
        assert f"prediction[{group},1]" in rows and f"sigma2[{group}]" in rows
    with pytest.raises(
        DataError, match="is of a release of groups, ja, no: compare these by --contrast of that"
    ):
        dpmix.contrast([regression, regression])
    found = dpmix.contrast([regression], report=tmp_path / "c.html")
    assert found.title == "parameter" and found.margin == 0.0
    by_name = {part.name: part for part in found.differences}
    assert {"beta[intercept]", "beta[x]", "sigma2", "prediction[0]", "x_cov[x,x]"} < set(by_name)
    for title in ("prediction", "prediction_clamped", "predictive"):  # of which rows, as summaries say it
        assert by_name[f"{title}[1]"].shown == f"{title}[x = 1, w = 0]"
    assert found.to_json()["difference"]["prediction[1]"]["label"] == "x = 1, w = 0"
    assert "label" not in found.to_json()["difference"]["beta[x]"]
    assert not any(name.startswith("group_") for name in by_name)
    slope = draws["beta"][:, :, 0, 1] - draws["beta"][:, :, 1, 1]
    assert by_name["beta[x]"].mean == pytest.approx(slope.mean())
    assert by_name["beta[x]"].lower > 0.0 and by_name["beta[x]"].above == 1.0
    parts = panels(found)
    assert set(parts) == {""} and by_name["beta[x]"].unit == ""
    drawn = contrast_figure(found, "", parts[""]).axes[0]
    assert "each in its own posterior standard deviations" in drawn.get_xlabel()
    spans = [collection.get_segments() for collection in drawn.collections][0]
    wide = sorted((part.upper - part.lower) / part.sd for part in parts[""])
    assert sorted(segment[1, 0] - segment[0, 0] for segment in spans) == pytest.approx(wide)
    assert 3.0 < wide[len(wide) // 2] < 5.0  # 95% intervals, of which those with heavy tails are wider
    assert "Pr(> 0)" in found.to_text() and "ja - no is the difference of each parameter" in found.to_text()
