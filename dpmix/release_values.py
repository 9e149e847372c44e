"""Whether released values can have come from the mechanism that is stated: for files, whoever made them.

Errors name what is wrong, not the file: that is for the reader of the file to add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.release_mechanism import GLOBAL, STATISTICS, entries_of

_FAR = 30  # scales of noise: Laplace noise goes further with probability 1e-13


def groups_in(mechanism: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the groups of a release, whose sizes are private; none where it has no groups."""
    return tuple(next(iter((mechanism.get("groups") or {"": ()}).values())))


def width_of(mechanism: Mapping[str, Any], columns: int) -> int:
    """Return the number of columns that a release of `columns` confidential columns has.

    Parameters
    ----------
    mechanism : mapping
        With ``kind``; ``levels`` of a wavelet.
    columns : int
        Number of confidential columns.
    """
    return 2 ** (int(mechanism["levels"]) + 1) - 1 if mechanism["kind"] == "wavelet" else columns


def value_problem(
    mechanism: Mapping[str, Any],
    values: NDArray[np.float64],
    labels: Sequence[Sequence[str] | None] = (),
) -> str | None:
    """Say why values cannot be a release of this mechanism; None where they can.

    Parameters
    ----------
    mechanism : mapping
        As in `dpmix.release.Release`.
    values : ndarray of float64, shape (rows, columns)
        Finite.
    labels : sequence
        For each column of synthetic records the labels of its codes, None for numbers.

    Returns
    -------
    str or None
        One clause, such as "has 6 columns, but levels: 2 gives 7".
    """
    kind = mechanism["kind"]
    rows, columns = values.shape
    if kind == "wavelet":
        wanted = width_of(mechanism, 1)
        if columns != wanted:
            return (
                f"has {_counted(columns, 'column')}, but a wavelet release of levels "
                f"{mechanism['levels']} has {wanted}: one for each coefficient (j, k)"
            )
        return None
    if kind == "synthetic":
        for i, part in enumerate(mechanism["columns"]):
            names = labels[i] if labels else None
            if names is None and mechanism["generator"] == "posterior_predictive":
                continue  # a model may go on beyond the bounds
            low, high = part["domain"] if names is None else (0, len(names) - 1)
            column = values[:, i]
            bad = (column < low) | (column > high)
            what = f"lies outside [{low:g}, {high:g}]"
            if names is not None:
                bad |= column != np.floor(column)
                what = "is no code of its labels"
            problem = _first(bad, what, f"{part['name']}, record")
            if problem is not None:
                return problem
        return None
    if kind not in ("binomial", *GLOBAL):
        return None
    if kind == "posterior":
        return _no_posterior(mechanism, values)
    if kind in STATISTICS:
        return _wrong_length(mechanism, rows, columns)
    groups = groups_in(mechanism)
    if kind == "smoothed_histogram" and groups:
        if columns != 2:
            return f"has {_counted(columns, 'column')}, but draws of groups have two, place and code of group"
        codes = values[:, 1]
        bad = (codes != np.floor(codes)) | (codes < 0) | (codes >= len(groups))
        problem = _first(bad, f"is no code of {len(groups)} groups", "draw")
        if problem is not None:
            return problem
    elif columns != 1:
        return f"has {columns} columns, but a {kind} release has one"
    column = values[:, 0]
    if kind == "binomial":
        trials = mechanism["trials"]
        bad = (column != np.floor(column)) | (column < 0) | (column > trials)
        return _first(bad, f"is no whole number from 0 to the {trials} trials", "record")
    if kind == "smoothed_histogram":
        if rows != mechanism["draws"]:
            return f"has {_counted(rows, 'draw')}, but mechanism.draws is {mechanism['draws']}"
        low, high = mechanism["domain"][0]
        return _first((column < low) | (column > high), f"lies outside [{low:g}, {high:g}]", "draw")
    if rows != mechanism["bins"] * max(1, len(groups)):
        each = f" in each of {len(groups)} groups" if groups else ""
        return f"has {_counted(rows, 'noisy count')}, but mechanism.bins is {mechanism['bins']}{each}"
    if mechanism.get("noise") == "geometric":
        return _first(column != np.floor(column), "is no whole number, as geometric noise gives", "bin")
    return None


def _no_posterior(mechanism: Mapping[str, Any], values: NDArray[np.float64]) -> str | None:
    """Say why values cannot be the parameters of a posterior."""
    prior = np.array(mechanism["prior"])
    if values.shape != (prior.size, 1):
        return f"has not one number for each of the {prior.size} entries of the prior"
    counts, n = values[:, 0] - prior, mechanism["n"]
    slack = 1e-9 * (n + prior.sum())
    if (counts < -slack).any() or abs(counts.sum() - n) > slack:
        return f"is not the prior plus counts of {n} records"
    whole = mechanism["method"] == "hellinger" or (mechanism["method"] == "geometric" and prior.size == 2)
    if whole and (np.abs(counts - np.rint(counts)) > slack).any():
        return f"is not the prior plus whole counts, as method {mechanism['method']} gives"
    return None


