"""The warnings of a summary, in words, and the thresholds behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.columns.dated import dates_or_figures
from dpmix.errors import SpecError
from dpmix.laws.cell_laws import CellsLaw
from dpmix.models.meaning_base import BEYOND, MOVED
from dpmix.numerics.in_words import all_of, brief, permits_verbatim, plainly
from dpmix.release.tallies import wide_grid
from dpmix.results.nodes import Remark, percent
from dpmix.spec.combinations import choose
from dpmix.spec.days import Day, placed
from dpmix.spec.describe import NARROW as NARROW_BIN
from dpmix.spec.describe import ROUNDED, round_cells
from dpmix.spec.model_section import PREDICTORS_CURE
from dpmix.summary.diagnostics import ESS, LEARNT, RHAT, Scalar
from dpmix.summary.quantities import STANDING_OUT
from dpmix.summary.subject import epsilon_in_words, is_private, is_simulated

if TYPE_CHECKING:
    from dpmix.columns.dated import Dated
    from dpmix.laws.every import Law
    from dpmix.run.chains_reader import ChainSet
    from dpmix.summary.chains_account import Acceptance
    from dpmix.summary.check.check_result import Check
    from dpmix.summary.information import InformationKept
    from dpmix.summary.quantities import Beyond, CellShares, HiddenPile

MANY = 40
"""Draws from which on it is the level, and not the run, that asks for more than there are."""
INDISTINGUISHABLE = 0.1
"""Hellinger distance up to which posterior and prior predictive are called indistinguishable.

The total variation distance is then at most H sqrt(2 - H^2) = 0.141: whoever is shown one record drawn from
either of the two guesses which it was correctly with probability at most 0.57, where a coin has 0.5.
"""
APART = 1.2
"""R-hat above which the chains are at places of their own: how long they take to meet they do not say."""
HOPELESS = 100.0
"""Factor from which on more sweeps are not what is recommended."""
FLOOR_CURE = "tighter bounds, a model.base of smaller clusters or more epsilon"
"""What to do where the prior holds a standard deviation up."""
ABSURD = 0.01
"""Prior probability of a mean within the bounds below which the prior makes no sense for the data."""
HEADLINES = frozenset(
    (
        *("mean", "sd", "quantile", "tail", "correlation"),
        *("beta", "prediction", "prediction_clamped", "p", "probability", "E"),
    )
)
"""Titles of the scalars whose contraction is warned of: quantities, coefficients, predictions, shares."""
NARROW = 0.01
"""Share of records in components narrower than a cell from which on it is said."""
MOST_LISTED = 6
MANY_RECORDS = 2_000
"""From which on the sampler on counts is recommended beside the one that moves records."""
NEAR_BOUND = 0.1
"""Share of the way from the acceptance's lower bound up to 1 within which it is called near the bound."""


def convergence_remarks(
    parameters: Mapping[str, Scalar], acceptance: Acceptance, chains: ChainSet, *, absurd: bool = False
) -> list[Remark]:
    """Say what speaks against trusting the chains.

    Parameters
    ----------
    parameters : mapping of str to Scalar
        The scalars and their diagnostics.
    acceptance : Acceptance
        Mean acceptance and its bound.
    chains : ChainSet
        For the chains that should be there, and their sweeps.
    absurd : bool
        Whether the prior makes no sense for the data, which more sweeps would not mend.
    """
    texts = []
    stuck = [name for name, scalar in parameters.items() if scalar.stuck_apart]
    if stuck:
        texts.append(
            f"The chains are stuck, each at a value of its own, in {all_of(stuck)}: do not use them."
        )
    texts += _too_short(parameters, chains, absurd)
    few = all(scalar.ess_bulk is None for scalar in parameters.values())
    texts += _beyond_draws(parameters, chains)
    if not few and len(chains.ids) == 1:
        texts.append(
            "One chain alone: R-hat needs at least two, so convergence is not checked across chains."
        )
    if len(chains.ids) < chains.planned:
        missing = [str(i) for i in range(chains.planned) if i not in chains.ids]
        texts.append(
            f"{len(chains.ids)} of the spec's {chains.planned} chains are here; missing: {all_of(missing)}."
        )
    mean, bound = acceptance.mean, acceptance.bound
    # at bounds above 1/2 every second proposal is accepted in any case: nothing to warn of
    if mean is not None and bound is not None and bound <= 0.5 and mean <= bound + NEAR_BOUND * (1.0 - bound):
        texts.append(
            f"Acceptance ({mean:.3g}) is near its lower bound e^-epsilon = {bound:.3g}: proposals are seldom "
            "taken; a sampler with exact latent updates mixes better."
        )
    remarks = [Remark(text, convergence=True) for text in texts]
    if few:
        each = "1 draw per chain is" if chains.draws == 1 else f"{chains.draws} draws per chain are"
        text = f"{each} too few for any diagnostic: convergence is unknown."
        remarks.insert(0, Remark(text, convergence=True, grave=True))
    return remarks


