"""What a built page says, in plain characters: for the search index, descriptions and cards."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from lxml import html

from book.formulas import as_text

UNSAID = {"script", "style", "noscript", "nav", "svg", "button"}
UNREAD = {"headerlink", "mha-sliders", "mha-status", "mha-eqno"}  # furniture, by class
INLINE = {"a", "b", "code", "em", "i", "img", "kbd", "mark", "q", "s", "small", "span", "strong", "sub", "sup", "wbr"}
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


class Section(NamedTuple):
    """A section of a page without the sections inside it."""

    anchor: str
    title: str
    text: str


def parse(page: str) -> Any:
    """The page, or a fragment of one, as a tree."""
    return html.document_fromstring(page)


def sections(tree: Any) -> list[Section]:
    """The sections of a page in reading order."""
    found = []
    for section in tree.iter("section"):
        heading = next((child for child in section if child.tag in HEADINGS), None)
        if section.get("id") and heading is not None:
            said = "".join(_said(section, without=heading))
            found.append(Section(section.get("id"), plain(heading), _tidy(said)))
    return found


def plain(element: Any) -> str:
    """The text of one element, formulas included."""
    return _tidy("".join(_said(element)))


def _tidy(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _said(element: Any, without: Any = None) -> Iterator[str]:
    """Text piece by piece. What follows an element (`tail`) belongs to the one around it."""
    yield element.text or ""
    for child in element:
        skipped = child is without or (element.tag == "section" and child.tag == "section")
        if isinstance(child.tag, str) and not skipped:
            yield from _spoken(child)
        yield child.tail or ""


def _spoken(child: Any) -> Iterator[str]:
    classes = set((child.get("class") or "").split())
    if child.tag in UNSAID or classes & UNREAD:
        return
    if "katex" in classes:
        yield as_text(child.findtext(".//annotation") or "")
    elif child.tag == "img":
        yield f" {child.get('alt') or ''} "
    else:
        edge = "_" if child.tag == "sub" else "" if child.tag in INLINE else " "
        yield edge
        yield from _said(child)
        yield "" if child.tag == "sub" else edge
