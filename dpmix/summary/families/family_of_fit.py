"""The family of a fit, and its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dpmix.errors import DataError
from dpmix.run.chains_reader import Chains
from dpmix.spec.kinds import KERNELS
from dpmix.summary.families.beta_family import BetaGamma
from dpmix.summary.families.family import Family, Floats
from dpmix.summary.families.learned_family import LearnedNormal, LearnedWishart
from dpmix.summary.families.multivariate_family import NormalInverseWishart
from dpmix.summary.families.normal_family import NormalInverseGamma
from dpmix.summary.families.truncated_family import TruncatedNormalInverseGamma


@dataclass(frozen=True)
class Column:
    """One column of the records.

    Parameters
    ----------
    name : str
        Its name; empty where there is only one.
    family : Family
        Its marginal kernel and base measure.
    atoms : callable
        Gives the column's atoms from those of all columns together.
    """

    name: str
    family: Family
    atoms: Callable[[Floats], Floats]

    def label(self, scalar: str) -> str:
        """Name of a scalar of this column: `mean`, or `mean[x]` where there are several columns."""
        return f"{scalar}[{self.name}]" if self.name else scalar


def family_of(chains: Chains) -> Family | NormalInverseWishart:
    """Return the kernel and base measure that the chains were run with.

    Raises
    ------
    DataError
        When a parameter of the base measure is out of range.
    """
    layout = chains.layout
    if layout.kernel == "multivariate_normal":
        mu0, psi = chains.arrays["base_mu0"], chains.arrays["base_Psi"]
        if psi.shape != (mu0.size, mu0.size) or not (np.linalg.eigvalsh(psi) > 0).all():
            raise DataError(f"base_Psi must be a positive definite matrix of {mu0.size} columns")
        stated = (mu0, chains.constants["base_lambda"], chains.constants["base_nu"], psi)
        if layout.base == "learned_niw":
            return LearnedWishart(*stated, chains.arrays["base_mu0_sd"], chains.constants["base_psi_shape"])
        return NormalInverseWishart(*stated)
    return family_on_line(layout.kernel, layout.base, chains.constants)


def family_on_line(kernel: str, base: str, c: Mapping[str, float]) -> Family:
    """Return a kernel of one column with its base measure, whose parameters are among the constants `c`."""
    if KERNELS.has(kernel, "family"):
        made: Family = KERNELS.part(kernel, "family")(c)
        return made
    if kernel == "beta":
        shapes = (c["base_a_shape"], c["base_a_rate"], c["base_b_shape"], c["base_b_rate"])
        return BetaGamma(*shapes, c["domain_lo"], c["domain_hi"] - c["domain_lo"])
    parameters = (c["base_mu0"], c["base_lambda"], c["base_a"], c["base_b"])
    if base == "truncated_nig":
        return TruncatedNormalInverseGamma(*parameters, c["noise_scale"] ** 2)
    if base == "learned_nig":
        return LearnedNormal(*parameters, c["base_mu0_sd"], c["base_b_shape"])
    return NormalInverseGamma(*parameters)


def columns_of(chains: Chains, family: Family | NormalInverseWishart) -> list[Column]:
    """Return the columns of the records, one with an empty name where there is only one."""
    if not isinstance(family, NormalInverseWishart):
        return [Column("", family, lambda atoms: atoms)]

    def picks(number: int) -> Callable[[Floats], Floats]:
        return lambda atoms: family.column_atoms(atoms, number)

    names = chains.columns
    return [Column(names[j], family.column(j), picks(j)) for j in range(family.size)]
