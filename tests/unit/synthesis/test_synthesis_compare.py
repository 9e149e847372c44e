"""The curator's comparison: who takes part, what is measured, and that it says for whom it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.dates import AutoDateLocator

from dpmix.api.synthesize import compare
from dpmix.errors import PrivacyError, SpecError, UsageError
from dpmix.privacy.accounting import Guarantee
from dpmix.spec import load_spec
from dpmix.spec.days import day_text
from dpmix.synthesis.comparison import NOTICE, Spread, spread
from dpmix.synthesis.comparison_page import boxes_figure, density_figure, render
from dpmix.synthesis.generator import Generator
from dpmix.synthesis.generator_choice import generator_of
from dpmix.synthesis.measured_kinds import Field, compare_kinds, field_of
from dpmix.synthesis.records import Column, Records, columns_of

KINDS = {"pitman_yor", "dirichlet_multinomial", "perturbed_histogram", "smoothed_histogram"}
NASTY = "<script>$x^2$ & co"


@dataclass(frozen=True, kw_only=True)
class Shifted(Generator):
    """Gives back the records themselves, all numbers moved by the number of the run."""

    kind = "shifted"
    seen: list

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(0.5, 0.25, None, "global")

    def own(self):
        return {}

    def figures(self):
        return {}

    def drawn_in_words(self) -> str:
        return "the records themselves"

    def weakened(self):
        return "", self

    def draw(self, records, rng):
        self.seen.append(rng)
        return records.values + (len(self.seen) - 1) * 0.5, records.labels


def of_numbers(rng=None) -> Records:
    values = np.random.default_rng(1).uniform(0.0, 2.0, (20, 1))
    return Records((Column("x", (0.0, 5.0)),), values, (None,), (0,), rng)


def spec_of(tmp_path, synthesis, *, columns=("x",), n=60, **data):
    rng = np.random.default_rng(2)
    table = tmp_path / "table.csv"
    parts = {
        "x": rng.beta(2, 5, n),
        "y": rng.random(n),
        "c": rng.choice(["red", "green", "blue"], n, p=[0.6, 0.3, 0.1]),
    }
    parts[NASTY] = parts["c"]
    rows = [",".join(f'"{name}"' for name in columns)]
    rows += [",".join(str(parts[name][i]) for name in columns) for i in range(n)]
    table.write_text("\n".join(rows) + "\n")
    return {"data": {"path": str(table), "columns": list(columns)} | data, "synthesis": synthesis}


class Page(HTMLParser):
    """Collect tags and the text, and check that what opens also closes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def test_runs_are_measured_one_by_one():
    records, seen = of_numbers(), []
    generator = Shifted(columns=records.columns, n=20, records=20, seen=seen)
    told = []
    found = compare_kinds(
        Field((("mine", generator),), ()), records, 3, lambda done, total: told.append((done, total))
    )
    (mine,) = found.contenders
    np.testing.assert_allclose(mine.columns[0]["w1"].values, [0.0, 0.5, 1.0], atol=1e-12)
    np.testing.assert_allclose(mine.columns[0]["w1_scaled"].values, [0.0, 0.1, 0.2], atol=1e-12)
    np.testing.assert_allclose(mine.joint["repeats"].values, [1.0, 0.0, 0.0])
    assert mine.columns[0]["mean"].mean == pytest.approx(records.values.mean() + 0.5)
    assert (mine.own, mine.records, mine.guarantee.delta) == (True, 20, 0.25)
    np.testing.assert_allclose(mine.densities[0], found.densities[0].confidential)  # of the first run
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert seen == [None, None, None]  # the operating system's randomness, for real records


def test_simulated_records_hand_on_their_seed():
    rng, seen = np.random.default_rng(3), []
    records = of_numbers(rng)
    generator = Shifted(columns=records.columns, n=20, records=20, seen=seen)
    found = compare_kinds(Field((("mine", generator),), ()), records, 2)
    assert seen == [rng, rng]
    assert found.simulated
    assert found.to_json()["curator_only"] is True
    assert "simulated" in found.notice


