"""Numbers as people write them."""

from __future__ import annotations

import pytest

from dpmix.numerics.in_words import brief, plainly


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [
        (1e4, 4, "10,000"),
        (4812.3, 2, "4800"),
        (4812.3, 4, "4812"),
        (-1_234_567.0, 3, "-1,230,000"),
        (0.00001234, 3, "1.23e-05"),
        (1e16, 3, "1e+16"),
        (float("inf"), 3, "inf"),
    ],
)
def test_large_numbers_have_no_exponent(value: float, digits: int, words: str) -> None:
    assert brief(value, digits) == words


def test_dates_stay_dates() -> None:
    assert plainly("2020-01-31") == "2020-01-31"
    assert plainly("1.5e+05", "") == "150000"
