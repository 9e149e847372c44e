"""What a model and its chains must do, and the base of the chains of parametric models.

A chain sweeps in chunks, saves draws, and gives them away as named arrays; from a snapshot it goes on with
the draws that it would have had. It knows nothing of files, threads or seeds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

GROUP = "group"
"""Dimension of the groups of one release, the first own dimension of the parameters that have it."""

Arrays = Mapping[str, tuple[tuple[str, ...], NDArray[Any]]]
"""Arrays by name, each with the names of its dimensions; those of single draws begin with ``draw``."""

_OF_COMPONENTS: Final[dict[str, tuple[str, ...]]] = {
    "first": ("edge",),
    "weights": ("component",),
    "theta": ("parameter", "component"),
    "base": ("draw", "hyper", "base_column"),
    "allocations": ("draw", "obs"),
}
"""Dimensions of what is saved of a mixture; of all else ``draw`` alone."""

STATISTICS = ("acceptance_rate", "log_likelihood")
_FIRST_ROOM = 4  # draws
_MOST_AT_ONCE = 256  # draws


class ModelChain(Protocol):
    """One chain, of a mixture or of a parametric model."""

    @property
    def sweeps(self) -> int:
        """Sweeps since `keep`."""

    @property
    def acceptance_rate(self) -> float:
        """Share of proposals accepted since the last saved draw; NaN without proposals."""

    @property
    def note(self) -> str:
        """What the progress line says of the state, such as "3 clusters"; may be empty."""

    @property
    def saved_bytes(self) -> int:
        """Memory of the draws that `take` would return."""

    def keep(self, thin: int, skip: int) -> None:
        """Count sweeps from here; save every `thin`-th state after the first `skip`."""

    def proceed(self, until: int) -> None:
        """Sweep until `until` sweeps have been done since `keep`, without the interpreter lock."""

    def take(self) -> Arrays:
        """Return the draws saved since the last call, and forget them."""

    def fault(self, draws: Arrays) -> tuple[str, str] | None:
        """Return what is wrong with draws, if anything: a clause about the chain, and what to look for."""

    def snapshot(self) -> dict[str, Any]:
        """Return what `restore` needs to go on with the same draws; draws not taken are not in it."""

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a `snapshot`, which also says how draws are kept."""


class Samples(Protocol):
    """A model given a release: what makes chains."""

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> ModelChain:
        """Return a chain at its start.

        Parameters
        ----------
        rng : Generator
            The chain's own.
        pool : Executor, optional
            Threads to spare; the draws are the same without.
        """

    def compile(self, rng: Generator) -> None:
        """Compile what a sweep and a saved draw need: do one, and save the other."""
        chain = self.make_chain(rng)
        chain.keep(thin=1, skip=0)
        chain.proceed(1)

    @property
    def bytes_per_draw(self) -> int:
        """About how much one saved draw takes on disk."""


# What chains of mixtures share: components of all draws stand one after another


def cut_draws(output: Any, saved: int) -> dict[str, NDArray[Any]]:
    """Return copies of the first `saved` draws of a NamedTuple of arrays that they are written to."""
    used = int(output.first[saved])
    ends = {"first": saved + 1, "weights": used, "theta": used}
    return {
        name: (values[..., : ends[name]] if name in ends else values[:saved]).copy()
        for name, values in output._asdict().items()
    }


