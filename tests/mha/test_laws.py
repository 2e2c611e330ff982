"""Properties of attention that catch whole families of bugs, over random sizes.

Sizes are drawn by hypothesis, numbers by torch from a drawn seed; both are the same in every run.

Tolerances, everywhere below:
float64: 1e-12. Values stay below 100, so one rounding is at most 1e-14, and sums have at most 40 terms.
float32: 1e-5 absolute and relative. The same sums of values below 4, with roundings of 6e-8 each.
half:    4 eps. Inputs in [-1, 1] keep outputs below 2; four roundings of relative size eps / 2 lie on the way.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from mha import MultiHeadAttention, causal_mask, padding_mask, reference, scaled_dot_product_attention, steps
from mha import attention as attention_module
from tests.mha.paths import (
    ALL,
    API,
    TORCH,
    WEIGHTS,
    allow,
    array,
    by_hand,
    column,
    forward,
    identity,
    in_numpy,
    need_weights,
    on,
    rows,
)

law = settings(derandomize=True, deadline=None, max_examples=40, database=None)
HALVES = (torch.float16, torch.bfloat16)
WITH_DROPOUT = {"forward": forward, "need_weights": need_weights}
DOUBLE = torch.float64


def tolerance(dtype):
    return {
        torch.float64: {"rtol": 0, "atol": 1e-12},
        torch.float32: {"rtol": 1e-5, "atol": 1e-5},
    }.get(dtype) or {"rtol": 0, "atol": 4 * torch.finfo(dtype).eps}


def assert_near(actual, expected, dtype=DOUBLE):
    torch.testing.assert_close(actual.detach().double(), expected.detach().double(), **tolerance(dtype))


@dataclass
class Case:
    """One layer and one call of it."""

    attention: MultiHeadAttention
    Q: Tensor
    K: Tensor
    V: Tensor
    mask: Tensor | None
    is_causal: bool

    @property
    def inputs(self):
        return self.Q, self.K, self.V, self.mask, self.is_causal

    @property
    def shape(self):
        return self.Q.shape[0], self.attention.h, self.Q.shape[1], self.K.shape[1]  # (B, h, L, S)

    @property
    def allowed(self):
        """Where attending is allowed, in full: (B, h, L, S)."""
        allowed = by_hand(self.mask, self.is_causal, *self.shape[2:])
        return torch.ones(self.shape, dtype=torch.bool) if allowed is None else allowed.expand(self.shape)

    def __repr__(self):
        mask = None if self.mask is None else self.mask.int().tolist()
        return f"{self.attention}, (B, h, L, S) = {self.shape}, is_causal={self.is_causal}, mask={mask}"


KINDS = list(product([1, 2, 3, 5, "d_model"], [None, (), ("h",), ("B",), ("B", "h"), "keys", "rows"], [False, True]))
MASKED = [kind for kind in KINDS if kind[1] is not None]
UNMASKED = [kind for kind in KINDS if kind[1] is None]


@st.composite
def cases(draw, dtype=DOUBLE, even=False, kinds=KINDS, grouped=False):
    """Any sizes: h odd, 1 or d_model; d_k and d_v free (or d_model / h where `even`); every shape of mask.
    Each query head has a key head of its own, unless they are `grouped`.

    h, mask and is_causal are one choice: drawn one by one they cluster, and few examples would see a mask.
    """
    h, shape, is_causal = draw(st.sampled_from(kinds))
    size, width = st.sampled_from([3, 2, 5, 4, 1]), st.sampled_from([2, 1, 4, 3])
    B, L, S, d_k, d_v = draw(st.sampled_from([2, 3, 1])), draw(size), draw(size), draw(width), draw(width)
    if even:
        h = 4 if h == "d_model" else h
        d_k = 1 if h == 4 else d_k  # as many heads as features
        d_v, d_model = d_k, h * d_k
    else:
        d_model = draw(st.sampled_from([4, 3, 6, 5, 8, 1]))
        h = d_model if h == "d_model" else h
    bias, share = draw(st.booleans()), draw(st.sampled_from([0.7, 0.3]))
    torch.manual_seed(draw(st.integers(0, 2**16)))
    if shape is None:
        mask = None
    elif shape == "keys":
        mask = torch.rand(S) < share
    elif shape == "rows":
        mask = torch.rand(L, S) < share
    else:  # (B or 1, h or 1, L or 1, S)
        rows_of = L if draw(st.booleans()) else 1
        mask = torch.rand(B if "B" in shape else 1, h if "h" in shape else 1, rows_of, S) < share
    kv_heads = draw(st.sampled_from([n for n in range(1, h + 1) if h % n == 0])) if grouped else h
    attention = MultiHeadAttention(d_model, h, d_k=d_k, d_v=d_v, kv_heads=kv_heads, bias=bias, dtype=dtype)
    uniform = (torch.rand(B, n, d_model, dtype=DOUBLE) * 2 - 1 for n in (L, S, S))  # [-1, 1]
    Q, K, V = (x.to(dtype) for x in uniform)
    return Case(attention, Q, K, V, mask, is_causal)


# agreement


@law
@given(case=cases(grouped=True))
@on(TORCH)
def test_every_path_agrees_with_the_reference(path, case):
    output, weights = path(case.attention, *case.inputs)
    expected, expected_weights = in_numpy(case.attention, *case.inputs)
    assert_near(output, expected)
    if weights is not None:
        assert_near(weights, expected_weights)


@settings(law, max_examples=15)
@given(data=st.data())
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
@on(TORCH)
def test_every_path_agrees_with_the_reference_in_every_precision(path, dtype, data):
    case = data.draw(cases(dtype, grouped=True))
    output, weights = path(case.attention, *case.inputs)
    expected, expected_weights = in_numpy(case.attention, *case.inputs)  # float64, from the same rounded numbers
    assert output.dtype == dtype
    assert_near(output, expected, dtype)
    if weights is not None:
        assert weights.dtype == dtype
        assert_near(weights, expected_weights, dtype)


@law
@given(case=cases(even=True))
@on(TORCH)
def test_every_path_agrees_with_torchs_module(path, case):
    mine, (B, h, L, S) = case.attention, case.shape
    bias = mine.W_Q.bias is not None
    judge = nn.MultiheadAttention(mine.d_model, h, bias=bias, batch_first=True, dtype=DOUBLE)
    with torch.no_grad():
        judge.in_proj_weight.copy_(torch.cat([mine.W_Q.weight, mine.W_K.weight, mine.W_V.weight]))
        judge.out_proj.weight.copy_(mine.W_O.weight)
        if bias:
            judge.in_proj_bias.copy_(torch.cat([mine.W_Q.bias, mine.W_K.bias, mine.W_V.bias]))
            judge.out_proj.bias.copy_(mine.W_O.bias)
    refused = ~case.allowed.reshape(B * h, L, S)  # True means the opposite there
    theirs, their_weights = judge(case.Q, case.K, case.V, attn_mask=refused, average_attn_weights=False)
    output, weights = path(mine, *case.inputs)
    live = case.allowed.any(dim=-1)  # (B, h, L): the rows that see a key; torch's module gives NaN in the others
    seen = live.all(dim=1)  # (B, L): the queries of which no head is blind
    assert_near(output[seen], theirs[seen])
    if weights is not None:
        assert_near(weights[live], their_weights[live])


@law
@given(case=cases(even=True))
@on(TORCH)
def test_every_path_agrees_with_torchs_function_composed_by_hand(path, case):
    mine, (B, h, L, S) = case.attention, case.shape
    q = F.linear(case.Q, mine.W_Q.weight, mine.W_Q.bias).view(B, L, h, -1).transpose(1, 2)
    k = F.linear(case.K, mine.W_K.weight, mine.W_K.bias).view(B, S, h, -1).transpose(1, 2)
    v = F.linear(case.V, mine.W_V.weight, mine.W_V.bias).view(B, S, h, -1).transpose(1, 2)
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=case.allowed)  # True = may attend, as here
    theirs = F.linear(heads.transpose(1, 2).reshape(B, L, -1), mine.W_O.weight, mine.W_O.bias)
    seen = case.allowed.any(dim=-1).all(dim=1)  # (B, L): some versions of torch give NaN in a blind row
    assert_near(path(mine, *case.inputs)[0][seen], theirs[seen])


@law
@given(case=cases(grouped=True))
@on({name: path for name, path in TORCH.items() if name != "forward"})
def test_the_gradients_of_every_path_agree_with_those_of_the_fused_one(path, case):
    def gradients(path):
        inputs = [x.clone().requires_grad_() for x in (case.Q, case.K, case.V)]
        output, _ = path(case.attention, *inputs, case.mask, case.is_causal)
        # squared, so that the gradient depends on every number of the output
        return torch.autograd.grad(output.square().sum(), [*inputs, *case.attention.parameters()])

    for mine, fused in zip(gradients(path), gradients(forward), strict=True):
        torch.testing.assert_close(mine, fused, rtol=0, atol=1e-10)  # gradients reach a hundred times the output


def test_the_paths_agree_under_torch_compile_with_changing_lengths():
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dtype=DOUBLE)
    compiled = torch.compile(attention, backend="eager", dynamic=True, fullgraph=True)
    for L, S in ((3, 3), (2, 5), (5, 2)):
        q, k = torch.randn(2, L, 4, dtype=DOUBLE), torch.randn(2, S, 4, dtype=DOUBLE)
        output, weights = in_numpy(attention, q, k, is_causal=True)
        assert_near(compiled(q, k, is_causal=True), output)
        assert_near(compiled(q, k, is_causal=True, need_weights=True)[1], weights)


# heads


@law
@given(st.integers(0, 3), st.integers(0, 5), st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_split_then_merge_is_the_identity(B, L, h, d_k, transposed):
    x = torch.arange(B * L * h * d_k).view(B, L, h * d_k)
    if transposed:
        x = x.transpose(0, 1)
    heads = steps.split_heads(x, h)
    assert heads.shape == (x.shape[0], h, x.shape[1], d_k)
    assert torch.equal(steps.merge_heads(heads), x)
    assert torch.equal(steps.split_heads(steps.merge_heads(heads), h), heads)


@law
@given(case=cases())
def test_a_head_is_a_slice_of_the_projections_columns(case):
    made = case.attention.trace(*case.inputs[:4], is_causal=case.is_causal)
    for name, X in (("Q", case.Q), ("K", case.K), ("V", case.V)):
        W = getattr(case.attention, f"W_{name}")
        width = case.attention.d_v if name == "V" else case.attention.d_k
        for i in range(case.attention.h):
            columns = slice(i * width, (i + 1) * width)
            alone = X @ W.weight.T[:, columns] + (0 if W.bias is None else W.bias[columns])
            assert_near(getattr(made, f"{name}_heads")[:, i], alone)


@law
@given(case=cases())
@on(TORCH)
def test_every_head_attends_by_itself(path, case):
    # MultiHead = Σ head_i · W_O[i], each head one attention over its own columns, by the NumPy definition
    a = case.attention
    total = torch.zeros(*case.Q.shape, dtype=DOUBLE) + (0 if a.W_O.bias is None else a.W_O.bias)
    for i in range(a.h):
        wide, tall = slice(i * a.d_k, (i + 1) * a.d_k), slice(i * a.d_v, (i + 1) * a.d_v)
        parameters = {
            "W_Q": array(a.W_Q.weight[wide].T),
            "W_K": array(a.W_K.weight[wide].T),
            "W_V": array(a.W_V.weight[tall].T),
            "W_O": array(a.W_O.weight[:, tall].T),
        }
        if a.W_Q.bias is not None:
            parameters |= {
                "b_Q": array(a.W_Q.bias[wide]),
                "b_K": array(a.W_K.bias[wide]),
                "b_V": array(a.W_V.bias[tall]),
            }
        one, _ = reference.multi_head_attention(
            array(case.Q), array(case.K), array(case.V), parameters, 1, case.allowed[:, i : i + 1].numpy()
        )
        total = total + torch.from_numpy(one)
    assert_near(path(a, *case.inputs)[0], total)


@law
@given(case=cases())
def test_the_sum_over_heads_equals_the_concatenated_form(case):
    a = case.attention
    made = a.trace(*case.inputs[:4], is_causal=case.is_causal)
    W_O = a.W_O.weight.T.reshape(a.h, a.d_v, a.d_model)  # W_O[i]: the rows of head i
    total = sum(made.heads[:, i] @ W_O[i] for i in range(a.h))
    assert_near(total if a.W_O.bias is None else total + a.W_O.bias, made.output)


@pytest.mark.parametrize("h", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
def test_the_parameter_count_does_not_depend_on_h(h):
    def count(**kwargs):
        return sum(p.numel() for p in MultiHeadAttention(512, h, **kwargs).parameters())

    assert count() == 1_050_624  # 4 · 512² + 4 · 512
    assert count(bias=False) == 1_048_576  # 4 · 512²


def test_the_parameter_count_depends_on_free_head_widths():
    # W_Q, W_K: 10 · 3·4 + 3·4 = 132 each; W_V: 10 · 3·2 + 3·2 = 66; W_O: 3·2 · 10 + 10 = 70
    assert sum(p.numel() for p in MultiHeadAttention(10, 3, d_k=4, d_v=2).parameters()) == 400


# who depends on whom


@law
@given(case=cases())
@on(ALL)
def test_a_sample_alone_gives_what_it_gives_in_a_batch(path, case):
    together, _ = path(case.attention, *case.inputs)
    for b in range(len(case.Q)):
        sample = slice(b, b + 1)
        mask = case.mask
        if mask is not None and mask.dim() == 4 and len(mask) > 1:
            mask = mask[sample]
        alone, _ = path(case.attention, case.Q[sample], case.K[sample], case.V[sample], mask, case.is_causal)
        assert_near(alone[0], together[b])


@on(TORCH)
def test_no_sample_has_a_gradient_from_another(path):
    torch.manual_seed(0)
    x = torch.randn(3, 4, 4, dtype=DOUBLE, requires_grad=True)
    path(MultiHeadAttention(4, 2, dtype=DOUBLE), x)[0][1].square().sum().backward()
    assert x.grad[0].abs().max() == 0
    assert x.grad[1].abs().max() > 0
    assert x.grad[2].abs().max() == 0


@law
@given(case=cases(kinds=UNMASKED), seed=st.integers(0, 2**16))
@on(ALL)
def test_permuting_the_sequence_permutes_the_output(path, case, seed):
    order = torch.randperm(case.Q.shape[1], generator=torch.Generator().manual_seed(seed))
    assert_near(path(case.attention, case.Q[:, order])[0], path(case.attention, case.Q)[0][:, order])


@law
@given(case=cases(kinds=UNMASKED), seed=st.integers(0, 2**16))
@on(ALL)
def test_the_order_of_the_keys_does_not_matter(path, case, seed):
    order = torch.randperm(case.K.shape[1], generator=torch.Generator().manual_seed(seed))
    shuffled, weights = path(case.attention, case.Q, case.K[:, order], case.V[:, order])
    output, straight = path(case.attention, case.Q, case.K, case.V)
    assert_near(shuffled, output)
    if weights is not None:
        assert_near(weights, straight[..., order])


@pytest.mark.parametrize("masked", [False, True], ids=["causal alone", "causal and mask"])
@on(TORCH)
def test_the_causal_jacobian_is_lower_triangular(path, masked):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dtype=DOUBLE)
    mask = torch.ones(1, 4, dtype=torch.bool) if masked else None
    x = torch.randn(1, 4, 4, dtype=DOUBLE)
    jacobian = torch.autograd.functional.jacobian(lambda x: path(attention, x, mask=mask, is_causal=True)[0], x)
    moves = jacobian.abs().amax(dim=(0, 2, 3, 5))  # (L, L): how much position j moves output i
    assert torch.equal(moves > 0, torch.ones(4, 4).tril().bool())  # exactly 0 above the diagonal, nowhere else


@pytest.mark.parametrize(("L", "S", "expected"), [(2, 4, "1110 1111"), (4, 2, "00 00 10 11"), (1, 3, "111")])
@on(TORCH)
def test_the_causal_jacobian_is_aligned_to_the_right_end(path, L, S, expected):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dtype=DOUBLE)
    q, v = torch.randn(1, L, 4, dtype=DOUBLE), torch.randn(1, S, 4, dtype=DOUBLE)
    jacobian = torch.autograd.functional.jacobian(lambda v: path(attention, q, v, v, is_causal=True)[0], v)
    assert torch.equal(jacobian.abs().amax(dim=(0, 2, 3, 5)) > 0, allow(expected))


@law
@given(case=cases(kinds=MASKED))
@on(ALL)
def test_what_a_masked_key_holds_does_not_matter(path, case):
    hidden = ~case.allowed.any(dim=2).any(dim=1)  # (B, S): keys that nobody may see
    K, V = (x.masked_fill(hidden[..., None], 1e4) for x in (case.K, case.V))
    output, _ = path(case.attention, *case.inputs)
    assert torch.equal(path(case.attention, case.Q, K, V, case.mask, case.is_causal)[0], output)


# weights


@law
@given(data=st.data())
@pytest.mark.parametrize("dtype", [DOUBLE, torch.float32, *HALVES], ids=str)
@on(WEIGHTS)
def test_weights_are_a_distribution_over_the_allowed_keys(path, dtype, data):
    case = data.draw(cases(dtype))
    _, weights = path(case.attention, *case.inputs)
    assert weights.shape == case.shape  # (B, h, L, S): one map a head
    assert (weights >= 0).all()
    assert (weights[~case.allowed] == 0).all()  # exactly
    assert_near(weights.double().sum(dim=-1), case.allowed.any(dim=-1), dtype)  # 1, or 0 where no key is allowed


@law
@given(case=cases())
@on(WEIGHTS)
def test_an_allowed_key_has_some_weight(path, case):
    _, weights = path(case.attention, *case.inputs)
    assert (weights[case.allowed] > 0).all()  # scores of small inputs are far from underflow


@law
@given(case=cases(kinds=MASKED))
@on(ALL)
def test_mask_and_is_causal_must_both_allow(path, case):
    both = case.mask & causal_mask(*case.shape[2:])
    assert_near(
        path(case.attention, case.Q, case.K, case.V, case.mask, True)[0],
        path(case.attention, case.Q, case.K, case.V, both, False)[0],
    )


@on(ALL)
def test_a_mask_that_allows_everything_changes_nothing(path):
    torch.manual_seed(0)
    attention, q, k = (
        MultiHeadAttention(4, 2, dtype=DOUBLE),
        torch.randn(2, 3, 4).double(),
        torch.randn(2, 5, 4).double(),
    )
    assert_near(path(attention, q, k, mask=torch.ones(3, 5, dtype=torch.bool))[0], path(attention, q, k)[0])


@on(ALL)
def test_no_key_at_all_gives_zeros(path):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dtype=DOUBLE)
    output, _ = path(attention, torch.randn(2, 3, 4, dtype=DOUBLE), torch.zeros(2, 0, 4, dtype=DOUBLE))
    assert_near(output, attention.W_O.bias.expand(2, 3, 4))  # what W_O makes of zeros


# gradients and precision


@pytest.mark.parametrize(
    ("mask", "is_causal", "L", "S"),
    [
        ("000 101 011", False, 3, 3),
        (None, True, 4, 2),
        (None, True, 3, 3),
        ("101 011 111", True, 3, 3),
        (None, False, 2, 3),
    ],
    ids=["a row with no key", "causal with L > S", "causal", "mask and causal", "no mask"],
)
@on(TORCH)
def test_gradients_are_those_of_finite_differences(path, mask, is_causal, L, S):
    torch.manual_seed(0)
    attention = MultiHeadAttention(3, 2, d_k=2, d_v=1, dtype=DOUBLE)
    inputs = [torch.randn(1, n, 3, dtype=DOUBLE, requires_grad=True) for n in (L, S, S)]
    mask = None if mask is None else allow(mask)

    def output(Q, K, V, *parameters):  # the parameters are the layer's own: gradcheck moves them in place
        return path(attention, Q, K, V, mask, is_causal)[0]

    assert torch.autograd.gradcheck(output, (*inputs, *attention.parameters()))


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("mask", [None, "00 11"], ids=["no mask", "a row with no key"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@on(TORCH)
def test_half_precision_stays_finite_with_large_scores(path, dtype, mask, training):
    # scores of 64 · 200 · 200 / 8 = 320,000 are above float16's 65,504 even after scaling
    attention = identity(64, dropout=0.1, dtype=dtype).train(training)
    big = torch.full((1, 2, 64), 200.0, dtype=dtype)
    big[:, 1] = -200
    x, v = big.requires_grad_(), torch.ones(1, 2, 64, dtype=dtype)
    output, weights = path(attention, x, x, v, None if mask is None else allow(mask))
    output.sum().backward()
    assert output.isfinite().all()
    assert x.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in attention.parameters())
    if weights is not None:
        assert weights[0, 0].tolist() == [[1, 0] if mask is None else [0, 0], [0, 1]]  # like attends to like


# arguments


@on(ALL)
def test_keys_default_to_queries_and_values_to_keys(path):
    torch.manual_seed(0)
    attention, q, k = (
        MultiHeadAttention(4, 2, dtype=DOUBLE),
        torch.randn(2, 3, 4).double(),
        torch.randn(2, 5, 4).double(),
    )
    assert torch.equal(path(attention, q)[0], path(attention, q, q, q)[0])
    assert torch.equal(path(attention, q, k)[0], path(attention, q, k, k)[0])
    assert not torch.equal(path(attention, q, k)[0], path(attention, q, k, -k)[0])


@on(ALL)
def test_expanded_inputs_and_masks_are_read_like_copies(path):
    torch.manual_seed(0)
    attention = MultiHeadAttention(4, 2, dtype=DOUBLE)
    x = torch.randn(1, 3, 4, dtype=DOUBLE).expand(2, -1, -1)  # two samples, one memory
    mask = allow("100 110 011").T.expand(2, 2, 3, 3)
    copies = path(attention, x.contiguous(), mask=mask.contiguous())[0]
    assert_near(path(attention, x, mask=mask)[0], copies)
    assert_near(copies[0], copies[1])


def test_the_reference_edits_none_of_its_arguments():
    torch.manual_seed(0)
    attention, x, mask = MultiHeadAttention(4, 2, dtype=DOUBLE), torch.randn(1, 3, 4).double(), allow("000 110 011")
    held = [x, mask, *attention.parameters()]
    before = [tensor.detach().clone() for tensor in held]
    in_numpy(attention, x, mask=mask)
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(held, before, strict=True))


@law
@given(case=cases(kinds=MASKED))
@on(TORCH)
def test_nothing_is_mutated_under_any_mask(path, case):
    held = [case.Q, case.K, case.V, case.mask, *case.attention.parameters()]
    for x in held[:3]:
        x.requires_grad_()
    before = [tensor.detach().clone() for tensor in held]
    path(case.attention, *case.inputs)[0].sum().backward()
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(held, before, strict=True))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("B", "L", "S"), [(0, 3, 2), (2, 0, 3), (2, 0, 0), (0, 0, 0), (2, 1, 0), (0, 1, 4)])
@on(ALL)
def test_empty_batches_and_sequences_keep_their_shape(path, B, L, S, is_causal):
    attention = MultiHeadAttention(4, 2, kv_heads=1, dtype=DOUBLE)
    masks = [None, torch.ones(L, S, dtype=torch.bool), torch.ones(B, 2, L, S, dtype=torch.bool)]
    for mask in masks:
        Q, K = torch.ones(B, L, 4, dtype=DOUBLE), torch.ones(B, S, 4, dtype=DOUBLE)
        output, weights = path(attention, Q, K, mask=mask, is_causal=is_causal)
        assert output.shape == (B, L, 4)
        assert weights is None or weights.shape == (B, 2, L, S)
        assert output.isfinite().all()


def test_a_state_holds_the_four_projections_and_nothing_else():
    for options in ({}, {"kv_heads": 1}, {"dropout": 0.5}):
        attention = MultiHeadAttention(4, 2, **options)
        attention(torch.zeros(1, 2, 4), is_causal=True)
        assert list(attention.state_dict()) == [f"W_{x}.{kind}" for x in "QKVO" for kind in ("weight", "bias")]
        assert not list(attention.buffers())


# key heads shared by query heads


def test_neighbouring_query_heads_share_a_key_head():
    keys = torch.tensor([[[[1.0]], [[2.0]]]])  # (B, kv_heads, S, d_k)
    assert steps.share_heads(keys, 6).flatten().tolist() == [1, 1, 1, 2, 2, 2]
    assert steps.share_heads(keys, 2) is keys


@law
@given(case=cases(grouped=True))
@on(TORCH)
def test_sharing_key_heads_is_copying_their_weights(path, case):
    mine = case.attention
    wide = MultiHeadAttention(mine.d_model, mine.h, d_k=mine.d_k, d_v=mine.d_v, dtype=DOUBLE)
    wide.load_state_dict(mine.state_dict() | {
        f"{W}.{kind}": torch.cat([
            tensor[i * mine.kv_heads // mine.h * width :][:width] for i in range(mine.h)
        ])
        for W, width in (("W_K", mine.d_k), ("W_V", mine.d_v))
        for kind, tensor in getattr(mine, W).state_dict().items()
    }, strict=mine.W_Q.bias is not None)  # fmt: skip
    if mine.W_Q.bias is None:
        for layer in (wide.W_Q, wide.W_K, wide.W_V, wide.W_O):
            torch.nn.init.zeros_(layer.bias)
    assert_near(path(mine, *case.inputs)[0], path(wide, *case.inputs)[0])


@law
@given(case=cases(grouped=True))
@on(TORCH)
def test_grouped_heads_agree_with_torchs_function(path, case):
    mine, (B, h, L, S) = case.attention, case.shape
    q = mine.W_Q(case.Q).view(B, L, h, -1).transpose(1, 2)
    k = mine.W_K(case.K).view(B, S, mine.kv_heads, -1).transpose(1, 2)
    v = mine.W_V(case.V).view(B, S, mine.kv_heads, -1).transpose(1, 2)
    if attention_module.GROUPED:
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=case.allowed, enable_gqa=True)
    else:  # torch 2.4 knows no groups: the key heads, repeated
        k, v = (x.repeat_interleave(h // mine.kv_heads, dim=1) for x in (k, v))
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=case.allowed)
    seen = case.allowed.any(dim=-1).all(dim=1)  # some versions of torch give NaN in a blind row
    assert_near(path(mine, *case.inputs)[0][seen], mine.W_O(heads.transpose(1, 2).reshape(B, L, -1))[seen])


def test_a_torch_without_grouped_attention_gives_the_same(monkeypatch):
    torch.manual_seed(0)
    mine, X = MultiHeadAttention(8, 4, kv_heads=2, dtype=DOUBLE), torch.randn(2, 5, 8, dtype=DOUBLE)
    grouped = [mine(X), mine(X, is_causal=True), mine(X[:, :1], X), mine(X, mask=torch.eye(5, dtype=torch.bool))]
    monkeypatch.setattr(attention_module, "GROUPED", False)
    plain = [mine(X), mine(X, is_causal=True), mine(X[:, :1], X), mine(X, mask=torch.eye(5, dtype=torch.bool))]
    for one, other in zip(grouped, plain, strict=True):
        assert_near(one, other)


@pytest.mark.parametrize(("kv_heads", "count"), [(8, 1_050_624), (2, 656_640), (1, 590_976)])
def test_the_parameter_count_falls_with_key_heads(kv_heads, count):
    # 2·512² + 2·512·64·kv_heads, and 2·512 + 2·64·kv_heads biases
    assert sum(p.numel() for p in MultiHeadAttention(512, 8, kv_heads=kv_heads).parameters()) == count


def test_the_function_broadcasts_its_leading_dimensions():
    torch.manual_seed(0)
    Q, K, V = torch.randn(2, 1, 3, 4).double(), torch.randn(3, 5, 4).double(), torch.randn(1, 5, 2).double()
    mask = torch.rand(2, 1, 3, 5) < 0.7
    output, weights = scaled_dot_product_attention(Q, K, V, mask, is_causal=True)
    assert output.shape == (2, 3, 3, 2)
    assert weights.shape == (2, 3, 3, 5)
    for i in range(2):
        for j in range(3):
            allowed = by_hand(mask[i, 0], True, 3, 5)
            expected, expected_weights = reference.attention(array(Q[i, 0]), array(K[j]), array(V[0]), allowed.numpy())
            assert_near(output[i, j], torch.from_numpy(expected))
            assert_near(weights[i, j], torch.from_numpy(expected_weights))


def test_the_function_broadcasts_to_the_leading_dimensions_of_the_values():
    mask = torch.tensor([[[True, False]], [[False, True]]])  # (2, L, S)
    V = torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]])
    output, _ = scaled_dot_product_attention(torch.zeros(1, 1), torch.zeros(2, 1), V, mask)
    assert output.flatten().tolist() == [1, 4]


def test_the_function_looks_ahead_unless_told_not_to():
    V = torch.tensor([[1.0], [3.0]])
    assert scaled_dot_product_attention(torch.zeros(2, 1), torch.zeros(2, 1), V)[0].flatten().tolist() == [2, 2]


@pytest.mark.parametrize("lead", [(), (2,), (2, 3, 1)], ids=str)
def test_splitting_and_merging_take_any_leading_dimensions(lead):
    X = torch.arange(12.0).expand(*lead, 12).reshape(*lead, 3, 4)
    heads = steps.split_heads(X, 2)
    assert heads.shape == (*lead, 2, 3, 2)
    assert heads.reshape(-1, 2)[:3].tolist() == [[0, 1], [4, 5], [8, 9]]
    assert torch.equal(steps.merge_heads(heads), X)


def test_one_unbatched_head_may_be_causal():
    V = torch.tensor([[1.0], [2.0], [6.0]])
    output, _ = scaled_dot_product_attention(torch.zeros(2, 1), torch.zeros(3, 1), V, is_causal=True)
    assert output.flatten().tolist() == [1.5, 3]


def test_a_causal_mask_is_made_where_it_is_asked_for():
    assert causal_mask(2, device="meta").device.type == "meta"


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_fused_path_copies_no_key_heads_where_torch_shares_them(monkeypatch, is_causal):
    copies = []
    monkeypatch.setattr(steps, "share_heads", lambda X, h, share=steps.share_heads: copies.append(h) or share(X, h))
    MultiHeadAttention(8, 4, kv_heads=2)(torch.zeros(1, 3, 8), is_causal=is_causal)
    assert copies == ([] if attention_module.GROUPED else [4, 4])


@on(API)
def test_masks_are_made_where_the_queries_are(path):
    attention, X = identity(1), rows([1.0, 3.0])
    with torch.device("meta"):  # what is made without a device would be made there
        output, _ = path(attention, X, mask=torch.ones(2, 2, dtype=torch.bool, device="cpu"), is_causal=True)
        alone, _ = path(attention, X, is_causal=True)
    assert output.device.type == alone.device.type == "cpu"
    assert torch.equal(output, alone)


def test_padding_is_told_where_the_lengths_are():
    with torch.device("meta"):
        assert padding_mask(torch.tensor([1], device="cpu"), 2).device.type == "cpu"


def test_the_reference_computes_in_float64_whatever_it_is_given():
    Q = np.array([[1.0]], dtype=np.float16)
    K, V = np.array([[0.1], [0.2]], dtype=np.float16), np.array([[1.0], [2.0]], dtype=np.float16)
    exact = reference.attention(*(x.astype(np.float64) for x in (Q, K, V)))[0]
    assert reference.attention(Q, K, V)[0].tolist() == exact.tolist()
    W = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), np.array([[0.3]], dtype=np.float16))
    wide = {name: value.astype(np.float64) for name, value in W.items()}
    made = reference.multi_head_attention(Q[None], K[None], V[None], W, 1)[0]
    assert (
        made.tolist()
        == reference.multi_head_attention(*(x[None].astype(float) for x in (Q, K, V)), wide, 1)[0].tolist()
    )


def test_a_layer_says_its_sizes():
    attention = MultiHeadAttention(6, 4, d_k=2, d_v=3, kv_heads=2, dropout=0.5)
    assert attention.extra_repr() == "d_model=6, h=4, kv_heads=2, d_k=2, d_v=3, dropout=0.5"


def test_device_and_dtype_reach_every_parameter():
    attention = MultiHeadAttention(4, 2, device="meta", dtype=torch.bfloat16)
    assert {(p.device.type, p.dtype) for p in attention.parameters()} == {("meta", torch.bfloat16)}


# dropout


@on(WITH_DROPOUT)
def test_dropout_drops_weights_and_scales_the_others_up(path):
    # weights 1/2 and 1/2 on the values 1 and 10, p = 1/2: each weight becomes 0 or 1
    torch.manual_seed(0)
    attention = identity(1, dropout=0.5).train()
    v = rows([1, 10]).expand(500, -1, -1)
    output, _ = path(attention, torch.zeros(500, 1, 1, dtype=DOUBLE), torch.zeros_like(v), v)
    assert set(output.flatten().tolist()) == {0, 1, 10, 11}


@pytest.mark.parametrize(
    ("is_causal", "mask", "S"),
    [(False, None, 1), (True, None, 1), (True, None, 2), (False, "10", 2), (True, "10", 2)],
    ids=["plain", "causal, one key", "causal", "mask", "mask and causal"],
)
@on(WITH_DROPOUT)
def test_dropout_drops_the_share_it_was_given(path, is_causal, mask, S):
    # whatever the mask, the first of S queries (the only one where there is a mask) sees one key of value 1
    torch.manual_seed(0)
    attention = identity(1, dropout=0.2).train()
    ones = torch.ones(4000, S, 1, dtype=DOUBLE)
    output, _ = path(attention, ones, ones, ones, None if mask is None else allow(mask), is_causal)
    output = output[:, 0]
    share = (output == 0).double().mean().item()
    assert abs(share - 0.2) < 5 * math.sqrt(0.2 * 0.8 / 4000)  # five standard deviations
    assert set(output.flatten().tolist()) == {0, 1.25}  # 1 / (1 - p)


@on(WITH_DROPOUT)
def test_heads_drop_weights_independently(path):
    torch.manual_seed(0)
    attention = identity(2, 2, dropout=0.5).train()
    output, _ = path(attention, torch.ones(100, 1, 2, dtype=DOUBLE))
    assert {tuple(row) for row in output[:, 0].tolist()} == {(0, 0), (0, 2), (2, 0), (2, 2)}


@on(WITH_DROPOUT)
def test_a_row_with_no_key_allowed_gives_zeros_under_dropout_too(path):
    output, _ = path(identity(1, dropout=0.5).train(), torch.ones(1, 2, 1, dtype=DOUBLE), mask=allow("00 00"))
    assert column(output) == [0, 0]


# trace


def test_a_trace_names_every_tensor_with_its_step_and_shape():
    made = MultiHeadAttention(6, 3, d_k=4, d_v=5).trace(torch.zeros(2, 7, 6), torch.zeros(2, 8, 6))
    assert [(step, name, tuple(tensor.shape)) for step, name, tensor in made] == [
        (0, "X_Q", (2, 7, 6)),
        (0, "X_K", (2, 8, 6)),
        (0, "X_V", (2, 8, 6)),
        (1, "Q", (2, 7, 12)),
        (1, "K", (2, 8, 12)),
        (1, "V", (2, 8, 15)),
        (2, "Q_heads", (2, 3, 7, 4)),
        (2, "K_heads", (2, 3, 8, 4)),
        (2, "V_heads", (2, 3, 8, 5)),
        (3, "scores", (2, 3, 7, 8)),
        (3, "weights", (2, 3, 7, 8)),
        (3, "heads", (2, 3, 7, 5)),
        (4, "concat", (2, 7, 15)),
        (5, "output", (2, 7, 6)),
    ]
    lines = repr(made).splitlines()
    assert lines[0] == "0  X_Q      (2, 7, 6)"
    assert lines[-1] == "5  output   (2, 7, 6)"
    assert len(lines) == 14


@law
@given(case=cases())
def test_every_tensor_of_a_trace_follows_from_those_before_it(case):
    a = case.attention
    made = a.trace(*case.inputs[:4], is_causal=case.is_causal)
    assert made.X_Q is case.Q
    assert made.X_K is case.K
    assert made.X_V is case.V
    assert_near(made.Q, a.W_Q(made.X_Q))
    assert_near(made.K, a.W_K(made.X_K))
    assert_near(made.V, a.W_V(made.X_V))
    assert_near(made.scores, made.Q_heads @ made.K_heads.mT / math.sqrt(a.d_k))
    hidden = made.scores.masked_fill(~case.allowed, -math.inf)
    assert_near(made.weights, torch.softmax(hidden, dim=-1).nan_to_num(0.0))
    assert_near(made.heads, made.weights @ made.V_heads)
    for i in range(a.h):
        assert_near(made.concat[..., i * a.d_v : (i + 1) * a.d_v], made.heads[:, i])
    assert_near(made.output, a.W_O(made.concat))
    if case.mask is None and not case.is_causal:
        assert made.allowed is None
    else:
        assert torch.equal(made.allowed.expand(case.shape), case.allowed)


def test_a_trace_cannot_be_edited():
    made = identity(1).trace(torch.zeros(1, 1, 1, dtype=DOUBLE))
    with pytest.raises(AttributeError, match="cannot assign to field 'weights'"):
        made.weights = torch.zeros(1)
