"""`dpmix.audit`: an empirical lower bound on what a mechanism or synthesizer gives away, beside its claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpmix.api.arguments import real_of, whole_of
from dpmix.api.calibrate import columns_of, mechanism_of, public_of
from dpmix.auditing.inputs import AuditedSubject, Program, subject_of, subject_of_program
from dpmix.auditing.trial import LOOKED_AT, lower_bound, repeats_after_fork, try_out
from dpmix.errors import PrivacyError, SpecError, UsageError, truth_of
from dpmix.numerics.in_words import figure, figure_below, permits_verbatim
from dpmix.privacy.conversions import gaussian_epsilon, rho_to_epsilon
from dpmix.run.progress import show_work
from dpmix.spec import RunSpec, SpecSource, load_spec
from dpmix.spec.kinds import capabilities_of
from dpmix.store.frames import Tabulated, TabulatedFigures

if TYPE_CHECKING:
    from dpmix.privacy.accounting import Guarantee
    from dpmix.store.frames import Frame

RUNS = 10_000
CONFIDENCE = 0.999
_LEAST = 200
_DELTA = 1e-3  # at which a guarantee of rho alone is audited
_RECORDS = 20
_COMMANDS = 1_000
_MOST = 5_000_000_000
"""Numbers that the releases of one audit go through: a few minutes."""


@dataclass(frozen=True)
class Audit(Tabulated):
    """What the releases of neighbouring databases show.

    Parameters
    ----------
    kind : str
        Of the mechanism or synthesizer.
    claim : Guarantee
        What it says of itself.
    epsilon, delta : float
        The claim as (epsilon, delta), in which terms it is audited.
    bound : float
        Epsilon at that delta is at least this, with the confidence.
    confidence : float
    runs : int
        Releases of each of two databases.
    records : int
        Of each database.
    neighbours, event : str
        How the databases differ, and by what their releases were told apart.
    counts : (int, int)
        How often the event happened among `held` releases of either.
    held : int
        Releases that nothing was learnt from.
    repeats : bool or None
        Whether forked processes draw the same noise; None where it could not be tried.
    beyond : bool or None
        Whether synthetic records leave the public bounds; None of mechanisms, whose noise does so.
    stated : int
        Number of records that the guarantee is stated for; `records` may be fewer where it does not matter.
    fault : str
        A fault planted on purpose, such as "noise of half the scale"; empty for other programs.
    shown : float or None
        The bound that the same audit gives of it, or, of another program, of releases that tell the tables
        apart each time; None where the claim is disproved as it is, or there is no such fault.
    n : int or None
        Number of records of the table that a release is of, where the spec or its data say it.
    """

    kind: str
    claim: Guarantee
    epsilon: float
    delta: float
    bound: float
    confidence: float
    runs: int
    records: int
    neighbours: str
    event: str
    counts: tuple[int, int]
    held: int
    repeats: bool | None
    beyond: bool | None
    stated: int
    fault: str
    shown: float | None
    n: int | None = None

    @property
    def consistent(self) -> bool:
        """Whether nothing found contradicts the claim."""
        return self.bound <= self.epsilon and not self.repeats and not self.beyond

    @property
    def weak(self) -> bool:
        """Whether so many releases would not have shown even a planted fault, or none can be planted."""
        return self.consistent and (self.shown is None or self.shown <= self.epsilon)

    @property
    def weakness(self) -> str:
        """Why a weak audit is one, and what helps, in a clause."""
        if self.shown is None:
            return "no fault could be planted, so that nothing shows what it would find"
        missed = self.fault or "releases that tell the tables apart each time"
        return f"{self.runs:,} releases of each would not show {missed}; give more --runs"

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the delta that is claimed permits, where that is 1/n or more; of a local release, too."""
        return tuple(filter(None, (permits_verbatim(self.claim.delta, self.n),)))

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """Of which mechanism it is, and what was found."""
        return f"Audit of {self.kind}", self.to_text().split("\n")

    def to_frame(self) -> Frame:
        """Return its figures, one row each."""
        return TabulatedFigures(self.to_json()).to_frame()

    def to_json(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "kind": self.kind,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.claim.rho,
            "epsilon_lower_bound": self.bound,
            "confidence": self.confidence,
            "runs": self.runs,
            "records": self.records,
            "records_stated": self.stated,
            "neighbours": self.neighbours,
            "event": self.event,
            "counts": list(self.counts),
            "held_out": self.held,
            "repeats_after_fork": self.repeats,
            "beyond_bounds": self.beyond,
            "planted_fault": self.fault,
            "planted_epsilon_lower_bound": self.shown,
            "weak": self.weak,
            "consistent": self.consistent,
            "cautions": list(self.cautions),
        }

    def to_text(self) -> str:
        """Return the same for reading."""
        stated = f"epsilon = {figure(self.epsilon)}" + (
            f", delta = {figure(self.delta, 3)}" if self.delta else ""
        )
        databases = f"two databases of {_records(self.records)}"
        if self.records != self.stated:
            databases += f" (stated: {self.stated:,}, on which the guarantee does not depend)"
        lines = [
            f"{self.kind}: {self.runs:,} releases of each of {databases}",
            f"  claimed      {stated}",
            f"  observed     epsilon at least {figure_below(self.bound, 4)} (confidence {self.confidence:g})",
            f"  neighbours   {self.neighbours}",
        ]
        if self.held:
            often = " and ".join(f"{count:,}" for count in self.counts)
            lines.append(f"  event        {self.event}: {often} times in {self.held:,} held-out releases")
        else:
            lines.append("  event        none that told the releases apart")
        lines += [f"  note         {text}" for text in self.cautions]
        told = {None: "could not be tried", True: "THE SAME in both", False: "differs, as it must"}
        if self.fault or self.repeats is not None:
            lines.append(f"  after fork   noise {told[self.repeats]}")
        if self.beyond is not None:
            bounds = "NOT KEPT: values are not clamped" if self.beyond else "kept by what was seen"
            lines.append(f"  bounds       {bounds}")
        if self.shown is not None:
            would = "which would NOT be found" if self.weak else "which would be found"
            least = f"epsilon at least {figure_below(self.shown, 4)}"
            lines.append(
                f"  power        {self.fault}, planted: {least}, {would}"
                if self.fault
                else f"  power        releases that tell the tables apart each time would show {least}"
            )
        verdict = "nothing contradicts the claim" if self.consistent else "THE CLAIM IS DISPROVED"
        if self.weak:
            verdict += f", but this audit is weak: {self.weakness}"
        return "\n".join([*lines, f"  verdict      {verdict}"])


