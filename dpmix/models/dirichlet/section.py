"""What a spec says of compositions, and what the model goes with."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, Tag

from dpmix.spec.capabilities import listed
from dpmix.spec.fields import number_or_mapping
from dpmix.spec.model_section import GammaPrior, ModelSection, Problem

SPLIT_PRIORS: Final[dict[str, tuple[str, ...]]] = {
    "data_augmentation": ("p3", "p4"),
    "soma": ("p3", "p4"),
    "replicated": ("p3", "p4"),
    "normal_approximation": ("p3", "p4"),
    "abc": ("p2", "p3", "p4", "p5"),
    "bootstrap": (),
}
"""Priors by which each sampler can take the first of two parts of a release."""

OF_GROUPS: Final = ("data_augmentation", "soma")
"""Samplers of groups whose sizes are private."""


class DirichletModel(ModelSection):
    """Compositions with a Dirichlet distribution given noisy log moments."""

    takes = ("log_moments",)
    samplers = ("data_augmentation", "soma", "replicated", "abc", "normal_approximation", "bootstrap")
    draws_records = True
    maker = "build"
    compares_truth = True

    kind: Literal["dirichlet"] = Field(description="The model.")
    prior: Annotated[
        Annotated[Literal["p2", "p3", "p4", "p5"], Tag("name")] | Annotated[GammaPrior, Tag("gamma")],
        number_or_mapping("name", "gamma"),
    ] = Field(
        GammaPrior.model_construct(shape=1.0, rate=0.1),
        description="Independent gamma priors {shape, rate}, or one of the data-based priors p2 to p5.",
    )

    def own_sampler(self, sampler: Any) -> tuple[str, str]:
        """Return the first that takes the prior."""
        kind, why = super().own_sampler(sampler)
        if not isinstance(self.prior, str) or self.prior in SPLIT_PRIORS[kind]:
            return kind, why
        kind = next(kind for kind in self.samplers if self.prior in SPLIT_PRIORS[kind])
        return kind, f"the prior {self.prior} is draws and no density"

    def problem(self, spec: Any) -> Problem | None:
        """Refuse a prior that a sampler has no use for, or the release no part for."""
        prior, sampler, mechanism = self.prior, spec.sampler.kind, spec.mechanism
        if not isinstance(prior, str):
            return None
        known = SPLIT_PRIORS[sampler]
        if not known:
            return "model.prior", f"{prior} is not for {sampler}, which has no prior; leave it out"
        if prior not in known:
            others = [kind for kind, priors in SPLIT_PRIORS.items() if prior in priors]
            return (
                "model.prior",
                f"{prior} is draws, not a density, and {sampler} needs a density; use {listed(known)}, a "
                f"gamma {{shape, rate}}, or sampler.kind: {listed(tuple(others))}",
            )
        if mechanism is not None and mechanism.released == "log_moments" and mechanism.split is None:
            return (
                "model.prior",
                f"{prior} takes the first of two parts of a release, and mechanism.split is missing; give "
                "it, or use a gamma {shape, rate}",
            )
        return None

    def group_problem(self, spec: Any) -> Problem | None:
        """Refuse methods that know no groups."""
        if isinstance(self.prior, str):
            return (
                "model.prior",
                f"{self.prior} takes the first of two parts of a release, and one of groups is not split; "
                "use a gamma {shape, rate}",
            )
        if spec.sampler.kind not in OF_GROUPS:
            return (
                "sampler.kind",
                f"{spec.sampler.kind} takes no release of groups whose sizes are private; use "
                f"{listed(OF_GROUPS)}",
            )
        return None

    def in_words(self, spec: Any) -> str:
        """Say what is fitted, and its prior."""
        words, prior = "compositions with a Dirichlet distribution", self.prior
        if spec.sampler.kind == "bootstrap":
            return f"{words}, without a prior"
        if isinstance(prior, str):
            return f"{words}, prior {prior} from the first part of the release"
        return f"{words}, alpha ~ Gamma({prior.shape:g}, {prior.rate:g})"


SECTION = DirichletModel
