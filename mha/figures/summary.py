"""Figures of chapter 5: what h and d_k cost, and what the first paper measured."""

from math import log2
from typing import NamedTuple

from matplotlib.figure import Figure

from mha.figures import INK, QUIET, WEIGHT, canvas, tell
from mha.language import say


class Row(NamedTuple):
    """One trained model of Vaswani et al. 2017, Table 3 (newstest2013); millions of parameters where given."""

    name: str
    h: int
    d_k: int
    d_v: int
    perplexity: float
    bleu: float
    params: int | None = None


TABLE_3 = (
    Row("A", 1, 512, 512, 5.29, 24.9),
    Row("A", 4, 128, 128, 5.00, 25.5),
    Row("base", 8, 64, 64, 4.92, 25.8, 65),
    Row("A", 16, 32, 32, 4.91, 25.8),
    Row("A", 32, 16, 16, 5.01, 25.4),
    Row("B", 8, 16, 64, 5.16, 25.1, 58),
    Row("B", 8, 32, 64, 5.01, 25.4, 60),
)
BASE = {"h": 8, "d_k": 64, "L": 512}


def parameters(d_model: int, h: int, d_k: int, d_v: int | None = None, *, bias: bool = True) -> int:
    """2·d_model·h·d_k for W_Q and W_K, 2·d_model·h·d_v for W_V and W_O, and the biases. d_v = d_k unless given.

    >>> parameters(512, 8, 64), parameters(512, 1, 512)
    (1050624, 1050624)
    """
    d_v = d_k if d_v is None else d_v
    biases = 2 * h * d_k + h * d_v + d_model if bias else 0
    return 2 * d_model * h * d_k + 2 * d_model * h * d_v + biases


def flops(L: int, d_model: int, h: int, d_k: int, d_v: int | None = None) -> tuple[int, int]:
    """Matmul FLOPs of one self-attention pass over one sentence: in the four projections, and in Q Kᵀ and A V.

    >>> flops(512, 512, 8, 64)
    (1073741824, 536870912)
    """
    d_v = d_k if d_v is None else d_v
    return 2 * L * d_model * h * (2 * d_k + 2 * d_v), 2 * h * L * L * (d_k + d_v)


def score_numbers(h: int, L: int, S: int | None = None, B: int = 1) -> int:
    """B·h·L·S: how many scores are stored where the kernel stores them."""
    return B * h * L * (L if S is None else S)


def table3(vary: str = "h") -> Figure:
    """BLEU and perplexity of Table 3 against h (rows A and base) or against d_k at h = 8 (rows B and base)."""
    rows = [r for r in TABLE_3 if r.name != ("B" if vary == "h" else "A")]
    rows.sort(key=lambda r: getattr(r, vary))
    xs = list(range(len(rows)))
    fig = canvas(3.0)
    panels = fig.subplots(1, 2)
    better = say("越高越好", "higher is better"), say("越低越好", "lower is better")
    for ax, what, good in zip(panels, ("bleu", "perplexity"), better, strict=True):
        ys = [getattr(r, what) for r in rows]
        low, high = min(ys), max(ys)
        for x, y, row in zip(xs, ys, rows, strict=True):
            ax.plot(x, y, "s" if row.name == "base" else "o", color=WEIGHT, ms=9)
            ax.text(x, y + 0.07 * (high - low), f"{y:.1f}" if what == "bleu" else f"{y:.2f}", ha="center", va="bottom")
        ax.set_ylim(low - 0.12 * (high - low), high + 0.28 * (high - low))
        ax.set_xlim(-0.5, len(rows) - 0.5)
        labels = [f"{r.h}\n{r.d_k}" if vary == "h" else str(r.d_k) for r in rows]
        ax.set_xticks(xs, labels)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        name = "BLEU" if what == "bleu" else say("困惑度", "perplexity")
        ax.set_title(f"{name}  ({good})", loc="left", fontsize=10.5, color=INK)
        ax.set_xlabel(say("h（下行：d_k）", "h (below: d_k)") if vary == "h" else "d_k")
    words = "; ".join(f"h = {r.h}, d_k = {r.d_k}: BLEU {r.bleu}, {r.perplexity}" for r in rows)
    return tell(
        fig,
        say("8 头和 16 头打平，1 头和 32 头落后", "8 and 16 heads tie; 1 and 32 fall behind")
        if vary == "h"
        else say("8 个头不变，d_k 变窄就变差", "At 8 heads, a narrower d_k does worse"),
        say(
            f"每点是一次训练，方块是 base；纵轴不从 0 起。BLEU 与困惑度依次为：{words}。",
            f"Each point is one run, the square is base; the vertical axes do not start at 0. "
            f"BLEU, perplexity: {words}.",
        ),
    )


