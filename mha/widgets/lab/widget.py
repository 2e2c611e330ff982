"""The lab as an anywidget: its traits are the state, and sync both ways."""

from typing import Any

import anywidget
import traitlets

from mha.widgets.lab import source
from mha.widgets.lab.model import sizes, trained
from mha.widgets.lab.page import words
from mha.widgets.lab.state import KEYS, call, check, settle


class Lab(anywidget.AnyWidget):
    """Made by `lab`. Set a trait and the page shows it; move the page's controls and the traits follow.

    Only JSON-able traits: Colab drops binary ones. TraitError, naming the rule, for a value that does not fit.
    """

    _esm = source.module()
    _css = source.css()
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    unit = traitlets.Unicode().tag(sync=True)
    h = traitlets.Int(4).tag(sync=True)
    d_k = traitlets.Int(8).tag(sync=True)
    scale = traitlets.Bool(True).tag(sync=True)
    mask = traitlets.Unicode().tag(sync=True)
    padding = traitlets.Int().tag(sync=True)
    drawn: traitlets.List[list[int]] = traitlets.List().tag(sync=True)
    weights = traitlets.Unicode().tag(sync=True)
    seed = traitlets.Int().tag(sync=True)
    step = traitlets.Int().tag(sync=True)
    head = traitlets.Int().tag(sync=True)
    row = traitlets.Int().tag(sync=True)
    column = traitlets.Int().tag(sync=True)
    breaks = traitlets.List(traitlets.Unicode()).tag(sync=True)
    words = traitlets.Dict().tag(sync=True)  # what the page says, in the reader's language
    given = traitlets.Dict(None, allow_none=True).tag(sync=True)  # a model of yours: its weights and input
    trained = traitlets.Dict(None, allow_none=True).tag(sync=True)  # trained.json, once it is wanted

    def __init__(self, state: dict[str, Any], given: dict[str, Any] | None = None) -> None:
        """state: as `state.check_all` accepts it. given: as `model.given` makes it."""
        wanted = trained() if state["weights"] == "trained" else None
        super().__init__(**state, words=words(), given=given, trained=wanted)

    @traitlets.validate(*KEYS)
    def _fits(self, proposal: Any) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        try:
            if name == "weights" and value == "given" and self.given is None:
                raise ValueError("weights can be given only as lab(Q, model=…), got 'given' without a model")
            fixed = sizes(self.weights, self.given)
            if fixed and name in ("h", "d_k"):
                _fixed(name, value, fixed, self.weights)
            else:
                check(name, value)
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None
        return value

    @traitlets.observe(*KEYS)
    def _settle(self, _change: Any) -> None:
        if self.weights == "trained" and self.trained is None:
            self.trained = trained()
        for name, value in settle(self.state, sizes(self.weights, self.given)).items():
            setattr(self, name, value)

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the reader set, as one dict."""
        return {name: getattr(self, name) for name in KEYS}

    def __repr__(self) -> str:
        return call(self.state)


def _fixed(name: str, value: int, fixed: tuple[int, int], weights: str) -> None:
    wanted = fixed[("h", "d_k").index(name)]
    if value != wanted:
        raise ValueError(f"{name} must stay {wanted} with {weights} weights, got {value!r}")
