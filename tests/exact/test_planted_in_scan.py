"""The scan that samplers share can be wrong, and the enumeration of partitions then says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.scan_faults import FAULTS, SAMPLERS
from tests.helpers.specs import ROOT


def gaps(root: Path) -> dict[str, float] | None:
    """Return the gaps of all samplers, run from a root in the interpreter; None where that breaks down."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.scan_faults"],
        capture_output=True,
        text=True,
        cwd=root,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(root)},
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


@pytest.mark.matrix
@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_enumeration_tells_a_faulty_scan(fault: str, tmp_path: Path) -> None:
    for part in ("dpmix", "tests"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    if fault:
        file = tmp_path / "dpmix" / "samplers" / "scan.py"
        old, new = FAULTS[fault]
        text = file.read_text()
        assert text.count(old) == 1
        file.write_text(text.replace(old, new))
    found = gaps(tmp_path)
    if not fault:
        assert found is not None and set(found) == {name for name, _ in SAMPLERS}
        assert max(found.values()) < 1.0
    else:
        assert found is None or min(found.values()) > 1.0, found
