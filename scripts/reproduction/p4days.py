"""Table 2: shares of the day by sex, of the American Time Use Survey 2019 or simulated with its means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["COLUMNS", "PUBLISHED_MEANS", "simulated_days"]

COLUMNS = ("personal_care", "eating_drinking", "other")
PUBLISHED_MEANS = {"female": (0.411, 0.0507, 0.538), "male": (0.392, 0.0508, 0.557)}
"""Table 2, the line "Boots": estimates without privacy."""
_SIZES = {"female": 3766, "male": 3359}
_CONCENTRATION = 30.0  # the paper prints none; estimates from the survey are 31 and 32


def simulated_days(sex: str) -> NDArray[np.float64]:
    """Return what configs/data/days_female.csv and days_male.csv hold, shape (n, 3).

    Draws from Dirichlet(30 m), m the published means of that sex divided by their sum, as many as the paper
    has; the first two shares are rounded to four digits, and the last is the rest.
    """
    mean = np.array(PUBLISHED_MEANS[sex])
    rng = np.random.default_rng(2019 + sorted(PUBLISHED_MEANS).index(sex))
    shares = rng.dirichlet(_CONCENTRATION * mean / mean.sum(), _SIZES[sex])
    whole = np.rint(10_000 * shares[:, :2])
    return np.column_stack([whole, 10_000 - whole.sum(axis=1)]) / 10_000
