"""What an office publishes beside a release: all that is known of how it was made, and blanks for policy.

A card has the questions that the checklist of NIST SP 800-226 asks and, under ``registry``, a record of the
third tier of the Differential Privacy Deployments Registry (its schema of 2026). Croissant is the JSON-LD
vocabulary of data sets of MLCommons (version 1.0). Nothing but the release is read.
"""

from __future__ import annotations

import math
import re
from typing import Any

from dpmix.release.column_units import unit_of
from dpmix.release.sanitized import Release, neighbours_in_words

__all__ = ["BLANK", "blanks_of", "card_of", "croissant_of"]

BLANK = "TO BE FILLED IN"
"""How every blank begins: what no file knows, since it is policy."""

_NEIGHBOURS = {
    "replacement": "Two tables of the same number of records, which is public, that differ in one record.",
    "replacement, public parts": "Two tables that differ in one record, which stays in its part of the "
    "table; the sizes of the parts are public.",
    "replacement, private groups": "Two tables of the same number of records, which is public, that differ "
    "in one record, its group included; the sizes of the groups are not published.",
}


def _blank(what: str) -> str:
    return f"{BLANK}: {what}"


def card_of(release: Release, name: str) -> dict[str, Any]:
    """Return the card of a release, as a tree for YAML.

    Parameters
    ----------
    release : Release
        Private.
    name : str
        Of its file.
    """
    answers = _answers(release)
    return {
        "release": {
            "file": name,
            "columns": list(release.columns),
            **(
                {"unit": release.unit if isinstance(release.unit, str) else dict(release.unit)}
                if release.unit
                else {}
            ),
            "records": release.n,
            "created_at": release.created_at,
            "simulated": release.simulated,
            "done": answers["done"],
        },
        "privacy": {
            "unit": answers["unit"],
            "neighbouring_relation": release.adjacency,
            "neighbouring_tables": _NEIGHBOURS[release.adjacency],
            "notion": _variant(release),
            "parameters": _parameters(release),
            "proved": answers["proved"],
            "trust_model": answers["trust"],
            "unprotected": answers["unprotected"],
            "composition": answers["composition"],
            "mechanism": release.mechanism.stated(),
        },
        "implementation": {
            "floating_point": answers["floating_point"],
            "timing": answers["timing"],
            "randomness": answers["randomness"],
            "code_version": answers["code"],
        },
        "nist_sp_800_226": _checklist(release, answers),
        "registry": _registry(release, answers),
    }


def _variant(release: Release) -> str:
    if release.epsilon is not None and math.isfinite(release.epsilon):
        return "Approximate DP" if release.delta else "Pure DP"
    return "Zero-concentrated DP"


def _parameters(release: Release) -> dict[str, float]:
    found = {name: getattr(release, name) for name in ("epsilon", "delta", "rho")}
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}


def _answers(release: Release) -> dict[str, Any]:
    """Return what is known, in words."""
    law = release.mechanism
    elsewhere = bool((law.origin or law).get("stated"))
    public = f"the number of records ({release.n:,})"
    bounds = "the public bounds of numbers and the public categories"
    unprotected = f"Public, and not protected: {public}; the names of columns; {bounds}."
    if release.order == "public":
        unprotected += " The order of the rows is stated to be public."
    if release.adjacency == "replacement, public parts":
        unprotected += " The size of the part."
    grid = law.get("granularity")
    if elsewhere:
        floats = timing = randomness = (
            "Not known: the noise was drawn by another program, as the spec stated."
        )
        code = _blank("the program that drew the noise, and its version")
    else:
        floats = (
            "Noise on numbers is drawn by OpenDP's exact samplers on a grid"
            + (f" of {_powers(grid)}, which the guarantee accounts for" if grid else "")
            + "; whole-number draws compare whole numbers, so that no floating-point rounding enters."
        )
        timing = (
            "The release is made once, by the curator, and not interactively: nobody else sees how long it "
            "took. The samplers themselves do not run in constant time."
        )
        randomness = "The operating system's generator; no seed."
        if law.origin is not None:
            randomness = f"That of the release: {randomness} The records are drawn from the fit by a seed."
        code = f"dpmix {release.dpmix_version}, noise by opendp 0.16"
    ledger = {
        "entered": "The release is entered in the curator's ledger, which adds up all releases of the table "
        "and keeps their budget.",
        "bypassed": "A ledger was named for the table, and this release was made past it on request.",
        None: "No ledger was named: what other releases of the same table cost is not known here.",
    }[release.ledger]
    return {
        "unit": "One record of the table; "
        + _blank("what a record is (a person, a household, a visit), and how many one person may have"),
        "proved": {True: "yes", False: f"no: {law.unproved}", None: "not recorded"}[release.proved],
        "trust": _trust(release),
        "unprotected": unprotected,
        "composition": "Within the release the columns, counts or coefficients of a record are accounted for "
        f"together; the parameters are of the release as a whole. {ledger}",
        "floating_point": floats,
        "timing": timing,
        "randomness": randomness,
        "code": code,
        "done": _done(release),
    }


