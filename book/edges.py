"""Find printed values that stand on a rounding edge: python -m book.edges [chapters/2-2-splitting.ipynb …].

A GPU, another thread count or another library adds the same numbers in another order, and the results differ in
their last bits. Here every inexact result of torch is moved by a few of those bits, at random, while a chapter
runs; what it prints must stay what is stored. Where it does not, print fewer digits or take other numbers.
"""

import argparse
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import torch
from nbclient import NotebookClient
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from book.languages import tags
from book.notebooks import CHAPTERS, ROOT, printed, read

BITS = 8  # how many units in the last place a result may be off; float32: 8 · 2⁻²³ ≈ 1e-6
HALF_BITS = 1  # half precision is summed in float32 everywhere and rounded once
# What another machine may round otherwise: sums of many numbers, and functions without one right last bit
INEXACT = {
    "mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "sum", "mean", "var", "std", "var_mean", "cumsum", "prod",
    "_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data", "logsumexp", "exp", "log",
    "log2", "sin", "cos", "tanh", "sigmoid", "pow", "linalg_vector_norm", "_linalg_svd", "native_layer_norm",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
}  # fmt: skip


class LastBits(TorchDispatchMode):
    """While it is on, every inexact result is off by up to BITS units in the last place, drawn from `seed`."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        return tree_map_only(torch.Tensor, self.move, result) if name in INEXACT else result

    def move(self, x: torch.Tensor) -> torch.Tensor:
        """x with other last bits. What is a short binary fraction (0, 1, 0.25 …) came out exact and stays."""
        if not x.dtype.is_floating_point or x.device.type != "cpu":
            return x
        # Like a machine: the same result always moves the same way. A generator of its own leaves the chapter's alone
        same = zlib.crc32(x.detach().reshape(-1).view(torch.uint8).numpy().tobytes(), self.seed)
        generator = torch.Generator().manual_seed(same)
        half = x.dtype in (torch.float16, torch.bfloat16)
        off = torch.rand(x.shape, generator=generator, dtype=torch.float64) * 2 - 1
        units = (HALF_BITS if half else BITS) * torch.finfo(x.dtype).eps
        moved = (x.double() * (1 + units * off)).to(x.dtype)
        fraction = x.double() * 2 ** (2 if half else 10)
        return torch.where((fraction == fraction.round()) | ~x.isfinite(), x, moved)


def on(seed: int) -> None:
    """Move the last bits from now on, for the rest of this process."""
    LastBits(seed).__enter__()


def edges(path: Path, seed: int) -> Iterator[str]:
    """What the chapter prints otherwise when last bits move, one line for each cell."""
    chapter = read(path)
    start = nbformat.v4.new_code_cell(f"import book.edges\n\nbook.edges.on({seed})")
    start.pop("id", None)
    notebook = nbformat.from_dict(chapter | {"cells": [start, *chapter["cells"]]})
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute(env=os.environ | {"MHA_LANG": "zh", "MHA_STILL": "1", "PYTHONPATH": str(ROOT)})  # as they were stored
    for number, (ran, stored) in enumerate(zip(notebook["cells"][1:], read(path)["cells"], strict=True)):
        if stored["cell_type"] == "code" and "timing" not in tags(stored) and printed(ran) != printed(stored):
            yield f"{path.name}, cell {number}: stored {printed(stored)!r}, now {printed(ran)!r}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m book.edges", description=__doc__)
    parser.add_argument("chapters", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=3, help="how often each chapter runs")
    options = parser.parse_args()
    found = []
    for path in options.chapters or sorted(CHAPTERS.glob("*.ipynb")):
        lines = [line for seed in range(options.seeds) for line in edges(path.resolve(), seed)]
        print(f"{path.name}: {len(lines)} edges", *lines, sep="\n  ", flush=True)
        found += lines
    if found:
        raise SystemExit(f"edges: {len(found)} printed values depend on last bits; print fewer digits there")


if __name__ == "__main__":
    main()
