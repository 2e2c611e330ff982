"""Problem sets: solved they earn every point, handed out none, and each common mistake is caught where it should be."""

import re

import nbformat
import pytest

from book.check import problems
from book.course import COURSE, build, main, release
from book.languages import LANGUAGES, select
from book.notebooks import read
from mha import MultiHeadAttention

SETS = sorted(COURSE.glob("*.ipynb"))
FIVE = read(COURSE / "five-steps.ipynb")


def grader(cell):
    return cell.metadata.get("nbgrader", {})


def earned(notebook, **answers):
    """name of a check → whether it passes, with answers in place of the solutions of these names."""
    names, passed = {}, {}
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        name = grader(cell)["grade_id"]
        try:
            exec(answers.get(name, cell.source), names)
            error = None
        except (AssertionError, NotImplementedError, RuntimeError, TypeError, ValueError) as reason:
            error = reason
        if "points" in grader(cell):
            passed[name] = error is None
        else:
            assert error is None, name
    return passed


CHECKS = [grader(cell)["grade_id"] for cell in FIVE.cells if cell.cell_type == "code" and "points" in grader(cell)]


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_both_languages_of_a_problem_set_say_the_same(path):
    faults = problems(read(path), path.name)
    assert [fault for fault in faults if not re.search("execution count|'nbgrader'", fault)] == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_solutions_earn_every_point(lang):
    assert earned(select(FIVE, lang)) == dict.fromkeys(CHECKS, True)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_students_receive_earns_no_point_and_gives_nothing_away(lang):
    source = select(FIVE, lang)
    handed_out = release(source)
    assert earned(handed_out) == dict.fromkeys(CHECKS, False)
    text = "\n".join(cell.source for cell in handed_out.cells)
    assert not re.search("SOLUTION|HIDDEN", text)
    assert "scaled_dot_product_attention" not in text
    assert [cell.metadata for cell in handed_out.cells] == [cell.metadata for cell in source.cells]
    assert "SOLUTION" in "\n".join(cell.source for cell in source.cells)  # the source stays whole


