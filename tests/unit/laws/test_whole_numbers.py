"""Histograms of whole numbers: what a release says of them, and between which edges a fit takes them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmix
from dpmix.api.release_of import find_release
from dpmix.columns.dated import NONE
from dpmix.errors import DataError, SpecError
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import LawError, expect, law_of
from dpmix.models.discrete.public_facts import public_of
from dpmix.numerics.equal_cells import cell_of
from dpmix.release.release_file import read_release
from dpmix.report.release_pictures import shown
from dpmix.spec import load_spec
from dpmix.summary.remarks import rounded_remarks
from tests.helpers.chains_files import states_of_mixture, write_chains

MECHANISM = {"kind": "perturbed_histogram", "bins": 7, "epsilon": 1.0}


def law(low: float, high: float, bins: int, **more: Any) -> HistogramLaw:
    own = {"kind": "perturbed_histogram", "bins": bins, "noise": "laplace", "scale": [1.0]}
    return expect(law_of(own | {"domain": [[low, high]]} | more), HistogramLaw)


@given(st.integers(-40, 40), st.integers(1, 60), st.integers(1, 30), st.sampled_from([0.0, 0.25, 0.5]))
def test_what_rounds_to_a_whole_number_is_in_its_bin(low: int, width: int, bins: int, apart: float) -> None:
    made = law(low - apart, low + width + apart, bins, whole_numbers=True)
    values = np.arange(low, low + width + 1.0)
    cells = cell_of(values, made.cell_edges())
    assert made.uneven == (not set(range(bins)) <= set(cells.tolist()))
    if made.uneven:
        assert made.edges().tolist() == made.cell_edges().tolist()
        return
    for within in (-0.4999, 0.0, 0.4999):
        assert cell_of(values + within, made.edges()).tolist() == cells.tolist()
    assert made.edges()[[0, -1]].tolist() == [low - apart, low + width + apart]


def test_other_columns_have_the_edges_of_the_bins() -> None:
    made = law(0.0, 20.0, 16)
    assert not made.uneven
    assert made.edges().tolist() == made.cell_edges().tolist()
    assert made.updated(whole_numbers=False).edges().tolist() == made.cell_edges().tolist()
    assert made.updated(whole_numbers=True).edges()[:6].tolist() == [0.0, 1.5, 2.5, 3.5, 4.5, 6.5]


def spec_of(types: Any = None, section: str = "data") -> dict[str, Any]:
    own = {"columns": ["age"], "domain": [[0, 100]]} | ({} if types is None else {"types": types})
    return {section: own, "mechanism": MECHANISM, "model": {"kind": "mixture"}}


def released(path: Path, types: Any = None, **mechanism: Any) -> Path:
    spec = spec_of(types)
    spec["mechanism"] = {key: value for key, value in (MECHANISM | mechanism).items() if value is not None}
    ages = np.random.default_rng(3).poisson(30.0, 50).astype(float)
    dpmix.privatize(spec, path, data={"age": ages}, quiet=True, yes=True)
    return path


SIZES: dict[str, dict[str, Any]] = {
    "smoothed_histogram": {"draws": 5},
    "wavelet": {"bins": None, "levels": 2},
}


@pytest.mark.parametrize("kind", ["perturbed_histogram", "smoothed_histogram", "wavelet"])
def test_a_release_says_that_values_are_whole_numbers(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the type that its curator states beforehand, and never by a look at the values."""
    more = SIZES.get(kind, {})
    plain = read_release(released(tmp_path / "plain.h5", kind=kind, **more))
    assert "whole_numbers" not in plain.mechanism.stated()
    assert plain.with_types({"other": "integer", "age": "category"}) is plain
    path = released(tmp_path / "whole.h5", {"age": "integer"}, kind=kind, **more)
    found = read_release(path)
    assert found.mechanism.get("whole_numbers") is True
    cell = "cell" if kind == "wavelet" else "bin"
    assert found.done().endswith(f" Values are whole numbers, and a {cell} is those that it holds.")
    capsys.readouterr()
    shown = dpmix.show(path).to_json()
    assert shown["columns"] == [{"name": "age", "domain": [0.0, 100.0], "type": "integer"}]
    card = json.dumps(dpmix.card(path))
    assert "rounded" not in card  # as synthetic records are


