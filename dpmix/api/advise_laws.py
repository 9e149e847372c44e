"""The laws of releases that advice is about, calibrated as releases are, from public quantities alone."""

from __future__ import annotations

from typing import Any

from dpmix.advising.asked import check_kind
from dpmix.advising.cell_information import knows
from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.curators.private_groups import groups_of
from dpmix.mechanisms.laws.every import Law, law_of, law_type
from dpmix.spec import RunSpec, load_spec
from dpmix.spec.kinds import MECHANISMS

__all__ = ["laws_of"]

_DELTA = 1e-6
Pair = tuple[float, float]


def laws_of(
    spec: RunSpec,
    pair: Pair,
    epsilons: list[float],
    records: list[int],
    kinds: list[str] | None,
    warnings: list[str],
) -> list[tuple[str, float, int, Law, float]]:
    """Return the law of each row, with its delta."""
    own = None if spec.mechanism is None else spec.mechanism.kind
    if own is not None and spec.mechanism is not None and not spec.mechanism.protects and kinds is None:
        own = None  # what is not protected is compared with what would be
    wanted = kinds if kinds is not None else _offered(spec, own)
    for kind in wanted:
        check_kind(kind, own)
        if not knows(law_type(kind)):
            raise SpecError(
                f"mechanism.kind: what {kind} tells of a density is not known here; choose another"
            )
        if not _by_epsilon(kind):
            raise SpecError(
                f"mechanism.kind: {kind} is not calibrated by epsilon, which advice goes by; choose another"
            )
    found = []
    for kind in dict.fromkeys(wanted):
        for epsilon in epsilons:
            for n in records:
                try:
                    law, delta = _law(spec, kind, own, pair, epsilon, n)
                except PrivacyError as error:
                    if kinds is not None or kind == own:
                        raise
                    warnings.append(f"{kind} is left out at epsilon = {epsilon:g}: {error}")
                    break
                found.append((kind, epsilon, n, law, delta))
    return found


def _offered(spec: RunSpec, own: str | None) -> list[str]:
    """Return the local mechanisms of one column that need nothing said, and the spec's own."""
    if spec.groups is not None:
        return [own] if own is not None else []
    local = [kind for kind in MECHANISMS.names if _needs_nothing(kind)]
    return local + ([own] if own is not None and own not in local else [])


def _needs_nothing(kind: str) -> bool:
    """Whether it is local, and calibrated for one column by epsilon and what is assumed."""
    section = MECHANISMS.section(kind)
    local = section.released == "records" and section.on_domain and section.protects
    needed = {key for key, field in section.model_fields.items() if field.is_required()} - {"kind"}
    return bool(local and needed <= set(section.assumed) and _by_epsilon(kind) and knows(law_type(kind)))


def _by_epsilon(kind: str) -> bool:
    return any("epsilon" in statement for statement in MECHANISMS.section(kind).statements)


def _law(spec: RunSpec, kind: str, own: str | None, pair: Pair, epsilon: float, n: int) -> tuple[Law, float]:
    """Return the law of a mechanism at an epsilon, as `privatize` calibrates it, and its delta."""
    section = MECHANISMS.section(kind)
    stated: dict[str, Any] = {"kind": kind, **section.assumed}
    if kind == own and spec.mechanism is not None:
        stated = spec.mechanism.model_dump(by_alias=True, exclude_none=True)
    delta = stated.get("delta")
    for key in {key for statement in section.statements for key in statement} | {"domain", "n", "order"}:
        stated.pop(key, None)
    if stated.get("calibration") in ("paper", "classical"):
        stated.pop("calibration")
    stated |= {"epsilon": epsilon, "domain": [list(pair)]}
    if ("epsilon",) not in section.statements or stated.get("noise") in ("gaussian", "discrete_gaussian"):
        stated["delta"] = _DELTA if delta is None else delta
    made = load_spec({"mechanism": stated}).mechanism
    assert made is not None  # just stated
    groups = groups_of(spec.groups) if section.grouped else None
    calibrated = from_spec(made, 1, n, (), (), groups)
    return law_of(calibrated.describe()), float(calibrated.guarantee.delta or 0.0)
