"""Joint laws of parameters and confidential records, drawn here by NumPy alone, and what of them is ranked.

A law draws parameters from the prior of a spec's model, and records given these; `Law.ranked` takes what is
ranked from the draws of a chain, under the same names as `Law.draw` returns the truth.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats

from tests.oracles.joint import Model, draw_latent, draw_state

__all__ = [
    "Composition",
    "Discrete",
    "Law",
    "Median",
    "Mixture",
    "Multinomial",
    "NaiveBayes",
    "Regression",
    "Truth",
]

Floats = NDArray[np.float64]
Truth = dict[str, float]


class Law(Protocol):
    """A joint law."""

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw the parameters, of which the ranked functions are returned, and n records (n, columns)."""

    def ranked(self, draws: Mapping[str, Any], names: list[str]) -> dict[str, Floats]:
        """Return the functions of these names of a chain's draws, (draws,) each."""


class Entries:
    """Laws of which entries of parameters are ranked: ``name[i]`` or ``name[i,j]``."""

    def ranked(self, draws: Mapping[str, Any], names: list[str]) -> dict[str, Floats]:
        """Return entries of the arrays of these names."""
        found = {}
        for name in names:
            title, _, index = name.rstrip("]").partition("[")
            place = tuple(int(i) for i in index.split(",")) if index else ()
            found[name] = np.asarray(draws[title][(slice(None), *place)], dtype=np.float64)
        return found


def entries(**parameters: Any) -> Truth:
    """Return all entries of arrays of parameters by name."""
    found = {}
    for name, values in parameters.items():
        for place, value in np.ndenumerate(np.asarray(values, dtype=np.float64)):
            found[f"{name}[{','.join(map(str, place))}]" if place else name] = float(value)
    return found


@dataclass(frozen=True)
class Mixture:
    """A mixture: only what no labelling of the clusters changes is ranked.

    The random measure stands by its density at `points` (its distribution function, for a truncated base),
    given weights and parameters of the clusters; what is left of its mass adds the same to truth and draws
    in distribution, and is left out.
    """

    model: Model
    points: tuple[float, ...] | tuple[tuple[float, ...], ...]

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw partition, parameters, weights and records."""
        model = self.model
        labels, theta, alpha = draw_state(rng, model, n)
        records = model.law.value(draw_latent(rng, model, labels, theta, 1)[:, 0])
        counts = np.bincount(labels)
        rest = alpha + len(counts) * model.discount
        shares = rng.standard_gamma(np.append(counts - model.discount, rest))
        truth = self._of(theta, (shares / shares.sum())[:-1], labels)
        if isinstance(model.alpha, tuple):
            truth["concentration"] = float(alpha)
        return truth, records.reshape(n, -1)

    def _of(self, theta: Floats, weights: Floats, labels: Any) -> Truth:
        law = self.model.law
        found = {"clusters": float(theta.shape[1])}
        of_all = law.unpack(theta) if self.model.kernel == "multivariate" else theta
        for point in self.points:
            found[f"measure at {point}"] = float(weights @ law.function(np.array(point), of_all))
        if labels is not None:
            first = theta[:, int(labels[0])]
            found["records with the first"] = float(np.sum(labels == labels[0]))
            values = law.summaries(law.unpack(first) if self.model.kernel == "multivariate" else first)
            for i, value in enumerate(np.asarray(values)):
                found[f"parameter {i + 1} of the first"] = float(value)
        return found

    def ranked(self, draws: Mapping[str, Any], names: list[str]) -> dict[str, Floats]:
        """Return the same functions of draws as `dpmix.samplers.chain.Chain` gives them."""
        starts, labels = draws["first"], draws.get("allocations")
        rows = []
        for t in range(len(starts) - 1):
            own = slice(int(starts[t]), int(starts[t + 1]))
            row = self._of(
                np.asarray(draws["theta"][:, own]),
                np.asarray(draws["weights"][own]),
                None if labels is None else labels[t],
            )
            row["concentration"] = float(draws["concentration"][t])
            rows.append(row)
        return {name: np.array([row[name] for row in rows]) for name in names if name in rows[0]}


@dataclass(frozen=True)
class LearnedMixture(Mixture):
    """A mixture whose base measure's location, scale and lambda are drawn; `model` has them in the middle.

    spread: sds of the locations; shape: of the gamma laws of b, or of the diagonal of Psi. Lambda is gamma
    of shape 2, under which 1 / lambda has the mean that it has under the model's.
    """

    spread: tuple[float, ...] = (1.0,)
    shape: float = 0.5

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw the base measure, and all else given it."""
        mu0, lam, a, b = self.model.base
        several = self.model.kernel == "multivariate"
        location = np.atleast_1d(mu0) + np.array(self.spread) * rng.standard_normal(len(self.spread))
        mean = np.diagonal(np.array(b)) if several else np.array([b])
        scale = rng.gamma(self.shape, mean / self.shape)
        lam = float(rng.gamma(2.0, lam))
        base = (tuple(location), lam, a, np.diag(scale)) if several else (location[0], lam, a, scale[0])
        return self._given(rng, n, base, location=location[-1], scale=scale[-1], weight=lam)

    def _given(self, rng: Generator, n: int, base: Any, **drawn: float) -> tuple[Truth, Floats]:
        truth, records = Mixture(dataclasses.replace(self.model, base=base), self.points).draw(rng, n)
        return truth | {name: float(value) for name, value in drawn.items()}, records

    def ranked(self, draws: Mapping[str, Any], names: list[str]) -> dict[str, Floats]:
        """Return the functions of draws, with location and scale of the last column, and lambda."""
        found = super().ranked(draws, names)
        if "base" not in draws:  # of a fit that learns none
            return found
        base = np.asarray(draws["base"])[:, :, -1]
        return found | dict(zip(("location", "scale", "weight"), base.T, strict=False))