WITHIN = "model.kernel: beta stays within the bounds"
MOST_BEYOND = 0.1
"""Share of records beyond the bounds above which what the prior says of them is most of the results."""
OUTER, FULLEST = (0.2, 0.5), (0.5, 0.9)
"""Shares of records in the outermost cells of a release, or in one, that are told, and that are grave."""
_BASE = "give a model.base on the scale of the data, or leave it out for one that follows the bounds"


def prior_remarks(
    within: Mapping[str, float], bounds: Mapping[str, tuple[float, float] | None], cure: str = _BASE
) -> list[Remark]:
    """Say where the prior makes no sense: it expects the mean of a record beyond the public bounds.

    Parameters
    ----------
    within : mapping of str to float
        Prior probability that the mean of a record lies within the bounds, by column, where they are known.
    bounds : mapping of str to pair or None
        The bounds.
    cure : str
        What to do.
    """
    return [
        Remark(
            f"A priori the mean of a record{_of(name)} lies within the public bounds {_pair(bounds[name])} "
            f"with probability {'below 0.001' if share < 0.001 else f'{share:.1g}'}: the prior is of data on "
            f"another scale, and the release has to speak against it; {cure}.",
            convergence=False,
        )
        for name, share in within.items()
        if share < ABSURD
    ]


def learning_remarks(parameters: Mapping[str, Scalar]) -> list[Remark]:
    """Say in one line of which headline quantities the prior says more than the release, or another thing.

    Parameters
    ----------
    parameters : mapping of str to Scalar
        With their contractions.
    """
    weak = _where(parameters, lambda s: s.contraction, lambda value: value < LEARNT)
    beside = {name: parameters[name].beside_prior for name in weak}
    weak = {name: value for name, value in weak.items() if is_headline(name) and beside[name] != "moved"}
    wider = {name: value for name, value in weak.items() if beside[name] == "wider"}
    little = {name: value for name, value in weak.items() if name not in wider}
    parts = []
    if little:
        parts.append(
            f"The prior, not the release, speaks about {_figures(little, '.2f')}: in brackets the "
            "contraction, the share of the prior's spread that the release took away."
        )
    if wider:
        parts.append(
            f"The posterior is wider than the prior for {_figures(wider, '.2g')} (contraction): release and "
            "prior are in conflict there; look at the prior."
        )
    return [Remark(" ".join(parts), convergence=False)] if parts else []


def floor_remarks(parameters: Mapping[str, Scalar]) -> list[Remark]:
    """Say in a line each which sds of records, errors or predictors of a regression the prior holds up.

    And which correlations of columns it draws towards 0.
    """
    found = []
    for means, held in _held_up(parameters):
        figures = [
            name
            if scalar.prior is None or means in (_PREDICTORS, _CORRELATIONS)  # which no end of a prior tells
            else f"{name} (its interval begins at {brief(min(scalar.quantiles.values()), 3)}, the "
            f"prior's at {brief(scalar.prior[0], 3)})"
            for name, scalar in held.items()
        ]
        if len(figures) > MOST_LISTED:
            figures = [*figures[:MOST_LISTED], f"{len(figures) - MOST_LISTED} more"]
        found.append(Remark(_held(all_of(figures), means), convergence=False))
    return found


def floor_doubt(parameters: Mapping[str, Scalar]) -> list[str]:
    """Say in a sentence each what the prior holds up, none where it holds up nothing."""
    found = []
    for means, held in _held_up(parameters):
        first, *rest = held
        more = f" (and {len(rest)} more)" if rest else ""
        found.append(_held(f"{first}{more}", means))
    return found


def _held(names: str, means: str) -> str:
    if means == _CORRELATIONS:
        return f"The prior draws {names} towards 0 by more than a posterior standard deviation: {means}."
    return f"The prior holds up {names}: {means}."


