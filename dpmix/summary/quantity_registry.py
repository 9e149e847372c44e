"""The quantities that summaries report beside parameters and curves: each has its own file, and a line here.

A quantity has a function that makes it of a `Basis`, or None where there is none, and a method `section` with
its data and words: text, JSON, HDF5 and HTML follow. `remarks` are its warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dpmix.kernels.layout import Floats
from dpmix.results.nodes import Quantity, Remark
from dpmix.run.chains_reader import Chains, ChainSet
from dpmix.spec.summary_section import SummarySpec
from dpmix.summary.check.loo import loo_of
from dpmix.summary.check.release_check import check_release
from dpmix.summary.clusters_by_value import clusters_by_value
from dpmix.summary.ems import ems_of
from dpmix.summary.information import information_kept
from dpmix.summary.quantities import Beyond, CellShares
from dpmix.summary.remarks import beyond_remarks, check_remarks, information_remarks
from dpmix.summary.sensitivity import sensitivity_of, sensitivity_remarks
from dpmix.summary.shape import ShapeContraction
from dpmix.summary.variance import VarianceShares


class Basis(NamedTuple):
    """What quantities are made of.

    Parameters
    ----------
    chains : ChainSet
    options : SummarySpec
    series : mapping of str to float64 array (chains, draws)
        The draws of the scalars.
    beyond : Beyond
    cells : CellShares or None
        Of a histogram.
    shape : ShapeContraction or None
    variance_shares : callable
        Makes the shares of the posterior variance.
    """

    chains: ChainSet
    options: SummarySpec
    series: Mapping[str, Floats]
    beyond: Beyond
    cells: CellShares | None
    shape: ShapeContraction | None
    variance_shares: Callable[[], VarianceShares]


class Registered(NamedTuple):
    """How a quantity is made of a basis, and its warnings."""

    key: str
    of: Callable[[Basis], Quantity | None]
    remarks: Callable[[Any, ChainSet], list[Remark]] = lambda found, chains: []


QUANTITIES = (
    Registered("prior_sensitivity", lambda b: sensitivity_of(b.chains, b.series), sensitivity_remarks),
    Registered("beyond_bounds", lambda b: b.beyond if b.beyond.shares else None, beyond_remarks),
    Registered("cell_shares", lambda b: b.cells),  # the verdict warns of it, and of the next
    Registered("shape_contraction", lambda b: b.shape),
    Registered("check", lambda b: check_release(b.chains), check_remarks),
    Registered("ems", lambda b: ems_of(b.chains, b.options)),
    Registered("loo", lambda b: loo_of(b.chains) if b.options.loo else None),
    Registered(
        "information_kept",
        lambda b: information_kept(b.chains) if isinstance(b.chains, Chains) else None,
        information_remarks,
    ),
    Registered(
        "clusters_by_value",
        lambda b: (
            clusters_by_value(b.chains, b.options.level, coclustering=b.options.coclustering)
            if isinstance(b.chains, Chains)
            else None
        ),
    ),
    Registered("variance_shares", lambda b: b.variance_shares()),
)


def reported(basis: Basis) -> tuple[dict[str, Quantity], list[Remark]]:
    """Return all quantities that there are, by key, and their warnings."""
    found: dict[str, Quantity] = {}
    remarks: list[Remark] = []
    for row in QUANTITIES:
        quantity = row.of(basis)
        if quantity is not None:
            found[row.key] = quantity
            remarks += row.remarks(quantity, basis.chains)
    return found, remarks
