"""What is reported of the chains themselves: clusters, acceptance, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmix.mechanisms.laws.every import Law
from dpmix.results.nodes import Array, Block, Code, Facts, ResultSection, Tile
from dpmix.summary.families.family import Floats
from dpmix.summary.subject import Subject

__all__ = ["Acceptance", "ClusterCounts", "Provenance"]


@dataclass(frozen=True)
class ClusterCounts:
    """Posterior of the number of clusters: `probability[i]` is that of `support[i]` clusters."""

    support: NDArray[np.int64]
    probability: Floats

    def section(self) -> ResultSection:
        """Return what is reported of it."""
        mode = int(np.argmax(self.probability))
        likely, highest = self.support[mode], self.probability[mode]
        return ResultSection(
            "n_clusters",
            {
                "support": Array(("support",), np.asarray(self.support, dtype=np.int64)),
                "probability": Array(("support",), self.probability),
            },
            "Number of clusters",
            brief=[
                f"Clusters: {likely} with probability {highest:.2f}; between {self.support[0]} and "
                f"{self.support[-1]} in all draws"
            ],
            tiles=[Tile("Most probable number of clusters", str(likely), f"probability {highest:.2f}")],
        )


@dataclass(frozen=True)
class Acceptance:
    """Mean acceptance rate, and the bound e^-epsilon below which it cannot fall; None where there is none."""

    mean: float | None
    bound: float | None

    def section(self) -> ResultSection:
        """Return what is reported of it."""
        data = {"mean": self.mean, "bound": self.bound}
        if self.mean is None:
            return ResultSection("acceptance", data)
        bounded = self.bound is not None
        floor = f" (cannot fall below e^-epsilon = {self.bound:.3g})" if bounded else ""
        note = f"at least e^-epsilon = {self.bound:.3g}" if bounded else "no lower bound applies"
        return ResultSection(
            "acceptance",
            data,
            brief=[f"Acceptance: {self.mean:.3f}{floor}"],
            tiles=[Tile("Mean acceptance rate", f"{self.mean:.3f}", note)],
        )


@dataclass(frozen=True)
class Provenance:
    """Where the chains come from.

    Parameters
    ----------
    guarantee : str
        What the release guarantees, in words.
    mechanism : Law
        The public half of the release's mechanism.
    spec : str
        The resolved spec as YAML, without the confidential side.
    facts : mapping of str to str
        Seed, versions, dates, chains and draws, for display.
    subject : Subject
        Columns with their units, and the guarantee in one sentence.
    """

    guarantee: str
    mechanism: Law
    spec: str
    facts: Mapping[str, str]
    subject: Subject = field(default_factory=Subject)

    def section(self, prior: str) -> ResultSection:
        """Return what pages show of it, and of the prior in words."""
        facts = dict(self.facts) | ({"Prior": prior} if prior else {})
        mechanism = json.dumps(self.mechanism.stated(), indent=2, sort_keys=True)
        shown: list[Block] = [
            Facts(facts),
            Code("Mechanism of the release", mechanism),
            Code("Spec", self.spec),
        ]
        return ResultSection("provenance", title="Provenance", page=shown)
