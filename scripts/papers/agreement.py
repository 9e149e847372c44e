"""Whether chains agree: the largest R-hat and the smallest effective sample size of what is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.summary.diagnostics import Scalar, describe

__all__ = ["ENOUGH", "RHAT", "agreed", "in_words", "scalars"]

RHAT, ENOUGH = 1.01, 200.0
"""A posterior is settled where R-hat is below and the bulk's effective sample size at least this, in all."""
_MOST = 99.0


def agreed(parameters: Mapping[str, Scalar]) -> dict[str, Any]:
    """Return the largest R-hat and smallest effective sample size of a summary's scalars, and if they do.

    A scalar that is the same in every draw has neither, and is left out; chains that stay at values of their
    own have an R-hat of 99 here, the largest there is.
    """
    known = {
        name: (_MOST, 0.0) if value.stuck_apart else (min(value.rhat or 0.0, _MOST), value.ess_bulk or 0.0)
        for name, value in parameters.items()
        if value.stuck_apart or (value.rhat is not None and value.ess_bulk is not None)
    }
    if not known:
        return {"rhat": _MOST, "slowest": "none", "ess": 0.0, "settled": False}
    slowest = max(known, key=lambda name: (known[name][0], -known[name][1]))
    rhat, ess = known[slowest][0], min(ess for _, ess in known.values())
    return {"rhat": rhat, "slowest": slowest, "ess": ess, "settled": rhat < RHAT and ess >= ENOUGH}


def scalars(name: str, draws: NDArray[np.float64]) -> dict[str, Scalar]:
    """Return the summary of each entry of draws (chains, draws, ..)."""
    flat = draws.reshape(*draws.shape[:2], -1)
    return {f"{name}[{i}]": describe(np.ascontiguousarray(flat[:, :, i]), 0.95) for i in range(flat.shape[2])}


def in_words(told: Sequence[Mapping[str, Any]], length: str = "sweeps") -> str:
    """Return how many posteriors settled, by which chains, and how far the others are from it.

    Parameters
    ----------
    told : sequence of mapping
        What `agreed` gives of each, with the length of its chains.
    length : str
        Under which key that stands, and what it is a number of.
    """
    settled = [one for one in told if one["settled"]]
    lengths = ", ".join(
        f"{sum(one[length] == n for one in told)} of {n:,}" for n in sorted({one[length] for one in told})
    )
    words = f"{len(settled)} of {len(told)} posteriors settled; two chains each, {length}: {lengths}"
    if settled:
        words += f"; of these R-hat up to {max(one['rhat'] for one in settled):.4f}"
    left = [one for one in told if not one["settled"]]
    if left:
        low, high = min(one["rhat"] for one in left), max(one["rhat"] for one in left)
        words += f"; of the others {low:.3f} to {high:.3f}, ESS from {min(one['ess'] for one in left):.0f}"
    return words
