"""Zip files that are the same for the same content, and the zip of the whole site."""

import datetime
import shutil
import tempfile
import zipfile
from pathlib import Path

from book.languages import LANGUAGES
from book.paper.offer import FOLDER, without

TOP = "mha-book"  # the folder that the zip unpacks to
# what a reader without a network has no use for: what only servers and search engines read
LEFT_OUT = (FOLDER, "jupyter_execute", "_sources", "_headers", "404.html", "404.js", "sitemap.xml", "robots.txt")
PACKED = (".webp", ".png", ".woff2", ".jpg", ".pdf", ".epub", ".zip")  # compressed by themselves
README_NAME = "README.txt"
README = """多头注意力：一本能运行的书

解压之后，用浏览器打开 index.html，选中文。不需要网络，也不需要安装任何东西。
文字与图以 CC BY 4.0 许可发布，代码以 MIT 许可发布。


Multi-Head Attention: a book you can run

Unpack, open index.html in a browser, and choose English. No network is needed, and nothing to install.
Text and figures are under CC BY 4.0, code under MIT.
"""


def add(archive: zipfile.ZipFile, name: str, data: bytes | str, day: datetime.date, *, stored: bool = False) -> None:
    """Add one file, dated `day` whenever that happens."""
    entry = zipfile.ZipInfo(name, (max(day.year, 1980), day.month, day.day, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    entry.create_system = 3  # the same on every machine
    archive.writestr(entry, data)


def site_files(site: Path) -> list[Path]:
    """What the zip holds of the site: everything a page may ask for."""
    return [
        path
        for path in sorted(site.rglob("*"))
        if path.is_file() and not any(part.startswith(".") or part in LEFT_OUT for part in path.relative_to(site).parts)
    ]


def write(site: Path, target: Path, day: datetime.date) -> int:
    """Zip the built `site`, all languages, into `target`; the number of files."""
    files = site_files(site)
    if not all(any(f.is_relative_to(site / lang) for f in files) for lang in LANGUAGES):
        raise ValueError(f"{site} must hold {', '.join(LANGUAGES)}; build the site first")
    with zipfile.ZipFile(target, "w") as archive:
        add(archive, f"{TOP}/{README_NAME}", README, day)
        for path in files:
            data = path.read_bytes()
            if path.suffix == ".html":
                data = without(data.decode()).encode()
            name = f"{TOP}/{path.relative_to(site).as_posix()}"
            add(archive, name, data, day, stored=path.suffix in PACKED)
    return len(files) + 1


def unpack(file: Path, target: Path) -> None:
    """The site in the zip `file`, into the folder `target`, which must not be there yet."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder)
        shutil.move(Path(folder) / TOP, target)
    (target / README_NAME).unlink()  # it says how to unpack
