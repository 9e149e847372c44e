"""The law of noisy counts by class and level (methods, section 7)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dpmix.laws.additive import noise_added
from dpmix.laws.law_base import (
    Floats,
    OneScale,
    Says,
    Whole,
    whole_where_all_are,
)
from dpmix.laws.statistic_laws import Statistic, far_beyond
from dpmix.mechanisms.noisy_counts.section import Noise, NoisyCountsMechanism
from dpmix.spec.capabilities import counted


class NoisyCountsLaw(Statistic):
    """Counts of records by class and level of each feature, in each group where there are any, plus noise."""

    capabilities = NoisyCountsMechanism

    levels: Annotated[
        tuple[Annotated[Whole, Field(ge=2)], ...],
        Field(min_length=1),
        Says("does not state its levels, whole numbers of at least 2"),
    ]
    classes: Annotated[Whole, Field(ge=1), Says("does not state its classes, a whole number of at least 1")]
    noise: Annotated[Noise, Says("does not state its noise, laplace, geometric or discrete_gaussian")]
    scale: OneScale
    columns: tuple[str, ...] = ()
    categories: dict[str, tuple[str, ...]] | None = None

    @property
    def power(self) -> int:
        """The p of noise whose log density is -|x/s|^p / p, up to a constant."""
        return 2 if self.noise == "discrete_gaussian" else 1

    def length(self) -> tuple[int, str]:
        """Return the number of counts: by group, class and level."""
        count = len(self.group_names)
        why = f"levels {list(self.levels)} in {self.classes} class{'es' * (self.classes != 1)}"
        why += f" of each of {count} groups" if count else ""
        return self.classes * sum(self.levels) * max(1, count), why

    def warning(self, values: Floats, n: int) -> str | None:
        """Say that counts are beyond what n records and their noise can give."""
        return far_beyond(values, n, 0.0, n, self.scale[0])

    def tabulated(self, values: Floats) -> dict[str, Any]:
        """Return counts with what they are of; they stand by feature, group, class, level. See `Law`."""
        titles, names = self.levels_by_column()
        groups = self.group_names or (None,)
        rows = [
            (group, title, level, of_class)
            for title, levels in zip(titles[:-1], names[:-1], strict=True)
            for group in groups
            for of_class in names[-1]
            for level in levels
        ]
        found: dict[str, Any] = {} if not self.groups else {next(iter(self.groups)): [row[0] for row in rows]}
        found |= {"feature": [row[1] for row in rows], "level": [row[2] for row in rows]}
        last = "class" if titles[-1] in ("feature", "level", "count") else titles[-1]
        return {**found, last: [row[3] for row in rows], "count": whole_where_all_are(values)}

    def levels_by_column(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return names of all columns, the class last, and labels of their levels; numbers where not told."""
        sizes = (*self.levels, self.classes)
        titles = self.columns
        if len(titles) != len(sizes):
            titles = (*(f"feature_{k + 1}" for k in range(len(self.levels))), "class")
        stated = [(self.categories or {}).get(title, ()) for title in titles]
        return titles, [
            labels if len(labels) == size else tuple(str(number + 1) for number in range(size))
            for labels, size in zip(stated, sizes, strict=True)
        ]

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        by, private = self.by_groups
        return (
            f"{noise_added(self.noise, self.scale)} the counts of {counted(n, 'record')}{by} by class and "
            f"level, which were released for all of them together{private}."
        )


LAW = NoisyCountsLaw
