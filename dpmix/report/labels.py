"""Names from files as they may stand in pictures."""

from __future__ import annotations

__all__ = ["plain"]

_LETTERS = 32


def plain(name: str) -> str:
    """Shorten a name, and keep matplotlib from reading mathematics in it."""
    short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
    return short.replace("$", r"\$")
