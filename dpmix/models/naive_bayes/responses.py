"""Naive Bayes given randomized responses of several columns, the class last (methods, section 13).

A record has a class c by p and levels l_k by p_k(. | c), and each column is answered on its own: the answer
is the record's own category with weight r, each other one with weight 1. Records that answered the same are
alike, so that the numbers N_z of distinct rows of answers z are sufficient. A sweep draws, given the
probabilities,

- the true classes of each row's N_z records: multinomial, with weights
  p_c (r if c = z_C else 1) prod_k (1 + (r - 1) p_k(z_k | c)), the levels summed out;
- the true levels within each class, of each feature by itself, given that class: of those who answered j
  Binomial with chance (r - 1) p_k(j | c)/(1 + (r - 1) p_k(j | c)) are of level j for being true, and the
  others have levels by p_k(. | c);

and then the probabilities, Dirichlet given these numbers. It costs distinct rows times classes, whatever n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.laws.every import expect
from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw
from dpmix.models.naive_bayes.section import of_several_columns
from dpmix.numerics.jit import njit
from dpmix.run.model_protocols import Parameter, ParametricChain, ParametricModel

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release

MOST_CELLS = 1_000_000
"""Cells of the joint of all columns, at most."""
_LEAST = 1e-300

Floats = NDArray[np.float64]


def parameters_of(
    places: Sequence[NDArray[Any]], columns: Sequence[str], own: tuple[str, ...] = ()
) -> tuple[tuple[Parameter, ...], dict[str, NDArray[Any]]]:
    """Return the parameters of naive Bayes with their coordinates: `places` of all columns, the class last.

    Each has the dimensions `own` before its others.
    """
    coords, found = {"class": places[-1]}, [Parameter("p", (*own, "class"))]
    for k, levels in enumerate(places[:-1]):
        coords[f"level_{k + 1}"] = levels
        dims = (*own, "class", f"level_{k + 1}")
        found.append(Parameter(f"p_feature_{k + 1}", dims, column=columns[k]))
    return tuple(found), coords


class BayesResponses(ParametricModel):
    """Naive Bayes given randomized responses.

    Parameters
    ----------
    release : Release
        Of kind ``randomized_response``, of two columns or more, the last of which is the class.
    prior : float
        Parameter of the symmetric Dirichlet priors.

    Raises
    ------
    DataError
        For one column, or more joint cells than `MOST_CELLS`.
    """

    kind = "naive_bayes"
    has_log_likelihood = True

    def __init__(self, release: Release, prior: float) -> None:
        law = expect(release.mechanism, RandomizedResponseLaw)
        sizes = law.sizes
        if len(sizes) < 2:
            raise DataError(f"model.kind: {of_several_columns(release.columns)}")
        if math.prod(sizes) > MOST_CELLS:
            raise DataError(
                f"model.kind: the joint of the {len(sizes)} columns has {math.prod(sizes):,} cells, more "
                f"than {MOST_CELLS:,}; choose fewer columns with release.columns, the class last"
            )
        self.levels, self.classes = sizes[:-1], sizes[-1]
        self.prior, self.n, self.odds = float(prior), release.n, law.odds
        rows, numbers = np.unique(release.values.astype(np.int64), axis=0, return_counts=True)
        self.rows, self.numbers = np.ascontiguousarray(rows), numbers.astype(np.int64)
        self.start = np.concatenate([[0], np.cumsum(self.levels)]).astype(np.int64)
        self.parameters, self.coords = parameters_of([*map(np.array, law.categories)], release.columns)
        self.constants = {"n": release.n, "prior": self.prior}

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> BayesChain:
        """Return a chain at its start."""
        return BayesChain(self, rng)

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw p and each p_k from their Dirichlet distributions."""
        found = {"p": rng.dirichlet(np.full(self.classes, self.prior), draws)}
        for k, size in enumerate(self.levels):
            found[f"p_feature_{k + 1}"] = rng.dirichlet(np.full(size, self.prior), (draws, self.classes))
        return found


