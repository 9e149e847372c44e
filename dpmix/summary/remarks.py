"""The warnings of a summary, in words, and the thresholds behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpmix.figures import figure
from dpmix.store.chains_reader import ChainSet
from dpmix.summary.diagnostics import Scalar
from dpmix.summary.guarantee import epsilon_in_words, is_private, is_simulated
from dpmix.summary.result import Acceptance, Remark

RHAT = 1.01
ESS = 400.0
INDISTINGUISHABLE = 0.1
"""Hellinger distance up to which posterior and prior predictive are called indistinguishable.

The total variation distance is then at most H sqrt(2 - H^2) = 0.141: whoever is shown one record drawn from
either of the two guesses which it was correctly with probability at most 0.57, where a coin has 0.5.
"""
NEAR_BOUND = 0.1
"""Share of the way from the acceptance's lower bound up to 1 within which it is called near the bound."""


def convergence_remarks(
    parameters: Mapping[str, Scalar], acceptance: Acceptance, chains: ChainSet
) -> list[Remark]:
    """Say what speaks against trusting the chains.

    Parameters
    ----------
    parameters : mapping of str to Scalar
        The scalars and their diagnostics.
    acceptance : Acceptance
        Mean acceptance and its bound.
    chains : ChainSet
        For the chains that should be there.
    """
    texts = []
    stuck = [name for name, scalar in parameters.items() if scalar.stuck_apart]
    if stuck:
        texts.append(
            f"The chains are stuck, each at a value of its own, in {_listed(stuck)}: do not use them."
        )
    high = _where(parameters, lambda s: s.rhat, lambda value: value > RHAT, ".3f")
    if high:
        texts.append(
            f"R-hat is above {RHAT} for {_listed(high)}: the chains do not agree yet; run more iterations."
        )
    for name, ess in (("Bulk", lambda s: s.ess_bulk), ("Tail", lambda s: s.ess_tail)):
        low = _where(parameters, ess, lambda value: value < ESS, ".0f")
        if low:
            texts.append(
                f"{name} ESS is below {ESS:.0f} for {_listed(low)}: run more iterations for reliable figures."
            )
    if all(scalar.ess_bulk is None for scalar in parameters.values()):
        texts.append(
            f"{chains.draws} draws per chain are too few for any diagnostic: convergence is unknown."
        )
    elif len(chains.ids) == 1:
        texts.append(
            "One chain alone: R-hat needs at least two, so convergence is not checked across chains."
        )
    planned = (chains.spec.get("sampler") or {}).get("chains")
    if isinstance(planned, int) and len(chains.ids) < planned:
        missing = [str(i) for i in range(planned) if i not in chains.ids]
        texts.append(
            f"{len(chains.ids)} of the spec's {planned} chains are here; missing: {_listed(missing)}."
        )
    mean, bound = acceptance.mean, acceptance.bound
    # at bounds above 1/2 every second proposal is accepted in any case: nothing to warn of
    if mean is not None and bound is not None and bound <= 0.5 and mean <= bound + NEAR_BOUND * (1.0 - bound):
        texts.append(
            f"Acceptance ({mean:.3g}) is near its lower bound e^-epsilon = {bound:.3g}: proposals are seldom "
            "taken; a sampler with exact latent updates mixes better."
        )
    return [Remark(text, convergence=True) for text in texts]


def release_remarks(distance: float | None, bias: float, chains: ChainSet) -> list[Remark]:
    """Say what speaks against reading much into the release.

    Parameters
    ----------
    distance : float or None
        Hellinger distance of the posterior mean density from the prior predictive, where there is one.
    bias : float
        What Monte Carlo error adds to its square on average.
    chains : ChainSet
        For the guarantee.
    """
    texts = []
    if distance is not None and distance**2 - bias <= INDISTINGUISHABLE**2:
        texts.append(
            "The posterior density is indistinguishable from the prior's (Hellinger distance "
            f"{distance:.2g}): this release says almost nothing{_at(chains.attrs, chains.mechanism)}."
        )
    if chains.mechanism.get("kind") == "none":
        texts.append("No noise was added to the data behind this fit: it is not private.")
    elif is_simulated(chains.attrs):
        texts.append("The release comes from simulated data: it protects nobody and describes nobody.")
    elif not is_private(chains.attrs):
        texts.append("The release is marked as not private: its noise can be reproduced.")
    delta, n = float(chains.attrs.get("delta", 0.0)), chains.n
    if n and delta >= 1.0 / n:
        texts.append(
            f"delta = {figure(delta, 3)} is 1/n or more: that much permits publishing somebody's record "
            "verbatim."
        )
    if str(chains.attrs.get("variance_ratio", "1")) != "1":  # of other releases it was 1
        texts.append(
            "These chains were run by an earlier version, whose posterior given synthetic records was that "
            "of a measure which these share with the confidential ones, and too narrow: fit again."
        )
    if len(chains.versions) > 1:
        texts.append(f"The chains were run by different versions of dpmix: {_listed(list(chains.versions))}.")
    return [Remark(text, convergence=False) for text in texts]


def _at(attrs: Mapping[str, Any], mechanism: Mapping[str, Any]) -> str:
    words = "" if mechanism.get("kind") == "none" else epsilon_in_words(attrs)
    return f" at {words}" if words else ""


def _where(
    parameters: Mapping[str, Scalar],
    figure: Callable[[Scalar], float | None],
    bad: Callable[[float], bool],
    form: str,
) -> list[str]:
    found = []
    for name, scalar in parameters.items():
        value = figure(scalar)
        if value is not None and bad(value):
            found.append(f"{name} ({value:{form}})")
    return found


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
