"""The same anchors in both languages, so that the language switch keeps the reader's place.

A section is called by its label if it has one, else by its English heading: on the Chinese page, too.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from book.formulas import as_text
from book.languages import select

FENCE = re.compile(r"^(`{3,}|~{3,}|:{3,}).*?^\1\s*$", re.S | re.M)
HEADING = re.compile(r"^#{1,6} (.+)$", re.M)


def anchors(notebook: Any) -> list[str]:
    """One anchor for each heading of a chapter, in order, none twice."""
    found: list[str] = []
    for cell in select(notebook, "en")["cells"]:
        if cell["cell_type"] == "markdown":
            for heading in HEADING.findall(FENCE.sub("", cell["source"])):
                said = re.sub(r"\$([^$]+)\$", lambda formula: as_text(formula[1]), heading)
                name = nodes.make_id(said) or "section"
                number = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", other) is not None for other in found)
                found.append(f"{name}-{number + 1}" if number else name)
    return found


def settle(_app: Sphinx, document: nodes.document) -> None:
    """Give the sections of a page that was read their anchors, before anybody notes the old ones."""
    names = document.settings.env.temp_data.get("book_anchors", [])
    sections = list(document.findall(nodes.section))
    if len(names) != len(sections):
        return  # not a chapter; that the two languages agree is tested on the site
    for section, name in zip(sections, names, strict=True):
        labels = [document.nameids[label] for label in section["names"] if document.nametypes.get(label)]
        for old in section["ids"]:
            document.ids.pop(old, None)
        section["ids"] = labels or [name]
        for new in section["ids"]:
            document.ids[new] = section
        for title in section["names"]:
            document.nameids[title] = document.nameids[title] if document.nametypes.get(title) else section["ids"][0]
