"""How much of the information in a release its cells keep (methods, section 12).

Of the Fisher information about a component's location and the logarithm of its sd, that of the cells, ``sum_c
grad G_c grad G_c' / G_c``, is set beside that of the released value, for which cells far finer than noise and
component stand. Shares are averages over components and draws of the posterior, by weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmix.results.nodes import ResultSection, Tile, percent

if TYPE_CHECKING:
    from dpmix.run.chains_reader import Chains

__all__ = ["InformationKept", "information_kept"]

_STATES = 40  # of each chain
_SMALL = 0.02  # weight below which a component is left out


@dataclass(frozen=True)
class InformationKept:
    """Shares kept by the cells, and what is hidden.

    Parameters
    ----------
    location, log_sd : float
        Shares of the information on a component's mean and on the logarithm of its sd.
    narrow : float
        Expected weight of components whose sd is below the width of a cell.
    width : float
        Of a cell; 0 where outputs are finite, and nothing is lost.
    left_over : float
        Posterior mean of n times the mass that is left over of the process.
    """

    location: float
    log_sd: float
    narrow: float
    width: float
    left_over: float

    def in_words(self) -> str:
        """Say it in a sentence."""
        if self.width == 0.0:
            return "the outputs or bins of the mechanism, which lose nothing of the release."
        if math.isnan(self.location):
            return f"cells of width {self.width:.4g}."
        return (
            f"cells of width {self.width:.4g} keep {100.0 * self.location:.1f}% of what the release says of "
            f"the clusters' means, and {100.0 * self.log_sd:.1f}% of what it says of the logarithms of their "
            "standard deviations."
        )

    def section(self) -> ResultSection:
        """Return what is reported of it; what is not known is None."""
        data = {name: None if math.isnan(value) else value for name, value in vars(self).items()}
        tiles = []
        if self.width > 0.0:
            note = f"by cells of width {self.width:.3g}; of log sd {percent(self.log_sd)}"
            tiles = [Tile("Information kept on location", percent(self.location), note)]
        text = [[f"Counts: {self.in_words()}"]]
        return ResultSection("information_kept", data, text=text, page=(), tiles=tiles)


def information_kept(chains: Chains) -> InformationKept | None:
    """Return the shares for chains of ``sampler.kind: counts``; None for others."""
    width = chains.constants.get("cells_width")
    if width is None:
        return None
    left_over = chains.mean_stat("left_over")
    if width == 0.0:
        return InformationKept(1.0, 1.0, 0.0, 0.0, left_over)
    first, last = chains.constants["cells_first"], chains.constants["cells_last"]
    edges = np.linspace(first, last, 1 + round((last - first) / width))
    from dpmix.summary.noisy_masses import channel_of, kernel_of_fit, share_kept  # late: numba takes its time

    channel, kernel = channel_of(chains), kernel_of_fit(chains)
    total, narrow, kept = 0.0, 0.0, np.zeros(2)
    every = max(1, chains.draws // _STATES)
    for block in chains.blocks(2048):
        for state in range(-block.start % every, len(block.weights), every):
            weights = block.weights[state]
            theta = np.stack([values[state] for values in block.parameters.values()])
            some = np.flatnonzero(np.nan_to_num(weights) >= _SMALL)
            for h in some:
                share, sd = share_kept(channel, kernel, np.ascontiguousarray(theta[:, [h]]), edges)
                kept += weights[h] * share
                narrow += weights[h] * (sd < width)
                total += weights[h]
    if total == 0.0:
        return InformationKept(float("nan"), float("nan"), 0.0, width, left_over)
    location, log_sd = (float(share) for share in kept / total)
    return InformationKept(location, log_sd, float(narrow / total), width, left_over)
