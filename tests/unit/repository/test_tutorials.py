"""Tutorials do what they show: their files are written, their commands run, and outputs compared.

Here in one process, with short chains and without pictures; `scripts/newcomer` does the same from a wheel,
with whole chains.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest

from dpmix.cli import commands
from dpmix.run import exit_codes
from newcoming.__main__ import PAGES, follow
from newcoming.pages import Command, File, differs, steps
from tests.helpers.pages import undrawn
from tests.helpers.specs import ROOT

LONG = ("cluster", "own-csv", "published-density")
SHORT = ["--set", "sampler.iterations=240", "--set", "sampler.burn_in=120"]


def run_here(command: str, folder: Path) -> tuple[int, str]:
    """Run a command of a tutorial in this process, `fit` with short chains, and pages without pictures."""
    words = shlex.split(command)
    if words[0] not in ("dpmix", "python") or set("|;&") & set(command):
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr
    target = folder / words.pop() if ">" in words else None
    if target is not None:
        words.remove(">")
    out, err = io.StringIO(), io.StringIO()
    to = out if target is not None else err
    with contextlib.chdir(folder), contextlib.redirect_stdout(to), contextlib.redirect_stderr(err):
        code = 0
        if words[0] == "python":
            runpy.run_path(words[1])
        else:
            with undrawn():
                code = exit_codes.run(commands.app, words[1:] + SHORT * (words[1] == "fit"))
    if target is not None:
        target.write_text(out.getvalue(), "utf-8")
    return code, err.getvalue()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=pytest.mark.matrix if page.stem in LONG else ())
        for page in sorted(PAGES.glob("*.md"))
    ],
)
def test_tutorial_does_what_it_shows(page: Path, tmp_path: Path) -> None:
    asked = [step for step in steps(page) if isinstance(step, Command)]
    assert any(step.text.startswith("dpmix ") for step in asked)
    problem = follow(page, tmp_path, run_here)
    assert problem is None, problem


def test_python_of_the_reference_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "reference" / "python.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    assert '"iterations": 4000' in code
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(code.replace('"iterations": 4000', '"iterations": 200'), "python.md", "exec"), {})
    assert "contraction" in said.getvalue() and "quantile[0.5]" in said.getvalue()


def page_of(tmp_path: Path, text: str) -> Path:
    (tmp_path / "page.md").write_text(text, "utf-8")
    return tmp_path / "page.md"


def test_a_page_is_taken_apart(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        "# T\n\n```yaml\n# a.yaml\nx: 1\n```\n\n```sh\nnot run\n```\n\n"
        "```console\n$ one\nsaid\n\n$ two\n```\n"
        "```console varies\n$ three \\\n  more\n...\n```\n",
    )
    assert list(steps(page)) == [
        File("a.yaml", "# a.yaml\nx: 1\n"),
        Command("one", ("said", ""), False),
        Command("two", (), False),
        Command("three more", ("...",), True),
    ]
    with pytest.raises(ValueError, match="which is no command"):
        list(steps(page_of(tmp_path, "```console\nsaid\n```\n")))


@pytest.mark.parametrize(
    ("shown", "said", "varies", "same"),
    [
        ("a 1", "a 1\n", False, True),
        ("a 1", "a 2\n", False, False),
        ("a 1", "a  2.5e-03\n", True, True),
        ("a 1", "b 1\n", True, False),
        ("a 1", "a 1\nmore\n", True, False),
        ("", "", False, True),
        ("", "words\n", False, False),
        ("x  1  2  R-hat  ESS/s", "x 3 R-hat\n", True, True),
        ("a\n...\nb", "a\n1\n2\nb\n", False, True),
        ("a\n...\nb", "a\nb\n", False, True),
        ("a\n...\nb", "a\nb\nc\n", False, False),
        ("...\na\n...\na", "a\nb\na\n", False, True),
        ("mean[a] -1,234.5", "mean[b] 7\n", True, False),
        ("a", "dpmix: calibrating: 10 s so far\na\ndpmix: drawing and measuring: 6 of 60\n", False, True),
        ("a", "dpmix: warning: 6 of 60 values are missing\na\n", False, False),
    ],
)
def test_what_counts_as_shown(shown: str, said: str, varies: bool, same: bool) -> None:
    assert (differs(Command("c", tuple(shown.splitlines()), varies), said) is None) is same


def test_a_wrong_output_is_reported(tmp_path: Path) -> None:
    page = page_of(tmp_path, "```console\n$ echo yes\nno\n```\n")
    problem = follow(page, tmp_path / "in", run_here)
    assert problem is not None and "$ echo yes" in problem and "no" in problem
    assert follow(page_of(tmp_path, "```console\n$ false\n```\n"), tmp_path / "in", run_here) is not None
