"""What a lab's state may hold, said once: for `lab(…)`, for its traits, and for what the page sends."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from mha.language import language

WIDTHS = (1, 2, 4, 8, 16, 32)
BREAKS = ("reshape", "transpose", "d_model", "axis", "late")
MOST_TOKENS, LONGEST_WORD = 16, 24
KEYS = ("tokens", "unit", "h", "d_k", "scale", "mask", "padding", "drawn", "weights", "seed", "step", "head", "row",
        "column", "breaks")  # fmt: skip


def _whole(low: int, high: int) -> tuple[Callable[[Any], bool], str]:
    return (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
        f"an integer from {low} to {high}",
    )


def _one_of(*options: Any) -> tuple[Callable[[Any], bool], str]:
    return lambda value: type(value) is type(options[0]) and value in options, f"one of {', '.join(map(str, options))}"


def _tokens(value: Any) -> bool:
    words = isinstance(value, Sequence) and all(isinstance(token, str) for token in value)
    return words and 1 <= len(value) <= MOST_TOKENS and all(token and not _blank(token) for token in value)


def _blank(token: str) -> bool:
    return any(letter.isspace() or unicodedata.category(letter) in ("Cc", "Cs", "Co") for letter in token)


def _table(value: Any) -> bool:
    return all(len(row) == len(value) and all(may in (0, 1) for may in row) for row in value)


RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "tokens": (_tokens, f"1 to {MOST_TOKENS} strings without spaces"),
    "unit": _one_of("characters", "words"),
    "h": _whole(1, 8),
    "d_k": _one_of(*WIDTHS),
    "scale": (lambda value: isinstance(value, bool), "True or False"),
    "mask": _one_of("none", "causal", "padding", "drawn"),
    "padding": _whole(0, MOST_TOKENS),
    "drawn": (_table, "a square table of 0 and 1, 1 = may attend"),
    "weights": _one_of("random", "identity", "trained", "given"),
    "seed": _whole(0, 999_999),
    "step": _whole(0, 8),
    "head": _whole(0, 7),
    "row": _whole(0, MOST_TOKENS - 1),
    "column": _whole(0, 1023),
    "breaks": (lambda value: all(name in BREAKS for name in value), f"names of {', '.join(BREAKS)}"),
}


def check(name: str, value: Any) -> None:
    """ValueError, naming the rule, unless `value` may stand at `name`."""
    fits, rule = RULES[name]
    try:
        good = fits(value)
    except TypeError:  # no list, or not of what it should hold
        good = False
    if not good:
        raise ValueError(f"{name} must be {rule}, got {value!r}")


def check_all(state: dict[str, Any], sizes: tuple[int, int] | None) -> None:
    """The same for a whole state, and for what one value says of another.

    sizes: (h, d_k) of weights that fix both (trained, or a given model's), else None.
    """
    for name in KEYS:
        if sizes is None or name not in ("h", "d_k"):
            check(name, state[name])
    if sizes is not None and (state["h"], state["d_k"]) != sizes:
        raise ValueError(
            f"{state['weights']} weights have h = {sizes[0]} and d_k = {sizes[1]}, "
            f"got h = {state['h']} and d_k = {state['d_k']}"
        )
    L = len(state["tokens"])
    for name, limit, rule in (
        ("padding", L + 1, "at most L"),
        ("head", state["h"], "below h"),
        ("row", L, "below L"),
    ):
        if state[name] >= limit:
            raise ValueError(f"{name} must be {rule} = {limit - (name == 'padding')}, got {state[name]}")
    if len(state["drawn"]) != L:
        raise ValueError(f"drawn must have L = {L} rows, got {len(state['drawn'])}")


def settle(state: dict[str, Any], sizes: tuple[int, int] | None) -> dict[str, Any]:
    """What must change with the rest, as on the page: sizes that weights fix, places that no longer exist."""
    L = len(state["tokens"])
    h, d_k = sizes or (min(state["h"], 8), max(width for width in WIDTHS if width <= state["d_k"]))
    drawn = state["drawn"]
    wanted = {
        "h": h,
        "d_k": d_k,
        "padding": min(state["padding"], L),
        "head": min(state["head"], h - 1),
        "row": min(state["row"], L - 1),
        "drawn": [[drawn[i][j] if max(i, j) < len(drawn) else 1 for j in range(L)] for i in range(L)],
    }
    return {name: value for name, value in wanted.items() if value != state[name]}


SENTENCES = {"zh": (list("国破山河在"), "characters"), "en": (["Who", "has", "seen", "the", "wind"], "words")}


def sentence() -> tuple[list[str], str]:
    """The tokens that a lab opens on in the reader's language, and their unit. Five tokens in both."""
    tokens, unit = SENTENCES[language()]
    return list(tokens), unit


def call(state: dict[str, Any]) -> str:
    """A state as the call that makes it, the same in every run and, where it can be, in both languages."""
    usual = {"unit": unit_of(state["tokens"]), "scale": True, "mask": "none", "weights": "random", "breaks": [],
             "seed": 0, "step": 0, "head": 0, "row": 0, "column": 0}  # fmt: skip
    yours = state["weights"] == "given"
    names = [] if yours else ["h", "d_k"]
    names += [name for name, value in usual.items() if state[name] != value and not (yours and name == "weights")]
    names += [name for name in ("padding", "drawn") if state["mask"] == name]
    tokens = "".join(state["tokens"]) if state["unit"] == "characters" and not yours else state["tokens"]
    shown = ["Q", "model=model"] if yours else []
    if (state["tokens"], state["unit"]) in SENTENCES.values():
        names = [name for name in names if name != "unit"]
    else:
        shown.append(f"tokens={tokens!r}")
    shown += [f"{name}={state[name]!r}" for name in names]
    return f"lab({', '.join(shown)})"


def unit_of(tokens: Sequence[str]) -> str:
    """ "characters" if every token is one, as a reader counts, else "words".

    >>> unit_of(["e\\u0301", "山"]), unit_of(["the", "a"])
    ('characters', 'words')
    """
    return "characters" if all(_one_character(token) for token in tokens) else "words"


def _one_character(token: str) -> bool:
    return sum(unicodedata.category(letter) not in ("Mn", "Me", "Cf", "Sk") for letter in token) <= 1
