"""The numbers of the lab: the same in Python and in arithmetic.js.

A lab holds no weights of its own but those of trained.json: the rest follows from names. `normal` turns a name
into numbers, so that Python and the page draw the same ones without sending them.
"""

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha import steps
from mha.attention import MultiHeadAttention
from mha.masks import causal_mask, padding_mask
from mha.trace import Trace

WEIGHTS = ("random", "identity", "trained")
LINE_ENDS = ",.;:!?/，。；：！？、"
MASK32 = 0xFFFFFFFF
Vector = NDArray[np.float64]


def lab_model(
    tokens: Sequence[str], h: int = 4, d_k: int = 8, weights: str = "random", seed: int = 0
) -> tuple[MultiHeadAttention, Tensor]:
    """What a lab shows, as a model and its input: MultiHeadAttention(h·d_k, h) in float64, and X (1, L, h·d_k).

    tokens: a list of strings, or a string taken character by character. weights: "random" (drawn by `seed`),
    "identity" (every W is I, equal tokens score highest) or "trained" (h = 4, d_k = 8: what `trained()` says).
    ValueError where an argument does not fit.

    >>> attention, X = lab_model("国破山河在", h=2, d_k=4, weights="identity")
    >>> attention(X).shape
    torch.Size([1, 5, 8])
    """
    tokens = list(tokens)
    if not tokens:
        raise ValueError("tokens must hold at least one string, got []")
    for name, value in (("h", h), ("d_k", d_k)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r}")
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, got {weights!r}")
    if weights == "trained" and (h, d_k) != (trained()["h"], trained()["d_k"]):
        raise ValueError(
            f"the trained weights have h = {trained()['h']} and d_k = {trained()['d_k']}, got h = {h} and d_k = {d_k}"
        )
    d_model = h * d_k
    attention = MultiHeadAttention(d_model, h, dtype=torch.float64).eval().requires_grad_(False)
    for letter in "QKVO":
        linear = getattr(attention, f"W_{letter}")
        W, b = np.eye(d_model), np.zeros(d_model)
        if weights == "random":
            W = normal(f"{seed}/W_{letter}", d_model**2).reshape(d_model, d_model) / math.sqrt(d_model)
        elif weights == "trained":
            W = np.reshape(trained()[f"W_{letter}"]["data"], (d_model, d_model))
            b = np.asarray(trained()[f"b_{letter}"]["data"])
        linear.weight.copy_(torch.from_numpy(np.ascontiguousarray(W.T)))  # nn.Linear keeps Wᵀ
        linear.bias.copy_(torch.from_numpy(b))
    return attention, torch.from_numpy(embed(tokens, h, d_k, weights))[None]  # (1, L, d_model)


def embed(tokens: Sequence[str], h: int, d_k: int, weights: str) -> Vector:
    """X (L, h·d_k): each token's own vector, and its position where these weights use one."""
    if weights == "identity":  # every head's slice has the same length, so equal tokens score highest; no position
        return np.stack(
            [np.concatenate([token_vector(f"{token}/{i}", d_k) * 2 / d_k**0.25 for i in range(h)]) for token in tokens]
        )
    if weights == "random":
        width = h * d_k
        return np.stack([normal(f"token/{token}", width) for token in tokens]) + sinusoid(np.arange(len(tokens)), width)
    return place(np.stack([token_vector(token, 8) for token in tokens]), lines(tokens))


def place(vectors: Vector, at: Sequence[tuple[int, int]]) -> Vector:
    """The input of the trained weights: token vectors (L, 8) → (L, 32), with position, line and column."""
    line, column = np.array(at).T
    return np.hstack([vectors, sinusoid(np.arange(len(at)), 12, 10), sinusoid(line, 6, 10), sinusoid(column, 6, 10)])


