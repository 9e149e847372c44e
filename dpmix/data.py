"""From the sections ``data`` and ``release`` of a spec to checked arrays and releases."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.mechanisms import stated
from dpmix.release import Release
from dpmix.release_values import trust_of, value_problem, value_warning
from dpmix.simulate import SIMULATIONS, generators
from dpmix.spec import RunSpec
from dpmix.tables import load_table


@dataclass(frozen=True, eq=False)
class Data:
    """Confidential records, or simulated ones.

    Parameters
    ----------
    values : ndarray of float64, shape (n, d)
        Finite, at least two records.
    columns : tuple of str
        Their names.
    rng : Generator or None
        For simulated records, the generator that their noise may come from; None for real ones, which take
        their noise from the operating system.
    """

    values: NDArray[np.float64]
    columns: tuple[str, ...]
    rng: np.random.Generator | None = None

    @property
    def simulated(self) -> bool:
        """Whether the records were simulated."""
        return self.rng is not None

    def __repr__(self) -> str:
        """Show the shape, and no values."""
        return f"Data(n={len(self.values)}, columns={self.columns}, simulated={self.simulated})"


def load_data(spec: RunSpec) -> Data:
    """Read, or simulate, the records of the section ``data``.

    Simulated data and their noise are drawn from ``data.seed``; without one, from a fresh seed.

    Raises
    ------
    SpecError
        When there is no such section, or it is not of numbers.
    DataError
        For what `load_table` refuses, and fewer than two records.
    """
    section = spec.data
    if section is None:
        raise SpecError("data: missing; name the confidential file, its columns and their public domain")
    if section.categories is not None:
        raise SpecError("data.categories: are not for numeric columns; give data.domain instead")
    if section.simulate is not None:
        assert section.n is not None  # the spec requires it
        if section.n < 2:
            raise SpecError("data.n: at least 2 records are needed")
        columns = section.columns or ("value",)
        if len(columns) != 1:
            raise SpecError(f"data.columns: {section.simulate} has one column")
        draws, noise = generators(section.seed)
        return Data(SIMULATIONS[section.simulate](section.n, draws), tuple(columns), noise)
    assert section.path is not None  # the spec requires it
    values, names = load_table(section.path, section.columns, least=2)
    return Data(values, names)


def unprotected(spec: RunSpec) -> Release:
    """Return the records of ``data`` as they are, for a non-private posterior to compare with.

    The release says that it is not private: kind ``none``, epsilon infinite. It must not leave the curator.

    Raises
    ------
    SpecError, DataError
        As `load_data`.
    """
    data = load_data(spec)
    return Release(
        values=data.values,
        columns=data.columns,
        mechanism={"kind": "none"},
        epsilon=float("inf"),
        delta=None,
        rho=None,
        n=len(data.values),
        private=False,
        simulated=data.simulated,
    )


def load_stated_release(spec: RunSpec) -> Release:
    """Read the sanitized values of the section ``release``, made elsewhere by the stated mechanism.

    The guarantee is what the spec states, by formula; nothing here vouches for how the noise was drawn.

    Raises
    ------
    SpecError
        When ``release`` or ``mechanism`` is missing, or the mechanism does not say how much noise there is,
        or of how many records a histogram is.
    DataError
        For what `load_table` refuses, and values that cannot come from the mechanism.
    """
    if spec.release is None or spec.release.path is None:
        key = "release" if spec.release is None else "release.path"
        raise SpecError(f"{key}: missing; give --release FILE, or name the sanitized values here")
    if spec.mechanism is None:
        raise SpecError("mechanism: missing; say which noise the values under release carry")
    path = spec.release.path
    trust = trust_of(spec.mechanism.kind)
    n = getattr(spec.mechanism, "n", None)
    if trust == "global" and n is None:
        raise SpecError(
            f"mechanism.n: missing; a {spec.mechanism.kind} release does not tell of how many confidential "
            "records it is"
        )
    values, names = load_table(path, spec.release.columns)
    mechanism, guarantee = stated(spec.mechanism, len(names), n)
    problem = value_problem(mechanism, values)
    if problem is not None:
        raise DataError(f"{path} {problem}")
    warning = None if n is None else value_warning(mechanism, values, n)
    if warning is not None:
        print(f"dpmix: warning: {path}: {warning}", file=sys.stderr)
    none = mechanism["kind"] == "none"
    return Release(
        values=values,
        columns=names,
        mechanism=mechanism,
        epsilon=float("inf") if none else guarantee.epsilon,
        delta=guarantee.delta,
        rho=guarantee.rho,
        n=len(values) if n is None else n,
        trust=trust,
        private=not none,
    )
