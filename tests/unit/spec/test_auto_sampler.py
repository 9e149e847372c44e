"""``sampler.kind: auto``: counts where it applies and wins by measurement, else the model's own sampler."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dpmix
from dpmix.api.fit import plan
from dpmix.errors import SpecError
from dpmix.laws.every import law_of
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from dpmix.spec.combinations import auto_in_words, check_combination, choose
from dpmix.spec.describe import describe
from dpmix.spec.kinds import MODELS as MODELS_BY_KIND
from dpmix.spec.kinds import SAMPLERS, sampler_of
from tests.helpers.compositions import log_moments_release
from tests.helpers.fits import MECHANISMS, MODELS, combined_spec, release_by

BASE = {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}
LAPLACE = {"kind": "laplace", "epsilon": 5.0, "domain": [-10.0, 10.0]}
RUN = {"iterations": 4, "burn_in": 2, "chains": 1, "seed": 1}


def spec_of(mechanism: Any = LAPLACE, sampler: Any = None, **model: Any) -> dict[str, Any]:
    """Return a spec without a sampler's kind."""
    return {
        "mechanism": dict(mechanism),
        "model": {"kind": "mixture", "base": BASE} | model,
        "sampler": RUN | (sampler or {}),
    }


@pytest.mark.parametrize(
    ("n", "cells", "changed", "kind", "why"),
    [
        (5_000, 322, {}, "neal8", "at most 5,000"),
        (5_001, 322, {}, "counts", "more than 5,000"),
        (5_001, 5_002, {}, "neal8", "more cells (5,002) than records (5,001)"),
        (1_000, 322, {"store": []}, "counts", "sampler.store"),
        (1_000, 3_202, {"store": []}, "neal8", "more cells"),
        (10**9, 322, {"store": ["allocations"]}, "neal8", "sampler.store asks"),
        (10**9, 322, {"subsample": 10}, "neal8", "sampler.subsample asks"),
    ],
)
def test_what_auto_takes_and_why(n: int, cells: int, changed: dict[str, Any], kind: str, why: str) -> None:
    found = choose(load_spec(spec_of(sampler=changed)), "laplace", n, cells=cells)
    assert (found.kind, why in found.why) == (kind, True)


def test_what_counts_does_not_go_with_is_left_to_others() -> None:
    many = 10**6
    for changed in (
        {"discount": 0.3},
        {"base": {"kind": "truncated_nig", "mu0": 0, "lambda": 1, "a": 3, "b": 3}},
    ):
        mechanism = {"kind": "gaussian", "scale": 1.0, "domain": [-10.0, 10.0]}
        assert choose(load_spec(spec_of(mechanism, **changed)), "gaussian", many).kind == "neal8"
    wavelet = {"kind": "wavelet", "epsilon": 2.0, "levels": 2, "domain": [0, 1]}
    assert choose(load_spec(spec_of(wavelet)), "wavelet", many).kind == "neal8"
    none = {"kind": "none", "domain": [-10.0, 10.0]}
    assert choose(load_spec(spec_of(none)), "none", many).kind == "neal8"  # no width follows
    assert choose(load_spec(spec_of(none, {"width": 0.1})), "none", many).kind == "counts"
    records = load_spec(spec_of() | {"summary": {"coclustering": True}})
    assert choose(records, "laplace", many).kind == "neal8"
    assert choose(records, "laplace", many, tallied=True).kind == "counts"
    assert choose(load_spec(spec_of()), "laplace", many, grouped=True).kind == "data_augmentation"


def test_histograms_take_counts_where_counts_takes_histograms() -> None:
    from dpmix.spec.kinds import kinds_that

    for kind, draws in (("smoothed_histogram", {"draws": 20}), ("perturbed_histogram", {})):
        mechanism = {"kind": kind, "epsilon": 1.0, "bins": 8, "n": 100, "domain": [0, 1]} | draws
        found = choose(load_spec(spec_of(mechanism)), kind, 100)
        assert found.kind == ("counts" if kind in kinds_that("countable") else "neal8")
        wanted = load_spec(spec_of(mechanism) | {"summary": {"coclustering": True}})  # of its bins
        assert choose(wanted, kind, 100).kind == found.kind


