"""Figures that depend on where in their cells records lie: against laws, and what summaries say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import dpmix
from dpmix.run.chains_reader import NamedChains, read_chains
from dpmix.summary import within_cells
from dpmix.summary.quantities import Wanted
from dpmix.summary.summary_of_chains import gaps_of_groups
from dpmix.summary.within_cells import MOST_CELLS, depends_within, figures, gaps_within, looked_at
from tests.helpers.chains_files import a_spec, write_chains

WANTED = Wanted((0.05, 0.5, 0.9), (30.0, -1.0), (12.5, 200.0), (0.0, 100.0))
LAW = stats.gamma(4.0, scale=5.0)


def exactly(wanted: Wanted) -> list[float]:
    """Figures of the law with its records cut to the outer edges, by quadrature."""

    def moment(power: int) -> float:
        inner = integrate.quad(lambda y: y**power * LAW.pdf(y), 0.0, 100.0, epsabs=1e-13)[0]
        return float(inner + 100.0**power * LAW.sf(100.0))

    mean = moment(1)
    apart = integrate.quad(lambda y: LAW.cdf(y) * LAW.sf(y), 0.0, 100.0, epsabs=1e-13)[0]
    found = [mean, np.sqrt(moment(2) - mean**2), *LAW.ppf(wanted.quantiles)]
    return [*found, LAW.sf(30.0), 1.0, LAW.cdf(12.5), 1.0, apart / mean]


def test_figures_are_those_of_the_law() -> None:
    """Of so many cells that the spline is the law, and of 32 nearly; nothing is beyond the edges."""
    for cells, error in ((2_000, 1e-7), (32, 3e-3)):
        edges = np.linspace(0.0, 100.0, cells + 1)
        shares = np.array([0.0, *LAW.cdf(edges[1:-1]), 1.0])
        np.testing.assert_allclose(figures(edges, shares, WANTED), exactly(WANTED), rtol=error)


def test_gaps_are_to_the_fit() -> None:
    edges = np.linspace(0.0, 100.0, 33)
    fitted = np.array(exactly(WANTED)) - np.arange(10.0)
    found = gaps_within(edges, LAW.cdf(edges[1:-1]), fitted, WANTED)
    np.testing.assert_allclose(found, np.arange(10.0), atol=3e-3)


@pytest.mark.parametrize(("place", "unit"), [(0.0, 1e-12), (0.0, 1e9), (1e9, 1.0), (18_000.0, 0.1)])
def test_figures_follow_the_units_of_the_column(place: float, unit: float) -> None:
    edges, levels = np.linspace(0.0, 100.0, 33), (0.05, 0.5, 0.9)
    shares = np.array([0.0, *LAW.cdf(edges[1:-1]), 1.0])
    one, other = (figures(at, shares, Wanted(levels)) for at in (edges, place + unit * edges))
    other[[0, *range(2, 5)]] -= place
    np.testing.assert_allclose(other / unit, one, rtol=1e-6)


@pytest.mark.parametrize("cells", [1, 3, 4, 32, MOST_CELLS, MOST_CELLS + 1])
def test_few_cells_and_very_many_are_left_alone(cells: int, tmp_path: Path) -> None:
    assert looked_at(cells) is (cells in (4, 32, MOST_CELLS))
    if cells in (1, 3, MOST_CELLS + 1):
        states = {
            "n_clusters": np.full(40, 1.0),
            "weights": np.full((40, 1), 0.999999),
            "mean": np.full((40, 1), 1.0),
            "variance": np.full((40, 1), 0.01),
        }
        spec = a_spec(sampler__iterations=1040, sampler__chains=1)
        attrs = {"mechanism": histogram([-10.0, 10.0], cells)}
        assert not told(dpmix.summarize(write_chains(tmp_path / "c.h5", [states], spec=spec, attrs=attrs)))


def test_more_than_a_standard_deviation_is_told() -> None:
    draws = {"mean": np.array([[1.0, 3.0]]), "sd": np.array([[1.0, 3.0]]), "fixed": np.ones((1, 2))}
    gaps = {"mean": -1.1, "sd": 0.9, "fixed": 1.0, "not reported": 9.0}
    assert depends_within(gaps, draws) == {"mean": pytest.approx(1.1)}


def histogram(domain: list[float], cells: int) -> str:
    section = {"kind": "perturbed_histogram", "bins": cells, "noise": "laplace", "scale": [2.0]}
    return json.dumps({**section, "domain": [domain]})


def told(summary: Any) -> list[str]:
    return [text for text in summary.warnings if "gives other values of" in text]


@pytest.mark.parametrize(("sd", "jitter", "said"), [(0.3, 0.05, True), (0.3, 3.0, False), (1.5, 0.05, False)])
def test_a_mixture_with_clusters_within_cells_is_said(
    sd: float, jitter: float, said: bool, tmp_path: Path
) -> None:
    """Clusters in the middle of each of 16 cells, or so wide that they are smooth; certain, or not."""
    rng = np.random.default_rng(2)
    shift, scale = jitter * rng.standard_normal((2, 40, 1))
    scale = np.exp(0.1 * scale)
    middle = np.linspace(-10.0, 10.0, 17)[:-1] + 0.625 + 0.2
    weights = stats.norm.pdf(middle, 0.7, 1.2)
    states = {
        "n_clusters": np.full(40, 16.0),
        "weights": np.tile(0.999999 * weights / weights.sum(), (40, 1)),
        "mean": scale * middle + shift,
        "variance": np.tile((sd * scale) ** 2, (1, 16)),
    }
    spec = a_spec(sampler__iterations=1040, sampler__chains=1)
    attrs = {"mechanism": histogram([-10.0, 10.0], 16)}
    summary = dpmix.summarize(write_chains(tmp_path / "c.h5", [states], spec=spec, attrs=attrs))
    texts = told(summary)
    assert bool(texts) is said
    if said:
        assert texts[0].startswith(
            "Where in its bin, or beyond the bounds, a record lies the release does not say"
        )
        assert "quantile[0.25]" in texts[0]
        assert texts[0] in summary.verdict.reasons
        assert summary.verdict.answer != "usable"
    noise = json.dumps({"kind": "gaussian", "scale": [1.5], "domain": [[-10.0, 10.0]]})
    path = write_chains(tmp_path / "g.h5", [states], spec=spec, attrs={"mechanism": noise})
    assert not told(dpmix.summarize(path))  # of which there are no cells


def test_groups_are_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = tmp_path / "z.csv"
    found_of = [20, 30, 60, 40, 25, 15, 6, 4, 9, 20, 44, 30, 17, 8, 3, 2]
    counts.write_text("\n".join(["figures", *map(str, found_of)]) + "\n")
    spec = {
        "release": {
            "path": str(counts),
            "columns": ["figures"],
            "group": "sex",
            "categories": {"sex": ["female", "male"]},
        },
        "mechanism": {
            "kind": "perturbed_histogram",
            "bins": 8,
            "n": 333,
            "domain": [0, 100],
            "epsilon": 2.0,
        },
        "model": {"kind": "mixture"},
        "summary": {"tails": [60.0], "cdf": [12.5]},
        "sampler": {"iterations": 60, "burn_in": 20, "chains": 2, "seed": 1},
    }
    dpmix.fit(spec, None, tmp_path / "c.h5", quiet=True)
    chains = read_chains([tmp_path / "c.h5"])
    assert isinstance(chains, NamedChains)
    summary = dpmix.summarize(tmp_path / "c.h5")
    assert not told(summary)
    edges, wanted = np.linspace(0.0, 100.0, 9), Wanted((0.25, 0.5, 0.75), (60.0,), (12.5,))
    labels = ["mean[{}]", "sd[{}]", *(f"quantile[{{}},{q}]" for q in wanted.quantiles)]
    labels += ["tail[{},60]", "cdf[{},12.5]"]
    found = gaps_of_groups(chains, summary.series)
    (bins,) = [chains.read(each) for each in chains.parameters if each.name == "bin_probability"]
    for number, name in enumerate(("female", "male")):
        shares = np.cumsum(bins[:, :, number].mean(axis=(0, 1)))[:-1]
        own = [label.format(name) for label in labels]
        fitted = np.array([summary.parameters[label].mean for label in own])
        gaps = gaps_within(edges, shares, fitted, wanted)
        assert {label: found.pop(label) for label in own} == pytest.approx(dict(zip(own, gaps, strict=True)))
    assert not found
    monkeypatch.setattr(within_cells, "OFF", 0.0)
    summary = dpmix.summarize(tmp_path / "c.h5")
    (text,) = told(summary)
    assert text.startswith("Where in its bin") and "mean[female]" in text and text in summary.verdict.reasons