def test_a_comparison_is_of_as_many_records_as_the_guarantee():
    records = of_numbers()
    generator = Shifted(columns=records.columns, n=21, records=20, seen=[])
    with pytest.raises(PrivacyError, match="21 records, not 20"):
        compare_kinds(Field((("mine", generator),), ()), records, 1)
    with pytest.raises(ValueError, match="at least one run"):
        compare_kinds(Field((), ()), records, 0)


def test_all_other_kinds_take_part_by_default(tmp_path):
    synthesis = {"kind": "perturbed_histogram", "epsilon": 1.0, "delta": 0.05, "bins": 7}
    spec = load_spec(spec_of(tmp_path, synthesis, domain=[0, 1]))
    columns = columns_of(spec.data)
    field = field_of(spec.synthesis, columns, 60)
    assert field.generators[0][0] == "perturbed_histogram"
    assert {name for name, _ in field.generators} == KINDS
    assert field.refused == ()
    for _, generator in field.generators:
        assert generator.guarantee.epsilon <= 1.0
        assert generator.guarantee.delta <= 0.05
        assert generator.kind == "pitman_yor" or generator.cells.shape == (7,)


def test_a_kind_that_cannot_meet_the_request_is_named(tmp_path):
    synthesis = {"kind": "dirichlet_multinomial", "epsilon": 1.0, "records": 3, "bins": 5}
    found = compare(spec_of(tmp_path, synthesis, domain=[0, 1]), runs=1)
    assert [refusal.name for refusal in found.refused] == ["pitman_yor"]
    assert found.refused[0].reason.startswith("delta: missing")
    told = found.to_json()["refused"]
    assert told[0]["reason"] == found.refused[0].reason
    text = " ".join(found.to_text().split())
    assert f"- pitman_yor: {found.refused[0].reason}" in text
    assert found.refused[0].reason in Page(render(found)).text


def test_rivals_that_drown_are_left_out_by_name(tmp_path):
    synthesis = {"kind": "pitman_yor", "epsilon": 1.0, "delta": 0.05}
    spec = spec_of(tmp_path, synthesis, columns=("x", "c", "y"), domain={"x": [0, 1], "y": [0, 1]})
    spec["data"]["categories"] = {"c": ["red", "green", "blue"]}
    found = compare(spec, runs=1)
    assert [kind.name for kind in found.contenders] == ["pitman_yor"]
    reasons = {refusal.name: refusal.reason for refusal in found.refused}
    assert (
        reasons["perturbed_histogram"]
        == "the noise of its 300 cells adds up to 849, more than the 60 records"
    )
    assert "of its draws are uniform over all cells" in reasons["dirichlet_multinomial"]
    assert "more than the 60 records" in reasons["smoothed_histogram"]
    # the spec's own takes part, and is said to
    spec["synthesis"] = {"kind": "perturbed_histogram", "epsilon": 1.0, "rivals": []}
    found = compare(spec, runs=1)
    assert found.notes[0] == f"perturbed_histogram: {reasons['perturbed_histogram']}"
    assert f"Note: {found.notes[0]}" in " ".join(found.to_text().split())
    assert found.notes[0] in Page(render(found)).text
    # whoever names rivals has them
    spec["synthesis"]["rivals"] = [{"kind": "dirichlet_multinomial"}]
    assert len(compare(spec, runs=1).contenders) == 2


def test_rivals_of_next_to_no_records_are_left_out():
    section = load_spec({"synthesis": {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 25}}).synthesis
    for n, taken in ((3000, True), (30_000, False)):
        field = field_of(section, (Column("x", (0.0, 1.0)),), n)
        assert ("dirichlet_multinomial" in dict(field.generators)) is taken
    reasons = {refusal.name: refusal.reason for refusal in field.refused}
    assert reasons["dirichlet_multinomial"].endswith("records stand for 30,000, fewer than one for a hundred")


