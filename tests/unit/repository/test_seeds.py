"""Seeds follow from names: the same ones in every process, and none from a place in a list."""

from __future__ import annotations

import ast

from tests.helpers.seeds import rng_of, seed_of, turn_of
from tests.helpers.specs import ROOT


def by_place(text: str) -> list[int]:
    """Return the lines that seed a generator by where something is in a list."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
            inner = [part for given in node.args for part in ast.walk(given)]
            found += [
                node.lineno for part in inner if isinstance(part, ast.Attribute) and part.attr == "index"
            ]
    return found


def test_seeds_are_what_names_say() -> None:
    assert seed_of("posterior", "neal8", 0.3, (2.0, 2.0)) == [11162346269611676729]
    assert seed_of("a", "b") != seed_of("b", "a") != seed_of("ab")
    assert rng_of("a").random() == rng_of("a").random() != rng_of("b").random()
    assert {turn_of(3, str(i)) for i in range(30)} == {0, 1, 2}


def test_no_test_is_seeded_by_its_place_in_a_list() -> None:
    assert by_place("rng = np.random.default_rng([3, CASES.index(case)])") == [1]
    found = {str(path): by_place(path.read_text("utf-8")) for path in (ROOT / "tests").rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines} == {}
