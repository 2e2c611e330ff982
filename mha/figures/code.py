"""Figures of chapter 4: where the notes' listing breaks, what floor division loses, what a head looks at."""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from mha.figures import FAINT, INK, QUIET, WEIGHT, WRONG, blank, canvas, head_colour, matrix, tell
from mha.language import say

Fault = tuple[str, bool, str, str]  # where in the listing, whether it stops with an error, its name in both languages
FAULTS: tuple[Fault, ...] = (
    ("import torch.nn", True, "torch 没有导入", "torch is never imported"),
    ("d_model // h", True, "h 除不尽也收下", "any h is accepted"),
    ("= self.W_Q(Q)", True, "batch_size、seq_len 未定义", "batch_size, seq_len undefined"),
    ("= self.W_K(K)", True, "K、V 被迫和 Q 一样长", "K and V forced to Q's length"),
    ("torch.sqrt", True, "sqrt 只收张量", "sqrt wants a tensor"),
    ("torch.matmul(Q", False, "先乘后除，半精度溢出", "product first: half overflows"),
    ("masked_fill_", True, "半精度装不下 -1e9", "-1e9 does not fit in half"),
    ("masked_fill_", False, "就地修改", "edits in place"),
    ("masked_fill_", False, "全掩的行得到平均值", "masked-out rows get the mean"),
    ("masked_fill_", False, "三维掩码落到头上", "3-D masks fall on the heads"),
    ("matmul(attn_weights", False, "没有 dropout", "no dropout"),
    ("return self.W_O", False, "权重拿不出来", "weights stay hidden"),
)
FILL, MENDED = "-1e9", "min, then 0"


def where_it_breaks(listing: str) -> Figure:
    """The listing from afar, each word a bar, and what is wrong on which line."""
    lines = listing.strip("\n").split("\n")
    fig = canvas(4.7)
    ax = fig.add_subplot()
    unit, top = 0.62, len(lines)
    rows = [next(i for i, line in enumerate(lines) if fault[0] in line) for fault in FAULTS]
    for i, line in enumerate(lines):
        place = len(line) - len(line.lstrip())
        for word in line.split():
            faulty = i in rows
            ax.add_patch(
                Rectangle(
                    (place * unit, i + 0.22),
                    len(word) * unit,
                    0.5,
                    fc=(WRONG if faulty else QUIET),
                    alpha=0.45,
                    ec="none",
                )
            )
            place += len(word) + 1
    ends = [len(lines[row]) * unit for row in rows]
    left = max(ends) + 7
    for k, ((_, loud, zh, en), row, end) in enumerate(zip(FAULTS, rows, ends, strict=True)):
        y = (k + 0.5) * top / len(FAULTS)
        ax.plot([end + 0.6, max(ends) + 0.6, left - 1], [row + 0.47, row + 0.47, y], color=FAINT, lw=0.9)
        mark = "✕" if loud else "○"
        ax.text(left, y, mark, color=WRONG if loud else WEIGHT, va="center", ha="left", fontsize=10)
        ax.text(left + 3, y, say(zh, en), color=INK, va="center", ha="left", fontsize=10)
    ax.set(xlim=(0, left + 44), ylim=(top, -0.2))
    ax.axis("off")
    stops_at = sum(fault[1] for fault in FAULTS)
    quiet = len(FAULTS) - stops_at
    names = say("；", "; ").join(say(zh, en) + (" ✕" if stops else " ○") for _, stops, zh, en in FAULTS)
    return tell(
        fig,
        say(f"{stops_at} 处报错 ✕，{quiet} 处不声不响 ○", f"{stops_at} faults stop it ✕, {quiet} stay silent ○"),
        say(
            f"缩小的讲义代码，共 {top} 行，出错的行标成红色，右边依次写着错在哪里：{names}。",
            f"The notes' listing from afar, {top} lines, the faulty ones in red; beside them what is wrong: {names}.",
        ),
    )