class WeakError(PrivacyError):
    """An audit could not have shown what it looked for."""

    def __init__(self, found: Audit) -> None:
        super().__init__(f"{found.kind}: this audit is weak: {found.weakness}")


class DisprovedError(PrivacyError):
    """The claim of a mechanism was disproved.

    Attributes
    ----------
    found : Audit
    """

    def __init__(self, found: Audit) -> None:
        self.found = found
        if found.repeats:
            reason = "forked processes draw the same noise"
        elif found.beyond:
            reason = "records beyond the public bounds are released"
        else:
            reason = f"epsilon is at least {figure_below(found.bound, 4)}, not {figure(found.epsilon, 4)}"
        super().__init__(f"{found.kind}: the claim is disproved: {reason}")


def audit(
    spec: SpecSource,
    overrides: Sequence[str] = (),
    *,
    runs: int | None = None,
    confidence: float = CONFIDENCE,
    program: Program | None = None,
    tables: Sequence[Any] | None = None,
    allow_code: bool = False,
    progress: Callable[[int, int], None] | None = None,
    quiet: bool = False,
) -> Audit:
    """Bound from below what the mechanism of a spec, its synthesis, or another program, gives away.

    Neighbouring databases are made of public bounds and categories; no confidential value is read, and of a
    data file at most the number of records. Nothing is released, so that nothing is spent. What gives away
    twice as much is audited likewise, to see whether so many releases would show it.

    Parameters
    ----------
    spec : dict, path or RunSpec
        With a section ``mechanism`` or ``synthesis``; with both, the mechanism is audited. With a section
        ``audit`` its program is, and nothing else.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    runs : int
        Releases of each of two databases, at least 200; 10,000 where left out, 1,000 of a command.
    confidence : float
        That the bound holds, strictly between 0 and 1.
    program : callable, optional
        In place of ``audit.command``: from a table to its release, numbers of any shape.
    tables : sequence of two, optional
        In place of ``audit.tables``: neighbouring tables, arrays or data frames, as the program takes them.
    allow_code : bool
        Whether ``audit.command`` may run.
    progress : callable, optional
        Called with (releases drawn, releases in all).
    quiet : bool
        Show no progress.

    Raises
    ------
    SpecError
        When the spec lacks what is needed.
    UsageError
        When `runs` or `confidence` are out of range, or releases of so many records would take too long.
    PrivacyError
        When the guarantee cannot be met, or there is none.
    """
    checked = load_spec(spec, overrides)
    if runs is None:
        runs = _COMMANDS if checked.audit is not None and program is None else RUNS
    runs, confidence = whole_of(runs, "--runs"), real_of(confidence, "--confidence")
    if runs < _LEAST:
        raise UsageError(f"--runs: {runs} are too few; give at least {_LEAST}")
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence: {confidence:g} must lie strictly between 0 and 1")
    if checked.audit is not None:
        subject, n = (
            _other_program(checked, program, tables, allowed=truth_of(allow_code, "allow_code")),
            _stated_n(checked),
        )
    elif program is not None or tables is not None:
        raise SpecError("audit: missing; a program is audited against the epsilon that this section claims")
    else:
        subject, n = _subject(checked, _check_of(runs))
    command = checked.audit is not None and program is None
    epsilon, delta = _stated(subject.kind, subject.claim)
    shown = None
    with _bar(4 * runs, progress, quiet) as report:
        repeats = None if command else repeats_after_fork(subject)
        beyond = subject.strays()
        trial = try_out(subject, runs, delta, confidence, report)
        if subject.faulty is not None and trial.bound <= epsilon and not repeats and not beyond:
            with suppress(PrivacyError):  # of noise that cannot be made
                planted = replace(subject.faulty(), loss=subject.loss)
                shown = try_out(planted, runs, delta, confidence, report).bound
        elif checked.audit is not None and trial.bound <= epsilon and not repeats:
            half = runs // 2
            shown = float(lower_bound(half, half, 0, half, delta, confidence))
    return Audit(
        kind=subject.kind,
        claim=subject.claim,
        epsilon=epsilon,
        delta=delta,
        bound=trial.bound,
        confidence=confidence,
        runs=runs,
        records=len(trial.pair.one),
        neighbours=trial.pair.words,
        event="" if trial.event is None else str(trial.event),
        counts=trial.counts,
        held=trial.runs,
        repeats=repeats,
        beyond=beyond,
        stated=subject.stated,
        fault=subject.fault,
        shown=shown,
        n=n,
    )


