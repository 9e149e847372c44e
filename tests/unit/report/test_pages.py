"""Pages as a reader meets them: the answer first, text in pictures, nothing clipped, all escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from warnings import catch_warnings, simplefilter
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

import dpmix
from dpmix.report.page import render
from dpmix.report.plots import trace_figure
from dpmix.store.html import (
    BLUE,
    THEMED,
    captioned,
    drawing,
    drawings,
    fitted,
    image,
    inlined,
    plain_number,
    svg,
)
from dpmix.summary.headline import amount
from dpmix.summary.summary_result import Summary
from tests.helpers.chains_files import a_spec, states_of_mixture, write_chains
from tests.helpers.seeds import rng_of

HOSTILE = 'a"><script>alert(1)</script>&$x$'
VOID = {"meta", "br"}


class Nested(HTMLParser):
    """Check that what opens also closes, and collect tags and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    rng = rng_of("pages")
    states = [states_of_mixture(120, rng) for _ in range(2)]
    spec = a_spec(sampler__iterations=1120, sampler__chains=2)
    attrs = {"columns": f'["{HOSTILE.replace(chr(34), chr(92) + chr(34))}"]', "unit": "dollars <b>"}
    path = tmp_path_factory.mktemp("pages") / "c.h5"
    found = dpmix.summarize(
        write_chains(path, states, spec=spec, attrs=attrs, observed=rng.normal(0, 9.0, 80))
    )
    assert isinstance(found, Summary)
    return found


@pytest.fixture(scope="module")
def page(summary: Summary) -> str:
    return render(summary)


def test_the_page_is_well_formed_and_small(page: str) -> None:
    tags = Nested(page).tags
    assert len(page) < 1_500_000
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(set(ids)) == len(ids)
    for part in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        root = ElementTree.fromstring(part)
        assert root.get("aria-label")
        assert root.findall(".//text")
        used = {u[1:] for e in root.iter() if (u := e.get("href", "")).startswith("#")}
        assert used <= {e.get("id") for e in root.iter()}


def test_hostile_names_are_text(page: str, summary: Summary) -> None:
    assert "<script" not in page
    assert "dollars <b>" not in page
    assert "dollars &lt;b&gt;" in page
    assert HOSTILE in summary.to_text()


def test_the_answer_comes_before_everything_else(page: str, summary: Summary) -> None:
    order = [
        page.index(text) for text in ("<h1>", 'class="verdict', 'class="tiles"', "<h2>Density", "<details")
    ]
    assert order == sorted(order)
    median = summary.parameters["quantile[0.5]"]
    low, _, high = median.quantiles.values()
    shown = amount(median.mean, high - low)
    assert page.index(f"{shown} dollars") < page.index("<h2>Density")
    folded = page[page.index("<details") :]
    assert 'class="badge' in folded.partition("</summary>")[0]
    assert "R-hat" in folded.partition("</summary>")[0]
    assert "<h2>Traces and ranks" in folded
    text = summary.to_text()
    assert text.splitlines()[0].startswith(HOSTILE + " (dollars <b>), ")
    assert f"Verdict: {summary.verdict.answer}." in text
    data = summary.to_json()
    assert data["verdict"] == {"answer": summary.verdict.answer, "reasons": list(summary.verdict.reasons)}
    assert data["unit"] == "dollars <b>"


def test_large_negative_numbers_keep_their_sign(summary: Summary) -> None:
    """The label at a trace's axis began left of the picture."""
    from dataclasses import replace

    moved = replace(summary, series={"mean": summary.series["mean"] * 1e5 - 2e5})
    drawn = svg(trace_figure(moved, "mean")).decode()
    root = ElementTree.fromstring(drawn)
    labels = [e for e in root.iter() if e.tag.endswith("text") and "00,000" in "".join(e.itertext())]
    assert any((e.text or "").startswith("\N{MINUS SIGN}") for e in labels)
    for label in labels:  # each ends at x, and is less than .64 letters' sizes a letter wide
        assert "text-anchor: end" in (label.get("style") or "")
        assert float(label.get("x") or 0) - 0.64 * 9.0 * len(label.text or "") > 0.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-200000, "\N{MINUS SIGN}200,000"),
        (1234567.0, "1,234,567"),
        (0.30000000000000004, "0.3"),
        (2500.0, "2500"),
        (1e-7, "1e\N{MINUS SIGN}07"),
        (0.0, "0"),
    ],
)
def test_numbers_at_axes(value: float, text: str) -> None:
    assert plain_number(value) == text


