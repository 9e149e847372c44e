"""Laws of every kind: JSON there and back, frozen, what is refused in which words, and what they can do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

import dpmix.mechanisms
import dpmix.models
from dpmix.errors import DataError, SpecError
from dpmix.laws.additive import Additive
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import Law, LawError, expect, law_of, law_type
from dpmix.mechanisms.curators.by_kind import from_spec, needs_n
from dpmix.mechanisms.curators.private_groups import Groups
from dpmix.mechanisms.laplace.law import LaplaceLaw
from dpmix.mechanisms.square_wave.law import SquareWaveLaw
from dpmix.mechanisms.wavelet.law import WaveletLaw
from dpmix.spec.capabilities import Capabilities
from dpmix.spec.combinations import taken_by
from dpmix.spec.kinds import MECHANISMS, MODELS, capabilities_of, released_kinds
from dpmix.spec.mechanism_section import MechanismSpec
from tests.helpers.seeds import rng_of

UNIT = [[0.0, 1.0]]
GROUPS = {"sex": ["f", "m"]}
MISSING: Any = object()
KINDS = tuple(kind for kind in MECHANISMS.names if kind != "none")

# a whole description of each kind, and the words of what was done to 9 records
STATED: dict[str, tuple[dict[str, Any], str]] = {
    "none": ({}, "No noise was added"),
    "laplace": ({"scale": [2.0], "domain": UNIT}, "Laplace noise of scale 2 was added to each of 9 records"),
    "gaussian": ({"scale": [2.0, 3]}, "Gaussian noise of scale 2, 3 was added to each of 9 records"),
    "wavelet": ({"levels": 1, "scale": [2.0], "domain": UNIT}, "Haar wavelet coefficients up to level 1"),
    "binomial": (
        {"trials": 4, "weight": 0.5, "scale": [], "domain": UNIT},
        "the number of successes in 4 trials",
    ),
    "square_wave": (
        {"cells": 4, "reach": 1, "ratio": "3/1", "scale": [], "domain": UNIT},
        "one of 6 outputs of a square wave over 4 cells of the domain: one of the 3 around its own cell is 3",
    ),
    "randomized_response": (
        {"ratio": "3/1", "categories": [["a", "b"]], "scale": []},
        "by randomized response: its category, 3 times as likely as each other one",
    ),
    "smoothed_histogram": (
        {"bins": 4, "draws": 3, "weight": 0.25, "scale": [], "domain": UNIT},
        "3 draws from the histogram of 9 records over 4 bins",
    ),
    "perturbed_histogram": (
        {"bins": 4, "noise": "geometric", "scale": [2.0], "domain": UNIT},
        "Two-sided geometric noise of scale 2 was added to the counts of 9 records in 4 bins",
    ),
    "noisy_counts": (
        {"levels": [2, 3], "classes": 2, "noise": "laplace", "scale": [2.0]},
        "was added to the counts of 9 records by class and level",
    ),
    "clamped_moments": (
        {"bounds": [[0, 1], [0, 2]], "noise": "laplace", "scale": [2.0]},
        "sums of products of the clamped and rescaled values of 9 records",
    ),
    "log_moments": (
        {"components": 3, "threshold": 0.01, "parts": [4, 5], "scale": [2.0, 1.0]},
        "compositions of 9 records in parts of 4 and 5, censored at 0.01, which were released for all of",
    ),
    "posterior": (
        {"prior": [1.0, 1.0], "n": 9, "method": "laplace", "scale": [2.0], "noisy_counts": [4.2]},
        "The posterior given the counts of 9 records in 2 categories",
    ),
    "synthetic": (
        {
            "generator": "pitman_yor",
            "columns": [{"name": "x", "domain": [0, 1]}, {"name": "y", "categories": ["a", "b"]}],
            "concentration": 1.0,
            "discount": 0.0,
        },
        "posterior predictive of a Dirichlet process",
    ),
    "elsewhere": ({"scale": []}, "made of 9 records elsewhere"),
}

POSITIVE = "does not list a positive noise scale per column"
ONE_PAIR, ONE_SCALE = "does not state one pair of bounds", "does not state one noise scale"
BINS = "does not state its bins, a whole number of at least 1"
# kind, key, what stands there, what is said of it
WRONG: list[tuple[str, str, Any, str]] = [
    ("laplace", "scale", MISSING, POSITIVE),
    ("laplace", "scale", [], ""),
    ("laplace", "scale", [0.0], POSITIVE),
    ("laplace", "scale", [True], POSITIVE),
    ("laplace", "scale", 2.0, POSITIVE),
    ("laplace", "groups", GROUPS, "states groups, which a laplace release has none of"),
    ("gaussian", "scale", [1.0, 10**400], POSITIVE),
    ("wavelet", "levels", MISSING, "does not state its levels, a whole number of at least 0"),
    ("wavelet", "levels", 1.0, "does not state its levels, a whole number of at least 0"),
    ("wavelet", "levels", 25, "states more than 24 levels"),
    ("wavelet", "scale", [1.0, 1.0], ONE_SCALE),
    ("wavelet", "domain", MISSING, ONE_PAIR),
    ("wavelet", "domain", [[1.0, 0.0]], ONE_PAIR),
    ("binomial", "trials", 0, "does not state its trials, a whole number of at least 1"),
    ("binomial", "weight", 1.0, "does not state its weight, between 0 and 1"),
    ("binomial", "weight", MISSING, "does not state its weight, between 0 and 1"),
    ("binomial", "domain", [], ONE_PAIR),
    ("binomial", "scale", MISSING, POSITIVE),
    ("square_wave", "cells", 1, "does not state its cells, from 2 to 100000"),
    ("square_wave", "cells", MISSING, "does not state its cells, from 2 to 100000"),
    ("square_wave", "reach", 2, "states a reach of half its cells or more"),
    ("square_wave", "reach", -1, "does not state its reach, a whole number of at least 0"),
    ("square_wave", "ratio", "1/1", "does not state its ratio as p/q"),
    ("square_wave", "ratio", 3.0, "does not state its ratio as p/q"),
    ("square_wave", "domain", [], "does not state its bounds, one pair each"),
    ("randomized_response", "ratio", "3", "does not state its ratio as p/q"),
    ("randomized_response", "categories", MISSING, "does not list the categories of each column"),
    ("randomized_response", "categories", [["a"]], "does not list the categories of each column"),
    ("smoothed_histogram", "scale", [-1.0], POSITIVE),
    ("smoothed_histogram", "bins", MISSING, BINS),
    ("smoothed_histogram", "draws", 0, "does not state its draws, a whole number of at least 1"),
    ("smoothed_histogram", "weight", 0, "does not state its weight, between 0 and 1"),
    ("smoothed_histogram", "domain", MISSING, ONE_PAIR),
    ("smoothed_histogram", "groups", {"sex": ["f"]}, "does not state its groups"),
    ("perturbed_histogram", "bins", "4", BINS),
    ("perturbed_histogram", "noise", "uniform", "does not state its noise, one of laplace, gaussian"),
    ("perturbed_histogram", "noise", MISSING, "does not state its noise, one of laplace, gaussian"),
    ("perturbed_histogram", "scale", [], ONE_SCALE),
    ("perturbed_histogram", "domain", None, ONE_PAIR),
    ("perturbed_histogram", "groups", {"sex": ["f", "f"]}, "does not state its groups"),
    ("noisy_counts", "levels", [1], "does not state its levels, whole numbers of at least 2"),
    ("noisy_counts", "levels", [], "does not state its levels, whole numbers of at least 2"),
    ("noisy_counts", "classes", MISSING, "does not state its classes, a whole number of at least 1"),
    (
        "noisy_counts",
        "noise",
        "gaussian",
        "does not state its noise, laplace, geometric or discrete_gaussian",
    ),
    ("noisy_counts", "scale", MISSING, ONE_SCALE),
    ("clamped_moments", "bounds", [[0, 1]], "does not state its bounds, one pair per predictor"),
    ("clamped_moments", "noise", MISSING, "does not state its noise, laplace or geometric"),
    ("clamped_moments", "scale", [1.0, 1.0], ONE_SCALE),
    ("clamped_moments", "groups", GROUPS, "does not state its kappa, a positive number"),
    ("log_moments", "components", 1, "does not state its components, a whole number of at least 2"),
    ("log_moments", "threshold", 1, "does not state its threshold, between 0 and 1"),
    ("log_moments", "parts", [], "does not state the sizes of its parts"),
    ("log_moments", "scale", [1.0], "does not list a positive noise scale per part"),
    ("log_moments", "groups", GROUPS, "states two parts of a release of groups"),
    ("posterior", "prior", [1.0], "does not state its prior, positive numbers"),
    ("posterior", "n", MISSING, "does not state its number of records n"),
    ("posterior", "method", "gauss", "does not state its method, hellinger, laplace or geometric"),
    ("posterior", "method", "hellinger", "does not state its gamma, a positive number"),
    ("posterior", "method", "geometric", "lists noisy counts that are not whole"),
    ("posterior", "scale", MISSING, ONE_SCALE),
    ("posterior", "noisy_counts", MISSING, "does not list its noisy counts"),
    ("synthetic", "generator", MISSING, "does not state its generator, one of pitman_yor"),
    ("synthetic", "generator", "perturbed_histogram", "does not state its bins, one number per column"),
    ("synthetic", "generator", "posterior_predictive", "does not say what it is post-processing of"),
    ("synthetic", "columns", [], "does not describe its columns"),
    ("synthetic", "columns", [{"domain": [0, 1]}], "does not name every column"),
    ("synthetic", "columns", [{"name": "x", "domain": [1, 0]}], "does not state the bounds of x"),
    ("synthetic", "columns", [{"name": "x", "categories": []}], "does not state the categories of x"),
    ("synthetic", "concentration", "1", "does not state its concentration, a number"),
    ("synthetic", "snap", [None], "does not state the grids that values were moved to, one entry per column"),
]

# sections of a spec, the number of columns, and values that two of nine records may have
SECTIONS: dict[str, tuple[dict[str, Any], int]] = {
    "laplace": ({"domain": UNIT, "epsilon": 1.0}, 1),
    "gaussian": ({"domain": UNIT, "rho": 1.0}, 1),
    "wavelet": ({"domain": UNIT, "levels": 1, "epsilon": 1.0}, 1),
    "binomial": ({"domain": UNIT, "trials": 4, "epsilon": 1.0}, 1),
    "square_wave": ({"domain": UNIT, "cells": 8, "epsilon": 1.0}, 1),
    "randomized_response": ({"epsilon": 1.0}, 1),
    "smoothed_histogram": ({"domain": UNIT, "bins": 4, "draws": 3, "epsilon": 1.0}, 1),
    "perturbed_histogram": ({"domain": UNIT, "bins": 4, "noise": "laplace", "epsilon": 1.0}, 1),
    "noisy_counts": ({"levels": [2, 2], "classes": 2, "epsilon": 1.0}, 3),
    "clamped_moments": ({"bounds": [[0, 1], [0, 2]], "epsilon": 1.0}, 2),
    "log_moments": ({"threshold": 0.01, "epsilon": 1.0}, 2),
    "posterior": ({"prior": [1.0, 1.0], "epsilon": 1.0, "method": "geometric"}, 1),
}
CATEGORIES = {"randomized_response": (("a", "b"),)}
N = 9


def stated(kind: str, key: str | None = None, value: Any = MISSING) -> dict[str, Any]:
    found = {"kind": kind} | STATED[kind][0]
    return {k: v for k, v in (found | ({} if key is None else {key: value})).items() if v is not MISSING}


def section(kind: str) -> Any:
    return TypeAdapter(MechanismSpec).validate_python({"kind": kind} | SECTIONS[kind][0])


def records(kind: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return nine records that a mechanism takes."""
    rng, (_, columns) = rng_of("records", kind), SECTIONS[kind]
    if kind == "log_moments":
        return np.column_stack([share := rng.random(N), 1.0 - share])
    return rng.integers(0, 2, (N, columns)).astype(np.float64)


