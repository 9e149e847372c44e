"""The benchmark of compositions: every cell has a name, and what was measured of it a place in the tables."""

from __future__ import annotations

import pytest

from benchmarks import compositions
from benchmarks.compositions import METHODS, Cell, cells, measure, select, tables


def made_up(cell: Cell) -> dict[str, object]:
    """Return a measurement that nobody made."""
    own = {"method": cell.method, "n": cell.n, "epsilon": cell.epsilon, "tie": 3.5}
    return (
        own
        | {"prepared": 2.0, "sweep": 1e-3, "draw": 2e-3, "draws": 400, "ess": 100.0}
        | {
            "ess_per_second": 250.0 if cell.method == "DPMCMC, joint" else 125.0,
            "off": 0.125,
        }
    )


def test_all_cells_are_in_the_tables() -> None:
    every = list(cells())
    assert len({cell.name for cell in every}) == len(every)
    methods, joint, growing = tables([made_up(cell) for cell in every]).split("\n\n")
    assert len(methods.splitlines()) == 2 + len(compositions.EPSILONS) * len(METHODS)
    assert len(joint.splitlines()) == 2 + 12
    assert "| 3 | 1,000 | 3.5 | 2,000 | 2,000 | 125 | 250 | 2 |" in joint
    assert len(growing.splitlines()) == 2 + 4 * len(compositions.GROWING)
    # 2 s before, and 1000 effective draws at 125 a second
    assert "| 1,000,000 | DPABC | 2 | 0.25 | 10 | 12.5 |" in growing


def test_cells_are_picked_by_parts_of_their_names() -> None:
    assert [cell.name for cell in select(["DPBoots/n100000/"])] == ["DPBoots/n100000/eps1.5"]
    with pytest.raises(ValueError, match=r"nothing is called n7; names are as DPMCMC/n5000/eps0\.25"):
        select(["n7"])


@pytest.mark.matrix
@pytest.mark.parametrize("method", METHODS)
def test_cells_are_measured(method: str) -> None:
    found = measure(Cell(method, 60, 1.5), 0.01)
    assert set(found) == set(made_up(Cell(method, 60, 1.5)))
    assert found["ess"] > 0.0 and found["draws"] >= 40