def mixture_draws(draws: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return draws of a mixture with the names of their dimensions, `base` where it is learned."""
    return {
        name: (_OF_COMPONENTS.get(name, ("draw",)), values)
        for name, values in draws.items()
        if name != "base" or values.shape[2]
    }


def fault_of_mixture(draws: Arrays, others: Sequence[str]) -> tuple[str, str] | None:
    """Return what is wrong with weights, parameters or `others` that are not finite, and what to look for."""
    if all(np.isfinite(draws[name][1]).all() for name in ("weights", "theta", *others) if name in draws):
        return None
    return (
        "reached a state of zero or undefined density",
        "look for extreme released values, or a base measure far from them",
    )


@dataclass(frozen=True)
class Parameter:
    """An array of which each draw has one value.

    Parameters
    ----------
    name : str
        Its name in the chains file.
    dims : tuple of str
        Names of its own dimensions, whose coordinates the model gives; none for a scalar. Where the release
        is of groups, the first is `GROUP`.
    role : str
        ``"scalar"``: every entry is summarized with its diagnostics. ``"shares"``: probabilities over the one
        dimension, summarized also as a distribution with its bands. ``"curve"``: a distribution function over
        the one, numeric dimension, summarized as that alone, and ``"density"`` a density likewise. These may
        have the dimension of groups before it, and are summarized for each. ``"draw"``: kept, and not
        summarized.
    title : str
        What summaries call it; its name where left out.
    column : str
        The column of the data that it is about; empty where there is only one, or it is about them all.
    """

    name: str
    dims: tuple[str, ...] = ()
    role: str = "scalar"
    title: str = ""
    column: str = ""

    def __post_init__(self) -> None:
        """Check that the role is one, and goes with the dimensions."""
        if self.role not in ("scalar", "shares", "curve", "density", "draw"):
            raise ValueError(f"{self.name}: unknown role {self.role!r}")
        own = len(self.dims) - (self.dims[:1] == (GROUP,))
        if self.role in ("shares", "curve", "density") and own != 1:
            raise ValueError(f"{self.name}: a {self.role} has one dimension, not {own}")


def safe_name(name: str, number: int) -> str:
    """Return a column's name as a file may hold it, where a slash would be a path."""
    return name if "/" not in name else f"{name.replace('/', '_')}_{number}"


class ParametricModel(Samples, ABC):
    """A parametric model given a release.

    Attributes
    ----------
    kind : str
        As the spec's `model.kind`.
    parameters : tuple of Parameter
        What each draw consists of.
    coords : mapping of str to array
        Coordinates, numbers or text, of every dimension of the parameters.
    constants : mapping of str to number
        What the chains file keeps of the model, such as its hyperparameters.
    acceptance_bound : float
        What the acceptance rate cannot fall below; NaN where there is no such bound.
    has_log_likelihood : bool
        Whether each draw has a log likelihood, exact up to a constant.
    attrs : mapping of str to str
        What the chains file says of the model beside its kind.
    """

    kind: str
    parameters: tuple[Parameter, ...]
    coords: Mapping[str, NDArray[Any]]
    constants: Mapping[str, float]
    acceptance_bound: float = float("nan")
    has_log_likelihood: bool = False
    attrs: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def make_chain(self, rng: Generator, pool: Executor | None = None) -> ParametricChain:
        """Return a chain at its start."""

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, NDArray[np.float64]]:
        """Draw parameters from the prior, as if nothing had been released.

        Returns
        -------
        dict of str to array (draws, ..)
            By name, of those parameters that have a prior of their own; none where there is none to draw
            from.
        """
        return {}

    def shape(self, parameter: Parameter) -> tuple[int, ...]:
        """Shape of one draw of a parameter."""
        return tuple(len(self.coords[dim]) for dim in parameter.dims)

    @property
    def bytes_per_draw(self) -> int:
        """About how much one saved draw takes on disk."""
        return 8 * sum(int(np.prod(self.shape(parameter))) for parameter in self.parameters) + 16


