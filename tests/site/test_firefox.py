"""Firefox, where there is one: every page is quiet, and its live figures and its lab move."""

import json
import os
import shutil
import subprocess

import pytest

from book.audit import node_tools
from book.languages import LANGUAGES
from tests.site.conftest import pages
from tests.site.test_explore import LIVE

FIREFOX = os.environ.get("FIREFOX") or shutil.which("firefox") or shutil.which("firefox-esr")
PLACES = [f"{lang}/{page}" for lang in LANGUAGES for page in [*pages(), "search.html?q=softmax"]]


@pytest.mark.skipif(FIREFOX is None, reason="no Firefox here (on Debian: apt install firefox-esr); CI has one")
def test_every_page_is_quiet_in_firefox_and_what_moves_moves(address):
    run = subprocess.run(
        ["node", "firefox.mjs", FIREFOX, address, *PLACES],
        cwd=node_tools(), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    seen = {page["path"]: page for page in map(json.loads, run.stdout.splitlines())}
    assert list(seen) == PLACES
    assert {path: page["complaints"] for path, page in seen.items() if page["complaints"]} == {}
    assert [path for path, page in seen.items() if page["wide"] > 390 or page["broken"]] == []
    assert [path for path, page in seen.items() if not all(page["moved"])] == []
    assert {path for path, page in seen.items() if page["moved"]} == {f"{lang}/{p}" for lang in LANGUAGES for p in LIVE}
    labs = {path: page["step"] for path, page in seen.items() if page["step"] is not None}
    assert len(labs) == 2 * 8
    assert all(labs.values()), labs
