"""The section ``model``: a mixture's kernel, base measure, by default from bounds, and prior on partitions.

Each parametric model has its own section, `models/NAME/section.py`, gathered here. Where a spec states no
base measure it follows the public bounds, so that no default has units (methods, section 15).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, Tag, model_validator

from dpmix.spec.days import alike, placed
from dpmix.spec.fields import (
    ChosenBy,
    Gathered,
    Listed,
    Number,
    Positive,
    Section,
    number_or_mapping,
    refusal,
    wrong,
)
from dpmix.spec.kinds import KERNELS, MODELS, SAMPLERS, sampler_of

if TYPE_CHECKING:
    from dpmix.spec.capabilities import Capabilities


Pair = tuple[float, float]

ERRORS_SHAPE: Final = 3.0
ERRORS_SCALE: Final = 0.25
"""Of the inverse-gamma prior of the variance of a regression's errors, the response rescaled to [-1, 1].

The scale is the mean of a gamma law of shape `SCALE_SHAPE` where a spec states none.
"""
PREDICTORS_CURE: Final = (
    "take model.predictors: clamped, or a release with bounds wide of the values, such as [-1, 2] for 0 and 1"
)
"""What to do where a regression's predictors lie at their bounds."""
_TRUNCATED: Final = (
    "The errors are truncated to the bounds of the response: beta and sigma2 are of the normal law before "
    "that, so that beta is not the slope of the mean response; prediction is the mean response, within the "
    "bounds."
)
_CLAMPED: Final = (
    "The line is in predictors clamped to their bounds, as the table holds them: {}x_mean and x_cov are of "
    "latent values before that."
)
CONCENTRATION: Final = (2.0, 1.0)
"""Shape and rate of the gamma prior of the concentration, where a spec states none."""
RECORDS_SD: Final = (0.0053, 0.54)
"""Between these shares of the bounds' width the standard deviation of the records is with probability 0.95
under the defaults of base and concentration together; simulated (`tests/exact/test_columns.py`)."""
RECORDS_SD_FIXED: Final = (0.078, 0.4)
"""Likewise where the base measure stays as the bounds have it."""
RECORDS_SD_BETA: Final = (0.0046, 0.3)
"""Likewise under the defaults of beta kernels."""
RECORDS_SD_BETA_FIXED: Final = (0.095, 0.31)
"""Likewise under those where the base measure is not learned."""
PLACE_SPREAD: Final = 1.8
"""Prior standard deviation of the logit of a learned place of beta kernels: near to even over the bounds."""
SCALE_SHAPE: Final = 0.5
"""Shape of the gamma prior of a learned scale of the base measure: its root is half-normal, so that no
standard deviation below those that the bounds suggest is ruled out."""

Vector = Annotated[tuple[Number, ...], Listed, Field(min_length=1)]
Matrix = Annotated[tuple[Vector, ...], Listed, Field(min_length=1)]

Problem = tuple[str, str]
"""The key at fault and a sentence, which says what to use instead."""

PROPOSING = "private_slice"
"""The sampler of a mixture that is taken where latent records are to move by proposals."""

# The sections: of every model, of base measures, and of mixtures by kernel


class ModelSection(Section):
    """What every model has, and states of itself.

    Attributes
    ----------
    takes : tuple of str
        What it is fitted to, as `Capabilities.released` of mechanisms has it.
    samplers : tuple of str
        Samplers that it goes with; the first is taken where a spec names none.
    maker : str
        Module of the model's folder whose function `build` makes it of a spec and a release.
    predicts, predicts_intervals : bool
        Whether it predicts the last column of a record from the others, and with intervals.
    compares_truth : bool
        Whether summaries compare it with the parameters of a simulation (`summary.truth`).
    """

    takes: ClassVar[tuple[str, ...]] = ()
    samplers: ClassVar[tuple[str, ...]] = ()
    maker: ClassVar[str] = "model"
    predicts: ClassVar[bool] = False
    predicts_intervals: ClassVar[bool] = False
    compares_truth: ClassVar[bool] = False
    kind: Any

    @classmethod
    def takes_release(cls, of: type[Capabilities]) -> bool:
        """Whether it is fitted to releases of a mechanism."""
        return of.released in cls.takes

    def own_sampler(self, sampler: Any) -> tuple[str, str]:
        """Return the first of its samplers that takes its settings and those of the section ``sampler``.

        And why, a clause, where that is not the first of all.
        """
        return self.samplers[0], ""

    def problem(self, spec: Any) -> Problem | None:
        """Return key and sentence of what does not go with it of its own settings, None if all do."""
        return None

    def group_problem(self, spec: Any) -> Problem | None:
        """Return key and sentence of what does not go with groups whose sizes are private."""
        return None

    def in_words(self, spec: Any) -> str:
        """Say what is fitted, in a few words."""
        return str(self.kind)


