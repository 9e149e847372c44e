"""What chains of a model mean is stated in its folder: summaries and advice ask for it, and name no model."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dpmix.spec.kinds import MODELS

ROOT = Path(__file__).parents[3]
ASKING = ("summary", "advising")
OF_A_RELEASE = {
    "dpmix/summary/posterior_result.py": {
        "dpmix.models.multinomial.model",
        "dpmix.models.multinomial.release_law",
    }
}
"""What is no account of chains: of a released posterior, by the model that its mechanism is of."""


def named(text: str) -> list[str]:
    """Return where code names a model: its kind as text, the kind of chains compared, its modules."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and node.value in MODELS.names:
            found.append(str(node.value))
        elif isinstance(node, ast.Compare) and any(
            isinstance(each, ast.Attribute) and each.attr == "model"
            for each in (node.left, *node.comparators)
        ):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            folder = node.module.removeprefix("dpmix.models.").split(".")[0]
            found += [node.module] if node.module != folder and folder in MODELS.names else []
    return found


@pytest.mark.parametrize("package", ASKING)
def test_no_model_is_named(package: str) -> None:
    for path in sorted((ROOT / "dpmix" / package).rglob("*.py")):
        own = str(path.relative_to(ROOT))
        found = [each for each in named(path.read_text("utf-8")) if each not in OF_A_RELEASE.get(own, ())]
        assert not found, f"{own} names {', '.join(found)}: state it in the model's meaning.py"


def test_every_model_states_what_its_chains_mean() -> None:
    for kind in MODELS.names:
        assert (ROOT / "dpmix" / "models" / kind / "meaning.py").exists(), kind


@pytest.mark.parametrize(
    "text",
    [
        'KIND = "linear_regression"',
        'made = {("noisy_counts", "naive_bayes"): 1}',
        "def f(chains):\n    return 1 if chains.model == KIND else 0",
        'def f(chains):\n    return chains.model in ("multi", "ple")',
        "def f():\n    from dpmix.models.dirichlet.compositions import composition_of",
    ],
)
def test_a_model_that_is_named_is_found(text: str) -> None:
    assert named(text)


def test_other_words_are_none() -> None:
    assert not named('"""The discrete model."""\nkind = f"of model {chains.model}"\nx = "posterior"')
