"""The fonts of the PDF, as @font-face rules.

Latin is bundled (Source Serif, Sans and Code, see fonts/OFL.txt); signs come with matplotlib. Chinese is Noto's,
installed on the machine: the characters that the book uses are taken out and their curves turned into TrueType
ones, because Chromium embeds other outlines as drawings (Type 3), which viewers show coarsely.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

import matplotlib
from fontTools.pens.cu2quPen import Cu2QuPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont, newTable

BUNDLED = Path(__file__).parent / "fonts"
SIGNS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
ERROR = 1.0  # how far, in thousandths of the type size, a curve may move
# In Chinese, quotation marks, dashes and ellipses are full width: Chinese fonts draw them
NOT_CHINESE = "U+0-2013, U+2015-2017, U+201E-2025, U+2027-2FFF"
BESIDE_CHINESE = "96%"  # Latin letters look larger than Chinese ones of the same size
# family, weight, style, file
LATIN = (
    ("Book Serif", 400, "normal", BUNDLED / "source-serif-4-latin-400-normal.woff2"),
    ("Book Serif", 400, "italic", BUNDLED / "source-serif-4-latin-400-italic.woff2"),
    ("Book Serif", 600, "normal", BUNDLED / "source-serif-4-latin-600-normal.woff2"),
    ("Book Serif More", 400, "normal", BUNDLED / "source-serif-4-latin-ext-400-normal.woff2"),
    ("Book Sans", 400, "normal", BUNDLED / "source-sans-3-latin-400-normal.woff2"),
    ("Book Sans", 600, "normal", BUNDLED / "source-sans-3-latin-600-normal.woff2"),
    ("Book Code", 400, "normal", BUNDLED / "source-code-pro-latin-400-normal.woff2"),
    ("Book Code", 600, "normal", BUNDLED / "source-code-pro-latin-600-normal.woff2"),
    ("Book Code More", 400, "normal", BUNDLED / "source-code-pro-greek-400-normal.woff2"),
    ("Book Code Signs", 400, "normal", SIGNS / "DejaVuSansMono.ttf"),
    ("Book Signs", 400, "normal", SIGNS / "DejaVuSans.ttf"),
)
CHINESE = (
    ("Book Song", 400, "Noto Serif CJK SC", "Regular"),
    ("Book Hei", 400, "Noto Sans CJK SC", "Regular"),
    ("Book Hei", 700, "Noto Sans CJK SC", "Bold"),
)


def css(lang: str, text: str, folder: Path) -> str:
    """The rules, for a book in `lang` made of `text`; Chinese fonts are made in `folder`, where they are kept."""
    rules = []
    for family, weight, style, file in LATIN:
        beside = lang == "zh" and family in ("Book Serif", "Book Sans")
        only = f" unicode-range: {NOT_CHINESE}; size-adjust: {BESIDE_CHINESE};" if beside else ""
        rules.append(_rule(family, weight, style, file, only))
    for family, weight, name, style in CHINESE:
        if found := _installed(name, style):
            rules.append(_rule(family, weight, "normal", _true_type(*found, text, folder)))
    return "\n".join(rules)


def _rule(family: str, weight: int, style: str, file: Path, only: str = "") -> str:
    return (
        f'@font-face {{ font-family: "{family}"; font-weight: {weight}; font-style: {style}; '
        f'src: url("{file.as_uri()}");{only} }}'
    )


def _installed(name: str, style: str) -> tuple[Path, int] | None:
    """The file and the face within it of an installed font, None where it is not installed."""
    if not shutil.which("fc-match"):
        return None
    asked = ["fc-match", "-f", "%{family}|%{style}|%{file}|%{index}", f"{name}:style={style}"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("|")
    if name not in answer[0] or style not in answer[1]:
        return None
    return Path(answer[2]), int(answer[3])


def _true_type(source: Path, face: int, text: str, folder: Path) -> Path:
    """The characters of `text` from one face of `source`, as a TrueType font in `folder`."""
    characters = "".join(sorted(set(text)))
    key = hashlib.sha256(f"{source.name} {face} {source.stat().st_size} {characters}".encode()).hexdigest()[:16]
    target = folder / f"{source.stem}-{key}.ttf"
    if target.exists():
        return target
    font = TTFont(source, fontNumber=face, recalcTimestamp=False)
    subsetter = Subsetter(Options(hinting=False, desubroutinize=True, layout_features=["*"], notdef_outline=True))
    subsetter.populate(text=characters)
    subsetter.subset(font)
    if "CFF " in font:
        _bend(font)
    folder.mkdir(parents=True, exist_ok=True)
    font.save(target)
    return target


def _bend(font: TTFont) -> None:
    """Replace a font's cubic outlines by quadratic ones."""
    glyphs, drawn = font.getGlyphSet(), {}
    for name in font.getGlyphOrder():
        pen = TTGlyphPen(glyphs)
        glyphs[name].draw(Cu2QuPen(pen, ERROR, reverse_direction=True))
        drawn[name] = pen.glyph()
    font["loca"], font["glyf"] = newTable("loca"), newTable("glyf")
    font["glyf"].glyphOrder, font["glyf"].glyphs = font.getGlyphOrder(), drawn
    for cubic in ("CFF ", "VORG"):
        if cubic in font:
            del font[cubic]
    maximum = font["maxp"]
    maximum.tableVersion = 0x00010000
    for field in ("maxPoints", "maxContours", "maxCompositePoints", "maxCompositeContours", "maxTwilightPoints",
                  "maxStorage", "maxFunctionDefs", "maxInstructionDefs", "maxStackElements",
                  "maxSizeOfInstructions", "maxComponentElements", "maxComponentDepth"):  # fmt: skip
        setattr(maximum, field, 0)  # what counts is recalculated on saving
    maximum.maxZones = 1
    font["post"].formatType = 3.0
    font.sfntVersion = "\0\1\0\0"
