"""Figures of chapter 2.2: where each number goes when the heads are split."""

import torch
from matplotlib.figure import Figure

from mha.figures import RIGHT, WRONG, canvas, head_colour, matrix, tell
from mha.language import say
from mha.steps import split_heads

VIEW, BOTH = "view", "view + transpose"


def split(x: torch.Tensor, h: int, how: str = BOTH) -> torch.Tensor:
    """x (L, d_model) split into (h, L, d_k) the right way, or by `view` alone, as many projects did."""
    L, d_model = x.shape
    if d_model % h:
        raise ValueError(f"h must divide d_model, got d_model = {d_model} and h = {h}")
    return x.reshape(h, L, d_model // h) if how == VIEW else split_heads(x, h)


def where_numbers_go(h: int = 2, split_by: str = BOTH, L: int = 3, d_model: int = 12) -> Figure:
    """x = 0, 1, 2, … and what each head receives, each number in the colour of the head that should own it."""
    x = torch.arange(L * d_model).view(L, d_model)
    heads = split(x, h, split_by)
    d_k = d_model // h
    owner = lambda n: (int(n) % d_model) // d_k  # noqa: E731
    colours = lambda M: [[head_colour(owner(n)) for n in row] for row in M]  # noqa: E731
    fig = canvas(3.9)
    grid = fig.add_gridspec(2, h, height_ratios=[1, 1])
    top = fig.add_subplot(grid[0, :])
    matrix(
        top,
        x,
        colour=colours(x),
        numbers="{:.0f}",
        shade=False,
        rows=[say("词元", "token") + f" {i}" for i in range(L)],
    )
    good = torch.equal(heads, split(x, h))
    for i in range(h):
        ax = fig.add_subplot(grid[1, i])
        matrix(ax, heads[i], colour=colours(heads[i]), numbers="{:.0f}", shade=False, fontsize=10 if h < 6 else 8)
        ax.set_title(say(f"头 {i}", f"head {i}"), fontsize=10, color=head_colour(i))
    mine, all_ = int((heads == split(x, h)).sum()), x.numel()
    verdict = (
        say("每个头都拿到自己的列", "every head gets its own columns")
        if good
        else say(
            f"{all_} 个数里有 {all_ - mine} 个去错了地方", f"{all_ - mine} of {all_} numbers land in the wrong place"
        )
    )
    fig.text(0.012, 0.5, ("✓ " if good else "✕ ") + verdict, color=RIGHT if good else WRONG, fontsize=10.5, va="center")
    return tell(
        fig,
        say(f"{split_by}：h = {h}，d_k = {d_k}", f"{split_by}: h = {h}, d_k = {d_k}"),
        say(
            f"上面是 {L}×{d_model} 的矩阵，数字 0 到 {all_ - 1}；下面是用 {split_by} 分出的 {h} 个头，头 0 的第一行是 "
            f"{heads[0, 0].tolist()}，第二行是 {heads[0, 1].tolist()}。{verdict}。",
            f"Above, a {L}×{d_model} matrix of the numbers 0 to {all_ - 1}; below, {h} heads made by {split_by}: "
            f"head 0 starts with rows {heads[0, 0].tolist()} and {heads[0, 1].tolist()}. {verdict.capitalize()}.",
        ),
    )
