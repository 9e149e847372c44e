"""The law of a category that is told rightly or not (methods, section 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from pydantic import Field, field_validator

from dpmix.laws.law_base import (
    Floats,
    Labels,
    Law,
    Ratio,
    Says,
    Scales,
    each_of,
    first,
    fraction_of,
)
from dpmix.mechanisms.randomized_response.section import RandomizedResponseMechanism

_CATEGORIES = "does not list the categories of each column, two different names or more"


class RandomizedResponseLaw(Law):
    """The number of each column's category, r times as likely as each other one of its column."""

    capabilities = RandomizedResponseMechanism
    ratio: Ratio
    categories: Annotated[tuple[tuple[str, ...], ...], Field(min_length=1), Says(_CATEGORIES)]
    scale: Scales = ()

    @field_validator("categories")
    @classmethod
    def _named(cls, value: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        if not all(len(names) > 1 and len(set(names)) == len(names) for names in value):
            raise ValueError(_CATEGORIES)
        return value

    @property
    def odds(self) -> float:
        """The ratio r, as the nearest double."""
        return float(fraction_of(self.ratio))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each column."""
        return tuple(len(names) for names in self.categories)

    def of_columns(self, columns: Sequence[int]) -> Self:
        """Return the law of some columns."""
        return self.updated(categories=[list(self.categories[column]) for column in columns])

    def disagreement(self, n: int, columns: int) -> str | None:
        """Say whether there are categories of another number of columns."""
        if len(self.categories) != columns:
            return f"lists categories of {len(self.categories)} columns for {columns}"
        return None

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say which value is no number of a category."""
        if values.shape[1] != len(self.sizes):
            return f"has {values.shape[1]} columns, but categories of {len(self.sizes)} are listed"
        sizes = np.array(self.sizes)
        bad = ((values != np.floor(values)) | (values < 0) | (values >= sizes)).any(axis=1)
        return first(bad, "is no number of a category, from 0 on", "record")

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        several = " in each column" if len(self.sizes) > 1 else ""
        return (
            f"{each_of(n).capitalize()} was released on its own by randomized response: its "
            f"category{several}, {self.odds:.4g} times as likely as each other one."
        )

    def chances(self, shares: Floats) -> Floats:
        """Return the chances of the answers (.., K) of records with these shares of categories."""
        return np.asarray((1.0 + (self.odds - 1.0) * shares) / (self.odds + shares.shape[-1] - 1.0))


LAW = RandomizedResponseLaw
