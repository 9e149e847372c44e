"""What the laws of noisy statistics of the whole sample share."""

from __future__ import annotations

import numpy as np

from dpmix.mechanisms.laws.law_base import Floats, Labels, Law, counted

__all__ = ["FAR", "Statistic", "far_beyond"]

FAR = 30  # scales of noise: Laplace noise goes further with probability 1e-13


class Statistic(Law):
    """One column of numbers: a statistic of the sample, of several columns together, with noise on each."""

    def length(self) -> tuple[int, str]:
        """Return how many numbers a release has, and what gives that many."""
        raise NotImplementedError

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say whether the statistic has another length than its description gives."""
        rows, columns = values.shape
        if columns != 1:
            return f"has {columns} columns, but a {self.kind} release has one, of the whole statistic"
        wanted, why = self.length()
        return None if rows == wanted else f"has {counted(rows, 'number')}, but {why} give {wanted}"


def far_beyond(
    values: Floats, n: int, least: Floats | float, most: Floats | float, scale: Floats | float
) -> str | None:
    """Say how many values n records and their noise cannot reach: the sign of a wrong n, order or scale.

    Parameters
    ----------
    values : ndarray of float64, shape (rows, 1)
    n : int
    least, most, scale : float or ndarray of float64, shape (rows, 1)
        What records alone give at least and at most, and the scale of the noise.
    """
    beyond = np.maximum(values - most, least - values) > FAR * scale
    if not beyond.any():
        return None
    verb = "is" if beyond.sum() == 1 else "are"
    return (
        f"{int(beyond.sum())} of {counted(values.size, 'number')} {verb} more than {FAR} noise scales "
        f"beyond what {counted(n, 'record')} can give: check n, the order, and the scale or epsilon"
    )
