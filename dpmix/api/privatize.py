"""`dpmix.privatize`: from confidential records to a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmix.api.arguments import PathLike, check_outputs, whole_of
from dpmix.api.calibrate import mechanism_of
from dpmix.api.cautions import depends_on_n, of_columns
from dpmix.api.confidential import check_apart, release_records, steps_of
from dpmix.api.spending import Entering, spending_of
from dpmix.columns.column_units import labelled
from dpmix.data.loading import Data, dated, load_data, number_of_records
from dpmix.errors import DataError, PrivacyError
from dpmix.laws.cell_laws import CellsLaw
from dpmix.laws.every import law_type
from dpmix.mechanisms.curators.by_kind import Mechanism, needs_n
from dpmix.release.release_file import write_release
from dpmix.run.progress import show_phase, show_work
from dpmix.spec import RunSpec, SpecSource, load_spec
from dpmix.spec.data_section import digits_of
from dpmix.spec.load import naming_ledger, overrides_of
from dpmix.spec.table_source import is_stream
from dpmix.store.atomic import check_output, check_suffix

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release

_LARGE = 20_000


def privatize(
    spec: SpecSource,
    output: PathLike | None = None,
    *,
    overrides: Sequence[str] = (),
    force: bool = False,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    quiet: bool = False,
    ledger: PathLike | None = None,
    dataset: str | None = None,
    new_ledger: bool = False,
    no_ledger: bool = False,
    yes: bool = False,
    data: Any = None,
) -> Release:
    """Apply the mechanism of a spec to its confidential data.

    The noise of real data comes from the operating system and takes no seed. Simulated data and their noise
    come from ``data.seed``, and the release says that it is simulated and not private.

    Parameters
    ----------
    spec : dict, path or RunSpec
        With the sections ``data`` and ``mechanism``.
    output : path, optional
        Release file to write (.h5, .hdf5 or .nc). Nothing is written when anything fails.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    force : bool
        Whether to overwrite `output`.
    seed : int, optional
        In place of ``data.seed``, for simulated data only.
    progress : callable, optional
        Called with (numbers done, numbers in all); without it a bar is shown for large data on a terminal.
    quiet : bool
        Say nothing but warnings on standard error.
    ledger : path, optional
        File to enter the release in before its noise is drawn, in place of ``privacy.ledger``.
    dataset : str, optional
        Name of the data there, in place of ``privacy.dataset``.
    new_ledger : bool
        Start that file, which must not be there; else it must be.
    no_ledger : bool
        Enter nothing, which the release records where a ledger is configured.
    yes : bool
        Go on in spite of warnings that ask for it: for real data, at an epsilon above 100, a delta above 1/2,
        and counts whose noise, added up over their cells, exceeds the number of records; and where the table
        is not the one that the ledger knows under this name.
    data : DataFrame, Series, table of Arrow, mapping of columns or array, optional
        The confidential records, in the place of ``data.path``. Columns of an array go by order. The ledger
        knows them again as it knows a file.

    Returns
    -------
    Release
        Everything that may leave the curator.

    Raises
    ------
    SpecError
        When the spec is not one, or lacks what is needed.
    DataError
        When the data are not a clean table of numbers with at least two records, or `output` cannot be
        written.
    PrivacyError
        When the guarantee cannot be met, a seed is given for real data, a warning asks for `yes`, or the
        ledger's budget is exceeded; when there is no such ledger, or it knows the data otherwise. Nothing is
        drawn or entered then.
    UsageError
        When `output` exists and `force` is not given, another process is writing it, it does not end as HDF5
        files do, or is the confidential file itself; when the ledger knows data sets and none is named.
    """
    check_outputs(output=output, ledger=ledger)
    entering = Entering(new_ledger, no_ledger, yes)
    entering.check(ledger)
    checked = load_spec(spec, (*overrides_of(overrides), *naming_ledger(ledger, dataset)), data)
    if seed is not None:
        checked = _seeded(checked, seed)
    section = checked.mechanism
    if section is None or not needs_n(section):
        mechanism_of(checked)  # what cannot be met is said before the data are read
    target = None if output is None else _target(checked, Path(output), force)
    spending = spending_of(checked, (target,), entering)
    with show_phase("reading the data", quiet):
        records = load_data(checked)
    mechanism = mechanism_of(checked, len(records.columns), records.n)
    mechanism.check(records.values)
    _check_whole(checked, mechanism, records)
    total = records.values.size
    return release_records(
        checked,
        mechanism,
        records,
        mechanism.in_words(_named(checked, mechanism, records.columns)),
        also=of_columns(checked, records.n),
        spending=spending,
        entering=entering,
        output=target,
        write=write_release,
        force=force,
        drawing=show_work("adding noise", total, quiet or total < _LARGE, progress),
        seeded="noise",
        quiet=quiet,
    )


def steps(spec: RunSpec, entering: Entering | None = None) -> list[str]:
    """Say what `privatize` would do, and what it would enter in the spec's ledger, without drawing noise.

    What is said before a release is said on standard error. A file of data is read for its columns and the
    number of its records alone, standard input where that is needed.

    Raises
    ------
    SpecError, DataError, PrivacyError
        As `privatize`, also where the budget would be exceeded, and where a warning asks for `yes`.
    """
    spending = spending_of(spec, entering=entering)
    streamed = spec.data is not None and is_stream(spec.data.path)
    needed = spec.mechanism is not None and needs_n(spec.mechanism)
    if not needed:
        mechanism_of(spec)  # what cannot be met is said before the data are read
    n = None if streamed and not needed else _records(spec)
    mechanism = mechanism_of(spec, n=n)
    if n is None and depends_on_n(mechanism):
        n = _records(spec)
    names = None if spec.data is None else spec.data.columns
    columns = _named(spec, mechanism, names or tuple(f"column {i + 1}" for i in range(len(mechanism.domain))))
    words = f"apply {mechanism.in_words(columns)}"
    also = of_columns(spec, n)
    return steps_of(spec, mechanism, n, words, also=also, spending=spending, entering=entering)


def _check_whole(spec: RunSpec, mechanism: Mechanism, records: Data) -> None:
    """Refuse values that are no whole numbers where a release by cells would say that they are."""
    types = None if spec.data is None else spec.data.types
    if types is None or not issubclass(law_type(mechanism.kind), CellsLaw):
        return
    for name, values in zip(records.columns, records.values.T, strict=False):  # codes of groups come last
        if digits_of(types.get(name)) == 0 and (values % 1.0 != 0.0).any():
            raise DataError(
                f"data.types.{name}: integer, but the column has values that are no whole numbers; leave the "
                "type out, or round them"
            )


def _records(spec: RunSpec) -> int:
    """Return the number of records, which is public; data are read for it where the spec does not say it."""
    return number_of_records(spec) if spec.n is None else spec.n


def _named(spec: RunSpec, mechanism: Mechanism, columns: Sequence[str]) -> list[str]:
    """Return names of columns to say noise of; that on dates is in days."""
    dates = dated(spec.data) if law_type(mechanism.kind).additive else ()
    return [labelled(name, "days" if name in dates else "") for name in columns]


def _target(spec: RunSpec, output: Path, force: bool) -> Path:
    final = check_output(output, force=force)
    check_apart(spec, output, final, " for the release")
    check_suffix(output, "a release", strict=True)
    return final


def _seeded(spec: RunSpec, seed: int) -> RunSpec:
    if not spec.simulated:
        raise PrivacyError("seed: is for simulated data only; no seed is accepted for a real release")
    return load_spec(spec, [f"data.seed={whole_of(seed, 'seed')}"])
