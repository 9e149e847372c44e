"""How a sweep goes through the records: in one piece within compiled code, or in blocks on threads.

A block has its own generator, and blocks depend on n alone, so that the draws do not depend on the number
of threads. A sweep is one function for both: compiled whole when it runs `Serial`, plain Python over
compiled phases when it runs on `Threads`, where the phases are long enough for that to cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

from numpy.random import Generator

from dpmix.samplers.state import TILE

__all__ = ["BLOCK_TILES", "Serial", "Threads", "block_count"]

BLOCK_TILES = 8
SERIAL_LIMIT = 65536


class Serial(NamedTuple):
    """All records in one piece."""

    blocks: int = 1


class Threads:
    """Blocks of records on the threads of a pool; `rngs` has one generator a block."""

    def __init__(self, n: int, rngs: Sequence[Generator], pool: Executor | None) -> None:
        size = BLOCK_TILES * TILE
        self.bounds = [(start, min(start + size, n)) for start in range(0, n, size)]
        self.rngs = list(rngs)
        self.pool = pool

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return [function(block, start, stop, rng, *args)] over the blocks, in their order."""
        calls = [(b, start, stop, self.rngs[b]) for b, (start, stop) in enumerate(self.bounds)]
        if self.pool is None:
            return [function(*call, *args) for call in calls]
        return list(self.pool.map(lambda call: function(*call, *args), calls))


def block_count(n: int) -> int:
    """Return the number of blocks that `n` records are worked in; 1 means `Serial`."""
    return 1 if n <= SERIAL_LIMIT else -(-n // (BLOCK_TILES * TILE))