@pytest.mark.parametrize("kind", ["perturbed_histogram", "wavelet"])
def test_values_that_are_no_whole_numbers_are_refused_before_anything_is_spent(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("age\n30\n41.5\n", encoding="utf-8")
    data = {"path": str(tmp_path / "t.csv"), "columns": ["age"], "types": {"age": "integer"}}
    size = {"levels": 2} if kind == "wavelet" else {"bins": 7}
    own = {"kind": kind, "epsilon": 1.0, "domain": [0, 100]} | size
    spec: dict[str, Any] = {"data": data, "mechanism": own}
    with pytest.raises(DataError, match=r"^data\.types\.age: integer, but the column has values that are no"):
        dpmix.privatize(spec, tmp_path / "r.h5", quiet=True)
    assert not (tmp_path / "r.h5").exists()
    data["types"] = {"age": {"digits": 1}}
    assert not dpmix.privatize(spec, quiet=True, yes=True).mechanism.get("whole_numbers")


def test_groups_of_whole_numbers_are_released_and_refused_alike(tmp_path: Path) -> None:
    spec = spec_of({"age": "integer"})
    spec["data"] |= {"group": "sex", "categories": {"sex": ["f", "m"]}}
    records: dict[str, Any] = {"age": [30.0, 41.0, 57.0], "sex": ["f", "m", "f"]}
    made = dpmix.privatize(spec, data=records, quiet=True, yes=True)
    assert made.mechanism.get("whole_numbers") is True and made.groups == {"sex": ("f", "m")}
    assert "how many records a group has is private. Values are whole numbers, and a bin is" in made.done()
    with pytest.raises(DataError, match=r"^data\.types\.age: integer, but the column has values that are no"):
        dpmix.privatize(spec, data=records | {"age": [30.0, 41.5, 57.0]}, quiet=True, yes=True)


def test_a_fit_takes_cells_of_wavelets_for_what_they_hold(tmp_path: Path) -> None:
    """Densities of a release are those of its cells; a kernel's masses are between other edges."""
    more = SIZES["wavelet"]
    found = read_release(released(tmp_path / "r.h5", {"age": "integer"}, kind="wavelet", **more))
    law = found.mechanism
    plain, whole = (
        each.observe(found.values, found.n, [0], rows=False).channel
        for each in (law.updated(whole_numbers=False), law)
    )
    assert plain.edges.tolist() == [12.5, 25.0, 37.5, 50.0, 62.5, 75.0, 87.5]
    assert whole.edges.tolist() == [12.5, 24.5, 37.5, 49.5, 62.5, 74.5, 87.5]
    assert whole.density.tolist() == plain.density.tolist()
    assert law.cell_likelihood(found.values, 1.0).edges.tolist() == whole.edges.tolist()


def test_an_analyst_may_know_it_of_a_release_that_does_not_say(tmp_path: Path) -> None:
    path = released(tmp_path / "r.h5")
    for types in ({"age": "integer"}, {"age": {"digits": 0}}):
        of_both = spec_of(types)
        of_both["data"]["path"] = "ages.csv"
        for spec in (spec_of(types, "release"), of_both):
            found, _ = find_release(load_spec(spec), path)
            assert found.mechanism.get("whole_numbers") is True
    found, _ = find_release(load_spec(spec_of({"age": {"digits": 1}}, "release")), path)
    assert found.mechanism.get("whole_numbers") is None


def test_another_type_contradicts_a_release_of_whole_numbers(tmp_path: Path) -> None:
    path = released(tmp_path / "r.h5", {"age": "integer"})
    with pytest.raises(SpecError) as caught:
        find_release(load_spec(spec_of({"age": {"digits": 2}}, "release")), path)
    assert str(caught.value) == (
        "release.types.age: is another than integer, but the release is of whole numbers; take it out of the "
        "spec, or give the release it describes"
    )
    for types in (None, {"age": "integer"}):
        found, _ = find_release(load_spec(spec_of(types, "release")), path)
        assert found.mechanism.get("whole_numbers") is True


def test_cells_of_the_discrete_model_are_what_bins_hold(tmp_path: Path) -> None:
    found = read_release(released(tmp_path / "r.h5", {"age": "integer"}))
    cells = public_of(found).cells
    assert cells is not None
    assert cells.edges(0).tolist() == expect(found.mechanism, HistogramLaw).edges().tolist()
    assert cells.edges(0).tolist() == [0.0, 14.5, 28.5, 42.5, 57.5, 71.5, 85.5, 100.0]


@pytest.mark.parametrize(("bins", "said"), [(24, True), (20, False), (200, False)])
def test_bins_without_a_whole_number_are_a_doubt(bins: int, said: bool, tmp_path: Path) -> None:
    """Of narrow ones it does not matter."""
    made = law(0.0, 20.0, bins, whole_numbers=True)
    states = [states_of_mixture(20, np.random.default_rng(1))]
    chains = write_chains(tmp_path / "c.h5", states, attrs={"mechanism": json.dumps(made.stated())})
    summary = dpmix.summarize(chains, quiet=True)
    words = "some bins of the release hold none"
    assert said == any(words in reason for reason in summary.verdict.reasons)
    assert said == any(words in warning for warning in summary.to_json()["warnings"])
    assert not said or summary.verdict.answer != "usable"


def test_pictures_have_draws_where_fits_take_their_records(tmp_path: Path) -> None:
    """Draws are in the bins themselves; of 4.7, which is in that of 0 to 4, the area is from -0.5 to 4.5."""
    own = {"kind": "smoothed_histogram", "bins": 4, "draws": 5, "weight": 0.25, "scale": []}
    stated = own | {"domain": [[-10.0, 10.0]], "whole_numbers": True}
    drawn = np.array([-9.0, -0.2, 4.7, 4.9, 8.0])
    path = write_chains(
        tmp_path / "c.h5",
        [states_of_mixture(20, np.random.default_rng(1))],
        observed=drawn,
        attrs={"mechanism": json.dumps(stated)},
    )
    steps = shown(dpmix.summarize(path, quiet=True), "")
    assert steps is not None
    assert steps.edges.tolist() == [-10.0, -5.5, -0.5, 4.5, 10.0]
    assert (steps.heights * np.diff(steps.edges)).tolist() == pytest.approx([0.2, 0.2, 0.4, 0.2])


@pytest.mark.parametrize("stated", [1, "yes", None])
def test_a_file_states_it_as_true_or_false(stated: Any) -> None:
    with pytest.raises(LawError, match="does not state whether values are whole numbers, true or false"):
        law(0.0, 20.0, 16, whole_numbers=stated)


@pytest.mark.parametrize(
    ("pair", "bins", "more", "said"),
    [
        ((0.0, 100.0), 20, {}, "multiples of 5"),
        ((0.0, 100.0), 20, {"whole_numbers": True}, "too high by 0.2, "),  # of 0 to 4 the middle is 2
        ((0.0, 100.0), 100, {"whole_numbers": True}, ""),
        ((-2.5, 102.5), 21, {}, ""),
        ((0.0, 100.0), 32, {}, ""),
        ((-0.5, 99.5), 20, {"whole_numbers": True}, "too high by 0.2, "),
        ((-0.5, 99.5), 20, {}, ""),
    ],
)
def test_bins_that_begin_at_round_numbers_are_a_doubt_where_rounding_would_show(
    pair: tuple[float, float], bins: int, more: dict[str, Any], said: str, tmp_path: Path
) -> None:
    made = law(*pair, bins, **more)
    parameters: Any = {"sd": SimpleNamespace(sd=9.0), "mean[f]": SimpleNamespace(sd=0.1)}
    found = [remark.text for remark in rounded_remarks(parameters, made, NONE)]
    assert len(found) == (said != "") and all(said in text for text in found)
    parameters["mean[f]"] = SimpleNamespace(sd=0.3)  # a tenth of records rounded would not show
    assert rounded_remarks(parameters, made, NONE) == []


def test_a_summary_doubts_bins_that_begin_at_round_numbers(tmp_path: Path) -> None:
    for low, bins in ((0.0, 20), (-2.5, 21)):
        made = law(low, 100.0 - low, bins)
        states = [states_of_mixture(60, np.random.default_rng(1), centres=(40.0,), extra=0.0, alpha=1e-3)]
        chains = write_chains(tmp_path / "c.h5", states, attrs={"mechanism": json.dumps(made.stated())})
        summary = dpmix.summarize(chains, quiet=True)
        assert (low == 0.0) == any("begin at multiples of 5" in reason for reason in summary.verdict.reasons)
        assert summary.verdict.answer != "usable" or low != 0.0
