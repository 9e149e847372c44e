"""Every sampler under every channel, for the tests that hold them to the same oracles."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmix.channels import GaussianNoise, LaplaceNoise, NoNoise
from dpmix.kernels import NormalNIG
from dpmix.mixing import PitmanYor
from dpmix.samplers import Algorithm, Chain
from tests.oracles.joint import Model

# name: kind, auxiliaries, how the latent values are drawn, latent values a record in the sampler's state
SAMPLERS = {
    "neal8": ("neal8", 1, "exact", 0),
    "neal8-3": ("neal8", 3, "exact", 0),
    "slice": ("private_slice", 1, "exact", 0),
    "slice-metropolis": ("private_slice", 1, "metropolis", 1),
    "blocked": ("blocked_gibbs", 1, "exact", 0),
    "blocked-metropolis": ("blocked_gibbs", 1, "metropolis", 1),
    "neal5": ("private_neal5", 1, "exact", 1),
    "neal5-4": ("private_neal5", 4, "exact", 4),
}
# samplers that need noise: without it they are refused by name
NOISY = {"slice-metropolis", "blocked-metropolis", "neal5", "neal5-4"}


def channel(model: Model) -> LaplaceNoise | GaussianNoise | NoNoise:
    """Return dpmix's channel of an oracle's model."""
    kind, scale = model.channel
    if kind == "none":
        return NoNoise()
    return LaplaceNoise(scale) if kind == "laplace" else GaussianNoise(scale)


def chain(
    sampler: str, model: Model, z: Any, rng: np.random.Generator, truncation: int | None = None
) -> Chain:
    """Build a chain of `sampler` for an oracle's model.

    The truncation of the blocked Gibbs sampler defaults to one whose error is far below what the tests
    resolve: at discount 0.3 the expected mass beyond H sticks falls like H^-2.3.
    """
    kind, m, latent, _ = SAMPLERS[sampler]
    shape, rate = model.alpha if isinstance(model.alpha, tuple) else (0.0, 0.0)
    alpha = shape / rate if isinstance(model.alpha, tuple) else model.alpha
    mixing = PitmanYor(alpha, model.discount, shape, rate)
    truncation = truncation or (60 if model.discount == 0.0 else 120)
    algorithm = Algorithm(kind=kind, auxiliary=m, truncation=truncation, latent=latent)
    z = np.ascontiguousarray(z, dtype=float)
    return Chain(z, channel(model), NormalNIG(*model.base), mixing, algorithm, rng)


def latent_count(sampler: str) -> int:
    """Return how many latent values a record the sampler keeps in its state."""
    return SAMPLERS[sampler][3]
