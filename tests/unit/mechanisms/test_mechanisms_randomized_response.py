"""Randomized response: its guarantee by all pairs of categories as fractions, releases against the law."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import dpmix
from dpmix.errors import DataError, PrivacyError, SpecError
from dpmix.laws.every import LawError, expect, law_of
from dpmix.laws.law_base import fraction_of
from dpmix.mechanisms.curators.by_kind import from_spec, stated
from dpmix.mechanisms.randomized_response.curator import RandomizedResponse
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.mechanisms.randomized_response.section import RandomizedResponseMechanism
from dpmix.privacy.conversions import response_rho

LISTED = (("a", "b", "c"), ("u", "v"))


def made(categories: Any = LISTED, **keys: Any) -> RandomizedResponse:
    section = RandomizedResponseMechanism(kind="randomized_response", **keys)
    found = from_spec(section, len(categories), categories=categories)
    assert isinstance(found, RandomizedResponse)
    return found


def table(size: int, ratio: Fraction) -> list[list[Fraction]]:
    u, v = ratio.numerator, ratio.denominator
    return [[Fraction(u if i == j else v, u + (size - 1) * v) for j in range(size)] for i in range(size)]


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 7.0])
def test_no_two_records_have_a_ratio_above_the_power_of_epsilon(epsilon: float) -> None:
    found = made(epsilon=epsilon)
    assert [response.total for response in found.responses] == [
        found.ratio.numerator + (len(names) - 1) * found.ratio.denominator for names in LISTED
    ]
    tables = [table(len(names), found.ratio) for names in LISTED]
    records = list(itertools.product(range(3), range(2)))

    def chance(record: tuple[int, int], answer: tuple[int, int]) -> Fraction:
        return tables[0][record[0]][answer[0]] * tables[1][record[1]][answer[1]]

    worst = max(
        chance(one, answer) / chance(other, answer)
        for one in records
        for other in records
        for answer in records
    )
    with mpmath.workdps(60):
        actual = mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)
        recorded = found.guarantee.epsilon
        assert recorded is not None and actual <= recorded <= epsilon
        assert float(epsilon - actual) < 1e-9 * epsilon


def test_rho_of_two_categories_is_that_of_randomized_response() -> None:
    found = made((("no", "yes"),), epsilon=1.5).guarantee
    assert found.rho == pytest.approx(response_rho(1.5), rel=1e-9)
    both = made((("no", "yes"),) * 2, epsilon=3.0).guarantee
    assert both.rho is not None and both.rho == pytest.approx(2 * response_rho(1.5), rel=1e-9)


def test_the_noise_library_agrees() -> None:
    """OpenDP's map of the same chance of the truth."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    for size in (2, 5):
        found = made((tuple("abcdefgh"[:size]),), epsilon=1.0)
        truth = float(found.ratio) / (float(found.ratio) + size - 1.0)
        meas = dp.m.make_randomized_response(list("abcdefgh"[:size]), truth)
        assert meas.map(1) == pytest.approx(found.guarantee.epsilon, rel=1e-12)


def test_releases_have_the_law_of_the_table() -> None:
    """Operating-system noise, two columns: false alarm below 1e-8."""
    found, n = made(epsilon=2.0, order="public"), 20_000
    values = np.repeat([[0.0, 1.0], [2.0, 0.0]], n, axis=0)
    release, _ = found.privatize(values, ("x", "y"))
    for part, record in zip(release.values.reshape(2, n, 2), ((0, 1), (2, 0)), strict=True):
        for column, (own, names) in enumerate(zip(record, LISTED, strict=True)):
            seen = np.bincount(part[:, column].astype(int), minlength=len(names))
            expected = n * np.array(table(len(names), found.ratio)[own], dtype=float)
            assert stats.chisquare(seen, expected).pvalue > 1e-9
    law = expect(release.mechanism, RandomizedResponseLaw)
    assert fraction_of(law.ratio) == found.ratio and law.categories == LISTED == release.labels
    assert json.loads(json.dumps(law.stated())) == law and law.problem(release.values) is None
    assert (release.n, release.trust, release.order) == (2 * n, "local", "public")
    one = law.of_columns([1])
    assert one.categories == (("u", "v"),) and one.problem(release.values[:, 1:]) is None
    chances = one.chances(np.array([0.25, 0.75]))
    exact = np.array([0.25, 0.75]) @ np.array(table(2, found.ratio), dtype=float)
    np.testing.assert_allclose(chances, exact, rtol=1e-14)