_ERRORS = (
    "errors may be smaller than the interval says, and slopes are then steeper than theirs; leave out "
    "model.sigma2_prior.b for a scale that is learned, or state a smaller one"
)
_PREDICTORS = (
    "the predictor, or what of it other predictors do not tell, may vary less than under the fit, and slopes "
    "are then steeper, or farther apart, than their intervals say; leave out model.x_prior.Psi for scales "
    "that are learned, or state a smaller one by what is public of them"
)
_RECORDS = (
    "the records may vary less than the interval says, and quantiles lie closer together, as they do where "
    f"public bounds are wide for them; {FLOOR_CURE} would let the interval go lower"
)
_CORRELATIONS = (
    "the columns may go together more closely than the interval says; more records or more epsilon would tell"
)
_MEANS = {"sigma2": _ERRORS, "x_cov": _PREDICTORS, "correlation": _CORRELATIONS}
"""What it means that the prior holds a scalar up, by its title."""


def _held_up(parameters: Mapping[str, Scalar]) -> list[tuple[str, dict[str, Scalar]]]:
    """Return the scalars that the prior holds up by what that means."""
    found: dict[str, dict[str, Scalar]] = {}
    for name, scalar in parameters.items():
        if scalar.held_up:
            found.setdefault(_MEANS.get(name.partition("[")[0], _RECORDS), {})[name] = scalar
    return list(found.items())


def is_headline(name: str) -> bool:
    """Whether a scalar is one that a reader looks for: quantities, coefficients, predictions, shares."""
    title = name.partition("[")[0]
    return title in HEADLINES or title.startswith("p_feature_")


def beyond_remarks(beyond: Beyond, chains: ChainSet) -> list[Remark]:
    """Say what it means that the fit of a mixture has records beyond the public bounds.

    Parameters
    ----------
    beyond : Beyond
    chains : ChainSet
        For the mechanism.
    """
    bounds = beyond.bounds
    texts = []
    for name, share in beyond.shares.items():
        if share <= BEYOND or name not in bounds:
            continue
        text = f"Under the fit {percent(share)} of records lie beyond the public bounds {_pair(bounds[name])}"
        text += _of(name)
        if beyond.by_prior:
            text += (
                ": records there count as cut to the bounds, in the cells at the ends, and how far beyond "
                "they lie is said by the prior alone"
            )
        elif beyond.clamped:
            text += (
                ": values were cut to the bounds before noise was added, which a normal kernel does not "
                "know of, so that sd, quantiles and tails count values that no record has"
            )
        text += "." if name else f"; {WITHIN}."
        texts.append(text)
    return [Remark(text, convergence=False) for text in texts]


def cells_doubt(beyond: Beyond | None, cells: CellShares | None) -> tuple[list[str], list[str]]:
    """Say where results are the prior's, as records are beyond the bounds or next to them: grave, and not.

    Parameters
    ----------
    beyond, cells
        None where they are not known.
    """
    grave: list[str] = []
    doubts: list[str] = []
    if beyond is not None and beyond.moved:
        most = beyond.shares[beyond.moved[0]]
        (grave if most > MOST_BEYOND else doubts).extend(line_doubt(beyond))
    if beyond is not None and beyond.by_prior:
        name, share = max(beyond.shares.items(), key=lambda each: each[1])
        if share > BEYOND:
            (grave if share > MOST_BEYOND else doubts).append(
                f"Under the fit {percent(share)} of records lie beyond the public bounds{_of(name)}: how far "
                f"is said by the prior alone, which mean and sd depend on{'' if name else f'; {WITHIN}'}."
            )
    if beyond is not None and beyond.clamped:
        name, share = max(beyond.shares.items(), key=lambda each: each[1], default=("", 0.0))
        if share > MOVED:
            doubts.append(
                f"Under the fit {percent(share)} of records lie beyond the public bounds{_of(name)}, where "
                f"there are none: sd and quantiles follow them{'' if name else f'; {WITHIN}'}."
            )
    places = (
        []
        if cells is None
        else [
            (cells.outer, OUTER, "the first and last cells of the release"),
            (cells.fullest, FULLEST, "one cell of the release"),
        ]
    )
    for shares, (told, most), where in places:
        group, share = max(shares.items(), key=lambda each: each[1])
        if share > told:
            of = f" of {group}" if group else ""
            (grave if share > most else doubts).append(
                f"Under the fit {percent(share)} of records{of} are in {where}: where there is said by the "
                "prior alone; a release of finer cells would tell."
            )
    doubts += _pile_doubt(cells)
    return grave, doubts


