"""Every refusal names the argument, the value received and the rule."""

import math
import re

import numpy as np
import pytest
import torch

from mha import (
    MultiHeadAttention,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
    set_language,
    steps,
)
from mha.masks import check_mask
from tests.mha.paths import API, forward, need_weights, on, trace

METHODS = {"forward": forward, "need_weights": need_weights, "trace": trace}


def assert_refused(kind, message):
    """The whole message, from its first letter to its last."""
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


def layer():
    return MultiHeadAttention(4, 2)


def zeros(*shape):
    return torch.zeros(shape)


# MultiHeadAttention(…)


@pytest.mark.parametrize("value", [0, -2, 2.0, True, "2", torch.tensor(2)], ids=repr)
@pytest.mark.parametrize("name", ["d_model", "h", "d_k", "d_v", "kv_heads"])
def test_every_size_of_a_layer_is_a_positive_integer(name, value):
    with assert_refused(ValueError, f"{name} must be a positive integer, got {value!r}"):
        MultiHeadAttention(**({"d_model": 4, "h": 2} | {name: value}))


@pytest.mark.parametrize("name", ["d_model", "h"])
def test_d_model_and_h_cannot_be_left_open(name):
    with assert_refused(ValueError, f"{name} must be a positive integer, got None"):
        MultiHeadAttention(**({"d_model": 4, "h": 2} | {name: None}))


def test_the_message_about_h_offers_those_that_divide_d_model():
    rule = "h must divide d_model, got d_model = 12 and h = 5; choose h from 1, 2, 3, 4, 6, 12, or give d_k and d_v"
    with assert_refused(ValueError, rule):
        MultiHeadAttention(12, 5)


@pytest.mark.parametrize("kv_heads", [3, 8])
def test_key_heads_divide_the_heads(kv_heads):
    with assert_refused(ValueError, f"kv_heads must divide h, got h = 4 and kv_heads = {kv_heads}"):
        MultiHeadAttention(8, 4, kv_heads=kv_heads)


@pytest.mark.parametrize("value", [0, 1, None, "False", torch.tensor(True)], ids=repr)
def test_flags_are_true_or_false(value):
    X = zeros(1, 2, 4)
    for name, call in {
        "bias": lambda **flag: MultiHeadAttention(4, 2, **flag),
        "is_causal": lambda **flag: layer()(X, **flag),
        "need_weights": lambda **flag: layer()(X, **flag),
    }.items():
        with assert_refused(TypeError, f"{name} must be True or False, got {value!r}"):
            call(**{name: value})
    with assert_refused(TypeError, f"is_causal must be True or False, got {value!r}"):
        layer().trace(X, is_causal=value)
    with assert_refused(TypeError, f"is_causal must be True or False, got {value!r}"):
        scaled_dot_product_attention(X, X, X, is_causal=value)


@pytest.mark.parametrize("value", [-0.1, 1, 1.0, 1.5, math.nan, math.inf, True, False, "0.1", None], ids=repr)
def test_dropout_is_a_share_below_one(value):
    with assert_refused(ValueError, f"dropout must be at least 0 and below 1, got {value!r}"):
        MultiHeadAttention(4, 2, dropout=value)


@pytest.mark.parametrize("value", [0, 0.0, 0.1, 0.999], ids=repr)
def test_dropout_from_zero_to_below_one_is_taken(value):
    assert MultiHeadAttention(4, 2, dropout=value).dropout == value


# forward(…), trace(…)


@pytest.mark.parametrize("name", ["Q", "K", "V"])
@on(METHODS)
def test_inputs_have_the_dtype_of_the_weights(path, name):
    given = {"Q": zeros(1, 2, 4), "K": zeros(1, 2, 4), "V": zeros(1, 2, 4)} | {name: zeros(1, 2, 4).double()}
    message = f"{name} must have the dtype of the weights, torch.float32, got torch.float64"
    with assert_refused(TypeError, message):
        path(layer(), **given)


@pytest.mark.parametrize("name", ["Q", "K", "V"])
@on(METHODS)
def test_inputs_are_where_the_weights_are(path, name):
    given = {"Q": zeros(1, 2, 4), "K": zeros(1, 2, 4), "V": zeros(1, 2, 4)} | {name: zeros(1, 2, 4).to("meta")}
    with assert_refused(ValueError, f"{name} must be where the weights are, on cpu, got meta"):
        path(layer(), **given)


