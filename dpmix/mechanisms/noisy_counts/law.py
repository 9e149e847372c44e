"""The law of noisy counts by class and level (methods, section 7)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dpmix.mechanisms.laws.law_base import Floats, OneScale, Says, Whole, of_scale
from dpmix.mechanisms.laws.noise_laws import noise_name
from dpmix.mechanisms.laws.statistic_laws import Statistic, far_beyond
from dpmix.mechanisms.noisy_counts.section import NoisyCountsMechanism

__all__ = ["LAW", "NoisyCountsLaw"]


class NoisyCountsLaw(Statistic):
    """Counts of records by class and level of each feature, in each group where there are any, plus noise."""

    capabilities = NoisyCountsMechanism

    levels: Annotated[
        tuple[Annotated[Whole, Field(ge=2)], ...],
        Field(min_length=1),
        Says("does not state its levels, whole numbers of at least 2"),
    ]
    classes: Annotated[Whole, Field(ge=1), Says("does not state its classes, a whole number of at least 1")]
    noise: Annotated[
        Literal["laplace", "geometric", "discrete_gaussian"],
        Says("does not state its noise, laplace, geometric or discrete_gaussian"),
    ]
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

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        noise = noise_name(self.noise)
        added = f"{noise[0].upper()}{noise[1:]}{of_scale(self.scale)} was added to the counts of {n} records"
        together = "by class and level, which were released for all of them together"
        if self.groups is None:
            return f"{added} {together}."
        column, names = next(iter(self.groups.items()))
        private = "how many records a group has is private"
        return f"{added} by {column} ({', '.join(names)}) {together}; {private}."


LAW = NoisyCountsLaw
