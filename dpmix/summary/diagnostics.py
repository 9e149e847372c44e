"""Scalars: summaries of their series and convergence diagnostics, through arviz-stats, and their table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.columns.dated import NONE, Dated
from dpmix.results.nodes import (
    ABSENT,
    Array,
    Block,
    Each,
    Items,
    Note,
    ResultSection,
    Table,
    TableColumn,
    Tile,
    figure,
)
from dpmix.spec.capabilities import counted
from dpmix.spec.days import Day, day_text, placed

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats

RHAT = 1.01
ESS = 400.0
LEARNT = 0.1
"""Contraction below which the prior, not the release, speaks."""
MIN_DRAWS = 4
_NARROWER = 0.5
"""Contraction of the central 95% from which on a posterior beyond the prior's quartiles was moved there."""
_NOTHING = 1e-100  # of the posterior's range: a prior whose range is less does not vary


@functools.cache
def arviz() -> Any:
    """Return the functions of arviz-stats on arrays, imported late: fits know this module, and need none."""
    from arviz_stats.base import array

    return array.array_stats  # arviz-stats has types, but not for these


@dataclass(frozen=True)
class Scalar:
    """One scalar's posterior and how well the chains know it; None where a figure does not exist.

    Parameters
    ----------
    mean, sd : float
        Over all draws of all chains.
    quantiles : dict of str to float
        At the ends of the equal-tailed interval and the median; keys are the levels.
    rhat : float or None
        Rank-normalised split R-hat (Vehtari et al. 2021), the larger of its bulk and folded versions.
    ess_bulk, ess_tail : float or None
        Effective sample sizes; the tail's at the ends of the interval.
    mcse : float or None
        Monte Carlo standard error of the mean.
    note : str or None
        Why a figure is None, in words.
    stuck_apart : bool
        Whether every chain is constant, at values that differ (R-hat is then infinite).
    contraction : float or None
        1 - (IQR / IQR of the prior)^2: what the release taught (see `contraction`).
    beside_prior : str
        What that figure does not tell: "wider" or "moved" (see `beside_prior`); else empty.
    held_up : bool
        Whether the prior, and not the release, ends the interval below (see `dpmix.summary.prior.held_up`),
        or draws a correlation towards 0 (`drawn_in` there).
    prior : tuple of float, optional
        The prior's quantiles at the levels of `quantiles`, where draws from it are known.
    """

    mean: float
    sd: float
    quantiles: dict[str, float]
    rhat: float | None
    ess_bulk: float | None
    ess_tail: float | None
    mcse: float | None
    note: str | None
    stuck_apart: bool = False
    contraction: float | None = None
    beside_prior: str = ""
    held_up: bool = False
    prior: tuple[float, ...] | None = None

    def as_dates(self) -> Scalar:
        """Return it with mean and quantiles that write themselves as dates."""
        ends = {level: Day(value) for level, value in self.quantiles.items()}
        return replace(self, mean=Day(self.mean), quantiles=dict(ends))


def levels(level: float) -> tuple[float, float, float]:
    """Lower end, median and upper end of the equal-tailed interval of probability `level`."""
    return round(0.5 * (1.0 - level), 12), 0.5, round(0.5 * (1.0 + level), 12)


def contraction(posterior: Floats, prior: Floats | None) -> float | None:
    """Return 1 - (IQR of the posterior / IQR of the prior)^2; None without a prior that varies.

    Interquartile ranges, since variances of priors may be infinite (methods, section 15). 1 where the prior
    does not matter, 0 where nothing was learnt, negative where the posterior is the wider: release and prior
    are in conflict.
    """
    if prior is None:
        return None
    with np.errstate(invalid="ignore"):  # of priors whose draws may be infinite
        before, after = (
            float(np.subtract(*np.quantile(draws, (0.75, 0.25)))) for draws in (prior, posterior)
        )
    if not np.isfinite(before) or before <= after * _NOTHING:
        return None
    return 1.0 - (after / before) ** 2


