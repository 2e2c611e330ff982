"""Live figures in a kernel: the sliders show what `draw` draws for their values, and wrong calls are told."""

import base64
import html
import json
import re

import pytest
from matplotlib.figure import Figure

import mha.language
from mha.figures import canvas, display, tell
from mha.widgets import explore


@pytest.fixture(autouse=True)
def english(monkeypatch):
    monkeypatch.setattr(mha.language, "_chosen", "en")


def draw(h=1, d_k=2):
    if h == 3:
        raise ValueError("h must divide d_model, got d_model = 4 and h = 3")
    fig = canvas(1)
    ax = fig.add_subplot()
    ax.plot([0, h], [0, d_k])
    return tell(fig, f"h = {h}", f"a line to {h}, {d_k}")


def parts(live):
    *sliders, picture = live.widget.children
    return sliders, picture


def test_the_figure_opens_on_the_first_value_of_each_choice():
    sliders, picture = parts(explore(draw, h=[2, 4], d_k=[8, 1]))
    assert [slider.value for slider in sliders] == [2, 8]
    assert 'alt="a line to 2, 8"' in picture.value


def test_numbers_lie_along_the_slider_from_small_to_large_and_words_as_given(monkeypatch, tmp_path):
    live = explore(lambda h, mask: draw(h), h=[4, 1, 16, 2], mask=["none", "causal"])
    (slider, buttons), picture = parts(live)
    assert [value for _, value in slider.options] == [1, 2, 4, 16]
    assert [value for _, value in buttons.options] == ["none", "causal"]
    assert (slider.value, buttons.value) == (4, "none")
    assert 'alt="a line to 4, 2"' in picture.value
    monkeypatch.setenv("MHA_FRAMES", str(tmp_path))
    page = bundle(live)["text/html"]
    assert re.findall(r'<input [^>]*value="(\d)"', page) == ["2", "0"]
    assert re.findall(r"<output[^>]*>(.*?)</output>", page) == ["4", "none"]
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.S).group(1))
    assert data["choices"] == [
        {"name": "h", "values": ["1", "2", "4", "16"]}, {"name": "mask", "values": ["none", "causal"]},
    ]  # fmt: skip
    first = re.search(r"<img [^>]*>", page).group()
    assert 'alt="a line to 4, 2"' in html.unescape(first)
    assert data["frames"][4]["src"] in first


def test_words_have_buttons_because_jupyterlab_cuts_them_beside_a_slider():
    slider, buttons = parts(explore(lambda h, step: draw(h), h=[1, 2], step=["view", "view + transpose"]))[0]
    assert slider.__class__.__name__ == "SelectionSlider"
    assert buttons.__class__.__name__ == "ToggleButtons"
    buttons.value = "view + transpose"
    assert buttons.description == "step"


def test_moving_a_slider_shows_the_figure_for_the_new_values():
    sliders, picture = parts(explore(draw, h=[1, 2], d_k=[1, 5]))
    sliders[1].value = 5
    expected = base64.b64encode(display.png(draw(1, 5))).decode()
    assert expected in picture.value
    sliders[0].value = 2
    assert 'alt="a line to 2, 5"' in picture.value


def test_an_impossible_combination_is_told_and_the_next_move_recovers():
    sliders, picture = parts(explore(draw, h=[1, 3, 4]))
    sliders[0].value = 3
    assert "This combination is impossible:" in picture.value
    assert "h must divide d_model, got d_model = 4 and h = 3" in picture.value
    sliders[0].value = 4
    assert 'alt="a line to 4, 2"' in picture.value


def test_the_refusal_and_the_labels_speak_the_readers_language(monkeypatch):
    monkeypatch.setattr(mha.language, "_chosen", "zh")
    sliders, picture = parts(explore(draw, h=[1, 3], d_k=[1, 2]))
    sliders[0].value = 3
    assert "这个组合不成立" in picture.value
    assert [slider.description for slider in sliders] == ["头数 h", "每头维度 d_k"]


def test_an_error_inside_draw_is_shown_where_the_reader_looks():
    def fails_later(h):
        return draw(1 if h == 1 else 1 / 0)

    sliders, picture = parts(explore(fails_later, h=[1, 2]))
    sliders[0].value = 2
    assert "ZeroDivisionError" in picture.value


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: explore(draw, h=[]), ValueError, r"h must hold at least one value to choose from, got \[\]"),
        (lambda: explore(draw), ValueError, r"explore needs at least one choice"),
        (lambda: explore(draw, h=4), TypeError, r"h must be a list of values to choose from, got 4"),
        (lambda: explore(draw, h="12"), TypeError, r"h must be a list of values to choose from, got '12'"),
        (lambda: explore(draw, heads=[1]), TypeError, r"draw must take exactly the choices heads: draw\(h=1, d_k=2\)"),
        (lambda: explore(lambda h: None, h=[1]), TypeError, r"draw must return a matplotlib Figure, got NoneType"),
        (lambda: explore("draw", h=[1]), TypeError, r"draw must be a function .* got str"),
    ],
)
def test_a_wrong_call_gets_a_clear_error(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_its_text_form_is_the_same_in_every_run():
    assert repr(explore(draw, h=[1, 2], d_k=[4])) == "explore(draw, h=[1, 2], d_k=[4])"


def bundle(live):
    return live._repr_mimebundle_()


def test_in_a_kernel_it_is_a_widget(monkeypatch):
    monkeypatch.delenv("MHA_FRAMES", raising=False)
    monkeypatch.delenv("MHA_STILL", raising=False)
    live = explore(draw, h=[1, 2])
    view = bundle(live)["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == live.widget.model_id


def test_a_stored_notebook_holds_its_first_frame(monkeypatch):
    monkeypatch.delenv("MHA_FRAMES", raising=False)
    monkeypatch.setenv("MHA_STILL", "1")
    assert base64.b64decode(bundle(explore(draw, h=[2, 4]))["image/png"]) == display.png(draw(2))


def test_while_the_book_is_built_every_combination_is_a_frame_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("MHA_FRAMES", str(tmp_path))
    page = bundle(explore(draw, h=[1, 3, 2], d_k=[4, 5]))["text/html"]
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.S).group(1))
    assert data["choices"] == [{"name": "h", "values": ["1", "2", "3"]}, {"name": "d_k", "values": ["4", "5"]}]
    told = [frame.get("alt", frame.get("error")) for frame in data["frames"]]
    refused = "h must divide d_model, got d_model = 4 and h = 3"
    assert told == ["a line to 1, 4", "a line to 1, 5", "a line to 2, 4", "a line to 2, 5", refused, refused]
    for frame in data["frames"]:
        assert "error" in frame or (tmp_path / frame["src"].removeprefix("frames:")).stat().st_size > 500
    first = re.search(r"<img [^>]*>", page).group()
    assert data["frames"][0]["src"] in first
    assert 'alt="a line to 1, 4"' in html.unescape(first)


def test_figures_of_different_sizes_are_refused_because_the_page_would_jump(monkeypatch, tmp_path):
    monkeypatch.setenv("MHA_FRAMES", str(tmp_path))
    with pytest.raises(ValueError, match=r"draw must return figures of one size"):
        bundle(explore(lambda h: canvas(h), h=[1, 2]))


def test_a_first_combination_that_is_impossible_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("MHA_FRAMES", str(tmp_path))
    with pytest.raises(ValueError, match=r"the first combination must be possible"):
        bundle(explore(draw, h=[3, 1]))


def test_the_same_figure_is_the_same_bytes():
    assert display.png(draw()) == display.png(draw())
    assert isinstance(draw(), Figure)
