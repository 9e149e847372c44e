"""Models given one release of several groups whose sizes are private: against all tables, and the joint law.

Comparisons with enumeration are in Monte Carlo standard errors of 200 batch means, all below 4.5: a right sampler
passes one with probability 7e-6, some 600 of them here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpmix.kernels import Beta, NormalNIG
from dpmix.mixing import PitmanYor
from dpmix.models.cell_counts import NOISES, NoisyCounts, SmoothedDraws
from dpmix.models.discrete import build as build_discrete
from dpmix.models.histogram_mixture.model import HistogramMixture
from dpmix.models.histogram_mixture.state import sticks_for
from dpmix.models.naive_bayes import NaiveBayes
from dpmix.release import Release
from dpmix.spec import load_spec
from tests.checks import params
from tests.oracles import databases, group_counts
from tests.oracles.mc import discrepancies
from tests.parametric import same_in_chunks

LIMIT, LEVEL = 4.5, 1e-5
NAMES = ("female", "male")
ADJACENCY = "replacement, private groups"


def histogram(
    released: Any, kind: dict[str, Any], n: int, groups: tuple[str, ...] = NAMES, bins: int = 3
) -> Release:
    """Return the release of a histogram of groups over [-1, 3]."""
    numbers = np.array(released, dtype=np.float64)
    mechanism: dict[str, Any] = {
        "bins": bins,
        "domain": [[-1.0, 3.0]],
        "requested": {"epsilon": 1.0},
        "groups": {"sex": list(groups)},
    }
    columns: tuple[str, ...] = ("x",)
    if kind["kind"] == "noisy":
        mechanism |= {"kind": "perturbed_histogram", "noise": kind["noise"], "scale": [kind["scale"]]}
        values = numbers[:, None]
    else:
        draws = int(numbers.sum())
        mechanism |= {"kind": "smoothed_histogram", "draws": draws, "weight": kind["weight"], "scale": []}
        cells = np.repeat(np.arange(len(numbers)), numbers.astype(int))
        values = np.stack([-1.0 + 4.0 * (cells % bins + 0.3) / bins, cells // bins], axis=1).astype(float)
        columns = ("x", "sex")
    return Release(values, columns, mechanism, 1.0, 0.0, None, n, adjacency=ADJACENCY, trust="global")


NOISY: dict[str, Any] = {"kind": "noisy", "noise": "laplace", "scale": 1.1}
GEOMETRIC: dict[str, Any] = {"kind": "noisy", "noise": "geometric", "scale": 1.1}
SMOOTHED: dict[str, Any] = {"kind": "smoothed", "weight": 0.2}
RELEASED = {"noisy": [1.6, -0.8, 0.4, 2.2, 0.3, -0.5], "smoothed": [2, 0, 1, 3, 0, 1]}


def worst(draws: NDArray[Any], exact: NDArray[Any]) -> float:
    """Return the largest gap in standard errors, over what is not certain."""
    exact = np.asarray(exact, dtype=float)
    return float(np.max(np.abs(discrepancies(np.asarray(draws, dtype=float), exact))))


def counts_of(chain: Any, draws: int, thin: int) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return the counts at each draw (draw, G m), and what the draws hold."""
    parts, counts = [], np.empty((draws, len(chain.state["counts"])))
    chain.keep(thin=thin, skip=300)
    chain.proceed(300)
    for t in range(draws):
        chain.proceed(chain.sweeps + thin)
        counts[t] = chain.state["counts"]
        if t % 500 == 499:
            parts.append(chain.take())
    return counts, {name: np.concatenate([part[name][1] for part in parts]) for name in parts[0]}


def table_gaps(tables: group_counts.Tables, counts: NDArray[Any]) -> float:
    """Return the largest gap of the frequencies of the likelier tables."""
    flat = tables.counts.reshape(len(tables.counts), -1)
    likely = np.flatnonzero(tables.probability > 5e-3)
    assert len(likely) > 15
    hits = (counts[:, None, :] == flat[likely][None]).all(-1)
    return worst(hits, tables.probability[likely])


@pytest.mark.parametrize("kind", [NOISY, GEOMETRIC, SMOOTHED], ids=["laplace", "geometric", "smoothed"])
@pytest.mark.parametrize("n", [4, 6])
def test_discrete_is_that_of_all_tables(kind: dict[str, Any], n: int) -> None:
    released = np.array(RELEASED[kind["kind"]], dtype=float)
    released = np.rint(released) if kind is GEOMETRIC else released
    if n == 6:  # of two bins, the base measure uneven
        released, base = released[[0, 1, 3, 4]], [0.7, 0.3]
    else:
        base = [0.2, 0.5, 0.3]
    spec = load_spec({"model": {"kind": "discrete", "concentration": 1.7, "base": base}})
    release = histogram(released, kind, n, bins=len(base))
    model = build_discrete(spec, release)
    chain = model.make_chain(np.random.default_rng([5, n]))
    counts, draws = counts_of(chain, 10_000, 2)
    shapes = 1.7 * np.array(base)
    exact = group_counts.discrete(kind, released, n, 2, shapes)
    assert table_gaps(exact, counts) < LIMIT
    sizes = exact.mean(lambda c: sum(c))
    assert worst(draws["group_size"], sizes) < LIMIT
    assert worst(draws["group_share"], (1.0 + sizes) / (2.0 + n)) < LIMIT
    # Pr(X <= edge) of each group: the prior's shapes and its counts, on those of the size
    below = exact.mean(lambda c: (shapes[0] + c[0]) / (shapes.sum() + sum(c)))
    at = np.searchsorted(model.coords["grid"], -1.0 + 4.0 / len(base) - 1e-9)
    assert model.coords["grid"][at] == pytest.approx(-1.0 + 4.0 / len(base), abs=0.03)
    if len(base) == 2:  # an edge is a point of the grid
        assert worst(draws["cdf"][:, :, at], below) < LIMIT


