"""Every kind that a section of a spec can have, as its unions list them."""

from __future__ import annotations

from typing import Final, get_args

from dpmix.spec.fields import kinds
from dpmix.spec.mechanism import MechanismSpec
from dpmix.spec.model import MixtureSpec, ModelSpec, NormalBase
from dpmix.spec.sampler import SamplerKind
from dpmix.spec.synthesis import BaseSpec, SynthesisSpec

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "mechanism.kind": kinds(MechanismSpec),
    "model.kind": kinds(ModelSpec),
    "model.kernel": kinds(MixtureSpec),
    "model.base.kind": kinds(NormalBase),
    "sampler.kind": get_args(SamplerKind),
    "synthesis.kind": kinds(SynthesisSpec),
    "synthesis.base.kind": kinds(BaseSpec),
}
"""Every value that a key of this kind can have, in the order of the interface."""
