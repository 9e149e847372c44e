"""The verdict of a summary, on each branch of its rule and at its thresholds."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from dpmix.models.meaning_base import MOVED
from dpmix.results.nodes import Remark
from dpmix.summary.check.check_result import Check
from dpmix.summary.diagnostics import Scalar
from dpmix.summary.headline import NOT_YET, USABLE, WITH_CARE, verdict_of
from dpmix.summary.prior import drawn_in
from dpmix.summary.quantities import Beyond, CellShares
from dpmix.summary.remarks import floor_remarks
from dpmix.summary.shape import ShapeContraction


def scalar(
    contraction: float | None = 0.9, rhat: float | None = 1.002, beside: str = "", *, stuck: bool = False
) -> Scalar:
    quantiles = {"0.025": -1.0, "0.5": 0.0, "0.975": 1.0}
    return Scalar(0.0, 0.5, quantiles, rhat, 1e3, 1e3, 0.01, None, stuck, contraction, beside)


def answer(p: float | None = 0.4, **scalars: Scalar) -> str:
    named = {name.replace("__", "[") + "]" * ("__" in name): value for name, value in scalars.items()}
    return verdict_of({"mean": scalar(), **named}, Check("x", p)).answer


def test_all_is_well() -> None:
    found = verdict_of({"mean": scalar(), "quantile[0.5]": scalar()}, Check("x", 0.4))
    assert found.answer == USABLE
    assert len(found.reasons) == 3
    assert "0.90" in found.reasons[0]
    assert "p = 0.4" in found.reasons[1]
    assert "1.0020" in found.reasons[2]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.5, USABLE),
        (math.nextafter(0.5, 0.0), WITH_CARE),
        (0.1, WITH_CARE),
        (0.0999, NOT_YET),
        (-0.5, NOT_YET),
    ],
)
@pytest.mark.parametrize("name", ["mean", "mean[height]", "quantile[0.5]", "quantile[women,height,0.5]"])
def test_contraction_of_mean_and_median(name: str, value: float, expected: str) -> None:
    assert verdict_of({name: scalar(value)}, Check("x", 0.4)).answer == expected


@pytest.mark.parametrize(
    "name",
    ["sd", "quantile[0.25]", "quantile[0.05]", "beta[age]", "p[vote = 0]", "correlation[height,weight]"],
)
@pytest.mark.parametrize("value", [0.05, -3.0, 0.4999])
def test_contraction_of_other_headlines_never_forbids(name: str, value: float) -> None:
    assert verdict_of({"mean": scalar(), name: scalar(value)}, Check("x", 0.4)).answer == WITH_CARE


def test_the_prior_has_no_say_where_the_release_overruled_it() -> None:
    """Where the prior piles up elsewhere, a low contraction is no word of the prior's."""
    moved = scalar(-1.99, beside="moved")
    found = verdict_of({"mean": scalar(), "tail[0]": moved}, Check("x", 0.4))
    assert found.answer == WITH_CARE
    assert found.reasons[0] == (
        "The release overruled the prior in tail[0], and moved it beyond the prior's quartiles (contraction "
        "-1.99; 0.5 or more is wanted)."
    )
    found = verdict_of({"sd": scalar(0.4), "tail[0]": moved}, Check("x", 0.4))
    assert found.reasons[0].startswith("The prior has a say in sd") and "for 1 more" in found.reasons[0]
    found = verdict_of({"mean": moved, "sd": scalar(0.4)}, Check("x", 0.4))
    assert found.answer == NOT_YET
    assert found.reasons[0].startswith("The release overruled the prior in mean")


@pytest.mark.parametrize(("value", "expected"), [(0.5, USABLE), (math.nextafter(0.5, 0.0), WITH_CARE)])
def test_the_shape_has_to_be_learnt_besides_mean_and_sd(value: float, expected: str) -> None:
    known = {"mean": scalar(), "sd": scalar(), "quantile[0.5]": scalar(0.99)}
    shape = ShapeContraction({"quantile[0.25]": 0.9, "quantile[0.5]": value})
    assert verdict_of(known, Check("x", 0.4), shape=shape).answer == expected
    assert verdict_of({"p[a]": scalar()}, Check("x", 0.4), shape=None).answer == USABLE


