"""The lab's files for a built page: one classic script, one style sheet, and the trained weights, sent when wanted.

A page opened from a folder may load no ES module and fetch no JSON, and a strict site allows no inline script:
so arithmetic.js and lab.js become one plain file, and trained.json another.
"""

import runpy
from pathlib import Path

try:
    import minify
except ImportError:  # there is no wheel for Macs with Apple's processor: the page is heavier there, and works
    minify = None

LAB = Path(__file__).parent.parent / "mha" / "widgets" / "lab"
SCRIPT, STYLE, TRAINED = "lab-page.js", "lab.css", "lab-trained.js"
HOLDS = '<figure class="mha-lab">'  # a page with this in it loads the first two


def script() -> str:
    """The two modules as one script that brings every lab of its page to life."""
    source = runpy.run_path(str(LAB / "source.py"))  # importing it would import mha, and torch with it
    start = 'document.querySelectorAll("figure.mha-lab").forEach(bringToLife);'
    drawing = source["joined"]().replace("export default { render };", start)
    text = f'(() => {{\n"use strict";\n{drawing}}})();\n'
    return minify.string("application/javascript", text) if minify else text


def write(folder: Path) -> Path:
    """Write the three files into `folder`; the folder."""
    trained = (LAB / "trained.json").read_text(encoding="utf-8").strip()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SCRIPT).write_text(script(), encoding="utf-8")
    (folder / STYLE).write_text((LAB / "lab.css").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / TRAINED).write_text(f"self.mhaLabTrained = {trained};\n", encoding="utf-8")
    return folder
