"""Whatever a reader types or an address holds, the lab has a valid state and says what it changed."""

import contextlib
import io
import itertools
import json
import re

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mha.widgets import lab_model
from mha.widgets.lab import model as numbers
from mha.widgets.lab.state import BREAKS, KEYS, WIDTHS, check_all
from tests.lab.vectors import own, sent

MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT = st.text(max_size=40) | st.text(st.sampled_from("国🇨🇳👩\u200d🏽é\u0301\u200b \n\ud800a,，\0"), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NONSENSE = JSON | st.dictionaries(st.sampled_from(KEYS), JSON, max_size=8)
WORDS = ["国", "é", "🇨🇳", "👩‍👩‍👧", "，", "a", "0", "&=+%", "=", "#"]
VALID = st.fixed_dictionaries(
    {
        "tokens": st.lists(st.sampled_from(WORDS), min_size=1, max_size=16),
        "unit": st.just("words"),
        "h": st.integers(1, 8),
        "d_k": st.sampled_from(WIDTHS[:4]),
        "scale": st.booleans(),
        "mask": st.sampled_from(["none", "causal", "padding", "drawn"]),
        "padding": st.integers(0, 16),
        "drawn": st.lists(st.lists(st.integers(0, 1), min_size=16, max_size=16), min_size=16, max_size=16),
        "weights": st.sampled_from(["random", "identity", "trained"]),
        "seed": st.integers(0, 999_999),
        "step": st.integers(0, 8),
        "head": st.integers(0, 7),
        "row": st.integers(0, 15),
        "column": st.integers(0, 255),
        "breaks": st.lists(st.sampled_from(BREAKS), unique=True),
    }
)  # fmt: skip


def assert_valid(node, told):
    """The state may stand in Python, too; to clean it again changes nothing; and a pass through it is finite."""
    state = told["state"]
    assert set(state) == set(KEYS)
    check_all(state, numbers.sizes(state["weights"], None))
    assert node("clean", state) == {"state": state, "said": []}
    for said in told["said"]:
        assert said["zh"]
        assert said["en"]
    trace = node("pass", state, numbers.trained(), None)["trace"]
    assert all(isinstance(x, (int, float)) for x in trace["output"]["data"])  # NaN and ∞ would be null
    assert trace["output"]["shape"] == [len(state["tokens"]), state["h"] * state["d_k"]]


@MANY
@given(raw=NONSENSE)
def test_any_nonsense_becomes_a_valid_state(node, raw):
    assert_valid(node, node("clean", raw))


@MANY
@given(address=TEXT | st.text(st.sampled_from("thdsmpgwrux=&%2C9.-+zE国#?"), max_size=60))
def test_any_address_becomes_a_valid_state(node, address):
    assert_valid(node, node("clean", node("fromAddress", address)))


@MANY
@given(raw=VALID)
def test_an_address_leads_back_to_its_state(node, raw):
    for unit in ("words", "characters"):
        state = node("clean", {**raw, "unit": unit})["state"]
        address = node("toAddress", state)
        back = node("clean", node("fromAddress", "#" + address))
        assert back["said"] == []
        if state["mask"] != "drawn":  # a drawn mask that is not in use is not in the address
            back["state"]["drawn"] = state["drawn"]
        assert back["state"] == state, address
        assert re.fullmatch(r"[\w.~!*'()%+=&-]*", address, re.A)


def test_the_address_holds_only_what_differs_from_the_default(node):
    assert node("toAddress", node("clean", {})["state"]) == ""
    assert node("toAddress", node("clean", {"h": 8, "mask": "causal"})["state"]) == "h=8&m=causal"


@pytest.mark.parametrize(
    ("raw", "key", "expected", "told"),
    [
        ({"tokens": ""}, "tokens", list("国破山河在"), "No text to use"),
        ({"tokens": " \n\u200b"}, "tokens", list("国破山河在"), "No text to use"),
        ({"tokens": "山" * 500}, "tokens", ["山"] * 16, "the first 16 of 500 are used"),
        ({"tokens": "a" * 500, "unit": "words"}, "tokens", ["a" * 24], "cut to 24 characters"),
        ({"h": 99}, "h", 8, "h must be a whole number from 1 to 8: 8 is used"),
        ({"h": "many"}, "h", 4, "h must be a whole number from 1 to 8: 4 is used"),
        ({"d_k": 7}, "d_k", 4, "d_k must be 1, 2, 4, 8, 16, 32: 4 is used"),
        ({"mask": "casual"}, "mask", "none", "mask must be none, causal, padding, drawn: none is used"),
        ({"weights": "given"}, "weights", "random", "No model was given here"),
        ({"breaks": ["axis", "all"]}, "breaks", ["axis"], "breaks must be"),
        ({"weights": "trained", "h": 2}, "h", 4, "These weights have h = 4 and d_k = 8, fixed"),
        ({"head": 5}, "head", 3, "head must be a whole number from 0 to 3: 3 is used"),
    ],
    ids=repr,
)
def test_what_was_changed_is_said(node, raw, key, expected, told):
    found = node("clean", raw)
    assert found["state"][key] == expected
    assert len(found["said"]) == 1
    assert told in found["said"][0]["en"]
    assert re.search(r"[\u4e00-\u9fff]", found["said"][0]["zh"])


def test_a_character_is_what_a_reader_counts_as_one(node):
    for text in ("👩‍👩‍👧é🇨🇳国", "👩‍👩‍👧 é 🇨🇳 国", "👩‍👩‍👧e\u0301🇨🇳\u200b国"):
        assert node("tokenise", text, "characters") == ["👩‍👩‍👧", "é", "🇨🇳", "国"]
    assert node("tokenise", "  Who  has\tseen\nthe wind ", "words") == ["Who", "has", "seen", "the", "wind"]


def test_typing_keeps_what_was_drawn_and_allows_the_new(node):
    before = node("clean", {"tokens": "山河", "mask": "drawn", "drawn": [[1, 0], [1, 1]]})["state"]
    after = node("clean", {**before, "tokens": "山河在"})
    assert after["state"]["drawn"] == [[1, 0, 1], [1, 1, 1], [1, 1, 1]]
    assert after["said"] == []


def test_a_given_model_sets_tokens_and_sizes(node):
    model = sent(*own(0, 3, 3, 5, 2, 7))
    found = node("clean", {"weights": "given", "tokens": "别的"}, model)["state"]
    assert (found["tokens"], found["h"], found["d_k"]) == (["0", "1", "2"], 3, 5)
    assert node("clean", {**found, "weights": "random"}, model)["state"]["d_k"] == 4


QUOTED = list('国破"河\\')


def printed(code, **names):
    """What the code leaves in `output`, and what it prints, as numbers."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)
    return names["output"][0], out.getvalue()


def tensor(matrix):
    return torch.tensor(matrix["data"], dtype=torch.float64).reshape(matrix["shape"])


@pytest.mark.parametrize("mask", ["none", "causal", "padding", "drawn"])
@pytest.mark.parametrize("weights", ["random", "identity", "trained"])
def test_the_code_of_a_state_gives_its_numbers(node, weights, mask):
    drawn = [[0] * 5, [1, 1, 0, 0, 1], [1] * 5, [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]]
    for n, (scale, breaks) in enumerate(
        itertools.product((True, False), ((), ("reshape",), ("transpose", "d_model"), ("axis",), ("late",), BREAKS))
    ):
        raw = {"tokens": QUOTED, "h": 4, "d_k": 8, "weights": weights, "seed": n, "mask": mask, "padding": 3,
               "drawn": drawn, "scale": scale, "breaks": list(breaks)}  # fmt: skip
        found = node("pass", raw, numbers.trained(), None)
        assert found["said"] == []
        output, text = printed(node("code", found["state"]))
        torch.testing.assert_close(output, tensor(found["trace"]["output"]), rtol=1e-6, atol=1e-12)
        first = float(re.search(r"-?\d+\.\d+(e-?\d+)?", text).group())
        assert first == pytest.approx(output[0, 0].item(), abs=1e-3)


def test_the_code_of_a_given_model_runs_with_that_model(node):
    attention, X = own(3, 4, 3, 5, 2, 7)
    for breaks in ([], ["axis", "reshape"]):
        found = node("pass", {"weights": "given", "mask": "causal", "breaks": breaks}, None, sent(attention, X))
        output, _ = printed(node("code", found["state"]), model=attention, X=X)
        torch.testing.assert_close(output, tensor(found["trace"]["output"]), rtol=1e-6, atol=1e-12)


def test_the_plain_code_is_short_enough_to_read(node):
    code = node("code", node("clean", {"mask": "causal"})["state"])
    assert 'lab_model(["国","破","山","河","在"], h=4, d_k=8, weights="random", seed=0)' in code
    assert "attention.trace(X, mask=mask)" in code
    assert len(code.splitlines()) < 12


def test_the_state_travels_as_plain_json(node):
    state = node("clean", {})["state"]
    assert json.loads(json.dumps(state)) == state
    attention, X = lab_model(state["tokens"], state["h"], state["d_k"], state["weights"], state["seed"])
    assert X.shape == (1, 5, attention.d_model)
