"""The kinds that a section can be of: those that ship, each a folder, and those that are registered.

A folder is imported when one of its parts is asked for, so that a spec reads the sections it names alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from dpmix.spec.capabilities import Capabilities, Elsewhere, SamplerCapabilities, Synthetic, Unknown


class Kinds:
    """Parts of several kinds, by name.

    Parameters
    ----------
    package : str
        Where the folders of the kinds are that ship. Part ``section`` of kind ``x`` is ``SECTION`` of the
        module ``package.x.section``, and so on; a module without such a name is the part itself.
    names : sequence of str
        These kinds, in the order of the interface.
    """

    def __init__(self, package: str = "", names: tuple[str, ...] = ()) -> None:
        self._package = package
        self._parts: dict[str, dict[str, Any]] = {name: {} for name in names}

    @property
    def names(self) -> tuple[str, ...]:
        """Every kind: in the order of the interface, then those that were added."""
        return tuple(self._parts)

    def __contains__(self, kind: object) -> bool:
        """Whether there is such a kind."""
        return kind in self._parts

    def part(self, kind: str, name: str) -> Any:
        """Return a part of a kind, such as its section.

        Raises
        ------
        KeyError
            For a kind that there is not.
        """
        found = self._parts[kind]
        if name not in found:
            module = import_module(f"{self._package}.{kind}.{name}")
            found[name] = getattr(module, name.upper(), module)
        return found[name]

    def has(self, kind: str, name: str) -> bool:
        """Whether a kind is one that was added with a part."""
        return kind in self._parts and name in self._parts[kind]

    def section(self, kind: str) -> Any:
        """Return the section of a kind."""
        return self.part(kind, "section")

    def add(self, kind: str, **parts: Any) -> None:
        """Add a kind with all its parts, or replace what it had."""
        self._parts[kind] = parts

    def drop(self, kind: str) -> None:
        """Forget a kind that was added."""
        del self._parts[kind]


MECHANISMS: Final = Kinds(
    "dpmix.mechanisms",
    (
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
        "none",
    ),
)
"""Mechanisms, by the spec's `mechanism.kind`."""

MODELS: Final = Kinds(
    "dpmix.models",
    ("mixture", "discrete", "multinomial", "naive_bayes", "linear_regression", "dirichlet", "custom"),
)
"""Models, by the spec's `model.kind`."""

KERNELS: Final = Kinds("dpmix.kernels", ("normal", "beta", "multivariate_normal"))
"""Kernels of mixtures, by the spec's `model.kernel`."""

AUTO: Final = "auto"
"""The sampler that a release settles: `dpmix.spec.combinations`."""

SAMPLERS: Final = Kinds()
"""Samplers, by the spec's `sampler.kind`."""
for _sampler in (
    SamplerCapabilities(AUTO, in_blocks=True),
    SamplerCapabilities("private_neal5", holds_records=True),
    SamplerCapabilities("private_slice", in_blocks=True),
    SamplerCapabilities("blocked_gibbs", in_blocks=True),
    SamplerCapabilities("neal2", conjugate=True, exact=True),
    SamplerCapabilities("neal3", conjugate=True, exact=True),
    SamplerCapabilities("neal8", exact=True, in_blocks=True),
    SamplerCapabilities("split_merge", conjugate=True, exact=True),
    SamplerCapabilities("counts", exact=True, on_counts=True),
    SamplerCapabilities("data_augmentation", mixtures=False, of_groups=True),
    SamplerCapabilities("soma", mixtures=False),
    SamplerCapabilities("bootstrap", mixtures=False),
    SamplerCapabilities("replicated", mixtures=False),
    SamplerCapabilities("abc", mixtures=False),
    SamplerCapabilities("normal_approximation", mixtures=False),
):
    SAMPLERS.add(_sampler.kind, section=_sampler)

_WITHOUT_SECTION: Final[dict[str, type[Capabilities]]] = {"synthetic": Synthetic, "elsewhere": Elsewhere}
"""What releases can be of, and mechanisms of a spec cannot."""


def capabilities_of(kind: str) -> type[Capabilities]:
    """Return what a release of a kind of mechanism is; that of one of another version is unknown."""
    found: type[Capabilities] = (
        MECHANISMS.section(kind) if kind in MECHANISMS else _WITHOUT_SECTION.get(kind, Unknown)
    )
    return found


def kinds_that(capability: str) -> tuple[str, ...]:
    """Return the kinds of mechanism that have a capability, for messages."""
    return tuple(kind for kind in MECHANISMS.names if getattr(MECHANISMS.section(kind), capability))


def released_kinds() -> tuple[str, ...]:
    """Return every kind that a release can be of."""
    return (*MECHANISMS.names, *_WITHOUT_SECTION)


def sampler_of(kind: str) -> SamplerCapabilities:
    """Return what a sampler of a spec can do."""
    found: SamplerCapabilities = SAMPLERS.section(kind)
    return found


def mixture_samplers() -> tuple[str, ...]:
    """Return the samplers that are for mixtures."""
    return tuple(kind for kind in SAMPLERS.names if sampler_of(kind).mixtures)
