"""Binomial releases: z | y ~ Binomial(M, 1/2 + w (u - 1/2)), u = (y - lo) / width held to [0, 1].

Each of the M trials is a trial of probability u, seen through a coin that reports it rightly with probability
(1 + w)/2. Hence with a beta kernel g(z) = sum_k T(z, k) Pr(k), Pr(k) beta-binomial and T the chance that k
successes are reported as z: free of theta, positive, and the double sum of methods, section 4, with its
inner sum done beforehand. With a normal kernel g is the mass beyond each end of the domain times the
binomial probability there, plus a Gauss-Legendre sum between.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.kernels.beta.kernel import A, B, Beta
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    draw_start,
    fill_marginal,
    hides_records,
    log_marginal,
    noise_density,
    noise_variance,
)
from dpmix.numerics.betainc import log_normal_tail
from dpmix.numerics.jit import njit
from dpmix.numerics.special import exp, log_gamma_draw

_SMALLEST = 1e-305
_ORDERS = (32, 64, 128, 256, 512)  # Gauss-Legendre rules held by a channel, one after another
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class BinomialNoise(NamedTuple):
    """z | y ~ Binomial(trials, p), p = 1/2 + weight ((y - lo)/width - 1/2), between its values at the ends.

    table (M + 1, M + 1): T(z, k) and its logarithm `log_table`; choose (M + 1,): log binomial coefficients;
    nodes, weights: Gauss-Legendre rules of 32, 64, .. 512 points. Made by `make`.
    """

    trials: float
    weight: float
    lo: float
    width: float
    table: Any
    log_table: Any
    choose: Any
    nodes: Any
    weights: Any

    @classmethod
    def make(cls, trials: int, weight: float, lo: float, hi: float) -> BinomialNoise:
        """Return the channel of `trials` >= 1 with 0 < `weight` < 1 on [lo, hi], in data units.

        Takes O(M^2.5) operations and 16 (M + 1)^2 bytes: about two seconds and 16 MB at M = 1000.

        Raises
        ------
        ValueError
            When trials or weight are out of range.
        """
        if trials < 1 or not 0.0 < weight < 1.0:
            raise ValueError(f"trials must be 1 or more and weight in (0, 1), not {trials} and {weight}")
        log_factorial = np.array([math.lgamma(k + 1.0) for k in range(trials + 1)])
        choose = log_factorial[-1] - log_factorial - log_factorial[::-1]
        log_table = np.empty((trials + 1, trials + 1))
        _fill_table(int(trials), float(weight), log_table)
        from scipy.special import roots_legendre  # late: it takes a good part of what a fit takes to start

        rules = [roots_legendre(order) for order in _ORDERS]
        nodes = np.concatenate([rule[0] for rule in rules])
        weights = np.concatenate([rule[1] for rule in rules])
        with np.errstate(under="ignore"):
            table = np.exp(log_table)
        return cls(
            float(trials), float(weight), float(lo), float(hi - lo), table, log_table, choose, nodes, weights
        )


@njit
def _fill_binomial(size, log_p, log_q, out):
    """Set ``out[: size + 1]`` to the logs of Binomial(size, p) probabilities."""
    log_choose = 0.0
    for k in range(size + 1):
        if k > 0:
            log_choose += math.log((size - k + 1.0) / k)
        out[k] = log_choose + k * log_p + (size - k) * log_q


@njit
def _fill_table(trials, weight, log_table):
    """Set ``log_table[z, k]``: the convolution of Binomial(k, s) and Binomial(M - k, 1 - s), s = (1 + w)/2.

    Terms of one entry are log-concave: from the largest outwards, by their ratios, until they stop counting.
    """
    log_s = math.log(0.5 + 0.5 * weight)
    log_f = math.log(0.5 - 0.5 * weight)
    odds = math.exp(2.0 * (log_s - log_f))
    kept = np.empty(trials + 1)
    turned = np.empty(trials + 1)
    for k in range(trials + 1):
        rest = trials - k
        _fill_binomial(k, log_s, log_f, kept)
        _fill_binomial(rest, log_f, log_s, turned)
        best = 0
        for z in range(trials + 1):
            low, high = max(0, z - rest), min(k, z)
            best = min(max(best, low), high)
            # i of the k successes are kept, z - i failures turned
            while best < high and (k - best) * (z - best) * odds > (best + 1.0) * (rest - z + best + 1.0):
                best += 1
            while best > low and (k - best + 1.0) * (z - best + 1.0) * odds < best * (rest - z + best):
                best -= 1
            total = term = 1.0
            for i in range(best, high):
                term *= (k - i) * (z - i) / ((i + 1.0) * (rest - z + i + 1.0)) * odds
                total += term
                if term < 1e-18 * total:
                    break
            term = 1.0
            for i in range(best, low, -1):
                term *= i * (rest - z + i) / ((k - i + 1.0) * (z - i + 1.0) * odds)
                total += term
                if term < 1e-18 * total:
                    break
            log_table[z, k] = kept[best] + turned[z - best] + math.log(total)


@njit
def _log_binomial(channel, z, p, q):
    return channel.choose[int(z)] + z * math.log(p) + (channel.trials - z) * math.log(q)


@njit
def _end(channel):
    """Return p at the lower end, which is 1 - p at the upper one."""
    return 0.5 - 0.5 * channel.weight


@noise_density.register
def _noise_density(channel: BinomialNoise, z, y):
    end = _end(channel)
    u = min(max((y - channel.lo) / channel.width, 0.0), 1.0)
    v = min(max((channel.lo + channel.width - y) / channel.width, 0.0), 1.0)
    return math.exp(_log_binomial(channel, z, end + channel.weight * u, end + channel.weight * v))


@noise_variance.register
def _noise_variance(channel: BinomialNoise):
    """Return the variance of lo + width ((z/M - 1/2)/w + 1/2) at mid-domain, at most a few squared widths."""
    share = channel.width / channel.weight
    return min(0.25 * share * share / channel.trials, 4.0 * channel.width * channel.width)


hides_records(BinomialNoise)


@njit
def _beta_mode(trials, a, b):
    """Return where beta-binomial probabilities are largest, about, or an end from which none underflows."""
    if a <= 1.0:
        return 0
    if b <= 1.0:
        return int(trials)
    return int(min(max(trials * ((a - 1.0) / (a + b - 2.0)), 0.0), trials))


@njit
def _fill_beta_binomial(trials, a, b, out):
    """Set ``out[k]`` to the beta-binomial probability of k, by ratios from the largest on."""
    top = _beta_mode(trials, a, b)
    out[top] = total = 1.0
    for k in range(top, int(trials)):
        out[k + 1] = out[k] * ((trials - k) * (a + k) / ((k + 1.0) * (b + trials - k - 1.0)))
        total += out[k + 1]
    for k in range(top, 0, -1):
        out[k - 1] = out[k] * (k * (b + trials - k) / ((trials - k + 1.0) * (a + k - 1.0)))
        total += out[k - 1]
    for k in range(int(trials) + 1):
        out[k] /= total


@njit
def _fill_log_terms(channel, z, a, b, out):
    """Set ``out[k]`` to log(T(z, k) Pr(k)); return the largest."""
    trials = channel.trials
    top = _beta_mode(trials, a, b)
    out[top] = 0.0
    for k in range(top, int(trials)):
        out[k + 1] = out[k] + math.log((trials - k) * (a + k) / ((k + 1.0) * (b + trials - k - 1.0)))
    for k in range(top, 0, -1):
        out[k - 1] = out[k] + math.log(k * (b + trials - k) / ((trials - k + 1.0) * (a + k - 1.0)))
    largest = np.max(out)
    total = 0.0
    for k in range(int(trials) + 1):
        total += math.exp(out[k] - largest)
    constant = largest + math.log(total)
    row = channel.log_table[int(z)]
    for k in range(int(trials) + 1):
        out[k] += row[k] - constant
    return np.max(out)


@log_marginal.register
def _log_marginal_beta(channel: BinomialNoise, kernel: Beta, z, theta, h):
    terms = np.empty(int(channel.trials) + 1)
    largest = _fill_log_terms(channel, z, theta[A, h], theta[B, h], terms)
    total = 0.0
    for k in range(len(terms)):
        total += math.exp(terms[k] - largest)
    return largest + math.log(total)


@njit
def _dot(x, y):
    """Return the dot product; four sums of their own, which become vector instructions."""
    s0 = s1 = s2 = s3 = 0.0
    whole = len(x) - len(x) % 4
    for k in range(0, whole, 4):
        s0 += x[k] * y[k]
        s1 += x[k + 1] * y[k + 1]
        s2 += x[k + 2] * y[k + 2]
        s3 += x[k + 3] * y[k + 3]
    for k in range(whole, len(x)):
        s0 += x[k] * y[k]
    return (s0 + s2) + (s1 + s3)


@fill_marginal.register
def _fill_marginal_beta(channel: BinomialNoise, kernel: Beta, theta, h, z, start, stop, out):
    values = int(channel.trials) + 1
    chances = np.empty(values)
    _fill_beta_binomial(channel.trials, theta[A, h], theta[B, h], chances)
    found = np.full(values, -1.0)
    for i in range(start, stop):
        k = int(z[i])
        if found[k] < 0.0:
            found[k] = max(_dot(channel.table[k], chances), _SMALLEST)
        out[i - start] = found[k]


@draw_latent.register
def _draw_latent_beta(channel: BinomialNoise, kernel: Beta, rng, z, theta, h):
    """Draw the successes behind z, given which u is beta again."""
    a, b = theta[A, h], theta[B, h]
    weights = np.empty(int(channel.trials) + 1)
    largest = _fill_log_terms(channel, z, a, b, weights)
    total = 0.0
    for k in range(len(weights)):
        total += math.exp(weights[k] - largest)
        weights[k] = total
    target = rng.random() * total
    k = 0
    while k < len(weights) - 1 and weights[k] <= target:
        k += 1
    return log_gamma_draw(rng, a + k) - log_gamma_draw(rng, b + channel.trials - k)


@njit
def _prepare(channel, mean, sd):
    """Return what does not depend on z: logs of the mass at each node, of p and of 1 - p there.

    The first two nodes are the ends with all that lies beyond. The binomial probabilities at any two points
    differ by exp(eps) at most, eps the guarantee; so nothing counts beyond sqrt(2 (eps + 40)) sd. The order
    of the rule follows from the bends of the normal (in sd) and of the binomial (as if all trials agree).
    """
    lo, hi = channel.lo, channel.lo + channel.width
    end = _end(channel)
    guarantee = channel.trials * (math.log1p(channel.weight) - math.log1p(-channel.weight))
    reach = math.sqrt(2.0 * (guarantee + 40.0)) * sd
    left, right = max(lo, mean - reach), min(hi, mean + reach)
    half = 0.5 * (right - left)
    first, order = 0, 0
    if half > 0.0:
        p = end + channel.weight * ((right - lo) / channel.width)
        q = end + channel.weight * ((hi - left) / channel.width)
        bend = channel.trials * channel.weight * half / channel.width / min(p, q)
        wanted = 14.0 + 2.2 * half / sd + 3.5 * math.sqrt(bend)
        order = _ORDERS[0]
        while order < wanted and order < _ORDERS[-1]:
            first += order
            order *= 2
    logs = np.empty((3, order + 2))
    logs[0, 0] = log_normal_tail((mean - lo) / sd)
    logs[0, 1] = log_normal_tail((hi - mean) / sd)
    logs[1, 0] = logs[2, 1] = math.log(end)
    logs[2, 0] = logs[1, 1] = math.log(end + channel.weight)
    for k in range(order):
        y = 0.5 * (left + right) + half * channel.nodes[first + k]
        t = (y - mean) / sd
        logs[0, k + 2] = math.log(channel.weights[first + k] * half / sd) - 0.5 * t * t - _LOG_SQRT_2PI
        logs[1, k + 2] = math.log(end + channel.weight * ((y - lo) / channel.width))
        logs[2, k + 2] = math.log(end + channel.weight * ((hi - y) / channel.width))
    return logs


@log_marginal.register
def _log_marginal_normal(channel: BinomialNoise, kernel: NormalNIG, z, theta, h):
    logs = _prepare(channel, theta[MEAN, h], math.sqrt(theta[VARIANCE, h]))
    terms = logs[0] + z * logs[1] + (channel.trials - z) * logs[2]
    largest = np.max(terms)
    total = 0.0
    for k in range(len(terms)):
        total += math.exp(terms[k] - largest)
    return channel.choose[int(z)] + largest + math.log(total)


@fill_marginal.register
def _fill_marginal_normal(channel: BinomialNoise, kernel: NormalNIG, theta, h, z, start, stop, out):
    logs = _prepare(channel, theta[MEAN, h], math.sqrt(theta[VARIANCE, h]))
    terms = np.empty(logs.shape[1])
    found = np.full(int(channel.trials) + 1, -1.0)
    for i in range(start, stop):
        k = int(z[i])
        if found[k] < 0.0:
            rest = channel.trials - z[i]
            constant = channel.choose[k]
            for j in range(len(terms)):
                terms[j] = exp(constant + logs[0, j] + z[i] * logs[1, j] + rest * logs[2, j])
            found[k] = max(np.sum(terms), _SMALLEST)
        out[i - start] = found[k]


@draw_start.register
def _draw_start_normal(channel: BinomialNoise, kernel: NormalNIG, rng, z):
    place = (z / channel.trials - 0.5) / channel.weight + 0.5
    return channel.lo + channel.width * min(max(place, 0.0), 1.0)


@draw_start.register
def _draw_start_beta(channel: BinomialNoise, kernel: Beta, rng, z):
    u = rng.random()
    return math.log(u / (1.0 - u)) if u > 0.0 else 0.0
