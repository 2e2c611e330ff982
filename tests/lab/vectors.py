"""What arithmetic.js must find: states and models, and every tensor of the pass as `mha` has it.

The mistakes are made here by hand, one line each, as the projects made them.
"""

import math

import torch

from mha import MultiHeadAttention, causal_mask, padding_mask, steps
from mha.widgets.lab import model as numbers

PLAIN = {"breaks": [], "scale": True, "mask": "none"}
SIZES = [  # L, h, d_k, d_v, d_model: also where d_k ≠ d_model / h
    (5, 4, 8, 8, 32),
    (1, 1, 1, 1, 1),
    (12, 8, 2, 2, 16),
    (3, 2, 5, 3, 7),
    (16, 3, 4, 9, 10),
    (7, 5, 1, 6, 11),
    (2, 1, 16, 2, 64),
]


def own(seed, L, h, d_k, d_v, d_model, **options):
    """A model with random weights and biases, and its input, in float64."""
    torch.manual_seed(seed)
    attention = MultiHeadAttention(d_model, h, d_k=d_k, d_v=d_v, dtype=torch.float64, **options).requires_grad_(False)
    for parameter in attention.parameters():
        parameter.normal_(0, 0.6)
    return attention, torch.randn(1, L, d_model, dtype=torch.float64)


def sent(attention, X):
    return numbers.given(attention, X, [str(i) for i in range(X.shape[1])])


def mask_of(state, L):
    """The mask that `mha` takes, or None."""
    return {
        "none": lambda: None,
        "causal": lambda: causal_mask(L),
        "padding": lambda: padding_mask([state["padding"]], L),
        "drawn": lambda: torch.tensor(state["drawn"]).bool(),
    }[state["mask"]]()


def expected(attention, X, state):
    """Every tensor by the name it has in arithmetic.js, from `mha`'s own trace. For states without mistakes."""
    if not state.get("scale", True):  # √d_k times larger queries give the scores that were not divided
        louder = math.sqrt(attention.d_k)
        bigger = MultiHeadAttention(
            attention.d_model, attention.h, d_k=attention.d_k, d_v=attention.d_v, dtype=torch.float64
        )
        bigger.load_state_dict(attention.state_dict())
        bigger.requires_grad_(False).W_Q.weight.mul_(louder)
        bigger.W_Q.bias.mul_(louder)
        found = expected(bigger, X, {**state, "scale": True})
        return found | {name: found[name] / louder for name in ("Q", "Q_heads", "raw")}
    trace = attention.trace(X, mask=mask_of(state, X.shape[1]))
    names = ("Q", "K", "V", "Q_heads", "K_heads", "V_heads", "scores", "weights", "heads", "concat", "output")
    found = {name: getattr(trace, name)[0] for name in names}
    rows = attention.W_O.weight.T.unflatten(0, (attention.h, attention.d_v))  # (h, d_v, d_model)
    L = X.shape[1]
    may = torch.ones(1, 1, dtype=torch.bool) if trace.allowed is None else trace.allowed
    return found | {
        "X": X[0],
        "raw": found["Q_heads"] @ found["K_heads"].mT,
        "allowed": may.reshape(may.shape[-2:]).expand(L, L).double(),
        "contributions": found["heads"] @ rows,
        "entropy": torch.special.entr(found["weights"]).sum(-1),
    }


def broken(attention, X, state):
    """The tensors of a pass with the mistakes of state["breaks"]."""
    h, L, breaks = attention.h, X.shape[1], state["breaks"]
    mask = mask_of(state, L)
    may = torch.ones(L, L, dtype=torch.bool) if mask is None else mask.reshape(mask.shape[-2:]).expand(L, L)
    Q, K, V = attention.W_Q(X)[0], attention.W_K(X)[0], attention.W_V(X)[0]  # (L, h·d)
    if "reshape" in breaks:
        q, k, v = (x.view(h, L, -1) for x in (Q, K, V))
    else:
        q, k, v = (steps.split_heads(x, h) for x in (Q, K, V))
    scores = q @ k.mT
    if state.get("scale", True):
        scores = scores / math.sqrt(attention.d_model if "d_model" in breaks else attention.d_k)
    dim = -2 if "axis" in breaks else -1
    if "late" in breaks:
        weights = torch.softmax(scores, dim=dim) * may
    else:
        weights = torch.softmax(scores.masked_fill(~may, -math.inf), dim=dim).nan_to_num(0.0)  # nothing allowed: zeros
    heads = weights @ v
    concat = heads.reshape(L, -1) if "transpose" in breaks else steps.merge_heads(heads)
    return {
        "Q": Q, "K": K, "V": V, "Q_heads": q, "K_heads": k, "V_heads": v, "raw": q @ k.mT, "scores": scores,
        "weights": weights, "heads": heads, "concat": concat, "output": attention.W_O(concat),
    }  # fmt: skip
