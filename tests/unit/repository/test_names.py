"""A name means one thing: no two classes share one, nor two modules but those that folders have of a kind."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
FIXED = {
    "kernels": ("section", "base", "kernel", "family"),
    "mechanisms": ("section", "law", "curator", "channel"),
    "models": ("section", "model", "meaning", "build", "groups", "joint", "latent_records", "mixture_sweep"),
}
"""What files are called in the folders of these packages: the same thing of one mechanism, or model, each."""


def shared(places: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in places.items() if len(found) > 1}


def classes(sources: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path)
    return found


def modules(paths: list[Path]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        fixed = len(path.parts) > 3 and path.stem in FIXED.get(path.parts[1], ())
        if path.stem not in ("__init__", "__main__"):
            found[f"{path.parts[1]}/*/{path.stem}" if fixed else path.stem].append("" if fixed else str(path))
    return {name: paths for name, paths in found.items() if any(paths)}


def paths() -> list[Path]:
    return sorted(path.relative_to(ROOT) for path in (ROOT / "dpmix").rglob("*.py"))


def test_no_two_classes_share_a_name() -> None:
    assert not shared(classes({str(path): (ROOT / path).read_text("utf-8") for path in paths()}))


def test_no_two_modules_share_a_name_but_a_fixed_one() -> None:
    assert not shared(modules(paths()))
    own = {name for names in FIXED.values() for name in names}
    assert not own & modules(paths()).keys()  # nor is a fixed name that of a module elsewhere


def test_a_shared_name_is_found() -> None:
    assert shared(classes({"a.py": "class A: ...", "b.py": "if 1:\n    class A: ...\nclass B: ..."}))
    assert shared(modules([Path("dpmix/api/card.py"), Path("dpmix/release/card.py")]))
    assert not shared(modules([Path("dpmix/models/a/model.py"), Path("dpmix/models/b/model.py")]))
    assert shared(modules([Path("dpmix/models/a/moves.py"), Path("dpmix/models/b/moves.py")]))
