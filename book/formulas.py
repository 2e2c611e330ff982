"""Formulas typeset while the book is built, by KaTeX: a page needs no script for them.

The letters Q, K, V and O carry their colours by themselves.
"""

import functools
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.util import logging

LETTER = re.compile(r'<span class="mord mathnormal( mtight)?"( style="[^"]*")?>([QKVO])</span>')
OPENING, CLOSING = set("（“‘《([{"), set("，。；：、！？）”’》,.;:!?)]}")
logger = logging.getLogger(__name__)


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


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write one inline formula into the page."""
    before, after = _beside(node)
    glue = "\N{WORD JOINER}"  # a browser may break a line beside any formula, even before a full stop
    left, right = (glue if before in OPENING else ""), (glue if after in CLOSING else "")
    translator.body.append(left + _checked(node, display=False) + right)
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write one displayed formula, with its number if it has a label."""
    anchor = f' id="{node["ids"][0]}"' if node["ids"] else ""
    number = f'<span class="mha-eqno">({node["number"]})</span>' if node["number"] else ""
    translator.body.append(f'<div class="mha-formula"{anchor}>{_checked(node, display=True)}{number}</div>')
    raise nodes.SkipNode


def _beside(node: nodes.math) -> tuple[str, str]:
    """The characters before and after an inline formula, "" at an end."""
    at = node.parent.index(node)
    before = node.parent[at - 1].astext()[-1:] if at else ""
    after = node.parent[at + 1].astext()[:1] if at + 1 < len(node.parent) else ""
    return before, after


def _checked(node: Any, *, display: bool) -> str:
    try:
        return typeset(node.astext(), display)
    except ValueError as error:
        logger.warning("formula: %s in %s", error, node.astext(), location=node)
        return f"<code>{node.astext()}</code>"
