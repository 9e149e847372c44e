"""Sphinx extension: parts of pages that are made when the site is built, from what they are about.

A line ``<!-- made of: the schema -->`` of a page gives way to tables of every key of the spec, from its
JSON Schema; ``<!-- made of: the commands -->`` to the usage, options and examples of every command; and
``<!-- made of: the other pages -->`` in a table of contents to the pages that it does not name.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_UNITS = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true or false"}


def setup(app: Any) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _fill(app: Any, name: str, source: list[str]) -> None:
    mark = "<!-- made of: the other pages -->"
    if mark in source[0]:
        source[0] = source[0].replace(mark, "\n".join(_unnamed(source[0], app.env.found_docs, name)))
    for what, make in _MADE.items():
        mark = f"<!-- made of: {what} -->"
        if mark in source[0]:
            source[0] = source[0].replace(mark, make())


def _unnamed(text: str, pages: Iterable[str], own: str) -> list[str]:
    """Return the pages that a table of contents names nowhere, which a reader would not find."""
    named = set(text.splitlines())
    return sorted(page for page in pages if page not in named and page != own)


# The spec


def of_the_schema() -> str:
    """Return the keys of every section of the spec, as Markdown."""
    from dpmix.spec.schema import schema

    root = schema()
    named: list[str] = []  # definitions that keys refer to by name, each told once, at the end
    parts = []
    for name, section in root["properties"].items():
        parts.append(f"## `{name}`\n\n{section.get('description', '')}\n")
        choices = list(_definitions(section, root["$defs"]))
        for definition in choices:
            if len(choices) > 1:
                parts.append(f"### {_title(name, definition)}\n")
            parts.append(_section(definition, root["$defs"], named, skipped=len(choices) > 1))
    if named:
        parts.append("## What keys refer to\n")
    told = 0
    while told < len(named):
        definition = root["$defs"][named[told]]
        parts.append(f"### `{named[told]}`\n")
        parts.append(_section(definition, root["$defs"], named))
        told += 1
    return "\n".join(parts)


def _definitions(value: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Give the mappings that a section may be, without null."""
    if "$ref" in value:
        yield known[value["$ref"].rsplit("/", 1)[1]]
    for key in ("anyOf", "oneOf"):
        for choice in value.get(key, ()):
            yield from _definitions(choice, known)


def _title(section: str, definition: Mapping[str, Any]) -> str:
    keys = definition["properties"]
    words = [f"{name}: {keys[name]['const']}" for name in ("kind", "kernel") if "const" in keys.get(name, {})]
    return f"`{section}: {{{', '.join(words)}}}`"


def _section(
    definition: Mapping[str, Any], known: Mapping[str, Any], named: list[str], skipped: bool = False
) -> str:
    lines = [
        definition.get("description", ""),
        "",
        "| key | value | default | what it is |",
        "|---|---|---|---|",
    ]
    required = definition.get("required", ())
    for key, value in definition.get("properties", {}).items():
        if skipped and "const" in value:
            continue
        default = value.get("default")
        shown = "*required*" if key in required else "" if default is None else f"`{_yaml(default)}`"
        cells = [f"`{key}`", _kind(value, known, named), shown, value.get("description", "")]
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _kind(value: Mapping[str, Any], known: Mapping[str, Any], named: list[str]) -> str:
    """Say in words what a value may be."""
    if "$ref" in value:
        name = value["$ref"].rsplit("/", 1)[1]
        if name not in named:
            named.append(name)
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return f"`{_yaml(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{_yaml(word)}`" for word in value["enum"])
    for key in ("anyOf", "oneOf"):
        if key in value:
            found = [_kind(choice, known, named) for choice in value[key] if choice.get("type") != "null"]
            return " or ".join(dict.fromkeys(found))
    kind = value.get("type")
    if kind == "array":
        return _list(value, known, named)
    if kind == "object":
        inner = value.get("additionalProperties")
        return "mapping" + (f" to {_kind(inner, known, named)}" if isinstance(inner, dict) else "")
    word = {"date": "date", "path": "path"}.get(value.get("format", ""), _UNITS.get(str(kind), "anything"))
    return word + _bounds(value)


def _list(value: Mapping[str, Any], known: Mapping[str, Any], named: list[str]) -> str:
    items = value.get("items")
    entry = f" of {_kind(items, known, named)}" if isinstance(items, dict) else ""
    least, most = value.get("minItems"), value.get("maxItems")
    if least is not None and least == most:
        return f"list of {least}" + entry.replace(" of ", ": ", 1)
    return "list" + entry


def _bounds(value: Mapping[str, Any]) -> str:
    words = {
        "exclusiveMinimum": "above",
        "minimum": "at least",
        "exclusiveMaximum": "below",
        "maximum": "at most",
    }
    found = [f"{word} {value[key]:,}" for key, word in words.items() if key in value]
    return f", {', '.join(found)}" if found else ""


def _yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# The commands


def of_the_commands() -> str:
    """Return what ``--help`` says of every command, as Markdown."""
    import typer

    from dpmix.cli.commands import app

    root = typer.main.get_command(app)
    return "\n".join(_commands(root, "dpmix", 2))


def _commands(group: Any, path: str, level: int) -> Iterator[str]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        yield f"{'#' * level} `{path} {name}`\n"
        yield f"{_text(command.help)}\n"
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}", level + 1)
            continue
        yield from _examples(command.epilog)
        yield "| | |\n|---|---|"
        for parameter in command.params:
            if not getattr(parameter, "hidden", False) and "--help" not in parameter.opts:
                yield f"| {_cell(_names(parameter))} | {_cell(_meaning(parameter))} |"
        yield ""


def _examples(epilog: str | None) -> Iterator[str]:
    lines = textwrap.dedent((epilog or "").replace("\b\n", "")).strip().splitlines()
    commands = [line.strip() for line in lines if line.strip() and line.strip() != "Examples:"]
    if commands:
        yield "```sh\n" + "\n".join(commands) + "\n```\n"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    words = ", ".join(f"`{name}`" for name in parameter.opts)
    return words if parameter.is_flag else f"{words} `{parameter.metavar or 'VALUE'}`"


def _meaning(parameter: Any) -> str:
    return _text(parameter.help) + (" *Required.*" if parameter.required else "")


def _text(words: str | None) -> str:
    """Return help as Markdown that takes nothing in it for markup."""
    found = " ".join((words or "").replace("\b", "").split())
    for mark in "\\`*_<>[]{}":
        found = found.replace(mark, f"\\{mark}")
    return found


_MADE: dict[str, Callable[[], str]] = {"the schema": of_the_schema, "the commands": of_the_commands}
