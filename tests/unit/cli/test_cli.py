"""The command line: exit codes, one message per error, flags that arrive, and nothing overwritten."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer
import yaml

import dpmix
from dpmix import errors
from dpmix.cli import commands
from dpmix.release.release_file import write_release
from dpmix.release.sanitized import Release
from dpmix.run import exit_codes
from dpmix.run.exit_codes import messages
from dpmix.spec.starters import starters
from tests.helpers.specs import ROOT

FAITHFUL = ROOT / "configs" / "faithful_laplace.yaml"


class Calls:
    """Stands in for the functions behind the commands, and keeps what they are called with."""

    def __init__(self) -> None:
        self.made: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.error: BaseException | None = None

    def stand_in(self, name: str, result: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.made.append((name, args, kwargs))
            if self.error is not None:
                raise self.error
            return result

        return call


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    made = Calls()
    summary = SimpleNamespace(to_json=lambda: {"a": 1}, to_text=lambda: "headline")
    for name, result in (
        ("privatize", None),
        ("fit", SimpleNamespace(written=True)),
        ("summarize", summary),
        ("calibrate", {"scale": 1.0}),
    ):
        monkeypatch.setitem(vars(dpmix), name, made.stand_in(name, result))
    return made


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(
        "data: {path: d.csv, column: x, domain: [0, 1]}\n"
        "mechanism: {kind: laplace, epsilon: 1}\n"
        "model: {base: {empirical: true}}\n",
        encoding="utf-8",
    )
    (tmp_path / "d.csv").write_text("x\n0.5\n0.7\n", encoding="utf-8")
    (tmp_path / "r.h5").write_bytes(b"")
    (tmp_path / "c.h5").write_bytes(b"")
    return path


def outcome(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code, standard output and standard error."""
    code = exit_codes.run(commands.app, [str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    """Run a command that is refused, check that it says so in one line, and return that."""
    got, out, err = outcome(capsys, *arguments)
    assert got == code, err
    assert out == ""
    assert err.startswith("dpmix: error: ")
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err
    return err.removeprefix("dpmix: error: ").strip()


def test_validate_says_what_a_spec_does(capsys: Any) -> None:
    code, out, err = outcome(capsys, "validate", FAITHFUL)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"{FAITHFUL}: ok"
    assert "laplace noise with epsilon = 5 over [1, 6]" in out
    assert outcome(capsys, "validate", FAITHFUL, "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("bins=[20, 3]", "synthesis.bins: has 2 entries for 1 numeric columns; give one each"),
        ("ranges=[{weight: [0, 3]}]", "synthesis.ranges[0].weight: no such column; the columns are age"),
        ("snap={size: {step: 1}}", "synthesis.snap.size: no numeric column of data.columns; name one of age"),
    ],
)
def test_validate_refuses_what_synthesis_would(key: str, words: str, capsys: Any, tmp_path: Path) -> None:
    spec = tmp_path / "s.yaml"
    spec.write_text(
        "data: {path: none.csv, columns: [age], domain: {age: [0, 100]}, types: {age: integer}}\n"
        "synthesis: {kind: smoothed_histogram, epsilon: 1, records: 10, bins: 21}\n"
    )
    assert outcome(capsys, "validate", spec, "-q") == (0, "", "")
    assert refused(capsys, 2, "validate", spec, "--set", f"synthesis.{key}").endswith(words)


def test_validate_reads_a_pipe_once(capsys: Any) -> None:
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(FAITHFUL.read_bytes())
    code, out, err = outcome(capsys, "validate", f"/dev/fd/{read}")
    os.close(read)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"/dev/fd/{read}: ok"


def test_schema_is_json(capsys: Any) -> None:
    code, out, err = outcome(capsys, "schema")
    assert (code, err) == (0, "")
    assert json.loads(out)["title"] == "dpmix spec"


@pytest.mark.parametrize("kind", starters())
def test_init_prints_a_spec_that_validates(kind: str, capsys: Any, tmp_path: Path) -> None:
    code, out, err = outcome(capsys, "init", kind)
    assert (code, err) == (0, "")
    (tmp_path / "s.yaml").write_text(out, encoding="utf-8")
    assert outcome(capsys, "validate", tmp_path / "s.yaml")[0] == 0


def test_init_lists_kinds_for_an_unknown_one(capsys: Any) -> None:
    said = refused(capsys, 2, "init", "gausian")
    assert 'did you mean "gaussian"?' in said
    assert "pitman_yor" in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["ledger"], "Missing command"),
        (["fitt"], "Did you mean 'fit'"),
        (["fit"], "Missing argument 'SPEC'"),
        (["fit", FAITHFUL, "--relase", "x"], "--release"),
        (["fit", FAITHFUL], "Missing option '--output'"),
        (["fit", FAITHFUL, "-o", "x", "--chains", "0"], "--chains"),
        (["fit", FAITHFUL, "-o", "x", "--chain-id", "one"], "--chain-id"),
        (["summarize"], "Missing argument 'CHAINS...'"),
        (["validate", "nowhere.yaml"], "nowhere.yaml: no such spec file"),
        (["advise", "nowhere.yaml"], "nowhere.yaml: no such spec file"),
        (
            ["validate", FAITHFUL, "--set", "sampler.burn_in=30000"],
            "sampler.burn_in: 30000 must be less than",
        ),
        (["validate", FAITHFUL, "--set", "sampler.sed=1"], 'did you mean "seed"'),
        (["fit", FAITHFUL, "-o", "x.h5"], "give --release FILE, or a release section in"),
        (["fit", FAITHFUL, "-o", "x.h5", "--set", "model=null"], "model: missing; fit needs this section"),
        (["privatize", FAITHFUL, "-o", "x.h5", "--set", "data=null"], "data: missing"),
        (["privatize", FAITHFUL, "-o", "x.h5", "--set", "mechanism=null"], "mechanism: missing"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(map(str, value[:1] + value[2:])),
)
def test_usage_and_spec_errors_exit_2(arguments: list[Any], expected: str, capsys: Any, calls: Calls) -> None:
    assert expected in refused(capsys, 2, *arguments)
    assert calls.made == []


