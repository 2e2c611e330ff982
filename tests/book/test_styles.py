"""The stylesheet of the site: what no page uses is not in it, what one uses is."""

import base64
import io
import re

import pytest
from fontTools.ttLib import TTFont

from book.finish import ASSETS
from book.site import ROOT
from book.styles import bundle, formula_letters, names, script_names
from mha.figures import HEADS
from tests.mha.test_legible import FILTER

PAGE = '<nav class="bar wide" id="top"><a href="#">x</a></nav>'


def test_figures_are_turned_dark_as_the_tests_of_their_words_turn_them():
    assert FILTER in (ASSETS / "book.css").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "place", ["book/assets/book.css", "book/paper/print.css", "book/cards.py", "mha/widgets/lab/lab.css"]
)
def test_a_head_has_one_colour_in_figures_pages_paper_cards_and_lab(place):
    told = re.findall(r"\bh(\d)\"?: *\"?(#[0-9a-f]{6})", (ROOT / place).read_text(encoding="utf-8"))
    light = dict(reversed(told))  # the first of each is the light page's
    assert len(light) >= 4
    assert light == {i: HEADS[int(i)].lower() for i in light}


@pytest.fixture
def shrink(tmp_path):
    def run(css, page=PAGE, **more):
        sheet = tmp_path / "sheet.css"
        sheet.write_text(css)
        return bundle([sheet], names(page) | script_names(more.pop("script", "")), {}, more.pop("words", ()))

    return run


@pytest.mark.parametrize(
    "rule",
    [
        ".bar{color:red}", "#top{color:red}", "nav a{color:red}", ".bar.wide>a:hover{color:red}", ":root{color:red}",
        "html[data-theme=dark] .bar{color:red}", ".bar:not(.absent) a{color:red}", ":is(.absent,.wide) a{color:red}",
        "a::after{content:\"\"}", "@media (min-width: 9px){.bar{color:red}}",
    ],
)  # fmt: skip
def test_a_rule_that_a_page_uses_stays(shrink, rule):
    assert shrink(rule) == rule


@pytest.mark.parametrize(
    "rule",
    [
        ".absent{color:red}", "#absent{color:red}", "table{color:red}", ".bar .absent{color:red}", "nav > p{color:red}",
        ":is(.absent, table) a{color:red}", "@media print{.absent{color:red}}", "/* nothing */", ".bar{}",
    ],
)  # fmt: skip
def test_a_rule_that_no_page_uses_goes(shrink, rule):
    assert shrink(rule) == ""


def test_of_a_list_of_selectors_the_used_ones_stay(shrink):
    assert shrink(".absent, .bar, p { color : red }") == ".bar{color:red}"


def test_a_class_that_only_a_script_sets_counts_as_used(shrink):
    assert shrink(".opened{color:red}", script='e.classList.add("opened")') == ".opened{color:red}"


def test_custom_properties_that_nothing_reads_go_with_those_that_only_they_read(shrink):
    css = ":root{--a:1px;--b:var(--a);--c:2px}.bar{width:var(--c)}"
    assert shrink(css) == ":root{--c:2px}\n.bar{width:var(--c)}"
    assert shrink(css, words=["style.getPropertyValue('--b')"]).startswith(":root{--a:1px;--b:var(--a);--c:2px}")


def test_icon_fonts_are_left_out_and_animations_stay_only_where_they_play(shrink):
    assert shrink('.bar::before{font-family:"Font Awesome 6 Free";content:"x"}') == ""
    assert shrink("@keyframes spin{to{opacity:0}}") == ""
    assert "@keyframes spin" in shrink("@keyframes spin{to{opacity:0}}.bar{animation:spin 1s}")


def test_a_missing_file_is_named(shrink):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.png"):
        shrink(".bar{background:url(nowhere.png)}")


def test_each_font_of_formulas_holds_the_letters_it_must_show_and_no_others():
    page = (
        '<span class="katex-html" aria-hidden="true"><span class="base"><span class="mord mathnormal">d</span>'
        '<span class="delimsizing size1">(</span><span class="sizing reset-size6 size3"><span class="mord">2</span>'
        "</span></span></span>, not in a formula"
    )
    letters = formula_letters(page)
    assert letters == {"Math-Italic": {"d"}, "Size1-Regular": {"("}, "Main-Regular": {"2"}}
    css = bundle([ASSETS / "katex" / "katex.min.css"], names(page), letters)
    faces = re.findall(r"@font-face\{.*?font-family:(\w+).*?base64,([^\"]+)", css)
    shown = {family: set(TTFont(io.BytesIO(base64.b64decode(data))).getBestCmap()) for family, data in faces}
    assert shown == {"KaTeX_Math": {ord("d")}, "KaTeX_Size1": {ord("(")}, "KaTeX_Main": {ord("2")}}