def test_other_models_have_their_own_at_once() -> None:
    counts = {"kind": "noisy_counts", "epsilon": 1.0, "levels": [2], "classes": 2, "n": 10}
    for sampler in ({}, {"kind": "auto"}):
        spec = load_spec({"mechanism": counts, "model": {"kind": "naive_bayes"}, "sampler": sampler})
        assert spec.sampler.kind == "data_augmentation"
    again = load_spec(spec, ["model={kind: mixture}", "mechanism=null"])
    assert again.sampler.kind == "auto"


def test_the_resolved_spec_keeps_auto_and_what_does_not_go_with_it_is_refused() -> None:
    spec = load_spec(spec_of())
    assert spec.sampler.kind == "auto" and yaml.safe_load(spec.to_yaml())["sampler"]["kind"] == "auto"
    assert load_spec(yaml.safe_load(spec.to_yaml())) == spec
    with pytest.raises(SpecError, match=r"sampler\.latent: metropolis"):
        load_spec(spec_of({"kind": "none", "domain": [-10.0, 10.0]}, {"latent": "metropolis"}))
    with pytest.raises(ValueError, match="not settled"):
        _ = spec.sampler.algorithm


SETTINGS: tuple[dict[str, Any], ...] = (
    {}, {"latent": "metropolis"}, {"auxiliary": 2}, {"subsample": 5}, {"store": []},
    {"store": ["allocations"]}, {"width": 0.5}, {"joint": False, "offers": 3},
)  # fmt: skip
SPLIT = {"kind": "log_moments", "epsilon": 5.0, "threshold": 0.1, "split": 0.5}
WHOLE = {"kind": "log_moments", "epsilon": 5.0, "threshold": 0.1}
LEVELS = {"kind": "noisy_counts", "levels": [2], "classes": 2, "epsilon": 1.0}
BINS = {"bins": 4, "epsilon": 1.0, "domain": [-10.0, 10.0]}
OTHERS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "dirichlet": ([{}, *({"prior": f"p{k}"} for k in (2, 3, 4, 5))], [SPLIT, WHOLE]),
    "naive_bayes": (
        [{}],
        [
            LEVELS,
            LEVELS | {"noise": "discrete_gaussian", "delta": 1e-6},
            {"kind": "randomized_response", "epsilon": 1.0},
        ],
    ),
    "linear_regression": (
        [{}, {"response": "truncated"}],
        [{"kind": "clamped_moments", "epsilon": 1.0, "bounds": [[0, 1], [0, 1]]}],
    ),
    "multinomial": (
        [{}],
        [
            {"kind": "randomized_response", "epsilon": 1.0},
            {"kind": "posterior", "epsilon": 1.0, "prior": [1, 1]},
        ],
    ),
    "discrete": (
        [{}],
        [{"kind": "perturbed_histogram", **BINS}, {"kind": "smoothed_histogram", "draws": 4, **BINS}],
    ),
    "custom": ([{"file": "m.py"}], [LAPLACE]),
}
"""Models that are no mixtures, and releases that they are fitted to."""
MIXED = {**MODELS, "default": {}, "discount": {"discount": 0.3}, "learned": {"base": BASE | {"learn": True}}}


