"""Comparison of two groups of one release: of what its joint posterior says, draw by draw."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmix.errors import DataError, UsageError
from dpmix.release import guarantee_in_words
from dpmix.store.chains_reader import NamedChains
from dpmix.store.stored import Stored
from dpmix.summary.contrast_result import Contrast, Difference, Group, Joint
from dpmix.summary.diagnostics import describe
from dpmix.summary.families.base import Floats
from dpmix.summary.guarantee import is_private, is_simulated

__all__ = ["contrast_groups"]

_SIZES = ("group_share", "group_size")  # of the groups, not of what is in them
_MARGIN = 0.01


def contrast_groups(
    chains: NamedChains,
    file: str,
    names: Sequence[str] | None,
    *,
    margin: float | None,
    level: float,
    warnings: Sequence[tuple[str, bool]] = (),
) -> Contrast:
    """Compare two groups of the release behind one fit.

    Where the model has one set of shares, these are compared, as for two fits; else every scalar and every
    probability that each group has. Differences are of the same draw: groups of one posterior depend on each
    other.

    Parameters
    ----------
    chains : NamedChains
    file : str
        Name of the chains file.
    names : sequence of str or None
        The two groups; may be left out where there are only two.
    margin : float or None
        Absolute difference up to which groups count as equal; where left out 0.01 for shares, else 0.
    level : float
        Probability of the intervals.
    warnings : sequence of (str, bool)
        Warnings of the fit, and whether they are about convergence.

    Raises
    ------
    DataError
        When the release is not of groups.
    UsageError
        When `names` are not two of the groups; for a margin of 1 or more of shares.
    """
    held = [p for p in chains.parameters if p.groups and p.role in ("scalar", "shares")]
    compared = [p for p in held if p.name not in _SIZES]
    if not compared:
        raise DataError(
            f"{file} is not of a release of groups; --contrast takes one chains file of such a release, or "
            "two chains files"
        )
    known = compared[0].groups
    pair = _chosen(names, known)
    places = [known.index(name) for name in pair]
    shares = [p for p in compared if p.role == "shares"]
    of_shares = len(shares) == 1 and (len(compared) == 1 or chains.attrs.get("model") == "dirichlet")
    if of_shares:
        compared = shares
        if margin is not None and margin >= 1.0:
            raise UsageError(f"--margin: {margin:g} must be a difference of shares, from 0 to below 1")
    wide = margin if margin is not None else _MARGIN if of_shares else 0.0
    found: list[Difference] = []
    means: list[tuple[float, float]] = []
    for parameter in compared:
        draws = chains.read(parameter)
        first, second = (draws[:, :, place].reshape(*draws.shape[:2], -1) for place in places)
        for entry, name in enumerate(_rows(parameter, of_shares)):
            found.append(_difference(name, first[:, :, entry] - second[:, :, entry], wide, level))
            means.append((float(first[:, :, entry].mean()), float(second[:, :, entry].mean())))
    sizes = next((chains.read(p) for p in held if p.name == "group_size"), None)
    method = str((chains.spec.get("sampler") or {}).get("kind"))
    groups = [
        Group(
            label=name,
            file=file,
            n=chains.n,
            method=method,
            mean=np.array([mean[number] for mean in means]),
            size=None if sizes is None else float(sizes[:, :, place].mean()),
        )
        for number, (name, place) in enumerate(zip(pair, places, strict=True))
    ]
    return Contrast(
        groups=(groups[0], groups[1]),
        title=compared[0].title if of_shares else "parameter",
        differences=tuple(found),
        margin=wide,
        level=level,
        is_bootstrap=False,
        public_groups=False,
        guarantee=_guarantee(chains.attrs),
        warnings=tuple(text for text, _ in warnings),
        failures=tuple(text for text, convergence in warnings if convergence),
    )


def _chosen(names: Sequence[str] | None, known: Sequence[str]) -> tuple[str, str]:
    """Return the two groups to compare."""
    listed = ", ".join(known)
    if names is None:
        if len(known) != 2:
            raise UsageError(
                f"--groups A,B: missing; the release has the groups {listed}, and two are compared"
            )
        return known[0], known[1]
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError(f"--groups {','.join(names)}: give two different groups, of {listed}")
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else "there are"
            raise UsageError(
                f"--groups: the release has no group {name}; {hint} {'' if near else listed}".rstrip()
            )
    return names[0], names[1]


def _rows(parameter: Stored, of_shares: bool) -> list[str]:
    """Return the names of its entries, without the group; of shares those of the categories alone."""
    if of_shares:
        return [str(name) for name in parameter.coords[parameter.dims[-1]]]
    one = Stored(
        parameter.name,
        parameter.shape,
        parameter.dims[1:],
        parameter.coords,
        parameter.role,
        parameter.title,
        parameter.column,
    )
    return one.labels()


def _difference(name: str, draws: Floats, margin: float, level: float) -> Difference:
    """Describe draws (chains, draws) of a difference."""
    lower, upper = np.quantile(draws, [0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    return Difference(
        name=name,
        mean=float(draws.mean()),
        sd=float(draws.std()),
        lower=float(lower),
        upper=float(upper),
        mcse=describe(draws, level).mcse,
        probability=float((np.abs(draws) > margin).mean()),
        excludes_margin=bool(lower > margin or upper < -margin),
        above=float((draws > 0.0).mean()),
    )


def _guarantee(attrs: Mapping[str, Any]) -> Joint:
    """Return what the one release guarantees, for both groups together."""
    epsilon, delta, rho = (_number(attrs.get(name)) for name in ("epsilon", "delta", "rho"))
    adjacency = str(attrs.get("adjacency", "replacement, private groups"))
    words = f"One release of both groups, with {guarantee_in_words(epsilon, delta, rho, 'global', adjacency)}"
    if is_simulated(attrs) or not is_private(attrs):
        words += ", had its noise been real (the data are simulated, or the noise can be reproduced)"
    return Joint(epsilon, delta, rho, f"{words}.", adjacency)


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(float(value)) else float(value)
