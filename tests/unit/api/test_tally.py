"""`dpmix tally`: counts of parts in any format and by anybody are the counts of their values."""

import gzip
import json
import math
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import dpmix
from dpmix.api.fit import plan
from dpmix.api.tally import plan as tally_plan
from dpmix.api.tally import tally_sql
from dpmix.errors import DataError, DpmixError, SpecError, UsageError
from dpmix.laws.every import law_of
from dpmix.release import tally_parts
from dpmix.release.release_file import read_release, write_release
from dpmix.release.sanitized import Release
from dpmix.release.tallies import grid_of, wide_grid
from dpmix.run.chains_reader import Chains, read_chains
from dpmix.summary.check.rank_comparison import places
from dpmix.summary.check.record_likelihoods import cell_log_likelihoods, log_likelihoods
from tests.helpers.pages import undrawn

DOMAIN = [[-2.0, 3.0]]
LAPLACE = {"kind": "laplace", "scale": [1.3], "domain": DOMAIN}
SPEC: dict[str, Any] = {
    "release": {"column": "z"},
    "mechanism": {"kind": "laplace", "scale": 1.3, "domain": DOMAIN},
}
MODEL = {"kind": "mixture", "base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}}
BINOMIAL = {"kind": "binomial", "trials": 7, "weight": 0.5, "domain": DOMAIN}
RUN = {"iterations": 12, "burn_in": 4, "chains": 1, "seed": 1}


def edges_and_around(law: dict[str, Any], width: Any = "auto") -> np.ndarray:
    """Return values on every edge and next to it on both sides, and some others, in a random order."""
    edges, _ = wide_grid(law_of(law), width)
    rng = np.random.default_rng(1)
    near = [np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)]
    return rng.permutation(np.concatenate([*near, rng.normal(0.0, 4.0, 300), [-1e300, 1e300, 0.0, -0.0]]))


def by_hand(values: np.ndarray, edges: np.ndarray) -> list[int]:
    """Count values in half-open cells, one by one."""
    found = [0] * (len(edges) + 1)
    for value in values.tolist():
        found[sum(1 for edge in edges.tolist() if edge <= value)] += 1
    return found


def written(path: Path, values: np.ndarray, law: dict[str, Any] = LAPLACE, **changed: Any) -> Path:
    """Write a release file."""
    about = {"epsilon": 5.0 / 1.3, "delta": 0.0, "rho": None, "n": len(values)} | changed
    columns = about.pop("columns", ("z",))
    write_release(path, Release(values.reshape(len(values), -1), columns, law_of(law), **about))
    return path


def counts_of(path: Path) -> list[int]:
    """Return the counts of a tally."""
    found = read_release(path, tallies=True).tally
    assert found is not None
    return found.counts.tolist()


def refused(*arguments: Any, error: type[DpmixError] = DataError, **options: Any) -> str:
    """Return the one line that a tally is refused with."""
    with pytest.raises(error) as caught:
        dpmix.tally(*arguments, **options)
    text = str(caught.value)
    assert text and "\n" not in text
    return text


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    """Values on edges, around them, and far out."""
    return edges_and_around(LAPLACE)


def test_a_tally_is_a_release_file_with_counts_and_edges_in_place_of_values(
    tmp_path: Path, values: np.ndarray
) -> None:
    made = dpmix.tally([written(tmp_path / "a.h5", values)], output=tmp_path / "t.h5")
    edges, width = wide_grid(law_of(LAPLACE), "auto")
    assert counts_of(tmp_path / "t.h5") == by_hand(values, edges)
    assert {-2.0, 3.0} <= set(edges.tolist()) and edges[0] < -4.4 and edges[-1] > 5.4  # half of D beyond
    assert math.isclose(width, 1.3 / 32, rel_tol=0.03) and width <= 1.3 / 32
    with h5py.File(tmp_path / "t.h5") as file:
        group = file["release"]
        assert "values" not in group and group["counts"].dtype == np.int64
        assert group["counts"].shape == (len(edges) + 1,) and group["edges"].shape == (len(edges) + 2,)
        assert (group["edges"][0], group["edges"][-1]) == (-np.inf, np.inf)
        assert group.attrs["coarsened"] == width and group.attrs["n"] == len(values)
    assert made.n == len(values) and "Tally" in repr(made) and made.values.shape == (0, 1)


