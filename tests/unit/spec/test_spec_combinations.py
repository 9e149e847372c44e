"""Which mechanisms, kernels, base measures and samplers go together, and how the others are refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from dpmix.api.fit import plan
from dpmix.errors import SpecError
from dpmix.spec import load_spec
from tests.helpers.fits import MECHANISMS, MODELS, combined_spec, release_by
from tests.helpers.specs import message

SAMPLERS = ("private_neal5", "private_slice", "blocked_gibbs", "neal2", "neal3", "neal8", "split_merge")
CONJUGATE = ("neal2", "neal3", "split_merge")
GENERAL = "use neal8, private_slice or blocked_gibbs"
EVERY = list(itertools.product(MECHANISMS, MODELS, SAMPLERS, ("exact", "metropolis")))


def faults(mechanism: str, model: str, sampler: str, latent: str) -> set[str]:
    """Return the keys that may be named, by the rules of the method rather than by the code's."""
    found = set()
    metropolis = latent == "metropolis"
    if metropolis and sampler in (*CONJUGATE, "neal8"):
        found.add("sampler.latent")
    if mechanism == "none" and sampler == "private_neal5":
        found.add("sampler.kind")
    if mechanism == "none" and metropolis:
        found.add("sampler.latent")
    if model == "multivariate_normal" and mechanism not in ("laplace", "gaussian", "none"):
        found.add("model.kernel")
    if model == "truncated_nig":
        if mechanism != "gaussian":
            found.add("model.base.kind")
        if sampler == "private_neal5":
            found.add("sampler.kind")
        if metropolis:
            found.add("sampler.latent")
    conjugate = (model, mechanism) in (("truncated_nig", "gaussian"), ("nig", "none"))
    if sampler in CONJUGATE and not conjugate:
        found.add("sampler.kind")
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_combination_is_accepted_or_refused_by_name(mechanism: str) -> None:
    release = {columns: release_by(mechanism, columns=columns) for columns in (1, 2)}
    accepted = 0
    for case in EVERY:
        if case[0] != mechanism:
            continue
        _, model, sampler, latent = case
        spec = combined_spec(*case)
        keys = faults(*case)
        columns = 2 if model == "multivariate_normal" and "model.kernel" not in keys else 1
        without = {key: value for key, value in spec.items() if key != "mechanism"}
        if keys:
            text = message(source=spec)
            assert text.split(":")[0] in keys, case
            assert "use " in text or "leave" in text, (case, text)
            # what the spec does not say is said once the release is there
            with pytest.raises(SpecError):
                plan(without, release[columns])
        else:
            accepted += 1
            load_spec(spec)
            assert plan(spec, release[columns]).startswith(f"sample 6 sweeps of {sampler} given "), case
            if mechanism != "none":  # which states no bounds
                assert plan(without, release[columns]) == plan(spec, release[columns])
    # neal8, and private_neal5, private_slice and blocked_gibbs with either latent: 7 for each kernel; under a
    # truncated base 6, all exact; without noise the three exact ones for each kernel, and the conjugate three
    assert accepted == {"laplace": 21, "gaussian": 27, "none": 12}.get(mechanism, 14)


