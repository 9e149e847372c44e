"""Figures of columns that lie far from 0 have the digits that tell them apart, however many they share."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pytest

import dpmix
from dpmix.numerics.in_words import figures
from dpmix.spec.days import Day, placed
from tests.helpers.chains_files import BASE, a_spec, states_of_mixture, write_chains
from tests.helpers.seeds import rng_of

if TYPE_CHECKING:
    from pathlib import Path

START = 1_700_000_000.0  # seconds since 1970: a day in November of 2023


@pytest.mark.parametrize(
    ("value", "step", "words"),
    [
        (2.5, 0.01, "2.5"),
        (1234.5678, 10.0, "1235"),
        (1_700_043_217.4, 100.0, "1700043200"),
        (1_700_043_217.4, 0.02, "1700043217.40"),
        (-1_700_043_217.4, 5.0, "-1700043217"),
        (1_700_043_217.4, 0.0, "1.7e+09"),
        (3e-12, 1e-14, "3e-12"),
        (2.6697e-34, 1e-118, "2.67e-34"),
        (math.inf, 1.0, "inf"),
        (math.nan, 1.0, "nan"),
        (Day(19_000.0), 1e-3, "2022-01-08"),
    ],
)
def test_a_place_has_the_digits_that_a_step_needs(value: float, step: float, words: str) -> None:
    assert placed(value, step) == words


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([0.5, 20.0], ["0.5", "20"]),
        ([1_700_043_200.0], ["1700043200"]),
        ([10_000_000_000_002.0, 10_000_000_000_002.25], ["10000000000002", "10000000000002.25"]),
        ([0.1 + 0.2], ["0.3"]),
        ([1e300, 2e300], ["1e+300", "2e+300"]),
        ([], []),
    ],
)
def test_names_give_thresholds_back(numbers: list[float], words: list[str]) -> None:
    assert figures(numbers) == words


def test_a_summary_of_seconds_since_1970_can_be_read(tmp_path: Path) -> None:
    rng = rng_of("far from zero")
    chains = [states_of_mixture(60, rng, centres=(20_000.0, 43_000.0, 60_000.0)) for _ in range(2)]
    for chain in chains:
        chain["mean"] += START
        chain["variance"] *= 1e6
    domain = [[START, START + 86_400.0]]
    base = type(BASE)(START + 43_200.0, 0.16, 3.0, 1.5e8)
    path = write_chains(
        tmp_path / "c.h5",
        chains,
        spec=a_spec(
            sampler__iterations=1060,
            mechanism__domain=domain,
            model__base={"kind": "nig", "mu0": START + 43_200.0, "lambda": 0.16, "a": 3.0, "b": 1.5e8},
        ),
        base=base,
        observed=START + rng.uniform(0.0, 86_400.0, 200),
        attrs={
            "columns": json.dumps(["t"]),
            "mechanism": json.dumps({"kind": "laplace", "scale": [900.0], "domain": domain}),
            "kernel": "normal",
        },
        constants={"noise_scale": 900.0},
    )
    tails = "summary.tails=[1700043200, 1700043200.25]"
    summary = dpmix.summarize(path, tmp_path / "s.h5", overrides=[tails])
    found = summary.to_json()["parameters"]
    assert {"tail[1700043200]", "tail[1700043200.25]"} <= set(found)
    lines = {line.split()[0]: line.split()[1:] for line in summary.to_text().splitlines() if line[:1].strip()}
    for name in ("mean", "quantile[0.25]", "quantile[0.5]", "quantile[0.75]"):
        row = found[name]
        low, high = (row["quantiles"][level] for level in ("0.025", "0.975"))
        assert high - low < 1e5
        for shown, value in zip((0, 2, 3), (row["mean"], low, high), strict=True):
            assert float(lines[name][shown]) == pytest.approx(value, abs=0.26 * (high - low) + 1.0)
        assert float(lines[name][3]) > float(lines[name][2])
    assert "highest at 17000" in " ".join(summary.to_text().split())
    assert "1.7e+09" not in summary.to_text()
