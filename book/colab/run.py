"""Run every exported notebook as Colab would: python -m book.colab.run [--only 2-2-splitting].

An environment of its own with Colab's versions (versions.txt), an empty folder, no network, and of the book
nothing but the wheel. What is printed must be what the chapters store; what is live must come with all that
ipywidgets 7 needs to show it.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from book.address import ROOT
from book.colab.versions import versions
from book.export import export
from book.languages import tags
from book.notebooks import CHAPTERS, normalise, printed, read

HERE = ROOT / "_build" / "colab"
VIEW, STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
CONTROLS = {"@jupyter-widgets/base": "1.2.0", "@jupyter-widgets/controls": "1.5.0"}  # the front end of ipywidgets 7


def environment() -> tuple[Path, str]:
    """An environment as like Colab's as this machine allows, and in words what it is. SystemExit where there is none.

    Colab's Python is taken if it is here (PYTHON313 or on the PATH), the book's own otherwise. Of torch the first
    that can be had: Colab's version, the lock's, any. Where pip knows no CPU build this is 5 GB, and runs on a CPU too.
    """
    wanted = versions()
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    asked = os.environ.get(f"PYTHON{wanted.python.replace('.', '')}") or shutil.which(f"python{wanted.python}")
    found = asked and _python(asked) == wanted.python
    number, python = (wanted.python, str(asked)) if found else (own, sys.executable)
    folder = HERE / number
    inside = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not inside.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    others = [f"{name}=={exact}" for name, exact in wanted.packages.items() if name != "torch"]
    for torch in torches(wanted.packages["torch"]):
        if subprocess.run([inside, "-m", "pip", "install", "-q", torch, *others]).returncode == 0:
            break
    else:
        raise SystemExit(f"colab: for Python {number} pip could not install what versions.txt names; see above")
    subprocess.run([inside, "-m", "pip", "uninstall", "-q", "-y", "mha"], check=True)
    there = _pip(inside, "list", "--format=freeze")
    listed = ", ".join(re.findall(rf"^(?:{'|'.join(wanted.packages)})==\S+", there, re.M | re.I))
    reason = "" if found else f" (Python {wanted.python} was not found)"
    return inside, f"Python {number}{reason}, {listed}"


def torches(colabs: str) -> list[str]:
    """What to ask pip for, one after the other: Colab's torch, the lock's, any that mha runs on.

    >>> torches("2.11.*")[0], torches("2.11.*")[-1]
    ('torch==2.11.*', 'torch>=2.4')
    """
    lock = re.findall(r"^torch==\S+", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.M)
    return [f"torch=={colabs}", *lock, "torch>=2.4"]


def execute(notebook: Any, python: Path, wheel: Path) -> Any:
    """Run the notebook in an empty folder, with that Python, without network; it is changed in place."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as specs:
        kernel = Path(specs) / "kernels" / "colab"
        kernel.mkdir(parents=True)
        argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Colab", "language": "python"}))
        offline = {"MHA_WHEEL": str(wheel), "PIP_NO_INDEX": "1", "MPLBACKEND": _BACKEND}
        quiet = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        ours = {key: value for key, value in os.environ.items() if not key.startswith(("MHA_", "PYTHON"))}
        os.environ["JUPYTER_PATH"] = specs
        NotebookClient(
            notebook, timeout=300, kernel_name="colab", resources={"metadata": {"path": empty}}, store_widget_state=True
        ).execute(env=ours | offline | quiet)
        left = [path.name for path in Path(empty).iterdir()]
    if left:
        raise ValueError(f"the notebook left files behind: {', '.join(left)}")
    return notebook


_BACKEND = "module://matplotlib_inline.backend_inline"  # as Colab sets it


