"""Every way through one attention layer, under one signature, so that a test can say "on every path".

A path takes (attention, Q, K=None, V=None, mask=None, is_causal=False) and returns (output, weights);
`forward` alone has no weights to return. `identity` makes the layer whose projections change nothing,
so that what a path returns can be worked out by hand.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from mha import KVCache, MultiHeadAttention, reference, scaled_dot_product_attention, steps

Path = Callable[..., tuple[Tensor, Tensor | None]]


def by_hand(mask: Tensor | None, is_causal: bool, L: int, S: int) -> Tensor | None:
    """`mask` and `is_causal` as one boolean mask, without the help of `mha.masks`."""
    allowed = mask
    if is_causal:
        # the last of L queries sees all S keys, the one before it one fewer, and so on
        causal = torch.arange(S) <= torch.arange(L)[:, None] + S - L  # (L, S)
        allowed = causal if mask is None else causal & mask
    return allowed


def forward(attention, Q, K=None, V=None, mask=None, is_causal=False):
    return attention(Q, K, V, mask, is_causal=is_causal), None


def need_weights(attention, Q, K=None, V=None, mask=None, is_causal=False):
    return attention(Q, K, V, mask, is_causal=is_causal, need_weights=True)


def trace(attention, Q, K=None, V=None, mask=None, is_causal=False):
    made = attention.trace(Q, K, V, mask, is_causal=is_causal)
    return made.output, made.weights


def cached(attention, Q, K=None, V=None, mask=None, is_causal=False):
    K, V, cache = remember(attention, Q, K, V)
    return attention(Q, K, V, mask, is_causal=is_causal, cache=cache), None


def cached_trace(attention, Q, K=None, V=None, mask=None, is_causal=False):
    K, V, cache = remember(attention, Q, K, V)
    made = attention.trace(Q, K, V, mask, is_causal=is_causal, cache=cache)
    return made.output, made.weights


def remember(attention, Q, K, V):
    """A cache that holds the first half of the keys and values, and the half that is left."""
    K = Q if K is None else K
    V = K if V is None else V
    cache, half = KVCache(), K.shape[1] // 2
    attention(Q[:, :0], K[:, :half], V[:, :half], cache=cache)  # no query asks yet
    return K[:, half:], V[:, half:], cache


def function(attention, Q, K=None, V=None, mask=None, is_causal=False):
    K = Q if K is None else K
    V = K if V is None else V
    q, k, v = split(attention, Q, K, V)
    heads, weights = scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)
    return attention.W_O(steps.merge_heads(heads)), weights


def by_steps(attention, Q, K=None, V=None, mask=None, is_causal=False):
    K = Q if K is None else K
    V = K if V is None else V
    q, k, v = split(attention, Q, K, V)
    weights = steps.softmax(steps.scores(q, k), by_hand(mask, is_causal, Q.shape[1], K.shape[1])).to(v.dtype)
    return steps.output(steps.merge_heads(weights @ v), attention.W_O.weight.T, attention.W_O.bias), weights


def in_numpy(attention, Q, K=None, V=None, mask=None, is_causal=False):
    K = Q if K is None else K
    V = K if V is None else V
    allowed = by_hand(mask, is_causal, Q.shape[1], K.shape[1])
    parameters = {}
    for name in "QKVO":
        layer = getattr(attention, f"W_{name}")
        parameters[f"W_{name}"] = array(layer.weight.T)
        if layer.bias is not None:
            parameters[f"b_{name}"] = array(layer.bias)
    allowed = None if allowed is None else allowed.numpy()
    output, weights = reference.multi_head_attention(
        array(Q), array(K), array(V), parameters, attention.h, allowed, attention.kv_heads
    )
    return torch.from_numpy(output), torch.from_numpy(weights)


def split(attention, Q, K, V):
    layers = attention.W_Q, attention.W_K, attention.W_V
    q, k, v = (steps.project(X, W.weight.T, W.bias) for X, W in zip((Q, K, V), layers, strict=True))
    k, v = (steps.split_heads(X, attention.kv_heads) for X in (k, v))
    shared = [i * attention.kv_heads // attention.h for i in range(attention.h)]  # the key head of each query head
    return steps.split_heads(q, attention.h), k[:, shared], v[:, shared]


def array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


API: dict[str, Path] = {  # those that check their arguments
    "forward": forward,
    "need_weights": need_weights,
    "trace": trace,
    "forward with a cache": cached,
    "trace with a cache": cached_trace,
    "scaled_dot_product_attention": function,
}
TORCH: dict[str, Path] = API | {"steps": by_steps}  # those with gradients
ALL: dict[str, Path] = TORCH | {"reference": in_numpy}
WEIGHTS: dict[str, Path] = {name: path for name, path in ALL.items() if path not in (forward, cached)}


def on(paths: dict[str, Path]) -> pytest.MarkDecorator:
    """Run the test once for each of `paths`."""
    return pytest.mark.parametrize("path", list(paths.values()), ids=list(paths))


def identity(d_model: int, h: int = 1, *, dropout: float = 0.0, dtype: torch.dtype = torch.float64):
    """A layer whose four projections change nothing: what comes out is attention alone."""
    attention = MultiHeadAttention(d_model, h, dropout=dropout, bias=False, dtype=dtype)
    with torch.no_grad():
        for layer in (attention.W_Q, attention.W_K, attention.W_V, attention.W_O):
            layer.weight.copy_(torch.eye(d_model))
    return attention


def rows(values: list, dtype: torch.dtype = torch.float64) -> Tensor:
    """One sample, (1, length, width); a flat list is a width of 1."""
    sample = torch.tensor(values, dtype=dtype)
    return sample[None, :, None] if sample.dim() == 1 else sample[None]


def column(output: Tensor) -> list[float]:
    """The first feature of each row of the first sample."""
    return output[0, :, 0].tolist()


def allow(pattern: str) -> Tensor:
    """A mask drawn as rows of 0 and 1: "10 11" is [[True, False], [True, True]]."""
    return torch.tensor([[cell == "1" for cell in row] for row in pattern.split()])
