"""Draws of the random mixing measure P given saved states, and the densities and moments of such draws.

The posterior of P given a partition with k blocks of sizes n_h and their parameters is (Pitman 1996; methods,
section 4, "Reported")

    P = sum_h w_h delta_{theta_h} + w_0 Q,   Q ~ PY(d, alpha + k d, G0),
    (w_1, .., w_k, w_0) ~ Dirichlet(n_1 - d, .., n_k - d, alpha + k d).

Chains hold w_1..w_k; here Q is drawn by stick-breaking. What is left of Q after j sticks, a mass m, counts as
its mean, the prior predictive, so that means over draws stay exact however early the breaking stops. It stops
when that hardly touches any quantile: at theta = alpha + k d the standard deviation that is lost is

    w_0 m sqrt((1 - d) / (theta + j d + 1)) sd(f(y | G0)),

and the factor before the last is brought to 5e-5 or less, or 300 sticks are broken (large discounts; the mass
left then lies on so many atoms that its mean stands for it well).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels.layout import Learned

if TYPE_CHECKING:
    from dpmix.kernels.layout import Family, Floats
    from dpmix.kernels.multivariate_family import NormalInverseWishart
    from dpmix.run.chains_reader import Chains

_STREAM = -(10**9)  # of the generators that a summary derives from the chains' seed

BLOCK = 2048

TOLERANCE = 5e-5
MAX_STICKS = 300
NODES, _FEW_NODES = 8, 2  # atoms that stand for a record of an unseen component
_BLOCK = 1 << 17


@dataclass(frozen=True)
class Measures:
    """A batch of D finite mixtures, stored one after another.

    Parameters
    ----------
    counts : int64 array (D,)
        Number of atoms of each draw; zero is allowed.
    weights : float64 array (counts.sum(),)
        Weights of the atoms.
    atoms : float64 array (parameters, counts.sum())
        Their parameters, with the rows of the family that they are of, in the data's units.
    rest : float64 array (D,)
        Mass that lies on no atom and stands for the prior predictive.
    """

    counts: np.ndarray[tuple[int], np.dtype[np.int64]]
    weights: Floats
    atoms: Floats
    rest: Floats

    @classmethod
    def unseen(cls, size: int, parameters: int) -> Measures:
        """Return draws without atoms, all of whose mass stands for the prior predictive."""
        nothing = np.empty((parameters, 0))
        return cls(np.zeros(size, dtype=np.int64), np.empty(0), nothing, np.ones(size))

    def take(self, chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Measures:
        """Return the draws whose numbers, in increasing order, are in `chosen`."""
        keep = np.zeros(self.counts.size, dtype=bool)
        keep[chosen] = True
        inside = np.repeat(keep, self.counts)
        return Measures(self.counts[keep], self.weights[inside], self.atoms[:, inside], self.rest[keep])

    def repeated(self, chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Measures:
        """Return the draws whose numbers are in `chosen`, in that order and as often as they are there."""
        counts = self.counts[chosen]
        first = (np.cumsum(self.counts) - self.counts)[chosen] - (np.cumsum(counts) - counts)
        inside = np.arange(counts.sum()) + np.repeat(first, counts)
        return Measures(counts, self.weights[inside], self.atoms[:, inside], self.rest[chosen])

    def with_atoms(self, owner: NDArray[np.int64], weights: Floats, atoms: Floats, rest: Floats) -> Measures:
        """Return the draws with more atoms behind their own, each of its `owner`, and what is left then."""
        size = self.counts.size
        order = np.argsort(np.append(np.repeat(np.arange(size), self.counts), owner), kind="stable")
        return Measures(
            self.counts + np.bincount(owner, minlength=size),
            np.concatenate([self.weights, weights])[order],
            np.concatenate([self.atoms, atoms], axis=1)[:, order],
            rest,
        )

    def densities(self, grid: Floats, family: Family) -> Floats:
        """Density of each draw at each point of `grid`: shape (D, grid.size)."""
        out = self.rest[:, None] * family.predictive(grid)[None, :]
        stops = np.cumsum(self.counts)
        size = max(1, _BLOCK // max(1, grid.size))
        first = 0
        while first < self.counts.size:
            start = stops[first] - self.counts[first]
            last = max(first + 1, int(np.searchsorted(stops, start + size, side="right")))
            inside = slice(start, stops[last - 1])
            if inside.start < inside.stop:
                kernels = family.densities(self.weights[inside], self.atoms[:, inside], grid)
                full = first + np.flatnonzero(self.counts[first:last])
                out[full] += np.add.reduceat(kernels, stops[full] - self.counts[full] - start, axis=0)
            first = last
        return out

    def total(self, grid: Floats, family: Family) -> Floats:
        """Sum of the densities of all draws at each point of `grid`: shape (grid.size,)."""
        out = float(self.rest.sum()) * family.predictive(grid)
        size = max(1, _BLOCK // max(1, grid.size))
        for start in range(0, self.weights.size, size):
            inside = slice(start, start + size)
            out += family.densities(self.weights[inside], self.atoms[:, inside], grid).sum(axis=0)
        return out

    def moments(self, family: Family) -> tuple[Floats, Floats]:
        """Mean and standard deviation of a record Y under each draw, shapes (D,).

        Means are taken about that of the prior predictive and squares about the draw's own, so that no digits
        are lost where records lie far from 0 for their spread. Where the prior predictive has no variance the
        mass on no atom is left out.
        """
        owner = np.repeat(np.arange(self.counts.size), self.counts)
        size = self.counts.size
        means, variances = family.moments(self.atoms)
        centre, of_rest = family.predictive_moments()
        rest = self.rest
        if not np.isfinite(of_rest):
            rest, of_rest = np.zeros(size), 0.0
        mass = _sums(owner, self.weights, size) + rest
        apart = means - centre
        first = _sums(owner, self.weights * apart, size) / mass  # the rest's is 0
        square = _sums(owner, self.weights * (variances + (apart - first[owner]) ** 2), size)
        return centre + first, np.sqrt((square + rest * (of_rest + first**2)) / mass)


def join(parts: list[Measures]) -> Measures:
    """Put batches of draws one after another."""
    return Measures(
        np.concatenate([p.counts for p in parts]),
        np.concatenate([p.weights for p in parts]),
        np.concatenate([p.atoms for p in parts], axis=1),
        np.concatenate([p.rest for p in parts]),
    )


def state_measures(
    weights: Floats, parameters: Mapping[str, Floats], source: Family | NormalInverseWishart
) -> Measures:
    """Take saved states with w_0 as one lump on the prior predictive: the exact mean over Q.

    Parameters
    ----------
    weights : float64 array (D, components)
        Saved weights, NaN where a state has fewer components.
    parameters : mapping of str to float64 array (D, components, ..)
        The components' parameters as chains files hold them.
    source : Family or NormalInverseWishart
        Theirs.
    """
    there = np.isfinite(weights)
    rest = np.maximum(1.0 - np.where(there, weights, 0.0).sum(axis=1), 0.0)
    atoms = source.atoms({name: values[there] for name, values in parameters.items()})
    return Measures(there.sum(axis=1), weights[there], atoms, rest)


def draw_measures(
    states: Measures,
    concentration: Floats,
    discount: float,
    source: Family | NormalInverseWishart,
    rng: np.random.Generator,
    base: Floats | None = None,
) -> Measures:
    """Spread the mass w_0 of each state over atoms of Q ~ PY(discount, concentration + k discount, G0).

    Parameters
    ----------
    states : Measures
        As `state_measures` gives them: k atoms, and w_0 in `rest`.
    concentration : float64 array (D,)
        Concentration alpha of each state.
    discount : float
        Discount d, 0 <= d < 1.
    source : Family or NormalInverseWishart
        Draws from G0.
    rng : numpy.random.Generator
        Source of the sticks and atoms.
    base : float64 array (D, 2, d), optional
        Location and scale of each state's base measure, where these are learned: atoms are drawn from it, and
        what is left of Q lies on atoms too.
    """
    strength = concentration + states.counts * discount
    left = np.ones(states.counts.size)  # of Q
    owners, pieces = [], []
    active = np.flatnonzero(_lost(states.rest, strength, discount, 0) > TOLERANCE)
    for stick in range(1, MAX_STICKS + 1):
        if active.size == 0:
            break
        broken = rng.beta(1.0 - discount, strength[active] + stick * discount)
        owners.append(active)
        pieces.append(states.rest[active] * left[active] * broken)
        left[active] *= 1.0 - broken
        lost = _lost(states.rest[active] * left[active], strength[active], discount, stick)
        active = active[lost > TOLERANCE]
    if not owners:
        return states if base is None else settle_rest(states, source, base, _FEW_NODES)
    new_owner, new_weight = np.concatenate(owners), np.concatenate(pieces)
    new = (
        source.draw(rng, new_owner.size) if base is None else _given(source).draw_given(rng, base[new_owner])
    )
    drawn = states.with_atoms(new_owner, new_weight, new, states.rest * left)
    return drawn if base is None else settle_rest(drawn, source, base, _FEW_NODES)


def settle_rest(
    measures: Measures, source: Family | NormalInverseWishart, base: Floats, nodes: int = NODES
) -> Measures:
    """Put the mass on no atom on a few atoms, whose mixture is a record of an unseen component.

    Where the base measure of each draw has a location and scale of its own, (D, 2, d), the prior predictive
    does not stand for it.
    """
    weights, atoms = _given(source).rest_atoms(base, nodes)
    size = measures.counts.size
    more = (measures.rest[:, None] * weights).ravel()
    return measures.with_atoms(np.repeat(np.arange(size), nodes), more, atoms, np.zeros(size))


def draw_prior(
    source: Family | NormalInverseWishart, alpha: Floats, discount: float, rng: np.random.Generator
) -> Measures:
    """Draw P from its prior, one for each concentration (D,); its base measure too, where that is learned."""
    unseen = Measures.unseen(alpha.size, len(source.draw(rng, 1)))
    base = source.draw_base(rng, alpha.size) if isinstance(source, Learned) else None
    return draw_measures(unseen, alpha, discount, source, rng, base)


def _given(source: Family | NormalInverseWishart) -> Learned:
    assert isinstance(source, Learned)  # only these have a base measure for each draw
    return source


def _lost(mass: Floats, strength: Floats, discount: float, stick: int) -> Floats:
    """Share of the base measure's sd that is lost when `mass` counts as its mean after `stick` sticks."""
    return np.asarray(mass * np.sqrt((1.0 - discount) / (strength + stick * discount + 1.0)))