def test_ticks_far_from_0_are_told_apart() -> None:
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot([0, 1], [1e9, 1e9 + 1])
    axes.ticklabel_format(useOffset=False)
    fitted(figure)
    figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(set(labels)) == len(labels)
    assert "1000000000.2" in labels


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (3412.3, 260.0, "3,410"),
        (0.57143, 0.36, "0.57"),
        (-0.001, 0.4, "0.00"),
        (81234.5, 3.0, "81,234.5"),
        (5.0, 0.0, "5"),
        (6.0123456e-7, 1e-9, "6.012e-07"),
        (1.23456789e-3, 1e-9, "1.2345679e-03"),
        (2.5e15, 3e14, "2.50e+15"),
        (0.0, 1e-12, "0e+00"),
    ],
)
def test_numbers_keep_as_many_digits_as_are_known(value: float, spread: float, text: str) -> None:
    assert amount(value, spread) == text


def test_colours_follow_the_theme_and_all_are_in_the_style(page: str) -> None:
    css = (Path(dpmix.__file__).parent / "store" / "style.css").read_text()
    light, dark = css.split("@media screen and (prefers-color-scheme: dark)", 1)
    for name in THEMED.values():
        assert f"--fig-{name}:" in light
        assert f"--fig-{name}:" in dark.partition("} }")[0]
    assert "var(--fig-blue)" in page
    assert not re.search(r'style="[^"]*#(?:222222|0072b2|ffffff)', page)


def test_pictures_have_a_form_for_telephones() -> None:
    with drawings((7.2, 3.0), 2) as (figure, both):
        for axes in both:
            axes.plot([0, 1e6], [0, 1], color=BLUE, label="a label of some length")
        figure.legend(handles=[*both[0].lines, *both[1].lines], loc="outside upper left", ncols=4)
    made = captioned(figure, "what is found", "caption")
    wide, narrow = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', made)
    assert float(wide[0]) == pytest.approx(7.2 * 72)
    assert float(narrow[0]) == pytest.approx(4.1 * 72)
    assert float(narrow[1]) > float(wide[1])  # panels below each other


def test_long_names_leave_room_for_ticks_on_telephones() -> None:
    with drawing((7.2, 2.0)) as (figure, axes):
        axes.plot([-3, 3], [0, 1])
        axes.set_yticks([0, 1], ["a", "a long name of a category that does not end soon"])
        axes.set(xlim=(-4, 4), xlabel="standard deviations of the replicates from their mean")
    captioned(figure, "x", "y")
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert len(boxes) > 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert axes.xaxis.label.get_window_extent().x1 <= figure.bbox.x1
    assert axes.get_yticklabels()[1].get_text() == "a long nam…t end soon"


def test_letters_that_our_font_lacks_are_drawn_by_the_reader_s() -> None:
    with drawing((3.0, 2.0)) as (figure, axes):
        axes.set_xlabel("收入")
    with catch_warnings():
        simplefilter("error")
        assert "收入" in svg(figure).decode()


def test_a_picture_within_a_page_escapes_its_words() -> None:
    with drawing((3.0, 2.0)) as (figure, axes):
        axes.plot(np.arange(3), label=HOSTILE.replace("$", r"\$"))
        axes.set_xlabel("<b>&\"'")
        axes.legend()
    made = image(figure, 'alt "<i>"')
    root = ElementTree.fromstring(made)
    words = ["".join(e.itertext()) for e in root.iter("text")]
    assert HOSTILE in words
    assert "<b>&\"'" in words
    assert root.get("aria-label") == 'alt "<i>"'
    with pytest.raises(ValueError, match="not an SVG"):
        inlined("<p>no picture</p>", "x")


def test_panels_that_shared_labels_have_their_own_below_each_other() -> None:
    with drawings((7.2, 3.0), 2) as (figure, (left, right)):
        left.plot([0, 1], [0, 1])
        right.plot([0, 1], [0, 1])
        left.set_ylabel("sd (dollars)")
        right.tick_params(labelleft=False)
    assert not right.get_ylabel()
    assert "sd (dollars)" in captioned(figure, "x", "y")
    assert right.get_ylabel() == "sd (dollars)" and right.yaxis.get_tick_params()["labelleft"]


def test_maps_turn_in_the_dark() -> None:
    """A map from white to blue was a white sheet on a dark page."""
    css = (Path(dpmix.__file__).parent / "store" / "style.css").read_text()
    assert re.search(r"@media screen and \(prefers-color-scheme: dark\) \{ svg\.figure image \{ filter", css)


def test_columns_and_factors_are_said_plainly(tmp_path: Path) -> None:
    from dpmix.results.nodes import percent
    from dpmix.summary.subject import _times

    assert [percent(share) for share in (1.0, 0.996, 0.5, 1e-5)] == ["100%", "100%", "50%", "<0.01%"]
    assert [_times(factor) for factor in (2.7182818, 2980.958, 1e9)] == ["2.72", "2,990", "1e+09"]
