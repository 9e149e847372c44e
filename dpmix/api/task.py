"""From a spec and a release to the run that samples it, and to what its chains file says beside the draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpmix.models.model_protocols import Samples
from dpmix.run.chains_writer import Content
from dpmix.run.kept_quantities import Derive
from dpmix.run.runner import Run
from dpmix.spec import RunSpec

__all__ = ["Constants", "Task", "make_run"]

Constants = dict[str, float | NDArray[np.float64]]


@dataclass(frozen=True)
class Task:
    """A fit that is ready to run.

    Parameters
    ----------
    run : Run
        The model and its chains.
    content : Content
        What its draws are in a chains file.
    observed : array
        The release as the chains file holds it.
    dims : tuple of str
        Names of its dimensions.
    columns : tuple of str
        Names of the columns that are fitted.
    constants : mapping of str to number or array
        What summaries need to know of model and release.
    attrs : mapping of str to str
        What the chains file says of the model.
    kept : str
        What is kept of each draw, in words; may be empty.
    derive : callable, optional
        Computes quantities of a record from the finished draws (`dpmix.run.kept_quantities`).
    prior : callable
        Draws the model's parameters from their prior, given the seed of all chains.
    edges : array, optional
        Of a tally, whose counts `observed` then holds: all edges of its cells.
    """

    run: Run
    content: Content
    observed: NDArray[np.float64]
    dims: tuple[str, ...]
    columns: tuple[str, ...]
    constants: Constants
    attrs: Mapping[str, str]
    kept: str = ""
    derive: Derive | None = None
    prior: Callable[[int], Mapping[str, NDArray[np.float64]]] = field(default=lambda entropy: {})
    edges: NDArray[np.float64] | None = None

    def seeded(self, entropy: int) -> Run:
        """Return the run with the seed of all chains."""
        return replace(self.run, entropy=entropy)


def make_run(spec: RunSpec, model: Samples, chains: tuple[int, ...]) -> Run:
    """Return the run of a model by the spec's sampler, without its seed."""
    sampler = spec.sampler
    return Run(model, sampler.iterations, sampler.burn_in_sweeps, sampler.thin, 0, chains)
