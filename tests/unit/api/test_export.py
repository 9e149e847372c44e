"""`dpmix export`: the values that files hold, as CSV and Parquet."""

from __future__ import annotations

import csv
import io
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.release.release_file import read_release, write_release
from dpmix.release.sanitized import Release
from dpmix.spec.days import day_of
from dpmix.store import frames
from dpmix.store.frames import Frame, Pieces, print_csv
from tests.helpers.chains_files import states_of_mixture, write_chains
from tests.helpers.discrete_releases import pitman_yor
from tests.helpers.seeds import rng_of
from tests.helpers.shown_files import a_release, called, write_regression

Rows = list[dict[str, str]]


def rows_of(capsys: Any, path: Path, *options: str) -> Rows:
    code, out, err = called(capsys, "export", path, "-o", "-", "--quiet", *options)
    assert (code, err) == (0, "")
    return list(csv.DictReader(io.StringIO(out)))


def test_released_values_come_back_exactly(tmp_path: Path, capsys: Any) -> None:
    values = np.column_stack([rng_of("export").normal(size=9) * 1e3, np.arange(9.0)])
    write_release(tmp_path / "r.h5", a_release(values, ["pay", "age"]))
    rows = rows_of(capsys, tmp_path / "r.h5")
    assert list(rows[0]) == ["pay", "age"]
    assert [[float(row["pay"]), float(row["age"])] for row in rows] == values.tolist()
    assert [row["age"] for row in rows] == [str(i) for i in range(9)]


def test_standard_output_is_utf_8_whatever_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    held = io.BytesIO()
    terminal = io.TextIOWrapper(held, encoding="ascii", errors="backslashreplace")
    monkeypatch.setattr("sys.stdout", terminal)
    print_csv(None, Pieces.of(Frame({"收入": np.array([1.5])})))
    assert held.getvalue().decode() == "收入\n1.5\n"


def test_cells_of_a_tally_of_days_are_dates(tmp_path: Path, capsys: Any) -> None:
    days = np.arange(18262.0, 18362.0)
    law: Any = {"kind": "laplace", "scale": [40.0], "domain": [[18262.0, 18462.0]]}
    release = Release(days[:, None], ("day",), law, 5.0, 0.0, None, 100, private=False, dates=("day",))
    write_release(tmp_path / "r.h5", release)
    dpmix.tally([tmp_path / "r.h5"], output=tmp_path / "t.h5", quiet=True)
    rows = rows_of(capsys, tmp_path / "t.h5")
    assert rows[0]["lower"] == "" and rows[-1]["upper"] == ""
    assert [row["lower"] for row in rows[1:]] == [row["upper"] for row in rows[:-1]]
    assert "2020-01-01" in {row["lower"][:10] for row in rows}  # an edge is the lower bound
    shown = called(capsys, "show", tmp_path / "t.h5")[1]
    assert rows[1]["lower"][:19] in shown and ".000000" not in shown


def test_dates_come_back_to_the_microsecond_labels_as_text(tmp_path: Path, capsys: Any) -> None:
    days = np.array([18628.0, 18690.123456, -3.75])
    write_release(tmp_path / "r.h5", a_release(days, ["day"], dates=("day",)))
    assert read_release(tmp_path / "r.h5").dates == ("day",)
    cells = [row["day"] for row in rows_of(capsys, tmp_path / "r.h5")]
    assert cells[0] == "2021-01-01 00:00:00.000000"
    assert np.abs([day_of(cell) - day for cell, day in zip(cells, days, strict=True)]).max() < 1e-11  # type: ignore[operator]
    write_release(tmp_path / "w.h5", a_release([18628.0, 18629.0], ["day"], dates=("day",)))
    assert [row["day"] for row in rows_of(capsys, tmp_path / "w.h5")] == ["2021-01-01", "2021-01-02"]
    write_release(tmp_path / "far.h5", a_release([18628.0, 1e9], ["day"], dates=("day",)))
    assert [row["day"] for row in rows_of(capsys, tmp_path / "far.h5")] == ["18628", "1000000000"]
    law = {"kind": "randomized_response", "ratio": "3/1", "categories": [["x, y", "z"]]}
    write_release(tmp_path / "c.h5", a_release([0, 1, 1], ["town"], law))
    assert [row["town"] for row in rows_of(capsys, tmp_path / "c.h5")] == ["x, y", "z", "z"]
    made = pitman_yor([{"name": "day", "domain": [18262.0, 20088.0], "date": True}])
    assert made.dates == ("day",)


