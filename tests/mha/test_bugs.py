"""How multi-head attention goes wrong in public code, and the right value.

Each test is one row of the list of known bugs: the number and the place it was seen stand above it,
the input is small enough to work out by hand, and the literal is the right value.
"""

import math

import pytest
import torch

from mha import MultiHeadAttention, causal_mask, padding_mask, scaled_dot_product_attention, steps
from mha.masks import INTEGERS
from mha.reference import attention as one_head
from tests.mha.paths import ALL, API, TORCH, WEIGHTS, allow, column, forward, identity, need_weights, on, rows

EXACT = {"rtol": 0, "atol": 1e-12}  # float64 against a literal: a few roundings of 1e-16, on values up to 1e3
HALVES = (torch.float16, torch.bfloat16)
FLOATS = (*HALVES, torch.float32, torch.float64)
X = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]  # L 3, width 4: the x = 0…11 of rows 8 to 10


def zeros(length, width=1, dtype=torch.float64):
    return torch.zeros(1, length, width, dtype=dtype)


def assert_near(actual, expected, **tolerance):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual.detach().double(), expected, **(tolerance or EXACT))


# 1: an all-masked row · pytorch#41508, pytorch#190486


@on(ALL)
def test_a_row_with_no_key_allowed_gives_zeros(path):
    output, weights = path(identity(1), zeros(2), zeros(3), rows([1, 2, 6]), allow("000 111"))
    assert_near(output[0], [[0], [3]])
    if weights is not None:
        assert_near(weights[0, 0], [[0, 0, 0], [1 / 3, 1 / 3, 1 / 3]])


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("counted", ["the other row", "every row"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@on(TORCH)
def test_a_row_with_no_key_allowed_leaves_every_gradient_finite(path, dtype, counted, training):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dtype=dtype).train(training)
    x = torch.randn(1, 2, 4, dtype=dtype, requires_grad=True)
    output, _ = path(attention, x, x, x, allow("00 11"))
    (output[:, 1] if counted == "the other row" else output).sum().backward()
    for name, parameter in attention.named_parameters():
        assert parameter.grad.isfinite().all(), name
    assert x.grad.isfinite().all()
    assert attention.W_V.weight.grad.abs().sum() > 0  # the row that sees keys does teach


@on(TORCH)
def test_a_row_with_no_key_allowed_teaches_nothing(path):
    q, k, v = (torch.randn(1, 2, 2, dtype=torch.float64, requires_grad=True) for _ in range(3))
    path(identity(2), q, k, v, allow("00 11"))[0][:, 0].sum().backward()
    for tensor in (q, k, v):
        assert tensor.grad.abs().max() == 0


@on(TORCH)
def test_a_row_with_no_key_allowed_makes_no_nan_on_the_way_either(path):
    # a NaN that a later mask hides from the gradient still trips whoever looks for one
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(4, 2), torch.randn(1, 2, 4)
    with torch.autograd.set_detect_anomaly(True):
        output, _ = path(attention, x, mask=allow("00 11"))
        output.sum().backward()  # RuntimeError where some function returned NaN in its backward
    assert attention.W_Q.weight.grad.abs().sum() > 0


def test_a_row_with_no_key_allowed_survives_a_kernel_that_gives_nan_there(monkeypatch):
    # not every version and backend of the fused kernel gives zeros: one that follows the formula gives NaN
    def formula(Q, K, V, attn_mask=None, dropout_p=0.0, is_causal=False):
        S = (Q @ K.mT / math.sqrt(Q.shape[-1])).masked_fill(~attn_mask, -math.inf)
        return torch.softmax(S, dim=-1) @ V

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", formula)
    v = rows([1, 2, 6]).requires_grad_()
    output = identity(1)(zeros(2), zeros(3), v, allow("000 111"))
    assert_near(output[0], [[0], [3]])
    output.sum().backward()
    assert_near(v.grad[0], [[1 / 3], [1 / 3], [1 / 3]])  # from the second query; NaN · 0 from the first would be NaN


@on(ALL)
def test_a_causal_row_before_the_first_key_gives_zeros(path):
    output, _ = path(identity(1), zeros(2), zeros(1), rows([7]), is_causal=True)
    assert column(output) == [0, 7]


# 2: the mask's polarity · rasbt/LLMs-from-scratch#1061, pytorch#170415


@on(ALL)
def test_true_means_may_attend(path):
    output, weights = path(identity(1), zeros(1), zeros(4), rows([1, 2, 3, 100]), allow("1110"))
    assert_near(output[0], [[2]])
    if weights is not None:
        assert_near(weights[0, 0], [[1 / 3, 1 / 3, 1 / 3, 0]])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@on(API)
def test_an_integer_mask_means_the_same(path, dtype):
    mask = allow("1110").to(dtype)
    assert_near(path(identity(1), zeros(1), zeros(4), rows([1, 2, 3, 100]), mask)[0][0], [[2]])


# 3: a 0/1 float mask gets added · CosyVoice#628


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64], ids=str)
@on(API)
def test_a_floating_mask_is_refused(path, dtype):
    mask = allow("1110").to(dtype)
    with pytest.raises(TypeError, match=f"mask must be boolean or 0/1 integer .*got {dtype}: a floating mask is added"):
        path(identity(1), zeros(1), zeros(4), rows([1, 2, 3, 100]), mask)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_steps_refuse_a_floating_mask(dtype):
    allowed = allow("1110").to(dtype)
    with pytest.raises(TypeError, match=f"allowed must be boolean .*got {dtype}"):
        steps.softmax(torch.zeros(1, 4), allowed)
    with pytest.raises(TypeError, match=f"allowed must be boolean .*got {dtype}"):
        steps.attend(torch.zeros(1, 1), torch.zeros(4, 1), torch.zeros(4, 1), allowed)


