"""Live figures on the built page: the frame shown is the one for the chosen values, and the page stays put."""

import itertools
import json
import re

import pytest

import mha.language
from book.languages import LANGUAGES
from book.notebooks import read
from mha.figures import splitting
from tests.site.conftest import ROOT, hold_back, let_pass, pages

LIVE = [page for page in pages() if any(
    "explore(" in cell.source for cell in read(ROOT / page.replace(".html", ".ipynb")).cells if cell.cell_type == "code"
)]  # fmt: skip


def figures_on(tab):
    return tab.locator(".mha-explore").all()


def settle(tab, figure, said):
    tab.wait_for_function("([figure, said]) => figure.dataset.shown === said", arg=[figure.element_handle(), said])


def spoken(data, chosen):
    return ", ".join(f"{c['name']} = {c['values'][i]}" for c, i in zip(data["choices"], chosen, strict=True))


def frame_for(data, chosen):
    """The frame of a combination, found without the page's own arithmetic."""
    every = list(itertools.product(*(range(len(choice["values"])) for choice in data["choices"])))
    assert len(every) == len(data["frames"])
    return data["frames"][every.index(tuple(chosen))]


def in_order(values):
    """Numbers from small to large; words as they are."""
    return sorted(values, key=float) if all(re.fullmatch(r"-?[\d.]+", value) for value in values) else values


@pytest.mark.parametrize("page", LIVE)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_slider_moved_by_keyboard_shows_its_frame_and_the_page_never_jumps(visit, lang, page):
    tab = visit(f"{lang}/{page}")
    # formulas settle when their fonts arrive, sections when they come near; what follows is the sliders' doing
    tab.evaluate("document.fonts.ready")
    tab.evaluate("document.querySelectorAll('section').forEach((s) => { s.style.contentVisibility = 'visible'; })")
    assert figures_on(tab)
    for figure in figures_on(tab):
        data = json.loads(figure.locator("script").text_content())
        sliders = figure.locator("input[type=range]").all()
        assert len(sliders) == len(data["choices"])
        chosen = [int(slider.input_value()) for slider in sliders]
        seen = {figure.locator("img").get_attribute("src")}
        assert figure.locator("img").get_attribute("src") == frame_for(data, chosen)["src"]
        height = tab.evaluate("document.documentElement.scrollHeight")
        for i, choice in enumerate(data["choices"]):
            assert choice["values"] == in_order(choice["values"])
            if chosen[i]:
                sliders[i].press("Home")
                chosen[i] = 0
                settle(tab, figure, spoken(data, chosen))
            for _ in choice["values"][1:]:
                sliders[i].press("ArrowRight")
                chosen[i] += 1
                settle(tab, figure, spoken(data, chosen))
                frame = frame_for(data, chosen)
                assert sliders[i].get_attribute("aria-valuetext") == choice["values"][chosen[i]]
                assert figure.locator("output").nth(i).inner_text() == choice["values"][chosen[i]]
                status = figure.locator(".mha-status").text_content()
                if "error" in frame:
                    assert frame["error"] in figure.locator(".mha-refusal").inner_text()
                    assert frame["error"] in status
                else:
                    assert figure.locator("img").get_attribute("src") == frame["src"]
                    assert figure.locator("img").get_attribute("alt") == frame["alt"]
                    assert frame["alt"] in status
                    assert figure.locator("img").evaluate("i => i.complete && i.naturalWidth > 100")
                    seen.add(frame["src"])
                assert tab.evaluate("document.documentElement.scrollHeight") == height
            assert spoken(data, chosen).startswith(data["choices"][0]["name"])
        assert len(seen) > 1, "the figure never changed"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_a_frame_shows_is_what_draw_draws_for_these_values(visit, monkeypatch, lang):
    tab = visit(f"{lang}/chapters/2-2-splitting.html")
    figure = figures_on(tab)[0]
    data = json.loads(figure.locator("script").text_content())
    monkeypatch.setattr(mha.language, "_chosen", lang)
    for chosen in ((3, 0), (2, 1)):
        for i, at in enumerate(chosen):
            figure.locator("input[type=range]").nth(i).fill(str(at))
        settle(tab, figure, spoken(data, chosen))
        h, split = (choice["values"][at] for choice, at in zip(data["choices"], chosen, strict=True))
        drawn = splitting.where_numbers_go(h=int(h), split=split)
        assert figure.locator("img").get_attribute("alt") == drawn.get_label()


