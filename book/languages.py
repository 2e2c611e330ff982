"""One notebook holds both languages; `select` makes the one a reader sees."""

import copy
from typing import Any

LANGUAGES = ("zh", "en")
SPHINX = {"zh": "zh_CN", "en": "en"}  # the languages as Sphinx calls them


def tags(cell: Any) -> list[str]:
    """The cell's tags, none if it has none."""
    return list(cell.get("metadata", {}).get("tags", []))


def language_of(cell: Any) -> str | None:
    """`zh` or `en` for a Markdown cell in one language, None for a cell that both share."""
    return next((tag for tag in tags(cell) if tag in LANGUAGES), None)


def select(notebook: Any, lang: str) -> Any:
    """A copy of the notebook without the cells of the other language. ValueError for an unknown language.

    Entries of the API page (`book.api`) are filled in.
    """
    if lang not in LANGUAGES:
        raise ValueError(f"lang must be one of {', '.join(LANGUAGES)}, got {lang!r}")
    chosen = copy.deepcopy(notebook)
    chosen["cells"] = [cell for cell in chosen["cells"] if language_of(cell) in (None, lang)]
    for cell in chosen["cells"]:
        if cell["cell_type"] == "markdown" and "```{mha}" in cell["source"]:
            from book import api  # only the API page needs the package itself

            cell["source"] = api.expand(cell["source"], lang)
    return chosen


def pick(text: str, lang: str) -> str:
    """One half of "中文 | English", as _config.yml and _toc.yml write titles; text without " | " is for both.

    >>> pick("各章 | Chapters", "en")
    'Chapters'
    """
    halves = text.split(" | ")
    return halves[LANGUAGES.index(lang)] if len(halves) == len(LANGUAGES) else text