def columns_of_answers(spec: Any) -> tuple[str, ...]:
    """Return the columns that answers are fitted of, as far as the spec says which; else none."""
    if spec.mechanism is None or spec.mechanism.released != "categories":
        return ()
    return next((part.columns for part in (spec.release, spec.data) if part is not None and part.columns), ())


class GammaPrior(Section):
    """A gamma distribution by shape and rate."""

    shape: Positive = Field(description="Shape.")
    rate: Positive = Field(description="Rate, the inverse of the scale.")


NumberOrGamma = Annotated[
    Annotated[Number, Tag("number")] | Annotated[GammaPrior, Tag("gamma")],
    number_or_mapping("number", "gamma"),
]


def _empirical(value: object) -> object:
    if not isinstance(value, bool) and value != "paper":
        raise wrong("must be true, false or paper, not {got}", value)
    return value


Empirical = Annotated[bool | Literal["paper"], BeforeValidator(_empirical)]


_LEARN = (
    "Whether location and scale of the base measure are learned with the mixture, with {0} as the means of "
    "their priors; with the numbers left out these follow the public bounds. Default: false where the "
    "numbers are given, true where model.base is left out."
)
Learn = Annotated[bool, Field(strict=True)]


def _check_given(base: Section, *names: str) -> None:
    """Refuse a base measure that states some of its numbers and leaves out others."""
    for name in names:
        if getattr(base, name) is None:
            raise refusal(
                name.rstrip("_"),
                "missing; give it, or leave out model.base for a prior that follows the public bounds, "
                "or set empirical: true to compute it from the release",
            )


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
        _check_given(self, "mu0", "lambda_", "a", "b")
        return self


class NIGBase(_NIGFields):
    """Normal-inverse-gamma base measure of a normal kernel's mean and variance."""

    kind: Literal["nig"] = Field("nig", description="The base measure.")
    learn: Learn | None = Field(None, description=_LEARN.format("mu0 and b"))

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
                "a", f"{self.a:g} must be above 1 where learn is true: clusters need a mean variance"
            )
        return self


class TruncatedNIGBase(_NIGFields):
    """Normal-inverse-gamma base measure of mean and variance plus noise, kept above the noise's variance."""

    kind: Literal["truncated_nig"] = Field(description="The base measure.")


NormalBase = Annotated[
    Annotated[NIGBase, Tag("nig")] | Annotated[TruncatedNIGBase, Tag("truncated_nig")],
    ChosenBy("kind", "nig"),
]


class BetaBase(Section):
    """Independent gamma base measures of a beta kernel's two parameters."""

    a_shape: Positive | None = Field(None, description="Gamma shape of the first parameter.")
    a_rate: Positive | None = Field(None, description="Gamma rate of the first parameter.")
    b_shape: Positive | None = Field(None, description="Gamma shape of the second parameter.")
    b_rate: Positive | None = Field(None, description="Gamma rate of the second parameter.")
    learn: Learn | None = Field(
        None,
        description="Whether the rate, the same of both, is learned with the mixture, a_rate the mean of "
        "its prior, and a place around which clusters lie; with the numbers left out these are "
        "Gamma(2, 0.2). Default: false where the numbers are given, true where model.base is left out.",
    )

    @property
    def from_bounds(self) -> bool:
        """Whether the numbers are those of the default."""
        return self.learn is not None and all(getattr(self, name) is None for name in Gammas._fields)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.from_bounds:
            return self
        for name in Gammas._fields:
            if getattr(self, name) is None:
                raise refusal(name, "missing; give it, or leave out model.base for the default")
        if self.learn and self.a_rate != self.b_rate:
            raise refusal(
                "b_rate",
                f"{self.b_rate:g} must be a_rate ({self.a_rate:g}) where learn is true: both have one rate",
            )
        return self


