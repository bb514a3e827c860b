"""The skill file for agents: printed as it is, and every command in it exists."""

import re
from pathlib import Path

from fairlead.cli.agents.mcp import SKILL
from fairlead.cli.exit_codes import OK
from fairlead.cli.nouns import NOUNS
from fairlead.client.kinds import load_kinds
from tests.unit.cli.calling import call


def test_the_skill_file_is_printed_without_a_server(tmp_path: Path) -> None:
    called = call("mcp", "--skill", home=tmp_path)
    assert (called.code, called.err) == (OK, "")
    assert called.out == Path(SKILL).read_text()
    assert called.out.startswith("---\nname: fairlead\ndescription: ")


def test_the_skill_names_only_commands_that_exist() -> None:
    words = set(re.findall(r"\bfairlead ([a-z][a-z-]*)", Path(SKILL).read_text()))
    known = {*NOUNS, *(kind.command[0] for kind in load_kinds().values())}
    assert len(words) > 8
    assert words <= known


def test_tools_and_their_table_agree() -> None:
    page = (Path(__file__).parents[4] / "docs" / "agents.md").read_text()
    skill = Path(SKILL).read_text()
    tools = re.findall(r"^\| `([a-z_]+)` \|", page.partition("## Tools over")[2].partition("\n## ")[0], re.MULTILINE)
    assert len(tools) == 8
    assert ", ".join(tools) in skill
