"""What a spec says of a linear regression, and what the model goes with."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from dpmix.spec.fields import Listed, Number, Positive, Section, number_or_list, refusal, wrong
from dpmix.spec.model_section import (
    COEFFICIENTS_SCALE,
    ERRORS_SHAPE,
    LINE_GOES_ON,
    TAKEN_AS_CLAMPED,
    Matrix,
    ModelSection,
    Problem,
    Vector,
    coefficients_in_words,
    line_in_words,
    outside_in_words,
    positive_definite,
)

NumberOrVector = Annotated[
    Annotated[Number, Tag("number")] | Annotated[Vector, Tag("list")], number_or_list("number", "list")
]


def _learned(what: str) -> BeforeValidator:
    def check(value: object) -> object:
        if value != "learned":
            raise wrong(f"must be {what} or learned, not {{got}}", value)
        return value

    return BeforeValidator(check)


def _word_number_or_list(value: object) -> str:
    if isinstance(value, str):
        return "word"
    return "list" if hasattr(value, "__len__") and not isinstance(value, Mapping) else "number"


LearnedOrPositive = Annotated[
    Annotated[Literal["learned"], _learned("a number, a list of numbers"), Tag("word")]
    | Annotated[Positive, Tag("number")]
    | Annotated[tuple[Positive, ...], Listed, Field(min_length=1), Tag("list")],
    Discriminator(_word_number_or_list),
]
LearnedOrMatrix = Annotated[
    Annotated[Matrix, Tag("matrix")] | Annotated[Literal["learned"], _learned("a list of rows"), Tag("word")],
    number_or_list("word", "matrix"),
]


class ErrorPrior(Section):
    """Inverse-gamma prior of the errors' variance."""

    a: Positive = Field(ERRORS_SHAPE, description="Shape.")
    b: Positive | Literal["learned"] = Field(
        "learned",
        description="Scale, in the units of the data. learned: gamma of shape 1/2 a priori, whose mean is "
        "the square of a quarter of the response's public width.",
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
    Psi: LearnedOrMatrix = Field(
        "learned",
        description="Scale matrix of x_cov. learned: diagonal, with gamma entries of shape 1/2 a priori, "
        "whose means are the squares of a fifth of the predictors' public widths.",
    )


class LinearRegressionModel(ModelSection):
    """Linear regression given noisy clamped moments."""

    takes = ("clamped_moments",)
    samplers = ("data_augmentation", "soma")
    maker = "build"
    predicts = True
    predicts_intervals = True

    kind: Literal["linear_regression"] = Field(description="The model.")
    response: Literal["clamped", "truncated"] = Field(
        "clamped",
        description="clamped: errors are normal, and a response beyond its bounds counts as the nearer bound "
        "(a Tobit model); truncated: errors are truncated so that responses lie within the bounds, and beta "
        "is not the slope of the mean response.",
    )
    predictors: Literal["unclamped", "clamped"] = Field(
        "unclamped",
        description="What the line is in: unclamped, the normal latent predictors before those beyond their "
        "bounds are clamped to these (the paper's model), for values that were cut; clamped, the predictors "
        "as the table holds them, for values that lie at or near their bounds, such as 0 and 1.",
    )
    prior_mean: NumberOrVector = Field(
        0.0,
        description="Prior mean of the coefficients of variables rescaled to [-1, 1] by their public bounds: "
        "one number, or one for each, the intercept first.",
    )
    prior_sd: LearnedOrPositive = Field(
        "learned",
        description="Standard deviation of the normal priors of the coefficients of variables rescaled to "
        "[-1, 1]: one number, or one for each, the intercept first. learned: one for each, whose square is "
        "inverse gamma of shape and scale 1/2 a priori, so that each coefficient is Cauchy of scale 1.",
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
            if isinstance(matrix, tuple):
                _check_covariance(key, matrix)
        # a spec that was written with its defaults reads back
        if self.sigma2 is not None and self.sigma2_prior != ErrorPrior():
            raise refusal("sigma2_prior", "is for an unknown sigma2; leave out one of the two")
        if self.x_mean is not None and self.x_cov is not None and self.x_prior != PredictorPrior():
            raise refusal("x_prior", "is for an unknown x_mean or x_cov; leave it out, or one of these")
        return self

    def problem(self, spec: Any) -> Problem | None:
        """Refuse vectors and matrices of another size than the mechanism has bounds, where it states them."""
        bounds = _bounds_in(spec)
        return self.widths_problem(len(bounds) - 1) if len(bounds) > 1 else None

    def widths_problem(self, p: int) -> Problem | None:
        """Return key and sentence of the first that does not go with p predictors, None if all do."""
        predictors = f"{p} predictor{'s' * (p > 1)}"
        for key, vector, wanted in (
            ("prior_mean", self.prior_mean, p + 1),
            ("prior_sd", self.prior_sd, p + 1),
            ("x_mean", self.x_mean, p),
            ("x_cov", self.x_cov, p),
            ("x_prior.mu0", self.x_prior.mu0, p),
            ("x_prior.Psi", self.x_prior.Psi, p),
        ):
            if isinstance(vector, tuple) and len(vector) != wanted:
                what = "rows" if key in ("x_cov", "x_prior.Psi") else "entries"
                intercept = " and an intercept" if wanted > p else ""
                return (
                    f"model.{key}",
                    f"has {len(vector)} {what}, but the release is of {predictors}{intercept}; give {wanted}",
                )
        for number, row in enumerate(self.predict or ()):
            if len(row) != p:
                return (
                    "model.predict",
                    f"row {number + 1} has {len(row)} entries, but the release is of {predictors}; give {p}",
                )
        freedom = self.x_prior.nu
        if freedom is not None and not freedom > p - 1:
            return (
                "model.x_prior.nu",
                f"{freedom:g} must be greater than {p - 1}, the number of predictors less one",
            )
        return None

    def rows_outside(self, bounds: Sequence[tuple[float, float]], names: Sequence[str]) -> list[str]:
        """Say which values of `predict` lie outside of the predictors' public bounds, in a sentence each."""
        rows = self.predict or ()
        meant = TAKEN_AS_CLAMPED if self.predictors == "clamped" else LINE_GOES_ON
        found = []
        for name, (low, high), values in zip(names, bounds, zip(*rows, strict=True), strict=False):
            outside = sum(not low <= value <= high for value in values)
            found += [outside_in_words(outside, len(rows), name, (low, high), meant)] if outside else []
        return found

    def in_words(self, spec: Any) -> str:
        """Say what is fitted, and what the prior of the coefficients means."""
        meant = line_in_words(truncated=self.response == "truncated", clamped=self.predictors == "clamped")
        return f"a linear regression{self._coefficients(spec)}" + (f". {meant[:-1]}" if meant else "")

    def _coefficients(self, spec: Any) -> str:
        """Say what the prior of the coefficients means, where the bounds are known and all goes together."""
        bounds = _bounds_in(spec)
        q = len(bounds)
        mean, sd = self.coefficients(q)
        if q < 2 or len(mean) != q or len(sd) != q:
            return ""
        columns = None if spec.data is None else spec.data.columns
        names = columns[:-1] if columns is not None and len(columns) == q else range(1, q)
        titles, cut = [str(name) for name in names], self.response == "truncated"
        learned = self.prior_sd == "learned"
        return f": {coefficients_in_words(bounds, mean, sd, titles, truncated=cut, learned=learned)}"

    def coefficients(self, q: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return prior means and sds of q rescaled coefficients; where learned, the scales of Cauchy laws."""
        sd = COEFFICIENTS_SCALE if self.prior_sd == "learned" else self.prior_sd
        mean, sd = (value if isinstance(value, tuple) else (value,) * q for value in (self.prior_mean, sd))
        return mean, sd


def _bounds_in(spec: Any) -> Sequence[tuple[float, float]]:
    """Return the public bounds of the mechanism, as far as the spec has them; else none."""
    return getattr(spec.mechanism, "bounds", None) or getattr(spec.mechanism, "domain", None) or ()


def _check_covariance(key: str, matrix: tuple[tuple[float, ...], ...]) -> None:
    dim = len(matrix)
    if any(len(row) != dim for row in matrix):
        raise refusal(key, f"must be square: {dim} rows of {dim} numbers")
    if any(matrix[i][j] != matrix[j][i] for i in range(dim) for j in range(i)):
        raise refusal(key, "must be symmetric")
    if not positive_definite(matrix):
        raise refusal(key, "must be positive definite")


SECTION = LinearRegressionModel
