"""Reading and merging chains files, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from dpmix.errors import DataError, UsageError
from dpmix.run.chains_file import check_attributes
from dpmix.run.chains_reader import read_chains
from dpmix.store.h5 import Attribute, create
from dpmix.summary.density import posterior_density
from dpmix.summary.fitted_columns import choose_grids
from tests.helpers.chains_files import a_spec, states_of_mixture, write_chains


def chains_of(count: int, draws: int = 40, seed: int = 0):
    rng = np.random.default_rng(seed)
    return [states_of_mixture(draws, rng) for _ in range(count)]


def spec_for(draws: int, chains: int, **changes):
    return a_spec(sampler__iterations=1000 + draws, sampler__chains=chains, **changes)


def change(path: Path, where: str, name: str, index, value: float) -> None:
    with h5py.File(path, "r+") as file:
        file[where][name][index] = value


def test_separate_files_equal_one_file_in_any_order(tmp_path):
    states = chains_of(3, draws=2500)
    spec = spec_for(2500, 3)
    whole = read_chains([write_chains(tmp_path / "all.h5", states, spec=spec)])
    parts = [write_chains(tmp_path / f"{i}.h5", [states[i]], spec=spec, ids=[i]) for i in range(3)]
    merged = read_chains([parts[2], parts[0], parts[1]])
    assert merged.ids.tolist() == [0, 1, 2]
    assert np.array_equal(merged.n_clusters, whole.n_clusters)
    grid = np.linspace(-10, 10, 20)
    one, other = posterior_density(whole, [grid], 0.95), posterior_density(merged, [grid], 0.95)
    assert np.array_equal(one.density.upper, other.density.upper)
    assert np.array_equal(one.density.mean, other.density.mean)
    assert one.density.hellinger_from_prior == other.density.hellinger_from_prior
    assert all(np.array_equal(one.series[name], other.series[name]) for name in one.series)


def test_blocks_give_back_what_was_written(tmp_path):
    states = chains_of(2, draws=50)
    chains = read_chains([write_chains(tmp_path / "c.h5", states)])
    blocks = list(chains.blocks(20))
    assert [(b.chain, b.start, b.weights.shape[0]) for b in blocks] == [
        (0, 0, 20), (0, 20, 20), (0, 40, 10), (1, 0, 20), (1, 20, 20), (1, 40, 10)
    ]  # fmt: skip
    found = np.concatenate([np.nansum(b.weights * b.parameters["mean"], axis=1) for b in blocks[3:]])
    assert found == pytest.approx(np.nansum(states[1]["weights"] * states[1]["mean"], axis=1))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sampler__burn_in": 900}, "sampler.burn_in (900 against 1000)"),
        ({"sampler__auxiliary": 3}, "sampler.auxiliary (3 against absent)"),
        ({"model__concentration": 2.0}, "model.concentration (2 against 1)"),
        ({"model__concentration": {"shape": 2.0, "rate": 1.0}}, "model.concentration"),
        ({"summary__level": 0.9}, "summary"),
    ],
)
def test_other_specs_are_refused_by_the_key(tmp_path, changes, named):
    first = write_chains(tmp_path / "a.h5", chains_of(1), spec=spec_for(40, 2))
    spec = spec_for(40, 2, **changes)
    second = write_chains(tmp_path / "b.h5", chains_of(1), spec=spec, ids=[1])
    if "sampler__burn_in" in changes:  # 140 draws are then planned
        second = write_chains(tmp_path / "b.h5", chains_of(1, draws=140), spec=spec, ids=[1])
    with pytest.raises(DataError) as caught:
        read_chains([first, second])
    assert str(caught.value).startswith(f"{second} differs from {first} in {named}")


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"attrs": {"seed": "77"}}, "in seed (77 against 20241107)"),
        ({"attrs": {"epsilon": 2.0}}, "in epsilon (2 against 5)"),
        ({"attrs": {"private": False}}, "in private (0 against 1)"),
        ({"attrs": {"mechanism": '{"kind": "laplace", "scale": [8.0]}'}}, "in mechanism.scale"),
        ({"constants": {"noise_scale": 9.0}}, "in noise_scale (9 against 4)"),
        ({"observed": np.zeros(200)}, "the released values differ"),
        ({"observed": np.zeros(7)}, "the released values differ"),
    ],
)  # fmt: skip
def test_other_releases_and_seeds_are_refused(tmp_path, other, named):
    spec = spec_for(40, 2)
    first = write_chains(tmp_path / "a.h5", chains_of(1), spec=spec)
    second = write_chains(tmp_path / "b.h5", chains_of(1), spec=spec, ids=[1], **other)
    with pytest.raises(DataError) as caught:
        read_chains([first, second])
    assert named in str(caught.value)
    assert str(second) in str(caught.value)


def test_where_the_data_came_from_does_not_matter(tmp_path):
    first, second = spec_for(40, 2), spec_for(40, 2)
    first["release"], second["release"] = {"path": "here/z.csv"}, {"path": "there/z.csv"}
    a = write_chains(tmp_path / "a.h5", chains_of(1), spec=first)
    b = write_chains(tmp_path / "b.h5", chains_of(1), spec=second, ids=[1])
    assert read_chains([a, b]).ids.tolist() == [0, 1]


def test_other_lengths_are_refused(tmp_path):
    spec = spec_for(40, 2)
    first = write_chains(tmp_path / "a.h5", chains_of(1), spec=spec)
    second = write_chains(tmp_path / "b.h5", chains_of(1, draws=50), spec=spec, ids=[1])
    with pytest.raises(DataError, match=r"in draws per chain \(50 against 40\)"):
        read_chains([first, second])


def test_repeated_chains_are_refused(tmp_path):
    first = write_chains(tmp_path / "a.h5", chains_of(2))
    shutil.copy(first, tmp_path / "b.h5")
    with pytest.raises(DataError, match=r"b\.h5 repeats chain 0, which .*a\.h5 holds already"):
        read_chains([first, tmp_path / "b.h5"])
    with pytest.raises(DataError, match="repeats chain 0"):
        read_chains([first, first])


def test_no_files():
    with pytest.raises(UsageError, match="at least one"):
        read_chains([])


def test_files_of_other_kinds(tmp_path):
    text, absent, release, other = (tmp_path / name for name in ("t.h5", "no.h5", "r.h5", "o.h5"))
    text.write_text("draw,mean\n1,2\n")
    with create(release) as root:
        root.group("release").coordinate("record", 3)
    with create(other) as root:
        root.group("posterior").coordinate("chain", 1)
    for path, message in (
        (text, "is not an HDF5 file"),
        (absent, "does not exist"),
        (tmp_path, "is a directory"),
        (release, "is a release file, not a chains file"),
        (other, "it has no attribute 'spec'"),
    ):
        with pytest.raises(DataError, match=message):
            read_chains([path])


def test_truncated_file(tmp_path):
    path = write_chains(tmp_path / "c.h5", chains_of(2, draws=3000))
    path.write_bytes(path.read_bytes()[:-20_000])
    with pytest.raises(DataError, match=r"c\.h5"):
        read_chains([path])


def test_unfinished_files(tmp_path):
    path = write_chains(tmp_path / "c.h5", chains_of(1), spec=spec_for(60, 1))
    with pytest.raises(DataError, match="it holds 40 of 60 draws per chain"):
        read_chains([path])
    path = write_chains(tmp_path / "c.h5", chains_of(2))
    change(path, "posterior", "n_clusters", (1, slice(30, 40)), -1)
    with pytest.raises(DataError, match="chain 1 lacks draw 30"):
        read_chains([path])
    empty = [{name: values[:0] for name, values in chain.items()} for chain in chains_of(1)]
    path = write_chains(tmp_path / "e.h5", empty, spec=spec_for(10, 1))
    with pytest.raises(DataError, match="holds 0 of 10 draws"):
        read_chains([path])


@pytest.mark.parametrize(
    ("where", "name", "value", "message"),
    [
        ("posterior", "concentration", np.nan, "concentration of nan"),
        ("posterior", "concentration", -1.0, "concentration of -1"),
        ("sample_stats", "log_likelihood", np.nan, "log_likelihood that is not finite"),
        ("posterior", "weights", np.nan, "bad component: draw 3, component 0"),
        ("posterior", "mean", np.inf, "bad component: draw 3, component 0"),
        ("posterior", "variance", 0.0, "bad component: draw 3, component 0"),
        ("posterior", "weights", -0.1, "bad component: draw 3, component 0"),
        ("posterior", "weights", 1.5, "weights that sum to"),
    ],
)
def test_values_that_no_sampler_writes(tmp_path, where, name, value, message):
    states = chains_of(1)
    states[0]["log_likelihood"] = np.zeros(40)
    path = write_chains(tmp_path / "c.h5", states)
    change(path, where, name, (0, 3, 0) if name in ("weights", "mean", "variance") else (0, 3), value)
    with pytest.raises(DataError, match=message):
        list(read_chains([path]).blocks(100))


@pytest.mark.parametrize(("alpha", "right"), [(-0.25, True), (0.0, True), (-0.5, False), (np.inf, False)])
def test_a_concentration_is_above_minus_the_discount(tmp_path, alpha, right):
    states = chains_of(1)
    states[0]["concentration"] = np.full(40, alpha)
    path = write_chains(tmp_path / "c.h5", states, constants={"discount": 0.5})
    if right:
        assert (read_chains([path]).concentration == alpha).all()
        return
    with pytest.raises(DataError, match=r"it must be greater than minus the discount, -0\.5, and finite"):
        read_chains([path])


def test_missing_constants(tmp_path):
    path = write_chains(tmp_path / "c.h5", chains_of(1), constants={"base_a": float("nan")})
    with pytest.raises(DataError, match="no finite constant_data/base_a"):
        read_chains([path])


def test_released_values_that_are_not_finite(tmp_path):
    path = write_chains(tmp_path / "c.h5", chains_of(1), observed=np.array([1.0, np.inf]))
    with pytest.raises(DataError, match="released values that are not finite"):
        read_chains([path])


@pytest.mark.parametrize(("kernel", "base"), [("normal", "gamma"), ("poisson", "gamma"), ("beta", "nig")])
def test_models_that_are_not_known_are_refused(tmp_path, kernel, base):
    path = write_chains(tmp_path / "c.h5", chains_of(1), attrs={"kernel": kernel, "base": base})
    with pytest.raises(DataError, match=f"kernel {kernel} and base {base}; known are"):
        read_chains([path])


def test_default_grid(tmp_path):
    chains = read_chains([write_chains(tmp_path / "c.h5", chains_of(1))])
    grid = choose_grids(chains, [])[0]
    assert (grid[0], grid[-1], grid.size) == (-12.0, 12.0, 200)
    assert choose_grids(chains, [(1.0, 2.0, 3)])[0].tolist() == [1.0, 1.5, 2.0]
    spec = spec_for(40, 1)
    spec["mechanism"] = {"kind": "laplace", "scale": 1.0}
    attrs = {"mechanism": '{"kind": "laplace", "scale": [1.0]}'}
    ranged = write_chains(
        tmp_path / "d.h5", chains_of(1), spec=spec, attrs=attrs, observed=np.array([3.0, -1.0])
    )
    assert choose_grids(read_chains([ranged]), [])[0][[0, -1]].tolist() == [-1.0, 3.0]
    bare = write_chains(tmp_path / "e.h5", chains_of(1), spec=spec, attrs=attrs, observed=np.array([3.0]))
    with pytest.raises(DataError, match=r"summary\.grid"):
        choose_grids(read_chains([bare]), [])


def test_names_of_columns(tmp_path):
    z, spec = np.ones((30, 2)) * [[1.0, 2.0]], spec_for(40, 1)
    options = {"spec": spec, "observed": z}
    bare = write_chains(tmp_path / "a.h5", chains_of(1), **options)
    assert read_chains([bare]).columns == ("x1", "x2")
    stored = write_chains(tmp_path / "b.h5", chains_of(1), columns=("u", "v"), **options)
    assert read_chains([stored]).columns == ("u", "v")
    attrs = {"columns": '["p", "q"]'}
    assert read_chains([write_chains(tmp_path / "c.h5", chains_of(1), attrs=attrs, **options)]).columns == (
        "p",
        "q",
    )
    spec["data"] = {"columns": ["s", "t"]}
    assert read_chains([write_chains(tmp_path / "d.h5", chains_of(1), **options)]).columns == ("s", "t")


@pytest.mark.parametrize(
    ("attrs", "mechanism", "n"),
    [
        ({"trust": "local", "n": 77}, {"kind": "laplace", "scale": [2.0]}, 30),
        ({"trust": "local", "n": 77}, {}, 77),  # drawn from a fit to a local release
        ({"trust": "global", "n": 77}, {}, 77),
        ({"trust": "global"}, {"n": 88}, 88),
        ({"trust": "global"}, {}, 30),
    ],
)
def test_number_of_records(tmp_path, attrs, mechanism, n):
    histogram = {
        "kind": "perturbed_histogram",
        "bins": 3,
        "noise": "laplace",
        "domain": [[0, 1]],
        "scale": [2.0],
    }
    law = mechanism if "kind" in mechanism else histogram | mechanism
    attrs = attrs | {"mechanism": json.dumps(law)}
    path = write_chains(tmp_path / "c.h5", chains_of(1), observed=np.arange(30.0), attrs=attrs)
    assert read_chains([path]).n == n


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mechanism", "{", "its attribute 'mechanism' is no JSON"),
        ("mechanism", "[]", "'mechanism' is no JSON object"),
        ("mechanism", "{}", "'mechanism' does not name its kind"),
        ("mechanism", '{"kind": "laplace"}', "'mechanism' does not list a positive noise scale per column"),
        ("versions", "x", "'versions' is no JSON"),
        ("epsilon", -1.0, "'epsilon' is no number from 0"),
        ("epsilon", "much", "'epsilon' is no number from 0"),
        ("n", 0, "'n' states no number of records"),
        ("private", 2, "'private' is neither 0 nor 1"),
        ("trust", "none", "'trust' is neither local nor global"),
    ],
)
def test_attributes_are_checked(name: str, value: object, message: str) -> None:
    sound: dict[str, Attribute] = {
        "mechanism": '{"kind": "laplace", "scale": [1.0]}',
        "versions": "{}",
        "epsilon": 1.0,
        "rho": float("nan"),
        "n": 20,
        "private": 1,
        "trust": "local",
    }
    check_attributes(Path("chains.h5"), sound)
    with pytest.raises(
        DataError, match="chains.h5 is not a chains file of dpmix as it was written"
    ) as caught:
        check_attributes(Path("chains.h5"), sound | {name: value})  # type: ignore[dict-item]
    assert message in str(caught.value)
