"""The comparison of two groups: those of one release in one fit, or two fits of one parametric model.

Of two fits it is by how much expected shares differ, over all pairs of a draw of each; of groups of one
release what its joint posterior says, draw by draw.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.columns.column_units import labelled, unit_of
from dpmix.errors import DataError, UsageError
from dpmix.models.meaning_base import dated_of, meaning_of
from dpmix.numerics.in_words import guarantee_in_words
from dpmix.release.sanitized import as_stated
from dpmix.results.nodes import (
    Array,
    Attr,
    Each,
    Items,
    ResultSection,
    Table,
    TableColumn,
    Tree,
    Words,
    figure,
    warnings_section,
)
from dpmix.results.result import Result
from dpmix.spec.days import Day
from dpmix.summary.chains_account import provenance_of
from dpmix.summary.diagnostics import describe, shown_name
from dpmix.summary.headline import amount
from dpmix.summary.row_labels import row_labels
from dpmix.summary.subject import Subject, is_private, is_simulated, stated_parameters

if TYPE_CHECKING:
    from dpmix.columns.dated import Dated
    from dpmix.kernels.layout import Floats
    from dpmix.laws.every import Law
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import ChainSet, NamedChains


@dataclass(frozen=True)
class ContrastedFit:
    """One of the two fits.

    Parameters
    ----------
    label : str
        "A" or "B"; of groups of one release, its name.
    file : str
        Its chains file.
    n : int
        Number of confidential records.
    method : str
        Kind of its sampler.
    mean : float64 array (d,)
        Mean of each share over the draws.
    size : float or None
        Of a group of one release, whose size is private, the posterior mean of that; `n` counts all groups'.
    """

    label: str
    file: str
    n: int
    method: str
    mean: Floats
    size: float | None = None

    @property
    def in_words(self) -> str:
        """Say whose fit it is: of how many records, about how many of all where that is private."""
        count = f"{self.n:,} records"
        if self.size is not None:
            count = f"about {self.size:,.0f} of {self.n:,} records"
        return f"{self.file} ({count}, {self.method})"


@dataclass(frozen=True)
class Difference:
    """The difference of one share, A less B.

    Parameters
    ----------
    name : str
        The component.
    mean, sd : float
        Over pairs of a draw of A and one of B, which are independent; of groups of one release, over draws.
    lower, upper : float
        Equal-tailed interval.
    mcse : float or None
        Monte Carlo standard error of the mean.
    probability : float or None
        Posterior probability that the absolute difference exceeds the margin; None for a bootstrap, whose
        draws have no such meaning.
    excludes_margin : bool
        Whether the interval lies outside [-margin, margin].
    above : float or None
        Of groups of one release, the posterior probability that the difference is positive.
    axis : str or None
        What it is a difference of, where rows of several kinds are compared, such as "income (dollars)";
        empty for what has a scale of its own.
    unit : str
        Of the difference; empty for none.
    label : str
        What stands for `name` where people read it.
    date : bool
        Whether it is between dates.
    """

    name: str
    mean: float
    sd: float
    lower: float
    upper: float
    mcse: float | None
    probability: float | None
    excludes_margin: bool
    above: float | None = None
    axis: str | None = None
    unit: str = ""
    label: str = ""
    date: bool = False

    @property
    def shown(self) -> str:
        """Its name as people read it, with its unit."""
        return labelled(self.label or self.name, self.unit)


@dataclass(frozen=True)
class JointGuarantee:
    """What the two releases guarantee together: the larger of the two where groups are public, else nothing.

    Parameters
    ----------
    epsilon, delta, rho : float or None
        None where nothing is guaranteed.
    words : str
        The same in a sentence.
    adjacency : str or None
        The neighbouring relation; None where nothing is guaranteed.
    """

    epsilon: float | None
    delta: float | None
    rho: float | None
    words: str
    adjacency: str | None = None


@dataclass(frozen=True, repr=False)
class Contrast(Result):
    """Two fits compared, share by share.

    Parameters
    ----------
    groups : tuple of Group
        A and B.
    title : str
        What is compared, such as "E[x]".
    differences : tuple of Difference
        By component.
    margin : float
        Absolute difference up to which shares count as equal.
    level : float
        Probability of the intervals.
    is_bootstrap : bool
        Whether intervals are confidence intervals.
    public_groups : bool
        Whether who is in which group was stated to be public and fixed.
    guarantee : Joint
    warnings : tuple of str
    failures : tuple of str
        Those of the warnings that are about convergence.
    """

    groups: tuple[ContrastedFit, ContrastedFit]
    title: str
    differences: tuple[Difference, ...]
    margin: float
    level: float
    is_bootstrap: bool
    public_groups: bool
    guarantee: JointGuarantee
    warnings: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def by_sign(self) -> bool:
        """Whether groups of one release are compared without a margin: then the sign is what is asked."""
        return self.margin == 0.0 and all(found.above is not None for found in self.differences)

    @property
    def names(self) -> list[str]:
        """Names of the components."""
        return [found.name for found in self.differences]

    def meaning(self) -> str:
        """Say what the columns of the comparison are."""
        level = f"{100 * self.level:g}%"
        first, second = (group.label for group in self.groups)
        of = "each parameter" if self.title == "parameter" else self.title
        what = f"{first} - {second} is the difference of {of}, with its {level}"
        if self.is_bootstrap:
            return (
                f"{what} confidence interval from pairs of refits. 'beyond' says whether that lies outside "
                f"of [-{self.margin:g}, {self.margin:g}], each component by itself."
            )
        if self.by_sign:
            return (
                f"{what} credible interval. Pr(> 0) is the posterior probability that it is positive, each "
                "row by itself."
            )
        return (
            f"{what} credible interval. Pr(beyond) is the posterior probability that it is larger than "
            f"{self.margin:g} in absolute value, each component by itself."
        )

    @cached_property
    def tree(self) -> Tree:
        """The comparison; HDF5 has a group `contrast`, which holds the table and says the rest in attributes.

        These are margin, level, files and the joint guarantee, and of groups of one release `group_a`,
        `group_b` and their mean sizes.
        """
        names = ("epsilon", "delta", "rho", "adjacency", "words")
        guarantee = {name: getattr(self.guarantee, name) for name in names}
        said: dict[str, Any] = {
            "contrast": self.title,
            "margin": self.margin,
            "level": self.level,
            "interpretation": "confidence" if self.is_bootstrap else "posterior",
        }
        table = self._table()
        attrs = said | {name: guarantee[name] for name in ("epsilon", "delta", "rho")}
        attrs |= {"guarantee": guarantee["words"], "public_groups": int(self.public_groups)}
        attrs |= {"adjacency": guarantee["adjacency"] or ""}
        means = {}
        for low, group in zip("ab", self.groups, strict=True):
            attrs |= {f"file_{low}": group.file, f"n_{low}": group.n, f"method_{low}": group.method}
            if group.size is not None:
                attrs |= {f"group_{low}": group.label, f"size_{low}": group.size}
            means[f"mean_{low}"] = Array(("component",), group.mean)
        held = {name: Attr(value) for name, value in attrs.items()} | {"": table, **means}
        sections = [
            *(ResultSection(name, Each(value)) for name, value in said.items()),
            ResultSection(
                "groups",
                Each({group.label: self._group(group) for group in self.groups}),
                brief=[Words(f"{group.label}: {group.in_words}", "   ") for group in self.groups],
                title="Groups",
                page=[Items([f"**{group.label}**: {group.in_words}" for group in self.groups])],
            ),
            ResultSection(
                "difference",
                Each(table),
                "Differences",
                text=[[table], [Words(self.meaning(), "")]],
                page=[table],
            ),
            ResultSection("guarantee", Each(guarantee | {"public_groups": self.public_groups})),
            ResultSection("contrast", Each(hdf5=held)),
            warnings_section(self.warnings),
        ]
        heading = "Two groups compared"
        return Tree(heading, heading, self.guarantee.words, tuple(sections), self.warnings)

    def _group(self, group: ContrastedFit) -> dict[str, Any]:
        return {
            "file": group.file,
            "n": group.n,
            "method": group.method,
            **({} if group.size is None else {"size": group.size}),
            "mean": dict(zip(self.names, group.mean.tolist(), strict=True)),
        }

    def _table(self) -> Table:
        first, second = self.groups
        found = self.differences
        last = "beyond" if self.is_bootstrap else "Pr(> 0)" if self.by_sign else "Pr(beyond)"
        keys = ("mean", "sd", "lower", "upper", "mcse", "probability", "excludes_margin", "above")
        held = {key: [getattr(part, key) for part in found] for key in keys}
        spans = [(part.lower, part.upper, part.upper - part.lower) for part in found]
        intervals = [f"{amount(low, width)} to {amount(high, width)}" for low, high, width in spans]
        return Table(
            "component",
            self.names,
            [
                TableColumn.of_words(self._written(first.mean), f"{self.title} in {first.label}"),
                TableColumn.of_words(self._written(second.mean), f"in {second.label}"),
                TableColumn(
                    "label", [_inner(part) for part in found], form=str, where="json hdf5", optional=True
                ),
                TableColumn("unit", [part.unit or None for part in found], optional=True, where="json"),
                TableColumn("mean", held["mean"], where="json hdf5"),
                TableColumn.of_words(
                    self._written(held["mean"], apart=True), f"{first.label} - {second.label}"
                ),
                TableColumn("sd", held["sd"], "sd", where="json hdf5 page"),
                TableColumn("lower", held["lower"]),
                TableColumn("upper", held["upper"]),
                TableColumn.of_words(intervals, f"{100 * self.level:g}% interval"),
                TableColumn("mcse", held["mcse"], "MCSE", ".2g", where="json hdf5 page"),
                TableColumn("probability", held["probability"]),
                TableColumn("excludes_margin", held["excludes_margin"]),
                TableColumn("above", held["above"], optional=True),
                TableColumn.of_words([self._ending(part) for part in found], last),
            ],
            shown=[part.shown for part in found],
        )

    def _written(self, values: Iterable[float], *, apart: bool = False) -> list[str]:
        """Write a number of each row with as many digits as the interval of its difference leaves."""
        return [
            amount(Day(value) if part.date and not apart else value, part.upper - part.lower)
            for value, part in zip(values, self.differences, strict=True)
        ]

    def _ending(self, part: Difference) -> str:
        """Return what the last column says of a difference."""
        if part.probability is None:
            return "yes" if part.excludes_margin else "no"
        return figure(part.above if self.by_sign else part.probability, ".3f")


def _inner(part: Difference) -> str | None:
    """Return what a row's name has between its brackets where people read it, None where that is no other."""
    return None if part.label in ("", part.name) else part.label.partition("[")[2].removesuffix("]")


