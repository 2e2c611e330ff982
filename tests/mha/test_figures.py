"""Every figure speaks the reader's language without a missing glyph, and says what it shows."""

import importlib
import inspect
import logging
import pkgutil
import re
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

import mha.figures
import mha.language
from mha.figures import HEADS, canvas, display, matrix, tell

CJK = re.compile(r"[\u4e00-\u9fff]")


def drawn_without_arguments():
    """Every public figure function of mha.figures.* that can be called as it is."""
    for module in pkgutil.iter_modules(mha.figures.__path__):
        for name, function in vars(importlib.import_module(f"mha.figures.{module.name}")).items():
            if (
                name.startswith("_")
                or not inspect.isfunction(function)
                or not function.__module__.endswith(module.name)
            ):
                continue
            signature = inspect.signature(function)
            required = [p for p in signature.parameters.values() if p.default is p.empty]
            if signature.return_annotation in (Figure, "Figure") and not required:
                yield pytest.param(function, id=f"{module.name}.{name}")


@pytest.fixture
def no_missing_glyph(caplog):
    """A missing glyph is a warning beside mathtext and a log message inside it: both are errors here."""
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, logger="matplotlib"):
        warnings.simplefilter("error")
        yield
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("draw", list(drawn_without_arguments()))
def test_a_figure_has_a_title_and_alt_text_in_the_readers_language(draw, lang, monkeypatch, no_missing_glyph):
    monkeypatch.setattr(mha.language, "_chosen", lang)
    fig = draw()
    assert fig.get_suptitle()
    assert len(display.alt_text(fig)) > 20
    assert bool(CJK.search(re.sub("[国破山河在]", "", display.alt_text(fig)))) == (lang == "zh")
    assert len(display.png(fig)) > 1000
    assert display.size(fig)[0] == 560, "as wide as the page's column"


@pytest.mark.parametrize("text", ["注意力 $d_k = 64$，−0.5 × √2 ≤ 3 … ✓ ✕", "Kᵀ, h₀ → W_O · ∑ “引号”"])
def test_chinese_and_signs_are_drawn_beside_formulas(text, no_missing_glyph):
    fig = canvas()
    fig.text(0.1, 0.5, text)
    assert len(display.png(fig)) > 1000


def test_the_watch_for_missing_glyphs_can_fail(caplog):
    fig = canvas()
    fig.text(0.1, 0.5, "\U00013000")  # a hieroglyph, in no font of ours
    with pytest.warns(UserWarning, match="missing from font"):
        display.png(fig)


def test_a_figure_without_a_label_is_described_by_its_title():
    fig = canvas()
    fig.suptitle("half the rows are dead")
    assert display.alt_text(fig) == "half the rows are dead"
    assert display.alt_text(tell(fig, "title", "what it shows")) == "what it shows"


def test_a_matrix_shows_its_numbers_and_leaves_masked_cells_empty_and_hatched():
    fig = canvas()
    ax = fig.add_subplot()
    matrix(ax, np.array([[1.0, -2.0], [3.0, 4.0]]), numbers="{:.0f}", masked=np.array([[False, True], [False, False]]))
    assert [text.get_text() for text in ax.texts] == ["1", "3", "4"]
    assert [bool(patch.get_hatch()) for patch in ax.patches].count(True) == 1
    matrix(ax, np.array([[-2.0]]), numbers="{:.0f}")
    assert ax.texts[-1].get_text() == "\N{MINUS SIGN}2"


def test_neighbouring_heads_never_share_a_colour():
    assert len(set(HEADS)) == 8
