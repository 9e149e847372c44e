"""`fit`: the same draws however they are run, what the chains file holds, and what is refused."""

from __future__ import annotations

import dataclasses
import shutil
import threading
from pathlib import Path
from typing import Any

import arviz_base
import h5py
import numpy as np
import pytest
import xarray

import dpmix
from dpmix.api.fit import plan
from dpmix.errors import DataError, DpmixError, SamplerError, SpecError, UsageError
from dpmix.results.as_text import to_text
from dpmix.run.chains_reader import read_chains
from tests.helpers.fits import assert_same, contents, release_file, small_release, small_spec


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fit") / "c.h5"
    result = dpmix.fit(small_spec(), small_release(), path, quiet=True, jobs=1)
    assert (result.path, result.chains, result.draws, len(result.seconds)) == (path, (0, 1), 20, 2)
    return path


def test_threads_do_not_change_the_draws(fitted: Path, tmp_path: Path) -> None:
    dpmix.fit(small_spec(), small_release(), tmp_path / "two.h5", quiet=True, jobs=2)
    assert_same(fitted, tmp_path / "two.h5")
    dpmix.fit(small_spec(seed=8), small_release(), tmp_path / "other.h5", quiet=True)
    other, mine = contents(tmp_path / "other.h5"), contents(fitted)
    assert (other["posterior/concentration"] == mine["posterior/concentration"]).all()  # it is fixed
    assert (other["sample_stats/log_likelihood"] != mine["sample_stats/log_likelihood"]).all()


