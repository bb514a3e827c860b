"""`doctor` looks on behalf of the server of the data folder: whose namespaces stand in the way depends on it."""

import io
import json
from pathlib import Path
from typing import Any

from fairlead.cli.__main__ import load_lazily, main
from fairlead.cli.command import CommandEnvironment
from fairlead.engines.kubernetes.install.checks import Finding
from tests.e2e.server import Server


class Examiner:
    """Stands where a cluster would be looked at; keeps for whom it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def examine(self, _kubeconfig: str, own_cluster: str) -> list[Finding]:
        self.asked.append(own_cluster)
        return [Finding("Namespaces", "ok", "seen")]


def test_doctor_knows_on_whose_behalf_it_looks(server: Server, tmp_path: Path) -> None:
    examiner = Examiner()

    def load(name: str) -> Any:
        return examiner if name == "doctor" else load_lazily(name)

    on_cluster = tmp_path / "cluster"
    on_cluster.mkdir()
    for name in ("server.json", "credentials.json"):
        known = json.loads((server.data_dir / name).read_bytes())
        (on_cluster / name).write_text(json.dumps(known | {"engine": "kubernetes"}))
    for folder in (on_cluster, server.data_dir, tmp_path / "none"):
        environ = {"HOME": str(tmp_path), "FAIRLEAD_DATA_DIR": str(folder)}
        around = CommandEnvironment(environ, str(tmp_path), io.StringIO(), io.StringIO(), io.StringIO(), load)
        assert main(("doctor",), around) == 0
    [cluster] = server.call("GET", "/api/v1/clusters").json
    assert examiner.asked == [cluster["uuid"], "", ""]
