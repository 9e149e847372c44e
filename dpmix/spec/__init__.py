"""The spec: what a run of dpmix is told, checked before anything runs.

``load_spec`` reads one from a ``SpecSource``, ``RunSpec`` holds it; they are imported when they are first
asked for, as sections of mechanisms and models stand in their folders, and import what sections share from
here. One module a section; nothing here imports numba, SciPy or HDF5.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmix.spec.load import SpecSource, load_spec
    from dpmix.spec.run_spec import RunSpec

__all__ = ["RunSpec", "SpecSource", "load_spec"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"dpmix.spec.{'run_spec' if name == 'RunSpec' else 'load'}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
