"""A server of a user who is not root: pods have networks of their own by user namespaces and pasta or slirp4netns."""

import contextlib
import json
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.fields import conditions
from tests.e2e.server import Server, observe_processes, until
from tests.e2e.serving import Callers, ask, change, delete, spec_of, start, url_of, version
from tests.e2e.web import bearer, exposed, fetch

CHECKOUT = Path(__file__).parents[2]
#: The user of the machine that has nothing.
USER = pwd.getpwnam("nobody")
pytestmark = [
    pytest.mark.debian("passt"),
    pytest.mark.debian("slirp4netns"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]


class UsersServer(Server):
    """A server that runs as that user, for whom the checkout is shown at a place that everybody can read.

    The device that pasta opens is one of its own mount namespace, so that this machine's does not matter.
    """

    #: Who may open the device, and what is done before the server starts.
    device_mode = "0666"
    preparation = "true"

    def program(self) -> list[str]:
        shown = self.data_dir.parent / "checkout"
        shown.mkdir(exist_ok=True)
        identity = f"--reuid={USER.pw_uid} --regid={USER.pw_gid} --clear-groups"
        python = f"{shown}/{Path(sys.prefix).relative_to(CHECKOUT)}/bin/python"
        device = f"mount -t tmpfs none /dev/net && mknod -m {self.device_mode} /dev/net/tun c 10 200"
        before = f"{device} && {self.preparation} && mount --bind {CHECKOUT} {shown}"
        script = f'{before} && exec setpriv {identity} {python} -m fairlead "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "fairlead"]


class DevicelessServer(UsersServer):
    """As on many machines, where the device is root's alone."""

    device_mode = "0600"


class SlirpServer(UsersServer):
    """As on a machine where slirp4netns is installed and pasta is not."""

    preparation = f"mount --bind /dev/null {shutil.which('pasta')}"


@contextlib.contextmanager
def serving(*arguments: str, make: type[UsersServer] = UsersServer) -> Iterator[UsersServer]:
    # Not where pytest keeps its folders, which only their owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="fairlead"))
    data = folder / "data"
    data.mkdir()
    for path in (folder, data):
        os.chown(path, USER.pw_uid, USER.pw_gid)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    environment["PYTHONPATH"] = f"{folder}/checkout/src"
    server = make(data, "--proxy-port", "0", "--retry-delay", "20", *arguments, environment=environment)
    try:
        server.start()
        yield server
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def server() -> Iterator[UsersServer]:
    with serving("--personal") as server:
        yield server


def is_open(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def test_an_update_takes_over_without_a_gap(server: UsersServer) -> None:
    """Two revisions listen on one port at once, and neither on the machine's own."""
    folder = server.data_dir.parent / "service"
    port = 8471
    spec = spec_of(folder, port, environmentVariables=version("1"))
    folder.chmod(0o755)
    spec["command"] = "/usr/bin/python3"
    workload = start(server, "own", spec)
    server.until_phase(workload, "Running")
    assert "exposedUrls" not in conditions(server, workload, "NotEnforced")
    url = url_of(server, workload)
    assert ask(url)["pod"] == "own-00001-0"
    assert not is_open(port)
    callers = Callers()
    callers.keep_asking(url)
    assert change(server, workload, environmentVariables=version("2")).status == 202
    until(lambda: ask(url)["version"] == "2", "the second revision")
    assert {answer.status for answer in callers.end()} == {200}
    said = Caller(server.data_dir).ok("inference", "exec", "own", "--", "sh", "-c", "hostname; ip -br link | cut -c1-4")
    assert said.split()[:3] == ["own-00002-0", "lo", "eth0"]
    delete(server, workload)


def test_two_workloads_use_one_port(server: UsersServer) -> None:
    script = "exec /usr/bin/python3 -m http.server 8472 --directory /etc"
    names = ("one", "two")
    spec: dict[str, Any] = {
        "exposedUrls": [{"container": 8472}],
        "ports": [{"container": 8472, "serviceType": "NodePort"}],
    }
    workloads = [server.run(name, "/bin/sh", f"-c '{script}'", **spec) for name in names]
    for workload in workloads:
        server.until_phase(workload, "Running")
        until(partial(is_answered, server, workload), "its answer")
    ports = [one["url"] for each in workloads for one in server.workload(each)["externalConnections"] if "url" in one]
    assert len(ports) == len(set(ports)) == 4
    assert not is_open(8472)


def is_answered(server: Server, workload: str) -> bool:
    return fetch(exposed(server, workload), "/hostname", **bearer(server.token)).status == 200


@pytest.fixture(scope="module", params=[UsersServer, SlirpServer], ids=["pasta", "slirp4netns"])
def shared(request: pytest.FixtureRequest) -> Iterator[UsersServer]:
    with serving(make=request.param) as server:
        yield server


def helper_of(server: UsersServer) -> str:
    return "slirp4netns" if isinstance(server, SlirpServer) else "pasta"


def test_it_holds_in_a_view_of_its_own(shared: UsersServer) -> None:
    """A shared server isolates the pod besides, in a further namespace."""
    script = "echo mine > /tmp/name; cd /tmp; exec /usr/bin/python3 -m http.server 8473"
    workload = shared.run("apart", "/bin/sh", f"-c '{script}'", exposedUrls=[{"container": 8473}])
    shared.until_phase(workload, "Running")
    where = exposed(shared, workload)
    until(lambda: fetch(where, "/name", **bearer(shared.token)).body == b"mine\n", "its answer")
    assert not is_open(8473)


def test_a_plain_pod_reaches_services_that_say_so_and_nothing_else_of_this_machine(shared: UsersServer) -> None:
    port = {"container": 8479, "serviceType": "ClusterIP"}
    script = "cd /etc; exec /usr/bin/python3 -m http.server 8479"
    inside = shared.run("says-so", "/bin/sh", f"-c '{script}'", ports=[port], terminationGracePeriodSeconds=0)
    shared.until_phase(inside, "Running")
    [connection] = shared.workload(inside)["externalConnections"]
    service = int(connection["url"].rpartition(":")[2].strip("/"))
    with socket.create_server(("127.0.0.1", 0)) as private, socket.socket(socket.AF_UNIX) as abstract:
        name = f"fairlead-private-{uuid.uuid4()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        number = private.getsockname()[1]
        targets = [
            ["service", 2, ["host.fairlead.internal", service]],
            ["loopback", 2, ["127.0.0.1", number]],
            ["abstract", 1, f"@{name}"],
        ]
        if helper_of(shared) == "slirp4netns":
            # It answers there itself; with pasta the pod would ask the network around this machine.
            targets.append(["gateway of slirp4netns", 2, ["10.0.2.2", number]])
        program = f"""
import socket
reached = []
for name, family, address in {targets}:
    try:
        made = socket.socket(family)
        made.settimeout(5)
        made.connect(tuple(address) if family == 2 else address.replace("@", chr(0)))
        reached.append(name)
    except OSError:
        pass
print(reached)
"""
        workload = shared.run("plain", "/usr/bin/python3", shlex.join(["-c", program]))
        shared.until_phase(workload, "Completed")
    # Slirp4netns shows a pod the whole loopback of this machine or nothing of it.
    assert shared.logs(workload) == ("['service']\n" if helper_of(shared) == "pasta" else "[]\n")
    isolation = conditions(shared, workload, "Isolation")["UserNamespaces"]
    assert f"a network of its own by {helper_of(shared)}" in isolation
    assert shared.call("DELETE", f"/api/v1/workloads/trainings/{inside}").status == 202


def test_it_reaches_the_world_outside(shared: UsersServer) -> None:
    """Another address of this machine stands for another machine; only the connection to the outside leads there."""
    with other_address() as address, socket.create_server((address, 0)) as outside:
        program = f"import socket; socket.create_connection({outside.getsockname()}, 10); print('reached')"
        workload = shared.run("goes-out", "/usr/bin/python3", shlex.join(["-c", program]))
        shared.until_phase(workload, "Completed")
    assert shared.logs(workload) == "reached\n"


@contextlib.contextmanager
def other_address() -> Iterator[str]:
    """An address of this machine besides those that it has."""
    address = "192.0.2.77"
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    try:
        yield address
    finally:
        subprocess.run(["ip", "address", "delete", f"{address}/32", "dev", "lo"], check=True)


def test_doctor_names_what_makes_the_networks(shared: UsersServer) -> None:
    doctor = [*shared.program(), "doctor", "--json", "--data-dir", str(shared.data_dir)]
    done = subprocess.run(doctor, env=shared.environment, capture_output=True, text=True)
    found = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert found["Pods' own networks"]["state"] == "ok"
    assert f"by {shutil.which(helper_of(shared))};" in found["Pods' own networks"]["found"]


def test_a_group_of_pods_is_refused_with_the_reason(shared: UsersServer) -> None:
    body = {
        "name": "group",
        "projectId": "1",
        "clusterId": shared.credentials["clusterId"],
        "spec": {"image": "python:3", "command": "/bin/true", "numWorkers": 2, "distributedFramework": "PyTorch"},
    }
    made = shared.call("POST", "/api/v1/workloads/distributed", body)
    assert made.status == 202, made
    message = shared.until_phase(made.json["workloadId"], "Failed")["phaseMessage"]
    assert "network: pods that reach each other by name need a server that runs as root" in message
    assert "--allow shared-network" in message


def helpers(server: Server) -> int:
    """How many ways out of the machine its pods have."""
    processes, ours = observe_processes(), server.leftovers()
    return sum(processes[pid].words[0] in ("pasta", "slirp4netns") for pid in ours if pid in processes)


def test_services_of_this_machine_are_reached_by_its_name(server: UsersServer) -> None:
    """One workload's port, which only workloads reach, from another's own network."""
    script = "cd /etc; exec /usr/bin/python3 -m http.server 8476"
    port = {"container": 8476, "serviceType": "ClusterIP"}
    inside = server.run("inside", "/bin/sh", f"-c '{script}'", ports=[port])
    server.until_phase(inside, "Running")
    [connection] = server.workload(inside)["externalConnections"]
    where = f"http://host.fairlead.internal:{connection['url'].rpartition(':')[2].strip('/')}/hostname"
    # Asked until it answers, as its program may still be on its way.
    asks = f'import time, urllib.request as r\nwhile True:\n  try: print(r.urlopen("{where}").read()); break\n'
    asks += "  except OSError: time.sleep(0.1)"
    asking = server.run("asks", "/usr/bin/python3", f"-c '{asks}'", ports=[{**port, "container": 8477}])
    server.until_phase(asking, "Completed")
    assert server.logs(asking).strip() == repr(Path("/etc/hostname").read_bytes())


def test_nothing_is_left(server: UsersServer) -> None:
    before = helpers(server)
    spec: dict[str, Any] = {
        "ports": [{"container": 8474, "serviceType": "ClusterIP"}],
        "terminationGracePeriodSeconds": 0,
    }
    workload = server.run("ends", "/bin/sleep", "600", **spec)
    server.until_phase(workload, "Running")
    until(lambda: helpers(server) == before + 1, "the helper of its network")
    hosts = server.data_dir / "pods" / "network"
    names = set(hosts.glob("*.hosts"))
    assert server.call("DELETE", f"/api/v1/workloads/trainings/{workload}").status == 202
    until(lambda: helpers(server) == before, "the end of that helper")
    until(lambda: set(hosts.glob("*.hosts")) < names, "the end of its names")


def test_without_the_device_it_shares_this_machines_network_and_says_why() -> None:
    with serving("--personal", make=DevicelessServer) as server:
        script = "cd /etc; exec /usr/bin/python3 -m http.server 8478"
        workload = server.run("shares", "/bin/sh", f"-c '{script}'", exposedUrls=[{"container": 8478}])
        server.until_phase(workload, "Running")
        until(partial(is_answered, server, workload), "its answer")
        assert is_open(8478)
        assert helpers(server) == 0
        why = conditions(server, workload, "NotEnforced")["exposedUrls"]
        assert why.startswith("pods share this machine's network:")
        assert "pasta cannot open /dev/net/tun (Permission denied): run as root: chmod 0666 /dev/net/tun" in why

        doctor = [*server.program(), "doctor", "--json", "--data-dir", str(server.data_dir)]
        done = subprocess.run(doctor, env=server.environment, capture_output=True, text=True, check=True)
        found = {finding["what"]: finding for finding in json.loads(done.stdout)}
        assert found["Pods' own networks"]["state"] == "note"
        assert found["Network device"]["found"] == "pasta cannot open /dev/net/tun (Permission denied)"
        assert found["Network device"]["advice"].startswith("run as root: chmod 0666 /dev/net/tun")


def test_a_shared_server_without_the_device_refuses_pods_and_says_what_to_do() -> None:
    remedy = "chmod 0666 /dev/net/tun"
    with serving(make=DevicelessServer) as server:
        workload = server.run("refused", "/bin/true")
        message = server.until_phase(workload, "Failed")["phaseMessage"]
        assert message.startswith("Cannot start: network: pods cannot have networks of their own here")
        assert remedy in message
        assert "--allow shared-network" in message
        [warning] = json.loads((server.data_dir / "server.json").read_text())["warnings"]
        assert warning.startswith("Pods are refused: ")
        assert remedy in warning

        doctor = [*server.program(), "doctor", "--json", "--data-dir", str(server.data_dir)]
        done = subprocess.run(doctor, env=server.environment, capture_output=True, text=True)
        assert done.returncode != 0
        found = {finding["what"]: finding for finding in json.loads(done.stdout)}
        assert found["Pods' own networks"]["state"] == "missing"
        assert remedy in found["Network device"]["advice"]
    with serving("--allow", "shared-network", make=DevicelessServer) as server:
        workload = server.run("shares", "/bin/true")
        server.until_phase(workload, "Completed")
        isolation = conditions(server, workload, "Isolation")["UserNamespaces"]
        assert isolation.endswith("it shares this machine's network (--allow shared-network)")
