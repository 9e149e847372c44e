"""Category probabilities given a released posterior: against all counts of few records, and the joint law.

Comparisons of draws are in Monte Carlo standard errors of 200 batch means, all below 4.5: with other seeds
than the fixed ones a right sampler would fail one of about 60 with probability below 0.001. p-values of the
joint law are compared with 1e-5, 12 of them, those of chi-square tests with 1e-6.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import yaml
from scipy import integrate, stats

import dpmix
from dpmix.api.predictive import predictive_records
from dpmix.api.release_of import find_release
from dpmix.cli import commands
from dpmix.errors import DataError, SpecError
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.posterior.section import PosteriorMechanism
from dpmix.models.multinomial.model import ExchangeChain, ListedChain, Multinomial, NoisyChain, build
from dpmix.models.multinomial.release_law import TwoCounts, exponential_mechanism_of
from dpmix.posteriors.hellinger_law import ExponentialMechanism, Posteriors, states
from dpmix.posteriors.simulated_draws import draw_released, errors_of, rate_at, tables_of
from dpmix.release.release_file import read_release, write_release
from dpmix.release.sanitized import Release
from dpmix.run import exit_codes
from dpmix.spec import load_spec
from dpmix.summary.taken_shares import raised
from tests.helpers.fits import assert_same
from tests.oracles import posteriors as oracle
from tests.oracles.mc import discrepancies

LIMIT, LEVEL = 4.5, 1e-5
Prior = tuple[float, ...]


def hellinger(prior: Prior, counts: tuple[int, ...], *, gamma: float = 0.3, exponent: float = 1.0) -> Release:
    """Return a release of these counts by the exponential mechanism."""
    mechanism = {
        "kind": "posterior",
        "method": "hellinger",
        "calibration": "theorem",
        "prior": list(prior),
        "n": sum(counts),
        "categories": None,
        "requested": {"epsilon": 2.0, "delta": 1e-6},
        "gamma": gamma,
        "exponent_scale": exponent,  # times epsilon/2, which is 1
        "bits": 80,
    }
    values = (np.array(prior) + np.array(counts, dtype=float))[:, None]
    return Release(values, ("parameter",), mechanism, 2.0, 1e-6, None, sum(counts), trust="global")


def noisy(prior: Prior, n: int, counts: tuple[float, ...], scale: float, method: str = "laplace") -> Release:
    """Return a release of noisy counts, of the first category alone where there are two."""
    from dpmix.posteriors.simulated_draws import settled

    mechanism = {
        "kind": "posterior",
        "method": method,
        "noise": method,
        "prior": list(prior),
        "n": n,
        "scale": [scale],
        "sensitivity": [len(prior) - 1],
        "requested": {"epsilon": 1.0},
        "noisy_counts": list(counts),
    }
    values = (np.array(prior) + settled(np.array(counts), n))[:, None]
    return Release(values, ("parameter",), mechanism, 1.0, 0.0, None, n, trust="global")


def likelihood(release: Release) -> dict[tuple[int, ...], float]:
    """Return the probability, or density, of the release given all counts, by definition."""
    made, found = release.mechanism, {}
    prior, n = tuple(made["prior"]), release.n
    every = oracle.databases(n, len(prior))
    if made["method"] != "hellinger":
        for c in every:
            own = c[: len(made["noisy_counts"])]
            apart = sum(abs(h - k) for h, k in zip(made["noisy_counts"], own, strict=True))
            found[c] = math.exp(-apart / made["scale"][0])
        return found
    r = tuple(int(round(v - a)) for v, a in zip(release.values[:, 0], prior, strict=True))
    for c in every:
        rate = made["exponent_scale"] / oracle.smooth_sensitivity(prior, c, made["gamma"])
        weights = {s: math.exp(-rate * oracle.hellinger(prior, c, s)) for s in every}
        found[c] = weights[r] / sum(weights.values())
    return found


def exact(release: Release, prior: Prior) -> dict[tuple[int, ...], float]:
    """Return the posterior of the counts: orders of the records, times their probability, times the law."""
    found = {}
    for c, seen in likelihood(release).items():
        orders = math.factorial(sum(c)) // math.prod(math.factorial(k) for k in c)
        after = [a + k for a, k in zip(prior, c, strict=True)]
        found[c] = orders * math.exp(oracle.log_beta(after) - oracle.log_beta(prior)) * seen
    total = sum(found.values())
    return {c: p / total for c, p in found.items()}


def moments(release: Release, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
    """Return means and squares' means of p."""
    total = sum(prior) + release.n
    rows = [(np.array(prior) + c, p) for c, p in exact(release, prior).items()]
    mean = sum(a * p for a, p in rows) / total
    squared = sum(a * (a + 1) * p for a, p in rows) / (total * (total + 1))
    return np.asarray(mean), np.asarray(squared)


