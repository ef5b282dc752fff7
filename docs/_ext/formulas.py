"""Formulas as MathML, which browsers draw themselves: the site needs neither network nor scripts for them."""

import re
from html import unescape

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

LONG = 36
"""Signs within a sentence that do not fit into a line of a telephone: such a formula may scroll."""


def _inline(translator, node):
    formula = convert(node.astext())
    signs = len(unescape(re.sub(r"<[^>]*>", "", formula)))
    translator.body.append(f'<span class="long-formula">{formula}</span>' if signs > LONG else formula)
    raise SkipNode


def _display(translator, node):
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>\n')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
