"""Every command that writes, and what must hold however it was broken off."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

import dpmix
from breaking.same import differences
from dpmix.errors import DpmixError
from dpmix.release.release_file import read_release
from dpmix.store.ledger_file import read_ledger

__all__ = ["Scenario", "prepare", "scenarios", "unsound"]

_DATA = {"path": "data.csv", "columns": ["x"], "domain": [[0.0, 6.0]], "missing": {"x": 3.0}}
_LABELS = {"path": "labels.csv", "columns": ["g"], "categories": ["p", "q"], "missing": {"g": "category"}}
_SHORT = {"iterations": 120, "burn_in": 20, "thin": 1, "chains": 2, "seed": 1}
_LEDGER = {"ledger": "ledger.json", "dataset": "people", "budget": {"epsilon": 1000.0, "delta": 0.9}}
_OTHERS = _LEDGER | {"dataset": "labels"}
_PART = {"ledger": "ledger.json", "dataset": "some", "accountant": "sums"}
_SWEEP = {
    "base": "simulated.yaml",
    "set": {"sampler.seed": 1},
    "grid": {"mechanism.epsilon": [5.0, 9.0]},
}
_FRESH = "fresh.json"
_RUN = "swept/runs/epsilon=5"
_POSTERIOR = {
    "kind": "posterior",
    "method": "hellinger",
    "epsilon": 1.0,
    "delta": 0.01,
    "prior": [1, 1, 1],
}
_MIXTURE = {
    "kind": "mixture",
    "base": {"mu0": 3.0, "lambda": 0.1, "a": 3.0, "b": 3.0},
    "concentration": 1.0,
}
SPECS: dict[str, dict[str, Any]] = {
    "mixture": {
        "data": _DATA,
        "mechanism": {"kind": "laplace", "epsilon": 5.0},
        "model": _MIXTURE,
        "sampler": {"kind": "neal8", **_SHORT},
        "summary": {"grid": [0.0, 6.0, 20]},
        "privacy": _LEDGER,
    },
    "simulated": {
        "data": {"simulate": "three_gaussians", "n": 24, "seed": 1, "domain": [[-10.0, 10.0]]},
        "mechanism": {"kind": "laplace", "epsilon": 5.0},
        "model": _MIXTURE,
        "sampler": {"kind": "neal8", **_SHORT},
        "summary": {"grid": [0.0, 6.0, 20]},
    },
    "posterior": {
        "data": _LABELS,
        "mechanism": _POSTERIOR,
        "model": {"kind": "multinomial"},
        "sampler": _SHORT,
        "privacy": _OTHERS,
    },
    "part": {
        "data": {"path": "part.csv", "columns": ["x"], "domain": [[0.0, 6.0]]}
        | {"part": {"of": "people", "public": True}},
        "mechanism": {"kind": "laplace", "epsilon": 5.0},
        "privacy": _PART,
    },
    "proved": {
        "data": _LABELS,
        "mechanism": _POSTERIOR | {"calibration": "proved"},
        "privacy": _OTHERS,
    },
    "answers": {
        "data": _LABELS,
        "mechanism": {"kind": "randomized_response", "epsilon": 2.0},
        "privacy": _OTHERS,
    },
    "squares": {
        "data": {"path": "data.csv", "columns": ["x", "y"], "domain": [[0.0, 6.0], [0.0, 6.0]]},
        "mechanism": {"kind": "square_wave", "epsilon": 4.0},
        "privacy": _LEDGER,
    },
    "by_group": {
        "data": {
            "path": "grouped.csv",
            "columns": ["x"],
            "domain": [[0.0, 6.0]],
            "group": "sex",
            "categories": {"sex": ["f", "m"]},
        },
        "mechanism": {"kind": "perturbed_histogram", "noise": "discrete_gaussian", "rho": 2.0, "bins": 3},
        "privacy": _LEDGER | {"dataset": "grouped"},
    },
    "labels": {
        "data": _LABELS,
        "synthesis": {"kind": "pitman_yor", "delta": 0.4, "records": 4},
        "privacy": _OTHERS,
    },
    "moments": {
        "data": {"path": "data.csv", "columns": ["x", "y"]},
        "mechanism": {"kind": "clamped_moments", "epsilon": 1.0, "bounds": [[0, 6], [0, 6]]},
        "model": {"kind": "linear_regression"},
        "sampler": _SHORT | {"iterations": 1000},
        "privacy": _LEDGER,
    },
}


@dataclass(frozen=True)
class Scenario:
    """A command, and what comes of it.

    Parameters
    ----------
    name : str
    command : tuple of str
        What follows ``dpmix``.
    outputs : tuple of str
        Files that it writes.
    exact : bool
        Whether they are the same each time but for the time.
    again : tuple of str
        What to add to go on.
    spends : bool
        Whether it is entered in the ledger.
    old : tuple of str
        Files that stand under the names of the outputs before.
    """

    name: str
    command: tuple[str, ...]
    outputs: tuple[str, ...]
    exact: bool = True
    again: tuple[str, ...] = ()
    spends: bool = False
    old: dict[str, str] = field(default_factory=dict)

    def place(self, base: Path, folder: Path) -> None:
        """Make the folder that the command runs in."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(base, folder)
        for name, source in self.old.items():
            shutil.copy(base / source, folder / name)


