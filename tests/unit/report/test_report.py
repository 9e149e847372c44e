"""The HTML report and its pictures."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import dpmix
from dpmix.columns.cells import Counts
from dpmix.errors import UsageError
from dpmix.laws.every import law_of
from dpmix.report.page import render
from dpmix.report.plots import (
    chain_legend,
    density_figure,
    order_of,
    plot_density,
    probabilities_figure,
    rank_figure,
    trace_figure,
)
from dpmix.report.release_pictures import _tallied, check_pictures, entries_figure, plain, shown
from dpmix.run.chains_reader import read_chains
from dpmix.spec.summary_section import SummarySpec
from dpmix.summary.check.check_result import Check, Entry
from dpmix.summary.clusters_by_value import CellProbabilities
from dpmix.summary.summary_of_chains import summarize_chains
from tests.helpers.chains_files import (
    a_spec,
    states_of_beta,
    states_of_mixture,
    states_of_normals,
    write_chains,
    write_kernel,
)
from tests.helpers.pages import short_page

NASTY = '<script>alert("1")</script>&'
VOID = {"meta"}


class Page(HTMLParser):
    """Collect tags, their attributes and the text, and check that what opens also closes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def pictures_of(page: str) -> list[str]:
    """The pictures of a page, in their wide form."""
    return re.findall(r'<div class="(?:wide|map)">(<svg.*?</svg>)', page, re.DOTALL)


def alts_of(page: str) -> list[str]:
    """What these pictures show, in words."""
    return [html.unescape(re.search(r'aria-label="([^"]*)"', picture)[1]) for picture in pictures_of(page)]


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    rng = np.random.default_rng(1)
    states = [states_of_mixture(450, rng) for _ in range(4)]
    spec = a_spec(sampler__iterations=1450, sampler__chains=5)
    spec["data"] = {"path": "/home/curator/secret/patients.csv", "column": "x", "domain": [-10.0, 10.0]}
    spec["release"] = {"path": "/home/curator/out/z.csv", "column": "z"}
    attrs = {"created_at": NASTY, "mechanism": '{"kind": "laplace", "scale": [4.0], "by": "</pre><b>"}'}
    z = rng.normal(0, 9.0, 150)
    return dpmix.summarize(
        write_chains(tmp_path_factory.mktemp("r") / "c.h5", states, spec=spec, attrs=attrs, observed=z)
    )


@pytest.fixture(scope="module")
def page(summary):
    return render(summary)


@pytest.fixture(scope="module")
def parsed(page):
    parser = Page()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_needs_nothing_from_elsewhere(page, parsed):
    assert not re.search(r"https?:|@import|url\((?!#)", page)
    tags = {tag for tag, _ in parsed.tags}
    assert not tags & {"script", "link", "iframe", "object"}
    for _, attrs in parsed.tags:
        assert re.match("#|data:image/png;base64,", attrs.get("href", "#"))
        if "src" in attrs:
            assert attrs["src"].startswith("data:image/png;base64,")
    assert len(page) < 1_000_000


def test_what_files_say_is_escaped(page, parsed):
    assert NASTY not in page
    assert "</pre><b>" not in page
    assert NASTY in parsed.text


def test_no_confidential_path_is_shown(page):
    assert "curator" not in page
    assert "secret" not in page
    assert "patients" not in page


def test_everything_is_there(summary, page, parsed):
    for text in (
        *summary.warnings,
        summary.provenance.guarantee,
        "20241107",
        "numba 0.60",
    ):
        assert text in parsed.text
    for name in summary.parameters:
        assert name in parsed.text
    assert "iterations: 1450" in parsed.text
    pictures = [attrs for tag, attrs in parsed.tags if tag == "svg"]
    # of density and clusters, two of the check, one of where the uncertainty comes from; each in two forms
    assert len(pictures) == 2 * 5 + 2 * len(summary.series)
    assert all(attrs["aria-label"] for attrs in pictures)
    for picture in pictures_of(page):
        assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "released values, noise included" in pictures_of(page)[0]


