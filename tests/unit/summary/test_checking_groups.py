"""The release check of groups: replicates against releases by the mechanisms themselves.

Parameters are drawn from a prior, records from them by NumPy, and the release by the mechanism's own code: it
is then one more replicate given these parameters, and its rank among replicates is uniform, entry by entry.
Ranks are held to their mean and variance within 4.5 standard errors: a right replicator fails below 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.random import Generator

import dpmix
from dpmix.api.calibrate import mechanism_of
from dpmix.models.meaning_base import Unavailable, meaning_of
from dpmix.models.mixture.meaning import GroupedMixture
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from dpmix.summary.check.rank_comparison import compare
from dpmix.summary.check.release_check import check_statistic, words_of_reach
from tests.helpers.chains_files import Floats
from tests.helpers.pages import undrawn

NAMES = ("female", "male", "other")
TIMES, REPLICATES, N = 240, 19, 70
Drawn = tuple[dict[str, Floats], Floats]
"""Parameters of one state, and records with the codes of their groups last."""


def codes_of(rng: Generator) -> tuple[Floats, Any]:
    """Draw the shares of the groups, and the group of each record."""
    share = rng.dirichlet(np.ones(3))
    return share, rng.choice(3, N, p=share)


def compositions(rng: Generator) -> Drawn:
    share, codes = codes_of(rng)
    alpha = rng.gamma(3.0, 1.0, (3, 2)) + 0.2
    shares = np.stack([rng.dirichlet(alpha[g]) for g in codes])
    return {"alpha": alpha, "group_share": share}, np.column_stack([shares, codes])


def regression(rng: Generator) -> Drawn:
    share, codes = codes_of(rng)
    beta, sigma2 = rng.normal(0.0, 1.0, (3, 2)), 1.0 / rng.gamma(3.0, 1.0, 3)
    mean, variance = rng.normal(0.0, 1.0, (3, 1)), 1.0 / rng.gamma(3.0, 1.0, (3, 1, 1))
    x = mean[codes, 0] + np.sqrt(variance[codes, 0, 0]) * rng.standard_normal(N)
    y = beta[codes, 0] + beta[codes, 1] * x + np.sqrt(sigma2[codes]) * rng.standard_normal(N)
    parameters = {"beta": beta, "sigma2": sigma2, "x_mean": mean, "x_cov": variance, "group_share": share}
    return parameters, np.column_stack([x, y, codes])


def classes(rng: Generator) -> Drawn:
    share, codes = codes_of(rng)
    p = rng.dirichlet([2.0, 2.0], 3)
    features = [rng.dirichlet(np.ones(count), (3, 2)) for count in (2, 3)]
    rows = []
    for g in codes:
        of_class = rng.choice(2, p=p[g])
        rows.append([*(rng.choice(len(f[g, of_class]), p=f[g, of_class]) for f in features), of_class, g])
    found = {"p": p, "p_feature_1": features[0], "p_feature_2": features[1], "group_share": share}
    return found, np.array(rows, dtype=np.float64)


def bins(rng: Generator) -> Drawn:
    share, codes = codes_of(rng)
    masses = rng.dirichlet(np.full(4, 0.8), 3)
    x = np.array([(rng.choice(4, p=masses[g]) + rng.random()) / 4.0 for g in codes])
    return {"bin_probability": masses, "group_share": share}, np.column_stack([x, codes])


def steps(rng: Generator) -> Drawn:
    found, records = bins(rng)
    return {"cdf": np.cumsum(found["bin_probability"], axis=1), "group_share": found["group_share"]}, records


CASES: dict[str, tuple[str, list[str], dict[str, Any], Callable[[Generator], Drawn]]] = {
    "log_moments": ("dirichlet", ["a", "b"], {"threshold": 0.05}, compositions),
    "thresholds": ("dirichlet", ["a", "b"], {"thresholds": [0.2, 0.05]}, compositions),
    "clamped_moments": ("linear_regression", ["x", "y"], {"bounds": [[-1, 3], [-2, 2]]}, regression),
    "noisy_counts": ("naive_bayes", ["u", "v", "y"], {"levels": [2, 3], "classes": 2}, classes),
    "perturbed_histogram": ("mixture", ["x"], {"bins": 4}, bins),
    "geometric": ("discrete", ["x"], {"bins": 4, "noise": "geometric"}, steps),
    "smoothed_histogram": ("mixture", ["x"], {"bins": 4, "draws": 25}, bins),
}
KINDS = {"thresholds": "log_moments", "geometric": "perturbed_histogram"}


def chains_of(model: str, release: Release, parameters: dict[str, Floats]) -> Any:
    """Chains of one draw."""
    own = []
    for name in parameters:
        role = {"cdf": "curve", "bin_probability": "draw"}.get(name, "scalar")
        coords = {"point": np.arange(1, 5) / 4.0}
        own.append(
            SimpleNamespace(
                name=name, title=name, role=role, column="", dims=("group", "point"), coords=coords
            )
        )
    return SimpleNamespace(
        mechanism=release.mechanism,
        n=release.n,
        observed=release.values,
        stated=lambda section: {},
        model=model,
        attrs={"seed": 1},
        generator=lambda chain_id, start: np.random.default_rng([chain_id, -start]),
        parameters=own,
        read=lambda stored: parameters[stored.name][None, None],
    )


def spec_of(name: str) -> dict[str, Any]:
    _, columns, own, _ = CASES[name]
    data = {"path": "none.csv", "columns": columns, "group": "sex", "categories": {"sex": list(NAMES)}}
    if "x" in columns and "y" not in columns:
        data["domain"] = [[0, 1]]
    return {"data": data, "mechanism": {"kind": KINDS.get(name, name), "epsilon": 4.0, **own}}


@pytest.mark.parametrize("name", CASES)
def test_a_release_is_one_more_replicate(name: str) -> None:
    model, columns, _, draw = CASES[name]
    mechanism, rng = mechanism_of(load_spec(spec_of(name)), len(columns), N), np.random.default_rng(17)
    ranks, values = [], []
    for _ in range(TIMES):
        parameters, records = draw(rng)
        release = mechanism.simulate(records, columns, rng)[0]
        found = meaning_of(chains_of(model, release, parameters)).replicator()
        found.prepare([(0, np.array([0]))])
        table = np.stack([found.replicate(0, 0, rng) for _ in range(REPLICATES)])
        observed = found.reduce(release.values)
        assert len(found.names) == observed.size == table.shape[1]
        whole = found.whole(0, 0, rng)
        assert whole.size == release.values.size
        ties = rng.random(table.shape), rng.random(observed.shape)
        below = (table < observed) | ((table == observed) & (ties[0] < ties[1]))
        ranks.append((below.sum(axis=0) + rng.random(observed.shape)) / (REPLICATES + 1.0))
        values.append(compare(observed, table).p())
    uniform = np.array(ranks)
    error = np.sqrt(1.0 / 12.0 / TIMES)
    assert (np.abs(uniform.mean(axis=0) - 0.5) < 4.5 * error).all(), uniform.mean(axis=0)
    spread = np.sqrt((1.0 / 80.0 - 1.0 / 144.0) / TIMES)
    assert (np.abs(((uniform - 0.5) ** 2).mean(axis=0) - 1.0 / 12.0) < 4.5 * spread).all()
    p = np.array(values)  # at most t with probability at most t; a multiple of 1/20
    assert abs(p.mean() - 0.525) < 4.5 * error + (
        0.05 if name in ("noisy_counts", "smoothed_histogram") else 0.0
    )
    assert (p <= 0.05).mean() < 0.05 + 4.5 * np.sqrt(0.05 * 0.95 / TIMES)


def test_entries_are_labelled_by_group() -> None:
    expected = {
        "log_moments": ["size of female", "size of male", "female: log a", "female: log b", "male: log a"],
        "clamped_moments": ["size of female", "size of male", "female: y", "female: x y"],
        "noisy_counts": ["female: u = 1, y = 1", "female: u = 2, y = 1", "female: u = 1, y = 2"],
        "perturbed_histogram": ["female: [0, 0.25)", "female: [0.25, 0.5)"],
    }
    rng = np.random.default_rng(1)
    for name, first in expected.items():
        model, columns, _, draw = CASES[name]
        parameters, records = draw(rng)
        release = mechanism_of(load_spec(spec_of(name)), len(columns), N).simulate(records, columns, rng)[0]
        found = meaning_of(chains_of(model, release, parameters)).replicator().names
        assert found[: len(first)] == first and len(set(found)) == len(found)
        assert found[-1].startswith("other: ")
        with pytest.raises(
            Unavailable, match="releases of groups by .* are not replicated for the model custom"
        ):
            meaning_of(chains_of("custom", release, parameters)).replicator()


def test_draws_keep_their_group_and_lie_in_their_bin() -> None:
    rng = np.random.default_rng(2)
    parameters, records = bins(rng)
    spec = load_spec(spec_of("smoothed_histogram"))
    release = mechanism_of(spec, 1, N).simulate(records, ["x"], rng)[0]
    found = GroupedMixture(chains_of("mixture", release, parameters))
    found.prepare([(0, np.array([0]))])
    counts = found.replicate(0, 0, np.random.default_rng(5))
    whole = found.whole(0, 0, np.random.default_rng(5))
    np.testing.assert_array_equal(found.reduce(whole), counts)


def test_a_whole_release_keeps_bins_that_entries_join() -> None:
    """Chains that hold the distribution function at fewer edges than the release has bins."""
    rng = np.random.default_rng(2)
    parameters, records = steps(rng)
    release = mechanism_of(load_spec(spec_of("geometric")), 1, N).simulate(records, ["x"], rng)[0]
    chains = chains_of("discrete", release, {**parameters, "cdf": parameters["cdf"][:, 1::2]})
    chains.parameters[0].coords = {"point": np.array([0.5, 1.0])}
    found = meaning_of(chains).replicator()
    found.prepare([(0, np.array([0]))])
    counts = found.replicate(0, 0, np.random.default_rng(5))
    whole = found.whole(0, 0, np.random.default_rng(5))
    assert counts.size == len(found.names) == 2 * len(NAMES)
    assert whole.size == release.values.size
    np.testing.assert_array_equal(found.reduce(whole), counts)


def test_chains_without_probabilities_of_bins_are_not_checked() -> None:
    """As those of earlier versions."""
    rng = np.random.default_rng(2)
    parameters, records = bins(rng)
    release = mechanism_of(load_spec(spec_of("perturbed_histogram")), 1, N).simulate(records, ["x"], rng)[0]
    found = GroupedMixture(chains_of("mixture", release, {"group_share": parameters["group_share"]}))
    with pytest.raises(Unavailable, match="the chains do not hold bin_probability"):
        found.prepare([(0, np.array([0]))])


FITS: dict[str, tuple[str, dict[str, Any]]] = {
    "noisy_counts": ("u,v,y", {"model": {"kind": "naive_bayes"}}),
    "smoothed_histogram": ("x", {"model": {"kind": "discrete"}}),
}


@pytest.mark.parametrize("name", FITS)
def test_fits_of_groups_are_checked(name: str, tmp_path: Path) -> None:
    columns, model = FITS[name]
    _, records = CASES[name][3](np.random.default_rng(3))
    codes = [*records[:, :-1].T + (name == "noisy_counts"), np.array(NAMES)[records[:, -1].astype(int)]]
    rows = "\n".join(",".join(map(str, row)) for row in zip(*codes, strict=True)).replace(".0,", ",")
    (tmp_path / "t.csv").write_text(f"{columns},sex\n{rows}\n")
    spec = spec_of(name) | model | {"sampler": {"iterations": 160, "burn_in": 60, "chains": 1, "seed": 1}}
    spec["data"]["path"] = str(tmp_path / "t.csv")
    release = dpmix.privatize(spec, quiet=True, yes=True)
    dpmix.fit(spec, release, tmp_path / "c.h5", quiet=True)
    with undrawn():
        found = dpmix.summarize(tmp_path / "c.h5", report=tmp_path / "r.html")
    assert found.check.overall is not None and not found.check.suspect
    assert found.check.entries[0].name.startswith("female: ")
    assert "Release check" in (tmp_path / "r.html").read_text()
    with h5py.File(tmp_path / "c.h5") as file:
        assert file["posterior_predictive/z"].shape == (1, 100, *release.values.shape)


def test_groups_that_are_taken_for_each_other_show() -> None:
    """At a large epsilon, and entries farthest out name them."""
    rng = np.random.default_rng(6)
    parameters = {
        "bin_probability": np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7], [0.25, 0.25, 0.25, 0.25]]),
        "group_share": np.array([0.4, 0.4, 0.2]),
    }
    mechanism = mechanism_of(load_spec(spec_of("perturbed_histogram")), 1, N)
    cells = [[(b + 0.5) / 4.0, g] for g in range(3) for b in range(4)]
    records = np.repeat(cells, [20, 3, 3, 3, 3, 3, 3, 20, 3, 3, 3, 3], axis=0)
    release = mechanism.simulate(records, ["x"], rng)[0]
    for order, suspect in (([0, 1, 2], False), ([1, 0, 2], True)):
        wrong = parameters | {"bin_probability": parameters["bin_probability"][order]}
        chains = chains_of("mixture", release, wrong)
        vars(chains).update(ids=np.zeros(1, dtype=np.int64), draws=200)
        chains.read = lambda stored, own=wrong: np.stack([own[stored.name]] * 200)[None]
        found = check_statistic(chains, GroupedMixture(chains), 200)
        assert found.suspect is suspect
        if suspect:
            assert found.farthest is not None and found.farthest.name.split(":")[0] in ("female", "male")


@pytest.mark.parametrize(
    ("visible", "share", "said"),
    [
        (0.236, True, "A misfit shows once it moves the entry that varies most by about 24% of all."),
        (1.0, True, "A misfit shows once it moves the entry that varies most by about 100% of all."),
        (1.6, True, "Not even a misfit that moves the entry that varies most by 100% of all shows."),
        (1.6, False, "A misfit shows once it moves the entry that varies most by about 1.6 of all."),
    ],
)
def test_a_check_that_sees_nothing_says_so(visible: float, share: bool, said: str) -> None:
    assert words_of_reach(visible, "of all", share=share) == said
