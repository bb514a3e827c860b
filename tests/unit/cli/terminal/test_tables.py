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
            ["train     Running  all is …", "a-very-…  Pending  waits f…"],
            id="never narrower than readable",
        ),
    ],
)
def test_render_table(width: int | None, headers: bool, want: list[str]) -> None:
    assert render_table(COLUMNS, ROWS, width=width, headers=headers, paint=plain) == want


def test_a_narrowed_table_fits() -> None:
    for width in range(30, 60):
        lines = render_table(COLUMNS, ROWS, width=width, headers=True, paint=plain)
        assert max(map(len, lines)) <= width


def test_colour_does_not_change_the_layout() -> None:
    columns = (TableColumn("A", lambda row: row, colour=lambda text: "red"), TableColumn("B", lambda row: "x"))
    lines = render_table(columns, ["one", "three"], width=None, headers=False, paint=lambda text, _: f"<{text}>")
    assert lines == ["<one>    x", "<three>  x"]
