"""The sampler on counts given a histogram: chains that go on, joint law, faults, fits, what is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmix
from dpmix.api.fit import plan
from dpmix.errors import SpecError
from dpmix.models.counts.cell_counts import couple
from dpmix.models.counts_mixture.model import CountsChain
from dpmix.run.chains_reader import read_chains
from dpmix.summary.summary_result import Summary
from tests.helpers import (
    counts,
    counts_faults,
    counts_histograms,
    counts_langevin,
    counts_light,
    counts_moves,
    scan_faults,
)
from tests.helpers.fits import combined_spec, release_by
from tests.helpers.pages import short_page
from tests.helpers.parametric import interpreted
from tests.helpers.specs import message
from tests.oracles.joint import Model
from tests.oracles.mc import batch_means

NOISY = Model(("counts", (6, "laplace", 3.0, -10.0, 20.0)), (0.0, 0.1, 3.0, 2.0), 0.0, (2.0, 2.0))
RELEASED = np.array([3.0, 14.5, 9.0, 22.0, -4.0, 1.0])


def make_chain(seed: int = 3, n: int = 50) -> CountsChain:
    return counts.histogram(NOISY, RELEASED, n).make_chain(np.random.default_rng(seed))


def run(until: list[int], restart: bool) -> dict[str, Any]:
    """Sweep in pieces, each in a new chain that goes on from a snapshot, or all in one."""
    chain = make_chain(n=5000)
    chain.keep(2, 41)
    parts = []
    for stop in until:
        chain.proceed(stop)
        parts.append(chain.take())
        if restart:
            snapshot = chain.snapshot()
            chain = make_chain(seed=99, n=5000)
            chain.restore(snapshot)
    names = [name for name in parts[0] if name != "first"]
    found = {name: np.concatenate([part[name][1] for part in parts], axis=-1) for name in names}
    return found | {"latent": chain.snapshot()["latent"]}


def test_chain_goes_on_bit_for_bit_however_it_is_cut() -> None:
    whole, pieces = run([301], False), run([7, 20, 40, 41, 42, 120, 301], True)
    for name, values in whole.items():
        assert np.array_equal(values, pieces[name], equal_nan=True), name
    assert len(whole["n_clusters"]) == 130 and whole["latent"].sum() == 5000


def draw_few() -> dict[str, Any]:
    """Run a chain short enough for the interpreter."""
    chain = make_chain()
    chain.keep(1, 10)
    chain.proceed(25)
    return {name: values for name, (_, values) in chain.take().items()} | {
        "latent": chain.snapshot()["latent"]
    }


def with_fault(fault: str) -> float:
    """Return what `tests.helpers.counts_faults` finds, in a process that reads the sources for itself."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.counts_faults", fault],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    return float(done.stdout)


def test_interpreter_gives_the_same_draws() -> None:
    found = interpreted(
        __name__, "{name: values.tolist() for name, values in draw_few().items()}", strict=True
    )
    for name, values in draw_few().items():
        assert np.array_equal(values, np.array(found[name]), equal_nan=True), name


@pytest.mark.parametrize(
    "model", [counts_histograms.MODEL, pytest.param(counts_histograms.DRAWN, marks=pytest.mark.matrix)]
)
def test_joint_law_is_invariant(model: Model) -> None:
    """About a dozen p-values each: one below 1e-5 by mistake with a probability of 1e-4."""
    assert counts_histograms.p_value(model, 1000, 6, 1) > 1e-5


@pytest.mark.matrix
@pytest.mark.parametrize("model", [counts_histograms.MODEL, counts_histograms.DRAWN])
def test_joint_law_is_invariant_where_counts_move_along(model: Model) -> None:
    assert counts_histograms.p_value_along(model, 1000, 6) > 1e-5


@pytest.mark.matrix
@pytest.mark.parametrize("fault", counts_faults.FAULTS)
def test_a_fault_that_is_planted_is_found(fault: str) -> None:
    assert with_fault(fault) < 1e-4


