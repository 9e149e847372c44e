"""`dpmix.calibrate`: what a guarantee costs, or what a scale guarantees, from public quantities alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpmix.api.cautions import of_columns, of_release
from dpmix.data.loading import check_countable, listed_of, number_of_records
from dpmix.errors import SpecError, say
from dpmix.mechanisms.curators.by_kind import Mechanism, from_spec, needs_n
from dpmix.mechanisms.curators.private_groups import groups_of
from dpmix.spec import RunSpec, SpecSource, load_spec
from dpmix.store.frames import Frame, TabulatedFigures, to_notebook

if TYPE_CHECKING:
    from dpmix.spec.mechanism_section import MechanismSection


class Calibration(TabulatedFigures):
    """Figures of noise and guarantee by name; a notebook leaves out those that are the curator's alone."""

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """What is calibrated."""
        hidden = any("curator_only" in part for part in (self, self.get("synthesis", {})))
        note = ["Figures that are for the curator alone (curator_only) are not shown."] if hidden else []
        return f"Calibration of {self.get('kind', 'a mechanism')}", note

    def _repr_html_(self) -> str:
        title, lines = self.headline
        frame = self.to_frame()
        shown = [i for i, name in enumerate(frame.columns["name"]) if "curator_only" not in str(name)]
        return to_notebook(title, lines, Frame({k: [v[i] for i in shown] for k, v in frame.columns.items()}))


def calibrate(
    spec: SpecSource,
    overrides: Sequence[str] = (),
    *,
    quiet: bool = False,
    data: Any = None,
) -> Calibration:
    """Return the noise and the guarantee of a spec's mechanism, of its synthesis, or of both.

    For a mechanism no data are read, but for their number where the guarantee depends on it and the spec does
    not say it. For a synthesis see `dpmix.api.synthesize.calibrated`; where the spec has both sections its
    figures are under ``synthesis``.

    Parameters
    ----------
    spec : dict, path or RunSpec
        With a section ``mechanism`` and its public domain, or ``synthesis``.
    overrides : sequence of str
        ``key=value`` each, as ``--set``.
    quiet : bool
        Do not say on standard error what should be known before such a release.
    data : DataFrame, Series, table of Arrow, mapping of columns or array, optional
        In the place of ``data.path``, as for `privatize`.

    Returns
    -------
    Calibration
        A dict with those of ``epsilon``, ``delta``, ``rho``, ``proved``, ``scale``, ``sensitivity`` and
        ``weight`` that apply: the totals over a record's columns as a release would record them; scale and
        sensitivity in the units of the data, of a wavelet's coefficients or of counts, as lists where there
        are several columns. Where a wavelet is calibrated as in the paper, ``epsilon`` is what its noise
        really gives, beside ``epsilon_requested`` and ``sensitivity_paper``.

    Raises
    ------
    SpecError
        When the spec is not one, or lacks what is needed.
    PrivacyError
        When the guarantee cannot be met.
    DataError
        When the number of records is needed and the data cannot be read.
    """
    checked = load_spec(spec, overrides, data)
    if checked.generator is not None:
        from dpmix.api.synthesize import calibrated

        synthesis = calibrated(checked, quiet)
        if checked.mechanism is None:
            return Calibration(synthesis)
        return Calibration(_of_mechanism(checked, quiet) | {"synthesis": synthesis})
    return Calibration(_of_mechanism(checked, quiet))


def _of_mechanism(checked: RunSpec, quiet: bool) -> dict[str, Any]:
    mechanism = mechanism_of(checked)
    total = mechanism.guarantee
    found: dict[str, Any] = {"kind": mechanism.kind}
    found |= total.numbers() | mechanism.figures()
    n = found.get("n", checked.data.n if checked.data is not None else None)
    for each in [] if quiet else [*of_release(mechanism, n), *of_columns(checked, n)]:
        say(each.text)
    return found


def mechanism_of(spec: RunSpec, columns: int | None = None, n: int | None = None) -> Mechanism:
    """Return the calibrated mechanism of a checked spec.

    For so many columns of records, else those of `public_of`, or as many as the mechanism is stated for; and
    n records, else those of the spec, or of the data where the guarantee depends on it.

    Raises SpecError, PrivacyError and DataError as `calibrate`.
    """
    if spec.mechanism is None:
        raise SpecError("mechanism: missing; say which noise to add, such as {kind: laplace, epsilon: 1.0}")
    if n is None and spec.data is not None and (spec.data.n is not None or needs_n(spec.mechanism)):
        check_countable(spec, "mechanism.n")
        n = number_of_records(spec)
    section = spec.mechanism
    names, categories = public_of(spec)
    if columns is None:
        columns = len(names) or columns_of(section)
    if spec.simulated and "order" in type(section).model_fields:
        section = section.model_copy(update={"order": "public"})  # simulated records are independent
    known = names if len(names) == columns else ()
    return from_spec(section, columns, n, known, categories, groups_of(spec.groups))


def columns_of(section: MechanismSection) -> int:
    """Return the number of columns that a mechanism is stated for, where none are named."""
    found = section.columns_stated()
    if found is None:
        raise SpecError("mechanism.components: missing; say how many shares a composition has")
    return found


def public_of(spec: RunSpec) -> tuple[tuple[str, ...], tuple[tuple[str, ...] | None, ...]]:
    """Return names and public categories of the columns of records, as far as the spec says them.

    They are those of ``data``, else of ``release`` where each column of records is released on its own: a
    statistic, or a histogram's counts, stand there in a column of theirs.
    """
    section, mechanism = spec.data, spec.mechanism
    if section is None or section.columns is None:
        if mechanism is None or not mechanism.columns_each:
            return (), ()
        names = () if spec.release is None else spec.release.columns or ()
        return names, () if mechanism.on_domain else tuple(listed_of(spec, names or ("",)))
    found = [section.categories_of(i) for i in range(len(section.columns))]
    texts = [None if listed is None else tuple(str(name) for name in listed) for listed in found]
    return section.columns, tuple(texts) if any(texts) else ()
