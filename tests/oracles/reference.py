"""Plain samplers for the Laplace channel, with faults to plant: the tests of samplers must catch each.

Written without regard to speed from methods.md section 4. Each sweep takes `fault`, 0 for the right
algorithm. Arrays: z (n,), y (n, m), labels (n,), theta (2, S) with the occupied components first (Neal 8,
Neal 5) or by stick (slice, with gaps), counts (S,).
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from tests.oracles.joint import Model

# faults of Neal 8
FORGET_SINGLETON, NEW_WITHOUT_DISCOUNT, OLD_WITHOUT_DISCOUNT, LATENT_STUCK, THETA_FROM_PRIOR = 1, 2, 3, 4, 5
NEW_TIMES_M, KERNEL_FOR_MARGINAL, CONCENTRATION_SHAPE = 6, 7, 8
# faults of the slice
STICK_WITHOUT_DISCOUNT, STICK_WITHOUT_LATER, WEIGHT_WITHOUT_XI, OLD_SLICES, CONCENTRATION_BY_PARTITION = (
    11,
    12,
    13,
    14,
    15,
)
# faults of private Neal 5
ONE_AUXILIARY_FOR_THETA, OLD_WITHOUT_DISCOUNT_5 = 21, 22

SLOTS = 400
_HALF = math.sqrt(0.5)

jit = numba.njit(error_model="numpy")


@jit
def _sides(z, mean, var, s):
    """The two terms w1, w2 of g, times 2 s."""
    sd = math.sqrt(var)
    x = z - mean
    tilt = min(0.5 * var / (s * s), 600.0)
    near = math.exp(tilt - x / s) * 0.5 * math.erfc(-_HALF * (x / sd - sd / s))
    far = math.exp(tilt + x / s) * 0.5 * math.erfc(_HALF * (x / sd + sd / s))
    return near, far


@jit
def _g(z, mean, var, s, fault):
    if fault == KERNEL_FOR_MARGINAL:
        return math.exp(-0.5 * (z - mean) ** 2 / var) / math.sqrt(2.0 * math.pi * var)
    near, far = _sides(z, mean, var, s)
    return (near + far) / (2.0 * s)


@jit
def _normal_above(rng, low):
    """Standard normal given that it exceeds `low` (Robert 1995)."""
    if low < 0.4:
        while True:
            x = rng.standard_normal()
            if x >= low:
                return x
    rate = 0.5 * (low + math.sqrt(low * low + 4.0))
    while True:
        x = low + rng.standard_exponential() / rate
        if rng.random() <= math.exp(-0.5 * (x - rate) ** 2):
            return x


@jit
def _draw_y(rng, z, mean, var, s):
    near, far = _sides(z, mean, var, s)
    sd = math.sqrt(var)
    if rng.random() * (near + far) < near:
        centre = mean + var / s
        return centre - sd * _normal_above(rng, (centre - z) / sd)
    centre = mean - var / s
    return centre + sd * _normal_above(rng, (z - centre) / sd)


@jit
def _draw_theta(rng, base, count, total, square, theta, h):
    mu0, lam, a, b = base
    if count > 0:
        mean = total / count
        b += 0.5 * max(square - total * mean, 0.0) + 0.5 * lam * count / (lam + count) * (mean - mu0) ** 2
        mu0 = (lam * mu0 + total) / (lam + count)
        lam += count
        a += 0.5 * count
    theta[1, h] = b / rng.standard_gamma(a)
    theta[0, h] = mu0 + math.sqrt(theta[1, h] / lam) * rng.standard_normal()


@jit
def _update_theta(rng, base, y, columns, labels, theta, k, fault):
    for h in range(k):
        count, total, square = 0, 0.0, 0.0
        for i in range(len(labels)):
            if labels[i] == h:
                for j in range(columns):
                    count += 1
                    total += y[i, j]
                    square += y[i, j] ** 2
        if fault == THETA_FROM_PRIOR and count == columns:
            count = 0
        _draw_theta(rng, base, count, total, square, theta, h)


@jit
def _update_alpha(rng, alpha, shape, rate, d, n, k, fault):
    """Metropolis on log alpha under the partition's probability (the fault: of Escobar and West)."""
    if shape <= 0.0:
        return alpha
    if fault == CONCENTRATION_SHAPE:
        return rng.standard_gamma(shape + k) / (rate - math.log(rng.beta(alpha + 1.0, float(n))))
    for _ in range(3):
        new = alpha * math.exp(1.5 * rng.standard_normal())
        ratio = shape * math.log(new / alpha) - rate * (new - alpha)
        ratio += (
            math.lgamma(new + 1.0) - math.lgamma(new + n) - math.lgamma(alpha + 1.0) + math.lgamma(alpha + n)
        )
        for j in range(1, k):
            ratio += math.log((new + j * d) / (alpha + j * d))
        if math.log(rng.random()) < ratio:
            alpha = new
    return alpha


