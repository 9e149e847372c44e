"""Simulation-based calibration (scripts/verify): its bands, its cases, and what it tells apart."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpmix.spec.messages import known_kinds
from scripts.verification.__main__ import main
from scripts.verification.calibrate import calibrate, p_values
from scripts.verification.cases import all_cases, covering, kinds_of
from scripts.verification.laws import Multinomial, Truth
from scripts.verification.page import doubtful, draw, write
from tests.oracles.ecdf import band, coverage, p_value

RIGHT = "multinomial, 3 categories / posterior, geometric / data_augmentation"
APPROXIMATE = {"replicated", "abc", "normal_approximation", "bootstrap"}


class Shifted(Multinomial):
    """Probabilities from another prior than that of the model."""

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Truth, np.ndarray]:
        """Draw from a prior with more of the first category."""
        return Multinomial((5.0 * self.prior[0], *self.prior[1:])).draw(rng, n)


@pytest.mark.parametrize(("n", "points"), [(50, 20), (200, 100)])
def test_band_covers_uniform_ranks(n: int, points: int) -> None:
    gamma, low, high = band(0.95, n, points)
    rng = np.random.default_rng(1)
    counts = np.cumsum(rng.multinomial(n, np.full(points, 1 / points), size=20_000), axis=1)[:, :-1]
    inside = np.mean(np.all((counts >= low) & (counts <= high), axis=1))
    truth = coverage(gamma, n, points)
    assert truth == pytest.approx(0.95, abs=0.01)
    assert inside == pytest.approx(truth, abs=4 * np.sqrt(0.05 * 0.95 / 20_000))


def test_p_values_of_uniform_ranks_are_uniform_and_of_others_small() -> None:
    rng = np.random.default_rng(2)
    uniform = [p_value(rng.integers(0, 50, 120), 50) for _ in range(400)]
    assert stats.kstest(uniform, "uniform", alternative="greater").pvalue > 1e-4
    assert 0.3 < np.mean(uniform) < 0.7
    assert p_value(np.minimum(rng.integers(0, 50, 120), rng.integers(0, 50, 120)), 50) < 1e-6
    overconfident = np.where(rng.random(120) < 0.5, rng.integers(0, 10, 120), rng.integers(40, 50, 120))
    assert p_value(overconfident, 50) < 1e-6


def test_every_accepted_combination_is_a_case_and_the_covering_has_everything() -> None:
    cases = all_cases()
    assert len({case.name for case in cases}) == len(cases)
    few = covering(cases)
    assert len(few) < len(cases) / 6
    assert set().union(*map(kinds_of, few)) == set().union(*map(kinds_of, cases))
    models = {case.spec["model"]["kind"] for case in cases}
    assert models == {*known_kinds("model.kind")} - {
        "custom"
    }  # tests/unit/models/test_models_custom.py has that
    kinds = {case.spec["sampler"].get("kind", "data_augmentation") for case in cases}
    assert kinds == {*known_kinds("sampler.kind")} - APPROXIMATE - {"auto"}  # which names one of the others


def test_calibration_tells_a_wrong_prior() -> None:
    (case,) = (case for case in all_cases() if case.name == RIGHT)
    ranks = calibrate(case, 80, 1)["ranks"]
    found = p_values(ranks)
    assert set(found) == {"p[0]", "p[1]", "count[0]", "count[1]"}
    assert min(found.values()) > 1e-4
    wrong = dataclasses.replace(case, law=Shifted(case.law.prior))
    assert min(p_values(calibrate(wrong, 80, 1)["ranks"]).values()) < 1e-6


DEFAULTS = {case.name: case for case in all_cases() if "default prior" in case.name}
CHEAP = "mixture: normal, default prior / laplace / neal8"


def test_default_priors_are_those_of_the_law() -> None:
    """A spec that states no prior, under the law that methods, section 15, states; then the old defaults."""
    case = DEFAULTS[CHEAP]
    assert set(case.spec["model"]) == {"kind"}
    found = p_values(calibrate(case, 40, 1)["ranks"])
    assert {"concentration", "clusters", "parameter 2 of the first", "measure at 0.0"} <= set(found)
    assert min(found.values()) > 1e-4
    old = {"kind": "mixture", "base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}}
    planted = dataclasses.replace(case, spec={**case.spec, "model": old})
    assert min(p_values(calibrate(planted, 40, 1)["ranks"]).values()) < 1e-6


@pytest.mark.matrix
@pytest.mark.parametrize("name", [name for name in DEFAULTS if name != CHEAP])
def test_other_default_priors_are_those_of_the_law(name: str) -> None:
    found = p_values(calibrate(DEFAULTS[name], 60, 1)["ranks"])
    assert min(found.values()) > 1e-2 / 60


def test_the_page_says_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (case,) = (case for case in all_cases() if case.name == RIGHT)
    rng = np.random.default_rng(4)
    uniform = {case.name: {"ranks": {"p[0]": rng.integers(0, 100, 200).tolist()}}}
    exact = {
        "tests/test_a.py::test_b[c]": {"outcome": "passed", "gap": 2.5, "gaps": 7},
        "tests/test_a.py::test_b[d]": {"outcome": "passed", "gap": 1.5, "gaps": 7},
        "tests/test_a.py::test_plain": {"outcome": "passed"},
    }
    assert write(tmp_path / "page.md", [case], uniform, exact, {"commit": "abc"})
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "commit abc" in text
    assert "| `test_a.py::test_b` | 2 | 0 | 14 | 2.5 |  |  |" in text
    draw(tmp_path / "ranks.png", [case], uniform)
    assert (tmp_path / "ranks.png").stat().st_size > 1000
    wrong = {case.name: {"ranks": {"p[0]": rng.integers(0, 30, 200).tolist()}}}
    assert not write(tmp_path / "page.md", [case], wrong, exact, {})
    assert not write(tmp_path / "page.md", [case], uniform, exact, {}, again=wrong)
    assert (doubtful(wrong), doubtful(uniform)) == ([RIGHT], [])
    assert write(tmp_path / "page.md", [case], uniform, exact, {}, again=uniform)
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "(1) were simulated again, with another\nseed and 200 replicates: of 1 quantities 0 leave" in text
    exact["tests/test_a.py::test_plain"]["outcome"] = "failed"
    assert not write(tmp_path / "page.md", [case], uniform, exact, {})
    assert main(["--only", RIGHT, "--list"]) == 0
    assert capsys.readouterr().out.strip() == RIGHT
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
