"""Starts the API server in memory as a process of its own, for tests and benches."""

import contextlib
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deploy.cluster.api import MERGE
from tests.e2e.server import until
from tests.memory_api.server import COUNTS


class RunningApi:
    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]") -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.process = process
        config = json.loads(self.kubeconfig.read_text())
        address = urlsplit(config["clusters"][0]["cluster"]["server"])
        self.address = str(address.hostname), address.port

    def call(self, method: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection(*self.address)
        with contextlib.closing(connection):
            headers = {"Content-Type": MERGE if method == "PATCH" else "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
        assert answer.status < 300, f"{method} {path} answered {answer.status}: {content!r}"
        return json.loads(content)

    def counts(self) -> dict[str, int]:
        """Fairlead's requests since the last reset, by verb and kind; without watches, which last."""
        return dict(self.call("GET", COUNTS))

    def reset_counts(self) -> None:
        self.call("DELETE", COUNTS)


@contextlib.contextmanager
def running_api(folder: Path, nodes: int = 4) -> Iterator[RunningApi]:
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen([sys.executable, "-m", "tests.memory_api", str(folder), "--nodes", str(nodes)])
    try:
        until((folder / "kubeconfig").exists, "the API server in memory")
        yield RunningApi(folder, process)
    finally:
        process.terminate()
        process.wait()
