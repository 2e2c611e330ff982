"""What the page runs: arithmetic.js and lab.js as one text."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def joined() -> str:
    """Both modules as one, with nothing imported and nothing exported."""
    drawing, imports = re.subn(r"^import \{[^}]*\} from \"\./arithmetic\.js\";\n", "", read("lab.js"), flags=re.M)
    if imports != 1:
        raise ValueError(f"lab.js must import from ./arithmetic.js once, got {imports} such lines")
    text = re.sub(r"^export (?!default)", "", read("arithmetic.js") + drawing, flags=re.M)
    text = re.sub(r"^\s*(//|/\*\*|\* ).*\n", "", text, flags=re.M)  # comments are for those who read the files
    return re.sub(r"^[ \n]+", "", text, flags=re.M)


def module() -> str:
    """The text as an ES module for anywidget: its default export is {render}."""
    return joined()


def css() -> str:
    return read("lab.css")