def test_rivals_keep_to_ranges_and_to_the_grid(tmp_path):
    ranges = [{"when": {"c": "red"}, "x": [0, 0.4]}]
    synthesis = {"kind": "perturbed_histogram", "epsilon": 9.0, "snap": {"step": 0.2}, "ranges": ranges}
    spec = spec_of(tmp_path, synthesis, columns=("x", "c"), domain={"x": [0, 1]})
    spec["data"]["categories"] = {"c": ["red", "green", "blue"]}
    checked = load_spec(spec)
    for _, generator in field_of(checked.synthesis, columns_of(checked.data), 60).generators:
        assert generator.ranges == ({"when": {"c": "red"}, "x": [0, 0.4]},)
        assert generator.cells.shape == (6, 3)


def test_rivals_inherit_what_they_leave_out(tmp_path):
    rivals = [
        {"kind": "perturbed_histogram", "noise": "gaussian"},
        {"kind": "perturbed_histogram", "noise": "gaussian", "epsilon": 2.0, "delta": 0.01, "records": 5},
        {"kind": "perturbed_histogram", "noise": "gaussian"},
        {"kind": "pitman_yor", "concentration": 3.0},
    ]
    synthesis = {
        "kind": "perturbed_histogram",
        "epsilon": 1.0,
        "delta": 0.05,
        "records": 40,
        "rivals": rivals,
    }
    spec = load_spec(spec_of(tmp_path, synthesis, domain=[0, 1]))
    field = field_of(spec.synthesis, columns_of(spec.data), 60)
    found = dict(field.generators)
    assert list(found) == [
        "perturbed_histogram",
        "perturbed_histogram (noise gaussian)",
        "perturbed_histogram (records 5, epsilon 2, delta 0.01, noise gaussian)",
        "perturbed_histogram (noise gaussian) #2",
    ]
    assert found["perturbed_histogram (noise gaussian)"].requested == {"epsilon": 1.0, "delta": 0.05}
    assert found["perturbed_histogram (noise gaussian)"].records == 40
    explicit = found["perturbed_histogram (records 5, epsilon 2, delta 0.01, noise gaussian)"]
    assert (explicit.requested, explicit.records) == ({"epsilon": 2.0, "delta": 0.01}, 5)
    assert [refusal.name for refusal in field.refused] == ["pitman_yor"]
    assert field.refused[0].reason.startswith("records: 40 synthetic records of 60 do not meet delta = 0.05")


def test_what_the_spec_itself_asks_for_must_be_met(tmp_path):
    synthesis = {"kind": "pitman_yor", "delta": 0.01, "records": 40}
    with pytest.raises(PrivacyError, match="synthesis.records"):
        compare(spec_of(tmp_path, synthesis, domain=[0, 1]), runs=1)
    with pytest.raises(SpecError, match="synthesis: missing"):
        compare({"data": spec_of(tmp_path, {}, domain=[0, 1])["data"]})


