"""The EPUB: whole, well-formed, and every link and picture there."""

import io
import posixpath
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from PIL import Image

from book.paper import pages

OPF = "{http://www.idpf.org/2007/opf}"
DC = "{http://purl.org/dc/elements/1.1/}"
XHTML = "{http://www.w3.org/1999/xhtml}"
MATHML = "{http://www.w3.org/1998/Math/MathML}"


@pytest.fixture(scope="session")
def package(epub):
    return ElementTree.fromstring(epub["EPUB/package.opf"])


def test_it_opens_as_an_epub(epub):
    assert next(iter(epub)) == "mimetype"
    assert epub["mimetype"] == b"application/epub+zip"
    assert b"EPUB/package.opf" in epub["META-INF/container.xml"]


def test_every_page_is_well_formed_and_in_its_language(book, epub):
    lang = {"zh": "zh-CN", "en": "en"}[book.lang]
    for name, data in epub.items():
        if name.endswith(".xhtml"):
            page = ElementTree.fromstring(data)
            assert page.tag == f"{XHTML}html"
            assert page.get("lang") == page.get("{http://www.w3.org/XML/1998/namespace}lang") == lang
            ids = [element.get("id") for element in page.iter() if element.get("id")]
            assert len(ids) == len(set(ids))


def test_the_manifest_lists_every_file_once_and_the_spine_every_chapter(book, epub, package):
    items = {item.get("id"): f"EPUB/{item.get('href')}" for item in package.iter(f"{OPF}item")}
    held = set(epub) - {"mimetype", "META-INF/container.xml", "EPUB/package.opf"}
    assert sorted(items.values()) == sorted(held)
    spine = [items[ref.get("idref")] for ref in package.iter(f"{OPF}itemref")]
    assert spine[2:] == [f"EPUB/{chapter.name}.xhtml" for chapter in book.chapters]


def test_every_link_and_picture_leads_somewhere(epub, parsed):
    count = 0
    for name, page in parsed.items():
        for element in page.select("[href], [src]"):
            target = urlsplit(element.get("href") or element.get("src"))
            if target.scheme:
                assert target.scheme in ("http", "https")
                continue
            file = posixpath.normpath(posixpath.join(posixpath.dirname(name), target.path)) if target.path else name
            assert file in epub, (name, file)
            if target.fragment:
                assert parsed[file].find(id=unquote(target.fragment)), (name, target.geturl())
            count += 1
    assert count > 300


def test_pictures_are_png_of_a_kind_that_old_readers_show_and_are_described(epub, parsed):
    images = [image for page in parsed.values() for image in page.select("img")]
    assert len(images) >= 39
    assert all(len(image["alt"]) > 5 for image in images)
    assert {name for image in images for name in image.attrs} <= {"class", "src", "alt", "width", "height"}
    for name, data in epub.items():
        if name.endswith(".png"):
            with Image.open(io.BytesIO(data)) as picture:
                assert (picture.format, "transparency" in picture.info) == ("PNG", False)


def test_formulas_are_mathml_that_says_its_tex_and_nothing_twice(epub, parsed):
    formulas = 0
    for name, data in epub.items():
        if not name.endswith(".xhtml"):
            continue
        assert b"katex-html" not in data
        for formula in ElementTree.fromstring(data).iter(f"{MATHML}math"):
            formulas += 1
            assert formula.get("alttext")
            for piece in formula.iter():
                name = piece.tag.removeprefix(MATHML)
                assert name != "annotation"
                assert name not in ("mi", "mo", "mn", "mtext") or len(piece) == 0
    assert formulas > 400


def test_every_exercise_has_its_solution_at_the_end(book, parsed):
    solutions = parsed[f"EPUB/{pages.SOLUTIONS}.xhtml"]
    links = [link["href"] for page in parsed.values() for link in page.select(".mha-to-solution a")]
    assert len(links) == len(set(links)) == len(solutions.select(".mha-solution")) >= 30
    for link in links:
        assert len(solutions.find(id=link.split("#")[1]).get_text(strip=True)) > 10


def test_it_says_what_it_is(book, package):
    said = {
        name: package.find(f".//{DC}{name}").text for name in ("title", "language", "creator", "identifier", "rights")
    }
    assert said["title"] == book.full_title
    assert said["language"] == {"zh": "zh-CN", "en": "en"}[book.lang]
    assert said["creator"] == book.author
    assert said["identifier"].startswith("urn:uuid:")
    assert "CC BY 4.0" in said["rights"]


def test_contents_and_landmarks_are_there(book, parsed):
    nav = parsed["EPUB/nav.xhtml"]
    kinds = [one["epub:type"] for one in nav.select("nav")]
    assert kinds == ["toc", "landmarks"]
    titles = [link.get_text() for link in nav.select("nav")[0].select("a")]
    assert [chapter.title for chapter in book.chapters if chapter.title not in titles] == []
    marks = {link["epub:type"] for link in nav.select("nav")[1].select("a")}
    assert {"cover", "toc", "bodymatter", "glossary", "bibliography"} <= marks
