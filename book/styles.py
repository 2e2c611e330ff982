"""One stylesheet out of the theme's many: only the rules that the built pages use, fonts cut to their letters.

A rule stays when every name its selector asks for (tags, classes, ids) stands on some page or in some script
of the book. Whatever follows from that goes too: unused fonts, animations and custom properties.
"""

import base64
import io
import logging
import re
from collections.abc import Iterable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import tinycss2
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

logging.getLogger("fontTools").setLevel(logging.ERROR)  # it tells of every table
ICON_FONT = re.compile(r"Font Awesome|--fa-|--pst-icon|--pst-breadcrumb")  # the book draws its few icons itself
NEEDS_ONE = {"is", "where", "has", "matches", "-webkit-any"}
MIME = {".svg": "image/svg+xml", ".png": "image/png", ".woff2": "font/woff2"}


def names(page: str) -> set[str]:
    """What selectors may ask for on a page: tags, .classes and #ids."""
    found = {tag.lower() for tag in re.findall(r"<([a-zA-Z][\w-]*)", page)}
    for classes in re.findall(r'class\s*=\s*"([^"]*)"', page):
        found.update(f".{name}" for name in classes.split())
    found.update(f"#{name}" for name in re.findall(r'\bid\s*=\s*"([^"]*)"', page))
    return found


def script_names(script: str) -> set[str]:
    """A script may make any of its words a tag, a class or an id."""
    words = set(re.findall(r"[a-zA-Z][\w-]*", script))
    return {mark + word for word in words for mark in ("", ".", "#")}


# KaTeX's classes and the fonts they choose; everything else in a formula is in Main-Regular
KATEX = {
    "mathnormal": "Math-Italic", "mathit": "Main-Italic", "textit": "Main-Italic", "mathbf": "Main-Bold",
    "textbf": "Main-Bold", "boldsymbol": "Math-BoldItalic", "mathbb": "AMS-Regular", "textbb": "AMS-Regular",
    "amsrm": "AMS-Regular", "mathcal": "Caligraphic-Regular", "mathfrak": "Fraktur-Regular",
    "textfrak": "Fraktur-Regular",
    "mathscr": "Script-Regular", "mathtt": "Typewriter-Regular", "texttt": "Typewriter-Regular",
    "mathsf": "SansSerif-Regular", "textsf": "SansSerif-Regular", "small-op": "Size1-Regular", 
    "large-op": "Size2-Regular",
    "size1": "Size1-Regular", "size2": "Size2-Regular", "size3": "Size3-Regular", "size4": "Size4-Regular",
    "delim-size1": "Size1-Regular", "delim-size4": "Size4-Regular",
}  # fmt: skip


def formula_letters(page: str) -> dict[str, set[str]]:
    """The letters that formulas on the page show in each of KaTeX's fonts."""
    letters: dict[str, set[str]] = {}
    for start in re.finditer(r'<span class="katex-html"[^>]*>', page):
        fonts = ["Main-Regular"]
        for match in re.compile(r'<span(?: class="([^"]*)")?[^>]*>|(</span>)|<[^>]+>|([^<]+)').finditer(
            page, start.end()
        ):
            classes, closed, text = match.groups()
            if closed:
                fonts.pop()
            elif text:
                letters.setdefault(fonts[-1], set()).update(unescape(text))
            elif match[0].startswith("<span"):
                # sizes of type carry the same names as sizes of brackets: only those beside delimsizing choose a font
                chosen = [KATEX[c] for c in (classes or "").split() if c in KATEX and _chooses(c, classes)]
                fonts.append(chosen[-1] if chosen else fonts[-1])
            if not fonts:
                break
    return letters


def _chooses(name: str, classes: str) -> bool:
    return not re.fullmatch(r"size\d", name) or "delimsizing" in classes


def bundle(sheets: Iterable[Path], used: set[str], letters: dict[str, set[str]], words: Iterable[str] = ()) -> str:
    """The sheets' rules that `used` (see `names`) needs, in order, minified, in one text.

    letters: the characters that each font must show, by the end of its file's name. words: further texts that may
    read custom properties, such as scripts. Files that the rules name become part of the text.
    FileNotFoundError for one that is missing.
    """
    css = "\n".join(rule for sheet in sheets for rule in _rules(_parse(sheet), used, sheet.parent))
    css = _without_unused_properties(css, " ".join(words))
    return _embedded(_without_unused_animations(css), letters)


def _parse(sheet: Path) -> list[Any]:
    return tinycss2.parse_stylesheet(sheet.read_text(encoding="utf-8"), skip_comments=True, skip_whitespace=True)


def _rules(nodes: list[Any], used: set[str], folder: Path) -> list[str]:
    kept = []
    for node in nodes:
        if node.type == "qualified-rule":
            block = _declarations(node.content, folder)
            selectors = [s for s in _split(node.prelude) if _needed(s, used)]
            if block and selectors:
                kept.append(f"{','.join(map(_selector, selectors))}{{{block}}}")
        elif node.type == "at-rule" and node.at_keyword == "import":
            target = next(t.value for t in node.prelude if t.type in ("string", "url"))
            kept += _rules(_parse(folder / target), used, folder / Path(target).parent)
        elif node.type == "at-rule" and node.content is not None:
            head = f"@{node.at_keyword} {_squeeze(tinycss2.serialize(node.prelude))}".rstrip()
            if node.lower_at_keyword in ("media", "supports", "layer", "container"):
                inner = tinycss2.parse_rule_list(node.content, skip_comments=True, skip_whitespace=True)
                body = "".join(_rules(inner, used, folder))
            elif "keyframes" in node.lower_at_keyword:
                inner = tinycss2.parse_rule_list(node.content, skip_comments=True, skip_whitespace=True)
                frames = (r for r in inner if r.type == "qualified-rule")
                body = "".join(
                    f"{_squeeze(tinycss2.serialize(r.prelude))}{{{_declarations(r.content, folder)}}}" for r in frames
                )
            else:
                body = _declarations(node.content, folder)
            if body:
                kept.append(f"{head}{{{body}}}")
    return kept


