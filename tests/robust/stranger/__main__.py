"""Fit what a stranger registers through the public face: privatize, fit, summarize, report."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np

import dpmix
from dpmix.errors import DpmixError, SpecError
from dpmix.run.chains_reader import read_chains
from dpmix.spec import load_spec
from dpmix.spec.describe import describe
from dpmix.summary.check.record_likelihoods import log_likelihoods
from dpmix.summary.fitted_columns import family_of
from dpmix.summary.random_measures import states_at

STATES = np.arange(0, 1_000, 100)


def main(folder: Path, modules: list[str], spec: dict) -> None:
    """Register `modules`, and leave in `folder` a release, the chains of stated values and their summary."""
    for name in modules:
        importlib.import_module(f"tests.robust.stranger.{name}")
    confidential = {key: spec[key] for key in ("mechanism", "model", "sampler")}
    confidential["data"] = {"path": str(folder / "y.csv"), "column": "y"}
    confidential["sampler"] = spec["sampler"] | {"iterations": 40, "burn_in": 10, "chains": 1}
    release = dpmix.privatize(confidential, folder / "release.h5", quiet=True)
    dpmix.fit(confidential, folder / "release.h5", folder / "short.h5", quiet=True)
    dpmix.fit(spec, output=folder / "chains.h5", quiet=True)
    found = dpmix.summarize([folder / "chains.h5"], report=folder / "report.html")
    chains = read_chains([folder / "chains.h5"])
    states = states_at(chains, family_of(chains), [(0, STATES)], spread_rest=False)
    likelihoods = {
        "states": [
            {name: getattr(each, name).tolist() for name in ("weights", "atoms", "rest")}
            for each in states.values()
        ],
        "logs": log_likelihoods(chains, [(0, STATES)])[0].tolist(),
    }
    words = {"words": describe(load_spec(spec))["mechanism"], "refused": []}
    if release.mechanism.guarantees is False:
        try:
            dpmix.fit(spec | {"model": {"kernel": "beta"}}, output=folder / "no.h5", quiet=True)
        except SpecError as error:
            words["refused"].append(str(error))
        try:
            dpmix.advise({"mechanism": spec["mechanism"]}, epsilon=1.0, n=1_000, quiet=True)
        except SpecError as error:
            words["refused"].append(str(error))
        for part, of in ((folder / "release.h5", None), (folder / "z.csv", spec)):
            try:
                dpmix.tally([part], of, quiet=True)
            except DpmixError as error:
                words["refused"].append(str(error))
    (folder / "found.json").write_text(
        json.dumps(
            words
            | {
                "summary": found.to_json(),
                "likelihoods": likelihoods,
                "kind": release.kind,
                "guarantee": [release.epsilon, release.delta, release.rho],
                "values": release.values.ravel().tolist(),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(","), json.loads(sys.argv[3]))
