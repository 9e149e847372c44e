"""What advice says: a row for each mechanism, epsilon and n, which is best, and what is needed.

Its picture is of one quantity against epsilon, a panel for each number of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.advising.population import BAND
from dpmix.columns.column_units import labelled
from dpmix.numerics.in_words import permits_verbatim
from dpmix.results.as_html import to_page
from dpmix.results.as_text import to_text
from dpmix.results.nodes import ResultSection, Table, TableColumn, Tree, figure
from dpmix.store.atomic import write_bytes
from dpmix.store.frames import Tabulated, frame_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpmix.store.frames import Frame

DOUBTFUL = 0.5  # contraction below which the prior speaks
_MOST_COLUMNS, _KEPT = 5, 2  # of quantities, in a terminal; in a narrow one
_FARTHEST, _FARTHEST_N = 4.0, 100.0  # beyond the epsilons, and the numbers of records, looked at, as factors
_ROUNDING = 1e-9  # of exponentials of logarithms
_PANELS = 4  # at most
_LEAST_TICKS, _MOST_TICKS = 3, 8  # at the vertical axis
_MOST_SAID = 6  # epsilons and numbers of records in a caption
Key = tuple[float, int, str]

# What stands below the table
_TRUST = "Trust: local where each record is released by itself, global where a curator is trusted with all."
_BAND = "Band: integral of the density's bands."
_CONTRACTION = "Contraction: the least of a row's quantities."
_BEST = "Best: within its trust model."

# Rows, and the advice that they make


@dataclass(frozen=True)
class Row:
    """What is expected of one release.

    Parameters
    ----------
    mechanism : str
    trust : str
        ``"local"``: each record is released by itself; ``"global"``: by a curator trusted with all of them.
    epsilon, delta : float
    n : int
    sd : mapping of str to float
        Expected posterior standard deviations, in the units of the data.
    band : float or None
        Integral of upper less lower end of the pointwise bands of the density; None without a density.
    contraction : mapping of str to float or None
        1 - (IQR of the posterior / IQR of the prior)^2; None where that is not known.
    best : bool
        Whether no other mechanism of its trust model does better at this epsilon and n.
    needed : mapping, optional
        The epsilon at this n, and the n at this epsilon, that the wanted precision takes; None where it is
        out of reach of what was looked at. Under "at_most" those of both that are more than it takes, the
        least that was looked at; left out where neither is. Without a target there is none.
    """

    mechanism: str
    trust: str
    epsilon: float
    delta: float
    n: int
    sd: Mapping[str, float]
    band: float | None
    contraction: Mapping[str, float | None]
    best: bool = False
    needed: Mapping[str, Any] | None = None

    def expected(self, quantity: str) -> float:
        """Return the standard deviation of a quantity, or the width of the band."""
        return self.band if quantity == BAND and self.band is not None else self.sd[quantity]

    @property
    def least(self) -> float | None:
        """The least contraction of a quantity; None where none is known."""
        known = [value for value in self.contraction.values() if value is not None]
        return min(known) if known else None

    def needed_in_words(self, key: str, form: Callable[[Any], str]) -> str | None:
        """Write what is needed of "epsilon" or "n", "<" before what more than does; None out of reach."""
        needed = self.needed or {}
        value = needed.get(key)
        return None if value is None else f"{'<' * (key in needed.get('at_most', ()))}{form(value)}"

    def to_json(self) -> dict[str, Any]:
        """Return the row for JSON."""
        found: dict[str, Any] = {
            "mechanism": self.mechanism,
            "trust": self.trust,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "n": self.n,
            "sd": dict(self.sd),
            "band": self.band,
            "best": self.best,
            "contraction": dict(self.contraction),
        }
        return found | ({} if self.needed is None else {"needed": dict(self.needed)})


@dataclass(frozen=True)
class Advice(Tabulated):
    """What each release would tell of a public population.

    Parameters
    ----------
    rows : tuple of Row
        By mechanism, epsilon and n.
    population : str
        What records are judged by, in words.
    target : mapping of str to float
        Wanted standard deviations.
    warnings : tuple of str
    quantity : str
        What `draw` shows against epsilon.
    units : mapping of str to str
        Of the standard deviations of quantities, those that have one.
    left_out : str
        Which mechanisms are not compared, and how to ask for them; empty where that needs no word.
    """

    rows: tuple[Row, ...]
    population: str
    target: Mapping[str, float]
    warnings: tuple[str, ...]
    quantity: str
    units: Mapping[str, str] = field(default_factory=dict)
    left_out: str = ""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the rows as lists, dicts and numbers that strict JSON can hold."""
        return [row.to_json() for row in self.rows]

    def to_frame(self) -> Frame:
        """Return its rows as a table."""
        return frame_of_rows(self.to_json())

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """What it is, what it is judged by, and what is best."""
        return "Advice", [*self._said(), *[_finding(self)] * bool(self.rows)]

    def unit_of(self, quantity: str) -> str:
        """Return the unit of a quantity's standard deviation; empty for none, and where it is not stated."""
        return self.units.get(quantity, "")

    @property
    def synthetic(self) -> bool:
        """Whether it is of synthetic records, which have no posterior."""
        return bool(self.rows) and not any(row.contraction for row in self.rows)

    @property
    def _unit(self) -> str:
        """The unit that all standard deviations have; empty where they have none, or not the same."""
        found = {self.unit_of(name) for row in self.rows for name in row.sd}
        return found.pop() if len(found) == 1 else ""

    def with_unit(self, quantity: str, sd: float, form: str = ".4g") -> str:
        """Write a standard deviation with its unit."""
        return f"{figure(sd, form)} {self.unit_of(quantity)}".rstrip()

    def _said(self) -> list[str]:
        """Say what is expected, in which unit, and what is wanted."""
        what = "root mean square errors" if self.synthetic else "posterior standard deviations"
        what += f" in {self._unit}" if self._unit else ""
        wanted = ", ".join(f"{name} to {self.with_unit(name, sd)}" for name, sd in self.target.items())
        head = f"Expected {what} for {self.population}; no record was read."
        return [head] + ([f"Wanted: {wanted}."] if wanted else [])

    def to_text(self) -> str:
        """Return the table for a terminal."""
        return to_text(self.tree)

    @cached_property
    def tree(self) -> Tree:
        """What text and pages show."""
        shown = _shown(self.rows, self.target)
        both = len({row.trust for row in self.rows}) > 1
        kept = [*(name for name in shown if name in self.target), *shown][:_KEPT]
        columns = [
            TableColumn(
                "trust",
                [row.trust for row in self.rows],
                "trust",
                str,
                left=True,
                note=_TRUST if both else "",
            ),
            TableColumn("epsilon", [row.epsilon for row in self.rows], "epsilon", ".4g"),
            TableColumn("n", [row.n for row in self.rows], "n", ",d"),
            *(
                TableColumn(
                    name,
                    [row.expected(name) for row in self.rows],
                    name if self._unit else labelled(name, self.unit_of(name)),
                    ".3g",
                    spare=name not in kept,
                    note=_BAND if name == BAND else "",
                )
                for name in shown
            ),
        ]
        if any(row.needed is not None for row in self.rows):
            forms = ("n", "needs n", _two_digits), ("epsilon", "or epsilon", "{:.3g}".format)
            for key, label, form in forms:
                values = [row.needed_in_words(key, form) for row in self.rows]
                columns.append(TableColumn(f"needed_{key}", values, label, str))
        least = [row.least for row in self.rows]
        low = [value is not None and value < DOUBTFUL for value in least]
        columns += [
            TableColumn(
                "contraction",
                least,
                "contraction",
                ".2f",
                bad=low,
                spare=True,
                if_any=True,
                note=_CONTRACTION if any(value is not None for value in least) else "",
            ),
            TableColumn(
                "best",
                ["best" if row.best else "" for row in self.rows],
                " ",
                str,
                left=True,
                note=_BEST if both else "",
            ),
        ]
        table = Table("mechanism", [row.mechanism for row in self.rows], columns)
        said, left_out = self._said(), [self.left_out] * bool(self.left_out)
        section = ResultSection(
            "advice",
            self.to_json(),
            "What each release would tell",
            brief=said,
            text=[[table], left_out],
            page=[*said, table, *left_out],
        )
        return Tree(
            "Advice",
            "Which mechanism, epsilon and number of records",
            "Nothing is released, so that nothing is spent.",
            (section,),
            (*self.warnings, *_weak(self.rows)),
            calm="Errors are those of sampling, noise and smoothing together."
            if self.synthetic
            else "Every row is told by its release rather than by the prior.",
        )


