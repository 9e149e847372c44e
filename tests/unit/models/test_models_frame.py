"""What every parametric model is given by the frame: chunks, resuming, files, summaries, reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import arviz_base
import h5py
import numpy as np
import pytest
import xarray
import yaml
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError, Interrupted, SamplerError
from dpmix.report.page import render
from dpmix.run.chains_reader import NamedChains, read_chains
from dpmix.run.chains_writer import Finished, Named, write_chains
from dpmix.run.model_protocols import Parameter, ParametricChain, ParametricModel
from dpmix.run.progress import Watch
from dpmix.run.runner import Run, Stop, chain_generator, run
from dpmix.run.workspace import Workspace, workspace_of
from dpmix.spec.summary_section import SummarySpec
from dpmix.summary.summary_of_chains import TOP_SHARES, summarize_parametric
from tests.helpers.pages import short_page

PLACES = np.linspace(-3.0, 3.0, 7)
COLOURS = np.array(["red", "grün", "a/b"])
Arrays = Mapping[str, NDArray[np.float64]]


MECHANISM = {"kind": "perturbed_histogram", "bins": 3, "noise": "laplace", "domain": [[0, 1]], "scale": [2.0]}


class Toy(ParametricModel):
    """A standard normal by random-walk Metropolis, its step adapted in burn-in, and what follows from it."""

    kind = "toy"
    has_log_likelihood = True

    def __init__(self, coefficients: int = 2, colours: NDArray[Any] = COLOURS) -> None:
        self.parameters = (
            Parameter("mu"),
            Parameter("beta", ("coefficient",)),
            Parameter("loading", ("coefficient", "factor"), column="height"),
            Parameter("F", ("place",), role="curve", title="cdf", column="age"),
            Parameter("share", ("colour",), role="shares", title="probability", column="hue"),
            Parameter("seen", role="draw"),
        )
        self.coords = {
            "coefficient": np.arange(coefficients),
            "factor": np.array(["f", "g"]),
            "place": PLACES,
            "colour": colours,
        }
        self.constants = {"n": 5.0, "precision": 1.0}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> ToyChain:
        return ToyChain(self, rng)


class ToyChain(ParametricChain):
    broken = False

    def __init__(self, model: Toy, rng: Generator) -> None:
        super().__init__(model, rng, {"x": np.array([rng.normal()]), "step": np.array([0.1])})

    def sweep(self, count: int) -> None:
        for _ in range(count):
            x = self.state["x"][0]
            offer = x + self.state["step"][0] * self.rng.normal()
            accepted = np.log(self.rng.random()) < 0.5 * (x * x - offer * offer)
            if accepted:
                self.state["x"][0] = offer
            if self.burning_in:
                self.state["step"] *= np.exp(0.1 * (accepted - 0.4))
            self.moves += (accepted, 1.0)

    def record(self, row: int, out: Arrays) -> None:
        x = float("nan") if self.broken and self.sweeps > 50 else self.state["x"][0]
        out["mu"][row] = x
        out["beta"][row] = x * np.arange(out["beta"].shape[1]) + self.rng.normal()
        out["loading"][row] = 1.0
        out["F"][row] = x >= PLACES
        weights = self.rng.gamma(np.arange(1.0, 1.0 + out["share"].shape[1]))
        out["share"][row] = weights / weights.sum()
        out["seen"][row] = self.rng.normal()
        out["log_likelihood"][row] = -0.5 * x * x


def fit(path: Path, model: Toy, ids: tuple[int, ...] = (0, 1), *, draws: int = 900, stops: int = 0) -> Path:
    """Run chains of the toy into a chains file, stopping and going on again `stops` times."""
    task = Run(model, 100 + 2 * draws, 100, 2, 5, ids)
    content = Named(model.parameters, model.coords)
    with Workspace.open(workspace_of(path)) as workspace:
        for _ in range(stops):
            stop = Stop()
            watch = _Stopper(stop)
            with pytest.raises(Interrupted):
                run(task, workspace, 1, stop, watch)
        seconds = run(task, workspace, 1, Stop(), Watch())
        finished = Finished(
            chains=ids,
            draws=task.draws,
            seconds=seconds,
            content=content,
            observed=np.arange(6.0).reshape(3, 2),
            dims=("released", "column"),
            constants=model.constants,
            attrs={
                "spec": yaml.safe_dump(
                    {
                        "model": {"kind": "discrete"},
                        "sampler": {"iterations": task.iterations, "burn_in": 100, "thin": 2},
                    }
                ),
                "seed": "5",
                "dpmix_version": "0.1.0",
                "mechanism": json.dumps(MECHANISM),
                "model": model.kind,
                "epsilon": 1.0,
                "private": True,
                "n": 5,
                "trust": "global",
            },
        )
        write_chains(path, workspace, finished, force=True)
        workspace.remove()
    return path


class _Stopper(Watch):
    """Asks to stop as soon as progress is shown."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop

    def chains(self, boards: Any) -> None:
        assert all(board.note == "" for board in boards)
        self.stop.ask()


