"""Secrets, config maps and users' credentials reach the process that asks for them, and nothing else."""

import hashlib
import os
import secrets
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, until

SHOW = "import hashlib, os; print(*(hashlib.sha256(os.environ[n].encode()).hexdigest() for n in ('A', 'B', 'C')))"
VARIABLES = [
    {"name": "A", "secret": {"name": "token", "key": "value"}},
    {"name": "B", "configMap": {"name": "settings", "key": "mode"}},
    {"name": "C", "userCredential": {"name": "mine", "key": "password"}},
]


def canary() -> str:
    return f"canary-{secrets.token_hex(16)}"


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def create(server: Server, path: str, **body: Any) -> dict[str, Any]:
    answer = server.call("POST", f"/api/v1/{path}", body)
    assert answer.status == 201, answer
    made: dict[str, Any] = answer.json
    return made


@pytest.fixture(scope="module")
def planted(server: Server) -> dict[str, str]:
    values = {"secret": canary(), "config": canary(), "credential": canary()}
    create(server, "secrets", name="token", projectId="1", data={"value": values["secret"], "other": "x"})
    create(server, "config-maps", name="settings", projectId="1", data={"mode": values["config"]})
    create(server, "user-credentials", name="mine", data={"password": values["credential"]})
    return values


def files_with(folder: Path, needle: str) -> Iterator[str]:
    """The files below a folder that contain the text, in any encoding that a program would write it in."""
    import_words = [needle.encode(), needle.encode("utf-16-le"), needle.encode().hex().encode()]
    for path in folder.rglob("*"):
        if path.is_file() and any(word in path.read_bytes() for word in import_words):
            yield str(path)


def command_lines() -> Iterator[bytes]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                yield (entry / "cmdline").read_bytes()
            except OSError:
                continue


def test_values_reach_the_process(server: Server, planted: dict[str, str]) -> None:
    id = server.run("values", "python3", f'-c "{SHOW}"', environmentVariables=VARIABLES)
    server.until_phase(id, "Completed")
    want = " ".join(fingerprint(planted[name]) for name in ("secret", "config", "credential"))
    assert server.logs(id).strip() == want


def test_secrets_are_nowhere_in_clear(server: Server, planted: dict[str, str]) -> None:
    id = server.run("hidden", "sleep", "600", environmentVariables=VARIABLES)
    server.until_phase(id, "Running")
    hidden = [planted["secret"], planted["credential"]]
    lines = b"".join(command_lines())
    listed = [server.call("GET", f"/api/v1/{path}").body for path in ("secrets", "user-credentials", "config-maps")]
    parts = ("", "/events", "/history", "/pods", "/explanation", "/logs")
    shown = [server.call("GET", f"/api/v1/workloads/{id}{part}").body for part in parts]
    for value in hidden:
        assert value.encode() not in lines
        assert value.encode() not in b"".join((*listed, *shown))
        assert list(files_with(server.data_dir, value)) == []
    # The search itself works: what is not secret is found.
    assert list(files_with(server.data_dir, planted["config"]))
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_a_refusal_does_not_repeat_a_value(server: Server) -> None:
    value = canary()
    bodies = (
        {"name": "BAD NAME", "projectId": "1", "data": {"k": value}},
        {"name": "ok", "projectId": "1", "data": {"bad key": value}},
        {"name": "ok", "projectId": "1", "data": {"k": [value]}},
        {"name": "ok", "projectId": "1", "data": value},
        {"name": "ok", "projectId": "404", "data": {"k": value}},
    )
    for body in bodies:
        answer = server.call("POST", "/api/v1/secrets", body)
        assert answer.status == 400, answer
        assert value.encode() not in answer.body
    assert list(files_with(server.data_dir, value)) == []


