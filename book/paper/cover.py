"""The picture on the cover: eight heads look at one sentence, each in its own way.

Each square is one head's causal attention over eight tokens, really computed (softmax of q · k / √d_k, seeded).
"""

import math
import random

from mha.figures import HEADS

TOKENS, WIDTH_OF_HEAD, SEED = 8, 4, 11


def weights(head: int) -> list[list[float]]:
    """Causal attention weights of one head, (L, L); row i sums to 1 over keys 0 … i."""
    draw = random.Random(SEED + head)
    q, k = ([[draw.gauss(0, 1.6) for _ in range(WIDTH_OF_HEAD)] for _ in range(TOKENS)] for _ in "qk")
    rows = []
    for i in range(TOKENS):
        scores = [sum(a * b for a, b in zip(q[i], k[j], strict=True)) / math.sqrt(WIDTH_OF_HEAD) for j in range(i + 1)]
        exponentials = [math.exp(s - max(scores)) for s in scores]
        rows.append([e / sum(exponentials) for e in exponentials] + [0.0] * (TOKENS - i - 1))
    return rows


def drawing(columns: int = 4, cell: int = 12, gap: int = 22) -> str:
    """The eight squares as SVG, `columns` in a row."""
    side = cell * TOKENS
    rows = math.ceil(len(HEADS) / columns)
    parts = []
    for head, colour in enumerate(HEADS):
        x0, y0 = (head % columns) * (side + gap), (head // columns) * (side + gap)
        for i, row in enumerate(weights(head)):
            for j, weight in enumerate(row[: i + 1]):
                parts.append(
                    f'<rect x="{x0 + j * cell + 0.5}" y="{y0 + i * cell + 0.5}" width="{cell - 1}" height="{cell - 1}" '
                    f'fill="{colour}" fill-opacity="{0.10 + 0.90 * weight:.3f}"/>'
                )
    width, height = columns * side + (columns - 1) * gap, rows * side + (rows - 1) * gap
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )
