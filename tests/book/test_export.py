"""Exported notebooks: one language, plain Markdown, living links, a first cell that helps where it cannot install."""

import importlib.metadata
import json
import re
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from types import SimpleNamespace

import nbformat
import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin
from pybtex.database import parse_string

import mha
from book import export, launch
from book.export import ROOT, export_language, first_cell, version, wheel
from book.languages import LANGUAGES, language_of, select
from book.notebooks import CHAPTERS, read
from book.plain import know, plain

SITE = "https://book.example/attention/"
NAMES = [path.stem for path in sorted(CHAPTERS.glob("*.ipynb"))]
VARIABLES = ("GITHUB_REPOSITORY", "GITHUB_SERVER_URL", "BOOK_REPOSITORY", "BOOK_URL", "BOOK_BRANCH", "BOOK_FOLDER")
PARSER = (
    MarkdownIt("commonmark")
    .use(myst_role_plugin)
    .use(myst_block_plugin)
    .use(colon_fence_plugin)
    .use(dollarmath_plugin, allow_labels=True)
)
MYST = {"myst_role", "myst_target", "myst_line_comment", "myst_block_break", "colon_fence", "math_block_label"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Every exported notebook by language and name, of a book that stands at SITE."""
    out = tmp_path_factory.mktemp("site")
    return {
        lang: {path.stem: nbformat.read(path, as_version=4) for path in export_language(out, lang, SITE)}
        for lang in LANGUAGES
    }


def prose(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def tokens(text):
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


# --- the notebooks -------------------------------------------------------------------------------


def test_every_chapter_is_exported_in_both_languages(exported):
    assert {lang: sorted(notebooks) for lang, notebooks in exported.items()} == dict.fromkeys(LANGUAGES, NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_an_exported_notebook_is_valid_and_holds_nothing_that_ran(exported, name, lang):
    notebook = exported[lang][name]
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    original = [cell.source for cell in read(CHAPTERS / f"{name}.ipynb").cells if cell.cell_type == "code"]
    assert [cell.source for cell in code][1:] == original


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_notebook_holds_its_own_language_alone(exported, name):
    source = read(CHAPTERS / f"{name}.ipynb")
    for lang, other in zip(LANGUAGES, reversed(LANGUAGES), strict=True):
        mine, theirs = (
            {line for cell in source.cells if language_of(cell) == of for line in cell.source.splitlines() if line}
            for of in (lang, other)
        )
        text = "\n".join(prose(exported[lang][name])).splitlines()
        assert not (theirs - mine) & {line.removeprefix("> ") for line in text}
        titles = [line for line in text if line.startswith("# ")]
        assert titles == [line for line in mine if line.startswith("# ")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_myst_is_left(exported, name, lang):
    for text in prose(exported[lang][name]):
        for token in tokens(text):
            assert token.type not in MYST, f"{token.type}: {token.content}"
            assert not (token.type == "fence" and token.info.startswith("{")), token.info


def test_the_judge_of_leftovers_knows_myst_when_it_sees_it():
    text = "(a)=\n# T\n\n{ref}`a`\n\n$$\nx\n$$ (eq)\n\n:::{note}\nx\n:::\n\n```{admonition} T\nx\n```"
    found = list(tokens(text))
    assert {"myst_target", "myst_role", "colon_fence", "math_block_label"} <= {token.type for token in found}
    assert any(token.type == "fence" and token.info.startswith("{") for token in found)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_of_a_chapter_is_lost_on_the_way(exported, name, lang):
    before = "\n".join(c.source for c in select(read(CHAPTERS / f"{name}.ipynb"), lang).cells if c.cell_type != "code")
    after = "\n".join(prose(exported[lang][name]))
    assert after.count("<details>") == after.count("</details>") == len(re.findall(r"^:class:.*dropdown", before, re.M))
    assert after.count(r"\tag{") == len(re.findall(r"^\$\$ \(\S+\)", before, re.M))
    assert len(re.findall(r"^#+ ", after, re.M)) == len(re.findall(r"^#+ ", before, re.M))
    words = re.compile(r"[\u3400-\u9fff]" if lang == "zh" else r"[A-Za-z]{4,}")
    bare = re.sub(r"\{[\w:]+\}`[^`]*`|^\(\S+\)=|^\$\$ \(.*\)|^:\w+:.*|^`{3,}\{[\w]+\}", "", before, flags=re.M)
    lost = [word for word in words.findall(bare) if word not in after]
    assert lost == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_link_into_the_book_leads_to_a_label_of_that_page(exported, lang):
    labels = {
        name: set(re.findall(r"^\((\S+)\)=", "\n".join(c.source for c in read(CHAPTERS / f"{name}.ipynb").cells), re.M))
        for name in NAMES
    }
    seen = 0
    for notebook in exported[lang].values():
        for address in re.findall(rf"\]\(({re.escape(SITE)}[^)\s]*)\)", "\n".join(prose(notebook))):
            page, _, anchor = address.removeprefix(f"{SITE}{lang}/chapters/").partition("#")
            assert page.removesuffix(".html") in NAMES, address
            assert not anchor or anchor in labels[page.removesuffix(".html")], address
            seen += 1
    assert seen > 60


@pytest.mark.parametrize("lang", LANGUAGES)
def test_without_a_site_links_lead_from_notebook_to_notebook(tmp_path, lang):
    seen = 0
    for path in export_language(tmp_path, lang, None):
        for address in re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose(nbformat.read(path, as_version=4)))):
            if not address.startswith("https://"):
                assert (path.parent / address).exists(), address
                seen += 1
    assert seen > 60


def test_a_notebook_outlives_neither_its_chapter_nor_its_wheel(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "wheel", lambda folder: folder / "mha-1-py3-none-any.whl")
    (tmp_path / "wheels").mkdir()
    (tmp_path / "zh" / "notebooks").mkdir(parents=True)
    old = [tmp_path / "zh" / "notebooks" / "6-gone.ipynb", tmp_path / "wheels" / "mha-0-py3-none-any.whl"]
    for path in old:
        path.touch()
    export.export(tmp_path)
    assert [path.exists() for path in old] == [False, False]


# --- MyST to Markdown ----------------------------------------------------------------------------

BIB = """@article{one, author={Lee, Ada}, title={T}, year={2019}, note={arXiv:1234.5}}
@article{three, author={Xu, A and Du, B and Li, C}, title={T}, year={2020}, note={arXiv:6.7}}"""


def book(lang="en", *sources):
    cells = [nbformat.v4.new_markdown_cell(source, metadata={"tags": [lang]}) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    return know([("ch", notebook)], lang, parse_string(BIB, "bibtex"), lambda page, anchor: f"{page}.html#{anchor}")


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("```{admonition} Trap\n:class: trap\nOne.\n\nTwo.\n```", "> **Trap**\n>\n> One.\n>\n> Two."),
        (
            "````{admonition} Try\n```python\n{ref}`x`\n```\n````",
            "> **Try**\n>\n> ```python\n> {ref}`x`\n> ```",
        ),
        (
            "```{admonition} Proof\n:class: proof\n\n$$\na\n= b\n$$ (eq-a)\n```",
            "> **Proof**\n>\n> $$ a = b \\tag{1} $$",
        ),
        (
            "```{admonition} Solution\n:class: dropdown\nYes.\n```",
            "<details>\n<summary><b>Solution</b></summary>\n\nYes.\n\n</details>",
        ),
        ("$$\na\n= b\n$$ (eq-b)\n\nSee {eq}`eq-b`.", "$$\na\n= b \\tag{2}\n$$\n\nSee (2)."),
        ("(lab)=\n## T $x$\n\nGo {ref}`on <lab>` or to {ref}`lab`.", None),
        ("{cite:t}`three` and {cite:p}`one,three`", "[Xu et al. (2020)](https://arxiv.org/abs/6.7) and "
         "([Lee, 2019](https://arxiv.org/abs/1234.5); [Xu et al., 2020](https://arxiv.org/abs/6.7))"),
        ("`{ref}` and ``{eq}`x` `` stay", "`{ref}` and ``{eq}`x` `` stay"),
        ("```python\n(lab)=\n$$\n```", "```python\n(lab)=\n$$\n```"),
    ],
)  # fmt: skip
def test_myst_reads_well_as_markdown(myst, markdown):
    known = book("en", "(lab)=\n## T $x$", "$$\na\n$$ (eq-a)\n\n$$\na\n$$ (eq-b)")
    expected = markdown or "## T $x$\n\nGo [on](ch.html#lab) or to [T $x$](ch.html#lab)."
    assert plain(myst, known) == expected


def test_a_chinese_citation_has_chinese_brackets():
    assert plain("{cite:t}`three`、{cite:p}`one`", book("zh")) == (
        "[Xu 等（2020）](https://arxiv.org/abs/6.7)、（[Lee，2019](https://arxiv.org/abs/1234.5)）"
    )


@pytest.mark.parametrize(
    ("myst", "named"),
    [
        ("```{mermaid}\nx\n```", "directive 'mermaid'"),
        ("{kbd}`x`", "role 'kbd'"),
        ("{ref}`nowhere`", "'nowhere', which no chapter defines"),
        ("{eq}`nowhere`", "'nowhere', which no chapter defines"),
        ("{cite:t}`nobody`", "'nobody', which references.bib does not hold"),
    ],
)
def test_what_has_no_plain_form_is_refused_by_name(myst, named):
    with pytest.raises(ValueError, match=re.escape(named)):
        plain(myst, book())


# --- the first cell ------------------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Run a first cell on a made-up machine: what is installed there, and what pip was asked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MHA_WHEEL", raising=False)
    monkeypatch.setenv("MHA_LANG", "en")
    monkeypatch.setattr(mha.language, "_chosen", None)
    modules = dict(sys.modules)
    world = SimpleNamespace(
        has={"torch": "2.11", "numpy": "2.1", "matplotlib": "3.10", "ipywidgets": "7.7.1"},
        asked=[], refuses="", editable=False, needs=["torch>=2.4", "numpy", "matplotlib>=3.6", "ipywidgets>=7.7"],
        run=lambda code: exec(compile(code, "first cell", "exec"), {}),
    )  # fmt: skip

    def installed(name):
        if name not in world.has:
            raise importlib.metadata.PackageNotFoundError(name)
        return world.has[name]

    def pip(command, **_):
        world.asked.append([word for word in command[command.index("install") + 1 :] if word[:6] != "--time"])
        world.asked[-1] = [word for word in world.asked[-1] if word not in ("-q", "--disable-pip-version-check")]
        world.asked[-1].remove("--retries=1")
        found = re.search(r"mha-(.+?)-py3", world.asked[-1][-1])
        world.has.update({"mha": found[1].replace("%2B", "+")} if found else {})
        return SimpleNamespace(returncode=bool(world.refuses), stderr=world.refuses)

    record = SimpleNamespace(read_text=lambda _: '{"dir_info": {"editable": true}}' if world.editable else None)
    monkeypatch.setattr(importlib.metadata, "version", installed)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: world.needs)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: record)
    monkeypatch.setattr(subprocess, "run", pip)
    yield world
    sys.modules.update(modules)  # the cell may have dropped an older mha


EXACT = "0.1.0+gabc"
ADDRESS = f"{SITE}wheels/mha-0.1.0%2Bgabc-py3-none-any.whl"


def test_the_first_cell_installs_the_books_own_wheel_where_there_is_none(machine, capsys):
    machine.run(first_cell("zh", EXACT, SITE, "cover"))
    assert machine.asked == [["--no-deps", ADDRESS]]
    assert capsys.readouterr().out == f"mha {EXACT} ✓\n"


def test_the_first_cell_sets_the_language_of_figures(machine):
    machine.run(first_cell("zh", EXACT, SITE, "cover"))
    assert sys.modules["mha"].say("中", "en") == "中"


def test_the_first_cell_does_nothing_where_this_mha_is_installed(machine):
    machine.has["mha"] = EXACT
    machine.run(first_cell("en", EXACT, SITE, "cover"))
    assert machine.asked == []


def test_the_first_cell_replaces_another_version_and_forgets_what_it_had_loaded(machine):
    machine.has["mha"] = "0.1.0+gold"
    before = sys.modules["mha"]
    machine.run(first_cell("en", EXACT, SITE, "cover"))
    assert machine.asked == [["--no-deps", ADDRESS]]
    assert sys.modules["mha"] is not before


def test_the_first_cell_leaves_an_editable_mha_alone(machine):
    machine.has["mha"], machine.editable = "0.1.0", True
    machine.run(first_cell("en", EXACT, SITE, "cover"))
    assert machine.asked == []


def test_the_first_cell_adds_only_what_is_missing_of_mhas_needs(machine):
    machine.needs += ["anywidget>=0.9", 'pytest; extra == "test"']
    machine.run(first_cell("en", EXACT, SITE, "cover"))
    assert machine.asked == [["--no-deps", ADDRESS], ["anywidget>=0.9"]]


@pytest.mark.parametrize("folder", [".", "../wheels", "../../wheels"])
def test_a_wheel_beside_the_notebook_is_taken_before_the_network(machine, tmp_path, monkeypatch, folder):
    here = tmp_path / "zh" / "notebooks"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    (here / folder).mkdir(exist_ok=True)
    (here / folder / f"mha-{EXACT}-py3-none-any.whl").touch()
    machine.run(first_cell("en", EXACT, SITE, "cover"))
    assert machine.asked == [["--no-deps", f"{folder}/mha-{EXACT}-py3-none-any.whl"]]


def test_a_named_wheel_comes_before_all_others(machine, monkeypatch):
    monkeypatch.setenv("MHA_WHEEL", f"/elsewhere/mha-{EXACT}-py3-none-any.whl")
    machine.run(first_cell("en", EXACT, SITE, "cover"))
    assert machine.asked == [["--no-deps", f"/elsewhere/mha-{EXACT}-py3-none-any.whl"]]


@pytest.mark.parametrize(("lang", "words"), [("zh", "没装上。可以这样办"), ("en", "The installation failed.")])
def test_a_failed_installation_says_what_to_do_in_the_readers_language(machine, lang, words):
    machine.refuses = "ERROR: Could not find a version"
    with pytest.raises(RuntimeError) as failure:
        machine.run(first_cell(lang, EXACT, SITE, "2-2-splitting"))
    for part in (words, ADDRESS, f"{SITE}{lang}/chapters/2-2-splitting.html", "Kaggle", machine.refuses):
        assert part in str(failure.value)


@pytest.mark.parametrize(("lang", "words"), [("zh", "这里没有 PyTorch"), ("en", "PyTorch is not here")])
def test_without_torch_nothing_is_fetched_and_the_reader_is_told(machine, lang, words):
    del machine.has["torch"]
    with pytest.raises(RuntimeError, match=words):
        machine.run(first_cell(lang, EXACT, SITE, "cover"))
    assert machine.asked == []


def test_an_old_python_is_told_before_anything_is_fetched(machine, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    with pytest.raises(RuntimeError, match=r"needs Python 3.10 or newer.* Python \d"):
        machine.run(first_cell("en", EXACT, SITE, "cover"))
    assert machine.asked == []


def test_the_first_cell_can_be_read_by_a_python_too_old_for_mha():
    import ast

    for lang in LANGUAGES:
        assert ast.parse(first_cell(lang, EXACT, SITE, "cover"), feature_version=(3, 7)).body


def test_the_first_cell_is_folded_to_its_first_line_which_says_what_it_does(exported):
    for lang, word in (("zh", "准备"), ("en", "Set up")):
        cell = exported[lang]["cover"].cells[0]
        assert cell.metadata == {"cellView": "form", "jupyter": {"source_hidden": True}, "_kg_hide-input": True}
        assert cell.source.startswith(f"# @title {word}")


# --- the wheel -----------------------------------------------------------------------------------


def test_the_wheel_is_this_very_mha_and_says_so(tmp_path):
    path = wheel(tmp_path)
    assert path.name == f"mha-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(path) as files:
        names = files.namelist()
        for source in (ROOT / "mha").rglob("*"):
            if source.is_file() and "__pycache__" not in source.parts:
                name = source.relative_to(ROOT).as_posix()
                assert name in names, f"{name} is missing: see package-data in pyproject.toml"
                assert files.read(name) == source.read_bytes()
        metadata = next(name for name in names if name.endswith("METADATA"))
        assert f"\nVersion: {version()}\n" in files.read(metadata).decode()


def test_the_wheels_version_follows_what_is_in_it(tmp_path):
    files = {"pyproject.toml": "", "mha/__init__.py": '__version__ = "1.2"\n', "mha/x.py": "1"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = version(tmp_path)
    (tmp_path / "mha" / "__pycache__").mkdir()
    (tmp_path / "mha" / "__pycache__" / "x.pyc").touch()
    assert version(tmp_path) == before
    assert re.fullmatch(r"1\.2\+g[0-9a-f]{10}", before)
    (tmp_path / "mha" / "x.py").write_text("2")
    assert version(tmp_path) != before


# --- the buttons ---------------------------------------------------------------------------------


class Links(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found += [dict(attrs)] if tag == "a" else []


@pytest.fixture
def world(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_page_without_a_repository_offers_the_download_alone(world):
    world.setattr("book.address._config", lambda _: {})
    (download,) = Links(launch.row("chapters/cover", "zh")).found
    assert download == {"href": "../notebooks/cover.ipynb", "download": None, "aria-label": "下载笔记本"}


@pytest.mark.parametrize(
    ("lang", "labels"),
    [
        ("zh", ["在 PAI-DSW 中打开", "在 Colab 中打开", "在 Kaggle 中打开", "下载笔记本"]),
        ("en", ["Open in Colab", "Open in Kaggle", "Open in PAI-DSW", "Download the notebook"]),
    ],
)
def test_a_forks_buttons_open_the_forks_notebook_in_the_pages_language(world, lang, labels):
    world.setenv("GITHUB_REPOSITORY", "forker/book")
    found = Links(launch.row("chapters/2-2-splitting", lang)).found
    assert [link["aria-label"] for link in found] == labels
    for link in found[:-1]:
        assert link["href"].endswith(f"forker/book/blob/gh-pages/{lang}/notebooks/2-2-splitting.ipynb")


def test_exported_notebooks_are_the_same_bytes_whenever_they_are_written(tmp_path):
    first, second = (
        [path.read_bytes() for path in export_language(tmp_path / str(run), "en", SITE)] for run in range(2)
    )
    assert first == second
    assert all("id" not in cell for cell in json.loads(first[0])["cells"])
