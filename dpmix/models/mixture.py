"""Mixtures as a model that makes chains: `dpmix.samplers.Chain` behind the face that all chains have."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.mechanisms.channels.all_channels import augmented
from dpmix.samplers.chain import Chain
from dpmix.samplers.state import SERIAL_LIMIT

if TYPE_CHECKING:
    from dpmix.kernels.learned_base import LearnedBase
    from dpmix.models.model_protocols import Arrays
    from dpmix.numerics.mixing import PitmanYor
    from dpmix.samplers.sweeps import Algorithm

__all__ = ["Mixture", "MixtureChain"]


@dataclass(frozen=True)
class Mixture:
    """A mixture given a release.

    Parameters
    ----------
    z : (n,) array
        Released values, or the rows of the channel's arrays.
    channel, kernel : NamedTuples of `dpmix.mechanisms.channels.all_channels` and `dpmix.kernels`
    mixing : PitmanYor
    algorithm : Algorithm
    kept : int64 array (m,)
        Places of the records whose allocations are saved; empty for none.
    learned : LearnedBase, optional
        What is learned of the kernel's base measure; nothing where left out.
    """

    z: NDArray[np.float64]
    channel: Any
    kernel: Any
    mixing: PitmanYor
    algorithm: Algorithm
    kept: NDArray[np.int64]
    learned: LearnedBase | None = None

    def _chain(self, z: NDArray[np.float64], rng: Generator, pool: Executor | None) -> MixtureChain:
        chain = Chain(z, self.channel, self.kernel, self.mixing, self.algorithm, rng, pool, self.learned)
        return MixtureChain(chain, self.kept)

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> MixtureChain:
        """Return a chain at its start; `pool` serves blocks of records where there are many."""
        return self._chain(self.z, rng, pool)

    def compile(self, rng: Generator) -> None:
        """Compile everything that a sweep and a saved draw need, on few records that take the same way."""
        chain = replace(self, kept=self.kept[:0])._chain(self.z[: SERIAL_LIMIT + 1], rng, None)
        chain.keep(thin=1, skip=0)
        chain.proceed(1)

    @property
    def bytes_per_draw(self) -> int:
        """About how much one saved draw takes on disk."""
        return 400 + 2 * len(self.kept)


class MixtureChain:
    """One chain of a mixture; see `dpmix.models.model_protocols.ModelChain`.

    Draws are `n_clusters`, `concentration`, `acceptance_rate` and `log_likelihood` (draw,), `weights`
    (component,) and `theta` (parameter, component) of which draw t has ``first[t]:first[t + 1]``, `first`
    (edge,), `base` (draw, hyper, column) where the base measure is learned, and `allocations` (draw, obs) of
    the records that they are kept of, if any.
    """

    def __init__(self, chain: Chain, kept: NDArray[np.int64]) -> None:
        self._chain = chain
        self._kept = kept

    @property
    def sweeps(self) -> int:
        """Sweeps since `keep`."""
        return self._chain.sweeps

    @property
    def acceptance_rate(self) -> float:
        """Share of proposals accepted since the last saved draw; NaN without proposals."""
        return self._chain.acceptance_rate

    @property
    def note(self) -> str:
        """The number of occupied components."""
        return f"{self._chain.n_clusters} clusters"

    @property
    def saved_bytes(self) -> int:
        """Memory of the draws that `take` would return."""
        return self._chain.saved_bytes

    def keep(self, thin: int, skip: int) -> None:
        """Count sweeps from here; save every `thin`-th state after the first `skip`."""
        self._chain.keep(thin, skip, self._kept)

    def proceed(self, until: int) -> None:
        """Sweep until `until` sweeps have been done since `keep`."""
        self._chain.proceed(until)

    def take(self) -> Arrays:
        """Return the draws saved since the last call, and forget them."""
        draws = self._chain.take()
        dims = {
            "first": ("edge",),
            "weights": ("component",),
            "theta": ("parameter", "component"),
            "base": ("draw", "hyper", "base_column"),
            "allocations": ("draw", "obs"),
        }
        fields = draws._asdict()
        if not len(self._kept):
            del fields["allocations"]
        if not fields["base"].shape[2]:
            del fields["base"]
        return {name: (dims.get(name, ("draw",)), values) for name, values in fields.items()}

    def fault(self, draws: Arrays) -> tuple[str, str] | None:
        """Return what is wrong with draws that are not finite, and what to look for."""
        names = ["weights", "theta", *(["base"] if "base" in draws else [])]
        # of a release whose density has no closed form the log-likelihood is always NaN, of others never
        if not augmented(self._chain.channel):
            names.append("log_likelihood")
        if all(np.isfinite(draws[name][1]).all() for name in names):
            return None
        return (
            "reached a state of zero or undefined density",
            "look for extreme released values, or a base measure far from them",
        )

    def snapshot(self) -> dict[str, Any]:
        """Return what `restore` needs to go on with the same draws; draws not taken are not in it."""
        return self._chain.snapshot()

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a `snapshot`."""
        self._chain.restore(snapshot, self._kept)
