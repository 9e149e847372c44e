"""The section ``summary``: what is reported of a posterior."""

import math
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, StrictBool, Tag, model_validator

from dpmix.spec.fields import (
    ONE_OR_SEVERAL,
    Bound,
    Integer,
    Listed,
    Number,
    Positive,
    Section,
    Text,
    number_or_mapping,
    refusal,
    wrong,
)
from dpmix.spec.table_source import (
    TEXT_SUFFIXES,
    TYPED_SUFFIXES,
    Decimal,
    Delimiter,
    Dialect,
    Encoding,
    FilePath,
    check_text,
    dialect_in,
)

LARGEST_GRID = 10_000
MOST_POINTS = 100  # of quantiles, and of tail probabilities or the distribution function of one column
QUANTILES = (0.25, 0.5, 0.75)
"""The quantiles of a record that are reported where a spec names none."""


def _three(value: object) -> object:
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise wrong("must be [lo, hi, points], not {got}", value)
    return value


def _grids(value: object) -> str:
    """Tell a list of grids from one grid."""
    nested = isinstance(value, list | tuple) and len(value) > 0 and isinstance(value[0], list | tuple)
    return "several" if nested else "one"


Baseline = Literal["deconvolution_kde", "ems"]

Grid = Annotated[
    tuple[Bound, Bound, Annotated[Integer, Field(ge=2, le=LARGEST_GRID)]], BeforeValidator(_three)
]


Points = Annotated[tuple[Bound, ...], Listed, Field(min_length=1, max_length=MOST_POINTS)]
PointsByColumn = Annotated[
    Annotated[Points, Tag("list")] | Annotated[dict[Text, Points], Tag("named")],
    number_or_mapping("list", "named"),
]
Probability = Annotated[Number, Field(gt=0, lt=1)]


PREDICTED_FROM = (*TEXT_SUFFIXES, *TYPED_SUFFIXES)
"""How names of tables of records to predict end: of those that name their columns, and hold text, too."""


def _csv(path: Path) -> Path:
    if not path.name.lower().endswith(PREDICTED_FROM):
        raise wrong("{got} is no table of named columns; give one of " + ", ".join(PREDICTED_FROM), path.name)
    return path


NamedTable = Annotated[FilePath, AfterValidator(_csv)]


class PredictedTable(Section):
    """A table of records to predict, and how its text is written."""

    path: NamedTable = Field(description="The table; relative to the folder of the spec.")
    delimiter: Delimiter | None = Field(
        None, description='Character between cells, or tab; a comma where left out, or as decimal "," has it.'
    )
    decimal: Decimal | None = Field(None, description='Decimal mark, "." where left out.')
    encoding: Encoding | None = Field(None, description="Encoding, such as latin-1; utf-8 where left out.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_text(self, [self.path])
        return self

    @property
    def dialect(self) -> Dialect:
        """How the text of the table is written."""
        return dialect_in(self)


class SummarySpec(Section):
    """What is reported, and where the density is evaluated."""

    grid: (
        Annotated[
            Annotated[Grid, Tag("one")]
            | Annotated[tuple[Annotated[Grid, BeforeValidator(_three)], ...], Tag("several")],
            Discriminator(_grids),
        ]
        | None
    ) = Field(
        None,
        description="Where densities are reported: [lo, hi, points], or a list of one such grid a column; "
        "found from the domain where left out. Ends may be dates.",
    )
    level: Annotated[Number, Field(gt=0, lt=1)] = Field(
        0.95, description="Posterior probability of the bands and intervals."
    )
    baseline: (
        Annotated[
            Annotated[Baseline, Tag("one")]
            | Annotated[tuple[Baseline, ...], Listed, Field(min_length=1), Tag("several")],
            ONE_OR_SEVERAL,
        ]
        | None
    ) = Field(
        None,
        description="Estimates without a model to set beside the posterior, one name or a list: "
        "deconvolution_kde (laplace, gaussian, none) or ems, EM with smoothing (laplace, gaussian, binomial, "
        "square_wave).",
    )
    quantiles: (
        Annotated[tuple[Probability, ...], Listed, Field(min_length=1, max_length=MOST_POINTS)] | None
    ) = Field(
        None,
        description="Which quantiles of a record are reported, and kept with the chains by fit; 0.25, 0.5 "
        "and 0.75 where left out.",
    )
    tails: PointsByColumn | None = Field(
        None,
        description="Values t, numbers or dates, of which the probability of a record above t is reported; "
        "by name of column where there are several.",
    )
    cdf: PointsByColumn | None = Field(
        None,
        description="Values t, numbers or dates, of which the probability of a record up to t is reported; "
        "by name of column where there are several.",
    )
    gini: StrictBool | None = Field(
        None, description="Whether the Gini coefficient of records from 0 on is reported."
    )
    loo: StrictBool | None = Field(
        None,
        description="Whether to report leave-one-out cross-validation of the released records, where the "
        "likelihood factorizes over these.",
    )
    at: (
        Annotated[
            Annotated[NamedTable, Tag("file")] | Annotated[PredictedTable, Tag("table")],
            number_or_mapping("file", "table"),
        ]
        | None
    ) = Field(
        None,
        description="Table (csv, tsv, also .gz; parquet, feather or arrow) of records whose class "
        "(naive_bayes) or response (linear_regression) is predicted from their other columns; relative to "
        "the folder of the spec. Or {path, delimiter, decimal, encoding}, as data has them.",
    )
    interval: Literal["mean", "record"] | None = Field(
        None,
        description="What intervals of predictions by linear_regression are of: the mean response (mean, the "
        "default) or the response of a new record.",
    )
    clustering: Literal["vi", "binder"] = Field(
        "vi",
        description="Loss of the partition that is reported first: variation of information, or Binder's.",
    )
    coclustering: StrictBool = Field(
        False,
        description="Whether to write out, for all pairs of records, the probability to share a cluster.",
    )

    truth: Annotated[tuple[Positive, ...], Listed, Field(min_length=2)] | None = Field(
        None,
        description="The alpha that simulated compositions were drawn with, for errors and coverage of the "
        "model dirichlet.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(set(self.baselines)) < len(self.baselines):
            raise refusal("baseline", "names the same estimate twice")
        for lo, hi, _ in self.grids():
            if not lo < hi or not math.isfinite(hi - lo):
                raise refusal("grid", f"[{lo:g}, {hi:g}, ...] must have its lower end below its upper one")
        return self

    @property
    def table(self) -> PredictedTable | None:
        """The table of `at`, in its long form."""
        if not isinstance(self.at, Path):
            return self.at
        return PredictedTable.model_construct(path=self.at, delimiter=None, decimal=None, encoding=None)

    @property
    def levels(self) -> tuple[float, ...]:
        """The quantiles that are reported, in increasing order."""
        return tuple(sorted(set(self.quantiles or QUANTILES)))

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        """The baselines that were asked for."""
        if self.baseline is None:
            return ()
        return self.baseline if isinstance(self.baseline, tuple) else (self.baseline,)

    def grids(self) -> list[tuple[float, float, int]]:
        """Return the grids that were given, none, one for all columns or one for each."""
        if self.grid is None:
            return []
        grids = self.grid if isinstance(self.grid[0], tuple) else (self.grid,)
        return [(float(lo), float(hi), int(points)) for lo, hi, points in grids]