def test_one_chain_a_process_gives_the_same_chains(fitted: Path, tmp_path: Path) -> None:
    parts = [tmp_path / "1.h5", tmp_path / "0.h5"]
    for part in parts:
        result = dpmix.fit(small_spec(), small_release(), part, quiet=True, chain_id=int(part.stem))
        assert result.chains == (int(part.stem),)
    merged, whole = read_chains(parts), read_chains([fitted])
    for name in ("ids", "n_clusters", "concentration", "log_likelihood", "observed"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    for one, other in zip(merged.blocks(7), whole.blocks(7), strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        assert one.parameters.keys() == {"mean", "variance"}
        for name, values in one.parameters.items():
            np.testing.assert_array_equal(values, other.parameters[name])
    assert dpmix.summarize(parts).to_json()["density"] == dpmix.summarize([fitted]).to_json()["density"]
    for chain in (0, 1):
        part = contents(tmp_path / f"{chain}.h5")["posterior/allocations"][0]
        np.testing.assert_array_equal(part, contents(fitted)["posterior/allocations"][chain])


@pytest.mark.slow
def test_blocks_of_records_on_threads_do_not_change_the_draws(tmp_path: Path) -> None:
    spec = small_spec(kind="private_slice", iterations=6, burn_in=2, thin=2, chains=1)
    release = small_release(n=70_000)
    for jobs in (1, 2):
        dpmix.fit(spec, release, tmp_path / f"{jobs}.h5", quiet=True, jobs=jobs)
    assert_same(tmp_path / "1.h5", tmp_path / "2.h5")
    assert "posterior/allocations" not in contents(tmp_path / "1.h5")


def test_allocations_are_stored_as_the_spec_says(fitted: Path, tmp_path: Path) -> None:
    spec = small_spec(iterations=4, burn_in=2, thin=1, chains=1)
    dpmix.fit(spec, small_release(n=5001), tmp_path / "many.h5", quiet=True)
    assert "posterior/allocations" not in contents(tmp_path / "many.h5")
    spec["sampler"]["store"] = ["allocations"]
    dpmix.fit(spec, small_release(n=40_000), tmp_path / "stored.h5", quiet=True)
    labels = contents(tmp_path / "stored.h5")["posterior/allocations"]
    assert (labels.shape, labels.dtype) == ((1, 2, 40_000), np.int32)
    dpmix.fit(small_spec(store=[]), small_release(), tmp_path / "none.h5", quiet=True)
    mine, theirs = contents(fitted), contents(tmp_path / "none.h5")
    assert set(mine) - set(theirs) == {"posterior/allocations", "posterior/obs"}
    np.testing.assert_array_equal(mine["posterior/weights"], theirs["posterior/weights"])


def test_the_chains_file_says_what_a_state_is(fitted: Path) -> None:
    found = contents(fitted)
    k, labels, weights = (found[f"posterior/{name}"] for name in ("n_clusters", "allocations", "weights"))
    assert {name: found[f"posterior/{name}"].dtype for name in ("n_clusters", "allocations", "weights")} == {
        "n_clusters": np.int32,
        "allocations": np.int16,
        "weights": np.float64,
    }
    occupied = np.arange(weights.shape[2]) < k[..., None]
    for name in ("weights", "mean", "variance"):
        np.testing.assert_array_equal(np.isfinite(found[f"posterior/{name}"]), occupied)
    assert (found["posterior/variance"][occupied] > 0).all()
    total = np.nansum(weights, axis=2)
    assert ((total > 0) & (total < 1)).all()
    assert weights.shape[2] == k.max()
    np.testing.assert_array_equal(labels.max(axis=2) + 1, k)
    assert labels.min() == 0
    # the stored log-likelihood is that of the stored labels and parameters
    from dpmix.kernels import NormalNIG
    from dpmix.mechanisms.channels.channel_functions import log_marginal
    from dpmix.mechanisms.laplace.channel import LaplaceNoise

    channel, kernel = LaplaceNoise(2.0), NormalNIG(0.0, 0.1, 3.0, 3.0)
    theta = np.stack([found["posterior/mean"][1, 3], found["posterior/variance"][1, 3]])
    z = found["observed_data/z"]
    expected = sum(log_marginal(channel, kernel, z[i], theta, int(labels[1, 3, i])) for i in range(len(z)))
    assert found["sample_stats/log_likelihood"][1, 3] == pytest.approx(expected, rel=1e-12)
    assert np.isnan(found["sample_stats/acceptance_rate"]).all()
    assert found["@seed"] in (b"7", "7")
    constants = {"base_mu0": 0.0, "base_lambda": 0.1, "base_a": 3.0, "base_b": 3.0, "noise_scale": 2.0}
    assert {name: float(found[f"constant_data/{name}"]) for name in constants} == constants
    assert found["@columns"] in (b'["x"]', '["x"]')
    assert int(found["@n"]) == 40


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf", None])
def test_xarray_and_arviz_open_the_chains_file(fitted: Path, engine: Any) -> None:
    with xarray.open_datatree(fitted, engine=engine) as tree:
        posterior = tree["posterior"].to_dataset()
        assert posterior["weights"].dims == ("chain", "draw", "component")
        assert posterior["allocations"].dims == ("chain", "draw", "obs")
        assert posterior["allocations"].dtype == np.int16  # no NaN was made of a fill value
        assert posterior["chain"].values.tolist() == [0, 1]
        assert posterior["draw"].values.tolist() == list(range(20))
        assert tree["sample_stats"]["log_likelihood"].dims == ("chain", "draw")
        assert tree["constant_data"]["seconds"].dims == ("chain",)
        assert tree["observed_data"]["z"].dims == ("obs",)
        assert tree.attrs["dpmix_version"] == dpmix.__version__
        assert tree.attrs["seconds"].shape == (2,)
    opened = arviz_base.convert_to_datatree(str(fitted))
    assert opened["posterior"]["n_clusters"].shape == (2, 20)
    assert arviz_base.extract(opened, var_names="concentration").sizes["sample"] == 40

    def visit(name: str, item: Any) -> None:
        kinds = [item.dtype] if isinstance(item, h5py.Dataset) else []
        for kind in (*kinds, *(item.attrs.get_id(key).dtype for key in item.attrs if key.isalpha())):
            assert h5py.check_string_dtype(kind) is None or h5py.check_string_dtype(kind).length, name

    with h5py.File(fitted) as file:
        file.visititems(visit)
        assert all(file.attrs.get_id(key).dtype.kind != "O" for key in file.attrs)


def test_the_headline_quantities_come_first_and_are_those_of_the_summary(
    fitted: Path, tmp_path: Path
) -> None:
    """`az.summary` lists variables in their order; files of earlier versions, without these, say the same."""
    opened = arviz_base.convert_to_datatree(str(fitted))["posterior"]
    names = [name for name in opened.data_vars if name != "allocations"]
    assert names[:4] == ["record_mean", "record_sd", "record_quantile", "n_clusters"]
    assert opened["mean"].dims == ("chain", "draw", "component")  # of each component, as ever
    assert opened["record_quantile"].dims == ("chain", "draw", "quantile")
    assert opened["quantile"].values.tolist() == [0.25, 0.5, 0.75]
    summary = dpmix.summarize(fitted)
    np.testing.assert_array_equal(summary.series["mean"], opened["record_mean"].values)
    np.testing.assert_array_equal(summary.series["quantile[0.75]"], opened["record_quantile"].values[:, :, 2])
    old = tmp_path / "old.h5"
    shutil.copyfile(fitted, old)
    with h5py.File(old, "r+") as file:
        for name in ("record_mean", "record_sd", "record_quantile"):
            del file["posterior"][name]
    assert dpmix.summarize(old).to_json() == summary.to_json()
    spec = {**small_spec(chains=1), "summary": {"quantiles": [0.9, 0.1]}}
    dpmix.fit(spec, small_release(), tmp_path / "other.h5", quiet=True)
    found = contents(tmp_path / "other.h5")
    assert found["posterior/quantile"].tolist() == [0.1, 0.9]
    np.testing.assert_array_equal(found["posterior/record_sd"][0], opened["record_sd"].values[0])


def test_fit_from_another_thread(fitted: Path, tmp_path: Path) -> None:
    found: list[Any] = []
    arguments = (small_spec(), small_release(), tmp_path / "t.h5")
    thread = threading.Thread(target=lambda: found.append(dpmix.fit(*arguments, quiet=True)))
    thread.start()
    thread.join()
    assert found[0].draws == 20
    assert_same(fitted, tmp_path / "t.h5")


def _said(error: type[DpmixError], folder: Path, spec: Any, release: Any = None, **options: Any) -> str:
    with pytest.raises(error) as caught:
        dpmix.fit(spec, release, folder / "c.h5", quiet=True, **options)
    assert not (folder / "c.h5").exists()
    assert not list(folder.glob("*.partial"))
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_what_does_not_go_together_is_refused_by_name(tmp_path: Path) -> None:
    plain = small_release(kind="none")
    assert "private_neal5 needs a release with noise" in _said(
        SpecError, tmp_path, small_spec(kind="private_neal5"), plain
    )
    metropolis = small_spec(kind="private_slice", latent="metropolis")
    assert _said(SpecError, tmp_path, metropolis, plain).startswith("sampler.latent: metropolis needs")
    said = _said(SpecError, tmp_path, small_spec(kind="blocked_gibbs", truncation=3), small_release())
    assert said.startswith("sampler.truncation: 3 leaves out")
    enough = int(said.split("use at least ")[1].split(",")[0])
    deep = small_spec(kind="blocked_gibbs", truncation=enough - 1)
    assert f"use at least {enough}," in _said(SpecError, tmp_path, deep, small_release())
    heavy = small_spec(kind="blocked_gibbs") | {"model": {**small_spec()["model"], "discount": 0.6}}
    assert "use private_slice or neal8" in _said(SpecError, tmp_path, heavy, small_release())
    two = small_release(columns=2)
    assert "choose one with --set release.column=x" in _said(DataError, tmp_path, small_spec(), two)
    spec = small_spec() | {"release": {"column": "w"}}
    assert "no column 'w'; it has x, y" in _said(DataError, tmp_path, spec, two)
    assert "--chain-id 2: the spec has chains 0 to 1" in _said(
        UsageError, tmp_path, small_spec(), small_release(), chain_id=2
    )
    assert _said(UsageError, tmp_path, small_spec(seed=None), small_release(), chain_id=0).startswith(
        "sampler.seed: missing"
    )
    assert "--release FILE" in _said(UsageError, tmp_path, small_spec())
    empirical = small_spec() | {"model": {"base": {"empirical": "paper"}}}
    flat = dataclasses.replace(small_release(), values=np.ones((40, 1)))
    assert "no finite positive variance" in _said(DataError, tmp_path, empirical, flat)


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        ({"kind": "gaussian", "rho": 1.0, "domain": [-10, 10]}, "mechanism.kind: gaussian, but"),
        (
            {"kind": "laplace", "epsilon": 9.0},
            "mechanism.epsilon: 9, but the release was made with",
        ),
        ({"kind": "laplace", "scale": 2.5}, "mechanism: means noise of scale 2.5, but"),
        ({"kind": "laplace", "rho": 2.0}, "mechanism: means noise of scale"),
        ({"kind": "laplace", "epsilon": 10.0, "domain": [-1, 1]}, "mechanism.domain: [-1, 1], but"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_a_mechanism_that_contradicts_the_release_is_refused(
    mechanism: dict[str, Any], said: str, tmp_path: Path
) -> None:
    spec = small_spec() | {"mechanism": mechanism}
    assert _said(SpecError, tmp_path, spec, small_release()).startswith(said)


@pytest.mark.parametrize(
    "mechanism",
    [{"epsilon": 10.0}, {"scale": 2.0}, {"epsilon": 10.0, "domain": [-10, 10]}, {"rho": 9.000045399929762}],
    ids="-".join,
)
def test_a_mechanism_that_agrees_with_the_release_is_taken(mechanism: dict[str, Any], tmp_path: Path) -> None:
    from dpmix.api.fit import plan

    spec = small_spec() | {"mechanism": {"kind": "laplace", **mechanism}}
    assert plan(spec, small_release()).startswith("sample 60 sweeps of neal8 given 40 released values")


def test_values_sanitized_elsewhere_and_columns(fitted: Path, tmp_path: Path, capsys: Any) -> None:
    z = small_release().values[:, 0]
    table = np.column_stack([z, z[::-1]])
    np.savetxt(tmp_path / "z.csv", table, delimiter=",", header="x,y", comments="", fmt="%.17g")
    stated = small_spec() | {
        "release": {"path": str(tmp_path / "z.csv"), "column": "x"},
        "mechanism": {"kind": "laplace", "scale": 2.0},
    }
    dpmix.fit(stated, None, tmp_path / "stated.h5", quiet=True)
    mine, theirs = contents(fitted), contents(tmp_path / "stated.h5")
    for name in ("posterior/weights", "posterior/allocations", "observed_data/z"):
        np.testing.assert_array_equal(mine[name], theirs[name])
    assert str(tmp_path) not in str(theirs["@spec"])
    two = dataclasses.replace(small_release(columns=2), values=table)
    chosen = small_spec() | {"release": {"column": "x"}}
    dpmix.fit(chosen, two, tmp_path / "chosen.h5", quiet=True)
    np.testing.assert_array_equal(
        mine["posterior/weights"], contents(tmp_path / "chosen.h5")["posterior/weights"]
    )
    del stated["mechanism"]
    dpmix.fit(stated, release_file(tmp_path), tmp_path / "given.h5")
    assert "the release given takes the place of the spec's release section" in capsys.readouterr().err
    np.testing.assert_array_equal(
        mine["posterior/weights"], contents(tmp_path / "given.h5")["posterior/weights"]
    )


def test_a_release_file_under_release_says_itself_how_it_was_made(fitted: Path, tmp_path: Path) -> None:
    """It was read as numbers, under whatever noise the spec states, and its marks were lost."""
    path = release_file(tmp_path)
    spec = small_spec() | {"release": {"path": str(path), "column": "x"}}
    stated = {"kind": "gaussian", "scale": 3.0, "domain": [-10, 10]}
    with pytest.raises(SpecError, match=r"^mechanism.kind: gaussian, but the release was made by laplace"):
        dpmix.fit(spec | {"mechanism": stated}, None, tmp_path / "wrong.h5")
    dpmix.fit(spec, None, tmp_path / "c.h5", quiet=True)
    np.testing.assert_array_equal(
        contents(fitted)["posterior/weights"], contents(tmp_path / "c.h5")["posterior/weights"]
    )


def test_bounds_that_the_release_given_states_are_known(tmp_path: Path) -> None:
    """Though the spec names other values, of which it leaves the bounds out."""
    spec = small_spec() | {"release": {"path": str(tmp_path / "z.csv"), "column": "x"}}
    spec |= {"model": {"kind": "mixture"}, "sampler": {"iterations": 4, "burn_in": 2, "chains": 1}}
    assert "auto takes counts, for there are more than 5,000" in plan(spec, small_release(n=6000))


@pytest.mark.matrix
@pytest.mark.slow
def test_values_without_noise(tmp_path: Path) -> None:
    z = small_release().values
    np.savetxt(tmp_path / "y.csv", z, header="x", comments="", fmt="%.17g")
    source = {"path": str(tmp_path / "y.csv"), "column": "x"}
    outputs = []
    for section in ("data", "release"):
        spec = small_spec() | {section: source, "mechanism": {"kind": "none"}}
        outputs.append(tmp_path / f"{section}.h5")
        dpmix.fit(spec, None, outputs[-1], quiet=True)
    assert_same(*outputs)
    found = contents(outputs[0])
    assert (found["@private"], float(found["@epsilon"])) == (0, np.inf)
    summary = dpmix.summarize(outputs[:1])
    assert summary.to_json()["n_clusters"]["support"]


@pytest.mark.parametrize(
    ("kind", "alpha", "n"),
    [
        pytest.param(
            kind,
            alpha,
            n,
            marks=()
            if (kind == "neal8" and alpha < 0.0) or (kind, alpha, n) == ("private_neal5", -0.2, 1)
            else pytest.mark.matrix,
        )
        for kind in ("neal8", "private_neal5", "neal3")
        for alpha, n in ((-0.2, 40), (0.0, 40), (-0.2, 1), (0.0, 1))
    ],
)
def test_a_pitman_yor_process_has_concentrations_from_minus_its_discount_on(
    kind: str, alpha: float, n: int, tmp_path: Path
) -> None:
    """One record opens a component however little weight a new one has."""
    spec = small_spec(kind=kind)
    spec["model"] |= {"discount": 0.5, "concentration": alpha}
    spec["summary"] = {"grid": [-10.0, 10.0, 50]}
    release = small_release(n, "none" if kind == "neal3" else "laplace")
    dpmix.fit(spec, release, tmp_path / "c.h5", quiet=True, jobs=1)
    summary = dpmix.summarize([tmp_path / "c.h5"])
    found = summary.to_json()
    assert ("1 record;" in to_text(summary.tree)) is (n == 1)
    assert np.isfinite(found["parameters"]["mean"]["sd"])
    support, probability = (found["n_clusters"][name] for name in ("support", "probability"))
    assert (support, probability) == ([1], [1.0]) if n == 1 else max(support) > 1


def test_a_state_of_no_density_is_told(tmp_path: Path) -> None:
    extreme = dataclasses.replace(small_release(), values=np.full((40, 1), 1e200))
    with pytest.raises(SamplerError, match="chain 0 reached a state of zero or undefined density"):
        dpmix.fit(small_spec(chains=1), extreme, tmp_path / "c.h5", quiet=True)


def test_the_release_is_never_overwritten(tmp_path: Path) -> None:
    path = release_file(tmp_path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is the release itself"):
        dpmix.fit(small_spec(), path, path, force=True)
    assert path.read_bytes() == before