def _trust(release: Release) -> str:
    """Say the trust model, and of records drawn from a fit that nothing but a release was used."""
    if release.trust == "local":
        words = "Local: each record is privatized by itself, before others see it"
    else:
        words = "Central: the curator sees all records, and releases a noisy function of them"
    if release.mechanism.origin is None:
        return f"{words}."
    return f"{words}. These records are drawn from a model fitted to that release, and keep its guarantee."


def _done(release: Release) -> str:
    """Say what was done to the records, and to their released values after that."""
    done, tally = release.mechanism.done(release.n), release.tally
    if tally is None:
        return done
    return f"{done} Published are the counts of the released values in {len(tally.counts):,} public cells."


def _powers(grid: Any) -> str:
    values = sorted({float(value) for value in (grid if isinstance(grid, list | tuple) else [grid])})
    return ", ".join("1" if value == 1 else f"2^{round(math.log2(value))}" for value in values)


def _checklist(release: Release, answers: dict[str, Any]) -> list[dict[str, str]]:
    """Return the questions that an evaluation of a guarantee asks, with what is known."""
    parameters = ", ".join(f"{name} = {value:.17g}" for name, value in _parameters(release).items())
    return [
        {"question": question, "answer": answer}
        for question, answer in (
            ("What are the privacy parameters?", f"{parameters} ({_variant(release)})"),
            ("Why are they small enough?", _blank("who chose them, and why")),
            ("What is the unit of privacy?", answers["unit"]),
            ("Which tables are neighbours?", _NEIGHBOURS[release.adjacency]),
            ("Is the guarantee proved?", answers["proved"]),
            ("What is the trust model?", answers["trust"]),
            ("What is published without protection?", answers["unprotected"]),
            ("How do several releases add up?", answers["composition"]),
            ("Which mechanism is used?", answers["done"]),
            ("Which protections against floating-point attacks are there?", answers["floating_point"]),
            ("Which protections against timing attacks are there?", answers["timing"]),
            ("Where does the randomness come from?", answers["randomness"]),
            (
                "Was the implementation tested?",
                "dpmix audit bounds from below what this mechanism gives away; "
                "docs/privacy.md names the tests of each guarantee.",
            ),
            (
                "Were bounds or settings chosen by looking at the data?",
                _blank("dpmix reads none off the data; say how the public bounds and settings were found"),
            ),
            ("Who has access to the confidential data?", _blank("access control, retention and training")),
            (
                "How were the data collected?",
                _blank("collection, consent, and what the data may be used for"),
            ),
            (
                "Who may be harmed by error or bias of the release?",
                _blank("groups whose results are the noisiest"),
            ),
        )
    ]


def _registry(release: Release, answers: dict[str, Any]) -> dict[str, Any]:
    """Return a record of the registry, of tier 3 (schema: deployments-schema.yaml)."""
    synthetic = release.mechanism.released == "synthetic"
    local = release.trust == "local"
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", "-".join(release.columns).lower()).strip("-")[:60]
        or "release",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": _blank("the name of the data product"),
                "data_curators": [_blank("who publishes it")],
                "intended_use": _blank("what it is meant for"),
                "data_product_type": "Synthetic data"
                if synthetic
                else "Dataset"
                if local and release.tally is None
                else "Summary statistics",
                "data_product_region": _blank("the region that the data describe"),
                "description": f"{answers['done']} Columns: {', '.join(release.columns)}.",
                "publication_date": release.created_at[:10],
            },
            "dp_variant": {
                "variant_name": _variant(release),
                "data_domain": f"Tables of {release.n:,} records of {', '.join(release.columns)}, clamped to "
                "public bounds or of public categories.",
                "unprotected_quantities": answers["unprotected"],
            },
            "privacy_loss": {
                "privacy_unit": answers["unit"],
                "privacy_unit_details": f"{_NEIGHBOURS[release.adjacency]} (Neighbours differ by "
                f"{neighbours_in_words(release.adjacency)}.)",
                "privacy_parameters": _parameters(release),
                "privacy_parameters_details": f"Proved: {answers['proved']}.",
            },
            "deployment_model": {
                "model_name": "Local" if local else "Central",
                "model_name_details": answers["trust"],
                "actors": _blank("who sees the records, who sees the release, and whom they trust"),
                "release_type": "One release",
                "release_type_details": _blank("whether more will be released of the same records"),
                "data_source_type": "Static",
                "data_source_type_details": "One table, as it was when the release was made.",
                "access_type": "Non-interactive",
                "access_type_details": "Analysts work with the published file alone.",
            },
            "accounting": {
                "post_processing": "None before publication, but for what the mechanism states; whatever is "
                "computed from the release keeps its guarantee.",
                "composition": answers["composition"],
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Values are clamped to public bounds. "
                + _blank("any other preparation of the data, and how settings were chosen"),
                "mechanisms": " ".join(answers[key] for key in ("done", "floating_point", "timing", "code"))
                + ". "
                + _blank("access controls of the confidential data"),
                "justification": _blank("why these parameters and this mechanism"),
            },
            "administrative": {
                "sources": _blank("links"),
                "notes": "Drafted by dpmix card from the release file.",
                "registry_authors": [_blank("who fills in this record")],
            },
        },
    }


