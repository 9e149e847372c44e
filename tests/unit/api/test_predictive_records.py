"""Records from the posterior predictive: their law, what they say of themselves, and what is refused.

Each comparison of laws rejects a right one with probability 1e-6; there are 10 of them, so that the
family-wise error is 1e-5.
"""

from __future__ import annotations

import csv
import json

import h5py
import numpy as np
import pytest
from scipy import stats

import dpmix
from dpmix.api.calibrate import mechanism_of
from dpmix.api.predictive import planned, predictive_records
from dpmix.api.release_of import read_any
from dpmix.api.synthesize import compare
from dpmix.cli.commands import main
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.release.release_file import read_release
from dpmix.release.sanitized import row_noun
from dpmix.run.chains_reader import read_chains
from dpmix.spec import load_spec
from dpmix.spec.describe import describe
from dpmix.store.h5 import encode
from dpmix.summary.density import posterior_density
from tests.helpers import chains_files as files

LEVEL = 1e-6
RECORDS = 20_000


def _rng(*seed):
    return np.random.default_rng([31, *seed])


def _normals(tmp_path, *, alpha=120.0, draws=150, chains=2):
    """Chains in which much of the mass, about 120 / 320, lies on no component."""
    parts = [files.states_of_mixture(draws, _rng(i), alpha=alpha) for i in range(chains)]
    return files.write_chains(tmp_path / "c.h5", parts), parts


def _flat(parts):
    weights = np.concatenate([part["weights"] for part in parts])
    return np.where(np.isnan(weights), 0.0, weights)


def _normal_cdf(x, parts, leftover=True):
    """Posterior mean distribution function, by scipy."""
    weights = _flat(parts)
    names = ("mean", "variance")
    mean, variance = (np.nan_to_num(np.concatenate([p[name] for p in parts]), nan=1.0) for name in names)
    inside = np.array([(weights * stats.norm.cdf(v, mean, np.sqrt(variance))).sum(axis=1).mean() for v in x])
    base = files.BASE
    prior = stats.t(2 * base.a, base.mu0, np.sqrt(base.b * (base.lam + 1) / (base.a * base.lam)))
    rest = 1.0 - weights.sum(axis=1).mean()
    return inside + rest * prior.cdf(x) if leftover else inside / (1.0 - rest)


def _p_value(values, cdf):
    """Kolmogorov-Smirnov, the distribution function interpolated between 1,000 points."""
    x = np.quantile(values, np.linspace(0, 1, 1000))
    return stats.kstest(values, lambda v: np.interp(v, x, cdf(x))).pvalue


def test_normal_records_follow_the_posterior_mean_density(tmp_path):
    path, parts = _normals(tmp_path)
    drawn = predictive_records(path, records=RECORDS, quiet=True).values[:, 0]
    assert _p_value(drawn, lambda x: _normal_cdf(x, parts)) > LEVEL
    # records that leave out the mass on no component would be seen
    assert _p_value(drawn, lambda x: _normal_cdf(x, parts, leftover=False)) < 1e-30
    # records are in no order: of chain, of state or of size
    half = RECORDS // 2
    assert stats.ks_2samp(drawn[:half], drawn[half:]).pvalue > LEVEL
    assert abs(stats.spearmanr(drawn[1:], drawn[:-1]).statistic) < 5 / np.sqrt(RECORDS)


def test_without_components_records_follow_the_prior_predictive(tmp_path):
    states = [files.states_without_data(50)]
    path = files.write_chains(tmp_path / "c.h5", states)
    drawn = predictive_records(path, records=RECORDS, quiet=True).values[:, 0]
    assert _p_value(drawn, lambda x: _normal_cdf(x, states)) > LEVEL


