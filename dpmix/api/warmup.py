"""`dpmix.warmup`: compile what fits of a spec need, and keep it, so that later ones start at once."""

from __future__ import annotations

import compileall
import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.api.calibrate import mechanism_of
from dpmix.api.fit import fit
from dpmix.api.summarize import summarize
from dpmix.errors import DpmixError, SpecError, UsageError
from dpmix.laws.every import law_of, law_type
from dpmix.models.custom.section import CustomModel
from dpmix.numerics import jit
from dpmix.release.sanitized import Release
from dpmix.run.progress import show_phase
from dpmix.samplers.state import SERIAL_LIMIT
from dpmix.spec import RunSpec, SpecSource, load_spec
from dpmix.store.frames import Tabulated, TabulatedFigures

if TYPE_CHECKING:
    from dpmix.api.arguments import PathLike
    from dpmix.store.frames import Frame

_RECORDS = 50  # where the spec does not say how many there are
_MOST_RECORDS = 100_000  # more are worked in blocks like these
_SHORT = (
    "sampler.iterations=40",
    "sampler.burn_in=20",
    "sampler.thin=1",
    "sampler.chains=1",
    "sampler.seed=1",
)

_ONCE = ("sampler.iterations=1", "sampler.burn_in=0")


@dataclass(frozen=True)
class Warmed(Tabulated):
    """What a warm-up did.

    Parameters
    ----------
    seconds : float
        Wall time.
    compiled : int
        Number of functions that were compiled anew.
    place : Path or None
        Where compiled code is kept; None where there is no place that can be written.
    anew : tuple of str
        Python files of custom models, of which nothing is kept.
    """

    seconds: float
    compiled: int
    place: Path | None
    anew: tuple[str, ...] = ()

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """What was done."""
        return "Warm-up", [self.in_words()]

    def to_frame(self) -> Frame:
        """Return its figures, one row each."""
        place = None if self.place is None else str(self.place)
        return TabulatedFigures(seconds=self.seconds, compiled=self.compiled, place=place).to_frame()

    def in_words(self) -> str:
        """Say it in a sentence."""
        if self.place is None:
            return "no compiled code could be kept: name a folder that can be written in DPMIX_CACHE_DIR"
        if self.anew:
            own = f"of {' and '.join(self.anew)} nothing is kept: every fit compiles it anew"
            return f"{own}; what else it needs is in {self.place} ({self.seconds:.1f} s)"
        if not self.compiled:
            return f"nothing to compile: all is in {self.place} ({self.seconds:.1f} s)"
        what = "1 function" if self.compiled == 1 else f"{self.compiled} functions"
        return f"compiled {what} in {self.seconds:.1f} s, kept in {self.place}"


def warmup(
    spec: SpecSource,
    release: PathLike | None = None,
    *,
    overrides: Sequence[str] = (),
    allow_code: bool = False,
    quiet: bool = False,
) -> Warmed:
    """Fit and summarize a few sweeps of a spec, and keep only the code that was compiled for it.

    Of a sweep one run of each kind is tried: runs that differ in numbers alone need the same code. Bytecode
    of dpmix itself that is missing is written beside its modules, where that is allowed.

    Parameters
    ----------
    spec : dict, path or RunSpec
        With a `model` section; or the spec of a sweep.
    release : path, optional
        The release; else what the spec's `release` section names; else one of records that are made up
        within the public bounds. Confidential data are not read.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    allow_code : bool
        Whether the Python file of a custom model may run.
    quiet : bool
        Say nothing on standard error of how long it takes.

    Raises
    ------
    SpecError, UsageError, DataError, PrivacyError
        When the spec or the release do not allow a fit.
    SamplerError
        When it fails.
    """
    begin, before = time.perf_counter(), kept_code()
    with show_phase("compiling", quiet):
        kinds = _kinds(spec, release, overrides)
        for own in kinds:
            _try(own, release, allow_code)
    _keep_bytecode(Path(__file__).parents[1])
    place = jit._cache_directory("")
    kept = None if place is None else Path(place).parent
    anew = dict.fromkeys(own.model.file.name for own in kinds if isinstance(own.model, CustomModel))
    return Warmed(time.perf_counter() - begin, len(kept_code() - before), kept, tuple(anew))


def _keep_bytecode(package: Path) -> None:
    """Write the bytecode that is missing, a fourth of what a fit takes to start, where it may be written.

    Python writes it by itself unless it is told not to, as in many containers.
    """
    if os.access(package, os.W_OK):
        compileall.compile_dir(package, quiet=2)


