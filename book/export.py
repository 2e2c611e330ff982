"""Write what readers run elsewhere into the site: python -m book.export [--out _site].

For each language every chapter as a plain notebook without the other language and without outputs
(`zh/notebooks/2-2-splitting.ipynb`), and the wheel of `mha` that its first cell installs (`wheels/`).
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
import yaml
from pybtex.database import parse_file

from book import versions
from book.address import ROOT, notebook_path, site_url
from book.languages import LANGUAGES, pick, select
from book.notebooks import CHAPTERS, normalise, read, write
from book.plain import Book, know, plain

FIRST_CELL = Path(__file__).parent / "colab" / "first_cell.py"
# The first cell shows its first line alone: in Colab, JupyterLab, Kaggle
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}, "_kg_hide-input": True}
PACKAGED = ("mha", "pyproject.toml", "README.md", "LICENSE")
TITLE = "准备：装上这本书的 mha，已有的包一个也不动 | Set up: install this book's mha; nothing you have is replaced"


def export(out: Path) -> list[Path]:
    """Write notebooks and wheel into the site at `out`; the notebooks. ValueError for MyST without a plain form."""
    wheels = out / "wheels"
    wheel_file = wheel(wheels)
    for old in wheels.glob("mha-*.whl"):
        if old != wheel_file:
            old.unlink()
    return [path for lang in LANGUAGES for path in export_language(out, lang, site_url())]


def export_language(out: Path, lang: str, site: str | None) -> list[Path]:
    """Write one language's notebooks; their links lead to the site or, without one, from notebook to notebook."""
    sources = [(path.stem, read(path)) for path in sorted(CHAPTERS.glob("*.ipynb"))]
    book = know(sources, lang, parse_file(str(ROOT / "references.bib")), partial(_page, site, lang))
    written = []
    for name, source in sources:
        path = out / notebook_path(name, lang)
        path.parent.mkdir(parents=True, exist_ok=True)
        write(_notebook(name, source, book, site), path)
        written.append(path)
    for old in set((out / lang / "notebooks").glob("*.ipynb")) - set(written):
        old.unlink()  # no notebook outlives its chapter
    return written


def version(root: Path = ROOT) -> str:
    """The version of the wheel: the book's, and a digest of all that is in the wheel, "0.1.0+g1a2b3c4d5e"."""
    digest = hashlib.sha256()
    for path in _packaged(root):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{versions.version(root)}+g{digest.hexdigest()[:10]}"


def wheel(folder: Path, root: Path = ROOT) -> Path:
    """The wheel of `mha` as it is now, in `folder`; built only if it is not there. SystemExit with pip's words."""
    exact = version(root)
    path = folder / f"mha-{exact}-py3-none-any.whl"
    if path.exists():
        return path
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for source in _packaged(root):
            target = copy / source.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        project = copy / "pyproject.toml"
        text = project.read_text(encoding="utf-8")
        project.write_text(text.replace('dynamic = ["version"]', f'version = "{exact}"', 1), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps",
             "--no-build-isolation", "-w", str(folder), str(copy)],
            env={**os.environ, "SOURCE_DATE_EPOCH": "315532800"}, capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode or not path.exists():
        raise SystemExit(f"export: the wheel of mha could not be built\n{done.stderr}")
    return path


def first_cell(lang: str, exact: str, site: str | None, name: str) -> str:
    """The code that installs this very `mha` and, where it cannot, says what to do in the reader's language."""
    file = f"mha-{exact}-py3-none-any.whl"
    address = f"{site}wheels/{quote(file)}" if site else ""
    values = {"LANG": lang, "VERSION": exact, "WHEEL": address}
    lines = {key: f'{key} = "{value}"' for key, value in values.items()}
    for key, halves in SAY.items():
        text = pick(halves, lang).format(file=address or file, page=_page(site, lang, name, ""))
        lines[key] = f'{key} = """{text}"""'
    source = FIRST_CELL.read_text(encoding="utf-8").replace("# @title", f"# @title {pick(TITLE, lang)}", 1)
    for key, line in lines.items():
        source = source.replace(f'{key} = ""', line, 1)
    return re.sub(r"  # noqa.*", "", source).rstrip()


