"""The discrete model from spec and release to summary: its posterior, its files, and what is refused."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import yaml

import dpmix
from dpmix.cli import commands
from dpmix.errors import DataError, Interrupted, SpecError
from dpmix.models.discrete.model import build
from dpmix.models.discrete.public_facts import OTHER
from dpmix.release.release_file import write_release
from dpmix.release.sanitized import Release
from dpmix.report.page import render
from dpmix.run import exit_codes
from dpmix.run.workspace import Workspace
from dpmix.spec import load_spec
from dpmix.summary.summary_result import Summary
from tests.helpers.discrete_releases import (
    CODES,
    COLOUR,
    COLOURS,
    LABEL,
    NUMBER,
    VALUES,
    counts,
    pitman_yor,
    synthetic,
)
from tests.helpers.fits import assert_same, small_release
from tests.helpers.pages import undrawn
from tests.oracles.urns import compositions, rising

SAMPLER: dict[str, Any] = {"iterations": 5000, "burn_in": 1000, "chains": 2, "seed": 3}
ERRORS = 4.5  # Monte Carlo standard errors; about 90 figures are compared in this file: 6e-4 in all


def spec_of(model: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"model": {"kind": "discrete", **(model or {})}, "sampler": SAMPLER, **more}


def fitted(folder: Path, release: Release, model: dict[str, Any] | None = None, **more: Any) -> Summary:
    """Fit and summarize."""
    dpmix.fit(spec_of(model, **more), release, folder / "c.h5", quiet=True, force=True)
    return dpmix.summarize(folder / "c.h5")


def assert_means(summary: Summary, expected: dict[str, float], error: float = 0.0) -> None:
    """Hold posterior means against exact ones, or ones with a standard error of their own."""
    for name, value in expected.items():
        scalar = summary.parameters[name]
        assert scalar.mcse is not None
        assert abs(scalar.mean - value) < ERRORS * np.hypot(scalar.mcse, error), (name, scalar.mean, value)


def own_mean(prior: float, seen: float, n: int = 12, theta: float = 2.0) -> float:
    """Mean of P(A) of the confidential records at discount 0, from P0(A) and the released records in A."""
    mu = (theta * prior + seen) / (theta + len(VALUES))
    return (theta * prior + n * mu) / (theta + n)


def own_weights(sizes: np.ndarray, d: float, n: int = 12, theta: float = 2.0) -> np.ndarray:
    """Mean weights of released values under P, E(c_j - d; c_j > 0) / (theta + n)."""
    total, own = theta + sizes.sum(), sizes - d
    none = np.array([np.prod([(total - a + i) / (total + i) for i in range(n)]) for a in own])
    return np.asarray((n * own / total - d * (1 - none)) / (theta + n))


@pytest.mark.parametrize("discount", [pytest.param(0.0, marks=pytest.mark.matrix), 0.25])
def test_numbers_of_a_pitman_yor_process(discount: float, tmp_path: Path) -> None:
    release = pitman_yor([NUMBER], discount)
    summary = fitted(tmp_path, release, {"tail": [3.5, 5.0]})
    points, sizes = np.unique(VALUES, return_counts=True)
    weights = own_weights(sizes, discount)
    new = 1.0 - weights.sum()
    tails = {t: weights[points > t].sum() + new * (1 - t / 10) for t in (3.5, 5.0)}
    assert_means(
        summary,
        {"mean": weights @ points + new * 5.0, **{f"tail[{t:g}]": p for t, p in tails.items()}},
    )
    curve = summary.distributions[""]
    exact = [weights[points <= at].sum() + new * at / 10 for at in np.asarray(curve.at, dtype=float)]
    np.testing.assert_allclose(curve.mean, exact, atol=0.015)  # its sd is at most 0.2, of 8000 draws
    assert (curve.lower <= curve.mean).all() and (curve.mean <= curve.upper).all()
    assert np.isfinite([s.mean for s in summary.parameters.values()]).all()
    shape = summary.to_json()["shape_contraction"]
    assert set(shape) == {name for name in summary.parameters if name.startswith("quantile")}
    assert max(shape.values()) < 1.0
    assert summary.acceptance.mean is None  # draws are independent
    assert min(s.ess_bulk or 0.0 for s in summary.parameters.values()) > 6000


def test_free_labels_and_columns_of_several_kinds(tmp_path: Path) -> None:
    sizes = np.bincount(CODES.astype(int))
    summary = fitted(tmp_path, pitman_yor([LABEL], 0.5))
    # labels that are released as they are occur among the 12 records: all numbers with each at least 1
    shapes = [*(sizes - 0.5), 2.0 + 0.5 * 3]
    weights, numbers = [], []
    for c in compositions(12, 4):
        if all(c[:3]):
            parts = zip(shapes, c, strict=True)
            weights.append(math.prod(rising(a, k) / math.factorial(k) for a, k in parts))
            numbers.append(c[:3])
    means = (np.average(numbers, axis=0, weights=weights) - 0.5) / (2.0 + 12)
    exact = {f"probability[{name}]": mean for name, mean in zip(COLOURS, means, strict=True)}
    assert_means(summary, {**exact, f"probability[{OTHER}]": 1.0 - means.sum()})
    assert summary.distributions[""].at == (*COLOURS, OTHER)
    both = fitted(tmp_path, pitman_yor([NUMBER, COLOUR]), {"tail": {"x": [5.0]}})
    shares = {f"probability[colour,{n}]": own_mean(1 / 3, m) for n, m in zip(COLOURS, sizes, strict=True)}
    assert_means(both, {**shares, "mean[x]": own_mean(5.0, VALUES.sum()), "tail[x,5]": own_mean(0.5, 2)})
    assert list(both.distributions) == ["x", "colour"]
    assert list(both.to_json()["distribution"]["colour"]["categories"]) == list(COLOURS)
    with xarray.open_datatree(tmp_path / "c.h5", engine="h5netcdf") as tree:
        posterior = tree["posterior"].dataset
        assert posterior["cdf_x"].dims == ("chain", "draw", "grid_x")
        assert set(np.unique(posterior["predictive_colour"])) == {0.0, 1.0, 2.0}
        shares_seen = np.bincount(posterior["predictive_colour"].values.ravel().astype(int)) / 8000
        means = posterior["probability_colour"].mean(("chain", "draw")).values
        np.testing.assert_allclose(shares_seen, means, atol=ERRORS * 0.5 / np.sqrt(8000))


def test_new_numbers_on_a_grid_and_categories_with_a_base(tmp_path: Path) -> None:
    snapped = pitman_yor([NUMBER], snap=[{"step": 0.25, "domain": [0.0, 10.0]}])
    summary = fitted(tmp_path, snapped, {"tail": [0.0, 9.75]})
    # the ends of the grid have half the uniform probability of the others
    assert_means(summary, {"tail[0]": own_mean(1 - 0.0125, 9), "tail[9.75]": own_mean(0.0125, 0)})
    # a Dirichlet-multinomial is one further draw of cells under its own prior alone
    release = synthetic("dirichlet_multinomial", [COLOUR], bins=[3], concentration=1.5)
    sizes = np.bincount(CODES.astype(int))
    own = fitted(tmp_path, release)
    means = {f"probability[{COLOURS[j]}]": own_mean(1 / 3, sizes[j], theta=4.5) for j in range(3)}
    assert_means(own, means)
    # as latent counts have it, under a base that is as good as the same one
    latent = fitted(tmp_path, release, {"concentration": 4.5 + 1e-6})
    assert_means(latent, means)
    for name in means:
        one, other = own.parameters[name], latent.parameters[name]
        assert one.sd == pytest.approx(other.sd, rel=0.05)


def simulated(release: Release, alpha: float, base: list[float], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of cell probabilities by simulation of model and mechanism, with standard errors."""
    rng = np.random.default_rng(seed)
    size, cells, mechanism = 400_000, len(base), release.mechanism
    pi = rng.dirichlet(alpha * np.array(base), size)
    c = rng.multinomial(release.n, pi).astype(float)
    if release.kind == "perturbed_histogram":
        noisy = release.values[:, 0] - c
        log = -np.abs(noisy / 2).sum(1) if mechanism["noise"] == "laplace" else -((noisy / 2) ** 2).sum(1) / 2
    else:
        r = np.bincount(CODES.astype(int), minlength=cells)
        if mechanism["generator"] == "dirichlet_multinomial":
            a = mechanism["concentration"]
            log = sum(np.log(a + c[:, j] + i) for j in range(cells) for i in range(r[j]))
        else:
            shares = c / release.n
            if mechanism["noise"]:
                draw = {"laplace": rng.laplace, "gaussian": rng.normal}[mechanism["noise"]]
                h = np.maximum(c + draw(0.0, mechanism["scale"][0], c.shape), 0.0)
                whole = h.sum(1, keepdims=True)
                shares = np.where(whole > 0, h / np.where(whole > 0, whole, 1.0), 1 / cells)
            w = mechanism.get("weight", 0.0)
            with np.errstate(divide="ignore"):
                log = np.where(r > 0, r * np.log((1 - w) * shares + w / cells), 0.0).sum(1)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ pi
    return mean, np.sqrt((weight**2) @ (pi - mean) ** 2)


