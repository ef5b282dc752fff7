"""Formulas as MathML, which browsers draw without a network and without scripts."""

import re
from html import unescape

from docutils import nodes
from docutils.nodes import SkipNode
from latex2mathml.converter import convert

LONG = 36
"""The length in characters above which an inline formula may scroll on a narrow screen."""

AFTER = re.compile(r"[.,;:)\]]+|-[A-Za-z]+[.,;:)]*")
"""Text that stays with the formula before it: punctuation, and the rest of a word."""

TAG = re.compile(r"\s*\\tag\{([^}]*)\}\s*$")
"""The number of an equation."""


def _inline(translator, node):
    formula = convert(node.astext())
    signs = len(unescape(re.sub(r"<[^>]*>", "", formula)))
    if signs > LONG:
        formula = f'<span class="long-formula">{formula}</span>{node.get("after", "")}'
    elif "after" in node:
        formula = f'<span class="whole">{formula}{node["after"]}</span>'
    translator.body.append(formula)
    raise SkipNode


def _display(translator, node):
    text = node.astext()
    tag = TAG.search(text)
    number = "" if tag is None else f'<span class="number">({tag[1]})</span>'
    formula = convert(text if tag is None else text[: tag.start()], display="block")
    translator.body.append(f'<div class="formula">{formula}{number}</div>\n')
    raise SkipNode


def keep_punctuation(_app, doctree, _page):
    """Keep punctuation on the line of the formula before it."""
    for node in doctree.findall(nodes.math):
        beside = node.next_node(descend=False, siblings=True)
        found = AFTER.match(beside) if isinstance(beside, nodes.Text) else None
        if found is not None:
            node["after"] = found[0]
            beside.parent.replace(beside, nodes.Text(beside[found.end() :]))


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.connect("doctree-resolved", keep_punctuation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
