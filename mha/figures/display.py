"""How a figure reaches the reader.

In a notebook it is a PNG. While the book is built (MHA_FRAMES names a folder) it is a file in that
folder and an <img> with the figure's alt text. MHA_STILL=1 makes live figures show their first frame.
"""

import base64
import hashlib
import html
import io
import os
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

SCALE = 2  # pixels in a file for each pixel on the page


def frames_folder() -> Path | None:
    """Where the book's build collects frames, or None outside a build."""
    folder = os.environ.get("MHA_FRAMES")
    return Path(folder) if folder else None


def size(fig: Figure) -> tuple[int, int]:
    """Width and height on the page, in CSS pixels."""
    width, height = fig.get_size_inches() * 100
    return round(width), round(height)


def png(fig: Figure) -> bytes:
    """The figure as PNG: the same bytes for the same figure, whenever it is drawn."""
    return _save(fig, "png", metadata={"Software": None})


def alt_text(fig: Figure) -> str:
    """What a figure says to those who cannot see it: its label (`figures.tell` sets it), else its title."""
    title = fig.get_suptitle() or " · ".join(filter(None, (ax.get_title() for ax in fig.axes)))
    return str(fig.get_label() or title)


def store(fig: Figure, folder: Path) -> str:
    """Write the figure into `folder` under the hash of its content; the file's name."""
    data = _save(fig, "webp", transparent=True, pil_kwargs={"lossless": True, "method": 4})
    name = hashlib.sha256(data).hexdigest()[:16] + ".webp"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return name


def image_tag(fig: Figure, name: str) -> str:
    """<img> for a stored figure; the build turns `frames:` into the way from the page to the folder."""
    width, height = size(fig)
    alt = html.escape(alt_text(fig), quote=True)
    return f'<img class="mha-figure" src="frames:{name}" width="{width}" height="{height}" alt="{alt}">'


def close(fig: Figure) -> None:
    """Free a figure that pyplot may hold, so that a notebook does not show it twice."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot:
        pyplot.close(fig)


def show_in_notebooks() -> None:
    """Teach the running IPython, if any, to show figures this way."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    formatters = shell.display_formatter.formatters
    formatters["image/png"].for_type(Figure, _png_bundle)
    if frames_folder():
        formatters["text/html"].for_type(Figure, _html)


def _png_bundle(fig: Figure) -> tuple[str, dict[str, int]]:
    width, height = size(fig)
    return base64.b64encode(png(fig)).decode(), {"width": width, "height": height}


def _html(fig: Figure) -> str | None:
    folder = frames_folder()
    return image_tag(fig, store(fig, folder)) if folder else None


def _save(fig: Figure, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    fig.savefig(buffer, format=kind, dpi=100 * SCALE, bbox_inches=None, **options)
    return buffer.getvalue()
