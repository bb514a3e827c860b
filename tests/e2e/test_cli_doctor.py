"""`doctor` checks what the server of the data folder runs on, and asks on behalf of that server."""

import io
import json
from pathlib import Path

from fairlead.cli.command import CommandEnvironment, Invocation
from fairlead.cli.flags import Parsed
from fairlead.cli.server.doctor import Checks, run_doctor
from fairlead.model.finding import Finding
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server


class Examiner:
    """Stands in for the checks of both engines; keeps which was asked, and for whom."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def examine_machine(self, folder: str, is_personal: bool) -> list[Finding]:
        self.asked.append(("machine", folder))
        return [Finding("Network", "ok", "seen")]

    def examine_cluster(self, kubeconfig: str, own_cluster: str) -> list[Finding]:
        self.asked.append(("cluster", kubeconfig, own_cluster))
        return [Finding("Namespaces", "ok", "seen")]


def asked_for(home: Path, folder: Path, flags: dict[str, str] | None = None, **environ: str) -> tuple[str, ...]:
    """Which check the command runs, and with what."""
    environ |= {"HOME": str(home), "FAIRLEAD_DATA_DIR": str(folder)}
    environment = CommandEnvironment(environ, str(home), io.StringIO(), io.StringIO(), io.StringIO())
    examiner = Examiner()
    checks = Checks(examiner.examine_machine, examiner.examine_cluster)
    assert run_doctor(Invocation(Parsed(flags or {}, [], None), environment), checks) == 0
    [asked] = examiner.asked
    return asked


def test_doctor_knows_on_whose_behalf_it_looks(server: Server, tmp_path: Path) -> None:
    on_cluster = tmp_path / "cluster"
    on_cluster.mkdir()
    for name in ("server.json", "credentials.json"):
        known = json.loads((server.data_dir / name).read_bytes())
        (on_cluster / name).write_text(json.dumps(known | {"engine": "kubernetes"}))
    [cluster] = server.call("GET", "/api/v1/clusters").json
    none = tmp_path / "none"

    assert asked_for(tmp_path, on_cluster) == ("cluster", "", cluster["uuid"])
    assert asked_for(tmp_path, server.data_dir) == ("machine", str(server.data_dir))
    assert asked_for(tmp_path, server.data_dir, {"engine": "kubernetes"}) == ("cluster", "", "")
    assert asked_for(tmp_path, server.data_dir, {"kubeconfig": "x"}) == ("cluster", "x", "")
    assert asked_for(tmp_path, none) == ("machine", str(none))
    assert asked_for(tmp_path, none, KUBECONFIG="x") == ("cluster", "", "")


def test_doctor_says_what_it_found_about_this_machine_and_the_server(server: Server, tmp_path: Path) -> None:
    """Its findings are this machine's, so only their names and what a running server settles are asserted."""
    fairlead = Caller(server.data_dir, tmp_path)
    called = fairlead("doctor", "-o", "json")
    found = {each["what"]: each for each in json.loads(called.out)}
    assert called.code == (1 if any(each["state"] == "missing" for each in found.values()) else 0)
    assert {"Kernel", "Isolation", "Control groups", "GPUs", "Container runtimes", "Disk", "Clock"} <= set(found)
    assert found["Server"]["state"] == "ok"
    assert server.url in found["Server"]["found"]
    assert found["Version"]["state"] == "ok"
    assert all(each["advice"] for each in found.values() if each["state"] != "ok")


def test_doctor_asks_the_server_that_is_configured(server: Server, tmp_path: Path) -> None:
    none = Caller(tmp_path / "none", tmp_path)
    findings = json.loads(none("doctor", "-o", "json", FAIRLEAD_URL=server.url).out)
    assert findings[0] == {
        "what": "Server",
        "state": "ok",
        "found": f"answers at {server.url}, as configured",
        "advice": "",
    }
