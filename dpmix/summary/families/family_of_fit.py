"""The family of a fit, and its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmix.errors import DataError
from dpmix.kernels.layout import Family, Floats, Layout, find_layout
from dpmix.kernels.multivariate_family import NormalInverseWishart

if TYPE_CHECKING:
    from dpmix.run.chains_reader import Chains


@dataclass(frozen=True)
class FittedColumn:
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
    found: Family | NormalInverseWishart = _made(chains.layout, chains.constants, chains.arrays)
    return found


def family_on_line(kernel: str, base: str, constants: Mapping[str, float]) -> Family:
    """Return a kernel of one column with its base measure, whose parameters are among the constants.

    Raises
    ------
    DataError
        When they are not known.
    """
    found: Family = _made(find_layout(kernel, base), constants, {})
    return found


def _made(layout: Layout | None, constants: Mapping[str, float], arrays: Mapping[str, Floats]) -> Any:
    if layout is None or layout.family is None:
        raise DataError("the file is of a kernel or base measure that this version does not know")
    return layout.family(constants, arrays)


def columns_of(chains: Chains, family: Family | NormalInverseWishart) -> list[FittedColumn]:
    """Return the columns of the records, one with an empty name where there is only one."""
    if not isinstance(family, NormalInverseWishart):
        return [FittedColumn("", family, lambda atoms: atoms)]

    def picks(number: int) -> Callable[[Floats], Floats]:
        return lambda atoms: family.column_atoms(atoms, number)

    names = chains.columns
    return [FittedColumn(names[j], family.column(j), picks(j)) for j in range(family.size)]
