"""The commands of every kind by the grammar of the runai CLI v2: their verbs, and each verb on a real workload."""

import json
import re
import socket
import urllib.request

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until
from tests.e2e.several import needs_networks

HOST = ("--image", "fairlead.local/host")
SESSIONS = {"exec", "bash", "attach", "port-forward"}
COMMON = {"submit", "list", "describe", "logs", "delete", *SESSIONS}
PAUSES = {"suspend", "resume"}
FRAMEWORKS = ("pytorch", "mpi", "tensorflow", "tf", "xgboost", "jax")


@pytest.fixture
def fairlead(server: Server) -> Caller:
    return Caller(server.data_dir)


def verbs(fairlead: Caller, *arguments: str) -> set[str]:
    shown = fairlead.ok(*arguments, "--help")
    listed = shown.partition("Verbs:\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^  (\S+) ", listed, re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (("training",), COMMON | PAUSES),
        (("training", "standard"), COMMON | PAUSES),
        (("workspace",), COMMON | PAUSES),
        (("training", "distributed"), COMMON | PAUSES),
        *((("training", framework), COMMON | PAUSES) for framework in FRAMEWORKS),
        *(((framework,), COMMON | PAUSES) for framework in FRAMEWORKS),
        (("inference",), COMMON | {"update"}),
        (("inference", "distributed"), COMMON | {"scale"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_every_command_has_its_verbs(fairlead: Caller, words: tuple[str, ...], want: set[str]) -> None:
    assert want <= verbs(fairlead, *words)
    assert bool(PAUSES & verbs(fairlead, *words)) is bool(PAUSES & want)


@pytest.mark.parametrize(("word", "framework"), [("pytorch", "PyTorch"), ("tf", "TF"), ("jax", "JAX"), ("mpi", "MPI")])
def test_a_framework_submits_and_lists_its_own(fairlead: Caller, server: Server, word: str, framework: str) -> None:
    name = fairlead.ok(word, "submit", f"own-{word}", *HOST, "--workers", "1", "-c", "--", "true").strip()
    other = fairlead.ok("training", "xgboost", "submit", f"else-{word}", *HOST, "-c", "--", "true").strip()
    listed = json.loads(fairlead.ok("training", word, "list", "--json"))
    found = {each["name"]: each for each in listed if each["name"] in (name, other)}
    assert set(found) == {name}
    assert found[name]["distributedFramework"] == framework
    shown = json.loads(fairlead.ok("training", "distributed", "list", "--json"))
    assert {name, other} <= {each["name"] for each in shown}
    assert fairlead("training", "distributed", "delete", name, other).code == 0


def test_flags_of_the_master_lie_over_the_workers_spec(fairlead: Caller) -> None:
    words = ("--workers", "1", "--master-args", "-c 'echo master'", "-c", "--", "sh", "-c", "echo worker")
    name = fairlead.ok("pytorch", "submit", "mastered", *HOST, *words).strip()
    assert fairlead("wait", name, "--for", "Completed", "--timeout", "120s").code == 0
    for role in ("master", "worker"):
        assert fairlead.ok("pytorch", "logs", name, "--pod", f"{name}-{role}-0", "--follow") == f"{role}\n"
    created = json.loads(fairlead.ok("pytorch", "submit", "shown", "--dry-run", "--json", *HOST, *words))
    assert created["masterSpec"]["image"] == "fairlead.local/host"
    assert created["masterSpec"]["args"] == "-c 'echo master'"


def test_a_workspace_from_submit_to_delete(fairlead: Caller, server: Server) -> None:
    words = ("--environment-variable", "WHO=me", "-c", "--", "sh", "-c", "echo hello; exec sleep 600")
    name = fairlead.ok("workspace", "submit", "desk", *HOST, *words).strip()
    assert fairlead("wait", name, "--for", "Running", "--timeout", "120s").code == 0
    assert "desk" in fairlead.ok("workspace", "list")
    assert json.loads(fairlead.ok("workspace", "describe", name, "-o", "json"))["type"] == "Workspace"
    until(lambda: fairlead.ok("workspace", "logs", name) == "hello\n", "its words")
    assert fairlead.ok("workspace", "exec", name, "--", "sh", "-c", "echo $WHO") == "me\n"
    assert fairlead("workspace", "suspend", name).code == 0
    assert fairlead("wait", name, "--for", "Stopped", "--timeout", "120s").code == 0
    assert fairlead("workspace", "resume", name).code == 0
    assert fairlead("wait", name, "--for", "Running", "--timeout", "120s").code == 0
    assert fairlead("workspace", "delete", name).code == 0


SERVES = (
    "import http.server, os; http.server.HTTPServer(('', 8000), http.server.SimpleHTTPRequestHandler).serve_forever()"
)


@needs_networks
def test_a_service_of_groups_from_submit_to_delete(fairlead: Caller, server: Server) -> None:
    words = ("--replicas", "1", "--workers", "1", "--serving-port", "8000,authorization-type=authenticatedUsers")
    name = fairlead.ok(
        "inference", "distributed", "submit", "grouped", *HOST, *words, "-c", "--", "python3", "-c", SERVES
    ).strip()
    assert fairlead("wait", name, "--for", "Running", "--timeout", "120s").code == 0
    [found] = server.call("GET", f"/api/v1/workloads?filterBy=name=={name}").json["workloads"]
    spec = server.call("GET", f"/api/v1/workloads/distributed-inferences/{found['id']}").json["spec"]
    assert spec["servingPort"] == {"port": 8000, "authorizationType": "authenticatedUsers"}
    assert spec["worker"] == spec["leader"]
    assert fairlead("inference", "distributed", "scale", name, "--replicas", "2").code == 0
    until(lambda: server.workload(found["id"])["runningPods"] == 4, "the second group")
    said = fairlead.ok("inference", "distributed", "exec", name, "--pod", f"{name}-1-1", "--", "hostname")
    assert said == f"{name}-1-1\n"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    call = fairlead.start("inference", "distributed", "port-forward", name, "--port", f"{port}:8000")
    try:
        until(lambda: answers(port), "the forwarded port")
    finally:
        call.terminate()
        call.communicate(timeout=180)
    assert fairlead("inference", "distributed", "delete", name).code == 0


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_workers_unlike_their_leader(fairlead: Caller) -> None:
    """Alone what is said of workers counts when they are not to be as their leader."""
    submit = ("inference", "distributed", "submit", "unlike", *HOST, "--workers", "1", "--dry-run", "--json")
    words = ("--readiness-probe-port", "8000", "-c", "--", "sleep", "600")
    alike = json.loads(fairlead.ok(*submit, "--worker-command", "sleep 500", *words))["spec"]
    assert (alike["worker"]["probes"], alike["worker"]["command"]) == (alike["leader"]["probes"], "sleep 500")
    own = ("--worker-as-leader=false", "--worker-image", "x", "--worker-command", "sleep 500")
    unlike = json.loads(fairlead.ok(*submit, *own, *words))["spec"]
    assert unlike["worker"] == {"image": "x", "command": "sleep 500"}