@on(METHODS)
def test_a_mask_is_where_the_queries_are(path):
    mask = torch.ones(2, 2, dtype=torch.bool, device="meta")
    with assert_refused(ValueError, "mask must be where the queries are, on cpu, got meta"):
        path(layer(), zeros(1, 2, 4), mask=mask)


@pytest.mark.parametrize("value", [[[[0.0] * 4]], np.zeros((1, 2, 4)), "x", 0.5], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name", ["Q", "K", "V"])
@on(METHODS)
def test_inputs_are_tensors(path, name, value):
    inputs = {"Q": zeros(1, 2, 4), "K": zeros(1, 2, 4), "V": zeros(1, 2, 4)} | {name: value}
    with assert_refused(TypeError, f"{name} must be a torch tensor, got {type(value).__name__}"):
        path(layer(), **inputs)


@on(METHODS)
def test_queries_cannot_be_left_open(path):
    with assert_refused(TypeError, "Q must be a torch tensor, got NoneType"):
        path(layer(), None)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64], ids=str)
@pytest.mark.parametrize("name", ["Q", "K", "V"])
@on(METHODS)
def test_inputs_are_embeddings_and_not_token_ids(path, name, dtype):
    inputs = {"Q": zeros(1, 2, 4), "K": zeros(1, 2, 4), "V": zeros(1, 2, 4)} | {name: zeros(1, 2, 4).to(dtype)}
    with assert_refused(TypeError, f"{name} must hold floating-point numbers (embeddings, not token ids), got {dtype}"):
        path(layer(), **inputs)


@pytest.mark.parametrize("shape", [(), (4,), (2, 4), (1, 2, 2, 4), (1, 2, 5), (1, 4, 2)], ids=repr)
@pytest.mark.parametrize("name", ["Q", "K", "V"])
@on(METHODS)
def test_inputs_are_three_dimensional_and_d_model_wide(path, name, shape):
    inputs = {"Q": zeros(1, 2, 4), "K": zeros(1, 2, 4), "V": zeros(1, 2, 4)} | {name: zeros(*shape)}
    with assert_refused(ValueError, f"{name} must be (B, length, d_model = 4), got {shape}"):
        path(layer(), **inputs)


@pytest.mark.parametrize("name", ["K", "V"])
@on(METHODS)
def test_keys_and_values_hold_as_many_samples_as_queries(path, name):
    inputs = {"Q": zeros(3, 2, 4), "K": zeros(3, 2, 4), "V": zeros(3, 2, 4)} | {name: zeros(1, 2, 4)}
    with assert_refused(ValueError, f"{name} must hold as many samples as Q: B = 3, got (1, 2, 4)"):
        path(layer(), **inputs)


@on(METHODS)
def test_values_are_as_long_as_keys(path):
    with assert_refused(ValueError, "V must be as long as K: S = 3, got V (1, 2, 4)"):
        path(layer(), zeros(1, 2, 4), zeros(1, 3, 4), zeros(1, 2, 4))


@pytest.mark.parametrize(
    "value", [[[True, False]], np.ones((2, 2), dtype=bool), "causal"], ids=lambda v: type(v).__name__
)
@on(API)
def test_a_mask_is_a_tensor(path, value):
    with assert_refused(TypeError, f"mask must be a boolean or 0/1 integer tensor, got {type(value).__name__}"):
        path(layer(), zeros(1, 2, 4), mask=value)


@pytest.mark.parametrize("is_causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize(
    "shape",
    [
        (4, 4),  # longer than the sequence
        (3, 5),  # turned: (S, L)
        (4,),  # one key too few
        (2, 5, 3),
        (3, 5, 5),  # a 3-D mask, which would fall onto the heads
        (1, 5, 3),
        (2, 5),  # (B, S): a padding mask, which would fall onto the queries
        (2, 3, 5, 3),  # heads where there are none
        (3, 1, 1, 3),  # another batch
        (1, 2, 2, 5, 3),  # a dimension too many
        (0, 3),
    ],
    ids=repr,
)
@on(API)
def test_a_mask_broadcasts_to_batch_heads_queries_keys(path, shape, is_causal):
    rule = (
        f"mask must broadcast to (B, h, L, S) = (2, 2, 5, 3), got {shape}; "
        "for a per-sample mask use mask[:, None], for one of keys alone mask[:, None, None]"
    )
    with assert_refused(ValueError, rule):
        path(layer(), zeros(2, 5, 4), zeros(2, 3, 4), mask=torch.ones(shape, dtype=torch.bool), is_causal=is_causal)