def pairs_of_models() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every model that a spec may have, with every mechanism."""
    for model, kind in itertools.product(MIXED.values(), MECHANISMS):
        columns = 2 if model.get("kernel") == "multivariate_normal" else 1
        yield (
            {"kind": "mixture", **model},
            {"kind": kind, **MECHANISMS[kind], "domain": [[-10.0, 10.0]] * columns},
        )
    for name, (models, mechanisms) in OTHERS.items():
        for other, mechanism in itertools.product(models, mechanisms):
            yield {"kind": name, **other}, mechanism


def refused(spec: dict[str, Any]) -> bool:
    """Return whether a spec is refused."""
    try:
        load_spec(spec)
    except SpecError:
        return True
    return False


def stated_specs() -> Iterator[dict[str, Any]]:
    """Yield a spec of each model with each mechanism and setting; some without mechanism, or of groups."""
    people = {"path": "x.csv", "columns": ["x"], "group": "s", "categories": {"s": ["f", "m"]}}
    for model, mechanism in pairs_of_models():
        for place, setting in enumerate(SETTINGS):
            spec = {"model": model, "sampler": RUN | setting}
            yield spec | {"mechanism": mechanism}
            if place < 2:
                yield spec
                yield spec | {"mechanism": mechanism, "data": people}


def test_auto_is_refused_only_where_every_sampler_is() -> None:
    """Where a sampler's name would make a spec sound, auto takes one that goes."""
    mixtures = [kind for kind in SAMPLERS.names if kind != "auto" and sampler_of(kind).mixtures]
    sound = 0
    for spec in stated_specs():
        if not refused(spec):
            sound += 1
            continue
        named = (
            mixtures
            if spec["model"]["kind"] == "mixture"
            else MODELS_BY_KIND.section(spec["model"]["kind"]).samplers
        )
        goes = [kind for kind in named if not refused(spec | {"sampler": spec["sampler"] | {"kind": kind}})]
        assert not goes, (goes, spec)
    assert sound > 400


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_auto_takes_of_a_release_is_fitted_to_it(mechanism: str) -> None:
    releases = {columns: release_by(mechanism, columns=columns) for columns in (1, 2)}
    planned = 0
    for model, setting in itertools.product(MODELS, SETTINGS):
        spec = combined_spec(mechanism, model, "auto")
        spec["sampler"] = RUN | setting
        columns = len(spec["mechanism"]["domain"])
        if refused(spec):
            continue
        words = plan(spec, releases[columns])
        planned += 1
        assert "sample 4 sweeps of " in words and "; auto takes " in words
    assert planned >= 10


@pytest.mark.parametrize("prior", ["p2", "p3", "p4", "p5"])
def test_priors_that_are_draws_take_a_sampler_of_draws(prior: str) -> None:
    spec = load_spec({"mechanism": SPLIT, "model": {"kind": "dirichlet", "prior": prior}, "sampler": RUN})
    kind = "abc" if prior in ("p2", "p5") else "data_augmentation"
    why = f", for the prior {prior} is draws and no density"
    assert spec.sampler.kind == kind
    assert describe(spec)["sampler"].startswith(f"auto: abc{why};" if kind == "abc" else f"{kind}, 1 chain")
    words = plan(spec, log_moments_release((2.0, 3.0, 5.0), (40, 40), 0.1, 5.0, 1))
    assert f"sweeps of {kind} " in words and (f"; auto takes abc{why}" in words) == (kind == "abc")
    assert load_spec(spec, ["model.prior={shape: 1, rate: 0.1}"]).sampler.kind == "data_augmentation"


def test_a_metropolis_move_takes_a_sampler_that_has_it() -> None:
    spec = load_spec(spec_of(sampler={"latent": "metropolis"}))
    for n in (40, 5_001):
        found = choose(spec, "laplace", n)
        assert (found.kind, "metropolis" in found.why) == ("private_slice", True)
    words = plan(spec, release(40))
    assert "sweeps of private_slice" in words and "for sampler.latent: metropolis moves latent" in words
    with pytest.raises(SpecError, match=r"sampler\.latent: metropolis moves single records"):
        check_combination("laplace", spec, tallied=True)


@pytest.mark.parametrize(
    ("model", "sampler"),
    [
        ({"discount": 0.3}, {}),
        ({"kernel": "multivariate_normal", "base": None}, {}),
        ({}, {"store": ["allocations"]}),
    ],
)
def test_no_other_sampler_is_named_where_a_tally_takes_none(
    model: dict[str, Any], sampler: dict[str, Any]
) -> None:
    with pytest.raises(SpecError) as error:
        check_combination("laplace", load_spec(spec_of(sampler=sampler, **model)), tallied=True)
    assert "neal8" not in str(error.value) and "private_slice" not in str(error.value)


