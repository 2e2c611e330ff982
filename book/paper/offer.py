"""The line at the foot of each page that leads to the files, with their sizes: there when they are."""

import re
from pathlib import Path

from book.languages import LANGUAGES

FOLDER = "files"
STAMP = ".of"  # says which build of the site the files were made from
PLACE = '<p class="mha-files"></p>'  # where a page has the line; empty until there are files
LINE = re.compile(r'(<p class="mha-files">).*?(</p>)', re.S)
WORDS = {
    "zh": ("带走这本书：", "{name}（{size}）", " · ", "整个网站 zip"),
    "en": ("Take it away: ", "{name} ({size})", " · ", "the whole site, zip"),
}


SITE_ZIP = "mha-book-site.zip"


def names(lang: str) -> list[str]:
    """The files for readers of `lang`."""
    return [f"mha-book-{lang}.pdf", f"mha-book-{lang}.epub", SITE_ZIP]


EVERYTHING = sorted({name for lang in LANGUAGES for name in names(lang)})


def size(number: int) -> str:
    """Bytes as a reader says them: "820 KB", "6.4 MB".

    >>> size(820_400), size(6_351_000), size(48_000_000)
    ('820 KB', '6.4 MB', '48 MB')
    """
    if number < 1_000_000:
        return f"{number / 1e3:.0f} KB"
    return f"{number / 1e6:.1f} MB" if number < 10_000_000 else f"{number / 1e6:.0f} MB"


def current(site: Path) -> bool:
    """Whether all files are there and were made from this build of the site."""
    folder, stamp = site / FOLDER, site / ".digest"
    made_from = folder / STAMP
    everything = all((folder / name).exists() for name in EVERYTHING)
    return everything and stamp.exists() and made_from.exists() and made_from.read_text() == stamp.read_text()


def fill(site: Path, *, there: bool) -> int:
    """Write the line into every page if the files are `there` (and `current`), or empty it; pages changed."""
    changed = 0
    for lang in LANGUAGES:
        for page in (site / lang).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            up = "../" * len(page.relative_to(site).parent.parts)
            new = LINE.sub(rf"\g<1>{_line(site, lang, up) if there else ''}\g<2>", text)
            if new != text:
                page.write_text(new, encoding="utf-8")
                changed += 1
    return changed


def without(page: str) -> str:
    """The page without its line, as for the zip, which does not hold the files."""
    return LINE.sub(r"\g<1>\g<2>", page)


def _line(site: Path, lang: str, up: str) -> str:
    before, pattern, between, whole = WORDS[lang]
    labels = ("PDF", "EPUB", whole)
    return before + between.join(
        f'<a href="{up}{FOLDER}/{name}" download>'
        + pattern.format(name=label, size=size((site / FOLDER / name).stat().st_size))
        + "</a>"
        for label, name in zip(labels, names(lang), strict=True)
    )
