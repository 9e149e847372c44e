"""Mixture kernels with their base measures, a folder each.

`section.py` is what a spec says of one, `base.py` makes the kernel of that and a release, `kernel.py` is
compiled, and `family.py` is what summaries read it by.

A kernel is a NamedTuple of its base measure's hyperparameters. Component h has parameters ``theta[:, h]`` and
running sums ``stats[:, h]`` of its members' latent values; both arrays are (rows, capacity).

Names are imported when they are asked for: a family does without numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmix.kernels.beta.kernel import Beta
    from dpmix.kernels.kernel_functions import (
        TUNING,
        draw_posterior,
        draw_prior,
        draw_record,
        draw_within,
        fill_masses,
        latent_columns,
        log_factor,
        log_integral,
        log_prior,
        make_tuning,
        parameter_shapes,
        propose,
        tally,
        theta_rows,
        value,
    )
    from dpmix.kernels.multivariate_normal.kernel import MultivariateNormal
    from dpmix.kernels.normal.kernel import NormalNIG
    from dpmix.kernels.normal.truncated_nig import NormalTruncatedNIG

__all__ = [
    "TUNING",
    "Beta",
    "MultivariateNormal",
    "NormalNIG",
    "NormalTruncatedNIG",
    "draw_posterior",
    "draw_prior",
    "draw_record",
    "draw_within",
    "fill_masses",
    "latent_columns",
    "log_prior",
    "log_factor",
    "log_integral",
    "make_tuning",
    "parameter_shapes",
    "propose",
    "tally",
    "theta_rows",
    "value",
]

_MODULES = {
    "Beta": "beta.kernel",
    "MultivariateNormal": "multivariate_normal.kernel",
    "NormalNIG": "normal.kernel",
    "NormalTruncatedNIG": "normal.truncated_nig",
    "draw_within": "intervals",  # which registers it
    "fill_masses": "intervals",
}


def __getattr__(name: str) -> Any:
    """Import a name of `__all__`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'kernel_functions')}"), name)
    globals()[name] = found
    return found
