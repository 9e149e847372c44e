"""Synthetic records: their laws, their files, and what is refused."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
from scipy.stats import chisquare, kstest, norm

import dpmix
from dpmix.api.cautions import of_release
from dpmix.api.release_of import find_release
from dpmix.cli.commands import main
from dpmix.columns.cells import Cells, Column, Grid
from dpmix.errors import DataError, DpmixError, PrivacyError, SpecError, UsageError
from dpmix.laws.every import law_of
from dpmix.laws.synthetic import SyntheticLaw
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from dpmix.synthesis.generator import Generator
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.records import Records, load_records

LEVEL = 1e-3  # of each file's tests together: ten tests or fewer at 1e-4

ADULTS = "age,sex,job\n" + "".join(
    f"{20 + i % 7},{'mf'[i % 2]},{('cook', 'nurse', 'smith', 'poet')[i % 4]}\n" for i in range(40)
)


@pytest.fixture
def adults(tmp_path: Path) -> dict[str, Any]:
    """A spec of one numeric column, one of public categories, and one of free labels."""
    (tmp_path / "adults.csv").write_text(ADULTS)
    data = {
        "path": str(tmp_path / "adults.csv"),
        "columns": ["age", "sex", "job"],
        "domain": {"age": [18, 99]},
        "categories": {"sex": ["f", "m"]},
    }
    synthesis = {"kind": "pitman_yor", "concentration": 20, "records": 30, "snap": {"step": 1}}
    return {"data": data, "synthesis": synthesis}


def generator(synthesis: dict[str, Any], columns: tuple[Column, ...], n: int) -> Generator:
    section = load_spec({"synthesis": synthesis}).synthesis
    assert section is not None
    return generator_of(section, columns, n)


def records_of(values: list[float] | np.ndarray, column: Column) -> Records:
    table = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    return Records((column,), table, (column.categories,), (0,))


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


# laws


def pooled(make: Callable[[int], np.ndarray], runs: int) -> np.ndarray:
    return np.concatenate([make(seed) for seed in range(runs)])


def test_old_values_new_values_and_labels_have_the_laws_of_the_urn(adults: dict[str, Any]) -> None:
    # each run's first record: an old one with probability n/(n + theta), else new
    fresh, ages = 0, []
    records = load_records(load_spec(adults))
    made = generator({**adults["synthesis"], "records": 1}, records.columns, records.n)
    runs = 3000
    for seed in range(runs):
        values, labels = made.draw(records, np.random.default_rng(seed))
        assert labels[1] == ("f", "m")
        names = labels[2]
        assert names is not None
        assert len(names) == 1  # only what is released is named
        if names[0].startswith("new_category"):
            assert names[0] == "new_category_1"
            fresh += 1
            ages.append(values[0, 0])
        else:
            assert values[0, 0] in records.values[:, 0]
    expected = np.array([20 / 60, 40 / 60]) * runs
    assert chisquare([fresh, runs - fresh], expected).pvalue > LEVEL / 10
    counts = np.bincount(np.array(ages, dtype=int) - 18, minlength=82)
    inner = counts[1:-1]  # the end points have half a step each
    assert chisquare(inner).pvalue > LEVEL / 10
    assert set(ages) <= set(range(18, 100))


def test_a_fresh_label_is_none_that_is_released(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("w\n" + "new_category_1\nnew_category_3\n" * 50)
    spec = {
        "data": {"path": str(tmp_path / "d.csv"), "column": "w"},
        "synthesis": {"kind": "pitman_yor", "records": 200, "concentration": 100},
    }
    names = dpmix.synthesize(spec, quiet=True, yes=True).labels[0]
    assert names is not None
    assert len(set(names)) == len(names)
    assert {"new_category_1", "new_category_2", "new_category_3", "new_category_4"} <= set(names)


def test_a_record_of_several_columns_is_one_value(adults: dict[str, Any]) -> None:
    release = dpmix.synthesize(adults, quiet=True)
    known = {tuple(line.split(",")) for line in ADULTS.splitlines()[1:]}
    names = release.labels[2]
    assert names is not None
    for age, sex, job in release.values:
        if not names[int(job)].startswith("new_"):
            assert (f"{age:.0f}", "fm"[int(sex)], names[int(job)]) in known


@pytest.mark.parametrize(
    ("base", "law"),
    [
        ({"kind": "uniform"}, lambda u: u),
        ({"kind": "beta", "a": 2, "b": 1}, lambda u: u**2),
        ({"kind": "histogram", "edges": [2, 3, 4], "weights": [1, 3]}, None),
    ],
    ids=["uniform", "beta", "histogram"],
)
def test_new_values_have_the_law_of_the_base_measure(
    base: dict[str, Any], law: Callable[[np.ndarray], np.ndarray] | None
) -> None:
    column = Column("x", (2.0, 4.0))
    made = generator(
        {"kind": "pitman_yor", "concentration": 1e9, "records": 2000, "base": base}, (column,), 3
    )
    values, _ = made.draw(records_of([2, 3, 4], column), np.random.default_rng(5))
    places = (values[:, 0] - 2) / 2
    if law is None:
        assert chisquare([np.sum(places < 0.5), np.sum(places >= 0.5)], [500, 1500]).pvalue > LEVEL / 10
    else:
        assert kstest(law(places), "uniform").pvalue > LEVEL / 10


def test_draws_of_a_smoothed_histogram_have_its_law() -> None:
    column = Column("x", (0.0, 1.0))
    made = generator({"kind": "smoothed_histogram", "bins": 4, "records": 3, "epsilon": 2}, (column,), 5)
    weight = made.figures()["weight"]
    assert weight == pytest.approx(4 / (4 + 5 * np.expm1(2 / 3)))
    data = records_of([0.1, 0.2, 0.3, 0.9, 1.0], column)
    drawn = pooled(lambda s: made.draw(data, np.random.default_rng(s))[0][:, 0], 1500)
    shares = (1 - weight) * np.array([2, 1, 0, 2]) / 5 + weight / 4
    counts = np.bincount((drawn * 4).astype(int), minlength=4)
    assert chisquare(counts, shares * len(drawn)).pvalue > LEVEL / 10
    assert kstest((drawn * 4) % 1, "uniform").pvalue > LEVEL / 10


def test_draws_of_a_dirichlet_multinomial_have_its_law() -> None:
    column = Column("x", None, ("a", "b", "c"))
    made = generator({"kind": "dirichlet_multinomial", "concentration": 0.5, "records": 2}, (column,), 3)
    data = records_of([0, 0, 2], column)
    pairs: Counter[tuple[int, int]] = Counter()
    for seed in range(6000):
        values, _ = made.draw(data, np.random.default_rng(seed))
        pairs[int(values[0, 0]), int(values[1, 0])] += 1
    weights = [Fraction(5, 2), Fraction(1, 2), Fraction(3, 2)]
    total = sum(weights)
    expected = [
        float(weights[i] / total * (weights[j] + (i == j)) / (total + 1)) for i in range(3) for j in range(3)
    ]
    found = [pairs[i, j] for i in range(3) for j in range(3)]
    assert chisquare(found, np.array(expected) * 6000).pvalue > LEVEL / 10


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "geometric"])
def test_a_perturbed_histogram_without_much_noise_is_the_histogram(noise: str) -> None:
    column = Column("x", (0.0, 1.0))
    spec = {"kind": "perturbed_histogram", "bins": 4, "records": 4000, "epsilon": 50, "noise": noise}
    made = generator(spec | ({"delta": 1e-3} if noise == "gaussian" else {}), (column,), 1000)
    data = records_of(np.repeat([0.1, 0.3, 0.6, 1.0], [100, 0, 300, 600]), column)
    values, _ = made.draw(data, np.random.default_rng(1))
    counts = np.bincount((values[:, 0] * 4).astype(int), minlength=4)
    assert counts[1] <= 20
    assert np.abs(counts / 4000 - [0.1, 0, 0.3, 0.6]).max() < 0.03


def test_counts_that_are_all_clipped_give_uniform_draws() -> None:
    column = Column("x", (0.0, 1.0))
    made = generator(
        {"kind": "perturbed_histogram", "bins": 3, "records": 900, "epsilon": 1e-3}, (column,), 2
    )
    seeds = iter(range(1000))
    uniform = 0
    for seed in seeds:  # an eighth of all noise is negative everywhere
        values, _ = made.draw(records_of([0.1, 0.1], column), np.random.default_rng(seed))
        counts = np.bincount((values[:, 0] * 3).astype(int), minlength=3)
        if (counts > 0).all() and np.ptp(counts) < 120:
            uniform += 1
        if uniform == 3:
            return
    raise AssertionError("no draw was uniform")


@pytest.mark.parametrize("noise", ["laplace", "geometric", "gaussian"])
def test_noise_of_empty_cells_places_as_many_draws_as_is_said(noise: str) -> None:
    """All records are in one of 400 cells: what else is drawn comes from the noise of the others."""
    section = {"kind": "perturbed_histogram", "bins": 400, "epsilon": 1.0, "noise": noise, "records": 50_000}
    section |= {"delta": 1e-5} if noise == "gaussian" else {}
    column = Column("x", (0.0, 400.0))
    made = generator(section, (column,), 4000)
    records = records_of(np.full(4000, 7.5), column)
    found = [float((made.draw(records, np.random.default_rng(i))[0] >= 8.0).mean()) for i in range(12)]
    share = made.noise_share
    assert share is not None and np.mean(found) == pytest.approx(share, rel=0.08)
    kept = share / (1.0 - share) * 4000 / 400  # of each empty cell, on average
    scale = made.noise.s
    exact = {"gaussian": norm(scale=scale).expect(lambda x: x, lb=0.0), "laplace": scale / 2.0}
    p = math.exp(-1.0 / scale)
    assert exact.get(noise, p / (1.0 - p * p)) == pytest.approx(kept, rel=1e-6 if noise in exact else 0.05)
    (said,) = of_release(made, 4000)
    kind = "warning" if noise == "gaussian" else "note"  # more than a tenth
    assert said.text.startswith(f"{kind}: up to {share:.1%} of the records will come from the noise of empty")
    few = generator(section | {"records": 2}, (column,), 4000)  # whose own error is larger
    assert of_release(few, 4000) == []
    even = {"kind": "dirichlet_multinomial", "bins": 10, "epsilon": 1.0, "records": 90}
    (said,) = of_release(generator(even, (column,), 2000), 2000)
    assert said.text.startswith("warning: about 20.8% of the records will be uniform over all cells, what")
    base = {"kind": "pitman_yor", "concentration": 9500, "records": 1}  # as a delta of 1e-4 suggests
    found = [each.text for each in of_release(generator(base, (column,), 500), 500)]
    text = "warning: about 95% of the records will be new values of synthesis.base, whatever the data: take "
    assert text + "a smaller concentration" in found
    (mostly,) = of_release(made.of_records(100), 100)
    assert "mostly noise" in mostly.text  # and nothing besides


def test_blanks_about_a_category_are_those_of_cells_which_are_read_without(adults: dict[str, Any]) -> None:
    path = Path(adults["data"]["path"])
    path.write_text(ADULTS.replace(",m,", ", m ,"))
    adults["data"]["categories"]["sex"] = ["f", " m "]
    assert dpmix.synthesize(adults).labels[1] == ("f", "m")
    adults["data"]["categories"]["sex"] = ["f", "m", " m "]
    with pytest.raises(SpecError, match="categories.sex: names a category twice"):
        dpmix.synthesize(adults)


def test_bins_in_several_dimensions_are_products() -> None:
    columns = (Column("x", (0.0, 1.0)), Column("s", None, ("f", "m")), Column("y", (0.0, 9.0)))
    cells = Cells.of(columns, [2, 3], (None, None, None))
    assert (cells.shape, cells.count) == ((2, 2, 3), 12)
    values = np.array([[0.6, 1, 8.0], [0.1, 0, 0.0], [1.0, 1, 9.0]])
    assert cells.of_values(values).tolist() == [11, 0, 11]
    drawn = cells.draw_within(np.arange(12), np.random.default_rng(0))
    assert cells.of_values(drawn).tolist() == list(range(12))
    grid = Cells.of((columns[2], columns[1]), None, (Grid(1.0, (0.0, 9.0)), None))
    assert grid.shape == (10, 2)
    drawn = grid.draw_within(np.arange(20), np.random.default_rng(0))
    assert drawn[:, 0].tolist() == [float(i // 2) for i in range(20)]
    stated = {"kind": "synthetic", "generator": "dirichlet_multinomial", "concentration": 1.0}
    law = law_of(stated | {"columns": [c.describe() for c in grid.columns], **grid.describe()})
    assert isinstance(law, SyntheticLaw) and law.cells == grid


def test_grids_are_exact_decimals() -> None:
    grid = Grid(0.1, (0.0, 1.0))
    assert grid.points.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert grid.nearest(np.array([0.26, -3, 7, 0.04])).tolist() == [0.3, 0.0, 1.0, 0.0]
    assert Grid(2.5, (-5.0, 4.0)).points.tolist() == [-5.0, -2.5, 0.0, 2.5]


# guarantees


def test_auto_releases_the_most_that_is_private(adults: dict[str, Any]) -> None:
    del adults["synthesis"]["records"]
    adults["synthesis"] |= {"delta": 0.2, "epsilon": 1.0}
    found = dpmix.calibrate(adults, quiet=True)
    most = int(0.2 * (20 + 40 - 1) / 0.8)
    assert found["records"] == most == len(dpmix.synthesize(adults, quiet=True).values)
    assert found["delta"] == pytest.approx(most / (20 + 40 + most - 1))
    assert found["epsilon"] == 0.0
    assert found["delta"] <= 0.2 < (most + 1) / (20 + 40 + most)
    assert found["records_theorem"] < most
    assert set(found["curator_only"]) == {"delta_instance", "instance"}
    assert not {"instance", "delta_instance", "epsilon_instance"} & set(found)
    adults["synthesis"]["records"] = most + 1
    with pytest.raises(
        PrivacyError, match=f"possible: records: {most} or delta: 0.2028 or concentration: 21"
    ):
        dpmix.synthesize(adults, quiet=True)


@pytest.mark.parametrize(
    "section",
    [
        {"kind": "pitman_yor", "delta": 0.4, "concentration": 1e11},
        {"kind": "dirichlet_multinomial", "epsilon": 50, "concentration": 1, "bins": 3},
        {"kind": "pitman_yor", "discount": -1, "epsilon": 50, "bins": 3},
    ],
)
def test_auto_releases_no_more_than_can_be_held(section: dict[str, Any]) -> None:
    found = dpmix.calibrate({"synthesis": section | {"n": 6}}, quiet=True)
    assert found["records"] == 100_000_000
    assert found["delta"] <= section.get("delta", 0.0) and found["epsilon"] <= section.get("epsilon", 0.0)


def test_the_papers_example_of_the_guarantee() -> None:
    spec = {
        "synthesis": {
            "kind": "pitman_yor",
            "n": 1000,
            "concentration": 10,
            "epsilon": 0.1,
            "delta": 0.05,
        }
    }
    found = dpmix.calibrate(spec, quiet=True)
    assert (found["records"], found["records_theorem"]) == (53, 2)


def test_pure_epsilon_of_a_negative_discount() -> None:
    column = Column("x", None, ("a", "b", "c"))
    made = generator({"kind": "pitman_yor", "discount": -0.25, "records": 3}, (column,), 10)
    assert made.guarantee.epsilon == pytest.approx(np.log(1 + 3 / 0.25), rel=1e-12)
    assert made.guarantee.delta == 0.0
    with pytest.raises(SpecError, match=r"concentration: 2 must be 0\.75, the 3 categories"):
        generator({"kind": "pitman_yor", "discount": -0.25, "concentration": 2, "records": 3}, (column,), 10)
    least = generator({"kind": "dirichlet_multinomial", "epsilon": 0.5, "records": 30}, (column,), 10)
    assert least.guarantee.epsilon == pytest.approx(0.5)
    assert least.guarantee.epsilon is not None
    assert least.guarantee.epsilon <= 0.5


def test_what_each_draw_costs_is_balanced_against_sampling_error() -> None:
    column = Column("x", (0.0, 1.0))
    for kind in ("dirichlet_multinomial", "smoothed_histogram"):
        spec = {"kind": kind, "bins": 80, "epsilon": 1}
        made = generator(spec, (column,), 20_000)
        assert made.records == int((20_000 * np.expm1(1) / 80) ** (2 / 3)) == 56
        assert made.guarantee.epsilon is not None
        assert 0.999999 < made.guarantee.epsilon <= 1
        assert generator({**spec, "epsilon": 1e-4}, (column,), 20_000).records == 1
        assert generator({**spec, "epsilon": 90}, (column,), 20_000).records == 20_000
    with pytest.raises(SpecError, match=r"synthesis\.weight: follows from epsilon"):
        generator({**spec, "weight": 0.1}, (column,), 20_000)


def test_gaussian_counts_carry_the_guarantee_of_a_smoothed_histogram() -> None:
    column = Column("x", (0.0, 1.0))
    spec = {"kind": "smoothed_histogram", "bins": 4, "epsilon": 1, "delta": 1e-6}
    made = generator(spec, (column,), 1000)
    counts = generator({**spec, "kind": "perturbed_histogram", "noise": "gaussian"}, (column,), 1000)
    assert made.guarantee == counts.guarantee
    assert made.records == 1000
    assert 0 < made.figures()["weight"] < 0.01
    for epsilon in (1e-17, 1e20):  # which nobody asks for, and is answered all the same
        assert 0 < generator({**spec, "epsilon": epsilon, "delta": 0.3}, (column,), 1000).weight <= 1


# files


@pytest.mark.parametrize("name", ["s.csv", "s.csv.gz", "s.h5"])
def test_what_is_written_is_read_back(adults: dict[str, Any], tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    release = dpmix.synthesize(adults, path, quiet=True)
    back, _ = find_release(load_spec({"summary": {"level": 0.9}}), path)
    assert np.array_equal(back.values, release.values)
    for key in ("columns", "labels", "mechanism", "epsilon", "delta", "rho", "n", "private", "created_at"):
        assert getattr(back, key) == getattr(release, key)
    assert (release.n, release.private, release.trust) == (40, True, "global")
    with pytest.raises(UsageError, match="exists already"):
        dpmix.synthesize(adults, path, quiet=True)


def test_csv_holds_records_and_the_guarantee_stands_beside(adults: dict[str, Any], tmp_path: Path) -> None:
    release = dpmix.synthesize(adults, tmp_path / "s.csv", quiet=True)
    table = rows(tmp_path / "s.csv")
    assert table[0] == ["age", "sex", "job"]
    assert len(table) == 31
    assert {row[1] for row in table[1:]} <= {"f", "m"}
    assert all(row[0].isdigit() for row in table[1:])
    account = json.loads((tmp_path / "s.csv.json").read_text())
    assert account["delta"] == release.delta == pytest.approx(30 / 89)
    assert account["mechanism"]["generator"] == "pitman_yor"
    assert account["guarantee"].startswith("(epsilon = 0, delta = 0.337079)-DP")


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf", None])
def test_h5_opens_in_xarray(adults: dict[str, Any], tmp_path: Path, engine: Any) -> None:
    dpmix.synthesize(adults, tmp_path / "s.h5", quiet=True)
    with xr.open_datatree(tmp_path / "s.h5", engine=engine) as tree:
        node = tree["release"]
        assert node["values"].dims == ("record", "column")
        assert node["column"].values.tolist() == ["age", "sex", "job"]
        assert node["labels_1"].values.tolist() == ["f", "m"]
        assert float(tree.attrs["delta"]) == pytest.approx(30 / 89)


def test_nothing_of_the_data_but_the_records_is_released(tmp_path: Path) -> None:
    secret = [f"secret{i}" for i in range(200)]
    (tmp_path / "confidential.csv").write_text("word\n" + "\n".join(secret) + "\n")
    spec = {
        "data": {"path": str(tmp_path / "confidential.csv"), "column": "word"},
        "synthesis": {"kind": "pitman_yor", "records": 5},
    }
    for name in ("s.csv", "s.h5"):
        release = dpmix.synthesize(spec, tmp_path / name, quiet=True)
        drawn = {name for name in (release.labels[0] or ()) if name.startswith("secret")}
        for path in tmp_path.glob("s.*"):
            content = path.read_bytes()
            assert b"confidential" not in content
            if path.name.startswith(name):
                assert {word for word in secret if f"{word}\n".encode() in content} <= drawn
    with h5py.File(tmp_path / "s.h5") as file:
        assert "instance" not in json.dumps(dict(file["release"].attrs), default=str)


def test_simulated_records_are_seeded_and_marked() -> None:
    spec = {
        "data": {"simulate": "dyadic_geometric", "n": 500, "seed": 3, "domain": [0, 1]},
        "synthesis": {"kind": "pitman_yor", "records": 50},
    }
    first, second = (dpmix.synthesize(spec, quiet=True) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert not first.private
    assert first.simulated
    real = [dpmix.synthesize(spec | {"data": {**spec["data"], "seed": s}}, quiet=True) for s in (4, 5)]
    assert not np.array_equal(real[0].values, real[1].values)


# refusals


def refused(spec: dict[str, Any], **synthesis: Any) -> str:
    changed = {**spec, "synthesis": {**spec["synthesis"], **synthesis}}
    with pytest.raises(DpmixError) as caught:
        dpmix.synthesize(changed, quiet=True)
    return str(caught.value)


def test_what_makes_no_sense_is_refused_by_name(adults: dict[str, Any]) -> None:
    assert refused(adults, records="auto").startswith("synthesis.delta: missing")
    assert "must lie within its bounds [18, 99]" in refused(adults, snap={"step": 1, "domain": [0, 10]})
    assert "synthesis.snap.job: no numeric column" in refused(adults, snap={"job": {"step": 1}})
    assert "synthesis.base.job: no numeric column" in refused(adults, base={"job": {"kind": "uniform"}})
    assert "more than 100000000 points" in refused(adults, snap={"step": 1e-7})
    assert refused(adults, n=41) == ("synthesis.n: 41, but there are 40 records; leave it out, or correct it")
    histogram = {"data": adults["data"], "synthesis": {"kind": "perturbed_histogram", "epsilon": 1}}
    assert refused(histogram).startswith("data.domain: missing for job")
    histogram["data"] = {**adults["data"], "columns": ["age", "sex"]}
    assert refused(histogram, bins=[3, 3]) == (
        "synthesis.bins: has 2 entries for 1 numeric columns; give one each"
    )
    assert "more than 1000000" in refused(histogram, bins=1_000_000)
    assert refused(histogram, noise="gaussian").startswith("synthesis.delta: missing beside epsilon")
    assert refused(histogram, epsilon=None).startswith("synthesis.epsilon: missing")
    assert "category" in refused(
        {**histogram, "data": {**histogram["data"], "categories": {"sex": ["f", "x"]}}}
    ) or "categories" in refused(
        {**histogram, "data": {**histogram["data"], "categories": {"sex": ["f", "x"]}}}
    )
    impossible = {"kind": "dirichlet_multinomial", "epsilon": 0.1, "concentration": 1, "records": 5}
    with pytest.raises(PrivacyError, match=r"possible: epsilon: 1\.79\d+ or concentration: 47"):
        dpmix.synthesize({"data": histogram["data"], "synthesis": impossible}, quiet=True)


def test_accounts_that_are_none_are_refused(adults: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    dpmix.synthesize(adults, path, quiet=True)
    aside = tmp_path / "s.csv.json"
    good = json.loads(aside.read_text())
    spec = load_spec({"summary": {"level": 0.9}})

    def problem(text: str) -> str:
        aside.write_text(text)
        with pytest.raises(DataError) as caught:
            find_release(spec, path)
        return str(caught.value)

    assert "cannot be read" in problem("{")
    assert "no JSON object" in problem("[]")
    assert "describes no generator" in problem("{}")
    assert "does not describe its columns" in problem(
        json.dumps({**good, "mechanism": {**good["mechanism"], "columns": []}})
    )
    assert "does not state its discount" in problem(
        json.dumps({**good, "mechanism": {**good["mechanism"], "discount": "x"}})
    )
    assert "delta is no number" in problem(json.dumps({**good, "delta": -1}))
    assert "n is no number" in problem(json.dumps({**good, "n": 0}))
    narrow = [{"name": "age", "domain": [18, 19]}, *good["mechanism"]["columns"][1:]]
    assert "lies outside [18, 19]" in problem(
        json.dumps({**good, "mechanism": {**good["mechanism"], "columns": narrow}})
    )
    aside.unlink()
    with pytest.raises(DataError, match="has no account beside it"):
        find_release(spec, path)


def test_synthetic_records_made_elsewhere_are_as_the_spec_states(tmp_path: Path) -> None:
    (tmp_path / "z.csv").write_text("x\n0.25\n0.5\n0.25\n")
    spec: dict[str, Any] = {
        "release": {"path": str(tmp_path / "z.csv"), "columns": ["x"], "domain": [0, 1]},
        "synthesis": {"kind": "pitman_yor", "concentration": 3, "n": 100},
    }
    found, about = find_release(load_spec(spec), None)
    assert about
    assert isinstance(found, Release)
    assert (found.n, found.kind, found.mechanism["generator"]) == (100, "synthetic", "pitman_yor")
    assert found.delta == pytest.approx(3 / 105)
    del spec["synthesis"]["n"]
    with pytest.raises(SpecError, match=r"synthesis\.n: missing"):
        find_release(load_spec(spec), None)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-o", "s.txt"], 2, "synthetic records are written as"),
        ([], 2, "--output FILE: missing"),
        (["-o", "s.csv", "--json"], 2, "goes with --compare"),
        (["-o", "s.csv", "--records", "3"], 2, "--records: goes with --chains"),
        (["-o", "s.csv", "--set", "synthesis.delta=1e-9"], 4, "possible: delta: 0.3371"),
        (["-o", "s.csv", "--set", "synthesis.discount=2"], 2, "synthesis.discount"),
        (["-o", "none/s.csv"], 3, "does not exist"),
    ],
)
def test_the_command_line_says_what_is_wrong(
    adults: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(json.dumps(adults))
    monkeypatch.setattr("sys.argv", ["dpmix", "synthesize", "s.yaml", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == code
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_the_command_line_says_what_the_mechanism_does(
    adults: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(json.dumps(adults))
    for extra in (["--dry-run"], []):
        monkeypatch.setattr("sys.argv", ["dpmix", "synthesize", "s.yaml", "-o", "s.csv", *extra])
        with pytest.raises(SystemExit) as caught:
            main()
        assert not caught.value.code
        assert Path("s.csv").exists() is not bool(extra)
    said = capsys.readouterr()
    assert "would release 30 draws" in said.out
    assert "republishes records verbatim" in said.err
    assert "permits publishing somebody's record verbatim" in said.err


@pytest.mark.parametrize(
    ("synthesis", "epsilon", "delta"),
    [
        ({"kind": "dirichlet_multinomial", "epsilon": 2.3, "bins": 10, "records": 7}, 2.3, 0.0),
        ({"kind": "pitman_yor", "delta": 0.03, "concentration": 58, "records": "auto"}, 0.0, 0.03),
    ],
)
def test_a_budget_of_what_was_asked_for_covers_it(
    synthesis: dict[str, Any], epsilon: float, delta: float, adults: dict[str, Any], tmp_path: Path
) -> None:
    data = adults["data"] | {"columns": ["age"], "categories": None}
    budget = {"epsilon": epsilon or 1.0, "delta": delta}
    privacy = {"ledger": str(tmp_path / "ledger.json"), "dataset": "adults", "budget": budget}
    spec = {"data": data, "synthesis": synthesis, "privacy": privacy}
    release = dpmix.synthesize(spec, new_ledger=True, yes=True, quiet=True)
    assert (release.epsilon, release.delta) == (epsilon, delta)
    with pytest.raises(PrivacyError, match="^privacy.budget"):
        dpmix.synthesize(spec, yes=True, quiet=True)
