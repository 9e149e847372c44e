"""The square wave: its guarantee by all pairs of rows of its table as fractions, releases against it."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from dpmix.errors import PrivacyError, SpecError
from dpmix.laws.every import LawError, expect, law_of
from dpmix.laws.law_base import fraction_of
from dpmix.mechanisms.curators.by_kind import from_spec, stated
from dpmix.mechanisms.square_wave.curator import SquareWave, reach_of
from dpmix.mechanisms.square_wave.law import SquareWaveLaw
from dpmix.mechanisms.square_wave.section import SquareWaveMechanism

DOMAIN = ((-1.0, 3.0),)


def made(domain: Any = DOMAIN, **keys: Any) -> SquareWave:
    found = from_spec(SquareWaveMechanism(kind="square_wave", domain=domain, **keys), len(domain))
    assert isinstance(found, SquareWave)
    return found


def table(cells: int, reach: int, ratio: Fraction) -> list[list[Fraction]]:
    """Chances of all outputs of every cell, from the definition alone (methods, section 13)."""
    u, v = ratio.numerator, ratio.denominator
    total = (2 * reach + 1) * u + (cells - 1) * v
    return [
        [Fraction(u if cell <= j <= cell + 2 * reach else v, total) for j in range(cells + 2 * reach)]
        for cell in range(cells)
    ]


def below_power(ratio: Fraction, epsilon: Fraction) -> bool:
    mpmath.iv.dps = 60
    log = mpmath.iv.log(mpmath.iv.mpf(ratio.numerator) / mpmath.iv.mpf(ratio.denominator))
    return bool(log.b <= (mpmath.iv.mpf(epsilon.numerator) / mpmath.iv.mpf(epsilon.denominator)).a)


@pytest.mark.parametrize(
    "keys",
    [
        {"cells": 2, "epsilon": 1.0},
        {"cells": 9, "epsilon": 0.01},
        {"cells": 16, "epsilon": 1.0},
        {"cells": 16, "epsilon": 9.0},
        {"cells": 13, "epsilon": 3.0, "width": 0.45},
        {"cells": 8, "epsilon": 2.0, "width": 0.0},
    ],
)
@pytest.mark.parametrize("columns", [1, 2])
def test_no_pair_of_rows_has_a_ratio_above_the_power_of_epsilon(keys: dict[str, Any], columns: int) -> None:
    found = made(DOMAIN * columns, **keys)
    rows = table(found.cells, found.reach, found.ratio)
    assert all(sum(row) == 1 for row in rows)
    worst = max(p / q for one in rows for other in rows for p, q in zip(one, other, strict=True))
    assert worst == found.ratio and below_power(worst, Fraction(keys["epsilon"]) / columns)
    recorded = found.guarantee.epsilon
    assert recorded is not None and recorded <= keys["epsilon"]
    with mpmath.workdps(40):
        actual = columns * mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)
        assert actual <= recorded <= float(actual) * (1 + 1e-15)
        assert float(keys["epsilon"] - actual) < 1e-9 * keys["epsilon"]
    # the table of the response that draws is this table
    response = found.response
    assert (response.near, response.far, response.ratio) == (
        2 * found.reach + 1,
        found.cells - 1,
        found.ratio,
    )


def test_widths_are_as_published() -> None:
    """Half-widths b of the continuous square wave; from about 9.02 on one cell alone is near."""
    for epsilon in (1e-6, 0.1, 0.5, 1.0, 2.0, 4.0, 9.0):
        with mpmath.workdps(40):
            e = mpmath.mpf(epsilon)
            half = (e - 1 + mpmath.exp(-e)) / (2 * (mpmath.exp(e) - 1 - e))
            assert made(epsilon=epsilon).reach == min(round(float(half * 1024)), 511)
    assert made(epsilon=9.01).reach == 1 and made(epsilon=9.03).reach == 0
    assert made(epsilon=1e-6).reach == 511 and made(epsilon=1e-6, cells=9).reach == 4
    assert made(epsilon=1.0, width=0.25).reach == 256 and made(epsilon=1.0, width=0.0).reach == 0
    assert made(DOMAIN * 2, epsilon=2.0).reach == made(epsilon=1.0).reach  # each column's share counts


def test_releases_have_the_law_of_the_table() -> None:
    """Operating-system noise, two columns: false alarm below 1e-8."""
    found = made(DOMAIN * 2, epsilon=3.0, cells=6, order="public")
    rows, n = table(6, found.reach, found.ratio), 20_000
    values = np.repeat([[-1.0, 9.0], [-0.34, 1.0], [2.999, -5.0]], n, axis=0)
    release, clamped = found.privatize(values, ("x", "y"))
    assert clamped == (0, 2 * n)
    for part, cells in zip(release.values.reshape(3, n, 2), ((0, 5), (0, 3), (5, 0)), strict=True):
        for column, cell in enumerate(cells):
            seen = np.bincount(part[:, column].astype(int), minlength=len(rows[0]))
            assert stats.chisquare(seen, n * np.array(rows[cell], dtype=float)).pvalue > 1e-9
    law = expect(release.mechanism, SquareWaveLaw)
    assert (law.cells, law.reach, fraction_of(law.ratio)) == (6, found.reach, found.ratio)
    assert json.loads(json.dumps(law.stated())) == law and law.problem(release.values) is None
    assert (release.n, release.trust, release.columns, release.scales) == (3 * n, "local", ("x", "y"), ())
    assert (release.epsilon, release.rho) == (found.guarantee.epsilon, found.guarantee.rho)
    # replicates in floating point have it too
    draws = law.of_columns([1]).draw(np.full(n, 1.0), math.nan, np.random.default_rng(1)).astype(int)
    seen = np.bincount(draws, minlength=len(rows[0]))
    assert stats.chisquare(seen, n * np.array(rows[3], dtype=float)).pvalue > 1e-6


def test_moments_are_right_on_average_for_every_cell() -> None:
    """E u = mean of y and E v = mean of y^2 over a cell, by the table: to rounding."""
    for cells, reach, ratio in ((5, 0, Fraction(3)), (8, 3, Fraction(20, 7)), (9, 4, Fraction(11, 10))):
        law = law_of(
            {
                "kind": "square_wave",
                "cells": cells,
                "reach": reach,
                "ratio": f"{ratio.numerator}/{ratio.denominator}",
                "domain": [[10.0, 30.0]],
            }  # fmt: skip
        )
        outputs = np.arange(cells + 2 * reach, dtype=np.float64)
        single = np.array([law.moments(np.repeat(z, 2)[:, None], 0, 2, None).mean for z in outputs])  # type: ignore[union-attr]
        rows = np.array(table(cells, reach, ratio), dtype=float)
        middle = (np.arange(cells) + 0.5) / cells
        np.testing.assert_allclose(rows @ single, 10.0 + 20.0 * middle, rtol=1e-12)
        # mean(v) - mean(u)^2 + var(u)/n of two equal outputs is v - u^2
        spread = np.array([law.moments(np.repeat(z, 2)[:, None], 0, 2, None).variance for z in outputs])  # type: ignore[union-attr]
        second = spread + (single - 10.0) ** 2
        np.testing.assert_allclose(rows @ second, 400.0 * (middle**2 + 1 / (12 * cells**2)), rtol=1e-11)


def test_moments_of_a_release_are_those_of_the_records() -> None:
    """The variance too, which takes a square off: 60,000 records, within five standard errors."""
    rng = np.random.default_rng(3)
    y = 2.0 + 6.0 * rng.beta(5, 2, 60_000)
    release, _ = made(((2.0, 8.0),), epsilon=2.0).simulate(y[:, None], ("y",), rng)
    found = release.mechanism.moments(release.values, 0, release.n, None)
    assert found is not None and found.shows_spread
    assert abs(found.variance - y.var()) < 5 * found.error
    assert abs(found.mean - y.mean()) < 0.06


def test_simulations_are_reproducible_and_not_private() -> None:
    found = made(epsilon=1.0)
    values = np.linspace(-1, 3, 50)[:, None]
    one, two = (found.simulate(values, ("x",), np.random.default_rng(4))[0] for _ in range(2))
    np.testing.assert_array_equal(one.values, two.values)
    assert (one.private, one.simulated, one.order) == (False, True, "public")


def test_a_release_made_elsewhere_is_taken_at_its_word() -> None:
    for columns in (1, 3):
        spec = SquareWaveMechanism(kind="square_wave", domain=DOMAIN * columns, epsilon=2.0)
        found, guarantee = stated(spec, columns)
        own = made(DOMAIN * columns, epsilon=2.0)
        assert isinstance(found, SquareWaveLaw) and guarantee == own.guarantee
        assert (found.cells, found.reach, fraction_of(found.ratio)) == (1024, own.reach, own.ratio)
    with pytest.raises(SpecError, match=r"mechanism\.domain: 1 pairs of bounds for 3 columns"):
        stated(SquareWaveMechanism(kind="square_wave", domain=DOMAIN, epsilon=2.0), 3)
    with pytest.raises(SpecError, match=r"mechanism\.domain: missing"):
        stated(SquareWaveMechanism(kind="square_wave", epsilon=2.0), 1)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"cells": 0}, "at least 2|greater than or equal to 2"),
        ({"cells": 1}, "2"),
        ({"width": 0.5}, "0.5 of the domain to both sides is all of its 1024 cells"),
        ({"width": 0.4998}, "all of its 1024 cells"),
        ({"width": -0.1}, "0"),
        ({"width": 0.4, "cells": 4}, "all of its 4 cells"),
    ],
)
def test_cells_and_widths_that_make_no_sense_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SquareWaveMechanism(kind="square_wave", epsilon=1.0, **keys)


@pytest.mark.parametrize("cells", [2, 3, 4, 1023, 1024, 99_999, 100_000])
def test_the_refusal_names_the_widest_that_is_taken(cells: int) -> None:
    with pytest.raises(ValidationError) as refused:
        SquareWaveMechanism(kind="square_wave", epsilon=1.0, cells=cells, width=0.5)
    said = re.search(r"; give (\S+)(?: or less)?, or leave it out", str(refused.value))
    assert said is not None
    SquareWaveMechanism(kind="square_wave", epsilon=1.0, cells=cells, width=float(said[1]))
    assert reach_of(float(said[1]), cells) == (cells - 1) // 2


def test_what_cannot_be_released_is_refused() -> None:
    with pytest.raises(PrivacyError, match="the ratio of their chances being 1"):
        made(epsilon=1e-20)
    narrow = made(((1e16, 1e16 + 4),), epsilon=1.0)
    with pytest.raises(PrivacyError, match="cannot have 1024 cells"):
        narrow.privatize(np.full((2, 1), 1e16), ("x",))
    with pytest.raises(PrivacyError, match="finite values only"):
        made(epsilon=1.0).privatize(np.array([[math.nan]]), ("x",))
    with pytest.raises(PrivacyError, match="reaches over less than half"):
        SquareWave(domain=DOMAIN, cells=4, reach=2, ratio=Fraction(2))


def test_released_numbers_that_are_no_outputs_are_named() -> None:
    law = law_of({"kind": "square_wave", "cells": 4, "reach": 1, "ratio": "3/1", "domain": [[0, 1], [0, 1]]})
    good = np.array([[0.0, 5.0], [3.0, 2.0]])
    assert law.problem(good) is None
    for bad in (-1.0, 6.0, 2.5):
        values = good.copy()
        values[1, 1] = bad
        assert "no output from 0 to 5 of a square wave: record 2" in str(law.problem(values))
    assert law.disagreement(2, 3) == "has 2 pairs of bounds for 3 columns" and law.disagreement(2, 2) is None
    for ratio in ("3", "3/3", "2/3", "-3/1", "3/0", "1e3/1", "9" * 400 + "/1"):
        with pytest.raises(LawError, match="does not state its ratio as p/q"):
            law.updated(ratio=ratio)
    with pytest.raises(LawError, match="states a reach of half its cells or more"):
        law.updated(reach=2)
