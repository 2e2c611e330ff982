"""Build both languages into _site/: python -m book.site [--serve]."""

import argparse
import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from filelock import FileLock

from book import versions
from book.address import open_in, repository, site_url
from book.door import build_door
from book.export import export
from book.finish import finish, secure
from book.languages import LANGUAGES, SPHINX
from book.paper import offer

ROOT = Path(__file__).parent.parent
SITE = ROOT / "_site"
SOURCES = ("chapters", "mha", "book", "_config.yml", "_toc.yml", "references.bib", "requirements.txt", "pyproject.toml")


def digest(root: Path = ROOT) -> str:
    """Changes when anything that the site is made of changes."""
    total = hashlib.sha256(repr((repository(), site_url(), open_in("", ""))).encode())  # pages name these
    for name in SOURCES:
        start = root / name
        paths = sorted(start.rglob("*")) if start.is_dir() else [start]
        for path in paths:
            if path.is_file() and "__pycache__" not in path.parts and ".ipynb_checkpoints" not in path.parts:
                total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def build(site: Path = SITE, *, strict: bool = True) -> None:
    """Build both languages side by side, unless nothing has changed. SystemExit with a reason on failure."""
    (ROOT / "_build").mkdir(exist_ok=True)
    with FileLock(ROOT / "_build" / "site.lock"):  # a second builder waits, and finds nothing left to do
        _build(site, strict=strict)


def _build(site: Path, *, strict: bool) -> None:
    now, stamp = digest(), site / ".digest"
    if stamp.exists() and stamp.read_text() == now:
        print("site: nothing has changed since the last build")
        return
    stamp.unlink(missing_ok=True)
    began = time.monotonic()
    print(
        f"site: building {', '.join(LANGUAGES)}; the first build runs every chapter and takes a few minutes", flush=True
    )
    logs = {lang: ROOT / "_build" / f"{lang}.log" for lang in LANGUAGES}
    runs = {lang: _start(lang, site / lang, logs[lang], strict) for lang in LANGUAGES}
    while any(run.poll() is None for run in runs.values()):
        time.sleep(1)
        _progress(logs, began)
    print()
    for lang, run in runs.items():
        if run.returncode:
            tail = logs[lang].read_text("utf-8", "replace").splitlines()[-60:]
            raise SystemExit(
                "\n".join(tail) + f"\nsite: the {lang} build failed; the whole log is in {logs[lang].relative_to(ROOT)}"
            )
    build_door(site)
    export(site)
    versions.sign(site)
    secure(site)
    stamp.write_text(now)
    offer.fill(site, there=offer.current(site))
    print(f"site: done in {time.monotonic() - began:.0f} s")


def build_language(lang: str, out: Path, *, strict: bool, only: str | None = None) -> int:
    """One language, in this process; `only` one page of it, for a quick look."""
    from jupyter_book.sphinx import build_sphinx

    overrides = {"language": SPHINX[lang], "book_languages": list(LANGUAGES), "latex_individualpages": False}
    if only:
        toc = ROOT / "_build" / "only.yml"
        toc.parent.mkdir(exist_ok=True)
        toc.write_text(f"format: jb-book\nroot: {only.removesuffix('.ipynb')}\n", encoding="utf-8")
        overrides["external_toc_path"] = str(toc)
    name = f"{lang}-only" if only else lang
    raw = ROOT / "_build" / "html" / name
    shutil.rmtree(raw, ignore_errors=True)  # no page outlives its chapter; doctrees keep this quick
    result = build_sphinx(
        str(ROOT), str(raw), noconfig=True, path_config=str(ROOT / "_config.yml"), confoverrides=overrides,
        doctreedir=str(ROOT / "_build" / "doctrees" / name),
        warningiserror=strict, keep_going=strict,
    )  # fmt: skip
    if result == 0:
        finish(raw, out, lang)
    return result if isinstance(result, int) else 1


def serve(site: Path = SITE, port: int = 8000, host: str = "127.0.0.1") -> None:
    """Serve the site on `port` or the next free one, and print the address."""
    handler = functools.partial(_Quiet, directory=str(site))
    for candidate in range(port, port + 50):
        try:
            server = http.server.ThreadingHTTPServer((host, candidate), handler)
        except OSError:
            print(f"site: port {candidate} is busy, trying {candidate + 1}", flush=True)
            continue
        break
    else:
        raise SystemExit(f"site: no free port from {port} to {port + 49}; stop one of the servers there and try again")
    print(f"site: http://127.0.0.1:{candidate}/  (Ctrl-C stops it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("\nsite: stopped")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about each request."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Where nothing is, the site's own page says so, as on a host."""
        lost = Path(self.directory) / "404.html"
        if code != 404 or not lost.exists():
            return super().send_error(code, message, explain)
        body = lost.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _start(lang: str, out: Path, log: Path, strict: bool) -> "subprocess.Popen[bytes]":
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "book.site", "--language", lang, "--out", str(out)]
    command += [] if strict else ["--lenient"]
    environment = {"OMP_NUM_THREADS": "1"} | os.environ  # two languages at once: threads that wait for one another spin
    with log.open("wb") as stream:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stream, stderr=subprocess.STDOUT)


def _progress(logs: dict[str, Path], began: float) -> None:
    last = {}
    for lang, log in logs.items():
        plain = re.sub(r"\x1b\[[\d;]*m|.*IPKernelApp.*", "", log.read_text("utf-8", "replace").replace("\r", "\n"))
        lines = [line for line in plain.splitlines() if line.strip()]
        last[lang] = lines[-1].replace(f"{ROOT}/", "")[:60] if lines else "…"
    line = f"  {time.monotonic() - began:4.0f} s  " + "   ".join(f"{lang}: {text}" for lang, text in last.items())
    if sys.stdout.isatty():
        print(f"\r{line:<150}", end="", flush=True)
    elif int(time.monotonic() - began) % 15 == 0:
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m book.site", description=__doc__)
    parser.add_argument("--serve", action="store_true", help="serve the site after building it")
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000), help="first port to try")
    parser.add_argument("--language", choices=LANGUAGES, help="build this language alone, in this process")
    parser.add_argument("--out", type=Path, default=SITE)
    parser.add_argument("--only", help="with --language: one page, for example chapters/2-2-splitting.ipynb")
    parser.add_argument("--lenient", action="store_true", help="warnings are not errors")
    options = parser.parse_args()
    if options.language:
        sys.exit(build_language(options.language, options.out, strict=not options.lenient, only=options.only))
    build(options.out, strict=not options.lenient)
    if options.serve:
        serve(options.out, options.port, os.environ.get("BOOK_HOST") or "127.0.0.1")  # a container's must be 0.0.0.0


if __name__ == "__main__":
    main()
