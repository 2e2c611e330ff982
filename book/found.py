"""What lets a page be found and shared: description, card, canonical and hreflang addresses, structured data.

Addresses must be whole here, so all that need one appear only where the book's address is known (book/address.py).
"""

import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from book import cards, versions
from book.address import site_url
from book.extension import language
from book.languages import LANGUAGES, pick
from book.said import parse, plain

HREFLANG = {"zh": "zh-CN", "en": "en"}
LOCALE = {"zh": "zh_CN", "en": "en_US"}
LICENCE = "https://creativecommons.org/licenses/by/4.0/"
LONGEST = {"zh": 90, "en": 165}  # characters of a description that search engines show
END = {"zh": re.compile("[。？！][”’）]*"), "en": re.compile(r"[.?!][”’)]*(?= |$)")}  # of a sentence


def setup(app: Sphinx) -> None:
    """Connect to Sphinx; called by the book's extension."""
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _add_head, priority=700)  # the body is done
    app.connect("build-finished", _draw_icon, priority=200)


def description(question: str, opening: str, lang: str) -> str:
    """The chapter's question and what follows it, whole sentences, no longer than search engines show."""
    text, longest = (question + (" " if lang == "en" else "") + opening).strip(), LONGEST[lang]
    if len(text) <= longest:
        return text
    ends = [end.end() for end in END[lang].finditer(text) if end.end() <= longest]
    if ends and ends[-1] > longest / 3:
        return text[: ends[-1]]
    cut = text[:longest] if lang == "zh" else text[:longest].rpartition(" ")[0]
    return cut.rstrip("，、；：,;: ") + "…"


def opening(body: str) -> tuple[str, str]:
    """A page's question (its first quotation, or "") and its first paragraph of prose."""
    section = parse(body).find(".//section")
    if section is None:
        return "", ""
    quotation = next((child for child in section if child.tag == "blockquote"), None)
    paragraphs = (plain(child) for child in section.iter("p") if child.getparent().tag == "section")
    first = next((text for text in paragraphs if len(text) > 20 and text[-1] not in ":："), "")
    return plain(quotation) if quotation is not None else "", first


def head(page: dict[str, Any], lang: str, site: str | None) -> str:
    """The elements for <head>. `page` has name, title, book, author, description, position, cover."""
    lines = list(_names(page, lang))
    if site:
        lines += _addresses(page, lang, site)
    lines.append(f'<script type="application/ld+json">{structured(page, lang, site)}</script>')
    return "\n".join(lines)


def structured(page: dict[str, Any], lang: str, site: str | None) -> str:
    """What the page is, in schema.org's words, as JSON that may stand in a page."""
    book = {
        "@type": "Book",
        "name": page["book"],
        "inLanguage": HREFLANG[lang],
        "author": {"@type": "Organization", "name": page["author"]},
        "license": LICENCE,
    }
    thing = {
        "@context": "https://schema.org",
        "@type": ["Book", "LearningResource"] if page["cover"] else ["Chapter", "LearningResource"],
        "name": page["title"],
        "description": page["description"],
        "inLanguage": HREFLANG[lang],
        "license": LICENCE,
        "learningResourceType": pick("教材 | textbook", lang),
        "isAccessibleForFree": True,
        "version": versions.version(),
        "dateModified": versions.date().isoformat(),
    }
    if page["cover"]:
        thing["author"] = book["author"]
    else:
        thing |= {"position": page["position"], "isPartOf": book}
    if site:
        thing |= {"url": address(site, lang, page["name"]), "image": _card_address(site, lang, page["name"])}
        thing["workTranslation"] = [
            {"@type": thing["@type"], "inLanguage": HREFLANG[other], "url": address(site, other, page["name"])}
            for other in LANGUAGES
            if other != lang
        ]
        book["url"] = f"{site}{lang}/"
    return json.dumps(thing, ensure_ascii=False).replace("<", "\\u003c")


def address(site: str, lang: str, name: str) -> str:
    """The whole address of a page."""
    return f"{site}{lang}/{name}.html"


def meta(kind: str, name: str, content: str) -> str:
    """A <meta>; `kind` is "name" or "property"."""
    return f'<meta {kind}="{name}" content="{escape(content)}">'


def link(relation: str, there: str, language: str = "") -> str:
    """A <link> to a whole address, in `language` if that is said."""
    spoken = f' hreflang="{language}"' if language else ""
    return f'<link rel="{relation}"{spoken} href="{escape(there)}">'


def alternates(site: str, name: str, cover: bool) -> list[tuple[str, str]]:
    """(hreflang, address) of a page's languages; who reads neither gets the front door or the English page."""
    pairs = [(HREFLANG[lang], address(site, lang, name)) for lang in LANGUAGES]
    return [*pairs, ("x-default", site if cover else address(site, "en", name))]


def _configure(app: Sphinx, config: Any) -> None:
    site = site_url(Path(app.srcdir))
    config.html_baseurl = f"{site}{language(config)}/" if site else ""  # Sphinx makes the canonical address of it


def _add_head(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    if app.builder.name != "html" or pagename not in app.env.found_docs:
        return
    lang, site = language(app.config), site_url(Path(app.srcdir))
    question, first = opening(context["body"])
    order = app.env.toctree_includes.get(app.config.root_doc, [])
    page = {
        "name": pagename,
        "title": plain(parse(f"<p>{context['title']}</p>")),
        "book": app.config.html_title,
        "author": app.config.author,
        "description": description(question, first, lang),
        "cover": pagename == app.config.root_doc,
        "position": order.index(pagename) + 1 if pagename in order else len(order),
    }
    context["metatags"] += head(page, lang, site)
    if site:
        folder = Path(app.outdir) / "cards"
        folder.mkdir(exist_ok=True)
        drawn = cards.card(page["book"], page["title"], question or page["description"], lang, pagename)
        (folder / f"{_base(pagename)}.png").write_bytes(drawn)


def _draw_icon(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        (Path(app.outdir) / "_static" / "apple-touch-icon.png").write_bytes(cards.icon(180))


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _card_address(site: str, lang: str, name: str) -> str:
    return f"{site}{lang}/cards/{_base(name)}.png"


def _names(page: dict[str, Any], lang: str) -> Iterator[str]:
    yield meta("name", "description", page["description"])
    yield meta("property", "og:type", "book" if page["cover"] else "article")
    yield meta("property", "og:site_name", page["book"])
    yield meta("property", "og:title", page["title"])
    yield meta("property", "og:description", page["description"])
    yield meta("property", "og:locale", LOCALE[lang])
    for other in LANGUAGES:
        if other != lang:
            yield meta("property", "og:locale:alternate", LOCALE[other])


def _addresses(page: dict[str, Any], lang: str, site: str) -> Iterator[str]:
    for code, there in alternates(site, page["name"], page["cover"]):
        yield link("alternate", there, code)
    yield meta("property", "og:url", address(site, lang, page["name"]))
    yield meta("property", "og:image", _card_address(site, lang, page["name"]))
    yield meta("property", "og:image:type", "image/png")
    yield meta("property", "og:image:width", str(cards.SIZE[0]))
    yield meta("property", "og:image:height", str(cards.SIZE[1]))
    yield meta("property", "og:image:alt", page["book"] + pick("： | : ", lang) + page["title"])
    yield meta("name", "twitter:card", "summary_large_image")
