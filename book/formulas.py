"""Formulas typeset while the book is built, by KaTeX: a page needs no script for them.

The letters Q, K, V and O carry their colours by themselves. `as_text` says a formula in plain characters,
for search, titles and descriptions.
"""

import functools
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

LETTER = re.compile(r'<span class="mord mathnormal( mtight)?"( style="[^"]*")?>([QKVO])</span>')
CLOSING = set("，。；：、！？）”’》,.;:!?)]")
SHORT = 24  # characters to be seen: longer formulas may break inside instead
SIGNS = {
    "cdot": "·", "times": "×", "infty": "∞", "sum": "∑", "le": "≤", "ge": "≥", "ne": "≠", "dots": "…", "cdots": "⋯",
    "top": "ᵀ", "to": "→", "rightarrow": "→", "downarrow": "↓", "left": "", "right": "", "bigl": "", "bigr": "",
    "quad": " ", "qquad": " ", ",": " ", ";": " ", "\\": " ", "!": "", "|": "‖",
}  # fmt: skip
PIECES = (  # from the inside out, until nothing changes
    (re.compile(r"\\(?:begin|end|label)\{[^{}]*\}"), " "),
    (re.compile(r"\\xrightarrow\{[^{}]*\}"), "→"),
    (re.compile(r"\\underset\{([^{}]*)\}\{([^{}]*)\}"), r"\2 \1"),
    (re.compile(r"\\[td]?frac\{([^{}]*)\}\{([^{}]*)\}"), r"\1/\2"),
    (re.compile(r"\\sqrt(?:\{(\w+)\}| (\w))"), r"√\1\2"),
    (re.compile(r"\\sqrt\{([^{}]*)\}"), r"√(\1)"),
    (re.compile(r"\\(?:text|math[a-z]+|operatorname|underbrace)\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\^(?:\\top(?![a-z])|\{\\top\})"), "ᵀ"),
    (re.compile(r"([_^])\{(\w+|[(\[][^{}]*[)\]])\}"), r"\1\2"),
    (re.compile(r"([_^])\{([^{}]*)\}"), r"\1(\2)"),
    (re.compile(r"(?<![A-Za-z}_^])\{([^{}]*)\}"), r"\1"),
)
logger = logging.getLogger(__name__)


def as_text(tex: str) -> str:
    r"""The formula in plain characters, as a reader would type it.

    >>> as_text(r"S = \frac{Q K^\top}{\sqrt{d_k}},\; d_\text{model}")
    'S = Q Kᵀ/√d_k, d_model'
    """
    before, text = "", tex.replace("&", " ")
    while text != before:
        before = text
        for pattern, replacement in PIECES:
            text = pattern.sub(replacement, text)
    return " ".join(re.sub(r"\\([A-Za-z]+|.)", _sign, text).split())


def _sign(command: re.Match[str]) -> str:
    name = command[1]
    try:
        return SIGNS[name] if name in SIGNS else unicodedata.lookup(f"GREEK SMALL LETTER {name}")
    except KeyError:
        return name  # \\log, \\cos: their own words


@functools.cache
def _katex() -> MiniRacer:
    engine = MiniRacer()
    engine.eval((Path(__file__).parent / "katex" / "katex.min.js").read_text(encoding="utf-8"))
    return engine


@functools.cache
def typeset(tex: str, display: bool) -> str:
    """The formula as HTML (with MathML for screen readers). ValueError where TeX has a mistake."""
    options = {"displayMode": display, "throwOnError": True, "strict": "error", "output": "htmlAndMathml"}
    try:
        page = _katex().eval(f"katex.renderToString({json.dumps(tex)}, {json.dumps(options)})")
    except JSEvalException as error:
        raise ValueError(str(error).strip().splitlines()[0]) from None
    return LETTER.sub(r'<span class="mord mathnormal\1 mha-letter-\3"\2>\3</span>', str(page))


def keep_punctuation(doctree: nodes.document) -> None:
    """Tie the punctuation after a short inline formula to it: no line may start with a comma."""
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(siblings=True, descend=False)
        if isinstance(after, nodes.Text) and after[:1] in CLOSING and len(as_text(formula.astext())) <= SHORT:
            marks = len(after) - len(after.lstrip("".join(CLOSING)))
            formula["after"] = after[:marks]
            place = formula.parent.index(formula) + 1  # by place: a paragraph may hold the same text twice
            formula.parent[place] = nodes.Text(after[marks:])


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write one inline formula into the page, with the punctuation that belongs to it."""
    page = _checked(node, display=False)
    translator.body.append(f'<span class="mha-tied">{page}{node["after"]}</span>' if node.get("after") else page)
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write one displayed formula, with its number if it has a label."""
    anchor = f' id="{node["ids"][0]}"' if node["ids"] else ""
    number = f'<span class="mha-eqno">({get_node_equation_number(translator, node)})</span>' if node["number"] else ""
    translator.body.append(f'<div class="mha-formula"{anchor}>{_checked(node, display=True)}{number}</div>')
    raise nodes.SkipNode


def _checked(node: Any, *, display: bool) -> str:
    try:
        return typeset(node.astext(), display)
    except ValueError as error:
        logger.warning("formula: %s in %s", error, node.astext(), location=node)
        return f"<code>{node.astext()}</code>"
