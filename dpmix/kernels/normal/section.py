"""What a spec says of normal mixtures of one column, and what their base measures mean."""

import math
from collections.abc import Sequence
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, Tag, model_validator

from dpmix.numerics.in_words import brief, plainly
from dpmix.spec.days import alike, placed
from dpmix.spec.fields import ChosenBy, Number, Positive, Section, refusal, wrong
from dpmix.spec.model_section import BASE, LEARN, LearnAll, MixtureSection, Pair, check_given

RECORDS_SD: Final = (0.0053, 0.54)
"""Between these shares of the bounds' width the standard deviation of the records is with probability 0.95
under the defaults of base and concentration together; simulated (`tests/exact/test_columns.py`)."""
RECORDS_SD_WEIGHTED: Final = (0.0048, 0.55)
"""Likewise where lambda is learned, too."""
RECORDS_SD_FIXED: Final = (0.078, 0.4)
"""Likewise where the base measure stays as the bounds have it."""


class NIG(NamedTuple):
    """variance ~ InverseGamma(a, scale b), mean | variance ~ N(mu0, variance / lam)."""

    mu0: float
    lam: float
    a: float
    b: float

    @property
    def cluster_sd(self) -> float:
        """Root of the prior mean of a cluster's variance; infinite for a <= 1."""
        return math.sqrt(self.b / (self.a - 1.0)) if self.a > 1.0 else math.inf

    @property
    def mean_sd(self) -> float:
        """Prior standard deviation of a cluster's mean."""
        return self.cluster_sd / math.sqrt(self.lam)

    @property
    def record_sd(self) -> float:
        """Prior standard deviation of one record."""
        return math.hypot(self.cluster_sd, self.mean_sd)


def nig_from_bounds(pair: Pair) -> NIG:
    """Return the default on [lo, hi]: a cluster's sd is about D/10, its mean has a prior sd of D/4."""
    lo, hi = pair
    return NIG(lo + 0.5 * (hi - lo), 0.16, 3.0, (hi - lo) ** 2 / 50.0)


def prior_in_words(base: NIG, name: str = "", *, learned: bool = False, weighted: bool = False) -> str:
    """Say what the base measure of a column means, in the units of the data; `name` where there are several.

    `learned`: place and scale are learned, `base` is at the means of their priors; `weighted`: lambda, too.
    """
    about, middle = f" of {name}" if name else "", plainly(placed(base.mu0, 0.25 * base.mean_sd))
    of_mean, of_cluster = (brief(sd, 3) for sd in (base.mean_sd, base.cluster_sd))
    if not math.isfinite(base.cluster_sd):
        near = f"a priori a cluster's mean{about} is near {brief(base.mu0, 4)}"
        return f"{near}, and no record has a finite variance"
    if learned:
        return (
            f"a priori clusters{about} lie around a place of {middle} +- {of_mean} with "
            f"standard deviations of about {of_cluster} or less, "
            f"{'place, scale and how far apart' if weighted else 'place and scale'} learned with them"
        )
    return (
        f"a priori a cluster's mean{about} is {middle} +- {of_mean}, its standard deviation "
        f"about {of_cluster}; the standard deviation of a record is {brief(base.record_sd, 4)}"
    )


def _empirical(value: object) -> object:
    if not isinstance(value, bool) and value != "paper":
        raise wrong("must be true, false or paper, not {got}", value)
    return value


Empirical = Annotated[bool | Literal["paper"], BeforeValidator(_empirical)]


