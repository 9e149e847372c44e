"""Clusters by value of fits on counts: against enumeration, all partitions, and closed forms."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import stats

import dpmix
from dpmix.release.sanitized import Release
from dpmix.release.tallies import edges_of
from dpmix.report.plots import cluster_pictures
from dpmix.results.result import plain
from dpmix.run.chains_reader import Chains, read_chains
from dpmix.run.kept_quantities import subsample_of
from dpmix.summary import clusters_by_value as module
from dpmix.summary.clusters_by_value import (
    clusters_by_value,
    partition_of_cells,
    subsample_labels,
    with_records,
)
from dpmix.summary.random_measures import Measures
from tests.helpers import counts
from tests.helpers.pages import undrawn
from tests.oracles import cases
from tests.oracles.joint import Model
from tests.oracles.partitions import posterior, set_partitions

SCALE, LO, HI, WIDTH = 0.7, -4.0, 5.0, 3.0
BASE = (0.0, 0.2, 3.0, 10.0)  # a standard deviation that is not near its square


def spec(**sampler: Any) -> dict[str, Any]:
    base = dict(zip(("mu0", "lambda", "a", "b"), BASE, strict=True))
    drawn = {"kind": "counts", "width": WIDTH, "iterations": 6_500, "burn_in": 500, "thin": 3, "seed": 11}
    return {
        "mechanism": {"kind": "laplace", "scale": SCALE, "domain": [LO, HI]},
        "model": {"kind": "mixture", "base": base, "concentration": 1.0},
        "sampler": drawn | {"chains": 2, "subsample": len(cases.Z)} | sampler,
    }


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chains given six records in coarse cells."""
    path = tmp_path_factory.mktemp("by_value") / "chains.h5"
    law = {"kind": "laplace", "scale": [SCALE], "domain": [[LO, HI]]}
    law |= {"calibration": "exact", "requested": {"scale": SCALE}}
    eps = (HI - LO) / SCALE
    release = Release(cases.Z[:, None], ("x",), law, eps, 0.0, None, len(cases.Z))
    dpmix.fit(spec(), release, path, quiet=True)
    return path


def read(path: Path) -> Chains:
    found = read_chains([str(path)])
    assert isinstance(found, Chains)
    return found


