"""The lab on the built page: every number is the one mha computes, by mouse, touch and keyboard, in both languages."""

import contextlib
import io
import json
import re
import urllib.request

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe

from book.lab import SCRIPT, STYLE, TRAINED, minify, write
from book.languages import LANGUAGES
from mha.widgets.lab import lab_model
from mha.widgets.lab.model import walk
from tests.site.conftest import hold_back, let_pass

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
COVER = "chapters/cover.html"
SENTENCE = {"zh": list("国破山河在"), "en": ["Who", "has", "seen", "the", "wind"]}
TENSORS = ("X_Q", "Q K V", "Q_heads K_heads V_heads", "raw", "scores", "weights", "heads", "concat", "output")
# What a step is made of stands in its picture, too; on a phone one W at a time
MADE_OF = (
    *("", "X_Q W_Q W_K W_V", "", "Q_heads K_heads", "raw", "scores", "weights V_heads", "heads"),
    "concat W_O contributions",
)
START = {"h": 4, "d_k": 8, "scale": True, "mask": "none", "padding": 4, "weights": "random", "seed": 0, "breaks": []}


def open_lab(visit, lang, address="", page=COVER, **options):
    """The page with its lab alive, and the lab. Nothing moves by itself: what is read is what is meant."""
    tab = visit(
        f"{lang}/{page}{'#lab=' + worded(lang, address) if address else ''}", **{"reduced_motion": "reduce"} | options
    )
    lab = tab.locator("figure.mha-lab-live").first
    lab.wait_for()
    arrive(tab, address)
    return tab, lab


def arrive(tab, address):
    """Trained weights are fetched when an address first asks for them."""
    if "w=trained" in address:
        tab.wait_for_function("() => document.querySelector('.mha-lab [data-control=weights]').value === 'trained'")


def worded(lang, address):
    """The address with the reader's sentence, unless it has one: without, it means 国破山河在 in either language."""
    return address if lang == "zh" or "t=" in address else f"t={'+'.join(SENTENCE[lang])}&u=words&{address}"


def put(tab, address):
    """What a reader does who edits the address, or follows a link to another situation, and waits for it."""
    follow(tab, address)
    arrive(tab, address)


def follow(tab, address):
    """The same, without waiting for what must be fetched."""
    tab.evaluate(
        """address => new Promise(done => {
            const before = location.href, seen = () => requestAnimationFrame(done);
            addEventListener('hashchange', seen, {once: true});
            location.hash = '#lab=' + address;
            if (location.href === before) seen();
        })""",
        address,
    )


def tensors(state):
    """name → what mha computes in this state, without the batch."""
    attention, X = lab_model(state["tokens"], state["h"], state["d_k"], state["weights"], state["seed"])
    L = len(state["tokens"])
    full = {"drawn": [[1] * L] * L} | state
    trace = walk(attention, X, full)
    found = {name: getattr(trace, name)[0] for row in TENSORS for name in row.split() if name != "raw"}
    found["raw"] = found["Q_heads"] @ found["K_heads"].mT
    found |= {name: getattr(attention, name).weight.T for name in ("W_Q", "W_K", "W_V", "W_O")}
    h, _, d_v = found["heads"].shape
    found["contributions"] = found["heads"] @ found["W_O"].reshape(h, d_v, -1)
    return found


def shown(number):
    text = f"{number:.4f}"
    return text.replace("-", "") if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")


def value(lab):
    """The number that the lab explains below its picture."""
    return lab.locator(".mha-lab-value").inner_text().split(" ")[0]


def expect(lab, state, step, index=None):
    """The number below the picture is mha's."""
    name = TENSORS[step].split()[0]
    tensor = tensors(state)[name]
    index = index or (0,) * tensor.dim()
    assert value(lab) == shown(tensor[tuple(index)].item()), f"{name}{list(index)}"
    assert str(tuple(tensor.shape)) in lab.locator(".mha-lab-heading").inner_text()


def start(lang, **changes):
    return {"tokens": SENTENCE[lang], **START, **changes}


def control(lab, name):
    return lab.locator(f"[data-control={name}]")


WALKS = {
    "zh": [
        ("h=4&d=8", {}),
        ("h=3&d=4&m=causal&r=7", {"h": 3, "d_k": 4, "mask": "causal", "seed": 7}),
        ("h=2&d=4&m=causal&x=reshape.axis", {"h": 2, "d_k": 4, "mask": "causal", "breaks": ["reshape", "axis"]}),
    ],
    "en": [
        ("h=8&d=2&m=padding&s=0", {"h": 8, "d_k": 2, "mask": "padding", "scale": False}),
        ("h=1&d=16&w=identity", {"h": 1, "d_k": 16, "weights": "identity"}),
        ("h=4&d=8&m=causal&w=trained", {"mask": "causal", "weights": "trained"}),
    ],
}
# From this cell on, every cell that the focus comes to
FOLLOW = """cell => {
    const place = cell => [cell.parentNode.ariaRowIndex - 1, cell.ariaColIndex - 1];
    cell.focus();
    window.met = [];
    window.following?.abort();
    window.following = new AbortController();
    addEventListener('focusin', ({target}) => met.push([...place(target), target.ariaLabel]), following);
    return place(cell);
}"""
KEYS = {"ArrowDown": (1, 0), "ArrowRight": (0, 1), "End": (0, 10**6), "ArrowUp": (-1, 0), "ArrowLeft": (0, -1)}


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_numbers_that_the_keyboard_reaches_are_mhas_at_every_step(visit, lang, options):
    tab, lab = open_lab(visit, lang, **options)
    for address, changes in WALKS[lang]:
        put(tab, worded(lang, address))
        state = start(lang, **changes)
        right, broken = tensors(state | {"breaks": []}), tensors(state)
        for step, names in enumerate(TENSORS):
            pictured = [*names.split(), *MADE_OF[step].split()]
            assert lab.get_by_role("grid").count() == len(pictured)
            for at, name in enumerate(pictured):
                wrong = broken[name] if state["breaks"] and not name.startswith("W_") else None
                walk_a_grid(tab, lab.get_by_role("grid").nth(at), right[name], wrong)
            if step < 8:
                control(lab, "step").press("ArrowRight")
        assert control(lab, "step").get_attribute("aria-valuetext").startswith("8 ")


