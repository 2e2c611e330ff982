"""Chapter 2.3: the experiments measure what they say, and the figures say it in both languages, with every glyph."""

import io
import logging
import math
import warnings

import pytest
import torch

import mha.language
from mha import causal_mask, scaled_dot_product_attention
from mha.figures import display, scores

Q = torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 0], [1, 1, 1, 1]])
K = torch.tensor([[1.0, 1, 1, 1], [0, 1, 0, 1], [2, 0, 2, 0]])
V = torch.tensor([[10.0, 0], [0, 10], [10, 10]])
S = Q @ K.T / 2

FIGURES = {
    "dot_products": lambda: scores.dot_products(Q, K),
    "scaling": lambda: scores.scaling(Q @ K.T, 4),
    "normalising": lambda: scores.normalising(S),
    "weighted_sum": lambda: scores.weighted_sum(S.softmax(-1), V),
    "sharpness": lambda: scores.sharpness(16, 64, "√d_k"),
    "gradients": lambda: scores.gradients(16),
    "mask_on": lambda: scores.mask_on(S, causal_mask(3)),
    "sentence": lambda: scores.sentence("causal + padding", 4),
}


@pytest.fixture
def speak(monkeypatch):
    return lambda lang: monkeypatch.setattr(mha.language, "_chosen", lang)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_title_and_alt_text_in_both_languages_and_every_glyph(name, speak, caplog):
    said = []
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        for lang in ("zh", "en"):
            speak(lang)
            fig = FIGURES[name]()
            fig.savefig(io.BytesIO(), format="png", dpi=50)
            said.append((fig.get_suptitle(), display.alt_text(fig)))
    assert not caplog.records
    (zh_title, zh_alt), (en_title, en_alt) = said
    assert zh_title != en_title
    assert all(any("\u4e00" <= c <= "\u9fff" for c in text) for text in (zh_title, zh_alt))
    assert not any("\u4e00" <= c <= "\u9fff" for c in en_title + en_alt)


def test_the_worked_example_says_its_numbers(speak):
    speak("en")
    assert "[[2, 0, 4], [2, 2, 0], [4, 2, 4]]" in display.alt_text(FIGURES["dot_products"]())
    assert "[[1, 0, 2], [1, 1, 0], [2, 1, 2]]" in display.alt_text(FIGURES["scaling"]())
    assert "[0.24, 0.09, 0.67]" in display.alt_text(FIGURES["normalising"]())
    assert "[[9.1, 7.6], [5.8, 5.8], [8.4, 5.8]]" in display.alt_text(FIGURES["weighted_sum"]())
    output, _ = scaled_dot_product_attention(Q, K, V)
    assert torch.allclose(output, torch.tensor([[9.1, 7.6], [5.8, 5.8], [8.4, 5.8]]), atol=0.05)


@pytest.mark.parametrize("d_k", [4, 64, 256])
def test_dividing_by_the_root_makes_variance_one_and_entropy_free_of_the_width(d_k):
    q, k = scores.random_rows(d_k)
    dots = q @ k.mT
    assert dots.var().item() == pytest.approx(d_k, rel=0.03)
    scaled = dots / scores.divisor("√d_k", d_k)
    assert scaled.var().item() == pytest.approx(1, rel=0.03)
    assert scores.entropy(scaled.softmax(-1)).mean().item() == pytest.approx(3.69, abs=0.02)


def test_entropy_is_nothing_for_one_key_and_ln_n_for_equal_shares():
    assert scores.entropy(torch.tensor([1.0, 0, 0, 0])).item() == 0
    assert scores.entropy(torch.full((64,), 1 / 64)).item() == pytest.approx(math.log(64))


def test_the_jacobian_norm_is_that_of_the_jacobian():
    s = torch.randn(7, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    J = torch.autograd.functional.jacobian(lambda x: x.softmax(-1), s)
    assert scores.jacobian_norm(s.softmax(-1)).item() == pytest.approx(J.norm().item(), rel=1e-9)


@pytest.mark.parametrize("scale", scores.SCALES)
def test_the_gradient_norm_is_what_autograd_finds(scale):
    q, k = scores.random_rows(16, n=8, queries=64)
    q = q.clone().requires_grad_()
    A = (q @ k.mT / scores.divisor(scale, 16)).softmax(-1)
    g = torch.randn(A.shape, generator=torch.Generator().manual_seed(1))
    (A * g).sum().backward()
    expected = q.grad.norm(dim=-1).flatten()
    assert torch.allclose(scores.gradient_norm(16, scale, n=8, queries=64).float(), expected, atol=1e-5)


def test_unscaled_rows_die_while_the_mean_gradient_grows():
    dead, mean = {}, {}
    for d_k in (16, 256):
        q, k = scores.random_rows(d_k)
        dead[d_k] = (scores.jacobian_norm((q @ k.mT).softmax(-1)) < 1e-3).double().mean().item()
        mean[d_k] = scores.gradient_norm(d_k, "1").mean().item()
    assert dead[16] < 0.01
    assert dead[256] == pytest.approx(0.29, abs=0.03)
    assert mean[256] > 1.5 * mean[16]
    assert scores.gradient_norm(256, "√d_k").mean().item() == pytest.approx(0.18, abs=0.01)


def test_a_sentence_opens_only_the_cells_its_mask_allows(speak):
    speak("en")
    open_cells = [
        int(display.alt_text(scores.sentence(mask, 2)).split(" of 36")[0].split()[-1]) for mask in scores.MASKS
    ]
    assert open_cells == [36, 21, 30, 20]


def test_a_wrong_scale_mask_or_number_of_heads_is_refused():
    with pytest.raises(ValueError, match="scale must be one of"):
        scores.sharpness(4, 16, "d_model")
    with pytest.raises(ValueError, match="mask must be one of"):
        scores.sentence("future")
    with pytest.raises(ValueError, match="h must divide d_model"):
        scores.sentence("none", 3)
