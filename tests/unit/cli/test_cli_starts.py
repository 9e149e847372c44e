"""Where a newcomer starts: bare commands list what there is, examples in help parse, completion installs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dpmix.cli import commands
from dpmix.run import exit_codes
from dpmix.spec.schema import schema, sweep_schema
from dpmix.spec.starters import starter, starters, sweep_starters

ROOT = typer.main.get_command(commands.app)


def outcome(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = exit_codes.run(commands.app, list(arguments))
    return (code, *capsys.readouterr())


def every_command(group: Any = ROOT, path: str = "dpmix") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from every_command(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_bare_dpmix_lists_every_command(capsys: Any) -> None:
    code, out, err = outcome(capsys)
    assert (code, err) == (0, "")
    for name, command in ROOT.commands.items():
        assert re.search(rf"^  {name} +\S", out, re.MULTILINE)
        assert command.help.split()[0] in out
    assert max(map(len, out.splitlines())) <= 100


def test_bare_init_lists_every_starter(capsys: Any) -> None:
    code, out, err = outcome(capsys, "init")
    assert (code, err) == (0, "")
    listed = re.findall(r"^  (\w+)  +\S", out, re.MULTILINE)
    assert listed == [*starters(), *sweep_starters()]
    assert {"square_wave", "randomized_response", "counts", "groups"} <= set(listed)


def test_options_of_init_want_a_kind(capsys: Any) -> None:
    code, out, err = outcome(capsys, "init", "--force")
    assert (code, out) == (2, "") and err.startswith("dpmix: error: KIND: missing")


@pytest.mark.parametrize("kind", [*starters(), *sweep_starters()])
def test_starters_name_a_schema_that_the_command_makes(kind: str) -> None:
    first, second = starter(kind).splitlines()[:2]
    file = first.removeprefix("# yaml-language-server: $schema=")
    made = re.fullmatch(r"# \(for editors: dpmix (schema.*) > (\S+)\)", second)
    assert made is not None and made.group(2) == file
    wanted = sweep_schema() if kind in sweep_starters() else schema()
    assert ("--sweep" in made.group(1)) == (kind in sweep_starters())
    assert json.loads(json.dumps(wanted))["title"]


def test_every_command_has_examples_that_parse() -> None:
    for path, command in every_command():
        lines = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]
        assert lines, f"{path}: no examples"
        for line in lines:
            words = shlex.split(line.split(" < ")[0].split(" > ")[0])
            assert " ".join(words).startswith(("dpmix", path))
            group, rest = ROOT, words[1:]
            while hasattr(group, "commands"):
                assert rest[0] in group.commands, line
                group, rest = group.commands[rest[0]], rest[1:]
            group.make_context(words[1], list(rest)).close()  # raises for an option that there is not


def test_completion_installs(tmp_path: Path) -> None:
    """In a home of its own; the shell is named, for none calls this."""
    environment = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    arguments = [sys.executable, "-m", "dpmix", "--install-completion", "bash"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_DPMIX_COMPLETE" in path.read_text() for path in written)
    asked = {**os.environ, "_DPMIX_COMPLETE": "complete_bash", "COMP_WORDS": "dpmix su", "COMP_CWORD": "1"}
    found = subprocess.run([sys.executable, "-m", "dpmix"], env=asked, capture_output=True, text=True)
    assert (found.returncode, found.stdout.split()) == (0, ["summarize"]), found.stderr
