"""Partitions of n records: losses between them, similarity, and greedy search for the least expected loss.

A partition is an array of n labels 0..k-1; S draws of it are an (S, n) int32 array with the numbers of labels
(S,). With n_h, m_k the block sizes of two partitions and n_hk those of their intersections,

    VI = (1/n) [sum f(n_h) + sum f(m_k) - 2 sum f(n_hk)],  f(x) = x log x   (in nats; Meila 2007),
    Binder = the share of the n (n - 1) / 2 pairs that are together in one and apart in the other,
    ARI = (T - A B / N) / ((A + B) / 2 - A B / N)   (Hubert and Arabie 1985),

A, B, T the pairs together in the one, the other, both, and N all pairs. The search is SALSO's (D. B. Dahl,
D. J. Johnson, P. Mueller 2022, Search algorithms and loss functions for Bayesian clustering, Journal of
Computational and Graphical Statistics 31, 1189-1201): records are allocated one by one in random order, each
to the cluster, an old or a new one, that makes the expected loss of the records so far smallest; then each
in turn is taken out and put where it fits best, until nothing moves; then whole clusters are dissolved and
their records allocated anew, where that helps.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.numerics.jit import njit, shuffled

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@njit
def compact(labels: NDArray[np.int64]) -> tuple[Ints, Ints]:
    """Renumber the labels of each draw by first appearance.

    Parameters
    ----------
    labels : int64 array (S, n)
        Not negative.

    Returns
    -------
    labels : int32 array (S, n)
    counts : int32 array (S,)
        Blocks of each draw.
    """
    draws, n = labels.shape
    out = np.empty((draws, n), dtype=np.int32)
    counts = np.zeros(draws, dtype=np.int32)
    top = 0
    for s in range(draws):
        for i in range(n):
            top = max(top, labels[s, i])
    new = np.empty(top + 1, dtype=np.int32)
    for s in range(draws):
        new[:] = -1
        for i in range(n):
            old = labels[s, i]
            if new[old] < 0:
                new[old] = counts[s]
                counts[s] += 1
            out[s, i] = new[old]
    return out, counts


@njit
def similarity(by_record: Ints) -> NDArray[np.float32]:
    """Share of draws in which two records are together.

    Parameters
    ----------
    by_record : int32 array (n, S)
        Labels of each record in all draws.

    Returns
    -------
    float32 array (n, n)
    """
    n, draws = by_record.shape
    out = np.empty((n, n), dtype=np.float32)
    for i in range(n):
        out[i, i] = 1.0
        for j in range(i):
            together = 0
            for s in range(draws):
                together += by_record[i, s] == by_record[j, s]
            out[i, j] = out[j, i] = together / draws
    return out


@njit
def losses(partition: Ints, count: int, labels: Ints, counts: Ints) -> Floats:
    """Compare a partition, of `count` blocks, with S draws.

    Returns
    -------
    float64 array (3, S)
        VI, Binder loss and ARI. With one record, or two partitions that are equal, 0, 0 and 1.
    """
    draws, n = labels.shape
    f = np.zeros(n + 1)
    for x in range(2, n + 1):
        f[x] = x * np.log(x)
    sizes = np.zeros(count, dtype=np.int64)
    for i in range(n):
        sizes[partition[i]] += 1
    own, own_pairs = 0.0, 0.0
    for h in range(count):
        own += f[sizes[h]]
        own_pairs += 0.5 * sizes[h] * (sizes[h] - 1)
    pairs = 0.5 * n * (n - 1)
    out = np.empty((3, draws))
    for s in range(draws):
        table = np.zeros((counts[s], count), dtype=np.int32)
        for i in range(n):
            table[labels[s, i], partition[i]] += 1
        other, other_pairs, both, both_pairs = 0.0, 0.0, 0.0, 0.0
        for k in range(counts[s]):
            size = 0
            for h in range(count):
                x = table[k, h]
                size += x
                both += f[x]
                both_pairs += 0.5 * x * (x - 1.0)
            other += f[size]
            other_pairs += 0.5 * size * (size - 1.0)
        if own_pairs + other_pairs - 2.0 * both_pairs == 0.0:
            out[0, s], out[1, s], out[2, s] = 0.0, 0.0, 1.0
            continue
        chance = own_pairs * other_pairs / pairs
        out[0, s] = max((own + other - 2.0 * both) / n, 0.0)
        out[1, s] = (own_pairs + other_pairs - 2.0 * both_pairs) / pairs
        out[2, s] = (both_pairs - chance) / (0.5 * (own_pairs + other_pairs) - chance)
    return out


@njit
def _best_vi(i, partition, at, delta, sizes, table, used, room):
    """Block that a record adds least to S n E[VI] in; `used` stands for a new one.

    The record itself may be in its block still.
    """
    draws = at.shape[1]
    best, least = -1, np.inf
    if room:
        best, least = used, 0.0
    for h in range(used):
        own = 1 if h == partition[i] else 0
        overlap = 0.0
        for s in range(draws):
            overlap += delta[table[h, at[i, s]] - own]
        change = draws * delta[sizes[h] - own] - 2.0 * overlap
        if change < least:
            best, least = h, change
    return best


@njit
def _best_binder(i, partition, wrong, apart, used, room):
    """Block that a record adds least to the expected wrong pairs in; `used` stands for a new one.

    The record itself may be in its block still.
    """
    best, least = -1, np.inf
    if room:
        best, least = used, 0.0
    for h in range(used):
        change = wrong[h, i] - (apart[i, i] if h == partition[i] else 0.0)
        if change < least:
            best, least = h, change
    return best


@njit
def _put(i, h, partition, sizes, table, at, wrong, apart, by_table):
    partition[i] = h
    sizes[h] += 1
    if by_table:
        for s in range(at.shape[1]):
            table[h, at[i, s]] += 1
    else:
        for j in range(partition.size):
            wrong[h, j] += apart[i, j]


@njit
def _take(i, partition, sizes, table, at, wrong, apart, by_table, used):
    """Take a record out; a block left empty is replaced by the last one. Returns the blocks in use."""
    h = partition[i]
    partition[i] = -1
    sizes[h] -= 1
    if by_table:
        for s in range(at.shape[1]):
            table[h, at[i, s]] -= 1
    else:
        for j in range(partition.size):
            wrong[h, j] -= apart[i, j]
    if sizes[h] > 0:
        return used
    last = used - 1
    if h != last:
        for j in range(partition.size):
            if partition[j] == last:
                partition[j] = h
        sizes[h] = sizes[last]
        sizes[last] = 0
        for cell in range(table.shape[1]):
            table[h, cell] = table[last, cell]
            table[last, cell] = 0
        for j in range(wrong.shape[1]):
            wrong[h, j] = wrong[last, j]
            wrong[last, j] = 0.0
    return last


@njit
def _place(order, partition, sizes, table, at, wrong, apart, delta, by_table, used, again):
    """Put each record of `order` where it fits best, first taken out if `again`; return blocks, moves."""
    moved = 0
    for i in order:
        before, alone = partition[i], False
        if again and sizes[before] == 1:
            alone = True
            used = _take(i, partition, sizes, table, at, wrong, apart, by_table, used)
        room = used < sizes.size
        if by_table:
            h = _best_vi(i, partition, at, delta, sizes, table, used, room)
        else:
            h = _best_binder(i, partition, wrong, apart, used, room)
        if again and not alone:
            if h == before:
                continue
            _take(i, partition, sizes, table, at, wrong, apart, by_table, used)
        if again and not (alone and h == used):
            moved += 1
        if h == used:
            used += 1
        _put(i, h, partition, sizes, table, at, wrong, apart, by_table)
    return used, moved


@njit
def _objective(partition, sizes, table, apart, by_table, used, draws):
    """Return the expected loss up to constants: of S n VI, or of wrong pairs."""
    total = 0.0
    if by_table:
        for h in range(used):
            total += draws * sizes[h] * np.log(sizes[h])
            for cell in table[h]:
                if cell > 1:
                    total -= 2.0 * cell * np.log(cell)
    else:
        for i in range(partition.size):
            for j in range(i):
                if partition[i] == partition[j]:
                    total += apart[i, j]
    return total


@njit
def search(
    start: Ints,
    at: Ints,
    cells: int,
    apart: NDArray[np.float32],
    room: int,
    sweeps: int,
    dissolve: int,
    rng: Generator,
) -> Ints:
    """Search from one start for a partition of small expected loss.

    Parameters
    ----------
    start : int32 array (n,)
        Labels to start from; -1 for records that are still to be allocated, in random order.
    at : int32 array (n, S)
        For VI: cell of each record in each draw, label * S + draw. For Binder loss: (n, 0).
    cells : int
        For VI: number of cells.
    apart : float32 array (n, n)
        For Binder loss: 1 - 2 Pr(i and j together). For VI: (0, 0).
    room : int
        Most blocks.
    sweeps : int
        Most passes over the records at a time.
    dissolve : int
        Clusters that are dissolved for a trial.
    rng : Generator
        Source of the orders.

    Returns
    -------
    int32 array (n,)
    """
    n, by_table = start.size, at.shape[1] > 0
    draws = at.shape[1]
    delta = np.zeros(n + 1)
    for x in range(1, n + 1):
        delta[x] = (x + 1) * np.log(x + 1) - x * np.log(x)
    partition = np.full(n, -1, dtype=np.int32)
    sizes = np.zeros(room, dtype=np.int64)
    table = np.zeros((room if by_table else 0, cells), dtype=np.int32)
    # sums over each block of `apart`, whose numbers are multiples of 2^-25: exact in whatever order
    wrong = np.zeros((room, 0 if by_table else n))
    used = 0
    records = np.arange(n)
    for i in range(n):
        if start[i] >= 0:
            used = max(used, start[i] + 1)
            _put(i, start[i], partition, sizes, table, at, wrong, apart, by_table)
    order = shuffled(rng, records)
    order = order[start[order] < 0]
    used, _ = _place(order, partition, sizes, table, at, wrong, apart, delta, by_table, used, False)
    best, least = partition.copy(), np.inf
    for trial in range(dissolve + 1):
        if trial > 0:
            order = shuffled(rng, records)
            order = order[partition[order] == rng.integers(0, used)]
            for i in order:
                used = _take(i, partition, sizes, table, at, wrong, apart, by_table, used)
            used, _ = _place(order, partition, sizes, table, at, wrong, apart, delta, by_table, used, False)
        for _ in range(sweeps):
            order = shuffled(rng, records)
            used, moved = _place(
                order, partition, sizes, table, at, wrong, apart, delta, by_table, used, True
            )
            if moved == 0:
                break
        found = _objective(partition, sizes, table, apart, by_table, used, draws)
        if found < least - 1e-9 * abs(least) or trial == 0:
            best, least = partition.copy(), found
        elif found > least:  # go back
            sizes[:] = 0
            table[:] = 0
            wrong[:] = 0.0
            used = 0
            for i in range(n):
                used = max(used, best[i] + 1)
                _put(i, best[i], partition, sizes, table, at, wrong, apart, by_table)
    return best