def test_beta_records_follow_the_posterior_mean_density(tmp_path):
    states = files.states_of_beta(200, _rng(7))
    weights = np.random.default_rng(8).dirichlet([3.0, 3.0, 3.0, 3.0], 200)[
        :, :3
    ]  # a quarter on no component
    states["weights"] = np.where(np.isnan(states["weights"]), np.nan, weights)
    path = files.write_kernel(tmp_path / "c.h5", "beta", [states])
    drawn = predictive_records(path, records=RECORDS, quiet=True)
    beta = files.BETA
    u = (drawn.values[:, 0] - beta.lo) / beta.width
    assert u.min() >= 0.0 and u.max() <= 1.0
    assert drawn.mechanism["columns"] == [{"name": "x1", "domain": [beta.lo, beta.lo + beta.width]}]
    levels = (np.arange(150) + 0.5) / 150
    a = stats.gamma.ppf(levels, beta.a_shape, scale=1 / beta.a_rate)[:, None]
    b = stats.gamma.ppf(levels, beta.b_shape, scale=1 / beta.b_rate)[None, :]
    filled = _flat([states])
    shapes = [np.nan_to_num(states[name], nan=1.0) for name in ("a", "b")]

    def cdf(x, leftover=True):
        inside = np.array([(filled * stats.beta.cdf(v, *shapes)).sum(axis=1).mean() for v in x])
        rest = 1.0 - filled.sum(axis=1).mean()
        prior = np.array([stats.beta.cdf(v, a, b).mean() for v in x])
        return inside + rest * prior if leftover else inside / (1 - rest)

    edges = np.quantile(u, np.linspace(0, 1, 41)[1:-1]).round(3)
    counts = np.histogram(u, [0.0, *edges, 1.0])[0]
    for leftover, passes in ((True, True), (False, False)):
        share = np.diff([0.0, *cdf(edges, leftover), 1.0])
        assert bool(stats.chisquare(counts, RECORDS * share).pvalue > LEVEL) is passes


def test_records_under_the_truncated_base_follow_the_posterior_mean_density(tmp_path):
    states = files.states_of_truncated(200, _rng(9))
    states["weights"] *= 0.8
    path = files.write_kernel(tmp_path / "c.h5", "truncated", [states])
    drawn = predictive_records(path, records=RECORDS, quiet=True).values[:, 0]
    grid = np.linspace(-60.0, 60.0, 6001)
    mean = posterior_density(read_chains([path]), [grid], 0.95).density.mean
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (mean[1:] + mean[:-1])) * (grid[1] - grid[0])])
    assert mass[-1] > 0.99
    edges = np.quantile(drawn, np.linspace(0, 1, 41)[1:-1])
    share = np.diff([0.0, *np.interp(edges, grid, mass + 0.5 * (1 - mass[-1])), 1.0])
    counts = np.histogram(drawn, [-np.inf, *edges, np.inf])[0]
    assert stats.chisquare(counts, RECORDS * share).pvalue > LEVEL


@pytest.mark.parametrize("direction", [(1.0, 0.0), (0.0, 1.0), (1.0, -2.0)])
def test_records_of_several_columns_follow_the_posterior_mean_density(tmp_path, direction):
    states = files.states_of_normals(150, _rng(11))
    states["weights"] = np.where(np.isnan(states["weights"]), np.nan, 0.85 * states["weights"])
    path = files.write_kernel(tmp_path / "c.h5", "multivariate_normal", [states])
    release = predictive_records(path, records=RECORDS, quiet=True)
    assert release.columns == ("height", "weight/kg")
    c, niw = np.array(direction), files.NIW
    freedom = niw.nu - niw.size + 1.0
    scale = np.sqrt(c @ niw.psi @ c * (niw.lam + 1) / (niw.lam * freedom))
    prior = stats.t(freedom, c @ niw.mu0, scale)
    weights = _flat([states])
    mean = np.nan_to_num(states["mean"]) @ c
    sd = np.sqrt(np.nan_to_num(np.einsum("i,skij,j->sk", c, states["covariance"], c), nan=1.0))

    def cdf(x):
        inside = np.array([(weights * stats.norm.cdf(v, mean, sd)).sum(axis=1).mean() for v in x])
        return inside + (1.0 - weights.sum(axis=1).mean()) * prior.cdf(x)

    assert _p_value(release.values @ c, cdf) > LEVEL


