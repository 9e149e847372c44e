"""Which of the released synthetic records show that they are new ones, or old ones.

Free labels: what was made up is called `new_category_1`, ... (A confidential label of that form is taken
for a new one.) Numbers moved to a public grid: where some released values lie off it, the confidential
records are not on it, and under a base measure without atoms those on it are new. Where all released values
are on the grid the confidential ones are taken to be on it, and nothing is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmix.cells import Grid
from dpmix.errors import DataError
from dpmix.models.discrete_public import Public, confidential
from dpmix.release import Release

__all__ = ["told_apart"]

_RARE = 1e-6  # probability of so many new values below which a grid cannot be what makes them

Floats = NDArray[np.float64]


def told_apart(
    release: Release, public: Public, grids: Sequence[Grid | None], concentration: float
) -> tuple[tuple[Grid | None, ...], Floats, int, bool]:
    """Return what a release of synthetic records shows of old and new ones.

    Parameters
    ----------
    release : Release
    public : Public
    grids : sequence of Grid or None
        That new numbers of each column were moved to.
    concentration : float

    Returns
    -------
    grids : tuple of Grid or None
        Those that the confidential records are on.
    values : array (r, D)
        The released records that may be confidential values, with codes as in `public.names`.
    distinct : int
        Number of distinct released records, new ones among them.
    shown : bool
        Whether all of `values` are values of confidential records.

    Raises
    ------
    DataError
        When more records are on a grid than new ones can be.
    """
    values = np.array(release.values, dtype=np.float64)
    distinct = len(np.unique(values, axis=0))
    new = np.zeros(len(values), dtype=bool)
    free = [i for i, column in enumerate(public.columns) if column.free]
    for i in free:
        known = (release.labels[i] if release.labels else None) or ()
        old = np.array([confidential(label) for label in known], dtype=bool)
        codes = values[:, i].astype(np.int64)
        new |= ~old[codes]
        values[:, i] = (np.cumsum(old) - 1)[codes]
    kept = list(grids)
    on_all = np.ones(len(values), dtype=bool)
    for i, grid in enumerate(grids):
        if grid is None:
            continue
        on = values[:, i] == grid.nearest(values[:, i])
        if not on.all():
            kept[i] = None
            on_all &= on
    off = any(grid is not mine for grid, mine in zip(grids, kept, strict=True))
    if off and not free:
        _check_rare(int(on_all.sum()), len(values), release.n, concentration)
        new |= on_all
    shown = off or bool(free)
    return tuple(kept), values[~new], distinct, shown


def _check_rare(on: int, records: int, n: int, concentration: float) -> None:
    """Refuse a grid that some confidential records are on, and others are not."""
    from scipy.stats import betabinom  # late, as it is slow to import

    if on and concentration > 0.0 and betabinom.sf(on - 1, records, concentration, n) < _RARE:
        raise DataError(
            f"{on} of {records} released records are on the grid synthesis.snap and the others are not, more "
            "than new ones can be: which of them are confidential values is not known; release records "
            "without synthesis.snap, or with a grid that all confidential records are on"
        )
