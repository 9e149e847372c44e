"""From the spec of a mixture and a histogram of groups to the run that samples it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpmix.api.kernel_of_spec import base_constants, kernel_attrs, kernel_of, mixing_of
from dpmix.api.parametric_task import check_columns, task_of
from dpmix.api.task import Observation, Task, bounds_of
from dpmix.errors import SpecError
from dpmix.models.counts.cell_counts import group_names, histogram_likelihood
from dpmix.models.histogram_mixture.model import HistogramMixture, Quantities
from dpmix.models.histogram_mixture.sweep import MOST_STICKS, TAIL, sticks_for
from dpmix.release.sanitized import Release
from dpmix.spec import BetaMixture, NormalMixture, RunSpec

__all__ = ["group_mixture_task"]

POINTS = 101  # of the grid where each draw's density is kept
_MARGIN = 0.1  # of the bounds' width, for kernels on the whole line


def group_mixture_task(spec: RunSpec, release: Release, about: bool, chains: tuple[int, ...]) -> Task:
    """Turn spec and release into what the chains take; see `dpmix.models.histogram_mixture`.

    Raises
    ------
    SpecError
        When the process cannot be broken into few enough sticks, or a quantity is not for groups.
    DataError
        When the release does not allow the model.
    """
    model = spec.model
    assert isinstance(model, NormalMixture | BetaMixture)  # the combinations look
    check_columns(spec, release, about)
    mixing = mixing_of(model)
    sticks = sticks_for(mixing, release.n)
    if sticks is None:
        key = "discount" if model.discount else "concentration"
        raise SpecError(
            f"model.{key}: so large that {MOST_STICKS} components leave more than {TAIL:g} of the "
            f"{release.n} records of the groups out; give a smaller {key}"
        )
    if getattr(model.base, "empirical", False):
        raise SpecError(
            "model.base.empirical: a release of groups does not tell the spread of each; leave model.base "
            "out for a prior that follows the public bounds, or give mu0, lambda, a and b"
        )
    if getattr(model.base, "learn", False):
        raise SpecError(
            "model.base.learn: true is not for a release of groups, whose histogram says how far its records "
            "spread; leave it out, for the same base measure as it stands"
        )
    nothing = Observation(np.empty(0), None, np.empty((0, 1)), ("released",), np.nan)
    kernel, origin, _ = kernel_of(spec, release, nothing, [0])
    return task_of(
        spec,
        release,
        HistogramMixture(
            histogram_likelihood(release),
            release.n,
            release.mechanism.edges(),
            group_names(release),
            kernel,
            mixing,
            sticks,
            _grid(spec, release),
            _wanted(spec, release),
            kernel_attrs(model, origin),
            {name: float(value) for name, value in base_constants(kernel).items()},
        ),
        chains,
    )


def _wanted(spec: RunSpec, release: Release) -> Quantities:
    """Return which quantiles, tail probabilities and values of the distribution function are kept.

    Raises
    ------
    SpecError
        When points are of another column than the histogram's, or a Gini coefficient is asked for.
    """
    asked, name = spec.summary, release.columns[0]
    if asked.gini:
        raise SpecError("summary.gini: is not for mixtures of groups; leave it out")
    points = []
    for key, given in (("tails", asked.tails), ("cdf", asked.cdf)):
        if isinstance(given, Mapping):
            unknown = [other for other in given if other != name]
            if unknown:
                raise SpecError(f"summary.{key}: there is no column {unknown[0]!r}; it has {name}")
            given = given[name]
        points.append(tuple(sorted(set(given or ()))))
    return Quantities(asked.levels, *points)


def _grid(spec: RunSpec, release: Release) -> NDArray[np.float64]:
    """Return where densities are kept: as `summary.grid` says, else over the bounds.

    Wider by a tenth of their width on each side where the kernel is on the whole line; where a density may be
    infinite, at the ends of the bounds of a beta kernel, half a step inside.
    """
    low, high = bounds_of(spec, release)
    asked = spec.summary.grids()
    if len(asked) > 1:
        raise SpecError(f"summary.grid: has {len(asked)} grids for the one column of a histogram; give one")
    on_bounds = isinstance(spec.model, BetaMixture)
    margin = 0.0 if on_bounds else _MARGIN * (high - low)
    first, last, points = asked[0] if asked else (low - margin, high + margin, POINTS)
    grid = np.linspace(first, last, points)
    if on_bounds:
        inside = 0.5 * min(float(grid[1] - grid[0]), high - low)
        grid[np.abs(grid - low) <= 1e-9 * (high - low)] = low + inside
        grid[np.abs(grid - high) <= 1e-9 * (high - low)] = high - inside
    return grid
