"""Turning of pydantic's errors into sentences that name the key at fault and what would be right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from dpmix.errors import DpmixError, PrivacyError, SpecError
from dpmix.spec.advise_section import Population
from dpmix.spec.fields import PRIVACY_REFUSED, REFUSED, UNKNOWN_KEY, UNKNOWN_KIND, WORDED, kinds, shown
from dpmix.spec.kinds import KERNELS, MECHANISMS, MODELS, SAMPLERS
from dpmix.spec.synthesis_section import BaseSpec, SynthesisSpec

_UNIONS: Final = {
    "synthesis.kind": SynthesisSpec,
    "synthesis.base.kind": BaseSpec,
    "advise.population.kind": Population,
}
_KINDS: Final = {
    "mechanism.kind": MECHANISMS,
    "model.kind": MODELS,
    "model.kernel": KERNELS,
    "sampler.kind": SAMPLERS,
}


def known_kinds(key: str) -> tuple[str, ...]:
    """Return every value that a key such as ``mechanism.kind`` can have, in the order of the interface."""
    if key == "model.base.kind":
        return tuple(base for kernel in KERNELS.names for base in KERNELS.section(kernel).base_kinds)
    return _KINDS[key].names if key in _KINDS else kinds(_UNIONS[key])


MOST_SHOWN = 6

_BOUNDS = {
    "greater_than": ("gt", "must be greater than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return ``did you mean "..."?`` for the closest known word, or nothing."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1) if isinstance(word, str) else []
    return f'did you mean "{close[0]}"?' if close else ""


def spec_error(error: ValidationError, source: Any) -> DpmixError:
    """Write what pydantic says of the contents `source` as one line per problem.

    A :class:`PrivacyError` where a well-formed request for privacy cannot be met, else a :class:`SpecError`.
    """
    problems = error.errors(include_url=False)
    lines = _joined(dict.fromkeys(line for problem in problems for line in _lines(problem, source)))
    if len(lines) > MOST_SHOWN:
        lines[MOST_SHOWN:] = [f"and {len(lines) - MOST_SHOWN} more"]
    private = all(problem["type"] == PRIVACY_REFUSED for problem in problems)
    return (PrivacyError if private else SpecError)("\n".join(lines))


def unknown_keys(error: ValidationError, source: Any) -> SpecError | None:
    """Write those problems of `spec_error` that are keys nobody knows; None where there is none."""
    problems = [each for each in error.errors(include_url=False) if each["type"] == UNKNOWN_KEY]
    lines = dict.fromkeys(line for each in problems for line in _lines(each, source))
    return SpecError("\n".join(lines)) if lines else None


_WANTED = re.compile(
    r"must be (?P<what>.*), not (?P<value>.*)|(?P<unknown>.*) is unknown; one of (?P<words>.*)"
)


def _joined(lines: Iterable[str]) -> list[str]:
    """Make one line of those of one key that say what its value might have been: a cause is told once."""
    found: dict[str, list[str]] = {}
    for line in lines:
        key, _, message = line.partition(": ")
        found.setdefault(key, []).append(message)
    return [f"{key}: {message}" for key, messages in found.items() for message in _one_cause(messages)]


def _one_cause(messages: list[str]) -> list[str]:
    matches = [match for message in messages if (match := _WANTED.fullmatch(message))]
    values = {match["value"] or match["unknown"] for match in matches}
    if len(messages) == 1 or not matches or len(values) > 1:
        return messages
    if len(matches) < len(messages):  # it is of a right form, and what is wrong with it is the cause
        return [message for message in messages if not _WANTED.fullmatch(message)]
    wanted = " or ".join(match["what"] or match["words"] for match in matches)
    return [f"must be {wanted}, not {values.pop()}"]


def _lines(problem: Any, source: Any) -> list[str]:
    kind, context = problem["type"], problem.get("ctx", {})
    keys, value = _walk(problem["loc"], source, kind == "missing")
    if kind == "too_short" and isinstance(value, list | tuple) and len(value) >= context["min_length"]:
        return []  # entries that are wrong are not counted, and have lines of their own
    if kind == UNKNOWN_KEY:
        return [_unknown_key(keys, key, context["known"]) for key in context["unknown"]]
    if kind == UNKNOWN_KIND:
        return [_unknown_kind(keys, value, problem["msg"], source)]
    if kind in (REFUSED, PRIVACY_REFUSED):
        own = [context["key"]] if context["key"] else []
        return [_line([*keys, *own], context["why"])]
    if kind == WORDED:
        return [_line(keys, context["why"])]
    return [_line(keys, _wording(kind, context, value, problem["msg"]))]


def _wording(kind: str, context: Mapping[str, Any], value: Any, fallback: str) -> str:
    if kind == "missing":
        return "missing"
    if kind in _BOUNDS:
        name, phrase = _BOUNDS[kind]
        return f"{shown(value)} {phrase} {shown(context[name])}"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        return _unknown_word(value, known)
    if kind == "too_short":
        return f"{shown(value)} must have at least {context['min_length']} entries"
    if kind in ("string_type", "string_too_short"):
        return f"must be text, not {shown(value)}"
    if kind.startswith("bool"):
        return f"must be true or false, not {shown(value)}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"must be a mapping of keys, not {shown(value)}"
    if kind in ("missing_argument", "tuple_type", "list_type"):
        return f"must be a list, not {shown(value)}"
    return fallback[:1].lower() + fallback[1:]


def _unknown_key(keys: Sequence[str | int], key: object, known: Sequence[str]) -> str:
    guess = did_you_mean(key, known)
    name = key if isinstance(key, str) else shown(key)
    return _line(
        [*keys, " ".join(name.split())[:60]], f"unknown key; {guess or 'known: ' + ', '.join(known)}"
    )


def _unknown_kind(keys: Sequence[str | int], value: Any, key: str, source: Any) -> str:
    """Word the error of a section without a kind, or of a kind that there is not."""
    if not isinstance(value, Mapping):
        return _line(keys, f"must be a mapping of keys, not {shown(value)}")
    path = [*keys, key]
    choices = known_kinds(_table(path, source))
    if value.get(key) is None:
        return _line(path, "missing; one of " + ", ".join(choices))
    return _line(path, _unknown_word(value[key], choices))


def _table(path: Sequence[str | int], source: Any) -> str:
    """Return the key that a path to a kind stands for: columns and list entries have none."""
    dotted = _dotted(path)
    model = source.get("model") if isinstance(source, Mapping) else None
    discrete = isinstance(model, Mapping) and model.get("kind") == "discrete"
    if "rivals" in path:
        return "synthesis.base.kind" if "base" in path else "synthesis.kind"
    if path[:2] == ["synthesis", "base"] or (discrete and path[:2] == ["model", "base"]):
        return "synthesis.base.kind"
    return dotted


def _unknown_word(word: object, known: Sequence[str]) -> str:
    return f"{shown(word)} is unknown; {did_you_mean(word, known) or 'one of ' + ', '.join(known)}"


def _walk(loc: Sequence[str | int], source: Any, missing: bool) -> tuple[list[str | int], Any]:
    """Follow a pydantic location through the source, dropping tags of unions, which are no keys of it."""
    keys: list[str | int] = []
    value = source
    for position, part in enumerate(loc):
        in_list = isinstance(value, (list, tuple)) and isinstance(part, int) and part < len(value)
        below = loc[position + 1] if position + 1 < len(loc) else None
        if in_list and isinstance(below, int) and not isinstance(value[part], (list, tuple, Mapping)):
            continue  # a pair that stands for a list of one
        if in_list or (isinstance(value, Mapping) and part in value):
            keys.append(part)
            value = value[part]
        elif missing and position == len(loc) - 1:
            keys.append(part)
    return keys, value


def _line(keys: Sequence[str | int], message: str) -> str:
    return f"{_dotted(keys) or 'the spec'}: {message}"


def _dotted(keys: Sequence[str | int]) -> str:
    text = ""
    for key in keys:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            name = " ".join(key.split())[:60]  # names of columns may hold anything
            text += f".{name}" if text else name
    return text
