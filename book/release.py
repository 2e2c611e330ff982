"""Build what a release carries into dist/: python -m book.release.

The frozen site as an archive, the wheel, what the book was made with (CycloneDX, from the lock), the notes of this
version, and checksums of all of them. Two runs on one commit give the same archive of the same site.
"""

import datetime
import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from fnmatch import fnmatch
from pathlib import Path

from book import site, versions
from book.versions import DIST, FROZEN, ROOT, SUMS, UNPUBLISHED

BILL = ("--pyproject", "pyproject.toml", "--output-reproducible", "--of", "JSON", "requirements.txt")


def main() -> None:
    number, day = versions.version(), versions.date()
    tag = os.environ.get("GITHUB_REF_NAME") if os.environ.get("GITHUB_REF_TYPE") == "tag" else None
    if tag and tag != f"v{number}":
        raise SystemExit(f"release: the tag must be v{number}, as pyproject.toml says, got {tag}")
    notes = changes(number, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    os.environ["BOOK_FOLDER"] = versions.folder(number)  # pages and notebooks name their folder
    site.build(FROZEN)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    archive(FROZEN, DIST / f"multi-head-attention-{number}-site.zip", day)
    for wheel in (FROZEN / "wheels").glob("*.whl"):
        shutil.copy(wheel, DIST)
    bill_of_materials(DIST / f"multi-head-attention-{number}.cdx.json")
    (DIST / "NOTES.md").write_text(notes, encoding="utf-8")
    checksums(DIST)
    print(
        f"release: {number} is in {DIST.relative_to(ROOT)}/", *sorted(path.name for path in DIST.iterdir()), sep="\n  "
    )


def changes(number: str, changelog: str) -> str:
    """What the changelog says of this version. SystemExit if it says nothing."""
    found = re.search(rf"^## {re.escape(number)} - \S+\n(.+?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if not found:
        raise SystemExit(f"release: CHANGELOG.md has no section '## {number} - YYYY-MM-DD'")
    return found[1].strip() + "\n"


def archive(folder: Path, file: Path, day: datetime.date) -> None:
    """Zip a built site without what is not published; the bytes depend on its content and the day alone."""
    stamp = (max(day.year, 1980), day.month, day.day, 0, 0, 0)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder)
            if path.is_file() and not any(fnmatch(part, left) for part in name.parts for left in UNPUBLISHED):
                entry = zipfile.ZipInfo(name.as_posix(), stamp)
                entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
                out.writestr(entry, path.read_bytes())


def bill_of_materials(file: Path) -> None:
    """Every package of the lock, in CycloneDX. The tool has an environment of its own: `make release-tools`."""
    tool = ROOT / "_build" / "tools" / "bin" / "cyclonedx-py"
    subprocess.run([str(tool), "requirements", *BILL, "-o", str(file)], cwd=ROOT, check=True)


def checksums(folder: Path) -> None:
    """SHA256SUMS, as `sha256sum --check` reads it."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
