"""The EPUB 3: one XHTML file a chapter, formulas as MathML, figures as PNG."""

import datetime
import html
import io
import re
import uuid
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from PIL import Image

from book.languages import SPHINX, pick
from book.paper.archive import add
from book.paper.pages import Book, Chapter, anchor, restore, sections

HERE = Path(__file__).parent
MATHML = "http://www.w3.org/1998/Math/MathML"
TOKENS = ("mi", "mo", "mn", "mtext")  # what holds characters, never other elements
LETTERS = ("Q", "K", "V", "O")  # they carry their colours in formulas
ElementTree.register_namespace("", MATHML)
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
  <rootfiles><rootfile full-path="EPUB/package.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" xml:lang="{lang}" lang="{lang}">
<head><meta charset="utf-8"/><title>{title}</title><link rel="stylesheet" href="style.css"/></head>
<body{kind}>
{body}
</body>
</html>
"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="{lang}">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
  <dc:identifier id="id">{identifier}</dc:identifier>
  <dc:title>{title}</dc:title>
  <dc:language>{lang}</dc:language>
  <dc:creator>{author}</dc:creator>
  <dc:date>{date}</dc:date>
  <dc:rights>{rights}</dc:rights>
  <meta property="dcterms:modified">{date}T00:00:00Z</meta>
  <link rel="dcterms:license" href="https://creativecommons.org/licenses/by/4.0/"/>
  <meta property="schema:accessMode">textual</meta>
  <meta property="schema:accessMode">visual</meta>
  <meta property="schema:accessModeSufficient">textual</meta>
  <meta property="schema:accessibilityFeature">alternativeText</meta>
  <meta property="schema:accessibilityFeature">MathML</meta>
  <meta property="schema:accessibilityFeature">readingOrder</meta>
  <meta property="schema:accessibilityFeature">structuralNavigation</meta>
  <meta property="schema:accessibilityFeature">tableOfContents</meta>
  <meta property="schema:accessibilityHazard">none</meta>
  <meta property="schema:accessibilitySummary">{summary}</meta>
  <meta name="cover" content="cover-image"/>
</metadata>
<manifest>
  <item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
  <item id="style" href="style.css" media-type="text/css"/>
  <item id="cover-image" href="cover.png" media-type="image/png" properties="cover-image"/>
  <item id="cover" href="cover-page.xhtml" media-type="application/xhtml+xml"/>
{items}
</manifest>
<spine>
  <itemref idref="cover"/>
  <itemref idref="nav"/>
{spine}
</spine>
</package>
"""
SUMMARY = (
    "每幅图都有文字说明，公式是 MathML，标题和目录可供跳转。 | "
    "Every figure has a description, formulas are MathML, headings and contents can be navigated."
)
RIGHTS = "文字与图 CC BY 4.0，代码 MIT | Text and figures CC BY 4.0, code MIT"


def write(book: Book, target: Path, cover: bytes, day: datetime.date) -> int:
    """Write the book, which this changes, to `target`; `cover` is a PNG. The number of pictures."""
    lang = SPHINX[book.lang].replace("_", "-")
    pictures: dict[str, bytes] = {}
    pages = {f"EPUB/{c.name}.xhtml": _page(c, lang, pictures) for c in book.chapters}
    with zipfile.ZipFile(target, "w") as archive:
        add(archive, "mimetype", b"application/epub+zip", day, stored=True)
        add(archive, "META-INF/container.xml", CONTAINER, day)
        add(archive, "EPUB/package.opf", _package(book, lang, pages, pictures, day), day)
        add(archive, "EPUB/nav.xhtml", _nav(book, lang), day)
        add(archive, "EPUB/style.css", (HERE / "epub.css").read_text(encoding="utf-8"), day)
        add(archive, "EPUB/cover.png", cover, day, stored=True)
        alt = html.escape(book.full_title, quote=True)
        body = f'<section class="cover" epub:type="cover"><img src="cover.png" alt="{alt}"/></section>'
        add(archive, "EPUB/cover-page.xhtml", _wrap(lang, book.full_title, body), day)
        for name, page in pages.items():
            add(archive, name, page, day)
        for name, data in sorted(pictures.items()):
            add(archive, f"EPUB/{name}", data, day, stored=True)
    return len(pictures)


def _wrap(lang: str, title: str, body: str, kind: str = "") -> str:
    return PAGE.format(lang=lang, title=html.escape(title), body=body, kind=f' epub:type="{kind}"' if kind else "")


def _page(chapter: Chapter, lang: str, pictures: dict[str, bytes]) -> str:
    body = chapter.body
    for place in body.select(".mha-at"):
        outer = place.parent
        place.decompose()
        if outer is not None and "mha-back" in outer.get_attribute_list("class") and not outer.contents:
            outer.decompose()
    for link in body.select("a[href^='#']"):
        link["href"] = _way(str(link["href"])[1:], chapter.name)
    for image in body.select("img"):
        image["src"] = _picture(str(image["src"]), pictures)
    for drawing in body.select("svg"):
        drawing["xmlns"] = "http://www.w3.org/2000/svg"
    for tag in body.select("[role=list], [role=doc-biblioentry]"):  # allowed on lists and their items only
        del tag["role"]
    kind = "bodymatter" if chapter.title[:1].isdigit() else "frontmatter" if chapter.name == "cover" else "backmatter"
    return _wrap(lang, chapter.title, restore(body.decode(formatter="minimal"), _mathml), kind)


def _way(target: str, here: str) -> str:
    name = target.removeprefix("c-").split("--")[0]
    return f"#{target}" if name == here else f"{name}.xhtml#{target}"


def _mathml(whole: str, tex: str) -> str:
    """The formula's MathML without the TeX beside it, which some readers would show as text."""
    found = re.search(r"<math.*</math>", whole, re.S)
    if found is None:
        raise ValueError(f"a formula without MathML: {tex}")
    math = ElementTree.fromstring(found[0])
    semantics = math[0]
    math[:] = [child for child in semantics if not child.tag.endswith("annotation")]
    for piece in math.iter():
        name = piece.tag.removeprefix(f"{{{MATHML}}}")
        if name in TOKENS and len(piece):  # KaTeX makes operators of whole constructions, which MathML does not know
            piece.tag, piece.attrib = f"{{{MATHML}}}mrow", {}
        elif name == "mi" and piece.text in LETTERS:
            piece.set("class", f"letter-{piece.text}")
    math.set("alttext", tex)
    return ElementTree.tostring(math, encoding="unicode")


