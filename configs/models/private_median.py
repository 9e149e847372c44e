"""Normal records, of which the median was released by the exponential mechanism.

The curator chose r among the candidates 0, 1, .., 20 with probability proportional to
exp(-epsilon |#{x_i < r} - n/2| / 2): a count moves by one when a record is replaced, so this is epsilon-DP.
No noise was added to anything, and the normalising sum depends on the records through the counts below every
candidate. These are sums over records: statistic gives them, log_release the rest.
"""

import math
from typing import NamedTuple


class Model(NamedTuple):
    """The records are N(mean, sd^2), mean ~ N(prior_mean, prior_sd^2)."""

    n: float
    epsilon: float
    sd: float = 3.0
    prior_mean: float = 10.0
    prior_sd: float = 3.0


CANDIDATES = 21

PARAMETERS = {"mean": 0}
WIDTH = 1
SIZE = CANDIDATES


def draw_prior(model, rng, theta):
    """Draw the mean from its prior."""
    theta[0] = rng.normal(model.prior_mean, model.prior_sd)


def draw_record(model, rng, theta, record):
    """Draw one record given the mean."""
    record[0] = rng.normal(theta[0], model.sd)


def draw_theta(model, rng, theta, records):
    """Draw the mean given all records."""
    total = 0.0
    for i in range(len(records)):
        total += records[i, 0]
    precision = 1.0 / model.prior_sd**2 + len(records) / model.sd**2
    centre = (model.prior_mean / model.prior_sd**2 + total / model.sd**2) / precision
    theta[0] = rng.normal(centre, 1.0 / math.sqrt(precision))


def statistic(model, released, record, out):
    """Write below which candidates a record is."""
    for r in range(CANDIDATES):
        out[r] = 1.0 if record[0] < r else 0.0


def log_release(model, released, sums):
    """Return the log probability of the candidate that was chosen."""
    normaliser = 0.0
    for r in range(CANDIDATES):
        normaliser += math.exp(-model.epsilon * abs(sums[r] - model.n / 2) / 2)
    return -model.epsilon * abs(sums[int(released[0])] - model.n / 2) / 2 - math.log(normaliser)
