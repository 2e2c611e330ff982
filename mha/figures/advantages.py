"""Figures of chapter 3: what heads cost, what they look at, and what one head can express."""

import statistics
import time
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from mha.attention import MultiHeadAttention
from mha.figures import FAINT, INK, QUIET, RIGHT, WEIGHT, WRONG, K, Q, blank, canvas, head_colour, ramp, tasks, tell
from mha.language import say


def shared_width(h: int = 4, d_model: int = 64, L: int = 8) -> Figure:
    """One width cut into h pieces, and the L×L table of scores that each piece needs."""
    d_k = d_model // h
    fig = canvas(2.3)
    ax = fig.subplots()
    blank(ax, (0, 64), (-3.5, 17))
    wide, side = 64 / h, 3.4
    for i in range(h):
        colour = head_colour(i)
        ax.add_patch(Rectangle((i * wide, 0), wide, 4, fc=colour, alpha=0.35, ec="white", lw=1))
        if h <= 8:
            ax.text((i + 0.5) * wide, 2, f"{d_k}", ha="center", va="center", fontsize=10)
        ax.plot([(i + 0.5) * wide] * 2, [4.6, 7.4], color=FAINT, lw=1)
        left = (i + 0.5) * wide - side / 2
        ax.add_patch(Rectangle((left, 8), side, side, fc=colour, alpha=0.35, ec="none"))
        for cut in np.arange(L + 1) * side / L:
            ax.plot([left + cut] * 2, [8, 8 + side], color=colour, lw=0.5)
            ax.plot([left, left + side], [8 + cut] * 2, color=colour, lw=0.5)
    columns = say(f"{h} 份，每份 {d_k} 列，合起来 {d_model} 列", f"{h} × {d_k} columns, {d_model} in all")
    tables = say(f"{h} 张 {L}×{L} 的分数表，共 {h * L * L} 个数", f"{h} tables of {L}×{L} scores, {h * L * L} numbers")
    ax.text(0, -2.2, columns, fontsize=10.5, color=INK, va="center")
    ax.text(0, 14.4, tables, fontsize=10.5, color=INK, va="center")
    return tell(
        fig,
        say(f"h = {h}：宽度是分的，分数表是加的", f"h = {h}: width is shared, tables add up"),
        say(f"上面一条宽 {d_model} 列，{columns}；下面是 {tables}。", f"Above, a strip: {columns}. Below, {tables}."),
    )


def clock(h: Sequence[int], *, d_model: int = 384, L: int = 256, repeats: int = 5) -> dict[str, dict[int, float]]:
    """Seconds for one forward pass of a layer, for each h: by the named steps, and by the fused kernel.

    On one thread; the median of `repeats`, taken in turns, so that a busy moment of the machine hits all alike.
    """
    layers = {n: MultiHeadAttention(d_model, n, device="cpu") for n in h}
    X = torch.zeros(1, L, d_model)
    taken: dict[str, dict[int, list[float]]] = {way: {n: [] for n in h} for way in ("steps", "fused")}
    with tasks.one_thread(), torch.no_grad():
        for turn in range(repeats + 1):
            for n, layer in layers.items():
                for way in taken:
                    start = time.perf_counter()
                    layer(X, need_weights=way == "steps")
                    if turn:  # the first turn warms up
                        taken[way][n].append(time.perf_counter() - start)
    return {way: {n: statistics.median(times) for n, times in row.items()} for way, row in taken.items()}