def test_validate_says_which_as_far_as_it_is_known() -> None:
    assert auto_in_words(load_spec(spec_of())) == (
        "auto: counts above 5,000 records and given a tally, else neal8"
    )
    assert "auto: counts above" in describe(load_spec(spec_of()))["sampler"]
    data = {"data": {"simulate": "three_gaussians", "n": 200, "seed": 1, "domain": [[-10, 10]]}}
    assert auto_in_words(load_spec(spec_of() | data)).startswith("auto: neal8, for there are at most 5,000")
    asks = load_spec(spec_of(sampler={"subsample": 5}))
    assert auto_in_words(asks) == (
        "auto: neal8, for sampler.subsample asks for single records, which counts does not keep"
    )
    clusters = load_spec(spec_of() | {"summary": {"coclustering": True}})
    assert auto_in_words(clusters).startswith("auto: neal8 (counts given a tally), for summary.coclustering")


@pytest.mark.parametrize(
    ("mechanism", "model", "why"),
    [
        (
            {"kind": "none", "domain": [0, 5]},
            {},
            "neal8 (counts given a tally), for no width of cells for counts",
        ),
        (LAPLACE, {"discount": 0.5}, "neal8, for counts is for a model.discount of 0"),
        (
            LAPLACE | {"domain": [[0, 5], [0, 2]]},
            {"kernel": "multivariate_normal", "base": MODELS["multivariate_normal"]["base"]},
            "neal8, for counts is for one number a record, and kernel multivariate_normal",
        ),
    ],
)
def test_why_not_counts_is_a_reason_and_no_key(
    mechanism: dict[str, Any], model: dict[str, Any], why: str
) -> None:
    """And a tally is offered only where one would be taken."""
    found = auto_in_words(load_spec(spec_of(mechanism, **model)))
    assert found.startswith(f"auto: {why}") and ";" not in found


def release(n: int) -> Release:
    """Return a release of n records."""
    law: Any = {"kind": "laplace", "scale": [4.0], "domain": [[-10.0, 10.0]]}
    z = np.random.default_rng(1).laplace(0.0, 4.0, (n, 1))
    return Release(z, ("z",), law_of(law), 5.0, 0.0, None, n)


def test_fit_says_which_and_why_and_the_chains_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is gone on with keeps its sampler, whatever auto takes now."""
    spec = spec_of()
    path = tmp_path / "c.h5"
    dpmix.fit(spec, release(40), path)
    assert "dpmix: sampler: neal8, for there are at most 5,000 records" in capsys.readouterr().err
    from dpmix.run.chains_reader import read_chains

    assert read_chains([path]).spec["sampler"]["kind"] == "neal8"
    words = plan(spec, release(5_001))
    assert "sweeps of counts" in words and "auto takes counts, for there are more than 5,000" in words
    assert not capsys.readouterr().err
    named = spec_of(sampler={"kind": "neal8", "store": []})
    dpmix.fit(named, release(40), tmp_path / "named.h5", force=True)
    assert "sampler:" not in capsys.readouterr().err
    auto = spec_of(sampler={"store": []})
    assert "sweeps of neal8" in plan(auto, release(40))  # 322 cells
    again = dpmix.fit(auto, release(40), tmp_path / "named.h5", resume=True)
    assert not again.written


def test_a_width_is_refused_where_the_release_has_cells_of_its_own() -> None:
    """By whatever sampler: auto took another than counts, and the width went unread."""
    for mechanism, what in (
        ({"kind": "perturbed_histogram", **BINS}, "bins"),
        ({"kind": "square_wave", "epsilon": 1.0, "domain": [-10.0, 10.0]}, "outputs"),
    ):
        for kind in ("auto", "counts", "neal8"):
            with pytest.raises(
                SpecError, match=f"^sampler.width: 0.5 is not for .* whose {what} are the cells"
            ):
                load_spec(spec_of(mechanism, {"kind": kind, "width": 0.5}))
