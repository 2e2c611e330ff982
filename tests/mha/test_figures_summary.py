"""Chapter 5: the cost formulas hold for the real module, and the table is the paper's."""

import sys

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import mha
from mha.figures import summary as figures
from tests.mha.drawing import assert_frames_speak


@pytest.fixture(params=["zh", "en"])
def lang(request, monkeypatch):
    monkeypatch.setattr(sys.modules["mha.language"], "_chosen", request.param)
    return request.param


@pytest.mark.parametrize(("h", "d_k", "d_v"), [(1, 32, 32), (4, 8, 8), (3, 5, 7), (8, 16, 2)])
@pytest.mark.parametrize("bias", [True, False])
def test_the_cost_formulas_are_what_the_module_has_and_does(h, d_k, d_v, bias):
    attention = mha.MultiHeadAttention(32, h, d_k=d_k, d_v=d_v, bias=bias)
    real = sum(p.numel() for p in attention.parameters())
    assert real == figures.parameters(32, h, d_k, d_v, bias=bias)
    with FlopCounterMode(display=False) as counter:
        _, A = attention(torch.zeros(1, 10, 32), need_weights=True)
    assert counter.get_total_flops() == sum(figures.flops(10, 32, h, d_k, d_v))
    assert A.numel() == figures.score_numbers(h, 10)


def test_parameters_do_not_depend_on_h_only_while_h_times_d_k_stays():
    assert {figures.parameters(512, h, 512 // h) for h in (1, 2, 8, 64)} == {1_050_624}
    assert figures.parameters(512, 16, 64, bias=False) == 2 * figures.parameters(512, 8, 64, bias=False)


def test_both_terms_of_the_work_are_equal_at_twice_the_model_width():
    projections, attention = figures.flops(2 * 512, 512, 8, 64)
    assert projections == attention


def test_the_parameter_counts_of_row_B_follow_by_arithmetic():
    for row in figures.TABLE_3:
        if row.name == "B":
            assert round(65 - 18 * 2 * 512 * 8 * (64 - row.d_k) / 1e6) == row.params


def test_row_A_keeps_the_total_width():
    assert {row.h * row.d_k for row in figures.TABLE_3 if row.name != "B"} == {512}


def test_numbers_are_shown_in_the_largest_unit_that_fits():
    assert figures._unit(8 * 2**20, 1024, ("B", "KiB", "MiB", "GiB")) == "8 MiB"
    assert figures._times(1) == "×1"
    assert figures._times(213.3) == "×213"
    assert figures._times(1 / 8) == "×1/8"


def test_the_calculator_tells_its_numbers(lang):
    fig = figures.calculator(16, 32, 512)
    assert all(word in fig.get_label() for word in ("1,050,624", "1.61 GFLOP", "16 MiB", "×1", "×2"))


@pytest.mark.parametrize(
    ("draw", "first", "last"),
    [
        (figures.table3, {"vary": "h"}, {"vary": "d_k"}),
        (figures.calculator, {"h": 1, "d_k": 16, "L": 128}, {"h": 32, "d_k": 128, "L": 4096}),
    ],
)
def test_every_frame_has_a_title_and_alt_text_one_size_and_no_missing_glyph(draw, first, last, lang, caplog):
    assert_frames_speak([lambda: draw(**first), lambda: draw(**last)], lang, caplog)
