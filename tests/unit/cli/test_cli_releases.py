"""Releases made elsewhere, as tables: those of every mechanism are read, and wrong ones refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_cli import outcome, refused

NORMAL = "model: {base: {mu0: 0.5, lambda: 0.1, a: 3, b: 0.1}}"
BETA = "model: {kernel: beta, base: {a_shape: 2, a_rate: 1, b_shape: 2, b_rate: 1}}"
PAIRS = "model: {kernel: multivariate_normal, base: {mu0: [0, 0], lambda: 1, nu: 4, Psi: [[1, 0], [0, 1]]}}"
WAVELET = "{kind: wavelet, levels: 1, scale: 1, domain: [0, 1]}"
BINOMIAL = "{kind: binomial, trials: 7, weight: 0.3, domain: [0, 1]}"
SQUARE = "{kind: square_wave, epsilon: 2, cells: 8, domain: [[0, 1]]}"
DRAWS = "{kind: smoothed_histogram, bins: 4, draws: 5, weight: 0.3, n: 20, domain: [0, 1]}"
COUNTS = "{kind: perturbed_histogram, bins: 4, scale: 2, n: 50, domain: [0, 1]}"
LAPLACE_2 = "{kind: laplace, scale: 1, domain: [[0, 1], [0, 1]]}"
TABLES = {
    "wavelet": ["a,b,c", "0.1,-2,3", "1,1,1"],
    "wide": ["a,b,c,d", "0.1,-2,3,4", "1,1,1,1"],
    "binomial": ["z", "0", "3", "7"],
    "draws": ["z", "0", "0.2", "0.9", "1", "0.5"],
    "counts": ["z", "3", "-2.5", "8", "40"],
    "pairs": ["a,b", "0.1,0.2", "1.5,-3", "0.5,0.5"],
    "ends": ["y", "0.5", "0"],
}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write spec and tables; return the spec's path."""
    for name, lines in TABLES.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def spec(table: str, mechanism: str, model: str = NORMAL, section: str = "release") -> Path:
        path = tmp_path / "spec.yaml"
        source = f"{section}: {{path: {table}.csv{', column: y' if section == 'data' else ''}}}"
        lines = [source, f"mechanism: {mechanism}", model, "sampler: {iterations: 6, chains: 1}"]
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return spec


@pytest.mark.parametrize(
    ("table", "mechanism", "model", "said"),
    [
        ("wavelet", WAVELET, BETA, "neal8 given 2 records of 3 released numbers each (chains 0), and keep 3"),
        (
            "binomial",
            BINOMIAL,
            BETA,
            "neal8 given 3 released values (chains 0), and keep 3 draws of each, with",
        ),
        (
            "binomial",
            SQUARE,
            BETA,
            "neal8 given 3 released values (chains 0), and keep 3 draws of each, with",
        ),
        ("draws", DRAWS, NORMAL, "neal8 given 5 draws of 20 records (chains 0), and keep 3 draws of each, w"),
        ("counts", COUNTS, BETA, "neal8 given 4 noisy counts of 50 records (chains 0), and keep 3 draws of"),
        ("pairs", LAPLACE_2, PAIRS, "neal8 given 3 records of 2 released numbers each (chains 0), and keep"),
    ],
)
def test_tables_of_every_mechanism_are_read(
    table: str, mechanism: str, model: str, said: str, write: Any, capsys: Any
) -> None:
    spec = write(table, mechanism, model)
    code, out, err = outcome(capsys, "fit", spec, "-o", spec.parent / "c.h5", "--dry-run")
    assert (code, err) == (0, "")  # negative counts are legal
    assert f"would sample 6 sweeps of {said}" in out


def test_a_count_above_n_is_a_warning(write: Any, capsys: Any) -> None:
    spec = write("counts", COUNTS.replace("n: 50", "n: 20"))
    code, _, err = outcome(capsys, "fit", spec, "-o", spec.parent / "c.h5", "--dry-run")
    assert code == 0
    assert err == (
        f"dpmix: warning: {spec.parent / 'counts.csv'}: 1 of 4 noisy counts is above n = 20: "
        "legal with noise, but check n and the bins\n"
    )