def _pile_doubt(cells: CellShares | None) -> list[str]:
    """Say that records pile up in a cell, which may be at one value or at its edge; none where it is said."""
    piles = {} if cells is None else cells.piled
    group, share = max(piles.items(), key=lambda each: each[1], default=("", 0.0))
    if not 0.0 < share <= FULLEST[0]:  # of more it is said that they are in one cell
        return []
    of = f" of {group}" if group else ""
    return [
        f"Under the fit {percent(share)} of records{of} pile up in one cell of the release, more than "
        f"{STANDING_OUT:g} times as many as in those beside it: whether at one value, and where in the cell, "
        "is said by the prior alone, which mean, sd, quantiles and shares depend on; a release of finer "
        "cells would tell."
    ]


def line_doubt(beyond: Beyond) -> list[str]:
    """Say that the line of a regression is not one in the predictors of the table, where it is not."""
    named = []
    for name in beyond.moved[:MOST_LISTED]:
        column, group = beyond.latent[name]
        where = f" in {group}" if group else ""
        named.append(f"{percent(beyond.shares[name])} of values of {column}{where}")
    if not named:
        return []
    return [
        f"Under the fit {all_of(named)} lie beyond the public bounds: slopes and predictions are of these "
        f"latent values, and not of the table's where it has none there; {PREDICTORS_CURE}."
    ]


def hidden_remarks(piles: Mapping[str, HiddenPile], dated: Dated) -> list[Remark]:
    """Say where records lie so near to each other that noise on each hides whether they are at one value."""
    found = []
    for name, pile in piles.items():
        date = dated.is_curve(name)
        place = placed(Day(pile.place) if date else pile.place, pile.reach)
        near = f"{brief(pile.reach, 2)}{' days' if date else ''} of {place}"
        text = (
            f"Under the fit {percent(pile.share)} of records{_of(name)} lie within {near}, and noise of "
            f"scale {brief(pile.scale, 3)} hardly tells them from records at one value: how near to each "
            "other they are is said by the prior, which quantiles and shares thereabouts depend on; more "
            "epsilon, or a histogram, would tell."
        )
        found.append(Remark(text, convergence=False, grave=False))
    return found


def within_remarks(found: Mapping[str, float], law: Law) -> list[Remark]:
    """Say which figures depend on where in their cells records lie, by so many posterior sds."""
    if not found:
        return []
    cell = law.cell_name if isinstance(law, CellsLaw) else "cell"
    text = (
        f"Where in its {cell}, or beyond the bounds, a record lies the release does not say, and the fit "
        f"does: another smooth curve with the same share in each {cell}, and none beyond, gives other values "
        f"of {_figures(found, '.2g')}; in brackets by how many posterior standard deviations. Finer {cell}s "
        "would tell, and so may a longer run."
    )
    return [Remark(text, convergence=False, grave=False)]


def information_remarks(kept: InformationKept, chains: ChainSet) -> list[Remark]:
    """Say that components are narrower than the cells that records were counted in."""
    if not kept.narrow > NARROW:
        return []
    text = (
        f"Under the fit {percent(kept.narrow)} of records are of components whose standard deviation is "
        f"below the width of the cells, {brief(kept.width, 4)}: what the release says of these widths is "
        "mostly lost; give a smaller sampler.width."
    )
    return [Remark(text, convergence=False)]


def check_remarks(check: Check, chains: ChainSet) -> list[Remark]:
    """Say that the release is unlike what the fitted model would release, where it is."""
    if not check.suspect:
        return []
    worst = check.farthest
    where = ""
    if worst is not None and worst.lower <= worst.observed <= worst.upper:
        worst = None
    if worst is not None:
        figures = (worst.observed, worst.lower, worst.upper)
        observed, low, high = (brief(figure, 4) for figure in figures)
        where = f" Farthest out is {worst.name}: {observed}, where replicates have {low} to {high}."
    return [
        Remark(
            "The release is unlike those that the fitted model gives (release check, p = "
            f"{check.overall:.2g}): prior or model do not describe these records, and what is reported "
            f"follows from them.{where}",
            convergence=False,
        )
    ]


def _of(name: str) -> str:
    return f" of {name}" if name else ""


def _pair(bounds: tuple[float, float] | None) -> str:
    return "" if bounds is None else f"[{', '.join(plainly(end, '') for end in dates_or_figures(bounds))}]"


