"""The image, the dev container and Binder name what is there."""

import json
import re

import yaml

from book.notebooks import ROOT

LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_image_and_the_dev_container_call_make_targets_that_exist():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert container["build"]["target"] in re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.MULTILINE)
    command = json.loads(re.search(r"^CMD (.+)$", DOCKERFILE, re.MULTILINE)[1])
    called = [
        container["postCreateCommand"].split(),
        *map(str.split, re.findall(r"RUN (make .+)", DOCKERFILE)),
        command,
    ]
    assert all(words[0] == "make" for words in called)
    assert {word for words in called for word in words[1:]} <= TARGETS


def test_the_image_copies_what_the_setup_reads_before_it_runs():
    before = DOCKERFILE.split("RUN make lab-ready")[0]
    copied = {
        word for line in re.findall(r"^COPY --chown=1000 (.+)$", before, re.MULTILINE) for word in line.split()[:-1]
    }
    read = set(
        re.search(r"wanted=\$\(cat (.+?) \|", (ROOT / "book" / "setup.sh").read_text(encoding="utf-8"))[1].split()
    )
    assert read | {"README.md", "LICENSE", "Makefile", "mha"} <= copied  # pyproject.toml names README and LICENSE
    assert all((ROOT / name).exists() for name in copied)


def test_conda_brings_the_locks_python_and_pip_the_lock_and_mha():
    """conda runs pip in the folder of the file, on a file that holds these lines."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, through_pip = environment["dependencies"]
    made_on = re.search(r"^# This file is .+ with Python (\S+)$", LOCK, re.MULTILINE)[1]
    assert python == f"python={made_on}"
    assert (pip, through_pip) == ("pip", {"pip": ["-r requirements.txt", "-e ."]})
    readmes = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")]
    command = f"conda env create -f environment.yml && conda activate {environment['name']} "
    assert all(command in text for text in readmes)


def test_binder_installs_what_mha_depends_on_and_runs_its_last_step():
    environment = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text(encoding="utf-8"))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.findall(r'"([^"]+)"', re.search(r"^dependencies = \[(.+?)\]", project, re.MULTILINE | re.DOTALL)[1])
    assert "numpy" in wanted
    conda = {dependency.replace("pytorch-cpu", "torch") for dependency in environment["dependencies"]}
    assert set(wanted) <= conda
    last = ROOT / "binder" / "postBuild"
    assert last.stat().st_mode & 0o111
    assert last.read_text(encoding="utf-8").startswith("#!/bin/sh\n")
