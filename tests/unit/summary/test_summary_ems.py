"""EM with smoothing, set beside the posterior: its transitions, its fixed point, and where it is shown."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
import xarray
from mpmath import mp
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import binom, laplace, norm

import dpmix
from dpmix.errors import DataError, SpecError
from dpmix.laws.every import law_of
from dpmix.laws.law_base import fraction_of
from dpmix.laws.transitions import MatrixTransition
from dpmix.release.release_file import read_release, write_release
from dpmix.release.sanitized import Release
from dpmix.release.tallies import edges_of, one_column, output_edges, tallied, tally, wide_grid
from dpmix.spec import load_spec
from dpmix.spec.combinations import check_combination
from dpmix.summary.ems import CELLS, Ems, coarse_edges, estimate, grouped, smoothed
from tests.helpers.chains_files import a_spec, states_of_mixture, write_chains
from tests.helpers.pages import short_page

DOMAINS = {"microns": (-3e-6, 5e-6), "dollars": (0.0, 2e5)}
WAVE = {"kind": "square_wave", "cells": 9, "reach": 2, "ratio": "27/10"}


def rows(transition, count):
    """The matrix, a column a cell of records."""
    return np.stack([transition.forward(row) for row in np.eye(count)], axis=1)


def made(kind, domain, share, cells=6):
    """The transition of additive noise of scale `share` of the domain's width, with its cells."""
    lo, hi = domain
    scale = share * (hi - lo)
    law = law_of({"kind": kind, "scale": [scale], "domain": [[lo, hi]]})
    edges = edges_of(kind, scale, lo, hi, (hi - lo) / 10, bounded=True)
    own = np.linspace(lo, hi, cells + 1)
    return law.transition(own, edges, np.arange(len(edges) + 1), scale), own, edges, scale