def speed(seconds: Mapping[str, Mapping[int, float]]) -> Figure:
    """Time against h, as multiples of the time at the smallest h (what `clock` returns)."""
    fig = canvas(3.0)
    ax = fig.subplots()
    words = {"steps": say("一步一步算", "step by step"), "fused": say("融合内核", "fused kernel")}
    h = list(seconds["steps"])
    ratios = {way: [seconds[way][n] / seconds[way][h[0]] for n in h] for way in words}
    ends = [ratios[way][-1] for way in words]
    top = max(2.0, 1.15 * max(ends))
    upper = max(words, key=lambda way: ratios[way][-1])
    gap = max(0.0, 0.1 * top - abs(ends[0] - ends[1])) / 2  # so that the labels at the ends do not touch
    for way, colour in (("steps", K), ("fused", Q)):
        ax.plot(h, ratios[way], color=colour, marker="o", ms=4)
        y = ratios[way][-1] + (gap if way == upper else -gap)
        ax.text(h[-1] * 1.12, y, f"{words[way]} ×{ratios[way][-1]:.1f}", color=colour, va="center")
    ax.axhline(1, color=FAINT, lw=1, zorder=0)
    ax.set_xscale("log", base=2)
    ax.set_xticks(h, [str(n) for n in h])
    ax.minorticks_off()
    ax.set(xlabel="h", xlim=(h[0] * 0.85, h[-1] * 4.2), ylim=(0, top))
    ax.set_title(say(f"用时 ÷ h = {h[0]} 的用时", f"time ÷ time at h = {h[0]}"), loc="left", fontsize=10.5, color=QUIET)
    return tell(
        fig,
        say("同样的宽度：头多不等于快", "Same width: more heads are not more speed"),
        say(
            f"横轴是头数，纵轴是用时与 h = {h[0]} 之比。h = {h[-1]} 时，一步一步算是 {ends[0]:.1f} 倍，"
            f"融合内核是 {ends[1]:.1f} 倍。",
            f"Time against the number of heads, as a multiple of the time at h = {h[0]}. At h = {h[-1]} it is "
            f"{ends[0]:.1f} times step by step and {ends[1]:.1f} times with the fused kernel.",
        ),
    )


def costs(h: int, d_k: int, d_model: int = 512, L: int = 1024) -> dict[str, int]:
    """What a layer with d_v = d_k costs: parameters, matmul FLOPs of one sentence, scores to be held."""
    return {
        "parameters": 4 * d_model * h * d_k + 3 * h * d_k + d_model,
        "flops": 8 * L * d_model * h * d_k + 4 * h * L * L * d_k,
        "scores": h * L * L,
    }


def bill(h: int = 8, d_k: int = 64, d_model: int = 512, L: int = 1024) -> Figure:
    """Parameters, matmul FLOPs and scores for h and d_k, as multiples of h = 8, d_k = 64."""
    now, base = costs(h, d_k, d_model, L), costs(8, 64, d_model, L)
    words = {
        "parameters": say("参数", "parameters"),
        "flops": say("矩阵乘法 FLOPs", "matmul FLOPs"),
        "scores": say("分数（个）", "scores"),
    }
    fig = canvas(3.0)
    ax = fig.subplots()
    colon = say("：", ": ")
    for y, (name, colour) in enumerate((("parameters", Q), ("flops", K), ("scores", WEIGHT))):
        ratio = now[name] / base[name]
        ax.barh(y, np.log2(ratio), color=colour, height=0.16, alpha=0.6)
        ax.plot(np.log2(ratio), y, "o", color=colour, ms=9)
        ax.text(-7, y - 0.28, f"{words[name]}{colon}{now[name]:,}   ×{ratio:.3g}", fontsize=10.5, va="bottom")
    ax.axvline(0, color=QUIET, lw=1)
    ax.set(xlim=(-7, 7), ylim=(2.4, -0.75), yticks=[])
    ax.set_xticks([-6, -4, -2, 0, 2, 4, 6], ["×1/64", "×1/16", "×1/4", "×1", "×4", "×16", "×64"])
    ax.spines["left"].set_visible(False)
    total = h * d_k
    relation = "=" if total == d_model else ("<" if total < d_model else ">")
    return tell(
        fig,
        f"h = {h}, d_k = {d_k}:  h·d_k = {total} {relation} d_model",
        say(
            f"d_model = {d_model}，L = {L}，h = {h}，d_k = {d_k}：参数 {now['parameters']:,}，"
            f"矩阵乘法 {now['flops']:,} FLOPs，分数 {now['scores']:,} 个；条形是与 h = 8、d_k = 64 之比。",
            f"d_model = {d_model}, L = {L}, h = {h}, d_k = {d_k}: {now['parameters']:,} parameters, "
            f"{now['flops']:,} matmul FLOPs, {now['scores']:,} scores; the bars compare with h = 8, d_k = 64.",
        ),
    )


