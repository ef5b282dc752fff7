"""Formulas as MathML, which browsers draw themselves: the site needs neither network nor scripts for them."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def _inline(translator, node):
    translator.body.append(convert(node.astext()))
    raise SkipNode


def _display(translator, node):
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>\n')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