def _fit(name: str) -> tuple[str, ...]:
    return ("fit", f"{name}.yaml", "--release", f"{name}_release.h5", "-o", "chains.h5", "--quiet", "-j", "1")


def scenarios(parametric: str) -> list[Scenario]:
    """Return all commands that write; `parametric` names the spec of the model that is no mixture."""
    summarize = ("summarize", "mixture_chains.h5", "-o", "summary.h5", "--json")
    report = ("--report", "report.html")
    predict = ("synthesize", "mixture.yaml", "--chains", "mixture_chains.h5", "-o", "records.csv", "--quiet")
    csv, h5 = (("synthesize", "labels.yaml", "-o", name, "--quiet") for name in ("s.csv", "s.h5"))
    yes = ("privatize", "mixture.yaml", "-o", "r.h5", "-q", "--set", "mechanism.epsilon=200")
    sweep = ("sweep", "sweep.yaml", "-o", "swept", "--run", Path(_RUN).name, "--quiet")
    counts = ("--set", "sampler.kind=counts", "--set", "sampler.store=[]")
    tally = ("tally", "mixture_release.h5", "-o", "tally.h5", "--quiet")
    tallied = ("fit", "mixture.yaml", "--release", "mixture_tally.h5", "-o", "chains.h5", "-q", "-j", "1")
    tallied = (*tallied, "--set", "sampler.kind=auto")
    card = ("card", "mixture_release.h5", "-o", "card.yaml", "--quiet")
    export = ("export", "mixture_chains.h5", "-o", "table.csv", "--quiet")
    old = {"s.csv": "old.csv", "s.csv.json": "old.csv.json"}
    at = ("predict", f"{parametric}_chains.h5", "--at", "data.csv", "-o", "p.csv", "--quiet")
    predicting = [Scenario("at", at, ("p.csv",), again=("--force",))] if parametric == "moments" else []
    return [
        *predicting,
        Scenario("privatize", ("privatize", "mixture.yaml", "-o", "r.h5", "-q"), ("r.h5",), False, (), True),
        Scenario("yes", (*yes, "--set", "mechanism.order=public", "--yes"), ("r.h5",), False, (), True),
        Scenario("table", ("privatize", "posterior.yaml", "-o", "r.h5", "-q"), ("r.h5",), False, (), True),
        Scenario("proved", ("privatize", "proved.yaml", "-o", "r.h5", "-q"), ("r.h5",), False, (), True),
        Scenario("answers", ("privatize", "answers.yaml", "-o", "r.h5", "-q"), ("r.h5",), False, (), True),
        Scenario("squares", ("privatize", "squares.yaml", "-o", "r.h5", "-q"), ("r.h5",), False, (), True),
        Scenario("by_group", ("privatize", "by_group.yaml", "-o", "r.h5", "-q"), ("r.h5",), False, (), True),
        Scenario("part", ("privatize", "part.yaml", "-o", "r.h5", "-q"), ("r.h5",), False, (), True),
        Scenario("synthesize", csv, ("s.csv", "s.csv.json"), False, ("--force",), True),
        Scenario("hdf5", h5, ("s.h5",), False, (), True),
        Scenario(
            "force",
            (*csv, "--force", "--set", "synthesis.records=3"),
            ("s.csv", "s.csv.json"),
            False,
            (),
            True,
            old,
        ),
        Scenario("fit", _fit("mixture"), ("chains.h5",), again=("--resume",)),
        Scenario("counts", (*_fit("mixture"), *counts), ("chains.h5",), again=("--resume",)),
        Scenario("tally", tally, ("tally.h5",), again=("--force",)),
        Scenario("tallied", tallied, ("chains.h5",), again=("--resume",)),
        Scenario("card", card, ("card.yaml",), again=("--force",)),
        Scenario("export", export, ("table.csv",), again=("--force",)),
        Scenario("parametric", _fit(parametric), ("chains.h5",), again=("--resume",)),
        Scenario("predict", predict, ("records.csv", "records.csv.json"), again=("--force",)),
        Scenario("summarize", summarize, ("summary.h5",), again=("--force",)),
        Scenario("report", (*summarize, *report), ("summary.h5", "report.html"), again=("--force",)),
        Scenario("sweep", sweep, (f"{_RUN}/result.json", f"{_RUN}/summary.h5")),
        Scenario(
            "budget",
            ("ledger", "budget", "ledger.json", "--dataset", "others", "--rho", "1"),
            (),
        ),
        Scenario(
            "start",
            ("ledger", "budget", _FRESH, "--dataset", "others", "--rho", "1", "--new-ledger"),
            (_FRESH,),
            False,
        ),
        Scenario(
            "init",
            ("init", "custom", "-o", "."),
            ("custom.yaml", "my_model.py", "released.csv"),
            again=("--force",),
        ),
    ]


