"""Trains the weights of trained.json: python -m mha.widgets.lab.train, ten seconds on one core.

One layer, h = 4, d_k = 8, on sentences made up at random: lines of tokens, some of which return, with and without
punctuation. Every token must say four things, 8 numbers each, and a head can carry 8:

- previous: the token before it
- parallel: the token in the same column of the line before (itself in the first line)
- same: where tokens like it stand, on average
- line: what its own line holds, on average

Which head does which is left to training. Tokens are random vectors, so the heads know no language: they work for
any text, in any script.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mha.attention import MultiHeadAttention
from mha.figures.tasks import one_thread
from mha.widgets.lab.model import lines, place, sinusoid

H, D_K, TOKEN = 4, 8, 8
JOBS = ("previous", "parallel", "same", "line")
SAME = 2.0  # how much louder the third answer is asked for: at 1, some seeds find no head for it
STEPS, BATCH, RATE = 1000, 24, 0.02


def sentence(L: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """Ids of L tokens, of which some return, and the (line, column) where each stands."""
    ids = rng.permutation(L)
    for i in range(1, L):
        if rng.random() < 0.35:
            ids[i] = ids[rng.integers(i)]  # comes again
    kind, width = rng.integers(3), int(rng.integers(3, 8))
    if kind == 0:  # verse: every line as long as the first
        return ids, [divmod(i, width) for i in range(L)]
    if kind == 1:  # prose on one line
        return ids, [(0, i) for i in range(L)]
    ends = np.arange(L) % (width + 1) == width  # a comma after every line
    ids[ends] = L  # always the same token
    return ids, lines(["," if end else "x" for end in ends])


def patterns(ids: NDArray[np.int64], at: list[tuple[int, int]]) -> NDArray[np.float64]:
    """Whom each of JOBS should look at: (4, L, L), rows sum to 1."""
    L = len(ids)
    line, column = np.array(at).T
    previous = np.eye(L)[np.maximum(np.arange(L) - 1, 0)]
    above = (line[:, None] - 1 == line) & (column[:, None] == column)
    parallel = np.where(above.any(axis=1, keepdims=True), above, np.eye(L))
    same = ids[:, None] == ids
    mine = line[:, None] == line
    return np.stack([P / P.sum(axis=1, keepdims=True) for P in (previous, parallel, same, mine)])


def batch(L: int, B: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """X (B, L, 32), what is wanted of every token (B, L, 32), and the patterns behind it (B, 4, L, L)."""
    inputs, wanted, looks = [], [], []
    where = sinusoid(np.arange(L), 12, 10)[:, :8]
    for _ in range(B):
        ids, at = sentence(L, rng)
        vocabulary = rng.standard_normal((L + 1, TOKEN))
        vectors = (vocabulary * math.sqrt(TOKEN) / np.linalg.norm(vocabulary, axis=1, keepdims=True))[ids]
        P = patterns(ids, at)
        inputs.append(place(vectors, at))
        wanted.append(np.concatenate([P[0] @ vectors, P[1] @ vectors, SAME * P[2] @ where, P[3] @ vectors], axis=1))
        looks.append(P)
    return torch.tensor(np.stack(inputs)), torch.tensor(np.stack(wanted)), torch.tensor(np.stack(looks))


def train(steps: int = STEPS, seed: int = 0) -> tuple[MultiHeadAttention, float]:
    """A layer trained from `seed`, and its mean squared error at the end, on sentences never seen."""
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    layer = MultiHeadAttention(H * D_K, H, dtype=torch.float64)
    with one_thread(), torch.enable_grad():
        for name, parameter in layer.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / math.sqrt(H * D_K)
            parameter.data.copy_(drawn if name.endswith("weight") else 0 * drawn)
        adam = torch.optim.Adam(layer.parameters(), lr=RATE)
        slower = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
        for _ in range(steps):
            X, wanted, _ = batch(int(rng.integers(8, 17)), BATCH, rng)
            adam.zero_grad()
            loss = (layer(X) - wanted).square().mean()
            loss.backward()
            adam.step()
            slower.step()
    X, wanted, _ = batch(16, 200, np.random.default_rng(seed + 1))
    with torch.no_grad():
        return layer, (layer(X) - wanted).square().mean().item()


@torch.no_grad()
def shares(layer: MultiHeadAttention, L: int = 15, B: int = 400, seed: int = 99) -> NDArray[np.float64]:
    """The share of each head's weight that lies where each of JOBS looks, on sentences never seen: (h, 4).

    The jobs overlap: a token's own line holds the token before it, and itself.
    """
    X, _, P = batch(L, B, np.random.default_rng(seed))
    _, weights = layer(X, need_weights=True)  # (B, h, L, L)
    return torch.einsum("bhij,bpij->hp", weights, (P > 0).double()).numpy() / (B * L)


def roles(found: NDArray[np.float64]) -> list[str]:
    """Which of JOBS each head took: the narrowest that holds nine tenths of its weight; "" where none does."""
    return [next((job for job, share in zip(JOBS, row, strict=True) if share > 0.9), "") for row in found]


def record(layer: MultiHeadAttention, error: float) -> dict[str, Any]:
    """trained.json: sizes, matrices, and what was measured. 7 decimals."""
    found = shares(layer)
    data: dict[str, Any] = {
        "about": {
            "en": "One attention layer, trained in float64 by mha/widgets/lab/train.py on 24,000 made-up sentences of "
            "random token vectors, to say of every token: the token before it, the one in the same column of the "
            "line before, where tokens like it stand, what its line holds. It knows no language.",
            "zh": "一层注意力，由 mha/widgets/lab/train.py 用 float64 训练，"
            "数据是 24,000 个随机造出的句子，词元是随机向量；要求对每个词元说出："
            "前一个词元、上一行同一列的词元、相同词元所在的位置、本行的内容。它不懂任何语言。",
        },
        "error": round(error, 6),
        "heads": [
            {"role": role, "share": round(float(found[i, JOBS.index(role)]), 3)} for i, role in enumerate(roles(found))
        ],
        "h": H,
        "d_k": D_K,
    }
    for letter in "QKVO":
        linear = getattr(layer, f"W_{letter}")
        for name, tensor in ((f"W_{letter}", linear.weight.T), (f"b_{letter}", linear.bias)):
            numbers = [round(x, 7) + 0.0 for x in tensor.detach().flatten().tolist()]
            data[name] = {"shape": list(tensor.shape), "data": numbers}
    return data


if __name__ == "__main__":
    target = Path(__file__).with_name("trained.json")
    text = json.dumps(record(*train()), ensure_ascii=False, separators=(",", ":"))
    target.write_text(text + "\n", encoding="utf-8")
    print(target, len(text))
