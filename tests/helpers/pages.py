"""Reports, for tests that ask for something else than traces."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from dpmix.report.page import render

if TYPE_CHECKING:
    from dpmix.summary.summary_result import Summary


def short_page(summary: Summary) -> str:
    """Return the report of a summary with the traces of its first scalar alone: each takes two pictures.

    Not for regressions, whose lines are drawn from the draws of all coefficients.
    """
    name = next(iter(summary.series))
    return render(dataclasses.replace(summary, series={name: summary.series[name]}))
