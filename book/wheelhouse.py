"""Everything for a laptop without network in one zip: python -m book.wheelhouse [--for win_amd64-3.12].

`wheels/` holds mha, torch, Jupyter and all they need, `zh/` and `en/` the notebooks, README.txt both languages'
instructions. Made for this machine's system and Python, or for those named.
"""

import argparse
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from book.address import ROOT
from book.export import export_language, version, wheel
from book.languages import LANGUAGES

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


def fetch(wheels: Path, system: str | None = None, python: str | None = None) -> None:
    """Put mha, Jupyter and all they need into `wheels`, in the lock's versions. SystemExit with pip's words."""
    ours = wheel(wheels)
    foreign = ["--platform", system, "--python-version", python, "--only-binary=:all:"] if system and python else []
    lock = wheels / "lock.txt"  # without torch where the system is another: its builds have other names there
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    lock.write_text("\n".join(line for line in lines if "==" in line), encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "-d", str(wheels),
               "-c", str(lock), *foreign, str(ours), "jupyterlab"]  # fmt: skip
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    lock.unlink()
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
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(target, "w") as book:
        book.writestr("README.txt", text.replace("\n", "\r\n"))  # as Windows' editor wants it
        for lang in LANGUAGES:
            for path in export_language(Path(name), lang, None):
                book.write(path, f"{lang}/{path.name}", zipfile.ZIP_DEFLATED)
        for path in sorted(wheels.glob("*.whl")):
            book.write(path, f"wheels/{path.name}")  # a wheel is compressed already
    return target


def main() -> None:
    here = f"{platform.system()}-{platform.machine()}".lower()
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser = argparse.ArgumentParser(prog="python -m book.wheelhouse", description=__doc__)
    parser.add_argument("--for", dest="other", help="another system, as pip names it, and its Python: win_amd64-3.12")
    other = parser.parse_args().other
    where, _, python = (other or f"{here}-{own}").rpartition("-")
    if other and not (where and re.fullmatch(r"3\.\d+", python)):
        parser.error(f"--for must read SYSTEM-PYTHON, for example win_amd64-3.12, got {other}")
    wheels = OUT / f"{where}-{python}"
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    print("wheelhouse: fetching; torch makes this a few minutes", flush=True)
    fetch(wheels, *((where, python) if other else ()))
    target = pack(wheels, OUT / f"mha-{version()}-{where}-py{python}.zip", where, python)
    print(f"wheelhouse: {target.relative_to(ROOT)}, {target.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
