"""Figures of the benchmarks' page. All draw what `make bench` measured once and stored; none takes a time itself."""

import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mha.figures import FAINT, INK, QUIET, RIGHT, WEIGHT, WRONG, canvas, tell
from mha.language import say

RESULTS = Path(__file__).with_name("benchmarks.json")
DIRECTIONS = {"→": "forward", "→ ←": "forward + backward"}
CLOSE = 0.97  # as fast as the fastest, within what a clock can tell


def results(path: Path = RESULTS) -> dict[str, Any]:
    """What was measured: by default the run whose numbers this book shows."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def time(found: dict[str, Any], L: int, direction: str = "→", dtype: str = "float32", causal: bool = False) -> Figure:
    """The time of every contender in one cell, as a multiple of mha's. ValueError where no such cell was measured."""
    cell = _cell(found, L, direction, dtype, causal)
    rows = sorted(cell["contenders"].items(), key=lambda row: float(row[1]["ratio"]))
    fig = canvas(3.5)
    ax = fig.subplots()
    for y, (name, row) in enumerate(rows):
        colour = WEIGHT if name == "mha" else QUIET
        ax.barh(y, row["ratio"], height=0.5, color=colour, alpha=0.75 if name == "mha" else 0.4)
        ax.plot([row["low"], row["high"]], [y, y], color=INK, lw=1)
        ax.text(-0.08, y, name, ha="right", va="center", fontsize=9.5, color=colour if name == "mha" else INK)
        end = max(row["ratio"], row["high"])
        ax.text(end + 0.08, y, f"×{row['ratio']:.2f}   {_ms(row['seconds'])}", va="center", fontsize=9.5)
    longest = max(max(row["ratio"], row["high"]) for _, row in rows)
    ax.axvline(1, color=FAINT, lw=1, zorder=0)
    ax.set(xlim=(0, 1.45 * longest), ylim=(len(rows) - 0.5, -0.6), yticks=[], xticks=[])
    ax.spines[["left", "bottom"]].set_visible(False)
    _caption(
        fig,
        found,
        say("×：用时 ÷ mha 的用时（中位数，细线为四分位）", "×: time ÷ mha's (median; thin line: quartiles)"),
    )
    first, ratio = rows[0][0], rows[0][1]["ratio"]
    if first == "mha":
        title = say(f"L = {L}：mha 最快", f"L = {L}: mha is the fastest")
    elif ratio >= CLOSE:
        title = say(f"L = {L}：最快的几个不分先后", f"L = {L}: the fastest are level")
    else:
        title = say(
            f"L = {L}：{first} 少用 {1 - ratio:.0%} 的时间", f"L = {L}: {first} needs {1 - ratio:.0%} less time"
        )
    told = ", ".join(f"{name} ×{row['ratio']:.2f}" for name, row in rows)
    return tell(
        fig,
        title,
        say(
            f"(B, L) = ({cell['B']}, {L})，{dtype}，{_way(direction)}，{_mask(causal)}；用时是 mha 的几倍：{told}。",
            f"(B, L) = ({cell['B']}, {L}), {dtype}, {_way(direction)}, {_mask(causal)}; time as a multiple of mha's: "
            f"{told}.",
        ),
    )


def every_cell(found: dict[str, Any]) -> Figure:
    """Each cell: how fast mha is against the fastest of the others, and who that is."""
    ways = list(DIRECTIONS)
    rows = list(dict.fromkeys((cell["B"], cell["L"], cell["dtype"], cell["causal"]) for cell in found["cells"]))
    fig = canvas(0.95 + 0.3 * len(rows))
    ax = fig.subplots()
    behind = 0
    for x, way in enumerate(ways):
        ax.text(2.45 + 2.6 * x, -1, _way(way), va="center", fontsize=10, color=QUIET)
    for y, (B, L, dtype, causal) in enumerate(rows):
        ax.text(0, y, f"({B}, {L})  {dtype}", va="center", fontsize=9)
        ax.text(1.72, y, say("因果", "causal") if causal else "", va="center", fontsize=9)
        for x, way in enumerate(ways):
            name, ratio = fastest_other(_cell(found, L, way, dtype, causal))
            good = ratio >= CLOSE
            behind += not good
            words = f"{'✓' if good else '✕'} {ratio:.2f}"
            ax.text(2.45 + 2.6 * x, y, words, va="center", fontsize=10, color=RIGHT if good else WRONG)
            short = name.replace("MultiheadAttention", "MHA")
            ax.text(3.15 + 2.6 * x, y, short, va="center", fontsize=8.5, color=QUIET)
    ax.set(xlim=(0, 7.8), ylim=(len(rows) - 0.4, -1.5))
    ax.axis("off")
    _caption(
        fig,
        found,
        say(
            f"最快的对手的用时 ÷ mha 的用时；✓：不低于 {CLOSE}",
            f"time of the fastest other ÷ mha's; ✓: {CLOSE} or more",
        ),
    )
    count = len(found["cells"])
    return tell(
        fig,
        say(
            f"{count} 格中有 {behind} 格，mha 输给别人" if behind else f"{count} 格里 mha 都不输给别人",
            f"In {behind} of {count} cells mha is beaten" if behind else f"mha is beaten in none of {count} cells",
        ),
        say(
            f"每一格：最快的对手的用时除以 mha 的用时，低于 {CLOSE} 打 ✕；打 ✕ 的有 {behind} 格，一共 {count} 格。",
            f"Each cell: the time of the fastest other over the time of mha, ✕ below {CLOSE}: {behind} of {count}.",
        ),
    )


