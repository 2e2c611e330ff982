"""The forge's workflows: pinned, with few rights, and without logic of their own."""

import re

import pytest
import yaml

from book.notebooks import ROOT

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.stem: yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader) for path in FILES}
JOBS = [(f"{name}.{job}", body) for name, flow in WORKFLOWS.items() for job, body in flow["jobs"].items()]
STEPS = [(job, step) for job, body in JOBS for step in body.get("steps", [])]
USES = [line for path in FILES for line in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))]
WEEKLY = WORKFLOWS["weekly"]["jobs"]["weekly"]
TARGETS = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
PIN = re.compile(r"(\./\.github/workflows/\w+\.yml( # zizmor: .+)?|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)")
SET_UP = ("gh auth setup-git",)  # what a step may run beside a make target

of_each_workflow = pytest.mark.parametrize("name", WORKFLOWS)
of_each_job = pytest.mark.parametrize(("job", "body"), JOBS, ids=[job for job, _ in JOBS])


def test_all_the_workflows_are_there():
    assert set(WORKFLOWS) == {"colab", "cpu", "gpu", "publish", "weekly"}


@pytest.mark.parametrize(
    ("line", "pinned"),
    [
        ("actions/checkout@" + "0a" * 20 + " # v6.0.2", True),
        ("./.github/workflows/cpu.yml", True),
        ("actions/checkout@v6", False),
        ("actions/checkout@" + "0a" * 20, False),
        ("actions/checkout@0a0a0a0 # v6.0.2", False),
    ],
)
def test_a_pin_is_a_whole_commit_with_its_version(line, pinned):
    assert bool(PIN.fullmatch(line)) is pinned


@pytest.mark.parametrize("line", USES)
def test_every_action_is_pinned_by_its_whole_commit_with_the_version_beside_it(line):
    assert PIN.fullmatch(line)


def test_an_action_has_one_version_everywhere():
    versions = {line.split("@")[0]: set() for line in USES}
    for line in USES:
        versions[line.split("@")[0]].add(line)
    assert all(len(lines) == 1 for lines in versions.values()), versions


@of_each_workflow
def test_a_workflow_grants_nothing_that_a_job_does_not_ask_for(name):
    assert WORKFLOWS[name]["permissions"] == {}


@of_each_job
def test_a_job_asks_for_its_rights_and_only_what_publishes_may_write(job, body):
    rights = body["permissions"]
    assert set(rights) == {"contents"}
    assert rights["contents"] == "read" or job in ("publish.newest", "publish.frozen")


@of_each_workflow
def test_a_strangers_change_never_runs_with_the_books_rights(name):
    assert not {"pull_request_target", "workflow_run", "issue_comment"} & set(WORKFLOWS[name]["on"])


def test_a_strangers_change_never_reaches_the_gpu_or_what_may_write():
    assert set(WORKFLOWS["gpu"]["on"]) == {"workflow_dispatch", "schedule", "push"}
    assert WORKFLOWS["gpu"]["on"]["push"] == {"tags": ["v*"]}
    for job, body in JOBS:
        if body["permissions"]["contents"] == "write":
            assert "pull_request" not in WORKFLOWS[job.split(".")[0]]["on"]


def test_no_workflow_reads_a_secret():
    assert not [path.name for path in FILES if "secrets" in path.read_text(encoding="utf-8")]


def test_a_checkout_keeps_no_credentials():
    checkouts = [step for _, step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) >= 8
    assert all(step["with"]["persist-credentials"] == "false" for step in checkouts)


@of_each_job
def test_a_job_ends_by_itself(job, body):
    assert "uses" in body or 10 <= int(body["timeout-minutes"]) <= 120


@of_each_workflow
def test_two_runs_of_a_workflow_do_not_get_into_each_others_way(name):
    assert WORKFLOWS[name]["concurrency"]["group"]


def test_caches_are_keyed_by_the_lock():
    cached = [step["with"] for _, step in STEPS if "cache" in step.get("with", {})]
    assert cached
    assert all("requirements.txt" in options["cache-dependency-path"].split() for options in cached)


def test_every_command_is_a_make_target_that_exists():
    commands = [(step["run"], job) for job, step in STEPS if "run" in step]
    assert commands
    for command, job in commands:
        if command in SET_UP:
            continue
        target = re.fullmatch(r'make ([\w-]+|"\$CHECK")', command)
        assert target, f"{job}: a step runs one make target, got {command!r}"
        assert target[1] in {*TARGETS, '"$CHECK"'}
    assert set(WEEKLY["strategy"]["matrix"]["check"]) <= TARGETS


def test_what_goes_wrong_by_itself_is_looked_at_every_week():
    checks = {"audit", "colab-drift", "edges", "links", "vulnerabilities"}
    assert set(WEEKLY["strategy"]["matrix"]["check"]) == checks
    assert WEEKLY["steps"][-1]["env"] == {"CHECK": "${{ matrix.check }}"}
    assert "schedule" in WORKFLOWS["weekly"]["on"]


def test_mha_is_tested_on_every_system_and_python_and_on_the_oldest_torch_that_it_allows():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest_python = re.search(r'requires-python = ">=3\.(\d+)"', project)[1]
    oldest_torch = re.search(r'"torch>=([\d.]+)"', project)[1]
    matrix = WORKFLOWS["cpu"]["jobs"]["mha"]["strategy"]["matrix"]
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert matrix["python"] == [f"3.{minor}" for minor in range(int(oldest_python), 15)]
    assert [extra["torch"] for extra in matrix["include"]] == [f"{oldest_torch}.0"]
