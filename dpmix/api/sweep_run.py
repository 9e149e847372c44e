"""One run of a sweep: release, fit, summary and scores; and the process that does one run after the other.

A process takes runs from its standard input, a line of JSON each, and says on its standard output how far it
is. It stops, with the state of its fit saved, on SIGTERM and when whoever started it is gone.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmix.api.fit import fit
from dpmix.api.privatize import privatize
from dpmix.api.register import import_registered
from dpmix.api.summarize import summarize
from dpmix.errors import DataError
from dpmix.run.exit_codes import explain, heed_signals, stopping
from dpmix.run.progress import Watch
from dpmix.store.atomic import write_bytes
from dpmix.store.h5 import reading
from dpmix.summary.subject import stated_parameters
from dpmix.summary.summary_result import Summary
from dpmix.sweeping.folder import Folder, RunFolder, identity_of
from dpmix.sweeping.plan import Planned
from dpmix.sweeping.scores import diagnostics, scores

if TYPE_CHECKING:
    from dpmix.spec import RunSpec

Row = dict[str, Any]
Say = Callable[[Mapping[str, Any]], None]


class _Telling(Watch):
    """Tells how far a fit is."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def phase(self, text: str) -> contextlib.AbstractContextManager[Any]:
        self._say({"stage": text.split(",")[0]})
        return contextlib.nullcontext()

    def chains(self, boards: Sequence[Any]) -> None:
        done, total = sum(board.done for board in boards), sum(board.total for board in boards)
        self._say({"stage": "sampling", "share": done / total})


def do_run(told: Mapping[str, Any], say: Say = lambda _: None) -> Row:
    """Do a run, or what is left of it, write its result, and return it, the row of the table.

    `told` is what `dpmix.api.sweep.Prepared.order` returns; `say` is told how far the run is.

    Raises
    ------
    DpmixError
        When it fails; what is done stays, and is gone on with.
    Interrupted
        On a signal to stop while sampling, with the state saved.
    """
    import_registered(told["registered"])
    run = Planned(told["name"], told["label"], told["seed"], told["contents"], Path(told["base"]))
    spec = run.spec(spends=False)
    folder = Folder(told["folder"])
    own = folder.run(run.name)
    identity = identity_of(spec)
    own.begin(identity)
    with own.alone():
        found = own.row()
        if found is not None:
            return found
        with own.log.open("a", encoding="utf-8") as log, contextlib.redirect_stderr(log):
            say({"stage": "release"})
            release = _release(spec, folder, own)
            fit(
                spec,
                release,
                own.chains,
                resume=True,
                jobs=int(told["threads"]),
                quiet=True,
                allow_code=bool(told["allow_code"]),
                watch=_Telling(say),
            )
            say({"stage": "summary"})
            row = _row(run, spec, own, told["keys"])
            write_bytes(own.result, json.dumps(row, indent=1, allow_nan=False).encode(), force=True)
            if not told["keep_chains"]:
                own.drop_chains()
        if not own.log.stat().st_size:
            own.log.unlink()
    return row


def _release(spec: RunSpec, folder: Folder, own: RunFolder) -> Path | None:
    """Return the release to fit, None where the spec names it; simulated ones are made here.

    Raises
    ------
    DataError
        When that of confidential data has not been made.
    """
    if spec.data is None or (spec.release is not None and spec.release.path is not None):
        return None
    if spec.data.simulate is None:
        path = folder.release_of(spec)
        if not path.exists():
            raise DataError(f"{path}: no such release; dpmix sweep makes all releases before any run begins")
        return path
    if spec.mechanism is not None and not spec.mechanism.protects:
        return None
    if not own.release.exists():
        privatize(spec, own.release, quiet=True)
    return own.release


def _row(run: Planned, spec: RunSpec, own: RunFolder, keys: Sequence[str]) -> Row:
    simulate = None if spec.data is None else spec.data.simulate
    alpha = getattr(spec.data, "alpha", None)
    told = [f"summary.truth={list(alpha)}"] if alpha is not None and spec.summary.truth is None else []
    summary = summarize(own.chains, own.summary, overrides=told, force=True, quiet=True)
    assert isinstance(summary, Summary)  # of chains
    with reading(own.chains) as root:
        attrs = root.attrs
    row: Row = {"run": run.name} | ({"name": run.label} if run.label else {})
    row |= run.values(keys) | {"seed": spec.sampler.seed if run.seed is None else run.seed}
    row |= dict(zip(("epsilon", "delta", "rho"), stated_parameters(attrs), strict=True))
    row |= {"n": summary.n, "private": bool(attrs.get("private")), "simulated": bool(attrs.get("simulated"))}
    row |= diagnostics(summary) | scores(summary, simulate)
    if summary.clustering is not None and summary.clustering.estimate.ari is not None:
        row["ari"] = summary.clustering.estimate.ari
    row["seconds"] = summary.seconds
    rates = [rate for rate in summary.ess_per_second.values() if rate is not None]
    row["ess_per_second_min"] = min(rates) if rates else None
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }


def main() -> None:
    """Do the runs that come in, one after the other, until there are no more."""
    for number in stopping():
        if number != signal.SIGTERM:  # which whoever started this sends, who hears the others too
            signal.signal(number, signal.SIG_IGN)
    heed_signals()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints does not disturb the lines

    def say(message: Mapping[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    code = 0
    try:
        for told in _incoming():
            code = _safely(told, say)
            if code == 130:
                break
    except (KeyboardInterrupt, BrokenPipeError):
        code = 130
    os._exit(code if code == 130 else 0)  # the thread that reads may still wait


def _safely(told: Mapping[str, Any], say: Say) -> int:
    """Do a run, say how it ended, and return its exit code."""
    try:
        say({"finished": do_run(told, say)})
    except KeyboardInterrupt:
        say({"interrupted": True})
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        code, lines = explain(error)
        say({"failed": " ".join(lines), "code": code})
        return code
    return 0


def _incoming() -> Iterator[dict[str, Any]]:
    """Give the runs that come in; when the input ends within one, ask it to stop."""
    lines: queue.Queue[str | None] = queue.Queue()
    busy = threading.Event()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)
        if busy.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=read, daemon=True).start()
    while (line := lines.get()) is not None:
        busy.set()
        yield json.loads(line)
        busy.clear()


if __name__ == "__main__":
    main()
