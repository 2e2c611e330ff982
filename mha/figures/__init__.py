"""Figures of the book, one module a chapter, and what they share: colours, type, matrices.

Every figure function returns a matplotlib Figure whose title is a sentence and whose label is its alt
text, both in the reader's language (`tell`). A figure shows one thing.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from cycler import cycler
from matplotlib import colors, font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from mha.figures import display

# Colour carries meaning, always the same (dark mode is this palette, inverted by the page)
Q, K, V = "#0072B2", "#B84E06", "#00805F"
OUTPUT = "#9A4C86"
WEIGHT = "#4B3F8F"  # attention weights: from the page's own ground (0) to this (1)
WRONG, RIGHT = "#B3261E", V
INK, QUIET, FAINT = "#1F2328", "#6B7280", "#D5D8DD"
HEADS = (
    "#A75B5C",
    "#3B8358",
    "#746AAB",
    "#9C672E",
    "#008388",
    "#985D8C",
    "#78792B",
    "#3C7AAB",
)  # one wheel, equal lightness
TINT = 0.55  # the deepest shade that black numbers are read on, by day and, inverted, by night

WIDTH = 5.6  # inches = 560 px on the page; a phone shows it at two thirds, so type starts at 9 pt


def head_colour(i: int) -> str:
    """The colour of head i, the same everywhere; always shown together with the number."""
    return HEADS[i % len(HEADS)]


def canvas(height: float = 3.0, width: float = WIDTH) -> Figure:
    """An empty figure of the book's width, in the book's style."""
    return Figure(figsize=(width, height), layout="constrained")


def tell(fig: Figure, title: str, alt: str) -> Figure:
    """Give the figure its sentence and its alt text (what it shows, for who cannot see it)."""
    fig.suptitle(title, x=0.012, ha="left", fontsize=12.5, color=INK)
    fig.set_label(alt)
    return fig


def ramp(colour: str = WEIGHT) -> colors.LinearSegmentedColormap:
    """From nothing at all (the page's ground) to `colour`."""
    return colors.LinearSegmentedColormap.from_list(
        "ramp", [(*colors.to_rgb(colour), 0.0), (*colors.to_rgb(colour), 1.0)]
    )


def matrix(
    ax: Axes,
    M: Tensor | np.ndarray,
    *,
    colour: str | Sequence[Sequence[str]] = WEIGHT,
    numbers: str | None = "{:.2f}",
    vmax: float | None = None,
    rows: Sequence[str] | None = None,
    cols: Sequence[str] | None = None,
    masked: np.ndarray | Tensor | None = None,
    title: str | None = None,
    shade: bool = True,
    fontsize: float = 10,
) -> None:
    """Draw a matrix as a table of cells: the stronger the colour, the larger |value|; numbers inside.

    M (rows, cols). colour: one for all cells, or one a cell. numbers: a format, or None for none.
    masked (rows, cols), True = not allowed: empty and hatched. rows, cols: labels.
    shade=False gives every cell the same light tint (for numbers that stand for places, not sizes).
    """
    values = np.asarray(M.detach().cpu() if isinstance(M, Tensor) else M, dtype=float)
    R, C = values.shape
    hidden = np.zeros((R, C), bool) if masked is None else np.broadcast_to(np.asarray(masked, bool), (R, C))
    top = vmax or (np.abs(values[~hidden]).max(initial=0.0) or 1.0)
    deepest = 1.0 if numbers is None else TINT
    for r in range(R):
        for c in range(C):
            tone = colour if isinstance(colour, str) else colour[r][c]
            strength = min(abs(values[r, c]) / top, 1.0) * deepest if shade else 0.18
            if hidden[r, c]:
                ax.add_patch(Rectangle((c, r), 1, 1, fc="none", ec=FAINT, lw=0.6, hatch="////"))
                continue
            ax.add_patch(Rectangle((c, r), 1, 1, fc=(*colors.to_rgb(tone), strength), ec="none"))
            ax.add_patch(Rectangle((c, r), 1, 1, fc="none", ec=FAINT, lw=0.6))
            if numbers is not None:
                text = numbers.format(values[r, c]).replace("-", "\N{MINUS SIGN}")
                ax.text(c + 0.5, r + 0.5, text, ha="center", va="center", color="black", fontsize=fontsize)
    ax.set(xlim=(-0.02, C + 0.02), ylim=(R + 0.02, -0.02), aspect="equal")
    ax.set_xticks(np.arange(C) + 0.5 if cols else [], cols or [])
    ax.set_yticks(np.arange(R) + 0.5 if rows else [], rows or [])
    ax.xaxis.tick_top()
    ax.tick_params(length=0, labelcolor=INK, labelsize=10)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title:
        ax.set_title(title, fontsize=11, color=INK, pad=6)


def blank(ax: Axes, xlim: tuple[float, float], ylim: tuple[float, float]) -> None:
    """Make `ax` a sheet to draw on: no axes, equal units, y downwards."""
    ax.set(xlim=xlim, ylim=(ylim[1], ylim[0]), aspect="equal")
    ax.axis("off")


def _style() -> None:
    font = Path(__file__).parent.parent / "fonts" / "MHASansSC-Regular.otf"
    font_manager.fontManager.addfont(str(font))
    name = font_manager.FontProperties(fname=str(font)).get_name()
    settings: Any = {
        "font.family": [name, "DejaVu Sans"],
        "font.size": 10.5,
        "mathtext.fontset": "custom",
        "mathtext.rm": name,
        "mathtext.it": "DejaVu Sans:italic",
        "mathtext.bf": name,
        "mathtext.cal": name,  # the default asks for a cursive font that few machines have
        "axes.unicode_minus": True,
        "axes.edgecolor": QUIET,
        "axes.labelcolor": INK,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=[Q, K, V, OUTPUT, WEIGHT]),
        "xtick.color": QUIET,
        "ytick.color": QUIET,
        "text.color": INK,
        "hatch.color": FAINT,
        "hatch.linewidth": 0.6,
        "lines.linewidth": 2,
        "figure.constrained_layout.w_pad": 0.06,
        "figure.constrained_layout.h_pad": 0.06,
    }
    mpl.rcParams.update(settings)


def _exact() -> None:
    """float32 in full on a GPU, too: TF32 keeps 10 bits of a fraction, and what chapters print would differ."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False


_style()
_exact()
display.show_in_notebooks()