def test_the_reference_refuses_a_floating_mask():
    with pytest.raises(TypeError, match=r"allowed must be boolean or 0/1 integer .*got float64"):
        one_head([[0]], [[0], [0]], [[10], [20]], [[0, -math.inf]])


# 4: a finite fill leaks · TransformerLens#318


@pytest.mark.parametrize("score", [-2e5, -2e10, -2e38], ids=str)  # below −1e5, −1e9, and half of what float32 holds
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@on(ALL)
def test_a_masked_key_stays_masked_below_any_finite_fill(path, dtype, score):
    q, k = rows([1], dtype), rows([score, 0], dtype)
    output, weights = path(identity(1, dtype=dtype), q, k, rows([7, 9], dtype), allow("10"))
    assert column(output) == [7]
    if weights is not None:
        assert weights[0, 0].tolist() == [[1, 0]]


# 5: −1e9 does not fit into float16 · apex#1105


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@on(ALL)
def test_a_masked_half_precision_input_gives_what_float32_gives(path, dtype):
    torch.manual_seed(0)
    half = MultiHeadAttention(4, 2, dtype=dtype)
    single = MultiHeadAttention(4, 2)
    single.load_state_dict(half.state_dict())  # the same rounded weights
    x = torch.rand(2, 3, 4).to(dtype)
    mask = allow("100 110 011")
    # four roundings of relative size eps / 2 (projection, weights, heads, output) of values below 3
    assert_near(
        path(half, x, mask=mask)[0],
        path(single, x.float(), mask=mask)[0].detach(),
        rtol=0,
        atol=6 * torch.finfo(dtype).eps,
    )


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_the_softmax_step_masks_half_precision_scores(dtype):
    weights = steps.softmax(torch.zeros(2, 3, dtype=dtype), allow("110 000"))
    assert weights.dtype == dtype
    assert weights.tolist() == [[0.5, 0.5, 0], [0, 0, 0]]


# 6: fill plus score overflows where two masks are added · transformers#17306


