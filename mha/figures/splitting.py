"""Figures of chapter 2.2: where each number goes when the heads are split."""

import torch
from matplotlib.figure import Figure

from mha.figures import QUIET, RIGHT, WRONG, canvas, head_colour, matrix, tell
from mha.language import say
from mha.steps import split_heads

VIEW, BOTH = "view", "view + transpose"


def split_as(x: torch.Tensor, h: int, how: str = BOTH) -> torch.Tensor:
    """x (L, d_model) split into (h, L, d_k) the right way, or by `view` alone, as many projects did."""
    L, d_model = x.shape
    if d_model % h:
        raise ValueError(f"h must divide d_model, got d_model = {d_model} and h = {h}")
    return x.reshape(h, L, d_model // h) if how == VIEW else split_heads(x, h)


def _owners(numbers: torch.Tensor, d_model: int, h: int) -> list[list[str]]:
    """The colour of the head that should receive each number of 0, 1, 2, …"""
    return [[head_colour(int(n) % d_model * h // d_model) for n in row] for row in numbers]


def where_numbers_go(h: int = 4, split: str = BOTH, L: int = 3, d_model: int = 12) -> Figure:
    """x = 0, 1, 2, … and what each head receives, each number in the colour of the head that should own it."""
    x = torch.arange(L * d_model).view(L, d_model)
    heads, right = split_as(x, h, split), split_as(x, h)
    astray = int((heads != right).sum())
    fig = canvas(3.7)
    grid = fig.add_gridspec(3, h, height_ratios=[3, 0.6, 3])
    rows = [say(f"词元 {i}", f"token {i}") for i in range(L)]
    matrix(fig.add_subplot(grid[0, :]), x, colour=_owners(x, d_model, h), numbers="{:.0f}", shade=False, rows=rows)
    verdict = (
        say(f"{x.numel()} 个数里有 {astray} 个去错了地方", f"{astray} of {x.numel()} numbers land in the wrong place")
        if astray
        else say("每个头都拿到自己的列", "Every head gets its own columns")
    )
    words = fig.add_subplot(grid[1, :])
    words.axis("off")
    words.text(0, 0.5, ("✕ " if astray else "✓ ") + verdict, color=WRONG if astray else RIGHT, va="center")
    for i in range(h):
        ax = fig.add_subplot(grid[2, i])
        colours = _owners(heads[i], d_model, h)
        matrix(ax, heads[i], colour=colours, numbers="{:.0f}", shade=False, fontsize=10 if h < 6 else 9)
        ax.set_title(say(f"头 {i}", f"head {i}") if h < 7 else str(i), fontsize=10, color=head_colour(i))
    rows_of_0 = f"{heads[0, 0].tolist()}, {heads[0, 1].tolist()}"
    return tell(
        fig,
        f"{split}:  h = {h},  d_k = {d_model // h}",
        say(
            f"上面是 {L}×{d_model} 的矩阵，装着 0 到 {x.numel() - 1}；下面是用 {split} 分出的 {h} 个头，"
            f"头 0 的前两行是 {rows_of_0}。{verdict}。",
            f"Above, a {L}×{d_model} matrix of the numbers 0 to {x.numel() - 1}; below, {h} heads made by {split}. "
            f"Head 0 starts with the rows {rows_of_0}. {verdict}.",
        ),
    )


def memory(h: int = 2, step: str = BOTH, L: int = 3, d_model: int = 4) -> Figure:
    """One row of memory that never changes, and the order in which a tensor reads it."""
    x = torch.arange(L * d_model).view(L, d_model)
    seen = x.view(L, h, d_model // h)
    if step == BOTH:
        seen = seen.transpose(0, 1)
    order = seen.reshape(-1)
    fig = canvas(2.7)
    store, read = fig.subplots(2, 1)
    matrix(store, x.view(1, -1), colour=_owners(x.view(1, -1), d_model, h), numbers="{:.0f}", shade=False)
    matrix(read, order.view(1, -1), colour=_owners(order.view(1, -1), d_model, h), numbers="{:.0f}", shade=False)
    store.set_title(say("内存", "memory"), fontsize=10.5, loc="left", color=QUIET)
    read.set_title(
        say("按索引的顺序读", "read in index order") + f": shape {tuple(seen.shape)}, stride {seen.stride()}",
        fontsize=10.5, loc="left", color=QUIET,
    )  # fmt: skip
    return tell(
        fig,
        say("内存不动，只换读法", "The memory stays; only the reading changes"),
        say(
            f"内存里是 0 到 {x.numel() - 1}，没有变。{step} 之后形状是 {tuple(seen.shape)}，步长是 {seen.stride()}，"
            f"读出的顺序是 {order.tolist()}。",
            f"Memory holds 0 to {x.numel() - 1}, unchanged. After {step} the shape is {tuple(seen.shape)}, the strides "
            f"{seen.stride()}, and the numbers are read in the order {order.tolist()}.",
        ),
    )