# Two groups of one release

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
    compared, pair, of_shares = compared_of_groups(chains, file, names, margin)
    known = compared[0].groups
    places = [known.index(name) for name in pair]
    wide = margin if margin is not None else _MARGIN if of_shares else 0.0
    labels = row_labels(chains)
    found: list[Difference] = []
    means: list[tuple[float, float]] = []
    for parameter in compared:
        draws = chains.read(parameter)
        full = np.reshape(parameter.labels(), (len(known), -1))[places[0]].tolist()  # in the first group
        first, second = (draws[:, :, place].reshape(*draws.shape[:2], -1) for place in places)
        rows = _components(parameter) if of_shares else replace(parameter, dims=parameter.dims[1:]).labels()
        for entry, name in enumerate(rows):
            difference = _group_difference(name, first[:, :, entry] - second[:, :, entry], wide, level)
            if not of_shares:
                difference = replace(difference, **_meant(name, subject, dated))
            if not of_shares and full[entry] in labels:
                about = labels[full[entry]].removesuffix(f" in {pair[0]}")
                difference = replace(difference, label=shown_name(name, {name: about}))
            found.append(difference)
            means.append((float(first[:, :, entry].mean()), float(second[:, :, entry].mean())))
    sizes = next((chains.read(p) for p in chains.parameters if p.groups and p.name == "group_size"), None)
    first_group, second_group = (
        ContrastedFit(
            label=name,
            file=file,
            n=chains.n,
            method=chains.method,
            mean=np.array([mean[number] for mean in means]),
            size=None if sizes is None else float(sizes[:, :, place].mean()),
        )
        for number, (name, place) in enumerate(zip(pair, places, strict=True))
    )
    return Contrast(
        groups=(first_group, second_group),
        title=compared[0].title if of_shares else "parameter",
        differences=tuple(found),
        margin=wide,
        level=level,
        is_bootstrap=False,
        public_groups=False,
        guarantee=_guarantee(chains.attrs, chains.mechanism),
        warnings=tuple(text for text, _ in warnings),
        failures=tuple(text for text, convergence in warnings if convergence),
    )


