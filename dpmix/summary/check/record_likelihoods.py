"""Log likelihoods of single released records, their latent values and allocations integrated out.

Given a saved state a record has the density sum_h w_h g(z | theta_h) + w_0 g_0(z), with g the marginal kernel
(methods, section 4) and g_0 that of the prior predictive, on which what lies on no component counts:

    none, gaussian, normal     normal densities, the noise's variance added; also of several columns
    laplace, normal            two tilted normal tails
    wavelet, square wave       sums over their own cells of the domain, which are exact
    binomial                   sums over 1,024 equal cells
    laplace, gaussian, beta    sums over 1,024 cells too, where no record is off by more than 0.05

A sum over cells takes the noise's density at their middles. g_0 of several columns is a mean over draws from
the base measure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpmix.kernels.multivariate_family import NormalInverseWishart
from dpmix.kernels.normal_family import NormalKernel
from dpmix.mechanisms.binomial.law import BinomialLaw
from dpmix.mechanisms.gaussian.law import GaussianLaw
from dpmix.mechanisms.laplace.law import LaplaceLaw
from dpmix.mechanisms.laws.additive import Additive
from dpmix.mechanisms.none.law import NoLaw
from dpmix.mechanisms.square_wave.law import SquareWaveLaw
from dpmix.mechanisms.wavelet.law import WaveletLaw
from dpmix.numerics.equal_cells import equal_edges
from dpmix.run.chains_reader import Chains, ChainSet
from dpmix.summary.check.mixture_replicates import haar_rows
from dpmix.summary.check.replicators import Unavailable
from dpmix.summary.check.state_densities import cell_masses, states_at
from dpmix.summary.density import generator
from dpmix.summary.families.family import Family
from dpmix.summary.families.family_of_fit import family_of
from dpmix.summary.random_measures import Measures

__all__ = ["MOST_RECORDS", "cell_log_likelihoods", "log_likelihoods"]

Floats = NDArray[np.float64]

MOST_RECORDS = 5_000
_CELLS = 1_024
_CLOSE = 0.05  # of log densities, how far from exact at worst, at the end of a cell
_PRIOR = 2_000  # draws from the base measure
_STREAM = -10
_MOST_TRIALS = 2_000


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
    if isinstance(source, NormalInverseWishart):
        if isinstance(law, LaplaceLaw):
            raise Unavailable("Laplace noise on several columns leaves no closed form")
        found = _of_rows(chains, source, [states[place] for place in order])
    elif isinstance(source, NormalKernel) and isinstance(law, Additive):
        found = _of_normals(chains, source, [states[place] for place in order], law)
    elif not law.protects:
        found = _of_densities(chains, source, [states[place] for place in order])
    elif isinstance(law, SquareWaveLaw):
        found = _of_near_outputs(chains, source, [states[place] for place in order], law)
    else:
        found = _of_cells(chains, source, [states[place] for place in order])
    return found.reshape(len(wanted), -1, len(chains.observed))


def cell_log_likelihoods(chains: Chains, wanted: Sequence[tuple[int, NDArray[np.int64]]]) -> Floats:
    """Return log likelihoods of one released number in each cell of a tally, (chains, states, cells)."""
    from dpmix.summary.noisy_masses import NoisyMasses  # late: numba takes its time

    source, masses = family_of(chains), NoisyMasses(chains)
    assert not isinstance(source, NormalInverseWishart)  # a tally is of one column
    states = states_at(chains, source, wanted, spread_rest=False)
    prior = masses.of_atoms(source.draw(generator(chains, 0, _STREAM), _PRIOR)).mean(axis=0)
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
    if not isinstance(law, NoLaw | LaplaceLaw | GaussianLaw | WaveletLaw | BinomialLaw | SquareWaveLaw):
        raise Unavailable(f"releases by {kind} have no likelihood of single records here")


def _of_normals(chains: Chains, source: Family, states: list[Measures], law: Additive) -> Floats:
    """Return those of normal kernels and additive noise, which are exact."""
    z = chains.observed.ravel()
    scale = float(chains.constants["noise_scale"]) if law.protects else 0.0

    def log_g(atoms: Floats) -> Floats:
        mean, sd = atoms[0][:, None], atoms[1][:, None]
        if not isinstance(law, LaplaceLaw):
            wide = np.sqrt(sd**2 + scale**2)
            return np.asarray(-0.5 * ((z - mean) / wide) ** 2 - np.log(wide) - 0.5 * math.log(2.0 * math.pi))
        return log_laplace_normal(z, mean, sd, scale)

    with np.errstate(divide="ignore"):
        prior = np.log(_noisy_prior(z, source, law, scale) if law.protects else source.predictive(z))
    return _mixed(states, log_g, prior)


def _noisy_prior(z: Floats, source: Family, law: Additive, scale: float) -> Floats:
    """Return g_0: the prior predictive, taken for constant between its nodes, with noise."""
    nodes = source.nodes()
    heights = np.diff(source.predictive_cdf(nodes)) / np.diff(nodes)
    cdf = _laplace_cdf if isinstance(law, LaplaceLaw) else special.ndtr
    out = np.empty(z.size)
    for start in range(0, z.size, 500):
        below = cdf((z[start : start + 500, None] - nodes) / scale)
        out[start : start + 500] = (below[:, :-1] - below[:, 1:]) @ heights
    return out


def _laplace_cdf(x: Floats) -> Floats:
    half = 0.5 * np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0.0, half, 1.0 - half))


def log_laplace_normal(z: Floats, mean: Floats, sd: Floats, scale: float) -> Floats:
    """Return log g(z | mean, sd) under Laplace noise, by scaled complementary error functions."""
    t, r = np.abs(z - mean) / sd, sd / scale
    gap = r - t
    far, near = special.erfcx(math.sqrt(0.5) * (r + t)), special.erfcx(math.sqrt(0.5) * np.abs(gap))
    inside = -0.5 * t * t + np.log(near + far) - math.log(4.0 * scale)
    correction = 0.5 * np.exp(-0.5 * gap * gap) * (far - near)
    beyond = r * (0.5 * r - t) + np.log1p(np.where(gap < 0.0, correction, 0.0)) - math.log(2.0 * scale)
    return np.asarray(np.where(gap >= 0.0, inside, beyond))


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
    edges, table, offset, rows = _cells(chains)
    masses = np.concatenate([cell_masses(state, source, edges[1:-1]) for state in states])
    with np.errstate(divide="ignore"):
        logs = np.log(masses @ table.T)[:, rows] + offset
    return np.asarray(logs)


def _of_near_outputs(chains: Chains, source: Family, states: list[Measures], law: SquareWaveLaw) -> Floats:
    """Return those of square-wave releases: (1 + (r - 1) A)/W, A the mass of the cells near the output."""
    edges, z = equal_edges(law.domain[0], law.cells), chains.observed.ravel().astype(np.int64)
    first, last = np.maximum(z - 2 * law.reach, 0), np.minimum(z, law.cells - 1)
    found = np.empty((len(states), z.size))
    for row, state in enumerate(states):
        below = np.concatenate([[0.0], np.cumsum(cell_masses(state, source, edges[1:-1])[0])])
        found[row] = np.log((1.0 + (law.odds - 1.0) * (below[last + 1] - below[first])) / law.total)
    return found


def _cells(chains: Chains) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Return edges, densities of different releases given each cell less an offset, and each record's row."""
    law, z = chains.mechanism, chains.observed
    assert law.domain  # of all but some with kernels on the line
    low, high = law.domain[0]
    n = len(z)
    if isinstance(law, WaveletLaw):
        heights, scale = haar_rows(law.levels), law.scale[0]
        edges = low + (high - low) * np.linspace(0.0, 1.0, len(heights) + 1)
        logs = np.empty((n, len(heights)))
        for cell, height in enumerate(heights):
            logs[:, cell] = -np.abs(z - height).sum(axis=1) / scale
        logs -= heights.shape[1] * math.log(2.0 * scale)
        top = logs.max(axis=1)
        return edges, np.exp(logs - top[:, None]), top, np.arange(n)
    if isinstance(law, BinomialLaw):
        trials, weight = law.trials, law.weight
        if trials > _MOST_TRIALS:
            raise Unavailable(f"there are more than {_MOST_TRIALS:,} trials")
        # what lies beyond the domain counts as at its ends, in cells of their own
        edges = np.concatenate([[-np.inf], np.linspace(low, high, _CELLS + 1), [np.inf]])
        share = np.concatenate([[0.0], (np.arange(_CELLS) + 0.5) / _CELLS, [1.0]])
        p = 0.5 + weight * (share - 0.5)
        k = np.arange(trials + 1)[:, None]
        choose = special.gammaln(trials + 1) - special.gammaln(k + 1) - special.gammaln(trials - k + 1)
        table = np.exp(choose + k * np.log(p) + (trials - k) * np.log1p(-p))
        return edges, table, np.zeros(n), z.ravel().astype(np.int64)
    scale = float(chains.constants["noise_scale"])
    far = np.abs(np.concatenate([z.ravel() - low, high - z.ravel()])).max()
    steepness = 1.0 / scale if isinstance(law, LaplaceLaw) else far / scale**2
    if steepness * (high - low) / (2.0 * _CELLS) > _CLOSE:
        raise Unavailable("the noise is too narrow for a sum over cells")
    edges = np.linspace(low, high, _CELLS + 1)
    apart = np.abs(z.ravel()[:, None] - 0.5 * (edges[1:] + edges[:-1])) / scale
    if isinstance(law, LaplaceLaw):
        logs = -apart - math.log(2.0 * scale)
    else:
        logs = -0.5 * apart**2 - 0.5 * math.log(2.0 * math.pi) - math.log(scale)
    top = logs.max(axis=1)
    return edges, np.exp(logs - top[:, None]), top, np.arange(n)


def _prior_mean(log_g: object, chains: Chains, source: Family | NormalInverseWishart) -> Floats:
    """Return log g_0 of each record: of the mean of g over draws from the base measure."""
    assert callable(log_g)
    atoms = source.draw(generator(chains, 0, _STREAM), _PRIOR)
    parts = [log_g(atoms[:, start : start + 50]) for start in range(0, _PRIOR, 50)]
    return np.asarray(special.logsumexp(np.concatenate(parts), axis=0) - math.log(_PRIOR))


def _mixed(states: list[Measures], log_g: object, prior: Floats) -> Floats:
    """Return log densities (states, n) of mixtures, by those of atoms and of the prior predictive."""
    assert callable(log_g)
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
