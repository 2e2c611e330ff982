"""Figures of chapter 2.1: three copies of the input, and one matrix that is h matrices."""

import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from mha.figures import INK, QUIET, WEIGHT, K, Q, V, blank, canvas, head_colour, matrix, tell
from mha.language import say
from mha.steps import project, scores


def three_copies() -> Figure:
    """X goes through three matrices; each copy has its own part to play."""
    fig = canvas(2.7)
    ax = fig.add_subplot()
    blank(ax, (0, 112), (0, 50))
    ax.add_patch(Rectangle((2, 15), 17, 20, fc=INK, alpha=0.16, ec="none"))
    ax.text(10.5, 25, "X", ha="center", va="center", fontsize=13)
    ax.text(10.5, 39.5, "L × 512", ha="center", va="center", fontsize=10, color=QUIET)
    roles = (
        ("Q", Q, say("我在找什么", "what I look for")),
        ("K", K, say("别人凭什么找到我", "what I can be found by")),
        ("V", V, say("找到我之后，我交出什么", "what I hand over")),
    )
    for i, (name, colour, role) in enumerate(roles):
        y = 7 + 18 * i
        arrow = FancyArrowPatch((21, 25), (48, y), arrowstyle="-|>", mutation_scale=11, color=colour, lw=1.6)
        ax.add_patch(arrow)
        ax.text(
            32 if i != 1 else 34, (12, 22, 38)[i], f"$W_{name}$", color=colour, fontsize=12, ha="center", va="center",
            math_fontfamily="dejavusans",
        )  # fmt: skip
        ax.add_patch(Rectangle((50, y - 7), 12, 14, fc=colour, ec="none"))
        ax.text(56, y, name, ha="center", va="center", fontsize=13, color="white")
        ax.text(65, y, role, ha="left", va="center", fontsize=10.5, color=colour)
    return tell(
        fig,
        say("同一个输入，三个角色", "One input, three parts to play"),
        say(
            "X 分出三支箭头，经过 W_Q、W_K、W_V 得到 Q、K、V："
            "Q 是我在找什么，K 是别人凭什么找到我，V 是找到我之后我交出什么。",
            "Three arrows leave X and pass through W_Q, W_K and W_V to give Q, K and V: Q is what I look for, "
            "K what I can be found by, V what I hand over.",
        ),
    )


def toy(h: int, d_k: int, d_model: int = 4) -> tuple[Tensor, Tensor]:
    """Small whole numbers to multiply by hand: X (3, d_model) and W_Q (d_model, h·d_k)."""
    X = torch.tensor([[1, 0, 2, 0], [0, 1, 1, 0], [2, 0, 0, 1]])
    table = [[1, 0, 2, 1, 0, 3, 1, 2, 0, 1, 3, 0],
             [0, 1, 1, 3, 2, 0, 0, 1, 3, 2, 0, 1],
             [2, 1, 0, 0, 1, 1, 3, 0, 1, 0, 2, 2],
             [1, 3, 0, 2, 1, 0, 2, 1, 0, 3, 1, 0]]  # fmt: skip
    return X, torch.tensor(table)[:d_model, : h * d_k]  # (d_model, h·d_k)