@jit
def _remove(i, labels, counts, theta, k):
    """Take record i out; an emptied component changes places with the last. Return (k, alone)."""
    c = labels[i]
    counts[c] -= 1
    if counts[c] > 0:
        return k, False
    last = k - 1
    for p in range(2):
        theta[p, c], theta[p, last] = theta[p, last], theta[p, c]
    counts[c] = counts[last]
    counts[last] = 0
    for j in range(len(labels)):
        if labels[j] == last:
            labels[j] = c
    return last, True


@jit
def neal8_sweep(z, y, labels, theta, counts, k, alpha, s, base, d, shape, rate, m, fault, rng):
    """Neal's Algorithm 8 on the exact g, then y, theta and alpha. Return (k, alpha)."""
    n = len(z)
    weights = np.empty(n + m)
    for i in range(n):
        k, alone = _remove(i, labels, counts, theta, k)
        for h in range(k, k + m):
            if not (alone and h == k) or fault == FORGET_SINGLETON:
                _draw_theta(rng, base, 0, 0.0, 0.0, theta, h)
        old = 0.0 if fault == OLD_WITHOUT_DISCOUNT else d
        new = alpha + (0.0 if fault == NEW_WITHOUT_DISCOUNT else k * d)
        if fault != NEW_TIMES_M:
            new /= m
        total = 0.0
        for h in range(k + m):
            weights[h] = (counts[h] - old if h < k else new) * _g(z[i], theta[0, h], theta[1, h], s, fault)
            total += weights[h]
        left = rng.random() * total
        c = 0
        while c < k + m - 1 and left >= weights[c]:
            left -= weights[c]
            c += 1
        if c >= k:
            theta[0, k], theta[1, k] = theta[0, c], theta[1, c]
            c = k
            k += 1
        labels[i] = c
        counts[c] += 1
    if fault != LATENT_STUCK:
        for i in range(n):
            y[i, 0] = _draw_y(rng, z[i], theta[0, labels[i]], theta[1, labels[i]], s)
    _update_theta(rng, base, y, 1, labels, theta, k, fault)
    return k, _update_alpha(rng, alpha, shape, rate, d, n, k, fault)


@jit
def neal5_sweep(z, y, labels, theta, counts, k, alpha, s, base, d, shape, rate, m, fault, rng):
    """Private Neal 5 with m auxiliaries (P1, Algorithm 1), then theta and alpha. Return (k, alpha)."""
    n = len(z)
    fresh = np.empty(m)
    for i in range(n):
        mean_before, var_before = theta[0, labels[i]], theta[1, labels[i]]
        k, alone = _remove(i, labels, counts, theta, k)
        old = 0.0 if fault == OLD_WITHOUT_DISCOUNT_5 else d
        left = rng.random() * (n - 1 - k * old + alpha + k * d)
        c = 0
        while c < k and left >= counts[c] - old:
            left -= counts[c] - old
            c += 1
        if c == k:
            _draw_theta(rng, base, 0, 0.0, 0.0, theta, k)
        mean, sd = theta[0, c], math.sqrt(theta[1, c])
        before, after = 0.0, 0.0
        for j in range(m):
            fresh[j] = mean + sd * rng.standard_normal()
            after += math.exp(-abs(z[i] - fresh[j]) / s)
            before += math.exp(-abs(z[i] - y[i, j]) / s)
        if rng.random() * before < after:
            y[i, :] = fresh
            labels[i] = c
        elif alone:
            theta[0, k], theta[1, k] = mean_before, var_before
            labels[i] = k
        if labels[i] == k:
            k += 1
        counts[labels[i]] += 1
    _update_theta(rng, base, y, 1 if fault == ONE_AUXILIARY_FOR_THETA else m, labels, theta, k, fault)
    return k, _update_alpha(rng, alpha, shape, rate, d, n, k, fault)