def beside_prior(posterior: Floats, prior: Floats | None, effective: float) -> str:
    """Say how the posterior lies beside the prior, where its contraction is small or negative.

    The range between quartiles is narrow where a prior piles up, as the J-shaped one of a probability under a
    Dirichlet process with little concentration does: a posterior elsewhere may then be the wider by it, and
    far narrower than the prior as a whole. So the central 95% are looked at, too.

    Parameters
    ----------
    posterior : float64 array
    prior : float64 array or None
        Independent draws.
    effective : float
        How many independent draws those of the posterior are worth.

    Returns
    -------
    str
        "wider": between quartiles and over the central 95% the posterior is wider than the prior, by more
        than the Monte Carlo error of both (two standard errors of each quantile): release and prior are in
        conflict. "moved": the posterior's median is outside the prior's quartiles, and its central 95% are
        narrower than the prior's by a contraction of `_NARROWER` or more: the release speaks. Else empty.
    """
    if prior is None:
        return ""

    def spread(draws: Floats, share: float, size: float, sign: float) -> float:
        # of the range of so much probability, made wider (1) or narrower (-1) by the error of its ends
        below = 0.5 * (1.0 - share)
        error = sign * 2.0 * np.sqrt(below * (1.0 - below) / size)
        low, high = np.clip([below - error, 1.0 - below + error], 0.0, 1.0)
        return float(np.subtract(*np.quantile(draws, (max(high, 0.5), min(low, 0.5)))))

    shares = (0.5, 0.95)
    with np.errstate(invalid="ignore"):  # of priors whose draws may be infinite
        least = [spread(posterior, share, max(effective, 1.0), -1.0) for share in shares]
        most = [spread(prior, share, prior.size, 1.0) for share in shares]
        if least[0] > most[0] and least[1] > most[1]:
            return "wider"
        first, last = np.quantile(prior, (0.25, 0.75))
        before, after = spread(prior, shares[1], np.inf, 1.0), spread(posterior, shares[1], np.inf, 1.0)
    outside = not first <= float(np.median(posterior)) <= last
    return "moved" if outside and after < before * np.sqrt(1.0 - _NARROWER) else ""


def describe(series: Floats, level: float, prior: Floats | None = None) -> Scalar:
    """Summarize one scalar.

    Parameters
    ----------
    series : float64 array (chains, draws)
        Finite values.
    level : float
        Probability of the equal-tailed interval.
    prior : float64 array (draws,), optional
        Draws from the prior, for the contraction.
    """
    probabilities = levels(level)
    quantiles = np.quantile(series, probabilities).tolist()
    found = Scalar(
        mean=float(series.mean()),
        sd=float(series.std(ddof=1)) if series.size > 1 else 0.0,
        quantiles=dict(zip([f"{p:.12g}" for p in probabilities], quantiles, strict=True)),
        rhat=None,
        ess_bulk=None,
        ess_tail=None,
        mcse=None,
        note=None,
        contraction=contraction(series, prior) if series.size >= MIN_DRAWS else None,
        prior=None if prior is None else _prior_quantiles(prior, level),
    )
    if np.ptp(series) == 0.0:
        return replace(found, mean=float(series.flat[0]), sd=0.0, mcse=0.0, note="the same in every draw")
    chains, draws = series.shape
    if draws < MIN_DRAWS:
        note = f"no diagnostics from {counted(draws, 'draw')} a chain (at least {MIN_DRAWS})"
        return replace(found, note=note, beside_prior=beside_prior(series, prior, series.size))
    with np.errstate(all="ignore"):  # a folded series may be constant: R-hat is then the bulk's
        ratio = float(arviz().rhat(series, method="rank")) if chains > 1 else np.nan
        bulk = _finite(arviz().ess(series, method="bulk"))
        tail = _finite(arviz().ess(series, method="tail", prob=(probabilities[0], probabilities[2])))
        mcse = _finite(arviz().mcse(series, method="mean"))
    if np.isinf(ratio):
        beside = beside_prior(series, prior, series.size)
        note = "each chain stays at a value of its own"
        return replace(found, note=note, stuck_apart=True, beside_prior=beside)
    effective = min((size for size in (bulk, tail) if size is not None), default=float(series.size))
    return replace(
        found,
        rhat=_finite(ratio),
        ess_bulk=bulk,
        ess_tail=tail,
        mcse=mcse,
        note="R-hat needs two chains" if chains == 1 else None,
        beside_prior=beside_prior(series, prior, effective),
    )


