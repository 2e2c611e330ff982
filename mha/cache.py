"""KVCache: the keys and values of earlier tokens, kept so that decoding projects each token once."""

import torch
from torch import Tensor


class KVCache:
    """Key-value cache: the keys and values so far. Every call of a layer takes the same one; `reset()` begins anew.

    capacity: the most tokens it may hold, a positive integer, or None for any number. `length`: how many it holds.

    >>> cache = KVCache(capacity=4)
    >>> K, V = cache.append(torch.zeros(1, 2, 3, 8), torch.zeros(1, 2, 3, 8))
    >>> K, V = cache.append(torch.ones(1, 2, 1, 8), torch.ones(1, 2, 1, 8)); cache
    KVCache(length=4, capacity=4)
    >>> cache.reset(); K.shape
    torch.Size([1, 2, 4, 8])
    """

    def __init__(self, capacity: int | None = None) -> None:
        if capacity is not None and (type(capacity) is not int or capacity < 1):
            raise ValueError(f"capacity must be a positive integer or None, got {capacity!r}")
        self.capacity = capacity
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next call begins a new sequence."""
        self.length = 0
        self._held: tuple[Tensor, Tensor] | None = None  # (B, kv_heads, ≥ length, d_k) and (…, d_v)

    def append(self, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        """K (B, kv_heads, n, d_k), V (B, kv_heads, n, d_v) → all keys and values so far.

        ValueError, with nothing appended, where they do not fit what is held, each other, or the capacity.
        """
        n, held = K.shape[-2], self._held or (K[..., :0, :], V[..., :0, :])
        for name, old, new in (("K", held[0], K), ("V", held[1], V)):
            wanted = (*held[0].shape[:-2], n, old.shape[-1])
            if new.shape != wanted or new.dtype != old.dtype:
                got = f"got {tuple(new.shape)} and {new.dtype}: one cache serves one layer and one batch"
                raise ValueError(f"{name} must be {wanted} and {old.dtype} to join what the cache holds, {got}")
        if self.capacity is not None and self.length + n > self.capacity:
            full = f"the cache holds {self.length} of capacity = {self.capacity} tokens, and K brings {n}"
            raise ValueError(f"{full}: make it larger, or reset() it for a new sequence")
        self._held = self._joined(held[0], K), self._joined(held[1], V)
        self.length += n
        return self._held[0][..., : self.length, :], self._held[1][..., : self.length, :]

    def _joined(self, old: Tensor, new: Tensor) -> Tensor:
        begin, end = self.length, self.length + new.shape[-2]
        if torch.is_grad_enabled():  # autograd needs what it saw unchanged: nothing is written in place
            return torch.cat([old[..., :begin, :], new], dim=-2)
        if old.shape[-2] < end:
            room = new.new_empty(*new.shape[:-2], self.capacity or 2 * end, new.shape[-1])
            room[..., :begin, :] = old[..., :begin, :]
            old = room
        old[..., begin:end, :] = new
        return old

    def __repr__(self) -> str:
        return f"KVCache(length={self.length}, capacity={self.capacity})"
