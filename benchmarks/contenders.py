"""Who is measured: seven ways to write one layer. All hold the same weights and give the same numbers.

Each is a module called as `contender(X)`, X (B, L, d_model) → (B, L, d_model), made for one length and causal or not.
Where a contender wants its causal mask as a tensor it is made beforehand: neither its time nor its memory counts.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from x_transformers.x_transformers import Attention

from mha import MultiHeadAttention, causal_mask, to_torch

CHAPTER = Path(__file__).parent.parent / "chapters" / "4-code.ipynb"
# In bfloat16 a number has 8 bits, and every step rounds: outputs of size 0.1 differ by a few times 2⁻⁸ · 0.1.
# In float32 the order of summation shows in the sixth digit
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def layer(d_model: int, h: int, *, device: str, dtype: torch.dtype) -> MultiHeadAttention:
    """The layer whose weights all contenders copy. Its biases are 0, since x-transformers has none."""
    torch.manual_seed(0)
    made = MultiHeadAttention(d_model, h)
    for name, parameter in made.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
    return made.to(device=device, dtype=dtype)


def contenders(attention: MultiHeadAttention, L: int, causal: bool) -> dict[str, nn.Module]:
    """Every contender by name, with the weights of `attention`, for sequences of length L."""
    made = {name: make(attention, L, causal) for name, make in MAKERS.items()}
    return {name: module.to(attention.W_Q.weight) for name, module in made.items()}


class Ours(nn.Module):
    def __init__(self, attention: MultiHeadAttention, L: int, causal: bool) -> None:
        super().__init__()
        self.attention, self.causal = attention, causal

    def forward(self, X: Tensor) -> Tensor:
        return self.attention(X, is_causal=self.causal)


class Listing(nn.Module):
    """The notes' listing as chapter 4 repairs it: the very class that is printed there."""

    def __init__(self, attention: MultiHeadAttention, L: int, causal: bool) -> None:
        super().__init__()
        self.attention = chapter_4()(attention.d_model, attention.h)
        self.attention.load_state_dict(attention.state_dict())
        self.mask = causal_mask(L, device=attention.W_Q.weight.device) if causal else None

    def forward(self, X: Tensor) -> Tensor:
        return self.attention(X, X, X, self.mask)


class Torch(nn.Module):
    """`nn.MultiheadAttention` as most people call it: it returns weights, averaged over the heads, too."""

    need_weights = True

    def __init__(self, attention: MultiHeadAttention, L: int, causal: bool) -> None:
        super().__init__()
        self.attention, self.causal = to_torch(attention), causal
        self.mask = ~causal_mask(L, device=attention.W_Q.weight.device) if causal else None  # True = must not attend

    def forward(self, X: Tensor) -> Tensor:
        options = {"attn_mask": self.mask, "is_causal": self.causal, "need_weights": self.need_weights}
        return self.attention(X, X, X, **options)[0]


class TorchWithoutWeights(Torch):
    need_weights = False


class ThreeProjections(nn.Module):
    """`F.scaled_dot_product_attention` between four `nn.Linear`, and nothing else: no check, no option."""

    def __init__(self, attention: MultiHeadAttention, L: int, causal: bool) -> None:
        super().__init__()
        self.h, self.causal = attention.h, causal
        self.W_Q, self.W_K, self.W_V, self.W_O = (_copy(getattr(attention, f"W_{name}")) for name in "QKVO")

    def forward(self, X: Tensor) -> Tensor:
        B, L, d_model = X.shape
        q, k, v = (W(X).view(B, L, self.h, -1).transpose(1, 2) for W in (self.W_Q, self.W_K, self.W_V))
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.W_O(heads.transpose(1, 2).reshape(B, L, d_model))


class OneProjection(nn.Module):
    """The same, with W_Q, W_K and W_V packed into one matrix, as GPT-2 has it."""

    def __init__(self, attention: MultiHeadAttention, L: int, causal: bool) -> None:
        super().__init__()
        self.h, self.causal, d_model = attention.h, causal, attention.d_model
        self.W_QKV, self.W_O = nn.Linear(d_model, 3 * d_model), _copy(attention.W_O)
        packed = [getattr(attention, f"W_{name}") for name in "QKV"]
        with torch.no_grad():
            self.W_QKV.weight.copy_(torch.cat([W.weight for W in packed]))
            self.W_QKV.bias.copy_(torch.cat([W.bias for W in packed]))

    def forward(self, X: Tensor) -> Tensor:
        B, L, d_model = X.shape
        q, k, v = (part.view(B, L, self.h, -1).transpose(1, 2) for part in self.W_QKV(X).chunk(3, dim=-1))
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.W_O(heads.transpose(1, 2).reshape(B, L, d_model))


class XTransformers(nn.Module):
    """`x_transformers.Attention` with flash=True, the faster of its two ways."""

    def __init__(self, attention: MultiHeadAttention, L: int, causal: bool) -> None:
        super().__init__()
        self.attention = Attention(
            attention.d_model, dim_head=attention.d_k, heads=attention.h, causal=causal, flash=True
        )
        names = {"to_q": "W_Q", "to_k": "W_K", "to_v": "W_V", "to_out": "W_O"}
        state = attention.state_dict()
        self.attention.load_state_dict({f"{theirs}.weight": state[f"{ours}.weight"] for theirs, ours in names.items()})

    def forward(self, X: Tensor) -> Tensor:
        return self.attention(X)


MAKERS: dict[str, Callable[[MultiHeadAttention, int, bool], nn.Module]] = {
    "mha": Ours,
    "sdpa, 3 projections": ThreeProjections,
    "sdpa, 1 projection": OneProjection,
    "x-transformers": XTransformers,
    "nn.MultiheadAttention": TorchWithoutWeights,
    "nn.MultiheadAttention, weights": Torch,
    "listing": Listing,
}


def chapter_4() -> Any:
    """The class of the repaired listing, from the page that repairs it. ValueError where the page has none."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    found = [source for source in sources if source.startswith("class MultiHeadAttention")]
    if len(found) != 1:
        raise ValueError(f"{CHAPTER.name} must have one cell that begins with the repaired class, got {len(found)}")
    names: dict[str, Any] = {}
    exec(sources[0].split("\nLISTING")[0], names)  # its imports
    exec(found[0].split("\n\n\n")[0], names)
    return names["MultiHeadAttention"]


def _copy(linear: nn.Linear) -> nn.Linear:
    made = nn.Linear(linear.in_features, linear.out_features)
    made.load_state_dict(linear.state_dict())
    return made
