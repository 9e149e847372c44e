"""Results as one tree: its four renderings say the same, and a new quantity is one file and one line."""

from __future__ import annotations

import html
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dpmix
from dpmix.results.as_hdf5 import write_result
from dpmix.results.as_html import to_page
from dpmix.results.as_text import WIDTH, to_text
from dpmix.results.nodes import (
    ABSENT,
    Array,
    Attr,
    Each,
    Note,
    Remark,
    ResultSection,
    Table,
    TableColumn,
    Tile,
    Tree,
    by_name,
    warnings_section,
)
from dpmix.results.result import Result, plain, to_json
from dpmix.run.chains_reader import ChainSet
from dpmix.store.tree import Node, read
from dpmix.summary import summary_of_chains as registered
from dpmix.summary.summary_of_chains import Basis, Registered
from dpmix.summary.summary_result import Summary
from tests.helpers.chains_files import states_of_mixture, write_chains
from tests.helpers.pages import short_page, undrawn
from tests.helpers.seeds import rng_of


def rows_of_page(page: str, title: str) -> list[list[str]]:
    """Return the rows of the first table under a heading, the header first."""
    part = page.split(f"<h2>{title}</h2>", 1)[1].split("</table>", 1)[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", part)]
    return [[html.unescape(cell) for cell in row] for row in rows]


def rows_of_text(text: str, first: str) -> list[list[str]]:
    """Return the rows of a text's table whose header begins with `first`, the header first."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if f"  {first}" in line)  # in a sentence one space is
    rows = []
    for line in lines[start:]:
        if not line:
            break
        rows.append(re.split(r" {2,}", line.strip()))
    return rows


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = rng_of("results")
    states = [states_of_mixture(150, rng) for _ in range(3)]
    return write_chains(tmp_path_factory.mktemp("results") / "c.h5", states, observed=rng.normal(0, 4, 60))


@pytest.fixture(scope="module")
def summary(chains: Path) -> Summary:
    found = dpmix.summarize(chains)
    assert isinstance(found, Summary)
    return found


def test_the_four_renderings_of_a_table_have_the_same_rows_and_figures(
    summary: Summary, tmp_path: Path
) -> None:
    summary.write(tmp_path / "s.h5")
    stored = read(tmp_path / "s.h5").groups["parameters"]
    held = summary.to_json()["parameters"]
    shown = {row[0]: row[1:] for row in rows_of_text(summary.to_text(), "ESS bulk")[1:]}
    header, *drawn = rows_of_page(short_page(summary), "Scalars and their diagnostics")
    assert list(held) == [row[0] for row in drawn] == stored["parameter"].tolist() == list(shown)
    for place, (name, row) in enumerate(held.items()):
        for key in ("mean", "sd", "rhat", "ess_bulk", "ess_tail", "mcse", "contraction"):
            value = math.nan if row[key] is None else row[key]
            assert np.array_equal(stored[key][place], value, equal_nan=True), (name, key)
        assert stored["quantiles"][place].tolist() == list(row["quantiles"].values())
        assert row["quantiles"] == dict(zip(row["quantiles"], stored["quantiles"][place], strict=True))
        ends = [row["quantiles"][end] for end in ("0.025", "0.975")]
        figures = [row["mean"], row["sd"], *ends]
        assert shown[name][:4] == drawn[place][1:5] == [f"{value:.4g}" for value in figures]
        page = dict(zip(header, drawn[place], strict=True))
        for column, key, form in (("R-hat", "rhat", ".3f"), ("ESS bulk", "ess_bulk", ",.0f")):
            assert page[column] == ("-" if row[key] is None else f"{row[key]:{form}}")


def test_rows_and_tables_of_a_result(summary: Summary) -> None:
    held = summary.to_dict()
    rows = list(summary.rows())
    assert [row.pop("parameter") for row in rows] == list(held["parameters"])
    assert rows == list(held["parameters"].values())
    assert {"parameters", "prior_sensitivity"} <= set(summary.tables())
    assert list(summary.rows("prior_sensitivity")) == [
        {"parameter": name} | row for name, row in held["prior_sensitivity"]["parameters"].items()
    ]
    with pytest.raises(KeyError, match="no table 'moon'; there are parameters"):
        list(summary.rows("moon"))
    assert "density" in summary.tree and "moon" not in summary.tree
    assert summary.tree is summary.tree  # built once
    assert summary.tree["density"].title == "Density"
    with pytest.raises(KeyError):
        summary.tree["moon"]


# What a file of a new quantity has: its figures, their section, and maybe what it warns of.


class Tides(NamedTuple):
    """The share of draws whose mean is positive, by chain."""

    shares: list[float]

    def section(self) -> ResultSection:
        names = [f"chain {number}" for number in range(len(self.shares))]
        table = Table("chain", names, [TableColumn("share", self.shares, "share of <b>", ".3f")])
        sentence = f"Tides: {np.mean(self.shares):.3f} of draws"
        tile = Tile("Tides", f"{max(self.shares):.3f}", "the highest")
        return ResultSection("tides", {"by": table, "all": float(np.mean(self.shares))}, "Tides", [sentence],
                       text=[[table]], page=[table, Note("of **all** chains")], tiles=[tile])  # fmt: skip


def tides(basis: Basis) -> Tides:
    return Tides((basis.series["mean"] > 0.0).mean(axis=1).tolist())


def ebb(found: Tides, chains: ChainSet) -> list[Remark]:
    return [Remark(f"Of {len(chains.ids)} chains the lowest has {min(found.shares):.3f}.", convergence=True)]


def test_a_new_quantity_is_one_file_and_one_line(
    chains: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = Registered("tides", tides, ebb)
    monkeypatch.setattr(registered, "QUANTITIES", (*registered.QUANTITIES, line))
    with undrawn():
        found = dpmix.summarize(chains, tmp_path / "s.h5", report=tmp_path / "s.html")
    assert isinstance(found, Summary)
    shares = (found.series["mean"] > 0.0).mean(axis=1)
    held = found.to_json()["tides"]
    assert held == {
        "by": {f"chain {i}": {"share": share} for i, share in enumerate(shares)},
        "all": float(np.mean(shares)),
    }
    group = read(tmp_path / "s.h5").groups["tides"]
    assert group["share"].tolist() == shares.tolist() and group["all"] == held["all"]
    assert group["chain"].tolist() == list(held["by"])
    text = found.to_text()
    assert f"Tides: {shares.mean():.3f} of draws" in text
    cells = [[f"chain {i}", f"{share:.3f}"] for i, share in enumerate(shares)]
    assert rows_of_text(text, "share of <b>")[1:] == cells
    page = (tmp_path / "s.html").read_text(encoding="utf-8")
    assert rows_of_page(page, "Tides") == [["chain", "share of <b>"], *cells]
    assert "share of &lt;b&gt;" in page and '<p class="note">of <b>all</b> chains</p>' in page
    assert f"<dt>Tides</dt><dd>{shares.max():.3f}<small>the highest</small></dd>" in page
    warning = f"Of 3 chains the lowest has {shares.min():.3f}."
    assert warning in found.failures and warning in found.to_json()["warnings"] and warning in page
    assert list(found.rows("tides")) == [{"chain": n} | row for n, row in held["by"].items()]
    assert found.quantity(Tides) is found.quantities["tides"]


# The nodes, each by itself.


def tree_of(*sections: ResultSection, **options: Any) -> Tree:
    return Tree("name", "heading", "guarantee", sections, **options)


def stored(tmp_path: Path, *sections: ResultSection) -> Node:
    path = tmp_path / "tree.h5"
    write_result(path, tree_of(*sections), force=True)
    return read(path)


def test_what_does_not_exist(tmp_path: Path) -> None:
    table = Table(
        "row", ["a", "b"], [TableColumn("x", [1.0, None]), TableColumn("y", [None, None], optional=True)]
    )
    data = {
        "none": None,
        "curve": Array(("grid",), None),
        "infinite": math.inf,
        "said": "",
        "bound": Attr(None),
        "table": table,
    }
    sections = [
        ResultSection("all", data),
        ResultSection("nothing", None),
        ResultSection("unheld"),
        warnings_section([]),
    ]
    assert to_json(tree_of(*sections)) == {
        "all": {
            "none": None,
            "curve": None,
            "infinite": None,
            "said": "",
            "bound": None,
            "table": {"a": {"x": 1.0}, "b": {"x": None}},
        },
        "nothing": None,
        "warnings": [],
    }
    found = stored(tmp_path, *sections)
    assert list(found.groups) == ["all"]
    group = found.groups["all"]
    assert set(group.variables) == {"none", "infinite", "row", "x"} and list(group.attrs) == ["bound"]
    assert np.isnan(group["none"]) and np.isnan(group.attrs["bound"])
    assert np.array_equal(group["x"], [1.0, np.nan], equal_nan=True)


def test_what_each_holds_in_its_own_form(tmp_path: Path) -> None:
    data = {"count": Each(3, 3.0), "here": Each([1]), "there": Each(hdf5=Array(("there",), [1, 2])), "n": 4}
    assert plain(data) == {"count": 3, "here": [1], "n": 4}
    group = stored(tmp_path, ResultSection("s", data)).groups["s"]
    assert set(group.variables) == {"count", "there", "n"}
    assert (group["count"].dtype.kind, group["n"].dtype.kind) == ("f", "i")
    root = stored(
        tmp_path,
        ResultSection("seconds", 1.5),
        ResultSection("kind", "toy"),
        ResultSection("hidden", Each(2)),
    )
    assert (root.attrs["seconds"], root.attrs["kind"]) == (1.5, "toy") and "hidden" not in root.attrs


def test_names_with_slashes_are_kept_apart_in_files(tmp_path: Path) -> None:
    data = by_name({name: {"x": float(i)} for i, name in enumerate(("a/b", "a_b", "c"))})
    groups = stored(tmp_path, ResultSection("columns", data)).groups["columns"].groups
    assert [float(group["x"]) for group in groups.values()] == [0.0, 1.0, 2.0] and "a_b" in groups
    assert by_name({"": 1}) == 1 and by_name({"x": 1}) == {"x": 1}


def test_layouts_of_tables() -> None:
    columns = [TableColumn("x", [1.0, 2.0])]
    assert plain(Table("r", ["a", "b"], columns)) == {"a": {"x": 1.0}, "b": {"x": 2.0}}
    assert plain(Table("r", ["a", "b"], columns, "list")) == [
        {"name": "a", "x": 1.0},
        {"name": "b", "x": 2.0},
    ]
    assert plain(Table("r", ["a", "b"], columns, "values")) == {"a": 1.0, "b": 2.0}
    marked = Table("r", ["a", "b", "c"], [TableColumn("x", [1, 2, 3], "x", bad=[True, False, False])])
    taken = marked.take([2, 0])
    assert taken.rows == ["c", "a"] and taken.columns[0].values == [3, 1]
    assert taken.columns[0].bad == [False, True]


def test_no_name_does_anything_at_a_terminal() -> None:
    name = "a\x1b[31m\x07\nforged: line"
    table = Table("r", [name], [TableColumn("x", [1.0], "x", where="text")])
    lines = to_text(tree_of(ResultSection("t", brief=[name], text=[[table]]))).splitlines()
    assert "a?[31m??forged: line" in lines[-3] and not any(line.startswith("forged") for line in lines)
    assert all(line.isprintable() for line in lines)


def test_terminals_leave_out_what_is_too_wide_or_empty() -> None:
    wide = [TableColumn(f"c{i}", [1.0], "a long name", spare=i > 5) for i in range(9)]
    empty = TableColumn("none", [None], "empty", if_any=True)
    text = to_text(tree_of(ResultSection("t", text=[[Table("r", ["row"], [*wide, empty])]])))
    first, *_ = text.splitlines()
    assert len(first) <= WIDTH and first.count("a long name") == 7 and "empty" not in text
    page = to_page(tree_of(ResultSection("t", title="T", text=[[Table("r", ["row"], [*wide, empty])]])))
    assert page.count(">a long name<") == 9 and ">empty</th>" in page and "<td>-</td>" in page


def test_long_headings_are_on_several_lines_at_terminals() -> None:
    """As those of the comparison of two groups are whose names are long."""
    names = [f"{what} public administration and defence" for what in ("in", "less", "beside")]
    table = Table("r", ["row", "other"], [TableColumn(name, [1.0, 2.0], name) for name in names])
    lines = to_text(tree_of(ResultSection("t", text=[[table]]))).splitlines()
    assert max(map(len, lines)) <= WIDTH and ["other", "2", "2", "2"] in [line.split() for line in lines]
    assert " ".join(lines).split().count("administration") == 3
    none = Table("r", [], [TableColumn(name, [], name) for name in names])
    assert to_text(tree_of(ResultSection("t", text=[[none]])))


def test_orders_and_what_has_no_place_in_them() -> None:
    tree = tree_of(
        *(ResultSection(key, title=key, brief=[key]) for key in "abcd"),
        text_order=["c", "*", "a"],
        warnings=["<w>"],
    )
    assert to_text(tree).split("\n\n")[0].split() == ["c", "b", "d", "a"]
    assert [section.key for section in tree.ordered("d")] == ["d", "a", "b", "c"]
    assert to_text(tree).endswith("guarantee\n\nWarnings:\n- <w>")
    page = to_page(tree)
    assert "&lt;w&gt;" in page and "<h2>" not in page  # of sections that show nothing


def test_parts_of_sections_and_pictures() -> None:
    part = ResultSection("whole/one", title="one", page=["part & parcel"])
    page = to_page(tree_of(ResultSection("whole", ABSENT, "Whole", parts=[part])), {"whole/one": ["<svg/>"]})
    assert "<h2>Whole</h2>\n<h3>one</h3>\n<svg/>\n<p>part &amp; parcel</p>" in page


def test_a_result_is_whatever_has_a_tree(tmp_path: Path) -> None:
    class Toy(Result):
        @property
        def tree(self) -> Tree:
            return tree_of(ResultSection("n", 3), ResultSection("words", Each("yes"), text=[["said"]]))

    toy = Toy()
    assert toy.to_json() == toy.to_dict() == {"n": 3, "words": "yes"}
    assert toy.to_text() == "said\n\nguarantee" and toy.tables() == {}
    toy.write(tmp_path / "toy.h5", {"more": 1.0})
    attrs = read(tmp_path / "toy.h5").attrs
    assert (attrs["n"], attrs["more"]) == (3, 1.0)
    with pytest.raises(KeyError, match="there are none"):
        list(toy.rows())
