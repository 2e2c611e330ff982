"""The figures of chapter 2.4: their numbers, their words in both languages, and no warning while they are drawn."""

import itertools
import logging

import pytest
import torch

from mha import language
from mha.figures import merging
from mha.steps import split_heads
from tests.mha.drawing import drawn


def choices(**lists):
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


FRAMES = {
    "where_numbers_go": choices(h=[1, 4], d_k=[1, 3], merge=[merging.BOTH, merging.RESHAPE]),
    "memory": choices(h=[1, 3], step=["heads", "transpose", "reshape"]),
    "widths": choices(h=[1, 8], d_v=[16, 128]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_speaks_the_readers_language_draws_without_a_warning_and_has_one_size(name, spoken, caplog):
    sizes = set()
    with caplog.at_level(logging.WARNING):
        for chosen in FRAMES[name]:
            fig = getattr(merging, name)(**chosen)
            title, alt = drawn(fig)
            sizes.add(tuple(fig.get_size_inches()))
            assert len(title) <= 48
            assert any("\u4e00" <= c <= "\u9fff" for c in alt) is (spoken == "zh")
    assert len(sizes) == 1
    assert not caplog.records


def test_merging_without_the_transpose_joins_two_tokens_into_one_row():
    heads = split_heads(torch.arange(12).view(3, 4), 2)
    assert merging.merge_as(heads, merging.RESHAPE).tolist() == [[0, 1, 4, 5], [8, 9, 2, 3], [6, 7, 10, 11]]
    assert merging.merge_as(heads).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize(("h", "d_k", "astray"), [(1, 3, 0), (2, 1, 4), (2, 2, 8), (4, 3, 30)])
def test_the_figure_counts_and_underlines_the_misplaced_numbers(h, d_k, astray, monkeypatch):
    monkeypatch.setattr(language, "_chosen", "en")
    fig = merging.where_numbers_go(h, d_k, merging.RESHAPE)
    told = fig.get_label()
    assert (f"{astray} of {3 * h * d_k} numbers land" in told) if astray else ("gets all its numbers back" in told)
    assert len(fig.axes[-1].lines) == astray


def test_a_matrix_too_wide_for_the_figure_is_refused_with_both_values():
    with pytest.raises(ValueError, match="h = 8 and d_k = 2"):
        merging.where_numbers_go(8, 2)


def test_only_the_reshape_of_several_heads_copies(monkeypatch):
    monkeypatch.setattr(language, "_chosen", "en")
    copies = {
        (h, step): merging.memory(h, step).get_suptitle().startswith("reshape copies")
        for h, step in itertools.product([1, 2, 3], ["heads", "transpose", "reshape"])
    }
    assert {key for key, copied in copies.items() if copied} == {(2, "reshape"), (3, "reshape")}


def test_the_merged_width_is_d_model_only_where_d_v_is_d_model_over_h(monkeypatch):
    monkeypatch.setattr(language, "_chosen", "en")
    assert (
        merging.widths(8, 64).get_suptitle() == merging.widths(4, 128).get_suptitle() == "The merged width is d_model"
    )
    assert merging.widths(8, 32).get_suptitle() == "The merged width is not d_model"
