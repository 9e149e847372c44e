"""Point estimates of the partition, credible balls and similarity, against enumeration and known values."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest
import xarray

import dpmix
from dpmix.data.simulations import true_labels
from dpmix.errors import DataError
from dpmix.numerics import partitions
from dpmix.run.chains_reader import read_chains
from dpmix.spec.summary_section import SummarySpec
from dpmix.summary import clustering
from dpmix.summary.clustering import LOSSES, by_size, credible_ball, describe, minimise
from dpmix.summary.summary_of_chains import summarize_chains
from tests.helpers.chains_files import a_spec, states_of_mixture, write_chains


def all_partitions(n: int) -> list[tuple[int, ...]]:
    """Every partition of n records, as labels by first appearance."""
    found = [(0,)]
    for _ in range(n - 1):
        found = [(*p, label) for p in found for label in range(max(p) + 2)]
    return found


def vi(first, second) -> float:
    """Variation of information in nats, as H(A) + H(B) - 2 I(A, B)."""
    n, total = len(first), 0.0
    for labels, sign in ((list(zip(first, second, strict=True)), 2.0), (first, -1.0), (second, -1.0)):
        for value in set(labels):
            share = list(labels).count(value) / n
            total -= sign * share * math.log(share)
    return total


def binder(first, second) -> float:
    """Share of pairs that are together in one and apart in the other."""
    pairs = list(combinations(range(len(first)), 2))
    return sum((first[i] == first[j]) != (second[i] == second[j]) for i, j in pairs) / len(pairs)


def drawn(rng: np.random.Generator, draws: int, n: int, spread: float) -> np.ndarray:
    """Partitions scattered about a random one: records change their label with probability `spread`."""
    centre = rng.integers(0, 3, n)
    return np.where(rng.random((draws, n)) < spread, rng.integers(0, n, (draws, n)), centre)


def both(labels: np.ndarray):
    """The two arrays of draws that everything takes."""
    return partitions.compact(np.asarray(labels, dtype=np.int64))


def similarity_of(compacted: np.ndarray) -> np.ndarray:
    return partitions.similarity(np.ascontiguousarray(compacted.T))


def test_enumeration_counts_bell_numbers():
    assert [len(all_partitions(n)) for n in (1, 2, 3, 4, 5, 6)] == [1, 2, 5, 15, 52, 203]


@pytest.mark.parametrize("case", range(12))
@pytest.mark.parametrize("loss", LOSSES)
def test_the_estimate_has_the_least_expected_loss_of_all_partitions(loss, case):
    rng = np.random.default_rng([1, case])
    n = int(rng.integers(2, 7))
    draws = drawn(rng, int(rng.integers(1, 40)), n, float(rng.choice([0.1, 0.5, 1.0])))
    labels, counts = both(draws)
    found = minimise(loss, labels, counts, similarity_of(labels), rng)
    measure = {"vi": vi, "binder": binder}[loss]
    expected = [np.mean([measure(p, d) for d in draws.tolist()]) for p in all_partitions(n)]
    estimate = describe(loss, found, labels, counts, 0.95, None)
    assert estimate.expected_loss == pytest.approx(min(expected), abs=1e-12)
    assert estimate.n_clusters == len(set(found.tolist()))


def test_losses_are_those_of_their_definitions():
    rng = np.random.default_rng(2)
    draws = drawn(rng, 30, 6, 0.6)
    labels, counts = both(draws)
    for p in all_partitions(6)[::7]:
        found = partitions.losses(np.asarray(p, dtype=np.int32), max(p) + 1, labels, counts)
        assert found[0] == pytest.approx([vi(p, d) for d in draws.tolist()], abs=1e-12)
        assert found[1] == pytest.approx([binder(p, d) for d in draws.tolist()], abs=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),
        ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),
        ([0, 0, 1, 2], [0, 0, 1, 1], 4 / 7),
        ([0, 0, 1, 1], [0, 0, 1, 2], 4 / 7),
        ([0, 0, 0, 0], [0, 1, 2, 3], 0.0),
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0),
        ([0, 1, 2, 3], [3, 2, 1, 0], 1.0),
        ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], 8 / 33),
    ],
)
def test_adjusted_rand_index_of_known_cases(first, second, value):
    labels, counts = both(np.array([first, second]))
    assert partitions.losses(labels[0], int(counts[0]), labels, counts)[2, 1] == pytest.approx(value)


def test_one_record():
    labels, counts = both(np.zeros((3, 1)))
    for loss in LOSSES:
        found = minimise(loss, labels, counts, similarity_of(labels), np.random.default_rng(0))
        estimate = describe(loss, found, labels, counts, 0.95, (labels[:1], counts[:1]))
        assert (estimate.n_clusters, estimate.expected_loss, estimate.ari) == (1, 0.0, 1.0)


def test_similarity_is_the_share_of_draws_together():
    rng = np.random.default_rng(3)
    draws = drawn(rng, 17, 9, 0.7)
    labels, _ = both(draws)
    exact = (draws[:, :, None] == draws[:, None, :]).mean(axis=0)
    assert similarity_of(labels) == pytest.approx(exact, abs=1e-6)


def test_compact_numbers_labels_by_first_appearance():
    labels, counts = both(np.array([[7, 3, 7, 0], [1, 1, 1, 1]]))
    assert labels.tolist() == [[0, 1, 0, 2], [0, 0, 0, 0]]
    assert counts.tolist() == [3, 1]


def test_estimates_are_numbered_by_falling_size():
    assert by_size(np.array([0, 1, 1, 2, 2, 2], dtype=np.int32)).tolist() == [2, 1, 1, 0, 0, 0]
    assert by_size(np.array([0, 1, 0, 1], dtype=np.int32)).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_credible_ball_by_going_through_all_draws(loss, level):
    rng = np.random.default_rng(4)
    draws = drawn(rng, 60, 6, 0.4)
    labels, counts = both(draws)
    centre = minimise(loss, labels, counts, similarity_of(labels), rng)
    ball = describe(loss, centre, labels, counts, level, None).ball
    measure = {"vi": vi, "binder": binder}[loss]
    distance = np.array([measure(centre.tolist(), d) for d in draws.tolist()])
    sizes = np.array([len(set(d)) for d in draws.tolist()])
    # the smallest radius of those that occur whose ball holds enough
    radius = min(r for r in distance if np.mean(distance <= r + 1e-12) >= level - 1e-12)
    inside = distance <= radius + 1e-12
    assert ball.radius == pytest.approx(radius, abs=1e-12)
    assert ball.probability == pytest.approx(inside.mean())
    for bound, wanted in (
        (ball.vertical_upper, sizes[inside].min()),
        (ball.vertical_lower, sizes[inside].max()),
    ):
        assert bound.n_clusters == wanted == bound.labels.max() + 1
        assert bound.distance == pytest.approx(distance[inside & (sizes == wanted)].max(), abs=1e-12)
    assert ball.horizontal.distance == pytest.approx(distance[inside].max(), abs=1e-12)


def test_a_ball_of_equal_draws_has_no_radius():
    labels, counts = both(np.tile([0, 0, 1], (10, 1)))
    ball = credible_ball(np.zeros(10), labels, counts, 0.95)
    assert (ball.radius, ball.probability) == (0.0, 1.0)
    assert ball.vertical_upper.n_clusters == ball.vertical_lower.n_clusters == 2


def blocks(rng: np.random.Generator, draws: int, n: int, k: int, moved: float):
    """Draws about k equal clusters, and those clusters."""
    centre = np.arange(n) % k
    labels = np.where(rng.random((draws, n)) < moved, rng.integers(0, k, (draws, n)), centre)
    return np.stack([rng.permutation(k)[row] for row in labels]), centre


@pytest.mark.parametrize("loss", LOSSES)
def test_many_records_are_put_back_where_they_mostly_are(loss):
    rng = np.random.default_rng(5)
    draws, centre = blocks(rng, 300, 200, 8, 0.2)
    labels, counts = both(draws)
    found = minimise(loss, labels, counts, similarity_of(labels), rng)
    estimate = describe(loss, found, labels, counts, 0.95, both(centre[None, :]))
    assert estimate.ari == pytest.approx(1.0)
    exact = np.mean([vi(centre.tolist(), d) for d in draws[:20].tolist()])
    assert estimate.expected_loss == pytest.approx(exact, rel=0.1) or loss == "binder"


@pytest.mark.parametrize("loss", LOSSES)
def test_the_search_does_not_depend_on_the_draws_it_starts_from(loss, monkeypatch):
    """With no draw near the best partition, random orders find it all the same."""
    rng = np.random.default_rng(6)
    draws, centre = blocks(rng, 100, 120, 4, 0.5)
    labels, counts = both(draws)
    at = np.ascontiguousarray((labels * 100 + np.arange(100, dtype=np.int32)[:, None]).T)
    similar = similarity_of(labels)
    tables = {
        "vi": (at, int(counts.max()) * 100, np.empty((0, 0), dtype=np.float32)),
        "binder": (np.empty((120, 0), dtype=np.int32), 0, 1.0 - 2.0 * similar),
    }[loss]
    start = np.full(120, -1, dtype=np.int32)
    found = [partitions.search(start, *tables, 14, 20, 5, np.random.default_rng(k)) for k in range(3)]
    best = minimise(loss, labels, counts, similar, rng)
    row = LOSSES.index(loss)
    least = partitions.losses(best, int(best.max()) + 1, labels, counts)[row].mean()
    means = [partitions.losses(p, int(p.max()) + 1, labels, counts)[row].mean() for p in found]
    assert min(means) == pytest.approx(least, rel=1e-3)
    assert least <= min(means) + 1e-12
    assert least < partitions.losses(labels[0], int(counts[0]), labels, counts)[row].mean()


N = 60


def chain_with_allocations(rng: np.random.Generator, draws: int, truth: np.ndarray) -> dict[str, np.ndarray]:
    states = states_of_mixture(draws, rng, n=N, extra=0.0)
    noise = rng.random((draws, N)) < 0.1
    return states | {"allocations": np.where(noise, rng.integers(0, 3, (draws, N)), truth)}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    rng = np.random.default_rng(7)
    truth = true_labels("three_gaussians", N, 11)
    spec = a_spec(sampler__iterations=1200, data__simulate="three_gaussians", data__n=N, data__seed=11)
    z = 5.0 * truth - 5.0 + rng.laplace(0.0, 1.0, N)
    return write_chains(
        tmp_path_factory.mktemp("c") / "c.h5",
        [chain_with_allocations(rng, 200, truth) for _ in range(2)],
        spec=spec,
        observed=z,
        attrs={"simulated": True, "private": False},
    )


def test_in_json_text_and_hdf5(simulated, tmp_path):
    summary = dpmix.summarize(simulated, tmp_path / "s.h5", overrides=["summary.coclustering=true"])
    found = json.loads(json.dumps(summary.to_json(), allow_nan=False))["clustering"]
    assert (found["loss"], found["other"]["loss"]) == ("vi", "binder")
    assert (found["n_clusters"], found["ari"], found["draws"]) == (3, 1.0, 400)
    assert found["ari_posterior_mean"] == pytest.approx(found["expected_ari"])
    assert len(found["estimate"]) == N
    assert set(found["credible_ball"]) == {
        "level", "probability", "radius", "vertical_upper", "vertical_lower", "horizontal"
    }  # fmt: skip
    matrix = np.array(found["coclustering"])
    assert matrix.shape == (N, N)
    assert (np.diag(matrix) == 1.0).all()
    assert "Partition: 3 clusters with the least expected variation of information" in summary.to_text()
    text, ball = " ".join(summary.to_text().split()), found["credible_ball"]
    assert "ARI with the true labels 1.00" in text
    few, many = (ball[name]["n_clusters"] for name in ("vertical_upper", "vertical_lower"))
    ends = f"{few} clusters" if few == many else f"{few} to {many} clusters"
    assert f"holds draws of {ends}; " in text  # beside the estimate
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        group = tree["clustering"]
        assert group["estimate"].values.tolist() == found["estimate"]
        assert group["coclustering"].values == pytest.approx(matrix)
        assert group.attrs["loss"] == "vi"
        assert float(group["ari"]) == 1.0
        assert float(group["credible_ball"]["radius"]) == found["credible_ball"]["radius"]
        assert group["credible_ball"]["bound"].values.tolist()[0] == "vertical_upper"
        assert tree["clustering/other"].attrs["loss"] == "binder"


def test_the_other_loss_first_when_asked(simulated):
    first, other = (
        dpmix.summarize(simulated),
        dpmix.summarize(simulated, overrides=["summary.clustering=binder"]),
    )
    one, two = first.to_json()["clustering"], other.to_json()["clustering"]
    assert two["loss"] == "binder"
    assert two["estimate"] == one["other"]["estimate"]
    assert two["other"]["expected_loss"] == one["expected_loss"]
    assert "coclustering" not in one


def test_labels_of_other_data_are_not_taken_for_the_truth(simulated, tmp_path):
    rng = np.random.default_rng(8)
    for name, changes, attrs in (
        ("seedless", {"data__seed": None}, {"simulated": True}),
        ("real", {"data__seed": 11}, {"simulated": False}),
        ("longer", {"data__n": N + 1, "data__seed": 11}, {"simulated": True}),
    ):
        spec = a_spec(sampler__iterations=1020, data__simulate="three_gaussians", data__n=N)
        for key, value in changes.items():
            section, leaf = key.split("__")
            spec[section].pop(leaf, None) if value is None else spec[section].update({leaf: value})
        states = [chain_with_allocations(rng, 20, np.arange(N) % 3) for _ in range(2)]
        path = write_chains(
            tmp_path / f"{name}.h5", states, spec=spec, observed=np.linspace(-9, 9, N), attrs=attrs
        )
        found = dpmix.summarize(path).to_json()["clustering"]
        assert (found["ari"], found["ari_posterior_mean"]) == (None, None), name


def test_none_without_allocations(tmp_path):
    states = [states_of_mixture(20, np.random.default_rng(9)) for _ in range(2)]
    path = write_chains(tmp_path / "c.h5", states, spec=a_spec(sampler__iterations=1020))
    summary = dpmix.summarize(path, tmp_path / "s.h5")
    assert summary.to_json()["clustering"] is None
    assert "Partition" not in summary.to_text()
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        assert "clustering" not in tree


def test_draws_are_thinned_evenly_and_said(simulated, monkeypatch):
    monkeypatch.setattr(clustering, "MOST_DRAWS", 100)
    summary = summarize_chains(read_chains([simulated]), SummarySpec())
    assert summary.to_json()["clustering"]["draws"] == 100
    assert "(from 100 of 400 draws)" in " ".join(summary.to_text().split())
    whole = read_chains([simulated])
    chosen = np.concatenate(list(whole.allocations(np.array([3, 199]))))
    assert chosen.shape == (4, N)


def test_allocations_that_are_missing(tmp_path):
    rng = np.random.default_rng(10)
    states = chain_with_allocations(rng, 20, np.arange(N) % 3)
    states["allocations"][7, 3] = -1
    spec = a_spec(sampler__iterations=1020, sampler__chains=1)
    path = write_chains(tmp_path / "c.h5", [states], spec=spec, observed=np.linspace(-9, 9, N))
    with pytest.raises(DataError, match=r"c\.h5 lacks allocations at draw 7"):
        dpmix.summarize(path)
