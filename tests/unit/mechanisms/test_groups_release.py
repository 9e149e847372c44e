"""Releases of groups whose sizes are private: from a table to a file, by spec, and what is refused."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import stats

import dpmix
from dpmix.api.release_of import find_release, load_stated_release
from dpmix.auditing.inputs import subject_of
from dpmix.cli import commands
from dpmix.data.loading import load_data
from dpmix.errors import DataError, SpecError
from dpmix.mechanisms.curators.by_kind import from_spec
from dpmix.mechanisms.curators.private_groups import Groups
from dpmix.mechanisms.log_moments.curator import GroupedLogMoments
from dpmix.mechanisms.log_moments.section import LogMomentsMechanism
from dpmix.release.release_file import read_release
from dpmix.run import exit_codes
from dpmix.spec import load_spec
from dpmix.summary.subject import done_and_guaranteed, guarantee_briefly
from tests.helpers.laws import mechanism_problem, value_problem, value_warning
from tests.helpers.specs import message

SEXES = {"group": "sex", "categories": {"sex": ["female", "male"]}}
SIZES = (137, 274)  # female, male: of 411
MECHANISMS: dict[str, dict[str, Any]] = {
    "log_moments": {"threshold": 0.01, "epsilon": 1.0},
    "clamped_moments": {"bounds": [[0, 1], [0, 1], [0, 1]], "epsilon": 1.0},
    "noisy_counts": {"levels": [2, 3], "classes": 2, "epsilon": 1.0},
    "perturbed_histogram": {"bins": 4, "epsilon": 1.0},
    "smoothed_histogram": {"bins": 4, "draws": 30, "epsilon": 1.0},
}
COLUMNS = {
    "log_moments": ["care", "food", "rest"],
    "clamped_moments": ["care", "food", "rest"],
    "noisy_counts": ["a", "b", "y"],
    "perturbed_histogram": ["care"],
    "smoothed_histogram": ["care"],
}
LENGTHS = {
    "log_moments": (1 + 2 * 3, 1),
    "clamped_moments": (1 + 2 * 9, 1),
    "noisy_counts": (2 * 2 * 5, 1),
    "perturbed_histogram": (8, 1),
    "smoothed_histogram": (30, 2),
}
KINDS = tuple(MECHANISMS)


def rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([2.0, 1.0, 4.0], sum(SIZES))
    sexes = rng.permutation(["female"] * SIZES[0] + ["male"] * SIZES[1])
    found = []
    for share, sex in zip(shares.tolist(), sexes.tolist(), strict=True):
        codes = {"a": 1 + int(share[0] > 0.3), "b": 1 + int(3 * share[1]), "y": 1 + int(share[2] > 0.5)}
        found.append(dict(zip(("care", "food", "rest"), share, strict=True)) | codes | {"sex": sex})
    return found


def table(folder: Path) -> str:
    records = rows()
    names = list(records[0])
    text = "\n".join([",".join(names), *(",".join(str(r[name]) for name in names) for r in records)])
    (folder / "people.csv").write_text(text + "\n")
    return str(folder / "people.csv")


def spec(folder: Path, kind: str, **mechanism: Any) -> dict[str, Any]:
    data = {"path": table(folder), "columns": COLUMNS[kind], **copy.deepcopy(SEXES)}
    if "histogram" in kind:
        data["domain"] = [[0, 1]]
    return {"data": data, "mechanism": {"kind": kind, **MECHANISMS[kind], **mechanism}}


def exact(kind: str) -> np.ndarray:
    """Return what is released without noise, by its definition."""
    records, parts = rows(), []
    groups = [[r for r in records if r["sex"] == sex] for sex in ("female", "male")]
    if kind == "noisy_counts":
        for feature, count in (("a", 2), ("b", 3)):
            for own in groups:
                for y in (1, 2):
                    parts += [sum(r[feature] == j and r["y"] == y for r in own) for j in range(1, count + 1)]
        return np.array(parts, dtype=np.float64)
    if kind == "perturbed_histogram":
        cells = [[min(3, int(4 * r["care"])) for r in own] for own in groups]
        return np.concatenate([np.bincount(own, minlength=4) for own in cells]).astype(float)
    sums = []
    for own in groups:
        values = np.array([[r[c] for c in ("care", "food", "rest")] for r in own])
        if kind == "log_moments":
            u = (-2 * np.log(0.02) + np.log(0.01)) / 2  # half of g(2) - g(1)
            sums.append((np.log(np.maximum(values, 0.01)) - np.log(0.01) - u).sum(axis=0))
            continue
        x1, x2, y = 2 * values.T - 1
        entries = [y, x1 * y, x2 * y, y * y - 1, x1, x2, x1 * x1 - 1, x1 * x2, x2 * x2 - 1]
        sums.append(np.array([entry.sum() for entry in entries]))
    return np.concatenate([[SIZES[0]], *sums])


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_groups_is_released_and_read_back(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = dpmix.privatize(spec(tmp_path, kind), tmp_path / "r.h5")
    back = read_release(tmp_path / "r.h5")
    assert back.mechanism == made.mechanism
    assert (back.n, back.trust, back.private) == (411, "global", True)
    assert back.adjacency == "replacement, private groups"
    assert back.groups == {"sex": ("female", "male")}
    assert back.values.shape == LENGTHS[kind]
    assert back.labels == made.labels
    assert back.epsilon is not None
    assert back.epsilon <= 1.0
    said = capsys.readouterr().err
    assert "the replacement of one record, its group included" in said
    with h5py.File(tmp_path / "r.h5") as file:
        told = json.dumps({k: str(v) for k, v in file["release"].attrs.items()}) + said
    assert not [size for size in SIZES if re.search(rf"(?<![\d.]){size}(?![\d.])", told)]


def test_a_part_of_a_table_by_private_groups_says_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record stays in its part, and may change its group."""
    stated = spec(tmp_path, "perturbed_histogram")
    stated["data"]["part"] = {"of": "people", "public": True}
    made = dpmix.privatize(stated, tmp_path / "r.h5")
    assert made.adjacency == "replacement, public parts"
    both = "the replacement of one record, its group included, that stays in its part of the table"
    assert both in capsys.readouterr().err
    assert both in made.guarantee_in_words() and both in " ".join(
        dpmix.show(tmp_path / "r.h5").to_text().split()
    )
    (tmp_path / "s.yaml").write_text(json.dumps(stated))
    assert (
        exit_codes.run(commands.app, ["privatize", str(tmp_path / "s.yaml"), "-o", "x.h5", "--dry-run"]) == 0
    )
    assert both in capsys.readouterr().out
    attrs = {"epsilon": made.epsilon, "private": 1, "adjacency": made.adjacency}
    replaced = "with respect to replacing any one record and its group by another of its part of the table"
    assert replaced in done_and_guaranteed(attrs, made.mechanism, made.n)
    assert replaced in guarantee_briefly(attrs, made.mechanism)
    card = json.dumps(dpmix.card(tmp_path / "r.h5"))
    assert both in card and card.count("may change its group within its part") == 3
    croissant = json.dumps(dpmix.card(tmp_path / "r.h5", tmp_path / "c.json"))
    assert both in croissant and "may change its group within its part" in croissant


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "smoothed_histogram"])
def test_privatize_and_simulate_lay_out_what_the_contract_says(kind: str, tmp_path: Path) -> None:
    checked = load_spec(spec(tmp_path, kind, epsilon=1e7))
    data = load_data(checked)
    assert data.group == "sex"
    assert data.values.shape == (411, len(COLUMNS[kind]) + 1)
    name = None if checked.groups is None else Groups(*checked.groups)
    assert checked.mechanism is not None
    mechanism = from_spec(checked.mechanism, len(data.columns), 411, data.columns, groups=name)
    for release in (
        mechanism.privatize(data.values, data.columns)[0],
        mechanism.simulate(data.values, data.columns, np.random.default_rng(1))[0],
    ):
        np.testing.assert_allclose(release.values[:, 0], exact(kind), atol=1e-3)
        assert len(release.columns) == 1


