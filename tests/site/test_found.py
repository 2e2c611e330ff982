"""What search engines and messengers read: descriptions, cards, addresses, structured data."""

import io
import json
import re
import subprocess
import sys

import pytest
from PIL import Image, ImageChops

from book import cards
from book.found import LICENCE, LONGEST, address, alternates, description, head, opening
from book.languages import LANGUAGES
from book.site import ROOT, SITE
from book.strip import STOPS
from tests.site.conftest import pages

CJK = re.compile(r"[\u4e00-\u9fff]")
EVERY = [(lang, page) for page in pages() for lang in LANGUAGES]
PLACE = "https://reader.example/book/"
PAGE = {
    "name": "chapters/2-2-splitting", "title": "2.2 <分头>", "book": "多头注意力", "author": "作者们",
    "description": "为什么？", "position": 3, "cover": False,
}  # fmt: skip


def of_head(text):
    """The names of a page's head: meta and link elements, whatever the order of their attributes."""
    found = {}
    for tag in re.findall(r"<(?:meta|link)\b[^>]*>", text.split("<body")[0]):
        attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        key = attributes.get("name") or attributes.get("property") or attributes.get("rel")
        if key:
            found.setdefault(key, []).append(attributes.get("content") or attributes.get("href"))
    return found


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_a_page_says_what_it_is_in_its_language(address, lang, page):
    text = (SITE / lang / page).read_text(encoding="utf-8")
    said = of_head(text)
    [description] = said["description"]
    assert bool(CJK.search(description)) == (lang == "zh")
    assert 20 <= len(description) <= LONGEST[lang]
    assert description[-1] in "。？！…" if lang == "zh" else description[-1] in ".?!”…"
    assert not re.search(r"[\\{}$]|  ", description)
    assert said["og:description"] == [description]
    [title] = re.findall(r"<title>(.*?)</title>", text)
    assert title.startswith(said["og:title"][0])
    assert said["og:locale"] == [{"zh": "zh_CN", "en": "en_US"}[lang]]
    [data] = re.findall(r'<script type="application/ld\+json">(.*?)</script>', text, re.S)
    told = json.loads(data)
    assert told["inLanguage"] == {"zh": "zh-CN", "en": "en"}[lang]
    assert told["license"] == LICENCE
    assert "LearningResource" in told["@type"]
    assert ("Book" in told["@type"]) == (page == "chapters/cover.html")
    assert told["description"] == description


def test_descriptions_and_titles_of_a_language_are_all_different(address):
    for lang in LANGUAGES:
        texts = [(SITE / lang / page).read_text(encoding="utf-8") for page in pages()]
        assert len({of_head(text)["description"][0] for text in texts}) == len(texts)
        assert len({re.search(r"<title>(.*?)</title>", text)[1] for text in texts}) == len(texts)


def test_a_description_is_the_question_and_whole_sentences_after_it():
    body = "<section id='a'><h1>T</h1><blockquote><p>Why <code>view</code>?</p></blockquote>"
    body += "<p>See the list that follows:</p><p>One sentence stands here. Another follows it.</p></section>"
    question, first = opening(body)
    assert (question, first) == ("Why view?", "One sentence stands here. Another follows it.")
    long = description("Why?", "word " * 60, "en")
    assert long.endswith("word…")
    assert len(long) <= LONGEST["en"]
    assert description("为什么？", "因为这样。" * 30, "zh").endswith("因为这样。")
    assert len(description("为什么？", "因为这样。" * 30, "zh")) <= LONGEST["zh"]


def test_without_an_address_no_whole_address_is_invented():
    text = head(PAGE, "zh", None)
    assert re.findall(r"https?://[^\"]+", text) == ["https://schema.org", LICENCE, LICENCE]
    assert "og:image" not in text
    assert "hreflang" not in text


