"""explore: any function that draws, times the choices a reader may make.

In Jupyter and Colab it is ipywidgets, drawn on demand. While the book is built, every combination is
drawn once, and the page flips through the frames with native sliders: no kernel, no widget library.
"""

import base64
import html
import inspect
import itertools
import json
import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure

from mha.figures import display
from mha.language import say

WORDS = {
    "h": ("头数", "heads"),
    "d_k": ("每头维度", "head width"),
    "d_v": ("值维度", "value width"),
    "d_model": ("模型维度", "model width"),
    "L": ("序列长度", "length"),
    "n": ("键的个数", "keys"),
    "head": ("头", "head"),
    "mask": ("掩码", "mask"),
    "direction": ("方向", "direction"),
    "dtype": ("数据类型", "dtype"),
    "scale": ("缩放", "scale"),
    "step": ("步骤", "step"),
    "split": ("分头", "split"),
    "merge": ("合并", "merge"),
    "token": ("词元", "token"),
    "seed": ("随机种子", "seed"),
    "fill": ("填充", "fill"),
}


class Explore:
    """A live figure: `draw` and its choices. Made by `explore`."""

    def __init__(self, draw: Callable[..., Figure], choices: dict[str, list[Any]]) -> None:
        self.draw, self.choices = draw, choices
        self.track = {name: _in_order(values) for name, values in choices.items()}  # as they lie along the sliders
        self._drawn: dict[tuple[Any, ...], tuple[Figure | None, str]] = {}
        self._widget: Any = None
        self.first = self.frame(**{name: values[0] for name, values in choices.items()})

    def frame(self, **chosen: Any) -> tuple[Figure | None, str]:
        """The figure for these values and what it says; or None and why there is no such figure."""
        key = tuple(chosen[name] for name in self.choices)
        if key not in self._drawn:
            try:
                fig = self.draw(**chosen)
            except ValueError as error:  # a combination that makes no sense is told, not hidden
                self._drawn[key] = None, str(error)
            else:
                if not isinstance(fig, Figure):
                    raise TypeError(
                        f"draw must return a matplotlib Figure, got {type(fig).__name__} from "
                        f"{_name(self.draw)}({_call(chosen)})"
                    )
                display.close(fig)
                self._drawn[key] = fig, display.alt_text(fig)
        return self._drawn[key]

    def frames(self) -> list[tuple[Figure | None, str]]:
        """One for each combination along the tracks, the last choice turning fastest."""
        return [
            self.frame(**dict(zip(self.track, key, strict=True))) for key in itertools.product(*self.track.values())
        ]

    @property
    def widget(self) -> Any:
        """The ipywidgets form: a slider for each choice (words get buttons) above the figure. `.children` are both."""
        if self._widget is None:
            self._widget = _widget(self)
        return self._widget

    def __repr__(self) -> str:
        return f"explore({_name(self.draw)}, {_call(self.choices)})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        folder = display.frames_folder()
        if folder is not None:
            bundle["text/html"] = _page(self, folder)
        elif os.environ.get("MHA_STILL"):
            fig, _ = self.first
            if fig is not None:
                bundle["image/png"] = base64.b64encode(display.png(fig)).decode()
        else:
            view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
            bundle["application/vnd.jupyter.widget-view+json"] = view
        return bundle


def explore(draw: Callable[..., Figure], /, **choices: Sequence[Any]) -> Explore:
    """Let the reader move through what `draw` draws: `explore(draw, h=[1, 2, 4, 8], d_k=[4, 16])`.

    draw: takes the choices by name and returns a matplotlib Figure, always of the same size; a ValueError
    it raises is shown to the reader in place of the figure. choices: for each argument the values to try.
    The figure opens on the first of each; numbers lie along the slider from small to large, words as given.
    TypeError or ValueError where a choice is empty or `draw` does not fit.

    >>> from mha.figures import splitting
    >>> explore(splitting.memory, h=[2, 4])
    explore(memory, h=[2, 4])
    """
    if not callable(draw):
        raise TypeError(f"draw must be a function that returns a matplotlib Figure, got {type(draw).__name__}")
    if not choices:
        raise ValueError("explore needs at least one choice, for example explore(draw, h=[1, 2, 4, 8])")
    listed: dict[str, list[Any]] = {}
    for name, values in choices.items():
        if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
            raise TypeError(f"{name} must be a list of values to choose from, got {values!r}")
        listed[name] = list(values)
        if not listed[name]:
            raise ValueError(f"{name} must hold at least one value to choose from, got []")
    try:
        signature = inspect.signature(draw)
        signature.bind(**listed)
    except TypeError as error:
        raise TypeError(
            f"draw must take exactly the choices {', '.join(listed)}: {_name(draw)}{signature}, {error}"
        ) from None
    return Explore(draw, listed)