def _other_program(
    spec: RunSpec, program: Program | None, tables: Sequence[Any] | None, *, allowed: bool
) -> AuditedSubject:
    asked = spec.audit
    if program is None and asked is not None and asked.command is not None and not allowed:
        raise SpecError(
            f"audit.command: {asked.command[0]} runs with all your rights; look at it, and give --allow-code "
            "(in Python allow_code=True) to run it"
        )
    return subject_of_program(spec, program, tables)


def _check_of(runs: int) -> Callable[[int, int], None]:
    """Return what refuses an audit that goes through more numbers than it should take to release."""

    def check(records: int, numbers: int) -> None:
        if (4 * runs + LOOKED_AT) * numbers <= _MOST:
            return
        most = (_MOST // numbers - LOOKED_AT) // 4
        fewer = f"give --runs {most} at most, or " if most >= _LEAST else ""
        raise UsageError(
            f"--runs: {runs:,} releases of each of four databases of {_records(records)} would take "
            f"too long; {fewer}audit what the spec states for fewer records (its key n)"
        )

    return check


def _stated_n(spec: RunSpec) -> int | None:
    return None if spec.data is None else spec.data.n


def _subject(spec: RunSpec, check: Callable[[int, int], None]) -> tuple[AuditedSubject, int | None]:
    """Return what is audited, and the number of records of its table, None where that is not known."""
    if spec.mechanism is None:
        if spec.generator is None:
            raise SpecError("mechanism: missing; audit needs this section, or synthesis")
        from dpmix.api.synthesize import planned  # late: audits of mechanisms start without

        generator = planned(spec)
        names = tuple(column.name for column in generator.columns)
        return subject_of(generator, names, generator.n, check), generator.n
    mechanism = mechanism_of(spec)
    names, _ = public_of(spec)
    if not names:
        names = tuple(f"column {i + 1}" for i in range(columns_of(spec.mechanism)))
    local = mechanism.guarantee.trust == "local"
    known = getattr(mechanism, "n", None) or _stated_n(spec)
    return subject_of(mechanism, names, 1 if local else int(known or _RECORDS), check), known


def _stated(kind: str, claim: Guarantee) -> tuple[float, float]:
    """Return a guarantee as (epsilon, delta)."""
    if claim.epsilon is not None and math.isfinite(claim.epsilon):
        return claim.epsilon, claim.delta or 0.0
    if claim.rho is None:
        raise PrivacyError("mechanism: has no guarantee to audit")
    if capabilities_of(kind).normal_noise:
        return gaussian_epsilon(math.sqrt(2 * claim.rho), _DELTA), _DELTA
    return rho_to_epsilon(claim.rho, _DELTA), _DELTA


def _records(count: int) -> str:
    return f"{count:,} record{'s' * (count != 1)}"


@contextmanager
def _bar(
    total: int, progress: Callable[[int, int], None] | None, quiet: bool
) -> Iterator[Callable[[int], None]]:
    """Give what is told how many more releases there are."""
    done = 0

    with show_work("releasing", total, quiet, progress) as tell:

        def advance(count: int) -> None:
            nonlocal done
            done = min(total, done + count)
            tell(done)

        yield advance
