"""What was promised before anything was measured, and what came out: each promise with its value, met or not."""

from collections.abc import Iterable
from typing import Any

WITH, WITHOUT = "nn.MultiheadAttention, weights", "nn.MultiheadAttention"


def targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The promises in order. A promise about several cells is judged by its worst, which is named in `where`."""
    forward = [cell for cell in found["cells"] if cell["passes"] == "forward"]
    lengths = sorted({cell["L"] for cell in found["cells"]})
    long = [cell for cell in forward if cell["L"] in lengths[-2:]]
    longest = [cell for cell in forward if cell["L"] == lengths[-1]]
    others = {name for cell in found["cells"] for name in cell["contenders"]} - {"mha"}
    promises = [
        _worst("fastest", found["cells"], others, 0.97),
        _worst("torch_with_weights", long, {WITH}, 1.5),
        _worst("torch_without_weights", long, {WITHOUT}, None),
        _worst("listing", longest, {"listing"}, 4),
        _least("memory", ((row["bytes"]["listing"] / row["bytes"]["mha"], row) for row in found["long"]), 20),
        _least("decoding", ((row["recomputed"]["ratio"], row) for row in found["decoding"]), 10),
    ]
    added = found["import"]["mha"]
    return [*promises, {"name": "import", "value": added, "rule": "≤", "limit": 0.15, "met": added <= 0.15}]


def _worst(name: str, cells: list[dict[str, Any]], others: set[str], limit: float | None) -> dict[str, Any]:
    """How many times faster than the fastest of `others` `mha` is, in the cell where that is least."""
    best = [(*min((cell["contenders"][other]["ratio"], other) for other in others), cell) for cell in cells]
    kept = _least(name, ((ratio, {**cell, "fastest": other}) for ratio, other, cell in best), limit)
    if limit is not None:
        kept |= {"cells": len(best), "cells_met": sum(ratio >= limit for ratio, _, _ in best)}
    return kept


def _least(name: str, rows: Iterable[tuple[float, dict[str, Any]]], limit: float | None) -> dict[str, Any]:
    value, row = min(rows, key=lambda pair: pair[0])
    where = {key: row[key] for key in ("B", "L", "dtype", "causal", "passes", "kv_heads", "fastest") if key in row}
    met = None if limit is None else value >= limit
    return {"name": name, "value": value, "rule": "≥", "limit": limit, "met": met, "where": where}
