"""Build the files to take away into _site/files/, from the built site: python -m book.paper"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import sync_playwright

from book import address, versions
from book.browser import QUIET, find_chromium
from book.languages import LANGUAGES
from book.paper import archive, epub, fonts, offer, pages, pdf
from book.site import ROOT, SITE

WORK = ROOT / "_build" / "paper"


def build(site: Path = SITE, work: Path = WORK) -> None:
    """Write PDF, EPUB and zip into `site`/files and link them. SystemExit where the site is not built."""
    if not (site / ".digest").exists():
        raise SystemExit("book files: there is no built site; run make site first")
    if offer.current(site):
        print("book files: nothing has changed since they were made")
        return
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"book files: {time.monotonic() - began:4.0f} s  {text}", flush=True)

    folder = site / offer.FOLDER
    folder.mkdir(exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    (folder / offer.STAMP).unlink(missing_ok=True)
    books = []
    for lang in LANGUAGES:
        say(f"{lang}: reading pages")
        books.append(pages.read(site, lang, address.site_url()))
    _write(books, folder, work, say)
    say("zip of the site")
    count = archive.write(site, folder / offer.SITE_ZIP, versions.date())
    say(f"zip: {count} files")
    (folder / offer.STAMP).write_text((site / ".digest").read_text())
    offer.fill(site, there=True)
    for path in sorted(folder.glob("mha-book*")):
        say(f"{offer.size(path.stat().st_size):>7}  {path.relative_to(site)}")


def _write(books: list[pages.Book], folder: Path, work: Path, say: Callable[[str], None]) -> None:
    """Both languages' PDF and EPUB."""
    assembled = {book.lang: pdf.assemble(book, versions.date()) for book in books}
    characters = "".join(assembled.values())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=list(QUIET))
        for book in books:
            rules = fonts.css(book.lang, characters, work / "fonts")
            say(f"{book.lang}: printing (twice, for the page numbers)")
            markup, target = assembled[book.lang].replace(pdf.FONTS, rules), folder / f"mha-book-{book.lang}.pdf"
            count = pdf.write(book, markup, browser, target, work / f"{book.lang}.html", versions.date())
            say(f"{book.lang}: PDF, {count} pages")
            page = browser.new_page(device_scale_factor=2)
            file = work / f"cover-{book.lang}.html"
            file.write_text(pdf.cover_page(book, rules), encoding="utf-8")
            page.goto(file.as_uri())
            cover = page.locator(".title-page").screenshot()
            count = epub.write(book, folder / f"mha-book-{book.lang}.epub", cover, versions.date())
            say(f"{book.lang}: EPUB, {count} pictures")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m book.paper", description=__doc__)
    parser.add_argument("--site", type=Path, default=SITE)
    build(parser.parse_args().site.resolve())


if __name__ == "__main__":
    main()
