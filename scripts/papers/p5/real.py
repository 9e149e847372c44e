"""Real data: voters' party and choice, food expenditure on income, incomes on schooling and age."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers import draw
from papers.kept import tag
from papers.p5.cells import CONFIGS, Cell, Results, Size

__all__ = ["CELLS", "DRAW", "INCOMES", "confidential", "prepare", "table"]

INCOMES = "acs2011_income.csv"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Subject:
    """A data set.

    Parameters
    ----------
    spec : str
        File in configs.
    epsilons : tuple of float
        Of the releases.
    keep : tuple of str
        Parameters that are looked at, the first of which is drawn.
    title : str
        What is drawn.
    labels : tuple of str
        Names of the panels, one a row of what is drawn.
    """

    spec: str
    epsilons: tuple[float, ...]
    keep: tuple[str, ...]
    title: str
    labels: tuple[str, ...]


SUBJECTS = {
    "anes": Subject(
        "anes_naive_bayes.yaml",
        (0.3, 1.0, 3.0, 10.0),
        ("p_feature_1",),
        "American National Election Study 1996, 944 voters: party identification by vote",
        ("voted for Clinton", "voted for Dole"),
    ),
    "engel": Subject(
        "engel_regression.yaml",
        (1.0, 3.0, 10.0, 30.0),
        ("beta", "prediction"),
        "Engel's data, 235 households: food expenditure on income, francs",
        ("intercept", "slope of income"),
    ),
    "incomes": Subject(
        "p5/incomes.yaml",
        (0.3, 1.0, 3.0, 10.0),
        ("beta",),
        "American Community Survey 2011, 4,467 persons: log10 income on schooling and age",
        ("intercept", "schooling", "age"),
    ),
}


def prepare(folder: Path, data: Path) -> str | None:
    """Write the logged incomes that the spec wants, in `folder`; say why not where they are not there."""
    target, source = _file(folder), data / INCOMES
    if target.exists():
        return None
    if not source.is_file():
        return (
            f"{source} is not there, and does not ship: give its folder by --data, or by the variable "
            "DPMIX_DATA"
        )
    with source.open(newline="") as file:
        rows = [
            f"{row['schooling']},{row['age']},{math.log10(float(row['income']))!r}\n"
            for row in csv.DictReader(file)
        ]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("schooling,age,log_income\n" + "".join(rows))
    return None


def _file(folder: Path) -> Path:
    return (folder / "data" / "incomes.csv").resolve()


def name(data: str, epsilon: float) -> str:
    """Return the name of a cell."""
    return f"{data}/eps{tag(epsilon)}"


def _cells(data: str, size: Size, folder: Path) -> list[Cell]:
    subject = SUBJECTS[data]
    place = (f"data.path={_file(folder)}",) if data == "incomes" else ()
    return [
        Cell(
            name(data, epsilon),
            subject.spec,
            (*place, f"mechanism.epsilon={epsilon}"),
            "real",
            size.real,
            size.rounds,
            subject.keep,
        )
        for epsilon in subject.epsilons
    ]


def confidential(data: str, folder: Path) -> Floats:
    """Return what is drawn by the confidential data: posterior mean of the counts, or least squares."""
    paths = {"anes": "data/anes96.csv", "engel": "data/engel.csv"}
    values = np.loadtxt(
        CONFIGS / paths[data] if data in paths else _file(folder), delimiter=",", skiprows=1, ndmin=2
    )
    if data == "anes":
        counts = np.zeros((2, 7))
        np.add.at(counts, (values[:, 3].astype(int), values[:, 0].astype(int)), 1.0)
        return np.asarray((2.0 + counts) / (14.0 + counts.sum(axis=1, keepdims=True)))
    x = np.column_stack([np.ones(len(values)), values[:, :-1]])
    return np.asarray(np.linalg.lstsq(x, values[:, -1], rcond=None)[0])


def found(results: Results, data: str, key: str, epsilon: float) -> Floats:
    """Return mean, lower or upper end of what is drawn, shape (release, ..)."""
    rows = results[name(data, epsilon)]["rows"]
    return np.array([row["parameters"][SUBJECTS[data].keep[0]][key] for row in rows])


def table(results: Results, data: str, folder: Path) -> list[dict[str, Any]]:
    """Return a row for each epsilon and row of what is drawn, over releases and entries."""
    own, rows = confidential(data, folder), []
    for epsilon in SUBJECTS[data].epsilons:
        mean, lower, upper = (found(results, data, key, epsilon) for key in ("mean", "lower", "upper"))
        runs = results[name(data, epsilon)]["rows"]
        for i, label in enumerate(SUBJECTS[data].labels):
            rows.append(
                {
                    "epsilon": epsilon,
                    "what": label,
                    "confidential": own[i].tolist(),
                    "mean": mean[:, i].mean(axis=0).tolist(),
                    "rmse": float(np.sqrt(np.mean((mean[:, i] - own[i]) ** 2))),
                    "length": float(np.mean(upper[:, i] - lower[:, i])),
                    "held": float(np.mean((lower[:, i] <= own[i]) & (own[i] <= upper[:, i]))),
                    "releases": len(runs),
                    "seconds": float(np.mean([run["seconds"] for run in runs])),
                }
            )
    return rows


def _figure(data: str, results: Results, folder: Path) -> None:
    subject, own = SUBJECTS[data], confidential(data, folder)
    count = len(subject.labels)
    black = "posterior mean" if data == "anes" else "least squares"
    title = f"{subject.title}\n90% intervals; black: {black} given the data"
    width = 4.0 if count == 2 else 2.9
    with draw.panels(folder / f"{data}.png", 1, count, title, (width, 2.8)) as (
        shown,
        axes,
    ):
        for i, panel in enumerate(axes[0]):
            panel.set_title(subject.labels[i])
            if data == "anes":
                _shares(panel, results, data, i, own[i])
            else:
                _intervals(panel, results, data, i, float(own[i]))
        if data == "anes":
            draw.legend(shown, axes[0, 0], 5)
    draw.save_table(folder / f"{data}.csv", table(results, data, folder))


def _shares(panel: Any, results: Results, data: str, i: int, own: Floats) -> None:
    """Draw the shares by the first release of each epsilon."""
    place = np.arange(len(own))
    for number, epsilon in enumerate(SUBJECTS[data].epsilons):
        mean, lower, upper = (found(results, data, k, epsilon)[0, i] for k in ("mean", "lower", "upper"))
        panel.errorbar(
            place + 0.16 * (number - 1.5),
            mean,
            (mean - lower, upper - mean),
            fmt="o",
            ms=3,
            lw=1.1,
            color=draw.COLOURS[number],
            label=f"ε = {tag(epsilon)}",
        )
    panel.plot(place, own, "_", ms=20, mew=1.2, color=draw.INK, label="given the data")
    panel.set_xticks(place, ["strong\nDem.", "weak", "leaning", "indep.", "leaning", "weak", "strong\nRep."])
    panel.tick_params(axis="x", labelsize=7)
    panel.set_ylim(bottom=0.0)


def _intervals(panel: Any, results: Results, data: str, i: int, own: float) -> None:
    """Draw the intervals of every release."""
    for number, epsilon in enumerate(SUBJECTS[data].epsilons):
        mean, lower, upper = (found(results, data, k, epsilon)[:, i] for k in ("mean", "lower", "upper"))
        shift = np.linspace(-0.3, 0.3, len(mean)) if len(mean) > 1 else np.zeros(1)
        bars = (mean - lower, upper - mean)
        panel.errorbar(number + shift, mean, bars, fmt="o", ms=3, lw=1.1, color=draw.COLOURS[0])
    panel.axhline(own, color=draw.INK, lw=0.9)
    panel.set_xticks(range(len(SUBJECTS[data].epsilons)), [tag(e) for e in SUBJECTS[data].epsilons])
    panel.set_xlabel("ε")


CELLS = {data: (lambda size, folder, d=data: _cells(d, size, folder)) for data in SUBJECTS}
DRAW = {data: (lambda results, size, folder, d=data: _figure(d, results, folder)) for data in SUBJECTS}
