"""The benchmarks compare like with like and run from end to end; the page draws what was stored."""

import json
import subprocess
import sys
import time

import jsonschema
import pytest
import torch
from torch import nn

from benchmarks import contenders as who
from benchmarks import run
from benchmarks.measure import added_bytes, compared, interleaved
from book.notebooks import ROOT

NUMBER = {"type": "number", "exclusiveMinimum": 0}
TIMES = {
    "type": "object",
    "required": ["seconds", "ratio", "low", "high", "rounds"],
    "properties": dict.fromkeys(("seconds", "ratio", "low", "high", "rounds"), NUMBER),
}
MEASURED = {"allOf": [TIMES, {"required": ["bytes"], "properties": {"bytes": NUMBER}}]}
MACHINE = (
    "device", "cpu", "cores", "threads", "clock", "system", "python", "torch", "x_transformers", "mha", "date",
    "load_before", "load_after", "minutes",
)  # fmt: skip
SCHEMA = {
    "type": "object",
    "required": ["machine", "plan", "cells", "long", "decoding", "shared", "import", "targets"],
    "properties": {
        "machine": {"required": list(MACHINE), "properties": {"date": {"pattern": r"^\d{4}-\d\d-\d\d$"}}},
        "cells": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["B", "L", "dtype", "causal", "passes", "contenders"],
                "properties": {
                    "dtype": {"enum": ["float32", "bfloat16"]},
                    "passes": {"enum": ["forward", "forward + backward"]},
                    "contenders": {
                        "type": "object",
                        "required": list(who.MAKERS),
                        "additionalProperties": MEASURED,
                    },
                },
            },
        },
        "long": {
            "minItems": 2,
            "items": {"required": ["L", "causal", "bytes"], "properties": {"bytes": {"required": ["mha", "listing"]}}},
        },
        "decoding": {
            "minItems": 1,
            "items": {
                "required": ["tokens", "kv_heads", "cache_bytes", "cached", "recomputed"],
                "properties": {"cached": TIMES, "recomputed": TIMES},
            },
        },
        "shared": {"minItems": 1, "items": {"allOf": [TIMES, {"required": ["B", "L", "kv_heads", "parameters"]}]}},
        "import": {"required": ["torch", "mha"], "properties": {"torch": NUMBER, "mha": NUMBER}},
        "targets": {"minItems": 7, "items": {"required": ["name", "value", "rule", "limit", "met"]}},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """What a whole run in small writes, what it prints, and how long it took."""
    out = tmp_path_factory.mktemp("bench") / "results.json"
    began = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(out.read_text(encoding="utf-8")), done.stdout, time.monotonic() - began


# --- like with like ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", who.MAKERS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_contender_gives_what_mha_gives_forward_and_in_the_gradient(name, causal, dtype):
    attention = who.layer(64, 8, device="cpu", dtype=dtype)
    made = who.contenders(attention, 24, causal)
    X = run.inputs(2, 24, attention)
    wanted, got = (run.one_pass(made[which], X, "forward + backward")()[:2] for which in ("mha", name))
    for ours, theirs in zip(wanted, got, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=0, atol=who.TOLERANCE[dtype] * ours.abs().max().item())
    seen = run.one_pass(made[name], X, "forward")()
    torch.testing.assert_close(seen, wanted[0], rtol=0, atol=who.TOLERANCE[dtype] * wanted[0].abs().max().item())
    assert not seen.requires_grad


def test_a_contender_that_computes_something_else_is_never_timed():
    runs = {"mha": lambda: torch.ones(3), "other": lambda: torch.tensor([1.0, 1.0, 1.1])}
    with pytest.raises(AssertionError, match="other must give what mha gives"):
        run.agree(runs, torch.float32, "cpu")


