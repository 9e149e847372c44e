"""What all tests have: an order, threads, and a collector of garbage that leaves alone what lives on."""

from __future__ import annotations

import functools
import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FIRST = {HERE / "exact": 0, HERE / "unit" / "models": 1, HERE / "robust": 3}
"""Folders of tests that compile most, and of those that compile for themselves."""
LIGHT = {
    HERE / "unit" / name
    for name in (
        *("auditing", "cli", "columns", "data", "kernels", "laws", "mechanisms", "numerics", "posteriors"),
        *("privacy", "results", "samplers", "scripts", "spec", "store", "synthesis"),
    )
}
"""Folders of tests that compile little."""

# each worker has one processor; threads of a worker's linear algebra would wait for those of the other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


MODELS = re.compile("regression|dirichlet|naive_bayes|multinomial|discrete|custom")
MIXTURES = re.compile("mixture|laplace|neal|slice|wavelet")


@functools.cache
def _kind_of_file(path: Path) -> str:
    text = path.read_text(encoding="utf-8").lower()
    if len(MODELS.findall(text)) > len(MIXTURES.findall(text)):
        return "parametric"
    return "light" if path.parent in LIGHT else "mixtures"


def _kind(item: pytest.Item) -> str:
    """What a test fits, by its name or its file: "parametric" models, "mixtures", or little ("light")."""
    kind = _kind_of_file(item.path)
    return "parametric" if kind == "mixtures" and MODELS.search(item.name) else kind


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give mixtures to one worker and parametric models to the other, so that few compile the same code.

    Of two workers each begins with one half of the tests, and takes what the other has left from the end.
    Functions that compiled code calls are kept by the process alone, so that another compiles them again.
    """
    items.sort(key=lambda item: FIRST.get(item.path.parent, 2))
    of: dict[str, list[pytest.Item]] = {"mixtures": [], "parametric": [], "light": []}
    for item in items:
        of[_kind(item)].append(item)
    between = max(len(items) // 2 - len(of["mixtures"]), 0)
    items[:] = [*of["mixtures"], *of["light"][:between], *of["parametric"], *of["light"][between:]]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage seldom, and never among the tests: compiling makes millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(autouse=True, scope="module")
def _few_second_runs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the second runs of a summary, from which shares of variances are, be a twelfth of what ships.

    They take half of it, and matter to modules alone that say so: `pytestmark = pytest.mark.second_runs`.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("second_runs") is None:
            for name, number in (("REPLICATES", 8), ("_BURN_IN", 10), ("_SAVED", 72)):
                patch.setattr(f"dpmix.summary.variance.{name}", number)
        yield