def test_formats_jobs_pieces_and_order_give_the_same_tally(
    tmp_path: Path, values: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HDF5, CSV and Parquet; in one piece or several, by one process or two; merged in any order."""
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    edges, _ = wide_grid(law_of(LAPLACE), "auto")
    wanted = by_hand(values, edges)
    third = len(values) // 3
    parts = [values[:third], values[third : 2 * third], values[2 * third :]]
    pq.write_table(pa.table({"y": values * 2.0, "z": values}), tmp_path / "all.parquet", row_group_size=100)
    text = "z,y\n" + "".join(f"{value!r},1\n" for value in values.tolist())
    (tmp_path / "all.csv").write_text(text)
    monkeypatch.setattr(tally_parts, "_ROWS", 150)
    monkeypatch.setattr(tally_parts, "BATCH", 64)
    for name in ("all.parquet", "all.csv"):
        dpmix.tally([tmp_path / name], SPEC, tmp_path / "t.h5", force=True, quiet=True)
        assert counts_of(tmp_path / "t.h5") == wanted
    assert (
        len(tally_parts.pieces_of(tally_parts.TallyPart(str(tmp_path / "all.parquet"), "parquet", "z"))) > 4
    )
    files = [written(tmp_path / f"{i}.h5", part) for i, part in enumerate(parts)]
    assert len(tally_parts.pieces_of(tally_parts.TallyPart(str(files[0]), "hdf5", 0))) > 1
    for order in ((0, 1, 2), (2, 0, 1)):
        dpmix.tally([files[i] for i in order], output=tmp_path / "t.h5", force=True, quiet=True)
        assert counts_of(tmp_path / "t.h5") == wanted
    dpmix.tally(files, output=tmp_path / "jobs.h5", jobs=2, quiet=True)
    singles = [tmp_path / f"t{i}.h5" for i in range(3)]
    for file, single in zip(files, singles, strict=True):
        dpmix.tally([file], output=single, quiet=True)
    merged = [dpmix.tally([singles[i] for i in order], quiet=True) for order in ((0, 1, 2), (1, 2, 0))]
    mixed = dpmix.tally([singles[2], files[0], singles[1]], quiet=True)
    for found in (read_release(tmp_path / "jobs.h5", tallies=True), *merged, mixed):
        assert found.tally is not None and found.tally.counts.tolist() == wanted
        assert found.created_at == max(read_release(file).created_at for file in files)


def test_sql_counts_what_the_direct_tally_counts(tmp_path: Path, values: np.ndarray) -> None:
    """DuckDB on Parquet: cell for cell, also on edges; what is no number is seen, and refused."""
    duckdb = pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for mechanism, width, own in (
        (SPEC["mechanism"], "auto", values),
        (SPEC["mechanism"], 0.37, edges_and_around(LAPLACE, 0.37)),
        (
            BINOMIAL,
            "auto",
            np.arange(8.0).repeat(3),
        ),
    ):
        spec = SPEC | {"mechanism": mechanism}
        path, result = tmp_path / "all.parquet", tmp_path / "result.csv"
        pq.write_table(pa.table({"z": own}), path)
        query = tally_sql(spec, width=width)
        with duckdb.connect() as engine:
            engine.execute(f"CREATE VIEW release AS SELECT * FROM '{path}'")
            engine.sql(query).write_csv(str(result))
            direct = dpmix.tally([path], spec, width=width, quiet=True)
            found = dpmix.tally([], spec, tmp_path / "t.h5", counts=result, width=width, force=True)
            assert direct.tally is not None and found.tally is not None
            assert counts_of(tmp_path / "t.h5") == direct.tally.counts.tolist()
            assert (found.tally.edges == direct.tally.edges).all()
            for bad in ("'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "NULL"):
                engine.execute(
                    f"CREATE OR REPLACE VIEW release AS SELECT * FROM '{path}' UNION ALL SELECT {bad}"
                )
                engine.sql(query).write_csv(str(result))
                assert "(cell -1)" in refused([], spec, counts=result, width=width)
            if mechanism["kind"] == "binomial":
                engine.execute("CREATE OR REPLACE VIEW release AS SELECT 2.5 AS z")
                engine.sql(query).write_csv(str(result))
                assert "no number of the mechanism's outputs" in refused([], spec, counts=result)


def test_the_query_has_no_floor_and_literals_that_are_read_back(values: np.ndarray) -> None:
    query = tally_sql(SPEC | {"release": {"column": 'a "z"'}})
    edges, _ = wide_grid(law_of(LAPLACE), "auto")
    assert '"a ""z"""' in query and "floor" not in query.lower() and "FROM release" in query
    literals = [float(text) for text in re.findall(r"< (-?[0-9.]+e[-+0-9]+) ", query)]
    assert set(literals) == set(edges.tolist())
    with pytest.raises(SpecError, match=r"release\.column: missing"):
        tally_sql({"mechanism": SPEC["mechanism"]})


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_text_is_written_as_the_spec_says(tmp_path: Path, encoding: str, suffix: str) -> None:
    values = edges_and_around(LAPLACE)[:50]
    text = "id;größe\n" + "".join(
        f"{i};{value!r}\n".replace(".", ",") for i, value in enumerate(values.tolist())
    )
    path = tmp_path / f"z{suffix}"
    path.write_bytes((gzip.compress if suffix.endswith("gz") else bytes)((text + "\n").encode(encoding)))
    release = {"path": str(path), "column": "größe", "decimal": ",", "encoding": encoding}
    found = dpmix.tally([path], {**SPEC, "release": release}, quiet=True)
    assert found.tally is not None and found.n == 50
    assert found.tally.counts.tolist() == by_hand(values, found.tally.edges)
    with pytest.raises(DataError, match="size|größe|cannot be read"):
        dpmix.tally([path], {**SPEC, "release": {"column": "größe"}}, quiet=True)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "header"),
        ("\x89HDF", "is not a text file in UTF-8"),
        ("cell;count\n0;1\n", "header"),
        ("cell,count\n0,1\n0,2\n", "line 3: cell 0 is there twice"),
        ("cell,count\n99999,1\n", "no cell 99999"),
        ("cell,count\n-2,1\n", "no cell -2"),
        ("cell,count\n0,-1\n", "line 2"),
        ("cell,count\n0,1.5\n", "line 2"),
        ("cell,count\n0,1,2\n", "line 2"),
        ("cell,count\n0,x\n", "line 2"),
        ("cell,count\n", "n = 0"),
        ("cell,count\n0,0\n", "n = 0"),
        ("cell,count\n-1,3\n0,1\n", "3 values are missing or not finite"),
        (f"cell,count\n0,{2**63}\n", "line 2"),
        (
            f"cell,count\n0,{2**61}\n1,{2**61}\n",
            "387,904 records, and a tally holds at most",
        ),
    ],
)
def test_results_that_no_query_gives_are_refused(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "r.csv").write_bytes(text.encode("latin-1"))
    assert what in refused([], SPEC, counts=tmp_path / "r.csv")