@on(ALL)
def test_two_masks_on_one_key_are_one_mask(path):
    # left padding: key 0 is nobody's, so causal query 0 has no key; query 1 sees key 1, query 2 sees 1 and 2
    half = torch.float16
    attention, v = identity(1, dtype=half), rows([10, 20, 30], half)
    output, _ = path(attention, zeros(3, dtype=half), zeros(3, dtype=half), v, allow("011"), is_causal=True)
    assert column(output) == [0, 20, 25]


# 7: masking after the softmax · timm#2236


@on(ALL)
def test_the_weights_that_are_left_sum_to_one(path):
    output, weights = path(identity(1), zeros(3), zeros(3), rows([1, 1, 1]), is_causal=True)
    assert_near(output[0], [[1], [1], [1]])  # the sum of the weights, since every value is 1
    if weights is not None:
        assert_near(weights[0, 0], [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])


def test_the_softmax_step_renormalises_under_a_mask():
    weights = steps.softmax(torch.zeros(3, 3, dtype=torch.float64), causal_mask(3))
    assert_near(weights, [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])


# 8: heads split by `view` alone · FuxiCTR#30


def test_a_head_is_a_slice_of_every_row():
    heads = steps.split_heads(torch.tensor([X]), 2)
    assert heads[0].tolist() == [[[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]]]


def test_the_trace_shows_a_slice_of_every_row():
    made = identity(4, 2).trace(rows(X))
    for heads in (made.Q_heads, made.K_heads, made.V_heads):
        assert heads[0].tolist() == [[[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]]]


@on(ALL)
def test_every_head_averages_over_positions_within_its_own_features(path):
    output, _ = path(identity(4, 2), zeros(1, 4), zeros(3, 4), rows(X))
    assert_near(output[0], [[4, 5, 6, 7]])  # by `view` alone: [2, 3, 8, 9]


# 9: heads merged without transposing back · jsbaan/transformer-from-scratch#6


def test_merging_undoes_the_split():
    assert steps.merge_heads(steps.split_heads(torch.tensor([X]), 2))[0].tolist() == X


@on(ALL)
def test_attention_to_oneself_alone_returns_the_input(path):
    assert_near(path(identity(4, 2), rows(X), mask=allow("100 010 001"))[0][0], X)


# 10: (d, h) instead of (h, d)


@on(ALL)
def test_the_first_head_holds_the_first_features(path):
    mask = allow("10 01").view(1, 2, 1, 2)  # head 0 sees key 0 alone, head 1 key 1 alone
    output, _ = path(identity(4, 2), zeros(1, 4), zeros(2, 4), rows([[1, 2, 3, 4], [10, 20, 30, 40]]), mask)
    assert output[0].tolist() == [[1, 2, 30, 40]]  # with (d, h): [1, 20, 3, 40]


# 11: softmax over the wrong axis · labml#146, labml#282


def test_the_softmax_step_normalises_rows():
    S = torch.tensor([[1.0, 2, 0], [3, 0, 1]], dtype=torch.float64)
    assert_near(steps.softmax(S).sum(dim=-1), [1, 1])
    assert_near(steps.softmax(S, torch.ones(2, 3, dtype=torch.bool)).sum(dim=-1), [1, 1])


@on(ALL)
def test_every_query_spreads_one_unit_of_weight_over_the_keys(path):
    eye = torch.eye(3, dtype=torch.float64)[None]
    S = rows([[1, 2, 0], [3, 0, 1]])
    output, weights = path(identity(3), S, eye * math.sqrt(3), eye)  # the scores are S, the output is the weights
    # e = 2.7182818, e² = 7.3890561, e³ = 20.0855369: rows over e + e² + 1 = 11.1073379 and e³ + 1 + e = 23.8038188
    expected = [[0.2447285, 0.6652410, 0.0900306], [0.8437947, 0.0420101, 0.1141952]]
    assert_near(output[0], expected, rtol=0, atol=1e-7)
    if weights is not None:
        assert_near(weights[0, 0], expected, rtol=0, atol=1e-7)