def _weak(rows: Sequence[Row]) -> list[str]:
    """Say of which mechanisms a delta is 1/n or more, where it is so the most."""
    by_weight = sorted(rows, key=lambda row: row.delta * row.n)
    worst = {row.mechanism: row for row in by_weight if row.delta * row.n >= 1}
    return [f"{name}: {permits_verbatim(row.delta, row.n)}" for name, row in worst.items()]


def _shown(rows: Sequence[Row], target: Mapping[str, float]) -> list[str]:
    """Return the quantities that a terminal has room for, those that are wanted first."""
    every = list(rows[0].sd) if rows else []
    found = [name for name in every if name in target]
    found += [name for name in every if name not in target]
    found = [name for name in every if name in found[:_MOST_COLUMNS]]
    return found + ([BAND] if rows and rows[0].band is not None else [])


def _two_digits(n: int) -> str:
    """Return a number of records with two digits, rounded up: more are not known."""
    step = 10 ** max(0, len(str(n)) - 2)
    return f"{-(-n // step) * step:,d}"


# Which mechanism is best, and what a target needs


def judged(rows: Sequence[Row], target: Mapping[str, float]) -> list[Row]:
    """Return the rows with the best mechanism of each trust model at each epsilon and n marked.

    Who is not trusted with all records has no use for a global release that is better.

    Best is the least geometric mean of the standard deviations and the band; with a target the least of the
    largest ratio to what is wanted.
    """

    def loss(row: Row) -> float:
        if target:
            return max(row.expected(name) / wanted for name, wanted in target.items())
        values = [*row.sd.values(), *([] if row.band is None else [row.band])]
        return float(np.mean([math.log(max(value, 1e-300)) for value in values]))

    least: dict[Key, float] = {}
    for row in rows:
        at = (row.epsilon, row.n, row.trust)
        least[at] = min(loss(row), least.get(at, math.inf))
    return [replace(row, best=loss(row) <= least[row.epsilon, row.n, row.trust]) for row in rows]


