"""MyST as plain Markdown, for Jupyter, Colab and their like, which know neither boxes nor references.

A box becomes a quotation with a bold title, a folded one <details>; a reference becomes a link with the title
of its target, a citation author and year; a numbered equation keeps its number. What is not known is an error,
so that no reader ever meets raw MyST.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from docutils.nodes import make_id
from pybtex.database import BibliographyData
from pybtex.plugin import find_plugin

from book.languages import pick, select

Link = Callable[[str, str], str]  # (name of the chapter, anchor in it or "") → address

FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,}|:{3,})(?:\{(?P<name>[\w:-]+)\}[ \t]*(?P<title>[^\n]*)|[^\n]*)\n"
    r"(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.S | re.M,
)
OPTION = re.compile(r":(?P<key>[\w-]+):[ \t]*(?P<value>.*)\n?")
DISPLAY = re.compile(r"^\$\$\s*(?P<tex>.+?)\s*\$\$(?:[ \t]*\((?P<label>[^)\s]+)\))?", re.S | re.M)
LABEL = re.compile(r"^\((?P<label>[^)\s]+)\)=[ \t]*\n+", re.M)
HEADING = re.compile(r"#+ (?P<title>.+)")
ROLE_OR_CODE = re.compile(r"\{(?P<role>[\w:-]+)\}`(?P<body>[^`]+)`|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)", re.S)
TARGETED = re.compile(r"(?P<text>.*?)\s*<(?P<target>[^<>]+)>", re.S)
ARXIV = re.compile(r"arXiv:(\S+)")


class Target(NamedTuple):
    """A place that can be referred to: its chapter, its anchor there ("" for the whole page), its words."""

    chapter: str
    anchor: str
    title: str


class Book(NamedTuple):
    """What references need to know of the whole book in one language."""

    lang: str
    targets: dict[str, Target]
    equations: dict[str, int]  # label → number on its page
    bibliography: BibliographyData
    link: Link


def know(notebooks: Iterable[tuple[str, Any]], lang: str, bibliography: BibliographyData, link: Link) -> Book:
    """Collect every label of the named bilingual notebooks."""
    targets: dict[str, Target] = {}
    equations: dict[str, int] = {}
    for chapter, notebook in notebooks:
        number = 0
        for cell in select(notebook, lang)["cells"]:
            if cell["cell_type"] != "markdown":
                continue
            for found in DISPLAY.finditer(cell["source"]):
                if found["label"]:
                    number += 1
                    equations[found["label"]] = number
            for found in LABEL.finditer(cell["source"]):
                heading = HEADING.match(cell["source"], found.end())
                title = heading["title"].strip() if heading else found["label"]
                whole = bool(heading) and cell["source"].startswith("# ", found.end())
                targets[found["label"]] = Target(chapter, "" if whole else make_id(found["label"]), title)
    return Book(lang, targets, equations, bibliography, link)


def plain(text: str, book: Book, *, quoted: bool = False) -> str:
    """One Markdown cell without MyST. ValueError names a directive, role or label that is not known."""
    parts, done = [], 0
    for found in FENCE.finditer(text):
        parts += [_prose(text[done : found.start()], book, quoted), _fence(found, book, quoted)]
        done = found.end()
    return "".join([*parts, _prose(text[done:], book, quoted)])


def _fence(found: re.Match[str], book: Book, quoted: bool) -> str:
    """A fenced block: code as it is, a box as a quotation or folded."""
    name, title, body = found["name"], found["title"], found["body"]
    if name is None:
        return found[0]
    options: dict[str, str] = {}
    while option := OPTION.match(body):
        options[option["key"]] = option["value"]
        body = body[option.end() :]
    if name == "bibliography":
        return "\n\n".join(_papers(book))
    if name != "admonition":
        raise ValueError(f"directive {name!r} has no plain form; give it one in book/plain.py")
    if "dropdown" in options.get("class", "").split():
        inside = plain(body.strip(), book, quoted=quoted)
        return f"<details>\n<summary><b>{html.escape(title.strip())}</b></summary>\n\n{inside}\n\n</details>"
    inside = f"**{title.strip()}**\n\n{plain(body.strip(), book, quoted=True)}"
    return "\n".join(f"> {line}".rstrip() for line in inside.splitlines())


def _prose(text: str, book: Book, quoted: bool) -> str:
    def display(found: re.Match[str]) -> str:
        tex, label = found["tex"], found["label"]
        tex += rf" \tag{{{book.equations[label]}}}" if label else ""
        # in a quotation every line begins with ">", and what renders TeX would take that for "greater than"
        return f"$$ {' '.join(tex.split())} $$" if quoted else f"$$\n{tex}\n$$"

    def role(found: re.Match[str]) -> str:
        return _role(found["role"], found["body"], book) if found["role"] else found[0]

    return ROLE_OR_CODE.sub(role, DISPLAY.sub(display, LABEL.sub("", text)))


def _role(name: str, body: str, book: Book) -> str:
    if name.startswith("cite"):
        return _citation(name.partition(":")[2] or "p", [key.strip() for key in body.split(",")], book)
    words = TARGETED.fullmatch(body)
    label = words["target"] if words else body
    if name == "eq" and label in book.equations:
        return f"({book.equations[label]})"
    if name == "ref" and label in book.targets:
        target = book.targets[label]
        text = words["text"] if words else target.title
        return f"[{text}]({book.link(target.chapter, target.anchor)})"
    if name in ("eq", "ref"):
        raise ValueError(f"{{{name}}} refers to {label!r}, which no chapter defines")
    raise ValueError(f"role {name!r} has no plain form; give it one in book/plain.py")


def _citation(kind: str, keys: list[str], book: Book) -> str:
    """{cite:t}: Name et al. (2017); {cite:p}: (Name et al., 2017); in Chinese with its own brackets and commas."""
    left, right, comma, semicolon = ("（", "）", "，", "；") if book.lang == "zh" else (" (", ")", ", ", "; ")
    told = []
    for key in keys:
        if key not in book.bibliography.entries:
            raise ValueError(f"{{cite}} refers to {key!r}, which references.bib does not hold")
        entry = book.bibliography.entries[key]
        people = [" ".join(person.last_names) for person in entry.persons["author"]]
        names = people[0] + pick(" 等 |  et al.", book.lang) if len(people) > 2 else " & ".join(people)
        year = entry.fields["year"]
        words = f"{names}{left}{year}{right}" if kind == "t" else f"{names}{comma}{year}"
        told.append(f"[{words}]({_paper_address(entry) or book.link('bibliography', '')})")
    listed = semicolon.join(told)
    return listed if kind == "t" else f"{left.strip()}{listed}{right}"


def _papers(book: Book) -> Iterator[str]:
    """The bibliography, each paper a paragraph."""
    style = find_plugin("pybtex.style.formatting", "plain")()
    backend = find_plugin("pybtex.backends", "markdown")()
    for entry in style.format_bibliography(book.bibliography):
        text = " ".join(entry.text.render(backend).split())
        address = _paper_address(book.bibliography.entries[entry.key])
        yield f"{text} <{address}>" if address else text


def _paper_address(entry: Any) -> str | None:
    found = ARXIV.search(entry.fields.get("note", ""))
    return f"https://arxiv.org/abs/{found[1]}" if found else entry.fields.get("url")