CASES: dict[str, tuple[Release, Prior]] = {
    "two": (hellinger((1.0, 1.0), (3, 9)), (1.0, 1.0)),
    "two, at the end": (hellinger((0.5, 3.0), (0, 12), exponent=3.0), (0.5, 3.0)),
    "two, other prior": (hellinger((1.0, 1.0), (12, 28), exponent=0.4), (4.0, 0.7)),
    "three": (hellinger((1.0, 1.0, 1.0), (1, 5, 2)), (1.0, 1.0, 1.0)),
    "three, other prior": (hellinger((0.5, 2.0, 1.0), (0, 6, 2), exponent=4.0), (2.0, 0.4, 1.0)),
    "laplace": (noisy((1.0, 2.0), 12, (-1.3,), 2.0), (1.0, 2.0)),
    "geometric": (noisy((1.0, 2.0), 12, (15.0,), 2.0, "geometric"), (0.6, 2.0)),
    "laplace of three": (noisy((1.0, 2.0, 0.5), 8, (-1.3, 6.2, 4.4), 1.5), (1.0, 2.0, 0.5)),
}


@pytest.mark.parametrize("case", CASES)
def test_counts_have_the_posterior_of_all_databases(case: str) -> None:
    release, prior = CASES[case]
    model = Multinomial(release, np.array(prior))
    assert model.listed is not None
    found = dict(zip(map(tuple, model.listed.counts.tolist()), model.listed.probability, strict=True))
    for c, p in exact(release, prior).items():  # smooth sensitivities are rounded up by 2^-14
        assert found.get(c, 0.0) == pytest.approx(p, rel=2e-3, abs=1e-9)
    seen = likelihood(release)
    gaps = [
        log - math.log(seen[c])
        for c, log in zip(map(tuple, model.listed.counts.tolist()), model.listed.log_likelihood, strict=True)
    ]
    assert np.ptp(gaps) < 2e-3  # exact up to a constant


def test_the_likelihood_of_sixty_records_is_that_of_all_outcomes() -> None:
    release = hellinger((1.0, 1.0), (13, 47), gamma=0.1, exponent=0.8)
    model = Multinomial(release)
    assert model.listed is not None
    found = dict(zip(map(tuple, model.listed.counts.tolist()), model.listed.probability, strict=True))
    for c, p in exact(release, (1.0, 1.0)).items():
        assert found[c] == pytest.approx(p, rel=2e-3)


@pytest.mark.parametrize("case", ["two, other prior", "three, other prior", "laplace"])
def test_draws_have_the_moments_of_all_databases(case: str) -> None:
    release, prior = CASES[case]
    chain = Multinomial(release, np.array(prior)).make_chain(np.random.default_rng(5))
    assert isinstance(chain, ListedChain)
    draws = chain.run(20_000)
    mean, squared = moments(release, prior)
    gaps = [discrepancies(draws["p"], mean), discrepancies(draws["p"] ** 2, squared)]
    codes = draws["predictive"][:, None] == np.arange(len(prior))
    gaps.append(discrepancies(codes, mean))
    assert max(float(np.abs(gap).max()) for gap in gaps) < LIMIT
    assert (draws["count"].sum(axis=1) == release.n).all()