def test_every_kind_is_in_the_tables() -> None:
    assert set(STATED) == set(released_kinds())
    assert set(SECTIONS) == set(KINDS) == set(released_kinds()) - {"none", "synthetic", "elsewhere"}
    for kind in released_kinds():  # whatever a kind requires is left out once, or stated wrongly
        required = {name for name, field in law_type(kind).model_fields.items() if field.is_required()}
        assert required - {"kind"} <= {key for own, key, *_ in WRONG if own == kind}, kind


@pytest.mark.parametrize("kind", STATED)
def test_json_goes_there_and_back(kind: str) -> None:
    told = stated(kind) | {"a_key_of_another_version": [1, None]}
    law = law_of(told)
    assert type(law) is law_type(kind) and law.kind == kind
    assert law_type(kind)(**told) == law  # made by hand it states the same
    text = json.dumps(told)
    assert json.dumps(law.stated()) == text  # to the last digit: whole numbers stay so, keys keep their order
    again = law_of(json.loads(text))
    assert again == law == told and hash(again) == hash(law) and law_of(law) is law
    assert law != law.updated(another=1) and law != told | {"another": 1}
    law.stated()["kind"] = "changed"
    assert law == told
    assert {key: law[key] for key in law.keys()} == told and "nothing" not in law  # noqa: SIM118 - its face
    assert law.get("nothing", 3) == 3


