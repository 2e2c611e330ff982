"""A release can be checked: what is in it, what it was made with, and that nobody changed it since."""

import datetime
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from book import release, versions
from book.paper import archive, offer

DAY = datetime.date(2026, 11, 29)


@pytest.fixture
def dist(tmp_path):
    """A release in small."""
    built, folder = tmp_path / "built", tmp_path / "dist"
    for lang in ("zh", "en"):
        (built / lang).mkdir(parents=True)
        (built / lang / "index.html").write_text(f"多头{offer.PLACE}", encoding="utf-8")
    folder.mkdir()
    for name in offer.EVERYTHING:
        (folder / name).write_text(name)
    archive.write(built, folder / offer.SITE_ZIP, DAY)
    release.checksums(folder)
    return folder


def test_the_checksums_are_those_that_sha256sum_checks(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    release.checksums(tmp_path)
    check = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (check.returncode, check.stdout) == (0, "a.txt: OK\n")


def test_a_release_carries_the_book_in_every_form_and_checksums_of_all(dist, tmp_path, monkeypatch):
    frozen, made = tmp_path / "frozen", tmp_path / "made"

    def build(site):
        (site / "wheels").mkdir(parents=True)
        (site / "wheels" / "mha-9.whl").touch()

    monkeypatch.setenv("BOOK_FOLDER", "")
    monkeypatch.setattr(release, "FROZEN", frozen)
    monkeypatch.setattr(release, "DIST", made)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release.site, "build", build)
    monkeypatch.setattr(release, "build_files", lambda site: shutil.copytree(dist, site / offer.FOLDER))
    monkeypatch.setattr(release.bill, "write", lambda file, number: file.write_text(number))
    number = versions.version()
    (tmp_path / "CHANGELOG.md").write_text(f"## {number} - 2026-11-29\n\n- new\n")
    release.main()
    book = {f"mha-book-{lang}.{kind}" for lang in ("zh", "en") for kind in ("pdf", "epub")}
    beside = {"mha-book-site.zip", "mha-9.whl", f"mha-book-{number}.cdx.json", "NOTES.md"}
    assert {path.name for path in made.iterdir()} == book | beside | {"SHA256SUMS"}
    sums = (made / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in sums} == book | beside
    assert os.environ["BOOK_FOLDER"] == versions.folder(number)


def test_a_release_is_unpacked_whole_and_its_pages_offer_the_very_files_that_it_carries(dist, tmp_path):
    out = tmp_path / "new" / "out"  # the job that publishes has nothing but the release
    versions.unpack(dist, out)
    assert {path.name for path in out.iterdir()} == {"zh", "en", "files"}
    for lang in ("zh", "en"):
        page = out / lang / "index.html"
        text = page.read_text(encoding="utf-8")
        assert text.startswith("多头")
        offered = re.findall(r'href="([^"]+)"', text)
        assert [Path(name).name for name in offered] == offer.names(lang)
        for name in offered:
            assert (page.parent / name).read_bytes() == (dist / Path(name).name).read_bytes()


def test_a_release_that_somebody_changed_is_not_published(dist, tmp_path):
    pdf = dist / "mha-book-zh.pdf"
    pdf.write_bytes(pdf.read_bytes() + b"!")
    with pytest.raises(SystemExit, match=r"mha-book-zh\.pdf is not what SHA256SUMS says"):
        versions.unpack(dist, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_notes_are_those_of_this_version_alone():
    changelog = "# C\n\n## Unreleased\n\n- x\n\n## 1.1.0 - 2026-02-01\n\n- new\n\n## 1.0.0 - 2026-01-01\n\n- old\n"
    assert release.changes("1.1.0", changelog) == "- new\n"
    assert release.changes("1.0.0", changelog) == "- old\n"
    with pytest.raises(SystemExit, match=re.escape("no section '## 1.0.1 - YYYY-MM-DD'")):
        release.changes("1.0.1", changelog)


def test_a_tag_that_is_not_the_books_version_is_no_release(monkeypatch):
    monkeypatch.setenv("GITHUB_REF_TYPE", "tag")
    monkeypatch.setenv("GITHUB_REF_NAME", "v99.0.0")
    with pytest.raises(SystemExit, match=r"the tag must be v\d+\.\d+\.\d+, as mha/__init__.py says, got v99\.0\.0"):
        release.main()
