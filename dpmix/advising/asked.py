"""What advice is asked for: epsilons, numbers of records, mechanisms and a target, checked before anything.

Nothing heavy is imported, so that a command refuses at once what makes no sense.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from dpmix.errors import SpecError, UsageError
from dpmix.spec.kinds import MECHANISMS
from dpmix.spec.messages import did_you_mean
from dpmix.spec.run_spec import RunSpec

__all__ = [
    "BAND",
    "EPSILONS",
    "QUANTITIES",
    "RECORDS",
    "by_group",
    "check_kind",
    "check_target",
    "epsilons_of",
    "quantities_of",
    "records_of",
    "target_of",
]

EPSILONS: Final = (0.5, 1.0, 2.0, 4.0)
RECORDS: Final = (1_000, 10_000, 100_000)
QUANTITIES: Final = ("mean", "median", "quantile[0.25]", "quantile[0.75]")
BAND: Final = "band"
_MOST_RECORDS = 10**12
_ALIASES = {"quantile[0.5]": "median"}


def epsilons_of(given: Sequence[float] | float | None) -> list[float]:
    """Return the epsilons of a list, in increasing order.

    Raises
    ------
    UsageError
        For one that is not positive, and for none.
    """
    found = EPSILONS if given is None else [given] if isinstance(given, int | float) else given
    for value in found:
        if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
            raise UsageError(f"--epsilon: {value} must be a positive number")
    if not len(found):
        raise UsageError("--epsilon: names none; give a list such as 0.5,1,2")
    return sorted({float(value) for value in found})


def records_of(given: Sequence[float] | float | None) -> list[int]:
    """Return the numbers of records of a list, in increasing order.

    Raises
    ------
    UsageError
        For one that is not a whole number from 1 on, and for none.
    """
    found = RECORDS if given is None else [given] if isinstance(given, int | float) else given
    for value in found:
        if not (isinstance(value, int | float) and 1 <= value <= _MOST_RECORDS and value == int(value)):
            raise UsageError(f"--n: {value} must be a whole number from 1 to {_MOST_RECORDS:,}")
    if not len(found):
        raise UsageError("--n: names none; give a list such as 1e3,1e4")
    return sorted({int(value) for value in found})


def check_kind(kind: str, own: str | None) -> None:
    """Check that a mechanism releases the density of a column, with no more to state than the spec does.

    Parameters
    ----------
    kind : str
    own : str or None
        The spec's own.

    Raises
    ------
    UsageError
        Where it does not.
    """
    names = [
        name for name in MECHANISMS.names if MECHANISMS.section(name).released in ("records", "histogram")
    ]
    names = [name for name in names if MECHANISMS.section(name).protects]
    if kind not in names:
        guess = did_you_mean(kind, names)
        bare = kind in MECHANISMS and not MECHANISMS.section(kind).protects
        what = "takes no epsilon" if bare else "is no mechanism for the density of one column"
        raise UsageError(
            f"--mechanism: {kind[:40]} {what}; {guess + ' ' if guess else ''}known: {', '.join(names)}"
        )
    section = MECHANISMS.section(kind)
    if kind != own and not section.assumed:
        needs = [key for key, field in section.model_fields.items() if field.is_required() and key != "kind"]
        if needs:
            raise UsageError(
                f"--mechanism: {kind} needs {' and '.join(needs)}; state them in the spec's mechanism, of "
                "that kind"
            )


def target_of(stated: Mapping[str, float] | None) -> dict[str, float]:
    """Return the wanted standard deviations by the names that rows have."""
    return {_ALIASES.get(name, name): sd for name, sd in (stated or {}).items()}


def quantities_of(spec: RunSpec) -> list[str]:
    """Return the names of what is told of a mixture."""
    groups = () if spec.groups is None else spec.groups[1]
    return [*([by_group(name, group) for group in groups for name in QUANTITIES] or QUANTITIES), BAND]


def by_group(name: str, group: str) -> str:
    """Return the name of a quantity in a group."""
    return f"{name[:-1].replace('[', f'[{group},')}]" if name.endswith("]") else f"{name}[{group}]"


def check_target(target: Mapping[str, float], known: Sequence[str]) -> None:
    """Check that what is wanted is among the quantities that are known.

    Raises
    ------
    SpecError
        For one that is not.
    """
    for name in target:
        if name not in known:
            guess = did_you_mean(name, known)
            raise SpecError(
                f"advise.target.{name}: no quantity of this spec; {guess + ' ' if guess else ''}known: "
                f"{', '.join(known[:12])}{', ..' if len(known) > 12 else ''}"
            )