@pytest.mark.parametrize("kind", STATED)
def test_laws_are_frozen(kind: str) -> None:
    law = law_of(stated(kind))
    with pytest.raises(ValidationError, match="frozen"):
        law.kind = "laplace"
    with pytest.raises(TypeError):
        law["kind"] = "laplace"  # type: ignore[index]


@pytest.mark.parametrize("kind", STATED)
def test_laws_say_what_was_done(kind: str) -> None:
    assert "1 records" not in law_of(stated(kind)).done(1)
    words = law_of(stated(kind)).done(N)
    assert STATED[kind][1] in words and words.endswith(".") and not words[0].islower()


@pytest.mark.parametrize(("kind", "key", "value", "said"), WRONG)
def test_what_is_wrong_is_named(kind: str, key: str, value: Any, said: str) -> None:
    law_of(stated(kind))
    if not said:
        law_of(stated(kind, key, value))
        return
    with pytest.raises(LawError) as raised:
        law_of(stated(kind, key, value))
    assert str(raised.value).startswith(said)
    assert raised.value.exit_code == 3


def test_a_description_names_its_kind() -> None:
    for odd in ({}, {"kind": 3}, {"kind": None}):
        with pytest.raises(LawError, match="does not name its kind"):
            law_of(odd)
    other = law_of({"kind": "of_next_year", "scale": [1.0]})
    assert other.kind == "of_next_year" and "of_next_year" in other.done(N)
    with pytest.raises(DataError, match="of_next_year, which no sampler of this version can fit"):
        other.observe(np.zeros((2, 1)), 2, [0], rows=False)


