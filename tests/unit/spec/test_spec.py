"""What a spec accepts, what it resolves to, and what it says when something is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dpmix.errors import DpmixError, PrivacyError, SpecError
from dpmix.kernels.normal.section import NIGBase
from dpmix.spec import RunSpec, load_spec
from dpmix.spec.combinations import check_combination
from dpmix.spec.run_spec import OF_ANALYST
from dpmix.spec.starters import starter, starters
from tests.helpers.specs import SHIPPED, full_spec, message


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_specs_are_valid(path: Path) -> None:
    spec = load_spec(path)
    if spec.data is None:  # of the analyst's alone
        assert spec.release is not None
        if path.stem == "tally":  # of parts that are named in the call
            return
        assert spec.release.path is not None
        assert spec.release.path.is_file()
        return
    if path.stem == "advise":  # about data that need not be there yet
        return
    assert spec.data.path is None or spec.data.path.is_file()


@pytest.mark.parametrize("kind", starters())
def test_starters_are_valid_commented_and_distinct(kind: str) -> None:
    text = starter(kind)
    RunSpec.from_yaml(text)
    assert text.startswith("# ")
    assert text.count("#") > 4


@pytest.mark.parametrize("kind", starters())
def test_bases_that_starters_name_are_of_their_kernel(kind: str) -> None:
    text = starter(kind)
    for base in re.findall(r"# base: (\{[^}]*\})", text):
        stated = re.sub(
            r"^( *)# concentration:", rf"\1base: {base}\n\1# concentration:", text, count=1, flags=re.M
        )
        assert RunSpec.from_yaml(stated) != RunSpec.from_yaml(text)


def test_unknown_starter_lists_all() -> None:
    with pytest.raises(DpmixError) as caught:
        starter("lapace")
    assert 'did you mean "laplace"' in str(caught.value)
    assert all(kind in str(caught.value) for kind in starters())


def test_defaults_are_resolved() -> None:
    spec = load_spec({"model": {"base": {"empirical": True}}, "sampler": {"iterations": 301}})
    assert spec.model is not None
    assert (spec.model.kind, spec.model.kernel, spec.model.base.kind) == ("mixture", "normal", "nig")
    assert (spec.sampler.burn_in, spec.sampler.draws, spec.sampler.chains) == (150, 151, 4)
    assert spec.summary.level == 0.95
    assert (spec.data, spec.release, spec.mechanism, spec.synthesis) == (None, None, None, None)


def test_empty_sections_have_defaults() -> None:
    assert load_spec({"sampler": None, "summary": None}) == load_spec({"sampler": {}})


def test_domain_of_the_mechanism_is_that_of_the_data() -> None:
    source = full_spec()
    del source["mechanism"]["domain"]
    spec = load_spec(source)
    assert spec.mechanism is not None
    assert spec.mechanism.domain == ((1.0, 6.0),)
    assert load_spec(full_spec()) == spec


def test_one_column_is_a_list_of_one() -> None:
    source = full_spec()
    source["data"] = {"path": "a.csv", "column": "x", "domain": [1, 6]}
    spec = load_spec(source)
    assert spec.data is not None
    assert spec.data.columns == ("x",)
    assert spec.data.column is None
    assert spec.data.domain == ((1.0, 6.0),)


def test_python_numbers_of_all_kinds_are_numbers() -> None:
    source = full_spec()
    source["mechanism"]["epsilon"] = np.float64(2.5)
    source["sampler"]["seed"] = np.int64(7)
    source["model"]["concentration"] = 2
    source["summary"]["grid"] = (0, np.float32(7), 50)
    source["data"]["domain"] = np.array([[1.0, 6.0]])
    spec = load_spec(source)
    assert spec.mechanism is not None
    assert spec.model is not None
    assert (spec.mechanism.epsilon, spec.sampler.seed, spec.model.concentration) == (2.5, 7, 2.0)
    assert isinstance(spec.model.concentration, float)
    assert RunSpec.from_yaml(spec.to_yaml()) == spec


def test_empirical_base_replaces_given_values() -> None:
    spec = load_spec(full_spec(), ["model.base.empirical=true"])
    assert spec.model is not None
    assert isinstance(spec.model.base, NIGBase)
    assert spec.model.base.mu0 is None
    assert spec.to_dict()["model"]["base"] == {"empirical": True, "kind": "nig"}


def test_relative_paths_count_from_the_folder_of_the_spec(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "a.yaml").write_text("data: {path: x.csv, column: x, domain: [0, 1]}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    spec = load_spec("specs/a.yaml")
    assert spec.data is not None
    assert spec.data.path == folder / "x.csv"
    assert spec.source_dir == folder
    overridden = load_spec(Path("specs/a.yaml"), ["data.path=../y.csv"])
    assert overridden.data is not None
    assert overridden.data.path == tmp_path / "y.csv"
    again = load_spec(spec, ["data.path=z.csv"])
    assert again.data is not None
    assert again.data.path == folder / "z.csv"
    from_dict = load_spec({"release": {"path": "x.csv"}})
    assert from_dict.release is not None
    assert from_dict.release.path == tmp_path / "x.csv"


def test_nothing_of_the_confidential_side_is_for_the_analyst() -> None:
    spec = load_spec(full_spec()).for_analyst()
    assert spec.data is None
    kept = {name for name in RunSpec.model_fields if getattr(spec, name) is not None}
    assert kept == set(OF_ANALYST)  # a new section is the curator's until somebody says that it is not
    assert "faithful" not in spec.to_yaml()
    assert "eruptions" not in spec.to_yaml()
    assert spec.mechanism is not None
    assert spec.mechanism.domain == ((1.0, 6.0),)
    assert RunSpec.from_yaml(spec.to_yaml()) == spec
    simulated = full_spec()
    simulated["data"] = {"simulate": "three_gaussians", "n": 200, "seed": 1, "domain": [1.0, 6.0]}
    kept = load_spec(simulated).for_analyst().data
    assert kept is not None
    assert (kept.simulate, kept.n, kept.seed) == ("three_gaussians", 200, 1)


def test_what_others_are_asked_to_do_is_not_in_outputs_nor_are_folders(tmp_path: Path) -> None:
    for name in ("all.csv", "less.csv", "new.csv"):
        (tmp_path / name).write_text("x\n1\n", encoding="utf-8")
    spec = load_spec(
        full_spec()
        | {
            "audit": {
                "command": ["sh", "{input}", "{output}"],
                "epsilon": 1,
                "tables": [str(tmp_path / "all.csv"), str(tmp_path / "less.csv")],
            },
            "advise": {"target": {"mean": 1.0}},
        }
    )
    assert spec.audit is not None
    kept = spec.for_analyst()
    assert (kept.audit, kept.advise, kept.privacy, kept.synthesis) == (None, None, None, None)
    for at in (str(tmp_path / "new.csv"), {"path": str(tmp_path / "new.csv"), "delimiter": ";"}):
        told = load_spec(yaml.safe_load(starter("linear_regression")) | {"summary": {"at": at}}).for_readers()
        assert "new.csv" in told
        assert str(tmp_path) not in told


def test_overrides_apply_in_order_and_create_sections() -> None:
    spec = load_spec(
        {"sampler": {"chains": 2}}, ["sampler.chains=3", "sampler.chains=5", "summary.level=0.5"]
    )
    assert (spec.sampler.chains, spec.summary.level) == (5, 0.5)
    spec = load_spec(full_spec(), ["mechanism.epsilon=null", "mechanism.rho=1e-2"])
    assert spec.mechanism is not None
    assert (spec.mechanism.epsilon, spec.mechanism.rho) == (None, 0.01)
    spec = load_spec(spec, ["mechanism={kind: gaussian, scale: 2}", "sampler.seed="])
    assert spec.mechanism is not None
    assert (spec.mechanism.kind, spec.sampler.seed) == ("gaussian", None)


def test_taking_out_what_is_not_there_changes_nothing() -> None:
    for kind in starters():
        contents = yaml.safe_load(starter(kind))
        if "base" in contents:  # a sweep
            continue
        for section, keys in contents.items():
            for key in keys:
                taken = f"{section}.{key}=null"
                try:
                    once = load_spec(contents, [taken])
                except DpmixError:
                    continue
                assert load_spec(contents, [taken, taken]) == once


def test_what_follows_from_other_keys_follows_overrides_too() -> None:
    source = full_spec()
    del source["sampler"]["burn_in"]
    del source["mechanism"]["domain"]
    spec = load_spec(load_spec(source), ["sampler.iterations=100", "data.domain=[0, 2]"])
    assert spec.mechanism is not None
    assert (spec.sampler.burn_in, spec.mechanism.domain) == (50, ((0.0, 2.0),))
    assert load_spec(load_spec(full_spec()), ["sampler.iterations=10001"]).sampler.burn_in == 10000


WRONG = [
    ("sampler.burn_in=30000", "sampler.burn_in: 30000 must be less than sampler.iterations (20000)"),
    ("sampler.iterations=0", "sampler.iterations: 0 must be at least 1"),
    ("sampler.iterations=99999999999999999999", "sampler.iterations: 99999999999999999999 must be at most"),
    ("sampler.iterations=1e4", "sampler.iterations: must be a whole number, not 10000.0; write 10000"),
    ("sampler.thin=20000", "sampler.thin: 20000 keeps no draw of the 10000 sweeps after burn-in"),
    ("sampler.chains=0", "sampler.chains: 0 must be at least 1"),
    ("sampler.chains=true", "sampler.chains: must be a whole number, not true"),
    ("sampler.chains=yes", 'sampler.chains: must be a whole number, not "yes"'),
    ("sampler.seed=-1", "sampler.seed: -1 must be at least 0"),
    ("sampler.sed=1", 'sampler.sed: unknown key; did you mean "seed"?'),
    ("sampler.kind=private_neal", 'sampler.kind: "private_neal" is unknown; did you mean "private_neal5"?'),
    ("sampler.store=allocations", 'sampler.store: must be a list, not "allocations"'),
    ("sampler.store=[alocations]", 'sampler.store[0]: "alocations" is unknown; did you mean "allocations"?'),
    ("sampler=[1]", "sampler: must be a mapping of keys, not [1]"),
    ("sampler={kind: neal8, latent: metropolis}", "sampler.latent: metropolis is not for neal8"),
    ("mechansim.kind=laplace", 'mechansim.kind: unknown section; did you mean "mechanism"?'),
    ("mechanism.kind=laplas", 'mechanism.kind: "laplas" is unknown; did you mean "laplace"?'),
    ("mechanism.kind=x", 'mechanism.kind: "x" is unknown; one of laplace, gaussian, wavelet'),
    ("mechanism.kind=null", "mechanism.kind: missing; one of laplace, gaussian, wavelet"),
    (
        "release={path: data/faithful.csv, column: eruptions}",
        "release.path: faithful.csv is the confidential file itself (data.path); name the released values",
    ),
    ("data.mising=null", 'data.mising: unknown key; did you mean "missing"?'),
    ("privacy.bugdet=null", 'privacy.bugdet: unknown key; did you mean "budget"?'),
    ("mechanism.kind=3", "mechanism.kind: 3 is unknown; one of laplace, gaussian, wavelet"),
    (
        "mechanism.rho=1",
        "mechanism: states its noise twice (epsilon, rho); laplace takes epsilon, rho or scale",
    ),
    ("mechanism.epsilon=null", "mechanism.epsilon: missing; laplace takes epsilon, rho or scale"),
    ("mechanism.delta=0.1", "mechanism.delta: unknown key"),
    ("mechanism.epsilon=true", "mechanism.epsilon: must be a number, not true"),
    ("mechanism.epsilon='5'", 'mechanism.epsilon: must be a number, not "5"'),
    ("mechanism.epsilon=.nan", "mechanism.epsilon: must be a finite number, not nan"),
    ("mechanism.epsilon=-1", "mechanism.epsilon: -1 must be greater than 0"),
    ("mechanism.calibration=paper", "mechanism.calibration: paper is a way of reaching rho"),
    ("mechanism={kind: gaussian, epsilon: 1}", "mechanism.delta: missing beside epsilon; gaussian takes"),
    ("mechanism={kind: gaussian, delta: 0.1}", "mechanism.epsilon: missing beside delta; gaussian takes"),
    ("mechanism={kind: gaussian, epsilon: 1, delta: 1}", "mechanism.delta: 1 must be less than 1"),
    (
        "mechanism={kind: gaussian, rho: 1, calibration: classical}",
        "mechanism.calibration: classical is a way",
    ),
    ("mechanism={kind: none, epsilon: 1}", "mechanism.epsilon: unknown key; known: kind, domain"),
    ("mechanism.domain=[6, 1]", "mechanism.domain: [6.0, 1.0] must have its lower bound below its upper one"),
    ("mechanism.domain=[1, 7]", "mechanism.domain: differs from data.domain"),
    ("mechanism.domain=[1, 2, 3]", "mechanism.domain: must be a pair [lo, hi] or a list of pairs"),
    ("data.domain=[[1, 2], [3, 4]]", "data.domain: has 2 pairs of bounds for 1 column"),
    ("data.domain=[1, .inf]", "data.domain[1]: must be a finite number, not inf"),
    ("data.domain=[0, 1e160]", "data.domain: [0.0, 1e+160] is too wide"),
    ("data.domain=[-1e308, 1e308]", "data.domain: [-1e+308, 1e+308] is too wide"),
    ("data.domain=[0, 5e-324]", "data.domain: [0.0, 5e-324] is too narrow"),
    ("data.domain={}", "data.domain: a mapping must have at least 1 entries"),
    (f"data.categories=[1{400 * '0'}, b]", "data.categories[0]: must be text or a number, not 1000"),
    (
        f"synthesis={{kind: pitman_yor, ranges: [{{x: 1{400 * '0'}}}]}}",
        "synthesis.ranges[0].x: must be [lo, hi], a value or a list of categories, not 1000",
    ),
    (
        f"synthesis={{kind: pitman_yor, ranges: [{{when: {{x: 1{400 * '0'}}}, y: 1}}]}}",
        "synthesis.ranges[0].when.x: must be a number, a category, or [lo, hi]",
    ),
    ("data.domain=5", "data.domain: must be a pair [lo, hi] or a list of pairs, not 5"),
    ("data.column=x", "data.column: give either column or columns, not both"),
    ("data.columns=[x, x]", "data.columns: names a column twice"),
    ("data.columns=null", "data.columns: missing; name the columns of faithful.csv to take"),
    ("data.columns=[]", "data.columns: [] must have at least 1 entries"),
    (
        "data.path=x.txt",
        'data.path: "x.txt" is no known type of data file; give one of .csv, .csv.gz, .tsv, ',
    ),
    ("data.path=3", "data.path: must be the path of a file, not 3"),
    ("data.path=null", "data.path: missing; name the file of the data, or simulate them"),
    (
        "data.simulate=three_gaussian",
        'data.simulate: "three_gaussian" is unknown; did you mean "three_gaussians"?',
    ),
    ("data.simulate=three_gaussians", "data.simulate: give either path or simulate, not both"),
    ("data={simulate: three_gaussians}", "data.n: missing; say how many records to simulate"),
    ("data.seed=3", "data.seed: is for data.simulate only; no seed is accepted for a real release"),
    ("data.n=3", "data.n: is for data.simulate only"),
    ("data.alpha=[1, 2]", "data.alpha: is for data.simulate: dirichlet only"),
    ("data={simulate: dirichlet, n: 9}", "data.alpha: missing; give the parameters of the compositions"),
    ("data={simulate: dirichlet, n: 9, alpha: [1]}", "data.alpha: [1] must have at least 2 entries"),
    (
        "data={simulate: dirichlet, n: 9, alpha: [1, 2], columns: [a]}",
        "data.columns: dirichlet has 2 columns; name them all, or leave this out",
    ),
    ("model.kernel=nromal", 'model.kernel: "nromal" is unknown; did you mean "normal"?'),
    ("model.base.kind=nigg", 'model.base.kind: "nigg" is unknown; did you mean "nig"?'),
    ("advise.population={kind: cauchy}", 'advise.population.kind: "cauchy" is unknown; one of beta, normal'),
    ("advise.population={}", "advise.population.kind: missing; one of beta, normal"),
    ("model.base.lamda=3", 'model.base.lamda: unknown key; did you mean "lambda"?'),
    ("model.base.lambda_=3", 'model.base.lambda_: unknown key; did you mean "lambda"?'),
    ("model.base.lambda=0", "model.base.lambda: 0 must be greater than 0"),
    ("model.base.mu0=null", "model.base.mu0: missing; give it, or leave out model.base"),
    ("model.base.empirical=yes", 'model.base.empirical: must be true, false or paper, not "yes"'),
    ("model.base=3", "model.base: must be a mapping of keys, not 3"),
    ("model=3", "model: must be a mapping of keys, not 3"),
    ("model.discount=1", "model.discount: 1 must be less than 1"),
    ("model.discount=-0.1", "model.discount: -0.1 must be at least 0"),
    ("model.concentration=0", "model.concentration: 0 must be greater than 0"),
    ("model.concentration=[1]", "model.concentration: must be a number, not [1]"),
    ("model.concentration={shape: 2}", "model.concentration.rate: missing"),
    ("model.concentration={shape: 0, rate: 1}", "model.concentration.shape: 0 must be greater than 0"),
    ("model.concentration.shape=2", "model.concentration.shape: model.concentration is 1.0, not a section"),
    ("summary.grid=[0, 1, 1000000000]", "summary.grid[2]: 1000000000 must be at most 10000"),
    ("summary.grid=[0, 1, 1]", "summary.grid[2]: 1 must be at least 2"),
    ("summary.grid=[0, 1]", "summary.grid: must be [lo, hi, points], not [0, 1]"),
    ("summary.grid=[1, 0, 10]", "summary.grid: [1, 0, ...] must have its lower end below its upper one"),
    ("summary.level=1", "summary.level: 1 must be less than 1"),
    ("summary.baseline=deconvolution", 'did you mean "deconvolution_kde"?'),
    ("sampler", "write section.key=value"),
    ("=3", "write section.key=value"),
    ("sampler..kind=3", "write section.key=value"),
    ("mechanism.epsilon=[1", "--set mechanism.epsilon: line 1:"),
]


@pytest.mark.parametrize(("override", "expected"), WRONG, ids=[override for override, _ in WRONG])
def test_what_is_wrong_is_named(override: str, expected: str) -> None:
    text = message(override)
    assert (
        text.startswith(expected) or ("write" in expected or "did you mean" in expected) and expected in text
    )


def test_concentration_may_be_negative_above_minus_the_discount() -> None:
    spec = load_spec(full_spec(), ["model.discount=0.5", "model.concentration=-0.4"])
    assert spec.model is not None
    assert spec.model.concentration == -0.4
    text = message("model.discount=0.5", "model.concentration=-0.5")
    assert text == "model.concentration: -0.5 must be greater than -model.discount (-0.5)"


def test_classical_calibration_is_refused_beyond_epsilon_1_with_the_reason() -> None:
    kept = "mechanism={kind: gaussian, epsilon: 1, delta: 1e-5, calibration: classical}"
    assert load_spec(full_spec(), [kept]).mechanism is not None
    with pytest.raises(
        PrivacyError, match=r"mechanism.calibration: .*epsilon <= 1 only.*0\.41.*use analytic"
    ):
        load_spec(full_spec(), [kept.replace("epsilon: 1,", "epsilon: 10,")])


def test_bounds_are_needed_where_noise_is_scaled_to_them() -> None:
    source: dict[str, Any] = {"mechanism": {"kind": "laplace", "epsilon": 1}, "release": {"path": "z.npy"}}
    assert message(source=source).startswith("mechanism.domain: missing")
    source["mechanism"] = {"kind": "laplace", "scale": 1}
    load_spec(source)
    data = {"path": "z.csv", "columns": ["a", "b"]}
    assert message(source={"mechanism": source["mechanism"], "data": data}).startswith(
        "mechanism.domain: missing"
    )
    one = {"kind": "laplace", "scale": 1, "domain": [0, 1]}
    assert message(source={"mechanism": one, "data": data}) == (
        "mechanism.domain: has 1 pair of bounds for 2 columns"
    )


def test_several_mistakes_have_a_line_each() -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(full_spec(), ["sampler.chains=0", "mechanism.epsilon=x", "sampler.seed=1.5"])
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "mechanism.epsilon",
        "sampler.chains",
        "sampler.seed",
    ]


def test_many_mistakes_are_counted() -> None:
    with pytest.raises(SpecError) as caught:
        load_spec({f"section{i}": i for i in range(20)})
    lines = str(caught.value).splitlines()
    assert len(lines) == 7
    assert lines[-1] == "and 14 more"


@pytest.mark.parametrize("kind", ["private_neal5", "private_slice", "blocked_gibbs", "neal8"])
def test_no_noise_refuses_what_proposes_confidential_values(kind: str) -> None:
    plain = load_spec({"model": {"base": {"empirical": True}}, "sampler": {"kind": kind}})
    if kind == "private_neal5":
        with pytest.raises(SpecError, match=r"^sampler.kind: private_neal5 .* use neal8, private_slice or"):
            check_combination("none", plain)
    else:
        check_combination("none", plain)
    check_combination("laplace", plain)
    if kind in ("private_slice", "blocked_gibbs"):
        proposing = load_spec(plain, ["sampler.latent=metropolis"])
        with pytest.raises(SpecError, match=r"^sampler.latent: metropolis .* use latent: exact"):
            check_combination("none", proposing)
        with pytest.raises(SpecError, match=r"^sampler.latent: metropolis"):
            load_spec(proposing, ["mechanism.kind=none"])
        check_combination("gaussian", proposing)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({}, "the spec: is empty"),
        ([], "a spec is a mapping, a path or a RunSpec, not list"),
        ({1: 2}, "1: unknown key"),
        ({"data": 5}, "data: must be a mapping of keys, not 5"),
        ({"mechanism": {"epsilon": 5}}, "mechanism.kind: missing; one of laplace, gaussian, wavelet"),
    ],
)
def test_what_is_no_spec_at_all(source: Any, expected: str) -> None:
    assert message(source=source).startswith(expected)


def test_a_checked_spec_does_not_change() -> None:
    spec = load_spec(full_spec())
    sampler: Any = spec.sampler
    with pytest.raises(ValueError, match="frozen"):
        sampler.chains = 7
    assert load_spec(spec) is spec
