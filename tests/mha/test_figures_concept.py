"""Chapter 1's figures: the numbers behind them, and that they speak both languages without a missing glyph."""

import importlib
import logging
import warnings

import pytest
import torch
from matplotlib.figure import Figure

from mha import set_language
from mha.figures import concept, cover, display

language = importlib.import_module("mha.language")


@pytest.fixture(params=["zh", "en"])
def lang(request, monkeypatch):
    monkeypatch.setattr(language, "_chosen", None)
    set_language(request.param)
    return request.param


def drawn(fig: Figure, caplog) -> Figure:
    """The figure, once it has been drawn without a warning."""
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        display.png(fig)
    assert not caplog.records
    return fig


def test_one_head_brings_back_25_in_both_cases():
    assert [concept.ask(1, v)[0].item() for v in (concept.VALUES, concept.OTHER_VALUES)] == pytest.approx([25, 25])


def test_two_heads_tell_the_two_cases_apart():
    assert concept.ask(2, concept.VALUES)[0].flatten().tolist() == pytest.approx([10, 40], abs=0.01)
    assert concept.ask(2, concept.OTHER_VALUES)[0].flatten().tolist() == pytest.approx([20, 30], abs=0.01)


def test_three_heads_are_not_in_the_story():
    with pytest.raises(ValueError, match="h must be 1 or 2, got 3"):
        concept.ask(3, concept.VALUES)


@pytest.mark.parametrize("h", [2, 4, 8])
def test_heads_are_independent_only_in_the_middle(h):
    table = concept.who_changes(h)
    assert table["input"].all()
    assert table["output"].all()
    assert torch.equal(table["weights"], torch.eye(h, dtype=torch.bool))


def test_untrained_rows_sum_to_one_and_depend_on_the_seed_alone():
    A = concept.untrained(h=4, d_k=16, seed=0)
    assert A.shape == (4, 5, 5)
    assert torch.allclose(A.sum(-1), torch.ones(4, 5))
    torch.manual_seed(123)
    assert torch.equal(A, concept.untrained(h=4, d_k=16, seed=0))
    assert not torch.allclose(A, concept.untrained(h=4, d_k=16, seed=1))


def test_drawing_heads_leaves_the_readers_seed_alone():
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    concept.untrained(seed=3)
    assert torch.equal(torch.rand(1), expected)


def test_the_sentence_has_five_tokens(lang):
    assert len(concept.sentence()) == 5


@pytest.mark.parametrize(
    ("q", "zh", "en", "answer"),
    [("(4, 0)", "对上一个键", "meets one key", "10.0"), ("(0, 0)", "全体的平均", "mean of all", "25.0"),
     ("(4, 4)", "键之间", "falls between", "15.0")],
)  # fmt: skip
def test_look_up_says_what_returns(lang, caplog, q, zh, en, answer):
    fig = drawn(concept.look_up(q), caplog)
    assert (zh if lang == "zh" else en) in fig.get_suptitle()
    assert answer in display.alt_text(fig)
    assert q in display.alt_text(fig)


def test_two_situations_says_whether_the_cases_can_be_told_apart(lang, caplog):
    one, two = (display.alt_text(drawn(concept.two_situations(h), caplog)) for h in (1, 2))
    assert ("分不开" if lang == "zh" else "cannot be told apart") in one
    assert "10, 40" in two
    assert "20, 30" in two


def test_dependence_counts_its_cells(lang, caplog):
    fig = drawn(concept.dependence(4), caplog)
    assert all(n in display.alt_text(fig) for n in ("16", "4×4"))


@pytest.mark.parametrize("h", [1, 8])
def test_weight_maps_keep_one_size(lang, caplog, h):
    fig = drawn(concept.weight_maps(h), caplog)
    assert display.size(fig) == display.size(concept.weight_maps())
    assert concept.sentence()[0] in display.alt_text(fig)


@pytest.mark.parametrize(("h", "L"), [(8, 5), (1, 9)])
def test_the_cover_names_every_shape(lang, caplog, h, L):
    fig = drawn(cover.five_steps(h, L), caplog)
    alt = display.alt_text(fig)
    assert f"({h}, {L}, {512 // h})" in alt
    assert f"({h}, {L}, {L})" in alt
    assert f"({L}, 512)" in alt
    assert f"d_k = {512 // h}" in fig.get_suptitle()