@dataclass(frozen=True)
class LearnedBetas(LearnedMixture):
    """A mixture of betas whose place (its logit has the sd `spread`), rate and lambda are drawn, too."""

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw place, rate and lambda, and all else given them."""
        a, mean, b, _, *domain = self.model.base
        place = self.spread[0] * float(rng.standard_normal())
        rate = float(rng.gamma(self.shape, mean / self.shape))
        lam = float(rng.gamma(2.0, 0.16))
        base = (a, rate, b, rate, *domain, lam, place)
        return self._given(rng, n, base, location=place, scale=rate, weight=lam)


@dataclass(frozen=True)
class NaiveBayes(Entries):
    """Classes and features of naive Bayes, with symmetric Dirichlet priors."""

    levels: tuple[int, ...]
    classes: int
    prior: float

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw probabilities and records, the class last."""
        p = rng.dirichlet(np.full(self.classes, self.prior))
        levels = [rng.dirichlet(np.full(count, self.prior), self.classes) for count in self.levels]
        own = rng.choice(self.classes, n, p=p)
        columns = [[rng.choice(len(q[c]), p=q[c]) for c in own] for q in levels]
        named = {f"p_feature_{k + 1}": q[:, :-1] for k, q in enumerate(levels)}
        return entries(p=p[:-1], **named), np.column_stack([*columns, own]).astype(np.float64)


