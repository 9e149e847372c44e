"""The public half of a mechanism: what a release says of how it was made, checked at the edge of a file.

A law is what JSON holds of a mechanism, parsed: frozen, with the keys as fields. It checks released values,
says what was done in words, and knows what else follows from its kind. It imports nothing of either side;
what is compiled is imported when it is asked for.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import KeysView, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    Strict,
    ValidationError,
    field_validator,
    model_validator,
)

from dpmix.errors import DataError, DpmixError
from dpmix.numerics.in_words import brief
from dpmix.spec.capabilities import Capabilities, counted

if TYPE_CHECKING:
    from dpmix.laws.transitions import CellLikelihood, Transition

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = Sequence[Sequence[str] | None]

_LARGEST = 10**300  # whole numbers in JSON have no bound
_DIGITS = 400  # of the numbers of a ratio
_NO_RATIO = "does not state its ratio as p/q, two whole numbers of which the first is larger"


class LawError(DpmixError):
    """A description that lacks something: one clause, before which the reader of a file puts its name.

    It is a `DataError` to whoever made the file; those who read files turn it into one.
    """

    exit_code = 3


class Says(NamedTuple):
    """What is said of a field that is not as it must be."""

    clause: str


def _number(value: Any) -> Any:
    """Refuse what is no finite number: words, booleans, whole numbers beyond any double."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("no number")
    if not (math.isfinite(value) if isinstance(value, float) else abs(value) < _LARGEST):
        raise ValueError("no finite number")
    return value


