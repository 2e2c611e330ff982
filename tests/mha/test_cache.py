"""Decoding with a cache gives what one pass over the whole sequence gives, and a refusal loses nothing."""

import contextlib

import pytest
import torch

from mha import KVCache, MultiHeadAttention, causal_mask, padding_mask
from tests.mha.test_errors import assert_refused

DOUBLE = torch.float64
LENGTHS = [[1] * 7, [4, 1, 1, 1], [3, 4], [7], [2, 0, 5]]  # tokens a call, 7 in all
MODES = {"with gradients": contextlib.nullcontext, "no_grad": torch.no_grad, "inference": torch.inference_mode}


def layer(h=4, kv_heads=None, dtype=DOUBLE):
    torch.manual_seed(0)
    return MultiHeadAttention(8, h, d_k=3, d_v=2, kv_heads=kv_heads, dtype=dtype)


def sequence(B=2, dtype=DOUBLE):
    return torch.randn(B, 7, 8, generator=torch.Generator().manual_seed(1), dtype=DOUBLE).to(dtype)


def decoded(attention, X, lengths, cache, mask=None, **options):
    """The outputs of one call for each of `lengths`, joined; `mask` (B, 1, 1, S) is cut to what each call sees."""
    outputs = []
    for x in X.split(lengths, dim=1):
        seen = None if mask is None else mask[..., : cache.length + x.shape[1]]
        made = attention(x, mask=seen, is_causal=True, cache=cache, **options)
        outputs.append(made[0] if options else made)
    return torch.cat(outputs, dim=1)