REFUSED = [
    (
        ("none", "nig", "private_neal5", "exact"),
        f"sampler.kind: private_neal5 needs a release with noise, and mechanism none adds none; {GENERAL}",
    ),
    (
        ("none", "nig", "private_slice", "metropolis"),
        "sampler.latent: metropolis needs a release with noise, and mechanism none adds none; "
        "use latent: exact",
    ),
    (
        ("wavelet", "multivariate_normal", "neal8", "exact"),
        "model.kernel: multivariate_normal is for several columns, and wavelet releases one; "
        "use the kernel normal or beta",
    ),
    (
        ("laplace", "truncated_nig", "neal8", "exact"),
        "model.base.kind: truncated_nig is for Gaussian noise, not laplace; use nig",
    ),
    (
        ("gaussian", "truncated_nig", "private_neal5", "exact"),
        "sampler.kind: private_neal5 needs base.kind: nig; under truncated_nig, where the released values "
        "are conjugate themselves, use neal2, neal3, neal8, split_merge, private_slice or blocked_gibbs",
    ),
    (
        ("gaussian", "truncated_nig", "private_slice", "metropolis"),
        "sampler.latent: metropolis needs base.kind: nig; under truncated_nig nothing is latent, "
        "use latent: exact",
    ),
    (
        ("laplace", "beta", "neal2", "exact"),
        f"sampler.kind: neal2 is for the conjugate kernel normal, and not for beta; {GENERAL}",
    ),
    (
        ("gaussian", "nig", "split_merge", "exact"),
        "sampler.kind: split_merge needs released values with a conjugate prior, which they do not have "
        f"under gaussian with base nig; set model.base.kind: truncated_nig, or {GENERAL}",
    ),
    (
        ("perturbed_histogram", "nig", "neal3", "exact"),
        "sampler.kind: neal3 needs released values with a conjugate prior, which they do not have under "
        f"perturbed_histogram; {GENERAL}",
    ),
    (
        ("laplace", "nig", "neal8", "metropolis"),
        "sampler.latent: metropolis is not for neal8, which is exact; use private_slice or blocked_gibbs",
    ),
]


@pytest.mark.parametrize(("case", "expected"), REFUSED, ids=["-".join(case) for case, _ in REFUSED])
def test_refusals_say_what_to_use(case: tuple[str, str, str, str], expected: str) -> None:
    assert message(source=combined_spec(*case)) == expected


OTHERS: list[tuple[tuple[str, str, str, str], list[str], str]] = [
    (
        ("smoothed_histogram", "nig", "private_neal5", "exact"),
        ["sampler.auxiliary=3"],
        "sampler.auxiliary: 3 values per record are for releases of each record on its own; "
        "smoothed_histogram takes 1",
    ),
    (
        ("perturbed_histogram", "nig", "neal8", "exact"),
        ["sampler.store=[allocations]"],
        "sampler.store: allocations say nothing here, for perturbed_histogram releases nothing of single "
        "records; leave it out",
    ),
    (
        ("wavelet", "beta", "neal8", "exact"),
        ["summary.baseline=deconvolution_kde"],
        "summary.baseline: deconvolution_kde is for one column released by laplace, gaussian or none, "
        "not by wavelet; leave it out",
    ),
    (
        ("laplace", "multivariate_normal", "neal8", "exact"),
        ["summary.baseline=deconvolution_kde"],
        "summary.baseline: deconvolution_kde is for one column, and kernel multivariate_normal is for "
        "several; leave it out",
    ),
    (
        ("laplace", "multivariate_normal", "neal8", "exact"),
        ["release={path: z.csv, columns: [x, y, w]}", "mechanism.domain=[[0, 1], [0, 1], [0, 1]]"],
        "model.base.mu0: has 2 entries for 3 columns (x, y, w)",
    ),
    (
        ("laplace", "multivariate_normal", "neal8", "exact"),
        ["model.base.mu0=[0]", "model.base.Psi=[[1]]", "model.base.nu=3"],
        "model.base.mu0: has one entry, and multivariate_normal is for two columns or more; "
        "use kernel: normal",
    ),
    (
        ("laplace", "multivariate_normal", "neal8", "exact"),
        ["model.base.Psi=[[1, 2], [2, 1]]"],
        "model.base.Psi: must be positive definite",
    ),
    (
        ("laplace", "multivariate_normal", "neal8", "exact"),
        ["model.base.Psi=[[1, 0.5], [0, 1]]"],
        "model.base.Psi: must be symmetric",
    ),
    (
        ("laplace", "multivariate_normal", "neal8", "exact"),
        ["model.base.Psi=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]"],
        "model.base.Psi: must be 2 by 2, as mu0 has 2 entries",
    ),
    (
        ("laplace", "multivariate_normal", "neal8", "exact"),
        ["model.base.nu=1"],
        "model.base.nu: 1 must be greater than 1, the dimension less one",
    ),
    (
        ("laplace", "beta", "neal8", "exact"),
        ["mechanism={kind: laplace, scale: 1}", "release={path: z.csv, column: z}"],
        "mechanism.domain: missing; a beta kernel lives on the public bounds, give them here or in "
        "data.domain",
    ),
    (
        ("laplace", "beta", "neal8", "exact"),
        ["mechanism={kind: none}", "data={path: y.csv, column: y}"],
        "mechanism.domain: missing; a beta kernel lives on the public bounds, give them here or in "
        "data.domain",
    ),
    (
        ("laplace", "beta", "neal8", "exact"),
        ["model.base={empirical: true}"],
        "model.base.empirical: unknown key; known: a_shape, a_rate, b_shape, b_rate, learn",
    ),
    (
        ("wavelet", "nig", "neal8", "exact"),
        ["model.base={empirical: paper}"],
        "model.base.empirical: what wavelet releases is not on the scale of the data; "
        "use true, or leave out model.base",
    ),
    (
        ("smoothed_histogram", "nig", "neal8", "exact"),
        ["release={path: draws.csv}"],
        "mechanism.n: missing; a smoothed_histogram release does not tell of how many confidential records "
        "it is",
    ),
]