def test_json_says_everything_and_for_whom(tmp_path):
    rivals = [{"kind": kind, "bins": 5} for kind in ("dirichlet_multinomial", "smoothed_histogram")]
    synthesis = {"kind": "perturbed_histogram", "epsilon": 2.0, "delta": 0.05, "bins": 5}
    synthesis |= {"rivals": [{"kind": "pitman_yor"}, *rivals]}
    spec = spec_of(tmp_path, synthesis, columns=("x", "c", "y"), domain={"x": [0, 1], "y": [0, 2]})
    spec["data"]["categories"] = {"c": ["red", "green", "blue", "never"]}
    output, report = tmp_path / "out.json", tmp_path / "out.html"
    found = compare(spec, ["synthesis.runs=3"], output=output, report=report)
    content = json.loads(output.read_text())
    assert content == json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert content["curator_only"] is True
    assert content["notice"] == NOTICE
    assert (content["n"], content["runs"], content["directions"]) == (60, 3, 50)
    assert [kind["own"] for kind in content["kinds"]] == [True, False, False, False]
    checked = load_spec(spec)
    own = generator_of(checked.synthesis, columns_of(checked.data), 60)
    guarantee = content["kinds"][0]["guarantee"]
    assert (guarantee["epsilon"], guarantee["delta"]) == (own.guarantee.epsilon, own.guarantee.delta)
    assert guarantee["words"].startswith("(epsilon = 2, delta = 0)-DP")
    for kind in content["kinds"]:
        assert set(kind["measures"]) >= {"distinct", "repeats", "sliced_w1"}
        assert set(kind["columns"]["x"]) == {
            *("w1", "w1_scaled", "mean", "sd", "q25", "q50", "q75", "density")
        }
        w1 = kind["columns"]["x"]["w1"]
        assert w1["mean"] == pytest.approx(np.mean(w1["values"]))
        assert w1["sd"] == pytest.approx(np.std(w1["values"], ddof=1))
        assert w1["quartiles"] == pytest.approx(np.percentile(w1["values"], (25, 50, 75)))
        assert len(set(w1["values"])) == 3  # independent runs
        shares = {name: share["mean"] for name, share in kind["columns"]["c"]["shares"].items()}
        assert set(shares) == {"red", "green", "blue", "never"}
        assert sum(shares.values()) + kind["columns"]["c"]["others"] == pytest.approx(1.0)
    assert "exact_w1" in content["kinds"][0]["measures"]  # 60 to 60 records
    assert content["confidential"]["columns"]["c"]["shares"]["never"] == 0.0
    assert content["confidential"]["distinct"] == 60
    page = Page(report.read_text())
    assert page.text.index("For the curator only") < page.text.index("What is compared")
    assert NOTICE.removeprefix("For the curator only: e") in page.text


def test_text_is_a_table_of_a_row_a_kind(tmp_path):
    synthesis = {"kind": "smoothed_histogram", "epsilon": 1.0, "delta": 0.1, "bins": 4}
    found = compare(spec_of(tmp_path, synthesis, domain=[0, 1]), runs=2)
    lines = found.to_text().splitlines()
    assert lines[0].startswith("For the curator only: ")
    start = lines.index("x, within [0, 1]")
    table = lines[start + 1 : start + 7]
    assert table[0].split() == ["W1", "W1/width", "mean", "sd", "25%", "50%", "75%"]
    assert [line.split()[0] for line in table[1:]] == ["confidential", *(k.name for k in found.contenders)]
    ends = {len(line) for line in table}
    assert len(ends) == 1  # aligned
    assert f"{found.confidential.columns[0]['mean']:.4g}" in table[1]
    assert spread(found.contenders[0].columns[0]["w1"]) in table[2]


def test_spreads_are_written_to_two_digits_of_their_sd():
    assert spread(Spread(np.array([856.0, 867.2]))) == "861.6 +- 7.9"
    assert spread(Spread(np.array([0.0283, 0.0353]))) == "0.0318 +- 0.0049"
    assert spread(Spread(np.array([2.5]))) == "2.5"
    assert spread(Spread(np.array([2.5, 2.5]))) == "2.5 +- 0"
    assert spread(None) == "-"
    assert Spread(np.array([2.5])).to_json() == {"mean": 2.5, "sd": None}


def test_pages_escape_stand_alone_and_repeat(tmp_path):
    synthesis = {"kind": "pitman_yor", "delta": 0.2, "discount": 0.3}
    spec = spec_of(tmp_path, synthesis, columns=(NASTY, "c"))
    found = compare(spec, runs=2)
    assert {refusal.name for refusal in found.refused} == KINDS - {"pitman_yor"}  # free labels
    page = render(found)
    assert page == render(found)
    assert "<script" not in page
    parsed = Page(page)
    assert NASTY in parsed.text
    images = [attrs["aria-label"] for tag, attrs in parsed.tags if tag == "svg"]
    assert len(images) == 2 * 5  # bars and boxes of two columns, boxes of their pairs; each in two forms
    assert all(images)
    assert not [attrs for tag, attrs in parsed.tags if tag in ("link", "script", "iframe")]


