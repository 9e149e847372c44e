"""From the spec of a mixture and a release to the run that samples it, for one population or for groups."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.api.kernel_of_spec import base_constants, base_shapes, kernel_attrs, kernel_of, mixing_of
from dpmix.api.task import Task, bounds_of, check_columns, make_run, observe, pairs_of, task_of
from dpmix.errors import DataError, SpecError
from dpmix.kernels import parameter_shapes, propose
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import Observation, expect
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    draw_start,
    fill_marginal,
    log_marginal,
    noise_density,
)
from dpmix.mechanisms.channels.histograms import HistogramBins
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.models.counts_mixture.model import CountsMixture
from dpmix.models.counts_mixture.source import HistogramCounts
from dpmix.models.histogram_mixture.mixture_sweep import MOST_STICKS, TAIL, sticks_for
from dpmix.models.histogram_mixture.model import HistogramMixture, Quantities
from dpmix.numerics.mixing import PitmanYor, truncation_error
from dpmix.release.tallies import count_outputs, default_width, edges_of, grid_of, tally, wide_grid
from dpmix.run.chains_writer import Components
from dpmix.run.kept_quantities import Derive, Recorded, subsample_of
from dpmix.samplers.chain import Mixture
from dpmix.samplers.sweeps import Algorithm
from dpmix.spec.capabilities import listed
from dpmix.spec.model_section import MixtureSection

if TYPE_CHECKING:
    from dpmix.columns.cells import Counts
    from dpmix.kernels.learned_base import LearnedBase
    from dpmix.release.sanitized import Release
    from dpmix.run.model_protocols import Samples
    from dpmix.spec import RunSpec

TRUNCATION_TOLERANCE = 0.01  # expected number of records beyond a truncation
ALLOCATIONS_LIMIT = 5000  # records up to which allocations are stored unless the spec says otherwise
_LARGEST_TRUNCATION = 10_000  # that a spec may ask for
POINTS = 101  # of the grid where each draw's density is kept
_MARGIN = 0.1  # of the bounds' width, for kernels on the whole line


def mixture_task(spec: RunSpec, release: Release, columns: list[int], chains: tuple[int, ...]) -> Task:
    """Turn spec and release into what the samplers take, and into the constants that summaries need.

    Raises
    ------
    SpecError
        When a truncation leaves out too much.
    DataError
        When the release does not allow the model.
    """
    model = spec.model
    assert isinstance(model, MixtureSection)  # the caller looks
    sampler, n = spec.sampler, release.n
    bins = observe_bins(release) if sampler.kind == "counts" else None
    seen = observe(spec, release, columns) if bins is None else bins
    mixing = mixing_of(model)
    if sampler.kind == "blocked_gibbs":
        _check_truncation(mixing, sampler.truncation, n)
    check_tally(spec, release)
    kernel, source, learned = kernel_of(spec, release, seen, columns)
    check_pair(spec, release, seen.channel, kernel)
    kept = _kept_records(spec, release, n)
    constants = base_constants(kernel, learned)
    samples: Samples
    stats: tuple[str, ...] = ()
    if sampler.kind == "counts":
        samples = counts_of(spec, release, seen, kernel, mixing, columns[0], learned)
        stats = ("left_over",)
        constants |= samples.counts.constants()
    else:
        algorithm = Algorithm(sampler.algorithm, sampler.auxiliary, sampler.truncation, sampler.latent)
        samples = Mixture(seen.z, seen.channel, kernel, mixing, algorithm, kept, learned)
    constants["noise_scale"] = seen.noise_scale
    constants["discount"] = mixing.discount
    constants["acceptance_bound"] = _acceptance_bound(spec, release)
    names = tuple(release.columns[column] for column in columns)
    tally = release.tally
    several = model.several
    recorded = names if several else names[:1]  # a wavelet has one column of records
    return Task(
        run=make_run(spec, samples, chains),
        content=Components(
            parameter_shapes(kernel), kept, spec.summary.levels, recorded, stats, base_shapes(kernel, learned)
        ),
        observed=seen.observed if tally is None else tally.counts.astype(np.float64),
        dims=seen.dims if tally is None else ("cell",),
        columns=names,
        constants=constants,
        attrs=kernel_attrs(model, source, learned) | _bounds_attr(spec, release, columns),
        kept=_in_words(kept, n),
        derive=_derive(spec.summary.levels),
        edges=None if tally is None else grid_of(tally),
    )


def _bounds_attr(spec: RunSpec, release: Release, columns: list[int]) -> dict[str, str]:
    """Return what chains files say of the public bounds of the one column of several that is fitted."""
    pairs = pairs_of(spec, release)
    if len(columns) != 1 or columns[0] >= len(pairs) or len(pairs) == 1:
        return {}
    return {"bounds": json.dumps(pairs[columns[0]])}


def check_pair(spec: RunSpec, release: Release, channel: Any, kernel: Any) -> None:
    """Refuse a kernel and a release that have no density together, which may be where either is registered.

    Raises
    ------
    SpecError
    """
    pair = (type(channel), type(kernel))
    names = f"{pair[0].__name__} and {pair[1].__name__}"
    lacking = [f.__name__ for f in (log_marginal, fill_marginal, draw_start) if pair not in f.registered]
    if not lacking and pair not in draw_latent.registered and pair[1:] not in propose.registered:
        lacking = ["draw_latent"]
    if lacking:
        with_it = [own[1].__name__ for own in log_marginal.registered if own[0] is pair[0]]
        advice = f"; of kernels it goes with {listed(tuple(with_it))}" if with_it else ""
        raise SpecError(
            f"model.kernel: {getattr(spec.model, 'kernel', '')} does not go with a {release.kind} release: "
            f"{lacking[0]} is not registered for {names}{advice}"
        )
    proposing = spec.sampler.can.proposes(spec.sampler.latent)
    if proposing and pair[0] is not HistogramBins and pair[:1] not in noise_density.registered:
        raise SpecError(
            f"sampler.kind: {spec.sampler.kind} proposes records, and noise_density is not registered for "
            f"{pair[0].__name__}; register it, or use neal8"
        )


def _derive(levels: tuple[float, ...]) -> Derive:
    """Return what computes the mean, the sd and quantiles of a record from the draws."""

    def derive(path: Path, check: Callable[[], None]) -> Recorded:
        from dpmix.summary.density import record_quantities  # late: SciPy takes its time

        return record_quantities(path, levels, check)

    return derive


def _kept_records(spec: RunSpec, release: Release, n: int) -> NDArray[np.int64]:
    """Return the places of the records whose allocations are stored.

    There are none for a global release, which says nothing of single records. A subsample is the same in all
    chains and processes: it is drawn once and for all, whatever the seed and the values.
    """
    store, subsample = spec.sampler.store, spec.sampler.subsample
    nobody = not release.by_record or spec.sampler.can.on_counts
    if nobody or (store is not None and "allocations" not in store):
        return np.empty(0, dtype=np.int64)
    if subsample is not None and subsample < n:
        return subsample_of(n, subsample)
    if subsample is None and store is None and n > ALLOCATIONS_LIMIT:
        return np.empty(0, dtype=np.int64)
    return np.arange(n, dtype=np.int64)


def _in_words(kept: NDArray[np.int64], n: int) -> str:
    if not len(kept):
        return "without allocations"
    return "with allocations" if len(kept) == n else f"with allocations of {len(kept)} of the records"


def _acceptance_bound(spec: RunSpec, release: Release) -> float:
    """Return e^-eps where every proposal is accepted with at least that probability, else NaN.

    It holds where a record is proposed from the kernel and the release is eps-DP over the kernel's support
    (methods, section 4).
    """
    proposes = spec.sampler.can.proposes(spec.sampler.latent)
    on_domain = bool(getattr(spec.model, "bounded", False))
    pure = release.epsilon is not None and not release.delta
    if proposes and pure and release.mechanism.bounds_acceptance(on_domain):
        return math.exp(-float(release.epsilon or 0.0))
    return math.nan


def _check_truncation(mixing: PitmanYor, truncation: int, n: int) -> None:
    """Refuse a truncation that leaves out too much, and name the smallest that does not."""
    error = truncation_error(mixing, truncation, n)
    if error <= TRUNCATION_TOLERANCE:
        return
    low, enough = truncation, _LARGEST_TRUNCATION
    if truncation_error(mixing, enough, n) > TRUNCATION_TOLERANCE:
        advice = "use private_slice or neal8"
    else:
        while low + 1 < enough:
            middle = (low + enough) // 2
            if truncation_error(mixing, middle, n) > TRUNCATION_TOLERANCE:
                low = middle
            else:
                enough = middle
        advice = f"use at least {enough}, or private_slice or neal8"
    raise SpecError(
        f"sampler.truncation: {truncation} leaves out an expected {error:.2g} of the {n} records "
        f"(at most {TRUNCATION_TOLERANCE:g} may be); {advice}, which do not truncate"
    )


# Counts in place of records: in public cells, or in the bins of a histogram


def observe_bins(release: Release) -> Observation | None:
    """Return what counts take of a histogram, whatever the number of records; None for other releases."""
    law = release.mechanism
    if law.released != "histogram":
        return None
    column = np.ascontiguousarray(release.values[:, 0], dtype=np.float64)
    return Observation(np.empty(0), NoNoise(), column, ("released",), expect(law, HistogramLaw).noise_scale)


def counts_of(
    spec: RunSpec,
    release: Release,
    seen: Observation,
    kernel: Any,
    mixing: PitmanYor,
    column: int,
    learned: LearnedBase | None = None,
) -> CountsMixture:
    """Return the model of ``sampler.kind: counts``.

    Raises SpecError and DataError as `count_release`.
    """
    counts: Counts | HistogramCounts
    if release.mechanism.released == "histogram":
        law = expect(release.mechanism, HistogramLaw)
        counts = HistogramCounts(law.likelihood(release.values, release.n), release.n, law.edges())
    else:
        counts = count_release(spec, release, seen, column)
    return CountsMixture(counts, seen.channel, kernel, mixing, learned)


def count_release(spec: RunSpec, release: Release, seen: Observation, column: int) -> Counts:
    """Count a column of a release in the cells that the spec's width and the public quantities make.

    A tally is counted already.

    Raises
    ------
    SpecError
        When the width makes no cells, or too many, or is another than a tally's; when the public bounds are
        missing.
    DataError
        When values are missing or not finite, or no outputs.
    """
    if release.tally is not None:
        _check_width(spec, release, release.tally)
        return release.tally
    law, outputs = release.mechanism, release.mechanism.outputs
    values = np.ascontiguousarray(seen.observed, dtype=np.float64).ravel()
    try:
        if outputs is not None:
            return count_outputs(values, outputs)
        edges = _edges(spec, release, seen, column)
        return tally(values, edges, float(edges[1] - edges[0]))
    except ValueError as error:
        raise DataError(f"the release by {law.kind} cannot be counted: {error}") from None


def _edges(spec: RunSpec, release: Release, seen: Observation, column: int) -> NDArray[np.float64]:
    lo, hi = bounds_of(spec, release, column)
    scale = 0.0 if math.isnan(float(seen.noise_scale)) else float(seen.noise_scale)
    asked = spec.sampler.width
    width = default_width(release.kind, scale, lo, hi) if asked == "auto" else float(asked)
    bounded = getattr(spec.model, "bounded", False)
    try:
        return edges_of(release.kind, scale, lo, hi, width, bounded=bounded)
    except ValueError as error:
        raise SpecError(f"sampler.width: {error}; give a larger one, or leave it out") from None


def check_tally(spec: RunSpec, release: Release) -> None:
    """Refuse what a tally does not tell.

    Raises
    ------
    SpecError
        For another sampler than counts, and a base measure that is made of released values.
    """
    if release.tally is None:
        return
    if spec.sampler.kind != "counts":
        raise SpecError(
            f"sampler.kind: {spec.sampler.kind} moves record by record, and a tally holds counts alone; use "
            "counts, or leave it out"
        )
    if getattr(getattr(spec.model, "base", None), "empirical", False):
        raise SpecError(
            "model.base.empirical: is made of released values, and a tally holds counts alone; leave out "
            "model.base, or give its numbers"
        )


def _check_width(spec: RunSpec, release: Release, counted: Counts) -> None:
    """Refuse another width than the tally's."""
    asked = spec.sampler.width
    if asked == "auto":
        return
    edges, width = wide_grid(release.mechanism, asked)
    if not np.array_equal(edges, counted.edges):
        raise SpecError(
            f"sampler.width: {asked:g} makes cells of width {width:.6g}, and the tally's have "
            f"{counted.width:.6g}; leave it out, or tally the release again"
        )


