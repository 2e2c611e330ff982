"""`make test-mha` runs the package's tests on any Python with little beside it."""

import sys
from pathlib import Path

import pytest

from book.notebooks import ROOT
from tests.mha.test_package import imported

INSTALLED = {"mha", "tests", "torch", "numpy", "matplotlib", "ipywidgets", "IPython", "PIL", "pytest", "hypothesis"}


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "mha").glob("*.py")), ids=lambda path: path.stem)
def test_the_packages_tests_need_only_what_comes_with_the_package_and_pytest(path: Path):
    source = path.read_text(encoding="utf-8")
    assert set(imported(source)) - set(sys.stdlib_module_names) <= INSTALLED
    assert ".parent.parent.parent" not in source  # above them nothing comes along