def test_tallies_add_up_to_what_can_be_read(tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"{i}.csv").write_text(f"cell,count\n{i},{2**61}\n")
        dpmix.tally([], SPEC, tmp_path / f"{i}.h5", counts=tmp_path / f"{i}.csv", quiet=True)
        assert read_release(tmp_path / f"{i}.h5", tallies=True).n == 2**61
    assert "a tally holds at most" in refused([tmp_path / "0.h5", tmp_path / "1.h5"])


def test_what_is_no_release_of_finite_numbers_is_refused(tmp_path: Path) -> None:
    """NaN, infinite, missing and no values; words; in each format."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    good = np.linspace(-1.0, 1.0, 5)
    for bad in (np.nan, np.inf, -np.inf):
        path = written(tmp_path / "bad.h5", good)
        with h5py.File(path, "a") as file:
            file["release/values"][3, 0] = bad
        assert "not finite" in refused([path])
        pq.write_table(pa.table({"z": np.append(good, bad)}), tmp_path / "bad.parquet")
        assert "bad.parquet" in refused([tmp_path / "bad.parquet"], SPEC)
        (tmp_path / "bad.csv").write_text(f"z\n1.0\n{bad}\n")
        assert "bad.csv" in refused([tmp_path / "bad.csv"], SPEC)
        path.unlink()
    pq.write_table(pa.table({"z": pa.array([1.0, None])}), tmp_path / "null.parquet")
    pq.write_table(pa.table({"z": ["1.0", "x"]}), tmp_path / "words.parquet")
    pq.write_table(pa.table({"z": pa.array([], pa.float64())}), tmp_path / "empty.parquet")
    for name, text, what in (
        ("null.parquet", None, "is missing"),
        ("words.parquet", None, "does not hold numbers"),
        ("empty.parquet", None, "n = 0"),
        ("missing.csv", "z\n1.0\nNA\n", "is missing"),
        ("empty.csv", "z\n1.0\n\n2.0\n", "a value of z is missing, or a line is empty"),
        ("empty.csv.gz", "z\n1.0\n\n2.0\n", "a line is empty"),
        ("end.csv", "z\n1.0\n2.0\n\n", "a line is empty"),
        ("row.csv", "z,y\n1.0,1\n\n2.0,1\n", "a line is empty"),
        ("last.csv", "z,y\n1.0,1\n,2\n\n", "is missing"),
        ("words.csv", "z\n1.0\nx\n", "no number"),
        ("none.csv", "z\n", "n = 0"),
        ("nothing.csv", "", "cannot be read"),
        ("two.csv", "a,b\n1,2\n", "no column 'z'"),
        ("damaged.parquet", "PAR1", "damaged"),
    ):
        if text is not None:
            (tmp_path / name).write_bytes(gzip.compress(text.encode()) if ".gz" in name else text.encode())
        assert what in refused([tmp_path / name], SPEC), name
    for name in ("ends.csv", "ends.csv.gz"):  # of several columns no record is there
        text = b"z,y\n1.0,1\n2.0,1\n\r\n\n"
        (tmp_path / name).write_bytes(gzip.compress(text) if ".gz" in name else text)
        assert dpmix.tally([tmp_path / name], SPEC, output=tmp_path / f"{name}.h5").n == 2
    (tmp_path / "two.csv").write_text("a,b\n1,2\n")
    assert "a, b" in refused([tmp_path / "two.csv"], {"mechanism": SPEC["mechanism"]})


def test_outputs_are_their_own_cells(tmp_path: Path) -> None:
    law = {"kind": "binomial", "trials": 4, "weight": 0.5, "domain": [[0.0, 1.0]], "scale": [2.0]}
    outputs = np.array([0, 4, 4, 1, 3, 4.0])
    made = dpmix.tally([written(tmp_path / "a.h5", outputs, law)], output=tmp_path / "t.h5")
    assert made.tally is not None and made.tally.counts.tolist() == [1, 1, 0, 1, 3]
    assert grid_of(made.tally).tolist() == [-np.inf, 0.5, 1.5, 2.5, 3.5, np.inf] and made.tally.width == 0.0
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["release/values"][0, 0] = 2.5
    assert "no output 0 .. 4" in refused([tmp_path / "a.h5"])
    assert "leave it out" in refused([tmp_path / "a.h5"], width=0.1, error=SpecError)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"law": LAPLACE | {"scale": [1.4]}}, "mechanism.scale"),
        (
            {"law": LAPLACE | {"scale": [1.4], "granularity": [1e-15], "requested": {"epsilon": 2.0}}},
            "mechanism.requested",
        ),
        ({"law": LAPLACE | {"domain": [[-2.0, 4.0]]}}, "mechanism.domain"),
        ({"law": LAPLACE | {"kind": "gaussian"}}, "mechanism.kind (gaussian against laplace)"),
        ({"epsilon": 2.0}, "epsilon (2 against 3.84"),
        ({"adjacency": "replacement, public parts"}, "adjacency"),
        ({"simulated": True}, "simulated"),
        ({"columns": ("y",)}, "columns (y against z)"),
    ],
)
def test_parts_that_differ_are_refused_by_the_difference(
    tmp_path: Path, changed: dict[str, Any], what: str
) -> None:
    numbers = np.linspace(-1.0, 1.0, 5)
    one = written(tmp_path / "one.h5", numbers)
    two = written(tmp_path / "two.h5", numbers, changed.pop("law", LAPLACE), **changed)
    text = refused([one, two])
    assert text.startswith(f"{two} differs from {one} in ") and what in text
    tallies = [tmp_path / "t1.h5", tmp_path / "t2.h5"]
    for source, target in zip((one, two), tallies, strict=True):
        dpmix.tally([source], output=target)
    assert what in refused(tallies)


@pytest.mark.parametrize(
    "mechanism",
    [
        {"kind": "laplace", "epsilon": 3.0},
        {"kind": "gaussian", "epsilon": 1.0, "delta": 1e-5},
        {"kind": "square_wave", "epsilon": 2.0, "cells": 16},
        {"kind": "binomial", "epsilon": 3.0, "trials": 7},
    ],
    ids=lambda mechanism: mechanism["kind"],
)
def test_tables_of_one_spec_add_to_its_release_files(tmp_path: Path, mechanism: dict[str, Any]) -> None:
    data = {"path": "not read.csv", "column": "z", "domain": DOMAIN[0], "unit": "feet"}
    paths, text = [tmp_path / "0.h5", tmp_path / "1.h5"], tmp_path / "1.csv"
    for path in paths:
        table = {"z": np.linspace(-1.0, 2.0, 40)}
        dpmix.privatize({"data": data, "mechanism": mechanism}, path, data=table, quiet=True)
    with h5py.File(paths[1]) as file:
        text.write_text("z\n" + "\n".join(map(repr, file["release/values"][:, 0].tolist())) + "\n")
    spec = {
        "release": {"column": "z", "unit": "feet"},
        "mechanism": mechanism | {"domain": DOMAIN[0]},
    }
    own = dpmix.tally(paths, quiet=True)
    assert own.tally is not None
    for number, parts in enumerate([[paths[0], text], [text, paths[0]]]):
        output = tmp_path / f"t{number}.h5"
        both = dpmix.tally(parts, spec, output=output, quiet=True)
        assert counts_of(output) == own.tally.counts.tolist()
        assert both.mechanism.stated()["stated"] is True  # of one part no file says how it was made
        assert both.epsilon == pytest.approx(own.epsilon, rel=1e-9) and both.epsilon >= own.epsilon
        assert dpmix.tally([output, paths[1]], spec, quiet=True).n == 120
    assert read_release(tmp_path / "t0.h5", tallies=True).mechanism == both.mechanism
    other = spec | {"release": {"column": "z", "unit": "miles"}}
    dpmix.tally([text], other, output=tmp_path / "other.h5", quiet=True)
    assert refused([paths[0], tmp_path / "other.h5"]).endswith("in unit (feet against miles)")


def test_another_grid_is_refused(tmp_path: Path) -> None:
    numbers = np.linspace(-1.0, 1.0, 5)
    path = written(tmp_path / "a.h5", numbers)
    dpmix.tally([path], output=tmp_path / "wide.h5", width=0.5)
    dpmix.tally([path], output=tmp_path / "fine.h5", width=0.25)
    assert "in the grid (" in refused([tmp_path / "wide.h5", tmp_path / "fine.h5"])
    assert "leave --width out" in refused([tmp_path / "wide.h5"], width=0.25)
    again = dpmix.tally([tmp_path / "wide.h5", path])  # values are counted in the tally's grid
    assert again.n == 10 and again.tally is not None and again.tally.width == 0.5
    near = dpmix.tally([tmp_path / "wide.h5"], width=0.51)  # makes the same whole number of cells
    assert near.n == 5


def test_a_simulated_part_is_named_as_such_beside_one_that_is_not(tmp_path: Path) -> None:
    """And not by the granularity, which noise of a seed has none of."""
    values = np.linspace(-1.0, 1.0, 5)
    real = written(tmp_path / "a.h5", values, {**LAPLACE, "granularity": [2.0**-50]})
    seeded = {**LAPLACE, "granularity": None}
    simulated = written(tmp_path / "b.h5", values, seeded, private=False, simulated=True)
    assert refused([real, simulated]).endswith("in simulated (True against False)")


def test_a_copy_of_a_part_is_not_counted_again(tmp_path: Path) -> None:
    path = written(tmp_path / "a.h5", np.linspace(-1.0, 1.0, 5))
    copy = tmp_path / "again.h5"
    copy.write_bytes(path.read_bytes())
    assert f"{copy} is a copy of {path}" in refused([path, copy])
    dpmix.tally([path], output=tmp_path / "t.h5", quiet=True)
    (tmp_path / "u.h5").write_bytes((tmp_path / "t.h5").read_bytes())
    assert "would count twice" in refused([tmp_path / "t.h5", tmp_path / "u.h5"])


def test_calls_that_make_no_sense(tmp_path: Path) -> None:
    path = written(tmp_path / "a.h5", np.linspace(-1.0, 1.0, 5))
    (tmp_path / "r.csv").write_text("cell,count\n0,1\n")
    confidential = {**SPEC, "data": {"path": tmp_path / "r.csv", "column": "count"}}
    for arguments, options, what in (
        (([],), {}, "PART: missing"),
        (([path, path],), {}, "named twice"),
        (([path],), {"output": path, "force": True}, "one of the parts"),
        (([tmp_path / "r.csv"],), {}, "SPEC: missing"),
        (([path],), {"counts": tmp_path / "r.csv"}, "leave the parts out"),
        (([],), {"counts": tmp_path / "r.csv"}, "SPEC: missing"),
        (([],), {"counts": tmp_path / "r.csv", "spec": SPEC, "jobs": 2}, "nothing to count"),
        (([path],), {"jobs": 0}, "at least 1"),
        (([path],), {"jobs": 2, "scheduler": "tcp://x:1"}, "one of them"),
        (([path],), {"output": tmp_path / "t.csv"}, "HDF5"),
        (([tmp_path / "a.xlsx"],), {}, "parts of a release are"),
        (([tmp_path / "r.csv"],), {"spec": confidential}, "is the confidential file itself"),
    ):
        assert what in refused(*arguments, error=UsageError, **options)
    dpmix.tally([path], output=tmp_path / "t.h5")
    assert "--force" in refused([path], output=tmp_path / "t.h5", error=UsageError)
    assert "1 piece" in tally_plan([path]) and "add up 1 tally" in tally_plan([tmp_path / "t.h5"])
    many = written(
        tmp_path / "many.h5",
        np.zeros((3, 2)),
        {"kind": "laplace", "scale": [1.3, 2.0], "domain": [[-2.0, 3.0], [0.0, 1.0]]},
        columns=("z", "y"),
    )
    assert "z, y" in refused([many], error=SpecError)
    chosen = dpmix.tally([many], {"release": {"column": "y"}})
    bands = {"kind": "wavelet", "levels": 1, "scale": [1.0], "domain": DOMAIN}
    haar = written(tmp_path / "haar.h5", np.zeros((2, 3)), bands, columns=("z_0_0", "z_1_0", "z_1_1"))
    assert "wavelet release is not one number a record" in refused([haar])  # and not: name a column
    answers = tmp_path / "answers.csv"
    answers.write_text("z\na\nb\n")
    release = {"path": str(answers), "columns": ["z"]}
    number = "not one number a record"
    for kind, stated, listed, what in (
        # and not: its categories are missing, which the spec has
        (
            "randomized_response",
            {"epsilon": 1},
            {"categories": {"z": ["a", "b"]}},
            "of categories, whose answers `dpmix fit` counts",
        ),
        ("perturbed_histogram", {"bins": 4, "scale": 2, "n": 9, "domain": DOMAIN}, {}, number),
        ("wavelet", {"levels": 1, "epsilon": 1, "domain": DOMAIN}, {}, number),
    ):
        asked = {"mechanism": {"kind": kind, **stated}, "release": release | listed}
        said = refused([answers], asked, error=SpecError)
        assert said == f"mechanism.kind: a {kind} release is {what}, and has no tally"
    assert chosen.columns == ("y",) and chosen.mechanism.scale == (2.0,)
    assert chosen.mechanism.domain == ((0.0, 1.0),)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("counts", "one more", "add up to n"),
        ("counts", "negative", "no numbers of records"),
        ("edges", "finite end", "from -inf to inf"),
        ("edges", "swapped", "do not increase"),
        ("edges", "moved", "apart"),
        ("coarsened", 0.0, "no width"),
        ("coarsened", 0.5, "apart"),
        ("coarsened", math.nan, "no width"),
        ("n", 7, "add up to n"),
        ("mechanism", LAPLACE | {"domain": [[-2.0, 3.01]]}, "public bounds"),
        ("mechanism", {"kind": "wavelet", "levels": 2, "domain": [[0, 1]], "scale": [1.0]}, "no tally"),
    ],
)
def test_nonsense_tallies_are_refused(tmp_path: Path, name: str, value: Any, what: str) -> None:
    """A cell at the end that is finite would lose what lies beyond it."""
    path = tmp_path / "t.h5"
    dpmix.tally([written(tmp_path / "a.h5", np.linspace(-1.0, 1.0, 5))], output=path)
    with h5py.File(path, "a") as file:
        group = file["release"]
        if name == "counts":
            group["counts"][0] += 1 if value == "one more" else -1
        elif name == "edges":
            edges = group["edges"][()]
            if value == "finite end":
                edges[-1] = 1e6
            else:
                edges[[3, 4]] = edges[[4, 3]] if value == "swapped" else edges[[3, 4]] + 1e-6
            group["edges"][()] = edges
        else:
            group.attrs[name] = json.dumps(value) if isinstance(value, dict) else value
    for take in (lambda: read_release(path, tallies=True), lambda: dpmix.tally([path])):
        with pytest.raises(DataError, match=what):
            take()


def test_readers_that_need_values_refuse_a_tally_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    dpmix.tally([written(tmp_path / "a.h5", np.linspace(-1.0, 1.0, 5))], output=path)
    with pytest.raises(DataError, match="is a tally"):
        read_release(path)
    with pytest.raises(DataError, match="is a tally"):
        dpmix.summarize(path)
    data = {"data": {"path": str(path), "columns": ["z"], "domain": DOMAIN}, "mechanism": SPEC["mechanism"]}
    with pytest.raises(DataError, match="is a tally"):
        dpmix.privatize(data, tmp_path / "x.h5", quiet=True)
    for changed, what in (
        ({"sampler": {"kind": "neal8"}}, "moves record by record"),
        ({"sampler": {"store": ["allocations"]}}, r"sampler\.store: .* no allocations; leave it out$"),
        (
            {"sampler": {"kind": "counts", "store": ["allocations"]}},
            r"sampler\.store: .* no allocations; leave it out, or, where the release is no tally, give ",
        ),
        (
            {"summary": {"baseline": ["ems", "deconvolution_kde"]}},
            r"summary\.baseline: deconvolution_kde .* a tally holds counts alone; use ems, or none$",
        ),
        ({"sampler": {"subsample": 3}}, r"sampler\.subsample"),
        ({"sampler": {"width": 0.5}}, r"sampler\.width: 0\.5 makes cells of width 0\.5"),
        ({"model": {"kind": "mixture", "base": {"empirical": True}}}, r"model\.base\.empirical"),
        ({"model": {"kind": "mixture", "discount": 0.3}}, r"model\.discount"),
        ({"model": {"kind": "discrete"}}, "the model mixture takes, not discrete"),
    ):
        with pytest.raises(DpmixError, match=what):
            plan({"model": MODEL, **changed}, path)
    assert "by their counts in" in plan({"model": MODEL}, path)
    assert "sweeps of counts" in plan({"model": MODEL, "summary": {"baseline": "ems"}}, path)
    assert "sweeps of counts" in plan({"model": MODEL, "release": {"path": str(path)}})
    assert "sweeps of counts" in plan({"model": MODEL, "sampler": {"width": 1.3 / 32}}, path)


def test_a_fit_of_the_tally_has_the_draws_of_a_fit_of_the_values(tmp_path: Path) -> None:
    """Bit for bit: under normal kernels both count in the wide grid. Its summary knows the tally."""
    rng = np.random.default_rng(3)
    numbers = np.clip(rng.normal(0.5, 0.8, 400), -2.0, 3.0) + rng.laplace(0.0, 1.3, 400)
    path = written(tmp_path / "a.h5", numbers)
    dpmix.tally([path], output=tmp_path / "t.h5")
    spec = {"model": MODEL, "sampler": RUN | {"kind": "counts", "iterations": 140, "burn_in": 20}}
    auto = {"model": MODEL, "sampler": RUN | {"iterations": 140, "burn_in": 20}, "release": {"path": "t.h5"}}
    (tmp_path / "auto.yaml").write_text(json.dumps(auto))
    dpmix.fit(spec, path, tmp_path / "values.h5", quiet=True)
    dpmix.fit(tmp_path / "auto.yaml", None, tmp_path / "tally.h5", quiet=True)
    with h5py.File(tmp_path / "values.h5") as one, h5py.File(tmp_path / "tally.h5") as two:
        for name in ("n_clusters", "weights", "mean", "variance", "record_mean"):
            assert np.array_equal(one["posterior"][name][()], two["posterior"][name][()], equal_nan=True)
        assert "kind: counts" in str(two.attrs["spec"])
        assert two["observed_data/counts"][()].sum() == 400 and "z" not in two["observed_data"]
        assert two["posterior_predictive/counts"][()].sum(axis=-1).min() == 400
        assert two.attrs["n"] == 400
        kept, single = two["log_likelihood/counts"][()], one["log_likelihood/z"][()]
        assert kept.shape == (1, 120, len(two["observed_data/counts"])) and single.shape == (1, 120, 400)
        assert not kept[..., two["observed_data/counts"][()] == 0].any()
        total = kept.sum(axis=-1)  # with components for all that is on none, which the chain draws
        assert np.median(np.abs(total - two["sample_stats/log_likelihood"][()])) < 0.5
    again = dpmix.fit(tmp_path / "auto.yaml", None, tmp_path / "tally.h5", resume=True, quiet=True)
    assert not again.written
    page, loo = tmp_path / "r.html", ["summary.loo=true"]
    with undrawn():
        found = dpmix.summarize(tmp_path / "tally.h5", tmp_path / "s.h5", report=page, overrides=loo)
    plain = dpmix.summarize(tmp_path / "values.h5", overrides=["summary.loo=true"])
    for name, scalar in plain.parameters.items():
        assert scalar.mean == found.parameters[name].mean
    assert found.n == 400 and found.check.p is not None and found.check.p > 0.01
    assert "The histogram shows the released values" in page.read_text()
    assert found.loo is not None and plain.loo is not None
    # one record's likelihood: that of its cell, which is the density in its middle times its width
    one, two = (read_chains([tmp_path / f"{name}.h5"]) for name in ("values", "tally"))
    assert isinstance(two, Chains) and two.tally is not None
    by_cell = cell_log_likelihoods(two, places(two, 10))[0]
    assert np.allclose(np.exp(by_cell).sum(axis=1), 1.0, atol=1e-9)
    edges, width = two.tally.edges, two.tally.width
    inside = (numbers > edges[0]) & (numbers < edges[-1])
    cells = np.searchsorted(edges, numbers, side="right")
    gap = (by_cell[:, cells] - math.log(width) - log_likelihoods(one, places(one, 10))[0])[:, inside]
    assert np.abs(gap).max() < 0.6 * width / 1.3
    with pytest.raises(DataError, match="of a tally"):
        dpmix.summarize(tmp_path / "tally.h5", overrides=["summary.baseline=deconvolution_kde"])
    with pytest.raises(DataError, match="another release"):
        dpmix.summarize([tmp_path / "tally.h5", tmp_path / "values.h5"])


def test_many_records_keep_their_log_likelihoods_by_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What more than 5,000 records keep is what their tally keeps; leave-one-out and check go by it."""
    from dpmix.summary.check import record_likelihoods

    for module in (record_likelihoods, record_likelihoods):
        monkeypatch.setattr(module, "MOST_RECORDS", 300)
    rng = np.random.default_rng(4)
    path = written(tmp_path / "a.h5", rng.normal(0.5, 0.8, 400) + rng.laplace(0.0, 1.3, 400))
    dpmix.tally([path], output=tmp_path / "t.h5")
    spec = {"model": MODEL, "sampler": RUN | {"kind": "counts", "iterations": 140, "burn_in": 20}}
    for name in ("a", "t"):
        dpmix.fit(spec, tmp_path / f"{name}.h5", tmp_path / f"{name}c.h5", quiet=True)
    with h5py.File(tmp_path / "ac.h5") as one, h5py.File(tmp_path / "tc.h5") as two:
        values, tallied = one["log_likelihood"], two["log_likelihood"]
        assert values["counts"].dims[2][0].name.endswith("/cell") and "z" not in values
        assert np.array_equal(values["counts"][()], tallied["counts"][()])
        edges = two["observed_data/edges"][()]
        assert values.attrs["cells_first"] == edges[1] and values.attrs["cells_last"] == edges[-2]
        assert values.attrs["cells_width"] == edges[2] - edges[1]
    of_values, of_tally = (
        dpmix.summarize(tmp_path / f"{name}c.h5", overrides=["summary.loo=true"]).to_json() for name in "at"
    )
    assert of_values["loo"] == of_tally["loo"] and of_values["loo"]["elpd"] < 0.0
    assert not of_values["prior_sensitivity"]["reason"]
    assert of_values["check"] == of_tally["check"] and of_values["check"]["p"] is not None


