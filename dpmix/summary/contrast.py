"""Comparison of two fits of one parametric model: by how much expected shares differ between two groups."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpmix.errors import DataError
from dpmix.store.chains_reader import ChainSet, NamedChains
from dpmix.store.stored import Stored
from dpmix.summary.contrast_result import Contrast, Difference, Group, Joint
from dpmix.summary.diagnostics import describe
from dpmix.summary.families.base import Floats

__all__ = ["contrast_chains", "same_release"]

_HALVINGS = 60


def contrast_chains(
    pair: Sequence[NamedChains],
    files: Sequence[str],
    *,
    margin: float,
    level: float,
    public_groups: bool,
    guarantee: Joint,
    warnings: Sequence[tuple[str, bool]] = (),
) -> Contrast:
    """Compare the shares of two fits.

    Parameters
    ----------
    pair : sequence of NamedChains
        A and B.
    files : sequence of str
        Their names.
    margin : float
        Absolute difference up to which shares count as equal.
    level : float
        Probability of the intervals.
    public_groups : bool
        Whether who is in which group is public and fixed.
    guarantee : Joint
        What both releases guarantee together, if anything.
    warnings : sequence of (str, bool)
        Warnings of the two fits, and whether they are about convergence.

    Raises
    ------
    DataError
        When the two do not compare: other models, components or kinds of draws.
    """
    first, second = pair
    shares = _shares(pair, files)
    bootstrap = [_method(chains) == "bootstrap" for chains in pair]
    if bootstrap[0] != bootstrap[1]:
        other, own = (0, 1) if bootstrap[0] else (1, 0)
        raise DataError(
            f"{files[other]} holds draws of a bootstrap and {files[own]} of a posterior, whose intervals "
            "mean different things; fit both by the same kind of method"
        )
    for file, parameter in zip(files, shares, strict=True):
        if parameter.groups:
            raise DataError(
                f"{file} is of a release of groups, {', '.join(parameter.groups)}: compare these by "
                "--contrast of that file alone"
            )
    found, means = [], []
    order = [str(name) for name in shares[1].coords[shares[1].dims[0]]]
    for place, name in enumerate(str(name) for name in shares[0].coords[shares[0].dims[0]]):
        there = order.index(name)
        draws = [
            chains.read(parameter, slice(entry, entry + 1))[:, :, 0]
            for chains, parameter, entry in zip(pair, shares, (place, there), strict=True)
        ]
        found.append(_difference(name, draws[0], draws[1], margin, level, not bootstrap[0]))
        means.append([float(part.mean()) for part in draws])
    texts = [text for text, _ in warnings]
    if same_release(first, second):
        texts.append(
            "Both fits are of the same release: differences are between methods, and not between groups."
        )
    groups = [
        Group(label, file, chains.n, _method(chains), np.array([mean[i] for mean in means]))
        for i, (label, file, chains) in enumerate(zip("AB", files, pair, strict=True))
    ]
    return Contrast(
        groups=(groups[0], groups[1]),
        title=shares[0].title,
        differences=tuple(found),
        margin=margin,
        level=level,
        is_bootstrap=bootstrap[0],
        public_groups=public_groups,
        guarantee=guarantee,
        warnings=tuple(texts),
        failures=tuple(text for text, convergence in warnings if convergence),
    )


def _shares(pair: Sequence[NamedChains], files: Sequence[str]) -> tuple[Stored, Stored]:
    """Return the shares that both fits have, of the same components."""
    kinds = [str(chains.attrs.get("model", "mixture")) for chains in pair]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"{files[1]} is of model {kinds[1]} and {files[0]} of {kinds[0]}: they do not compare"
        )
    held = [[p for p in chains.parameters if p.role == "shares"] for chains in pair]
    for file, parameters in zip(files, held, strict=True):
        if len(parameters) != 1:
            raise DataError(
                f"{file}: its model, {kinds[0]}, has {len(parameters) or 'no'} shares to compare; --contrast "
                "takes models with one set of shares, such as dirichlet"
            )
    first, second = held[0][0], held[1][0]
    names = [[str(name) for name in p.coords[p.dims[0]]] for p in (first, second)]
    if set(names[0]) != set(names[1]) or len(names[0]) != len(names[1]):
        raise DataError(
            f"{files[1]} has components {', '.join(names[1])}, and {files[0]} has {', '.join(names[0])}: "
            "they do not compare"
        )
    return first, second


def _method(chains: ChainSet) -> str:
    return str((chains.spec.get("sampler") or {}).get("kind"))


def _difference(
    name: str, first: Floats, second: Floats, margin: float, level: float, posterior: bool
) -> Difference:
    """Compare draws (chains, draws) of one share, over all pairs of a draw of A and one of B."""
    errors = [describe(part, level).mcse for part in (first, second)]
    mcse = None if errors[0] is None or errors[1] is None else math.hypot(errors[0], errors[1])
    a, b = first.ravel(), np.sort(second.ravel())
    lower, upper = (_quantile(a, b, p) for p in (0.5 * (1.0 - level), 0.5 * (1.0 + level)))
    inside = np.searchsorted(b, a + margin, side="right") - np.searchsorted(b, a - margin, side="left")
    return Difference(
        name=name,
        mean=float(a.mean() - b.mean()),
        sd=math.sqrt(a.var() + b.var()),
        lower=lower,
        upper=upper,
        mcse=mcse,
        probability=float(1.0 - inside.mean() / b.size) if posterior else None,
        excludes_margin=lower > margin or upper < -margin,
    )


def _quantile(a: Floats, b: Floats, p: float) -> float:
    """Return the p-quantile of a_i - b_j over all pairs, `b` sorted, by halving intervals."""
    low, high = float(a.min() - b[-1]), float(a.max() - b[0])
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        # a_i - b_j <= t for b_j >= a_i - t
        if 1.0 - np.searchsorted(b, a - middle, side="left").mean() / b.size >= p:
            high = middle
        else:
            low = middle
    return high


def same_release(first: ChainSet, second: ChainSet) -> bool:
    """Whether two fits are of one release: its values, mechanism, size and guarantee."""
    facts = [
        [str(chains.attrs.get(name)) for name in ("epsilon", "delta", "rho", "adjacency")]
        for chains in (first, second)
    ]
    alike = first.mechanism == second.mechanism and first.n == second.n and facts[0] == facts[1]
    return alike and np.array_equal(first.observed, second.observed)
