"""Lighthouse on the built site, as a phone on a slow line sees it: python -m book.audit [--some].

Serves _site compressed, measures every page in both languages (or one of each kind), prints the worst first and
exits with 1 if a page falls short. Needs Node; Lighthouse itself is pinned in book/lighthouse and installed once.
"""

import argparse
import gzip
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from book.browser import NAMES
from book.languages import LANGUAGES
from book.site import ROOT, SITE, build

WANTED = {"performance": 95, "accessibility": 100, "best-practices": 100, "seo": 100}
BUDGET = 250 * 1024
TRIES = 3  # a busy machine makes a page look slow, never fast: the best run counts
SOME = (
    "zh/chapters/2-3-attention.html",
    "en/chapters/cover.html",
    "zh/chapters/glossary.html",
    "en/search.html",
)


def pages(site: Path = SITE) -> list[str]:
    """Every page in both languages and the list of versions, as seen from the site's root (which only leads on)."""
    found = [path for lang in LANGUAGES for path in sorted((site / lang).rglob("*.html")) if path.name != "index.html"]
    return ["versions.html", *(path.relative_to(site).as_posix() for path in found)]


def measure(address: str, names: list[str]) -> list[dict[str, Any]]:
    """Lighthouse's results for the pages `names` under `address`, the best of several tries."""
    results: dict[str, dict[str, Any]] = {}
    for _ in range(TRIES):
        left = [name for name in names if name not in results or faults(results[name])]
        if not left:
            break
        for result in _run([f"{address}/{name}" for name in left]):
            name = result["address"].removeprefix(f"{address}/")
            if name not in results or sum(result["scores"].values()) >= sum(results[name]["scores"].values()):
                results[name] = result | {"page": name}
    return list(results.values())


def faults(result: dict[str, Any]) -> list[str]:
    """Where a page falls short. Empty for a page that is as it should be."""
    short = [f"{kind} {result['scores'].get(kind)} < {least}" for kind, least in WANTED.items()
             if (result["scores"].get(kind) or 0) < least]  # fmt: skip
    short += [result["error"]] if result["error"] else []
    short += [f"{result['bytes'] / 1024:.0f} KB > 250 KB"] if (result["bytes"] or 0) > BUDGET else []
    short += [f"layout shift {result['shift']:.3f}"] if (result["shift"] or 0) >= 0.01 else []
    return short


def table(results: list[dict[str, Any]]) -> str:
    """One line a page, the worst first."""
    lines = [f"{'page':34} perf a11y best  seo    KB  paint    LCP    CLS   TBT"]
    for r in sorted(results, key=lambda r: (sum(r["scores"].values()), -(r["bytes"] or 0))):
        scores = " ".join(f"{r['scores'].get(kind, 0):4d}" for kind in WANTED)
        numbers = [(r[key] or 0) / scale for key, scale in (("bytes", 1024), ("paint", 1000), ("largest", 1000))]
        lines.append(
            f"{r['page']:34} {scores} {numbers[0]:5.0f} {numbers[1]:5.2f}s {numbers[2]:5.2f}s "
            f"{r['shift'] or 0:6.3f} {r['blocked'] or 0:3.0f}ms"
        )
        lines += [f"    {fault}" for fault in [*faults(r), *(r["faults"] if faults(r) else [])]]
    return "\n".join(lines)


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The site on a free port, text compressed as a web host does it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: _Compressed(*a, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


class _Compressed(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        kind = self.guess_type(str(path))
        if not path.is_file():
            self.send_error(404)
            return
        text = kind.startswith("text/") or kind.endswith(("javascript", "json", "svg+xml"))
        body = _packed(path, path.stat().st_mtime_ns) if text else path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Length", str(len(body)))
        if text:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about each request."""


@cache
def _packed(path: Path, _changed: int) -> bytes:
    return gzip.compress(path.read_bytes(), 6)


def _run(addresses: list[str]) -> list[dict[str, Any]]:
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not browser:
        raise SystemExit(
            "audit: no Chromium found. Install it (on Debian: apt install chromium) or name it: CHROMIUM=…"
        )
    command = ["node", "run.mjs", browser, *addresses]
    run = subprocess.run(command, cwd=node_tools(), capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"audit: Lighthouse failed\n{run.stderr[-2000:]}")
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


@cache
def node_tools() -> Path:
    """The folder with Lighthouse, and the Puppeteer that it brings, installed as locked."""
    source, home = ROOT / "book" / "lighthouse", ROOT / "_build" / "lighthouse"
    lock, installed = source / "package-lock.json", home / "installed.json"
    if not shutil.which("npm"):
        raise SystemExit("audit: Lighthouse needs Node and npm. Install them (on Debian: apt install nodejs npm)")
    home.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        shutil.copy(path, home)
    if not installed.exists() or installed.read_bytes() != lock.read_bytes():
        print("audit: installing Lighthouse", flush=True)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], cwd=home, check=True)
        shutil.copy(lock, installed)
    return home


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m book.audit", description=__doc__)
    parser.add_argument("--some", action="store_true", help="one page of each kind")
    parser.add_argument("pages", nargs="*", help="these pages only, for example zh/chapters/cover.html")
    options = parser.parse_args()
    build()
    with served(SITE) as address:
        results = measure(address, options.pages or (list(SOME) if options.some else pages()))
    print(table(results))
    short = [r for r in results if faults(r)]
    print(
        f"audit: {len(results)} pages, {len(short)} fall short"
        if short
        else f"audit: {len(results)} pages, all as they should be"
    )
    sys.exit(bool(short))


if __name__ == "__main__":
    main()