def _prior_quantiles(prior: Floats, level: float) -> tuple[float, ...] | None:
    with np.errstate(invalid="ignore"):  # of priors whose draws may be infinite
        ends = np.quantile(prior, levels(level))
    return tuple(ends.tolist()) if np.isfinite(ends).all() else None


def _finite(value: object) -> float | None:
    number = float(np.asarray(value).item())
    return number if np.isfinite(number) else None


# The table of scalars


def parameter_sections(
    parameters: Mapping[str, Scalar],
    per_second: Mapping[str, float | None],
    labels: Mapping[str, str],
    meaning: str,
    dated: Dated = NONE,
) -> tuple[ResultSection, ResultSection]:
    """Return the table, and effective sample sizes per second.

    Parameters
    ----------
    parameters : mapping of str to Scalar
    per_second : mapping of str to float or None
        Bulk effective sample size per second.
    labels : mapping of str to str
        What rows are of, such as "age = 30".
    meaning : str
        What the scalars are, in words, which may emphasize.
    dated : Dated
        Which of them are dates: these are written so, and JSON has the dates beside the numbers.
    """
    names, found = list(parameters), list(parameters.values())
    by_label = {shown_name(name, labels): value for name, value in parameters.items()}
    levels = list(found[0].quantiles)
    shown = [shown_name(name, labels) for name in names]
    columns = _columns(parameters, per_second, labels, dated)
    table = Table("parameter", names, columns, title="scalar", shown=shown)
    ends = np.asarray([[value.quantiles[level] for level in levels] for value in found])
    held = {
        "": table,
        "quantile": Array(("quantile",), [float(level) for level in levels]),
        "quantiles": Array(("parameter", "quantile"), ends),
    }
    days = "Dates are the nearest days; their sd is in days." if any(map(dated.is_date, names)) else ""
    named: dict[str, list[str]] = {}
    for name, value in parameters.items():
        if value.note:
            named.setdefault(value.note, []).append(shown_name(name, labels))
    notes = [f"{', '.join(names)}: {note}" for note, names in named.items()]
    page: list[Block] = [table]
    page += [Items(notes, small=True)] if notes else []
    page += [days] if days else []
    page.append(Note(f"{meaning}{_learnt(found)}{_DIAGNOSTICS}"))
    return ResultSection(
        "parameters",
        Each(table, held),
        "Scalars and their diagnostics",
        text=[[table], *([[days]] if days else [])],
        page=page,
        tiles=[
            Tile("Largest R-hat", *_worst(by_label, lambda v: v.rhat, max, ".3f")),
            Tile("Smallest bulk ESS", *_worst(by_label, lambda v: v.ess_bulk, min, ",.0f")),
            Tile("Smallest tail ESS", *_worst(by_label, lambda v: v.ess_tail, min, ",.0f")),
        ],
    ), ResultSection("ess_per_second", Each(dict(per_second), ABSENT))