def rounded_remarks(parameters: Mapping[str, Scalar], law: Law, dated: Dated) -> list[Remark]:
    """Say where cells begin at round numbers, and some records rounded to these would move the mean by much.

    Parameters
    ----------
    parameters : mapping of str to Scalar
    law : Law
        Of the release.
    dated : Dated
        Which columns are dates, which are not rounded so.
    """
    means = [scalar.sd for name, scalar in parameters.items() if name.partition("[")[0] == "mean"]
    if not isinstance(law, CellsLaw) or dated.only or not means:
        return []
    low, high = law.domain[0]
    ends = round_cells(low, high, law.cells, whole=law.whole_numbers)
    if ends is None:
        return []
    width, edges = (ends[1] - ends[0]) / law.cells, law.edges()
    begin = ends[0] + width * np.arange(law.cells)
    shift = float(np.median((edges[:-1] + edges[1:]) / 2.0 - begin))
    by, sd = ROUNDED * shift, min(means)
    if not shift > 1e-9 * width or not sd > 0.0 or by < sd:
        return []
    cell = law.cell_name
    text = (
        f"The {cell}s of the release begin at multiples of {brief(width, 3)}, and the fit takes records to "
        f"lie about their middle: if {percent(ROUNDED)} of them are rounded to these numbers, the mean is "
        f"too high by {brief(by, 2)}, {brief(by / sd, 2)} of its posterior standard deviations, and "
        f"quantiles likewise. It is right where values are not rounded, or where {cell}s have round numbers "
        "in their middle."
    )
    return [Remark(text, convergence=False, grave=False)]


def release_remarks(distance: float | None, bias: float, chains: ChainSet) -> list[Remark]:
    """Say what speaks against reading much into the release.

    Parameters
    ----------
    distance : float or None
        Hellinger distance of the posterior mean density from the prior predictive, where there is one.
    bias : float
        What Monte Carlo error adds to its square on average.
    chains : ChainSet
        For the guarantee.
    """
    texts = []
    if distance is not None and distance**2 - bias <= INDISTINGUISHABLE**2:
        texts.append(
            "The posterior density is indistinguishable from the prior's (Hellinger distance "
            f"{distance:.2g}): this release says almost nothing{_at(chains.attrs, chains.mechanism)}."
        )
    if not chains.mechanism.protects:
        texts.append("No noise was added to the data behind this fit: it is not private.")
    elif is_simulated(chains.attrs):
        texts.append("The release comes from simulated data: it protects nobody and describes nobody.")
    elif not is_private(chains.attrs):
        texts.append("The release is marked as not private: its noise can be reproduced.")
    weak = permits_verbatim(float(chains.attrs.get("delta", 0.0)), chains.n)
    if weak:
        texts.append(f"{weak}.")
    if str(chains.attrs.get("variance_ratio", "1")) != "1":  # of other releases it was 1
        texts.append(
            "These chains were run by an earlier version, whose posterior given synthetic records was that "
            "of a measure which these share with the confidential ones, and too narrow: fit again."
        )
    if len(chains.versions) > 1:
        texts.append(f"The chains were run by different versions of dpmix: {all_of(list(chains.versions))}.")
    return [*_uneven(chains.mechanism), *(Remark(text, convergence=False) for text in texts)]


def _uneven(law: Law) -> list[Remark]:
    """Say that cells of a release are without a whole number, where its values are whole."""
    if not isinstance(law, CellsLaw) or not law.uneven or np.diff(law.edges()).max() < NARROW_BIN:
        return []
    cell = law.cell_name
    text = (
        f"Values are whole numbers, and some {cell}s of the release hold none: the fit takes records to lie "
        f"anywhere in their {cell}, and mean, sd and quantiles are off by up to half a {cell}; a release of "
        f"{cell}s that each hold as many whole numbers would tell."
    )
    return [Remark(text, convergence=False, grave=False)]


def _at(attrs: Mapping[str, Any], mechanism: Law) -> str:
    words = epsilon_in_words(attrs) if mechanism.protects else ""
    return f" at {words}" if words else ""


