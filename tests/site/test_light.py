"""Pages are light: little to fetch, nothing that blocks or jumps, formulas as they should look."""

import gzip
import re
from urllib.parse import urlsplit

import pytest

from book.finish import ASSETS
from book.languages import LANGUAGES
from book.site import SITE
from tests.site.conftest import pages

EVERY = [(lang, page) for page in pages() for lang in LANGUAGES]
BUDGET = 250 * 1024


@pytest.fixture
def fetched(visit, address):
    """Open a page as a phone does and weigh everything it asks for, text as a compressing server sends it."""

    def weigh(path):
        tab = visit("versions.html", viewport={"width": 390, "height": 844})
        tab.wait_for_load_state("networkidle")  # nothing of the page before is counted
        total, answers = {}, []
        tab.on("response", lambda answer: answers.append(answer) if answer.url.startswith(address) else None)
        tab.goto(f"{address}/{path}", wait_until="load")
        tab.wait_for_load_state("networkidle")
        for answer in answers:
            body = (SITE / urlsplit(answer.url).path.lstrip("/")).read_bytes() if answer.status == 200 else b""
            text = re.match(r"text/|application/(javascript|json)|image/svg", answer.headers.get("content-type", ""))
            total[answer.url] = len(gzip.compress(body, 6)) if text else len(body)
        return total

    return weigh


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_a_first_visit_stays_within_the_budget(fetched, lang, page):
    total = fetched(f"{lang}/{page}")
    assert len(total) > 3
    assert sum(total.values()) <= BUDGET, sorted(total.items(), key=lambda item: -item[1])


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_one_stylesheet_no_font_file_and_no_script_that_blocks(visit, lang, page):
    tab = visit(f"{lang}/{page}")
    assert tab.locator("link[rel=stylesheet]").count() == 1
    assert tab.locator("script[src]:not([defer], [async])").count() == 0
    asked = tab.evaluate("performance.getEntriesByType('resource').map(r => r.name)")
    assert [name for name in asked if re.search(r"\.(woff2?|ttf|otf)\b|fontawesome|bootstrap", name)] == []


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_nothing_jumps_while_a_page_loads_and_is_read(visit, address, lang, page):
    tab = visit("versions.html", viewport={"width": 390, "height": 844})
    tab.add_init_script(
        """window.jumps = []; new PerformanceObserver(list => {
            for (const e of list.getEntries()) jumps.push([e.value, e.sources.map(s => s.node?.outerHTML)])
        }).observe({type: 'layout-shift', buffered: true})"""
    )
    tab.goto(f"{address}/{lang}/{page}", wait_until="load")
    tab.evaluate("""async () => {
        for (let y = 0; y < document.body.scrollHeight; y += 800) {
            scrollTo(0, y);
            await new Promise(requestAnimationFrame);
        }
        await new Promise(r => setTimeout(r, 100));
    }""")
    jumps = tab.evaluate("jumps")
    assert sum(value for value, _ in jumps) < 0.01, jumps


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_the_first_figure_comes_at_once_the_others_when_needed_and_all_keep_their_place(visit, lang, page):
    # as it is sent: a lab takes the place of its still
    images = visit(f"{lang}/{page}", java_script_enabled=False).locator("article img").all()
    for position, image in enumerate(images):
        assert image.get_attribute("loading") == ("lazy" if position else None)
        assert int(image.get_attribute("width")) > 0
        assert int(image.get_attribute("height")) > 0


@pytest.mark.parametrize(("lang", "page"), EVERY)
def test_formulas_look_as_with_all_of_katexs_fonts(visit, lang, page):
    """The fonts were cut to the letters in use: every formula must be as wide with the whole fonts."""
    tab = visit(f"{lang}/{page}")
    widths = "[...document.querySelectorAll('.katex-html .base')].map(e => e.getBoundingClientRect().width)"
    tab.evaluate("document.fonts.ready")
    cut = tab.evaluate(widths)
    faces = re.findall(r"@font-face\{[^}]*\}", (ASSETS / "katex" / "katex.min.css").read_text())
    whole = []
    for face in faces:
        family, style, weight, file = re.search(
            r"font-family:\"?(\w+)\"?;font-style:(\w+);font-weight:(\d+);src:url\(fonts/([\w-]+\.woff2)\)", face
        ).groups()
        whole.append([family, style, weight, list((ASSETS / "katex" / "fonts" / file).read_bytes())])
    tab.evaluate(
        """async (faces) => {
            for (const [family, style, weight, bytes] of faces) {
                const face = new FontFace(family, new Uint8Array(bytes).buffer, {style, weight});
                document.fonts.add(await face.load());
            }
            await document.fonts.ready;
        }""",
        whole,
    )
    assert tab.evaluate(widths) == pytest.approx(cut, abs=0.01)
