"""The parametric models: which releases each takes, and by which samplers.

A model is registered here and in `dpmix.models.registry`, which holds its code.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Parametric(NamedTuple):
    """What a parametric model goes with.

    Parameters
    ----------
    mechanisms : tuple of str
        Kinds of the releases that it is fitted to.
    samplers : tuple of str
        Kinds of the samplers; the first is taken where a spec names none.
    """

    mechanisms: tuple[str, ...]
    samplers: tuple[str, ...]


PARAMETRIC: Final[dict[str, Parametric]] = {
    "discrete": Parametric(
        ("synthetic", "smoothed_histogram", "perturbed_histogram"), ("data_augmentation",)
    ),
}
"""By the spec's `model.kind`."""

MIXTURE_SAMPLER: Final = "neal8"
"""The sampler of mixtures where a spec names none."""


def default_sampler(model: str | None) -> str:
    """Return the sampler that is taken for a kind of model (None: no model) where a spec names none."""
    known = None if model is None else PARAMETRIC.get(model)
    return MIXTURE_SAMPLER if known is None else known.samplers[0]
