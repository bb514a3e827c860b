"""After a real eviction on a shared server, nothing that the victim's owner can read names the winner.

`tests/contract/api/test_named_messages.py` tries the same with recorded evictions, and those who may see both projects.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until
from tests.e2e.test_quota import node, submit

#: Names of the winner, its project, its department and its owner.
NAMES = ("moonshot", "skunkworks", "darkness", "eve@lab.example")
#: What the owner of the victim calls; the victim is called `train`.
COMMANDS = (
    "list",
    "list -A",
    "list -o json",
    "describe train",
    "describe train -o json",
    "why train",
    "why train -o json",
    "estimate train",
    "queue",
    "top",
    "logs train",
    "project list",
    "project describe hers",
    "department list",
    "nodepool list -o json",
    "cluster list -o json",
    "report usage",
    "notification list",
    "plan training submit more -g 2",
    "wait train --for Running --timeout 1s",
    "describe moonshot",
    "whoami",
    "node list",
    "audit",
    "user list",
    "snapshot",
)


class Ada:
    """Owns the victim; she has a role in the project `hers` and nowhere else."""

    def __init__(self, server: Server, administrator: Caller) -> None:
        self.home = server.data_dir.parent / "ada"
        self.home.mkdir()
        self.server = Server(server.data_dir)
        self.command = Caller(server.data_dir)
        made = administrator.ok("user", "create", "ada@lab.example", "-o", "json")
        administrator.ok("user", "grant", "ada@lab.example", "--project", "hers")
        password = json.loads(made)["tempPassword"]
        self.call("--url", server.url, "login", "-u", "ada@lab.example", "--password-stdin", stdin=f"{password}\n")
        tokens = json.loads((self.home / ".config/fairlead/tokens.json").read_bytes())
        self.server.token = tokens[server.url]["access"]
        self.call("project", "set", "hers")

    def call(self, *arguments: str, stdin: str = "") -> str:
        """All that a command prints."""
        done = self.command(*arguments, stdin=stdin, HOME=str(self.home), FAIRLEAD_DATA_DIR="")
        return done.out + done.err


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("shared") / "data"
    server = Server(folder, "--shared", "--allow", "shared-network", *node(gpus=2)).start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def ada(server: Server) -> Ada:
    administrator = Caller(server.data_dir)
    for department, project in (("light", "hers"), ("darkness", "skunkworks")):
        administrator.ok("department", "create", department, "--gpu-quota", "1")
        administrator.ok("project", "create", project, "--department", department, "--gpu-quota", "1")
    ids = {one["name"]: one["id"] for one in json.loads(administrator.ok("project", "list", "-o", "json"))}
    ada = Ada(server, administrator)
    for name in ("first", "train"):
        server.until_phase(submit(server, ids["hers"], name), "Running")
    administrator.ok("user", "create", "eve@lab.example")
    server.until_phase(submit(server, ids["skunkworks"], "moonshot"), "Running")
    until(lambda: "Evicted" in ada.call("describe", "train"), "the eviction")
    return ada


def test_no_read_of_the_api(ada: Ada) -> None:
    call = ada.server.call
    found = {one["name"]: one["id"] for one in call("GET", "/api/v1/workloads").json["workloads"]}
    assert set(found) == {"first", "train"}
    cluster = call("GET", "/api/v1/clusters").json[0]["uuid"]
    ids = {"workloadId": found["train"], "projectId": "2", "departmentId": "2", "nodepoolId": "1"}
    ids |= {"nodepoolName": "default", "clusterUuid": cluster, "clusterId": cluster}
    leaks, answered = [], 0
    for path, methods in call("GET", "/api/openapi.json").json["paths"].items():
        if "get" not in methods or path.endswith(("/watch", "/openapi.json")):
            continue
        for name, id in ids.items():
            path = path.replace(f"{{{name}}}", id)
        answer = call("GET", path)
        answered += answer.status == 200
        leaks += [(path, name) for name in NAMES if name in answer.body.decode(errors="replace")]
    assert leaks == []
    assert answered > 60


def test_the_events_are_there_without_the_name(ada: Ada) -> None:
    assert "Evicted: a workload of another project reclaimed what this project held above its quota" in ada.call(
        "describe", "train"
    )


@pytest.mark.parametrize("words", COMMANDS)
def test_no_command(ada: Ada, words: str) -> None:
    printed = ada.call(*words.split())
    assert [name for name in NAMES if name in printed and name not in words] == []
