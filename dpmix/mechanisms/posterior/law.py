"""The law of a released posterior of shares of categories (methods, sections 10 and 14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from dpmix.laws.additive import noise_name
from dpmix.laws.law_base import (
    Floats,
    Labels,
    Law,
    Positive,
    Says,
    Scales,
    Whole,
    is_number,
    of_scale,
)
from dpmix.mechanisms.posterior.section import PosteriorMechanism
from dpmix.spec.capabilities import counted

_MOST_BITS = 1000  # of weights that are doubles


class PosteriorLaw(Law):
    """The parameters of a Dirichlet posterior, by an exponential mechanism or from noisy counts."""

    capabilities = PosteriorMechanism

    prior: Annotated[
        tuple[Positive, ...], Field(min_length=2), Says("does not state its prior, positive numbers")
    ]
    n: Annotated[Whole, Field(ge=1), Says("does not state its number of records n")]
    method: Annotated[
        Literal["hellinger", "laplace", "geometric"],
        Says("does not state its method, hellinger, laplace or geometric"),
    ]
    noise: str | None = None
    gamma: Any = None
    exponent_scale: Any = None
    bits: Any = None
    scale: Annotated[Scales, Says("does not state one noise scale")] = ()
    noisy_counts: Any = None
    stated_by_analyst: Annotated[bool, Field(alias="stated")] = False
    categories: tuple[str, ...] | None = None
    sensitivity: tuple[Whole, ...] | None = None
    certificate: dict[str, Any] | None = None
    column: str = ""

    @model_validator(mode="after")
    def _all_of_its_method(self) -> Self:
        problem = self._exponential_problem() if self.method == "hellinger" else self._noise_problem()
        if problem is not None:
            raise ValueError(problem)
        return self

    def _exponential_problem(self) -> str | None:
        for key, value in (("gamma", self.gamma), ("exponent_scale", self.exponent_scale)):
            if not is_number(value) or not value > 0:
                return f"does not state its {key}, a positive number"
        if not is_number(self._requested_epsilon) or not self.epsilon > 0:
            return "does not state the epsilon that was requested, a positive number"
        whole = isinstance(self.bits, int) and not isinstance(self.bits, bool)
        if not whole or not 1 <= self.bits <= _MOST_BITS:
            return f"does not state its bits, a whole number from 1 to {_MOST_BITS}"
        return None

    def _noise_problem(self) -> str | None:
        if len(self.scale) != 1:
            return "does not state one noise scale"
        noisy = self.noisy_counts
        if noisy is None and self.stated_by_analyst:
            return None  # made elsewhere: the posterior alone is known
        wanted = 1 if len(self.prior) == 2 else len(self.prior)
        if not (isinstance(noisy, list | tuple) and len(noisy) == wanted and all(map(is_number, noisy))):
            return "does not list its noisy counts"
        if self.method == "geometric" and not all(float(value).is_integer() for value in noisy):
            return "lists noisy counts that are not whole, as geometric noise leaves them"
        return None

    @property
    def _requested_epsilon(self) -> Any:
        return (self.requested or {}).get("epsilon")

    @property
    def epsilon(self) -> float:
        """The epsilon that was requested, which the exponent is of."""
        return float(self._requested_epsilon)

    @property
    def unproved(self) -> str | None:
        """Say that P3's theorem is not proved (methods, section 14)."""
        return unproved_in_words(len(self.prior)) if self.calibration == "theorem" else None

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say why values cannot be the parameters of a posterior."""
        prior = np.array(self.prior)
        if values.shape != (prior.size, 1):
            return f"has not one number for each of the {prior.size} entries of the prior"
        counts = values[:, 0] - prior
        slack = 1e-9 * (self.n + prior.sum())
        if (counts < -slack).any() or abs(counts.sum() - self.n) > slack:
            return f"is not the prior plus counts of {self.n} records"
        whole = self.method == "hellinger" or (self.method == "geometric" and prior.size == 2)
        if whole and (np.abs(counts - np.rint(counts)) > slack).any():
            return f"is not the prior plus whole counts, as method {self.method} gives"
        return None

    def tabulated(self, values: Floats) -> dict[str, Any]:
        """Return parameters by category; see `Law`."""
        names = self.categories or tuple(str(i + 1) for i in range(len(self.prior)))
        return {"category": names, "prior": np.asarray(self.prior), "posterior": values}

    def told(self) -> Sequence[float]:
        """Return the noisy counts."""
        return tuple(self.noisy_counts or ())

    def done(self, n: int) -> str:
        """Say how a posterior was released."""
        given = f"the counts of {counted(n, 'record')} in {len(self.prior)} categories"
        what = f"The posterior given {given} was released"
        if self.method != "hellinger":
            return f"{what} with {noise_name(self.noise)}{of_scale(self.scale)} on the counts."
        how = {
            "certified": ", with a certificate",
            "proved": ", calibrated as has been proved",
            "theorem": f"; {self.unproved}",
        }.get(str(self.calibration), "")
        return f"{what} by an exponential mechanism on the Hellinger distance{how}."


def unproved_in_words(categories: int) -> str:
    """Say that nobody has proved the guarantee of ``calibration: theorem``."""
    more = " for three or more categories" if categories > 2 else ""
    return f"the published calibration is not proved{more}"


LAW = PosteriorLaw