def is_number(value: Any) -> bool:
    """Whether JSON's value is a number that a double can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def fraction_of(value: Any) -> Fraction:
    """Return a ratio above 1 written as ``"p/q"``.

    Raises
    ------
    ValueError
        For anything else.
    """
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", value) if isinstance(value, str) else None
    if found is None or len(value) > 2 * _DIGITS or not int(found[1]) > int(found[2]) > 0:
        raise ValueError("no ratio")
    return Fraction(int(found[1]), int(found[2]))


def _a_ratio(value: str) -> str:
    try:
        float(fraction_of(value))
    except (ValueError, OverflowError):
        raise ValueError(_NO_RATIO) from None
    return value


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[0] < pair[1]:
        raise ValueError("the lower one first")
    return pair


def _is_list(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise ValueError("no list")
    return value


Number = Annotated[float, BeforeValidator(_number)]
Positive = Annotated[Number, Field(gt=0)]
Whole = Annotated[int, Strict()]
Pair = Annotated[tuple[Number, Number], AfterValidator(_ordered), BeforeValidator(_is_list)]
OnePair = Annotated[tuple[Pair], BeforeValidator(_is_list), Says("does not state one pair of bounds")]
OneScale = Annotated[tuple[Positive], BeforeValidator(_is_list), Says("does not state one noise scale")]
Scales = Annotated[
    tuple[Positive, ...],
    BeforeValidator(_is_list),
    Says("does not list a positive noise scale per column"),
]
Ratio = Annotated[str, AfterValidator(_a_ratio), Says(_NO_RATIO)]
Groups = Annotated[
    dict[str, tuple[str, ...]] | None,
    Says("does not state its groups, one column with two different names or more"),
]


class EstimatedMoments(NamedTuple):
    """Estimates of mean and variance of a column, and the standard error of the variance (inf: unknown)."""

    mean: float
    variance: float
    error: float

    @property
    def shows_spread(self) -> bool:
        """Whether the variance is told from nothing: at least twice its standard error."""
        return math.isfinite(self.error) and self.variance >= 2.0 * self.error and self.variance > 0.0

    def moved(self, lo: float, width: float) -> EstimatedMoments:
        """Return the moments of lo + width y."""
        return EstimatedMoments(lo + width * self.mean, width**2 * self.variance, width**2 * self.error)


class Observation(NamedTuple):
    """What samplers of mixtures take of a release.

    Parameters
    ----------
    z : ndarray of float64, shape (n,)
        What the channel is given of each record: its released value, or the number of its row.
    channel : NamedTuple
        Of the mechanism's `channel.py`, or of `dpmix.mechanisms.channels`.
    observed : ndarray of float64
        The release as the chains file holds it.
    dims : tuple of str
        Names of its dimensions.
    noise_scale : float or ndarray of float64, shape (columns,)
        Scale of the noise in the units of the data; NaN where there is none of this kind.
    """

    z: Floats
    channel: Any
    observed: Floats
    dims: tuple[str, ...]
    noise_scale: float | Floats


class Pictured(NamedTuple):
    """What released values are called in a picture, where they stand behind a density.

    Parameters
    ----------
    label : str
        In the legend.
    shown : str
        What the histogram shows, in the caption.
    values : str
        What single ones are called.
    """

    label: str = "released values, noise included"
    shown: str = (
        "the released values, which carry the mechanism's noise: the posterior mean is what is left once "
        "that noise is accounted for"
    )
    values: str = "released values"


class Law(Capabilities):
    """What is public of a mechanism, as a release states it.

    Keys that are not fields are kept, as those of other versions. What some mechanisms alone have, such as a
    density by cells, is a method that raises TypeError here: whoever needs it asks `provides` before.

    Attributes
    ----------
    capabilities : type of Capabilities
        Where these are stated: the section of the spec, for mechanisms that have one.
    pictured : Pictured
        What released values are called in pictures.
    unpictured : str
        What was released, in words, where it is not on the data's scale.
    noise_name : str
        What the noise is called, within a sentence.
    clamps : bool
        Whether records of a kernel that goes beyond the bounds count as at them.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    capabilities: ClassVar[type[Capabilities]] = Capabilities
    pictured: ClassVar[Pictured] = Pictured()
    unpictured: ClassVar[str] = ""
    noise_name: ClassVar[str] = "noise"
    clamps: ClassVar[bool] = False

    _json: dict[str, Any] = PrivateAttr(default_factory=dict)

    kind: str
    groups: Groups = None
    domain: tuple[tuple[float, float], ...] | None = None
    scale: Scales = ()
    calibration: str | None = None
    requested: dict[str, Any] | None = None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Take over what is stated elsewhere."""
        stated = cls.__dict__.get("capabilities")
        if stated is not None:
            for name in Capabilities.__class_vars__:
                setattr(cls, name, getattr(stated, name))

    @field_validator("groups", mode="before")
    @classmethod
    def _two_names(cls, value: Any, info: Any) -> Any:
        if value is None:
            return None
        if not cls.grouped:
            raise ValueError(f"states groups, which a {info.data['kind']} release has none of")
        names = next(iter(value.values())) if isinstance(value, Mapping) and len(value) == 1 else None
        if not (
            isinstance(names, list | tuple)
            and len(names) > 1
            and all(isinstance(name, str) and name for name in (*value, *names))
            and len(set(names)) == len(names)
        ):
            raise ValueError("does not state its groups, one column with two different names or more")
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _keep(cls, stated: Any, parse: ModelWrapValidatorHandler[Self]) -> Self:
        """Keep what JSON holds, whichever way a law is made."""
        found = parse(stated)
        if isinstance(stated, Mapping):
            found._json = json.loads(json.dumps(dict(stated)))
        return found

    @classmethod
    def provides(cls, method: str) -> bool:
        """Whether the law has a method of its own, in place of the one that says that there is none."""
        return getattr(cls, method) is not getattr(Law, method)

    @classmethod
    def of(cls, stated: Mapping[str, Any]) -> Self:
        """Parse what a release states.

        Raises
        ------
        LawError
            Naming the first thing that is missing or wrong, such as "does not state its levels".
        """
        try:
            return cls.model_validate(dict(stated))
        except ValidationError as error:
            raise LawError(_clause(cls, error)) from None

    def stated(self) -> dict[str, Any]:
        """Return what JSON holds of it: what it was parsed from."""
        return copy.deepcopy(self._json)

    def __eq__(self, other: object) -> bool:
        """Whether the other states the same, as a law or as JSON holds it."""
        return self._json == (other._json if isinstance(other, Law) else other)

    def __hash__(self) -> int:
        """Return the hash of what is stated."""
        return hash(json.dumps(self._json, sort_keys=True))

    def __getitem__(self, key: str) -> Any:
        """Return what JSON holds under a key."""
        return self._json[key]

    def __contains__(self, key: object) -> bool:
        """Whether JSON has a key."""
        return key in self._json

    def get(self, key: str, default: Any = None) -> Any:
        """Return what JSON holds under a key, or the default."""
        return self._json.get(key, default)

    def keys(self) -> KeysView[str]:
        """Return the keys that JSON has."""
        return self._json.keys()

    def updated(self, **changed: Any) -> Self:
        """Return the law with some of its keys changed.

        Raises
        ------
        LawError
            As `of`.
        """
        return self.of(self.stated() | changed)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups, whose sizes are private; none where the release has no groups."""
        return () if self.groups is None else next(iter(self.groups.values()))

    @property
    def by_groups(self) -> tuple[str, str]:
        """Return " by sex (f, m)", and what a sentence ends with; nothing where the release has no groups."""
        if self.groups is None:
            return "", ""
        column, names = next(iter(self.groups.items()))
        return f" by {column} ({', '.join(names)})", "; how many records a group has is private"

    @property
    def public_bounds(self) -> tuple[tuple[float, float], ...] | None:
        """The public bounds of each column of the data, where it states them."""
        return self.domain or None

    @property
    def labels(self) -> tuple[tuple[str, ...] | None, ...]:
        """What codes in each column of a release stand for, None for numbers; empty where all are numbers."""
        return ()

    @property
    def outputs(self) -> int | None:
        """How many outputs a released number can be, 0, 1, ..; None where they are not finitely many."""
        return None

    @property
    def chosen(self) -> str:
        """What was chosen by the data, and is public, in words; empty where nothing was."""
        return ""

    @property
    def data_column(self) -> str:
        """Name of the column of the data that a release is of, where its own columns do not have it."""
        return "value"

    @property
    def dated(self) -> tuple[str, ...]:
        """Names of the columns that are dates, where the law knows them."""
        return ()

    @property
    def blur(self) -> float:
        """Over what width a released number hides a record, in the data's units; infinite where not known."""
        return math.inf

    @property
    def step(self) -> float:
        """Distance between the `places` of released numbers; 0 where these are not finitely many."""
        return 0.0

    @property
    def made_by(self) -> str:
        """What a release is called by: the kind of the mechanism, or a generator."""
        return self.kind

    @property
    def origin(self) -> Law | None:
        """The law of the release that it is post-processing of; None where it is none."""
        return None

    @property
    def elsewhere(self) -> bool:
        """Whether it, or the release that it is of, was drawn by another program, as a spec states."""
        return bool((self.origin or self).get("stated"))

    @property
    def of_local(self) -> bool:
        """Whether it is post-processing of a local release, whose trust model is then its own."""
        return False

    @property
    def unproved(self) -> str | None:
        """Why what it claims is not proved, in words; None where it is."""
        return None

    def width(self, columns: int) -> int:
        """Return the number of columns that a release of `columns` confidential columns has."""
        return columns

    def of_columns(self, columns: Sequence[int]) -> Self:
        """Return the law of some of the columns of a release, of one whose columns are each on their own."""
        return self

    def disagreement(self, n: int, columns: int) -> str | None:
        """Say what the law states of another number of records or columns than the release has."""
        return None

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say why values cannot be a release of this mechanism; None where they can.

        Parameters
        ----------
        values : ndarray of float64, shape (rows, columns)
            Finite.
        labels : sequence
            For each column of synthetic records the labels of its codes, None for numbers.

        Returns
        -------
        str or None
            One clause, such as "has 6 columns, but levels: 2 gives 7".
        """
        return None

    def republishes(self, n: int, delta: float | None) -> str:
        """Say which of n records, or parts of them, are published as they are; empty where none are."""
        return ""

    def warning(self, values: Floats, n: int) -> str | None:
        """Say what is legal and yet suspect in released values of n records; None where nothing is."""
        return None

    def tabulated(self, values: Floats) -> dict[str, Any] | None:
        """Return what was released as a table whose columns say what each of the numbers (rows,) is of.

        None where its rows are records, or where nothing is known of them but their order.
        """
        return None

    def edges(self) -> Floats:
        """Return the edges of the cells within which a release says nothing, in the units of the data.

        Raises
        ------
        ValueError
            For a law that has none.
        """
        raise ValueError(f"a {self.kind} release has no cells")

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return what samplers of mixtures take of released values; imports compiled channels when called.

        Parameters
        ----------
        values : ndarray of float64, shape (rows, columns)
            The released values of the columns that are fitted.
        n : int
            Number of confidential records.
        columns : sequence of int
            Which of the released columns these are.
        rows : bool
            Whether the kernel is of several columns, and takes whole rows.

        Raises
        ------
        DataError
            Where no mixture can be fitted.
        """
        raise DataError(f"the release was made by {self.kind}, which no sampler of this version can fit")

    def bounds_acceptance(self, on_domain: bool) -> bool:
        """Whether e^-eps bounds the density ratio of a release given any two records of a kernel.

        Parameters
        ----------
        on_domain : bool
            Whether the kernel is on the public bounds alone (methods, section 4).
        """
        return self.clamps

    def places(self, released: Floats, column: int = 0) -> Floats:
        """Return where released numbers (n,) of a column stand on the data's scale.

        Here as they are, which is where a mechanism says that they are `on_data_scale`.
        """
        return released

    def basis(self) -> Floats:
        """Return the numbers (cells, numbers) that a record in each cell is released as, but for noise.

        The cells are those of `edges`, equal; columns are orthonormal functions, whose means are 0.
        """
        raise TypeError(f"a {self.kind} release is not of coefficients")

    def draw_mean_noise(self, n: int, size: int, rng: Generator) -> Floats:
        """Draw the means (size,) of the noise on the coefficients of n records."""
        raise TypeError(f"a {self.kind} release is not of coefficients")

    def log_marginal(self, z: Floats, mean: Floats, sd: Floats, scale: float) -> Floats:
        """Return log densities of released numbers of records that are normal; arrays are broadcast."""
        raise TypeError(f"{self.kind} releases of normal records have no density in closed form")

    def noise_cdf(self, t: Floats) -> Floats:
        """Return Pr(noise < t), of noise of scale 1 that is added to records."""
        raise TypeError(f"of the noise of {self.kind} no distribution function is stated")

    def cell_likelihood(self, values: Floats, scale: float) -> CellLikelihood:
        """Return how likely each released record is, given masses of cells.

        Parameters
        ----------
        values : ndarray of float64, shape (n,) or (n, columns)
            The release.
        scale : float
            Scale of the noise, NaN where there is none of that kind.

        Raises
        ------
        ValueError
            Where it takes too many cells; the text says why.
        """
        raise TypeError(f"releases by {self.kind} have no likelihood by cells")

    def information(self, places: Floats, weights: Floats, shares: Floats, n: int) -> Floats:
        """Return the Fisher information (B, B) of a release of n records about the masses of cells.

        Parameters
        ----------
        places : ndarray of float64, shape (B, nodes)
            Places within each cell.
        weights : ndarray of float64, shape (nodes,)
            Their weights, which add to 1.
        shares : ndarray of float64, shape (B,)
            Masses of the cells.
        n : int
        """
        raise TypeError(f"what {self.kind} tells of a density is not known")

    def draw(self, latent: Floats, scale: float | Floats, rng: Generator) -> Floats:
        """Draw what the mechanism releases of records, in floating point: for replicates, never to release.

        Parameters
        ----------
        latent : ndarray of float64, shape (n,) or (n, columns)
            Records.
        scale : float or ndarray of float64, shape (columns,)
            Scale of the noise of these columns.
        rng : Generator
        """
        raise TypeError(f"a {self.kind} release is not of records one by one")

    def transition(self, cells: Floats, edges: Floats, chosen: Ints, scale: float) -> Transition | None:
        """Return how likely cells of released values are given a record that is uniform in a cell.

        Parameters
        ----------
        cells : ndarray of float64, shape (M + 1,)
            Edges of equal cells of the public bounds, in the units of the data.
        edges : ndarray of float64, shape (C - 1,)
            Finite edges of the cells of released values; .5, 1.5, .. where outputs are finite.
        chosen : ndarray of int64, shape (B,)
            Which of these cells are wanted.
        scale : float
            Scale of the noise on the column.

        Returns
        -------
        Transition or None
            None where a record does not release one number whose law is known.
        """
        return None

    def done(self, n: int) -> str:
        """Say what was done to n records, in one sentence."""
        return f"The mechanism {self.kind}{of_scale(self.scale)} was applied to {counted(n, 'record')}."

    def told(self) -> Sequence[float]:
        """Return the numbers beside the released values that depend on the records."""
        return ()

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return mean and variance of a confidential column, as the release estimates them without bias.

        Parameters
        ----------
        values : ndarray of float64, shape (rows, columns)
            The released values.
        column : int
            Which of the columns of the data.
        n : int
            Number of confidential records.
        pair : (lo, hi) or None
            Public bounds, which all but additive noise have.

        Returns
        -------
        EstimatedMoments or None
            None where the release has none that are unbiased (methods, section 15).
        """
        return None


L = TypeVar("L", bound=Law)


def expect(law: Law, kind: type[L]) -> L:
    """Return a law as one of a kind.

    Raises
    ------
    TypeError
        Where it is of another: whoever asks should have looked before.
    """
    if not isinstance(law, kind):
        raise TypeError(f"{kind.__name__} is expected, and this is the law of a {law.kind} release")
    return law


def _clause(law: type[Law], error: ValidationError) -> str:
    """Return what is said of the first field that is wrong: groups, then those of the kind alone."""
    every = error.errors()
    if not every[0]["loc"]:
        return str(every[0]["ctx"]["error"])
    last = [name for name in Law.model_fields if name != "groups"]
    found = min(every, key=lambda each: last.index(each["loc"][0]) + 1 if each["loc"][0] in last else 0)
    name = str(found["loc"][0])
    fields = {field.alias or own: field for own, field in law.model_fields.items()}
    if found["type"] == "value_error" and len(found["loc"]) == 1:
        text = str(found["ctx"]["error"])
        if text.startswith(("states ", "does not ")):
            return text
    said = [each.clause for each in fields[name].metadata if isinstance(each, Says)]
    return said[-1] if said else f"does not state its {name}"


def of_scale(scale: Sequence[float]) -> str:
    """Return " of scale 2", or nothing where there is none."""
    return f" of scale {', '.join(brief(value, 4) for value in scale)}" if scale else ""


def whole_where_all_are(values: Floats) -> Floats | Ints:
    """Return numbers as integers where all of them are whole."""
    return values.astype(np.int64) if (values == np.floor(values)).all() else values


def each_of(number: int) -> str:
    """Return "each of 2 records", or "the one record"."""
    return "the one record" if number == 1 else f"each of {number} records"


def first(bad: NDArray[np.bool_], what: str, row: str) -> str | None:
    """Say which value is the first that is bad; None where none is."""
    if not bad.any():
        return None
    more = int(bad.sum()) - 1
    return f"has a value that {what}: {row} {int(np.argmax(bad)) + 1}" + (
        f" (and {more} more)" if more else ""
    )


def moments_of_records(u: Floats, v: Floats) -> EstimatedMoments:
    """Return the moments given unbiased estimates u of y and v of y^2 for each record.

    The variance is estimated by mean(v) - mean(u)^2, with var(u)/n added for the bias of the square, and the
    standard error is that of mean(v - 2 mean(u) u) (methods, section 15).
    """
    n, mean = len(u), float(np.mean(u))
    if n < 2:
        return EstimatedMoments(mean, 0.0, math.inf)
    variance = float(np.mean(v)) - mean**2 + float(np.var(u, ddof=1)) / n
    return EstimatedMoments(mean, variance, float(np.std(v - 2.0 * mean * u, ddof=1)) / math.sqrt(n))


def moments_of_cells(count: int) -> tuple[Floats, Floats]:
    """Return the means of y and y^2 over equal cells of [0, 1]."""
    middle = (np.arange(count) + 0.5) / count
    return middle, middle**2 + 1.0 / (12.0 * count**2)
