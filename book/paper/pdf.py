"""The PDF: one long page, printed by Chromium.

Chromium, because it sets KaTeX's formulas and Chinese lines exactly as on the site and writes tagged PDF. It cannot
print the page number of a link's target, so the book is printed, read, and printed again with the numbers filled in
until they stay.
"""

import datetime
import html
import io
import re
from pathlib import Path
from typing import Any

from bs4 import Tag
from playwright.sync_api import Browser
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, BooleanObject, DictionaryObject, NameObject, NumberObject, TextStringObject

from book import versions
from book.languages import SPHINX, pick
from book.paper import cover
from book.paper.pages import ROOT, Book, anchor, restore, sections

HERE = Path(__file__).parent
CODE = re.compile(r"<pre[^>]*>(.*?)</pre>", re.S)
MATHML = re.compile(r'<span class="katex-mathml">.*?</math></span>', re.S)
PLACE = re.compile(r'(?<= data-page=")[^"]+(?="></span>)')  # where the page number of a target goes
MISSING = "000"  # as wide as any page number
PASSES = 5
FONTS = "/* fonts */"
LONG = 26  # lines of code that may be broken over two pages


def write(book: Book, markup: str, browser: Browser, target: Path, file: Path, day: datetime.date) -> int:
    """Print `markup`, the assembled book, to `target` by way of the HTML `file`; the number of pages."""
    wanted = set(PLACE.findall(markup))
    numbers: dict[str, Any] = dict.fromkeys(wanted, MISSING)
    for _ in range(PASSES):
        # a fresh page each time: a page that is printed twice may break elsewhere the second time
        reader = _print(_number(markup, numbers, book.lang), browser, file)
        found = destinations(reader)
        if lost := wanted - set(found):
            raise ValueError(f"no page holds {', '.join(sorted(lost))}")
        before, numbers = numbers, {name: found[name] for name in wanted}
        if before == numbers:
            break
    else:
        raise ValueError(f"page numbers did not settle in {PASSES} passes")
    _finish(book, reader, found, target, day)
    return len(reader.pages)


def _number(markup: str, numbers: dict[str, Any], lang: str) -> str:
    """Fill in page numbers: bare in the contents, "p. 12" elsewhere."""
    words = "第 {} 页" if lang == "zh" else "p. {}"
    return re.sub(
        r'<span class="(mha-at|number)" data-page="([^"]+)"></span>',
        lambda m: f'<span class="{m[1]}">{(words if m[1] == "mha-at" else "{}").format(numbers[m[2]])}</span>',
        markup,
    )


def _print(markup: str, browser: Browser, file: Path) -> PdfReader:
    file.write_text(markup, encoding="utf-8")
    page = browser.new_page()
    try:
        page.goto(file.as_uri(), wait_until="load")
        page.evaluate("document.fonts.ready")
        return PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True, print_background=True, tagged=True)))
    finally:
        page.close()


def destinations(reader: PdfReader) -> dict[str, int]:
    """The page, counted from 1, of every named place."""
    places = {name: reader.get_destination_page_number(place) for name, place in reader.named_destinations.items()}
    return {name.removeprefix("/"): number + 1 for name, number in places.items() if number is not None}


def assemble(book: Book, day: datetime.date) -> str:
    """The whole book as one HTML page, FONTS where the rules of its fonts belong."""
    katex = (ROOT / "book" / "assets" / "katex" / "katex.min.css").as_uri()
    chapters = "".join(
        f'<section class="chapter" style="page: {anchor(c.name)}">{_for_print(c.body)}</section>\n'
        for c in book.chapters
    )
    return (
        f'<!DOCTYPE html>\n<html lang="{SPHINX[book.lang].replace("_", "-")}">\n<head><meta charset="utf-8">'
        f'<title>{html.escape(book.title)}</title><link rel="stylesheet" href="{katex}">\n'
        f"<style>\n{FONTS}\n{(HERE / 'print.css').read_text(encoding='utf-8')}\n{_running_heads(book)}</style>"
        f"</head>\n<body>\n{_title_page(book, day)}\n{_contents(book)}\n{chapters}</body></html>\n"
    )


def _for_print(body: Tag) -> str:
    return restore(CODE.sub(lambda code: hang(code[1]), body.decode(formatter="minimal")), _formula)


def _formula(whole: str, tex: str) -> str:
    """Without the MathML, which would be found by whoever searches or copies text; its TeX is what it says."""
    said = html.escape(tex, quote=True)
    return MATHML.sub("", whole.replace('class="katex"', f'class="katex" role="img" aria-label="{said}"', 1))


def hang(code: str) -> str:
    """A <pre> of `code` with a box for each line, so that a line too long for the page goes on indented."""
    code = re.sub(r"(<span[^>]*>)([^<]*\n[^<]*)</span>", _split, code.replace("<span></span>", "").rstrip("\n"))
    lines = code.split("\n")
    boxes = "".join(f'<span class="line">{line or " "}</span>' for line in lines)
    return f'<pre class="{"long" if len(lines) > LONG else "short"}">{boxes}</pre>'


