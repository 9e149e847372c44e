"""What is damaged, and the command that must say so: one function a kind of file."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

import dpmix
from fuzzing.mutate import HOSTILE, mutate_csv, mutate_hdf5, mutate_text, mutate_value

__all__ = ["TARGETS", "prepare"]

Floats = list[list[float]]

_NIG = {"kind": "mixture", "base": {"mu0": 3.0, "lambda": 0.1, "a": 3.0, "b": 3.0}, "concentration": 1.0}
_SHORT = {"iterations": 6, "burn_in": 2, "chains": 1, "seed": 1}
_DATA = {"path": "data.csv", "columns": ["x"], "domain": [[0.0, 6.0]]}
_COUNTS = {"path": "counts.csv", "columns": ["u", "v", "y"]}
SPECS: dict[str, dict[str, Any]] = {
    "mixture": {
        "data": _DATA,
        "mechanism": {"kind": "laplace", "epsilon": 5.0},
        "model": _NIG,
        "sampler": {"kind": "neal8", **_SHORT},
        "summary": {"grid": [0.0, 6.0, 20]},
    },
    "histogram": {
        "data": _DATA,
        "mechanism": {"kind": "perturbed_histogram", "epsilon": 1.0, "bins": 4},
        "model": {"kind": "discrete"},
        "sampler": _SHORT,
    },
    "moments": {
        "data": {"path": "data.csv", "columns": ["x", "y"]},
        "mechanism": {"kind": "clamped_moments", "epsilon": 1.0, "bounds": [[0, 6], [0, 6]]},
        "model": {"kind": "linear_regression", "predict": [[1.0]]},
        "sampler": _SHORT,
    },
    "counts": {
        "data": _COUNTS,
        "mechanism": {"kind": "noisy_counts", "epsilon": 1.0, "levels": [2, 2], "classes": 2},
        "model": {"kind": "naive_bayes"},
        "sampler": _SHORT,
    },
    "compositions": {
        "data": {"path": "shares.csv", "columns": ["a", "b", "c"]},
        "mechanism": {"kind": "log_moments", "epsilon": 1.0, "thresholds": [0.2, 0.1]},
        "model": {"kind": "dirichlet"},
        "sampler": _SHORT,
    },
    "posterior": {
        "data": {"path": "labels.csv", "columns": ["g"], "categories": ["p", "q"]},
        "mechanism": {"kind": "posterior", "epsilon": 1.0, "delta": 0.01, "prior": [1, 1]},
        "model": {"kind": "multinomial"},
        "sampler": _SHORT,
    },
    "synthesis": {
        "data": {"path": "labels.csv", "columns": ["g"], "categories": ["p", "q"]},
        "synthesis": {"kind": "pitman_yor", "delta": 0.4},
    },
}
_FITTED = ("mixture", "moments")
"""Specs that are run while files are prepared; the others are checked, and their commands planned."""


def prepare(folder: Path, *, fits: bool = True) -> None:
    """Write sound files to damage: specs, tables and a ledger; with fits also releases and chains."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    rows = [(rng.uniform(0, 6), rng.uniform(0, 6)) for _ in range(12)]
    (folder / "data.csv").write_text("x,y\n" + "".join(f"{x:.3f},{y:.3f}\n" for x, y in rows))
    (folder / "labels.csv").write_text("g\n" + "".join(rng.choice("pq") + "\n" for _ in range(12)))
    codes = [",".join(str(rng.randint(1, 2)) for _ in range(3)) for _ in range(12)]
    (folder / "counts.csv").write_text("u,v,y\n" + "\n".join(codes) + "\n")
    (folder / "shares.csv").write_text("a,b,c\n" + "0.2,0.3,0.5\n0.1,0.1,0.8\n" * 6)
    for name, spec in SPECS.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    for name in _FITTED if fits else ():
        dpmix.privatize(folder / f"{name}.yaml", folder / f"{name}_release.h5", quiet=True)
        dpmix.fit(
            folder / f"{name}.yaml",
            release=folder / f"{name}_release.h5",
            output=folder / f"{name}_chains.h5",
            quiet=True,
        )
    dpmix.synthesize(folder / "synthesis.yaml", folder / "synthetic.csv", quiet=True)
    ledgered = SPECS["mixture"] | {"privacy": {"ledger": "ledger.json", "dataset": "fuzz"}}
    (folder / "ledgered.yaml").write_text(yaml.safe_dump(ledgered, sort_keys=False))
    dpmix.privatize(folder / "ledgered.yaml", folder / "ledgered.h5", quiet=True)


