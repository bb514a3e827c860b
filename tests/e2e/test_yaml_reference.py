"""Every snippet of the Workload YAML Reference, applied: each reaches the phase that this machine allows it.

As they are, most name an image and nothing to run, which the host runtime cannot know: they fail at their start and say
so. With a program in the place of the image's own they run, and what the snippet is about is seen.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, until
from tests.unit.cli.calling import Called, call

FOLDER = Path(__file__).parents[1] / "golden/yaml/reference"
SNIPPETS = sorted(FOLDER.glob("*.yaml"))
NO_COMMAND = "only a container runtime knows the entry point of an image"
#: By snippet: its phase as it is, and words of the reason. The others have no command.
AS_THEY_ARE = {
    "arguments": ("Failed", "cannot run 'start-notebook.sh'"),
    "command": ("Failed", "cannot run 'start-notebook.sh'"),
    "extended-resources": ("Pending", "asks for 5 ext/a"),
}
#: Snippets that this machine refuses whatever they run, and the one that would fetch a large repository.
NOT_RUN = {*AS_THEY_ARE, "git-sync"}
#: By snippet: a program instead of the image's, and what it prints.
PROGRAMS = {
    "config-map-volumes": ("cat /etc/settings/answer", "forty-two"),
    "working-dir": ("pwd", "/tmp"),
    "create-home-dir": ("sh -c 'test -w $HOME && echo home'", "home"),
    "pvcs": ("sh -c 'touch /tmp/mark && ls /tmp'", "mark"),
    "itemized": ("ls -d /tmp/pvc-1 /tmp/pvc-2", "/tmp/pvc-1\n/tmp/pvc-2"),
}
Fairlead = Callable[..., Called]


@pytest.fixture(scope="module")
def fairlead(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Fairlead:
    home = tmp_path_factory.mktemp("home")

    def run(*arguments: str, stdin: str = "") -> Called:
        return call(*arguments, "--data-dir", str(server.data_dir), home=home, stdin=stdin)

    if "team-a" not in run("project", "list", "-o", "name").out.split():
        assert run("project", "create", "team-a").code == 0
    assert run("configmap", "create", "cm-1", "-p", "team-a", "--from-literal", "answer=forty-two").code == 0
    return run


def apply(server: Server, fairlead: Fairlead, text: str, name: str) -> dict[str, Any]:
    applied = fairlead("apply", "--allow-pending", "-f", "-", stdin=text)
    assert applied.out == f"{name}: submitted\n", applied
    rows = server.call("GET", f"/api/v1/workloads?filterBy=name=={name}").json["workloads"]
    row: dict[str, Any] = rows[0]
    return row


def told(server: Server, workload_id: str, phase: str) -> str:
    """The workload's message, once it is in that phase and says something."""

    def find() -> str:
        found = server.call("GET", f"/api/v1/workloads/{workload_id}").json
        return str(found.get("phaseMessage") or "") if found["phase"] == phase else ""

    return str(until(find, f"a reason for {phase}"))


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_as_it_is(server: Server, fairlead: Fairlead, path: Path) -> None:
    row = apply(server, fairlead, path.read_text(), path.stem)
    assert row["type"] == "Workspace"
    want_phase, want_words = AS_THEY_ARE.get(path.stem, ("Failed", NO_COMMAND))
    assert want_words in told(server, row["id"], want_phase)
    assert fairlead("delete", "-f", str(path)).code == 0


@pytest.mark.parametrize("path", [path for path in SNIPPETS if path.stem not in NOT_RUN], ids=lambda path: path.stem)
def test_with_a_program(server: Server, fairlead: Fairlead, path: Path) -> None:
    program, want_output = PROGRAMS.get(path.stem, ("echo ran", "ran"))
    name = f"{path.stem}-runs"
    text = path.read_text().replace(f"name:\n    value: {path.stem}\n", f"name:\n    value: {name}\n")
    text += f"  command:\n    value: {program}\n"
    row = apply(server, fairlead, text, name)
    server.until_phase(row["id"], "Completed")
    assert want_output in server.logs(row["id"])
    assert fairlead("delete", "-f", "-", stdin=text).code == 0
