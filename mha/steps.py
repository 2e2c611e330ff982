"""The five steps of multi-head attention, as chapter 2 teaches them.

    project → split_heads → attend → merge_heads → output

Dimensions, here and everywhere in `mha`:
B batch, L queries, S keys (S = L in self-attention), h heads,
d_model model width, d_k head width of queries and keys, d_v of values.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def project(X: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Step 1, the linear projection: Q = X W_Q (and K, V likewise).

    X (B, L, d_model), W (d_model, h·d_k), b (h·d_k,) → (B, L, h·d_k).
    `nn.Linear` stores the transpose of W: pass `linear.weight.T`.

    >>> X = torch.tensor([[[1., 2.]]])
    >>> project(X, torch.tensor([[1., 0., 3.], [0., 1., 4.]])).tolist()
    [[[1.0, 2.0, 11.0]]]
    """
    Y = X @ W  # (B, L, h·d_k)
    return Y if b is None else Y + b


def split_heads(X: Tensor, h: int) -> Tensor:
    """Step 2, head splitting: the last dimension becomes (h, d_k), then h moves forward.

    X (B, L, h·d_k) → (B, h, L, d_k), a view of the same storage: nothing is copied.
    ValueError if X has no (L, h·d_k) or h does not divide the last dimension.

    >>> split_heads(torch.arange(12).view(1, 3, 4), h=2)[0, 0].tolist()  # head 0: left half of each row
    [[0, 1], [4, 5], [8, 9]]
    """
    if X.dim() < 2:
        raise ValueError(f"X must have at least 2 dimensions (…, length, width), got {tuple(X.shape)}")
    width = X.shape[-1]
    if type(h) is not int or h < 1 or width % h:
        raise ValueError(f"h must be an integer dividing the last dimension of X, got h = {h!r} and X {tuple(X.shape)}")
    X = X.unflatten(-1, (h, width // h))  # (B, L, h, d_k)
    return X.transpose(-3, -2)  # (B, h, L, d_k)


def share_heads(X: Tensor, h: int) -> Tensor:
    """Grouped-query attention: each key (or value) head serves h / kv_heads query heads in a row.

    X (B, kv_heads, S, d_k) → (B, h, S, d_k); X itself where kv_heads = h.
    ValueError if kv_heads does not divide h. Source: Ainslie et al. 2023.

    >>> share_heads(torch.tensor([[[[0]], [[1]]]]), h=4).flatten().tolist()
    [0, 0, 1, 1]
    """
    kv_heads = X.shape[-3]
    if kv_heads == h:
        return X
    if type(h) is not int or kv_heads < 1 or h < 1 or h % kv_heads:
        raise ValueError(f"h must be a multiple of the heads of X, got h = {h!r} and X {tuple(X.shape)}")
    return X.repeat_interleave(h // kv_heads, dim=-3)


def scores(Q: Tensor, K: Tensor) -> Tensor:
    """Steps 3.1 and 3.2, the attention scores: S = Q Kᵀ / √d_k.

    Q (B, h, L, d_k), K (B, h, S, d_k) → (B, h, L, S).
    Q is divided first, and half precision is multiplied in float32: a dot product of 64 numbers
    of size 40 is 102,400, more than float16 can hold (pytorch#110505).

    >>> scores(torch.tensor([[3., 4.]]), torch.tensor([[1., 0.], [0., 1.]]))
    tensor([[2.1213, 2.8284]])
    """
    if Q.dtype in (torch.float16, torch.bfloat16):
        Q, K = Q.float(), K.float()
    return (Q / math.sqrt(Q.shape[-1])) @ K.transpose(-2, -1)  # (B, h, L, S)


def softmax(S: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Step 3.3, the attention weights: A = softmax(S) over the keys that are allowed.

    S (B, h, L, S), allowed boolean (else TypeError) and broadcastable to S → (B, h, L, S).
    A masked weight is exactly 0; a row sums to 1, or to 0 where no key is allowed.

    >>> S = torch.zeros(2, 3)
    >>> softmax(S, torch.tensor([[True, True, False], [False, False, False]])).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """
    if allowed is None:
        return torch.softmax(S, dim=-1)
    if allowed.dtype != torch.bool:
        raise TypeError(f"allowed must be boolean (True = may attend), got {allowed.dtype}")
    nowhere = ~allowed.any(dim=-1, keepdim=True)  # rows that may look at no key
    S = S.masked_fill(~allowed, -math.inf)
    S = S.masked_fill(nowhere, 0.0)  # softmax of −∞ alone is NaN, in the gradient too: pass through a finite row …
    return torch.softmax(S, dim=-1).masked_fill(~allowed, 0.0)  # … and empty it


def attend(
    Q: Tensor, K: Tensor, V: Tensor, allowed: Tensor | None = None, *, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Step 3, scaled dot-product attention in every head: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.

    Q (B, h, L, d_k), K (B, h, S, d_k), V (B, h, S, d_v), allowed broadcastable to (B, h, L, S)
    → the heads' outputs (B, h, L, d_v) and the weights (B, h, L, S), before dropout.
    Source: Vaswani et al. 2017, eq. 1.

    >>> V = torch.tensor([[1.], [2.], [3.], [100.]])
    >>> attend(torch.zeros(1, 1), torch.zeros(4, 1), V, torch.tensor([True, True, True, False]))[0].item()
    2.0
    """
    A = softmax(scores(Q, K), allowed).to(V.dtype)  # (B, h, L, S)
    return F.dropout(A, dropout) @ V, A  # (B, h, L, d_v), (B, h, L, S)


def merge_heads(X: Tensor) -> Tensor:
    """Step 4, merging: what undoes the split. Transpose back, then join the last two dimensions.

    X (B, h, L, d_v) → (B, L, h·d_v), for any strides. ValueError if X has fewer than 3 dimensions.

    >>> x = torch.arange(12).view(1, 3, 4)
    >>> torch.equal(merge_heads(split_heads(x, h=2)), x)
    True
    """
    if X.dim() < 3:
        raise ValueError(f"X must have at least 3 dimensions (…, h, length, width), got {tuple(X.shape)}")
    return X.transpose(-3, -2).flatten(-2)  # (B, L, h, d_v) → (B, L, h·d_v)


def output(X: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """Step 5, the output projection: MultiHead(Q, K, V) = Concat(head_1, …, head_h) W_O.

    X (B, L, h·d_v), W (h·d_v, d_model), b (d_model,) → (B, L, d_model).

    >>> output(torch.ones(1, 1, 2), torch.eye(2), torch.tensor([0., 1.])).tolist()
    [[[1.0, 2.0]]]
    """
    return project(X, W, b)
