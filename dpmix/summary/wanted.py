"""What a spec wants reported of each column of the records, and what of it cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dpmix.errors import SpecError
from dpmix.numerics.in_words import figures
from dpmix.summary.dated import dated_of, dates_or_figures
from dpmix.summary.fitted_columns import public_bounds
from dpmix.summary.quantities import Wanted
from dpmix.summary.row_labels import data_columns

if TYPE_CHECKING:
    from dpmix.run.chains_reader import Chains, NamedChains
    from dpmix.spec.summary_section import SummarySpec
    from dpmix.summary.fitted_columns import FittedColumn


def wanted_of(chains: Chains, columns: Sequence[FittedColumn], options: SummarySpec) -> list[Wanted]:
    """Return what is wanted of each column of a mixture.

    Raises
    ------
    SpecError
        When points are of no column, or of one without saying of which of several; when a Gini coefficient is
        asked for where public bounds admit negative values, or are not known.
    """
    names, dated = [column.name for column in columns], dated_of(chains)
    only = data_columns(chains) if len(names) == 1 else ()
    tails = _by_column("summary.tails", options.tails, names, only)
    points = _by_column("summary.cdf", options.cdf, names, only)
    found = []
    for number, (above, below) in enumerate(zip(tails, points, strict=True)):
        bounds = None
        dated.check(names[number], {"tails": above, "cdf": below})
        if options.gini:
            bounds = public_bounds(chains, number, len(names))
            shown = names[number] or chains.columns[0]
            if bounds is None:
                raise SpecError(f"summary.gini: the public bounds of {shown} are not known; leave it out")
            if bounds[0] < 0.0:
                raise SpecError(
                    f"summary.gini: the public bounds [{', '.join(figures(bounds))}] of {shown} admit "
                    "negative values, of which there is no Gini coefficient; leave it out"
                )
        found.append(Wanted(options.levels, above, below, bounds))
    return found


def _by_column(key: str, given: object, names: Sequence[str], only: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the points of each column, in increasing order; a list, or a name of `only`, is of the one."""
    if given is None:
        return [()] * len(names)
    if isinstance(given, Mapping):
        own = {"" if name in only and name not in names else name: points for name, points in given.items()}
        for name in own:
            if name not in names:
                known = ", ".join(name for name in (*names, *only) if name)
                right = f"it has {known}" if known else "give a list, as there is only one column"
                raise SpecError(f"{key}: there is no column {name!r}; {right}")
        return [tuple(sorted(set(own.get(name, ())))) for name in names]
    assert isinstance(given, tuple)  # the spec looks
    if len(names) > 1:
        raise SpecError(
            f"{key}: there are {len(names)} columns ({', '.join(names)}); give a mapping by name, such as "
            f"{{{names[0]}: [{given[0]:g}]}}"
        )
    return [tuple(sorted(set(given)))]


def check_quantities(chains: NamedChains, options: SummarySpec) -> None:
    """Refuse quantities of a parametric model's records that its chains do not hold.

    Raises
    ------
    SpecError
        Naming the first.
    """
    titles = {"tails": "tail", "cdf": "cdf", "quantiles": "quantile", "gini": "gini"}
    for key, title in titles.items():
        given = getattr(options, key)
        if given is None or given is False:
            continue
        held = [p for p in chains.parameters if p.title == title and p.role == "scalar"]
        if not held:
            model = chains.model
            known = any(p.title == "quantile" for p in chains.parameters)
            why = f"is for mixture and discrete, and these chains are of model {model}"
            if known:
                why = "these chains do not hold it; fit again with it in the spec"
            raise SpecError(f"summary.{key}: {why}")
        for parameter in held if title != "gini" else ():
            of_column = given.get(parameter.column, ()) if isinstance(given, Mapping) else given
            there = [float(point) for point in parameter.coords[parameter.dims[-1]]]
            missing = [point for point in of_column if point not in there]
            if missing:
                about = f" of {parameter.column}" if parameter.column else ""
                points = [type(missing[0])(point) for point in there]
                raise SpecError(
                    f"summary.{key}: {dates_or_figures(missing)[0]} is not among what these chains hold"
                    f"{about} ({', '.join(dates_or_figures(points))}); fit again with it in the spec"
                )