def test_the_same_chains_give_the_same_records(tmp_path):
    path, parts = _normals(tmp_path)
    first = predictive_records(path, tmp_path / "a.csv", quiet=True)
    predictive_records(path, tmp_path / "b.csv.gz", quiet=True)
    predictive_records(path, tmp_path / "c.csv", quiet=True, records=200)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()
    assert len(first.values) == first.n == 200  # as many as there are records
    one, two = (
        files.write_chains(
            tmp_path / f"{i}.h5", [p], ids=[i], spec=files.a_spec(sampler__iterations=1150, sampler__chains=2)
        )
        for i, p in enumerate(parts)
    )
    merged = predictive_records([two, one], records=500, quiet=True).values
    assert np.array_equal(merged, predictive_records([one, two], records=500, quiet=True).values)
    assert not np.array_equal(merged, predictive_records([one], records=500, quiet=True).values)


def test_records_say_that_they_cost_nothing_beyond_the_release(tmp_path, capsys):
    path, _ = _normals(tmp_path)
    spec = {"synthesis": {"kind": "pitman_yor", "records": 30}}
    release = predictive_records(path, tmp_path / "r.csv", spec=spec)
    said = capsys.readouterr().err
    assert "costs nothing beyond the release" in said and "not private" not in said
    assert (release.epsilon, release.delta, release.rho, release.private) == (5.0, 0.0, None, True)
    account = json.loads((tmp_path / "r.csv.json").read_text())
    assert account["guarantee"].startswith("(epsilon = 5, delta = 0)-DP")
    assert "post-processing of the laplace release" in account["guarantee"]
    assert account["mechanism"]["source"] == {
        "kind": "laplace",
        "scale": [4.0],
        "domain": [[-10.0, 10.0]],
        "trust": "local",
    }
    assert account["n"] == 200 and account["mechanism"]["records"] == 30 and account["private"] is True
    with (tmp_path / "r.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["x1"] and [float(r[0]) for r in rows[1:]] == release.values[:, 0].tolist()
    predictive_records(path, tmp_path / "r.h5", records=400, quiet=True)  # some lie beyond the bounds
    found = read_release(tmp_path / "r.h5")
    assert (found.mechanism["generator"], found.n, len(found.values)) == ("posterior_predictive", 200, 400)
    assert np.abs(found.values).max() > 10.0 and found.columns == ("x1",)


@pytest.mark.parametrize("unit", ["minutes", {"x1": "minutes"}], ids=["one", "named"])
def test_records_keep_the_unit_of_the_release(tmp_path, unit):
    text = unit if isinstance(unit, str) else json.dumps(unit | {"another": "dollars"})
    parts = [files.states_of_mixture(20, _rng(0))]
    path = files.write_chains(tmp_path / "c.h5", parts, attrs={"unit": text}, columns=("x1",))
    release = predictive_records(path, tmp_path / "r.csv", records=5, quiet=True)
    assert release.unit == unit
    assert json.loads((tmp_path / "r.csv.json").read_text())["unit"] == unit
    predictive_records(path, tmp_path / "r.h5", records=5, quiet=True)
    assert read_release(tmp_path / "r.h5").unit == unit
    assert "minutes" in dpmix.show(tmp_path / "r.h5").to_text()
    assert "minutes" in json.dumps(dpmix.card(tmp_path / "r.h5"))


@pytest.mark.parametrize(("trust", "model"), [("local", "Local"), ("global", "Central")])
def test_the_guarantee_of_records_is_that_of_the_release(tmp_path, capsys, trust, model):
    """Trust and neighbours too, in every file, and in what is read back from it."""
    attrs = {"trust": trust, "adjacency": "replacement, public parts", "n": 200}
    if trust == "global":
        law = {
            "kind": "perturbed_histogram",
            "bins": 4,
            "noise": "laplace",
            "domain": [[-10, 10]],
            "scale": [2.0],
        }
        attrs["mechanism"] = json.dumps(law)
    for proved in (True, False):
        attrs["proved"] = proved
        path = files.write_chains(
            tmp_path / f"{proved}.h5", [files.states_of_mixture(20, _rng(6))], attrs=attrs
        )
        assert predictive_records(path, tmp_path / f"{proved}.csv", records=7).proved is proved
    del attrs["proved"]
    path = files.write_chains(tmp_path / "c.h5", [files.states_of_mixture(20, _rng(6))], attrs=attrs)
    capsys.readouterr()
    for name in ("r.csv", "r.h5"):
        made = predictive_records(path, tmp_path / name, records=7)
        said = capsys.readouterr().err
        assert f"stays in its part of the table, {trust} model" in said and made.trust == trust
        assert made.proved is None  # chains of earlier versions do not say
        found = read_any(tmp_path / name)
        assert (found.trust, found.adjacency, len(found.values), found.n) == (
            trust, "replacement, public parts", 7, 200,
        )  # fmt: skip
        assert row_noun(found) == "synthetic records"
        card = dpmix.card(tmp_path / name)
        words = card["privacy"]["trust_model"]
        assert words.startswith(model) and "drawn from a model fitted to that release" in words
        assert card["registry"]["deployment"]["deployment_model"]["model_name"] == model
        assert card["privacy"]["neighbouring_relation"] == "replacement, public parts"
    account = json.loads((tmp_path / "r.csv.json").read_text())
    other = {"local": "global", "global": "local"}[trust]
    for key, value in (("trust", "x"), ("adjacency", "none"), ("adjacency", ["replacement"])):
        (tmp_path / "r.csv.json").write_text(json.dumps(account | {key: value}))
        with pytest.raises(DataError, match=key):
            read_any(tmp_path / "r.csv")
    twice = account["mechanism"] | {"columns": account["mechanism"]["columns"] * 2}
    (tmp_path / "r.csv.json").write_text(json.dumps(account | {"mechanism": twice}))
    with pytest.raises(DataError, match="states a column twice"):
        read_any(tmp_path / "r.csv")
    if trust == "global":  # nobody makes a central release a local one
        (tmp_path / "r.csv.json").write_text(json.dumps(account | {"trust": other}))
        with pytest.raises(DataError, match="trust is not that of their source"):
            read_any(tmp_path / "r.csv")


def test_values_beyond_the_bounds_are_counted(tmp_path, capsys):
    path, _ = _normals(tmp_path)
    values = predictive_records(path, records=2000).values
    count = int((np.abs(values) > 10.0).sum())
    assert count > 0
    assert f"{count} of 2000 values of x1 lie outside [-10, 10]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("attrs", "word", "epsilon"),
    [
        (
            {"mechanism": '{"kind": "none"}', "epsilon": np.inf, "private": False},
            "confidential records",
            np.inf,
        ),
        ({"simulated": True, "private": False}, "simulated", 5.0),
        ({"private": False}, "says that it is not", 5.0),
    ],
)
def test_records_of_what_is_not_private_say_so(tmp_path, capsys, attrs, word, epsilon):
    path = files.write_chains(tmp_path / "c.h5", [files.states_of_mixture(20, _rng(3))], attrs=attrs)
    release = predictive_records(path, tmp_path / "r.csv", quiet=True)
    said = capsys.readouterr().err
    assert "warning: these records are not private" in said and word in said
    assert not release.private and release.epsilon == epsilon
    account = json.loads((tmp_path / "r.csv.json").read_text())
    assert account["private"] is False
    if epsilon == np.inf:
        assert account["epsilon"] is None and "no privacy guarantee" in account["guarantee"]
        assert "costs nothing" not in account["guarantee"]
        assert "Nothing is guaranteed" in release.guaranteed() and "seed" not in release.guaranteed()
        assert "records themselves" in release.done() and "given a release" not in release.done()


