"""The section ``model``: a mixture's kernel, base measure, by default from bounds, and prior on partitions.

Each parametric model has its own section, `models/NAME/section.py`, gathered here. Where a spec states no
base measure it follows the public bounds, so that no default has units (methods, section 15).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BeforeValidator, Field, Tag, model_validator

from dpmix.numerics.in_words import brief, plainly
from dpmix.spec.days import alike, placed
from dpmix.spec.fields import (
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
COEFFICIENTS_SCALE: Final = 1.0
"""Of the Cauchy priors of a regression's coefficients, of rescaled variables, where a spec states no sd."""
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
WEIGHT_SHAPE: Final = 2.0
"""Shape of the gamma prior of a learned lambda, above 1 for 1 / lambda to have a mean."""
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
    draws_records : bool
        Whether each draw holds a record of the posterior predictive.
    compares_truth : bool
        Whether summaries compare it with the parameters of a simulation (`summary.truth`).
    """

    takes: ClassVar[tuple[str, ...]] = ()
    samplers: ClassVar[tuple[str, ...]] = ()
    maker: ClassVar[str] = "model"
    predicts: ClassVar[bool] = False
    predicts_intervals: ClassVar[bool] = False
    draws_records: ClassVar[bool] = False
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


LEARN: Final = (
    "Whether location and scale of the base measure are learned with the mixture, with {0} as the means of "
    "their priors; with the numbers left out these follow the public bounds. Default: false where the "
    "numbers are given; where model.base is left out, all: lambda, too, for narrow clusters far apart."
)
"""What `model.base.learn` is, for schemas; {0} are the numbers that are learned."""
Learn = Annotated[bool, Field(strict=True)]


def _all(value: object) -> object:
    if not isinstance(value, bool) and value != "all":
        raise wrong("must be true, false or all, not {got}", value)
    return value


LearnAll = Annotated[bool | Literal["all"], BeforeValidator(_all)]
"""`model.base.learn` of kernels whose lambda can be learned besides."""


def check_given(base: Section, *names: str) -> None:
    """Refuse a base measure that states some of its numbers and leaves out others."""
    for name in names:
        if getattr(base, name) is None:
            raise refusal(
                name.rstrip("_"),
                "missing; give it, or leave out model.base for a prior that follows the public bounds, "
                "or set empirical: true to compute it from the release",
            )


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


BASE: Final = (
    "Base measure: the prior of one cluster's parameters; where left out, one that follows the public "
    "bounds, as the centre of one that is learned with the mixture."
)
"""What `model.base` is, for schemas."""


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
    base_kinds : tuple of str
        Values of `model.base.kind`, where it has the choice.
    """

    takes = ("records", "histogram")
    samplers = ("neal8",)
    draws_records = True
    plural: ClassVar[str] = "distributions"
    conjugate: ClassVar[bool] = False
    several: ClassVar[bool] = False
    bounded: ClassVar[bool] = False
    in_cells: ClassVar[bool] = False
    base_kinds: ClassVar[tuple[str, ...]] = ()

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
        learn = getattr(getattr(self, "base", None), "learn", False)
        if learn:
            return (
                "model.base.learn",
                f"{str(learn).lower()} is not for groups whose sizes are private, whose mixtures have the "
                "base measure as it stands; leave it out",
            )
        return super().group_problem(spec)

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return str(getattr(self, "kernel", ""))

    @property
    def base_name(self) -> str:
        """Name of the base measure, in chains files."""
        return str(KERNELS.part(self.name, "layout").base)  # of a registered kernel

    def learns(self, grouped: bool = False) -> bool:
        """Whether the base measure is learned: not with groups, and not as stated unless the spec says so."""
        base = getattr(self, "base", None)
        return not grouped and (base is None or bool(getattr(base, "learn", False)))

    @property
    def learns_weight(self) -> bool:
        """Whether lambda, too, is learned of a base measure that is, as it is where the spec does not say."""
        return getattr(getattr(self, "base", None), "learn", None) in (None, "all")

    @property
    def base_from_bounds(self) -> bool:
        """Whether the numbers of the base measure follow the public bounds."""
        base = getattr(self, "base", None)
        return base is None or bool(getattr(base, "from_bounds", False))

    def base_in_words(self, bounds: Sequence[Pair] | None) -> str:
        """Name the base measure, and say what it means in the units of the data.

        Of the kernels that ship `grouped` says besides whether the mixture is one of groups.
        """
        return "base measure as stated"

    def spread_in_words(self, bounds: Pair, shares: Pair, of: str) -> str:
        """Say how far the records spread under the defaults, so that bounds too wide for them are noticed.

        `shares` of the width of `bounds`, between which it is with probability 0.95 under these.
        """
        shape, rate = CONCENTRATION
        if self.discount != 0 or self.concentration != GammaPrior(shape=shape, rate=rate):
            return ""
        least, most = (share * (bounds[1] - bounds[0]) for share in shares)
        return f"{of} of all records together {brief(least, 3)} to {brief(most, 3)} with probability 0.95"


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


# What priors of regressions mean in words


def coefficients_in_words(
    bounds: Sequence[Pair],
    mean: Sequence[float],
    sd: Sequence[float],
    names: Sequence[str],
    *,
    truncated: bool = False,
    learned: bool = False,
) -> str:
    """Say what priors of a regression's coefficients mean in the units of the data.

    `bounds` are those of each predictor, and the response's last; `mean` and `sd` of the coefficients of
    variables rescaled to [-1, 1], the intercept first; `names` the predictors'. `truncated`: whether errors
    are, to the bounds of the response. `learned`: whether sds are, about these, so that laws are Cauchy and
    not normal.
    """
    what = "the response before truncation" if truncated else "the mean response"
    half = [0.5 * (hi - lo) for lo, hi in bounds]
    middle = alike(bounds[-1][0] + half[-1] * (1.0 + mean[0]), bounds[-1][0])
    ratios = [half[-1] / width for width in half[:-1]]
    slopes = ", ".join(
        f"{brief(m * ratio, 3)} +- {brief(s * ratio, 3)} on {name}"
        for name, m, s, ratio in zip(names, mean[1:], sd[1:], ratios, strict=True)
    )
    spread = half[-1] * sd[0]
    place = f"{plainly(placed(middle, 0.25 * spread))} +- {brief(spread, 3)}"
    tails = " (Cauchy laws: as likely within as beyond, and perhaps far)" if learned else ""
    return (
        f"a priori {what} in the middle of the predictors' bounds is {place}, with "
        f"slope{'s' * (len(names) > 1)} {slopes}{tails}"
    )


LINE_GOES_ON: Final = "they are taken as they are, and the line goes on"
TAKEN_AS_CLAMPED: Final = "so are these, as model.predictors: clamped has it"
"""What becomes of predictors outside of their public bounds."""


def outside_in_words(outside: int, count: int, name: str, pair: tuple[float, float], meant: str) -> str:
    """Say how many values to predict from lie outside of public bounds, and what that means."""
    ends = ", ".join(f"{end:.12g}" for end in pair)  # dates as such
    return (
        f"{outside:,} of {count:,} values of {name} lie outside [{ends}], to which the records behind the "
        f"release were clamped: {meant}"
    )


def line_in_words(*, truncated: bool, clamped: bool) -> str:
    """Say what coefficients are where `model.response` is truncated, `model.predictors` clamped, or both."""
    found = [_TRUNCATED] if truncated else []
    if clamped:
        found.append(_CLAMPED.format("" if truncated else "beta is the slope in these, and "))
    return " ".join(found)
