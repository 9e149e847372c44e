"""Log likelihoods of released records, one by one or by their counts in public cells.

Given a saved state a record has the density sum_h w_h g(z | theta_h) + w_0 g_0(z), with g the marginal kernel
(methods, section 4) and g_0 that of the prior predictive, on which what lies on no component counts:

    none, gaussian, normal     normal densities, the noise's variance added; also of several columns
    laplace, normal            two tilted normal tails
    wavelet, square wave       sums over their own cells of the domain, which are exact
    binomial                   sums over 1,024 equal cells
    laplace, gaussian, beta    sums over 1,024 cells too, where no record is off by more than 0.05
    others                     what their channels have for samplers

A sum over cells takes the noise's density at their middles. What a mechanism has of these its law states
(`log_marginal`, `cell_likelihood`). g_0 of several columns, and by a channel, is a mean over draws from the
base measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpmix.errors import SpecError
from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.kernels.normal.family import NormalKernel
from dpmix.models.meaning_base import Unavailable
from dpmix.release.tallies import count_outputs, tally, wide_grid
from dpmix.run.chains_reader import Chains, ChainSet
from dpmix.summary.check.mixture_replicates import cell_masses
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.random_measures import Measures, states_at

if TYPE_CHECKING:
    from dpmix.kernels.layout import Family
    from dpmix.laws.every import Law

Floats = NDArray[np.float64]

MOST_RECORDS = 5_000
_PRIOR = 2_000  # draws from the base measure
_STREAM = -10


def log_likelihoods(chains: ChainSet, wanted: Sequence[tuple[int, NDArray[np.int64]]]) -> Floats:
    """Return the log likelihood of each released record at saved states, shape (chains, states, n).

    Raises
    ------
    Unavailable
        Where the likelihood does not factorize over records, or has no form that is known.
    """
    check_factorizes(chains)
    assert isinstance(chains, Chains)  # checked
    if chains.tally is not None:
        raise Unavailable("a tally holds no single records")
    if chains.n > MOST_RECORDS:
        raise Unavailable(f"there are more than {MOST_RECORDS:,} records")
    source, law = family_of(chains), chains.mechanism
    states = states_at(chains, source, wanted, spread_rest=False)
    order = [(chain, state) for chain, numbers in wanted for state in numbers.tolist()]
    measures = [states[place] for place in order]
    if isinstance(source, NormalInverseWishart):
        if law.protects and not law.normal_noise:
            raise Unavailable(f"{law.noise_name} on several columns leaves no closed form")
        found = _of_rows(chains, source, measures)
    elif isinstance(source, NormalKernel) and law.provides("log_marginal"):
        found = _of_normals(chains, source, measures, law)
    elif not law.protects:
        found = _of_densities(chains, source, measures)
    elif law.provides("cell_likelihood"):
        found = _of_cells(chains, source, measures)
    else:
        found = _by_channel(chains, source, measures)
    return found.reshape(len(wanted), -1, len(chains.observed))


def cell_log_likelihoods(chains: Chains, wanted: Sequence[tuple[int, NDArray[np.int64]]]) -> Floats:
    """Return log likelihoods of one released number in each cell of a tally, (chains, states, cells)."""
    from dpmix.summary.information import NoisyMasses  # late: numba takes its time

    source, masses = family_of(chains), NoisyMasses(chains)
    assert not isinstance(source, NormalInverseWishart)  # a tally is of one column
    states = states_at(chains, source, wanted, spread_rest=False)
    prior = masses.of_atoms(source.draw(chains.generator(0, _STREAM), _PRIOR)).mean(axis=0)
    rows = []
    for chain, numbers in wanted:
        for state in numbers.tolist():
            measure = states[chain, state]
            each = measure.weights[:, None] * masses.of_atoms(measure.atoms)
            rows.append(each.sum(axis=0) + max(float(measure.rest[0]), 0.0) * prior)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.array(rows))
    return logs.reshape(len(wanted), -1, prior.size)


def check_factorizes(chains: ChainSet) -> None:
    """Refuse fits whose likelihood is no product over records.

    Raises
    ------
    Unavailable
    """
    law, kind = chains.mechanism, chains.mechanism.kind
    if not isinstance(chains, Chains) or not chains.by_record:
        raise Unavailable(f"the likelihood of a release by {kind} does not factorize over records")
    if law.released != "records":
        raise Unavailable(f"releases by {kind} have no likelihood of single records here")


def _of_normals(chains: Chains, source: Family, states: list[Measures], law: Law) -> Floats:
    """Return those of normal kernels and additive noise, which are exact."""
    z = chains.observed.ravel()
    scale = float(chains.constants["noise_scale"]) if law.protects else 0.0

    def log_g(atoms: Floats) -> Floats:
        mean, sd = atoms[0][:, None], atoms[1][:, None]
        return law.log_marginal(z, mean, sd, scale)

    with np.errstate(divide="ignore"):
        prior = np.log(_noisy_prior(z, source, law, scale) if law.protects else source.predictive(z))
    return _mixed(states, log_g, prior)


def _noisy_prior(z: Floats, source: Family, law: Law, scale: float) -> Floats:
    """Return g_0: the prior predictive, taken for constant between its nodes, with noise."""
    nodes = source.nodes()
    heights = np.diff(source.predictive_cdf(nodes)) / np.diff(nodes)
    out = np.empty(z.size)
    for start in range(0, z.size, 500):
        below = law.noise_cdf((z[start : start + 500, None] - nodes) / scale)
        out[start : start + 500] = (below[:, :-1] - below[:, 1:]) @ heights
    return out


def _of_densities(chains: Chains, source: Family, states: list[Measures]) -> Floats:
    """Return those of records without noise, under any kernel on the line."""
    z = chains.observed.ravel()

    def log_g(atoms: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(source.densities(np.ones(atoms.shape[1]), atoms, z)))

    with np.errstate(divide="ignore"):
        prior = np.log(source.predictive(z))
    return _mixed(states, log_g, prior)


def _of_rows(chains: Chains, source: NormalInverseWishart, states: list[Measures]) -> Floats:
    """Return those of multivariate normal kernels and Gaussian noise, or none."""
    z, d = chains.observed, source.size
    noise = chains.arrays["noise_scale"] ** 2 if chains.mechanism.protects else np.zeros(d)

    def log_g(atoms: Floats) -> Floats:
        mean, covariance = source.split(atoms)
        root = np.linalg.cholesky(covariance + np.diag(noise))
        inverse = np.linalg.inv(root)
        shift = np.einsum("kij,kj->ki", inverse, mean)
        square = ((np.einsum("kij,nj->kni", inverse, z) - shift[:, None]) ** 2).sum(axis=2)
        determinant = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(-0.5 * square - determinant[:, None] - 0.5 * d * math.log(2.0 * math.pi))

    return _mixed(states, log_g, _prior_mean(log_g, chains, source))


def _of_cells(chains: Chains, source: Family, states: list[Measures]) -> Floats:
    """Return sums over cells of the density of the release in each, times the mass of a state there."""
    try:
        scale = chains.constants.get("noise_scale", math.nan)
        likelihood = chains.mechanism.cell_likelihood(chains.observed, scale)
    except ValueError as why:
        raise Unavailable(str(why)) from None
    return likelihood.logs(cell_masses(state, source, likelihood.edges) for state in states)


def _by_channel(chains: Chains, source: Family, states: list[Measures]) -> Floats:
    """Return those of releases that samplers alone have densities of, of one number each."""
    from dpmix.mechanisms.channels.channel_functions import fill_marginal, log_constant  # late: numba
    from dpmix.summary.information import kernel_of_fit, theta_of

    law, kernel = chains.mechanism, kernel_of_fit(chains)
    why = f"releases by {law.kind} have no likelihood of single records with kernel {chains.layout.kernel}"
    if chains.observed.ndim > 1 or kernel is None:
        raise Unavailable(why)
    z = np.ascontiguousarray(chains.observed, dtype=np.float64)
    seen = law.observe(z[:, None], chains.n, (0,), rows=False)
    pair = type(seen.channel), type(kernel)
    if pair not in fill_marginal.registered or log_constant(seen.channel) != 0.0:
        raise Unavailable(why)

    def log_g(atoms: Floats) -> Floats:
        theta, found = theta_of(chains, atoms), np.empty((atoms.shape[1], len(z)))
        for h, out in enumerate(found):
            fill_marginal(seen.channel, kernel, theta, h, seen.z, 0, len(z), out)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found))

    return _mixed(states, log_g, _prior_mean(log_g, chains, source))


def _prior_mean(
    log_g: Callable[[Floats], Floats], chains: Chains, source: Family | NormalInverseWishart
) -> Floats:
    """Return log g_0 of each record: of the mean of g over draws from the base measure."""
    atoms = source.draw(chains.generator(0, _STREAM), _PRIOR)
    parts = [log_g(atoms[:, start : start + 50]) for start in range(0, _PRIOR, 50)]
    return np.asarray(special.logsumexp(np.concatenate(parts), axis=0) - math.log(_PRIOR))


def _mixed(states: list[Measures], log_g: Callable[[Floats], Floats], prior: Floats) -> Floats:
    """Return log densities (states, n) of mixtures, by those of atoms and of the prior predictive."""
    out = np.empty((len(states), prior.size))
    for row, state in enumerate(states):
        rest = max(float(state.rest[0]), 0.0)
        with np.errstate(divide="ignore"):
            logs = [prior + math.log(rest)] if rest > 0.0 else []
            weights = np.log(state.weights)
        if state.weights.size:
            each = log_g(state.atoms) + weights[:, None]
            top = each.max(axis=0)
            top = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                logs.append(top + np.log(np.exp(each - top).sum(axis=0)))
        out[row] = logs[0] if len(logs) == 1 else np.logaddexp(*logs)
    return out


# Releases of many records as their counts in public cells, for log likelihoods (methods, section 12)


MOST_CELLS = 10_000
_KERNELS = ("normal", "beta")  # whose masses of cells are known


def goes_by_cell(chains: ChainSet) -> bool:
    """Whether log likelihoods are of cells: of a tally, and of more records than are kept one by one."""
    return chains.tally is not None or chains.n > MOST_RECORDS


def counted(chains: ChainSet) -> Chains:
    """Return chains with a tally of their release: its own, or its counts in the cells of `dpmix tally`.

    The width is that which the chains counted by, where they did.

    Raises
    ------
    Unavailable
        Where the likelihood does not factorize over records, or no cells follow from public quantities.
    """
    check_factorizes(chains)
    assert isinstance(chains, Chains)  # checked
    law = chains.mechanism
    if chains.layout.kernel not in _KERNELS or chains.observed.ndim > 1 or len(law.domain or ()) > 1:
        raise Unavailable(f"there are more than {MOST_RECORDS:,} records, and cells are of one column")
    if chains.tally is None:
        what = f"there are more than {MOST_RECORDS:,} records, and no public cells of releases by"
        if not law.countable:
            raise Unavailable(f"{what} {law.kind}")
        try:
            edges, width = wide_grid(law, chains.constants.get("cells_width") or "auto")
        except SpecError:
            raise Unavailable(f"{what} {law.kind}") from None
        z = chains.observed
        found = tally(z, edges, width) if law.outputs is None else count_outputs(z, law.outputs)
        chains = replace(chains, tally=found)
    assert chains.tally is not None  # set
    if chains.tally.counts.size > MOST_CELLS:
        raise Unavailable(f"there are more than {MOST_CELLS:,} cells")
    return chains


def of_all_cells(logs: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log likelihoods of all records of each cell, 0 of those without.

    Parameters
    ----------
    logs : float64 array (chains, states, cells)
        Of one record.
    counts : int64 array (cells,)
    """
    return np.where(counts > 0, counts * np.where(counts > 0, logs, 0.0), 0.0)
