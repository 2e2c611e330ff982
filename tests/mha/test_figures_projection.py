"""The figures of chapter 2.1: their numbers, their words in both languages, and no warning while they are drawn."""

import itertools
import logging

import pytest
import torch

from mha import MultiHeadAttention
from mha.figures import projection
from tests.mha.drawing import drawn

FRAMES = {
    "three_copies": (projection.three_copies, [{}]),
    "columns": (projection.columns, [{"h": h, "d_k": d} for h, d in itertools.product([1, 4], [1, 3])]),
    "to_scale": (projection.to_scale, [{"h": h, "d_k": d} for h, d in itertools.product([1, 8], [16, 128])]),
    "symmetry": (projection.symmetry, [{"d_k": 1, "seed": 3}, {"d_k": 64, "seed": 0}]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_speaks_the_readers_language_draws_without_a_warning_and_has_one_size(name, spoken, caplog):
    draw, choices = FRAMES[name]
    sizes = set()
    with caplog.at_level(logging.WARNING):
        for chosen in choices:
            fig = draw(**chosen)
            title, alt = drawn(fig)
            sizes.add(tuple(fig.get_size_inches()))
            assert len(title) <= (48 if spoken == "en" else 32)
            assert any("\u4e00" <= c <= "\u9fff" for c in title + alt) is (spoken == "zh")
    assert len(sizes) == 1
    assert not caplog.records


def test_the_whole_numbers_multiply_to_what_the_page_shows():
    X, W = projection.toy(h=2, d_k=2)
    assert (X @ W).tolist() == [[5, 2, 2, 1], [2, 2, 1, 3], [3, 3, 4, 4]]


def test_no_two_heads_of_the_example_are_alike():
    for h, d_k in ((2, 1), (3, 1), (4, 1), (2, 2), (3, 2), (4, 2), (3, 3), (4, 3)):
        heads = projection.toy(h, d_k)[1].unflatten(-1, (h, d_k)).unbind(1)
        assert not any(torch.equal(a, b) for a, b in itertools.combinations(heads, 2)), (h, d_k)


@pytest.mark.parametrize(("d_model", "h", "d_k", "d_v"), [(512, 8, 64, 64), (512, 8, 32, 64), (12, 5, 3, 7)])
def test_the_parameters_written_under_the_matrix_are_those_of_the_layer(d_model, h, d_k, d_v):
    layer = MultiHeadAttention(d_model, h, d_k=d_k, d_v=d_v)
    assert projection.parameters(d_model, h, d_k, d_v) == sum(p.numel() for p in layer.parameters())


def test_the_running_example_has_1_050_624_parameters_for_every_h():
    assert {projection.parameters(512, h, 512 // h, 512 // h) for h in (1, 2, 4, 8, 16)} == {1_050_624}


def test_one_matrix_for_q_and_k_makes_the_scores_symmetric_and_two_do_not():
    for seed in range(4):
        shared, own = projection.meet(8, seed)
        torch.testing.assert_close(shared, shared.T)
        assert shared.argmax() % 7 == 0  # the largest score of all lies on the diagonal
        assert (own - own.T).abs().max() > 0.1
