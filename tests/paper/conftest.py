"""The files to take away, made if they are not there."""

import zipfile

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from book import address
from book.languages import LANGUAGES
from book.paper import pages
from book.paper.__main__ import build as build_files
from book.paper.offer import FOLDER
from book.site import SITE, build


@pytest.fixture(scope="session")
def folder():
    """Where the files are."""
    build()
    build_files()
    return SITE / FOLDER


@pytest.fixture(scope="session", params=LANGUAGES)
def book(request, folder):
    """The book that the files were made from."""
    return pages.read(SITE, request.param, address.site_url())


@pytest.fixture(scope="session")
def reader(folder, book):
    """Its PDF."""
    return PdfReader(folder / f"mha-book-{book.lang}.pdf")


@pytest.fixture(scope="session")
def epub(folder, book):
    """Its EPUB, unpacked: every file by name."""
    with zipfile.ZipFile(folder / f"mha-book-{book.lang}.epub") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="session")
def parsed(epub):
    """Its pages as trees, by name."""
    return {name: BeautifulSoup(data, "html.parser") for name, data in epub.items() if name.endswith(".xhtml")}
