"""Running chains: seeds, threads, chunks of sweeps, checkpoints, interruption.

Chain k takes its generator from the k-th child of the seed, whichever process runs it. Between chunks of
sweeps a chain's thread looks whether to stop, and saves draws and state twice a minute, when the draws in
memory grow large, and at the end. Nothing of this changes the draws.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from numpy.random import PCG64, Generator, SeedSequence

from dpmix.errors import DpmixError, Interrupted, SamplerError
from dpmix.numerics.jit import compiling, keeps_code
from dpmix.run.exit_codes import put_off, stopping
from dpmix.run.progress import ChainProgress, Watch

if TYPE_CHECKING:
    from dpmix.run.model_protocols import ModelChain, Samples
    from dpmix.run.workspace import Workspace

# Stopping on signals: work that goes in pieces looks between them whether to stop


class Stop:
    """Whether to stop: asked by signals or by code, looked at by every thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._raises = False

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    def ask(self) -> None:
        """Ask everybody to stop."""
        self._event.set()

    def check(self) -> None:
        """Stop here if asked to.

        Raises
        ------
        Interrupted
            When asked.
        """
        if self.asked:
            raise Interrupted("interrupted; the state is saved: go on with --resume")

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let signals break off what runs in the block, which has no pieces to look between.

        Raises
        ------
        Interrupted
            When asked.
        """
        self._raises = True
        try:
            self.check()
            yield
        except KeyboardInterrupt:
            self.ask()
        finally:
            self._raises = False
        self.check()

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Take a signal; the second one ends the process, which loses nothing but what was never saved."""
        if self.asked:
            if hasattr(sys, "ps1"):  # an interactive session, which is not ours to end
                raise KeyboardInterrupt
            os.write(2, b"dpmix: stopped at once; go on from the last saved state with --resume\n")
            os._exit(128 + number)
        if self._raises and put_off(number, frame):
            return
        self.ask()
        if self._raises:
            raise KeyboardInterrupt


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Give a `Stop` that signals to stop ask, in the main thread; elsewhere signals are left alone."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop.handle) for number in stopping()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


# Running


CHECKPOINT_SECONDS = 30.0
CHECKPOINT_BYTES = 32 * 2**20
CHUNK_SECONDS = 0.1


@dataclass(frozen=True)
class Run:
    """What is to be sampled.

    Parameters
    ----------
    model : Samples
        The model given the release: what makes chains.
    iterations, burn_in, thin : int
        Sweeps per chain in all, of these without saving, and between saved draws.
    entropy : int
        The seed of all chains.
    chains : tuple of int
        Ids of the chains to run.
    """

    model: Samples
    iterations: int
    burn_in: int
    thin: int
    entropy: int
    chains: tuple[int, ...]

    @property
    def draws(self) -> int:
        """Saved draws of each chain."""
        return (self.iterations - self.burn_in) // self.thin


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def chain_generator(entropy: int, chain: int) -> Generator:
    """Return the generator of a chain, the same whichever process asks."""
    return Generator(PCG64(SeedSequence(entropy, spawn_key=(chain,))))


def _compile(task: Run) -> None:
    """Compile everything that a sweep and a saved draw need."""
    task.model.compile(chain_generator(task.entropy, task.chains[0]))


def _save(workspace: Workspace, chain: ModelChain, progress: ChainProgress) -> None:
    draws = chain.take()
    fault = chain.fault(draws)
    if fault is not None:
        what, advice = fault
        raise SamplerError(f"chain {progress.chain} {what} within its first {progress.done} sweeps; {advice}")
    workspace.add(progress.chain, draws, chain.snapshot(), progress.seconds)


def _run_chain(
    task: Run, workspace: Workspace, progress: ChainProgress, stop: Stop, pool: ThreadPoolExecutor | None
) -> float:
    """Run one chain to its end or until `stop`; return its seconds."""
    if stop.asked:
        return 0.0
    chain = task.model.make_chain(chain_generator(task.entropy, progress.chain), pool)
    saved = workspace.last(progress.chain)
    if saved is None:
        chain.keep(task.thin, task.burn_in)
    else:
        chain.restore(saved[0])
        progress.seconds = progress.seconds_before = saved[1]
        progress.done = progress.started_at = chain.sweeps
    step, checkpoint, unsaved = 1, time.monotonic(), False
    while chain.sweeps < task.iterations and not stop.asked:
        begin = time.perf_counter()
        chain.proceed(min(chain.sweeps + step, task.iterations))
        spent = time.perf_counter() - begin
        if spent < CHUNK_SECONDS / 2:
            step = min(2 * step, task.iterations)
        elif spent > 2 * CHUNK_SECONDS:
            step = max(step // 2, 1)
        progress.seconds += spent
        progress.done, progress.note = chain.sweeps, chain.note
        progress.acceptance_rate = chain.acceptance_rate
        unsaved = True
        if time.monotonic() - checkpoint > CHECKPOINT_SECONDS or chain.saved_bytes > CHECKPOINT_BYTES:
            _save(workspace, chain, progress)
            checkpoint, unsaved = time.monotonic(), False
    if unsaved:
        _save(workspace, chain, progress)
    return progress.seconds


@contextmanager
def _asking(stop: Stop) -> Iterator[None]:
    """Ask the threads to stop when the block, which waits for them, fails."""
    try:
        yield
    except BaseException:
        stop.ask()
        raise


def run(task: Run, workspace: Workspace, jobs: int, stop: Stop, watch: Watch) -> list[float]:
    """Run the chains of `task`, going on from what the workspace holds; return the seconds of each.

    Of `jobs` threads chains run side by side, and cores that are left work on blocks of records within them.
    `stop` is looked at, and `watch` shown the progress of all chains, several times a second.

    Raises
    ------
    Interrupted
        When stopped, after the states have been saved.
    SamplerError
        When a chain fails.
    DataError
        When a state cannot be saved or read.
    """
    kept = getattr(task.model, "keeps_code", True) and keeps_code()
    phase = f"compiling the sampler{', on first use only' if kept else ''}"
    with watch.phase(phase), compiling(partial(watch.compiling, kept)), stop.at_once():
        _compile(task)
    boards = [ChainProgress(chain, task.iterations) for chain in task.chains]
    side_by_side = min(jobs, len(boards))
    spare = jobs // side_by_side > 1
    failure: BaseException | None = None
    with (
        ThreadPoolExecutor(jobs if spare else 1) as pool,
        ThreadPoolExecutor(side_by_side) as threads,
        _asking(stop),
    ):
        futures: list[Future[float]] = [
            threads.submit(_run_chain, task, workspace, board, stop, pool if spare else None)
            for board in boards
        ]
        while True:
            done, waiting = wait(futures, timeout=0.2)
            watch.chains(boards)
            failure = next((future.exception() for future in done if future.exception()), None)
            if failure is not None:
                stop.ask()
            if not waiting:
                break
    if isinstance(failure, (DpmixError, OSError, MemoryError, Interrupted)):
        raise failure
    if failure is not None:
        raise SamplerError(f"a chain failed: {type(failure).__name__}: {failure}") from failure
    if any(board.done < task.iterations for board in boards):
        stop.check()
    return [future.result() for future in futures]
