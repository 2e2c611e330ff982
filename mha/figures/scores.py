"""Figures and experiments of chapter 2.3: the four small steps of attention, what √d_k does, masks."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from mha import masks, steps
from mha.figures import INK, OUTPUT, QUIET, RIGHT, WEIGHT, WRONG, K, Q, V, canvas, head_colour, matrix, tell
from mha.language import say

SCALES = ("1", "√d_k", "d_k")
MASKS = ("none", "causal", "padding", "causal + padding")


# ── the four small steps, on numbers small enough to check by hand ──────────────────────────────


def dot_products(q: Tensor, k: Tensor) -> Figure:
    """Step 1: Q Kᵀ, one number for each pair of a query and a key; q (L, d_k), k (S, d_k)."""
    dots = q @ k.T  # (L, S)
    fig = canvas(2.3)
    left, times, right, gives, result = _line(fig, [q.shape[1], k.shape[0], k.shape[0]])
    matrix(left, q, colour=Q, numbers="{:.0f}", title=f"Q {_size(q)}", rows=_names("q", len(q)))
    matrix(right, k.T, colour=K, numbers="{:.0f}", title=f"Kᵀ {_size(k.T)}", cols=_names("k", len(k)))
    matrix(result, dots, numbers="{:.0f}", title=f"QKᵀ {_size(dots)}", cols=_names("k", len(k)))
    _sign(times, "·")
    _sign(gives, "=")
    j = int(dots[0].argmax())
    _frame(left, 0, 0, q.shape[1], 1)
    _frame(right, j, 0, 1, q.shape[1])
    _frame(result, j, 0, 1, 1)
    sum_ = " + ".join(f"{a:.0f}·{b:.0f}" for a, b in zip(q[0].tolist(), k[j].tolist(), strict=True))
    return tell(
        fig,
        say("每个查询遇上每个键，得到一个数", "Each query meets each key: one number"),
        say(
            f"Q 乘 Kᵀ，结果是 {_size(dots)} 的矩阵 {_list(dots)}。框出的一格：q0·k{j} = {sum_} = {dots[0, j]:.0f}。",
            f"Q times Kᵀ gives a {_size(dots)} matrix, {_list(dots)}. "
            f"The framed cell: q0·k{j} = {sum_} = {dots[0, j]:.0f}.",
        ),
    )


def scaling(dots: Tensor, d_k: int) -> Figure:
    """Step 2: every dot product divided by √d_k."""
    S = dots / math.sqrt(d_k)
    fig = canvas(2.1)
    left, gives, right = _line(fig, [dots.shape[1], S.shape[1]], room=2.2)
    matrix(left, dots, numbers="{:.0f}", title=f"QKᵀ {_size(dots)}", rows=_names("q", len(dots)))
    matrix(right, S, numbers="{:.0f}", vmax=float(dots.abs().max()), title=f"S {_size(S)}")
    _sign(gives, f"÷ √{d_k} = ÷ {math.sqrt(d_k):.0f}  →")
    return tell(
        fig,
        say("缩放：所有的数一起变小", "Scaling makes every number smaller"),
        say(
            f"左边是点积 {_list(dots)}，都除以 √{d_k} = {math.sqrt(d_k):.0f}，得到右边的分数 {_list(S)}。",
            f"Left, the dot products {_list(dots)}; each divided by √{d_k} = {math.sqrt(d_k):.0f} "
            f"gives the scores on the right, {_list(S)}.",
        ),
    )


def normalising(S: Tensor) -> Figure:
    """Step 3: softmax over each row, and the sum of every row."""
    A = steps.softmax(S)
    fig = canvas(2.1)
    left, gives, right, sums = _line(fig, [S.shape[1], A.shape[1]], room=1.7, tail=1.3)
    matrix(left, S, numbers="{:.0f}", vmax=4, title=f"S {_size(S)}", rows=_names("q", len(S)))
    matrix(right, A, vmax=1, title=f"A {_size(A)}")
    _sign(gives, "softmax  →")
    for r, total in enumerate(A.sum(-1).tolist()):
        sums.text(0, r + 0.5, f"Σ = {total:.0f}", va="center", color=QUIET)
    sums.set(xlim=(0, 1), ylim=(len(S), 0))
    return tell(
        fig,
        say("softmax 之后，每一行的和是 1", "After softmax every row sums to 1"),
        say(
            f"左边的分数 {_list(S)} 一行一行做 softmax，得到右边的权重 {_list(A, 2)}，每一行的和是 1。",
            f"Softmax, row by row, turns the scores {_list(S)} into the weights {_list(A, 2)}; each row sums to 1.",
        ),
    )


def weighted_sum(A: Tensor, v: Tensor) -> Figure:
    """Step 4: A V, each output a mixture of the values; A (L, S), v (S, d_v)."""
    out = A @ v  # (L, d_v)
    fig = canvas(2.1)
    left, times, right, gives, result = _line(fig, [A.shape[1], v.shape[1], out.shape[1]])
    matrix(left, A, vmax=1, title=f"A {_size(A)}", rows=_names("q", len(A)))
    matrix(right, v, colour=V, numbers="{:.0f}", title=f"V {_size(v)}")
    matrix(result, out, colour=OUTPUT, numbers="{:.1f}", title=f"AV {_size(out)}")
    _sign(times, "·")
    _sign(gives, "=")
    _frame(left, 0, 0, A.shape[1], 1)
    _frame(right, 0, 0, 1, A.shape[1])
    _frame(result, 0, 0, 1, 1)
    sum_ = " + ".join(f"{a:.2f}·{b:.0f}" for a, b in zip(A[0].tolist(), v[:, 0].tolist(), strict=True))
    return tell(
        fig,
        say("输出的每一行，是各个值的加权和", "Each output row is a mixture of the values"),
        say(
            f"权重乘值，得到 {_size(out)} 的输出 {_list(out, 1)}。框出的一格：{sum_} = {out[0, 0]:.1f}。",
            f"Weights times values give the {_size(out)} output {_list(out, 1)}. "
            f"The framed cell: {sum_} = {out[0, 0]:.1f}.",
        ),
    )


# ── what √d_k does: random queries and keys ──────────────────────────────────────────────────────


@cache
def random_rows(d_k: int, n: int = 64, queries: int = 4096, seed: int = 2) -> tuple[Tensor, Tensor]:
    """Standard normal queries q (b, 64, d_k) and keys k (b, n, d_k), b = queries / 64; each 64 queries share keys."""
    generator = torch.Generator().manual_seed(seed)
    b = queries // 64
    q = torch.randn(b, 64, d_k, generator=generator)
    return q, torch.randn(b, n, d_k, generator=generator)


def divisor(scale: str, d_k: int) -> float:
    """What "1", "√d_k" or "d_k" stands for. ValueError for anything else."""
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    return (1.0, math.sqrt(d_k), float(d_k))[SCALES.index(scale)]


def entropy(A: Tensor) -> Tensor:
    """−Σ A ln A of each row: 0 when one key takes all, ln n when all n keys are equal. (…, n) → (…)."""
    return torch.special.entr(A).sum(-1)


def jacobian_norm(A: Tensor) -> Tensor:
    """Frobenius norm of the softmax Jacobian diag(a) − a aᵀ of each row a of A: (…, n) → (…).

    >>> float(jacobian_norm(torch.tensor([0.5, 0.5], dtype=torch.float64)))
    0.5
    """
    A = A.double()  # near a one-hot row the three sums cancel; float32 is too coarse
    square = A.square().sum(-1)
    return (square - 2 * A.pow(3).sum(-1) + square.square()).clamp_min(0).sqrt()


def gradient_norm(d_k: int, scale: str, n: int = 64, queries: int = 4096) -> Tensor:
    """‖∂(g·a)/∂q‖ of each query, where a = softmax(k q / s) and g is standard normal: (queries,).

    g is the gradient that comes back from what uses the weights. Written out: (1/s) kᵀ (diag(a) − a aᵀ) g.
    """
    q, k = random_rows(d_k, n, queries)
    s = divisor(scale, d_k)
    A = ((q @ k.mT).double() / s).softmax(-1)  # (b, 64, n)
    g = torch.randn(A.shape, generator=torch.Generator().manual_seed(1)).double()
    at_scores = A * (g - (A * g).sum(-1, keepdim=True))  # through the softmax
    return ((at_scores.float() @ k) / s).norm(dim=-1).flatten()  # through the scores


def sharpness(d_k: int = 4, n: int = 64, scale: str = "1", top: int = 16) -> Figure:
    """The largest weights of a typical row (the one of median entropy) for random queries and keys."""
    s = divisor(scale, d_k)
    q, k = random_rows(d_k, n, 1024)
    A = (q @ k.mT / s).softmax(-1).flatten(0, 1)  # (1024, n)
    H = entropy(A)
    row = A[H.argsort()[len(H) // 2]].sort(descending=True).values
    rest = float(row[top:].sum())
    fig = canvas(2.9)
    ax = fig.subplots()
    ax.bar(np.arange(top) + 1, row[:top].numpy(), width=0.8, color=WEIGHT)
    ax.axhline(1 / n, color=QUIET, lw=1, ls=(0, (4, 3)))
    ax.text(top + 0.4, 1 / n + 0.02, f"1/n = {1 / n:.3f}", color=QUIET, ha="right", va="bottom", fontsize=9.5)
    ax.set(xlim=(0.4, top + 0.6), ylim=(0, 1), xticks=[1, 4, 8, 12, 16], yticks=[0, 0.5, 1])
    ax.set_xlabel(say(f"权重最大的 {top} 个键", f"the {top} keys of largest weight"), fontsize=10)
    ax.set_ylabel(say("权重", "weight"), fontsize=10)
    facts = [
        say(f"典型一行，{n} 个键", f"a typical row, {n} keys"),
        f"var(S) = {d_k / s**2:.3g}",
        say("平均 H", "mean entropy") + f" {H.mean():.2f},  ln n = {math.log(n):.2f}",
        say("平均最大权重", "mean largest weight") + f" {A.amax(-1).mean():.2f}",
    ]
    if n > top:
        facts.append(say(f"其余 {n - top} 个键共占", f"the other {n - top} keys share") + f" {rest:.2f}")
    ax.text(0.98, 0.96, "\n".join(facts), transform=ax.transAxes, ha="right", va="top", fontsize=10, linespacing=1.5)
    return tell(
        fig,
        f"d_k = {d_k},  ÷{scale}:  "
        + say(f"最大的键拿走 {row[0] * 100:.0f}%", f"the top key takes {row[0] * 100:.0f}%"),
        say(
            f"d_k = {d_k}、n = {n}、除以 {scale} 时，熵居中的那一行权重从大到小："
            f"{_list(row[:4], 2)}……；平均熵 {H.mean():.2f}，ln n = {math.log(n):.2f}。",
            f"With d_k = {d_k}, n = {n}, divided by {scale}: the weights of the row of median entropy, "
            f"largest first, {_list(row[:4], 2)}…; mean entropy {H.mean():.2f}, ln n = {math.log(n):.2f}.",
        ),
    )


def gradients(d_k: int = 1024, n: int = 64) -> Figure:
    """How the gradients of the queries spread over the powers of ten, unscaled and scaled."""
    fig = canvas(3.3)
    axes = fig.subplots(2, 1, sharex=True)
    bins = np.linspace(-8, 2, 61)
    small = []
    for ax, scale, colour in zip(axes, SCALES[:2], (WRONG, RIGHT), strict=True):
        norms = gradient_norm(d_k, scale, n).clamp_min(1e-8).log10().numpy()
        ax.hist(norms, bins=bins, weights=np.full(len(norms), 1 / len(norms)), color=colour)
        small.append(float((norms < -3).mean() * 100))
        ax.set(xlim=(-8, 2), yticks=[])
        ax.spines["left"].set_visible(False)
        note = f"÷{scale}" + "\n" + say("小于 0.001：", "below 0.001: ") + f"{small[-1]:.0f}%"
        ax.text(0.04, 0.92, note, transform=ax.transAxes, va="top", color=colour, linespacing=1.5)
        ax.axvline(-3, color=QUIET, lw=1, ls=(0, (4, 3)))
    axes[1].set_xticks([-8, -6, -4, -2, 0, 2], ["≤ 1e−8", "1e−6", "1e−4", "0.01", "1", "100"])
    axes[1].set_xlabel(say("q 的梯度的长度", "length of the gradient at q"), fontsize=10)
    return tell(
        fig,
        f"d_k = {d_k}:  " + say("不缩放，梯度两头跑", "unscaled gradients run to both ends"),
        say(
            f"d_k = {d_k} 时 4096 个查询的梯度长度，横轴是对数。不缩放：{small[0]:.0f}% 小于 0.001，"
            f"同时有许多大于 1；除以 √d_k：{small[1]:.0f}% 小于 0.001，全挤在 0.1 附近。",
            f"Gradient lengths of 4,096 queries at d_k = {d_k}, on a logarithmic axis. Unscaled: {small[0]:.0f}% are "
            f"below 0.001 while many exceed 1; divided by √d_k: {small[1]:.0f}% are, and all crowd around 0.1.",
        ),
    )


# ── masks ────────────────────────────────────────────────────────────────────────────────────────


def mask_on(S: Tensor, allowed: Tensor) -> Figure:
    """Scores with the forbidden cells hatched, and the weights that are left; S, allowed (L, S)."""
    A = steps.softmax(S, allowed)
    fig = canvas(2.5)
    left, gives, right = _line(fig, [S.shape[1], A.shape[1]], room=1.9)
    names = _names("k", S.shape[1])
    matrix(
        left, S, masked=~allowed, numbers="{:.0f}", vmax=4, title=f"S {_size(S)}", rows=_names("q", len(S)), cols=names
    )
    matrix(right, A, masked=~allowed, vmax=1, title=f"A {_size(A)}", cols=names)
    _sign(gives, "softmax  →")
    hidden = int((~allowed).sum())
    return tell(
        fig,
        say("被遮住的格子，权重正好是 0", "A masked cell has weight exactly 0"),
        say(
            f"分数矩阵里有 {hidden} 格被遮住（画斜线）；剩下的格子做 softmax，权重为 {_list(A, 2)}。",
            f"{hidden} scores are masked (hatched); softmax over the rest gives the weights {_list(A, 2)}.",
        ),
    )


def sentence(mask: str = "none", h: int = 4, seed: int = 0) -> Figure:
    """Untrained weights of h heads on a sentence of five tokens and a padding token, under a mask."""
    if mask not in MASKS:
        raise ValueError(f"mask must be one of {', '.join(MASKS)}, got {mask!r}")
    d_model = 32
    if d_model % h:
        raise ValueError(f"h must divide d_model, got d_model = {d_model} and h = {h}")
    words = say("国 破 山 河 在 □", "I sat by the sea □").split()
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(1, len(words), d_model, generator=generator)
    W = torch.randn(2, d_model, d_model, generator=generator) / math.sqrt(d_model)
    heads = [steps.split_heads(steps.project(X, W[i]), h) for i in range(2)]  # (1, h, L, d_k)
    allowed = torch.ones(len(words), len(words), dtype=torch.bool)
    if "causal" in mask:
        allowed = allowed & masks.causal_mask(len(words))
    if "padding" in mask:
        allowed = allowed & masks.padding_mask([len(words) - 1], len(words))[0, 0]
    A = steps.softmax(steps.scores(heads[0], heads[1]), allowed)[0]  # (h, L, S)
    fig = canvas(3.2)
    across = min(h, 4)
    axes = fig.subplots(1, across, squeeze=False)[0]
    for i, ax in enumerate(axes):
        matrix(
            ax,
            A[i],
            masked=~allowed,
            numbers="{:.2f}" if h == 1 else None,
            vmax=1,
            cols=words,
            rows=words if i == 0 else None,
        )
        ax.tick_params(axis="x", rotation=int(say("0", "90")) if h > 2 else 0)
        ax.set_title(say(f"头 {i}", f"head {i}"), fontsize=10.5, color=head_colour(i))
    seen = int(allowed.sum())
    return tell(
        fig,
        say(f"掩码 {mask}：每个头都只看 {seen} 格", f"{mask}: every head may use {seen} cells"),
        say(
            f"{h} 个头在 6 个词元（最后一个是填充）上的权重，参数是随机的。掩码 {mask}：36 格里开放 {seen} 格，"
            f"其余画斜线，权重为 0。头 0 的最后一行：{_list(A[0, -1], 2)}。",
            f"Weights of {h} heads with random parameters on 6 tokens, the last one padding. Mask {mask}: {seen} of 36 "
            f"cells are open, the others are hatched and 0. Last row of head 0: {_list(A[0, -1], 2)}.",
        ),
    )


# ── small helpers ────────────────────────────────────────────────────────────────────────────────


def _line(fig: Figure, widths: Sequence[int], room: float = 0.6, tail: float = 0.0) -> list[Axes]:
    """Axes side by side: matrices of these widths, with a narrow one for a sign between each two."""
    ratios: list[float] = []
    for width in widths:
        ratios += [width, room]
    if tail:
        ratios[-1] = tail
    else:
        ratios.pop()
    grid = fig.add_gridspec(1, len(ratios), width_ratios=ratios)
    axes = [fig.add_subplot(grid[0, i]) for i in range(len(ratios))]
    for ax in axes[1::2]:
        ax.axis("off")
    return axes


def _sign(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.5, text, ha="center", va="center", fontsize=11.5, color=INK, transform=ax.transAxes)


def _frame(ax: Axes, x: int, y: int, width: int, height: int) -> None:
    ax.add_patch(Rectangle((x, y), width, height, fc="none", ec=INK, lw=1.6, zorder=3, clip_on=False))


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def _size(M: Tensor) -> str:
    return f"{M.shape[0]}×{M.shape[1]}"


def _list(M: Tensor, digits: int = 0) -> str:
    if M.dim() == 1:
        return "[" + ", ".join(f"{x:.{digits}f}" for x in M.tolist()) + "]"
    return "[" + ", ".join(_list(row, digits) for row in M) + "]"