def walk_a_grid(tab, grid, right, broken):
    """Each key leads where it should, and what is read aloud there is the number of this place."""
    rows, columns = right.shape[-2:]
    wide = int(grid.get_attribute("aria-colcount"))  # all heads side by side after the split, else one matrix
    assert int(grid.get_attribute("aria-rowcount")) == rows
    chosen = int(tab.get_by_role("radio", checked=True, include_hidden=True).inner_text() or 0)
    r, c = grid.get_by_role("gridcell").evaluate(FOLLOW)
    for key in KEYS:
        tab.keyboard.press(key)
    for (key, (down, across)), (row, column, said) in zip(KEYS.items(), tab.evaluate("met"), strict=True):
        r = min(max(r + down, 0), rows - 1)
        head = c // columns
        c = (head + 1) * columns - 1 if key == "End" else min(max(c + across, 0), wide - 1)
        assert (row, column) == (r, c), key
        index = (r, c) if right.dim() == 2 else (c // columns if wide > columns else chosen, r, c % columns)
        good = shown(right[index].item())
        told = re.sub(r" \(.*?\)", "", re.split("：|: ", said)[-1])
        assert told == (good if broken is None else f"✓ {good}  ✕ {shown(broken[index].item())}")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_control_moved_by_mouse_and_keyboard_shows_mhas_new_number(visit, lang):
    tab, lab = open_lab(visit, lang, "step=5")
    state = start(lang)
    expect(lab, state, 5)
    for name, key, change in (
        ("h", "ArrowRight", {"h": 5}),
        ("d_k", "ArrowLeft", {"d_k": 4}),
        ("h", "Home", {"h": 1}),
        ("d_k", "End", {"d_k": 32}),
    ):
        control(lab, name).press(key)
        state |= change
        expect(lab, state, 5)
        assert f"= {state['h'] * state['d_k']}" in lab.locator(".mha-lab-width").inner_text()
    control(lab, "h").fill("2")
    control(lab, "scale").uncheck()
    state |= {"h": 2, "scale": False}
    expect(lab, state, 5)
    control(lab, "scale").press("Space")
    state["scale"] = True
    expect(lab, state, 5)
    for mask in ("causal", "padding"):
        control(lab, "mask").select_option(mask)
        state["mask"] = mask
        expect(lab, state, 5)
    control(lab, "real").press("Home")
    control(lab, "real").press("ArrowRight")
    state["padding"] = 1
    expect(lab, state, 5)
    control(lab, "mask").select_option("none")
    state["mask"] = "none"
    control(lab, "roll").click()
    state["seed"] = 1
    expect(lab, state, 5)
    control(lab, "weights").select_option("identity")
    state["weights"] = "identity"
    expect(lab, state, 5)
    assert control(lab, "roll").is_disabled()
    control(lab, "weights").select_option("trained")
    state |= {"weights": "trained", "h": 4, "d_k": 8}
    tab.wait_for_function("() => document.querySelector('.mha-lab [data-control=h]').disabled")
    expect(lab, state, 5)
    control(lab, "reset").click()
    expect(lab, start(lang), 2)
    assert lab.locator(".mha-lab-status").inner_text()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_steps_and_heads_are_chosen_by_button_by_slider_and_on_the_map(visit, lang):
    tab, lab = open_lab(visit, lang, "step=0")
    state = start(lang)
    expect(lab, state, 0)
    control(lab, "next").click()
    expect(lab, state, 1)
    control(lab, "back").press("Enter")
    expect(lab, state, 0)
    for step in (8, 3, 6):
        control(lab, "step").fill(str(step))
        expect(lab, state, step)
    lab.locator(".mha-lab-map button").nth(5).click()
    expect(lab, state, 5)
    assert lab.locator(".mha-lab-map button").nth(5).get_attribute("aria-current") == "step"
    lab.get_by_role("radio").nth(3).click()
    expect(lab, state, 5, (3, 0, 0))
    tab.keyboard.press("ArrowRight")  # from the last head to the first
    expect(lab, state, 5, (0, 0, 0))
    assert lab.get_by_role("radio", checked=True).inner_text() == "0"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_sentence_is_typed_cut_into_words_or_picked(visit, lang):
    _, lab = open_lab(visit, lang, "step=5")
    sentence = control(lab, "sentence")
    control(lab, "unit").select_option("characters")
    sentence.fill("山河在山")
    expect(lab, start(lang, tokens=list("山河在山")), 5)
    sentence.press("End")
    sentence.press("Backspace")
    expect(lab, start(lang, tokens=list("山河在")), 5)
    control(lab, "unit").select_option("words")
    sentence.fill("to be or not to be")
    expect(lab, start(lang, tokens=["to", "be", "or", "not", "to", "be"]), 5)
    control(lab, "example").select_option("0")
    expect(lab, start(lang), 5)
    assert sentence.input_value() in ("国破山河在", "Who has seen the wind")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_the_lab_changed_is_said_in_the_readers_language(visit, lang):
    _, lab = open_lab(visit, lang, "step=5")
    control(lab, "unit").select_option("characters")
    for text, tokens in (
        ("", list("国破山河在")),
        ("字" * 500, ["字"] * 16),
        ("👩‍👩‍👧🏽", ["👩‍👩‍👧🏽"]),
        ("  \t ", list("国破山河在")),
    ):
        control(lab, "sentence").fill(text)
        expect(lab, start(lang, tokens=tokens), 5)
        said = lab.locator(".mha-lab-status").inner_text()
        if tokens[0] != text:
            assert said
            assert bool(re.search("词元|文字", said)) == (lang == "zh")


NONSENSE = (
    "h=99&d=7&m=sideways&w=&r=-4&step=1000&head=9&row=77&col=-1&x=nothing&t=",
    "t=%F0%9F%98%80&u=3&g=zz.zz",
    "h=NaN&t=" + "字" * 600,
    "w=given",
    "%%%&&&===",
)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_hand_edited_address_never_breaks_the_lab_and_it_says_what_it_did(visit, lang):
    tab, lab = open_lab(visit, lang)
    for address in NONSENSE:
        put(tab, address)
        assert re.fullmatch(r"\N{MINUS SIGN}?\d+\.\d{4}", value(lab)), address
        said = lab.locator(".mha-lab-status").inner_text()
        assert bool(said) == (not address.startswith("%")), address
        assert bool(re.search("[改用应]", said)) == (lang == "zh" and bool(said))
        lab.get_by_role("grid").first.get_by_role("gridcell").press("ArrowDown")
        assert re.fullmatch(r"\N{MINUS SIGN}?\d+\.\d{4}", value(lab)), address


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_mask_is_drawn_by_clicking_cells_and_by_keyboard(visit, lang):
    tab, lab = open_lab(visit, lang, "step=4")
    L = len(SENTENCE[lang])
    control(lab, "mask").select_option("drawn")
    cell = lab.get_by_role("gridcell").first
    cell.focus()
    drawn = [[1] * L for _ in range(L)]
    tab.keyboard.press("Enter")
    drawn[0][0] = 0
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Space")
    drawn[1][1] = 0
    box = cell.bounding_box()  # the cell (1, 1): click the one to its right
    tab.mouse.click(box["x"] + 1.5 * box["width"], box["y"] + box["height"] / 2)
    drawn[1][2] = 0
    assert " → " in lab.locator(".mha-lab-status").inner_text()
    control(lab, "step").press("ArrowRight")
    state = start(lang, mask="drawn", drawn=drawn)
    expect(lab, state, 5, (0, 1, 2))
    assert value(lab) == "0.0000"
    lab.get_by_role("gridcell").first.press("ArrowLeft")
    lab.get_by_role("gridcell").first.press("ArrowLeft")
    expect(lab, state, 5, (0, 1, 0))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_break_shows_the_wrong_number_beside_the_right_one(visit, lang):
    tab, lab = open_lab(visit, lang)
    for broken, step in (("reshape", 2), ("transpose", 7), ("d_model", 4), ("axis", 5), ("late", 5)):
        put(tab, worded(lang, f"m=causal&step={step}&row=1&col=1"))
        control(lab, broken).check()
        good = tensors(start(lang, mask="causal"))[TENSORS[step].split()[0]]
        bad = tensors(start(lang, mask="causal", breaks=[broken]))[TENSORS[step].split()[0]]
        index = (0, 1, 1) if good.dim() == 3 else (1, 1)
        text = lab.locator(".mha-lab-value").inner_text()
        wanted = [shown(good[index].item()), shown(bad[index].item())]
        assert re.findall(r"[\d.\N{MINUS SIGN}]+", text) == wanted, broken
        assert lab.locator(".mha-lab-wrong").is_visible()
        control(lab, broken).press("Space")
        assert value(lab) == wanted[0]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_where_a_number_came_from_is_written_out(visit, lang):
    tab, lab = open_lab(visit, lang, "step=3&row=2&col=1")
    T = tensors(start(lang))
    lab.locator("details summary").click()
    products = re.findall(
        r"\(?(\N{MINUS SIGN}?[\d.]+)\)?·\(?(\N{MINUS SIGN}?[\d.]+)\)?", lab.locator("details").inner_text()
    )
    expected = zip(T["Q_heads"][0, 2].tolist(), T["K_heads"][0, 1].tolist(), strict=True)
    assert [tuple(float(x.replace("\N{MINUS SIGN}", "-")) for x in pair) for pair in products] == [
        (pytest.approx(q, abs=0.0051), pytest.approx(k, abs=0.0051)) for q, k in expected
    ]
    canvas = lab.locator(".mha-lab-stage canvas").bounding_box()
    before = value(lab)
    tab.mouse.move(canvas["x"] + 4, canvas["y"] + 4)
    seen = {before}
    for step in range(2, 30):  # the mouse crosses the picture: other numbers are told, and none when it leaves
        tab.mouse.move(canvas["x"] + canvas["width"] * step / 34, canvas["y"] + canvas["height"] * 0.6)
        seen.add(value(lab))
    assert len(seen) > 4
    tab.mouse.move(0, 0)
    assert value(lab) == before
    put(tab, worded(lang, "step=1"))  # a weight says where it goes
    lab.get_by_role("grid", name="W_K").get_by_role("gridcell").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        tab.keyboard.press(key)
    assert lab.locator(".mha-lab-whence code").inner_text() == "K[:,1] = … + X[:,2] · W_K[2,1] + …"


def test_what_each_head_adds_to_the_output_is_said(visit):
    _, lab = open_lab(visit, "en", "step=8&row=1&col=3")
    parts = [
        float(x.replace("\N{MINUS SIGN}", "-"))
        for x in re.findall(r"\N{MINUS SIGN}?\d\.\d\d", lab.locator(".mha-lab-sum").first.inner_text())
    ]
    T = tensors(start("en"))
    assert parts[:4] == pytest.approx(T["contributions"][:, 1, 3].tolist(), abs=0.0051)
    assert sum(parts) == pytest.approx(T["output"][1, 3].item(), abs=0.03)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_heads_number_stands_on_the_line_of_its_chip(visit, lang):
    _, lab = open_lab(visit, lang, "h=8&d=32&step=8&row=2&col=5", **PHONE)
    lines, tops = lab.locator(".mha-lab-share").evaluate_all(
        "s => [s.map(share => share.getClientRects().length), s.map(share => share.getBoundingClientRect().top)]"
    )
    assert lines == [1] * 8
    assert len(set(tops)) > 1, "no line ends among them"


def test_a_factor_that_rounds_to_zero_has_no_sign_and_no_brackets(visit):
    _, lab = open_lab(visit, "en", "step=8&h=8&d=32")
    lab.locator("details summary").click()
    terms = lab.locator("details").inner_text()
    T = tensors(start("en", h=8, d_k=32))
    factors = T["concat"][0].tolist() + T["W_O"][:, 0].tolist()
    assert any(-0.005 < factor < 0 for factor in factors)
    assert "0.00·" in terms or "·0.00" in terms
    assert "(0.00)" not in terms
    assert "\N{MINUS SIGN}0.00" not in terms


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_shared_link_opens_the_same_situation(visit, lang, address):
    tab, lab = open_lab(visit, lang, "h=3&d=4&step=6&head=2&row=1&col=3&m=causal&x=axis")
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    control(lab, "sentence").fill("one two three one")
    control(lab, "unit").select_option("words")
    control(lab, "share").click()
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"{address}/{lang}/{COVER}#lab=")
    tab.wait_for_function("copied => location.href === copied", arg=copied)  # the address says the same
    other, again = open_lab(visit, lang, copied.split("#lab=")[1])
    assert again.locator(".mha-lab-whence").inner_text() == lab.locator(".mha-lab-whence").inner_text()
    assert control(again, "sentence").input_value() == "one two three one"
    assert control(again, "axis").is_checked()
    other.evaluate("location.hash = '#contents'")  # an ordinary anchor leaves the lab alone
    assert again.locator(".mha-lab-whence").inner_text() == lab.locator(".mha-lab-whence").inner_text()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_link_followed_right_after_a_change_is_not_taken_back(visit, lang):
    tab, lab = open_lab(visit, lang, "step=5")
    control(lab, "h").press("ArrowRight")  # its address comes a quarter of a second later
    asked = worded(lang, "h=2&d=4&step=4&m=causal")
    put(tab, asked)
    tab.wait_for_timeout(400)
    assert tab.evaluate("location.hash") == f"#lab={asked}"
    expect(lab, start(lang, h=2, d_k=4, mask="causal"), 4)