def memory(found: dict[str, Any], causal: bool = False) -> Figure:
    """Bytes that a forward pass adds for each token, against the length: what grows with L and what does not."""
    shown = ("mha", "nn.MultiheadAttention", "nn.MultiheadAttention, weights", "listing")
    lines: dict[str, dict[int, float]] = {name: {} for name in shown}
    for cell in found["cells"]:
        if cell["passes"] == "forward" and cell["dtype"] == "float32" and cell["causal"] == causal:
            for name in shown:
                lines[name][cell["L"]] = cell["contenders"][name]["bytes"] / (cell["B"] * cell["L"])
    longest = next(row for row in found["long"] if row["causal"] == causal)
    for name, count in longest["bytes"].items():
        lines[name][longest["L"]] = count / (longest["B"] * longest["L"])
    fig = canvas(3.4)
    ax = fig.subplots()
    for name, points in lines.items():
        colour = {"mha": WEIGHT, "listing": WRONG}.get(name, QUIET)
        ax.plot(
            list(points), list(points.values()), color=colour, marker="o", ms=4, alpha=1 if colour != QUIET else 0.6
        )
    lengths = sorted({L for points in lines.values() for L in points})
    _name_lines(ax, 1.2 * lengths[-1], {name: points[max(points)] for name, points in lines.items()})
    ax.set(xscale="log", yscale="log", xlabel="L", xlim=(lengths[0] * 0.8, lengths[-1] * 14))
    ax.set_xticks(lengths, [str(L) for L in lengths])
    ax.set_yticks([1e4, 1e5, 1e6], ["10 kB", "100 kB", "1 MB"])
    ax.minorticks_off()
    ax.set_title(say("前向多占的内存 ÷ 词元数", "memory a forward adds ÷ tokens"), loc="left", fontsize=10, color=QUIET)
    _caption(fig, found, f"float32, {_mask(causal)}")
    times = longest["bytes"]["listing"] / longest["bytes"]["mha"]
    return tell(
        fig,
        say(
            f"L = {longest['L']}：mha 只要 1/{times:.0f} 的内存",
            f"At L = {longest['L']}, mha needs 1/{times:.0f} of the memory",
        ),
        say(
            f"每个词元多占的内存随 L 的变化。L = {longest['L']} 时，讲义的代码一共 {_mb(longest['bytes']['listing'])}，"
            f"mha {_mb(longest['bytes']['mha'])}。",
            f"Memory added for each token, against L. At L = {longest['L']} the listing adds "
            f"{_mb(longest['bytes']['listing'])} in all, mha {_mb(longest['bytes']['mha'])}.",
        ),
    )


