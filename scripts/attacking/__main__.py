"""Try all attacks, and print what they reached beside what they may."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from attacking import groups, ledger, order
from attacking.outcome import Outcome, table

ATTACKS: dict[str, tuple[str, tuple[str, str], Callable[[Path, int], list[Outcome]]]] = {
    "groups": (
        "two groups of one table, (200, 200) or (199, 201)",
        ("accuracy", "the most that is allowed"),
        groups.attack,
    ),
    "order": (
        "row order, epsilon = 1",
        ("accuracy", "the most that is allowed"),
        order.attack,
    ),
    "ledger": ("a budget that is spent", ("answer", "should be"), ledger.attack),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the attacks; return 1 where one did better than it may."""
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the releases")
    parser.add_argument("--runs", type=int, default=300, metavar="N", help="releases of each of two tables")
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    given = parser.parse_args(arguments)
    if given.runs < 10:
        parser.error("--runs: at least 10")
    runs = max(10, given.runs // 10) if given.quick else given.runs
    start, beaten = time.monotonic(), 0
    for name in given.only:
        title, heads, attack = ATTACKS[name]
        with tempfile.TemporaryDirectory() as folder:
            outcomes = attack(Path(folder), runs)
        print(table(title, heads, outcomes), end="\n\n", flush=True)
        beaten += sum(each.beaten for each in outcomes)
    words = "no attack did better than it may" if not beaten else f"{beaten} did better than they may"
    print(f"{words}; {runs} releases of each table, {time.monotonic() - start:.0f} s")
    return int(beaten > 0)


if __name__ == "__main__":
    sys.exit(main())
