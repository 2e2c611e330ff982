"""How it is measured: in turns, so that a busy moment of the machine hits all alike, and by ratios.

On the CPU one thread works and its processor time counts: what other programs take away meanwhile is not ours. With
more threads, or on a GPU, it is the clock on the wall.
"""

import gc
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

BEHIND = 1.5  # who needs so many times the first one's time is not in the race


def synchronise(device: str) -> None:
    """Wait until the device has done what it was told. A CPU always has."""
    if device == "cuda":
        torch.cuda.synchronize()


def clock(device: str) -> Callable[[], float]:
    return time.process_time if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter


def interleaved(
    runs: Mapping[str, Callable[[], object]], *, device: str, seconds: float, least: int = 3, most: int = 200
) -> dict[str, list[float | None]]:
    """Seconds that each run took, round by round: A B C, B A C, …, in an order drawn anew for each round.

    Rounds go on until they have taken `seconds` in all, from `least` to `most` of them. Who is clearly behind the
    first of `runs` after `least` rounds sits out from then on: None.
    """
    now, draw = clock(device), random.Random(0)
    taken: dict[str, list[float | None]] = {name: [] for name in runs}
    racing, spent = list(runs), 0.0
    gc.collect()
    gc.disable()
    try:
        for turn in range(most):
            if turn >= least and spent > seconds:
                break
            if turn == least:
                middle = {name: statistics.median(t for t in taken[name] if t is not None) for name in runs}
                racing = [name for name in runs if middle[name] < BEHIND * middle[next(iter(runs))]]
            for name in draw.sample(racing, len(racing)):
                synchronise(device)
                start = now()
                kept = runs[name]()
                synchronise(device)
                took = now() - start
                del kept  # freeing what the run returned is not its work
                taken[name].append(took)
                spent += took
            for name in set(runs) - set(racing):
                taken[name].append(None)
    finally:
        gc.enable()
    return taken


def compared(taken: Mapping[str, list[float | None]], first: str) -> dict[str, dict[str, float]]:
    """For each name: its median time, and the quartiles of its time ÷ the time of `first` in the same round."""
    table = {}
    for name, times in taken.items():
        pairs = [(t, base) for t, base in zip(times, taken[first], strict=True) if t is not None and base is not None]
        ratios = [t / base for t, base in pairs]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        median = statistics.median(t for t, _ in pairs)
        table[name] = {"seconds": median, "ratio": middle, "low": low, "high": high, "rounds": len(pairs)}
    return table


def added_bytes(run: Callable[[], object], device: str) -> tuple[int, Any]:
    """The most memory that `run` held at one time beyond what was there before, and what it returned.

    On a GPU the allocator counts. On the CPU torch's allocator reports every block to the profiler, those inside a
    fused kernel too. What a matrix product's library takes for itself is not seen there.
    """
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        result = run()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before, result
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as seen:
        result = run()
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak, result


def resident() -> int | None:
    """The most bytes that this process has held in memory so far, as Linux counts; None where it does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def import_seconds(rounds: int) -> dict[str, float]:
    """What `import mha` adds to `import torch`, each time in a fresh process: medians."""
    code = "import time; a = time.{c}(); import torch; b = time.{c}(); import mha; print(b - a, time.{c}() - b)"
    code = code.format(c="process_time")
    pairs = []
    for _ in range(rounds + 1):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        pairs.append([float(number) for number in done.stdout.split()])
    torch_alone, added = (statistics.median(column) for column in zip(*pairs[1:], strict=True))  # the first warms up
    return {"torch": torch_alone, "mha": added}