def test_records_of_a_wavelet_release_are_of_its_one_column(tmp_path):
    mechanism = {"kind": "wavelet", "levels": 1, "scale": [2.0], "domain": [[-10.0, 10.0]], "column": "age"}
    path = files.write_chains(
        tmp_path / "c.h5",
        [files.states_of_mixture(20, _rng(4))],
        attrs={"mechanism": json.dumps(mechanism)},
        observed=np.zeros((50, 3)),
    )
    release = predictive_records(path, quiet=True)
    assert release.values.shape == (50, 1)
    assert release.mechanism["columns"] == [{"name": "age", "domain": [-10.0, 10.0]}]


def _parametric(tmp_path, predictive, columns, shares=()):
    """Write chains of a model that draws records of its own, one each saved draw."""
    path = files.write_chains(
        tmp_path / "p.h5",
        [files.states_of_mixture(predictive.shape[1], _rng(5)) for _ in predictive],
        observed=np.zeros((30, len(columns))),
        columns=tuple(part["name"] for part in columns),
        attrs={
            "model": "discrete",
            "mechanism": json.dumps(
                {
                    "kind": "synthetic",
                    "generator": "pitman_yor",
                    "columns": columns,
                    "discount": 0.0,
                    "concentration": 1.0,
                    "snap": [None] * len(columns),
                }
            ),
            "columns": json.dumps([part["name"] for part in columns]),
            "trust": "global",
            "n": 30,
        },
    )
    with h5py.File(path, "r+") as root:
        group = root["posterior"]
        for name in list(group):
            if name not in ("chain", "draw"):
                del group[name]

        def add(name, values, dims, **attrs):
            data = group.create_dataset(name, data=values)
            for axis, dim in enumerate(("chain", "draw", *dims)):
                if dim not in group:
                    group[dim] = np.arange(values.shape[axis])
                group[dim].make_scale(dim)
                data.dims[axis].attach_scale(group[dim])
            data.attrs.update(attrs)

        for place, part in reversed(list(enumerate(columns))):  # files list them by name
            several = len(columns) > 1
            name, column = (f"predictive_{part['name']}", part["name"]) if several else ("predictive", "")
            add(name, predictive[:, :, place], (), role="draw", title="predictive", column=column)
        row = np.zeros((*predictive.shape[:2], 4))  # what a regression predicts of given rows is no record
        add("rows", row, ("row",), role="scalar", title="predictive", column="")
        for name, labels in shares:
            group[f"{name}_label"] = encode(np.array(labels))
            found = np.full((*predictive.shape[:2], len(labels)), 1 / len(labels))
            add(f"p_{name}", found, (f"{name}_label",), role="shares", title="probability", column=name)
    return path


