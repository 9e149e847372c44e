"""The law of synthetic records: the generator that drew them, and its public columns (section 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from pydantic import BeforeValidator, model_validator

from dpmix.columns.cells import Cells, Column, Grid
from dpmix.laws.additive import NOISES, noise_name
from dpmix.laws.every import law_of
from dpmix.laws.law_base import (
    Floats,
    Labels,
    Law,
    Says,
    Scales,
    Whole,
    first,
    is_number,
    of_scale,
)
from dpmix.numerics.in_words import figure
from dpmix.spec.capabilities import Synthetic, counted
from dpmix.spec.data_section import MOST_DIGITS
from dpmix.spec.days import day_text

GeneratorName = Literal[
    "pitman_yor",
    "dirichlet_multinomial",
    "perturbed_histogram",
    "smoothed_histogram",
    "posterior_predictive",
]
_NUMBERS = {
    "pitman_yor": ("discount", "concentration"),
    "dirichlet_multinomial": ("concentration",),
    "smoothed_histogram": ("weight",),
}


def digits_of(stated: Any) -> int | None:
    """Return the digits after the decimal point that JSON's type of a column states; None if it is none."""
    digits = stated.get("digits") if isinstance(stated, Mapping) else 0 if stated == "integer" else None
    whole = isinstance(digits, int) and not isinstance(digits, bool) and 0 <= digits <= MOST_DIGITS
    return digits if whole else None