def _split(token: re.Match[str]) -> str:
    """A token of several lines as one of each line."""
    return "\n".join(f"{token[1]}{line}</span>" if line else "" for line in token[2].split("\n"))


def _running_heads(book: Book) -> str:
    """The book's title on left pages, the chapter's on right ones."""
    rules = []
    for chapter in book.chapters:
        for side, corner, text in (("left", "top-left", book.title), ("right", "top-right", chapter.title)):
            said = text.replace("\\", "\\\\").replace('"', '\\"')
            rules.append(f'@page {anchor(chapter.name)}:{side} {{ @{corner} {{ content: "{said}" }} }}')
    return "\n".join(rules)


def cover_page(book: Book, font_rules: str) -> str:
    """The cover alone, as a page to take a picture of."""
    style = (HERE / "print.css").read_text(encoding="utf-8")
    return (
        f'<!DOCTYPE html><html lang="{SPHINX[book.lang].replace("_", "-")}"><meta charset="utf-8">'
        f"<style>{font_rules}\n{style}\n.title-page {{ width: 176mm; }}</style>{_cover(book)}"
    )


def _cover(book: Book) -> str:
    title, _, subtitle = map(html.escape, re.split(r"([:：]\s*)", book.full_title, maxsplit=1))
    return (
        f'<section class="title-page"><div class="art">{cover.drawing()}</div>'
        f'<p class="title">{title}</p><p class="subtitle">{subtitle}</p>'
        f'<p class="author">{html.escape(book.author)}</p></section>'
    )


def _title_page(book: Book, day: datetime.date) -> str:
    number, spoken = versions.version(), versions.spoken(day, book.lang)
    said = pick(f"版本 {number}，{spoken} | Version {number}, {spoken}", book.lang)
    rights = pick(
        "文字与图以 CC BY 4.0 许可发布，代码以 MIT 许可发布。可以改、可以印、可以放进自己的讲义，文字请注明出处。 | "
        "Text and figures under CC BY 4.0, code under MIT: change it, print it, put it into your own course; "
        "for the text, say where it comes from.",
        book.lang,
    )
    art = pick(
        "封面：八个头看同一个句子。每个方块是一个头在八个词元上的因果注意力，颜色越深，权重越大。 | "
        "On the cover: eight heads look at one sentence. Each square is the causal attention of one head over eight "
        "tokens; the darker, the larger the weight.",
        book.lang,
    )
    live = pick(
        "书中的图有许多可以在网页上拨动： | Many of the figures can be moved on the web:",
        book.lang,
    )
    live = f'<p>{live}<br><a href="{book.live}">{book.live}</a></p>' if book.live else ""
    return (
        f'{_cover(book)}\n<section class="imprint">{live}<p>{art}</p>'
        f"<p>© {day.year} {html.escape(book.author)}<br>{rights}</p><p>{said}</p></section>"
    )


def _contents(book: Book) -> str:
    rows = []
    for chapter in book.chapters:
        if chapter.part:
            rows.append(f'<li class="part">{html.escape(chapter.part)}</li>')
        inner = "".join(_row(name, title) for name, title in sections(chapter) if chapter.title[0].isdigit())
        rows.append(_row(anchor(chapter.name), chapter.title, f"<ol>{inner}</ol>" if inner else ""))
    title = pick("目录 | Contents", book.lang)
    return f'<nav class="contents" id="contents"><h1>{title}</h1><ol>{"".join(rows)}</ol></nav>'


def _row(target: str, title: str, inner: str = "") -> str:
    return (
        f'<li><a href="#{target}"><span class="text">{html.escape(title)}</span>'
        f'<span class="dots"></span><span class="number" data-page="{target}"></span></a>{inner}</li>'
    )


def _finish(book: Book, reader: PdfReader, found: dict[str, int], target: Path, day: datetime.date) -> None:
    """Bookmarks and metadata; no time of printing, so that the same book gives the same pages."""
    writer = PdfWriter(clone_from=reader)
    for chapter in book.chapters:
        parent = writer.add_outline_item(title=chapter.title, page_number=found[anchor(chapter.name)] - 1)
        for name, title in sections(chapter):
            if name in found:
                writer.add_outline_item(title=title, page_number=found[name] - 1, parent=parent)
    stamp = f"D:{day:%Y%m%d}000000Z"
    writer.metadata = {
        "/Title": book.full_title, "/Author": book.author, "/Creator": "Multi-Head Attention",
        "/CreationDate": stamp, "/ModDate": stamp,
    }  # fmt: skip
    root = writer.root_object
    root[NameObject("/Lang")] = TextStringObject(SPHINX[book.lang].replace("_", "-"))
    root[NameObject("/ViewerPreferences")] = DictionaryObject({NameObject("/DisplayDocTitle"): BooleanObject(True)})
    root[NameObject("/PageMode")] = NameObject("/UseOutlines")
    root[NameObject("/OpenAction")] = ArrayObject(
        [writer.pages[0].indirect_reference, NameObject("/XYZ"), NumberObject(0), NumberObject(9999), NumberObject(0)]
    )
    writer.pdf_header = "%PDF-1.7"
    writer.compress_identical_objects()
    writer.write(target)