class _NIGFields(Section):
    mu0: Number | None = Field(None, description="Prior mean of a cluster's mean, in the units of the data.")
    lambda_: Positive | None = Field(
        None,
        alias="lambda",
        description="Prior sample size: a cluster's mean varies by its variance over lambda.",
    )
    a: Positive | None = Field(None, description="Shape of the inverse-gamma prior of a cluster's variance.")
    b: Positive | None = Field(None, description="Scale of the inverse-gamma prior of a cluster's variance.")
    empirical: Empirical = Field(
        False,
        description="Compute mu0, lambda, a and b from the release, in place of any given here: true, in "
        "units of the spread that it shows beyond the noise; or paper, as published, for data whose variance "
        "is near 1.",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.empirical:
            self.settle(mu0=None, lambda_=None, a=None, b=None)
            return self
        if getattr(self, "from_bounds", False):
            return self
        check_given(self, "mu0", "lambda_", "a", "b")
        return self


class NIGBase(_NIGFields):
    """Normal-inverse-gamma base measure of a normal kernel's mean and variance."""

    kind: Literal["nig"] = Field("nig", description="The base measure.")
    learn: LearnAll | None = Field(None, description=LEARN.format("mu0 and b"))

    @property
    def from_bounds(self) -> bool:
        """Whether the numbers follow the public bounds."""
        numbers = (self.mu0, self.lambda_, self.a, self.b)
        return self.learn is not None and not self.empirical and all(v is None for v in numbers)

    @model_validator(mode="after")
    def _check_learn(self) -> Self:
        if self.learn and self.empirical:
            raise refusal(
                "learn", "the base measure is computed from the release (empirical); give one of both"
            )
        if self.learn and self.a is not None and not self.a > 1.0:
            raise refusal(
                "a", f"{self.a:g} must be above 1 where the base is learned: clusters need a mean variance"
            )
        return self


class TruncatedNIGBase(_NIGFields):
    """Normal-inverse-gamma base measure of mean and variance plus noise, kept above the noise's variance."""

    kind: Literal["truncated_nig"] = Field(description="The base measure.")


NormalBase = Annotated[
    Annotated[NIGBase, Tag("nig")] | Annotated[TruncatedNIGBase, Tag("truncated_nig")],
    ChosenBy("kind", "nig"),
]


class NormalMixture(MixtureSection):
    """A mixture of normal distributions, for one column."""

    plural = "normals"
    conjugate = True
    in_cells = True
    base_kinds = ("nig", "truncated_nig")

    kernel: Literal["normal"] = Field("normal", description="Distribution within a cluster.")
    base: NormalBase | None = Field(None, description=BASE)

    @property
    def base_name(self) -> str:
        """Name of the base measure, in chains files."""
        return "nig" if self.base is None else self.base.kind

    def base_in_words(self, bounds: Sequence[Pair] | None, *, grouped: bool = False) -> str:
        """Name the base measure, and say what it means in the units of the data."""
        learned, stated = self.learns(grouped), self.base
        weighted = learned and self.learns_weight
        if self.base_from_bounds and bounds is None:
            return f"{'learned ' if learned else ''}base measure from the public bounds of the release"
        if isinstance(stated, _NIGFields) and stated.empirical:
            kind = "truncated base" if stated.kind == "truncated_nig" else "base"
            return f"{kind} measure computed from the release"
        if self.base_from_bounds:
            pair = (bounds or ())[0]
            base = nig_from_bounds(pair)
            base = base._replace(mu0=alike(base.mu0, pair[0]))
        else:  # whose numbers were checked to be there
            base = NIG(*(float(getattr(stated, name)) for name in ("mu0", "lambda_", "a", "b")))
            if self.base_name == "truncated_nig":
                return f"base truncated NIG({base.mu0:g}, {base.lam:g}, {base.a:g}, {base.b:g})"
        words = f"NIG({base.mu0:g}, {base.lam:g}, {base.a:g}, {base.b:g})"
        kind = "learned base around" if learned else "base"
        words = f"{kind} {words}: {prior_in_words(base, learned=learned, weighted=weighted)}"
        if not self.base_from_bounds:
            return words
        spread = RECORDS_SD_WEIGHTED if weighted else RECORDS_SD
        shares, of = (spread, "; the standard deviation") if learned else (RECORDS_SD_FIXED, ", and that")
        return words + self.spread_in_words((bounds or ())[0], shares, of)


SECTION = NormalMixture
