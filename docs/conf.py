"""How Sphinx makes the site of dpmix: ``sphinx-build -W docs site``."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE / "_extensions"), str(_HERE.parent)]

from dpmix import __version__  # noqa: E402

project = "dpmix"
author = "The dpmix developers"
copyright = "The dpmix developers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated_reference"]
exclude_patterns = ["_extensions", "_build"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "dpmix"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"footer_icons": []}

# Formulas are plain text and blocks of code: nothing is fetched to show them, neither when the site is built
# nor when it is read.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # parts that scripts write begin at a level of their own
myst_links_external_new_tab = False

autodoc_typehints = "none"  # docstrings say them
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
nitpicky = False
smartquotes = False  # options begin with two dashes
pygments_style = "friendly"
pygments_dark_style = "monokai"
linkcheck_ignore = [".*"]  # no network
