"""Line breaks: numbers stay with their signs, and long names may break.

Long names in code break after a separator.
"""

import re

from docutils import nodes

SPACE, HYPHEN = "\u00a0", "\u2011"
RULES = (
    (re.compile(r"(?<=\d) (?=%)"), SPACE),
    (re.compile(r"(?<=\w) = (?=[\d-])"), f"{SPACE}={SPACE}"),
    (re.compile(r"(?<=\d)e-(?=\d)"), f"e{HYPHEN}"),
    (re.compile(r" ?\+/- (?=\d)"), f"{SPACE}±{SPACE}"),
)


def keep_together(_app, doctree, _page):
    """Replace breaking spaces and hyphens in prose, but not in code."""
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.math | nodes.math_block | nodes.raw):
            continue
        new = str(text)
        for pattern, with_this in RULES:
            new = pattern.sub(with_this, new)
        if new != text:
            text.parent.replace(text, nodes.Text(new))


def break_names(_app, _page, _template, context, _doctree):
    """Allow long names in code to break after a separator."""
    long = re.compile(r'(?<=<span class="pre">)[^<]{16,}(?=</span>)')
    context["body"] = long.sub(
        lambda name: re.sub(r"(?<=[\w)\]])([./_=(:]+)(?=\w)", r"\1<wbr>", name[0]), context.get("body", "")
    )


def setup(app):
    app.connect("html-page-context", break_names)
    app.connect("doctree-resolved", keep_together)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
