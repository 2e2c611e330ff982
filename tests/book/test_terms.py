"""One term, one translation, everywhere: the glossary's."""

import re

import pytest

from book.api import expand
from book.check import CJK, FENCE
from book.languages import language_of
from book.notebooks import CHAPTERS, read

TAUGHT = sorted(path for path in CHAPTERS.glob("*.ipynb") if path.name[0].isdigit())
# Other translations in circulation, and the book's
ELSEWHERE = {
    "令牌": "词元", "遮罩": "掩码", "掩膜": "掩码", "蒙版": "掩码", "注意力得分": "注意力分数",
    "暂退": "随机失活", "丢弃法": "随机失活", "嵌入维度": "模型维度", "隐藏维度": "模型维度",
    "梯度弥散": "梯度消失", "键值对缓存": "键值缓存", "点乘注意力": "缩放点积注意力",
}  # fmt: skip


def rows() -> list[list[str]]:
    """The glossary: English, Chinese, symbol or code, where it is met."""
    table = next(cell.source for cell in read(CHAPTERS / "glossary.ipynb").cells if "| English" in cell.source)
    return [[field.strip() for field in line.strip("|").split("|")] for line in table.splitlines()[2:] if "|" in line]


def glossary() -> list[tuple[list[str], list[str]]]:
    """Each term: its English wordings and its Chinese ones."""
    return [(_wordings(row[0]), _wordings(row[1])) for row in rows()]


def _wordings(field: str) -> list[str]:
    return [word.strip().lower() for word in re.split(r"[/;；()（）]", field) if word.strip()]


def text(path, lang) -> str:
    """The chapter's prose in one language: without code blocks and the targets of links."""
    words = (cell for cell in read(path).cells if cell.cell_type == "markdown")
    cells = (cell.source for cell in words if language_of(cell) in (lang, None))
    prose = (FENCE.sub(lambda block: block.group() if block.group().startswith("```{") else "", c) for c in cells)
    return re.sub(r"\{\w+\}`[^`<]*`|<[^>]*>`|^\(\S+\)=$", "", "\n".join(prose), flags=re.M)


def test_the_glossary_holds_the_terms_of_the_book():
    english = {word for wordings, _ in glossary() for word in wordings}
    assert {"multi-head attention", "number of heads", "head width", "causal mask", "key-value cache"} <= english
    assert len(glossary()) >= 28
    for wordings, chinese in glossary():
        assert wordings
        assert any(re.search(CJK, word) or word == "softmax" for word in chinese), wordings


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_term_stands_in_the_section_that_the_glossary_names(row):
    number = re.fullmatch(r"\{ref\}`(\S+) <\S+>`", row[3])[1]
    path = CHAPTERS / "api.ipynb" if number == "mha" else next(CHAPTERS.glob(f"{number.replace('.', '-')}-*.ipynb"))
    zh, en = (expand(text(path, lang), lang).lower() for lang in ("zh", "en"))
    assert any(word in zh for word in _wordings(row[1]))
    stems = [word[:5] for word in re.findall(r"\w+", _wordings(row[0])[0])]  # "head merging": merging the heads
    assert [stem for stem in stems if stem not in en] == []


@pytest.mark.parametrize("path", TAUGHT, ids=lambda path: path.stem)
def test_a_chapter_uses_no_other_translation(path):
    zh = text(path, "zh").lower()
    used = {wrong: right for wrong, right in ELSEWHERE.items() if wrong in zh}
    assert used == {}


@pytest.mark.parametrize("path", TAUGHT, ids=lambda path: path.stem)
def test_a_term_in_one_language_stands_in_the_other_too(path):
    zh, en = (text(path, lang).lower() for lang in ("zh", "en"))
    missing = []
    for english, chinese in glossary():
        if max(map(len, chinese)) < 2 or english[0] in ("attention head", "linear projection"):
            continue
        said_en = any(re.search(rf"\b{re.escape(word)}s?\b", en) for word in english if len(word) > 3)
        said_zh = any(word in zh for word in chinese)
        if said_en and not said_zh:
            missing.append((english, chinese))
    assert missing == []
