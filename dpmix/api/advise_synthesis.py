"""Advice about synthetic records: how far the share of a cell among them is off that of the population."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmix.advising.result import Row
from dpmix.api.synthesize import planned
from dpmix.errors import UsageError
from dpmix.spec import RunSpec, load_spec
from dpmix.synthesis.generator import Generator

__all__ = ["advise_synthesis"]


def advise_synthesis(
    spec: RunSpec, epsilons: list[float], records: list[int], kinds: list[str] | None
) -> tuple[list[Row], str]:
    """Return rows of the spec's own synthesis."""
    raise NotImplementedError
