"""What a spec describes, in a few words a section."""

from __future__ import annotations

from dpmix.spec.data import DataSpec
from dpmix.spec.mechanism import MechanismSection
from dpmix.spec.model import GammaPrior, NormalMixture
from dpmix.spec.run import RunSpec


def describe(spec: RunSpec) -> dict[str, str]:
    """Return one line per section that the spec has, keyed by the section's name."""
    lines: dict[str, str] = {}
    if spec.data is not None:
        lines["data"] = _data(spec.data)
    if spec.release is not None:
        columns = ", ".join(spec.release.columns or ("all columns",))
        lines["release"] = f"{columns} of {spec.release.path or 'the release file'}"
    if spec.mechanism is not None:
        lines["mechanism"] = _mechanism(spec.mechanism)
    if isinstance(spec.model, NormalMixture):
        lines["model"] = _mixture(spec.model)
    if spec.model is not None:
        sampler = spec.sampler
        lines["sampler"] = (
            f"{sampler.kind}, {_count(sampler.chains, 'chain')} of {_count(sampler.iterations, 'sweep')} "
            f"({sampler.burn_in_sweeps} burn-in), {_count(sampler.draws * sampler.chains, 'draw')} kept"
        )
    return lines


def _data(data: DataSpec) -> str:
    if data.simulate is not None:
        seed = "" if data.seed is None else f", seed {data.seed}"
        return f"{_count(data.n or 0, 'record')} of {data.simulate}{seed}, simulated"
    return f"{', '.join(data.columns or ('all columns',))} of {data.path}"


def _mechanism(mechanism: MechanismSection) -> str:
    if mechanism.kind == "none":
        return "none, values are not protected"
    keys = ("epsilon", "delta", "rho", "scale")
    given = {key: getattr(mechanism, key, None) for key in keys}
    stated = ", ".join(f"{key} = {value:g}" for key, value in given.items() if value is not None)
    bounds = ", ".join(f"[{lo:g}, {hi:g}]" for lo, hi in mechanism.domain or ())
    return f"{mechanism.kind} noise with {stated}" + (f" over {bounds}" if bounds else "")


def _mixture(model: NormalMixture) -> str:
    process = "Dirichlet-process" if model.discount == 0 else f"Pitman-Yor (discount {model.discount:g})"
    base = model.base
    prior = (
        "base measure computed from the release"
        if base.empirical
        else f"base NIG({base.mu0:g}, {base.lambda_:g}, {base.a:g}, {base.b:g})"
    )
    alpha = model.concentration
    concentration = (
        f"Gamma({alpha.shape:g}, {alpha.rate:g})" if isinstance(alpha, GammaPrior) else f"{alpha:g}"
    )
    return f"{process} mixture of normals, {prior}, concentration {concentration}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
