"""Every `fairlead` command of the page "From one machine to many", in its order, on two servers of this machine.

What needs a cluster is named here; `tests/kubernetes` has its own tests of it.
"""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server
from tests.e2e.test_transfer import expect_lab, write_lab

PAGE = Path(__file__).parents[2] / "docs" / "one-to-many.md"
NEW = "https://fairlead.lab.example"
NEEDS_CLUSTER = ("fairlead doctor --engine kubernetes",)
#: The first command of what each person does alone.
AS_ANN = f"fairlead config set url {NEW}"


def commands_of_page() -> list[str]:
    blocks = re.findall(r"^ *```shell\n(.*?)^ *```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("fairlead ")]


def test_the_page_from_one_machine_to_many(make_server: Callable[..., Server], tmp_path: Path) -> None:
    old = make_server("--shared", "--allow", "no-isolation", name="old")
    new = make_server("--shared", "--allow", "no-isolation", name="new")
    owner = write_lab(old)
    owner.folder = tmp_path
    ann = Caller(tmp_path / "ann" / "data", tmp_path)
    ann.data_dir.mkdir(parents=True)
    (tmp_path / "new-secret.txt").write_text(new.credentials["clientSecret"])
    (tmp_path / "values.json").write_text(json.dumps({"wandb": {"key": "x"}, "registry": {"password": "y"}}))
    caller, password, shown = owner, "", ""
    # The owner has logged in to the new server, which `--url` names.
    login = ("login", "application", "--name", new.credentials["clientId"], "--url", new.url)
    owner.ok(*login, "--secret", new.credentials["clientSecret"])
    owner.ok("config", "unset", "url")
    for line in commands_of_page():
        if line in NEEDS_CLUSTER:
            continue
        caller = ann if line == AS_ANN else caller
        caller = owner if line.startswith("fairlead list -A") else caller
        text, _, file = line.removeprefix("fairlead ").replace(NEW, new.url).partition(" > ")
        words = [*shlex.split(text), *(["--offline"] if file == "fairlead.yaml" else [])]
        # There is no terminal that could ask for it.
        output = caller.ok(*words, *(["--password", password] if words[0] == "login" else []))
        shown += output
        if match := re.search(r"password of user ann@lab.example: (\S+)", output):
            password = match[1]
    assert "Dry run: nothing was written." in shown
    assert "kind: Deployment" in shown
    assert "Created: 1 password asset, 1 secret\n" in shown
    expect_lab(new)
    assert old.process is not None
    assert old.process.wait(60) == 0


def test_every_command_that_needs_a_cluster_is_on_the_page() -> None:
    assert set(NEEDS_CLUSTER) <= set(commands_of_page())
    assert AS_ANN in commands_of_page()
