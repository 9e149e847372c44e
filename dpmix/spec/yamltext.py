"""Reading and writing of YAML: the safe subset that a spec needs, with errors of one sentence.

Scalars follow YAML 1.2 (``1e-5`` is a number; ``on``, ``yes``, ``1:30`` and dates are text), keys must be
text and differ, and documents that are huge, deeply nested or blow up by aliases are refused unbuilt.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dpmix.errors import SpecError

MAX_BYTES: Final = 200_000
MAX_DEPTH: Final = 40
MAX_NODES: Final = 100_000

_BOOL: Final = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_INT: Final = re.compile(r"^[-+]?(?:[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+)$")
_FLOAT: Final = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_NULL: Final = re.compile(r"^(?:~|null|Null|NULL|)$")
_BREAKS: Final = re.compile("[\\x85\\u2028\\u2029\\ufeff]")


class _RefusedError(Exception):
    """A document that is valid YAML but not taken, with the line at fault."""

    def __init__(self, message: str, node: Node | None = None) -> None:
        super().__init__(message)
        self.line = None if node is None else node.start_mark.line + 1


class _Loader(yaml.SafeLoader):
    """Safe loader with the scalars of YAML 1.2, no duplicate keys and a bound on nesting."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _RefusedError(f"nested more than {MAX_DEPTH} deep", parent)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True) if isinstance(key_node, ScalarNode) else None
            if not isinstance(key, str):
                name = getattr(key_node, "value", None)
                which = f"key {name}" if isinstance(name, str) else "a key"
                raise _RefusedError(f"{which} is not text; quote it if it is meant", key_node)
            if key in seen:
                raise _RefusedError(f'key "{key}" is given twice', key_node)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def construct_int(self, node: ScalarNode) -> int:
        text = self.construct_scalar(node).replace("_", "")
        base = 8 if "0o" in text else 16 if "0x" in text else 10
        return int(text, base)

    def construct_float(self, node: ScalarNode) -> float:
        text = self.construct_scalar(node).replace("_", "").lower()
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_float)


_DATE = re.compile(r"\d{4}-\d\d?-\d\d?")


class _Dumper(yaml.SafeDumper):
    """Dumper that quotes what :class:`_Loader` would not read as text, and uses no aliases."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> ScalarNode:
    """Write between double quotes what other styles break or drop, and dates, no text to YAML 1.1."""
    quoted = _BREAKS.search(text) or _DATE.match(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if quoted else None)


_Dumper.add_representer(str, _text)
for _class in (_Loader, _Dumper):
    for _tag, _pattern, _starts in (
        ("bool", _BOOL, "tTfF"),
        ("int", _INT, "-+0123456789"),
        ("float", _FLOAT, "-+.0123456789"),
        ("null", _NULL, ["~", "n", "N", ""]),
        ("merge", re.compile("^<<$"), "<"),
    ):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list(_starts))


def parse_yaml(text: str, name: str = "the spec") -> Any:
    """Parse one YAML document, which errors call `name`.

    Raises
    ------
    SpecError
        If it is no YAML, has a key twice, or is too large; with the line number where one is known.
    """
    if len(text) > MAX_BYTES:
        raise SpecError(f"{name}: longer than {MAX_BYTES:,} characters, which no spec is")
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, {}, ()) > MAX_NODES:
            raise _RefusedError("its aliases expand to too much")
        return loader.construct_document(node)
    except _RefusedError as problem:
        where = "" if problem.line is None else f"line {problem.line}: "
        raise SpecError(f"{name}: {where}{problem}") from None
    except yaml.MarkedYAMLError as error:
        raise SpecError(f"{name}: {_explain(error)}") from None
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", None) or "not YAML"
        character = getattr(error, "character", None)
        code = f" (character {character:#06x})" if isinstance(character, int) else ""
        raise SpecError(f"{name}: {reason}{code}") from None
    except (ValueError, TypeError, OverflowError, AttributeError, KeyError) as error:
        # PyYAML's constructors let these through for values such as "!!int x"
        detail = " ".join(str(error).split())[:80]
        raise SpecError(f"{name}: a value does not fit its tag or is too long ({detail})") from None
    except RecursionError:
        raise SpecError(f"{name}: nested too deeply") from None
    finally:
        if loader is not None:
            loader.dispose()


def dump_yaml(value: Any) -> str:
    """Write plain lists, dicts, numbers and text as YAML that :func:`parse_yaml` reads back equal."""
    text = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    assert isinstance(text, str)
    return text


def _size(node: Node, known: dict[int, int], above: tuple[int, ...]) -> int:
    """Count the nodes that a document has once aliases are written out."""
    if id(node) in above:
        raise _RefusedError("an alias contains itself", node)
    if id(node) not in known:
        above = (*above, id(node))
        size = 1
        if isinstance(node, SequenceNode):
            size += sum(_size(child, known, above) for child in node.value)
        elif isinstance(node, MappingNode):
            size += sum(_size(child, known, above) for pair in node.value for child in pair)
        known[id(node)] = size
    return known[id(node)]


def _explain(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = "" if mark is None else f"line {mark.line + 1}: "
    problem = " ".join((error.problem or error.context or "not YAML").split())
    if "'\\t'" in problem:
        problem = "a tab; indent with spaces"
    elif "but found another document" in problem:
        problem = "a second document begins; a spec is one document"
    elif "could not determine a constructor for the tag" in problem:
        problem = problem.replace("could not determine a constructor for the tag", "unknown tag")
    return where + problem
