"""The lab's files for a built page: one classic script, one style sheet, and the trained weights, sent when wanted.

A page opened from a folder may load no ES module and fetch no JSON, and a strict site allows no inline script:
so arithmetic.js and lab.js become one plain file, and trained.json another.
"""

import re
from pathlib import Path

LAB = Path(__file__).parent.parent / "mha" / "widgets" / "lab"
SCRIPT, STYLE, TRAINED = "lab-page.js", "lab.css", "lab-trained.js"
HOLDS = '<figure class="mha-lab">'  # a page with this in it loads the first two


def script(lab: Path = LAB) -> str:
    """The two modules as one script that brings every lab of its page to life, without comment lines and indents."""
    arithmetic = re.sub(r"^export ", "", (lab / "arithmetic.js").read_text(encoding="utf-8"), flags=re.M)
    drawing = re.sub(r"^(import|export) .*\n", "", (lab / "lab.js").read_text(encoding="utf-8"), flags=re.M)
    start = 'document.querySelectorAll("figure.mha-lab").forEach(bringToLife);'
    return _bare(f'(() => {{\n"use strict";\n{arithmetic}\n{drawing}\n{start}\n}})();\n')


def _bare(text: str) -> str:
    """Without lines that are comments, indents and empty lines (no text of the lab spans lines)."""
    return re.sub(r"^\s+", "", re.sub(r"^[ ]*(?://|/?\*).*\n", "", text, flags=re.M), flags=re.M)


def write(folder: Path, lab: Path = LAB) -> Path:
    """Write the three files into `folder`; the folder."""
    trained = (lab / "trained.json").read_text(encoding="utf-8").strip()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SCRIPT).write_text(script(lab), encoding="utf-8")
    (folder / STYLE).write_text(_bare((lab / "lab.css").read_text(encoding="utf-8")), encoding="utf-8")
    (folder / TRAINED).write_text(f"self.mhaLabTrained = {trained};\n", encoding="utf-8")
    return folder
