"""k-ary randomized response of categories (methods, section 13; Warner 1965)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.mechanism import (
    Floats,
    Loss,
    NearAnswers,
    Pair,
    Pairs,
    Progress,
    PublicRecords,
    Released,
    Seeded,
    Stated,
    loss_of_near_outputs,
    moved,
    order_in_words,
)
from dpmix.privacy.accounting import Guarantee, sum_up
from dpmix.privacy.near_outputs import NearOutputs, ratio_below

if TYPE_CHECKING:
    from dpmix.mechanisms.randomized_response.section import RandomizedResponseMechanism


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(NearAnswers):
    """Release for each column of a record its category with weight u, each other one with weight v.

    r = u/v is just below e^eps, eps the column's equal share of epsilon: two records have the ratio r, 1/r or
    1 at any answer, so that a column costs log(r) exactly. rho is the sum over columns of the largest
    D_alpha/alpha, of the K of that column: for K = 2 that is log(r) tanh(log(r)/2).

    Parameters
    ----------
    categories : tuple of tuple of str
        Public categories of each column.
    """

    kind: ClassVar[str] = "randomized_response"
    categories: tuple[tuple[str, ...], ...]
    domain: Pairs = ()

    def __post_init__(self) -> None:
        """Check that every column has categories to choose from."""
        if not self.categories or not all(len(set(names)) == len(names) > 1 for names in self.categories):
            raise PrivacyError("randomized response is of columns with two different categories or more")

    def random_records(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw records of nobody; see `Mechanism`."""
        sizes = tuple(len(names) for names in self.categories)
        return rng.integers(sizes, size=(n, len(sizes))).astype(np.float64)

    @property
    def responses(self) -> tuple[NearOutputs, ...]:
        """The response of each column."""
        return tuple(NearOutputs(1, len(names) - 1, self.ratio, 1) for names in self.categories)

    @functools.cached_property
    def guarantee(self) -> Guarantee:
        """Total over a record's columns of the ratio that is used, rounded up."""
        parts = [response.guarantee(1) for response in self.responses]
        total = self.responses[0].guarantee(len(parts))  # whose epsilon does not depend on the categories
        return Guarantee(total.epsilon, 0.0, sum_up(part.rho or 0.0 for part in parts))

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return {
            "kind": self.kind,
            "calibration": "exact",
            "requested": dict(self.requested),
            "scale": [],
            "ratio": f"{self.ratio.numerator}/{self.ratio.denominator}",
            "categories": [list(names) for names in self.categories],
        }

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee: chances of the right answer, too."""
        r = float(self.ratio)
        right = [r / (r + len(names) - 1.0) for names in self.categories]
        return {
            "ratio": f"{self.ratio.numerator}/{self.ratio.denominator}",
            "truth": right[0] if len(right) == 1 else right,
        }

    def in_words(self, columns: Sequence[str]) -> str:
        """Say what is released of a record."""
        kinds = ", ".join(f"{len(n)} of {c}" for n, c in zip(self.categories, columns, strict=False))
        return (
            f"randomized response: the category ({kinds}) {float(self.ratio):.6g} times as likely as each "
            f"other, {order_in_words(self.order)}"
        )

    def codes(self, values: Floats) -> NDArray[np.int64]:
        """Return the numbers of categories, shape (n, d).

        Raises
        ------
        PrivacyError
            When the values are not such; nothing is said about which.
        """
        sizes = np.array([len(names) for names in self.categories])
        if values.ndim != 2 or values.shape[1] != sizes.size or values.dtype != np.float64:
            raise PrivacyError(f"randomized response takes numbers of categories in {sizes.size} columns")
        if not ((values == np.floor(values)) & (values >= 0) & (values < sizes)).all():
            raise PrivacyError("randomized response takes numbers of the public categories only")
        return values.astype(np.int64)

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        codes = self.codes(values)
        release = self._released_near(self.responses, codes, columns, rng, labels=self.categories)
        return release, (0,) * len(self.categories)

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record changes every category; see `Mechanism`."""
        words = "a record goes from the first categories to the last"
        ends = np.array([len(names) - 1.0 for names in self.categories])
        yield moved(words, np.zeros((n, columns)), np.zeros(columns), ends)

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of the first record's answers; see `Mechanism`."""
        return loss_of_near_outputs(one[0], other[0], self.responses[0])


def categories_of(records: PublicRecords) -> tuple[tuple[str, ...], ...]:
    """Return the public categories of every column.

    Raises
    ------
    SpecError
        Where some are missing.
    """
    found = tuple(records.categories)
    if len(found) != records.columns or any(names is None for names in found):
        raise SpecError(
            "data.categories: missing; randomized_response needs the public categories of every column, here "
            "or in release.categories"
        )
    listed = tuple(names for names in found if names is not None)
    for names in listed:
        if len(names) < 2:
            raise SpecError("data.categories: a column with one category tells nothing; list two or more")
    return listed


def make(spec: RandomizedResponseMechanism, records: PublicRecords) -> RandomizedResponse:
    """Return the mechanism of a spec.

    Raises
    ------
    SpecError
        Where categories are missing.
    PrivacyError
        When epsilon cannot be met.
    """
    assert spec.epsilon is not None  # checked
    listed = categories_of(records)
    ratio = ratio_below(Fraction(spec.epsilon) / len(listed))
    return RandomizedResponse(categories=listed, ratio=ratio, requested=spec.requested())


def stated(spec: RandomizedResponseMechanism, records: PublicRecords) -> Stated:
    """Return what is known of a release made elsewhere, and its guarantee by formula."""
    made = make(spec, records)
    own = {key: made.describe()[key] for key in ("scale", "ratio", "categories")}
    return own, made.guarantee
