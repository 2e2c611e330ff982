"""Multi-head attention: the five steps of `mha.steps`, composed.

Two paths, one meaning. `forward` takes the fused kernel where nobody looks inside;
`trace` and `need_weights=True` walk the named steps.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mha import steps
from mha.masks import combine
from mha.trace import Trace


def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None, *, is_causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V, with the weights.

    Q (…, L, d_k), K (…, S, d_k), V (…, S, d_v), mask broadcastable to (…, L, S), True = may attend
    → output (…, L, d_v), weights (…, L, S). `is_causal` is aligned to the right end.
    ValueError or TypeError, naming the argument, where shapes or the mask do not fit.
    Source: Vaswani et al. 2017, eq. 1.

    >>> output, weights = scaled_dot_product_attention(torch.zeros(2, 1), torch.zeros(2, 1), torch.tensor([[0.], [2.]]))
    >>> output.tolist(), weights.tolist()
    ([[1.0], [1.0]], [[0.5, 0.5], [0.5, 0.5]])
    """
    for name, tensor in (("Q", Q), ("K", K), ("V", V)):
        _check_tensor(name, tensor)
        if tensor.dim() < 2:
            raise ValueError(f"{name} must have at least 2 dimensions (…, length, width), got {tuple(tensor.shape)}")
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(f"K must be as wide as Q: d_k = {Q.shape[-1]}, got K {tuple(K.shape)}")
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(f"V must be as long as K: S = {K.shape[-2]}, got V {tuple(V.shape)}")
    try:
        lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    except RuntimeError:
        shapes = [tuple(tensor.shape) for tensor in (Q, K, V)]
        raise ValueError(
            f"the leading dimensions of Q, K and V must broadcast, got {shapes[0]}, {shapes[1]}, {shapes[2]}"
        ) from None
    shape = (*lead, Q.shape[-2], K.shape[-2])
    return steps.attend(Q, K, V, combine(mask, is_causal, shape, Q.device))


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W_O,  head_i = Attention(Q W_Q[i], K W_K[i], V W_V[i]).

    d_model: width of inputs and output. h: heads. d_k, d_v: width of one head's queries and keys, and of
    its values; both d_model / h unless given. dropout: share of attention weights dropped in training.
    bias: whether the four projections add one.
    ValueError if h does not divide d_model and d_k or d_v is left open. Source: Vaswani et al. 2017, §3.2.2.

    >>> attention = MultiHeadAttention(d_model=512, h=8)
    >>> attention(torch.zeros(2, 10, 512)).shape
    torch.Size([2, 10, 512])
    >>> sum(p.numel() for p in attention.parameters())  # 4·512² + 4·512, for every h
    1050624
    """

    def __init__(
        self,
        d_model: int,
        h: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("d_model", d_model), ("h", h), ("d_k", d_k), ("d_v", d_v)):
            free = value is None and name in ("d_k", "d_v")
            if not free and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        if (d_k is None or d_v is None) and d_model % h:
            divisors = ", ".join(str(n) for n in range(1, d_model + 1) if d_model % n == 0)
            raise ValueError(
                f"h must divide d_model, got d_model = {d_model} and h = {h}; "
                f"choose h from {divisors}, or give d_k and d_v"
            )
        if not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {dropout!r}")
        self.d_model, self.h, self.dropout = d_model, h, dropout
        self.d_k = d_model // h if d_k is None else d_k
        self.d_v = d_model // h if d_v is None else d_v
        factory: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.W_Q = nn.Linear(d_model, h * self.d_k, **factory)
        self.W_K = nn.Linear(d_model, h * self.d_k, **factory)
        self.W_V = nn.Linear(d_model, h * self.d_v, **factory)
        self.W_O = nn.Linear(h * self.d_v, d_model, **factory)

    def forward(
        self,
        Q: Tensor,
        K: Tensor | None = None,
        V: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        need_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Q (B, L, d_model), K and V (B, S, d_model) → (B, L, d_model); K defaults to Q, V to K.

        mask: boolean or 0/1 integer, broadcastable to (B, h, L, S), True = may attend.
        is_causal: no query looks ahead; the last query sees every key. Both must allow.
        need_weights: also return the weights, (B, h, L, S), per head and before dropout.
        """
        Q, K, V = self._inputs(Q, K, V)
        shape = (Q.shape[0], self.h, Q.shape[1], K.shape[1])  # (B, h, L, S)
        dropout = self.dropout if self.training else 0.0
        q = steps.split_heads(self.W_Q(Q), self.h)  # (B, h, L, d_k)
        k = steps.split_heads(self.W_K(K), self.h)  # (B, h, S, d_k)
        v = steps.split_heads(self.W_V(V), self.h)  # (B, h, S, d_v)
        if need_weights:
            heads, weights = steps.attend(q, k, v, combine(mask, is_causal, shape, Q.device), dropout=dropout)
            return self.W_O(steps.merge_heads(heads)), weights
        return self.W_O(steps.merge_heads(_fused(q, k, v, mask, is_causal, dropout)))

    def trace(
        self,
        Q: Tensor,
        K: Tensor | None = None,
        V: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Trace:
        """The same pass without dropout, step by step, keeping every tensor. Arguments as in `forward`."""
        X_Q, X_K, X_V = self._inputs(Q, K, V)
        allowed = combine(mask, is_causal, (X_Q.shape[0], self.h, X_Q.shape[1], X_K.shape[1]), X_Q.device)
        Q, K, V = (
            steps.project(X, W.weight.T, W.bias)
            for X, W in ((X_Q, self.W_Q), (X_K, self.W_K), (X_V, self.W_V))
        )  # fmt: skip
        Q_heads, K_heads, V_heads = (steps.split_heads(X, self.h) for X in (Q, K, V))
        heads, weights = steps.attend(Q_heads, K_heads, V_heads, allowed)
        concat = steps.merge_heads(heads)
        return Trace(
            X_Q=X_Q, X_K=X_K, X_V=X_V, Q=Q, K=K, V=V, Q_heads=Q_heads, K_heads=K_heads, V_heads=V_heads,
            scores=steps.scores(Q_heads, K_heads), weights=weights, heads=heads, concat=concat,
            output=steps.output(concat, self.W_O.weight.T, self.W_O.bias), allowed=allowed,
        )  # fmt: skip

    def _inputs(self, Q: Tensor, K: Tensor | None, V: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        K = Q if K is None else K
        V = K if V is None else V
        for name, X in (("Q", Q), ("K", K), ("V", V)):
            _check_tensor(name, X)
            if X.dim() != 3 or X.shape[-1] != self.d_model:
                raise ValueError(f"{name} must be (B, length, d_model = {self.d_model}), got {tuple(X.shape)}")
            if X.shape[0] != Q.shape[0]:
                raise ValueError(f"{name} must hold as many samples as Q: B = {Q.shape[0]}, got {tuple(X.shape)}")
        if K.shape[1] != V.shape[1]:
            raise ValueError(f"V must be as long as K: S = {K.shape[1]}, got V {tuple(V.shape)}")
        return Q, K, V

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, h={self.h}, d_k={self.d_k}, d_v={self.d_v}, dropout={self.dropout}"


def _fused(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None, is_causal: bool, dropout: float) -> Tensor:
    """`steps.attend` in one kernel that never stores the (L, S) weights."""
    L, S = Q.shape[-2], K.shape[-2]
    if mask is None and (not is_causal or L == 1):  # a single query sees every key
        return F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout)
    if mask is None and L == S:  # torch aligns is_causal to the left end: the same only here
        return F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout, is_causal=True)
    allowed = combine(mask, is_causal, (*Q.shape[:-1], S), Q.device)
    assert allowed is not None  # a mask or a causal one is there
    nowhere = ~allowed.any(dim=-1, keepdim=True)  # such rows are NaN on some versions and backends
    out = F.scaled_dot_product_attention(Q, K, V, attn_mask=allowed | nowhere, dropout_p=dropout)
    return out.masked_fill(nowhere, 0.0)


def _check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch tensor, got {type(value).__name__}")
    if not value.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers (embeddings, not token ids), got {value.dtype}")