def blanks_of(tree: Any, path: str = "") -> list[str]:
    """Return the paths of all entries that are to be filled in."""
    if isinstance(tree, dict):
        return [
            found
            for key, value in tree.items()
            for found in blanks_of(value, f"{path}.{key}" if path else key)
        ]
    if isinstance(tree, list):
        return [found for i, value in enumerate(tree) for found in blanks_of(value, f"{path}[{i}]")]
    return [path] if isinstance(tree, str) and BLANK in tree else []


_TERMS = [
    "citeAs",
    "column",
    "extract",
    "field",
    "fileProperty",
    "fileObject",
    "fileSet",
    "format",
    "includes",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "parentField",
    "path",
    "recordSet",
    "references",
    "regex",
    "repeated",
    "replace",
    "separator",
    "source",
    "subField",
    "transform",
]
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    **{name: f"cr:{name}" for name in _TERMS},
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}


def croissant_of(release: Release, name: str, sha256: str, size: int) -> dict[str, Any]:
    """Return Croissant JSON-LD of a release.

    Parameters
    ----------
    release : Release
        Private.
    name : str
        Of its file.
    sha256 : str
        Of the file, in hexadecimal.
    size : int
        Of the file, bytes.
    """
    table = name.lower().endswith((".csv", ".csv.gz"))
    guarantee = release.guarantee_in_words()
    found: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": _blank("the name of the data set"),
        "description": f"{_done(release)} Guarantee: {guarantee}.",
        "url": _blank("where it is published"),
        "license": _blank("its licence"),
        "creator": {"@type": "sc:Organization", "name": _blank("who publishes it")},
        "datePublished": release.created_at[:10],
        "version": "1.0.0",
        "citeAs": _blank("how to cite it"),
        "isLiveDataset": False,
        "rai:personalSensitiveInformation": "Made from personal records under differential privacy: "
        f"{guarantee}. {_NEIGHBOURS[release.adjacency]}",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{size} B",
                "encodingFormat": "text/csv" if table else "application/x-hdf5",
                "sha256": sha256,
            }
        ],
        "variableMeasured": _variables(release),
    }
    if table:
        found["recordSet"] = [
            {"@type": "cr:RecordSet", "@id": "records", "name": "records", "field": _fields(release, name)}
        ]
    return found


def _variables(release: Release) -> list[dict[str, Any]]:
    bounds = release.mechanism.domain or ()
    found = []
    for i, column in enumerate(release.columns):
        labels = release.labels[i] if release.labels else None
        entry: dict[str, Any] = {"@type": "sc:PropertyValue", "name": column}
        if labels is not None:
            entry["description"] = f"one of {', '.join(labels)}"
        elif i < len(bounds):
            entry |= {"minValue": bounds[i][0], "maxValue": bounds[i][1]}
        if labels is None and unit_of(release.unit, column):
            entry["unitText"] = unit_of(release.unit, column)
        found.append(entry)
    return found


def _fields(release: Release, name: str) -> list[dict[str, Any]]:
    return [
        {
            "@type": "cr:Field",
            "@id": f"records/{column}",
            "name": column,
            "dataType": "sc:Text" if release.labels and release.labels[i] is not None else "sc:Float",
            "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
        }
        for i, column in enumerate(release.columns)
    ]