def test_noise_has_the_law_that_is_stated() -> None:
    section = LogMomentsMechanism(kind="log_moments", threshold=0.1, epsilon=1.5)
    made: Any = from_spec(section, 2, 5, ("a", "b"), groups=Groups("sex", ("f", "m")))
    values = np.array([[0.5, 0.5, 0], [1, 0, 0], [0.2, 0.8, 1], [0.05, 0.95, 1], [0.3, 0.7, 0]])
    centre = made.statistic(values, 0.1)
    drawn = np.array([made.privatize(values, ("a", "b"))[0].values[:, 0] for _ in range(3000)])
    scales = made.privatize(values, ("a", "b"))[0].mechanism["scale"]
    noise = (drawn - centre) / np.array([scales[0], *[scales[1]] * 4])
    for column in noise.T:
        assert stats.kstest(column, "laplace").pvalue > 1e-5
    others = np.corrcoef(np.abs(noise.T))[np.triu_indices(5, 1)]
    assert np.abs(others).max() < 0.09
    # what the library's map gives, of noise of one scale on (kappa sizes, sums)
    found = made.settings(0.1)
    assert scales[1] == pytest.approx(found.width / 1.5, rel=1e-6)
    assert scales[0] == pytest.approx(scales[1] / found.kappa, rel=1e-12)
    assert made.guarantee.epsilon == pytest.approx(1.5, rel=1e-9)


