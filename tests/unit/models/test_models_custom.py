"""Models of the users' own: exact all the same, and every mistake named with its line."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, norm

import dpmix
from dpmix.api.release_of import find_release
from dpmix.api.task import build
from dpmix.errors import DpmixError, SamplerError, SpecError
from dpmix.laws.every import law_of
from dpmix.models import sum_augmentation
from dpmix.models.custom.model import FUNCTIONS, load_code
from dpmix.spec import load_spec
from dpmix.spec.starters import starter_files

ROOT = Path(__file__).parents[3]
BERNOULLI = """
from typing import NamedTuple

import numpy as np

class Model(NamedTuple):
    n: float
    scale: float
    a: float = 2.0
    b: float = 1.0
    trap: float = 0.0

PARAMETERS = {"p": 0}
WIDTH = 1
SIZE = 1

def draw_prior(model, rng, theta):
    theta[0] = rng.beta(model.a, model.b)

def draw_record(model, rng, theta, record):
    record[0] = 1.0 if rng.random() < theta[0] else 0.0

def draw_theta(model, rng, theta, records):
    successes = 0.0
    for i in range(len(records)):
        successes += records[i, 0]
    if model.trap == 1.0 and len(records) == 5:
        raise ValueError("five records")
    theta[0] = rng.beta(model.a + successes, model.b + len(records) - successes)

def statistic(model, released, record, out):
    out[0] = record[0]

def log_release(model, released, sums):
    if model.trap == 2.0:
        return -np.inf
    if model.trap > 2.0 and sums[0] == 5.0:
        return np.nan if model.trap == 3.0 else np.inf
    return -abs(released[0] - sums[0]) / model.scale
