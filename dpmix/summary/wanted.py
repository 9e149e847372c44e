"""What a spec wants reported of each column of the records, and what of it cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpmix.errors import SpecError
from dpmix.spec.summary import SummarySpec
from dpmix.store.chains_reader import Chains
from dpmix.summary.families.choose import Column
from dpmix.summary.grids import public_bounds
from dpmix.summary.quantities import Wanted

__all__ = ["refuse_quantities", "wanted_of"]


def wanted_of(chains: Chains, columns: Sequence[Column], options: SummarySpec) -> list[Wanted]:
    """Return what is wanted of each column of a mixture.

    Raises
    ------
    SpecError
        When points are of no column, or of one without saying of which of several; when a Gini coefficient is
        asked for where public bounds admit negative values, or are not known.
    """
    names = [column.name for column in columns]
    tails = _by_column("summary.tails", options.tails, names)
    points = _by_column("summary.cdf", options.cdf, names)
    found = []
    for number, (above, below) in enumerate(zip(tails, points, strict=True)):
        bounds = None
        if options.gini:
            bounds = public_bounds(chains, number, len(names))
            shown = names[number] or chains.columns[0]
            if bounds is None:
                raise SpecError(f"summary.gini: the public bounds of {shown} are not known; leave it out")
            if bounds[0] < 0.0:
                raise SpecError(
                    f"summary.gini: the public bounds [{bounds[0]:g}, {bounds[1]:g}] of {shown} admit negative "
                    "values, of which there is no Gini coefficient; leave it out"
                )
        found.append(Wanted(options.levels, above, below, bounds))
    return found


def _by_column(key: str, given: object, names: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the points of each column, in increasing order; a list is of the only column."""
    if given is None:
        return [()] * len(names)
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                known = ", ".join(name for name in names if name)
                right = f"it has {known}" if known else "give a list, as there is only one column"
                raise SpecError(f"{key}: there is no column {name!r}; {right}")
        return [tuple(sorted(set(given.get(name, ())))) for name in names]
    assert isinstance(given, tuple)  # the spec looks
    if len(names) > 1:
        raise SpecError(
            f"{key}: there are {len(names)} columns ({', '.join(names)}); give a mapping by name, such as "
            f"{{{names[0]}: [{given[0]:g}]}}"
        )
    return [tuple(sorted(set(given)))]


def refuse_quantities(options: SummarySpec, model: str) -> None:
    """Refuse what is asked of a model that does not report it.

    Raises
    ------
    SpecError
        Naming the first.
    """
    for key in ("tails", "cdf", "gini"):
        if getattr(options, key):
            raise SpecError(f"summary.{key}: is for mixture and discrete, and these chains are of {model}")
