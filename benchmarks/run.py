"""Measure, print a table, write JSON: python -m benchmarks.run [--device cuda] [--quick]. `make bench` calls it."""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import contenders as who
from benchmarks.measure import added_bytes, clock, compared, import_seconds, interleaved, resident
from benchmarks.targets import targets
from mha import KVCache, MultiHeadAttention
from mha.figures.benchmarks import RESULTS

BUILD = Path(__file__).parent.parent / "_build"
FULL = {
    "d_model": 512, "h": 8, "sizes": [(8, 128), (2, 1024), (1, 4096)], "dtypes": ["float32", "bfloat16"],
    "tokens": 512, "kv_heads": [8, 2, 1], "long": 8192, "seconds": 6.0, "imports": 9,
}  # fmt: skip
QUICK = FULL | {
    "d_model": 64, "sizes": [(2, 16)], "tokens": 8, "kv_heads": [8, 2], "long": 256, "seconds": 0.1, "imports": 1,
}  # fmt: skip


def measure(plan: dict[str, Any], device: str = "cpu") -> dict[str, Any]:
    """All of it, as the JSON holds it. AssertionError, before anything is timed, where two contenders disagree."""
    began, load = time.monotonic(), _load()
    machine = describe(device)
    found: dict[str, Any] = {
        "cells": list(cells(plan, device)),
        "long": list(long(plan, device)),
        "decoding": list(decoding(plan, device)),
        "shared": list(shared(plan, device)),
        "import": import_seconds(plan["imports"]),
    }
    machine |= {"load_before": load, "load_after": _load(), "minutes": round((time.monotonic() - began) / 60, 1)}
    return {"machine": machine, "plan": plan, **found, "targets": targets(found)}


def cells(plan: dict[str, Any], device: str) -> Iterator[dict[str, Any]]:
    """Time and memory of every contender: sizes × causal × dtypes × forward, forward + backward."""
    for B, L in plan["sizes"]:
        for dtype in plan["dtypes"]:
            for causal in (False, True):
                attention = who.layer(plan["d_model"], plan["h"], device=device, dtype=getattr(torch, dtype))
                modules = who.contenders(attention, L, causal)
                X = inputs(B, L, attention)
                for passes in ("forward", "forward + backward"):
                    runs = {name: one_pass(module, X, passes) for name, module in modules.items()}
                    peaks = agree(runs, getattr(torch, dtype), device)
                    least = 3 if passes == "forward" else 2
                    taken = interleaved(runs, device=device, seconds=plan["seconds"], least=least)
                    cell = {"B": B, "L": L, "dtype": dtype, "causal": causal, "passes": passes}
                    times = compared(taken, "mha")
                    cell["contenders"] = {name: {**times[name], "bytes": peaks[name]} for name in runs}
                    show(cell)
                    yield cell


def agree(runs: dict[str, Callable[[], Any]], dtype: torch.dtype, device: str) -> dict[str, int]:
    """Run each once, which warms up: they must give what the first gives. The memory that each adds."""
    peaks, wanted = {}, None
    for name, run in runs.items():
        peaks[name], got = added_bytes(run, device)
        got = got[:2] if isinstance(got, tuple) else (got,)  # the output and, after a backward pass, the gradient of X
        if wanted is None:
            wanted = got
        for ours, theirs in zip(wanted, got, strict=True):
            scale = ours.abs().max().item()
            tolerance = who.TOLERANCE[dtype]
            message = f"{name} must give what mha gives: "
            torch.testing.assert_close(
                theirs, ours, rtol=tolerance, atol=tolerance * scale, msg=lambda text, m=message: m + text
            )
    return peaks


def one_pass(module: nn.Module, X: Tensor, passes: str) -> Callable[[], Any]:
    """A forward pass as in use (eval, no gradient), or a forward and a backward one as in training."""
    module.train(passes != "forward")
    if passes == "forward":

        def forward() -> Tensor:
            with torch.no_grad():
                return module(X)

        return forward
    wanted, G = X.clone().requires_grad_(), torch.ones_like(X)

    def both() -> tuple[Tensor, ...]:
        Y = module(wanted)
        return (Y.detach(), *torch.autograd.grad(Y, [wanted, *module.parameters()], G))

    return both


def long(plan: dict[str, Any], device: str) -> Iterator[dict[str, Any]]:
    """What a forward pass over a long sequence adds in memory, `mha` and the listing; seen from outside as well."""
    for causal in (False, True):
        attention = who.layer(plan["d_model"], plan["h"], device=device, dtype=torch.float32)
        modules = who.contenders(attention, plan["long"], causal)
        X = inputs(1, plan["long"], attention)
        runs = {name: one_pass(modules[name], X, "forward") for name in ("mha", "listing")}
        row = {"B": 1, "L": plan["long"], "causal": causal, "bytes": agree(runs, torch.float32, device)}
        if device == "cpu" and not causal:
            row["outside"] = {name: _outside(name, plan) for name in runs}
        yield row


