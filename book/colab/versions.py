"""What Colab has: the file versions.txt, and whether Colab has moved on since: python -m book.colab.versions."""

import datetime
import os
import re
import urllib.request
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "versions.txt"
SOURCE = "https://raw.githubusercontent.com/googlecolab/backend-info/main/"  # Colab's own lists; COLAB_INFO overrides
KEEPS = 120  # days after which versions that nobody looked at are doubted


class Versions(NamedTuple):
    """`read` says when somebody looked, `python` is "3.13", `packages` maps names to "7.7.1" or "2.1.*"."""

    read: datetime.date
    python: str
    packages: dict[str, str]


def versions(file: Path = FILE) -> Versions:
    """The versions in the file. ValueError where a line is not understood or the date or Python is missing."""
    said: dict[str, str] = {}
    packages = {}
    for line in filter(None, map(str.strip, file.read_text(encoding="utf-8").splitlines())):
        if comment := re.fullmatch(r"# (read|python): (\S+)", line):
            said[comment[1]] = comment[2]
        elif pinned := re.fullmatch(r"([a-z-]+)==([\w.*]+)", line):
            packages[pinned[1]] = pinned[2]
        elif not line.startswith("#"):
            raise ValueError(f"{file.name}: a line must read name==version, got {line!r}")
    for word in ("read", "python"):
        if word not in said:
            raise ValueError(f'{file.name} must hold a line "# {word}: …"')
    return Versions(datetime.date.fromisoformat(said["read"]), said["python"], packages)


def drift(known: Versions, freeze: str, system: str) -> list[str]:
    """What differs between the known versions and Colab's lists (pip-freeze.txt, os-info.txt), one line each."""
    found = re.search(r"^Python (\d+\.\d+)", system, re.M)
    theirs = {"python": found[1] if found else "nothing"}
    for name, exact, link in re.findall(r"^([\w.-]+)(?:==(\S+)| @ (\S+))$", freeze, re.M):
        built = re.search(r"/[\w.]+-(\d[\w.]*?)(?:%2B|\+|-|\.tar)", link)
        theirs[name.lower().replace("_", "-")] = exact or (built[1] if built else link)
    lines = []
    for name, ours in {"python": known.python, **known.packages}.items():
        got = theirs.get(name, "nothing")
        if got != ours and not (ours.endswith(".*") and got.startswith(ours[:-1])):
            lines.append(f"{name}: the file says {ours}, Colab has {got}")
    return lines


def main() -> None:
    known = versions()
    source = os.environ.get("COLAB_INFO") or SOURCE
    try:
        freeze, system = (_fetch(f"{source}{name}") for name in ("pip-freeze.txt", "os-info.txt"))
    except OSError as error:
        raise SystemExit(f"colab-drift: {source} does not answer ({error}); nothing was compared") from None
    lines = drift(known, freeze, system)
    age = (datetime.date.today() - known.read).days
    if age > KEEPS:
        lines.append(f"nobody has looked for {age} days (more than {KEEPS})")
    if lines:
        raise SystemExit(
            "colab-drift: Colab has moved\n  " + "\n  ".join(lines) + f"\nput the new versions and today's date into "
            f"book/colab/{FILE.name}, run make colab, and mend what breaks"
        )
    print(f"colab-drift: Colab is as {FILE.name} says (looked at {known.read}, {age} days ago)")


def _fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


if __name__ == "__main__":
    main()
