"""Two languages, one book: the switch keeps the reader's place, everything is said in the page's language."""

import re

import pytest

from book.anchors import anchors
from book.languages import LANGUAGES
from book.notebooks import ROOT, read
from book.site import SITE
from tests.site.conftest import pages

OTHER = {"zh": "en", "en": "zh"}


def section_ids(lang, page):
    return re.findall(r'<section\b[^>]* id="([^"]+)"', (SITE / lang / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", pages())
def test_every_section_has_the_same_anchor_in_both_languages_and_the_contents_lead_there(address, page):
    assert section_ids("zh", page) == section_ids("en", page)
    assert len(section_ids("zh", page)) == len(anchors(read(ROOT / page.replace(".html", ".ipynb"))))
    for lang in LANGUAGES:
        text = (SITE / lang / page).read_text(encoding="utf-8")
        listed = re.findall(r'<a class="reference internal nav-link" href="#([^"]+)"', text)
        assert set(listed) <= set(section_ids(OTHER[lang], page))
        assert not [name for name in section_ids(lang, page) if re.fullmatch(r"(id|section)-?\d*", name)]


def test_an_anchor_comes_from_the_label_or_the_english_heading_and_is_never_given_twice():
    cells = [
        ("zh", "# 题\n## 例\n## 例"),
        ("en", "# 2.2 Splitting\n## Why $\\sqrt{d_k}$?\n```\n# no heading\n```\n## Why $\\sqrt{d_k}$?"),
    ]
    notebook = {"cells": [{"cell_type": "markdown", "metadata": {"tags": [t]}, "source": s} for t, s in cells]}
    assert anchors(notebook) == ["splitting", "why-d-k", "why-d-k-2"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_switch_leads_to_the_section_that_the_reader_has_come_to_and_is_remembered(visit, lang):
    tab = visit(f"{lang}/chapters/2-3-attention.html")
    tab.locator("#step-2-scaling").evaluate("section => section.scrollIntoView()")
    box = tab.locator(f"[class*='switch-to-{OTHER[lang]}']").first.bounding_box()
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)  # where it stands, without scrolling
    tab.wait_for_url(f"**/{OTHER[lang]}/chapters/2-3-attention.html#step-2-scaling")
    assert tab.locator("#step-2-scaling").evaluate("s => Math.abs(s.getBoundingClientRect().top) < innerHeight / 2")
    assert tab.evaluate("localStorage.getItem('mha-language')") == OTHER[lang]
    tab.go_back()
    tab.wait_for_url(f"**/{lang}/chapters/2-3-attention.html")


def test_the_switch_keeps_what_was_searched_for(visit):
    tab = visit("zh/search.html?q=softmax")
    tab.locator("[class*='switch-to-en']").first.click()
    tab.wait_for_url("**/en/search.html?q=softmax")
    found = tab.locator("[data-search=page] mark").first
    found.wait_for()
    assert found.inner_text().lower() == "softmax"
