"""Multi-head attention, written to be read: the package behind the book.

Start with `mha.steps` (the five steps), then `mha.attention`. Plots and widgets load only when imported.
"""

from mha.attention import MultiHeadAttention, scaled_dot_product_attention
from mha.cache import KVCache
from mha.convert import from_torch, to_torch
from mha.language import say, set_language
from mha.masks import causal_mask, padding_mask
from mha.trace import Trace

__all__ = [
    "KVCache", "MultiHeadAttention", "Trace", "causal_mask", "from_torch", "padding_mask", "say",
    "scaled_dot_product_attention", "set_language", "to_torch",
]  # fmt: skip
__version__ = "0.1.0"
