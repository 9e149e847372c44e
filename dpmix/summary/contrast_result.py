"""The comparison of two fits, as data and as a tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpmix.release.column_units import labelled
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
from dpmix.summary.families.family import Floats
from dpmix.summary.headline import amount

__all__ = ["Contrast", "Difference", "ContrastedFit", "JointGuarantee"]


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
        what = f"{first} - {second} is the difference of {self.title}, with its {level}"
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
        shown = "text page"
        return Table(
            "component",
            self.names,
            [
                TableColumn(
                    "", self._written(first.mean), f"{self.title} in {first.label}", str, where=shown
                ),
                TableColumn("", self._written(second.mean), f"in {second.label}", str, where=shown),
                TableColumn("unit", [part.unit or None for part in found], optional=True, where="json"),
                TableColumn("mean", held["mean"], where="json hdf5"),
                TableColumn(
                    "",
                    self._written(held["mean"], apart=True),
                    f"{first.label} - {second.label}",
                    str,
                    where=shown,
                ),
                TableColumn("sd", held["sd"], "sd", where="json hdf5 page"),
                TableColumn("lower", held["lower"]),
                TableColumn("upper", held["upper"]),
                TableColumn(
                    "",
                    [
                        f"{amount(part.lower, part.upper - part.lower)} to "
                        f"{amount(part.upper, part.upper - part.lower)}"
                        for part in found
                    ],
                    f"{100 * self.level:g}% interval",
                    str,
                    where=shown,
                ),
                TableColumn("mcse", held["mcse"], "MCSE", ".2g", where="json hdf5 page"),
                TableColumn("probability", held["probability"]),
                TableColumn("excludes_margin", held["excludes_margin"]),
                TableColumn("above", held["above"], optional=True),
                TableColumn("", [self._ending(part) for part in found], last, str, where=shown),
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