class BayesChain(ParametricChain):
    """A Markov chain over the probabilities: of classes (C,), and of levels (C, sum of sizes)."""

    model: BayesResponses

    def __init__(self, model: BayesResponses, rng: Generator) -> None:
        first = model.prior_draws(rng, 1)
        levels = np.concatenate([first[f"p_feature_{k + 1}"][0] for k in range(len(model.levels))], axis=1)
        state = {"p": np.maximum(first["p"][0], _LEAST), "levels": np.maximum(levels, _LEAST)}
        super().__init__(model, rng, state)

    def sweep(self, count: int) -> None:
        """Draw true classes and levels, and the probabilities given them."""
        model, state = self.model, self.state
        _sweep_responses(
            self.rng, state["p"], state["levels"], model.rows, model.numbers, model.start, model.odds,
            model.prior, count,
        )  # fmt: skip

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write the probabilities."""
        model, state = self.model, self.state
        out["p"][row] = state["p"]
        for k in range(len(model.levels)):
            out[f"p_feature_{k + 1}"][row] = state["levels"][:, model.start[k] : model.start[k + 1]]
        total = sum(math.log(model.odds + size - 1.0) for size in (*model.levels, model.classes))
        out["log_likelihood"][row] = (
            log_likelihood(state["p"], state["levels"], model.rows, model.numbers, model.start, model.odds)
            - model.n * total
        )


@njit
def _fill_weights(p, levels, row, start, gain, weights):
    """Set `weights` (C,) of the true classes of who answered so, levels summed out; return their sum."""
    classes, features = len(p), len(start) - 1
    total = 0.0
    for c in range(classes):
        weight = p[c] * (1.0 + gain if c == row[features] else 1.0)
        for k in range(features):
            weight *= 1.0 + gain * levels[c, start[k] + row[k]]
        weights[c] = weight
        total += weight
    return total


@njit
def log_likelihood(p, levels, rows, numbers, start, odds):
    """Return the log likelihood but for the weights' totals."""
    weights = np.empty(len(p))
    found = 0.0
    for z in range(len(rows)):
        found += numbers[z] * math.log(_fill_weights(p, levels, rows[z], start, odds - 1.0, weights))
    return found


@njit
def _spread(rng, count, weights, total, out):
    """Add a multinomial draw of `count` over `weights`, which sum up to `total`, to `out`."""
    left = count
    rest = total
    last = len(weights) - 1
    for c in range(last):
        if left == 0:
            return
        share = min(max(weights[c] / rest, 0.0), 1.0) if rest > 0.0 else 1.0
        drawn = rng.binomial(left, share) if share > 0.0 else 0
        out[c] += drawn
        left -= drawn
        rest -= weights[c]
    out[last] += left


@njit
def _draw_dirichlet(rng, prior, counts, out):
    total = 0.0
    for c in range(len(out)):
        out[c] = max(rng.standard_gamma(prior + counts[c]), _LEAST)
        total += out[c]
    for c in range(len(out)):
        out[c] = max(out[c] / total, _LEAST)


@njit
def _sweep_responses(rng, p, levels, rows, numbers, start, odds, prior, sweeps):
    """Move p (C,) and levels (C, sum of sizes) by Gibbs steps, `sweeps` times."""
    classes, features, gain = len(p), len(start) - 1, odds - 1.0
    weights = np.empty(classes)
    sizes = np.empty(classes, dtype=np.int64)
    split = np.empty(classes, dtype=np.int64)
    answered = np.empty(levels.shape, dtype=np.int64)
    true = np.empty(levels.shape, dtype=np.int64)
    for _ in range(sweeps):
        sizes[:] = 0
        answered[:] = 0
        true[:] = 0
        for z in range(len(rows)):
            split[:] = 0
            total = _fill_weights(p, levels, rows[z], start, gain, weights)
            _spread(rng, numbers[z], weights, total, split)
            for c in range(classes):
                sizes[c] += split[c]
                for k in range(features):
                    answered[c, start[k] + rows[z, k]] += split[c]
        for c in range(classes):
            for k in range(features):
                low, high = start[k], start[k + 1]
                left = 0
                for j in range(low, high):
                    chance = gain * levels[c, j] / (1.0 + gain * levels[c, j])
                    own = rng.binomial(answered[c, j], chance) if answered[c, j] > 0 else 0
                    true[c, j] += own
                    left += answered[c, j] - own
                _spread(rng, left, levels[c, low:high], np.sum(levels[c, low:high]), true[c, low:high])
                _draw_dirichlet(rng, prior, true[c, low:high], levels[c, low:high])
        _draw_dirichlet(rng, prior, sizes, p)
