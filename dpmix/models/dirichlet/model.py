"""What every method for compositions shares: the release as numbers, and the form of the draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.laws.every import expect
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.models.dirichlet.latent_records import Scores, no_scores
from dpmix.models.dirichlet.section import DirichletModel
from dpmix.models.meaning_base import names_of_columns
from dpmix.run.model_protocols import Parameter, ParametricModel, safe_name

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]


class CompositionPart(NamedTuple):
    """One part of the records, and what was released of it.

    Parameters
    ----------
    size : int
        Number of records.
    released : ndarray, shape (d,)
        Mean of log max(x, a) over these, with Laplace noise.
    scale : float
        Of the noise.
    threshold : float
        a.
    """

    size: int
    released: Floats
    scale: float
    threshold: float


def parts_of(release: Release) -> list[CompositionPart]:
    """Return the one or two parts of a release of log_moments."""
    law = expect(release.mechanism, LogMomentsLaw)
    d, sizes = law.components, law.parts
    values = np.ascontiguousarray(release.values[:, 0], dtype=np.float64)
    if len(values) != d * len(sizes):
        raise DataError(
            f"the release has {len(values)} mean logarithms, and {len(sizes)} parts of {d} components take "
            f"{d * len(sizes)}"
        )
    return [
        CompositionPart(size, values[k * d : (k + 1) * d], law.scale[k], law.threshold)
        for k, size in enumerate(sizes)
    ]


def scores_of(release: Release, size: int) -> Scores:
    """Return the scores that the threshold was chosen by; none where the release tells none.

    They are of all records together: none, too, where the likelihood is of `size` of these alone.
    """
    choice = expect(release.mechanism, LogMomentsLaw).choice
    if choice is None or size < release.n:
        return no_scores()
    return Scores(np.log(choice.thresholds), np.array(choice.scores, dtype=np.float64), choice.epsilon / 2.0)


def settings_of(spec: RunSpec) -> DirichletModel:
    """Return the section `model` of a spec for compositions."""
    assert isinstance(spec.model, DirichletModel)  # the registry looks
    return spec.model


def used_parts(spec: RunSpec, release: Release) -> list[CompositionPart]:
    """Return the parts that the likelihood is of: all, or the second where the prior takes the first.

    Raises
    ------
    SpecError
        When the prior takes the first of two parts, and the release has one.
    """
    parts, prior = parts_of(release), settings_of(spec).prior
    if not isinstance(prior, str):
        return parts
    if len(parts) < 2:
        raise SpecError(
            f"model.prior: {prior} takes the first of two parts of a release, and this one has a single one; "
            "use a gamma {shape, rate}, or release with mechanism.split"
        )
    return parts[1:]


class Composition(ParametricModel):
    """A model of compositions: each draw is alpha, E[x | alpha] and a record drawn given alpha.

    Parameters
    ----------
    release : Release
    constants : mapping of str to number
        What the chains file keeps beside n, the threshold and the sizes of parts; where the release tells the
        scores that its threshold was chosen by, also `scores`, how many of them the draws are given.
    scores : Scores, optional
        Those that they are given.
    """

    kind = "dirichlet"

    def __init__(
        self,
        release: Release,
        constants: Mapping[str, float] | None = None,
        scores: Scores | None = None,
    ) -> None:
        law = expect(release.mechanism, LogMomentsLaw)
        self.components = law.components
        names = names_of_columns(law, law.components)
        self.predictive = [f"predictive_{safe_name(name, j)}" for j, name in enumerate(names)]
        self.parameters = (
            Parameter("alpha", ("component",)),
            Parameter("mean", ("component",), "shares", "E[x]"),
            *(
                Parameter(place, (), "draw", "predictive", name)
                for place, name in zip(self.predictive, names, strict=True)
            ),
        )
        self.coords = {"component": np.array(names)}
        self.constants = {
            "n": release.n,
            "threshold": law.threshold,
            **{f"n{k + 1}": size for k, size in enumerate(law.parts)},
            **({} if law.choice is None else {"scores": 0 if scores is None else len(scores.noisy)}),
            **(constants or {}),
        }

    def write(self, row: int, out: Mapping[str, Floats], alpha: Floats, rng: Generator) -> None:
        """Write alpha (d,), what follows from it, and a record drawn given it, as one draw."""
        saved = np.stack([alpha, alpha / alpha.sum(), draw_shares(rng, alpha, 1)[0]])
        self.write_draws(slice(row, row + 1), out, saved[None])

    def write_draws(self, rows: slice, out: Mapping[str, Floats], saved: Floats) -> None:
        """Write saved (draws, 3, d), alpha, E[x | alpha] and a record of each draw, to places `rows`."""
        out["alpha"][rows] = saved[:, 0]
        out["mean"][rows] = saved[:, 1]
        for place, shares in zip(self.predictive, saved[:, 2].T, strict=True):
            out[place][rows] = shares


def draw_shares(rng: Generator, alpha: Floats, size: int) -> Floats:
    """Draw compositions (size, d) given alpha; parts too small for a double are zero.

    A gamma variate of shape alpha is one of shape alpha + 1 times U^(1 / alpha), whose logarithm is at hand
    where the variate itself is not.
    """
    logs = np.log(rng.standard_gamma(alpha + 1.0, (size, len(alpha))))
    logs -= rng.standard_exponential((size, len(alpha))) / alpha
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