def label(name: str) -> str:
    """A choice's name in words and as a symbol: "头数 h"."""
    word = say(*WORDS[name]) if name in WORDS else name
    return name if word == name else f"{word} {name}"


def _widget(live: Explore) -> Any:
    import ipywidgets as widgets  # loaded when a live figure is first shown

    picture = widgets.HTML()
    sliders: dict[str, Any] = {}
    for name, values in live.track.items():
        told: dict[str, Any] = {"options": [(str(value), value) for value in values], "description": label(name)}
        told["value"], style = live.choices[name][0], {"description_width": "initial"}
        if _are_numbers(values):
            sliders[name] = widgets.SelectionSlider(**told, continuous_update=False, style=style)
        else:  # JupyterLab cuts words beside a slider
            sliders[name] = widgets.ToggleButtons(**told, style={**style, "button_width": "max-content"})

    def redraw(_change: Any = None) -> None:
        try:
            fig, text = live.frame(**{name: slider.value for name, slider in sliders.items()})
        except Exception:  # a callback's error would vanish; show it where the reader looks
            picture.value = f"<pre>{html.escape(traceback.format_exc())}</pre>"
            return
        # as text, not as the bytes of widgets.Image: Colab drops binary traits
        picture.value = _inline(fig, text) if fig is not None else _refusal(text)

    for slider in sliders.values():
        slider.observe(redraw, names="value")
    redraw()
    return widgets.VBox([*sliders.values(), picture])


def _inline(fig: Figure, text: str) -> str:
    width, height = display.size(fig)
    data = base64.b64encode(display.png(fig)).decode()
    alt = html.escape(text, quote=True)
    return (
        f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="{alt}" '
        'style="max-width:100%;height:auto">'
    )


def _refusal(why: str) -> str:
    words = say("这个组合不成立：", "This combination is impossible:")
    return f'<p class="mha-refusal" role="status"><strong>{words}</strong> <code>{html.escape(why)}</code></p>'


def _page(live: Explore, folder: Any) -> str:
    """The figure and its sliders as HTML; the first frame in the page, the others named in JSON."""
    opens_on, why = live.first
    if opens_on is None:
        raise ValueError(f"the first combination must be possible, got: {why}")
    frames: list[dict[str, str]] = []
    first = ""
    sizes = set()
    for fig, text in live.frames():
        if fig is None:
            frames.append({"error": text})
            continue
        sizes.add(display.size(fig))
        if len(sizes) > 1:
            raise ValueError(f"draw must return figures of one size, or the page would jump; got {sorted(sizes)} px")
        name = display.store(fig, folder)
        if fig is opens_on:
            first = display.image_tag(fig, name)
        frames.append({"src": f"frames:{name}", "alt": text})
    names = [name for name, values in live.track.items() if len(values) > 1]
    sliders = "".join(_slider(name, live.track[name], live.choices[name][0]) for name in names)
    data = {
        "choices": [{"name": name, "values": [str(v) for v in live.track[name]]} for name in names],
        "frames": frames,
        "impossible": say("这个组合不成立：", "This combination is impossible:"),
        "missing": say("这幅图没有取到，再动一下滑块试试。", "This picture did not arrive. Move a slider again."),
    }
    about = html.escape(
        say("可以拨动的图", "Live figure") + f": {', '.join(label(name) for name in names)}", quote=True
    )
    script = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    return (
        f'<div class="mha-explore" role="group" aria-label="{about}">'
        f'<div class="mha-frame">{first}</div><div class="mha-sliders">{sliders}</div>'
        f'<p class="mha-status" role="status" aria-live="polite"></p>'
        f'<script type="application/json">{script}</script></div>'
    )


def _slider(name: str, values: list[Any], start: Any) -> str:
    text, first, stops = html.escape(label(name)), html.escape(str(start), quote=True), len(values) - 1
    return (
        f'<label class="mha-slider" data-choice="{html.escape(name, quote=True)}"><span>{text}</span>'
        f'<input type="range" min="0" max="{stops}" step="1" value="{values.index(start)}" aria-valuetext="{first}">'
        f'<output data-widest="{html.escape(max(map(str, values), key=len), quote=True)}">{first}</output></label>'
    )


def _are_numbers(values: list[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _in_order(values: list[Any]) -> list[Any]:
    """Numbers from small to large: a hand that moves right expects more."""
    return sorted(values) if _are_numbers(values) else values


def _name(draw: Callable[..., Any]) -> str:
    return getattr(draw, "__name__", type(draw).__name__)


def _call(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