WRONG: list[tuple[int, tuple[Any, ...], str]] = [
    (3, ("wide", WAVELET), "wide.csv has 4 columns, but a wavelet release of levels 1 has 3: one for each"),
    (
        3,
        ("binomial", BINOMIAL.replace("7", "6")),
        "has a value that is no whole number from 0 to the 6 trials",
    ),
    (
        3,
        ("counts", SQUARE),
        "has a value that is no output from 0 to 9 of a square wave: record 2 (and 1 more)",
    ),
    (2, ("binomial", SQUARE.replace("cells: 8", "cells: 0")), "mechanism.cells: 0 must be at least 2"),
    (
        4,
        ("binomial", SQUARE.replace("epsilon: 2", "epsilon: 1e-20")),
        "mechanism.epsilon: 1e-20 for one answer",
    ),
    (
        2,
        ("binomial", SQUARE.replace("cells: 8", "width: 0.5")),
        "mechanism.width: 0.5 of the domain to both sides",
    ),
    (2, ("binomial", SQUARE.replace("epsilon: 2", "rho: 2")), "mechanism.rho: unknown key"),
    (
        2,
        ("binomial", SQUARE, PAIRS),
        "model.kernel: multivariate_normal has no exact density of several columns",
    ),
    (
        3,
        ("counts", BINOMIAL),
        "has a value that is no whole number from 0 to the 7 trials: record 2 (and 2 more)",
    ),
    (3, ("draws", DRAWS.replace("draws: 5", "draws: 6")), "draws.csv has 5 draws, but mechanism.draws is 6"),
    (
        3,
        ("counts", DRAWS.replace("draws: 5", "draws: 4")),
        "has a value that lies outside [0, 1]: draw 1 (and 3",
    ),
    (3, ("counts", COUNTS.replace("bins: 4", "bins: 5")), "has 4 noisy counts, but mechanism.bins is 5"),
    (
        3,
        ("counts", COUNTS.replace("scale: 2", "scale: 2, noise: geometric")),
        "has a value that is no whole number, as geometric noise gives: bin 2",
    ),
    (3, ("pairs", COUNTS), "pairs.csv has 2 columns, but a perturbed_histogram release has one"),
    (
        2,
        ("counts", COUNTS.replace("n: 50, ", "")),
        "mechanism.n: missing; a perturbed_histogram release does not",
    ),
    (
        2,
        ("wavelet", WAVELET.replace(", domain: [0, 1]", "")),
        "mechanism.domain: missing; give the public bounds",
    ),
    (
        3,
        ("ends", "{kind: none, domain: [0, 1]}", BETA, "data"),
        "a record of 0 is not inside the domain (0, 1)",
    ),
    (
        2,
        ("ends", "{kind: none}", BETA, "data"),
        "mechanism.domain: missing; a beta kernel lives on the public",
    ),
    (2, ("pairs", LAPLACE_2.replace(", [0, 1]]", "]"), PAIRS), "1 pairs of bounds for 2 columns"),
    (2, ("wide", LAPLACE_2, PAIRS), "mechanism.domain: 2 pairs of bounds for 4 columns"),
    (
        3,
        ("pairs", LAPLACE_2, NORMAL),
        "model.kernel: normal is for one column, and there are a, b; choose one",
    ),
    (
        2,
        ("pairs", LAPLACE_2, PAIRS.replace("[0, 1]]", "[0, -1]]")),
        "model.base.Psi: must be positive definite",
    ),
]


@pytest.mark.parametrize(("code", "parts", "said"), WRONG, ids=[said[:50] for *_, said in WRONG])
def test_what_is_wrong_is_said_in_a_sentence(
    code: int, parts: tuple[Any, ...], said: str, write: Any, capsys: Any
) -> None:
    spec = write(*parts)
    assert said in refused(capsys, code, "fit", spec, "-o", spec.parent / "c.h5")
    assert not list(spec.parent.glob("c.h5*"))
