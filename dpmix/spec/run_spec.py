"""The whole of a spec, and the checks across its sections."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, ValidationInfo, model_validator

from dpmix.errors import SpecError
from dpmix.spec.advise_section import AdviseSpec
from dpmix.spec.audit_section import AuditSpec
from dpmix.spec.combinations import combination_problem, group_problem, groups_in, models_that
from dpmix.spec.data_section import CATEGORY, DataSpec, ReleaseSpec, check_pairs
from dpmix.spec.days import Day, day_of
from dpmix.spec.fields import Section, absent_is_empty, refusal, shown
from dpmix.spec.kinds import AUTO
from dpmix.spec.mechanism_section import MechanismSpec
from dpmix.spec.messages import spec_error, unknown_keys
from dpmix.spec.model_section import MixtureSection, ModelSpec, default_sampler
from dpmix.spec.privacy_section import PrivacySpec
from dpmix.spec.sampler_section import SamplerSpec
from dpmix.spec.summary_section import SummarySpec
from dpmix.spec.synthesis_section import ChainsSynthesis, SynthesisOrChains, SynthesisSection
from dpmix.spec.table_source import InMemory

OF_ANALYST = ("mechanism", "model", "sampler", "summary")
"""Sections of a spec that chains and summaries hold, beside the data where these are simulated."""


class RunSpec(Section):
    """Everything that a run of dpmix needs to know.

    Sections that are absent are None, but for ``sampler`` and ``summary``, which have defaults throughout.
    """

    data: DataSpec | None = Field(None, description="The confidential data: curator's side.")
    release: ReleaseSpec | None = Field(
        None, description="Sanitized values made elsewhere: analyst's side, in place of a release file."
    )
    mechanism: MechanismSpec | None = Field(None, description="How the data are, or were, privatized.")
    model: ModelSpec | None = Field(None, description="The model that is fitted to the release.")
    sampler: Annotated[SamplerSpec, BeforeValidator(absent_is_empty)] = Field(
        default_factory=lambda: SamplerSpec.model_validate({}), description="The Markov chains."
    )
    summary: Annotated[SummarySpec, BeforeValidator(absent_is_empty)] = Field(
        default_factory=lambda: SummarySpec.model_validate({}), description="What is reported."
    )
    synthesis: SynthesisOrChains | None = Field(None, description="Release of synthetic records.")
    privacy: PrivacySpec | None = Field(
        None, description="The ledger of the data's releases and their budget: curator's side."
    )

    audit: AuditSpec | None = Field(
        None, description="Another program's releases, and what it claims of them: for dpmix audit."
    )
    advise: AdviseSpec | None = Field(
        None, description="A public population, and the precision that is wanted: for dpmix advise."
    )

    _source_dir: Path = PrivateAttr(default_factory=Path)

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if info.context and "folder" in info.context:
            self._source_dir = Path(info.context["folder"])
        self._settle_domain()
        if self.mechanism is not None and self.data is not None:
            self.mechanism.check_columns(self.data)
        self._check_missing()
        self._check_apart()
        mixture = isinstance(self.model, MixtureSection)
        if self.sampler.kind == AUTO and self.model is not None and (not mixture or self.grouped):
            self.sampler.settle(kind=default_sampler(self.model, self.sampler, grouped=bool(self.grouped)))
            self.sampler.model_fields_set.discard("kind")  # of an overridden model it is another
        mechanism = None if self.mechanism is None else self.mechanism.kind
        problem = group_problem(self) or combination_problem(mechanism, self, self.n, grouped=self.grouped)
        if problem is not None:
            raise refusal(*problem)
        self._check_gini()
        self._check_prediction()
        return self

    def _check_apart(self) -> None:
        """Refuse confidential records that are said to be a release with noise, for they carry none."""
        if self.data is None or self.release is None or (self.mechanism and not self.mechanism.protects):
            return
        for path in self.release.files:
            if self.data.holds(path):
                why = f"{path.name} is the confidential file itself (data.path); name the released values"
                raise refusal("release.path", why)

    def _check_gini(self) -> None:
        """Refuse a Gini coefficient of a mixture where stated public bounds admit negative values."""
        mechanism, model = self.mechanism, self.model
        if not self.summary.gini or mechanism is None or mechanism.domain is None:
            return
        if model is None or model.kind != "mixture":
            return
        source = self.data or self.release
        names = None if source is None else source.columns
        for number, (lo, hi) in enumerate(mechanism.domain):
            if lo < 0.0:
                of = f" of {names[number]}" if names is not None and number < len(names) else ""
                raise refusal(
                    "summary.gini",
                    f"the public bounds [{lo:g}, {hi:g}]{of} admit negative values, of which there is no "
                    "Gini coefficient; leave it out",
                )

    def _check_prediction(self) -> None:
        """Refuse predictions by a model that makes none, and intervals that it does not have."""
        model = self.model
        if model is None:
            return
        for key, can in (("at", "predicts"), ("interval", "predicts_intervals")):
            if getattr(self.summary, key) is not None and not getattr(model, can):
                names = " and ".join(models_that(can))
                raise refusal(f"summary.{key}", f"is for {names}, not for {model.kind}; leave it out")

    def _settle_domain(self) -> None:
        """Fill ``mechanism.domain`` from ``data.domain``, and check that there is one where it is needed."""
        mechanism, data = self.mechanism, self.data
        if mechanism is None:
            return
        if data is not None and data.domain is None:
            data.settle_dates(mechanism.domain or getattr(mechanism, "bounds", None))
        if self.release is not None and self.release.domain is None:
            self.release.settle_dates(mechanism.domain or getattr(mechanism, "bounds", None))
        if mechanism.domain is None and data is not None and data.pairs is not None:
            mechanism.settle(domain=data.pairs)
        elif mechanism.domain is not None and data is not None:
            if data.domain is not None and data.pairs != mechanism.domain:
                raise refusal("mechanism.domain", "differs from data.domain; give the public bounds once")
            check_pairs("mechanism.domain", mechanism.domain, data.columns)
        if mechanism.domain is None and mechanism.on_domain:
            stated = mechanism.columns_each and getattr(mechanism, "scale", None) is not None
            if (data is not None and not data.labelled) or (self._is_elsewhere() and not stated):
                raise refusal(
                    "mechanism.domain",
                    "missing; give the public bounds here or in data.domain (none are read off the data)",
                )
        counted = mechanism.released == "histogram" and getattr(mechanism, "n", None) is None
        if counted and data is None and self._is_elsewhere():
            raise refusal(
                "mechanism.n",
                f"missing; a {mechanism.kind} release does not tell of how many confidential records it is",
            )

    def _check_missing(self) -> None:
        """Check that what stands for missing values is public: within the bounds, or among the categories."""
        data, mechanism = self.data, self.mechanism
        if data is None or not data.missing:
            return
        columns = data.columns or ()
        value: object
        for name, value in data.missing.items():
            listed = data.listed.get(name)
            if listed is not None:
                known = {str(category) for category in listed} | {c for c in listed if not isinstance(c, str)}
                if value != CATEGORY and value not in known and str(value) not in known:
                    raise refusal(f"data.missing.{name}", f"{shown(value)} is none of data.categories")
                continue
            index = columns.index(name)
            bounds = data.bounds_of(index)
            if bounds is None and mechanism is not None:
                bounds = mechanism.bounds_of(index)
            if bounds is None and mechanism is None and self.generator is not None:
                continue  # free labels
            if bounds is not None and isinstance(bounds[0], Day):
                value = self._settle_day(data, name, value)
            self._check_number(name, value, bounds)
        if mechanism is not None:
            mechanism.check_missing(data)

    def _settle_day(self, data: DataSpec, name: str, value: object) -> Day:
        """Take what stands for missing dates for a date."""
        day = day_of(value)
        if day is None:
            raise refusal(f"data.missing.{name}", f"must be a date within the bounds, not {shown(value)}")
        data.settle(missing={**(data.missing or {}), name: day})
        return day

    def _check_number(self, name: str, value: object, bounds: tuple[float, float] | None) -> None:
        key = f"data.missing.{name}"
        if not isinstance(value, int | float):
            raise refusal(
                key,
                f"must be a number within the bounds of {name}, not {shown(value)}; category is for columns "
                "of public categories",
            )
        if bounds is not None and not bounds[0] <= value <= bounds[1]:
            raise refusal(key, f"{value:g} is outside the bounds [{bounds[0]:g}, {bounds[1]:g}] of {name}")
        whole = self.mechanism is not None and self.mechanism.reads == "levels"
        if whole and value != int(value):
            raise refusal(key, f"{value:g} is no level: whole numbers from 1 on")

    def _is_elsewhere(self) -> bool:
        """Whether the release is named here, without a file that describes it."""
        return self.release is not None and self.release.path is not None

    @property
    def groups(self) -> tuple[str, tuple[str, ...]] | None:
        """Name of the column of groups whose sizes are private, and the groups; None where there is none."""
        return groups_in(self)

    @property
    def grouped(self) -> bool | None:
        """Whether the release is of groups; None where the spec does not say, for its file does."""
        if self.groups is not None:
            return True
        return False if self.data is not None or self._is_elsewhere() else None

    @property
    def generator(self) -> SynthesisSection | None:
        """The section ``synthesis`` where it names a generator; else its records are drawn from chains."""
        return None if isinstance(self.synthesis, ChainsSynthesis) else self.synthesis

    @property
    def simulated(self) -> bool:
        """Whether the data are simulated."""
        return self.data is not None and self.data.simulate is not None

    @property
    def n(self) -> int | None:
        """Number of confidential records, where mechanism or data say it."""
        return getattr(self.mechanism, "n", None) or (None if self.data is None else self.data.n)

    @property
    def source_dir(self) -> Path:
        """Folder of the file the spec came from; the working directory for a dict."""
        return self._source_dir

    def __eq__(self, other: object) -> bool:
        """Compare resolved contents; where a spec was read from does not matter."""
        return isinstance(other, RunSpec) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.to_yaml())

    def to_dict(self) -> dict[str, Any]:
        """Return the resolved spec, all defaults filled in, as plain lists, dicts, numbers and text."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def given(self) -> dict[str, Any]:
        """Return the resolved spec without what follows from other keys, so that those may be overridden."""
        contents = self.to_dict()
        for section, key in (("sampler", "kind"), ("sampler", "burn_in"), ("mechanism", "domain")):
            part = getattr(self, section)
            if part is not None and key not in part.model_fields_set:
                contents[section].pop(key, None)
        return contents

    def to_yaml(self) -> str:
        """Return the resolved spec as YAML that :func:`dpmix.spec.load_spec` reads back to an equal spec."""
        from dpmix.spec.yamltext import dump_yaml

        return dump_yaml(self.to_dict())

    @classmethod
    def from_yaml(cls, text: str) -> "RunSpec":
        """Check a spec given as YAML text.

        Raises
        ------
        SpecError
            If the text is no YAML or no spec.
        """
        from dpmix.spec.yamltext import parse_yaml

        return check_spec(parse_yaml(text), Path())

    def for_analyst(self) -> "RunSpec":
        """Return the spec as it may go into outputs of the analyst's side: what draws depend on, and reports.

        `OF_ANALYST` stay, and the marks of simulated data; all else goes, such as where values came from and
        what the curator's other commands are to do. Not even the path of a confidential file is to be seen in
        chains or summaries.
        """
        contents = of_analyst(self.to_dict())
        if self.data is None or self.data.simulate is None:
            contents.pop("data", None)
        return RunSpec.model_validate(contents, context={"folder": self.source_dir})

    def for_readers(self) -> str:
        """Return `for_analyst` as YAML for reports, in which files have names and no folders."""
        from dpmix.spec.yamltext import dump_yaml

        contents = self.for_analyst().to_dict()
        for section, key in (("summary", "at"), ("model", "file")):
            named = contents.get(section) or {}
            held = named.get(key)
            if isinstance(held, str):
                named[key] = Path(held).name
            elif isinstance(held, dict) and "path" in held:
                held["path"] = Path(held["path"]).name
        return dump_yaml(contents)