@jit
def _log_sticks(counts, top, alpha, d):
    """Log probability of the labels, sticks integrated out."""
    later = 0
    out = 0.0
    for h in range(top - 1, -1, -1):
        p, q = 1.0 - d, alpha + (h + 1) * d
        out += math.lgamma(p + counts[h]) + math.lgamma(q + later) - math.lgamma(p + q + counts[h] + later)
        out += math.lgamma(p + q) - math.lgamma(p) - math.lgamma(q)
        later += counts[h]
    return out


@jit
def slice_sweep(z, y, labels, theta, counts, u, alpha, s, base, d, shape, rate, fault, rng):
    """Slice-efficient sampler with xi_h = 2^-h and exact (c, y). Return alpha; labels are of sticks."""
    n = len(z)
    weights, cumulative = np.zeros(SLOTS), np.zeros(SLOTS)
    top = labels.max() + 1
    rest, later = 1.0, n
    for h in range(top):
        later -= counts[h]
        more = 0.0 if fault == STICK_WITHOUT_DISCOUNT else (h + 1) * d
        v = rng.beta(1.0 - d + counts[h], alpha + more + (0 if fault == STICK_WITHOUT_LATER else later))
        weights[h] = v * rest
        rest *= 1.0 - v
    least = u.min()
    for i in range(n):
        u[i] = rng.random() * 0.5 ** (labels[i] + 1)
    if fault != OLD_SLICES:
        least = u.min()
    while 0.5 ** (top + 1) > least and top < SLOTS:
        v = rng.beta(1.0 - d, alpha + (top + 1) * d)
        weights[top] = v * rest
        rest *= 1.0 - v
        counts[top] = 0
        top += 1
    for h in range(top):
        if counts[h] == 0:
            _draw_theta(rng, base, 0, 0.0, 0.0, theta, h)
    for i in range(n):
        counts[labels[i]] -= 1
        total = 0.0
        for h in range(top):
            if u[i] < 0.5 ** (h + 1):
                prior = weights[h] * (1.0 if fault == WEIGHT_WITHOUT_XI else 2.0 ** (h + 1))
                total += prior * _g(z[i], theta[0, h], theta[1, h], s, 0)
            cumulative[h] = total
        left = rng.random() * total
        c = 0
        while c < top - 1 and left >= cumulative[c]:
            c += 1
        labels[i] = c
        counts[c] += 1
        y[i, 0] = _draw_y(rng, z[i], theta[0, c], theta[1, c], s)
    _update_theta(rng, base, y, 1, labels, theta, top, 0)
    if fault == CONCENTRATION_BY_PARTITION:
        return _update_alpha(rng, alpha, shape, rate, d, n, np.sum(counts[:top] > 0), 0)
    for _ in range(3 if shape > 0.0 else 0):
        new = alpha * math.exp(1.5 * rng.standard_normal())
        ratio = shape * math.log(new / alpha) - rate * (new - alpha)
        ratio += _log_sticks(counts, top, new, d) - _log_sticks(counts, top, alpha, d)
        if math.log(rng.random()) < ratio:
            alpha = new
    return alpha


def draw_stick_labels(rng: np.random.Generator, counts: Any, alpha: float, d: float) -> Any:
    """Draw the stick of each block given the partition: sticks are a size-biased order of all atoms of P."""
    k = len(counts)
    shares = rng.standard_gamma(np.append(counts - d, alpha + k * d))
    shares /= shares.sum()
    waiting, left, label, empty = list(range(k)), shares[k], 0, 0
    sticks = np.empty(k, dtype=np.int64)
    while waiting:
        pick = rng.random() * (shares[waiting].sum() + left) - np.cumsum(shares[waiting])
        taken = np.flatnonzero(pick < 0)
        if len(taken):
            sticks[waiting.pop(int(taken[0]))] = label
        else:
            left *= rng.beta(alpha + (k + empty + 1) * d, 1.0 - d)
            empty += 1
        label += 1
    return sticks