def test_counts_say_what_they_are_of(tmp_path: Path, capsys: Any) -> None:
    law = {
        "kind": "perturbed_histogram",
        "domain": [[0.0, 4.0]],
        "bins": 2,
        "noise": "geometric",
        "scale": [1.0],
    }
    write_release(tmp_path / "h.h5", a_release([5, -1], ["age"], law))
    expected = [{"lower": "0", "upper": "2", "count": "5"}, {"lower": "2", "upper": "4", "count": "-1"}]
    assert rows_of(capsys, tmp_path / "h.h5") == expected
    counts = {
        "kind": "noisy_counts",
        "levels": [2, 3],
        "classes": 2,
        "noise": "geometric",
        "scale": [4.0],
        "columns": ["a", "b", "vote"],
        "categories": {"vote": ["no", "yes"]},
    }
    write_release(tmp_path / "n.h5", a_release(np.arange(10.0), ["statistic"], counts))
    rows = rows_of(capsys, tmp_path / "n.h5")
    # by feature, then class, then level, as the curator's docstring says
    assert [tuple(row.values()) for row in rows[:5]] == [
        ("a", "1", "no", "0"),
        ("a", "2", "no", "1"),
        ("a", "1", "yes", "2"),
        ("a", "2", "yes", "3"),
        ("b", "1", "no", "4"),
    ]
    write_release(tmp_path / "r.h5", a_release(np.arange(30.0) / 3, ["pay"]))
    release = dpmix.tally([tmp_path / "r.h5"], output=tmp_path / "t.h5", quiet=True)
    rows = rows_of(capsys, tmp_path / "t.h5")
    assert list(rows[0]) == ["cell", "lower", "upper", "count"] and rows[0]["lower"] == "-inf"
    assert release.tally is not None and [int(row["count"]) for row in rows] == release.tally.counts.tolist()


def test_grouped_counts_stand_as_the_curator_released_them(tmp_path: Path) -> None:
    """With next to no noise, the exported counts are those of the table: the order of rows is right."""
    (tmp_path / "t.csv").write_text(
        "x,y,sex\n" + "a,n,f\n" * 3 + "b,n,m\n" * 5 + "b,y,f\n" * 7 + "a,y,m\n" * 11
    )
    data = {
        "path": str(tmp_path / "t.csv"),
        "columns": ["x", "y"],
        "group": "sex",
        "categories": {"x": ["a", "b"], "y": ["n", "y"], "sex": ["f", "m"]},
    }
    mechanism = {"kind": "noisy_counts", "levels": [2], "classes": 2, "epsilon": 90.0, "noise": "geometric"}
    release = dpmix.privatize({"data": data, "mechanism": mechanism}, quiet=True)
    found = {
        (row["sex"], row["level"], row["y"]): row["count"]
        for row in release.to_frame().rows()
        if row["count"]
    }
    assert found == {("f", "a", "n"): 3, ("m", "b", "n"): 5, ("f", "b", "y"): 7, ("m", "a", "y"): 11}
    (tmp_path / "u.csv").write_text("x,sex\n" + "1,f\n" * 3 + "3,m\n" * 5 + "3,f\n" * 7)
    data = {
        "path": str(tmp_path / "u.csv"),
        "columns": ["x"],
        "domain": [0, 4],
        "group": "sex",
        "categories": {"sex": ["f", "m"]},
    }
    histogram = {"kind": "perturbed_histogram", "bins": 2, "epsilon": 90.0, "noise": "geometric"}
    release = dpmix.privatize({"data": data, "mechanism": histogram}, quiet=True)
    assert [(row["sex"], row["lower"], row["count"]) for row in release.to_frame().rows()] == [
        ("f", 0.0, 3),
        ("f", 2.0, 7),
        ("m", 0.0, 0),
        ("m", 2.0, 5),
    ]