@dataclass(frozen=True)
class Regression(Entries):
    """Linear regression on p predictors; known parameters are given, others have their prior.

    With x_cov ~ IW(nu, scale I) and x_mean ~ N(0, x_cov / lam), where these are not known. Where learned, the
    second number of sigma2_prior is the mean of its scale, of a gamma law of shape 1/2, and scale that of
    each predictor's; where clamped, the line is in predictors clamped to [-2, 2]; where cauchy, so are the
    coefficients, of scale prior_sd.
    """

    p: int
    prior_mean: float
    prior_sd: float
    sigma2: float | None
    sigma2_prior: tuple[float, float]
    x_known: bool
    nu: float
    _: dataclasses.KW_ONLY
    truncated: bool = False
    scale: float = 1.0
    lam: float = 1.0
    learned: bool = False
    clamped: bool = False
    cauchy: bool = False

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw parameters and records, the response last."""
        p = self.p
        drawn = rng.standard_cauchy(p + 1) if self.cauchy else rng.standard_normal(p + 1)
        rescaled = self.prior_mean + self.prior_sd * drawn
        # bounds [-2, 2] of the predictors and [-3, 3] of the response (cases)
        beta = np.concatenate([3.0 * rescaled[:1], 1.5 * rescaled[1:]])
        a, b = self.sigma2_prior
        b *= 2.0 * rng.standard_gamma(0.5) if self.learned else 1.0
        sigma2 = b / rng.standard_gamma(a) if self.sigma2 is None else self.sigma2
        cov, mean = np.eye(p), np.zeros(p)
        if not self.x_known:
            scales = self.scale * (2.0 * rng.standard_gamma(0.5, p) if self.learned else np.ones(p))
            cov = np.reshape(stats.invwishart.rvs(self.nu, np.diag(scales), random_state=rng), (p, p))
            mean = rng.multivariate_normal(np.zeros(p), cov / self.lam)
        x = rng.multivariate_normal(mean, cov, n)
        at, sd = beta[0] + (np.clip(x, -2.0, 2.0) if self.clamped else x) @ beta[1:], math.sqrt(sigma2)
        y = at + sd * rng.standard_normal(n)
        if self.truncated:
            y = stats.truncnorm.rvs((-3.0 - at) / sd, (3.0 - at) / sd, loc=at, scale=sd, random_state=rng)
        truth = entries(beta=beta)
        if self.sigma2 is None:
            truth["sigma2"] = float(sigma2)
        if not self.x_known:
            truth |= entries(x_mean=mean, x_cov=cov)
            truth = {name: value for name, value in truth.items() if name != "x_cov[1,0]"}
        return truth, np.column_stack([x, y])


@dataclass(frozen=True)
class Composition(Entries):
    """Compositions of d shares, alpha_j ~ Gamma(shape, rate) independently."""

    d: int
    shape: float
    rate: float

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw alpha and compositions."""
        alpha = rng.standard_gamma(self.shape, self.d) / self.rate
        records = rng.dirichlet(alpha, n)
        return entries(alpha=alpha, mean=(alpha / alpha.sum())[:-1]), records


@dataclass(frozen=True)
class Multinomial(Entries):
    """Counts of categories; the records are the codes."""

    prior: tuple[float, ...]

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw probabilities and codes."""
        p = rng.dirichlet(self.prior)
        codes = rng.choice(len(p), n, p=p)
        counts = np.bincount(codes, minlength=len(p))
        return entries(p=p[:-1], count=counts[:-1]), codes[:, None].astype(np.float64)


@dataclass(frozen=True)
class Discrete(Entries):
    """A Pitman-Yor process on [0, 1], of uniform base measure: tails and mean."""

    concentration: float
    discount: float

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw the distribution by its first 2,000 sticks, and records from it."""
        k = np.arange(1, 2001)
        sticks = rng.beta(1.0 - self.discount, self.concentration + k * self.discount)
        shares = sticks * np.cumprod(np.append(1.0, 1.0 - sticks[:-1]))
        atoms = rng.random(len(k))
        records = rng.choice(atoms, n, p=shares / shares.sum())
        tails = [float(shares[atoms > t].sum()) for t in (0.25, 0.5, 0.75)]
        return entries(tail=tails, mean=float(shares @ atoms)), records[:, None]


@dataclass(frozen=True)
class Median(Entries):
    """The model of configs/models/private_median.py."""

    epsilon: float

    def draw(self, rng: Generator, n: int) -> tuple[Truth, Floats]:
        """Draw the mean and the records."""
        mean = rng.normal(10.0, 3.0)
        return {"mean": float(mean)}, rng.normal(mean, 3.0, (n, 1))

    def release(self, rng: Generator, records: Floats) -> Floats:
        """Choose a candidate by the exponential mechanism."""
        below = np.array([(records < r).sum() for r in range(21)])
        score = -0.5 * self.epsilon * np.abs(below - len(records) / 2)
        weights = np.exp(score - score.max())
        return np.array([[float(rng.choice(21, p=weights / weights.sum()))]])
