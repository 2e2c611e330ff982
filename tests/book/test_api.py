"""The API page says what the docstrings say, in both languages, and nothing public is left out."""

import inspect
import re
from pathlib import Path

import nbformat
import pytest

import mha
from book import api
from book.check import CJK
from book.languages import select
from mha import KVCache, MultiHeadAttention, steps

PAGE = nbformat.read(Path(mha.__file__).parent.parent / "chapters" / "api.ipynb", as_version=4)
NAMES = [name for cell in PAGE.cells for name in api.names(cell.source)]


def public(owner):
    home = owner.__name__ if inspect.ismodule(owner) else owner.__module__
    functions = {name: found for name, found in vars(owner).items() if inspect.isfunction(found)}
    return [name for name, found in functions.items() if found.__module__ == home and not name.startswith("_")]


def test_everything_public_has_an_entry():
    offered = [*mha.__all__, *(f"steps.{name}" for name in public(steps)), "MultiHeadAttention.forward"]
    offered += [f"KVCache.{name}" for name in public(KVCache)]
    offered += [
        "widgets.explore",
        "widgets.lab",
        "widgets.lab_model",
        "reference.attention",
        "reference.multi_head_attention",
    ]
    assert set(offered) <= set(NAMES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_stands_in_both_languages_under_one_anchor(name):
    zh, en = api.entry(name, "zh"), api.entry(name, "en")
    assert zh.splitlines()[:3] == en.splitlines()[:3]
    assert api.signature(name) in zh
    assert api.signature(name) in en
    assert re.search(CJK, zh.replace(api.signature(name), ""))
    words = re.sub(r"`[^`]*`", "", en.replace(api.english(name)[1], ""))  # code may hold a Chinese sentence
    assert re.search(CJK, words) is None


@pytest.mark.parametrize("name", [name for name in NAMES if not inspect.isclass(api.find(name))])
def test_every_function_shows_an_example_here_or_in_its_class(name):
    owner = name.rpartition(".")[0]
    of_class = api.english(owner)[1] if owner and inspect.isclass(api.find(owner)) else ""
    assert ">>>" in api.english(name)[1] or name.rpartition(".")[2] in of_class or name.endswith("forward")


def test_the_page_is_filled_in_for_a_reader():
    for lang, words in (
        ("zh", "布尔或 0/1 整数，能广播到 (B, h, L, S)"),
        ("en", "boolean or 0/1 integer, broadcastable to"),
    ):
        text = "\n".join(cell.source for cell in select(PAGE, lang).cells)
        assert "{mha}" not in text
        assert words in text
        assert "(api-steps-split-heads)=\n### `split_heads`" in text
        assert ">>> merge_heads" not in text.replace("torch.equal(merge_heads", "")
        assert "True\n```" in text


def test_a_signature_fits_the_column_and_leaves_self_out():
    assert api.signature("steps.split_heads") == "split_heads(X: Tensor, h: int) -> Tensor"
    assert api.signature("MultiHeadAttention").splitlines()[:3] == [
        "MultiHeadAttention(",
        "    d_model: int,",
        "    h: int,",
    ]
    assert "    weights: Tensor  # (B, h, L, S) step 3: softmax(scores)" in api.signature("Trace")
    assert max(len(line) for name in NAMES if name != "Trace" for line in api.signature(name).splitlines()) <= api.WIDE
    assert not re.search(r"\bself\b", "".join(map(api.signature, NAMES)))


def test_an_entry_that_is_missing_is_refused_with_what_to_write(tmp_path, monkeypatch):
    monkeypatch.setattr(api, "ZH", tmp_path / "api.zh.md")
    api.ZH.write_text("## steps.project 00000000\n\n旧的\n", encoding="utf-8")
    wanted = api.digest_of("steps.project")
    with pytest.raises(LookupError, match=rf"older docstring \(00000000\); write it as “## steps.project {wanted}”"):
        api.entry("steps.project", "zh")
    with pytest.raises(LookupError, match=r"the entry steps.output is missing; write it as “## steps.output "):
        api.entry("steps.output", "zh")
    api.ZH.write_text(f"## steps.project {wanted}\n\n新的\n", encoding="utf-8")
    assert "新的" in api.entry("steps.project", "zh")


def test_a_name_that_is_nothing_is_refused():
    with pytest.raises(LookupError, match=r"^there is no mha.steps.nothing$"):
        api.expand("```{mha} steps.nothing\n```", "en")
    with pytest.raises(LookupError, match=r"^mha.__version__ has no docstring|^there is no"):
        api.expand("```{mha} nowhere\n```", "en")


def test_methods_are_named_with_their_class():
    assert api.find("MultiHeadAttention.trace") is MultiHeadAttention.trace
    assert api.label("MultiHeadAttention.trace") == "api-multiheadattention-trace"
