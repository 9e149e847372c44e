"""From the spec of a sweep to its runs, in order, each with a name and a spec of its own."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmix.errors import DpmixError, SpecError
from dpmix.models.custom.section import CustomModel
from dpmix.release.release_file import beside
from dpmix.spec.fields import shown
from dpmix.spec.load import read_contents, replaced
from dpmix.spec.run_spec import check_spec
from dpmix.spec.sweep_spec import LABEL, SweepSpec

if TYPE_CHECKING:
    from dpmix.spec import RunSpec

STANDARD = ("model.kind", "mechanism.kind", "mechanism.epsilon", "data.n", "sampler.kind")
"""Keys that the table has whether or not they vary."""

_CONFIDENTIAL = ("data", "data.path")
"""Keys of confidential data whose values no name, table or figure shows."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._+=-]+")
_LONGEST = 120


@dataclass(frozen=True)
class Planned:
    """One run.

    Parameters
    ----------
    name : str
        Unique in its sweep, and the name of its folder.
    label : str
        Name of the entry of ``list`` that it is of; empty where that has none.
    seed : int or None
        Seed of the replicate; None where runs are not replicated.
    contents : mapping
        Contents of its spec, not checked yet.
    folder : Path
        Where relative paths in it count from.
    """

    name: str
    label: str
    seed: int | None
    contents: Mapping[str, Any]
    folder: Path

    @property
    def confidential(self) -> bool:
        """Whether it is about confidential data, rather than simulated ones or values of a release."""
        return _is_confidential(self.contents)

    def spec(self, *, spends: bool = True) -> RunSpec:
        """Return its spec, checked; where it `spends`, there must be a ledger for that.

        Raises
        ------
        SpecError, PrivacyError
            When it makes no sense, or lacks what a run needs; the first line names the run.
        """
        with naming(self.name):
            spec = check_spec(self.contents, self.folder)
            _check_whole(spec, spends)
        return spec

    def values(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return the values of keys of its spec, as far as it has them: numbers, booleans and text."""
        resolved = check_spec(self.contents, self.folder).to_dict()
        return {key: _plain(_value(resolved, key)) for key in keys}


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep.

    Parameters
    ----------
    runs : tuple of Planned
        In order: entries of the list, then the grid with its last key fastest, then replicates.
    keys : tuple of str
        Keys of the spec that the table has: those that vary, and `STANDARD`. What tells of files of
        confidential data is none of them.
    varied : tuple of str
        Those of them that take several values.
    keep_chains : bool
        Whether chains of finished runs are kept.
    """

    runs: tuple[Planned, ...]
    keys: tuple[str, ...]
    varied: tuple[str, ...]
    keep_chains: bool

    def run(self, name: str) -> Planned:
        """Return the run of a name.

        Raises
        ------
        SpecError
            When there is none.
        """
        for run in self.runs:
            if run.name == name:
                return run
        raise SpecError(f"--run {shown(name)}: no such run; --dry-run lists the {len(self.runs)} there are")


@contextlib.contextmanager
def naming(run: str) -> Iterator[None]:
    """Put the name of a run before errors of the block."""
    try:
        yield
    except DpmixError as error:
        raise type(error)(f"run {run}: {str(error).splitlines()[0]}") from None


def make_plan(sweep: SweepSpec) -> Plan:
    """Return the runs of a sweep, none of them checked yet.

    Raises
    ------
    SpecError
        When the base spec cannot be read, a key is set within something that is no section, two runs would
        be the same, or files of confidential data vary among entries without names.
    """
    if isinstance(sweep.base, Path):
        contents, folder = read_contents(sweep.base), sweep.base.parent
    else:
        contents, folder = sweep.base, sweep.source_dir
    entries = sweep.entries or ({},)
    listed = {key: None for entry in entries for key in entry if key != LABEL}
    varied = (*listed, *(key for key, values in sweep.grid.items() if len(values) > 1))
    titles = _titles((*listed, *sweep.grid))
    runs: list[Planned] = []
    known: dict[str, str] = {}
    secret: set[str] = set()
    for entry, values, seed in itertools.product(
        entries, itertools.product(*sweep.grid.values()), sweep.seeds or (None,)
    ):
        own = {key: value for key, value in entry.items() if key != LABEL}
        setting = {**own, **dict(zip(sweep.grid, values, strict=True))}
        seeds = {} if seed is None else _seeds(contents, {**sweep.fixed, **setting}, seed)
        label = str(entry.get(LABEL, ""))
        parts = [label] if label else []
        parts += [
            f"{titles[key]}={_word(value)}"
            for key, value in setting.items()
            if key in varied and not (label and key in own)
        ]
        parts += [] if seed is None else [f"seed={seed}"]
        name = _UNSAFE.sub("-", "_".join(parts))[:_LONGEST].strip(".-_") or "run"
        given = _with(contents, sweep.fixed, setting, seeds)
        if _is_confidential(given):
            secret |= _hidden([key for key in setting if key in varied], sweep.grid, label)
        text = json.dumps(given, sort_keys=True, default=str)
        if text in known:
            raise SpecError(f"list: gives the run {name} twice; take one of them out")
        known[text] = name
        runs.append(Planned(name, label, seed, given, folder))
    _check_names(runs)
    shown_keys = tuple(key for key in varied if key not in secret)
    return Plan(tuple(runs), tuple(dict.fromkeys((*STANDARD, *shown_keys))), shown_keys, sweep.keep_chains)


def _is_confidential(contents: Any) -> bool:
    data = contents.get("data") if isinstance(contents, Mapping) else None
    return isinstance(data, Mapping) and data.get("path") is not None and data.get("simulate") is None


def _hidden(keys: Sequence[str], grid: Mapping[str, Any], label: str) -> set[str]:
    """Return those of the keys that vary whose values are confidential, of which a label tells instead.

    Raises
    ------
    SpecError
        When there is no label.
    """
    found = {key for key in keys if key in _CONFIDENTIAL}
    for key in sorted(found):
        if key in grid or not label:
            where = f"grid.{key}: set it under list, where" if key in grid else "list:"
            raise SpecError(
                f"{where} entries that set {key} have a name each, such as {{name: first, {key}: ..}}, as "
                "runs and tables do not show where confidential data are"
            )
    return found


def _with(contents: Any, *settings: Mapping[str, Any]) -> Any:
    """Return contents with keys set: sections before what is in them, whatever order they are given in."""
    for setting in settings:
        for key in sorted(setting, key=lambda key: key.count(".")):
            contents = replaced(contents, key.split("."), setting[key])
    return contents


def _seeds(contents: Mapping[str, Any], setting: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return what a replicate sets: the seed of its chains, and of its data where they are simulated."""
    data = _with(contents, setting).get("data")
    simulated = isinstance(data, Mapping) and data.get("simulate") is not None
    return {"sampler.seed": seed, **({"data.seed": seed} if simulated else {})}


def _check_whole(spec: RunSpec, spends: bool) -> None:
    """Check what a run of a sweep needs beyond what any spec must be."""
    if spec.model is None:
        raise SpecError("model: missing; every run of a sweep fits a model")
    stated = spec.release is not None and spec.release.path is not None
    if spec.data is None and not stated:
        raise SpecError("data: missing; simulate them, or name a release, or confidential data and a ledger")
    if spec.sampler.seed is None:
        raise SpecError("sampler.seed: missing; runs of a sweep are reproducible, so give it or replicates")
    if stated:
        if spec.data is not None and not spec.simulated:
            raise SpecError("release.path: stands beside data.path; a sweep takes one of them")
        assert spec.release is not None  # as stated
        file = spec.release.file
        told = spec.generator is not None or isinstance(spec.model, CustomModel)
        bare = file is None or (file.exists() and not beside(file).exists())  # without an account beside it
        if spec.mechanism is None and not told and bare:
            raise SpecError("mechanism: missing; say which noise the values under release carry")
        return
    assert spec.data is not None  # as looked for
    if spec.mechanism is None:
        raise SpecError("mechanism: missing; say how the data are privatized, or none for simulated ones")
    if spec.simulated:
        if spec.data.seed is None:
            raise SpecError("data.seed: missing; runs of a sweep are reproducible, so give it or replicates")
        return
    if not spec.mechanism.protects:
        raise SpecError("mechanism.kind: none is for simulated data in a sweep; the records are confidential")
    if spends:
        check_ledger(spec)


def check_ledger(spec: RunSpec) -> None:
    """Check that releases of confidential data have a ledger.

    Raises
    ------
    SpecError
        When they have none.
    """
    if spec.privacy is None or spec.privacy.ledger is None:
        raise SpecError(
            "privacy.ledger: missing; a sweep over confidential data spends once for every release, so name "
            "the ledger that they are entered in, there or by --ledger, and their budget"
        )


def _titles(keys: Sequence[str]) -> dict[str, str]:
    """Return short titles of keys: their last parts, where those differ, but that of a kind its section."""
    last = [key.removesuffix(".kind").rsplit(".", 1)[-1] for key in keys]
    return {key: own if last.count(own) == 1 else key for key, own in zip(keys, last, strict=True)}


def _word(value: Any) -> str:
    """Write a value into the name of a run; of a section its kind."""
    if isinstance(value, Mapping):
        kind = value.get("kind")
        return str(kind) if isinstance(kind, str) else ".".join(f"{k}.{_word(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return ".".join(_word(item) for item in value)
    if value is None:
        return "default"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _check_names(runs: list[Planned]) -> None:
    """Give runs of one name numbers, so that all names differ, also where case does not count."""
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.name.lower()] = counts.get(run.name.lower(), 0) + 1
    used: dict[str, int] = {}
    for place, run in enumerate(runs):
        low = run.name.lower()
        if counts[low] > 1:
            used[low] = used.get(low, 0) + 1
            runs[place] = Planned(f"{run.name}-{used[low]}", run.label, run.seed, run.contents, run.folder)
    names = [run.name.lower() for run in runs]
    if len(set(names)) < len(names):
        raise SpecError("list: two runs have the same name; give the entries names that differ")


def _value(contents: Any, key: str) -> Any:
    for part in key.split("."):
        contents = contents.get(part) if isinstance(contents, Mapping) else None
    return contents


def _plain(value: Any) -> Any:
    """Return a value as a cell of a table can hold it; of a section its kind, else its parts in words."""
    if isinstance(value, Mapping):
        return value.get("kind") or _word(value)
    return " ".join(_word(item) for item in value) if isinstance(value, (list, tuple)) else value