def read(path: Path | list[Path]) -> NamedChains:
    chains = read_chains(path if isinstance(path, list) else [path])
    assert isinstance(chains, NamedChains)
    return chains


def everything(chains: NamedChains) -> dict[str, NDArray[np.float64]]:
    found = {parameter.name: chains.read(parameter) for parameter in chains.parameters}
    return {**found, "acceptance": chains.acceptance, "log_likelihood": chains.log_likelihood}


def assert_equal(one: NamedChains, other: NamedChains) -> None:
    for name, values in everything(one).items():
        np.testing.assert_array_equal(values, everything(other)[name], err_msg=name)


def test_draws_do_not_depend_on_chunks_or_on_being_restored() -> None:
    model = Toy()
    whole = model.make_chain(chain_generator(1, 0)).run(draws=40, thin=3, skip=20)
    assert whole["mu"].shape == (40,) and whole["loading"].shape == (40, 2, 2)
    for chunk in (1, 7, 64):
        chain = model.make_chain(chain_generator(1, 0))
        chain.keep(thin=3, skip=20)
        parts = []
        while chain.sweeps < 140:
            chain.proceed(min(chain.sweeps + chunk, 140))
            parts.append(chain.take())
            snapshot = chain.snapshot()
            chain = model.make_chain(chain_generator(9, 9))  # which then knows nothing of the first
            chain.restore(snapshot)
        for name, values in whole.items():
            found = np.concatenate([part[name][1] for part in parts])
            np.testing.assert_array_equal(found, values, err_msg=f"{name}, chunks of {chunk}")
    assert whole["acceptance_rate"][1:].min() >= 0.0  # of the sweeps between saved draws alone
    assert set(np.round(3 * whole["acceptance_rate"][1:], 9)) <= {0.0, 1.0, 2.0, 3.0}


def test_a_stopped_run_gives_the_same_file(tmp_path: Path) -> None:
    whole = fit(tmp_path / "whole.h5", Toy(), draws=10_000)
    stopped = fit(tmp_path / "stopped.h5", Toy(), draws=10_000, stops=1)
    assert_equal(read(whole), read(stopped))


def test_chains_run_by_separate_processes_are_merged(tmp_path: Path) -> None:
    whole = fit(tmp_path / "whole.h5", Toy(), (0, 1, 2))
    parts = [fit(tmp_path / f"{k}.h5", Toy(), (k,)) for k in (2, 0, 1)]
    merged = read(parts)
    assert merged.ids.tolist() == [0, 1, 2]
    assert_equal(read(whole), merged)
    with pytest.raises(DataError, match=r"0.h5 repeats chain 0, which .*whole.h5 holds already"):
        read([whole, parts[1]])
    other = fit(tmp_path / "other.h5", Toy(coefficients=3), (3,))
    with pytest.raises(DataError, match="differs from .* in the parameters that it holds"):
        read([whole, other])


def test_files_open_with_the_field_s_tools(tmp_path: Path) -> None:
    path = fit(tmp_path / "c.h5", Toy())
    ours = everything(read(path))
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        posterior = tree["posterior"].dataset
        assert posterior["loading"].dims == ("chain", "draw", "coefficient", "factor")
        assert posterior["share"].sel(colour="a/b").shape == (2, 900)
        assert posterior["colour"].values.tolist() == COLOURS.tolist()
        assert posterior["share"].attrs["column"] == "hue"
        for name in ("mu", "beta", "F", "seen"):
            np.testing.assert_array_equal(posterior[name].values, ours[name])
        assert float(tree["constant_data"]["precision"]) == 1.0
    data = arviz_base.convert_to_datatree(str(path))
    assert set(data["sample_stats"].data_vars) == {"acceptance_rate", "log_likelihood"}


