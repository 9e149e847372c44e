"""The page docs/performance.md: what a user can expect, samplers, mechanisms, generators, growth, threads.

scripts/benchmark --performance. Every figure is of processor time unless it says otherwise.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks import bins as binned
from benchmarks import growth, large, releases, samplers, tasks
from benchmarks import versus as beside

__all__ = ["PARTS", "page", "run", "select"]

PARTS = (
    "idle",
    "samplers",
    "versus",
    "bins",
    "mechanisms",
    "synthesizers",
    "growth",
    "threads",
    "tasks",
    "large",
    "billion",
)

_HEAD = """\
# Performance

Written by `scripts/benchmark --performance` on {date}, on {cpu} ({cores} cores, {system}), Python {python},
{named}. The load average was {before} before and {after} after. Seconds are of processor time, which
other programs lengthen less than that on the wall, and the least of several where a figure is small.
Compiling is not counted: some ten seconds for a mixture of the default kind, once for each kind of fit,
which says so (`dpmix warmup SPEC` does it ahead, also for the spec of a sweep).

This page says what to expect; how samplers compare, and which to choose, is in [samplers.md](samplers.md).
"""
_TASKS = """\
## What to expect on a laptop

One thread; fits of two chains take half as long on two cores. `fit` is from the start of the command to its
end; `summarize` writes a report as well.
"""
_IDLE = """\
A second fit of a kind starts sampling {wall:.2f} s after its command does, by the clock on the wall, and
after {cpu:.2f} s of processor time: modules are imported, and compiled code is loaded.
"""
_LARGE = """\
## A billion records

Three normals with Laplace noise at eps = 5, in parts of 10 million that are made, tallied and dropped:
nothing larger than a part is ever on the disk. Then all tallies are added up, and four chains of 60,000
sweeps (12,000 burn-in) are fitted by the sampler that `sampler.kind: auto` takes, `counts`, and summarized
with a report. Seconds of processor time, one process at a time (`dpmix tally --jobs N` counts N parts at
once; making the parts is not counted), and megabytes at the peak.
"""
_BILLION = """\
Four chains on counts of a billion records, drawn at once from the probabilities of the cells, each in a
process of its own on one thread:
"""
_SAMPLERS = """\
## Samplers

Nanoseconds of one thread to update a record in a sweep, in one chain; `latent: exact` where nothing else is
said. Of mixtures sweeps save nothing, and the *floor* is as many uniforms and library exp and erfc calls in
a bare loop as the densities of the components in play take; of other models every draw is saved, and the
floor is a record's random numbers alone: uniforms, normals or gammas. Where there is no floor, a sweep does
not visit records, and its cost is spread over all. *A record* is an offer under `soma`, and where a sweep
of compositions goes through a block. `neal3` and `split_merge` look integrals up in tables; clusters of more
than 4,096 records share a small one, which is slower. An offer of `soma` to compositions weighs all
records. The exponent p is of seconds a sweep ~ n^p, between the two largest n. What a sweep is worth, in
effective draws a second, is in
[benchmarks.md](benchmarks.md), [benchmarks-augmentation.md](benchmarks-augmentation.md) and
[compositions.md](compositions.md).
"""
_VERSUS = """\
## Counts beside `neal8`

Bulk effective draws of two chains per second of processor time, three normals of section 4.1 under Laplace
noise, both samplers in one process; *times as many* is the ratio, and where the least is below {target:g},
the aim, it is named in the last column. An effective sample size is a bound from above where R-hat is far
from 1.
"""
_BINS = """\
## Histograms

Bulk effective draws of four chains per second of processor time after burn-in, three normals of section 4.1
on [-10, 10], the default prior (base measure learned, concentration Gamma(2, 1)),
densities at -6, 0 and 6, tails beyond -5, 0, 2.5 and 5. The largest R-hat is that of the quantity named,
of all of these, concentration and log-likelihood, chains started apart; an effective sample size is a bound
from above where it is far from 1.
"""
_MECHANISMS = """\
## Mechanisms

Noise from the operating system's randomness, records in memory already; one release, calibration excluded.
The *floor* is a bare loop that reads each record once and draws as many floating-point numbers of the same
law from a generator that is not private. *Library* is the noise library alone: exact discrete noise, in
arithmetic without rounding, costs what it costs. The exponent p is of seconds ~ n^p, between the two largest
n.
"""
_SYNTHESIZERS = """\
## Generators of synthetic records

