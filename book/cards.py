"""The picture that a link to a chapter shows when it is shared: its title, its question and its place in the strip."""

import functools
import io
import re
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont

from book.strip import STOPS, shapes

SIZE = (1200, 630)
LEFT, RIGHT = 96, 1120
GROUND, INK, QUIET, FAINT = "#ffffff", "#1f2328", "#59606b", "#d5d8dd"
COLOURS = {
    "x": QUIET, "q": "#0072b2", "k": "#b84e06", "v": "#00805f", "o": "#9a4c86",
    "h0": "#a75b5c", "h1": "#3b8358", "h2": "#746aab", "h3": "#9c672e", "weight": "#4b3f8f",
}  # fmt: skip
# A piece of text that no line break may fall into: a word or one Chinese character, with its punctuation
OPEN, CLOSE, CJK = "“‘（《(", "，。！？；：、”’）》…", r"\u3400-\u9fff"
PIECE = re.compile(rf"[{OPEN}]*(?:[{CJK}]|[^\s{CJK}{OPEN}{CLOSE}]+|(?=[{CLOSE}]))[{CLOSE}]*\s*|\s+")


def card(book: str, title: str, question: str, lang: str, page: str = "") -> bytes:
    """The card as PNG, 1200 × 630. `page` is the chapter's name, "chapters/2-2-splitting", lit in the strip."""
    image = Image.new("RGB", SIZE, GROUND)
    draw = ImageDraw.Draw(image)
    for i, letter in enumerate("qkv"):
        draw.rectangle((14 * i, 0, 14 * i + 13, SIZE[1]), fill=COLOURS[letter])
    _write(draw, (LEFT, 64), book, 30, QUIET)
    size, lines = _fit(title, (68, 60, 52, 44), RIGHT - LEFT, 2)
    y = 128.0
    for line in lines:
        _write(draw, (LEFT, y), line, size, INK, bold=True)
        y += size * 1.3
    size, lines = _fit(question, (36, 32, 28), RIGHT - LEFT, 3)
    y += 22
    for line in lines:
        _write(draw, (LEFT, y), line, size, QUIET)
        y += size * 1.5
    _strip(draw, lang, page)
    stored = io.BytesIO()
    image.quantize(96, dither=Image.Dither.NONE).save(stored, "PNG", optimize=True)
    return stored.getvalue()


def icon(pixels: int, kind: str = "PNG") -> bytes:
    """The book's sign, three bars, as a square PNG or ICO."""
    scale = pixels * 4 // 32 * 32
    image = Image.new("RGB", (scale, scale), GROUND)
    draw = ImageDraw.Draw(image)
    for i, letter in enumerate("qkv"):
        corner = [round(v * scale / 32) for v in (4 + 9 * i, 6, 10 + 9 * i, 26)]
        draw.rounded_rectangle(corner, radius=scale // 20, fill=COLOURS[letter])
    stored = io.BytesIO()
    image.resize((pixels, pixels), Image.Resampling.LANCZOS).save(stored, kind)
    return stored.getvalue()


def _strip(draw: ImageDraw.ImageDraw, lang: str, page: str) -> None:
    draw.line((LEFT, 470, RIGHT, 470), fill=FAINT, width=2)
    step = (RIGHT - LEFT) / len(STOPS)
    for i, (shape, zh, en, _, target) in enumerate(STOPS):
        here = target == page
        left = LEFT + step * i + (step - 40 * 2.4) / 2
        for x, y, width, height, kind in shapes(shape):
            corner = (left + x * 2.4, 486 + y * 2.4, left + (x + width) * 2.4, 486 + (y + height) * 2.4)
            draw.rectangle(corner, fill=COLOURS[kind] if here or not page else _pale(COLOURS[kind]))
        name = re.sub(r"<sub>", "_", zh if lang == "zh" else en)
        name = re.sub(r"<[^>]+>", "", name)
        middle = LEFT + step * (i + 0.5) - _width(name, 20) / 2
        _write(draw, (middle, 552), name, 20, INK if here else QUIET, bold=here)
        if here:
            draw.rectangle((LEFT + step * i + 8, 590, LEFT + step * (i + 1) - 8, 595), fill=COLOURS["weight"])


def _pale(colour: str) -> str:
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) * 0.45):02x}" for part in parts)


@functools.cache
def _font(file: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(file, size)


@functools.cache
def _known() -> frozenset[int]:
    from fontTools.ttLib import TTFont

    return frozenset(TTFont(_ours())["cmap"].getBestCmap()) - {ord("√")}  # its own is too wide


def _ours() -> str:
    return str(Path(__file__).parent.parent / "mha" / "fonts" / "MHASansSC-Regular.otf")


def _face(text: str, size: int) -> ImageFont.FreeTypeFont:
    """The book's font, or matplotlib's where the text has a sign that the book's font lacks."""
    ours = all(ord(c) in _known() for c in text)
    return _font(_ours() if ours else f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf", size)


def _pieces(text: str) -> list[str]:
    return [found[0] for found in PIECE.finditer(text)]


def _width(text: str, size: int) -> float:
    return sum(_face(piece, size).getlength(piece) for piece in _pieces(text))


def _write(
    draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: int, fill: str, *, bold: bool = False
) -> None:
    x, baseline = at[0], at[1] + size
    for piece in _pieces(text):
        face = _face(piece, size)
        draw.text((x, baseline), piece, fill, face, anchor="ls", stroke_width=size / 60 if bold else 0)
        x += face.getlength(piece)


def _lines(text: str, size: int, width: float) -> list[str]:
    lines = [""]
    for piece in _pieces(text):
        if lines[-1] and _width((lines[-1] + piece).rstrip(), size) > width:
            lines.append("")
        lines[-1] += piece
    return [line.strip() for line in lines]


def _fit(text: str, sizes: tuple[int, ...], width: float, most: int) -> tuple[int, list[str]]:
    """The largest size at which the text takes at most so many lines, of about equal length; cut if none does."""
    size = next((size for size in sizes if len(_lines(text, size, width)) <= most), sizes[-1])
    lines = _lines(text, size, width)
    if len(lines) > most:
        return size, [*lines[: most - 1], lines[most - 1].rstrip("，。；：、,.;: ") + "…"]
    while width > 200 and len(_lines(text, size, width - 16)) == len(lines):
        width -= 16
    return size, _lines(text, size, width)
