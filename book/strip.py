"""The strip under every title: the five steps as seven small shapes, the current one lit, each a link."""

import re
from collections.abc import Callable

ROW, HEAD = '<rect x="{x}" y="{y}" width="{w}" height="{h}" class="{c}"/>', ("h0", "h1", "h2", "h3")


def _rect(x: float, y: float, w: float, h: float, c: str) -> str:
    return ROW.format(x=x, y=y, w=w, h=h, c=c)


def _striped(x: float, y: float, w: float, h: float) -> str:
    return "".join(_rect(x + i * w / 4, y, w / 4, h, c) for i, c in enumerate(HEAD))


SHAPES = {
    "X": _rect(8, 6, 24, 12, "x"),
    "QKV": _rect(2, 6, 11, 12, "q") + _rect(14.5, 6, 11, 12, "k") + _rect(27, 6, 11, 12, "v"),
    "split": "".join(_rect(4 + 9 * i, 6, 5, 12, c) for i, c in enumerate(HEAD)),
    "scores": "".join(_rect(2 + 9.5 * i, 8, 8, 8, c) for i, c in enumerate(HEAD)),
    "concat": _striped(8, 6, 24, 12),
    "W_O": _rect(10, 2, 20, 20, "o"),
    "Y": _rect(8, 6, 24, 12, "o"),
}
# shape, its name in Chinese and English, its size in the running example, the chapter that makes it
STOPS = (
    ("X", "X", "X", "L×512", "chapters/1-concept"),
    ("QKV", "Q K V", "Q K V", "3·L×512", "chapters/2-1-projection"),
    ("split", "分头", "split", "8·L×64", "chapters/2-2-splitting"),
    ("scores", "分数·<wbr>Softmax", "scores·<wbr>softmax", "8·L×L", "chapters/2-3-attention"),
    ("concat", "合并", "merge", "L×512", "chapters/2-4-merging"),
    ("W_O", "W<sub>O</sub>", "W<sub>O</sub>", "512×512", "chapters/2-5-output"),
    ("Y", "Y", "Y", "L×512", "chapters/4-code"),
)


def strip(docname: str, lang: str, uri: Callable[[str], str], known: set[str]) -> str:
    """The strip for one page. `uri` gives the way to another page; pages not in `known` are not linked."""
    items = []
    for shape, zh, en, size, target in STOPS:
        here = ' aria-current="step"' if target == docname else ""
        drawing = f'<svg viewBox="0 0 40 24" aria-hidden="true">{SHAPES[shape]}</svg>'
        text = f"{drawing}<b>{zh if lang == 'zh' else en}</b><small>{size}</small>"
        items.append(f'<li><a href="{uri(target)}"{here}>{text}</a></li>' if target in known else f"<li>{text}</li>")
    about = "五步条：d_model 512，h 8，d_k 64" if lang == "zh" else "The five steps: d_model 512, h 8, d_k 64"
    return f'<nav class="mha-strip" aria-label="{about}"><ol>{"".join(items)}</ol></nav>'


def shapes(name: str) -> list[tuple[float, float, float, float, str]]:
    """A stop's rectangles in its box of 40 × 24: x, y, width, height and the kind that gives the colour."""
    found = re.findall(r'x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" class="(\w+)"', SHAPES[name])
    return [(float(x), float(y), float(w), float(h), kind) for x, y, w, h, kind in found]