def test_every_error_of_a_spec_is_told(capsys: Any) -> None:
    code, _, err = outcome(
        capsys, "validate", FAITHFUL, "--set", "sampler.chains=0", "--set", "summary.level=2"
    )
    assert code == 2
    assert [line.split()[2] for line in err.splitlines()] == ["sampler.chains:", "summary.level:"]


def test_privatize_passes_its_flags(spec: Path, capsys: Any, calls: Calls) -> None:
    output = spec.parent / "new.h5"
    code, out, err = outcome(
        capsys, "privatize", spec, "-o", output, "--set", "mechanism.epsilon=2", "--force"
    )
    assert (code, out, err) == (0, "", f"dpmix: wrote {output}\n")
    [(name, (checked, path), options)] = calls.made
    assert (name, checked.mechanism.epsilon, path) == ("privatize", 2.0, output)
    entering = {"new_ledger": False, "no_ledger": False, "yes": False}
    assert options == {"force": True, "quiet": False} | entering
    assert outcome(capsys, "privatize", spec, "-o", output, "--quiet", "--yes") == (0, "", "")
    assert calls.made[-1][2] == {"force": False, "quiet": True} | entering | {"yes": True}


def test_fit_passes_its_flags(spec: Path, capsys: Any, calls: Calls) -> None:
    release, output = spec.parent / "r.h5", spec.parent / "new.h5"
    arguments = (
        "--release",
        release,
        "-o",
        output,
        "--chain-id",
        2,
        "--chains",
        3,
        "--jobs",
        1,
        "--resume",
        "-q",
    )
    assert outcome(capsys, "fit", spec, *arguments) == (0, "", "")
    [(name, (checked,), options)] = calls.made
    assert (name, checked.sampler.kind) == ("fit", "auto")
    assert options == {
        "release": release,
        "output": output,
        "resume": True,
        "chain_id": 2,
        "chains": 3,
        "jobs": 1,
        "force": False,
        "quiet": True,
        "allow_code": False,
    }


def test_summarize_passes_its_flags(spec: Path, capsys: Any, calls: Calls) -> None:
    chains, output, report = (spec.parent / name for name in ("c.h5", "s.h5", "r.html"))
    arguments = ("-o", output, "--report", report, "--set", "summary.level=0.5", "--require-convergence")
    code, out, err = outcome(capsys, "summarize", chains, *arguments)
    assert (code, out) == (0, "headline\n")
    assert err == f"dpmix: wrote {output}\ndpmix: wrote {report}\n"
    [(_, args, options)] = calls.made
    assert args == ([chains], output)
    assert options == {
        "overrides": ("summary.level=0.5",),
        "report": report,
        "require_convergence": True,
        "force": False,
        "quiet": False,
    }
    code, out, err = outcome(capsys, "summarize", chains, "--json")
    assert (code, json.loads(out), err) == (0, {"a": 1}, "")