def test_a_thumb_moves_a_slider_on_a_phone(visit):
    tab = visit(
        "zh/chapters/2-2-splitting.html", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    figure = figures_on(tab)[0]
    slider = figure.locator("input[type=range]").first
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box["height"] >= 30
    assert box["width"] >= 90
    tab.touchscreen.tap(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    tab.wait_for_function("figure => figure.dataset.shown?.startsWith('h = 12')", arg=figure.element_handle())
    assert slider.get_attribute("aria-valuetext") == "12"


def test_frames_are_fetched_only_when_asked_for(visit):
    tab = visit("en/chapters/2-2-splitting.html")
    loaded = "performance.getEntriesByType('resource').filter(r => r.name.includes('/_frames/')).length"
    first = tab.evaluate(loaded)
    assert first <= tab.locator("article img").count()
    figures_on(tab)[0].locator("input").first.press("ArrowLeft")  # 3 heads; 5 are impossible
    tab.wait_for_function(f"() => {loaded} > {first}")
    assert tab.evaluate(loaded) == first + 1


@pytest.mark.parametrize("lang", LANGUAGES)
def test_without_javascript_the_first_frame_shows_and_no_dead_slider(visit, lang):
    tab = visit(f"{lang}/chapters/2-2-splitting.html", java_script_enabled=False)
    figure = tab.locator(".mha-explore").first
    assert figure.locator("img").is_visible()
    assert figure.locator("img").get_attribute("alt")
    assert not figure.locator("input").first.is_visible()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_frame_that_does_not_arrive_leaves_no_old_picture_and_is_asked_for_again(visit, lang):
    tab = visit(f"{lang}/chapters/2-2-splitting.html")
    figure = figures_on(tab)[0]
    data = json.loads(figure.locator("script").text_content())
    slider, picture, refusal = (figure.locator(part) for part in ("input >> nth=0", "img", ".mha-refusal"))
    tab.route("**/_frames/*", lambda request: request.fulfill(body="no picture"))
    slider.fill("1")
    settle(tab, figure, spoken(data, (1, 0)))
    assert not picture.is_visible()
    assert refusal.inner_text() == data["missing"]
    assert data["missing"] in figure.locator(".mha-status").text_content()
    tab.unroute("**/_frames/*")
    for at in (0, 1):
        slider.fill(str(at))
        settle(tab, figure, spoken(data, (at, 0)))
        assert picture.is_visible()
        assert picture.get_attribute("alt") == frame_for(data, (at, 0))["alt"]
        assert not refusal.is_visible()
    assert figure.get_attribute("aria-busy") is None


def test_a_frame_that_fails_late_says_nothing_about_a_newer_choice(visit):
    tab = visit("en/chapters/2-2-splitting.html")
    figure = figures_on(tab)[0]
    data = json.loads(figure.locator("script").text_content())
    name = frame_for(data, (1, 0))["src"].split("/")[-1]
    waiting = hold_back(tab, f"**/_frames/{name}")
    figure.locator("input").first.fill("1")
    tab.wait_for_function("figure => figure.ariaBusy === 'true'", arg=figure.element_handle())
    figure.locator("input").first.fill("0")
    settle(tab, figure, spoken(data, (0, 0)))
    let_pass(tab, waiting, body="no picture")
    tab.wait_for_timeout(300)  # time enough to say something
    assert figure.locator("img").is_visible()
    assert figure.locator(".mha-status").text_content().endswith(frame_for(data, (0, 0))["alt"])


def test_a_slow_frame_never_replaces_a_newer_choice(visit):
    tab = visit("en/chapters/2-2-splitting.html")
    figure = figures_on(tab)[0]
    data = json.loads(figure.locator("script").text_content())
    slider = figure.locator("input").first
    for at in (1, 2, 3, 2, 1, 0, 5):
        slider.fill(str(at))
    settle(tab, figure, spoken(data, (5, 0)))
    tab.wait_for_timeout(300)
    assert figure.locator("img").get_attribute("src") == frame_for(data, (5, 0))["src"]


@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("page", LIVE)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_slider_stands_on_one_line_with_its_name_and_its_value(visit, lang, page, width):
    tab = visit(f"{lang}/{page}", viewport={"width": width, "height": 900})
    broken = """[...document.querySelectorAll(".mha-slider")].filter((slider) => {
        const boxes = [...slider.children].map((part) => part.getBoundingClientRect());
        return Math.max(...boxes.map((b) => b.top)) >= Math.min(...boxes.map((b) => b.bottom));
    }).map((slider) => slider.innerText)"""
    assert tab.locator(".mha-slider").count()
    assert tab.evaluate(broken) == []