def test_who_expects_another_law_is_told() -> None:
    laplace = law_of(stated("laplace"))
    assert expect(laplace, LaplaceLaw) is laplace and expect(laplace, Additive) is laplace
    with pytest.raises(TypeError, match="WaveletLaw is expected, and this is the law of a laplace release"):
        expect(laplace, WaveletLaw)


@pytest.mark.parametrize("kind", KINDS)
def test_capabilities_are_those_of_the_mechanism(kind: str) -> None:
    law, (_, columns) = law_type(kind), SECTIONS[kind]
    made: Any = from_spec(section(kind), columns, N, categories=CATEGORIES.get(kind, ()))
    assert made.guarantee.trust == law.trust
    assert law.protects and law.guarantees
    release = made.simulate(records(kind), tuple(f"x{i}" for i in range(columns)), rng_of(kind))[0]
    told = release.mechanism
    assert type(told) is law and told == law_of(json.loads(json.dumps(told.stated())))
    assert told.problem(release.values) is None and told.disagreement(N, len(release.columns)) is None
    assert told.trust == release.trust == law.trust
    assert (len(release.values) == N) == (law.trust == "local")
    assert release.values.shape[1] == (columns if law.columns_each else told.width(1))
    assert (law.row == "record") == (law.trust == "local" or law.statistic)
    if law.on_domain:
        assert told.public_bounds == ((0.0, 1.0),)
    if told.provides("edges"):
        assert told.edges()[[0, -1]].tolist() == [0.0, 1.0]
    else:
        with pytest.raises(ValueError, match="has no cells"):
            told.edges()


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_for_laws_that_are_grouped(kind: str) -> None:
    law, (_, columns) = law_type(kind), SECTIONS[kind]
    groups = Groups("sex", ("f", "m"))
    if not law.grouped:
        with pytest.raises(SpecError, match=f"{kind} is not for groups"):
            from_spec(section(kind), columns, N, groups=groups)
        return
    made: Any = from_spec(section(kind), columns, N, groups=groups)
    values = np.column_stack([records(kind), np.arange(N) % 2])
    told = made.simulate(values, tuple(f"x{i}" for i in range(columns)), rng_of(kind))[0].mechanism
    assert told.group_names == ("f", "m") and told.done(N).endswith(
        "how many records a group has is private."
    )


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_released_by_themselves_where_the_law_says_so(kind: str) -> None:
    law = law_type(kind)
    if kind in CATEGORIES:
        told = law_of(from_spec(section(kind), 2, N, categories=CATEGORIES[kind] * 2).describe())
        assert told["categories"] == [["a", "b"]] * 2
    elif law.columns_each:
        two = section(kind).model_copy(update={"domain": ((0.0, 1.0), (0.0, 1.0))})
        told = law_of(from_spec(two, 2, N).describe())
        assert len(told.scale) == (2 if told.additive else 0) and len(told.public_bounds or ()) == 2
    elif not law.statistic:
        with pytest.raises(SpecError, match="releases (one|the counts of one)"):
            from_spec(section(kind), 2, N)


