"""Allocations of a subsample of the records, for data too large to keep them all."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import h5py
import numpy as np
import pytest

import dpmix
from dpmix.errors import DataError
from dpmix.run.chains_reader import Chains, read_chains
from dpmix.samplers import chain
from dpmix.store.h5 import create, reading
from dpmix.summary.clustering import cluster
from tests.helpers.fits import small_release, small_spec
from tests.helpers.pages import short_page
from tests.helpers.specs import message

N, KEPT = 40, 12
summarizing: Any = import_module("dpmix.api.summarize")


def fitted(folder: Path, name: str, **sampler: object) -> Path:
    path = folder / name
    dpmix.fit(small_spec(**sampler), small_release(N), path, quiet=True, jobs=1)
    return path


def read(path: Path) -> Chains:
    found = read_chains([path])
    assert isinstance(found, Chains)
    return found


def test_a_subsample_has_the_allocations_of_the_whole(tmp_path: Path) -> None:
    whole, part = fitted(tmp_path, "a.h5"), fitted(tmp_path, "b.h5", subsample=KEPT)
    kept = read(part).kept
    assert kept.size == KEPT
    assert (np.diff(kept) > 0).all()
    assert 0 <= kept[0] <= kept[-1] < N
    with reading(whole) as one, reading(part) as other:
        everything = one.group("posterior")["allocations"][()]
        some = other.group("posterior")["allocations"][()]
        np.testing.assert_array_equal(some, everything[:, :, kept])
        for name in ("n_clusters", "weights", "mean"):  # what is kept changes no draw
            np.testing.assert_array_equal(
                one.group("posterior")[name][()], other.group("posterior")[name][()]
            )
    assert read(whole).kept.size == N
    enough = fitted(tmp_path, "c.h5", subsample=N + 1)
    assert read(enough).kept.size == N


def test_the_subsample_is_the_same_whatever_the_seed_and_the_process(tmp_path: Path) -> None:
    spec = small_spec(subsample=KEPT)
    files = [tmp_path / f"{i}.h5" for i in range(2)]
    for i, path in enumerate(files):
        dpmix.fit(spec, small_release(N), path, chain_id=i, quiet=True)
    merged = read_chains(files)
    assert isinstance(merged, Chains)
    np.testing.assert_array_equal(merged.kept, read(fitted(tmp_path, "w.h5", subsample=KEPT, seed=8)).kept)
    with h5py.File(files[1], "r+") as file:
        file["posterior/obs"][-1] += 1
    with pytest.raises(DataError, match="differs from .* in the records of its allocations"):
        read_chains(files)


def test_clusters_of_a_subsample(tmp_path: Path) -> None:
    chains = read(fitted(tmp_path, "b.h5", subsample=KEPT))
    truth = np.arange(N) % 2
    found = cluster(chains, "vi", 0.95, np.random.default_rng(1), truth=truth)
    assert found is not None
    assert found.estimate.labels.shape == (KEPT,)
    together = np.concatenate(list(chains.allocations(np.arange(chains.draws))))
    share = (together[:, :, None] == together[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(found.similarity, share, atol=1e-6)
    with pytest.raises(DataError, match="there are 12 true labels for 40 records"):
        cluster(chains, "vi", 0.95, np.random.default_rng(1), truth=truth[:KEPT])


def test_what_a_summary_says_of_it(tmp_path: Path) -> None:
    summary = dpmix.summarize(fitted(tmp_path, "b.h5", subsample=KEPT), output=tmp_path / "summary.h5")
    assert "of a subsample of 12 of the 40 records" in " ".join(summary.to_text().split())
    found = json.loads(json.dumps(summary.to_json()))["clustering"]
    assert len(found["subsample"]) == len(found["estimate"]) == KEPT
    with reading(tmp_path / "summary.h5") as root:
        np.testing.assert_array_equal(root.group("clustering")["obs"][()], found["subsample"])
    assert "of 12 of the 40 records, picked at random" in short_page(summary)
    every = dpmix.summarize(fitted(tmp_path, "a.h5"))
    assert every.to_json()["clustering"]["subsample"] is None
    assert "subsample" not in every.to_text()


def test_true_labels_are_drawn_for_allocations_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int, int]] = []
    monkeypatch.setattr(summarizing, "true_labels", lambda *given: calls.append(given))
    spec = {"data": {"simulate": "three_gaussians", "n": N, "seed": 1}}
    for kept in (np.empty(0), np.arange(3)):
        summarizing._true_labels(
            cast(
                Chains,
                SimpleNamespace(
                    kept=kept,
                    n=N,
                    spec=spec,
                    stated=lambda name: spec.get(name, {}),
                    attrs={"simulated": True},
                ),
            )
        )
    assert calls == [("three_gaussians", N, 1)]


def test_starting_allocations_are_made_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "_PIECE", 7)
    rng = np.random.default_rng(1)
    for _ in range(200):
        values = rng.normal(size=int(rng.integers(1, 40))).round(1)
        cuts = np.sort(rng.choice(values, int(rng.integers(0, 6))))
        found = chain._parts(values, cuts)
        np.testing.assert_array_equal(found, np.unique(np.searchsorted(cuts, values), return_inverse=True)[1])
        assert found.dtype == np.int32
        np.testing.assert_array_equal(chain._counts(found, 50), np.bincount(found, minlength=50))


def test_places_of_many_records_take_half_the_room(tmp_path: Path) -> None:
    n = 2**16 + 1
    with create(tmp_path / "a.h5") as root:
        root.coordinate("obs", n)
        root.coordinate("few", n - 1)
    with reading(tmp_path / "a.h5") as root:
        assert (root["obs"][()].dtype, root["few"][()].dtype) == (np.int32, np.int64)
        np.testing.assert_array_equal(root["obs"][()], np.arange(n))


def test_where_there_is_nothing_to_keep_a_subsample_of() -> None:
    assert message("sampler.subsample=5", "sampler.store=[]").startswith(
        "sampler.subsample: is of allocations"
    )
    assert message("sampler.subsample=1") == "sampler.subsample: 1 must be at least 2"
    discrete = {"model": {"kind": "discrete"}, "sampler": {"subsample": 5}}
    assert message(source=discrete) == "sampler.subsample: discrete has no allocations; leave it out"