def spec_values(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage the values of a spec."""
    name = rng.choice(list(SPECS))
    damaged = mutate_value(SPECS[name], rng)
    (folder / "s.yaml").write_text(yaml.safe_dump(damaged, sort_keys=False, allow_unicode=True), "utf-8")
    return _planned(folder, name, rng)


def spec_text(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage the text of a spec."""
    name = rng.choice(list(SPECS))
    text = mutate_text((folder / f"{name}.yaml").read_text("utf-8"), rng)
    (folder / "s.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    return _planned(folder, name, rng)


def _planned(folder: Path, name: str, rng: random.Random) -> Sequence[str]:
    spec, output = str(folder / "s.yaml"), str(folder / "out.h5")
    commands: list[list[str]] = [["validate", spec], ["calibrate", spec]]
    if name == "synthesis":
        commands.append(["synthesize", spec, "-o", output, "--dry-run"])
    else:
        commands.append(["privatize", spec, "-o", output, "--dry-run"])
    if (folder / f"{name}_release.h5").exists():
        release = str(folder / f"{name}_release.h5")
        commands.append(["fit", spec, "--release", release, "-o", output, "--dry-run"])
    return rng.choice(commands)


def overrides(folder: Path, rng: random.Random) -> Sequence[str]:
    """Override keys with nonsense."""
    name = rng.choice(list(SPECS))
    keys = [f"{section}.{key}" for section, held in SPECS[name].items() for key in held] + ["x", "", "a.b.c"]
    value = rng.choice(HOSTILE)
    text = json.dumps(value) if rng.random() < 0.5 else str(value)
    key = rng.choice(keys) + rng.choice(("", "", "", ".", ".x", "[0]"))
    return ["validate", str(folder / f"{name}.yaml"), "--set", f"{key}={text}".replace("\x00", "")]


def csv(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a confidential table."""
    name = rng.choice(list(SPECS))
    path = folder / str(SPECS[name]["data"]["path"])
    path.write_bytes(mutate_csv(path.read_text(), rng).encode("utf-8", "surrogatepass"))
    verb = "synthesize" if name == "synthesis" else "privatize"
    return [verb, str(folder / f"{name}.yaml"), "-o", str(folder / "out.h5"), "--quiet"]


def release(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a release file."""
    name = rng.choice(_FITTED)
    path = folder / f"{name}_release.h5"
    mutate_hdf5(path, rng)
    spec = str(folder / f"{name}.yaml")
    return ["fit", spec, "--release", str(path), "-o", str(folder / "out.h5"), "--quiet"]


def synthetic(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage synthetic records, or the account beside them."""
    path, account = folder / "synthetic.csv", folder / "synthetic.csv.json"
    if rng.random() < 0.5:
        path.write_bytes(mutate_csv(path.read_text(), rng).encode("utf-8", "surrogatepass"))
    elif rng.random() < 0.5:
        account.write_text(json.dumps(mutate_value(json.loads(account.read_text()), rng)))
    else:
        account.write_bytes(mutate_text(account.read_text(), rng).encode("utf-8", "surrogatepass"))
    spec = {"model": {"kind": "discrete"}, "sampler": _SHORT}
    (folder / "s.yaml").write_text(yaml.safe_dump(spec))
    return ["fit", str(folder / "s.yaml"), "--release", str(path), "-o", str(folder / "out.h5"), "--quiet"]


def chains(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a chains file."""
    name = rng.choice(_FITTED)
    path = folder / f"{name}_chains.h5"
    mutate_hdf5(path, rng)
    if rng.random() < 0.7:
        return ["summarize", str(path), "--json"]
    if rng.random() < 0.5:
        resumed = str(folder / f"{name}_release.h5")
        return ["fit", str(folder / f"{name}.yaml"), "--release", resumed, "-o", str(path), "--resume", "-q"]
    (folder / "s.yaml").write_text("synthesis: {kind: pitman_yor, records: 2}\n")
    output = str(folder / "out.csv")
    return ["synthesize", str(folder / "s.yaml"), "--chains", str(path), "-o", output, "--quiet"]


def ledger(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a ledger."""
    path = folder / "ledger.json"
    if rng.random() < 0.5:
        path.write_bytes(mutate_text(path.read_text("utf-8"), rng).encode("utf-8", "surrogatepass"))
    else:
        lines = path.read_text("utf-8").splitlines()
        place = rng.randrange(len(lines))
        try:
            lines[place] = json.dumps(mutate_value(json.loads(lines[place]), rng))
        except ValueError:
            lines[place] = mutate_text(lines[place], rng)
        path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    if rng.random() < 0.5:
        return ["ledger", "show", str(path)]
    return ["privatize", str(folder / "ledgered.yaml"), "-o", str(folder / "out.h5"), "--quiet"]


def damaged_anything(folder: Path, rng: random.Random) -> Sequence[str]:
    """Hand one file to the command of another."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    first, second = (str(rng.choice(files)) for _ in range(2))
    output = str(folder / "out.h5")
    return rng.choice(
        (
            ["validate", first],
            ["summarize", first, second, "--json"],
            ["fit", first, "--release", second, "-o", output, "--quiet"],
            ["privatize", first, "-o", output, "--quiet"],
            ["synthesize", first, "--chains", second, "-o", str(folder / "out.csv"), "--quiet"],
            ["ledger", "show", first],
            ["calibrate", first],
        )
    )


TARGETS: dict[str, Callable[[Path, random.Random], Sequence[str]]] = {
    "values": spec_values,
    "text": spec_text,
    "set": overrides,
    "csv": csv,
    "release": release,
    "synthetic": synthetic,
    "chains": chains,
    "ledger": ledger,
    "swap": damaged_anything,
}


def fresh(base: Path, folder: Path) -> None:
    """Copy the sound files to a folder of their own."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
