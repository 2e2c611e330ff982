"""Weights travel to and from torch's own module, and what comes out stays the same."""

import itertools

import pytest
import torch
from torch import nn

from mha import MultiHeadAttention, from_torch, to_torch
from tests.mha.test_errors import assert_refused

DOUBLE = torch.float64
CHOICES = list(itertools.product([1, 2, 3], [True, False]))


def assert_same(mine, theirs):
    X = torch.randn(2, 5, mine.d_model, dtype=DOUBLE)
    K = torch.randn(2, 4, mine.d_model, dtype=DOUBLE)
    mask = torch.tensor([[1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]]).bool()
    first, second = (x if theirs.batch_first else x.transpose(0, 1) for x in (X, K))
    output, weights = theirs(first, second, second, attn_mask=~mask, average_attn_weights=False)
    my_output, my_weights = mine(X, K, mask=mask, need_weights=True)
    torch.testing.assert_close(my_output, output if theirs.batch_first else output.transpose(0, 1), rtol=0, atol=1e-12)
    torch.testing.assert_close(my_weights, weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(("h", "bias"), CHOICES)
def test_what_comes_from_torch_gives_what_torch_gives(h, bias, batch_first):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(6, h, bias=bias, batch_first=batch_first, dtype=DOUBLE)
    for parameter in theirs.parameters():  # torch begins with biases of 0, which would hide a lost one
        nn.init.normal_(parameter)
    assert_same(from_torch(theirs), theirs)


@pytest.mark.parametrize(("h", "bias"), CHOICES)
def test_what_goes_to_torch_gives_the_same_there(h, bias):
    torch.manual_seed(0)
    mine = MultiHeadAttention(6, h, bias=bias, dtype=DOUBLE)
    assert_same(mine, to_torch(mine))


@pytest.mark.parametrize(("h", "bias"), CHOICES)
def test_there_and_back_changes_no_bit(h, bias):
    mine = MultiHeadAttention(6, h, bias=bias, dropout=0.25, dtype=torch.float16).eval()
    back = from_torch(to_torch(mine))
    assert repr(back) == repr(mine)
    assert not back.training
    for (name, before), (same, after) in zip(mine.state_dict().items(), back.state_dict().items(), strict=True):
        assert name == same
        assert after.dtype == torch.float16
        assert torch.equal(before, after)


def test_the_weights_are_copies():
    theirs = nn.MultiheadAttention(4, 2)
    mine = from_torch(theirs)
    again = to_torch(mine)
    with torch.no_grad():
        mine.W_Q.weight.zero_()
        mine.W_O.weight.zero_()
    assert theirs.in_proj_weight[:4].any()
    assert theirs.out_proj.weight.any()
    assert again.in_proj_weight[:4].any()
    assert again.out_proj.weight.any()


@pytest.mark.parametrize("training", [True, False])
def test_training_and_dropout_travel_along(training):
    mine = from_torch(nn.MultiheadAttention(4, 2, dropout=0.5).train(training))
    assert (mine.training, mine.dropout) == (training, 0.5)
    theirs = to_torch(mine)
    assert (theirs.training, theirs.dropout, theirs.batch_first) == (training, 0.5, True)


@pytest.mark.parametrize(
    "used", [{"kdim": 3}, {"vdim": 3}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 3, "vdim": 3}], ids=str
)
def test_options_of_torch_without_a_counterpart_are_refused(used):
    name = ", ".join(used)
    message = "module must be without kdim, vdim, add_bias_kv, add_zero_attn, which mha does not have, got one with"
    with assert_refused(ValueError, f"{message} {name}"):
        from_torch(nn.MultiheadAttention(4, 2, **used))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_k": 3}, "attention must have d_k = 2, as torch has, got 3"),
        ({"d_v": 1}, "attention must have d_v = 2, as torch has, got 1"),
        ({"kv_heads": 1}, "attention must have kv_heads = 2, as torch has, got 1"),
    ],
    ids=["d_k", "d_v", "kv_heads"],
)
def test_layers_that_torch_does_not_have_are_refused(sizes, message):
    with assert_refused(ValueError, message):
        to_torch(MultiHeadAttention(4, 2, **sizes))


def test_other_classes_are_refused():
    with assert_refused(TypeError, "module must be a torch.nn.MultiheadAttention, got MultiHeadAttention"):
        from_torch(MultiHeadAttention(4, 2))
    with assert_refused(TypeError, "attention must be a MultiHeadAttention, got MultiheadAttention"):
        to_torch(nn.MultiheadAttention(4, 2))