def test_both_hints_of_the_message_lead_to_a_mask_that_fits():
    a, q, k = layer(), zeros(2, 5, 4), zeros(2, 3, 4)
    assert a(q, k, mask=torch.ones(2, 5, 3, dtype=torch.bool)[:, None]).shape == (2, 5, 4)
    assert a(q, k, mask=torch.ones(2, 3, dtype=torch.bool)[:, None, None]).shape == (2, 5, 4)


def test_the_message_about_a_floating_mask_says_what_to_do():
    rule = (
        "mask must be boolean or 0/1 integer (non-zero = may attend), got torch.float32: a floating mask "
        "is added to the scores elsewhere, and 0/1 would then mask nothing; use mask.bool(), "
        "or mask == 0 for one that holds 0 and -inf"
    )
    with assert_refused(TypeError, rule):
        layer()(zeros(1, 2, 4), mask=torch.ones(2, 2))


# scaled_dot_product_attention(…)


@pytest.mark.parametrize("name", ["Q", "K", "V"])
def test_the_function_takes_floating_tensors(name):
    with assert_refused(TypeError, f"{name} must be a torch tensor, got list"):
        scaled_dot_product_attention(**({"Q": zeros(2, 4), "K": zeros(2, 4), "V": zeros(2, 4)} | {name: [[0.0]]}))
    ids = torch.zeros(2, 4, dtype=torch.int64)
    with assert_refused(
        TypeError, f"{name} must hold floating-point numbers (embeddings, not token ids), got torch.int64"
    ):
        scaled_dot_product_attention(**({"Q": zeros(2, 4), "K": zeros(2, 4), "V": zeros(2, 4)} | {name: ids}))


@pytest.mark.parametrize("shape", [(), (4,)], ids=repr)
@pytest.mark.parametrize("name", ["Q", "K", "V"])
def test_the_function_needs_a_length_and_a_width(name, shape):
    with assert_refused(ValueError, f"{name} must have at least 2 dimensions (…, length, width), got {shape}"):
        scaled_dot_product_attention(**({"Q": zeros(2, 4), "K": zeros(2, 4), "V": zeros(2, 4)} | {name: zeros(*shape)}))


def test_the_functions_keys_are_as_wide_as_its_queries():
    with assert_refused(ValueError, "K must be as wide as Q: d_k = 4, got K (2, 3)"):
        scaled_dot_product_attention(zeros(2, 4), zeros(2, 3), zeros(2, 4))
    with assert_refused(ValueError, "K must be as wide as Q: d_k = 4, got K (5, 2, 3)"):
        scaled_dot_product_attention(zeros(5, 2, 4), zeros(5, 2, 3), zeros(5, 2, 4))


def test_the_functions_values_are_as_long_as_its_keys():
    with assert_refused(ValueError, "V must be as long as K: S = 3, got V (2, 4)"):
        scaled_dot_product_attention(zeros(2, 4), zeros(3, 4), zeros(2, 4))


def test_the_functions_leading_dimensions_broadcast():
    rule = "the leading dimensions of Q, K and V must broadcast, got (2, 1, 4), (3, 1, 4), (1, 1, 4)"
    with assert_refused(ValueError, rule):
        scaled_dot_product_attention(zeros(2, 1, 4), zeros(3, 1, 4), zeros(1, 1, 4))


def test_the_functions_mask_broadcasts_to_its_weights():
    with pytest.raises(ValueError, match=re.escape("mask must broadcast to (…, L, S) = (2, 3), got (3, 2)")):
        scaled_dot_product_attention(zeros(2, 4), zeros(3, 4), zeros(3, 4), torch.ones(3, 2, dtype=torch.bool))
    with pytest.raises(ValueError, match=re.escape("mask must broadcast to (…, L, S) = (5, 2, 3), got (4, 2, 3)")):
        scaled_dot_product_attention(
            zeros(5, 2, 4), zeros(5, 3, 4), zeros(5, 3, 4), torch.ones(4, 2, 3, dtype=torch.bool)
        )