def faults(notebook: Any, chapter: Any) -> Iterator[str]:
    """What differs from the stored chapter, and what a front end of ipywidgets 7 could not show."""
    state = notebook["metadata"].get("widgets", {}).get(STATE, {}).get("state", {})
    yield from widget_faults(state)
    ran = [cell for cell in normalise_but_views(notebook)["cells"] if cell["cell_type"] == "code"][1:]
    stored = [cell for cell in chapter["cells"] if cell["cell_type"] == "code"]
    for number, (cell, kept) in enumerate(zip(ran, stored, strict=True), 1):
        for output in cell["outputs"]:
            if output.get("name") == "stderr":
                yield f"code cell {number}: a message on stderr: {output['text'][:200]!r}"
            view = output.get("data", {}).get(VIEW)
            if view and view["model_id"] not in state:
                yield f"code cell {number}: a live figure without stored state"
        got, want = printed(cell), printed(kept)
        if got != want and "timing" not in tags(kept):
            yield f"code cell {number}: printed {got!r}, the chapter stores {want!r}"
        live = re.search(r"^(explore|lab)\(", cell["source"], re.M)  # last in its cell, so shown
        if live and not any(VIEW in output.get("data", {}) for output in cell["outputs"]):
            yield f"code cell {number}: {live[1]} showed no live figure"


def widget_faults(state: dict[str, Any]) -> Iterator[str]:
    """What is missing for a front end of ipywidgets 7 to show these models."""
    for model in state.values():
        module, number = model["model_module"], model["model_module_version"]
        if not model["model_name"]:
            yield "a widget without a model name"
        if module in CONTROLS and number != CONTROLS[module]:
            yield f"{module} {number}, Colab shows {CONTROLS[module]}"
        elif module not in CONTROLS and module != "anywidget":
            yield f"{module}: Colab does not know this module"
        if model.get("buffers"):
            yield f"{model['model_name']}: binary traits, which Colab drops"
        if module == "anywidget" and not model["state"].get("_esm"):
            yield f"{model['model_name']}: an anywidget without its JavaScript"
        for part in re.findall(r'"IPY_MODEL_(\w+)"', json.dumps(model["state"])):
            if part not in state:
                yield f"{model['model_name']}: made of a widget that is not stored, {part}"


def normalise_but_views(notebook: Any) -> Any:
    """Streams joined as chapters store them; live figures keep their views."""
    views = [[o.get("data", {}).get(VIEW) for o in cell.get("outputs", [])] for cell in notebook["cells"]]
    for cell, kept in zip(normalise(notebook)["cells"], views, strict=True):
        found = [view for view in kept if view]
        for output in cell.get("outputs", []):
            if found and output["output_type"] in ("execute_result", "display_data"):
                output["data"][VIEW] = found.pop(0)
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m book.colab.run", description=__doc__)
    parser.add_argument("--only", help="one chapter, for example 2-2-splitting")
    only = parser.parse_args().only
    python, words = environment()
    print(f"colab: {words}", flush=True)
    failed = []
    notebooks = [path for path in export(HERE / "site") if only in (None, path.stem)]
    if not notebooks:
        raise SystemExit(f"colab: --only must name a chapter, got {only}")
    (wheel,) = (HERE / "site" / "wheels").iterdir()
    for path in notebooks:
        lang, began = path.parent.parent.name, time.monotonic()
        try:
            ran = execute(nbformat.read(path, as_version=4), python, wheel)
            found = list(faults(ran, read(CHAPTERS / path.name)))
        except (CellExecutionError, ValueError) as error:
            found = [str(error)]
        print(f"  {lang} {path.stem:<16} {time.monotonic() - began:5.1f} s  {'; '.join(found) or 'ok'}", flush=True)
        failed += [f"{lang}/{path.stem}"] if found else []
    if failed:
        raise SystemExit(f"colab: {', '.join(failed)} failed on {words}")
    print(f"colab: {len(notebooks)} notebooks ran offline, each from an empty folder, on {words}")


def _python(command: str) -> str | None:
    """Its version, "3.13", or None where it does not run."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([command, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def _pip(python: Path, *arguments: str) -> str:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
