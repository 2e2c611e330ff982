"""Every page, in both languages, as a reader meets it."""

import re

import pytest

from book.languages import LANGUAGES
from book.notebooks import ROOT
from tests.site.conftest import pages

CJK = re.compile(r"[\u4e00-\u9fff]")
EVERY = [(lang, page) for page in pages() for lang in LANGUAGES]
OTHER = {"zh": "en", "en": "zh"}


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_a_page_is_whole_and_in_its_language(visit, lang, page):
    tab = visit(f"{lang}/{page}")
    assert tab.locator("html").get_attribute("lang") == {"zh": "zh-CN", "en": "en"}[lang]
    assert tab.locator("article h1").count() == 1
    assert bool(CJK.search(tab.title())) == (lang == "zh")
    chrome = tab.locator("#pst-primary-sidebar, .header-article, .prev-next-area, footer").all_inner_texts()
    words = re.sub("中文|English", "", " ".join(chrome))  # the switch names the other language in that language
    if lang == "en":
        assert not CJK.search(words)
    else:
        assert not re.search(r"\b(Search|Contents|previous|next|Next|Previous|By|Copyright|chapter)\b", words), words
    told = """[...document.querySelectorAll('[title], [aria-label], [placeholder]')]
        .filter(e => !e.lang && !e.matches('a.reference'))
        .flatMap(e => [e.title, e.ariaLabel, e.placeholder]).filter(Boolean)"""
    for text in tab.evaluate(told):
        if lang == "en":
            assert not CJK.search(text), text
        elif re.search("[A-Za-z]{2}", re.sub("Softmax|Concat|headᵢ?", "", text)):  # symbols and shapes are for both
            assert CJK.search(text), f"a word of the theme is left in English: {text!r}"
    for label in tab.locator("article :is(.admonition-title, summary, figcaption)").all_inner_texts():
        assert bool(CJK.search(label)) == (lang == "zh") or not label.strip(), label
    assert tab.locator("article .katex-error, article .mjx-error, article .problematic").count() == 0
    links = tab.locator("article a").all_inner_texts()
    assert not [text for text in links if re.search(r"\\[a-z]|\$", text)], (
        "a link to a title with a formula needs words"
    )
    raw = tab.locator("article").inner_text()
    assert not re.search(r"\{(ref|cite|eq|numref|doc)[:}]", raw), "a role was left as source"


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_every_figure_says_what_it_shows_in_the_pages_language(visit, lang, page):
    tab = visit(f"{lang}/{page}")
    for image in tab.locator("article img").all():
        alt = image.get_attribute("alt") or ""
        assert len(alt) > 15, f"{page}: no alt text on {image.get_attribute('src')}"
        assert bool(CJK.search(alt)) == (lang == "zh") or "国" in alt, alt
        if not image.is_visible():
            assert tab.locator(".mha-lab img").count()  # a lab's still, once the lab is alive: never fetched
            continue
        image.scroll_into_view_if_needed()  # most are fetched when the reader comes near
        tab.wait_for_function("i => i.complete && i.naturalWidth > 100", arg=image.element_handle())


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_nothing_overflows_on_a_phone(visit, lang, page):
    tab = visit(f"{lang}/{page}", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    sides = "e => e.map(x => x.getBoundingClientRect()).flatMap(r => [r.left, r.right])"
    assert all(0 <= x <= 390 for x in tab.eval_on_selector_all(".mha-slider > *", sides))
    tab.evaluate("document.fonts.ready")
    may_be_cut = ".katex-display, table, .pst-scrollable-table-container, .mha-sentence"
    cut = f"""[...document.querySelectorAll("article :is({may_be_cut})")]
        .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText.slice(0, 80))"""
    assert tab.evaluate(cut) == [], "only columns of numbers and program text may be wider than a phone"


@pytest.mark.parametrize("page", pages())
def test_both_languages_have_the_same_sections_and_the_switch_leads_there_and_back(visit, page):
    ids = {}
    for lang in LANGUAGES:
        tab = visit(f"{lang}/{page}")
        ids[lang] = tab.eval_on_selector_all("article section[id] > h1, article section[id] > h2", "h => h.length")
        tab.locator(f"[class*='switch-to-{OTHER[lang]}']").first.click()
        tab.wait_for_url(f"**/{OTHER[lang]}/{page}*", timeout=5000)
        assert tab.locator("article h1").count() == 1
    assert ids["zh"] == ids["en"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_numbers_in_the_glossary_are_those_of_the_chapters(visit, lang):
    tab = visit(f"{lang}/chapters/glossary.html")
    links = tab.eval_on_selector_all("table a", "links => links.map(a => [a.innerText, a.href])")
    assert len(links) > 30
    titles = {}
    for number, href in links:
        page = href.partition("#")[0].partition(f"/{lang}/")[2]
        if page not in titles:
            titles[page] = visit(f"{lang}/{page}").locator("article h1").inner_text()
        assert number in titles[page].split(), (number, titles[page])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_language_folder_opens_on_the_cover(visit, lang):
    tab = visit(f"{lang}/")
    tab.wait_for_url(f"**/{lang}/chapters/cover.html")
    assert tab.locator("article h1").count() == 1


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_link_inside_the_book_leads_somewhere(lang):
    site = ROOT / "_site"
    broken, texts = [], {page: page.read_text(encoding="utf-8") for page in (site / lang).rglob("*.html")}
    for page, text in texts.items():
        for href in re.findall(r'<a[^>]+href="([^"]+)"', text):
            if re.match(r"[a-z]+:", href):
                continue
            path, _, anchor = href.partition("#")
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            there = texts[target] if target in texts else target.read_text("utf-8") if target.exists() else None
            if there is None or (anchor and f'id="{anchor}"' not in there):
                broken.append(f"{page.name}: {href}")
    assert broken == []


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_a_reference_to_an_equation_shows_the_number_beside_it(lang, page):
    text = (ROOT / "_site" / lang / page).read_text(encoding="utf-8")
    numbers = dict(re.findall(r'class="mha-formula" id="(equation-[^"]+)".*?class="mha-eqno">(\(\d+\))<', text, re.S))
    for target, shown in re.findall(r'href="#(equation-[^"]+)">(\(\d+\))<', text):
        assert numbers[target] == shown