def test_a_page_without_warnings_says_so(tmp_path):
    rng = np.random.default_rng(2)
    states = [states_of_mixture(1000, rng) for _ in range(2)]
    summary = dpmix.summarize(write_chains(tmp_path / "c.h5", states))
    assert summary.warnings == []
    assert "No warnings" in short_page(summary)


def test_a_page_of_no_noise_does_not_speak_of_any(tmp_path):
    states = [states_of_mixture(60, np.random.default_rng(3))]
    spec = a_spec(sampler__iterations=1060, sampler__chains=1)
    spec["mechanism"] = {"kind": "none"}
    nan = float("nan")
    attrs = {"mechanism": '{"kind": "none"}', "epsilon": nan, "delta": nan, "private": False}
    summary = dpmix.summarize(write_chains(tmp_path / "c.h5", states, spec=spec, attrs=attrs))
    page = short_page(summary, drawn=True)
    assert "noise included" not in pictures_of(page)[0]
    assert ">data<" in pictures_of(page)[0]
    assert "No noise was added" in page
    assert "mechanism's noise" not in page


def test_the_density_alone_as_a_file(summary, tmp_path):
    plot_density(summary, tmp_path / "d.png")
    plot_density(summary, tmp_path / "d.svg", title="Old Faithful")
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")
    assert "Old Faithful" in (tmp_path / "d.svg").read_text()
    first = (tmp_path / "d.svg").read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        plot_density(summary, tmp_path / "d.svg")
    plot_density(summary, tmp_path / "d.svg", title="Old Faithful", force=True)
    assert (tmp_path / "d.svg").read_bytes() == first
    with pytest.raises(UsageError, match=r"must end in \.png or \.svg"):
        plot_density(summary, tmp_path / "d.pdf")


def test_share_outside_counts_the_values_beyond_the_grid(summary):
    grid, z = summary.density.grid, summary.released
    assert shown(summary, "").outside == pytest.approx(np.mean((z < grid[0]) | (z > grid[-1])))
    assert shown(summary, "").outside > 0.1


def test_the_key_of_chains_is_as_their_lines_are_in_either_theme(page):
    """With seven chains no two entries are alike, and colours are those that the style turns in the dark."""
    found = chain_legend(SimpleNamespace(chain_ids=np.arange(7)))
    assert len({style for style, _ in found}) == 7
    assert all("var(--fig-" in style and "#" not in style for style, _ in found)
    assert all(f'<span style="{style}"></span>{name}<' in page for style, name in found[:4])


def test_traces_and_ranks_show_every_chain(summary):
    (trace,) = trace_figure(summary, "mean").axes
    (ranks,) = rank_figure(summary, "mean").axes
    assert len(trace.lines) == 4
    assert trace.lines[0].get_ydata().mean() == pytest.approx(summary.series["mean"][0].mean())
    assert len(ranks.patches) == 4
    for patch in ranks.patches:
        assert patch.get_data().values.mean() == pytest.approx(1.0)


def test_one_chain_alone_has_no_ranks_which_would_be_level(tmp_path):
    rng = np.random.default_rng(3)
    states = [states_of_mixture(30, rng, centres=(0.001,))]
    grid = {"summary": {"grid": [5e5, 1e6, 20]}}  # far from the density
    spec = a_spec(sampler__iterations=1030) | grid
    page = short_page(dpmix.summarize(write_chains(tmp_path / "c.h5", states, spec=spec)), drawn=True)
    assert "<h2>Traces<" in page and "Ranks" not in page and "1 if chains agree" not in page
    assert page.count("R-hat needs two chains<") == 1
    assert "The density is narrower than the gaps of its grid of 20 points" in page


