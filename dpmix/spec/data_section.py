"""The sections ``data``, the curator's confidential values, and ``release``, values sanitized elsewhere."""

import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    PrivateAttr,
    Tag,
    ValidationInfo,
    model_validator,
)

from dpmix.spec.capabilities import counted
from dpmix.spec.days import Day, plain
from dpmix.spec.fields import (
    LARGEST_SEED,
    Domain,
    Integer,
    Listed,
    Pair,
    Positive,
    Section,
    Text,
    by_column,
    is_number,
    refusal,
    wrong,
)
from dpmix.spec.limits import MOST_RECORDS
from dpmix.spec.table_source import (
    MARKS,
    Decimal,
    Delimiter,
    Dialect,
    Encoding,
    FilePaths,
    InMemory,
    TableFiles,
    TablePaths,
    check_text,
    dialect_in,
    is_stream,
)

# What values a column has in synthetic records, how these are drawn and written; noisy values are not rounded

MOST_DIGITS = 12
"""Digits after the decimal point at most."""


class DigitsType(Section):
    """Numbers of so many digits after the decimal point, such as money with two."""

    digits: Annotated[Integer, Field(ge=0, le=MOST_DIGITS)] = Field(
        description="Digits after the decimal point."
    )


def _type_name(value: object) -> object:
    if value not in ("integer", "category"):
        raise wrong("must be integer, category or digits such as {digits: 2}, not {got}", value)
    return value


ColumnType = Annotated[
    Annotated[Literal["integer", "category"], BeforeValidator(_type_name), Tag("name")]
    | Annotated[DigitsType, Tag("digits")],
    Discriminator(lambda value: "digits" if isinstance(value, (Mapping, DigitsType)) else "name"),
]
ColumnTypes = Annotated[dict[Text, ColumnType], by_column("{age: integer, income: {digits: 2}}")]
"""integer, category, or {digits: k}."""


def digits_of(kind: str | DigitsType | None) -> int | None:
    """Return the digits after the decimal point that a type has, None where it is of no such numbers."""
    if isinstance(kind, DigitsType):
        return kind.digits
    return 0 if kind == "integer" else None


# Missing values, and the columns of a table

CATEGORY = "category"
"""What ``data.missing`` says where missing values are a category of their own."""
LABEL = "missing"
"""Name of that category."""

Names = Annotated[tuple[Text, ...], Listed, Field(min_length=1)]


Alpha = Annotated[tuple[Positive, ...], Listed, Field(min_length=2, max_length=1000)]


def _category(value: object) -> object:
    if isinstance(value, str):
        return value.strip() or value  # as cells are read
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        raise wrong("must be text or a number, not {got}; quote it, as the data have it", value)
    if not is_number(value):
        raise wrong("must be text or a number, not {got}", value)
    return value


Category = Annotated[str | int | float, BeforeValidator(_category), PlainSerializer(plain, when_used="json")]
Categories = Annotated[tuple[Category, ...], Listed, Field(min_length=2)]


def _unit(text: str) -> str:
    if len(text) > _LONGEST_UNIT or not text.isprintable() or not text.strip():
        raise wrong(
            f"must be a short name such as dollars, of at most {_LONGEST_UNIT} letters, not {{got}}", text
        )
    return text.strip()


_LONGEST_UNIT = 40
UnitName = Annotated[Text, AfterValidator(_unit)]

_BY_NAME = Discriminator(lambda value: "named" if isinstance(value, Mapping) else "one")
"""Choose between what all columns share, or the one column has, and a mapping from names."""
Domains = Annotated[
    Annotated[Domain, Tag("one")] | Annotated[dict[Text, Pair], Field(min_length=1), Tag("named")], _BY_NAME
]
Lists = Annotated[
    Annotated[Categories, Tag("one")] | Annotated[dict[Text, Categories], Tag("named")], _BY_NAME
]
Units = Annotated[Annotated[UnitName, Tag("one")] | Annotated[dict[Text, UnitName], Tag("named")], _BY_NAME]
Alphas = Annotated[Annotated[Alpha, Tag("one")] | Annotated[dict[Text, Alpha], Tag("named")], _BY_NAME]