def decoding(found: dict[str, Any]) -> Figure:
    """Decoding token by token, with the cache and by computing everything again."""
    fig = canvas(0.9 + 0.75 * len(found["decoding"]))
    ax = fig.subplots()
    longest = max(row["recomputed"]["seconds"] for row in found["decoding"])
    for i, row in enumerate(found["decoding"]):
        ax.text(-0.02 * longest, 2.5 * i + 0.4, f"kv_heads = {row['kv_heads']}", ha="right", va="center", fontsize=10)
        words = {"cached": say("用缓存", "cached"), "recomputed": say("重算", "recomputed")}
        for k, (way, colour) in enumerate((("cached", WEIGHT), ("recomputed", QUIET))):
            took = row[way]["seconds"]
            ax.barh(2.5 * i + 0.8 * k, took, height=0.6, color=colour, alpha=0.75 if k == 0 else 0.4)
            text = f"{words[way]}  {_ms(took)}" + (f"  ×{row[way]['ratio']:.1f}" if k else "")
            ax.text(took + 0.02 * longest, 2.5 * i + 0.8 * k, text, va="center", fontsize=9.5)
    ax.set(xlim=(0, 1.6 * longest), ylim=(2.5 * len(found["decoding"]) - 1, -0.6), yticks=[], xticks=[])
    ax.spines[["left", "bottom"]].set_visible(False)
    tokens, least = found["decoding"][0]["tokens"], min(row["recomputed"]["ratio"] for row in found["decoding"])
    _caption(fig, found, say("B = 1，float32；×：÷ 用缓存的用时", "B = 1, float32; ×: ÷ the cached time"))
    told = ", ".join(f"kv_heads = {row['kv_heads']}: ×{row['recomputed']['ratio']:.1f}" for row in found["decoding"])
    return tell(
        fig,
        say(
            f"解码 {tokens} 个词元，缓存至少快 {least:.0f} 倍",
            f"{tokens} tokens: the cache is at least {least:.0f} times faster",
        ),
        say(
            f"逐个解码 {tokens} 个词元，重算的用时是用缓存的几倍：{told}。",
            f"Decoding {tokens} tokens one by one, time of recomputing as a multiple of the cached time: {told}.",
        ),
    )


