"""What is shown of chains, and of a fit that is not finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dpmix.api.shown_release import fact
from dpmix.errors import DataError, SpecError
from dpmix.mechanisms.laws.every import LawError, law_of
from dpmix.release.sanitized import guarantee_in_words, guarantee_sentence
from dpmix.results.nodes import ResultSection
from dpmix.run.chains_file import MixtureFile, NamedFile, read_file
from dpmix.run.draws_tables import draws_tables
from dpmix.run.workspace import SUFFIX, Workspace, workspace_of
from dpmix.spec.describe import describe
from dpmix.spec.run_spec import RunSpec
from dpmix.store.h5 import reading

__all__ = ["sections_of_chains", "sections_of_work"]


def sections_of_chains(path: Path) -> list[ResultSection]:
    """Return what is said of finished chains: of which release, which model and sampler, how many draws."""
    held = read_file(path)
    attrs, law = held.attrs, law_of(json.loads(str(held.attrs["mechanism"])))
    chains, draws = held.shape
    numbers = {name: _number(attrs.get(name)) for name in ("epsilon", "delta", "rho")}
    trust, adjacency = str(attrs.get("trust", "local")), str(attrs.get("adjacency", "replacement"))
    words = guarantee_in_words(**numbers, trust=trust, adjacency=adjacency)
    flags = {name: bool(int(float(str(attrs.get(name, 0))))) for name in ("private", "simulated")}
    guarantee = guarantee_sentence(law, words, **flags)
    n = int(float(str(attrs.get("n", held.constants.get("n", len(held.observed) or 0)))))
    said = _described(path, str(attrs["spec"]))
    tables = draws_tables(path, held)
    ids = held.ids.tolist()
    each = ", ".join(map(str, ids))
    found = [
        ResultSection("about", "chains", brief=[f"{path}: chains, finished"]),
        fact("guarantee", guarantee, guarantee),
        fact("done", law.done(max(n, 1)), law.done(max(n, 1)), "release"),
        fact("model", said.get("model"), said.get("model", "")),
        fact("sampler", said.get("sampler"), said.get("sampler", "")),
        fact(
            "chains", ids, f"{chains} (ids {each}) x {draws:,} draws, {held.seconds.sum():.3g} s of sampling"
        ),
        ResultSection("draws", draws),
        ResultSection("finished", True),
        ResultSection("seconds", held.seconds.tolist()),
        fact("seed", str(attrs["seed"]), str(attrs["seed"])),
        fact("columns", list(held.columns), ", ".join(held.columns)),
        fact("variables", _variables(held, path), ", ".join(_variables(held, path))),
        fact("tables", list(tables), f"{', '.join(tables)} (dpmix export --table)"),
        fact(
            "dpmix_version", attrs["dpmix_version"], f"dpmix {attrs['dpmix_version']}, {_made(attrs)}", "made"
        ),
        ResultSection("created_at", _made(attrs)),
        *(ResultSection(name, value) for name, value in {**numbers, **flags}.items()),
        ResultSection("n", n),
        ResultSection("mechanism", law.stated()),
        ResultSection("spec", held.spec),
    ]
    return found


def _made(attrs: Mapping[str, Any]) -> str:
    return str(attrs.get("created_at", "unknown"))


def _variables(held: MixtureFile | NamedFile, path: Path) -> list[str]:
    if isinstance(held, NamedFile):
        return [stored.name for stored in held.parameters]
    with reading(path) as root:
        posterior = root.group("posterior")
        return [name for name in posterior.names()[0] if posterior[name].dims[:2] == ("chain", "draw")]


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, str) or not np.isfinite(value):
        return None
    return float(value)


def _described(path: Path, text: str) -> dict[str, str]:
    try:
        return describe(RunSpec.from_yaml(text))
    except SpecError as error:
        raise DataError(f"{path} holds a spec that is none: {error}") from None


def sections_of_work(path: Path) -> list[ResultSection]:
    """Return how far a fit got that is not finished: it is read as it stands, and not locked.

    Raises
    ------
    DataError
        When the account of the run cannot be read.
    """
    folder = path if path.name.endswith(SUFFIX) and path.is_dir() else workspace_of(path)
    work = Workspace(folder)
    run = work.manifest() or {}
    try:
        spec, ids = dict(run["spec"]), [int(chain) for chain in run["chains"]]
        law, seed = law_of(dict(run["mechanism"])), str(run["entropy"])
        said = _described(folder / "run.json", yaml.safe_dump(spec))
        sampler = dict(spec["sampler"])
        thin = max(int(sampler.get("thin", 1)), 1)
        planned = max((int(sampler["iterations"]) - int(sampler["burn_in"])) // thin, 1)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, LawError, yaml.YAMLError):
        raise DataError(f"{folder / 'run.json'} is damaged; start the fit over with --force") from None
    done = {chain: sum(_draws_in(segment) for segment in work.segments(chain)) for chain in ids}
    each = ", ".join(f"chain {chain}: {count:,}" for chain, count in done.items())
    return [
        ResultSection(
            "about", "an interrupted fit", brief=[f"{folder}: a fit that is not finished, or still going on"]
        ),
        fact("mechanism", law.stated(), law.made_by, "release"),
        fact("model", said.get("model"), said.get("model", "")),
        fact("sampler", said.get("sampler"), said.get("sampler", "")),
        fact(
            "saved",
            {str(chain): count for chain, count in done.items()},
            f"{each}, of {planned:,} draws each",
            "draws",
        ),
        ResultSection("chains", ids),
        ResultSection("draws", planned),
        ResultSection("finished", False),
        fact("seed", seed, seed),
        fact("next", "dpmix fit --resume", "`dpmix fit --resume` goes on with it"),
        ResultSection("spec", spec),
    ]


def _draws_in(segment: Path) -> int:
    """Return how many draws a segment holds."""
    with reading(segment) as root:
        group = root.group("draws")
        sizes = [group[name].shape[0] for name in group.names()[0] if group[name].dims[:1] == ("draw",)]
    return max(sizes, default=0)