# the steps


@pytest.mark.parametrize("h", [0, -2, 3, 8, 2.0, True, "2", None], ids=repr)
def test_the_number_of_heads_divides_the_width(h):
    with assert_refused(
        ValueError, f"h must be an integer dividing the last dimension of X, got h = {h!r} and X (1, 3, 4)"
    ):
        steps.split_heads(zeros(1, 3, 4), h)


@pytest.mark.parametrize("shape", [(), (4,)], ids=repr)
def test_splitting_needs_a_length_and_a_width(shape):
    with assert_refused(ValueError, f"X must have at least 2 dimensions (…, length, width), got {shape}"):
        steps.split_heads(zeros(*shape), 2)


@pytest.mark.parametrize("h", [0, 3, True, 4.0], ids=repr)
def test_key_heads_are_shared_evenly(h):
    with assert_refused(ValueError, f"h must be a multiple of the heads of X, got h = {h!r} and X (1, 2, 3, 4)"):
        steps.share_heads(zeros(1, 2, 3, 4), h)


def test_no_key_heads_cannot_be_shared():
    with assert_refused(ValueError, "h must be a multiple of the heads of X, got h = 1 and X (1, 0, 3, 4)"):
        steps.share_heads(zeros(1, 0, 3, 4), 1)


@pytest.mark.parametrize("shape", [(), (4,), (3, 4)], ids=repr)
def test_merging_needs_heads(shape):
    with assert_refused(ValueError, f"X must have at least 3 dimensions (…, h, length, width), got {shape}"):
        steps.merge_heads(zeros(*shape))


# masks


@pytest.mark.parametrize("value", [-1, 2.5, True, "3", None], ids=repr)
def test_the_lengths_of_a_causal_mask_are_integers(value):
    with assert_refused(ValueError, f"L must be an integer, 0 or more, got {value!r}"):
        causal_mask(value, 3)
    if value is not None:  # S = None is S = L
        with assert_refused(ValueError, f"S must be an integer, 0 or more, got {value!r}"):
            causal_mask(3, value)


@pytest.mark.parametrize("value", [-1, 2.5, True, "3", None], ids=repr)
def test_the_width_of_a_padding_mask_is_an_integer(value):
    with assert_refused(ValueError, f"S must be an integer, 0 or more, got {value!r}"):
        padding_mask([0], value)


@pytest.mark.parametrize(
    ("lengths", "dtype", "shape"),
    [
        (3, torch.int64, ()),
        ([[1, 2]], torch.int64, (1, 2)),  # token ids, or a mask already made
        ([1.0, 2.0], torch.float32, (2,)),
        ([True, False], torch.bool, (2,)),
        ([], torch.float32, (0,)),
    ],
    ids=repr,
)
def test_padding_lengths_are_a_row_of_integers(lengths, dtype, shape):
    with assert_refused(ValueError, f"lengths must be a row of integers, one a sample, got {dtype} of shape {shape}"):
        padding_mask(lengths, 3)


@pytest.mark.parametrize("lengths", [[-1], [1, 4], [4, -1]], ids=repr)
def test_padding_lengths_fit_into_the_sequence(lengths):
    with assert_refused(ValueError, f"each of lengths must be from 0 to S = 3, got {lengths}"):
        padding_mask(torch.tensor(lengths), 3)


@pytest.mark.parametrize(
    "shape", [(), (3,), (2, 3), (1, 3), (2, 1), (1, 1, 1, 3), (5, 4, 2, 3), (5, 1, 2, 1)], ids=repr
)
def test_a_mask_that_broadcasts_is_taken_as_it_is(shape):
    mask = torch.rand(shape) < 0.5
    checked = check_mask(mask, (5, 4, 2, 3))
    assert checked.dtype == torch.bool
    assert torch.equal(checked.expand(5, 4, 2, 3), mask.expand(5, 4, 2, 3))


# language


@pytest.mark.parametrize("value", ["fr", "ZH", "", "zh_CN", None, 1, ["zh"]], ids=repr)
def test_the_language_is_one_of_two(value):
    with assert_refused(ValueError, f'lang must be "zh" or "en", got {value!r}'):
        set_language(value)
