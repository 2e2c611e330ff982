"""Trace: every tensor that one forward pass makes, by name and step."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from torch import Tensor

STEPS = {
    "X_Q": 0, "X_K": 0, "X_V": 0, "Q": 1, "K": 1, "V": 1, "Q_heads": 2, "K_heads": 2, "V_heads": 2,
    "scores": 3, "weights": 3, "heads": 3, "concat": 4, "output": 5,
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The tensors of one pass through `MultiHeadAttention`, in order. Printing it shows step, name and shape."""

    X_Q: Tensor  # (B, L, d_model) the inputs
    X_K: Tensor  # (B, S, d_model)
    X_V: Tensor  # (B, S, d_model)
    Q: Tensor  # (B, L, h·d_k) step 1: projected
    K: Tensor  # (B, S, kv_heads·d_k)
    V: Tensor  # (B, S, kv_heads·d_v)
    Q_heads: Tensor  # (B, h, L, d_k) step 2: split
    K_heads: Tensor  # (B, kv_heads, S, d_k) with a cache: S counts what it held
    V_heads: Tensor  # (B, kv_heads, S, d_v)
    scores: Tensor  # (B, h, L, S) step 3: Q Kᵀ / √d_k
    weights: Tensor  # (B, h, L, S) step 3: softmax(scores)
    heads: Tensor  # (B, h, L, d_v) step 3: weights · V
    concat: Tensor  # (B, L, h·d_v) step 4: merged
    output: Tensor  # (B, L, d_model) step 5: concat · W_O
    allowed: Tensor | None = None  # where attending was allowed, broadcastable to (B, h, L, S)

    def __iter__(self) -> Iterator[tuple[int, str, Tensor]]:
        """(step, name, tensor), in order."""
        for field in fields(self):
            if field.name in STEPS:
                yield STEPS[field.name], field.name, getattr(self, field.name)

    def __repr__(self) -> str:
        return "\n".join(f"{step}  {name:<8} {tuple(tensor.shape)}" for step, name, tensor in self)
