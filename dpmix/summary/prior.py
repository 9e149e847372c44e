"""What the prior of a mixture's clusters means in the units of the data, and where it is from."""

from __future__ import annotations

from dpmix.spec.priors import NIG, prior_in_words
from dpmix.store.chains_reader import Chains
from dpmix.summary.families.choose import columns_of, family_of
from dpmix.summary.families.normal import NormalInverseGamma

__all__ = ["prior_of"]

_SOURCES = {
    "bounds": "It follows the public bounds.",
    "release": "It was computed from the release, which so was used twice.",
    "hidden": "It follows the public bounds: the noise hides the spread that was to be read off the release.",
    "paper": "It was computed from the release, which so was used twice, by a recipe for data whose variance "
    "is near 1.",
}


def prior_of(chains: Chains) -> str:
    """Say what the base measure means, for the kernels whose parameters have the units of the data.

    Returns
    -------
    str
        Sentences; empty for chains of earlier versions with another kernel.
    """
    meant = []
    for column in columns_of(chains, family_of(chains)):
        family = column.family
        if isinstance(family, NormalInverseGamma):
            meant.append(prior_in_words(NIG(family.mu0, family.lam, family.a, family.b), column.name))
    if chains.layout.kernel == "beta":
        c = chains.constants
        names = ("base_a_shape", "base_a_rate", "base_b_shape", "base_b_rate")
        shapes = "a ~ Gamma({:g}, {:g}) and b ~ Gamma({:g}, {:g})".format(*(c[name] for name in names))
        meant.append(f"a priori a cluster is Beta(a, b) on the bounds, {shapes}")
    sentences = [f"{words[0].upper()}{words[1:]}." for words in meant]
    source = _SOURCES.get(str(chains.attrs.get("base_from", "")))
    return " ".join([*sentences, *([] if source is None else [source])])
