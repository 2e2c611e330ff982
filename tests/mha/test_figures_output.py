"""Chapter 2.5: the contributions add up, and W_O is what lets heads meet."""

import sys

import pytest
import torch

from mha.figures import output as figures
from mha.steps import merge_heads, output
from tests.mha.drawing import assert_frames_speak


@pytest.fixture(params=["zh", "en"])
def lang(request, monkeypatch):
    monkeypatch.setattr(sys.modules["mha.language"], "_chosen", request.param)
    return request.param


@pytest.mark.parametrize(("h", "d_k"), [(1, 1), (2, 4), (3, 2), (8, 8)])
def test_the_contributions_of_the_heads_add_up_to_the_concatenated_form(h, d_k):
    heads, W_O = figures.example(h, d_k, L=3)
    torch.testing.assert_close(figures.contributions(heads, W_O).sum(0), output(merge_heads(heads), W_O))


def test_a_contribution_is_one_head_times_its_rows_of_W_O():
    heads = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    W_O = torch.tensor([[1.0, 0, 0, -1], [0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    assert figures.contributions(heads, W_O)[:, 0].tolist() == [[1, 2, 0, -1], [4, 0, 3, 3]]


def test_without_W_O_a_head_moves_its_own_columns_only():
    heads, _ = figures.example(4, 2)
    expected = torch.block_diag(*[torch.ones(1, 2)] * 4)
    assert torch.equal(figures.reach(heads, None), expected)


def test_with_W_O_every_head_moves_every_column():
    heads, W_O = figures.example(4, 2)
    reach = figures.reach(heads, W_O)
    assert (reach > 0).all()
    torch.testing.assert_close(reach, W_O.abs().view(4, 2, 8).sum(1))


def test_one_head_has_at_most_d_v_directions(lang):
    for d_k in (1, 3, 8):
        text = figures.directions(d_k).get_label()
        assert (f"只有 {d_k} 个" if lang == "zh" else f"; {d_k} of its 8") in text


def test_a_width_that_h_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="d_model = 8 and h = 3"):
        figures.who_reaches(3)


@pytest.mark.parametrize(
    ("draw", "first", "last"),
    [
        (figures.blocks, {"h": 1, "d_k": 1}, {"h": 4, "d_k": 3}),
        (figures.stacked, {"h": 1, "d_k": 1}, {"h": 8, "d_k": 8}),
        (figures.who_reaches, {"h": 1}, {"h": 8, "step": figures.MIXED}),
        (figures.directions, {"d_k": 1}, {"d_k": 8}),
    ],
)
def test_every_frame_has_a_title_and_alt_text_one_size_and_no_missing_glyph(draw, first, last, lang, caplog):
    assert_frames_speak([lambda: draw(**first), lambda: draw(**last)], lang, caplog)
