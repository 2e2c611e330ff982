"""The API pages: what the docstrings of `mha` say, in both languages.

A page asks for an entry with a fence, ```{mha} steps.project```; `expand` puts signature, text and example there.
English is the docstring itself. Chinese is its entry in api.zh.md, which names the English it was written for:
`python -m book.api` lists the entries that are missing or stale, and `expand` refuses them.
"""

import ast
import dataclasses
import hashlib
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import nbformat

ZH = Path(__file__).parent / "api.zh.md"
ENTRY = re.compile(r"^```\{mha\} (\S+)\n```$", re.M)
EXAMPLE = re.compile(r"^>>> .*?(?=\n\n(?!>>>)|\Z)", re.S | re.M)
WIDE = 76  # characters of code that fit the column


def expand(text: str, lang: str) -> str:
    """The text with each ```{mha} name``` replaced by its entry. LookupError where there is none in `lang`."""
    return ENTRY.sub(lambda found: entry(found[1], lang), text)


def entry(name: str, lang: str) -> str:
    """One entry as Markdown: anchor, heading, signature, text, example."""
    words, example = english(name)
    if lang == "zh":
        words = chinese(name)
    example = f"\n```pycon\n{example}\n```\n" if example else ""
    anchor = f"({label(name)})=\n### `{name.split('.')[-1]}`"
    return f"{anchor}\n\n```python\n{signature(name)}\n```\n\n{listed(words, arguments(name))}\n{example}"


def arguments(name: str) -> list[str]:
    """The names that a docstring may explain."""
    found = find(name)
    return list(inspect.signature(found).parameters) if callable(found) else []


def listed(words: str, names: list[str]) -> str:
    """The text with a line of its own for each argument that it explains, and for what is refused.

    >>> listed("Adds. x, y: numbers. z: a third. ValueError for words.", ["x", "y", "z"])
    'Adds.\\n\\n- `x`, `y`: numbers.\\n- `z`: a third.\\n\\nValueError for words.'
    """
    one = "|".join(sorted(map(re.escape, names), key=len, reverse=True)) or "(?!)"
    begins = rf"(?:\A|(?<=[.。;；])\s*|\n)((?:{one})(?:[,、]\s*(?:{one}))*)(: |：)"
    items = re.sub(begins, lambda found: "\n- " + re.sub(one, r"`\g<0>`", found[1]) + found[2], words)
    items = re.sub(r"(?<=[.。])\s*(?=(?:ValueError|TypeError|Source|出处)\b)", "\n\n", items)
    return re.sub(r"\s*\n- ", "\n\n- ", items.strip(), count=1)


def label(name: str) -> str:
    """The anchor of an entry, the same in both languages."""
    return "api-" + name.lower().replace(".", "-").replace("_", "-")


def english(name: str) -> tuple[str, str]:
    """The docstring without its example, and the example. LookupError if there is no docstring."""
    doc = inspect.getdoc(find(name))
    if not doc:
        raise LookupError(f"mha.{name} has no docstring")
    found = EXAMPLE.search(doc)
    return EXAMPLE.sub("", doc).strip(), found[0] if found else ""


def chinese(name: str) -> str:
    """The entry of api.zh.md. LookupError if there is none, or if the English has changed since."""
    digest, words = _chinese_entries().get(name, ("", ""))
    wanted = digest_of(name)
    if digest != wanted:
        state = f"was written for an older docstring ({digest})" if digest else "is missing"
        raise LookupError(f"{ZH.name}: the entry {name} {state}; write it as “## {name} {wanted}”")
    return words


def digest_of(name: str) -> str:
    return hashlib.sha256(english(name)[0].encode()).hexdigest()[:8]


def signature(name: str) -> str:
    """As it stands in the source, without the body: a class shows its constructor, a dataclass its fields."""
    found = find(name)
    shown = name.split(".")[-1]
    if inspect.isclass(found) and dataclasses.is_dataclass(found):
        lines = inspect.getsource(found).splitlines()
        return "\n".join([f"class {shown}:", *(line for line in lines if re.match(r"    \w+: ", line))])
    source = found.__init__ if inspect.isclass(found) else found
    node = ast.parse(textwrap.dedent(inspect.getsource(source))).body[0]
    assert isinstance(node, ast.FunctionDef)
    node.args.args = [argument for argument in node.args.args if argument.arg != "self"]
    arguments = re.sub(r"(: [^=,]+)=", r"\1 = ", ast.unparse(node.args))
    result = f" -> {ast.unparse(node.returns)}" if node.returns and not inspect.isclass(found) else ""
    if len(line := f"{shown}({arguments}){result}") <= WIDE:
        return line
    parts = re.split(r", (?![^\[\]]*\])", arguments)  # not inside dict[str, int]
    return "\n".join([f"{shown}(", *(f"    {part}," for part in parts), f"){result}"])


def find(name: str) -> Any:
    """What `mha.<name>` is. LookupError if it is nothing."""
    found: Any = importlib.import_module("mha")
    way = "mha"
    for part in name.split("."):
        way = f"{way}.{part}"
        if not hasattr(found, part):
            try:
                found = importlib.import_module(way)
            except ModuleNotFoundError:
                raise LookupError(f"there is no {way}") from None
        else:
            found = getattr(found, part)
    return found


def names(text: str) -> list[str]:
    """The entries that a text asks for, in order."""
    return ENTRY.findall(text)


def _chinese_entries() -> dict[str, tuple[str, str]]:
    pieces = re.split(r"^## (\S+) ([0-9a-f]{8})$", ZH.read_text(encoding="utf-8"), flags=re.M)[1:]
    return {
        name: (digest, words.strip())
        for name, digest, words in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
    }


def main() -> None:
    page = nbformat.read(Path(__file__).parent.parent / "chapters" / "api.ipynb", as_version=4)
    for name in dict.fromkeys(name for cell in page.cells for name in names(cell.source)):
        try:
            chinese(name)
        except LookupError as problem:
            print(f"{problem}\n{textwrap.indent(english(name)[0], '    ')}\n")


if __name__ == "__main__":
    main()