def _picture(source: str, pictures: dict[str, bytes]) -> str:
    """Keep a picture as PNG on white, which every reader shows, also on a dark page; its name in the book."""
    file = Path(unquote(urlsplit(source).path))
    name = f"images/{file.stem}.png"
    if name not in pictures:
        with Image.open(file) as stored:
            drawn = stored.convert("RGBA")
            ground = Image.new("RGB", drawn.size, "white")
            ground.paste(drawn, mask=drawn.getchannel("A"))
        data = io.BytesIO()
        ground.quantize(256, dither=Image.Dither.NONE).save(data, "png", optimize=True)
        pictures[name] = data.getvalue()
    return name


def _package(book: Book, lang: str, pages: dict[str, str], pictures: dict[str, bytes], day: datetime.date) -> str:
    items, spine = [], []
    for chapter in book.chapters:
        page = pages[f"EPUB/{chapter.name}.xhtml"]
        holds = " ".join(kind for kind, sign in (("mathml", "<math"), ("svg", "<svg")) if sign in page)
        items.append(
            f'  <item id="c-{chapter.name}" href="{chapter.name}.xhtml" media-type="application/xhtml+xml"'
            + (f' properties="{holds}"/>' if holds else "/>")
        )
        spine.append(f'  <itemref idref="c-{chapter.name}"/>')
    for name in sorted(pictures):
        items.append(f'  <item id="i-{Path(name).stem}" href="{name}" media-type="image/png"/>')
    return PACKAGE.format(
        lang=lang, title=html.escape(book.full_title), author=html.escape(book.author), date=day.isoformat(),
        identifier=uuid.uuid5(uuid.NAMESPACE_DNS, f"multi-head-attention-a-book-you-can-run.{book.lang}").urn,
        rights=pick(RIGHTS, book.lang), summary=pick(SUMMARY, book.lang),
        items="\n".join(items), spine="\n".join(spine),
    )  # fmt: skip


def _nav(book: Book, lang: str) -> str:
    title = pick("目录 | Contents", book.lang)
    parts: list[tuple[str | None, list[str]]] = [(None, [])]
    for chapter in book.chapters:
        if chapter.part:
            parts.append((chapter.part, []))
        inner = "".join(_entry(chapter, name, text) for name, text in sections(chapter))
        parts[-1][1].append(_entry(chapter, anchor(chapter.name), chapter.title, f"<ol>{inner}</ol>" if inner else ""))
    rows = "\n".join(
        f"<li><span>{html.escape(caption)}</span><ol>{''.join(rows)}</ol></li>" if caption else "".join(rows)
        for caption, rows in parts
    )
    first = next(c for c in book.chapters if c.title[:1].isdigit())
    marks: list[tuple[str, str, Any]] = [
        ("cover", "cover-page.xhtml", pick("封面 | Cover", book.lang)),
        ("toc", "nav.xhtml", title),
        ("bodymatter", f"{first.name}.xhtml", first.title),
    ]
    marks += [
        (kind, f"{kind}.xhtml", c.title)
        for c in book.chapters
        for kind in ("glossary", "bibliography")
        if c.name == kind
    ]
    places = "".join(f'<li><a epub:type="{k}" href="{way}">{html.escape(text)}</a></li>' for k, way, text in marks)
    body = (
        f'<nav epub:type="toc" id="toc" role="doc-toc"><h1>{title}</h1><ol>{rows}</ol></nav>\n'
        f'<nav epub:type="landmarks" hidden="hidden"><h2>{pick("要处 | Landmarks", book.lang)}</h2>'
        f"<ol>{places}</ol></nav>"
    )
    return _wrap(lang, title, body)


def _entry(chapter: Chapter, target: str, title: str, inner: str = "") -> str:
    return f'<li><a href="{chapter.name}.xhtml#{target}">{html.escape(title)}</a>{inner}</li>'
