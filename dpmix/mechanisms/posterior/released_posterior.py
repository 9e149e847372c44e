"""What all private releases of a conjugate posterior share: counts in, parameters of a posterior out."""

from __future__ import annotations

import abc
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import Mechanism, Pairs, Progress
from dpmix.mechanisms.curators.neighbours import Pair, moved
from dpmix.posteriors.hellinger_law import checked_counts
from dpmix.privacy.exact import Source
from dpmix.release.sanitized import Release

__all__ = ["PosteriorRelease"]

Floats = NDArray[np.float64]
Method = Literal["hellinger", "laplace", "geometric"]


@dataclass(frozen=True, kw_only=True)
class PosteriorRelease(Mechanism):
    """Release the posterior of category probabilities, Dir(prior + counts), by its parameters.

    Parameters
    ----------
    prior : tuple of float
        Parameters of the beta or Dirichlet prior, one for each category.
    n : int
        Number of confidential records, which is public.
    categories : tuple of str
        Public names of the categories; empty where they are not known.
    requested : dict
        What was asked for, such as ``{"epsilon": 0.8, "delta": 1e-8}``.
    choice : dict of float
        Expected error of each method, where the spec left the method out; empty where it did not.
    """

    kind: ClassVar[str] = "posterior"
    method: ClassVar[Method]
    prior: tuple[float, ...]
    n: int
    categories: tuple[str, ...] = ()
    requested: Mapping[str, float] = field(default_factory=dict)
    domain: Pairs = ()
    choice: Mapping[str, float | None] = field(default_factory=dict)

    def neighbours(self, columns: int, n: int) -> Iterator[Pair]:
        """Yield databases of which a record changes its category; see `Mechanism`."""
        last = float(len(self.prior) - 1)
        for share in (0, n // 2):
            base = np.zeros((n, 1))
            base[1 : 1 + share] = last
            yield moved(f"a count goes from {share} to {share + 1}", base, np.zeros(1), np.full(1, last))

    @abc.abstractmethod
    def own(self) -> dict[str, Any]:
        """Return what is public of this method alone, for JSON."""

    @abc.abstractmethod
    def choose(self, counts: tuple[int, ...], source: Source) -> tuple[Floats, dict[str, Any]]:
        """Return counts that are private, shape (d,), and anything else that may be released of them."""

    @abc.abstractmethod
    def imitate(self, counts: tuple[int, ...], rng: np.random.Generator) -> tuple[Floats, dict[str, Any]]:
        """Return what `choose` does, from a seeded generator: simulations only."""

    def random_records(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw records of nobody; see `Mechanism`."""
        return rng.integers(len(self.prior), size=(n, 1)).astype(np.float64)

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return {
            "kind": self.kind,
            "method": self.method,
            "prior": list(self.prior),
            "n": self.n,
            "categories": list(self.categories) or None,
            "requested": dict(self.requested),
            "choice": dict(self.choice) or None,
            "domain": None,
        } | self.own()

    def figures(self) -> dict[str, Any]:
        """Return the method, and why it is that one where the spec does not say."""
        return {"method": self.method} | ({"choice": dict(self.choice)} if self.choice else {})

    def chosen_in_words(self) -> str:
        """Say by which expected errors the method was chosen; nothing where the spec says the method."""
        if not self.choice:
            return ""
        known = ", ".join(
            f"{name} {'not possible' if error is None else f'{error:.3g}'}"
            for name, error in self.choice.items()
        )
        return f"; method {self.method} chosen by expected error, of public numbers alone: {known}"

    def counts(self, values: Floats) -> tuple[int, ...]:
        """Return the counts of the categories.

        Parameters
        ----------
        values : ndarray of float64, shape (n, 1)
            Codes 0, .., d - 1.

        Raises
        ------
        PrivacyError
            When they are not n such codes.
        """
        d = len(self.prior)
        codes = values[:, 0] if values.shape == (self.n, 1) else np.array([np.nan])
        if not np.isin(codes, np.arange(d)).all():
            raise PrivacyError(
                f"{self.kind} takes {self.n} records of one column, each of {d} categories by its code"
            )
        return tuple(np.bincount(codes.astype(np.int64), minlength=d).tolist())

    def privatize(
        self, values: Floats, columns: Sequence[str], progress: Progress | None = None
    ) -> tuple[Release, tuple[int, ...]]:
        """Release the posterior given codes of categories; see `Mechanism`."""
        release = _named(self.privatize_counts(self.counts(values)), columns)
        if progress is not None:
            progress(values.size)
        return release, (0,)

    def simulate(
        self, values: Floats, columns: Sequence[str], rng: np.random.Generator
    ) -> tuple[Release, tuple[int, ...]]:
        """Release the posterior given simulated codes with seeded randomness; see `Mechanism`."""
        return _named(self.simulate_counts(self.counts(values), rng), columns), (0,)

    def privatize_counts(self, counts: Sequence[float] | NDArray[np.generic]) -> Release:
        """Release the posterior given counts, with the operating system's randomness.

        Parameters
        ----------
        counts : sequence
            Of the categories, confidential.

        Raises
        ------
        PrivacyError
            When they are not whole numbers of at least 0 that sum to n, one for each entry of the prior.
        """
        checked = checked_counts(counts, len(self.prior), self.n)
        return self._release(*self.choose(checked, os.urandom), private=True)

    def simulate_counts(
        self, counts: Sequence[float] | NDArray[np.generic], rng: np.random.Generator
    ) -> Release:
        """Release the posterior given simulated counts, with seeded randomness; see `privatize_counts`."""
        checked = checked_counts(counts, len(self.prior), self.n)
        return self._release(*self.imitate(checked, rng), private=False)

    def _release(self, chosen: Floats, more: Mapping[str, Any], *, private: bool) -> Release:
        values = (np.array(self.prior) + chosen)[:, None]
        return self.made(values, ("parameter",), self.n, private=private, chosen=more)


def _named(release: Release, columns: Sequence[str]) -> Release:
    """Return a release whose mechanism states the column whose categories were counted."""
    return dataclasses.replace(release, mechanism=release.mechanism.updated(column=columns[0]))