@pytest.mark.parametrize("kind", KINDS)
def test_a_law_of_a_known_number_asks_for_it(kind: str) -> None:
    law, (_, columns) = law_type(kind), SECTIONS[kind]
    assert needs_n(section(kind)) == law.of_known_number
    if law.of_known_number:
        with pytest.raises(SpecError, match=r"mechanism\.n: missing"):
            from_spec(section(kind), columns)
    else:
        from_spec(section(kind), columns, categories=CATEGORIES.get(kind, ()))


def test_laws_can_what_is_stated_of_them_once() -> None:
    laws = {kind: law_type(kind) for kind in released_kinds()}
    for kind, law in laws.items():
        of = capabilities_of(kind)
        assert all(getattr(law, name) == getattr(of, name) for name in Capabilities.__class_vars__)
    histograms = {kind for kind, law in laws.items() if law.released == "histogram"}
    assert histograms == {kind for kind, law in laws.items() if issubclass(law, HistogramLaw)}
    assert {kind for kind, law in laws.items() if law.additive} == {
        kind for kind, law in laws.items() if issubclass(law, Additive)
    }
    fitted = {kind for kind, law in laws.items() if law.observe is not Law.observe}
    assert fitted == set(taken_by("mixture")) == {*histograms, *mixtures_take("records")}
    assert {kind for kind, law in laws.items() if law.normal_noise} == {"gaussian"}
    assert {kind for kind, law in laws.items() if not law.guarantees} == {"none", "elsewhere"}
    assert {kind for kind, law in laws.items() if not law.protects} == {"none"}
    assert {law.trust == "local" for law in laws.values() if law.released == "records"} == {True}


