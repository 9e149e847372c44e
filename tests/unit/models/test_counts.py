"""The sampler on counts: cells and their masses, moves, chains that go on, what it is refused for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import dpmix
from dpmix.api.fit import plan
from dpmix.columns.cells import Counts
from dpmix.errors import DataError, SpecError
from dpmix.kernels import Beta, NormalNIG, draw_prior
from dpmix.kernels.learned_base import learned_base, with_base
from dpmix.mechanisms.binomial.channel import BinomialNoise
from dpmix.mechanisms.channels.channel_functions import fill_marginal
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.mechanisms.square_wave.channel import square_wave
from dpmix.models.counts_mixture import atom_moves
from dpmix.models.counts_mixture.coordinates import place, walk
from dpmix.models.counts_mixture.masses import cells_for, fill_rows, fill_slopes, make_cells
from dpmix.models.counts_mixture.mixture_sweep import make_state, make_work, move_base_along
from dpmix.models.counts_mixture.model import CountsChain, CountsMixture
from dpmix.numerics import loops
from dpmix.numerics.mixing import PitmanYor
from dpmix.release.sanitized import Release
from dpmix.release.tallies import default_width, edges_of, tally
from dpmix.summary.information import share_kept
from tests.helpers import counts, counts_moves, samplers
from tests.helpers.fits import combined_spec, release_by, small_release, small_spec
from tests.helpers.parametric import interpreted
from tests.helpers.specs import message
from tests.oracles import cases
from tests.oracles.joint import Model
from tests.oracles.mc import batch_means, compare, random_density

NORMAL = NormalNIG(0.0, 0.1, 3.0, 3.0)
BETA = Beta(2.0, 0.5, 2.0, 0.5, -1.0, 3.0)
EDGES = np.linspace(-20.0, 20.0, 161)
PAIRS: dict[str, tuple[Any, Any]] = {
    "laplace": (LaplaceNoise(1.3), NORMAL),
    "gaussian": (GaussianNoise(1.3), NORMAL),
    "none": (NoNoise(), NORMAL),
    "binomial": (BinomialNoise.make(9, 0.8, -1.0, 2.0), NORMAL),
    "laplace-beta": (LaplaceNoise(0.7), BETA),
    "gaussian-beta": (GaussianNoise(0.7), BETA),
    "none-beta": (NoNoise(), BETA),
    "binomial-beta": (BinomialNoise.make(9, 0.8, -1.0, 2.0), BETA),
    "square wave": (square_wave(24, 3, 4.0, -1.0, 2.0), NORMAL),
}
QUICK = ("laplace", "gaussian", "none", "square wave")


def rows_of(name: str, theta: tuple[float, float], edges: np.ndarray | None = None) -> Any:
    """Masses and derivatives of all cells, (3, cells)."""
    channel, kernel = PAIRS[name]
    finite = {"binomial": 10, "binomial-beta": 10, "square wave": 30}.get(name, 0)
    if edges is None:
        edges = EDGES if kernel is NORMAL else np.linspace(-1.0, 2.0, 41)
    outputs = np.arange(float(finite))
    cells = cells_for(channel, kernel, np.zeros(0) if finite else edges, outputs)
    rows = np.zeros((3, finite or len(edges) + 1))
    at = np.array(theta)[:, None]
    if not fill_rows(channel, kernel, at, 0, cells, rows):
        fill_slopes(channel, kernel, at, 0, cells, rows)
    return rows


def sample(name: str) -> list[tuple[float, float]]:
    if PAIRS[name][1] is NORMAL:
        return [(0.3, 1.0), (-7.0, 0.01), (12.0, 40.0), (0.0, 2500.0)]
    return [(2.0, 5.0), (0.4, 0.7), (60.0, 20.0), (1.0, 1.0)]


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.matrix) for n in PAIRS]
)
def test_masses_sum_to_one_and_their_derivatives_are_theirs(name: str) -> None:
    kernel = PAIRS[name][1]
    for theta in sample(name):
        rows = rows_of(name, theta)
        assert rows[0].sum() == pytest.approx(1.0, abs=2e-9 if kernel is BETA else 1e-13)  # end cells too
        assert np.all(rows[0] > 0.0)
        at, moved = np.array(theta)[:, None], np.ones((2, 1))
        here = walk(kernel, at, 0)
        for k in range(2):
            sides = []
            for sign in (1.0, -1.0):
                step = 1e-4 * sign * np.eye(2)[k]
                assert place(kernel, here[0] + step[0], here[1] + step[1], moved, 0)
                sides.append(rows_of(name, (moved[0, 0], moved[1, 0]))[0])
            slope = (sides[0] - sides[1]) / 2e-4
            scale = np.max(np.abs(slope))
            assert (
                np.max(np.abs(rows[1 + k] - slope))
                <= (1e-3 if kernel is BETA or "bin" in name else 1e-6) * scale + 1e-300
            )


@pytest.mark.parametrize("sd", [0.02, 1.0, 40.0, 45.0, 400.0])
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_masses_are_exact_to_twelve_digits(name: str, sd: float) -> None:
    """Narrow cells, s / 32, under components from far narrower to far wider than the noise."""
    noise = 1.3
    edges = 3.0 + np.arange(9) * (noise / 32)
    found = rows_of(name, (0.5, sd * sd), edges)[0]
    with mp.workdps(40):
        s, v = mp.mpf(noise), mp.mpf(sd * sd)

        def below(x: float) -> mp.mpf:
            t = mp.mpf(x) - mp.mpf(0.5)
            if name == "gaussian":
                return mp.ncdf(t / mp.sqrt(v + s**2))
            tilt, root = v / (2 * s**2), mp.sqrt(v)
            near = mp.exp(tilt - t / s) * mp.ncdf(t / root - root / s)
            far = mp.exp(tilt + t / s) * mp.ncdf(-t / root - root / s)
            return mp.ncdf(t / root) - (near - far) / 2

        at = [below(edge) for edge in edges]
        truth = [at[0], *(b - a for a, b in zip(at[:-1], at[1:], strict=True)), 1 - at[-1]]
        worst = max(abs(float(mp.mpf(float(f)) / t - 1)) for f, t in zip(found, truth, strict=True))
    assert worst < (5e-12 if sd > 1.0 else 2e-12)


@pytest.mark.parametrize("sd", [0.001, 0.3, 4.0, 300.0])
@pytest.mark.parametrize("reach", [0, 7])
def test_outputs_of_a_square_wave_are_exact_to_twelve_digits(reach: int, sd: float) -> None:
    """Windows that hold end cells and others, from far wider than the component to far narrower."""
    size, odds = 96, 3.5e4
    channel, outputs = square_wave(size, reach, odds, -1.0, 2.0), np.arange(0.0, size + 2.0 * reach)
    cells, rows = cells_for(channel, NORMAL, np.zeros(0), outputs), np.zeros((3, len(outputs)))
    fill_rows(channel, NORMAL, np.array([[0.21], [sd * sd]]), 0, cells, rows)
    with mp.workdps(40):
        at = [
            mp.ncdf((mp.mpf(3 * c) / size - 1 - mp.mpf(0.21)) / mp.sqrt(mp.mpf(sd * sd))) for c in range(size)
        ]
        at[0], total = mp.mpf(0), (2 * reach + 1) * odds + size - 1
        at.append(mp.mpf(1))
        for c, value in enumerate(rows[0]):
            near = at[min(c, size - 1) + 1] - at[max(c - 2 * reach, 0)]
            assert abs(float(mp.mpf(float(value)) * total / (1 + (odds - 1) * near) - 1)) < 2e-12, c
    old = np.empty(len(outputs))
    fill_marginal(channel, NORMAL, np.array([[0.21], [sd * sd]]), 0, outputs, 0, len(outputs), old)
    np.testing.assert_allclose(rows[0], old, rtol=1e-11)


@pytest.mark.parametrize(
    "kernel", [NORMAL, pytest.param(BETA, marks=pytest.mark.matrix)], ids=["nig", "beta"]
)
def test_what_moves_with_a_learned_base_keeps_its_masses(kernel: Any) -> None:
    """Atoms, masses, derivatives that are set belong together after every move, taken or not."""
    rng, room, channel = np.random.default_rng(4), 6, LaplaceNoise(0.7)
    cells = cells_for(channel, kernel, np.linspace(-0.9, 1.9, 8), np.zeros(0))
    learned = learned_base(kernel, np.array([1.0]), 2.0).own()
    state, work = make_state(kernel, room), make_work(kernel, room, 9)
    work.counts[:] = 2.0
    for h in range(room):
        draw_prior(kernel, rng, state.theta, h)
        work.weights[h] = 1.0 / room
        work.sloped[h] = fill_rows(channel, kernel, state.theta, h, cells, work.rows[h])
    loops.mix(work.weights, work.rows, room, work.mixed)
    moved = 0
    for _ in range(40):
        before, now = learned.values.copy(), with_base(kernel, learned.values)
        move_base_along(channel, now, learned, rng, state, cells, work, room, False)
        moved += not np.array_equal(before, learned.values)
        rows = np.zeros((3, 9))
        for h in range(room):
            sloped = fill_rows(channel, kernel, state.theta, h, cells, rows)
            assert work.sloped[h] == sloped
            np.testing.assert_array_equal(work.rows[h, : 3 if sloped else 1], rows[: 3 if sloped else 1])
        mixed = np.empty(9)
        loops.mix(work.weights, work.rows, room, mixed)
        np.testing.assert_allclose(work.mixed, mixed, rtol=1e-12)
    assert 5 < moved < 40


def test_logarithm() -> None:
    x = np.concatenate(
        [np.exp(np.random.default_rng(1).uniform(-690, 690, 400)), 1 + np.linspace(-1e-3, 1e-3, 41)]
    )
    found = np.array([loops.log(value) for value in x])
    assert np.max(np.abs(found - np.log(x)) / np.maximum(np.abs(np.log(x)), 1e-300)) < 2e-15


def test_grid_is_public_and_has_the_bounds_among_its_edges() -> None:
    assert default_width("laplace", 4.0, -10.0, 10.0) == 0.125
    assert (
        default_width("laplace", 100.0, -10.0, 10.0) == default_width("gaussian", 9.0, -10.0, 10.0) == 0.3125
    )
    wide = edges_of("laplace", 4.0, -10.0, 10.0, 0.3, bounded=False)
    assert np.diff(wide) == pytest.approx(20 / 67) and {-10.0, 10.0} <= set(wide)
    assert wide[0] <= -20.0 and wide[-1] >= 20.0
    assert edges_of("laplace", 4.0, 0.0, 1.0, 0.25, bounded=True).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert edges_of("gaussian", 2.0, 0.0, 1.0, 0.5, bounded=True)[[0, -1]].tolist() == [-16.0, 17.0]
    assert edges_of("none", 0.0, 0.0, 1.0, 0.5, bounded=False).tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="more than"):
        edges_of("none", 0.0, 0.0, 1.0, 1e-9, bounded=False)
    with pytest.raises(ValueError, match="no cells"):
        edges_of("none", 0.0, 0.0, 1.0, 0.0, bounded=False)


def test_values_are_counted_in_half_open_cells_and_empty_ones_joined() -> None:
    edges = np.arange(6.0)
    found = tally(np.array([-3.0, 0.0, 0.5, 1.0, 4.999, 5.0, 9.0]), edges, 1.0)
    assert found.counts.tolist() == [1, 2, 1, 0, 0, 1, 2] and found.n == 7
    joined = found.joined()
    assert joined.counts.tolist() == [1, 2, 1, 0, 1, 2] and joined.edges.tolist() == [0.0, 1.0, 2.0, 4.0, 5.0]
    alone = tally(np.array([2.5, 2.6]), edges, 1.0).joined()
    assert alone.counts.tolist() == [0, 2, 0] and alone.edges.tolist() == [2.0, 3.0]
    for values in ([], [1.0, np.nan], [np.inf]):
        with pytest.raises(ValueError, match="values|finite"):
            tally(np.array(values), edges, 1.0)


@pytest.mark.parametrize("kernel", [NORMAL, BETA])
def test_shape_of_a_pair_has_the_jacobian_that_is_stated(kernel: Any) -> None:
    """(m_1, m_2, log v_1, log v_2) by (M, d, V, rho): determinant 1 / R, by differences."""
    theta = np.array([[0.4, 0.9], [0.3, 0.2]]) if kernel is NORMAL else np.array([[6.0, 9.0], [7.0, 4.0]])
    share, out = 0.3, np.ones((2, 2))
    mean, variance, inner, gap, odds = atom_moves.common(kernel, theta, 0, 1, share)
    assert atom_moves.part(kernel, mean, variance, share, gap, odds, out) == pytest.approx(inner)
    assert out == pytest.approx(theta, rel=1e-10)

    def place_of(at: np.ndarray) -> np.ndarray:
        assert atom_moves.part(kernel, at[0], at[2], share, at[1], at[3], out) > 0.0
        ends = [atom_moves.moments(kernel, out, h) for h in (0, 1)]
        return np.array([ends[0][0], ends[1][0], np.log(ends[0][1]), np.log(ends[1][1])])

    at = np.array([mean, gap, variance, odds])
    step = 1e-5
    jacobian = [(place_of(at + step * e) - place_of(at - step * e)) / (2 * step) for e in np.eye(4)]
    assert abs(np.linalg.det(np.array(jacobian))) == pytest.approx(1.0 / inner, rel=1e-6)


@pytest.mark.matrix
@pytest.mark.parametrize("faults", [[], list(counts_moves.FAULTS)])
def test_moves_leave_the_prior_as_it_is_and_faults_do_not(faults: list[str]) -> None:
    """In the interpreter, which takes the faults: each kind of move where cells say nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.counts_moves", *faults],
        check=True,
        capture_output=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    found = json.loads(done.stdout)
    assert found.pop("mass under an end cell that is finite") < 0.99
    for move in counts_moves.MOVES:
        assert found.pop(move) > 1e-3, move
    assert set(found) == set(faults)
    assert all(p < 1e-6 for p in found.values()), found