def test_records_of_a_parametric_model_are_those_of_its_draws(tmp_path):
    columns = [
        {"name": "x", "domain": [0.0, 1.0]},
        {"name": "sex", "categories": ["f", "m"]},
        {"name": "job"},
    ]
    table = np.stack([np.arange(40) / 40, np.arange(40) % 2, np.arange(40) % 3], axis=1).reshape(2, 20, 3)
    path = _parametric(tmp_path, table, columns, [("sex", ["f", "m"]), ("job", ["baker", "smith", "new"])])
    release = predictive_records(path, tmp_path / "r.csv", quiet=True)
    assert len(release.values) == release.n == 30
    assert release.labels == (None, ("f", "m"), ("baker", "smith", "new"))
    rows = {tuple(row) for row in release.values}
    assert len(rows) == 30 and rows <= {tuple(row) for row in table.reshape(-1, 3)}
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == "x,sex,job"
    whole = predictive_records(path, tmp_path / "r.h5", records=40, quiet=True)
    assert len({tuple(row) for row in whole.values}) == 40
    assert read_release(tmp_path / "r.h5").labels == release.labels
    for wanted in (predictive_records, planned):
        with pytest.raises(SpecError, match="synthesis.records: 41, but the chains hold 40 records"):
            wanted(path, records=41)


