"""Problem sets for a class, from course/: python -m book.course [--out _build/course].

A problem set holds both languages, solutions and tests once, in the format of nbgrader. For each language this writes
    zh/source/five-steps/five-steps.ipynb    for nbgrader: with solutions and hidden tests
    zh/release/five-steps/five-steps.ipynb   for the students, as nbgrader would make it
"""

import argparse
import copy
import re
from pathlib import Path
from typing import Any

from book.address import ROOT
from book.languages import LANGUAGES, select
from book.notebooks import read, write

COURSE = ROOT / "course"
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?^ *### END SOLUTION$", re.S | re.M)
HIDDEN = re.compile(r"\n*^ *### BEGIN HIDDEN TESTS\n.*?^ *### END HIDDEN TESTS$", re.S | re.M)


def release(notebook: Any) -> Any:
    """A copy without solutions and hidden tests. ValueError where a marker is left over, so that nothing leaks."""
    released = copy.deepcopy(notebook)
    for number, cell in enumerate(released["cells"]):
        if cell["cell_type"] == "code":
            text = SOLUTION.sub(r"\1# YOUR CODE HERE\n\1raise NotImplementedError()", cell["source"])
            cell["source"] = HIDDEN.sub("", text)
            if left := re.search("### (BEGIN|END).*", cell["source"]):
                raise ValueError(f"cell {number}: {left[0]!r} without its partner")
    return released


def build(out: Path) -> list[Path]:
    """Write every problem set in every language; the files."""
    written = []
    for path in sorted(COURSE.glob("*.ipynb")):
        for lang in LANGUAGES:
            source = select(read(path), lang)
            for kind, notebook in (("source", source), ("release", release(source))):
                file = out / lang / kind / path.stem / path.name
                file.parent.mkdir(parents=True, exist_ok=True)
                write(notebook, file)
                written.append(file)
    return written


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m book.course", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "course", help="the folder to write into")
    for path in build(parser.parse_args().out):
        print(f"course: {path}")


if __name__ == "__main__":
    main()
