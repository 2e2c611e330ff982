"""What the benchmarks' page shows is what was stored: whole, judged by its worst cell, told in both languages."""

import copy

import jsonschema
import pytest

import mha.language
from benchmarks.targets import targets
from mha.figures import benchmarks as figures
from tests.book.test_benchmarks import SCHEMA
from tests.mha.drawing import assert_frames_speak, drawn


@pytest.fixture(scope="module")
def stored():
    return figures.results()


def test_the_stored_run_is_whole(stored):
    jsonschema.validate(stored, SCHEMA)
    sizes = {(c["B"], c["L"]) for c in stored["cells"]}
    assert sizes == {(8, 128), (2, 1024), (1, 4096)}
    assert len({(c["B"], c["L"], c["dtype"], c["causal"], c["passes"]) for c in stored["cells"]}) == 24
    assert (stored["plan"]["d_model"], stored["plan"]["h"]) == (512, 8)
    assert [row["kv_heads"] for row in stored["decoding"]] == [8, 2, 1]
    assert {row["tokens"] for row in stored["decoding"]} == {512}
    assert [row["L"] for row in stored["long"]] == [8192, 8192]
    assert stored["machine"]["device"] == "cpu"


def test_the_stored_promises_follow_from_the_stored_numbers(stored):
    assert stored["targets"] == targets(stored)


def test_a_promise_is_judged_by_its_worst_cell(stored):
    found = copy.deepcopy(stored)
    for cell in found["cells"]:
        for name, row in cell["contenders"].items():
            row["ratio"] = 1.0 if name == "mha" else 9.0
    cell = next(c for c in found["cells"] if (c["L"], c["passes"]) == (1024, "forward"))
    cell["contenders"]["nn.MultiheadAttention, weights"]["ratio"] = 0.9
    judged = {row["name"]: row for row in targets(found)}
    assert [judged[name]["value"] for name in ("fastest", "torch_with_weights", "listing")] == [0.9, 0.9, 9.0]
    assert [judged[name]["met"] for name in ("fastest", "torch_with_weights", "listing")] == [False, False, True]
    assert judged["fastest"]["cells_met"] == 23
    assert judged["fastest"]["where"]["fastest"] == "nn.MultiheadAttention, weights"
    found["import"]["mha"] = 0.16
    assert not targets(found)[-1]["met"]


@pytest.fixture(params=["zh", "en"])
def lang(request, monkeypatch):
    monkeypatch.setattr(mha.language, "_chosen", request.param)
    return request.param


def test_every_frame_of_the_times_speaks(stored, lang, caplog):
    draws = [
        lambda L=L, way=way, dtype=dtype, causal=causal: figures.time(stored, L, way, dtype, causal)
        for L, way, dtype, causal in (
            (4096, "→", "float32", False), (128, "→ ←", "bfloat16", True), (1024, "→", "bfloat16", False),
        )
    ]  # fmt: skip
    assert_frames_speak(draws, lang, caplog)


@pytest.mark.parametrize("name", ["every_cell", "memory", "decoding", "key_heads", "promises"])
def test_a_figure_speaks_and_says_on_what_it_was_measured(name, stored, lang, caplog):
    assert_frames_speak([lambda: getattr(figures, name)(stored)], lang, caplog)
    caption = getattr(figures, name)(stored).get_supxlabel()
    for part in ("cpu", "torch", "date"):
        assert stored["machine"][part] in caption


def test_the_figures_say_what_the_numbers_say(stored, monkeypatch):
    monkeypatch.setattr(mha.language, "_chosen", "en")
    found = copy.deepcopy(stored)
    for cell in found["cells"]:
        for name, row in cell["contenders"].items():
            row["ratio"] = row["low"] = row["high"] = 1.0 if name == "mha" else 2.0
    assert drawn(figures.time(found, 4096))[0] == "L = 4096: mha is the fastest"
    assert drawn(figures.every_cell(found))[0] == "mha is beaten in none of 24 cells"
    found["cells"][0]["contenders"]["listing"]["ratio"] = 0.8
    assert drawn(figures.time(found, found["cells"][0]["L"]))[0].endswith("listing needs 20% less time")
    assert drawn(figures.every_cell(found))[0] == "In 1 of 24 cells mha is beaten"
    found["cells"][0]["contenders"]["listing"]["ratio"] = 0.98
    assert drawn(figures.time(found, found["cells"][0]["L"]))[0].endswith("the fastest are level")
    for target in found["targets"]:
        target["met"] = target["met"] and True
    found["targets"][0]["met"] = False
    assert "promises missed" in drawn(figures.promises(found))[0]


def test_a_cell_that_was_not_measured_is_refused(stored):
    with pytest.raises(ValueError, match="no such cell was measured: L = 5"):
        figures.time(stored, 5)
