"""Formulas are typeset while the book is built."""

import re
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

from book import formulas
from book.formulas import typeset
from book.notebooks import ROOT, read


def test_a_formula_becomes_html_with_mathml_for_screen_readers():
    page = typeset(r"\sqrt{d_k}", display=False)
    assert "<msqrt>" in page
    assert 'class="katex-html"' in page


def test_q_k_and_v_carry_their_colours_in_subscripts_too():
    page = typeset(r"QK^\top W_V", display=True)
    assert [f"mha-letter-{letter}" in page for letter in "QKVO"] == [True, True, True, False]


def test_a_mistake_in_tex_is_told():
    with pytest.raises(ValueError, match="KaTeX parse error"):
        typeset(r"\frac{1}{", display=False)


@pytest.mark.parametrize(
    ("tex", "after", "page", "left"),
    [
        ("x", "，得", '<span class="mha-tied">f，</span>', "得"),
        ("x", "）。得", '<span class="mha-tied">f）。</span>', "得"),
        ("x", " 得", "f", " 得"),
        ("x" * 40, "，得", "f", "，得"),
    ],
)
def test_no_line_starts_with_the_comma_after_a_short_formula(monkeypatch, tex, after, page, left):
    monkeypatch.setattr(formulas, "typeset", lambda tex, display: "f")
    formula = nodes.math(tex, tex)
    document = new_document("page")
    document += nodes.paragraph("", "", nodes.Text("由 "), formula, nodes.Text(after))
    formulas.keep_punctuation(document)
    translator = SimpleNamespace(body=[])
    with pytest.raises(nodes.SkipNode):
        formulas.visit_inline(translator, formula)
    assert translator.body == [page]
    assert document[0][2].astext() == left


def test_a_comma_is_tied_to_the_formula_before_it_not_to_a_like_one_elsewhere():
    long, short = nodes.math("", "x" * 40), nodes.math("", "x")
    document = new_document("page")
    document += nodes.paragraph("", "", long, nodes.Text("，"), short, nodes.Text("，"))
    formulas.keep_punctuation(document)
    assert [node.astext() for node in document[0]] == ["x" * 40, "，", "x", ""]
    assert short["after"] == "，"


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\text{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V", "softmax(Q Kᵀ/√d_k) V"),
        (r"\sum_{i=1}^{h} A_i \, W_O^{[i]} \ne 0", "∑_(i=1)^h A_i W_O^[i] ≠ 0"),
        (
            r"\begin{aligned} a &= \cos\theta_j \\ L &\xrightarrow{\text{view}} 2{,}362 \end{aligned}",
            "a = cosθ_j L → 2,362",
        ),
    ],
)
def test_a_formula_is_said_in_plain_characters(tex, text):
    assert formulas.as_text(tex) == text


def test_every_formula_of_the_book_is_said_without_tex():
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in read(path).cells:
            if cell.cell_type == "markdown":
                for tex in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", cell.source, re.S):
                    assert not set("\\{}$") & set(formulas.as_text("".join(tex)))