def prepare(base: Path, parametric: str) -> None:
    """Write what the commands read: data, specs, releases, chains, synthetic records and a ledger."""
    base.mkdir(parents=True)
    rows = [(0.3 * i % 6, 0.7 * i % 6) for i in range(1, 25)]
    (base / "data.csv").write_text("x,y\n" + "".join(f"{x:.3f},{y:.3f}\n" for x, y in rows))
    (base / "part.csv").write_text("x\n" + "".join(f"{x:.3f}\n" for x, _ in rows[:9]))
    sexes = "".join(f"{x:.3f},{'fm'[i % 2]}\n" for i, (x, _) in enumerate(rows))
    (base / "grouped.csv").write_text("x,sex\n" + sexes)
    (base / "labels.csv").write_text("g\n" + "p\nq\nNA\n" * 4)
    for name, spec in SPECS.items():
        (base / f"{name}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    (base / "sweep.yaml").write_text(yaml.safe_dump(_SWEEP))
    for name in ("mixture", parametric):
        release = base / f"{name}_release.h5"
        dpmix.privatize(base / f"{name}.yaml", release, quiet=True, new_ledger=name == "mixture")
        if name in ("mixture", "moments"):
            output = base / f"{name}_chains.h5"
            dpmix.fit(base / f"{name}.yaml", release, output, quiet=True, jobs=1)
    dpmix.tally([base / "mixture_release.h5"], output=base / "mixture_tally.h5", quiet=True)
    dpmix.synthesize(base / "labels.yaml", base / "old.csv", quiet=True)


def _left_over(scenario: Scenario, base: Path, folder: Path) -> list[str]:
    """Name the files that are there beside what was there before and what the command may leave."""
    before = {path.name for path in base.iterdir()} | {"ledger.json.lock", f"{_FRESH}.lock"}
    before |= {Path(name).parts[0] for name in scenario.outputs}
    hidden = tuple(f".{name}." for name in (*scenario.outputs, "ledger.json"))
    found = []
    for path in sorted(folder.iterdir()):
        if path.name in before or (path.name == "chains.h5.partial" and scenario.command[0] == "fit"):
            continue
        if not (path.name.startswith(hidden) and path.name.endswith(".partial")):
            found.append(path.name)
    return found


def unsound(scenario: Scenario, base: Path, folder: Path, whole: Path) -> list[str]:
    """Say what is wrong with a folder, whether the command was broken off there or not.

    Parameters
    ----------
    scenario : Scenario
    base : Path
        As it was before.
    folder : Path
        As it is.
    whole : Path
        Where nothing happened to the command.
    """
    wrong = [f"left {name}" for name in _left_over(scenario, base, folder)]
    for name in scenario.outputs:
        path = folder / name
        if not path.exists():
            continue
        if scenario.exact:
            wrong += [f"{name} differs in {key}" for key in differences(path, whole / name)[:1]]
        elif name.endswith(".h5"):
            read_release(path)
        elif name == _FRESH and len(read_ledger(path).entries) != 1:
            wrong.append("the new ledger lacks its budget")
    for name in [path.name for path in base.iterdir() if not path.name.startswith("ledger.json")]:
        if (folder / name).read_bytes() != (base / name).read_bytes():
            wrong.append(f"changed {name}")
    for path in folder.rglob(".*.partial"):
        cut = path.name.startswith((".s.h5", ".r.h5")) and path.stat().st_size < _size(whole)
        if cut and not _refused(path):
            wrong.append(f"{path.name} looks finished")
    wrong += _table_problem(scenario, folder)
    return wrong + _ledger_problem(scenario, base, folder)


def _size(whole: Path) -> int:
    return min(path.stat().st_size for path in whole.glob("[rs].h5"))


def _refused(path: Path) -> bool:
    try:
        read_release(path)
    except DpmixError:
        return True
    return False


def _table_problem(scenario: Scenario, folder: Path) -> list[str]:
    """Say where synthetic records do not go with what is said beside them."""
    if "s.csv" not in scenario.outputs or not (folder / "s.csv").exists():
        return []
    if not (folder / "s.csv.json").exists():
        return ["records without their guarantee"]
    said = json.loads((folder / "s.csv.json").read_text())
    rows = (folder / "s.csv").read_text().splitlines()[1:]
    return [] if len(rows) == said["mechanism"]["records"] else ["records with another guarantee"]


def _ledger_problem(scenario: Scenario, base: Path, folder: Path) -> list[str]:
    """Say where the ledger does not say what was spent."""
    old, new = read_ledger(base / "ledger.json"), read_ledger(folder / "ledger.json")
    if new.entries[: len(old.entries)] != old.entries:
        return ["entries of the ledger are lost"]
    spent = [entry["number"] for entry in new.entries[len(old.entries) :] if entry["type"] == "spend"]
    if not scenario.spends:
        return ["spent something"] if spent else []
    begun = [path for path in folder.iterdir() if path.name.startswith((".r.", ".s."))]
    drawn = [path for path in begun if path.stat().st_size or not path.name.endswith(".claim.partial")]
    drawn += [folder / name for name in scenario.outputs if (folder / name).exists() and not scenario.old]
    if drawn and not spent:
        return ["drew without spending"]
    ends = [new.outputs()[number]["output"] for number in spent if number in new.outputs()]
    if ends:
        path = folder / ends[-1]["file"]
        if not path.exists() or sha256(path.read_bytes()).hexdigest() != ends[-1]["sha256"]:
            return ["the ledger knows another output"]
    return []
