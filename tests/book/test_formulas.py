"""Formulas are typeset while the book is built."""

import pytest

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
