"""Public ranges of synthetic records: the law given that records are possible, its guarantee, refusals."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

import dpmix
from dpmix.api.release_of import find_release
from dpmix.cli.commands import main
from dpmix.columns.cells import Cells, Column
from dpmix.columns.possible import Possible, holds, possible_of, rules_of
from dpmix.errors import DataError, SpecError
from dpmix.spec import load_spec
from dpmix.synthesis.generator import Generator
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.histogram_draws import SmoothedSynthesis, draw_possible_cells
from dpmix.synthesis.records import Records
from tests.helpers.specs import ROOT

LEVEL = 1e-4
AB = (Column("a", None, ("no", "yes")), Column("b", None, ("u", "v", "w")))
XY = (Column("x", (0.0, 10.0)), Column("y", (0.0, 10.0)))
A_IS_NO = [{"when": {"a": "no"}, "b": ["u", "v"]}]


def ranges_of(ranges: list[dict[str, Any]]) -> Any:
    section = load_spec({"synthesis": {"kind": "pitman_yor", "ranges": ranges}}).synthesis
    assert section is not None
    return section.ranges


def generator(synthesis: dict[str, Any], columns: tuple[Column, ...], n: int) -> Generator:
    section = load_spec({"synthesis": synthesis}).synthesis
    assert section is not None
    return generator_of(section, columns, n)


def records_of(values: Any, columns: tuple[Column, ...]) -> Records:
    table = np.asarray(values, dtype=np.float64)
    return Records(columns, table, tuple(c.categories for c in columns), (0,) * len(columns))


def draws(made: Generator, records: Records, runs: int) -> list[np.ndarray]:
    return [made.draw(records, np.random.default_rng(seed))[0] for seed in range(runs)]


# laws


def test_an_urn_is_that_given_that_all_draws_are_possible() -> None:
    # by enumeration: sequences of two cells of the whole urn, given that both are possible
    records = records_of([[0, 0], [0, 2], [1, 2], [1, 2], [0, 2]], AB)  # two of five are impossible
    synthesis = {"kind": "dirichlet_multinomial", "concentration": 0.5, "records": 2, "ranges": A_IS_NO}
    made = generator(synthesis, AB, 5)
    counts = made.cells.counts(records.values)  # type: ignore[attr-defined]  # it has cells
    assert counts.tolist() == [1, 0, 2, 0, 0, 2]
    possible = [0, 1, 3, 4, 5]
    half = Fraction(1, 2)
    total = 5 + 6 * half
    law = {
        (i, j): (counts[i] + half) / total * (counts[j] + (i == j) + half) / (total + 1)
        for i, j in itertools.product(range(6), repeat=2)
    }
    both = {pair: law[pair] for pair in itertools.product(possible, repeat=2)}
    mass = sum(both.values())
    found: Counter[tuple[int, int]] = Counter()
    runs = 8000
    for values in draws(made, records, runs):
        found[tuple(made.cells.of_values(values).tolist())] += 1  # type: ignore[attr-defined]
    assert set(found) <= set(both)
    expected = np.array([float(part / mass) for part in both.values()]) * runs
    assert chisquare([found[pair] for pair in both], expected).pvalue > LEVEL
    # leaving the impossible records in the urn would be seen
    naive = np.array([float(law[i, j]) / float(mass) for i, j in both])
    naive = np.array([(counts[i] + 0.5) * (counts[j] + 0.5) for i, j in both])
    assert chisquare([found[pair] for pair in both], naive / naive.sum() * runs).pvalue < 1e-6


@pytest.mark.parametrize("cells", [[0, 0, 1, 2, 3], [3, 3, 3, 3, 3], [0, 1, 1, 2, 0]])
def test_smoothed_draws_are_those_given_that_they_are_possible(cells: list[int]) -> None:
    possible = np.array([True, True, False, False])
    weight, runs = 0.375, 40_000
    rng = np.random.default_rng(3)
    found = draw_possible_cells(np.array(cells), possible, weight, runs, rng.bytes)
    whole = (1 - weight) * np.bincount(cells, minlength=4) / 5 + weight / 4
    law = whole[:2] / whole[:2].sum()
    assert chisquare(np.bincount(found, minlength=4)[:2], law * runs).pvalue > LEVEL
    assert found.max() <= 1


def test_noisy_cells_that_are_impossible_have_no_mass_and_the_rest_is_whole() -> None:
    synthesis = {"kind": "perturbed_histogram", "epsilon": 60, "records": 9000, "ranges": A_IS_NO}
    made = generator(synthesis, AB, 1000)
    cells = np.repeat([0, 1, 2, 3, 5], [100, 200, 400, 100, 200])
    values = np.stack(np.unravel_index(cells, (2, 3)), axis=1).astype(float)
    (drawn,) = draws(made, records_of(values, AB), 1)
    shares = np.bincount(made.cells.of_values(drawn), minlength=6) / 9000  # type: ignore[attr-defined]
    assert shares[2] == shares[4] == 0.0
    assert (
        np.abs(shares - np.array([100, 200, 0, 100, 0, 200]) / 600).max() < 0.03
    )  # the noise is of scale 1/30


def test_where_no_possible_cell_has_mass_draws_are_uniform_over_the_possible() -> None:
    made = generator(
        {"kind": "perturbed_histogram", "epsilon": 60, "records": 6000, "ranges": [{"b": "w", "a": "no"}]},
        AB,
        50,
    )
    (drawn,) = draws(made, records_of([[1, 0]] * 50, AB), 1)
    assert {tuple(row) for row in drawn.tolist()} == {(0.0, 2.0)}
    rules = [{"b": ["v", "w"]}]
    made = generator({"kind": "smoothed_histogram", "epsilon": 9, "records": 3, "ranges": rules}, AB, 50)
    found = np.concatenate(draws(made, records_of([[1, 0]] * 50, AB), 2000))
    counts = np.bincount((found[:, 0] * 3 + found[:, 1]).astype(int), minlength=6)
    assert counts[[0, 3]].tolist() == [0, 0]
    assert chisquare(counts[[1, 2, 4, 5]]).pvalue > LEVEL


def test_draws_are_uniform_over_the_possible_part_of_a_cell() -> None:
    rules = [{"when": {"x": [2, 4]}, "y": [0, 5]}, {"when": {"y": [8, 10]}, "x": [0, 3]}]
    cells = Cells.of(XY, [2, 2], (None, None))
    found = possible_of(ranges_of(rules), cells)
    assert found is not None
    # by hand, of 25: all; without (2..4) x (5..10) and (3..5) x (8..10); all; without y > 8
    inside = [25.0, 25.0 - 10.0 - 2.0, 25.0, 25.0 - 10.0]
    assert found.shares * 25 == pytest.approx([inside[0], inside[1], inside[2], inside[3]])
    rng = np.random.default_rng(5)
    values = found.draw_within(np.ones(60_000, dtype=np.int64), rng)
    assert holds(found.rules, values).all() and (cells.of_values(values) == 1).all()
    boxes = [(0, 2, 5, 10), (4, 5, 5, 8)]  # of what is left of the second cell
    counts = [int(((values >= (a, c)) & (values < (b, d))).all(axis=1).sum()) for a, b, c, d in boxes]
    areas = np.array([10.0, 3.0])
    assert sum(counts) == 60_000 and chisquare(counts, areas / areas.sum() * 60_000).pvalue > LEVEL
    # by rejection, cell by cell
    tries = cells.draw_within(np.repeat(np.arange(4), 40_000), rng)
    accepted = holds(found.rules, tries).reshape(4, -1).mean(axis=1)
    assert np.abs(accepted - found.shares).max() < 0.012


def test_cells_of_whole_numbers_are_cut_between_them() -> None:
    columns = (Column("age", (0.0, 19.0), None, False, 0), Column("pay", (0.0, 1.0), None, False, 2))
    rules = ranges_of([{"when": {"age": [0, 15]}, "pay": 0}])
    found = possible_of(rules, Cells.of(columns, [2, 2], (None, None)))
    assert found is not None
    # 10 ages a cell; 50 and 51 amounts
    assert found.shares.tolist() == pytest.approx([1 / 50, 0.0, (6 + 4 * 50) / 500, 4 / 10])
    assert found.flags.tolist() == [True, False, True, True]
    values = found.draw_within(np.full(20_000, 2), np.random.default_rng(1))
    assert holds(found.rules, values).all()
    assert (values == np.round(values, 2)).all() and (values[:, 0] == np.round(values[:, 0])).all()
    young = (values[:, 0] <= 15).mean()
    assert young == pytest.approx(6 / 206, abs=0.006)


def test_new_values_of_an_urn_are_possible_and_copies_stay_copies() -> None:
    columns = (Column("x", (0.0, 9.0), None, False, 0), *AB[:1], Column("free"))
    rules = [{"when": {"a": "no"}, "x": [0, 4]}]
    table = np.array([[8.0, 0.0, 0.0], [2.0, 0.0, 1.0], [8.0, 1.0, 1.0]] * 20)  # a third are impossible
    records = Records(columns, table, (None, ("no", "yes"), ("p", "q")), (0, 0, 0))
    synthesis = {"kind": "pitman_yor", "concentration": 60, "records": 40, "ranges": rules}
    made, plain = generator(synthesis, columns, 60), generator({**synthesis, "ranges": None}, columns, 60)
    assert made.guarantee == plain.guarantee
    fresh = []
    for seed in range(300):
        values, labels = made.draw(records, np.random.default_rng(seed))
        assert not ((values[:, 1] == 0) & (values[:, 0] > 4)).any()
        names = np.array(labels[2])[values[:, 2].astype(int)]
        new = np.char.startswith(names.astype(str), "new_")
        assert set(names[~new]) <= {"q"}  # all that were p are impossible
        _, first = np.unique(names[new], return_index=True)
        fresh.append(values[new][first, :2])
        assert len(np.unique(values[new], axis=0)) == len(first)  # copies of a new value are alike
    pooled = np.concatenate(fresh)
    # 0, .., 9 by rounding, so that the ends have half, with no or yes, given that it is possible
    x = np.array([0.5, *[1.0] * 8, 0.5])
    law = np.concatenate([np.where(np.arange(10) <= 4, x, 0.0), x])
    counts = np.bincount((pooled[:, 1] * 10 + pooled[:, 0]).astype(int), minlength=20)
    kept = law > 0
    assert counts[~kept].sum() == 0
    assert chisquare(counts[kept], law[kept] / law.sum() * counts.sum()).pvalue > LEVEL


# guarantees, by enumeration of all databases, neighbours and releases


def _smoothed(
    counts: tuple[int, ...], possible: list[int], b: Fraction, shares: list[Fraction]
) -> dict[Any, Fraction]:
    weights = [(counts[v] + b) * shares[v] for v in possible]
    each = [weight / sum(weights) for weight in weights]
    return {pair: each[pair[0]] * each[pair[1]] for pair in itertools.product(range(len(possible)), repeat=2)}


def _urn(counts: tuple[int, ...], possible: list[int], a: Fraction, _: list[Fraction]) -> dict[Any, Fraction]:
    own = [counts[v] + a for v in possible]
    total = sum(own)
    return {
        (i, j): own[i] / total * (own[j] + (i == j)) / (total + 1)
        for i, j in itertools.product(range(len(possible)), repeat=2)
    }


def _loss(law: Any, prior: Fraction, shares: list[Fraction]) -> float:
    """Return the largest privacy loss of two draws over all databases of three records in four cells."""
    possible = [v for v in range(4) if shares[v] > 0]
    found = 0.0
    for database in itertools.product(range(4), repeat=3):
        one = law(tuple(database.count(v) for v in range(4)), possible, prior, shares)
        for value in range(4):
            moved = (value, *database[1:])
            other = law(tuple(moved.count(v) for v in range(4)), possible, prior, shares)
            found = max(found, *(abs(math.log(one[z] / other[z])) for z in one))
    return found


@pytest.mark.parametrize("possible", [(1, 1, 1, 1), (1, 1, 0, 0), (1, 0, 0, 0), (1, 1, 1, 0)])
def test_ranges_cost_nothing_where_each_draw_costs(possible: tuple[int, ...]) -> None:
    shares = [Fraction(part) for part in possible]
    b = Fraction(2, 5)
    weight = b * 4 / (3 + b * 4)  # b = w n/((1 - w) J)
    epsilon = 2 * math.log1p(float((1 - weight) * 4 / (weight * 3)))
    assert epsilon == pytest.approx(2 * math.log(1 + 1 / b))
    assert _loss(_smoothed, b, shares) <= epsilon * (1 + 1e-12)
    assert _loss(_urn, b, shares) <= math.log(1 + 2 / b) * (1 + 1e-12)


def test_weighing_cells_by_their_possible_part_would_cost() -> None:
    # so that cells are cut, and keep what they hold
    b = Fraction(2, 5)
    shares = [Fraction(1), Fraction(1, 20), Fraction(0), Fraction(0)]
    assert _loss(_smoothed, b, shares) > 2 * math.log(1 + 1 / b) + 0.1


@pytest.mark.parametrize("rule", [[0, 1], [0, 2], [0, 0], [0, 3]])
def test_rho_of_smoothed_draws_within_ranges_is_the_largest_over_all_orders(rule: list[int]) -> None:
    """Over all databases of three records in four cells, which need not lie in the ranges."""
    column = (Column("x", (0.0, 3.0), None, False, 0),)
    synthesis = {"kind": "smoothed_histogram", "epsilon": 1, "records": 2, "bins": 4, "ranges": [{"x": rule}]}
    made = generator(synthesis, column, 3)
    assert isinstance(made, SmoothedSynthesis) and made.possible is not None
    possible = np.flatnonzero(made.possible.flags).tolist()
    assert possible == list(range(rule[1] + 1))
    weight = Fraction(made.weight)
    b, shares = weight * 3 / ((1 - weight) * 4), [Fraction(1)] * 4
    orders, found = np.append(1 + 1e-4, np.geomspace(1.01, 200, 60)), 0.0
    for rest in itertools.combinations_with_replacement(range(4), 2):
        laws = []
        for value in range(4):
            counts = tuple((*rest, value).count(v) for v in range(4))
            law = _smoothed(counts, possible, b, shares)
            laws.append(np.array([float(law[pair]) for pair in sorted(law)]))
        for p, q in itertools.permutations(laws, 2):
            powers = (orders[:, None] * np.log(p / q)) + np.log(q)
            found = max(found, float((logsumexp(powers, axis=1) / (orders - 1) / orders).max()))
    stated = made.guarantee.rho
    assert stated is not None and found <= stated
    assert len(possible) == 1 or stated <= found * 1.001


@pytest.mark.parametrize("kind", ["perturbed_histogram", "smoothed_histogram", "dirichlet_multinomial"])
def test_the_guarantee_is_that_without_ranges(kind: str) -> None:
    synthesis = {"kind": kind, "epsilon": 1, "records": 4}
    plain, made = generator(synthesis, AB, 90), generator({**synthesis, "ranges": A_IS_NO}, AB, 90)
    if kind == "smoothed_histogram":  # but for rho
        assert plain.guarantee.rho and made.guarantee.rho and plain.guarantee.rho < made.guarantee.rho
        assert replace(made.guarantee, rho=plain.guarantee.rho) == plain.guarantee
    else:
        assert plain.guarantee == made.guarantee
    assert made.describe() == plain.describe() | {"ranges": [{"when": {"a": "no"}, "b": ["u", "v"]}]}
    assert "within 1 public range" in made.in_words()


# refusals

TYPED = (
    Column("age", (0.0, 99.0), None, False, 0),
    Column("pay", (0.0, 1000.0)),
    Column("job", None, ("none", "cook")),
    Column("day", (18262.0, 18628.0), None, True, 0),
    Column("free"),
)


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ([{"wage": [0, 5]}], "synthesis.ranges[0].wage: no such column; the columns are age, pay"),
        ([{"when": {"wage": 0}, "pay": [0, 5]}], "synthesis.ranges[0].when.wage: no such column"),
        ([{"pay": [0, 5000]}], "[0, 5000] must lie within the bounds [0, 1000] of pay"),
        ([{"pay": [5, 2]}], "must have its lower end first"),
        ([{"pay": [1, 2, 3]}], "must be [lo, hi] of pay, which is of numbers"),
        ([{"pay": "cook"}], '"cook" is no number'),
        ([{"pay": 0}], "0 is one number, which a column of real numbers is never equal to"),
        ([{"age": [1.2, 1.8]}], "[1.2, 1.8] holds no value that age can have"),
        ([{"job": "baker"}], '"baker" is no category of job; it has none, cook'),
        ([{"job": [0, 1]}], "0 is no category of job"),
        ([{"day": [1, 2]}], "1 is no date such as 2024-12-31"),
        ([{"day": ["2020-01-01", "2022-01-01"]}], "must lie within the bounds [2020-01-01, 2021-01-01]"),
        ([{"free": "x"}], "free has free labels"),
        ([{"when": {"free": "x"}, "age": 3}], "free has free labels"),
        ([{"age": [0, 9]}, {"age": [10, 99]}], "synthesis.ranges[0]: no record is possible by all ranges"),
        (
            [{"when": {"job": "none"}, "pay": [0, 10]}, {"when": {"job": "none"}, "pay": [20, 30]}],
            "synthesis.ranges[0]: no record of which its when holds is possible",
        ),
    ],
)
def test_ranges_that_make_no_sense_are_refused_by_name(ranges: list[dict[str, Any]], words: str) -> None:
    synthesis = {"kind": "pitman_yor", "records": 3, "ranges": ranges}
    with pytest.raises(SpecError) as caught:
        generator(synthesis, TYPED, 50)
    assert words in str(caught.value)
    if "free" not in str(ranges):
        with pytest.raises(SpecError) as caught:
            generator({"kind": "perturbed_histogram", "epsilon": 1, "ranges": ranges}, TYPED[:4], 50)
        assert words in str(caught.value) or "the columns are age, pay" in words


def test_new_values_that_are_hardly_ever_possible_are_refused() -> None:
    columns = (*XY, Column("z", (0.0, 10.0)))
    ranges = [{name: [0, 0.5]} for name in "xyz"]
    with pytest.raises(SpecError, match="of new values less than 0.1% are possible"):
        generator({"kind": "pitman_yor", "records": 3, "ranges": ranges}, columns, 50)
    base = {"kind": "beta", "a": 1, "b": 40}
    made = generator({"kind": "pitman_yor", "records": 3, "ranges": ranges, "base": base}, columns, 50)
    assert made.possible is not None


def test_too_many_pieces_are_refused() -> None:
    columns = tuple(Column(f"x{i}", (0.0, 1.0)) for i in range(4))
    ranges = ranges_of([{"x0": [i / 1000, 1]} for i in range(900)])
    cells = Cells.of(columns, [20, 30, 30, 50], (None,) * 4)
    with pytest.raises(SpecError, match="into more than 20000000 pieces"):
        Possible(cells, rules_of(ranges, columns)).check()


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "t.csv").write_text("age,married\n" + "".join(f"{20 + i % 60},{i % 2}\n" for i in range(300)))
    return {
        "data": {
            "path": str(tmp_path / "t.csv"),
            "columns": ["age", "married"],
            "domain": {"age": [0, 99]},
            "categories": {"married": [0, 1]},
            "types": {"age": "integer"},
        },
        "synthesis": {
            "kind": "perturbed_histogram",
            "epsilon": 4,
            "bins": 10,
            "ranges": [{"when": {"age": [0, 17]}, "married": 0}],
        },
    }


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("sys.argv", ["dpmix", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code


def test_the_command_line_refuses_before_anything_is_spent(
    table: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(json.dumps(table))
    assert not run(
        ["synthesize", "s.yaml", "-o", "a.csv", "--ledger", "l.json", "--new-ledger", "--dataset", "t"],
        monkeypatch,
    )
    before = Path("l.json").read_bytes()
    entered = ["--ledger", "l.json", "--dataset", "t"]
    table["synthesis"]["ranges"].append({"age": [200, 300]})
    Path("s.yaml").write_text(json.dumps(table))
    assert run(["synthesize", "s.yaml", "-o", "b.csv", *entered], monkeypatch) == 2
    assert "synthesis.ranges[1].age: [200, 300] must lie within" in capsys.readouterr().err
    # cells that drown are asked about before the ledger knows of it
    table["synthesis"] |= {"ranges": None, "epsilon": 0.01}
    Path("s.yaml").write_text(json.dumps(table))
    assert run(["synthesize", "s.yaml", "-o", "b.csv", *entered], monkeypatch) == 4
    said = capsys.readouterr().err
    assert "the release is mostly noise" in said and "nothing was drawn" in said
    assert Path("l.json").read_bytes() == before and not Path("b.csv").exists()
    assert not run(["synthesize", "s.yaml", "-o", "b.csv", "--yes", *entered], monkeypatch)
    assert Path("l.json").read_bytes() != before


def test_releases_state_their_ranges_and_are_not_taken_for_others(
    table: dict[str, Any], tmp_path: Path
) -> None:
    for name in ("s.csv", "s.h5"):
        release = dpmix.synthesize(table, tmp_path / name, quiet=True)
        assert not ((release.values[:, 0] <= 17) & (release.values[:, 1] == 1)).any()
        assert release.mechanism.stated()["ranges"] == [{"when": {"age": [0, 17]}, "married": 0}]
        spec: dict[str, Any] = {"model": {"kind": "discrete", "concentration": 1.0}}
        with pytest.raises(
            SpecError, match=r"does not know the law of records that synthesis\.ranges hold of"
        ):
            dpmix.fit(spec, release=tmp_path / name, output=tmp_path / "c.h5")
    aside = tmp_path / "s.csv.json"
    stated = json.loads(aside.read_text())
    for bad in (5, ["x"], {"age": [0, 1]}):
        stated["mechanism"]["ranges"] = bad
        aside.write_text(json.dumps(stated))
        with pytest.raises(DataError, match="does not state its ranges"):
            find_release(load_spec({"summary": {"level": 0.9}}), tmp_path / "s.csv")


def test_the_config_that_ships_keeps_to_what_it_states() -> None:
    release = dpmix.synthesize(ROOT / "configs" / "engel_synthesis.yaml", quiet=True)
    income, food = release.values.T
    assert np.array_equal(release.values, np.round(release.values, 2))
    for most in (500, 1000, 2000):
        assert (food[income <= most] <= most).all()
