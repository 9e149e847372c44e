"""`dpmix.show`: what a file is, and what it says, as sections of a result for each kind of file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from dpmix.api.arguments import PathLike, file_of
from dpmix.api.export import tables_of
from dpmix.api.file_kinds import KINDS, kind_of, tree_kind
from dpmix.api.release_of import read_any
from dpmix.api.spending import ledger_text, show_ledger
from dpmix.columns.cells import column_in_words, listed_briefly
from dpmix.errors import DataError, SpecError
from dpmix.laws.every import LawError, law_of
from dpmix.numerics.in_words import guarantee_in_words, plainly
from dpmix.release.release_file import read_release
from dpmix.release.sanitized import (
    Release,
    as_stated,
    cautions_of,
    done_in_words,
    first_rows,
    guarantee_sentence,
    public_columns,
    row_noun,
)
from dpmix.results.as_hdf5 import tables_in
from dpmix.results.nodes import Each, Items, ResultSection, Table, TableColumn, Tree, Words
from dpmix.results.result import Result
from dpmix.run.chains_reader import ChainSet, NamedChains, read_file
from dpmix.run.draws_tables import draws_tables, to_inferencedata
from dpmix.run.workspace import SUFFIX, Workspace, workspace_of
from dpmix.spec.days import Day, placed
from dpmix.spec.describe import describe
from dpmix.spec.load import load_spec, read_contents
from dpmix.spec.run_spec import RunSpec
from dpmix.spec.sweep_spec import load_sweep
from dpmix.store.frames import FIRST, to_notebook
from dpmix.store.h5 import reading
from dpmix.store.tree import Node, read
from dpmix.summary.subject import adjacency_of, is_private, is_simulated, stated_parameters

if TYPE_CHECKING:
    from dpmix.store.frames import Frame

_ROWS = 5  # of a release that are shown
_WIDTH = 12  # of what stands before the words of a line
_HIDDEN = ("mcse", "ess_tail", "ess_per_second", "note", "quantiles[0.5]")  # in text


def show(file: PathLike) -> Shown:
    """Read a file of dpmix, and say what it is.

    Parameters
    ----------
    file : path or what `fit` returned
        A release, tally, fit (also one that is not finished: the name of its output, or of its folder of
        work), summary, comparison of fits, ledger, synthetic records (.csv with the account beside it, .h5),
        spec or card.

    Returns
    -------
    Shown
        With `to_text()`, `to_json()`, and of those that hold a table `to_dataframe()`.

    Raises
    ------
    DataError
        When the file is not there, damaged, or none of these.
    """
    path = file_of(file, "file")
    kind = kind_of(path)
    return Shown(path, kind, tuple(_sections(path, kind)))


@dataclass(frozen=True, repr=False, eq=False)
class Shown(Result):
    """A file, and what it says.

    Parameters
    ----------
    path : Path
    kind : str
        A key of `dpmix.api.file_kinds.KINDS`.
    sections : tuple of ResultSection
    """

    path: Path
    kind: str
    sections: tuple[ResultSection, ...] = field(repr=False)

    @property
    def tree(self) -> Tree:
        """What it says; the guarantee stands among the sections."""
        own = ResultSection("file", str(self.path)), ResultSection("kind", self.kind)
        return Tree(KINDS[self.kind], f"{self.path}: {KINDS[self.kind]}", "", (*own, *self.sections))

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """What it is, and the sentences about it."""
        words = [getattr(piece, "text", piece) for section in self.sections for piece in section.brief]
        return self.tree.heading, [" ".join(str(text).split()) for text in words]

    def __repr__(self) -> str:
        return f"<Shown: {self.tree.heading}>"

    def to_frame(self, table: str | None = None) -> Frame:
        """Return what the file holds, as `dpmix.export` writes it.

        Raises
        ------
        DataError
            Of a kind that has no table.
        KeyError
            Where it has no such table.
        """
        found = tables_of(self.path)[1]
        if table is not None and table not in found:
            raise KeyError(f"no table {table!r}; there are {', '.join(found)}")
        return (next(iter(found.values())) if table is None else found[table]).frame()

    def to_inferencedata(self) -> Any:
        """Return chains as the installed ArviZ takes them; see `dpmix.run.draws_tables.to_inferencedata`.

        Raises
        ------
        DataError
            Of files that hold no chains.
        """
        return to_inferencedata(self.path)

    def _repr_html_(self) -> str:
        title, lines = self.headline
        tables = self.tables()
        frame = super().to_frame() if tables else None
        return to_notebook(title, lines, None if frame is None else frame.first(FIRST))


def _sections(path: Path, kind: str) -> list[ResultSection]:
    if kind in ("release", "tally", "synthetic"):
        found = read_any(path) if kind == "synthetic" else read_release(path, tallies=True)
        return sections_of_release(path, found)
    if kind == "chains":
        return sections_of_chains(path)
    if kind == "interrupted":
        return sections_of_work(path)
    if kind in ("summary", "contrast"):
        return sections_of_summary(path, read(path))
    if kind == "ledger":
        shown = show_ledger(path)
        lines = [Words(line, "        ") for line in ledger_text(shown).split("\n") if line]
        said = {key: value for key, value in shown.items() if key != "ledger"}
        return [
            ResultSection("ledger", text=[lines]),
            *(ResultSection(key, value) for key, value in said.items()),
        ]
    if kind == "card":
        what = "Croissant metadata (JSON-LD)" if path.name.lower().endswith(".json") else "metadata"
        return [ResultSection("about", what, brief=[f"{path}: a card, {what} to publish beside a release"])]
    return _sections_of_spec(path, kind)


def _sections_of_spec(path: Path, kind: str) -> list[ResultSection]:
    try:
        if kind == "sweep":
            load_sweep(path)
            varied = ", ".join(map(str, (read_contents(path).get("grid") or {}))) or "nothing but replicates"
            return [ResultSection("varied", varied, brief=[f"{path}: the spec of a sweep over {varied}"])]
        said = describe(load_spec(path))
    except SpecError as error:
        raise DataError(f"{path} is no spec that can be run: {error}") from None
    lines = [_line(name, text) for name, text in said.items()]
    return [ResultSection("sections", dict(said), brief=[f"{path}: a spec", *lines])]


def fact(key: str, data: Any, words: str = "", label: str | None = None) -> ResultSection:
    """Return a section of one line, such as "guarantee:  ..", and of nothing in text without words."""
    return ResultSection(key, data, brief=[_line(label or key, words)] if words else [])


def _line(name: str, words: str) -> Words:
    return Words(f"{name + ':':<{_WIDTH}}{words}", " " * _WIDTH)


# A release, a tally, or synthetic records


def sections_of_release(path: Path, release: Release) -> list[ResultSection]:
    """Return what is said of a release: what it is, its guarantee, mechanism, columns, and first values."""
    law, tally = release.mechanism, release.tally
    what, of_whom = (
        ("a release", f" by {law.kind}") if tally is None else ("a tally", f" of a {law.kind} release")
    )
    if law.released == "synthetic":
        what, of_whom = "synthetic records", f", drawn by {law.made_by}"
    columns = public_columns(release)
    rows, width = release.values.shape
    found = [
        ResultSection("about", what, brief=[f"{path}: {what}{of_whom}"]),
        fact("guarantee", release.guaranteed(), release.guaranteed()),
        fact("cautions", list(release.cautions), "; ".join(release.cautions), "caution"),
        fact("done", release.done(), release.done(), "mechanism"),
        fact(
            "n",
            release.n,
            f"{release.n:,} confidential {'record' if release.n == 1 else 'records'}",
            "records",
        ),
        fact("columns", columns, "; ".join(map(column_in_words, columns))),
    ]
    groups = {name: list(names) for name, names in release.groups.items()}
    grouped = "; ".join(f"{name} ({listed_briefly(names)})" for name, names in groups.items())
    found.append(
        fact("groups", groups, f"{grouped}; how many records each has is private" if grouped else "")
    )
    if tally is None:
        noun = row_noun(release)
        each = f" of {width} columns" if width > 1 else ""
        found.append(fact("shape", [rows, width], f"{rows:,} {noun}{each}", "released"))
    else:
        cells, inside = len(tally.counts), f"cells of width {tally.width:.6g}" if tally.width else "outputs"
        found.append(fact("shape", [cells, 1], f"counts in {cells:,} {inside}", "released"))
        found.append(ResultSection("coarsened", tally.width))
    found += _states(release)
    if release.is_raw:
        found.append(
            fact("first", None, "the confidential records as they are, which are not shown", "values")
        )
        return found
    frame = first_rows(release, _ROWS)
    found.append(ResultSection("first", Each(frame.rows()), text=[[_table_of_rows(frame)]]))
    return found


def _states(release: Release) -> list[ResultSection]:
    """Return what else is stated."""
    order = {"shuffled": "rows are shuffled", "public": "the order of the rows is public"}
    ledger = {
        "entered": "entered in the curator's ledger",
        "bypassed": "entered in no ledger, though there is one",
    }
    proved = {True: "the guarantee is proved", False: "the guarantee is not proved"}
    stated = (release.epsilon, release.rho)
    guarantees = release.private and any(each is not None and math.isfinite(each) for each in stated)
    shown = release.proved if guarantees else None
    words = [
        order.get(release.order or "", ""),
        "" if shown is None else proved[shown],
        ledger.get(release.ledger or "", ""),
        f"dpmix {release.dpmix_version}, {release.created_at}",
    ]
    names = ("epsilon", "delta", "rho", "adjacency", "trust", "private", "simulated")
    plain = {
        name: getattr(release, name) for name in (*names, "order", "ledger", "created_at", "dpmix_version")
    }
    plain["proved"] = shown
    unit = release.unit
    plain |= {"unit": dict(unit) if isinstance(unit, Mapping) else unit} if unit else {}
    return [
        fact("stated", None, "; ".join(filter(None, words)), "made"),
        *(ResultSection(name, value) for name, value in plain.items()),
        ResultSection("mechanism", release.mechanism.stated()),
    ]


def _table_of_rows(frame: Frame) -> Table:
    """Return released rows as a table, cells as CSV has them."""
    rows = [str(i + 1) for i in range(len(frame))]
    cells = dict(zip(frame.columns, frame.cells(), strict=True))
    columns = []
    for name, values in cells.items():
        column = np.asarray(frame.columns[name])
        number = hasattr(frame.columns[name], "dtype")
        finite = column[np.isfinite(column)] if column.dtype.kind in "iuf" else np.empty(0)
        step = 0.01 * float(np.ptp(finite)) if finite.size else 0.0
        columns.append(
            TableColumn(name, values, name, partial(_brief, step=step), where="text page", left=not number)
        )
    return Table("row", rows, columns)


def _brief(cell: str, step: float) -> str:
    try:
        return plainly(placed(float(cell), step, 6), "") if len(cell) > 9 else cell
    except ValueError:
        cell = cell.removesuffix(".000000")  # of a time of day
        return cell if len(cell) <= 40 else f"{cell[:37]}..."


# Chains, and a fit that is not finished


def sections_of_chains(path: Path) -> list[ResultSection]:
    """Return what is said of finished chains: of which release, which model and sampler, how many draws."""
    held = read_file(path)
    attrs, law = held.attrs, held.mechanism
    chains, draws = len(held.ids), held.draws
    numbers = dict(zip(("epsilon", "delta", "rho"), stated_parameters(attrs), strict=True))
    words = guarantee_in_words(
        **numbers,
        trust=str(attrs.get("trust", "local")),
        adjacency=adjacency_of(attrs),
        grouped=bool(law.groups),
    )
    flags = {"private": is_private(attrs), "simulated": is_simulated(attrs)}
    guarantee = guarantee_sentence(law, as_stated(words) if law.elsewhere else words, **flags)
    n = int(float(str(attrs.get("n", held.constants.get("n", len(held.observed) or 0)))))
    done = done_in_words(law, max(n, 1), dates=bool(attrs.get("dates")))
    cautions = cautions_of(law, max(n, 1), numbers["delta"])
    said = _described(path, str(attrs["spec"]))
    tables = draws_tables(path, held)
    ids = held.ids.tolist()
    each, drawn = ", ".join(map(str, ids)), f"{draws:,} draw{'s' * (draws != 1)}"
    variables = _variables(held, path)
    created = str(attrs.get("created_at", "unknown"))
    return [
        ResultSection("about", "chains", brief=[f"{path}: chains, finished"]),
        fact("guarantee", guarantee, guarantee),
        fact("cautions", list(cautions), "; ".join(cautions), "caution"),
        fact("done", done, done, "release"),
        fact("model", said.get("model"), said.get("model", "")),
        fact("sampler", said.get("sampler"), said.get("sampler", "")),
        fact("chains", ids, f"{chains} (ids {each}) x {drawn}, {held.seconds.sum():.3g} s of sampling"),
        ResultSection("draws", draws),
        ResultSection("finished", True),
        ResultSection("seconds", held.seconds.tolist()),
        fact("seed", str(attrs["seed"]), str(attrs["seed"])),
        fact("columns", list(held.columns), ", ".join(held.columns)),
        fact("variables", variables, ", ".join(variables)),
        fact("tables", list(tables), f"{', '.join(tables)} (dpmix export --table)"),
        fact("dpmix_version", attrs["dpmix_version"], f"dpmix {attrs['dpmix_version']}, {created}", "made"),
        ResultSection("created_at", created),
        *(ResultSection(name, value) for name, value in {**numbers, **flags}.items()),
        ResultSection("n", n),
        ResultSection("mechanism", law.stated()),
        ResultSection("spec", held.spec),
    ]


def _variables(held: ChainSet, path: Path) -> list[str]:
    if isinstance(held, NamedChains):
        return [stored.name for stored in held.parameters]
    with reading(path) as root:
        posterior = root.group("posterior")
        return [name for name in posterior.names()[0] if posterior[name].dims[:2] == ("chain", "draw")]


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


# A summary, or a comparison of two fits: its main table, and which others there are


def sections_of_summary(path: Path, root: Node) -> list[ResultSection]:
    """Return what is said of the HDF5 file of a summary.

    Raises
    ------
    DataError
        When it has no table.
    """
    tables = tables_in(root)
    if not tables:
        raise DataError(f"{path} is damaged: it is a summary without tables")
    first = "parameters" if "parameters" in tables else next(iter(tables))
    what = "a comparison of two fits" if tree_kind(root.groups) == "contrast" else "a summary"
    attrs = {key: value for key, value in root.attrs.items() if isinstance(value, str)}
    level = _figure(root.attrs.get("level"))
    model = attrs.get("model")
    guarantee = attrs.get("guarantee", "")
    names = ", ".join(tables)
    found = [
        ResultSection("about", what, brief=[f"{path}: {what}{f' of a fit of {model}' if model else ''}"]),
        fact("guarantee", guarantee or None, guarantee),
        fact("level", level, "" if level is None else f"{level:g} of the posterior in each interval"),
        fact("tables", list(tables), f"{names} (dpmix export --table)"),
        _table_section(first, tables[first]),
    ]
    warnings = tables.get("warnings")
    texts = [str(text) for text in (warnings.columns.get("text", ()) if warnings is not None else ()) if text]
    found.append(ResultSection("warnings", texts, text=[["Warnings:", Items(texts)]] if texts else []))
    made = attrs.get("dpmix_version")
    found.append(fact("dpmix_version", made, ""))
    return found


def _figure(value: Any) -> float | None:
    return (
        float(value)
        if value is not None and np.asarray(value).dtype.kind in "iuf" and np.ndim(value) == 0
        else None
    )


def _table_section(key: str, frame: Frame) -> ResultSection:
    """Return a table as JSON has it, a list of rows, and as a terminal shows it."""
    names = list(frame.columns)
    head = names[0]
    rows = ["" if name is None else str(name) for name in frame.first(len(frame)).cells()[0]]
    told = _places(frame)
    columns = [
        TableColumn(name, told[name], _label(name), str, where="text page")
        if name in told
        else TableColumn(name, _values(frame.columns[name]), _label(name), _write, where="text page")
        for name in names[1:]
        if name not in _HIDDEN and not (told and name == "date")
    ]
    return ResultSection(key, Each(frame.rows()), key, text=[[Table(head, rows, columns)]])


def _places(frame: Frame) -> dict[str, list[str | None]]:
    """Return means and ends of intervals as a summary writes them: told apart by the interval, and dates."""
    ends = [name for name in frame.columns if name.startswith("quantiles[")]
    if "mean" not in frame.columns or len(ends) < 2:
        return {}
    low, high = _values(frame.columns[ends[0]]), _values(frame.columns[ends[-1]])
    steps = [0.0 if a is None or b is None else 0.25 * (b - a) for a, b in zip(low, high, strict=True)]
    dates = _values(frame.columns["date"]) if "date" in frame.columns else [None] * len(steps)
    return {
        name: [
            None if value is None else placed(Day(value) if date else value, step)
            for value, date, step in zip(_values(frame.columns[name]), dates, steps, strict=True)
        ]
        for name in ("mean", *ends)
    }


def _label(name: str) -> str:
    """Return a column's head: "2.5%" for quantiles[0.025]."""
    inner = name.removeprefix("quantiles[").removesuffix("]")
    try:
        return f"{100 * float(inner):g}%" if name.startswith("quantiles[") else name
    except ValueError:
        return name


def _values(column: Any) -> list[Any]:
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return [None if value is None or value != value else value for value in values]


def _write(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)
