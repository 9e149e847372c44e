"""Groups whose sizes are private: what a spec says of them, and what does not go with them."""

from __future__ import annotations

from typing import Any

from dpmix.spec.capabilities import listed
from dpmix.spec.kinds import kinds_that

__all__ = ["group_problem", "groups_in"]

_MOST = 1_000_000
"""Numbers of cells, of all groups, as of bins of one."""


def groups_in(spec: Any) -> tuple[str, tuple[str, ...]] | None:
    """Return the name of the column of groups and the groups, of ``data``, else of ``release``."""
    for section in (spec.data, spec.release):
        if section is not None and section.group is not None:
            return section.group, section.groups
    return None


def group_problem(spec: Any) -> tuple[str, str] | None:
    """Return key and sentence of the first thing that does not go with groups, None if all do.

    Parameters
    ----------
    spec : RunSpec
    """
    stated = [
        (key, section)
        for key, section in (("data", spec.data), ("release", spec.release))
        if section is not None and section.group is not None
    ]
    if not stated:
        return None
    if len(stated) == 2 and (spec.data.group, spec.data.groups) != (spec.release.group, spec.release.groups):
        return "release.group", "differs from data.group, or in its categories; state the groups once"
    key, section = stated[0]
    mechanism = spec.mechanism
    if mechanism is None:
        if spec.synthesis is not None:
            return (
                f"{key}.group",
                "is not for synthesis; take the column into columns, with its categories, or release groups "
                f"by mechanism.kind {listed(kinds_that('grouped'))}",
            )
        if key == "release" and section.path is not None:
            return f"{key}.group", "needs a mechanism, which says how the groups were released"
        return None
    if not mechanism.grouped:
        return (
            f"{key}.group",
            f"{mechanism.kind} is not for groups whose sizes are private; use "
            f"{listed(kinds_that('grouped'))}, or leave it out",
        )
    if spec.synthesis is not None:
        return f"{key}.group", "is not for synthesis; leave that section, or the groups, out"
    problem: tuple[str, str] | None = None if spec.model is None else spec.model.group_problem(spec)
    if problem is not None:
        return problem
    if getattr(mechanism, "split", None) is not None:
        return "mechanism.split", f"is not for groups whose sizes are private ({key}.group); leave it out"
    return _size_problem(mechanism, len(section.groups))


def _size_problem(mechanism: Any, groups: int) -> tuple[str, str] | None:
    """Refuse more cells than a release holds."""
    which, each = mechanism.cells_of_group()
    if groups * each > _MOST:
        return (
            f"mechanism.{which}",
            f"in {groups} groups that is {groups * each:,} cells; at most {_MOST:,} are released",
        )
    return None
