"""The section ``synthesis``: release of synthetic records.

Ranges are public: what values are possible at all, or given those of other columns.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    WithJsonSchema,
    model_validator,
)

from dpmix.spec.days import plain
from dpmix.spec.fields import (
    ONE_OR_SEVERAL,
    ChosenBy,
    HistogramBase,
    Integer,
    Listed,
    Number,
    Pair,
    Positive,
    Section,
    Text,
    is_number,
    refusal,
    shown,
    wrong,
)
from dpmix.spec.limits import MOST_RECORDS

_MOST = 1000  # rules, and categories in one

# Ranges


def _one(value: object) -> str | int | float:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, date):
        return value.isoformat()
    if not is_number(value):
        raise wrong("must be a number, a category, or [lo, hi] or a list of categories, not {got}", value)
    return value  # type: ignore[return-value]  # a number, as just seen


def _admitted(value: object) -> object:
    if isinstance(value, (list, tuple)) or (hasattr(value, "tolist") and not isinstance(value, str | bytes)):
        items = value.tolist() if hasattr(value, "tolist") else value
        if not isinstance(items, list | tuple) or not 1 <= len(items) <= _MOST:
            raise wrong("must be [lo, hi] or a list of categories, not {got}", value)
        return tuple(_one(item) for item in items)
    return _one(value)


_SCALAR: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string"}]}
_SCHEMA: dict[str, Any] = {
    "anyOf": [*_SCALAR["anyOf"], {"type": "array", "items": _SCALAR, "minItems": 1, "maxItems": _MOST}]
}
Admitted = Annotated[
    Any,
    BeforeValidator(_admitted),
    PlainSerializer(lambda v: [plain(x) for x in v] if isinstance(v, tuple) else plain(v), when_used="json"),
    WithJsonSchema(_SCHEMA),
]
"""What is admitted of a column: [lo, hi] of numbers or dates, one value, or categories."""


class RangeSpec(Section):
    """What is possible of some columns, by name: always, or for records of which ``when`` holds."""

    model_config = ConfigDict(
        extra="allow", frozen=True, defer_build=True, json_schema_extra={"additionalProperties": _SCHEMA}
    )

    when: Annotated[dict[Text, Admitted], Field(min_length=1)] | None = Field(
        None, description="Of which records: a value or [lo, hi] by column; of all where left out."
    )

    @property
    def then(self) -> Mapping[str, Any]:
        """What is possible of these records, by name of column."""
        return self.__pydantic_extra__ or {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        extra = self.__pydantic_extra__ or {}
        if not extra:
            raise refusal("", "names no column; give what is possible of one, as in {income: [0, 5e4]}")
        for name, value in extra.items():
            try:
                extra[name] = _admitted(value)
            except ValueError as error:
                got = shown(value)
                raise refusal(
                    name, f"must be [lo, hi], a value or a list of categories, not {got}"
                ) from error
            if name in (self.when or {}):
                raise refusal(name, "is under when, too; state what is possible of other columns")
        return self

    def stated(self) -> dict[str, Any]:
        """Return the rule for JSON."""
        found: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}


Ranges = Annotated[tuple[RangeSpec, ...], Listed, Field(min_length=1, max_length=_MOST)]
"""Rules, all of which hold."""


# Kinds of synthesis


def _auto_or_integer(value: object) -> object:
    if value == "auto" and isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise wrong("must be auto or a whole number, not {got}", value)
    if not 1 <= int(value) <= MOST_RECORDS:
        raise wrong(f"{{got}} must be from 1 to {MOST_RECORDS}", value)
    return int(value)


RecordCount = Annotated[Literal["auto"] | int, BeforeValidator(_auto_or_integer)]
_Bins = Annotated[Integer, Field(ge=1, le=1_000_000)]
Bins = Annotated[
    Annotated[_Bins, Tag("one")] | Annotated[tuple[_Bins, ...], Listed, Field(min_length=1), Tag("several")],
    ONE_OR_SEVERAL,
]


class UniformBase(Section):
    """The uniform distribution on a column's bounds."""

    kind: Literal["uniform"] = Field(description="Distribution of new values.")


