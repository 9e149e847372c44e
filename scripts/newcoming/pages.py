"""What a tutorial asks of its reader: files to write and commands to run, with the output that it shows.

Of a page in Markdown three kinds of fenced blocks are read; all others are for the eye:

- ``yaml`` and ``python`` blocks whose first line is a comment with a file's name alone, ``# spec.yaml``, are
  written to that file;
- ``console`` blocks hold commands after ``$ ``, each with its output, standard error included. It has to be
  what the command says; a line ``...`` stands for any lines;
  Lines on how far long work is do not count.
- ``console varies`` blocks the same where noise from the operating system enters: any number may be another
  one, and space between words does not count.

Nothing but the standard library is imported: `scripts/newcomer` reads pages before dpmix is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# ([\w.-]+\.(?:yaml|py))\n")
_NUMBER = re.compile(r"(?<![A-Za-z_])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
ANY = "..."
_PROGRESS = re.compile(r"dpmix: [^:]+: [\d,]+ (?:s so far|of [\d,]+(?: sweeps \(\d+%\))?)")
"""What long work says, on a slow machine more often; no page shows it."""


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command that the reader runs, and what the page says that it prints."""

    text: str
    shown: tuple[str, ...]
    varies: bool


def steps(page: Path) -> Iterator[File | Command]:
    """Give the files and commands of a page, in order.

    Raises
    ------
    ValueError
        Where a console block begins with something else than a command.
    """
    for fence in _FENCE.finditer(page.read_text("utf-8")):
        language, body = fence.group(1).strip(), fence.group(2)
        named = _NAME.match(body)
        if language in ("yaml", "python") and named:
            yield File(named.group(1), body)
        elif language in ("console", "console varies"):
            yield from _commands(body, language.endswith("varies"), page)


def _commands(body: str, varies: bool, page: Path) -> Iterator[Command]:
    found: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0][:-1].rstrip()} {line.strip()}", [])
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f'{page}: a console block begins with "{line}", which is no command')
    for text, shown in found:
        yield Command(text, tuple(shown), varies)


def differs(command: Command, said: str) -> str | None:
    """Return how a command's output differs from what the page shows, or None where it does not.

    Parameters
    ----------
    command : Command
        With the lines that are shown.
    said : str
        What the command printed.
    """
    shown = "\n".join(command.shown).rstrip().splitlines()
    got = [line for line in said.rstrip().splitlines() if not _PROGRESS.fullmatch(line)]
    if _fits([_form(line, command.varies) for line in shown], [_form(line, command.varies) for line in got]):
        return None
    return "\n".join(["the page shows", *shown, "but the command prints", *got])


def _form(line: str, varies: bool) -> str:
    if line.strip() == ANY:
        return ANY
    if not varies:
        return line.rstrip()
    # a table leaves out its last column where its numbers are wide
    return re.sub(r"#( #)+", "#", " ".join(_NUMBER.sub("#", line).split())).removesuffix(" ESS/s")


def _fits(shown: Sequence[str], got: Sequence[str]) -> bool:
    """Whether lines are as shown, where ``...`` stands for any lines."""
    reached = {0}  # numbers of lines of the output that lines shown so far may have taken
    for line in shown:
        if line == ANY:
            reached = set(range(min(reached, default=len(got) + 1), len(got) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(got) and got[at] == line}
    return len(got) in reached
