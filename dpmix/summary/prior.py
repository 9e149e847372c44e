"""What the prior of a mixture's clusters means in the units of the data, and where it is from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpmix.kernels.learned_family import LearnedNormal
from dpmix.kernels.normal_family import NormalInverseGamma
from dpmix.run.chains_reader import Chains, NamedChains
from dpmix.spec.days import Day
from dpmix.spec.default_priors import NIG, prior_in_words
from dpmix.summary.dated import Dated, dated_of
from dpmix.summary.families.family_of_fit import columns_of, family_of, family_on_line

__all__ = ["prior_of", "prior_on_line"]

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
    dated = dated_of(chains)
    meant = [
        *(_normal(column.family, column.name, dated) for column in columns_of(chains, family_of(chains))),
        _beta(chains.layout.kernel, chains.constants),
    ]
    return _sentences(meant, chains.attrs)


def prior_on_line(chains: NamedChains) -> str:
    """Say what the base measure of a mixture means whose draws are arrays by name, as those of groups.

    Returns
    -------
    str
        Sentences; empty for other models.
    """
    kernel = str(chains.attrs.get("kernel", ""))
    if chains.attrs.get("model") != "mixture" or not kernel:
        return ""
    family = family_on_line(kernel, str(chains.attrs["base"]), chains.constants)
    return _sentences([_normal(family, "", dated_of(chains)), _beta(kernel, chains.constants)], chains.attrs)


def _normal(family: object, name: str, dated: Dated) -> str:
    if not isinstance(family, NormalInverseGamma | LearnedNormal):
        return ""
    learned = isinstance(family, LearnedNormal)
    place = Day(family.mu0) if dated.is_curve(name) else family.mu0
    return prior_in_words(NIG(place, family.lam, family.a, family.b), name, learned=learned)


def _beta(kernel: str, constants: Mapping[str, Any]) -> str:
    if kernel != "beta":
        return ""
    names = ("base_a_shape", "base_a_rate", "base_b_shape", "base_b_rate")
    shapes = "a ~ Gamma({:g}, {:g}) and b ~ Gamma({:g}, {:g})".format(*(constants[name] for name in names))
    return f"a priori a cluster is Beta(a, b) on the bounds, {shapes}"


def _sentences(meant: Iterable[str], attrs: Mapping[str, Any]) -> str:
    sentences = [f"{words[0].upper()}{words[1:]}." for words in meant if words]
    source = _SOURCES.get(str(attrs.get("base_from", "")))
    return " ".join([*sentences, *([] if source is None else [source])])
