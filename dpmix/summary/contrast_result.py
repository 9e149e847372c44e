"""The comparison of two fits, as data."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from dpmix.summary.families.family import Floats
from dpmix.summary.result import WIDTH, figure

__all__ = [
    "Contrast",
    "Difference",
    "Group",
    "Joint",
    "last_cell",
    "last_column",
    "meaning",
    "records",
    "text",
]


# The comparison of two fits as text for a terminal.


def text(found: Contrast) -> str:
    """Return groups, differences, guarantee and warnings, in at most 96 columns."""
    lines = []
    for group in found.groups:
        lines += _wrapped(f"{group.label}: {group.file} ({records(group)}, {group.method})", "   ")
    lines += ["", *_table(found), "", *_wrapped(meaning(found)), "", *_wrapped(found.guarantee.words)]
    if found.warnings:
        lines += ["", "Warnings:"]
        for warning in found.warnings:
            lines += _wrapped(f"- {warning}", "  ")
    return "\n".join(lines)


def records(group: Group) -> str:
    """Say how many records a group has: about how many of all, where that is private."""
    return f"{group.n:,} records" if group.size is None else f"about {group.size:,.0f} of {group.n:,} records"


def meaning(found: Contrast) -> str:
    """Say what the columns of the comparison are."""
    level = f"{100 * found.level:g}%"
    first, second = (group.label for group in found.groups)
    what = f"{first} - {second} is the difference of {found.title}, with its {level}"
    if found.is_bootstrap:
        return (
            f"{what} confidence interval from pairs of refits. 'beyond' says whether that lies outside of "
            f"[-{found.margin:g}, {found.margin:g}], each component by itself."
        )
    if found.by_sign:
        return (
            f"{what} credible interval. Pr(> 0) is the posterior probability that it is positive, each row "
            "by itself."
        )
    return (
        f"{what} credible interval. Pr(beyond) is the posterior probability that it is larger than "
        f"{found.margin:g} in absolute value, each component by itself."
    )


def last_column(found: Contrast) -> str:
    """Name the last column of the table."""
    return "beyond" if found.is_bootstrap else "Pr(> 0)" if found.by_sign else "Pr(beyond)"


def last_cell(found: Contrast, part: Difference) -> str:
    """Return what it says of a difference."""
    if part.probability is None:
        return "yes" if part.excludes_margin else "no"
    return figure(part.above if found.by_sign else part.probability, ".3f")


def _table(found: Contrast) -> list[str]:
    level = f"{100 * found.level:g}%"
    last = last_column(found)
    first, second = found.groups
    a, b = first.label, second.label
    rows = [("", f"{found.title} in {a}", f"in {b}", f"{a} - {b}", f"{level} interval", last)]
    for place, part in enumerate(found.differences):
        ending = last_cell(found, part)
        interval = f"{figure(part.lower)} to {figure(part.upper)}"
        cells = (figure(first.mean[place]), figure(second.mean[place]), figure(part.mean), interval, ending)
        rows.append((part.name, *cells))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)


@dataclass(frozen=True)
class Group:
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


@dataclass(frozen=True)
class Joint:
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


@dataclass(frozen=True)
class Contrast:
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

    groups: tuple[Group, Group]
    title: str
    differences: tuple[Difference, ...]
    margin: float
    level: float
    is_bootstrap: bool
    public_groups: bool
    guarantee: Joint
    warnings: tuple[str, ...]
    failures: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as lists, dicts and numbers that strict JSON can hold."""
        guarantee = {
            name: getattr(self.guarantee, name) for name in ("epsilon", "delta", "rho", "adjacency", "words")
        }
        return {
            "contrast": self.title,
            "margin": self.margin,
            "level": self.level,
            "interpretation": "confidence" if self.is_bootstrap else "posterior",
            "groups": {
                group.label: {
                    "file": group.file,
                    "n": group.n,
                    "method": group.method,
                    **({} if group.size is None else {"size": group.size}),
                    "mean": dict(zip(self.names, group.mean.tolist(), strict=True)),
                }
                for group in self.groups
            },
            "difference": {
                found.name: {
                    "mean": found.mean,
                    "sd": found.sd,
                    "lower": found.lower,
                    "upper": found.upper,
                    "mcse": found.mcse,
                    "probability": found.probability,
                    "excludes_margin": found.excludes_margin,
                    **({} if found.above is None else {"above": found.above}),
                }
                for found in self.differences
            },
            "guarantee": guarantee | {"public_groups": self.public_groups},
            "warnings": list(self.warnings),
        }

    @property
    def by_sign(self) -> bool:
        """Whether groups of one release are compared without a margin: then the sign is what is asked."""
        return self.margin == 0.0 and all(found.above is not None for found in self.differences)

    @property
    def names(self) -> list[str]:
        """Names of the components."""
        return [found.name for found in self.differences]

    def to_text(self) -> str:
        """Return the comparison as text for a terminal."""
        return text(self)
