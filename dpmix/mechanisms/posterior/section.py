"""What a spec says of a released posterior, and what the mechanism can do."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.fields import Integer, Listed, Positive, refusal
from dpmix.spec.mechanism_section import Delta, Epsilon, MechanismSection, Records


class PosteriorMechanism(MechanismSection):
    """A conjugate posterior chosen privately among all that a database of this size could give."""

    released = "posterior"
    names_columns = False
    reads = "category"
    trust = "global"
    row = "category"
    rows_name = "parameters of a posterior"
    of_known_number = True
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

    def done(self, grouped: bool) -> str:
        """Say what is released."""
        if self.noisy:
            how = f"by {self.method or 'geometric'} noise"
        elif self.method is None and self.calibration is None:
            how = "by the Hellinger distance or geometric noise, whichever errs less"
        else:
            how = "by the Hellinger distance"
        return f"a posterior of {len(self.prior)} categories {how}"

    def check_columns(self, data: Any) -> None:
        """Check that the prior has one entry for each public category."""
        if data.simulate is not None:
            return
        if data.columns is None or len(data.columns) != 1:
            raise refusal("data.columns", "a posterior is of one named column of categories")
        names = data.categories_of(0)
        if names is None:
            raise refusal("data.categories", "missing; list the public categories of the column")
        if len(names) != len(self.prior):
            raise refusal(
                "mechanism.prior",
                f"has {len(self.prior)} entries, but data.categories lists {len(names)}; give one entry "
                "for each category",
            )


SECTION = PosteriorMechanism