def release(n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(12)
    return np.asarray(rng.choice([-5.0, 0.0, 5.0], n) + rng.standard_normal(n) + rng.laplace(0, 0.8, n))


MODEL = Model(("laplace", 0.8), (0.0, 0.1, 3.0, 2.0), 0.0, (2.0, 2.0))
LAPLACE_EDGES = edges_of("laplace", 0.8, -10.0, 10.0, 0.25, bounded=False)


def make_chain(seed: int = 3, z: np.ndarray | None = None, edges: np.ndarray = LAPLACE_EDGES) -> CountsChain:
    found = counts.counted(MODEL, release() if z is None else z, edges)
    return counts.mixture(MODEL, found).make_chain(np.random.default_rng(seed))


def run(chain: CountsChain, until: list[int], restart: bool) -> dict[str, Any]:
    """Sweep in pieces, each in a new chain that goes on from a snapshot, or all in one."""
    chain.keep(2, 41)
    parts = []
    for stop in until:
        chain.proceed(stop)
        parts.append(chain.take())
        if restart:
            snapshot = chain.snapshot()
            chain = make_chain(seed=99)
            chain.restore(snapshot)
    names = [name for name in parts[0] if name != "first"]
    return {name: np.concatenate([part[name][1] for part in parts], axis=-1) for name in names}


def test_chain_goes_on_bit_for_bit_however_it_is_cut() -> None:
    whole, pieces = run(make_chain(), [301], False), run(make_chain(), [7, 40, 41, 42, 120, 301], True)
    for name, values in whole.items():
        assert np.array_equal(values, pieces[name], equal_nan=True), name
    assert len(whole["n_clusters"]) == 130
    assert np.all(whole["left_over"] < 1e-3)


def draw_few() -> dict[str, Any]:
    """Run a chain short enough for the interpreter."""
    edges = np.array([-6.0, -2.0, 0.0, 1.0, 5.0])
    chain = make_chain(z=release(30), edges=edges)
    chain.keep(1, 10)
    chain.proceed(25)
    return {name: values for name, (_, values) in chain.take().items()}


def test_interpreter_gives_the_same_draws() -> None:
    found = interpreted(
        __name__, "{name: values.tolist() for name, values in draw_few().items()}", strict=True
    )
    for name, values in draw_few().items():
        assert np.array_equal(values, np.array(found[name]), equal_nan=True), name


def test_room_grows_without_another_draw() -> None:
    """A chain with room for few atoms makes more when it has to, and finds the same clusters on average."""
    chain = make_chain()
    chain._state = chain._state._replace(
        sizes=chain._state.sizes[:16], theta=chain._state.theta[:, :16].copy()
    )
    chain._make_room()
    chain.keep(1, 100)
    chain.proceed(3000)
    assert len(chain._state.sizes) >= 16
    other = make_chain(seed=8)
    other.keep(1, 100)
    other.proceed(3000)
    (one, e1), (two, e2) = (batch_means(c.take()["n_clusters"][1].astype(float), 50) for c in (chain, other))
    assert abs(one - two) < 5.0 * np.hypot(e1, e2)


def test_narrow_cells_have_the_posterior_of_the_values() -> None:
    """Cells of a hundredth of the noise, against enumeration given the values themselves."""
    model = cases.model("laplace-near", 0.0, cases.GAMMA)
    edges = edges_of("laplace", 0.7, -6.0, 6.0, 0.007, bounded=False)
    chain = counts.mixture(model, counts.counted(model, cases.Z, edges)).make_chain(np.random.default_rng(4))
    chain.keep(2, 300)
    chain.proceed(30_300)
    gaps = compare(
        counts.padded(chain), cases.table("laplace-near"), cases.exact("laplace-near", 0.0, cases.GAMMA), 0.0
    )
    assert max(float(np.max(np.abs(gap))) for group in gaps for gap in group.values()) < 4.5


@pytest.mark.matrix
def test_agrees_with_neal8_on_sixty_records() -> None:
    z = release()
    points = np.array([-5.0, -2.5, 0.0, 2.5, 5.0])
    table = counts.table(MODEL, LAPLACE_EDGES, np.zeros(0, dtype=np.int64), points)
    fine = edges_of("laplace", 0.8, -10.0, 10.0, 0.025, bounded=False)
    found = []
    chain = make_chain(z=z, edges=fine)
    chain.keep(1, 500)
    chain.proceed(6_500)
    other = samplers.chain("neal8", MODEL, z, np.random.default_rng(6))
    other.advance(500)
    for draws in (counts.padded(chain), other.run(6_000, thin=3)):
        density, square = random_density(draws, table, 0.0)
        columns = [draws["n_clusters"], density, square, np.log(draws["concentration"])]
        found.append(batch_means(np.column_stack(columns), 100))
    (one, e1), (two, e2) = found
    assert np.max(np.abs(one - two) / np.hypot(e1, e2)) < 4.5


@pytest.mark.parametrize(
    ("ratio", "lost"), [(1 / 31, 0.89), (1 / 3, 0.27), (2 / 3, 0.09), (1.0, 0.04), (2.0, 0.01)]
)
def test_share_of_information_is_that_of_methods(ratio: float, lost: float) -> None:
    """Lost about log sd at h = s / 32, averaged over the place of the component in a cell (section 12)."""
    width = 1.0 / 32
    edges = np.arange(-256, 257) * width
    shares = [
        share_kept(LaplaceNoise(1.0), NORMAL, np.array([[place * width], [(ratio * width) ** 2]]), edges)[0]
        for place in (np.arange(12) + 0.5) / 12
    ]
    found = 1.0 - np.mean(shares, axis=0)
    assert found[1] == pytest.approx(lost, abs=0.03 if lost > 0.1 else 0.01)
    if ratio < 0.1:  # a point mass: h / 3 s of the location
        assert found[0] == pytest.approx(width / 3, rel=0.3)


def test_a_fit_says_what_its_cells_keep(tmp_path: Path) -> None:
    spec = small_spec(kind="counts", width=3.0)
    chains = tmp_path / "chains.h5"
    dpmix.fit(spec, small_release(), chains, quiet=True)
    summary = dpmix.summarize(chains)
    kept = json.loads(json.dumps(summary.to_json()))["information_kept"]
    assert kept["width"] == pytest.approx(20 / 7) and 0.0 < kept["log_sd"] < kept["location"] <= 1.0
    assert 0.0 < kept["left_over"] < 1e-3
    assert any("sampler.width" in text for text in summary.warnings) == (kept["narrow"] > 0.01)
    assert "cells of width" in summary.to_text()
    assert summary.clustering is None
    with pytest.raises(DataError, match="counted"):
        dpmix.fit(spec, _with_nan(), tmp_path / "other.h5", quiet=True)


def _with_nan() -> Release:
    found = small_release()
    found.values[3] = np.nan
    return found


REFUSED = {
    ("laplace", "nig"): {"store": ["allocations"]},
    ("gaussian", "nig"): {"store": ["allocations"], "subsample": 5},
    ("gaussian", "truncated_nig"): {},
    ("laplace", "multivariate_normal"): {},
    ("wavelet", "nig"): {},
    ("smoothed_histogram", "beta"): {"width": 1.0},
    ("none", "nig"): {},
    ("binomial", "beta"): {"width": 0.5},
    ("square_wave", "nig"): {"width": 0.5},
}
NAMED = {
    ("laplace", "nig"): "sampler.store: counts knows of no single records",
    ("gaussian", "nig"): "sampler.store: counts knows of no single records",
    ("smoothed_histogram", "beta"): "sampler.width: 1 is not for smoothed_histogram",
    ("none", "nig"): "sampler.width: must be a number for counts without noise",
    ("binomial", "beta"): "sampler.width: 0.5 is not for binomial",
    ("square_wave", "nig"): "sampler.width: 0.5 is not for square_wave",
}


@pytest.mark.parametrize(("mechanism", "model"), REFUSED)
def test_what_it_does_not_go_with_is_refused_by_name(mechanism: str, model: str) -> None:
    spec = combined_spec(mechanism, model, "counts", "exact")
    spec["sampler"].update(REFUSED[mechanism, model])
    text = message(source=spec)
    assert text.startswith(NAMED.get((mechanism, model), "sampler.kind: counts")), text


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "binomial", "square_wave", "none"])
@pytest.mark.parametrize("model", ["nig", "beta"])
def test_what_it_goes_with_is_planned(mechanism: str, model: str) -> None:
    spec = combined_spec(mechanism, model, "counts", "exact")
    if mechanism == "none":
        spec["sampler"]["width"] = 0.5
    assert "sweeps of counts" in plan(spec, release_by(mechanism))
    spec["model"]["discount"] = 0.2
    assert message(source=spec).startswith("model.discount: 0.2 is not for counts")
    spec["model"]["discount"] = 0.0
    spec["sampler"]["latent"] = "metropolis"
    assert message(source=spec).startswith("sampler.latent: metropolis is not for counts")


def test_a_discount_or_a_width_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="discount"):
        CountsMixture(
            Counts(np.array([1, 2]), np.zeros(1), 1.0), LaplaceNoise(1.0), NORMAL, PitmanYor(1.0, 0.2)
        )
    spec = combined_spec("laplace", "nig", "counts", "exact")
    spec["sampler"]["width"] = 1e-7
    with pytest.raises(SpecError, match="sampler.width: .* more than"):
        plan(spec, release_by("laplace"))
    assert make_cells(np.zeros(2), np.zeros(0)).tails.shape == (3, 2)
