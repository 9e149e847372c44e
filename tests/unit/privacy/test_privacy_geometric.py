"""Two-sided geometric noise: in 64 bits, so that no scale that is allowed saturates or passes 2^53."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmix.errors import PrivacyError
from dpmix.mechanisms.posterior.released_posterior import GeometricPosterior
from dpmix.privacy.noise import LARGEST_SCALE, LARGEST_VALUE, GeometricNoise


def passes(scale: float, bound: float) -> float:
    """Return the log of Pr(|noise| > bound), 2 q^(bound + 1)/(1 + q) with q = exp(-1/scale)."""
    return math.log(2) - (bound + 1) / scale - math.log1p(math.exp(-1 / scale))


def test_the_library_adds_in_64_bits() -> None:
    """Python's int is 32 bits to the library: a third of these draws would be 2^31 - 1 or -2^31."""
    noise = GeometricNoise(1e10, 1, 2000)
    drawn = noise.add(np.zeros(2000, dtype=np.int64))
    assert (np.abs(drawn) > 2**31).mean() > 0.5
    assert len(np.unique(drawn)) == 2000
    assert stats.kstest(drawn / 1e10, stats.laplace.cdf).pvalue > 1e-6
    assert noise.loss == pytest.approx(1e-10, rel=1e-12)


def test_counts_beyond_32_bits_are_kept() -> None:
    counts = np.array([2**31 - 1, 2**40, LARGEST_VALUE], dtype=np.int64)
    drawn = GeometricNoise(1.0, 2, 3).add(counts)
    assert (np.abs(drawn - counts) < 60).all() and (drawn == np.floor(drawn)).all()


def test_no_allowed_scale_passes_what_doubles_hold() -> None:
    """From the largest value at the largest scale: 2^53 is passed with a probability far below 2^-40."""
    assert passes(LARGEST_SCALE, 2.0**53 - LARGEST_VALUE) < -40 * math.log(2)
    assert passes(1e10, 2.0**31) > -1, "the law is right: 32 bits are passed often"
    q = math.exp(-1 / 2.5)
    tail = sum((1 - q) / (1 + q) * q ** abs(k) for k in range(-400, 401) if abs(k) > 7)
    assert math.exp(passes(2.5, 7)) == pytest.approx(tail, rel=1e-9)


def test_what_is_out_of_range_is_refused_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    for scale in (LARGEST_SCALE, 1e-12):
        with pytest.raises(PrivacyError, match="between 1e-12 and 1e12"):
            GeometricNoise(scale, 1, 1)
    with pytest.raises(PrivacyError, match="1e-12 and 1e12"):
        GeometricPosterior.calibrated(1e-12, 2, prior=(1.0, 1.0), n=4)
    noise = GeometricNoise(1.0, 1, 1)
    monkeypatch.setattr(GeometricNoise, "_measurement", property(lambda self: pytest.fail("drawn")))
    with pytest.raises(PrivacyError, match=r"at most 2\^52"):
        noise.add(np.array([LARGEST_VALUE + 1], dtype=np.int64))
    with pytest.raises(PrivacyError, match="whole numbers of the stated shape"):
        noise.add(np.array([1.0]))  # type: ignore[arg-type]  # that is the point
