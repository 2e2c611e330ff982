"""arithmetic.js finds what `mha` finds, in Node and in Chromium, in every tensor of the pass."""

import itertools
import math

import pytest
import torch

from mha import MultiHeadAttention
from mha.widgets import lab_model
from mha.widgets.lab import model as numbers
from mha.widgets.lab.state import BREAKS
from tests.lab.vectors import PLAIN, SIZES, broken, expected, own, sent

MASKS = ("none", "causal", "padding", "drawn")


def tensor(matrix):
    return torch.tensor(matrix["data"], dtype=torch.float64).reshape(matrix["shape"])


def assert_same(found, wanted):
    assert wanted.keys() <= found.keys()
    for name, right in wanted.items():
        torch.testing.assert_close(
            tensor(found[name]), right, rtol=1e-6, atol=1e-12, msg=lambda text, name=name: f"{name}: {text}"
        )


def drawn(L, seed):
    """A mask at random, whose first row allows no key."""
    table = (torch.rand(L, L, generator=torch.Generator().manual_seed(seed)) < 0.6).int()
    table[0] = 0
    return table.tolist()


def state_of(L, **chosen):
    return {**PLAIN, "padding": L // 2, "drawn": drawn(L, L), **chosen}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_tensor_of_any_model_is_that_of_mha(lab, sizes, mask):
    attention, X = own(sum(sizes), *sizes)
    for scale in (True, False):
        state = state_of(sizes[0], weights="given", mask=mask, scale=scale)
        found = lab("pass", state, None, sent(attention, X))
        assert found["said"] == []
        assert_same(found["trace"], expected(attention, X, state))


def test_a_model_without_biases_and_one_that_shares_keys_are_that_of_mha(lab):
    for options in ({"bias": False}, {"kv_heads": 2}):
        attention, X = own(3, 5, 4, 3, 2, 6, **options)
        found = lab("pass", state_of(5, weights="given", mask="causal"), None, sent(attention, X))
        trace = attention.trace(X, is_causal=True)
        assert_same(found["trace"], {"weights": trace.weights[0], "heads": trace.heads[0], "output": trace.output[0]})


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("weights", ["random", "identity", "trained"])
def test_every_tensor_of_the_labs_own_weights_is_that_of_mha(lab, weights, mask):
    sentences = (
        ["国", "破", "山", "河", "在"],
        ["the", "cat", "sees", "the", "🙂"],
        list("国破山河在，城春草木深"),
        ["e"],
    )
    sizes = [(4, 8)] if weights == "trained" else [(1, 1), (2, 1), (3, 4), (8, 32)]
    for tokens, (h, d_k), seed in zip(sentences, itertools.cycle(sizes), (0, 1, 41, 999_999), strict=False):
        state = state_of(len(tokens), tokens=tokens, unit="words", h=h, d_k=d_k, weights=weights, mask=mask, seed=seed)
        found = lab("pass", state, numbers.trained(), None)
        attention, X = lab_model(tokens, h, d_k, weights, seed)
        assert found["said"] == []
        assert_same(found["trace"], expected(attention, X, state))


def test_both_languages_draw_the_same_random_numbers_to_1e_12(lab):
    for name in ("token/国", "0/W_Q", "999999/W_O", "token/👩‍👩‍👧", ""):
        found = torch.tensor(lab("normal", name, 999), dtype=torch.float64)
        torch.testing.assert_close(found, torch.from_numpy(numbers.normal(name, 999)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("mask", MASKS)
def test_every_mistake_alone_and_with_others_gives_the_wrong_numbers_it_gives_in_torch(lab, mask):
    attention, X = own(5, 6, 3, 4, 4, 12)
    for n in (1, 2, 5):
        for breaks in itertools.combinations(BREAKS, n):
            state = state_of(6, weights="given", mask=mask, breaks=list(breaks))
            found = lab("pass", state, None, sent(attention, X))["trace"]
            wrong = broken(attention, X, state)
            assert_same(found, wrong)
            if mask != "none" or breaks != ("late",):  # with nothing masked, late is as good as early
                assert not torch.allclose(wrong["output"], expected(attention, X, state)["output"])


def counting(h=2):
    """A model that changes nothing, on x = 0 … 11, L 3: what the list of bugs is about."""
    attention = MultiHeadAttention(4, h, dtype=torch.float64).requires_grad_(False)
    for linear in (attention.W_Q, attention.W_K, attention.W_V, attention.W_O):
        linear.weight.copy_(torch.eye(4))
        linear.bias.zero_()
    return attention, torch.arange(12, dtype=torch.float64).view(1, 3, 4)


def test_bug_8_a_view_alone_mixes_positions(lab):
    given = sent(*counting())
    assert tensor(lab("pass", state_of(3, weights="given"), None, given)["trace"]["V_heads"])[0].tolist() == [
        [0, 1], [4, 5], [8, 9],
    ]  # fmt: skip
    wrong = lab("pass", state_of(3, weights="given", breaks=["reshape"]), None, given)["trace"]
    assert tensor(wrong["V_heads"])[0].tolist() == [[0, 1], [2, 3], [4, 5]]


def test_bug_9_merging_without_transposing_back_mixes_positions(lab):
    attention, X = counting()
    own_place = [[int(i == j) for j in range(3)] for i in range(3)]  # each token sees itself alone: head = V
    given = sent(attention, X)
    state = state_of(3, weights="given", mask="drawn", drawn=own_place)
    assert tensor(lab("pass", state, None, given)["trace"]["output"]).tolist() == X[0].tolist()
    wrong = lab("pass", state | {"breaks": ["transpose"]}, None, given)["trace"]
    assert tensor(wrong["output"]).tolist() == [[0, 1, 4, 5], [8, 9, 2, 3], [6, 7, 10, 11]]


def test_bug_11_a_softmax_over_columns_makes_columns_sum_to_1(lab):
    given = sent(*own(1, 6, 2, 3, 3, 6))
    right, wrong = (
        tensor(lab("pass", state_of(6, weights="given", breaks=breaks), None, given)["trace"]["weights"])
        for breaks in ([], ["axis"])
    )
    torch.testing.assert_close(right.sum(-1), torch.ones(2, 6, dtype=torch.float64))
    torch.testing.assert_close(wrong.sum(-2), torch.ones(2, 6, dtype=torch.float64))
    assert (wrong.sum(-1) - 1).abs().max() > 0.1


def test_bug_12_dividing_by_the_root_of_d_model_divides_by_too_much(lab):
    given = sent(*own(2, 4, 8, 4, 4, 32))
    for breaks, root in (([], 2.0), (["d_model"], math.sqrt(32))):
        trace = lab("pass", state_of(4, weights="given", breaks=breaks), None, given)["trace"]
        torch.testing.assert_close(tensor(trace["raw"]) / tensor(trace["scores"]), torch.full((8, 4, 4), root).double())


def test_bug_7_masking_after_the_softmax_leaves_rows_that_do_not_sum_to_1(lab):
    attention, X = counting()
    given = sent(attention, 0 * X)  # scores = zeros(3, 3)
    for breaks, sums in (([], [1, 1, 1]), (["late"], [1 / 3, 2 / 3, 1])):
        state = state_of(3, weights="given", mask="causal", breaks=breaks)
        weights = tensor(lab("pass", state, None, given)["trace"]["weights"])
        torch.testing.assert_close(weights[0].sum(-1), torch.tensor(sums, dtype=torch.float64))


def test_a_masked_weight_is_exactly_0_and_an_all_masked_row_is_zeros(lab):
    given = sent(*own(9, 5, 2, 3, 3, 6))
    trace = lab("pass", state_of(5, weights="given", mask="padding", padding=0), None, given)["trace"]
    assert tensor(trace["weights"]).abs().max() == 0
    assert tensor(trace["heads"]).abs().max() == 0
    assert tensor(trace["entropy"]).tolist() == [[0.0] * 5] * 2
    causal = tensor(lab("pass", state_of(5, weights="given", mask="causal"), None, given)["trace"]["weights"])
    assert causal.triu(1).abs().max() == 0
    assert causal[:, torch.ones(5, 5).tril().bool()].min() > 0


def test_scores_too_large_for_an_exponential_still_give_weights(lab):
    attention, X = own(4, 5, 2, 3, 3, 6)
    given = sent(attention, 1000 * X)
    trace = lab("pass", state_of(5, weights="given"), None, given)["trace"]
    assert tensor(trace["scores"]).abs().max() > 1e5  # exp overflows at 709
    assert_same(trace, expected(attention, 1000 * X, PLAIN))


def test_what_the_heads_add_makes_the_output(lab):
    attention, X = own(8, 4, 3, 2, 5, 7)
    trace = lab("pass", state_of(4, weights="given", mask="causal"), None, sent(attention, X))["trace"]
    total = tensor(trace["contributions"]).sum(0) + attention.W_O.bias
    torch.testing.assert_close(total, tensor(trace["output"]), rtol=1e-6, atol=1e-12)


def test_equal_tokens_score_highest_under_identity_weights(lab):
    tokens = list("青青河畔草，郁郁园中柳")
    for h, d_k in ((1, 1), (2, 4), (8, 32)):
        found = lab("pass", {"tokens": tokens, "h": h, "d_k": d_k, "weights": "identity"}, None, None)
        S = tensor(found["trace"]["scores"])
        same = torch.tensor([[a == b for b in tokens] for a in tokens])
        assert (S[:, same].min() + 1e-9 >= S[:, ~same].max()).item()


SHOWN = ("X", "Q", "K", "V", "Q_heads", "K_heads", "V_heads", "raw", "scores", "weights", "heads", "concat", "output",
         "contributions", "entropy")  # fmt: skip


@pytest.mark.parametrize("breaks", [[], ["reshape", "transpose"], ["axis"], ["late", "d_model"]], ids=str)
def test_what_is_said_of_a_numbers_origin_makes_that_number(lab, breaks):
    attention, X = own(6, 5, 3, 4, 2, 7)
    given = sent(attention, X)
    for scale in (True, False):
        state = state_of(5, weights="given", mask="causal", breaks=breaks, scale=scale)
        found = {name: M for name, M in given.items() if name[0] in "XWb"} | lab("pass", state, None, given)["trace"]
        there = {name: tensor(M) for name, M in found.items()}
        wanted = [(name, at) for name in SHOWN for at in itertools.product(*map(range, there[name].shape))]
        for told in lab("explain", state, None, given, wanted):
            name, index, terms = told["name"], told["index"], told["terms"]
            assert told["value"] == there[name][tuple(index)].item()
            for term in terms:
                product = there[term["from"][0]][tuple(term["from"][1])].item()
                if term["with"]:
                    product *= there[term["with"][0]][tuple(term["with"][1])].item()
                if name not in ("weights", "entropy"):
                    assert term["product"] == pytest.approx(product, rel=1e-12)
            if name == "weights":
                mine = [term["product"] for term in terms if term["from"][1] == index]
                may = "late" in breaks or index[2] <= index[1]
                assert len(mine) == (1 if may else 0)
                assert not mine or told["value"] in (0, pytest.approx(mine[0] / told["divide"]))
            elif name == "X":
                assert terms == []
            else:
                total = sum(term["product"] for term in terms) / told["divide"]
                assert told["value"] == pytest.approx(total, rel=1e-9, abs=1e-12), told["formula"]


def test_every_tensor_has_a_name_and_a_step_shows_it(node):
    found = node("pass", {}, None, None)
    names, steps = node("NAMES"), node("STEPS")
    assert names.keys() == found["trace"].keys()
    sizes = {"L": 5, "h": 4, "d_k": 8, "d_v": 8, "d_model": 32, "h·d_k": 32, "h·d_v": 32}
    for name, words in names.items():
        assert [sizes[size] for size in words["shape"].strip("()").split(", ")] == found["trace"][name]["shape"]
    assert len(steps) == 9
    assert {name for step in steps for name in step["tensors"]} <= names.keys()
