"""The definition of multi-head attention in NumPy float64 loops: slow, obvious, the judge of the rest."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def attention(Q: ArrayLike, K: ArrayLike, V: ArrayLike, allowed: ArrayLike | None = None) -> tuple[Array, Array]:
    """One head, one sample: Q (L, d_k), K (S, d_k), V (S, d_v) → output (L, d_v), weights (L, S).

    allowed (L, S), boolean or integer (else TypeError): where a query may attend. None allowed gives zeros.

    >>> output, weights = attention([[0.]], [[0.], [0.]], [[10.], [20.]])
    >>> output.tolist(), weights.tolist()
    ([[15.0]], [[0.5, 0.5]])
    """
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (Q, K, V))
    L, S, d_k = len(q), len(k), q.shape[1]
    may = np.broadcast_to(_boolean(allowed), (L, S))
    weights, out = np.zeros((L, S)), np.zeros((L, v.shape[1]))
    for i in range(L):
        score = {j: sum(q[i, c] * k[j, c] for c in range(d_k)) / math.sqrt(d_k) for j in range(S) if may[i, j]}
        top = max(score.values(), default=0.0)  # without a key nothing uses it
        total = sum(math.exp(s - top) for s in score.values())
        for j, s in score.items():
            weights[i, j] = math.exp(s - top) / total
            out[i] += weights[i, j] * v[j]
    return out, weights


def multi_head_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, parameters: dict[str, ArrayLike], h: int,
    allowed: ArrayLike | None = None, kv_heads: int | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Q (B, L, d_model), K and V (B, S, d_model) → output (B, L, d_model), weights (B, h, L, S).

    parameters: W_Q (d_model, h·d_k), W_K (d_model, kv_heads·d_k), W_V (d_model, kv_heads·d_v), W_O (h·d_v, d_model),
    and biases b_Q, b_K, b_V, b_O where there are any. kv_heads: h unless given. allowed: to (B, h, L, S).

    >>> W = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), [[1.0]])
    >>> multi_head_attention([[[0.0], [0.0]]], [[[0.0], [0.0]]], [[[10.0], [20.0]]], W, h=1)[0].tolist()
    [[[15.0], [15.0]]]
    """
    x_q, x_k, x_v = (np.asarray(x, dtype=np.float64) for x in (Q, K, V))
    p = {name: np.asarray(value, dtype=np.float64) for name, value in parameters.items()}
    B, L, S = len(x_q), x_q.shape[1], x_k.shape[1]
    kv_heads = kv_heads or h
    d_k, d_v = p["W_Q"].shape[1] // h, p["W_V"].shape[1] // kv_heads
    may = np.broadcast_to(_boolean(allowed), (B, h, L, S))
    out, weights = np.zeros((B, L, p["W_O"].shape[1])), np.zeros((B, h, L, S))
    for b in range(B):
        q = x_q[b] @ p["W_Q"] + p.get("b_Q", 0.0)
        k = x_k[b] @ p["W_K"] + p.get("b_K", 0.0)
        v = x_v[b] @ p["W_V"] + p.get("b_V", 0.0)
        heads = np.zeros((L, h * d_v))
        for i in range(h):
            j = i * kv_heads // h  # the key head that query head i shares with its neighbours
            keys, values = k[:, j * d_k : (j + 1) * d_k], v[:, j * d_v : (j + 1) * d_v]
            head, weights[b, i] = attention(q[:, i * d_k : (i + 1) * d_k], keys, values, may[b, i])
            heads[:, i * d_v : (i + 1) * d_v] = head
        out[b] = heads @ p["W_O"] + p.get("b_O", 0.0)
    return out, weights


def _boolean(allowed: ArrayLike | None) -> NDArray[np.bool_]:
    may = np.asarray(True if allowed is None else allowed)
    if may.dtype.kind not in "biu":
        raise TypeError(f"allowed must be boolean or 0/1 integer (non-zero = may attend), got {may.dtype}")
    return may.astype(bool)
