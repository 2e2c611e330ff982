"""Figures of chapter 2.4: where each number goes when the heads are merged."""

import torch
from matplotlib.figure import Figure
from torch import Tensor

from mha.figures import INK, QUIET, RIGHT, WRONG, canvas, head_colour, matrix, tell
from mha.language import say
from mha.steps import merge_heads, split_heads

RESHAPE, BOTH = "reshape", "transpose + reshape"


def merge_as(heads: Tensor, how: str = BOTH) -> Tensor:
    """heads (h, L, d_v) merged into (L, h·d_v) the right way, or by `reshape` alone, as projects have done."""
    h, L, d_v = heads.shape
    return heads.reshape(L, h * d_v) if how == RESHAPE else merge_heads(heads)


def _owners(numbers: Tensor, h: int, d_v: int) -> list[list[str]]:
    """The colour of the head that each number of 0, 1, 2, … (L, h·d_v) came from."""
    return [[head_colour(int(n) % (h * d_v) // d_v) for n in row] for row in numbers]


def where_numbers_go(h: int = 2, d_k: int = 2, merge: str = BOTH, L: int = 3) -> Figure:
    """The heads of x = 0, 1, 2, … and what merging makes of them, each number in the colour of its head."""
    width = h * d_k
    if width > 12:
        raise ValueError(f"this figure has room for h·d_k ≤ 12, got h = {h} and d_k = {d_k}")
    x = torch.arange(L * width).view(L, width)
    heads = split_heads(x, h)  # (h, L, d_k)
    merged = merge_as(heads, merge)
    astray = int((merged != x).sum())
    fig = canvas(3.5)
    fig.set_layout_engine("none")  # every cell of every frame has one size
    colours = [_owners(M, h, d_k) for M in (*heads, merged)]
    left = 0.56 - 0.03 * (width + 0.6 * (h - 1))
    for i in range(h):
        ax = fig.add_axes((left + 0.06 * i * (d_k + 0.6), 0.54, 0.06 * d_k, 0.288))
        matrix(ax, heads[i], colour=colours[i], numbers="{:.0f}", shade=False)
        ax.set_title(say(f"头 {i}", f"head {i}") if d_k > 1 else str(i), fontsize=10, color=head_colour(i))
    verdict = (
        say(f"{x.numel()} 个数里有 {astray} 个去错了地方", f"{astray} of {x.numel()} numbers land in the wrong place")
        if astray
        else say("每个词元拿回自己的全部数字", "Every token gets all its numbers back")
    )
    words = ("✕ " if astray else "✓ ") + verdict
    fig.text(0.56, 0.445, words, color=WRONG if astray else RIGHT, va="center", ha="center")
    ax = fig.add_axes((0.56 - 0.03 * width, 0.06, 0.06 * width, 0.288))
    rows = [say(f"词元 {i}", f"token {i}") for i in range(L)]
    matrix(ax, merged, colour=colours[-1], numbers="{:.0f}", shade=False, rows=rows)
    for r, c in (merged != x).nonzero().tolist():
        ax.plot([c + 0.15, c + 0.85], [r + 0.9, r + 0.9], color=WRONG, lw=1.6)
    return tell(
        fig,
        f"{merge}:  h = {h},  d_k = {d_k}",
        say(
            f"上面是 {h} 个头，每个 {L}×{d_k}，合起来是 0 到 {x.numel() - 1}；"
            f"下面是用 {merge} 合并出的 {L}×{width} 矩阵，"
            f"各行是 {merged.tolist()}，去错地方的数画了下划线。{verdict}。",
            f"Above, {h} heads of {L}×{d_k} holding the numbers 0 to {x.numel() - 1}; below, "
            f"the {L}×{width} matrix that {merge} makes of them, with the rows "
            f"{merged.tolist()}; misplaced numbers are underlined. {verdict}.",
        ),
    )


def memory(h: int = 2, step: str = "heads", L: int = 3, d_k: int = 2) -> Figure:
    """What lies in memory, and the order in which the tensor of this step reads it."""
    x = torch.arange(L * h * d_k).view(L, h * d_k)
    heads = split_heads(x, h).contiguous()  # what attention returns: a tensor of its own, head after head
    seen = {"heads": heads, "transpose": heads.transpose(0, 1), "reshape": merge_heads(heads)}[step]
    copied = seen.data_ptr() != heads.data_ptr()
    store = seen if copied else heads
    fig = canvas(2.7)
    for ax, numbers, name in zip(
        fig.subplots(2, 1),
        (store.reshape(1, -1), seen.reshape(1, -1)),
        (
            say("内存", "memory") + (say("（新的一块）", " (a new block)") if copied else ""),
            say("按索引的顺序读", "read in index order") + f": shape {tuple(seen.shape)}, stride {seen.stride()}",
        ),
        strict=True,
    ):
        matrix(ax, numbers, colour=_owners(numbers, h, d_k), numbers="{:.0f}", shade=False, fontsize=9.5)
        ax.set_title(name, fontsize=10.5, loc="left", color=QUIET)
    return tell(
        fig,
        say("reshape 把数字抄到新的地方", "reshape copies the numbers to a new place")
        if copied
        else say("内存不动，只换读法", "The memory stays; only the reading changes")
        if step != "heads"
        else say("各个头的输出，一个接一个", "The outputs of the heads, one after another"),
        say(
            f"{step}：内存里依次是 {store.reshape(-1).tolist()}，形状 {tuple(seen.shape)}、步长 {seen.stride()}，"
            f"读出的顺序是 {seen.reshape(-1).tolist()}。",
            f"{step}: memory holds {store.reshape(-1).tolist()}; with shape {tuple(seen.shape)} and strides "
            f"{seen.stride()} the numbers are read in the order {seen.reshape(-1).tolist()}.",
        ),
    )


def widths(h: int = 8, d_v: int = 64, d_model: int = 512) -> Figure:
    """The width of the merged heads, strip by strip, beside d_model."""
    width = h * d_v
    fig = canvas(2.3)
    ax = fig.add_subplot()
    for i in range(h):
        ax.barh(1, d_v, left=i * d_v, height=0.7, color=head_colour(i), alpha=0.45)
        if d_v >= 32:
            ax.text((i + 0.5) * d_v, 1, str(i), ha="center", va="center", fontsize=10)
    ax.barh(0, d_model, height=0.7, color=INK, alpha=0.16)
    ax.plot([d_model, d_model], [-0.35, 1.6], color=INK, lw=1.1, ls=(0, (4, 3)))
    ax.text(8, 0, f"d_model = {d_model}", va="center", fontsize=10)
    ax.text(0, 1.62, f"h·d_v = {h}·{d_v} = {width}", va="center", fontsize=10.5)
    ax.set(xlim=(-8, 1040), ylim=(-0.5, 1.9), xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)
    same = width == d_model
    return tell(
        fig,
        say("拼接后的宽度正好是 d_model", "The merged width is d_model")
        if same
        else say("拼接后的宽度不是 d_model", "The merged width is not d_model"),
        say(
            f"上面一条由 {h} 段组成，每段宽 {d_v}，总宽 {width}；"
            f"下面一条是 d_model = {d_model}。两者{'相等' if same else '不相等'}。",
            f"The upper bar has {h} pieces of width {d_v}, {width} in all; the lower one is d_model = {d_model}. They "
            f"are {'equal' if same else 'different'}.",
        ),
    )