def lines(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """(line, column) of each token: punctuation ends a line.

    Chinese without any has 5 characters a line, 7 if it has 14.

    >>> lines("山，河")
    [(0, 0), (0, 1), (1, 0)]
    """
    verse = all(len(token) == 1 and "\u3400" <= token <= "\u9fff" for token in tokens)
    width = (7 if len(tokens) == 14 else 5) if verse else len(tokens) + 1
    places: list[tuple[int, int]] = []
    line, column = 0, -1
    for i in range(len(tokens)):
        column += 1
        if column == width or (i and tokens[i - 1][-1] in LINE_ENDS):
            line, column = line + 1, 0
        places.append((line, column))
    return places


def normal(name: str, n: int) -> Vector:
    """n numbers of mean 0 and variance 1, always the same for the same name (mulberry32, Box–Muller)."""
    pairs = (n + 1) // 2
    with np.errstate(over="ignore"):
        t = np.uint32(hash_of(name)) + np.arange(1, 2 * pairs + 1, dtype=np.uint32) * np.uint32(0x6D2B79F5)
        t = (t ^ (t >> 15)) * (t | 1)
        t ^= t + (t ^ (t >> 7)) * (t | 61)
    uniform = ((t ^ (t >> 14)).astype(np.float64) + 0.5) / 2**32
    radius, angle = np.sqrt(-2 * np.log(uniform[0::2])), 2 * np.pi * uniform[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:n]


def hash_of(text: str) -> int:
    """FNV-1a over code points, 32 bits."""
    value = 2166136261
    for letter in text:
        value = ((value ^ ord(letter)) * 16777619) & MASK32
    return value


def token_vector(token: str, n: int) -> Vector:
    """A token's own vector: the same token, the same vector, of length √n."""
    v = normal(f"token/{token}", n)
    return v * math.sqrt(n) / np.linalg.norm(v)


def sinusoid(positions: NDArray[np.int64], n: int, base: float = 10000) -> Vector:
    """Sine and cosine of positions (L,): (L, n). Source: Vaswani et al. 2017, §3.5, there with base 10000."""
    c = np.arange(n)
    angle = positions[:, None] / base ** ((c - c % 2) / n)
    return np.where(c % 2, np.cos(angle), np.sin(angle))


@cache
def trained() -> dict[str, Any]:
    """trained.json: weights that train.py found, what they were trained on, what each head was found to do."""
    return json.loads((resources.files("mha.widgets.lab") / "trained.json").read_text(encoding="utf-8"))


def sizes(weights: str, given: dict[str, Any] | None) -> tuple[int, int] | None:
    """(h, d_k) of weights that fix both, else None."""
    if weights == "trained":
        return trained()["h"], trained()["d_k"]
    return (given["h"], given["d_k"]) if weights == "given" and given else None


def walk(attention: MultiHeadAttention, X: Tensor, state: dict[str, Any]) -> Trace:
    """The pass that a lab in this state shows: its mask, its scaling, and the mistakes of state["breaks"].

    X (1, L, d_model). Without mistakes and with scaling it is `attention.trace(X, mask=…)`.
    """
    h, L, breaks = attention.h, X.shape[1], state["breaks"]
    allowed = {
        "none": lambda: torch.ones(L, L, dtype=torch.bool),
        "causal": lambda: causal_mask(L),
        "padding": lambda: padding_mask([state["padding"]], L)[0, 0].expand(L, L),
        "drawn": lambda: torch.tensor(state["drawn"]).bool(),
    }[state["mask"]]()  # (L, L)
    p = matrices(attention)
    Q, K, V = (steps.project(X, p[f"W_{name}"], p[f"b_{name}"]) for name in "QKV")
    Q_heads, K_heads, V_heads = (
        x.reshape(1, h, L, -1) if "reshape" in breaks else steps.split_heads(x, h) for x in (Q, K, V)
    )
    width = attention.d_model if "d_model" in breaks else attention.d_k
    scores = Q_heads @ K_heads.mT / (math.sqrt(width) if state["scale"] else 1.0)
    S, may = (scores.mT, allowed.mT) if "axis" in breaks else (scores, allowed)
    weights = steps.softmax(S) * may if "late" in breaks else steps.softmax(S, may)
    weights = weights.mT if "axis" in breaks else weights
    heads = weights @ V_heads
    concat = heads.reshape(1, L, -1) if "transpose" in breaks else steps.merge_heads(heads)
    return Trace(
        X_Q=X, X_K=X, X_V=X, Q=Q, K=K, V=V, Q_heads=Q_heads, K_heads=K_heads, V_heads=V_heads,
        scores=scores, weights=weights, heads=heads, concat=concat,
        output=steps.output(concat, p["W_O"], p["b_O"]), allowed=allowed,
    )  # fmt: skip


def matrices(attention: MultiHeadAttention) -> dict[str, Any]:
    """W_Q … W_O as in the formulas, and b_Q … b_O; where heads share keys and values, each with a copy of its own."""
    found: dict[str, Any] = {}
    for letter in "QKVO":
        linear = getattr(attention, f"W_{letter}")
        shared = attention.h // attention.kv_heads if letter in "KV" else 1
        for name, M in ((f"W_{letter}", linear.weight.T), (f"b_{letter}", linear.bias)):
            if M is not None and shared > 1:
                M = M.unflatten(-1, (attention.kv_heads, -1)).repeat_interleave(shared, dim=-2).flatten(-2)
            found[name] = M
    return found


def given(attention: MultiHeadAttention, X: Tensor, tokens: Sequence[str]) -> dict[str, Any]:
    """A model of the reader's and its input as JSON: lists, because Colab drops binary data.

    Numbers of a float32 model are written with 9 digits, which name it exactly.
    """
    digits = "{:.17g}" if attention.W_Q.weight.dtype == torch.float64 else "{:.9g}"

    def listed(tensor: Tensor) -> dict[str, Any]:
        data = [float(digits.format(x)) for x in tensor.detach().double().flatten().tolist()]
        return {"shape": list(tensor.shape), "data": data}

    sent: dict[str, Any] = {"tokens": list(tokens), "h": attention.h, "d_k": attention.d_k, "X": listed(X[0])}
    sent |= {name: M if M is None else listed(M) for name, M in matrices(attention).items()}
    return sent