def test_columns_have_their_units_and_dates_are_dates(tmp_path):
    rng = np.random.default_rng(3)
    days = np.datetime64("2020-01-01") + rng.integers(0, 1500, 60)
    rows = [f"{day},{pay:.2f}" for day, pay in zip(days, rng.uniform(0, 9e4, 60), strict=True)]
    (tmp_path / "t.csv").write_text("day,pay\n" + "\n".join(rows) + "\n")
    data = {
        "path": str(tmp_path / "t.csv"),
        "columns": ["day", "pay"],
        "domain": {"day": ["2020-01-01", "2024-12-31"], "pay": [0, 1e5]},
        "unit": {"pay": "dollars"},
    }
    synthesis = {"kind": "perturbed_histogram", "epsilon": 20.0, "bins": 2, "rivals": []}
    found = compare({"data": data, "synthesis": synthesis}, runs=2)
    text = found.to_text()
    assert "day, within [2020-01-01, 2024-12-31]" in text and "pay (dollars), within [0, 100000]" in text
    mean = found.to_json()["confidential"]["columns"]["day"]["mean"]
    assert 18262 < mean < 20088 and day_text(mean) in text
    first, second = (density_figure(found, index).axes[0] for index in (0, 1))
    assert first.get_xlabel() == "day" and second.get_xlabel() == "pay (dollars)"
    assert isinstance(first.xaxis.get_major_locator(), AutoDateLocator)
    page = render(found)
    assert "W1 (days)" in page and "W1 (dollars)" in page and "in the data's units" not in page
    assert 'aria-label="W1 of pay by kind: perturbed_histogram ' in page


@pytest.mark.parametrize(("start", "scale"), ((0, "linear"), (1, "log")))
def test_a_kind_far_off_is_drawn_on_a_scale_where_others_are_seen(start, scale):
    near = of_numbers()
    records = Records((Column("x", (0.0, 5000.0)),), near.values, near.labels, near.clamped)
    kinds = [
        (name, Shifted(columns=records.columns, n=20, records=20, seen=[None] * moves))
        for name, moves in (("near", start), ("far", 4000))
    ]
    found = compare_kinds(Field(tuple(kinds), ()), records, 2)
    distances = [contender.columns[0]["w1"] for contender in found.contenders]
    np.testing.assert_allclose(distances[1].values, [2000.0, 2000.5])
    (axes,) = boxes_figure(found, distances, "W1").axes
    assert axes.get_xscale() == scale


def test_simulations_repeat_by_their_seed():
    spec = {
        "data": {"simulate": "three_gaussians", "n": 50, "seed": 4, "domain": [-10, 10]},
        "synthesis": {"kind": "pitman_yor", "delta": 0.2, "epsilon": 1.0, "rivals": []},
    }
    first, second = (compare(spec, runs=3).to_json() for _ in range(2))
    assert first == second
    assert first["simulated"] is True
    assert len(first["kinds"]) == 1


def test_nothing_is_destroyed_unasked(tmp_path):
    synthesis = {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 3, "rivals": []}
    spec = spec_of(tmp_path, synthesis, domain=[0, 1])
    table = tmp_path / "table.csv"
    before = table.read_bytes()
    with pytest.raises(UsageError, match="confidential file itself"):
        compare(spec, runs=1, report=table, force=True)
    with pytest.raises(UsageError, match=r"must end in \.json"):
        compare(spec, runs=1, output=tmp_path / "synthetic.csv")
    output = tmp_path / "out.json"
    with pytest.raises(UsageError, match="named twice"):
        compare(spec, runs=1, output=output, report=output)
    with pytest.raises(UsageError, match="runs: 0"):
        compare(spec, runs=0)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(spec, runs=2, output=output, report=tmp_path / "out.html", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    compare(spec, runs=1, output=output)
    with pytest.raises(UsageError, match="exists already"):
        compare(spec, runs=1, output=output)
    compare(spec, runs=2, output=output, force=True)
    assert json.loads(output.read_text())["runs"] == 2
    assert table.read_bytes() == before