def test_the_posterior_of_p_is_that_of_quadrature() -> None:
    release, prior = CASES["two, other prior"]
    seen = likelihood(release)
    n = release.n
    law = [seen[k, n - k] for k in range(n + 1)]

    def density(p: float, power: int) -> float:
        own = float(stats.beta(*prior).pdf(p) * (stats.binom(n, p).pmf(range(n + 1)) @ law))
        return own * p**power

    integrals = [
        integrate.quad(density, 0, 1, args=(k,), limit=400, points=[0.05, 0.95])[0] for k in range(3)
    ]
    mean, squared = moments(release, prior)
    assert integrals[1] / integrals[0] == pytest.approx(mean[0], rel=1e-5)
    assert integrals[2] / integrals[0] == pytest.approx(squared[0], rel=1e-5)


def p_value(seen: np.ndarray, expected: np.ndarray) -> float:
    """Return that of a chi-square test, outcomes with less than 8 expected put together."""
    few = expected < 8
    found, law = np.append(seen[~few], seen[few].sum()), np.append(expected[~few], expected[few].sum())
    return float(stats.chisquare(found[law > 0], law[law > 0]).pvalue)


def test_bounded_normalizers_give_the_same_draws() -> None:
    release, prior = CASES["two, other prior"]
    law = exponential_mechanism_of(release.mechanism)
    whole = TwoCounts(np.array(prior), law, 12)
    bounded = TwoCounts(np.array(prior), law, 12, budget=0.0)
    assert whole.complete and not bounded.complete
    lower, totals = bounded._totals, whole._totals
    assert (lower <= totals).all() and (lower > 0.8 * totals).all()
    rng = np.random.default_rng(8)
    drawn = [bounded.draw(rng) for _ in range(5000)]
    places = np.array([counts[0] for counts, _ in drawn])
    np.testing.assert_allclose([log for _, log in drawn], whole.log_likelihood[places], atol=1e-9)
    assert p_value(np.bincount(places, minlength=41), 5000 * whole.probability) > 1e-6


@pytest.mark.parametrize("case", ["three", "three, other prior", "laplace of three"])
def test_chains_over_counts_have_the_moments_of_all_databases(case: str) -> None:
    release, prior = CASES[case]
    chain = Multinomial(release, np.array(prior), list_counts=False).make_chain(np.random.default_rng(6))
    assert isinstance(chain, NoisyChain if "laplace" in case else ExchangeChain)
    draws = chain.run(20_000, thin=2, skip=200)
    mean, squared = moments(release, prior)
    gaps = [discrepancies(draws["p"], mean), discrepancies(draws["p"] ** 2, squared)]
    expected = exact(release, prior)
    for i in range(3):
        law = [sum(p for c, p in expected.items() if c[i] == k) for k in range(release.n + 1)]
        often = np.array(law) > 0.005  # batch means are about normal
        seen = draws["count"][:, [i]] == np.arange(release.n + 1)
        gaps.append(discrepancies(seen[:, often], np.array(law)[often]))
    assert max(float(np.abs(gap).max()) for gap in gaps) < LIMIT


def test_chains_leave_the_joint_law_as_it_is() -> None:
    prior, n, restarts = np.array([0.8, 2.0, 1.2]), 15, 3000
    release = hellinger((1.0, 1.0, 1.0), (5, 5, 5), exponent=3.0)
    model = Multinomial(release, prior, list_counts=False)
    rng = np.random.default_rng(12)
    chain = model.make_chain(rng)
    assert isinstance(chain, ExchangeChain)
    tables = tables_of(exponential_mechanism_of(release.mechanism))
    fresh, moved, near = [], [], []
    for _ in range(restarts):
        fresh.append(rng.multinomial(n, rng.dirichlet(prior)))
        counts = chain.state["counts"]
        counts[:] = rng.multinomial(n, rng.dirichlet(prior))
        chain.state["rate"][0] = rate_at(tables, counts)
        for _ in range(3):
            draw_released(tables, counts, chain.state["rate"][0], rng, chain._released)
            chain.sweep(1)
        moved.append(counts.copy())
        near.append(np.abs(counts - chain._released).sum())
    for i in range(3):
        table = [np.bincount(np.array(rows)[:, i], minlength=n + 1) for rows in (fresh, moved)]
        keep = np.add(*table) > 20
        both = np.stack([np.append(row[keep], row[~keep].sum()) for row in table])
        assert stats.chi2_contingency(both[:, both.sum(axis=0) > 0]).pvalue > LEVEL
    assert np.mean(near) < 12  # the release does hold the counts: independent ones are farther


