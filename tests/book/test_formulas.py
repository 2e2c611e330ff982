"""Formulas are typeset while the book is built."""

from types import SimpleNamespace

import pytest
from docutils import nodes

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
    ("before", "after", "glued"),
    [("由 ", "，得", "f\N{WORD JOINER}"), ("（", " 行", "\N{WORD JOINER}f"), ("由 ", " 得", "f"), ("", "", "f")],
)
def test_no_line_starts_with_a_comma_after_a_formula_or_ends_with_a_bracket_before_it(
    monkeypatch, before, after, glued
):
    monkeypatch.setattr(formulas, "typeset", lambda tex, display: "f")
    formula = nodes.math("", "x")
    paragraph = nodes.paragraph("", "", nodes.Text(before), formula, nodes.Text(after))
    assert paragraph
    translator = SimpleNamespace(body=[])
    with pytest.raises(nodes.SkipNode):
        formulas.visit_inline(translator, formula)
    assert translator.body == [glued]
