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


ELSEWHERE: Final = "elsewhere"
"""Kind of a release made elsewhere, by a mechanism that only the model knows."""

_ALL: Final = (
    "laplace",
    "gaussian",
    "wavelet",
    "binomial",
    "square_wave",
    "randomized_response",
    "smoothed_histogram",
    "perturbed_histogram",
    "noisy_counts",
    "clamped_moments",
    "log_moments",
    "posterior",
    "synthetic",
    ELSEWHERE,
)

PARAMETRIC: Final[dict[str, Parametric]] = {
    "custom": Parametric(_ALL, ("data_augmentation", "soma")),
    "discrete": Parametric(
        ("synthetic", "smoothed_histogram", "perturbed_histogram"), ("data_augmentation",)
    ),
    "dirichlet": Parametric(
        ("log_moments",),
        ("data_augmentation", "soma", "replicated", "abc", "normal_approximation", "bootstrap"),
    ),
    "linear_regression": Parametric(("clamped_moments",), ("data_augmentation", "soma")),
    "multinomial": Parametric(("posterior", "randomized_response"), ("data_augmentation",)),
    "naive_bayes": Parametric(("noisy_counts", "randomized_response"), ("data_augmentation", "soma")),
}
"""By the spec's `model.kind`."""

PREDICTING: Final = ("linear_regression", "naive_bayes")
"""Models that predict the last column of a record from the others."""

SPLIT_PRIORS: Final[dict[str, tuple[str, ...]]] = {
    "data_augmentation": ("p3", "p4"),
    "soma": ("p3", "p4"),
    "replicated": ("p3", "p4"),
    "normal_approximation": ("p3", "p4"),
    "abc": ("p2", "p3", "p4", "p5"),
    "bootstrap": (),
}
"""Priors of the model dirichlet by which each sampler can take the first of two parts of a release."""

MIXTURE_SAMPLER: Final = "neal8"
"""The sampler of mixtures where a spec names none."""


GROUP_MIXTURE_SAMPLER: Final = "data_augmentation"
"""The sampler of mixtures of groups, given a histogram of them all."""


def default_sampler(model: str | None, *, grouped: bool = False) -> str:
    """Return the sampler that is taken for a kind of model (None: no model) where a spec names none."""
    if model == "mixture" and grouped:
        return GROUP_MIXTURE_SAMPLER
    known = None if model is None else PARAMETRIC.get(model)
    return MIXTURE_SAMPLER if known is None else known.samplers[0]
