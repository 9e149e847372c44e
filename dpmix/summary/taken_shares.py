"""Where the prior takes records from shares, to fill categories that look empty.

A Dirichlet prior of parameters a_k counts as sum a_k records that are in all categories alike. Where most of
these hold next to none, the others lose what they are given, by more than their intervals are wide, while
contractions are near 1: a share of 0.6 of 3,000 answers (randomized response, epsilon = 3), of which 21 of 24
categories have none, lay within none of ten 90% intervals under a prior of one record a category. How far the
prior takes shares down is seen by halving it: a power t of prod p_k^a_k is one of the prior t a, and the mean
of p_j moves with t by Cov(p_j, sum_k a_k log p_k). Of shares that nobody has it goes the other way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dpmix.models.meaning_base import logs_of, meaning_of
from dpmix.results.nodes import Remark
from dpmix.summary.diagnostics import shown_name
from dpmix.summary.row_labels import row_labels

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import NamedChains

TAKEN = 0.4
"""Posterior standard deviations by which half the prior raises a share, from which on it is warned of.

All of the prior then takes 0.8 of them and more, and a 90% interval holds such a share with probability 0.79
or less. Of releases of 24 categories, 3 of them occupied, by geometric noise of epsilon = 0.5, where it was
0.48 to 0.69 at 1,000 records and 0.23 to 0.38 at 10,000, 90% intervals held the largest share in 4 of 10 and
10 of 10; of randomized responses of 24 by Zipf's law (0.80 to 0.95) in 4 of 10; where all 24 are as likely
(0.02 to 0.05) in 26 of 30.
"""
_AT_ONCE = 1 << 24  # numbers read together


def raised(share: Floats, weighed: Floats) -> float:
    """Return by how many posterior standard deviations half the prior would raise a share, about.

    Parameters
    ----------
    share : float64 array
        Its draws.
    weighed : float64 array
        The sums of a_k log p_k at these.
    """
    sd = float(share.std())
    if not sd > 0.0:
        return 0.0
    return -0.5 * float(((share - share.mean()) * (weighed - weighed.mean())).mean()) / sd


def taken_remarks(chains: NamedChains, series: Mapping[str, Floats]) -> list[Remark]:
    """Say of which share the prior takes most, where that is much.

    Parameters
    ----------
    chains : NamedChains
    series : mapping of str to float64 array (chains, draws)
        Draws of the scalars that are reported.
    """
    meaning = meaning_of(chains)
    found: dict[str, tuple[float, float]] = {}
    for parameter in chains.parameters:
        try:
            prior = meaning.pseudo_records(parameter)
        except (KeyError, TypeError, ValueError):  # of files that somebody changed
            prior = None
        if prior is None or prior.shape != parameter.shape[-1:]:
            continue
        weighed = _weighed(chains, parameter, prior)
        for place, name in enumerate(parameter.labels()):
            if name in series:
                up = raised(series[name], weighed[:, :, place // prior.size])
                found[name] = (up, float(prior.sum()))
    taken = {name: each for name, each in found.items() if each[0] >= TAKEN}
    if not taken:
        return []
    most = max(taken, key=lambda name: taken[name][0])
    up, total = taken[most]
    more = f" (and {len(taken) - 1} more)" if len(taken) > 1 else ""
    shown = shown_name(most, row_labels(chains))
    text = (
        f"The prior, as if of {total:.4g} records, takes from {shown}{more}: half of it would raise that by "
        f"about {up:.2g} standard deviations of its posterior. How many records are in categories that look "
        f"empty is said by the prior; see what half of {meaning.prior_keys} gives."
    )
    return [Remark(text, convergence=False, grave=False)]


def _weighed(chains: NamedChains, parameter: Stored, prior: Floats) -> Floats:
    """Return the sums of a_k log p_k of each Dirichlet law, (chains, draws, laws)."""
    size = max(1, _AT_ONCE * prior.size // int(np.prod(parameter.shape)))
    total = np.zeros(parameter.shape[:-1])
    for start in range(0, prior.size, size):
        part = slice(start, start + size)
        total += logs_of(chains.read(parameter, part)) @ prior[part]
    return total.reshape(*total.shape[:2], -1)