def test_a_name_that_does_not_exist_is_refused_with_its_neighbours(server: Server, planted: dict[str, str]) -> None:
    variables = [
        {"name": "A", "secret": {"name": "tokn", "key": "value"}},
        {"name": "B", "configMap": {"name": "settings", "key": "mod"}},
        {"name": "C", "userCredential": {"name": "yours", "key": "password"}},
    ]
    answer = server.submit("misnamed", "true", environmentVariables=variables)
    assert answer.status == 400, answer
    issues = {issue["field"]: issue["details"] for issue in answer.json["complianceIssues"]}
    assert "did you mean token?" in issues["spec.environmentVariables[0].secret"]
    assert "did you mean mode?" in issues["spec.environmentVariables[1].configMap"]
    assert "yours are mine" in issues["spec.environmentVariables[2].userCredential"]


def test_the_older_dialect_waits_for_a_name_and_continues_when_it_is_there(server: Server) -> None:
    body = {
        "name": "waits",
        "projectId": 1,
        "clusterId": server.credentials["clusterId"],
        "spec": {
            "image": "python:3",
            "command": "sh",
            "args": "-c 'test -n \"$LATE\"'",
            "environmentVariables": [{"name": "LATE", "secret": {"name": "late", "key": "k"}}],
        },
    }
    answer = server.call("POST", "/api/v1/workloads/trainings", body)
    assert answer.status == 202, answer
    id = answer.json["workloadId"]
    seen = server.until_phase(id, "Pending")
    assert "secret late" in until(lambda: server.workload(id)["phaseMessage"], "a message")
    assert any(condition["type"] == "WaitsForNames" for condition in seen["conditions"])
    create(server, "secrets", name="late", projectId="1", data={"k": "here"})
    server.until_phase(id, "Completed")


def test_an_object_in_use_is_not_deleted(server: Server) -> None:
    made = create(server, "secrets", name="needed", projectId="1", data={"k": "v"})
    variables = [{"name": "A", "secret": {"name": "needed", "key": "k"}}]
    id = server.run("user", "sleep", "600", environmentVariables=variables)
    answer = server.call("DELETE", f"/api/v1/secrets/{made['id']}")
    assert answer.status == 412, answer
    assert "user" in answer.json["details"]
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")
    until(lambda: server.call("DELETE", f"/api/v1/secrets/{made['id']}").status == 204, "the deletion")


def test_without_isolation_a_shared_server_gives_no_secrets(make_server: Callable[..., Server]) -> None:
    server = make_server("--allow", "no-isolation", "--allow", "root-user", "--retry-delay", "20")
    create(server, "secrets", name="token", projectId="1", data={"value": "x"})
    id = server.run("refused", "true", environmentVariables=VARIABLES[:1])
    seen = server.until_phase(id, "Failed")
    assert "not isolated" in seen["phaseMessage"]


def test_the_key_is_the_owners_alone_and_another_is_refused(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal")
    key = server.data_dir / "keys" / "encryption.key"
    assert key.stat().st_mode & 0o777 == 0o600
    server.stop()
    key.unlink()
    with pytest.raises(AssertionError, match="encrypted with another key"):
        server.start()


def test_another_workload_cannot_see_a_secret(make_server: Callable[..., Server]) -> None:
    server = make_server("--retry-delay", "20")
    value = canary()
    create(server, "secrets", name="token", projectId="1", data={"value": value})
    holder = server.run("holder", "sleep", "600", environmentVariables=VARIABLES[:1])
    server.until_phase(holder, "Running")
    # The brackets keep the search from finding its own command line.
    look = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -ac [c]anary- ; true"
    id = server.run("looker", "sh", shlex.join(["-c", look]))
    server.until_phase(id, "Completed")
    assert server.logs(id).strip() == "0"
    # The same search finds what a workload was given itself.
    own = server.run("itself", "sh", shlex.join(["-c", look]), environmentVariables=VARIABLES[:1])
    server.until_phase(own, "Completed")
    assert server.logs(own).strip() != "0"
