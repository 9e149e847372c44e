"""Comparison of two fits of one parametric model: by how much expected shares differ between two groups."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmix.errors import DataError, UsageError
from dpmix.release.column_units import labelled, unit_of
from dpmix.release.sanitized import guarantee_in_words
from dpmix.run.chains_reader import ChainSet, NamedChains
from dpmix.run.stored_parameters import Stored
from dpmix.summary.chains_account import provenance_of
from dpmix.summary.contrast_result import Contrast, ContrastedFit, Difference, JointGuarantee
from dpmix.summary.dated import Dated, dated_of
from dpmix.summary.diagnostics import describe
from dpmix.summary.families.family import Floats
from dpmix.summary.row_labels import shown_name
from dpmix.summary.subject import Subject, is_private, is_simulated

__all__ = ["contrast_chains", "contrast_groups", "same_release"]


# Comparison of two groups of one release: of what its joint posterior says, draw by draw.

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
    dated, subject = dated_of(chains), provenance_of(chains).subject
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
            difference = _group_difference(name, first[:, :, entry] - second[:, :, entry], wide, level)
            found.append(difference if of_shares else replace(difference, **_meant(name, subject, dated)))
            means.append((float(first[:, :, entry].mean()), float(second[:, :, entry].mean())))
    sizes = next((chains.read(p) for p in held if p.name == "group_size"), None)
    method = str((chains.spec.get("sampler") or {}).get("kind"))
    groups = [
        ContrastedFit(
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


def _meant(name: str, subject: Subject, dated: Dated) -> dict[str, Any]:
    """Return what a row is on, as fields of a `Difference`: its axis, its unit and dates.

    Moments and quantiles have the unit of their column, dates that of days; probabilities have none; whatever
    else there is has a scale of its own.
    """
    title, _, inner = name.removesuffix("]").partition("[")
    if title in ("mean", "sd", "quantile"):
        column = inner.rpartition(",")[0] if title == "quantile" else inner
        own = column or "".join(subject.columns[:1])
        is_date = dated.is_curve(column)
        unit = "days" if is_date else unit_of(subject.unit, own)
        axis = labelled(own, unit) if own else labelled("values", unit)
        return {"axis": axis, "unit": unit, "date": is_date and title != "sd"}
    if title in ("tail", "cdf", "p", "probability", "gini"):
        return {"axis": "probabilities", "label": shown_name(name, dated.points([name]))}
    return {"axis": ""}


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


def _group_difference(name: str, draws: Floats, margin: float, level: float) -> Difference:
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


def _guarantee(attrs: Mapping[str, Any]) -> JointGuarantee:
    """Return what the one release guarantees, for both groups together."""
    epsilon, delta, rho = (_number(attrs.get(name)) for name in ("epsilon", "delta", "rho"))
    adjacency = str(attrs.get("adjacency", "replacement, private groups"))
    words = f"One release of both groups, with {guarantee_in_words(epsilon, delta, rho, 'global', adjacency)}"
    if is_simulated(attrs) or not is_private(attrs):
        words += ", had its noise been real (the data are simulated, or the noise can be reproduced)"
    return JointGuarantee(epsilon, delta, rho, f"{words}.", adjacency)


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(float(value)) else float(value)


_HALVINGS = 60


def contrast_chains(
    pair: Sequence[NamedChains],
    files: Sequence[str],
    *,
    margin: float,
    level: float,
    public_groups: bool,
    guarantee: JointGuarantee,
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
        ContrastedFit(label, file, chains.n, _method(chains), np.array([mean[i] for mean in means]))
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
    return alike and np.array_equal(first.all_released, second.all_released)
