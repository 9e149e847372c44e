"""How modules import each other: no circle, late imports counted, and nothing below the face imports it."""

from __future__ import annotations

import ast
import functools
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
Graph = dict[str, set[str]]


def modules(root: Path, package: str = "dpmix") -> dict[str, Path]:
    """Return the files of a package by the names of their modules."""
    found = {}
    for path in (root / package).rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def imports(source: str) -> tuple[tuple[str, str, bool, bool], ...]:
    """Return module and name of each import, and whether it is for types alone and late, in a function."""
    found: list[tuple[str, str, bool, bool]] = []
    todo: list[tuple[ast.AST, bool, bool]] = [(ast.parse(source), False, False)]
    while todo:
        node, types, late = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += [(each, True, late) for each in node.body]
            todo += [(each, types, late) for each in node.orelse]
        elif isinstance(node, ast.Import):
            found += [(name.name, "", types, late) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None  # all imports are absolute
            found += [(node.module, name.name, types, late) for name in node.names]
        else:
            late = late or isinstance(node, ast.FunctionDef)
            todo += [(each, types, late) for each in ast.iter_child_nodes(node)]
    return tuple(found)


@functools.cache
def lent(source: str) -> dict[str, str]:
    """Return the names that a package imports when they are asked for, and the modules they are of."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and each.module is not None:
                    found |= {name.name: each.module for name in each.names}
    return found


def graph(root: Path, package: str = "dpmix", *, types: bool = False, late: bool = True) -> Graph:
    """Return which modules of a package each of them imports; what faces lend counts as where it is from."""
    known = modules(root, package)
    borrowed = {own: lent(path.read_text("utf-8")) for own, path in known.items() if path.stem == "__init__"}
    arrows: Graph = {}
    for own, path in known.items():
        arrows[own] = set()
        face = path.stem == "__init__"
        for module, name, for_types, is_late in imports(path.read_text("utf-8")):
            if (for_types and (face or not types)) or (is_late and not late):
                continue
            target = f"{module}.{name}" if f"{module}.{name}" in known else module
            target = borrowed.get(target, {}).get(name, target)
            if target in known and target != own:
                arrows[own].add(target)
    return arrows


def circle(arrows: Graph) -> list[str]:
    """Return a circle of modules that import each other, or nothing."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def packages(arrows: Graph) -> Graph:
    """Return which packages import which, as their modules do."""
    found: Graph = {}
    for own, targets in arrows.items():
        home = ".".join(own.split(".")[:2])
        found.setdefault(home, set()).update(".".join(target.split(".")[:2]) for target in targets)
    return {home: targets - {home} for home, targets in found.items()}


@pytest.mark.parametrize("types", [False, True])
def test_no_modules_import_each_other_in_a_circle(types: bool) -> None:
    arrows = graph(ROOT, types=types)
    assert len(arrows) > 100 and "dpmix.spec.load" in arrows["dpmix.api.fit"]
    assert ("dpmix.run.kept_quantities" in arrows["dpmix.api.fit"]) == types
    assert circle(arrows) == []


def test_packages_are_layers_for_types_too() -> None:
    arrows = packages(graph(ROOT, types=True))
    assert "dpmix.laws" in arrows["dpmix.release"] and circle(arrows) == []
    assert circle(packages({"a.b.x": {"a.c.y"}, "a.c.z": {"a.b.w"}, "a.c.y": set(), "a.b.w": set()}))


def test_chains_of_imports_at_once_are_short() -> None:
    arrows = graph(ROOT, late=False)
    depth: dict[str, int] = {}
    for own in TopologicalSorter(arrows).static_order():
        depth[own] = 1 + max((depth[target] for target in arrows[own]), default=0)
    assert 5 < max(depth.values()) <= 12, max(depth, key=depth.__getitem__)


def test_only_the_command_line_imports_the_package_by_its_face() -> None:
    found = {own for own, targets in graph(ROOT).items() if "dpmix" in targets}
    assert {own.split(".")[1].partition("_")[0] for own in found} == {"cli"}, found


@pytest.mark.parametrize("late", [False, True])
def test_circles_are_found_in_functions_too(tmp_path: Path, late: bool) -> None:
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "first.py").write_text("from toy import second\n")
    text = "from toy.third import x\n"
    (folder / "second.py").write_text(f"def f():\n    {text}" if late else text)
    (folder / "third.py").write_text("import toy.first\nx = 1\n")
    assert set(circle(graph(tmp_path, "toy"))) == {"toy.first", "toy.second", "toy.third"}
    (folder / "third.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import toy.first\nx = 1\n"
    )
    assert circle(graph(tmp_path, "toy")) == []