def test_a_summary_that_did_not_converge_is_printed_and_exits_5(
    spec: Path, capsys: Any, calls: Calls
) -> None:
    summary: Any = SimpleNamespace(failures=["R-hat is 2"], to_json=lambda: {"a": 1}, to_text=lambda: "text")
    calls.error = errors.ConvergenceError(summary.failures, summary)
    arguments = ("summarize", spec.parent / "c.h5", "--json", "--require-convergence")
    code, out, err = outcome(capsys, *arguments)
    assert (code, json.loads(out), err) == (5, {"a": 1}, "dpmix: error: R-hat is 2\n")


def test_calibrate_prints_json(spec: Path, capsys: Any, calls: Calls) -> None:
    code, out, err = outcome(capsys, "calibrate", spec)
    assert (code, json.loads(out), err) == (0, {"scale": 1.0}, "")


@pytest.mark.parametrize("command", ["privatize", "fit", "summarize"])
def test_outputs_are_never_overwritten_unasked(command: str, spec: Path, capsys: Any, calls: Calls) -> None:
    existing = spec.parent / "kept.h5"
    existing.write_bytes(b"precious")
    source = spec.parent / "c.h5" if command == "summarize" else spec
    more = ("--release", spec.parent / "r.h5") if command == "fit" else ()
    said = refused(capsys, 2, command, source, "-o", existing, *more)
    assert "--force" in said
    assert calls.made == []
    assert existing.read_bytes() == b"precious"
    assert outcome(capsys, command, source, "-o", existing, "--force", *more)[0] == 0


@pytest.mark.parametrize("command", ["privatize", "fit", "summarize"])
def test_inputs_are_never_outputs(command: str, spec: Path, capsys: Any, calls: Calls) -> None:
    source = spec.parent / "c.h5" if command == "summarize" else spec
    taken = {"privatize": "d.csv", "fit": "r.h5", "summarize": "c.h5"}[command]
    more = ("--release", spec.parent / "r.h5") if command == "fit" else ()
    for name in (taken, source.name):
        said = refused(capsys, 2, command, source, "-o", spec.parent / name, "--force", *more)
        assert "is named twice" in said
    assert calls.made == []


@pytest.mark.parametrize("command", ["privatize", "fit"])
def test_a_dry_run_checks_all_and_does_nothing(command: str, spec: Path, capsys: Any, calls: Calls) -> None:
    more = ("--release", spec.parent / "r.h5") if command == "fit" else ()
    output = spec.parent / "new.h5"
    mechanism = {"kind": "laplace", "scale": [1.0], "requested": {"epsilon": 1.0}}
    release = Release(np.array([[0.2], [0.4]]), ("x",), mechanism, 1.0, 0.0, None, 2)
    write_release(spec.parent / "r.h5", release, force=True)
    code, out, err = outcome(capsys, command, spec, "-o", output, "--dry-run", *more)
    assert (code, err) == (0, "")
    assert f"would write {output}" in out
    assert not output.exists()
    assert calls.made == []
    refused(capsys, 3, command, spec, "-o", spec.parent / "nowhere" / "x.h5", "--dry-run", *more)