def key_heads(found: dict[str, Any]) -> Figure:
    """What fewer key heads save: the cache shrinks in proportion, the time of a forward pass less."""
    lengths = list(dict.fromkeys(row["L"] for row in found["shared"]))
    most = found["decoding"][0]
    fig = canvas(0.9 + 0.75 * len(found["decoding"]))
    ax = fig.subplots()
    for i, row in enumerate(found["decoding"]):
        share = row["cache_bytes"] / most["cache_bytes"]
        times = [r["ratio"] for r in found["shared"] if r["kv_heads"] == row["kv_heads"]]
        ax.text(-0.02, 2.5 * i + 0.4, f"kv_heads = {row['kv_heads']}", ha="right", va="center", fontsize=10)
        ax.barh(2.5 * i, share, height=0.6, color=WEIGHT, alpha=0.75)
        size = say(f"缓存 {_mb(row['cache_bytes'])}", f"cache {_mb(row['cache_bytes'])}")
        ax.text(share + 0.02, 2.5 * i, size, va="center", fontsize=9.5)
        middle = sorted(times)[len(times) // 2]
        ax.barh(2.5 * i + 0.8, middle, height=0.6, color=QUIET, alpha=0.4)
        ax.plot([min(times), max(times)], [2.5 * i + 0.8] * 2, color=INK, lw=1)
        ax.text(
            max(times) + 0.02,
            2.5 * i + 0.8,
            say(f"前向用时 ×{middle:.2f}", f"forward ×{middle:.2f}"),
            va="center",
            fontsize=9.5,
        )
    ax.set(xlim=(0, 1.45), ylim=(2.5 * len(found["decoding"]) - 1, -0.6), yticks=[], xticks=[])
    ax.spines[["left", "bottom"]].set_visible(False)
    spread = say(f"×：÷ 第一行；细线：L = {_listed(lengths)}", f"×: ÷ first row; thin line: L = {_listed(lengths)}")
    _caption(fig, found, spread)
    told = say("；", "; ").join(f"kv_heads = {row['kv_heads']}: {_mb(row['cache_bytes'])}" for row in found["decoding"])
    last = found["decoding"][-1]
    cache = most["cache_bytes"] / last["cache_bytes"]
    span = " – ".join(f"×{edge(times):.2f}" for edge in (min, max))
    return tell(
        fig,
        say(
            f"kv_heads = {last['kv_heads']}：缓存剩 1/{cache:.0f}，前向只到 {span}",
            f"kv_heads = {last['kv_heads']}: 1/{cache:.0f} of the cache, forward {span}",
        ),
        say(
            f"{most['tokens']} 个词元的缓存：{told}；kv_heads = {last['kv_heads']} 的前向用时 {span}。",
            f"The cache of {most['tokens']} tokens: {told}; forward with kv_heads = {last['kv_heads']}: {span}.",
        ),
    )


def promises(found: dict[str, Any]) -> Figure:
    """What was promised before measuring, and what came out."""
    long = found["plan"]["long"]
    words = {
        "fastest": say("每一格：最快的对手 ÷ mha", "every cell: the fastest other ÷ mha"),
        "torch_with_weights": say("nn.MultiheadAttention（带权重）÷ mha", "nn.MultiheadAttention, weights ÷ mha"),
        "torch_without_weights": say("nn.MultiheadAttention（不带权重）÷ mha", "nn.MultiheadAttention ÷ mha"),
        "listing": say("讲义的代码 ÷ mha", "the notes' listing ÷ mha"),
        "memory": say(f"L = {long} 的内存：讲义 ÷ mha", f"memory at L = {long}: listing ÷ mha"),
        "decoding": say("解码：重算 ÷ 用缓存", "decoding: recomputed ÷ cached"),
        "import": say("import mha 多花的秒数", "seconds that import mha adds"),
    }
    fig = canvas(0.8 + 0.36 * len(words))
    ax = fig.subplots()
    missed = [row for row in found["targets"] if row["met"] is False]
    for y, row in enumerate(found["targets"]):
        colour = {True: RIGHT, False: WRONG, None: QUIET}[row["met"]]
        ax.text(0, y, {True: "✓", False: "✕", None: "·"}[row["met"]], color=colour, va="center", fontsize=11)
        ax.text(0.3, y, words[row["name"]], va="center", fontsize=10)
        ax.text(5.5, y, f"{row['value']:.3g}", va="center", ha="right", fontsize=10.5, color=colour)
        if row["limit"] is not None:
            ax.text(5.75, y, f"{row['rule']} {row['limit']:g}", va="center", fontsize=10, color=QUIET)
    ax.set(xlim=(0, 6.7), ylim=(len(words) - 0.4, -0.6))
    ax.axis("off")
    _caption(fig, found, say("多格的承诺按最差的一格算", "a promise about several cells is judged by the worst"))
    asked = sum(row["met"] is not None for row in found["targets"])
    told = say("；", "; ").join(f"{words[row['name']]} {row['value']:.3g}" for row in found["targets"])
    return tell(
        fig,
        say(
            f"{asked} 个承诺，{len(missed)} 个没有做到" if missed else f"{asked} 个承诺，都做到了",
            f"{len(missed)} of {asked} promises missed" if missed else f"All {asked} promises kept",
        ),
        say(f"量得：{told}。", f"Measured: {told}."),
    )


def fastest_other(cell: dict[str, Any]) -> tuple[str, float]:
    """The fastest contender beside mha, and its time ÷ mha's."""
    others = {name: float(row["ratio"]) for name, row in cell["contenders"].items() if name != "mha"}
    name = min(others, key=others.__getitem__)
    return name, others[name]


def _cell(found: dict[str, Any], L: int, direction: str, dtype: str, causal: bool) -> dict[str, Any]:
    wanted = {"L": L, "passes": DIRECTIONS.get(direction), "dtype": dtype, "causal": causal}
    for cell in found["cells"]:
        if all(cell[key] == value for key, value in wanted.items()):
            return dict(cell)
    raise ValueError(f"no such cell was measured: L = {L}, {direction}, {dtype}, causal = {causal}")


def _caption(fig: Figure, found: dict[str, Any], words: str) -> None:
    """Under the figure: what the numbers are, and on what they were measured."""
    it = found["machine"]
    cpu = it["cpu"] if it["device"] == "cpu" else it["device"]
    threads = say(f"{it['threads']} 个线程", f"{it['threads']} thread{'s' if it['threads'] > 1 else ''}")
    where = f"{cpu}, {threads}, torch {it['torch']}, {it['date']}".replace(", ", say("，", ", "))
    fig.supxlabel(f"{words}\n{where}", x=0.012, ha="left", fontsize=9, color=QUIET, linespacing=1.5)


def _name_lines(ax: Axes, x: float, ends: dict[str, float]) -> None:
    """Name each line at x, beside its end, far enough apart on the logarithmic axis not to touch."""
    y = 0.0
    for name, end in sorted(ends.items(), key=lambda item: item[1]):
        y = max(end, 1.5 * y)
        colour = {"mha": WEIGHT, "listing": WRONG}.get(name, QUIET)
        ax.text(x, y, name, color=colour, va="center", fontsize=9.5)


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _mask(causal: bool) -> str:
    return say("因果", "causal") if causal else say("无掩码", "no mask")


def _way(direction: str) -> str:
    return say("前向", "forward") if direction == "→" else say("前向加反向", "forward and backward")


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _mb(count: float) -> str:
    return f"{count / 1e6:.3g} MB" if count < 1e9 else f"{count / 1e9:.3g} GB"
