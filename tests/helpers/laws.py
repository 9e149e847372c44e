"""What is wrong with the description of a mechanism, or with values that it should have released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmix.laws.every import LawError, law_of

Floats = np.ndarray[Any, np.dtype[np.float64]]


def mechanism_problem(stated: Mapping[str, Any]) -> str | None:
    try:
        law_of(stated)
    except LawError as error:
        return str(error)
    return None


def value_problem(stated: Mapping[str, Any], values: Floats, labels: Any = ()) -> str | None:
    return law_of(stated).problem(values, labels)


def value_warning(stated: Mapping[str, Any], values: Floats, n: int) -> str | None:
    return law_of(stated).warning(values, n)