# name of the solution, what a student wrote, the checks it fails. An attention that uses a wrong step fails, too.
WRONG = {
    "view alone": (
        "split",
        "def split_heads(X, h): return X.view(X.shape[0], h, X.shape[1], -1)",
        {"split-test", "attention-test"},
    ),
    "columns one by one to the heads": (
        "split",
        "def split_heads(X, h): return X.view(*X.shape[:2], -1, h).permute(0, 3, 1, 2)",
        {"split-test", "attention-test"},
    ),
    "merged without transposing back": (
        "merge",
        "def merge_heads(H): return H.reshape(H.shape[0], H.shape[2], -1)",
        {"merge-test", "attention-test"},
    ),
    "no root": ("scores", "def scores(Q, K): return Q @ K.mT", {"scores-test", "attention-test"}),
    "the root of the model's width": (
        "scores",
        "def scores(Q, K): return Q @ K.mT / math.sqrt(Q.shape[1] * Q.shape[-1])",
        {"scores-test", "attention-test"},
    ),
    "over the columns": (
        "softmax",
        "def softmax(S, allowed=None):\n"
        "    e = (S - S.amax(-2, keepdim=True)).exp() * (1 if allowed is None else allowed)\n"
        "    return e / e.sum(-2, keepdim=True)",
        {"softmax-test", "attention-test"},
    ),
    "overflow": (
        "softmax",
        "def softmax(S, allowed=None):\n"
        "    e = S.exp() * (1 if allowed is None else allowed)\n"
        "    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)",
        {"softmax-test"},
    ),
    "-1e9, so a row without keys gets the mean": (
        "softmax",
        "def softmax(S, allowed=None):\n"
        "    S = S if allowed is None else S.masked_fill(~allowed, -1e9)\n"
        "    e = (S - S.amax(-1, keepdim=True)).exp()\n"
        "    return e / e.sum(-1, keepdim=True)",
        {"softmax-test"},
    ),
    "-inf, so a row without keys gets nan": (
        "softmax",
        "def softmax(S, allowed=None):\n"
        "    S = S if allowed is None else S.masked_fill(~allowed, -math.inf)\n"
        "    e = (S - S.amax(-1, keepdim=True)).exp()\n"
        "    return e / e.sum(-1, keepdim=True)",
        {"softmax-test"},
    ),
    "masked after the softmax": (
        "softmax",
        "def softmax(S, allowed=None):\n"
        "    e = (S - S.amax(-1, keepdim=True)).exp()\n"
        "    return e / e.sum(-1, keepdim=True) * (1 if allowed is None else allowed)",
        {"softmax-test", "attention-test"},
    ),
    "scores changed in place": (
        "softmax",
        "def softmax(S, allowed=None):\n"
        "    S = S if allowed is None else S.masked_fill_(~allowed, -1e30)\n"
        "    e = (S - S.amax(-1, keepdim=True)).exp() * (1 if allowed is None else allowed)\n"
        "    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)",
        {"softmax-test"},
    ),
    "mask forgotten": (
        "attention",
        "def multi_head_attention(X, W_Q, W_K, W_V, W_O, h, allowed=None):\n"
        "    Q, K, V = (split_heads(X @ W, h) for W in (W_Q, W_K, W_V))\n"
        "    return merge_heads(softmax(scores(Q, K)) @ V) @ W_O",
        {"attention-test"},
    ),
    "V taken from K's matrix": (
        "attention",
        "def multi_head_attention(X, W_Q, W_K, W_V, W_O, h, allowed=None):\n"
        "    Q, K, V = (split_heads(X @ W, h) for W in (W_Q, W_K, W_K))\n"
        "    return merge_heads(softmax(scores(Q, K), allowed) @ V) @ W_O",
        {"attention-test"},
    ),
    "one head only": (
        "attention",
        "def multi_head_attention(X, W_Q, W_K, W_V, W_O, h, allowed=None):\n"
        "    Q, K, V = (split_heads(X @ W, 1) for W in (W_Q, W_K, W_V))\n"
        "    return merge_heads(softmax(scores(Q, K), allowed) @ V) @ W_O",
        {"attention-test"},
    ),
    "no biases": ("count", "def parameters(d_model, h, d_k=None, d_v=None): return 4 * d_model**2", {"count-test"}),
    "d_k and d_v forgotten": (
        "count",
        "def parameters(d_model, h, d_k=None, d_v=None): return 4 * d_model**2 + 4 * d_model",
        {"count-test"},
    ),
    "only the shape is looked at": (
        "law",
        "def splits_right(split): return split(torch.zeros(2, 3, 8), 4).shape == (2, 4, 3, 2)",
        {"law-test"},
    ),
    "all zeros tell nothing apart": (
        "law",
        "def splits_right(split):\n"
        "    X = torch.zeros(2, 3, 8)\n"
        "    return bool((split(X, 4) == torch.stack(X.chunk(4, dim=-1), 1)).all())",
        {"law-test"},
    ),
    "one token hides the mistake": (
        "law",
        "def splits_right(split):\n"
        "    X = torch.arange(8).view(1, 1, 8)\n"
        "    return torch.equal(split(X, 4), torch.stack(X.chunk(4, dim=-1), 1))",
        {"law-test"},
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_common_mistake_costs_its_points_and_no_others(mistake):
    name, answer, failed = WRONG[mistake]
    passed = earned(select(FIVE, "en"), **{name: answer})
    assert {check for check in passed if not passed[check]} == failed


def test_the_points_are_those_that_the_headings_promise():
    for lang, pattern in (("zh", r"^## \d .*（(\d) 分）$"), ("en", r"^## \d .*\((\d) points?\)$")):
        chosen = select(FIVE, lang)
        promised = re.findall(pattern, "\n".join(c.source for c in chosen.cells if c.cell_type == "markdown"), re.M)
        given = [grader(cell)["points"] for cell in chosen.cells if "points" in grader(cell)]
        assert list(map(int, promised)) == given
        assert sum(given) == 20
        assert "20" in chosen.cells[0].source


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_graded_cell_has_a_name_of_its_own_and_a_check_is_locked(lang):
    cells = [grader(cell) for cell in select(FIVE, lang).cells if grader(cell)]
    names = [cell["grade_id"] for cell in cells]
    assert len(set(names)) == len(names)
    for cell in cells:
        assert cell["schema_version"] == 3
        assert cell["locked"] == (not cell["solution"])
        assert ("points" in cell) == cell["grade"]


@pytest.mark.parametrize(
    ("sizes", "count"),
    [({}, 1_050_624), ({"d_k": 32}, 787_968), ({"d_v": 16}, 657_024)],
)
def test_the_counts_in_the_checks_are_those_of_mha(sizes, count):
    assert sum(p.numel() for p in MultiHeadAttention(512, 8, **sizes).parameters()) == count
    assert f"{count:_}" in "\n".join(cell.source for cell in FIVE.cells)


@pytest.mark.parametrize("text", ["### BEGIN SOLUTION\nx = 1", "x = 1\n### END HIDDEN TESTS"])
def test_a_marker_without_its_partner_is_refused(text):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text)])
    with pytest.raises(ValueError, match=r"cell 0: '### (BEGIN SOLUTION|END HIDDEN TESTS)' without its partner"):
        release(notebook)


def test_each_language_gets_a_source_and_a_release(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["book.course", "--out", str(tmp_path)])
    main()
    written = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.ipynb"))
    expected = [f"{lang}/{kind}/five-steps/five-steps.ipynb" for lang in ("en", "zh") for kind in ("release", "source")]
    assert written == expected
    assert capsys.readouterr().out.count("course: ") == len(expected)
    for path in build(tmp_path):
        nbformat.validate(nbformat.read(path, as_version=4))