def test_the_copied_code_prints_the_numbers_on_the_screen(visit):
    tab, lab = open_lab(visit, "en", "h=2&d=4&m=causal&step=8&row=2&col=5&x=d_model")
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    control(lab, "python").click()
    code = tab.evaluate("navigator.clipboard.readText()")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code.replace("print(output[0])", "print(output[0].tolist())"), {})
    assert f"✕ {shown(json.loads(printed.getvalue())[2][5])}" in lab.locator(".mha-lab-value").inner_text()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_phone_reader_does_it_all_with_a_thumb(visit, lang):
    tab, lab = open_lab(visit, lang, **PHONE)
    state = start(lang)
    lab.scroll_into_view_if_needed()
    control(lab, "next").tap()
    expect(lab, state, 3)
    stage = lab.locator(".mha-lab-stage").bounding_box()
    swipe = """([x, y, by]) => {
        const stage = document.querySelector('.mha-lab-stage');
        const touch = {pointerType: 'touch', clientY: y, bubbles: true};
        stage.dispatchEvent(new PointerEvent('pointerdown', {...touch, clientX: x}));
        stage.dispatchEvent(new PointerEvent('pointerup', {...touch, clientX: x + by}));
    }"""
    tab.evaluate(swipe, [stage["x"] + 200, stage["y"] + 100, -120])
    expect(lab, state, 4)
    tab.evaluate(swipe, [stage["x"] + 100, stage["y"] + 100, 120])
    expect(lab, state, 3)
    assert not control(lab, "mask").is_visible()
    control(lab, "more").tap()
    control(lab, "scale").tap()
    control(lab, "mask").select_option("causal")
    control(lab, "more").tap()
    control(lab, "next").tap()
    state |= {"scale": False, "mask": "causal"}
    expect(lab, state, 4)
    lab.locator(".mha-lab-stage").evaluate("stage => stage.scrollIntoView()")
    box = lab.get_by_role("gridcell").first.bounding_box()
    tab.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 2.5 * box["height"])
    expect(lab, state, 4, (0, 2, 0))
    lab.get_by_role("radio").nth(1).tap()
    expect(lab, state, 4, (1, 2, 0))


