"""Specs that several tests start from."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from dpmix.errors import DpmixError
from dpmix.spec import load_spec

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "configs").glob("*.yaml"))

_FULL: dict[str, Any] = {
    "data": {"path": "data/faithful.csv", "columns": ["eruptions"], "domain": [[1.0, 6.0]]},
    "release": {"path": "z.csv", "columns": ["z"]},
    "mechanism": {"kind": "laplace", "epsilon": 5.0, "domain": [1.0, 6.0]},
    "model": {
        "kind": "mixture",
        "kernel": "normal",
        "base": {"kind": "nig", "mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0},
        "concentration": 1.0,
        "discount": 0.0,
    },
    "sampler": {
        "kind": "private_neal5",
        "auxiliary": 1,
        "truncation": 100,
        "latent": "exact",
        "iterations": 20000,
        "burn_in": 10000,
        "thin": 1,
        "chains": 4,
        "seed": 1,
        "store": ["allocations"],
    },
    "summary": {"grid": [0.0, 7.0, 200], "level": 0.95},
}


def full_spec() -> dict[str, Any]:
    """Return a spec with every available section and key."""
    return copy.deepcopy(_FULL)


def message(*overrides: str, source: Any = None) -> str:
    """Return the one line that a wrong spec is refused with."""
    with pytest.raises(DpmixError) as caught:
        load_spec(full_spec() if source is None else source, overrides)
    text = str(caught.value)
    assert "pydantic" not in text
    assert "http" not in text
    assert len(text.splitlines()) == 1, text
    return text