def test_laws_have_what_local_releases_are_told_by() -> None:
    """Of releases of records, the check, likelihoods and advice ask the law, whichever it is."""
    local = {kind for kind in mixtures_take("records") if capabilities_of(kind).protects}
    for method in ("draw", "cell_likelihood", "information"):
        assert {kind for kind in local if law_type(kind).provides(method)} == local, method
    having = {
        method: {kind for kind in released_kinds() if law_type(kind).provides(method)}
        for method in ("basis", "places", "log_marginal", "transition", "tabulated")
    }
    assert having == {
        "basis": {"wavelet"},
        "places": {"binomial", "square_wave"},
        "log_marginal": {"none", "laplace", "gaussian"},
        "transition": {kind for kind in released_kinds() if capabilities_of(kind).transitional},
        "tabulated": {"perturbed_histogram", "noisy_counts", "posterior"},
    }
    for method, arguments in (("basis", ()), ("noise_cdf", (0.0,)), ("cell_likelihood", (np.zeros(1), 1.0))):
        with pytest.raises(TypeError, match="noisy_counts"):
            getattr(law_of(stated("noisy_counts")), method)(*arguments)


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "binomial", "square_wave", "wavelet"])
def test_the_likelihood_by_cells_is_a_density_of_what_is_drawn(kind: str) -> None:
    """It adds up to 1 over all releases, and has the mean of draws from records in one place."""
    own = {"wavelet": {"levels": 0}, "square_wave": {"cells": 20, "reach": 2}}.get(kind, {})
    law = law_of(stated(kind) | {"domain": [[0.0, 8.0]]} | own)
    scale = law.scale[0] if law.scale else np.nan
    values = np.arange(law.outputs) * 1.0 if law.outputs is not None else np.linspace(-40.0, 40.0, 4001)
    width = 1.0 if law.outputs is not None else values[1] - values[0]
    released = values[:, None] if kind == "wavelet" else values
    likelihood = law.cell_likelihood(released, scale)
    at = np.searchsorted(likelihood.edges, 2.0, side="right")
    masses = np.zeros((1, len(likelihood.edges) + 1))
    masses[0, at] = 1.0
    density = np.exp(likelihood.logs([masses]))[0] * width
    assert density.sum() == pytest.approx(1.0, abs=1e-4)
    drawn = law.draw(np.full(20_000, 2.0 + 1e-9), scale, rng_of("drawn", kind)).ravel()
    mean = float(density @ values)
    assert abs(drawn.mean() - mean) < 5.0 * drawn.std() / np.sqrt(drawn.size) + 0.01


@pytest.mark.parametrize("kind", ["binomial", "square_wave"])
def test_places_are_those_of_records(kind: str) -> None:
    """The binomial mechanism's are right on average; an output of a square wave stands for its cell."""
    law = law_of(stated(kind) | {"domain": [[-1.0, 3.0]]} | ({"trials": 9} if kind == "binomial" else {}))
    places = law.places(np.arange(law.outputs) * 1.0)
    assert np.diff(places) == pytest.approx(np.full(len(places) - 1, law.step))
    drawn = law.places(law.draw(np.full(40_000, 1.3), np.nan, rng_of("places", kind)))
    if kind == "binomial":
        assert abs(drawn.mean() - 1.3) < 5.0 * drawn.std() / 200.0
    else:
        assert places[law.reach + 2] == pytest.approx(1.5)  # the middle of the third of four cells
        assert np.bincount(np.rint((drawn - places[0]) / law.step).astype(int))[2:5].min() > 8_000