def decoding(plan: dict[str, Any], device: str) -> Iterator[dict[str, Any]]:
    """Token after token: with the cache, each is projected once; without, all earlier ones are computed again."""
    for kv_heads in plan["kv_heads"]:
        torch.manual_seed(0)
        attention = MultiHeadAttention(plan["d_model"], plan["h"], kv_heads=kv_heads, device=device).eval()
        X = inputs(1, plan["tokens"], attention)

        def cached(attention: MultiHeadAttention = attention, X: Tensor = X) -> Tensor:
            cache = KVCache(capacity=X.shape[1])
            with torch.no_grad():
                return torch.cat([attention(X[:, t : t + 1], cache=cache) for t in range(X.shape[1])], dim=1)

        def recomputed(attention: MultiHeadAttention = attention, X: Tensor = X) -> Tensor:
            with torch.no_grad():
                return torch.cat([attention(X[:, : t + 1], is_causal=True)[:, -1:] for t in range(X.shape[1])], dim=1)

        runs = {"cached": cached, "recomputed": recomputed}
        agree(runs, torch.float32, device)
        taken = interleaved(runs, device=device, seconds=plan["seconds"])
        held = 2 * plan["tokens"] * kv_heads * attention.d_k * X.element_size()
        yield {"tokens": plan["tokens"], "kv_heads": kv_heads, "cache_bytes": held, **compared(taken, "cached")}


def shared(plan: dict[str, Any], device: str) -> Iterator[dict[str, Any]]:
    """A forward pass with fewer key heads."""
    for B, L in plan["sizes"]:
        layers = {}
        for kv_heads in plan["kv_heads"]:
            torch.manual_seed(0)
            layers[kv_heads] = MultiHeadAttention(plan["d_model"], plan["h"], kv_heads=kv_heads, device=device).eval()
        X = inputs(B, L, layers[plan["kv_heads"][0]])
        runs = {str(kv_heads): one_pass(layer, X, "forward") for kv_heads, layer in layers.items()}
        for run in runs.values():
            run()
        times = compared(interleaved(runs, device=device, seconds=plan["seconds"]), str(plan["kv_heads"][0]))
        for kv_heads, layer in layers.items():
            parameters = sum(parameter.numel() for parameter in layer.parameters())
            yield {"B": B, "L": L, "kv_heads": kv_heads, "parameters": parameters, **times[str(kv_heads)]}


def _outside(name: str, plan: dict[str, Any]) -> int | None:
    """The same as the system sees it: by how much the pass raised the most memory that a fresh process held."""
    code = f"from benchmarks.run import grown; print(grown({name!r}, {plan!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return None if done.stdout.strip() == "None" else int(done.stdout)


def grown(name: str, plan: dict[str, Any]) -> int | None:
    """For `_outside`, in the fresh process: a short pass loads the libraries, then the long one is looked at."""
    attention = who.layer(plan["d_model"], plan["h"], device="cpu", dtype=torch.float32)
    module = who.contenders(attention, plan["long"], causal=False)[name]
    one_pass(module, inputs(1, 8, attention), "forward")()
    X = inputs(1, plan["long"], attention)
    before = resident()
    one_pass(module, X, "forward")()
    after = resident()
    return None if before is None or after is None else after - before


def inputs(B: int, L: int, attention: MultiHeadAttention) -> Tensor:
    weight = attention.W_Q.weight
    made = torch.randn(B, L, attention.d_model, generator=torch.Generator().manual_seed(1))
    return made.to(weight)


def describe(device: str) -> dict[str, Any]:
    """The machine and what runs on it, so that a stranger can judge the numbers."""
    kind = clock(device).__name__
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "cpu": _cpu(), "cores": os.cpu_count(),
        "threads": torch.get_num_threads(), "clock": kind, "system": platform.system(),
        "python": platform.python_version(), "torch": torch.__version__,
        "x_transformers": version("x-transformers"), "mha": version("mha"),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }  # fmt: skip


def show(cell: dict[str, Any]) -> None:
    """One line for each contender: milliseconds, × mha's time, MB that it adds."""
    print(f"\n({cell['B']}, {cell['L']})  {cell['dtype']}  {'causal' if cell['causal'] else 'all'}  {cell['passes']}")
    for name, row in cell["contenders"].items():
        spread = f"{row['low']:.2f}–{row['high']:.2f}"
        numbers = f"{1e3 * row['seconds']:9.2f} ms  ×{row['ratio']:<5.2f} ({spread})  {row['bytes'] / 1e6:7.1f} MB"
        print(f"  {name:<31}{numbers}", flush=True)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _load() -> float | None:
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that it runs: the numbers mean nothing"
    )
    parser.add_argument("--threads", type=int, default=1, help="on the CPU; with more than one the wall's clock counts")
    parser.add_argument(
        "--out", type=Path, help="the JSON; by default what the book shows, for quick or cuda in _build"
    )
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("bench: torch finds no CUDA device on this machine; run this on one that has one")
    torch.set_num_threads(options.threads)
    usual = RESULTS if options.device == "cpu" and not options.quick else BUILD / f"bench-{options.device}.json"
    out = options.out or usual
    results = measure(QUICK if options.quick else FULL, options.device)
    print()
    for target in results["targets"]:
        mark = {True: "✓", False: "✕", None: " "}[target["met"]]
        promise = f"{target['rule']} {target['limit']}" if target["limit"] else ""
        print(f"  {mark} {target['name']:<24}{target['value']:<8.3g} {promise}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"\nbench: {results['machine']['minutes']} minutes; written to {out}")


if __name__ == "__main__":
    main()
