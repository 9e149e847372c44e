"""Rows of advice: what is needed, what is best, and how they are drawn and written."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_allclose

from dpmix.advising.advice import Advice, Row, _finding, draw, judged, needed_of, write
from dpmix.advising.population import QUANTITIES
from dpmix.store.html import narrowed


def rows_of(*values: tuple[str, float, int, float]) -> list[Row]:
    return [row_of(*value) for value in values]


def row_of(kind: str, epsilon: float, n: int, sd: float, trust: str = "local") -> Row:
    return Row(kind, trust, epsilon, 0.0, n, {"median": sd}, None, {"median": 0.9})


def test_what_is_needed_follows_the_rows() -> None:
    """sd = 100 / (epsilon sqrt n): exactly, within the rows and beyond them."""
    rows = rows_of(*(("laplace", e, n, 1e2 / (e * n**0.5)) for e, n in product((1.0, 2.0), (100, 10_000))))
    found = needed_of(rows, {"median": 2.0})
    assert_allclose(found[0].needed["n"], 2_500, rtol=1e-3)  # type: ignore[index,arg-type]
    assert found[0].needed["epsilon"] == pytest.approx(5.0)  # type: ignore[index]
    assert found[3].needed["epsilon"] == pytest.approx(0.5)  # type: ignore[index]
    assert all("at_most" not in row.needed for row in found)  # type: ignore[operator]
    assert needed_of(rows, {"median": 0.01})[0].needed["epsilon"] is None  # type: ignore[index]
    assert needed_of(rows, {"median": 0.11})[0].needed["n"] == pytest.approx(826_447, abs=1)  # type: ignore[index]
    assert needed_of(rows, {"median": 0.09})[0].needed["n"] is None  # type: ignore[index]
    assert needed_of(rows, {})[0].needed is None


def test_less_than_what_was_looked_at_may_do(tmp_path: Path) -> None:
    """The end of the search is no need: it is shown as a bound, and not rounded up."""
    rows = rows_of(
        *(("laplace", e, n, 1e2 / (e * n**0.5)) for e, n in product((1.0, 2.0), (10_000, 100_000)))
    )
    found = needed_of(rows, {"median": 50.0})
    assert found[0].needed == {"epsilon": 0.25, "n": 100, "at_most": ["epsilon", "n"]}
    assert found[0].to_json()["needed"]["at_most"] == ["epsilon", "n"]
    text = Advice(tuple(found), "a beta", {"median": 50.0}, (), "median").to_text()
    assert "<100" in text and "<0.25" in text and "110" not in text
    write(Advice(tuple(found), "a beta", {"median": 50.0}, (), "median"), tmp_path / "a.html", force=False)
    assert "&lt;0.25" in (tmp_path / "a.html").read_text()
    found = needed_of(rows, {"median": 3.0})  # 0.33 at n = 10,000
    assert found[0].needed == {"epsilon": pytest.approx(1 / 3), "n": 1112}
    few = rows_of(("laplace", 1.0, 10, 2.0), ("laplace", 1.0, 20, 1.0))
    assert needed_of(few, {"median": 100.0})[0].needed["n"] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("low", "high"), [(0.9, 1.1), (1.2, 6.0), (0.0216, 0.0216), (3.0, 4e4), (99.0, 101.0)]
)
def test_an_axis_has_numbers(low: float, high: float) -> None:
    found = Advice(tuple(rows_of(("a", 1.0, 10, low), ("a", 2.0, 10, high))), "a beta", {}, (), "median")
    axis = draw(found).axes[0].yaxis
    bottom, top = axis.get_view_interval()
    numbers = [float(label.get_text().replace(",", "")) for label in axis.get_ticklabels()]
    assert 3 <= len(numbers) <= 10
    assert all(bottom <= number <= top for number in numbers)
    assert not axis.get_minorticklocs().size


def test_names_of_axes_keep_to_their_panels() -> None:
    """Side by side, and below each other on telephones."""
    long = "alpha[female,personal_care_and_the_like]"
    rows = [Row("a", "local", 1.0, 0.0, n, {long: 1.0}, None, {long: 0.9}) for n in (10, 20)]
    figure = draw(Advice(tuple(rows), "a beta", {}, (), long))
    for change in (lambda figure: None, narrowed):
        change(figure)
        figure.canvas.draw()
        boxes = [axes.yaxis.label.get_window_extent() for axes in figure.axes if axes.get_ylabel()]
        boxes.sort(key=lambda box: float(box.y0))
        assert boxes[0].y0 >= 0.0 and boxes[-1].y1 <= figure.bbox.height
        assert all(lower.y1 < upper.y0 for lower, upper in pairwise(boxes))
    assert len(boxes) == 2


def test_best_is_least_at_each_epsilon_and_n() -> None:
    rows = judged(rows_of(("a", 1.0, 10, 2.0), ("b", 1.0, 10, 1.0), ("a", 2.0, 10, 0.1)), {})
    assert [row.best for row in rows] == [False, True, True]


def test_best_is_told_within_each_trust_model() -> None:
    """Who is not trusted with all records has no use for a global release that is better."""
    rows = [
        row_of("laplace", 1.0, 10, 2.0),
        row_of("wavelet", 1.0, 10, 1.0),
        row_of("all", 1.0, 10, 0.01, "global"),
    ]
    for target in ({}, {"median": 0.1}):
        assert [row.best for row in judged(rows, target)] == [False, True, True]
    found = Advice(tuple(judged(rows, {})), "a beta", {}, (), "median", {"median": "dollars"})
    said = (
        "Best at epsilon = 1, n = 10: wavelet of local releases, median to 1 dollars; "
        "all of global releases, median to 0.01 dollars."
    )
    assert _finding(found) == said
    assert said in found._repr_html_()
    text = " ".join(found.to_text().split())
    assert "laplace local 1 10 2 0.90 wavelet local 1 10 1 0.90 best all global 1 10 0.01 0.90 best" in text
    assert "global where a curator is trusted with all." in text and "Best: within its trust model." in text
    alone = Advice(tuple(judged(rows[:2], {})), "a beta", {}, (), "median").to_text()
    assert "Best:" not in alone and "curator" not in alone  # nothing to tell apart
    labels = [text.get_text() for text in draw(found).legends[0].get_texts()]
    assert labels == ["laplace (local)", "wavelet (local)", "all (global)"]


def test_needs_are_of_one_mechanism_whatever_the_trust_model() -> None:
    rows = [
        row_of(kind, 1.0, n, sd / n**0.5, trust)
        for kind, trust, sd in (("laplace", "local", 100.0), ("all", "global", 1.0))
        for n in (100, 10_000)
    ]
    found = needed_of(rows, {"median": 0.1})
    needed: Any = [row.needed["n"] for row in found]  # type: ignore[index]
    assert_allclose(needed, [1_000_000, 1_000_000, 100, 100], atol=1)


def wide(*, target: dict[str, float], unit: str = "dollars") -> Advice:
    sd = dict.fromkeys(QUANTITIES, 12_345.0)
    rows = tuple(
        Row(kind, trust, 1.0, 0.0, 10**9, sd, 0.5, {"mean": 0.9}, False, {"epsilon": 3.0, "n": 10**9})
        for kind, trust in (("square_wave", "local"), ("perturbed_histogram", "global"))
    )
    return Advice(rows, "a beta", target, (), next(iter(target)), dict.fromkeys(QUANTITIES, unit))


def test_what_stands_below_a_table_is_of_its_columns(tmp_path: Path) -> None:
    """The band and the contraction give way in a terminal, and so do their words; a page has all."""
    advice = wide(target={"quantile[0.75]": 500.0})
    text = advice.to_text()
    table = text.split("\n\n")[1].splitlines()
    assert max(map(len, text.splitlines())) <= 96
    assert "quantile[0.75]" in table[0] and "band" not in table[0] and "contraction" not in table[0]
    assert "Band:" not in text and "Contraction:" not in text
    shown = wide(target={"band": 0.1}).to_text()
    assert "band" in shown.split("\n\n")[1].splitlines()[0]
    assert "Band: integral of the density's bands." in shown
    write(advice, tmp_path / "advice.html", force=False)
    page = (tmp_path / "advice.html").read_text()
    assert "Band: integral" in page and "Contraction: the least" in page
    assert "standard deviations in dollars for a beta" in page and "quantile[0.75] to 500 dollars." in page


def test_figures_have_the_unit_of_their_column() -> None:
    advice = wide(target={"median": 500.0, "band": 0.1})
    text = advice.to_text()
    assert text.startswith(
        "Expected posterior standard deviations in dollars for a beta; no record was read."
    )
    assert "Wanted: median to 500 dollars, band to 0.1." in text
    assert "in dollars" in advice._repr_html_()
    assert draw(wide(target={"band": 0.1})).axes[0].get_ylabel() == "width of the bands"
    shares = Advice((row_of("a", 1.0, 10, 0.5),), "a beta", {}, (), "median")
    assert " in " not in shares.to_text().splitlines()[0]