def _map(ax: Axes, A: Tensor, title: str, colour: str = WEIGHT, vmax: float = 1.0) -> None:
    """Attention weights (L, S) as a picture without numbers."""
    L, S = A.shape
    ax.imshow(A.numpy(), cmap=ramp(colour), vmin=0, vmax=vmax, extent=(0, S, L, 0), interpolation="nearest")
    ax.set_xticks([0.5, S - 0.5], ["0", str(S - 1)])
    ax.set_yticks([0.5, L - 0.5], ["0", str(L - 1)])
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set(visible=True, color=FAINT)
    ax.set_xlabel(title, fontsize=10.5, color=INK, labelpad=6)


def before_and_after(run: tasks.Run, head: int = 0) -> Figure:
    """What one head of a run looks at, at random and when trained. ValueError where there is no such head."""
    if head >= run.h:
        raise ValueError(f"head must be below h = {run.h}, got {head}")
    before, after = run.looks()[head]
    fig = canvas(3.2)
    left, right = fig.subplots(1, 2)
    _map(left, run.random[head], say("训练前", "before training"), head_colour(head), vmax=0.6)
    _map(right, run.trained[head], say("训练后", "after training"), head_colour(head), vmax=0.6)
    left.set_ylabel(say("查询", "query"), fontsize=10.5, color=QUIET)
    if max(before, after) > 0.8:
        seen = say("前一位", "the one before") if before > after else say("后一位", "the one after")
        title = say(f"h = {run.h}，头 {head}：看{seen}", f"h = {run.h}, head {head}: looks at {seen}")
    else:
        title = say(f"h = {run.h}，头 {head}：看好几处", f"h = {run.h}, head {head}: looks at several places")
    return tell(
        fig,
        title,
        say(
            f"{tasks.L}×{tasks.L} 的注意力图两张，行是查询，列是键。训练前几乎处处相同；"
            f"训练后 {before:.0%} 的权重在前一位，{after:.0%} 在后一位。",
            f"Two {tasks.L}×{tasks.L} attention maps, a row for each query. Before training nearly even; "
            f"after it {before:.0%} of the weight is on the player before, {after:.0%} on the one after.",
        ),
    )


def errors(runs: Mapping[int, tasks.Run]) -> Figure:
    """The error each number of heads ends with."""
    fig = canvas(2.7)
    ax = fig.subplots()
    for x, (h, run) in enumerate(runs.items()):
        good = run.error < 0.1
        colour = RIGHT if good else WRONG
        ax.bar(x, run.error, color=colour, width=0.55, alpha=0.8)
        ax.text(x, run.error + 0.015, f"{'✓' if good else '✕'} {run.error:.2f}", ha="center", color=colour)
        ax.text(x, -0.04, f"h = {h}\nd_k = {tasks.D_MODEL // h}", ha="center", va="top", fontsize=10, linespacing=1.4)
    ax.set(xticks=[], yticks=[], ylim=(0, 0.62))
    ax.spines["left"].set_visible(False)
    ax.set_title(say("误差（全答 0 是 1）", "error (answering 0 costs 1)"), loc="left", fontsize=10.5, color=QUIET)
    told = ", ".join(f"h = {h}: {run.error:.2f}" for h, run in runs.items())
    return tell(
        fig,
        say("头太少不行，头太窄也不行", "Too few heads fail, and too narrow ones"),
        say(f"训练后的误差：{told}。", f"Error after training: {told}."),
    )


def nearest(P: Tensor, fitted: Tensor, kl: float, d_k: int) -> Figure:
    """A pattern of attention (n, n) beside the nearest one found for a head of width d_k."""
    fig = canvas(3.2)
    left, right = fig.subplots(1, 2)
    _map(left, P, say("想要的", "wanted"))
    _map(right, fitted, say(f"d_k = {d_k} 能做到的", f"the best found with d_k = {d_k}"))
    told = f"{kl:.2f}" if kl >= 0.005 else "< 0.005"
    n, off = len(P), (P - fitted).abs().max().item()
    return tell(
        fig,
        say(f"d_k = {d_k}，n = {n}：KL {told}", f"d_k = {d_k}, n = {n}: KL {told}"),
        say(
            f"左边是随机的 {n}×{n} 注意力图，右边是宽 {d_k} 的头找到的最接近的图：KL {told}，最大相差 {off:.2f}。",
            f"Left, a random {n}×{n} pattern of attention; right, the nearest found for a head of width {d_k}: "
            f"KL {told}, largest difference {off:.2f}.",
        ),
    )