# The groups of a histogram


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
    assert isinstance(model, MixtureSection)  # the combinations look
    check_columns(spec, release, about)
    mixing, base = mixing_of(model), getattr(model, "base", None)
    sticks = sticks_for(mixing, release.n)
    if sticks is None:
        key = "discount" if model.discount else "concentration"
        raise SpecError(
            f"model.{key}: so large that {MOST_STICKS} components leave more than {TAIL:g} of the "
            f"{release.n} records of the groups out; give a smaller {key}"
        )
    if getattr(base, "empirical", False):
        raise SpecError(
            "model.base.empirical: a release of groups does not tell the spread of each; leave model.base "
            "out for a prior that follows the public bounds, or give mu0, lambda, a and b"
        )
    learn = getattr(base, "learn", False)
    if learn:
        raise SpecError(
            f"model.base.learn: {str(learn).lower()} is not for a release of groups, whose histogram says "
            "how far its records spread; leave it out, for the same base measure as it stands"
        )
    nothing = Observation(np.empty(0), None, np.empty((0, 1)), ("released",), np.nan)
    kernel, origin, _ = kernel_of(spec, release, nothing, [0])
    law = expect(release.mechanism, HistogramLaw)
    return task_of(
        spec,
        release,
        HistogramMixture(
            law.likelihood(release.values, release.n),
            release.n,
            law.edges(),
            law.group_names,
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
    on_bounds = getattr(spec.model, "bounded", False)
    margin = 0.0 if on_bounds else _MARGIN * (high - low)
    first, last, points = asked[0] if asked else (low - margin, high + margin, POINTS)
    grid = np.linspace(first, last, points)
    if on_bounds:
        inside = 0.5 * min(float(grid[1] - grid[0]), high - low)
        grid[np.abs(grid - low) <= 1e-9 * (high - low)] = low + inside
        grid[np.abs(grid - high) <= 1e-9 * (high - low)] = high - inside
    return grid
