"""A release can be checked: what is in it, what it was made with, and that nobody changed it since."""

import datetime
import re
import subprocess
import zipfile

import pytest

from book import release, versions

DAY = datetime.date(2026, 11, 29)


@pytest.fixture
def frozen(tmp_path):
    folder = tmp_path / "frozen"
    (folder / "zh").mkdir(parents=True)
    (folder / "zh" / "index.html").write_text("多头", encoding="utf-8")
    (folder / ".digest").write_text("x")
    (folder / "jupyter_execute").mkdir()
    (folder / "jupyter_execute" / "a.png").touch()
    return folder


def test_one_site_gives_one_archive_without_what_is_hidden(frozen, tmp_path):
    files = [tmp_path / name for name in ("a.zip", "b.zip")]
    for file in files:
        release.archive(frozen, file, DAY)
        (frozen / "zh" / "index.html").touch()
    assert files[0].read_bytes() == files[1].read_bytes()
    assert zipfile.ZipFile(files[0]).namelist() == ["zh/index.html"]


def test_the_checksums_are_those_that_sha256sum_checks(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    release.checksums(tmp_path)
    check = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (check.returncode, check.stdout) == (0, "a.txt: OK\n")


def test_a_release_is_unpacked_whole_and_only_as_it_was_made(frozen, tmp_path):
    dist, out = tmp_path / "dist", tmp_path / "out"
    dist.mkdir()
    archive = dist / "book-1.0.0-site.zip"
    release.archive(frozen, archive, DAY)
    release.checksums(dist)
    versions.unpack(dist, out)
    assert (out / "zh" / "index.html").read_text(encoding="utf-8") == "多头"
    archive.write_bytes(archive.read_bytes() + b"!")
    with pytest.raises(SystemExit, match=r"book-1\.0\.0-site\.zip is not what SHA256SUMS says"):
        versions.unpack(dist, out)


def test_the_notes_are_those_of_this_version_alone():
    changelog = "# C\n\n## Unreleased\n\n- x\n\n## 1.1.0 - 2026-02-01\n\n- new\n\n## 1.0.0 - 2026-01-01\n\n- old\n"
    assert release.changes("1.1.0", changelog) == "- new\n"
    assert release.changes("1.0.0", changelog) == "- old\n"
    with pytest.raises(SystemExit, match=re.escape("no section '## 1.0.1 - YYYY-MM-DD'")):
        release.changes("1.0.1", changelog)


def test_a_tag_that_is_not_the_books_version_is_no_release(monkeypatch):
    monkeypatch.setenv("GITHUB_REF_TYPE", "tag")
    monkeypatch.setenv("GITHUB_REF_NAME", "v99.0.0")
    with pytest.raises(SystemExit, match=r"the tag must be v\d+\.\d+\.\d+, as pyproject.toml says, got v99\.0\.0"):
        release.main()
