"""The trained weights: what the record says each head does is what it does, and the script finds them again."""

import numpy as np
import pytest
import torch

from mha.widgets import lab_model
from mha.widgets.lab import model as numbers
from mha.widgets.lab import source, train

COUPLETS = [  # Du Fu, Wang Wei, Li Bai, Meng Haoran; the Nineteen Old Poems
    "国破山河在，城春草木深", "感时花溅泪，恨别鸟惊心", "明月松间照，清泉石上流", "大漠孤烟直，长河落日圆",
    "渡远荆门外，来从楚国游", "气蒸云梦泽，波撼岳阳城", "青青河畔草，郁郁园中柳", "行行重行行，与君生别离",
]  # fmt: skip
VERSES = COUPLETS + [couplet.replace("，", "") for couplet in COUPLETS] + ["两个黄鹂鸣翠柳一行白鹭上青天"]
SENTENCES = ["who has seen the wind, neither I nor you", "the cat saw the dog and the dog ran", "e e e"]


def head(role):
    return [found["role"] for found in numbers.trained()["heads"]].index(role)


def weights(tokens):
    attention, X = lab_model(tokens, weights="trained")
    return attention.trace(X).weights[0]  # (4, L, L)


@pytest.mark.parametrize("text", [*VERSES, *(sentence.split() for sentence in SENTENCES)], ids=str)
def test_every_head_looks_where_the_record_says_whatever_is_typed(text):
    _, first = np.unique(list(text), return_inverse=True)
    patterns = train.patterns(first, numbers.lines(text))
    A = weights(text)
    for job, pattern in zip(train.JOBS, patterns, strict=True):
        share = (A[head(job)].numpy() * (pattern > 0)).sum() / len(text)
        assert share > 0.9, f"{job}: {share:.3f}"


def test_the_second_line_of_a_couplet_looks_at_the_same_column_of_the_first():
    for text, width in (
        ("国破山河在城春草木深", 5),
        ("国破山河在，城春草木深", 6),
        ("两个黄鹂鸣翠柳一行白鹭上青天", 7),
    ):
        A = weights(text)[head("parallel")]
        second = torch.arange(width, len(text))
        assert A[second, second - width].min() > 0.8


def test_a_token_that_comes_again_is_found_in_both_places():
    A = weights(["the", "cat", "saw", "the", "dog"])[head("same")]
    torch.testing.assert_close(A[0, [0, 3]], torch.full((2,), 0.5, dtype=torch.float64), rtol=0, atol=0.02)


def test_the_recorded_shares_are_measured():
    attention, _ = lab_model("国", weights="trained")
    shares = train.shares(attention)
    recorded = numbers.trained()["heads"]
    assert sorted(found["role"] for found in recorded) == sorted(train.JOBS)
    for row, found in zip(shares, recorded, strict=True):
        assert row[train.JOBS.index(found["role"])] == pytest.approx(found["share"], abs=2e-3)
        assert found["share"] > 0.95


def test_an_untrained_layer_has_no_such_heads():
    attention, _ = lab_model("国", weights="random")
    assert train.roles(train.shares(attention, B=50)) == [""] * 4


def test_the_script_finds_the_same_weights_again():
    again, recorded = train.record(*train.train()), numbers.trained()
    assert again.keys() == recorded.keys()
    for name in recorded:
        if name[:2] in ("W_", "b_"):
            np.testing.assert_allclose(again[name]["data"], recorded[name]["data"], rtol=0, atol=1e-6)
    assert again["heads"] == recorded["heads"]
    assert again["error"] == pytest.approx(recorded["error"], abs=2e-6)


def test_the_module_knows_the_size_of_the_trained_weights(node):
    assert node("TRAINED") == {"h": numbers.trained()["h"], "d_k": numbers.trained()["d_k"]}


def test_the_weights_are_light():
    assert len(source.read("trained.json").encode()) < 50_000


def test_lines_are_found_the_same_in_both_languages(node):
    for tokens in (
        *map(list, VERSES),
        *(sentence.split() for sentence in SENTENCES),
        list("ab国，，。"),
        list("国破山河"),
    ):
        assert node("lines", tokens) == [list(at) for at in numbers.lines(tokens)]
