"""What is said of a release before it is drawn, from public quantities alone, and what then needs a yes.

One place for the curator's warnings: `privatize`, `synthesize` and `sweep` say them before the ledger is
touched and the first random bit is drawn; ``--dry-run`` and `calibrate` say them too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmix.errors import PrivacyError, say
from dpmix.numerics.in_words import brief, figure, guarantee_in_words, permits_verbatim
from dpmix.privacy.conversions import rho_to_epsilon
from dpmix.spec import describe

if TYPE_CHECKING:
    from dpmix.api.spending import Spending
    from dpmix.mechanisms.curators.mechanism import Mechanism, Sanitizer
    from dpmix.privacy.accounting import Guarantee
    from dpmix.spec import RunSpec

MOST_EPSILON = 100.0
"""Above it `yes` is needed."""
MOST_DELTA = 0.5
"""Above it `yes` is needed."""
MOST_UNIFORM, MUCH_UNIFORM = 0.5, 0.1
"""Shares of synthetic records that ignore the data above which most do, and a note becomes a warning."""
DELTA_OF_RHO = 1e-6
"""At which rho is judged as an epsilon."""


@dataclass(frozen=True)
class Caution:
    """Something that a curator should know before a release.

    Parameters
    ----------
    text : str
        One line, that begins with "warning: " or "note: ".
    asks : bool
        Whether a release of real data then needs a yes.
    """

    text: str
    asks: bool = False


def of_release(subject: Sanitizer, n: int | None) -> list[Caution]:
    """Return what is to be said before n records are released; None where their number is not known yet."""
    found = [Caution(f"note: {subject.republished}")] if subject.republished else []
    found += _of_guarantee(subject, n)
    found += _of_cells(subject, n) or _of_shares(subject, n)
    if "scale" in (getattr(subject, "requested", None) or {}):
        words = guaranteed(subject.guarantee)
        text = f"warning: the noise is stated by its scale alone, and what that guarantees follows: {words}"
        found.append(Caution(text))
    return found


def guaranteed(total: Guarantee, *, grouped: bool = False) -> str:
    """Say a guarantee in one clause; of groups whose sizes are private, where `grouped`."""
    numbers = total.epsilon, total.delta, total.rho
    return guarantee_in_words(*numbers, total.trust, total.adjacency, grouped=grouped)


def of_columns(spec: RunSpec, n: int | None = None) -> list[Caution]:
    """Return what is to be said of columns whose values may be few: two predictors' bounds, whole numbers."""
    return [Caution(text) for text in describe.of_columns(spec, n)]


def of_synthetic_columns(spec: RunSpec, n: int | None = None) -> list[Caution]:
    """Return what is to be said of columns that synthetic records fill more evenly than people do."""
    return [Caution(text) for text in describe.of_synthetic_columns(spec, n)]


def of_ledger(spending: Spending | None) -> list[Caution]:
    """Return what is to be said of a ledger that has no budget for the data set."""
    account = None if spending is None else spending.foresee()
    if spending is None or account is None or account.budget is not None:
        return []
    text = (
        f"warning: {spending.path} has no budget for {account.dataset}: what is spent is counted, and "
        "nothing is ever refused; set one by privacy.budget or `dpmix ledger budget`"
    )
    return [Caution(text)]


def depends_on_n(mechanism: Mechanism) -> bool:
    """Whether what is to be said of a mechanism depends on the number of records."""
    return bool(mechanism.guarantee.delta) or mechanism.noisy_cells is not None


def heed(found: Iterable[Caution], spec: RunSpec, yes: bool, *, quiet: bool = False) -> None:
    """Say all of it on standard error; real data then need a `yes` where it asks for one.

    For simulated data nothing is at stake: they need no yes, and where it is to be `quiet` nothing is said.

    Raises
    ------
    PrivacyError
        Naming the first that asks, where there is no `yes`.
    """
    asking = []
    for each in found:
        if not (quiet and spec.simulated):
            say(each.text)
        if each.asks:
            asking.append(each.text.removeprefix("warning: "))
    if asking and not spec.simulated and not yes:
        raise PrivacyError(f"{asking[0]}; nothing was drawn: ask for less, or give --yes to go on")


def _of_guarantee(subject: Sanitizer, n: int | None) -> list[Caution]:
    total = subject.guarantee
    found = []
    epsilon, words = total.epsilon, ""
    if epsilon is None and total.rho is not None:
        epsilon = rho_to_epsilon(total.rho, DELTA_OF_RHO)
        words = f" (rho = {figure(total.rho)}, at delta = {DELTA_OF_RHO:g})"
    if epsilon is not None and epsilon > MOST_EPSILON:
        text = (
            f"warning: epsilon = {figure(epsilon)}{words} is above {MOST_EPSILON:g}, and protects nobody: "
            "the release may tell every record"
        )
        found.append(Caution(text, asks=True))
    if total.delta is not None and total.delta > MOST_DELTA:
        text = (
            f"warning: delta = {figure(total.delta)} is above {MOST_DELTA:g}: more likely than not, nothing "
            "is guaranteed"
        )
        found.append(Caution(text, asks=True))
    text = permits_verbatim(total.delta, n)
    return [*found, Caution(f"{'note' if n is None else 'warning'}: {text}")] if text else found


def _of_shares(subject: Sanitizer, n: int | None) -> list[Caution]:
    """Say what share of synthetic records ignores the data, where that is more than their sampling error."""
    share, (what, cure) = subject.uniform_share, subject.ignoring
    if share is not None and share > MOST_UNIFORM:
        text = f"warning: about {share:.0%} of the records will be {what}, whatever the data: take {cure}"
        return [Caution(text)]
    about, are = "about", f"be {what}, whatever the data"
    if share is None:
        share, cure = subject.noise_share, "fewer cells or a larger epsilon"
        about, are = "up to", "come from the noise of empty cells, evenly over them"
    if share is None or n is None or share * math.sqrt(min(n, getattr(subject, "records", n))) <= 1.0:
        return []
    kind = "warning" if share > MUCH_UNIFORM else "note"
    several = len(getattr(subject, "columns", ())) > 1  # of a generator
    moved = "means, sds, tails and correlations" if several else "means, sds and tails"
    text = (
        f"{kind}: {about} {share:.1%} of the records will {are}, and move {moved}: take {cure} where that "
        "matters"
    )
    return [Caution(text)]


def _of_cells(subject: Sanitizer, n: int | None) -> list[Caution]:
    """Compare what the noise of all cells adds up to with the number of records."""
    if subject.noisy_cells is None:
        return []
    cells, sd = subject.noisy_cells
    total = cells * sd
    noise = f"noise of standard deviation {brief(sd, 4)}"
    words = (
        f"{cells:,} cells with {noise} each add up to {total:,.0f}" if cells > 1 else f"one cell has {noise}"
    )
    if n is None:
        text = f"note: {words}: with fewer records than that, the release is mostly noise"
        return [Caution(text)]
    if total <= n:
        return []
    text = (
        f"warning: {words}, more than the {n:,} records: the release is mostly noise; take fewer cells or a "
        "larger epsilon"
    )
    return [Caution(text, asks=True)]
