"""Jobs as tables: what a notebook and a terminal show."""

import io

from fairlead.client.jobs import Job, Jobs
from fairlead.client.notebook import open_display, render_card, render_table, render_text
from fairlead.client.workloads import Workloads

FACTS = {"id": "1", "name": "a<b>", "type": "Training", "projectName": "p", "phase": "Running", "phaseMessage": ""}


def test_names_are_text_and_no_markup() -> None:
    for shown in (render_card(FACTS), render_table([FACTS])):
        assert "a&lt;b&gt;" in shown
        assert "<b>" not in shown


def test_text_is_aligned() -> None:
    head, row = render_text([FACTS]).splitlines()
    assert head.index("PHASE") == row.index("Running")
    assert render_text([]) == "no jobs"


def test_a_file_gets_the_lines_that_changed() -> None:
    job = Job(Workloads("http://localhost"), FACTS)
    output = io.StringIO()
    redraw = open_display(Jobs(Workloads("http://localhost"), [job]), output)
    redraw()
    job.facts = {**FACTS, "phase": "Completed"}
    redraw()
    _, first, *_, last = output.getvalue().splitlines()
    assert "Running" in first
    assert "Completed" in last
    assert output.getvalue().count("Running") == 1