def fields_of(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what JSON says of a column, as `Column.describe` does, by the fields of `Column`."""
    domain, names = stated.get("domain"), stated.get("categories")
    return {
        "name": stated["name"],
        "bounds": None if domain is None else tuple(map(float, domain)),
        "categories": None if names is None else tuple(names),
        "date": stated.get("date", False),
        "digits": digits_of(stated.get("type")),
    }


def _checked_columns(value: Any) -> Any:
    """Say which column lacks something, before its parts are parsed."""
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("does not describe its columns")
    for part in value:
        if not isinstance(part, Mapping) or not isinstance(part.get("name"), str):
            raise ValueError("does not name every column")
        if "domain" in part and not is_pair(part["domain"]):
            raise ValueError(f"does not state the bounds of {part['name']}")
        if part.get("type") is not None and digits_of(part["type"]) is None:
            raise ValueError(f"does not state the type of {part['name']}: integer, or its digits")
        names = part.get("categories")
        if "categories" in part and not (
            isinstance(names, list | tuple) and names and all(isinstance(c, str) for c in names)
        ):
            raise ValueError(f"does not state the categories of {part['name']}")
    if len({part["name"] for part in value}) < len(value):
        raise ValueError("states a column twice")
    return tuple(map(fields_of, value))


class SyntheticLaw(Law):
    """Synthetic records, with codes for labels, drawn by a generator with settings of its own."""

    capabilities = Synthetic
    generator: Annotated[
        GeneratorName, Says(f"does not state its generator, one of {', '.join(get_args(GeneratorName))}")
    ]
    columns: Annotated[
        tuple[Column, ...], BeforeValidator(_checked_columns), Says("does not describe its columns")
    ]
    records: Whole | None = None
    snap: Any = None
    base: Any = None
    post_processing: Any = None
    ranges: Any = None
    source: dict[str, Any] | None = None
    discount: Any = None
    concentration: Any = None
    weight: Any = None
    bins: Any = None
    noise: Any = None
    scale: Annotated[Scales, Says("does not state one noise scale")] = ()

    @model_validator(mode="after")
    def _all_of_its_generator(self) -> Self:
        problem = self._lists_problem() or self._numbers_problem()
        if problem is not None:
            raise ValueError(problem)
        return self

    def _lists_problem(self) -> str | None:
        if self.ranges is not None and not (
            isinstance(self.ranges, list | tuple) and all(isinstance(r, Mapping) for r in self.ranges)
        ):
            return "does not state its ranges, one entry per rule"
        for stated, is_one, what in (
            (self.snap, _is_snap, "the grids that values were moved to"),
            (self.base, _is_base, "the distributions of new values"),
        ):
            whole = (
                isinstance(stated, list | tuple)
                and len(stated) == len(self.columns)
                and all(map(is_one, stated))
            )
            if stated is not None and not whole:
                return f"does not state {what}, one entry per column"
        return None

    def _numbers_problem(self) -> str | None:
        if self.generator == "posterior_predictive" and not isinstance(self.post_processing, str):
            return "does not say what it is post-processing of"
        for key in _NUMBERS.get(self.generator, ()):
            if not is_number(getattr(self, key)):
                return f"does not state its {key}, a number"
        if self.counted:
            bins = self.bins
            whole = isinstance(bins, list | tuple) and all(isinstance(b, int) and b > 0 for b in bins)
            if not whole or len(bins) != len(self.columns):
                return "does not state its bins, one number per column"
        if self.generator == "perturbed_histogram" or self.noise is not None:
            if self.noise not in NOISES:
                return f"does not state its noise, one of {', '.join(NOISES)}"
            if len(self.scale) != 1:
                return "does not state one noise scale"
        return None

    @property
    def counted(self) -> bool:
        """Whether the generator depends on the records through their counts in cells."""
        return self.generator in ("dirichlet_multinomial", "perturbed_histogram", "smoothed_histogram")

    @property
    def snaps(self) -> Sequence[Any]:
        """For each column the grid that new numbers were moved to, as JSON says it, or None."""
        return self.snap or (None,) * len(self.columns)

    @property
    def cells(self) -> Cells:
        """The cells that `columns`, `bins` and `snap` describe, of records that were counted in some."""
        grids = tuple(None if account is None else Grid.described(account) for account in self.snaps)
        return Cells(self.columns, tuple(self.bins), grids)

    @property
    def dated(self) -> tuple[str, ...]:
        """Names of the columns that are dates."""
        return tuple(part.name for part in self.columns if part.date)

    @property
    def made_by(self) -> str:
        """The generator."""
        return self.generator

    @property
    def origin(self) -> Law | None:
        """The law of the release that they are post-processing of."""
        return law_of(self.source) if self.source else None

    @property
    def of_local(self) -> bool:
        """Whether they are post-processing of a local release, whose trust model is then theirs."""
        return self.source is not None and self.source.get("trust") == "local"

    @property
    def unproved(self) -> str | None:
        """Why the release that they are post-processing of is not proved."""
        return None if self.origin is None else self.origin.unproved

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say which value lies outside of its column's bounds, or is no code of its labels."""
        for i, part in enumerate(self.columns):
            names = labels[i] if labels else None
            if names is None and part.digits is not None:
                odd = values[:, i] != np.round(values[:, i], part.digits)
                what = f"has more than {part.digits} digits" if part.digits else "is no whole number"
                problem = first(odd, what, f"{part.name}, record")
                if problem is not None:
                    return problem
            if names is None and (self.generator == "posterior_predictive" or part.bounds is None):
                continue  # a model may go on beyond the bounds
            low, high = (
                part.bounds if names is None and part.bounds is not None else (0, len(names or ()) - 1)
            )
            column = values[:, i]
            bad = (column < low) | (column > high)
            ends = (day_text(end) if part.date else f"{end:.12g}" for end in (low, high))
            what = f"lies outside [{', '.join(ends)}]"
            if names is not None:
                bad |= column != np.floor(column)
                what = "is no code of its labels"
            problem = first(bad, what, f"{part.name}, record")
            if problem is not None:
                return problem
        return None

    def done(self, n: int) -> str:
        """Say what was drawn from n records."""
        records = "Synthetic records" if self.records is None else counted(self.records, "synthetic record")
        verb = "was" if self.records == 1 else "were"
        but = "" if self.unproved is None else f"; {self.unproved}"
        return f"{records} {verb} drawn{self._from(n)}, and released for all of them together{but}."

    def republishes(self, n: int, delta: float | None) -> str:
        """Say with what probability an urn gives a record as it is, and which labels; see `Law`."""
        if self.origin is not None:
            return self.origin.republishes(n, delta).replace("this mechanism", "the mechanism behind the fit")
        if self.generator != "pitman_yor":
            return ""
        text = "this mechanism republishes records verbatim"
        if delta is not None and self.records is not None:
            at_most = "" if self.discount == 0 else "up to "
            text += (
                f": one that nobody shares is released with probability {at_most}{figure(delta, 3)} "
                f"(records/n = {self.records / n:.3g}), whatever epsilon is"
            )
        free = ", ".join(part.name for part in self.columns if part.free)
        return (
            f"{text}; labels of {free}, of which nothing is public, are published as they are"
            if free
            else text
        )

    def _from(self, n: int) -> str:
        given = counted(n, "record")
        stated = None if self.concentration is None else f"{float(self.concentration):.4g}"
        if self.generator == "pitman_yor":
            discount = float(self.discount)
            process = (
                "Dirichlet process" if discount == 0.0 else f"Pitman-Yor process of discount {discount:g}"
            )
            return f" from the posterior predictive of a {process} (concentration {stated}) given {given}"
        cells = math.prod(self.bins or ())
        over = f" over {cells} cells" if cells > 1 else ""
        if self.generator == "dirichlet_multinomial":
            prior = f" (prior count {stated} in each cell)"
            return f" from the posterior predictive of a Dirichlet-multinomial{over}{prior} given {given}"
        counts = (
            ""
            if self.noise is None
            else f", with {noise_name(self.noise)}{of_scale(self.scale)} added to its counts"
        )
        if self.generator == "perturbed_histogram":
            return f" from the histogram of {given}{over}{counts}"
        if self.generator == "smoothed_histogram":
            smooth = f", mixed with the uniform density (weight {float(self.weight):.4g})"
            return f" from the histogram of {given}{over}{counts}{smooth}"
        if self.origin is not None and not self.origin.protects:
            return f" from a posterior given {given} themselves, to which no noise was added"
        return f" from a posterior given a release of {given}"


def is_pair(value: Any) -> bool:
    """Whether JSON's value is a pair of bounds, the lower one first."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(map(is_number, value))
        and value[0] < value[1]
    )


def _is_snap(value: Any) -> bool:
    """Whether it says what `dpmix.columns.cells.Grid.describe` does, or that there is no grid."""
    if not isinstance(value, Mapping):
        return value is None
    step: Any = value.get("step")
    pair: Any = value.get("domain")
    return is_number(step) and step > 0 and is_pair(pair) and pair[1] - pair[0] < 1e9 * step


def _is_base(value: Any) -> bool:
    """Whether it says what a base measure under `synthesis` does, or that there is none."""
    if not isinstance(value, Mapping):
        return value is None
    kind, edges, weights = (value.get(key) for key in ("kind", "edges", "weights"))
    if kind == "beta":
        return all(is_number(value.get(key)) and value[key] > 0 for key in ("a", "b"))
    if kind != "histogram":
        return bool(kind == "uniform")
    if not (isinstance(edges, list | tuple) and isinstance(weights, list | tuple)):
        return False
    if len(edges) != len(weights) + 1 or not all(map(is_number, [*edges, *weights])):
        return False
    return min(weights, default=-1) >= 0 and sum(weights) > 0 and all(a < b for a, b in pairwise(edges))


LAW = SyntheticLaw
