"""A process ends with the code of its command, also where a signal comes at its edges."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dpmix

MODULE = """
import atexit, os, signal
from dpmix.run.exit_codes import end, heed_signals, run

heed_signals()


def command(**options):
    {body}


end(run(command, []))
"""


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ('exec("raise KeyboardInterrupt")', 130, "dpmix: interrupted\n"),  # as within a NamedTuple
        ("atexit.register(os.kill, os.getpid(), signal.SIGTERM)", 0, ""),
        ("atexit.register(os.kill, os.getpid(), signal.SIGINT)", 0, ""),
    ],
    ids=["in text", "SIGTERM at the end", "SIGINT at the end"],
)
def test_signals_at_the_edges(body: str, code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "at_the_edge.py").write_text(MODULE.format(body=body))
    root = Path(dpmix.__file__).parents[1]
    start = f"import sys; sys.path.insert(0, {str(root)!r}); import runpy; runpy.run_module('at_the_edge')"
    (tmp_path / "started.py").write_text(start)
    found = subprocess.run(
        [sys.executable, "-m", "started"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (code, said)
