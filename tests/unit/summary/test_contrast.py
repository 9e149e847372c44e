"""Two fits compared: against all pairs of draws and a known law; joint guarantees; refusals."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from numpy.typing import NDArray
from scipy.stats import norm

import dpmix
from dpmix.cli.commands import app
from dpmix.columns.dated import NONE, Dated
from dpmix.errors import DataError, UsageError
from dpmix.report.page import contrast_figure, panels, render_contrast
from dpmix.run.chains_reader import read_chains
from dpmix.run.exit_codes import run
from dpmix.summary.contrast_result import Contrast, ContrastedFit, Difference, JointGuarantee, _meant
from dpmix.summary.subject import Subject
from tests.helpers.chains_files import states_of_mixture, write_chains

Floats = NDArray[np.float64]
NAMES = ("care", "food", "rest")
DRAWS = 500  # of each of two chains


def fitted(folder: Path, name: str, columns: tuple[str, ...] = NAMES, **mechanism: Any) -> Path:
    """Fit simulated compositions by the bootstrap."""
    spec = {
        "data": {
            "simulate": "dirichlet",
            "alpha": [6.0, 1.5, 9.0][: len(columns)],
            "n": 60,
            "seed": 1 + len(name),
            "columns": list(columns),
        },
        "mechanism": {"kind": "log_moments", "threshold": 0.001, "epsilon": 2.0, **mechanism},
        "model": {"kind": "dirichlet"},
        "summary": {"grid": [0.0, 1.0, 11]},
        "sampler": {"kind": "bootstrap", "iterations": DRAWS, "burn_in": 0, "chains": 2, "seed": 1},
    }
    release = dpmix.privatize(spec, quiet=True)
    path = folder / f"{name}.h5"
    dpmix.fit(spec, release, path, quiet=True, jobs=1)
    return path


def placed(path: Path, draws: Floats, columns: tuple[str, ...] = NAMES) -> None:
    """Put draws (chain, draw, share) of the shares NAMES in place of those of a file; as of a posterior."""
    order = [NAMES.index(name) for name in columns]
    with h5py.File(path, "r+") as file:
        file["posterior/mean"][...] = draws[:, :, order]
        kept = file.attrs["spec"]
        file.attrs["spec"] = kept.replace(b"kind: bootstrap", b"kind: data_augmentation")


@pytest.fixture(scope="module")
def fits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fits")
    fitted(folder, "a")
    fitted(folder, "bb", NAMES[::-1], epsilon=0.5)
    return folder


def normal_draws(centre: Floats, sd: Floats, seed: int) -> Floats:
    """Return draws (2, DRAWS, 3) that are quantiles of normals, in random order."""
    rng, points = np.random.default_rng(seed), norm.ppf((np.arange(2 * DRAWS) + 0.5) / (2 * DRAWS))
    columns = [c + s * rng.permutation(points) for c, s in zip(centre, sd, strict=True)]
    return np.stack(columns, axis=1).reshape(2, DRAWS, 3)


def test_rows_have_units_and_pictures_one_scale_each() -> None:
    """On one axis a difference of dollars left nothing to see of one of probabilities."""
    subject = Subject(columns=("pay",), unit="dollars", groups=("f", "m"))
    rows = {
        "mean": (300.0, 250.0),
        "quantile[0.5]": (-4e3, 90.0),
        "tail[20]": (0.01, 0.02),
        "n_clusters": (1, 2),
    }
    parts = [
        replace(
            Difference(name, mean, sd, mean - 2 * sd, mean + 2 * sd, None, 0.5, abs(mean) > 2 * sd, 0.5),
            **_meant(name, subject, NONE),
        )
        for name, (mean, sd) in rows.items()
    ]
    fits = [ContrastedFit(label, "c.h5", 9, "x", np.array([2e4, 3e4, 0.5, 3.0])) for label in "fm"]
    found = Contrast(
        (fits[0], fits[1]),
        "parameter",
        tuple(parts),
        0.0,
        0.95,
        False,
        False,
        JointGuarantee(1.0, 0.0, None, "g"),
        (),
        (),
    )
    by_axis = panels(found)
    assert list(by_axis) == ["pay (dollars)", "probabilities", ""]
    labels = [contrast_figure(found, axis, own).axes[0].get_xlabel() for axis, own in by_axis.items()]
    assert labels[0] == "difference of pay (dollars), f less m"
    text, held = found.to_text(), found.to_json()["difference"]
    assert (
        "mean (dollars)" in text
        and "30,000" in text
        and "20,000" in text
        and "2e+04" not in text
        and "-200 to 800" in text
    )
    assert held["mean"]["unit"] == "dollars" and "unit" not in held["tail[20]"]
    page = render_contrast(found)
    assert page.count("<figure>") == 3
    assert "intervals beyond 0: quantile[0.5]: mean 300" in page and "intervals beyond 0: none" in page
    dated = Dated(frozenset({"day"}), only=True)
    days = replace(parts[0], **_meant("mean", Subject(columns=("day",)), dated), mean=-2.0)
    assert days.shown == "mean (days)" and days.axis == "day (days)"
    other = replace(
        found, differences=(days,), groups=tuple(replace(f, mean=np.array([18262.0])) for f in fits)
    )
    assert "2020-01-01" in other.to_text() and "-2" in other.to_text()
    assert _meant("sd", Subject(columns=("day",)), dated)["date"] is False
    assert _meant("tail[18262]", Subject(), dated)["label"] == "tail[2020-01-01]"


def test_differences_of_posteriors_are_those_of_all_pairs(fits: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "a.h5", tmp_path / "b.h5"
    shutil.copy(fits / "a.h5", one)
    shutil.copy(fits / "bb.h5", other)
    centres = np.array([[0.41, 0.05, 0.54], [0.39, 0.048, 0.552]])
    sds = np.array([[0.004, 0.002, 0.005], [0.006, 0.001, 0.003]])
    first, second = (normal_draws(c, s, seed) for seed, (c, s) in enumerate(zip(centres, sds, strict=True)))
    placed(one, first)
    placed(other, second, NAMES[::-1])
    found = dpmix.contrast([one, other], margin=0.01, overrides=["summary.level=0.9"])
    assert not found.is_bootstrap
    assert found.names == list(NAMES)  # by name, whatever their order in B
    for j, part in enumerate(found.differences):
        pairs = (first[:, :, j].reshape(-1, 1) - second[:, :, j].reshape(1, -1)).ravel()
        assert part.probability == pytest.approx((np.abs(pairs) > 0.01).mean(), abs=1e-12)
        ends = np.quantile(pairs, [0.05, 0.95], method="inverted_cdf")
        assert (part.lower, part.upper) == pytest.approx(ends, abs=1e-12)
        assert (part.mean, part.sd) == pytest.approx((pairs.mean(), pairs.std()), abs=1e-12)
        # and the law that they are draws of
        law = norm(centres[0, j] - centres[1, j], math.hypot(*sds[:, j]))
        assert part.probability == pytest.approx(law.sf(0.01) + law.cdf(-0.01), abs=2e-3)
        assert (part.lower, part.upper) == pytest.approx(law.ppf([0.05, 0.95]), abs=0.02 * law.std())
        assert part.excludes_margin == (part.lower > 0.01 or part.upper < -0.01)
    assert [part.excludes_margin for part in found.differences] == [False, False, False]
    tight = dpmix.contrast([one, other], margin=0.001, overrides=["summary.level=0.9"])
    assert [part.excludes_margin for part in tight.differences] == [True, False, True]


def test_bootstraps_give_confidence_intervals_and_no_probability(fits: Path) -> None:
    found = dpmix.contrast([fits / "a.h5", fits / "bb.h5"])
    assert found.is_bootstrap
    with h5py.File(fits / "a.h5") as a, h5py.File(fits / "bb.h5") as b:
        draws = [file["posterior/mean"][...].reshape(-1, 3) for file in (a, b)]
    pairs = (draws[0][:, :1] - draws[1][:, 2:].T).ravel()
    ends = np.quantile(pairs, [0.025, 0.975], method="inverted_cdf")
    care = found.differences[0]
    assert (care.lower, care.upper) == pytest.approx(ends, abs=1e-12)
    assert all(part.probability is None for part in found.differences)
    words = found.to_text()
    assert "95% confidence interval" in words
    assert "Pr(beyond)" not in words
    assert found.to_json()["interpretation"] == "confidence"
    # what keeps either fit from "usable" is said, whether the fit's own warnings have it or not
    told = [text for text in found.warnings if "The verdict of the fit is " in text]
    assert [text[:40] for text in told] == [f'{each}: The verdict of the fit is "with care"' for each in "AB"]
    assert all("A bootstrap has no prior, beside which" in text for text in told)


def restated(path: Path, source: Path, **attrs: Any) -> Path:
    """Copy chains and change what they say of the release behind them."""
    shutil.copy(source, path)
    with h5py.File(path, "r+") as file:
        for name, value in attrs.items():
            file.attrs[name] = value
    return path


def test_no_joint_guarantee_is_stated_unless_groups_are_public(fits: Path, tmp_path: Path) -> None:
    pair = [fits / "a.h5", fits / "bb.h5"]
    none = dpmix.contrast(pair)
    stated = none.guarantee
    assert [stated.epsilon, stated.delta, stated.rho, stated.adjacency] == [None] * 4
    assert none.to_json()["guarantee"] == {
        "epsilon": None,
        "delta": None,
        "rho": None,
        "adjacency": None,
        "words": stated.words,
        "public_groups": False,
    }
    assert stated.words.startswith("No joint guarantee is stated of the two releases: a record that is")
    assert "-differential privacy" not in none.to_text() and "(--public-groups)" in none.to_text()
    assert "data.group" in stated.words and "sum" not in stated.words
    larger = dpmix.contrast(pair, public_groups=True).guarantee
    assert larger.adjacency == "replacement, public parts" and larger.delta == 0.0
    assert larger.epsilon == pytest.approx(2.0)
    rhos = [float(str(read_chains([path]).attrs["rho"])) for path in pair]
    assert larger.rho == pytest.approx(max(rhos)) and max(rhos) < 1 + math.exp(-2.0)
    assert "the larger of the two" in larger.words
    # these are simulated: the guarantee says that it is of noise that was not real
    assert "had their noise been real" in larger.words
    # releases that say that they are of public parts do not say of which: two of one part would add up
    parts = [
        restated(tmp_path / f"{i}.h5", path, adjacency="replacement, public parts", private=1, simulated=0)
        for i, path in enumerate(pair)
    ]
    assert dpmix.contrast(parts).guarantee.epsilon is None
    public = dpmix.contrast(parts, public_groups=True).guarantee
    assert (public.epsilon, public.rho) == (larger.epsilon, larger.rho)
    assert public.words == (
        "Together the two releases satisfy 2-differential privacy and 0.5439-zero-concentrated differential "
        "privacy, the larger of the two, on the statement that they are of different groups, and that who is "
        "in which is public, and does not change when a record is replaced."
    )
    assert dpmix.contrast([parts[0], pair[1]]).guarantee.epsilon is None
    above = restated(tmp_path / "above.h5", parts[0], epsilon=2.0004)
    words = dpmix.contrast([above, parts[1]], public_groups=True).guarantee.words
    assert "satisfy 2.001-differential privacy" in words
    odd = restated(tmp_path / "odd.h5", pair[0], adjacency="removal")
    with pytest.raises(DataError, match="its attribute 'adjacency' names no neighbouring relation"):
        dpmix.contrast([odd, pair[1]])


def test_two_fits_of_one_release_cost_it_once(fits: Path, tmp_path: Path) -> None:
    shutil.copy(fits / "a.h5", tmp_path / "again.h5")
    found = dpmix.contrast([fits / "a.h5", tmp_path / "again.h5"])
    assert found.guarantee.epsilon == pytest.approx(2.0)
    assert any("of the same release: differences are between methods" in text for text in found.warnings)


def test_the_command_writes_json_a_file_and_a_page(
    fits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = [str(fits / "a.h5"), str(fits / "bb.h5")]
    page, out = tmp_path / "c.html", tmp_path / "c.h5"
    command = ["summarize", *pair, "--contrast", "--margin", "0.02", "--report", str(page), "-o", str(out)]
    assert run(app, [*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["margin"] == 0.02
    assert said["guarantee"]["epsilon"] is None
    for engine in ("netcdf4", "h5netcdf"):
        with xarray.open_datatree(out, engine=engine) as tree:
            node = tree["contrast"]
            assert node["component"].values.tolist() == list(NAMES)
            means = [said["difference"][name]["mean"] for name in NAMES]
            assert node["mean"].values == pytest.approx(means)
            assert np.isnan(node["probability"].values).all()
    words = page.read_text()
    assert "Two groups compared" in words
    assert "http://" not in words.replace("http://www.w3.org", "")
    assert run(app, command) == 2  # never overwritten
    assert "c.h5" in capsys.readouterr().err


def refusal(folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run summarize, which is to write nothing; return exit code and message."""
    before = sorted(folder.iterdir())
    code = run(app, ["summarize", *arguments, "-o", str(folder / "out.h5")])
    said = capsys.readouterr()
    assert sorted(folder.iterdir()) == before
    assert said.out == ""
    return code, said.err


