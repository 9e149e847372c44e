"""Differentially private releases of data, and Bayesian mixture models fitted to them.

The functions here are those that the command line calls. Each takes a spec: a dict, the path of a YAML
file, or a :class:`dpmix.spec.RunSpec`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpmix._version import __version__

if TYPE_CHECKING:
    from dpmix.api.advise import advise
    from dpmix.api.audit import audit
    from dpmix.api.calibrate import calibrate
    from dpmix.api.card import card
    from dpmix.api.contrast import contrast
    from dpmix.api.export import export
    from dpmix.api.fit import fit
    from dpmix.api.predict import predict
    from dpmix.api.privatize import privatize
    from dpmix.api.register import register
    from dpmix.api.show import show
    from dpmix.api.summarize import summarize
    from dpmix.api.sweep import sweep
    from dpmix.api.synthesize import synthesize
    from dpmix.api.tally import tally
    from dpmix.api.warmup import warmup

__all__ = [
    "__version__",
    "advise",
    "audit",
    "calibrate",
    "card",
    "contrast",
    "export",
    "fit",
    "predict",
    "privatize",
    "register",
    "show",
    "summarize",
    "sweep",
    "synthesize",
    "tally",
    "warmup",
]


_MODULES = ("errors", "results", "spec")


def __getattr__(name: str) -> Any:
    """Import a verb, or a module that has public names, on first use: ``import dpmix`` stays quick."""
    if name in _MODULES:
        return import_module(f"dpmix.{name}")
    if name in __all__:
        return getattr(import_module(f"dpmix.api.{name}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*__all__, *_MODULES))
