"""Multi-head attention, written to be read: the package behind the book.

Start with `mha.steps` (the five steps), then `mha.attention` (the steps composed).
Plots (`mha.figures`) and live figures (`mha.widgets`) load only when imported.
"""

from mha.attention import MultiHeadAttention, scaled_dot_product_attention
from mha.language import say, set_language
from mha.masks import causal_mask, padding_mask
from mha.trace import Trace

__all__ = [
    "MultiHeadAttention",
    "Trace",
    "causal_mask",
    "padding_mask",
    "say",
    "scaled_dot_product_attention",
    "set_language",
]
__version__ = "0.1.0"
