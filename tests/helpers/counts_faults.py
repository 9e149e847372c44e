"""Faults planted in the sampler on latent counts, in the interpreter.

``python -m tests.helpers.counts_faults [NAME]`` changes the source as it is read, runs the joint law of
`tests.helpers.counts_histograms`, and prints the smallest p-value.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import SourceFileLoader
from typing import Any

SOURCE = "models/counts_mixture/source.py"
BASE = "models/counts_mixture/mixture_sweep.py"
BY_RATIO = "no fault, by the ratio of the base's moves"
FAULTS = {
    "multinomial ratio dropped": (SOURCE, "log(max(work.mixed[j], LEAST))", "0.0"),
    "multinomial ratio counted twice": (
        SOURCE,
        "    return log_release(source.release, source.held.noisy, 0, counts, moved)\n",
        "    gain = log_ratio(1.0 * counts, work.mixed, work.proposed, work.terms)\n"
        "    return gain + log_release(source.release, source.held.noisy, 0, counts, moved)\n",
    ),
    "what the release says dropped": (
        SOURCE,
        "    return log_release(source.release, source.held.noisy, 0, counts, moved)\n",
        "    return 0.0\n",
    ),
    "a learned base moves whatever the release says": (
        BASE,
        "    ratio += log_gain(work.source, rng, work)\n",
        "    log_gain(work.source, rng, work)\n",
    ),
    "counts left behind": (
        SOURCE,
        "    if source.along[0] != 0:\n        counts = source.held.counts\n",
        "    if source.along[0] == 2:\n        counts = source.held.counts\n",
    ),
}
"""File, text, and what is put in its place."""
OF_THE_BASE = {
    "the base's own prior dropped": (
        BASE,
        "    ratio = log_base_ratio(learned, column, shift, factor)\n",
        "    ratio = 0.0\n",
    ),
    "what counts or release say dropped": FAULTS["a learned base moves whatever the release says"],
    "the scale's own prior, not that of its logarithm": (
        "kernels/learned_base.py",
        "    ratio = learned.shape * math.log(factor)",
        "    ratio = (learned.shape - 1.0) * math.log(factor)",
    ),
    "components keep their variance": ("kernels/normal/kernel.py", "    theta[VARIANCE, h] *= factor\n", ""),
}
"""Faults of moves of a learned base with all atoms along, which `tests.helpers.base_ratio` sees."""


def plant(path: str, old: str, new: str) -> None:
    """Change a source that has not been read yet."""
    read = SourceFileLoader.source_to_code

    def changed(self: Any, data: Any, where: Any, *args: Any, **options: Any) -> Any:
        if str(where).endswith(path):
            text = bytes(data).decode()
            if text.count(old) != 1:
                raise ValueError(f"{path} does not have {old!r} once")
            data = text.replace(old, new).encode()
        return read(self, data, where, *args, **options)

    SourceFileLoader.source_to_code = changed  # type: ignore[method-assign]
    SourceFileLoader.path_stats = _stale  # type: ignore[method-assign]


def _stale(self: Any, path: Any) -> Any:
    """Say nothing of the source's age, so that no compiled file is taken or written."""
    raise OSError


def main(name: str = "", restarts: int = 250, rounds: int = 5) -> float:
    """Return the smallest p-value, of right moves or with a fault of that name; a gap for `OF_THE_BASE`.

    Those of the first fault are of whole sweeps, others of moves that take the counts along.
    """
    if name in OF_THE_BASE or name == BY_RATIO:
        if name in OF_THE_BASE:
            plant(*OF_THE_BASE[name])
        gap, inside = importlib.import_module("tests.helpers.base_ratio").largest_gap()
        return float(gap) if inside > 20 else 1.0
    if name:
        plant(*FAULTS[name])
    joint = importlib.import_module("tests.helpers.counts_histograms")
    if name == next(iter(FAULTS)):
        return float(joint.p_value(joint.MODEL, restarts, rounds, 1))
    return float(joint.p_value_along(joint.MODEL, restarts, rounds))


if __name__ == "__main__":
    print(main(*sys.argv[1:2]))