def compared_of_groups(
    chains: NamedChains, file: str, names: Sequence[str] | None, margin: float | None
) -> tuple[list[Stored], tuple[str, str], bool]:
    """Return what of two groups is compared, which two these are, and whether it is their shares.

    Raises DataError and UsageError as `contrast_groups`.
    """
    held = [p for p in chains.parameters if p.groups and p.role in ("scalar", "shares")]
    compared = [p for p in held if p.name not in _SIZES]
    if not compared:
        raise DataError(
            f"{file} is not of a release of groups; --contrast takes one chains file of such a release, or "
            "two chains files"
        )
    pair = _chosen(names, compared[0].groups)
    shares = [p for p in compared if p.role == "shares"]
    of_shares = len(shares) == 1 and (len(compared) == 1 or meaning_of(chains).contrasts_shares)
    if of_shares and margin is not None and margin >= 1.0:
        raise UsageError(f"--margin: {margin:g} must be a difference of shares, from 0 to below 1")
    return shares if of_shares else compared, pair, of_shares


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
            hint = f"did you mean {near[0]}?" if near else f"there are {listed}".rstrip()
            raise UsageError(f"--groups: the release has no group {name}; {hint}")
    return names[0], names[1]


def _components(shares: Stored) -> list[str]:
    """Return the names of the categories that shares are of, without groups."""
    return [str(name) for name in shares.coords[shares.dims[-1]]]


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


