"""Running chains: seeds, threads, chunks of sweeps, checkpoints, interruption.

Chain k takes its generator from the k-th child of the seed, whichever process runs it. Between chunks of sweeps
a chain's thread looks whether to stop, and saves a segment (draws and state) twice a minute, when the draws in
memory grow large, and at the end. Nothing of this changes the draws.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from dpmix.errors import Interrupted, SamplerError
from dpmix.mixing import PitmanYor
from dpmix.samplers import Algorithm, Chain
from dpmix.store.chains import Workspace

__all__ = ["Progress", "Run", "available_cores", "chain_generator", "run"]

CHECKPOINT_SECONDS = 30.0
CHECKPOINT_BYTES = 32 * 2**20
_CHUNK_SECONDS = 0.1


@dataclass(frozen=True)
class Run:
    """What is to be sampled.

    Parameters
    ----------
    z : (n,) array
        Released values.
    channel, kernel : NamedTuples of `dpmix.channels` and `dpmix.kernels`
    mixing : PitmanYor
    algorithm : Algorithm
    iterations, burn_in, thin : int
        Sweeps per chain in all, of these without saving, and between saved draws.
    entropy : int
        The seed of all chains.
    chains : tuple of int
        Ids of the chains to run.
    allocations : bool
        Whether allocations are saved.
    """

    z: NDArray[np.float64]
    channel: Any
    kernel: Any
    mixing: PitmanYor
    algorithm: Algorithm
    iterations: int
    burn_in: int
    thin: int
    entropy: int
    chains: tuple[int, ...]
    allocations: bool


@dataclass
class Progress:
    """How far one chain is; written by its thread, read by whoever shows it."""

    chain: int
    total: int
    done: int = 0
    n_clusters: int = 0
    acceptance_rate: float = float("nan")
    seconds: float = 0.0
    started_at: int = field(default=0)


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def chain_generator(entropy: int, chain: int) -> Generator:
    """Return the generator of a chain, the same whichever process asks."""
    return Generator(PCG64(SeedSequence(entropy, spawn_key=(chain,))))


@contextmanager
def _stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Set `stop` on SIGINT and SIGTERM, in the main thread; elsewhere leave signals alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    for name in before:
        signal.signal(name, lambda *_: stop.set())
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _make_chain(task: Run, chain: int, pool: ThreadPoolExecutor | None) -> Chain:
    rng = chain_generator(task.entropy, chain)
    return Chain(task.z, task.channel, task.kernel, task.mixing, task.algorithm, rng, pool)


def _run_chain(
    task: Run,
    workspace: Workspace,
    progress: Progress,
    stop: threading.Event,
    pool: ThreadPoolExecutor | None,
) -> float:
    """Run one chain to its end or until `stop`; return its seconds."""
    chain = _make_chain(task, progress.chain, pool)
    saved = workspace.last(progress.chain)
    if saved is None:
        chain.keep(task.thin, task.burn_in, task.allocations)
    else:
        chain.restore(saved[0], task.allocations)
        progress.seconds = saved[1]
        progress.done = progress.started_at = chain.sweeps
    step, checkpoint, fresh = 1, time.monotonic(), saved is None
    while chain.sweeps < task.iterations and not stop.is_set():
        begin = time.perf_counter()
        chain.proceed(min(chain.sweeps + step, task.iterations))
        spent = time.perf_counter() - begin
        if spent < _CHUNK_SECONDS / 2 or spent > 2 * _CHUNK_SECONDS:
            step = max(1, min(2 * step if spent < _CHUNK_SECONDS else step // 2, task.iterations))
        progress.seconds += spent
        progress.done, progress.n_clusters = chain.sweeps, chain.n_clusters
        progress.acceptance_rate = chain.acceptance_rate
        fresh = True
        if time.monotonic() - checkpoint > CHECKPOINT_SECONDS or chain.saved_bytes > CHECKPOINT_BYTES:
            workspace.add(progress.chain, chain.take(), chain.snapshot(), progress.seconds)
            checkpoint, fresh = time.monotonic(), False
    if fresh:
        workspace.add(progress.chain, chain.take(), chain.snapshot(), progress.seconds)
    return progress.seconds


def run(
    task: Run,
    workspace: Workspace,
    jobs: int,
    watch: Callable[[Sequence[Progress]], None] = lambda _: None,
) -> list[float]:
    """Run the chains of `task`, going on from what the workspace holds; return the seconds of each.

    Parameters
    ----------
    task : Run
    workspace : Workspace
        Where segments go.
    jobs : int
        Threads: chains run side by side, and cores that are left work on blocks of records within them.
    watch : callable
        Called several times a second with the progress of all chains.

    Raises
    ------
    Interrupted
        On SIGINT or SIGTERM, after the states have been saved.
    SamplerError
        When a chain fails.
    """
    boards = [Progress(chain, task.iterations) for chain in task.chains]
    stop = threading.Event()
    side_by_side = min(jobs, len(boards))
    spare = jobs // side_by_side > 1
    failure: BaseException | None = None
    with (
        _stop_on_signals(stop),
        ThreadPoolExecutor(jobs if spare else 1) as pool,
        ThreadPoolExecutor(side_by_side) as threads,
    ):
        _make_chain(task, task.chains[0], None).proceed(0)  # compile once, before the threads start
        futures: list[Future[float]] = [
            threads.submit(_run_chain, task, workspace, board, stop, pool if spare else None) for board in boards
        ]
        while True:
            done, waiting = wait(futures, timeout=0.2)
            watch(boards)
            failure = next((f.exception() for f in done if f.exception()), None)
            if failure is not None:
                stop.set()
            if not waiting:
                break
    if failure is not None:
        if isinstance(failure, (OSError, MemoryError)) or type(failure).__module__.startswith("dpmix"):
            raise failure
        raise SamplerError(f"a chain failed: {failure}") from failure
    if any(board.done < task.iterations for board in boards):
        raise Interrupted("interrupted; the state is saved: go on with --resume")
    return [future.result() for future in futures]