def test_as_many_records_of_a_parametric_model_as_its_draws_at_most(tmp_path):
    columns = [{"name": "x", "domain": [0.0, 1.0]}]
    path = _parametric(tmp_path, np.arange(20).reshape(1, 20, 1) / 20, columns)
    assert planned(path)[1] == len(predictive_records(path, quiet=True).values) == 20
    with h5py.File(path, "r+") as file:
        del file["posterior/predictive"]
    with pytest.raises(DataError, match="whose draws hold no records"):
        planned(path)


def test_codes_that_stand_for_nothing_are_refused(tmp_path):
    columns = [{"name": "sex", "categories": ["f", "m"]}]
    path = _parametric(tmp_path, np.full((1, 40, 1), 2.0), columns)
    with pytest.raises(DataError, match="whose sex is no code of its labels"):
        predictive_records(path)
    path = _parametric(tmp_path, np.zeros((1, 40, 1)), [{"name": "job"}])
    with pytest.raises(DataError, match="do not name the labels of job"):
        predictive_records(path)


def test_records_of_a_fit_of_compositions(tmp_path):
    columns = [{"name": name, "domain": [0.0, 1.0]} for name in "abc"]
    path = _parametric(tmp_path, np.random.default_rng(1).dirichlet([1.0, 2.0, 3.0], (2, 20)), columns)
    section = {"kind": "log_moments", "epsilon": 1.0, "threshold": 0.1, "components": 3, "n": 30}
    made = mechanism_of(load_spec({"mechanism": section}))
    released, _ = made.simulate(np.full((30, 3), 1 / 3), ("a", "b", "c"), _rng(1))
    with h5py.File(path, "r+") as root:  # whose mechanism names its columns, and says no more of them
        root.attrs["model"] = "dirichlet"
        root.attrs["mechanism"] = json.dumps(released.mechanism.stated())
    release = predictive_records(path, tmp_path / "r.csv", quiet=True)
    assert release.columns == ("a", "b", "c")
    np.testing.assert_allclose(release.values.sum(axis=1), 1.0)


def test_fits_whose_draws_hold_no_records_say_which_do(tmp_path):
    path = _parametric(tmp_path, np.zeros((1, 40, 1)), [{"name": "x", "domain": [0.0, 1.0]}])
    with h5py.File(path, "r+") as root:
        del root["posterior/predictive"]
        root.attrs["model"] = "naive_bayes"
    with pytest.raises(DataError) as caught:
        predictive_records(path)
    assert str(caught.value) == (
        "the chains are of model naive_bayes, whose draws hold no records; fits of mixture, discrete, "
        "multinomial and dirichlet can be drawn records from"
    )


def test_the_spec_of_another_table_is_refused(tmp_path):
    path, _ = _normals(tmp_path, draws=20)
    with pytest.raises(SpecError, match=r"^data\.columns: y, but the chains are of x1; give the spec"):
        predictive_records(
            path, records=3, quiet=True, spec=files.a_spec(data__path="t.csv", data__columns=["y"])
        )
    more = files.a_spec(data__path="t.csv", data__columns=["y", "x1"], mechanism__domain=[[0, 1], [0, 1]])
    assert len(predictive_records(path, records=3, quiet=True, spec=more).values) == 3


