"""`fairlead import runai` from a program that answers as Run:ai's contract says, with answers written for it."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from tests.contract.api.agreement import find_disagreements
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server

ANSWERS: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "runai-answers.json").read_text())
SECRET = "secret-of-the-importer"


class RunaiHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: The methods and paths that were asked for.
    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.asked.append(("GET", path))
        if self.headers.get("Authorization") != "Bearer t-1":
            self._answer(401, {"code": 401, "message": "Unauthorized"})
        elif path in ANSWERS:
            self._answer(200, ANSWERS[path])
        else:
            self._answer(404, {"code": 404, "message": "Not found"})

    def do_POST(self) -> None:
        self.asked.append(("POST", self.path))
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        # A version that knows applications only.
        known = {"grantType": "app_token", "AppId": "importer", "AppSecret": SECRET}
        if self.path == "/api/v1/token" and body == known:
            self._answer(200, {"accessToken": "t-1", "expiresIn": 3600})
        else:
            self._answer(400, {"code": 400, "message": "Bad credentials"})

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def runai() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), RunaiHandler) as server:
        RunaiHandler.asked.clear()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def path_in_contract(path: str) -> str:
    folder, _, _ = path.rpartition("/")
    of_kind = folder in ("/api/v1/workloads/distributed", "/api/v1/workloads/workspaces")
    return f"{folder}/{{workloadId}}" if of_kind else path


@pytest.mark.parametrize("path", ANSWERS)
def test_the_answers_are_those_of_the_contract(path: str) -> None:
    assert find_disagreements("get", path_in_contract(path), 200, ANSWERS[path]) == []


def test_everything_is_taken_over(runai: str, make_server: Callable[..., Server], tmp_path: Path) -> None:
    target = make_server("--shared", "--allow", "no-isolation")
    fairlead = Caller(target.data_dir)
    (tmp_path / "secret").write_text(SECRET + "\n")
    login = ("--client-id", "importer", "--client-secret-file", str(tmp_path / "secret"))
    words = ("import", "runai", "--url", runai, *login)
    planned = fairlead.ok(*words, "--dry-run")
    assert "Would be created: 1 node pool, 1 department, 2 projects, 2 users, 1 service account" in planned
    taken = fairlead.ok(*words)
    assert {method for method, path in RunaiHandler.asked if path != "/api/v1/token"} == {"GET"}
    lost = taken.partition("Not carried over:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.strip().partition(":")[0] for line in lost] == [
        "workload operator-job",
        "topology of node pool h100",
        "namespace of project nlp",
        "single sign-on of user bob@corp.example",
        "groups of user bob@corp.example",
        "password asset git-bot",
        "git asset code",
    ]
    with target.client() as client:
        nlp = client.project("nlp")
        pools = {row["nodePool"]["name"]: row["gpu"]["deserved"] for row in nlp["resources"]}
        assert (pools, nlp["defaultNodePools"]) == ({"default": 4, "h100": 8}, ["h100", "default"])
        [template] = client.request("GET", "/api/v1/workload-templates")["entries"]
        [nfs] = client.request("GET", "/api/v1/asset/datasource/nfs")["entries"]
        assert template["assets"]["datasources"] == [{"id": nfs["meta"]["id"], "kind": "nfs"}]
        [workload] = client.workloads()["workloads"]
        assert (workload["name"], workload["type"], workload["projectName"]) == ("pretrain", "Distributed", "nlp")
        policy = client.request("GET", "/api/v2/policy/trainings", scope="project", projectId=nlp["id"])["policy"]
        assert policy["rules"]["compute"]["gpuDevicesRequest"] == {"max": 4}

    (tmp_path / "values.json").write_text(json.dumps({"git-bot": {"password": "hidden-word"}}))
    again = fairlead.ok(*words, "--secrets", str(tmp_path / "values.json"))
    assert "Created: 1 password asset, 1 git asset\n" in again
    assert "Created" not in fairlead.ok(*words)

    # All that has not ended: what is suspended there is suspended here, and does not start.
    assert "Created: 2 workspaces\n" in fairlead.ok(*words, "--workloads", "all")
    with target.client() as client:
        workloads = {row["name"]: row["id"] for row in client.workloads()["workloads"]}
        paused = client.request("GET", f"/api/v1/workloads/workspaces/{workloads['paused']}")
        assert (paused["desiredPhase"], set(workloads)) == ("Stopped", {"pretrain", "notebook", "paused"})
        records = client.request("GET", f"/api/v1/workloads/{workloads['paused']}/history")["records"]
        phases = {record["spec"].get("phaseUpdate", {}).get("phase") for record in records}
        assert not phases & {"Pending", "Initializing", "Running"}