# The words that the canvas shows, with where they stand and the ink's box; a picture begins with an empty canvas
WRITTEN = """() => {
    const pen = CanvasRenderingContext2D.prototype, stage = '.mha-lab-stage canvas', { fillText, clearRect } = pen;
    window.written = [], window.boxes = [];
    pen.clearRect = function (...box) {
        if (this.canvas.matches(stage)) window.written = [], window.boxes = [];
        clearRect.apply(this, box);
    };
    pen.fillText = function (...word) {
        if (this.canvas.matches(stage)) {
            const [text, x, y] = word, ink = this.measureText(text);
            window.written.push(word);
            window.boxes.push([x - ink.actualBoundingBoxLeft, y - ink.actualBoundingBoxAscent,
                               x + ink.actualBoundingBoxRight, y + ink.actualBoundingBoxDescent]);
        }
        fillText.apply(this, word);
    };
}"""


def written(tab):
    """What the picture has written on it, once it is painted: [text, x, y]."""
    return tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(written))))")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_phone_shows_the_matrix_that_made_the_tensor_in_hand_and_a_touch_tells_its_numbers(visit, lang):
    tab, lab = open_lab(visit, lang, "step=1", **PHONE)
    attention, _ = lab_model(SENTENCE[lang], 4, 8)
    tab.evaluate(WRITTEN)
    stage = lab.locator(".mha-lab-stage")
    for step, name, at in ((1, "K", 1), (1, "V", 2), (1, "Q", 0), (8, "O", 0)):
        control(lab, "step").fill(str(step))
        lab.get_by_role("gridcell").nth(at).focus()
        texts = written(tab)
        assert [text for text, _, _ in texts if text.startswith("W_")] == [f"W_{name}"]
        x, y = next(place for text, *place in texts if text.startswith("W_"))
        stage.evaluate("stage => stage.scrollIntoView()")
        box = stage.bounding_box()
        tab.touchscreen.tap(box["x"] + x + 2, box["y"] + y + 12)  # the title stands over the first cell
        W = getattr(attention, f"W_{name}").weight.T
        told = lab.locator(".mha-lab-whence").inner_text()
        row, column = map(int, re.match(rf"W_{name}\[(\d+), (\d+)\]", told).groups())
        assert value(lab) == shown(W[row, column].item())
        assert lab.locator(".mha-lab-bubble").inner_text() == value(lab)


