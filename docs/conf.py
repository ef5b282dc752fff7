"""The site: hand-written pages in Markdown, and pages that are made from the package itself."""

import re
import sys
from pathlib import Path

from sphinx.util.inspect import TypeAliasForwardRef

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
    "typography",
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
autodoc_default_options = {"members": True, "show-inheritance": True, "no-value": True}
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "NDArray": "NDArray"}
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # Sphinx writes an alias in a union by its repr
autodoc_preserve_defaults = True
copybutton_exclude = ".linenos, .gp, .go"

toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "private_rl_gym"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"


COLON = "\ue000"  # in place of a colon that napoleon would take for the end of a type


def setup(app):
    app.connect("autodoc-process-docstring", keep_colons, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", link_proofs, priority=600)


def keep_colons(_app, what, _name, _obj, _options, lines):
    """The first line of an attribute is a sentence, colons included."""
    if what in ("attribute", "data", "property") and lines:
        lines[0] = re.sub(r"(?<!:):(?!:)", COLON, lines[0])


def link_proofs(_app, _what, _name, _obj, _options, lines):
    """Colons come back, and files of proofs that docstrings name become links to their pages."""
    lines[:] = [line.replace(COLON, ":") for line in lines]
    lines[:] = [re.sub(r"(?<!`)docs/proofs/([a-z-]+)\.md", r":doc:`\1 </proofs/\1>`", line) for line in lines]
