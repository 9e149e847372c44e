"""The section ``model``: a mixture's kernel, base measure and prior on partitions; the parametric models."""

import math
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, Tag, model_validator

from dpmix.spec.default_priors import CONCENTRATION, ERRORS_SHAPE
from dpmix.spec.fields import (
    ChosenBy,
    FilePath,
    Listed,
    NonNegative,
    Number,
    Positive,
    Section,
    Text,
    number_or_list,
    number_or_mapping,
    refusal,
    wrong,
)
from dpmix.spec.synthesis_section import Bases

Vector = Annotated[tuple[Number, ...], Listed, Field(min_length=1)]
Matrix = Annotated[tuple[Vector, ...], Listed, Field(min_length=1)]

NumberOrVector = Annotated[
    Annotated[Number, Tag("number")] | Annotated[Vector, Tag("list")], number_or_list("number", "list")
]
PositiveOrVector = Annotated[
    Annotated[Positive, Tag("number")]
    | Annotated[tuple[Positive, ...], Listed, Field(min_length=1), Tag("list")],
    number_or_list("number", "list"),
]


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
        for name, key in (("mu0", "mu0"), ("lambda_", "lambda"), ("a", "a"), ("b", "b")):
            if getattr(self, name) is None:
                raise refusal(
                    key,
                    "missing; give it, or leave out model.base for a prior that follows the public bounds, "
                    "or set empirical: true to compute it from the release",
                )
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

    a_shape: Positive = Field(description="Gamma shape of the first parameter.")
    a_rate: Positive = Field(description="Gamma rate of the first parameter.")
    b_shape: Positive = Field(description="Gamma shape of the second parameter.")
    b_rate: Positive = Field(description="Gamma rate of the second parameter.")


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
        for name, key in (("mu0", "mu0"), ("lambda_", "lambda"), ("nu", "nu"), ("Psi", "Psi")):
            if getattr(self, name) is None:
                raise refusal(
                    key,
                    "missing; give it, or leave out model.base for a prior that follows the public bounds, "
                    "or set empirical: true to compute it from the release",
                )
        assert self.mu0 is not None and self.nu is not None and self.Psi is not None  # just looked
        dim = len(self.mu0)
        if len(self.Psi) != dim or any(len(row) != dim for row in self.Psi):
            raise refusal("Psi", f"must be {dim} by {dim}, as mu0 has {dim} entries")
        if any(self.Psi[i][j] != self.Psi[j][i] for i in range(dim) for j in range(i)):
            raise refusal("Psi", "must be symmetric")
        if not self.nu > dim - 1:
            raise refusal("nu", f"{self.nu:g} must be greater than {dim - 1}, the dimension less one")
        if not _positive_definite(self.Psi):
            raise refusal("Psi", "must be positive definite")
        if self.learn and any(self.Psi[i][j] != 0.0 for i in range(dim) for j in range(i)):
            raise refusal("Psi", "must be diagonal where learn is true: the scale of each column is learned")
        if self.learn and not self.nu > dim + 1:
            raise refusal("nu", f"{self.nu:g} must be above {dim + 1} where learn is true")
        return self


def _positive_definite(matrix: tuple[tuple[float, ...], ...]) -> bool:
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


Probabilities = Annotated[tuple[NonNegative, ...], Listed, Field(min_length=2)]
Thresholds = Annotated[tuple[Number, ...], Listed, Field(min_length=1)]


_BASE = (
    "Base measure: the prior of one cluster's parameters; where left out, one that follows the public "
    "bounds, for normal kernels as the centre of one whose location and scale are learned."
)


class _MixtureFields(Section):
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


class NormalMixture(_MixtureFields):
    """A mixture of normal distributions, for one column."""

    kernel: Literal["normal"] = Field("normal", description="Distribution within a cluster.")
    base: NormalBase | None = Field(None, description=_BASE)