def test_simulated_draws_have_the_probabilities_of_the_weights() -> None:
    for prior, counts, exponent in (((1.0, 2.0, 0.5), (3, 7, 2), 4.0), ((1.0,) * 4, (0, 0, 2, 2), 1.0)):
        law = ExponentialMechanism(Posteriors(prior, sum(counts)), 0.2, exponent, 70)
        tables, own, rng = tables_of(law), np.array(counts), np.random.default_rng(9)
        rate, out = rate_at(tables, own), np.empty(len(prior), dtype=np.int64)
        assert rate == law.rate(counts)
        every = {c: i for i, c in enumerate(map(tuple, states(sum(counts), len(prior)).tolist()))}
        weights = law.weights(counts)
        seen = np.zeros(len(every))
        for _ in range(20_000):
            own_weight = draw_released(tables, own, rate, rng, out)
            place = every[tuple(out.tolist())]
            assert own_weight == weights[place]
            seen[place] += 1
        expected = 20_000 * weights / weights.sum()
        assert p_value(seen, expected) > 1e-6
        distances = errors_of(tables, np.repeat(own[None], 4000, axis=0), rng)
        apart = np.array([oracle.hellinger(prior, counts, c) for c in every])
        mean = float(weights @ apart / weights.sum())
        assert abs(distances.mean() - mean) < LIMIT * distances.std() / math.sqrt(4000)


def test_a_chain_goes_on_from_a_snapshot_with_the_same_draws() -> None:
    for case, listed in (("two", True), ("three", False), ("laplace of three", False)):
        model = Multinomial(CASES[case][0], list_counts=listed)
        whole = model.make_chain(np.random.default_rng(3))
        whole.keep(2, 5)
        whole.proceed(45)
        first = model.make_chain(np.random.default_rng(3))
        first.keep(2, 5)
        first.proceed(18)
        before, state = first.take(), first.snapshot()
        second = model.make_chain(np.random.default_rng(4))
        second.restore(state)
        second.proceed(45)
        after, wanted = second.take(), whole.take()
        for name, (_, values) in wanted.items():
            np.testing.assert_array_equal(np.concatenate([before[name][1], after[name][1]]), values)


SPEC: dict[str, Any] = {
    "model": {"kind": "multinomial"},
    "sampler": {"iterations": 2000, "burn_in": 0, "chains": 2, "seed": 5},
}


def test_a_released_posterior_from_privatize_to_summary(tmp_path: Path) -> None:
    section = {
        "kind": "posterior",
        "method": "hellinger",
        "prior": [1, 1, 1],
        "epsilon": 4.0,
        "delta": 1e-5,
    }
    made = from_spec(PosteriorMechanism.model_validate(section), 1, 20, ("x",), [("a", "b", "c")])
    release = made.release_of_counts([4, 6, 10], np.random.default_rng(1))
    write_release(tmp_path / "r.h5", release)
    spec = {
        **SPEC,
        "mechanism": section,
        "data": {"path": "d.csv", "column": "x", "categories": ["a", "b", "c"]},
    }
    dpmix.fit(spec, tmp_path / "r.h5", tmp_path / "c.h5", quiet=True)
    dpmix.fit(spec, tmp_path / "r.h5", tmp_path / "again.h5", quiet=True)
    assert_same(tmp_path / "c.h5", tmp_path / "again.h5")
    summary = dpmix.summarize(tmp_path / "c.h5", tmp_path / "s.h5", report=tmp_path / "s.html")
    assert "<b>count[c]</b> the confidential number of records" in (tmp_path / "s.html").read_text()
    assert list(summary.parameters) == [
        *(f"p[{name}]" for name in "abc"),
        *(f"count[{name}]" for name in "abc"),
        "log_likelihood",
    ]
    assert summary.distributions[""].at == ("a", "b", "c")
    assert "was released by an exponential mechanism on the Hellinger" in summary.provenance.guarantee
    drawn = predictive_records(tmp_path / "c.h5", tmp_path / "p.csv", quiet=True)
    assert drawn.labels == (("a", "b", "c"),) and len(drawn.values) == 20
    assert set((tmp_path / "p.csv").read_text("utf-8").split()) <= {"category", "a", "b", "c"}