def of_analyst(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of a resolved spec that say what a fit does; `data` only where it is there."""
    return {section: contents[section] for section in ("data", *OF_ANALYST) if section in contents}


def check_spec(
    contents: Any,
    folder: Path,
    held: InMemory | None = None,
    *,
    unread: bool = False,
    absent: Sequence[Sequence[str]] = (),
) -> RunSpec:
    """Check the contents of a spec, whose relative paths count from ``folder``.

    A table that is `held` stands in the place of ``data.path``, which may be missing where data are `unread`.
    Keys that are `absent` have to be known, too.

    Raises
    ------
    SpecError
        If a key is unknown or has a value that makes no sense.
    PrivacyError
        If the guarantee asked for cannot be met in the way asked for.
    """
    if not isinstance(contents, Mapping):
        raise SpecError(
            f"the spec: must be a mapping of keys such as mechanism and model, not {shown(contents)}"
        )
    if not contents:
        raise SpecError("the spec: is empty; `dpmix init KIND` prints one to start from")
    if "base" in contents:
        raise SpecError("base: this is the spec of a sweep, for `dpmix sweep`; name the spec of one run")
    try:
        context = {"folder": folder.absolute(), "held": held, "unread": unread}
        checked = RunSpec.model_validate(contents, context=context)
    except ValidationError as error:
        raise spec_error(error, contents) from None
    for keys in absent:
        asked = _with_nothing(contents, keys)
        try:
            RunSpec.model_validate(asked, context=context)
        except ValidationError as error:
            unknown = unknown_keys(error, asked)
            if unknown is not None:
                raise unknown from None
    return checked


def _with_nothing(contents: Any, keys: Sequence[str]) -> dict[str, Any]:
    """Return the contents of a section with a key in it that has no value."""
    key, *rest = keys
    return {**(contents or {}), key: _with_nothing((contents or {}).get(key), rest) if rest else None}
