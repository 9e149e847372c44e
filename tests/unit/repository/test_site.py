"""The documents as a site, built without warnings and a network; what is made of the code is there."""

from __future__ import annotations

import html
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmix.cli import commands
from dpmix.spec.schema import schema
from tests.helpers.specs import ROOT

sphinx = pytest.importorskip("sphinx")
pytest.importorskip("myst_parser")
pytest.importorskip("furo")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build the site with warnings as errors, where no connection can be made."""
    from sphinx.cmd.build import build_main

    target = tmp_path_factory.mktemp("site")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("building the site asked for the network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        log = target / "warnings.txt"
        arguments = ["-q", "-W", "--keep-going", "-w", log, "-b", "html", "-d", target / "trees"]
        code = build_main([*map(str, arguments), str(ROOT / "docs"), str(target / "html")])
    assert code == 0, log.read_text()
    yield target / "html"


def words(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


@pytest.mark.filterwarnings("ignore")  # Sphinx and its extensions answer for theirs by -W
def test_site_is_built_offline_with_index_and_search(site):
    pages = {str(page.relative_to(site)) for page in site.rglob("*.html")}
    wanted = {
        "index.html",
        "search.html",
        "genindex.html",
        "privacy.html",
        "methods.html",
        "tutorials/own-csv.html",
    }
    assert wanted <= pages
    index = (site / "searchindex.js").read_text()
    assert all(word in index for word in ("epsilon", "privatize", "contraction"))


@pytest.mark.filterwarnings("ignore")
def test_pages_fetch_nothing_when_they_are_read(site):
    """Formulas are text, fonts and scripts files of the site; addresses stand in links alone."""
    for page in site.rglob("*.html"):
        text = page.read_text()
        fetched = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(https?:)?//[^\"]*\"", text)
        fetched += re.findall(
            r"<link\b[^>]*rel=\"(?:stylesheet|preload|icon)\"[^>]*href=\"(?:https?:)?//[^\"]*\"", text
        )
        assert fetched == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import ['\"]?http", sheet.read_text()), sheet.name


@pytest.mark.filterwarnings("ignore")
def test_every_command_and_option_is_in_the_reference(site):
    import typer

    text = words(site / "reference" / "commands.html")
    for name, command in typer.main.get_command(commands.app).commands.items():
        assert f"dpmix {name}" in text
        for parameter in getattr(command, "params", ()):
            if parameter.param_type_name == "option" and not getattr(parameter, "hidden", False):
                assert all(option in text for option in parameter.opts if option not in ("--help", "-h"))
    assert "dpmix ledger budget" in text


@pytest.mark.filterwarnings("ignore")
def test_every_key_of_the_spec_is_in_the_reference(site):
    text = (site / "reference" / "spec.html").read_text()
    keys = set()
    for definition in schema()["$defs"].values():
        keys |= set(definition.get("properties", {})) - {"kind", "kernel"}
    assert len(keys) > 80
    missing = {key for key in keys if f'<span class="pre">{key}</span></code>' not in text}
    assert missing == set()


@pytest.mark.filterwarnings("ignore")
def test_links_lead_to_pages_and_places_that_are_there(site):
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', page.read_text())) for page in site.rglob("*.html")}
    for page, own in anchors.items():
        body = re.search(r"<article.*?</article>", page.read_text(), re.DOTALL)
        for target in re.findall(r'href="([^"]+)"', body.group(0) if body else ""):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, place = html.unescape(target).partition("#")
            other = (page.parent / name).resolve() if name else page
            assert other.exists(), f"{page.name}: {target}"
            if place and other.suffix == ".html":
                assert place in (own if other == page else anchors[other]), f"{page.name}: {target}"
