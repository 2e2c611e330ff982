"""`lab` in a kernel: its traits are the state, sync both ways as plain JSON, and refuse what does not fit."""

import json
import os
import re
import subprocess
import sys

import pytest
import torch
import traitlets
from ipywidgets.widgets.widget import _remove_buffers

import mha.language
from mha import MultiHeadAttention
from mha.widgets import lab
from mha.widgets.lab import model as numbers
from mha.widgets.lab import source
from mha.widgets.lab.state import KEYS, check_all
from tests.lab.vectors import own


@pytest.fixture(autouse=True)
def in_a_kernel(monkeypatch):
    monkeypatch.setattr(mha.language, "_chosen", "zh")
    monkeypatch.delenv("MHA_FRAMES", raising=False)
    monkeypatch.delenv("MHA_STILL", raising=False)


def from_the_page(widget, **state):
    """What ipywidgets does when the page saves changes."""
    widget._handle_msg({"content": {"data": {"method": "update", "state": state, "buffer_paths": []}}, "buffers": []})


def test_every_trait_is_plain_json_because_colab_drops_binary_ones():
    for widget in (lab(weights="trained"), lab(torch.zeros(2, 6), model=MultiHeadAttention(6, 2))):
        state = widget.get_state()
        assert set(KEYS) | {"words", "given", "trained"} <= state.keys()
        assert _remove_buffers(state)[2] == []
        sent = json.loads(json.dumps(state))
        assert {key: sent[key] for key in KEYS} == widget.state


def test_what_python_sets_is_in_the_state_that_the_page_gets():
    widget = lab(h=2)
    widget.h, widget.mask, widget.tokens = 8, "causal", list("春眠不觉晓")
    state = widget.get_state(["h", "mask", "tokens"])
    assert state == {"h": 8, "mask": "causal", "tokens": list("春眠不觉晓")}


def test_what_the_page_sends_python_sees():
    widget, seen = lab(), []
    widget.observe(lambda change: seen.append((change["name"], change["new"])), names=["h", "row"])
    from_the_page(widget, h=8, row=3, scale=False)
    assert (widget.h, widget.row, widget.scale) == (8, 3, False)
    assert sorted(seen) == [("h", 8), ("row", 3)]


def test_choosing_trained_weights_sets_their_sizes_and_sends_them():
    widget = lab(h=2, d_k=16, head=1)
    assert widget.trained is None  # 44 KB that few labs need
    from_the_page(widget, weights="trained", h=4, d_k=8)
    assert (widget.h, widget.d_k, widget.trained) == (4, 8, numbers.trained())
    other = lab(h=2)
    other.weights = "trained"
    assert (other.h, other.d_k) == (4, 8)
    with pytest.raises(traitlets.TraitError, match="h must stay 4 with trained weights, got 2"):
        other.h = 2


