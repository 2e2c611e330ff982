"""The figure of the cover: the five steps from top to bottom, every shape read from a real pass."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mha.attention import MultiHeadAttention
from mha.figures import INK, OUTPUT, QUIET, K, Q, V, blank, canvas, head_colour, tell
from mha.language import say
from mha.trace import Trace

LEFT, RIGHT_END = 2.9, 7.5  # where the drawings stand, between the names and the shapes


def one_pass(h: int = 8, L: int = 5, d_model: int = 512) -> Trace:
    """The trace of an untrained MultiHeadAttention on L random tokens, the same every time."""
    X = torch.randn(1, L, d_model, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        return MultiHeadAttention(d_model, h).trace(X)


def five_steps(h: int = 8, L: int = 5, d_model: int = 512) -> Figure:
    """X → Q K V → split → weights → heads → concat → Y, with the shapes of a real pass."""
    trace = one_pass(h, L, d_model)
    shape = {name: tuple(tensor.shape[1:]) for _, name, tensor in trace}  # without the batch
    stops = (
        ("X", say("输入", "input"), say("词元的向量", "a vector a token"), "X_Q", 1),
        ("QKV", say("1 线性变换", "1 projection"), say("X 乘 W_Q、W_K、W_V", "X by W_Q, W_K, W_V"), "Q", 3),
        ("split", say("2 分头", "2 splitting"), "view, transpose", "Q_heads", 3),
        ("weights", say("3 注意力权重", "3 weights"), "softmax(QKᵀ / √dₖ)", "weights", 1),
        ("heads", say("3 加权求和", "3 weighted sum"), say("权重乘 V", "weights times V"), "heads", 1),
        ("concat", say("4 合并", "4 merging"), "transpose, view", "concat", 1),
        ("Y", say("5 输出变换", "5 output"), say("乘 W_O", "times W_O"), "output", 1),
    )
    fig = canvas(6.4)
    ax = fig.add_subplot()
    blank(ax, (0, 10), (0, 1.5 * len(stops) - 0.3))
    for row, (stop, name, how, tensor, times) in enumerate(stops):
        y = 1.5 * row + 0.6
        ax.text(0, y - 0.2, name, va="center", fontsize=11.5, color=INK)
        ax.text(0, y + 0.3, how, va="center", fontsize=9.5, color=QUIET)
        _draw(ax, stop, y, h, L)
        size = " × ".join(str(n) for n in shape[tensor])
        ax.text(10, y, size + (f"  ({times}×)" if times > 1 else ""), ha="right", va="center", fontsize=10.5)
        if row:
            ax.annotate("", ((LEFT + RIGHT_END) / 2, y - 0.56), ((LEFT + RIGHT_END) / 2, y - 0.94),
                        arrowprops={"arrowstyle": "->", "color": QUIET, "lw": 1.2})  # fmt: skip
    listed = ", ".join(f"{name} {shape[tensor]}" for name, _, _, tensor, _ in stops)
    return tell(
        fig,
        say(
            f"五步里的形状：h = {h}，d_k = {d_model // h}",
            f"Five steps and their shapes: h = {h}, d_k = {d_model // h}",
        ),
        say(
            f"从上到下画出五步，每步写着张量的形状。"
            f"d_model = {d_model}，h = {h}，d_k = {d_model // h}，L = {L}：{listed}。",
            f"The five steps from top to bottom, each with the shape of its tensor. d_model = {d_model}, h = {h}, "
            f"d_k = {d_model // h}, L = {L}: {listed}.",
        ),
    )


def _draw(ax: Axes, stop: str, y: float, h: int, L: int) -> None:
    """The tensor of one stop: as wide as its columns, as tall as its tokens."""
    width, tall = RIGHT_END - LEFT, 0.4 + 0.04 * L
    middle = (LEFT + RIGHT_END) / 2
    if stop in ("X", "Y"):
        _block(ax, middle - 0.75, y, 1.5, tall, QUIET if stop == "X" else OUTPUT)
    elif stop == "QKV":
        for i, (letter, tone) in enumerate((("Q", Q), ("K", K), ("V", V))):
            _block(ax, middle + (i - 1) * 1.6 - 0.7, y, 1.4, tall, tone)
            ax.text(middle + (i - 1) * 1.6, y, letter, ha="center", va="center", color="white", fontsize=11)
    elif stop == "concat":
        for i in range(h):
            _block(ax, middle - 0.75 + 1.5 * i / h, y, 1.5 / h, tall, head_colour(i))
    else:
        pitch = width / max(h, 4)
        for i in range(h):
            centre = middle + (i - (h - 1) / 2) * pitch
            if stop == "weights":  # (L, L): square
                side = min(0.62 * pitch, tall)
                _block(ax, centre - side / 2, y, side, side, head_colour(i))
            elif stop == "heads":
                _slim(ax, centre, y, pitch, tall, (head_colour(i),))
            else:  # Q, K and V of this head, side by side
                _slim(ax, centre, y, pitch, tall, (Q, K, V))
            if h <= 8 and stop != "split":
                ax.text(centre, y, str(i), ha="center", va="center", color="white", fontsize=9.5)


def _slim(ax: Axes, centre: float, y: float, pitch: float, tall: float, tones: tuple[str, ...]) -> None:
    each = min(0.72 * pitch / len(tones), 0.5)
    for i, tone in enumerate(tones):
        _block(ax, centre + (i - len(tones) / 2) * each, y, each * (0.86 if len(tones) > 1 else 1), tall, tone)


def _block(ax: Axes, x: float, y: float, w: float, tall: float, colour: str) -> None:
    ax.add_patch(Rectangle((x, y - tall / 2), w, tall, fc=colour, ec="none"))
