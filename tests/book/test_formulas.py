"""Formulas are typeset while the book is built."""

from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

from book import formulas
from book.formulas import typeset


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
