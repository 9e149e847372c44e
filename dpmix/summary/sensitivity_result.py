"""The result of power scaling: how sensitive each reported quantity is to its prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SENSITIVE", "Index", "Sensitivity"]

SENSITIVE = 0.05
"""Index from which on a quantity is called sensitive."""


@dataclass(frozen=True)
class Index:
    """Sensitivities of one quantity; None where there is none.

    Parameters
    ----------
    prior, likelihood : float or None
        To power scaling of each.
    noise : float or None
        What the prior's may be of a quantity that has nothing to do with it.
    """

    prior: float | None
    likelihood: float | None
    noise: float | None

    @property
    def sensitive(self) -> bool:
        """Whether the prior matters."""
        return self.prior is not None and self.prior >= max(SENSITIVE, self.noise or 0.0)

    @property
    def diagnosis(self) -> str:
        """What both together say, in the words of `arviz_stats.psense_summary`; empty for nothing."""
        if not self.sensitive:
            return ""
        if self.likelihood is None:
            return "informative prior"
        if self.likelihood >= SENSITIVE:
            return "potential prior-data conflict"
        return "strong prior or weak likelihood"


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivities of all quantities.

    Parameters
    ----------
    indices : mapping of str to Index
        By quantity; empty where there are none.
    k_prior, k_likelihood : float or None
        The larger Pareto k of both powers.
    no_prior, no_likelihood : str
        Why there is none of these; empty where there is one.
    """

    indices: Mapping[str, Index] = field(default_factory=dict)
    k_prior: float | None = None
    k_likelihood: float | None = None
    no_prior: str = ""
    no_likelihood: str = ""

    @property
    def has_likelihood(self) -> bool:
        """Whether the likelihood's row is there."""
        return any(index.likelihood is not None for index in self.indices.values())

    def contents(self) -> dict[str, Any]:
        """Return what summary files and JSON hold of it."""
        reasons = {"prior": self.no_prior, "likelihood": self.no_likelihood}
        return {
            "parameters": {
                name: {
                    "prior": index.prior,
                    "likelihood": index.likelihood,
                    "noise": index.noise,
                    "diagnosis": index.diagnosis or None,
                }
                for name, index in self.indices.items()
            }
            or None,
            "pareto_k": {"prior": self.k_prior, "likelihood": self.k_likelihood},
            "threshold": SENSITIVE,
            "reason": {key: text for key, text in reasons.items() if text} or None,
        }
