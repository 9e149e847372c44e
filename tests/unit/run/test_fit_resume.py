"""A run that was stopped or killed goes on to the very draws of one that was not."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

import dpmix
from dpmix.api.fit import plan
from dpmix.errors import DataError, Interrupted, SpecError, UsageError
from dpmix.run.runner import Run
from dpmix.run.workspace import Workspace, workspace_of
from tests.helpers.fits import assert_same, finish, release_file, small_release, small_spec, start
from tests.unit.cli.test_cli import outcome

LONG: dict[str, Any] = {"iterations": 12_000, "burn_in": 1000, "thin": 1}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with spec, release, and the chains of a run that nothing stopped."""
    folder = tmp_path_factory.mktemp("resume")
    (folder / "spec.yaml").write_text(yaml.safe_dump(small_spec(**LONG)), encoding="utf-8")
    dpmix.fit(folder / "spec.yaml", release_file(folder), folder / "whole.h5", quiet=True)
    return folder


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of a shorter run, for tests that stop at a place and not at a time."""
    folder = tmp_path_factory.mktemp("brief")
    (folder / "spec.yaml").write_text(yaml.safe_dump(small_spec(**LONG | {"iterations": 3000})), "utf-8")
    dpmix.fit(folder / "spec.yaml", release_file(folder), folder / "whole.h5", quiet=True)
    return folder


def _go_on(folder: Path, output: Path) -> None:
    """Finish a run of the spec and release in a folder, in this process."""
    dpmix.fit(folder / "spec.yaml", folder / "release.h5", output, resume=True, quiet=True)


def _wait_for(folder: Path, pattern: str, process: Any, since: float = 0.0) -> None:
    """Wait until the process has written a file of this name, after a time, or has finished before."""
    deadline = time.monotonic() + 240
    while not any(path.stat().st_mtime > since for path in folder.glob(pattern)):
        if process.poll() is not None:
            assert process.returncode == 0, process.communicate()
            return
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize(
    "name",
    ["SIGINT", "SIGKILL", *(pytest.param(name, marks=pytest.mark.matrix) for name in ("SIGTERM", "SIGHUP"))],
)
def test_a_stopped_run_goes_on_bit_for_bit(name: str, uninterrupted: Path, tmp_path: Path) -> None:
    number = signal.Signals[name]
    output = tmp_path / "c.h5"
    arguments = ("fit", uninterrupted / "spec.yaml", "--release", uninterrupted / "release.h5", "-o", output)
    pause = random.Random(number)  # other moments for each signal, the same in each run of the tests
    stops = 0
    for _ in range(1 if number is signal.SIGKILL else 2):
        since = time.time()
        process = start(*arguments, *(["--resume"] if stops else []))
        _wait_for(workspace_of(output), "chain-*.0*.h5", process, since)
        time.sleep(pause.random() * 0.2)
        process.send_signal(number)
        code, err = finish(process)
        if output.exists():  # it was quicker
            break
        stops += 1
        if number is signal.SIGKILL:
            assert code == -signal.SIGKILL
        else:
            assert (code, err) == (130, "dpmix: interrupted; the state is saved: go on with --resume\n")
    assert stops > 0
    if not output.exists():
        _go_on(uninterrupted, output)
    assert_same(output, uninterrupted / "whole.h5")
    assert not workspace_of(output).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["c.h5"]


def test_a_second_signal_ends_the_process_without_harm(brief: Path, tmp_path: Path) -> None:
    output = tmp_path / "c.h5"
    arguments = ("fit", brief / "spec.yaml", "--release", brief / "release.h5", "-o", output)
    slow = (
        "import time\nfrom dpmix.run.workspace import Workspace\nadd = Workspace.add\n"
        "def late(*args):\n    add(*args)\n    time.sleep(60)\nWorkspace.add = late"
    )
    process = start(*arguments, more=slow)
    _wait_for(workspace_of(output), "chain-0.state.h5", process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, err = finish(process, timeout=20)
    assert code == 130
    assert err == "dpmix: stopped at once; go on from the last saved state with --resume\n"
    _go_on(brief, output)
    assert_same(output, brief / "whole.h5")


@pytest.mark.parametrize("where", ["fit.write_chains", "chains._compile"])
def test_compiling_and_assembly_can_be_interrupted(where: str, brief: Path, tmp_path: Path) -> None:
    output = tmp_path / "c.h5"
    arguments = ("fit", brief / "spec.yaml", "--release", brief / "release.h5", "-o", output)
    tell = (
        f"import pathlib, time\nreal = {where}\ndef told(*args, **options):\n"
        f"    pathlib.Path({str(tmp_path / 'here')!r}).touch()\n    time.sleep(0.5)\n"
        f"    return real(*args, **options)\n{where} = told\n"
    )
    process = start(*arguments, more=tell)
    _wait_for(tmp_path, "here", process)
    process.send_signal(signal.SIGTERM)
    assert finish(process) == (130, "dpmix: interrupted; the state is saved: go on with --resume\n")
    assert not output.exists()
    _go_on(brief, output)
    assert_same(output, brief / "whole.h5")


def _interrupt(
    monkeypatch: pytest.MonkeyPatch, folder: Path, spec: Any, after: int = 2, **options: Any
) -> Path:
    """Leave an interrupted run in the folder; return its output."""
    monkeypatch.setattr("dpmix.run.runner.CHECKPOINT_SECONDS", 0.0)
    seen = []
    add = Workspace.add

    def limited(self: Workspace, *args: Any) -> None:
        add(self, *args)
        seen.append(args)
        if len(seen) >= after:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)  # for the main thread to take it

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "add", limited)
        with pytest.raises(Interrupted), contextlib.suppress(Exception):  # what goes on after errors ends
            dpmix.fit(spec, small_release(), folder / "c.h5", quiet=True, jobs=1, **options)
    assert workspace_of(folder / "c.h5").is_dir()
    return folder / "c.h5"


def test_what_an_interrupted_run_may_go_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = small_spec()
    output = _interrupt(monkeypatch, tmp_path, spec)
    kept = sorted(workspace_of(output).iterdir())

    def refused(
        error: type[Exception], said: str, source: Any = spec, release: Any = None, **options: Any
    ) -> None:
        with pytest.raises(error, match=said):
            dpmix.fit(source, release or small_release(), output, quiet=True, **options)
        assert sorted(workspace_of(output).iterdir()) == kept

    refused(UsageError, "holds an interrupted run; go on with --resume, or start over with --force")
    refused(SpecError, r"^sampler.seed: .* has 7, not 8;", small_spec(seed=8), resume=True)
    refused(SpecError, r"^sampler.chains: .* has 2, not 3;", chains=3, resume=True)
    refused(SpecError, r"^chains: .* has \[0, 1\], not \[1\];", chain_id=1, resume=True)
    refused(SpecError, r"^release: .* has other released values", release=small_release(n=41), resume=True)
    refused(UsageError, "give one of them", resume=True, force=True)
    with monkeypatch.context() as patch:
        patch.setattr("dpmix.api.fit.__version__", "9.9")
        refused(SpecError, "^dpmix_version: .* has 0.1.0, not 9.9;", resume=True)
    output.write_bytes(b"written since")
    refused(UsageError, "exists already", resume=True)
    output.unlink()
    (workspace_of(output) / ".half.h5.0123.partial").write_bytes(b"half")
    dpmix.fit(spec, small_release(), output, resume=True, quiet=True)
    dpmix.fit(spec, small_release(), tmp_path / "whole.h5", quiet=True)
    assert_same(output, tmp_path / "whole.h5")
    before = output.read_bytes()
    assert not dpmix.fit(spec, small_release(), output, resume=True, quiet=True).written
    for message, changes in (
        (r"^sampler.seed: the finished .* has 7, not 8;", {"spec": small_spec(seed=8)}),
        (r"^release: the finished .* has other released values", {"release": small_release(n=41)}),
    ):
        arguments = {"spec": spec, "release": small_release(), **changes}
        with pytest.raises(SpecError, match=message):
            dpmix.fit(**arguments, output=output, resume=True, quiet=True)
    assert output.read_bytes() == before
    dpmix.fit(spec, small_release(), output, force=True, quiet=True)
    assert_same(output, tmp_path / "whole.h5")


def test_a_run_without_a_seed_goes_on_with_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = small_spec(seed=None)
    output = _interrupt(monkeypatch, tmp_path, spec)
    seed = json.loads((workspace_of(output) / "run.json").read_text("utf-8"))["entropy"]
    dpmix.fit(spec, small_release(), output, resume=True, quiet=True)
    monkeypatch.setattr("dpmix.api.fit._fresh_entropy", lambda: int(seed))
    dpmix.fit(spec, small_release(), tmp_path / "whole.h5", quiet=True)
    assert_same(output, tmp_path / "whole.h5")


def test_a_dry_run_refuses_what_a_run_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, other = small_spec(), small_spec() | {"model": {"kind": "mixture", "concentration": 3.0}}
    output = _interrupt(monkeypatch, tmp_path, spec)
    work = sorted((path.name, path.stat().st_mtime_ns) for path in workspace_of(output).iterdir())

    def refused(spec: Any, output: Path, **options: Any) -> str:
        said = []
        for verb in (plan, partial(dpmix.fit, quiet=True)):
            with pytest.raises((UsageError, SpecError, DataError)) as error:
                verb(spec, small_release(), output, **options)
            said.append((type(error.value), str(error.value)))
        assert said[0] == said[1]
        return said[0][1]

    assert "holds an interrupted run; go on with --resume" in refused(spec, output)
    assert "model.concentration: the interrupted run in" in refused(other, output, resume=True)
    assert "chains: the interrupted run in" in refused(spec, output, resume=True, chain_id=0)
    assert "give one of them" in refused(spec, output, resume=True, force=True)
    with Workspace.open(workspace_of(output)):
        assert "another dpmix fit is writing c.h5" in refused(spec, output, resume=True)
    whole = (workspace_of(output) / "run.json").read_text()
    (workspace_of(output) / "run.json").write_text("{")
    assert "damaged" in refused(spec, output, resume=True)
    (workspace_of(output) / "run.json").write_text(whole)
    said = plan(spec, small_release(), output, resume=True)
    assert said.startswith(f"go on with the interrupted run in {workspace_of(output)}: sample 60 sweeps of ")
    assert plan(spec, small_release(), output, force=True).startswith("sample 60 sweeps of ")
    found = sorted((path.name, path.stat().st_mtime_ns) for path in workspace_of(output).iterdir())
    assert [name for name, _ in found] == [name for name, _ in work]

    dpmix.fit(spec, small_release(), output, resume=True, quiet=True)
    assert "model.concentration: the finished" in refused(other, output, resume=True)
    assert "chains: the finished" in refused(spec, output, resume=True, chain_id=0)
    assert "exists already" in refused(spec, output)
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    asked = ["fit", tmp_path / "s.yaml", "--release", release_file(tmp_path), "-o", output, "--dry-run"]
    code, out, _ = outcome(capsys, *asked, "--resume")
    assert code == 0 and out.endswith(f"would leave {output} as it is, which is finished\n")
    code, _, err = outcome(capsys, *asked, "--resume", "--chain-id", "0")
    assert code == 2 and "chains: the finished" in err


def test_force_that_was_given_holds_when_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.h5").write_bytes(b"old")
    output = _interrupt(monkeypatch, tmp_path, small_spec(), force=True)
    assert output.read_bytes() == b"old"
    dpmix.fit(small_spec(), small_release(), output, resume=True, quiet=True)
    assert output.read_bytes() != b"old"


@pytest.mark.parametrize("name", ["run.json", "chain-0.state.h5", "chain-0.000000.h5"])
def test_damaged_work_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = _interrupt(monkeypatch, tmp_path, small_spec(burn_in=0), after=4)
    path = workspace_of(output) / name
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match="damaged"):
        dpmix.fit(small_spec(burn_in=0), small_release(), output, resume=True, quiet=True)
    path.unlink()
    if name == "chain-0.000000.h5":
        with pytest.raises(DataError, match="lacks draws of chain 0"):
            dpmix.fit(small_spec(burn_in=0), small_release(), output, resume=True, quiet=True)
    dpmix.fit(small_spec(burn_in=0), small_release(), output, force=True, quiet=True)
    assert not workspace_of(output).exists()


def test_two_processes_never_work_on_one_output(tmp_path: Path) -> None:
    output = tmp_path / "c.h5"
    said = "another dpmix fit is writing c.h5"
    with Workspace.open(workspace_of(output)), pytest.raises(UsageError, match=said):
        dpmix.fit(small_spec(), small_release(), output, quiet=True)
    dpmix.fit(small_spec(), small_release(), output, quiet=True)


def test_an_output_directory_that_goes_away_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    compiled = []

    def remove(task: Run) -> None:
        compiled.append(task)
        workspace_of(folder / "c.h5").rename(tmp_path / "elsewhere")
        folder.rmdir()

    monkeypatch.setattr("dpmix.run.runner._compile", remove)
    with pytest.raises(DataError, match=r"cannot write .*c\.h5\.partial.* does not exist"):
        dpmix.fit(small_spec(), small_release(), folder / "c.h5", quiet=True)
    assert compiled
