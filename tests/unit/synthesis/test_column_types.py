"""Columns of whole numbers, digits, categories and dates: cells, draws, files, records of a posterior."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, norm

import dpmix
from dpmix.api.predictive import predictive_records
from dpmix.api.release_of import find_release
from dpmix.columns.cells import Cells, Column, Grid, lattice_of, starts_of_runs
from dpmix.errors import DataError, DpmixError, SpecError
from dpmix.laws.every import law_of
from dpmix.spec import load_spec
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.records import Records, load_records
from tests.helpers import chains_files as files

LEVEL = 1e-4
AGE = Column("age", (0.0, 10.0), None, False, 0)


def drawn(synthesis: dict[str, Any], columns: tuple[Column, ...], values: Any, runs: int) -> np.ndarray:
    """Draw `runs` releases of records under one seed each, one below the other."""
    section = load_spec({"synthesis": synthesis}).synthesis
    assert section is not None
    table = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    made = generator_of(section, columns, len(table))
    records = Records(columns, table, tuple(c.categories for c in columns), (0,) * len(columns))
    parts = [made.draw(records, np.random.default_rng(seed))[0] for seed in range(runs)]
    return np.concatenate(parts)


def test_a_lattice_is_the_decimals_within_the_bounds() -> None:
    assert lattice_of((0.5, 9.5), 0) == Grid(1.0, (1.0, 9.0))
    assert lattice_of((-0.005, 0.025), 2) == Grid(0.01, (0.0, 0.02))
    assert lattice_of((0.2, 0.8), 0) is None
    money = lattice_of((0.0, 1e7), 2)
    assert money is not None and money.count == 10**9 + 1
    assert money.at(np.array([10**9 - 1])).tolist() == [9999999.99]
    with pytest.raises(ValueError, match="fewer digits"):
        lattice_of((0.0, 1e9), 9)
    assert starts_of_runs(11, 3).tolist() == [0, 3, 7, 11]
    for points, runs in ((11, 11), (7, 1), (100, 33)):
        sizes = np.diff(starts_of_runs(points, runs))
        assert sizes.sum() == points and set(sizes) <= {points // runs, -(-points // runs)}
    assert Grid(0.25, (0.0, 1.0)).holds(Grid(0.5, (0.25, 0.75)))
    assert not Grid(1.0, (0.0, 9.0)).holds(Grid(0.5, (0.0, 9.0)))
    assert not Grid(1.0, (0.0, 9.0)).holds(Grid(2.0, (0.5, 8.5)))


def test_cells_are_runs_of_values_and_draws_lie_in_them() -> None:
    cells = Cells.of((AGE,), [3], (None,))
    assert cells.edges(0).tolist() == [0.0, 2.5, 6.5, 10.0]
    assert cells.of_values(np.arange(11.0)[:, None]).tolist() == [0] * 3 + [1] * 4 + [2] * 4
    inside = cells.draw_within(np.repeat([0, 1, 2], 200), np.random.default_rng(1))
    assert cells.of_values(inside).tolist() == np.repeat([0, 1, 2], 200).tolist()
    assert set(inside[:, 0]) == set(range(11))
    law = law_of(
        {"kind": "synthetic", "generator": "dirichlet_multinomial", "concentration": 1.0}
        | {"columns": [AGE.describe()], **cells.describe()}
    )
    assert law.cells == cells  # type: ignore[arg-type]  # a synthetic law
    # a value each, where there are no more: of one number for all columns, and by default
    assert Cells.of((AGE,), 50, (None,)).grids == (Grid(1.0, (0.0, 10.0)),)
    assert Cells.of((AGE,), None, (None,)).grids == (Grid(1.0, (0.0, 10.0)),)
    with pytest.raises(SpecError, match="12 bins of age are more than the 11 values"):
        Cells.of((AGE,), [12], (None,))


def test_draws_among_the_values_of_a_bin_have_its_mass() -> None:
    # 0..2, 3..6, 7..10 hold 5, 1 and 0 of six records: smoothed by w, and equal within each
    synthesis = {"kind": "smoothed_histogram", "bins": [3], "records": 3, "epsilon": 3}
    values = drawn(synthesis, (AGE,), [0, 0, 1, 2, 2, 5], 3000)[:, 0].astype(int)
    section = load_spec({"synthesis": synthesis}).synthesis
    assert section is not None
    weight = generator_of(section, (AGE,), 6).figures()["weight"]
    bins = (1 - weight) * np.array([5, 1, 0]) / 6 + weight / 3
    expected = np.repeat(bins / [3, 4, 4], [3, 4, 4]) * len(values)
    assert chisquare(np.bincount(values, minlength=11), expected).pvalue > LEVEL
    # rounding draws from equal bins of the bounds would give the end points half of their mass, and be seen
    width = 10 / 3
    rounded = [
        sum(
            bins[j] * max(0.0, min(k + 0.5, (j + 1) * width, 10.0) - max(k - 0.5, j * width, 0.0)) / width
            for j in range(3)
        )
        for k in range(11)
    ]
    assert chisquare(np.bincount(values, minlength=11), np.array(rounded) * len(values)).pvalue < 1e-12


TABLE = "age,pay,day,married\n" + "".join(
    f"{20.3 + i % 40},{1000 + 37.129 * i:.3f},2020-0{1 + i % 9}-1{i % 10},{i % 2}\n" for i in range(200)
)


@pytest.fixture
def people(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "people.csv").write_text(TABLE)
    data = {
        "path": str(tmp_path / "people.csv"),
        "columns": ["age", "pay", "day", "married"],
        "domain": {
            "age": [18, 99],
            "pay": [0, 10000],
            "day": ["2020-01-01", "2020-12-31"],
            "married": [0, 1],
        },
        "types": {"age": "integer", "pay": {"digits": 2}, "married": "category"},
    }
    return {"data": data, "synthesis": {"kind": "perturbed_histogram", "bins": [3, 2, 2], "epsilon": 8}}


@pytest.mark.parametrize("kind", ["perturbed_histogram", "pitman_yor"])
@pytest.mark.parametrize("name", ["s.csv", "s.h5"])
def test_files_hold_ages_money_and_dates_as_such(
    people: dict[str, Any], tmp_path: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if kind == "pitman_yor":
        people["synthesis"] = {"kind": kind, "records": 60, "concentration": 60}
    release = dpmix.synthesize(people, tmp_path / name, yes=True)
    said = capsys.readouterr().err
    assert "200 of 200 values of age were no whole numbers, and were rounded" in said
    assert "values of pay had more than 2 digits, and were rounded" in said
    assert np.array_equal(release.values[:, 0], np.round(release.values[:, 0]))
    assert np.array_equal(release.values[:, 1], np.round(release.values[:, 1], 2))
    assert np.array_equal(release.values[:, 2], np.round(release.values[:, 2]))
    assert release.labels[3] == ("0", "1")
    stated = release.mechanism.stated()["columns"]
    assert [part.get("type") for part in stated] == ["integer", {"digits": 2}, "integer", None]
    back, _ = find_release(load_spec({"summary": {"level": 0.9}}), tmp_path / name)
    assert np.array_equal(back.values, release.values)
    if name == "s.csv":
        with (tmp_path / name).open(newline="") as stream:
            rows = list(csv.reader(stream))[1:]
        assert all(row[0].isdigit() and row[1][-3] == "." and row[1][:-3].isdigit() for row in rows)
        assert all(row[2].startswith("2020-") and row[3] in "01" for row in rows)


def test_what_is_off_its_type_is_no_release(people: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    dpmix.synthesize(people, path, quiet=True, yes=True)
    spec = load_spec({"summary": {"level": 0.9}})
    good, aside = path.read_text(), json.loads((tmp_path / "s.csv.json").read_text())
    head, first, *rest = good.splitlines()
    path.write_text("\n".join([head, first.replace(",", ".5,", 1), *rest]) + "\n")
    with pytest.raises(DataError, match="has a value that is no whole number: age, record 1"):
        find_release(spec, path)
    path.write_text(good)
    for bad in ("x", {"digits": -1}, {"digits": 99}, {"digits": True}, 7, {}):
        aside["mechanism"]["columns"][0]["type"] = bad
        (tmp_path / "s.csv.json").write_text(json.dumps(aside))
        with pytest.raises(DataError, match="does not state the type of age"):
            find_release(spec, path)


def test_types_that_make_no_sense_are_refused(people: dict[str, Any]) -> None:
    def refused(**types: Any) -> str:
        with pytest.raises(DpmixError) as caught:
            dpmix.synthesize({**people, "data": {**people["data"], "types": types}}, quiet=True, yes=True)
        return str(caught.value)

    assert "data.types.agee: no such column" in refused(agee="integer")
    assert "data.types.day: must be integer, as dates are whole days" in refused(day="category")
    assert "12 digits are more than numbers as large" in refused(pay={"digits": 12})
    assert "category is for whole bounds" in refused(pay="category")
    people["data"]["domain"]["age"] = [18.1, 18.9]
    assert "hold no two whole numbers" in refused(age="integer")
    people["data"]["domain"]["age"] = [18, 99]
    people["synthesis"]["snap"] = {"age": {"step": 0.5}}
    people["synthesis"]["bins"] = [2, 2]
    assert "synthesis.snap: has points that data.types.age does not admit" in refused(age="integer")
    del people["data"]["domain"]["married"]
    assert "data.domain: missing for married" in refused(married="integer")


def test_noisy_releases_are_never_rounded(people: dict[str, Any]) -> None:
    people["data"] |= {"columns": ["age"], "domain": [18, 99], "types": {"age": "integer"}}
    spec = {"data": people["data"], "mechanism": {"kind": "laplace", "epsilon": 1}}
    values = dpmix.privatize(spec, quiet=True).values
    assert (values != np.round(values)).any()


def test_numbers_go_to_their_own_values_before_they_are_counted(people: dict[str, Any]) -> None:
    records = load_records(load_spec(people))
    assert records.rounded[0] == 200 and records.rounded[2] == 0
    assert np.array_equal(records.values[:5, 0], np.round(20.3 + np.arange(5)))


# records of a posterior


@pytest.fixture
def chains(tmp_path: Path) -> Path:
    """Chains of which all states say N(3.3, 4)."""
    states = {"n_clusters": np.ones(50), "weights": np.ones((50, 1))}
    states |= {"mean": np.full((50, 1), 3.3), "variance": np.full((50, 1), 4.0)}
    return files.write_chains(tmp_path / "c.h5", [states])


def spec_of(**synthesis: Any) -> dict[str, Any]:
    return {
        "data": {"path": "x.csv", "columns": ["value"], "domain": [-10, 10], "types": {"value": "integer"}},
        "synthesis": {"kind": "pitman_yor", "records": 20_000, **synthesis},
    }


def test_predictive_records_are_whole_and_possible(chains: Path, tmp_path: Path) -> None:
    name = predictive_records(chains, quiet=True, records=2).columns[0]
    spec = spec_of(ranges=[{name: [2, 6]}])
    spec["data"] |= {"columns": [name], "types": {name: "integer"}}
    release = predictive_records(chains, tmp_path / "p.csv", spec=spec, quiet=True)
    values = release.values[:, 0]
    assert len(values) == 20_000 and set(values) == {2.0, 3.0, 4.0, 5.0, 6.0}
    law = norm(3.3, 2.0)
    mass = law.cdf(np.arange(2, 7) + 0.5) - law.cdf(np.arange(2, 7) - 0.5)
    counts = np.bincount(values.astype(int), minlength=7)[2:]
    assert chisquare(counts, mass / mass.sum() * len(values)).pvalue > LEVEL
    stated = release.mechanism.stated()
    assert stated["ranges"] == [{name: [2, 6]}]
    assert stated["columns"][0]["type"] == "integer"
    assert (tmp_path / "p.csv").read_text().splitlines()[1].isdigit()
    again = predictive_records(chains, spec=spec, quiet=True)
    assert np.array_equal(again.values, release.values)


def test_predictive_records_go_to_the_grid(chains: Path) -> None:
    spec = {"synthesis": {"kind": "pitman_yor", "records": 20_000, "snap": {"step": 2.5, "domain": [0, 5]}}}
    release = predictive_records(chains, spec=spec, quiet=True)
    law = norm(3.3, 2.0)
    mass = np.diff([0.0, law.cdf(1.25), law.cdf(3.75), 1.0])
    counts = [int((release.values == point).sum()) for point in (0.0, 2.5, 5.0)]
    assert sum(counts) == 20_000 and chisquare(counts, mass * 20_000).pvalue > LEVEL
    assert release.mechanism.stated()["snap"] == [{"step": 2.5, "domain": [0.0, 5.0]}]


def test_predictive_records_that_cannot_be_are_refused(chains: Path) -> None:
    name = predictive_records(chains, quiet=True, records=2).columns[0]

    def refused(spec: dict[str, Any]) -> str:
        with pytest.raises(SpecError) as caught:
            predictive_records(chains, spec=spec, quiet=True)
        return str(caught.value)

    base = {"kind": "pitman_yor", "records": 10}
    assert "no such column; the columns are" in refused({"synthesis": {**base, "ranges": [{"zz": [0, 1]}]}})
    assert "synthesis.snap.zz: no column of numbers" in refused(
        {"synthesis": {**base, "snap": {"zz": {"step": 1}}}}
    )
    far = refused({"synthesis": {**base, "ranges": [{name: [-9.9, -9.8]}]}})
    assert far.startswith("synthesis.ranges: ") and "0 are possible" in far
    assert "must lie within the bounds" in refused({"synthesis": {**base, "ranges": [{name: [500, 501]}]}})
