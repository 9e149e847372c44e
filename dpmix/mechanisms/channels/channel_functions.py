"""What a sampler asks of a channel; implementations register by the classes of channel and kernel.

The release of a record is a number z: its own where one number is released, else the row of the arrays that
the channel holds. Latent values are in the kernel's coordinate. A channel may also hold variables of its own
that a chain moves (`augmented`), given which a record's density is known.
"""

from __future__ import annotations

import math
from typing import Any

from dpmix.numerics.jit import dispatch, njit


def augmented(channel: Any) -> tuple[str, ...]:
    """Return the names of the fields that belong to a chain's state; a chain takes copies of them."""
    return tuple(getattr(channel, "augmented", ()))


@dispatch()
def noise_density(channel, z, y):
    """Return q(z | y), `y` in the data's units, up to a factor that depends on z alone."""


@dispatch()
def noise_variance(channel):
    """Return the variance of the noise, a scale for proposals."""


@dispatch()
def hides(channel):
    """Return whether the release differs from the records."""


@dispatch(on=2)
def log_marginal(channel, kernel, z, theta, h):
    """Return log g(z | theta[:, h]): the density of a release z, its latent value integrated out.

    What depends on z alone may be left out, and is in `log_constant`.
    """


@dispatch()
def log_constant(channel):
    """Return what `log_marginal` leaves out, summed over all records."""


@dispatch(on=2)
def fill_marginal(channel, kernel, theta, h, z, start, stop, out):
    """Set ``out[i - start]`` to g(z[i] | theta[:, h]) for start <= i < stop.

    Values too small for a double are replaced by tiny ones; `log_marginal` serves where all are tiny.
    """


@dispatch(on=2)
def draw_latent(channel, kernel, rng, z, theta, h):
    """Draw y from p(y | z, theta[:, h]), exactly; not every pair of channel and kernel has it."""


@dispatch(on=2)
def draw_start(channel, kernel, rng, z):
    """Draw or choose a latent value to start from, with nothing known but z."""


@dispatch(on=2)
def settle(channel, kernel, rng, values):
    """Set or draw the channel's own variables given latent values of all records."""


@dispatch(on=2)
def augment(channel, kernel, rng, z, theta, labels, order, k):
    """Draw the channel's own variables given everything else but the latent values.

    ``order[:k]`` lists the components, and ``labels`` (n,) has each record's.
    """


def _always(channel):
    return True


def _never(channel):
    return False


def _nothing(channel):
    return 0.0


def hides_records(channel: type) -> None:
    """Register a class of channels that hide every record, and whose densities leave nothing out."""
    hides.register(_always, channel)
    log_constant.register(_nothing, channel)


def hides_nothing(channel: type) -> None:
    """Register a class of channels whose releases are the records themselves."""
    hides.register(_never, channel)
    noise_variance.register(_nothing, channel)
    log_constant.register(_nothing, channel)


@njit
def sum_logs(channel, kernel, theta, h, x, start, stop, scratch):
    """Return sum_i log g(x[i] | theta[:, h]) over start <= i < stop; `scratch` is for densities.

    Densities are multiplied up and their logarithm taken where the product nears the ends of a double.
    """
    total = 0.0
    product = 1.0
    size = len(scratch)
    for low in range(start, stop, size):
        high = min(low + size, stop)
        fill_marginal(channel, kernel, theta, h, x, low, high, scratch)
        for b in range(high - low):
            value = scratch[b]
            if value < 1e-30 or value > 1e30:
                total += log_marginal(channel, kernel, x[low + b], theta, h)
            else:
                product *= value
                if product < 1e-250 or product > 1e250:
                    total += math.log(product)
                    product = 1.0
    return total + math.log(product)


@njit
def cell_of(channel, y):
    """Return the cell of `y`, in data units; cells are about equal, so that it is where one expects."""
    last = len(channel.edges)
    place = (y - channel.lo) / (channel.hi - channel.lo) * (last + 1)
    c = int(min(max(place, 0.0), last))
    while c > 0 and y < channel.edges[c - 1]:
        c -= 1
    while c < last and y >= channel.edges[c]:
        c += 1
    return c