def needed_of(rows: Sequence[Row], target: Mapping[str, float]) -> list[Row]:
    """Return the rows with the epsilon and n that the target needs, by the rows of their mechanism.

    Between rows logarithms are interpolated; beyond them the last slope goes on: in epsilon by a factor of 4,
    in n by one of 100. Where noise hides the density the slope is the prior's, and says nothing farther on.
    """
    if not target:
        return list(rows)

    def of(row: Row) -> dict[str, Any]:
        own = [other for other in rows if other.mechanism == row.mechanism]
        at_n = sorted((o for o in own if o.n == row.n), key=lambda o: o.epsilon)
        at_epsilon = sorted((o for o in own if o.epsilon == row.epsilon), key=lambda o: o.n)
        epsilon, epsilon_at_most = max(
            _reached([o.epsilon for o in at_n], [o.expected(name) for o in at_n], wanted, _FARTHEST)
            for name, wanted in target.items()
        )
        n, n_at_most = max(
            _reached([o.n for o in at_epsilon], [o.expected(name) for o in at_epsilon], wanted, _FARTHEST_N)
            for name, wanted in target.items()
        )
        found: dict[str, Any] = {
            "epsilon": epsilon if math.isfinite(epsilon) else None,
            "n": max(1, math.ceil(n * (1.0 - _ROUNDING))) if math.isfinite(n) else None,
        }
        at_most = [
            name for name, is_most in (("epsilon", epsilon_at_most), ("n", n_at_most and n > 1.0)) if is_most
        ]
        return found | ({"at_most": at_most} if at_most else {})

    return [replace(row, needed=of(row)) for row in rows]


def _reached(
    places: Sequence[float], values: Sequence[float], wanted: float, farthest: float
) -> tuple[float, bool]:
    """Return where values, falling with their places, come down to what is wanted; infinite where nowhere.

    Farther than by the factor `farthest` from the places nothing is said: infinite above; below the end, and
    True, for less may do.
    """
    x, y = np.log(np.asarray(places, dtype=np.float64)), np.log(np.asarray(values, dtype=np.float64))
    y, goal = np.minimum.accumulate(y), math.log(wanted)
    if len(x) == 1:
        slope = -0.5
    elif goal > y[0]:
        slope = float((y[1] - y[0]) / (x[1] - x[0]))
    else:
        slope = float((y[-1] - y[-2]) / (x[-1] - x[-2]))
    if goal > y[0]:
        found = x[0] + (goal - y[0]) / min(slope, -0.05)
        end = x[0] - math.log(farthest)
        return (places[0] / farthest, True) if found < end else (float(math.exp(found)), False)
    if goal < y[-1]:
        if slope > -0.05:
            return math.inf, False
        found = x[-1] + (goal - y[-1]) / slope
        return (math.inf if found > x[-1] + math.log(farthest) else float(math.exp(found))), False
    return float(math.exp(np.interp(-goal, -y, x))), False


# The picture


