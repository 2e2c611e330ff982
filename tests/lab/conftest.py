"""arithmetic.js, run by Node and by Chromium, as a function: lab(name, *arguments) → what it returns."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mha.widgets.lab import source
from tests.site.conftest import browser

__all__ = ["browser"]  # one for all: Playwright runs once in a process

ARITHMETIC = source.read("arithmetic.js")
# Beside what the module exports: everything for one state at once. Typed arrays become lists.
HARNESS = """
const plain = (key, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
const answer = (line) => {
  const called = { ...lab, NAMES: () => lab.NAMES, STEPS: () => lab.STEPS, TRAINED: () => lab.TRAINED,
    pass(raw, trained, given) {
      const { state, said } = lab.clean(raw, given), parameters = lab.parameters(state, trained, given);
      return { state, said, trace: lab.run(state, parameters) };
    },
    explain(raw, trained, given, wanted) {
      const { state, trace } = called.pass(raw, trained, given), parameters = lab.parameters(state, trained, given);
      return wanted.map(([name, index]) => lab.whence(trace, parameters, state, name, index));
    } };
  try { const [name, given] = JSON.parse(line); return JSON.stringify({ result: called[name](...given) }, plain); }
  catch (error) { return JSON.stringify({ error: String(error.stack) }); }
};
"""
NODE = """
import { createInterface } from "node:readline";
const text = await (await import("node:fs/promises")).readFile(process.argv[1], "utf8");
const lab = await import("data:text/javascript;base64," + Buffer.from(text).toString("base64"));
%s
for await (const line of createInterface({ input: process.stdin })) console.log(answer(line));
"""
CHROMIUM = """
async (text) => {
  const lab = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  %s
  window.answer = answer;
}
"""
Call = Callable[..., Any]


def find_node() -> str:
    found = shutil.which("node")
    if not found:
        pytest.exit("the lab was not tested: no Node found. Install it (on Debian: apt install nodejs)", returncode=1)
    return found


@pytest.fixture(scope="session")
def node() -> Iterator[Call]:
    """A function of arithmetic.js, run by Node."""
    path = source.FOLDER / "arithmetic.js"
    command = [find_node(), "--input-type=module", "-e", NODE % HARNESS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8") as run:

        def call(name: str, *arguments: Any) -> Any:
            run.stdin.write(json.dumps([name, arguments]) + "\n")
            run.stdin.flush()
            return _result(run.stdout.readline())

        yield call
        run.stdin.close()


@pytest.fixture(scope="session")
def chromium(browser) -> Iterator[Call]:
    """The same, run by Chromium on an empty page."""
    page = browser.new_page()
    page.evaluate(CHROMIUM % HARNESS, ARITHMETIC)
    yield lambda name, *arguments: _result(page.evaluate("line => answer(line)", json.dumps([name, arguments])))
    page.close()


@pytest.fixture(params=["node", "chromium"])
def lab(request: pytest.FixtureRequest) -> Call:
    return request.getfixturevalue(request.param)


def _result(line: str) -> Any:
    told = json.loads(line)
    assert "error" not in told, told["error"]
    return told.get("result")