class BetaOnBounds(Section):
    """A beta distribution, stretched over a column's bounds."""

    kind: Literal["beta"] = Field(description="Distribution of new values.")
    a: Positive = Field(description="First parameter.")
    b: Positive = Field(description="Second parameter.")


BaseSpec = Annotated[
    Annotated[UniformBase, Tag("uniform")]
    | Annotated[BetaOnBounds, Tag("beta")]
    | Annotated[HistogramBase, Tag("histogram")],
    ChosenBy("kind"),
]


def _one_or_named(key: str) -> Discriminator:
    """Choose between one section for all numeric columns, told by a key of it, and sections by column."""

    def choose(value: object) -> str:
        named = isinstance(value, Mapping) and value and key not in value
        return "named" if named and all(isinstance(v, (Mapping, Section)) for v in value.values()) else "one"  # type: ignore[attr-defined]  # a mapping, if named

    return Discriminator(choose)


Bases = Annotated[
    Annotated[BaseSpec, Tag("one")] | Annotated[dict[Text, BaseSpec], Tag("named")], _one_or_named("kind")
]
"""Distribution of new values: of all numeric columns, or by name of column."""


class SnapSpec(Section):
    """A public grid that new values are moved to."""

    step: Positive = Field(description="Distance of neighbouring grid points.")
    domain: Pair | None = Field(
        None, description="First and last grid point; the column's bounds where left out."
    )


Snaps = Annotated[
    Annotated[SnapSpec, Tag("one")] | Annotated[dict[Text, SnapSpec], Tag("named")], _one_or_named("step")
]


class SynthesisSection(Section):
    """What every kind of synthesis has."""

    kind: Any
    records: RecordCount = Field(
        "auto",
        description="Number of synthetic records; auto is the largest that is private, 100,000,000 at most.",
    )
    epsilon: Positive | None = Field(None, description="Privacy loss epsilon of the synthetic records.")
    delta: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        None, description="Probability delta that goes with epsilon."
    )
    snap: Snaps | None = Field(
        None,
        description="Public grid of numbers: new values are moved to it after all draws, and its points are "
        "the cells of histograms.",
    )
    ranges: Ranges | None = Field(
        None,
        description="What values of records are possible, as everybody knows: [lo, hi] or categories by "
        "column, for all records or those of which when holds. Synthetic records keep to it.",
    )
    n: Annotated[Integer, Field(ge=2, le=MOST_RECORDS)] | None = Field(
        None, description="Number of confidential records, where the data are not at hand."
    )
    runs: Annotated[Integer, Field(ge=1, le=10_000)] = Field(
        20, description="Synthetic data sets of each kind that a comparison draws."
    )
    rivals: Annotated[tuple[SynthesisSpec, ...], Listed] | None = Field(
        None,
        description="Kinds to compare with, as sections of their own; records, epsilon and delta are those "
        "of this one where left out. All that can meet the request where left out.",
    )

    @property
    def counts(self) -> bool:
        """Whether records are counted in cells, and drawn evenly within them."""
        return True

    @model_validator(mode="after")
    def _check_rivals(self) -> Self:
        for rival in self.rivals or ():
            for key in ("rivals", "runs", "n", "ranges"):
                if getattr(rival, key) != type(rival).model_fields[key].default:
                    raise refusal(f"rivals.{key}", "is for the comparison as a whole; give it once, above")
        return self


