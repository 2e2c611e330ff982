"""Multi-head attention: the five steps of `mha.steps`, composed.

`forward` takes the fused kernel; `trace` and `need_weights=True`, which look inside, walk the named steps.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mha import steps
from mha.cache import KVCache
from mha.masks import check_mask, combine
from mha.trace import Trace

GROUPED = "enable_gqa" in (F.scaled_dot_product_attention.__doc__ or "")  # torch 2.5 and later share key heads there


def scaled_dot_product_attention(
    Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None, *, is_causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V, with the weights.

    Q (…, L, d_k), K (…, S, d_k), V (…, S, d_v), mask broadcastable to (…, L, S), True = may attend
    → output (…, L, d_v), weights (…, L, S). `is_causal` is aligned to the right end.
    ValueError or TypeError, naming the argument, where shapes or mask do not fit. Source: Vaswani et al. 2017, eq. 1.

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
    _check_bool("is_causal", is_causal)
    try:
        lead = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    except RuntimeError:
        got = ", ".join(str(tuple(tensor.shape)) for tensor in (Q, K, V))
        raise ValueError(f"the leading dimensions of Q, K and V must broadcast, got {got}") from None
    shape = (*lead, Q.shape[-2], K.shape[-2])
    return steps.attend(Q, K, V, combine(mask, is_causal, shape, Q.device))


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W_O,  head_i = Attention(Q W_Q[i], K W_K[i], V W_V[i]).

    d_model: width of inputs and output. h: heads. d_k, d_v: width of one head's queries and keys, and of
    its values; both d_model / h unless given. kv_heads: heads of keys and values, each shared by h / kv_heads
    query heads in a row; h (a key head each) unless given, 1 is multi-query attention. dropout: share of
    attention weights dropped in training. bias: whether the four projections add one.
    ValueError if h does not divide d_model and d_k or d_v is left open, or kv_heads does not divide h.
    Source: Vaswani et al. 2017, §3.2.2; Ainslie et al. 2023 for kv_heads.

    >>> attention, X = MultiHeadAttention(d_model=512, h=8), torch.zeros(2, 10, 512)
    >>> attention(X).shape, attention.trace(X).weights.shape
    (torch.Size([2, 10, 512]), torch.Size([2, 8, 10, 10]))
    >>> sum(p.numel() for p in attention.parameters())  # 4·512² + 4·512, for every h
    1050624
    """

    def __init__(
        self, d_model: int, h: int, *, d_k: int | None = None, d_v: int | None = None, kv_heads: int | None = None,
        dropout: float = 0.0, bias: bool = True, device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        for name, size in {"d_model": d_model, "h": h, "d_k": d_k, "d_v": d_v, "kv_heads": kv_heads}.items():
            left_open = size is None and name not in ("d_model", "h")
            if not left_open and (type(size) is not int or size < 1):
                raise ValueError(f"{name} must be a positive integer, got {size!r}")
        if (d_k is None or d_v is None) and d_model % h:
            hint = f"choose h from {', '.join(str(n) for n in range(1, d_model + 1) if d_model % n == 0)}"
            raise ValueError(f"h must divide d_model, got d_model = {d_model} and h = {h}; {hint}, or give d_k and d_v")
        if kv_heads is not None and h % kv_heads:
            raise ValueError(f"kv_heads must divide h, got h = {h} and kv_heads = {kv_heads}")
        if type(dropout) not in (int, float) or not 0 <= dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {dropout!r}")
        _check_bool("bias", bias)
        self.d_model, self.h, self.dropout = d_model, h, dropout
        self.kv_heads = h if kv_heads is None else kv_heads
        self.d_k, self.d_v = (d_model // h if width is None else width for width in (d_k, d_v))
        factory: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.W_Q = nn.Linear(d_model, h * self.d_k, **factory)
        self.W_K = nn.Linear(d_model, self.kv_heads * self.d_k, **factory)
        self.W_V = nn.Linear(d_model, self.kv_heads * self.d_v, **factory)
        self.W_O = nn.Linear(h * self.d_v, d_model, **factory)

    def forward(
        self, Q: Tensor, K: Tensor | None = None, V: Tensor | None = None, mask: Tensor | None = None, *,
        is_causal: bool = False, need_weights: bool = False, cache: KVCache | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        """Q (B, L, d_model), K and V (B, S, d_model) → (B, L, d_model); K defaults to Q, V to K.

        mask: boolean or 0/1 integer, broadcastable to (B, h, L, S), True = may attend.
        is_causal: no query looks ahead; the last query sees every key. Both must allow.
        need_weights: also return the weights, (B, h, L, S), per head and before dropout.
        cache: keys and values of earlier calls, which come first; this call's are appended. S counts them all.
        """
        Q, K, V, shape = self._inputs(Q, K, V, mask, is_causal, cache)
        _check_bool("need_weights", need_weights)
        q, k, v = self._split(self.W_Q(Q), self.W_K(K), self.W_V(V), mask)
        if cache is not None:
            k, v = cache.append(k, v)
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            k, v = steps.share_heads(k, q.shape[1]), steps.share_heads(v, q.shape[1])
            heads, weights = steps.attend(q, k, v, combine(mask, is_causal, shape, Q.device), dropout=dropout)
            return self.W_O(steps.merge_heads(heads)), weights
        return self.W_O(steps.merge_heads(_fused(q, k, v, mask, is_causal, dropout)))

    def trace(
        self, Q: Tensor, K: Tensor | None = None, V: Tensor | None = None, mask: Tensor | None = None, *,
        is_causal: bool = False, cache: KVCache | None = None,
    ) -> Trace:  # fmt: skip
        """The same pass without dropout, step by step, keeping every tensor. Arguments as in `forward`."""
        X_Q, X_K, X_V, shape = self._inputs(Q, K, V, mask, is_causal, cache)
        Q, K, V = self.W_Q(X_Q), self.W_K(X_K), self.W_V(X_V)
        Q_heads, K_heads, V_heads = self._split(Q, K, V, mask)
        if cache is not None:
            K_heads, V_heads = cache.append(K_heads, V_heads)
        allowed = combine(mask, is_causal, shape, X_Q.device)
        scores = steps.scores(Q_heads, steps.share_heads(K_heads, Q_heads.shape[1]))
        weights = steps.softmax(scores, allowed).to(V.dtype)
        heads = weights @ steps.share_heads(V_heads, Q_heads.shape[1])
        concat = steps.merge_heads(heads)
        return Trace(
            X_Q=X_Q, X_K=X_K, X_V=X_V, Q=Q, K=K, V=V, Q_heads=Q_heads, K_heads=K_heads, V_heads=V_heads,
            scores=scores, weights=weights, heads=heads, concat=concat,
            output=self.W_O(concat), allowed=allowed,
        )  # fmt: skip

    def _inputs(
        self, Q: Tensor, K: Tensor | None, V: Tensor | None, mask: Tensor | None, is_causal: bool, cache: KVCache | None
    ) -> tuple[Tensor, Tensor, Tensor, tuple[int, int, int, int]]:
        """Q, K and V with their defaults, and (B, h, L, S). All is checked before anything is computed or kept."""
        K = Q if K is None else K
        V = K if V is None else V
        weight = _stored(self.W_Q)
        for name, X in (("Q", Q), ("K", K), ("V", V)):
            _check_tensor(name, X)
            if X.dim() != 3 or X.shape[-1] != self.d_model:
                raise ValueError(f"{name} must be (B, length, d_model = {self.d_model}), got {tuple(X.shape)}")
            if X.shape[0] != Q.shape[0]:
                raise ValueError(f"{name} must hold as many samples as Q: B = {Q.shape[0]}, got {tuple(X.shape)}")
            if weight is not None and X.device != weight.device:
                raise ValueError(f"{name} must be where the weights are, on {weight.device}, got {X.device}")
            if weight is not None and X.dtype != weight.dtype and not torch.is_autocast_enabled(X.device.type):
                raise TypeError(f"{name} must have the dtype of the weights, {weight.dtype}, got {X.dtype}")
        if K.shape[1] != V.shape[1]:
            raise ValueError(f"V must be as long as K: S = {K.shape[1]}, got V {tuple(V.shape)}")
        if cache is not None and not isinstance(cache, KVCache):
            raise TypeError(f"cache must be a KVCache, got {type(cache).__name__}")
        _check_bool("is_causal", is_causal)
        shape = (Q.shape[0], self.h, Q.shape[1], K.shape[1] + (cache.length if cache else 0))
        if mask is not None and check_mask(mask, shape).device != Q.device:
            raise ValueError(f"mask must be where the queries are, on {Q.device}, got {mask.device}")
        return Q, K, V, shape

    def _split(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Step 2 for Q (B, L, n·d_k), K (B, S, m·d_k), V (B, S, m·d_v): n and m heads, counted from the widths.

        n = h and m = kv_heads, or this process's share of both where the columns are spread over several.
        """
        widths = (("Q", Q, self.d_k), ("K", K, self.d_k), ("V", V, self.d_v))
        for name, X, width in widths:
            if X.shape[-1] < width or X.shape[-1] % width:
                d = "d_v" if name == "V" else "d_k"
                raise ValueError(f"W_{name} must give a multiple of {d} = {width} columns, got {tuple(X.shape)}")
        n, m, v = (X.shape[-1] // width for _, X, width in widths)
        if m != v or (n * self.kv_heads != m * self.h and not m == self.kv_heads == 1):
            rule = f"W_Q, W_K and W_V must give the same share of their {self.h}, {self.kv_heads} and {self.kv_heads}"
            raise ValueError(f"{rule} heads, got {n}, {m} and {v}: spread all three over the processes, or none")
        if n != self.h and mask is not None and mask.dim() > 2 and mask.shape[-3] > 1:
            hint = f"give one mask for all heads, (B, 1, L, S), where W_Q gives {n} heads of {self.h}"
            raise ValueError(f"mask must not differ from head to head, got {tuple(mask.shape)}: {hint}")
        return steps.split_heads(Q, n), steps.split_heads(K, m), steps.split_heads(V, v)

    def extra_repr(self) -> str:
        return ", ".join(f"{n}={getattr(self, n)}" for n in ("d_model", "h", "kv_heads", "d_k", "d_v", "dropout"))


def _stored(projection: nn.Module) -> Tensor | None:
    """The weight whose dtype and device the inputs must have; None where the module has none such (quantised, …)."""
    weight = getattr(projection, "weight", None)
    plain = isinstance(weight, Tensor) and weight.is_floating_point() and weight.dtype.itemsize > 1  # float8 is scaled
    return weight if plain else None


def _fused(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None, is_causal: bool, dropout: float) -> Tensor:
    """`steps.attend` in one kernel that never stores the (L, S) weights. K, V (B, kv_heads, S, …)."""
    if Q.dtype == torch.float16 and Q.device.type == "cpu":  # torch 2.4 overflows there above 65,504
        return _fused(Q.float(), K.float(), V.float(), mask, is_causal, dropout).to(V.dtype)
    (h, L), (kv_heads, S) = Q.shape[1:3], K.shape[1:3]
    if mask is None and L == 1:  # one query sees every key: queries that share a key head are rows of one attention
        Q = Q.reshape(-1, kv_heads, h // kv_heads, Q.shape[-1])
        return F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout).reshape(-1, h, 1, V.shape[-1])
    grouped: dict[str, Any] = {"enable_gqa": True} if GROUPED and kv_heads < h else {}
    K, V = (K, V) if grouped else (steps.share_heads(K, h), steps.share_heads(V, h))
    if mask is None and (not is_causal or L == S):  # torch aligns is_causal to the left end: the same only if L = S
        return F.scaled_dot_product_attention(Q, K, V, dropout_p=dropout, is_causal=is_causal, **grouped)
    allowed = combine(mask, is_causal, (*Q.shape[:-1], S), Q.device)
    assert allowed is not None  # a mask or a causal one is there
    nowhere = ~allowed.any(dim=-1, keepdim=True)  # such rows are NaN on some versions and backends
    out = F.scaled_dot_product_attention(Q, K, V, attn_mask=allowed | nowhere, dropout_p=dropout, **grouped)
    return out.masked_fill(nowhere, 0.0)


def _check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch tensor, got {type(value).__name__}")
    if not value.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers (embeddings, not token ids), got {value.dtype}")


def _check_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