def _declarations(content: list[Any], folder: Path) -> str:
    parts = []
    for item in tinycss2.parse_blocks_contents(content, skip_comments=True, skip_whitespace=True):
        if item.type == "declaration":
            value = _squeeze(tinycss2.serialize(_resolved(item.value, folder)))
            if item.lower_name in ("content", "font", "font-family") and ICON_FONT.search(value):
                return ""
            parts.append(f"{item.name}:{value}{'!important' if item.important else ''}")
    return ";".join(parts)


def _resolved(tokens: list[Any], folder: Path) -> list[Any]:
    """The same tokens with the addresses of files made absolute, for `_embedded` to find."""
    for token in tokens:
        if token.type == "url":  # in quotes, whatever it was in
            address = token.value
            if not address.startswith(("data:", "#")):
                address = f"file:{(folder / re.split('[?#]', unquote(address))[0]).resolve()}"
            token.representation = 'url("{}")'.format(address.replace('"', "'"))
        elif token.type == "function":
            _resolved(token.arguments, folder)
    return tokens


def _split(tokens: list[Any]) -> list[list[Any]]:
    parts: list[list[Any]] = [[]]
    for token in tokens:
        if token == "," and token.type == "literal":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _needed(selector: list[Any], used: set[str]) -> bool:
    """Whether every name that the selector asks for is used. What it excludes (:not) asks for nothing."""
    before: Any = None
    for token in selector:
        if token.type == "hash" and f"#{token.value}" not in used:
            return False
        if token.type == "ident":
            mark = before.value if before is not None and before.type == "literal" else ""
            if mark == "." and f".{token.value}" not in used:
                return False
            if mark not in (".", ":") and token.lower_value not in used | {"html", "body"}:
                return False
        one_of = token.type == "function" and token.lower_name in NEEDS_ONE
        if one_of and not any(_needed(part, used) for part in _split(token.arguments)):
            return False
        before = token
    return True


def _selector(tokens: list[Any]) -> str:
    return re.sub(r"\s*([>~])\s*", r"\1", _squeeze(tinycss2.serialize(tokens)))


def _squeeze(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"\s*,\s*", ",", re.sub(r"\s+", " ", text)).strip()


def _without_unused_properties(css: str, elsewhere: str) -> str:
    """Drop custom properties that nothing reads, until none is left."""
    while True:
        read = set(re.findall(r"var\(\s*(--[\w-]+)", css)) | set(re.findall(r"--[\w-]+", elsewhere))
        smaller = re.sub(
            r"(?<=[{;])(--[\w-]+):((?:[^;{}\"']|\"[^\"]*\"|'[^']*')*)(;|(?=\}))",
            lambda m, read=read: m.group() if m[1] in read else "",  # type: ignore[misc]
            css,
        )
        smaller = re.sub(r"[^{}\n]*\{\}\n?", "", smaller).replace(";}", "}")
        if smaller == css:
            return css
        css = smaller


def _without_unused_animations(css: str) -> str:
    played = " ".join(re.findall(r"animation(?:-name)?:([^;}]*)", css))
    return re.sub(
        r"@(?:-webkit-)?keyframes ([\w-]+)\{(?:[^{}]*\{[^{}]*\})*\}",
        lambda m: m.group() if m[1] in played else "",
        css,
    )


def _embedded(css: str, letters: dict[str, set[str]]) -> str:
    """Files become data: a page asks for one stylesheet, and maths is in its own letters at first paint."""

    def data(match: re.Match[str]) -> str:
        path = Path(match[1])
        content = _cut(path, _wanted(path, letters)) if path.suffix == ".woff2" else path.read_bytes()
        return f'url("data:{MIME[path.suffix]};base64,{base64.b64encode(content).decode()}")'

    css = re.sub(r',url\("file:[^"]+\.(?:woff|ttf|eot)"\) ?format\([^)]*\)', "", css)  # every browser reads woff2
    faces = r'@font-face\{[^}]*url\("file:([^"]+)"\)[^}]*\}\n?'
    css = re.sub(faces, lambda m: m[0] if _wanted(Path(m[1]), letters) else "", css)
    return re.sub(r'url\("file:([^"]+)"\)', data, css)


def _wanted(font: Path, letters: dict[str, set[str]]) -> str:
    return "".join(sorted(set().union(*(found for name, found in letters.items() if font.stem.endswith(f"_{name}")))))


def _cut(path: Path, letters: str) -> bytes:
    """The font with no other letters than these, as WOFF2."""
    font = TTFont(path, recalcTimestamp=False)
    cutter = Subsetter(Options(layout_closure=False, bidi_closure=False, hinting=False))
    cutter.populate(text=letters)
    cutter.subset(font)
    font.flavor = "woff2"
    out = io.BytesIO()
    font.save(out)
    return out.getvalue()
