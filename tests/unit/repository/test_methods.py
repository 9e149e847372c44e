"""The page of methods has every section that is cited."""

from __future__ import annotations

import re

import pytest

from tests.helpers.specs import ROOT

PLACES = ("dpmix", "tests", "scripts", "docs")
CITED = re.compile(r"\bmethods(?:\.md)?,? sections? (\d+)((?:(?:, | and | or | to )\d+)*)", re.IGNORECASE)


def cited(text: str) -> set[int]:
    """Return the numbers of the sections that a text cites."""
    joined = re.sub(r"\s*\n[\s#]*", " ", text)
    return {int(n) for found in CITED.finditer(joined) for n in re.findall(r"\d+", found.group())}


def test_citations_are_found_over_ends_of_lines_and_in_rows() -> None:
    assert cited('"""X (methods, section 4)."""') == {4}
    assert cited(
        "see (methods, sections 1 and 2; P1)\n# of methods\n# section 16, and methods.md section 5"
    ) == {
        1,
        2,
        5,
        16,
    }
    assert cited("(Methods, sections 0, 1 and 16).") == {0, 1, 16}


@pytest.mark.parametrize("place", PLACES)
def test_every_section_that_is_cited_is_on_the_page(place: str) -> None:
    sections = {
        int(n) for n in re.findall(r"^## (\d+)\. ", (ROOT / "docs" / "methods.md").read_text(), re.MULTILINE)
    }
    paths = [path for kind in ("*.py", "*.md") for path in (ROOT / place).rglob(kind)]
    found = {str(path): cited(path.read_text("utf-8")) for path in paths if path.name != "test_methods.py"}
    assert {path: numbers - sections for path, numbers in found.items() if numbers - sections} == {}
    if place == "dpmix":
        assert len(set().union(*found.values())) > 10  # the search finds what there is
