"""The HTML report and its pictures."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import dpmix
from dpmix.errors import UsageError
from dpmix.report.page import render
from dpmix.report.plots import plot_density, rank_figure, share_outside, trace_figure
from tests.chains_files import a_spec, states_of_mixture, write_chains

NASTY = '<script>alert("1")</script>&'
VOID = {"meta", "img"}


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


def pictures_of(parsed: Page) -> list[str]:
    """The SVG sources of a page."""
    sources = [attrs["src"] for tag, attrs in parsed.tags if tag == "img"]
    return [base64.b64decode(source.partition(",")[2]).decode() for source in sources]


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
    assert not re.search(r"https?:|@import|url\(", page)
    tags = {tag for tag, _ in parsed.tags}
    assert not tags & {"script", "link", "iframe", "object"}
    for _, attrs in parsed.tags:
        assert "href" not in attrs
        if "src" in attrs:
            assert attrs["src"].startswith("data:image/svg+xml;base64,")
    assert len(page) < 1_000_000


def test_what_files_say_is_escaped(page, parsed):
    assert NASTY not in page
    assert "</pre><b>" not in page
    assert NASTY in parsed.text


def test_no_confidential_path_is_shown(page):
    assert "curator" not in page
    assert "secret" not in page
    assert "patients" not in page


def test_everything_is_there(summary, parsed):
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
    pictures = [attrs for tag, attrs in parsed.tags if tag == "img"]
    assert len(pictures) == 2 + 2 * len(summary.series)
    assert all(attrs["alt"] for attrs in pictures)
    for picture in pictures_of(parsed):
        assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "released values, noise included" in pictures_of(parsed)[0]


def test_a_page_without_warnings_says_so(tmp_path):
    rng = np.random.default_rng(2)
    states = [states_of_mixture(1000, rng) for _ in range(2)]
    summary = dpmix.summarize(write_chains(tmp_path / "c.h5", states))
    assert summary.warnings == []
    assert "No warnings" in render(summary)


def test_a_page_of_no_noise_does_not_speak_of_any(tmp_path):
    states = [states_of_mixture(60, np.random.default_rng(3))]
    spec = a_spec(sampler__iterations=1060, sampler__chains=1)
    spec["mechanism"] = {"kind": "none"}
    nan = float("nan")
    attrs = {"mechanism": '{"kind": "none"}', "epsilon": nan, "delta": nan, "private": False}
    page = render(dpmix.summarize(write_chains(tmp_path / "c.h5", states, spec=spec, attrs=attrs)))
    parsed = Page()
    parsed.feed(page)
    assert "noise included" not in pictures_of(parsed)[0]
    assert ">data<" in pictures_of(parsed)[0]
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
    assert share_outside(summary) == pytest.approx(np.mean((z < grid[0]) | (z > grid[-1])))
    assert share_outside(summary) > 0.1


def test_traces_and_ranks_show_every_chain(summary):
    (trace,) = trace_figure(summary, "mean").axes
    (ranks,) = rank_figure(summary, "mean").axes
    assert len(trace.lines) == 4
    assert trace.lines[0].get_ydata().mean() == pytest.approx(summary.series["mean"][0].mean())
    assert len(ranks.patches) == 4
    for patch in ranks.patches:
        assert patch.get_data().values.mean() == pytest.approx(1.0)
