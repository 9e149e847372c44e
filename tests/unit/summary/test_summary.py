"""summarize, end to end on files of known chains."""

from __future__ import annotations

import json
from contextlib import nullcontext

import numpy as np
import pytest
import xarray

import dpmix
from dpmix.errors import ConvergenceError, DataError, SpecError, UsageError
from tests.helpers.chains_files import a_spec, states_of_mixture, write_chains
from tests.helpers.pages import undrawn

KEYS = [
    "parameters",
    "density",
    "n_clusters",
    "clustering",
    "acceptance",
    "prior",
    "beyond_bounds",
    "check",
    "prior_sensitivity",
    "variance_shares",
    "shape_contraction",
    "verdict",
    "unit",
    "seconds",
    "ess_per_second",
    "warnings",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(1)
    states = [states_of_mixture(1000, rng) for _ in range(2)]
    for chain in states:
        chain["log_likelihood"] = rng.normal(-500.0, 3.0, 1000)
        chain["acceptance_rate"] = np.full(1000, 0.4)
    return write_chains(
        tmp_path_factory.mktemp("chains") / "c.h5", states, constants={"acceptance_bound": 0.0067}
    )


def test_json_has_the_keys_of_the_interface(path):
    summary = dpmix.summarize(path)
    found = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert list(found) == KEYS
    assert list(found["density"]) == ["grid", "mean", "lower", "upper", "prior", "hellinger_from_prior"]
    assert {len(found["density"][name]) for name in ("grid", "mean", "lower", "upper", "prior")} == {200}
    assert list(found["n_clusters"]) == ["support", "probability"]
    assert sum(found["n_clusters"]["probability"]) == pytest.approx(1.0)
    assert found["acceptance"] == {"mean": pytest.approx(0.4), "bound": 0.0067}
    assert found["seconds"] == 4.0
    scalars = ["mean", "sd", "quantile[0.25]", "quantile[0.5]", "quantile[0.75]"]
    scalars += ["density[-6]", "density[0]", "density[6]", "n_clusters", "log_likelihood"]
    assert list(found["parameters"]) == scalars
    assert list(found["ess_per_second"]) == scalars
    for name, value in found["parameters"].items():
        figures = {"mean", "sd", "quantiles", "rhat", "ess_bulk", "ess_tail", "mcse", "contraction", "note"}
        assert set(value) == figures
        assert found["ess_per_second"][name] == pytest.approx(value["ess_bulk"] / 4.0)
    assert found["warnings"] == []


def test_no_proposals_and_a_random_concentration(tmp_path):
    rng = np.random.default_rng(2)
    states = [states_of_mixture(200, rng) | {"concentration": rng.gamma(2.0, 1.0, 200)} for _ in range(2)]
    spec = a_spec(sampler__iterations=1200, model__concentration={"shape": 2.0, "rate": 1.0})
    found = dpmix.summarize(write_chains(tmp_path / "c.h5", states, spec=spec)).to_json()
    assert found["acceptance"] == {"mean": None, "bound": None}
    assert found["parameters"]["concentration"]["mean"] == pytest.approx(2.0, abs=0.4)
    assert "log_likelihood" not in found["parameters"]


def test_the_same_files_give_the_same_bytes(path, tmp_path):
    texts, pages, asked = [], [], ["summary.quantiles=[0.5]"]
    for number in range(2):
        found = dpmix.summarize(path, report=tmp_path / f"{number}.html", overrides=asked)
        texts.append(json.dumps(found.to_json()))
        pages.append((tmp_path / f"{number}.html").read_bytes())
    assert texts[0] == texts[1]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_the_summary_file_opens_in_xarray_and_says_the_same(path, tmp_path, engine):
    summary = dpmix.summarize(path, tmp_path / "s.h5")
    found = summary.to_json()
    with xarray.open_datatree(tmp_path / "s.h5", engine=engine) as tree:
        for name in ("grid", "mean", "lower", "upper", "prior"):
            assert tree["density"][name].values.tolist() == found["density"][name]
        assert float(tree["density"]["hellinger_from_prior"]) == found["density"]["hellinger_from_prior"]
        table = tree["parameters"].to_dataset()
        for name, value in found["parameters"].items():
            row = table.sel(parameter=name)
            assert [float(row[k]) for k in ("mean", "sd", "rhat", "ess_bulk", "ess_tail", "mcse")] == [
                value[k] for k in ("mean", "sd", "rhat", "ess_bulk", "ess_tail", "mcse")
            ]
            assert row["quantiles"].values.tolist() == list(value["quantiles"].values())
            assert float(row["ess_per_second"]) == found["ess_per_second"][name]
        assert table["quantile"].values.tolist() == [0.025, 0.5, 0.975]
        clusters = tree["n_clusters"].to_dataset()
        assert clusters["support"].values.tolist() == found["n_clusters"]["support"]
        assert clusters["probability"].values.tolist() == found["n_clusters"]["probability"]
        assert float(tree["acceptance"]["mean"]) == found["acceptance"]["mean"]
        assert tree.attrs["seconds"] == 4.0
        assert tree.attrs["guarantee"].startswith("Laplace noise")
        assert "warnings" not in tree


def test_overrides_of_the_summary_section(path):
    summary = dpmix.summarize(path, overrides=["summary.grid=[-5, 5, 11]", "summary.level=0.5"])
    assert summary.density.grid.tolist() == list(range(-5, 6))
    assert list(summary.parameters["mean"].quantiles) == ["0.25", "0.5", "0.75"]
    wider = dpmix.summarize(path, overrides=["summary.grid=[-5, 5, 11]"])
    assert (wider.density.lower <= summary.density.lower).all()
    assert (wider.density.upper >= summary.density.upper).all()
    assert wider.density.hellinger_from_prior == pytest.approx(summary.density.hellinger_from_prior)


def test_other_overrides_are_refused_by_name(path):
    with pytest.raises(UsageError, match=r"--set sampler\.chains"):
        dpmix.summarize(path, overrides=["sampler.chains=2"])
    with pytest.raises(SpecError, match=r"summary\.levle"):
        dpmix.summarize(path, overrides=["summary.levle=0.9"])
    with pytest.raises(SpecError, match=r"summary\.level"):
        dpmix.summarize(path, overrides=["summary.level=2"])


def test_outputs_are_not_overwritten_and_chains_never(path, tmp_path):
    target = tmp_path / "s.h5"
    target.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        dpmix.summarize(path, target)
    with pytest.raises(UsageError, match="exists already"):
        dpmix.summarize(path, report=target)
    assert target.read_text() == "mine"
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is one of the chains files"):
        dpmix.summarize(path, path, force=True)
    assert path.read_bytes() == before
    with pytest.raises(UsageError, match="cannot both be"):
        dpmix.summarize(path, tmp_path / "x", report=tmp_path / "x")
    with pytest.raises(DataError, match="does not exist"):
        dpmix.summarize(path, tmp_path / "nowhere" / "s.h5")
    dpmix.summarize(path, target, force=True)
    with xarray.open_datatree(target, engine="h5netcdf") as tree:
        assert "density" in tree


def test_required_convergence_fails_after_writing(tmp_path):
    rng = np.random.default_rng(3)
    states = [states_of_mixture(60, rng), states_of_mixture(60, rng, centres=(3.0,))]
    path = write_chains(tmp_path / "c.h5", states)
    with undrawn(), pytest.raises(ConvergenceError, match="R-hat is above") as caught:
        dpmix.summarize(path, tmp_path / "s.h5", report=tmp_path / "r.html", require_convergence=True)
    assert caught.value.exit_code == 5
    assert caught.value.result.failures
    assert (tmp_path / "r.html").stat().st_size > 10_000
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        assert tree["warnings"]["text"].values.tolist() == caught.value.result.warnings


def test_remarks_about_the_release_are_no_failure_to_converge(tmp_path):
    rng = np.random.default_rng(4)
    states = [states_of_mixture(1000, rng) for _ in range(2)]
    path = write_chains(tmp_path / "c.h5", states, attrs={"private": False, "simulated": True})
    summary = dpmix.summarize(path, require_convergence=True)
    assert summary.failures == []
    assert any("simulated data" in text for text in summary.warnings)


def test_a_posterior_that_is_the_prior_is_called_so(tmp_path):
    """Clusters drawn from the base measure, with weights of one record each: nothing learnt."""
    rng = np.random.default_rng(5)
    states = [states_of_mixture(1000, rng, centres=(), extra=3.0) for _ in range(2)]
    path = write_chains(tmp_path / "c.h5", states, attrs={"epsilon": 0.1})
    summary = dpmix.summarize(path)
    assert any("says almost nothing at epsilon = 0.1" in text for text in summary.warnings)
    assert summary.density.hellinger_from_prior < 0.1


def test_one_cluster_one_chain_and_few_draws_do_not_fail(tmp_path):
    rng = np.random.default_rng(6)
    for draws in (1, 3, 5, 30):
        states = [states_of_mixture(draws, rng, centres=(1.0,), extra=0.0)]
        path = write_chains(tmp_path / f"{draws}.h5", states)
        with undrawn() if draws == 30 else nullcontext():
            summary = dpmix.summarize(path, tmp_path / f"s{draws}.h5", report=tmp_path / f"{draws}.html")
        json.dumps(summary.to_json(), allow_nan=False)
        assert summary.parameters["n_clusters"].note == "the same in every draw"
        assert summary.parameters["mean"].rhat is None
        assert summary.n_clusters.support.tolist() == [1]
        assert summary.n_clusters.probability.tolist() == [1.0]
        assert "Clusters: 1" in summary.to_text()


def test_text_has_the_headlines(path):
    text = dpmix.summarize(path).to_text()
    lines = text.splitlines()
    assert max(map(len, lines)) <= 96
    assert lines[0] == "x1, 200 records; 95% intervals in brackets"
    assert any(line.startswith("Verdict: ") for line in lines[:5])
    assert "Clusters: " in text
    assert "Hellinger distance from the prior" in text
    assert "cannot fall below e^-epsilon = 0.0067" in text
    assert "5-differential privacy" in " ".join(text.split())
    assert "Warnings" not in text
    header = next(line for line in lines if "R-hat" in line and "ESS bulk" in line)
    assert all(name in header for name in ("2.5%", "97.5%", "contraction", "ESS bulk"))