CASES = {
    "noisy counts": (counts(), 3.0, [0.1, 0.2, 0.3, 0.4]),
    "gaussian counts": (counts("gaussian"), 3.0, [0.1, 0.2, 0.3, 0.4]),
    "other prior": (synthetic("dirichlet_multinomial", [COLOUR], bins=[3], concentration=1.5), 1.0, None),
    "smoothed": (synthetic("smoothed_histogram", [COLOUR], bins=[3], weight=0.7, noise=None), 2.0, None),
    "perturbed": (
        synthetic("perturbed_histogram", [COLOUR], bins=[3], noise="laplace", scale=[2.0]),
        2.0,
        None,
    ),
    "smoothed noise": (
        synthetic("smoothed_histogram", [COLOUR], bins=[3], weight=0.3, noise="gaussian", scale=[2.0]),
        2.0,
        [0.2, 0.5, 0.3],
    ),
}


BY_DAY = ("noisy counts", "perturbed", "smoothed noise")


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=() if name in BY_DAY else pytest.mark.matrix) for name in CASES]
)
def test_latent_counts_against_simulation_of_the_mechanism(case: str, tmp_path: Path) -> None:
    release, alpha, base = CASES[case]
    model: dict[str, Any] = {"concentration": alpha}
    if base is not None:
        model["base"] = base
    if release.kind == "perturbed_histogram":
        model["tail"] = [2.0, 4.0, 6.0]  # the edges of the bins
    summary = fitted(tmp_path, release, model)
    mean, error = simulated(release, alpha, base or [1 / 3] * 3, 1)
    if release.kind == "perturbed_histogram":
        for j, edge in enumerate((2.0, 4.0, 6.0)):
            spread = float(error[j + 1 :].sum())  # at least that of the sum
            assert_means(summary, {f"tail[{edge:g}]": float(mean[j + 1 :].sum())}, spread)
    else:
        for j, name in enumerate(COLOURS):
            assert_means(summary, {f"probability[{name}]": float(mean[j])}, float(error[j]))
    hidden = release.kind == "synthetic" and bool(release.mechanism.get("noise"))
    assert ("log_likelihood" in summary.parameters) is not hidden
    text = " ".join(summary.provenance.guarantee.split())
    assert "12 records" in text and "1-differential privacy" in text


