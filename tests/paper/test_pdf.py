"""The printed book: pages, links, fonts, bookmarks."""

import re

import pytest
from playwright.sync_api import sync_playwright
from pypdf import PdfReader

from book import versions
from book.browser import QUIET, find_chromium
from book.paper import pages, pdf
from book.paper.pdf import destinations

STARTS = ("pair = torch", "for dim in", "P = pair", "rows, cols")


@pytest.fixture(scope="session")
def texts(reader):
    """The text of every page, without spaces: lines may break anywhere."""
    return [re.sub(r"\s+", "", page.extract_text()) for page in reader.pages]


@pytest.fixture(scope="session")
def places(reader):
    return destinations(reader)


def squeezed(text):
    return re.sub(r"\s+", "", text)


def test_every_chapter_begins_on_the_page_that_the_contents_say(book, reader, texts, places):
    first = places[pages.anchor(book.chapters[0].name)]
    contents = "".join(texts[2 : first - 1])
    for chapter in book.chapters:
        page = places[pages.anchor(chapter.name)]
        assert squeezed(chapter.title) in texts[page - 1]
        assert f"{squeezed(chapter.title)}{page}" in contents
        head = squeezed(chapter.title if page % 2 else book.title)
        assert texts[page - 1].startswith((f"{head}{page}", f"{page}{head}"))


def test_every_section_stands_on_the_page_that_the_contents_say(book, texts, places):
    first = places[pages.anchor(book.chapters[0].name)]
    contents = "".join(texts[2 : first - 1])
    for chapter in book.chapters:
        if not chapter.title[0].isdigit():
            continue
        for name, title in pages.sections(chapter):
            assert f"{squeezed(title)}{places[name]}" in contents, title


def test_every_link_leads_to_a_place_in_the_book_or_to_the_web(reader, places):
    known, count = set(places), 0
    for page in reader.pages:
        for note in page.get("/Annots") or []:
            link = note.get_object()
            if link.get("/Subtype") != "/Link":
                continue
            count += 1
            action = link.get("/A", {})
            if "/URI" in action:
                assert re.match(r"https?://", action["/URI"])
            else:
                target = link.get("/Dest") or action.get("/D")
                assert str(target).removeprefix("/") in known
    assert count > 300


def test_no_character_is_missing(reader):
    """Every font is embedded as outlines, and no page shows glyph 0, the box for what a font lacks."""
    shown = 0
    for page in reader.pages:
        fonts = [font.get_object() for font in (page["/Resources"].get("/Font") or {}).values()]
        assert {font["/Subtype"] for font in fonts} <= {"/Type0"}
        assert all("/ToUnicode" in font for font in fonts)
        for text in re.findall(rb"<([0-9A-Fa-f]+)>", page.get_contents().get_data()):
            glyphs = [text[i : i + 4] for i in range(0, len(text), 4)]
            assert b"0000" not in glyphs
            shown += len(glyphs)
    assert shown > 50_000


def test_every_exercise_and_its_solution_name_each_others_page(book, texts, places):
    solutions = next(c.body for c in book.chapters if c.name == pages.SOLUTIONS)
    exercises = [way for c in book.chapters for way in c.body.select(".mha-to-solution a")]
    assert len(exercises) == len(solutions.select(".mha-solution")) >= 30
    words = "第{}页" if book.lang == "zh" else "p.{}"
    for way in exercises:
        there = way["href"][1:]
        back = solutions.find(id=there).select_one("a[href^='#c-']")["href"][1:]
        assert words.format(places[there]) in texts[places[back] - 1] + texts[places[back]]
        assert words.format(places[back]) in texts[places[there] - 1] + texts[places[there]]


def test_bookmarks_name_every_chapter_and_its_sections(book, reader, places):
    outline = reader.outline
    chapters = [item for item in outline if not isinstance(item, list)]
    assert [item.title for item in chapters] == [chapter.title for chapter in book.chapters]
    for item, chapter in zip(chapters, book.chapters, strict=True):
        assert reader.get_destination_page_number(item) + 1 == places[pages.anchor(chapter.name)]
    assert sum(isinstance(item, list) for item in outline) >= 9


def test_it_says_its_title_author_language_and_structure(book, reader):
    root = reader.trailer["/Root"]
    assert (reader.metadata.title, reader.metadata.author) == (book.full_title, book.author)
    assert root["/Lang"] == {"zh": "zh-CN", "en": "en"}[book.lang]
    assert root["/MarkInfo"]["/Marked"]
    assert root["/ViewerPreferences"]["/DisplayDocTitle"]
    assert b"/work" not in str(reader.metadata).encode()


def test_figures_are_described(book, reader):
    """Tagged for those who cannot see: each figure of the book has its alternative text."""
    described = set()
    for item in reader.trailer["/Root"]["/StructTreeRoot"]["/ParentTree"]["/Nums"][1::2]:
        item = item.get_object()
        for element in item if isinstance(item, list) else [item]:
            element = element.get_object()
            if element is not None and element.get("/S") == "/Figure" and "/Alt" in element:
                described.add(squeezed(element["/Alt"]))
    figures = [image["alt"] for chapter in book.chapters for image in chapter.body.select("img")]
    assert len(figures) >= 38
    for alt in figures:
        assert squeezed(alt) in described


def test_no_page_is_empty_and_all_have_one_size(reader, texts):
    assert [number for number, text in enumerate(texts, 1) if len(text) < 20 and number > 1] == []
    assert len({tuple(map(round, page.mediabox[2:])) for page in reader.pages}) == 1


def test_code_keeps_its_indents(reader, places):
    """Two lines of a loop in chapter 2.3 and what stands inside it."""
    pages = range(places["c-2-3-attention"] - 1, places["c-2-4-merging"] - 1)
    lines = [line for n in pages for line in reader.pages[n].extract_text(extraction_mode="layout").splitlines()]
    indent = {
        start: len(line) - len(line.lstrip()) for line in lines for start in STARTS if line.strip().startswith(start)
    }
    assert indent["for dim in"] == indent["pair = torch"]
    assert indent["P = pair"] == indent["rows, cols"] > indent["for dim in"]


def test_the_same_book_gives_the_same_pages(book, tmp_path):
    """Two chapters of it, printed by two browsers, which may number their objects otherwise: bytes may differ."""
    small = book._replace(chapters=[c for c in book.chapters if c.name in ("cover", "bibliography")])
    markup = pdf.assemble(small, versions.date())
    printed = []
    with sync_playwright() as playwright:
        for run in ("1", "2"):
            browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=list(QUIET))
            pdf.write(small, markup, browser, tmp_path / f"{run}.pdf", tmp_path / "book.html", versions.date())
            browser.close()
            printed.append([page.extract_text() for page in PdfReader(tmp_path / f"{run}.pdf").pages])
    assert len(printed[0]) > 3
    assert printed[0] == printed[1]
