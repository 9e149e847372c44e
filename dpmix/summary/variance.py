"""Where the uncertainty of a quantity comes from: sampling, privacy noise, the prior.

With V the variance of the posterior given the release, V0 that of the prior, and E V_clean the variance that
the posterior would have given records without noise, expected over the posterior,

    prior = min(1, V / V0),  sampling = (1 - prior) min(1, E V_clean / V),  privacy = the rest.

E V_clean is from second runs on replicated noise-free releases: for a few saved states n records are drawn
from the components that have records, and the same prior is fitted to them as they are, the concentration
held at the state's. Of several columns each is fitted by itself. Of more than 20,000 records so many are
drawn, and the variance, which falls as 1/n, is scaled. A release without noise is its own.

Given records the median hardly varies under most states, and much under those that have few records about
it: states are chosen the more often the further the quantiles apart that bound the median of a sample, and
count the less for it.

The density's variances are means over the fitted density of the variances at its points.

The second runs are short ones of a Gibbs sampler, several at once. Given n records y of a mixture,
P ~ PY(d, alpha, G0), turns are taken (methods, section 4, "Reported"):

    P given allocations and parameters: (w_1, .., w_k, w_0) ~ Dirichlet(n_1 - d, .., n_k - d, alpha + k d),
        w_0 spread over the free places of H by stick-breaking, their parameters from G0;
    allocations given P;
    location and scale of the base measure given the components, where they are learned;
    parameters given their records: conjugate draws of normals, else Metropolis steps at the scale that the
        records of a component give.

Records that lie close together, in cells between many of their quantiles and many even steps, are allocated
alike: a sweep costs the same for any n. What distinguishes the records of a cell enters through their mean
and variance. Everything is in the column's own units; nothing depends on these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from dpmix.kernels.beta.family import BetaGamma, LearnedBeta
from dpmix.kernels.layout import Learned, weights_of
from dpmix.kernels.normal.family import LearnedNormal, NormalInverseGamma, TruncatedNormalInverseGamma
from dpmix.models.meaning_base import Unavailable, meaning_of
from dpmix.numerics.equal_cells import spread
from dpmix.numerics.in_words import all_of
from dpmix.results.nodes import ABSENT, Each, ResultSection, Table, TableColumn, by_name
from dpmix.summary.check.mixture_replicates import draw_records
from dpmix.summary.check.rank_comparison import places
from dpmix.summary.density import is_resolved, of_column
from dpmix.summary.fitted_columns import FittedColumn, columns_of
from dpmix.summary.quantities import Wanted, quantiles
from dpmix.summary.random_measures import Measures, draw_measures, join, settle_rest, states_at

if TYPE_CHECKING:
    from dpmix.kernels.layout import Family, Floats
    from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
    from dpmix.run.chains_reader import Chains, NamedChains

_QUANTILES, _STEPS = 120, 80  # cells
_SPARE = 10  # places beyond those that the start takes
_MOST = 30  # places
_BURN_IN, _SAVED = 40, 160
_TRIES = 3  # Metropolis steps a sweep
_NEGLIGIBLE = 1e-10


def clean_posteriors(
    starts: Sequence[Measures],
    concentration: Floats,
    discount: float,
    family: Family,
    records: int,
    rng: Generator,
) -> tuple[Measures, int]:
    """Draw `records` records from each measure, and run its posterior given them.

    Parameters
    ----------
    starts : sequence of Measures
        Single measures of one column.
    concentration : float64 array (replicates,)
        Held at these values.
    discount : float
    family : Family
        Kernel on the line with its base measure.
    records : int
    rng : Generator

    Returns
    -------
    Measures
        Draws of P, replicate after replicate.
    int
        How many of each.
    """
    kernel = _kernel(family)
    samples = [kernel.draw_records(start, records, rng) for start in starts]
    cells = [_cells(sample) for sample in samples]
    most = max(counts.size for counts, _ in cells)
    counts = np.stack([np.pad(c, (0, most - c.size)) for c, _ in cells])
    values = np.stack([np.pad(v, ((0, 0), (0, most - v.shape[1])), mode="edge") for _, v in cells], axis=1)
    expected = max(int((start.weights * records >= 1.0).sum()) for start in starts)  # atoms with a record
    places = min(_MOST, expected + _SPARE)
    chain = _Chain(kernel, family, counts, values, concentration, discount, rng)
    chain.start(starts, places)
    for _ in range(_BURN_IN):
        chain.sweep()
    saved = []
    for _ in range(_SAVED):
        chain.sweep()
        saved.append((chain.weights.copy(), chain.atoms.copy(), chain.rest.copy(), kernel.base))
    weights = np.stack([part[0] for part in saved], axis=1).reshape(-1, places)
    atoms = np.stack([part[1] for part in saved], axis=2).reshape(2, -1, places)
    rest = np.stack([part[2] for part in saved], axis=1).ravel()
    there = weights > _NEGLIGIBLE
    drawn = Measures(there.sum(axis=1), weights[there], atoms[:, there], rest)
    if isinstance(family, Learned):  # the draw's own base measure says where what is left lies
        bases = [part[3] for part in saved if part[3] is not None]
        joined = np.stack(bases, axis=1)
        drawn = settle_rest(drawn, family, joined.reshape(-1, *joined.shape[2:]))
    return drawn, _SAVED


def _cells(sample: Floats) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """Return numbers of records in cells (cells,), and means of coordinate and statistics (3, cells).

    Rows are of the kernel's statistics, the first two, and of what orders records, the last.
    """
    order = np.argsort(sample[2], kind="stable")
    sample = sample[:, order]
    n = order.size
    first = (np.arange(_QUANTILES) * n // _QUANTILES) if n > _QUANTILES else np.arange(n)
    even = np.linspace(sample[2, 0], sample[2, -1], _STEPS + 1)[:-1]
    starts = np.unique(np.concatenate([first, np.searchsorted(sample[2], even)]))
    counts = np.diff(np.append(starts, n))
    return counts, np.add.reduceat(sample, starts, axis=1) / counts


class _Kernel(ABC):
    """What a run asks of a kernel: atoms (2, replicates, places), statistics (3, replicates, cells).

    `base` (replicates, 2 or 3, 1) are location and scale of the base measures, or lambda too, where these are
    learned.
    """

    base: Floats | None = None

    @abstractmethod
    def draw_records(self, start: Measures, n: int, rng: Generator) -> Floats:
        """Return two statistics of each record, and a coordinate that orders them, shape (3, n)."""

    @abstractmethod
    def log_density(self, atoms: Floats, values: Floats) -> Floats:
        """Return mean log densities of the records of cells, up to constants, (replicates, places, cells)."""

    @abstractmethod
    def move(self, atoms: Floats, sizes: Floats, sums: Floats, rng: Generator) -> Floats:
        """Return new atoms given numbers of their records, and the sums of both statistics (2, ..)."""


class _Normal(_Kernel):
    """Normal kernels: statistics (y - c) / s and its square, with c and s of all replicates alike.

    Atoms stay in the data's units; what is computed is scaled.
    """

    def __init__(self, family: NormalInverseGamma | TruncatedNormalInverseGamma | LearnedNormal) -> None:
        self.family = family
        self.centre = self.scale = 0.0

    def draw_records(self, start: Measures, n: int, rng: Generator) -> Floats:
        y = draw_records(start, self.family, n, rng, shuffled=False)
        if not self.scale:  # of the first replicate: any will do
            self.centre, self.scale = float(np.median(y)), float(y.std()) or 1.0
        u = (y - self.centre) / self.scale
        return np.stack([u, u * u, u])

    def _scaled(self, atoms: Floats) -> tuple[Floats, Floats]:
        return (atoms[0] - self.centre) / self.scale, np.maximum(atoms[1] / self.scale, 1e-150)

    def log_density(self, atoms: Floats, values: Floats) -> Floats:
        mean, sd = self._scaled(atoms)
        first, second = values[0][:, None], values[1][:, None]
        mean, sd = mean[..., None], sd[..., None]
        spread = np.maximum(second - first**2, 0.0)
        return np.asarray(-0.5 * ((first - mean) ** 2 + spread) / sd**2 - np.log(sd))

    def move(self, atoms: Floats, sizes: Floats, sums: Floats, rng: Generator) -> Floats:
        n = np.maximum(sizes, 1.0)
        mean = sums[0] / n
        squares = np.maximum(sums[1] - sizes * mean**2, 0.0)  # about the mean
        if not isinstance(self.family, TruncatedNormalInverseGamma):
            return self._conjugate(sizes, mean, squares, rng)
        return self._metropolis(atoms, sizes, mean, squares, rng)

    def _conjugate(self, n: Floats, mean: Floats, squares: Floats, rng: Generator) -> Floats:
        g = self.family
        location, scale = (g.mu0, g.b) if self.base is None else self.base[:, :2].swapaxes(0, 1)
        lam = g.lam if self.base is None else weights_of(self.base, g.lam)
        mu0, b = (location - self.centre) / self.scale, scale / self.scale**2
        weight = lam + n
        rate = b + 0.5 * squares + 0.5 * lam * n * (mean - mu0) ** 2 / weight
        variance = rate / rng.standard_gamma(g.a + 0.5 * n)
        found = (lam * mu0 + n * mean) / weight + np.sqrt(variance / weight) * rng.standard_normal(n.shape)
        return np.stack([self.centre + self.scale * found, self.scale * np.sqrt(variance)])

    def _metropolis(self, atoms: Floats, n: Floats, mean: Floats, squares: Floats, rng: Generator) -> Floats:
        def level(trial: Floats) -> Floats:
            m, sd = self._scaled(trial)
            fit = -n * np.log(sd) - 0.5 * (squares + n * (m - mean) ** 2) / sd**2
            parameters = {"mean": trial[0].ravel(), "variance": trial[1].ravel() ** 2}
            prior = self.family.centred_log_density(parameters).reshape(n.shape)
            return np.asarray(fit + prior + 2.0 * np.log(trial[1]))  # of the log of the variance

        def step(now: Floats) -> Floats:
            by = rng.standard_normal((2, *n.shape))
            centre = now[0] + 1.7 * by[0] * now[1] / np.sqrt(n + self.family.lam)
            return np.stack([centre, now[1] * np.exp(1.2 * by[1] / np.sqrt(n + 2.0 * self.family.a))])

        # the step of the mean has the present sd, of which the way back has another
        def ahead(now: Floats, trial: Floats) -> Floats:
            wide = 1.7 / np.sqrt(n + self.family.lam)
            gap = (trial[0] - now[0]) / wide
            forth, back = (gap / now[1]) ** 2, (gap / trial[1]) ** 2
            return np.asarray(0.5 * (forth - back) - np.log(trial[1] / now[1]))

        return _moved(atoms, level, step, ahead, rng)


class _Beta(_Kernel):
    """Beta kernels: statistics log u and log(1 - u)."""

    def __init__(self, family: BetaGamma | LearnedBeta) -> None:
        self.family = family

    def draw_records(self, start: Measures, n: int, rng: Generator) -> Floats:
        family = self.family.for_distance()  # logits, which do not round to the ends
        logit = draw_records(start, family, n, rng, shuffled=False)
        return np.stack([-np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit), logit])

    def log_density(self, atoms: Floats, values: Floats) -> Floats:
        a, b = atoms[0][..., None], atoms[1][..., None]
        return np.asarray(a * values[0][:, None] + b * values[1][:, None] - special.betaln(a, b))

    def move(self, atoms: Floats, sizes: Floats, sums: Floats, rng: Generator) -> Floats:
        def level(trial: Floats) -> Floats:
            a, b = trial
            fit = a * sums[0] + b * sums[1] - sizes * special.betaln(a, b)
            if isinstance(self.family, LearnedBeta):
                assert self.base is not None  # drawn before
                return np.asarray(fit + self.family.log_density(trial, self.base))
            prior = self.family.centred_log_density({"a": a.ravel(), "b": b.ravel()}).reshape(a.shape)
            return np.asarray(fit + prior + np.log(a) + np.log(b))

        # steps by what the records alone tell of a + b and a/(a + b), so that both ways are as likely
        low, high = np.exp(sums / np.maximum(sizes, 1.0))
        whole = np.clip(0.5 / np.maximum(1.0 - low - high, 1e-12), 0.5, 1e9)
        share = np.clip(low / (low + high), 1e-6, 1.0 - 1e-6)
        size_step = 1.2 / np.sqrt(0.5 * sizes + 1.0)
        tilt_step = 0.9 / np.sqrt(sizes * whole * share * (1.0 - share) + 1.0)

        def step(now: Floats) -> Floats:
            size, tilt = rng.standard_normal((2, *sizes.shape)) * np.stack([size_step, tilt_step])
            return np.asarray(np.maximum(now * np.exp(np.stack([size + tilt, size - tilt])), 1e-300))

        return _moved(atoms, level, step, lambda now, trial: np.zeros(sizes.shape), rng)


def _moved(
    atoms: Floats,
    level: Callable[[Floats], Floats],
    step: Callable[[Floats], Floats],
    ahead: Callable[[Floats, Floats], Floats],
    rng: Generator,
) -> Floats:
    """Return atoms after some Metropolis steps, each of its own."""
    now, here = atoms, level(atoms)
    for _ in range(_TRIES):
        trial = step(now)
        with np.errstate(all="ignore"):
            there = level(trial)
            taken = np.log(rng.random(here.shape)) < there - here + ahead(now, trial)
        now, here = np.where(taken, trial, now), np.where(taken, there, here)
    return np.asarray(now)


def runs_for(family: Family) -> bool:
    """Whether there are runs for a kernel: for those that ship."""
    kernels = BetaGamma | LearnedBeta | NormalInverseGamma | TruncatedNormalInverseGamma | LearnedNormal
    return isinstance(family, kernels)


def _kernel(family: Family) -> _Kernel:
    if isinstance(family, BetaGamma | LearnedBeta):
        return _Beta(family)
    assert isinstance(family, NormalInverseGamma | TruncatedNormalInverseGamma | LearnedNormal)  # no other
    return _Normal(family)


def _base_of_betas(
    family: LearnedBeta, atoms: Floats, taken: NDArray[np.bool_], base: Floats | None, rng: Generator
) -> Floats:
    """Return draws of place and rate (replicates, 2, 1) given the atoms that are taken, from `base`.

    And of lambda, shape (replicates, 3, 1), where it is learned.
    """
    total = np.where(taken, atoms.sum(axis=0), 0.0)
    log_a, log_b = np.log(atoms)
    whole = total.sum(axis=1)
    shape = family.shape + family.shapes * taken.sum(axis=1)
    rate = rng.standard_gamma(shape) / (family.shape / family.rate + whole)
    logit = np.where(taken, log_a - log_b, 0.0)
    left, right = -np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)

    def level(trial: Floats) -> Floats:
        place, lam = trial[0], np.exp(trial[1])
        one, other = family.around(place[:, None], total, lam[:, None])
        each = one * left + other * right - special.betaln(one, other)
        prior = -0.5 * ((place - family.centre) / family.spread) ** 2
        if family.weight:
            prior += family.weight * trial[1] - (family.weight - 1.0) / family.lam * lam
        return np.asarray(np.where(taken, each, 0.0).sum(axis=1) + prior)

    if base is None:
        place, lam = (total * logit).sum(axis=1) / np.maximum(whole, 1e-300), np.full(whole.size, family.lam)
    else:
        place, lam = base[:, 0, 0], weights_of(base, family.lam)[:, 0]
    held = np.sqrt(1.0 / family.spread**2 + lam * (total * np.exp(left + right)).sum(axis=1))
    start, still = np.stack([place, np.log(lam)]), np.zeros(whole.size)

    # each by itself: the step of the place goes by lambda, which stands meanwhile
    def move(now: Floats, step: Floats) -> Floats:
        return _moved(
            now,
            level,
            lambda here: here + step * rng.standard_normal(whole.shape),
            lambda here, trial: still,
            rng,
        )

    drawn = move(start, np.stack([2.4 / held, still]))
    if not family.weight:
        return np.stack([drawn[0], rate], axis=1)[:, :, None]
    wide = 2.4 / np.sqrt(family.weight + 0.5 * taken.sum(axis=1))
    drawn = move(drawn, np.stack([still, wide]))
    return np.stack([drawn[0], rate, np.exp(drawn[1])], axis=1)[:, :, None]


class _Chain:
    """The state of all replicates: weights (R, H), atoms (2, R, H), what is left of P (R,)."""

    def __init__(
        self,
        kernel: _Kernel,
        family: Family,
        counts: np.ndarray[tuple[int, int], np.dtype[np.int64]],
        values: Floats,
        concentration: Floats,
        discount: float,
        rng: Generator,
    ) -> None:
        self.kernel, self.family, self.rng = kernel, family, rng
        self.counts, self.values = counts, values
        self.concentration, self.discount = concentration[:, None], discount

    def start(self, starts: Sequence[Measures], places: int) -> None:
        """Begin at the measures that the records are from, at their heaviest atoms."""
        replicates = len(starts)
        self.weights = np.zeros((replicates, places))
        self.atoms = self.family.draw(self.rng, replicates * places).reshape(2, replicates, places)
        self.rest = np.zeros(replicates)
        for row, start in enumerate(starts):
            chosen = np.argsort(-start.weights, kind="stable")[:places]
            self.weights[row, : chosen.size] = start.weights[chosen]
            self.atoms[:, row, : chosen.size] = start.atoms[:, chosen]
        self.weights[:, 0] = np.maximum(self.weights[:, 0], 1e-6)  # of a measure without atoms

    def sweep(self) -> None:
        """Move allocations, parameters and P."""
        sizes, sums = self._allocate()
        taken = sizes > 0
        drawn = self._draw(taken)
        moved = self.kernel.move(self.atoms, sizes, sums, self.rng)
        self.atoms = np.where(taken, moved, drawn)
        self._weigh(sizes, taken)

    def _draw(self, taken: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
        """Draw components from the base measure, whose location and scale are drawn first if learned."""
        family, rng = self.family, self.rng
        if isinstance(family, LearnedBeta):
            self.kernel.base = _base_of_betas(family, self.atoms, taken, self.kernel.base, rng)
            bases = np.repeat(self.kernel.base, taken.shape[1], axis=0)
            return family.draw_given(rng, bases).reshape(self.atoms.shape)
        if not isinstance(family, LearnedNormal):
            return family.draw(rng, taken.size).reshape(self.atoms.shape)
        precision = np.where(taken, 1.0 / self.atoms[1] ** 2, 0.0)
        scale = family.shape + family.a * taken.sum(axis=1, keepdims=True)
        b = rng.standard_gamma(scale) / (family.shape / family.b + precision.sum(axis=1, keepdims=True))
        before = self.kernel.base
        lam = np.full(b.shape, family.lam) if before is None else weights_of(before, family.lam)
        total = lam * precision.sum(axis=1, keepdims=True)
        weighted = lam * (precision * self.atoms[0]).sum(axis=1, keepdims=True)
        whole = total + 1.0 / family.spread**2
        centre = (weighted + family.mu0 / family.spread**2) / whole
        mu0 = centre + rng.standard_normal(whole.shape) / np.sqrt(whole)
        rows = [mu0, b]
        if family.weight:
            squares = (precision * (self.atoms[0] - mu0) ** 2).sum(axis=1, keepdims=True)
            terms = family.weight + 0.5 * taken.sum(axis=1, keepdims=True)
            lam = rng.standard_gamma(terms) / ((family.weight - 1.0) / family.lam + 0.5 * squares)
            rows.append(lam)
        self.kernel.base = np.stack(rows, axis=1)
        variance = b / rng.standard_gamma(family.a, taken.shape)
        mean = mu0 + np.sqrt(variance / lam) * rng.standard_normal(taken.shape)
        return np.stack([mean, np.sqrt(variance)])

    def _allocate(self) -> tuple[Floats, Floats]:
        """Draw the numbers of records at each place (R, H); return these and sums of the statistics."""
        with np.errstate(divide="ignore"):
            fits = np.maximum(self.kernel.log_density(self.atoms, self.values), -1e300)
            logs = fits + np.log(self.weights)[..., None]
        logs -= logs.max(axis=1, keepdims=True)
        shares = np.exp(logs).transpose(0, 2, 1)
        shares /= shares.sum(axis=2, keepdims=True)
        drawn = self.rng.multinomial(self.counts, shares).astype(np.float64)  # (R, cells, H)
        return drawn.sum(axis=1), np.einsum("src,rch->srh", self.values[:2], drawn)

    def _weigh(self, sizes: Floats, taken: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> None:
        """Draw weights given allocations."""
        rng, d = self.rng, self.discount
        strength = self.concentration + d * taken.sum(axis=1, keepdims=True)
        gammas = np.where(taken, rng.standard_gamma(np.where(taken, sizes - d, 1.0)), 0.0)
        left = rng.standard_gamma(strength)
        total = gammas.sum(axis=1, keepdims=True) + left
        free = ~taken
        number = np.cumsum(free, axis=1)
        broken = np.where(free, rng.beta(1.0 - d, strength + np.maximum(number, 1) * d), 0.0)
        remaining = np.cumprod(1.0 - broken, axis=1)
        before = np.concatenate([np.ones((len(sizes), 1)), remaining[:, :-1]], axis=1)
        self.weights = (gammas + left * broken * before) / total
        self.rest = (left[:, 0] * remaining[:, -1]) / total[:, 0]


# The shares of a posterior variance, as data and in words


QUANTITIES = ("mean", "median", "density")


@dataclass(frozen=True)
class Shares:
    """Shares of the posterior variance of one quantity, which sum to one."""

    sampling: float
    privacy: float
    prior: float

    @property
    def largest(self) -> str:
        """Name of the largest."""
        return max(("sampling", "privacy", "prior"), key=lambda name: float(getattr(self, name)))


@dataclass(frozen=True)
class VarianceShares:
    """Shares of mean, median and density.

    Parameters
    ----------
    columns : mapping of str to mapping of str to Shares or None
        By column, under "" where there is only one, and by quantity; empty where there are none.
    reason : str
        Why some are missing; empty where none is.
    """

    columns: Mapping[str, Mapping[str, Shares | None]] = field(default_factory=dict)
    reason: str = ""

    def section(self) -> ResultSection:
        """Return what is reported of them."""
        held: dict[str, Any] = {
            name: {key: None if part is None else dict(vars(part)) for key, part in parts.items()}
            for name, parts in self.columns.items()
        }
        held = by_name(held) or dict.fromkeys(QUANTITIES)
        rows = {f"{column},{name}" if column else name: part for column, name, part in self._known()}
        names = ("sampling", "privacy", "prior")
        columns = [TableColumn(name, [getattr(part, name) for part in rows.values()]) for name in names]
        words = self.in_words()
        return ResultSection(
            "variance_shares",
            Each(
                held | ({"reason": self.reason} if self.reason else {}),
                Table("quantity", list(rows), columns) if words else ABSENT,
            ),
            "Where the uncertainty comes from",
            text=[[f"Share of the posterior variance: {words}"]] if words else (),
            page=[f"Not known: {self.reason}."] if self.reason and not words else (),
        )

    def named(self) -> dict[str, Shares]:
        """Return those that are there, by name such as "mean" or "mean of height"."""
        return {f"{name} of {column}" if column else name: part for column, name, part in self._known()}

    def _known(self) -> Iterator[tuple[str, str, Shares]]:
        for column, parts in self.columns.items():
            for quantity, part in parts.items():
                if part is not None:
                    yield column, quantity, part

    def in_words(self) -> str:
        """Say it in one line; empty where there is nothing to say."""
        named = self.named()
        if not named:
            return ""
        figures = "; ".join(
            f"{name} {part.sampling:.0%} sampling, {part.privacy:.0%} privacy noise, {part.prior:.0%} prior"
            for name, part in named.items()
        )
        return f"{figures}. {self.cure()}"

    def cure(self) -> str:
        """Say what would help, by the largest shares; they do not tell where V is not below V0."""
        named = self.named()
        parts = []
        for source, words in _CURES.items():
            about = [
                name
                for name, part in named.items()
                if (part.largest if part.prior < 1.0 else "none") == source
            ]
            if about:
                parts.append(words.format("" if len(about) == len(named) else f" {all_of(about)}"))
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."


_CURES = {
    "privacy": "more epsilon would help{}",
    "sampling": "more records would help{}",
    "prior": "the prior decides{}",
    "none": "shares do not tell what would help{}: the variance is no less than the prior's",
}


def shares_of(variance: float, prior: float, clean: float) -> Shares | None:
    """Return the shares of a posterior variance V, given V0 and E V_clean; None where V0 is infinite, or V 0.

    Parameters
    ----------
    variance, prior, clean : float
        V, V0 and E V_clean.
    """
    if not np.isfinite(prior) or not prior > 0.0 or not variance > 0.0:
        return None
    of_prior = min(1.0, variance / prior)
    sampling = (1.0 - of_prior) * min(1.0, clean / variance)
    return Shares(sampling, max(0.0, 1.0 - of_prior - sampling), of_prior)


# What they are made of


RECORDS = 20_000
REPLICATES = 40
_EVEN = 0.25  # the share of them that is chosen evenly
_STATES = 1_000
_POINTS = (40, 200)  # of the grid: few, or more where the density is narrow
_ATOMS = 20_000
_PRIOR = 4_000
_ONCE = np.ones(1)


def parametric_shares(chains: NamedChains) -> VarianceShares:
    """Return the shares of a parametric model, of the mean alone, or why there are none."""
    try:
        variances, note = meaning_of(chains).variances_of_mean()
    except Unavailable as why:
        return VarianceShares(reason=str(why))
    shares = {column: shares_of(*each) for column, each in variances.items()}
    return VarianceShares(
        {name: {"mean": own, "median": None, "density": None} for name, own in shares.items()}, note
    )


def mixture_shares(
    chains: Chains,
    source: Family | NormalInverseWishart,
    grids: Sequence[Floats],
    series: Mapping[str, Floats],
    prior: Mapping[str, Floats],
) -> VarianceShares:
    """Return the shares of each column's mean, median and density.

    Parameters
    ----------
    chains : Chains
    source : Family or NormalInverseWishart
    grids : sequence of float64 array
        Of the columns' densities.
    series : mapping of str to float64 array (C, D)
        Draws of what is reported.
    prior : mapping of str to float64 array
        Draws of the same from the prior.
    """
    if chains.draws * len(chains.ids) < 20:
        return VarianceShares(reason="there are fewer than 20 saved draws")
    columns = columns_of(chains, source)
    if chains.mechanism.protects and not all(runs_for(column.family) for column in columns):
        return VarianceShares(
            reason=f"fits to noise-free replicates are not known of the kernel {chains.layout.kernel}"
        )
    wanted = places(chains, _STATES)
    states = states_at(chains, source, wanted, spread_rest=True)
    order = [(chain, state) for chain, numbers in wanted for state in numbers.tolist()]
    found: dict[str, dict[str, Shares | None]] = {}
    infinite = unseen = False
    for number, (column, grid) in enumerate(zip(columns, grids, strict=True)):
        # drawn at all states, and at a few where replicates come from
        all_states = of_column(join([states[place] for place in order]), column)
        rng = chains.generator(-2, -1 - number)
        points, weights = _weighed(grid, all_states, column.family)
        before = _prior_variances(chains, column, points, prior, rng)
        now = _Variances.of(all_states, column, points, series)
        clean = None if chains.mechanism.protects else now
        if clean is None:
            records = min(chains.n, RECORDS)
            starts = [of_column(of_records(states[at], int(chains.n_clusters[at])), column) for at in order]
            some, counting = chosen_starts(starts, column.family, records)
            drawn, each = clean_posteriors(
                [starts[i] for i in some],
                np.array([chains.concentration[order[i]] for i in some]),
                chains.constants["discount"],
                column.family,
                records,
                rng,
            )
            clean = _Variances.of(drawn, column, points, {}, counting * (records / chains.n))
        infinite |= not np.isfinite(before.mean)
        unseen |= not weights.any()
        before_density = float(weights @ before.density)
        found[column.name] = {
            "mean": shares_of(now.mean, before.mean, clean.mean),
            "median": shares_of(now.median, before.median, clean.median),
            "density": shares_of(
                float(weights @ now.density), before_density, float(weights @ clean.density)
            ),
        }
    reasons = ["the prior's variance of the mean is infinite"] if infinite else []
    reasons += ["the grid does not show the density"] if unseen else []
    return VarianceShares(found, "; ".join(reasons))


def _weighed(grid: Floats, drawn: Measures, family: Family) -> tuple[Floats, Floats]:
    """Return some points of a grid, and the fitted density there as weights that sum to one.

    Few where these show the density, else more; the weights are 0 where those do not either.
    """
    for most in _POINTS:
        points = grid[spread(grid.size, most)]
        heights = drawn.densities(points, family).mean(axis=0)
        if is_resolved(points, heights, drawn, family):
            return points, heights / heights.sum()
    return points, np.zeros(points.size)


def chosen_starts(
    starts: Sequence[Measures], family: Family, records: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """Return the numbers of the states that runs start at, and how much each counts: in a mean 1.

    A quarter of them evenly, the others in proportion to the square of what lies between the quantiles two
    standard deviations of a sample's median apart. In their order by it they are taken at even steps.

    Parameters
    ----------
    starts : sequence of Measures
        Single measures of one column.
    family : Family
    records : int
        How many are drawn of each.
    """
    drawn, side = join(list(starts)), min(records**-0.5, 0.45)
    apart = quantiles(drawn, family, 0.5 + side) - quantiles(drawn, family, 0.5 - side)
    share = np.full(apart.size, 1.0 / apart.size)
    if 0.0 < apart.max() < np.inf:
        squares = (apart / apart.max()) ** 2
        share = _EVEN * share + (1.0 - _EVEN) * squares / squares.sum()
    rank = np.argsort(share, kind="stable")
    steps = (np.arange(REPLICATES) + 0.5) / REPLICATES
    some = rank[np.minimum(np.searchsorted(np.cumsum(share[rank]), steps), apart.size - 1)]
    counting = 1.0 / (apart.size * share[some])
    return some, counting / counting.mean()


def of_records(drawn: Measures, clusters: int) -> Measures:
    """Return the components of a draw of P that have records, its first, with weights that sum to one.

    Draws of what is left, of weight concentration/n, have none. Records that were drawn of them as well, far
    off under a wide base measure, would vary more than the release lets them. Where no component has any, all
    of it stays.
    """
    weights = drawn.weights[:clusters]
    if not weights.sum():
        return drawn
    return Measures(np.array([clusters]), weights / weights.sum(), drawn.atoms[:, :clusters], np.zeros(1))


@dataclass(frozen=True)
class _Variances:
    """Variances of mean and median, and of the density at points (points,)."""

    mean: float
    median: float
    density: Floats

    @classmethod
    def of(
        cls,
        drawn: Measures,
        column: FittedColumn,
        points: Floats,
        series: Mapping[str, Floats],
        counting: Floats = _ONCE,
    ) -> _Variances:
        """Return those of draws of P; of the scalars all draws where `series` has them.

        Draws of several replicates follow each other, as many of each: a mean over the replicates, of which
        each counts as often as `counting` says.
        """
        family = column.family
        mean, median = series.get(column.label("mean")), series.get(_median_of(column))

        def variance(draws: Floats) -> Floats:
            parts = draws.reshape(counting.size, -1, *draws.shape[1:])
            return np.asarray(counting @ parts.var(axis=1, ddof=1) / counting.size)

        return cls(
            float(variance(drawn.moments(family)[0] if mean is None else mean.ravel())),
            float(variance(quantiles(drawn, family, 0.5) if median is None else median.ravel())),
            variance(drawn.densities(points, family)),
        )


def _median_of(column: FittedColumn) -> str:
    """Return the name of the median among the scalars of a column."""
    return Wanted(quantiles=(0.5,)).labels(column)[0]


def _prior_variances(
    chains: Chains,
    column: FittedColumn,
    points: Floats,
    prior: Mapping[str, Floats],
    rng: np.random.Generator,
) -> _Variances:
    """Return those of P ~ PY(d, alpha, G0): Var of E(g | theta) is E[(1 - d)/(1 + alpha)] Var g under G0.

    Where location and scale are learned E(g | base) has a variance besides: the covariance of g at two
    components of one base measure, by pairs of draws.
    """
    family = column.family
    alpha = prior.get("concentration", np.atleast_1d(chains.concentration.ravel()[0]))
    discount = float(chains.constants["discount"])
    factor = float(np.mean((1.0 - discount) / (1.0 + alpha)))
    base = None
    if isinstance(family, Learned):
        base = family.draw_base(rng, _ATOMS)
        first, second = (_at_atoms(family, family.draw_given(rng, base), points) for _ in range(2))
        between = np.mean((first - first.mean(axis=0)) * (second - second.mean(axis=0)), axis=0)
        found = factor * first.var(axis=0) + (1.0 - factor) * np.maximum(between, 0.0)
        density, of_mean = found[:-1], float(found[-1])
        if isinstance(column.family, LearnedNormal):  # whose tails are heavy
            normal = column.family
            of_mean = factor * normal.b / ((normal.a - 1.0) * normal.lam) + normal.spread**2
    else:
        atoms = family.draw(rng, _ATOMS)
        density = factor * family.densities(np.ones(_ATOMS), atoms, points).var(axis=0)
        if not np.isfinite(family.predictive_moments()[1]):
            return _Variances(np.inf, np.inf, density)
        if isinstance(family, NormalInverseGamma):  # whose tails are heavy
            of_mean = factor * (family.b / ((family.a - 1.0) * family.lam))
        else:
            of_mean = factor * float(family.moments(atoms)[0].var())
    median = prior.get(_median_of(column))
    if median is None:
        if isinstance(family, Learned):
            base = family.draw_base(rng, _PRIOR)
        unseen = Measures.unseen(_PRIOR, 2)
        drawn = draw_measures(unseen, np.resize(alpha, _PRIOR), discount, family, rng, base)
        median = quantiles(drawn, family, 0.5)
    return _Variances(of_mean, float(np.var(median)), density)


def _at_atoms(family: Family, atoms: Floats, points: Floats) -> Floats:
    """Return densities at points, and in the last column the mean, of a record under each atom."""
    densities = family.densities(np.ones(atoms.shape[1]), atoms, points)
    return np.column_stack([densities, family.moments(atoms)[0]])
