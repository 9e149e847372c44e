"""What mechanisms and samplers state of themselves, from which it follows what goes with what.

A mechanism states it once, in its section of the spec, which starts without NumPy; its law takes it from
there. Defaults are those of a mechanism that releases each record by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel


class Capabilities(BaseModel):
    """What a mechanism can do.

    Attributes
    ----------
    released : str
        What a release is, by which models say what they take: ``"records"``, a number of each;
        ``"categories"``, one of each; ``"histogram"``, of equal bins; or the name of a statistic.
    trust : str
        ``"local"``: each record is released by itself; ``"global"``: the whole sample together.
    row : str
        What a row of the released values is, as their dimension is named.
    rows_name : str
        What the rows of a release of the whole sample are called.
    counts_bins : bool
        Whether what is released of a histogram are its counts, and not draws.
    additive : bool
        Whether each released number is the record's own plus noise.
    normal_noise : bool
        Whether that noise is normal, so that its variance adds to that of a normal kernel.
    on_data_scale : bool
        Whether a released value is about one of the data's, so that both can be drawn on one axis.
    finite_outputs : bool
        Whether there are finitely many values that a release of a record can have.
    countable : bool
        Whether the sampler on counts takes it: one number a record, in cells or of finitely many outputs,
        or a histogram of all.
    transitional : bool
        Whether its law tells how likely cells of released values are given a cell of records, from which
        EM with smoothing makes an estimate.
    names_columns : bool
        Whether the columns of a release have the names of the data's. What is released of all columns, or of
        one in several numbers, has these in columns of its own.
    columns_each : bool
        Whether each column is released on its own, so that a fit may take some of them.
    statistic : bool
        Whether it is of the whole sample, of several columns together, without bounds of each.
    grouped : bool
        Whether a release can be of groups whose sizes are private.
    protects : bool
        Whether anything is done to the records.
    guarantees : bool
        Whether a release of it states what is guaranteed.
    on_domain : bool
        Whether it is of columns whose public bounds it needs.
    of_known_number : bool
        Whether its release, or what that guarantees, depends on the number of records.
    """

    released: ClassVar[str] = ""
    trust: ClassVar[str] = "local"
    row: ClassVar[str] = "record"
    rows_name: ClassVar[str] = "numbers"
    counts_bins: ClassVar[bool] = False
    additive: ClassVar[bool] = False
    normal_noise: ClassVar[bool] = False
    on_data_scale: ClassVar[bool] = False
    finite_outputs: ClassVar[bool] = False
    countable: ClassVar[bool] = False
    transitional: ClassVar[bool] = False
    names_columns: ClassVar[bool] = True
    columns_each: ClassVar[bool] = False
    statistic: ClassVar[bool] = False
    grouped: ClassVar[bool] = False
    protects: ClassVar[bool] = True
    guarantees: ClassVar[bool] = True
    on_domain: ClassVar[bool] = False
    of_known_number: ClassVar[bool] = False


class Synthetic(Capabilities):
    """Synthetic records, which a generator has drawn and no mechanism of a spec."""

    released = "synthetic"
    trust = "global"
    rows_name = "synthetic records"


class Elsewhere(Capabilities):
    """Values made elsewhere, by a mechanism that only the model knows."""

    released = "elsewhere"
    trust = "global"
    guarantees = False


class Unknown(Capabilities):
    """A mechanism of another version, of which nothing is known here."""


@dataclass(frozen=True)
class SamplerCapabilities:
    """What a sampler can do; the settings of all stand side by side in the section ``sampler``.

    Parameters
    ----------
    kind : str
        Its name in a spec.
    mixtures : bool
        Whether it is for mixtures. Which of the others a parametric model takes, the model says.
    of_groups : bool
        Whether it is for mixtures of groups whose sizes are private.
    conjugate : bool
        Whether it integrates the parameters out: kernel and released values must be conjugate.
    exact : bool
        Whether nothing is latent, so that there is no choice of how to move it.
    holds_records : bool
        Whether it keeps values of each record and proposes new ones: nothing to do where none are hidden.
    in_blocks : bool
        Whether it works many records in blocks, on several cores.
    on_counts : bool
        Whether it knows of no single records, but of their numbers in cells.
    """

    kind: str
    mixtures: bool = True
    of_groups: bool = False
    conjugate: bool = False
    exact: bool = False
    holds_records: bool = False
    in_blocks: bool = False
    on_counts: bool = False

    def proposes(self, latent: str) -> bool:
        """Whether it proposes values of records, which are then accepted or not."""
        return self.mixtures and (self.holds_records or (not self.exact and latent == "metropolis"))


def counted(number: int, noun: str) -> str:
    """Return "1 draw" or "2 draws"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: tuple[str, ...]) -> str:
    """Return "a, b or c"."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]
