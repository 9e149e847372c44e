"""The order of rows: local releases forget it, and sorting a file gives nobody away (methods, section 1)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmix
from dpmix.errors import SpecError
from dpmix.mechanisms.binomial.section import BinomialMechanism
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.gaussian.section import GaussianMechanism
from dpmix.mechanisms.laplace.section import LaplaceMechanism
from dpmix.mechanisms.square_wave.section import SquareWaveMechanism
from dpmix.mechanisms.wavelet.section import WaveletMechanism
from dpmix.privacy.noise import random_order
from dpmix.release.release_file import read_release
from dpmix.spec import load_spec

FAITHFUL = Path(__file__).parents[2] / "configs" / "data" / "faithful.csv"
UNIT = ((0.0, 1.0),)
LOCAL: dict[str, Callable[..., Any]] = {
    "laplace": lambda **more: LaplaceMechanism(kind="laplace", domain=UNIT, scale=1e-6, **more),
    "gaussian": lambda **more: GaussianMechanism(kind="gaussian", domain=UNIT, scale=1e-6, **more),
    "wavelet": lambda **more: WaveletMechanism(kind="wavelet", domain=UNIT, scale=1e-6, levels=6, **more),
    "square_wave": lambda **more: SquareWaveMechanism(
        kind="square_wave", domain=UNIT, epsilon=40.0, cells=4096, **more
    ),
    "binomial": lambda **more: BinomialMechanism(
        kind="binomial", domain=UNIT, trials=1000, weight=0.9999, **more
    ),
}


def spec_of(**mechanism: Any) -> dict[str, Any]:
    data = {"path": str(FAITHFUL), "columns": ["eruptions"], "domain": [[1, 6]]}
    return {"data": data, "mechanism": mechanism}


def test_every_order_is_equally_likely() -> None:
    """All 24 orders of four rows: false alarm below 1e-9."""
    seen = Counter(tuple(random_order(4).tolist()) for _ in range(24_000))
    assert set(seen) == set(itertools.permutations(range(4)))
    assert stats.chisquare(list(seen.values())).pvalue > 1e-9
    assert sorted(random_order(10_000).tolist()) == list(range(10_000))
    assert random_order(1).tolist() == [0]


def test_keys_that_are_equal_are_drawn_anew() -> None:
    keys = iter([np.array([5, 5, 1]), np.array([3, 2, 1])])
    assert random_order(3, lambda size: next(keys).astype(np.uint64).tobytes()).tolist() == [2, 1, 0]


@pytest.mark.parametrize("kind", LOCAL)
def test_local_releases_are_shuffled_unless_their_order_is_public(kind: str) -> None:
    """Correlations of 400 rows with their places: false alarm below 1e-8."""
    values = np.linspace(0, 1, 400)[:, None]
    shuffled, _ = from_spec(LOCAL[kind](), 1).privatize(values, ("x",))
    kept, _ = from_spec(LOCAL[kind](order="public"), 1).privatize(values, ("x",))
    assert (shuffled.order, kept.order) == ("shuffled", "public")
    drifts = [abs(np.corrcoef(r.values[:, 0], np.arange(400))[0, 1]) for r in (shuffled, kept)]
    assert drifts[0] < 0.3 < 0.8 < drifts[1]
    if kind != "binomial":  # the same rows all the same
        np.testing.assert_allclose(
            *(np.array(sorted(np.round(r.values, 3).tolist())) for r in (shuffled, kept)), atol=2e-3
        )


def test_whole_rows_are_shuffled() -> None:
    values = np.column_stack([np.linspace(0, 1, 300), np.linspace(1, 0, 300)])
    spec = LaplaceMechanism(kind="laplace", domain=(*UNIT, *UNIT), scale=1e-6)
    release, _ = from_spec(spec, 2).privatize(values, ("x", "y"))
    np.testing.assert_allclose(release.values.sum(axis=1), 1.0, atol=1e-4)
    assert not np.allclose(release.values, values, atol=0.1)


def test_the_file_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dpmix.privatize(spec_of(kind="laplace", epsilon=2.0), tmp_path / "r.h5")
    assert read_release(tmp_path / "r.h5").order == "shuffled"
    assert "eruptions, rows in random order; (epsilon = 2, delta = 0)-DP" in capsys.readouterr().err
    dpmix.privatize(spec_of(kind="wavelet", epsilon=2.0, levels=2, order="public"), tmp_path / "w.h5")
    assert read_release(tmp_path / "w.h5").order == "public"
    assert "rows in their own order, which is public" in capsys.readouterr().err
    dpmix.privatize(spec_of(kind="perturbed_histogram", epsilon=2.0, bins=4), tmp_path / "g.h5")
    assert read_release(tmp_path / "g.h5").order is None


def test_simulated_records_keep_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"simulate": "three_gaussians", "n": 30, "seed": 1, "domain": [-10, 10]}
    for mechanism in (
        {"kind": "laplace", "epsilon": 1.0},
        {"kind": "wavelet", "epsilon": 1.0, "levels": 2},
        {"kind": "binomial", "epsilon": 1.0, "trials": 3},
        {"kind": "square_wave", "epsilon": 1.0},
        {"kind": "gaussian", "rho": 1.0, "order": "shuffled"},
    ):
        made = dpmix.privatize({"data": data, "mechanism": mechanism})
        assert made.order == "public"
        assert "rows in their own order" in capsys.readouterr().err


@pytest.mark.parametrize(
    "mechanism",
    [
        {"kind": "smoothed_histogram", "epsilon": 1.0, "bins": 4, "draws": 3},
        {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 4},
        {"kind": "none"},
    ],
)
def test_what_has_no_rows_has_no_order(mechanism: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=r"mechanism\.order: is of the rows of a local release, and"):
        load_spec(spec_of(**mechanism, order="public"))
    with pytest.raises(SpecError, match=r'mechanism\.order: "sorted" is unknown; one of shuffled, public'):
        load_spec(spec_of(kind="laplace", epsilon=1.0, order="sorted"))


EPSILON = 1.0
BOUND = 1 / (1 + math.exp(-EPSILON))  # the best accuracy that the guarantee allows, and never above 1
SORTED = {
    # a file sorted by age, the incomes of which alternate
    "laplace": (np.column_stack([np.linspace(0, 1, 101), np.arange(101) % 2]), {}, 80),
    # one record in each of the 32 cells of the finest level
    "wavelet": ((np.arange(32) / 32 + 1 / 64)[:, None], {"levels": 4}, 150),
}


@pytest.mark.parametrize("kind", ["laplace", pytest.param("wavelet", marks=pytest.mark.matrix)])
def test_an_attack_on_a_sorted_file_fails_on_the_shuffled_release(kind: str) -> None:
    """The first person of a sorted file is replaced by one who comes last: all rows move up by one.

    Under `order: public` the attack, the likelihood ratio of the rows in place, succeeds (here with simulated
    noise, which is quicker). The shuffled release is attacked so, and by its rows sorted by what they show of
    the first column. False alarms below 1e-6.
    """
    first, own, runs = SORTED[kind]
    tables = [first, np.vstack([first[1:], first[-1]])]
    columns = [f"c{i}" for i in range(first.shape[1])]
    rng = np.random.default_rng(1)

    def made(**more: Any) -> Any:
        spec = {"kind": kind, "epsilon": EPSILON} | own | more
        data = {"path": "x.csv", "columns": columns, "domain": [[0, 1]] * len(columns)}
        return from_spec(load_spec({"data": data, "mechanism": spec}).mechanism, len(columns))

    means = [made(epsilon=1e9).simulate(table, columns, rng)[0].values for table in tables]

    def accuracy(released: list[list[Any]]) -> float:
        """Return how often the attack tells of which table a release was made."""
        right = [
            (np.abs(v - means[0]).sum() > np.abs(v - means[1]).sum()) == bool(which)
            for which in (0, 1)
            for v in released[which]
        ]
        return float(np.mean(right))

    in_place = [[made().simulate(table, columns, rng)[0].values for _ in range(500)] for table in tables]
    assert accuracy(in_place) > BOUND + 5 * math.sqrt(0.25 / 1000)
    mechanism = made()
    shuffled = [[mechanism.privatize(table, columns)[0].values for _ in range(runs)] for table in tables]
    assert accuracy(shuffled) < BOUND
    assert accuracy([[rows[np.argsort(rows[:, 0])] for rows in part] for part in shuffled]) < BOUND
