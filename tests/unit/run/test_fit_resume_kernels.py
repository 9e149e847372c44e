"""Chains with more state than allocations and parameters go on bit for bit: step sizes, bins, variances."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.errors import Interrupted
from dpmix.run.chains_reader import read_chains
from dpmix.run.runner import Stop
from dpmix.run.workspace import Workspace, workspace_of
from tests.helpers.fits import assert_same, combined_spec, release_by

SWEEPS = {"iterations": 44, "burn_in": 20, "thin": 3, "chains": 2}
CASES = {
    "step size of beta kernels": ("wavelet", "beta", "neal8"),
    "bins of a smoothed histogram": ("smoothed_histogram", "nig", "neal8"),
    "bins of noisy counts, step size": ("perturbed_histogram", "beta", "private_slice"),
    "variances of Laplace noise on pairs": ("laplace", "multivariate_normal", "neal8"),
    "splits and merges": ("gaussian", "truncated_nig", "split_merge"),
}


def _parts(case: tuple[str, str, str]) -> tuple[dict[str, Any], Any]:
    spec = combined_spec(*case)
    spec["sampler"] |= SWEEPS
    return spec, release_by(case[0], 15, 2 if case[1] == "multivariate_normal" else 1)


def _stopped_again_and_again(
    monkeypatch: pytest.MonkeyPatch, spec: Any, release: Any, output: Path
) -> list[dict[str, Any]]:
    """Run to the end, stopped after every few sweeps; return the state of chain 0 at each stop."""
    monkeypatch.setattr("dpmix.run.runner.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr("dpmix.run.runner.CHUNK_SECONDS", 0.0)  # one sweep at a time
    states: list[dict[str, Any]] = []
    stops: list[Stop] = []
    real = Workspace.add

    @contextlib.contextmanager
    def stoppable() -> Iterator[Stop]:
        stops.append(Stop())
        yield stops[-1]

    def add(self: Workspace, chain: int, draws: Any, snapshot: Any, seconds: float) -> None:
        real(self, chain, draws, snapshot, seconds)
        if chain == 0:
            states.append(dict(snapshot))
            if len(states) % 6 == 0:
                stops[-1].ask()

    with monkeypatch.context() as patch:
        patch.setattr("dpmix.api.fit.stop_on_signals", stoppable)
        patch.setattr(Workspace, "add", add)
        while not output.exists():
            with contextlib.suppress(Interrupted):
                dpmix.fit(spec, release, output, quiet=True, jobs=1, resume=bool(stops))
            assert len(stops) < 40
    assert len(stops) > 6
    return states


BINS, PAIRS = "bins of noisy counts, step size", "variances of Laplace noise on pairs"
REST = [pytest.param(name, marks=pytest.mark.matrix) for name in CASES if name not in (BINS, PAIRS)]


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("name", [BINS, PAIRS, *REST])
def test_a_chain_stopped_anywhere_goes_on_bit_for_bit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    spec, release = _parts(case)
    output, whole = tmp_path / "c.h5", tmp_path / "whole.h5"
    states = _stopped_again_and_again(monkeypatch, spec, release, output)
    dpmix.fit(spec, release, whole, quiet=True, jobs=2)
    assert_same(output, whole)
    assert not workspace_of(output).exists()
    if case[1] == "beta":  # the step moves while burning in, and only then
        steps = np.array([state["tuning"][0] for state in states])
        assert len(set(steps[: SWEEPS["burn_in"]])) > 5
        assert len(set(steps[SWEEPS["burn_in"] :])) == 1
    own = {name for name in states[0] if name.startswith("channel_")}
    assert bool(own) is (case[0].endswith("histogram") or case[1] == "multivariate_normal")
    for field in own:
        assert any((state[field] != states[0][field]).any() for state in states), field


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("name", [BINS, PAIRS])
def test_one_chain_a_process_gives_the_same_chains(name: str, tmp_path: Path) -> None:
    spec, release = _parts(CASES[name])
    whole, parts = tmp_path / "whole.h5", [tmp_path / "1.h5", tmp_path / "0.h5"]
    dpmix.fit(spec, release, whole, quiet=True, jobs=2)
    for part in parts:
        dpmix.fit(spec, release, part, quiet=True, chain_id=int(part.stem), jobs=1)
    merged, together = read_chains(parts), read_chains([whole])
    for scalar in ("ids", "n_clusters", "concentration", "observed"):
        np.testing.assert_array_equal(getattr(merged, scalar), getattr(together, scalar))
    for one, other in zip(merged.blocks(7), together.blocks(7), strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        for key, values in one.parameters.items():
            np.testing.assert_array_equal(values, other.parameters[key])
    assert dpmix.summarize(parts).to_json()["density"] == dpmix.summarize([whole]).to_json()["density"]
