"""Stored notebooks: the same bytes for the same content."""

import copy

import nbformat
import pytest

from book.notebooks import keep_timings, normalise

v4 = nbformat.v4


@pytest.fixture
def notebook():
    cell = v4.new_code_cell(
        "print(1)",
        metadata={"tags": ["timing"], "execution": {"iopub.status.busy": "now"}},
        outputs=[
            v4.new_output("stream", text="1\n"),
            v4.new_output("stream", text="2\n"),
            v4.new_output(
                "display_data",
                data={"text/plain": "x", "application/vnd.jupyter.widget-view+json": {"model_id": "17"}},
            ),
        ],
    )
    return v4.new_notebook(
        cells=[cell], metadata={"widgets": {"state": {}}, "language_info": {"name": "python", "version": "3.11.7"}}
    )


def test_times_ids_widget_state_and_versions_are_not_stored(notebook):
    stored = nbformat.writes(normalise(notebook))
    for word in ("iopub", '"id"', "widget", "3.11"):
        assert word not in stored
    assert notebook.cells[0].metadata == {"tags": ["timing"]}


def test_what_was_printed_in_pieces_is_stored_as_one(notebook):
    outputs = normalise(notebook).cells[0].outputs
    assert [output.get("text") for output in outputs] == ["1\n2\n", None]


def test_a_measured_figure_is_kept_until_its_code_changes(notebook):
    old, new = normalise(notebook), normalise(copy.deepcopy(notebook))
    new.cells[0].outputs[0].text = "another measurement"
    assert keep_timings(new, old).cells[0].outputs[0].text == "1\n2\n"
    new.cells[0].source = "print(2)"
    new.cells[0].outputs = [v4.new_output("stream", text="3\n")]
    assert keep_timings(new, old).cells[0].outputs[0].text == "3\n"
