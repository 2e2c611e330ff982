"""What makes a chapter sound: both languages say the same, code is shared, outputs are fresh and hold for both.

`problems(notebook, name)` lists every fault with the notebook's name and the cell's number (from 0).
"""

import re
from collections.abc import Iterator
from typing import Any

from book.languages import LANGUAGES, language_of, tags
from book.notebooks import KEPT

TAGS = {*LANGUAGES, "solution", "hide-cell", "hide-input", "hide-output", "remove-input", "raises-exception", "timing"}
CJK = r"[\u3400-\u9fff]"
FENCE = re.compile(r"^(`{3,}|~{3,}|:{3,}).*?^\1\s*$", re.S | re.M)
# What both languages must share, in the same order
SHARED = {
    "heading levels": re.compile(r"^(#+) ", re.M),
    "labels": re.compile(r"^\((\S+)\)=\s*$", re.M),
    "equations": re.compile(r"^\$\$\s*\n?(.+?)\$\$(?: *\((\S+)\))?", re.S | re.M),
    "directives": re.compile(r"^(?:`{3,}|:{3,})\{([\w:-]+)\}", re.M),
    "box kinds": re.compile(r"^:class: (.+)$", re.M),
    "citations": re.compile(r"\{cite(?::\w)?\}`([^`]+)`"),
    "figures": re.compile(r"!\[[^\]]*\]\(([^)]+)\)"),
}
LINKS = re.compile(r"\{(ref|eq|doc|numref)\}`(?:[^`<]*<)?([^`>]+)>?`")
WORDS = re.compile(r"(?<![\w.'\"])[a-z]{2,} [a-z]{2,}(?![\w('\"=])")  # two plain words in a row
ERROR = re.compile(r"\b\w+(?:Error|Exception|Warning): .*")  # what Python says itself
ADDRESS = re.compile(r"0x[0-9a-f]{6,}|(?<![\w.])/(?:home|root|Users|tmp|usr|opt|work)/")


def problems(notebook: Any, name: str) -> list[str]:
    """Every fault of the notebook, as "name, cell 7: what is wrong". Empty for a sound chapter."""
    return [f"{name}, cell {number}: {fault}" for number, fault in (*_cells(notebook), *_pairs(notebook))]


def _cells(notebook: Any) -> Iterator[tuple[int, str]]:
    run = 0
    for number, cell in enumerate(notebook["cells"]):
        for tag in tags(cell):
            if tag not in TAGS:
                yield number, f"unknown tag {tag!r}; known are {', '.join(sorted(TAGS))}"
        for key in set(cell["metadata"]) - set(KEPT):
            yield number, f"stray metadata {key!r}; run make notebooks"
        if cell["cell_type"] != "code":
            if language_of(cell) is None and SHARED["heading levels"].search(FENCE.sub("", cell["source"])):
                yield number, "a heading without a language: tag the cell zh or en"
            yield from ((number, fault) for fault in _typography(cell))
            continue
        run += 1
        if language_of(cell):
            yield number, "a code cell is for both languages: drop its tag"
        if cell.get("execution_count") != run:
            yield number, f"stale execution count {cell.get('execution_count')}, expected {run}; run make notebooks"
        for output in cell["outputs"]:
            yield from ((number, fault) for fault in _output(output, tags(cell)))


def _output(output: Any, cell_tags: list[str]) -> Iterator[str]:
    if output["output_type"] == "error":
        if "raises-exception" not in cell_tags:
            yield f"an error was stored: {output['ename']}: {output['evalue']}"
        return
    if output.get("name") == "stderr":
        yield f"a stray message on stderr: {output['text'][:80]!r}"
        return
    data = output.get("data", {})
    for kind in data:
        if kind.startswith("application/vnd.jupyter.widget"):
            yield "stored widget state; run make notebooks"
    text = output.get("text") or data.get("text/plain", "")
    if re.search(CJK, text):
        yield f"printed Chinese: {text[:60]!r}; printed text is for both languages"
    if found := WORDS.search(ERROR.sub("", text)):
        yield f"printed words: {found.group()!r}; printed text is for both languages"
    if found := ADDRESS.search(text):
        yield f"printed something of one machine or one run: {found.group()!r}"


def _pairs(notebook: Any) -> Iterator[tuple[int, str]]:
    """Between two code cells the two languages say the same things in the same order."""
    first, group = 0, dict.fromkeys(LANGUAGES, "")
    order: list[str] = []
    for number, cell in enumerate([*notebook["cells"], {"cell_type": "code", "metadata": {}, "source": ""}]):
        lang = language_of(cell)
        if cell["cell_type"] == "markdown" and lang:
            first = number if not order else first
            order.append(lang)
            group[lang] += cell["source"] + "\n\n"
        elif cell["cell_type"] == "code":
            if order:
                yield from ((first, fault) for fault in _compare(group, order))
            group, order = dict.fromkeys(LANGUAGES, ""), []


def _compare(group: dict[str, str], order: list[str]) -> Iterator[str]:
    for lang in LANGUAGES:
        if lang not in order:
            yield f"the {lang} half is missing"
            return
    if order != [*LANGUAGES] * (len(order) // 2):
        yield f"languages must alternate zh, en; got {', '.join(order)}"
    for what, pattern in SHARED.items():
        zh, en = (pattern.findall(_visible(group[lang], what)) for lang in LANGUAGES)
        if zh != en:
            yield f"{what} differ: zh {zh}, en {en}"
    zh, en = (sorted(LINKS.findall(group[lang])) for lang in LANGUAGES)
    if zh != en:
        yield f"links differ: zh {zh}, en {en}"


def _visible(text: str, what: str) -> str:
    return FENCE.sub("", text) if what == "heading levels" else text


def _typography(cell: Any) -> Iterator[str]:
    """Chinese set as print sets it: full-width punctuation, a space beside Latin, digits and formulas."""
    if language_of(cell) == "en":
        if found := re.search(rf"{CJK}{{12,}}", cell["source"]):
            yield f"tagged en, but says {found.group()!r}"
        return
    if language_of(cell) != "zh":
        return
    text = re.sub(r"^(`{3,})(?!\{).*?^\1\s*$", "", cell["source"], flags=re.S | re.M)  # code blocks
    text = re.sub(r"^\s*:\w+:.*$|^\(\S+\)=\s*$|^\s*`{3,}.*$", "", text, flags=re.M)  # options, labels, fences
    text = re.sub(r"\$\$.*?\$\$(?: \(\S+\))?", "", text, flags=re.S)
    text = re.sub(r"\{[\w:]+\}`[^`]*`", "引", text)  # roles
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"`[^`]*`|\$[^$]+\$", "x", text).replace("**", "").replace("*", "")
    if not re.search(CJK, text) and len(text) > 200:
        yield "tagged zh, but holds no Chinese"
    if found := re.search(rf"{CJK}[A-Za-z0-9]|[A-Za-z0-9]{CJK}", text):
        around = text[max(0, found.start() - 8) : found.end() + 8]
        yield f"no space between Chinese and Latin: {around!r}"
    if found := re.search(rf"{CJK}[,;:?!]|{CJK}\.(?!\w)|{CJK}\(|\){CJK}", text):
        around = text[max(0, found.start() - 8) : found.end() + 8]
        yield f"half-width punctuation in Chinese: {around!r}"