def test_what_no_longer_exists_is_let_go():
    widget = lab(tokens="国破山河在", h=8, head=7, row=4, mask="drawn", drawn=[[1, 0, 0, 0, 0]] * 5)
    widget.h = 2
    widget.tokens = list("山河")
    assert (widget.head, widget.row, widget.drawn, widget.padding) == (1, 1, [[1, 0], [1, 0]], 2)
    check_all(widget.state, None)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("h", 9, "h must be an integer from 1 to 8, got 9"),
        ("d_k", 3, "d_k must be one of 1, 2, 4, 8, 16, 32, got 3"),
        ("mask", "casual", "mask must be one of none, causal, padding, drawn, got 'casual'"),
        ("tokens", [], r"tokens must be 1 to 16 strings without spaces, got \[\]"),
        ("tokens", ["a"] * 17, "tokens must be 1 to 16 strings"),
        ("step", 9, "step must be an integer from 0 to 8, got 9"),
        ("breaks", ["all"], "breaks must be names of reshape, transpose, d_model, axis, late"),
        ("weights", "best", "weights must be one of random, identity, trained, given, got 'best'"),
        ("drawn", [[1, 2], [0, 1]], "drawn must be a square table of 0 and 1"),
    ],
)
def test_a_wrong_value_gets_a_clear_error_and_changes_nothing(name, value, message):
    with pytest.raises(ValueError, match=message):
        lab(**{name: value})
    widget = lab()
    before = widget.state
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(widget, name, value)
    assert widget.state == before


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: lab(torch.zeros(2, 6), model=m, h=2), ValueError, "h follows from model"),
        (lambda m: lab(torch.zeros(2, 5), model=m), ValueError, r"Q must be .*\(1 to 16, 6\).* got \(2, 5\)"),
        (lambda m: lab(torch.zeros(2, 3, 6), model=m), ValueError, r"one sample, got \(2, 3, 6\)"),
        (lambda m: lab(torch.zeros(17, 6), model=m), ValueError, r"got \(17, 6\)"),
        (lambda m: lab(torch.zeros(2, 6)), TypeError, "model must be an mha.MultiHeadAttention, got NoneType"),
        (lambda m: lab(model=m), TypeError, "Q must be a torch tensor .* got NoneType"),
        (lambda m: lab(torch.zeros(2, 6), model=m, tokens="abc"), ValueError, "tokens must name the rows of Q: L = 2"),
        (lambda m: lab(torch.zeros(2, 9), model=MultiHeadAttention(9, 9)), ValueError, "at most 8 heads .* h = 9"),
        (lambda m: lab(head=4), ValueError, "head must be below h = 4, got 4"),
        (lambda m: lab(weights="trained", h=2), ValueError, "trained weights have h = 4 and d_k = 8, got h = 2"),
        (lambda m: lab(weights="given"), ValueError, "weights can be given only as"),
    ],
)
def test_a_wrong_call_gets_a_clear_error(call, error, message):
    with pytest.raises(error, match=message):
        call(MultiHeadAttention(6, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_model_of_the_readers_is_sent_exactly(dtype):
    attention, X = own(0, 3, 2, 5, 4, 7)
    attention, X = attention.to(dtype), X.to(dtype)
    widget = lab(X[0], model=attention, tokens=["the", "##se", "are"], mask="causal")
    assert (widget.h, widget.d_k, widget.weights, widget.tokens) == (2, 5, "given", ["the", "##se", "are"])
    sent = json.loads(json.dumps(widget.given))
    for letter in "QKVO":
        linear = getattr(attention, f"W_{letter}")
        for name, right in ((f"W_{letter}", linear.weight.T), (f"b_{letter}", linear.bias)):
            assert torch.equal(torch.tensor(sent[name]["data"], dtype=dtype).reshape(sent[name]["shape"]), right)


def test_the_large_model_of_the_notes_can_be_shown():
    widget = lab(torch.zeros(5, 512), model=MultiHeadAttention(512, 8))
    assert (widget.h, widget.d_k) == (8, 64)
    assert len(json.dumps(widget.given)) < 20e6


def test_a_model_stays_as_it_was():
    attention = MultiHeadAttention(6, 2).train()
    lab(torch.zeros(2, 6), model=attention)
    assert attention.training
    assert all(parameter.requires_grad for parameter in attention.parameters())


def test_its_text_form_is_the_same_in_every_run_and_language(monkeypatch):
    texts = set()
    for language in ("zh", "en"):
        monkeypatch.setattr(mha.language, "_chosen", language)
        texts.add((repr(lab()), repr(lab(h=2, mask="causal", step=3)), repr(lab(tokens="山河", weights="trained"))))
    assert texts == {
        (
            "lab(h=4, d_k=8)",
            "lab(h=2, d_k=8, mask='causal', step=3)",
            "lab(tokens='山河', h=4, d_k=8, weights='trained')",
        )
    }


def test_it_opens_on_a_sentence_in_the_readers_language(monkeypatch):
    assert lab().tokens == list("国破山河在")
    monkeypatch.setattr(mha.language, "_chosen", "en")
    assert (lab().tokens, lab().unit) == (["Who", "has", "seen", "the", "wind"], "words")


def test_in_a_book_it_is_a_figure_and_no_widget(monkeypatch, tmp_path):
    monkeypatch.setenv("MHA_FRAMES", str(tmp_path))
    page = lab(h=2)
    assert not isinstance(page, traitlets.HasTraits)
    assert '<figure class="mha-lab"' in page._repr_mimebundle_()["text/html"]
    monkeypatch.delenv("MHA_FRAMES")
    monkeypatch.setenv("MHA_STILL", "1")
    assert lab(h=2)._repr_mimebundle_()["image/png"]
    assert repr(lab(h=2)) == repr(page) == "lab(h=2, d_k=8)"


def test_importing_the_widgets_loads_no_widget_library():
    code = "import sys, mha.widgets; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert "torch" in run.stdout.split()
    assert not {"anywidget", "ipywidgets", "IPython"} & set(run.stdout.split())


def test_the_module_the_page_gets_imports_nothing_and_exports_render():
    text = source.module()
    assert not re.search(r"^\s*import\b", text, re.M)
    assert [line for line in text.splitlines() if line.startswith("export")] == ["export default { render };"]