LONG = {
    "zh": "国破山河在城春草木深感时",
    "en": "The+extraordinary+mountaineers+remembered+their+grandmother+yesterday&u=words",
}
# The words of a picture that leave it or run into another; boxes are rounded outwards, to whole pixels
TANGLED = """() => {
    const { clientWidth, clientHeight } = document.querySelector('.mha-lab-stage canvas');
    const shared = (a, b, i) => Math.min(a[i + 2], b[i + 2]) - Math.max(a[i], b[i]);
    const meet = (a, b) => shared(a, b, 0) > 1 && shared(a, b, 1) > 2.5;
    const leaves = ([x0, y0, x1, y1]) => x0 < -1 || y0 < -1 || x1 > clientWidth + 1 || y1 > clientHeight + 1;
    return written.filter((_, i) => leaves(boxes[i]) || boxes.some((box, j) => i !== j && meet(box, boxes[i])));
}"""


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_two_words_of_a_picture_run_into_each_other_and_none_leaves_it(visit, lang, options):
    tab, lab = open_lab(visit, lang, **options)
    tab.evaluate(WRITTEN)
    for address in (
        "h=3&d=4&x=reshape",
        "h=3&d=4&x=transpose",
        "h=8&d=1&x=reshape.axis&m=causal",
        "h=8&d=32",
        "h=1&d=4",
    ):
        for sentence in ("+".join(SENTENCE[lang]) + "&u=words", LONG[lang]):
            put(tab, f"{address}&t={sentence}")
            for step in range(9):
                control(lab, "step").fill(str(step))
                assert written(tab)
                assert tab.evaluate(TANGLED) == [], (address, sentence, step)


def lines_of_numbers(texts):
    """The numbers that a picture shows, line by line from the top, each line from the left."""
    lines = {}
    for text, x, y in texts:
        if re.fullmatch(r"\N{MINUS SIGN}?\d*\.?\d+", text):
            lines.setdefault(round(y), []).append((x, text.replace("\N{MINUS SIGN}", "-")))
    return [[text for _, text in sorted(line)] for _, line in sorted(lines.items())]


