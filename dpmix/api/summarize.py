"""`dpmix.summarize`: from chains files to a summary, its file and its report."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmix.api.arguments import PathLike, check_results, files_of
from dpmix.data.simulations import true_labels
from dpmix.errors import ConvergenceError, DataError, UsageError
from dpmix.release.release_file import is_release, read_release
from dpmix.release.sanitized import Release
from dpmix.run.chains_reader import Chains, NamedChains, read_chains
from dpmix.run.progress import show_phase
from dpmix.spec.load import check_of_summary, load_spec
from dpmix.store.atomic import write_bytes
from dpmix.summary.clusters_by_value import kept_by_counts
from dpmix.summary.quantities import check_quantities
from dpmix.summary.subject import is_simulated
from dpmix.summary.summary_of_chains import summarize_chains, summarize_parametric

if TYPE_CHECKING:
    from dpmix.spec.summary_section import SummarySpec
    from dpmix.store.h5 import Attribute
    from dpmix.summary.posterior_result import PosteriorSummary
    from dpmix.summary.summary_result import Summary


_LEVELS = ("epsilon", "delta", "rho")
_STATED = ("adjacency", "private", "simulated")
_KEPT = ("mechanism", "seed", "dpmix_version", "model", *_LEVELS, *_STATED)  # of chains, in their summary


def summarize(
    chain_paths: PathLike | Sequence[PathLike],
    output: PathLike | None = None,
    *,
    overrides: Sequence[str] = (),
    report: PathLike | None = None,
    require_convergence: bool = False,
    force: bool = False,
    quiet: bool = False,
) -> Summary | PosteriorSummary:
    """Merge chains files of one spec, and summarize their posterior; or summarize a released posterior.

    The same files always give the same summary, whatever their order.

    Parameters
    ----------
    chain_paths : path, what `fit` returned, or sequence of them
        Files of `dpmix fit`; several when chains were run by separate processes. Or one release file of
        kind `posterior`, which is a posterior already.
    output : path, optional
        Summary file to write (HDF5).
    overrides : sequence of str
        `summary.key=value` in place of what the spec inside the chains says.
    report : path, optional
        HTML page to write; it needs no other file.
    require_convergence : bool
        Whether doubtful convergence is an error.
    force : bool
        Whether existing outputs may be replaced.
    quiet : bool
        Say nothing on standard error of how long it takes.

    Returns
    -------
    Summary or PosteriorSummary
        With `to_json()` and `to_text()`.

    Raises
    ------
    UsageError
        Without chains, with overrides of other sections than `summary` (of a release, of other keys than its
        level) or `require_convergence` of a release, or when an output exists.
    SpecError
        When an override is malformed.
    DataError
        When a file is no finished chains file, or files do not belong together.
    ConvergenceError
        After all outputs are written, when `require_convergence` is given and R-hat, an
        effective sample size, the number of chains or the acceptance gives reason to doubt.
    """
    with show_phase("summarizing", quiet):
        found = planned(
            chain_paths,
            output,
            overrides=overrides,
            report=report,
            require_convergence=require_convergence,
            force=force,
        )
        if isinstance(found, Release):
            return _summarize_release(found, overrides, output, report, force=force)
        chains, options, first = found
        predictions = None
        if options.at is not None:
            from dpmix.api.predict import predictions_at  # late: few ask for it

            predictions = predictions_at(chains, options, first)
        summary = (
            summarize_parametric(chains, options)
            if isinstance(chains, NamedChains)
            else summarize_chains(chains, options, truth=_true_labels(chains))
        )
        if predictions is not None:
            summary = replace(summary, quantities={**summary.quantities, "at": predictions})
        if output is not None:
            attrs = {
                "level": summary.level,
                "guarantee": summary.provenance.guarantee,
                "spec": summary.provenance.spec,
                **{name: chains.attrs[name] for name in _KEPT if name in chains.attrs},
            }
            summary.write(Path(output), attrs, force=force)
        if report is not None:
            from dpmix.report.page import render  # late: matplotlib takes its time

            write_bytes(Path(report), render(summary).encode("utf-8"), force=force)
        if require_convergence and summary.failures:
            raise ConvergenceError(summary.failures, summary)
        return summary


def planned(
    chain_paths: PathLike | Sequence[PathLike],
    output: PathLike | None = None,
    *,
    overrides: Sequence[str] = (),
    report: PathLike | None = None,
    require_convergence: bool = False,
    force: bool = False,
) -> tuple[Chains | NamedChains, SummarySpec, str] | Release:
    """Return the chains, what is asked of them and the first file's name; or a released posterior.

    Raises UsageError, SpecError and DataError as `summarize`.
    """
    overrides = check_of_summary(overrides, "summarize takes keys of summary, such as summary.level")
    paths = files_of(chain_paths, "chain_paths")
    check_results(paths, output, report, "summary", force=force)
    if len(paths) == 1 and is_release(Path(paths[0])):
        if require_convergence:
            raise UsageError(f"--require-convergence is about chains, and {paths[0]} is a release")
        return _released_posterior(Path(paths[0]), overrides)
    chains = read_chains(paths)
    options = load_spec(chains.run_spec, overrides).summary
    if isinstance(chains, NamedChains):
        check_quantities(chains, options)
    if options.at is not None:
        from dpmix.api.predict import check_at  # late: few ask for it

        check_at(options)
    return chains, options, paths[0]


def _released_posterior(path: Path, overrides: Sequence[str]) -> Release:
    """Read a release file of kind posterior, of whose summary the level alone can be overridden."""
    for override in overrides:
        key = override.partition("=")[0].strip()
        if key != "summary.level":
            raise UsageError(f"--set {key}: the summary of a released posterior takes summary.level alone")
    release = read_release(path)
    if release.mechanism.released != "posterior":
        raise DataError(
            f"{path} is a release by {release.kind}, and only a released posterior can be summarized as it "
            "is; give what `dpmix fit` wrote"
        )
    return release


def _summarize_release(
    release: Release,
    overrides: Sequence[str],
    output: PathLike | None,
    report: PathLike | None,
    *,
    force: bool,
) -> PosteriorSummary:
    """Summarize a release of kind posterior; see `summarize`."""
    from dpmix.summary.posterior_result import summarize_posterior  # late: compiled code

    options = load_spec({"summary": {}}, overrides).summary
    summary = summarize_posterior(release, float(options.level))
    if output is not None:
        attrs: dict[str, Attribute] = {
            "guarantee": summary.guarantee,
            "mechanism": json.dumps(release.mechanism.stated(), allow_nan=False),
        }
        numbers = {name: getattr(release, name) for name in _LEVELS}
        attrs |= {name: math.nan if value is None else float(value) for name, value in numbers.items()}
        attrs |= {name: getattr(release, name) for name in _STATED}
        summary.write(Path(output), attrs, force=force)
    if report is not None:
        from dpmix.report.page import render_posterior  # late: matplotlib takes its time

        write_bytes(Path(report), render_posterior(summary).encode("utf-8"), force=force)
    return summary


def _true_labels(chains: Chains) -> NDArray[np.int64] | None:
    """Return the true labels of simulated records, by the spec in the chains.

    None where there are none, or no allocations to compare with them.
    """
    data = chains.spec.get("data") or {}
    name, n, seed = (data.get(key) for key in ("simulate", "n", "seed"))
    if name is None or seed is None or not is_simulated(chains.attrs) or n != chains.n:
        return None
    if not chains.kept.size and not kept_by_counts(chains).size:  # as of many records, which take a while
        return None
    return true_labels(str(name), int(n), int(seed))
