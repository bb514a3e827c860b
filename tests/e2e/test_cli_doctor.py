"""`doctor` looks on behalf of the server of the data folder: whose namespaces stand in the way depends on it."""

import io
import json
from pathlib import Path

from fairlead.cli.command import CommandEnvironment, Invocation
from fairlead.cli.flags import Parsed
from fairlead.cli.server.doctor import run_doctor
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
    on_cluster = tmp_path / "cluster"
    on_cluster.mkdir()
    for name in ("server.json", "credentials.json"):
        known = json.loads((server.data_dir / name).read_bytes())
        (on_cluster / name).write_text(json.dumps(known | {"engine": "kubernetes"}))
    for folder in (on_cluster, server.data_dir, tmp_path / "none"):
        environ = {"HOME": str(tmp_path), "FAIRLEAD_DATA_DIR": str(folder)}
        environment = CommandEnvironment(environ, str(tmp_path), io.StringIO(), io.StringIO(), io.StringIO())
        assert run_doctor(Invocation(Parsed({}, [], None), environment), examiner.examine) == 0
    [cluster] = server.call("GET", "/api/v1/clusters").json
    assert examiner.asked == [cluster["uuid"], "", ""]