def test_what_is_said_of_a_shape_that_the_prior_has_a_say_in() -> None:
    shape = ShapeContraction({"quantile[0.25]": 0.4, "quantile[0.5]": -2.0, "quantile[0.75]": 0.8})
    found = verdict_of({"mean": scalar(), "sd": scalar()}, Check("x", 0.4), shape=shape)
    assert found.reasons == (
        "The release tells mean and sd, and the prior has a say in the shape between: of the prior's "
        "variance of (quantile[0.5] - mean)/sd the release took away nothing (0.5 or more is wanted, and "
        "below that for 1 more).",
    )
    unlearnt = verdict_of({"mean": scalar(), "sd": scalar(0.3)}, Check("x", 0.4), shape=shape)
    assert len(unlearnt.reasons) == 1 and "has a say in sd" in unlearnt.reasons[0]  # which is said instead


def test_scalars_that_are_no_headline_do_not_count() -> None:
    assert answer(concentration=scalar(-1.0), n_clusters=scalar(0.0), sigma2=scalar(0.01)) == USABLE


@pytest.mark.parametrize(
    ("p", "expected"), [(0.01, USABLE), (0.00999, NOT_YET), (None, WITH_CARE), (1.0, USABLE)]
)
def test_the_release_check(p: float | None, expected: str) -> None:
    assert answer(p) == expected


@pytest.mark.parametrize(
    ("rhat", "expected"),
    [(1.0099, USABLE), (1.01, WITH_CARE), (1.05, WITH_CARE), (1.0501, NOT_YET)],
)
def test_the_largest_rhat_of_all_scalars(rhat: float, expected: str) -> None:
    assert answer(log_likelihood=scalar(None, rhat)) == expected


@pytest.mark.parametrize(("rhat", "grave"), [(1.02, False), (1.2, True)])
def test_where_the_headline_quantities_agree_it_is_said(rhat: float, grave: bool) -> None:
    well, check = scalar(rhat=1.0042), Check("x", 0.4)
    found = verdict_of({"mean": well, "n_clusters": scalar(None, rhat)}, check)
    assert found.answer == (NOT_YET if grave else WITH_CARE)
    assert found.reasons[0].endswith(" Of the headline quantities it is at most 1.0042.")
    told = [verdict_of({"mean": scalar(rhat=1.0121), "n_clusters": scalar(None, rhat)}, check)]
    told += [verdict_of({"mean": scalar(rhat=rhat), "n_clusters": scalar(None, 1.0042)}, check)]
    told += [verdict_of({"n_clusters": scalar(None, rhat)}, check), verdict_of({"mean": well}, check)]
    assert not any("headline quantities" in reason for each in told for reason in each.reasons)


@pytest.mark.parametrize(
    ("beyond", "outer", "fullest", "expected"),
    [
        (0.009, 0.19, 0.49, USABLE),
        (0.02, 0.1, 0.2, WITH_CARE),
        (0.0, 0.3, 0.2, WITH_CARE),
        (0.0, 0.1, 0.6, WITH_CARE),
        (0.2, 0.1, 0.2, NOT_YET),
        (0.0, 0.6, 0.2, NOT_YET),
        (0.0, 0.0, 0.95, NOT_YET),
    ],
)
def test_records_that_only_the_prior_places(
    beyond: float, outer: float, fullest: float, expected: str
) -> None:
    """Beyond the bounds of cells, in the outermost, or in one."""
    well, check = {"mean": scalar(0.9)}, Check("x", 0.4)
    known = Beyond({"": beyond}, {"": (0.0, 1.0)}, by_prior=True)
    cells = CellShares({"women": 0.1, "men": outer}, {"women": 0.1, "men": fullest}, {"women": 0.0})
    found = verdict_of(well, check, known, cells)
    assert found.answer == expected
    if beyond > 0.01:
        assert found.reasons[0] == (
            f"Under the fit {100 * beyond:.0f}% of records lie beyond the public bounds: how far is said "
            "by the prior alone, which mean and sd depend on; model.kernel: beta stays within the bounds."
        )
    elif expected != USABLE:
        assert "% of records of men are in " in found.reasons[0]


@pytest.mark.parametrize(("piled", "expected"), [(0.0, USABLE), (0.25, WITH_CARE), (0.6, WITH_CARE)])
def test_records_that_pile_up_in_a_cell(piled: float, expected: str) -> None:
    well, check = {"mean": scalar(0.9)}, Check("x", 0.4)
    found = verdict_of(well, check, None, CellShares({"": 0.1}, {"": max(piled, 0.3)}, {"": piled}))
    assert found.answer == expected
    if expected != USABLE:
        (reason,) = found.reasons  # one sentence, of the graver
        assert f"{100 * piled:.0f}% of records {'pile up' if piled < 0.5 else 'are'} in one cell" in reason