def test_a_spec_of_several_columns_tallies_one_of_them_and_fits_it(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{i % 5},{i % 7}\n" for i in range(30)))
    spec = {
        "data": {"path": str(tmp_path / "d.csv"), "columns": ["x", "y"], "domain": [[0, 4], [0, 6]]},
        "release": {"columns": ["y"]},
        "mechanism": {"kind": "square_wave", "epsilon": 4.0, "cells": 16},
        "model": MODEL,
        "sampler": RUN,
    }
    dpmix.privatize(spec, tmp_path / "r.h5", quiet=True)
    made = dpmix.tally([tmp_path / "r.h5"], spec, tmp_path / "t.h5")
    assert made.columns == ("y",) and made.mechanism.domain == ((0.0, 6.0),) and made.n == 30
    assert dpmix.tally([tmp_path / "t.h5"], spec).n == 30
    assert "sweeps of counts" in plan(spec, tmp_path / "t.h5")
    with pytest.raises(SpecError, match="mechanism.epsilon"):
        dpmix.tally([tmp_path / "t.h5"], spec | {"mechanism": spec["mechanism"] | {"epsilon": 5.0}})
    other = spec | {"data": spec["data"] | {"domain": [[0, 4], [0, 7]]}}
    with pytest.raises(SpecError, match="mechanism.domain"):
        dpmix.tally([tmp_path / "t.h5"], other)


def test_what_has_no_public_cells_keeps_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmix.models.meaning_base import Unavailable
    from dpmix.summary.check import record_likelihoods

    rng = np.random.default_rng(5)
    dpmix.fit(
        {"model": MODEL, "sampler": RUN | {"kind": "counts"}},
        written(tmp_path / "a.h5", rng.normal(0.5, 2.0, 60)),
        tmp_path / "c.h5",
        quiet=True,
    )
    chains = read_chains([tmp_path / "c.h5"])
    assert not record_likelihoods.goes_by_cell(chains)
    monkeypatch.setattr(record_likelihoods, "MOST_CELLS", 20)
    with pytest.raises(Unavailable, match="more than 20 cells"):
        record_likelihoods.counted(chains)


_CLUSTER = """
    import contextlib, os, signal, sys, warnings
    import dask, dpmix, dpmix.api.tally
    from distributed import LocalCluster

    dask.config.set({"distributed.comm.timeouts.connect": "2s"})  # to the killed one, which is not there

    def main():
        warnings.simplefilter("ignore")
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            victim = next(iter(cluster.workers.values())).pid

            @contextlib.contextmanager
            def killing(what, total, quiet):
                def tell(done):
                    if done == 3:
                        os.kill(victim, signal.SIGKILL)
                        print("killed after", done, "of", total, flush=True)
                yield tell

            dpmix.api.tally.show_work = killing
            dpmix.tally(sys.argv[2:], output=sys.argv[1], scheduler=cluster.scheduler_address)

    if __name__ == "__main__":
        main()
"""


def test_a_cluster_gives_the_same_tally_though_a_worker_is_killed(tmp_path: Path, values: np.ndarray) -> None:
    """On a Dask cluster of two processes, of which one is killed while they count."""
    pytest.importorskip("distributed")
    files = [written(tmp_path / f"{i}.h5", part) for i, part in enumerate(np.array_split(values, 40))]
    script = tmp_path / "cluster.py"
    script.write_text(textwrap.dedent(_CLUSTER))
    command = [sys.executable, str(script), str(tmp_path / "t.h5"), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "killed after 3 of 40" in done.stdout, done.stderr
    edges, _ = wide_grid(law_of(LAPLACE), "auto")
    assert counts_of(tmp_path / "t.h5") == by_hand(values, edges)


def test_a_scheduler_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmix.release import tally_parts

    path = written(tmp_path / "a.h5", np.linspace(-1.0, 1.0, 5))
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "not installed" in refused([path], scheduler="tcp://127.0.0.1:1", error=UsageError)
    assert list(tally_parts.count([], tally_parts.TallyGrid(np.zeros(1), 0, 1.0))) == []


DATES = {"kind": "laplace", "scale": 30.0, "domain": ["2020-01-01", "2020-12-31"]}


def test_dates_are_tallied_as_export_writes_them(tmp_path: Path) -> None:
    """CSV, Parquet and SQL of dates, on edges of cells too, as the release file; numbers are refused."""
    pytest.importorskip("pyarrow")
    law = law_of({"kind": "laplace", "scale": [30.0], "domain": [[18262.0, 18627.0]]})
    edges, _ = wide_grid(law, "auto")
    near = (np.floor(edges * 86_400e6)[:, None] + np.arange(-2, 3)).ravel()
    days = np.concatenate([near // 86_400e6 + near % 86_400e6 / 86_400e6, [18300.0, -5.0, 40_000.25]])
    made = Release(days[:, None], ("when",), law, 12.2, 0.0, None, len(days), dates=("when",))
    write_release(tmp_path / "d.h5", made)
    wanted = dpmix.tally([tmp_path / "d.h5"], quiet=True)
    spec = {"release": {"column": "when"}, "mechanism": DATES}
    for name in ("d.csv", "d.parquet"):
        dpmix.export(tmp_path / "d.h5", tmp_path / name)
        found = dpmix.tally([tmp_path / name], spec, quiet=True)
        assert found.tally is not None and wanted.tally is not None
        assert found.tally.counts.tolist() == wanted.tally.counts.tolist()
        assert found.dates == ("when",)
    query = tally_sql(spec)
    assert "TIMESTAMP '2020-01-01 00:00:00" in query and "e0" not in query
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW release AS SELECT * FROM '{tmp_path / 'd.csv'}'")
        counts = dict(database.execute(query).fetchall())
    assert [counts.get(cell, 0) for cell in range(len(edges) + 1)] == wanted.tally.counts.tolist()
    (tmp_path / "n.csv").write_text("when\n18300.5\n")
    assert "no date such as 2024-02-29" in refused([tmp_path / "n.csv"], spec, quiet=True)
    far = {"release": {"column": "when"}, "mechanism": DATES | {"domain": ["0002-01-01", "9999-12-31"]}}
    with pytest.raises(UsageError, match="beyond the years 1 to 9999"):
        tally_sql(far)


@pytest.mark.parametrize("piped", [False, True])
def test_processes_that_count_do_not_run_the_script_of_their_caller(
    tmp_path: Path, values: np.ndarray, piped: bool
) -> None:
    """A script without a guard of its main part, from a file or from standard input, runs once."""
    parts = [str(written(tmp_path / f"{i}.h5", part)) for i, part in enumerate(np.array_split(values, 2))]
    script = (
        "import dpmix\n"
        f"open({str(tmp_path / 'runs')!r}, 'a').write('a run')\n"
        f"print(dpmix.tally({parts!r}, output={str(tmp_path / 't.h5')!r}, jobs=2, quiet=True).n)\n"
    )
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "-" if piped else str(tmp_path / "script.py")]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{len(values)}\n", "")
    assert (tmp_path / "runs").read_text() == "a run"
