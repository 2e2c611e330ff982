"""Chapter 4's figures: the faults are where the listing has them, leftovers and weights are computed."""

import itertools
import logging
import sys
import warnings

import pytest
import torch

import mha
from book.notebooks import CHAPTERS, read
from mha.figures import code, display


@pytest.fixture(autouse=True)
def language(monkeypatch):
    monkeypatch.setattr(sys.modules["mha.language"], "_chosen", None)


@pytest.fixture(scope="module")
def listing():
    source = next(c.source for c in read(CHAPTERS / "4-code.ipynb").cells if c.cell_type == "code")
    return source.split("r'''")[1].split("'''")[0]


class Plain(torch.nn.Module):
    """A stand-in for the class the reader mends: `mha`'s own, with its call."""

    def __init__(self, d_model, h):
        super().__init__()
        self.inner = mha.MultiHeadAttention(d_model, h)

    def forward(self, Q, K, V, mask=None, need_weights=False):
        return self.inner(Q, K, V, mask, need_weights=need_weights)


def figures(listing):
    yield code.where_it_breaks(listing)
    for h, d_model in itertools.product([1, 3, 5], [10, 16]):
        yield code.left_over(h, d_model)
    yield code.heads(Plain, 1, 16, "causal")
    yield code.heads(Plain, 4, 16, "empty row", code.FILL)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_figure_has_a_short_title_and_alt_text_in_the_readers_language_and_all_its_letters(lang, listing, caplog):
    mha.set_language(lang)
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, logger="matplotlib.mathtext"):
        warnings.simplefilter("error")
        for fig in figures(listing):
            display.png(fig)
            title = fig.get_suptitle()
            chinese = any("\u4e00" <= c <= "\u9fff" for c in title)
            assert chinese == (lang == "zh"), title
            assert sum(1 if c > "\u2e80" else 0.52 for c in title) <= 24, title  # fits the page
            assert any("\u4e00" <= c <= "\u9fff" for c in display.alt_text(fig)) == (lang == "zh")
    assert not caplog.records


def test_each_fault_is_marked_on_a_line_that_the_listing_has(listing):
    for fragment, _, _, _ in code.FAULTS:
        assert sum(fragment in line for line in listing.splitlines()) >= 1, fragment


def test_as_many_faults_stop_it_as_the_title_says(listing):
    mha.set_language("en")
    assert code.where_it_breaks(listing).get_suptitle() == "6 faults stop it ✕, 6 stay silent ○"


def test_ten_columns_for_three_heads_leave_one_over():
    mha.set_language("en")
    assert code.left_over(3, 10).get_suptitle() == "1 column belongs to no head:  10 = 3 · 3 + 1"
    assert code.left_over(5, 10).get_suptitle() == "Every column has its head:  10 = 5 · 2"


def test_more_heads_than_columns_is_refused_with_both_values():
    with pytest.raises(ValueError, match="d_model = 10, h = 12"):
        code.left_over(12, 10)


def test_a_row_masked_throughout_is_the_mean_with_the_listings_fill_and_empty_with_the_mend():
    assert code.weights_of(Plain, 2, 4, "empty row", code.FILL)[:, 0].tolist() == [[pytest.approx(0.2)] * 5] * 2
    assert code.weights_of(Plain, 2, 4, "empty row", code.MENDED)[:, 0].tolist() == [[0.0] * 5] * 2


def test_the_fill_changes_nothing_where_every_row_may_look_somewhere():
    for mask in ("none", "causal", "padding"):
        filled, mended = (code.weights_of(Plain, 2, 4, mask, fill) for fill in (code.FILL, code.MENDED))
        assert torch.equal(filled, mended)


def test_a_frame_is_of_one_size_whatever_is_chosen():
    assert len({display.size(code.heads(Plain, h, 4, "causal")) for h in (1, 2, 4)}) == 1
    assert len({display.size(code.left_over(h, 16)) for h in (1, 3, 16)}) == 1
