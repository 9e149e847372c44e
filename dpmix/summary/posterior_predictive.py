"""Records from the posterior predictive of a fit: free, because they are computed from a release alone."""

from __future__ import annotations

import numpy as np

from dpmix.errors import DataError, SpecError
from dpmix.kernels.multivariate_family import NormalInverseWishart
from dpmix.run.chains_reader import Block, Chains, NamedChains
from dpmix.summary.families.family import Family, Floats
from dpmix.summary.families.family_of_fit import family_of
from dpmix.summary.random_measures import generator, settle_rest, state_measures

__all__ = ["mixture_records", "parametric_records"]

_BLOCK = 2048
_STREAM = -3  # of the generators that a summary derives from the chains' seed


def mixture_records(chains: Chains, records: int, batch: int = 0) -> Floats:
    """Draw records from the posterior mean density, the posterior predictive density of a mixture.

    Each is drawn from the random density of a saved state, chosen anew among those of all chains: from
    component h with its weight w_h, and with what is left of the weights, w_0, from the kernel at a new draw
    from the base measure, over which w_0 is spread (`dpmix.summary.random_measures`). The generator is
    derived from the chains' seed: the same files give the same records.

    Parameters
    ----------
    chains : Chains
        What `dpmix.run.chains_reader.read_chains` gives.
    records : int
        Their number, at least 1.
    batch : int
        Records of other batches are independent of these.

    Returns
    -------
    float64 array (records, columns)
        In the data's units. A normal kernel reaches beyond public bounds.

    Raises
    ------
    DataError
        When the chains hold bad components.
    """
    source, rng = family_of(chains), generator(chains, batch, _STREAM)
    width = source.size if isinstance(source, NormalInverseWishart) else 1
    states = rng.integers(chains.ids.size * chains.draws, size=records)
    order = np.argsort(states, kind="stable")
    ordered = states[order]
    drawn = np.empty((records, width))
    for block in chains.blocks(_BLOCK):
        start = block.chain * chains.draws + block.start
        first, last = np.searchsorted(ordered, [start, start + len(block.weights)])
        if first < last:
            drawn[order[first:last]] = _from_block(block, ordered[first:last] - start, source, rng)
    return drawn


def _from_block(
    block: Block,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    source: Family | NormalInverseWishart,
    rng: np.random.Generator,
) -> Floats:
    """Draw one record from each of the states `rows` (size,) of a block, shape (size, columns)."""
    states = state_measures(block.weights, block.parameters, source)
    if block.base is not None:
        states = settle_rest(states, source, block.base)
    above = np.append(0.0, np.cumsum(states.weights))
    stops = np.cumsum(states.counts)
    place = above[stops - states.counts][rows] + rng.random(rows.size)
    chosen = np.searchsorted(above[1:], place, side="right")
    new = chosen >= stops[rows]
    atoms = np.empty((states.atoms.shape[0], rows.size))
    atoms[:, ~new] = states.atoms[:, chosen[~new]]
    atoms[:, new] = source.draw(rng, int(new.sum()))
    return source.sample(atoms, rng).reshape(rows.size, -1)


def parametric_records(chains: NamedChains, records: int | None) -> tuple[Floats, tuple[str, ...]]:
    """Take records among those that a parametric model's chains hold: one each saved draw.

    They are the parameters of role ``draw`` titled ``predictive``, one for each column.

    Parameters
    ----------
    chains : NamedChains
    records : int or None
        Their number, at least 1; None for all that there are.

    Returns
    -------
    float64 array (records, columns)
        Numbers, and codes of labels.
    tuple of str
        Names of the columns, in the order of the file's; one that is empty where there is only one.

    Raises
    ------
    DataError
        When the chains hold no such records.
    SpecError
        When they hold fewer.
    """
    held = [p for p in chains.parameters if p.role == "draw" and p.title == "predictive"]
    if not held:
        kind = chains.attrs.get("model", "of their own")
        raise DataError(
            f"the chains are of model {kind}, whose draws hold no records; fits of mixture, discrete, "
            "multinomial and dirichlet can be drawn records from"
        )
    known = {name: place for place, name in enumerate(chains.columns)}
    held.sort(key=lambda parameter: known.get(parameter.column, -1))
    flat = np.stack([chains.read(parameter).ravel() for parameter in held], axis=1)
    if records is not None and records > len(flat):
        raise SpecError(
            f"synthesis.records: {records}, but the chains hold {len(flat)} records of the posterior "
            "predictive, one each saved draw; ask for at most as many, or fit with more sampler.iterations"
        )
    chosen = generator(chains, 0, _STREAM).permutation(len(flat))[:records]
    return flat[chosen], tuple(parameter.column for parameter in held)
