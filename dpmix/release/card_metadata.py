"""What an office publishes beside a release: all that is known of how it was made, and blanks for policy.

A card has the questions that the checklist of NIST SP 800-226 asks and, under ``registry``, a record of the
third tier of the Differential Privacy Deployments Registry (its schema of 2026). Croissant is the JSON-LD
vocabulary of data sets of MLCommons (version 1.0). Nothing but the release is read.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dpmix.columns.cells import bounds_in_words, column_in_words
from dpmix.columns.column_units import stated_unit
from dpmix.laws.synthetic import digits_of
from dpmix.numerics.in_words import neighbours_in_words
from dpmix.release.sanitized import public_columns

if TYPE_CHECKING:
    from dpmix.laws.every import Law
    from dpmix.release.sanitized import Release

BLANK = "TO BE FILLED IN"
"""How every blank begins: what no file knows, since it is policy."""

_NEIGHBOURS = {
    "replacement": "Two tables of the same number of records, which is public, that differ in one record.",
    "replacement, public parts": "Two tables that differ in one record, which stays in its part of the "
    "table; the sizes of the parts are public.",
    "replacement, private groups": "Two tables of the same number of records, which is public, that differ "
    "in one record, its group included; the sizes of the groups are not published.",
}


_OF_GROUPS = " The record may change its group within its part; the sizes of the groups are not published."


def _neighbouring_tables(release: Release) -> str:
    """Say which tables are neighbours; private groups within a public part say so besides."""
    within = release.groups and release.adjacency == "replacement, public parts"
    return _NEIGHBOURS[release.adjacency] + (_OF_GROUPS if within else "")


def _blank(what: str) -> str:
    return f"{BLANK}: {what}"


def card_of(release: Release, name: str) -> dict[str, Any]:
    """Return the card of a private release, whose file has this name, as a tree for YAML."""
    answers = _answers(release)
    return {
        "release": {
            "file": name,
            "columns": [column["name"] for column in public_columns(release)],
            **stated_unit(release.unit),
            "records": release.n,
            "created_at": release.created_at,
            "simulated": release.simulated,
            "done": answers["done"],
        },
        "privacy": {
            "unit": answers["unit"],
            "neighbouring_relation": release.adjacency,
            "neighbouring_tables": _neighbouring_tables(release),
            "notion": _variant(release),
            "parameters": _parameters(release),
            "proved": answers["proved"],
            "trust_model": answers["trust"],
            "unprotected": answers["unprotected"],
            **({"cautions": list(release.cautions)} if release.cautions else {}),
            "composition": answers["composition"],
            "mechanism": _with_dates(release),
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
    if law.elsewhere:
        floats = timing = randomness = (
            "Not known: the noise was drawn by another program, as the spec stated."
        )
        code = _blank("the program that drew the noise, and its version")
    else:
        floats = _floating_point(law)
        timing = (
            "The release is made once, by the curator, and not interactively: nobody else sees how long it "
            "took. The samplers themselves do not run in constant time."
        )
        randomness = "The operating system's generator; no seed."
        if law.origin is not None:
            randomness = f"That of the release: {randomness} The records are drawn from the fit by a seed."
        code = f"dpmix {release.dpmix_version}{', noise by opendp 0.16' if (law.origin or law).scale else ''}"
    ledger = {
        "entered": "The release is entered in the curator's ledger, which adds up all releases of the table, "
        "and keeps to their budget where one is set.",
        "bypassed": "A ledger was named for the table, and this release was made past it on request.",
        None: "No ledger was named: what other releases of the same table cost is not known here.",
    }[release.ledger]
    return {
        "unit": "One record of the table; "
        + _blank("what a record is (a person, a household, a visit), and how many one person may have"),
        "proved": {True: "yes", False: f"no: {law.unproved}", None: "not recorded"}[release.proved],
        "trust": _trust(release),
        "unprotected": _unprotected(release),
        "composition": "Within the release the columns, counts or coefficients of a record are accounted for "
        f"together; the parameters are of the release as a whole. {ledger}",
        "floating_point": floats,
        "timing": timing,
        "randomness": randomness,
        "code": code,
        "done": _done(release),
    }


def _unprotected(release: Release) -> str:
    """Say what is public, and what is published as it is."""
    columns = public_columns(release)
    public = [f"the number of records ({release.n:,})", "the names of columns"]
    bounded = [column["name"] for column in columns if "domain" in column]
    listed = [column["name"] for column in columns if "categories" in column] + list(release.groups)
    public += [f"the bounds of {', '.join(bounded)}"] if bounded else []
    public += [f"the categories of {', '.join(listed)}"] if listed else []
    found = f"Public, and not protected: {'; '.join(public)}."
    if release.order == "public":
        found += " The order of the rows is stated to be public."
    if release.adjacency == "replacement, public parts":
        found += " The size of the part."
    return " ".join([found, *_sentences(release)])


def _sentences(release: Release) -> list[str]:
    return [f"Note: {text}." for text in release.cautions]


def _floating_point(law: Law) -> str:
    """Say how what the guarantee rests on was drawn: noise on a grid, or draws by whole numbers."""
    source, grid = law.origin or law, law.get("granularity")
    if source.scale:
        found = "Noise is drawn by OpenDP's exact samplers on a grid"
        found += f" of {_powers(grid)}, which the guarantee accounts for." if grid else "."
    else:
        found = (
            "What the guarantee rests on is drawn by comparing whole numbers with random bits, so that no "
            "floating-point rounding enters."
        )
    if law.origin is not None:
        found = f"Of the release behind the fit: {found} The records are drawn from the fit in floating"
        return f"{found} point, which the guarantee does not rest on."
    if law.released == "synthetic":
        found += (
            " What is drawn without looking at the records, such as numbers within a cell, is drawn in "
            "floating point."
        )
    return found


def _domain(release: Release) -> str:
    """Say of which tables the release is one, by what is public of their columns."""
    columns = public_columns(release)
    words = [column_in_words(column) for column in columns]
    words += [f"{name} ({', '.join(names)})" for name, names in release.groups.items()]
    found = f"Tables of {release.n:,} records: {'; '.join(words)}."
    other = [column["name"] for column in columns if not {"domain", "categories"} & set(column)]
    return f"{found} No bounds or categories of {', '.join(other)} are stated." if other else found


def _prepared(release: Release) -> str:
    """Say what was done to values before, as far as a release tells; empty where nothing was."""
    if release.mechanism.elsewhere:
        return ""
    columns = public_columns(release)
    bounded = [column["name"] for column in columns if "domain" in column]
    found = (
        f"Values of {', '.join(bounded)} beyond their public bounds are clamped to them. " if bounded else ""
    )
    synthetic = release.mechanism.released == "synthetic" and release.mechanism.origin is None
    for column in columns if synthetic else ():  # others are of values as they are
        digits = digits_of(column.get("type"))
        if digits is not None:
            whole = "whole days" if column.get("date") else "whole numbers"
            what = f"{digits} digits after the decimal point" if digits else whole
            found += f"Values of {column['name']} are rounded to {what}. "
    return found


def _with_dates(release: Release) -> dict[str, Any]:
    """Return what the mechanism states, with bounds of columns of dates as dates."""
    columns = public_columns(release)

    def dated(stated: dict[str, Any]) -> dict[str, Any]:
        found = dict(stated)
        for key in ("domain", "bounds"):
            if len(found.get(key) or ()) == len(columns):
                pairs = zip(columns, found[key], strict=True)
                found[key] = [_ends({**column, "domain": pair}) for column, pair in pairs]
        if release.mechanism.released == "synthetic" and "columns" in found:
            own = found["columns"]
            found["columns"] = [{**c, "domain": _ends(c)} if "domain" in c else c for c in own]
            if found.get("snap"):
                pairs = zip(columns, found["snap"], strict=True)
                found["snap"] = [g and {**g, "domain": _ends({**c, "domain": g["domain"]})} for c, g in pairs]
        if isinstance(found.get("source"), dict):
            found["source"] = dated(found["source"])
        return found

    return dated(release.mechanism.stated())


def _ends(column: dict[str, Any]) -> list[Any]:
    return list(bounds_in_words(column) if column.get("date") else column["domain"])


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
    done, tally = release.done(), release.tally
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
            (
                "Why are they small enough?",
                " ".join([*_sentences(release), _blank("who chose them, and why")]),
            ),
            ("What is the unit of privacy?", answers["unit"]),
            ("Which tables are neighbours?", _neighbouring_tables(release)),
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
    local, names = release.trust == "local", [column["name"] for column in public_columns(release)]
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", "-".join(names).lower()).strip("-")[:60] or "release",
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
                "description": f"{answers['done']} Columns: {', '.join(names)}.",
                "publication_date": release.created_at[:10],
            },
            "dp_variant": {
                "variant_name": _variant(release),
                "data_domain": _domain(release),
                "unprotected_quantities": answers["unprotected"],
            },
            "privacy_loss": {
                "privacy_unit": answers["unit"],
                "privacy_unit_details": f"{_neighbouring_tables(release)} (Neighbours differ by "
                f"{neighbours_in_words(release.adjacency, grouped=bool(release.groups))}.)",
                "privacy_parameters": _parameters(release),
                "privacy_parameters_details": " ".join(
                    [f"Proved: {answers['proved']}.", *_sentences(release)]
                ),
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
                "preprocessing_and_hyperparameter_tuning": _prepared(release)
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
    """Return Croissant JSON-LD of a private release, of whose file these are name, digest and bytes."""
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
        + " ".join([f"{guarantee}.", _neighbouring_tables(release), *_sentences(release)]),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": _id(name),
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
    law, found = release.mechanism, []
    beyond = law.origin is not None  # a model may go on beyond the bounds
    for column in public_columns(release):
        entry: dict[str, Any] = {"@type": "sc:PropertyValue", "name": column["name"]}
        if "categories" in column:
            entry["description"] = f"one of {', '.join(column['categories'])}"
        elif "domain" in column and (beyond or column.get("date")):
            what, ends = "dates from" if column.get("date") else "from", bounds_in_words(column)
            of = " in the confidential records" if beyond else ""
            entry["description"] = f"{what} {' to '.join(ends)}{of}"
        elif "domain" in column:
            entry |= dict(zip(("minValue", "maxValue"), column["domain"], strict=True))
        if "unit" in column:
            entry["unitText"] = column["unit"]
        found.append(entry)
    for name, names in release.groups.items():
        found.append({"@type": "sc:PropertyValue", "name": name, "description": f"one of {', '.join(names)}"})
    return found


def _fields(release: Release, name: str) -> list[dict[str, Any]]:
    return [
        {
            "@type": "cr:Field",
            "@id": f"records/{_id(column['name'])}",
            "name": column["name"],
            "dataType": _type(column, labels),
            "source": {"fileObject": {"@id": _id(name)}, "extract": {"column": column["name"]}},
        }
        for column, labels in zip(
            public_columns(release), release.labels or (None,) * len(release.columns), strict=True
        )
    ]


def _id(name: str) -> str:
    """Return a name as an identifier, in which Croissant takes no white space."""
    return re.sub(r"[\s%]", lambda found: quote(found[0]), name)


def _type(column: dict[str, Any], labels: tuple[str, ...] | None) -> str:
    if labels is not None:
        return "sc:Text"
    if column.get("date"):
        return "sc:Date"
    return "sc:Integer" if digits_of(column.get("type")) == 0 else "sc:Float"
