"""The spec of a sweep: a base spec, and what is varied in it from run to run."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PrivateAttr,
    StrictBool,
    Tag,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from dpmix.errors import SpecError
from dpmix.spec.fields import LARGEST_SEED, Integer, Listed, Section, number_or_list, refusal, shown, wrong
from dpmix.spec.load import overrides_of, parse_override, read_contents
from dpmix.spec.messages import spec_error
from dpmix.spec.run_spec import RunSpec
from dpmix.spec.table_source import FilePath

MOST_RUNS: Final = 10_000
LABEL: Final = "name"
"""Key of an entry of ``list`` that names it, rather than a key of the spec."""

_SAME_FOR_ALL: Final = ("privacy",)
_SEEDS: Final = ("data.seed", "sampler.seed")

Seed = Annotated[Integer, Field(ge=0, le=LARGEST_SEED)]


def _path(key: object) -> object:
    """Check the key of what is varied, such as ``mechanism.epsilon``."""
    if not isinstance(key, str) or not all(part.strip() for part in key.split(".")):
        raise wrong("must be a key of the spec such as mechanism.epsilon, not {got}", key)
    return key


def _known(key: str) -> str:
    section = key.split(".")[0]
    if section not in RunSpec.model_fields:
        raise wrong("{got} is no section of a spec; known: " + ", ".join(RunSpec.model_fields), section)
    return key


def _varying(key: str) -> str:
    if _known(key).split(".")[0] in _SAME_FOR_ALL:
        raise wrong("{got} is the same for all runs; put it in the base spec, or under set", key)
    return key


Key = Annotated[str, BeforeValidator(_path), AfterValidator(_known)]
VaryingKey = Annotated[str, BeforeValidator(_path), AfterValidator(_varying)]
Settings = dict[Key, Any]


def _entry(value: object) -> object:
    """Take the label of an entry apart from what it sets."""
    if not isinstance(value, Mapping):
        raise wrong("must be a mapping of keys such as mechanism.epsilon to values, not {got}", value)
    label = value.get(LABEL)
    if label is not None and (not isinstance(label, str) or not label.strip() or not label.isprintable()):
        raise wrong("name must be printable text, not {got}", label)
    return value


def _settings(value: Mapping[str, Any]) -> dict[str, Any]:
    for key in value:
        if key != LABEL:
            _varying(str(_path(key)))
    if not set(value) - {LABEL}:
        raise wrong("sets no key of the spec", value)
    return dict(value)


Entry = Annotated[dict[str, Any], BeforeValidator(_entry), AfterValidator(_settings)]
Values = Annotated[tuple[Any, ...], Listed, Field(min_length=1)]


class SweepSpec(Section):
    """What runs a sweep has: each entry of ``list`` with each combination of ``grid``, replicated."""

    base: Annotated[
        Annotated[FilePath, Tag("path")] | Annotated[dict[str, Any], Tag("contents")],
        Discriminator(lambda value: "contents" if isinstance(value, Mapping) else "path"),
    ] = Field(description="The spec that all runs start from: its file, or the spec itself.")
    fixed: Settings = Field(
        default_factory=dict,
        alias="set",
        description="Keys of the spec that all runs have in place of those of the base.",
    )
    entries: Annotated[tuple[Entry, ...], Listed, Field(min_length=1)] | None = Field(
        None, alias="list", description="Keys that are set together, one entry after the other."
    )
    grid: dict[VaryingKey, Values] = Field(
        default_factory=dict, description="Values of each key, of which all combinations are run."
    )
    replicates: (
        Annotated[
            Annotated[Integer, Field(ge=1, le=MOST_RUNS), Tag("count")]
            | Annotated[tuple[Seed, ...], Listed, Field(min_length=1), Tag("seeds")],
            number_or_list("count", "seeds"),
        ]
        | None
    ) = Field(
        None,
        description="Number of replicates of each run, with seeds 1, 2, .., or a list of their seeds: of "
        "simulated data and their noise, and of the chains.",
    )
    keep_chains: StrictBool = Field(
        True, description="Whether the chains of finished runs stay on the disk, beside their summaries."
    )

    _source_dir: Path = PrivateAttr(default_factory=Path)

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if info.context and "folder" in info.context:
            self._source_dir = Path(info.context["folder"])
        labels = [entry[LABEL] for entry in self.entries or () if LABEL in entry]
        for label in labels:
            if labels.count(label) > 1:
                raise refusal("list", f"names two entries {shown(label)}")
        for key, values in self.grid.items():
            for place, value in enumerate(values):
                same = [other for other in values[:place] if value == other]
                if any(isinstance(value, bool) == isinstance(other, bool) for other in same):  # 1 equals true
                    raise refusal(f"grid.{key}", f"lists {shown(value)} twice")
        self._check_overlap()
        seeds = self.seeds
        if len(set(seeds)) < len(seeds):
            raise refusal("replicates", "lists a seed twice")
        if self.size > MOST_RUNS:
            raise refusal("", f"the sweep has {self.size:,} runs; at most {MOST_RUNS:,} are run at once")
        return self

    def _check_overlap(self) -> None:
        """Check that no key is set in two places, nor one inside another that is replaced as a whole."""
        places = {f"grid.{key}": key for key in self.grid}
        for number, entry in enumerate(self.entries or ()):
            places |= {f"list[{number}].{key}": key for key in entry if key != LABEL}
        if self.replicates is not None:
            for name in self._seeded():
                raise refusal(name, "is set by replicates; give one of them")
        own = {f"set.{key}": key for key in self.fixed}
        inner = {name: key for name, key in places.items() if name.startswith("list")}
        outer = {name: key for name, key in places.items() if name.startswith("grid")}
        for one, other in ((own, places), (inner, outer)):
            for first, key in one.items():
                for second, whole in other.items():
                    if key == whole or key.startswith(f"{whole}."):
                        raise refusal(first, f"is replaced by {second}; give it there alone")

    def _seeded(self) -> Iterator[str]:
        """Give the places where a seed is set, by itself or in a section that is set as a whole."""
        settings = [(f"set.{key}", key, value) for key, value in self.fixed.items()]
        for number, entry in enumerate(self.entries or ()):
            settings += [(f"list[{number}].{key}", key, value) for key, value in entry.items()]
        settings += [(f"grid.{key}", key, value) for key, values in self.grid.items() for value in values]
        for name, key, value in settings:
            if key in _SEEDS:
                yield name
            elif f"{key}.seed" in _SEEDS and isinstance(value, Mapping) and value.get("seed") is not None:
                yield f"{name}.seed"

    @property
    def source_dir(self) -> Path:
        """Folder of the file that the sweep came from; the working directory for a dict."""
        return self._source_dir

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the replicates; none where runs are not replicated."""
        if isinstance(self.replicates, int):
            return tuple(range(1, self.replicates + 1))
        return self.replicates or ()

    @property
    def size(self) -> int:
        """Number of runs."""
        found = len(self.entries or (None,)) * max(1, len(self.seeds))
        for values in self.grid.values():
            found *= len(values)
        return found


