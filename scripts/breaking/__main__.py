"""Break every command that writes off at each step and at random moments, and look at what is left."""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from breaking.child import Ended, Fate, perform, warm_up
from breaking.circumstances import fill_output, set_clock_back
from breaking.scenarios import Scenario, prepare, scenarios, unsound
from dpmix.errors import DpmixError

_NAMES = tuple(scenario.name for scenario in scenarios("moments"))


def main() -> int:
    """Run the command line; 1 where something was lost."""
    parser = argparse.ArgumentParser(prog="scripts/kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="at random moments, in all")
    parser.add_argument("--every", action="store_true", help="also at every step, in four ways")
    parser.add_argument(
        "--around", action="store_true", help="also with read-only folders, full outputs and a clock put back"
    )
    parser.add_argument("--steps", type=int, default=0, help="of each command, at random, in one way each")
    parser.add_argument("--only", nargs="+", choices=_NAMES, default=_NAMES)
    parser.add_argument("--parametric", choices=("moments", "posterior"), default="moments")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="dpmix-kill-") as name:
        place = Path(name).resolve()
        place.chmod(0o755)  # for whom root becomes
        prepare(place / "base", options.parametric)
        tried = [_Trial(s, place) for s in scenarios(options.parametric) if s.name in options.only]
        for trial in tried if options.every else ():
            trial.all_steps(options.steps, rng)
        for trial in tried if options.around else ():
            trial.all_around()
        share = -(-options.kills // len(tried))
        for trial in tried:
            trial.at_random(share, rng)
        for trial in tried:
            print(f"{trial.scenario.name:<11}{trial.steps:>4} steps, {trial.seconds:.2f} s: {trial.words()}")
    lost = sum(trial.faults for trial in tried)
    total: Counter[str] = sum((trial.ended for trial in tried), Counter())
    print(json.dumps({"broken_off": dict(sorted(total.items())), "faults": lost}))
    return 1 if lost else 0


class _Trial:
    """One command, run once undisturbed and then broken off again and again."""

    def __init__(self, scenario: Scenario, place: Path) -> None:
        self.scenario, self.base, self.folder = scenario, place / "base", place / "work"
        self.whole = place / f"whole-{scenario.name}"
        self.ended: Counter[str] = Counter()
        self.faults = 0
        scenario.place(self.base, self.whole)
        warm_up(scenario.command, self.whole)
        scenario.place(self.base, self.folder)
        ended = perform(scenario.command, self.folder)
        self.steps, self.seconds = ended.steps, ended.seconds

    def words(self) -> str:
        """Say what happened how often."""
        counted = ", ".join(f"{name} {count}" for name, count in sorted(self.ended.items()))
        return f"{counted}; {self.faults} faults"

    def all_steps(self, steps: int, rng: random.Random) -> None:
        """Let each thing happen at each step, or at some."""
        chosen = list(range(1, self.steps + 1))
        if steps and steps < len(chosen):
            chosen = rng.sample(chosen, steps)
        for place, step in enumerate(chosen):
            fates = (
                Fate(signal.SIGKILL, step=step),
                Fate(full=step),
                Fate(signal.SIGTERM, step=step),
                Fate(size=rng.choice((1000, 2000, 4000, 20_000))),
            )
            for fate in [fates[place % 4]] if steps else fates:
                self.once([fate])

    def all_around(self) -> None:
        """Run it where it cannot write, where its output is full, and under a clock that was put back."""
        half = Fate(signal.SIGKILL, step=max(1, self.steps // 2))
        read_only = Fate(closed=True, name="read-only folder")
        past = Fate(before=set_clock_back, name="clock put back")
        self.once([read_only])
        self.once([Fate(before=fill_output, name="full output")])
        self.once([past])
        if self.scenario.again == ("--resume",):
            self.once([half, replace(read_only, name="read-only checkpoint")])
            self.once([half, past])

    def at_random(self, count: int, rng: random.Random) -> None:
        """Kill at `count` random moments, several in a row where it goes on from what is there."""
        while count > 0:
            row = min(count, rng.choice((1, 2, 3)) if self.scenario.again == ("--resume",) else 1)
            kind = signal.SIGKILL if rng.random() < 0.8 else signal.SIGTERM
            self.once([Fate(kind, after=rng.random() * 1.1 * self.seconds) for _ in range(row)])
            count -= row

    def once(self, fates: list[Fate]) -> None:
        """Break the command off, in a row, let it go on, and look after each."""
        self.scenario.place(self.base, self.folder)
        for turn, fate in enumerate(fates):
            ended = self._perform(fate, turn)
            self._note(fate, ended)
            if ended.code == 0:
                return
        ended = self._perform(Fate(), len(fates))
        done = all((self.folder / name).exists() for name in self.scenario.outputs)
        if ended.code not in (0, 2) or not done or (ended.code == 2 and not _is_there(ended.err)):
            self._fault(fates[-1], f"does not go on: exit {ended.code}: {ended.err.strip()}")
        self._look(fates[-1])

    def _perform(self, fate: Fate, turn: int) -> Ended:
        more = self.scenario.again if turn else ()
        return perform((*self.scenario.command, *more), self.folder, fate)

    def _note(self, fate: Fate, ended: Ended) -> None:
        name = signal.Signals(fate.number).name if fate.number else fate.name or "full disk"
        late = ended.code == 0 and (fate.number or fate.full or fate.size)
        self.ended[f"{name} too late" if late else name] += 1
        remarks = tuple(f"dpmix: {word}" for word in ("warning: ", "note: ", "wrote ", "ledger "))
        said = [line for line in ended.err.splitlines() if not line.startswith(remarks)]
        if fate.number == signal.SIGKILL:
            right = ended.code in (0, -signal.SIGKILL)
        elif fate.number == signal.SIGTERM:
            early = fate.after is not None and ended.code == -signal.SIGTERM  # before there was a handler
            right = ended.code == 0 or early or (ended.code == 130 and len(said) == 1)
        elif fate.before is set_clock_back:
            right = ended.code == 0
        else:
            right = ended.code == 0 or (ended.code == 3 and len(said) == 1 and "error: " in said[0])
            right = right and not (fate.closed and ended.code == 0 and self.scenario.outputs)
        if not right or "Traceback" in ended.err:
            self._fault(fate, f"exit {ended.code}: {ended.err.strip()}")
        self._look(fate)

    def _look(self, fate: Fate) -> None:
        try:
            wrong = unsound(self.scenario, self.base, self.folder, self.whole)
        except (DpmixError, OSError, ValueError, KeyError) as error:
            wrong = [f"{type(error).__name__}: {error}"]
        for problem in wrong:
            self._fault(fate, problem)

    def _fault(self, fate: Fate, problem: str) -> None:
        self.faults += 1
        print(f"{self.scenario.name}: {fate}: {problem}", flush=True)


def _is_there(said: str) -> bool:
    """Whether a command that was broken off late finds its output, or the ledger that it started."""
    return "exists already" in said or "is there already" in said


if __name__ == "__main__":
    sys.exit(main())
