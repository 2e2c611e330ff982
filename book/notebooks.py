"""Run the chapters and store what they print: python -m book.notebooks [chapters/2-2-splitting.ipynb …].

A re-run of unchanged code changes no byte: no times, no execution metadata, no widget state, no cell ids.
"""

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parent.parent
CHAPTERS = ROOT / "chapters"
LIVE = ("explore(", "lab(")  # how a live figure names itself
KEPT = ("tags", "mystnb")  # cell metadata that means something


def read(path: Path) -> Any:
    """The notebook at `path`, in format 4.4: without cell ids, which every tool would make anew."""
    notebook = nbformat.read(path, as_version=4)
    return _without_ids(notebook)


def run(path: Path) -> Any:
    """Execute the notebook at `path` and return it, normalised. CellExecutionError where a cell fails."""
    notebook = read(path)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    return normalise(notebook)


def normalise(notebook: Any) -> Any:
    """Only what the author wrote and the code printed."""
    _without_ids(notebook)
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook["cells"]:
        cell["metadata"] = {key: cell["metadata"][key] for key in KEPT if key in cell["metadata"]}
        if "outputs" in cell:
            cell["outputs"] = _joined(cell["outputs"])
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    return notebook


def keep_timings(new: Any, old: Any) -> Any:
    """Keep the stored outputs of cells tagged `timing` whose source is the same: they differ from run to run."""
    for fresh, stored in zip(new["cells"], old["cells"], strict=False):
        timed = "timing" in fresh["metadata"].get("tags", ())
        if timed and stored.get("outputs") and stored["source"] == fresh["source"]:
            fresh["outputs"] = stored["outputs"]
    return new


def printed(cell: Any) -> str:
    """The text that a code cell put out; of figures, live or not, nothing."""
    parts = []
    for output in cell["outputs"]:
        text = output.get("text") or output.get("data", {}).get("text/plain", "")
        if "image/png" not in output.get("data", {}) and not text.startswith(LIVE):
            parts.append(text)
    return "".join(parts)


def write(notebook: Any, path: Path) -> None:
    """Store the notebook; its bytes depend on its content alone."""
    text = nbformat.writes(notebook) + "\n"
    path.write_text(text, encoding="utf-8")


def _joined(outputs: list[Any]) -> list[Any]:
    """One output for what was printed in a row: how it arrives in pieces depends on the machine's load."""
    joined: list[Any] = []
    for output in outputs:
        if joined and output["output_type"] == "stream" and output.get("name") == joined[-1].get("name"):
            joined[-1]["text"] += output["text"]
        else:
            joined.append(output)
    return joined


def _without_ids(notebook: Any) -> Any:
    notebook["nbformat_minor"] = 4
    for cell in notebook["cells"]:
        cell.pop("id", None)
    return notebook


def main(names: list[str]) -> None:
    os.environ.update(MHA_LANG="zh", MHA_STILL="1", PYTHONPATH=str(ROOT))  # stored figures: the book's first language
    paths = [Path(name).resolve() for name in names] or sorted(CHAPTERS.glob("*.ipynb"))
    failed = []
    for path in paths:
        before = path.read_bytes()
        print(f"{path.name} … ", end="", flush=True)
        try:
            write(keep_timings(run(path), read(path)), path)
        except CellExecutionError as error:
            print(f"failed\n{error}")
            failed.append(path.name)
            continue
        print("unchanged" if path.read_bytes() == before else "stored")
    if failed:
        raise SystemExit(f"notebooks: {', '.join(failed)} failed and kept their old outputs")


if __name__ == "__main__":
    main(sys.argv[1:])