def test_what_does_not_compare_is_refused(
    fits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = str(fits / "a.h5"), str(fits / "bb.h5")
    code, said = refusal(tmp_path, [a, b, a, "--contrast"], capsys)
    assert code == 2
    assert "or two chains files, and 3 are given" in said
    assert "--margin: goes with --contrast" in refusal(tmp_path, [a, "--margin", "0.1"], capsys)[1]
    code, said = refusal(tmp_path, [a, b, "--contrast", "--margin", "1.5"], capsys)
    assert code == 2
    assert "--margin: 1.5 must be a difference of shares, from 0 to below 1" in said
    code, said = refusal(tmp_path, [a, b, "--contrast", "--set", "model.prior=p3"], capsys)
    assert code == 2
    assert "--set model.prior: the chains are made" in said
    posterior = tmp_path / "posterior.h5"
    shutil.copy(b, posterior)
    placed(posterior, normal_draws(np.full(3, 1 / 3), np.full(3, 0.01), 1), NAMES[::-1])
    code, said = refusal(tmp_path, [a, str(posterior), "--contrast"], capsys)
    assert code == 3
    assert "holds draws of a bootstrap and" in said
    two = fitted(tmp_path, "two", ("care", "food"))
    code, said = refusal(tmp_path, [a, str(two), "--contrast"], capsys)
    assert code == 3
    assert "has components care, food, and" in said
    mixture = tmp_path / "mixture.h5"
    states = [states_of_mixture(50, np.random.default_rng(seed)) for seed in range(2)]
    write_chains(mixture, states, observed=np.zeros((1, 1)))
    code, said = refusal(tmp_path, [a, str(mixture), "--contrast"], capsys)
    assert code == 3
    said_of = (
        "is of a mixture without groups, and has no shares to compare; --contrast takes two fits of dirichlet"
    )
    assert f"{said_of}, or one of a release of groups (data.group), of a mixture, too" in said
    with pytest.raises(UsageError, match="is one of the chains files"):
        dpmix.contrast([a, b], a, force=True)
    with pytest.raises(UsageError, match="the comparison and the report cannot both be"):
        dpmix.contrast([a, b], tmp_path / "x", report=tmp_path / "x")
    with pytest.raises(DataError):
        dpmix.contrast([a, tmp_path / "absent.h5"])
