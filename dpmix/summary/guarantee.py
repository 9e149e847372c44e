"""What a release guarantees, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpmix.figures import figure
from dpmix.release import replacing_in_words, unproved_in_words

_NAMES = {"laplace": "Laplace noise", "gaussian": "Gaussian noise"}
_HISTOGRAM_NOISE = {
    "laplace": "Laplace noise",
    "gaussian": "Gaussian noise",
    "geometric": "two-sided geometric noise",
}


def is_private(attrs: Mapping[str, Any]) -> bool:
    """Whether the release behind the chains was made with noise that nobody can reproduce."""
    return bool(int(attrs.get("private", 0)))


def is_simulated(attrs: Mapping[str, Any]) -> bool:
    """Whether the data behind the release were simulated."""
    return bool(int(attrs.get("simulated", 0)))


def adjacency_of(attrs: Mapping[str, Any]) -> str:
    """Return the neighbouring relation of the release behind the chains."""
    return str(attrs.get("adjacency", "replacement"))


def epsilon_in_words(attrs: Mapping[str, Any]) -> str:
    """Return "epsilon = 5", "epsilon = 1 and delta = 1e-06" or "rho = 0.5", whichever applies, or ""."""
    epsilon, delta, rho = (_number(attrs.get(name)) for name in ("epsilon", "delta", "rho"))
    if epsilon is not None:
        return f"epsilon = {figure(epsilon, 4)}" + (f" and delta = {figure(delta, 3)}" if delta else "")
    return "" if rho is None else f"rho = {figure(rho, 4)}"


def level_in_words(epsilon: float | None, delta: float | None, rho: float | None) -> str:
    """Return "5-differential privacy" and the like, rounded up, or "" where there is no guarantee."""
    parts = []
    if epsilon is not None and delta:
        parts.append(f"({figure(epsilon, 4)}, {figure(delta, 3)})-differential privacy")
    elif epsilon is not None:
        parts.append(f"{figure(epsilon, 4)}-differential privacy")
    if rho is not None:
        parts.append(f"{figure(rho, 4)}-zero-concentrated differential privacy")
    return " and ".join(parts)


def is_unproved(mechanism: Mapping[str, Any]) -> bool:
    """Whether what a mechanism claims is not proved: a posterior by P3's theorem (methods, section 14)."""
    return mechanism.get("kind") == "posterior" and mechanism.get("calibration") == "theorem"


def guarantee_in_words(attrs: Mapping[str, Any], mechanism: Mapping[str, Any], n: int) -> str:
    """Say what was done to the data, and what that guarantees to whom.

    Parameters
    ----------
    attrs : mapping
        `epsilon`, `delta`, `rho` (NaN where they do not apply), `private`, `simulated`; `adjacency`, the
        replacement of one record where it is missing, as in chains of earlier versions.
    mechanism : mapping
        The release's mechanism: `kind`, and its parameters.
    n : int
        Number of records.
    """
    kind = str(mechanism.get("kind", "none"))
    if kind == "none":
        return f"No noise was added: this is a fit to the {n} values themselves, and it is not private."
    if kind == "elsewhere":
        return (
            f"The released values were made of {n} records elsewhere, by a mechanism that the model "
            "describes; nothing is known here of what they guarantee."
        )
    done = _done(kind, mechanism, n)
    epsilon, delta, rho = (_number(attrs.get(name)) for name in ("epsilon", "delta", "rho"))
    level = level_in_words(epsilon, delta, rho)
    if not level:
        return f"{done} The release states no privacy guarantee."
    if is_simulated(attrs) or not is_private(attrs):
        why = "the data are simulated" if is_simulated(attrs) else "its noise can be reproduced from a seed"
        return f"{done} That gives {level}, but {why}, so this release itself protects nobody."
    return (
        f"{done} The release satisfies {level} with respect to "
        f"{replacing_in_words(adjacency_of(attrs))}. "
        "Everything computed from it, this summary included, keeps that guarantee."
    )


def _done(kind: str, mechanism: Mapping[str, Any], n: int) -> str:
    """Say what was done to n records."""
    scale = _scale(mechanism)
    if mechanism.get("groups"):
        return _done_by_groups(kind, mechanism, n)
    if kind in _NAMES:
        return f"{_NAMES[kind]}{scale} was added to each of {n} records on its own."
    if kind == "wavelet":
        levels = f" up to level {mechanism['levels']}" if "levels" in mechanism else ""
        return (
            f"Each of {n} records was released on its own as its Haar wavelet coefficients{levels}, with "
            f"Laplace noise{scale} added to each of them."
        )
    if kind == "binomial":
        return (
            f"Each of {n} records was released on its own as the number of successes in "
            f"{_of(mechanism, 'trials')}trials, whose probability is the record's place in the domain, drawn "
            f"towards a half{_weight(mechanism)}."
        )
    if kind == "smoothed_histogram":
        return (
            f"{_of(mechanism, 'draws')}draws from the histogram of {n} records over "
            f"{_of(mechanism, 'bins')}bins, mixed with the uniform density"
            f"{_weight(mechanism)}, were released for all of them together."
        )
    if kind == "perturbed_histogram":
        noise = _HISTOGRAM_NOISE.get(str(mechanism.get("noise", "laplace")), "noise")
        noise = noise[0].upper() + noise[1:]
        return (
            f"{noise}{scale} was added to the counts of {n} records in {_of(mechanism, 'bins')}bins, which "
            "were released for all of them together."
        )
    if kind == "synthetic":
        records = (
            f"{mechanism['records']} synthetic records" if "records" in mechanism else "Synthetic records"
        )
        return f"{records} were drawn{_drawn(mechanism, n)}, and released for all of them together."
    if kind == "noisy_counts":
        noise = _HISTOGRAM_NOISE[str(mechanism.get("noise", "laplace"))]
        return (
            f"{noise[0].upper()}{noise[1:]}{scale} was added to the counts of {n} records by class and "
            "level, which were released for all of them together."
        )
    if kind == "clamped_moments":
        return (
            f"Laplace noise{scale} was added to sums of products of the clamped and rescaled values of {n} "
            "records, which were released for all of them together."
        )
    if kind == "log_moments":
        at = f", censored at {float(mechanism['threshold']):g}" if "threshold" in mechanism else ""
        return (
            f"Laplace noise{scale} was added to the mean logarithms of the compositions of {n} records{at}, "
            "which were released for all of them together."
        )
    if kind == "posterior":
        return _posterior(mechanism, n)
    return f"The mechanism {kind}{scale} was applied to {n} records."


