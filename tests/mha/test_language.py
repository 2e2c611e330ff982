"""The language in which figures speak: what was chosen, else MHA_LANG, else the system's, else English."""

import pytest

import mha
from mha.language import language


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    """No choice and no environment, and afterwards what was there before."""
    monkeypatch.setattr(mha.language, "_chosen", None)
    for name in ("MHA_LANG", "LC_ALL", "LANG"):
        monkeypatch.delenv(name, raising=False)


def test_it_is_english_where_nobody_says_otherwise():
    assert language() == "en"
    assert mha.say("头", "head") == "head"


@pytest.mark.parametrize(("lang", "word"), [("zh", "头"), ("en", "head")])
def test_a_chosen_language_is_spoken(lang, word):
    mha.set_language(lang)
    assert language() == lang
    assert mha.say("头", "head") == word


def test_the_last_choice_holds():
    mha.set_language("zh")
    mha.set_language("en")
    assert mha.say("头", "head") == "head"


@pytest.mark.parametrize(
    ("value", "lang"), [("zh", "zh"), ("en", "en"), ("ZH", "zh"), ("zh_CN.UTF-8", "zh"), ("fr", "en"), ("C", "en")]
)
@pytest.mark.parametrize("name", ["MHA_LANG", "LC_ALL", "LANG"])
def test_the_environment_is_asked(monkeypatch, name, value, lang):
    monkeypatch.setenv(name, value)
    assert language() == lang


def test_mha_lang_comes_before_the_systems_language(monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    monkeypatch.setenv("MHA_LANG", "en")
    assert language() == "en"


def test_lc_all_comes_before_lang(monkeypatch):
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert language() == "zh"


def test_an_empty_variable_says_nothing(monkeypatch):
    monkeypatch.setenv("MHA_LANG", "")
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert language() == "zh"


def test_a_choice_comes_before_the_environment(monkeypatch):
    monkeypatch.setenv("MHA_LANG", "zh")
    mha.set_language("en")
    assert language() == "en"


def test_the_environment_is_read_each_time(monkeypatch):
    monkeypatch.setenv("MHA_LANG", "zh")
    assert mha.say("头", "head") == "头"
    monkeypatch.setenv("MHA_LANG", "en")
    assert mha.say("头", "head") == "head"


def test_a_refused_language_leaves_the_choice_as_it_was():
    mha.set_language("zh")
    with pytest.raises(ValueError, match="got 'fr'"):
        mha.set_language("fr")
    assert language() == "zh"
