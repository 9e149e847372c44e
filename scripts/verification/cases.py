"""What is calibrated: every sampler with every release, kernel and model that it takes.

Noise is on the scale of what it hides, so that neither it nor the prior settles the posterior. Additive
noise is on values that are clamped to bounds far from all of them, for the models know no clamping.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpmix.errors import SpecError
from dpmix.spec import load_spec
from scripts.verification import laws
from scripts.verification.laws import Law
from tests.oracles.joint import Model

__all__ = ["Case", "all_cases", "covering", "kinds_of"]

CHAIN = {"iterations": 100, "burn_in": 0, "chains": 1}
CONCENTRATION = {"shape": 2.0, "rate": 2.0}
DISCOUNT = 0.1
NIG = (0.0, 0.3, 3.0, 2.0)
NIW = ((0.0, 0.0), 0.3, 5.0, ((1.5, 0.4), (0.4, 1.5)))
BETA = (4.0, 1.0, 4.0, 1.0, 0.0, 1.0)
GAUSSIAN_SD = 1.0  # of the Gaussian noise under a truncated base measure
BIG, NARROW = 60.0, 4.0  # half the widths of bounds

SAMPLERS: dict[str, tuple[str, str, int]] = {  # kind, latent, sweeps between draws
    "neal2": ("neal2", "exact", 12),
    "neal3": ("neal3", "exact", 12),
    "split_merge": ("split_merge", "exact", 20),
    "neal8": ("neal8", "exact", 12),
    "counts": ("counts", "exact", 8),
    "private_slice": ("private_slice", "exact", 20),
    "private_slice, metropolis": ("private_slice", "metropolis", 60),
    "blocked_gibbs": ("blocked_gibbs", "exact", 12),
    "blocked_gibbs, metropolis": ("blocked_gibbs", "metropolis", 30),
    "private_neal5": ("private_neal5", "exact", 60),
}
SLOW = {
    "smoothed_histogram": 4,
    "perturbed_histogram": 4,
    "wavelet": 2,
    "binomial": 2,
    "square_wave": 2,
}  # times as many sweeps
CELLS: dict[str, dict[str, Any]] = {
    "wavelet": {"levels": 2, "epsilon": 4.0},
    "binomial": {"trials": 6, "epsilon": 4.0},
    "square_wave": {"cells": 20, "epsilon": 3.0},
    "smoothed_histogram": {"bins": 5, "draws": 12, "epsilon": 2.0},
    "perturbed_histogram": {"bins": 5, "noise": "laplace", "epsilon": 1.0},
    "perturbed_histogram, geometric": {"bins": 5, "noise": "geometric", "epsilon": 1.0},
    "perturbed_histogram, gaussian": {"bins": 5, "noise": "gaussian", "rho": 0.5},
}


@dataclass(frozen=True)
class Case:
    """One calibration.

    Parameters
    ----------
    model, release, sampler : str
        Of what; names of the page.
    spec : mapping
        Sections ``mechanism`` or ``synthesis``, ``model`` and ``sampler``.
    law : Law
        The joint law of the model's parameters and the confidential records.
    columns : tuple of str
    thin : int
        Sweeps between draws, and a hundredth of those before the first, about.
    n : int
        Confidential records.
    clamped : bool
        Whether records are cut to the bounds before additive noise, as they are by the mechanisms; the models
        know no such thing, so that records that are often beyond the bounds are released as they are.
    """

    model: str
    release: str
    sampler: str
    spec: Mapping[str, Any] = field(hash=False)
    law: Law = field(hash=False)
    columns: tuple[str, ...] = ("x",)
    thin: int = 1
    n: int = 20
    clamped: bool = True

    @property
    def name(self) -> str:
        """Name, unique among cases."""
        return f"{self.model} / {self.release} / {self.sampler}"


def _mixtures() -> dict[str, tuple[dict[str, Any], laws.Mixture]]:
    prior = (CONCENTRATION["shape"], CONCENTRATION["rate"])
    nig = dict(zip(("mu0", "lambda", "a", "b"), NIG, strict=True))
    niw = dict(zip(("mu0", "lambda", "nu", "Psi"), NIW, strict=True))
    beta = dict(zip(("a_shape", "a_rate", "b_shape", "b_rate"), BETA[:4], strict=True))
    channel = ("none", 0.0)  # the law of the records, before any release
    return {
        "normal": (
            {"base": nig},
            laws.Mixture(Model(channel, NIG, DISCOUNT, prior), (-2.0, 0.0, 2.0)),
        ),
        "normal, truncated base": (
            {"base": nig | {"kind": "truncated_nig"}},
            laws.Mixture(
                Model(channel, (*NIG, GAUSSIAN_SD**2), DISCOUNT, prior, "truncated"), (-2.0, 0.0, 2.0)
            ),
        ),
        "beta": (
            {"kernel": "beta", "base": beta},
            laws.Mixture(Model(channel, BETA, DISCOUNT, prior, "beta"), (0.2, 0.5, 0.8)),
        ),
        "multivariate normal": (
            {"kernel": "multivariate_normal", "base": niw},
            laws.Mixture(
                Model(channel, NIW, DISCOUNT, prior, "multivariate"), ((0.0, 0.0), (2.0, 0.0), (-1.0, 1.0))
            ),
        ),
    }


def _mechanism(release: str, model: str) -> dict[str, Any]:
    columns = 2 if model == "multivariate normal" else 1
    kind = release.split(",")[0]
    if kind == "none":
        return {"kind": "none"}
    if kind in ("laplace", "gaussian"):
        half = 0.5 if model == "beta" else BIG
        pair = [0.0, 1.0] if model == "beta" else [-BIG, BIG]
        scale = 0.3 if model == "beta" else GAUSSIAN_SD  # the noise's, to which the guarantee is set
        guarantee = (
            {"epsilon": columns * 2 * half / scale}
            if kind == "laplace"
            else {"rho": columns * (2 * half / scale) ** 2 / 2}
        )
        return {"kind": kind, **guarantee, "domain": [pair] * columns}
    domain = [0.0, 1.0] if model == "beta" else [-NARROW, NARROW]
    return {"kind": kind, **CELLS[release], "domain": [domain] * columns}


def _counted(spec: dict[str, Any], law: laws.Mixture, release: str, model: str) -> laws.Mixture:
    """Change a spec to what the sampler on counts takes, coarse cells included; return the law of it."""
    spec["model"]["discount"] = 0.0
    if release == "none":
        pair = [0.0, 1.0] if model == "beta" else [-BIG, BIG]
        spec["mechanism"]["domain"] = [pair]
    if release in ("none", "laplace", "gaussian"):
        spec["sampler"]["width"] = 0.1 if model == "beta" else 0.75
    return dataclasses.replace(law, model=dataclasses.replace(law.model, discount=0.0))


def mixture_cases() -> list[Case]:
    """Return every combination of mixture, release and sampler that a spec may ask for."""
    found = []
    releases = ("laplace", "gaussian", "none", *CELLS)
    for (model, (section, law)), release in itertools.product(_mixtures().items(), releases):
        for sampler, (kind, latent, thin) in SAMPLERS.items():
            if "," in release and kind != "private_slice":
                continue  # the kinds of noise differ in one function of a number: once is enough
            spec = {
                "mechanism": _mechanism(release, model),
                "model": {
                    "kind": "mixture",
                    "concentration": CONCENTRATION,
                    "discount": DISCOUNT,
                    **section,
                },
                "sampler": {"kind": kind, "latent": latent, "truncation": 150, **CHAIN},
            }
            own = law
            if kind == "counts":
                own = _counted(spec, law, release, model)
            try:
                load_spec(spec)
            except SpecError:
                continue
            columns = ("x", "y") if model == "multivariate normal" else ("x",)
            slow = SLOW.get(release.split(",")[0], 1)
            found.append(Case(f"mixture: {model}", release, sampler, spec, own, columns, thin * slow))
    return found


def default_mixtures() -> list[Case]:
    """Return mixtures whose spec states no prior, but has the defaults of methods, section 15.

    The law states them anew, from the bounds [-4, 4] and [0, 1]. Some records lie beyond the first, which the
    cells of releases account for.
    """
    width, gamma = 2.0 * NARROW, (2.0, 1.0)
    nig = (0.0, 0.16, 3.0, width**2 / 50.0)
    psi = ((width**2 / 25.0, 0.0), (0.0, width**2 / 25.0))
    niw, beta = ((0.0, 0.0), 0.16, 7.0, psi), (2.0, 0.2, 2.0, 0.2, 0.0, 1.0)
    channel, points = ("none", 0.0), (-2.0, 0.0, 2.0)
    spread = 0.25 * width
    normal = laws.LearnedMixture(Model(channel, nig, 0.0, gamma), points, (spread,))
    several = laws.LearnedMixture(
        Model(channel, niw, 0.0, gamma, "multivariate"),
        ((0.0, 0.0), (2.0, 0.0), (-1.0, 1.0)),
        (spread, spread),
    )
    betas = laws.LearnedBetas(Model(channel, beta, 0.0, gamma, "beta"), (0.2, 0.5, 0.8), (1.8,))
    sections = {"normal": (normal, {}), "beta": (betas, {"kernel": "beta"})}
    sections["multivariate normal"] = (several, {"kernel": "multivariate_normal"})
    found = []
    for model, release, sampler in (
        ("normal", "laplace", "neal8"),
        ("normal", "laplace", "private_slice"),
        ("normal", "gaussian", "neal8"),
        ("normal", "wavelet", "neal8"),
        ("normal", "perturbed_histogram", "private_slice"),
        ("beta", "wavelet", "neal8"),
        ("beta", "perturbed_histogram", "private_slice"),
        ("multivariate normal", "gaussian", "neal8"),
    ):
        law, section = sections[model]
        columns = ("x", "y") if model == "multivariate normal" else ("x",)
        mechanism = _mechanism(release, model)
        additive = release in ("laplace", "gaussian")
        if additive:  # noise of scale 1
            guarantee = {"epsilon": width} if release == "laplace" else {"rho": len(columns) * width**2 / 2}
            mechanism = {"kind": release, **guarantee, "domain": [[-NARROW, NARROW]] * len(columns)}
        spec = {
            "mechanism": mechanism,
            "model": {"kind": "mixture", **section},
            "sampler": {"kind": sampler, **CHAIN},
        }
        thin = SAMPLERS[sampler][2] * SLOW.get(release, 1)
        title = f"mixture: {model}, default prior"
        found.append(Case(title, release, sampler, spec, law, columns, thin, clamped=not additive))
    return found


def _parametric(
    model: str, release: str, sampler: str, mechanism: Mapping[str, Any], section: Mapping[str, Any],
    law: Law, columns: Sequence[str], thin: int, n: int = 20, *, synthesis: bool = False, **keys: Any,
) -> Case:  # fmt: skip
    spec = {
        "synthesis" if synthesis else "mechanism": dict(mechanism),
        "model": dict(section),
        "sampler": {**CHAIN, **keys},
    }
    return Case(model, release, sampler, spec, law, tuple(columns), thin, n)


def _naive_bayes() -> list[Case]:
    law = laws.NaiveBayes((3, 2), 2, 2.0)
    found = []
    for noise, (sampler, keys, thin) in itertools.product(
        ("laplace", "geometric"),
        (
            ("data_augmentation", {}, 10),
            ("data_augmentation, metropolis", {"latent": "metropolis"}, 30),
            ("soma", {"kind": "soma"}, 40),
        ),
    ):
        mechanism = {"kind": "noisy_counts", "levels": [3, 2], "classes": 2, "epsilon": 3.0, "noise": noise}
        model = {"kind": "naive_bayes", "prior": 2.0}
        found.append(
            _parametric(
                "naive_bayes", f"noisy_counts, {noise}", sampler, mechanism, model, law, "abc", thin, **keys
            )
        )
    return found


def _regressions() -> list[Case]:
    found = []
    unknown = {
        "sigma2_prior": {"a": 3.0, "b": 2.0},
        "x_prior": {"mu0": [0.0, 0.0], "lambda": 1.0, "nu": 6.0, "Psi": [[1.0, 0.0], [0.0, 1.0]]},
    }
    laws_and_models: dict[str, tuple[laws.Regression, dict[str, Any]]] = {
        "all else known": (
            laws.Regression(1, 0.5, 1.0, 0.5, (2.0, 1.0), True, 3.0),
            {"sigma2": 0.5, "x_mean": [0.0], "x_cov": [[1.0]]},
        ),
        "all unknown": (
            laws.Regression(2, 0.5, 1.0, None, (3.0, 2.0), False, 6.0),
            unknown,
        ),
        "all unknown, truncated": (
            laws.Regression(2, 0.5, 1.0, None, (3.0, 2.0), False, 6.0, truncated=True),
            unknown | {"response": "truncated"},
        ),
        "all unknown, clamped predictors": (
            laws.Regression(2, 0.5, 1.0, None, (3.0, 2.0), False, 6.0, clamped=True),
            unknown | {"predictors": "clamped"},
        ),
        "all unknown, truncated, clamped predictors": (
            laws.Regression(2, 0.5, 1.0, None, (3.0, 2.0), False, 6.0, truncated=True, clamped=True),
            unknown | {"response": "truncated", "predictors": "clamped"},
        ),
    }
    # as the defaults have it: on [-1, 1] coefficients are Cauchy, and the means of the variances' scales are
    # 1/4 of the errors, 4/25 of each predictor
    default = laws.Regression(
        2, 0.0, 1.0, None, (3.0, 9.0 / 4.0), False, 7.0, scale=4.0 * 4.0 / 25.0, lam=0.16, learned=True
    )
    laws_and_models["default prior"] = (dataclasses.replace(default, cauchy=True), {})
    laws_and_models["learned scales, truncated, clamped predictors"] = (
        dataclasses.replace(default, p=1, nu=6.0, prior_mean=0.5, truncated=True, clamped=True),
        {"response": "truncated", "predictors": "clamped"},
    )
    for (title, (law, section)), (sampler, keys, thin) in itertools.product(
        laws_and_models.items(),
        (
            ("data_augmentation", {}, 30),
            ("data_augmentation, not joint", {"joint": False}, 60),
            ("soma", {"kind": "soma"}, 30),
        ),
    ):
        bounds = [[-2.0, 2.0]] * law.p + [[-3.0, 3.0]]
        mechanism = {"kind": "clamped_moments", "bounds": bounds, "epsilon": 8.0}
        model = {"kind": "linear_regression", **section}
        if section:
            model |= {"prior_mean": 0.5, "prior_sd": 1.0}
        elif sampler != "data_augmentation":
            continue
        columns = ("x", "y") if law.p == 1 else ("x1", "x2", "y")
        name = f"linear_regression, {title}"
        found.append(
            _parametric(name, "clamped_moments", sampler, mechanism, model, law, columns, thin, **keys)
        )
    return found


def _compositions() -> list[Case]:
    law = laws.Composition(3, 2.0, 1.0)
    found = []
    sizes: dict[str, dict[str, Any]] = {"log_moments": {}, "log_moments, split": {"split": 0.4}}
    for (name, split), (sampler, keys, thin) in itertools.product(
        sizes.items(),
        (
            ("data_augmentation", {}, 10),
            ("data_augmentation, not joint", {"joint": False}, 40),
            ("soma", {"kind": "soma"}, 40),
        ),
    ):
        mechanism = {"kind": "log_moments", "threshold": 0.02, "epsilon": 6.0, **split}
        model = {"kind": "dirichlet", "prior": {"shape": 2.0, "rate": 1.0}}
        found.append(_parametric("dirichlet", name, sampler, mechanism, model, law, "abc", thin, **keys))
    return found


def _multinomials() -> list[Case]:
    found = []
    settings: dict[str, dict[str, Any]] = {
        "hellinger, certified": {"method": "hellinger", "calibration": "certified", "delta": 1e-3},
        "hellinger, proved": {"method": "hellinger", "calibration": "proved", "delta": 1e-3},
        "hellinger, theorem": {"method": "hellinger", "calibration": "theorem", "delta": 1e-3},
        "laplace": {"method": "laplace"},
        "geometric": {"method": "geometric"},
    }
    for (name, keys), prior in itertools.product(settings.items(), ((1.0, 2.0), (1.0, 1.0, 1.0))):
        mechanism = {"kind": "posterior", "prior": list(prior), "epsilon": 1.0, **keys}
        law = laws.Multinomial(prior)
        title = f"multinomial, {len(prior)} categories"
        model = {"kind": "multinomial"}
        found.append(
            _parametric(title, f"posterior, {name}", "data_augmentation", mechanism, model, law, ("x",), 10)
        )
    return found


def _answers() -> list[Case]:
    """Return the models given randomized responses, whose categories are those of ``data``."""
    mechanism = {"kind": "randomized_response", "epsilon": 2.0}
    one: Law = laws.Multinomial((1.0, 1.0, 1.0))
    several: Law = laws.NaiveBayes((3, 2), 2, 2.0)
    found = []
    for model, law, columns, sizes, thin in (
        ({"kind": "multinomial"}, one, ("x",), (3,), 3),
        ({"kind": "naive_bayes", "prior": 2.0}, several, ("x1", "x2", "y"), (3, 2, 2), 20),
    ):
        title = "multinomial, 3 categories" if len(sizes) == 1 else "naive_bayes"
        case = _parametric(
            title, "randomized_response", "data_augmentation", mechanism, model, law, columns, thin
        )
        listed = {name: list("abcdef"[:size]) for name, size in zip(columns, sizes, strict=True)}
        data = {"path": "none.csv", "columns": list(columns), "categories": listed}
        found.append(dataclasses.replace(case, spec={"data": data, **case.spec}))
    return found


def _discretes() -> list[Case]:
    law = laws.Discrete(2.0, 0.0)
    skewed = laws.Discrete(2.0, 0.25)
    model = {"kind": "discrete", "concentration": 2.0, "discount": 0.0}
    four = {"bins": 4, "domain": [0.0, 1.0]}
    found = []
    for kind, keys in (
        ("perturbed_histogram", {"noise": "laplace", "epsilon": 1.0}),
        ("perturbed_histogram", {"noise": "geometric", "epsilon": 1.0}),
        ("perturbed_histogram", {"noise": "gaussian", "rho": 0.5}),
        ("smoothed_histogram", {"draws": 15, "epsilon": 2.0}),
    ):
        name = f"{kind}, {keys['noise']}" if "noise" in keys else kind
        for sampler, latent, thin in (
            ("data_augmentation", "exact", 15),
            ("data_augmentation, metropolis", "metropolis", 30),
        ):
            mechanism = {"kind": kind, **four, **keys}
            found.append(
                _parametric("discrete", name, sampler, mechanism, model, law, ("x",), thin, latent=latent)
            )
    for name, section, own in (
        ("pitman_yor, discount 0", {"kind": "pitman_yor", "discount": 0.0, "concentration": 2.0}, law),
        ("pitman_yor, discount 0.25", {"kind": "pitman_yor", "discount": 0.25, "concentration": 2.0}, skewed),
        ("dirichlet_multinomial", {"kind": "dirichlet_multinomial", "concentration": 3.0, "bins": 4}, law),
        ("perturbed_histogram records", {"kind": "perturbed_histogram", "bins": 4, "epsilon": 1.0}, law),
        ("smoothed_histogram records", {"kind": "smoothed_histogram", "bins": 4, "epsilon": 2.0}, law),
    ):
        used = {"kind": "discrete"} if section["kind"] == "pitman_yor" else model
        settings = {**section, "records": 10}
        found.append(
            _parametric(
                "discrete", name, "data_augmentation", settings, used, own, ("x",), 15, synthesis=True
            )
        )
    return found


def all_cases() -> list[Case]:
    """Return all cases."""
    return [
        *mixture_cases(),
        *default_mixtures(),
        *_discretes(),
        *_naive_bayes(),
        *_regressions(),
        *_compositions(),
        *_multinomials(),
        *_answers(),
    ]


def covering(cases: Sequence[Case]) -> list[Case]:
    """Return few of the cases that have every kind of model, release and sampler among them.

    Greedy: the case with most that has not been seen comes next, of equals the first.
    """
    seen: set[tuple[str, str]] = set()
    found: list[Case] = []
    while True:
        best = max(cases, key=lambda case: len(kinds_of(case) - seen))
        if not kinds_of(best) - seen:
            return found
        found.append(best)
        seen |= kinds_of(best)


def kinds_of(case: Case) -> set[tuple[str, str]]:
    """Return the kinds of model, release and sampler that a case has, without what follows a comma.

    Of a mixture kernel and base count.
    """
    model = case.model if case.model.startswith("mixture") else case.model.split(",")[0]
    release, sampler = (name.split(",")[0] for name in (case.release, case.sampler))
    return {("model", model), ("release", release), ("sampler", sampler)}
