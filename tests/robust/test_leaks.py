"""Nothing of the confidential data leaves the curator, but for what a mechanism is meant to release.

The confidential file has numbers of nine random digits, a person in a column that nobody asked for, and
counts that are told from others. Release files (raw, and all that they decode to), messages and ledger are
searched for these, for the file's path and for digests of it.

Noise may say by chance what it hides. What is searched for is so long that this happens in fewer than one
run in a million: names of six letters and more (one of three would stand in the random bytes of about one run
in 500), and numbers with nine decimals, all of them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dpmix.release.release_file import read_release
from dpmix.spec.messages import known_kinds
from tests.helpers.confidential import (
    CASES,
    COUNTS,
    DECIMALS,
    GROUPS,
    MECHANISMS,
    ONE,
    PERSON,
    SHARES,
    SYNTHESES,
    X,
    Y,
    write_confidential,
)
from tests.unit.cli.test_cli import outcome


def test_every_kind_is_searched() -> None:
    assert {kind for kind, _, _ in MECHANISMS} == {k for k in known_kinds("mechanism.kind") if k != "none"}
    assert {kind for kind, _, _ in SYNTHESES} == set(known_kinds("synthesis.kind"))


@pytest.fixture
def confidential(tmp_path: Path) -> Path:
    return write_confidential(tmp_path)


def decimals(text: str) -> set[str]:
    """Return the nine decimals of every number of a text that is below one and has as many."""
    return set(re.findall(r"(?<![\d.])0?(\.\d{9})0*(?!\d)", text))


def leaves(value: Any) -> Iterator[float]:
    """Give every number of what JSON holds, but for noisy counts, which may be the true ones by chance."""
    if isinstance(value, dict):
        value = [each for key, each in value.items() if key not in ("noisy_counts", "scores")]
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


def decoded(path: Path) -> tuple[str, list[float], list[float]]:
    """Return all text of a release file, the numbers said of it, and its values."""
    if path.suffix != ".h5":
        account = Path(f"{path}.json").read_text()
        text = path.read_text()
        values = [float(cell) for line in text.split("\n")[1:] for cell in line.split(",") if cell]
        return text + account, list(leaves(json.loads(account))), values
    texts, said, values = [str(path.read_bytes())], [], []

    def visit(name: str, node: Any) -> None:
        texts.append(name)
        for key, attribute in node.attrs.items():
            if isinstance(attribute, (str, bytes)):
                text = attribute.decode() if isinstance(attribute, bytes) else attribute
                texts.append(f"{key} {text}")
                said.extend(leaves(json.loads(text)) if text.startswith("{") else [])
            elif np.asarray(attribute).dtype.kind in "iuf":
                said.extend(np.asarray(attribute, dtype=float).ravel().tolist())
        if isinstance(node, h5py.Dataset) and node.dtype.kind in "iuf":
            values.extend(node[()].astype(float).ravel().tolist())
        elif isinstance(node, h5py.Dataset):
            texts.append(str([b"".join(row) for row in np.atleast_2d(node[()])]))  # characters

    with h5py.File(path) as file:
        visit("/", file)
        file.visititems(visit)
    return "\n".join(texts), said, values


@pytest.mark.parametrize("suffix", [".h5", ".csv"])
@pytest.mark.parametrize(
    ("verb", "kind", "columns", "own"), CASES, ids=[f"{i}-{c[1]}" for i, c in enumerate(CASES)]
)
def test_nothing_of_the_data_leaves(
    verb: str,
    kind: str,
    columns: dict[str, Any],
    own: dict[str, Any],
    suffix: str,
    confidential: Path,
    tmp_path: Path,
    capsys: Any,
) -> None:
    if verb == "privatize" and suffix == ".csv":
        suffix = ".other.h5"  # once more, with other noise
    section = {"privatize": "mechanism", "synthesize": "synthesis"}[verb]
    spec, output, ledger = (tmp_path / name for name in ("spec.yaml", f"out{suffix}", "ledger.json"))
    data = {"path": str(confidential), **columns}
    spec.write_text(json.dumps({"data": data, section: {"kind": kind, **own}}))
    code, out, err = outcome(capsys, verb, spec, "-o", output, "--ledger", ledger, "--new-ledger")
    assert (code, out) == (0, ""), err
    text, said, values = decoded(output)
    book = json.loads(ledger.read_text())
    if output.suffix == ".h5":
        release, (guarantee,) = read_release(output), [e["guarantee"] for e in book["entries"][:1]]
        del guarantee["gaussian"]
        assert guarantee == {key: getattr(release, key) for key in guarantee}
    raw = confidential.read_bytes()
    digests = [hashlib.new(name, raw).hexdigest() for name in ("md5", "sha1", "sha256")]
    for where, content in (("release", text), ("messages", err), ("ledger", ledger.read_text())):
        for word in ("payroll_7731", "secret_salaries", "Adalbertina", "Quillfeather", "person", *digests):
            assert word not in content, (where, word)
        if kind != "pitman_yor" or where != "release":  # which publishes records verbatim
            assert not decimals(content) & DECIMALS, where
    for word in digests:
        assert bytes.fromhex(word) not in output.read_bytes()
    secrets = {*Y, *X, *SHARES.ravel()} | {v for a in (Y, X, *SHARES.T) for v in (a.sum(), a.mean(), a.std())}
    # what an entry says of itself is no count: its number, and that of the entry it finishes
    kept = [{k: v for k, v in e.items() if k not in ("number", "spend")} for e in book["entries"]]
    for numbers in (said, list(leaves(kept))):
        assert not secrets & set(numbers)
        assert not COUNTS & set(numbers)
    if kind != "pitman_yor":
        assert not secrets & set(values)
    words = re.findall(r"(?<![\d.])\d+(?![\d.])", err.replace(str(tmp_path), ""))
    assert not COUNTS & {int(word) for word in words}


def test_the_search_finds_what_is_planted(confidential: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["release/values"] = np.array([[0.5], [Y[3]]])
        file["release"].attrs["mechanism"] = json.dumps({"kind": "x", "counts": [113, 4]})
        file["release"].attrs["source"] = str(confidential)
    text, said, values = decoded(tmp_path / "r.h5")
    assert "secret_salaries" in text and 113.0 in said and Y[3] in values
    for said_as in (f"[{-Y[3]:.9f},", f"y={Y[3]:.12f}", f"{Y[3]:.9f}".lstrip("0")):
        assert decimals(said_as) & DECIMALS
    assert not decimals(f"{Y[3]:.9f}1 7{Y[3]:.9f} {Y[3]:.8f}") & DECIMALS


BAD = {
    "text in place of a number": ("y", PERSON),
    "nothing": ("y", ""),
    "an infinite number": ("y", "inf"),
    "a category that is not public": ("group", PERSON),
}


@pytest.mark.parametrize("fault", BAD)
@pytest.mark.parametrize("command", ["privatize", "synthesize", "compare", "calibrate"])
def test_messages_about_malformed_data_show_no_values(
    fault: str, command: str, confidential: Path, tmp_path: Path, capsys: Any
) -> None:
    column, cell = BAD[fault]
    lines = confidential.read_text().split("\n")
    cells = lines[40].split(",")
    cells[lines[0].split(",").index(column)] = cell
    lines[40] = ",".join(cells)
    confidential.write_text("\n".join(lines))
    public = ONE if column == "y" else GROUPS
    own = {"kind": "laplace", "epsilon": 1} if column == "y" else {"kind": "posterior", "prior": [1, 1]}
    if column != "y":
        own |= {"epsilon": 1, "method": "laplace"}
    sections = {"data": {"path": str(confidential), **public}, "mechanism": own}
    synthesis = {"kind": "dirichlet_multinomial", "epsilon": 2, "records": 9}
    if command != "privatize":
        sections = {"data": sections["data"], "synthesis": synthesis}
    spec = tmp_path / "spec.yaml"
    spec.write_text(json.dumps(sections))
    arguments = {
        "privatize": ("privatize", spec, "-o", tmp_path / "r.h5"),
        "synthesize": ("synthesize", spec, "-o", tmp_path / "r.csv"),
        "compare": ("synthesize", spec, "--compare"),
        "calibrate": ("calibrate", spec),
    }[command]
    code, out, err = outcome(capsys, *arguments)
    assert (code, out) == (3, "") and "record 40" in err
    for number in (Y[39], X[39], *SHARES[39]):
        assert f"{number:.6f}"[:7] not in err
    assert "Adalbertina" not in err and "inf" not in err.replace("confidential", "").replace("infinite", "")


@pytest.mark.parametrize("command", ["privatize", "synthesize", "compare", "calibrate", "audit", "--dry-run"])
def test_a_first_line_that_is_no_header_is_not_shown(command: str, tmp_path: Path, capsys: Any) -> None:
    data, spec = tmp_path / "d.csv", tmp_path / "spec.yaml"
    data.write_text(f"{PERSON},positively\nP1 Q,negative\nP2 Q,negative\n")
    sections: dict[str, Any] = {
        "data": {"path": str(data), "columns": ["positive"], "categories": ["positively", "negative"]}
    }
    if command == "privatize":
        sections["mechanism"] = {"kind": "posterior", "prior": [1, 1], "epsilon": 1, "method": "laplace"}
    else:
        sections["synthesis"] = {"kind": "dirichlet_multinomial", "epsilon": 2, "records": 9}
    spec.write_text(json.dumps(sections))
    output = tmp_path / ("r.h5" if command == "privatize" else "r.csv")
    arguments = {
        "privatize": ("privatize", spec, "-o", output),
        "synthesize": ("synthesize", spec, "-o", output),
        "--dry-run": ("synthesize", spec, "-o", output, "--dry-run"),
        "compare": ("synthesize", spec, "--compare"),
    }.get(command, (command, spec))
    code, out, err = outcome(capsys, *arguments)
    assert (code, out) == (3, "")
    assert "has no column 'positive' among its 2 columns" in err
    assert "Adalbertina" not in err and "positively" not in err


def words_in(path: Path) -> str:
    """Return all text of a file, and of what an HDF5 file holds."""
    return decoded(path)[0] if path.suffix == ".h5" else path.read_text()


DOWNSTREAM: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        "laplace",
        ONE,
        {"epsilon": 2},
        {"kind": "mixture", "base": {"mu0": 0.5, "lambda": 1.0, "a": 3.0, "b": 0.1}},
    ),
    ("posterior", GROUPS, {"epsilon": 1, "prior": [1, 1], "method": "laplace"}, {"kind": "multinomial"}),
    ("noisy_counts", {"columns": ["group", "group2"]}, {"epsilon": 0.5, "levels": [2], "classes": 2},
     {"kind": "naive_bayes"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "columns", "own", "model"), DOWNSTREAM, ids=[c[0] for c in DOWNSTREAM])
def test_nothing_of_the_data_comes_by_the_spec(
    kind: str,
    columns: dict[str, Any],
    own: dict[str, Any],
    model: dict[str, Any],
    confidential: Path,
    tmp_path: Path,
    capsys: Any,
) -> None:
    # one spec for curator and analyst, with the path of the data in it
    spec, release, chains = tmp_path / "spec.yaml", tmp_path / "r.h5", tmp_path / "c.h5"
    data = {"path": str(confidential), **columns}
    sampler = {"iterations": 12, "burn_in": 2, "chains": 2, "seed": 1}
    sections = {"data": data, "mechanism": {"kind": kind, **own}, "model": model, "sampler": sampler}
    spec.write_text(json.dumps(sections))
    summary, report, ledger = (tmp_path / name for name in ("s.h5", "report.html", "l.json"))
    told = ""
    for arguments in (
        ("privatize", spec, "-o", release, "--ledger", ledger, "--new-ledger"),
        ("fit", spec, "--release", release, "-o", chains),
        ("summarize", chains, "-o", summary, "--report", report),
        ("summarize", chains, "--json"),
        ("calibrate", spec),
        ("audit", spec, "--runs", "200", "--confidence", "0.9999999"),
        ("ledger", "show", ledger),
    ):
        code, out, err = outcome(capsys, *arguments)
        assert code == 0, err
        told += out + err
    raw = confidential.read_bytes()
    digests = [hashlib.new(name, raw).hexdigest() for name in ("md5", "sha1", "sha256")]
    found = {"messages": told} | {path.name: words_in(path) for path in (release, chains, summary, report)}
    for where, content in found.items():
        for word in ("payroll_7731", "secret_salaries", "Adalbertina", "Quillfeather", "person", *digests):
            assert word not in content, (where, word)
        assert not decimals(content) & DECIMALS, where
    for path in (chains, summary):
        _, said, values = decoded(path)
        assert not {*Y, *X, *SHARES.ravel()} & {*said, *values}
        assert not COUNTS & set(said)


def test_the_folder_of_a_sweep_tells_no_more(confidential: Path, tmp_path: Path, capsys: Any) -> None:
    ledger, sweep, folder = tmp_path / "l.json", tmp_path / "sweep.yaml", tmp_path / "swept"
    base = {
        "data": {"path": str(confidential), **ONE},
        "mechanism": {"kind": "laplace", "epsilon": 2},
        "model": {"kind": "mixture", "base": {"mu0": 0.5, "lambda": 1.0, "a": 3.0, "b": 0.1}},
        "sampler": {"iterations": 12, "burn_in": 2, "seed": 1},
        "privacy": {"ledger": str(ledger), "budget": {"epsilon": 9}},
    }
    sweep.write_text(json.dumps({"base": base, "grid": {"sampler.chains": [1, 2]}}))
    code, _, err = outcome(capsys, "sweep", sweep, "-o", folder, "--emit", "snakemake", "--new-ledger")
    assert code == 0, err
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".h5" for path in files) and any(path.name == "Snakefile" for path in files)
    for where in (err, *(words_in(path) for path in files), ledger.read_text()):
        for word in ("payroll_7731", "secret_salaries", "Adalbertina", "Quillfeather"):
            assert word not in where
        assert not decimals(where) & DECIMALS