def test_all_contenders_have_the_same_number_of_weights():
    attention = who.layer(64, 8, device="cpu", dtype=torch.float32)
    counts = {
        name: sum(p.numel() for p in module.parameters() if p.dim() == 2 or "QKV" in name)
        for name, module in who.contenders(attention, 8, causal=False).items()
    }
    assert set(counts.values()) == {4 * 64 * 64}


def test_the_listing_is_the_class_that_chapter_4_prints():
    listing = who.chapter_4()(16, 4)
    Y, A = listing(torch.zeros(2, 5, 16), torch.zeros(2, 3, 16), torch.zeros(2, 3, 16), need_weights=True)
    assert (Y.shape, A.shape) == ((2, 5, 16), (2, 4, 5, 3))


# --- how it is measured --------------------------------------------------------------------------


def work(milliseconds):
    def run_it():
        end = time.process_time() + milliseconds / 1e3
        while time.process_time() < end:
            pass

    return run_it


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_runs_take_turns_and_who_is_clearly_behind_sits_out(one_thread):
    order = []
    runs = {"mha": work(4), "close": work(5), "slow": work(12)}
    noted = {name: lambda name=name, body=body: (order.append(name), body()) for name, body in runs.items()}
    taken = interleaved(noted, device="cpu", seconds=0.0, least=3, most=6)
    assert [sorted(order[i : i + 3]) for i in (0, 3, 6)] == [["close", "mha", "slow"]] * 3
    assert len(order) == 9  # no seconds left: as few rounds as allowed
    taken = interleaved(runs, device="cpu", seconds=9.0, least=3, most=6)
    assert [len([t for t in times if t is not None]) for times in taken.values()] == [6, 6, 3]
    table = compared(taken, "mha")
    assert table["mha"]["ratio"] == 1
    assert 1.1 < table["close"]["ratio"] < 1.4
    assert 2.5 < table["slow"]["ratio"] < 3.5
    assert 0.004 <= table["mha"]["seconds"] < 0.006


def test_a_ratio_is_the_median_of_the_rounds_not_the_ratio_of_the_medians():
    taken = {"mha": [1.0, 10.0, 2.0], "other": [2.0, 10.0, 3.0]}
    row = compared(taken, "mha")["other"]
    assert (row["ratio"], row["seconds"], row["rounds"]) == (1.5, 3.0, 3)
    assert (row["low"], row["high"]) == (1.25, 1.75)


def test_memory_is_the_most_held_at_one_time():
    def two_at_once():
        a = torch.zeros(1000)
        b = a + 1
        del a
        return b + 1  # b and this

    peak, kept = added_bytes(two_at_once, "cpu")
    assert 8000 <= peak < 8100  # and the numbers 1, which torch makes tensors of
    assert kept.tolist() == [2.0] * 1000


def test_memory_inside_a_fused_kernel_counts():
    q = torch.zeros(1, 1, 300, 8)
    output = 300 * 8 * 4
    assert added_bytes(lambda: nn.functional.scaled_dot_product_attention(q, q, q), "cpu")[0] > output


# --- what comes out ------------------------------------------------------------------------------


def test_a_quick_run_ends_in_seconds_and_writes_and_prints_every_cell(quick):
    found, printed, seconds = quick
    jsonschema.validate(found, SCHEMA)
    assert [(c["dtype"], c["causal"], c["passes"]) for c in found["cells"]] == [
        (dtype, causal, passes)
        for dtype in ("float32", "bfloat16")
        for causal in (False, True)
        for passes in ("forward", "forward + backward")
    ]
    assert seconds < 300  # some ten seconds of work, on however busy a machine
    for name in who.MAKERS:
        rows = [line for line in printed.splitlines() if line.startswith(f"  {name}  ")]
        assert len(rows) == len(found["cells"])
        assert all(" ms " in row and " MB" in row and "×" in row for row in rows)
    for target in found["targets"]:
        assert f" {target['name']} " in printed


def test_without_a_gpu_cuda_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["bench", "--device", "cuda"])
    with pytest.raises(SystemExit, match="no CUDA device"):
        run.main()
