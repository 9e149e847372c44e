"""Commented specs to start from: each ``.yaml`` file of this folder is one; those in ``many`` are sweeps."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import takewhile

from dpmix.errors import UsageError
from dpmix.spec.messages import did_you_mean

_SUFFIX = ".yaml"
_MANY = "many"


def starters() -> tuple[str, ...]:
    """Return the kinds of starter of one run that there are."""
    return _names(files(__name__))


def sweep_starters() -> tuple[str, ...]:
    """Return the kinds of starter of many runs, specs of `dpmix sweep`."""
    return _names(files(__name__) / _MANY)


def _names(folder: Traversable) -> tuple[str, ...]:
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def starter_files(kind: str) -> dict[str, str]:
    """Return the files of a starter by name: its spec, and what the spec names that users bring themselves.

    Raises UsageError as `starter`.
    """
    found = {f"{kind}{_SUFFIX}": starter(kind)}
    folder = files(__name__) / kind
    if folder.is_dir():
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_file():
                found[entry.name.removesuffix(".txt")] = entry.read_text("utf-8")
    return found


def listed() -> str:
    """Return every kind of starter with what it is, for who wants to choose one."""
    lines = ["dpmix init KIND prints a commented spec to start from. KIND is one of", ""]
    for heading, names in (("", starters()), ("of dpmix sweep", sweep_starters())):
        lines += ["", f"{heading}:", ""] if heading else []
        width = max(map(len, (*starters(), *sweep_starters())))
        lines += [f"  {name:<{width}}  {_title(name)}" for name in names]
    return "\n".join(lines)


def _title(kind: str) -> str:
    """Return the first sentence of a starter, which says what it is for."""
    words = " ".join(line.removeprefix("# ") for line in takewhile(_is_comment, _text(kind).splitlines()))
    return words.split(". ")[0].split(".   ")[0].rstrip(".")


def _is_comment(line: str) -> bool:
    return line.startswith("# ") and not line.startswith("#   ")


def starter(kind: str) -> str:
    """Return the commented spec of one kind, as YAML.

    Its first line names the schema for editors that know the YAML language server, as a file beside the spec.

    Raises
    ------
    UsageError
        If there is none of that name; the message lists all.
    """
    of_many = sweep_starters()
    known = (*starters(), *of_many)
    if kind not in known:
        guess = did_you_mean(kind, known)
        raise UsageError(
            f'init: unknown kind "{kind[:40]}"; {guess + " " if guess else ""}known: {", ".join(known)}'
        )
    return f"{_for_editors(kind in of_many)}\n{_text(kind)}"


def _text(kind: str) -> str:
    folder = files(__name__) / _MANY if kind in sweep_starters() else files(__name__)
    return (folder / f"{kind}{_SUFFIX}").read_text("utf-8")


def _for_editors(of_sweep: bool) -> str:
    name, option = ("dpmix.sweep.schema.json", " --sweep") if of_sweep else ("dpmix.schema.json", "")
    return f"# yaml-language-server: $schema={name}\n# (for editors: dpmix schema{option} > {name})"
