"""Compiling and exporting change no number, and break no graph."""

import itertools

import pytest
import torch

from mha import KVCache, MultiHeadAttention, causal_mask, from_torch, scaled_dot_product_attention, to_torch

DOUBLE = torch.float64
MASKS = {
    "no mask": None,
    "boolean": torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]).bool(),
    "integer": torch.tensor([[[[1, 0, 1, 1, 0]]], [[[0, 1, 1, 1, 0]]]]),
}
OPTIONS = list(itertools.product(MASKS, [False, True], [False, True], [4, 2]))  # causal, weights, kv_heads


def layer(kv_heads=None, **options):
    torch.manual_seed(0)
    return MultiHeadAttention(8, 4, kv_heads=kv_heads, dtype=DOUBLE, **options)


def inputs():
    torch.manual_seed(1)
    return torch.randn(2, 3, 8, dtype=DOUBLE), torch.randn(2, 5, 8, dtype=DOUBLE)


def assert_equal(compiled, plain):
    for one, other in zip(compiled, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("mask", "is_causal", "need_weights", "kv_heads"), OPTIONS, ids=str)
def test_every_option_compiles_into_one_graph_forward_and_backward(mask, is_causal, need_weights, kv_heads):
    attention, (Q, K) = layer(kv_heads), inputs()

    def run(module):
        made = module(Q, K, mask=MASKS[mask], is_causal=is_causal, need_weights=need_weights)
        output = made[0] if need_weights else made
        return *(made if need_weights else (made,)), *torch.autograd.grad(output.square().sum(), module.parameters())

    torch._dynamo.reset()
    assert_equal(run(torch.compile(attention, backend="eager", fullgraph=True)), run(attention))


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_backward_pass_compiles_ahead_of_time(is_causal):
    attention, (Q, _) = layer(kv_heads=2), inputs()
    torch._dynamo.reset()
    ahead = torch.compile(attention, backend="aot_eager", fullgraph=True)
    gradients = [
        torch.autograd.grad(module(Q, is_causal=is_causal).square().sum(), attention.parameters())
        for module in (ahead, attention)
    ]
    assert_equal(*gradients)


@pytest.mark.parametrize("kv_heads", [4, 1])
def test_a_trace_and_the_function_compile_into_one_graph(kv_heads):
    attention, (Q, K) = layer(kv_heads), inputs()
    trace = torch.compile(lambda Q, K: tuple(t for _, _, t in attention.trace(Q, K, is_causal=True)), fullgraph=True,
                          backend="eager")  # fmt: skip
    assert_equal(trace(Q, K), [tensor for _, _, tensor in attention.trace(Q, K, is_causal=True)])
    function = torch.compile(scaled_dot_product_attention, backend="eager", fullgraph=True)
    assert_equal(function(Q, K, K, causal_mask(3, 5)), scaled_dot_product_attention(Q, K, K, causal_mask(3, 5)))


@pytest.mark.parametrize("capacity", [None, 8])
def test_decoding_compiles_into_one_graph(capacity):
    attention, X = layer(2), torch.randn(2, 8, 8, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))
    torch._dynamo.reset()
    step = torch.compile(attention, backend="eager", fullgraph=True)
    cache = KVCache(capacity)
    with torch.no_grad():
        made = torch.cat([step(x, is_causal=True, cache=cache) for x in X.split([3, 1, 1, 1, 1, 1], dim=1)], dim=1)
        assert cache.length == 8
        assert_equal([made], [attention(X, is_causal=True)])


@pytest.mark.parametrize(("mask", "is_causal", "need_weights", "kv_heads"), OPTIONS, ids=str)
def test_every_option_can_be_exported(mask, is_causal, need_weights, kv_heads):
    attention, (Q, K) = layer(kv_heads).eval(), inputs()
    options = {"is_causal": is_causal, "need_weights": need_weights}
    program = torch.export.export(attention, (Q, K, None, MASKS[mask]), options)
    made, plain = program.module()(Q, K, None, MASKS[mask], **options), attention(Q, K, None, MASKS[mask], **options)
    assert_equal(made if need_weights else [made], plain if need_weights else [plain])


def test_an_exported_layer_takes_any_batch_and_length():
    attention, (Q, _) = layer().eval(), inputs()
    B, L = torch.export.Dim("B", min=2), torch.export.Dim("L", min=2)
    shapes = {"Q": {0: B, 1: L}, "is_causal": None}
    program = torch.export.export(attention, (Q,), {"is_causal": True}, dynamic_shapes=shapes)
    longer = torch.randn(3, 11, 8, dtype=DOUBLE)
    assert_equal([program.module()(longer, is_causal=True)], [attention(longer, is_causal=True)])


def test_under_autocast_the_result_is_that_of_half_precision():
    attention, (Q, K) = layer().float(), inputs()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, (weighted, _) = attention(Q.float(), K.float()), attention(Q.float(), K.float(), need_weights=True)
    assert output.dtype == torch.bfloat16
    plain = attention(Q.float(), K.float())
    # three roundings of eps / 2 = 0.4 % on outputs below 1
    torch.testing.assert_close(output.float(), plain, rtol=0, atol=0.015)
    torch.testing.assert_close(weighted.float(), plain, rtol=0, atol=0.015)


def test_a_converted_layer_compiles_too():
    attention, (Q, _) = from_torch(to_torch(layer())), inputs()
    assert_equal([torch.compile(attention, backend="eager", fullgraph=True)(Q)], [attention(Q)])
