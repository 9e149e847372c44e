"""Random numbers for one sweep, drawn by the block: faster than one at a time from a generator.

A chain's generator seeds, anew for each sweep, xoshiro256++ (Blackman and Vigna 2021), whose state is in
registers while a block is filled: about 1 ns a uniform and 3 ns a normal, where calls of the generator take
7 and 10. Normals are those of the ziggurat of 256 layers (Marsaglia and Tsang 2000), with separate bits for
the layer and for the place within it (Doornik 2005).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.jit import inlined, njit

_ALL = 0xFFFFFFFFFFFFFFFF  # the interpreter's integers have no end: what compiled code does by itself
_LAYERS = 256
_START, _AREA = 3.6541528853610088, 0.00492867323399


def make_words() -> NDArray[np.uint64]:
    """Return room for the state of a stream."""
    return np.zeros(4, dtype=np.uint64)


def _layers() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return right ends of the layers, the share of each within the next, and densities there."""
    right = np.zeros(_LAYERS + 1)
    right[0], right[1] = _AREA / math.exp(-0.5 * _START**2), _START
    for i in range(2, _LAYERS):
        height = _AREA / right[i - 1] + math.exp(-0.5 * right[i - 1] ** 2)
        right[i] = math.sqrt(-2.0 * math.log(height))
    return right, right[1:] / right[:-1], np.exp(-0.5 * right**2)


_RIGHT, _INNER, _HEIGHT = _layers()


@inlined
def _turn(x, by):
    return ((x << by) & _ALL) | (x >> (64 - by))


@inlined
def _next(a, b, c, d):
    """Return 64 random bits, and the state after."""
    bits = (_turn((a + d) & _ALL, 23) + a) & _ALL
    shifted = (b << 17) & _ALL
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    return bits, a, b, c, _turn(d, 45)


@inlined
def _uniform(bits):
    """Return the upper 53 bits as a number in [0, 1)."""
    return (bits >> 11) * (1.0 / 9007199254740992.0)


@njit
def seed(rng, words):
    """Start a stream, by 424 random bits of the generator."""
    for i in range(4):
        high, low = int(rng.random() * 9007199254740992.0), int(rng.random() * 9007199254740992.0)
        words[i] = ((high << 11) & _ALL) ^ (low & _ALL)


@njit
def fill_uniforms(words, out, count):
    """Set out[:count] to uniforms in [0, 1)."""
    a, b, c, d = _ALL & int(words[0]), _ALL & int(words[1]), _ALL & int(words[2]), _ALL & int(words[3])
    for i in range(count):
        bits, a, b, c, d = _next(a, b, c, d)
        out[i] = _uniform(bits)
    words[0], words[1], words[2], words[3] = a, b, c, d


@njit
def fill_normals(words, out, count):
    """Set out[:count] to standard normals."""
    a, b, c, d = _ALL & int(words[0]), _ALL & int(words[1]), _ALL & int(words[2]), _ALL & int(words[3])
    for i in range(count):
        while True:
            bits, a, b, c, d = _next(a, b, c, d)
            layer = bits & 255
            place = 2.0 * _uniform(bits) - 1.0
            x = place * _RIGHT[layer]
            if abs(place) < _INNER[layer]:
                break
            bits, a, b, c, d = _next(a, b, c, d)
            if layer == 0:  # beyond the start of the tail (Marsaglia 1964)
                while True:
                    tail = -math.log(1.0 - _uniform(bits)) / _START
                    bits, a, b, c, d = _next(a, b, c, d)
                    height = -2.0 * math.log(1.0 - _uniform(bits))
                    if height > tail * tail:
                        break
                    bits, a, b, c, d = _next(a, b, c, d)
                x = math.copysign(_START + tail, place)
                break
            low, high = _HEIGHT[layer], _HEIGHT[layer + 1]
            if low + _uniform(bits) * (high - low) < math.exp(-0.5 * x * x):
                break
        out[i] = x
    words[0], words[1], words[2], words[3] = a, b, c, d


@njit
def _gamma(rng, shape, normal, uniform):
    """Return a gamma variate made of a normal and a uniform where they serve, else of the generator's.

    One trial of Marsaglia and Tsang (2000); trials that follow would have the same law as what the generator
    gives.
    """
    if shape >= 1.0:
        d = shape - 1.0 / 3.0
        root = 1.0 + normal / math.sqrt(9.0 * d)
        if root > 0.0:
            v = root * root * root
            if uniform == 0.0 or math.log(uniform) < 0.5 * normal * normal + d * (1.0 - v + math.log(v)):
                return d * v
    return rng.standard_gamma(shape)


@njit
def fill_gammas(rng, shapes, normals, uniforms, out, count):
    """Set out[:count] to gamma variates of the first `shapes`, of as many normals and uniforms.

    With t = x / sqrt(9 d), what the log of a uniform is compared with is -3 d t^4 times the integral of
    s^3 / (1 + t s) over [0, 1], for t > -1/2 above -0.01569 x^4 / d: so most need no logarithm.
    """
    for i in range(count):
        d = max(shapes[i], 1.0) - 1.0 / 3.0
        square = normals[i] * normals[i]
        root = 1.0 + normals[i] / math.sqrt(9.0 * d)
        fits = (shapes[i] >= 1.0) & (root > 0.5) & (uniforms[i] * d < d - 0.01569 * square * square)
        out[i] = d * root * root * root if fits else -1.0
    for i in range(count):
        if out[i] < 0.0:
            out[i] = _gamma(rng, shapes[i], normals[i], uniforms[i])