class NIWBase(Section):
    """Normal-inverse-Wishart base measure of a multivariate normal kernel's mean and covariance."""

    mu0: Vector | None = Field(None, description="Prior mean of a cluster's mean.")
    lambda_: Positive | None = Field(
        None, alias="lambda", description="Prior sample size of a cluster's mean."
    )
    nu: Positive | None = Field(None, description="Degrees of freedom, above the dimension less one.")
    Psi: Matrix | None = Field(None, description="Scale matrix.")
    empirical: Annotated[bool, Field(strict=True)] = Field(
        False,
        description="Compute mu0, lambda, nu and Psi from the release, in units of the spread that each "
        "column shows beyond the noise, in place of any that are given here.",
    )
    learn: Learn | None = Field(None, description=_LEARN.format("mu0 and the diagonal of Psi"))

    @property
    def from_bounds(self) -> bool:
        """Whether the numbers follow the public bounds."""
        numbers = (self.mu0, self.lambda_, self.nu, self.Psi)
        return self.learn is not None and not self.empirical and all(v is None for v in numbers)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.empirical:
            if self.learn:
                raise refusal(
                    "learn", "the base measure is computed from the release (empirical); give one of both"
                )
            self.settle(mu0=None, lambda_=None, nu=None, Psi=None)
            return self
        if self.from_bounds:
            return self
        _check_given(self, "mu0", "lambda_", "nu", "Psi")
        assert self.mu0 is not None and self.nu is not None and self.Psi is not None  # just looked
        dim = len(self.mu0)
        if len(self.Psi) != dim or any(len(row) != dim for row in self.Psi):
            raise refusal("Psi", f"must be {dim} by {dim}, as mu0 has {dim} entries")
        if any(self.Psi[i][j] != self.Psi[j][i] for i in range(dim) for j in range(i)):
            raise refusal("Psi", "must be symmetric")
        if not self.nu > dim - 1:
            raise refusal("nu", f"{self.nu:g} must be greater than {dim - 1}, the dimension less one")
        if not positive_definite(self.Psi):
            raise refusal("Psi", "must be positive definite")
        if self.learn and any(self.Psi[i][j] != 0.0 for i in range(dim) for j in range(i)):
            raise refusal("Psi", "must be diagonal where learn is true: the scale of each column is learned")
        if self.learn and not self.nu > dim + 1:
            raise refusal("nu", f"{self.nu:g} must be above {dim + 1} where learn is true")
        return self


def positive_definite(matrix: tuple[tuple[float, ...], ...]) -> bool:
    """Whether a symmetric matrix has a Cholesky factor."""
    factor: list[list[float]] = []
    for i, row in enumerate(matrix):
        made: list[float] = []
        for j in range(i):
            made.append((row[j] - sum(a * b for a, b in zip(made, factor[j], strict=False))) / factor[j][j])
        pivot = row[i] - sum(a * a for a in made)
        if not pivot > 0.0:
            return False
        factor.append([*made, math.sqrt(pivot)])
    return True


_BASE = (
    "Base measure: the prior of one cluster's parameters; where left out, one that follows the public "
    "bounds, as the centre of one whose location and scale are learned."
)


