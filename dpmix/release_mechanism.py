"""Whether the description of a mechanism says all that inference needs: for files, whoever made them.

Problems name what is wrong, not the file: that is for the reader of the file to add.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from dpmix.spec.grouping import GROUPED

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
_LARGEST = 10**300  # whole numbers in JSON have no bound
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
    if mechanism.get("groups") is not None:
        problem = _groups_problem(mechanism)
        if problem is not None:
            return problem
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


def entries_of(mechanism: Mapping[str, Any]) -> int:
    """Return the number of entries of a record's statistic: logarithms, or products of clamped values."""
    if mechanism["kind"] == "log_moments":
        return int(mechanism["components"])
    q = len(mechanism["bounds"])
    return q + 1 + q * (q + 1) // 2 - 1


def _groups_problem(mechanism: Mapping[str, Any]) -> str | None:
    """Say what the description of a release of groups lacks, but for its noise."""
    groups, kind = mechanism["groups"], mechanism["kind"]
    if kind not in GROUPED:
        return f"states groups, which a {kind} release has none of"
    names = next(iter(groups.values())) if isinstance(groups, Mapping) and len(groups) == 1 else None
    if not (
        isinstance(names, list)
        and len(names) > 1
        and all(isinstance(name, str) and name for name in (*groups, *names))
        and len(set(names)) == len(names)
    ):
        return "does not state its groups, one column with two different names or more"
    return None


def _weight_problem(mechanism: Mapping[str, Any]) -> str | None:
    """Say what the description of sums of groups lacks: how sizes and sums are weighted and centred."""
    kappa, centre, scale = (mechanism.get(key) for key in ("kappa", "centre", "scale"))
    if not _is_number(kappa) or not kappa > 0:  # type: ignore[operator]  # a number
        return "does not state its kappa, a positive number"
    if mechanism["kind"] == "log_moments":
        least = math.log(mechanism["threshold"]) - 1e-6
        if not _is_number(centre) or not least <= centre <= 0:  # type: ignore[operator]  # a number
            return "does not state its centre, a number between the logarithm of the threshold and 0"
    elif not (
        isinstance(centre, list)
        and len(centre) == entries_of(mechanism)
        and all(_is_number(c) and abs(c) <= 1 for c in centre)
    ):
        return f"does not state its centre, a number from -1 to 1 for each of {entries_of(mechanism)} entries"
    if not (isinstance(scale, list) and len(scale) == 2 and all(_is_number(s) and s > 0 for s in scale)):
        return "does not state two noise scales, of the groups' sizes and of their sums"
    if not math.isclose(kappa * scale[0], scale[1], rel_tol=1e-9):
        return "states a kappa that is not the noise scale of the sums by that of the sizes"
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
    if mechanism["kind"] == "clamped_moments" and mechanism.get("groups") is not None:
        return _weight_problem(mechanism)
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
    if mechanism.get("groups") is not None:
        if len(parts) != 1:
            return "states two parts of a release of groups"
        return _weight_problem(mechanism)
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
    if noisy is None and mechanism.get("stated") is True:
        return None  # made elsewhere: the posterior alone is known
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
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < _LARGEST
