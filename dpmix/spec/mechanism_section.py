"""The section ``mechanism``: how records are privatized, and how much noise that takes, stated once.

Each mechanism has its own, `mechanisms/NAME/section.py`, gathered here.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.capabilities import Capabilities, listed
from dpmix.spec.fields import Domain, Gathered, Integer, Number, Positive, Section, refusal
from dpmix.spec.kinds import MECHANISMS
from dpmix.spec.limits import MOST_COUNTED, MOST_RECORDS

Epsilon = Annotated[Positive | None, Field(description="Privacy loss epsilon of the whole release.")]
Delta = Annotated[
    Annotated[Number, Field(gt=0, lt=1)] | None,
    Field(description="Probability delta that goes with epsilon; below one over the number of records."),
]
Rho = Annotated[
    Positive | None, Field(description="Zero-concentrated privacy loss rho of the whole release.")
]
Scale = Annotated[
    Positive | None,
    Field(description="Scale of the noise in the units of the data, stated instead of a guarantee."),
]
Order = Annotated[
    Literal["shuffled", "public"] | None,
    Field(
        description="Order of the released rows: shuffled (the default), by the operating system's "
        "randomness; public, the file's own, which then must say nothing of the records."
    ),
]
Reads = Literal["numbers", "compositions", "levels", "category", "categories"]
Records = Annotated[Integer, Field(ge=1, le=MOST_RECORDS)]
StatedRecords = Annotated[
    Records | None,
    Field(description="Number of confidential records, for a release without its file."),
]
CountedRecords = Annotated[
    Annotated[Integer, Field(ge=1, le=MOST_COUNTED)] | None,
    Field(description="Number of confidential records, for a histogram without its file."),
]
Bins = Annotated[Integer, Field(ge=1, le=1_000_000)]


class MechanismSection(Capabilities, Section):
    """What every mechanism has: public bounds, and exactly one statement of its noise.

    Attributes
    ----------
    statements : tuple of tuple of str
        Keys that state the noise, one of these together.
    reads : str
        What columns of confidential data hold: ``"numbers"``; ``"compositions"``, numbers that are missing
        together or not at all; ``"levels"``, from 1 on; ``"category"`` or ``"categories"``, of one column or
        of any.
    assumed : mapping of str to object
        With which other keys advice compares it with others, where a spec does not say them.
    """

    statements: ClassVar[tuple[tuple[str, ...], ...]] = ()
    assumed: ClassVar[Mapping[str, Any]] = {}
    reads: ClassVar[Reads] = "numbers"
    kind: Any
    domain: Domain | None = Field(
        None, description="Public bounds that records are clamped to; data.domain where left out."
    )

    @model_validator(mode="before")
    @classmethod
    def _rows_only(cls, value: object) -> object:
        if isinstance(value, Mapping) and "order" in value and "order" not in cls.model_fields:
            raise refusal("order", f"is of the rows of a local release, and {value.get('kind')} has none")
        return value

    @model_validator(mode="after")
    def _stated_once(self) -> Self:
        if not self.statements:
            return self
        choices = listed(tuple("(" + ", ".join(s) + ")" if len(s) > 1 else s[0] for s in self.statements))
        given = set(self.requested())
        if not given:
            raise refusal(self.statements[0][0], f"missing; {self.kind} takes {choices}")
        if any(given == set(statement) for statement in self.statements):
            return self
        fitting = [s for s in self.statements if given < set(s)]
        if fitting:
            lacking = next(key for key in fitting[0] if key not in given)
            raise refusal(lacking, f"missing beside {min(given)}; {self.kind} takes {choices}")
        raise refusal("", f"states its noise twice ({', '.join(sorted(given))}); {self.kind} takes {choices}")

    @model_validator(mode="after")
    def _bounds_of_one_column(self) -> Self:
        if self.on_domain and not self.columns_each and self.domain is not None and len(self.domain) > 1:
            raise refusal(
                "domain",
                f"{len(self.domain)} pairs of bounds, but {self.kind} releases one column; "
                "give one pair, or use laplace or gaussian",
            )
        return self

    def columns_stated(self) -> int | None:
        """Return the number of columns that it is stated for, where none are named; None where it is not."""
        return len(self.domain or ((),))

    def requested(self) -> dict[str, float]:
        """Return what the noise is stated by, such as ``{"epsilon": 5.0}``."""
        keys = dict.fromkeys(key for statement in self.statements for key in statement)
        return {key: value for key in keys if (value := getattr(self, key)) is not None}

    def states(self, *keys: str) -> bool:
        """Whether the noise is stated by exactly these keys."""
        return set(self.requested()) == set(keys)

    def done(self, grouped: bool) -> str:
        """Say what is released, such as "laplace noise"; `grouped` for groups of private sizes."""
        return f"{self.kind} noise"

    def bounds_of(self, column: int) -> tuple[float, float] | None:
        """Return the public bounds of a column of records, where they are stated."""
        pairs = self.domain or getattr(self, "bounds", None)
        return pairs[column] if pairs is not None and column < len(pairs) else None

    def cells_of_group(self) -> tuple[str, int]:
        """Return the key by which a histogram or table has cells, and how many a group has of them."""
        return "bins", getattr(self, "bins", 1)

    def check_columns(self, data: Any) -> None:
        """Refuse columns of ``data`` that the mechanism does not go with."""

    def check_missing(self, data: Any) -> None:
        """Refuse what ``data`` puts in place of missing values, beyond bounds and categories."""


def delta_beside_epsilon(noise: str, epsilon: float | None, delta: float | None) -> None:
    """Refuse an epsilon without its delta, where noise has one."""
    if epsilon is not None and delta is None:
        name = noise.replace("_", " ")
        raise refusal("delta", f"missing beside epsilon; {name} noise takes (epsilon, delta) or rho")


MechanismSpec = Annotated[MechanismSection, Gathered(MECHANISMS, "kind")]
"""The section of the kind that is named."""
