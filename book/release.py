"""Build what a release carries into dist/: python -m book.release.

PDF and EPUB of each language, the frozen site as a zip, the wheel, what the book was made of (CycloneDX), the notes
of this version, and checksums of all of them.
"""

import hashlib
import os
import re
import shutil
from pathlib import Path

from book import bill, site, versions
from book.paper import offer
from book.paper.__main__ import build as build_files
from book.versions import DIST, FROZEN, ROOT, SUMS


def main() -> None:
    number = versions.version()
    tag = os.environ.get("GITHUB_REF_NAME") if os.environ.get("GITHUB_REF_TYPE") == "tag" else None
    if tag and tag != f"v{number}":
        raise SystemExit(f"release: the tag must be v{number}, as mha/__init__.py says, got {tag}")
    notes = changes(number, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    os.environ["BOOK_FOLDER"] = versions.folder(number)  # pages and notebooks name their folder
    site.build(FROZEN)
    build_files(FROZEN)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for file in [*(FROZEN / offer.FOLDER / name for name in offer.EVERYTHING), *(FROZEN / "wheels").glob("*.whl")]:
        shutil.copy(file, DIST)
    bill.write(DIST / f"mha-book-{number}.cdx.json", number)
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


def checksums(folder: Path) -> None:
    """SHA256SUMS, as `sha256sum --check` reads it."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
