"""The examples of workloads with several roles, and of a workspace: each run as its README says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.cli_calls import surroundings
from tests.e2e.server import Server, until
from tests.e2e.several import needs_networks
from tests.e2e.web import bearer, exposed, fetch, open_socket

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def run(server: Server, tmp_path: Path, script: str, patience: float = 240, **variables: str) -> str:
    """An example as a process, with the `fairlead` command and the checkout's own tools on its path."""
    command = tmp_path / "fairlead"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairlead "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}:{ROOT / '.tools' / 'bin'}"
    environ = surroundings(server.data_dir, PATH=path, **variables)
    words = [str(EXAMPLES / script)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=patience, env=environ, check=False)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.debian("python3-torch")
def test_pytorch(server: Server, tmp_path: Path) -> None:
    assert run(server, tmp_path, "pytorch/run.sh").splitlines() == [
        f"rank {number} of 3: the sum is 6" for number in range(3)
    ]


@pytest.mark.debian("openmpi-bin", "python3-mpi4py")
def test_mpi(server: Server, tmp_path: Path) -> None:
    shown = run(server, tmp_path, "mpi/run.sh")
    # mpirun may add a warning of its own, about a race with the process that it starts.
    assert re.search(r"^pi is 3\.14159\d, by 4 processes on .+$", shown, re.MULTILINE), shown


@needs_networks
def test_model_server(server: Server, tmp_path: Path) -> None:
    shown = run(server, tmp_path, "model-server/run.sh")
    first, second = [line for line in shown.splitlines() if line.startswith("the ")]
    assert (len(first.split()), len(second.split())) == (10, 10)
    assert first.startswith("the wind ")


@needs_networks
def test_inference(server: Server, tmp_path: Path) -> None:
    answers = [line for line in run(server, tmp_path, "inference/run.sh").splitlines() if " " not in line]
    assert answers == ["glad", "neither", "sad"]


@needs_networks
def test_jupyter(server: Server, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its page, its interface and a kernel's WebSocket pass through the URL, for whoever may open it."""
    variables = {"JUPYTER_ENVIRONMENT": str(tmp_path_factory.mktemp("jupyter") / "environment")}
    for name in ("UV_CACHE_DIR", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "HTTPS_PROXY", "SSL_CERT_FILE"):
        if name in os.environ:
            variables[name] = os.environ[name]
    link = run(server, tmp_path, "jupyter/run.sh", 600, **variables).strip().splitlines()[-1]
    assert urlsplit(link).hostname == "lab-1-default.localhost"
    [found] = server.call("GET", "/api/v1/workloads?filterBy=name==lab-1").json["workloads"]
    url = exposed(server, found["id"])
    assert fetch(url, "/lab").status == 401
    signed_in = bearer(server.token)
    # The pod runs before its program listens.
    until(lambda: fetch(url, "/lab", **signed_in).status == 200, "it answers")
    page = fetch(url, "/lab", **signed_in)
    assert b"JupyterLab" in page.body
    kernel = talk(url, "/api/kernels", {"name": "python3"}, **signed_in)
    status, connected = open_socket(url, f"/api/kernels/{kernel['id']}/channels", **signed_in)
    assert status == 101
    connected.close()
    assert server.call("POST", f"/api/v1/workloads/workspaces/{found['id']}/suspend").status == 202
    server.until_phase(found["id"], "Stopped")
    assert until(lambda: fetch(url, "/lab", **signed_in).status in (404, 503), "nobody there")


def talk(url: str, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """A request that changes something, as JupyterLab's own page sends it."""
    shown = fetch(url, "/lab", **headers)
    crossing = dict(re.findall(r"(_xsrf)=([^;]+)", shown.headers["all-cookies"]))
    sent = {**headers, "Content-Type": "application/json", "Cookie": f"_xsrf={crossing.get('_xsrf', '')}"}
    answer = fetch(url, path, "POST", json.dumps(body), X_XSRFToken=crossing.get("_xsrf", ""), **sent)
    assert answer.status == 201, answer
    made: dict[str, Any] = answer.json
    return made