def test_half_the_prior_raises_shares_by_what_closed_forms_say() -> None:
    counts, rng = np.array([600.0, 300.0, 100.0] + [0.0] * 21), np.random.default_rng(3)
    for prior in (0.5, 1.0, 2.0):
        p = rng.dirichlet(counts + prior, 20_000)
        less, more = ((counts + a) / (counts + a).sum() for a in (prior / 2, prior))
        weighed = prior * np.log(p).sum(axis=1)
        assert raised(p[:, 0], weighed) == pytest.approx(float(less[0] - more[0]) / p[:, 0].std(), abs=0.06)
        assert raised(p[:, 23], weighed) < 0.0
    assert raised(np.ones(4), np.arange(4.0)) == 0.0


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [((600, 310, 95, *(-4, 7, -1, 3, 0, -6, 2) * 3), "with care"), ((45, 37, 40, 49, 36, 43) * 4, "usable")],
)
def test_a_prior_that_fills_empty_categories_is_told(
    counts: tuple[int, ...], verdict: str, tmp_path: Path
) -> None:
    # in ten releases of a table like the first the largest share was in three of nine 90% intervals
    release = noisy((1.0,) * 24, 1000, counts, 4.0, "geometric")
    dpmix.fit(SPEC, release, tmp_path / "c.h5", quiet=True)
    summary = dpmix.summarize(tmp_path / "c.h5", quiet=True)
    agreeing = {name: replace(scalar, rhat=1.0) for name, scalar in summary.parameters.items()}
    found = replace(summary, parameters=agreeing).verdict
    assert found.answer == verdict
    told = [text for text in summary.warnings if text.startswith("The prior, as if of 24 records, takes")]
    assert len(told) == (verdict == "with care")
    if told:
        assert "takes from p[1" in told[0] and "see what half of model.prior gives." in told[0]