def test_simulations_are_reproducible_and_shuffled_releases_are() -> None:
    found = made(epsilon=12.0)
    values = np.column_stack([np.repeat([0.0, 1.0, 2.0], 100), np.zeros(300)])
    one, two = (found.simulate(values, ("x", "y"), np.random.default_rng(4))[0] for _ in range(2))
    np.testing.assert_array_equal(one.values, two.values)
    assert (one.private, one.simulated, one.order) == (False, True, "public")
    mixed = found.privatize(values, ("x", "y"))[0]
    assert mixed.order == "shuffled" and (mixed.values[:100, 0] != 0).sum() > 20  # false alarm below 1e-15


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(SpecError, match=r"data\.categories: missing"):
        from_spec(RandomizedResponseMechanism(kind="randomized_response", epsilon=1.0), 1)
    with pytest.raises(SpecError, match="with one category tells nothing"):
        made((("a",),), epsilon=1.0)
    with pytest.raises(PrivacyError, match="the ratio of their chances being 1"):
        made(epsilon=1e-20)
    for wrong in ([[0.0, 2.0]], [[-1.0, 0.0]], [[0.5, 0.0]], [[math.nan, 0.0]]):
        with pytest.raises(PrivacyError, match="numbers of the public categories only"):
            made(epsilon=1.0).privatize(np.array(wrong), ("x", "y"))
    law = made(epsilon=1.0).describe()
    for change, said in (
        ({"ratio": "1/1"}, "does not state its ratio"),
        ({"categories": [["a", "a"]]}, "does not list the categories"),
        ({"categories": []}, "does not list the categories"),
    ):
        with pytest.raises(LawError, match=said):
            law_of(law | change)
    assert "is no number of a category, from 0 on: record 1" in str(
        law_of(law).problem(np.array([[3.0, 0.0]]))
    )


def spec_of(path: Path, **more: Any) -> dict[str, Any]:
    listed = {"g": list("abc"), "h": ["u", "v"]}
    return {
        "data": {"path": str(path), "columns": ["g", "h"], "categories": listed} | more,
        "mechanism": {"kind": "randomized_response", "epsilon": 2.0},
    }


def test_from_a_file_to_a_release_and_back(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("g,h\n" + "a,u\nc,v\nb,v\n" * 40)
    release = dpmix.privatize(spec_of(path), tmp_path / "r.h5", quiet=True)
    assert release.values.shape == (120, 2) and release.values.max() <= 2
    told = dpmix.calibrate(spec_of(path), quiet=True)
    assert told["epsilon"] == release.epsilon <= 2.0 and told["rho"] == release.rho
    own = stated(RandomizedResponseMechanism(kind="randomized_response", epsilon=2.0), 2, categories=LISTED)
    assert own[1].epsilon == release.epsilon and own[0].get("ratio") == release.mechanism["ratio"]
    path.write_text("g,h\n" + "a,u\nd,v\n" * 3)
    with pytest.raises(DataError, match="none of data.categories"):
        dpmix.privatize(spec_of(path), quiet=True)
    with pytest.raises(SpecError, match=r"data\.categories: must list the public categories of every column"):
        dpmix.privatize(spec_of(path, categories={"g": ["a", "b"]}), quiet=True)


def test_answers_collected_elsewhere_are_read(tmp_path: Path) -> None:
    (tmp_path / "z.csv").write_text("g\n" + "0\n2\n1\n" * 5)
    section = {"path": str(tmp_path / "z.csv"), "columns": ["g"], "categories": ["a", "b", "c"]}
    spec = {"release": section, "mechanism": {"kind": "randomized_response", "epsilon": 1.0}}
    from dpmix.api.release_of import load_stated_release
    from dpmix.spec import load_spec

    release = load_stated_release(load_spec(spec))
    assert release.labels == (("a", "b", "c"),) and release.n == 15
    (tmp_path / "z.csv").write_text("g\n0\n3\n")
    with pytest.raises(DataError, match=r"a cell in record 2 .* may hold a, b, c, or codes from 0 to 2"):
        load_stated_release(load_spec(spec))
