"""The zip of the site, and the line that offers all files."""

import zipfile
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

from book.languages import LANGUAGES
from book.paper import offer
from book.paper.archive import TOP, site_files
from book.site import SITE


def test_the_zip_holds_every_file_that_a_page_may_ask_for(folder):
    with zipfile.ZipFile(folder / "mha-book-site.zip") as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        assert {f"{TOP}/{path.relative_to(SITE).as_posix()}" for path in site_files(SITE)} | {
            f"{TOP}/README.txt"
        } == names
        for name in sorted(names):
            if not name.endswith(".html"):
                continue
            page = BeautifulSoup(archive.read(name), "html.parser")
            for element in page.select("a[href], link[href], img[src], script[src]"):
                address, scheme = urlsplit(element.get("href") or element.get("src")).path, element.get("href", "")
                if address and "://" not in scheme and not scheme.startswith("data:"):
                    target = (SITE / name.removeprefix(f"{TOP}/")).parent / unquote(address)
                    inside = target.resolve().relative_to(SITE).as_posix()
                    assert f"{TOP}/{inside}" in names or (target / "index.html").exists(), (name, address)


def test_each_page_offers_the_files_with_their_sizes(folder):
    for lang in LANGUAGES:
        page = (SITE / lang / "chapters" / "1-concept.html").read_text(encoding="utf-8")
        line = BeautifulSoup(page, "html.parser").select_one(".mha-files")
        links = line.find_all("a")
        assert [link["href"].rsplit("/", 1)[1] for link in links] == offer.names(lang)
        for link, name in zip(links, offer.names(lang), strict=True):
            assert offer.size((folder / name).stat().st_size) in link.get_text()


def test_the_files_are_light_enough_to_send(folder):
    sizes = {path.suffix: path.stat().st_size for path in folder.glob("mha-book-*")}
    assert sizes[".pdf"] < 12e6
    assert sizes[".epub"] < 5e6
    assert sizes[".zip"] < 50e6