def rounds_to(value, text):
    """Whether the text is this number, to as many places as it has; a bare 0 is less than half a tenth."""
    return abs(float(text) - value) <= 0.5 * 10 ** -max(len(text.partition(".")[2]), 1) + 1e-9


# What stands in the picture of a step, from the top; the matrices of one line stand side by side
PICTURED = (
    ["X_Q"],
    ["W_Q W_K W_V", "X_Q Q K V"],
    ["Q_heads", "K_heads", "V_heads"],
    ["raw"],
    ["raw scores"],
    ["scores weights entropy"],
    ["V_heads", "weights heads"],
    ["heads", "concat"],
    ["W_O", "concat output"],
)


@pytest.mark.parametrize("step", range(9))
@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_number_in_a_cell_is_mhas(visit, lang, step):
    h, d_k = (2, 4) if step in range(3, 7) else (1, 4 if step == 1 else 8)  # so that the cells have room for numbers
    tab, lab = open_lab(visit, lang, f"h={h}&d={d_k}&m=causal&head={h - 1}&step={step}")
    tab.evaluate(WRITTEN)
    control(lab, "roll").click()
    lines = iter(lines_of_numbers(written(tab)))
    T = tensors(start(lang, h=h, d_k=d_k, mask="causal", seed=1))
    T["entropy"] = -(T["weights"] * T["weights"].clamp_min(1e-300).log()).sum(-1, keepdim=True)

    def rows(name):
        matrix = T[name][h - 1] if T[name].dim() == 3 else T[name]
        pairs = name in ("raw", "scores", "weights")  # those that are masked show no number
        return [row[: r + 1] if pairs else row for r, row in enumerate(matrix.tolist())]

    for beside in PICTURED[step]:
        for parts in zip(*map(rows, beside.split()), strict=True):
            row = [value for part in parts for value in part]
            shown = (line for line in lines if len(line) >= len(row))  # the small heads stand to the right
            assert any(all(map(rounds_to, row, line)) for line in shown), (beside, row)


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_entropy_of_each_row_stands_beside_it_for_every_head(visit, lang, options):
    tab, lab = open_lab(visit, lang, "step=5&h=3", **options)
    tab.evaluate(WRITTEN)
    control(lab, "h").press("ArrowRight")
    texts = [text for text, _, _ in written(tab)]
    A = tensors(start(lang))["weights"]
    H = [[f"{row:.2f}" for row in head] for head in -(A * A.clamp_min(1e-300).log()).sum(-1)]
    assert texts.count("熵" if lang == "zh" else "entropy") == 1
    for head in H:
        assert set(head) <= set(texts)
    assert f"= {H[0][0]}" in lab.locator(".mha-lab-sum").last.inner_text()
    assert f"{H[0][0]}" in lab.get_by_role("gridcell").first.get_attribute("aria-label")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_overflows_on_a_phone_and_every_target_is_large_enough(visit, lang):
    tab, lab = open_lab(visit, lang, "h=8&x=axis&m=padding&t=" + "+".join(["word"] * 12) + "&u=words", **PHONE)
    control(lab, "more").tap()
    for step in range(9):
        control(lab, "step").fill(str(step))
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = """e => [...e.querySelectorAll('button, select, input[type=text], input[type=range], label')]
        .filter(x => x.offsetParent).map(x => [x, x.getBoundingClientRect()])
        .map(([x, r]) => [x.textContent || x.dataset.control, r.width, r.height, r.left, r.right])"""
    for name, width, height, left, right in lab.evaluate(sizes):
        assert height >= 44, f"{name}: {height} px high"
        assert width >= 44, f"{name}: {width} px wide"
        assert left >= 0, name
        assert right <= 390, name


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_axe_finds_nothing_in_the_lab(visit, lang, scheme):
    options = PHONE if (lang, scheme) in (("zh", "dark"), ("en", "light")) else {}
    tab, lab = open_lab(visit, lang, "step=5&m=causal&x=late", color_scheme=scheme, **options)
    for step in (1, 5, 8):
        control(lab, "step").fill(str(step))
        found = (
            Axe()
            .run(tab, context="figure.mha-lab", options={"preload": False, "resultTypes": ["violations"]})
            .response["violations"]
        )
        assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found] == []


def test_the_picture_follows_the_pages_theme(visit):
    tab, _ = open_lab(visit, "en", "step=5")
    pixel = "document.querySelector('.mha-lab-stage canvas').toDataURL()"
    light = tab.evaluate(pixel)
    tab.evaluate("document.documentElement.dataset.theme = 'dark'")
    tab.wait_for_function(f"before => {pixel} !== before", arg=light)
    assert tab.evaluate(pixel) != light