class MixtureSection(ModelSection):
    """What mixtures of every kernel have, and what a kernel states of itself.

    Attributes
    ----------
    plural : str
        What several distributions of the kernel are called.
    conjugate : bool
        Whether its parameters can be integrated out of records that are not hidden.
    several : bool
        Whether it is for several columns together.
    bounded : bool
        Whether it lives on the public bounds.
    in_cells : bool
        Whether the models on counts know its masses of cells.
    """

    takes = ("records", "histogram")
    samplers = ("neal8",)
    plural: ClassVar[str] = "distributions"
    conjugate: ClassVar[bool] = False
    several: ClassVar[bool] = False
    bounded: ClassVar[bool] = False
    in_cells: ClassVar[bool] = False

    kind: Literal["mixture"] = Field(
        "mixture", description="A mixture over a Dirichlet or Pitman-Yor process."
    )
    concentration: NumberOrGamma = Field(
        GammaPrior.model_construct(shape=CONCENTRATION[0], rate=CONCENTRATION[1]),
        description="Concentration of the process: a number, or a gamma prior {shape, rate}.",
    )
    discount: Annotated[Number, Field(ge=0, lt=1)] = Field(
        0.0, description="Discount of the Pitman-Yor process; 0 is the Dirichlet process."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if isinstance(self.concentration, float) and not self.concentration > -self.discount:
            bound = f"-model.discount ({-self.discount:g})" if self.discount > 0 else "0"
            raise refusal("concentration", f"{self.concentration:g} must be greater than {bound}")
        return self

    def own_sampler(self, sampler: Any) -> tuple[str, str]:
        """Return one that moves latent records by proposals where that is asked for, else the first."""
        if sampler.latent == "metropolis":
            return PROPOSING, "sampler.latent: metropolis moves latent records by proposals"
        return super().own_sampler(sampler)

    def group_problem(self, spec: Any) -> Problem | None:
        """Refuse a base measure that is learned: mixtures of groups have it as it stands."""
        if getattr(getattr(self, "base", None), "learn", False):
            return (
                "model.base.learn",
                "true is not for groups whose sizes are private, whose mixtures have the base measure as it "
                "stands; leave it out",
            )
        return super().group_problem(spec)

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return str(getattr(self, "kernel", ""))

    def base_in_words(self, bounds: Sequence[tuple[float, float]] | None) -> str:
        """Name the base measure, and say what it means in the units of the data."""
        return "base measure as stated"


class NormalMixture(MixtureSection):
    """A mixture of normal distributions, for one column."""

    plural = "normals"
    conjugate = True
    in_cells = True

    kernel: Literal["normal"] = Field("normal", description="Distribution within a cluster.")
    base: NormalBase | None = Field(None, description=_BASE)


class BetaMixture(MixtureSection):
    """A mixture of beta distributions over the domain, for one column."""

    plural = "betas"
    bounded = True
    in_cells = True

    kernel: Literal["beta"] = Field(description="Distribution within a cluster.")
    base: BetaBase | None = Field(None, description=_BASE)


class MultivariateNormalMixture(MixtureSection):
    """A mixture of multivariate normal distributions."""

    plural = "multivariate normals"
    several = True

    kernel: Literal["multivariate_normal"] = Field(description="Distribution within a cluster.")
    base: NIWBase | None = Field(None, description=_BASE)


for _kernel, _section in (
    ("normal", NormalMixture),
    ("beta", BetaMixture),
    ("multivariate_normal", MultivariateNormalMixture),
):
    KERNELS.add(_kernel, section=_section)

MixtureSpec = Annotated[MixtureSection, Gathered(KERNELS, "kernel", "normal")]
"""The section of the kernel that is named."""

MODELS.add("mixture", section=MixtureSpec)

ModelSpec = Annotated[ModelSection, Gathered(MODELS, "kind", "mixture")]
"""The section of the kind that is named."""


def default_sampler(model: ModelSection | None, sampler: Any, *, grouped: bool = False) -> str:
    """Return the sampler that is taken for a model, or without one, where a spec names none.

    `sampler` is the section with its other settings.
    """
    if model is None:
        return MixtureSection.samplers[0]
    if grouped and isinstance(model, MixtureSection):
        return next(kind for kind in SAMPLERS.names if sampler_of(kind).of_groups)
    return model.own_sampler(sampler)[0]


# Base measures that follow the public bounds, and what they mean in words


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


class NIW(NamedTuple):
    """covariance ~ InverseWishart(nu, diag psi), mean | covariance ~ N(mu0, covariance / lam)."""

    mu0: tuple[float, ...]
    lam: float
    nu: float
    psi: tuple[float, ...]

    def column(self, number: int) -> NIG:
        """Return the base measure of one column."""
        shape = 0.5 * (self.nu - len(self.mu0) + 1.0)
        return NIG(self.mu0[number], self.lam, shape, 0.5 * self.psi[number])


class Gammas(NamedTuple):
    """a ~ Gamma(a_shape, a_rate), b ~ Gamma(b_shape, b_rate), of a beta kernel."""

    a_shape: float
    a_rate: float
    b_shape: float
    b_rate: float


BETA: Final = Gammas(2.0, 0.2, 2.0, 0.2)
"""The default of beta kernels, which live on [0, 1] and so have no units: at the mean of the rate."""


def gammas_of(model: BetaMixture) -> Gammas:
    """Return the base measure of a beta kernel as stated, or the default."""
    base = model.base
    if base is None or base.from_bounds:
        return BETA
    return Gammas(*(float(getattr(base, name)) for name in Gammas._fields))


def nig_from_bounds(pair: Pair) -> NIG:
    """Return the default on [lo, hi]: a cluster's sd is about D/10, its mean has a prior sd of D/4."""
    lo, hi = pair
    return NIG(lo + 0.5 * (hi - lo), 0.16, 3.0, (hi - lo) ** 2 / 50.0)


def niw_from_bounds(pairs: Sequence[Pair]) -> NIW:
    """Return the default for several columns, which gives each the prior of `nig_from_bounds`."""
    each = [nig_from_bounds(pair) for pair in pairs]
    d = float(len(each))
    return NIW(tuple(c.mu0 for c in each), 0.16, d + 5.0, tuple(2.0 * c.b for c in each))


def coefficients_in_words(
    bounds: Sequence[Pair],
    mean: Sequence[float],
    sd: Sequence[float],
    names: Sequence[str],
    *,
    truncated: bool = False,
) -> str:
    """Say what normal priors of a regression's coefficients mean in the units of the data.

    `bounds` are those of each predictor, and the response's last; `mean` and `sd` of the coefficients of
    variables rescaled to [-1, 1], the intercept first; `names` the predictors'. `truncated`: whether errors
    are, to the bounds of the response.
    """
    what = "the response before truncation" if truncated else "the mean response"
    half = [0.5 * (hi - lo) for lo, hi in bounds]
    middle = alike(bounds[-1][0] + half[-1] * (1.0 + mean[0]), bounds[-1][0])
    ratios = [half[-1] / width for width in half[:-1]]
    slopes = ", ".join(
        f"{m * ratio:.3g} +- {s * ratio:.3g} on {name}"
        for name, m, s, ratio in zip(names, mean[1:], sd[1:], ratios, strict=True)
    )
    spread = half[-1] * sd[0]
    return (
        f"a priori {what} in the middle of the predictors' bounds is {placed(middle, 0.25 * spread)} +- "
        f"{spread:.3g}, with slope{'s' * (len(names) > 1)} {slopes}"
    )


def line_in_words(*, truncated: bool, clamped: bool) -> str:
    """Say what coefficients are where `model.response` is truncated, `model.predictors` clamped, or both."""
    found = [_TRUNCATED] if truncated else []
    if clamped:
        found.append(_CLAMPED.format("" if truncated else "beta is the slope in these, and "))
    return " ".join(found)


def prior_in_words(base: NIG, name: str = "", *, learned: bool = False) -> str:
    """Say what the base measure of a column means, in the units of the data; `name` where there are several.

    `learned`: place and scale are learned, and `base` is at the means of their priors.
    """
    about, middle = f" of {name}" if name else "", placed(base.mu0, 0.25 * base.mean_sd)
    if not math.isfinite(base.cluster_sd):
        return f"a priori a cluster's mean{about} is near {base.mu0:.4g}, and no record has a finite variance"
    if learned:
        return (
            f"a priori clusters{about} lie around a place of {middle} +- {base.mean_sd:.3g} with "
            f"standard deviations of about {base.cluster_sd:.3g} or less, place and scale learned with them"
        )
    return (
        f"a priori a cluster's mean{about} is {middle} +- {base.mean_sd:.3g}, its standard deviation "
        f"about {base.cluster_sd:.3g}; the standard deviation of a record is {base.record_sd:.4g}"
    )


def beta_in_words(base: Gammas, *, learned: bool) -> str:
    """Say what the base measure of a beta kernel means.

    `learned`: place and rate are learned, and `base` is at the means of their priors.
    """
    if learned:
        return (
            f"a priori clusters are Beta(a, b) on the bounds around a place in them, with an a + b of about "
            f"{(base.a_shape + base.b_shape) / base.a_rate:.3g} or more, place and scale learned with them"
        )
    shapes = "a ~ Gamma({:g}, {:g}) and b ~ Gamma({:g}, {:g})".format(*base)
    return f"a priori a cluster is Beta(a, b) on the bounds, {shapes}"