class ReferenceChain:
    """The samplers above under the interface that the tests use (`joint.ChainLike`); Laplace channel only."""

    def __init__(self, z: Any, model: Model, kind: str, m: int, fault: int, rng: np.random.Generator) -> None:
        if model.channel[0] != "laplace":
            raise ValueError("the reference samplers know the Laplace channel only")
        self.z, self.model, self.kind, self.m, self.fault, self.rng = z, model, kind, m, fault, rng
        n = len(z)
        self.columns = m if kind == "neal5" else 1
        self.y = np.repeat(z[:, None], self.columns, axis=1)
        self.u = np.full(n, 0.25)
        gamma = isinstance(model.alpha, tuple)
        self.shape, self.rate = model.alpha if isinstance(model.alpha, tuple) else (0.0, 0.0)
        self.set_state(
            np.zeros(n, dtype=np.int64), np.array([[0.0], [1.0]]), 1.0 if gamma else model.alpha, self.y
        )

    def set_state(self, allocations: Any, theta: Any, concentration: float, latent: Any = None) -> None:
        """Start from this state; latent values are for Neal 5 only; the slice draws its sticks' labels."""
        sticks = np.arange(theta.shape[1])
        if self.kind == "slice":
            sticks = draw_stick_labels(self.rng, np.bincount(allocations), concentration, self.model.discount)
        self._labels = np.asarray(sticks[allocations], dtype=np.int64)
        self._theta = np.ones((2, SLOTS))
        self._theta[:, sticks] = theta
        self.k = theta.shape[1]
        self.counts = np.bincount(self._labels, minlength=SLOTS)
        self._alpha = concentration
        if latent is not None:
            self.y[:] = latent

    def advance(self, sweeps: int) -> None:
        """Run sweeps."""
        s, base, d = self.model.channel[1], self.model.base, self.model.discount
        common = (self.z, self.y, self._labels, self._theta, self.counts)
        prior = (s, base, d, self.shape, self.rate)
        for _ in range(sweeps):
            if self.kind == "slice":
                self._alpha = slice_sweep(*common, self.u, self._alpha, *prior, self.fault, self.rng)
            else:
                sweep = neal8_sweep if self.kind == "neal8" else neal5_sweep
                self.k, self._alpha = sweep(
                    *common, self.k, self._alpha, *prior, self.m, self.fault, self.rng
                )

    @property
    def allocations(self) -> Any:
        """Labels 0..k-1."""
        return np.unique(self._labels, return_inverse=True)[1]

    @property
    def theta(self) -> Any:
        """Means and variances of the occupied components, (2, k)."""
        return self._theta[:, np.unique(self._labels)]

    @property
    def concentration(self) -> float:
        """Present concentration."""
        return float(self._alpha)

    @property
    def latent(self) -> Any:
        """Latent values of private Neal 5, (n, m)."""
        return self.y if self.kind == "neal5" else None

    def run(self, draws: int, thin: int) -> dict[str, Any]:
        """Save `draws` states as `dpmix` does, each with a draw of the weights of the random measure."""
        n = len(self.z)
        out = {
            "n_clusters": np.zeros(draws, dtype=np.int64),
            "concentration": np.zeros(draws),
            "allocations": np.zeros((draws, n), dtype=np.int64),
        }
        shape = (draws, n)
        out |= {name: np.full(shape, np.nan) for name in ("weights", "mean", "variance")}
        for t in range(draws):
            self.advance(thin)
            labels, theta = self.allocations, self.theta
            counts, k = np.bincount(labels), theta.shape[1]
            shares = np.append(counts - self.model.discount, self._alpha + k * self.model.discount)
            gammas = self.rng.standard_gamma(shares)
            out["n_clusters"][t], out["concentration"][t] = k, self._alpha
            out["allocations"][t] = labels
            out["weights"][t, :k] = (gammas / gammas.sum())[:k]
            out["mean"][t, :k], out["variance"][t, :k] = theta
        return out
