"""The checks of samplers can fail: plain samplers with one fault each, which the same checks must catch.

The enumeration check and the joint-distribution test that dpmix's samplers have to pass are run on the
samplers of `tests.oracles.reference`. The right ones pass; each fault goes beyond the thresholds by a wide
margin.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracles import cases
from tests.oracles import reference as rf
from tests.oracles.joint import exact_restarts, joint_p_values
from tests.oracles.mc import compare

DRAWS, THIN, RESTARTS = 5000, 5, 800
PASS, CAUGHT = (
    4.0,
    6.0,
)  # standard errors: below the first for the right samplers, above the second for the wrong
QUICK = {
    "new cluster weighs alpha, not alpha + k d",
    "stick without the later counts",
}
LEVEL = 1e-5  # p-values: above this for the right samplers, below it for the wrong
GAMMA = cases.GAMMA

RIGHT = [
    ("neal8", 3, 0.3, GAMMA),
    ("slice", 1, 0.0, GAMMA),
    ("slice", 1, 0.3, 1.0),
    ("neal5", 4, 0.0, 1.0),
]
# name: sampler, auxiliaries, discount, concentration, fault
WRONG = {
    "a singleton forgets its theta": ("neal8", 1, 0.0, 1.0, rf.FORGET_SINGLETON),
    "new cluster weighs alpha, not alpha + k d": ("neal8", 1, 0.3, 1.0, rf.NEW_WITHOUT_DISCOUNT),
    "old cluster weighs n_h, not n_h - d": ("neal8", 1, 0.3, 1.0, rf.OLD_WITHOUT_DISCOUNT),
    "latent values never redrawn": ("neal8", 1, 0.0, 1.0, rf.LATENT_STUCK),
    "theta of a singleton from the prior": ("neal8", 1, 0.0, 1.0, rf.THETA_FROM_PRIOR),
    "each auxiliary weighs as much as one": ("neal8", 3, 0.0, 1.0, rf.NEW_TIMES_M),
    "f in place of g": ("neal8", 1, 0.0, 1.0, rf.KERNEL_FOR_MARGINAL),
    "Escobar and West without the k - 1 branch": ("neal8", 1, 0.0, GAMMA, rf.CONCENTRATION_SHAPE),
    "stick without h d": ("slice", 1, 0.3, 1.0, rf.STICK_WITHOUT_DISCOUNT),
    "stick without the later counts": ("slice", 1, 0.0, 1.0, rf.STICK_WITHOUT_LATER),
    "slice weight not divided by xi": ("slice", 1, 0.0, 1.0, rf.WEIGHT_WITHOUT_XI),
    "sticks extended before the new u": ("slice", 1, 0.0, 1.0, rf.OLD_SLICES),
    "theta given one of m auxiliaries": ("neal5", 4, 0.0, 1.0, rf.ONE_AUXILIARY_FOR_THETA),
    "proposal by n_h, not n_h - d": ("neal5", 1, 0.3, 1.0, rf.OLD_WITHOUT_DISCOUNT_5),
}


def worst_gap(kind: str, m: int, d: float, alpha: float | tuple[float, float], fault: int) -> float:
    """Largest gap to the exact posterior in standard errors."""
    model = cases.model("laplace-near", d, alpha)
    chain = rf.ReferenceChain(cases.Z.copy(), model, kind, m, fault, np.random.default_rng(29))
    chain.advance(200)
    draws = chain.run(DRAWS, THIN)
    gaps = compare(draws, cases.table("laplace-near"), cases.exact("laplace-near", d, alpha), d, batches=100)
    return max(float(np.max(np.abs(gap))) for group in gaps for gap in group.values())


def worst_p_value(kind: str, m: int, d: float, alpha: float | tuple[float, float], fault: int) -> float:
    """Smallest p-value of the joint-distribution test."""
    model, rng = cases.model("laplace-near", d, alpha), np.random.default_rng(31)
    found = exact_restarts(
        lambda z: rf.ReferenceChain(z, model, kind, m, fault, rng),
        model,
        len(cases.Z),
        rng,
        RESTARTS,
        rounds=8,
        sweeps=2,
        latent=m if kind == "neal5" else 0,
    )
    return min(joint_p_values(found, model, len(cases.Z), rng).values())


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case[0] == "neal8" else pytest.mark.matrix) for case in RIGHT]
)
def test_right_samplers_pass(case: tuple[str, int, float, float | tuple[float, float]]) -> None:
    assert worst_gap(*case, fault=0) < PASS
    if case[:3] != (
        "slice",
        1,
        0.3,
    ):  # stick labels of a prior draw have no mean there, and may outrun the slots
        assert worst_p_value(*case, fault=0) > LEVEL


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.matrix) for name in WRONG]
)
def test_enumeration_catches(name: str) -> None:
    assert worst_gap(*WRONG[name]) > CAUGHT


# the joint-distribution test has less power against small faults, for the same time
GROSS = [
    "a singleton forgets its theta",
    "new cluster weighs alpha, not alpha + k d",
    "latent values never redrawn",
    "f in place of g",
    "Escobar and West without the k - 1 branch",
    "stick without the later counts",
    "slice weight not divided by xi",
]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.matrix) for name in GROSS]
)
def test_joint_distribution_test_catches(name: str) -> None:
    assert worst_p_value(*WRONG[name]) < LEVEL
