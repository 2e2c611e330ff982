"""The package keeps its promises: it loads fast, depends on nothing above it, and stays small enough to read."""

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import mha
from mha import attention

ROOT = Path(mha.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
READ = [path for path in SOURCES if path.relative_to(ROOT).parts[0] not in ("figures", "widgets")]


def test_importing_mha_loads_no_plotting_and_no_widgets():
    code = "import sys, mha; print(mha.__file__); print(*sorted({name.split('.')[0] for name in sys.modules}))"
    lines = subprocess.run([sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True)
    where, loaded = lines.stdout.splitlines()
    assert Path(where) == Path(mha.__file__)
    assert "torch" in loaded.split()  # the list is the one meant
    assert not {"matplotlib", "ipywidgets", "anywidget", "IPython"} & set(loaded.split())


def test_figures_compute_in_full_float32_and_mha_alone_leaves_your_settings():
    code = """if True:
    import torch
    def tf32():
        return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    import mha
    print(tf32())
    import mha.figures
    print(tf32(), torch.backends.cuda.matmul.allow_tf32)
    """
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["('high', True)", "('highest', False) False"]
    assert run.stderr == ""


def imported(source):
    """The top-level packages that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else node.module.split(".")[0]


def test_imports_are_found_wherever_they_stand():
    source = "import a.b\ndef f():\n    from book.c import d\n    import e as g, h\nfrom . import i"
    assert sorted(imported(source)) == [".", "a", "book", "e", "h"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_mha_never_imports_what_stands_above_it(path):
    assert not {"book", "course", "tests"} & set(imported(path.read_text(encoding="utf-8")))


def test_the_core_of_the_package_is_shorter_than_800_lines():
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in READ}
    assert {"attention.py", "steps.py", "masks.py"} <= lines.keys()
    assert sum(lines.values()) < 800, lines


def test_the_fused_path_is_shorter_than_40_lines():
    assert len(inspect.getsource(attention._fused).splitlines()) < 40


@pytest.mark.parametrize("name", mha.__all__)
def test_everything_offered_is_there_and_explained(name):
    assert inspect.getdoc(getattr(mha, name))


@pytest.mark.parametrize("name", ["attention", "cache", "convert", "masks", "reference", "steps"])
def test_every_example_in_a_docstring_prints_what_it_says(name):
    result = doctest.testmod(importlib.import_module(f"mha.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
