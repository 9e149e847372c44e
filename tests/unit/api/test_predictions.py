"""Predictions of new records: exact ones, those of the summary, order, groups, and what is refused.

The comparison with all databases is in Monte Carlo standard errors of 200 batch means, all below 4.5: a right
sampler would fail one of 4 with probability below 1e-4. Coverage is compared by binomial tests at 1e-6, two
of them.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import optimize, special, stats

import dpmix
from dpmix.cli.commands import app
from dpmix.errors import DataError, DpmixError, SpecError, UsageError
from dpmix.models import predictor_base
from dpmix.models.linear_regression.meaning import responses
from dpmix.run.chains_reader import NamedChains, read_chains
from dpmix.run.exit_codes import run
from dpmix.spec import load_spec
from dpmix.store.h5 import reading
from dpmix.summary.predicting import predictor_of
from dpmix.summary.summary_result import Summary
from tests.helpers.chains_files import states_of_mixture, write_chains
from tests.helpers.pages import undrawn
from tests.oracles.mc import discrepancies
from tests.unit.models.test_models_naive_bayes import released

LIMIT, LEVEL = 4.5, 1e-6
VOTES = {
    "columns": ["age", "town", "vote"],
    "categories": {"age": ["18", "30", "50+"], "town": ["yes", "no", "missing"], "vote": ["a", "b, or c"]},
}
SHORT = {"iterations": 1200, "burn_in": 200, "chains": 2, "seed": 1}


def draws_of(path: Path) -> dict[str, Any]:
    chains = read_chains([path])
    assert isinstance(chains, NamedChains)
    return {p.name: chains.read(p).reshape(-1, *p.shape[2:]) for p in chains.parameters}


def planted(path: Path, target: Path, **values: Any) -> Path:
    """Copy a chains file, with other draws in all of its chains."""
    shutil.copy(path, target)
    with h5py.File(target, "r+") as file:
        for name, draws in values.items():
            table = file[f"posterior/{name}"]
            table[...] = np.asarray(draws).reshape(table.shape)
    return target


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = released(np.arange(12.0) % 5 + 20, [3, 3], 2, 150, **VOTES)
    path = tmp_path_factory.mktemp("votes") / "chains.h5"
    dpmix.fit({"model": {"kind": "naive_bayes"}, "sampler": SHORT}, release, path, quiet=True, jobs=1)
    return path


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("line"), np.random.default_rng(2)
    x = np.column_stack([rng.uniform(20, 70, 300), rng.uniform(8, 20, 300)])
    y = 1000.0 * (2.0 + 0.2 * x[:, 0] + 1.5 * x[:, 1] + rng.normal(0.0, 3.0, 300))
    np.savetxt(folder / "t.csv", np.column_stack([x, y]), delimiter=",", header="age,school,pay", comments="")
    spec = {
        "data": {"path": str(folder / "t.csv"), "columns": ["age", "school", "pay"]},
        "mechanism": {
            "kind": "clamped_moments",
            "bounds": [[18, 80], [0, 25], [0, 100_000]],
            "epsilon": 20.0,
        },
        "model": {"kind": "linear_regression", "predict": [[30, 16], [65, 9]]},
        "sampler": SHORT,
    }
    dpmix.fit(spec, dpmix.privatize(spec, quiet=True), folder / "chains.h5", quiet=True, jobs=1)
    return folder / "chains.h5"


def table(folder: Path, text: str, name: str = "at.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def by_hand(draws: dict[str, Any], age: int, town: int) -> Any:
    """Probabilities of the classes under each draw, shape (draws, classes)."""
    joint = draws["p"] * draws["p_feature_1"][:, :, age] * draws["p_feature_2"][:, :, town]
    return joint / joint.sum(axis=1, keepdims=True)


def test_classes_are_those_computed_by_hand(votes: Path, tmp_path: Path) -> None:
    cells = list(itertools.product(range(3), range(3)))
    ages, towns = ("18", " 30.0", "50+"), ("yes", "no", "NA")
    rows = [f"{towns[t]},x,{ages[a]}" for a, t in cells]
    found = dpmix.predict(votes, table(tmp_path, "town,more,age\n" + "\n".join(rows) + "\n"), quiet=True)
    assert found.columns == tuple(f"{f}[{c}]" for c in ("a", "b, or c") for f in ("p", "lower", "upper"))
    draws = draws_of(votes)
    for row, (a, t) in enumerate(cells):
        p = by_hand(draws, a, t)
        for c, name in enumerate(("a", "b, or c")):
            ends = np.quantile(p[:, c], [0.025, 0.975])
            wanted = [p[:, c].mean(), *ends]
            own = [found[f"{f}[{name}]"][row] for f in ("p", "lower", "upper")]
            np.testing.assert_allclose(own, wanted, rtol=1e-12)
    other = dpmix.predict(votes, tmp_path / "at.csv", overrides=["summary.level=0.5"], quiet=True)
    np.testing.assert_allclose(
        other["upper[a]"][0], np.quantile(by_hand(draws, 0, 0)[:, 0], 0.75), rtol=1e-12
    )


def test_neither_order_nor_copies_nor_pieces_matter(
    votes: Path, line: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    ages, towns = rng.integers(0, 3, 500), rng.integers(0, 2, 500)
    classes = [f"{('18', '30', '50+')[a]},{('yes', 'no')[t]}" for a, t in zip(ages, towns, strict=True)]
    lines = [f"{x:.6g},{y:.6g}" for x, y in rng.uniform(15, 80, (500, 2))]
    order = rng.permutation(500)
    for path, header, rows, interval in (
        (votes, "age,town", classes, None),
        (line, "age,school", lines, "record"),
    ):
        monkeypatch.undo()
        whole = dpmix.predict(
            path, table(tmp_path, "\n".join([header, *rows])), interval=interval, quiet=True
        )
        monkeypatch.setattr("dpmix.api.predict.PIECE", 7)
        monkeypatch.setattr(predictor_base, "_BLOCK", 5000)
        monkeypatch.setattr(predictor_base, "_KNOWN", 3)
        mixed = [rows[i] for i in order]
        found = dpmix.predict(
            path, table(tmp_path, "\n".join([header, *mixed])), interval=interval, quiet=True
        )
        np.testing.assert_array_equal(found.values, whole.values[order])
        alone = dpmix.predict(path, table(tmp_path, f"{header}\n{rows[7]}\n"), interval=interval, quiet=True)
        np.testing.assert_array_equal(alone.values[0], whole.values[7])


def exact_class(released_counts: Any, scale: float, prior: float, n: int, feature: int) -> float:
    """Posterior mean of p_0 p_0[x] / sum_c p_c p_c[x], one feature of two levels, by databases."""
    nodes = {}

    def rule(a: float, b: float) -> tuple[Any, Any]:
        if (a, b) not in nodes:
            x, w = special.roots_jacobi(60, b - 1, a - 1)
            nodes[a, b] = (x + 1) / 2, w / w.sum()
        return nodes[a, b]

    total = weight = 0.0
    for first in range(n + 1):  # records of class 0, and of level 0 among each class
        for here in range(first + 1):
            for there in range(n - first + 1):
                counts = np.array([here, first - here, there, n - first - there])
                log = special.gammaln(n + 1) - special.gammaln(counts + 1).sum()
                log += special.betaln(prior + first, prior + n - first)
                log += special.betaln(prior + here, prior + first - here)
                log += special.betaln(prior + there, prior + n - first - there)
                w = float(np.exp(log - np.abs(released_counts - counts).sum() / scale))
                p, wp = rule(prior + first, prior + n - first)
                s, ws = rule(prior + here, prior + first - here)
                t, wt = rule(prior + there, prior + n - first - there)
                s, t = (s, t) if feature == 0 else (1 - s, 1 - t)
                joint = p[:, None, None] * s[None, :, None]
                ratio = joint / (joint + (1 - p)[:, None, None] * t[None, None])
                total += w * float(np.einsum("i,j,k,ijk->", wp, ws, wt, ratio))
                weight += w
    return total / weight


def test_summaries_and_pages_name_classes_and_categories(votes: Path, tmp_path: Path) -> None:
    summary = dpmix.summarize(votes, report=tmp_path / "s.html")
    assert isinstance(summary, Summary)
    draws, content = draws_of(votes), summary.to_json()["parameters"]
    assert content["p[b, or c]"]["label"] == "vote = b, or c"
    assert content["p_feature_1[age,a,50+]"]["label"] == "age = 50+ given vote = a"
    assert "label" not in content.get("log_likelihood", {})
    first = summary.by_class[0]
    assert (first.column, first.class_column, first.group) == ("age", "vote", "")
    assert (first.classes, first.levels) == (("a", "b, or c"), ("18", "30", "50+"))
    np.testing.assert_allclose(first.mean, draws["p_feature_1"].mean(axis=0))
    np.testing.assert_allclose(first.upper, np.quantile(draws["p_feature_1"], 0.975, axis=0))
    text, page = summary.to_text(), (tmp_path / "s.html").read_text(encoding="utf-8")
    assert "p[vote = b, or c]" in text
    assert "  probability of vote = a " in text
    assert max(map(len, text.splitlines())) <= 96
    assert ">vote = b, or c</text>" in page
    assert 'aria-label="age by vote: most apart at age = ' in page
    assert "p_feature_1[age," not in page


def test_classes_are_those_of_all_databases(tmp_path: Path) -> None:
    counts, n, prior, scale = np.array([2.3, -0.4, 0.2, 1.9]), 4, 2.0, 1.5
    release = released(counts, [2], 2, n, scale=scale)
    spec = {"model": {"kind": "naive_bayes", "prior": prior}, "sampler": SHORT | {"iterations": 20_200}}
    dpmix.fit(spec, release, tmp_path / "c.h5", quiet=True, jobs=1)
    # the release names no column and no category: columns are called by their numbers, levels too
    found = dpmix.predict(tmp_path / "c.h5", table(tmp_path, "1\n1\n2\n"), quiet=True)
    assert found.columns[::3] == ("p[1]", "p[2]")
    draws = draws_of(tmp_path / "c.h5")
    for x in range(2):
        exact = exact_class(counts, scale, prior, n, x)
        joint = draws["p"] * draws["p_feature_1"][:, :, x]
        gaps = discrepancies(joint[:, :1] / joint.sum(axis=1, keepdims=True), np.array([exact]))
        assert abs(gaps).max() < LIMIT
        assert found["p[1]"][x] == pytest.approx(exact, abs=0.01)
        assert found["p[1]"][x] + found["p[2]"][x] == pytest.approx(1.0)


def test_responses_are_those_of_the_summary(line: Path, tmp_path: Path) -> None:
    at = table(tmp_path, "pay,school,age\n?,16,30\n,9,65\n")
    found = dpmix.predict(line, at, quiet=True)
    assert found.columns == ("mean", "lower", "upper")
    rows = dpmix.summarize(line).to_json()["parameters"]
    for row in range(2):
        own = rows[f"prediction[{row}]"]
        wanted = [own["mean"], own["quantiles"]["0.025"], own["quantiles"]["0.975"]]
        np.testing.assert_allclose(found.values[row], wanted, rtol=1e-10)
    draws = draws_of(line)
    new = dpmix.predict(line, at, interval="record", quiet=True)
    np.testing.assert_array_equal(new["mean"], found["mean"])
    sd = np.sqrt(draws["sigma2"])
    for row, (school, age) in enumerate(((16, 30), (9, 65))):
        centre = draws["beta"] @ [1, age, school]
        slack = 0.25 * np.hypot(sd.mean(), centre.std())  # one new record a draw, of 2,000
        for name, q in (("lower", 0.025), ("upper", 0.975)):
            end = optimize.brentq(lambda y, c=centre, q=q: stats.norm.cdf((y - c) / sd).mean() - q, -1e6, 1e6)
            assert new[name][row] == pytest.approx(end, abs=slack)


@pytest.mark.matrix
def test_truncated_responses_are_those_of_the_summary(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(0.0, 1.0, 200)
    y = stats.truncnorm.rvs(-0.5 - x, 3.0 - x, x, 1.0, random_state=rng)
    w = rng.uniform(0.0, 1.0, 200)  # a second predictor, as where truncated errors are compiled for others
    rows = "\n".join(
        f"{a!r},{b!r},{c!r}" for a, b, c in np.column_stack([x, w, np.clip(y, 0.0, 3.0)]).tolist()
    )
    spec = {
        "data": {"path": str(table(tmp_path, f"x,w,y\n{rows}\n", "t.csv")), "columns": ["x", "w", "y"]},
        "mechanism": {"kind": "clamped_moments", "bounds": [[0, 1], [0, 1], [0, 3]], "epsilon": 20.0},
        "model": {"kind": "linear_regression", "response": "truncated", "predict": [[0.0, 0.5], [0.9, 0.5]]},
        "sampler": SHORT,
    }
    dpmix.fit(spec, dpmix.privatize(spec, quiet=True), tmp_path / "c.h5", quiet=True, jobs=1)
    at = table(tmp_path, "x,w\n0,0.5\n0.9,0.5\n")
    found = dpmix.predict(tmp_path / "c.h5", at, quiet=True)
    summary = dpmix.summarize(tmp_path / "c.h5").to_json()["parameters"]
    new = dpmix.predict(tmp_path / "c.h5", at, interval="record", quiet=True)
    for row in range(2):
        own = summary[f"prediction[{row}]"]
        wanted = [own["mean"], own["quantiles"]["0.025"], own["quantiles"]["0.975"]]
        np.testing.assert_allclose(found.values[row], wanted, rtol=1e-9)
        own = summary[f"predictive[{row}]"]["quantiles"]
        np.testing.assert_allclose(
            new.values[row, 1:], [own["0.025"], own["0.975"]], atol=0.3
        )  # of chains so short
    assert (new.values >= 0.0).all() and (new.values <= 3.0).all()


def test_known_error_variance_is_that_of_the_spec(line: Path, tmp_path: Path) -> None:
    beta, x = np.array([[1.0], [2.0]]), np.array([[3.0]])
    assert responses(beta, np.array([4.0]), x) == pytest.approx(7.0)
    assert responses(beta, np.array([4.0]), x, np.array([-1.5])) == pytest.approx(4.0)
    chains = read_chains([line])
    spec = json.loads(json.dumps(chains.spec))
    spec["model"]["sigma2"] = 25.0
    kept = tuple(p for p in chains.parameters if p.name != "sigma2")  # type: ignore[union-attr]
    from dataclasses import replace

    known = replace(chains, spec=spec, parameters=kept)
    options = load_spec({"summary": {"interval": "record"}}).summary
    beta = draws_of(line)["beta"]
    found = predictor_of(known, options, "c.h5").predict(np.array([[30.0, 16.0]]))[0]
    centre = beta @ [1, 30, 16]
    end = optimize.brentq(lambda y: stats.norm.cdf((y - centre) / 5.0).mean() - 0.975, -1e6, 1e6)
    assert found[2] == pytest.approx(end, rel=1e-3)


def test_intervals_cover_as_often_as_they_say(line: Path, tmp_path: Path) -> None:
    """Parameters and data are drawn, and draws of the exact posterior given the data put into the chains."""
    rng, repeats, held = np.random.default_rng(5), 400, {"mean": 0, "record": 0}
    predictors: dict[str, Any] = {
        name: predictor_of(
            read_chains([line]), load_spec({"summary": {"interval": name}}).summary, "chains.h5"
        )
        for name in held
    }
    x = np.array([[0.7, -1.2]])
    for _ in range(repeats):
        sigma2 = 1.0 / rng.gamma(3.0, 1.0 / 2.0)
        beta = rng.normal(0.0, 2.0 * np.sqrt(sigma2), 3)
        design = np.column_stack([np.ones(12), rng.normal(0.0, 1.0, (12, 2))])
        y = design @ beta + rng.normal(0.0, np.sqrt(sigma2), 12)
        precision = design.T @ design + np.eye(3) / 4.0
        centre = np.linalg.solve(precision, design.T @ y)
        scale = 2.0 + 0.5 * (y @ y - centre @ precision @ centre)
        s2 = 1.0 / rng.gamma(9.0, 1.0 / scale, 2000)
        drawn = centre + np.sqrt(s2)[:, None] * rng.multivariate_normal(
            np.zeros(3), np.linalg.inv(precision), 2000
        )
        truth = {"mean": beta[0] + x[0] @ beta[1:]}
        truth["record"] = truth["mean"] + rng.normal(0.0, np.sqrt(sigma2))
        for name, predictor in predictors.items():
            predictor._beta, predictor._sigma2 = drawn.T[None], s2[None]
            predictor._known.clear()
            _, lower, upper = predictor.predict(x)[0]
            held[name] += int(lower <= truth[name] <= upper)
    assert all(stats.binomtest(count, repeats, 0.95).pvalue > LEVEL for count in held.values()), held
    path = planted(line, tmp_path / "c.h5", beta=drawn, sigma2=s2)  # and so they are read from a file
    at = table(tmp_path, "age,school\n0.7,-1.2\n")
    found = dpmix.predict(path, at, interval="record", quiet=True).values[0]
    np.testing.assert_allclose(found, predictors["record"].predict(x)[0])


REFUSED = [
    ("", "is empty: it has no header"),
    ("age,town\n", "has no records; at least 1 is needed"),
    ("age,towm\n18,yes\n", "has no column 'town'; did you mean 'towm'?"),
    ("town\nyes\n", "has no column 'age'; it has 'town'"),
    ("age;town\n18;yes\n", "its columns are not separated by commas"),
    ("age,age,town\n18,18,yes\n", "has 2 columns called 'age'"),
    (
        "age,town\n18,yes\n31,no\n",
        "the cell of column 'age' in record 2 (line 3) is none of the 3 categories (18, 30, 50+)",
    ),
    ("age,town\n\n18,yes\n", "record 1 (line 2) has 1 cells, but the header has 2"),
    (
        "age,town\n18,yes\nNA,no\n",
        "column 'age' in record 2 (line 3) is missing, and the fit has no category missing",
    ),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_what_the_fit_does_not_know_is_named(
    votes: Path, tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at, out = table(tmp_path, text), tmp_path / "out.csv"
    assert run(app, ["predict", str(votes), "--at", str(at), "-o", str(out)]) == 3
    told = capsys.readouterr()
    assert words in told.err and "Traceback" not in told.err and not told.out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["at.csv"]
    assert run(app, ["predict", str(votes), "--at", str(at)]) == 3
    assert not capsys.readouterr().out  # not even of the records before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age,school\n30,x\n", "column 'school' in record 1 (line 2) is not a number"),
        ("age,school\n30,inf\n", "column 'school' in record 1 (line 2) is not a finite number"),
        ("age,school\n30,1\n,3\n", "column 'age' in record 2 (line 3) is missing; fill in"),
        ("age,school\n30,1\n1e308,3\n", "record 2 is so far out that its prediction is no finite number"),
    ],
)
def test_numbers_are_checked(line: Path, tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError) as error:
        dpmix.predict(line, table(tmp_path, text), quiet=True)
    assert words in str(error.value)


def test_values_beyond_the_bounds_are_taken_as_they_are_and_said(
    line: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = table(tmp_path, "age,school\n90,16\n30,16\n10,26\n")
    found = dpmix.predict(line, at, quiet=True)
    told = capsys.readouterr().err
    assert "note: 2 of 3 values of age lie outside [18, 80]" in told
    assert "note: 1 of 3 values of school lie outside [0, 25]" in told and "the line goes on" in told
    beta = draws_of(line)["beta"]
    assert found["mean"][0] == pytest.approx((beta @ [1, 90, 16]).mean())
    dpmix.predict(line, table(tmp_path, "age,school\n80,25\n"), quiet=True)
    assert "outside" not in capsys.readouterr().err


def test_the_command_prints_writes_and_refuses(
    votes: Path,
    line: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = table(tmp_path, "age,town\n18,yes\n50+,no\n")
    wanted = dpmix.predict(votes, at, tmp_path / "own.csv", quiet=True)
    command = ["predict", str(votes), "--at", str(at)]
    assert run(app, command) == 0
    told = capsys.readouterr()
    assert "2 records" in told.err and "p is the probability of each class of vote" in told.err
    read = list(csv.DictReader(io.StringIO(told.out)))
    assert tuple(read[0]) == wanted.columns and told.out == (tmp_path / "own.csv").read_text()
    assert float(read[1]["lower[b, or c]"]) == pytest.approx(wanted["lower[b, or c]"][1], rel=1e-9)
    out = tmp_path / "out.csv.gz"
    assert run(app, [*command, "--json", "-o", str(out), "--quiet"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == wanted.to_json() and not told.err
    assert gzip.decompress(out.read_bytes()).decode() == (tmp_path / "own.csv").read_text()
    assert run(app, [*command, "-o", str(out)]) == 2
    assert "exists" in capsys.readouterr().err
    assert run(app, [*command, "-o", str(out), "--force"]) == 0
    capsys.readouterr()
    for name, code, words in (
        ("x.h5", 2, "predictions are written as .csv or .csv.gz"),
        ("-", 2, "- is no file to write"),
        ("at.csv", 2, "named twice"),
        ("no/x.csv", 3, "does not exist"),
    ):
        target = name if name == "-" else str(tmp_path / name)
        assert run(app, [*command, "-o", target, "-f"]) == code, name
        assert words in capsys.readouterr().err
    for more, words in (
        (["--interval", "record"], "summary.interval: is for linear_regression, not for naive_bayes"),
        (["--interval", "both"], "--interval: both is neither mean nor record"),
        (["--set", "summary.level=2"], "summary.level: 2 must be less than 1"),
        (
            ["--set", "sampler.chains=2"],
            "--set sampler.chains: the chains are made; predict takes summary.level",
        ),
        (["--set", "summary.levle=0.9"], "did you mean"),
    ):
        assert run(app, [*command, *more]) == 2
        assert words in capsys.readouterr().err
    assert run(app, [*command, "--dry-run", "-o", str(tmp_path / "new.csv")]) == 0
    assert "would write" in capsys.readouterr().out and not (tmp_path / "new.csv").exists()
    assert run(app, ["predict", str(votes), "--at", str(tmp_path / "no.csv")]) == 3
    assert run(app, ["predict", str(votes), "--at", str(votes)]) == 3
    assert "no table to predict from" in capsys.readouterr().err
    assert (
        run(
            app,
            [
                "predict",
                str(line),
                "--at",
                str(table(tmp_path, "age,school\n30,16\n")),
                "--set",
                "summary.interval=record",
                "-q",
            ],
        )
        == 0
    )
    capsys.readouterr()

    class Stdin:
        closed = False
        buffer = io.BytesIO(b"\xef\xbb\xbftown,age\nyes,18\nno,50+\n")

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert run(app, ["predict", str(votes), "--at", "-", "-q"]) == 0
    assert capsys.readouterr().out == (tmp_path / "own.csv").read_text()
    assert not Stdin.buffer.closed


def test_several_files_are_all_chains(votes: Path, tmp_path: Path) -> None:
    release = released(np.arange(12.0) % 5 + 20, [3, 3], 2, 150, **VOTES)
    spec: dict[str, Any] = {"model": {"kind": "naive_bayes"}, "sampler": SHORT}
    files = []
    for k in (1, 0):
        spec["summary"] = {"at": f"machine{k}/new.csv"}  # where the table is says nothing about the fit
        files.append(tmp_path / f"{k}.h5")
        dpmix.fit(spec, release, files[-1], quiet=True, jobs=1, chain_id=k)
    at = table(tmp_path, "age,town\n18,yes\n50+,no\n")
    both, whole = dpmix.predict(files, at, quiet=True), dpmix.predict(votes, at, quiet=True)
    np.testing.assert_allclose(both.values, whole.values, rtol=1e-12)


def test_doubtful_chains_are_told(line: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draws = draws_of(line)["beta"].reshape(2, 1000, 3)
    draws[1] += 5.0 * draws.std(axis=(0, 1))
    apart = planted(line, tmp_path / "c.h5", beta=draws)
    dpmix.predict(apart, table(tmp_path, "age,school\n30,16\n"), quiet=True)
    told = capsys.readouterr().err
    assert "warning: " in told and "R-hat" in told and "beta[age]" in told


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, rng = tmp_path_factory.mktemp("grouped"), np.random.default_rng(2)
    x, ja = rng.normal(0.0, 2.0, 400), rng.random(400) < 0.4
    y = np.where(ja, 1.0 + 2.0 * x, -2.0 - x) + rng.normal(0.0, 1.0, 400)
    level, label = rng.integers(1, 3, 400), np.where(rng.random(400) < 0.3, 1, 2)
    w = rng.normal(0.0, 1.0, 400)  # a second predictor, as where groups are compiled for others
    rows = [
        f"{a:.6f},{c:.6f},{b:.6f},{'ja' if s else 'no'},{u},{v}"
        for a, c, b, s, u, v in zip(x, w, y, ja, level, label, strict=True)
    ]
    table(folder, "x,w,y,s,u,v\n" + "\n".join(rows), "t.csv")
    data = {"path": str(folder / "t.csv"), "group": "s", "categories": {"s": ["ja", "no"]}}
    specs = {
        "line": {
            "data": data | {"columns": ["x", "w", "y"]},
            "mechanism": {
                "kind": "clamped_moments",
                "bounds": [[-6, 6], [-4, 4], [-12, 12]],
                "epsilon": 20.0,
            },
            "model": {
                "kind": "linear_regression",
                "predict": [[0.0, 0.0], [1.0, 0.0]],
                "prior_sd": 5.0,
            },
            "sampler": SHORT,
        },
        "classes": {
            "data": data | {"columns": ["u", "v"]},
            "mechanism": {"kind": "noisy_counts", "levels": [2], "classes": 2, "epsilon": 5.0},
            "model": {"kind": "naive_bayes"},
            "sampler": SHORT,
        },
    }
    for name, spec in specs.items():
        dpmix.fit(spec, dpmix.privatize(spec, quiet=True), folder / f"{name}.h5", quiet=True, jobs=1)
    return {name: folder / f"{name}.h5" for name in specs}


def test_groups_have_their_own_predictions(grouped: dict[str, Path], tmp_path: Path) -> None:
    at = table(tmp_path, "s,x,w\nno,1,0\nja,0,0\nja,1,0\nno,0,0\n")
    found = dpmix.predict(grouped["line"], at, quiet=True)
    rows = dpmix.summarize(grouped["line"]).to_json()["parameters"]
    for row, name in enumerate(("no,1", "ja,0", "ja,1", "no,0")):
        own = rows[f"prediction[{name}]"]
        wanted = [own["mean"], own["quantiles"]["0.025"], own["quantiles"]["0.975"]]
        np.testing.assert_allclose(found.values[row], wanted, rtol=1e-10)
    draws = draws_of(grouped["line"])
    new = dpmix.predict(grouped["line"], at, interval="record", quiet=True)
    width = (new["upper"] - new["lower"])[0]
    rng, line = np.random.default_rng(1), draws["beta"][:, 1, :2].sum(axis=1)  # at x = 1, w = 0
    drawn = rng.normal(line, np.sqrt(draws["sigma2"][:, 1]), size=(50, line.size))
    assert width == pytest.approx(np.subtract(*np.quantile(drawn, [0.975, 0.025])), rel=0.1)
    found = dpmix.predict(grouped["classes"], table(tmp_path, "u,s\n2,ja\n1,no\n"), quiet=True)
    draws = draws_of(grouped["classes"])
    for row, (g, u) in enumerate(((0, 1), (1, 0))):
        joint = draws["p"][:, g] * draws["p_feature_1"][:, g, :, u]
        own = joint / joint.sum(axis=1, keepdims=True)
        assert found["p[2]"][row] == pytest.approx(own[:, 1].mean(), rel=1e-12)
    for text, words in (
        ("x,w\n1,0\n", "has no column 's'"),
        ("x,w,s\n1,0,nein\n", "is none of the 2 categories (ja, no)"),
    ):
        with pytest.raises(DataError, match="s'") as error:
            dpmix.predict(grouped["line"], table(tmp_path, text), quiet=True)
        assert words in str(error.value)


def test_summaries_predict_at_a_file(votes: Path, line: Path, tmp_path: Path) -> None:
    at = table(tmp_path, "age,town\n" + "18,yes\n50+,NA\n" * 15)
    with undrawn():
        summary = dpmix.summarize(
            votes, tmp_path / "s.h5", overrides=[f"summary.at={at}"], report=tmp_path / "s.html"
        )
    wanted = dpmix.predict(votes, at, quiet=True)
    assert summary.to_json()["at"] == wanted.to_json()  # type: ignore[union-attr]
    text, page = summary.to_text(), (tmp_path / "s.html").read_text()
    assert "age = 50+, town = missing" in text and "and 10 more records" in text
    assert "<h2>Predictions</h2>" in page and "lower[b, or c]" in page and "first of 30 records" in page
    with h5py.File(tmp_path / "s.h5") as file:
        np.testing.assert_array_equal(file["at/values"][...], wanted.values)
    with reading(tmp_path / "s.h5") as root:
        assert list(root.group("at")["quantity"][()]) == list(wanted.columns)
    at = table(tmp_path, "age,school\n90,16\n")
    summary = dpmix.summarize(line, overrides=[f"summary.at={at}", "summary.interval=record"])
    assert "of a new record; 1 of 1 values of age lie outside" in " ".join(summary.to_text().split())
    assert "at" not in dpmix.summarize(line).to_json()
    for path, words in (
        (tmp_path / "no.csv", "no.csv does not exist; give --set summary.at=FILE"),
        (at, "'town'"),
    ):
        with pytest.raises(DataError, match=words):
            dpmix.summarize(votes, overrides=[f"summary.at={path}"])


def test_summaries_read_a_table_as_it_is_written(line: Path, tmp_path: Path) -> None:
    """The keys of data stand beside the path, and messages name them."""
    plain = table(tmp_path, "age,school\n30.5,16\n")
    wanted = dpmix.summarize(line, overrides=[f"summary.at={plain}"]).to_json()["at"]
    other = tmp_path / "o.csv"
    other.write_bytes("größe;age;school\n1;30,5;16\n".encode("latin-1"))
    keys = "decimal: ',', encoding: latin-1"
    found = dpmix.summarize(line, overrides=[f"summary.at={{path: {other}, {keys}}}"]).to_json()["at"]
    assert found == wanted
    for stated, words in (
        ("encoding: latin-1", r"say by what in summary\.at\.delimiter"),
        ("delimiter: ';', encoding: latin-1", r"summary\.at\.decimal"),
        ("delimiter: ';'", r"summary\.at\.encoding: latin-1"),
    ):
        with pytest.raises(DataError, match=words):
            dpmix.summarize(line, overrides=[f"summary.at={{path: {other}, {stated}}}"])
    with pytest.raises(SpecError, match=r"summary\.at\.decimal: is for text"):
        load_spec({"summary": {"at": {"path": "x.parquet", "decimal": ","}}})
    with pytest.raises(DataError, match=r"--delimiter"):
        dpmix.predict(line, other, encoding="latin-1", quiet=True)
    with pytest.raises(DataError, match=r"say its encoding, such as --encoding latin-1$"):
        dpmix.predict(line, other, delimiter=";", quiet=True)


def test_summaries_take_so_many_records(votes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmix.api.predict.MOST_IN_SUMMARY", 3)
    at = table(tmp_path, "age,town\n" + "18,yes\n" * 4)
    with pytest.raises(DataError, match="more than 3 records, the most that summary.at takes"):
        dpmix.summarize(votes, overrides=[f"summary.at={at}"])


def test_other_models_are_refused_by_name(tmp_path: Path) -> None:
    chains = write_chains(tmp_path / "c.h5", [states_of_mixture(20, np.random.default_rng(1))])
    at = table(tmp_path, "x\n1\n")
    with pytest.raises(DataError, match="is of model mixture, which predicts no column from others"):
        dpmix.predict(chains, at)
    with pytest.raises(
        SpecError, match="summary.at: is for linear_regression and naive_bayes, not for mixture"
    ):
        dpmix.summarize(chains, overrides=[f"summary.at={at}"])
    with pytest.raises(SpecError, match='summary.at: "x.h5" is no table of named columns'):
        load_spec({"summary": {"at": "x.h5"}})
    with pytest.raises(UsageError, match="at least one chains file"):
        dpmix.predict([], at)


def test_chains_that_somebody_changed_are_answered(votes: Path, line: Path, tmp_path: Path) -> None:
    for path, name, values in ((votes, "p", -1.0), (votes, "p", np.nan), (line, "sigma2", np.inf)):
        broken = tmp_path / "b.h5"
        shutil.copy(path, broken)
        with h5py.File(broken, "r+") as file:
            file[f"posterior/{name}"][...] = values
        header = "age,town\n18,yes\n" if path == votes else "age,school\n1,2\n"
        with pytest.raises(DpmixError):
            dpmix.predict(broken, table(tmp_path, header), quiet=True)


def test_nothing_heavy_is_imported_for_help_and_for_a_bad_option() -> None:
    code = (
        "import sys; from dpmix.cli.commands import app; from dpmix.run.exit_codes import run\n"
        "run(app, ['predict', '--help'])\n"
        "run(app, ['predict', 'c.h5', '--at', 'x.csv', '--set', 'summary.level=2'])\n"
        "print([m for m in ('numpy', 'scipy', 'h5py', 'arviz_stats') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]" and "summary.level: 2 must be less than 1" in done.stderr
