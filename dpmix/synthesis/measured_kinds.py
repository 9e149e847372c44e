"""Kinds of synthesis side by side: each draws many synthetic data sets, which are measured."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.fft import dct, idct

from dpmix.errors import PrivacyError, SpecError
from dpmix.laws.every import law_of
from dpmix.release.sanitized import cautions_of
from dpmix.spec.synthesis_section import (
    DirichletMultinomialSynthesis,
    PerturbedHistogramSynthesis,
    PitmanYorSynthesis,
    SmoothedHistogramSynthesis,
    SynthesisSection,
)
from dpmix.synthesis.comparison import (
    ComparedDensity,
    Comparison,
    Contender,
    Floats,
    Refusal,
    Spread,
    spreads,
)
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.utility import NEEDS, Figures, JointYardstick, Yardstick

if TYPE_CHECKING:
    from dpmix.synthesis.generator import Generator
    from dpmix.synthesis.records import Column, Records

# Kernel density estimates on public bounds, for pictures.

CELLS = 256
_NARROWEST = 100


def bandwidth_of(values: Floats, bounds: tuple[float, float]) -> float:
    """Return Silverman's bandwidth of numbers (n,), at least a hundredth of the bounds' width.

    Source: B. W. Silverman (1986), Density Estimation for Statistics and Data Analysis, equation (3.31).
    """
    low, high = np.quantile(values, (0.25, 0.75))
    spread = float(values.std())
    if high > low:
        spread = min(spread, float(high - low) / 1.34)
    narrowest = (bounds[1] - bounds[0]) / _NARROWEST
    return max(0.9 * spread * math.pow(len(values), -0.2), narrowest)


def grid_of_cells(bounds: tuple[float, float]) -> Floats:
    """Return the centres of equal cells of the bounds, shape (CELLS,)."""
    return bounds[0] + (bounds[1] - bounds[0]) * (np.arange(CELLS) + 0.5) / CELLS


def density_of(values: Floats, bounds: tuple[float, float], bandwidth: float) -> Floats:
    """Return a Gaussian kernel estimate of a density on its bounds, where the kernel is reflected.

    Numbers are counted in cells and the counts are smoothed by their cosine transform, in which a reflected
    Gaussian kernel is a factor exp(-(pi k h / width)^2 / 2), h the bandwidth. Shape (CELLS,), at the centres
    of the cells; its mean times the width is 1.
    """
    width = bounds[1] - bounds[0]
    places = np.minimum(((values - bounds[0]) / width * CELLS).astype(np.int64), CELLS - 1)
    shares = np.bincount(places, minlength=CELLS) / len(values)
    damped = dct(shares) * np.exp(-0.5 * (math.pi * bandwidth / width * np.arange(CELLS)) ** 2)
    return np.asarray(np.maximum(idct(damped), 0.0) * CELLS / width)


KINDS: dict[str, type[SynthesisSection]] = {
    "pitman_yor": PitmanYorSynthesis,
    "dirichlet_multinomial": DirichletMultinomialSynthesis,
    "perturbed_histogram": PerturbedHistogramSynthesis,
    "smoothed_histogram": SmoothedHistogramSynthesis,
}
INHERITED = ("records", "epsilon", "delta", "ranges")
_FEWEST = 0.01
"""Share of the records below which a rival draws too few to be compared."""
Jointly = tuple[Floats, dict[str, float], dict[str, float]]
"""Of one data set the associations of pairs and, of some runs, how it is told apart and what it predicts."""
TOGETHER = 5
"""Runs of each kind at most that a regression tells apart, and that trees are trained on."""


@dataclass(frozen=True)
class Field:
    """Who takes part in a comparison.

    Parameters
    ----------
    generators : tuple of (name, Generator)
        The spec's own first.
    refused : tuple of Refusal
        Rivals that cannot meet the request, or are degenerate.
    notes : tuple of str
        What is to be said beside.
    """

    generators: tuple[tuple[str, Generator], ...]
    refused: tuple[Refusal, ...]
    notes: tuple[str, ...] = ()


def field_of(section: SynthesisSection, columns: Sequence[Column], n: int) -> Field:
    """Return the generator of a spec's section ``synthesis`` with its rivals, each calibrated for n records.

    Rivals take what they leave out of records, epsilon and delta from the section. Where it names none they
    are all other kinds, on the section's own cells (`bins`, `snap`) where it gives them, all else by default,
    and those that noise or prior counts drown, or that draw next to nothing, are left out. Of the data
    nothing but n is used.

    Raises
    ------
    PrivacyError, SpecError
        When the section itself cannot be met: as `generator_of`. A rival that cannot is among the refused.
    """
    own = generator_of(section, columns, n)
    rivals = _others(section, own.kind) if section.rivals is None else section.rivals
    generators = [(str(section.kind), own)]
    refused: list[Refusal] = []
    taken = {str(section.kind)}
    for rival in rivals:
        name = _name(rival, taken)
        taken.add(name)
        try:
            made = generator_of(_heir(section, rival), columns, n)
            drowned = None if section.rivals is not None else _drowned(made)
            if drowned is None:
                generators.append((name, made))
            else:
                refused.append(Refusal(name, str(rival.kind), drowned))
        except (PrivacyError, SpecError) as error:
            reason = " ".join(str(error).split()).removeprefix("synthesis.")
            refused.append(Refusal(name, str(rival.kind), reason))
    drowned = _drowned(own)
    notes = [] if drowned is None else [f"{section.kind}: {drowned}"]
    for name, made in generators:
        found = cautions_of(law_of(made.describe()), made.n, made.guarantee.delta)
        notes += [f"{name}: {text}" for text in found]
    return Field(tuple(generators), tuple(refused), tuple(notes))


def _drowned(generator: Generator) -> str | None:
    """Say that little of the data is left in what a generator draws, None where much is."""
    if generator.noisy_cells is not None:
        cells, sd = generator.noisy_cells
        if cells * sd > generator.n:
            return (
                f"the noise of its {cells:,} cells adds up to {cells * sd:,.0f}, more than the "
                f"{generator.n:,} records"
            )
    share = generator.uniform_share
    if share is not None and share > 0.5:
        return f"about {share:.0%} of its draws are {generator.ignoring[0]}, whatever the data are"
    if generator.records < _FEWEST * generator.n:
        return f"its {generator.records:,} records stand for {generator.n:,}, fewer than one for a hundred"
    return None


def compare_kinds(
    field: Field, records: Records, runs: int, progress: Callable[[int, int], None] | None = None
) -> Comparison:
    """Draw synthetic data sets of each kind, and measure them against the confidential records.

    Real records are drawn from with the operating system's randomness, simulated ones with their seed; the
    runs, at least 1 of each kind, are independent. `progress` is called with (data sets done, data sets in
    all).

    Raises
    ------
    ValueError
        When there is no run.
    PrivacyError
        When there are not as many records as the guarantees are for.
    """
    if runs < 1:
        raise ValueError("a comparison needs at least one run")
    yardstick = Yardstick(records)
    jointly = JointYardstick(records.columns, records.values) if len(records.columns) > 1 else None
    densities = tuple(
        None if column.bounds is None else _density(records.values[:, i], column.bounds)
        for i, column in enumerate(records.columns)
    )
    contenders = []
    for place, (name, generator) in enumerate(field.generators):
        if generator.n != records.n:
            raise PrivacyError(f"the guarantee is for {generator.n} records, not {records.n}")
        found: list[Figures] = []
        together: list[Jointly] = []
        first: tuple[Floats | None, ...] = ()
        for run in range(runs):
            values, labels = generator.draw(records, records.rng)
            found.append(yardstick.measure(values, labels))
            if jointly is not None:
                known = yardstick.in_known_codes(values, labels)
                together.append(_together(jointly, known, whole=run < TOGETHER))
            if run == 0:
                first = _smooth(values, records.columns, densities)
            if progress is not None:
                progress(place * runs + run + 1, len(field.generators) * runs)
        contenders.append(_contender(name, generator, place == 0, found, first, jointly, together))
    return Comparison(
        columns=records.columns,
        n=records.n,
        simulated=records.rng is not None,
        runs=runs,
        confidential=yardstick.confidential,
        categories=tuple(
            yardstick.shown(i) if column.bounds is None else None for i, column in enumerate(records.columns)
        ),
        densities=densities,
        contenders=tuple(contenders),
        refused=field.refused,
        pairs=() if jointly is None else jointly.pairs,
        associations=np.empty(0) if jointly is None else jointly.associations,
        baseline={} if jointly is None else jointly.baseline,
        notes=(*field.notes, *_left_out(jointly)),
    )


def _together(jointly: JointYardstick, values: Floats, *, whole: bool) -> Jointly:
    """Measure one data set jointly: the associations of pairs and, of some runs, all else."""
    pairs = jointly.of_pairs(values)
    told = jointly.told_apart(values) if whole else {}
    return pairs, told, jointly.predictions(values) if whole and jointly.trains else {}


def _left_out(jointly: JointYardstick | None) -> tuple[str, ...]:
    """Say what is not measured."""
    missing = jointly is not None and importlib.util.find_spec("sklearn") is None
    return (f"train on synthetic, test on real: left out, as {NEEDS}",) if missing else ()


def _contender(
    name: str,
    generator: Generator,
    own: bool,
    found: list[Figures],
    densities: tuple[Floats | None, ...],
    jointly: JointYardstick | None,
    together: list[Jointly],
) -> Contender:
    columns = range(len(generator.columns))
    shares: list[Floats | None] = []
    for i in columns:
        of_runs = [part for run in found if (part := run.shares[i]) is not None]
        shares.append(np.stack(of_runs) if of_runs else None)
    joint = spreads([run.joint for run in found])
    more: dict[str, Any] = {}
    if jointly is not None:
        pairs = np.stack([run[0] for run in together])
        apart = np.abs(pairs - jointly.associations)
        joint["association_max"] = Spread(apart.max(axis=1))
        joint["association_mean"] = Spread(apart.mean(axis=1))
        joint |= spreads([run[1] for run in together[:TOGETHER]])
        more = {"pairs": pairs, "predicted": spreads([run[2] for run in together[:TOGETHER]])}
    return Contender(
        name=name,
        kind=generator.kind,
        own=own,
        words=generator.in_words(),
        settings=generator.describe(),
        guarantee=generator.guarantee,
        records=generator.records,
        joint=joint,
        columns=tuple(spreads([run.columns[i] for run in found]) for i in columns),
        shares=tuple(shares),
        densities=densities,
        **more,
    )


def _density(values: Floats, bounds: tuple[float, float]) -> ComparedDensity:
    bandwidth = bandwidth_of(values, bounds)
    return ComparedDensity(grid_of_cells(bounds), density_of(values, bounds, bandwidth), bandwidth)


def _smooth(
    values: Floats, columns: tuple[Column, ...], densities: tuple[ComparedDensity | None, ...]
) -> tuple[Floats | None, ...]:
    """Return kernel estimates of the numeric columns, with the confidential records' bandwidths."""
    found: list[Floats | None] = []
    for i, (column, density) in enumerate(zip(columns, densities, strict=True)):
        if density is None or column.bounds is None:
            found.append(None)
        else:
            found.append(density_of(values[:, i], column.bounds, density.bandwidth))
    return tuple(found)


