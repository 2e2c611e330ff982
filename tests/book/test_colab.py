"""Colab's versions, the watch over them, and the eye for what Colab's front end could not show."""

import datetime
import re

import nbformat
import pytest

from book.colab import run
from book.colab import versions as watch
from book.colab.run import STATE, VIEW, faults, widget_faults
from book.colab.versions import Versions, drift, versions

KNOWN = Versions(datetime.date(2026, 8, 31), "3.13", {"ipywidgets": "7.7.1", "numpy": "2.1.*", "torch": "2.11.*"})
FREEZE = (
    "# made by Colab\nipywidgets==7.7.1\nnumpy==2.1.3\nipython_genutils==0.2\n"
    "torch @ https://download.example/whl/cu130/torch-2.11.0%2Bcu130-cp313-cp313-linux_x86_64.whl#sha256=ab\n"
)
SYSTEM = "Ubuntu 24.04 LTS\nPython 3.13.2\nR version 4.5.1"


def test_the_file_names_a_date_a_python_and_every_package_that_the_book_leans_on():
    known = versions()
    assert known.read > datetime.date(2026, 1, 1)
    assert re.fullmatch(r"3\.\d+", known.python)
    assert {"anywidget", "ipykernel", "ipython", "ipywidgets", "matplotlib", "numpy", "torch"} == set(known.packages)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("# read: 2026-08-31\n# python: 3.13\nnumpy>=2", "a line must read name==version, got 'numpy>=2'"),
        ("# python: 3.13\nnumpy==2.1", 'must hold a line "# read: …"'),
        ("# read: 2026-08-31\nnumpy==2.1", 'must hold a line "# python: …"'),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(tmp_path, text, rule):
    (tmp_path / "versions.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(rule)):
        versions(tmp_path / "versions.txt")


def test_a_colab_that_is_as_we_know_it_has_not_drifted():
    assert drift(KNOWN, FREEZE, SYSTEM) == []


def test_each_version_that_moved_is_named_with_both_values():
    moved = FREEZE.replace("7.7.1", "8.1.5").replace("torch-2.11.0", "torch-2.12.1").replace("numpy==2.1.3\n", "")
    assert drift(KNOWN, moved, SYSTEM.replace("3.13.2", "3.14.0")) == [
        "python: the file says 3.13, Colab has 3.14",
        "ipywidgets: the file says 7.7.1, Colab has 8.1.5",
        "numpy: the file says 2.1.*, Colab has nothing",
        "torch: the file says 2.11.*, Colab has 2.12.1",
    ]


@pytest.fixture
def colabs_lists(tmp_path, monkeypatch):
    """Write Colab's lists where the watch looks for them."""

    def write(freeze, days):
        (tmp_path / "pip-freeze.txt").write_text(freeze, encoding="utf-8")
        (tmp_path / "os-info.txt").write_text(SYSTEM, encoding="utf-8")
        monkeypatch.setenv("COLAB_INFO", f"{tmp_path.as_uri()}/")
        looked = datetime.date.today() - datetime.timedelta(days=days)
        monkeypatch.setattr(watch, "versions", lambda: KNOWN._replace(read=looked))

    return write


def test_the_watch_is_content_while_nothing_moved(colabs_lists, capsys):
    colabs_lists(FREEZE, days=5)
    watch.main()
    assert "5 days ago" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("freeze", "days", "complaint"),
    [(FREEZE.replace("7.7.1", "8.0"), 5, "Colab has 8.0"), (FREEZE, 121, "nobody has looked for 121 days")],
)
def test_the_watch_fails_when_colab_moved_or_nobody_looked_for_long(colabs_lists, freeze, days, complaint):
    colabs_lists(freeze, days)
    with pytest.raises(SystemExit, match=complaint):
        watch.main()


def test_a_watch_that_reaches_nobody_fails_instead_of_passing(monkeypatch, tmp_path):
    monkeypatch.setenv("COLAB_INFO", f"{tmp_path.as_uri()}/")
    with pytest.raises(SystemExit, match="nothing was compared"):
        watch.main()


# --- what the front end needs --------------------------------------------------------------------


def model(**changes):
    sound = {"model_name": "HTMLModel", "model_module": "@jupyter-widgets/controls", "model_module_version": "1.5.0",
             "state": {}}  # fmt: skip
    return {"id": sound | changes}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"model_module_version": "2.0.0"}, "@jupyter-widgets/controls 2.0.0, Colab shows 1.5.0"),
        ({"model_module": "my-widgets"}, "my-widgets: Colab does not know this module"),
        ({"model_name": ""}, "a widget without a model name"),
        ({"buffers": [{"data": "AA=="}]}, "HTMLModel: binary traits, which Colab drops"),
        ({"model_module": "anywidget", "model_name": "AnyModel"}, "AnyModel: an anywidget without its JavaScript"),
        ({"state": {"children": ["IPY_MODEL_id", "IPY_MODEL_x"]}}, "HTMLModel: made of a widget that is not stored, x"),
    ],
)
def test_a_widget_that_colab_could_not_show_is_named(changes, fault):
    assert list(widget_faults(model())) == []
    assert list(widget_faults(model(**changes))) == [fault]


def ran(source, output, state=None):
    v4 = nbformat.v4
    cells = [v4.new_code_cell("first"), v4.new_code_cell(source, outputs=[output] if output else [])]
    return v4.new_notebook(cells=cells, metadata={"widgets": {STATE: {"state": state or {}}}})


def stored(source, text):
    v4 = nbformat.v4
    outputs = [v4.new_output("stream", text=text)] if text else []
    return v4.new_notebook(cells=[v4.new_code_cell(source, outputs=outputs)])


def live(identity):
    return nbformat.v4.new_output("display_data", {VIEW: {"model_id": identity}, "text/plain": "explore(…)"})


def test_a_live_figure_with_its_state_has_no_fault():
    assert list(faults(ran("explore(f)", live("id"), model()), stored("explore(f)", ""))) == []


def test_a_live_figure_without_state_or_without_a_view_is_found():
    assert list(faults(ran("explore(f)", live("other"), model()), stored("explore(f)", ""))) == [
        "code cell 1: a live figure without stored state"
    ]
    assert list(faults(ran("explore(f)", None), stored("explore(f)", ""))) == [
        "code cell 1: explore showed no live figure"
    ]


def test_what_is_printed_otherwise_than_stored_or_on_stderr_is_found():
    new = nbformat.v4.new_output
    assert list(faults(ran("f()", new("stream", text="1\n")), stored("f()", "2\n"))) == [
        "code cell 1: printed '1\\n', the chapter stores '2\\n'"
    ]
    warned = list(faults(ran("f()", new("stream", name="stderr", text="Warning")), stored("f()", "")))
    assert warned[0] == "code cell 1: a message on stderr: 'Warning'"


def test_colabs_torch_is_asked_for_first_then_the_locks_then_any():
    first, lock, last = run.torches("2.11.*")
    assert (first, last) == ("torch==2.11.*", "torch>=2.4")
    assert lock in (run.ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
