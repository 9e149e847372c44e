"""How the text of a table is written, as keys of a spec: data, releases and records to predict have them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from dpmix.spec.fields import Section, Text, refusal, wrong
from dpmix.spec.table_source import TEXT_SUFFIXES, Dialect, delimiter_of, delimiter_problem, is_encoding

__all__ = ["DIALECT_KEYS", "Decimal", "Delimiter", "Encoding", "check_text", "dialect_in"]

DIALECT_KEYS = ("delimiter", "decimal", "encoding")


def _delimiter(text: str) -> str:
    problem = delimiter_problem(text)
    if problem is not None:
        raise wrong(problem, text)
    return delimiter_of(text)


def _encoding(name: str) -> str:
    if not is_encoding(name):
        raise wrong("{got} is no encoding that Python knows; give one such as latin-1 or utf-16", name)
    return name


Delimiter = Annotated[Text, AfterValidator(_delimiter)]
Decimal = Literal[".", ","]
Encoding = Annotated[Text, AfterValidator(_encoding)]


def dialect_in(section: Section) -> Dialect:
    """Return what the keys of a section say, which has all three of them."""
    delimiter, decimal, encoding = (getattr(section, key) for key in DIALECT_KEYS)
    return Dialect(delimiter, decimal or ".", encoding or "utf-8")


def check_text(section: Section, paths: Sequence[Path | None]) -> None:
    """Refuse what a section says of text where its table is none.

    Raises
    ------
    SpecError
        Naming the key.
    """
    for key in DIALECT_KEYS:
        if getattr(section, key) is None:
            continue
        if not paths or any(path is None for path in paths):
            raise refusal(key, "is for a table in a file of text, and path names none; leave it out")
        for path in paths:
            if path is not None and str(path) != "-" and not path.name.lower().endswith(TEXT_SUFFIXES):
                kinds = ", ".join(TEXT_SUFFIXES)
                raise refusal(key, f"is for text ({kinds}), which {path.name} is not; leave it out")