def test_latent_records_have_the_same_posterior(tmp_path: Path) -> None:
    release, alpha, _ = CASES["smoothed"]
    sampler = {**SAMPLER, "latent": "metropolis", "iterations": 12_000}
    summary = fitted(tmp_path, release, {"concentration": alpha}, sampler=sampler)
    mean, error = simulated(release, alpha, [1 / 3] * 3, 2)
    for j, name in enumerate(COLOURS):
        assert_means(summary, {f"probability[{name}]": float(mean[j])}, float(error[j]))
    assert summary.acceptance.bound == pytest.approx(np.exp(-1.0))
    assert summary.acceptance.mean is not None and np.exp(-1.0) < summary.acceptance.mean < 1.0
    said = "^sampler.latent: metropolis moves latent records, and those behind this release are drawn indep"
    with pytest.raises(SpecError, match=said):
        fitted(tmp_path, pitman_yor([NUMBER]), sampler=sampler)


@pytest.mark.parametrize("kind", ["perturbed", pytest.param("pitman_yor", marks=pytest.mark.matrix)])
def test_an_interrupted_run_goes_on_bit_for_bit(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = CASES["perturbed"][0] if kind == "perturbed" else pitman_yor([NUMBER], 0.25)
    spec = spec_of(sampler={**SAMPLER, "iterations": 9000, "thin": 3})
    dpmix.fit(spec, release, tmp_path / "whole.h5", quiet=True)
    monkeypatch.setattr("dpmix.run.runner.CHECKPOINT_SECONDS", 0.0)
    add = Workspace.add

    def limited(self: Workspace, *args: Any) -> None:
        add(self, *args)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)  # for the main thread to take it

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Workspace, "add", limited)
        dpmix.fit(spec, release, tmp_path / "c.h5", quiet=True, jobs=1)
    monkeypatch.setattr("dpmix.run.runner.CHECKPOINT_SECONDS", 30.0)
    said = ".* has absent, not 3;" if kind == "perturbed" else "3, but the records were drawn with 2;"
    with pytest.raises(SpecError, match=f"^model.concentration: {said}"):
        other = {**spec, "model": {"kind": "discrete", "concentration": 3.0}}
        dpmix.fit(other, release, tmp_path / "c.h5", resume=True, quiet=True)
    dpmix.fit(spec, release, tmp_path / "c.h5", resume=True, quiet=True)
    assert_same(tmp_path / "c.h5", tmp_path / "whole.h5")
    assert not dpmix.fit(spec, release, tmp_path / "c.h5", resume=True, quiet=True).written
    parts = []
    for chain in (1, 0):
        parts.append(tmp_path / f"{chain}.h5")
        dpmix.fit(spec, release, parts[-1], chain_id=chain, quiet=True)
    merged, whole = dpmix.summarize(parts), dpmix.summarize(tmp_path / "whole.h5")
    for name, values in whole.series.items():
        np.testing.assert_array_equal(merged.series[name], values)


