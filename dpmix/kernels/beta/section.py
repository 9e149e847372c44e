"""What a spec says of mixtures of betas on the public bounds, and what their base measures mean."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from dpmix.spec.fields import Positive, Section, refusal
from dpmix.spec.model_section import BASE, LearnAll, MixtureSection, Pair

RECORDS_SD_BETA: Final = (0.0046, 0.3)
"""Between these shares of the bounds' width the standard deviation of the records is with probability 0.95
under the defaults of base and concentration together; simulated (`tests/exact/test_columns.py`)."""
RECORDS_SD_BETA_WEIGHTED: Final = (0.0042, 0.295)
"""Likewise where lambda is learned, too."""
RECORDS_SD_BETA_FIXED: Final = (0.095, 0.31)
"""Likewise under those where the base measure is not learned."""
LAMBDA: Final = 0.16
"""Weight of a learned place of beta kernels, as of normal ones; where it is learned 1 / lambda has the mean
that it has here."""
PLACE_SPREAD: Final = 1.8
"""Prior standard deviation of the logit of a learned place of beta kernels: near to even over the bounds."""


class Gammas(NamedTuple):
    """a ~ Gamma(a_shape, a_rate), b ~ Gamma(b_shape, b_rate), of a beta kernel."""

    a_shape: float
    a_rate: float
    b_shape: float
    b_rate: float


BETA: Final = Gammas(2.0, 0.2, 2.0, 0.2)
"""The default of beta kernels, which live on [0, 1] and so have no units: at the mean of the rate."""


class BetaBase(Section):
    """Independent gamma base measures of a beta kernel's two parameters."""

    a_shape: Positive | None = Field(None, description="Gamma shape of the first parameter.")
    a_rate: Positive | None = Field(None, description="Gamma rate of the first parameter.")
    b_shape: Positive | None = Field(None, description="Gamma shape of the second parameter.")
    b_rate: Positive | None = Field(None, description="Gamma rate of the second parameter.")
    learn: LearnAll | None = Field(
        None,
        description="Whether the rate, the same of both, is learned with the mixture, a_rate the mean of "
        "its prior, and a place around which clusters lie; with the numbers left out these are "
        "Gamma(2, 0.2). Default: false where the numbers are given; where model.base is left out, all: "
        "lambda, too, for narrow clusters far apart.",
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
                f"{self.b_rate:g} must be a_rate ({self.a_rate:g}) where the base is learned: both have one "
                "rate",
            )
        return self


class BetaMixture(MixtureSection):
    """A mixture of beta distributions over the domain, for one column."""

    plural = "betas"
    bounded = True
    in_cells = True

    kernel: Literal["beta"] = Field(description="Distribution within a cluster.")
    base: BetaBase | None = Field(None, description=BASE)

    @property
    def base_name(self) -> str:
        """Name of the base measure, in chains files."""
        return "gamma"

    @property
    def gammas(self) -> Gammas:
        """The base measure as stated, or the default."""
        base = self.base
        if base is None or base.from_bounds:
            return BETA
        return Gammas(*(float(getattr(base, name)) for name in Gammas._fields))

    def base_in_words(self, bounds: Sequence[Pair] | None, *, grouped: bool = False) -> str:
        """Name the base measure, and say what it means."""
        given, learned = self.gammas, self.learns(grouped)
        weighted = learned and self.learns_weight
        shapes = [(given.a_shape, given.a_rate), (given.b_shape, given.b_rate)]
        words = " x ".join(f"Gamma({shape:g}, {rate:g})" for shape, rate in shapes)
        if learned:
            words = f"learned base around {words}: {beta_in_words(given, learned=True, weighted=weighted)}"
        else:
            words = f"base {words}"
        if not self.base_from_bounds or not bounds:
            return words
        if learned:
            shares = RECORDS_SD_BETA_WEIGHTED if weighted else RECORDS_SD_BETA
            return words + self.spread_in_words(bounds[0], shares, "; the standard deviation")
        return words + self.spread_in_words(
            bounds[0], RECORDS_SD_BETA_FIXED, ": a priori the standard deviation"
        )


def beta_in_words(base: Gammas, *, learned: bool, weighted: bool = False) -> str:
    """Say what the base measure of a beta kernel means.

    `learned`: place and rate are learned, `base` is at the means of their priors; `weighted`: lambda, too.
    """
    if learned:
        return (
            f"a priori clusters are Beta(a, b) on the bounds around a place in them, with an a + b of about "
            f"{(base.a_shape + base.b_shape) / base.a_rate:.3g} or more, "
            f"{'place, scale and how far apart' if weighted else 'place and scale'} learned with them"
        )
    shapes = "a ~ Gamma({:g}, {:g}) and b ~ Gamma({:g}, {:g})".format(*base)
    return f"a priori a cluster is Beta(a, b) on the bounds, {shapes}"


SECTION = BetaMixture
