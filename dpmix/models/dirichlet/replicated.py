"""A few pseudo-records that stand for all: an approximation of data augmentation (replicated).

The likelihood prod_i f(x_i | alpha) of n records is replaced by prod_k f(x_k | alpha)^(n / b) of b of them,
and the mean that was released by theirs (Guo, Barrientos and Pena, section 3.3.2). A sweep costs b record
updates for n. Each is offered a draw from f(. | alpha), which is accepted by the ratio of the densities of
the release times (f(x*) / f(x))^(n / b - 1).

That is the law which the chain has, exactly, and it is far from the posterior unless b is close to n:

- The integral of f(x | alpha)^(n / b) over x grows with the size of alpha, with its power
  (n / b - 1)(d - 1) / 2, and there are b of them: alpha is drawn to where compositions are alike, far beyond
  what the release says, until the prior holds it, unless the release is nearly without noise.
- Where some alpha_j <= 1 - b / n, the integral is infinite, and the chain drifts off.
- Of the offers, a share of about (b / n)^((d - 1) / 2) is accepted, so that a short chain shows neither.

Scores that the threshold was chosen by are left out, and it is taken for fixed. `summarize` warns where the
draws have left the release. `data_augmentation` has none of this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.models.dirichlet.alpha import AlphaPrior, matched, prior_of, slice_alpha, start_alpha, whiten
from dpmix.models.dirichlet.augmentation import REPEATS, Compositions, known_of
from dpmix.models.dirichlet.latent_records import draw_logs, make_shapes, no_scores, set_shapes
from dpmix.models.dirichlet.model import Composition, CompositionPart, used_parts
from dpmix.numerics.jit import njit
from dpmix.run.model_protocols import ParametricChain

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]


def build(spec: RunSpec, release: Release) -> Replicated:
    """Return the model of a spec given a release; see `dpmix.api.task.build`."""
    return Replicated(
        release, used_parts(spec, release), prior_of(spec, release), spec.sampler.pseudo_records
    )


class Replicated(Composition):
    """Compositions given noisy log moments, with b pseudo-records for the n_l of each part l.

    Parameters
    ----------
    release : Release
    parts : list of Part
        Those that the likelihood is of.
    prior : AlphaPrior
    count : int
        b; parts of fewer records have these.
    """

    def __init__(self, release: Release, parts: list[CompositionPart], prior: AlphaPrior, count: int) -> None:
        super().__init__(release, {"pseudo_records": count})
        self.parts, self.prior = parts, prior
        held = [part._replace(size=min(part.size, count)) for part in parts]
        self.law = known_of(held, prior, no_scores())
        self.powers = np.array([part.size / few.size for part, few in zip(parts, held, strict=True)])

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> ReplicatedChain:
        """Return a chain at a start drawn about the release."""
        return ReplicatedChain(self, rng)


class ReplicatedChain(ParametricChain):
    """A chain over alpha and the pseudo-records."""

    model: Replicated

    def __init__(self, model: Replicated, rng: Generator) -> None:
        law = model.law
        d, count = law.released.shape[1], int(law.starts[-1])
        shapes, records = make_shapes(d), np.empty((d, count))
        shapes.alpha[:], means = start_alpha(rng, model.parts)
        set_shapes(shapes)
        draw_logs(rng, shapes, records, count)
        for part, mean in enumerate(means):
            own = records[:, law.starts[part] : law.starts[part + 1]]
            if own.shape[1] > 1:
                own[:] = matched(own, mean, law.floor)
        self.shapes, self.records, self.root = shapes, records, np.empty((d, d))
        self.centre = np.append(np.log(shapes.alpha), 0.0)
        whiten(shapes.alpha, sum(part.size for part in model.parts), model.prior, self.root)
        state = {"alpha": shapes.alpha, "records": records, "root": self.root, "centre": self.centre}
        super().__init__(model, rng, state)

    def sweep(self, count: int) -> None:
        """Sweep over pseudo-records and alpha; the slice sampler learns in burn-in alone."""
        known, state = (
            (self.model.law, self.model.powers),
            (self.shapes, self.records, self.root, self.centre),
        )
        run_replicated(*known, self.rng, *state, self.moves, self.burning_in, count)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write alpha, and draw a record."""
        self.model.write(row, out, self.shapes.alpha, self.rng)


@njit
def _update(law: Compositions, part, power, rng, shapes, records, offers, moves):
    """Offer each pseudo-record of a part a new one."""
    d = len(records)
    first, last = law.starts[part], law.starts[part + 1]
    draw_logs(rng, shapes, offers, last - first)
    sums = np.zeros(d)
    for i in range(first, last):
        for j in range(d):
            sums[j] += max(records[j, i], law.floor)
    for i in range(first, last):
        now, found, gain = 0.0, 0.0, 0.0
        for j in range(d):
            new, old = offers[j, i - first], records[j, i]
            now += abs(law.released[part, j] - sums[j])
            found += abs(law.released[part, j] - (sums[j] - max(old, law.floor) + max(new, law.floor)))
            gain += (power - 1.0) * (shapes.alpha[j] - 1.0) * (new - old)
        gain += law.rate[part] * (now - found)
        moves[1] += 1.0
        if gain >= 0.0 or rng.random() < math.exp(gain):
            moves[0] += 1.0
            for j in range(d):
                sums[j] += max(offers[j, i - first], law.floor) - max(records[j, i], law.floor)
                records[j, i] = offers[j, i - first]


@njit
def run_replicated(law, powers, rng, shapes, records, root, centre, moves, learning, count):
    """Do `count` sweeps."""
    d, held = records.shape
    offers, totals, middle = np.empty((d, held)), np.empty(d), np.empty(d)
    n = 0.0
    for part in range(len(powers)):
        n += powers[part] * (law.starts[part + 1] - law.starts[part])
    for _ in range(count):
        set_shapes(shapes)
        totals[:] = 0.0
        for part in range(len(powers)):
            _update(law, part, powers[part], rng, shapes, records, offers, moves)
            for i in range(law.starts[part], law.starts[part + 1]):
                for j in range(d):
                    totals[j] += powers[part] * records[j, i]
        slice_alpha(rng, shapes.alpha, n, totals, law.prior, root, REPEATS)
        if learning:
            centre[d] += 1.0
            for j in range(d):
                centre[j] += (math.log(shapes.alpha[j]) - centre[j]) / min(centre[d] + 10.0, 400.0)
                middle[j] = math.exp(centre[j])
            whiten(middle, n, law.prior, root)