SVG = re.compile("<svg.*?</svg>", re.DOTALL)


def test_from_yaml_to_report_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_release(tmp_path / "r.h5", pitman_yor([NUMBER]))
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec_of({"tail": [5.0]})), encoding="utf-8")
    paths = {name: str(tmp_path / name) for name in ("s.yaml", "r.h5", "c.h5", "sum.h5", "page.html")}
    given = ["fit", paths["s.yaml"], "--release", paths["r.h5"], "-o", paths["c.h5"]]
    assert exit_codes.run(commands.app, [*given, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "would sample 5000 sweeps of data_augmentation given 9 synthetic records of 12 records" in said
    assert exit_codes.run(commands.app, [*given, "-q"]) == 0
    more = ["-o", paths["sum.h5"], "--report", paths["page.html"], "--json"]
    capsys.readouterr()
    assert exit_codes.run(commands.app, ["summarize", paths["c.h5"], *more]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["parameters"]) == [
        "mean", "sd", "quantile[0.25]", "quantile[0.5]", "quantile[0.75]", "tail[5]",
    ]  # fmt: skip
    assert found["density"] is found["n_clusters"] is found["clustering"] is None
    assert found["acceptance"] == {"mean": None, "bound": None}
    assert len(found["distribution"]["grid"]) == 101
    assert found["ess_per_second"]["mean"] > 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "9 synthetic records were drawn from the posterior predictive of a Dirichlet process" in page
    with xarray.open_datatree(paths["sum.h5"], engine="h5netcdf") as tree:
        assert tree["distribution"]["mean"].dims == ("grid",)
    with undrawn():
        same = render(dpmix.summarize(paths["c.h5"]))
    assert SVG.sub("", same) == SVG.sub("", page) != page
    capsys.readouterr()
    assert exit_codes.run(commands.app, [*given, "--force", "--set", "sampler.kind=neal8"]) == 2
    assert capsys.readouterr().err == (
        "dpmix: error: sampler.kind: neal8 is for mixtures, and not for discrete; use data_augmentation, or "
        "leave it out\n"
    )
    (tmp_path / "bad.h5").write_bytes(b"no release")
    given[3] = str(tmp_path / "bad.h5")
    assert exit_codes.run(commands.app, [*given, "--force"]) == 3


REFUSED: dict[str, tuple[Release, dict[str, Any], str]] = {
    "noise on records": (small_release(), {}, "model.kind: discrete is not for a laplace release; it takes"),
    "other concentration": (
        pitman_yor([NUMBER]), {"concentration": 3.0},
        "model.concentration: 3, but the records were drawn with 2; under another prior",
    ),
    "other discount": (pitman_yor([NUMBER]), {"discount": 0.1}, "model.discount: 0.1, but the records were"),
    "other base": (
        pitman_yor([NUMBER]), {"base": {"kind": "beta", "a": 2.0, "b": 1.0}}, "model.base: another, but the"
    ),
    "atoms": (
        pitman_yor([COLOUR], 0.25), {}, "model.kind: discrete has no known posterior for records drawn with d"
    ),
    "vector for numbers": (pitman_yor([NUMBER]), {"base": [0.5, 0.5]}, "model.base: probabilities are for"),
    "discount of counts": (counts(), {"discount": 0.1}, "model.discount: 0.1; given counts in cells only a"),
    "length": (counts(), {"base": [0.5, 0.5]}, "model.base: has 2 entries for 4 cells; give one each"),
    "sum": (counts(), {"base": [0.5, 0.5, 0.5, 0.0]}, "model.base: sums to 1.5; probabilities sum to 1"),
    "threshold": (counts(), {"tail": [8.0]}, r"model.tail: 8 is outside the bounds \[0, 8\] of x"),
    "thresholds of labels": (pitman_yor([COLOUR]), {"tail": [1.0]}, "model.tail: there is no numeric column"),
    "no such column": (
        pitman_yor([NUMBER, COLOUR]), {"tail": {"y": [1]}}, "model.tail: there is no numeric column 'y'; it"
    ),
    "predictive": (
        synthetic("posterior_predictive", [NUMBER], post_processing="of a fit"),
        {}, "model.kind: discrete is not for records drawn",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_go_together_is_refused_in_one_sentence(what: str, tmp_path: Path) -> None:
    release, model, said = REFUSED[what]
    with pytest.raises(SpecError, match=f"^{said}") as caught:
        dpmix.fit(spec_of(model), release, tmp_path / "c.h5", quiet=True)
    assert len(str(caught.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_same_base_may_be_stated(tmp_path: Path) -> None:
    for release, base in (
        (pitman_yor([NUMBER]), {"kind": "beta", "a": 1.0, "b": 1.0}),
        (pitman_yor([COLOUR]), [1 / 3, 1 / 3, 1 / 3]),
    ):
        given = load_spec(spec_of({"concentration": 2.0, "discount": 0.0, "base": base}))
        assert build(given, release).law.concentration == 2.0


def test_samplers_and_settings_of_mixtures_are_refused() -> None:
    for more, said in (
        ({"sampler": {"kind": "private_slice"}}, "^sampler.kind: private_slice is for mixtures, and not for"),
        (
            {"sampler": {"store": ["allocations"]}},
            "^sampler.store: discrete has no allocations; leave it out",
        ),
        ({"summary": {"baseline": "deconvolution_kde"}}, "^summary.baseline: deconvolution_kde is for mix"),
    ):
        with pytest.raises(SpecError, match=said):
            load_spec({"model": {"kind": "discrete"}, **more})
    mixture = {"kind": "mixture", "base": {"mu0": 0, "lambda": 1, "a": 2, "b": 2}}
    local = {"model": mixture, "mechanism": {"kind": "laplace", "epsilon": 1}}
    with pytest.raises(SpecError, match="^sampler.kind: data_augmentation is not for mixtures but those of"):
        load_spec({**local, "sampler": {"kind": "data_augmentation"}})
    assert load_spec({"model": mixture}).sampler.kind == "auto"
    discrete = load_spec({"model": {"kind": "discrete"}})
    assert discrete.sampler.kind == "data_augmentation"
    assert load_spec(discrete, ["model=" + json.dumps(mixture)]).sampler.kind == "auto"


def test_a_fit_takes_all_columns_of_a_release(tmp_path: Path) -> None:
    release = pitman_yor([NUMBER, COLOUR])
    with pytest.raises(DataError, match="^release.columns: discrete is fitted to all columns of a release"):
        dpmix.fit(spec_of(release={"columns": ["x"]}), release, tmp_path / "c.h5", quiet=True)
