"""The commands behind make: they say what they do, and heal."""

import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from importlib.metadata import metadata

import pytest
from packaging.specifiers import SpecifierSet

from book.notebooks import ROOT
from book.site import digest

TOOLS = ("sh", "dirname", "cat", "cksum", "rm", "tail", "basename", "readlink", "env", "sed")


@pytest.fixture
def tree(tmp_path):
    """A copy of what the set-up needs."""
    for name in ("requirements.txt", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "mha", tmp_path / "mha")
    (tmp_path / "book").mkdir()
    shutil.copy(ROOT / "book" / "setup.sh", tmp_path / "book")
    return tmp_path


def set_up(tree, **environment):
    base = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    return subprocess.run(
        ["sh", "book/setup.sh"], cwd=tree, env=base | environment, capture_output=True, text=True, check=False
    )


def test_without_python_the_setup_says_what_to_install(tree):
    tools = tree / "tools"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(shutil.which(tool))
    run = set_up(tree, PATH=str(tools), PYTHON="")
    assert run.returncode == 1
    assert "no Python 3.11, 3.12 or 3.13 found. Install one" in run.stderr


def test_a_half_made_venv_is_remade_and_without_packages_at_hand_the_setup_says_so(tree):
    (tree / ".venv" / "bin").mkdir(parents=True)
    (tree / ".venv" / "bin" / "python").write_text("broken")
    run = set_up(tree, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull, PYTHON=sys.executable)
    assert run.returncode == 1
    assert "could not install requirements.txt. Check the network" in run.stderr
    assert not (tree / ".venv" / "ready").exists()
    healed = subprocess.run(
        [tree / ".venv" / "bin" / "python", "-m", "pip", "--version"], capture_output=True, check=False
    )
    assert healed.returncode == 0


def test_a_ready_venv_is_left_alone_in_silence():
    run = subprocess.run(["sh", "book/setup.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_site_is_rebuilt_when_a_chapter_changes_and_only_then(tmp_path):
    (tmp_path / "chapters").mkdir()
    chapter = tmp_path / "chapters" / "a.ipynb"
    for name in ("_config.yml", "_toc.yml", "references.bib", "requirements.txt"):
        (tmp_path / name).write_text("x")
    chapter.write_text("one")
    before = digest(tmp_path)
    assert digest(tmp_path) == before
    chapter.write_text("two")
    assert digest(tmp_path) != before


def test_a_busy_port_is_passed_over_and_the_address_printed(tmp_path):
    (tmp_path / "index.html").write_text("hello")
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        code = f"from pathlib import Path; from book.site import serve; serve(Path({str(tmp_path)!r}), {port})"
        server = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            said = [server.stdout.readline()]
            while "http://" not in said[-1]:
                said.append(server.stdout.readline())
            assert said[0] == f"site: port {port} is busy, trying {port + 1}\n"
            address = said[-1].split()[1]
            assert urllib.request.urlopen(address).read() == b"hello"
        finally:
            server.terminate()
            server.wait()


def test_the_lock_installs_on_every_python_that_the_setup_accepts():
    lock = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert "torch" in lock
    accepted = ("3.11.2", "3.12.0", "3.13.0")  # 3.11.2 is Debian 12's
    refusing = [
        (name, asked, python)
        for name, asked in ((name, metadata(name).get("Requires-Python") or "") for name in lock)
        for python in accepted
        if python not in SpecifierSet(asked)
    ]
    assert refusing == []
