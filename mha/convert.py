"""Weights in and out of `torch.nn.MultiheadAttention`."""

import torch
from torch import nn

from mha.attention import MultiHeadAttention


def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention:
    """A `MultiHeadAttention` that gives what `module` gives, with a copy of its weights.

    Two habits differ: batch comes first here, whatever `module.batch_first`, and a mask means the opposite: pass
    `~mask`. TypeError for another class, ValueError for kdim, vdim, add_bias_kv and add_zero_attn.

    >>> from_torch(nn.MultiheadAttention(8, num_heads=2)).h
    2
    """
    if not isinstance(module, nn.MultiheadAttention):
        raise TypeError(f"module must be a torch.nn.MultiheadAttention, got {type(module).__name__}")
    d_model, bias = module.embed_dim, module.in_proj_bias is not None
    used = {"kdim": module.kdim != d_model, "vdim": module.vdim != d_model}
    used |= {"add_bias_kv": module.bias_k is not None, "add_zero_attn": module.add_zero_attn}
    if any(used.values()):
        names = ", ".join(name for name in used if used[name])
        raise ValueError(f"module must be without {', '.join(used)}, which mha does not have, got one with {names}")
    state = {f"W_O.{kind}": tensor for kind, tensor in module.out_proj.state_dict().items()}
    for kind in ("weight", "bias") if bias else ("weight",):
        parts = getattr(module, f"in_proj_{kind}").chunk(3)  # W_Q, W_K and W_V stand on top of each other
        state |= {f"W_{name}.{kind}": part for name, part in zip("QKV", parts, strict=True)}
    attention = MultiHeadAttention(d_model, module.num_heads, dropout=module.dropout, bias=bias)
    attention.to(module.in_proj_weight).load_state_dict(state)
    return attention.train(module.training)


def to_torch(attention: MultiHeadAttention) -> nn.MultiheadAttention:
    """An `nn.MultiheadAttention` (batch first) that gives what `attention` gives, with a copy of its weights.

    ValueError where torch has no such layer: d_k and d_v must be d_model / h, and kv_heads = h.
    TypeError for a projection that is no plain `nn.Linear`: merge adapters and remove parametrizations first.

    >>> to_torch(MultiHeadAttention(d_model=8, h=2)).num_heads
    2
    """
    if not isinstance(attention, MultiHeadAttention):
        raise TypeError(f"attention must be a MultiHeadAttention, got {type(attention).__name__}")
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        projection, remedy = getattr(attention, name), "merge or remove what was put around it first"
        if type(projection) is not nn.Linear:  # a subclass may compute something else from its weight
            got = f"got {type(projection).__name__}: {remedy}"
            raise TypeError(f"{name} must be an nn.Linear, since torch stores its weight, {got}")
    biases = [name for name in ("W_Q", "W_K", "W_V", "W_O") if getattr(attention, name).bias is not None]
    if len(biases) not in (0, 4):
        raise ValueError(f"W_Q, W_K, W_V and W_O must all have a bias or none, as torch has, got {', '.join(biases)}")
    d_model, h, bias = attention.d_model, attention.h, bool(biases)
    for name, only in (("d_k", d_model / h), ("d_v", d_model / h), ("kv_heads", h)):
        if getattr(attention, name) != only:
            raise ValueError(f"attention must have {name} = {only:g}, as torch has, got {getattr(attention, name)}")
    held, state = attention.state_dict(), {}
    for kind in ("weight", "bias") if bias else ("weight",):
        state[f"in_proj_{kind}"] = torch.cat([held[f"W_{name}.{kind}"] for name in "QKV"])
        state[f"out_proj.{kind}"] = held[f"W_O.{kind}"]
    module = nn.MultiheadAttention(d_model, h, dropout=attention.dropout, bias=bias, batch_first=True)
    module.to(attention.W_Q.weight).load_state_dict(state)
    return module.train(attention.training)
