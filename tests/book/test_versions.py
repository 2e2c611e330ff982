"""The site names its version and date; frozen versions stay beside the newest one."""

import datetime
import json
import re
import subprocess
import sys

import pytest
import yaml

import mha
from book import versions
from book.notebooks import ROOT

OLD, NEW = datetime.date(2026, 1, 2), datetime.date(2026, 11, 29)


def site(folder, text, number, day):
    """A built site in small: a page, a wheel, what Sphinx leaves behind."""
    for lang in ("zh", "en"):
        (folder / lang).mkdir(parents=True)
        (folder / lang / "index.html").write_text(text)
    (folder / "wheels").mkdir()
    (folder / "wheels" / f"{number}.whl").write_text(number)
    (folder / ".digest").write_text("x")
    (folder / "jupyter_execute").mkdir()
    (folder / "jupyter_execute" / "a.png").touch()
    versions.sign(folder, number, day)
    return folder


def linked(page):
    """Every file that the page links to."""
    return [page.parent / target for target in re.findall(r'href="([^"]+html)"', page.read_text(encoding="utf-8"))]


def git(*arguments, cwd):
    run = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(
        r"^## \[?([\d.]+)\]? - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert versions.version() == mha.__version__ == citation["version"] == newest[1]
    assert str(citation["date-released"]) == newest[2]


def test_publishing_needs_nothing_but_python():
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import book.versions; print(book.versions.version())"
    said = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == f"{mha.__version__}\n"


def test_the_date_is_that_of_the_source_and_not_of_the_build(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767312000")
    assert versions.date() == datetime.date(2026, 1, 2)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert versions.date().isoformat() == git("log", "-1", "--format=%cd", "--date=format-local:%F", cwd=ROOT)
    (tmp_path / "CITATION.cff").write_text("version: 1.0\ndate-released: 2025-03-04\n")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert versions.date(tmp_path) == datetime.date(2025, 3, 4)


def test_a_frozen_version_stays_when_the_newest_changes_and_each_list_leads_to_all(tmp_path):
    published = tmp_path / "published"
    versions.lay(site(tmp_path / "a", "old", "0.1.0", OLD), published)
    versions.lay(site(tmp_path / "f", "frozen", "0.1.0", OLD), published, "v0.1")
    versions.lay(site(tmp_path / "b", "new", "0.2.0", NEW), published)
    assert (published / "zh" / "index.html").read_text() == "new"
    assert (published / "v0.1" / "zh" / "index.html").read_text() == "frozen"
    assert {path.name for path in (published / "wheels").iterdir()} == {"0.1.0.whl", "0.2.0.whl"}
    for place in ("", "v0.1"):
        page = published / place / "versions.html"
        targets = {target.resolve() for target in linked(page)}
        assert targets == {published / at / lang / "index.html" for at in ("", "v0.1") for lang in ("zh", "en")}
        text = page.read_text(encoding="utf-8")
        assert text.index("0.2.0") < text.index("0.1.0")
        assert "2026 年 1 月 2 日" in text
        assert "29 November 2026" in text


def test_what_the_newest_no_longer_has_goes_and_nothing_hidden_is_published(tmp_path):
    published = tmp_path / "published"
    old = site(tmp_path / "a", "old", "0.1.0", OLD)
    (old / "zh" / "gone.html").write_text("gone")
    versions.lay(old, published)
    versions.lay(site(tmp_path / "b", "new", "0.2.0", NEW), published)
    assert not (published / "zh" / "gone.html").exists()
    assert {path.name for path in published.iterdir()} == {
        "zh",
        "en",
        "wheels",
        "version.json",
        "versions.html",
        ".nojekyll",
    }


def test_a_patch_replaces_the_frozen_version_it_mends(tmp_path):
    published = tmp_path / "published"
    versions.lay(site(tmp_path / "a", "0", "1.10.0", OLD), published, versions.folder("1.10.0"))
    versions.lay(site(tmp_path / "b", "1", "1.10.1", NEW), published, versions.folder("1.10.1"))
    versions.lay(site(tmp_path / "c", "9", "1.9.4", NEW), published, versions.folder("1.9.4"))
    assert (published / "v1.10" / "en" / "index.html").read_text() == "1"
    text = (published / "v1.9" / "versions.html").read_text(encoding="utf-8")
    assert re.findall(r"<strong>([\d.]+)", text) == ["1.10.1", "1.9.4"]  # by number, not by letter


@pytest.mark.parametrize("place", ["1.0", "v1", "../v1.0", "v1.0.0", "zh"])
def test_a_frozen_version_has_a_folder_of_its_own(tmp_path, place):
    with pytest.raises(ValueError, match=re.escape(f"must read v1.2, got {place!r}")):
        versions.lay(site(tmp_path / "a", "x", "1.0.0", OLD), tmp_path / "published", place)


def test_publishing_keeps_frozen_versions_in_one_commit(tmp_path, monkeypatch):
    remote, work = tmp_path / "remote.git", tmp_path / "work"
    git("init", "--quiet", "--bare", str(remote), cwd=tmp_path)
    (work / "_build").mkdir(parents=True)
    git("init", "--quiet", cwd=work)
    git("remote", "add", "origin", str(remote), cwd=work)
    monkeypatch.setattr(versions, "_git", lambda *a, cwd=work: git(*a, cwd=cwd))
    monkeypatch.setattr(versions, "ROOT", work)
    (work / "book").mkdir()
    (work / "book" / "front").symlink_to(ROOT / "book" / "front")
    versions.push(site(tmp_path / "f", "frozen", "0.1.0", OLD), "v0.1")
    versions.push(site(tmp_path / "b", "new", "0.2.0", NEW))
    names = git("ls-tree", "-r", "--name-only", "gh-pages", cwd=remote).splitlines()
    assert {"v0.1/en/index.html", "en/index.html", "versions.html", "v0.1/versions.html", ".nojekyll"} <= set(names)
    assert git("rev-list", "--count", "gh-pages", cwd=remote) == "1"
    assert json.loads(git("show", "gh-pages:version.json", cwd=remote)) == {"version": "0.2.0", "date": "2026-11-29"}


def test_nothing_is_published_that_was_not_built(tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="no built site in _site; run make site"):
        versions.push(tmp_path / "_site")