@pytest.mark.parametrize(("share", "expected"), [(0.03, USABLE), (0.04, WITH_CARE), (0.3, WITH_CARE)])
def test_records_where_none_are(share: float, expected: str) -> None:
    """Records were cut to the bounds before noise on each, which a normal kernel does not know of."""
    well, check = {"mean": scalar(0.9)}, Check("x", 0.4)
    found = verdict_of(well, check, Beyond({"": share}, {"": (0.0, 1.0)}, clamped=True))
    assert found.answer == expected
    if expected == WITH_CARE:
        assert found.reasons == (
            f"Under the fit {100 * share:.0f}% of records lie beyond the public bounds, where there are "
            "none: sd and quantiles follow them; model.kernel: beta stays within the bounds.",
        )
    of_two = Beyond({"a": 0.0, "b": share}, {}, clamped=True)
    assert verdict_of(well, check, of_two).answer == expected
    assert verdict_of(well, check, Beyond({}, {}, clamped=True)).answer == USABLE
    unprotected = Beyond({"": share}, {"": (0.0, 1.0)})
    assert verdict_of(well, check, unprotected).answer == USABLE


def test_what_is_not_known_asks_for_care() -> None:
    one_chain = verdict_of({"mean": scalar(rhat=None)}, Check("x", 0.4))
    assert one_chain.answer == WITH_CARE
    assert "two chains" in one_chain.reasons[0]
    assert verdict_of({"mean": scalar(None)}, Check("x", 0.4)).answer == WITH_CARE
    assert verdict_of({"mean": scalar(rhat=None, stuck=True)}, Check("x", 0.4)).answer == NOT_YET


@pytest.mark.parametrize(("grave", "expected"), [(None, USABLE), (False, WITH_CARE), (True, NOT_YET)])
def test_a_warning_that_an_approximation_is_off(grave: bool | None, expected: str) -> None:
    """However far simulations are kept from the release: contraction, check and chains can all be well."""
    remark = Remark("abc keeps simulations far from the release.", convergence=False, grave=grave)
    found = verdict_of({"E[x][a]": scalar()}, Check("x", 0.4), remarks=[remark])
    assert found.answer == expected
    assert (found.reasons[0] == remark.text) is (grave is not None)


def test_a_bootstrap_has_no_prior() -> None:
    found = verdict_of({"E[x][a]": scalar(None)}, Check("x", 0.4), bootstrap=True)
    assert found.answer == WITH_CARE
    assert found.reasons == ("A bootstrap has no prior, beside which to say what the release taught.",)


def test_the_gravest_reason_comes_first() -> None:
    found = verdict_of({"mean": scalar(0.3), "sd": scalar(0.9, 1.2)}, Check("x", 0.4))
    assert found.answer == NOT_YET
    assert "do not agree" in found.reasons[0]
    assert "prior has a say in mean" in found.reasons[1]
    assert "29%" in verdict_of({"mean": scalar(0.2999)}, Check("x", 0.4)).reasons[0]  # never rounded up


def test_data_of_the_section() -> None:
    data = verdict_of({"mean": scalar()}, Check("x", 0.001)).section().data
    assert data["answer"] == NOT_YET
    assert isinstance(data["reasons"].json, list)


def test_a_line_in_latent_predictors_is_not_the_tables() -> None:
    """However sure slopes are: they are of other values than those that the table holds."""
    parameters, check = {"beta[x]": scalar()}, Check("x", 1.0)
    line = {"x, cm": ("x, cm", ""), "w": ("w", "")}

    def found(x: float, y: float = 0.0) -> Beyond:
        return Beyond({"x, cm": x, "w": 0.0, "y": y}, latent=line)

    assert verdict_of(parameters, check, found(MOVED)).answer == USABLE
    assert verdict_of(parameters, check, found(0.0, y=0.5)).answer == USABLE  # which a warning says
    clamped = Beyond({"x, cm": 0.99})  # whose line is in the values as they count
    assert verdict_of(parameters, check, clamped).answer == USABLE
    of = verdict_of(parameters, check, found(math.nextafter(MOVED, 1.0)))
    assert of.answer == WITH_CARE
    assert len(of.reasons) == 1
    assert verdict_of(parameters, check, found(0.1)).answer == WITH_CARE
    of = verdict_of(parameters, check, found(0.99))
    assert of.answer == NOT_YET
    start = "Under the fit 99% of values of x, cm lie beyond the public bounds: slopes and predictions are of"
    assert of.reasons[0].startswith(start)
    assert "and not of the table's where it has none there; take model.predictors" in of.reasons[0]
    of = verdict_of(parameters, check, Beyond({"f,x": 0.2}, latent={"f,x": ("x", "f")}))
    assert "20% of values of x in f lie beyond" in of.reasons[0]
    two = Beyond({"a": 0.06, "b": 0.5}, latent={"a": ("a", ""), "b": ("b", "")})
    assert (
        "Under the fit 50% of values of b and 6% of values of a lie"
        in verdict_of(parameters, check, two).reasons[0]
    )
    of = verdict_of({"beta[x]": scalar(rhat=1.2)}, check, found(0.99))
    assert of.answer == NOT_YET
    assert len(of.reasons) == 2


