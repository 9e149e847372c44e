"""The documents do what they say: commands of the README run, links lead somewhere."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import create_autospec

import numpy as np
import pytest

from dpmix.results.result import Result
from dpmix.spec.kinds import MECHANISMS
from tests.helpers.specs import ROOT
from tests.unit.repository.test_tutorials import run_here

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_are_there(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


def test_files_that_the_recipes_name_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`([\w/]+\.(?:py|md|toml))`", text)) - {"CHANGELOG.md"}
    missing = {name for name in named if not any((ROOT / top / name).exists() for top in ("", "dpmix"))}
    assert len(named) > 40 and {name for name in missing if "NAME" not in name} == set()


def test_every_mechanism_of_a_mixture_is_in_the_table_of_samplers():
    text = (ROOT / "docs" / "samplers.md").read_text()
    table = text.partition("## What goes with what")[2].partition("`dpmix validate`")[0]
    rows = [row.split("|") for row in table.splitlines() if row.startswith("| `")]
    section = {name: MECHANISMS.section(name) for name in MECHANISMS.names}
    mixed = {name for name in section if section[name].released in ("records", "histogram")}
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[1])} >= mixed
    counted = {name for row in rows if "`counts`" in row[3] for name in re.findall(r"`(\w+)`", row[1])}
    assert counted == {name for name in mixed if section[name].countable}


def cited(text: str) -> list[tuple[str, str]]:
    """Return the tests that a page names, as `tests/x/test_y.py::test_z`."""
    return re.findall(r"(tests/[\w/]+\.py)::(\w+)", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_are_cited_are_there(page):
    for path, name in cited(page.read_text()):
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path}::{name}"


def test_cited_tests_are_found_and_missing_ones_noticed():
    assert cited("see `tests/unit/repository/test_docs.py::test_x`, [y](../tests/test_y.py)") == [
        ("tests/unit/repository/test_docs.py", "test_x")
    ]
    proofs = cited((ROOT / "docs" / "posterior-mechanism.md").read_text())
    assert len(proofs) >= 4 and all(name.startswith("test_") for _, name in proofs)


@pytest.fixture
def data(tmp_path):
    """Data for the commands of the README, in the folder of a test."""
    values = np.random.default_rng(1).uniform(1.0, 9.0, 30)
    (tmp_path / "data.csv").write_text("value\n" + "\n".join(f"{value:.3f}" for value in values) + "\n")


WRITTEN = {"release.h5", "chains.h5", "summary.h5", "summary.json", "report.html"}


def test_commands_of_the_readme_run(data, tmp_path):
    """One by one, in this process and with short chains: they fit together."""
    (commands,) = blocks(ROOT / "README.md", "sh")
    for line in commands.splitlines():
        command = line.partition(" #")[0].strip()
        assert command.startswith("dpmix ")
        assert run_here(command, tmp_path)[0] == 0, command
    assert set(os.listdir(tmp_path)) >= WRITTEN


@pytest.mark.matrix
def test_commands_of_the_readme_run_in_a_shell(data, tmp_path):
    (commands,) = blocks(ROOT / "README.md", "sh")
    # the same spec with short chains: what is tested is that the commands fit together
    short = "sed -i 's/iterations: 20000/iterations: 400/; s/burn_in: 10000/burn_in: 200/' spec.yaml\n"
    script = commands.replace("dpmix validate", short + "dpmix validate", 1)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert set(os.listdir(tmp_path)) >= WRITTEN


RELEASES = re.compile(
    r"^\$ (dpmix (?:privatize|synthesize) configs/(?!.*--compare).*)\n((?:dpmix: .*\n)*)", re.MULTILINE
)


@pytest.mark.parametrize("name", ["README.md", "docs/examples.md", "docs/synthesis.md"])
def test_releases_say_what_pages_show(name: str, tmp_path: Path) -> None:
    """Scales and guarantees follow from specs; noise enters the threshold that was chosen alone."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    (tmp_path / "demo").mkdir()
    found = [each for block in blocks(ROOT / name, "text") for each in RELEASES.findall(block)]
    assert found
    for command, shown in found:
        for left in tmp_path.glob("*.h5"):
            left.unlink()
        code, said = run_here(command, tmp_path)
        lines = [re.sub(r"(?<=chosen is )\S+", "..", text) for text in (shown, said)]
        assert (code, lines[1]) == (0, lines[0]), command


def test_python_of_the_readme_runs(tmp_path, monkeypatch):
    import dpmix

    (code,) = blocks(ROOT / "README.md", "python")
    calls = []
    result = create_autospec(Result, instance=True)
    result.rows.return_value = [{"parameter": "mean", "mean": 1.0, "rhat": 1.0}]

    def call(function, *args, **kwargs):
        calls.append(_bound(function, args, kwargs))
        return result

    monkeypatch.chdir(tmp_path)
    for verb in ("privatize", "fit", "summarize"):
        monkeypatch.setattr(dpmix, verb, functools.partial(call, getattr(dpmix, verb)), raising=False)
    exec(compile(code, "README.md", "exec"), {})
    assert calls == ["privatize", "fit", "summarize"]


def _bound(function, args, kwargs):
    import inspect

    inspect.signature(function).bind(*args, **kwargs)
    return function.__name__
