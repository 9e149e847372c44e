"""Sweeps: what is killed is gone on with, what fails costs no others, what is finished is left alone."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpmix
from dpmix.api import sweep as verbs
from dpmix.cli import commands
from dpmix.errors import ConvergenceError, DataError, SpecError, UsageError
from dpmix.run import exit_codes
from dpmix.store.tree import read
from dpmix.sweeping.emit import Emission, emitted
from dpmix.sweeping.pool import Outcome, Pool, Progress, show_sweep
from dpmix.sweeping.table import TIMES
from tests.unit.sweeping.test_sweep_plan import sweep_of

EPSILONS = [2, 5, 10]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "sweep.yaml"
    summary = {"summary.grid": [-10.0, 10.0, 50]}
    path.write_text(json.dumps(sweep_of(grid={"mechanism.epsilon": EPSILONS}, set=summary)))
    return path


@pytest.fixture(scope="module")
def whole(spec: Path) -> tuple[Path, list[dict[str, str]]]:
    """Return the folder and the table of a sweep that nothing came between, done in this process."""
    folder = spec.parent / "whole"
    for epsilon in EPSILONS:
        row = verbs.do_one(spec, folder, f"epsilon={epsilon}")
        assert row["mechanism.epsilon"] == epsilon
    result = verbs.gather(spec, folder)
    assert result.codes == (0, 0, 0)
    return folder, table(folder)


def table(folder: Path) -> list[dict[str, str]]:
    """Return the table without what differs from one time to the next."""
    with (folder / "table.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_a_sweep_killed_halfway_and_finished_gives_the_same_table(
    spec: Path, whole: tuple[Path, list[dict[str, str]]]
) -> None:
    folder = spec.parent / "killed"
    command = [sys.executable, "-m", "dpmix", "sweep", str(spec), "-o", str(folder), "-j", "1", "-q"]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    first = folder / "runs" / f"epsilon={EPSILONS[0]}" / "result.json"
    until = time.monotonic() + 500
    while not first.exists() and time.monotonic() < until and started.poll() is None:
        time.sleep(0.01)
    for process in (*children(started.pid), started.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    assert started.wait() == -signal.SIGKILL
    assert not (folder / "table.csv").exists()
    done = {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/result.json")}
    assert 1 <= len(done) < len(EPSILONS)
    result = dpmix.sweep(spec, folder, jobs=1, quiet=True)
    result.check()
    assert table(folder) == whole[1]
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert list(folder.glob("runs/*/.*")) == []


def test_the_table_says_what_a_run_was_and_how_far_it_is_from_the_truth(
    whole: tuple[Path, list[dict[str, str]]],
) -> None:
    folder, rows = whole
    assert [float(row["mechanism.epsilon"]) for row in rows] == EPSILONS
    for row in rows:
        assert (row["status"], row["private"], row["simulated"]) == ("finished", "false", "true")
        assert (row["n"], row["chains"], row["draws"], row["seed"]) == ("20", "1", "40", "1")
        assert 0.0 < float(row["hellinger"]) < 1.0
        assert 0.0 <= float(row["band_coverage"]) <= 1.0
        assert row["coverage[mean]"] in ("0.0", "1.0")
    summary = read(folder / "runs" / "epsilon=5" / "summary.h5").groups["parameters"]
    mean = summary["mean"][list(summary["parameter"]).index("mean")]
    assert float(rows[1]["error[mean]"]) == pytest.approx(abs(mean))  # three_gaussians has mean 0
    assert read(folder / "table.h5")["hellinger"].tolist() == [float(row["hellinger"]) for row in rows]
    assert (folder / "error.svg").exists() and (folder / "ess.png").exists()


def test_finished_runs_are_not_run_again_and_other_ones_are_refused(
    spec: Path, whole: tuple[Path, list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    folder, rows = whole
    monkeypatch.setattr(verbs, "Pool", None)  # nothing is started
    dpmix.sweep(spec, folder).check()
    assert "3 of 3 runs are finished already" in capsys.readouterr().err
    assert table(folder) == rows
    with pytest.raises(SpecError, match=r"^sampler.iterations: .* holds a run that has 60, not 80; give"):
        dpmix.sweep(spec, folder, overrides=["sampler.iterations=80"])
    changed = ["sampler.iterations=80"]
    assert verbs.plan(spec, folder).count("finished") == 3
    assert verbs.plan(spec, folder, overrides=changed, force=True).count("to do anew") == 3
    with pytest.raises(UsageError, match="holds other files than those of a sweep"):
        dpmix.sweep(spec, spec.parent)
    (folder / "runs" / "epsilon=5" / "result.json").rename(folder / "kept")
    (folder / "runs" / "epsilon=5" / "result.json").write_text("{")
    with pytest.raises(DataError, match=r"result.json is damaged; remove its folder"):
        verbs.gather(spec, folder)
    (folder / "kept").rename(folder / "runs" / "epsilon=5" / "result.json")
    with verbs.Folder(folder).alone(), pytest.raises(UsageError, match="another dpmix sweep is working"):
        dpmix.sweep(spec, folder)


STUB = """
import json, os, signal, sys, time
for line in sys.stdin:
    told = json.loads(line)
    print(json.dumps({"stage": "sampling", "share": 0.5}), flush=True)
    what = told["name"].split("=")[-1]
    if what == "2":
        print(json.dumps({"failed": "it: went wrong", "code": 3}), flush=True)
    elif what == "5":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "wait":
        def stop(*_):
            print(json.dumps({"interrupted": True}), flush=True)
            os._exit(130)
        signal.signal(signal.SIGTERM, stop)
        print(json.dumps({"stage": "sampling", "share": 0.6}), flush=True)
        time.sleep(60)
    else:
        print(json.dumps({"finished": {"run": told["name"], "seed": 1, "hellinger": 0.25}}), flush=True)
