"""The section ``mechanism``: how records are privatized, and how much noise that takes, stated once."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, Tag, model_validator

from dpmix.spec.fields import (
    ChosenBy,
    Domain,
    Integer,
    Listed,
    Number,
    Positive,
    Section,
    number_or_list,
    refusal,
    wrong,
)
from dpmix.spec.limits import MOST_RECORDS

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
Records = Annotated[Integer, Field(ge=1, le=MOST_RECORDS)]
Bins = Annotated[Integer, Field(ge=1, le=1_000_000)]


class MechanismSection(Section):
    """What every mechanism has: public bounds, and exactly one statement of its noise."""

    statements: ClassVar[tuple[tuple[str, ...], ...]] = ()
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
        choices = _alternatives(["(" + ", ".join(s) + ")" if len(s) > 1 else s[0] for s in self.statements])
        given = {key for s in self.statements for key in s if getattr(self, key) is not None}
        if not given:
            raise refusal(self.statements[0][0], f"missing; {self.kind} takes {choices}")
        if any(given == set(statement) for statement in self.statements):
            return self
        fitting = [s for s in self.statements if given < set(s)]
        if fitting:
            lacking = next(key for key in fitting[0] if key not in given)
            raise refusal(lacking, f"missing beside {min(given)}; {self.kind} takes {choices}")
        raise refusal("", f"states its noise twice ({', '.join(sorted(given))}); {self.kind} takes {choices}")

    def states(self, *keys: str) -> bool:
        """Whether the noise is stated by exactly these keys."""
        return {k for s in self.statements for k in s if getattr(self, k) is not None} == set(keys)

    def _one_column(self) -> None:
        """Refuse bounds of several columns."""
        if self.domain is not None and len(self.domain) > 1:
            raise refusal(
                "domain",
                f"{len(self.domain)} pairs of bounds, but {self.kind} releases one column; "
                "give one pair, or use laplace or gaussian",
            )


def _alternatives(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


class LaplaceMechanism(MechanismSection):
    """Laplace noise added to each value."""

    statements = (("epsilon",), ("rho",), ("scale",))
    kind: Literal["laplace"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    rho: Rho = None
    scale: Scale = None
    order: Order = None
    calibration: Literal["exact", "paper"] = Field(
        "exact",
        description="Under rho: exact solves rho = eps - 1 + exp(-eps), paper takes eps = sqrt(2 rho).",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.calibration == "paper" and self.rho is None:
            raise refusal("calibration", "paper is a way of reaching rho; leave it out, or state rho")
        return self


class GaussianMechanism(MechanismSection):
    """Gaussian noise added to each value."""

    statements = (("epsilon", "delta"), ("rho",), ("scale",))
    kind: Literal["gaussian"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    scale: Scale = None
    order: Order = None
    calibration: Literal["analytic", "classical"] = Field(
        "analytic",
        description="Under (epsilon, delta): analytic is exact, classical is proved for epsilon <= 1 only.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.calibration == "classical":
            if self.epsilon is None:
                raise refusal("calibration", "classical is a way of reaching (epsilon, delta); state those")
            if self.epsilon > 1:
                raise refusal(
                    "calibration",
                    f"classical is proved for epsilon <= 1 only and does not reach delta at epsilon = "
                    f"{self.epsilon:g} (asked for (10, 0.1), it has an actual delta of 0.41); use analytic",
                    privacy=True,
                )
        return self


class NoMechanism(MechanismSection):
    """No noise at all: the posterior given the data themselves, for comparison."""

    kind: Literal["none"] = Field(description="The mechanism.")


class WaveletMechanism(MechanismSection):
    """Laplace noise added to the Haar wavelet coefficients of each record."""

    statements = (("epsilon",), ("rho",), ("scale",))
    kind: Literal["wavelet"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    rho: Rho = None
    scale: Scale = None
    order: Order = None
    levels: Annotated[Integer, Field(ge=0, le=12)] = Field(description="Finest level J; levels count from 0.")
    calibration: Literal["exact", "paper"] = Field(
        "exact",
        description="Scale by the exact sensitivity of the Haar coefficients, or by the paper's bound.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._one_column()
        if self.calibration == "paper" and self.scale is not None:
            raise refusal(
                "calibration", "paper is a way of reaching epsilon or rho; leave it out, or state those"
            )
        return self


class BinomialMechanism(MechanismSection):
    """A binomial count whose probability moves with the record."""

    statements = (("epsilon",), ("weight",))
    kind: Literal["binomial"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    weight: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        None, description="How far the probability moves, stated instead of epsilon."
    )
    order: Order = None
    trials: Annotated[Integer, Field(ge=1, le=100_000)] = Field(description="Number of trials M per record.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._one_column()
        return self


class SmoothedHistogramMechanism(MechanismSection):
    """Draws from a histogram of the whole sample mixed with the uniform density."""

    statements = (("epsilon",), ("weight",))
    kind: Literal["smoothed_histogram"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    weight: Annotated[Number, Field(gt=0, le=1)] | None = Field(
        None, description="Weight of the uniform density, stated instead of epsilon."
    )
    bins: Bins = Field(description="Number of equal bins m.")
    draws: Records = Field(description="Number of released draws k.")
    n: Records | None = Field(
        None, description="Number of confidential records, for a release without its file."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._one_column()
        return self


def _delta_beside_epsilon(noise: str, epsilon: float | None, delta: float | None) -> None:
    if epsilon is not None and delta is None:
        name = noise.replace("_", " ")
        raise refusal("delta", f"missing beside epsilon; {name} noise takes (epsilon, delta) or rho")


class PerturbedHistogramMechanism(MechanismSection):
    """Noisy counts of equal bins."""

    statements = (("epsilon",), ("epsilon", "delta"), ("rho",), ("scale",))
    kind: Literal["perturbed_histogram"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    scale: Scale = None
    bins: Bins = Field(description="Number of equal bins m.")
    noise: Literal["laplace", "gaussian", "geometric", "discrete_gaussian"] = Field(
        "laplace", description="Noise of the counts."
    )
    n: Records | None = Field(
        None, description="Number of confidential records, for a release without its file."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._one_column()
        if self.noise in ("gaussian", "discrete_gaussian"):
            _delta_beside_epsilon(self.noise, self.epsilon, self.delta)
        elif self.delta is not None:
            raise refusal("delta", f"{self.noise} noise has none; leave it out, or use noise: gaussian")
        return self


class NoisyCountsMechanism(MechanismSection):
    """Noisy counts of every feature's levels within every class."""

    statements = (("epsilon",), ("epsilon", "delta"), ("rho",), ("scale",))
    kind: Literal["noisy_counts"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    scale: Scale = None
    levels: Annotated[tuple[Annotated[Integer, Field(ge=2, le=10_000)], ...], Listed, Field(min_length=1)] = (
        Field(description="Number of levels of each feature.")
    )
    classes: Annotated[Integer, Field(ge=1, le=10_000)] = Field(description="Number of classes.")
    noise: Literal["laplace", "geometric", "discrete_gaussian"] = Field(
        "laplace", description="Noise of the counts."
    )
    n: Records | None = Field(
        None, description="Number of confidential records, for a release without its file."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.noise == "discrete_gaussian":
            _delta_beside_epsilon(self.noise, self.epsilon, self.delta)
            return self
        for key in ("delta", "rho"):
            if getattr(self, key) is not None:
                more = "has none" if key == "delta" else "takes epsilon or scale"
                raise refusal(
                    key, f"{self.noise} noise {more}; leave it out, or use noise: discrete_gaussian"
                )
        return self


class ClampedMomentsMechanism(MechanismSection):
    """Noisy second moments of clamped predictors and response."""

    statements = (("epsilon",), ("scale",))
    kind: Literal["clamped_moments"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    scale: Scale = None
    bounds: Domain | None = Field(
        None, description="Public bounds, one pair per predictor and the response's last."
    )
    n: Records | None = Field(
        None, description="Number of confidential records, for a release without its file."
    )
    calibration: Literal["exact", "paper"] = Field(
        "exact", description="Scale by the exact joint sensitivity, or by the paper's bound."
    )


def _two(value: tuple[int, ...]) -> tuple[int, ...]:
    if len(value) != 2:
        raise wrong("must be the share of the first part, or the sizes [n1, n2] of two, not {got}", value)
    return value


Sizes = Annotated[tuple[Records, ...], Listed, AfterValidator(_two)]


class LogMomentsMechanism(MechanismSection):
    """Noisy means of the logarithms of censored compositions."""

    statements = (("epsilon",), ("epsilon1",), ("epsilon1", "epsilon2"))
    kind: Literal["log_moments"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    epsilon1: Positive | None = Field(None, description="Part of epsilon for the means.")
    epsilon2: Positive | None = Field(None, description="Part of epsilon for choosing the threshold.")
    threshold: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        None, description="The censoring threshold."
    )
    thresholds: (
        Annotated[tuple[Annotated[Number, Field(gt=0, lt=1)], ...], Listed, Field(min_length=1)] | None
    ) = Field(None, description="Candidate thresholds, of which one is chosen privately.")
    split: (
        Annotated[
            Annotated[Number, Field(gt=0, lt=1), Tag("share")] | Annotated[Sizes, Tag("sizes")],
            number_or_list("share", "sizes"),
        ]
        | None
    ) = Field(
        None, description="Share of the records in the first of two parts, or the sizes [n1, n2] of both."
    )
    components: Annotated[Integer, Field(ge=2, le=1000)] | None = Field(
        None, description="Number of parts of a composition, for a release without its file."
    )
    n: Records | None = Field(
        None, description="Number of confidential records, for a release without its file."
    )
    calibration: Literal["exact", "paper"] = Field(
        "exact", description="Scale by the exact sensitivity, or by the paper's bound."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.threshold is None) == (self.thresholds is None):
            raise refusal("threshold", "give exactly one of threshold and thresholds")
        several = self.thresholds or ()
        if any(not a > b for a, b in zip(several, several[1:], strict=False)):
            raise refusal("thresholds", "must decrease, from the largest candidate to the smallest")
        if len(several) > 1 and self.epsilon1 is not None and self.epsilon2 is None:
            raise refusal("epsilon2", "missing beside epsilon1; choosing among thresholds costs it")
        if any(pair != (0.0, 1.0) for pair in self.domain or ()):
            raise refusal("domain", "must be [0, 1] of every share of a composition; leave it out")
        if isinstance(self.split, tuple) and self.n is not None and sum(self.split) != self.n:
            raise refusal(
                "split", f"{list(self.split)} has {sum(self.split)} records, but mechanism.n is {self.n}"
            )
        return self


class PosteriorMechanism(MechanismSection):
    """A conjugate posterior chosen privately among all that a database of this size could give."""

    statements = (("epsilon",), ("epsilon", "delta"))
    kind: Literal["posterior"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    delta: Delta = None
    prior: Annotated[tuple[Positive, ...], Listed, Field(min_length=2)] = Field(
        description="Parameters of the beta or Dirichlet prior, one per category."
    )
    method: Literal["hellinger", "laplace", "geometric"] | None = Field(
        None,
        description="Exponential mechanism on the Hellinger distance, or noise on the counts; left out, that "
        "of least expected error, or geometric where there is no delta.",
    )
    calibration: Literal["certified", "proved", "theorem"] | None = Field(
        None,
        description="Of method hellinger: by the exact divergence of all neighbours (certified, the default "
        "where it can be computed), by a proof for any number of records and categories (proved, the default "
        "elsewhere), or by the published theorem, which is not proved.",
    )
    sensitivity: Annotated[Integer, Field(ge=1, le=2)] | None = Field(
        None, description="Sensitivity of the counts that laplace and geometric noise are scaled to."
    )
    n: Records | None = Field(
        None, description="Number of confidential records, to calibrate without the data."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.domain is not None:
            raise refusal("domain", "is not for a posterior of categories; leave it out")
        if not self.noisy:
            if self.delta is None:
                raise refusal("delta", "missing beside epsilon; method hellinger takes (epsilon, delta)")
            if self.sensitivity is not None:
                raise refusal("sensitivity", "is for method laplace or geometric; leave it out")
            return self
        if self.delta is not None:
            raise refusal("delta", f"method {self.method} has none; leave it out, or use method: hellinger")
        if self.calibration is not None:
            raise refusal("calibration", f"is for method hellinger, and not for {self.method}; leave it out")
        if self.sensitivity == 1 and len(self.prior) > 2:
            raise refusal("sensitivity", "1 is for two categories, of which one count says all; use 2")
        return self

    @property
    def noisy(self) -> bool:
        """Whether the counts get noise: as said, or for want of a delta and of a calibration."""
        if self.method is None:
            return self.delta is None and self.calibration is None
        return self.method != "hellinger"


MechanismSpec = Annotated[
    Annotated[LaplaceMechanism, Tag("laplace")]
    | Annotated[GaussianMechanism, Tag("gaussian")]
    | Annotated[WaveletMechanism, Tag("wavelet")]
    | Annotated[BinomialMechanism, Tag("binomial")]
    | Annotated[SmoothedHistogramMechanism, Tag("smoothed_histogram")]
    | Annotated[PerturbedHistogramMechanism, Tag("perturbed_histogram")]
    | Annotated[NoisyCountsMechanism, Tag("noisy_counts")]
    | Annotated[ClampedMomentsMechanism, Tag("clamped_moments")]
    | Annotated[LogMomentsMechanism, Tag("log_moments")]
    | Annotated[PosteriorMechanism, Tag("posterior")]
    | Annotated[NoMechanism, Tag("none")],
    ChosenBy("kind"),
]
