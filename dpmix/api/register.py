"""`dpmix.register`: mechanisms, kernels and samplers of others, each from one file by one registration."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from dpmix.errors import UsageError
from dpmix.kernels import kernel_functions
from dpmix.kernels.layout import Layout, add_layout
from dpmix.kernels.learned_base import keep_fixed, with_base
from dpmix.laws.additive import Additive
from dpmix.laws.every import Law, law_type
from dpmix.mechanisms.channels import channel_functions
from dpmix.numerics import jit
from dpmix.samplers.sweeps import BUILDERS, Algorithm, by_fields, follow_base, keep_nothing, sweep
from dpmix.spec.capabilities import SamplerCapabilities
from dpmix.spec.kinds import KERNELS, MECHANISMS, SAMPLERS, Kinds, capabilities_of
from dpmix.spec.mechanism_section import MechanismSection
from dpmix.spec.model_section import MixtureSection

if TYPE_CHECKING:
    from dpmix.spec.run_spec import RunSpec

_OF_CHANNEL = ("hides", "noise_variance", "log_constant")
_OF_KERNEL = ("draw_prior", "draw_posterior", "tally", "draw_record", "value")
_OF_PAIR = ("log_marginal", "fill_marginal", "draw_start")
_OF_CONJUGATE = ("log_integral", "log_factor")
_MODULES: dict[str, list[str]] = {}
"""Modules of the parts of what is registered, by its name."""
_SHIPPED = {id(kinds): frozenset(kinds.names) for kinds in (MECHANISMS, KERNELS, SAMPLERS)}


def register(
    section: type[MechanismSection] | type[MixtureSection] | SamplerCapabilities,
    *,
    law: type[Law] | None = None,
    curator: Any = None,
    channel: type | None = None,
    kernel: Any = None,
    family: Callable[..., Any] | None = None,
    layout: Layout | None = None,
    algorithm: Any = None,
) -> None:
    """Add a mechanism, a kernel of mixtures or a sampler to those that ship, for this process.

    From then on its name is a value of ``mechanism.kind``, ``model.kernel`` or ``sampler.kind``, and the
    schema has it. What it goes with follows from what its section says it can do. The files that its parts
    are defined in join the key of kept code, so that a changed file is compiled anew. Registering again
    replaces what was registered; what ships is not replaced. The file is code that runs here as any other.

    Parameters
    ----------
    section : type of MechanismSection or MixtureSection, or SamplerCapabilities
        What a spec says of it, and what it can do. Its name is the literal of its field ``kind``, or
        ``kernel``.
    law : type of Law
        Of a mechanism: its public half, whose ``capabilities`` are the section.
    curator : object
        Of a mechanism: has the functions ``make(section, records)``, which returns a calibrated
        `dpmix.mechanisms.curators.mechanism.Mechanism`, and ``stated(section, records)``; a module or class.
    channel : type of NamedTuple, optional
        Of a mechanism that releases records, which mixtures are fitted to: what the law's ``observe``
        returns, with its functions registered, alone and for one kernel at least.
    kernel : type of NamedTuple
        Of a kernel: its base measure's parameters, with the properties ``parameters`` and ``constants`` and
        the class method ``of_spec(section, bounds)``; and its functions, registered.
    family : callable
        Of a kernel: makes its `dpmix.kernels.layout.Family` of the constants in a chains file.
    layout : Layout
        Of a kernel: what a chains file holds of it.
    algorithm : type of NamedTuple
        Of a sampler: its settings, among ``auxiliary`` and ``truncation``, with ``sweep`` registered.

    Raises
    ------
    UsageError
        When a part is missing, lacks a function, or belongs to something else; nothing is registered then.
    """
    given = {
        name: part
        for name, part in {
            "law": law,
            "curator": curator,
            "channel": channel,
            "kernel": kernel,
            "family": family,
            "layout": layout,
            "algorithm": algorithm,
        }.items()
        if part is not None
    }
    if isinstance(section, SamplerCapabilities):
        name = section.kind
        _take(name, given, ("algorithm",))
        _check_free(SAMPLERS, name)
        _check_sampler(section, algorithm)
        if (algorithm,) not in follow_base.registered:  # else its file says what it keeps of the base measure
            follow_base.register(keep_nothing, algorithm)
        _join(algorithm)
        SAMPLERS.add(name, section=section)
        BUILDERS[name] = by_fields(algorithm)
    elif isinstance(section, type) and issubclass(section, MechanismSection):
        name = _name(section, "kind")
        _take(name, given, ("law", "curator"), ("channel",))
        _check_free(MECHANISMS, name)
        _check_mechanism(name, section, given)
        _join(section, *given.values())
        MECHANISMS.add(name, section=section, law=law, curator=curator)
    elif isinstance(section, type) and issubclass(section, MixtureSection):
        name = _name(section, "kernel")
        _take(name, given, ("kernel", "family", "layout"))
        _check_free(KERNELS, name)
        _check_kernel(name, section, kernel, given["layout"])
        if (kernel,) not in with_base.registered:  # else its file says what is learned of its base measure
            keep_fixed(kernel)
        _join(section, kernel, family)
        KERNELS.add(name, section=section, kernel=kernel, family=family, layout=layout)
        add_layout(replace(given["layout"], family=lambda constants, _: given["family"](constants)))
    else:
        raise UsageError(
            "register: the section must be a MechanismSection, a MixtureSection or a SamplerCapabilities, "
            f"not {getattr(section, '__name__', section)!r}"
        )
    _MODULES[name] = _modules_of((section, *given.values()))


def registered_kinds(spec: RunSpec) -> list[str]:
    """Return what a spec names that does not ship, as its mechanism, kernel or sampler."""
    model: Any = spec.model
    named: tuple[tuple[Kinds, str | None], ...] = (
        (MECHANISMS, None if spec.mechanism is None else spec.mechanism.kind),
        (KERNELS, getattr(model, "kernel", None)),
        (SAMPLERS, spec.sampler.kind),
    )
    return [name for kinds, name in named if name and name in kinds and name not in _SHIPPED[id(kinds)]]


def registered_modules() -> list[tuple[str, str]]:
    """Return names and files of the modules that register something, or have functions for it.

    Raises
    ------
    UsageError
        Where one is the script that runs, which another process cannot import.
    """
    found: dict[str, str] = {}
    for kinds in (MECHANISMS, KERNELS, SAMPLERS):
        for name in kinds.names:
            if name not in _SHIPPED[id(kinds)]:
                found |= dict.fromkeys(_MODULES[name], name)
    for place in (kernel_functions, channel_functions):
        for function in vars(place).values():
            for classes, impl in getattr(function, "registered", {}).items():
                if not _ours(impl.__module__) and any(each.__module__ in found for each in classes if each):
                    found.setdefault(impl.__module__, impl.__name__)
    for module, name in found.items():
        if module == "__main__":
            raise UsageError(
                f"register: {name} is defined in the script that runs, which the processes of a sweep cannot "
                "import; put it in a file of its own, and import that"
            )
    return [(module, str(sys.modules[module].__file__)) for module in found]


def import_registered(modules: Iterable[Sequence[str]]) -> None:
    """Import modules, as pairs of name and file, of which another process has what it registered.

    Raises
    ------
    UsageError
        Where a name is that of another file here.
    """
    for name, file in modules:
        path = Path(file)
        above = name.count(".") + (path.name == "__init__.py")
        folder = str(path.parents[above])
        if folder not in sys.path:
            sys.path.append(folder)
        found = getattr(import_module(name), "__file__", None)
        if found is None or Path(found).resolve() != path.resolve():
            raise UsageError(f"register: {name} is {found} here, and {file} where the sweep began; rename it")


def _modules_of(parts: Iterable[Any]) -> list[str]:
    """Return the names of the modules, but ours, that classes and functions are defined in."""
    found: dict[str, Any] = {}
    for part in parts:
        if inspect.ismodule(part):
            found[part.__name__] = part
        elif inspect.isclass(part) or inspect.isroutine(part):
            found[part.__module__] = part
    return [module for module in found if not _ours(module)]


def _ours(module: str) -> bool:
    return module.split(".")[0] == "dpmix"


def _name(section: type[MechanismSection] | type[MixtureSection], key: str) -> str:
    """Return the name that a section is chosen by: the literal of a field."""
    field = section.model_fields.get(key)
    names = () if field is None else get_args(field.annotation)
    if len(names) != 1 or not isinstance(names[0], str):
        raise UsageError(f'register: {section.__name__} must have a field {key}: Literal["NAME"], its name')
    return names[0]


def _take(name: str, given: dict[str, Any], needed: tuple[str, ...], allowed: tuple[str, ...] = ()) -> None:
    """Refuse parts that are missing, or are of something else."""
    for part in needed:
        if part not in given:
            raise UsageError(f"register: {name} has no {part}; give {part}=")
    for part in given:
        if part not in (*needed, *allowed):
            raise UsageError(f"register: {part} is no part of {name}; leave it out")


def _check_free(kinds: Kinds, name: str) -> None:
    if name in _SHIPPED[id(kinds)]:
        raise UsageError(f"register: {name} is the name of one that ships; choose another")


def _has(name: str, place: Any, functions: tuple[str, ...], classes: tuple[type, ...]) -> None:
    """Refuse classes that functions are not registered for."""
    for function in functions:
        if classes not in getattr(place, function).registered:
            of = " and ".join(each.__name__ for each in classes)
            raise UsageError(f"register: {name} lacks {function}; register it for {of}")


def _check_tuple(name: str, part: str, found: Any) -> None:
    fields: tuple[str, ...] | None = getattr(found, "_fields", None)
    if not (isinstance(found, type) and issubclass(found, tuple) and fields):
        raise UsageError(f"register: the {part} of {name} must be a NamedTuple with at least one field")


def _check_mechanism(name: str, section: type[MechanismSection], given: dict[str, Any]) -> None:
    law, channel = given["law"], given.get("channel")
    if not (isinstance(law, type) and issubclass(law, Law) and law.capabilities is section):
        raise UsageError(
            f"register: the law of {name} must be a Law with capabilities = {section.__name__}, its section"
        )
    for function in ("make", "stated"):
        if not callable(getattr(given["curator"], function, None)):
            raise UsageError(f"register: the curator of {name} lacks {function}(section, records)")
    base = _law_of_released(section.released)
    if not issubclass(law, base):
        raise UsageError(
            f"register: {name} releases {section.released}, so that its law must be a {base.__name__}"
        )
    if section.additive and not issubclass(law, Additive):
        raise UsageError(f"register: {name} says that it is additive, so that its law must be an Additive")
    if section.transitional and not law.provides("transition"):
        raise UsageError(f"register: {name} says that it is transitional, and its law lacks transition")
    fitted = MixtureSection.takes_release(section)
    if fitted != (channel is not None):
        what = "needs a channel" if fitted else "has a channel, and mixtures take records or histograms alone"
        raise UsageError(
            f"register: {name} releases {section.released or 'nothing that it names'}: it {what}"
        )
    if channel is None:
        return
    if law.observe is Law.observe:
        raise UsageError(f"register: the law of {name} lacks observe, which gives samplers the channel")
    _check_tuple(name, "channel", channel)
    _has(name, channel_functions, _OF_CHANNEL, (channel,))
    pairs = [pair for pair in channel_functions.log_marginal.registered if pair[0] is channel]
    if not pairs:
        raise UsageError(
            f"register: {name} goes with no kernel; register log_marginal for {channel.__name__} and a kernel"
        )
    for pair in pairs:
        _has(name, channel_functions, _OF_PAIR, pair)


def _law_of_released(released: str) -> type[Law]:
    """Return what the laws of all that ship and release the same are."""
    laws = [law_type(kind) for kind in _SHIPPED[id(MECHANISMS)] if capabilities_of(kind).released == released]
    shared = (
        each for each in (laws[0].__mro__ if laws else ()) if all(issubclass(law, each) for law in laws)
    )
    return next(shared, Law)


def _check_kernel(name: str, section: type[MixtureSection], kernel: Any, layout: Layout) -> None:
    _check_tuple(name, "kernel", kernel)
    for part in ("parameters", "constants", "of_spec"):
        if not hasattr(kernel, part):
            raise UsageError(f"register: the kernel {kernel.__name__} of {name} lacks {part}")
    if not isinstance(layout, Layout) or layout.kernel != name:
        raise UsageError(f"register: the layout of {name} must be a Layout of the kernel {name}")
    if section.several:
        raise UsageError(f"register: {name} is for several columns, and what is registered is for one")
    _has(name, kernel_functions, _OF_KERNEL + (_OF_CONJUGATE if section.conjugate else ()), (kernel,))


def _check_sampler(can: SamplerCapabilities, algorithm: Any) -> None:
    _check_tuple(can.kind, "algorithm", algorithm)
    for field in algorithm._fields:
        if field not in ("auxiliary", "truncation"):
            raise UsageError(
                f"register: the algorithm of {can.kind} has the field {field}; the settings of the section "
                f"sampler that it can have are {', '.join(Algorithm._fields[1:3])}"
            )
    if not can.mixtures or can.of_groups or can.on_counts or can.holds_records:
        raise UsageError(
            f"register: {can.kind} must be a sampler of mixtures, on records of which it holds nothing"
        )
    if not any(classes[0] is algorithm for classes in sweep.registered):
        raise UsageError(f"register: {can.kind} lacks sweep; register it for {algorithm.__name__} and Serial")


def _join(*parts: Any) -> None:
    """Let the files of parts join the key of kept code."""
    files = set()
    for part in parts:
        module = part if hasattr(part, "__file__") else sys.modules.get(getattr(part, "__module__", ""))
        file = getattr(module, "__file__", None)
        if file is None or not Path(file).is_file():
            if getattr(part, "__module__", "").startswith("dpmix."):
                continue
            raise UsageError(
                f"register: {getattr(part, '__name__', part)} is defined in no file, by whose contents "
                "compiled code is kept; put it in one"
            )
        files.add(Path(file))
    ours = Path(jit.__file__).parents[1]
    jit.join(*(file for file in files if not file.resolve().is_relative_to(ours)))
