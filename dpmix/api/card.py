"""`dpmix.card`: the metadata that is published beside a release."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from dpmix.api.arguments import PathLike, file_of
from dpmix.api.release_of import read_any
from dpmix.errors import PrivacyError, UsageError
from dpmix.release.card_metadata import BLANK, blanks_of, card_of, croissant_of
from dpmix.store.atomic import check_output, write_bytes

_SUFFIXES = (".yaml", ".yml", ".json")


def card(release: PathLike, output: PathLike | None = None, *, force: bool = False) -> dict[str, Any]:
    """Return the card of a release file, and write it: as YAML, or as Croissant JSON-LD.

    Parameters
    ----------
    release : path
        A release file, or a CSV file of synthetic records with the account beside it.
    output : path, optional
        Of the card: its name ends in .yaml or .yml; or in .json for Croissant.
    force : bool
        Overwrite a file that is there.

    Returns
    -------
    dict
        What was written; the card, where nothing was. Blanks that are policy begin with "TO BE FILLED IN".

    Raises
    ------
    UsageError
        When the output's name has another ending, or is there already.
    DataError
        When the release cannot be read.
    PrivacyError
        When the release guarantees nothing.
    """
    tree = planned(release, output, force=force)
    if output is not None:
        target = Path(output)
        text = json.dumps(tree, indent=2) + "\n" if _is_croissant(target) else _yaml(tree)
        write_bytes(target, text.encode(), force=force)
    return tree


def planned(release: PathLike, output: PathLike | None = None, *, force: bool = False) -> dict[str, Any]:
    """Return what `card` would write, with the same arguments and errors, and write nothing."""
    path, target = file_of(release, "release"), None if output is None else file_of(output, "output")
    if target is not None:
        if not target.name.lower().endswith(_SUFFIXES):
            raise UsageError(f"-o {target}: a card is a .yaml file, or .json for Croissant; change the name")
        check_output(target, force=force)
    found = read_any(path)
    if not found.private or (found.epsilon is None and found.rho is None):
        raise PrivacyError(
            f"{path} guarantees nothing (its noise was seeded, or there is none): there is no card to publish"
        )
    if target is not None and _is_croissant(target):
        data = path.read_bytes()
        return croissant_of(found, path.name, hashlib.sha256(data).hexdigest(), len(data))
    return card_of(found, path.name)


def _is_croissant(target: Path) -> bool:
    return target.name.lower().endswith(".json")


def _yaml(tree: dict[str, Any]) -> str:
    import yaml

    blanks = blanks_of(tree)
    head = [
        "# What is known of how this release was made. What is policy, and so in no file, is marked",
        f"# {BLANK}: {len(blanks)} entries. Under registry stands a record of tier 3 of the Differential",
        "# Privacy Deployments Registry, to be sent in by itself.",
    ]
    plain = json.loads(json.dumps(tree))  # tuples and the like as lists
    return "\n".join(head) + "\n" + yaml.safe_dump(plain, sort_keys=False, width=110, allow_unicode=True)
