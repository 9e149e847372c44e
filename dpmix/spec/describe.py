"""What a spec describes, in a few words a section."""

from __future__ import annotations

from typing import Any

from dpmix.numerics.rounding import stated as exact
from dpmix.spec.audit_section import AuditSpec
from dpmix.spec.data_section import DataSpec
from dpmix.spec.default_priors import (
    BETA,
    CONCENTRATION,
    NIG,
    NIW,
    RECORDS_SD,
    TRUNCATED_MEANS,
    coefficients_in_words,
    nig_from_bounds,
    niw_from_bounds,
    prior_in_words,
)
from dpmix.spec.mechanism_section import (
    BinomialMechanism,
    LogMomentsMechanism,
    MechanismSection,
    PerturbedHistogramMechanism,
    PosteriorMechanism,
    SmoothedHistogramMechanism,
    WaveletMechanism,
)
from dpmix.spec.model_section import (
    BetaMixture,
    DirichletModel,
    DiscreteModel,
    GammaPrior,
    LinearRegressionModel,
    MultivariateNormalMixture,
    NIWBase,
    NormalMixture,
)
from dpmix.spec.privacy_section import PrivacySpec
from dpmix.spec.run_spec import RunSpec
from dpmix.spec.synthesis_section import SynthesisSection

Pairs = tuple[tuple[float, float], ...]


def describe(spec: RunSpec) -> dict[str, str]:
    """Return one line per section that the spec has, keyed by the section's name."""
    lines: dict[str, str] = {}
    if spec.data is not None:
        lines["data"] = _data(spec.data)
    if spec.release is not None:
        columns = ", ".join(spec.release.columns or ("all columns",))
        lines["release"] = f"{columns} of {spec.release.path or 'the release file'}"
    if spec.mechanism is not None:
        lines["mechanism"] = _mechanism(spec.mechanism, spec.groups is not None) + _by_groups(spec)
    if spec.synthesis is not None:
        lines["synthesis"] = _synthesis(spec.synthesis)
    if isinstance(spec.model, (NormalMixture, BetaMixture, MultivariateNormalMixture)):
        domain = None if spec.mechanism is None else spec.mechanism.domain
        lines["model"] = _mixture(spec.model, domain)
    elif isinstance(spec.model, DiscreteModel):
        lines["model"] = _discrete(spec.model)
    elif isinstance(spec.model, DirichletModel):
        lines["model"] = _dirichlet(spec.model, spec.sampler.kind)
    elif spec.model is not None:
        lines["model"] = _parametric(spec.model)
        if isinstance(spec.model, LinearRegressionModel):
            lines["model"] += _coefficients(spec.model, spec) + _response(spec.model)
    if spec.audit is not None:
        lines["audit"] = _audit(spec.audit)
    if spec.privacy is not None:
        lines["privacy"] = _privacy(spec.privacy)
    if spec.model is not None:
        sampler = spec.sampler
        lines["sampler"] = (
            f"{sampler.kind}, {_count(sampler.chains, 'chain')} of {_count(sampler.iterations, 'sweep')} "
            f"({sampler.burn_in_sweeps} burn-in), {_count(sampler.draws * sampler.chains, 'draw')} kept"
        )
    return lines


def _audit(audit: AuditSpec) -> str:
    delta = f", delta = {exact(audit.delta)}" if audit.delta else ""
    program = "a program given in Python" if audit.command is None else " ".join(audit.command)
    tables = "made of public bounds" if audit.tables is None else " and ".join(map(str, audit.tables))
    return f"{program}, which claims epsilon = {exact(audit.epsilon)}{delta}; tables {tables}"


def _by_groups(spec: RunSpec) -> str:
    """Say which groups are released together, if any."""
    if spec.groups is None:
        return ""
    name, names = spec.groups
    return f", of {len(names)} groups by {name} ({', '.join(names)}) whose sizes are private"


def _data(data: DataSpec) -> str:
    if data.simulate is not None:
        seed = "" if data.seed is None else f", seed {data.seed}"
        return f"{_count(data.n or 0, 'record')} of {data.simulate}{seed}, simulated"
    place = ", ".join(map(str, data.source.parts))
    by = "" if data.group is None else f" by {data.group}"
    part = "" if data.part is None else f", a public part of {data.part.of}"
    return f"{', '.join(data.columns or ('all columns',))}{by} of {place}{part}"