class ParametricChain(ABC):
    """One chain of a parametric model: a subclass adds its state, `sweep` and `record`.

    Parameters
    ----------
    model : ParametricModel
    rng : Generator
        The chain's own generator; all randomness comes from it.
    state : dict of str to array
        Everything that changes from sweep to sweep, changed in place: latent values, parameters, step sizes.
        A chain that draws independently has none.
    """

    def __init__(self, model: ParametricModel, rng: Generator, state: dict[str, NDArray[Any]]) -> None:
        self.model = model
        self.rng = rng
        self.state = state
        self.moves = np.zeros(2)
        """Proposals accepted and made since the last saved draw; `sweep` adds to them."""
        self._plan = np.array([0, 1, 0], dtype=np.int64)  # sweeps done, thin, skip
        self._saved = 0
        self._output = self._room(_FIRST_ROOM)

    def sweep(self, count: int) -> None:  # noqa: B027 - of independent draws there is nothing to sweep
        """Do `count` sweeps of the state; nothing, as here, where draws are independent."""

    @abstractmethod
    def record(self, row: int, out: Mapping[str, NDArray[np.float64]]) -> None:
        """Write the draw that the state stands for to place `row` of each array of `out`.

        `out` holds an array (draws, ..) for each parameter, and `log_likelihood` (draws,) where the model has
        one. What the state leaves random is drawn here.
        """

    @property
    def burning_in(self) -> bool:
        """Whether no draw has been due to be saved yet: while it is, a step may be adapted."""
        return int(self._plan[0]) < int(self._plan[2])

    @property
    def sweeps(self) -> int:
        """Sweeps since `keep`."""
        return int(self._plan[0])

    @property
    def acceptance_rate(self) -> float:
        """Share of proposals accepted since the last saved draw; NaN without proposals."""
        return float(self.moves[0] / self.moves[1]) if self.moves[1] else float("nan")

    @property
    def note(self) -> str:
        """What the progress line says of the state."""
        return ""

    @property
    def saved_bytes(self) -> int:
        """Memory of the draws that `take` would return."""
        return self._saved * sum(int(values[0].nbytes) for values in self._output.values())

    def _room(self, draws: int) -> dict[str, NDArray[np.float64]]:
        shapes = {parameter.name: self.model.shape(parameter) for parameter in self.model.parameters}
        shapes["acceptance_rate"] = ()
        if self.model.has_log_likelihood:
            shapes["log_likelihood"] = ()
        return {name: np.zeros((draws, *shape)) for name, shape in shapes.items()}

    def keep(self, thin: int, skip: int) -> None:
        """Count sweeps from here; save every `thin`-th state after the first `skip`."""
        self._plan[:] = (0, thin, skip)
        self._saved = 0

    def proceed(self, until: int) -> None:
        """Sweep until `until` sweeps have been done since `keep`."""
        while self.sweeps < until:
            done, thin, skip = (int(number) for number in self._plan)
            draws = min((until - done) // thin, _MOST_AT_ONCE)
            if done >= skip and (done - skip) % thin == 0 and draws > 0:
                self._reserve(draws)
                self.sweep_and_save(draws, thin, self._saved, self._output)
                self._plan[0] += draws * thin
                self._saved += draws
                continue
            # burn-in is a chunk of its own, so that what is adapted in it does not depend on `until`
            due = done + thin - (done - skip) % thin if done >= skip else skip
            stop = min(due, until)
            self.sweep(stop - done)
            self._plan[0] = stop
            if stop > skip and (stop - skip) % thin == 0:
                self._reserve(1)
                self._save(self._saved, self._output)
                self._saved += 1

    def sweep_and_save(
        self, draws: int, thin: int, first: int, out: Mapping[str, NDArray[np.float64]]
    ) -> None:
        """Do `draws` times `thin` sweeps, and write the draw after each to places `first`, .. of `out`.

        As `sweep` and `record` in turn, with the acceptance rate. A subclass whose sweeps are short next to
        a call of Python does it in one, with the same draws.
        """
        for row in range(first, first + draws):
            self.sweep(thin)
            self._save(row, out)

    def _save(self, row: int, out: Mapping[str, NDArray[np.float64]]) -> None:
        self.record(row, out)
        out["acceptance_rate"][row] = self.acceptance_rate
        self.moves[:] = 0.0

    def _reserve(self, draws: int) -> None:
        """Make room for so many draws more."""
        room = len(self._output["acceptance_rate"])
        if self._saved + draws <= room:
            return
        wider = self._room(max(self._saved + draws, 2 * room))
        for name, values in self._output.items():
            wider[name][: self._saved] = values[: self._saved]
        self._output = wider

    def take(self) -> Arrays:
        """Return the draws saved since the last call, and forget them."""
        saved, self._saved = self._saved, 0
        dims = {parameter.name: parameter.dims for parameter in self.model.parameters}
        return {
            name: (("draw", *dims.get(name, ())), values[:saved].copy())
            for name, values in self._output.items()
        }

    def run(self, draws: int, thin: int = 1, skip: int = 0) -> dict[str, NDArray[np.float64]]:
        """Sweep ``skip + draws * thin`` times; return `draws` draws of each parameter."""
        self.keep(thin, skip)
        self.proceed(skip + draws * thin)
        return {name: values for name, (_, values) in self.take().items()}

    def fault(self, draws: Arrays) -> tuple[str, str] | None:
        """Return what is wrong with draws that are not finite, and what to look for."""
        for name, (_, values) in draws.items():
            if name != "acceptance_rate" and not np.isfinite(values).all():
                bad = values[~np.isfinite(values)].ravel()[0]
                return f"drew {name} = {bad:g}", "look for extreme released values, or a prior far from them"
        return None

    def snapshot(self) -> dict[str, Any]:
        """Return what `restore` needs to go on with the same draws; draws not taken are not in it."""
        return {
            **{f"state_{name}": values.copy() for name, values in self.state.items()},
            "moves": self.moves.copy(),
            "plan": self._plan.copy(),
            "generators": [self.rng.bit_generator.state],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from a `snapshot`."""
        for name, values in self.state.items():
            values[...] = snapshot[f"state_{name}"]
        self.moves[:] = snapshot["moves"]
        self._plan[:] = snapshot["plan"]
        self._saved = 0
        self.rng.bit_generator.state = snapshot["generators"][0]