def is_sweep(path: Path) -> bool:
    """Whether a file is the spec of a sweep rather than of one run: whether it has a base.

    A pipe, which can be read once, is left to whoever reads it as the spec of a run.
    """
    try:
        return path.is_file() and "base" in read_contents(path)
    except SpecError:
        return False  # whoever reads it as the spec of a run says what is wrong


def load_sweep(
    source: Mapping[str, Any] | str | os.PathLike[str] | SweepSpec, overrides: Sequence[str] = ()
) -> SweepSpec:
    """Read, override and check the spec of a sweep; its runs are not checked yet.

    Parameters
    ----------
    source : mapping, path or SweepSpec
        Contents of the spec of a sweep, the YAML file that holds them, or one that is checked already.
    overrides : sequence of str
        Each ``key=value``: of the sweep (``replicates=2``, ``grid.mechanism.epsilon=[1, 2]``), of which null
        takes one out, or else of the base spec (``sampler.iterations=400``), as under ``set``.

    Raises
    ------
    SpecError
        If the file cannot be read or is no YAML, or a key is unknown or has a value that makes no sense.
    """
    if isinstance(source, SweepSpec):
        contents: Any = source.model_dump(by_alias=True, exclude_none=True)
        folder = source.source_dir
    elif isinstance(source, Mapping):
        contents, folder = source, Path()
    elif isinstance(source, (str, os.PathLike)):
        contents, folder = read_contents(Path(source)), Path(source).parent
    else:
        raise SpecError(f"a sweep is a mapping, a path or a SweepSpec, not {type(source).__name__}")
    if isinstance(contents, Mapping) and "base" not in contents and {"data", "model"}.intersection(contents):
        raise SpecError("base: missing; this is the spec of one run, which that of a sweep names as its base")
    for override in overrides_of(overrides):
        contents = _overridden(contents, override)
    try:
        return SweepSpec.model_validate(contents, context={"folder": folder.absolute()})
    except ValidationError as error:
        raise spec_error(error, contents) from None


def _overridden(contents: Mapping[str, Any], override: str) -> dict[str, Any]:
    keys, value = parse_override(override)
    own = [field.alias or name for name, field in SweepSpec.model_fields.items()]
    found = dict(contents)
    if keys[0] not in own or (keys[0] == "base" and len(keys) > 1):
        section, key = "set", ".".join(keys[keys[0] == "base" :])
    elif len(keys) > 1:
        section, key = keys[0], ".".join(keys[1:])
    else:
        return _put(found, keys[0], value)
    before = found.get(section)
    if before is not None and not isinstance(before, Mapping):
        raise SpecError(f"--set {'.'.join(keys)}: {section} is no mapping of keys; set {section} as a whole")
    inner = {**(before or {}), key: value}  # null under set takes the key out of the base
    return {**found, section: inner if section == "set" else _put(inner, key, value)}


def _put(contents: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    kept = {**contents, key: value}
    if value is None:
        del kept[key]
    return kept
