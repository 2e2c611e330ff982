"""Every word of a figure is read by lightness alone: in the light, in the dark, in greyscale, by any eye for colour.

WCAG's contrast knows no hue, so what passes here passes on a grey screen and on paper, too.
"""

import numpy as np
import pytest
from matplotlib import colors
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import mha.language
from mha.figures import HEADS, OUTPUT, QUIET, WEIGHT, WRONG, K, Q, V, canvas, matrix
from tests.mha.test_figures import drawn_without_arguments

FILTER = "filter: invert(0.93) hue-rotate(180deg) saturate(1.25)"  # what the page does; tests/book sees to it
GROUND = {"light": np.ones(3), "dark": np.full(3, 0x12 / 255)}
LEAST = 4.5
# hue-rotate(180deg) and saturate(1.25) as matrices: the weights of Filter Effects Level 1
GREY = np.tile([0.213, 0.715, 0.072], (3, 1))
HALF_TURN, SATURATE = 2 * GREY - np.eye(3), GREY + 1.25 * (np.eye(3) - GREY)


def darkened(rgb):
    """A colour as dark mode shows it."""
    turned = np.clip((0.93 - 0.86 * np.asarray(rgb)) @ HALF_TURN.T, 0, 1)
    return np.clip(turned @ SATURATE.T, 0, 1)


def luminance(rgb):
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def contrast(one, other):
    """1 for equal lightness, 21 for black on white."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def over(rgba, mode):
    """An RGBA colour on the page, in this mode."""
    rgb = np.asarray(rgba[:3]) if mode == "light" else darkened(rgba[:3])
    return rgb * rgba[3] + GROUND[mode] * (1 - rgba[3])


def words(fig):
    """Each text of the figure with its colour and the colour that it mostly stands on, both RGBA."""
    FigureCanvasAgg(fig).draw()
    fig.set_layout_engine("none")
    fig.patch.set_alpha(0)
    texts = [text for text in fig.findobj(Text) if text.get_text().strip() and text.get_visible()]
    boxes = [text.get_window_extent() for text in texts]
    for ax in fig.axes:
        ax.patch.set_alpha(0)
    for text in texts:
        text.set_visible(False)
    fig.canvas.draw()
    sheet = np.asarray(fig.canvas.buffer_rgba())[::-1] / 255
    for text, box in zip(texts, boxes, strict=True):
        below = sheet[max(round(box.y0), 0) : round(box.y1), max(round(box.x0), 0) : round(box.x1)].reshape(-1, 4)
        if not len(below):
            continue  # the label of a tick beyond the axis
        found, counts = np.unique(below, axis=0, return_counts=True)
        ink = (*colors.to_rgb(text.get_color()), 1.0 if text.get_alpha() is None else text.get_alpha())
        yield text.get_text(), ink, found[counts.argmax()]


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("draw", list(drawn_without_arguments()))
def test_every_word_of_a_figure_is_read_by_lightness_alone(draw, mode, monkeypatch):
    monkeypatch.setattr(mha.language, "_chosen", "zh")
    read = [(text, contrast(over(ink, mode), over(ground, mode))) for text, ink, ground in words(draw())]
    assert len(read) > 1
    assert [(text, round(ratio, 2)) for text, ratio in read if ratio < LEAST] == []


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("colour", [Q, K, V, OUTPUT, WEIGHT, WRONG, QUIET, *HEADS])
def test_numbers_are_read_on_every_shade_of_a_cell(colour, mode):
    fig = canvas()
    matrix(fig.subplots(), np.linspace(0, 7, 8)[None], colour=colour, numbers="{:.0f}")
    read = [contrast(over(ink, mode), over(ground, mode)) for _, ink, ground in words(fig)]
    assert len(read) == 8
    assert min(read) >= LEAST
    assert max(read) > min(read), "a larger number is darker"


def test_a_word_too_pale_is_found():
    fig = canvas()
    matrix(fig.subplots(), np.ones((1, 2)), numbers=None)
    fig.axes[0].text(0.5, 0.5, "lost", color=WEIGHT)
    assert [contrast(over(ink, "light"), over(ground, "light")) for _, ink, ground in words(fig)] == [1]
