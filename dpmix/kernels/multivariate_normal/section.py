"""What a spec says of multivariate normal mixtures, and what their base measures mean."""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from dpmix.kernels.normal.section import NIG, nig_from_bounds, prior_in_words
from dpmix.spec.capabilities import counted
from dpmix.spec.days import alike
from dpmix.spec.fields import Positive, Section, refusal
from dpmix.spec.model_section import (
    BASE,
    LEARN,
    LearnAll,
    Matrix,
    MixtureSection,
    Pair,
    Vector,
    check_given,
    positive_definite,
)


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


def niw_from_bounds(pairs: Sequence[Pair]) -> NIW:
    """Return the default for several columns, which gives each the prior of `nig_from_bounds`."""
    each = [nig_from_bounds(pair) for pair in pairs]
    d = float(len(each))
    return NIW(tuple(c.mu0 for c in each), 0.16, d + 5.0, tuple(2.0 * c.b for c in each))


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
    learn: LearnAll | None = Field(None, description=LEARN.format("mu0 and the diagonal of Psi"))

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
        check_given(self, "mu0", "lambda_", "nu", "Psi")
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
            raise refusal(
                "Psi", "must be diagonal where the base is learned: the scale of each column is learned"
            )
        if self.learn and not self.nu > dim + 1:
            raise refusal("nu", f"{self.nu:g} must be above {dim + 1} where the base is learned")
        return self

    def numbers(self) -> NIW:
        """Return what is stated, with the diagonal of Psi."""
        assert self.mu0 is not None and self.nu is not None and self.Psi is not None  # checked to be there
        diagonal = tuple(row[i] for i, row in enumerate(self.Psi))
        return NIW(self.mu0, float(self.lambda_ or 0.0), self.nu, diagonal)


class MultivariateNormalMixture(MixtureSection):
    """A mixture of multivariate normal distributions."""

    plural = "multivariate normals"
    several = True

    kernel: Literal["multivariate_normal"] = Field(description="Distribution within a cluster.")
    base: NIWBase | None = Field(None, description=BASE)

    @property
    def base_name(self) -> str:
        """Name of the base measure, in chains files."""
        return "niw"

    def base_in_words(self, bounds: Sequence[Pair] | None, *, grouped: bool = False) -> str:
        """Name the base measure, and say what it means in the units of the data."""
        learned, own = self.learns(grouped), self.base
        if self.base_from_bounds and bounds is None:
            return f"{'learned ' if learned else ''}base measure from the public bounds of the release"
        if own is not None and own.empirical:
            return "base measure computed from the release"
        niw = niw_from_bounds(bounds or ()) if own is None or own.from_bounds else own.numbers()
        lows = [pair[0] for pair in bounds or ()] or [0.0] * len(niw.mu0)
        each = [niw.column(i) for i in range(len(niw.mu0))]
        each = [one._replace(mu0=alike(one.mu0, low)) for one, low in zip(each, lows, strict=True)]
        how = {"learned": learned, "weighted": learned and self.learns_weight}
        meant = [prior_in_words(one, f"column {i + 1}", **how) for i, one in enumerate(each)]
        columns = counted(len(niw.mu0), "column")
        kind = "learned base around" if learned else "base"
        return f"{kind} NIW({niw.lam:g}, {niw.nu:g}) on {columns}: {'; '.join(meant)}"


SECTION = MultivariateNormalMixture
