"""The wheel in an empty environment, and every tutorial and starter in it; see `scripts/newcomer`."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from newcoming.pages import File, differs, steps

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "tutorials"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return its exit code."""
    parser = argparse.ArgumentParser(prog="newcomer", description=__doc__)
    parser.add_argument(
        "pages", nargs="*", help="tutorials by name, such as own-csv, or starters; all where left out"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="keep environment and tutorials here; an environment already there is used",
    )
    options = parser.parse_args(arguments)
    known = ["starters", *sorted(page.stem for page in PAGES.glob("*.md"))]
    if unknown := set(options.pages) - set(known):
        parser.error(f"no such tutorial: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    with _folder(options.folder) as place:
        doings: list[tuple[str, Callable[[], str | None]]] = []
        if not (place / "installed").exists():
            doings.append(("install", lambda: _install(place)))
        doings += [
            (name, partial(_starters if name == "starters" else _tutorial, place, name))
            for name in options.pages or known
        ]
        failed = 0
        for name, do in doings:
            began = time.monotonic()
            problem = do()
            print(
                f"{name:<20} {time.monotonic() - began:7.1f} s   {'failed' if problem else 'ok'}", flush=True
            )
            if problem:
                print(problem, file=sys.stderr)
                failed += 1
                if name == "install":
                    break
    return 1 if failed else 0


@contextmanager
def _folder(stated: Path | None) -> Iterator[Path]:
    """Give the folder that is stated, or one outside of the repository that is taken away at the end."""
    if stated is not None:
        stated.mkdir(parents=True, exist_ok=True)
        yield stated.resolve()
        return
    place = Path(tempfile.mkdtemp(prefix="dpmix-newcomer-"))
    try:
        yield place
    finally:
        shutil.rmtree(place)


Run = Callable[[str, Path], tuple[int, str]]


def follow(page: Path, folder: Path, run: Run) -> str | None:
    """Do what a page asks for, in a folder of its own.

    Parameters
    ----------
    page : Path
        The tutorial.
    folder : Path
        Made if it is not there.
    run : callable
        Takes a command and the folder to run it in, and returns exit code and output.

    Returns
    -------
    str or None
        The first command that printed something else than the page shows, with both; or that broke off
        without an error of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for step in steps(page):
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, "utf-8")
            continue
        code, said = run(step.text, folder)
        refused = any(line.startswith("dpmix: error:") for line in step.shown)
        if bool(code) != refused:
            return f"{page.name}: $ {step.text}\nexit code {code}\n{said}"
        if difference := differs(step, said):
            return f"{page.name}: $ {step.text}\n{difference}"
    return None


def _run(place: Path) -> Run:
    environment = _environment(place)

    def run(command: str, folder: Path) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    return run


def _environment(place: Path) -> Mapping[str, str]:
    """Return the variables of a newcomer: the new environment first, nothing of the repository."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DPMIX", "NUMBA"))
    }
    return {
        **kept,
        "PATH": f"{place / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "DPMIX_CACHE_DIR": str(place / "cache"),
        "PYTHONWARNINGS": "error::SyntaxWarning",
    }


def _install(place: Path) -> str | None:
    """Build the wheel, and install it into an empty environment."""
    python = place / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", str(place / "venv")],
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(place / "wheel"), str(ROOT)],
    ):
        if problem := _fails(command, place):
            return problem
    (wheel,) = (place / "wheel").glob("dpmix-*.whl")
    if problem := _fails([*pip, "install", str(wheel)], place):
        return problem
    where = subprocess.run(
        [python, "-c", "import dpmix; print(dpmix.__file__)"],
        cwd=place,
        env=_environment(place),
        capture_output=True,
        text=True,
    ).stdout
    if str(place) not in where:
        return f"dpmix is not that of the wheel, but {where.strip()}"
    (place / "installed").touch()
    return None


def _fails(command: Sequence[str], folder: Path) -> str | None:
    done = subprocess.run(command, cwd=folder, env=_environment(folder), capture_output=True, text=True)
    return f"{' '.join(command)}\n{done.stderr}" if done.returncode else None


def _tutorial(place: Path, name: str) -> str | None:
    if (place / name).exists():  # what an earlier run left there is in the way of `-o`
        shutil.rmtree(place / name)
    return follow(PAGES / f"{name}.md", place / name, _run(place))


def _starters(place: Path, _: str) -> str | None:
    """Print and check every starter that the wheel carries, and run the one that brings its data."""
    run, folder = _run(place), place / "starters"
    folder.mkdir(exist_ok=True)
    for left in folder.iterdir():
        left.unlink()
    code, listed = run("dpmix init", folder)
    kinds = [
        line.split()[0]
        for line in listed.splitlines()
        if line.startswith("  ") and not line.startswith("   ")
    ]
    if code or not {"square_wave", "randomized_response", "counts", "groups", "sweep"} <= set(kinds):
        return f"dpmix init does not list the starters:\n{listed}"
    commands = [f"dpmix init {kind} > {kind}.yaml" for kind in kinds]
    commands += [f"dpmix validate {kind}.yaml" for kind in kinds]
    commands += [
        "dpmix schema > dpmix.schema.json",
        "dpmix privatize simulation.yaml -o release.h5",
        "dpmix fit simulation.yaml --release release.h5 -o chains.h5 "
        "--set sampler.iterations=400 --set sampler.burn_in=200",
        "dpmix summarize chains.h5 --report report.html",
    ]
    for command in commands:
        code, said = run(command, folder)
        if code:
            return f"$ {command}\nexit code {code}\n{said}"
    return None


if __name__ == "__main__":
    sys.exit(main())
