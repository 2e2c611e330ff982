"""The lab in a book: a figure that lab-page.js brings to life, and until then (or on paper) a still with a caption."""

import base64
import html
import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mha.figures import FAINT, INK, OUTPUT, QUIET, WEIGHT, K, Q, V, blank, canvas, display, head_colour, tell
from mha.language import say
from mha.trace import Trace
from mha.widgets.lab.state import call

NEGATIVE = QUIET  # a cell's hue says which tensor it belongs to, grey that the number is negative


class Page:
    """A lab in a page of the book, or, under MHA_STILL, its still. Made by `lab`."""

    def __init__(self, state: dict[str, Any], given: dict[str, Any] | None, trace: Trace) -> None:
        self.state, self.given, self.trace = state, given, trace

    def __repr__(self) -> str:
        return call(self.state)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        picture, folder = still(self.state, self.trace), display.frames_folder()
        if folder is None:
            return {"text/plain": repr(self), "image/png": base64.b64encode(display.png(picture)).decode()}
        return {"text/plain": repr(self), "text/html": page(self.state, picture, folder, self.given)}


def words() -> dict[str, str]:
    """Every word of the lab in the reader's language, by the name lab.js knows it by."""
    both = json.loads((resources.files("mha.widgets.lab") / "words.json").read_text(encoding="utf-8"))
    return {name: say(zh, en) for name, (zh, en) in both.items()}


def page(state: dict[str, Any], picture: Figure, folder: Path, given: dict[str, Any] | None = None) -> str:
    """The figure as HTML: the still, its caption, and what lab-page.js needs to bring it to life."""
    data = {"state": state, "words": words()} | ({"given": given} if given else {})
    script = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    caption = say(
        "这里是一个可以动手的实验台：改句子，调 h 和 d_k，一步一步看每个数从哪里来。它要用到 JavaScript；"
        "上图是它打开时的样子。",
        "Here stands a lab: edit the sentence, move h and d_k, and follow every number through the steps. "
        "It needs JavaScript; above is what it shows when it opens.",
    )
    return (
        f'<figure class="mha-lab">{display.image_tag(picture, display.store(picture, folder))}'
        f'<figcaption>{html.escape(caption)}</figcaption><script type="application/json">{script}</script></figure>'
    )


def still(state: dict[str, Any], trace: Trace) -> Figure:
    """The five steps of this very pass, from top to bottom: every cell is a number of `trace`."""
    tokens, h = state["tokens"], state["h"]
    fig = canvas(5.4)
    ax = fig.add_subplot()
    blank(ax, (0, 10), (0, 9.6))
    rows: list[tuple[str, list[tuple[Any, Any]]]] = [
        ("X", [(_numbers(trace.X_Q), INK)]),
        ("Q  K  V", [(_numbers(trace.Q), Q), (_numbers(trace.K), K), (_numbers(trace.V), V)]),
        ("S = QKᵀ/√d", [(S, WEIGHT) for S in _numbers(trace.scores)]),
        ("A = softmax(S)", [(A, WEIGHT) for A in _numbers(trace.weights)]),
        ("A·V", [(head, head_colour(i)) for i, head in enumerate(_numbers(trace.heads))]),
        ("Y", [(_numbers(trace.output), OUTPUT)]),
    ]
    shown = [trace.X_Q, trace.Q, trace.scores, trace.weights, trace.heads, trace.output]
    for row, ((name, matrices), tensor) in enumerate(zip(rows, shown, strict=True)):
        y, width = 1.6 * row + 0.2, (7.4 - 0.15 * (len(matrices) - 1)) / len(matrices)
        ax.text(0, y + 0.4, name, va="center", fontsize=10.5, color=INK)
        ax.text(0, y + 0.85, str(tuple(tensor.shape[1:])), va="center", fontsize=9, color=QUIET)
        closed = None if trace.allowed is None or name[0] not in "SA" or "·" in name else _closed(trace)
        top = 1.0 if name.startswith("A =") else max(float(np.abs(M).max()) for M, _ in matrices) or 1.0
        for i, (M, colour) in enumerate(matrices):
            each = min(width, 1.25) if closed is not None or (name[0] in "SA" and "·" not in name) else width
            _cells(ax, M, 2.6 + i * (width + 0.15), y, each, 1.25, colour, top, closed)
    shapes = ", ".join(f"{name} {tuple(t.shape[1:])}" for (name, _), t in zip(rows, shown, strict=True))
    sentence = "".join(tokens) if state["unit"] == "characters" else " ".join(tokens)
    mask = {
        "none": ("无", "none"),
        "causal": ("因果", "causal"),
        "padding": ("填充", "padding"),
        "drawn": ("画出的", "drawn"),
    }
    return tell(
        fig,
        say(
            f"“{sentence}”走过五步：h = {h}，d_k = {state['d_k']}",
            f"“{sentence}” in five steps: h = {h}, d_k = {state['d_k']}",
        ),
        say(
            f"实验台的一帧：句子“{sentence}”，{len(tokens)} 个词元，h = {h}，d_k = {state['d_k']}，"
            f"掩码：{mask[state['mask']][0]}。"
            f"从上到下是各步的张量和形状：{shapes}。",
            f"A still of the lab: “{sentence}”, {len(tokens)} tokens, h = {h}, d_k = {state['d_k']}, "
            f"mask: {mask[state['mask']][1]}. From top to bottom the tensors of the steps and their shapes: {shapes}.",
        ),
    )


def _numbers(tensor: Any) -> Any:
    return tensor[0].detach().double().numpy()


def _closed(trace: Trace) -> Any:
    assert trace.allowed is not None
    return ~np.asarray(trace.allowed.expand(trace.scores.shape)[0, 0])


def _cells(ax: Axes, M: Any, x: float, y: float, w: float, tall: float, colour: str, top: float, closed: Any) -> None:
    """A matrix as coloured cells in the box (x, y, w, tall); masked ones empty and hatched."""
    rows, columns = M.shape
    strength = np.minimum(np.abs(M) / top, 1.0)
    if closed is not None:
        strength = np.where(closed, 0.0, strength)
        for r, c in np.argwhere(closed):
            at = (x + w * c / columns, y + tall * r / rows)
            ax.add_patch(Rectangle(at, w / columns, tall / rows, fc="none", ec=FAINT, lw=0.4, hatch="/////"))
    tones = np.where((M < 0)[..., None], colors.to_rgb(NEGATIVE), colors.to_rgb(colour))
    cells = np.concatenate([tones, strength[..., None]], axis=-1)
    ax.imshow(cells, extent=(x, x + w, y + tall, y), interpolation="nearest", aspect="equal")
    ax.add_patch(Rectangle((x, y), w, tall, fc="none", ec=FAINT, lw=0.8))