# 12: scale by √d_model · vit-pytorch#65


@on(ALL)
def test_scores_are_divided_by_the_root_of_the_head_width(path):
    # d_model 512, h 8: d_k 64. q·k = 64 · ln 3 / 8 = 8 · ln 3 in every head, ÷ √64 = ln 3: weights 3/4 and 1/4
    ones = torch.ones(1, 1, 512, dtype=torch.float64)
    k = torch.cat([ones * math.log(3) / 8, ones * 0], dim=1)
    v = torch.cat([ones, ones * 0], dim=1)
    output, weights = path(identity(512, 8), ones, k, v)
    assert_near(output, ones * 3 / 4)
    if weights is not None:
        assert_near(weights, torch.tensor([3 / 4, 1 / 4], dtype=torch.float64).expand(1, 8, 1, 2))


def test_the_trace_shows_scores_divided_by_eight_at_d_model_512_and_8_heads():
    made = identity(512, 8).trace(torch.ones(1, 1, 512, dtype=torch.float64))
    assert made.scores.flatten().tolist() == [8] * 8  # 64 / 8; by √512 = 22.6 it would be 2.83


# 13: `d ** 1 / 2` · transunet_pytorch#4


def test_a_width_of_16_divides_by_four():
    assert steps.scores(torch.ones(1, 16), torch.ones(1, 16)).tolist() == [[4]]  # 16 / 4; by 16 / 2 it would be 2


@on(ALL)
def test_a_width_of_16_divides_by_four_on_every_path(path):
    # q·k = 16 · ln 3 / 4 = 4 · ln 3, ÷ 4 = ln 3: weights 3/4 and 1/4
    ones = torch.ones(1, 1, 16, dtype=torch.float64)
    k, v = torch.cat([ones * math.log(3) / 4, ones * 0], dim=1), torch.cat([ones, ones * 0], dim=1)
    assert_near(path(identity(16), ones, k, v)[0], ones * 3 / 4)


# 14: one small linear layer shared by the heads · aladdinpersson/Machine-Learning-Collection#3


def test_every_head_has_projections_of_its_own():
    attention = MultiHeadAttention(512, 8, bias=False)
    assert sum(W.weight.numel() for W in (attention.W_Q, attention.W_K, attention.W_V)) == 786_432  # 3 · 512²


def test_changing_one_heads_projection_leaves_the_other_heads_alone():
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dtype=torch.float64)
    x = torch.randn(1, 3, 4, dtype=torch.float64)
    before = attention.trace(x)
    with torch.no_grad():
        for W in (attention.W_Q, attention.W_K, attention.W_V):
            W.weight[:2] += 1  # the columns of head 0, which nn.Linear keeps as rows
    after = attention.trace(x)
    assert not torch.equal(before.heads[:, 0], after.heads[:, 0])
    assert torch.equal(before.heads[:, 1], after.heads[:, 1])


# 15: a causal mask aligned top-left where L ≠ S · pytorch#108108, flax#5591


@on(ALL)
def test_a_single_query_sees_every_key_kept_before_it(path):
    assert_near(path(identity(1), zeros(1), zeros(5), rows([0, 1, 2, 3, 4]), is_causal=True)[0][0], [[2]])


@on(ALL)
def test_the_last_query_sees_every_key(path):
    # three queries, five keys: the first may see three, the second four, the last five
    output, _ = path(identity(1), zeros(3), zeros(5), rows([0, 1, 2, 3, 4]), is_causal=True)
    assert_near(output[0], [[1], [1.5], [2]])


@on(ALL)
def test_more_queries_than_keys_leave_the_first_queries_empty(path):
    assert_near(
        path(identity(1), zeros(5), zeros(2), rows([10, 20]), is_causal=True)[0][0],
        [[0], [0], [0], [10], [15]],
    )