def test_draws_are_wide_components_and_allocations_long(
    tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    from dpmix.run import draws_tables

    monkeypatch.setattr(draws_tables, "_NUMBERS", 50)  # so that pieces are many
    held = write_regression(tmp_path / "n.h5", name="a, b")
    rows = rows_of(capsys, tmp_path / "n.h5")
    assert list(rows[0])[:5] == ["chain", "draw", "beta[intercept]", "beta[a, b]", "sigma2"]
    assert [(row["chain"], row["draw"]) for row in rows] == [
        (str(c), str(d)) for c in (0, 1) for d in range(6)
    ]
    assert [float(row["beta[a, b]"]) for row in rows] == held["beta"][:, :, 1].ravel().tolist()
    rng = rng_of("export draws")
    states = [states_of_mixture(7, rng) for _ in range(2)]
    for state in states:
        state["allocations"] = rng.integers(0, 3, (7, 200))
    write_chains(tmp_path / "c.h5", states)
    rows = rows_of(capsys, tmp_path / "c.h5", "--table", "components")
    expected = [
        (str(chain), str(draw), str(k), state["weights"][draw, k], state["mean"][draw, k])
        for chain, state in enumerate(states)
        for draw in range(7)
        for k in range(int(state["n_clusters"][draw]))
    ]
    names = ("chain", "draw", "component")
    found = [(*(row[n] for n in names), float(row["weight"]), float(row["mean"])) for row in rows]
    assert found == expected
    rows = rows_of(capsys, tmp_path / "c.h5", "--table", "allocations")
    assert len(rows) == 2 * 7 * 200
    assert [int(row["component"]) for row in rows] == np.stack(
        [s["allocations"] for s in states]
    ).ravel().tolist()


def test_tables_of_a_summary_and_a_wrong_name(tmp_path: Path, capsys: Any) -> None:
    write_regression(tmp_path / "c.h5")
    summary = dpmix.summarize(tmp_path / "c.h5", tmp_path / "s.h5")
    rows = rows_of(capsys, tmp_path / "s.h5")
    assert {row["name"]: float(row["sd"]) for row in rows} == {k: v.sd for k, v in summary.parameters.items()}
    assert [float(row["quantiles[0.975]"]) for row in rows] == [
        scalar.quantiles["0.975"] for scalar in summary.parameters.values()
    ]
    code, out, err = called(capsys, "export", tmp_path / "s.h5", "-o", "-", "--table", "nonsense")
    assert (code, out) == (2, "") and "parameters" in err and "warnings" in err
    assert rows_of(capsys, tmp_path / "s.h5", "--table", "warnings")


def test_parquet_is_the_same_table(tmp_path: Path, capsys: Any) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    release = a_release([[18628.5, 0], [18629.0, 1]], ["day", "n"], dates=("day",))
    write_release(tmp_path / "r.h5", release)
    code, _, err = called(capsys, "export", tmp_path / "r.h5", "-o", tmp_path / "x.PARQUET")
    assert code == 0 and f"wrote {tmp_path / 'x.PARQUET'}" in err
    table = parquet.read_table(tmp_path / "x.PARQUET")
    assert table.column_names == ["day", "n"] and str(table.schema.field("n").type) == "int64"
    assert [str(day) for day in table["day"].to_pylist()] == ["2021-01-01 12:00:00", "2021-01-02 00:00:00"]
    again = dpmix.export(tmp_path / "r.h5", tmp_path / "y.csv", quiet=True)
    assert again == 2 and (tmp_path / "y.csv").read_text().startswith("day,n\n2021-01-01 12:00:00.000000,0\n")


def test_outputs_are_refused_before_any_work(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    write_release(tmp_path / "r.h5", a_release([[1.0]], ["x"]))
    (tmp_path / "there.csv").write_text("kept")
    for name, words in (("x.xlsx", ".csv or .parquet"), ("x", ".csv"), ("there.csv", "exists already")):
        code, _, err = called(capsys, "export", tmp_path / "gone.h5", "-o", tmp_path / name)
        assert code == 2 and words in err
    assert (tmp_path / "there.csv").read_text() == "kept"
    assert called(capsys, "export", tmp_path / "r.h5", "-o", tmp_path / "there.csv", "--force")[0] == 0
    code, out, _ = called(capsys, "export", tmp_path / "r.h5", "-o", tmp_path / "d.csv", "--dry-run")
    assert code == 0 and "1 rows of values: x" in out and not (tmp_path / "d.csv").exists()
    assert called(capsys, "export", tmp_path, "-o", "-")[0] == 3

    def absent(name: str, *_: object) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(frames.importlib, "import_module", absent)
    code, _, err = called(capsys, "export", tmp_path / "r.h5", "-o", tmp_path / "x.parquet")
    assert code == 2 and "pyarrow" in err and "dpmix[tables]" in err


def test_the_entries_of_a_ledger_are_for_their_owner(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n2\n3\n")
    spec = {
        "data": {"path": str(tmp_path / "t.csv"), "columns": ["x"], "domain": [0, 10]},
        "mechanism": {"kind": "laplace", "epsilon": 0.5},
        "privacy": {"dataset": "d", "ledger": str(tmp_path / "l.json"), "budget": {"epsilon": 2}},
    }
    dpmix.privatize(spec, tmp_path / "r.h5", new_ledger=True, quiet=True)
    code, _, err = called(capsys, "export", tmp_path / "l.json", "-o", tmp_path / "l.csv")
    assert code == 0 and "for the curator alone" in err
    assert stat.S_IMODE((tmp_path / "l.csv").stat().st_mode) == 0o600
    with (tmp_path / "l.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["type"] for row in rows] == ["budget", "spend"]
    assert rows[1]["mechanism"] == "laplace" and 0.49 < float(rows[1]["epsilon"]) <= 0.5
    assert not {"key", "fingerprint", "digest"} & set(rows[0])