def test_discrete_groups_have_names_and_resume() -> None:
    spec = load_spec({"model": {"kind": "discrete"}})
    model = build_discrete(spec, histogram(RELEASED["noisy"], NOISY, 40))
    draws = same_in_chunks(model, 30, 2, skip=5)
    assert draws["quantile"].shape == (30, 2, 3)
    assert draws["cdf"].shape == (30, 2, 101)
    assert [p.dims[0] for p in model.parameters] == ["group"] * len(model.parameters)
    assert list(model.coords["group"]) == list(NAMES)
    assert (draws["group_size"].sum(axis=1) == 40).all()


COUNTS = [1.9, 0.4, -0.6, 1.2, 0.8, -0.2, 1.5, 0.3]


@pytest.mark.parametrize("offers", [None, 0, 2], ids=["counts", "records", "soma"])
def test_naive_bayes_is_that_of_all_databases(offers: int | None) -> None:
    mechanism = {
        "kind": "noisy_counts",
        "levels": [2],
        "classes": 2,
        "noise": "laplace",
        "scale": [1.5],
        "groups": {"sex": list(NAMES)},
    }
    values = np.array(COUNTS)[:, None]
    release = Release(values, ("count",), mechanism, 1.0, 0.0, None, 3, adjacency=ADJACENCY, trust="global")
    exact = databases.classes(values[:, 0], [2], 4, 1.5, 1.3, 3)
    model = NaiveBayes(release, 1.3, offers)
    draws = model.make_chain(np.random.default_rng(8)).run(20_000, thin=1 if offers is None else 3, skip=200)
    joint = (draws["group_share"][:, :, None] * draws["p"]).reshape(-1, 4)
    assert worst(joint, exact.p) < LIMIT
    assert worst(joint**2, exact.p_squared) < LIMIT
    np.testing.assert_allclose(draws["p"].sum(axis=2), 1.0)
    assert worst(draws["p_feature_1"].reshape(-1, 8), np.ravel(exact.levels[0])) < LIMIT
    sizes = ((4 * 1.3 + 3) * np.array(exact.p) - 1.3).reshape(2, 2).sum(axis=1)
    assert worst(draws["group_size"], sizes) < LIMIT
    same_in_chunks(model, 20, 2, skip=3)


BASES = {"normal": (0.3, 0.25, 2.5, 1.5), "beta": (2.0, 2.0, 2.0, 1.0, -1.0, 3.0)}
GRID = np.array([-0.7, 0.4, 1.6])


def likelihood_of(kind: dict[str, Any], released: Any, n: int) -> Any:
    """Return the tuple that the sampler takes."""
    released = np.array(released, dtype=float)
    if kind["kind"] == "smoothed":
        return SmoothedDraws(released, (1 - kind["weight"]) * len(released) / n, kind["weight"])
    return NoisyCounts(released, NOISES[kind["noise"]], kind["scale"])


def mixture(
    kernel: str, kind: dict[str, Any], released: Any, n: int, bins: int, d: float, alpha: Any, groups: int = 2
) -> HistogramMixture:
    """Return the mixture of groups over [-1, 3], or over [-1, 2] of a beta kernel."""
    law = NormalNIG(*BASES["normal"]) if kernel == "normal" else Beta(*BASES["beta"])
    mixing = PitmanYor(1.0, d, *alpha) if isinstance(alpha, tuple) else PitmanYor(alpha, d)
    edges = np.linspace(-1.0, PLACES[kernel][1] - 1.0, bins + 1)
    sticks = sticks_for(mixing, n)
    assert sticks is not None
    names = [f"group {g}" for g in range(groups)]
    likelihood = likelihood_of(kind, released, n)
    return HistogramMixture(likelihood, n, edges, names, law, mixing, sticks, GRID, {}, {})


PLACES = {"normal": (-1.0, 4.0), "beta": (-1.0, 3.0)}
CASES: list[Any] = [
    ("normal", "noisy", 0.0, (2.0, 2.0)),
    ("beta", "smoothed", 0.3, 1.0),
    ("normal", "smoothed", 0.0, 1.0),
    ("beta", "noisy", 0.0, (2.0, 2.0)),
]


@pytest.mark.parametrize(("kernel", "name", "d", "alpha"), params(CASES, set(CASES[:2])))
def test_mixture_is_that_of_all_tables_and_partitions(kernel: str, name: str, d: float, alpha: Any) -> None:
    kind = NOISY if name == "noisy" else SMOOTHED
    released, n = np.array(RELEASED[name], dtype=float), 4
    exact = group_counts.mixture(
        kind, released, n, 2, d, alpha, kernel, BASES[kernel], (3, *PLACES[kernel]), GRID
    )
    chain = mixture(kernel, kind, released, n, 3, d, alpha).make_chain(np.random.default_rng([7, CASES.index((kernel, name, d, alpha))]))
    counts, draws = counts_of(chain, 20_000, 1)
    assert table_gaps(exact.tables, counts) < LIMIT
    sizes = draws["group_size"][:, :, None] == np.arange(n + 1)
    assert worst(sizes, exact.sizes) < LIMIT
    assert worst(draws["n_clusters"][:, :, None] == np.arange(n + 1), exact.clusters) < LIMIT
    assert worst(draws["density"], exact.density) < LIMIT
    assert worst(draws["density"] ** 2, exact.density_squared) < LIMIT
    if isinstance(alpha, tuple):
        assert worst(draws["concentration"], exact.concentration) < LIMIT
    expected = exact.sizes @ np.arange(n + 1)
    assert worst(draws["group_share"], (1.0 + expected) / (2.0 + n)) < LIMIT