def test_specs_that_do_not_go_with_the_release_are_refused() -> None:
    release = CASES["two"][0]

    def refused(error: type[Exception], release: Release = release, **changes: Any) -> str:
        with pytest.raises(error) as caught:
            spec = load_spec({**SPEC, **changes})
            build(spec, find_release(spec, release)[0])
        return str(caught.value)

    model = {"kind": "multinomial", "prior": [1, 1, 1]}
    assert refused(SpecError, model=model).startswith("model.prior: has 3 entries, but the release is of 2")
    assert "model.prior[0]: 0 must be greater than 0" in refused(SpecError, model={**model, "prior": [0, 1]})
    latent = {**SPEC["sampler"], "latent": "metropolis"}
    assert refused(SpecError, sampler=latent).startswith("sampler.latent: metropolis is for latent records")
    stated = {"kind": "posterior", "prior": [1, 1], "epsilon": 2.0, "delta": 1e-6, "calibration": "theorem"}
    assert build(load_spec({**SPEC, "mechanism": stated}), release).listed is not None
    for change, text in (
        ({"prior": [1, 2]}, "mechanism.prior: [1.0, 2.0], but the release was made with [1.0, 1.0]"),
        ({"epsilon": 1.0}, "mechanism.epsilon: 1, but the release was made with epsilon = 2"),
        ({"delta": 1e-7}, "mechanism.delta: 1e-07, but the release was made with delta = 1e-06"),
        ({"n": 13}, "mechanism.n: 13, but the release was made with 12"),
        ({"calibration": "certified"}, "mechanism.calibration: certified, but the release was made with"),
    ):
        assert refused(SpecError, mechanism={**stated, **change}).startswith(text)
    other = {"kind": "posterior", "prior": [1, 1], "epsilon": 2.0, "method": "laplace"}
    assert refused(SpecError, mechanism=other).startswith(
        "mechanism.method: laplace, but the release was made"
    )
    huge = hellinger((1e10, 1.0), (3, 9))
    assert refused(DataError, huge).startswith("the release cannot be of this mechanism: the entries of the")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("counts", "epsilon"), [((300_000, 700_000), 0.8), ((300_000, 700_000), 0.02), ((2000, 5000, 3000), 0.8)]
)
def test_many_records(counts: tuple[int, ...], epsilon: float) -> None:
    section = PosteriorMechanism(
        kind="posterior", prior=(1.0,) * len(counts), epsilon=epsilon, delta=1e-8, calibration="theorem"
    )
    release = from_spec(section, 1, sum(counts), ("x",)).release_of_counts(counts, np.random.default_rng(1))
    chain = Multinomial(release).make_chain(np.random.default_rng(2))
    draws = chain.run(1000, skip=200)
    assert np.isfinite(draws["p"]).all() and (draws["count"].sum(axis=1) == sum(counts)).all()
    if epsilon == 0.8:
        assert (np.abs(np.median(draws["count"], axis=0) - counts) < 40).all()


def run(*arguments: Any) -> int:
    return exit_codes.run(commands.app, [str(argument) for argument in arguments])


