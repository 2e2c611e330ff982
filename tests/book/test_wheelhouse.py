"""The zip for a laptop without network."""

import zipfile

import pytest

from book import wheelhouse
from book.export import version
from book.languages import LANGUAGES
from book.notebooks import CHAPTERS, ROOT


@pytest.fixture
def wheels(tmp_path):
    """A folder of made-up wheels: torch has two megabytes, mha one."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "torch-2.13.0-py3-none-any.whl").write_bytes(bytes(2_000_000))
    (folder / f"mha-{version()}-py3-none-any.whl").write_bytes(bytes(1_000_000))
    return folder


def test_the_zip_holds_wheels_notebooks_of_both_languages_and_instructions(wheels, tmp_path):
    path = wheelhouse.pack(wheels, tmp_path / "x.zip", "linux-x86_64", "3.11")
    with zipfile.ZipFile(path) as book:
        names = set(book.namelist())
        text = book.read("README.txt").decode("utf-8")
        first = book.read("zh/cover.ipynb").decode("utf-8")
    assert {f"{lang}/{chapter.name}" for lang in LANGUAGES for chapter in CHAPTERS.glob("*.ipynb")} < names
    mine = f"mha-{version()}-py3-none-any.whl"
    assert {"wheels/torch-2.13.0-py3-none-any.whl", f"wheels/{mine}", "README.txt"} < names
    assert version() in first  # the notebooks ask for the wheel that lies beside them
    assert "../wheels" in first
    assert "没有网络也能运行" in text
    assert "3 MB in all, 2 MB of them torch" in text
    assert text.count("--no-index --find-links wheels mha jupyterlab") == text.count(". book/bin/activate") == 2


def test_windows_is_told_its_own_way_to_start(wheels, tmp_path):
    path = wheelhouse.pack(wheels, tmp_path / "x.zip", "windows-amd64", "3.12")
    with zipfile.ZipFile(path) as book:
        text = book.read("README.txt").decode("utf-8")
    assert text.count(r"book\Scripts\activate") == 2
    assert "\r\n" in text


def test_everything_is_fetched_in_the_locks_versions(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(wheelhouse, "wheel", lambda folder: folder / "mha.whl")
    monkeypatch.setattr(
        wheelhouse.subprocess, "run", lambda command, **_: seen.append(command) or type("Done", (), {"returncode": 0})
    )
    wheelhouse.fetch(tmp_path)
    assert seen[0][-4:] == ["-c", str(ROOT / "requirements.txt"), str(tmp_path / "mha.whl"), "jupyterlab"]
    assert seen[0][seen[0].index("-d") + 1] == str(tmp_path)


def test_a_failed_fetch_ends_with_pips_words(tmp_path, monkeypatch):
    done = type("Done", (), {"returncode": 1, "stderr": "ERROR: no network"})
    monkeypatch.setattr(wheelhouse, "wheel", lambda folder: folder / "mha.whl")
    monkeypatch.setattr(wheelhouse.subprocess, "run", lambda *_, **__: done)
    with pytest.raises(SystemExit, match="ERROR: no network"):
        wheelhouse.fetch(tmp_path)