def _wrong_length(mechanism: Mapping[str, Any], rows: int, columns: int) -> str | None:
    """Say whether a statistic has another length than its description gives."""
    if columns != 1:
        return f"has {columns} columns, but a {mechanism['kind']} release has one, of the whole statistic"
    groups = groups_in(mechanism)
    if mechanism["kind"] == "noisy_counts":
        levels, classes = mechanism["levels"], mechanism["classes"]
        wanted = classes * sum(levels) * max(1, len(groups))
        why = f"levels {levels} in {classes} class{'es' * (classes != 1)}"
        why += f" of each of {len(groups)} groups" if groups else ""
    elif groups:
        each = entries_of(mechanism)
        wanted = len(groups) - 1 + len(groups) * each
        why = f"the sizes of {len(groups)} groups but the last, and {_counted(each, 'sum')} of each,"
    elif mechanism["kind"] == "log_moments":
        d, parts = mechanism["components"], len(mechanism["parts"])
        wanted = d * parts
        why = f"{d} components" + (" of each of two parts" if parts == 2 else "")
    else:
        q = len(mechanism["bounds"])
        wanted = entries_of(mechanism)
        why = f"{_counted(q - 1, 'predictor')} and a response"
    if rows != wanted:
        return f"has {_counted(rows, 'number')}, but {why} give {wanted}"
    return None


def value_warning(mechanism: Mapping[str, Any], values: NDArray[np.float64], n: int) -> str | None:
    """Say what is legal and yet suspect in released values; None where nothing is.

    Noisy counts may be negative, and may exceed the number of records, which a wrong n or wrong bins do too.
    A count or moment far out of the reach of n records and their noise points to a wrong n, order or scale.

    Parameters
    ----------
    mechanism, values
        As in `value_problem`.
    n : int
        Number of confidential records.
    """
    grouped_sums = len(mechanism.get("scale") or ()) == 2 and bool(groups_in(mechanism))
    if grouped_sums or mechanism["kind"] in ("noisy_counts", "clamped_moments"):
        least: float | NDArray[np.float64] = 0.0 if mechanism["kind"] == "noisy_counts" else -float(n)
        most: float | NDArray[np.float64] = n
        scale: float | NDArray[np.float64] = mechanism["scale"][0]
        if grouped_sums:
            least, most, scale = _reach(mechanism, n)
        beyond = np.maximum(values - most, least - values) > _FAR * scale
        if not beyond.any():
            return None
        verb = "is" if beyond.sum() == 1 else "are"
        return (
            f"{int(beyond.sum())} of {_counted(values.size, 'number')} {verb} more than {_FAR} noise scales "
            f"beyond what {_counted(n, 'record')} can give: check n, the order, and the scale or epsilon"
        )
    if mechanism["kind"] != "perturbed_histogram":
        return None
    above = int((values > n).sum())
    if not above:
        return None
    return (
        f"{above} of {_counted(len(values), 'noisy count')} "
        f"{'is' if above == 1 else 'are'} above n = {n}: legal with noise, but check n and the bins"
    )


def _reach(mechanism: Mapping[str, Any], n: int) -> tuple[NDArray[np.float64], ...]:
    """Return the least and the most that sizes and sums of groups of n records can be, and their noise."""
    groups, entries = len(groups_in(mechanism)), entries_of(mechanism)
    centre = np.broadcast_to(np.asarray(mechanism["centre"], dtype=np.float64), (entries,))
    low, high = (np.log(mechanism["threshold"]), 0.0) if mechanism["kind"] == "log_moments" else (-1.0, 1.0)
    sizes = groups - 1
    least = np.concatenate([np.zeros(sizes), np.tile(np.minimum(n * (low - centre), 0.0), groups)])
    most = np.concatenate([np.full(sizes, float(n)), np.tile(np.maximum(n * (high - centre), 0.0), groups)])
    scale = np.repeat(np.asarray(mechanism["scale"], dtype=np.float64), (sizes, groups * entries))
    return least[:, None], most[:, None], scale[:, None]


def _first(bad: NDArray[np.bool_], what: str, row: str) -> str | None:
    if not bad.any():
        return None
    more = int(bad.sum()) - 1
    return f"has a value that {what}: {row} {int(np.argmax(bad)) + 1}" + (
        f" (and {more} more)" if more else ""
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