"""


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """A spec of the Bernoulli model, with its file and release."""
    (tmp_path / "my_model.py").write_text(BERNOULLI)
    (tmp_path / "s.csv").write_text("s\n3.7\n")
    return {
        "release": {"path": str(tmp_path / "s.csv"), "columns": ["s"]},
        "model": {"kind": "custom", "file": str(tmp_path / "my_model.py"), "n": 5, "scale": 0.8},
        "sampler": {"iterations": 60, "burn_in": 20, "chains": 1, "seed": 1},
    }


def draws(spec: dict[str, Any], count: int, seed: int) -> np.ndarray:
    checked = load_spec(spec)
    release, _ = find_release(checked, None)
    model = build(checked, release, allow_code=True)
    return model.make_chain(np.random.default_rng(seed)).run(count, thin=2, skip=100)[next(iter(model.sizes))]  # type: ignore[attr-defined]  # a custom model


def gap(values: np.ndarray, mean: float) -> float:
    """Return the difference of a chain's mean from the exact one, in standard errors of 50 batch means."""
    batches = values[: len(values) // 50 * 50].reshape(50, -1).mean(axis=1)
    return float(abs(batches.mean() - mean) / (batches.std(ddof=1) / np.sqrt(50)))


@pytest.mark.parametrize("sampler", ["data_augmentation", "soma"])
def test_the_posterior_is_exact(spec: dict[str, Any], sampler: str) -> None:
    spec["sampler"]["kind"] = sampler
    p = draws(spec, 20_000, 3)
    weights = np.array(
        [
            math.comb(5, k)
            * math.exp(-abs(3.7 - k) / 0.8)
            * math.exp(_log_beta(2 + k, 6 - k) - _log_beta(2, 1))
            for k in range(6)
        ]
    )
    weights /= weights.sum()
    posterior = [beta(2 + k, 6 - k) for k in range(6)]
    assert gap(p, sum(w * d.mean() for w, d in zip(weights, posterior, strict=True))) < 4
    assert gap(p**2, sum(w * (d.var() + d.mean() ** 2) for w, d in zip(weights, posterior, strict=True))) < 4
    assert gap((p < 0.5) * 1.0, sum(w * d.cdf(0.5) for w, d in zip(weights, posterior, strict=True))) < 4
    # on disk, other processes would look for the types of a module that they do not have
    compiled = [f for f in vars(sum_augmentation).values() if "Law_" in str(getattr(f, "signatures", ""))]
    assert compiled and not [f for f in compiled if f._cache.cache_path is not None]


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def test_a_median_chosen_by_the_exponential_mechanism(tmp_path: Path) -> None:
    # n = 2 records, sd 3: given the mean the counts below the candidates follow from the two cells
    (tmp_path / "m.csv").write_text("median\n8\n")
    spec = {
        "release": {"path": str(tmp_path / "m.csv"), "columns": ["median"]},
        "model": {
            "kind": "custom",
            "file": str(ROOT / "configs/models/private_median.py"),
            "n": 2,
            "epsilon": 3,
        },
    }
    found = draws(spec, 30_000, 5)
    edges = np.concatenate(([-np.inf], np.arange(21), [np.inf]))
    below = np.array([[cell <= r for r in range(21)] for cell in range(22)], dtype=float)
    chosen = np.empty((22, 22))
    for i, j in itertools.product(range(22), repeat=2):
        scores = np.exp(-3 * np.abs(below[i] + below[j] - 1) / 2)
        chosen[i, j] = scores[8] / scores.sum()

    def likelihood(mean: float) -> float:
        masses = np.diff(norm.cdf(edges, mean, 3))
        return float(masses @ chosen @ masses) * norm.pdf(mean, 10, 3)

    total, first, second = (
        quad(lambda mean, k=k: mean**k * likelihood(mean), -40, 60, limit=400, epsabs=1e-12)[0]
        for k in range(3)
    )
    assert gap(found, first / total) < 4
    assert gap(found**2, second / total) < 4
    # the spec that ships with it runs
    dpmix.fit(
        ROOT / "configs/custom_median.yaml",
        output=tmp_path / "c.h5",
        overrides=["sampler.iterations=300", "sampler.burn_in=100"],
        quiet=True,
        allow_code=True,
    )
    assert 10 < dpmix.summarize(tmp_path / "c.h5").to_json()["parameters"]["mean"]["mean"] < 13


def test_chains_files_summaries_and_resuming(spec: dict[str, Any], tmp_path: Path) -> None:
    spec["sampler"]["chains"] = 2
    path = tmp_path / "c.h5"
    dpmix.fit(spec, output=path, quiet=True, allow_code=True)
    summary = dpmix.summarize(path).to_json()
    assert list(summary["parameters"]) == ["p"]
    assert summary["acceptance"]["mean"] > 0.3
    assert summary["acceptance"]["bound"] is None
    result = dpmix.fit(spec, output=path, quiet=True, allow_code=True, resume=True)
    assert not result.written
    (tmp_path / "my_model.py").write_text(BERNOULLI + "\n# changed\n")
    with pytest.raises(SpecError, match=r"model\.file: the finished .* has another text"):
        dpmix.fit(spec, output=path, quiet=True, allow_code=True, resume=True)


def test_code_runs_only_when_allowed(spec: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "my_model.py").write_text("raise RuntimeError('it ran')\n")
    with pytest.raises(SpecError, match="give --allow-code if you trust it"):
        dpmix.fit(spec, output=tmp_path / "c.h5", quiet=True)
    dpmix.calibrate(
        {"mechanism": {"kind": "laplace", "epsilon": 1, "domain": [0, 1]}, "model": spec["model"]}
    )
    with pytest.raises(SpecError, match=r"my_model\.py, line 1: RuntimeError: it ran"):
        dpmix.fit(spec, output=tmp_path / "c.h5", quiet=True, allow_code=True)


def refused(spec: dict[str, Any], text: str) -> str:
    Path(spec["model"]["file"]).write_text(text)
    checked = load_spec(spec)
    release, _ = find_release(checked, None)
    with pytest.raises(DpmixError) as caught:
        build(checked, release, allow_code=True)
    assert caught.value.exit_code in (2, 3)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_missing_functions_are_named(spec: dict[str, Any], name: str) -> None:
    said = refused(spec, BERNOULLI.replace(f"def {name}(", "def other("))
    assert said == f"my_model.py: lacks the function {name}({', '.join(FUNCTIONS[name])})"
    wrong = BERNOULLI.replace(f"def {name}(model, ", f"def {name}(")
    assert f"line {line_of(wrong, f'def {name}(')}: {name} must take" in refused(spec, wrong)


def test_what_else_is_missing_is_named(spec: dict[str, Any]) -> None:
    for name in ("PARAMETERS", "WIDTH", "SIZE"):
        assert refused(spec, BERNOULLI.replace(f"{name} =", "OTHER =")).startswith(
            f"my_model.py: lacks {name}"
        )
    assert "lacks the class Model" in refused(
        spec, BERNOULLI.replace("class Model(NamedTuple)", "class Model")
    )
    assert "SIZE must be a whole number" in refused(spec, BERNOULLI.replace("SIZE = 1", "SIZE = 0"))
    assert "'p q' must be a name" in refused(spec, BERNOULLI.replace('{"p": 0}', '{"p q": 0}'))
    assert "draw is taken" in refused(spec, BERNOULLI.replace('{"p": 0}', '{"draw": 0}'))
    clash = '{"rate": 1, "rate_entry": 0}'
    assert "rate_entry is taken" in refused(spec, BERNOULLI.replace('{"p": 0}', clash))


@pytest.mark.parametrize(
    ("start", "draw"),
    [
        ("", "np.random.beta"),
        ("from numpy.random import beta\n", "beta"),
        ("import random\n", "random.betavariate"),
        ("def of(a, b):\n    return np.random.beta(a, b)\n", "of"),
        ("import numba\nof = numba.njit(lambda a, b: np.random.beta(a, b))\n", "of"),
        ("import numba\n@numba.njit\ndef of(a, b):\n    return np.random.beta(a, b)\n", "of"),
        ("def _of():\n    return lambda a, b: np.random.beta(a, b)\n\nof = _of()\n", "of"),
        ("if True:\n    def of(a, b): return np.random.beta(a, b)\n", "of"),
    ],
)
def test_randomness_that_no_seed_reaches_is_refused(spec: dict[str, Any], start: str, draw: str) -> None:
    text = BERNOULLI.replace("rng.beta(model.a, model.b)", f"{draw}(model.a, model.b)") + start
    said = refused(spec, text)
    name = "of" if draw == "of" else "draw_prior"
    drawn = "np.random.beta" if draw == "of" else draw
    line = line_of(text, f"{drawn}(")
    assert said.startswith(f"my_model.py, line {line}: {name} draws from {drawn}")
    assert said.endswith("which no seed of the spec reaches; draw from rng")


def test_a_module_beside_the_file_is_refused(
    spec: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "helper_of_a_model.py").write_text("CAP = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    said = refused(spec, BERNOULLI + "from helper_of_a_model import CAP\n")
    (tmp_path / "folder_of_a_model").mkdir()  # of which Python makes a package that is no file
    (tmp_path / "folder_of_a_model" / "helper.py").write_text("CAP = 3\n")
    within = refused(spec, BERNOULLI + "from folder_of_a_model.helper import CAP\n")
    assert "imports folder_of_a_model, a file of its own" in within
    assert "imports helper_of_a_model" in said and "put what it needs of it into my_model.py" in said


def test_records_are_not_draw_theta_s_to_write(spec: dict[str, Any]) -> None:
    text = BERNOULLI.replace("successes = 0.0", "successes = 0.0\n    records[0, 0] = 0.5")
    assert "draw_theta must leave records as they are; it writes into theta" in refused(spec, text)


@pytest.mark.parametrize(
    ("line", "added", "said"),
    [
        (
            "out[0] = record[0]",
            "record[0] = min(record[0], 0.5)",
            "statistic must leave record as it is; it writes",
        ),
        (
            "out[0] = record[0]",
            "released[0] -= 1.0",
            "statistic must leave released as it is; it writes into out",
        ),
        ("return -abs", "sums /= model.n", "log_release must leave sums as they are; it returns a number"),
        (
            "record[0] = 1.0",
            "theta[0] *= 0.5",
            "draw_record must leave theta as it is; it writes into record",
        ),
        (
            "successes = 0.0",
            "model.cuts[0] += 1.0",
            "draw_theta must leave model as it is; it writes into theta",
        ),
    ],
)
def test_what_is_not_theirs_is_not_for_functions_to_write(
    spec: dict[str, Any], line: str, added: str, said: str
) -> None:
    spec["model"]["cuts"] = [0.25, 0.75]
    text = BERNOULLI.replace("trap: float = 0.0", "trap: float = 0.0\n    cuts: np.ndarray = None")
    assert said in refused(spec, text.replace(f"    {line}", f"    {added}\n    {line}", 1))


def test_what_the_trial_does_not_see_harms_nothing_in_a_run(spec: dict[str, Any]) -> None:
    """Records that are clamped in place, sums that are changed, and a place beyond the end of an array."""
    text = BERNOULLI.replace("out[0] = record[0]", "record[0] = min(record[0], 7.0)\n    out[0] = record[0]")
    text = text.replace("return -abs", "sums[0] = min(sums[0], 50.0)\n    return -abs")
    clamped = "successes = 0.0\n    if len(records) == 2:\n        records[:] = 0.5"
    text = text.replace("successes = 0.0", f"{clamped}\n    theta[len(records) - 3] = 0.5")
    Path(spec["model"]["file"]).write_text(text)
    checked = load_spec(spec)
    law = build(checked, find_release(checked, None)[0], allow_code=True).law  # type: ignore[attr-defined]  # a custom model
    record, out, sums = np.array([8.0]), np.zeros(1), np.array([99.0])
    sum_augmentation.statistic(law, record, out)
    assert sum_augmentation.log_release(law, sums) == -abs(3.7 - 50.0) / 0.8
    assert (record[0], out[0], sums[0]) == (8.0, 7.0, 99.0)
    records = np.zeros((2, 1))
    sum_augmentation.draw_theta(law, np.random.default_rng(1), np.zeros(1), records, None)
    assert not records.any()
    with pytest.raises(IndexError):
        sum_augmentation.draw_theta(law, np.random.default_rng(1), np.zeros(1), np.zeros((5, 1)), None)


def test_what_is_of_all_chains_cannot_be_changed_in_a_run(spec: dict[str, Any]) -> None:
    """Also where the trial does not come to it: it would be another release from then on."""
    spec["model"]["cuts"] = [0.25, 0.75]
    text = BERNOULLI.replace("trap: float = 0.0", "trap: float = 0.0\n    cuts: np.ndarray = None")
    for name in ("released", "model.cuts"):
        added = f"if record[0] > 7.0:\n        {name}[0] = 0.0"
        changed = text.replace("out[0] = record[0]", f"{added}\n    out[0] = record[0]")
        said = refused(spec, changed)
        assert "statistic cannot be compiled: it may change neither released nor an array of model" in said
        assert said.startswith(f"my_model.py, line {line_of(changed, f'{name}[0] = 0.0')}: ")


def test_what_goes_wrong_is_told_with_its_line(spec: dict[str, Any]) -> None:
    text = BERNOULLI.replace("out[0] = record[0]", "out[5] = record[0]")
    line = line_of(text, "out[5]")
    assert refused(spec, text) == (
        f"my_model.py, line {line}: statistic raised IndexError: "
        "index 5 is out of bounds for axis 0 with size 1"
    )
    text = BERNOULLI.replace("theta[0] = rng.beta(model.a, model.b)", "theta[0] = missing(model.a)")
    assert f"line {line_of(text, 'missing(')}: draw_prior raised NameError" in refused(spec, text)
    text = BERNOULLI.replace("theta[0] = rng.beta(model.a, model.b)", "pass")
    assert "draw_prior must fill all of theta" in refused(spec, text)
    text = BERNOULLI.replace("return -abs", "x = -abs")
    assert "log_release must return a number" in refused(spec, text)
    text = BERNOULLI.replace("out[0] = record[0]", "out[0] = record[0]\n    return out")
    assert "statistic must return nothing" in refused(spec, text)
    assert "line 3: invalid syntax" in refused(spec, "\n\nclass Model(:\n")
    text = BERNOULLI.replace("out[0] = record[0]", "out[0] = dict(a=[1, 'b', record]).get('a')[2][0]")
    said = refused(spec, text)
    assert f"line {line_of(text, 'out[0] = dict')}: statistic cannot be compiled" in said


def test_what_goes_wrong_in_a_run_is_told(spec: dict[str, Any], tmp_path: Path) -> None:
    # not in the trial, which is of three records
    spec["model"]["trap"] = 1
    with pytest.raises(SpecError) as caught:
        dpmix.fit(spec, output=tmp_path / "c.h5", quiet=True, allow_code=True)
    line = line_of(BERNOULLI, "raise ValueError")
    said = f"my_model.py, line {line}: a function raised ValueError: five records"
    assert str(caught.value) == said
    copy = tmp_path / "copy" / "my_model.py"  # the same text elsewhere, which is compiled by now
    copy.parent.mkdir()
    copy.write_text(BERNOULLI)
    spec["model"]["file"] = str(copy)
    with pytest.raises(SpecError) as caught:
        dpmix.fit(spec, output=tmp_path / "e.h5", quiet=True, allow_code=True)
    assert str(caught.value) == said
    spec["model"]["trap"] = 2
    with pytest.raises(SamplerError, match="chain 0 found no records under which log_release is a finite"):
        dpmix.fit(spec, output=tmp_path / "d.h5", quiet=True, allow_code=True)
    assert not list(tmp_path.glob("[cde].h5"))


@pytest.mark.parametrize(
    ("trap", "returned", "sampler"),
    [
        (3, "NaN", "data_augmentation"),
        pytest.param(3, "NaN", "soma", marks=pytest.mark.matrix),
        pytest.param(4, "inf", "data_augmentation", marks=pytest.mark.matrix),
        (4, "inf", "soma"),
    ],
)
def test_what_is_no_log_density_stops_a_run(
    spec: dict[str, Any], tmp_path: Path, sampler: str, trap: int, returned: str
) -> None:
    """It is neither likely nor unlikely: passing over it would make a posterior of nothing that is stated."""
    spec["model"]["trap"] = trap
    spec["sampler"]["kind"] = sampler
    with pytest.raises(SamplerError) as caught:
        dpmix.fit(spec, output=tmp_path / "c.h5", quiet=True, allow_code=True)
    line = line_of(BERNOULLI, "def log_release")
    assert str(caught.value) == (
        f"my_model.py, line {line}: log_release returned {returned}; return a number, or -inf where the "
        "records cannot have given the release"
    )
    assert not (tmp_path / "c.h5").exists()


def test_hyperparameters_are_checked(spec: dict[str, Any]) -> None:
    del spec["model"]["scale"]
    assert refused(spec, BERNOULLI) == "model.scale: missing; Model of my_model.py has no default for it"
    spec["model"] |= {"scale": 1.0, "c": 3}
    assert refused(spec, BERNOULLI) == "model.c: unknown key; Model of my_model.py has n, scale, a, b, trap"
    del spec["model"]["c"]
    spec["model"]["a"] = "two"
    assert refused(spec, BERNOULLI) == "model.a: must be a number or a list of numbers"
    for value in (math.inf, [1.0, math.nan]):
        spec["model"]["a"] = value
        assert refused(spec, BERNOULLI) == "model.a: must be finite"
    with pytest.raises(SpecError, match=r"model\.n: missing"):
        find_release(load_spec({**spec, "model": {**spec["model"], "n": None}}), None)
    for n in (0, 2.5, "many"):
        with pytest.raises(SpecError, match=rf"model\.n: {n} must be a whole number of at least 1"):
            find_release(load_spec({**spec, "model": {**spec["model"], "n": n}}), None)


def test_a_number_of_records_that_is_not_the_release_s_is_refused(spec: dict[str, Any]) -> None:
    """The database has as many records as the release says; what a function makes of another n is wrong."""
    checked = load_spec(spec)
    release = replace(find_release(checked, None)[0], n=7)
    with pytest.raises(SpecError, match=r"model\.n: 5, but the release is of 7 records; leave it out"):
        build(checked, release, allow_code=True)


@pytest.mark.parametrize("key", [pytest.param("scale", marks=pytest.mark.matrix), "epsilon"])
def test_noise_that_is_not_the_release_s_is_refused(key: str, spec: dict[str, Any], tmp_path: Path) -> None:
    """A posterior of another mechanism than the release was made by would be confidently wrong."""
    (tmp_path / "my_model.py").write_text(BERNOULLI.replace("scale", key))
    law = {"kind": "perturbed_histogram", "bins": 1, "noise": "laplace", "domain": [[0, 1]], "scale": [0.8]}
    del spec["model"]["scale"]
    release = replace(find_release(load_spec(spec), None)[0], mechanism=law_of(law), epsilon=2.5)
    own = {"scale": 0.8, "epsilon": 2.5}[key]

    def built(value: float | None) -> float:
        checked = load_spec({**spec, "model": spec["model"] | ({} if value is None else {key: value})})
        return float(getattr(build(checked, release, allow_code=True).law.model, key))

    assert built(None) == own
    assert built(own * (1.0 + 1e-9)) == own * (1.0 + 1e-9)  # noise is calibrated on a grid
    with pytest.raises(SpecError) as caught:
        built(2.0 * own)
    assert str(caught.value) == (
        f"model.{key}: {2.0 * own}, but the release was made with {own}; leave it out, or call it otherwise "
        "in the class Model where it is another quantity"
    )
    release = replace(release, epsilon=None, mechanism=law_of({"kind": "elsewhere", "scale": []}))
    assert built(2.0 * own) == 2.0 * own  # nothing is known of it


def test_the_starter_comes_with_its_files(tmp_path: Path) -> None:
    found = starter_files("custom")
    assert list(found) == ["custom.yaml", "my_model.py", "released.csv"]
    for name, text in found.items():
        (tmp_path / name).write_text(text)
    code = load_code(tmp_path / "my_model.py", allowed=True)
    model = code.hyperparameters({"n": 200, "scale": 2.0}, {})
    code._trial(model, np.array([613.4, 9.8]), 200, code.functions)  # as Python
    assert json.dumps(list(code.sizes(model))) == '["rate"]'
