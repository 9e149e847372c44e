"""Releases that other programs made, read from their CSV files: what docs/others-releases.md says holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmix.api.release_of import find_release
from dpmix.errors import DataError
from dpmix.models.naive_bayes.model import build
from dpmix.spec import load_spec
from tests.oracles import databases
from tests.oracles.mc import discrepancies

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "others-releases.md").read_text()


def snippet(language: str, containing: str) -> str:
    """Return the block of the page that has some words in it."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(block for block in blocks if containing in block)


def eruptions() -> list[int]:
    """Return the bin of each eruption, of 16 on [0, 6]."""
    table = np.genfromtxt(ROOT / "configs" / "data" / "faithful.csv", delimiter=",", names=True)
    return [int(x) for x in np.clip(table["eruptions"] / 6 * 16, 0, 15)]


def test_opendps_own_measurement_is_what_the_page_says(tmp_path: Path) -> None:
    found: dict[str, Any] = {"bins": eruptions(), "print": lambda sigma: None}
    exec(snippet("python", "Context.compositor"), found)
    counts, sigma = found["counts"], found["query"].param()
    (tmp_path / "counts.csv").write_text("count\n" + "".join(f"{c}\n" for c in counts))
    (tmp_path / "spec.yaml").write_text(snippet("yaml", "counts.csv"))
    release = find_release(load_spec(tmp_path / "spec.yaml"), None)[0]
    assert release.mechanism["scale"] == [sigma] == [2.0]
    assert release.values[:, 0].tolist() == counts
    assert release.rho == pytest.approx(0.25)
    off = release.values[:, 0] - np.bincount(eruptions(), minlength=16)
    assert np.abs(off).max() < 20  # sigma 2: ten of them
    (tmp_path / "counts.csv").write_text("count\n" + "0.5\n" * 16)
    with pytest.raises(DataError, match="no whole number, as discrete gaussian noise gives"):
        find_release(load_spec(tmp_path / "spec.yaml"), None)


def test_pipelinedps_file_is_what_the_config_says() -> None:
    release = find_release(load_spec(ROOT / "configs" / "eruptions_pipelinedp.yaml"), None)[0]
    off = release.values[:, 0] - np.bincount(eruptions(), minlength=16)
    assert np.abs(off).mean() == pytest.approx(1, abs=0.75)  # the mean of 16 |noise| of scale 1
    assert (release.epsilon, release.n) == (2.0, 272)


def test_noisy_measurements_of_counts_give_the_exact_posterior(tmp_path: Path) -> None:
    """Six records by class and level, discrete Gaussian noise of a stated sigma."""
    text = snippet("yaml", "measurements.csv")
    text = text.replace("n: 5000", "n: 6").replace("[6]", "[2]").replace("9.35", "1.25")
    values = [3.0, -1.0, 1.0, 2.0]
    (tmp_path / "measurements.csv").write_text("value\n" + "".join(f"{v:g}\n" for v in values))
    (tmp_path / "spec.yaml").write_text(text)
    spec = load_spec(tmp_path / "spec.yaml")
    model = build(spec, find_release(spec, None)[0])
    draws = model.make_chain(np.random.default_rng(3)).run(20_000, skip=200)
    exact = databases.classes(np.array(values), [2], 2, 1.25, model.law.prior, 6, power=2)
    assert np.abs(discrepancies(draws["p"], exact.p)).max() < 4.5