@pytest.mark.parametrize("share", [0.02, 0.5, 8.0])
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_additive_noise_against_integrals(kind, domain, share):
    transition, own, edges, scale = made(kind, domain, share)
    found = rows(transition, 6)
    np.testing.assert_allclose(found.sum(axis=0), 1.0, rtol=1e-12)
    law = {"laplace": laplace, "gaussian": norm}[kind](scale=scale)
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    width = domain[1] - domain[0]
    for c in (0, 1, len(edges) // 2, len(edges)):
        for i in (0, 3, 5):
            low, high = ends[c], ends[c + 1]

            def mass(t, low=low, high=high, left=own[i], right=own[i + 1]):
                y = left + (right - left) * t
                return law.sf(low - y) - law.sf(high - y) if low > y else law.cdf(high - y) - law.cdf(low - y)

            kinks = [(e - own[i]) / (own[i + 1] - own[i]) for e in (low, high) if np.isfinite(e)]
            inside = [k for k in kinks if 0.0 < k < 1.0] or None
            wanted = quad(mass, 0.0, 1.0, epsabs=0.0, epsrel=1e-11, points=inside)[0]
            assert found[c, i] == pytest.approx(wanted, rel=1e-7, abs=1e-14), (c, i)
    weights = np.random.default_rng(1).random(len(found))
    np.testing.assert_allclose(transition.backward(weights), weights @ found, rtol=1e-12)
    assert width > 0


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_what_is_far_on_either_side_keeps_its_digits(kind, domain):
    """Against 120 digits, relative to each probability, down to 1e-50.

    A cell below a record is mirrored, so that what cancels is small; records and edges are unlike on both
    sides.
    """
    lo, hi = domain
    width = hi - lo
    scale = (0.02 if kind == "laplace" else 0.1) * width
    law = law_of({"kind": kind, "scale": [scale], "domain": [[lo, hi]]})
    own = lo + width * np.array([0.0, 0.03, 0.2, 0.5, 0.91, 1.0])
    edges = lo + width * np.array([-0.6, 0.04, 0.13, 0.52, 0.72, 0.98, 1.3])
    found = rows(law.transition(own, edges, np.arange(8), scale), 5)
    with mp.workdps(120):
        s = mp.mpf(scale)

        def tail(t):  # K, the integral of Pr(noise > u) over u > t
            if kind == "gaussian":
                return s * mp.npdf(t / s) - t * mp.ncdf(-t / s)
            return s / 2 * mp.exp(-t / s) if t > 0 else s / 2 * mp.exp(t / s) - t

        for i, (left, right) in enumerate(zip(own[:-1], own[1:], strict=True)):
            a, b = mp.mpf(float(left)), mp.mpf(float(right))
            at = [mp.mpf(float(edge)) for edge in edges]
            above = [tail(x - b) - tail(x - a) for x in at]  # of a value above x, times b - a
            exact = [
                b - a - above[0],
                *(u - v for u, v in zip(above[:-1], above[1:], strict=True)),
                above[-1],
            ]
            for c, value in enumerate(exact):
                assert abs(float(found[c, i] * (b - a) / value - 1)) < 1e-7, (c, i, float(value))


@pytest.mark.parametrize(("trials", "weight"), [(1, 0.9), (20, 0.0125), (20, 0.4)])
def test_binomial_against_integrals(trials, weight):
    law = law_of(
        {"kind": "binomial", "trials": trials, "weight": weight, "domain": [[0.0, 2e5]], "scale": [1.0]}
    )
    own = np.linspace(0.0, 2e5, 7)
    found = rows(law.transition(own, output_edges(trials + 1), np.arange(trials + 1), 0.0), 6)
    np.testing.assert_allclose(found.sum(axis=0), 1.0, rtol=1e-12)
    for z in (0, trials // 2, trials):
        wanted = quad(lambda y, z=z: binom.pmf(z, trials, 0.5 + weight * (y - 0.5)), 3 / 6, 4 / 6)[0] * 6
        assert found[z, 3] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("count", [9, 27, 6, 4])
def test_the_square_wave_as_fractions(count):
    """Cells of the estimate and of the law may differ: a record is uniform in its cell."""
    law = law_of(WAVE | {"domain": [[-3e-6, 5e-6]]})
    own = np.linspace(-3e-6, 5e-6, count + 1)
    transition = law.transition(own, output_edges(13), np.arange(13), 0.0)
    r, near = fraction_of(law.ratio), 2 * law.reach + 1
    total = near * r + law.cells - 1
    exact = np.empty((13, count))
    for c in range(count):
        for j in range(13):
            chance = Fraction(0)
            for i in range(9):
                low, high = (
                    max(Fraction(i, 9), Fraction(c, count)),
                    min(Fraction(i + 1, 9), Fraction(c + 1, count)),
                )
                if low < high:
                    chance += (high - low) * count * (r if i <= j <= i + 2 * law.reach else 1) / total
            exact[j, c] = float(chance)
    np.testing.assert_allclose(rows(transition, count), exact, rtol=1e-12)
    weights = np.random.default_rng(2).random(13)
    np.testing.assert_allclose(transition.backward(weights), weights @ exact, rtol=1e-12)
    some = np.array([0, 5, 12])
    few = law.transition(own, output_edges(13), some, 0.0)
    np.testing.assert_allclose(rows(few, count), exact[some], rtol=1e-12)
    np.testing.assert_allclose(few.backward(weights[:3]), weights[:3] @ exact[some], rtol=1e-12)


def test_without_smoothing_it_climbs_to_the_maximum_of_the_likelihood():
    """Six cells: EM against a direct maximisation over the simplex."""
    transition, _, edges, _ = made("laplace", DOMAINS["dollars"], 0.3)
    matrix = rows(transition, 6)
    counts = np.random.default_rng(3).multinomial(4000, matrix @ [0.3, 0.1, 0.1, 0.2, 0.2, 0.1]).astype(float)
    found = estimate(transition, counts, 6, smooth=False)
    assert (np.diff(found.log_likelihood) >= -1e-9).all()

    def minus(logits):
        p = np.exp(logits - logits.max())
        return -float(counts @ np.log(matrix @ (p / p.sum())))

    best = minimize(minus, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
    # EM stops where a step gains less than 1e-3, within a little of the top
    assert -best.fun - 0.3 < found.log_likelihood[-1] <= -best.fun + 1e-6
    score = transition.backward(counts / (matrix @ found.masses)) / counts.sum()
    assert (score < 1.02).all()  # of a maximum on the simplex: 1 where there is mass, at most 1 elsewhere


def test_smoothing_keeps_the_mass_and_what_is_even():
    rng = np.random.default_rng(4)
    masses = rng.dirichlet(np.ones(9))
    assert smoothed(masses).sum() == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_allclose(smoothed(np.full(9, 1 / 9)), 1 / 9, rtol=1e-14)
    by_hand = np.array([2 * masses[0] + masses[1], 0.75 * (masses[0] + 2 * masses[1] + masses[2])]) / 3
    np.testing.assert_allclose(smoothed(masses)[:2] / smoothed(masses)[:2].sum(), by_hand / by_hand.sum())


def test_the_identity_returns_smoothed_counts_and_stops():
    counts = np.array([0.0, 5.0, 40.0, 30.0, 5.0, 0.0])
    found = estimate(MatrixTransition(np.eye(6)), counts, 6)
    assert found.settled
    assert found.steps < 100
    assert found.masses.sum() == pytest.approx(1.0)
    plain = estimate(MatrixTransition(np.eye(6)), counts, 6, smooth=False)
    np.testing.assert_allclose(plain.masses, counts / counts.sum(), atol=1e-12)


def test_a_tally_is_put_together_and_tells_the_same():
    rng, (lo, hi) = np.random.default_rng(5), DOMAINS["dollars"]
    y = lo + (hi - lo) * rng.beta(5.0, 2.0, 20_000)
    for kind, scale in (("laplace", 0.004 * (hi - lo)), ("gaussian", 2.0 * (hi - lo))):
        z = y + (rng.laplace if kind == "laplace" else rng.normal)(0.0, scale, y.size)
        law = law_of({"kind": kind, "scale": [scale], "domain": [[lo, hi]]})
        wide = edges_of(kind, scale, lo, hi, min(scale / 8, (hi - lo) / 64), bounded=False)
        whole = tally(z, wide, float(wide[1] - wide[0]))
        part = grouped(whole, kind, scale, lo, hi)
        assert part.n == whole.n
        assert len(part.counts) <= 4_100
        assert np.isin(part.edges, whole.edges).all()
        edges = coarse_edges(kind, scale, lo, hi)
        means = []
        for counts in (part, tally(z, edges, float(edges[1] - edges[0]))):
            (some,) = np.nonzero(counts.counts)
            transition = law.transition(np.linspace(lo, hi, CELLS + 1), counts.edges, some, scale)
            found = estimate(transition, counts.counts[some].astype(float), CELLS)
            means.append(Ems(np.linspace(lo, hi, CELLS + 1), found.masses, found.steps, True, ()).mean)
        assert means[0] == pytest.approx(means[1], abs=0.01 * (hi - lo))


def test_moments_and_quantiles_of_a_histogram():
    edges = np.linspace(0.0, 2e5, 5)
    found = Ems(edges, np.array([0.5, 0.25, 0.25, 0.0]), 3, True, (0.5,))
    assert found.mean == pytest.approx(25e3 * 0.5 + 75e3 * 0.25 + 125e3 * 0.25)
    second = sum(
        m * (b**3 - a**3) / (3 * 5e4) for m, a, b in zip(found.masses, edges, edges[1:], strict=False)
    )
    assert found.sd == pytest.approx(np.sqrt(second - found.mean**2))
    assert found.quantile(0.5) == pytest.approx(5e4)
    np.testing.assert_allclose(
        found.density(np.array([-1.0, 0.0, 6e4, 2e5, 2.1e5])), [0.0, 1e-5, 5e-6, 0.0, 0.0]
    )


# In summaries.

LAWS = {
    "laplace": ({"kind": "laplace", "scale": [2.0]}, {"noise_scale": 2.0}),
    "gaussian": ({"kind": "gaussian", "scale": [2.0]}, {"noise_scale": 2.0}),
    "binomial": ({"kind": "binomial", "trials": 20, "weight": 0.5, "scale": [1.0]}, {}),
    "square_wave": (WAVE | {"cells": 64, "reach": 8}, {}),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Chains of a fit to a release of 4,000 records by each mechanism, in the bounds [-10, 10]."""
    rng, folder = np.random.default_rng(6), tmp_path_factory.mktemp("ems")
    y = np.clip(rng.choice([-5.0, 5.0], 4000, p=[0.3, 0.7]) + rng.normal(0.0, 1.0, 4000), -10.0, 10.0)
    found = {}
    for kind, (law, constants) in LAWS.items():
        stated = law | {"domain": [[-10.0, 10.0]]}
        observed = law_of(stated).draw(y, constants.get("noise_scale", 1.0), rng)
        states = [states_of_mixture(60, np.random.default_rng(7)) for _ in range(2)]
        attrs = {"mechanism": json.dumps(stated)}
        found[kind] = write_chains(
            folder / f"{kind}.h5", states, observed=observed, attrs=attrs, constants=constants
        )
    return found


@pytest.mark.parametrize("kind", LAWS)
def test_it_stands_beside_the_posterior(files, kind, tmp_path):
    summary = dpmix.summarize(files[kind], tmp_path / "s.h5", overrides=["summary.baseline=ems"])
    found = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert found["ems"]["mean"] == pytest.approx(2.0, abs=0.6)
    assert found["ems"]["quantile[0.75]"] == pytest.approx(5.5, abs=1.2)
    assert len(found["ems"]["masses"]) == CELLS
    assert sum(found["ems"]["masses"]) == pytest.approx(1.0)
    density = found["density"]
    assert density["baseline"] == density["baselines"]["ems"]
    assert "baseline_bandwidth" not in density
    peak = density["grid"][int(np.argmax(density["baseline"]))]
    assert peak == pytest.approx(5.0, abs=2.5)
    with xarray.open_datatree(tmp_path / "s.h5", engine="h5netcdf") as tree:
        assert tree["density"]["baseline"].values.tolist() == density["baseline"]
        assert tree["ems"]["masses"].values.tolist() == found["ems"]["masses"]
    assert "EMS (EM with smoothing on 1,024 cells" in summary.to_text()


def test_both_baselines_in_one_list_and_in_the_report(files):
    both = ["summary.baseline=[deconvolution_kde, ems]"]
    summary = dpmix.summarize(files["laplace"], overrides=both)
    assert list(summary.density.baselines) == ["deconvolution_kde", "ems"]
    alone = dpmix.summarize(files["laplace"], overrides=["summary.baseline=deconvolution_kde"])
    np.testing.assert_array_equal(summary.density.baseline, alone.density.baseline)
    page = short_page(summary)
    assert "by EM with smoothing; it has no" in page
    assert "with the noise deconvolved" in page
    assert "ems" not in dpmix.summarize(files["laplace"]).to_json()


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ({"kind": "wavelet", "epsilon": 5.0, "levels": 3}, "not by wavelet"),
        ({"kind": "none"}, "not by none"),
        ({"kind": "perturbed_histogram", "epsilon": 5.0, "bins": 9}, "not by perturbed_histogram"),
        ({"kind": "smoothed_histogram", "epsilon": 5.0, "bins": 9, "draws": 5}, "not by smoothed_histogram"),
    ],
)
def test_what_has_none_is_named(mechanism, words):
    asked = load_spec({"model": {}, "summary": {"baseline": "ems"}})
    with pytest.raises(
        SpecError, match=r"^summary\.baseline: ems is for one column released by laplace"
    ) as caught:
        check_combination(mechanism["kind"], asked)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[]", "summary.baseline"),
        ("[ems, ems]", "names the same estimate twice"),
        ("em", 'did you mean "ems"?'),
    ],
)
def test_bad_names_are_refused(value, words):
    with pytest.raises(SpecError, match="summary.baseline") as caught:
        load_spec({"model": {}}, [f"summary.baseline={value}"])
    assert words in str(caught.value)


def test_bounds_are_needed(tmp_path):
    states = [states_of_mixture(20, np.random.default_rng(9))]
    attrs = {"mechanism": json.dumps({"kind": "laplace", "scale": [1.0]})}
    spec = a_spec(sampler__iterations=1020, sampler__chains=1)
    spec["mechanism"] = {"kind": "laplace", "scale": 1.0}
    path = write_chains(tmp_path / "c.h5", states, spec=spec, attrs=attrs, constants={"noise_scale": 1.0})
    with pytest.raises(DataError, match=r"ems needs the public bounds of the column, mechanism\.domain"):
        dpmix.summarize(path, overrides=["summary.baseline=ems", "summary.grid=[-9, 9, 50]"])


def test_one_of_several_columns_and_its_tally(tmp_path):
    """Bounds and noise are those of the column that was fitted; a tally of it gives about the same."""
    rng = np.random.default_rng(10)
    y = np.stack([5e4 + 1e5 * rng.beta(2.0, 5.0, 3000), 2e-6 + 3e-6 * rng.beta(5.0, 2.0, 3000)], axis=1)
    domain = [[5e4, 1.5e5], [2e-6, 5e-6]]
    law = {"kind": "laplace", "scale": [5e4, 1.5e-6], "domain": domain}
    noisy = y + rng.laplace(0.0, 1.0, y.shape) * law["scale"]
    write_release(tmp_path / "r.h5", Release(noisy, ("pay", "size"), law, 4.0, 0.0, None, 3000))
    spec = {
        "release": {"columns": ["size"]},
        "model": {"kind": "mixture", "kernel": "normal"},
        "sampler": {"kind": "counts", "iterations": 60, "burn_in": 20, "chains": 1, "seed": 1, "store": []},
        "summary": {"baseline": "ems"},
    }
    dpmix.fit(spec, tmp_path / "r.h5", tmp_path / "c.h5", quiet=True, jobs=1)
    found = dpmix.summarize(tmp_path / "c.h5").to_json()["ems"]
    assert found["edges"][0] == 2e-6
    assert found["edges"][-1] == 5e-6
    assert found["mean"] == pytest.approx(y[:, 1].mean(), abs=0.1e-6)
    alone, _ = one_column(read_release(tmp_path / "r.h5"), ["size"])
    edges, width = wide_grid(alone.mechanism, "auto")
    counts = tally(alone.values.ravel(), edges, width)
    write_release(tmp_path / "t.h5", tallied(alone, counts))
    dpmix.fit(spec, tmp_path / "t.h5", tmp_path / "d.h5", quiet=True, jobs=1)
    by_tally = dpmix.summarize(tmp_path / "d.h5").to_json()["ems"]
    assert by_tally["mean"] == pytest.approx(found["mean"], abs=0.03e-6)
    assert by_tally["edges"] == found["edges"]
