"""Everything for a laptop without network in one zip: python -m book.wheelhouse.

`wheels/` holds mha, torch, Jupyter and all they need, `zh/` and `en/` the notebooks, README.txt both languages'
instructions. It serves computers with the same system and Python as the one that made it.
"""

import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from book.address import ROOT
from book.export import export_language, version, wheel
from book.languages import LANGUAGES
from book.paper.archive import add
from book.versions import date

OUT = ROOT / "_build" / "wheelhouse"
README = """\
多头注意力：没有网络也能运行

适用于 {where}，Python {python}。一共 {total} MB，其中 torch {torch} MB。
在这个文件夹里打开终端：

    python -m venv book
    {activate}
    python -m pip install --no-index --find-links wheels mha jupyterlab
    jupyter lab zh

每个笔记本的第一格会在 wheels 里找到这本书的 mha，不用网络。


Multi-Head Attention: runs without a network

For {where}, Python {python}. {total} MB in all, {torch} MB of them torch.
Open a terminal in this folder:

    python -m venv book
    {activate}
    python -m pip install --no-index --find-links wheels mha jupyterlab
    jupyter lab en

The first cell of each notebook finds this book's mha in wheels, without a network.
"""


def fetch(wheels: Path) -> None:
    """Put mha, Jupyter and all they need into `wheels`, in the lock's versions. SystemExit with pip's words."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "-d", str(wheels),
               "-c", str(ROOT / "requirements.txt"), str(wheel(wheels)), "jupyterlab"]  # fmt: skip
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"wheelhouse: pip could not fetch everything\n{done.stderr[-2000:]}")


def pack(wheels: Path, target: Path, where: str, python: str) -> Path:
    """Zip wheels, notebooks and README.txt into `target`."""
    sizes = {path.name: path.stat().st_size / 1e6 for path in wheels.glob("*.whl")}
    torch = sum(size for name, size in sizes.items() if name.startswith("torch-"))
    activate = r"book\Scripts\activate" if where.startswith("win") else ". book/bin/activate"
    text = README.format(where=where, python=python, total=round(sum(sizes.values())), torch=round(torch),
                         activate=activate)  # fmt: skip
    target.parent.mkdir(parents=True, exist_ok=True)
    day = date()
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(target, "w") as book:
        add(book, "README.txt", text.replace("\n", "\r\n"), day)  # as Windows' editor wants it
        for lang in LANGUAGES:
            for path in export_language(Path(name), lang, None):
                add(book, f"{lang}/{path.name}", path.read_bytes(), day)
        for path in sorted(wheels.glob("*.whl")):
            add(book, f"wheels/{path.name}", path.read_bytes(), day, stored=True)  # compressed already
    return target


def main() -> None:
    where = f"{platform.system()}-{platform.machine()}".lower()
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    wheels = OUT / f"{where}-py{python}"
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    print("wheelhouse: fetching; torch makes this a few minutes", flush=True)
    fetch(wheels)
    target = pack(wheels, OUT / f"mha-{version()}-{where}-py{python}.zip", where, python)
    print(f"wheelhouse: {target.relative_to(ROOT)}, {target.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