def _columns(
    parameters: Mapping[str, Scalar],
    per_second: Mapping[str, float | None],
    labels: Mapping[str, str],
    dated: Dated,
) -> list[TableColumn]:
    found = list(parameters.values())
    is_date = [dated.is_date(name) for name in parameters]
    first, *_, last = found[0].quantiles
    held = "json hdf5"

    def of(key: str) -> list[float | None]:
        return [getattr(value, key) for value in found]

    def low(key: str) -> list[bool]:
        return [value is not None and value < ESS for value in of(key)]

    stuck = [value.stuck_apart for value in found]
    rhat = ["∞" if apart else figure(value, ".3f") for value, apart in zip(of("rhat"), stuck, strict=True)]
    high = [apart or (value or 0.0) > RHAT for value, apart in zip(of("rhat"), stuck, strict=True)]

    def written(values: Iterable[float]) -> list[str]:
        return [
            placed(Day(value) if date else value, 0.25 * (scalar.quantiles[last] - scalar.quantiles[first]))
            for value, date, scalar in zip(values, is_date, found, strict=True)
        ]

    ends = [
        TableColumn.of_words(written(v.quantiles[end] for v in found), f"{100 * float(end):g}%")
        for end in (first, last)
    ]
    dates = [
        {"mean": day_text(v.mean), "quantiles": {p: day_text(x) for p, x in v.quantiles.items()}}
        if date
        else None
        for v, date in zip(found, is_date, strict=True)
    ]
    little = [_little(value) for value in found]
    return [
        TableColumn("mean", [value.mean for value in found], where=held),
        TableColumn.of_words(written(value.mean for value in found), "mean"),
        TableColumn("sd", of("sd"), "sd"),
        TableColumn("quantiles", [value.quantiles for value in found], where="json"),
        *ends,
        TableColumn("contraction", of("contraction"), "contraction", ".2f", bad=little, if_any=True),
        TableColumn("mcse", of("mcse"), "MCSE", ".2g", where="json hdf5 page"),
        TableColumn("rhat", of("rhat"), "R-hat", ".3f", where="json hdf5 text"),
        TableColumn.of_words(rhat, "R-hat", "page", bad=high),
        TableColumn("ess_bulk", of("ess_bulk"), "ESS bulk", ".0f", ",.0f", bad=low("ess_bulk")),
        TableColumn("ess_tail", of("ess_tail"), "ESS tail", ".0f", ",.0f", bad=low("ess_tail"), spare=True),
        TableColumn(
            "ess_per_second",
            [per_second[name] for name in parameters],
            "ESS/s",
            _rate,
            where="hdf5 text page",
            spare=True,
        ),
        TableColumn("note", of("note"), form=str, where=held),
        TableColumn("date", dates, where="json", optional=True),
        TableColumn("date", [d and d["mean"] for d in dates], form=str, where="hdf5", optional=True),
        TableColumn(
            "label", [labels.get(name) for name in parameters], form=str, where="json", optional=True
        ),
    ]


_DIAGNOSTICS = (
    "R-hat is rank-normalised and split; ESS is the effective sample size of all chains together, and ESS/s "
    "its bulk per second of sampling, summed over chains. MCSE is the Monte Carlo standard error of the mean."
)


def _rate(value: float) -> str:
    """Write a rate: three digits, or all of a large number."""
    return f"{value:{',.0f' if value >= 100 else '.3g'}}"


def _little(value: Scalar) -> bool:
    return value.contraction is not None and value.contraction < LEARNT and value.beside_prior != "moved"


def _learnt(found: Iterable[Scalar]) -> str:
    """Say what contraction is, where there is any."""
    if all(value.contraction is None for value in found):
        return ""
    return (
        "**contraction** is the share of the prior's spread that the release took away, 1 less the squared "
        f"ratio of interquartile ranges: below {LEARNT:g} the prior speaks, unless it piles up elsewhere; "
        "well below 0 release and prior may be in conflict. "
    )


def _worst(
    parameters: Mapping[str, Scalar],
    of: Callable[[Scalar], float | None],
    choose: Callable[..., str],
    form: str,
) -> tuple[str, str]:
    """Return the most worrying value of a diagnostic, and the scalar it belongs to."""
    found = {name: of(value) for name, value in parameters.items()}
    values = {name: float(value) for name, value in found.items() if value is not None}
    if not values:
        return "-", "not available"
    name = choose(values, key=values.__getitem__)
    return f"{values[name]:{form}}", name


def shown_name(name: str, labels: Mapping[str, str]) -> str:
    """Return a scalar's name with what it is of between its brackets: prediction[income = 500]."""
    label = labels.get(name)
    title = "E[x]" if name.startswith("E[x][") else name.partition("[")[0]
    return name if label is None else f"{title}[{label}]"
