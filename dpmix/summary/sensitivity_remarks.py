"""What is said of quantities that depend on the prior, and what to do about it."""

from __future__ import annotations

from dpmix.results.nodes import Remark
from dpmix.run.chains_reader import ChainSet
from dpmix.summary.prior_density import key_of_prior
from dpmix.summary.remarks import MOST_LISTED, is_headline
from dpmix.summary.row_labels import shown_name
from dpmix.summary.sensitivity_result import SENSITIVE, Sensitivity

__all__ = ["sensitivity_remarks"]

_TEXTS = {
    "potential prior-data conflict": (
        "Prior and release both move {names}: where they disagree, what is reported lies between them; see "
        "whether {keys} say what you believe, before anything else."
    ),
    "strong prior or weak likelihood": (
        "The prior moves {names}, the release hardly does: more records or more epsilon would help, or "
        "{keys} that you can defend."
    ),
    "informative prior": (
        "The prior moves {names}: see whether {keys} say what you believe; with more records or more epsilon "
        "it would matter less."
    ),
}


def sensitivity_remarks(found: Sensitivity, chains: ChainSet) -> list[Remark]:
    """Say in one line which headline quantities are sensitive to the prior, with the cure.

    Parameters
    ----------
    found : Sensitivity
    chains : ChainSet
        For the names of the keys that state the prior.
    """
    keys, parts = key_of_prior(chains), []
    for diagnosis, text in _TEXTS.items():
        named = {
            name: index
            for name, index in found.indices.items()
            if index.diagnosis == diagnosis and is_headline(name)
        }
        if named:
            worst = sorted(named, key=lambda name: -(named[name].prior or 0.0))
            listed = [
                f"{shown_name(name, found.labels)} ({named[name].prior:.2f})" for name in worst[:MOST_LISTED]
            ]
            if len(worst) > MOST_LISTED:
                listed.append(f"{len(worst) - MOST_LISTED} more")
            names = listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
            parts.append(text.format(names=names, keys=keys))
    if not parts:
        return []
    note = f"In brackets the sensitivity to power scaling of the prior, from {SENSITIVE:g} on."
    return [Remark(f"{' '.join(parts)} {note}", convergence=False)]
