"""The built site, served, and a browser to look at it with."""

import functools
import http.server
import threading

import pytest
from playwright.sync_api import sync_playwright

from book.browser import QUIET, find_chromium
from book.notebooks import ROOT
from book.site import SITE, build


def chromium(playwright) -> str:
    """The browser's path; without one no test is worth running."""
    try:
        return find_chromium(playwright)
    except SystemExit as missing:
        pytest.exit(f"the site was not tested: {missing} make test", returncode=1)


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(playwright), args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address():
    """The address of the built site."""
    build()
    handler = functools.partial(_Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def visit(browser, address):
    """Open a page; at the end, no console message of weight, no failed request and no foreign one is forgiven."""
    contexts, complaints = [], []

    def open_page(path, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("response", lambda r: complaints.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.on("request", lambda r: complaints.append(r.url) if foreign(r.url) else None)
        page.goto(f"{address}/{path}", wait_until="load")
        return page

    def foreign(url):
        return not url.startswith((address, "data:", "blob:"))

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def hold_back(tab, pattern):
    """What the page asks for from now on waits in this list until `let_pass`."""
    waiting = []
    tab.route(pattern, lambda route: waiting.append(route))
    return waiting


def let_pass(tab, waiting, **instead):
    """Let the one request that waits have its answer, or this one `instead`; returns when it has."""
    for _ in range(200):
        if waiting:
            break
        tab.wait_for_timeout(50)
    (route,) = waiting  # asked for once
    waiting.clear()
    with tab.expect_request_finished(lambda request: request.url == route.request.url):
        route.fulfill(**instead) if instead else route.continue_()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing about each request."""


def pages() -> list[str]:
    """Every page of the book, without language: chapters/1-concept.html …"""
    return [f"chapters/{path.stem}.html" for path in sorted((ROOT / "chapters").glob("*.ipynb"))]