def test_each_of_many_clusters_by_value_has_a_line_of_its_own():
    level = np.full((14, 3), 1 / 14)
    low = np.arange(3.0)
    figure = probabilities_figure(CellProbabilities(low, low + 1.0, level, level, level, None), "x")
    assert len({(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}) == 14


def beta_summary(folder, kind, observed, allocations=None, trust="local", **parameters):
    """A summary of beta mixtures on [-1, 3] fitted to a release of some kind."""
    rng = np.random.default_rng(6)
    states = [states_of_beta(50, rng) for _ in range(2)]
    if allocations is not None:
        for chain in states:
            chain["allocations"] = np.tile(allocations, (50, 1))
    stated = {"weight": 0.5, "trials": 10, "bins": 4, "draws": 8, "noise": "laplace", "scale": [2.0]}
    mechanism = {"kind": kind, "domain": [[-1.0, 3.0]], **stated, **parameters}
    attrs = {"mechanism": json.dumps(mechanism), "trust": trust}
    path = write_kernel(folder / f"{kind}.h5", "beta", states, observed=np.asarray(observed), attrs=attrs)
    with pytest.MonkeyPatch.context() as patch:  # the prior need not be exact, and takes most of the time
        patch.setattr("dpmix.kernels.beta.family._RULE", 30)
        return summarize_chains(read_chains([path]), SummarySpec())


def test_wavelet_coefficients_are_not_drawn_as_values(tmp_path):
    found = beta_summary(tmp_path, "wavelet", np.full((60, 7), 0.5), np.arange(60) % 3, levels=2, scale=[1.0])
    assert shown(found, "") is None
    assert not [p for p in density_figure(found).axes[0].patches if p.get_label().startswith("released")]
    page = short_page(found)
    assert "noisy wavelet coefficients, is not on this scale" in page
    assert "Clusters of the records" in page


def test_numbers_of_successes_are_drawn_as_unbiased_estimates(tmp_path):
    """10 trials, w = 0.5: 5 successes stand for the middle, each more for 4 / (10 x 0.5) = 0.8."""
    found = beta_summary(tmp_path, "binomial", [5.0, 5.0, 6.0, 2.0], trials=10, weight=0.5)
    steps = shown(found, "")
    assert steps.edges == pytest.approx([-1.8, -1.0, -0.2, 0.6, 1.4, 2.2])
    assert steps.heights == pytest.approx(np.array([1, 0, 0, 2, 1]) / (4 * 0.8))
    assert steps.outside == 0.25  # the one at -1.4
    assert "25% of the rescaled values lie outside" in short_page(found)


def test_outputs_of_a_square_wave_of_few_cells_have_a_bin_each(tmp_path):
    """4 cells of [-1, 3] and reach 1: output 1 stands for the first, 0 and 5 for what lies beyond."""
    found = beta_summary(
        tmp_path, "square_wave", [1.0, 1.0, 2.0, 5.0], cells=4, reach=1, ratio="3/1", scale=[]
    )
    steps = shown(found, "")
    assert steps.edges == pytest.approx([-1.0, 0.0, 1.0, 2.0, 3.0, 4.0])
    assert steps.heights == pytest.approx([0.5, 0.25, 0.0, 0.0, 0.25])
    assert "25% of the released outputs lie outside" in short_page(found)


def test_outputs_of_a_tally_stand_on_the_scale_of_the_data():
    """Each output of a square wave at its cell, and each number of successes at its estimate."""
    counts = Counts(np.array([1, 5, 2, 0, 0, 2]), np.arange(5) + 0.5, 0.0)
    stated = {"kind": "square_wave", "cells": 4, "reach": 1, "ratio": "3/1", "scale": [], "domain": [[-1, 3]]}
    summary = SimpleNamespace(provenance=SimpleNamespace(mechanism=law_of(stated)))
    steps = _tallied(summary, counts, np.linspace(-1.0, 3.0, 9))
    assert steps.edges == pytest.approx([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0])
    assert steps.heights == pytest.approx(np.array([1, 5, 2, 0, 0, 2]) / 10.0)
    assert steps.sentence.startswith("The steps show the released outputs at the cells that they stand for")


def test_noisy_counts_are_steps_on_the_scale_of_a_density(tmp_path):
    counts = [10.0, -2.0, 30.0, 60.0]
    found = beta_summary(tmp_path, "perturbed_histogram", counts, trust="global", n=100, bins=4)
    steps = shown(found, "")
    assert steps.edges.tolist() == [-1.0, 0.0, 1.0, 2.0, 3.0]
    assert steps.heights == pytest.approx([0.1, 0.0, 0.3, 0.6])
    page = short_page(found)
    assert "over the 100 records; 1 below zero is drawn as zero." in page
    assert "Clusters of the records" not in page
    assert "100 records" in found.provenance.guarantee
    assert found.provenance.facts["Records"] == "100"


def test_released_draws_are_a_histogram_over_the_bins(tmp_path):
    draws = [-0.5, -0.6, 0.5, 2.9]
    found = beta_summary(tmp_path, "smoothed_histogram", draws, trust="global", n=100, bins=4, draws=4)
    steps = shown(found, "")
    assert steps.edges.tolist() == [-1.0, 0.0, 1.0, 2.0, 3.0]
    assert steps.heights == pytest.approx([0.5, 0.25, 0.0, 0.25])
    assert "The histogram shows the released draws" in short_page(found)


def test_records_are_ordered_by_cluster_and_value(tmp_path):
    z = np.array([9.0, -9.0, 8.0, 1.0, -7.0, 0.5])
    labels = np.array([0, 1, 0, 2, 1, 2])
    states = [states_of_mixture(30, np.random.default_rng(7)) | {"allocations": np.tile(labels, (30, 1))}]
    spec = a_spec(sampler__iterations=1030, sampler__chains=1)
    summary = dpmix.summarize(write_chains(tmp_path / "c.h5", states, spec=spec, observed=z))
    assert order_of(summary, summary.clustering).tolist() == [1, 4, 5, 3, 2, 0]
    parsed = Page()
    page = short_page(summary, drawn=True)
    parsed.feed(page)
    assert "95% credible ball around it has radius 0;" in parsed.text
    assert len(pictures_of(page)) == 6
    assert sum("record, by cluster of the estimate" in picture for picture in pictures_of(page)) == 1


def test_a_page_of_two_columns_has_a_picture_of_each_and_of_both(tmp_path):
    rng = np.random.default_rng(8)
    path = write_kernel(
        tmp_path / "c.h5", "multivariate_normal", [states_of_normals(50, rng) for _ in range(2)]
    )
    summary = summarize_chains(read_chains([path]), SummarySpec())
    page = short_page(summary, drawn=True)
    alts = alts_of(page)[:3]
    assert alts[0].startswith("Density of height, highest near ")
    assert alts[1].startswith("Density of weight/kg, highest near ")
    assert alts[2].startswith("Density of both columns, highest near height = ")
    pictures = pictures_of(page)
    assert "weight/kg, in the data" in pictures[1]
    column = shown(summary, "weight/kg")
    inside = summary.released[:, 1]
    assert column.heights == pytest.approx(
        np.histogram(inside, column.edges)[0] / (200 * np.diff(column.edges))
    )


def test_entries_are_as_far_out_as_their_replicates_spread() -> None:
    """An entry that nearly all replicates have lies among them, though their interval has no width."""
    rare = Entry("rare", 0.0, 2e-4, 0.0, 0.0, 1.0, 2e-3)
    wide = Entry("wide", 4.0, 1.0, -1.0, 3.0, 0.01, 1.0)
    same = Entry("same", 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    other = Entry("other", 5.0, 0.0, 0.0, 0.0, 0.01, 0.0)
    assert Check("counts", 0.1, (rare, wide, same)).farthest == wide
    assert Check("counts", 0.1, (rare, other, wide)).farthest == other
    check = Check("counts", 0.1, (rare, wide, same, other))
    assert "Triangles at the rim are figures farther out than 8." in check_pictures(check)[0]
    assert "Triangles" not in check_pictures(Check("counts", 0.1, (rare, wide, same)))[0]
    axes = entries_figure(check).axes[0]
    assert plain("distribution function of height (cm) at 383.6", 44).endswith("(cm) at 383.6")
    marks = {line.get_marker(): np.asarray(line.get_xydata()).tolist() for line in axes.lines[1:]}
    assert marks == {"o": [[-0.1, 0.0], [3.0, 1.0], [0.0, 2.0]], "<": [], ">": [[8.0, 3.0]]}