def left_over(h: int = 3, d_model: int = 10) -> Figure:
    """d_model columns dealt out to h heads of d_model // h: what is left has no owner."""
    if h > d_model:
        raise ValueError(f"d_model // h = 0: d_model = {d_model}, h = {h}")
    d_k = d_model // h
    rest = d_model - h * d_k
    fig = canvas(1.35)
    ax = fig.add_subplot()
    for c in range(d_model):
        owner = c // d_k
        if owner < h:
            ax.add_patch(Rectangle((c, 0), 1, 1, fc=head_colour(owner), alpha=0.3, ec=FAINT, lw=0.6))
            ax.text(c + 0.5, 0.5, str(owner), ha="center", va="center", fontsize=11)
        else:
            ax.add_patch(Rectangle((c, 0), 1, 1, fc="none", ec=WRONG, lw=1))
            ax.text(c + 0.5, 0.5, "✕", ha="center", va="center", fontsize=11, color=WRONG)
    blank(ax, (-0.05, 16.05), (-0.05, 1.05))
    verdict = (
        say(f"{rest} 列没有头要", f"{rest} columns belong to no head" if rest > 1 else "1 column belongs to no head")
        if rest
        else say("每一列都有主", "Every column has its head")
    )
    return tell(
        fig,
        f"{verdict}:  {d_model} = {h} · {d_k}" + (f" + {rest}" if rest else ""),
        say(
            f"{d_model} 列分给 {h} 个头，每头 d_k = {d_model} // {h} = {d_k} 列。{verdict}。",
            f"{d_model} columns dealt to {h} heads of d_k = {d_model} // {h} = {d_k}. {verdict}.",
        ),
    )


def a_mask(name: str, L: int) -> Tensor:
    """(L, L), True = may attend: none · causal · padding (the last two keys) · empty (row 0 sees nothing)."""
    keep = torch.ones(L, L, dtype=torch.bool)
    if name == "causal":
        return keep.tril()
    if name == "padding":
        keep[:, -2:] = False
    if name == "empty row":
        keep[0] = False
    return keep


def weights_of(
    attention: Callable[[int, int], nn.Module], h: int, d_k: int, mask: str, fill: str = MENDED, L: int = 5
) -> Tensor:
    """The weights (h, L, L) of a fresh `attention(d_model, h)`; filled with -1e9 as in the notes, or as it mends it."""
    torch.manual_seed(4)
    model = attention(h * d_k, h).eval()
    X = 3 * torch.randn(1, L, h * d_k)
    keep = a_mask(mask, L)
    with torch.no_grad():
        A: Any = model(X, X, X, keep, need_weights=True)[1]  # (1, h, L, L)
        if fill == FILL:  # as in the notes: it decides only where a row is masked throughout
            A = torch.where(keep.any(-1, keepdim=True), A, torch.full((L, L), -1e9).softmax(-1))
    return A[0]


def heads(
    attention: Callable[[int, int], nn.Module], h: int = 2, d_k: int = 16, mask: str = "causal", fill: str = MENDED
) -> Figure:
    """What every head of a fresh `attention(d_model, h)` looks at on a sentence of 5 random tokens."""
    A = weights_of(attention, h, d_k, mask, fill)
    L = A.shape[-1]
    fig = canvas(2.6)
    grid = fig.add_gridspec(1, max(h, 2))
    for i in range(h):
        ax = fig.add_subplot(grid[0, i])
        numbers = "{:.1f}" if h > 2 else "{:.2f}"
        # not hatched where the listing puts weight on a masked key: that weight is the point
        hidden = ~a_mask(mask, L) & (A[i] == 0)
        matrix(ax, A[i], numbers=numbers, vmax=1, fontsize=9.5, masked=hidden)
        ax.set_title(say(f"头 {i}", f"head {i}"), fontsize=10.5, color=head_colour(i))
    sums = A[0].sum(-1)
    first = [round(float(a), 2) for a in A[0, 0]]
    title = say(f"第 0 行之和是 {sums[0]:.0f}", f"Row 0 sums to {sums[0]:.0f}")
    return tell(
        fig,
        f"{title}:  h = {h},  d_k = {d_k}",
        say(
            f"{h} 个头各自的注意力权重，{L}×{L}，掩码 {mask}，填充 {fill}；头 0 的第 0 行是 {first}。",
            f"The attention weights of {h} {'head' if h == 1 else 'heads'}, {L}×{L} each, mask {mask}, "
            f"fill {fill}; row 0 of head 0 is {first}.",
        ),
    )
