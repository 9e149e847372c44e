"""What advice is asked for: a public population, and epsilons, numbers of records, mechanisms and a target.

All of it is checked before anything is computed; nothing heavy is imported for that, so that a command
refuses at once what makes no sense.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError, UsageError
from dpmix.numerics.in_words import brief
from dpmix.spec.days import Day
from dpmix.spec.kinds import MECHANISMS
from dpmix.spec.messages import did_you_mean

if TYPE_CHECKING:
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]
EPSILONS: Final = (0.5, 1.0, 2.0, 4.0)
RECORDS: Final = (1_000, 10_000, 100_000)
QUANTITIES: Final = ("mean", "median", "quantile[0.25]", "quantile[0.75]")
BAND: Final = "band"
_MOST_RECORDS = 10**12
_ALIASES = {"quantile[0.5]": "median"}
_EQUAL, _MOST = 24, 300  # equal cells of the domain, more where noise is finer
_TO_SCALE = 3.0  # of these to a scale of the noise
_BY_QUANTILE = 32  # cells of equal shares
_BEYOND = 8  # cells beyond each bound
_NEAREST, _REACH = 0.06, 2.0  # ends of the first and the last of them, as shares of the width
_NARROWEST = 1e-6  # of the width: cells that are narrower are joined

# What a command or a spec asks for


def epsilons_of(given: Sequence[float] | float | None) -> list[float]:
    """Return the epsilons of a list, in increasing order.

    Raises
    ------
    UsageError
        For one that is not positive, and for none.
    """
    found = _listed("--epsilon", given, EPSILONS)
    for value in found:
        if not (_is_real(value) and 0 < value <= sys.float_info.max):
            raise UsageError(f"--epsilon: {value} must be a positive number")
    if not len(found):
        raise UsageError("--epsilon: names none; give a list such as 0.5,1,2")
    return sorted({float(value) for value in found})


def _listed(name: str, given: Any, default: Sequence[float]) -> list[Any]:
    """Return what a list, an array or a number alone gives, each to be checked."""
    if given is None:
        return list(default)
    if isinstance(given, int | float | str | np.number):
        given = [given]
    try:
        found = np.ravel(given) if isinstance(given, np.ndarray) else list(given)
    except TypeError:
        raise UsageError(
            f"{name}: must be a number or a list of numbers, not {type(given).__name__}"
        ) from None
    return [value.item() if isinstance(value, np.number) else value for value in found]


def _is_real(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def records_of(given: Sequence[float] | float | None) -> list[int]:
    """Return the numbers of records of a list, in increasing order.

    Raises
    ------
    UsageError
        For one that is not a whole number from 1 on, and for none.
    """
    found = _listed("--n", given, RECORDS)
    for value in found:
        if not (_is_real(value) and 1 <= value <= _MOST_RECORDS and value == int(value)):
            raise UsageError(f"--n: {value} must be a whole number from 1 to {_MOST_RECORDS:,}")
    if not len(found):
        raise UsageError("--n: names none; give a list such as 1e3,1e4")
    return sorted({int(value) for value in found})


def density_kinds() -> list[str]:
    """Return the mechanisms whose releases tell the density of a column."""
    sections = {name: MECHANISMS.section(name) for name in MECHANISMS.names}
    return [
        name
        for name, section in sections.items()
        if section.protects and section.released in ("records", "histogram")
    ]


def needs_of(kind: str) -> list[str]:
    """Return what has to be stated of a mechanism beside epsilon, for nothing is assumed of it."""
    section = MECHANISMS.section(kind)
    required = [key for key, field in section.model_fields.items() if field.is_required()]
    return [key for key in required if key != "kind" and key not in section.assumed]


def needs_in_words(kind: str) -> str:
    """Say what has to be stated of a mechanism, and where."""
    return f"{kind} needs {' and '.join(needs_of(kind))}; state them in the spec's mechanism, of that kind"


def check_kinds(kinds: Sequence[str] | None) -> None:
    """Check that a list of mechanisms names some.

    Raises
    ------
    UsageError
        Where it is empty.
    """
    if kinds is not None and not kinds:
        raise UsageError("--mechanism: names none; give a list such as laplace,square_wave")


def check_kind(kind: str, own: str | None) -> None:
    """Check that a mechanism releases the density of a column, with no more to state than the spec's own.

    Raises
    ------
    UsageError
        Where it does not.
    """
    names = density_kinds()
    if kind not in names:
        guess = did_you_mean(kind, names)
        bare = kind in MECHANISMS and not MECHANISMS.section(kind).protects
        what = "takes no epsilon" if bare else "is no mechanism for the density of one column"
        raise UsageError(
            f"--mechanism: {kind[:40]} {what}; {guess + ' ' if guess else ''}known: {', '.join(names)}"
        )
    if kind != own and needs_of(kind):
        raise UsageError(f"--mechanism: {needs_in_words(kind)}")


def target_of(stated: Mapping[str, float] | None) -> dict[str, float]:
    """Return the wanted standard deviations by the names that rows have."""
    return {_ALIASES.get(name, name): sd for name, sd in (stated or {}).items()}


def quantities_of(spec: RunSpec) -> list[str]:
    """Return the names of what is told of a mixture."""
    groups = () if spec.groups is None else spec.groups[1]
    return [*([by_group(name, group) for group in groups for name in QUANTITIES] or QUANTITIES), BAND]


def by_group(name: str, group: str) -> str:
    """Return the name of a quantity in a group, or of a column."""
    return f"{name[:-1].replace('[', f'[{group},')}]" if name.endswith("]") else f"{name}[{group}]"


def check_target(target: Mapping[str, float], known: Sequence[str]) -> None:
    """Check that what is wanted is among the quantities that are known.

    Raises
    ------
    SpecError
        For one that is not.
    """
    for name in target:
        if name not in known:
            guess = did_you_mean(name, known)
            raise SpecError(
                f"advise.target.{name}: no quantity of this spec; {guess + ' ' if guess else ''}known: "
                f"{', '.join(known[:12])}{', ..' if len(known) > 12 else ''}"
            )


# The public population that releases are judged by


@dataclass(frozen=True)
class Population:
    """The distribution of a record.

    Parameters
    ----------
    name : str
        In words.
    cdf : callable
        Pr(Y <= y) before records are cut to the bounds.
    pair : (lo, hi)
        Public bounds.
    beyond : float
        Share of records beyond the bounds, which count as at the nearer one.
    """

    name: str
    cdf: Callable[[Floats], Floats]
    pair: tuple[float, float]
    beyond: float

    def below(self, y: Floats) -> Floats:
        """Return Pr(Y < y), or <= within the bounds, of a record as it is cut to the bounds."""
        lo, hi = self.pair
        return np.where(y < lo, 0.0, np.where(y >= hi, 1.0, self.cdf(np.clip(y, lo, hi))))

    def masses(self, edges: Floats) -> Floats:
        """Return the shares of records in the cells between finite edges, (edges + 1,)."""
        found: Floats = np.diff(self.below(edges), prepend=0.0, append=1.0)
        return found

    def quantiles(self, levels: Floats) -> Floats:
        """Return quantiles within the bounds, by interpolation."""
        lo, hi = self.pair
        grid = np.unique(
            np.concatenate([np.linspace(lo, hi, 4097), lo + (hi - lo) * np.geomspace(1e-6, 1, 2000)])
        )
        return np.asarray(np.interp(levels, self.cdf(grid), grid))

    def moments(self) -> tuple[float, float]:
        """Return mean and variance of a record as it is cut to the bounds."""
        lo, hi = self.pair
        edges = np.linspace(lo, hi, 20_001)[1:-1]
        shares, middles = self.masses(edges), np.concatenate([[lo], edges, [hi]])
        middles = 0.5 * (middles[1:] + middles[:-1])
        mean = float(shares @ middles)
        return mean, float(shares @ (middles - mean) ** 2)


def population_of(section: Any, pair: tuple[float, float]) -> Population:
    """Return the population of a spec's section ``advise.population``."""
    from scipy import stats  # late: what makes no sense is refused without it

    lo, hi = pair
    told: Any = Day if isinstance(lo, Day) else float  # what is a date is told as one
    cdf: Callable[[Floats], Floats]
    if section.kind == "beta":
        name = f"Beta({section.a:g}, {section.b:g}) on [{lo:.12g}, {hi:.12g}]"
        cdf = stats.beta(section.a, section.b, loc=lo, scale=hi - lo).cdf
    elif section.kind == "normal":
        name = f"N({told(section.mean):.12g}, {section.sd:.12g}^2)"
        cdf = stats.norm(section.mean, section.sd).cdf
    elif section.kind == "lognormal":
        mu, sigma = section.logarithm
        name = f"a lognormal with median {brief(np.exp(mu), 4)} and sigma {sigma:.3g}"
        cdf = stats.lognorm(sigma, scale=np.exp(mu)).cdf
    else:
        edges, weights = np.array(section.edges), np.array(section.weights)
        steps = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
        ends = f"[{told(edges[0]):.12g}, {told(edges[-1]):.12g}]"
        name = f"a public histogram of {len(weights)} pieces on {ends}"

        def cdf(y: Floats) -> Floats:
            return np.asarray(np.interp(y, edges, steps, left=0.0, right=1.0), dtype=np.float64)

    inside = np.asarray(cdf(np.array([lo, hi])), dtype=np.float64)
    return Population(name, cdf, pair, float(inside[0] + 1.0 - inside[1]))