SAY = {
    "OLD_PYTHON": "mha 要 Python 3.10 或更新的版本，请换一个内核。这里是 | "
    "mha needs Python 3.10 or newer: choose another kernel. Here is",
    "NO_TORCH": "这里没有 PyTorch。请照 pytorch.org 装上它（CPU 版约 200 MB，带 CUDA 的有几个 GB），再运行这一格。\n"
    "Colab、Kaggle 和 PAI-DSW 的 PyTorch 镜像里本来就有。 | "
    "PyTorch is not here. Install it as pytorch.org says (about 200 MB for CPU, several GB with CUDA), then run this\n"
    "cell again. Colab, Kaggle and the PyTorch images of PAI-DSW have it.",
    "FAILED": "没装上。可以这样办：\n"
    "1. 网断了或太慢：稍后再运行这一格。在 Kaggle 上，先在右侧 Settings 里打开 Internet。\n"
    "2. 网络被拦住，或者没有网络：在能上网的地方下载\n   {file}\n   放到这个笔记本所在的文件夹，再运行这一格。\n"
    "3. 笔记本旧了，安装包已经撤下：重新打开 {page}\n"
    "pip 的原话： | "
    "The installation failed. What to do:\n"
    "1. No network, or a slow one: run this cell again later. On Kaggle, first turn on Internet under Settings.\n"
    "2. Blocked, or offline: where there is a network, fetch\n   {file}\n"
    "   put it into the folder of this notebook, and run this cell again.\n"
    "3. This notebook is old and its package is gone: open {page} anew.\n"
    "What pip said:",
}


def _notebook(name: str, source: Any, book: Book, site: str | None) -> Any:
    """One language of a chapter as a plain notebook."""
    v4, lang = nbformat.v4, book.lang
    chosen = select(source, lang)["cells"]
    cells = []
    if any(cell["cell_type"] == "code" for cell in chosen):
        cells.append(v4.new_code_cell(first_cell(lang, version(), site, name)))
    for cell in chosen:
        if cell["cell_type"] == "code":
            cells.append(v4.new_code_cell(cell["source"]))
        elif text := plain(cell["source"], book).strip():
            cells.append(v4.new_markdown_cell(text))
    cells.append(v4.new_markdown_cell(_imprint(name, lang, site)))
    notebook = normalise(v4.new_notebook(cells=cells))
    if notebook["cells"][0]["cell_type"] == "code":
        notebook["cells"][0]["metadata"] |= FOLDED
    return notebook


def _imprint(name: str, lang: str, site: str | None) -> str:
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    title = pick(config["title"], lang)
    book = f"[{title}]({_page(site, lang, name, '')})" if site else title
    rights = "文字 CC BY 4.0，代码 MIT | text CC BY 4.0, code MIT"
    return f"---\n*{pick('出自 | From', lang)} {book} · {pick(config['author'], lang)} · {pick(rights, lang)}*"


def _page(site: str | None, lang: str, chapter: str, anchor: str) -> str:
    """The address of a chapter: its page on the site or, without one, the notebook beside."""
    if site is None:
        return f"{chapter}.ipynb"
    return f"{site}{lang}/chapters/{chapter}.html" + (f"#{anchor}" if anchor else "")


def _packaged(root: Path) -> Iterator[Path]:
    """The files that a wheel is made of."""
    for name in PACKAGED:
        start = root / name
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m book.export", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "_site", help="the site to write into")
    out = parser.parse_args().out
    written = export(out)
    print(f"export: {len(written)} notebooks and mha {version()} in {out}")


if __name__ == "__main__":
    main()
