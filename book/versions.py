"""Which version this is, and how versions stand side by side on the published branch.

The newest site lies at the root of the branch, a frozen one in its folder: `v0.1/`. Needs nothing but Python and git.

    python -m book.versions publish           lay _site at the root of the branch gh-pages, and push it
    python -m book.versions publish-release   the same for the frozen site in dist/, in its folder
    python -m book.versions tag               say the tag of this version
"""

import datetime
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from book.paper import archive, offer

ROOT = Path(__file__).parent.parent
FROZEN = ROOT / "_build" / "frozen"  # the site of a release, whose pages know their folder
DIST, SUMS = ROOT / "dist", "SHA256SUMS"
BRANCH = os.environ.get("BOOK_BRANCH") or "gh-pages"
FOLDER = re.compile(r"v\d+\.\d+")
UNPUBLISHED = (".*", "jupyter_execute")  # the builders' notes to themselves
KEPT = {".git", "wheels"}  # a reader's saved notebook asks for the wheel that it was made with
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # strftime's depend on the locale  # fmt: skip


def version(root: Path = ROOT) -> str:
    """The book's version, which is the package's: mha/__init__.py says it."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "mha" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    if not found:
        raise ValueError('mha/__init__.py must hold a line __version__ = "…"')
    return found[1]


def folder(number: str) -> str:
    """The folder of a frozen version: patches replace each other.

    >>> folder("1.2.3")
    'v1.2'
    """
    return "v" + ".".join(number.split(".")[:2])


def date(root: Path = ROOT) -> datetime.date:
    """The day of this version: SOURCE_DATE_EPOCH, else the last commit, else (no repository) the last release."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct", cwd=root)
    if seconds:
        return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).date()
    released = re.search(r"^date-released: (\S+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert released, "CITATION.cff says no date-released"
    return datetime.date.fromisoformat(released[1])


def spoken(day: datetime.date, lang: str) -> str:
    """The day as readers of `lang` write it.

    >>> spoken(datetime.date(2026, 11, 29), "zh"), spoken(datetime.date(2026, 11, 29), "en")
    ('2026 年 11 月 29 日', '29 November 2026')
    """
    if lang == "zh":
        return f"{day.year} 年 {day.month} 月 {day.day} 日"
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def sign(site: Path, number: str | None = None, day: datetime.date | None = None) -> None:
    """Write into a built site which version it is, and the page that lists it (alone, until it is published)."""
    said = {"version": number or version(), "date": (day or date()).isoformat()}
    (site / "version.json").write_text(json.dumps(said) + "\n", encoding="utf-8")
    list_versions(site)


def lay(site: Path, published: Path, place: str = "") -> None:
    """Put the built `site` into `published`: at its root, or in the folder `place` ("v0.1") for good.

    At the root everything else makes way except frozen versions and older wheels.
    """
    if place and not FOLDER.fullmatch(place):
        raise ValueError(f"the folder of a frozen version must read v1.2, got {place!r}")
    target = published / place
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        if old.name in KEPT or (not place and FOLDER.fullmatch(old.name)):
            continue
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(site, target, ignore=shutil.ignore_patterns(*UNPUBLISHED), dirs_exist_ok=True)
    (published / ".nojekyll").touch()  # folders that begin with _ are pages, too
    list_versions(published)


def list_versions(published: Path) -> None:
    """Write versions.html, the list of all versions, into the newest site and each frozen one."""
    folders = sorted((path for path in published.iterdir() if FOLDER.fullmatch(path.name)), key=_order, reverse=True)
    known = {
        place: json.loads((published / place / "version.json").read_text("utf-8"))
        for place in ("", *(path.name for path in folders))
        if (published / place / "version.json").exists()
    }
    for here in known:
        (published / here / "versions.html").write_text(_page(known, here), encoding="utf-8")


def unpack(dist: Path, frozen: Path) -> None:
    """The site of a release, into `frozen`, with the files that it offers: those of the release.

    SystemExit where a file is not the one its checksum was made of.
    """
    if not (dist / SUMS).exists():
        raise SystemExit(f"publish: no release in {dist.name}; run make release")
    for line in (dist / SUMS).read_text("utf-8").splitlines():
        wanted, name = line.split("  ")
        if hashlib.sha256((dist / name).read_bytes()).hexdigest() != wanted:
            raise SystemExit(f"publish: {name} is not what {SUMS} says")
    shutil.rmtree(frozen, ignore_errors=True)
    archive.unpack(dist / offer.SITE_ZIP, frozen)
    (frozen / offer.FOLDER).mkdir()
    for name in offer.EVERYTHING:
        shutil.copy(dist / name, frozen / offer.FOLDER)
    offer.fill(frozen, there=True)


def push(site: Path, place: str = "") -> None:
    """Lay `site` and push it as the only commit of the branch: what is published counts, not its history."""
    if not (site / "version.json").exists():
        raise SystemExit(
            f"publish: no built site in {site.relative_to(ROOT)}; run make {'release' if place else 'site'}"
        )
    published = ROOT / "_build" / "published"
    shutil.rmtree(published, ignore_errors=True)
    published.mkdir(parents=True)
    remote = _git("remote", "get-url", "origin")
    if not remote:
        raise SystemExit("publish: this repository has no remote named origin to push to")
    _git("init", "--quiet", "--initial-branch", BRANCH, cwd=published)
    before = _git("ls-remote", remote, f"refs/heads/{BRANCH}").split("\t")[0]
    if before:
        _run("fetch", "--quiet", "--depth=1", remote, before, cwd=published)
        _run("checkout", "--quiet", "FETCH_HEAD", "--", ".", cwd=published)
    lay(site, published, place)
    said = f"{place or 'newest'}: {json.loads((site / 'version.json').read_text('utf-8'))['version']}"
    _run("add", "--all", "--force", cwd=published)
    name = ("-c", "user.name=publish", "-c", "user.email=publish@localhost")
    _run(*name, "commit", "--quiet", "-m", said, cwd=published)
    _run("push", "--quiet", f"--force-with-lease={BRANCH}:{before}", remote, f"HEAD:refs/heads/{BRANCH}", cwd=published)
    print(f"publish: pushed {said} to {BRANCH}")


def _order(path: Path) -> tuple[int, ...]:
    return tuple(map(int, path.name.removeprefix("v").split(".")))


def _page(known: dict[str, dict[str, str]], here: str) -> str:
    rows = []
    for place, said in known.items():
        way = ("../" if here else "") + (f"{place}/" if place else "")
        day = datetime.date.fromisoformat(said["date"])
        newest = "" if place else ' <span lang="zh-CN">最新</span> · <span lang="en">newest</span>'
        links = "".join(
            f'<a href="{way}{lang}/index.html" lang="{code}">{name} · {spoken(day, lang)}</a>'
            for lang, code, name in (("zh", "zh-CN", "中文"), ("en", "en", "English"))
        )
        rows.append(f"<li><strong>{html.escape(said['version'])}{newest}</strong>{links}</li>")
    shell = (ROOT / "book" / "front" / "versions.html").read_text(encoding="utf-8")
    return shell.replace("{rows}", "\n".join(rows))


def _git(*arguments: str, cwd: Path = ROOT) -> str:
    """What git answers, or "" where it cannot."""
    try:
        answer = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _run(*arguments: str, cwd: Path) -> None:
    run = subprocess.run(["git", *arguments], cwd=cwd, check=False)
    if run.returncode:
        raise SystemExit(f"publish: git {arguments[0]} failed; see above")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["publish"]:
            push(ROOT / "_site")
        case ["publish-release"]:
            unpack(DIST, FROZEN)
            push(FROZEN, folder(version()))
        case ["tag"]:
            print(f"v{version()}")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
