"""Every chapter is sound in both languages, and every kind of fault is found, with notebook and cell named."""

import re
from pathlib import Path

import nbformat
import pytest
import yaml

from book.check import problems
from book.languages import LANGUAGES, language_of, select
from book.notebooks import CHAPTERS, ROOT, normalise, read, write

PATHS = sorted(CHAPTERS.glob("*.ipynb"))
TAUGHT = [path for path in PATHS if path.name[0].isdigit()]
EXERCISE = re.compile(r"^\*\*(\d)\.\*\* ", re.M)


def toc() -> list[str]:
    tree = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [tree["root"], *(chapter["file"] for part in tree["parts"] for chapter in part["chapters"])]


def text(path: Path, lang: str) -> str:
    return "\n\n".join(cell.source for cell in read(path).cells if language_of(cell) == lang)


def test_the_book_holds_the_notes_sections_in_their_order():
    numbered = [name.removeprefix("chapters/") for name in toc() if name.removeprefix("chapters/")[0].isdigit()]
    assert numbered == [
        "1-concept", "2-1-projection", "2-2-splitting", "2-3-attention", "2-4-merging", "2-5-output",
        "3-advantages", "4-code", "5-summary",
    ]  # fmt: skip


def test_every_notebook_is_in_the_table_of_contents_and_the_other_way_round():
    assert sorted(toc()) == [f"chapters/{path.stem}" for path in PATHS]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_chapter_has_no_fault(path):
    assert problems(read(path), path.name) == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_stored_notebook_is_normal_so_that_a_rerun_changes_no_byte(path, tmp_path):
    write(normalise(read(path)), tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_chapter_that_computes_first_imports_what_turns_tf32_off(path):
    code = [cell.source for cell in read(path).cells if cell.cell_type == "code"]
    assert code or path not in TAUGHT
    assert all(re.search(r"^from mha\.figures import ", source, re.M) for source in code[:1])


@pytest.mark.parametrize("path", TAUGHT, ids=lambda path: path.stem)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_chapter_asks_a_question_and_has_three_exercises_with_solutions(path, lang):
    words = text(path, lang)
    assert re.search(r"^# .+\n\n> .+[?？]", words, re.M), "the chapter opens with a question"
    assert EXERCISE.findall(words)[:3] == ["1", "2", "3"]
    solution = {"zh": "答案", "en": "Solution"}[lang]
    assert len(re.findall(rf"^`{{3,}}\{{admonition\}} {solution}", words, re.M)) >= 3
    assert {"zh": "## 现在你能", "en": "## Now you can"}[lang] in words


@pytest.mark.parametrize("path", TAUGHT, ids=lambda path: path.stem)
def test_a_chapter_has_a_live_figure_over_h_or_d_k(path):
    live = [cell.source for cell in read(path).cells if cell.cell_type == "code" and "explore(" in cell.source]
    assert any(re.search(r"\b(h|d_k)=\[", source) for source in live)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_one_language_of_a_chapter_is_a_valid_notebook(path, lang):
    chosen = select(read(path), lang)
    nbformat.validate(chosen)
    assert {language_of(cell) for cell in chosen.cells} <= {lang, None}


# --- the checker itself --------------------------------------------------------------------------


def cells(*parts):
    """A notebook of ("zh" | "en" | None, Markdown) and ("code", source, printed) cells."""
    v4, made, run = nbformat.v4, [], 0
    for kind, source, *printed in parts:
        if kind == "code":
            run += 1
            outputs = [v4.new_output("stream", text=out) for out in printed]
            made.append(v4.new_code_cell(source, execution_count=run, outputs=outputs))
        else:
            made.append(v4.new_markdown_cell(source, metadata={"tags": [kind]} if kind else {}))
    return v4.new_notebook(cells=made)


SOUND = (
    ("zh", "(a)=\n# 一\n\n见 {ref}`图 <b>` 与 $x$。\n\n$$\nx\n$$ (eq-x)"),
    ("en", "(a)=\n# One\n\nSee {ref}`figure <b>` and $x$.\n\n$$\nx\n$$ (eq-x)"),
    ("code", "print(1)", "1\n"),
    ("zh", "完。"),
    ("en", "Done."),
)


def test_a_sound_notebook_has_no_problem():
    assert problems(cells(*SOUND), "x.ipynb") == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({1: None}, "cell 0: the en half is missing"),
        ({3: None}, "cell 3: the zh half is missing"),
        ({1: ("en", "(a)=\n## One\n\n{ref}`figure <b>`\n\n$$\nx\n$$ (eq-x)")}, "cell 0: heading levels differ"),
        ({1: ("en", "(c)=\n# One\n\n{ref}`figure <b>`\n\n$$\nx\n$$ (eq-x)")}, "cell 0: labels differ"),
        ({1: ("en", "(a)=\n# One\n\n{ref}`figure <b>`\n\n$$\ny\n$$ (eq-x)")}, "cell 0: equations differ"),
        ({1: ("en", "(a)=\n# One\n\n{ref}`figure <d>`\n\n$$\nx\n$$ (eq-x)")}, "cell 0: links differ"),
        ({4: ("en", "Done {cite:p}`vaswani2017`.")}, "cell 3: citations differ"),
        ({4: ("en", "Done ![](a.png).")}, "cell 3: figures differ"),
        ({4: ("en", "```{admonition} Trap\n:class: trap\n```")}, "cell 3: directives differ"),
        ({4: ("fr", "Fini.")}, "cell 4: unknown tag 'fr'"),
        ({2: ("code", "print(1)", "数\n")}, "cell 2: printed Chinese"),
        ({2: ("code", "print(1)", "this is it\n")}, "cell 2: printed words"),
        ({2: ("code", "print(1)", "<object at 0x7f00aabbccdd>\n")}, "cell 2: printed something of one machine"),
        ({3: ("zh", "有3个头。")}, "cell 3: no space between Chinese and Latin"),
        ({3: ("zh", "完了, 好。")}, "cell 3: half-width punctuation"),
        ({4: ("en", "这是一段很长的中文放在了英文格子里。")}, "cell 4: tagged en, but says"),
    ],
)
def test_a_fault_is_found_and_named_with_notebook_and_cell(change, fault):
    parts = [change.get(i, part) for i, part in enumerate(SOUND)]
    found = problems(cells(*(part for part in parts if part)), "x.ipynb")
    assert any(f"x.ipynb, {fault}" in line for line in found), found


def test_a_stale_execution_count_is_found():
    notebook = cells(*SOUND)
    notebook.cells[2].execution_count = 7
    assert problems(notebook, "x.ipynb") == ["x.ipynb, cell 2: stale execution count 7, expected 1; run make notebooks"]


def test_a_message_on_stderr_an_error_and_stored_widget_state_are_found():
    notebook = cells(*SOUND)
    v4 = nbformat.v4
    notebook.cells[2].outputs = [
        v4.new_output("stream", name="stderr", text="UserWarning: x"),
        v4.new_output("error", ename="KeyError", evalue="'x'", traceback=[]),
        v4.new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}),
    ]
    found = "\n".join(problems(notebook, "x.ipynb"))
    assert "stray message on stderr" in found
    assert "an error was stored: KeyError" in found
    assert "stored widget state" in found


def test_a_tag_of_a_language_on_a_code_cell_is_found():
    notebook = cells(*SOUND)
    notebook.cells[2].metadata["tags"] = ["zh"]
    assert "x.ipynb, cell 2: a code cell is for both languages: drop its tag" in problems(notebook, "x.ipynb")