class ColumnsSection(Section):
    """What ``data`` and ``release`` share: the names of the columns to take, and what is public of them."""

    columns: Names | None = Field(
        None, description="Names of the columns to take; for an npy file, of its columns in order."
    )
    column: Text | None = Field(
        None, description="Name of the one column to take, short for columns: [name]."
    )
    domain: Domains | None = Field(
        None,
        description="Public bounds [lo, hi], one pair per column, or by name of column; never read off the "
        "data.",
    )
    categories: Lists | None = Field(
        None,
        description="Public categories of a column that is not numeric, or of several by name of column.",
    )

    types: ColumnTypes | None = Field(
        None,
        description="What values columns have in synthetic records, by name: integer, category, or {digits: "
        "2} for numbers of so many digits after the decimal point. Noisy releases are never rounded; that of "
        "a histogram says that its column is of whole numbers, and fits know.",
    )
    unit: Units | None = Field(
        None,
        description="Unit of the numbers, such as dollars, or by name of column; it is public, and goes with "
        "the release.",
    )
    group: Text | None = Field(
        None,
        description="Column of groups whose sizes are private, with its public categories under categories; "
        "one release is made of all groups together.",
    )
    delimiter: Delimiter | None = Field(
        None,
        description="Character between the cells of a CSV file, or tab; left out, a comma (a semicolon where "
        'decimal is ","), and a tab for tsv.',
    )
    decimal: Decimal | None = Field(
        None, description='Decimal mark of the numbers of a CSV or TSV file, "." where left out.'
    )
    encoding: Encoding | None = Field(
        None, description="Encoding of a CSV or TSV file, such as latin-1; utf-8 where left out."
    )
    _dates: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def dialect(self) -> Dialect:
        """How the text of the table is written."""
        return dialect_in(self)

    @property
    def dates(self) -> frozenset[str]:
        """Names of the columns that hold dates: their public bounds are dates."""
        return self._dates

    def settle_dates(self, pairs: tuple[tuple[float, float], ...] | None) -> None:
        """Take columns for dates whose bounds, stated elsewhere, are dates; for validators only."""
        names = self.columns or ()
        for name, pair in zip(names, pairs or (), strict=False):
            if isinstance(pair[0], Day):
                self._dates |= {name}

    @property
    def paths(self) -> tuple[Path, ...]:
        """What `path` names: one file or several, or - for standard input."""
        path: tuple[Path, ...] | Path | None = getattr(self, "path", None)
        return path if isinstance(path, tuple) else () if path is None else (path,)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that `path` names: none of standard input or a table that Python holds."""
        return tuple(path for path in self.paths if not is_stream(path))

    def holds(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is one of these files, under whichever name."""
        return os.path.realpath(path) in map(os.path.realpath, self.files)

    def settle_path(self) -> None:
        """Take a list of one file for that file, and refuse what is said of text where a table is none."""
        if len(self.paths) == 1:
            self.settle(path=self.paths[0])
        check_text(self, self.paths)

    @property
    def groups(self) -> tuple[str, ...]:
        """Public categories of the column `group`, in order; empty where there is none."""
        names = self.categories.get(self.group or "") if isinstance(self.categories, Mapping) else None
        return tuple(str(name) for name in names or ())

    @property
    def labelled(self) -> bool:
        """Whether a column of values, other than `group`, has public categories."""
        known = self.categories
        return bool(set(known) - {self.group}) if isinstance(known, Mapping) else known is not None

    @property
    def pairs(self) -> tuple[tuple[float, float], ...] | None:
        """Public bounds of each column, None where a column has none."""
        return self.domain if isinstance(self.domain, tuple) else None

    def bounds_of(self, index: int) -> tuple[float, float] | None:
        """Return the public bounds of a column, None where it has none."""
        if isinstance(self.domain, Mapping):
            return self.domain.get((self.columns or ())[index])
        return None if self.domain is None else self.domain[index]

    def categories_of(self, index: int) -> tuple[str | int | float, ...] | None:
        """Return the public categories of a column, None where it has none."""
        if isinstance(self.categories, Mapping):
            return self.categories.get((self.columns or ())[index])
        return self.categories

    @model_validator(mode="after")
    def _settle_columns(self) -> Self:
        if self.column is not None:
            if self.columns is not None:
                raise refusal("column", "give either column or columns, not both")
            self.settle(column=None, columns=(self.column,))
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            raise refusal("columns", "names a column twice")
        if self.group is not None:
            if self.group in (self.columns or ()):
                raise refusal("group", f"{self.group} is in columns, too; leave it out there")
            if not self.groups:
                missing = f"missing; list the public groups, as in {{{self.group}: [a, b]}}"
                raise refusal(f"categories.{self.group}", missing)
        self._settle_public()
        return self

    def _settle_public(self) -> None:
        """Check that bounds and categories are of columns that are there, and of each column one of them."""
        for key in ("domain", "categories", "unit"):
            named = getattr(self, key)
            if isinstance(named, Mapping):
                for name in named:
                    if name not in (self.columns or ()) and not (key == "categories" and name == self.group):
                        known = ", ".join(self.columns or ()) or "none"
                        raise refusal(f"{key}.{name}", f"no such column; columns names {known}")
        self._check_types()
        if isinstance(self.domain, Mapping) and set(self.domain) == set(self.columns or ()):
            self.settle(domain=tuple(self.domain[name] for name in self.columns or ()))
        lists = self.categories
        if isinstance(lists, tuple):
            if self.columns is not None and len(self.columns) != 1:
                raise refusal(
                    "categories", f"is one list for {len(self.columns)} columns; give {{column: [..], ..}}"
                )
            lists = {"": lists}
            if self.domain is not None:
                raise refusal("categories", "give either domain or categories, not both")
        for name, names in (lists or {}).items():
            key = f"categories.{name}".rstrip(".")
            if len({str(category) for category in names}) < len(names):
                raise refusal(key, "names a category twice")
            bounded = isinstance(self.domain, tuple) and name != self.group
            if bounded or name in (self.domain if isinstance(self.domain, Mapping) else ()):
                raise refusal(key, "give either domain or categories of a column, not both")
        if isinstance(self.unit, Mapping):
            for name in self.unit:
                if name in (lists or {}):
                    raise refusal(
                        f"unit.{name}", "is of numbers, and categories lists its values; leave it out"
                    )
        elif self.unit is not None and isinstance(self.categories, tuple):
            raise refusal("unit", "is of numbers, and the only column has categories; leave it out")
        if isinstance(self.domain, tuple):
            check_pairs("domain", self.domain, self.columns)
        if isinstance(self.domain, Mapping):
            self._dates = frozenset(name for name, pair in self.domain.items() if isinstance(pair[0], Day))
        else:
            self.settle_dates(self.domain)

    def _check_types(self) -> None:
        """Check that types are of columns that are there, and numbers where these are numbers."""
        names = self.columns or ()
        lists = self.categories
        listed = () if lists is None else tuple(lists) if isinstance(lists, Mapping) else names
        for name, kind in (self.types or {}).items():
            if names and name not in names and name != self.group:
                raise refusal(f"types.{name}", f"no such column; columns names {', '.join(names)}")
            if kind != "category" and name in listed:
                raise refusal(
                    f"types.{name}", f"is of numbers, and {name} has categories; give category, or a domain"
                )


