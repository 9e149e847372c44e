"""Advice about synthetic records: how far off the population they will be, by generators at work on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.advising.advice import Row
from dpmix.advising.population import Population, by_group, population_of
from dpmix.errors import SpecError, UsageError
from dpmix.synthesis.generator import Randomness
from dpmix.synthesis.generator_choice import generator_of, section_of
from dpmix.synthesis.records import Column, Records, columns_of

if TYPE_CHECKING:
    from dpmix.spec import RunSpec

__all__ = ["advise_synthesis"]

Floats = NDArray[np.float64]

_RUNS = 40
_NUMBERS = 20_000_000  # that one row may draw
_SEED = 23
_QUANTILES = {"median": 0.5, "quantile[0.25]": 0.25, "quantile[0.75]": 0.75}


def advise_synthesis(
    spec: RunSpec, epsilons: list[float], records: list[int], kinds: list[str] | None
) -> tuple[list[Row], str]:
    """Return rows of the spec's own synthesis, and the population in words.

    What stands for a posterior's standard deviation is the root mean square error of a quantity among the
    synthetic records about the population's, over releases of samples that are drawn from it. Numbers are
    uniform on their bounds, or ``advise.population`` for one column, categories all as likely, and columns
    independent.

    Raises
    ------
    SpecError
        For free labels, of which nothing is public.
    UsageError
        For other kinds than the spec's, and so many records that it would take long.
    """
    section = section_of(spec)
    others = [kind for kind in kinds or () if kind != section.kind]
    if others:
        raise UsageError(
            f"--mechanism: advice about synthesis is about the spec's own kind, {section.kind}; name another "
            "in synthesis.kind"
        )
    columns = columns_of(spec.data)
    for column in columns:
        if column.free:
            raise SpecError(
                f"data.categories: missing for {column.name}; nothing is public of its labels that advice "
                "could be about"
            )
    public = None if spec.advise is None else spec.advise.population
    if public is not None and (len(columns) > 1 or columns[0].bounds is None):
        raise SpecError("advise.population: is for one column of numbers; leave it out")
    bounds = columns[0].bounds
    population = None if public is None or bounds is None else population_of(public, bounds)
    if max(records) * len(columns) * _RUNS > _NUMBERS * _RUNS // 4:
        most = _NUMBERS // (4 * len(columns))
        raise UsageError(f"--n: advice about synthesis draws samples; give at most {most:,} records")
    rows = []
    for epsilon in epsilons:
        for n in records:
            asked = section.model_copy(update={"epsilon": epsilon, "n": n})
            generator = generator_of(asked, columns, n)
            sd = _errors(generator, columns, population, n)
            spent = generator.guarantee
            rows.append(Row(section.kind, spent.trust, epsilon, float(spent.delta or 0.0), n, sd, None, {}))
    words = "columns that are independent, numbers uniform and categories as likely as each other"
    return rows, population.name if population is not None else words


def _errors(
    generator: Any, columns: tuple[Column, ...], population: Population | None, n: int
) -> dict[str, float]:
    """Return root mean square errors by quantity."""
    squares: dict[str, list[float]] = {}
    draw = [_drawer(column, population) for column in columns]
    for run in range(max(4, min(_RUNS, _NUMBERS // (n * len(columns))))):
        rng = np.random.default_rng([_SEED, run])
        values = np.column_stack([each(rng, n) for each in draw])
        labels = tuple(column.categories for column in columns)
        records = Records(columns, values, labels, (0,) * len(columns), rng)
        made, _ = generator.draw(records, Randomness(rng))
        for place, column in enumerate(columns):
            for name, error in _off(made[:, place], column, population).items():
                named = name if len(columns) == 1 else by_group(name, column.name)
                squares.setdefault(named, []).append(error)
    return {name: math.sqrt(float(np.mean(errors))) for name, errors in squares.items()}


def _drawer(column: Column, population: Population | None) -> Callable[[np.random.Generator, int], Floats]:
    if column.bounds is None:
        count = len(column.categories or ())
        return lambda rng, n: rng.integers(count, size=n).astype(np.float64)
    low, high = column.bounds
    if population is None:
        return lambda rng, n: rng.uniform(low, high, n)
    return lambda rng, n: population.quantiles(rng.random(n))


def _off(values: Floats, column: Column, population: Population | None) -> dict[str, float]:
    """Return squared errors of what synthetic records tell of a column."""
    if column.bounds is None:
        count = len(column.categories or ())
        shares = np.bincount(values.astype(np.int64), minlength=count)[:count] / len(values)
        return {"share": float(np.mean((shares - 1.0 / count) ** 2))}
    low, high = column.bounds
    levels = np.array(list(_QUANTILES.values()))
    truth = low + levels * (high - low) if population is None else population.quantiles(levels)
    mean = 0.5 * (low + high) if population is None else population.moments()[0]
    found = (np.quantile(values, levels) - truth) ** 2
    return {"mean": float((values.mean() - mean) ** 2), **dict(zip(_QUANTILES, found.tolist(), strict=True))}