def test_thresholds_are_chosen_on_the_whole_table(tmp_path: Path) -> None:
    own = {"threshold": None, "thresholds": [0.2, 0.02], "epsilon": None, "epsilon1": 1.0, "epsilon2": 1e4}
    made = dpmix.privatize(spec(tmp_path, "log_moments", **own), quiet=True, yes=True)
    smallest = np.array([min(r["care"], r["food"], r["rest"]) for r in rows()])
    first, both = int((smallest >= 0.2).sum()), int((smallest >= 0.02).sum())
    assert made.mechanism["scores"] == [first, both - first]
    assert made.mechanism["threshold"] == 0.02
    told = dpmix.calibrate(spec(tmp_path, "log_moments", **own))
    assert made.mechanism["kappa"] == told["kappa"][1]
    assert made.mechanism["scale"] == told["scale"][1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_made_elsewhere_is_described_as_one_made_here(kind: str, tmp_path: Path) -> None:
    made = dpmix.privatize(spec(tmp_path, kind), quiet=True)
    names, body = "statistic", [f"{v:.17g}" for v in made.values[:, 0]]
    if kind == "smoothed_histogram":
        names = "care,sex"
        body = [f"{v:.17g},{SEXES['categories']['sex'][int(g)]}" for v, g in made.values.tolist()]
    (tmp_path / "noisy.csv").write_text("\n".join([names, *body]) + "\n")
    own: dict[str, Any] = {"kind": kind, **MECHANISMS[kind], "n": 411}
    if "histogram" in kind:
        own["domain"] = [[0, 1]]
    if kind == "log_moments":
        own["components"] = 3
    section = {"path": str(tmp_path / "noisy.csv"), "columns": names.split(",")[:1], **SEXES}
    back = load_stated_release(load_spec({"release": section, "mechanism": own}))
    np.testing.assert_array_equal(back.values, made.values)
    assert back.adjacency == made.adjacency
    assert back.groups == made.groups
    assert back.labels == made.labels
    assert mechanism_problem(back.mechanism) is None
    for key in ("kappa", "centre", "scale", "weight", "bins", "levels", "classes", "components"):
        if key in made.mechanism:
            assert back.mechanism[key] == pytest.approx(made.mechanism[key], rel=1e-9), key
    assert back.epsilon == pytest.approx(made.epsilon)
    (tmp_path / "noisy.csv").write_text("\n".join([names, *body[:-1]]) + "\n")
    with pytest.raises(DataError, match=r"noisy\.csv has"):
        load_stated_release(load_spec({"release": section, "mechanism": own}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mechanism.kind": "laplace"}, "data.group: laplace is not for groups"),
        ({"mechanism.kind": "none"}, "data.group: none is not for groups"),
        ({"mechanism.split": 0.5}, "mechanism.split: is not for groups"),
        ({"data.categories": {}}, "data.categories.sex: missing"),
        ({"data.columns": ["care", "food", "rest", "sex"]}, "data.group: sex is in columns"),
        ({"mechanism": None, "synthesis": {"kind": "pitman_yor"}}, "data.group: is not for synthesis"),
        ({"release": {"group": "sex", "categories": {"sex": ["a", "b"]}}}, "release.group: differs"),
    ],
)
def test_what_does_not_go_with_groups_is_refused_by_name(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    given = spec(tmp_path, "log_moments")
    for key, value in change.items():
        place, _, name = key.partition(".")
        if not name:
            given[place] = value
        elif key == "mechanism.kind":
            given["mechanism"] = {"kind": value} | ({"epsilon": 1.0} if value == "laplace" else {})
            if value == "laplace":
                given["data"]["domain"] = [[0, 1]] * 3
        else:
            given[place][name] = value
    assert words in message(source={k: v for k, v in given.items() if v is not None})


def test_cells_of_all_groups_are_limited() -> None:
    data = {"path": "x.csv", "column": "a", "domain": [[0, 1]], **SEXES}
    mechanism = {"kind": "perturbed_histogram", "bins": 600_000, "epsilon": 1.0}
    with pytest.raises(SpecError, match=r"mechanism\.bins: in 2 groups that is 1,200,000 cells"):
        load_spec({"data": data, "mechanism": mechanism})


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("intersex", "column 'sex' has a value in record 2 that is none of data.categories"),
        ("", "the cell of column 'sex' in record 2 (line 3) is empty"),
    ],
)
def test_a_group_that_is_none_is_refused_without_its_value(
    cell: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = spec(tmp_path, "log_moments")
    path = Path(given["data"]["path"])
    lines = path.read_text().splitlines()
    lines[2] = ",".join([*lines[2].split(",")[:-1], cell])
    path.write_text("\n".join(lines))
    with pytest.raises(DataError) as caught:
        dpmix.privatize(given, tmp_path / "r.h5")
    assert words in str(caught.value)
    assert not cell or cell not in str(caught.value) + capsys.readouterr().err
    assert not (tmp_path / "r.h5").exists()


def test_groups_may_be_numbers_and_must_be_a_column_of_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,g\n0.1,1\n0.2,0\n0.9,1.0\n")
    data = {"path": str(tmp_path / "t.csv"), "column": "x", "domain": [[0, 1]], "group": "g"}
    mechanism = {"kind": "perturbed_histogram", "bins": 1, "epsilon": 1e6}
    named = {"data": data | {"categories": {"g": [0, 1]}}, "mechanism": mechanism}
    made = dpmix.privatize(named, quiet=True, yes=True)
    np.testing.assert_allclose(made.values[:, 0], [1, 2], atol=0.01)
    assert made.groups == {"g": ("0", "1")}
    np.save(tmp_path / "t.npy", np.ones((3, 1)))
    given = data | {"categories": {"g": [0, 1]}, "path": str(tmp_path / "t.npy")}
    with pytest.raises(DataError, match=r"holds numbers"):
        dpmix.privatize({"data": given, "mechanism": mechanism}, quiet=True)


def test_simulated_groups_differ_by_alpha() -> None:
    data = {"simulate": "dirichlet", "n": 4000, "seed": 2, **SEXES}
    alpha = {"male": [1, 1, 8], "female": [8, 1, 1]}
    mechanism = {"kind": "log_moments", "threshold": 0.01, "epsilon": 1.0}
    loaded = load_data(load_spec({"data": data | {"alpha": alpha}, "mechanism": mechanism}))
    shares, codes = loaded.values[:, :3], loaded.values[:, 3]
    assert loaded.columns == ("x1", "x2", "x3")
    np.testing.assert_allclose(shares[codes == 0].mean(axis=0), [0.8, 0.1, 0.1], atol=0.02)
    np.testing.assert_allclose(shares[codes == 1].mean(axis=0), [0.1, 0.1, 0.8], atol=0.02)
    assert abs(codes.mean() - 0.5) < 0.04
    for wrong, words in (
        ({"female": [1, 1]}, "must have the groups female, male"),
        ({"female": [1, 1], "male": [1, 1, 1]}, "groups of different numbers of parts"),
    ):
        with pytest.raises(SpecError, match=words):
            load_spec({"data": data | {"alpha": wrong}, "mechanism": mechanism})
    made = dpmix.privatize({"data": data | {"alpha": alpha}, "mechanism": mechanism}, quiet=True)
    assert (made.simulated, made.adjacency) == (True, "replacement, private groups")


DAMAGES: list[tuple[str, str, Any, str]] = [
    ("log_moments", "groups", {"sex": ["f"]}, "does not state its groups"),
    ("log_moments", "groups", {"sex": ["f", "f"]}, "does not state its groups"),
    ("log_moments", "groups", {"sex": ["f", 1]}, "does not state its groups"),
    ("log_moments", "groups", {"sex": ["f", "m"], "age": ["a", "b"]}, "does not state its groups"),
    ("log_moments", "groups", ["f", "m"], "does not state its groups"),
    ("log_moments", "groups", "sex", "does not state its groups"),
    ("noisy_counts", "groups", {"": ["f", "m"]}, "does not state its groups"),
    ("perturbed_histogram", "groups", {"sex": None}, "does not state its groups"),
    ("log_moments", "kappa", 0, "does not state its kappa"),
    ("log_moments", "kappa", None, "does not state its kappa"),
    ("log_moments", "kappa", 10**400, "does not state its kappa"),
    ("clamped_moments", "kappa", 0.5, "states a kappa that is not"),
    ("log_moments", "centre", [0.0], "does not state its centre"),
    ("log_moments", "centre", 3.0, "does not state its centre"),
    ("clamped_moments", "centre", 0.0, "does not state its centre"),
    ("clamped_moments", "centre", [0.0] * 8, "does not state its centre"),
    ("clamped_moments", "centre", [0.0] * 8 + [True], "does not state its centre"),
    ("log_moments", "scale", [1.0], "does not state two noise scales|does not list"),
    ("log_moments", "scale", [1.0, -1.0], "does not state two noise scales|does not list"),
    ("clamped_moments", "scale", [1.0], "does not state two noise scales"),
    ("noisy_counts", "scale", [1.0, 2.0], "does not state one noise scale"),
    ("log_moments", "parts", [400, 11], "states two parts of a release of groups"),
]


@pytest.mark.parametrize(("kind", "key", "value", "words"), DAMAGES)
def test_a_damaged_description_is_refused_in_a_sentence(
    kind: str, key: str, value: Any, words: str, tmp_path: Path
) -> None:
    made = dpmix.privatize(spec(tmp_path, kind), tmp_path / "r.h5", quiet=True)
    with h5py.File(tmp_path / "r.h5", "r+") as file:
        file["release"].attrs["mechanism"] = json.dumps(made.mechanism.stated() | {key: value})
    with pytest.raises(DataError, match=words):
        read_release(tmp_path / "r.h5")


def test_groups_and_the_neighbouring_relation_go_together(tmp_path: Path) -> None:
    made = dpmix.privatize(spec(tmp_path, "noisy_counts"), tmp_path / "r.h5", quiet=True)
    with h5py.File(tmp_path / "r.h5", "r+") as file:
        file["release"].attrs["adjacency"] = "replacement"
    with pytest.raises(DataError, match="adjacency is replacement alone, but the mechanism has groups"):
        read_release(tmp_path / "r.h5")
    assert mechanism_problem({"kind": "laplace", "scale": [1.0], "groups": made.mechanism["groups"]})
    assert value_problem(made.mechanism, made.values[:-1]) is not None


def test_codes_of_draws_and_far_numbers_are_told(tmp_path: Path) -> None:
    made = dpmix.privatize(spec(tmp_path, "smoothed_histogram"), quiet=True)
    for bad in (2.0, 0.5, -1.0):
        values = made.values.copy()
        values[3, 1] = bad
        assert "no code of 2 groups: draw 4" in str(value_problem(made.mechanism, values))
    assert "two, place and code" in str(value_problem(made.mechanism, made.values[:, :1]))
    for kind in ("log_moments", "clamped_moments"):
        made = dpmix.privatize(spec(tmp_path, kind), quiet=True)
        assert value_warning(made.mechanism, made.values, 411) is None
        values = made.values.copy()
        values[0] += 1e5
        values[-1] -= 1e5
        assert "2 of " in str(value_warning(made.mechanism, values, 411))


def test_a_spec_of_other_groups_is_refused_for_a_release(tmp_path: Path) -> None:
    given = spec(tmp_path, "log_moments")
    made = dpmix.privatize(given, quiet=True)
    assert find_release(load_spec(given), made)[0] is made
    analyst = load_spec({"mechanism": given["mechanism"]})
    assert find_release(analyst, made)[0] is made  # the groups are the release's
    other = copy.deepcopy(given)
    other["data"]["categories"]["sex"] = ["male", "female"]
    with pytest.raises(SpecError, match=r"data\.group: sex \(male, female\), but the release is of sex"):
        find_release(load_spec(other), made)
    alone = copy.deepcopy(given)
    del alone["data"]["group"], alone["data"]["categories"]
    plain = dpmix.privatize(alone, quiet=True)
    with pytest.raises(SpecError, match="but the release is of no groups"):
        find_release(load_spec(given), plain)
    with pytest.raises(SpecError, match="mechanism: means noise of scale"):
        find_release(load_spec(given, ["mechanism.calibration=paper"]), made)


@pytest.mark.parametrize("kind", KINDS)
def test_words_and_figures_know_groups(kind: str, tmp_path: Path) -> None:
    given = spec(tmp_path, kind)
    figures = dpmix.calibrate(given)
    assert figures["groups"] == {"sex": ["female", "male"]}
    if kind in ("log_moments", "clamped_moments"):
        sizes, sums = figures["scale"]
        assert sums == pytest.approx(figures["kappa"] * sizes)
        assert figures["sensitivity"] == pytest.approx(sums, rel=1e-6)
    made = dpmix.privatize(given, quiet=True)
    said = made.mechanism.done(411)
    assert "411 records by sex (female, male)" in said
    assert "how many records a group has is private" in said


def test_the_ledger_names_the_column_of_groups(tmp_path: Path) -> None:
    given = spec(tmp_path, "noisy_counts") | {"privacy": {"ledger": str(tmp_path / "l.json"), "dataset": "p"}}
    dpmix.privatize(given, tmp_path / "r.h5", quiet=True, new_ledger=True)
    assert '"groups":{"sex":["female","male"]}' in (tmp_path / "l.json").read_text().replace(" ", "")


def test_audits_have_neighbours_that_change_their_group() -> None:
    for kind in KINDS:
        bounds = {"domain": [[0, 1]]} if "histogram" in kind else {}
        given = {
            "data": {"path": "none.csv", "columns": COLUMNS[kind], **SEXES, **bounds},
            "mechanism": {"kind": kind, **MECHANISMS[kind], "n": 9},
        }
        found = dpmix.audit(given, runs=200, quiet=True)
        assert found.consistent
        checked = load_spec(given)
        assert checked.groups is not None
        groups = Groups(*checked.groups)
        made = from_spec(checked.mechanism, len(COLUMNS[kind]), 9, COLUMNS[kind], groups=groups)
        pairs = subject_of(made, COLUMNS[kind], 9).pairs
        assert any((pair.one[:, -1] != pair.other[:, -1]).sum() == 1 for pair in pairs)


@pytest.mark.parametrize(
    "fault", ["sizes not counted", pytest.param("exact sizes", marks=pytest.mark.matrix)]
)
def test_an_audit_finds_sizes_that_are_not_paid_for(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "data": {"path": "none.csv", "columns": ["a", "b"], **SEXES},
        "mechanism": {"kind": "log_moments", "threshold": 0.1, "epsilon": 1.0, "n": 9},
    }
    if fault == "sizes not counted":  # and weighty, so that few releases show it
        monkeypatch.setattr(Groups, "changes", property(lambda self: 0))
        monkeypatch.setattr(Groups, "kappa", lambda self, width, entries: 4 * width)
    else:
        whole = GroupedLogMoments._released

        def leaking(self: Any, values: Any, *rest: Any) -> Any:
            made, clamped = whole(self, values, *rest)
            made.values[0] = (values[:, -1] == 0).sum()
            return made, clamped

        monkeypatch.setattr(GroupedLogMoments, "_released", leaking)
    with pytest.raises(AssertionError, match="disproved"):
        found = dpmix.audit(given, runs=1200, quiet=True)
        assert found.consistent, "disproved"


def test_the_table_that_ships_has_both_groups() -> None:
    folder = Path(__file__).parents[3] / "configs" / "data"
    lines = (folder / "days.csv").read_text().splitlines()
    for sex in ("female", "male"):
        own = sorted(line.split(",", 1)[1] for line in lines[1:] if line.startswith(f"{sex},"))
        assert own == sorted((folder / f"days_{sex}.csv").read_text().splitlines()[1:])