def test_every_method_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.csv").write_text("x\n" + "no\n" * 13 + "yes\n" * 7, "utf-8")
    for method in ("laplace", "geometric", "hellinger"):
        section = {"kind": "posterior", "prior": [1, 1], "epsilon": 1.0, "method": method, "n": 20}
        section |= {"delta": 1e-6} if method == "hellinger" else {}
        data = {"path": "d.csv", "column": "x", "categories": ["no", "yes"]}
        (tmp_path / "spec.yaml").write_text(yaml.dump({**SPEC, "data": data, "mechanism": section}), "utf-8")
        options = ["--force", "--quiet"]
        assert run("privatize", tmp_path / "spec.yaml", "-o", tmp_path / "r.h5", *options) == 0
        fit = ["fit", tmp_path / "spec.yaml", "-o", tmp_path / "c.h5", "--release", tmp_path / "r.h5"]
        assert run(*fit, "--dry-run", "--force") == 0
        assert "given 2 parameters of a posterior of 20 records" in capsys.readouterr().out
        assert run(*fit, *options) == 0
        assert run("summarize", tmp_path / "c.h5", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert "p[no]" in found["parameters"] and found["acceptance"] == {"mean": None, "bound": None}
        # the same release as a table, the mechanism stated
        values = read_release(tmp_path / "r.h5").values[:, 0]
        (tmp_path / "z.csv").write_text("z\n" + "".join(f"{value!r}\n" for value in values.tolist()), "utf-8")
        stated = {**SPEC, "mechanism": section, "release": {"path": "z.csv"}}
        (tmp_path / "stated.yaml").write_text(yaml.dump(stated), "utf-8")
        assert run("fit", tmp_path / "stated.yaml", "-o", tmp_path / "s.h5", *options) == 0
        with h5py.File(tmp_path / "c.h5") as one, h5py.File(tmp_path / "s.h5") as other:
            pair = [file["posterior/count"][...] for file in (one, other)]
        np.testing.assert_array_equal(*pair)
        assert run("summarize", tmp_path / "s.h5") == 0
        assert "Categories, with 95% intervals" in capsys.readouterr().out


def test_what_cannot_be_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    section = {"kind": "posterior", "prior": [1, 1], "epsilon": 1.0, "method": "geometric", "n": 20}
    spec = {**SPEC, "mechanism": section, "release": {"path": "z.csv"}}
    (tmp_path / "spec.yaml").write_text(yaml.dump(spec), "utf-8")

    def refused(values: str, *overrides: str) -> tuple[int, str]:
        (tmp_path / "z.csv").write_text(f"z\n{values}\n", "utf-8")
        sets = [part for override in overrides for part in ("--set", override)]
        code = run("fit", tmp_path / "spec.yaml", "-o", tmp_path / "c.h5", *sets)
        err = capsys.readouterr().err
        assert err.startswith("dpmix: error: ") and err.count("\n") == 1, err
        return code, err

    of_twenty = "is not the prior plus counts of 20 records"
    hellinger_too = ("mechanism.method=hellinger", "mechanism.delta=1e-6")
    for values, overrides, code, text in (
        ("0.5\n21.5", (), 3, of_twenty),  # a count below 0
        ("5\n18", (), 3, of_twenty),  # a sum of 21
        ("5\n16\n1", (), 3, "has not one number for each of the 2 entries of the prior"),
        ("5.5\n16.5", hellinger_too, 3, "is not the prior plus whole counts, as method hellinger gives"),
        ("5.5\n16.5", (), 3, "is not the prior plus whole counts, as method geometric gives"),
        ("5\nmany", (), 3, "is not a number"),
        ("5\n17", ("mechanism.prior=[0, 1]",), 2, "mechanism.prior[0]: 0 must be greater than 0"),
        ("5\n17", ("mechanism.prior=[-1, 1]",), 2, "mechanism.prior[0]: -1 must be greater than 0"),
        ("5\n17", ("mechanism.method=hellinger", "mechanism.delta=0"), 2, "mechanism.delta: 0 must be"),
        ("5\n17", ("mechanism.method=hellinger",), 2, "mechanism.delta: missing beside epsilon"),
        ("5\n17", ("mechanism.n=null",), 2, "mechanism.n: missing"),
        ("5\n17", ("mechanism.n=0",), 2, "mechanism.n: 0 must be"),
        ("5\n17", ("mechanism.calibration=theorem",), 2, "mechanism.calibration: is for method hellinger"),
        ("5\n17", (*hellinger_too, "mechanism.epsilon=60"), 4, "mechanism.epsilon: method hellinger takes"),
        ("5\n17", ("model.prior=[1, 2, 3]",), 2, "model.prior: has 3 entries, but the release is of 2"),
        ("5\n17", ("model.prior=[1, 0]",), 2, "model.prior[1]: 0 must be greater than 0"),
        ("5\n17\n1", ("mechanism.prior=[1, 1, 1]",), 3, "does not hold its noisy counts"),
        ("5\n17", ("sampler.kind=neal8",), 2, "sampler.kind: neal8 is for mixtures, and not for multinomial"),
    ):
        found = refused(values, *overrides)
        assert found[0] == code and text in found[1], found
    assert not (tmp_path / "c.h5").exists()


def test_a_file_that_describes_no_law_is_refused(tmp_path: Path) -> None:
    for change, text in (
        ({"bits": 0}, "mechanism does not state its bits"),
        ({"bits": 5000}, "mechanism does not state its bits"),
        ({"requested": {}}, "mechanism does not state the epsilon that was requested"),
        ({"gamma": -1.0}, "mechanism does not state its gamma"),
        ({"prior": [1.0, 0.0]}, "mechanism does not state its prior"),
        ({"n": 13}, "values is not the prior plus counts of 13 records"),
    ):
        release = hellinger((1.0, 1.0), (3, 9))
        write_release(tmp_path / "r.h5", release, force=True)
        with h5py.File(tmp_path / "r.h5", "a") as file:
            file["release"].attrs["mechanism"] = json.dumps(release.mechanism.stated() | change)
        with pytest.raises(DataError) as caught:
            dpmix.fit(SPEC, tmp_path / "r.h5", tmp_path / "c.h5", quiet=True)
        assert text in str(caught.value)
