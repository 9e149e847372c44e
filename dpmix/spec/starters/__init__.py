"""Commented specs to start from: each ``.yaml`` file of this folder is one."""

from __future__ import annotations

from importlib.resources import files

from dpmix.errors import UsageError
from dpmix.spec.messages import did_you_mean

_SUFFIX = ".yaml"


def starters() -> tuple[str, ...]:
    """Return the kinds of starter that there are."""
    names = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def starter(kind: str) -> str:
    """Return the commented spec of one kind, as YAML.

    Raises
    ------
    UsageError
        If there is none of that name; the message lists all.
    """
    known = starters()
    if kind not in known:
        guess = did_you_mean(kind, known)
        raise UsageError(
            f'init: unknown kind "{kind[:40]}"; {guess + " " if guess else ""}known: {", ".join(known)}'
        )
    return (files(__name__) / f"{kind}{_SUFFIX}").read_text("utf-8")