def mixtures_take(released: str) -> set[str]:
    return {kind for kind in released_kinds() if capabilities_of(kind).released == released}


def test_a_section_is_in_the_folder_of_its_kind() -> None:
    folders = Path(dpmix.mechanisms.__file__).parent
    assert {place.parent.name for place in folders.glob("*/section.py")} == set(MECHANISMS.names)
    for kind in MECHANISMS.names:
        assert get_args(MECHANISMS.section(kind).model_fields["kind"].annotation) == (kind,)
    folders = Path(dpmix.models.__file__).parent
    assert {place.parent.name for place in folders.glob("*/section.py")} == set(MODELS.names) - {"mixture"}


@pytest.mark.parametrize("kind", ["wavelet", "binomial", "laplace", "square_wave"])
def test_the_acceptance_bound_is_that_of_densities(kind: str) -> None:
    # the largest ratio of the densities of a release over records within and beyond the bounds
    made: Any = from_spec(section(kind), 1, N)
    law = law_of(made.describe())
    inside, beyond = np.array([0.0, 0.3, 0.7, 1.0]), np.array([-1.0, 2.0])
    for records, on_domain in ((inside, True), (np.append(inside, beyond), False)):
        assert law.bounds_acceptance(on_domain) == (
            _largest_ratio(law, records) <= made.guarantee.epsilon + 1e-9
        )


def _largest_ratio(law: Any, records: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Return the largest log ratio of densities, by the definition of each mechanism."""
    if isinstance(law, LaplaceLaw):
        return float(np.ptp(records)) / law.scale[0]
    place = np.clip(records, 0.0, 1.0)
    if isinstance(law, WaveletLaw):  # at most |h - h'| / s, h the Haar coefficients of the cells
        half, side = place >= 0.5, (np.minimum(place, 0.999) * 4).astype(int) % 2
        rows = np.zeros((place.size, 3))
        rows[:, 0] = np.where(half, -1.0, 1.0)
        rows[np.arange(place.size), 1 + half] = np.sqrt(2.0) * np.where(side, -1.0, 1.0)
        return float(np.abs(rows[:, None] - rows[None]).sum(axis=2).max()) / law.scale[0]
    if isinstance(law, SquareWaveLaw):  # who are in different cells differ by r at some output
        return float(np.log(law.odds)) if np.ptp(place) > 1.0 / law.cells else 0.0
    p = 0.5 + law.weight * (place - 0.5)
    return law.trials * float(np.log(p.max() / p.min()))


@pytest.mark.parametrize("kind", ["gaussian", "none", "noisy_counts", "posterior", "synthetic"])
def test_no_acceptance_bound_without_a_pure_channel(kind: str) -> None:
    law = law_of(stated(kind))
    assert not law.bounds_acceptance(True) and not law.bounds_acceptance(False)


def test_draws_from_counts_have_the_mean_of_the_histogram() -> None:
    counts, rng = np.array([5.0, 3.0, 1.0, 0.0]), rng_of("counts of bins")
    noisy: Any = law_of(stated("perturbed_histogram"))
    drawn = np.array([noisy.draw_from_counts(counts, rng) for _ in range(4000)])
    assert np.abs(drawn.mean(axis=0) - counts).max() < 4.5 * drawn.std() / np.sqrt(4000)
    smooth: Any = law_of(stated("smoothed_histogram", "weight", 0.75))
    drawn = np.array([smooth.draw_from_counts(counts, rng) for _ in range(4000)])
    wanted = 3.0 * (0.25 * counts / 9.0 + 0.75 / 4.0)
    assert (drawn.sum(axis=1) == 3.0).all()
    assert np.abs(drawn.mean(axis=0) - wanted).max() < 4.5 * np.sqrt(0.75 / 4000)
