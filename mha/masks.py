"""Masks, and the one convention of this book.

A mask says where a query *may attend*: boolean or 0/1 integer, True (non-zero) = may attend, broadcastable
to (B, h, L, S). A query that may attend nowhere gives zeros.
`F.scaled_dot_product_attention` agrees; `nn.MultiheadAttention` means the opposite by True.
"""

import torch
from torch import Tensor

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def causal_mask(L: int, S: int | None = None, *, device: torch.device | str | None = None) -> Tensor:
    """Which keys a query may see when it may not look ahead: (L, S), aligned to the right end.

    The last query sees every key, so decoding with earlier keys kept is right (pytorch#108108).
    S defaults to L. ValueError unless both are integers, 0 or more.

    >>> causal_mask(2, 4).int().tolist()
    [[1, 1, 1, 0], [1, 1, 1, 1]]
    """
    S = L if S is None else S
    _check_length("L", L)
    _check_length("S", S)
    return torch.ones(L, S, dtype=torch.bool, device=device).tril(S - L)


def padding_mask(lengths: Tensor | list[int], S: int) -> Tensor:
    """Which keys are real: (B, 1, 1, S), True for the first `lengths[b]` keys of sample b.

    ValueError unless S is an integer and `lengths` a row of them, each from 0 to S.

    >>> padding_mask([1, 3], S=3).int().tolist()
    [[[[1, 0, 0]]], [[[1, 1, 1]]]]
    """
    _check_length("S", S)
    lengths = lengths if isinstance(lengths, Tensor) else torch.as_tensor(lengths)
    if lengths.dim() != 1 or lengths.dtype not in INTEGERS:
        shape = tuple(lengths.shape)
        raise ValueError(f"lengths must be a row of integers, one a sample, got {lengths.dtype} of shape {shape}")
    if any(n < 0 or n > S for n in lengths.tolist()):
        raise ValueError(f"each of lengths must be from 0 to S = {S}, got {lengths.tolist()}")
    return (torch.arange(S, device=lengths.device) < lengths[:, None])[:, None, None]  # (B, 1, 1, S)


def check_mask(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The mask as a boolean tensor of at least (L, S) dimensions that broadcasts to `shape`, or a clear refusal.

    shape: (…, L, S). A mask of keys, (S,), becomes (1, S), which is what the fused kernel can read.
    TypeError for a floating mask, ValueError for a shape that does not fit. Nothing is mutated.
    """
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a boolean or 0/1 integer tensor, got {type(mask).__name__}")
    if mask.dtype != torch.bool and mask.dtype not in INTEGERS:
        why = "a floating mask is added to the scores elsewhere, and 0/1 would then mask nothing"
        use = "use mask.bool(), or mask == 0 for one that holds 0 and -inf"
        raise TypeError(f"mask must be boolean or 0/1 integer (non-zero = may attend), got {mask.dtype}: {why}; {use}")
    sizes = zip(reversed(mask.shape), reversed(shape))  # noqa: B905 (torch 2.4's compiler reads strict=False as True)
    fits = len(shape) >= mask.dim() and all(m in (1, n) for m, n in sizes)
    if not fits or 2 < mask.dim() < len(shape):
        names = "(B, h, L, S)" if len(shape) == 4 else "(…, L, S)"
        hint = "for a per-sample mask use mask[:, None], for one of keys alone mask[:, None, None]"
        raise ValueError(f"mask must broadcast to {names} = {shape}, got {tuple(mask.shape)}; {hint}")
    return torch.atleast_2d(mask != 0)


def combine(mask: Tensor | None, is_causal: bool, shape: tuple[int, ...], device: torch.device) -> Tensor | None:
    """`mask` and `is_causal` as one boolean tensor (both must allow), or None where all is allowed."""
    allowed = None if mask is None else check_mask(mask, shape)
    if not is_causal:
        return allowed
    causal = causal_mask(*shape[-2:], device=device)  # (L, S)
    return causal if allowed is None else allowed & causal


def _check_length(name: str, value: int) -> None:
    if type(value) not in (int, torch.SymInt) or value < 0:  # SymInt: a length under torch.export
        raise ValueError(f"{name} must be an integer, 0 or more, got {value!r}")
