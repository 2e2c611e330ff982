"""Figures of chapter 1: a look-up that may be soft, one average or two, what heads share, untrained heads."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from mha.attention import MultiHeadAttention, scaled_dot_product_attention
from mha.figures import (
    FAINT,
    INK,
    OUTPUT,
    QUIET,
    RIGHT,
    WEIGHT,
    WRONG,
    K,
    Q,
    V,
    blank,
    canvas,
    head_colour,
    matrix,
    ramp,
    tell,
)
from mha.language import say

# The dictionary of the chapter: four keys that point east, north, west and south, and what each holds
KEYS = torch.tensor([[4.0, 0.0], [0.0, 4.0], [-4.0, 0.0], [0.0, -4.0]])  # (S, d_k)
VALUES = torch.tensor([[10.0], [20.0], [30.0], [40.0]])  # (S, d_v)
OTHER_VALUES = torch.tensor([[20.0], [10.0], [40.0], [30.0]])  # a second situation, same keys


def sentence() -> list[str]:
    """Five tokens: Du Fu, 757, by character; Christina Rossetti, 1872, by word."""
    return say("国 破 山 河 在", "Who has seen the wind").split()


def look_up(q: str = "(4, 0)") -> Figure:
    """One query among four keys: the weight of each and the value that comes back."""
    query = torch.tensor([[float(n) for n in q.strip("()").split(",")]])  # (1, d_k)
    out, A = scaled_dot_product_attention(query, KEYS, VALUES)
    answer, weights = out.item(), A[0].tolist()
    fig = canvas(2.9)
    plane, table = fig.subplots(1, 2, width_ratios=[1, 1.25])
    _plane(plane, query[0])
    blank(table, (0, 7), (0, 5.6))
    for x, word in ((0.7, say("键", "key")), (3.3, say("权重", "weight")), (6.2, say("值", "value"))):
        table.text(x, 0.35, word, ha="center", va="center", color=QUIET, fontsize=10)
    for j, (weight, value) in enumerate(zip(weights, VALUES[:, 0].tolist(), strict=True)):
        y = 1.2 + j
        table.text(0.7, y, f"k{j}", ha="center", va="center", color=K)
        table.barh(y, 2.1 * weight, 0.62, left=1.5, color=WEIGHT)
        table.plot([1.5, 1.5], [y - 0.42, y + 0.42], color=FAINT, lw=1)
        table.text(4.5, y, f"{weight:.2f}", ha="center", va="center")
        table.text(6.2, y, f"{value:.0f}", ha="center", va="center", color=V)
    table.text(
        6.7, 5.25, say("取回 ", "returned ") + f"{answer:.1f}", ha="right", va="center", color=OUTPUT, fontsize=12
    )
    top = max(weights)
    if top > 0.99:
        title = say("查询对上一个键，取回它的值", "The query meets one key: its value returns")
    elif top < 0.26:
        title = say("哪个键都不像，取回全体的平均", "No key is like it: the mean of all returns")
    else:
        title = say("查询落在键之间，取回一个混合", "The query falls between: a blend returns")
    listed = ", ".join(f"{weight:.2f}" for weight in weights)
    return tell(
        fig,
        title,
        say(
            f"平面上有四个键，分别朝东、北、西、南，装着 10、20、30、40；查询 q = {q}。"
            f"四个权重是 {listed}，取回 {answer:.1f}。",
            f"Four keys in the plane point east, north, west and south and hold 10, 20, 30, 40. The query is q = {q}. "
            f"The four weights are {listed}; {answer:.1f} is returned.",
        ),
    )


def _plane(ax: Axes, query: Tensor) -> None:
    blank(ax, (-5.8, 5.8), (-5.8, 5.8))
    ax.invert_yaxis()  # north is up
    ax.plot([-5, 5], [0, 0], color=FAINT, lw=1, zorder=0)
    ax.plot([0, 0], [-5, 5], color=FAINT, lw=1, zorder=0)
    for j, (x, y) in enumerate(KEYS.tolist()):
        ax.plot(x, y, "o", color=K, ms=7)
        dx, dy = (0.0, 1.1 if y > 0 else -1.1) if x == 0 else (1.0 if x > 0 else -1.0, 0.0)
        ax.text(x + dx, y + dy, f"k{j}", color=K, ha="center", va="center")
    x, y = query.tolist()
    if x or y:
        ax.annotate(
            "", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": Q, "lw": 2.2, "shrinkA": 0, "shrinkB": 0}
        )
    else:
        ax.plot(0, 0, "o", color=Q, ms=6)
    length = math.hypot(x, y) or 1.0
    side = (-y / length, x / length) if x or y else (0.7, 0.7)  # to the left of the arrow, off its line
    ax.text(x / 2 + 1.1 * side[0], y / 2 + 1.1 * side[1], "q", color=Q, ha="center", va="center", fontsize=12)


def ask(h: int, values: Tensor) -> tuple[Tensor, Tensor]:
    """Values 0 and 3 are wanted. One head must want both at once; two heads take one each.

    h 1 or 2, values (S, d_v) → what each head returns (h, d_v), its weights (h, S).
    """
    if h not in (1, 2):
        raise ValueError(f"h must be 1 or 2, got {h}")
    queries = torch.stack([KEYS[0], KEYS[3]])  # (2, d_k)
    queries = queries.sum(0, keepdim=True) if h == 1 else queries  # (h, d_k)
    out, A = scaled_dot_product_attention(queries[:, None], KEYS, values)  # (h, 1, d_v), (h, 1, S)
    return out[:, 0], A[:, 0]


def two_situations(h: int = 1) -> Figure:
    """The same keys with other values, and what one or two heads bring back."""
    fig = canvas(2.9)
    returned = []
    for i, (ax, values) in enumerate(zip(fig.subplots(1, 2), (VALUES, OTHER_VALUES), strict=True)):
        out, A = ask(h, values)
        returned.append(", ".join(f"{v:.0f}" for v in out[:, 0].tolist()))
        blank(ax, (-1.9, 5.6), (-1.1, 5.2))
        ax.text(2, -0.7, say("情形 ", "case ") + "AB"[i], ha="center", va="center", fontsize=11)
        for j, value in enumerate(values[:, 0].tolist()):
            wanted = j in (0, 3)
            ax.text(j + 0.5, 0.25, f"k{j}", ha="center", va="center", color=K, fontsize=10)
            ax.text(j + 0.5, 1.15, f"{value:.0f}", ha="center", va="center", color=V if wanted else QUIET,
                    fontsize=13 if wanted else 10.5)  # fmt: skip
            if wanted:
                ax.plot([j + 0.12, j + 0.88], [1.68, 1.68], color=V, lw=1.6)
        ax.text(-0.15, 1.15, say("值", "values"), ha="right", va="center", color=QUIET, fontsize=10)
        for r in range(h):
            tone, y = head_colour(r), 2.2 + 1.25 * r + (0.6 if h == 1 else 0)
            _weights(ax, A[r], y, tone)
            ax.text(-0.15, y + 0.5, say(f"头 {r}", f"head {r}"), ha="right", va="center", color=tone, fontsize=10)
            ax.text(4.2, y + 0.5, f"→ {out[r].item():.0f}", ha="left", va="center", color=tone, fontsize=13)
    same = returned[0] == returned[1]
    verdict = (
        say("✕ 取回的一样，两种情形分不开", "✕ The same comes back: the cases cannot be told apart")
        if same
        else say("✓ 两个值都回来了，两种情形分得开", "✓ Both values come back: the cases can be told apart")
    )
    fig.text(0.5, 0.05, verdict, ha="center", va="bottom", color=WRONG if same else RIGHT)
    title = (
        say("一个头带回一个平均数", "One head brings back one average")
        if h == 1
        else say("两个头带回两个值", "Two heads bring back two values")
    )
    return tell(
        fig,
        title,
        say(
            f"两种情形，键相同，要的都是 k0 和 k3 的值。情形 A 里它们是 10 和 40，{h} 个头取回 {returned[0]}；"
            f"情形 B 里是 20 和 30，取回 {returned[1]}。{verdict[2:]}。",
            f"Two cases with the same keys; the values of k0 and k3 are wanted. In case A they are 10 and 40 "
            f"and h = {h} brings back {returned[0]}; in case B they are 20 and 30 and h = {h} brings back "
            f"{returned[1]}. {verdict[2:]}.",
        ),
    )


def _weights(ax: Axes, A: Tensor, y: float, colour: str) -> None:
    """A row of weights as cells at height y."""
    for j, weight in enumerate(A.tolist()):
        ax.fill([j, j + 1, j + 1, j], [y, y, y + 1, y + 1], color=colour, alpha=0.75 * weight, lw=0)
        ax.plot([j, j + 1, j + 1, j, j], [y, y, y + 1, y + 1, y], color=FAINT, lw=0.7)
        text = f"{weight:.1f}".lstrip("0") if 0.05 < weight < 0.95 else f"{weight:.0f}"
        ax.text(j + 0.5, y + 0.5, text, ha="center", va="center", color=INK, fontsize=10)


def who_changes(h: int, seed: int = 0, d_model: int = 16, L: int = 5) -> dict[str, Tensor]:
    """What moves when one thing is moved: three tables of True and False, found by trying.

    input (h, h): row j, a column of X from the j-th block is changed; column i, did head i change?
    weights (h, h): row j, the W_Q, W_K, W_V of head j are changed; column i, did head i change?
    output (h, h): row j, the result of head j is changed; column i, did the i-th block of columns of Y change?
    """
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(1, L, d_model, generator=generator)
    attention = seeded(d_model, h, d_model // h, seed)
    d_k = attention.d_k
    with torch.no_grad():
        before = attention.trace(X)
        table = {name: torch.zeros(h, h, dtype=torch.bool) for name in ("input", "weights", "output")}
        for j in range(h):
            block = slice(j * d_k, (j + 1) * d_k)
            moved = X.clone()
            moved[..., j * d_k] += 1
            table["input"][j] = _heads_differ(attention.trace(moved).heads, before.heads)
            kept = {name: p.clone() for name, p in attention.state_dict().items()}
            for W in (attention.W_Q, attention.W_K, attention.W_V):
                W.weight[block] += 0.1
            table["weights"][j] = _heads_differ(attention.trace(X).heads, before.heads)
            attention.load_state_dict(kept)
            concat = before.concat.clone()
            concat[..., block] += 1
            Y = attention.W_O(concat)
            table["output"][j] = ((Y - before.output).abs() > 1e-4).view(L, h, d_k).any(-1).any(0)
    return table


def _heads_differ(now: Tensor, before: Tensor) -> Tensor:
    """(1, h, L, d_v) twice → (h,): which heads differ."""
    return ((now - before).abs() > 1e-5).any(-1).any(-1)[0]


def dependence(h: int = 4) -> Figure:
    """Change one thing, see what moves: everything at both ends, only one head in the middle."""
    tables = who_changes(h)
    fig = canvas(2.75)
    names = (
        ("input", say("改 X 的一列", "change a column of X"), say("头变了吗", "which heads move"), QUIET),
        ("weights", say("改一个头的权重", "change one head's W"), say("头变了吗", "which heads move"), WEIGHT),
        ("output", say("改一个头的结果", "change one head's result"), say("Y 变了吗", "which part of Y moves"), OUTPUT),
    )
    for ax, (name, title, below, tone) in zip(fig.subplots(1, 3), names, strict=True):
        colour = [[tone if name != "weights" else head_colour(j)] * h for j in range(h)]
        matrix(ax, tables[name].float(), colour=colour, numbers=None)
        for r, c in tables[name].nonzero().tolist():
            ax.text(c + 0.5, r + 0.5, "✓", ha="center", va="center", color="white", fontsize=12 if h < 8 else 9)
        ax.set_title(title, fontsize=9.5, color=INK, pad=6)
        ax.set_xlabel(below, fontsize=9.5, color=QUIET)
    counts = [int(tables[name].sum()) for name in ("input", "weights", "output")]
    return tell(
        fig,
        say("头只在中间那一段是独立的", "Heads are independent only in the middle"),
        say(
            f"三张 {h}×{h} 的表。改 X 的一列，动了的头共 {counts[0]} 格（全部）；改一个头的 W_Q、W_K、W_V，"
            f"只有 {counts[1]} 格动，都在对角线上；改一个头的结果，输出 Y 动了 {counts[2]} 格（全部）。",
            f"Three {h}×{h} tables. Changing a column of X moves {counts[0]} cells, all of them; changing one head's "
            f"W_Q, W_K and W_V moves {counts[1]}, those on the diagonal; changing one head's result moves {counts[2]} "
            "of Y, all of them.",
        ),
    )


def seeded(d_model: int, h: int, d_k: int, seed: int) -> MultiHeadAttention:
    """An untrained MultiHeadAttention, the same for the same seed, that leaves torch's own seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MultiHeadAttention(d_model, h, d_k=d_k, d_v=d_k)