def _kinds(
    spec: SpecSource,
    release: PathLike | None,
    overrides: Sequence[str],
) -> list[RunSpec]:
    """Return what is to be tried: the spec, or of a sweep one run of each kind that is compiled alike."""
    from dpmix.spec.sweep_spec import is_sweep, load_sweep

    if isinstance(spec, RunSpec) or not (
        "base" in spec
        if isinstance(spec, Mapping)
        else isinstance(spec, str | os.PathLike) and is_sweep(Path(spec))
    ):
        return [load_spec(spec, overrides)]
    if release is not None:
        raise UsageError("--release: does not go with a sweep, whose runs have releases of their own")
    from dpmix.sweeping.plan import make_plan

    found: dict[str, RunSpec] = {}
    for run in make_plan(load_sweep(spec, overrides)).runs:
        own = run.spec(spends=False)
        found.setdefault(json.dumps(_kind(own), sort_keys=True), own)
    return list(found.values())


def _kind(spec: RunSpec) -> Any:
    """Return what specs that need the same compiled code share: all but numbers, and whether n is large."""
    contents = spec.to_dict()
    data = contents.pop("data", {})
    contents.pop("privacy", None)
    kept = [data.get(key) for key in ("simulate", "column", "columns")]
    return _shape([contents, kept, data.get("n", 0) > SERIAL_LIMIT])


def _shape(value: Any) -> Any:
    """Return contents with zeros for numbers."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return 0 if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _try(spec: RunSpec, release: PathLike | None, allow_code: bool) -> None:
    """Fit and summarize a few sweeps, and fit one of many records where there may be many."""
    checked = load_spec(spec, _SHORT)
    if checked.model is None:
        raise SpecError("model: missing; warmup compiles what fitting a model needs")
    source: Release | PathLike | None = release
    made_up = source is None and (checked.release is None or checked.release.path is None)
    if made_up:
        source = _made_up(checked)
    said = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="dpmix-warmup-") as folder:
        chains = Path(folder) / "chains.h5"
        try:
            with contextlib.redirect_stderr(said):  # warnings about so short a run
                fit(checked, source, chains, jobs=2, quiet=True, allow_code=allow_code)
                summarize(chains)
                if made_up and _may_be_large(checked):
                    once = load_spec(checked, _ONCE)
                    many = _made_up(checked, SERIAL_LIMIT + 1)
                    fit(once, many, Path(folder) / "many.h5", jobs=1, quiet=True, allow_code=allow_code)
        except DpmixError as error:
            raise type(error)(str(error).replace(str(chains), "the trial fit")) from None


def _may_be_large(spec: RunSpec) -> bool:
    """Whether nothing says how many records there are, and many would be worked in blocks."""
    assert spec.model is not None and spec.mechanism is not None
    local = law_type(spec.mechanism.kind).trust == "local"
    return spec.n is None and local and spec.model.kind == "mixture" and spec.sampler.can.in_blocks


def kept_code() -> set[Path]:
    """Return the files of compiled code that are kept."""
    place = jit._cache_directory("")
    return set() if place is None else set(Path(place).parent.rglob("*.nbc"))


def _made_up(spec: RunSpec, default: int = _RECORDS) -> Release:
    """Return a release of made-up records, as the spec's mechanism would make it, with seeded noise.

    There are `default` records where the spec does not say how many.
    """
    if spec.mechanism is None:
        raise SpecError("mechanism: missing; say how the release is made, or give --release FILE")
    data, rng = spec.data, np.random.default_rng(1)
    stated = spec.n or default
    n = stated if getattr(spec.mechanism, "n", None) else min(int(stated), _MOST_RECORDS)
    names = data.columns if data is not None else None
    if not spec.mechanism.protects:
        low, high = np.array(spec.mechanism.domain or ((0.0, 1.0),), dtype=np.float64).T
        values = rng.uniform(low, high, size=(n, low.size))
        names = names or tuple(f"column {i + 1}" for i in range(low.size))
        kind = law_of({"kind": "none"})
        return Release(values, tuple(names), kind, float("inf"), None, None, n, private=False, simulated=True)
    mechanism = mechanism_of(spec, n=n)
    values = mechanism.random_records(n, rng)
    groups = getattr(mechanism, "groups", None)
    if groups is not None:
        values = np.column_stack([values, rng.integers(groups.count, size=n)])
    names = names or tuple(f"column {i + 1}" for i in range(values.shape[1] - (groups is not None)))
    return mechanism.simulate(values, names, rng)[0]
