"""Search on the built site: what a reader types finds the pages that hold it, and nothing else."""

import pytest

from book.languages import LANGUAGES, language_of
from book.notebooks import ROOT, read
from book.search import INDEX, index
from book.site import SITE
from tests.site.conftest import pages

CHINESE = [
    "深度学习", "自注意力", "注意力机制", "多头", "缩放点积", "掩码", "因果掩码", "头数", "投影", "梯度消失",
    "键值缓存",
]  # fmt: skip
SHARED = ["d_k", "softmax", "W_O", "split_heads", "√d_k", "MultiHeadAttention"]
NONSENSE = {"zh": ["锟斤拷", "深度烤鱼", "qwxzv", "d_k 烤鱼"], "en": ["qwxzv", "zebra attention", "锟斤拷", "softmaxx"]}
RESULTS = "[data-search=page] .mha-results"


def holders(query, lang):
    """The pages whose sources, in this language, hold the query; found without the index."""
    held = set()
    for page in pages():
        cells = read(ROOT / page.replace(".html", ".ipynb")).cells
        said = " ".join(c.source for c in cells if language_of(c) in (None, lang)).lower()
        if query.lower().replace("√d_k", r"\sqrt{d_k}") in said:
            held.add(page)
    return held


def ask(tab, query):
    """Type a query into the results page; the pages found, as addresses from the language's root."""
    box = tab.locator("[data-search=page]")
    box.evaluate("box => delete box.dataset.query")
    box.locator("input").fill(query)
    tab.wait_for_function("q => document.querySelector('[data-search=page]').dataset.query === q", arg=query.strip())
    hrefs = tab.locator(f"{RESULTS} a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    return {href.split("#")[0].removeprefix("./") for href in hrefs}


@pytest.mark.parametrize(
    ("lang", "query"), [("zh", q) for q in CHINESE] + [(lang, q) for q in SHARED for lang in LANGUAGES]
)
def test_a_query_finds_every_page_that_holds_it_and_shows_where_in_a_tenth_of_a_second(visit, lang, query):
    tab = visit(f"{lang}/search.html")
    found, held = ask(tab, query), holders(query, lang)
    assert held <= found
    if held:
        marks = [text.lower() for text in tab.locator(f"{RESULTS} mark").all_text_contents()]
        assert marks
        assert set(marks) == {query.lower()}
        took = []  # the least of some: what else runs on the machine is not the search's doing
        for again in (query, f"{query} ", f" {query}", query):
            ask(tab, again)
            took.append(float(tab.locator("[data-search=page]").get_attribute("data-took")))
        assert min(took) <= 100
        for href in tab.locator(f"{RESULTS} a").evaluate_all("links => links.map(link => link.getAttribute('href'))"):
            page, anchor = href.removeprefix("./").split("#")
            assert f'id="{anchor}"' in (SITE / lang / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nonsense_finds_nothing_and_the_reader_is_told_so_in_the_pages_language(visit, lang):
    tab = visit(f"{lang}/search.html")
    for query in NONSENSE[lang]:
        assert ask(tab, query) == set()
        status = tab.locator("[data-search=page] [role=status]").inner_text()
        assert query in status
        assert {"zh": "没有找到", "en": "Nothing in the book"}[lang] in status


def test_chinese_is_found_inside_longer_runs_and_a_query_nowhere_whole_is_looked_for_in_pieces(visit):
    tab = visit("zh/chapters/cover.html")
    section = '<main><section id="{0}"><h1>{0}</h1><p>{1}</p></section></main>'
    book = [
        ("a.html", section.format("a", "它在深度学习里到处都是")),
        ("b.html", section.format("b", "先看深度，再谈学习")),
    ]
    tab.route(f"**/{INDEX}", lambda route: route.fulfill(body=index(book, "zh"), content_type="text/javascript"))
    tab.goto(tab.url.replace("chapters/cover.html", "search.html"))
    assert ask(tab, "深度学习") == {"a.html"}
    assert ask(tab, "学习深度") == {"a.html", "b.html"}
    assert "分开" in tab.locator("[data-search=page] [role=status]").inner_text()
    assert ask(tab, "深度强化学习") == set()


def test_width_case_and_the_way_a_symbol_is_typed_make_no_difference(visit):
    tab = visit("zh/search.html")
    expected = ask(tab, "softmax")
    assert expected
    assert ask(tab, "ＳＯＦＴＭＡＸ") == ask(tab, "Softmax") == expected
    expected = ask(tab, "d_k")
    assert ask(tab, "dk") == ask(tab, "ｄ＿ｋ") == ask(tab, "$d_{k}$") == expected
    assert ask(tab, "头数h") == ask(tab, "头数 h")


def test_english_words_are_found_in_all_their_forms(visit):
    tab = visit("en/search.html")
    expected = ask(tab, "projection")
    assert "chapters/2-1-projection.html" in expected
    assert expected <= ask(tab, "projecting")
    assert ask(tab, "masks") >= holders("masked", "en")
    assert ask(tab, "the mask") == ask(tab, "mask")


def test_traditional_characters_find_the_simplified_text(visit):
    tab = visit("zh/search.html")
    expected = ask(tab, "注意力权重")
    assert expected
    assert ask(tab, "注意力權重") == expected
    assert ask(tab, "縮放點積") == ask(tab, "缩放点积")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_search_box_is_worked_by_keyboard_from_any_page(visit, lang):
    tab = visit(f"{lang}/chapters/cover.html")
    requests = []
    tab.on("request", lambda request: requests.append(request.url.rsplit("/", 1)[1]))
    assert not tab.locator("#mha-search").is_visible()
    tab.keyboard.press("Control+k")
    tab.keyboard.type("d_k")
    tab.locator("#mha-search .mha-results a").first.wait_for()
    assert [name for name in requests if name != "favicon.svg"] == [INDEX], (
        "the index comes when the reader searches, and nothing else does"
    )
    tab.keyboard.press("ArrowDown")
    href = tab.evaluate("document.activeElement.href")
    assert "#" in href
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("Enter")
    tab.wait_for_url(href)
    assert tab.locator(f"[id='{href.split('#')[1]}']").count() == 1


@pytest.mark.parametrize("lang", LANGUAGES)
def test_enter_in_the_search_box_leads_to_the_results_page_and_escape_closes_it(visit, lang):
    tab = visit(f"{lang}/chapters/1-concept.html")
    tab.locator(".search-button__button").locator("visible=true").first.click()
    assert tab.locator("#mha-search input").evaluate("input => input === document.activeElement")
    tab.keyboard.press("Escape")
    assert not tab.locator("#mha-search").is_visible()
    tab.keyboard.press("Control+k")
    tab.keyboard.type("softmax")
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"**/{lang}/search.html?q=softmax")
    tab.locator(f"{RESULTS} a").first.wait_for()
    assert tab.locator("h1").inner_text().startswith({"zh": "搜索", "en": "Search"}[lang])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_search_works_from_a_folder_without_a_server(browser, address, lang):
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(f"{SITE.as_uri()}/{lang}/search.html?q=d_k")
    tab.locator(f"{RESULTS} a").first.click()
    tab.wait_for_load_state()
    assert tab.url.startswith(f"{SITE.as_uri()}/{lang}/chapters/")
    context.close()


def test_search_obeys_a_strict_content_security_policy(browser, address):
    context = browser.new_context()  # what else stands on the page may complain; the search works
    tab = context.new_page()
    policy = {"content-type": "text/html", "content-security-policy": "script-src 'self'"}
    page = (SITE / "zh" / "search.html").read_text(encoding="utf-8")
    tab.route("**/search.html*", lambda route: route.fulfill(body=page, headers=policy))
    tab.goto(f"{address}/zh/search.html?q=掩码")
    tab.locator(f"{RESULTS} mark").first.wait_for()
    assert tab.locator(f"{RESULTS} mark").first.inner_text() == "掩码"
    context.close()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_an_index_that_does_not_arrive_is_said_and_asked_for_again(visit, lang):
    tab = visit(f"{lang}/chapters/cover.html")
    empty = {"body": "", "headers": {"cache-control": "no-store", "content-type": "text/javascript"}}
    tab.route(f"**/{INDEX}*", lambda request: request.fulfill(**empty))
    tab.keyboard.press("Control+k")
    tab.keyboard.type("d")
    said = tab.get_by_text({"zh": "搜索索引没有载入", "en": "The search index did not load"}[lang])
    said.wait_for()
    tab.unroute(f"**/{INDEX}*")
    tab.keyboard.type("_k")
    tab.locator("#mha-search .mha-results a").first.wait_for()
    assert said.count() == 0


def test_no_page_loads_the_search_it_does_not_use_and_the_index_is_small(address):
    for page in SITE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not [old for old in ("searchtools", "language_data", "searchindex") if old in text], page
        assert INDEX not in text, "the index is for readers who search"
    for lang in LANGUAGES:
        assert (SITE / lang / INDEX).stat().st_size < 250_000