def test_how_many_are_drawn_needs_no_section_of_synthesis(tmp_path, monkeypatch):
    path, _ = _normals(tmp_path, draws=20)
    spec = files.a_spec()
    assert "synthesis" not in spec
    assert len(dpmix.synthesize(spec, chains=path, records=7, quiet=True).values) == 7
    (tmp_path / "s.yaml").write_text(json.dumps(spec))
    arguments = [str(tmp_path / "s.yaml"), "--chains", str(path), "--records", "5"]
    monkeypatch.setattr("sys.argv", ["dpmix", "synthesize", *arguments, "-o", str(tmp_path / "r.csv")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0 and len((tmp_path / "r.csv").read_text().splitlines()) == 6
    with pytest.raises(UsageError, match=r"^records: goes with chains"):
        dpmix.synthesize(spec, records=7)


def test_what_is_said_of_records_from_chains_needs_no_generator(tmp_path):
    """`snap` and `ranges` without a kind: the same records, and no generator for the data."""
    path, _ = _normals(tmp_path, draws=20)
    said = {"records": 9, "snap": {"step": 0.5, "domain": [-10, 10]}, "ranges": [{"x1": [-4, 10]}]}
    spec = files.a_spec()
    bare = load_spec(spec | {"synthesis": said})
    assert bare.generator is None and bare.to_dict()["synthesis"]["kind"] == "posterior_predictive"
    assert load_spec(bare.to_dict()) == bare
    assert "synthesize --chains" in describe(bare)["synthesis"]
    found = dpmix.synthesize(bare, chains=path, quiet=True).values
    kind = {"kind": "pitman_yor", "delta": 0.1}
    np.testing.assert_array_equal(
        found, dpmix.synthesize(spec | {"synthesis": kind | said}, chains=path, quiet=True).values
    )
    assert len(found) == 9 and found.min() >= -4 and np.array_equal(found * 2, np.rint(found * 2))
    for verb in (dpmix.synthesize, compare):
        with pytest.raises(SpecError, match=r"^synthesis\.kind: missing; .*(--chains|rivals)"):
            verb(bare, quiet=True)
    with pytest.raises(SpecError, match=r"^synthesis\.kind: missing; one of pitman_yor, "):
        load_spec(spec | {"synthesis": said | {"epsilon": 1.0}})
    assert dpmix.calibrate(bare)["kind"] == dpmix.calibrate(spec)["kind"]


def test_as_many_records_as_a_huge_release_has_are_asked_for_by_number(tmp_path, monkeypatch, capsys):
    """A tally may be of a billion records: none of them is drawn unless somebody says how many."""
    path, _ = _normals(tmp_path)
    n = read_chains([path]).n
    (tmp_path / "s.yaml").write_text("model: {kind: mixture}\n")
    command = ["dpmix", "synthesize", str(tmp_path / "s.yaml"), "--chains", str(path)]
    monkeypatch.setattr("sys.argv", [*command, "-o", str(tmp_path / "r.csv"), "--dry-run"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert f"would draw {n} records of the posterior predictive of" in capsys.readouterr().out
    monkeypatch.setattr("dpmix.api.predictive.MOST_RECORDS", n - 1)
    with pytest.raises(UsageError, match=rf"of {n} records, and at most {n - 1} are drawn; say how many"):
        predictive_records(path)
    with pytest.raises(SystemExit, match="2"):
        main()


def test_nonsense_is_refused_before_any_work(tmp_path):
    path, _ = _normals(tmp_path)
    for records in (0, -3, 2.5, True):
        with pytest.raises(UsageError, match=r"^records: (must be a whole number|-?\d must be from 1)"):
            predictive_records(path, records=records)
    with pytest.raises(UsageError, match="no spec to override"):
        predictive_records(path, overrides=["synthesis.records=3"])
    with pytest.raises(UsageError, match="one of the chains files"):
        predictive_records(path, path, force=True)
    with pytest.raises(UsageError, match=r"\.csv, \.csv\.gz, \.h5"):
        predictive_records(path, tmp_path / "r.parquet")
    (tmp_path / "r.csv").write_text("x\n")
    with pytest.raises(UsageError, match="exists"):
        predictive_records(path, tmp_path / "r.csv")
    with pytest.raises(DataError, match="does not exist"):
        predictive_records(tmp_path / "none.h5")
    release = tmp_path / "release.h5"
    predictive_records(path, release, quiet=True)
    with pytest.raises(DataError, match="a release file"):
        predictive_records(release)
