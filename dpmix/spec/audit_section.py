"""The section ``audit``: another program's releases, and what it claims of them."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from dpmix.spec.fields import Integer, Listed, Number, Positive, Section, Text, refusal
from dpmix.spec.table_source import FilePath

INPUT, OUTPUT = "{input}", "{output}"


class AuditSpec(Section):
    """A program that reads a table and writes a release, and the guarantee that it claims."""

    command: Annotated[tuple[Text, ...], Listed, Field(min_length=1)] | None = Field(
        None,
        description="The program and its arguments, of which {input} stands for the CSV file of a table and "
        "{output} for the file that it writes; it runs in the folder of the spec, with --allow-code alone.",
    )
    tables: Annotated[tuple[FilePath, ...], Listed, Field(min_length=2, max_length=2)] | None = Field(
        None,
        description="CSV files of two neighbouring tables; where left out, they are made of data.columns, "
        "data.domain and data.categories.",
    )
    epsilon: Positive = Field(description="The claim: epsilon.")
    delta: Annotated[Number, Field(ge=0, lt=1)] = Field(0.0, description="The claim: delta.")
    records: Annotated[Integer, Field(ge=1, le=100_000)] = Field(
        20, description="Number of records of tables that are made."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for place in (INPUT, OUTPUT):
            if self.command is not None and not any(place in part for part in self.command):
                raise refusal("command", f"names no {place}; say where the program takes it")
        if self.tables is not None and self.tables[0] == self.tables[1]:
            raise refusal("tables", f"names {self.tables[0]} twice; name two that differ in one record")
        return self
