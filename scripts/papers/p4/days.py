"""Table 2: shares of the day by sex, of the American Time Use Survey 2019 or simulated with its means."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers import draw
from papers.p4.cells import CONFIGS, GROUPS, Cell, Results, Size, shares_of

__all__ = [
    "CELLS",
    "COLUMNS",
    "DRAW",
    "PUBLISHED_MEANS",
    "beyond",
    "prepare",
    "simulated_days",
    "survey_file",
    "table",
]

COLUMNS = ("personal_care", "eating_drinking", "other")
PUBLISHED_MEANS = {"female": (0.411, 0.0507, 0.538), "male": (0.392, 0.0508, 0.557)}
"""Table 2, the line "Boots": estimates without privacy."""
MARGIN = 0.01
LEVEL = 0.95
TESTED = ("Boots", "DPBoots", "MCMC p1", "DPMCMC p1", "DPreMCMC p4", "DPABC p5")
_WHAT = {"table2_days": "shares simulated with the published means", "table2": "the survey"}
_SIZES = {"female": 3766, "male": 3359}
_CONCENTRATION = 30.0  # the paper prints none; estimates from the survey are 31 and 32

Floats = NDArray[np.float64]


def simulated_days(sex: str) -> Floats:
    """Return what configs/data/days_female.csv and days_male.csv hold, shape (n, 3).

    Draws from Dirichlet(30 m), m the published means of that sex divided by their sum, as many as the paper
    has; the first two shares are rounded to four digits, and the last is the rest.
    """
    mean = np.array(PUBLISHED_MEANS[sex])
    rng = np.random.default_rng(2019 + sorted(PUBLISHED_MEANS).index(sex))
    shares = rng.dirichlet(_CONCENTRATION * mean / mean.sum(), _SIZES[sex])
    whole = np.rint(10_000 * shares[:, :2])
    return np.column_stack([whole, 10_000 - whole.sum(axis=1)]) / 10_000


def survey_file(sex: str) -> str:
    """Return the name of the file of the survey."""
    return f"atus2019_{sex}.csv"


def prepare(folder: Path, data: Path) -> str | None:
    """Copy the survey to `folder`; say why not where it is not there."""
    for sex in PUBLISHED_MEANS:
        source, target = data / survey_file(sex), _placed("table2", sex, folder)
        if target.exists():
            continue
        if not source.is_file():
            return (
                f"{source} is not there, and does not ship: give its folder by --data, or by the variable "
                "DPMIX_DATA"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return None


def _placed(figure: str, sex: str, folder: Path) -> Path:
    if figure == "table2_days":
        return CONFIGS / "data" / f"days_{sex}.csv"
    return (folder / "data" / survey_file(sex)).resolve()


def _name(figure: str, sex: str, method: str) -> str:
    return f"{figure}/{sex}/{method.replace(' ', '')}"


def _cells(figure: str, size: Size, folder: Path) -> list[Cell]:
    return [
        Cell(
            _name(figure, sex, method),
            "p4/days.yaml",
            (f"data.path={_placed(figure, sex, folder)}",),
            (method,),
            1 if method in GROUPS["open"] else size.releases,
            size.rounds,
            max(size.draws, 200),
        )
        for sex in PUBLISHED_MEANS
        for method in TESTED
    ]


def beyond(women: Floats, men: Floats) -> tuple[float, bool]:
    """Return how often two shares are at most 0.01 apart, and whether their interval says otherwise.

    Over all pairs of draws (m,) of one and of the other; the interval is that of 95% confidence.
    """
    apart = (women[:, None] - men[None, :]).ravel()
    lower, upper = np.quantile(apart, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float((np.abs(apart) <= MARGIN).mean()), bool(lower > MARGIN or upper < -MARGIN)


def table(results: Results, figure: str) -> list[dict[str, Any]]:
    """Return the rows of Table 2: means, how often "no difference" is rejected, and its mean probability."""
    rows = []
    for method in TESTED:
        both = [shares_of(results[_name(figure, sex, method)], method) for sex in PUBLISHED_MEANS]
        for j, activity in enumerate(COLUMNS):
            tests = [beyond(women[:, j], men[:, j]) for women, men in zip(*both, strict=True)]
            probability = float(np.mean([chance for chance, _ in tests]))
            is_bootstrap = "Boots" in method
            rejected = [outside if is_bootstrap else chance < 0.5 for chance, outside in tests]
            rows.append(
                {
                    "method": method,
                    "activity": activity,
                    **{
                        sex: float(np.mean([found[:, j].mean() for found in draws]))
                        for sex, draws in zip(PUBLISHED_MEANS, both, strict=True)
                    },
                    "rejected": float(np.mean(rejected)),
                    "probability": "" if is_bootstrap else probability,
                    "releases": len(tests),
                }
            )
    return rows


def _intervals(apart: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return middle and half length (releases,) of the intervals of differences, (pairs,) of each release."""
    ends = np.array([np.quantile(pairs, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) for pairs in apart])
    return ends.mean(axis=1), 0.5 * (ends[:, 1] - ends[:, 0])


def _draw(figure: str, results: Results, folder: Path) -> None:
    """Intervals of the difference between women and men, of each release."""
    title = f"Women less men, {_WHAT[figure]}: 95% intervals of each release at ε = 0.5; grey: up to 0.01"
    with draw.panels(folder / f"{figure}.png", 1, len(COLUMNS), title, (3.0, 3.0), sharey=True) as (_, axes):
        for j, panel in enumerate(axes[0]):
            panel.axvspan(-MARGIN, MARGIN, color=draw.GREY, lw=0)
            for row, method in enumerate(TESTED):
                both = [shares_of(results[_name(figure, sex, method)], method) for sex in PUBLISHED_MEANS]
                apart = [(w[:, None, j] - m[None, :, j]).ravel() for w, m in zip(*both, strict=True)]
                middle, half = _intervals(apart)
                shift = np.linspace(-0.3, 0.3, len(middle)) if len(middle) > 1 else np.zeros(1)
                colour = draw.INK if method in GROUPS["open"] else draw.COLOURS[0]
                panel.errorbar(middle, row + shift, xerr=half, fmt="o", ms=2, lw=0.9, color=colour)
            panel.set_title(COLUMNS[j].replace("_", " and " if j == 1 else " "))
            panel.set_yticks(range(len(TESTED)), TESTED)
            panel.set_ylim(len(TESTED) - 0.4, -0.6)
            panel.set_xlabel("difference of E[x]")
    draw.save_table(folder / f"{figure}.csv", table(results, figure))


CELLS = {figure: (lambda size, folder, f=figure: _cells(f, size, folder)) for figure in _WHAT}
DRAW = {figure: (lambda results, size, folder, f=figure: _draw(f, results, folder)) for figure in _WHAT}
