"""A confidential file whose numbers are unlike all others, and every mechanism and synthesis of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

N = 331
RNG = np.random.default_rng(7)
Y = np.round(RNG.beta(2, 3, N), 9)
X = np.round(RNG.beta(2, 2, N), 9)
SHARES = np.round(RNG.dirichlet([2.0, 3.0, 4.0], N), 9)
GROUP = np.where(np.arange(N) < 113, 1, 2)
COUNTS = {int(c) for c in np.histogram(Y, np.linspace(0, 1, 6))[0] if c > 20} | {113, N - 113}
DECIMALS = {f"{y:.9f}"[1:] for y in (*Y, *X, *SHARES.ravel())}
PERSON = "Adalbertina Quillfeather"

ONE = {"columns": ["y"], "domain": [[0, 1]]}
GROUPS = {"columns": ["group"], "categories": ["1", "2"]}
MECHANISMS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("laplace", ONE, {"epsilon": 2}),
    ("laplace", {"columns": ["y", "x"], "domain": [[0, 1], [0, 1]]}, {"rho": 1}),
    ("gaussian", ONE, {"epsilon": 2, "delta": 1e-4}),
    ("wavelet", ONE, {"epsilon": 2, "levels": 1}),
    ("binomial", ONE, {"epsilon": 2, "trials": 9}),
    ("square_wave", {"columns": ["y", "x"], "domain": [[0, 1], [0, 1]]}, {"epsilon": 2, "cells": 16}),
    ("randomized_response", GROUPS, {"epsilon": 2}),
    ("smoothed_histogram", ONE, {"epsilon": 2, "bins": 5, "draws": 7}),
    *(
        ("perturbed_histogram", ONE, {"bins": 5, "noise": noise, "epsilon": 0.5} | more)
        for noise, more in (("laplace", {}), ("geometric", {}), ("gaussian", {"delta": 1e-4}))
    ),
    ("perturbed_histogram", ONE, {"bins": 5, "noise": "discrete_gaussian", "rho": 0.1}),
    ("noisy_counts", {"columns": ["group", "group2"]}, {"epsilon": 0.5, "levels": [2], "classes": 2}),
    ("clamped_moments", {"columns": ["y", "x"]}, {"epsilon": 2, "bounds": [[0, 1], [0, 1]]}),
    ("log_moments", {"columns": ["a", "b", "c"]}, {"epsilon": 2, "threshold": 0.01}),
    ("log_moments", {"columns": ["a", "b", "c"]}, {"epsilon": 2, "thresholds": [0.1, 0.01], "split": 0.5}),
    *(
        ("posterior", GROUPS, {"epsilon": 1, "prior": [1, 1], "method": method} | more)
        for method, more in (("hellinger", {"delta": 1e-4}), ("laplace", {}), ("geometric", {}))
    ),
]
SYNTHESES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("pitman_yor", ONE, {"concentration": 1.0, "records": 3}),
    ("dirichlet_multinomial", ONE, {"epsilon": 2, "records": 9, "bins": 5}),
    ("dirichlet_multinomial", GROUPS, {"epsilon": 2, "records": 9}),
    ("perturbed_histogram", ONE, {"epsilon": 0.5, "bins": 5}),
    ("smoothed_histogram", ONE, {"epsilon": 0.5, "bins": 5, "records": 5}),
]
CASES = [("privatize", *case) for case in MECHANISMS] + [("synthesize", *case) for case in SYNTHESES]


def write_confidential(tmp_path: Path) -> Path:
    """Write the file, in a folder and under a name that are looked for, too."""
    folder = tmp_path / "payroll_7731"
    folder.mkdir()
    rows = zip(Y, X, *SHARES.T, GROUP, GROUP, strict=True)
    lines = ["y,x,a,b,c,group,group2,person", *(",".join(map(str, row)) + f",{PERSON}" for row in rows)]
    path = folder / "secret_salaries.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
