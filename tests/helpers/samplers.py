"""Every sampler under every channel and kernel, for the tests that hold them to the same oracles."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmix.kernels import Beta, MultivariateNormal, NormalNIG, NormalTruncatedNIG
from dpmix.mechanisms.binomial.channel import BinomialNoise
from dpmix.mechanisms.channels.channel_functions import settle
from dpmix.mechanisms.channels.count_likelihoods import NOISES, CountsWithNoise, SmoothedDraws, released
from dpmix.mechanisms.channels.histograms import histogram_bins
from dpmix.mechanisms.channels.rows import GaussianRows, Rows, laplace_rows
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.mechanisms.square_wave.channel import square_wave
from dpmix.mechanisms.wavelet.channel import wavelet_cells
from dpmix.numerics.equal_cells import cell_of, equal_edges
from dpmix.numerics.mixing import PitmanYor
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
# without noise and with Gaussian noise all goes by the code of Laplace noise but for one density: one
# sampler shows that it does; Metropolis steps of latent values are one code, which the slice sampler shows
FIRST = ("neal8-3",)
LATER = ("blocked-metropolis",)
# samplers that integrate theta out, where the release is conjugate
COLLAPSED = {
    "neal2": ("neal2", 1, "exact", 0),
    "neal3": ("neal3", 1, "exact", 0),
    "split_merge": ("split_merge", 1, "exact", 0),
}
# samplers for a release of the whole sample
GLOBAL = ("neal5", "slice", "slice-metropolis", "blocked", "blocked-metropolis")
ALL = SAMPLERS | COLLAPSED


def is_later(sampler: str, channel: str) -> bool:
    """Return whether a combination is compiled for its own tests alone, and so is left to the matrix."""
    return sampler in LATER or (channel.startswith(("gaussian", "none")) and sampler not in FIRST)


def kernel(model: Model) -> Any:
    """Return dpmix's kernel and base measure of an oracle's model."""
    if model.kernel == "multivariate":
        mu0, lam, nu, psi = model.base
        return MultivariateNormal(np.array(mu0), lam, nu, np.array(psi))
    if model.kernel == "beta":
        return Beta(*model.base)
    return (NormalTruncatedNIG if model.kernel == "truncated" else NormalNIG)(*model.base)


def channel(model: Model, z: Any = None, n: int | None = None) -> Any:
    """Return dpmix's channel of an oracle's model, with the release `z` where the channel holds it."""
    kind, scale = model.channel
    if model.kernel == "multivariate":
        return _rows(kind, scale, np.array(z, dtype=float))
    if model.is_global:
        return _histogram(kind, scale, np.array(z, dtype=float), n)
    if kind == "wavelet":
        values, pair = np.array(z, dtype=float), (scale[2], scale[2] + scale[3])
        return wavelet_cells(values, equal_edges(pair, values.shape[1] + 1), scale[1])
    if kind == "binomial":
        trials, weight, lo, width = scale
        return BinomialNoise.make(trials, weight, lo, lo + width)
    if kind == "square_wave":
        cells, reach, ratio, lo, width = scale
        return square_wave(cells, reach, ratio, lo, lo + width)
    if kind == "none" or model.kernel == "truncated":  # that base measure works the release itself
        return NoNoise()
    return LaplaceNoise(scale) if kind == "laplace" else GaussianNoise(scale)


def _rows(kind: str, scale: Any, z: Any) -> Any:
    if kind == "none":
        return Rows(z)
    return laplace_rows(z, np.array(scale)) if kind == "laplace" else GaussianRows(z, np.array(scale) ** 2)


def _histogram(kind: str, parameters: Any, z: Any, n: int | None) -> Any:
    if n is None:
        raise ValueError("a histogram does not say how many records it is of")
    lo, width = parameters[-2:]
    bins, edges = parameters[0], np.linspace(lo, lo + width, parameters[0] + 1)
    if kind == "smoothed":
        weight = parameters[1]
        drawn = released(cell_of(z, edges), bins)
        return histogram_bins(SmoothedDraws(drawn, (1.0 - weight) * bins / n, float(weight)), n, edges)
    noise, scale = parameters[1:3]
    return histogram_bins(CountsWithNoise(z, NOISES[noise], float(scale)), n, edges)


def chain(
    sampler: str,
    model: Model,
    z: Any,
    rng: np.random.Generator,
    truncation: int | None = None,
    n: int | None = None,
    learned: Any = None,
) -> Chain:
    """Build a chain of `sampler` for an oracle's model; `n` records, where the release does not tell.

    `learned`: location and scale of the base measure, where they are learned.

    The truncation of the blocked Gibbs sampler defaults to one whose error is far below what the tests
    resolve: at discount 0.3 the expected mass beyond H sticks falls like H^-2.3.
    """
    kind, m, latent, _ = ALL[sampler]
    shape, rate = model.alpha if isinstance(model.alpha, tuple) else (0.0, 0.0)
    alpha = shape / rate if isinstance(model.alpha, tuple) else model.alpha
    mixing = PitmanYor(alpha, model.discount, shape, rate)
    truncation = truncation or (60 if model.discount == 0.0 else 120)
    algorithm = Algorithm(kind=kind, auxiliary=m, truncation=truncation, latent=latent)
    z = np.ascontiguousarray(z, dtype=float)
    records = z if by_number(model) else np.arange(float(len(z) if n is None else n))
    return Chain(records, channel(model, z, n), kernel(model), mixing, algorithm, rng, learned=learned)


def by_number(model: Model) -> bool:
    """Return whether the release of a record is its own number, and not a row of the channel's arrays."""
    return not (model.is_global or model.kernel == "multivariate" or model.channel[0] == "wavelet")


def holds_more(model: Model) -> bool:
    """Return whether the channel has variables of its own in the chain's state."""
    return model.is_global or (model.kernel == "multivariate" and model.channel[0] == "laplace")


def redraw(model: Model, chain: Chain, z: Any, latent: Any) -> None:
    """Put a release, given the latent values (n, m), in the place of a chain's."""
    if by_number(model):
        chain.z[:] = z
        return
    new = channel(model, z, len(chain.z))
    if hasattr(new, "likelihood"):
        chain.channel.likelihood.released[:] = new.likelihood.released
    for name in ("values", "density"):
        if hasattr(new, name):
            getattr(chain.channel, name)[:] = getattr(new, name)
    settle(chain.channel, chain.kernel, chain.rng, np.ascontiguousarray(latent[:, 0]))


def latent_count(sampler: str) -> int:
    """Return how many latent values a record the sampler keeps in its state."""
    return ALL[sampler][3]
