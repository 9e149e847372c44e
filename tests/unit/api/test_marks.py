"""One table has one mark of its rows, however its cells are read; ledgers know it by earlier ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmix
from dpmix.api.confidential import marks_of
from dpmix.data.loading import load_data
from dpmix.errors import PrivacyError
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.fingerprint import Marks, rows_digest
from dpmix.privacy.ledger import Book
from dpmix.spec import load_spec
from dpmix.synthesis.records import load_records

DAYS = ["2020-04-20", "2021-01-05", "2020-04-20", "1969-12-31"]
TIMES = ["2020-04-20 12:30", "2021-01-05T00:00:00.25", "1969-12-31 23:59:59.999999"]
COMMAS = ["3,25", "-2,5", "1e3", "7"]
LAPLACE = {"kind": "laplace", "epsilon": 1.0}
URN = {"kind": "pitman_yor", "delta": 0.5, "concentration": 1}


def marks(name: str, data: Any, bounds: Any = None, **more: Any) -> Marks:
    """Return the marks of one column: of numbers or dates where it has bounds, else of labels."""
    section = {"columns": [name], "domain": None if bounds is None else [bounds]} | more
    if isinstance(data, Path):
        section["path"] = str(data)
    spec = load_spec(
        {"data": section, "mechanism": LAPLACE}
        if bounds is not None
        else {"data": section, "synthesis": URN},
        data=None if isinstance(data, Path) else data,
    )
    return marks_of(spec, load_data(spec) if bounds is not None else load_records(spec))


@pytest.mark.parametrize("cells", [DAYS, TIMES])
def test_dates_are_the_same_as_dates_labels_and_timestamps(cells: list[str], tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("when\n" + "\n".join(reversed(cells)) + "\n")
    text, stamps = (
        pd.DataFrame({"when": cells}),
        pd.DataFrame({"when": pd.to_datetime(cells, format="mixed")}),
    )
    found = {
        marks("when", data, bounds).rows
        for data in (path, text, stamps)
        for bounds in (["2000-01-01", "2030-01-01"], None)
    }
    assert len(found) == 1
    assert marks("when", text.iloc[1:]).rows not in found


def test_numbers_with_a_decimal_comma_are_the_same_as_numbers_and_labels(tmp_path: Path) -> None:
    path, point = tmp_path / "comma.csv", tmp_path / "point.csv"
    path.write_text("x\n" + "\n".join(COMMAS) + "\n")
    point.write_text("x\n" + "\n".join(text.replace(",", ".") for text in COMMAS) + "\n")
    comma = {"delimiter": ";", "decimal": ","}
    found = {
        marks("x", path, [0, 5], **comma).rows,
        marks("x", path, **comma).rows,
        marks("x", path, delimiter=";").rows,
        marks("x", point).rows,
        marks("x", point, [0, 5]).rows,
    }
    assert found == {rows_digest({"x": np.array([3.25, -2.5, 1000.0, 7.0])})}


def test_marks_of_numbers_and_words_stay() -> None:
    table = {"u": np.array([1.0, 2.0, np.nan]), "v": ["a", "1.0", ""]}
    assert rows_digest(table).hex() == "e1d758c9d2b954f49d0e86dd54716b284f7010c197f6f3fe0c0c8784c27ea1e7"
    data = pd.DataFrame({"u": [1.0, 2.0, 3.0]})
    assert marks("u", data, [0, 5]) == Marks(("u",), rows_digest({"u": np.array([1.0, 2.0, 3.0])}))


def entered(*names: str, rows: bytes) -> Book:
    """Return a ledger that knows rows under some names, as earlier versions entered them."""
    book = Book()
    for i, name in enumerate(names):
        own = Marks(("when",), rows if i == 0 else rows_digest({"when": np.array([float(i)])}))
        book.spend(name, LAPLACE, Guarantee(0.5, 0.0, None), "t", "0", marks=own)
    return book


def test_a_ledger_knows_a_table_by_the_marks_of_earlier_versions() -> None:
    now = marks("when", pd.DataFrame({"when": DAYS}))
    earlier = rows_digest({"when": DAYS})
    assert now.rows != earlier
    book = entered("one", rows=earlier)
    with pytest.raises(PrivacyError, match="is two, but the ledger knows the same data as one"):
        book.spend("two", LAPLACE, Guarantee(0.5, 0.0, None), "t", "1", marks=now)
    book.spend("one", LAPLACE, Guarantee(0.5, 0.0, None), "t", "1", marks=now)
    assert [entry["edition"] for entry in book.entries] == [1, 1]
    other = marks("when", pd.DataFrame({"when": DAYS[1:]}))
    with pytest.raises(PrivacyError, match="that table is not the one released under this name before"):
        book.spend("one", LAPLACE, Guarantee(0.5, 0.0, None), "t", "1", marks=other)


def test_a_table_that_a_ledger_knows_under_two_names_is_refused_under_both() -> None:
    data = pd.DataFrame({"when": DAYS})
    numbers, labels = marks("when", data, ["2000-01-01", "2030-01-01"]), rows_digest({"when": DAYS})
    book = entered("one", rows=labels)
    book.spend("again", LAPLACE, Guarantee(0.5, 0.0, None), "t", "0", marks=numbers)
    for name, other in (("one", "again"), ("again", "one")):
        said = f"is {name}, but the ledger knows the same data as {other}, too, and neither name counts all"
        with pytest.raises(PrivacyError, match=said):
            book.spend(name, LAPLACE, Guarantee(0.5, 0.0, None), "t", "1", marks=marks("when", data))


def test_a_spent_budget_is_spent_for_dates_read_as_labels(tmp_path: Path) -> None:
    path, again = tmp_path / "people.csv", tmp_path / "sorted.csv"
    path.write_text("when\n" + "\n".join(DAYS) + "\n")
    again.write_text("when\n" + "\n".join(sorted(DAYS)) + "\n")
    privacy = {"ledger": str(tmp_path / "ledger.json"), "dataset": "one", "budget": {"epsilon": 1.0}}
    data = {"path": str(path), "columns": ["when"], "domain": [["2000-01-01", "2030-01-01"]]}
    spec = {"data": data, "mechanism": LAPLACE, "privacy": privacy}
    dpmix.privatize(spec, new_ledger=True, yes=True, quiet=True)
    spec = {
        "data": {"path": str(again), "columns": ["when"]},
        "synthesis": URN,
        "privacy": {"ledger": privacy["ledger"], "dataset": "again"},
    }
    with pytest.raises(PrivacyError, match="is again, but the ledger knows the same data as one"):
        dpmix.synthesize(spec, yes=True, quiet=True)


def test_incomplete_compositions_are_the_rows_that_they_were() -> None:
    shares = pd.DataFrame({"a": [0.2, None, 0.1], "b": [0.3, 0.4, 0.1], "c": [0.5, 0.6, 0.8]})
    data = {"columns": ["a", "b", "c"], "missing": {"a": 0.25, "b": 0.25, "c": 0.5}}
    found = []
    for mechanism, domain in (
        ({"kind": "log_moments", "epsilon": 1.0, "threshold": 0.1}, None),
        (LAPLACE, [[0.0, 1.0]] * 3),
    ):
        spec = load_spec({"data": data | {"domain": domain}, "mechanism": mechanism}, data=shares)
        found.append(marks_of(spec, load_data(spec)))
    assert found[0].rows == found[1].rows == rows_digest({name: shares[name].to_numpy() for name in "abc"})
    gone = shares.to_numpy(copy=True)
    gone[1] = np.nan
    assert found[0].former == (rows_digest(dict(zip("abc", gone.T, strict=True))),)