def _done_by_groups(kind: str, mechanism: Mapping[str, Any], n: int) -> str:
    """Say what was done to n records of groups whose sizes are private."""
    column, groups = next(iter(mechanism["groups"].items()))
    what = f"{n} records by {column} ({', '.join(map(str, groups))})"
    together = "which were released for all of them together; how many records a group has is private."
    if kind in ("log_moments", "clamped_moments"):
        of_sizes, of_sums = (float(s) for s in mechanism["scale"])
        sums = "sums of products of the clamped and rescaled values"
        if kind == "log_moments":
            at = f", censored at {float(mechanism['threshold']):g}" if "threshold" in mechanism else ""
            sums = f"sums of logarithms of the compositions{at},"
        return (
            f"Laplace noise of scale {of_sums:.4g} was added to the {sums} of {what}, and of scale "
            f"{of_sizes:.4g} to the sizes of these groups, {together}"
        )
    if kind == "smoothed_histogram":
        return (
            f"{_of(mechanism, 'draws')}draws from the histogram of {what} over {_of(mechanism, 'bins')}bins "
            f"in each group, mixed with the uniform density{_weight(mechanism)}, were released for all of "
            "them together; how many records a group has is private."
        )
    noise = _HISTOGRAM_NOISE.get(str(mechanism.get("noise", "laplace")), "noise")
    where = "by class and level" if kind == "noisy_counts" else f"in {_of(mechanism, 'bins')}bins"
    return (
        f"{noise[0].upper()}{noise[1:]}{_scale(mechanism)} was added to the counts of {what} {where}, "
        f"{together}"
    )


def _posterior(mechanism: Mapping[str, Any], n: int) -> str:
    """Say how a posterior was released."""
    categories = f" in {len(mechanism['prior'])} categories" if "prior" in mechanism else ""
    what = f"The posterior given the counts of {n} records{categories}"
    if mechanism.get("method") == "hellinger":
        found = {
            "certified": ", with a certificate",
            "proved": ", calibrated as has been proved",
            "theorem": f"; {unproved_in_words(mechanism)}",
        }
        how = found.get(str(mechanism.get("calibration")), "")
        return f"{what} was released by an exponential mechanism on the Hellinger distance{how}."
    noise = _HISTOGRAM_NOISE.get(str(mechanism.get("noise")), "noise")
    return f"{what} was released with {noise}{_scale(mechanism)} on the counts."


def _drawn(mechanism: Mapping[str, Any], n: int) -> str:
    """Say from what synthetic records were drawn."""
    generator = mechanism.get("generator")
    concentration = mechanism.get("concentration")
    if generator == "pitman_yor":
        discount = float(mechanism.get("discount", 0.0))
        process = "Dirichlet process" if discount == 0.0 else f"Pitman-Yor process of discount {discount:g}"
        stated = "" if concentration is None else f" (concentration {float(concentration):.4g})"
        return f" from the posterior predictive of a {process}{stated} given {n} records"
    cells = math.prod(int(count) for count in mechanism.get("bins") or ())
    over = f" over {cells} cells" if cells > 1 else ""
    if generator == "dirichlet_multinomial":
        stated = "" if concentration is None else f" (prior count {float(concentration):.4g} in each cell)"
        return f" from the posterior predictive of a Dirichlet-multinomial{over}{stated} given {n} records"
    noise = _HISTOGRAM_NOISE.get(str(mechanism.get("noise")))
    counts = "" if noise is None else f", with {noise}{_scale(mechanism)} added to its counts"
    if generator == "perturbed_histogram":
        return f" from the histogram of {n} records{over}{counts}"
    if generator == "smoothed_histogram":
        smooth = f", mixed with the uniform density{_weight(mechanism)}"
        return f" from the histogram of {n} records{over}{counts}{smooth}"
    return f" from a posterior given a release of {n} records"


def _of(mechanism: Mapping[str, Any], name: str) -> str:
    return f"{mechanism[name]} " if name in mechanism else ""


def _weight(mechanism: Mapping[str, Any]) -> str:
    return f" (weight {float(mechanism['weight']):.4g})" if "weight" in mechanism else ""


def _scale(mechanism: Mapping[str, Any]) -> str:
    scale = mechanism.get("scale")
    values = scale if isinstance(scale, list) else [] if scale is None else [scale]
    return f" of scale {', '.join(f'{float(v):.4g}' for v in values)}" if values else ""


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(float(value)) else float(value)
