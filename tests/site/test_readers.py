"""Every reader: by keyboard, by ear, in the dark, enlarged, without motion, in Chinese lines, on paper."""

from importlib import resources

import pytest

from book.languages import LANGUAGES
from tests.site.conftest import pages

EVERY = [(lang, page) for page in pages() for lang in LANGUAGES]
KINDS = [
    (lang, f"chapters/{name}.html") for lang in LANGUAGES for name in ("cover", "2-3-attention", "4-code", "glossary")
]
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
LAY_OUT = """document.querySelectorAll("section").forEach(s => s.style.contentVisibility = "visible");
    document.querySelectorAll("details").forEach(d => d.open = true)"""
PHONE = {"viewport": {"width": 390, "height": 844}}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("lang", "page"), [*EVERY, *((lang, "search.html") for lang in LANGUAGES)])
def test_axe_finds_nothing(visit, lang, page, scheme):
    tab = visit(f"{lang}/{page}", color_scheme=scheme)
    tab.evaluate(LAY_OUT)
    tab.evaluate(AXE)
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert found["passes"]
    told = [(v["id"], [(n["target"], n["any"][:1] and n["any"][0]["message"]) for n in v["nodes"][:3]])
            for v in found["violations"]]  # fmt: skip
    assert told == []


@pytest.mark.parametrize(("lang", "page"), KINDS)
def test_the_first_stop_of_the_keyboard_leads_past_the_menus_to_the_text(visit, lang, page):
    tab = visit(f"{lang}/{page}")
    tab.keyboard.press("Tab")
    tab.wait_for_timeout(600)  # it slides in
    assert tab.evaluate("document.activeElement.getBoundingClientRect().top >= 0")
    tab.keyboard.press("Enter")
    assert tab.evaluate("location.hash") == "#main-content"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("lang", "page"), KINDS)
def test_whoever_tabs_through_a_page_sees_where_they_are(visit, lang, page, scheme):
    tab = visit(f"{lang}/{page}", color_scheme=scheme)
    tab.evaluate("history.scrollRestoration = 'manual'")
    seen = set()
    for _ in range(40):
        tab.keyboard.press("Tab")
        at = tab.evaluate("""() => {
            const e = document.activeElement, s = getComputedStyle(e);
            return [e.tagName, e.className, s.outlineStyle, parseFloat(s.outlineWidth), s.boxShadow];
        }""")
        assert at[0] != "BODY" or seen, "the keyboard reaches nothing"
        if at[0] == "BODY":
            break
        assert (at[2] != "none" and at[3] >= 1.5) or at[4] != "none", f"no visible focus on {at}"
        seen.add(at[0])
    assert {"A", "BUTTON"} <= seen


@pytest.mark.parametrize(("lang", "page"), KINDS)
def test_menus_open_and_close_by_keyboard_and_give_the_focus_back(visit, lang, page):
    tab = visit(f"{lang}/{page}", **PHONE)
    for name in ("primary", "secondary"):
        button = tab.locator(f".{name}-toggle")
        if name == "secondary" and not tab.locator("#pst-secondary-sidebar").count():
            continue  # a page without sections
        button.focus()
        tab.keyboard.press("Enter")
        dialog = tab.locator(f"#pst-{name}-sidebar-modal")
        assert dialog.evaluate("d => d.open && d.querySelectorAll('a').length") > 0
        assert button.get_attribute("aria-expanded") == "true"
        tab.keyboard.press("Escape")
        assert not dialog.evaluate("d => d.open")
        assert button.evaluate("b => document.activeElement === b")


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_at_four_times_the_size_nothing_is_cut_off(visit, lang, page):
    tab = visit(f"{lang}/{page}", viewport={"width": 320, "height": 640})
    tab.evaluate(LAY_OUT)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_code_needs_no_sideways_scrolling_on_a_phone(visit, lang, page):
    tab = visit(f"{lang}/{page}", **PHONE)
    tab.evaluate(LAY_OUT)
    wide = """[...document.querySelectorAll(".cell_input pre, pre:has(.mha-line)")]
        .filter(p => p.scrollWidth > p.clientWidth + 1).map(p => p.innerText.slice(0, 60))"""
    assert tab.evaluate(wide) == []
    sizes = "[...document.querySelectorAll('.bd-article pre')].map(p => parseFloat(getComputedStyle(p).fontSize))"
    assert min(tab.evaluate(sizes), default=12) >= 10


@pytest.mark.parametrize("width", [320, 390, 768, 1440])
@pytest.mark.parametrize("page", pages())
def test_no_chinese_line_starts_with_a_closing_mark(visit, page, width):
    tab = visit(f"zh/{page}", viewport={"width": width, "height": 900})
    tab.evaluate(LAY_OUT)
    begun = tab.evaluate("""() => {
        const closing = /[，。；：、！？）”’》】…]/g, bad = [];
        let looked = 0;
        for (const block of document.querySelectorAll("article :is(p, li, dd, td, h1, h2, h3, summary)")) {
            const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
            let last = null;
            for (let node; (node = walker.nextNode());) {
                if (!node.data.trim() || node.parentElement.closest(".katex-mathml, pre, script")) continue;
                const at = (i) => { const r = document.createRange(); r.setStart(node, i); r.setEnd(node, i + 1);
                    return [...r.getClientRects()].at(-1); };
                for (const hit of node.data.matchAll(closing)) {
                    const here = at(hit.index), before = hit.index ? at(hit.index - 1) : last;
                    looked++;
                    if (here && before && here.left < before.left && here.top > before.top + before.height / 2)
                        bad.push(node.data.slice(Math.max(0, hit.index - 12), hit.index + 2));
                }
                last = at(node.data.length - 1) ?? last;
            }
        }
        return [looked, bad];
    }""")
    assert begun[0] > 5
    assert begun[1] == []


@pytest.mark.parametrize("page", ["chapters/2-3-attention.html", "chapters/cover.html"])
def test_chinese_is_set_as_chinese(visit, page):
    tab = visit(f"zh/{page}")
    style = "p => { const s = getComputedStyle(p); return [s.lineBreak, s.textAutospace, s.textSpacingTrim] }"
    assert tab.locator("article p").first.evaluate(style) == ["strict", "normal", "trim-start"]


@pytest.mark.parametrize(("lang", "page"), KINDS)
def test_nothing_moves_for_those_who_asked_for_stillness(visit, lang, page):
    tab = visit(f"{lang}/{page}", reduced_motion="reduce")
    moving = """[...document.querySelectorAll("*")].filter(e => { const s = getComputedStyle(e);
        return Math.max(...`${s.transitionDuration},${s.animationDuration}`.split(",").map(parseFloat)) > 0.01
            || s.scrollBehavior === "smooth"; }).map(e => e.className || e.tagName).slice(0, 5)"""
    assert tab.evaluate(moving) == []


@pytest.mark.parametrize(("lang", "page"), KINDS)
def test_paper_shows_the_text_and_the_answers_without_the_menus(visit, lang, page):
    tab = visit(f"{lang}/{page}", viewport={"width": 794, "height": 1123})
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    hidden = "#pst-primary-sidebar, .bd-header-article, .mha-copy, #pst-secondary-sidebar, .prev-next-footer"
    assert tab.evaluate(f"[...document.querySelectorAll('{hidden}')].filter(e => e.checkVisibility()).length") == 0
    assert tab.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 794
    assert tab.locator("article h1").is_visible()
    ink = tab.evaluate(r"getComputedStyle(document.querySelector('article p')).color.match(/\d+/g).map(Number)")
    assert max(ink[:3]) < 60