def test_with_an_address_canonical_names_card_and_languages_are_whole():
    said = of_head(head(PAGE, "zh", PLACE))
    assert said["og:url"] == [f"{PLACE}zh/chapters/2-2-splitting.html"]
    assert said["og:image"] == [f"{PLACE}zh/cards/2-2-splitting.png"]
    assert said["og:title"] == ["2.2 &lt;分头&gt;"]
    assert said["alternate"] == [
        f"{PLACE}zh/chapters/2-2-splitting.html",
        f"{PLACE}en/chapters/2-2-splitting.html",
        f"{PLACE}en/chapters/2-2-splitting.html",
    ]
    data = json.loads(head(PAGE, "zh", PLACE).split('ld+json">')[1].split("</script>")[0])
    assert data["url"] == said["og:url"][0]
    assert data["workTranslation"][0]["url"] == address(PLACE, "en", "chapters/2-2-splitting")
    assert "<" not in head(PAGE, "zh", PLACE).split('ld+json">')[1].split("</script>")[0]
    assert alternates(PLACE, "chapters/cover", cover=True)[-1] == ("x-default", PLACE)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_card_is_light_full_size_and_shows_where_in_the_strip_its_chapter_is(lang):
    drawn = [
        cards.card("Multi-Head Attention", "2.2 分头 Splitting", "为什么？Why √d_k and Q Kᵀ?" * 3, lang, target)
        for *_, target in STOPS[:3]
    ]
    for data in drawn:
        image = Image.open(io.BytesIO(data))
        assert (image.format, image.size) == ("PNG", (1200, 630))
        assert len(data) <= 60_000
    first, second = (Image.open(io.BytesIO(data)).convert("RGB") for data in drawn[:2])
    differs = ImageChops.difference(first, second).convert("L").point(lambda v: 255 if v > 48 else 0)  # not its palette
    left, top, right, _ = differs.getbbox()
    assert top > 470, "two chapters with the same words differ in the strip alone"
    assert right <= cards.LEFT + (cards.RIGHT - cards.LEFT) * 2 / len(STOPS) + 1
    assert left >= cards.LEFT


def test_every_card_of_the_book_is_drawn_with_letters_that_its_fonts_have(address):
    for lang, page in EVERY:
        said = of_head((SITE / lang / page).read_text(encoding="utf-8"))
        for text in (*said["og:title"], *said["description"]):
            for piece in cards._pieces(text):
                face = cards._face(piece, 30)
                assert face.getmask(piece).getbbox() or not piece.strip(), piece
                assert all(bytes(face.getmask(c)) != bytes(face.getmask("\U0010fffe")) for c in piece if c.strip()), (
                    piece
                )


def test_no_line_of_a_card_starts_with_closing_punctuation():
    _, lines = cards._fit("为什么一定要先 view，再 transpose？直接 view 成 (B, h, L, d_k)，不行吗？" * 2, (36,), 600, 9)
    assert len(lines) > 3
    assert not [line for line in lines if line[0] in cards.CLOSE]
    assert not [line for line in lines if line[-1] in cards.OPEN]


def test_a_site_that_knows_its_address_says_it_on_every_page(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_URL", PLACE)
    command = [sys.executable, "-m", "book.site", "--language", "en", "--out", str(tmp_path), "--lenient"]
    subprocess.run([*command, "--only", "chapters/bibliography.ipynb"], cwd=ROOT, check=True, capture_output=True)
    said = of_head((tmp_path / "chapters" / "bibliography.html").read_text(encoding="utf-8"))
    assert said["canonical"] == [f"{PLACE}en/chapters/bibliography.html"] == said["og:url"]
    assert said["alternate"][0] == f"{PLACE}zh/chapters/bibliography.html"
    [card] = said["og:image"]
    drawn = (tmp_path / card.removeprefix(f"{PLACE}en/")).read_bytes()
    assert 5_000 < len(drawn) <= 60_000
    assert of_head((tmp_path / "search.html").read_text(encoding="utf-8"))["canonical"] == [f"{PLACE}en/search.html"]
