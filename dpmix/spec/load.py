"""From a file, a dict or a spec, with overrides, to a checked :class:`~dpmix.spec.run_spec.RunSpec`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmix.errors import SpecError, UsageError
from dpmix.spec.combinations import choose, why_settled
from dpmix.spec.fields import shown
from dpmix.spec.kinds import AUTO
from dpmix.spec.messages import did_you_mean
from dpmix.spec.run_spec import RunSpec, check_spec
from dpmix.spec.table_source import STREAM, InMemory
from dpmix.spec.yamltext import MAX_BYTES, parse_yaml

SpecSource = Mapping[str, Any] | str | os.PathLike[str] | RunSpec
"""Contents of a spec, the YAML file that holds them, or a spec that is checked already."""


def load_spec(
    source: SpecSource,
    overrides: Sequence[str] = (),
    data: Any = None,
    *,
    unread: bool = False,
) -> RunSpec:
    """Read, override and check a spec.

    Parameters
    ----------
    source : mapping, path or RunSpec
        Contents of a spec, the YAML file that holds them, or a spec that is checked already.
    overrides : sequence of str
        Each ``section.key=value``, the value in YAML; they replace what the source says, in order. A value
        of null takes the key out of the source, but for the whole of ``privacy``.
    data : object, optional
        A table that Python holds, in the place of ``data.path`` and what is said of its text: a DataFrame, a
        table of Arrow, a mapping of columns, or an array.
    unread : bool
        Whether no data will be read, so that ``data.path`` may be missing.

    Returns
    -------
    RunSpec
        With relative paths, also those of overrides, resolved against the folder of the file; against the
        working directory for a mapping, and against the spec's own folder for a RunSpec.

    Raises
    ------
    SpecError
        If the file cannot be read or is no YAML, or a key is unknown or has a value that makes no sense.
    PrivacyError
        If the guarantee asked for cannot be met in the way asked for.
    """
    contents: Any
    overrides = overrides_of(overrides)
    held = None if data is None else InMemory(data)
    if isinstance(source, RunSpec):
        if not overrides and held is None:
            return source
        if held is None and source.data is not None:
            held = source.data.held
        contents, folder = source.given(), source.source_dir
    elif isinstance(source, Mapping):
        contents, folder = source, Path()
    elif isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if str(source) == STREAM:
            raise SpecError("-: a spec is a file, and never read from standard input; name it")
        contents, folder = read_contents(path), path.parent
    else:
        raise SpecError(f"a spec is a mapping, a path or a RunSpec, not {type(source).__name__}")
    kept = isinstance(contents, Mapping) and contents.get("privacy") is not None
    absent = []
    for override in overrides:
        keys, value = parse_override(override)
        if value is None and not _holds(contents, keys):  # taken out of nothing: the name may be mistyped
            absent.append(keys)
        contents = replaced(contents, keys, value)
    if kept and contents.get("privacy") is None:
        raise SpecError(
            "privacy: null takes out the ledger that the spec names, and nothing would tell; --no-ledger "
            "goes by it, says so and records it"
        )
    if data is not None:
        contents = _without_file(contents)
    return check_spec(contents, folder, held, unread=unread, absent=absent)


def overrides_of(given: Sequence[str]) -> tuple[str, ...]:
    """Return overrides, of which one may be given as its text alone.

    Raises
    ------
    SpecError
        For what is no list of texts.
    """
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes):
        raise SpecError(
            f"overrides: must be a list of texts such as sampler.chains=2, not {type(given).__name__}"
        )
    found = tuple(given)
    for override in found:
        if not isinstance(override, str):
            raise SpecError(f"an override is text such as sampler.chains=2, not {shown(override)}")
    return found


def _without_file(contents: Any) -> Any:
    """Return the contents of a spec whose section ``data`` names no file, for a table that Python holds."""
    section = contents.get("data", {}) if isinstance(contents, Mapping) else None
    if not isinstance(section, Mapping):
        return contents
    of_file = ("path", "delimiter", "decimal", "encoding")
    return {**contents, "data": {key: value for key, value in section.items() if key not in of_file}}


def with_sampler(
    spec: RunSpec,
    mechanism: str,
    n: int,
    *,
    cells: int | None = None,
    grouped: bool = False,
    tallied: bool = False,
) -> tuple[RunSpec, str | None]:
    """Return a spec of a model with the sampler that auto takes for a release, and why.

    The spec stays as it is where it names one. The others as in `dpmix.spec.combinations.choose`.
    """
    given = "kind" in spec.sampler.model_fields_set and spec.sampler.kind != AUTO
    if given:
        return spec, None
    if spec.sampler.kind != AUTO and not grouped:
        return spec, why_settled(spec)
    found = choose(spec, mechanism, n, cells=cells, grouped=grouped, tallied=tallied)
    return load_spec(spec, [f"sampler.kind={found.kind}"]), found.why


def naming_ledger(
    ledger: str | os.PathLike[str] | None = None, dataset: str | None = None
) -> tuple[str, ...]:
    """Return the overrides of a spec that name this ledger and data set.

    A relative path counts from where we are.

    Raises
    ------
    SpecError
        For - , which is no file.
    """
    if str(ledger) == STREAM:
        raise SpecError("--ledger: - is no file; name the one that releases are entered in")
    path = None if ledger is None else os.path.abspath(ledger)
    given = {"privacy.ledger": path, "privacy.dataset": dataset}
    return tuple(
        f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items() if value is not None
    )


def read_contents(path: Path) -> Any:
    """Read the mapping that a YAML file holds.

    Raises
    ------
    SpecError
        If it cannot be read, is no YAML, or holds no mapping.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SpecError(f"{path}: no such spec file") from None
    except IsADirectoryError:
        raise SpecError(f"{path}: a folder, not a spec file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError(f"{path}: cannot be read ({reason})") from None
    if len(raw) > MAX_BYTES:
        raise SpecError(f"{path}: larger than {MAX_BYTES:,} bytes, which no spec is")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SpecError(
            f"{path}: line {line}: not UTF-8 text; name a spec, which is YAML, as `dpmix init KIND` prints it"
        ) from None
    contents = parse_yaml(text, str(path))
    if contents is None:
        raise SpecError(f"{path}: is empty; `dpmix init KIND` prints a spec to start from")
    if not isinstance(contents, Mapping):
        # what it holds is not shown: it may be the confidential table, named in the place of the spec
        raise SpecError(
            f"{path}: must be a mapping of keys such as mechanism and model; name a spec, as "
            "`dpmix init KIND` prints it"
        )
    return contents


def parse_override(override: str) -> tuple[list[str], Any]:
    """Return the keys, from the section inwards, and the value of an override such as ``sampler.chains=2``.

    Raises
    ------
    SpecError
        If it is no such text.
    """
    path, equals, text = override.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or not all(keys):
        raise SpecError(f"--set {shown(override)}: write section.key=value, such as sampler.chains=2")
    if text.strip() == STREAM:  # to YAML a list of nothing
        return keys, STREAM
    return keys, parse_yaml(text, f"--set {'.'.join(keys)}")


def replaced(contents: Any, keys: Sequence[str], value: Any, above: tuple[str, ...] = ()) -> Any:
    """Return a copy of the contents of a spec in which one key is replaced, or taken out by a value of None.

    The keys lead there from the section that the keys `above` lead to, whose contents are given.

    Raises
    ------
    SpecError
        If there is no such section, or something on the way to the key is no section.
    """
    if not keys:
        return value
    if contents is None:
        contents = {}
    if not isinstance(contents, Mapping):
        name = ".".join(above)
        raise SpecError(
            f"{'.'.join((*above, *keys))}: {name} is {shown(contents)}, not a section; set {name} as a whole"
        )
    if not above and keys[0] not in RunSpec.model_fields:
        guess = did_you_mean(keys[0], RunSpec.model_fields)
        raise SpecError(
            f"{'.'.join(keys)}: unknown section; {guess or 'known: ' + ', '.join(RunSpec.model_fields)}"
        )
    key, *rest = keys
    if value is None and not rest:
        return {name: other for name, other in contents.items() if name != key}
    return {**contents, key: replaced(contents.get(key), rest, value, (*above, key))}


def _holds(contents: Any, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(contents, Mapping) or key not in contents:
            return False
        contents = contents[key]
    return True


def check_of_summary(overrides: Sequence[str], taken: str) -> tuple[str, ...]:
    """Refuse overrides of chains that are made, but of ``summary``; `taken` says of which keys."""
    found = overrides_of(overrides)
    for override in found:
        if not override.lstrip().startswith("summary."):
            key = override.partition("=")[0].strip()
            raise UsageError(f"--set {key}: the chains are made; {taken}")
    return found


def check_overrides(overrides: Sequence[str]) -> None:
    """Check the overrides of predict before chains are read.

    Raises
    ------
    UsageError
        For a key of another section than ``summary``.
    SpecError
        For what is no spec, whatever the rest of it is.
    """
    check_of_summary(overrides, "predict takes summary.level and summary.interval")
    load_spec({"summary": {}}, overrides)