SIMULATED_COLUMNS: dict[str, tuple[str, ...]] = {
    "naive_bayes": ("x1", "x2", "x3", "x4", "x5", "y"),
    "linear_regression": ("x1", "x2", "y"),
}
"""Names of the columns of simulated data sets that have several."""


class PartSpec(Section):
    """That the data are one part of a table, and whether who is in which part is public."""

    of: Text = Field(description="Name of the whole table in the ledger.")
    public: bool = Field(
        False,
        description="Whether who is in which part is public, and does not change when a record is replaced.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.public:
            raise refusal(
                "public",
                "is not true; where a replaced record may change part, guarantees of the parts imply nothing "
                "together (their sizes are published), so release all groups together by data.group, or "
                "state public: true where who is in which part is public and fixed",
                privacy=True,
            )
        return self


class DataSpec(ColumnsSection):
    """The confidential data and what is public about them."""

    path: TablePaths | None = Field(
        None,
        description="Confidential table (csv or tsv, also .gz; parquet, feather, arrow, npy or h5), relative "
        "to the folder of the spec; a list of files that are one table; - for CSV on standard input.",
    )
    simulate: (
        Literal[
            "three_gaussians",
            "three_betas",
            "waiting_times",
            "dyadic_geometric",
            "beta_grid",
            "naive_bayes",
            "linear_regression",
            "dirichlet",
        ]
        | None
    ) = Field(
        None,
        description="Name of a simulated data set that stands in for path; all results are marked simulated.",
    )
    n: Annotated[Integer, Field(ge=1, le=MOST_RECORDS)] | None = Field(
        None, description="Number of records to simulate."
    )
    seed: Annotated[Integer, Field(ge=0, le=LARGEST_SEED)] | None = Field(
        None, description="Seed of the simulated data; real data never take one."
    )
    alpha: Alphas | None = Field(
        None,
        description="Parameters of the simulated compositions, of simulate: dirichlet; or by group. Each "
        "simulated record is of any group with equal probability.",
    )
    missing: Annotated[dict[Text, Category], by_column("{income: 0, sex: category}")] | None = Field(
        None,
        description="What stands for missing values (empty cells, NA, NaN, nan, null), by column: a public "
        "value within its bounds or categories, or category for a category of their own, called missing.",
    )
    part: PartSpec | None = Field(
        None, description="That the data are one part of a table, other parts of which are released, too."
    )

    _held: InMemory | None = PrivateAttr(default=None)

    @property
    def held(self) -> InMemory | None:
        """The table that Python gave in the place of `path`."""
        return self._held

    @property
    def source(self) -> TableFiles:
        """The table to read."""
        part = self.paths if self._held is None else self._held
        return TableFiles.of(part, self.dialect, self.dates)

    @property
    def listed(self) -> dict[str, tuple[str | int | float, ...]]:
        """Public categories by name of column."""
        if isinstance(self.categories, Mapping):
            return dict(self.categories)
        return {} if self.categories is None else {(self.columns or ("",))[0]: self.categories}

    @model_validator(mode="after")
    def _settle_missing(self) -> Self:
        """Add the category of missing values, and check that columns are there and categories no marks."""
        if self.missing is not None and self.simulate is not None:
            raise refusal("missing", "is for data.path only: simulated records are complete")
        listed = self.listed
        for name, value in (self.missing or {}).items():
            if name not in (self.columns or ()) and name != self.group:
                known = ", ".join([*(self.columns or ()), *filter(None, [self.group])]) or "none"
                raise refusal(f"missing.{name}", f"no such column; the columns are {known}")
            texts = [str(category) for category in listed.get(name, ())]
            marks = [text for text in texts if text in MARKS]
            if marks:
                why = f"{marks[0]} reads as a missing value, which data.missing is for; call it otherwise"
                raise refusal(f"categories.{name}", why)
            if value != CATEGORY or not texts or texts[-1] == LABEL:
                continue
            if LABEL in texts:
                why = f"names {LABEL}, which data.missing adds as the last category; leave it out"
                raise refusal(f"categories.{name}", why)
            if isinstance(self.categories, Mapping):
                self.settle(categories={**self.categories, name: (*listed[name], LABEL)})
            else:
                self.settle(categories=(*listed[name], LABEL))
        return self

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        self._held = (info.context or {}).get("held")
        if self._held is not None and (self.path is not None or self.simulate is not None):
            key = "simulate" if self.path is None else "path"
            raise refusal(key, "stands beside the data given in Python; leave it out")
        self.settle_path()
        if self.path is not None and self.simulate is not None:
            raise refusal("simulate", "give either path or simulate, not both")
        if (self.alpha is None) == (self.simulate == "dirichlet"):
            missing = "missing; give the parameters of the compositions to simulate"
            raise refusal("alpha", missing if self.alpha is None else "is for data.simulate: dirichlet only")
        if self.simulate is None:
            if self.seed is not None:
                raise refusal("seed", "is for data.simulate only; no seed is accepted for a real release")
            if self.n is not None:
                raise refusal("n", "is for data.simulate only; the number of records is that of the file")
            unnamed_file = self.path is None and self._held is None
            if unnamed_file and not (info.context or {}).get("unread"):
                raise refusal("path", "missing; name the file of the data, or simulate them")
            for part in () if unnamed_file else self.source.parts:
                unnamed = not part.named if isinstance(part, InMemory) else part.name.lower().endswith(".npy")
                if self.columns is None and not unnamed:
                    name = "-" if is_stream(self.path) else part.name
                    raise refusal("columns", f"missing; name the columns of {name} to take")
        elif self.n is None:
            raise refusal("n", "missing; say how many records to simulate")
        elif self.simulate in SIMULATED_COLUMNS:
            self._settle_simulated(self.simulate, SIMULATED_COLUMNS[self.simulate])
        elif self.alpha is not None:
            names = tuple(f"x{number + 1}" for number in range(self._parts(self.alpha)))
            self._settle_simulated(self.simulate, names)
        if self.simulate is not None and self.group in (self.columns or ("value",)):
            raise refusal("group", f"{self.group} is a simulated column; give the groups another name")
        return self

    def _parts(self, alpha: tuple[float, ...] | dict[str, tuple[float, ...]]) -> int:
        """Return the number of parts of simulated compositions."""
        if isinstance(alpha, tuple):
            return len(alpha)
        if self.group is None:
            raise refusal("alpha", "is by group, and data.group is missing; name the groups' column")
        if set(alpha) != set(self.groups):
            raise refusal("alpha", f"must have the groups {', '.join(self.groups)}, each once")
        lengths = {len(own) for own in alpha.values()}
        if len(lengths) > 1:
            raise refusal("alpha", "has groups of different numbers of parts; give all as many")
        return lengths.pop()

    def _settle_simulated(self, name: str, own: tuple[str, ...]) -> None:
        if self.columns is None:
            self.settle(columns=own)
        elif len(self.columns) != len(own):
            raise refusal("columns", f"{name} has {len(own)} columns; name them all, or leave this out")
        if self.pairs is not None:
            check_pairs("domain", self.pairs, self.columns)


class ReleaseSpec(ColumnsSection):
    """Sanitized values that were not made by ``dpmix privatize``, or the columns to take from a release file.

    All columns are taken where none is named.
    """

    path: FilePaths | None = Field(
        None,
        description="Sanitized values (csv or tsv, also .gz; parquet, feather, arrow, npy or h5), relative "
        "to the folder of the spec; a list of files that are one table; left out where the release comes "
        "from a file of dpmix privatize.",
    )

    @model_validator(mode="after")
    def _check_text(self) -> Self:
        self.settle_path()
        return self

    @property
    def file(self) -> Path | None:
        """The one file that `path` names; None where it names none or several."""
        return self.files[0] if len(self.files) == 1 else None

    @property
    def source(self) -> TableFiles:
        """The table to read."""
        assert self.path is not None  # the caller has looked
        return TableFiles.of(self.path, self.dialect, self.dates)


def check_pairs(
    key: str, domain: tuple[tuple[float, float], ...] | None, columns: tuple[str, ...] | None
) -> None:
    """Check that there is one pair of bounds per named column."""
    if domain is not None and columns is not None and len(domain) != len(columns):
        raise refusal(
            key, f"has {counted(len(domain), 'pair')} of bounds for {counted(len(columns), 'column')}"
        )