@pytest.mark.parametrize("command", ["privatize", "fit", "summarize"])
def test_a_folder_that_may_not_be_written_is_refused_at_once(
    command: str, spec: Path, capsys: Any, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = spec.parent / "c.h5" if command == "summarize" else spec
    more = ("--release", spec.parent / "r.h5") if command == "fit" else ()
    monkeypatch.setattr(os, "access", lambda path, mode, **options: not mode & os.W_OK)
    for how in ((), ("--dry-run",)):
        said = refused(capsys, 3, command, source, "-o", spec.parent / "new.h5", *more, *how)
        assert said == f"cannot write {spec.parent / 'new.h5'}: Permission denied"
    assert calls.made == []


def test_missing_inputs_exit_3(spec: Path, capsys: Any, calls: Calls) -> None:
    (spec.parent / "d.csv").unlink()
    assert "d.csv: no such file" in refused(capsys, 3, "privatize", spec, "-o", spec.parent / "x.h5")
    assert "no such file" in refused(capsys, 3, "fit", spec, "--release", "nowhere.h5", "-o", "x.h5")
    assert "not a file" in refused(capsys, 3, "summarize", spec.parent)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errors.SpecError("a: b"), 2, "dpmix: error: a: b\n"),
        (errors.UsageError("a"), 2, "dpmix: error: a\n"),
        (errors.DataError("a"), 3, "dpmix: error: a\n"),
        (errors.PrivacyError("a"), 4, "dpmix: error: a\n"),
        (errors.SamplerError("a"), 5, "dpmix: error: a\n"),
        (errors.ConvergenceError(["a"], None), 5, "dpmix: error: a\n"),
        (errors.Interrupted("state saved"), 130, "dpmix: state saved\n"),
        (KeyboardInterrupt(), 130, "dpmix: interrupted\n"),
        (OSError(28, "No space left on device", "x.h5"), 3, "dpmix: error: x.h5: No space left on device\n"),
        (
            MemoryError(),
            5,
            "dpmix: error: out of memory; a smaller run or fewer stored values would need less\n",
        ),
        (
            ValueError("two\nlines"),
            5,
            "dpmix: error: internal error: ValueError: two lines (run with --debug for the traceback)\n",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_have_their_exit_code_and_one_line(
    error: BaseException, code: int, said: str, spec: Path, capsys: Any, calls: Calls
) -> None:
    calls.error = error
    arguments = ("privatize", spec, "-o", spec.parent / "new.h5")
    assert outcome(capsys, *arguments) == (code, "", said)
    if isinstance(error, Exception):
        got, _, err = outcome(capsys, *arguments, "--debug")
        assert got == code
        assert "Traceback" in err
        assert err.endswith(said)


def _process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dpmix", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, **options)


def test_the_process_exits_with_the_code() -> None:
    done = _process("validate", FAITHFUL, "--set", "sampler.chains=-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dpmix: error: sampler.chains: -1 must be at least 1\n"
    version = _process("--version")
    assert (version.returncode, version.stdout, version.stderr) == (0, f"dpmix {dpmix.__version__}\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_standard_output_that_is_full_is_said() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "dpmix", "schema"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        3,
        "dpmix: error: standard output: No space left on device\n",
    )


_WHERE = {"full": "2>/dev/full", "closed": "2>&-", "unread": "2> >(true)"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("where", list(_WHERE))
def test_messages_that_cannot_be_written_cost_neither_work_nor_exit_code(tmp_path: Path, where: str) -> None:
    (tmp_path / "d.csv").write_text("x\n1\n2\n3\n")
    spec = tmp_path / "s.yaml"
    spec.write_text(
        "data: {path: d.csv, column: x, domain: [0, 4]}\n"
        "mechanism: {kind: laplace, epsilon: 1}\n"
        "privacy: {ledger: l.json, dataset: d}\n"
    )

    def told(*arguments: str) -> int:
        words = shlex.join([sys.executable, "-m", "dpmix", *arguments])
        command = ["bash", "-c", f"exec {_WHERE[where]}; sleep .1; {words}"]
        return subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=False).returncode

    assert told("privatize", "s.yaml", "-o", "r.h5", "--new-ledger") == 0
    entries = json.loads((tmp_path / "l.json").read_text())["entries"]
    assert [entry["type"] for entry in entries] == ["spend", "release"]
    assert told("privatize", "s.yaml", "-o", "other.h5", "--set", "privacy.budget.epsilon=1") == 4
    if where == "full":
        assert told("validate", "s.yaml", "--set", "mechanism.epsilon=-1") == 2
        assert told("show", "nowhere.h5") == 3


def test_an_interruption_that_the_compiler_would_lose_comes_a_little_later() -> None:
    """What ctypes calls from C drops exceptions."""
    code = (
        "import ctypes, os, signal, time\n"
        "from dpmix.run.exit_codes import heed_signals\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # jobs in the background have it ignored
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "def _raw_object_cache_notify():\n    os.kill(os.getpid(), {number})\n    time.sleep(0.01)\n"
        "heed_signals()\n"
        "ctypes.CFUNCTYPE(None)(_raw_object_cache_notify)()\n"
        "print('back from C', flush=True)\n"
        "try:\n    time.sleep(20)\nexcept KeyboardInterrupt:\n    print('interrupted')"
    )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        done = subprocess.run(
            [sys.executable, "-c", code.format(number=int(number))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "back from C\ninterrupted\n", "")


def test_an_interruption_of_a_fit_that_compiles_comes_a_little_later() -> None:
    code = (
        "import ctypes, os, signal, time\n"
        "from dpmix.errors import Interrupted\n"
        "from dpmix.run.runner import stop_on_signals\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # where all of this runs under nohup
        "def _raw_object_cache_notify():\n    os.kill(os.getpid(), {number})\n    time.sleep(0.01)\n"
        "try:\n"
        "    with stop_on_signals() as stop, stop.at_once():\n"
        "        ctypes.CFUNCTYPE(None)(_raw_object_cache_notify)()\n"
        "        print('back from C', flush=True)\n"
        "        time.sleep(20)\n"
        "except Interrupted:\n    print('interrupted')"
    )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        done = subprocess.run(
            [sys.executable, "-c", code.format(number=int(number))],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "back from C\ninterrupted\n", "")


def test_a_terminal_that_goes_stops_what_nohup_does_not_hold() -> None:
    code = (
        "import os, signal, sys\n"
        "from dpmix.run.exit_codes import heed_signals\n"
        "from dpmix.run.runner import stop_on_signals\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[1] == 'nohup' else signal.SIG_DFL)\n"
        "heed_signals()\n"
        "with stop_on_signals() as stop:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n    print(stop.asked)\n"
        "try:\n    os.kill(os.getpid(), signal.SIGHUP)\n    print('went on')\n"
        "except KeyboardInterrupt:\n    print('interrupted')"
    )
    for how, said in (("nohup", "False\nwent on\n"), ("shell", "True\ninterrupted\n")):
        command = [sys.executable, "-c", code, how]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == said


def test_names_do_nothing_at_a_terminal(tmp_path: Path) -> None:
    spec = {
        "data": {"path": "t.csv", "columns": ["a\x1b[31m\x07\nforged: line"], "domain": [[0, 1]]},
        "mechanism": {"kind": "laplace", "epsilon": 1},
        "model": {"kind": "mixture"},
    }
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec))

    def said(*more: str) -> tuple[str, str]:
        command = [sys.executable, "-m", "dpmix", "validate", "s.yaml", *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout, done.stderr

    assert "a?[31m??forged: line of " in said()[0]
    assert said("--set", "model.b\x1b[31m=1")[1].startswith("dpmix: error: model.b?[31m: unknown key")


def test_bars_keep_what_they_write() -> None:
    stream = io.StringIO()
    taken = messages(stream)
    taken.write("\x1b[1mname\x1b[0m\n")
    taken.unchanged.write("\x1b[1mbar\x1b[0m\n")
    assert stream.getvalue() == "?[1mname?[0m\n\x1b[1mbar\x1b[0m\n"


def test_a_reader_that_stops_reading_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dpmix", "schema"],
            stdout=write,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["fit", "--help"], ["validate", str(FAITHFUL)], ["validate", "nowhere.yaml"], ["schema"]],
    ids=" ".join,
)
def test_nothing_heavy_is_imported_for_help_and_specs(arguments: list[str]) -> None:
    heavy = ["numpy", "numba", "scipy", "h5py", "matplotlib", "opendp", "arviz_stats", "rich"]
    code = (
        "import sys; from dpmix.cli.commands import app; from dpmix.run.exit_codes import run; "
        "run(app, sys.argv[1:]); "
        f"sys.stderr.write('loaded: ' + ' '.join(m for m in {heavy!r} if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.stderr.endswith("loaded: ")


def test_help_names_every_flag_of_the_interface(capsys: Any) -> None:
    promised = {
        "privatize": ["--output", "--set", "--quiet", "--force", "--dry-run"],
        "fit": ["--release", "--resume", "--chain-id", "--chains", "--jobs", "--dry-run"],
        "summarize": ["--json", "--report", "--require-convergence", "--dry-run"],
        "calibrate": ["--set"],
        "validate": ["--set"],
        "schema": [],
        "init": [],
    }
    _, top, _ = outcome(capsys, "--help")
    for command, flags in promised.items():
        assert f"  {command} " in top
        code, out, _ = outcome(capsys, command, "--help")
        assert code == 0
        assert all(flag in out for flag in (*flags, "--debug", "--version"))


def _commands(group: Any, above: tuple[str, ...] = ()) -> dict[tuple[str, ...], set[str]]:
    """Return the options of every command, and of those of groups, by its name."""
    found = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= _commands(command, (*above, name))
        else:
            found[*above, name] = {option for given in command.params for option in given.opts}
    return found


def test_every_command_has_the_flags_that_all_have() -> None:
    writes = {"--output", "--report", "--new-ledger"}
    for name, options in _commands(typer.main.get_command(commands.app)).items():
        assert {"--quiet", "--debug", "--version"} <= options, name
        assert "--set" in options or not {"spec", "chains"} & options, name
        assert "--dry-run" in options or not writes & options, name


def test_a_dry_run_of_a_card_writes_none(spec: Path, capsys: Any) -> None:
    mechanism = {"kind": "laplace", "scale": [1.0], "requested": {"epsilon": 1.0}}
    release = Release(np.array([[0.2], [0.4]]), ("x",), mechanism, 1.0, 0.0, None, 2)
    write_release(spec.parent / "r.h5", release, force=True)
    for name in ("card.yaml", "card.json"):
        card = ("card", spec.parent / "r.h5", "-o", spec.parent / name)
        code, out, err = outcome(capsys, *card, "--dry-run")
        assert (code, err, (spec.parent / name).exists()) == (0, "", False)
        assert outcome(capsys, *card)[2] == out.replace("would write", "dpmix: wrote")
        assert "--force" in refused(capsys, 2, *card, "--dry-run")
    refused(capsys, 2, "card", spec.parent / "r.h5", "-o", spec.parent / "card.txt", "--dry-run")


def test_a_dry_run_of_advice_computes_and_writes_nothing(spec: Path, capsys: Any) -> None:
    page = spec.parent / "advice.html"
    code, out, err = outcome(capsys, "advise", spec, "--report", page, "--dry-run")
    assert (code, err, page.exists()) == (0, "", False)
    said = (
        "would work out how precise releases of 1,000, 10,000 and 100,000 records are at epsilon 0.5, 1, 2 "
        "and 4, and read no data\n"
    )
    assert out.endswith(f"{said}would write {page}\n")
    assert outcome(capsys, "advise", spec, "--dry-run")[1].endswith(f"{said}would write nothing\n")
    assert ".html" in refused(capsys, 2, "advise", spec, "--report", spec.parent / "a.txt", "--dry-run")


def test_a_dry_run_of_a_budget_leaves_the_ledger(tmp_path: Path, capsys: Any) -> None:
    ledger = tmp_path / "ledger.json"
    budget = ("ledger", "budget", ledger, "--dataset", "people", "--epsilon")
    refused(capsys, 4, *budget, "3", "--dry-run")
    code, out, err = outcome(capsys, *budget, "3", "--new-ledger", "--dry-run")
    assert (code, out, list(tmp_path.iterdir())) == (0, f"would write {ledger}\n", [])
    assert outcome(capsys, *budget, "3", "--new-ledger")[2] == err.replace(" would say", "")
    before = ledger.read_bytes()
    refused(capsys, 2, *budget, "2", "--new-ledger", "--dry-run")
    _, out, err = outcome(capsys, *budget, "2", "--dry-run", "--json", "--quiet")
    assert (json.loads(out)["budget"]["epsilon"], err, ledger.read_bytes()) == (2, "", before)
    refused(capsys, 2, *budget, "-1", "--dry-run")


def test_a_dry_run_of_init_writes_no_file(tmp_path: Path, capsys: Any) -> None:
    code, out, _ = outcome(capsys, "init", "custom", "-o", tmp_path, "--dry-run")
    assert (code, list(tmp_path.iterdir())) == (0, [])
    assert outcome(capsys, "init", "custom", "-o", tmp_path)[2] == out.replace("would write", "dpmix: wrote")
    assert "--force" in refused(capsys, 2, "init", "custom", "-o", tmp_path, "--dry-run")
    assert outcome(capsys, "init", "custom", "-o", tmp_path, "--force", "--quiet") == (0, "", "")
    assert outcome(capsys, "init", "laplace", "--dry-run")[1] == "would write to standard output\n"
    assert "KIND" in refused(capsys, 2, "init", "--dry-run")
    refused(capsys, 2, "init", "nothing", "--dry-run")


def test_files_that_may_not_be_read_are_for_the_commands_to_refuse() -> None:
    """Bad files exit with 3: the parser of arguments would say bad usage, 2."""

    def paths(command: Any) -> list[Any]:
        below = [found for sub in getattr(command, "commands", {}).values() for found in paths(sub)]
        own = [param.type_descriptor for param in command.params]
        return [found for found in own if found is not None and "Path" in str(found.annotation)] + below

    found = paths(typer.main.get_command(commands.app))
    assert len(found) > 20
    refused = [each.parameter_info for each in found if each.parameter_info.readable]
    assert {info.param_decls for info in refused} == {("--output", "-o")}