def _others(section: SynthesisSection, kind: str) -> list[SynthesisSection]:
    """Return all other kinds than a generator's, on the section's own cells where it gives them."""
    bins = getattr(section, "bins", None)
    found = []
    for name, made in KINDS.items():
        if name != kind:
            cells = {} if bins is None or made is PitmanYorSynthesis else {"bins": bins}
            rival = made.model_validate({"kind": name} | cells)
            found.append(rival.model_copy(update={"snap": section.snap}))
    return found


def _heir(section: SynthesisSection, rival: SynthesisSection) -> SynthesisSection:
    """Return a rival with what it leaves out of records, epsilon and delta."""
    left_out = [key for key in INHERITED if key not in rival.model_fields_set]
    return rival.model_copy(update={key: getattr(section, key) for key in left_out})


def _name(section: SynthesisSection, taken: set[str]) -> str:
    """Return a rival's kind, with its settings or a number where that name is taken."""
    kind = str(section.kind)
    if kind not in taken:
        return kind
    given: dict[str, Any] = section.model_dump(mode="json", exclude_unset=True, exclude={"kind"})
    told = ", ".join(f"{key} {_told(value)}" for key, value in given.items() if value is not None)
    name = f"{kind} ({told})" if told else kind
    if name not in taken:
        return name
    return next(f"{name} #{i}" for i in range(2, len(taken) + 3) if f"{name} #{i}" not in taken)


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("kind", "given"))
    if isinstance(value, list):
        return "x".join(str(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
