"""Counting the pieces of a release: one after the other, by processes, or on a Dask cluster.

Counts are whole numbers, so that their sum depends neither on the order of pieces nor on who counted them. A
piece that was lost with its process is counted again.
"""

from __future__ import annotations

import importlib
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix._version import __version__
from dpmix.errors import DataError, DpmixError, UsageError
from dpmix.release.tally_parts import Piece, TallyGrid, count_piece

__all__ = ["count"]

Found = tuple[int, NDArray[np.int64]]

_PATIENCE = "10s"  # for a scheduler to answer


def count(
    pieces: Sequence[Piece], grid: TallyGrid, *, jobs: int = 1, scheduler: str | None = None
) -> Iterator[Found]:
    """Yield place and counts (cells,) of each piece, in no particular order.

    Parameters
    ----------
    pieces : sequence of Piece
    grid : Grid
    jobs : int
        Processes of this machine.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers see the files under the same names.

    Raises
    ------
    DataError
        As `count_piece`, and where workers were lost again and again.
    UsageError
        When distributed is not installed, or no scheduler answers.
    """
    if scheduler is not None:
        yield from _on_cluster(pieces, grid, scheduler)
    elif jobs == 1 or len(pieces) < 2:
        for place, piece in enumerate(pieces):
            yield place, count_piece(piece, grid)[0]
    else:
        yield from _by_processes(pieces, grid, min(jobs, len(pieces)))


def _by_processes(pieces: Sequence[Piece], grid: TallyGrid, jobs: int) -> Iterator[Found]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_deaf) as pool:
        try:
            places = {pool.submit(count_piece, piece, grid): place for place, piece in enumerate(pieces)}
            for future in as_completed(places):
                yield places[future], future.result()[0]
        except BrokenProcessPool as error:
            raise DataError(
                "a process that counted was ended from outside; fewer --jobs need less"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _deaf() -> None:
    """Leave Ctrl-C to the process that waits for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _on_cluster(pieces: Sequence[Piece], grid: TallyGrid, address: str) -> Iterator[Found]:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise UsageError("--scheduler: needs the package distributed, which is not installed") from None
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise UsageError(f"--scheduler {address}: no Dask scheduler answers there") from error
    with client:
        places = {}
        try:
            for place, piece in enumerate(pieces):
                places[client.submit(count_piece, piece, grid, pure=False)] = place
            for future in distributed.as_completed(places, loop=client.loop):
                counts, version = future.result()
                if version != __version__:
                    raise DataError(
                        f"--scheduler {address}: a worker has dpmix {version}, and here is {__version__}; "
                        "install the same everywhere"
                    )
                yield places[future], counts
        except DpmixError:
            raise
        except Exception as error:
            raise DataError(f"--scheduler {address}: {_lost(error)}") from error
        finally:
            client.cancel(list(places))


def _lost(error: Exception) -> str:
    if type(error).__name__ == "KilledWorker":
        return "workers were lost with the same piece again and again; do they have the memory?"
    if isinstance(error, ModuleNotFoundError):
        return f"workers do not have the module {error.name}; install dpmix there too"
    return f"the cluster was lost ({type(error).__name__})"
