"""Cards of releases: every field known but policy, which is marked; Croissant; and what has no card."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import dpmix
from dpmix.api.release_of import read_any
from dpmix.errors import DataError, PrivacyError, UsageError
from dpmix.release.card_metadata import BLANK, blanks_of
from dpmix.release.release_file import read_release
from tests.unit.cli.test_cli import outcome

POLICY = {  # what no file knows, of the registry's record
    "basic.name", "basic.data_curators[0]", "basic.intended_use", "basic.data_product_region",
    "privacy_loss.privacy_unit", "deployment_model.actors", "deployment_model.release_type_details",
    "implementation.preprocessing_and_hyperparameter_tuning", "implementation.mechanisms",
    "implementation.justification", "administrative.sources", "administrative.registry_authors[0]",
}  # fmt: skip
ENUMERATIONS = {  # of the registry's schema
    "data_product_type": {"Summary statistics", "Dataset", "Synthetic data"},
    "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP"},
    "model_name": {"Local", "Central"},
    "release_type": {"One release"},
    "data_source_type": {"Static"},
    "access_type": {"Non-interactive"},
}
MECHANISMS: dict[str, dict[str, Any]] = {
    "laplace": {"kind": "laplace", "epsilon": 2.0},
    "gaussian": {"kind": "gaussian", "epsilon": 1.0, "delta": 1e-5},
    "rho": {"kind": "perturbed_histogram", "bins": 4, "noise": "discrete_gaussian", "rho": 0.5},
}


def released(tmp_path: Path, kind: str) -> Path:
    (tmp_path / "secret.csv").write_text("height\n" + "".join(f"{i / 50}\n" for i in range(50)))
    spec = {
        "data": {"path": str(tmp_path / "secret.csv"), "columns": ["height"], "domain": [0, 1]},
        "mechanism": MECHANISMS[kind],
    }
    dpmix.privatize(spec, tmp_path / "r.h5", quiet=True, yes=True)
    return tmp_path / "r.h5"


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_card_says_all_that_is_known_and_marks_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    release = released(tmp_path, kind)
    code, _, said = outcome(capsys, "card", release, "-o", tmp_path / "card.yaml")
    assert code == 0
    card = yaml.safe_load((tmp_path / "card.yaml").read_text())
    assert f"{len(blanks_of(card))} entries TO BE FILLED IN" in said
    record = card["registry"]["deployment"]
    assert set(blanks_of(record)) == POLICY
    assert (card["registry"]["tier"], card["registry"]["status"]) == (3, "Draft")
    for section in record.values():
        for key, value in section.items():
            assert value not in ("", None, [])
            if key in ENUMERATIONS:
                assert value in ENUMERATIONS[key]
    private = card["privacy"]
    assert private["neighbouring_relation"] == "replacement"
    stated = {"laplace": {"epsilon", "delta", "rho"}, "gaussian": {"epsilon", "delta", "rho"}, "rho": {"rho"}}
    assert set(private["parameters"]) == set(record["privacy_loss"]["privacy_parameters"]) == stated[kind]
    assert record["dp_variant"]["variant_name"] == private["notion"]
    trust = "Central" if kind == "rho" else "Local"
    assert private["trust_model"].startswith(trust)
    assert card["implementation"]["code_version"].startswith(f"dpmix {dpmix.__version__}")
    assert not any(BLANK in text for text in card["implementation"].values())
    assert "secret" not in (tmp_path / "card.yaml").read_text()
    assert len(card["nist_sp_800_226"]) > 12
    again, _, refused = outcome(capsys, "card", release, "-o", tmp_path / "card.yaml")
    assert (again, "exists already" in refused) == (2, True)


def test_croissant_describes_the_file(tmp_path: Path) -> None:
    release = released(tmp_path, "laplace")
    tree = dpmix.card(release, tmp_path / "card.json")
    assert json.loads((tmp_path / "card.json").read_text()) == tree
    (file,) = tree["distribution"]
    assert file["sha256"] == hashlib.sha256(release.read_bytes()).hexdigest()
    assert file["encodingFormat"] == "application/x-hdf5"
    assert tree["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert tree["variableMeasured"] == [
        {"@type": "sc:PropertyValue", "name": "height", "minValue": 0.0, "maxValue": 1.0}
    ]
    assert "recordSet" not in tree  # Croissant reads no fields out of HDF5
    assert set(blanks_of(tree)) == {"name", "url", "license", "creator.name", "citeAs"}


def test_croissant_identifies_names_with_spaces(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("vote of 2019\n" + "".join(f"{i / 50}\n" for i in range(50)))
    spec = {
        "data": {"path": str(tmp_path / "secret.csv"), "columns": ["vote of 2019"], "domain": [0, 1]},
        "synthesis": {"kind": "smoothed_histogram", "epsilon": 2.0, "bins": 4, "records": 5},
    }
    dpmix.synthesize(spec, output=tmp_path / "a b.csv", quiet=True)
    tree = dpmix.card(tmp_path / "a b.csv", tmp_path / "c.json")
    (file,), (records,) = tree["distribution"], tree["recordSet"]
    (field,) = records["field"]
    assert (file["@id"], file["name"], file["contentUrl"]) == ("a%20b.csv", "a b.csv", "a b.csv")
    assert (field["@id"], field["name"]) == ("records/vote%20of%202019", "vote of 2019")
    assert field["source"] == {"fileObject": {"@id": "a%20b.csv"}, "extract": {"column": "vote of 2019"}}


def test_synthetic_records_have_fields(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("height\n" + "".join(f"{i / 50}\n" for i in range(50)))
    spec = {
        "data": {"path": str(tmp_path / "secret.csv"), "columns": ["height"], "domain": [0, 1]},
        "synthesis": {"kind": "smoothed_histogram", "epsilon": 2.0, "bins": 4, "records": 5},
    }
    dpmix.synthesize(spec, output=tmp_path / "s.csv", quiet=True)
    (records,) = dpmix.card(tmp_path / "s.csv", tmp_path / "c.json")["recordSet"]
    assert records["field"][0]["source"] == {"fileObject": {"@id": "s.csv"}, "extract": {"column": "height"}}
    assert (
        dpmix.card(tmp_path / "s.csv")["registry"]["deployment"]["basic"]["data_product_type"]
        == "Synthetic data"
    )


def test_a_tally_is_described_as_counts(tmp_path: Path) -> None:
    dpmix.tally([released(tmp_path, "laplace")], output=tmp_path / "t.h5", quiet=True)
    tally = read_release(tmp_path / "t.h5", tallies=True).tally
    assert tally is not None
    said = f"counts of the released values in {len(tally.counts):,} public cells"
    card = dpmix.card(tmp_path / "t.h5", tmp_path / "card.yaml")
    assert (card["release"]["records"], said in card["release"]["done"]) == (50, True)
    assert card["registry"]["deployment"]["basic"]["data_product_type"] == "Summary statistics"
    assert said in dpmix.card(tmp_path / "t.h5", tmp_path / "card.json")["description"]


def test_what_guarantees_nothing_has_no_card(tmp_path: Path) -> None:
    spec = {
        "data": {"simulate": "three_gaussians", "n": 20, "seed": 1},
        "mechanism": {"kind": "laplace", "scale": 1.0, "domain": [-10, 10]},
    }
    dpmix.privatize(spec, tmp_path / "r.h5", quiet=True)
    with pytest.raises(PrivacyError, match="guarantees nothing"):
        dpmix.card(tmp_path / "r.h5")
    with pytest.raises(UsageError, match="a card is a .yaml file"):
        dpmix.card(tmp_path / "r.h5", tmp_path / "card.txt")
    (tmp_path / "bad.h5").write_bytes(b"nothing")
    with pytest.raises(DataError):
        dpmix.card(tmp_path / "bad.h5")


PEOPLE = "sex,when,age\n" + "".join(
    f"{'fm'[i % 2]}{i % 3},2020-0{1 + i % 9}-1{i % 7},{20 + i}\n" for i in range(40)
)


def urn(tmp_path: Path) -> Path:
    """Records that are mostly republished, one of whose columns has labels of which nothing is public."""
    (tmp_path / "p.csv").write_text(PEOPLE)
    data = {
        "path": str(tmp_path / "p.csv"),
        "columns": ["sex", "when", "age"],
        "domain": {"when": ["2020-01-01", "2020-12-31"], "age": [18, 95]},
        "types": {"age": "integer"},
    }
    synthesis = {"kind": "pitman_yor", "concentration": 2.0, "records": 5}
    dpmix.synthesize({"data": data, "synthesis": synthesis}, tmp_path / "u.csv", quiet=True)
    return tmp_path / "u.csv"


def test_what_is_republished_is_said_wherever_the_records_are_described(tmp_path: Path) -> None:
    made = urn(tmp_path)
    account, card = json.loads((tmp_path / "u.csv.json").read_text()), dpmix.card(made)
    croissant = dpmix.card(made, tmp_path / "u.json")
    shown = " ".join(dpmix.show(made).to_text().split())
    record = card["registry"]["deployment"]
    for text in (
        " ".join(account["cautions"]),
        shown,
        card["privacy"]["unprotected"],
        " ".join(card["privacy"]["cautions"]),
        record["dp_variant"]["unprotected_quantities"],
        record["privacy_loss"]["privacy_parameters_details"],
        croissant["rai:personalSensitiveInformation"],
        " ".join(read_any(made).headline[1]),
    ):
        assert "republishes records verbatim" in text
        assert "labels of sex, of which nothing is public, are published as they are" in text
        assert "is not below 1/n = 0.025" in text
    assert "categories of" not in card["privacy"]["unprotected"]
    assert record["dp_variant"]["data_domain"] == (
        "Tables of 40 records: sex; when in [2020-01-01, 2020-12-31]; age in [18, 95]. No bounds or "
        "categories of sex are stated."
    )
    assert "OpenDP" not in card["implementation"]["floating_point"]
    fields = {field["name"]: field["dataType"] for field in croissant["recordSet"][0]["field"]}
    assert fields == {"sex": "sc:Text", "when": "sc:Date", "age": "sc:Integer"}
    measured = {each.pop("name"): each for each in croissant["variableMeasured"]}
    assert (measured["age"]["minValue"], measured["age"]["maxValue"]) == (18, 95)
    assert measured["when"]["description"] == "dates from 2020-01-01 to 2020-12-31"
    assert "18262" not in json.dumps(card)


def test_a_delta_of_one_by_n_is_said_of_a_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.csv").write_text(PEOPLE)
    data = {"path": str(tmp_path / "p.csv"), "column": "age", "domain": [18, 95]}
    spec = {"data": data, "mechanism": {"kind": "gaussian", "epsilon": 1.0, "delta": 0.05}}
    release = dpmix.privatize(spec, tmp_path / "g.h5", quiet=True)
    card, said = dpmix.card(tmp_path / "g.h5"), "delta = 0.05 is not below 1/n = 0.025"
    assert said in card["privacy"]["unprotected"] and said in " ".join(release.headline[1])
    assert said in " ".join(dpmix.show(tmp_path / "g.h5").to_text().split())
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec))
    _, _, note = outcome(capsys, "validate", tmp_path / "s.yaml")
    assert "with more than 19 records, delta = 0.05 is 1/n or more" in note
    _, _, warned = outcome(capsys, "tally", tmp_path / "g.h5", "-o", tmp_path / "t.h5")
    assert said in warned
    population = {"advise": {"population": {"kind": "beta", "a": 2, "b": 3}}}
    advice = dpmix.advise(spec | population, epsilon=[1.0], n=[1000], mechanism=["gaussian"], quiet=True)
    assert "gaussian: delta = 0.05 is not below 1/n = 0.001" in " ".join(advice.to_text().split())


def test_a_card_of_a_statistic_names_the_columns_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("a,b,c\n" + "0.2,0.3,0.5\n" * 9)
    data = {"path": str(tmp_path / "c.csv"), "columns": ["a", "b", "c"]}
    mechanism = {"kind": "log_moments", "threshold": 0.1, "epsilon": 1.0}
    dpmix.privatize({"data": data, "mechanism": mechanism}, tmp_path / "m.h5", quiet=True)
    card = dpmix.card(tmp_path / "m.h5")
    assert card["release"]["columns"] == ["a", "b", "c"]
    assert card["registry"]["url_slug"] == "a-b-c"
    record = card["registry"]["deployment"]
    assert "clamped" not in record["dp_variant"]["data_domain"]
    assert "bounds" not in card["privacy"]["unprotected"]
    assert not record["implementation"]["preprocessing_and_hyperparameter_tuning"].startswith("Values")
    assert "OpenDP" in card["implementation"]["floating_point"]


def test_bounds_and_scales_of_dates_are_said_as_such(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(PEOPLE)
    data = {"path": str(tmp_path / "p.csv"), "column": "when", "domain": ["2020-01-01", "2020-12-31"]}
    dpmix.privatize(
        {"data": data, "mechanism": {"kind": "laplace", "epsilon": 1.0}}, tmp_path / "d.h5", quiet=True
    )
    card = dpmix.card(tmp_path / "d.h5")
    assert card["privacy"]["mechanism"]["domain"] == [["2020-01-01", "2020-12-31"]]
    assert "On dates the scale is in days." in card["release"]["done"]


def test_messages_write_dates_and_one_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.csv").write_text(PEOPLE)
    data = {"path": str(tmp_path / "p.csv"), "column": "when", "domain": ["2020-01-01", "2020-12-31"]}
    dpmix.privatize({"data": data, "mechanism": {"kind": "laplace", "epsilon": 1.0}})
    assert "Laplace noise of scale 365 on when (days)" in capsys.readouterr().err
    synthesis = {"kind": "perturbed_histogram", "bins": 2, "epsilon": 5.0, "records": 1}
    made = dpmix.synthesize({"data": data, "synthesis": synthesis})
    assert "dpmix: 1 draw from" in capsys.readouterr().err
    assert made.mechanism.done(40).startswith("1 synthetic record was drawn")
    said = made.mechanism.problem(made.values + 1e4)
    assert said is not None and "lies outside [2020-01-01, 2020-12-31]" in said