def _too_short(parameters: Mapping[str, Scalar], chains: ChainSet, absurd: bool) -> list[str]:
    """Say in one line which figures ask for longer chains, and by how much longer."""
    found, factor = [], 1.0
    high = _where(parameters, lambda s: s.rhat, lambda value: value > RHAT)
    if high:
        # R-hat^2 - 1 is about one over the effective size of a chain, once chains mix at all
        factor = (max(high.values()) ** 2 - 1.0) / (RHAT**2 - 1.0)
        worst = dict(sorted(high.items(), key=lambda item: -item[1]))
        found.append(f"R-hat is above {RHAT} for {_figures(worst, '.3f', RHAT)}")
    for what, ess in (("bulk ESS", lambda s: s.ess_bulk), ("tail ESS", lambda s: s.ess_tail)):
        low = _where(parameters, ess, lambda value: value < ESS)
        if low:
            factor = max(factor, ESS / max(min(low.values()), 1.0))
            worst = dict(sorted(low.items(), key=lambda item: item[1]))
            found.append(f"{what} is below {ESS:.0f} for {_figures(worst, '.0f', ESS)}")
    if not found:
        return []
    text = "; ".join(found)
    cure = "the prior, of which below, stands in the way, and more sweeps would not mend that"
    if not absurd:
        apart = max(high.values(), default=1.0) > APART
        cure = _longer(factor, chains.stated("sampler").get("iterations"), apart=apart) + _on_counts(chains)
    return [f"{text[0].upper()}{text[1:]}: {cure}."]


def _on_counts(chains: ChainSet) -> str:
    """Say that the sampler on counts moves faster, where it would do but for the clusters of records."""
    if chains.stated("sampler").get("kind") != "neal8" or chains.n < MANY_RECORDS:
        return ""
    try:
        cells = len(wide_grid(chains.mechanism, "auto")[0]) + 1
    except SpecError:  # there are none
        return ""
    spec = chains.run_spec
    sampler = spec.sampler.model_copy(update={"store": [], "subsample": None})
    spec = spec.model_copy(update={"sampler": sampler})
    if choose(spec, chains.mechanism.kind, chains.n, cells=cells).kind != "counts":
        return ""
    return (
        "; where no clusters of single records are needed, sampler.store: [] takes the sampler counts, whose "
        "chains mix faster"
    )


def _beyond_draws(parameters: Mapping[str, Scalar], chains: ChainSet) -> list[str]:
    """Say where intervals reach further out than there are draws, which their ends then fall short of."""
    draws = chains.draws * len(chains.ids)
    tail = min((float(p) for scalar in parameters.values() for p in scalar.quantiles), default=0.5)
    if tail * draws >= 1.0 or draws < MANY:
        return []
    return [
        f"Intervals of summary.level {1.0 - 2.0 * tail:.12g} leave out less than one of {draws:,} draws at "
        "each end: their ends are the outermost draws, and hold less than they say; use a lower level, or "
        f"{math.ceil(1.0 / tail):,} draws or more."
    ]


def _longer(factor: float, iterations: Any, *, apart: bool) -> str:
    """Say how many times as many sweeps are wanted; chains that are far apart may never meet."""
    if factor > HOPELESS:
        return (
            f"more than {HOPELESS:.0f} times as many sweeps are wanted; look for another sampler, or a "
            "simpler model, before waiting for that"
        )
    step = 1 if factor <= 10.0 else 5 if factor <= 50.0 else 10
    times = max(2, step * math.ceil(factor / step - 1e-9))
    text = f"run {'at least' if apart else 'about'} {times} times as many sweeps"
    if isinstance(iterations, int):
        text += f" (sampler.iterations: {times * iterations})"
    return f"{text}, or another sampler, as the chains are far apart" if apart else text


def _where(
    parameters: Mapping[str, Scalar],
    figure: Callable[[Scalar], float | None],
    bad: Callable[[float], bool],
) -> dict[str, float]:
    found = {}
    for name, scalar in parameters.items():
        value = figure(scalar)
        if value is not None and bad(value):
            found[name] = value
    return found


def _figures(found: Mapping[str, float], form: str, limit: float | None = None) -> str:
    """List the first few names with their values, none of them written as a limit that it is beyond."""
    first = [f"{name} ({_apart(value, form, limit)})" for name, value in list(found.items())[:MOST_LISTED]]
    more = len(found) - len(first)
    return all_of([*first, f"{more} more"] if more else first)


def _apart(value: float, form: str, limit: float | None) -> str:
    """Write a value with the digits of a form, and as many more as part it from a limit."""
    text, digits = f"{value:{form}}", 0
    while limit is not None and float(text) == limit != value:
        digits += 1
        text = f"{value:.{int(form[1:-1]) + digits}f}"
    return text
