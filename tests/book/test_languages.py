"""One notebook, two languages."""

import copy

import nbformat
import pytest

from book.languages import language_of, pick, select


@pytest.fixture
def notebook():
    v4 = nbformat.v4
    return v4.new_notebook(
        cells=[
            v4.new_markdown_cell("# 分头", metadata={"tags": ["zh"]}),
            v4.new_markdown_cell("# Splitting", metadata={"tags": ["en"]}),
            v4.new_code_cell("1 + 1"),
            v4.new_markdown_cell("| a |"),
        ]
    )


def test_selecting_a_language_drops_the_other_and_keeps_what_both_share(notebook):
    assert [cell.source for cell in select(notebook, "zh").cells] == ["# 分头", "1 + 1", "| a |"]
    assert [cell.source for cell in select(notebook, "en").cells] == ["# Splitting", "1 + 1", "| a |"]


def test_selecting_leaves_the_bilingual_notebook_alone(notebook):
    before = copy.deepcopy(notebook)
    select(notebook, "zh").cells[0]["source"] = "changed"
    assert notebook == before


def test_an_unknown_language_is_refused_by_name(notebook):
    with pytest.raises(ValueError, match=r"lang must be one of zh, en, got 'fr'"):
        select(notebook, "fr")


def test_a_cell_without_a_language_tag_is_for_both(notebook):
    assert [language_of(cell) for cell in notebook.cells] == ["zh", "en", None, None]


def test_titles_are_picked_from_both_halves_or_shared():
    assert pick("各章 | Chapters", "zh") == "各章"
    assert pick("各章 | Chapters", "en") == "Chapters"
    assert pick("MHA", "zh") == "MHA"