def columns(h: int = 2, d_k: int = 2) -> Figure:
    """X W_Q = Q with whole numbers: a head's columns of W_Q make that head's columns of Q, and no others."""
    X, W = toy(h, d_k)
    product = project(X, W)  # (3, h·d_k)
    width = h * d_k
    fig = canvas(3.2)
    pad = (12 - width) / 2 + 0.01
    grid = fig.add_gridspec(2, 4, width_ratios=[pad, 4, width, pad], height_ratios=[5, 3], wspace=0.05)
    owners = [head_colour(c // d_k) for c in range(width)]
    corner, above = fig.add_subplot(grid[0, 1]), fig.add_subplot(grid[0, 2])
    left, below = fig.add_subplot(grid[1, 1]), fig.add_subplot(grid[1, 2])
    blank(corner, (0, 4), (0, 4))
    corner.text(
        3.9, 3.9, f"X  3×4\nW_Q  4×{width}\nQ  3×{width}", ha="right", va="bottom", fontsize=10, color=QUIET,
        linespacing=1.5,
    )  # fmt: skip
    matrix(left, X, colour=INK, numbers="{:.0f}", shade=False)
    matrix(above, W, colour=[owners] * 4, numbers="{:.0f}", shade=False)
    matrix(below, product, colour=[owners] * 3, numbers="{:.0f}", shade=False)
    for i in range(h):
        name = say(f"头 {i}", f"head {i}") if d_k > 1 or h == 1 else str(i)
        above.text((i + 0.5) * d_k, -0.35, name, ha="center", va="bottom", fontsize=10, color=head_colour(i))
        if i:
            for ax, rows in ((above, 4), (below, 3)):
                ax.plot([i * d_k, i * d_k], [0, rows], color=INK, lw=1.4)
    for ax, rows in ((above, 4), (below, 3), (left, 3)):
        ax.set(ylim=(rows + 0.02, -1.0 if rows == 4 else -0.02))
    for ax, anchor in ((left, "NE"), (above, "SW"), (below, "NW"), (corner, "SE")):
        ax.set_anchor(anchor)
    own = [product[:, i * d_k : (i + 1) * d_k].tolist() for i in range(h)]
    return tell(
        fig,
        say(
            f"h = {h}，d_k = {d_k}：一个 4×{width}，{h} 个 4×{d_k}",
            f"h = {h}, d_k = {d_k}: one 4×{width}, {h} of 4×{d_k}",
        ),
        say(
            f"左下是 X（3×4），右上是 W_Q（4×{width}），每 {d_k} 列一个头的颜色；右下是乘积 Q（3×{width}），"
            f"各列与正上方的列同色。头 0 的结果是 {own[0]}。",
            f"X (3×4) at the lower left, W_Q (4×{width}) at the upper right with {d_k} columns in each head's colour; "
            f"below it the product Q (3×{width}), each column in the colour of the one above. Head 0 gets {own[0]}.",
        ),
    )


def parameters(d_model: int, h: int, d_k: int, d_v: int) -> int:
    """Numbers to learn in the four projections, biases included."""
    return 2 * d_model * h * (d_k + d_v) + h * (2 * d_k + d_v) + d_model


def to_scale(h: int = 8, d_k: int = 64, d_model: int = 512) -> Figure:
    """W_Q drawn to scale, cut into its heads, against the square that d_k = d_model / h gives."""
    width, count = h * d_k, d_model * h * d_k
    fig = canvas(3.9)
    ax = fig.add_subplot()
    blank(ax, (-100, 1060), (-80, 715))
    for i in range(h):
        ax.add_patch(Rectangle((i * d_k, 0), d_k, d_model, fc=head_colour(i), alpha=0.45, ec="none"))
    for i in range(h) if d_k >= 32 else {0, h - 1}:
        ax.text((i + 0.5) * d_k, -40, str(i), ha="center", va="center", fontsize=10, color=head_colour(i))
    ax.add_patch(Rectangle((0, 0), d_model, d_model, fc="none", ec=INK, lw=1.1, ls=(0, (4, 3))))
    ax.text(-18, d_model / 2, str(d_model), ha="right", va="center", fontsize=10, color=QUIET)
    ax.text(0, 560, f"h·d_k = {h}·{d_k} = {width}", color=INK, va="center")
    total = parameters(d_model, h, d_k, d_k)
    ax.text(0, 624, say(f"W_Q：{count:,} 个参数", f"W_Q: {count:,} parameters"), color=Q, va="center")
    ax.text(
        0,
        688,
        say(f"四个线性层，含偏置：{total:,} 个参数", f"all four layers, biases included: {total:,} parameters"),
        va="center",
    )
    how = "=" if width == d_model else "<" if width < d_model else ">"
    return tell(
        fig,
        say(f"h = {h}，d_k = {d_k}：W_Q 是 {d_model} × {width}", f"h = {h}, d_k = {d_k}: W_Q is {d_model} × {width}"),
        say(
            f"按比例画的 W_Q：高 {d_model}，宽 {width}，切成 {h} 条，每条宽 {d_k}，一头一色；"
            f"虚线框是 {d_model}×{d_model}（h·d_k {how} d_model）。"
            f"W_Q 有 {count:,} 个参数，四个线性层（d_v = d_k，含偏置）共 {total:,} 个。",
            f"W_Q to scale: {d_model} high, {width} wide, cut into {h} strips of width {d_k}, one colour a head; "
            f"the dashed square is {d_model}×{d_model} (h·d_k {how} d_model). "
            f"W_Q holds {count:,} parameters, the four layers (d_v = d_k, with biases) {total:,}.",
        ),
    )


def meet(d_k: int, seed: int, L: int = 6, d_model: int = 16) -> tuple[Tensor, Tensor]:
    """Scores (L, L) of random tokens with W_Q = W_K, and with two matrices of their own."""
    random = torch.Generator().manual_seed(seed)
    X = torch.randn(L, d_model, generator=random)
    W_Q, W_K = torch.randn(2, d_model, d_k, generator=random) / d_model**0.5
    return scores(X @ W_Q, X @ W_Q), scores(X @ W_Q, X @ W_K)


def symmetry(d_k: int = 8, seed: int = 0) -> Figure:
    """The scores of six random tokens: one matrix for Q and K, or two."""
    shared, own = meet(d_k, seed)
    fig = canvas(3.7)
    top = max(S.abs().max().item() for S in (shared, own))
    words, looking = ("W_Q = W_K", "W_Q ≠ W_K"), []
    for ax, S, word in zip(fig.subplots(1, 2), (shared, own), words, strict=True):
        at = S.argmax(-1)
        selves = int((at == torch.arange(len(S))).sum())
        looking.append(selves)
        signs = [[WEIGHT if value >= 0 else QUIET for value in row] for row in S.tolist()]
        S = S.mul(10).round().div(10) + 0.0  # no −0.0
        matrix(ax, S, colour=signs, numbers="{:.1f}", fontsize=9.5, vmax=top)
        for row, c in enumerate(at.tolist()):
            ax.add_patch(Rectangle((c + 0.04, row + 0.04), 0.92, 0.92, fc="none", ec=INK, lw=1.6))
        ax.set_title(word, fontsize=11, color=INK)
        ax.set_xlabel(
            say(f"{selves} / {len(S)} 行最看重自己", f"{selves} of {len(S)} rows prefer themselves"), fontsize=10.5
        )
    return tell(
        fig,
        say("同一个矩阵：分数沿对角线对称", "One matrix for both: the scores are symmetric"),
        say(
            f"d_k = {d_k} 时 6 个随机词元的两张分数表，紫为正、灰为负，每行最大的一格加框。"
            f"左：W_Q = W_K，沿对角线对称，"
            f"{looking[0]} 行最大值在自己身上；右：W_Q ≠ W_K，不对称，{looking[1]} 行。",
            f"Two score tables of 6 random tokens at d_k = {d_k}, violet positive, grey negative, the largest "
            f"of each row outlined. Left, W_Q = W_K: mirrored in the diagonal, {looking[0]} rows peak at themselves. "
            f"Right, W_Q ≠ W_K: not mirrored, {looking[1]} rows.",
        ),
    )
