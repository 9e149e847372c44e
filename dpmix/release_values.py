"""Whether released values can have come from the mechanism that is stated: for files, whoever made them.

Errors name what is wrong, not the file: that is for the reader of the file to add.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

ADDITIVE = ("laplace", "gaussian")
STATISTICS = ("noisy_counts", "clamped_moments", "log_moments")
GLOBAL = ("smoothed_histogram", "perturbed_histogram", "synthetic", "posterior", *STATISTICS)
GENERATORS = (
    "pitman_yor",
    "dirichlet_multinomial",
    "perturbed_histogram",
    "smoothed_histogram",
    "posterior_predictive",
)


def trust_of(kind: str) -> str:
    """Return who is trusted: ``"global"`` for histograms and synthetic records, else ``"local"``."""
    return "global" if kind in GLOBAL else "local"


_WHOLE = {
    "wavelet": {"levels": 0},
    "binomial": {"trials": 1},
    "smoothed_histogram": {"bins": 1, "draws": 1},
    "perturbed_histogram": {"bins": 1},
}
_NOISES = ("laplace", "gaussian", "geometric")
_MOST_LEVELS = 24
_FAR = 30  # scales of noise: Laplace noise goes further with probability 1e-13
_MOST_BITS = 1000  # of weights that are doubles


def mechanism_problem(mechanism: Mapping[str, Any]) -> str | None:
    """Say what the description of a mechanism lacks; None where it is complete.

    Parameters
    ----------
    mechanism : mapping
        With ``kind``; anything else may be missing or wrong.

    Returns
    -------
    str or None
        One clause, such as "does not state its levels".
    """
    kind = mechanism["kind"]
    if kind == "none":
        return None
    if kind == "synthetic":
        return _synthetic_problem(mechanism)
    if kind == "posterior":
        return _posterior_problem(mechanism)
    if kind in STATISTICS:
        return _statistic_problem(mechanism)
    for key, least in _WHOLE.get(kind, {}).items():
        value = mechanism.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            return f"does not state its {key}, a whole number of at least {least}"
    if kind == "wavelet" and mechanism["levels"] > _MOST_LEVELS:
        return f"states more than {_MOST_LEVELS} levels"
    if kind in ("binomial", "smoothed_histogram"):
        weight = mechanism.get("weight", 0)
        if not _is_number(weight) or not 0 < weight <= 1 or (kind == "binomial" and weight == 1):
            return "does not state its weight, between 0 and 1"
    if kind == "perturbed_histogram" and mechanism.get("noise") not in _NOISES:
        return f"does not state its noise, one of {', '.join(_NOISES)}"
    if kind in _WHOLE:
        domain = mechanism.get("domain")
        pair = domain[0] if isinstance(domain, list) and len(domain) == 1 else None
        numbers = isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair))
        if not numbers or not pair[0] < pair[1]:  # type: ignore[index]  # a pair, if numbers
            return "does not state one pair of bounds"
    scale = mechanism.get("scale")
    if not isinstance(scale, list) or not all(_is_number(s) and s > 0 for s in scale):
        return "does not list a positive noise scale per column"
    if kind in ("wavelet", "perturbed_histogram") and len(scale) != 1:
        return "does not state one noise scale"
    return None


def _statistic_problem(mechanism: Mapping[str, Any]) -> str | None:
    """Say what the description of a noisy statistic lacks."""
    if mechanism["kind"] == "log_moments":
        return _log_moments_problem(mechanism)
    if mechanism["kind"] == "noisy_counts":
        levels, classes = mechanism.get("levels"), mechanism.get("classes")
        if not (isinstance(levels, list) and levels and all(_is_whole(level, 2) for level in levels)):
            return "does not state its levels, whole numbers of at least 2"
        if not _is_whole(classes, 1):
            return "does not state its classes, a whole number of at least 1"
    else:
        bounds = mechanism.get("bounds")
        if not (isinstance(bounds, list) and len(bounds) > 1 and all(map(_is_pair, bounds))):
            return "does not state its bounds, one pair per predictor and the response's last"
    if mechanism.get("noise") not in ("laplace", "geometric"):
        return "does not state its noise, laplace or geometric"
    scale = mechanism.get("scale")
    if not (isinstance(scale, list) and len(scale) == 1 and _is_number(scale[0]) and scale[0] > 0):
        return "does not state one noise scale"
    return None


def _log_moments_problem(mechanism: Mapping[str, Any]) -> str | None:
    if not _is_whole(mechanism.get("components"), 2):
        return "does not state its components, a whole number of at least 2"
    threshold = mechanism.get("threshold")
    if not _is_number(threshold) or not 0 < threshold < 1:  # type: ignore[operator]  # a number
        return "does not state its threshold, between 0 and 1"
    parts, scale = mechanism.get("parts"), mechanism.get("scale")
    if not (isinstance(parts, list) and len(parts) in (1, 2) and all(_is_whole(size, 1) for size in parts)):
        return "does not state the sizes of its parts"
    if not (
        isinstance(scale, list) and len(scale) == len(parts) and all(_is_number(s) and s > 0 for s in scale)
    ):
        return "does not list a positive noise scale per part"
    return None


def _posterior_problem(mechanism: Mapping[str, Any]) -> str | None:
    """Say what the description of a released posterior lacks."""
    prior = mechanism.get("prior")
    if not (isinstance(prior, list) and len(prior) > 1 and all(_is_number(a) and a > 0 for a in prior)):
        return "does not state its prior, positive numbers"
    if not _is_whole(mechanism.get("n"), 1):
        return "does not state its number of records n"
    if mechanism.get("method") == "hellinger":
        for key in ("gamma", "exponent_scale"):
            value = mechanism.get(key)
            if not _is_number(value) or not value > 0:  # type: ignore[operator]  # a number
                return f"does not state its {key}, a positive number"
        requested, bits = mechanism.get("requested"), mechanism.get("bits")
        epsilon = requested.get("epsilon") if isinstance(requested, Mapping) else None
        if not _is_number(epsilon) or not epsilon > 0:  # type: ignore[operator]  # a number
            return "does not state the epsilon that was requested, a positive number"
        if not _is_whole(bits, 1) or not bits <= _MOST_BITS:  # type: ignore[operator]  # a whole number
            return f"does not state its bits, a whole number from 1 to {_MOST_BITS}"
        return None
    if mechanism.get("method") not in ("laplace", "geometric"):
        return "does not state its method, hellinger, laplace or geometric"
    scale, noisy = mechanism.get("scale"), mechanism.get("noisy_counts")
    if not (isinstance(scale, list) and len(scale) == 1 and _is_number(scale[0]) and scale[0] > 0):
        return "does not state one noise scale"
    wanted = 1 if len(prior) == 2 else len(prior)
    if not (isinstance(noisy, list) and len(noisy) == wanted and all(map(_is_number, noisy))):
        return "does not list its noisy counts"
    if mechanism["method"] == "geometric" and not all(float(value).is_integer() for value in noisy):
        return "lists noisy counts that are not whole, as geometric noise leaves them"
    return None


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] < value[1]


def _is_snap(value: Any) -> bool:
    """Whether it says what `dpmix.cells.Grid.describe` does, or that there is no grid."""
    if not isinstance(value, Mapping):
        return value is None
    step: Any = value.get("step")
    pair: Any = value.get("domain")
    return _is_number(step) and step > 0 and _is_pair(pair) and pair[1] - pair[0] < 1e9 * step


def _is_base(value: Any) -> bool:
    """Whether it says what a base measure under `synthesis` does, or that there is none."""
    if not isinstance(value, Mapping):
        return value is None
    kind, edges, weights = (value.get(key) for key in ("kind", "edges", "weights"))
    if kind == "beta":
        return all(_is_number(value.get(key)) and value[key] > 0 for key in ("a", "b"))
    if kind != "histogram":
        return bool(kind == "uniform")
    if not (isinstance(edges, list) and isinstance(weights, list) and len(edges) == len(weights) + 1):
        return False
    if not all(map(_is_number, [*edges, *weights])):
        return False
    return min(weights, default=-1) >= 0 and sum(weights) > 0 and all(a < b for a, b in pairwise(edges))


def _synthetic_problem(mechanism: Mapping[str, Any]) -> str | None:
    """Say what the description of a generator of synthetic records lacks."""
    generator = mechanism.get("generator")
    if generator not in GENERATORS:
        return f"does not state its generator, one of {', '.join(GENERATORS)}"
    columns = mechanism.get("columns")
    if not isinstance(columns, list) or not columns:
        return "does not describe its columns"
    for part in columns:
        if not isinstance(part, Mapping) or not isinstance(part.get("name"), str):
            return "does not name every column"
        pair, categories = part.get("domain"), part.get("categories")
        if "domain" in part and not (
            isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair)) and pair[0] < pair[1]
        ):
            return f"does not state the bounds of {part['name']}"
        if "categories" in part and not (
            isinstance(categories, list) and categories and all(isinstance(c, str) for c in categories)
        ):
            return f"does not state the categories of {part['name']}"
    for key, is_one, what in (
        ("snap", _is_snap, "the grids that values were moved to"),
        ("base", _is_base, "the distributions of new values"),
    ):
        stated = mechanism.get(key)
        whole = isinstance(stated, list) and len(stated) == len(columns) and all(map(is_one, stated))
        if stated is not None and not whole:
            return f"does not state {what}, one entry per column"
    if generator == "posterior_predictive" and not isinstance(mechanism.get("post_processing"), str):
        return "does not say what it is post-processing of"
    numbers = _SYNTHETIC_NUMBERS.get(str(generator), ())
    for key in numbers:
        if not _is_number(mechanism.get(key)):
            return f"does not state its {key}, a number"
    if generator in ("dirichlet_multinomial", "perturbed_histogram", "smoothed_histogram"):
        bins = mechanism.get("bins")
        whole = isinstance(bins, list) and all(isinstance(b, int) and b > 0 for b in bins)
        if not whole or len(bins) != len(columns):  # type: ignore[arg-type]  # a list, if whole
            return "does not state its bins, one number per column"
    scale, noise = mechanism.get("scale"), mechanism.get("noise")
    if generator == "perturbed_histogram" or noise is not None:
        if noise not in _NOISES:
            return f"does not state its noise, one of {', '.join(_NOISES)}"
        if not (isinstance(scale, list) and len(scale) == 1 and _is_number(scale[0]) and scale[0] > 0):
            return "does not state one noise scale"
    return None


_SYNTHETIC_NUMBERS = {
    "pitman_yor": ("discount", "concentration"),
    "dirichlet_multinomial": ("concentration",),
    "smoothed_histogram": ("weight",),
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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
    if columns != 1:
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
    if rows != mechanism["bins"]:
        return f"has {_counted(rows, 'noisy count')}, but mechanism.bins is {mechanism['bins']}"
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
    if mechanism["kind"] == "noisy_counts":
        levels, classes = mechanism["levels"], mechanism["classes"]
        wanted = classes * sum(levels)
        why = f"levels {levels} in {classes} class{'es' * (classes != 1)}"
    elif mechanism["kind"] == "log_moments":
        d, parts = mechanism["components"], len(mechanism["parts"])
        wanted = d * parts
        why = f"{d} components" + (" of each of two parts" if parts == 2 else "")
    else:
        q = len(mechanism["bounds"])
        wanted = q + 1 + q * (q + 1) // 2 - 1
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
    if mechanism["kind"] in ("noisy_counts", "clamped_moments"):
        least = 0.0 if mechanism["kind"] == "noisy_counts" else -float(n)
        beyond = np.maximum(values - n, least - values) > _FAR * mechanism["scale"][0]
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


def _first(bad: NDArray[np.bool_], what: str, row: str) -> str | None:
    if not bad.any():
        return None
    more = int(bad.sum()) - 1
    return f"has a value that {what}: {row} {int(np.argmax(bad)) + 1}" + (
        f" (and {more} more)" if more else ""
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
