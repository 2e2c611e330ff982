"""Where the book lives: repository, site, and the places that open its notebooks.

`_config.yml` says it once (`repository`, `html.baseurl`); the variables that a forge sets for its jobs win,
so that a fork's pages lead to the fork. BOOK_REPOSITORY, BOOK_URL, BOOK_BRANCH and BOOK_FOLDER win over both.
"""

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import yaml

ROOT = Path(__file__).parent.parent
GITHUB = "https://github.com"


class Repository(NamedTuple):
    """A repository on a forge: `server` "https://github.com", `name` "owner/book", `branch` that holds the sources."""

    server: str
    name: str
    branch: str

    @property
    def url(self) -> str:
        return f"{self.server}/{self.name}"


def repository(root: Path = ROOT) -> Repository | None:
    """The repository this build is for, or None where neither the forge nor `_config.yml` names one."""
    configured = _config(root).get("repository") or {}
    branch = configured.get("branch") or "main"
    if own := os.environ.get("BOOK_REPOSITORY"):
        return _parsed(own, branch)
    if name := os.environ.get("GITHUB_REPOSITORY"):
        return _parsed(f"{os.environ.get('GITHUB_SERVER_URL') or GITHUB}/{name}", branch)
    return _parsed(configured["url"], branch) if configured.get("url") else None


def site_url(root: Path = ROOT) -> str | None:
    """The address of the published site's front door, ending in "/", or None where it is not known.

    `html.baseurl` counts only while we build for the repository beside it: a fork has a site of its own.
    """
    config = _config(root)
    here, written = repository(root), (config.get("repository") or {}).get("url")
    base = (config.get("html") or {}).get("baseurl")
    if own := os.environ.get("BOOK_URL"):
        address = own
    elif base and (here is None or (written and _parsed(written, here.branch) == here)):
        address = base
    elif here and here.server == GITHUB:
        owner, name = here.name.split("/")
        host = f"{owner.lower()}.github.io"
        address = f"https://{host}/" if name.lower() == host else f"https://{host}/{name}/"
    else:
        return None
    return address.rstrip("/") + "/" + _folder()


def notebook_path(name: str, lang: str) -> str:
    """Where an exported notebook lies in the site: "zh/notebooks/2-2-splitting.ipynb"."""
    return f"{lang}/notebooks/{name}.ipynb"


def open_in(name: str, lang: str, root: Path = ROOT) -> dict[str, str]:
    """The addresses that open the notebook elsewhere, by place, first the one that readers of `lang` reach best.

    Empty where there is no repository on GitHub: these places read notebooks from there alone.
    """
    here = repository(root)
    if here is None or here.server != GITHUB:
        return {}
    branch = os.environ.get("BOOK_BRANCH") or "gh-pages"  # the published site, notebooks included
    blob = f"{here.name}/blob/{quote(branch)}/{_folder()}{notebook_path(name, lang)}"
    colab = {"Colab": f"https://colab.research.google.com/github/{blob}"}
    kaggle = {"Kaggle": f"https://kaggle.com/kernels/welcome?src={GITHUB}/{blob}"}
    dsw = {"PAI-DSW": f"https://gallery.pai-ml.com/#/import/{GITHUB}/{blob}"}
    return dsw | colab | kaggle if lang == "zh" else colab | kaggle | dsw


def _config(root: Path) -> dict[str, dict[str, str]]:
    return yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8")) or {}


def _parsed(address: str, branch: str) -> Repository:
    parts = urlsplit(address.removesuffix("/").removesuffix(".git"))
    name = parts.path.strip("/")
    if not (parts.scheme and parts.netloc and name.count("/")):
        raise ValueError(f"a repository's address must read https://server/owner/name, got {address!r}")
    return Repository(f"{parts.scheme}://{parts.netloc}", name, branch)


def _folder() -> str:
    """The folder of a frozen version within the published site, "v1.0/", or ""."""
    folder = (os.environ.get("BOOK_FOLDER") or "").strip("/")
    return f"{folder}/" if folder else ""
