"""Test mha by itself, as someone who installed only the package: python book/alone.py.

Any Python that mha supports, on any system; TORCH=2.4.0 asks for that version of torch. Needs nothing but Python:
the environment is its own, in _build/alone, and the tests run on the installed package, not on this folder's.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> None:
    torch = os.environ.get("TORCH") or ""
    place = ROOT / "_build" / "alone" / f"{sys.version_info.major}.{sys.version_info.minor}-{torch or 'newest'}"
    python = place / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(place / "venv", with_pip=True)
    for name in ("source", "tests"):
        shutil.rmtree(place / name, ignore_errors=True)
    _copy(("pyproject.toml", "README.md", "LICENSE", "mha"), place / "source")
    _copy(("tests/__init__.py", "tests/mha"), place)
    wanted = [str(place / "source"), "pytest", "hypothesis", *([f"torch=={torch}"] if torch else [])]
    _run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted)
    found = "import mha, platform, torch; print('mha alone:', mha.__file__, platform.platform(), torch.__version__)"
    _run(python, "-c", found, cwd=place)
    _run(python, "-m", "pytest", "-q", "tests/mha", cwd=place)
    _run(python, "-m", "pytest", "-q", "--doctest-modules", "--pyargs", "mha", cwd=place)


def _copy(names: tuple[str, ...], to: Path) -> None:
    for name in names:
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / name, target)


def _run(python: Path, *arguments: str, cwd: Path = ROOT) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = subprocess.run([str(python), *arguments], cwd=cwd, env=environment, check=False)
    if run.returncode:
        raise SystemExit(run.returncode)


if __name__ == "__main__":
    main()