def test_the_contraction_of_alpha_counts_beside_that_of_expected_shares() -> None:
    """How far apart compositions lie moves expected shares, whose own prior is wide."""
    shares = {"E[x][eat]": scalar(1.0), "E[x][rest]": scalar(1.0)}
    assert verdict_of(shares | {"alpha[eat]": scalar(0.6)}, Check("x", 0.4)).answer == USABLE
    found = verdict_of(shares | {"alpha[eat]": scalar(-1.2)}, Check("x", 0.4))
    assert found.answer == WITH_CARE
    assert found.reasons[0].startswith("The prior has a say in alpha[eat]: the release took away nothing")


@pytest.mark.parametrize("name", ["sd", "sd[height]", "sd[women]"])
def test_the_prior_that_holds_an_sd_up_speaks(name: str) -> None:
    """With all of its spread gone an interval may still end where the prior does."""
    held = replace(scalar(0.99), held_up=True, prior=(1.5, 2.0, 3.0))
    found = verdict_of({"mean": scalar(), name: held}, Check("x", 0.4))
    assert found.answer == WITH_CARE
    assert found.reasons == (
        f"The prior holds up {name}: the records may vary less than the interval says, and quantiles lie "
        "closer together, as they do where public bounds are wide for them; tighter bounds, a model.base of "
        "smaller clusters or more epsilon would let the interval go lower.",
    )
    two = verdict_of({name: held, "sd[other]": held, "mean": scalar(0.05)}, Check("x", 0.4))
    assert two.answer == NOT_YET and f"{name} (and 1 more)" in two.reasons[1]
    (remark,) = floor_remarks({"mean": scalar(), name: held})
    assert remark.text.startswith(
        f"The prior holds up {name} (its interval begins at -1, the prior's at 1.5)"
    )
    assert not remark.convergence and floor_remarks({"mean": scalar()}) == []
    many = floor_remarks({f"sd[{group}]": held for group in range(9)})[0].text
    assert "sd[5] (its interval begins at -1, the prior's at 1.5) and 3 more: the records" in many


def test_what_cannot_show_in_a_check_that_passed_is_said_with_it() -> None:
    words = "Only priors and bounds show."
    found = verdict_of({"mean": scalar()}, Check("x", 0.4, blind=words))
    assert f"would release (check, p = 0.4). {words}" in " ".join(found.reasons)
    off = verdict_of({"mean": scalar()}, Check("x", 0.001, blind=words))
    assert off.answer == NOT_YET and words not in " ".join(off.reasons)


@pytest.mark.parametrize(
    ("told", "spread", "expected"),
    [(1.2, 0.2, True), (-1.2, 0.2, True), (1.2, 0.1, False), (0.3, 0.2, False)],
)
def test_correlations_that_the_prior_draws_towards_0(told: float, spread: float, expected: bool) -> None:
    """Of normal laws of Fisher's z: how far the posterior is from what the release alone would say."""
    before, normal = 0.42, NormalDist().inv_cdf
    z = np.array([normal((i + 0.5) / 2000) for i in range(2000)])
    precision = before**-2 + spread**-2
    mean, sd = told * spread**-2 / precision, precision**-0.5
    assert (abs(told - mean) / sd > 1.0) is expected
    name = "correlation[height,weight]"
    posterior, prior = {name: np.tanh(mean + sd * z), "mean": z}, {name: np.tanh(before * z), "mean": z}
    assert drawn_in(posterior, prior) == [name] * expected
    assert drawn_in(prior, prior) == drawn_in(posterior, {}) == []


def test_a_correlation_that_the_prior_draws_towards_0_is_not_usable() -> None:
    drawn = replace(scalar(0.98), held_up=True, prior=(-0.7, 0.0, 0.7))
    found = verdict_of({"mean[a]": scalar(), "correlation[a,b]": drawn}, Check("x", 0.4))
    text = (
        "The prior draws correlation[a,b] towards 0 by more than a posterior standard deviation: the columns "
        "may go together more closely than the interval says; more records or more epsilon would tell."
    )
    assert found.answer == WITH_CARE and found.reasons == (text,)
    assert [each.text for each in floor_remarks({"correlation[a,b]": drawn})] == [text]
