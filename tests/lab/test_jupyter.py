"""In JupyterLab, with a real kernel: what Python sets the page shows, what the page moves Python sees."""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from playwright.sync_api import expect

from book.notebooks import ROOT

CELLS = [
    "from mha.widgets import lab\nlive = lab(h=2, d_k=4)\nlive",
    "live.h = 8\nlive.mask = 'causal'",
    "print('now', live.h, live.scale, live.mask)",
    "print('then', live.weights, live.h, live.step)",
]


@pytest.fixture
def notebook(tmp_path):
    """The address of a notebook with CELLS, in a JupyterLab of its own."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), tmp_path / "live.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    places = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    env = {**os.environ, **places, "PYTHONPATH": str(ROOT), "MHA_LANG": "en", "JUPYTER_TOKEN": token}
    env = {name: value for name, value in env.items() if name not in ("MHA_FRAMES", "MHA_STILL")}
    flags = ["--no-browser", "--allow-root", "--expose-app-in-browser", f"--ServerApp.root_dir={tmp_path}",
             "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
             "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]  # fmt: skip
    log = (tmp_path / "server.log").open("w")
    with subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *flags], env=env, stdout=log, stderr=subprocess.STDOUT
    ) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(240):
                assert server.poll() is None, (tmp_path / "server.log").read_text()
                try:
                    json.load(urllib.request.urlopen(f"{address}/api?token={token}", timeout=5))
                    break
                except OSError:
                    time.sleep(0.25)
            yield f"{address}/lab/tree/live.ipynb?token={token}"
        finally:
            server.terminate()
            server.wait(30)


def test_the_traits_go_both_ways(notebook, browser):
    with browser.new_page(viewport={"width": 1280, "height": 1600}) as page:
        page.set_default_timeout(90_000)
        expect.set_options(timeout=60_000)
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(notebook)

        def run(cell):
            prompt = page.locator(".jp-Notebook .jp-CodeCell .jp-InputPrompt").nth(cell)
            for _ in range(5):  # JupyterLab drops a command that comes while it is still arranging itself
                page.locator(".jp-Notebook .jp-CodeCell .jp-InputArea-editor").nth(cell).click()
                page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")
                with contextlib.suppress(AssertionError):
                    expect(prompt).not_to_have_text("[ ]:", timeout=10_000)
                    return
            pytest.fail(f"cell {cell} did not run")

        page.wait_for_selector(".jp-Notebook .jp-CodeCell >> nth=3")
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status='idle']", state="attached")
        page.evaluate("window.jupyterapp.restored.then(() => true)")
        run(0)
        h = page.locator("[data-control='h']")
        expect(h).to_have_value("2")

        run(1)  # Python sets h
        expect(h).to_have_value("8")

        h.press("ArrowLeft")  # the reader moves it back by one
        page.locator("[data-control='scale']").uncheck()
        expect(h).to_have_value("7")
        run(2)
        expect(page.locator(".jp-OutputArea-output", has_text="now ")).to_have_text("now 7 False causal\n")

        page.locator("[data-control='weights']").select_option("trained")  # the kernel sends them; their h is 4
        page.locator("[data-control='step']").fill("6")  # meanwhile
        expect(h).to_be_disabled()
        run(3)
        expect(page.locator(".jp-OutputArea-output", has_text="then ")).to_have_text("then trained 4 6\n")
    assert complaints == []
