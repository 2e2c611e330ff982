"""The book away from the web: how pages become chapters, and how the site offers the files."""

import datetime
import re
import zipfile

import pytest
from bs4 import BeautifulSoup

from book.paper import archive, cover, offer, pages, pdf

DAY = datetime.date(2026, 11, 29)
PAGE = """<!DOCTYPE html><html><body><article class="bd-article"><section id="attention"><span id="id1"></span>
<h1>2.3 Attention<a class="headerlink" href="#attention">#</a></h1>
<nav class="mha-launch">open</nav><button>copy</button>
<p>See <a href="1-concept.html#look">the look-up</a>, <a href="#n-scaling">below</a>,
<a href="https://arxiv.org/abs/1706.03762">the paper</a> and <a href="../genindex.html">the index</a>.</p>
<section id="n-scaling"><h2>Why <span class="katex"><span class="katex-mathml"><math><semantics><mi>d</mi>
<annotation encoding="application/x-tex">\\sqrt{d_k}</annotation></semantics></math></span></span></h2>
<div class="mha-explore"><div class="mha-frame"><img src="../_frames/a.webp" alt="four bars"></div>
<div class="mha-sliders"><label class="mha-slider"><span>width d_k</span><input><output>4</output></label></div>
<script type="application/json">{"choices": [{"name": "d_k", "values": ["4", "16"]}], "frames": []}</script></div>
</section><section id="exercises"><h2>Exercises</h2><p><strong>1.</strong> First?</p><p>It goes on.</p>
<details class="mha-fold dropdown"><summary>Solution</summary><div><p>Because.</p></div></details>
<p><strong>2.</strong> Second?</p>
<details class="mha-fold proof dropdown"><summary>Proof</summary><div><p>Stays here.</p></div></details>
<details class="mha-fold dropdown"><summary>Solution</summary><div><pre>x</pre></div></details></section></section>
</article></body></html>"""
TOC = "format: jb-book\nroot: chapters/cover\nparts:\n"
TOC += "- caption: 二 | Two\n  chapters:\n  - file: chapters/2-3-attention\n"
TOC += "- caption: 附 | Back\n  chapters:\n  - file: chapters/1-concept\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site of three small pages."""
    (tmp_path / "_toc.yml").write_text(TOC, encoding="utf-8")
    (tmp_path / "_config.yml").write_text("title: 书 | Book\nauthor: 人 | People\n", encoding="utf-8")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    chapters = tmp_path / "_site" / "en" / "chapters"
    chapters.mkdir(parents=True)
    (chapters / "2-3-attention.html").write_text(PAGE, encoding="utf-8")
    for name, title in (("cover", "Book: to run"), ("1-concept", "Looking")):
        text = f'<article><section id="x"><h1>{title}</h1><p id="look">…</p></section></article>'
        (chapters / f"{name}.html").write_text(text, encoding="utf-8")
    return tmp_path / "_site"


@pytest.fixture
def attention(site):
    """Its second chapter."""
    return pages.read(site, "en", "https://example.org/book/").chapters[1]


def test_a_live_figure_becomes_its_first_frame_with_the_choices_and_a_link(attention):
    figure = attention.body.select_one("figure.mha-still")
    assert figure.img["alt"] == "four bars"
    assert figure.img["src"].startswith("file://")
    assert figure.figcaption.get_text() == "Shown: d_k = 4. On the web you can move width d_k (4, 16)."
    assert figure.a["href"] == "https://example.org/book/en/chapters/2-3-attention.html#n-scaling"


def test_a_lab_becomes_its_still_with_a_link(site):
    page = site / "en" / "chapters" / "1-concept.html"
    lab = '<figure class="mha-lab"><img src="../_frames/b.webp" alt="rows"><figcaption>needs JavaScript</figcaption>'
    lab += '<script type="application/json">{}</script></figure>'
    page.write_text(f'<article><section id="x"><h1>Looking</h1>{lab}</section></article>', encoding="utf-8")
    figure = pages.read(site, "en", "https://example.org/").chapters[-1].body.figure
    assert figure.img["alt"] == "rows"
    assert figure.figcaption.get_text().startswith("On the web there is a lab here")
    assert figure.a["href"] == "https://example.org/en/chapters/1-concept.html#x"


def test_without_a_known_address_the_caption_has_no_link(site):
    figure = pages.read(site, "en").chapters[1].body.select_one("figure.mha-still")
    assert figure.find("a") is None
    assert "On the web" in figure.get_text()


def test_links_lead_into_the_same_book_or_to_an_address(attention):
    links = [link["href"] for link in attention.body.p.find_all("a")]
    assert links == [
        "#c-1-concept--look",
        "#c-2-3-attention--n-scaling",
        "https://arxiv.org/abs/1706.03762",
        "https://example.org/book/en/genindex.html",
    ]


def test_the_whole_chapter_can_be_linked_to(attention):
    assert attention.body["id"] == "c-2-3-attention--attention"
    assert attention.body.h1["id"] == "c-2-3-attention"


def test_a_link_that_leads_nowhere_is_words_only(site):
    body = pages.read(site, "en").chapters[1].body
    assert "the index" in body.p.get_text()
    assert all("genindex" not in link["href"] for link in body.select("a"))


def test_what_only_a_screen_can_use_is_left_out(attention):
    assert attention.body.select("button, script, .headerlink, .mha-launch, .mha-sliders") == []


def test_headings_are_said_in_plain_characters(attention):
    assert [title for _, title in pages.sections(attention)] == ["Why √d_k", "Exercises"]


