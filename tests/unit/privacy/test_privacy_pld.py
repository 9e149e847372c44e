"""Privacy loss distributions: never below what is exactly so, never above the sums, refused where unknown."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("dp_accounting")

from dpmix.errors import PrivacyError
from dpmix.privacy import accounting
from dpmix.privacy.accounting import (
    Guarantee,
    Spent,
    check_known,
    compose,
    loss_epsilon,
)
from dpmix.privacy.budget import Budget, covers, epsilon_at, remaining
from dpmix.privacy.conversions import gaussian_delta
from dpmix.privacy.ledger import Book
from tests.helpers.specs import message


def pure(epsilon: float) -> Guarantee:
    return Guarantee(epsilon, 0.0, None)


def gaussian(rho: float) -> Guarantee:
    return compose("gaussian", [rho], delta=1e-8)


def response_delta(count: int, each: float, epsilon: float) -> float:
    """Return delta of randomized responses together, by enumeration of how many answers are true."""
    p = math.exp(each) / (1 + math.exp(each))
    return sum(
        math.comb(count, k)
        * max(0.0, p**k * (1 - p) ** (count - k) - math.exp(epsilon) * (1 - p) ** k * p ** (count - k))
        for k in range(count + 1)
    )


@pytest.mark.parametrize(("count", "each"), [(1, 0.3), (5, 0.2), (40, 0.1), (400, 0.02), (3, 1.0)])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01])
def test_randomized_response_is_met_from_above(count: int, each: float, delta: float) -> None:
    found = loss_epsilon([pure(each)] * count, delta)
    assert found is not None
    assert response_delta(count, each, found) <= delta
    assert (
        response_delta(count, each, found - 2e-3 * max(1.0, found)) > delta
    )  # and it is no looser than that


@pytest.mark.parametrize(("rho", "count"), [(0.02, 1), (0.02, 10), (0.5, 4), (2.0, 3)])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01])
def test_gaussian_noise_is_met_from_above(rho: float, count: int, delta: float) -> None:
    found = loss_epsilon([gaussian(rho)] * count, delta)
    assert found is not None
    mu = math.sqrt(2 * rho * count)
    assert gaussian_delta(found, mu) <= delta
    assert gaussian_delta(found * 0.999, mu) > delta


def test_a_mixture_is_above_the_exact_one_and_below_the_sums() -> None:
    """Randomized response beside Gaussian noise, whose joint delta is one integral over two cases."""
    each, rho, delta = 0.5, 0.08, 1e-4
    found = loss_epsilon([pure(each), gaussian(rho)], delta)
    p, mu = math.exp(each) / (1 + math.exp(each)), math.sqrt(2 * rho)

    def exact(epsilon: float) -> float:
        # with loss +-each by chance, what is left for the noise is epsilon -+ each
        cases = ((p, epsilon - each), (1 - p, epsilon + each))
        return sum(w * (gaussian_delta(e, mu) if e >= 0 else negative(e, mu)) for w, e in cases)

    def negative(epsilon: float, mu: float) -> float:
        # delta(-e) = 1 - e^-e (1 - delta(e)), as the two orders of the pair are alike
        return 1 - math.exp(epsilon) * (1 - gaussian_delta(-epsilon, mu))

    assert found is not None and exact(found) <= delta < exact(found - 1e-3)


COMPOSITIONS: list[list[Guarantee]] = [
    [pure(0.1)] * 30,
    [pure(3.0)] + [pure(0.05)] * 50,
    [gaussian(0.02)] * 12,
    [pure(0.3)] * 3 + [gaussian(0.02)] * 5 + [Guarantee(0.0, 1e-7, None)],
    [Guarantee(0.5, 1e-7, None)] * 8,
    [compose("laplace", [0.2])] * 20,
    [pure(600.0)],
    [],
]


@pytest.mark.parametrize("spent", COMPOSITIONS, ids=range(len(COMPOSITIONS)))
@pytest.mark.parametrize("delta", [0.0, 1e-12, 1e-6, 0.01])
def test_it_is_never_looser_than_the_sums(spent: list[Guarantee], delta: float) -> None:
    sums, tight = epsilon_at(spent, delta), epsilon_at(spent, delta, "pld")
    if sums is None:
        assert tight is None or delta > 0
    else:
        assert tight is not None and tight <= sums
        if delta == 1e-6 and len(spent) >= 12:
            assert tight < sums * 97 / 100  # it is worth it


def test_a_budget_admits_more_and_parts_count_as_before() -> None:
    budget = Budget(2.0, 1e-6)
    spent = [pure(0.1)] * 24
    assert not covers(budget, spent) and not covers(budget, Spent(tuple(spent)))
    assert covers(budget, spent, "pld") and covers(budget, Spent(tuple(spent)), "pld")
    parts = Spent((), {name: tuple(g.of_public_part() for g in spent) for name in "ab"})
    assert covers(budget, parts, "pld") and epsilon_at(parts, 1e-6, "pld") == epsilon_at(spent, 1e-6, "pld")
    assert not covers(budget, spent * 2, "pld")
    assert remaining(budget, spent)["epsilon"] == 0.0
    left = remaining(budget, Spent(tuple(spent)), "pld")["epsilon"]
    assert left > 0.005 and covers(budget, [*spent, pure(left)], "pld")
    assert not covers(budget, [*spent, pure(left + 1e-4)], "pld")


@pytest.mark.parametrize("lost", [1e-6, 0.5, 1.0])
def test_a_delta_that_is_not_below_the_one_asked_for_has_no_epsilon(lost: float) -> None:
    """As of an urn that republishes nearly all that it holds, whose delta rounds to 1."""
    assert loss_epsilon([Guarantee(1.0, lost, None)], 1e-6) is None
    assert loss_epsilon([Guarantee(1.0, lost, None), pure(0.1), gaussian(0.1)], 1e-6) is None


def test_what_it_does_not_know_is_refused_by_name() -> None:
    only_rho = Guarantee(None, None, 0.1)
    with pytest.raises(PrivacyError, match="pld does not know the privacy loss of odd_kind under rho alone"):
        check_known(only_rho, "odd_kind")
    check_known(compose("gaussian", [0.1]), "gaussian")
    check_known(Guarantee(0.0, 1e-3, None), "pitman_yor")
    assert loss_epsilon([only_rho], 1e-6) is None
    assert epsilon_at([only_rho], 1e-6, "pld") == epsilon_at([only_rho], 1e-6)
    book = Book()
    with pytest.raises(PrivacyError, match="privacy loss of odd_kind under rho alone"):
        book.spend("d", {"kind": "odd_kind"}, only_rho, "t", "0", accountant="pld")
    assert book.entries == []


def test_the_ledger_keeps_to_the_accountant_of_the_first_release() -> None:
    book = Book()
    book.set_budget("d", Budget(2.0, 1e-6), "t")
    for _ in range(23):
        book.spend("d", {"kind": "laplace"}, pure(0.1), "t", "0", accountant="pld")
    with pytest.raises(PrivacyError, match="exceeds it"):
        book.spend("d", {"kind": "laplace"}, pure(0.1), "t", "0", accountant="sums")
    book.spend("d", {"kind": "laplace"}, pure(0.1), "t", "0")  # as in the ledger
    assert book.account("d").accountant == "pld" and book.account("d").to_json()["accountant"] == "pld"
    again = Book.parse(book.to_text())
    assert again.account("d") == book.account("d") and again.entries[-1]["accountant"] == "pld"
    book.spend("e", {"kind": "laplace"}, pure(0.1), "t", "0")
    with pytest.raises(PrivacyError, match=r"is pld, but releases of e were entered under sums"):
        book.spend("e", {"kind": "laplace"}, pure(0.1), "t", "0", accountant="pld")


def test_a_library_that_is_missing_is_named(monkeypatch: Any) -> None:
    monkeypatch.setattr(
        accounting.importlib, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name))
    )
    accounting._library.cache_clear()
    with pytest.raises(PrivacyError, match=r"needs the package dp-accounting \(pip install 'dpmix\[pld\]'\)"):
        check_known(pure(1.0), "laplace")
    accounting._library.cache_clear()


def test_the_spec_refuses_what_it_cannot_count() -> None:
    assert message("privacy.accountant=pld", "privacy.budget={rho: 1}").startswith(
        "privacy.accountant: pld counts epsilon and delta, and the budget is of rho"
    )
    assert message("privacy.accountant=hope").startswith("privacy.accountant: ")