def _privacy(privacy: PrivacySpec) -> str:
    place = "no ledger named" if privacy.ledger is None else f"ledger {privacy.ledger}"
    budget = privacy.budget
    name = "unnamed data" if privacy.dataset is None else f"data set {privacy.dataset}"
    if privacy.accountant is not None:
        place += f", added up by {privacy.accountant}"
    if budget is None:
        return f"{name} in {place}"
    given = {key: getattr(budget, key) for key in ("epsilon", "delta", "rho")}
    stated = ", ".join(f"{key} = {exact(value)}" for key, value in given.items() if value is not None)
    return f"{name} in {place}, budget {stated}"


def _mechanism(mechanism: MechanismSection, grouped: bool) -> str:
    if mechanism.kind == "none":
        return "none, values are not protected"
    keys = ("epsilon", "epsilon1", "epsilon2", "delta", "rho", "scale", "weight")
    given = {key: getattr(mechanism, key, None) for key in keys}
    stated = ", ".join(f"{key} = {exact(value)}" for key, value in given.items() if value is not None)
    bounds = ", ".join(f"[{lo:g}, {hi:g}]" for lo, hi in mechanism.domain or ())
    return f"{_released(mechanism, grouped)} with {stated}" + (f" over {bounds}" if bounds else "")


def _coefficients(model: LinearRegressionModel, spec: RunSpec) -> str:
    """Say what the prior of the coefficients means, where the bounds are known and all goes together."""
    bounds = getattr(spec.mechanism, "bounds", None) or getattr(spec.mechanism, "domain", None) or ()
    q = len(bounds)
    mean, sd = (
        value if isinstance(value, tuple) else (value,) * q for value in (model.prior_mean, model.prior_sd)
    )
    if q < 2 or len(mean) != q or len(sd) != q:
        return ""
    columns = None if spec.data is None else spec.data.columns
    names = columns[:-1] if columns is not None and len(columns) == q else range(1, q)
    titles, cut = [str(name) for name in names], model.response == "truncated"
    return f": {coefficients_in_words(bounds, mean, sd, titles, truncated=cut)}"


def _response(model: LinearRegressionModel) -> str:
    """Say what coefficients are where errors are truncated."""
    return f". {TRUNCATED_MEANS[:-1]}" if model.response == "truncated" else ""


def _parametric(model: Any) -> str:
    words = {
        "discrete": "a discrete distribution, as a draw of a Dirichlet or Pitman-Yor process",
        "naive_bayes": "naive Bayes classes and features",
        "linear_regression": "a linear regression",
    }
    return f"the model of {model.file.name}" if model.kind == "custom" else words.get(model.kind, model.kind)


def _synthesis(synthesis: SynthesisSection) -> str:
    records = (
        "as many records as are private" if synthesis.records == "auto" else f"{synthesis.records} records"
    )
    given = {key: getattr(synthesis, key) for key in ("epsilon", "delta")}
    stated = ", ".join(f"{key} = {exact(value)}" for key, value in given.items() if value is not None)
    return f"{records} by {synthesis.kind}" + (f", {stated}" if stated else "")


def _released(mechanism: MechanismSection, grouped: bool) -> str:
    """Say what a mechanism releases, such as "laplace noise"."""
    if isinstance(mechanism, WaveletMechanism):
        return f"laplace noise on {2 ** (mechanism.levels + 1) - 1} wavelet coefficients a record"
    if isinstance(mechanism, BinomialMechanism):
        return f"a binomial count of {_count(mechanism.trials, 'trial')} a record"
    if isinstance(mechanism, SmoothedHistogramMechanism):
        return (
            f"{_count(mechanism.draws, 'draw')} from a smoothed histogram of {_count(mechanism.bins, 'bin')}"
        )
    if isinstance(mechanism, PerturbedHistogramMechanism):
        return f"{mechanism.noise} noise on the counts of {_count(mechanism.bins, 'bin')}"
    if isinstance(mechanism, LogMomentsMechanism):
        at = (
            f"{mechanism.threshold:g}"
            if mechanism.thresholds is None
            else f"one of {_count(len(mechanism.thresholds), 'threshold')}"
        )
        if grouped:
            return f"laplace noise on sums of logarithms and on sizes of groups, censored at {at},"
        parts = " of two parts" if mechanism.split is not None else ""
        return f"laplace noise on the mean logarithms{parts}, censored at {at},"
    if isinstance(mechanism, PosteriorMechanism):
        if mechanism.noisy:
            how = f"by {mechanism.method or 'geometric'} noise"
        elif mechanism.method is None and mechanism.calibration is None:
            how = "by the Hellinger distance or geometric noise, whichever errs less"
        else:
            how = "by the Hellinger distance"
        return f"a posterior of {len(mechanism.prior)} categories {how}"
    return f"{mechanism.kind} noise"


