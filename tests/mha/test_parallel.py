"""Two processes that share the heads, the weights or the batch give what one process gives."""

import os
import traceback

import pytest
import torch
import torch.distributed as dist
from torch import nn

from mha import KVCache, MultiHeadAttention

CASES = ("tensor parallel", "one key head for all", "fully sharded", "data parallel")


def layer(kv_heads):
    torch.manual_seed(0)
    return MultiHeadAttention(16, 4, kv_heads=kv_heads)


def inputs():
    return torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(1))


def mask():
    return (torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(2)) < 0.7) | torch.eye(6).bool()


def whole(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def assert_near(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def spread(attention, keys=True):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {name: ColwiseParallel() for name in (("W_Q", "W_K", "W_V") if keys else ("W_Q",))}
    return parallelize_module(attention, init_device_mesh("cpu", (2,)), plan | {"W_O": RowwiseParallel()})


def tensor_parallel():
    rank = dist.get_rank()
    for kv_heads in (4, 2):
        alone, shared, X = layer(kv_heads), spread(layer(kv_heads)), inputs()
        for options in ({}, {"is_causal": True}, {"mask": mask()}, {"mask": mask(), "is_causal": True}):
            output, weights = shared(X, **options, need_weights=True)
            right, all_weights = alone(X, **options, need_weights=True)
            assert_near(shared(X, **options), right)
            assert_near(output, right)
            assert_near(weights, all_weights.chunk(2, dim=1)[rank])
            trace = shared.trace(X, **options)
            assert_near(trace.output, right)
            assert_near(trace.heads, alone.trace(X, **options).heads.chunk(2, dim=1)[rank])
        for need_weights in (False, True):
            for module in (shared, alone):
                module.zero_grad()
                made = module(X, is_causal=True, need_weights=need_weights)
                (made[0] if need_weights else made).square().mean().backward()
            for one, other in zip(shared.parameters(), alone.parameters(), strict=True):
                assert_near(whole(one.grad), other.grad)
        cache = KVCache(6)
        with torch.no_grad():
            made = torch.cat([shared(x, is_causal=True, cache=cache) for x in X.split([3, 1, 2], dim=1)], dim=1)
            assert_near(made, alone(X, is_causal=True))
        with pytest.raises(ValueError, match="mask must not differ from head to head"):
            shared(X, mask=mask().expand(2, 4, 6, 6))


def one_key_head():
    """There is nothing to share out: W_K and W_V stay whole, and every process's queries use them."""
    alone, shared, X = layer(1), spread(layer(1), keys=False), inputs()
    assert_near(shared(X, is_causal=True), alone(X, is_causal=True))
    with pytest.raises(ValueError, match="W_Q, W_K and W_V must give the same share"):
        spread(layer(2), keys=False)(X)


def trained(module, X):
    made = module(X, is_causal=True)
    made.square().mean().backward()
    return made


def fully_sharded():
    from torch.distributed.fsdp import fully_shard

    alone, sharded, X = layer(2), layer(2), inputs()
    fully_shard(sharded)
    rank = dist.get_rank()
    assert_near(trained(sharded, X[rank : rank + 1]), trained(alone, X)[rank : rank + 1])
    for one, other in zip(sharded.parameters(), alone.parameters(), strict=True):
        assert_near(whole(one.grad), other.grad)


def data_parallel():
    alone, X, rank = layer(2), inputs(), dist.get_rank()
    copies = nn.parallel.DistributedDataParallel(layer(2))
    assert_near(trained(copies, X[rank : rank + 1]), trained(alone, X)[rank : rank + 1])
    for one, other in zip(copies.parameters(), alone.parameters(), strict=True):
        assert_near(one.grad, other.grad)


def work(rank, meeting, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    for case, run in zip(CASES, (tensor_parallel, one_key_head, fully_sharded, data_parallel), strict=True):
        try:
            run()
            results.put((case, ""))
        except Exception:
            results.put((case, traceback.format_exc()))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What both processes say of each case: "" where it holds, else what went wrong."""
    if not dist.is_available() or not dist.is_gloo_available():
        pytest.skip("this build of torch has no gloo")
    spawned = torch.multiprocessing.get_context("spawn")
    results, meeting = spawned.Queue(), tmp_path_factory.mktemp("two") / "meeting"
    before, os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS"), "1"
    workers = [spawned.Process(target=work, args=(rank, meeting, results), daemon=True) for rank in range(2)]
    try:
        for worker in workers:
            worker.start()
        said = [results.get(timeout=120) for _ in range(2 * len(CASES))]
        for worker in workers:
            worker.join(timeout=60)
    finally:
        for worker in workers:
            worker.kill()
        os.environ.pop("OMP_NUM_THREADS")
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before
    return said


@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_what_one_gives(told, case):
    assert [error for name, error in told if name == case] == ["", ""]
