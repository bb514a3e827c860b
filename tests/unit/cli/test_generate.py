"""The tables that the command line reads are those that the model declares."""

from fairlead.cli.generate import render_tables


def test_the_tables_here_are_what_the_model_declares() -> None:
    stale = [path.name for path, text in render_tables().items() if not path.exists() or path.read_text() != text]
    assert not stale, "they were made before the last change: run `make setup`"