@pytest.mark.parametrize("capacity", [None, 7, 20])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_decoding_equals_one_causal_pass(mode, lengths, kv_heads, capacity):
    attention, X = layer(kv_heads=kv_heads), sequence()
    whole = attention(X, is_causal=True)
    with mode():
        for options in ({}, {"need_weights": True}):
            output = decoded(attention, X, lengths, KVCache(capacity), **options)
            torch.testing.assert_close(output.detach(), whole.detach(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_decoding_equals_one_causal_pass_in_every_precision(dtype):
    # float32: 1e-6, as BUGS.md row 27 asks; half: four roundings of eps / 2 on the way to outputs below 2
    attention, X = layer(dtype=dtype), sequence(dtype=dtype) / 4
    with torch.no_grad():
        output, whole = decoded(attention, X, [3, 1, 1, 2], KVCache()), attention(X, is_causal=True)
    atol = 1e-6 if dtype == torch.float32 else 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(output, whole, rtol=0, atol=atol)


def test_decoding_step_by_step_under_a_padding_mask_equals_one_pass():
    attention, X, mask = layer(kv_heads=2), sequence(), padding_mask([4, 7], S=7)
    output = decoded(attention, X, [2, 1, 1, 3], KVCache(), mask)
    torch.testing.assert_close(output, attention(X, mask=mask, is_causal=True), rtol=0, atol=1e-12)


def test_a_trace_with_a_cache_shows_all_keys_and_the_new_ones_alone():
    attention, X, cache = layer(kv_heads=2), sequence(), KVCache()
    attention.trace(X[:, :5], is_causal=True, cache=cache)
    made, whole = attention.trace(X[:, 5:], is_causal=True, cache=cache), attention.trace(X, is_causal=True)
    assert made.K.shape == (2, 2, 6)  # (B, 2 new tokens, kv_heads·d_k)
    assert made.K_heads.shape == (2, 2, 7, 3)  # (B, kv_heads, all 7, d_k)
    assert torch.equal(made.allowed, causal_mask(2, 7))
    torch.testing.assert_close(made.weights, whole.weights[:, :, 5:], rtol=0, atol=1e-12)
    torch.testing.assert_close(made.K_heads, whole.K_heads, rtol=0, atol=1e-12)


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_gradients_through_a_cache_are_those_of_one_pass(lengths):
    attention, X = layer(kv_heads=2), sequence().requires_grad_()
    wanted = [X, *attention.parameters()]
    through = torch.autograd.grad(decoded(attention, X, lengths, KVCache(capacity=9)).square().sum(), wanted)
    whole = torch.autograd.grad(attention(X, is_causal=True).square().sum(), wanted)
    for mine, theirs in zip(through, whole, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-10)


def test_gradients_survive_a_cache_filled_without_them():
    attention, X, cache = layer(), sequence().requires_grad_(), KVCache(capacity=9)
    with torch.no_grad():
        attention(X[:, :3], is_causal=True, cache=cache)
    first = attention(X[:, 3:5], is_causal=True, cache=cache)
    second = attention(X[:, 5:], is_causal=True, cache=cache)
    with torch.no_grad():  # a later step in place, before anyone asks for the gradient
        attention(X[:, :1], is_causal=True, cache=cache)
    (gradient,) = torch.autograd.grad(first.sum() + second.sum(), X)
    assert gradient[:, 3:].abs().min() > 0
    assert not gradient[:, :3].any()  # what was kept without gradients is a constant


def test_a_cache_counts_what_it_holds_and_forgets_on_reset():
    attention, X, cache = layer(), sequence(), KVCache(capacity=8)
    assert (cache.length, repr(cache)) == (0, "KVCache(length=0, capacity=8)")
    attention(X, cache=cache)
    assert (cache.length, repr(cache)) == (7, "KVCache(length=7, capacity=8)")
    cache.reset()
    assert (cache.length, cache.capacity) == (0, 8)
    again = attention(X[:1], is_causal=True, cache=cache)  # another batch size, too
    assert torch.equal(again, attention(X[:1], is_causal=True))


def test_cross_attention_adds_its_keys_to_those_held():
    attention, X, cache = layer(), sequence(), KVCache()
    attention(X[:, :0], X[:, :3], cache=cache)
    output = attention(X[:, 5:], X[:, 3:5], cache=cache)
    torch.testing.assert_close(output, attention(X[:, 5:], X[:, :5]), rtol=0, atol=1e-12)


def test_what_a_cache_gave_is_never_changed_later():
    attention, X, cache = layer(), sequence(), KVCache(capacity=8)
    with torch.no_grad():
        made = attention.trace(X[:, :3], cache=cache)
        before = made.K_heads.clone()
        attention(X[:, 3:], cache=cache)
        cache.reset()
        attention(X[:, 2:], cache=cache)
    assert torch.equal(made.K_heads, before)


def test_a_cache_copies_nothing_while_it_has_room():
    for cache, moves in ((KVCache(capacity=100), 1), (KVCache(), 6)):  # room for 2, 6, 14, 30, 62, 126
        one = torch.ones(1, 1, 1, 2)
        with torch.no_grad():
            given = [cache.append(one, one) for _ in range(100)]  # all alive, so that no place is used twice
        assert len({K.untyped_storage().data_ptr() for K, _ in given}) == moves
        assert len({V.untyped_storage().data_ptr() for _, V in given}) == moves
        assert given[-1][0].shape == (1, 1, 100, 2)


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_cache_keeps_copies_of_what_it_was_given(mode):
    with mode():
        K, V, cache = torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2), KVCache()
        cache.append(K, V)
        K.zero_(), V.zero_()
        held = cache.append(K, V)
    assert [x[..., 0].flatten().tolist() for x in held] == [[1, 0], [1, 0]]


@pytest.mark.parametrize("lead", [(), (2,), (2, 1, 3, 1)], ids=str)
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_keys_and_values_may_have_any_leading_dimensions(mode, lead):
    K, V = torch.randn(*lead, 5, 3), torch.randn(*lead, 5, 2)
    for capacity in (None, 5):
        with mode():
            cache = KVCache(capacity)
            for k, v in zip(K.split(2, dim=-2), V.split(2, dim=-2), strict=True):
                K_all, V_all = cache.append(k, v)
        assert torch.equal(K_all, K)
        assert torch.equal(V_all, V)


def test_a_cache_may_hold_a_single_token():
    cache = KVCache(capacity=1)
    assert cache.append(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2))[0].shape == (1, 1, 1, 2)


# refusals: each leaves the cache as it was


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "8"], ids=repr)
def test_a_capacity_is_a_positive_integer_or_none(value):
    with assert_refused(ValueError, f"capacity must be a positive integer or None, got {value!r}"):
        KVCache(value)