def _times(ratio: float) -> str:
    return f"×{ratio:,.0f}" if ratio >= 10 else f"×{ratio:.2g}" if ratio >= 1 else f"×1/{1 / ratio:,.3g}"


def _unit(number: float, step: int, names: tuple[str, ...]) -> str:
    """Three digits and the largest unit that fits: 1.61 GFLOP."""
    i = 0
    while i < len(names) - 1 and number >= step:
        number, i = number / step, i + 1
    return f"{number:.3g} {names[i]}"


def calculator(h: int = 8, d_k: int = 64, L: int = 512, d_model: int = 512) -> Figure:
    """Parameters, FLOPs and score memory of one attention block, and how they compare with h = 8, d_k = 64, L = 512."""
    here, base = {"h": h, "d_k": d_k, "L": L}, BASE
    P, P_0 = (parameters(d_model, c["h"], c["d_k"]) for c in (here, base))
    F, F_0 = (flops(c["L"], d_model, c["h"], c["d_k"]) for c in (here, base))
    N, N_0 = (score_numbers(c["h"], c["L"]) for c in (here, base))
    share = F[1] / sum(F)
    memory = _unit(N * 4, 1024, ("B", "KiB", "MiB", "GiB"))
    work = _unit(sum(F), 1000, ("FLOP", "kFLOP", "MFLOP", "GFLOP"))
    lines = (
        (say("参数", "parameters"), f"{P:,}", P / P_0, INK, f"h·d_k = {h * d_k}"),
        (say("矩阵乘法", "matmuls"), work, sum(F) / sum(F_0), INK, say("其中 L² 项", "of which L²") + f" {share:.0%}"),
        (say("分数矩阵", "scores"), memory, N / N_0, WEIGHT, f"h·L² = {N:,}"),
    )
    fig = canvas(3.3)
    ax = fig.subplots()
    for y, (name, number, ratio, colour, note) in enumerate(lines):
        ax.text(-9.8, y - 0.33, name, fontsize=11, va="center")
        ax.text(-5.6, y - 0.33, number, fontsize=13.5, va="center", color=colour)
        ax.text(9.8, y - 0.33, note, fontsize=10, va="center", ha="right", color=QUIET)
        ax.barh(y, log2(ratio), 0.22, color=colour)
        ax.plot([0, 0], [y - 0.17, y + 0.17], color=INK, lw=1.4)
        side = 1 if ratio >= 1 else -1
        ax.text(log2(ratio) + 0.25 * side, y + 0.01, _times(ratio), va="center", ha="left" if side > 0 else "right")
    note = say("竖线：h = 8，d_k = 64，L = 512；对数刻度", "upright line: h = 8, d_k = 64, L = 512; log scale")
    ax.text(0, 2.27, note, ha="center", va="top", color=QUIET)
    ax.set(xlim=(-9.9, 9.9), ylim=(2.6, -0.55))
    ax.axis("off")
    ratios = [_times(ratio) for _, _, ratio, _, _ in lines]
    return tell(
        fig,
        say(
            f"参数 {ratios[0]}，计算 {ratios[1]}，分数 {ratios[2]}",
            f"Parameters {ratios[0]}, FLOPs {ratios[1]}, scores {ratios[2]}",
        ),
        say(
            f"d_model = {d_model}，h = {h}，d_k = d_v = {d_k}，L = {L}：参数 {P:,}，"
            f"矩阵乘法 {work}（L² 项占 {share:.0%}），分数矩阵 {memory}。"
            f"与 h = 8、d_k = 64、L = 512 相比，依次是 {'、'.join(ratios)}。",
            f"d_model = {d_model}, h = {h}, d_k = d_v = {d_k}, L = {L}: {P:,} parameters, {work} of matmuls "
            f"({share:.0%} in the L² terms), {memory} of scores. "
            f"Against h = 8, d_k = 64, L = 512: {', '.join(ratios)}.",
        ),
    )
