"""The browser that tests look with and that prints the book."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# No background traffic: a run asks nobody for anything
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip


def find_chromium(playwright: Playwright) -> str:
    """An installed Chromium, or the one Playwright fetches. SystemExit, naming what to install, without one."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    own = playwright.chromium.executable_path
    if not found and not Path(own).exists():
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
    if not found and not Path(own).exists():
        raise SystemExit(
            "no Chromium found and Playwright could not fetch one. Install it (on Debian: apt install chromium) "
            "or name it: CHROMIUM=/path/to/chromium"
        )
    return found or own