def test_the_pieces_travel_between_steps_unless_the_reader_wants_no_motion(visit):
    tab, lab = open_lab(visit, "en", "step=1", reduced_motion="no-preference")
    picture = "document.querySelector('.mha-lab-stage canvas').toDataURL()"
    tab.evaluate("""() => {
        const lab = document.querySelector('.mha-lab');
        window.moved = new Promise(done => {
            new MutationObserver(() => lab.dataset.moving && done(true)).observe(lab, {attributes: true});
        });
    }""")
    control(lab, "next").click()
    assert tab.evaluate("() => moved")
    tab.wait_for_function("() => !document.querySelector('.mha-lab').dataset.moving")
    split = tab.evaluate(picture)
    seen = []
    for between in ("1.2", "1.6"):  # held there by a finger on the slider
        control(lab, "step").evaluate("(s, at) => { s.value = at; s.dispatchEvent(new Event('input')) }", between)
        tab.wait_for_timeout(60)
        seen.append(tab.evaluate(picture))
    assert len({split, *seen}) == 3
    still, calm = open_lab(visit, "en", "step=1")
    control(calm, "next").click()
    assert still.evaluate("document.querySelector('.mha-lab').dataset.moving === undefined")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_broken_split_names_the_token_that_each_row_of_each_head_came_from(visit, lang):
    h, d_k, tokens = 3, 4, SENTENCE[lang]
    tab, lab = open_lab(visit, lang, f"h={h}&d={d_k}&step=2&x=reshape")
    tab.evaluate(WRITTEN)
    control(lab, "roll").click()
    lines = {}
    for text, x, y in written(tab):
        if text in tokens:
            lines.setdefault(round(y), []).append((x, text))
    beside = [[text for _, text in sorted(line)] for _, line in sorted(lines.items())]
    numbers = torch.arange(len(tokens)).repeat_interleave(h * d_k)  # each number says whose it is
    came = numbers.view(h, len(tokens), d_k)[:, :, 0].T.tolist()
    rows = [[token] * h + [tokens[i] for i in row] for token, row in zip(tokens, came, strict=True)]
    assert beside == rows * 3  # Q, K and V


def test_pieces_on_their_way_are_named_by_the_code_that_moves_them(visit):
    address = "h=3&d=4&step=2&x=reshape.transpose"
    tab, lab = open_lab(visit, "en", address, reduced_motion="no-preference")
    tab.evaluate(WRITTEN)
    for between, right, wrong in (
        ("1.1", "view → (5, 3, 4)", "view → (3, 5, 4)"),
        ("1.6", "transpose → (3, 5, 4)", "view → (3, 5, 4)"),
        ("6.4", "transpose → (5, 3, 4)", "view → (5, 12)"),
        ("6.9", "view → (5, 12)", "view → (5, 12)"),
    ):
        control(lab, "step").evaluate("(s, at) => { s.value = at; s.dispatchEvent(new Event('input')) }", between)
        assert [text for text, _, _ in written(tab) if "→" in text] == [right, wrong]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_without_javascript_a_still_with_a_caption_stands_in_its_place(visit, lang):
    tab = visit(f"{lang}/{COVER}", java_script_enabled=False)
    figure = tab.locator("figure.mha-lab")
    assert figure.locator("img").is_visible()
    assert len(figure.locator("img").get_attribute("alt")) > 40
    assert "JavaScript" in figure.locator("figcaption").inner_text()
    assert figure.bounding_box()["height"] < 900


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_does_not_jump_when_the_lab_comes_to_life_or_moves_on(visit, lang, options):
    tab, lab = open_lab(visit, lang, **options)
    shift = """() => new Promise(done => { let sum = 0;
        const mine = entry => entry.sources.some(source => source.node?.closest?.('article'));
        const add = list => list.getEntries().filter(mine).forEach(entry => { sum += entry.value; });
        new PerformanceObserver(add).observe({type: 'layout-shift', buffered: true});
        setTimeout(() => done(sum), 200); })"""
    assert tab.evaluate(shift) < 0.05
    for address in ("h=4", "h=8&m=causal&x=axis", "w=trained&h=4&head=1"):
        put(tab, worded(lang, address))
        heights = set()
        for step in range(9):
            control(lab, "step").fill(str(step))
            heights.add(lab.bounding_box()["height"])
        assert len(heights) == 1, address


ASKED = "performance.getEntriesByType('resource').map(entry => entry.name.split('/').pop().split('?')[0])"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_page_asks_for_the_lab_only_where_it_has_one_and_for_trained_weights_only_when_they_are_wanted(visit, lang):
    files = re.compile(r"^lab\b")
    assert [name for name in visit(f"{lang}/chapters/glossary.html").evaluate(ASKED) if files.match(name)] == []
    tab, lab = open_lab(visit, lang)
    assert [name for name in tab.evaluate(ASKED) if files.match(name)] == ["lab-page.js"]
    control(lab, "weights").select_option("trained")
    tab.wait_for_function("() => document.querySelector('.mha-lab [data-control=h]').disabled")
    assert [name for name in tab.evaluate(ASKED) if files.match(name)] == ["lab-page.js", "lab-trained.js"]


def come(tab, waiting, **instead):
    tab.wait_for_timeout(300)  # by then the address is written
    let_pass(tab, waiting, **instead)
    if not instead:
        tab.wait_for_function("() => self.mhaLabTrained")