def test_coclustering_is_that_of_the_posterior_partition(
    fitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of records in cells, from probabilities and from drawn allocations, against all partitions of six."""
    edges = edges_of("laplace", SCALE, LO, HI, WIDTH, bounded=False)
    where = np.searchsorted(edges, cases.Z, side="right")
    table = counts.table(Model(("laplace", SCALE), BASE, 0.0, 1.0), edges, where, cases.GRID)
    exact = posterior(table, 0.0, 1.0).cocluster
    apart = ~np.eye(len(cases.Z), dtype=bool)
    chains = read(fitted)
    monkeypatch.setattr(module, "MOST_DRAWS", 4_000)
    found = clusters_by_value(chains, 0.9, coclustering=True)
    assert found is not None and found.released is not None and found.released.coclustering is not None
    assert np.array_equal(found.released.high[:-1], edges)
    assert np.max(np.abs(found.released.coclustering[np.ix_(where, where)] - exact)[apart]) < 0.02
    labels = subsample_labels(chains, np.arange(len(cases.Z)), 4_000)
    together = np.mean(labels[:, :, None] == labels[:, None], axis=0)
    assert len(labels) == 4_000
    assert np.max(np.abs(together - exact)[apart]) < 0.03
    assert np.ptp(exact[apart]) > 0.1


def test_summary_report_and_file_have_them(fitted: Path, tmp_path: Path) -> None:
    asked = ["summary.coclustering=true"]
    with undrawn():
        summary = dpmix.summarize(
            fitted, output=tmp_path / "s.h5", report=tmp_path / "r.html", overrides=asked
        )
    content = json.loads(json.dumps(summary.to_json()))
    found = content["clusters_by_value"]
    assert np.allclose(np.sum(found["latent"]["mean"], axis=0), 1.0)
    assert np.allclose(np.sum(found["released"]["mean"], axis=0), 1.0)
    assert found["latent"]["low"][0] is None and found["released"]["high"][-1] is None
    assert len(found["estimate"]) == len(found["latent"]["coclustering"])
    assert sum(found["share"]["mean"]) == pytest.approx(1.0)
    clustering = content["clustering"]
    assert len(clustering["estimate"]) == 6 and clustering["subsample"] is None
    assert "By value: " in summary.to_text()
    assert "Clusters by value" in (tmp_path / "r.html").read_text()


def test_subsample_of_simulated_records_is_compared_with_the_truth(tmp_path: Path) -> None:
    wanted = spec(iterations=300, burn_in=100, thin=1, subsample=20, width="auto")
    wanted["data"] = {"simulate": "three_gaussians", "n": 60, "seed": 5, "domain": [-10, 10]}
    wanted["mechanism"] = {"kind": "laplace", "epsilon": 200.0}
    release = dpmix.privatize(wanted, quiet=True)
    dpmix.fit(wanted, release, tmp_path / "c.h5", quiet=True)
    clustering = dpmix.summarize(tmp_path / "c.h5").clustering
    assert clustering is not None
    assert np.array_equal(clustering.kept, subsample_of(60, 20)) and clustering.records == 60
    assert clustering.estimate.ari is not None and clustering.estimate.ari > 0.5


def test_names_do_not_depend_on_numbering(
    fitted: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two components in either order, and once split in two: shares and probabilities in closed form.

    The file is of a fit given noise, and says that there was none.
    """
    shutil.copy(fitted, tmp_path / "c.h5")
    with h5py.File(tmp_path / "c.h5", "r+") as file:
        file.attrs["mechanism"] = json.dumps({"kind": "none", "domain": [[-10.0, 10.0]]})
    states = [
        ([0.7, 0.3], [3.0, -3.0], [1.0, 2.0]),
        ([0.3, 0.7], [-3.0, 3.0], [2.0, 1.0]),
        ([0.3, 0.35, 0.35], [-3.0, 3.0, 3.0], [2.0, 1.0, 1.0]),
    ]

    def given(*_: Any) -> Any:
        for number, (w, mean, sd) in enumerate(states):
            size, atoms = np.array([len(w)]), np.array([mean, sd])
            yield 0, number, Measures(size, np.array(w), atoms, np.zeros(1))

    monkeypatch.setattr(module, "_states", given)
    found = clusters_by_value(read(tmp_path / "c.h5"), 0.95)
    assert found is not None and found.released is None
    assert np.allclose([found.share, found.share_lower, found.share_upper], [0.7, 0.3])
    low, high = found.latent.low, found.latent.high
    masses = [
        w * np.diff(stats.norm.cdf(np.stack([low, high]), m, s), axis=0)[0]
        for w, m, s in ((0.7, 3.0, 1.0), (0.3, -3.0, 2.0))
    ]
    exact = masses[0] / (masses[0] + masses[1])
    some = masses[0] + masses[1] > 1e-9
    for curve in (found.latent.mean, found.latent.lower, found.latent.upper):
        assert np.allclose(curve[0][some], exact[some], atol=1e-6)
    # a boundary where the heavier takes over
    assert abs(found.spans()[0][0] - low[np.flatnonzero(exact > 0.5)[0]]) < 2.0
    assert found.in_words().startswith("2 clusters, with their shares of the records: 1: from ")
    # of one narrow cluster every value that any draw has belongs to it, and of others nothing is said
    states[:] = [([1.0], [3.0], [sd]) for sd in (0.01, 0.02, 0.5)]
    found = clusters_by_value(read(tmp_path / "c.h5"), 0.95, coclustering=True)
    assert found is not None and found.latent.coclustering is not None
    assert found.in_words() == "1 cluster, with its share of the records: 1: all values, 100% (100 to 100)."
    told = np.isfinite(found.latent.mean[0])
    assert told[np.searchsorted(high, 3.0)] and not told[[0, -1]].any()
    for curve in (found.latent.mean, found.latent.lower, found.latent.upper):
        assert np.all(curve[0][told] == 1.0) and np.isnan(curve[0][~told]).all()
    assert np.allclose(np.diag(found.latent.coclustering)[told], 1.0)
    content = plain(found.section().data)
    assert content["latent"]["mean"][0][0] is None and 1.0 in content["latent"]["mean"][0]
    (picture,) = cluster_pictures(found, "x")
    assert "There is no line where no draw has records." in picture


def test_clusters_without_a_record_are_none() -> None:
    labels, records = np.array([2, 0, 0, 3, 1, 1, 2]), np.array([0.01, 60.0, 30.0, 0.3, 9.0, 0.2, 0.04])
    assert with_records(labels, records).tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert with_records(labels, 100.0 * records).tolist() == labels.tolist()
    assert with_records(labels, 1e-3 * records).tolist() == labels.tolist()


def test_partition_of_cells_is_the_best_of_all() -> None:
    """Against all 203 partitions of six cells."""
    rng = np.random.default_rng(8)
    every = []
    for part in set_partitions(6):
        labels = np.empty(6, dtype=np.int64)
        for name, block in enumerate(part):
            labels[list(block)] = name
        every.append(labels)
    for _ in range(25):
        share = rng.dirichlet(np.full(3, 0.3), (8, 6))
        together = np.einsum("dch,dkh->ck", share, share) / 8
        mass = rng.dirichlet(np.ones(6))
        best = min(module.expected_loss(together, mass, labels) for labels in every)
        found = partition_of_cells(together, mass)
        assert module.expected_loss(together, mass, found) == pytest.approx(best, abs=1e-9)
        weights = np.bincount(found, mass)
        assert np.all(np.diff(weights) <= 0.0)
