"""A dry run opens the files that a command reads, and refuses those that it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from tests.helpers.fits import release_file, small_release, small_spec
from tests.unit.cli.test_cli import outcome, refused
from tests.unit.models.test_models_groups import NOISY, histogram
from tests.unit.models.test_models_naive_bayes import released

COLUMNS: dict[str, Any] = {
    "columns": ["age", "vote"],
    "categories": {"age": ["18", "30", "50+"], "vote": ["a", "b"]},
}
BOUNDED = {"data": {"path": "none.csv", "column": "x", "domain": [0, 1]}}  # which advice never opens


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a release, the chains of a mixture and of a classifier, a table, and what is none of these."""
    folder = tmp_path_factory.mktemp("files")
    release_file(folder)
    dpmix.fit(small_spec(iterations=24, burn_in=4), small_release(), folder / "mixture.h5", quiet=True)
    naive = {"model": {"kind": "naive_bayes"}, "sampler": {"iterations": 1200, "burn_in": 200, "seed": 1}}
    votes = released(np.arange(6.0) % 5 + 20, [3], 2, 90, **COLUMNS)
    dpmix.fit(naive, votes, folder / "votes.h5", quiet=True)
    (folder / "at.csv").write_text("age\n18\n")
    (folder / "other.csv").write_text("wage\n18\n")
    (folder / "level.csv").write_text("age\n19\n")
    groups = histogram([9, 4, 2, 3, 8, 5], NOISY, 31)
    grouped = {"model": {"kind": "discrete"}, "sampler": {"iterations": 60, "burn_in": 20, "seed": 1}}
    dpmix.fit(grouped, groups, folder / "groups.h5", quiet=True)
    (folder / "no.h5").write_bytes(b"no HDF5")
    (folder / "spec.yaml").write_text(json.dumps(small_spec()))
    (folder / "bounded.yaml").write_text(json.dumps(BOUNDED))
    data = {"path": "other.csv", "column": "age", "domain": [0, 99]}
    local = {"data": data, "mechanism": {"kind": "laplace", "epsilon": 1}}
    (folder / "local.yaml").write_text(json.dumps(local))
    return folder


GOES = {
    "summarize": ("summarize", "mixture.h5", "-o", "new.h5"),
    "predict": ("predict", "votes.h5", "--at", "at.csv", "-o", "new.csv"),
    "synthesize": ("synthesize", "spec.yaml", "--chains", "mixture.h5", "-o", "new.csv"),
    "advise": ("advise", "bounded.yaml"),
}
REFUSED = {
    "no HDF5": (3, "no.h5", ("summarize", "no.h5")),
    "a release": (3, "is a release by laplace", ("summarize", "release.h5")),
    "a key": (2, "summary.levle", ("summarize", "mixture.h5", "--set", "summary.levle=1")),
    "no records at": (3, "summary.at: ", ("summarize", "votes.h5", "--set", "summary.at=nowhere.csv")),
    "no such quantity": (
        *(2, "summary.tails: is for mixture and discrete"),
        ("summarize", "votes.h5", "--set", "summary.tails=[2]"),
    ),
    "no records of a model": (
        *(3, "whose draws hold no records"),
        ("synthesize", "spec.yaml", "--chains", "votes.h5", "-o", "new.csv"),
    ),
    "two fits": (3, "differs from", ("summarize", "mixture.h5", "votes.h5")),
    "no groups": (3, "without groups", ("summarize", "mixture.h5", "--contrast")),
    "another group": (
        2,
        "has no group males",
        ("summarize", "groups.h5", "--contrast", "--groups", "female,males"),
    ),
    "a group with a comma": (
        *(2, "has no group a,b"),
        ("summarize", "groups.h5", "--contrast", "--groups", 'male, "a,b"'),
    ),
    "one group": (2, "give two different", ("summarize", "groups.h5", "--contrast", "--groups", "male,male")),
    "a fit of groups": (3, "is of a release of groups", ("summarize", "groups.h5", "votes.h5", "--contrast")),
    "no column": (3, "other.csv has no column 'age'", ("predict", "votes.h5", "--at", "other.csv")),
    "no category": (3, "none of the 3 categories", ("predict", "votes.h5", "--at", "level.csv")),
    "no page": (2, "a report is an HTML page", ("summarize", "mixture.h5", "--report", "new.json")),
    "another model": (3, "model mixture, which predicts no", ("predict", "mixture.h5", "--at", "at.csv")),
    "no table": (3, "no table to predict", ("predict", "votes.h5", "--at", "release.h5")),
    "no chains": (3, "release.h5 is a release file", ("predict", "release.h5", "--at", "at.csv")),
    "no such column": (3, "other.csv has no column 'age'", ("privatize", "local.yaml", "-o", "new.h5")),
    "no fit": (3, "a release file", ("synthesize", "spec.yaml", "--chains", "release.h5", "-o", "n.csv")),
    "no bounds": (2, "data.domain: missing", ("advise", "spec.yaml")),
    "a discount": (2, "model.discount: ", ("advise", "bounded.yaml", "--set", "model.discount=0.3")),
}


@pytest.mark.parametrize("name", GOES)
def test_a_dry_run_says_what_would_be_done(
    name: str, files: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    code, out, err = outcome(capsys, *GOES[name], "--dry-run")
    assert (code, err) == (0, "") and "would write" in out
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize("name", REFUSED)
def test_a_dry_run_refuses_what_the_command_refuses(
    name: str, files: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    code, said, command = REFUSED[name]
    found = refused(capsys, code, *command, "--dry-run")
    assert said in found
    assert refused(capsys, code, *command) == found
