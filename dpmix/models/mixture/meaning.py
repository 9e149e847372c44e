"""What chains of mixtures mean: most follows from their kernel; of groups the chains hold no components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpmix.models.meaning_base import GroupedHistogram, Meaning, Unavailable

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats

_BINS = "bin_probability"


class GroupedMixture(GroupedHistogram):
    """Releases of histograms of groups, whose chains hold the probabilities of the bins."""

    needed = (_BINS,)

    def shares(self, chain: int, state: int) -> Floats:
        """Return the probabilities of the bins (groups, bins) under a state."""
        found: Floats = self.values[_BINS][chain, state]
        return found


class MixtureMeaning(Meaning):
    """Of mixtures."""

    prior_keys = "model.base and model.concentration"
    mixes = True
    of_groups = {"histogram": GroupedMixture}

    def log_prior(self) -> Floats:
        """Refuse, of groups; of others it follows from the kernel."""
        raise Unavailable("the chains of a mixture of groups hold no components")

    def floors(self) -> tuple[str, ...]:
        """Return the standard deviations: the base measure of groups is not learned."""
        return ("record_sd",)

    def variances_of_mean(self) -> tuple[Mapping[str, tuple[float, float, float]], str]:
        """Refuse."""
        raise Unavailable("the chains of a mixture of groups hold no components to fit again")


MEANING = MixtureMeaning