class BetaMixture(_MixtureFields):
    """A mixture of beta distributions over the domain, for one column."""

    kernel: Literal["beta"] = Field(description="Distribution within a cluster.")
    base: BetaBase | None = Field(None, description=_BASE)


class MultivariateNormalMixture(_MixtureFields):
    """A mixture of multivariate normal distributions."""

    kernel: Literal["multivariate_normal"] = Field(description="Distribution within a cluster.")
    base: NIWBase | None = Field(None, description=_BASE)


MixtureSpec = Annotated[
    Annotated[NormalMixture, Tag("normal")]
    | Annotated[BetaMixture, Tag("beta")]
    | Annotated[MultivariateNormalMixture, Tag("multivariate_normal")],
    ChosenBy("kernel", "normal"),
]


class DiscreteModel(Section):
    """A Dirichlet or Pitman-Yor process on discrete values, given a synthetic or histogram release."""

    kind: Literal["discrete"] = Field(description="The model.")
    concentration: Number | None = Field(
        None, description="Concentration of the process; the release's own, or 1, where left out."
    )
    discount: Annotated[Number, Field(ge=0, lt=1)] | None = Field(
        None, description="Discount of the process; the release's own, or 0, where left out."
    )
    base: (
        Annotated[
            Annotated[Probabilities, Tag("vector")] | Annotated[Bases, Tag("bases")],
            number_or_mapping("vector", "bases"),
        ]
        | None
    ) = Field(
        None,
        description="Base measure: probabilities of the cells or categories, or a distribution of numeric "
        "columns; the release's own, or uniform, where left out.",
    )
    tail: (
        Annotated[
            Annotated[Thresholds, Tag("list")] | Annotated[dict[Text, Thresholds], Tag("named")],
            number_or_mapping("list", "named"),
        ]
        | None
    ) = Field(
        None,
        description="Thresholds t of the tail probabilities Pr(X > t), or by name of column; the quarters of "
        "the bounds where left out.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        discount = self.discount or 0.0
        if self.concentration is not None and not self.concentration > -discount:
            bound = f"-model.discount ({-discount:g})" if discount > 0 else "0"
            raise refusal("concentration", f"{self.concentration:g} must be greater than {bound}")
        return self


class MultinomialModel(Section):
    """Category probabilities given a released posterior."""

    kind: Literal["multinomial"] = Field(description="The model.")
    prior: Annotated[tuple[Positive, ...], Listed, Field(min_length=2)] | None = Field(
        None, description="Parameters of the beta or Dirichlet prior."
    )


class NaiveBayesModel(Section):
    """Naive Bayes classes and features given noisy counts."""

    kind: Literal["naive_bayes"] = Field(description="The model.")
    prior: Positive = Field(2.0, description="Parameter of the symmetric Dirichlet priors.")


class ErrorPrior(Section):
    """Inverse-gamma prior of the errors' variance."""

    a: Positive = Field(ERRORS_SHAPE, description="Shape.")
    b: Positive | None = Field(
        None,
        description="Scale, in the units of the data; where left out, the square of a quarter of the "
        "response's public width.",
    )


class PredictorPrior(Section):
    """Normal-inverse-Wishart prior of the predictors' mean and covariance."""

    mu0: Vector | None = Field(
        None, description="Prior mean of x_mean; where left out, the middle of the public bounds."
    )
    lambda_: Positive = Field(
        0.16, alias="lambda", description="Prior sample size: x_mean varies by x_cov over lambda."
    )
    nu: Positive | None = Field(
        None, description="Degrees of freedom of x_cov; where left out, the number of predictors plus 5."
    )
    Psi: Matrix | None = Field(
        None,
        description="Scale matrix of x_cov; where left out, diagonal, with squares of a fifth of the "
        "predictors' public widths.",
    )


class LinearRegressionModel(Section):
    """Linear regression given noisy clamped moments."""

    kind: Literal["linear_regression"] = Field(description="The model.")
    response: Literal["clamped", "truncated"] = Field(
        "clamped",
        description="clamped: errors are normal, and a response beyond its bounds counts as the nearer bound "
        "(a Tobit model); truncated: errors are truncated so that responses lie within the bounds, and beta "
        "is not the slope of the mean response.",
    )
    prior_mean: NumberOrVector = Field(
        0.0,
        description="Prior mean of the coefficients of variables rescaled to [-1, 1] by their public bounds: "
        "one number, or one for each, the intercept first.",
    )
    prior_sd: PositiveOrVector = Field(
        1.0,
        description="Prior standard deviation of the coefficients of variables rescaled to [-1, 1]: one "
        "number, or one for each, the intercept first.",
    )
    sigma2: Positive | None = Field(
        None, description="Known variance of the errors; given a prior where left out."
    )
    sigma2_prior: ErrorPrior = Field(
        ErrorPrior.model_construct(),
        description="Inverse-gamma prior {a, b} of sigma2, where it is not known.",
    )
    x_mean: Vector | None = Field(
        None, description="Known mean of the predictors; given a prior where left out."
    )
    x_cov: Matrix | None = Field(
        None, description="Known covariance of the predictors; given a prior where left out."
    )
    x_prior: PredictorPrior = Field(
        PredictorPrior.model_construct(),
        description="Normal-inverse-Wishart prior {mu0, lambda, nu, Psi} of x_mean and x_cov, where one or "
        "both are not known.",
    )
    predict: Matrix | None = Field(
        None,
        description="Predictors of new rows, for which the mean response, the mean of the clamped response "
        "and a response are drawn.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key, matrix in (("x_cov", self.x_cov), ("x_prior.Psi", self.x_prior.Psi)):
            if matrix is not None:
                _check_covariance(key, matrix)
        # a spec that was written with its defaults reads back
        if self.sigma2 is not None and self.sigma2_prior != ErrorPrior():
            raise refusal("sigma2_prior", "is for an unknown sigma2; leave out one of the two")
        if self.x_mean is not None and self.x_cov is not None and self.x_prior != PredictorPrior():
            raise refusal("x_prior", "is for an unknown x_mean or x_cov; leave it out, or one of these")
        return self


def _check_covariance(key: str, matrix: tuple[tuple[float, ...], ...]) -> None:
    dim = len(matrix)
    if any(len(row) != dim for row in matrix):
        raise refusal(key, f"must be square: {dim} rows of {dim} numbers")
    if any(matrix[i][j] != matrix[j][i] for i in range(dim) for j in range(i)):
        raise refusal(key, "must be symmetric")
    if not _positive_definite(matrix):
        raise refusal(key, "must be positive definite")


class DirichletModel(Section):
    """Compositions with a Dirichlet distribution given noisy log moments."""

    kind: Literal["dirichlet"] = Field(description="The model.")
    prior: Annotated[
        Annotated[Literal["p2", "p3", "p4", "p5"], Tag("name")] | Annotated[GammaPrior, Tag("gamma")],
        number_or_mapping("name", "gamma"),
    ] = Field(
        GammaPrior.model_construct(shape=1.0, rate=0.1),
        description="Independent gamma priors {shape, rate}, or one of the data-based priors p2 to p5.",
    )


class CustomModel(Section):
    """A model of the user's own; keys beside ``file`` go to it."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["custom"] = Field(description="The model.")
    file: FilePath = Field(description="Python file with the model, relative to the folder of the spec.")


ModelSpec = Annotated[
    Annotated[MixtureSpec, Tag("mixture")]
    | Annotated[DiscreteModel, Tag("discrete")]
    | Annotated[MultinomialModel, Tag("multinomial")]
    | Annotated[NaiveBayesModel, Tag("naive_bayes")]
    | Annotated[LinearRegressionModel, Tag("linear_regression")]
    | Annotated[DirichletModel, Tag("dirichlet")]
    | Annotated[CustomModel, Tag("custom")],
    ChosenBy("kind", "mixture"),
]