def test_the_causal_mask_is_aligned_to_the_right_end():
    assert causal_mask(3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(1, 5).int().tolist() == [[1, 1, 1, 1, 1]]
    assert causal_mask(2, 3).int().tolist() == [[1, 1, 0], [1, 1, 1]]
    assert causal_mask(5, 2).int().tolist() == [[0, 0], [0, 0], [0, 0], [1, 0], [1, 1]]


# 16: dropout active in evaluation · pytorch#124464


@on(TORCH)
def test_two_passes_in_evaluation_are_equal(path):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dropout=0.5).eval()
    x = torch.randn(2, 5, 4)
    assert torch.equal(path(attention, x)[0], path(attention, x)[0])


@on({"forward": forward, "need_weights": need_weights})
def test_two_passes_in_training_are_not(path):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dropout=0.5).train()
    x = torch.randn(2, 5, 4)
    assert not torch.equal(path(attention, x)[0], path(attention, x)[0])


def test_a_trace_has_no_dropout_in_training_either():
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dropout=0.5, dtype=torch.float64)
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    assert_near(attention.train().trace(x).output, attention.eval()(x).detach())


# 17: returned weights after dropout · pytorch#90842


def test_returned_weights_are_those_before_dropout():
    # one key, p = .2: the weight is 1, the value passed on is 1 / .8 = 1.25 times as large, or dropped
    torch.manual_seed(0)
    attention = identity(1, dropout=0.2).train()
    one = torch.ones(100, 1, 1, dtype=torch.float64)
    output, weights = attention(one, need_weights=True)
    assert torch.equal(weights, torch.ones(100, 1, 1, 1, dtype=torch.float64))
    assert set(output.flatten().tolist()) == {0.0, 1.25}  # dropout was there


def test_the_attention_step_returns_the_weights_before_dropout():
    torch.manual_seed(0)
    one = torch.ones(100, 1, 1, dtype=torch.float64)
    heads, weights = steps.attend(one, one, one, dropout=0.2)
    assert torch.equal(weights, one)
    assert set(heads.flatten().tolist()) == {0.0, 1.25}


def test_a_trace_in_training_holds_weights_before_dropout():
    made = identity(1, dropout=0.9).train().trace(torch.ones(100, 1, 1, dtype=torch.float64))
    assert torch.equal(made.weights, torch.ones(100, 1, 1, 1, dtype=torch.float64))


# 18: weights averaged over the heads · pytorch#34537


@on(WEIGHTS)
def test_returned_weights_are_per_head(path):
    # head i of one query asks for key i alone: in every head the entropy is 0, of their mean it would be ln 4
    eye = torch.eye(4, dtype=torch.float64)
    q = 100 * eye.reshape(1, 1, 16)  # head i holds 100 · e_i
    k = eye.repeat(1, 4)[None]  # key j holds e_j in every head: the score is 50 where i = j, else 0
    _, weights = path(identity(16, 4), q, k, k)
    assert_near(weights, eye.view(1, 4, 1, 4))


# 19: batch and sequence swapped · AEMatter#3


@on(ALL)
def test_changing_sample_1_leaves_sample_0_where_it_is(path):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dtype=torch.float64)
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    before = path(attention, x)[0]
    after = path(attention, torch.stack([x[0], x[1] + 1]))[0]
    assert (after - before)[0].abs().max() == 0
    assert (after - before)[1].abs().max() > 0.1


# 20: a padding mask laid on rows · hyunwoongko/transformer#40


@on(ALL)
def test_a_padding_mask_hides_keys_and_not_queries(path):
    ids = torch.tensor([[5, 7, 0, 0]])
    mask = padding_mask((ids != 0).sum(dim=-1), S=4)
    output, weights = path(identity(1), zeros(4), zeros(4), rows([10, 20, 1000, 2000]), mask, is_causal=True)
    assert column(output) == [10, 15, 15, 15]
    if weights is not None:
        assert weights[0, 0].tolist() == [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]]


def test_padding_and_causal_masks_combine_by_and():
    allowed = padding_mask([2], S=4) & causal_mask(4)
    assert allowed.int().tolist() == [[[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]]]