def test_the_summary_names_every_entry_and_knows_its_posterior(tmp_path: Path) -> None:
    chains = read(fit(tmp_path / "c.h5", Toy(), (0, 1, 2, 3), draws=3000))
    summary = summarize_parametric(chains, SummarySpec.model_validate({"level": 0.5}))
    assert list(summary.parameters) == [
        "mu",
        "beta[0]",
        "beta[1]",
        *(f"loading[height,{i},{k}]" for i in (0, 1) for k in "fg"),
        *(f"probability[hue,{colour}]" for colour in COLOURS),
        "log_likelihood",
    ]
    mu = summary.parameters["mu"]
    assert abs(mu.mean) < 5 * (mu.mcse or 0.0)
    assert abs(mu.sd - 1.0) < 0.1
    assert mu.quantiles.keys() == {"0.25", "0.5", "0.75"}
    assert summary.parameters["loading[height,0,f]"].note == "the same in every draw"
    rate = summary.acceptance.mean
    assert rate is not None and abs(rate - 0.4) < 0.1  # what burn-in adapts it to
    contents = summary.to_json()
    assert contents["density"] is contents["n_clusters"] is contents["clustering"] is None
    assert "joint" not in contents
    curve, shares = contents["distribution"]["age"], contents["distribution"]["hue"]
    assert curve["grid"] == PLACES.tolist()
    assert shares["categories"] == COLOURS.tolist()
    np.testing.assert_allclose(shares["mean"], [1 / 6, 2 / 6, 3 / 6], atol=0.02)  # Dirichlet(1, 2, 3)
    draws = everything(chains)["share"].reshape(-1, 3)
    np.testing.assert_array_equal(shares["lower"], np.quantile(draws, 0.25, axis=0))
    np.testing.assert_array_equal(shares["upper"], np.quantile(draws, 0.75, axis=0))
    json.dumps(contents, allow_nan=False)


def test_summary_files_text_and_report_hold_it(tmp_path: Path) -> None:
    summary = summarize_parametric(read(fit(tmp_path / "c.h5", Toy())), SummarySpec.model_validate({}))
    summary.write(tmp_path / "s.h5", {"level": summary.level})
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        assert set(tree.children) >= {"parameters", "distribution", "acceptance"}
        assert not {"density", "n_clusters", "clustering"} & set(tree.children)
        shares = tree["distribution/hue"].dataset
        assert shares["mean"].sel(category="grün").item() == summary.distributions["hue"].mean[1]
    text = summary.to_text()
    assert text.startswith("x1, x2, 5 records; 95% intervals in brackets\n  beta[0]")
    assert "\nCategories of hue, with 95% intervals: a/b 0." in text
    assert "Clusters" not in text and "beta[1]" in text and "Acceptance: 0." in text
    page = short_page(summary)
    # distribution, check, uncertainty, sensitivity, scalars, traces, provenance
    assert page.count("<h2>") == 7
    assert "Distribution of a record" in page and "number of clusters" not in page
    assert "probability[hue,a/b]" in page


def test_many_probabilities_are_a_distribution_and_few_scalars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpmix.report.page.MOST_TRACES", 4)
    colours = np.array([f"$c_{{{i}}}<b>" for i in range(200)])
    path = fit(tmp_path / "c.h5", Toy(coefficients=40, colours=colours), draws=50)
    summary = summarize_parametric(read(path), SummarySpec.model_validate({}))
    assert summary.distributions["hue"].mean.shape == (200,)
    named = [name for name in summary.parameters if name.startswith("probability")]
    assert len(named) == TOP_SHARES
    kept = {name.split("[hue,")[1][:-1] for name in named}
    means = dict(zip(colours.tolist(), summary.distributions["hue"].mean.tolist(), strict=True))
    assert min(means[name] for name in kept) >= max(v for k, v in means.items() if k not in kept)
    page = render(summary)
    assert page.count('aria-label="Trace of ') == 4
    assert "<b>" not in page.split("Traces and ranks")[1].split("<p", 1)[0]
    assert "the 30 most probable of 200 categories" in page


