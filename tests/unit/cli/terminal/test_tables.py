"""Tables: as wide as their content, narrowed where a terminal asks for it."""

import pytest

from fairlead.cli.terminal.tables import TableColumn, render_table

COLUMNS = (
    TableColumn("NAME", lambda row: row[0], shrinks=True),
    TableColumn("STATUS", lambda row: row[1]),
    TableColumn("MESSAGE", lambda row: row[2], shrinks=True),
)
ROWS = [("train", "Running", "all is well"), ("a-very-long-name-indeed", "Pending", "waits for\n2 GPUs")]


def plain(text: str, colour: str) -> str:
    return text


@pytest.mark.parametrize(
    ("width", "headers", "want"),
    [
        pytest.param(
            None,
            True,
            [
                "NAME                     STATUS   MESSAGE",
                "train                    Running  all is well",
                "a-very-long-name-indeed  Pending  waits for 2 GPUs",
            ],
            id="as wide as it likes",
        ),
        pytest.param(
            36,
            True,
            [
                "NAME          STATUS   MESSAGE",
                "train         Running  all is well",
                "a-very-long…  Pending  waits for 2 …",
            ],
            id="narrowed",
        ),
        pytest.param(
            5,
            False,
            ["tr…  Ru…  al…", "a-…  Pe…  wa…"],
            id="a column keeps three letters",
        ),
    ],
)
def test_render_table(width: int | None, headers: bool, want: list[str]) -> None:
    assert render_table(COLUMNS, ROWS, width=width, headers=headers, paint=plain) == want


def test_a_narrowed_table_fits() -> None:
    for width in range(13, 60):
        lines = render_table(COLUMNS, ROWS, width=width, headers=True, paint=plain)
        assert max(map(len, lines)) <= width


def test_colour_does_not_change_the_layout() -> None:
    columns = (TableColumn("A", lambda row: row, colour=lambda text: "red"), TableColumn("B", lambda row: "x"))
    lines = render_table(columns, ["one", "three"], width=None, headers=False, paint=lambda text, _: f"<{text}>")
    assert lines == ["<one>    x", "<three>  x"]


def test_spare_columns_are_left_out_before_others_get_too_narrow() -> None:
    columns = (
        TableColumn("NAME", lambda row: row[0]),
        TableColumn("TYPE", lambda row: "Training", spare=True),
        TableColumn("AGE", lambda row: "12m", spare=True),
        TableColumn("MESSAGE", lambda row: row[2], shrinks=True, narrowest=11),
    )
    headers = {
        width: render_table(columns, ROWS[:1], width=width, headers=True, paint=plain)[0] for width in (33, 32, 27, 12)
    }
    assert headers == {
        33: "NAME   TYPE      AGE  MESSAGE",
        32: "NAME   TYPE      MESSAGE",
        27: "NAME   MESSAGE",
        12: "NAME   MESS…",
    }
