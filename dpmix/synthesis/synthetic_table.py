"""Reading CSV files of synthetic records as releases, by the account beside them or what a spec states."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.data.tables import load_mixed
from dpmix.errors import DataError, SpecError
from dpmix.laws.every import LawError, expect, law_of
from dpmix.laws.synthetic import SyntheticLaw
from dpmix.privacy.accounting import Adjacency
from dpmix.release.release_file import beside
from dpmix.release.sanitized import Release
from dpmix.spec.table_source import TableFiles
from dpmix.synthesis.records import columns_of

if TYPE_CHECKING:
    from dpmix.columns.cells import Column
    from dpmix.columns.column_units import Unit
    from dpmix.spec import RunSpec

Labels = list[tuple[str, ...] | None]


def load_synthetic(path: Path) -> Release | None:
    """Read a CSV file of synthetic records with the account beside it; None where there is no account.

    Raises
    ------
    DataError
        When the account is none of `dpmix synthesize`, or the records do not go with it.
    """
    aside = beside(path)
    if not aside.is_file():
        return None
    try:
        account = json.loads(aside.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{aside} is not the account of synthetic records: it cannot be read") from error
    if not isinstance(account, dict):
        raise DataError(f"{aside} is not the account of synthetic records: it is no JSON object")
    mechanism = account.get("mechanism")
    if not isinstance(mechanism, dict) or mechanism.get("kind") != "synthetic":
        raise DataError(f"{aside} is not the account of synthetic records: it describes no generator of them")
    try:
        law = expect(law_of(mechanism), SyntheticLaw)
    except LawError as error:
        raise DataError(f"{aside} is not the account of synthetic records: its mechanism {error}") from None
    numbers = {name: _number(aside, account, name) for name in ("epsilon", "delta", "rho")}
    n = account.get("n")
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise DataError(f"{aside} is not the account of synthetic records: n is no number of records")
    for name in ("private", "simulated"):
        if not isinstance(account.get(name), bool):
            raise DataError(f"{aside} is not the account of synthetic records: {name} is no true or false")
    trust, adjacency = account.get("trust", "global"), account.get("adjacency", Adjacency.REPLACEMENT)
    if trust != "global" and not (trust == "local" and law.of_local):
        raise DataError(f"{aside} is not the account of synthetic records: trust is not that of their source")
    if adjacency not in tuple(Adjacency):
        raise DataError(f"{aside} is not the account of synthetic records: adjacency is none that is known")
    return _release(
        TableFiles.of(path, dates=frozenset(law.dated)),
        law.columns,
        law,
        n=n,
        private=account["private"],
        simulated=account["simulated"],
        trust=trust,
        adjacency=adjacency,
        created_at=str(account.get("created_at", "unknown")),
        dpmix_version=str(account.get("dpmix_version", "unknown")),
        proved=account["proved"] if isinstance(account.get("proved"), bool) else None,
        unit=_unit(account.get("unit")),
        **numbers,
    )


def _unit(stated: Any) -> Unit:
    """Return the unit that an account states; None for what is none."""
    if isinstance(stated, str):
        return stated or None
    if isinstance(stated, dict) and all(isinstance(each, str) for each in stated.values()):
        return stated or None
    return None


def stated_synthetic(spec: RunSpec) -> Release:
    """Read the synthetic records that a spec names under ``release``, as its ``synthesis`` section states.

    The guarantee is what the spec states, by formula; nothing here vouches for how records were drawn.

    Raises
    ------
    SpecError
        When the section, the columns, or the number of confidential records is missing.
    DataError
        When the records are not of the columns that are stated.
    """
    assert spec.release is not None and spec.release.path is not None and spec.generator is not None
    if spec.generator.n is None:
        raise SpecError(
            "synthesis.n: missing; synthetic records do not tell of how many confidential records they are"
        )
    public = spec.release if spec.release.domain or spec.release.categories else spec.data or spec.release
    names = spec.release.columns or (None if public is spec.release else public.columns)
    if names is None or names != (public.columns or names):
        raise SpecError("release.columns: missing; name the columns of the synthetic records")
    columns = columns_of(public)
    values = _table(spec.release.source, columns)[0]
    section = spec.generator.model_copy(
        update={"records": len(values)}
        | ({"delta": None, "epsilon": None} if spec.generator.kind == "pitman_yor" else {})
    )
    from dpmix.synthesis.generator_choice import generator_of  # late: fits of other releases start without

    generator = generator_of(section, columns, spec.generator.n)
    total = generator.guarantee
    return _release(
        spec.release.source,
        columns,
        expect(law_of(generator.describe() | {"stated": True}), SyntheticLaw),
        n=spec.generator.n,
        trust=total.trust,
        epsilon=total.epsilon,
        delta=total.delta,
        rho=total.rho,
    )


def _release(path: TableFiles, columns: tuple[Column, ...], mechanism: SyntheticLaw, **facts: Any) -> Release:
    values, labels = _table(path, columns)
    problem = mechanism.problem(values, labels)
    if problem is not None:
        raise DataError(f"{path} {problem}")
    return Release(
        values=values,
        columns=tuple(column.name for column in columns),
        mechanism=mechanism,
        labels=tuple(labels) if any(names is not None for names in labels) else (),
        **facts,
    )


def _table(
    path: TableFiles, columns: tuple[Column, ...]
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], Labels]:
    """Return values and codes, shape (m, d), and the labels that codes stand for."""
    numeric = [column.name for column in columns if column.bounds is not None]
    textual = [column.name for column in columns if column.bounds is None]
    numbers, texts = load_mixed(path, numeric, textual, public=True)
    parts, labels = [], Labels()
    for column in columns:
        if column.bounds is not None:
            parts.append(numbers[column.name])
            labels.append(None)
            continue
        cells = texts[column.name]
        names = column.categories or tuple(dict.fromkeys(cells))
        places = {name: code for code, name in enumerate(names)}
        unknown = next((i for i, cell in enumerate(cells) if cell not in places), None)
        if unknown is not None:
            raise DataError(
                f"{path}: column {column.name!r} has a value in record {unknown + 1} that is none of its "
                "categories"
            )
        parts.append(np.array([places[cell] for cell in cells], dtype=np.float64))
        labels.append(names)
    return np.column_stack(parts), labels


def _number(path: Path, account: Mapping[str, Any], name: str) -> float | None:
    value = account.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise DataError(f"{path} is not the account of synthetic records: {name} is no number in range")
    return float(value)