SAYS = {
    "waiting": {"zh": "正在取训练好的权重", "en": "Fetching the trained weights"},
    "failed": {"zh": "取不到训练好的权重", "en": "could not be loaded"},
}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_the_reader_does_while_the_trained_weights_are_on_their_way_holds(visit, lang):
    tab, lab = open_lab(visit, lang, "step=5&h=3")
    waiting = hold_back(tab, "**/lab-trained.js*")
    status = lab.locator(".mha-lab-status")
    control(lab, "weights").select_option("trained")
    control(lab, "step").fill("6")
    control(lab, "mask").select_option("causal")
    expect(lab, start(lang, h=3, mask="causal"), 6)
    assert SAYS["waiting"][lang] in status.inner_text()
    follow(tab, worded(lang, "w=trained&m=padding&step=5"))
    control(lab, "step").fill("7")
    come(tab, waiting)
    arrive(tab, "w=trained")
    expect(lab, start(lang, weights="trained", mask="padding"), 7)
    assert {"w=trained", "m=padding", "step=7"} <= set(tab.url.split("#lab=")[1].split("&"))
    assert not status.inner_text()


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("instead", ["weights", "reset", "link"])
def test_trained_weights_that_come_after_another_wish_change_nothing(visit, lang, instead):
    tab, lab = open_lab(visit, lang)
    waiting = hold_back(tab, "**/lab-trained.js*")
    control(lab, "weights").select_option("trained")
    if instead == "weights":
        control(lab, "weights").select_option("identity")
        wanted = start(lang, weights="identity")
    elif instead == "reset":
        control(lab, "reset").click()
        wanted = start(lang)
    else:
        follow(tab, worded(lang, "h=2&m=causal"))
        wanted = start(lang, h=2, mask="causal")
    step = int(control(lab, "step").input_value())
    come(tab, waiting)
    expect(lab, wanted, step)
    assert "w=trained" not in tab.url
    assert SAYS["waiting"][lang] not in lab.locator(".mha-lab-status").inner_text()
    follow(tab, worded(lang, "w=trained&step=3"))  # they are here now
    expect(lab, start(lang, weights="trained"), 3)
    assert not waiting


@pytest.mark.parametrize("lang", LANGUAGES)
def test_trained_weights_that_do_not_come_leave_the_lab_as_it_is_and_can_be_asked_for_again(visit, lang):
    tab, lab = open_lab(visit, lang, "step=5&h=3")
    waiting = hold_back(tab, "**/lab-trained.js*")
    control(lab, "weights").select_option("trained")
    control(lab, "step").fill("6")
    come(tab, waiting, body="")
    lab.locator(".mha-lab-status", has_text=SAYS["failed"][lang]).wait_for()
    expect(lab, start(lang, h=3), 6)
    assert control(lab, "weights").input_value() == "random"
    tab.wait_for_timeout(300)
    assert "w=trained" not in tab.url
    control(lab, "weights").select_option("trained")
    come(tab, waiting)
    arrive(tab, "w=trained")
    expect(lab, start(lang, weights="trained"), 6)


def test_script_and_style_weigh_at_most_60_kb_and_the_data_120(address, tmp_path):
    sizes = {file.name: file.stat().st_size for file in write(tmp_path).iterdir()}
    assert sizes.keys() == {SCRIPT, STYLE, TRAINED}
    most = 60_000 if minify else 90_000  # where there is no minifier the page is longer, see book/lab.py
    assert sizes[SCRIPT] + sizes[STYLE] <= most
    assert sizes[TRAINED] <= 120_000
    served = urllib.request.urlopen(f"{address}/en/_static/{SCRIPT}").read()
    assert served == (tmp_path / SCRIPT).read_bytes()


MOVE = """([name, value]) => new Promise(done => {
    const lab = document.querySelector('.mha-lab'), slider = lab.querySelector(`[data-control=${name}]`);
    const before = lab.dataset.painted, began = performance.now();
    slider.value = value;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    requestAnimationFrame(() => { // then, once painted:
        const channel = new MessageChannel();
        channel.port1.onmessage = () => done([performance.now() - began, lab.dataset.painted - before]);
        channel.port2.postMessage(0);
    });
})"""
SLIDES = [("d_k", stop) for stop in (5, 0, 4, 1, 3, 2)] + [("h", 7), ("h", 8)]


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("step", [1, 5, 8])  # 1 and 8 show weight matrices, of up to 256 × 256
def test_a_slider_repaints_in_time_at_8_heads_and_12_tokens(visit, step, options):
    """50 ms, and 100 ms where the processor is four times slower: there, its work is counted, not the clock, because
    the machine that runs the tests may be busy with something else. The clock counts in the calmest of eight rounds."""
    tab, _ = open_lab(visit, "zh", f"h=8&step={step}&t=国破山河在城春草木深感时", **options)
    devtools = tab.context.new_cdp_session(tab)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def work():
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration") * 1000

    def round_of(slides):
        waits, works = [], []
        for slide in slides:
            before = work()
            wait, pictures = tab.evaluate(MOVE, slide)
            assert pictures >= 1
            waits.append(wait)
            works.append(work() - before)
        return max(waits), works

    round_of(SLIDES)  # what is compiled once is not the slider's work
    rounds = [round_of(SLIDES * 2) for _ in range(8)]
    works = sorted(ms for _, works in rounds for ms in works)
    assert works[len(works) * 95 // 100] * 4 <= 100
    assert min(slowest for slowest, _ in rounds) <= 50


def test_the_map_of_the_steps_follows_once_the_picture_rests(visit):
    tab, lab = open_lab(visit, "en", "step=5")
    thumb = "document.querySelectorAll('.mha-lab-map canvas')[5].toDataURL()"
    before = tab.evaluate(thumb)
    control(lab, "mask").select_option("causal")
    tab.wait_for_function(f"before => {thumb} !== before", arg=before)
    assert tab.evaluate(thumb) != before