def untrained(h: int = 4, d_k: int = 16, seed: int = 0, d_model: int = 64, L: int = 5) -> Tensor:
    """The weights (h, L, L) of an untrained MultiHeadAttention on L random tokens."""
    X = torch.randn(
        1, L, d_model, generator=torch.Generator().manual_seed(100)
    )  # the sentence stays, the heads are drawn
    with torch.no_grad():
        return seeded(d_model, h, d_k, seed).trace(X).weights[0]


def weight_maps(h: int = 4, d_k: int = 16, seed: int = 0) -> Figure:
    """The h weight maps of untrained heads on one sentence."""
    A, tokens = untrained(h, d_k, seed), sentence()
    columns = 4 if h > 4 else min(h, 2)
    fig = canvas(4.6)
    grid = fig.subplots(math.ceil(h / columns), columns, squeeze=False)
    for i, ax in enumerate(grid.flat):
        whole = h <= 4 or max(map(len, tokens)) == 1
        first = i % columns == 0
        cols, rows = tokens if whole else [t[0] for t in tokens], tokens if first else None
        if h <= 2:
            matrix(ax, A[i], colour=head_colour(i), vmax=0.45, cols=cols, rows=rows)
        else:  # too small for numbers
            _tiles(ax, A[i], head_colour(i), cols, rows)
        if h == 4:
            ax.tick_params(labelsize=9.5)
        ax.set_title(say(f"头 {i}", f"head {i}"), fontsize=10.5, color=head_colour(i), loc="left", pad=8)
    low, high = A.min().item(), A.max().item()
    return tell(
        fig,
        say("没训练过的头：差别全凭运气", "Untrained heads: they differ by chance"),
        say(
            f"“{''.join(tokens)}”的 {h} 张 5×5 注意力权重图，d_k = {d_k}，种子 {seed}，没有训练过。"
            f"权重从 {low:.2f} 到 {high:.2f}，平均 0.20。",
            f"{h} {'map' if h == 1 else 'maps'} of 5×5 attention weights for “{' '.join(tokens)}”, d_k = {d_k}, "
            f"seed {seed}, untrained. The weights run from {low:.2f} to {high:.2f}, their mean is 0.20.",
        ),
    )


def _tiles(ax: Axes, A: Tensor, colour: str, cols: list[str], rows: list[str] | None) -> None:
    """`matrix` without numbers, fast enough for eight maps a frame."""
    L = A.shape[0]
    ax.pcolormesh(A.numpy(), cmap=ramp(colour), vmin=0, vmax=0.45, edgecolors=FAINT, lw=0.5)
    ax.set(xlim=(-0.02, L + 0.02), ylim=(L + 0.02, -0.02), aspect="equal")
    ax.set_xticks(torch.arange(L) + 0.5, cols)
    ax.set_yticks(torch.arange(L) + 0.5 if rows else [], rows or [])
    ax.xaxis.tick_top()
    ax.tick_params(length=0, labelcolor=INK, labelsize=10)
    ax.spines[:].set_visible(False)
