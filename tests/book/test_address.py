"""Addresses: one place, and a fork's pages lead to the fork."""

import pytest

from book.address import open_in, repository, site_url

VARIABLES = ("GITHUB_REPOSITORY", "GITHUB_SERVER_URL", "BOOK_REPOSITORY", "BOOK_URL", "BOOK_BRANCH", "BOOK_FOLDER")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes `_config.yml` with a repository and a site, in a world without a forge."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)

    def write(url="", baseurl=""):
        text = f'repository:\n  url: "{url}"\n  branch: main\nhtml:\n  baseurl: "{baseurl}"\n'
        (tmp_path / "_config.yml").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_without_a_repository_nothing_is_offered_but_the_download(written):
    root = written()
    assert repository(root) is None
    assert site_url(root) is None
    assert open_in("2-2-splitting", "zh", root) == {}


def test_a_repository_in_the_configuration_gives_every_address(written):
    root = written("https://github.com/Some-Org/book.git", "https://book.example")
    assert repository(root).url == "https://github.com/Some-Org/book"
    assert site_url(root) == "https://book.example/"
    assert open_in("2-2-splitting", "en", root) == {
        "Colab": "https://colab.research.google.com/github/Some-Org/book/blob/gh-pages/en/notebooks/2-2-splitting.ipynb",
        "Kaggle": "https://kaggle.com/kernels/welcome?src="
        "https://github.com/Some-Org/book/blob/gh-pages/en/notebooks/2-2-splitting.ipynb",
        "PAI-DSW": "https://gallery.pai-ml.com/#/import/"
        "https://github.com/Some-Org/book/blob/gh-pages/en/notebooks/2-2-splitting.ipynb",
    }


def test_a_chinese_reader_is_offered_first_what_opens_in_china(written):
    assert list(open_in("1-concept", "zh", written("https://github.com/o/book"))) == ["PAI-DSW", "Colab", "Kaggle"]


def test_on_a_fork_every_address_is_the_forks(written, monkeypatch):
    root = written("https://github.com/origin/book", "https://book.example/")
    monkeypatch.setenv("GITHUB_REPOSITORY", "Forker/book")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    assert repository(root).name == "Forker/book"
    assert site_url(root) == "https://forker.github.io/book/"
    for address in open_in("cover", "zh", root).values():
        assert "Forker/book/blob/gh-pages/zh/notebooks/cover.ipynb" in address
        assert "origin" not in address


def test_in_the_configured_repositorys_own_job_its_site_keeps_its_name(written, monkeypatch):
    root = written("https://github.com/origin/book", "https://book.example/")
    monkeypatch.setenv("GITHUB_REPOSITORY", "origin/book")
    assert site_url(root) == "https://book.example/"


def test_a_users_own_pages_repository_is_served_from_the_root(written):
    assert site_url(written("https://github.com/o/o.github.io")) == "https://o.github.io/"


def test_what_a_person_sets_wins_over_forge_and_configuration(written, monkeypatch):
    root = written("https://github.com/origin/book")
    monkeypatch.setenv("GITHUB_REPOSITORY", "forker/book")
    monkeypatch.setenv("BOOK_REPOSITORY", "https://github.com/me/mine")
    monkeypatch.setenv("BOOK_URL", "https://me.example/attention")
    monkeypatch.setenv("BOOK_BRANCH", "pages")
    monkeypatch.setenv("BOOK_FOLDER", "v1.2")
    assert site_url(root) == "https://me.example/attention/v1.2/"
    assert open_in("cover", "en", root)["Colab"].endswith("/me/mine/blob/pages/v1.2/en/notebooks/cover.ipynb")


def test_a_forge_that_colab_cannot_read_gets_no_button_to_it(written, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "o/book")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://git.example.org")
    root = written()
    assert repository(root).url == "https://git.example.org/o/book"
    assert site_url(root) is None
    assert open_in("cover", "zh", root) == {}


def test_half_an_address_is_refused_with_the_rule(written):
    with pytest.raises(ValueError, match=r"https://server/owner/name, got 'book'"):
        repository(written("book"))
