"""What the book is made of, as CycloneDX: the lock's packages as they are installed here, and what others wrote
that lies in this repository, each with its version and licence.

bill.json knows what nothing else tells: what is `vendored`, and licences that somebody `read` in the files of
packages whose metadata names none."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from book.address import ROOT

KNOWN = ROOT / "book" / "bill.json"
TOOL = ROOT / "_build" / "tools" / "bin" / "cyclonedx-py"  # an environment of its own: make release-tools


def write(file: Path, number: str) -> None:
    """Write the bill of version `number`. SystemExit where a package is missing here or tells no licence."""
    options = ("--pyproject", "pyproject.toml", "--output-reproducible", "--of", "JSON", "-o", "-")
    run = subprocess.run([TOOL, "environment", *options, sys.executable], cwd=ROOT, capture_output=True, check=False)
    if run.returncode:
        raise SystemExit(f"release: cyclonedx-py failed\n{run.stderr.decode()[-2000:]}")
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    said = bill(json.loads(run.stdout), locked(), known["vendored"], known["read"])
    said["metadata"]["component"]["version"] = number
    file.write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def locked() -> list[str]:
    """The packages that requirements.txt names."""
    return re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.M)


def bill(
    there: dict[str, Any], names: Iterable[str], vendored: list[dict[str, Any]], read: dict[str, str]
) -> dict[str, Any]:
    """Of all that is installed `there` what the packages `names` need, with the licences that somebody `read`.

    What only this machine has beside them is left out; what is `vendored` comes to it.
    """
    packages = {_name(component["name"]): component for component in there["components"]}
    if missing := sorted({_name(name) for name in names} - packages.keys()):
        raise SystemExit(f"release: not installed here, though in requirements.txt: {', '.join(missing)}")
    needs = {entry["ref"]: entry.get("dependsOn", []) for entry in there["dependencies"]}
    direct = [packages[_name(name)]["bom-ref"] for name in names]
    wanted, left = set(), list(direct)
    while left:
        if (ref := left.pop()) not in wanted:
            wanted.add(ref)
            left += needs[ref]
    components = [component for component in there["components"] if component["bom-ref"] in wanted]
    for component in components:
        if told := read.get(_name(component["name"])):
            component["licenses"] = [{"expression": told}]
    if silent := [component["name"] for component in components if not component.get("licenses")]:
        raise SystemExit(f"release: read the licences of {', '.join(silent)} and write them into book/bill.json")
    others = [_vendored(entry) for entry in vendored]
    book = {
        "ref": there["metadata"]["component"]["bom-ref"],
        "dependsOn": direct + [each["bom-ref"] for each in others],
    }
    dependencies = [book, *(entry for entry in there["dependencies"] if entry["ref"] in wanted)]
    return there | {"components": components + others, "dependencies": dependencies}


def _vendored(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "library", "bom-ref": f"{entry['name']}=={entry['version']}", "name": entry["name"],
        "version": entry["version"], "licenses": [{"license": {"id": entry["license"]}}],
        "externalReferences": [{"type": "vcs", "url": entry["from"]}],
        "evidence": {"occurrences": [{"location": place} for place in entry["at"]]},
    }  # fmt: skip


def _name(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()