def test_solutions_move_to_the_end_and_both_ways_are_linked(site):
    book = pages.read(site, "en")
    names = [chapter.name for chapter in book.chapters]
    assert names == ["cover", "2-3-attention", "solutions", "1-concept"]
    exercises, solutions = book.chapters[1].body, book.chapters[2].body
    assert "Because." not in exercises.get_text()
    proof = exercises.select_one(".admonition.proof")
    assert [part.get_text() for part in proof.find_all("p")] == ["Proof", "Stays here."]
    ways = [link["href"][1:] for link in exercises.select(".mha-to-solution a")]
    assert [solutions.find(id=way).get_text(" ", strip=True)[:2] for way in ways] == ["1.", "2."]
    backs = [link["href"][1:] for link in solutions.select(".mha-solution a:has(strong)")]
    assert [exercises.find(id=back).get_text() for back in backs] == ["1. First?", "2. Second?"]


def test_solutions_open_the_part_at_the_back(site):
    book = pages.read(site, "en")
    assert [chapter.part for chapter in book.chapters] == [None, "Two", "Back", None]


def test_a_solution_without_an_exercise_is_an_error(site):
    page = site / "en" / "chapters" / "2-3-attention.html"
    page.write_text(PAGE.replace("<strong>1.</strong>", ""), encoding="utf-8")
    with pytest.raises(ValueError, match="without a numbered exercise"):
        pages.read(site, "en")


def test_code_keeps_every_space_and_each_line_stands_alone():
    code = BeautifulSoup(
        pdf.hang(
            '<span></span><span class="k">for</span><span class="w"> </span>x:\n'
            '    <span class="s2">"""one\n  two"""</span>\n\n    y  <span class="c1"># z</span>\n'
        ),
        "html.parser",
    )
    assert [line.get_text() for line in code.select(".line")] == ["for x:", '    """one', '  two"""', " ", "    y  # z"]
    assert [str(s) for s in code.select(".s2")] == [
        '<span class="s2">"""one</span>',
        '<span class="s2">  two"""</span>',
    ]


def test_formulas_come_back_whole_for_print_without_what_a_search_would_find_twice(attention):
    restored = pages.restore(str(attention.body.find_all("h2")[0]), lambda whole, tex: f"[{tex}: {whole}]")
    assert restored.startswith('<h2 id="c-2-3-attention--section-0">Why [\\sqrt{d_k}: <span class="katex"><span')
    assert restored.endswith("</math></span></span>]</h2>")


@pytest.mark.parametrize("head", range(8))
def test_the_cover_shows_causal_attention(head):
    weights = cover.weights(head)
    for i, row in enumerate(weights):
        assert sum(row) == pytest.approx(1)
        assert all(weight == 0 for weight in row[i + 1 :])
        assert all(weight > 0 for weight in row[: i + 1])


@pytest.fixture
def built(tmp_path):
    """A built site of one page a language, with the place for the line."""
    for lang in ("zh", "en"):
        (tmp_path / lang / "chapters").mkdir(parents=True)
        (tmp_path / lang / "chapters" / "a.html").write_text(f"<footer>{offer.PLACE}</footer>", encoding="utf-8")
    (tmp_path / ".digest").write_text("one")
    return tmp_path


def make_files(site, of="one"):
    folder = site / offer.FOLDER
    folder.mkdir(exist_ok=True)
    for lang in ("zh", "en"):
        for name in offer.names(lang):
            (folder / name).write_bytes(b"x" * 1_250_000)
    (folder / offer.STAMP).write_text(of)


def foot(site, lang):
    return BeautifulSoup((site / lang / "chapters" / "a.html").read_text(encoding="utf-8"), "html.parser").footer


def test_pages_offer_the_files_with_their_sizes_in_their_language(built):
    make_files(built)
    offer.fill(built, there=offer.current(built))
    assert foot(built, "zh").get_text() == "带走这本书：PDF（1.2 MB） · EPUB（1.2 MB） · 整个网站 zip（1.2 MB）"
    assert foot(built, "en").get_text() == "Take it away: PDF (1.2 MB) · EPUB (1.2 MB) · the whole site, zip (1.2 MB)"
    for lang in ("zh", "en"):
        for link in foot(built, lang).find_all("a"):
            assert (built / lang / "chapters" / link["href"]).resolve().exists()


@pytest.mark.parametrize("spoil", ["missing", "older"])
def test_pages_offer_nothing_that_is_missing_or_older_than_the_site(built, spoil):
    make_files(built)
    offer.fill(built, there=offer.current(built))
    if spoil == "missing":
        (built / offer.FOLDER / "mha-book-en.epub").unlink()
    else:
        (built / ".digest").write_text("two")
    assert offer.fill(built, there=offer.current(built)) == 2
    assert str(foot(built, "zh")) == f"<footer>{offer.PLACE}</footer>"


def test_the_zip_is_the_same_whenever_it_is_made_and_offers_no_files(built):
    make_files(built)
    offer.fill(built, there=offer.current(built))
    both = [built / offer.FOLDER / "1.zip", built / offer.FOLDER / "2.zip"]
    for target in both:
        archive.write(built, target, DAY)
    assert both[0].read_bytes() == both[1].read_bytes()
    with zipfile.ZipFile(both[0]) as unpacked:
        names = unpacked.namelist()
        page = unpacked.read("mha-book/zh/chapters/a.html").decode()
        readme = unpacked.read("mha-book/README.txt").decode()
    assert not any(re.search(r"\.(pdf|epub)$|/\.", name) for name in names)
    assert page == f"<footer>{offer.PLACE}</footer>"
    assert all("index.html" in half for half in readme.split("\n\n\n"))


def test_a_site_that_is_not_built_is_not_zipped(tmp_path):
    with pytest.raises(ValueError, match="build the site first"):
        archive.write(tmp_path, tmp_path / "x.zip", DAY)