@pytest.mark.parametrize("value", [{}, [], "cache", (None, None)], ids=repr)
def test_a_cache_is_a_kvcache(value):
    with assert_refused(TypeError, f"cache must be a KVCache, got {type(value).__name__}"):
        layer()(sequence(), cache=value)


def test_a_full_cache_refuses_another_token_and_loses_nothing():
    attention, X, cache = layer(), sequence(), KVCache(capacity=6)
    attention(X[:, :5], is_causal=True, cache=cache)
    message = (
        "the cache holds 5 of capacity = 6 tokens, and K brings 2: make it larger, or reset() it for a new sequence"
    )
    with assert_refused(ValueError, message):
        attention(X[:, 5:], is_causal=True, cache=cache)
    assert cache.length == 5
    output = attention(X[:, 5:6], is_causal=True, cache=cache)
    torch.testing.assert_close(output, attention(X[:, :6], is_causal=True)[:, 5:], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("K", "V", "message"),
    [
        ((1, 4, 1, 3), (1, 4, 1, 2), "K must be (2, 4, 1, 3) and torch.float64 to join what the cache holds, "
         "got (1, 4, 1, 3) and torch.float64"),
        ((2, 2, 1, 3), (2, 2, 1, 2), "K must be (2, 4, 1, 3) and torch.float64 to join what the cache holds, "
         "got (2, 2, 1, 3) and torch.float64"),
        ((2, 4, 1, 3), (2, 4, 2, 2), "V must be (2, 4, 1, 2) and torch.float64 to join what the cache holds, "
         "got (2, 4, 2, 2) and torch.float64"),
        ((2, 4, 1, 3), (2, 4, 1, 5), "V must be (2, 4, 1, 2) and torch.float64 to join what the cache holds, "
         "got (2, 4, 1, 5) and torch.float64"),
    ],
    ids=["another batch", "another layer", "V longer than K", "V of another width"],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_nothing_is_appended(K, V, message):
    cache = KVCache()
    cache.append(torch.zeros(2, 4, 5, 3, dtype=DOUBLE), torch.zeros(2, 4, 5, 2, dtype=DOUBLE))
    with assert_refused(ValueError, f"{message}: one cache serves one layer and one batch"):
        cache.append(torch.ones(K, dtype=DOUBLE), torch.ones(V, dtype=DOUBLE))
    assert cache.length == 5
    assert not cache.append(torch.zeros(2, 4, 0, 3, dtype=DOUBLE), torch.zeros(2, 4, 0, 2, dtype=DOUBLE))[0].any()


def test_another_dtype_is_refused():
    cache = KVCache()
    cache.append(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2))
    with pytest.raises(
        ValueError, match=r"^K must be \(1, 1, 1, 2\) and torch.float32 .* and torch.float16: one cache"
    ):
        cache.append(torch.zeros(1, 1, 1, 2).half(), torch.zeros(1, 1, 1, 2).half())


def test_the_first_keys_and_values_must_fit_each_other():
    with pytest.raises(ValueError, match=r"^V must be \(1, 4, 3, 2\) and .* got \(1, 2, 3, 2\)"):
        KVCache().append(torch.zeros(1, 4, 3, 3), torch.zeros(1, 2, 3, 2))


@pytest.mark.parametrize("way", ["forward", "trace"])
def test_a_mask_that_does_not_fit_is_refused_before_anything_is_appended(way):
    attention, X, cache = layer(), sequence(), KVCache()
    attention(X[:, :5], cache=cache)
    with pytest.raises(ValueError, match=r"^mask must broadcast to \(B, h, L, S\) = \(2, 4, 2, 7\), got \(2, 2\)"):
        getattr(attention, way)(X[:, 5:], mask=torch.ones(2, 2, dtype=torch.bool), cache=cache)
    assert cache.length == 5


def test_a_cache_adds_nothing_to_the_state_of_a_layer():
    attention, cache = layer(), KVCache()
    names = list(attention.state_dict())
    attention(sequence(), cache=cache)
    assert list(attention.state_dict()) == names
    assert names == [f"W_{name}.{kind}" for name in "QKVO" for kind in ("weight", "bias")]
