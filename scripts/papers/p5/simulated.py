"""Sections 4 and 5: posterior means, acceptance and coverage by epsilon. Figures 1 and 2, Table 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.data import simulations
from dpmix.data.loading import load_data
from dpmix.spec import load_spec
from papers import draw
from papers.kept import tag
from papers.p5.cells import CONFIGS, EPSILONS, LEVEL, Cell, Results, Size

__all__ = ["CELLS", "DRAW", "FIGURES", "acceptance", "coverage", "means"]

Floats = NDArray[np.float64]
PRIOR = 2.0  # of the Dirichlets
PRIOR_SD = 2.0  # of the coefficients


@dataclass(frozen=True)
class Subject:
    """One model of the paper.

    Parameters
    ----------
    spec : str
        File in configs.
    parameter : str
        What is looked at.
    labels : tuple of str
        Names of its entries.
    plain : tuple of str
        Overrides under which chains are those of Algorithm 1.
    what : str
        The model in words.
    """

    spec: str
    parameter: str
    labels: tuple[str, ...]
    plain: tuple[str, ...]
    what: str


BAYES = Subject(
    "p5/naive_bayes.yaml",
    "p",
    tuple(f"$p_{i}$" for i in range(1, 6)),
    ("sampler.latent=metropolis",),
    "naive Bayes",
)
LINE = Subject(
    "p5/linear_regression.yaml",
    "beta",
    tuple(f"$\\beta_{i}$" for i in range(3)),
    ("sampler.joint=false",),
    "linear regression",
)
FIGURES = {"fig1": BAYES, "fig2": LINE}
TABLES = {
    "table1": (BAYES, ()),
    "table1_regression": (LINE, ()),
    "table1_exact": (LINE, ("mechanism.calibration=exact",)),
}


def name(figure: str, epsilon: float, plain: bool = False) -> str:
    """Return the name of a cell: of posteriors, or of the chains of Algorithm 1 given the same releases."""
    return f"{figure}/eps{tag(epsilon)}" + ("/algorithm1" if plain else "")


def _cells(figure: str, size: Size) -> list[Cell]:
    if figure in FIGURES:
        subject, job, runs, kinds = FIGURES[figure], "releases", size.releases, (False, True)
        more: tuple[str, ...] = ()
    else:
        (subject, more), job, runs, kinds = TABLES[figure], "replicates", size.replicates, (False,)
        runs = max(2, runs // 2) if more else runs  # beside the paper's table, not in it
    return [
        Cell(
            name(figure, epsilon, plain),
            subject.spec,
            (f"mechanism.epsilon={epsilon}", *(subject.plain if plain else more)),
            job,
            runs,
            size.rounds[:1] if plain else size.rounds,
            (subject.parameter,),
        )
        for plain in kinds
        for epsilon in EPSILONS
    ]


def truth(subject: Subject) -> Floats:
    """Return the parameters that the data come from."""
    return simulations.five_classes_law()[0] if subject is BAYES else np.array(simulations.REGRESSION_BETA)


def prior_mean(subject: Subject) -> Floats:
    """Return the prior mean of the parameters."""
    return np.full(5, 0.2) if subject is BAYES else np.zeros(3)


def confidential_mean(subject: Subject, clamped: bool = False) -> Floats:
    """Return the posterior mean given the data that Figures 1 and 2 hold fixed, or given these clamped."""
    values = load_data(load_spec(CONFIGS / subject.spec)).values
    if subject is BAYES:
        counts = np.bincount(values[:, -1].astype(int), minlength=5)
        return np.asarray((PRIOR + counts) / (5 * PRIOR + len(values)))
    values = values.clip(-10.0, 10.0) if clamped else values
    x = np.column_stack([np.ones(len(values)), values[:, :-1]])
    precision = x.T @ x / simulations.REGRESSION_VARIANCE + np.eye(3) / PRIOR_SD**2
    return np.asarray(np.linalg.solve(precision, x.T @ values[:, -1] / simulations.REGRESSION_VARIANCE))


def means(results: Results, figure: str) -> Floats:
    """Return posterior means, shape (epsilon, release, entry)."""
    key = FIGURES[figure].parameter
    return np.array(
        [[row["parameters"][key]["mean"] for row in results[name(figure, e)]["rows"]] for e in EPSILONS]
    )


def acceptance(results: Results, figure: str, which: str) -> Floats:
    """Return mean or least acceptance rates of chains, shape (epsilon, release)."""
    each = [results[name(figure, e, plain=True)]["rows"] for e in EPSILONS]
    return np.array([[row["acceptance"][which] for row in rows] for rows in each])


def coverage(results: Results, table: str) -> tuple[Floats, Floats]:
    """Return coverage and mean length of the intervals, shape (epsilon, entry) each."""
    subject, _ = TABLES[table]
    covered, length = [], []
    for epsilon in EPSILONS:
        found = [row["parameters"][subject.parameter] for row in results[name(table, epsilon)]["rows"]]
        lower, upper = (np.array([f[end] for f in found]) for end in ("lower", "upper"))
        covered.append(((lower <= truth(subject)) & (truth(subject) <= upper)).mean(axis=0))
        length.append((upper - lower).mean(axis=0))
    return np.array(covered), np.array(length)


def _figure(figure: str, results: Results, folder: Path) -> None:
    """Posterior means of every release by epsilon, and acceptance rates."""
    subject = FIGURES[figure]
    found, own, prior = means(results, figure), confidential_mean(subject), prior_mean(subject)
    count = len(subject.labels)
    columns = (count + 2) // 2
    title = (
        f"Figure {figure[-1]}: {subject.what}, {found.shape[1]} releases of one data set\n"
        "solid: posterior mean given the data, dashed: prior mean"
    )
    place = np.arange(len(EPSILONS))
    shift = np.linspace(-0.25, 0.25, found.shape[1])
    with draw.panels(folder / f"{figure}.png", 2, columns, title, (2.7, 2.1)) as (shown, axes):
        for i, panel in enumerate(axes.flat[:count]):
            for e in place:
                panel.plot(e + shift, found[e, :, i], ".", ms=2.5, color=draw.COLOURS[0], alpha=0.6)
            panel.axhline(own[i], color=draw.INK, lw=0.9)
            panel.axhline(prior[i], color=draw.INK, lw=0.9, ls="--")
            panel.set_title(f"posterior mean of {subject.labels[i]}")
        panel = axes.flat[count]
        for which, colour, label in (("mean", 0, "mean of a chain"), ("least", 1, "least sweep")):
            rates = acceptance(results, figure, which)
            for e in place:
                panel.plot(
                    e + shift,
                    rates[e],
                    ".",
                    ms=2.5,
                    color=draw.COLOURS[colour],
                    alpha=0.6,
                    label=label if e == 0 else None,
                )
        panel.plot(place, np.exp(-np.array(EPSILONS)), color=draw.INK, lw=0.9, label=r"$e^{-\epsilon}$")
        panel.set_title("acceptance of Algorithm 1")
        panel.set_ylim(-0.03, 1.03)
        for panel in axes.flat[count + 1 :]:
            panel.set_visible(False)
        for panel in axes.flat[: count + 1]:
            panel.set_xticks(place, [tag(e) for e in EPSILONS])
            panel.set_xlabel("ε")
        draw.legend(shown, axes.flat[count], 3)
    draw.save_table(folder / f"{figure}.csv", _rows(figure, results))


def _rows(figure: str, results: Results) -> list[dict[str, Any]]:
    subject, found = FIGURES[figure], means(results, figure)
    own, prior = confidential_mean(subject), prior_mean(subject)
    return [
        {
            "epsilon": epsilon,
            "entry": f"{subject.parameter}[{i}]",
            "prior": prior[i],
            "confidential": own[i],
            "mean": found[e, :, i].mean(),
            "sd": found[e, :, i].std(ddof=1),
            "acceptance": acceptance(results, figure, "mean")[e].mean(),
            "acceptance_least": acceptance(results, figure, "least")[e].min(),
            "bound": math.exp(-epsilon),
        }
        for e, epsilon in enumerate(EPSILONS)
        for i in range(len(subject.labels))
    ]


def _table(table: str, results: Results, folder: Path) -> None:
    """Coverage in the layout of Table 1, as a picture and a table."""
    subject, _ = TABLES[table]
    covered, length = coverage(results, table)
    true = truth(subject)
    runs = len(results[name(table, EPSILONS[0])]["rows"])
    title = f"Coverage of {LEVEL:.0%} intervals, {subject.what}, {runs} data sets at each ε"
    if table == "table1_exact":
        title += ", noise by the exact sensitivity"
    place = np.arange(len(EPSILONS))
    with draw.panels(folder / f"{table}.png", 1, 2, title, (4.0, 2.8)) as (shown, axes):
        error = math.sqrt(LEVEL * (1 - LEVEL) / runs)
        axes[0, 0].axhspan(LEVEL - 2 * error, LEVEL + 2 * error, color=draw.GREY, lw=0, label="0.9 ± 2 s.e.")
        for i, label in enumerate(subject.labels):
            style: dict[str, Any] = {"color": draw.COLOURS[i], "ls": draw.STYLES[i], "marker": "o", "ms": 3.5}
            axes[0, 0].plot(place, covered[:, i], label=f"{label} = {true[i]:.3f}", lw=1.1, **style)
            axes[0, 1].plot(place, length[:, i], lw=1.1, **style)
        axes[0, 0].set_title("share of intervals with the truth in them")
        axes[0, 1].set_title("mean length")
        axes[0, 0].set_ylim(-0.03, 1.05)
        axes[0, 1].set_ylim(bottom=0.0)
        for panel in axes.flat:
            panel.set_xticks(place, [tag(e) for e in EPSILONS])
            panel.set_xlabel("ε")
        draw.legend(shown, axes[0, 0], 6)
    rows = [
        {"epsilon": epsilon}
        | {f"{subject.parameter}[{i}] = {true[i]:.3f}": covered[e, i] for i in range(len(true))}
        | {f"length of {subject.parameter}[{i}]": length[e, i] for i in range(len(true))}
        for e, epsilon in enumerate(EPSILONS)
    ]
    draw.save_table(folder / f"{table}.csv", rows)


CELLS = {figure: (lambda size, f=figure: _cells(f, size)) for figure in (*FIGURES, *TABLES)}
DRAW = {
    **{figure: (lambda results, size, folder, f=figure: _figure(f, results, folder)) for figure in FIGURES},
    **{table: (lambda results, size, folder, t=table: _table(t, results, folder)) for table in TABLES},
}