def test_a_padding_mask_has_one_row_of_keys_a_sample():
    assert padding_mask(torch.tensor([1, 0, 3]), S=3).int().tolist() == [[[[1, 0, 0]]], [[[0, 0, 0]]], [[[1, 1, 1]]]]


# 21: a 3-D mask repeated wrongly over the heads · line/lighthouse#77

M0, M1 = [[1, 0], [0, 1]], [[0, 1], [1, 0]]


@on(API)
def test_a_mask_without_its_head_dimension_never_falls_onto_the_heads(path):
    mask = torch.tensor([M0, M1])  # two samples, two heads: it would broadcast, to the wrong dimension
    x = zeros(2, 4).expand(2, -1, -1)
    with pytest.raises(ValueError, match=r"\(B, h, L, S\) = \(2, 2, 2, 2\), got \(2, 2, 2\).*mask\[:, None\]"):
        path(identity(4, 2), x, mask=mask)


@on(WEIGHTS)
def test_a_per_sample_mask_is_the_same_for_every_head_of_the_sample(path):
    mask = torch.tensor([M0, M1])[:, None].bool()
    _, weights = path(identity(4, 2), zeros(2, 4).expand(2, -1, -1), mask=mask)
    assert weights.flatten(0, 1).tolist() == [M0, M0, M1, M1]


@on(ALL)
def test_a_per_sample_mask_reaches_its_own_sample(path):
    mask = torch.tensor([M0, M1])[:, None].bool()
    v = rows([[1, 2, 3, 4], [5, 6, 7, 8]]).expand(2, -1, -1)
    output, _ = path(identity(4, 2), torch.zeros_like(v), torch.zeros_like(v), v, mask)
    assert output.tolist() == [[[1, 2, 3, 4], [5, 6, 7, 8]], [[5, 6, 7, 8], [1, 2, 3, 4]]]


# 22: an in-place edit breaks autograd, or the caller's tensor · MAE-DFER#15


@pytest.mark.parametrize("mask_dtype", [torch.bool, torch.int64, torch.uint8], ids=str)
@on(API)
def test_nothing_the_caller_holds_is_edited(path, mask_dtype):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2)
    held = {name: torch.randn(2, 3, 4, requires_grad=True) for name in "QKV"}
    held["mask"] = allow("000 110 011").to(mask_dtype)
    held |= dict(attention.named_parameters())
    before = {name: tensor.detach().clone() for name, tensor in held.items()}
    versions = {name: tensor._version for name, tensor in held.items()}
    output, _ = path(attention, held["Q"], held["K"], held["V"], held["mask"], is_causal=True)
    output.sum().backward()  # an in-place edit of a softmax output raises RuntimeError here
    for name, tensor in held.items():
        assert torch.equal(tensor, before[name]), name
        assert tensor._version == versions[name], f"{name} was written to"


def test_the_steps_edit_neither_scores_nor_mask():
    S, allowed = torch.ones(2, 2, requires_grad=True) * 1, allow("00 10")
    steps.softmax(S, allowed).sum().backward()
    assert S.tolist() == [[1, 1], [1, 1]]
    assert (S._version, allowed._version) == (0, 0)
    assert allowed.int().tolist() == [[0, 0], [1, 0]]


# 23: scores overflow before they are scaled · pytorch#110505


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@on(ALL)
def test_large_half_precision_queries_and_keys_do_not_overflow(path, dtype):
    # q·k = 64 · 40 · 40 = 102,400 is above float16's 65,504; both keys are the same: weights 1/2
    forty = torch.full((1, 2, 64), 40.0, dtype=dtype)
    v = torch.stack([torch.zeros(64), torch.ones(64)])[None].to(dtype)
    output, weights = path(identity(64, dtype=dtype), forty[:, :1], forty, v)
    assert output.tolist() == [[[0.5] * 64]]
    if weights is not None:
        assert weights.tolist() == [[[[0.5, 0.5]]]]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_the_scores_of_large_half_precision_numbers_are_finite(dtype):
    forty = torch.full((1, 64), 40.0, dtype=dtype)
    assert steps.scores(forty, forty).tolist() == [[12_800]]  # 102,400 / 8


