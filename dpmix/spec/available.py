"""What this version of dpmix can run, out of everything that a spec can ask for.

A spec is checked against the whole interface; what has no machinery yet is then refused by name. To make a
kind available, delete its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from dpmix.spec.fields import kinds
from dpmix.spec.mechanism import MechanismSpec
from dpmix.spec.model import MixtureSpec, ModelSpec, NormalBase
from dpmix.spec.sampler import SamplerKind
from dpmix.spec.synthesis import BaseSpec, SynthesisSpec

NOT_YET: Final[tuple[tuple[str, str], ...]] = ()
"""Key path and value of what is not available; ``*`` stands for any value that is given."""

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "mechanism.kind": kinds(MechanismSpec),
    "model.kind": kinds(ModelSpec),
    "model.kernel": kinds(MixtureSpec),
    "model.base.kind": kinds(NormalBase),
    "sampler.kind": get_args(SamplerKind),
    "summary.baseline": ("deconvolution_kde",),
    "synthesis.kind": kinds(SynthesisSpec),
    "synthesis.base.kind": kinds(BaseSpec),
}
"""Every value that a key of this kind can have, in the order of the interface."""


def available(key: str) -> tuple[str, ...]:
    """List the values of a key, such as ``mechanism.kind``, that this version can run."""
    return tuple(kind for kind in KINDS[key] if (key, kind) not in NOT_YET)


def refusals(contents: Any) -> Iterator[str]:
    """Name what the contents of a spec ask for that this version cannot run, one sentence each."""
    for key, refused in NOT_YET:
        value = contents
        for name in key.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is None or (refused != "*" and value != refused):
            continue
        if refused == "*":
            yield f"{key}: not available in this version of dpmix"
        else:
            others = ", ".join(available(key))
            yield f"{key}: {refused} is not available in this version of dpmix" + (
                f"; available: {others}" if others else ""
            )
