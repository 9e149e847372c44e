"""Random numbers by the block: the generator's reference numbers, and the laws of uniforms, normals, gammas.

The p-values are compared with 1e-5, about 10 of them.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmix.numerics.streams import fill_gammas, fill_normals, fill_uniforms, make_words, seed

LEVEL = 1e-5
MANY = 4_000_000
ALL = 2**64 - 1
START = 3.6541528853610088  # of the lowest layer's tail


def xoshiro(state: list[int], count: int) -> list[int]:
    """Return words of xoshiro256++ as its authors' C code gives them, changing the state."""

    def turn(x: int, by: int) -> int:
        return ((x << by) | (x >> (64 - by))) & ALL

    found = []
    for _ in range(count):
        found.append((turn((state[0] + state[3]) & ALL, 23) + state[0]) & ALL)
        shifted = (state[1] << 17) & ALL
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = turn(state[3], 45)
    return found


def words(*values: int) -> np.ndarray:
    found = make_words()
    found[:] = np.array(values, dtype=np.uint64)
    return found


def test_words_are_those_of_the_reference() -> None:
    # the first outputs of the reference implementation from the state 1, 2, 3, 4
    assert xoshiro([1, 2, 3, 4], 3) == [41943041, 58720359, 3588806011781223]
    state, out = words(1, 2, 3, 4), np.zeros(200)
    fill_uniforms(state, out, 150)
    fill_uniforms(state, out[150:], 50)
    plain = [1, 2, 3, 4]
    np.testing.assert_array_equal(out, [(word >> 11) / 2**53 for word in xoshiro(plain, 200)])
    assert state.tolist() == plain


def test_seeds_follow_from_the_generator_and_fill_all_bits() -> None:
    first, again, seen = make_words(), make_words(), np.zeros(4, dtype=np.uint64)
    for i in range(64):
        seed(np.random.default_rng(i), first)
        seed(np.random.default_rng(i), again)
        assert first.tolist() == again.tolist()
        seen |= first
    assert seen.tolist() == [ALL] * 4


def test_normals_have_their_law_into_the_tails() -> None:
    state, out = make_words(), np.zeros(MANY)
    seed(np.random.default_rng(5), state)
    fill_normals(state, out, MANY)
    edges = np.concatenate([[-np.inf], np.linspace(-4.6, 4.6, 400), [np.inf]])
    counts = np.histogram(out, edges)[0]
    chances = np.diff(stats.norm.cdf(edges))
    assert stats.chisquare(counts, chances / chances.sum() * MANY).pvalue > LEVEL
    assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) * np.sqrt(MANY) < 4.5
    tails = []  # drawn in a way of their own
    for _ in range(20):
        fill_normals(state, out, MANY)
        tails.append(out[np.abs(out) > START])
    tail = np.abs(np.concatenate(tails))
    assert stats.binomtest(len(tail), 20 * MANY, 2.0 * stats.norm.sf(START)).pvalue > LEVEL
    assert stats.kstest(tail, stats.truncnorm(START, np.inf).cdf).pvalue > LEVEL


@pytest.mark.parametrize("shape", [0.3, 1.0, 2.0, 30.5])
def test_gammas_have_their_law(shape: float) -> None:
    state, rng, size = make_words(), np.random.default_rng(6), 200_000
    seed(rng, state)
    normals, uniforms, found = np.zeros(size), np.zeros(size), np.zeros(size)
    fill_normals(state, normals, size)
    fill_uniforms(state, uniforms, size)
    fill_gammas(rng, np.full(size, shape), normals, uniforms, found, size)
    assert stats.kstest(found, stats.gamma(shape).cdf).pvalue > LEVEL
