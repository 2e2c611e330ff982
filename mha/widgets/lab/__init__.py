"""The lab: the five steps of multi-head attention in the reader's hands.

arithmetic.js holds the steps, lab.js draws them; `source` joins both to the text that a page runs.
In Jupyter, VS Code and Colab the lab is an anywidget; while the book is built it is a figure that lab-page.js wakes.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from mha.attention import MultiHeadAttention
from mha.figures import display
from mha.widgets.lab import model as numbers
from mha.widgets.lab.model import lab_model
from mha.widgets.lab.state import MOST_TOKENS, check_all, sentence, unit_of

__all__ = ["lab", "lab_model"]

MOST_HEADS, MOST_NUMBERS = 8, 1_200_000  # of a model of the reader's: four (512, 512) matrices and a little


def lab(
    Q: Tensor | None = None,
    *,
    model: MultiHeadAttention | None = None,
    tokens: str | Sequence[str] | None = None,
    h: int | None = None,
    d_k: int | None = None,
    weights: str | None = None,
    mask: str = "none",
    scale: bool = True,
    seed: int = 0,
    step: int = 0,
    head: int = 0,
    row: int = 0,
    column: int = 0,
    padding: int | None = None,
    drawn: Sequence[Sequence[int]] | None = None,
    breaks: Iterable[str] = (),
    unit: str | None = None,
) -> Any:
    """The five steps, live: `lab(tokens="国破山河在", h=4, d_k=8)`, or of your own model: `lab(Q, model=m)`.

    tokens: a string (its characters) or a list of strings, at most 16. h (1 to 8) and d_k (1, 2, 4, 8, 16 or 32) are
    free of each other; d_model = h·d_k. weights: "random" (drawn by `seed`), "identity" or "trained". mask: "none",
    "causal", "padding" (the first `padding` tokens are real) or "drawn" (`drawn`, (L, L), 1 = may attend).
    step: 0 (X) to 8 (output). head, row, column: the number that is looked at. breaks: mistakes to make, of "reshape",
    "transpose", "d_model", "axis", "late". unit: "characters" or "words", what the reader's text is cut into.
    Q (L, d_model) or (1, L, d_model) and model: show the numbers of this MultiHeadAttention; h, d_k and weights then
    follow from it, and `tokens` name its rows.

    → a widget whose traits have these names: what the reader moves is read there, what is set there is seen.
    TypeError or ValueError, naming the argument, where one does not fit.

    >>> live = lab(tokens="国破山河在", h=2, d_k=4)
    >>> live.tokens, live.h, live.d_k
    (['国', '破', '山', '河', '在'], 2, 4)
    """
    given = None
    if model is not None or Q is not None:
        for name, value in (("h", h), ("d_k", d_k), ("weights", weights)):
            if value is not None:
                raise ValueError(f"{name} follows from model: leave it out, got {name} = {value!r}")
        attention, X = _own(Q, model)
        L = X.shape[1]
        tokens = [str(i) for i in range(L)] if tokens is None else [str(token).strip() for token in tokens]
        if len(tokens) != L:
            raise ValueError(f"tokens must name the rows of Q: L = {L}, got {len(tokens)} of them")
        given, weights = numbers.given(attention, X, tokens), "given"
    elif weights == "given":
        raise ValueError("weights can be given only as lab(Q, model=…), got 'given' without a model")
    weights = weights or "random"
    fixed = numbers.sizes(weights, given)
    if tokens is None:
        names, own_unit = sentence()
    else:
        names, own_unit = list(tokens), unit_of(list(tokens))
    L = len(names)
    state: dict[str, Any] = {
        "tokens": names,
        "unit": unit or own_unit,
        "h": (fixed[0] if fixed else 4) if h is None else h,
        "d_k": (fixed[1] if fixed else 8) if d_k is None else d_k,
        "scale": scale,
        "mask": mask,
        "padding": max(1, L - 1) if padding is None else padding,
        "drawn": [[1] * L for _ in range(L)] if drawn is None else [[int(may) for may in keys] for keys in drawn],
        "weights": weights,
        "seed": seed,
        "step": step,
        "head": head,
        "row": row,
        "column": column,
        "breaks": [breaks] if isinstance(breaks, str) else list(breaks),
    }
    check_all(state, fixed)
    if display.frames_folder() or os.environ.get("MHA_STILL"):
        from mha.widgets.lab.page import Page

        if given is None:
            attention, X = lab_model(names, state["h"], state["d_k"], weights, seed)
        return Page(state, given, numbers.walk(attention, X, state | {"breaks": []}))
    from mha.widgets.lab.widget import Lab  # loads anywidget

    return Lab(state, given)


def _own(Q: Any, model: Any) -> tuple[MultiHeadAttention, Tensor]:
    """A model of the reader's and its input as (1, L, d_model), or what is wrong with them."""
    if not isinstance(model, MultiHeadAttention):
        raise TypeError(f"model must be an mha.MultiHeadAttention, got {type(model).__name__}: lab(Q, model=…)")
    if not isinstance(Q, Tensor):
        raise TypeError(f"Q must be a torch tensor (L, d_model) when a model is given, got {type(Q).__name__}")
    X = Q[None] if Q.dim() == 2 else Q
    if X.dim() != 3 or X.shape[0] != 1 or X.shape[2] != model.d_model or not 1 <= X.shape[1] <= MOST_TOKENS:
        raise ValueError(
            f"Q must be (L, d_model) = (1 to {MOST_TOKENS}, {model.d_model}), one sample, got {tuple(Q.shape)}"
        )
    if model.h > MOST_HEADS:
        raise ValueError(f"model must have at most {MOST_HEADS} heads to be drawn, got h = {model.h}")
    size = sum(parameter.numel() for parameter in model.parameters())
    if size > MOST_NUMBERS:
        raise ValueError(f"model must hold at most {MOST_NUMBERS:,} numbers to be sent to the page, got {size:,}")
    return model, X.detach()