"""


def follow(work: Pool) -> Iterator[Outcome]:
    work.start()
    while work.working:
        yield from work.ended()
        time.sleep(0.01)
    yield from work.ended()


def test_runs_that_fail_are_noted_and_cost_the_others_nothing(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    stub = (sys.executable, "-c", STUB)
    monkeypatch.setattr(verbs, "Pool", lambda runs, jobs, kept: Pool(runs, jobs, stub))
    code = exit_codes.run(commands.app, ["sweep", str(spec), "-o", str(tmp_path / "out"), "--jobs", "2"])
    out, err = capsys.readouterr()
    assert code == 5
    assert "run epsilon=2 failed: it: went wrong" in err
    assert "run epsilon=5 failed: its process was ended by SIGKILL" in err
    assert err.splitlines()[-1] == "dpmix: error: 3 of 3 runs are not finished; epsilon=2: it: went wrong"
    rows = table(tmp_path / "out")  # the stub writes no result of the third
    assert [(row["status"], row["message"]) for row in rows] == [
        ("failed", "it: went wrong"),
        ("failed", "its process was ended by SIGKILL"),
        ("missing", "has not been run to its end"),
    ]
    assert out.splitlines()[1].split()[:4] == ["2", "0", "of", "1"]


def test_one_process_does_run_after_run_and_is_replaced_where_it_ends() -> None:
    runs = [{"name": f"x={k}"} for k in (1, 2, 5, 3, 5, 4)]
    work = Pool(runs, 1, (sys.executable, "-c", STUB))
    found = list(follow(work))
    assert [outcome.name for outcome in found] == [run["name"] for run in runs]
    assert [outcome.code for outcome in found] == [0, 3, 5, 0, 5, 0]
    assert found[0].row == {"run": "x=1", "seed": 1, "hellinger": 0.25}
    (gone,) = follow(Pool(runs[:1], 1, (sys.executable, "-c", "import sys; sys.exit('no room')")))
    assert gone.message == "its process ended with code 1 (no room)"


WAITING = """
import json, pathlib, sys, time
for line in sys.stdin:
    name = json.loads(line)["name"]
    pathlib.Path(name).touch()
    print(json.dumps({"stage": "sampling", "share": 0.5}), flush=True)
    until = time.monotonic() + (10 if name == "first" else 0)
    while time.monotonic() < until and not pathlib.Path(WANTED).exists():
        time.sleep(0.01)
    print(json.dumps({"finished": {"others": pathlib.Path("second").exists()}}), flush=True)
"""


@pytest.mark.parametrize("compiles", [False, True])
def test_others_wait_for_the_end_of_a_first_run_that_compiles(
    compiles: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first run that finds all compiled waits for the others here, which begin while it samples."""
    monkeypatch.chdir(tmp_path)
    kept = iter([3, 4 if compiles else 3])
    program = f"WANTED = {'first' if compiles else 'second'!r}\n{WAITING}"
    work = Pool(
        [{"name": "first"}, {"name": "second"}], 2, (sys.executable, "-c", program), lambda: next(kept)
    )
    found = {outcome.name: outcome.row for outcome in follow(work)}
    assert found == {"first": {"others": not compiles}, "second": {"others": True}}


def test_stopping_lets_every_process_save_its_state() -> None:
    work = Pool([{"name": f"{k}=wait"} for k in range(3)], 2, (sys.executable, "-c", STUB))
    work.start()
    while work.working:
        running = work.running().values()
        if len(running) == 2 and all(board.share == 0.6 for board in running):
            work.stop()
        time.sleep(0.01)
    assert [outcome.code for outcome in work.ended()] == [130, 130]


def test_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with show_sweep(3, 1, quiet=False) as board:
        board.show({0: Progress("b=2", stage="sampling", share=0.25)})
        board.ended(Outcome("b=1", {"hellinger": 0.5}, "", 0, 1.0))
        board.ended(Outcome("b=3", None, "no [red]", 3, 1.0))
        shown = board._table()  # type: ignore[attr-defined]
    assert shown.title.startswith("2 of 3 runs done, 1 failed")
    assert list(shown.columns[0].cells) == ["b=1", "b=3", "b=2"]
    assert list(shown.columns[3].cells) == ["Hellinger 0.5", "no \\[red]", "25%"]


def test_emitted_jobs_do_one_run_each(spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = tmp_path / "py thon"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(stub))
    out = tmp_path / 'my "out" 5%'
    script = verbs.emit(spec, out, "sbatch", overrides=["sampler.thin=2"], threads=2)
    assert script == out / "sweep.sbatch"
    path = os.environ["PATH"]
    done = subprocess.run(
        ["bash", str(script)],
        env={"SLURM_ARRAY_TASK_ID": "1", "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = ["-m", "dpmix", "sweep", str(spec), "--set", "sampler.thin=2", "-o", str(out), "--quiet"]
    assert done.stdout.splitlines() == [*wanted, "--threads", "2", "--run", "epsilon=5"]
    assert "#SBATCH --array=0-2\n" in script.read_text()
    assert "#SBATCH --cpus-per-task=2\n" in script.read_text()
    quoted = str(tmp_path / 'my \\"out\\" 5%%')
    assert f'#SBATCH --output="{quoted}/slurm-%A_%a.log"\n' in script.read_text()
    assert f"-m dpmix warmup {spec} --set sampler.thin=2\n" in script.read_text()
    workflow = verbs.emit(spec, out, "snakemake").read_text()
    for epsilon in EPSILONS:
        job = json.dumps(str(out / "jobs" / f"epsilon={epsilon}.json"))
        assert f'    "epsilon={epsilon}": [{job}],\n' in workflow
    assert '"runs/{run}/result.json"' in workflow
    assert "partial" not in workflow.split("rule all")[1]  # checkpoints are no declared outputs
    with pytest.raises(UsageError, match=r"Snakefile exists already; --force replaces it"):
        verbs.emit(spec, out, "snakemake")
    with pytest.raises(UsageError, match="--emit make: unknown; one of snakemake, sbatch"):
        verbs.emit(spec, out, "make", force=True)


def test_a_workflow_has_no_wildcards_in_its_inputs(spec: Path, tmp_path: Path) -> None:
    """Snakemake has no escape for braces there: it goes by where a file is from the workflow's folder."""
    inside = tmp_path / "of {year}"
    inside.mkdir()
    own = inside / "sweep.yaml"
    own.write_text(spec.read_text())
    out = inside / "out"
    workflow = verbs.emit(own, out, "snakemake").read_text()
    listed = workflow.split("RUNS = {")[1].split("\n}\n")[0]
    assert "{year}" not in listed
    for epsilon in EPSILONS:
        assert f'    "epsilon={epsilon}": ["jobs/epsilon={epsilon}.json"],\n' in workflow
    with pytest.raises(UsageError, match=r"has \{a,b\} in its name, which Snakemake takes for a wildcard"):
        emitted("snakemake", Emission({"x": [inside / "{a,b}.csv"]}, own, (), (), out, 1, False))
    plain = emitted("snakemake", Emission({"x": [tmp_path / "{}.csv"]}, own, (), (), out, 1, False))[1]
    assert json.dumps(str(tmp_path / "{}.csv")) in plain


@pytest.mark.parametrize("told", ["USR1", "TERM"])
def test_emitted_tasks_save_their_state_and_are_queued_again(
    told: str, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Slurm tells the script: when its time is nearly over, or that it is cancelled or preempted."""
    stub = tmp_path / "python"
    stub.write_text(
        "#!/bin/bash\ntrap 'echo saved >> \"$NOTES\"; exit 130' TERM\n"
        f"kill -{told} $PPID\nfor k in {{1..300}}; do sleep 0.1; done\n"
    )
    (tmp_path / "scontrol").write_text('#!/bin/sh\necho "$*" >> "$NOTES"\n')
    for path in (stub, tmp_path / "scontrol"):
        path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stub))
    script = verbs.emit(spec, tmp_path / "out", "sbatch")
    slurm = {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_JOB_ID": "77", "NOTES": str(tmp_path / "notes")}
    slurm["PATH"] = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", str(script)], env=slurm, capture_output=True, timeout=60, check=False)
    assert done.returncode == 130, done.stderr
    queued = ["requeue 77_1"] if told == "USR1" else []
    assert (tmp_path / "notes").read_text().splitlines() == ["saved", *queued]


def test_convergence_may_be_required(
    spec: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*doubts: int) -> verbs.SweepResult:
        rows = [
            {"run": f"run-{i}", "status": "finished", "not_converged": doubt, "rhat_max": 1.0 + 0.1 * doubt}
            for i, doubt in enumerate(doubts)
        ]
        return verbs.SweepResult(tuple(rows), tmp_path, (tmp_path / "table.csv",), (), (0,) * len(rows))

    command = ["sweep", str(spec), "-o", str(tmp_path / "out"), "--json"]
    for doubts, how, wanted in (
        ((0, 0), ["--require-convergence"], 0),
        ((0, 2, 1), [], 0),
        ((0, 2, 1), ["--require-convergence"], 5),
        ((0, 2, 1), ["--require-convergence", "--gather"], 5),
    ):
        for verb in ("sweep", "gather"):
            monkeypatch.setattr(verbs, verb, lambda *args, doubts=doubts, **options: made(*doubts))
        assert exit_codes.run(commands.app, [*command, *how]) == wanted
        out, err = capsys.readouterr()
        assert len(json.loads(out)["rows"]) == len(doubts) and "table.csv" in err
        said = "2 of 3 runs may not have converged (not_converged in the table); the first is run-1, with an"
        assert (f"{said} R-hat of up to 1.2" in err) == (wanted == 5)
    with pytest.raises(ConvergenceError) as error:
        made(0, 2, 1).check(convergence=True)
    assert len(error.value.result.rows) == 3
    made(0, 2, 1).check()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--run", "x", "--gather"], "--run and --gather: give one of them"),
        (["--run", "x"], '--run "x": no such run; --dry-run lists the 3 there are'),
        (["--run", "x", "--force"], "--force: does not go with --run"),
        (["--run", "x", "--require-convergence"], "--require-convergence: does not go with --run"),
        (["--run", "x", "--jobs", "9"], "--jobs: does not go with --run"),
        (["--gather", "--jobs", "9"], "--jobs: does not go with --gather"),
        (["--gather", "--threads", "1"], "--threads: does not go with --gather"),
        (["--gather", "--allow-code"], "--allow-code: does not go with --gather"),
        (["--emit", "sbatch", "--jobs", "9"], "--jobs: does not go with --emit"),
        (["--dry-run", "--jobs", "9"], "--jobs: does not go with --dry-run"),
        (["--dry-run", "--threads", "2"], "--threads: does not go with --dry-run"),
        (["--dry-run", "--json"], "--json: does not go with --dry-run"),
        (["--jobs", "0"], "'--jobs'"),
        (["--set", "mechanism.epsilon=3"], "set.mechanism.epsilon: is replaced by grid.mechanism.epsilon"),
        (["--set", "replicats=3"], '"replicats" is no section'),
        (["--set", "replicates=2", "--set", "replicates.x=3"], "replicates is no mapping of keys"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_usage_exits_2(
    arguments: list[str], expected: str, spec: Path, tmp_path: Path, capsys: Any
) -> None:
    code = exit_codes.run(commands.app, ["sweep", str(spec), "-o", str(tmp_path / "out"), *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert expected in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()