def test_a_learned_base_moves_by_its_own_prior_and_what_counts_say() -> None:
    """Each acceptance is that of the densities; with a fault planted, some is not by far."""
    assert interpreted("tests.helpers.counts_faults", "main(BY_RATIO)") < 1e-9
    assert with_fault(next(iter(counts_faults.OF_THE_BASE))) > 0.1


@pytest.mark.matrix
@pytest.mark.parametrize("fault", list(counts_faults.OF_THE_BASE)[1:])
def test_a_fault_of_a_learned_base_is_found(fault: str) -> None:
    assert with_fault(fault) > 0.1


@pytest.mark.parametrize(
    "faults",
    [
        counts_faults.FAULTS,
        counts_faults.OF_THE_BASE,
        counts_langevin.FAULTS,
        counts_light.FAULTS,
        {
            name: (f"models/counts_mixture/{fault[1]}.py", *fault[2:])
            for name, fault in counts_moves.FAULTS.items()
        },
        {name: ("samplers/scan.py", *fault) for name, fault in scan_faults.FAULTS.items()},
    ],
)
def test_what_is_planted_stands_in_the_source(faults: dict[str, tuple[str, str, str]]) -> None:
    """Most are planted at night: a line that has moved is found here."""
    for name, (path, old, new) in faults.items():
        text = (Path(dpmix.__file__).parent / path).read_text(encoding="utf-8")
        assert (name, text.count(old)) == (name, 1) and old != new


def test_records_follow_their_measure() -> None:
    """Counts of law Mult(n; p) become Mult(n; p'), and those that follow by half would not."""
    rng = np.random.default_rng(4)
    before, after = np.array([0.5, 0.1, 0.3, 0.1]), np.array([0.3, 0.3, 0.15, 0.25])
    moved, excess = np.zeros(4, dtype=np.int64), np.zeros(4)
    found = np.empty((4000, 4))
    for row in found:
        assert couple(rng, before, after, rng.multinomial(50, before), moved, excess)
        row[:] = moved
    assert np.all(found.sum(axis=1) == 50)
    error = np.sqrt(50 * after * (1.0 - after) / len(found))
    assert np.max(np.abs(found.mean(axis=0) - 50 * after) / error) < 4.5
    assert np.cov(found.T) == pytest.approx(50 * (np.diag(after) - np.outer(after, after)), abs=0.9)


@pytest.mark.matrix
def test_one_bin_says_nothing() -> None:
    """The posterior of the number of clusters of five records is the prior's."""
    model = Model(("counts", (1, "laplace", 1.0, -1.0, 3.0)), (0.3, 0.25, 2.5, 1.5), 0.0, 1.0)
    chain = counts.histogram(model, np.array([3.7]), 5).make_chain(np.random.default_rng(1))
    chain.keep(1, 100)
    chain.proceed(20_100)
    found = chain.take()["n_clusters"][1]
    exact = np.array([24.0, 50.0, 35.0, 10.0, 1.0]) / 120.0  # Stirling numbers over 5!
    mean, error = batch_means(found[:, None] == np.arange(1, 6), 100)
    assert np.all(np.abs(mean - exact) < 4.5 * error + 1e-3)


@pytest.mark.parametrize("mechanism", ["smoothed_histogram", "perturbed_histogram"])
@pytest.mark.parametrize("model", ["nig", "beta"])
def test_what_it_goes_with_is_planned(mechanism: str, model: str) -> None:
    spec = combined_spec(mechanism, model, "counts", "exact")
    assert "sweeps of counts" in plan(spec, release_by(mechanism))
    refused = {
        "sampler.width": (spec["sampler"], {"width": 0.5}, f"0.5 is not for {mechanism}"),
        "sampler.subsample": (spec["sampler"], {"subsample": 5}, "allocations say nothing here"),
        "model.discount": (spec["model"], {"discount": 0.2}, "0.2 is not for counts"),
    }
    for key, (section, change, text) in refused.items():
        section.update(change)
        assert message(source=spec).startswith(f"{key}: {text}")
        section.pop(next(iter(change)))