def _discrete(model: DiscreteModel) -> str:
    given = {"discount": model.discount, "concentration": model.concentration}
    stated = ", ".join(f"{key} {exact(value)}" for key, value in given.items() if value is not None)
    return f"discrete values of a Dirichlet or Pitman-Yor process, {stated or 'prior of the release'}"


def _dirichlet(model: DirichletModel, sampler: str | None) -> str:
    words = "compositions with a Dirichlet distribution"
    if sampler == "bootstrap":
        return f"{words}, without a prior"
    prior = model.prior
    if isinstance(prior, str):
        return f"{words}, prior {prior} from the first part of the release"
    return f"{words}, alpha ~ Gamma({prior.shape:g}, {prior.rate:g})"


def _mixture(model: NormalMixture | BetaMixture | MultivariateNormalMixture, domain: Pairs | None) -> str:
    process = "Dirichlet-process" if model.discount == 0 else f"Pitman-Yor (discount {model.discount:g})"
    kernels = {"normal": "normals", "beta": "betas", "multivariate_normal": "multivariate normals"}
    alpha = model.concentration
    concentration = (
        f"Gamma({alpha.shape:g}, {alpha.rate:g})" if isinstance(alpha, GammaPrior) else f"{alpha:g}"
    )
    return (
        f"{process} mixture of {kernels[model.kernel]}, concentration {concentration}, {_base(model, domain)}"
    )


def _base(model: NormalMixture | BetaMixture | MultivariateNormalMixture, domain: Pairs | None) -> str:
    """Name the base measure, and say what it means in the units of the data as far as the spec tells."""
    if isinstance(model, BetaMixture):
        gammas: Any = BETA if model.base is None else model.base
        shapes = [(gammas.a_shape, gammas.a_rate), (gammas.b_shape, gammas.b_rate)]
        return "base " + " x ".join(f"Gamma({shape:g}, {rate:g})" for shape, rate in shapes)
    stated = model.base
    if stated is None and domain is None:
        return "base measure from the public bounds of the release"
    if stated is not None and stated.empirical:
        kind = "truncated base" if getattr(stated, "kind", "") == "truncated_nig" else "base"
        return f"{kind} measure computed from the release"
    if isinstance(model, MultivariateNormalMixture):
        niw = niw_from_bounds(domain or ()) if model.base is None else _niw(model.base)
        meant = [prior_in_words(niw.column(i), f"column {i + 1}") for i in range(len(niw.mu0))]
        columns = _count(len(niw.mu0), "column")
        return f"base NIW({niw.lam:g}, {niw.nu:g}) on {columns}: {'; '.join(meant)}"
    if model.base is None:
        base = nig_from_bounds((domain or ())[0])
    else:  # whose numbers were checked to be there
        base = NIG(*(float(getattr(model.base, name)) for name in ("mu0", "lambda_", "a", "b")))
        if model.base.kind == "truncated_nig":
            return f"base truncated NIG({base.mu0:g}, {base.lam:g}, {base.a:g}, {base.b:g})"
    words = f"base NIG({base.mu0:g}, {base.lam:g}, {base.a:g}, {base.b:g})"
    return f"{words}: {prior_in_words(base)}{_spread(model, (domain or ())[0]) if model.base is None else ''}"


def _spread(model: NormalMixture, bounds: tuple[float, float]) -> str:
    """Say how far the records spread under the defaults, so that bounds too wide for them are noticed."""
    if model.discount != 0 or model.concentration != GammaPrior(
        shape=CONCENTRATION[0], rate=CONCENTRATION[1]
    ):
        return ""
    least, most = (share * (bounds[1] - bounds[0]) for share in RECORDS_SD)
    return f", and that of all records together {least:.3g} to {most:.3g} with probability 0.95"


def _niw(base: NIWBase) -> NIW:
    """Return a stated base measure, with the diagonal of Psi."""
    assert base.mu0 is not None and base.nu is not None and base.Psi is not None and base.lambda_ is not None
    return NIW(base.mu0, base.lambda_, base.nu, tuple(row[i] for i, row in enumerate(base.Psi)))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
