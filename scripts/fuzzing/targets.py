"""What is damaged, and the command that must say so: one function a kind of file."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

import dpmix
import dpmix.api.fit
from fuzzing.files import FITTED, SHORT, SPECS, table_of
from fuzzing.mutate import HOSTILE, mutate_csv, mutate_hdf5, mutate_text, mutate_value

__all__ = ["STREAM", "TARGETS"]

STREAM = "stdin.csv"
"""What is on standard input, where it is there."""


def spec_values(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage the values of a spec."""
    return _planned(folder, _damaged_values(folder, rng), rng)


def spec_text(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage the text of a spec."""
    return _planned(folder, _damaged_text(folder, rng), rng)


def _damaged_values(folder: Path, rng: random.Random) -> str:
    name = rng.choice(list(SPECS))
    damaged = mutate_value(SPECS[name], rng)
    (folder / "s.yaml").write_text(yaml.safe_dump(damaged, sort_keys=False, allow_unicode=True), "utf-8")
    return name


def _damaged_text(folder: Path, rng: random.Random) -> str:
    name = rng.choice(list(SPECS))
    text = mutate_text((folder / f"{name}.yaml").read_text("utf-8"), rng)
    (folder / "s.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    return name


def _planned(folder: Path, name: str, rng: random.Random) -> Sequence[str]:
    spec, output = str(folder / "s.yaml"), str(folder / "out.h5")
    commands: list[list[str]] = [["validate", spec], ["calibrate", spec]]
    commands.append([_verb(name), spec, "-o", output, "--dry-run", *_entering(folder, rng)])
    commands.append([_verb(name), spec, "-o", output, "--yes", "--dry-run"])
    if (folder / f"{name}_release.h5").exists():
        release = str(folder / f"{name}_release.h5")
        commands.append(["fit", spec, "--release", release, "-o", output, "--dry-run"])
    return rng.choice(commands)


def _verb(name: str) -> str:
    return "synthesize" if "synthesis" in SPECS[name] else "privatize"


def overrides(folder: Path, rng: random.Random) -> Sequence[str]:
    """Override keys with nonsense."""
    name = rng.choice(list(SPECS))
    keys = [f"{section}.{key}" for section, held in SPECS[name].items() for key in held] + ["x", "", "a.b.c"]
    return ["validate", str(folder / f"{name}.yaml"), "--set", _override(keys, rng)]


def _override(keys: Sequence[str], rng: random.Random) -> str:
    value = rng.choice(HOSTILE)
    text = json.dumps(value) if rng.random() < 0.5 else str(value)
    key = rng.choice(keys) + rng.choice(("", "", "", ".", ".x", "[0]"))
    return f"{key}={text}".replace("\x00", "")


def csv(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a confidential table."""
    name = rng.choice(list(SPECS))
    path = folder / table_of(name)
    path.write_bytes(mutate_csv(path.read_text(), rng).encode("utf-8", "surrogatepass"))
    spec = str(folder / f"{name}.yaml")
    if name == "smoothed" and rng.random() < 0.3:
        return ["synthesize", spec, "--compare", "--runs", "1", "--quiet"]
    return [_verb(name), spec, "-o", str(folder / "out.h5"), "--quiet"]


def stream(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a confidential table on standard input, or the name of the output."""
    name = rng.choice([name for name in SPECS if table_of(name) != "-"])
    table = (folder / table_of(name)).read_text()
    (folder / STREAM).write_bytes(mutate_csv(table, rng).encode("utf-8", "surrogatepass"))
    output = rng.choice(("out.h5", "out.h5", "out.nc", "out.csv", "out", "-", "out.h5.csv"))
    options = rng.choice(([], ["--yes"], ["--dry-run"], ["--set", "mechanism.order=public"]))
    where = output if output == "-" else str(folder / output)
    source = ["--set", rng.choice(("data.path=-", "data.path='-'", "data.path=[-]"))]
    return [_verb(name), str(folder / f"{name}.yaml"), "-o", where, "--quiet", *source, *options]


def audit(folder: Path, rng: random.Random) -> Sequence[str]:
    """Audit what a damaged spec says."""
    (_damaged_values if rng.random() < 0.8 else _damaged_text)(folder, rng)
    confidence = rng.choice(("0.9", "0.9", "0", "1", "nan", "-1", "x"))
    runs = rng.choice(("200", "200", "200", "200", "-1", "7", "1e3", "x"))
    return ["audit", str(folder / "s.yaml"), "--runs", runs, "--confidence", confidence, "--quiet"]


def advise(folder: Path, rng: random.Random) -> Sequence[str]:
    """Ask what damaged specs promise, or for nonsense."""
    (_damaged_values if rng.random() < 0.8 else _damaged_text)(folder, rng)
    records = rng.choice(("1e3", "1e3", "1e3", "0", "-1", "1.5", "1e400", "nan", "x", ","))
    epsilons = rng.choice(("1", "1", "1", "0", "-1", "inf", "1e-300", "nan", "x", "1,,2"))
    kinds = rng.choice(("laplace", "laplace", "square_wave", "perturbed_histogram", "none", "posterior", "x"))
    more = rng.choice(([], ["--mechanism", kinds], ["--report", str(folder / "out.html")]))
    return ["advise", str(folder / "s.yaml"), "--n", records, "--epsilon", epsilons, "--json", "-q", *more]


def release(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a release file."""
    name = rng.choice(FITTED)
    path = folder / f"{name}_release.h5"
    mutate_hdf5(path, rng)
    spec = str(folder / f"{name}.yaml")
    if name in ("posterior", "proved") and rng.random() < 0.5:
        return ["summarize", str(path), "--json"]
    return ["fit", spec, "--release", str(path), "-o", str(folder / "out.h5"), "--quiet"]


def tally(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a tally, what is to be tallied, or the result of the query."""
    output = str(folder / "out.h5")
    name = rng.choice(
        ("tally.h5", "mixture_release.h5", "squares_release.h5", "result.csv", "released_x.csv")
    )
    path, spec = folder / name, str(folder / ("squares.yaml" if name[0] == "s" else "mixture.yaml"))
    if path.suffix == ".csv":
        path.write_bytes(mutate_csv(path.read_text(), rng).encode("utf-8", "surrogatepass"))
        given = ["--counts", str(path)] if name == "result.csv" else [str(path)]
        return ["tally", spec, *given, "-o", output, "--quiet"]
    mutate_hdf5(path, rng)
    if name == "tally.h5" and rng.random() < 0.5:
        kind = ["--set", "sampler.kind=counts", "--dry-run"]
        return ["fit", spec, "--release", str(path), "-o", output, *kind]
    width = rng.choice(([], ["--width", rng.choice(("0.5", "-1", "nan", "1e-300", "auto", "x"))]))
    first = [spec] if name[0] == "s" else []  # which of the columns
    return ["tally", *first, str(path), "-o", output, "--quiet", *width]


def synthetic(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage synthetic records, or the account beside them."""
    path, account = folder / "synthetic.csv", folder / "synthetic.csv.json"
    if rng.random() < 0.5:
        path.write_bytes(mutate_csv(path.read_text(), rng).encode("utf-8", "surrogatepass"))
    elif rng.random() < 0.5:
        account.write_text(json.dumps(mutate_value(json.loads(account.read_text()), rng)))
    else:
        account.write_bytes(mutate_text(account.read_text(), rng).encode("utf-8", "surrogatepass"))
    spec = {"model": {"kind": "discrete"}, "sampler": SHORT}
    (folder / "s.yaml").write_text(yaml.safe_dump(spec))
    return ["fit", str(folder / "s.yaml"), "--release", str(path), "-o", str(folder / "out.h5"), "--quiet"]


def stated(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a release that the spec states, or the code of a model given it."""
    damaged = rng.choice(("released.csv", "my_model.py", "custom.yaml"))
    path = folder / damaged
    mutate = mutate_csv if damaged == "released.csv" else mutate_text
    path.write_bytes(mutate(path.read_text("utf-8"), rng).encode("utf-8", "surrogatepass"))
    allowed = ["--allow-code"] if rng.random() < 0.8 else []
    spec, output = str(folder / "custom.yaml"), str(folder / "out.h5")
    run = ["--set", "sampler.iterations=20", "--set", "sampler.burn_in=10", "--chains", "1"]
    if damaged == "my_model.py" or rng.random() < 0.8:  # other code takes long to compile
        run = ["--dry-run"]
    return ["fit", spec, "-o", output, "--quiet", *allowed, *run]


def chains(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a chains file."""
    name = rng.choice(FITTED)
    path = folder / f"{name}_chains.h5"
    mutate_hdf5(path, rng)
    kind = rng.random()
    if kind < 0.6:
        return ["summarize", str(path), "--json"]
    if kind < 0.7:
        return ["summarize", str(path), "-o", str(folder / "out.h5"), "--report", str(folder / "out.html")]
    if kind < 0.85:
        resumed = str(folder / f"{name}_release.h5")
        return ["fit", str(folder / f"{name}.yaml"), "--release", resumed, "-o", str(path), "--resume", "-q"]
    (folder / "s.yaml").write_text("synthesis: {kind: pitman_yor, records: 2}\n")
    output = str(folder / "out.csv")
    return ["synthesize", str(folder / "s.yaml"), "--chains", str(path), "-o", output, "--quiet"]


def records(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a table of records to predict, or the chains that predict them, or how."""
    name = rng.choice(("moments", "moments", "counts", "counts", rng.choice(FITTED)))
    path, held = folder / table_of(name), folder / f"{name}_chains.h5"
    if rng.random() < 0.7:
        path.write_bytes(mutate_csv(path.read_text(), rng).encode("utf-8", "surrogatepass"))
    else:
        mutate_hdf5(held, rng)
    if rng.random() < 0.25:
        return ["summarize", str(held), "--json", "--set", f"summary.at={path}"]
    at = str(path)
    if rng.random() < 0.3:
        (folder / STREAM).write_bytes(path.read_bytes())
        at = "-"
    keys = ["summary.interval", "summary.level", "summary.at"]
    options = ["--set", _override(keys, rng)] if rng.random() < 0.3 else []
    options += rng.choice(([], ["--interval", rng.choice(("mean", "record", "x", ""))]))
    where = rng.choice(([], ["-o", str(folder / rng.choice(("p.csv", "p.csv.gz", "p.h5", "data.csv")))]))
    return ["predict", str(held), "--at", at, *where, *options, *rng.choice((["--json"], ["--quiet"], []))]


def contrast(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage one of two chains files to be compared, or that of two groups, or how."""
    if rng.random() < 0.3:
        both = folder / "by_group_chains.h5"
        if rng.random() < 0.7:
            mutate_hdf5(both, rng)
        named = rng.choice(([], ["--groups", rng.choice(("f,m", "m,f", "f", "f,f", "f,x", ",", "f,m,f"))]))
        return ["summarize", str(both), "--contrast", *named, *rng.choice((["--json"], []))]
    pair = [str(folder / f"{name}_chains.h5") for name in ("compositions", "others")]
    rng.shuffle(pair)
    options = []
    if rng.random() < 0.7:
        mutate_hdf5(Path(pair[0]), rng)
    elif rng.random() < 0.5:
        pair[1] = str(folder / f"{rng.choice(FITTED)}_chains.h5")
    else:
        options = ["--margin", rng.choice(("nan", "-1", "2", "x", "inf", "1e-320"))]
    keys = ["summary.grid", "summary.level", "summary.x"]
    options += ["--set", _override(keys, rng)] if rng.random() < 0.3 else []
    return ["summarize", *pair, "--contrast", *options, *rng.choice((["--json"], ["--public-groups"], []))]


def partial(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage the work of a fit that was stopped, and go on with it."""
    name = rng.choice(("mixture", "moments"))
    spec, held = str(folder / f"{name}.yaml"), str(folder / f"{name}_release.h5")
    output = folder / "out.h5"
    _stop_half_way(spec, held, output)
    files = sorted(path for path in (folder / "out.h5.partial").iterdir() if path.name != "lock")
    path = rng.choice(files)
    if path.suffix == ".h5":
        mutate_hdf5(path, rng)
    elif rng.random() < 0.5:
        path.write_text(json.dumps(mutate_value(json.loads(path.read_text()), rng)))
    else:
        path.write_bytes(mutate_text(path.read_text(), rng).encode("utf-8", "surrogatepass"))
    return ["fit", spec, "--release", held, "-o", str(output), "--resume", "--quiet"]


def _stop_half_way(spec: str, release: str, output: Path) -> None:
    """Leave the work of a fit whose file could not be put together."""
    real = dpmix.api.fit.write_chains
    dpmix.api.fit.write_chains = _full_disk
    try:
        dpmix.fit(spec, release=release, output=output, quiet=True)
    except OSError:
        return
    finally:
        dpmix.api.fit.write_chains = real


def _full_disk(*args: object, **options: object) -> None:
    raise OSError(28, "No space left on device")


def ledger(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage a ledger, or the note of its length."""
    path = folder / "ledger.json"
    kind = rng.random()
    if kind < 0.15:
        note = folder / "ledger.json.lock"
        note.write_bytes(mutate_text(note.read_text("utf-8"), rng).encode("utf-8", "surrogatepass"))
    elif kind < 0.4:
        path.write_bytes(mutate_text(path.read_text("utf-8"), rng).encode("utf-8", "surrogatepass"))
    elif kind < 0.7:
        path.write_bytes(_chained(path.read_text("utf-8"), rng).encode("utf-8", "surrogatepass"))
        (folder / "ledger.json.lock").unlink()
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
    spec = str(folder / rng.choice(("ledgered.yaml", "parted.yaml")))
    return ["privatize", spec, "-o", str(folder / "out.h5"), "--quiet", *_entering(folder, rng)]


def _entering(folder: Path, rng: random.Random) -> list[str]:
    """Return options that say how a release is entered, or none."""
    flags: list[list[str]] = [
        ["--new-ledger"],
        ["--no-ledger"],
        ["--yes"],
        ["--dataset", rng.choice(("fuzz", "some", "everybody", "new", "", " x"))],
        ["--ledger", str(folder / "ledger.json.gone")],
    ]
    return [word for flag in flags if rng.random() < 0.15 for word in flag]


def _chained(text: str, rng: random.Random) -> str:
    """Damage one entry of a ledger and make all digests anew, so that what it says is looked at."""
    ledger = json.loads(text)
    entries = ledger["entries"]
    place = rng.randrange(len(entries))
    entries[place] = mutate_value(entries[place], rng)
    previous = entries[0]["previous"] if place else "0" * 64
    for entry in entries:
        if isinstance(entry, dict):
            entry.pop("digest", None)
            entry["previous"] = previous
            previous = hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()
            entry["digest"] = previous
    return json.dumps(ledger)


def shown(folder: Path, rng: random.Random) -> Sequence[str]:
    """Damage any file, and ask what it is, for its table, or for its card."""
    path = rng.choice(sorted(path for path in folder.iterdir() if path.is_file()))
    if path.suffix == ".h5":
        mutate_hdf5(path, rng)
    else:
        mutated = mutate_text(path.read_bytes().decode("utf-8", "replace"), rng)
        path.write_bytes(mutated.encode("utf-8", "surrogatepass"))
    table = ["--table", rng.choice(("draws", "components", "parameters", "x"))] if rng.random() < 0.3 else []
    where = rng.choice(("-", str(folder / "out.csv"), str(folder / "out.parquet"), str(folder / "out.h5")))
    return rng.choice(
        (
            ["show", str(path)],
            ["show", str(path), "--json"],
            ["export", str(path), "-o", where, *table],
            ["card", str(path), "-o", str(folder / rng.choice(("out.yaml", "out.json", "out.csv")))],
        )
    )


def damaged_anything(folder: Path, rng: random.Random) -> Sequence[str]:
    """Hand one file to the command of another."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    first, second = (str(rng.choice(files)) for _ in range(2))
    output = str(folder / "out.h5")
    return rng.choice(
        (
            ["validate", first],
            ["summarize", first, second, "--json"],
            ["summarize", first, second, "--contrast"],
            ["fit", first, "--release", second, "-o", output, "--quiet"],
            ["privatize", first, "-o", output, "--quiet"],
            ["privatize", str(folder / "mixture.yaml"), "-o", output, "--ledger", first],
            ["synthesize", first, "--chains", second, "-o", str(folder / "out.csv"), "--quiet"],
            ["ledger", "show", first],
            ["show", first],
            ["export", first, "-o", second, "--force"],
            ["ledger", "budget", first, "--rho", "1"],
            ["ledger", "budget", first, "--rho", "1", "--new-ledger"],
            ["predict", first, "--at", second],
            ["calibrate", first],
            ["audit", first, "--runs", "200", "--quiet"],
        )
    )


TARGETS: dict[str, Callable[[Path, random.Random], Sequence[str]]] = {
    "values": spec_values,
    "text": spec_text,
    "set": overrides,
    "csv": csv,
    "stream": stream,
    "audit": audit,
    "advise": advise,
    "release": release,
    "tally": tally,
    "synthetic": synthetic,
    "stated": stated,
    "chains": chains,
    "records": records,
    "contrast": contrast,
    "partial": partial,
    "ledger": ledger,
    "shown": shown,
    "swap": damaged_anything,
}
