"""Projections that others replaced, wrapped or quantised: the layer calls them, and asks nothing else of them."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from mha import KVCache, MultiHeadAttention, to_torch

PROJECTIONS = ("W_Q", "W_K", "W_V", "W_O")


class LowRank(nn.Module):
    """y = Linear(x) + B A x, with no attribute named weight."""

    def __init__(self, base: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        self.base = base
        self.A, self.B = (nn.Parameter(torch.randn(*shape).to(base.weight)) for shape in self.shapes(base, rank))

    @staticmethod
    def shapes(base, rank):
        return (rank, base.in_features), (base.out_features, rank)

    def forward(self, X):
        return self.base(X) + X @ self.A.T @ self.B.T

    def merged(self):
        linear = nn.Linear(self.base.in_features, self.base.out_features).to(self.base.weight)
        linear.load_state_dict({"weight": self.base.weight + self.B @ self.A, "bias": self.base.bias})
        return linear


def layer(dtype=torch.float64, **options):
    torch.manual_seed(0)
    return MultiHeadAttention(8, 4, kv_heads=2, dtype=dtype, **options)


def wrapped(attention, wrap):
    for name in PROJECTIONS:
        setattr(attention, name, wrap(getattr(attention, name)))
    return attention


def every_path(attention, X):
    """What forward, weights, trace, a compiled call and a cached decode give for causal self-attention over X."""
    cache, traced = KVCache(), attention.trace(X, is_causal=True)
    with torch.no_grad():
        decoded = torch.cat([attention(x, is_causal=True, cache=cache) for x in X.split([3, 1, 1], dim=1)], dim=1)
    weighted, weights = attention(X, is_causal=True, need_weights=True)
    torch.testing.assert_close(weights, traced.weights)
    compiled = torch.compile(attention, backend="eager")(X, is_causal=True)
    return [attention(X, is_causal=True), weighted, traced.output, compiled, decoded]


def test_a_low_rank_adapter_gives_what_its_merged_projections_give():
    torch.manual_seed(1)
    X, adapted = torch.randn(2, 5, 8, dtype=torch.float64), wrapped(layer(), LowRank)
    merged = wrapped(layer(), lambda base: base)
    for name in PROJECTIONS:
        setattr(merged, name, getattr(adapted, name).merged())
    right = merged(X, is_causal=True)
    for made in every_path(adapted, X):
        torch.testing.assert_close(made, right, rtol=0, atol=1e-12)
    trace = adapted.trace(X, is_causal=True)  # shows what the projections do, not only what a Linear stores
    torch.testing.assert_close(trace.Q, merged.W_Q(X), rtol=0, atol=1e-12)
    adapted(X).sum().backward()
    assert all(getattr(adapted, name).A.grad.abs().sum() > 0 for name in PROJECTIONS)


def test_peft_adapts_all_four_projections_and_merges_them_again():
    peft = pytest.importorskip("peft")
    torch.manual_seed(1)
    X, holder = torch.randn(2, 5, 8, dtype=torch.float64), nn.Sequential(layer())
    config = peft.LoraConfig(r=2, target_modules=list(PROJECTIONS), init_lora_weights=False)
    adapted = peft.get_peft_model(holder, config).double().eval()
    apart = every_path(adapted.base_model.model[0], X)
    assert not torch.allclose(apart[0], layer()(X, is_causal=True))
    merged = adapted.merge_and_unload()[0]
    assert type(merged.W_Q) is nn.Linear
    for made in apart:
        torch.testing.assert_close(made, merged(X, is_causal=True), rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore")  # torch announces torchao, where quantize_dynamic moves to
def test_dynamic_int8_works_on_every_path_and_stays_close():
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        pytest.skip("this build of torch has no engine for int8")
    plain, X = layer(torch.float32), torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
    quantised = torch.ao.quantization.quantize_dynamic(plain, {nn.Linear}, dtype=torch.qint8)
    assert type(quantised.W_Q) is not nn.Linear
    for made in every_path(quantised, X):
        # an input's scale is taken from all that a call brings, so a decode rounds otherwise than one long call
        torch.testing.assert_close(made, plain(X, is_causal=True), rtol=0, atol=0.05)


@pytest.mark.parametrize("around", [parametrizations.weight_norm, parametrizations.spectral_norm,
                                    parametrizations.orthogonal])  # fmt: skip
def test_parametrized_projections_are_used_as_they_compute(around):
    X, attention = torch.randn(2, 5, 8, dtype=torch.float64), wrapped(layer(), around).eval()
    held = {name: getattr(attention, name) for name in PROJECTIONS}
    plain = layer()
    with torch.no_grad():
        for name, projection in held.items():
            getattr(plain, name).weight.copy_(projection.weight)
    for made in every_path(attention, X):
        torch.testing.assert_close(made, plain(X, is_causal=True), rtol=0, atol=1e-12)


def test_torchao_int8_weights_work_on_every_path():
    quantization = pytest.importorskip("torchao.quantization")
    plain, X = layer(torch.float32), torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
    holder = nn.Sequential(layer(torch.float32))
    quantization.quantize_(holder, quantization.Int8WeightOnlyConfig())
    for made in every_path(holder[0], X):
        torch.testing.assert_close(made, plain(X, is_causal=True), rtol=0, atol=0.05)


def test_a_projection_torch_cannot_express_is_named():
    attention = layer()
    attention.kv_heads, attention.W_V = 4, LowRank(attention.W_V)
    with pytest.raises(
        TypeError, match=r"W_V must be an nn\.Linear, since torch stores its weight, got LowRank: merge"
    ):
        to_torch(attention)
    attention = MultiHeadAttention(8, 4)
    attention.W_O = nn.Linear(8, 8, bias=False)
    with pytest.raises(ValueError, match=r"must all have a bias or none, as torch has, got W_Q, W_K, W_V"):
        to_torch(attention)


def test_a_width_that_is_no_whole_number_of_heads_is_refused():
    attention, X = layer(), torch.randn(2, 5, 8, dtype=torch.float64)
    attention.W_K = nn.Linear(8, 3, dtype=torch.float64)
    cache = KVCache()
    for call in (attention, attention.trace):
        with pytest.raises(ValueError, match=r"W_K must give a multiple of d_k = 2 columns, got \(2, 5, 3\)"):
            call(X, cache=cache)
    assert cache.length == 0


def test_projections_that_are_not_spread_alike_are_refused():
    attention, X = layer(), torch.randn(2, 5, 8, dtype=torch.float64)
    attention.W_Q = nn.Linear(8, 4, dtype=torch.float64)  # half of Q's heads would meet the wrong half of K's
    with pytest.raises(ValueError, match=r"must give the same share of their 4, 2 and 2 heads, got 2, 2 and 2"):
        attention(X)


def test_a_mask_per_head_is_refused_where_only_a_share_of_the_heads_is_here():
    attention, X = layer(), torch.randn(2, 5, 8, dtype=torch.float64)
    for name, columns in {"W_Q": 4, "W_K": 2, "W_V": 2}.items():
        setattr(attention, name, nn.Linear(8, columns, dtype=torch.float64))
    attention.W_O = nn.Linear(4, 8, dtype=torch.float64)
    assert attention(X, mask=torch.ones(2, 1, 5, 5).bool()).shape == X.shape
    with pytest.raises(ValueError, match=r"mask must not differ from head to head, got \(2, 4, 5, 5\): give one mask"):
        attention(X, mask=torch.ones(2, 4, 5, 5).bool())
