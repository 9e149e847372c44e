"""What a generator of synthetic records is."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.mechanisms.laws.every import law_of
from dpmix.release.sanitized import Release
from dpmix.spec.capabilities import counted

if TYPE_CHECKING:
    from dpmix.mechanisms.curators.mechanism import Loss, NoisyCells, Seeded
    from dpmix.privacy.accounting import Guarantee
    from dpmix.release.possible import Possible
    from dpmix.synthesis.records import Column, Records

Floats = NDArray[np.float64]
Labels = tuple[tuple[str, ...] | None, ...]


@dataclass(frozen=True, kw_only=True)
class Generator(abc.ABC):
    """A way of drawing synthetic records: its parameters are public, and it knows its own guarantee.

    Parameters
    ----------
    columns : tuple of Column
        What is public of the columns.
    n : int
        Number of confidential records.
    records : int
        Number of synthetic records m.
    requested : dict
        What was asked for, such as ``{"epsilon": 1.0, "delta": 0.01}``.
    ranges : tuple of dict
        What is stated of possible records, for JSON.
    possible : Possible or None
        The possible part of the cells, or of the space of new values, where ranges are stated.
    """

    kind: ClassVar[str]
    columns: tuple[Column, ...]
    n: int
    records: int
    requested: dict[str, float] = field(default_factory=dict)
    ranges: tuple[dict[str, Any], ...] = ()
    possible: Possible | None = None

    @property
    @abc.abstractmethod
    def guarantee(self) -> Guarantee:
        """Guarantee of all the records together."""

    @property
    def of_any_number(self) -> bool:
        """Whether guarantee and noise are the same for every number of confidential records."""
        return False

    @property
    def numbers_a_draw(self) -> int:
        """How many numbers an audit has to reckon one draw as."""
        return 1

    def of_records(self, n: int) -> Self:
        """Return it for another number of confidential records, where its kind lets that be."""
        return self if self.n == n else replace(self, n=n)

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the log ratio of the densities of releases, of which is told how many lie in two cells.

        `one` and `other` (2,) say how many records of either of two neighbouring databases lie in the two;
        the others are the same. What is returned goes from releases, shape (runs, 2), to their losses, shape
        (runs,); None where it is not known.
        """
        return None

    @abc.abstractmethod
    def weakened(self) -> tuple[str, Self]:
        """Return what is wrong with a twin that gives away twice as much, and it: for audits."""

    @property
    def uniform_share(self) -> float | None:
        """About what share of the draws ignores the records, for privacy's sake; None where noise does it."""
        return None

    @property
    def noisy_cells(self) -> NoisyCells | None:
        """Cells of a histogram and the standard deviation of their noise; None where there is none."""
        return None

    @abc.abstractmethod
    def own(self) -> dict[str, Any]:
        """Return what is public of this kind alone, for JSON."""

    @abc.abstractmethod
    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""

    @abc.abstractmethod
    def in_words(self) -> str:
        """Say what is drawn, in one clause."""

    @abc.abstractmethod
    def draw(self, records: Records, rng: Seeded) -> tuple[Floats, Labels]:
        """Draw synthetic records.

        Parameters
        ----------
        records : Records
            Confidential; n of them.
        rng : Generator or None
            Where simulations draw from; None for the operating system's randomness.

        Returns
        -------
        ndarray of float64, shape (m, d), and labels by column
            Numbers and codes; the text that codes stand for.
        """

    def describe(self) -> dict[str, Any]:
        """Return everything public about the generator, for JSON."""
        return {
            "kind": "synthetic",
            "generator": self.kind,
            "columns": [column.describe() for column in self.columns],
            "records": self.records,
            "requested": dict(self.requested),
            "scale": [],
            **({"ranges": list(self.ranges)} if self.ranges else {}),
        } | self.own()

    def said(self) -> str:
        """Say what is drawn, and that ranges hold of it."""
        within = f", within {counted(len(self.ranges), 'public range')}" if self.ranges else ""
        return self.in_words() + within

    def release(self, records: Records) -> Release:
        """Draw the release: of real records from the operating system's randomness, of simulated ones seeded.

        Raises
        ------
        PrivacyError
            When there are not as many records as the guarantee is for.
        """
        if records.n != self.n:
            raise PrivacyError(f"the guarantee is for {self.n} records, not {records.n}")
        values, labels = self.draw(records, records.rng)
        total = self.guarantee
        return Release(
            values=values,
            columns=tuple(column.name for column in self.columns),
            mechanism=law_of(self.describe()),
            epsilon=total.epsilon,
            delta=total.delta,
            rho=total.rho,
            n=self.n,
            adjacency=total.adjacency,
            proved=total.proved,
            trust="global",
            private=records.rng is None,
            simulated=records.rng is not None,
            labels=labels if any(names is not None for names in labels) else (),
        )