def test_groups_are_refused_by_name() -> None:
    spec = combined_spec("perturbed_histogram", "nig", "counts", "exact")
    spec["release"] = {"path": "x.csv", "group": "sex", "categories": {"sex": ["f", "m"]}}
    spec["mechanism"]["n"] = 100
    text = message(source=spec)
    assert text.startswith("sampler.kind: counts is for the histogram of one group"), text


@pytest.mark.parametrize(
    "mechanism", ["perturbed_histogram", pytest.param("smoothed_histogram", marks=pytest.mark.matrix)]
)
def test_a_fit_is_summarized(mechanism: str, tmp_path: Path) -> None:
    spec = combined_spec(mechanism, "nig", "counts", "exact")
    spec["sampler"] |= {"iterations": 400, "burn_in": 100, "chains": 2}
    dpmix.fit(spec, release_by(mechanism, n=100), tmp_path / "chains.h5", quiet=True)
    summary = dpmix.summarize(tmp_path / "chains.h5")
    assert isinstance(summary, Summary)
    assert "Density of a record" in short_page(summary)
    found = json.loads(json.dumps(summary.to_json()))
    assert found["check"]["statistic"] is not None
    assert found["information_kept"]["width"] == 0.0 and found["information_kept"]["left_over"] < 1e-3
    assert found["beyond_bounds"] >= 0.0
    assert found["parameters"]["mean"]["contraction"] is not None
    assert found["clusters_by_value"]["released"] is None and found["clustering"] is None
    assert len(found["clusters_by_value"]["latent"]["low"]) == 4
    assert "lose nothing of the release" in summary.to_text()


def test_a_billion_records_are_fitted_on_counts_and_on_nothing_else(tmp_path: Path) -> None:
    """Of a histogram made elsewhere; a record of all would take more memory than there is."""
    edges, n = np.linspace(0.0, 100.0, 17), 1_000_000_000
    counts = np.diff(np.round(n * stats.norm.cdf(edges, 45.0, 12.0)), prepend=0.0, append=n)
    counts = np.r_[counts[0] + counts[1], counts[2:-2], counts[-2] + counts[-1]].astype(int)
    (tmp_path / "z.csv").write_text("\n".join(["count", *map(str, counts)]) + "\n")
    spec = combined_spec("perturbed_histogram", "nig", "counts", "exact")
    spec.pop("data", None)
    spec["release"] = {"path": str(tmp_path / "z.csv")}
    spec["mechanism"] |= {"n": n, "bins": 16, "domain": [0.0, 100.0]}
    spec["model"]["base"] = {"kind": "nig", "mu0": 50.0, "lambda": 0.1, "a": 3.0, "b": 200.0}
    spec["sampler"] = {"iterations": 400, "burn_in": 200, "chains": 1, "seed": 1}  # auto is the default
    dpmix.fit(spec, None, tmp_path / "c.h5", quiet=True)
    assert read_chains([tmp_path / "c.h5"]).stated("sampler")["kind"] == "counts"
    summary = dpmix.summarize(tmp_path / "c.h5")
    assert summary.n == n
    assert summary.parameters["mean"].mean == pytest.approx(45.0, abs=0.01)
    assert summary.parameters["sd"].mean == pytest.approx(12.0, abs=0.02)
    spec["sampler"] = {"kind": "neal8", "iterations": 400, "burn_in": 200, "chains": 1, "seed": 1}
    why = f"sampler.kind: neal8 moves each of {n} records, and 100000000 is the most; use counts"
    assert message(source=spec) == why
    stated = dataclasses.replace(release_by("perturbed_histogram"), n=n)  # which the spec does not know of
    own = combined_spec("perturbed_histogram", "nig", "neal8")
    with pytest.raises(SpecError, match=why):
        dpmix.fit(own, stated, tmp_path / "d.h5", quiet=True)
    assert not (tmp_path / "d.h5").exists()
    spec["mechanism"]["n"] = 2_000_000_001
    assert message(source=spec) == "mechanism.n: 2000000001 must be at most 2000000000"