# 24: `.view` after `transpose`


def strided(x, how):
    """The numbers of x, (B, L, width), laid out in memory another way."""
    if how == "transposed":
        return x.transpose(0, 1).contiguous().transpose(0, 1)
    if how == "every other":
        return x.repeat_interleave(2, dim=-1)[..., ::2]
    return x.transpose(1, 2).contiguous().transpose(1, 2)


@pytest.mark.parametrize("how", ["transposed", "every other", "columns first"])
@on(ALL)
def test_any_strides_will_do(path, how):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dtype=torch.float64)
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    assert not strided(x, how).is_contiguous()
    assert_near(path(attention, strided(x, how))[0], path(attention, x)[0].detach())


@pytest.mark.parametrize("how", ["transposed", "every other", "columns first"])
def test_split_and_merge_take_any_strides(how):
    x = torch.arange(24).view(2, 3, 4)
    assert torch.equal(steps.split_heads(strided(x, how), 2), steps.split_heads(x, 2))
    assert torch.equal(steps.merge_heads(steps.split_heads(strided(x, how), 2)), x)
    heads = strided(x, how)[None]  # as if it were (B, h, L, d_v)
    assert torch.equal(steps.merge_heads(heads), steps.merge_heads(x[None]))


def test_splitting_copies_nothing():
    x = torch.randn(2, 3, 4)
    assert steps.split_heads(x, 2).data_ptr() == x.data_ptr()


# 25: h does not divide d_model · pytorch#28719


def test_a_number_of_heads_that_does_not_divide_d_model_is_refused_at_construction():
    message = "h must divide d_model, got d_model = 10 and h = 3; choose h from 1, 2, 5, 10"
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(10, 3)


@pytest.mark.parametrize("given", [{"d_k": 4}, {"d_v": 4}])
def test_it_is_refused_while_one_of_the_two_head_widths_is_open(given):
    with pytest.raises(ValueError, match="h must divide d_model, got d_model = 10 and h = 3"):
        MultiHeadAttention(10, 3, **given)


def test_it_is_accepted_where_both_head_widths_are_given():
    attention = MultiHeadAttention(10, 3, d_k=4, d_v=2)
    assert attention(torch.zeros(1, 2, 10)).shape == (1, 2, 10)
    assert attention.W_Q.weight.shape == (12, 10)  # h · d_k
    assert attention.W_V.weight.shape == (6, 10)  # h · d_v


# 26: query and key lengths differ · cs249r_book#1875


@on(ALL)
def test_query_and_key_lengths_may_differ_under_a_mask(path):
    output, _ = path(identity(1), zeros(2), zeros(3), rows([10, 20, 30]), allow("101 011"))
    assert_near(output[0], [[20], [25]])


@on(ALL)
def test_query_and_key_lengths_may_differ_without_a_mask(path):
    assert_near(path(identity(1), zeros(2), zeros(3), rows([10, 20, 60]))[0][0], [[30], [30]])


@on(ALL)
def test_a_mask_of_keys_alone_reaches_every_query(path):
    # (S,) broadcasts like any other shape; torch's fused kernel reads no mask of fewer than two dimensions
    output, _ = path(identity(1), zeros(2), zeros(3), rows([10, 20, 30]), torch.tensor([True, False, True]))
    assert_near(output[0], [[20], [20]])


def test_the_function_works_on_one_unbatched_head():
    output, weights = scaled_dot_product_attention(
        torch.zeros(2, 1), torch.zeros(3, 1), torch.tensor([[10.0], [20], [30]]), allow("100 011")
    )
    assert output.tolist() == [[10], [25]]
    assert weights.tolist() == [[1, 0, 0], [0, 0.5, 0.5]]
