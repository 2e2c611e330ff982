"""On every device of this machine the layer gives the numbers of float64 on the CPU. `make gpu` asks for a GPU."""

import pytest
import torch

from mha import KVCache, MultiHeadAttention, causal_mask, padding_mask

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 5e-2, torch.float16: 5e-3}  # of values around 1
MASKS = {
    "all": None,
    "causal": causal_mask(6),
    "padding": padding_mask(torch.tensor([6, 3]), 6),
    "blind row": torch.ones(6, 6, dtype=torch.bool).index_fill(0, torch.tensor([2]), False),
}


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(params=[8, 2], ids=["own key heads", "shared key heads"])
def exact(request):
    """The layer and its input, in float64 on the CPU."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(64, 8, kv_heads=request.param, dtype=torch.float64)
    return layer, torch.randn(2, 6, 64, dtype=torch.float64)


def moved(layer, device, dtype):
    copy = MultiHeadAttention(layer.d_model, layer.h, kv_heads=layer.kv_heads, device=device, dtype=dtype)
    copy.load_state_dict(layer.state_dict())
    return copy


def assert_same(actual, exact, dtype):
    torch.testing.assert_close(actual.detach().cpu().double(), exact.detach(), rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_every_path_gives_the_same_numbers(exact, device, dtype, mask):
    layer, X = exact
    mask, mine, x = MASKS[mask], moved(layer, device, dtype), X.to(device, dtype)
    there = None if mask is None else mask.to(device)
    wanted, weights = layer(X, mask=mask, need_weights=True)
    assert_same(mine(x, mask=there), wanted, dtype)
    made = mine(x, mask=there, need_weights=True)
    assert_same(made[0], wanted, dtype)
    assert_same(made[1], weights, dtype)
    assert_same(mine.trace(x, mask=there).output, wanted, dtype)
    assert mine(x, mask=there).device.type == device


def test_gradients_are_the_same(exact, device):
    layer, X = exact
    mine = moved(layer, device, torch.float32)
    layer(X, is_causal=True).square().mean().backward()
    mine(X.to(device, torch.float32), is_causal=True).square().mean().backward()
    for parameter, other in zip(mine.parameters(), layer.parameters(), strict=True):
        assert_same(parameter.grad, other.grad, torch.float32)


def test_decoding_with_a_cache_gives_the_full_pass(exact, device):
    layer, X = exact
    mine, cache, wanted = moved(layer, device, torch.float32), KVCache(), layer(X, is_causal=True)
    with torch.no_grad():
        parts = [mine(x, is_causal=True, cache=cache) for x in X.to(device, torch.float32).split([3, 1, 2], dim=1)]
    assert_same(torch.cat(parts, dim=1), wanted, torch.float32)