def _sums(owner: Any, values: Floats, size: int) -> Floats:
    """Sum of the values of each owner 0 .. size - 1."""
    return np.asarray(np.bincount(owner, values, minlength=size), dtype=np.float64)


def states_at(
    chains: Chains,
    source: Family | NormalInverseWishart,
    wanted: Sequence[tuple[int, NDArray[np.int64]]],
    *,
    spread_rest: bool,
) -> dict[tuple[int, int], Measures]:
    """Return saved states as single measures, by place of the chain and number of the state.

    Parameters
    ----------
    chains : Chains
    source : Family or NormalInverseWishart
    wanted : sequence of pairs
        Places of chains, and numbers of states of each.
    spread_rest : bool
        Whether to draw where the mass on no component lies; else it stays on the prior predictive, its mean.
    """
    numbers = dict(wanted)
    found = {}
    for block in chains.blocks(BLOCK):
        states = numbers.get(block.chain, np.empty(0, dtype=np.int64))
        inside = states[(states >= block.start) & (states < block.start + len(block.weights))]
        if not inside.size:
            continue
        rows = inside - block.start
        parameters = {name: values[rows] for name, values in block.parameters.items()}
        together = state_measures(block.weights[rows], parameters, source)
        base = None if block.base is None else block.base[rows]
        if spread_rest:
            rng = chains.generator(int(chains.ids[block.chain]), _STREAM - block.start)
            concentration = chains.concentration[block.chain, inside]
            discount = chains.constants["discount"]
            together = draw_measures(together, concentration, discount, source, rng, base)
        elif base is not None:
            together = settle_rest(together, source, base)
        for i, state in enumerate(inside.tolist()):
            found[block.chain, state] = together.repeated(np.array([i]))
    return found