def test_a_chain_that_breaks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyChain, "broken", True)
    said = r"^chain 3 drew mu = nan within its first 300 sweeps; look for extreme released values"
    with pytest.raises(SamplerError, match=said):
        fit(tmp_path / "c.h5", Toy(), (3,), draws=100)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    path = fit(tmp_path / "c.h5", Toy())
    with h5py.File(path, "r+") as file:
        file["posterior/mu"][1, 7] = np.nan
    with pytest.raises(DataError, match="c.h5 holds a mu at draw 7 that is not finite"):
        summarize_parametric(read(path), SummarySpec.model_validate({}))
    with h5py.File(path, "r+") as file:
        spec = yaml.safe_load(file.attrs["spec"])
        spec["sampler"]["iterations"] = 10_000
        file.attrs["spec"] = yaml.safe_dump(spec)
    with pytest.raises(DataError, match="c.h5 is unfinished: it holds 900 of 4950 draws per chain"):
        read(path)


class Grouped(Toy):
    """The same of two groups, of which the second has its values moved by 1 and its colours reversed."""

    def __init__(self) -> None:
        super().__init__()
        self.parameters = (
            Parameter("mu", ("group",)),
            Parameter("F", ("group", "place"), role="curve", title="cdf"),
            Parameter("share", ("group", "colour"), role="shares", title="E[x]", column="hue"),
            Parameter("seen", ("group",), role="draw"),
        )
        self.coords = {**self.coords, "group": np.array(["w/o", "other"])}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> ToyChain:
        return GroupedChain(self, rng)


class GroupedChain(ToyChain):
    def record(self, row: int, out: Arrays) -> None:
        x = self.state["x"][0]
        for group in range(2):
            out["mu"][row, group] = x + group
            out["F"][row, group] = x + group >= PLACES
            weights = self.rng.gamma(np.arange(1.0, 1.0 + out["share"].shape[2]))[:: 1 - 2 * group]
            out["share"][row, group] = weights / weights.sum()
        out["seen"][row] = out["log_likelihood"][row] = 0.0


def test_groups_are_summarized_each_on_its_own(tmp_path: Path) -> None:
    chains = read(fit(tmp_path / "c.h5", Grouped()))
    summary = summarize_parametric(chains, SummarySpec.model_validate({}))
    groups = ("w/o", "other")
    assert list(summary.parameters) == [
        *(f"mu[{group}]" for group in groups),
        *(f"E[x][{group},hue,{colour}]" for group in groups for colour in COLOURS),
        "log_likelihood",
    ]
    draws = everything(chains)
    for number, group in enumerate(groups):
        for place, colour in enumerate(COLOURS):
            name = f"E[x][{group},hue,{colour}]"
            np.testing.assert_array_equal(summary.series[name], draws["share"][:, :, number, place])
    assert list(summary.distributions) == ["w/o", "other", "w/o,hue", "other,hue"]
    curve, hue = summary.distributions["other"], summary.distributions["other,hue"]
    np.testing.assert_allclose(curve.mean, draws["F"][:, :, 1].mean(axis=(0, 1)))
    np.testing.assert_allclose(hue.mean, draws["share"][:, :, 1].mean(axis=(0, 1)))
    assert (curve.about, hue.about) == (" in other", " of hue in other")
    assert list(summary.to_json()["distribution"]) == list(summary.distributions)
    assert "Categories of hue in other, with" in summary.to_text()
    page = short_page(summary)
    for about in (" in w/o", " in other", " of hue in w/o", " of hue in other"):
        assert f"{about} of a record. The band" in page
    summary.write(tmp_path / "s.h5", {"level": 0.95})
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        found = tree["distribution/w_o,hue"]["mean"].sel(category="red").item()
        assert found == summary.distributions["w/o,hue"].mean[0]


def test_parameters_are_checked() -> None:
    with pytest.raises(ValueError, match="unknown role"):
        Parameter("a", role="curves")
    with pytest.raises(ValueError, match="a curve has one dimension, not 0"):
        Parameter("a", role="curve")
    with pytest.raises(ValueError, match="a shares has one dimension, not 2"):
        Parameter("a", ("group", "b", "c"), role="shares")