class PitmanYorSynthesis(SynthesisSection):
    """Sequential draws from the predictive of a Pitman-Yor process."""

    kind: Literal["pitman_yor"] = Field(description="The generator.")
    discount: Annotated[Number, Field(lt=1)] = Field(
        0.0, description="Discount of the process; below 0 it is a Dirichlet-multinomial."
    )
    concentration: Number | None = Field(
        None,
        description="Concentration of the process; 1 where left out, or what a negative discount implies.",
    )
    base: Bases | None = Field(
        None, description="Distribution of new values on the bounds; uniform where left out."
    )
    bins: Bins | None = Field(None, description="Cells of each numeric column, for a negative discount only.")

    @property
    def counts(self) -> bool:
        """Whether they are; see `SynthesisSection`."""
        return self.discount < 0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.discount < 0:
            if self.base is not None:
                raise refusal("base", "is for new values, which a negative discount has none of")
            if self.concentration is not None and not self.concentration > 0:
                raise refusal("concentration", f"{self.concentration:g} must be greater than 0")
            return self
        if self.bins is not None:
            raise refusal("bins", "is for a negative discount; leave it out")
        if self.concentration is None:
            self.settle(concentration=1.0)
        assert self.concentration is not None  # just settled
        if not self.concentration > -self.discount:
            bound = f"-synthesis.discount ({-self.discount:g})" if self.discount > 0 else "0"
            raise refusal("concentration", f"{self.concentration:g} must be greater than {bound}")
        return self


class DirichletMultinomialSynthesis(SynthesisSection):
    """Draws from the predictive of a Dirichlet-multinomial over public categories or cells."""

    kind: Literal["dirichlet_multinomial"] = Field(description="The generator.")
    concentration: Positive | None = Field(
        None, description="Prior count of each cell; the smallest that is private where left out."
    )
    bins: Bins | None = Field(None, description="Number of equal cells of each numeric column.")


class PerturbedHistogramSynthesis(SynthesisSection):
    """Draws from a histogram with noisy counts."""

    kind: Literal["perturbed_histogram"] = Field(description="The generator.")
    bins: Bins | None = Field(None, description="Number of equal bins of each numeric column.")
    noise: Literal["laplace", "gaussian", "geometric"] = Field("laplace", description="Noise of the counts.")


class SmoothedHistogramSynthesis(SynthesisSection):
    """Draws from a histogram mixed with the uniform density; under a delta, of counts with Gaussian noise."""

    kind: Literal["smoothed_histogram"] = Field(description="The generator.")
    bins: Bins | None = Field(None, description="Number of equal bins of each numeric column.")
    weight: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        None,
        description="Weight of the uniform density over counts with noise; without noise epsilon says it.",
    )


_Generators = (
    Annotated[PitmanYorSynthesis, Tag("pitman_yor")]
    | Annotated[DirichletMultinomialSynthesis, Tag("dirichlet_multinomial")]
    | Annotated[PerturbedHistogramSynthesis, Tag("perturbed_histogram")]
    | Annotated[SmoothedHistogramSynthesis, Tag("smoothed_histogram")]
)
SynthesisSpec = Annotated[_Generators, ChosenBy("kind")]
"""A generator that draws from the data."""


class ChainsSynthesis(Section):
    """What is said of records that are drawn from chains, which needs no generator."""

    kind: Literal["posterior_predictive"] = Field(
        "posterior_predictive", description="Records are drawn from chains, by --chains."
    )
    records: RecordCount = Field("auto", description="Number of records; auto is that of the data.")
    snap: Snaps | None = Field(None, description="Public grid that numbers are moved to.")
    ranges: Ranges | None = Field(
        None, description="What values of records are possible; records keep to it."
    )


class _KindOrChains(ChosenBy):
    """Choose by the kind; without one, where nothing is said that a generator alone needs, chains."""

    def _tag(self, value: object) -> str | None:
        if isinstance(value, Mapping) and {*value} <= {*ChainsSynthesis.model_fields} - {"kind"}:
            return "posterior_predictive"
        return super()._tag(value)


SynthesisOrChains = Annotated[
    _Generators | Annotated[ChainsSynthesis, Tag("posterior_predictive")], _KindOrChains("kind")
]