@pytest.mark.parametrize(
    ("case", "overrides", "expected"), OTHERS, ids=[f"{case[0]}-{more[0][:40]}" for case, more, _ in OTHERS]
)
def test_what_the_spec_alone_shows_is_refused_at_validation(
    case: tuple[str, str, str, str], overrides: list[str], expected: str
) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(combined_spec(*case), overrides)
    assert expected in str(caught.value).splitlines()


def test_a_stated_release_of_a_histogram_may_say_how_many_records() -> None:
    spec: dict[str, Any] = combined_spec("smoothed_histogram", "nig", "neal8", "exact")
    load_spec(spec, ["release={path: draws.csv}", "mechanism.n=100"])


def answers_of(columns: tuple[str, ...], model: str, *, by: str = "data") -> dict[str, Any]:
    section = {
        "path": "z.csv",
        "columns": list(columns),
        "categories": {name: ["a", "b"] for name in columns},
    }
    return {
        by: section,
        "mechanism": {"kind": "randomized_response", "epsilon": 2.0},
        "model": {"kind": model},
    }


@pytest.mark.parametrize("by", ["data", "release"])
def test_models_of_answers_are_for_one_column_or_several(by: str) -> None:
    assert message(source=answers_of(("u",), "naive_bayes", by=by)) == (
        "model.kind: naive_bayes is for features and a class, and there is one column, u; use multinomial"
    )
    load_spec(answers_of(("u",), "multinomial", by=by))
    load_spec(answers_of(("u", "v"), "naive_bayes", by=by))
    several = answers_of(("u", "v"), "multinomial", by=by)
    if by == "data":  # each may be fitted by itself
        load_spec(several)
    else:
        assert message(source=several) == (
            "model.kind: multinomial is for one column, and there are u, v; choose one with --set "
            "release.columns=[u], or use naive_bayes for all"
        )


def test_one_column_of_answers_may_be_chosen() -> None:
    spec = answers_of(("u", "v"), "multinomial")
    assert load_spec(spec, ["release.columns=[v]"]).model is not None
    spec["mechanism"] = {"kind": "noisy_counts", "epsilon": 1.0, "levels": [2], "classes": 2}
    assert "noisy_counts" in message(source=spec)  # another reason, as before


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {
                "mechanism": {"kind": "clamped_moments", "epsilon": 1, "bounds": [[0, 1], [0, 1]], "n": 9},
                "model": {"kind": "linear_regression", "prior_sd": [1, 2, 3]},
            },
            "model.prior_sd: has 3 entries, but the release is of 1 predictor and an intercept; give 2",
        ),
        (
            {
                "data": {"path": "d.csv", "columns": ["x"], "categories": ["a", "b", "c"]},
                "mechanism": {"kind": "randomized_response", "epsilon": 1},
                "model": {"kind": "multinomial", "prior": [1, 1]},
            },
            "model.prior: has 2 entries, but the release is of 3 categories; give one for each, or leave it "
            "out",
        ),
    ],
    ids=["regression", "categories"],
)
def test_sizes_that_the_spec_tells_are_checked_before_any_release(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(spec)
    assert str(caught.value) == said
