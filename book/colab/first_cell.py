# @title
# Installs this book's own mha, only if it is not here yet; nothing that is here already is replaced
import importlib
import importlib.metadata
import os
import re
import subprocess
import sys

LANG = ""
VERSION = ""
WHEEL = ""
OLD_PYTHON = ""
NO_TORCH = ""
FAILED = ""


def version(name: str) -> "str | None":
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def editable() -> bool:  # somebody works on mha itself here: leave it alone
    return "editable" in (importlib.metadata.distribution("mha").read_text("direct_url.json") or "")


def install(*what: str) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries=1", "--timeout=30"]
    done = subprocess.run([*pip, *what], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(FAILED + "\n\n" + done.stderr.strip()[-800:])
    importlib.invalidate_caches()


if sys.version_info < (3, 10):  # noqa: UP036
    raise RuntimeError(OLD_PYTHON + " Python " + sys.version.split()[0])
if version("torch") is None:
    raise RuntimeError(NO_TORCH)

if version("mha") is None or (version("mha") != VERSION and not editable()):
    name = "mha-" + VERSION + "-py3-none-any.whl"
    beside = [os.path.join(folder, name) for folder in (".", "../wheels", "../../wheels")]  # a copy for offline use
    install("--no-deps", os.environ.get("MHA_WHEEL") or next(filter(os.path.exists, beside), WHEEL or name))
    for module in [module for module in sys.modules if module.split(".")[0] == "mha"]:
        del sys.modules[module]  # an older mha
for line in importlib.metadata.requires("mha") or ():
    if ";" not in line and version(re.split(r"[^\w.-]", line)[0]) is None:
        install(line)

import mha  # noqa: E402

os.environ["MHA_LANG"] = LANG
mha.set_language(LANG)
print("mha", version("mha"), "✓")