def draw(advice: Advice) -> Figure:
    """Return the figure: logarithmic axes, a line a mechanism, a dashed line at what is wanted.

    Points of global releases are hollow.
    """
    from dpmix.store.html import INK, drawings, line_style  # late: matplotlib takes its time

    sizes = sorted({row.n for row in advice.rows})
    if len(sizes) > _PANELS:
        sizes = [sizes[round(i * (len(sizes) - 1) / (_PANELS - 1))] for i in range(_PANELS)]
    kinds = list(dict.fromkeys((row.mechanism, row.trust) for row in advice.rows))
    name = advice.quantity
    values = [row.expected(name) for row in advice.rows if row.n in sizes]
    wanted = advice.target.get(name)
    every = [*values, *([] if wanted is None else [wanted])]
    with drawings((max(4.4, 2.5 * len(sizes) + 0.6), 3.3), len(sizes)) as (figure, panels):
        handles = []
        for axes, n in zip(panels, sizes, strict=True):
            lines = []
            for place, (kind, trust) in enumerate(kinds):
                own = sorted(
                    (row for row in advice.rows if row.mechanism == kind and row.n == n),
                    key=lambda row: row.epsilon,
                )
                (line,) = axes.plot(
                    [row.epsilon for row in own],
                    [row.expected(name) for row in own],
                    markersize=4.5,
                    markerfacecolor=None if trust == "local" else "white",
                    lw=1.4,
                    label=f"{kind} ({trust})",
                    **line_style(place, marked=True),
                )
                lines.append(line)
            if wanted is not None:
                axes.axhline(wanted, color=INK, ls="--", lw=0.9)
                axes.annotate(
                    "wanted",
                    (0.02, wanted),
                    (0, 3),
                    xycoords=("axes fraction", "data"),
                    textcoords="offset points",
                    fontsize=8,
                )
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            ticks = sorted({row.epsilon for row in advice.rows})
            axes.set_xticks(ticks if len(ticks) <= 6 else ticks[:: len(ticks) // 5], minor=False)
            axes.set_xticklabels([f"{tick:g}" for tick in axes.get_xticks()])
            axes.minorticks_off()
            _number(axes, 0.8 * min(every), 1.25 * max(every))
            axes.set(xlabel="epsilon", title=f"n = {n:,}")
            if axes is not panels[0]:
                axes.tick_params(labelleft=False)
            handles = lines
        of = "rms error of" if advice.synthetic else "posterior sd of"
        what = "width of the bands" if name == BAND else labelled(f"{of} {name}", advice.unit_of(name))
        panels[0].set_ylabel(what)
        figure.legend(handles=handles, loc="outside upper left", ncols=min(3, len(kinds)), handlelength=2.4)
    return figure


def _number(axes: Axes, low: float, high: float) -> None:
    """Give a logarithmic vertical axis its ends, and plain numbers within them, three or more."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    from dpmix.store.html import plain_number

    axes.set_ylim(low, high)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    places: list[float] = []
    for leading in ((1,), (1, 3), (1, 2, 5), range(1, 10), [n / 10 for n in range(10, 100)]):
        places = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in leading]
        places = [place for place in places if low <= place <= high]
        if len(places) >= _LEAST_TICKS:
            break
    axes.yaxis.set_major_locator(FixedLocator(places[:: max(1, len(places) // _MOST_TICKS)]))
    axes.yaxis.set_major_formatter(FuncFormatter(plain_number))


def write(advice: Advice, path: Path, *, force: bool) -> None:
    """Write the picture, or a page with it and the table, as the name of the file says.

    Raises
    ------
    DataError
        When it cannot be written.
    """
    from dpmix.store.html import captioned, picture  # as in `draw`

    figure, kind = draw(advice), path.suffix.lower().lstrip(".")
    if kind in ("svg", "png"):
        write_bytes(path, picture(figure, kind), force=force)
        return
    name = advice.quantity
    of = "root mean square error of synthetic records in" if advice.synthetic else "posterior sd of"
    what = "integrated width of the density's bands" if name == BAND else f"{of} {name}"
    words = f"Expected {what} against epsilon, for {advice.population}."
    page = to_page(advice.tree, {"advice": [captioned(figure, f"{words} {_finding(advice)}", words)]})
    write_bytes(path, page.encode("utf-8"), force=force)


def _finding(advice: Advice) -> str:
    """Say which mechanism of each trust model tells most, for each epsilon and number of records."""
    least: dict[tuple[float, int], list[str]] = {}
    for row in advice.rows:
        if row.best:
            sd = advice.with_unit(advice.quantity, row.expected(advice.quantity), ".3g")
            least.setdefault((row.epsilon, row.n), []).append(
                f"{row.mechanism} of {row.trust} releases, {advice.quantity} to {sd}"
            )
    return " ".join(
        f"Best at epsilon = {epsilon:g}, n = {n:,}: {'; '.join(found)}."
        for (epsilon, n), found in list(least.items())[:_MOST_SAID]
    )
