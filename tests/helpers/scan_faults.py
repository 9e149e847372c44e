"""Faults for the scan of `dpmix.samplers.scan`, and what the enumeration of partitions says of them.

As a program it prints, of each sampler, the largest gap to the exact posterior over its limit: in the
interpreter, which a copy of the package with a fault takes the place of at once.
"""

from __future__ import annotations

import json

from tests.helpers import checks
from tests.oracles import cases

FAULTS = {
    "a record is counted in its own component": ("    leave(algorithm, desk, state, kernel, i)\n", ""),
    "the position drawn is one too low": (
        "    return chosen\n",
        "    return chosen - 1 if chosen > 0 else chosen\n",
    ),
}
"""What is replaced by what."""
SAMPLERS = (("neal8", "laplace-near"), ("neal2", "none"), ("neal3", "none"))


def gap(sampler: str, channel: str) -> float:
    """Return the largest gap of a short run over its limit; infinite where the run comes to nothing."""
    found = checks.posterior_gaps(
        sampler,
        cases.model(channel, 0.0, 1.0),
        cases.Z,
        cases.table(channel),
        cases.exact(channel, 0.0, 1.0),
        [1],
        draws=1500,
        thin=2,
        burn_in=60,
    )
    return max(value for name, value in found.items() if name != "error of P(k)")


if __name__ == "__main__":
    print(json.dumps({sampler: gap(sampler, channel) for sampler, channel in SAMPLERS}))
