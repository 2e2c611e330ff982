"""The bill of materials names everything that others made, with version and licence."""

import json
import re
from importlib.metadata import metadata

import pytest
from fontTools.ttLib import TTFont

from book import bill
from book.notebooks import ROOT

KNOWN = json.loads(bill.KNOWN.read_text(encoding="utf-8"))
VENDORED = {entry["name"]: entry for entry in KNOWN["vendored"]}
FONTS = sorted(
    path for path in [*ROOT.glob("book/**/*.woff2"), *ROOT.glob("mha/**/*.otf")] if "_build" not in path.parts
)


def package(name, *, licence="MIT"):
    licenses = [{"license": {"id": licence}}] if licence else []
    return {"bom-ref": f"{name}==1", "name": name, "version": "1", "licenses": licenses}


def there(*packages, **needs):
    """What an environment holds; `a=["b"]`: a needs b."""
    lines = [{"ref": p["bom-ref"], "dependsOn": [f"{n}==1" for n in needs.get(p["name"], [])]} for p in packages]
    return {"components": list(packages), "dependencies": lines, "metadata": {"component": {"bom-ref": "book"}}}


def named(made):
    return [component["name"] for component in made["components"]]


def test_the_bill_holds_the_lock_and_what_it_needs_and_nothing_else_of_this_machine():
    found = there(package("Torch_x"), package("cuda"), package("mine"), **{"Torch_x": ["cuda"]})
    made = bill.bill(found, ["torch-x"], [], {})
    assert named(made) == ["Torch_x", "cuda"]
    assert made["dependencies"] == [
        {"ref": "book", "dependsOn": ["Torch_x==1"]},
        {"ref": "Torch_x==1", "dependsOn": ["cuda==1"]},
        {"ref": "cuda==1", "dependsOn": []},
    ]


def test_a_package_of_the_lock_that_is_not_here_is_named():
    with pytest.raises(SystemExit, match=r"not installed here, though in requirements\.txt: gone"):
        bill.bill(there(package("a")), ["a", "gone"], [], {})


def test_a_package_without_a_licence_is_named_unless_somebody_read_it():
    found = there(package("quiet", licence=None))
    with pytest.raises(SystemExit, match="read the licences of quiet and"):
        bill.bill(found, ["quiet"], [], {})
    made = bill.bill(found, ["quiet"], [], {"quiet": "ISC"})
    assert made["components"][0]["licenses"] == [{"expression": "ISC"}]


@pytest.mark.parametrize("name", bill.locked())
def test_each_package_of_the_lock_tells_its_licence_or_somebody_read_it(name):
    """So that a change of the lock shows it, and not the next release."""
    said = metadata(name)
    classified = [line for line in said.get_all("Classifier", []) if re.match(r"License :: .+ :: ", line)]
    short = re.fullmatch(r"[\w.+-]+", said.get("License") or "")
    assert said.get("License-Expression") or classified or short or name in KNOWN["read"]


def test_what_is_vendored_comes_to_it_with_version_licence_and_place():
    component = bill.bill(there(), [], [VENDORED["KaTeX"]], {})["components"][0]
    assert (component["name"], component["version"]) == ("KaTeX", VENDORED["KaTeX"]["version"])
    assert component["licenses"] == [{"license": {"id": "MIT"}}]
    assert component["evidence"]["occurrences"] == [{"location": "book/katex"}, {"location": "book/assets/katex"}]


def test_katex_has_the_version_that_the_bill_says():
    script = (ROOT / "book" / "katex" / "katex.min.js").read_text(encoding="utf-8")
    assert set(re.findall(r'version:"([\d.]+)"', script)) == {VENDORED["KaTeX"]["version"]}


@pytest.mark.parametrize("path", [path for path in FONTS if "katex" not in path.parts], ids=lambda path: path.name)
def test_a_vendored_font_has_the_version_that_the_bill_says(path):
    font = TTFont(path)
    family = font["name"].getDebugName(1).replace("MHA Sans SC", "Noto Sans CJK SC")
    entry = next(entry for name, entry in VENDORED.items() if family.startswith(name))
    assert f"{font['head'].fontRevision:.3f}" == entry["version"]
    assert path.parent.relative_to(ROOT).as_posix() in entry["at"]


def test_every_place_with_something_of_others_is_in_the_bill_with_its_licence_beside_it():
    licences = [*ROOT.glob("book/**/LICENSE"), *ROOT.glob("book/**/OFL.txt"), *ROOT.glob("mha/**/OFL.txt")]
    places = {place for entry in VENDORED.values() for place in entry["at"]}
    assert {path.parent.relative_to(ROOT).as_posix() for path in licences} <= places
    assert all(any(path.is_relative_to(ROOT / place) for place in places) for path in FONTS)
    told = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert [
        name for name, entry in VENDORED.items() if name not in told or not any(p in told for p in entry["at"])
    ] == []
