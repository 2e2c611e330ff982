"""Figures of chapter 2.5: what the output projection mixes, and where a head could write without it."""

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from mha.figures import INK, OUTPUT, QUIET, TINT, V, blank, canvas, head_colour, matrix, tell
from mha.language import say
from mha.steps import merge_heads, output

CONCAT, MIXED = "concat", "concat W_O"


def example(h: int, d_k: int, L: int = 1, d_model: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random heads (h, L, d_v) with d_v = d_k, and a W_O (h·d_v, d_model) that keeps their size."""
    g = torch.Generator().manual_seed(seed)
    heads = torch.randn(h, L, d_k, generator=g)
    return heads, torch.randn(h * d_k, d_model, generator=g) / (h * d_k) ** 0.5


def contributions(heads: Tensor, W_O: Tensor) -> Tensor:
    """head_i W_O[i] for every head: (h, L, d_v), (h·d_v, d_model) → (h, L, d_model). Their sum is the output."""
    h, _, d_v = heads.shape
    return heads @ W_O.view(h, d_v, -1)


def reach(heads: Tensor, W_O: Tensor | None) -> Tensor:
    """How far head i moves column c of the output: Σ |∂ output[c] / ∂ head_i|, (h, d_model). For one token."""
    width = heads.shape[0] * heads.shape[2]
    W = torch.eye(width) if W_O is None else W_O
    J = torch.autograd.functional.jacobian(lambda x: output(merge_heads(x), W)[0], heads)  # (d_model, h, 1, d_v)
    return J.abs().sum(dim=(2, 3)).T


def blocks(h: int = 2, d_k: int = 2, d_model: int = 8, L: int = 3) -> Figure:
    """Concat · W_O as blocks, to scale: the columns of head i meet the rows of W_O[i] only."""
    width = h * d_k
    fig = canvas(3.1)
    ax = fig.subplots()
    left, mid, right, top = 12 - width, 14, 24.5, 1.6
    for i in range(h):
        c = head_colour(i)
        ax.add_patch(Rectangle((left + i * d_k, top), d_k, L, fc=c, ec="white"))
        ax.add_patch(Rectangle((mid, top + i * d_k), d_model, d_k, fc=c, ec="white"))
        ax.text(left + (i + 0.5) * d_k, top + L / 2, str(i), color="white", ha="center", va="center", fontsize=11)
        ax.text(mid + d_model / 2, top + (i + 0.5) * d_k, f"W_O[{i}]", color="white", ha="center", va="center")
    ax.add_patch(Rectangle((right, top), d_model, L, fc=OUTPUT, ec="white"))
    ax.text(13, top + L / 2, "·", ha="center", va="center", fontsize=16)
    ax.text(23.25, top + L / 2, "=", ha="center", va="center", fontsize=14)
    for x, name, shape in (
        (left + width / 2, "Concat", (L, width)),
        (mid + d_model / 2, "W_O", (width, d_model)),
        (right + d_model / 2, "MultiHead", (L, d_model)),
    ):
        ax.text(x, top - 0.3, name, ha="center", va="bottom", color=INK)
        ax.text(x, top + shape[0] + 0.3, str(shape), ha="center", va="top", color=QUIET)
    blank(ax, (-0.6, right + d_model + 0.3), (0, 15.4))
    return tell(
        fig,
        say("头 i 的列，只遇到 W_O 的第 i 段行", "Columns of head i meet row block i of W_O"),
        say(
            f"拼接结果 {L}×{width}，由 {h} 个头各 {d_k} 列并排而成；W_O 是 {width}×{d_model}，从上到下分成 {h} 段，"
            f"每段 {d_k} 行，颜色与头相同；乘积是 {L}×{d_model}。",
            f"The concat, {L}×{width}, is {h} heads of {d_k} columns side by side; W_O, {width}×{d_model}, is {h} "
            f"blocks of {d_k} rows in the colours of the heads; the product is {L}×{d_model}.",
        ),
    )


def stacked(h: int = 4, d_k: int = 2, d_model: int = 8) -> Figure:
    """For one token: what each head adds to each output column, stacked, and the output as a bar across."""
    heads, W_O = example(h, d_k, d_model=d_model)
    parts = contributions(heads, W_O)[:, 0]  # (h, d_model)
    total = parts.sum(0)
    fig = canvas(3.4)
    ax = fig.subplots()
    low, high = parts.clamp(max=0).sum(0), parts.clamp(min=0).sum(0)
    span = float(high.max() - low.min())
    for c in range(d_model):
        up, down = 0.0, 0.0
        for i in range(h):
            value = float(parts[i, c])
            base = up if value > 0 else down
            ax.bar(c, value, 0.78, bottom=base, color=head_colour(i), ec="white", lw=0.8)
            if abs(value) > 0.075 * span:
                ax.text(c, base + value / 2, str(i), ha="center", va="center", color="white", zorder=5)
            up, down = (up + value, down) if value > 0 else (up, down + value)
        ax.plot([c - 0.45, c + 0.45], [float(total[c])] * 2, color=INK, lw=2.6, solid_capstyle="butt")
    ax.axhline(0, color=QUIET, lw=0.8)
    ax.set(xlim=(-0.6, d_model - 0.4), ylim=(float(low.min()) - 0.05 * span, float(high.max()) + 0.05 * span))
    ax.set_xticks(range(d_model), [str(c) for c in range(d_model)])
    ax.set_xlabel(say("输出的列（粗线是输出，色块里是头的编号）", "output column (thick line: output; digits: heads)"))
    worst = int((high - low - total.abs()).argmax())
    given = [round(float(p), 2) for p in parts[:, worst]]
    return tell(
        fig,
        say(f"输出的每一列，都是 {h} 个头相加", f"Each column adds up {h} head{'s' if h > 1 else ''}"),
        say(
            f"一个词元的 {d_model} 列输出。每列是 {h} 个头的贡献堆起来的：正的朝上，负的朝下，粗线是和。"
            f"抵消最多的是第 {worst} 列：贡献 {given}，和 {float(total[worst]):.2f}。",
            f"The {d_model} output columns of one token, each stacked from the contributions of {h} heads, positive "
            f"up, negative down; a thick line marks the sum. Most cancels in column {worst}: contributions "
            f"{given}, sum {float(total[worst]):.2f}.",
        ),
    )


def who_reaches(h: int = 4, step: str = CONCAT, d_model: int = 8) -> Figure:
    """Which output columns each head can move, before W_O (concat) and after it."""
    if d_model % h:
        raise ValueError(f"h must divide d_model, got d_model = {d_model} and h = {h}")
    heads, W_O = example(h, d_model // h, d_model=d_model)
    R = reach(heads, W_O if step == MIXED else None)
    fig = canvas(3.9)
    tones = [[head_colour(i)] * d_model for i in range(h)]
    names = [say(f"头 {i}", f"head {i}") for i in range(h)]
    cells = [[f"{float(x):.2f}" if x > 0 else "" for x in row] for row in R]
    ax = fig.subplots()
    matrix(
        ax, R / R.max(), colour=tones, numbers=None, vmax=1 / TINT, rows=names, cols=[str(c) for c in range(d_model)]
    )
    for i, row in enumerate(cells):
        for c, text in enumerate(row):
            ax.text(c + 0.5, i + 0.5, text, ha="center", va="center", color="black", fontsize=10)
    ax.set_xlabel(say("输出的列", "output column"))
    ax.xaxis.set_label_position("bottom")
    ax.set_aspect("auto")
    free = int((R > 0).sum())
    return tell(
        fig,
        say("没有 W_O：头只能写自己的列", "No W_O: a head moves only its own columns")
        if step == CONCAT
        else say("有了 W_O：每个头都够得着每一列", "With W_O: every head moves every column"),
        say(
            f"{h} 行是头，{d_model} 列是输出的列，格里是输出对这个头的导数（绝对值之和），"
            f"{h * d_model} 格里有 {free} 格不是零。",
            f"{h} rows are heads, {d_model} columns are output columns; a cell holds the derivative of the column with "
            f"respect to the head (sum of absolute values). {free} of {h * d_model} cells are not zero.",
        ),
    )


def directions(d_k: int = 2, d_model: int = 8) -> Figure:
    """The singular values of one head's W_V[i] W_O[i]: at most d_v of them are not zero."""
    g = torch.Generator().manual_seed(1)
    W_V, W_O = (torch.randn(shape, generator=g, dtype=torch.float64) for shape in ((d_model, d_k), (d_k, d_model)))
    values = torch.linalg.svdvals(W_V @ W_O / (d_model * d_k) ** 0.5)
    rank = int((values > 1e-9).sum())
    fig = canvas(2.8)
    ax = fig.subplots()
    ax.bar(range(1, d_model + 1), values.tolist(), 0.7, color=[V] * rank + [QUIET] * (d_model - rank), alpha=0.8)
    for n, value in enumerate(values.tolist(), start=1):
        ax.text(n, value, f"{value:.1f}" if n <= rank else "0", ha="center", va="bottom", fontsize=10)
    ax.set(xlabel=say("第几个奇异值", "singular value"), ylim=(0, float(values[0]) * 1.15))
    ax.set_xticks(range(1, d_model + 1))
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    return tell(
        fig,
        say(f"一个头只有 {rank} 个方向可用", f"One head has {rank} direction{'s' if rank > 1 else ''} to work with"),
        say(
            f"W_V[i] W_O[i] 是 {d_model}×{d_model} 的矩阵，每头维度 {d_k}；{d_model} 个奇异值里只有 {rank} 个不为零。",
            f"W_V[i] W_O[i] is a {d_model}×{d_model} matrix made with head width {d_k}; {rank} of its {d_model} "
            f"singular values are not zero.",
        ),
    )
