"""`dpmix.contrast`: from the chains files of two fits to the difference between their groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpmix.api.arguments import PathLike, check_results, files_of, real_of
from dpmix.errors import ConvergenceError, DataError, UsageError, truth_of
from dpmix.privacy.accounting import Adjacency, Guarantee, in_parallel
from dpmix.release.sanitized import as_stated
from dpmix.run.chains_reader import ChainSet, NamedChains, read_chains
from dpmix.run.progress import show_phase
from dpmix.spec.load import check_of_summary, load_spec
from dpmix.store.atomic import write_bytes
from dpmix.summary.contrast_result import (
    Contrast,
    JointGuarantee,
    compared_of_fits,
    compared_of_groups,
    contrast_chains,
    contrast_groups,
    same_release,
)
from dpmix.summary.headline import USABLE
from dpmix.summary.subject import adjacency_of, is_private, is_simulated, level_in_words, stated_parameters
from dpmix.summary.summary_of_chains import summarize_parametric

if TYPE_CHECKING:
    from dpmix.spec.summary_section import SummarySpec


def contrast(
    chain_paths: PathLike | Sequence[PathLike],
    output: PathLike | None = None,
    *,
    margin: float | None = None,
    public_groups: bool = False,
    groups: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    report: PathLike | None = None,
    require_convergence: bool = False,
    force: bool = False,
    quiet: bool = False,
) -> Contrast:
    """Compare two groups: by how much each share differs, and whether by more than a margin.

    Parameters
    ----------
    chain_paths : path, what `fit` returned, or sequence of them
        One chains file of `dpmix fit`, of a release of groups; or two, of one model with the same components:
        groups A and B.
    output : path, optional
        File to write (HDF5).
    margin : float, optional
        Absolute difference up to which shares count as equal; 0.01 where left out, and 0 for groups of a
        model that has no shares, of which signs are then told.
    public_groups : bool
        Whether who is in which group is public, and fixed when a record is replaced: the joint guarantee is
        then the larger of the two. Else there is none: files do not tell of which part they are.
    groups : sequence of str, optional
        Two of the groups of one release; left out where there are two.
    overrides : sequence of str
        `summary.level=value` in place of what the specs inside the chains say.
    report : path, optional
        HTML page to write.
    require_convergence : bool
        Whether doubtful convergence of either fit is an error.
    force : bool
        Whether existing outputs may be replaced.
    quiet : bool
        Say nothing on standard error of how long it takes.

    Returns
    -------
    Contrast
        With `to_json()` and `to_text()`.

    Raises
    ------
    UsageError
        With neither one nor two files, groups that are not two of the release's, a margin out of range, or
        when an output exists.
    DataError
        When the two do not compare, or a file is no chains file.
    ConvergenceError
        After all outputs are written, when `require_convergence` is given.
    """
    with show_phase("comparing", quiet):
        files, pair, options = planned(
            chain_paths,
            output,
            margin=margin,
            public_groups=public_groups,
            groups=groups,
            overrides=overrides,
            report=report,
            force=force,
        )
        level, warnings = float(options[0].level), []
        for label, chains, asked in zip("AB", pair, options, strict=False):
            said = f"{label}: " if len(files) == 2 else ""
            summary = summarize_parametric(chains, asked)
            verdict, remarks = summary.verdict, summary.remarks
            if verdict.answer != USABLE:  # not all that it goes by is among the remarks
                why = " ".join(verdict.reasons)
                warnings.append((f'{said}The verdict of the fit is "{verdict.answer}". {why}', False))
            warnings += [(f"{said}{remark.text}", remark.convergence) for remark in remarks]
        if len(files) == 1:
            found = contrast_groups(pair[0], files[0], groups, margin=margin, level=level, warnings=warnings)
        else:
            found = contrast_chains(
                pair,
                files,
                margin=0.01 if margin is None else margin,
                level=level,
                public_groups=public_groups,
                guarantee=joint(pair[0], pair[1], public_groups),
                warnings=warnings,
            )
        if output is not None:
            found.write(Path(output), force=force)
        if report is not None:
            from dpmix.report.page import render_contrast  # late: matplotlib takes its time

            write_bytes(Path(report), render_contrast(found).encode("utf-8"), force=force)
    if require_convergence and found.failures:
        raise ConvergenceError(found.failures, found)
    return found


def planned(
    chain_paths: PathLike | Sequence[PathLike],
    output: PathLike | None = None,
    *,
    margin: float | None = None,
    public_groups: bool = False,
    groups: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    report: PathLike | None = None,
    force: bool = False,
) -> tuple[list[str], list[NamedChains], list[SummarySpec]]:
    """Return the files, their chains and what is asked of each, after all checks but those of computing.

    Raises UsageError, SpecError and DataError as `contrast`.
    """
    files = files_of(chain_paths, "chain_paths")
    if len(files) not in (1, 2):
        raise UsageError(
            "--contrast compares two groups of the one release behind a chains file, or two chains files, "
            f"and {len(files)} {'is' if len(files) == 1 else 'are'} given"
        )
    if truth_of(public_groups, "public_groups") and len(files) == 1:
        raise UsageError(
            "--public-groups: is for two chains files; who is in a group of one release is private"
        )
    if len(files) == 2 and groups is not None:
        raise UsageError("--groups: is for one chains file, of a release of groups")
    margin = None if margin is None else real_of(margin, "--margin")
    if margin is not None and not (math.isfinite(margin) and margin >= 0.0):
        raise UsageError(f"--margin: {margin:g} must be a difference, 0 or more")
    if len(files) == 2 and margin is not None and margin >= 1.0:
        raise UsageError(f"--margin: {margin:g} must be a difference of shares, from 0 to below 1")
    overrides = check_of_summary(overrides, "--contrast takes summary.level")
    check_results(files, output, report, "comparison", force=force)
    pair: list[NamedChains] = []
    for file in files:
        chains = read_chains([file])
        if not isinstance(chains, NamedChains):
            raise DataError(
                f"{file} is of a mixture without groups, and has no shares to compare; --contrast takes "
                "two fits of dirichlet, or one of a release of groups (data.group), of a mixture, too"
            )
        pair.append(chains)
    options = [load_spec(chains.run_spec, overrides).summary for chains in pair]
    levels = [float(each.level) for each in options]
    if levels[0] != levels[-1]:
        raise UsageError(
            f"summary.level: {levels[0]:g} in {files[0]} and {levels[1]:g} in {files[1]}; give one by "
            f"--set summary.level={levels[0]:g}"
        )
    if len(files) == 1:
        compared_of_groups(pair[0], files[0], groups, margin)
    else:
        compared_of_fits(pair, files)
    return files, pair, options


def joint(first: ChainSet, second: ChainSet, public_groups: bool) -> JointGuarantee:
    """Return what the releases behind two fits guarantee together (methods, section 1)."""
    each = [_guarantee(chains) for chains in (first, second)]
    if same_release(first, second):
        return _in_words(each[0], (first,), "One release stands behind both fits, with {}.")
    if not public_groups:
        return JointGuarantee(
            None,
            None,
            None,
            "No joint guarantee is stated of the two releases: a record that is replaced may leave one group "
            "and join the other, and the sizes of the groups, which are published, tell so with certainty. "
            "Where who is in which group is public and fixed, the joint guarantee is the larger of the two "
            "(--public-groups); else release the groups together (data.group).",
        )
    each = [part.of_public_part() for part in each]
    why = (
        "Together the two releases satisfy {}, the larger of the two, on the statement that they are of "
        "different groups, and that who is in which is public, and does not change when a record is replaced."
    )
    return _in_words(in_parallel(each), (first, second), why)


def _guarantee(chains: ChainSet) -> Guarantee:
    """Return the guarantee of the release behind chains; None for what does not apply."""
    return Guarantee(*stated_parameters(chains.attrs), adjacency=Adjacency(adjacency_of(chains.attrs)))


def _in_words(found: Guarantee, behind: Sequence[ChainSet], text: str) -> JointGuarantee:
    level = level_in_words(found.epsilon, found.delta, found.rho) or "no stated privacy guarantee"
    if any(is_simulated(chains.attrs) or not is_private(chains.attrs) for chains in behind):
        level += ", had their noise been real (a release is simulated, or its noise can be reproduced)"
    if any(chains.mechanism.elsewhere for chains in behind):
        level = as_stated(level)
    return JointGuarantee(found.epsilon, found.delta, found.rho, text.format(level), str(found.adjacency))