One numeric column; m synthetic records of {many:,} confidential ones, and of `posterior_predictive` m
records from 1,000 draws of a mixture. *A record* is at the largest m. The *floor* is reading a number and
drawing one uniform (one normal for `posterior_predictive`). Exponents p, of seconds ~ m^p and n^p, are
between the two largest numbers; in n for {few:,} synthetic records.
"""
_GROWTH = """\
## What a sweep grows with

One chain, n = {n:,}, one thread, after burn-in; the exponent p is of nanoseconds ~ value^p over the values
here. The *floor*, at the first and the last value, is as many uniforms and library exp and erfc calls in a
bare loop as the densities of the components in play take, one exp for each under beta and multivariate
kernels.
"""
_THREADS = """\
## Threads

{text}

Records of one chain are worked in blocks by several threads from 65,536 records on where cores are left:
[benchmarks.md](benchmarks.md#threads-within-one-chain). The draws do not depend on the number of threads.
"""


def select(patterns: list[str]) -> list[str]:
    """Return the parts that are named; all without names.

    Raises
    ------
    ValueError
        When there is no such part.
    """
    for pattern in patterns:
        if pattern not in PARTS:
            raise ValueError(f"no part is {pattern!r}; parts are {', '.join(PARTS)}")
    return [part for part in PARTS if not patterns or part in patterns]


def run(seconds: float, parts: list[str] | None = None, work: Path | None = None) -> dict[str, Any]:
    """Measure the parts, one after the other; below a tenth of a second at the smallest sizes alone.

    work: file that keeps what is measured of `versus`, case by case.
    """
    few = seconds < 0.1
    sizes = releases.SIZES[:2] if few else releases.SIZES
    measured = {
        "idle": tasks.idle,
        "samplers": lambda: samplers.samplers(seconds, few),
        "versus": lambda: beside.versus(seconds, beside.FEW if few else beside.CASES, work),
        "bins": lambda: binned.bins(seconds, binned.FEW if few else binned.CASES),
        "mechanisms": lambda: releases.mechanisms(seconds, sizes),
        "synthesizers": lambda: releases.synthesizers(seconds, sizes),
        "growth": lambda: growth.grow(seconds, few=few),
        "threads": lambda: growth.threads(seconds),
        "large": lambda: large.large(large.FEW if few else large.SIZES, few),
        "billion": lambda: large.billion(few=few),
        "tasks": lambda: tasks.tasks(tasks.TASKS[:1] if few else tasks.TASKS, few),
    }
    found: dict[str, Any] = {}
    for part in select([]) if parts is None else parts:
        start = time.perf_counter()
        found[part] = measured[part]()
        print(f"{part}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return found


def page(report: dict[str, Any]) -> str:
    """Write the page."""
    where, found = report["machine"], report["cells"]
    named = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    head = _HEAD.format(named=named, before=where["load"][0], after=report["load_after"][0], **where)
    title, *paragraphs = head.split("\n\n")
    lines = [title, "", "\n\n".join(fill(text, 108) for text in paragraphs), ""]
    if "tasks" in found:
        lines += [_TASKS, *tasks.tasks_table(found["tasks"]), ""]
    if "large" in found:
        lines += [_LARGE, *large.large_table(found["large"]), ""]
    if "billion" in found:
        lines += [_BILLION, *large.billion_table(found["billion"]), ""]
    if "idle" in found:
        lines += [_IDLE.format(**found["idle"])]
    if "samplers" in found:
        lines += [_SAMPLERS, *samplers.samplers_table(found["samplers"]), ""]
    if "versus" in found:
        lines += [_VERSUS.format(target=beside.TARGET), *beside.versus_table(found["versus"]), ""]
    if "bins" in found:
        lines += [_BINS, *binned.bins_table(found["bins"]), ""]
    of_mechanisms, of_generators = releases.tables(found.get("mechanisms", []), found.get("synthesizers", []))
    if "mechanisms" in found:
        lines += [_MECHANISMS, *of_mechanisms, ""]
    if "synthesizers" in found:
        lines += [_SYNTHESIZERS.format(few=releases.FEW, many=releases.MANY), *of_generators, ""]
    if "growth" in found:
        lines += [_GROWTH.format(n=growth.N), *growth.growth_table(found["growth"]), ""]
    if "threads" in found:
        lines += [_THREADS.format(text=fill(growth.threads_text(found["threads"]), 108))]
    return "\n".join(lines)
