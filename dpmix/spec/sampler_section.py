"""The section ``sampler``: which algorithm runs, how long, and what is kept."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.capabilities import SamplerCapabilities
from dpmix.spec.fields import LARGEST_SEED, Integer, Listed, NameOf, Number, Section, refusal
from dpmix.spec.kinds import SAMPLERS, sampler_of

SamplerKind = Annotated[str, NameOf(SAMPLERS)]
"""The name of a sampler."""


class SamplerSpec(Section):
    """The Markov chains; settings of all algorithms stand side by side, so that kinds can be switched."""

    kind: SamplerKind | None = Field(
        None,
        description="The algorithm; where left out, neal8 for mixtures, data_augmentation for those of "
        "groups, and a model's own for others.",
    )
    auxiliary: Annotated[Integer, Field(ge=1, le=1000)] = Field(
        1, description="Auxiliary draws per record (private_neal5) or auxiliary clusters (neal8)."
    )
    truncation: Annotated[Integer, Field(ge=2, le=10_000)] = Field(
        100, description="Number of components kept by blocked_gibbs."
    )
    latent: Literal["exact", "metropolis"] = Field(
        "exact",
        description="How private_slice and blocked_gibbs update confidential values: exact or by proposals. "
        "For the models discrete and naive_bayes: the numbers of records in cells, or record by record.",
    )
    width: Annotated[Number, Field(gt=0)] | Literal["auto"] = Field(
        "auto",
        description="Width of the cells of counts, in the data's units; auto follows from the noise and the "
        "public bounds.",
    )
    offers: Annotated[Integer, Field(ge=1, le=1_000_000_000)] | None = Field(
        None,
        description="Offers of one record to all in a sweep of soma; where left out, as many as records, "
        "or as make a million weights.",
    )
    pseudo_records: Annotated[Integer, Field(ge=1, le=100_000_000)] = Field(
        5, description="Records b that stand for all in replicated, each to the power of its share of them."
    )
    keep: Annotated[Number, Field(gt=0, le=1)] = Field(
        0.1, description="Share of the simulations of abc that is kept: those closest to the release."
    )
    joint: bool = Field(
        True,
        strict=True,
        description="Whether linear_regression, and dirichlet where that pays, also move parameters and "
        "latent records together.",
    )
    iterations: Annotated[Integer, Field(ge=1, le=1_000_000_000)] = Field(
        20_000, description="Sweeps per chain, burn-in included."
    )
    burn_in: Annotated[Integer, Field(ge=0)] | None = Field(
        None, description="Sweeps dropped at the start; half of the iterations where left out."
    )
    thin: Annotated[Integer, Field(ge=1)] = Field(1, description="Keep every thin-th sweep after burn-in.")
    chains: Annotated[Integer, Field(ge=1, le=1024)] = Field(4, description="Number of chains.")
    seed: Annotated[Integer, Field(ge=0, le=LARGEST_SEED)] | None = Field(
        None, description="Seed that makes the chains reproducible; drawn and recorded where left out."
    )
    store: Annotated[tuple[Literal["allocations"], ...], Listed] | None = Field(
        None,
        description="What is kept beyond scalars and components; where left out, allocations up to n = 5000.",
    )
    subsample: Annotated[Integer, Field(ge=2)] | None = Field(
        None,
        description="Number of records whose allocations are kept, picked at random, in place of all; their "
        "clusters are summarized at any n.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.burn_in is None:
            self.settle(burn_in=self.iterations // 2)
        if self.burn_in_sweeps >= self.iterations:
            raise refusal(
                "burn_in", f"{self.burn_in} must be less than sampler.iterations ({self.iterations})"
            )
        if self.draws < 1:
            kept = self.iterations - self.burn_in_sweeps
            raise refusal("thin", f"{self.thin} keeps no draw of the {kept} sweeps after burn-in")
        if self.store is not None and len(set(self.store)) < len(self.store):
            raise refusal("store", "names the same thing twice")
        if self.subsample is not None and self.store is not None and "allocations" not in self.store:
            raise refusal("subsample", "is of allocations, and sampler.store keeps none; leave one out")
        return self

    @property
    def can(self) -> SamplerCapabilities:
        """What the algorithm can do."""
        return sampler_of(self.algorithm)

    @property
    def algorithm(self) -> str:
        """The algorithm, which is named in every spec as a whole, if only by its default.

        Raises
        ------
        ValueError
            Before a spec has settled it.
        """
        if self.kind is None:
            raise ValueError("sampler.kind is not settled yet")
        return self.kind

    @property
    def burn_in_sweeps(self) -> int:
        """Number of sweeps dropped at the start of each chain."""
        return 0 if self.burn_in is None else self.burn_in

    @property
    def draws(self) -> int:
        """Number of draws that each chain keeps."""
        return (self.iterations - self.burn_in_sweeps) // self.thin