def prior_predictive(family: Any, pair: tuple[float, float]) -> Population:
    """Return the prior predictive of a family within the bounds."""
    low, high = np.asarray(family.predictive_cdf(np.array(pair)), dtype=np.float64)

    def cdf(y: Floats) -> Floats:
        return np.asarray(np.clip((family.predictive_cdf(y) - low) / (high - low), 0.0, 1.0))

    return Population("the prior predictive within the bounds", cdf, pair, 0.0)


def cells_of(population: Population, scale: float, *, bounded: bool) -> Floats:
    """Return finite edges of fine cells of y: equal ones of the domain, and such of equal shares.

    `scale` is that of the noise, in the units of the data; infinite where it has none of that kind. Unless
    the kernel is `bounded`, on the bounds alone, there are cells beyond them too.
    """
    lo, hi = population.pair
    width = hi - lo
    equal = int(np.clip(np.ceil(_TO_SCALE * width / scale), _EQUAL, _MOST)) if scale > 0.0 else _MOST
    inner = np.concatenate(
        [
            np.linspace(lo, hi, equal + 1),
            population.quantiles(np.arange(1, _BY_QUANTILE) / _BY_QUANTILE),
            [lo + _NARROWEST * width, hi - _NARROWEST * width],
        ]
    )
    inner = np.unique(np.clip(inner, lo, hi))
    kept = np.concatenate([[True], np.diff(inner) >= 0.5 * _NARROWEST * width])
    inner = inner[kept]
    if bounded:
        return np.asarray(inner[(inner > lo) & (inner < hi)])
    steps = width * np.geomspace(_NEAREST, _REACH, _BEYOND)
    return np.concatenate([(lo - steps)[::-1], inner, hi + steps])