def _guarantee(attrs: Mapping[str, Any], mechanism: Law) -> JointGuarantee:
    """Return what the one release guarantees, for both groups together."""
    epsilon, delta, rho = stated_parameters(attrs)
    adjacency = str(attrs.get("adjacency", "replacement, private groups"))
    guarantee = guarantee_in_words(epsilon, delta, rho, "global", adjacency, grouped=True)
    words = f"One release of both groups, with {as_stated(guarantee) if mechanism.elsewhere else guarantee}"
    if is_simulated(attrs) or not is_private(attrs):
        words += ", had its noise been real (the data are simulated, or the noise can be reproduced)"
    return JointGuarantee(epsilon, delta, rho, f"{words}.", adjacency)


# Two fits

_HALVINGS = 60


def compared_of_fits(pair: Sequence[NamedChains], files: Sequence[str]) -> tuple[Sequence[Stored], bool]:
    """Return the shares of two fits, which are compared, and whether their draws are those of bootstraps.

    Raises DataError as `contrast_chains`.
    """
    for file, chains in zip(files, pair, strict=True):
        known = next((p.groups for p in chains.parameters if p.groups), None)
        if known:
            raise DataError(
                f"{file} is of a release of groups, {', '.join(known)}: compare these by --contrast of that "
                "file alone"
            )
    shares = _shares(pair, files)
    bootstrap = [chains.method == "bootstrap" for chains in pair]
    if bootstrap[0] != bootstrap[1]:
        other, own = (0, 1) if bootstrap[0] else (1, 0)
        raise DataError(
            f"{files[other]} holds draws of a bootstrap and {files[own]} of a posterior, whose intervals "
            "mean different things; fit both by the same kind of method"
        )
    return shares, bootstrap[0]


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
    shares, bootstrap = compared_of_fits(pair, files)
    found, means = [], []
    order = _components(shares[1])
    for place, name in enumerate(_components(shares[0])):
        there = order.index(name)
        draws = [
            chains.read(parameter, slice(entry, entry + 1))[:, :, 0]
            for chains, parameter, entry in zip(pair, shares, (place, there), strict=True)
        ]
        found.append(_difference(name, draws[0], draws[1], margin, level, not bootstrap))
        means.append([float(part.mean()) for part in draws])
    texts = [text for text, _ in warnings]
    if same_release(first, second):
        texts.append(
            "Both fits are of the same release: differences are between methods, and not between groups."
        )
    a, b = (
        ContrastedFit(label, file, chains.n, chains.method, np.array([mean[i] for mean in means]))
        for i, (label, file, chains) in enumerate(zip("AB", files, pair, strict=True))
    )
    return Contrast(
        groups=(a, b),
        title=shares[0].title,
        differences=tuple(found),
        margin=margin,
        level=level,
        is_bootstrap=bootstrap,
        public_groups=public_groups,
        guarantee=guarantee,
        warnings=tuple(texts),
        failures=tuple(text for text, convergence in warnings if convergence),
    )


def _shares(pair: Sequence[NamedChains], files: Sequence[str]) -> tuple[Stored, Stored]:
    """Return the shares that both fits have, of the same components."""
    kinds = [chains.model for chains in pair]
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
    names = [_components(parameter) for parameter in (first, second)]
    if set(names[0]) != set(names[1]) or len(names[0]) != len(names[1]):
        raise DataError(
            f"{files[1]} has components {', '.join(names[1])}, and {files[0]} has {', '.join(names[0])}: "
            "they do not compare"
        )
    return first, second


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
