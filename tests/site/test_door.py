"""The way in and the way back: the front door, /zh/ and /en/, the page for what is not there, sitemap, robots."""

import functools
import threading
import xml.etree.ElementTree as ET
from http.server import ThreadingHTTPServer

import pytest

from book import site
from book.door import robots, sitemap
from book.languages import LANGUAGES
from book.site import SITE
from tests.site.conftest import pages

PLACE = "https://reader.example/book/"


@pytest.fixture
def arrive(browser, address):
    """A new reader, with a browser in some language, comes to the front door."""
    contexts = []

    def open_door(locale, **options):
        context = browser.new_context(locale=locale, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.goto("about:blank")
        tab.goto(f"{address}/")
        return tab

    yield open_door
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("locale", "lang"), [("zh-CN", "zh"), ("zh-TW", "zh"), ("en-US", "en"), ("en-GB", "en")])
def test_the_front_door_opens_in_the_browsers_language_and_back_leads_out(arrive, locale, lang):
    tab = arrive(locale)
    tab.wait_for_url(f"**/{lang}/chapters/cover.html")
    tab.go_back()
    assert tab.url == "about:blank"


def test_the_front_door_remembers_what_the_reader_chose(arrive, address):
    tab = arrive("en-US")
    tab.wait_for_url("**/en/chapters/cover.html")
    tab.locator("[class*='switch-to-zh']").first.click()
    tab.wait_for_url("**/zh/chapters/cover.html*")
    tab.goto(f"{address}/")
    tab.wait_for_url("**/zh/chapters/cover.html")
    assert tab.url == f"{address}/zh/chapters/cover.html"


@pytest.mark.parametrize("options", [{"locale": "fr-FR"}, {"locale": "zh-CN", "java_script_enabled": False}])
def test_who_reads_neither_language_or_runs_no_script_chooses_at_the_door(arrive, address, options):
    tab = arrive(**options)
    tab.wait_for_timeout(300)
    assert tab.url == f"{address}/"
    assert tab.locator("nav a").all_inner_texts() == ["多头注意力\n用中文阅读", "Multi-Head Attention\nRead in English"]
    tab.locator("[data-language=zh]").click()
    tab.wait_for_url("**/zh/chapters/cover.html")
    tab.go_back()
    assert tab.url == ("about:blank" if options["locale"] == "fr-FR" else f"{address}/")


@pytest.fixture
def lost(browser, address):
    """Open the 404 page as a host shows it, at the address that was asked for."""
    context = browser.new_context(locale="en-US")

    def show(asked, page=None):
        tab = context.new_page()
        body = page or (SITE / "404.html").read_text(encoding="utf-8")
        tab.route("**/*", lambda route: route.fulfill(status=404, body=body, content_type="text/html"))
        tab.goto(asked)
        return tab

    yield show
    context.close()


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("place", ["http://host.example/", "http://host.example/courses/attention/"])
def test_a_lost_reader_is_told_so_in_the_language_asked_for_and_led_back_from_any_depth(lost, lang, place):
    tab = lost(f"{place}{lang}/chapters/deep/er/nowhere.html")
    assert tab.locator("h1:visible").all_inner_texts() == [{"zh": "没有这一页", "en": "No such page"}[lang]]
    assert tab.title() == tab.locator("h1:visible").inner_text()
    hrefs = tab.locator("a:visible").evaluate_all("links => links.map(link => link.href)")
    assert hrefs == [f"{place}{lang}/chapters/cover.html", f"{place}{lang}/search.html"]


def test_a_lost_reader_outside_both_languages_is_told_in_both_and_a_configured_path_is_kept(lost):
    assert lost("http://host.example/nowhere").locator("h1:visible").count() == 2
    built = (SITE / "404.html").read_text(encoding="utf-8")
    tab = lost(
        "http://host.example/book/a/b", built.replace('"/zh/', '"/book/zh/').replace('base="/"', 'base="/book/"')
    )
    assert tab.locator("a").first.evaluate("link => link.href") == "http://host.example/book/zh/chapters/cover.html"


def test_the_books_own_server_shows_the_page_for_what_is_not_there(browser, address):
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(site._Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context()
    tab = context.new_page()
    answer = tab.goto(f"http://127.0.0.1:{server.server_port}/en/chapters/nowhere.html")
    assert answer.status == 404
    assert tab.locator("h1:visible").inner_text() == "No such page"
    tab.locator("a:visible").first.click()
    tab.wait_for_url("**/en/chapters/cover.html")
    context.close()
    server.shutdown()


def test_the_sitemap_lists_every_page_in_both_languages_with_the_other_beside_it():
    names = [page.removesuffix(".html") for page in pages()]
    root = ET.fromstring(sitemap(PLACE, names, "chapters/cover"))
    space = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9", "x": "http://www.w3.org/1999/xhtml"}
    listed = {row.findtext("s:loc", namespaces=space): row for row in root.findall("s:url", space)}
    assert set(listed) == {f"{PLACE}{lang}/{page}" for lang in LANGUAGES for page in pages()}
    beside = listed[f"{PLACE}zh/chapters/4-code.html"].findall("x:link", space)
    assert {link.get("hreflang"): link.get("href") for link in beside} == {
        "zh-CN": f"{PLACE}zh/chapters/4-code.html",
        "en": f"{PLACE}en/chapters/4-code.html",
        "x-default": f"{PLACE}en/chapters/4-code.html",
    }
    assert robots(PLACE).endswith(f"Sitemap: {PLACE}sitemap.xml\n")
    assert robots(None) == "User-agent: *\nAllow: /\n"


def test_a_site_without_an_address_has_no_sitemap_but_all_else(address):
    assert not (SITE / "sitemap.xml").exists()
    assert (SITE / "robots.txt").read_text() == robots(None)
    assert (SITE / "favicon.ico").read_bytes()[:4] == b"\0\0\1\0"
    for lang in LANGUAGES:
        assert (SITE / lang / "_static" / "apple-touch-icon.png").read_bytes()[1:4] == b"PNG"
