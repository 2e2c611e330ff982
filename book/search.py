"""Search: one small index per language, and the script that looks through it (assets/search.js).

The index holds the text of every section. A book is small enough to be read through at each query, so a Chinese
word is found wherever its characters stand together: nothing needs to be segmented, neither page nor query.
Who types traditional characters (注意力權重) finds the simplified ones.
Sphinx's own search, which segments pages but not queries, is off.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import opencc
from sphinx.application import Sphinx
from sphinx.search.en import english_stopwords, js_porter_stemmer

from book.extension import language
from book.languages import pick
from book.said import parse, sections

INDEX = "search-index.js"
TEMPLATES = Path(__file__).parent / "templates"


def setup(app: Sphinx) -> None:
    """Connect to Sphinx; called by the book's extension."""
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _turn_off_sphinx_search)
    app.connect("html-collect-pages", _results_page)
    app.connect("build-finished", _write_index, priority=200)  # before the pages are made small


def index(pages: list[tuple[str, str]], lang: str) -> str:
    """The index as a script. `pages` are (address from the language's root, HTML)."""
    rows = []
    for address, page in pages:
        found = sections(parse(page))
        if found:
            rows.append([address, found[0].title, [list(section) for section in found]])
    common = sorted(english_stopwords) if lang == "en" else []
    data = {"pages": rows, "common": common, "simple": simplified(json.dumps(rows, ensure_ascii=False))}
    stemmer = f"MHA_SEARCH.Stemmer = (() => {{ {js_porter_stemmer} return Stemmer; }})();\n" if lang == "en" else ""
    return f"MHA_SEARCH = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))};\n{stemmer}"


def simplified(text: str) -> dict[str, str]:
    """For each character of the text the traditional ones that a reader may type for it: {"權": "权", …}."""
    table = Path(opencc.__file__).parent / "dictionary" / "TSCharacters.txt"
    lines = (line.split() for line in table.read_text(encoding="utf-8").splitlines())
    here = set(text)
    return {line[0]: line[1] for line in lines if len(line) > 1 and line[1] in here and line[0] not in here}


def _configure(app: Sphinx, config: Any) -> None:
    config.templates_path.append(str(TEMPLATES))
    config.html_use_index = False  # an index of defined words would be empty
    app.add_css_file("search.css")
    app.add_js_file("search.js", loading_method="defer")


def _turn_off_sphinx_search(app: Sphinx) -> None:
    if app.builder.name == "html":
        app.builder.search = False  # type: ignore[attr-defined]


def _results_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    if app.builder.name == "html":
        yield "search", {"title": pick("搜索 | Search", language(app.config))}, "search.html"


def _write_index(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    addresses = [app.builder.get_target_uri(name) for name in _reading_order(app)]
    pages = [(address, (out / address).read_text(encoding="utf-8")) for address in addresses]
    (out / INDEX).write_text(index(pages, language(app.config)), encoding="utf-8")


def _reading_order(app: Sphinx) -> list[str]:
    order = [app.config.root_doc, *app.env.toctree_includes.get(app.config.root_doc, [])]
    return [*order, *sorted(app.env.found_docs - set(order))]
