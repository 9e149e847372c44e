"""What is said of the chains of every model: acceptance, speed, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from dpmix.errors import DataError, SpecError
from dpmix.run.chains_reader import ChainSet
from dpmix.spec.run_spec import RunSpec
from dpmix.summary.chains_account import Acceptance, Provenance
from dpmix.summary.diagnostics import Scalar
from dpmix.summary.guarantee_words import guarantee_briefly, guarantee_in_words
from dpmix.summary.row_labels import NAMELESS
from dpmix.summary.subject import Subject

__all__ = ["acceptance_of", "ess_per_second", "provenance_of", "spec_of"]


def spec_of(chains: ChainSet) -> RunSpec:
    """Return the spec that chains were run by.

    Raises
    ------
    DataError
        When the spec that they hold is none: somebody changed it.
    """
    try:
        return RunSpec.from_yaml(str(chains.attrs["spec"]))
    except SpecError as error:
        raise DataError(f"the chains hold a spec that is none: {error}") from error


def acceptance_of(chains: ChainSet) -> Acceptance:
    """Return the mean acceptance rate, and the bound below which it cannot fall."""
    rates = chains.acceptance[np.isfinite(chains.acceptance)]
    bound = chains.constants.get("acceptance_bound", np.nan)
    return Acceptance(
        float(rates.mean()) if rates.size else None, float(bound) if np.isfinite(bound) else None
    )


def ess_per_second(parameters: Mapping[str, Scalar], seconds: float) -> dict[str, float | None]:
    """Return the bulk effective sample size of each scalar per second of sampling."""
    return {
        name: None if value.ess_bulk is None or not seconds > 0.0 else value.ess_bulk / seconds
        for name, value in parameters.items()
    }


def provenance_of(chains: ChainSet) -> Provenance:
    """Return guarantee, mechanism and spec, and the facts about the chains for display."""
    attrs, mechanism, n = chains.attrs, chains.mechanism, chains.n
    facts = {
        ("Released records" if chains.by_record else "Records"): str(n),
        "Chains": f"{len(chains.ids)} (ids {', '.join(map(str, chains.ids.tolist()))})",
        "Saved draws per chain": str(chains.draws),
        "Sampling time": f"{chains.seconds.sum():.1f} s over all chains",
        "Seed of the chains": str(attrs["seed"]),
        "dpmix": ", ".join(chains.versions),
        "Chains written": str(attrs.get("created_at", "unknown")),
    }
    if "versions" in attrs:
        facts["Libraries"] = ", ".join(
            f"{name} {version}" for name, version in json.loads(str(attrs["versions"])).items()
        )
    return Provenance(
        guarantee=guarantee_in_words(attrs, mechanism, n),
        mechanism=mechanism,
        spec=spec_of(chains).for_analyst().to_yaml(),
        facts=facts,
        subject=Subject(
            columns=_columns(chains),
            n=n,
            unit=chains.unit,
            groups=tuple(group for names in (mechanism.groups or {}).values() for group in names),
            short=guarantee_briefly(attrs, mechanism),
        ),
    )


def _columns(chains: ChainSet) -> tuple[str, ...]:
    """Return the names of the columns of the data, which releases of statistics tell in their mechanism."""
    stated = getattr(chains.mechanism, "columns", ())
    named = tuple(str(getattr(column, "name", column)) for column in stated or ())
    own = str(getattr(chains.mechanism, "column", "") or "")
    return named or tuple(
        name for name in dict.fromkeys((*chains.columns, own)) if name and name not in NAMELESS
    )
