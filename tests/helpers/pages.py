"""Reports, for tests that ask for something else than traces."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import pytest

from dpmix.report.page import render

if TYPE_CHECKING:
    from dpmix.summary.summary_result import Summary

_EMPTY = b'<svg viewBox="0 0 1 1"></svg>'


@contextmanager
def undrawn() -> Iterator[None]:
    """Leave the pictures of pages empty: drawing takes most of the time of a page.

    For tests of words: the figures are made, and what pictures show is said.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpmix.store.html.picture", lambda figure, kind: _EMPTY)
        yield


def short_page(summary: Summary, *, drawn: bool = False) -> str:
    """Return the report of a summary with the traces of its first scalar alone, and without its pictures.

    Of a scalar there are two pictures. Not for regressions, whose lines are drawn from the draws of all
    coefficients.
    """
    name = next(iter(summary.series))
    with nullcontext() if drawn else undrawn():
        return render(dataclasses.replace(summary, series={name: summary.series[name]}))
