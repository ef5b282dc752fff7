"""The site: hand-written pages in Markdown, and pages that are made from the package itself."""

import re
import sys
from pathlib import Path

import private_rl_gym

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "private_rl_gym"
author = "The private_rl_gym developers"
copyright = author
release = version = private_rl_gym.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "formulas",
    "sphinx_copybutton",
    "environment_pages",
    "boundary_pages",
    "paper_pages",
]
exclude_patterns = ["_build", "environments/gallery.md"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "show-inheritance": True}
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = "private_rl_gym"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"


def setup(app):
    app.connect("autodoc-process-docstring", link_proofs)


def link_proofs(_app, _what, _name, _obj, _options, lines):
    """Files of proofs that docstrings name become links to their pages."""
    lines[:] = [re.sub(r"(?<!`)docs/proofs/([a-z-]+)\.md", r":doc:`\1 </proofs/\1>`", line) for line in lines]
